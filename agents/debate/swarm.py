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
from dataclasses import dataclass, field, replace
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
    SCORE_DECIMALS,
    AgentReport,
    DebateContext,
    Evidence,
    Feature,
    GateRuling,
    OfficerReason,
    Role,
)
from ..evidence import trust
from ..features import number
from .scoring import APART_FROM, CountedReport, plain

REGIME: Final = "market.regime"

SPOKEN_LEAST: Final = 2
"""Fewer experts with an opinion make a thin swarm."""

CONFLICTS: Final = 3
"""Conflicts that the board keeps."""

CLAIMED: Final = 2
"""Facts of each side of a conflict."""

LEAN_DECIMALS: Final = 4
"""Decimals with which the judge is shown the lean."""

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

    `code` is the code's word for the regime, `reader` the reader's, "" where it gave none;
    `trusted` holds a weight in (0, 1] by expert, of none where all count alike. `budget` lies in
    [0, 1].
    """

    code: str = ""
    reader: str = ""
    budget: float = 1.0
    first: str = ""
    trusted: Mapping[str, float] = field(default_factory=dict)

    @property
    def disputed(self) -> bool:
        """Whether the reader names another regime than the code."""
        return bool(self.reader) and self.reader != self.code


@dataclass(frozen=True, slots=True)
class ExpertStance:
    """Where an expert stands: its stance in [-0.3, +0.3], its side, its trust, its weight here."""

    agent: str
    stance: float
    side: str
    trust: float
    weight: float


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two experts that lean opposite ways, with the first facts that each cites."""

    long: str
    short: str
    strength: float
    claims: Mapping[str, tuple[Evidence, ...]]
    settle: Settle


@dataclass(frozen=True, slots=True)
class Board:
    """What the experts say, side by side.

    `lean` is the weighed sum of the stances and `dominant` its side, `surest` the expert whose
    leaning word weighs most, "" for none. `key_uncertainty` is what would settle the strongest
    conflict, "" where no two experts conflict; `agreed` holds, by side, the ids of facts that two
    or more experts of it cite.
    """

    stands: tuple[ExpertStance, ...]
    abstained: tuple[str, ...]
    lean: float
    dominant: str
    surest: str
    note: str
    key_uncertainty: str
    agreed: Mapping[str, tuple[str, ...]]
    conflicts: tuple[Conflict, ...]


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


EMPTY_BOARD: Final = Board((), (), 0.0, "NONE", "", "", "", {}, ())


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
        regime = plain(self.directive)
        trust = regime.pop("trusted")
        return {
            "regime": {**regime, "disputed": self.directive.disputed},
            "trust": trust,
            "budget": self.budget,
            "storm": self.storm,
            "board": plain(self.board),
            "judgement": plain(self.worth),
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
    return Directive(regime, named, round(min(shares), SCORE_DECIMALS), first, weights)


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
    answers: Sequence[CountedReport] | None = None,
) -> tuple[risk_gate.Rules, Swarm]:
    """Return the gate's rules with the risk officer's rows, and what the swarm amounts to.

    The officer stays while a cheaper desk is asked, and where nobody is: `answers` is None then,
    else what experts and judge reported.
    """
    rows = risk_officer.rows(context.features, config.gate)
    rules = risk_gate.rules(context.features, config.gate, analyst_range, rows)
    # The budget reads the same storm, but it lessens a size alone and no score.
    budgeted = rows._replace(storm=min(rows.storm, regime.budget))
    most = risk_gate.rules(context.features, config.gate, analyst_range, budgeted)
    swarm = Swarm(regime, rules.storm, most.ruling.multiplier)
    if answers is None or not config.agents.row().weighs:
        return rules, swarm
    experts = [answer for answer in answers if answer.role.kind == "analyst"]
    judge = next((a.report for a in answers if a.role.kind == "judge"), None)
    worth, thin = expected_value(judge, context.features), is_thin(answers)
    flags = [("thin_swarm", thin), ("regime_disputed", regime.disputed)]
    rules = rules._replace(flags=(*(flag for flag, holds in flags if holds), *rules.flags))
    return rules, replace(swarm, board=board(experts, regime), worth=worth, thin=thin)


