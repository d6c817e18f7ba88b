"""The debate: `run_debate()` takes the place of a single-model `score_chart()` call.

    analysts (at once) -> bull || bear, 1 to 3 rounds -> (manager ||) risk gate -> synthesis
    reader || experts (at once) -> board -> judge -> risk gate -> synthesis

Which agents sit and in which stages they are asked is a row of `agent_config.MODES`; this module
walks that row and knows no mode by name. `consult_trader` asks one agent more alone, where an
opening would be made.

`deliberate` is the same work with the whole record; `blend` is the host's last step, 0.80 L1 +
0.20 agents. Promises: the deadline holds whatever a provider does (+0.5 s at most); no reply
raises; with nobody answering and no fallback the scores are L1 bit for bit; no blended score leaves
L1 by more than 0.06. When a call fails its agent is skipped. When too few analysts of a large desk
gave a report the researchers are left out. Without an opinion, where an agent failed, the
`fallback` is asked; when that fails too L1 counts, and the rule vetoes hold in every case. An
opinion is the report of an analyst, a researcher or a judge that does not abstain
(docs/debate.md, "When things fail"). ValueError is for a caller's mistake only: a desk that cannot
be seated, L1 scores that are no scores.

Left to others: stages and asking (agents.debate.debate), replies and the limits of a role
(agents.debate.replies), the arithmetic (agents.debate.scoring, agents.debate.swarm,
agents.risk_gate), prompts (scoring_rubric). Provider, clock, ledger and listener are handed in:
this module opens nothing and writes nothing. `reserve` and `on_event` are called on the caller's
thread, `reserve` for a reply that was cut off on its agent's, and must bound their own waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import agents as _agents

if Path(_agents.__file__ or "").resolve().parent != Path(__file__).resolve().parent / "agents":
    raise ImportError(
        f"the package `agents` found at {_agents.__file__} is not Torra's. PyPI's openai-agents "
        "installs one of the same name: uninstall it, or put Torra's folder first on sys.path"
    )

from agent_config import GATE_ID, THIN_CONVICTION, AgentSettings, DebateSettings, Mode, StagePlan
from agents import risk_gate
from agents.arguments import flag_repeated_claims
from agents.contracts import (
    ADJUSTMENT_BOUND,
    OPINIONS,
    SIDES,
    VECTORS,
    AgentReport,
    Ask,
    DebateContext,
    GateRuling,
    Prompt,
    Reserve,
    SourceType,
    Submit,
    is_synchronous,
)
from agents.debate import replies
from agents.debate.debate import (
    Conversation,
    DebateState,
    OnEvent,
    summary,
    too_many_abandoned,
)
from agents.debate.deliberation import (
    ABSTAINED,
    OUTAGE,
    Deliberation,
    cost_of,
    score_chart_shape,
    with_bias,
)
from agents.debate.firm import consult_trader
from agents.debate.scoring import (
    NEUTRAL,
    NO_MOVE,
    UNHELD,
    UNJUDGED,
    CountedReport,
    Synthesis,
    adjust,
    blended,
    clamp,
    has_quorum,
    opposed,
    outage,
    panel_of,
    spread,
    synthesise,
)
from agents.debate.swarm import (
    Directive,
    Swarm,
    apply_judge_veto,
    is_thin,
    regime_directive,
    risk_rules,
    with_board,
)
from agents.evidence import with_scores
from agents.registry import AGENTS, SCORER, Agent, seated

__all__ = [
    "Deliberation",
    "Fallback",
    "OnEvent",
    "as_configured",
    "blend",
    "check_desk",
    "consult_trader",
    "deliberate",
    "l1_only_record",
    "run_debate",
]

Fallback = Callable[[DebateContext, Callable[[Prompt], Mapping[str, Any]]], Mapping[str, Any]]
"""`score_chart(context, ask)`: `ask` puts one prompt to a model and returns the JSON object of its
reply, or raises ModelUnavailable; a host's own scorer may ignore it.
"""

HISTORY: Final = ("sentiment_trend", "trend_direction", "recent_signals")
"""Memory keys whose lists have the newest last."""
HIDDEN: Final = (
    (
        "include_markov_context",
        ("current_markov_state", "state_duration", "recent_transitions", "next_"),
        ("memory.markov_state", "memory.state_duration", "memory.next_"),
    ),
    ("include_sentiment_history", HISTORY, ("memory.consensus_last", "memory.trend_direction")),
)
"""Settings, and the beginnings of the memory keys and features that they show or hide."""
NOTHING_OPENS: Final = "nothing can open"
"""Why the gate's model was not asked."""
QUORUM: Final = "quorum"
"""Why researchers are left out: too few analysts gave a report."""
REFUSALS: Final = frozenset(("budget", "deadline"))
"""Why a whole stage may have been refused."""
UNDIRECTED: Final = Directive()
"""All words count alike, and a size is whole."""


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
    the registry; `fallback` is asked when no opinion answered and somebody failed. Raises
    ValueError for a desk that cannot be seated and for L1 scores outside [-1, +1].
    """
    settings, row = config.agents, config.agents.row()
    desk = seated(settings, agents)
    _check_scores(context)
    if too_many_abandoned():
        return l1_only_record(context, config, flags=("threads_exhausted",), unavailable=desk)
    # An agent of another hand may hang, and may change the report that it was given.
    own = all(AGENTS.get(seat.role.id) is seat for seat in desk)
    debate = DebateState(
        desk,
        settings,
        submit,
        monotonic,
        deadline,
        monotonic(),
        planned=_planned(desk, settings, row),
        reserve=reserve,
        on_event=on_event,
        own=own,
        synchronous=own and is_synchronous(submit),
        keep_for_fallback=fallback is not None,
    )
    context = as_configured(context, settings)

    for stage in row.stages[:-1]:
        _ask_opening(debate, stage, context, config)

    analyst_range = spread(debate.reported("analyst"))
    regime = UNDIRECTED
    if row.weighs or config.has_officer():
        regime = regime_directive(context, config, debate.report_of("reader"))
    answers = debate.reported(*OPINIONS)
    rules, swarm = _rules(config, context, analyst_range, regime, answers)
    debate.flags += rules.flags
    ruling = rule = rules.ruling
    source, synthesis, panel = SourceType.L1_ONLY, NO_MOVE, NEUTRAL

    # a gate that fails leaves the rules: it is nobody's missing opinion
    failed = debate.failed(*OPINIONS)
    if debate.opinions(*OPINIONS):
        if judge := debate.report_of("judge"):
            worth = swarm.worth if swarm else None
            rule = apply_judge_veto(rule, judge, worth, settings.judge_hold)
        ruling = _ask_gate(debate, settings, context, rule, analyst_range)
        judged = _judge_report(debate)
        synthesis = synthesise(answers, judged.weights if judged else {}, regime.trusted)
        panel = panel_of(
            answers,
            (*failed, *SIDES) if judged is UNHELD else failed,
            config.weights,
            judged,
            regime.trusted,
            THIN_CONVICTION if row.weighs and is_thin(answers) else 1.0,
            settings.none_cost,
        )
        source = SourceType(row.complete)
        if debate.failures or debate.unasked:
            source = SourceType.AGENT_PARTIAL
        elif settings.active_agents:
            source = SourceType.AGENT_CUSTOM
    elif failed:
        if fallback is not None:
            source, synthesis = _ask_fallback(debate, context, fallback)
        panel = outage(desk, settings.outage_size, degraded=bool(debate.degraded))
        debate.flags.append(OUTAGE)
    else:
        debate.flags.append(ABSTAINED)
    return _record(debate, context, source, synthesis, ruling, rule, panel=panel, swarm=swarm)


def l1_only_record(
    context: DebateContext,
    config: DebateSettings,
    source_type: SourceType = SourceType.L1_ONLY,
    flags: tuple[str, ...] = (),
    unavailable: Sequence[Agent] = (),
) -> Deliberation:
    """Return the record of a tick on which no agent is asked: L1, under the rules of the gate.

    `unavailable` are the seats that should have been asked and could not: it is an outage then.
    """
    _check_scores(context)
    rules, swarm = _rules(config, context, 0.0)
    scores = score_chart_shape(context, NO_MOVE.debate, source_type, _summary(0, 0, rules.ruling))
    return Deliberation(
        source_type=source_type,
        scores=scores,
        ungated=scores,
        adjustments=dict(NO_MOVE.debate),
        analyst_avg=dict(NO_MOVE.analyst_avg),
        debate=dict(NO_MOVE.debate),
        ruling=rules.ruling,
        rule_ruling=rules.ruling,
        flags=(*flags, *rules.flags, *((OUTAGE,) if unavailable else ())),
        swarm=swarm,
        panel=outage(unavailable, config.agents.outage_size) if unavailable else NEUTRAL,
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


def as_configured(context: DebateContext, settings: AgentSettings) -> DebateContext:
    """Return the context as the profile lets agents see it, with the four scores as evidence."""
    features = with_scores(context.features, context)
    memory = {
        key: value[-settings.history_lookback :]
        if key in HISTORY and isinstance(value, list | tuple)
        else value
        for key, value in context.memory.items()
    }
    for setting, keys, names in HIDDEN:
        if not getattr(settings, setting):
            features = {n: one for n, one in features.items() if not n.startswith(names)}
            memory = {key: value for key, value in memory.items() if not key.startswith(keys)}
    picture = None if settings.picture == "off" else context.picture
    ahead = settings.row().ahead
    return replace(context, features=features, memory=memory, picture=picture, ahead=ahead)


def _rules(
    config: DebateSettings,
    context: DebateContext,
    analyst_range: float,
    regime: Directive | None = None,
    answers: Sequence[CountedReport] | None = None,
) -> tuple[risk_gate.Rules, Swarm | None]:
    """Return the rules of the gate, with a risk officer's rows where one sits."""
    if not config.has_officer():
        return risk_gate.rules(context.features, config.gate, analyst_range), None
    regime = regime or regime_directive(context, config, None)
    return risk_rules(config, context, analyst_range, regime, answers)


