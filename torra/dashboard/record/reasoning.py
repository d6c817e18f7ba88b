"""The sections of a tick's page, made from the record of that tick.

A record may lack anything (a skipped tick, an agent that never answered, a deliberation of an older
version); a missing part shows as a dash with the reason. Text of models passes through
`figures.clean`. Pure functions over plain dicts.
This module has the decision, the gate, L1 and the provenance. `transcript` has the conversation,
`citations` and `inputs` what it rests on, `arithmetic` the sums, `waterfall` the drawings and
`difference` the tick before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agents.contracts import VECTORS
from torra.dashboard.record import (
    agreement,
    arithmetic,
    citations,
    difference,
    inputs,
    summary,
    surroundings,
    transcript,
    vetoes,
    waterfall,
)
from torra.dashboard.record.stored import Row, in_shadow, mapping, reports, sequence
from torra.dashboard.record.summary import PROPOSED, PROPOSED_WORDS
from torra.exhibits import figures
from torra.exhibits.figures import cell
from torra.verdict import risk_engine

REASONS: Final = {
    PROPOSED: PROPOSED_WORDS,
    "VERDICT": "the verdict opens a position",
    "POSITION_HELD": "the open position stays",
    "OPPOSITE_VERDICT": "the verdict is against the open position",
    **{reason.value: denial.meaning for reason, denial in risk_engine.DENIALS.items()},
}
"""Meanings of the reason word of an action (torra.verdict.risk_engine)."""

NEAR: Final = 0.005
"""A gap to the threshold below this is written with more decimals."""


def story(
    record: Mapping[str, Any],
    before: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Row:
    """Return the sections of a tick's page.

    `before` is the record of the tick before, None where there is none; `limits` are the profile's
    timeout_seconds and ceiling (USD an hour), as far as they are known.
    """
    deliberation, known = mapping(record.get("deliberation")), mapping(limits)
    features, anchors = citations.evidence(record, deliberation), citations.Anchors()
    stages = transcript.conversation(record, deliberation, features, anchors)
    agents = people(deliberation, record.get("calls"), stages)
    shown = {a["name"]: citations.shown_to(a["name"], features) for a in agents}
    quoted = inputs.quotations(record, stages, features)
    calls, common = inputs.call_rows(_calls(record, deliberation))
    cited = citations.cited(transcript.entries_of(stages), features)
    return {
        "headline": headline(record),
        "summary": summary.summary(record, deliberation, agents, known),
        "note": summary.note(record, deliberation),
        "agents": agents,
        "transcript": stages,
        "rules": transcript.rules(record, deliberation),
        "cited": cited,
        "uncited": citations.uncited(features, cited, shown),
        "codes": {figures.title(name): code for name, code in citations.codes(list(shown)).items()},
        "inputs": inputs.by_agent(record, stages, quoted, calls, shown),
        "picture": inputs.picture(record),
        "timeline": waterfall.timeline(
            record, sequence(deliberation.get("stages")), _calls(record, deliberation), known
        ),
        "charts": waterfall.score_charts(record, deliberation),
        "decided": waterfall.decision_chart(record),
        "changes": difference.changes(record, before),
        "tally": agreement.tally(agents),
        "degraded": agreement.degraded(deliberation),
        "shadow": in_shadow(deliberation),
        "panel": agreement.panel(record, deliberation),
        "around": surroundings.surroundings(record),
        "arithmetic": arithmetic.steps(record, deliberation),
        "consensus": arithmetic.consensus_rows(record),
        "decision": arithmetic.decision_rows(record),
        "gate": gate_rows(record, deliberation),
        "components": component_tables(record),
        "memory": memory_rows(record.get("memory")),
        "calls": calls,
        "common": common,
        "quoted": quoted,
        "pruned": bool(deliberation.get("calls")) and not record.get("calls"),
        "why": why(record),
        "veto": vetoes.cause(record),
        "denied": [figures.clean(reason, 120) for reason in sequence(record.get("denied"))],
        "signals": _signals(record),
        "outcomes": _outcomes(record),
        "provenance": provenance(record),
        "failed_checks": arithmetic.failed_checks(record, deliberation),
        "source_meaning": figures.SOURCES.get(str(record.get("source_type")), ""),
    }


def _calls(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> list[Any]:
    # texts of calls are pruned after a while; the deliberation keeps their figures
    return sequence(record.get("calls")) or sequence(deliberation.get("calls"))


def headline(record: Mapping[str, Any]) -> str:
    """Return one sentence on where the consensus stands against its thresholds."""
    told = standing(record)
    if not told:
        return "No consensus is stored for this tick."
    return f"Consensus {figures.signed(record.get('consensus'), _decimals(record))} {told}."


def standing(record: Mapping[str, Any]) -> str:
    """Return how far a consensus is from the nearer threshold; empty if that is not known."""
    consensus, (sell, buy) = figures.number(record.get("consensus")), _limits(record)
    if consensus is None or buy is None or sell is None:
        return ""
    side, limit = ("BUY", buy) if consensus >= 0 else ("SELL", sell)
    shown = f"{side} threshold {figures.signed(limit, 2)}"
    if abs(consensus) >= abs(limit):
        return f"reaches the {shown}"
    gap = abs(limit) - abs(consensus)
    return f"is {figures.plain(gap, _decimals(record))} short of the {shown}"


def why(record: Mapping[str, Any]) -> str:
    """Return the reason word of an action with its meaning; a host's own text stays as it is."""
    word = figures.clean(record.get("reason"), 300)
    if word == "THRESHOLD":
        return ""  # the standing of the consensus says it
    meaning = REASONS.get(word, "")
    if word == "GATE_VETO":
        meaning = vetoes.cause(record) or meaning
    return f"{word}: {meaning}" if meaning else word


