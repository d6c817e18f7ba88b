"""The debate: `run_debate()` takes the place of a single-model `score_chart()` call.

    analysts (at once) -> bull || bear, 1 to 3 rounds -> (manager ||) risk gate -> synthesis
    reader || experts (at once) -> board -> judge -> risk gate -> synthesis

Which agents sit and in which stages they are asked is a row of `agent_config.MODES`; this module
walks that row and knows no mode by name.

`consult` asks one agent more alone, once it is known that an opening would stand.

`deliberate` is the same work with the whole record; `blend` is the host's last step, 0.80 L1 +
0.20 agents. Promises: the deadline holds whatever a provider does (+0.5 s at most); no reply
raises; with nobody answering and no fallback the scores are L1 bit for bit; no blended score leaves
L1 by more than 0.06. When a call fails its agent is skipped, when too few analysts of a large desk
gave a report the researchers are left out, when no opinion is heard and somebody failed the
`fallback` is asked, when that fails too L1 stands, and the rule vetoes hold in every case. An
opinion is heard when an analyst, a researcher or a judge reports and does not abstain
(docs/debate.md, "When things fail"). ValueError is for a caller's mistake only: a desk that cannot
be seated, L1 scores that are no scores.

Left to others: a stage (agents.debate.sitting, agents.debate.stages), asking
(agents.debate.asking), parsing (agents.debate.replies), the arithmetic (agents.debate.synthesis,
agents.risk_gate), prompts (scoring_rubric). Provider, clock, ledger and listener are handed in:
this module opens nothing and writes nothing. `reserve` and `on_event` are called on the caller's
thread, `reserve` for a reply that was cut off on its agent's, and must bound their own waiting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import agents as _agents

if Path(_agents.__file__ or "").resolve().parent != Path(__file__).resolve().parent / "agents":
    raise ImportError(
        f"the package `agents` found at {_agents.__file__} is not Torra's. PyPI's openai-agents "
        "installs one of the same name: uninstall it, or put Torra's folder first on sys.path"
    )

from agent_config import (
    GATE_ID,
    THIN_CONVICTION,
    AgentSettings,
    DebateSettings,
    Mode,
    StagePlan,
)
from agents import risk_gate
from agents.arguments import flag_repeated_claims
from agents.contracts import (
    ADJUSTMENT_BOUND,
    OPINIONS,
    SCORE_DECIMALS,
    SIDES,
    VECTORS,
    AgentReport,
    DebateContext,
    Feature,
    GateRuling,
    ModelUnavailable,
    Prompt,
    Reserve,
    SourceType,
    Submit,
    is_immediate,
)
from agents.debate.asking import ModelCalls, Stage
from agents.debate.board import board, with_board
from agents.debate.consulting import TraderReview, consult_trader, unasked
from agents.debate.deliberation import ABSTAINED, OUTAGE, Deliberation, score_chart_shape, with_bias
from agents.debate.panel import (
    NEUTRAL,
    UNHELD,
    UNJUDGED,
    Panel,
    has_quorum,
    opposed,
    outage,
    panel_of,
)
from agents.debate.replies import scores as read_scores
from agents.debate.sitting import DebateState, OnEvent, failure, fenced, result_of, summary
from agents.debate.stages import FinishedJob, run_parallel, too_many_abandoned
from agents.debate.swarm import apply_judge_veto, is_thin, regime_directive, risk_rules
from agents.debate.synthesis import (
    CountedReport,
    Debate,
    adjust,
    blended,
    clamp,
    spread,
    synthesise,
)
from agents.evidence import with_scores
from agents.registry import AGENTS, SCORER, Agent, seated

__all__ = [
    "Deliberation",
    "Fallback",
    "OnEvent",
    "TraderReview",
    "as_configured",
    "blend",
    "check_desk",
    "consult_trader",
    "deliberate",
    "l1_only_record",
    "run_debate",
    "unasked",
]

Fallback = Callable[[DebateContext, Callable[[Prompt], Mapping[str, Any]]], Mapping[str, Any]]
"""`score_chart(context, ask)`: `ask` puts one prompt to a model and returns the JSON object of its
reply, or raises ModelUnavailable; a host's own scorer may ignore it.
"""

MARKOV: Final = ("current_markov_state", "state_duration", "recent_transitions", "next_")
"""Beginnings of the memory keys that `include_markov_context` shows or hides."""
MARKOV_FEATURES: Final = ("memory.markov_state", "memory.state_duration", "memory.next_")
HISTORY: Final = ("sentiment_trend", "trend_direction", "recent_signals")
"""Memory keys that `include_sentiment_history` shows or hides; their lists have the newest last."""
HISTORY_FEATURES: Final = ("memory.consensus_last", "memory.trend_direction")
NOTHING_OPENS: Final = "nothing can open"
"""Why the gate's model was not asked."""
QUORUM: Final = "quorum"
"""Why researchers are left out: too few analysts gave a report."""
REFUSALS: Final = frozenset(("budget", "deadline"))
"""Why a whole stage may have been refused."""
NO_MORE: Final[Mapping[str, tuple[AgentReport, ...]]] = MappingProxyType({})
NOTHING: Final = Debate(dict.fromkeys(VECTORS, 0.0), dict.fromkeys(VECTORS, 0.0))


