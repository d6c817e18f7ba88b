"""A swarm's arithmetic around its debate: the regime, the officer's rows, the board, the judge.

    weight of an expert   HIERARCHY by the length of the bars x TRUST by the regime, not below
                          TRUST_FLOOR; 1 for all where trust is flat or the regime is not known
    first                 the reader's choice has 1, the others FIRST_OTHERS of what they had
    budget                REGIME_BUDGET of the code's regime, of the reader's too where it names
                          another one, and the reader's own share: the lowest of them

    stance     sum(f a) / sum(f) over the vectors that an expert scored, in [-0.3, +0.3]
    lean       the sign of its stance; an expert that abstained has none
    agreed     facts that two or more experts of one lean cite
    conflict   of two experts of opposite lean, each at least APART_FROM from 0:
               k_i k_j |s_i - s_j|, k their trust; the CONFLICTS largest are kept
    lean of    sum(w k s) over the experts, w their weight in this regime; its side is the
    the board  dominant one

    value      p x reward - (1 - p) x 1 - cost, in R, which is what the stop loses

The code's regime counts: a reader can lower the budget and have one expert go first, nothing else.
The board is made of ids and numbers alone, so no prose of one agent reaches another by it. `reward`
and `cost` are the host's (stakes.reward_r, stakes.cost_r), p is the lower of what the judge says
and what came of it when it said as much before (standing.win_share_K). A value of 0 or less vetoes
openings of the judge's own side; without the stakes there is no value and no veto.

Sums are exact (fsum) and rounded to 1e-8, so neither order nor names change one. Nothing asks,
waits or fails. (docs/agents.md, "The swarm"; document 003.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from math import fsum
from typing import Any, Final, NamedTuple

from agent_config import (
    FIRST_OTHERS,
    FOCUS_WEIGHT,
    REGIME_BUDGET,
    TRUST_FLOOR,
    DebateSettings,
    tabled_trust,
)

from .. import risk_gate, risk_officer
from ..contracts import (
    OPINIONS,
    SCORE_DECIMALS,
    AgentReport,
    DebateContext,
    Evidence,
    Feature,
    GateRuling,
    OfficerReason,
)
from ..evidence import trust
from ..features import number
from .debate import DebateState
from .scoring import APART_FROM, CountedReport

REGIME: Final = "market.regime"

SPOKEN_LEAST: Final = 2
"""Fewer experts with an opinion make a thin swarm."""

CONFLICTS: Final = 3
"""Conflicts that the board keeps."""

CLAIMED: Final = 2
"""Facts of each side of a conflict."""

LEAN_DECIMALS: Final = 4
"""Decimals with which the judge is shown the lean."""

NAMES: Final[Mapping[int, str]] = {1: "LONG", -1: "SHORT", 0: "NONE"}
ORDERS: Final[Mapping[str, str]] = {"LONG": "BUY", "SHORT": "SELL"}

BINS: Final = 10
"""Tenths of chances by which realised ones are known (standing.win_share_0 to 9)."""


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
class Directive:
    """Whose word counts how much, and the share of an opening's size that the regime leaves.

    `regime` is the code's word, `reader` the reader's, "" where it gave none; `trusted` holds a
    weight in (0, 1] by expert, of none where all count alike. `budget` lies in [0, 1].
    """

    regime: str = ""
    reader: str = ""
    first: str = ""
    budget: float = 1.0
    trusted: Mapping[str, float] = field(default_factory=dict)

    @property
    def disputed(self) -> bool:
        """Whether the reader names another regime than the code."""
        return bool(self.reader) and self.reader != self.regime


@dataclass(frozen=True, slots=True)
class BoardStance:
    """One expert on the board: its stance in [-0.3, +0.3], its trust, its weight here.

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
        return _sign(self.stance)


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

    `lean` is the weighed sum of the stances, `agreed` the ids of facts by side that two or more
    experts of it cite, `surest` the expert whose leaning word weighs most, "" for none.
    """

    stances: tuple[BoardStance, ...] = ()
    abstained: tuple[str, ...] = ()
    lean: float = 0.0
    agreed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    surest: str = ""
    note: str = ""

    @property
    def dominant(self) -> str:
        """LONG, SHORT or NONE."""
        return NAMES[_sign(self.lean)]

    @property
    def key_uncertainty(self) -> str:
        """What would settle the strongest conflict; "" where no two experts conflict."""
        return self.conflicts[0].settle.says if self.conflicts else ""

    def as_json(self) -> dict[str, Any]:
        """Return the board as JSON values."""
        return {
            "stands": [
                {
                    "agent": row.agent,
                    "stance": row.stance,
                    "side": NAMES[row.side],
                    "trust": row.trust,
                    "weight": row.weight,
                }
                for row in self.stances
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
                    "long": row.above,
                    "short": row.below,
                    "strength": row.strength,
                    "claims": {
                        name: [cited._asdict() for cited in cites]
                        for name, cites in row.claims.items()
                    },
                    "settle": row.settle._asdict(),
                }
                for row in self.conflicts
            ],
        }


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


EMPTY_BOARD: Final = Board()


@dataclass(frozen=True, slots=True)
class Swarm:
    """What the regime, the board and the judge's chance amount to.

    `storm` is the factor, 0 to 1, that volatility, panic and liquidations left of the multiplier,
    `most` the rules' multiplier with the regime's budget among the factors of the storm. `thin`:
    fewer than SPOKEN_LEAST experts had an opinion, which bounds the conviction. `worth` is None
    where no judge took a side.
    """

    directive: Directive
    storm: float = 1.0
    most: float = 1.0
    board: Board = EMPTY_BOARD
    worth: ExpectedValue | None = None
    thin: bool = False

    @property
    def budget(self) -> float:
        """The share, 0 to 1, that the regime leaves of a size beside the rules' multiplier."""
        if self.directive.budget >= self.storm:
            return 1.0
        return round(self.directive.budget / self.storm, SCORE_DECIMALS)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        regime = self.directive
        return {
            "regime": {
                "code": regime.regime,
                "reader": regime.reader,
                "budget": regime.budget,
                "first": regime.first,
                "disputed": regime.disputed,
            },
            "trust": dict(regime.trusted),
            "budget": self.budget,
            "storm": self.storm,
            "board": self.board.as_json(),
            "judgement": None if self.worth is None else asdict(self.worth),
            "thin": self.thin,
        }


