"""What each expert of a swarm was worth in a regime, and the trust that it has earned by it.

A coalition S of experts forecasts by the sign of the trust-weighed mean of its members' stances:

    d(S)  = sign of sum over S of prior_i x stance_i         0 where nobody took a side, or a draw
    v(S)  = mean over ticks of d(S) x (close 16 bars on - close) / ATR       v of nobody is 0
    phi_i = Shapley value of i under v (Shapley 1953)        the phi add up to v of all four
    w_i   = FLOOR + (1 - FLOOR) x max(0, phi_i) / max_j max(0, phi_j)
    trust_i = (600 x prior_i + n x w_i) / (n + 600)

prior_i is the tabled weight (agent_config.tabled_trust), FLOOR the least one (TRUST_FLOOR). n
counts the ticks of the regime on which an expert took a side and 16 bars have closed since. Where
no expert was worth anything every w is FLOOR: nobody has earned more than another. An expert that
never speaks changes no coalition, so its phi is 0 and its w the FLOOR. Before costs: this weighs
words, it promises no profit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from agent_config import EXPERTS, TRUST_FLOOR, tabled_trust
from torra.evaluation.standing.shapley_value import coalitions, shapley

STEPS: Final = 1_000_000
"""Moves are counted in whole millionths of an ATR, so that their sums are exact."""

PRIOR_TICKS: Final = 600
"""Ticks of a regime that the tabled weight counts for (document 003's review, 4.5)."""

DECIMALS: Final = 4
WHOLE_DECIMALS: Final = 12
"""Decimals of a mean of stances below which it is a draw: what rounding leaves of one."""

GROUPS: Final = tuple(coalitions(EXPERTS))
COALITIONS: Final = len(GROUPS)


def forecasts(stances: Sequence[float], regime: str, timeframe: str) -> list[int]:
    """Return which way each of GROUPS forecasts: +1, -1 or 0; `stances` in the order of EXPERTS."""
    tabled = tabled_trust(timeframe, regime)
    pulls = {name: tabled[name] * stance for name, stance in zip(EXPERTS, stances, strict=True)}
    return [_way(sum(pulls[name] for name in group)) for group in GROUPS]


def worths(sums: Sequence[int], count: int) -> dict[str, float]:
    """Return the Shapley value of each expert in ATR a tick; `sums` by GROUPS, in STEPS."""
    values = {
        group: np.array([total / STEPS / count]) for group, total in zip(GROUPS, sums, strict=True)
    }
    return {name: float(shapley(values, EXPERTS, name)[0]) for name in EXPERTS}


def earned(sums: Sequence[int], count: int, regime: str, timeframe: str) -> dict[str, float]:
    """Return the trust that each expert has earned, in [FLOOR, 1]."""
    worth = {name: max(0.0, value) for name, value in worths(sums, count).items()}
    most = max(worth.values())
    tabled = tabled_trust(timeframe, regime)
    return {name: _shrunk(tabled[name], _share(worth[name], most), count) for name in EXPERTS}


def _share(worth: float, most: float) -> float:
    # What rounding leaves of nothing is nothing.
    return TRUST_FLOOR + (1.0 - TRUST_FLOOR) * (worth / most if most > 1e-9 else 0.0)


def _shrunk(prior: float, worth: float, count: int) -> float:
    return round((PRIOR_TICKS * prior + count * worth) / (count + PRIOR_TICKS), DECIMALS)


def _way(pull: float) -> int:
    found = round(pull, WHOLE_DECIMALS)
    return (found > 0.0) - (found < 0.0)
