"""One tick's record turned into the sections of its page: who said what, the gate, L1, the calls.

A record may lack anything (a skipped tick, an agent that never answered, a deliberation of an older
version): what is missing shows as a dash with the reason. Pure functions over plain dicts; text of
models passes through `figures.clean`. The sums are left to `arithmetic`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agents.contracts import VECTORS
from torra import risk_engine
from torra.dashboard import agreement, arithmetic, figures, surroundings, vetoes
from torra.dashboard.figures import cell
from torra.dashboard.stored import GATE, Row, is_gate, mapping, reports, sequence

REASONS: Final = {
    "VERDICT": "the verdict opens a position",
    "POSITION_HELD": "the open position stays",
    "OPPOSITE_VERDICT": "the verdict is against the open position",
    **{reason.value: denial.meaning for reason, denial in risk_engine.DENIALS.items()},
}
"""What the one word of an action means (torra.risk_engine)."""

NEAR: Final = 0.005
"""A gap to the threshold below this is told with more decimals."""


def story(record: Mapping[str, Any]) -> Row:
    """Return the sections of a tick's page."""
    deliberation = mapping(record.get("deliberation"))
    agents = people(deliberation, record.get("calls"))
    return {
        "headline": headline(record),
        "agents": agents,
        "tally": agreement.tally(agents),
        "degraded": agreement.degraded(deliberation),
        "panel": agreement.panel(record, deliberation),
        "around": surroundings.surroundings(record),
        "arithmetic": arithmetic.steps(record, deliberation),
        "consensus": arithmetic.consensus_rows(record),
        "decision": arithmetic.decision_rows(record),
        "gate": gate_rows(record, deliberation),
        "components": component_tables(record),
        "features": [_feature(item) for item in sequence(record.get("features"))],
        "memory": memory_rows(record.get("memory")),
        "calls": call_rows(record.get("calls") or deliberation.get("calls")),
        "pruned": bool(deliberation.get("calls")) and not record.get("calls"),
        "stages": [_stage(item) for item in sequence(deliberation.get("stages"))],
        "flags": [figures.clean(flag, 120) for flag in sequence(deliberation.get("flags"))],
        "why": why(record),
        "veto": vetoes.cause(record),
        "denied": [figures.clean(reason, 120) for reason in sequence(record.get("denied"))],
        "signals": _signals(record),
        "outcomes": _outcomes(record),
        "provenance": provenance(record),
        "failed_checks": arithmetic.failed_checks(record, deliberation),
        "source_meaning": figures.SOURCES.get(str(record.get("source_type")), ""),
    }


def headline(record: Mapping[str, Any]) -> str:
    """Say in one sentence where the consensus stands against its thresholds."""
    told = standing(record)
    if not told:
        return "No consensus is stored for this tick."
    return f"Consensus {figures.signed(record.get('consensus'), _decimals(record))} {told}."


def standing(record: Mapping[str, Any]) -> str:
    """Say how far a consensus is from the nearer threshold; empty when that is not known."""
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
    """Return the word why an action was taken with its meaning; text of a host stays as it is."""
    word = figures.clean(record.get("reason"), 300)
    if word == "THRESHOLD":
        return ""  # the standing of the consensus says it
    meaning = REASONS.get(word, "")
    if word == "GATE_VETO":
        meaning = vetoes.cause(record) or meaning
    return f"{word}: {meaning}" if meaning else word


def _decimals(record: Mapping[str, Any]) -> int:
    """Return more decimals where three would hide on which side of a threshold a number lies."""
    consensus = figures.number(record.get("consensus")) or 0.0
    gaps = [abs(consensus - limit) for limit in _limits(record) if limit is not None]
    near = any(gap < NEAR for gap in gaps)
    return figures.FULL_DECIMALS if near else figures.SCORE_DECIMALS


def _limits(record: Mapping[str, Any]) -> tuple[float | None, float | None]:
    known = mapping(record.get("thresholds"))
    sell = figures.number(known.get("sell"))
    return None if sell is None else -sell, figures.number(known.get("buy"))


def people(deliberation: Mapping[str, Any], calls: Any) -> list[Row]:
    """Return every agent that was asked or reported, in the order in which they spoke."""
    told = {str(report.get("agent_id")): report for report in reports(deliberation)}
    called: dict[str, list[Row]] = {}
    for call in map(mapping, sequence(calls or deliberation.get("calls"))):
        called.setdefault(str(call.get("role_id")), []).append(call)
    seated = [
        str(name)
        for stage in map(mapping, sequence(deliberation.get("stages")))
        for name in sequence(stage.get("agents"))
    ]
    names = dict.fromkeys([*seated, *called, *told])
    return [_person(name, told.get(name, {}), called.get(name, []), deliberation) for name in names]


