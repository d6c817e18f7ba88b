"""Corrections for many looks at one sample: Holm, Benjamini-Hochberg, and the claim of an edge.

An arm shows an edge if all of these hold, and no other place in Torra says that an arm has one:

    at least LEAST_TRADES trades, LEAST_EACH_WAY of them won and as many lost
    the 95 % interval of net expectancy lies above 0
    its p (Student's t over blocks, two-sided), after Holm over every arm and every trial logged,
    is at most 5 %
    it did better than what it is compared with: an arm of agents with its own placebos and random
    entries, the control with random entries (torra.evaluation.arm_tables)

The first rule keeps out an arm that wins a little often and has not yet met its loss. The second
and the third guard each other, one for skewed results, one for few. Trials that were logged but are
not in the table count as if they had shown nothing, which makes every p larger. Of arms without an
edge that beat their placebos by luck, 2.5 % would be claimed falsely (5 % two-sided);
docs/scorecard.md has what was measured on results of many shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from torra.evaluation.exhibits import Columns, Exhibit, contents, interval, number
from torra.evaluation.intervals import LEVEL
from torra.evaluation.power import PowerSentence, trades_finding
from torra.evaluation.trade_figures import ArmFigures, own_sd
from torra.evaluation.wording import count

LEAST_TRADES: Final = 100
PLACEBOS: Final = "its placebos"
"""The name of what an arm is compared with, if none is given."""

LEAST_EACH_WAY: Final = 10
"""Least wins, and least losses, for an interval and a p of a mean of trades that can be trusted."""

NOBODY: Final[Mapping[str, str]] = MappingProxyType({})

P = float | None
"""A p-value; None if there was nothing to test, which then does not count as a test."""


def holm(values: Sequence[P], family: int = 0) -> tuple[P, ...]:
    """Return p-values after Holm's step-down (1979), which bounds the chance of any false claim.

    `family` is the number of all tests, those that are not given here included.
    """
    order = _order(values)
    tests = max(family, len(order))
    adjusted: dict[int, float] = {}
    highest = 0.0
    for rank, (value, place) in enumerate(order):
        # an adjusted p is never below that of a stronger result
        highest = max(highest, min(1.0, (tests - rank) * value))
        adjusted[place] = highest
    return tuple(adjusted.get(place) for place in range(len(values)))


def benjamini_hochberg(values: Sequence[P]) -> tuple[P, ...]:
    """Return p-values after Benjamini and Hochberg (1995): the share of false claims is bounded."""
    order = _order(values)
    adjusted: dict[int, float] = {}
    lowest = 1.0
    for rank, (value, place) in reversed(list(enumerate(order, start=1))):
        # an adjusted p is never above that of a weaker result
        lowest = min(lowest, value * len(order) / rank)
        adjusted[place] = lowest
    return tuple(adjusted.get(place) for place in range(len(values)))


def _order(values: Sequence[P]) -> list[tuple[float, int]]:
    return sorted((value, place) for place, value in enumerate(values) if value is not None)


# --- the claim ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """Whether an arm shows an edge, and if not, why not in a few words.

    `adjusted` is its p after all looks; `against` names what it was held against.
    """

    figures: ArmFigures
    edge: bool
    adjusted: float | None
    why: str
    against: str = PLACEBOS

    @property
    def arm(self) -> str:
        """The name of the arm."""
        return self.figures.arm


def claims(
    figures: Sequence[ArmFigures],
    beaten: Mapping[str, bool | None],
    trials: int = 0,
    against: Mapping[str, str] = NOBODY,
) -> tuple[Claim, ...]:
    """Return for each arm whether it shows an edge.

    `beaten` says by arm whether it beat what it is compared with; an arm that is missing or None
    has no placebo of its own, and no edge is claimed for it. `against` names by arm what was
    beaten, or what was not; PLACEBOS by default. `trials` counts all that was tried on the symbol
    so far, whatever the period.
    """
    # an arm without an interval has no p, and is a look all the same
    adjusted = holm([one.net.p for one in figures], max(trials, len(figures)))
    return tuple(
        _claim(one, p, beaten.get(one.arm), against.get(one.arm, PLACEBOS))
        for one, p in zip(figures, adjusted, strict=True)
    )


def _claim(one: ArmFigures, adjusted: float | None, beaten: bool | None, against: str) -> Claim:
    why = _against(one, adjusted, beaten, against)
    return Claim(one, not why, adjusted, why or "every rule holds", against)


def _against(one: ArmFigures, adjusted: float | None, beaten: bool | None, against: str) -> str:
    """Return the first rule that an arm does not meet; empty if it meets them all."""
    each_way = min(one.hits, one.trades - one.hits)
    low = one.net.low
    # in this order: the table shows the first rule that fails
    rules = (
        (one.trades >= LEAST_TRADES, f"{count(one.trades, 'trade')}, fewer than {LEAST_TRADES}"),
        (each_way >= LEAST_EACH_WAY, f"fewer than {LEAST_EACH_WAY} wins or losses"),
        (low is not None and adjusted is not None, "no interval: too few, or too far apart"),
        (low is not None and low > 0, "the interval does not lie above 0"),
        (
            adjusted is not None and adjusted <= 1 - LEVEL,
            "not beyond chance after all arms and trials",
        ),
        (beaten is not None, "no placebo of its own"),
        (bool(beaten), f"not better than {against}"),
    )
    return next((why for met, why in rules if not met), "")


COLUMNS: Final[Columns] = {
    "arm": "arm",
    "trades": "figures.trades",
    "R a trade, net": number("figures.net.mean", 3),
    "95 % interval": interval("figures.net", 3),
    "p": number("figures.net.p", 4),
    "p of all looks": number("adjusted", 4),
    "edge": "edge",
    "why": "why",
}


def claims_exhibit(
    figures: Sequence[ArmFigures],
    beaten: Mapping[str, bool | None],
    trials: int = 0,
    against: Mapping[str, str] = NOBODY,
) -> Exhibit:
    """Return the table of claims: the only one that says that an arm shows an edge."""
    found = claims(figures, beaten, trials, against)
    return Exhibit(
        name="claims",
        title="Which arms show an edge",
        **contents(COLUMNS, found, {"edge": "edge", "adjusted": "adjusted"}),
        **_show(figures, found, max(trials, len(figures)))._asdict(),
    )


def _show(figures: Sequence[ArmFigures], found: Sequence[Claim], tests: int) -> PowerSentence:
    winners = [claim for claim in found if claim.edge]
    looks = f"Allowed for: {count(tests, 'look')} at this symbol so far."
    if winners:
        told = " ".join(
            f"{claim.arm} shows an edge on these bars, after costs and beyond {claim.against}."
            for claim in winners
        )
        last = "What was found on past bars need not last: watch it run before it counts."
        return PowerSentence(f"{told} {looks} {last}", enough=True)
    most = max(figures, key=lambda one: one.trades, default=None)
    have, sd = (most.trades, own_sd(most)) if most else (0, None)
    return trades_finding(f"No arm shows an edge. {looks}", have, sd)
