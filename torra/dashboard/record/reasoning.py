"""The sections of a tick's page, made from the record of that tick.

An agent may never have answered: what it lacks shows as a dash with the reason. Text of models
passes through
`figures.clean`. Pure functions.
This module has the decision, the gate, L1 and the provenance. `transcript` has the conversation,
`citations` and `inputs` what it rests on, `arithmetic` the sums, `waterfall` the drawings and
`difference` the tick before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypedDict

from pydantic import JsonValue

from agent_framework import NOTHING_OPENS
from agents.contracts import VECTORS
from torra.dashboard.record import (
    agreement,
    arithmetic,
    citations,
    difference,
    inputs,
    summary,
    surroundings,
    swarm,
    thesis,
    transcript,
    vetoes,
    waterfall,
)
from torra.dashboard.record.rows import RulingShown, StageShown, TranscriptVoice
from torra.dashboard.record.shown import Decision, SignalOutcome, TickView, Trade
from torra.dashboard.record.surroundings import Pair
from torra.exhibits import figures
from torra.exhibits.beyond import outside_words
from torra.exhibits.beyond.outside_row import OutsideShown
from torra.exhibits.figures import BarSpan, Cell, cell
from torra.tick import sentence
from torra.tick.tick_record import (
    ComponentRecord,
    Damaged,
    DebateRecord,
    Skipped,
    StoredCall,
    TickRecord,
)
from torra.words.orders import REASONS

SENTENCE: Final = 400
"""Most characters of a tick's own sentence that are shown."""

NEAR: Final = 0.005
"""A gap to the threshold below this is written with more decimals."""


SILENT_GATE: Final = "did not answer; the rules stand"


class ComponentRow(TypedDict):
    """A component of a score with its product."""

    name: str
    value: Cell
    weight: str
    product: Cell
    bar: BarSpan


class Components(TypedDict):
    """The components of a vector."""

    title: str
    score: Cell
    note: str
    rows: list[ComponentRow]


class OutcomeRow(TypedDict):
    """The result of a signal."""

    sid: str
    state: str
    fill: str
    filled_at: str
    exit: str
    closed_at: str
    why: str
    profit: Cell
    r: Cell