def gate_rows(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> list[Row]:
    """Return the gate's arithmetic, the model's ruling and what became of both."""
    gate = mapping(record.get("gate"))
    rule = mapping(gate.get("rule")) or mapping(deliberation.get("rule_ruling"))
    asked = [mapping(r).get("ruling") for r in reports(deliberation) if is_gate(r)]
    model = mapping(asked[0]) if asked else {}
    merged = mapping(deliberation.get("ruling")) | gate
    return [
        _ruling("Rules", rule, "no rule was recorded"),
        _ruling("Gate agent, its own", model, "did not answer; the rules stand"),
        _ruling("In force: the lower multiplier", merged, "no ruling was recorded"),
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


def call_rows(calls: Any) -> list[Row]:
    """Return every call with its cost and, behind a disclosure, what was asked and answered."""
    return [_call(mapping(call)) for call in sequence(calls)]


def provenance(record: Mapping[str, Any]) -> list[Row]:
    """Return what somebody needs to repeat this tick."""
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


def _person(name: str, said: Row, calls: Sequence[Row], deliberation: Mapping[str, Any]) -> Row:
    weight = arithmetic.trust(said)
    votes = mapping(said.get("adjustments"))
    failure = mapping(deliberation.get("failures")).get(name)
    unasked = agreement.unasked(deliberation, name)
    state = _state(said, calls, failure)
    missing = "the gate scores nothing" if name == GATE else "not scored"
    return {
        "title": figures.title(name),
        "mark": figures.mark(state),
        "confidence": figures.clean(said.get("confidence"), 20) if weight is not None else "",
        "trust": figures.plain(weight, 3),
        "adjustments": [cell(votes.get(v), 3, missing if said else state) for v in VECTORS],
        "reasoning": figures.clean(said.get("reasoning")),
        "key_points": [figures.clean(p, 400) for p in sequence(said.get("key_points"))],
        "evidence": [_evidence(item) for item in sequence(said.get("evidence"))],
        "flags": [figures.clean(flag, 60) for flag in sequence(said.get("flags"))],
        "looks": agreement.looks(deliberation, name),
        "ordinals": agreement.ordinals(said),
        "falsifiers": agreement.falsifiers(said),
        "why_silent": _why_silent(said, calls, failure) if said or not unasked else unasked,
        "ruling": _ruling("", mapping(said.get("ruling")), "") if said.get("ruling") else None,
        "ms": figures.plain(_summed(calls, "elapsed_ms"), 0),
        "cost": figures.money(_summed(calls, "cost_usd")),
    }


def _state(said: Row, calls: Sequence[Row], failure: Any) -> str:
    if said:
        return "abstained" if said.get("abstained") else "answered"
    return "failed" if calls or failure else "not asked"


def _why_silent(said: Row, calls: Sequence[Row], failure: Any) -> str:
    if said:
        return surroundings.plain_reason(said.get("reason")) if said.get("abstained") else ""
    last = calls[-1] if calls else {}
    told = [failure or last.get("status"), last.get("detail")]
    words = [figures.clean(word, 300) for word in told if word]
    return ": ".join(dict.fromkeys(words)) or "no call was made"


def _summed(calls: Sequence[Row], name: str) -> float | None:
    return sum(figures.number(call.get(name)) or 0.0 for call in calls) if calls else None


def _evidence(item: Any) -> Row:
    pair = item if isinstance(item, Mapping) else dict(zip(("id", "value"), item, strict=False))
    return {"id": figures.clean(pair.get("id"), 80), "value": figures.loose(pair.get("value"))}


def _ruling(name: str, ruling: Mapping[str, Any], missing: str) -> Row:
    if not ruling:
        return {
            "name": name,
            "multiplier": figures.DASH,
            "veto": "",
            "reasons": [],
            "note": missing,
        }
    reasons = [figures.clean(r, 60) for r in sequence(ruling.get("reasons")) if r != "NONE"]
    return {
        "name": name,
        "multiplier": figures.plain(ruling.get("multiplier"), 3),
        "veto": figures.mark("VETO").text if ruling.get("veto") else "no veto",
        "reasons": reasons,
        "note": figures.clean(ruling.get("detail"), 600),
    }


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


def _stage(item: Any) -> Row:
    stage = mapping(item)
    return {
        "name": figures.title(str(stage.get("name"))),
        "agents": ", ".join(figures.title(str(a)) for a in sequence(stage.get("agents"))),
        "ms": figures.plain(stage.get("ms"), 0),
        "status": figures.clean(stage.get("status"), 40),
    }


def _call(call: Mapping[str, Any]) -> Row:
    return {
        "role": figures.title(str(call.get("role_id"))),
        "stage": figures.clean(call.get("stage"), 40),
        "try": f"{call.get('round', figures.DASH)}.{call.get('attempt', figures.DASH)}",
        "status": figures.clean(call.get("status"), 40),
        "good": call.get("status") == "ok",
        "detail": figures.clean(call.get("detail"), 400),
        "model": figures.clean(call.get("model"), 60),
        "ms": figures.plain(call.get("elapsed_ms"), 0),
        "tokens": f"{figures.plain(call.get('input_tokens'), 0)} / "
        f"{figures.plain(call.get('output_tokens'), 0)}",
        "cost": figures.money(call.get("cost_usd")),
        "system": figures.clean(call.get("system"), 20_000),
        "user": figures.clean(call.get("user"), 20_000),
        "reply": figures.clean(call.get("reply"), 20_000),
        "hash": figures.clean(call.get("request_hash"), 80),
    }


def _signals(record: Mapping[str, Any]) -> list[Row]:
    listed = sequence(record.get("signals")) or [record.get("signal")]
    return [dict(mapping(signal)) for signal in listed if signal]


def _outcomes(record: Mapping[str, Any]) -> list[Row]:
    """Return what has become of each signal; a close tells of the position that it ended."""
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
