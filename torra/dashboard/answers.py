"""What the API answers to a GET: the fields of each JSON answer with their types, by route.

The description of the API shows them as schemas, and a test holds real answers to them: no field is
missing, and none is there besides. Rows of the store are described by their own models; a field
that another program or an older version may have made is any object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import GenericAlias
from typing import Any, Final, Literal, get_type_hints

from pydantic import ConfigDict, JsonValue, TypeAdapter, create_model

from torra.dashboard.screens.health import Signs
from torra.dashboard.settings.profiles import ProfileLine
from torra.dashboard.view.health_context import DatabaseCheck
from torra.desk.costs import KEPT_FIELDS, TOKENS
from torra.jobs import asking
from torra.money.book import AccountMoney, DayCap
from torra.notices.listing import TEXTS
from torra.radar.result import RadarRun
from torra.store.audit import SEALED, Break
from torra.store.trade.rows import (
    AlarmRow,
    BridgeRow,
    Draft,
    ProposalRow,
    ProviderBlock,
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

JOBS: Final = {
    "desk_runs": bool,
    "jobs": [
        {
            **dict.fromkeys(asking.COLUMNS, str),
            **dict.fromkeys(("id", "attempt", "done", "total"), int),
            **dict.fromkeys(("started_at", "ended_at"), str | None),
            "parameters": Object,
            "stops": bool,
        }
    ],
}

SUMS: Final = {
    "usd": float,
    "calls": int,
    **dict.fromkeys(TOKENS, int),
    "kept_usd": float,
    "kept_calls": int,
    "kept_share": float,
}
"""What some calls cost; those `kept` count at their worst case."""

STEP: Final = {
    "degradation_level": str,
    "worst_tick_usd": float,
    "needs_usd": float | None,
    "here": bool,
}
COSTS: Final = {
    **dict.fromkeys(("at", "currency"), str),
    **dict.fromkeys(("last_hour", "today", "last_24_hours"), SUMS),
    "projected_day_usd": float,
    "roles": [{"role": str, **SUMS}],
    "models": [{"model": str, **SUMS}],
    "days": [{"day": str, "usd": float, "calls": int}],
    "profiles": [
        {
            "profile": str,
            "spent_usd": float,
            **dict.fromkeys(("ceiling_usd", "left_usd", "worst_tick_usd"), float | None),
            **dict.fromkeys(("ticks_left", "ticks_an_hour"), int | None),
            **dict.fromkeys(
                ("free_at", "degradation_level", "degradation_level_since", "oldest_leaves_at"),
                str | None,
            ),
            "ladder": [STEP],
            "booked_ahead": int,
        }
    ],
    "blocked": list[ProviderBlock],
    "kept": [{**dict.fromkeys(KEPT_FIELDS, str), "id": int, "usd": float, "under_way": bool}],
    "late": {"calls": int, "of": int},
    "paying": list[str],
    "changed": {"changed": int, "all": int},
    "vendors": [{"vendor": str, "tick_usd": float, "day_usd": float}],
    "proposals": list[str],
}

ANSWERS: Final[Mapping[str, Any]] = {
    "api_approval": {**VERSION, "proposal": PROPOSAL, "now": Object | None},
    "api_approvals": {**VERSION, "waiting": list[PROPOSAL], "decided": list[PROPOSAL]},
    "api_audit": {
        "entries": [
            {
                "seq": int,
                **dict.fromkeys((*SEALED[1:], "hash"), str),
                "before": JsonValue,
                "after": JsonValue,
            }
        ],
        "next": int | None,
        "broken": Break | None,
    },
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
        "paths": Objects | None,
    },
    "api_costs": COSTS,
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
    "api_lessons": {"lessons": Objects, "next": int | None, "stored": int},
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
        "caps": list[DayCap],
        "accounts": list[AccountMoney],
    },
    "api_money_line": {
        "period": str,
        "accounts": dict[str, list[dict[Literal["at", "closed", "whole"], str | float | None]]],
    },
    "api_notices": {
        "notices": [
            {
                **dict.fromkeys(TEXTS, str),
                "id": int,
                "silent": bool,
                "sent": [{"service": str, "state": str, "tries": int, "detail": str}],
            }
        ],
        "newest": int,
        "services": [{"service": str, "failed": str, "at": str}],
    },
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
        "trading_state": str,
        "reason": str,
        "at": str | None,
        "engaged": str,
        "proposals": Objects,
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
        name: TypeAdapter(_kind(_title(name.removeprefix("api_")), answer))
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


def _kind(title: str, kind: Any) -> Any:
    """Return the type of a value: of a mapping a closed model, of a list of one a list of them.

    A field with a default may be missing.
    """
    if isinstance(kind, list):
        return GenericAlias(list, (_kind(title, kind[0]),))
    if not isinstance(kind, Mapping):
        return kind
    fields: dict[str, Any] = {
        name: own if isinstance(own, tuple) else (_kind(title + _title(name), own), ...)
        for name, own in kind.items()
    }
    return create_model(title, __config__=ConfigDict(extra="forbid"), **fields)


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