def _decimals(record: Mapping[str, Any]) -> int:
    """Return more decimals if three would hide on which side of a threshold the number is."""
    consensus = figures.number(record.get("consensus")) or 0.0
    gaps = [abs(consensus - limit) for limit in _limits(record) if limit is not None]
    near = any(gap < NEAR for gap in gaps)
    return figures.FULL_DECIMALS if near else figures.SCORE_DECIMALS


def _limits(record: Mapping[str, Any]) -> tuple[float | None, float | None]:
    known = mapping(record.get("thresholds"))
    sell = figures.number(known.get("sell"))
    return None if sell is None else -sell, figures.number(known.get("buy"))


def people(deliberation: Mapping[str, Any], calls: Any, stages: Sequence[Row] = ()) -> list[Row]:
    """Return every agent that was asked or reported, in the order in which they spoke.

    `stages` are those of the transcript: each agent leads to its last entry there.
    """
    told = {str(report.get("agent_id")): report for report in reports(deliberation)}
    called: dict[str, list[Row]] = {}
    for call in map(mapping, sequence(calls or deliberation.get("calls"))):
        called.setdefault(str(call.get("role_id")), []).append(call)
    last = {entry["name"]: entry for entry in transcript.entries_of(stages)}
    seated = [
        str(name)
        for stage in map(mapping, sequence(deliberation.get("stages")))
        for name in sequence(stage.get("agents"))
    ]
    # seats are in the order of speaking; an agent outside of them must not be lost
    names = dict.fromkeys([*seated, *called, *told])
    return [
        transcript.voice(name, told.get(name, {}), called.get(name, []), deliberation)
        | {"anchor": last[figures.clean(name, 40)]["anchor"] if last else ""}
        for name in names
    ]


