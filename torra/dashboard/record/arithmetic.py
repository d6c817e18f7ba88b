"""The arithmetic of one tick: every step from the four L1 scores to the verdict.

This module also recomputes each step from the numbers of the record, the debate with the overlay's
own synthesis. `failed_checks` names the steps that do not come out as stored. A number that the
record lacks is a dash with the reason; a check that lacks a number is left out. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agent_config import FOCUS_WEIGHT
from agents.contracts import ADJUSTMENT_BOUND, BLEND_WEIGHT, RESEARCHER_BOUND, VECTORS, AgentReport
from agents.debate import panel, synthesis
from agents.registry import AGENTS
from torra.dashboard.record import agreement
from torra.dashboard.record.stored import (
    GATE,
    NOT_COUNTED,
    Row,
    in_shadow,
    is_gate,
    mapping,
    reports,
    said_multiplier,
    sequence,
)
from torra.dashboard.record.summary import proposed
from torra.exhibits import figures
from torra.exhibits.figures import cell

TOLERANCE: Final = 1e-6
"""A recomputed step may differ from the stored one by this much."""

NO_AGENT: Final = "no agent scored this vector"
NO_DEBATE: Final = "no agent was heard"


def steps(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> list[Row]:
    """Return the steps from L1 to the composite, one row each, four vectors and ATH as columns."""
    voices = _voices(deliberation)
    silent = NO_DEBATE if deliberation else "no deliberation is stored"
    debated = deliberation if voices else {}  # a sum over nobody is not a zero that was said
    mark = f"; {NOT_COUNTED}" if in_shadow(deliberation) else ""
    return [
        _scores("L1 score", "from the bars alone", record.get("l1"), kind="base"),
        *voices,
        _scores(
            "Analyst average",
            "Σ f k a / Σ f over the analysts that scored it",
            debated.get("analyst_avg"),
            missing=silent,
        ),
        _scores(
            "Debate",
            "average + (k bull + k bear) / 2",
            debated.get("debate"),
            missing=silent,
        ),
        _numbers(
            "Gate multiplier",
            f"the lower of rules and gate agent{mark or ', in force'}",
            dict.fromkeys(VECTORS, said_multiplier(record, deliberation)),
        ),
        _scores(
            "Adjustment",
            f"debate × multiplier, within ±{ADJUSTMENT_BOUND:.2f}{mark}",
            record.get("adjustments"),
        ),
        _scores("Agent score", f"L1 + adjustment, within ±1{mark}", record.get("agents")),
        _scores(
            "Blended score",
            "L1 alone: the agents looked on"
            if mark
            else f"{1 - BLEND_WEIGHT:.2f} L1 + {BLEND_WEIGHT:.2f} agent score",
            _finals(record),
            kind="base",
        ),
        _numbers("Weight", "of the composite", mapping(record.get("weights"))),
        _scores("Contribution", "score × weight ÷ sum of the weights", contributions(record)),
    ]


def failed_checks(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> list[str]:
    """Return the steps that do not come out as stored when they are recomputed."""
    return [
        name for name, expected, kept in _checks(record, deliberation) if _differs(expected, kept)
    ]


def consensus_rows(record: Mapping[str, Any]) -> list[Row]:
    """Return each timeframe's composite with its weight and its share of the consensus."""
    entries = _composites(record)
    shares = _shares(entries)
    return [
        {
            "timeframe": figures.clean(name, 12),
            "close_time": figures.moment(entry.get("close_time")),
            "composite": cell(entry.get("composite"), figures.FULL_DECIMALS),
            "weight": figures.plain(entry.get("weight"), 2),
            "share": cell(shares.get(name), figures.FULL_DECIMALS, "stale: left out"),
            "state": "fresh" if entry.get("fresh") else "stale, left out",
        }
        for name, entry in entries.items()
    ]


def decision_rows(record: Mapping[str, Any]) -> list[Row]:
    """Return the last steps, with the agents and for L1 alone: composite to action."""
    return [
        _pair("Composite", record, "composite", "l1_composite"),
        _pair("Consensus", record, "consensus", "l1_consensus"),
        {"name": "Thresholds", "final": _thresholds(record), "l1": "the same"},
        {
            "name": "Verdict",
            "final": figures.mark(record.get("verdict")).text,
            "l1": figures.mark(record.get("l1_verdict")).text,
        },
        {
            "name": "Low and high consensus: where an opening must stand too",
            "final": f"{_full(record.get('low_consensus'))}, {_full(record.get('high_consensus'))}",
            "l1": figures.DASH,
        },
        {
            "name": "Action",
            "final": "◔ proposed" if proposed(record) else figures.mark(record.get("action")).text,
            "l1": "measured, never sent",
        },
    ]


