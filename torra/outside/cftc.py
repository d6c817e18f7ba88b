"""Positions of traders from the CFTC's public reporting (Socrata), a week a row.

Gold and oil are of the disaggregated report, the others of that on financial futures; both count
futures alone. Each market has one kind of trader: the one that follows prices with borrowed money,
for the S&P 500 the asset managers. A market is known by its contract market code, never by its
name.

A week is taken whole or not at all: a row without a long, a short or an open interest, or about
another market, is refused. The newest weeks come first and all in one page, so that what a page
might not hold would be the oldest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import partial
from typing import Any, Final

from torra.collecting.line import SourceError
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import MARKETS
from torra.outside.answers import SeriesAnswer, day_of, series_answer
from torra.outside.releases import cot_known_at

DAY: Final = "report_date_as_yyyy_mm_dd"
CODE: Final = "cftc_contract_market_code"
INTEREST: Final = "open_interest_all"

PAGE: Final = 1000
"""Rows of a page, at most; ten years are 520 weeks."""

COUNT: Final = re.compile(r"\d{1,12}(\.0+)?", re.ASCII)

PARTS: Final = ("long", "short", "open_interest")
TOPICS: Final = {f"cot.{market}.{part}": market for market in MARKETS for part in PARTS}
"""Series -> its market, whose three series come together."""


def request(topic: str, first: date) -> tuple[str, Mapping[str, str]]:
    """Return path and query that ask for a market from a day on."""
    code = MARKETS[topic]["code"]
    return f"{MARKETS[topic]['report']}.json", {
        "$select": ",".join((DAY, CODE, INTEREST, *_sides(topic))),
        "$where": f"{CODE}='{code}' AND {DAY}>='{first.isoformat()}T00:00:00.000'",
        "$order": f"{DAY} DESC",
        "$limit": str(PAGE),
    }


def read(topic: str, body: bytes, now: datetime) -> SeriesAnswer:
    """Return the rows of a page; raises SourceError for what is no list of rows, and ValueError."""
    payload = json.loads(body)
    if not isinstance(payload, list):
        raise SourceError(NewsStatus.BROKEN, "the reply is no list of weeks")
    weeks = ((f"row {number}", partial(_week, topic, row)) for number, row in enumerate(payload, 1))
    return series_answer("cftc", now, weeks, cot_known_at)


def _sides(topic: str) -> list[str]:
    return [MARKETS[topic]["sides"].format(side) for side in PARTS[:2]]


def _week(topic: str, row: Any) -> tuple[date, dict[str, float]]:
    """Return a week's day and values; raises ValueError with what is wrong, in our words."""
    if not isinstance(row, dict):
        raise ValueError("not an object")  # noqa: TRY004 - a refusal of the reply
    code = MARKETS[topic]["code"]
    if row.get(CODE) != code:
        raise ValueError(f"{CODE} is not {code}")
    values = {}
    for part, column in zip(PARTS, (*_sides(topic), INTEREST), strict=True):
        # As text: a count may come as a number, and True is none.
        if not COUNT.fullmatch(text := str(row.get(column))):
            raise ValueError(f"{column} is no count")
        values[f"cot.{topic}.{part}"] = float(text)
    *sides, interest = values.values()
    if max(sides) > interest:
        raise ValueError(f"more positions than {INTEREST}")
    return day_of(row.get(DAY), DAY), values
