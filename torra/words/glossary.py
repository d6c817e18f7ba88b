"""The words of the desk: each with a line for a trader and, where it helps, the exact sentence.

glossary.csv is the one place where a word is explained. The page Help lists it, labels of other
pages open their entry from there, and the features of the evidence come from their own table
(agents.features), which is not written down a second time. A line has the subject first and one
idea; `exact` is what the code does, and stands behind "How this is computed" wherever it is
shown. Pure values and functions; a word without an entry raises KeyError, so that a page that
promises an explanation has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from agent_config import LEANING_SHARE, NONE_COST, OPPOSITION_COST, REGIME_BUDGET
from agents.contracts import ADJUSTMENT_BOUND, BLEND_WEIGHT
from agents.features import FEATURES, label_of, meaning_of, rows_of

NOT_A_SLUG: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A word with its explanation; `exact` and `anchor` are empty where they are not needed."""

    term: str
    line: str
    exact: str = ""
    anchor: str = ""

    @property
    def slug(self) -> str:
        """The word as the end of an address."""
        return self.anchor or NOT_A_SLUG.sub("-", self.term.lower()).strip("-")


_NUMBERS: Final[Mapping[str, object]] = {
    "opposition_cost": OPPOSITION_COST,
    "leaning_share": LEANING_SHARE,
    "none_cost": NONE_COST,
    "adjustment_bound": ADJUSTMENT_BOUND,
    "blend_weight": BLEND_WEIGHT,
    "l1_weight": 1 - BLEND_WEIGHT,
    "budgets": ", ".join(
        f"{name.replace('_', ' ')} {share:.0%}" for name, share in REGIME_BUDGET.items()
    ),
}
"""What stands in braces in glossary.csv."""


def _sections() -> dict[str, tuple[Entry, ...]]:
    rows = groupby(rows_of(Path(__file__).with_name("glossary.csv")), itemgetter("section"))
    return {
        section: tuple(
            Entry(row["term"], row["line"], row["exact"].format_map(_NUMBERS), row["anchor"])
            for row in of_section
        )
        for section, of_section in rows
    }


SECTIONS: Final = _sections()
"""Every word but those of the evidence, in the order of the page Help."""


def entry(term: str) -> Entry:
    """Return the entry of a word; raises KeyError for a word without one."""
    return _by_term()[term.lower()]


def known(term: str) -> bool:
    """Return whether a word has an entry."""
    return term.lower() in _by_term()


def evidence() -> Iterator[Entry]:
    """Yield an entry for each feature that has a high and a low value, by its name for people."""
    for feature in FEATURES:
        meaning = meaning_of(feature)
        if meaning:
            label = label_of(feature)
            yield Entry(label[:1].upper() + label[1:], f"{meaning[:1].upper()}{meaning[1:]}.",
                        anchor=f"feature-{NOT_A_SLUG.sub('-', feature.lower())}")  # fmt: skip


@cache
def _by_term() -> dict[str, Entry]:
    return {one.term.lower(): one for section in SECTIONS.values() for one in section}
