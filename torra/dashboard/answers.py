"""What the API answers to a GET: the fields of each JSON answer with their types, by route.

The description of the API shows them as schemas, and a test holds real answers to them: no field is
missing, and none is there besides. Rows of the store are described by their own models; a field
that another program or an older version may have made is any object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, create_model

from torra.dashboard.screens.health import Signs
from torra.dashboard.settings.profiles import ProfileLine
from torra.dashboard.view.health_context import DatabaseCheck
from torra.radar.result import RadarRun
from torra.store.audit import Break
from torra.store.trade.rows import (
    AlarmRow,
    BridgeRow,
    Draft,
    ProposalRow,
    SignalRow,
    SignalStep,
    TradingStateRow,
)

Object = dict[str, JsonValue]
Objects = list[Object]
Counts = dict[str, dict[str, int | None]]

VERSION: Final = {"version": str}
"""What changes when the answer itself does."""

PROPOSAL: Any = create_model("Proposal", __base__=ProposalRow, drafts=(list[Draft], ...))
"""A proposal as it is answered: its orders are read."""

JOBS: Final = {"desk_runs": bool, "jobs": Objects}

ANSWERS: Final[Mapping[str, Any]] = {
    "api_approval": {**VERSION, "proposal": PROPOSAL, "now": Object | None},
    "api_approvals": {**VERSION, "waiting": list[PROPOSAL], "decided": list[PROPOSAL]},
    "api_audit": {"entries": Objects, "next": int | None, "broken": Break | None},
    "api_bars": {
        "candles": list[dict[str, float]],
        "times": list[int],
        "volume": list[float],
        "over": dict[str, list[list[float | None]]],
        "digits": int,
    },
    "api_changed": {
        "says": str,
        "verdicts_changed": int,
        "ticks": int,
        "needed": int,
        "changed": Objects,
        "next": str | None,
    },
    "api_costs": {"report": Object},
    "api_desk": {"desk": Object},
    "api_first_run": {"steps": Objects},
    "api_health": {"status": str, "check": DatabaseCheck, "signs": Signs},
    "api_history": {
        "ticks": Objects,
        "skipped": Objects,
        "next": str | None,
        "count": int | None,
        "counts": Counts,
    },
    "api_job": JOBS,
    "api_jobs": JOBS,
    "api_lessons": {"lessons": Objects, "next": int | None},
    "api_models": {
        "at": str,
        "currency": str,
        "expected": Objects,
        "profiles": Objects,
        "traders": list[JsonValue],
        "vendors": Objects,
    },
    "api_moment": {"chart": Object, "cited": list[str]},
    "api_money": {
        "as_of": str,
        "day": str,
        "lost_today": float,
        "warm_up_today": float,
        "caps": Objects,
        "accounts": Objects,
    },
    "api_money_line": {
        "period": str,
        "accounts": dict[str, list[dict[Literal["at", "closed", "whole"], str | float | None]]],
    },
    "api_notices": {"notices": Objects, "newest": int},
    "api_overview": {"desk": Object, "symbols": Objects, "debates": Objects},
    "api_profile": {
        **get_type_hints(ProfileLine),
        "values": Object | None,
        "differs": Objects,
        "history": Objects,
    },
    "api_profiles": {"profiles": list[ProfileLine], "desk": Object},
    "api_radar_audit": {"run": int, "tool_calls": int, "reasoning_log": list[str]},
    "api_radar_latest": {"run": int, "result": RadarRun},
    "api_radar_status": {"job": int, "state": str, "says": str, "run": int | None},
    "api_replay": Object,
    "api_replays": {"replays": Objects, "left_out": int},
    "api_signal": {
        **VERSION,
        "signal": SignalRow,
        "events": list[SignalStep],
        "closes": list[SignalRow],
        "opening": SignalRow | None,
        "thesis": (Object, None),
    },
    "api_signals": {
        **VERSION,
        "signals": list[SignalRow],
        "before": int | None,
        "positions": Objects,
        "bridges": list[BridgeRow],
        "alarms": list[AlarmRow],
        "states": list[TradingStateRow],
    },
    "api_streams": Objects,
    "api_symbol": {"symbol": Object, "chart": Object},
    "api_tick": Object,
    "api_trade_chart": {"chart": Object, "cited": list[str]},
    "api_trades": {"trades": list[SignalRow], "next": str | None},
    "api_watch": Object,
    "api_watching": {"debates": Objects},
    "openapi": Object,
}


@cache
def adapters() -> dict[str, TypeAdapter[Any]]:
    """Return what reads and describes each answer; one whose fields are known allows no other."""
    return {
        name: TypeAdapter(_model(name, answer) if isinstance(answer, Mapping) else answer)
        for name, answer in ANSWERS.items()
    }


@cache
def schemas() -> tuple[dict[str, Object], Object]:
    """Return the JSON schema of each answer, and those that they refer to (OpenAPI 3.1)."""
    kinds: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (name, "serialization", adapter) for name, adapter in adapters().items()
    ]
    answers, shared = TypeAdapter.json_schemas(kinds, ref_template="#/components/schemas/{model}")
    return {name: schema for (name, _), schema in answers.items()}, shared.get("$defs", {})


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    """Return the model of an answer; a field with a default may be missing."""
    kinds: dict[str, Any] = {
        field: kind if isinstance(kind, tuple) else (kind, ...) for field, kind in fields.items()
    }
    closed = ConfigDict(extra="forbid")
    title = "".join(part.capitalize() for part in name.removeprefix("api_").split("_"))
    return create_model(title, __config__=closed, **kinds)
