"""Positions of traders from the CFTC's public reporting (Socrata), a week a row.

Gold and oil are of the disaggregated report, the others of that on financial futures; both count
futures alone. Of each market the kind of trader is taken that follows prices with borrowed money,
of the S&P 500 the asset managers. A market is known by its contract market code, never by its name.

A week is taken whole or not at all: a row that tells no long, no short or no open interest, or that
is about another market, is refused. The newest weeks come first and all in one page, so that what a
page might not hold would be the oldest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from torra.collecting.line import SourceError
from torra.evidence.news_digest import NewsStatus
from torra.outside.answers import RowCollector, SeriesAnswer
from torra.outside.publisher import Publisher
from torra.outside.releases import cot_known_at

DISAGGREGATED: Final = "72hh-3qpy"
FINANCIAL: Final = "gpe5-46if"

DAY: Final = "report_date_as_yyyy_mm_dd"
CODE: Final = "cftc_contract_market_code"
INTEREST: Final = "open_interest_all"

PAGE: Final = 1000
"""Rows of a page, at most; ten years are 520 weeks."""

COUNT: Final = re.compile(r"\d{1,12}(\.0+)?", re.ASCII)
DATE: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(T00:00:00(\.0+)?)?", re.ASCII)


class Market(NamedTuple):
    """Where a market stands: its code, its report, and the columns of its kind of trader."""

    code: str
    report: str
    long: str
    short: str

    @classmethod
    def of_managed_money(cls, code: str) -> Market:
        """Return a market of the disaggregated report."""
        kind = "m_money_positions"
        return cls(code, DISAGGREGATED, f"{kind}_long_all", f"{kind}_short_all")

    @classmethod
    def of(cls, kind: str, code: str) -> Market:
        """Return a market of the report on financial futures, whose columns are named otherwise."""
        return cls(code, FINANCIAL, f"{kind}_positions_long", f"{kind}_positions_short")


MARKETS: Final[Mapping[str, Market]] = {
    "gold": Market.of_managed_money("088691"),
    "oil": Market.of_managed_money("067651"),
    "eur": Market.of("lev_money", "099741"),
    "sp500": Market.of("asset_mgr", "13874A"),
    "vix": Market.of("lev_money", "1170E1"),
    "btc": Market.of("lev_money", "133741"),
}
"""COMEX gold, NYMEX WTI, euro FX, E-mini S&P 500, Cboe VIX, CME Bitcoin."""

PARTS: Final = ("long", "short", "open_interest")
SERIES: Final = {f"cot.{market}.{part}": market for market in MARKETS for part in PARTS}
"""Series -> its market."""


class Cftc(Publisher):
    """The CFTC's reports; a topic is a market, whose three series come together."""

    name = "cftc"
    token_header = "X-App-Token"  # noqa: S105 - the name of a header

    def topic_of(self, name: str) -> str | None:
        """Return the market of a series; None when it is not of the CFTC."""
        return SERIES.get(name)

    def _asked(self, topic: str, now: datetime, seconds: float, first: date) -> SeriesAnswer:
        market = MARKETS[topic]
        query = {
            "$select": f"{DAY},{CODE},{INTEREST},{market.long},{market.short}",
            "$where": f"{CODE}='{market.code}' AND {DAY}>='{first.isoformat()}T00:00:00.000'",
            "$order": f"{DAY} DESC",
            "$limit": str(PAGE),
        }
        return read(topic, self._reply(f"{market.report}.json", query, seconds).json(), now)


def read(topic: str, payload: Any, now: datetime) -> SeriesAnswer:
    """Return the rows of a page; raises Trouble for what is no list of rows."""
    if not isinstance(payload, list):
        raise SourceError(NewsStatus.BROKEN, "the reply is no list of weeks")
    reading = RowCollector("cftc", now)
    for number, row in enumerate(payload, 1):
        where = f"row {number}"
        if not isinstance(row, dict):
            reading.refuse(where, "not an object")
            continue
        try:
            day, values = _week(topic, row)
        except ValueError as error:
            reading.refuse(where, str(error))
        else:
            reading.take(where, day, cot_known_at, values)
    return reading.answer()


def _week(topic: str, row: Mapping[str, Any]) -> tuple[date, dict[str, float]]:
    """Return a week's day and values; raises ValueError with what is wrong, in our words."""
    market = MARKETS[topic]
    if row.get(CODE) != market.code:
        raise ValueError(f"{CODE} is not {market.code}")
    long, short, interest = (
        _count(row, column) for column in (market.long, market.short, INTEREST)
    )
    if max(long, short) > interest:
        raise ValueError(f"more positions than {INTEREST}")
    values = dict(zip(PARTS, (long, short, interest), strict=True))
    return _day(row), {f"cot.{topic}.{part}": value for part, value in values.items()}


def _count(row: Mapping[str, Any], column: str) -> float:
    told = row.get(column)
    text = str(told) if isinstance(told, int) and not isinstance(told, bool) else told
    if not isinstance(text, str) or not COUNT.fullmatch(text):
        raise ValueError(f"{column} is no count")
    return float(text)


def _day(row: Mapping[str, Any]) -> date:
    told = row.get(DAY)
    found = DATE.fullmatch(told) if isinstance(told, str) else None
    try:
        if found is not None:
            return date.fromisoformat(found[1])
    except ValueError:
        pass
    raise ValueError(f"{DAY} is no day")