# --- the regime -----------------------------------------------------------------------------------


def regime_directive(
    context: DebateContext, config: DebateSettings, reader: AgentReport | None
) -> Directive:
    """Return whose word counts how much and what the regime leaves of a size.

    `reader` is the report of a reader of the regime, None without any. Words count alike where the
    mode of the desk does not weigh them.
    """
    trust = config.agents.trust if config.agents.row().weighs else "flat"
    return directive(context.features, context.timeframe, reader, trust)


def directive(
    features: Mapping[str, Feature], timeframe: str, reader: AgentReport | None, trust: str
) -> Directive:
    """Return the directive of one tick; `trust` is the setting (agent_config.AgentSettings)."""
    known = features.get(REGIME)
    regime = str(known.value) if known is not None and known.value is not None else ""
    shares, named, first = [REGIME_BUDGET.get(regime, 1.0)], "", ""
    if reader is not None and not reader.abstained:
        named, first = reader.regime, reader.first
        own = 1.0 if reader.budget is None else reader.budget
        shares += [REGIME_BUDGET.get(named, 1.0), own]
    weights = {} if trust == "flat" else put_first(tabled_trust(timeframe, regime), first)
    return Directive(regime, named, first, round(min(shares), SCORE_DECIMALS), weights)


def put_first(weights: Mapping[str, float], first: str) -> dict[str, float]:
    """Return weights with one expert going first, as they are where it has none."""
    if first not in weights:
        return dict(weights)
    return {
        name: 1.0
        if name == first
        else round(max(TRUST_FLOOR, weight * FIRST_OTHERS), SCORE_DECIMALS)
        for name, weight in weights.items()
    }


