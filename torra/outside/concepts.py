"""By which XBRL concept a company reports a figure: the chains of concepts.csv.

A figure has an ordered chain of concepts. A filing reports it by one of them, its lead; values of
the others are left out, so that no fallback stands between values of a better concept. The lead has
the lowest rank among the concepts with a value for the newest end of the filing. Totals of the same
thing share the lowest rank: there the largest value of the same period leads, because a part is
never more than the whole. P&G's 10-K of 2014 has `Revenues` 29.400 bn beside `SalesRevenueNet`
83.062 bn, General Mills' of 2024 has 2.038 beside 19.857 (lumibot #1141), and Cato's has its total
in `Revenues` (edgartools #1294): no order is right for all.

Short-term debt has a total that few report, and two kinds of `part`: what of long-term debt falls
due, and what was borrowed for short. Without a total the parts are added, for each day that has the
same kinds as the newest day.

A quarterly report or an amendment is not led by a concept that the newest annual report of the time
had and did not lead by: alone it would be a part that looks like the whole. A concept that is new
to both may lead, for names change with the rules of accounting. Filings are read in the order in
which they were known, so what came later never chooses what counted before.

US filers use the taxonomy us-gaap, and dei for the shares outstanding of the cover; some foreign
ones ifrs-full. Pure values.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from agents.features import rows_of

IFRS: Final = "ifrs-full"


class Concept(NamedTuple):
    """A concept of a taxonomy, with its rank and its kind of part ("" for none) in a chain."""

    taxonomy: str
    name: str
    rank: int = 0
    part: str = ""


CHAINS: Final[Mapping[str, tuple[Concept, ...]]] = {
    figure: tuple(
        Concept(row["taxonomy"], row["concept"], int(row["rank"]), row["part"]) for row in rows
    )
    for figure, rows in groupby(
        rows_of(Path(__file__).with_name("concepts.csv")), itemgetter("figure")
    )
}
"""The concepts of each figure, in the order in which they are asked for."""


def concepts_of(figure: str, *, foreign: bool) -> tuple[Concept, ...]:
    """Return what to ask for; of a foreign filer the concepts by IFRS as well."""
    return tuple(concept for concept in CHAINS[figure] if foreign or concept.taxonomy != IFRS)
