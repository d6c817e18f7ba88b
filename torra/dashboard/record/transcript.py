"""The debate of one tick as a conversation: who spoke when, what each said, and on what evidence.

Stages come in the order in which the desk held them. Each lists everyone who was asked, including
those who abstained, failed or were left out. A case that a later round replaced stays in its own
round. An agent's words are shown as stored, with its citations judged against the evidence
(citations). A clamped number stands beside the intended one while the reply is still stored.
A record may lack anything; nothing raises. Pure functions over plain dicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agents.contracts import VECTORS, Feature
from agents.debate.panel import measure
from agents.debate.synthesis import Answer
from agents.registry import AGENTS, SCORER
from torra.dashboard.record import agreement, arithmetic, citations, surroundings
from torra.dashboard.record.stored import GATE, Row, is_gate, mapping, reports, sequence
from torra.exhibits import figures
from torra.exhibits.figures import cell

PHASES: Final = {
    "analysts": ("Analysts", "asked at once; none of them sees another's words"),
    "research": ("Debate", "bull and bear at once, each with the analysts' reports"),
    "gate": ("Gate", "sees every report; may only lower the multiplier or add a veto"),
    "fallback": ("Fallback", "nobody answered: one model scores the chart instead"),
    "": ("Agents", "no stage is recorded"),
}
"""Title and description of each stage of a debate (agents.debate.sitting)."""

AGAIN: Final = "bull and bear again, each with the other's case of the round before"
STAGES: Final = {
    "ok": "everybody answered or abstained",
    "partial": "some gave no answer",
    "failed": "nobody gave an answer",
    "skipped": "left out",
}
"""Meanings of the status of a stage."""

SPOKE: Final = ("answered", "abstained")
RAW_CHARS: Final = 100_000
"""Most characters of a reply that is parsed again to find the numbers before clamping."""


def conversation(
    record: Mapping[str, Any],
    deliberation: Mapping[str, Any],
    features: Mapping[str, Feature],
    anchors: citations.Anchors,
) -> list[Row]:
    """Return the stages in order, each with its entries; the anchors count through all of them."""
    calls = _called(record, deliberation)
    kept = _kept(deliberation)
    stages, number = [], 0
    for stage in _stages(deliberation, calls):
        entries = []
        for name, word in stage["agents"].items():
            number += 1
            place = (stage["name"], stage["round"], name)
            said = kept.get(place, {})
            made = calls.get(place, [])
            entry = voice(name, said, made, deliberation, word)
            entry |= _of_its_round(name, said, made, record, features, anchors)
            entry |= {"anchor": f"said-{number}", "round": stage["round"], "phase": stage["name"]}
            entry["replaced"] = bool(said) and _is_replaced(place, kept)
            entries.append(entry)
        stages.append(_stage(stage, entries))
    return stages


def voice(
    name: str, said: Row, calls: Sequence[Row], deliberation: Mapping[str, Any], word: str = ""
) -> Row:
    """Return what one agent said, or why it said nothing.

    `word` is how its stage ended for it: answered, abstained or why not; "" if that is not stored.
    """
    weight = arithmetic.trust(said)
    votes = mapping(said.get("adjustments"))
    failure = mapping(deliberation.get("failures")).get(name)
    unasked = agreement.unasked(deliberation, name)
    state = _state(name, said, calls, failure, word)
    missing = "the gate scores nothing" if name == GATE else "not scored"
    return {
        "name": figures.clean(name, 40),
        "title": figures.title(name),
        "who": figures.title(name),
        "mark": figures.mark(state),
        "confidence": figures.clean(said.get("confidence"), 20) if weight is not None else "",
        "trust": figures.plain(weight, 3),
        "adjustments": [cell(votes.get(v), 3, missing if said else state) for v in VECTORS],
        "reasoning": figures.clean(said.get("reasoning")),
        "key_points": [figures.clean(p, 400) for p in sequence(said.get("key_points"))],
        "flags": [figures.clean(flag, 60) for flag in sequence(said.get("flags"))],
        "looks": agreement.looks(deliberation, name),
        "ordinals": agreement.ordinals(said),
        "falsifiers": agreement.falsifiers(said),
        "why_silent": _why_silent(said, calls, failure or word, state) if said or not unasked
        else unasked,
        "ruling": ruling("", mapping(said.get("ruling")), "") if said.get("ruling") else None,
        "ms": figures.plain(summed(calls, "elapsed_ms"), 0),
        "cost": figures.money(summed(calls, "cost_usd")),
        "tries": len(calls),
    }  # fmt: skip


def ruling(name: str, told: Mapping[str, Any], missing: str) -> Row:
    """Return a ruling of the gate as a page shows it; `missing` says why there is none."""
    if not told:
        return {
            "name": name,
            "multiplier": figures.DASH,
            "veto": "",
            "reasons": [],
            "note": missing,
        }
    reasons = [figures.clean(r, 60) for r in sequence(told.get("reasons")) if r != "NONE"]
    return {
        "name": name,
        "multiplier": figures.plain(told.get("multiplier"), 3),
        "veto": figures.mark("VETO").text if told.get("veto") else "no veto",
        "reasons": reasons,
        "note": figures.clean(told.get("detail"), 600),
    }


def summed(calls: Sequence[Row], name: str) -> float | None:
    """Return the sum of a number over some calls, None without any call."""
    return sum(figures.number(call.get(name)) or 0.0 for call in calls) if calls else None


def raw_votes(calls: Sequence[Row]) -> dict[str, float]:
    """Return the adjustments of the last usable reply as the model gave them, before any bound."""
    good = [call for call in calls if call.get("status") == "ok"]
    told = _reply(good[-1]) if good else {}
    votes = mapping(told.get("adjustments"))
    known = {vector: figures.number(votes.get(vector)) for vector in VECTORS}
    return {vector: value for vector, value in known.items() if value is not None}


def _of_its_round(
    name: str,
    said: Row,
    calls: Sequence[Row],
    record: Mapping[str, Any],
    features: Mapping[str, Feature],
    anchors: citations.Anchors,
) -> Row:
    """Return the parts of an entry besides the voice: citations, stance, votes before clamping."""
    more: Row = {
        "evidence": citations.chips(said, features, anchors),
        "stance": _stance(name, said, record),
        "votes": _votes(said, calls),
    }
    if name == SCORER.id and not said:
        more |= _scored(calls)
    return more


def _votes(said: Row, calls: Sequence[Row]) -> list[Row]:
    """Return the adjustments that an agent gave, each with its value before clamping."""
    votes = mapping(said.get("adjustments"))
    meant = raw_votes(calls) if "clamped" in sequence(said.get("flags")) else {}
    rows = []
    for vector in VECTORS:
        value = figures.number(votes.get(vector))
        if value is None:
            continue
        # the flag says that the report was clamped, not which of its numbers
        cut = vector in meant and abs(meant[vector] - value) > 1e-9
        rows.append(
            {
                "name": figures.title(vector),
                "value": cell(value),
                "meant": figures.signed(meant[vector]) if cut else "",
            }
        )
    return rows


def _stance(name: str, said: Row, record: Mapping[str, Any]) -> Row | None:
    """Return which way an agent sees the market, by the panel's own arithmetic; None without."""
    report, seat = arithmetic.as_report(said), AGENTS.get(name)
    l1 = arithmetic.l1_scores(record)
    if report is None or seat is None or report.abstained or not l1:
        return None
    if seat.role.kind == "analyst":
        # alone: an analyst's stance depends on its own numbers only
        alone = measure([Answer(seat.role, report)], dict.fromkeys(VECTORS, 0.0), l1)
        mean = alone.stances.get(seat.role.id)
    else:
        views = [l1[v] + vote for v, vote in report.adjustments.items() if vote is not None]
        mean = sum(views) / len(views) if views else None
    return None if mean is None else agreement.stance(name, mean)