def gate_rows(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> list[Row]:
    """Return the ruling of the gate's rules, that of its agent, and the one in force."""
    gate = mapping(record.get("gate"))
    model = mapping(transcript.heard_gate(deliberation).get("ruling"))
    # the record's own gate wins: it is what was in force
    merged = mapping(deliberation.get("ruling")) | gate
    return [
        transcript.rules(record, deliberation),
        transcript.ruling("Gate agent, its own", model, "did not answer; the rules stand"),
        transcript.ruling(
            "In force: the rules alone, in shadow"
            if in_shadow(deliberation)
            else "In force: the lower multiplier",
            merged,
            "no ruling was recorded",
        ),
    ]


def component_tables(record: Mapping[str, Any]) -> list[Row]:
    """Return, for each vector, its components with value, weight and product."""
    notes, scores = mapping(record.get("notes")), mapping(record.get("l1"))
    tables = []
    for vector in VECTORS:
        parts = sequence(mapping(record.get("components")).get(vector))
        tables.append(
            {
                "title": figures.title(vector),
                "score": cell(scores.get(vector), figures.FULL_DECIMALS),
                "note": figures.clean(notes.get(vector), 400),
                "rows": [_component(mapping(part)) for part in parts],
            }
        )
    return tables


def memory_rows(memory: Any) -> list[Row]:
    """Return the memory context as names and values."""
    return [
        {"name": figures.title(str(name)), "value": _told(value)}
        for name, value in mapping(memory).items()
    ]


def provenance(record: Mapping[str, Any]) -> list[Row]:
    """Return the inputs by which this tick can be repeated."""
    bars = mapping(record.get("bars"))
    pairs = [
        (
            "Bars",
            f"{bars.get('count', figures.DASH)} from {figures.moment(bars.get('from'))} "
            f"to {figures.moment(bars.get('to'))}"
            if bars
            else figures.DASH,
        ),
        ("Hash of the bars", bars.get("hash")),
        ("Profile", record.get("profile")),
        ("Provider", record.get("provider")),
        *mapping(record.get("versions")).items(),
    ]
    return [{"name": figures.clean(n, 60), "value": _told(value)} for n, value in pairs]


def _component(part: Mapping[str, Any]) -> Row:
    value, weight = figures.number(part.get("value")), figures.number(part.get("weight"))
    product = None if value is None or weight is None else value * weight
    return {
        "name": figures.clean(part.get("name"), 60),
        "value": cell(value, figures.FULL_DECIMALS),
        "weight": figures.plain(weight, 3),
        "product": cell(product, figures.FULL_DECIMALS),
        "bar": figures.signed_bar(value),
    }


def _feature(item: Any) -> Row:
    feature = mapping(item)
    return {
        "id": figures.clean(feature.get("id"), 80),
        "value": figures.loose(feature.get("value")),
        "unit": figures.clean(feature.get("unit"), 40),
    }


def _signals(record: Mapping[str, Any]) -> list[Row]:
    listed = sequence(record.get("signals")) or [record.get("signal")]
    return [dict(mapping(signal)) for signal in listed if signal]


def _outcomes(record: Mapping[str, Any]) -> list[Row]:
    """Return the result of each signal; for a close, that of the position that it ended."""
    digits = record.get("digits")
    found = mapping(record.get("outcomes"))
    rows = [mapping(found.get(str(signal.get("sid")))) for signal in _signals(record)]
    return [_outcome(row, 5 if digits is None else int(digits)) for row in rows if row]


def _outcome(row: Mapping[str, Any], digits: int) -> Row:
    closing = row.get("kind") == "close"
    trade = mapping(row.get("closed")) if closing and row.get("state") == "FILLED" else dict(row)
    ended = trade.get("state") == "CLOSED"
    open_yet = "not closed"
    return {
        "sid": figures.clean(row.get("sid"), 40),
        "state": figures.clean(row.get("state"), 20),
        "fill": figures.plain(row.get("price"), digits),
        "filled_at": figures.moment(row.get("opened_at")),
        "exit": figures.plain(trade.get("close_price"), digits) if ended else figures.DASH,
        "closed_at": figures.moment(trade.get("closed_at")) if ended else figures.DASH,
        "why": figures.clean(trade.get("close_reason") if ended else row.get("detail"), 200),
        "profit": cell(trade.get("profit") if ended else None, 2, open_yet),
        "r": cell(trade.get("r_multiple") if ended else None, 2, open_yet),
    }


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{figures.clean(n, 60)} {_told(v)}" for n, v in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(_told(item) for item in value) or "none"
    return figures.loose(value)
