"""The board: who of the experts stands where, what conflicts, and what would settle it.

    stance     sum(f a) / sum(f) over the vectors that an expert scored, in [-0.3, +0.3]
    lean       the sign of its stance; an expert that abstained has none
    agreed     facts that two or more experts of one lean cite
    conflict   of two experts of opposite lean, each at least APART_FROM from 0:
               k_i k_j |s_i - s_j|, k their trust; the MOST largest are kept
    lean of    sum(w k s) over the experts, w their weight in this regime (agents.debate.directive);
    the board  its side is the dominant one

It is made of ids and numbers alone, so that no prose of one agent reaches another by it. It enters
the judge's prompt as features and the page as a picture. Sums are exact (fsum) and rounded to 1e-8,
so the order and the names of the experts change nothing, and a mirrored market has the mirrored
board. Pure functions; nothing raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import fsum
from typing import Any, Final, NamedTuple

from agent_config import FOCUS_WEIGHT

from ..contracts import SCORE_DECIMALS, DebateContext, Evidence, Feature
from ..evidence import trust
from .directive import Directive
from .panel import APART_FROM
from .synthesis import CountedReport

MOST: Final = 3
"""Conflicts that the board keeps."""

CLAIMED: Final = 2
"""Facts of each side of a conflict."""

LEAN_DECIMALS: Final = 4
"""Decimals with which the judge is shown the lean."""

NAMES: Final[Mapping[int, str]] = {1: "LONG", -1: "SHORT", 0: "NONE"}


class Settle(NamedTuple):
    """What would settle a conflict: the feature to watch, and what to watch for."""

    feature: str
    says: str


SETTLES: Final[Mapping[frozenset[str], Settle]] = {
    frozenset(("liquidity", "microstructure")): Settle(
        "flow.up_share", "which way the ticks of the next bars go"
    ),
    frozenset(("liquidity", "macro")): Settle("technical.bos", "a close beyond the last swing"),
    frozenset(("liquidity", "geometry")): Settle(
        "geometry.level.1", "a close beyond the nearest level"
    ),
    frozenset(("microstructure", "macro")): Settle(
        "market.session", "whether the move holds in the next session"
    ),
    frozenset(("microstructure", "geometry")): Settle(
        "spread.last_atr", "whether price holds once the spread is back to normal"
    ),
    frozenset(("macro", "geometry")): Settle(
        "geometry.pattern_done", "whether a pattern is completed or fails"
    ),
}
ANY: Final = Settle("technical.bos", "a close beyond the last swing")
"""What would settle a conflict of experts that the table does not pair."""


@dataclass(frozen=True, slots=True)
class BoardStance:
    """Where one expert stands: its stance in [-0.3, +0.3], its trust, its weight here.

    `anomaly` is what it calls odd, "" for nothing.
    """

    agent: str
    stance: float
    trust: float
    weight: float
    cites: tuple[Evidence, ...] = ()
    anomaly: str = ""

    @property
    def side(self) -> int:
        """+1 for higher prices, -1 for lower ones, 0 for neither."""
        return (self.stance > 0.0) - (self.stance < 0.0)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two experts that lean opposite ways, the one for higher prices first."""

    above: str
    below: str
    strength: float
    claims: Mapping[str, tuple[Evidence, ...]]
    settle: Settle


@dataclass(frozen=True, slots=True)
class Board:
    """What the experts say, side by side.

    `lean` is the weighed sum of the stances, `agreed` the ids of facts by side that two or more of
    it cite, `surest` the expert whose leaning word weighs most, "" for none.
    """

    stands: tuple[BoardStance, ...] = ()
    abstained: tuple[str, ...] = ()
    lean: float = 0.0
    agreed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    surest: str = ""
    note: str = ""

    @property
    def dominant(self) -> str:
        """LONG, SHORT or NONE."""
        return NAMES[(self.lean > 0.0) - (self.lean < 0.0)]

    @property
    def key_uncertainty(self) -> str:
        """What would settle the strongest conflict; "" where no two experts conflict."""
        return self.conflicts[0].settle.says if self.conflicts else ""

    def leaning(self, side: int) -> tuple[str, ...]:
        """Return the experts of a side."""
        return tuple(one.agent for one in self.stands if one.side == side)

    def as_json(self) -> dict[str, Any]:
        """Return the board as JSON values."""
        return {
            "stands": [
                {
                    "agent": one.agent,
                    "stance": one.stance,
                    "side": NAMES[one.side],
                    "trust": one.trust,
                    "weight": one.weight,
                }
                for one in self.stands
            ],
            "abstained": list(self.abstained),
            "lean": self.lean,
            "dominant": self.dominant,
            "surest": self.surest,
            "note": self.note,
            "key_uncertainty": self.key_uncertainty,
            "agreed": {NAMES[side]: list(ids) for side, ids in self.agreed.items() if ids},
            "conflicts": [
                {
                    "long": one.above,
                    "short": one.below,
                    "strength": one.strength,
                    "claims": {
                        name: [cited._asdict() for cited in cites]
                        for name, cites in one.claims.items()
                    },
                    "settle": one.settle._asdict(),
                }
                for one in self.conflicts
            ],
        }


