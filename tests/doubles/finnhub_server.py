"""A loopback server that stands for Finnhub's answers about companies; news has NewsServer.

`metrics`, `ratings`, `peers` and `earnings` are what it has by ticker; what is in `paid` gets 403,
as an endpoint does that is not of the free plan. `play(Said(...))` makes every reply something
else, `mend()` the tables again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Self

from tests.doubles.news_server import NewsServer, Said

PAID: Final = Said(b'{"error":"You don\'t have access to this resource."}', code=403)


class FinnhubServer(NewsServer):
    """See the module; use it in a `with`."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics: dict[str, dict[str, Any]] = {}
        self.ratings: dict[str, list[Any]] = {}
        self.peers: dict[str, list[Any]] = {}
        self.earnings: dict[str, list[Any]] = {}
        self.paid: set[str] = set()
        self.mend()

    @property
    def environment(self) -> dict[str, str]:
        """The variable that leads here."""
        return {"TORRA_FINNHUB_BASE_URL": self.url}

    def mend(self) -> Self:
        """Answer from the tables."""
        return self.play(self._table)

    def topics(self) -> list[str]:
        """Return what was asked, in short, and forget it."""
        found = [f"{path.rpartition('/')[2]} {query['symbol']}" for path, query in self.asked]
        self.asked.clear()
        return found

    def _table(self, path: str, query: Mapping[str, str]) -> Said:
        what, ticker = path.rpartition("/")[2], query.get("symbol", "")
        if what in self.paid:
            return PAID
        if what == "metric":
            known = self.metrics.get(ticker, {})
            return _json({"metric": known, "metricType": "all", "series": {}, "symbol": ticker})
        tables = {
            "recommendation": self.ratings, "peers": self.peers, "earnings": self.earnings,
        }  # fmt: skip
        return _json(tables[what].get(ticker, []) if what in tables else [])


def _json(payload: Any) -> Said:
    return Said(json.dumps(payload).encode())


def rating(period: str, **counts: Any) -> dict[str, Any]:
    """Return a row of ratings as Finnhub has it."""
    told = {"strongBuy": 13, "buy": 24, "hold": 7, "sell": 1, "strongSell": 0}
    return {**told, **counts, "period": period, "symbol": "AAPL"}


def quarter(period: str, actual: Any, estimate: Any, surprise: Any = 4.1) -> dict[str, Any]:
    """Return a row of earnings as Finnhub has it."""
    return {
        "actual": actual, "estimate": estimate, "period": period, "quarter": 1, "surprise": 0.1,
        "surprisePercent": surprise, "symbol": "AAPL", "year": 2025,
    }  # fmt: skip


def apple() -> FinnhubServer:
    """Return a server that knows Apple and its peers."""
    server = FinnhubServer()
    server.metrics["AAPL"] = {
        "peTTM": 30.5, "pbQuarterly": 45.0, "psTTM": 8.0, "roeTTM": 150.0, "beta": 1.2,
        "grossMarginTTM": 46.0, "marketCapitalization": 3_500_000.0, "52WeekHigh": 260.0,
        "totalDebt/totalEquityQuarterly": 1.5, "epsTTM": None, "revenueGrowthTTMYoy": "5",
    }  # fmt: skip
    names = ["AAPL", "DELL", "HPQ", "WDC", "HPE", "NTAP", "SMCI", "PSTG", "STX", "XRX"]
    server.peers["AAPL"] = names
    for place, name in enumerate(names[1:]):
        server.metrics[name] = {"peTTM": 10.0 + place}
    server.ratings["AAPL"] = [rating("2026-01-01", buy=20), rating("2026-02-01")]
    server.earnings["AAPL"] = [
        quarter("2025-06-30", 1.57, 1.43, 9.6), quarter("2025-12-31", 2.84, 2.67, 6.4),
        quarter("2025-09-30", 1.85, 1.77, 4.5), quarter("2025-03-31", 1.65, 1.62, 1.7),
        quarter("2024-12-31", 2.40, 2.35, 2.1),
    ]  # fmt: skip
    return server