def as_report(told: Mapping[str, Any]) -> AgentReport | None:
    """Return a stored report as the overlay's own value, None when it cannot be one."""
    confidence = told.get("confidence")
    if confidence not in ("high", "medium", "low"):
        return None
    votes = mapping(told.get("adjustments"))
    return AgentReport(
        agent_id=str(told.get("agent_id")),
        adjustments={vector: figures.number(votes.get(vector)) for vector in VECTORS},
        confidence=confidence,
        flags=tuple(str(flag) for flag in sequence(told.get("flags"))),
        abstained=bool(told.get("abstained")),
    )


def l1_scores(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the four scores of L1; none unless all are known."""
    known = {vector: figures.number(_part(record, "l1", vector)) for vector in VECTORS}
    found = {vector: value for vector, value in known.items() if value is not None}
    return found if len(found) == len(VECTORS) else {}


def trust(told: Mapping[str, Any]) -> float | None:
    """Return the trust k of a stored report; None when it abstained or cannot be read."""
    report = as_report(told)
    return None if report is None or report.abstained else synthesis.trust(report)


def _checks(
    record: Mapping[str, Any], deliberation: Mapping[str, Any]
) -> Iterable[tuple[str, float | None, Any]]:
    """Yield every step: its name, as recomputed, as stored."""
    answers = _answers(deliberation)
    debate = synthesis.synthesise(answers) if answers else None
    scores = l1_scores(record)
    if debate is not None and scores and deliberation.get("panel"):
        # the gate is no voice of the panel: conviction does not fall with its failure
        failed = [name for name in sequence(deliberation.get("failures")) if name != GATE]
        agreed = panel.measure(answers, debate.debate, scores, failed)
        yield from agreement.checks(deliberation, agreed)
    for vector in VECTORS:
        name = figures.title(vector).lower()
        if debate is not None:
            average, shifted = debate.analyst_avg[vector], debate.debate[vector]
            yield f"analyst average of {name}", average, _part(deliberation, "analyst_avg", vector)
            yield f"debate of {name}", shifted, _part(deliberation, "debate", vector)
        for step, expected, kept in _vector_checks(record, deliberation, vector):
            yield f"{step} of {name}", expected, kept
    yield "composite", _total(contributions(record)), record.get("composite")
    yield "consensus", _total(shares(record)), record.get("consensus")


def _vector_checks(
    record: Mapping[str, Any], deliberation: Mapping[str, Any], vector: str
) -> Iterable[tuple[str, float | None, Any]]:
    l1 = figures.number(_part(record, "l1", vector))
    agent = figures.number(_part(record, "agents", vector))
    shift = figures.number(_part(record, "adjustments", vector))
    debate = figures.number(_part(deliberation, "debate", vector))
    multiplier = figures.number(said_multiplier(record, deliberation))
    # in shadow L1 alone was blended, whatever the agents said
    blend = l1 if in_shadow(deliberation) else agent
    if (
        str(record.get("source_type")).startswith("AGENT")
        and debate is not None
        and multiplier is not None
    ):
        yield "adjustment", synthesis.clamp(debate * multiplier, ADJUSTMENT_BOUND), shift
    if l1 is not None and shift is not None:
        yield "agent score", synthesis.clamp(l1 + shift, 1.0), agent
    if l1 is not None and blend is not None:
        yield "blend", synthesis.blended(l1, blend), _finals(record).get(vector)


def _l1(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the four scores of L1; none unless all are known."""
    known = {vector: figures.number(_part(record, "l1", vector)) for vector in VECTORS}
    found = {vector: value for vector, value in known.items() if value is not None}
    return found if len(found) == len(VECTORS) else {}


def _answers(deliberation: Mapping[str, Any]) -> list[synthesis.Answer]:
    """Return the stored reports with their roles; none when an author is not in the registry."""
    answers = []
    for told in reports(deliberation):
        report, seat = as_report(told), AGENTS.get(str(told.get("agent_id")))
        if report is None or seat is None:
            # the agent of a host has no role here: a sum without it would look like a fault
            return []
        answers.append(synthesis.Answer(seat.role, report))
    return answers


def _voices(deliberation: Mapping[str, Any]) -> list[Row]:
    """Return each agent's contribution to the debate, already times its trust."""
    rows = []
    for told in reports(deliberation):
        weight = trust(told)
        if weight is None or is_gate(told):
            continue
        name = str(told.get("agent_id"))
        side = name in synthesis.SIDES
        bound = RESEARCHER_BOUND if side else ADJUSTMENT_BOUND
        votes = mapping(told.get("adjustments"))
        scaled = {vector: _scaled(votes.get(vector), weight, bound) for vector in VECTORS}
        note = f"k a, k {figures.plain(weight, 3)}, "
        note += f"a within ±{bound:.2f}" if side else f"f {_focus(name)}"
        rows.append(
            _scores(figures.title(name), note, scaled, "voiced", "not scored by this agent")
        )
    return rows


def _focus(name: str) -> str:
    seat = AGENTS.get(name)
    if seat is None:
        return "of its role"
    weights = [FOCUS_WEIGHT[seat.role.focus[v]] if v in seat.role.focus else None for v in VECTORS]
    return " ".join(figures.plain(weight, 1) for weight in weights)


def _scaled(vote: Any, weight: float, bound: float) -> float | None:
    known = figures.number(vote)
    return None if known is None else weight * synthesis.clamp(known, bound)


def _scores(name: str, note: str, values: Any, kind: str = "", missing: str = NO_AGENT) -> Row:
    known = mapping(values)
    decimals = figures.FULL_DECIMALS
    return {
        "name": name,
        "note": note,
        "kind": kind,
        "cells": [cell(known.get(vector), decimals, missing) for vector in VECTORS],
        "ath": cell(known.get("ath"), decimals) if "ath" in known else None,
    }


def _numbers(name: str, note: str, values: Mapping[str, Any]) -> Row:
    def shown(key: str) -> Row:
        return {"text": figures.plain(values.get(key), 3), "tone": "", "title": ""}

    return {
        "name": name,
        "note": note,
        "kind": "",
        "cells": [shown(vector) for vector in VECTORS],
        "ath": shown("ath") if "ath" in values else None,
    }


def _finals(record: Mapping[str, Any]) -> Row:
    scores = mapping(record.get("scores"))
    finals = {vector: mapping(scores.get(vector)).get("score") for vector in VECTORS}
    return finals | {"ath": record.get("ath")}


def contributions(record: Mapping[str, Any]) -> Row:
    """Return the contribution of each vector and of ATH to the composite; {} without weights."""
    weights = mapping(record.get("weights"))
    total = _total(weights)
    if not total:
        return {}
    return {
        name: _product(value, weights.get(name), total) for name, value in _finals(record).items()
    }


def _composites(record: Mapping[str, Any]) -> dict[str, Row]:
    return {name: mapping(entry) for name, entry in mapping(record.get("composites")).items()}


def shares(record: Mapping[str, Any]) -> Row:
    """Return the contribution of each fresh timeframe to the consensus."""
    return _shares(_composites(record))


def _shares(entries: Mapping[str, Mapping[str, Any]]) -> Row:
    """Return the contribution of each fresh timeframe to the consensus."""
    fresh = {name: entry for name, entry in entries.items() if entry.get("fresh")}
    total = _total({name: entry.get("weight") for name, entry in fresh.items()})
    if not total:
        return {}
    return {
        name: _product(entry.get("composite"), entry.get("weight"), total)
        for name, entry in fresh.items()
    }


def _product(value: Any, weight: Any, total: float) -> float | None:
    left, right = figures.number(value), figures.number(weight)
    return None if left is None or right is None else left * right / total


def _total(values: Mapping[str, Any]) -> float | None:
    known = [figures.number(value) for value in values.values()]
    # a sum that lacks a part would fail its check for no reason
    return sum(value for value in known if value) if known and None not in known else None


def _part(record: Mapping[str, Any], name: str, key: str) -> Any:
    return mapping(record.get(name)).get(key)


def _differs(expected: float | None, kept: Any) -> bool:
    known = figures.number(kept)
    return expected is not None and known is not None and abs(expected - known) > TOLERANCE


def _pair(name: str, record: Mapping[str, Any], final: str, l1: str) -> Row:
    return {"name": name, "final": _full(record.get(final)), "l1": _full(record.get(l1))}


def _full(value: Any) -> str:
    return figures.signed(value, figures.FULL_DECIMALS)


def _thresholds(record: Mapping[str, Any]) -> str:
    known = mapping(record.get("thresholds"))
    sell = figures.number(known.get("sell"))
    low = figures.signed(None if sell is None else -sell, 2)
    return f"BUY ≥ {figures.signed(known.get('buy'), 2)}, SELL ≤ {low}"
