"""The cause of a veto in words: which rule vetoed an opening, and for which event.

The record of a tick names the rules that applied but not their limits. So for a rule about events
the nearest event is named, and a second one that is near as well. Pure functions.
"""

from __future__ import annotations

from typing import Final

from agents.contracts import GateReason, OfficerReason
from torra.dashboard.record import surroundings
from torra.dashboard.record.shown import Decision
from torra.exhibits import figures
from torra.tick.tick_record import GateRecord, TickRecord
from torra.verdict.risk_engine import DenyReason
from torra.verdict.vetoed import REFUSERS, refusal, sided
from torra.words.badge import Badge
from torra.words.ticks import GATE_REASONS, MEASURED

RULES: Final = (*map(str, MEASURED), str(GateReason.SCHEDULED_EVENT))
"""Rules of the gate that veto (agents.risk_gate); the others lower the multiplier."""

HOLD: Final = str(OfficerReason.JUDGE_HOLD)
"""Reason of a veto of both sides by a judge that takes none (agents.judge_hold)."""

WITHOUT_TRADER: Final = frozenset(("AGENT_FULL", "AGENT_BUDGET"))
"""Sources of ticks of desks that ask no trader."""


def cause(record: Decision) -> str:
    """Return the rule that vetoes openings on a tick, and its reason; empty without a veto."""
    gate, verdict = record.gate, record.verdict or ""
    if gate is None:
        return ""
    side = figures.sanitize(verdict, 10)
    if gate.veto and gate.rule.veto:
        codes = [code for code in gate.rule.reasons if code in (*RULES, HOLD)]
        return "; ".join(_rule(record, code) for code in codes) or "the gate's rules"
    if gate.veto:
        # the reasons that only its agent gave
        own = [code for code in gate.reasons if code not in (*gate.rule.reasons, "NONE")]
        return ", ".join(["the gate agent's own veto", *(figures.sanitize(c, 40) for c in own)])
    if gate.ruling.vetoes(verdict):
        words = [f"{code}, {GATE_REASONS[code]}" for code in sided(gate.ruling, verdict)]
        return "; ".join([f"a veto of {side} alone", *words])
    if str(DenyReason.GATE_VETO) in (record.reason, *record.denied):
        return f"latched by an earlier {latched(record)}, which holds until {side} is out of reach"
    return ""


def refused(gate: str, verdict: str) -> tuple[str, str]:
    """Return who vetoes a verdict by a stored ruling (JSON), and in few words why.

    Nobody where the ruling vetoes nothing: then a veto of an earlier tick holds.
    """
    try:
        ruling = GateRecord.parse(gate).ruling
    except ValueError:
        return "", ""
    if code := refusal(ruling, verdict):
        return REFUSERS[code], f"the {REFUSERS[code]}'s veto: {GATE_REASONS[code]}"
    return ("gate", "the gate's veto") if ruling.vetoes(verdict) else ("", "")


def mark(record: Decision) -> Badge:
    """Return the mark of a tick on which openings are vetoed, or are still held back."""
    known = figures.mark("VETO")
    now = record.gate is not None and record.gate.ruling.vetoes(record.verdict or "")
    if now or latched(record) == "veto":
        return known
    return Badge(known.glyph, "VETO or decline holds", known.tone)


def latched(record: Decision) -> str:
    """Return what may have latched a side: at a desk that asks a trader, its decline as well.

    A list has no more of a tick than its source, which says it of a desk that answered in full.
    """
    if isinstance(record, TickRecord):
        asks = record.company is not None
    else:
        asks = record.source_type not in WITHOUT_TRADER
    return "veto or decline" if asks else "veto"


def _rule(record: Decision, code: str) -> str:
    if code == GateReason.SCHEDULED_EVENT:
        # the record does not say which event it was: the nearest are the likely ones
        return ", ".join([code, *surroundings.nearest_events(record)])
    if code == HOLD:
        return f"{code}, {GATE_REASONS[code]}"
    name, form = MEASURED[code]
    for item in record.features:
        if item.id == name and isinstance(item.value, float):
            return f"{code}, {form.format(figures.format_any(round(item.value, 3)))}"
    return code