def _scored(calls: Sequence[Row]) -> Row:
    """Return the scores of the single-model scorer, from its reply."""
    # the scorer makes no report: its reply is all that is stored of it
    good = [call for call in calls if call.get("status") == "ok"]
    told = _reply(good[-1]) if good else {}
    scores = {v: figures.number(mapping(told.get(v)).get("score")) for v in VECTORS}
    rows = [
        {"name": figures.title(v), "value": cell(value), "meant": ""}
        for v, value in scores.items()
        if value is not None
    ]
    return {"votes": rows, "scored": bool(rows), "reasoning": figures.clean(told.get("summary"))}


def _reply(call: Mapping[str, Any]) -> Row:
    text = call.get("reply")
    if not isinstance(text, str) or len(text) > RAW_CHARS:
        return {}
    try:
        return mapping(json.loads(text))
    # a model may nest its JSON deeper than Python reads
    except (ValueError, RecursionError):
        return {}


def _called(
    record: Mapping[str, Any], deliberation: Mapping[str, Any]
) -> dict[tuple[str, int, str], list[Row]]:
    """Return the calls by stage, round and agent."""
    found: dict[tuple[str, int, str], list[Row]] = {}
    rows = sequence(record.get("calls")) or sequence(deliberation.get("calls"))
    for call in map(mapping, rows):
        role = str(call.get("role_id"))
        stage = "fallback" if role == SCORER.id else str(call.get("stage") or "")
        found.setdefault((stage, _round(call), role), []).append(call)
    return found


