"""No sliding hour costs more than its ceiling, whatever happens to calls, desk and clock.

A world in simulated time: several symbols on two profiles, ticks of any stages that overlap,
answers that come, fail, hang or come late, restarts that forget everything but the file, edits of
the ceiling, a clock that is set back, a database that fails, replies that were cut off and are
asked again with twice the output, and reviews of closed trades between the ticks. The world keeps
its own account of what was truly spent.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import AgentSettings
from agents.contracts import (
    CallBound,
    Completion,
    GateRuling,
    ModelUnavailable,
    Prompt,
    Request,
    Role,
    SourceType,
    Tier,
)
from agents.debate.deliberation import Deliberation
from agents.registry import REVIEWER
from instance_database import Database, TickKey
from torra.desk.memory.reviews import ANSWER_SECONDS
from torra.desk.models.off_tick import OffTickKey
from torra.errors import StoreUnavailable
from torra.providers.prices import CHAT_TOKENS, OUTPUT_ALLOWANCE, SCHEMA_TOKENS, PriceList, Usage
from torra.tick import spending
from torra.tick.degradation import worst_case
from torra.tick.spending import HOUR, LINGER, OffTickAccount, SpendingAccount

START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
LENGTH: Final = 2.2 * HOUR.total_seconds()
BYTES: Final = 4_000
OUTPUT: Final = 700
MODELS: Final = (
    "anthropic:claude-haiku-5-5",
    "anthropic:claude-sonnet-5-5",
    "google:gemini-3.8-flash",
    "anthropic:claude-nobody-knows",
    "openai_compatible:a-model-of-ones-own",
)
SPARES: Final = ("google", "openai_compatible:a-model-of-ones-own", "anthropic:claude-haiku-5-5")
"""Who may stand in, each vendor once."""

MIXED: Final = {"ok": 9, "free": 1, "billed": 1, "hang": 2, "cancelled": 1, "late": 2}
FATES: Final = (
    (MIXED, MIXED),
    ({"ok": 1}, {"ok": 1}),
    ({"ok": 1, "late": 5}, {"ok": 1}),
    ({"ok": 1, "billed": 2}, {"ok": 1}),
    ({"ok": 1, "hang": 4}, {"ok": 1}),
)
"""How calls end, with weights: in each sequence one of these, at first and after half an hour."""

LOCAL: Final = "openai_compatible"
PRICES: Final = PriceList(now=lambda: START)
KEPT_FOR_A_TICK: Final = 0.002
"""What one tick of these worlds may cost for a review's purse, in USD."""

TICKS_FIRST: Final = 2

NOTHING: Final = Deliberation(
    SourceType.L1_ONLY, {}, {}, {}, {}, {}, GateRuling(), GateRuling()
)  # fmt: skip


def is_local(vendor: str) -> bool:
    return vendor == LOCAL


class FlakyDatabase(Database):
    """The real file, without waiting for the disk; some transactions fail before or after."""

    trouble: Callable[[], str] = staticmethod(lambda: "")

    @contextmanager
    def transaction(self, wait_seconds: float | None = None) -> Iterator[None]:
        if self.connection().conn.in_transaction:
            with super().transaction(wait_seconds):
                yield
            return
        trouble = self.trouble()
        if trouble == "before":
            raise StoreUnavailable("locked")
        with super().transaction(wait_seconds):
            yield
            if trouble == "inside":
                raise StoreUnavailable("disk I/O")
        if trouble == "after":
            raise StoreUnavailable("nobody knows whether it was kept")


def open_database(path: Path, now: Callable[[], datetime]) -> FlakyDatabase:
    database = FlakyDatabase(path, now=now)
    database.connection().execute("PRAGMA synchronous = OFF")
    return database


