"""Who spends beside the ticks takes nothing from them: no hour above its ceiling, no level lower.

A schedule is drawn twice into one ledger: with those who spend beside the ticks, and without. The
ticks of both are the same, at any cost up to their worst; so every level that differs is theirs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from agent_config import AgentSettings
from agents.contracts import CallBound, Completion, ModelUnavailable, Prompt, Request, Role
from instance_database import Database, TickKey
from torra.config import Instance
from torra.errors import ConfigError
from torra.providers.prices import PriceList
from torra.store.ledger import Booking, Settlement
from torra.tick import spending
from torra.tick.degradation import ladder, tick_worst_case
from torra.tick.spending import (
    HOUR,
    OFF_TICK,
    OffTickAccount,
    OffTickKind,
    SpendingAccount,
    only_model,
    streams_of,
)

START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
PRICES: Final = PriceList(now=lambda: START)
MODEL: Final = "anthropic:claude-sonnet-5-5"
LASTS: Final = timedelta(hours=4)
PERIODS: Final = {"M15": timedelta(minutes=15), "H1": HOUR}
EXACT: Final = 1e-9


def is_local(_: str) -> bool:
    return False


def costs_of(settings: AgentSettings) -> list[float]:
    return [
        tick_worst_case(PRICES, each.settings, is_local)
        for each in ladder(settings)
        if each.calls_models
    ]


COSTS: Final = {
    mode: costs_of(AgentSettings(provider="anthropic", mode=mode)) for mode in ("firm", "swarm")
}


@dataclass
class Desk:
    """A profile in the ledger, at a moment that a test moves."""

    database: Database
    agents: AgentSettings
    name: str = "mine"
    now: datetime = START
    number: int = 0

    @property
    def ceiling(self) -> float:
        return self.agents.max_api_cost_per_hour

    def tick(self, share: float) -> int:
        """Run a tick at a share of its worst case; return the number of its level."""
        account = SpendingAccount(self.database, PRICES, self.name, is_local, lambda: self.now)
        level = account.degradation_level(self.agents)
        names = [each.name for each in ladder(self.agents)]
        if level.calls_models:
            self.number += 1
            assert account.affords(level.worst_usd, self.ceiling, self.now)
            key = TickKey("gold", "M15", self.now + timedelta(microseconds=self.number)).text
            row = Booking("analysts", "a", 1, 1, "anthropic", "x", level.worst_usd)
            [booked] = self.database.book(self.name, key, [row], at=self.now, until=self.now)
            self.database.settle(booked, Settlement(share * level.worst_usd, self.now))
        return names.index(level.name)

    def ask(
        self,
        kind: OffTickKind,
        size: int,
        share: float,
        streams: int,
        cap_usd: float = math.inf,
    ) -> bool:
        """Let a kind ask once beside the ticks; return whether that was granted."""
        self.number += 1
        account = OffTickAccount(
            self.database, PRICES, self.name, is_local, lambda: self.now,
            kind=kind, agents=self.agents, streams=streams, cap_usd=cap_usd,
        )  # fmt: skip
        bound = CallBound("asker", MODEL, size, 700, 1, 1)

        def answer(request: Request) -> Future[Completion]:
            future: Future[Completion] = Future()
            worst = PRICES.worst_case(
                "anthropic", "claude-sonnet-5-5", prompt_bytes=size, output_tokens=700
            )
            if share < 1.0:
                future.set_result(
                    Completion("{}", "claude-sonnet-5-5", "anthropic", 9, 9, share * worst)
                )
            else:  # it may have been billed, and nobody knows
                future.set_exception(ModelUnavailable("timeout"))
            return future

        purse = account.purse(
            TickKey(kind, str(self.number), self.now),
            only_model(self.agents, "anthropic", MODEL),
            answer,
            monotonic=lambda: 0.0,
            deadline=30.0,
        )
        if not purse.reserve(kind, [bound]):
            return False
        purse.submit(
            Request(
                Role("asker", "", "analyst", "deep"), 1, 1, "GOLD", "M15", "", MODEL,
                Prompt("", "?", "report"), {}, features={}, reports=(), scores={},
                max_output_tokens=700, limit_s=1.0,
            )
        )  # fmt: skip
        assert purse.paid() > 0.0
        return True

    def spent(self, *kinds: str) -> float:
        return self.database.spent(self.name, self.now - HOUR, stages=kinds or None)


class Schedule:
    """Hours of ticks and of requests beside them, drawn from a seed."""

    def __init__(self, database: Database, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        mode = chance.choice([*COSTS])
        self.top = COSTS[mode][0]
        self.streams = chance.choices([*PERIODS], k=chance.randint(1, 4))
        closes = sum(HOUR // PERIODS[each] + 1 for each in self.streams)
        share = chance.choice([0.0, 0.1, 0.25, 0.5])
        # From one tick an hour to all that there can be, with room for the share beside them.
        ceiling = chance.choice(
            [self.top * chance.uniform(0.5, closes), self.top * closes / (1.0 - share) + EXACT]
        )
        self.is_roomy = closes * self.top + share * ceiling <= ceiling + EXACT
        agents = AgentSettings(
            provider="anthropic", mode=mode, max_api_cost_per_hour=ceiling, off_tick_share=share
        )
        self.desk = Desk(database, agents, f"{seed}-with")
        self.alone = Desk(database, agents, f"{seed}-without")
        self.granted = self.sat = self.lower = self.binding = 0

    def moments(self) -> Iterator[tuple[datetime, str]]:
        """Return when what happens: a tick of a stream, or a request beside the ticks."""
        for period in self.streams:
            late = timedelta(seconds=self.chance.uniform(0, 20))
            for number in range(1, LASTS // PERIODS[period] + 1):
                yield START + number * PERIODS[period] + late, "tick"
        for _ in range(self.chance.randint(0, 40)):
            yield START + self.chance.random() * LASTS, "ask"
        for _ in range(self.chance.randint(0, 2)):
            began = START + self.chance.random() * LASTS
            # two rounds of three seats, each asked again up to three times by a busy vendor
            for call in range(6):
                for again in range(self.chance.randint(1, 4)):
                    yield began + timedelta(seconds=45 * (call // 3) + 3 * again), "committee"

    def run(self) -> None:
        """Let it happen; every tick and every hour is looked at."""
        chance, desk, first = self.chance, self.desk, 0
        for moment, what in sorted(self.moments()):
            desk.now = self.alone.now = moment
            if what != "tick":
                share = chance.choice([chance.random(), 1.0])
                sized = chance.choice([chance.randint(100, 4_000), chance.randint(4_000, 60_000)])
                kind = chance.choice(OFF_TICK) if what == "ask" else "committee"
                if desk.ask(kind, sized, share, len(self.streams)):
                    self.granted += 1
                    self.sat += what == "committee"
                    first = len(self.streams)
            else:
                share = chance.choice([chance.random(), 1.0])
                level, alone = desk.tick(share), self.alone.tick(share)
                if first or self.is_roomy:
                    assert level <= alone, "a tick that comes first is a level lower"
                self.lower += level > alone
                first = max(0, first - 1)
            assert desk.spent() <= desk.ceiling + EXACT
            most = desk.agents.off_tick_share * desk.ceiling
            assert desk.spent(*OFF_TICK) <= most + EXACT
            self.binding += desk.spent(*OFF_TICK) > 0.8 * most > 0.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database.open(tmp_path / "torra.db", now=lambda: START)) as found:
        found.connection().execute("PRAGMA synchronous = OFF")
        yield found


@pytest.mark.timeout(1800)  # 10,000 schedules by night
def test_no_hour_passes_its_ceiling_and_no_tick_that_comes_first_is_a_level_lower(
    database: Database, scaled: Callable[..., int]
) -> None:
    granted = sat = binding = roomy = 0
    for seed in range(scaled(10_000, least=12)):
        schedule = Schedule(database, seed)
        schedule.run()
        granted += schedule.granted
        sat += schedule.sat
        binding += schedule.binding
        roomy += schedule.is_roomy and schedule.granted
    assert granted and sat and binding and roomy, "nobody spent beside the ticks"


def desk_of(database: Database, ceiling: float, share: float = 1.0) -> Desk:
    agents = AgentSettings(
        provider="anthropic", mode="firm", max_api_cost_per_hour=ceiling, off_tick_share=share
    )
    return Desk(database, agents)


def test_all_kinds_share_one_share_and_a_cap_is_inside_it(database: Database) -> None:
    desk = desk_of(database, 10.0, 0.01)
    granted = [desk.ask(kind, 6_000, 1.0, 1) for kind in OFF_TICK]
    assert granted == [True] * granted.count(True) + [False] * granted.count(False)
    assert 0 < granted.count(True) < len(OFF_TICK)
    desk.now += 1.1 * HOUR
    assert not desk.ask("chat", 6_000, 1.0, 1, cap_usd=0.001), "the cap of its kind"
    assert desk.ask("radar", 6_000, 1.0, 1), "and of no other"


def test_a_share_of_nothing_grants_nothing(database: Database) -> None:
    assert not desk_of(database, 10.0, 0.0).ask("review", 100, 0.5, 1)


@pytest.mark.parametrize(("streams", "granted"), [(1, True), (2, False)])
def test_what_all_streams_may_cost_that_close_together_is_left(
    database: Database, streams: int, granted: bool
) -> None:
    desk = desk_of(database, 1.5 * COSTS["firm"][0])
    assert desk.ask("radar", 6_000, 1.0, streams) == granted


def test_a_profile_that_stands_a_step_down_is_left_what_it_needs_to_climb(
    database: Database,
) -> None:
    top = COSTS["firm"][0]
    desk = desk_of(database, 1.2 * top)
    with database.transaction():
        row = Booking("analysts", "a", 1, 1, "anthropic", "x", top)
        database.book(desk.name, "then", [row], at=desk.now, until=desk.now)
    assert desk.tick(0.0) > 0, "it steps down"
    desk.now += 1.1 * HOUR
    assert not desk.ask("radar", 36_000, 1.0, 1)
    assert desk.tick(0.0) == 0
    assert desk.ask("radar", 36_000, 1.0, 1), "one tick at its worst fits beside it"


def test_a_tick_that_the_ceiling_could_not_pay_keeps_nothing(database: Database) -> None:
    desk = desk_of(database, 0.5 * COSTS["firm"][-1])
    assert desk.ask("radar", 6_000, 1.0, 9)


def test_a_desk_that_cannot_be_seated_is_named(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> float:
        raise ValueError("nobody of that name")

    monkeypatch.setattr(spending, "tick_worst_case", fail)
    with pytest.raises(ConfigError, match="profile mine: nobody of that name"):
        desk_of(database, 1.0).ask("review", 100, 0.5, 1)


@pytest.mark.parametrize(
    ("profiles", "streams"), [((), 1), (("mine",), 2), (("mine", "other", "mine"), 4)]
)
def test_streams_of_a_profile_are_counted(profiles: Sequence[str], streams: int) -> None:
    instances = [
        Instance(symbol="GOLD", timeframes=("M15", "H1"), profile=each) for each in profiles
    ]
    assert streams_of(instances, "mine") == streams