# --- the stages -----------------------------------------------------------------------------------


def _ask_opening(
    debate: DebateState, stage: StagePlan, context: DebateContext, config: DebateSettings
) -> None:
    """Ask a stage before the last; researchers debate only where enough analysts gave a report."""
    analysts, seats = debate.reported("analyst"), len(debate.seats("analyst"))
    quorate = has_quorum(len(analysts), seats, config.agents.quorum)
    if stage.debates and not quorate:
        debate.degraded = f"{len(analysts)} of {seats} analysts"
        debate.flags.append(f"degraded:{len(analysts)}_of_{seats}")
    if (stage.debates and not quorate) or ("judge" in stage.kinds and not analysts):
        names = [seat.role.id for seat in debate.seats(*stage.kinds)]
        debate.leave_out(stage.name, names, _why_short(debate))
    elif stage.debates:
        _debate_rounds(debate, stage, context, config)
    else:
        if "judge" in stage.kinds:
            regime = regime_directive(context, config, debate.report_of("reader"))
            context = with_board(context, analysts, regime)
        debate.ask(stage, 1, _contexts(debate, stage, context))


def _debate_rounds(
    debate: DebateState, stage: StagePlan, context: DebateContext, config: DebateSettings
) -> None:
    """Let bull and bear argue: each sees the analysts and, in a further round, the other's case.

    A further round is left out when no case was made that could be answered, and where the settings
    ask for answers only when the analysts disagree or the agents may change the verdict.
    """
    settings = config.agents
    for number in range(1, settings.most_rounds() + 1) if debate.seats(*stage.kinds) else ():
        cases = [answer.report for kind in stage.kinds for answer in debate.reported(kind)]
        if number > 1 and not cases:
            return
        answers = context.pivotal or not settings.rebuts()
        if not (number == 1 or answers or opposed(debate.opinions("analyst"), config.weights)):
            return
        debate.ask(stage, number, _contexts(debate, stage, context, cases))
        cases = [answer.report for kind in stage.kinds for answer in debate.reported(kind)]
        debate.tell(
            "debate_round",
            round=number,
            answered=[case.agent_id for case in cases],
            statements=[{"agent": case.agent_id, "summary": summary(case)} for case in cases],
        )


