"""The sum of a replay: never passed, by an hour that slides, two at once, restarts or pruning."""

from __future__ import annotations

import random
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent_config import MAX_PROMPT_BYTES, AgentSettings
from agents.contracts import CallBound, Completion
from instance_database import Database
from tests.tick.test_ceiling import NOTHING, asking
from tests.worlds.purses import booking
from tests.worlds.stores import NOON, Hand, key_of, open_database
from torra.config import NAME, Profile, validate
from torra.errors import ConfigError, StoreUnavailable
from torra.providers.prices import PriceList
from torra.replay import voices
from torra.replay.voices import Allowance, ledger_name
from torra.store import ledger as ledger_table
from torra.tick.spending import EVER, HOUR, Purse, SpendingAccount

MODEL = "claude-haiku-5-5"
PAID = AgentSettings(provider="anthropic", quick_think_model=MODEL, deep_think_model=MODEL)
MOST = 10.0
CALLED = ledger_name("mine")


class ByLength:
    """Prices of its own: a byte of a prompt is a cent, and a whole tick is nearly free."""

    def worst_case(self, vendor: str, model: str, *, prompt_bytes: int, **_: Any) -> float:
        return 0.0001 if prompt_bytes == MAX_PROMPT_BYTES else prompt_bytes / 100


def allowance(database: Database, hand: Hand, most: float = MOST) -> Allowance:
    prices = cast(PriceList, ByLength())
    return Allowance(SpendingAccount(database, prices, CALLED, lambda _: False, hand), most)


def purse(one: Allowance, answer: Future[Completion] | None = None) -> Purse | None:
    """Return the purse of the next tick; None where nobody is to be asked."""
    degradation_level = one.degradation_level(PAID)
    if not degradation_level.asked:
        return None
    return one.purse(
        key_of(NOON), degradation_level.settings, lambda _: answer or Future(),
        monotonic=lambda: 0.0, deadline=30.0,
    )  # fmt: skip


def bound(usd: float) -> CallBound:
    return CallBound("technical", MODEL, round(usd * 100), 10_000, requests=1)


def reserved(found: Purse | None, usd: float) -> bool:
    return found is not None and found.reserve("analysts", [bound(usd)])


def spend(database: Database, usd: float, ago: timedelta) -> None:
    moment = NOON - ago
    database.book(CALLED, "key", [booking(usd)], at=moment, until=moment)


# --- the sum ---


def test_what_slides_out_of_the_hour_after_the_rung_still_counts(
    database: Database, hand: Hand
) -> None:
    """9 of 10 USD are in the hour when the tick begins, and out of it when a stage is booked."""
    spend(database, 9.0, HOUR - timedelta(seconds=3))
    found = purse(allowance(database, hand))
    hand.pass_by(5)
    assert not reserved(found, 6)
    assert reserved(found, 1), "what is left may be spent"
    assert database.spent(CALLED, EVER) == MOST


def test_an_hour_has_no_ceiling_of_its_own(database: Database, hand: Hand) -> None:
    low = PAID.model_copy(update={"max_api_cost_per_hour": 0.5})
    degradation_level = allowance(database, hand).degradation_level(low)
    assert degradation_level.asked and degradation_level.settings.max_api_cost_per_hour == MOST


