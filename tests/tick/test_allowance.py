"""The sum of a replay: what slid out of the hour or was pruned counts; its names and its bounds.

That it is never passed is proved in the world of test_ceiling.
"""

from __future__ import annotations

from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent_config import MAX_PROMPT_BYTES, AgentSettings
from agents.contracts import CallBound
from instance_database import Database
from tests.worlds.purses import booking
from tests.worlds.stores import NOON, Hand, key_of
from torra.config import NAME, Profile, validate
from torra.errors import ConfigError, StoreUnavailable
from torra.providers.prices import PriceList
from torra.replay import voices
from torra.replay.voices import Allowance, ledger_name
from torra.store import ledger as ledger_table
from torra.tick.spending import EVER, HOUR, SpendingAccount

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


def bound(usd: float) -> CallBound:
    return CallBound("technical", MODEL, round(usd * 100), 10_000, requests=1)


def spend(database: Database, usd: float, ago: timedelta) -> None:
    moment = NOON - ago
    database.book(CALLED, "key", [booking(usd)], at=moment, until=moment)


def test_what_left_the_hour_or_was_pruned_still_counts(database: Database, hand: Hand) -> None:
    """9 of 10 USD are in the hour when the tick begins, and out of it when a stage is booked."""
    spend(database, 9.0, HOUR - timedelta(seconds=3))
    one = allowance(database, hand)
    level = one.degradation_level(PAID)
    purse = one.purse(
        key_of(NOON), level.settings, lambda _: Future(), monotonic=lambda: 0.0, deadline=30.0
    )
    hand.pass_by(5)
    assert ledger_table.prune_ledger(database, hand.moment + HOUR) == 0
    assert not purse.reserve("analysts", [bound(6)])
    assert purse.reserve("analysts", [bound(1)]), "what is left may be spent"
    assert database.spent(CALLED, EVER) == MOST


def test_an_hour_has_no_ceiling_of_its_own(database: Database, hand: Hand) -> None:
    low = PAID.model_copy(update={"max_api_cost_per_hour": 0.5})
    degradation_level = allowance(database, hand).degradation_level(low)
    assert (
        degradation_level.calls_models and degradation_level.settings.max_api_cost_per_hour == MOST
    )


def test_where_nothing_is_left_or_nothing_can_be_read_nobody_is_asked(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = allowance(database, hand)
    assert one.degradation_level(PAID).calls_models
    spend(database, MOST, 2 * HOUR)
    assert not one.degradation_level(PAID).calls_models

    def broken(*_: object) -> float:
        raise StoreUnavailable("locked")

    monkeypatch.setattr(database, "spent", broken)
    assert not allowance(database, hand, most=99.0).degradation_level(PAID).calls_models


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
