"""What a judge's own chance makes of its side: the expected value of the trade, in R.

    value = p x reward - (1 - p) x 1 - cost

R is what the stop loses. `reward` is the target's distance over the stop's and `cost` is spread and
twice the slippage over the stop's distance: both are the host's own (stakes.reward_r,
stakes.cost_r), no word of a model; commission is in neither. p is the lower of what the judge says
and what came of it when it said as much before (standing.win_share_K, where enough trades are
known). A value of 0 or less vetoes openings of the judge's own side, and of no other. Without the
stakes there is no value and no veto. Pure functions; nothing raises. (docs/agents.md, "The judge's
expected value"; document 003.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..contracts import SCORE_DECIMALS, AgentReport, Feature
from ..features import number

REWARD: Final = "stakes.reward_r"
COST: Final = "stakes.cost_r"
KNOWN: Final = "standing.win_share_"
"""How the ids of realised chances begin, by tenths of what was said: 0 to 9."""

BINS: Final = 10
SIDES: Final[Mapping[str, str]] = {"LONG": "BUY", "SHORT": "SELL"}


@dataclass(frozen=True, slots=True)
class ExpectedValue:
    """The expected value of a judge's side, term by term.

    `said`, `calibrated` and `used` are chances in [0, 1]; `reward_r`, `cost_r` and `value_r` are in
    R. None is not known. `vetoes` is the side BUY or SELL whose openings it vetoes, "" for none.
    """

    side: str
    said: float
    calibrated: float | None = None
    used: float = 0.0
    reward_r: float | None = None
    cost_r: float | None = None
    value_r: float | None = None
    vetoes: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def expected_value(
    told: AgentReport | None, features: Mapping[str, Feature]
) -> ExpectedValue | None:
    """Return what a judge's side is worth; None where it takes none or was not heard."""
    if told is None or told.win_share is None or told.winner not in SIDES:
        return None
    known = number(features, f"{KNOWN}{bin_of(told.win_share)}")
    used = told.win_share if known is None else min(told.win_share, known)
    reward, cost = number(features, REWARD), number(features, COST)
    worth = ExpectedValue(told.winner, told.win_share, known, used, reward, cost)
    if reward is None or cost is None:
        return worth
    value = round(used * reward - (1.0 - used) - cost, SCORE_DECIMALS) + 0.0
    side = SIDES[told.winner] if value <= 0.0 else ""
    return ExpectedValue(told.winner, told.win_share, known, used, reward, cost, value, side)


def bin_of(chance: float) -> int:
    """Return the tenth, 0 to 9, that a chance in [0, 1] falls into."""
    return min(BINS - 1, int(chance * BINS))