def _contexts(
    debate: DebateState,
    stage: StagePlan,
    context: DebateContext,
    cases: Sequence[AgentReport] = (),
) -> dict[str, DebateContext]:
    """Return what each agent of a stage is shown, by its id.

    Reports are those of the kinds that the stage sees, and after them the others' `cases`; features
    are narrowed as the mode's row says, and lessons are for the agents that the settings name.
    """
    settings, narrowed = debate.settings, debate.settings.row().evidence
    visible = tuple(answer.report for kind in stage.sees for answer in debate.reported(kind))
    contexts: dict[str, DebateContext] = {}
    for seat in debate.seats(*stage.kinds):
        name, changes = seat.role.id, dict[str, Any]()
        if reports := (*visible, *(case for case in cases if case.agent_id != name)):
            if seat.role.kind != "arbiter":
                reports = tuple(replace(r, risks=()) if r.risks else r for r in reports)
            changes["reports"] = reports
        if context.lessons and name not in settings.memory.roles:
            changes["lessons"] = ()
        if prefixes := narrowed.get(name):
            changes["features"] = {
                id_: feature
                for id_, feature in context.features.items()
                if id_.startswith(prefixes)
            }
        contexts[name] = replace(context, **changes) if changes else context
    return contexts


def _ask_gate(
    debate: DebateState,
    settings: AgentSettings,
    context: DebateContext,
    rule: GateRuling,
    analyst_range: float,
) -> GateRuling:
    """Ask the last stage; return the stricter of the gate's model and the rules.

    The gate also sees what the rules have set; the other agents of its stage do not. Where nothing
    can open, and the settings say so, its model is not asked and the rules count.
    """
    closing = settings.row().stages[-1]
    contexts = _contexts(debate, closing, context)
    if settings.gate_call == "openings" and not context.pivotal:
        debate.skip(closing.name, {GATE_ID: NOTHING_OPENS})
        del contexts[GATE_ID]
        debate.ask(closing, 1, contexts)
        return rule
    gate = contexts[GATE_ID]
    features = {**gate.features, **risk_gate.as_features(rule, analyst_range, context.as_of)}
    contexts[GATE_ID] = replace(gate, features=features)
    debate.ask(closing, 1, contexts)
    report = debate.report_of("gate")
    return risk_gate.merged(rule, report.ruling if report else None)


