"""An invented company for a first look at the committee: its reports, its closes, its headlines.

Business and mood are good and the price is dear, so the seats disagree. Everything is arithmetic,
of no real company, and stored in a temporary folder that is gone with the answer. `turned` turns
all of it round: what grew shrinks, what was dear is cheap, good news is bad.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pandas as pd

from instance_database import Database
from torra.config import DeskSettings, Instance, Profile
from torra.evidence.news_digest import NewsItem
from torra.evidence.outside_numbers import FactRow
from torra.tools.desk_reader import DeskReader

SYMBOL: Final = "EXAMPLE"
NAME: Final = "Example Works (invented)"
SOURCE: Final = "file invented"

AS_OF: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
FIRST_YEAR, LAST_YEAR = 2018, 2025
DAYS: Final = 1_826

HEADLINES: Final = (
    ("earnings", "Example Works beats estimates", "Example Works misses estimates"),
    ("rating", "Two brokers upgrade Example Works", "Two brokers downgrade Example Works"),
    ("guidance", "Example Works raises its outlook", "Example Works cuts its outlook"),
)
"""Class of a headline, and its words in a good and in a bad year; all are invented."""


@contextmanager
def example_desk(*, turned: bool = False) -> Iterator[DeskReader]:
    """Open a desk that knows the invented company and nothing else."""
    instance = Instance(symbol=SYMBOL, timeframes=("D1",), feed="sample")
    what = {"digits": 2, "asset": "stock", "ticker": SYMBOL, "news_terms": ("Example Works",)}
    spec = Profile().symbols["BTCUSD"].model_copy(update=what)
    profile = Profile(symbols={SYMBOL: spec})
    settings = DeskSettings(instances=(instance,))
    with (
        tempfile.TemporaryDirectory(prefix="torra-example-") as folder,
        closing(Database.open(Path(folder) / "torra.db", now=lambda: AS_OF)) as database,
    ):
        database.store_bars(SYMBOL, "D1", _bars(turned))
        database.store_facts(_facts(turned), AS_OF)
        database.store_news(_news(turned))
        yield DeskReader(Path(folder), database, settings, {instance.id: profile}, AS_OF, AS_OF)


def _bars(turned: bool) -> pd.DataFrame:
    """Return five years of closes: a slow rise that ends dear, or a fall that ends cheap."""
    way = -1.0 if turned else 1.0
    days = pd.date_range(end=AS_OF.date() - timedelta(days=1), periods=DAYS, freq="D", tz="UTC")
    closes = []
    for number in range(DAYS):
        left = DAYS - 1 - number
        slow = -0.8 * math.cos(math.pi * number / (DAYS - 1))
        last = 0.20 * max(0.0, 1.0 - left / 60.0)  # the last two months
        closes.append(round(60.0 * math.exp(way * (slow + last)), 2))
    frame = pd.DataFrame({"close": closes}, index=days.rename("time"))
    frame["open"] = frame["close"].shift(1).fillna(frame["close"])
    frame["high"] = frame[["open", "close"]].max(axis=1) * 1.005
    frame["low"] = frame[["open", "close"]].min(axis=1) * 0.995
    frame["volume"] = 1_000.0
    return frame[["open", "high", "low", "close", "volume"]]


def _facts(turned: bool) -> Iterator[FactRow]:
    """Yield the reports of eight years, each told 50 days after its end."""
    way = -1.0 if turned else 1.0
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        number = year - FIRST_YEAR
        revenue = 1_000.0 * (1.0 + 0.08 * way) ** number
        gross = revenue * (0.4 + 0.01 * way * (number - 4))
        operating = gross - 0.2 * revenue
        interest = 10.0 if way > 0.0 else 30.0
        pretax = operating - interest
        tax = max(0.0, 0.2 * pretax)
        income = pretax - tax
        shares = 100.0 * (0.99 if way > 0.0 else 1.03) ** number
        debt = 300.0 if way > 0.0 else 3_000.0 + 100.0 * number
        periods = {
            "revenue": revenue, "cost_of_revenue": revenue - gross, "gross_profit": gross,
            "operating_income": operating, "pretax_income": pretax, "income_tax": tax,
            "net_income": income, "interest_expense": interest, "depreciation": 0.04 * revenue,
            "operating_cash_flow": income + (0.05 + 0.02 * way) * revenue,
            "capital_expenditure": 0.03 * revenue, "diluted_shares": shares,
        }  # fmt: skip
        days = {
            "assets": 4_000.0, "current_assets": 500.0 + 20.0 * way * number,
            "current_liabilities": 300.0, "equity": 2_000.0, "cash": 200.0,
            "long_term_debt": debt * 0.9, "short_term_debt": debt * 0.1,
            "shares_outstanding": shares,
        }  # fmt: skip
        begins, ends = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC)
        for figure, value in {**periods, **days}.items():
            unit = "shares" if "shares" in figure else "USD"
            first = begins if figure in periods else ends
            known = ends + timedelta(days=50)
            yield FactRow(SYMBOL, figure, first, ends, known, value, unit, SOURCE)


def _news(turned: bool) -> Iterator[NewsItem]:
    """Yield one headline a class, of the last days."""
    for number, (event, good, bad) in enumerate(HEADLINES, 1):
        seen = AS_OF - timedelta(days=2 * number)
        yield NewsItem(
            id=f"example-{number}", source="invented", topic="invented",
            headline=bad if turned else good, published=seen, first_seen=seen,
            score=-0.6 if turned else 0.6, event=event, tickers=(SYMBOL,),
        )  # fmt: skip
