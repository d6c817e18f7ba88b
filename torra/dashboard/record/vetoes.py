"""The cause of a veto in words: which rule vetoed an opening, and for which event.

The record of a tick names the rules that applied but not their limits. So for a rule about events
the nearest event is named, and a second one that is near as well. Pure functions over plain dicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agents.contracts import GateReason
from torra.dashboard.record import surroundings
from torra.dashboard.record.stored import Row, mapping, sequence
from torra.exhibits import figures
from torra.verdict.risk_engine import DenyReason

MEASURED: Final = {
    GateReason.WIDE_SPREAD: ("market.spread_atr", "the spread is {} ATR"),
    GateReason.THIN_DATA: ("market.valid_bars", "{} valid bars"),
    GateReason.STALE_DATA: ("market.bar_age", "the newest bar closed {} bars ago"),
}
"""The feature that each rule measures, and the sentence with its value."""

RULES: Final = (*map(str, MEASURED), str(GateReason.SCHEDULED_EVENT))
"""Rules of the gate that veto (agents.risk_gate); the others lower the multiplier."""


def cause(record: Mapping[str, Any]) -> str:
    """Return the rule that vetoes openings on a tick, and its reason; empty without a veto."""
    gate = mapping(record.get("gate"))
    if gate.get("veto"):
        rule = mapping(gate.get("rule"))
        return _ruled(record, rule) if rule.get("veto") else _judged(gate, rule)
    if str(DenyReason.GATE_VETO) in (record.get("reason"), *sequence(record.get("denied"))):
        side = figures.clean(record.get("verdict"), 10)
        return f"latched by an earlier veto, which holds until {side} is out of reach"
    return ""


def _ruled(record: Mapping[str, Any], rule: Row) -> str:
    codes = [str(code) for code in sequence(rule.get("reasons")) if code in RULES]
    return "; ".join(_rule(record, code) for code in codes) or "the gate's rules"


def _judged(gate: Row, rule: Row) -> str:
    """Return that the gate's agent added the veto, with the reasons that only it gave."""
    told = [*sequence(rule.get("reasons")), "NONE"]
    own = [figures.clean(code, 40) for code in sequence(gate.get("reasons")) if code not in told]
    return ", ".join(["the gate agent's own veto", *own])


def _rule(record: Mapping[str, Any], code: str) -> str:
    if code == GateReason.SCHEDULED_EVENT:
        # the record does not say which event it was: the nearest are the likely ones
        return ", ".join([code, *surroundings.nearest_events(record)])
    name, form = MEASURED[GateReason(code)]
    for item in map(mapping, sequence(record.get("features"))):
        if item.get("id") == name and figures.number(item.get("value")) is not None:
            return f"{code}, {form.format(figures.loose(round(item['value'], 3)))}"
    return code
