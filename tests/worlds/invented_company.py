"""The invented company of `torra committee --example`: the arithmetic behind its shipped files.

`write(folder)` writes what sample_data/example holds: reports, closes, headlines. Business and mood
are good and the price is dear, so the seats disagree. `turned` turns all of it round: what grew
shrinks, what was dear is cheap, good news is bad.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from torra.clock import iso
from torra.committee.example import AS_OF, SYMBOL

FIRST_YEAR, LAST_YEAR = 2018, 2025
DAYS: Final = 1_826

NAME: Final = "Example Works (invented)"
HEADLINES: Final = (
    (f"{NAME} beats earnings estimates", f"{NAME} misses earnings estimates"),
    (f"Two brokers upgrade {NAME}", f"Two brokers downgrade {NAME}"),
    (f"{NAME} raises its outlook", f"{NAME} cuts its outlook"),
)
"""A headline in a good and in a bad year: earnings, rating, guidance."""


def write(folder: Path, *, turned: bool = False) -> None:
    """Write the files of the company; they are the same each time."""
    way = -1.0 if turned else 1.0
    for name, header, rows in (
        (f"{SYMBOL}_D1.csv", "time,open,high,low,close,volume", _bars(way)),
        ("facts.csv", "ticker,figure,begins,ends,known_at,value,unit", _facts(way)),
        ("news.jsonl", "", _news(turned)),
    ):
        lines = [*filter(None, [header]), *rows]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


@cache
def turned_folder() -> Path:
    """Return a folder with the company's bad year, written once."""
    folder = Path(mkdtemp(prefix="invented-"))
    write(folder, turned=True)
    return folder


def _bars(way: float) -> Iterator[str]:
    """Yield five years of closes: a slow rise that ends dear, or a fall that ends cheap."""
    before = 0.0
    for number in range(DAYS):
        left = DAYS - 1 - number
        slow = -0.8 * math.cos(math.pi * number / (DAYS - 1))
        last = 0.20 * max(0.0, 1.0 - left / 60.0)  # the last two months
        close = round(60.0 * math.exp(way * (slow + last)), 2)
        opens = before or close
        high, low = max(opens, close) * 1.005, min(opens, close) * 0.995
        day = AS_OF.replace(hour=0) - timedelta(days=left + 1)
        yield f"{iso(day)},{opens:.2f},{high:.4f},{low:.4f},{close:.2f},1000"
        before = close


def _facts(way: float) -> Iterator[str]:
    """Yield the reports of eight years, each made known 50 days after its end."""
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
        known = ends + timedelta(days=50)
        for figure, value in {**periods, **days}.items():
            unit = "shares" if "shares" in figure else "USD"
            first = begins if figure in periods else ends
            dates = f"{first:%Y-%m-%d},{ends:%Y-%m-%d},{iso(known)}"
            yield f"{SYMBOL},{figure},{dates},{value:.6f},{unit}"


def _news(turned: bool) -> Iterator[str]:
    for number, (good, bad) in enumerate(HEADLINES, 1):
        published = iso(AS_OF - timedelta(days=2 * number))
        headline = bad if turned else good
        row = {"headline": headline, "published": published, "source": "invented"}
        yield json.dumps({**row, "tickers": [SYMBOL]})
