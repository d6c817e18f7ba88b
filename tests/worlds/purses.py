"""Purses and debates on a ledger: what a debate asks leave for, what it books and leaves."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from agent_config import MAX_PROMPT_BYTES, OUTPUT_TOKENS, AgentSettings
from agent_framework import deliberate
from agents.contracts import Request
from agents.debate.deliberation import Deliberation
from instance_database import Database
from tests.doubles.scripted import AMPLE, Scripted, context, settings
from tests.worlds.stores import NOON, Hand, key_of
from torra.providers.prices import PriceList
from torra.store.ledger import Booking
from torra.tick.degradation import Local
from torra.tick.spending import Purse, SpendingAccount

KEY = key_of(NOON)

PAID = settings(provider="anthropic")

PRICES = PriceList(now=lambda: NOON)

WORST = PRICES.worst_case(
    "anthropic",
    "claude-haiku-5-5",
    prompt_bytes=MAX_PROMPT_BYTES,
    output_tokens=OUTPUT_TOKENS["quick"],
)


def paid_elsewhere(vendor: str) -> bool:
    return False


def booking(usd: float = 1.0, **more: Any) -> Booking:
    row = Booking("analysts", "technical", 1, 1, "anthropic", "claude-haiku-5-5", usd)
    return replace(row, **more)


def rows(database: Database) -> list[dict[str, Any]]:
    found = database.rows("SELECT * FROM ledger ORDER BY id")
    return [{**row, "who": (row["role"], row["round"], row["attempt"])} for row in found]


def states(database: Database) -> dict[tuple[str, int, int], str]:
    return {row["who"]: row["state"] for row in rows(database)}


def purse_of(
    database: Database,
    provider: Scripted,
    hand: Hand,
    agents: AgentSettings,
    seconds: float = AMPLE,
    late: dict[int, Any] | None = None,
    local: Local = paid_elsewhere,
) -> Purse:
    account = SpendingAccount(database, PRICES, "mine", local, hand, {} if late is None else late)
    return account.purse(
        KEY, agents, provider.submit, monotonic=time.monotonic, deadline=time.monotonic() + seconds
    )


def run(
    database: Database, provider: Scripted, hand: Hand, *, seconds: float = AMPLE, **agents: Any
) -> Deliberation:
    config = settings(**{"provider": "anthropic", **agents})
    purse = purse_of(database, provider, hand, config.agents, seconds)
    return purse.settled(debated(config, purse.submit, purse.reserve, seconds))


def debated(config: Any, submit: Any, reserve: Any = None, seconds: float = AMPLE) -> Deliberation:
    return deliberate(
        context(), config, submit, monotonic=time.monotonic,
        deadline=time.monotonic() + seconds, reserve=reserve,
    )  # fmt: skip


def bounds_seen(role: str = "", **agents: Any) -> list[Any]:
    """The bounds that a real deliberation asks leave for, of a role or of all."""
    seen: list[Any] = []
    config = settings(**{"provider": "anthropic", **agents})
    debated(config, Scripted().submit, lambda stage, bounds: bool(seen.extend(bounds)) or True)
    return [bound for bound in seen if role in ("", bound.role_id)]


def a_request(role: str, **changes: Any) -> Request:
    provider = Scripted()
    debated(PAID, provider.submit)
    return replace(provider.asked(role)[0], **changes)


def a_deliberation() -> Deliberation:
    return debated(PAID, Scripted().submit, lambda *_: False)