def test_where_nothing_is_left_or_nothing_can_be_read_nobody_is_asked(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = allowance(database, hand)
    assert one.degradation_level(PAID).asked
    spend(database, MOST, 2 * HOUR)
    assert not one.degradation_level(PAID).asked

    def broken(*_: object) -> float:
        raise StoreUnavailable("locked")

    monkeypatch.setattr(database, "spent", broken)
    assert not allowance(database, hand, most=99.0).degradation_level(PAID).asked


# --- the sum at random ---


class Replay:
    """One process that runs a replay under the name that another runs under too."""

    def __init__(self, folder: Path, hand: Hand, chance: random.Random) -> None:
        self.folder, self.hand, self.chance = folder, hand, chance
        self.spent = 0.0
        self.restart()

    def restart(self) -> None:
        self.database = open_database(self.folder, self.hand)
        self.database.connection().execute("PRAGMA synchronous = OFF")
        self.allowance = allowance(self.database, self.hand)
        self.open: list[tuple[Purse, Future[Completion]]] = []

    def step(self) -> None:
        """Begin a tick, book a stage of one that runs, end one, die, or prune."""
        chance = self.chance
        does = chance.choices((self.begin, self.book, self.end, self.die, self.prune),
                              (6, 8, 4, 1, 1))[0]  # fmt: skip
        if self.open or does not in (self.book, self.end):
            does()

    def begin(self) -> None:
        answer: Future[Completion] = Future()
        found = purse(self.allowance, answer)
        if found is not None:
            self.open.append((found, answer))

    def book(self) -> None:
        """Book a request and make it: what it costs is known at once, or never."""
        found, answer = self.chance.choice(self.open)
        usd = self.chance.randint(12, 400) / 100
        if answer.done() or not reserved(found, usd):
            return
        found.submit(asking(bound(usd), 1))
        hangs = self.chance.random() < 0.2
        cost = usd if hangs else usd * self.chance.uniform(0.2, 1.0)
        self.spent += cost
        if hangs:
            answer.cancel()
        else:
            answer.set_result(Completion("{}", MODEL, "anthropic", cost_usd=cost))

    def end(self) -> None:
        found, _ = self.open.pop(self.chance.randrange(len(self.open)))
        found.settled(NOTHING)

    def die(self) -> None:
        self.database.close()
        self.restart()

    def prune(self) -> None:
        ledger_table.prune_ledger(self.database, self.hand.moment - HOUR)


def world(folder: Path, chance: random.Random) -> float:
    """Live through one sequence; return what was spent, which the ledger covers at every step."""
    hand = Hand()
    both = [Replay(folder, hand, chance) for _ in range(2)]
    for _ in range(80):
        if chance.random() < 0.3:
            hand.pass_by(chance.choice([1, 5, 1800, 3597, 3600, 3603, 9000, -4000]))
        chance.choice(both).step()
        booked = both[0].database.spent(CALLED, EVER)
        assert sum(one.spent for one in both) <= booked + 1e-9
        assert booked <= MOST + 1e-9
    for one in both:
        one.database.close()
    return sum(one.spent for one in both)


def test_at_random_times_the_sum_is_never_passed(tmp_path: Path, scaled: Any) -> None:
    """Two replays under one name, ticks that overlap and hang, restarts, clocks set on and back."""
    spent = [
        world(tmp_path / str(seed), random.Random(seed)) for seed in range(scaled(2_000, least=15))
    ]
    assert max(spent) > MOST - 1.0 and min(spent) > 0.0


# --- names and sums ---


def test_no_replays_share_a_name_in_the_ledger() -> None:
    """Names of 26 to 32 characters used to be cut, and to be each other's."""
    names = [letter * length + end for letter in "ab" for length in range(1, 31) for end in "xy"]
    told = {ledger_name(name) for name in names}
    assert len(told) == len(names)
    assert all(name.startswith("replay.") and NAME.fullmatch(name) for name in told)
    assert not NAME.fullmatch("_"), "so a hash is nobody's own name"


@pytest.mark.parametrize("most", [float("nan"), float("inf"), -1.0])
def test_a_sum_is_a_number_of_dollars(tmp_path: Path, most: float) -> None:
    paid = validate(Profile, {"agents": {"provider": "anthropic"}}, "a test")
    with (
        pytest.raises(ConfigError, match="--max-cost"),
        voices.opened(tmp_path, paid, "BTCUSD", "mine", max_cost=most),
    ):
        pass
    assert not any(tmp_path.iterdir())
