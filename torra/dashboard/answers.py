"""What the API answers to a question: the fields of each JSON answer with their types, by route.

The description of the API shows them as schemas, and a test holds real answers to them: no field is
missing, and none is there besides. Each is made from the types that the answer itself is made of
(`of`); a field that another program or an older version may have made is any object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, get_type_hints

from pydantic import JsonValue, TypeAdapter, create_model

from torra.ask.answer import ChatAnswer
from torra.committee.card import DecisionCard
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.screens.health import Signs
from torra.dashboard.settings.profiles import ProfileLine
from torra.dashboard.streams.chart_data import ChartData, PriceData
from torra.dashboard.view.answer_models import DESK, SYMBOL, SYMBOL_ROW, closed, of, title
from torra.dashboard.view.desk_values import RunningDebate
from torra.dashboard.view.health_context import DatabaseCheck
from torra.desk.costs import KEPT_FIELDS, TOKENS
from torra.desk.models.question import ModelTest
from torra.exhibits.documents import Document
from torra.film.storyboard import Storyboard
from torra.jobs import asking
from torra.lessons.lesson import LessonFacts, LessonText, Thesis
from torra.money.book import Money
from torra.notices.listing import TEXTS
from torra.providers.call_health import ModelHealth
from torra.radar.result import RadarRun
from torra.replay.changed.listing import Paths
from torra.replay.changed.without_agents import ChangedTick
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
from torra.trading import signal_list
from torra.verdict.risk_engine import Position

Object = dict[str, JsonValue]

PROPOSAL: Any = create_model(
    "Proposal", __base__=ProposalRow, drafts=(list[Draft] | None, ...), thesis=(Thesis | None, None)
)
"""A proposal as it is answered: its orders are read."""


JOBS: Final = {
    "desk_runs": bool,
    "jobs": [
        {
            " ".join(asking.COLUMNS): str,
            "id attempt done total": int,
            "started_at ended_at": str | None,
            "parameters": Object,
            "stops": bool,
        }
    ],
}

SUMS: Final = {"usd kept_usd kept_share": float, "calls kept_calls": int, " ".join(TOKENS): int}
"""What some calls cost; those `kept` count at their worst case."""

COSTS: Final = {
    "at currency": str,
    "last_hour today last_24_hours": SUMS,
    "projected_day_usd": float,
    "roles": [{"role": str, **SUMS}],
    "models": [{"model": str, **SUMS}],
    "days": [{"day": str, "usd": float, "calls": int}],
    "profiles": [
        {
            "profile": str,
            "spent_usd": float,
            "ceiling_usd left_usd worst_tick_usd": float | None,
            "ticks_left ticks_an_hour": int | None,
            "free_at degradation_level degradation_level_since oldest_leaves_at": str | None,
            "ladder": [
                {
                    "degradation_level": str,
                    "worst_tick_usd": float,
                    "needs_usd": float | None,
                    "here": bool,
                }
            ],
            "booked_ahead": int,
        }
    ],
    "blocked": list[ProviderBlock],
    "kept": [{" ".join(KEPT_FIELDS): str, "id": int, "usd": float, "under_way": bool}],
    "late": {"calls of": int},
    "paying proposals": list[str],
    "changed": {"changed all": int},
    "vendors": [{"vendor": str, "tick_usd day_usd": float}],
}

EXPECTED: Final = {
    "closes": int,
    "tick_usd day_usd earned_usd": float | None,
    "unpriced uncounted": list[str],
}
MODELS: Final = {
    "at currency": str,
    "expected": [{"mode vendor": str, **EXPECTED}],
    "profiles": [
        {
            "profile provider never_runs": str,
            "paid": bool,
            "ticks closes": int,
            "ceiling_usd spent_hour_usd day_so_far_usd tick_most_usd day_most_usd": float,
            "tick_usd day_usd": float | None,
            "expected": EXPECTED,
        }
    ],
    "traders": [{"profile": str, "openings asked escalated declined without": int}],
    "vendors": [
        {
            "vendor title key server trouble package rests_because": str,
            "variables used_by": list[str],
            "rests_until": str | None,
            "models": [
                {
                    "model ending answers remedy": str,
                    "roles": list[str],
                    "input output cached": float | None,
                    "calls": int,
                    "usd": float,
                    "health": ModelHealth,
                }
            ],
            "tested": ModelTest | None,
        }
    ],
    "standing": (
        closed(
            "Standing",
            [
                {
                    "instance timeframe regime agent": str,
                    "calls": int,
                    "hit_share tabled": float | None,
                }
            ],
        ),
        [],
    ),
}

ANSWERS: Final[Mapping[str, Any]] = {
    "api_approval": {"version": str, "proposal": PROPOSAL, "now": Object | None},
    "api_approvals": {"version": str, "waiting": list[PROPOSAL], "decided": list[PROPOSAL]},
    "api_audit": {
        "entries": [{" ".join((*SEALED, "hash")): str, "seq": int, "before after": JsonValue}],
        "next": int | None,
        "broken": Break | None,
    },
    "api_ask": ChatAnswer,
    "api_bars": get_type_hints(PriceData),
    "api_card": DecisionCard,
    "api_cards": {"cards": list[DecisionCard]},
    "api_changed": {
        "says": str,
        "verdicts_changed ticks needed": int,
        "changed": list[ChangedTick],
        "next": str | None,
        "paths": list[Paths] | None,
    },
    "api_costs": COSTS,
    "api_desk": {"desk": DESK},
    "api_first_run": {"steps": [{"step note": str, "done": bool}]},
    "api_film": Storyboard,
    "api_health": {"status": str, "check": DatabaseCheck, "signs": Signs},
    "api_history": {
        "ticks": [
            of(
                ListedTick,
                "bar_time close_time price_action key_levels momentum structure ath l1_composite "
                "composite l1_consensus consensus l1_verdict verdict action reason source_type",
                instance=str,
                timeframe=str,
                cost_usd=float | None,
                elapsed_ms=float | None,
            )
        ],
        "skipped": [{"instance timeframe reason bar_time newest oldest": str, "count": int}],
        "next": str | None,
        "count": int | None,
        "counts": dict[str, dict[str, int | None]],
    },
    "api_job": JOBS,
    "api_jobs": JOBS,
    "api_lessons": {
        "lessons": [
            of(
                LessonFacts,
                number=int,
                warm_up=bool,
                words=list[LessonText],
                ticks=list[str],
                refused=(str, ""),
            )
        ],
        "next": int | None,
        "stored": int,
    },
    "api_models": MODELS,
    "api_moment": {"chart": ChartData, "cited": list[str]},
    "api_money": get_type_hints(Money) | {"day": str},
    "api_money_line": {
        "period": str,
        "accounts": dict[str, list[dict[Literal["at", "closed", "whole"], str | float | None]]],
    },
    "api_notices": {
        "notices": [
            {
                " ".join(TEXTS): str,
                "id": int,
                "silent": bool,
                "sent": [{"service state detail": str, "tries": int}],
            }
        ],
        "newest": int,
        "services": [{"service failed at": str}],
    },
    "api_overview": {
        "desk": DESK,
        "symbols": list[SYMBOL_ROW],
        "debates": list[RunningDebate],
    },
    "api_profile": {
        **get_type_hints(ProfileLine),
        "values": Object | None,
        "differs history": list[Object],
    },
    "api_profiles": {"profiles": list[ProfileLine], "desk": Object},
    "api_radar_audit": {
        "run": int,
        "tool_calls": int,
        "audit_log": list[int],
        "reasoning_log": list[str],
    },
    "api_radar_latest": {"run": int, "result": RadarRun},
    "api_radar_status": {"job": int, "state says session_id": str, "run": int | None},
    "api_replay": Document,
    "api_replays": {
        "replays": [
            {
                "name": str,
                "problem kind title summary created_at": str | None,
                "settings": dict[str, str],
                "warnings": int,
            }
        ],
        "left_out": int,
    },
    "api_signal": {
        "version": str,
        "signal": SignalRow,
        "events": list[SignalStep],
        "closes": list[SignalRow],
        "opening": SignalRow | None,
        "thesis": (Thesis, None),
    },
    "api_signals": {
        "version trading_state reason engaged": str,
        "signals": [create_model("ListedSignal", __base__=SignalRow, warm_up=(bool, ...))],
        "before": int | None,
        "at": str | None,
        "proposals": list[PROPOSAL],
        "positions": [of(Position, signal_list.POSITION, sid=str, price=float | None)],
        "bridges": list[BridgeRow],
        "alarms": list[AlarmRow],
        "states": list[TradingStateRow],
    },
    "api_streams": [{"stream_id torra_key at stream_kind": str, "seq": int, "ended": bool}],
    "api_symbol": {
        "symbol": SYMBOL,
        "chart": ChartData,
    },
    "api_tick": Object,
    "api_trade_chart": {"chart": ChartData, "cited": list[str]},
    "api_trades": {"trades": list[SignalRow], "next": str | None},
    "api_watch": Object,
    "api_watching": {
        "debates": [
            {
                "stream_id instance timeframe bar_time bar at end tone": str,
                "ended": bool,
                "events": int,
                "kind": (str, ""),
            }
        ]
    },
    "openapi": Object,
}


@cache
def adapters() -> dict[str, TypeAdapter[Any]]:
    """Return what reads and describes each answer; one whose fields are known allows no other."""
    return {
        name: TypeAdapter(closed(title(name.removeprefix("api_")), answer))
        for name, answer in ANSWERS.items()
    }


def schemas() -> tuple[dict[str, Object], Object]:
    """Return the JSON schema of each answer, and those that they refer to (OpenAPI 3.1)."""
    kinds: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (name, "serialization", adapter) for name, adapter in adapters().items()
    ]
    answers, known = TypeAdapter.json_schemas(kinds, ref_template="#/components/schemas/{model}")
    shared = known.get("$defs", {})
    for schema in shared.values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    return {name: schema for (name, _), schema in answers.items()}, shared
