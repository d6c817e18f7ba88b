"""The sections of a tick's page, made from the record of that tick.

An agent may never have answered: what it lacks shows as a dash with the reason. Pure functions.
This module has the decision, the gate and the provenance. `transcript` has the conversation,
`citations` and `inputs` what it rests on, `arithmetic` the sums, `waterfall` the drawings.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pydantic import JsonValue

from agent_framework import NOTHING_OPENS
from agents.contracts import GateRuling
from torra.dashboard.record import (
    agreement,
    arithmetic,
    citations,
    inputs,
    summary,
    surroundings,
    swarm,
    thesis,
    transcript,
    vetoes,
    waterfall,
)
from torra.dashboard.record.shown import Decision, TickView
from torra.exhibits import figures
from torra.exhibits.beyond import outside_words
from torra.exhibits.beyond.outside_row import OutsideShown
from torra.tick import sentence
from torra.tick.marks import PROPOSED
from torra.tick.tick_record import (
    DebateRecord,
    TickRecord,
    is_gate,
)
from torra.words import market, ticks
from torra.words.orders import REASONS

SENTENCE: Final = 400
"""Most characters of a tick's own sentence that are shown."""

NEAR: Final = 0.005
"""A gap to the threshold below this is written with more decimals."""


SILENT_GATE: Final = "did not answer; the rules stand"


def tick_sections(record: TickView) -> dict[str, object]:
    """Return the sections of a tick's page, for its template."""
    deliberation = record.deliberation
    features, anchors = citations.evidence(record), citations.Anchors()
    stages = transcript.conversation(record, features, anchors)
    agents = transcript.people(record, stages)
    shown = {agent.name: citations.shown_to(agent.name, features) for agent in agents}
    quoted = inputs.quotations(record, stages, features)
    cited = citations.cited(transcript.entries_of(stages), features)
    return {
        "sentence": figures.sanitize(sentence.page_text(record), SENTENCE),
        "headline": headline(record),
        "counts": summary.counts(agents),
        "requests": summary.requests(record),
        "proposed": REASONS[PROPOSED] if record.reason == PROPOSED else "",
        "note": summary.note(record),
        "agents": agents,
        "transcript": stages,
        "cited": cited,
        "uncited": citations.uncited(features, cited, shown),
        "codes": {figures.title(name): code for name, code in citations.codes(list(shown)).items()},
        "inputs": inputs.by_agent(record, stages, quoted, shown),
        "picture": inputs.picture(record),
        "timeline": waterfall.timeline(record),
        "charts": waterfall.score_charts(record),
        "decided": waterfall.decision_chart(record),
        "tally": agreement.tally(agents),
        "degraded": agreement.degraded(deliberation),
        "shadow": deliberation.in_shadow,
        "heard": agreement.has_opinions(deliberation),
        "around": surroundings,
        "market": market,
        "ticks": ticks,
        "beyond": beyond(record),
        "arithmetic": arithmetic.steps(record),
        "shares": arithmetic.shares(record),
        "timeframes": arithmetic.consensus_line(record),
        "decision": arithmetic.decision_rows(record),
        "gate": gate_rows(record),
        "quoted": quoted,
        "pruned": bool(deliberation.calls) and not record.calls,
        "why": why(record),
        "veto": vetoes.cause(record),
        "veto_mark": vetoes.mark(record),
        "swarm": deliberation.swarm is not None,
        "brief": swarm.brief(record),
        "thesis": thesis.thesis_section(
            record, record.limits.escalation if record.limits else None
        ),
        "provenance": provenance(record),
        "written": value_text,
        "failed_checks": arithmetic.failed_checks(record),
        "records": arithmetic.records_line(record),
    }


def beyond(record: TickRecord) -> OutsideShown | None:
    """Return what was known from beyond the chart; None of another program's scorer."""
    if record.hosted and record.outside is None:
        return None
    return outside_words.shown(record.symbol, record.outside)


def headline(record: Decision) -> str:
    """Return one sentence on where the consensus stands against its thresholds."""
    told = standing(record)
    if not told:
        return "No consensus is stored for this tick."
    return f"Consensus {figures.format_signed(record.consensus, _decimals(record))} {told}."