def _why_short(debate: DebateState) -> str:
    """Return why the analysts are too few: their whole stage was refused, or just the quorum."""
    words = {debate.failures.get(seat.role.id, "") for seat in debate.seats("analyst")}
    return words.pop() if len(words) == 1 and words <= REFUSALS else QUORUM


def _judge_report(debate: DebateState) -> AgentReport | None:
    """Return the report of an arbiter or a judge, None where none sits.

    It is UNJUDGED where that failed, UNHELD where too few analysts gave a report for a debate.
    """
    if debate.degraded and debate.seats("arbiter", "judge"):
        return UNHELD
    failed = debate.failed("arbiter", "judge")
    return debate.report_of("arbiter", "judge") or (UNJUDGED if failed else None)


def _ask_fallback(
    debate: DebateState, context: DebateContext, fallback: Fallback
) -> tuple[SourceType, Synthesis]:
    """Ask the single-model scorer; L1 counts when there is no leave to spend, or it fails too."""

    def score(shown: DebateContext, ask: Ask) -> AgentReport:
        # Scores of its own: what it writes into them must not move the bound.
        own = replace(shown, scores=dict(shown.scores))
        once = cast(Conversation, ask).once
        scores = replies.scores(fallback(own, lambda prompt: once(prompt, _checked)))
        return AgentReport(
            SCORER.id,
            {v: clamp(scores[v] - context.scores[v], ADJUSTMENT_BOUND) for v in VECTORS},
        )

    # A host's scorer may hang: it has a thread in every debate.
    alone = replace(
        debate,
        desk=(Agent(SCORER, score),),
        own=False,
        synchronous=False,
        keep_for_fallback=False,
        answers={},
        failures={},
    )
    alone.ask(StagePlan("fallback", ("scorer",), 1.0), 1, {SCORER.id: context})
    report = alone.report_of("scorer")
    if report is None:
        debate.flags.append(f"fallback_failed:{alone.failures[SCORER.id]}")
        return SourceType.L1_ONLY, NO_MOVE
    moves = {vector: report.adjustments[vector] or 0.0 for vector in VECTORS}
    return SourceType.LEGACY, Synthesis(NO_MOVE.analyst_avg, moves)


