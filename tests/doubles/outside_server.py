"""A loopback server that stands for FRED and the CFTC: it has tables, and fails as it is told.

`days` are FRED's values by series and day, `weeks` the CFTC's rows; both are answered as their
publishers do, with the columns, the order and the days that were asked for. `play(Said(...))` makes
every reply something else, `mend()` the tables again. What was asked is in `asked`, and the headers
in `headers` (tests.doubles.news_server).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any, Final, Self

from tests.doubles.loopback import Loopback
from tests.doubles.news_server import NewsServer, Said

CSV: Final = {"content-type": "application/csv"}
REPORTS: Final = ("72hh-3qpy", "gpe5-46if")
WHERE: Final = re.compile(
    r"cftc_contract_market_code='([0-9A-Z+]+)'"
    r" AND report_date_as_yyyy_mm_dd>='(\d{4}-\d{2}-\d{2})T00:00:00\.000'"
)
HTML: Final = b"<!DOCTYPE html><html><body>Access Denied</body></html>"


class OutsideServer(NewsServer):
    """See the module; use it in a `with`."""

    def __init__(self) -> None:
        super().__init__()
        self.days: dict[str, dict[str, str]] = {}
        self.weeks: list[dict[str, Any]] = []
        self.mend()

    @property
    def url(self) -> str:
        return str(Loopback.url.__get__(self))

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead here."""
        return {
            "TORRA_FRED_BASE_URL": f"{self.url}/graph",
            "TORRA_CFTC_BASE_URL": f"{self.url}/resource",
        }

    def mend(self) -> Self:
        """Answer from the tables."""
        return self.play(self._table)

    def _table(self, path: str, query: Mapping[str, str]) -> Said:
        if path == "/graph/fredgraph.csv":
            return self._graph(query)
        report = path.removeprefix("/resource/").removesuffix(".json")
        return self._page(report, query) if report in REPORTS else Said(HTML, code=404)

    def _graph(self, query: Mapping[str, str]) -> Said:
        name = query["id"]
        if name not in self.days:
            return Said(HTML, code=404, headers={"content-type": "text/html"})
        rows = sorted(self.days[name].items())
        told = [f"{day},{value}" for day, value in rows if day >= query["cosd"]]
        body = "\n".join((f"observation_date,{name}", *told, ""))
        return Said(body.encode(), headers=CSV)

    def _page(self, report: str, query: Mapping[str, str]) -> Said:
        asked = WHERE.fullmatch(query["$where"])
        if asked is None or query["$order"] != "report_date_as_yyyy_mm_dd DESC":
            return Said(b'{"message": "Query coordinator error", "errorCode": "x"}', code=400)
        code, first = asked.groups()
        rows = [
            row
            for row in self.weeks
            if row["report"] == report
            and row["cftc_contract_market_code"] == code
            and row["report_date_as_yyyy_mm_dd"] >= first
        ]
        rows.sort(key=lambda row: str(row["report_date_as_yyyy_mm_dd"]), reverse=True)
        columns = query["$select"].split(",")
        page = [{name: row[name] for name in columns if name in row} for row in rows]
        return Said(json.dumps(page[: int(query["$limit"])]).encode())


def week(market: str, day: str, **counts: int) -> dict[str, Any]:
    """Return a row of a report as the CFTC has it, with more columns than anybody asks for."""
    code, report, kind, suffix = {
        "gold": ("088691", REPORTS[0], "m_money", "_all"),
        "oil": ("067651", REPORTS[0], "m_money", "_all"),
        "eur": ("099741", REPORTS[1], "lev_money", ""),
        "sp500": ("13874A", REPORTS[1], "asset_mgr", ""),
        "vix": ("1170E1", REPORTS[1], "lev_money", ""),
        "btc": ("133741", REPORTS[1], "lev_money", ""),
    }[market]
    long, short = counts.get("long", 300), counts.get("short", 100)
    return {
        "report": report, "cftc_contract_market_code": code,
        "report_date_as_yyyy_mm_dd": f"{day}T00:00:00.000",
        "market_and_exchange_names": f"{market} - SOMEWHERE", "futonly_or_combined": "FutOnly",
        "open_interest_all": str(counts.get("interest", 1000)),
        f"{kind}_positions_long{suffix}": str(long),
        f"{kind}_positions_short{suffix}": str(short),
        "nonrept_positions_long_all": "7",
    }  # fmt: skip


def weekdays(first: str, count: int) -> Iterator[str]:
    """Yield Mondays to Fridays."""
    day = date.fromisoformat(first)
    while count:
        if day.weekday() < 5:
            yield day.isoformat()
            count -= 1
        day += timedelta(days=1)