class Distance(NamedTuple):
    """How far a consensus is from the threshold of its `side`, BUY or SELL.

    `gap` is what it is short of it, 0 or negative where it reaches it.
    """

    side: str
    limit: float
    gap: float


def distance(record: Decision) -> Distance | None:
    """Return how far a tick is from a verdict by its own thresholds; None if they are not known."""
    consensus, (sell, buy) = record.consensus, _limits(record)
    if consensus is None or buy is None or sell is None:
        return None
    side, limit = ("BUY", buy) if consensus >= 0 else ("SELL", sell)
    return Distance(side, limit, abs(limit) - abs(consensus))


def standing(record: Decision) -> str:
    """Return how far a consensus is from the nearer threshold; empty if that is not known."""
    found = distance(record)
    if found is None:
        return ""
    shown = f"{found.side} threshold {figures.format_signed(found.limit, 2)}"
    if found.gap <= 0:
        return f"reaches the {shown}"
    return f"is {figures.plain(found.gap, _decimals(record))} short of the {shown}"


def why(record: Decision) -> str:
    """Return the reason word of an action with its meaning; a host's own text stays as it is."""
    word = figures.sanitize(record.reason, 300)
    if word == "THRESHOLD":
        return ""  # the standing of the consensus says it
    meaning = REASONS.get(word, "")
    if word == "GATE_VETO":
        meaning = vetoes.cause(record) or meaning
    return f"{meaning[:1].upper()}{meaning[1:]}" if meaning else word


def _decimals(record: Decision) -> int:
    """Return more decimals if three would hide on which side of a threshold the number is."""
    consensus = record.consensus or 0.0
    gaps = [abs(consensus - limit) for limit in _limits(record) if limit is not None]
    near = any(gap < NEAR for gap in gaps)
    return figures.FULL_DECIMALS if near else figures.SCORE_DECIMALS


def _limits(record: Decision) -> tuple[float | None, float | None]:
    limits = record.thresholds
    return (None, None) if limits is None else (-limits.sell, limits.buy)


def gate_rows(record: TickRecord) -> list[tuple[str, GateRuling | None, str]]:
    """Return the ruling of the gate's rules, that of its agent, and the one in force.

    Each has its name and its detail, or why there is none.
    """
    debate = record.deliberation
    report = next((report for report in debate.reports if is_gate(report)), None)
    own = report.ruling if report else None
    force = "the rules alone, in shadow" if debate.in_shadow else "the lower multiplier"
    # the record's own gate wins: it is what was in force
    return [
        ("Rules", record.gate.rule, record.gate.rule.detail),
        ("Gate agent, its own", own, own.detail if own else _no_ruling(debate)),
        (f"In force: {force}", record.gate.ruling, debate.ruling.detail),
    ]


def _no_ruling(deliberation: DebateRecord) -> str:
    """Return why the gate's agent gave no ruling; one that was not needed did not fail."""
    spared = any(
        NOTHING_OPENS in stage.agents.values()
        for stage in deliberation.stages
        if stage.status == "skipped"
    )
    return "was not asked, as nothing can open; the rules stand" if spared else SILENT_GATE


def provenance(record: TickRecord) -> list[tuple[str, JsonValue]]:
    """Return the inputs by which this tick can be repeated."""
    bars = record.bars
    span = f"{bars.count} from {figures.moment(bars.first)} to {figures.moment(bars.last)}"
    return [
        ("Bars", span),
        ("Hash of the bars", bars.hash),
        ("Profile", record.profile),
        ("Provider", record.provider),
        *record.versions.items(),
    ]


def value_text(value: JsonValue) -> str:
    """Return a stored value in words: the items of a list or a dict, separated by commas."""
    if isinstance(value, dict):
        items = [f"{figures.sanitize(name, 60)} {value_text(item)}" for name, item in value.items()]
    elif isinstance(value, list):
        items = [value_text(item) for item in value]
    else:
        return figures.format_any(value)
    return ", ".join(items) or "none"