# --- the rules ------------------------------------------------------------------------------------


def risk_rules(
    config: DebateSettings,
    context: DebateContext,
    analyst_range: float,
    regime: Directive,
    debate: DebateState | None = None,
) -> tuple[risk_gate.Rules, Swarm]:
    """Return the gate's rules with the risk officer's rows, and what the swarm amounts to.

    The officer stays while a cheaper desk is asked, and where nobody is.
    """
    rows = risk_officer.rows(context.features, config.gate)
    rules = risk_gate.rules(context.features, config.gate, analyst_range, rows)
    # The budget reads the same storm, but it lessens a size alone and no score.
    budgeted = rows._replace(storm=min(rows.storm, regime.budget))
    most = risk_gate.rules(context.features, config.gate, analyst_range, budgeted)
    swarm = Swarm(regime, rules.storm, most.ruling.multiplier)
    if debate is None or not config.agents.row().weighs:
        return rules, swarm
    thin = is_thin(debate)
    debate.flags += ["thin_swarm"] if thin else []
    debate.flags += ["regime_disputed"] if regime.disputed else []
    worth = expected_value(debate.report_of("judge"), context.features)
    return rules, replace(
        swarm, board=board(debate.reported("analyst"), regime), worth=worth, thin=thin
    )


def is_thin(debate: DebateState) -> bool:
    """Tell whether too few experts had an opinion; where nobody had one there is no swarm."""
    return len(debate.opinions("analyst")) < SPOKEN_LEAST and bool(debate.opinions(*OPINIONS))


def apply_judge_veto(
    rule: GateRuling, judge: AgentReport, worth: ExpectedValue | None, judge_hold: str
) -> GateRuling:
    """Return the ruling of the rules with what a judge vetoes: its own side, or all on a hold.

    `judge_hold` is the setting of that name.
    """
    if judge_hold == "veto" and not judge.abstained and judge.winner == "NONE":
        return replace(rule, veto=True, reasons=(*rule.reasons, str(OfficerReason.JUDGE_HOLD)))
    if worth is None or not worth.vetoes:
        return rule
    sides = tuple(sorted({*rule.veto_sides, worth.vetoes}))
    reasons = (*rule.reasons, str(OfficerReason.NEGATIVE_EV))
    return replace(rule, veto_sides=sides, reasons=reasons)


def expected_value(
    judge: AgentReport | None, features: Mapping[str, Feature]
) -> ExpectedValue | None:
    """Return the expected value of a judge's side; None where it takes none or gave no report."""
    if judge is None or judge.win_share is None or judge.winner not in ORDERS:
        return None
    known = number(features, f"standing.win_share_{bin_of(judge.win_share)}")
    used = judge.win_share if known is None else min(judge.win_share, known)
    reward, cost = number(features, "stakes.reward_r"), number(features, "stakes.cost_r")
    worth = ExpectedValue(judge.winner, judge.win_share, known, used, reward, cost)
    if reward is None or cost is None:
        return worth
    value = round(used * reward - (1.0 - used) - cost, SCORE_DECIMALS) + 0.0
    return replace(worth, value_r=value, vetoes=ORDERS[judge.winner] if value <= 0.0 else "")


def bin_of(chance: float) -> int:
    """Return the tenth, 0 to 9, that a chance in [0, 1] falls into."""
    return min(BINS - 1, int(chance * BINS))


# --- the board ------------------------------------------------------------------------------------


