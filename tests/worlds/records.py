"""Records of ticks for tests that look at a part of one: what is not told is of a quiet tick."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from agents.contracts import VECTORS
from torra.clock import TIMEFRAMES
from torra.dashboard.record.shown import TickView
from torra.tick.tick_record import DebateRecord, TickRecord

MOMENT: Final = "2021-12-01T10:00:00Z"
CLOSE: Final = "2021-12-01T10:15:00Z"
ZERO: Final = dict.fromkeys(VECTORS, 0.0)
RULING: Final = {"multiplier": 1.0, "veto": False, "reasons": ["NONE"]}
AGREEMENT: Final = {
    "opposed": 0, "opposition": 0.0, "dissent": 0.0, "raw": 1.0, "conviction": 1.0,
    "leans_against": False,
}  # fmt: skip

DEBATE: Final[dict[str, Any]] = {
    "source_type": "L1_ONLY", "analyst_avg": ZERO, "debate": ZERO, "adjustments": ZERO,
    "ruling": {**RULING, "detail": ""}, "rule_ruling": {**RULING, "detail": ""}, "reports": [],
    "earlier": [], "failures": {}, "unasked": {}, "calls": [], "stages": [], "flags": [],
    "panel": {
        "spread": ZERO, "pushes": {}, "push": 0.0, "sided": 0, "abstained": 0, "buy": AGREEMENT,
        "sell": AGREEMENT, "disagreements": [], "falsifiers": {},
    },
    "cost_usd": 0.0, "elapsed_ms": 0.0,
}  # fmt: skip

QUIET: Final[dict[str, Any]] = {
    "instance": "BTCUSD", "symbol": "BTCUSD", "timeframe": "M15", "bar_time": MOMENT,
    "as_of": CLOSE, "close": 100.0, "atr": 1.0, "ath": 0.0, "ath_price": 110.0, "low_price": 90.0,
    "records_since": None, "record_score": "both", "together": {}, "apart": [], "l1": ZERO,
    "notes": {}, "components": {vector: [] for vector in VECTORS}, "agents": ZERO,
    "scores": {vector: {"score": 0.0, "note": ""} for vector in VECTORS}, "ungated": ZERO,
    "low": ZERO, "high": ZERO, "adjustments": ZERO, "composite": 0.0, "consensus": 0.0,
    "verdict": "HOLD", "l1_composite": 0.0, "l1_consensus": 0.0, "l1_verdict": "HOLD",
    "low_consensus": 0.0, "high_consensus": 0.0, "composites": {},
    "weights": {**dict.fromkeys(VECTORS, 1.0), "ath": 1.0},
    "thresholds": {"buy": 0.5, "sell": 0.5}, "gate": {**RULING, "rule": RULING}, "action": "HOLD",
    "reason": "THRESHOLD", "denied": [], "signal": None, "signals": [], "proposed": [],
    "sentence": "Does nothing.", "source_type": "L1_ONLY", "flags": [], "calls": 0,
    "cost_usd": 0.0, "elapsed_ms": 1.0, "provider": "rules", "picture": None, "profile": "0" * 16,
    "execution": "auto", "now": CLOSE,
    "before": {"paper_cursor": None, "latches": [], "signal_event": 0, "path": []},
    "desk": {"trading_state": "ACTIVE", "exposure": {}, "decided": CLOSE, "signal_event": 0},
    "versions": {}, "features": [], "memory": {}, "regime": {"name": "quiet", "reads": {}},
    "bars": {"from": MOMENT, "to": MOMENT, "count": 750, "revision": 0, "hash": "0" * 16},
    "news": None, "events": None, "spreads": None, "outside": None, "skipped": None,
    "deliberation": DEBATE,
}  # fmt: skip

CALL: Final = {
    "role_id": "news", "stage": "analysts", "round": 1, "attempt": 1, "status": "ok",
    "model": "m", "provider": "p", "request_hash": "", "input_tokens": 0, "output_tokens": 0,
    "cost_usd": 0.0, "elapsed_ms": 0.0,
}  # fmt: skip
ITEMS: Final[dict[str, dict[str, Any]]] = {
    "features": {"value": None, "unit": ""},
    "calls": CALL,
    "stages": {"name": "analysts", "round": 1, "ms": 0.0, "status": "ok"},
    "proposed": {"side": "BUY"},
    "points_for": {"says": "it reads so", "value": 1.0},
    "points_against": {"says": "it reads so", "value": 1.0},
    "evidence": {"value": 1.0},
    "signals": {
        "sid": "S1", "kind": "open", "instance": "BTCUSD", "symbol": "BTCUSD", "timeframe": "M15",
        "bar_time": MOMENT, "side": "BUY", "lots": 0.1, "expires": CLOSE, "decided_at": CLOSE,
        "state": "WAITING", "bridge": "paper",
    },
}  # fmt: skip
ITEMS["signal"] = ITEMS["signals"]
ITEMS.update({key: {"close_time": CLOSE, "weight": 1.0, "fresh": True} for key in TIMEFRAMES})
"""What is not told of an item of a list."""


def merged(whole: Any, part: Any, name: str = "") -> Any:
    """Return JSON with the values of a part of it in their places; lists as the part has them."""
    if isinstance(whole, Mapping) and isinstance(part, Mapping):
        return {**whole, **{key: merged(whole.get(key), value, key) for key, value in part.items()}}
    if isinstance(part, Mapping):
        return {**ITEMS.get(name, {}), **{key: merged(None, it, key) for key, it in part.items()}}
    if isinstance(part, (list, tuple)):
        return [merged(None, item, name) for item in part]
    return part


def quiet(part: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return the JSON of a quiet tick's record with the values of a part of it."""
    return json.loads(json.dumps(merged(QUIET, {**(part or {}), **more})))


def tick_record(part: Mapping[str, Any] | None = None, **more: Any) -> TickRecord:
    """Return the record of a quiet tick, with the values of a part of one."""
    return TickRecord.parse(quiet(part, **more))


def shown_tick(part: Mapping[str, Any] | None = None, **more: Any) -> TickView:
    """Return the same as its page has it."""
    return TickView.parse(quiet(part, **more))


def debate_record(part: Mapping[str, Any] | None = None, **more: Any) -> DebateRecord:
    """Return the debate of a quiet tick, with the values of a part of one."""
    return tick_record(deliberation={**(part or {}), **more}).deliberation
