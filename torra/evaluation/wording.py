"""Figures and arms in words, as a trader reads them: +0.10 R, 1,600 trades, the budget desk.

Pure functions. A minus is the true one (U+2212), as on every page. None is "not known" everywhere,
never a NaN and never an empty cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from agent_config import MODES
from torra.evaluation.intervals import wilson

UNKNOWN: Final = "not known"
MINUS: Final = "\N{MINUS SIGN}"

CONTROL: Final = "l1"
BY_LOT: Final = "placebo_memory"
"""The placebo of a memory; its words are its own."""

LOTS: Final[Mapping[str, str]] = {
    BY_LOT: next(iter(MODES)),
    **{f"{BY_LOT}_{name}": name for name, row in MODES.items() if row.memory},
}
"""The placebos of a memory, each with the desk that it is like."""

FORGETFUL: Final = "_no_memory"
"""End of the name of an arm that is told no lessons."""

SWARM: Final = next(name for name, row in MODES.items() if row.weighs)
"""The desk at which the regime decides how much each expert's word counts."""

EVIDENCE: Final = "placebo_evidence"
"""The placebo of the experts' evidence; its words are its own."""

OWN_WORDS: Final[Mapping[str, str]] = {**LOTS, EVIDENCE: SWARM}
"""The placebos that speak for themselves, each with the desk that it is like."""

FLAT: Final = "_flat"
NO_READER: Final = "_no_reader"
PICTURED: Final = "_picture"
EXPERTS_ALONE: Final = "experts"
"""Ends of the names of arms like a swarm, and the name of the one that has no judge."""

REBUTTAL: Final = "_rebuttal"
ESCALATED: Final = "_escalated"
"""Ends of the names of arms that always answer, and whose trader is always of the chief tier."""

ARM_WORDS: Final[Mapping[str, str]] = {
    CONTROL: "bars alone",
    "legacy": "one model by itself",
    "analysts": "analysts without a debate",
    **{name: f"{name} desk" for name in MODES},
    **{
        f"{name}{ending}": f"{name} desk {what}"
        for name, row in MODES.items()
        if row.consults
        for ending, what in (
            (REBUTTAL, "whose bull and bear always answer each other"),
            (ESCALATED, "whose trader is always of the chief tier"),
        )
    },
    "pivotal": "budget desk, asked only where it could matter",
    "outage": "budget desk without an answer",
    "outside": "desk with outside numbers",
    "no_outside": "desk without outside numbers",
    "outside_shifted": "desk with old outside numbers (placebo)",
    **{name: f"{like} desk with lessons by lot (placebo)" for name, like in LOTS.items()},
    f"{SWARM}{FLAT}": f"{SWARM} desk whose experts all count alike",
    f"{SWARM}{NO_READER}": f"{SWARM} desk without a reader of the regime",
    f"{SWARM}{PICTURED}": f"{SWARM} desk that sees the chart",
    EXPERTS_ALONE: "experts without a judge",
    EVIDENCE: f"{SWARM} desk with its experts' evidence of earlier days (placebo)",
    "final": "this desk",
    "recomposed": "desk as changed",
}
"""What a person calls an arm; its name is for programs."""

PLACEBO_WORDS: Final[Mapping[str, str]] = {
    "placebo_shuffled": "with its answers of other days (placebo)",
    "placebo_flipped": "with its answers turned around (placebo)",
    "placebo_random": "with answers by lot (placebo)",
}
"""How a placebo uses the answers of the arm before it."""

MEANINGLESS: Final = frozenset((*PLACEBO_WORDS, *OWN_WORDS))
"""Arms whose answers, whose lessons, or whose evidence mean nothing."""

SPEAKERS: Final = (*reversed(MODES), "analysts", "legacy")
"""Whose answers the placebos use: the first of these that runs."""

BARE: Final = ("this",)
"""How the words begin that want no article."""


class Bounded(Protocol):
    """What has an interval, or None at both ends: an Interval, a Mean, an Estimate."""

    @property
    def low(self) -> float | None:
        """The lower end."""

    @property
    def high(self) -> float | None:
        """The upper end."""


def count(number: int, noun: str) -> str:
    """Return a count with its noun, in the plural where it must be: 1 trade, 1,600 trades."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def signed(value: float | None, digits: int = 2) -> str:
    """Return a number with its sign; 0 has none."""
    if value is None:
        return UNKNOWN
    told = f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"
    return told.replace("-", MINUS)


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in [0, 1] in per cent."""
    return UNKNOWN if share is None else f"{100 * share:.{digits}f} %"


def span(low: float | None, high: float | None, digits: int = 2) -> str:
    """Return an interval of signed numbers."""
    if low is None or high is None:
        return UNKNOWN
    return f"{signed(low, digits)} to {signed(high, digits)}"


def percent_span(low: float | None, high: float | None) -> str:
    """Return an interval of shares in [0, 1] in per cent."""
    if low is None or high is None:
        return UNKNOWN
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def listed(names: Sequence[str]) -> str:
    """Return names in a row: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def listed_within(names: Sequence[str], most: int) -> str:
    """Return names in a row of at most `most` letters, where need be as: a, b and 3 more."""
    for shown in range(len(names), 0, -1):
        more = len(names) - shown
        told = listed([*names[:shown], *([f"{more} more"] if more else [])])
        if len(told) <= most:
            return told
    return f"{len(names)} in all"


def rounded(value: float | None, digits: int) -> float | None:
    """Return a number as a cell shows it; -0.0 is 0.0."""
    return None if value is None else round(value, digits) + 0.0


def percent_cell(share: float | None, digits: int = 0) -> str | None:
    """Return a share in [0, 1] as a cell shows it; None where it is not known."""
    return None if share is None else percent(share, digits)


def interval_cell(one: Bounded | None, digits: int = 2) -> str | None:
    """Return an interval as a cell shows it; None where there is none."""
    return None if one is None or one.low is None else span(one.low, one.high, digits)


def share_cell(hits: int, size: int) -> str | None:
    """Return a share with its interval (Wilson 1927) as a cell shows it; None of nothing."""
    found = wilson(hits, size)
    if found is None:
        return None
    return f"{percent(hits / size)} ({percent_span(found.low, found.high)})"


def arm_called(name: str, among: Iterable[str]) -> str:
    """Return what a person calls an arm, of those that it is compared with."""
    if name.endswith(FORGETFUL):
        like = ARM_WORDS.get(name.removesuffix(FORGETFUL), name.removesuffix(FORGETFUL))
        return f"{like}{',' if ',' in like else ''} without memory"
    if name not in PLACEBO_WORDS:
        return ARM_WORDS.get(name, name)
    known = set(among)
    source = next((one for one in SPEAKERS if one in known), None)
    return f"{ARM_WORDS[source] if source else 'desk'} {PLACEBO_WORDS[name]}"


def the_arm(name: str, among: Iterable[str]) -> str:
    """Return an arm within a sentence: the bars alone, the budget desk."""
    called = arm_called(name, among)
    bare = called == name or called.startswith((*BARE, "one", "analysts", "experts"))
    return called if bare else f"the {called}"


def upper_first(text: str) -> str:
    """Return a text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]