def board(answers: Iterable[CountedReport], regime: Directive) -> Board:
    """Return the board of the experts that gave a report, under the directive of the regime."""
    reported = sorted(answers, key=lambda answer: answer.role.id)
    stances = tuple(
        _stance(answer, regime.trusted.get(answer.role.id, 1.0))
        for answer in reported
        if not answer.report.abstained
    )
    disputed = f"{regime.regime}_disputed_{regime.reader}"
    return Board(
        stances,
        tuple(answer.role.id for answer in reported if answer.report.abstained),
        round(fsum(s.weight * s.trust * s.stance for s in stances), SCORE_DECIMALS) + 0.0,
        {side: _agreed(stances, side) for side in (1, -1)},
        _conflicts(stances),
        # By what its word weighs, then how far it leans, then by name; unrounded, 0.4 x 0.75 would
        # weigh more than 0.3 x 1.
        min(
            (
                (-round(s.weight * s.trust, SCORE_DECIMALS), -abs(s.stance), s.agent)
                for s in stances
                if s.side
            ),
            default=("",),
        )[-1],
        disputed if regime.disputed else regime.regime,
    )


def with_board(context: DebateContext, made: Board) -> DebateContext:
    """Return the context with the board among its evidence."""
    features = {**context.features, **as_features(made, context.as_of)}
    return replace(context, features=features)


def as_features(made: Board, as_of: str) -> dict[str, Feature]:
    """Return the board as evidence for the judge."""
    sides = Counter(row.side for row in made.stances)
    values: dict[str, float | str] = {
        # as it is shown: cited from the prompt, a small one would else be off by more than 1 %
        "lean": round(made.lean, LEAN_DECIMALS) + 0.0,
        "dominant": made.dominant,
        "surest": made.surest or "none",
        "long": float(sides[1]),
        "short": float(sides[-1]),
        "neutral": float(sides[0]),
        "agreed_long": float(len(made.agreed.get(1, ()))),
        "agreed_short": float(len(made.agreed.get(-1, ()))),
        "conflicts": float(len(made.conflicts)),
        "regime_note": made.note or "unknown",
    }
    if odd := [f"{row.agent}:{row.anomaly}" for row in made.stances if row.anomaly]:
        values["anomalies"] = " ".join(odd)
    for place, row in enumerate(made.conflicts, start=1):
        values[f"conflict_{place}"] = f"{row.above}:{row.below}"
        values[f"settle_{place}"] = row.settle.feature
    features = {}
    for name, value in values.items():
        decimals = None if isinstance(value, str) else LEAN_DECIMALS * (name == "lean")
        features[f"board.{name}"] = Feature(f"board.{name}", value, "", as_of, decimals=decimals)
    return features


def _stance(answer: CountedReport, weight: float) -> BoardStance:
    role, report = answer
    scored = [
        (FOCUS_WEIGHT[role.focus[vector]], value)
        for vector, value in report.adjustments.items()
        if value is not None and vector in role.focus
    ]
    whole = fsum(focus for focus, _ in scored)
    stance = fsum(focus * value for focus, value in scored) / whole if scored else 0.0
    stance, lent = round(stance, SCORE_DECIMALS) + 0.0, round(trust(report), SCORE_DECIMALS)
    cites = tuple(Evidence(point.id, point.value) for point in report.points_for)
    return BoardStance(role.id, stance, lent, weight, cites, report.anomaly)


def _agreed(stances: Sequence[BoardStance], side: int) -> tuple[str, ...]:
    cited = Counter(
        name for row in stances if row.side == side for name in {cite.id for cite in row.cites}
    )
    return tuple(sorted(name for name, times in cited.items() if times > 1))


def _conflicts(stances: Sequence[BoardStance]) -> tuple[Conflict, ...]:
    conflicts = []
    for pair in combinations((row for row in stances if abs(row.stance) >= APART_FROM), 2):
        above, below = sorted(pair, key=lambda row: -row.stance)
        if above.side == below.side:
            continue
        strength = above.trust * below.trust * (above.stance - below.stance)
        claims = {row.agent: row.cites[:CLAIMED] for row in (above, below)}
        settle = SETTLES.get(frozenset(claims), ANY)
        conflicts.append(
            Conflict(above.agent, below.agent, round(strength, SCORE_DECIMALS), claims, settle)
        )
    conflicts.sort(key=lambda row: (-row.strength, *sorted(row.claims)))
    return tuple(conflicts[:CONFLICTS])


def _sign(value: float) -> int:
    return (value > 0.0) - (value < 0.0)