def run_debate(
    context: DebateContext,
    config: DebateSettings,
    submit: Submit,
    *,
    monotonic: Callable[[], float],
    deadline: float,
    reserve: Reserve | None = None,
    agents: Mapping[str, Agent] | None = None,
    fallback: Fallback | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Return what `score_chart()` would, before any blend.

    Four vectors {score in [-1, +1], note} and composite_bias. Arguments and errors are those of
    `deliberate`.
    """
    deliberation = deliberate(
        context,
        config,
        submit,
        monotonic=monotonic,
        deadline=deadline,
        reserve=reserve,
        agents=agents,
        fallback=fallback,
        on_event=on_event,
    )
    return {name: dict(entry) for name, entry in deliberation.scores.items()}


def deliberate(
    context: DebateContext,
    config: DebateSettings,
    submit: Submit,
    *,
    monotonic: Callable[[], float],
    deadline: float,
    reserve: Reserve | None = None,
    agents: Mapping[str, Agent] | None = None,
    fallback: Fallback | None = None,
    on_event: OnEvent | None = None,
) -> Deliberation:
    """Let the desk deliberate on one tick and return the full record.

    `deadline` is a moment of `monotonic`, in seconds; `submit` sends a request to a provider;
    `reserve(stage, worst_case)` grants or refuses the cost of a stage before it; `agents` replaces
    the registry; `fallback` is asked when no opinion answered. Raises ValueError for a desk that
    cannot be seated and for L1 scores outside [-1, +1], and nothing else.
    """
    desk = seated(config.agents, agents)
    _check_scores(context)
    if too_many_abandoned():
        return l1_only_record(context, config, flags=("threads_exhausted",), unasked=desk)
    sitting = DebateState(
        desk=desk,
        line=ModelCalls(
            submit,
            monotonic,
            config.agents,
            _planned(desk, config.agents),
            deadline,
            inline=is_immediate(submit) and all(AGENTS.get(seat.role.id) is seat for seat in desk),
        ),
        began=monotonic(),
        deadline=deadline,
        reserve=reserve,
        on_event=on_event,
        keep_for_fallback=fallback is not None,
    )
    context, row = as_configured(context, config.agents), config.agents.row()
    for stage in row.opening:
        _open(sitting, stage, context, config)
    apart = spread(sitting.reported("analyst"))
    told = regime_directive(sitting, context, config)
    rules, swarm = risk_rules(config, context, apart, told, sitting)
    sitting.flags += rules.flags
    rule = rules.ruling
    # a gate that fails leaves the rules standing: it is nobody's missing opinion
    failed = sitting.failed(*OPINIONS)
    if sitting.heard(*OPINIONS):
        rule = apply_judge_veto(rule, sitting, swarm, config.agents)
        ruling = _close(sitting, config.agents, context, rule, apart)
        opinions, judged = sitting.reported(*OPINIONS), _judge_report(sitting)
        debate = synthesise(opinions, judged.weights if judged else {}, told.trusted)
        most = THIN_CONVICTION if is_thin(sitting, row) else 1.0
        agreed = panel_of(
            opinions,
            (*failed, *SIDES) if judged is UNHELD else failed,
            config.weights,
            judged,
            told.trusted,
            most,
            config.agents.none_cost,
        )
        source = _source(sitting, config.agents)
    elif failed:
        source, debate = _without_opinions(sitting, context, fallback)
        ruling, most = rule, config.agents.outage_size
        agreed = outage(desk, most, degraded=bool(sitting.degraded))
        sitting.flags.append(OUTAGE)
    else:
        source, debate, ruling, agreed = SourceType.L1_ONLY, NOTHING, rule, NEUTRAL
        sitting.flags.append(ABSTAINED)
    spoken = _record(sitting, context, source, debate, agreed, ruling=ruling, rule=rule)
    return replace(spoken, swarm=swarm) if swarm else spoken


def l1_only_record(
    context: DebateContext,
    config: DebateSettings,
    source_type: SourceType = SourceType.L1_ONLY,
    flags: tuple[str, ...] = (),
    unasked: Sequence[Agent] = (),
) -> Deliberation:
    """Return the record of a tick on which no agent is asked: L1, under the rules of the gate.

    `unasked` are the seats that should have been asked and could not: it is an outage then.
    """
    _check_scores(context)
    rules, swarm = risk_rules(config, context, 0.0, regime_directive(None, context, config))
    scores = score_chart_shape(context, NOTHING.debate, source_type, _summary(0, 0, rules.ruling))
    return Deliberation(
        source_type=source_type,
        scores=scores,
        ungated=scores,
        adjustments=dict(NOTHING.debate),
        analyst_avg=dict(NOTHING.analyst_avg),
        debate=dict(NOTHING.debate),
        ruling=rules.ruling,
        rule_ruling=rules.ruling,
        flags=(*flags, *rules.flags, *((OUTAGE,) if unasked else ())),
        swarm=swarm,
        panel=outage(unasked, config.agents.outage_size) if unasked else NEUTRAL,
    )


def blend(l1: Mapping[str, float], scores: Mapping[str, Any]) -> dict[str, Any]:
    """Blend L1 with what `run_debate` returned: L1 + 0.20 x (agent score - L1), rounded to 1e-8.

    Returns the shape of score_chart, composite_bias recomputed. L1 is taken to be rounded to 1e-8,
    as the calculator gives it; then no score leaves L1 by more than 0.06.
    """
    chart = {
        vector: {
            "score": blended(l1[vector], scores[vector]["score"]),
            "note": scores[vector]["note"],
        }
        for vector in VECTORS
    }
    return with_bias(chart, scores["composite_bias"]["note"])


def check_desk(
    settings: AgentSettings, agents: Mapping[str, Agent] | None = None
) -> tuple[str, ...]:
    """Return the ids of the agents that would sit; raises ValueError as `deliberate` would."""
    return tuple(seat.role.id for seat in seated(settings, agents))


def _judge_report(sitting: DebateState) -> AgentReport | None:
    """Return what an arbiter or a judge said, None where none sits.

    It is UNJUDGED of one that failed, UNHELD where too few analysts were heard for a debate.
    """
    seats = sitting.seats("arbiter", "judge")
    if seats and sitting.degraded:
        return UNHELD
    if reported := sitting.reported("arbiter", "judge"):
        return reported[0].report
    return UNJUDGED if sitting.failed("arbiter", "judge") else None


def _open(
    sitting: DebateState, stage: StagePlan, context: DebateContext, config: DebateSettings
) -> None:
    """Ask a stage before the last; one that debates only where enough analysts were heard."""
    settings = config.agents
    if not stage.debates:
        if "judge" in stage.kinds:
            if not sitting.reported("analyst"):  # nothing to judge
                judges = [seat.role.id for seat in sitting.seats(*stage.kinds)]
                sitting.leave_out(stage.name, 1, judges, _why_short(sitting))
                return
            told = regime_directive(sitting, context, config)
            context = with_board(context, board(sitting.reported("analyst"), told))
        sitting.ask(stage, 1, _contexts(sitting, stage, context, settings.row()))
        return
    reported, seats = len(sitting.reported("analyst")), len(sitting.seats("analyst"))
    if has_quorum(reported, seats, settings.quorum):
        for number in range(1, settings.most_rounds() + 1):
            if number > 1 and settings.rebuts() and not _worth_answering(sitting, context, config):
                return
            _round(sitting, stage, context, number, settings.row())
        return
    sitting.degraded = f"{reported} of {seats} analysts"
    sitting.flags.append(f"degraded:{reported}_of_{seats}")
    sides = [seat.role.id for seat in sitting.seats(*stage.kinds)]
    sitting.leave_out(stage.name, 1, sides, _why_short(sitting))


def _worth_answering(sitting: DebateState, context: DebateContext, config: DebateSettings) -> bool:
    """Tell whether bull and bear are to answer each other where that is not always done."""
    return context.pivotal or opposed(sitting.heard("analyst"), config.weights)


def _contexts(
    sitting: DebateState,
    stage: StagePlan,
    context: DebateContext,
    row: Mode,
    more: Mapping[str, tuple[AgentReport, ...]] = NO_MORE,
) -> dict[str, DebateContext]:
    """Return what each agent of a stage is shown, by its id.

    Reports are those of the kinds that the stage sees, and after them those of `more`; features
    are narrowed as the mode's row says, and lessons are for the agents that the settings name.
    """
    seen = tuple(answer.report for kind in stage.sees for answer in sitting.reported(kind))
    found: dict[str, DebateContext] = {}
    for seat in sitting.seats(*stage.kinds):
        name = seat.role.id
        reports = (*seen, *more.get(name, ()))
        if seat.role.kind != "arbiter":
            reports = tuple(replace(one, risks=()) if one.risks else one for one in reports)
        shown = replace(context, reports=reports) if reports else context
        if context.lessons and name not in sitting.line.settings.memory.roles:
            shown = replace(shown, lessons=())
        found[name] = _narrowed(shown, row.evidence.get(name))
    return found


def _narrowed(context: DebateContext, prefixes: tuple[str, ...] | None) -> DebateContext:
    """Return the context with those features only whose ids have one of the prefixes."""
    if prefixes is None:
        return context
    features = {name: one for name, one in context.features.items() if name.startswith(prefixes)}
    return replace(context, features=features)


def _why_short(sitting: DebateState) -> str:
    """Return why the analysts are too few: their whole stage was refused, or just the quorum."""
    words = {sitting.failures.get(seat.role.id, "") for seat in sitting.seats("analyst")}
    return words.pop() if len(words) == 1 and words <= REFUSALS else QUORUM


def _round(
    sitting: DebateState, stage: StagePlan, context: DebateContext, number: int, row: Mode
) -> None:
    """Run one round: each side sees the analysts and, in a further round, the other's last case.

    A further round is left out when no case was made that could be answered.
    """
    seats = [seat.role.id for seat in sitting.seats(*stage.kinds)]
    cases = [answer.report for kind in stage.kinds for answer in sitting.reported(kind)]
    if not seats or (number > 1 and not cases):
        return
    others = {name: tuple(case for case in cases if case.agent_id != name) for name in seats}
    contexts = _contexts(sitting, stage, context, row, others)
    sitting.ask(stage, number, contexts)
    stand = [answer.report for kind in stage.kinds for answer in sitting.reported(kind)]
    said = [{"agent": report.agent_id, "summary": summary(report)} for report in stand]
    answered = [report.agent_id for report in stand]
    sitting.tell("debate_round", round=number, answered=answered, statements=said)


def _close(
    sitting: DebateState,
    settings: AgentSettings,
    context: DebateContext,
    rule: GateRuling,
    apart: float,
) -> GateRuling:
    """Ask the last stage; return the stricter of the gate's model and the rules.

    The gate also sees what the rules have set; who is asked beside it does not. Where nothing can
    open, and the settings say so, its model is not asked and the rules stand.
    """
    row = settings.row()
    contexts = _contexts(sitting, row.closing, context, row)
    if settings.gate_call == "openings" and not context.pivotal:
        now = sitting.line.monotonic()
        sitting.note(Stage(row.closing.name, 1, now), now, "skipped", {GATE_ID: NOTHING_OPENS})
        contexts.pop(GATE_ID)
        sitting.ask(row.closing, 1, contexts)
        return rule
    gate = contexts[GATE_ID]
    features = {**gate.features, **risk_gate.as_features(rule, apart, context.as_of)}
    contexts[GATE_ID] = replace(gate, features=features)
    sitting.ask(row.closing, 1, contexts)
    answer = sitting.answers.get(GATE_ID)
    return risk_gate.merged(rule, None if answer is None else answer.report.ruling)


def _without_opinions(
    sitting: DebateState, context: DebateContext, fallback: Fallback | None
) -> tuple[SourceType, Debate]:
    """Ask the fallback; L1 stands when there is none, no leave to spend, or it fails too."""
    if fallback is None:
        return SourceType.L1_ONLY, NOTHING
    started = sitting.line.monotonic()
    stage = Stage("fallback", 1, sitting.deadline)
    sitting.tell("agent_start", agent=SCORER.id, stage=stage.name, round=stage.round)
    try:
        scores = _ask_fallback(sitting, stage, context, fallback)
    except ModelUnavailable as error:
        reason = failure(error)
        sitting.flags.append(f"fallback_failed:{reason}")
        sitting.note(stage, started, "failed", {SCORER.id: reason})
        sitting.tell_outcome(SCORER.id, reason, stage, started)
        return SourceType.L1_ONLY, NOTHING
    sitting.note(stage, started, "ok", {SCORER.id: "answered"})
    moves = {v: clamp(scores[v] - context.scores[v], ADJUSTMENT_BOUND) for v in VECTORS}
    moved = CountedReport(SCORER, AgentReport(SCORER.id, moves))
    sitting.tell_outcome(SCORER.id, moved, stage, started)
    return SourceType.LEGACY, Debate(NOTHING.analyst_avg, moves)


def _ask_fallback(
    sitting: DebateState, stage: Stage, context: DebateContext, fallback: Fallback
) -> dict[str, float]:
    if refused := sitting.refusal(stage, (SCORER,)):
        raise ModelUnavailable(refused)
    context = fenced(context, SCORER.id, stage)
    ask = sitting.line.ask_once(SCORER, context, stage)
    found: list[FinishedJob[Mapping[str, Any]]] = []
    run_parallel(
        # Of its own: what it writes into the scores must not move the bound.
        {SCORER.id: lambda: fallback(replace(context, scores=dict(context.scores)), ask)},
        stage.until,
        sitting.line.monotonic,
        lambda _, future: found.append(future),
    )
    sitting.line.close(stage, () if found else (SCORER.id,))
    if not found:
        raise ModelUnavailable("timeout")
    return read_scores(result_of(found[0]))


def _source(sitting: DebateState, settings: AgentSettings) -> SourceType:
    if sitting.failures or sitting.unasked:
        return SourceType.AGENT_PARTIAL
    return (
        SourceType.AGENT_CUSTOM if settings.active_agents else SourceType(settings.row().complete)
    )


def _record(
    sitting: DebateState,
    context: DebateContext,
    source: SourceType,
    debate: Debate,
    agreed: Panel,
    *,
    ruling: GateRuling,
    rule: GateRuling,
) -> Deliberation:
    gated = adjust(debate.debate, ruling.multiplier)
    heard = len(sitting.heard(*OPINIONS))
    summary = _summary(heard, len(sitting.seats(*OPINIONS)), ruling, sitting.degraded)
    sitting.tell(
        "decision",
        source_type=str(source),
        adjustments=dict(gated),
        multiplier=ruling.multiplier,
        veto=ruling.veto,
    )
    calls = sitting.line.records()
    late = [f"late:{call.role_id}" for call in calls if call.status == "late"]
    return Deliberation(
        source_type=source,
        scores=score_chart_shape(context, gated, source, summary),
        ungated=score_chart_shape(context, adjust(debate.debate, 1.0), source, summary),
        adjustments=gated,
        analyst_avg=dict(debate.analyst_avg),
        debate=dict(debate.debate),
        ruling=ruling,
        rule_ruling=rule,
        reports=flag_repeated_claims(
            sitting.answers[seat.role.id].report
            for seat in sitting.desk
            if seat.role.id in sitting.answers
        ),
        earlier=tuple(sitting.earlier),
        failures=dict(sitting.failures),
        calls=calls,
        stages=tuple(sitting.stages),
        flags=tuple(dict.fromkeys((*sitting.flags, *sitting.line.looks(), *late))),
        cost_usd=round(math.fsum(call.cost_usd for call in calls), SCORE_DECIMALS),
        elapsed_ms=round((sitting.line.monotonic() - sitting.began) * 1000, 3),
        unasked=dict(sitting.unasked),
        panel=agreed,
    )


def _summary(heard: int, seats: int, ruling: GateRuling, degraded: str = "") -> str:
    short = f"DEGRADED ({degraded}), " if degraded else ""
    veto = ", openings vetoed" if ruling.veto else ""
    return f"{short}{heard} of {seats} opinions, gate x{ruling.multiplier:.2f}{veto}"


def _planned(desk: tuple[Agent, ...], settings: AgentSettings) -> int:
    """Return how many requests a desk makes when none is repeated.

    The last stage and the fallback exclude each other.
    """
    kinds: list[str] = [seat.role.kind for seat in desk]
    return sum(
        kinds.count(kind) * (settings.most_rounds() if stage.debates else 1)
        for stage in settings.row().stages
        for kind in stage.kinds
    )


def _check_scores(context: DebateContext) -> None:
    for vector in VECTORS:
        score = context.scores.get(vector)
        if type(score) is float and -1.0 <= score <= 1.0:  # nearly every one
            continue
        real = isinstance(score, int | float) and not isinstance(score, bool)
        if score is None or not real or not abs(score) <= 1.0:
            raise ValueError(f"the L1 score {vector} is {score!r}, not a number in [-1, +1]")


def as_configured(context: DebateContext, settings: AgentSettings) -> DebateContext:
    """Return the context as the profile lets agents see it, with the four scores as evidence."""
    hidden: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    if not settings.include_markov_context:
        hidden, names = MARKOV, MARKOV_FEATURES
    if not settings.include_sentiment_history:
        hidden, names = (*hidden, *HISTORY), (*names, *HISTORY_FEATURES)
    return replace(
        context,
        features=_without(with_scores(context.features, context), names),
        memory={
            key: value[-settings.history_lookback :] if _is_history(key, value) else value
            for key, value in context.memory.items()
            if not key.startswith(hidden)
        },
        picture=None if settings.picture == "off" else context.picture,
        ahead=settings.row().ahead,
    )


def _without(features: dict[str, Feature], names: tuple[str, ...]) -> dict[str, Feature]:
    if not names:
        return features
    return {name: feature for name, feature in features.items() if not name.startswith(names)}


def _is_history(key: str, value: Any) -> bool:
    return key in HISTORY and isinstance(value, list | tuple)