class World:
    """One sequence: what happens is drawn from `chance`, when is simulated time in seconds."""

    def __init__(self, path: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.path = path
        self.time = 0.0
        self.set_back = 0.0
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.number = count()
        self.fates = self.chance.choice(FATES)
        self.profiles = {f"{seed}-{name}": self._settings() for name in ("calm", "rash")}
        # A replay has a sum beside the ceiling of the hour, and reviews nothing.
        self.most = {
            name: hours and hours * settings.max_api_cost_per_hour
            for name, settings in self.profiles.items()
            for hours in [self.chance.choice([None, None, 0.5, 1.5])]
        }
        self.spends: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        self.asked = self.reviews = self.enlarged = 0
        self.incarnation = 0
        self.late: dict[str, dict[int, Any]] = defaultdict(dict)
        self.database = self._opened()

    # --- the run --------------------------------------------------------------------------------

    def run(self) -> None:
        for profile in self.profiles:
            for symbol in ("BTCUSD", "XAUUSD", "EURUSD")[: self.chance.randint(1, 3)]:
                self._stream(profile, symbol)
            self._reviews(profile)
        for happening, often in ((self._edit, 3), (self._restart, 2), (self._clock_back, 1)):
            for _ in range(self.chance.randint(0, often)):
                self.at(self.chance.uniform(0, LENGTH), happening)
        while self.agenda:
            self.time, _, happen = heapq.heappop(self.agenda)
            happen()
        self.database.close()

    def at(self, moment: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (moment, next(self.number), happen))

    def alive(self, happen: Callable[[], None]) -> Callable[[], None]:
        """Let something happen only to the desk that runs now, not to one that was restarted."""
        born = self.incarnation
        return lambda: happen() if self.incarnation == born else None

    def now(self) -> datetime:
        return START + timedelta(seconds=self.time - self.set_back)

    # --- what happens to the desk ---------------------------------------------------------------

    def _settings(self) -> AgentSettings:
        first, second, third = self.chance.choices(MODELS, k=3)
        asked = {name.partition(":")[0] for name in (first, second, third)}
        chain = self.chance.sample(SPARES, self.chance.choice([0, 0, 1, 2, 3]))
        settings = AgentSettings(
            mode="firm",
            provider="anthropic",
            quick_think_model=first,
            deep_think_model=second,
            chief_think_model=third,
            fallback_models=[name for name in chain if asked != {name.partition(":")[0]}],
        )
        return self._with_ceiling(settings)

    def _with_ceiling(self, settings: AgentSettings) -> AgentSettings:
        every = (bound_of(settings, "a", tier, 1) for tier in TIERS)
        dear = max(worst_case(PRICES, settings, is_local, bound) for bound in every)
        ceiling = self.chance.choice([0.0, 1.0, 2.0, 4.0, 9.0]) * (dear or 0.01)
        ceiling *= self.chance.uniform(0.9, 1.3)
        return settings.model_copy(update={"max_api_cost_per_hour": ceiling})

    def _reviews(self, profile: str) -> None:
        """Have closed trades reviewed: some right among the ticks' bursts, some between them."""

        def review() -> None:
            Review(self, profile).step()

        for _ in range(self.chance.randint(0, 6) if self.most[profile] is None else 0):
            burst = self.chance.choice([0.0, HOUR.total_seconds(), self.chance.uniform(0, LENGTH)])
            moment = burst + self.chance.uniform(0, 60)
            if moment >= self.time:
                self.at(moment, self.alive(review))

    def _edit(self) -> None:
        profile = self.chance.choice(list(self.profiles))
        settings = self.profiles[profile]
        changed = self._settings() if self.chance.random() < 0.3 else self._with_ceiling(settings)
        self.profiles[profile] = changed

    def _restart(self) -> None:
        self.database.close()
        self.incarnation += 1
        self.database = self._opened()
        self.late = defaultdict(dict)
        for profile in self.profiles:
            self._stream(profile, "BTCUSD")
            self._reviews(profile)

    def _clock_back(self) -> None:
        self.set_back += self.chance.choice([5.0, 300.0, 4000.0])

    def _opened(self) -> FlakyDatabase:
        database = open_database(self.path, self.now)
        troubles = ["before", "inside", "after"]
        database.trouble = lambda: (
            self.chance.choice(troubles) if self.chance.random() < 0.02 else ""
        )
        return database

    def _stream(self, profile: str, symbol: str) -> None:
        """Run ticks of one symbol: in bursts an hour apart, where a window is tight, and between.

        Some begin while another is still running.
        """

        def tick() -> None:
            Tick(self, profile, symbol).step()

        hour, spread = HOUR.total_seconds(), self.chance.choice([8.0, 30.0, 90.0])
        for _ in range(self.chance.randint(2, 10)):
            after = hour + self.chance.choice([40.0, 75.0, self.chance.uniform(0, 2400)])
            burst = self.chance.choice([0.0, 0.0, hour, 2 * hour, after])
            moment = burst + self.chance.uniform(0, spread)
            if moment >= self.time:
                self.at(moment, self.alive(tick))


class Tick:
    """One tick: stages one after the other, each with its requests and one retry at most."""

    def __init__(self, world: World, profile: str, symbol: str) -> None:
        self.world, self.profile = world, profile
        self.settings = world.profiles[profile]
        self.ceiling = self.settings.max_api_cost_per_hour
        self.deadline = world.time + self.settings.timeout_seconds
        # A profile's ceiling is shared by the desk and by other scorers on its home.
        host = world.chance.choice(["", "host:scorer:"])
        self.key = TickKey(f"{host}{symbol}-{next(world.number)}", "M1", world.now())
        self.stages = iter(stages_of(self.settings, world.chance))
        self.stale: list[Request] = []
        account = SpendingAccount(
            world.database, PRICES, profile, is_local, world.now, world.late[profile],
            world.most[profile],
        )  # fmt: skip
        self.purse = account.purse(
            self.key, self.settings, self.answer,
            monotonic=lambda: world.time, deadline=self.deadline,
        )  # fmt: skip

    @property
    def row_key(self) -> str:
        return self.key.text

    def step(self) -> None:
        """Run the next stage, or end the tick."""
        chance, world = self.world.chance, self.world
        bounds = next(self.stages, ())
        if not bounds or world.time >= self.deadline:
            self.purse.settled(NOTHING)
            self._refused(self.stale)
            return
        try:
            granted = self.purse.reserve(STAGE, bounds)
        except StoreUnavailable:
            granted = False
        self._refused(self.stale)
        until = min(self.deadline, world.time + chance.uniform(0.5, 8.0))
        requests = [asking(bound, 1) for bound in bounds]
        if granted:
            for request in requests:
                self._ask(request, until)
        else:
            self._refused(requests[:2])
        self.stale = [asking(bound, attempt) for bound in bounds[:1] for attempt in (1, 2)]
        world.at(until, world.alive(self.step))

    def _ask(self, request: Request, until: float) -> None:
        world = self.world
        if world.chance.random() < 0.1:
            return  # an agent that abstains
        future = self.purse.submit(request)
        if world.chance.random() < 0.5:
            moment = world.time + world.chance.uniform(0, 4)
            if moment < until:
                again = partial(self._again, asking(bound_again(request), 2))
                world.at(moment, world.alive(again))
        assert future is not None

    def _again(self, second: Request) -> None:
        """Ask once more; a reply that was cut off with twice the output, where that is granted."""
        if self.world.chance.random() < 0.5:
            self.purse.submit(second)
            return
        more = replace(bound_again(second), output_tokens=2 * OUTPUT, requests=1, attempt=2)
        larger = replace(second, max_output_tokens=2 * OUTPUT)
        if worst_case(PRICES, self.settings, is_local, more):
            self._refused([larger])
        try:
            granted = self.purse.reserve(STAGE, [more])
        except StoreUnavailable:
            granted = False
        if not granted:
            self._refused([second, larger])
            return
        self.world.enlarged += 1
        self.purse.submit(larger)

    def _refused(self, requests: list[Request]) -> None:
        """Nothing is sent that was not granted, or was granted to a stage that is over."""
        asked = self.world.asked
        for request in requests:
            with pytest.raises(ModelUnavailable, match="budget"):
                self.purse.submit(request)
        assert self.world.asked == asked

    # --- the vendor -----------------------------------------------------------------------------

    def answer(self, request: Request) -> Future[Completion]:
        """Play a vendor: what is truly spent, when, and what the desk hears of it."""
        world, chance = self.world, self.world.chance
        world.asked += 1
        future: Future[Completion] = Future()
        vendor, model = self._routed(request)
        usd, usage = self._usage(vendor, model, request.max_output_tokens)
        self._check_reserved(request, vendor)
        fates = world.fates[world.time > 0.5 * HOUR.total_seconds()]
        (kind,) = chance.choices(list(fates), list(fates.values()))
        end = world.time + chance.uniform(0.1, 9.0)
        last = max(end, self.deadline + LINGER.total_seconds())
        if kind == "ok":
            self._spend(usd, chance.choice([end, chance.uniform(world.time, end)]))
            self._hear(end, future, completion(vendor, model, usd, usage))
        elif kind == "free":
            self._hear(end, future, ModelUnavailable("error", "429", again=0.1, billed=False))
        elif kind == "late":
            end = chance.choice([last, self.deadline + chance.uniform(0, LINGER.total_seconds())])
            end = max(end, world.time)
            self._spend(usd, end, only_alive=True)
            self._hear(end, future, completion(vendor, model, usd, usage))
        elif kind == "billed":
            self._spend(usd, chance.uniform(world.time, end))
            self._hear(end, future, chance.choice([ModelUnavailable("timeout"), OSError("gone")]))
        else:
            self._spend(usd, chance.choice([last, chance.uniform(world.time, last)]))
            if kind == "cancelled":
                world.at(end, world.alive(partial(cancel, future)))
        return future

    def _routed(self, request: Request) -> tuple[str, str]:
        """Return who takes the request: now and then one of those who stand in."""
        vendor, _, model = request.model.partition(":")
        spares = self.settings.fallbacks(request.role.tier)
        if spares and self.world.chance.random() < 0.3:
            return self.world.chance.choice(spares)
        return vendor, model

    def _usage(self, vendor: str, model: str, output: int) -> tuple[float, Usage]:
        chance = self.world.chance
        full = chance.random() < 0.5
        most = BYTES + SCHEMA_TOKENS + CHAT_TOKENS
        tokens = most if full else chance.randint(1, most)
        cached = 0 if full else chance.randint(0, tokens)
        usage = Usage(
            tokens,
            output + OUTPUT_ALLOWANCE if full else chance.randint(0, output),
            cached,
            tokens if full else chance.randint(0, tokens - cached),
        )
        return PRICES.cost(vendor, model, usage, local=is_local(vendor)), usage

    def _check_reserved(self, request: Request, vendor: str) -> None:
        first = request.model.partition(":")[0]
        if is_local(vendor) and first == vendor:
            return
        row = self.world.database.row(
            "SELECT state, usd FROM ledger WHERE profile = ? AND torra_key = ? AND role = ? "
            "AND round = ? AND attempt = ?",
            self.profile, self.row_key, request.role.id, request.round, request.attempt,
        )  # fmt: skip
        assert row is not None and row["state"] == "reserved" and row["usd"] > 0

    def _spend(self, usd: float, moment: float, *, only_alive: bool = False) -> None:
        def spend() -> None:
            self.world.spends[self.profile].append((self.world.time, usd, self.ceiling))

        self.world.at(moment, self.world.alive(spend) if only_alive else spend)

    def _hear(self, moment: float, future: Future[Completion], heard: Any) -> None:
        def on_event() -> None:
            if isinstance(heard, BaseException):
                future.set_exception(heard)
            else:
                future.set_result(heard)

        self.world.at(moment, self.world.alive(on_event))


class Review(Tick):
    """One review: a single request, booked beside the ticks."""

    def __init__(self, world: World, profile: str) -> None:
        self.world, self.profile = world, profile
        self.settings = world.profiles[profile]
        self.ceiling = self.settings.max_api_cost_per_hour
        self.deadline = world.time + ANSWER_SECONDS
        self.review_key = OffTickKey("review", f"{next(world.number):012x}")
        account = OffTickAccount(
            world.database, PRICES, profile, is_local, world.now,
            kind="review", agents=self.settings, streams=TICKS_FIRST,
        )  # fmt: skip
        self.purse = account.purse(
            self.review_key, self.settings, self.answer,
            monotonic=lambda: world.time, deadline=self.deadline,
        )  # fmt: skip

    @property
    def row_key(self) -> str:
        return self.review_key.text

    def step(self) -> None:
        """Ask, if it is granted, and see what came of it."""
        world = self.world
        bound = CallBound(
            REVIEWER.id,
            self.settings.model(REVIEWER.id, REVIEWER.tier),
            prompt_bytes=BYTES,
            output_tokens=OUTPUT,
            requests=1,
            round=world.chance.randint(1, 2),
        )
        request = asking(bound, 1)
        try:
            granted = self.purse.reserve("review", [bound])
        except StoreUnavailable:
            granted = False
        if not granted:
            self._refused([request])
            return
        if worst_case(PRICES, self.settings, is_local, bound):
            spent = world.database.spent(self.profile, world.now() - HOUR)
            assert spent + TICKS_FIRST * KEPT_FOR_A_TICK <= self.ceiling + 1e-9
        world.reviews += 1
        self.purse.submit(request)
        self._refused([request])
        until = self.deadline if world.chance.random() < 0.3 else world.time + 8.0
        world.at(until, world.alive(self._end))

    def _end(self) -> None:
        self.purse.paid()


STAGE: Final = "analysts"
TIERS: Final[tuple[Tier, ...]] = ("quick", "deep", "chief")


def stages_of(settings: AgentSettings, chance: random.Random) -> list[tuple[CallBound, ...]]:
    """Return what the stages of a tick may ask, each a few roles in a round of its own."""
    return [
        tuple(
            bound_of(settings, role, chance.choice(TIERS), number)
            for role in chance.sample("abcdefgh", chance.randint(1, 6))
        )
        for number in range(1, chance.randint(3, 7))
    ]


def bound_of(settings: AgentSettings, role: str, tier: Tier, number: int) -> CallBound:
    return CallBound(
        role, settings.model(role, tier), BYTES, OUTPUT, requests=2, round=number, tier=tier
    )


def cancel(future: Future[Completion]) -> None:
    assert future.cancel()


def asking(bound: CallBound, attempt: int) -> Request:
    return Request(
        role=Role(bound.role_id, "", "analyst", bound.tier),
        round=bound.round,
        attempt=attempt,
        symbol="BTCUSD",
        timeframe="M1",
        bar_time="",
        model=bound.model,
        prompt=Prompt("", "?" * 10, "report"),
        schema={},
        features={},
        reports=(),
        scores={},
        max_output_tokens=OUTPUT,
        limit_s=1.0,
    )


def bound_again(request: Request) -> CallBound:
    role = request.role
    return CallBound(role.id, request.model, BYTES, OUTPUT, 2, request.round, tier=role.tier)


def completion(vendor: str, model: str, usd: float, usage: Usage) -> Completion:
    tokens = usage.input, usage.output
    return Completion("{}", model, vendor, *tokens, usd, cached_tokens=usage.cached)


def excess(spends: list[tuple[float, float, float]]) -> float:
    """Return by how much the dearest hour exceeds the ceiling under which it was spent.

    The ceiling of an hour is the largest that held for a tick which spent in it.
    """
    spends = sorted(spends)
    times = [moment for moment, _, _ in spends]
    worst = float("-inf")
    for last, (moment, _, _) in enumerate(spends):
        first = bisect_right(times, moment - HOUR.total_seconds())
        hour = spends[first : last + 1]
        worst = max(worst, sum(usd for _, usd, _ in hour) - max(row[2] for row in hour))
    return worst


def test_no_sliding_hour_costs_more_than_its_ceiling(
    tmp_path: Path, scaled: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "torra.db"
    Database.open(path, now=lambda: START).close()
    # Ticks of this world are small, and so is what a review leaves to them.
    monkeypatch.setattr(spending, "tick_worst_case", lambda *_: KEPT_FOR_A_TICK)
    asked = binding = reviewed = enlarged = summed = 0
    for seed in range(scaled(10_000, 6)):
        world = World(path, seed)
        world.run()
        asked += world.asked
        reviewed += world.reviews
        enlarged += world.enlarged
        for profile, spends in world.spends.items():
            over = excess(spends)
            assert over <= 1e-9, f"sequence {seed}, profile {profile}: {over} USD above"
            binding += over > -0.25 * max(row[2] for row in spends)
            if (most := world.most[profile]) is not None:
                total = sum(usd for _, usd, _ in spends)
                assert total <= most + 1e-9, f"sequence {seed}, profile {profile}: {total} USD"
                summed += total > 0.5 * most
    assert asked and binding, "nobody came near a ceiling"
    assert summed, "no replay came near its sum"
    assert reviewed, "no trade was reviewed"
    assert enlarged, "no reply that was cut off was asked again"