def _checked(reply: Mapping[str, Any], prompt: Prompt) -> Mapping[str, Any]:
    if prompt.shape == "scores":
        replies.scores(reply)  # a reply without scores failed, and its call is to say so
    return reply


def _record(
    debate: DebateState,
    context: DebateContext,
    source: SourceType,
    synthesis: Synthesis,
    ruling: GateRuling,
    rule: GateRuling,
    **parts: Any,
) -> Deliberation:
    """Return the record; `parts` are its panel and swarm."""
    gated = adjust(synthesis.debate, ruling.multiplier)
    opinions, seats = len(debate.opinions(*OPINIONS)), len(debate.seats(*OPINIONS))
    note = _summary(opinions, seats, ruling, debate.degraded)
    debate.tell(
        "decision",
        source_type=str(source),
        adjustments=dict(gated),
        multiplier=ruling.multiplier,
        veto=ruling.veto,
    )
    calls = debate.records()
    late = [f"late:{call.role_id}" for call in calls if call.status == "late"]
    reports = [debate.answers[s.role.id].report for s in debate.desk if s.role.id in debate.answers]
    return Deliberation(
        source_type=source,
        scores=score_chart_shape(context, gated, source, note),
        ungated=score_chart_shape(context, adjust(synthesis.debate, 1.0), source, note),
        adjustments=gated,
        analyst_avg=dict(synthesis.analyst_avg),
        debate=dict(synthesis.debate),
        ruling=ruling,
        rule_ruling=rule,
        reports=flag_repeated_claims(reports),
        earlier=tuple(debate.earlier),
        failures=dict(debate.failures),
        calls=calls,
        stages=tuple(debate.stages),
        flags=tuple(dict.fromkeys((*debate.flags, *debate.call_flags(), *late))),
        cost_usd=cost_of(calls),
        elapsed_ms=round((debate.monotonic() - debate.began) * 1000, 3),
        unasked=dict(debate.unasked),
        **parts,
    )


def _summary(opinions: int, seats: int, ruling: GateRuling, degraded: str = "") -> str:
    short = f"DEGRADED ({degraded}), " if degraded else ""
    veto = ", openings vetoed" if ruling.veto else ""
    return f"{short}{opinions} of {seats} opinions, gate x{ruling.multiplier:.2f}{veto}"


def _planned(desk: tuple[Agent, ...], settings: AgentSettings, row: Mode) -> int:
    """Return how many requests a desk makes when none is repeated.

    The last stage and the fallback exclude each other.
    """
    kinds: list[str] = [seat.role.kind for seat in desk]
    return sum(
        kinds.count(kind) * (settings.most_rounds() if stage.debates else 1)
        for stage in row.stages
        for kind in stage.kinds
    )


def _check_scores(context: DebateContext) -> None:
    for vector in VECTORS:
        score = context.scores.get(vector)
        number = isinstance(score, int | float) and not isinstance(score, bool)
        if score is None or not number or not abs(score) <= 1.0:
            raise ValueError(f"the L1 score {vector} is {score!r}, not a number in [-1, +1]")