def _stages(
    deliberation: Mapping[str, Any], calls: Mapping[tuple[str, int, str], Sequence[Row]]
) -> list[Row]:
    """Return every stage with the word of each agent; an agent of no stage gets one at the end."""
    stages: list[Row] = [
        {
            "name": str(told.get("name") or ""),
            "round": _round(told),
            "agents": _words(told.get("agents")),
            "ms": told.get("ms"),
            "status": str(told.get("status") or ""),
        }
        for told in map(mapping, sequence(deliberation.get("stages")))
    ]
    seated = {(stage["name"], stage["round"], name) for stage in stages for name in stage["agents"]}
    known = {name for _, _, name in seated}
    stray: dict[tuple[str, int], dict[str, str]] = {}
    for name, number, role in calls:
        if (name, number, role) not in seated:
            stray.setdefault((name, number), {})[role] = ""
            known.add(role)
    for report in reports(deliberation):
        role = str(report.get("agent_id"))
        if role not in known:
            stray.setdefault(("", 1), {})[role] = ""
    more = [
        {"name": name, "round": number, "agents": agents, "ms": None, "status": ""}
        for (name, number), agents in stray.items()
    ]
    return [*stages, *more]


def _kept(deliberation: Mapping[str, Any]) -> dict[tuple[str, int, str], Row]:
    """Return each report by the stage, round and agent that it came of.

    Of several rounds the last answered one counts and stands among `reports`; the cases that it
    replaced stand in `earlier`, oldest first.
    """
    told: dict[str, list[Row]] = {}
    listed = [*map(mapping, sequence(deliberation.get("earlier"))), *reports(deliberation)]
    for report in listed:
        told.setdefault(str(report.get("agent_id")), []).append(report)
    places: dict[str, list[tuple[str, int, str]]] = {name: [] for name in told}
    spoken: dict[str, bool] = {}
    for stage in map(mapping, sequence(deliberation.get("stages"))):
        for name, word in _words(stage.get("agents")).items():
            # who abstains after an answer keeps that answer, so the report is of the round before
            quiet = word == "abstained" and spoken.get(name, False)
            if name in places and word in (*SPOKE, "") and not quiet:
                places[name].append((str(stage.get("name") or ""), _round(stage), name))
                spoken[name] = spoken.get(name, False) or word == "answered"
    found: dict[tuple[str, int, str], Row] = {}
    for name, rows in told.items():
        free = places[name] or [("", 1, name)]
        # from the end: the newest report is of the newest round, and odd records lack old ones
        found |= dict(zip(free[-len(rows) :], rows[-len(free) :], strict=True))
    return found


def _words(agents: Any) -> dict[str, str]:
    if isinstance(agents, Mapping):
        return {str(name): str(word) for name, word in agents.items()}
    return {str(name): "" for name in sequence(agents)}


def _round(told: Mapping[str, Any]) -> int:
    known = figures.number(told.get("round"))
    return int(known) if known is not None and 0 < known < 100 else 1


def _is_replaced(place: tuple[str, int, str], kept: Mapping[tuple[str, int, str], Row]) -> bool:
    stage, number, name = place
    return any(s == stage and who == name and n > number for s, n, who in kept)


def _stage(stage: Row, entries: list[Row]) -> Row:
    title, note = PHASES.get(stage["name"], (figures.title(stage["name"]), ""))
    rounds = stage["name"] == "research"
    return {
        "name": figures.clean(stage["name"], 20),
        "title": f"{title}, round {stage['round']}" if rounds else title,
        "note": AGAIN if rounds and stage["round"] > 1 else note,
        "ms": figures.plain(stage["ms"], 0),
        "status": figures.clean(stage["status"], 20),
        "meaning": STAGES.get(stage["status"], ""),
        "entries": entries,
    }


def _state(name: str, said: Row, calls: Sequence[Row], failure: Any, word: str) -> str:
    if said:
        return "abstained" if said.get("abstained") else "answered"
    if failure:
        return "failed"
    if name == SCORER.id and any(call.get("status") == "ok" for call in calls):
        return "answered"
    if word in SPOKE:
        return word
    return "failed" if calls else "not asked"


def _why_silent(said: Row, calls: Sequence[Row], failure: Any, state: str) -> str:
    if said or state in SPOKE:
        return surroundings.plain_reason(said.get("reason")) if said.get("abstained") else ""
    last = calls[-1] if calls else {}
    told = [failure or last.get("status"), last.get("detail")]
    words = [figures.clean(word, 300) for word in told if word]
    return ": ".join(dict.fromkeys(words)) or "no call was made"


def entries_of(stages: Iterable[Row]) -> list[Row]:
    """Return the entries of all stages in order."""
    return [entry for stage in stages for entry in stage["entries"]]


def rules(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> Row:
    """Return the ruling of the gate's rules, before its agent was asked."""
    gate = mapping(record.get("gate"))
    told = mapping(gate.get("rule")) or mapping(deliberation.get("rule_ruling"))
    return ruling("Rules", told, "no rule was recorded")


def heard_gate(deliberation: Mapping[str, Any]) -> Row:
    """Return the gate agent's own report, empty when it gave none."""
    asked = [report for report in reports(deliberation) if is_gate(report)]
    return asked[0] if asked else {}