def tick_sections(
    record: TickView, before: TickRecord | Skipped | Damaged | None = None
) -> dict[str, object]:
    """Return the sections of a tick's page, for its template.

    `before` is the record of the tick before, None where there is none.
    """
    deliberation = record.deliberation
    features, anchors = citations.evidence(record), citations.Anchors()
    stages = transcript.conversation(record, features, anchors)
    agents = people(record, stages)
    shown = {a["name"]: citations.shown_to(a["name"], features) for a in agents}
    quoted = inputs.quotations(record, stages, features)
    calls, common = inputs.call_rows(record.made_calls)
    cited = citations.cited(transcript.entries_of(stages), features)
    return {
        "sentence": figures.sanitize(sentence.page_text(record), SENTENCE),
        "headline": headline(record),
        "summary": summary.summary(record, agents),
        "note": summary.note(record),
        "agents": agents,
        "transcript": stages,
        "rules": transcript.rules(record),
        "cited": cited,
        "uncited": citations.uncited(features, cited, shown),
        "codes": {figures.title(name): code for name, code in citations.codes(list(shown)).items()},
        "inputs": inputs.by_agent(record, stages, quoted, calls, shown),
        "picture": inputs.picture(record),
        "timeline": waterfall.timeline(record),
        "charts": waterfall.score_charts(record),
        "decided": waterfall.decision_chart(record),
        "changes": difference.changes(record, before),
        "tally": agreement.tally(agents),
        "degraded": agreement.degraded(deliberation),
        "shadow": deliberation.in_shadow,
        "panel": agreement.panel(record),
        "around": surroundings.surroundings(record),
        "beyond": beyond(record),
        "arithmetic": arithmetic.steps(record),
        "consensus": arithmetic.consensus_rows(record),
        "timeframes": arithmetic.consensus_line(record),
        "decision": arithmetic.decision_rows(record),
        "gate": gate_rows(record),
        "components": component_tables(record),
        "memory": memory_rows(record),
        "calls": calls,
        "common": common,
        "quoted": quoted,
        "pruned": bool(deliberation.calls) and not record.calls,
        "why": why(record),
        "veto": vetoes.cause(record),
        "veto_mark": vetoes.mark(record),
        "swarm": deliberation.swarm is not None,
        "brief": swarm.brief(record),
        "thesis": thesis.shown(record, record.limits.escalation if record.limits else None),
        "ahead": any(one["horizon"] for one in agents),
        "denied": [figures.sanitize(reason, 120) for reason in record.denied],
        "signals": record.signals,
        "outcomes": _outcomes(record),
        "provenance": provenance(record),
        "failed_checks": arithmetic.failed_checks(record),
        "records": arithmetic.records_line(record),
        "source_meaning": figures.mark(record.source_type).meaning,
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


def people(record: TickRecord, stages: Sequence[StageShown] = ()) -> list[TranscriptVoice]:
    """Return every agent that was asked or reported, in the order in which they spoke.

    `stages` are those of the transcript: each agent leads to its last entry there.
    """
    deliberation = record.deliberation
    told = {report.agent_id: report for report in deliberation.every_report}
    called: dict[str, list[StoredCall]] = {}
    for call in record.made_calls:
        called.setdefault(call.role_id, []).append(call)
    last = {entry["name"]: entry for entry in transcript.entries_of(stages)}
    seated = [name for stage in deliberation.stages for name in stage.agents]
    left_out = {
        name: word
        for stage in deliberation.stages
        if stage.status == "skipped"
        for name, word in stage.agents.items()
    }
    # seats are in the order of speaking; an agent outside of them must not be lost
    names = dict.fromkeys([*seated, *called, *told])
    return [
        transcript.voice(
            name,
            told.get(name),
            called.get(name, []),
            deliberation,
            left_out.get(name, ""),
            anchor=last[figures.sanitize(name, 40)]["anchor"] if last else "",
            timeframe=record.timeframe,
        )
        for name in names
    ]


def gate_rows(record: TickRecord) -> list[RulingShown]:
    """Return the ruling of the gate's rules, that of its agent, and the one in force."""
    deliberation = record.deliberation
    own = transcript.gate_report(deliberation)
    # the record's own gate wins: it is what was in force
    merged = replace(record.gate.ruling, detail=deliberation.ruling.detail)
    return [
        transcript.rules(record),
        transcript.ruling(
            "Gate agent, its own", own.ruling if own else None, _no_ruling(deliberation)
        ),
        transcript.ruling(
            "In force: the rules alone, in shadow"
            if deliberation.in_shadow
            else "In force: the lower multiplier",
            merged,
        ),
    ]


def _no_ruling(deliberation: DebateRecord) -> str:
    """Return why the gate's agent gave no ruling; one that was not needed did not fail."""
    spared = any(
        NOTHING_OPENS in stage.agents.values()
        for stage in deliberation.stages
        if stage.status == "skipped"
    )
    return "was not asked, as nothing can open; the rules stand" if spared else SILENT_GATE


def component_tables(record: TickRecord) -> list[Components]:
    """Return, for each vector, its components with value, weight and product."""
    return [
        {
            "title": figures.title(vector),
            "score": cell(record.l1.get(vector), figures.FULL_DECIMALS),
            "note": figures.sanitize(record.notes.get(vector), 400),
            "rows": [_component(part) for part in record.components.get(vector, ())],
        }
        for vector in VECTORS
    ]


def memory_rows(record: TickRecord) -> list[Pair]:
    """Return the memory context as names and values."""
    return [
        {"name": figures.title(name), "value": _told(value)}
        for name, value in record.memory.items()
    ]


def provenance(record: TickRecord) -> list[Pair]:
    """Return the inputs by which this tick can be repeated."""
    bars = record.bars
    span = f"{bars.count} from {figures.moment(bars.first)} to {figures.moment(bars.last)}"
    pairs = [
        ("Bars", span),
        ("Hash of the bars", bars.hash),
        ("Profile", record.profile),
        ("Provider", record.provider),
        *record.versions.items(),
    ]
    return [{"name": figures.sanitize(n, 60), "value": _told(value)} for n, value in pairs]


def _component(part: ComponentRecord) -> ComponentRow:
    value, weight = part.value, part.weight
    product = None if value is None else value * weight
    return {
        "name": figures.sanitize(part.name, 60),
        "value": cell(value, figures.FULL_DECIMALS),
        "weight": figures.plain(weight, 3),
        "product": cell(product, figures.FULL_DECIMALS),
        "bar": figures.signed_bar(value),
    }


def _outcomes(record: TickView) -> list[OutcomeRow]:
    """Return the result of each signal; for a close, that of the position that it ended."""
    digits = 5 if record.digits is None else record.digits
    rows = [record.outcomes.get(signal.sid) for signal in record.signals]
    return [_outcome(row, digits) for row in rows if row]


def _outcome(row: SignalOutcome, digits: int) -> OutcomeRow:
    closing = row.kind == "close"
    trade: Trade = (closing and row.state == "FILLED" and row.closed) or row
    ended = trade.state == "CLOSED"
    open_yet = "not closed"
    return {
        "sid": figures.sanitize(row.sid, 40),
        "state": figures.sanitize(row.state, 20),
        "fill": figures.plain(row.price, digits),
        "filled_at": figures.moment(row.opened_at),
        "exit": figures.plain(trade.close_price, digits) if ended else figures.DASH,
        "closed_at": figures.moment(trade.closed_at) if ended else figures.DASH,
        "why": figures.sanitize(trade.close_reason if ended else row.detail, 200),
        "profit": cell(trade.profit if ended else None, 2, open_yet),
        "r": cell(trade.r_multiple if ended else None, 2, open_yet),
    }


def _told(value: JsonValue) -> str:
    if isinstance(value, dict):
        return (
            ", ".join(f"{figures.sanitize(n, 60)} {_told(v)}" for n, v in value.items()) or "none"
        )
    if isinstance(value, list):
        return ", ".join(_told(item) for item in value) or "none"
    return figures.format_any(value)