def board(answers: Iterable[CountedReport], told: Directive) -> Board:
    """Return the board of the experts that were heard, under the directive of the regime."""
    known = sorted(answers, key=lambda answer: answer.role.id)
    stands = tuple(
        _stand(one, told.trusted.get(one.role.id, 1.0)) for one in known if not one.report.abstained
    )
    return Board(
        stands=stands,
        abstained=tuple(one.role.id for one in known if one.report.abstained),
        lean=round(fsum(one.weight * one.trust * one.stance for one in stands), SCORE_DECIMALS)
        + 0.0,
        agreed={side: _agreed(stands, side) for side in (1, -1)},
        conflicts=_conflicts(stands),
        surest=_surest(stands),
        note=told.note,
    )


def with_board(context: DebateContext, found: Board) -> DebateContext:
    """Return the context with the board among its evidence."""
    features = {**context.features, **as_features(found, context.as_of)}
    return replace(context, features=features)


def as_features(found: Board, as_of: str) -> dict[str, Feature]:
    """Return the board as evidence for the judge."""
    values: dict[str, float | str] = {
        # as it is shown: cited from the prompt, a small one would else be off by more than 1 %
        "board.lean": round(found.lean, LEAN_DECIMALS) + 0.0,
        "board.dominant": found.dominant,
        "board.surest": found.surest or "none",
        "board.long": float(len(found.leaning(1))),
        "board.short": float(len(found.leaning(-1))),
        "board.neutral": float(len(found.leaning(0))),
        "board.agreed_long": float(len(found.agreed.get(1, ()))),
        "board.agreed_short": float(len(found.agreed.get(-1, ()))),
        "board.conflicts": float(len(found.conflicts)),
        "board.regime_note": found.note or "unknown",
    }
    if odd := [f"{one.agent}:{one.anomaly}" for one in found.stands if one.anomaly]:
        values["board.anomalies"] = " ".join(odd)
    for place, one in enumerate(found.conflicts, start=1):
        values[f"board.conflict_{place}"] = f"{one.above}:{one.below}"
        values[f"board.settle_{place}"] = one.settle.feature
    return {
        name: Feature(
            name, value, "", as_of,
            decimals=None if isinstance(value, str) else LEAN_DECIMALS * (name == "board.lean"),
        )
        for name, value in values.items()
    }  # fmt: skip


def _stand(answer: CountedReport, weight: float) -> BoardStance:
    role, report = answer
    scored = [
        (FOCUS_WEIGHT[role.focus[vector]], value)
        for vector, value in report.adjustments.items()
        if value is not None and vector in role.focus
    ]
    whole = fsum(focus for focus, _ in scored)
    stance = fsum(focus * value for focus, value in scored) / whole if scored else 0.0
    cites = tuple(Evidence(point.id, point.value) for point in report.points_for)
    return BoardStance(
        role.id, round(stance, SCORE_DECIMALS) + 0.0, round(trust(report), SCORE_DECIMALS), weight,
        cites, report.anomaly,
    )  # fmt: skip


def _agreed(stands: Sequence[BoardStance], side: int) -> tuple[str, ...]:
    cited = Counter(
        name for one in stands if one.side == side for name in {cite.id for cite in one.cites}
    )
    return tuple(sorted(name for name, times in cited.items() if times > 1))


def _conflicts(stands: Sequence[BoardStance]) -> tuple[Conflict, ...]:
    apart = [one for one in stands if abs(one.stance) >= APART_FROM]
    found = [
        _conflict(*sorted(pair, key=lambda one: -one.stance))
        for pair in combinations(apart, 2)
        if pair[0].side != pair[1].side
    ]
    return tuple(sorted(found, key=lambda one: (-one.strength, *sorted(one.claims)))[:MOST])


def _conflict(above: BoardStance, below: BoardStance) -> Conflict:
    return Conflict(
        above.agent,
        below.agent,
        round(above.trust * below.trust * (above.stance - below.stance), SCORE_DECIMALS),
        {one.agent: one.cites[:CLAIMED] for one in (above, below)},
        SETTLES.get(frozenset((above.agent, below.agent)), ANY),
    )


def _surest(stands: Sequence[BoardStance]) -> str:
    leaning = [one for one in stands if one.side]
    # By what its word weighs, then how far it leans, then by name; unrounded, 0.4 x 0.75 would
    # weigh more than 0.3 x 1.
    found = sorted(
        leaning,
        key=lambda one: (
            -round(one.weight * one.trust, SCORE_DECIMALS),
            -abs(one.stance),
            one.agent,
        ),
    )
    return found[0].agent if found else ""
