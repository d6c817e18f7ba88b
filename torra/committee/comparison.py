"""A company against its own years and against the desk's other stocks, for the committee alone.

    spread     the highest less the lowest of five yearly values, in percentage points
    held       100 (years that lost at most 2 % of the value of the year before) / such years
    rank       100 (cheaper stocks + equal ones / 2) / stocks, of each multiple, its own among them;
               100 is the dearest. The mean of those that are known

A margin or a return that stays high for years is what keeps rivals away (moat). A year counts as it
was reported last. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

from torra.evidence.fair_value import Course
from torra.evidence.outside_numbers import rank_of

MARGINS: Final = {"gross_margin": "gross_margin_pct", "roic": "roic_pct"}
"""What a moat is read of: the name within a feature, and the ratio of a company."""

YEAR: Final = timedelta(days=365)
YEARS: Final = tuple(timedelta(days=round(365.25 * back)) for back in (4, 3, 2, 1, 0))
FEWEST_YEARS: Final = 4
NEAR_END: Final = timedelta(days=20)
"""How long before the newest year the years ended that are looked at, how many must be known, and
by how much their ends may miss. A year between two others that is not known ends no pair.
"""

HELD: Final = 0.02
"""Share of a value that may be lost in a year in which it held."""

MULTIPLES: Final = {"pe": 1.0, "pb": 1.0, "ev_ebitda": 1.0, "fcf_yield_pct": -1.0}
"""Multiples by which stocks are compared; of a negative one the high is cheap."""

FEWEST_STOCKS: Final = 4
"""Stocks, its own among them, that must have a multiple before it is ranked."""

Numbers = Mapping[str, float | str | None]
Ratios = Mapping[str, float | None]


def moat(known: Course) -> dict[str, float]:
    """Return how far yearly margins were spread and how often they held, by feature.

    The five years end with the newest that has four known ones: a quarter's report alone has no
    years behind it. A margin of which fewer are known has neither.
    """
    ratios = {company.ends: company.ratios for company in known.values()}
    newest = max(ratios, default=date.min)
    ends = sorted((end for end in ratios if newest - end < YEAR), reverse=True)
    found = {}
    for name, ratio in MARGINS.items():
        for end in ends:
            values = [_year(ratios, end - back).get(ratio) for back in YEARS]
            known_ones = [value for value in values if value is not None]
            if len(known_ones) >= FEWEST_YEARS:
                held = [
                    later >= earlier - HELD * abs(earlier)
                    for earlier, later in pairwise(values)
                    if earlier is not None and later is not None
                ]
                found[f"moat.{name}_spread"] = max(known_ones) - min(known_ones)
                found[f"moat.{name}_held"] = 100.0 * sum(held) / len(held)
                break
    return found


def _year(ratios: Mapping[date, Ratios], end: date) -> Ratios:
    """Return the ratios of the year that ended nearest to a day, {} where none ended near it."""
    nearest = min(ratios, key=lambda day: abs(day - end))
    return ratios[nearest] if abs(nearest - end) <= NEAR_END else {}


def peers_rank(own: Numbers, peers: Sequence[Numbers]) -> float | None:
    """Return how dear a stock is among others, 0 to 100; None of fewer than three others.

    The numbers are the features of each, by id.
    """
    ranks = []
    for name, dear in MULTIPLES.items():
        values = [numbers.get(f"company.{name}") for numbers in (own, *peers)]
        known = [dear * value for value in values if isinstance(value, float)]
        if values[0] is not None and len(known) >= FEWEST_STOCKS:
            ranks.append(rank_of(known[0], known))
    return sum(ranks) / len(ranks) if ranks else None
