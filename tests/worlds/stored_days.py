"""A home whose desk lived through days with everything that a stored tick may have met.

Four instances, on bars of 15 minutes and of an hour: a desk of three that trades on paper, the
desk of eight with headlines and a calendar, one that looks on and is shown a chart, one whose
signals a person approves. Yields and positions are known from beside the chart, and change day by
day; the second reads a companion, the last a company's reports, and all the order flow of bars.
Models answer well, badly, late or not at all; bars come late or are corrected; wakes come late or
not for hours; the desk is halted, fails once, and starts again with other settings. It begins with
a warm-up.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from instance_database import Database
from tests.examples import examples
from tests.worlds import company_reports, desks, flows, journals, outside_series
from torra.clock import Simulated, iso, parse
from torra.config import Instance, Profile, validate
from torra.desk.outlook import ContextFeeds
from torra.desk.roster import InstanceRuntime
from torra.desk.schedule import Desk
from torra.errors import ConfigError
from torra.evidence.flow_readings import FlowThen
from torra.feeds.companions import CompanionReader
from torra.services import Services
from torra.store.trade.rows import ProposalRow
from torra.tick import approval

POSITIONS: Final = ("long", "short", "open_interest")
DAYS: Final = 288
"""Closes of 15 minutes in three days."""

HEADLINES: Final = "headlines.jsonl"
CALENDAR: Final = "events.csv"
WARM_UP: Final = examples(6, 2)
"""Bars of 15 minutes that the warm-up runs through, those of the full hour among them."""

EAGER: Final = {"thresholds": {"buy": 0.1, "sell": 0.1}, "on_opposite": "reverse"}
"""It trades often, so that positions open and close."""

OUTSIDE: Final = {
    "agents": {"mode": "full", "include_news": True},
    "news": {"sources": ["file"], "file": HEADLINES},
    "events": {"calendar": CALENDAR},
}
ONLOOKER: Final = {
    "agents": {
        "active_agents": ["technical", "sentiment", "fundamental", "risk_gate"],
        "influence": "shadow",
        "picture": "rendered",
    }
}
SERIES: Final = (
    *("DGS2", "DGS10", "yield_2y.EUR", "fear_greed", "derivs.funding.BTCUSD"),
    *(f"cot.{market}.{part}" for market in ("eur", "btc") for part in POSITIONS),
)
"""What is known from beside the chart."""

BUDGET = Instance(symbol="BTCUSD", timeframes=("M15", "H1"))
FULL = Instance(
    name="FULL", symbol="BTCUSD", timeframes=("M15", "H1"), companions={"euro": "EURUSD"}
)
LOOKS_ON = Instance(name="LOOKS_ON", symbol="EURUSD", timeframes=("H1",))
ASKS = Instance(name="ASKS", symbol="EURUSD", timeframes=("H1",))

PROFILES: Final[Mapping[str, Mapping[str, Any]]] = {
    BUDGET.id: EAGER,
    FULL.id: {**EAGER, **OUTSIDE},
    LOOKS_ON.id: ONLOOKER,
    # The others hold much by then.
    ASKS.id: {
        **EAGER,
        "execution": "approve",
        "agents": {"active_agents": ["technical", "sentiment", "fundamental", "risk_gate"]},
        "symbols": {"EURUSD": {"asset": "stock", "ticker": "ACME", "currencies": ["USD"]}},
        "risk": {"exposure_cap_pct": 900.0, "account_leverage_cap": 100.0},
    },
}
LATER: Final = {**EAGER, "on_opposite": "close", "thresholds": {"buy": 0.2, "sell": 0.05}}
"""What the first instance is changed to when the desk starts again."""


def live(home: Path, closes: int) -> None:
    """Let a new desk live through so many closes of 15 minutes in a home."""
    home.mkdir(parents=True, exist_ok=True)
    _write_outlook(home, closes)
    feed, voice = Feed(), journals.Moody()
    feed.now = desks.START
    half = closes // 2
    for first, last in ((0, half), (half, closes)):
        profiles = {name: _profile(values) for name, values in PROFILES.items()}
        if first:
            profiles[BUDGET.id] = _profile(LATER)
        desk = _desk(home, profiles, feed, voice)
        desks.open_for_work(desk)
        if not first:
            _know_from_outside(desk)
            list(desk.warm_up(desks.START, WARM_UP))
        voice.clock = desk.clock
        for number in range(first, last):
            _lead(desk, feed, number, half)
        desk.close()


def _know_from_outside(desk: Desk) -> None:
    """Store what is and will be known from beside the chart: each value counts from its release."""
    begin = (desks.START - timedelta(days=400)).replace(hour=0, minute=0)
    known = outside_series.rows(SERIES, begin, 420)
    desk.database.store_series(known, desks.START - timedelta(days=1))
    # The newest report comes on the first day, while the desk runs.
    later = desks.START + timedelta(hours=2) - company_reports.known(38)
    reports = company_reports.moved(company_reports.reports(company_reports.grown(1)), later)
    filed = [row._replace(source="made.csv") for row in reports]
    desk.database.store_facts(filed, desks.START - timedelta(days=1))


class Feed(journals.Revising):
    """The sample with corrections, late bars and order flow."""

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        return flows.Flowing().flow(symbol, timeframe, times)


def _lead(desk: Desk, feed: journals.Revising, number: int, half: int) -> None:
    database = desk.database
    if number == half // 2:
        # Nobody was there for a while.
        desk.clock.set(desk.clock.now() + timedelta(minutes=100))  # type: ignore[attr-defined]
    state = "HALTED" if half // 2 < number <= half // 2 + 2 else "ACTIVE"
    if database.trading_state() != state:
        database.set_trading_state(state, "a test")
    if number == half - 2:
        _fail_once(database)
    journals._step(desk, feed, number, plain=False)
    for row in database.proposals():
        if number % 2:
            _approve(desk, row)


def _approve(desk: Desk, row: ProposalRow) -> None:
    setup = desk.setups[row.instance]
    moment = approval.ApprovalContext(
        instance=setup.instance,
        profile=setup.profile,
        now=parse(row.created_at) + timedelta(seconds=30),
        price=row.price,
        halted="",
    )
    with suppress(ConfigError):
        approval.approve(desk.database, row.sid, moment, life=timedelta(hours=2))


def _fail_once(database: Database) -> None:
    """Let one tick raise after its paper bridge has moved on."""
    whole = database.write_calls

    def fails(*_: Any) -> None:
        vars(database)["write_calls"] = whole
        raise RuntimeError("a test")

    vars(database)["write_calls"] = fails


def _profile(values: Mapping[str, Any]) -> Profile:
    return validate(Profile, dict(values), "a test")


def _desk(
    home: Path, profiles: Mapping[str, Profile], feed: journals.Revising, voice: journals.Moody
) -> Desk:
    reader = CompanionReader(FULL, desks.sample(), wait=20.0)
    setups = [
        InstanceRuntime(
            item, profiles[item.id], feed, voice, threading.Lock(),
            companions=reader if item is FULL else None,
        )
        for item in (BUDGET, FULL, LOOKS_ON, ASKS)
    ]  # fmt: skip
    desk = Desk(
        desks.open_database(home),
        setups,
        lambda stood: Simulated(stood or desks.START),
    )
    desk.services = Services(reader)
    outlook = ContextFeeds(home, desk.database, {}, list(profiles.values()), now=desk.clock.now)
    desk.roster.setups = {
        name: replace(
            setup,
            news=outlook.news(setup.instance, setup.profile),
            events=outlook.events(setup.instance, setup.profile),
            outside=outlook.outside(setup.instance, setup.profile),
        )
        for name, setup in desk.setups.items()
    }
    for name, profile in profiles.items():
        desk.database.apply_profile(name, profile.model_dump_json(), profile.digest())
    return desk


def _write_outlook(home: Path, closes: int) -> None:
    """Write a headline for every two hours and an event for every five."""
    moods = ("surges on record inflows", "slides on regulator's warning", "trades sideways")
    lines = [
        {
            "headline": f"Bitcoin {moods[hour // 2 % 3]}, hour {hour}",
            "published": iso(desks.START + timedelta(hours=hour, minutes=3)),
        }
        for hour in range(-6, closes // 4 + 4, 2)
    ]
    (home / HEADLINES).write_text("".join(json.dumps(line) + "\n" for line in lines))
    times = [
        iso(desks.START + timedelta(hours=hour, minutes=30))
        for hour in range(1, closes // 4 + 9, 5)
    ]
    rows = "".join(f"{time},USD,high,Invented release\n" for time in times)
    (home / CALENDAR).write_text("time,currency,impact,name\n" + rows)
