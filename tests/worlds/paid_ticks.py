"""Ticks of the sample that ask a vendor's own SDK, and the bill that a loopback server makes.

The server reads what arrives and counts tokens by a rule of its own (`RULES`): pieces of words,
digits and signs, by vendor, also in the schema. It replies what the rules provider says to the same
request, with confidence medium. Each call is booked in the ledger of the desk's database and
settled by the count of the server; `bill` is what the ledger then holds.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import torra_trader
from agents.contracts import Completion, Request
from tests.doubles.vendor_line import official, prices
from tests.doubles.vendor_server import (
    ANTHROPIC,
    GOOGLE,
    OPENAI,
    Exchange,
    Reply,
    Usage,
    VendorServer,
)
from tests.worlds import desks
from torra.clock import System, duration
from torra.config import Profile
from torra.providers.rules.provider import RulesProvider
from torra.store import ledger as ledger_table
from torra.tick.bar_window import LiveWindow
from torra.tick.edges import TickDeps
from torra.tick.spending import SpendingAccount

RULES: Final[Mapping[str, re.Pattern[str]]] = {
    ANTHROPIC: re.compile(r"\d{1,3}|[A-Za-z]{1,5}|[^\w\s]+|_"),
    GOOGLE: re.compile(r"\d|[A-Za-z]{1,8}|[^\w\s]{1,3}|_"),
    OPENAI: re.compile(r"\d{1,3}|[A-Za-z]{1,7}|[^\w\s]{1,2}|_"),
}
"""What each server calls a token."""

SURE: Final = re.compile(r'("confidence": ")(low|high)')
"""Models are seldom as unsure as the rules, which send half of the reports to a second look."""

TIMEFRAME: Final = "M15"
APART: Final = 13
"""Closes from one tick to the next, so that a few ticks see different markets."""


class Asked:
    """A provider that notes what the rules say to each request before a vendor is asked it."""

    def __init__(self, vendor: str, line: Any) -> None:
        self.name = vendor
        self.line = line
        self.said: dict[tuple[str, str], str] = {}
        self.rules = RulesProvider()

    def submit(self, request: Request) -> Future[Completion]:
        text = self.rules.submit(request).result().text
        self.said[str(request.system), str(request.user)] = SURE.sub(r"\1medium", text)
        return self.line.provider.submit(request)

    def reply(self, exchange: Exchange) -> Reply:
        """Return what the rules said to a request that arrived, and how many tokens it took."""
        text = exchange.text.replace("\n", "")
        found = next(
            reply
            for words, reply in tuple(self.said.items())
            if all(part.replace("\n", "") in text for part in words)
        )
        rule = RULES[exchange.vendor]
        asked = exchange.text + json.dumps(exchange.schema)
        used = Usage(len(rule.findall(asked)), 0, 0, len(rule.findall(found)), 0)
        return Reply(text=found, usage=used)


def bill(folder: Path, vendor: str, mode: str, ticks: int, **agents: Any) -> tuple[float, int]:
    """Return what so many ticks cost by the ledger, in USD, and how many calls were settled."""
    with VendorServer() as server, official(server, vendor, mode=mode, **agents) as line:
        asked = Asked(vendor, line)
        server.play({"*": asked.reply})
        profile = Profile().with_agents(mode=mode, provider=vendor, **agents)
        desk = desks.open_desk(folder, profile=profile, provider=asked)
        try:
            desks.open_for_work(desk)
            _run(desk, profile, ticks)
            rows = ledger_table.ledger_rows(desk.database, System().real_now() - timedelta(hours=2))
        finally:
            desk.database.close()
    assert {row["state"] for row in rows} == {"settled"}
    return sum(row["usd"] for row in rows), len(rows)


def _run(desk: Any, profile: Profile, ticks: int) -> None:
    setup = desk.setups["BTCUSD"]
    window = LiveWindow(setup.instance, setup.feed, desk.database)
    account = SpendingAccount(
        desk.database, prices(), "default", lambda _: False, System().real_now
    )
    edges = TickDeps(
        database=desk.database,
        window=window,
        submit=setup.provider.submit,
        provider=setup.provider.name,
        clock=desk.clock,
        account=account,
    )
    for _ in range(ticks):
        bar_time = desk.clock.now() - duration(TIMEFRAME)
        outcome = torra_trader.run_tick(
            setup.instance, TIMEFRAME, bar_time, time.monotonic(), profile=profile, edges=edges
        )
        assert outcome.state == "done"
        desk.clock.set(desk.clock.now() + APART * duration(TIMEFRAME))