def is_thin(answers: Iterable[CountedReport]) -> bool:
    """Tell whether too few experts had an opinion; where nobody had one there is no swarm."""
    kinds = [answer.role.kind for answer in answers if not answer.report.abstained]
    return bool(kinds) and kinds.count("analyst") < SPOKEN_LEAST


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
    opinions = [answer for answer in reported if not answer.report.abstained]
    stands = [_stance(*answer, regime.trusted.get(answer.role.id, 1.0)) for answer in opinions]
    conflicts = _conflicts(stands, opinions)
    words = {row.agent: row.weight * row.trust for row in stands}
    lean = round(fsum(words[row.agent] * row.stance for row in stands), SCORE_DECIMALS) + 0.0
    # By what its word weighs, then how far it leans, then by name; unrounded, 0.4 x 0.75 would
    # weigh more than 0.3 x 1.
    surest = min(
        (
            (-round(words[row.agent], SCORE_DECIMALS), -abs(row.stance), row.agent)
            for row in stands
            if row.stance
        ),
        default=("",),
    )[-1]
    cited = Counter(
        (row.side, name)
        for row, answer in zip(stands, opinions, strict=True)
        for name in {point.id for point in answer.report.points_for}
    )
    agreed = {
        side: tuple(sorted(name for at, name in cited if at == side and cited[at, name] > 1))
        for side in ORDERS
    }
    disputed = f"{regime.code}_disputed_{regime.reader}"
    return Board(
        stands=tuple(stands),
        abstained=tuple(a.role.id for a in reported if a.report.abstained),
        lean=lean,
        dominant=_side(lean),
        surest=str(surest),
        note=disputed if regime.disputed else regime.code,
        key_uncertainty=conflicts[0].settle.says if conflicts else "",
        agreed={side: ids for side, ids in agreed.items() if ids},
        conflicts=conflicts,
    )


def with_board(
    context: DebateContext, answers: Sequence[CountedReport], regime: Directive
) -> DebateContext:
    """Return the context with the board of the experts' reports among its evidence."""
    odd = [f"{role.id}:{report.anomaly}" for role, report in answers if report.anomaly]
    shown = as_features(board(answers, regime), context.as_of, " ".join(odd))
    return replace(context, features={**context.features, **shown})


def as_features(made: Board, as_of: str, anomalies: str = "") -> dict[str, Feature]:
    """Return the board as evidence for the judge; `anomalies` is what experts call odd."""
    sides = Counter(row.side for row in made.stands)
    values: dict[str, float | str] = {
        # as it is shown: cited from the prompt, a small one would else be off by more than 1 %
        "lean": round(made.lean, LEAN_DECIMALS) + 0.0,
        "dominant": made.dominant,
        "surest": made.surest or "none",
        "long": float(sides["LONG"]),
        "short": float(sides["SHORT"]),
        "neutral": float(sides["NONE"]),
        **{f"agreed_{side.lower()}": float(len(made.agreed.get(side, ()))) for side in ORDERS},
        "conflicts": float(len(made.conflicts)),
        "regime_note": made.note or "unknown",
    }
    if anomalies:
        values["anomalies"] = anomalies
    for place, row in enumerate(made.conflicts, start=1):
        values[f"conflict_{place}"] = f"{row.long}:{row.short}"
        values[f"settle_{place}"] = row.settle.feature
    features = {}
    for name, value in values.items():
        decimals = None if isinstance(value, str) else LEAN_DECIMALS * (name == "lean")
        features[f"board.{name}"] = Feature(f"board.{name}", value, "", as_of, decimals=decimals)
    return features


def _stance(role: Role, report: AgentReport, weight: float) -> ExpertStance:
    scored = [
        (FOCUS_WEIGHT[role.focus[vector]], value)
        for vector, value in report.adjustments.items()
        if value is not None and vector in role.focus
    ]
    whole = fsum(focus for focus, _ in scored)
    stance = fsum(focus * value for focus, value in scored) / whole if scored else 0.0
    stance, lent = round(stance, SCORE_DECIMALS) + 0.0, round(trust(report), SCORE_DECIMALS)
    return ExpertStance(role.id, stance, _side(stance), lent, weight)


def _conflicts(
    stands: Iterable[ExpertStance], opinions: Iterable[CountedReport]
) -> tuple[Conflict, ...]:
    points = {role.id: report.points_for[:CLAIMED] for role, report in opinions}
    conflicts = []
    for pair in combinations((row for row in stands if abs(row.stance) >= APART_FROM), 2):
        above, below = sorted(pair, key=lambda row: -row.stance)
        if above.side == below.side:
            continue
        strength = above.trust * below.trust * (above.stance - below.stance)
        names = (above.agent, below.agent)
        claims = {name: tuple(Evidence(p.id, p.value) for p in points[name]) for name in names}
        settle = SETTLES.get(frozenset(names), ANY)
        conflicts.append(Conflict(*names, round(strength, SCORE_DECIMALS), claims, settle))
    conflicts.sort(key=lambda row: (-row.strength, *sorted(row.claims)))
    return tuple(conflicts[:CONFLICTS])


def _side(value: float) -> str:
    """Return LONG, SHORT or NONE."""
    return "LONG" if value > 0.0 else "SHORT" if value < 0.0 else "NONE"
