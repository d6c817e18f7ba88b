"""A vendor's count of tokens that cannot be: the most that the call could cost is booked, and told.

Counts from other rooms reach the purse as an answer's price. What no token costs, and what more
than all tokens cost, is not believed.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

import pytest

from agent_config import MAX_PROMPT_BYTES, MODELS, MODES, OUTPUT_TOKENS
from agents.contracts import Completion, Request
from agents.debate.deliberation import Deliberation
from instance_database import Database
from tests.cases import cases
from tests.doubles.scripted import AMPLE, Scripted, honest, settings
from tests.worlds.purses import debated
from tests.worlds.stores import NOON, Hand, key_of, open_database
from torra.providers.prices import PriceList, Usage
from torra.tick.spending import UNCOUNTED, SpendingAccount
from torra.words.ticks import FLAGS

LOCAL: Final = "openai_compatible"
MODEL: Final = MODELS[LOCAL]["quick"]
PRICED: Final = PriceList({MODEL: {"input": 2.0, "output": 8.0}}, now=lambda: NOON)
FREE: Final = PriceList(now=lambda: NOON)
WORST: Final = PRICED.worst_case(
    LOCAL, MODEL, prompt_bytes=MAX_PROMPT_BYTES, output_tokens=OUTPUT_TOKENS["quick"], local=True
)
TOKEN: Final = PRICED.cost(LOCAL, MODEL, Usage(1, 0), local=True)
PER_TICK: Final = 4


def run(
    database: Database, hand: Hand, provider: Any, prices: PriceList, *, ceiling: float = 100.0
) -> Deliberation:
    """Return a debate whose models stand on this machine."""
    config = settings(
        provider=LOCAL, quick_think_model=MODEL, deep_think_model=MODEL,
        max_api_cost_per_hour=ceiling,
    )  # fmt: skip
    account = SpendingAccount(database, prices, "mine", lambda _: True, hand)
    purse = account.purse(
        key_of(NOON), config.agents, provider.submit,
        monotonic=time.monotonic, deadline=time.monotonic() + AMPLE,
    )  # fmt: skip
    return purse.settled(debated(config, purse.submit, purse.reserve))


def counting(input_tokens: Any, output_tokens: Any, usd: Any) -> Scripted:
    """Return agents whose answers come with these figures."""

    def answer(request: Request) -> Completion:
        text = json.dumps(honest(request))
        return Completion(text, MODEL, LOCAL, input_tokens, output_tokens, usd)

    return Scripted(dict.fromkeys(MODES["budget"].seats, answer))


LIES: Final = {
    "nothing": (0, 0, 0.0),
    "nothing at a price": (0, 0, TOKEN),
    "10^15 in": (10**15, 9, 2e9),
    "10^15 out": (9, 10**15, 8e9),
    "less than nothing": (-5, -5, -0.25),
    "text": ("many", "few", 0.0),
    "text for a price": (9, 9, "2"),
    "no number": (9, 9, float("nan")),
    "without end": (9, 9, float("inf")),
}


@cases("figures", LIES.values(), ids=LIES)
def test_figures_that_cannot_be_cost_no_less_than_a_token_and_no_more_than_the_worst_case(
    figures: tuple[Any, Any, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    hand = Hand()
    database = open_database(tmp_path_factory.mktemp("home"), hand)
    spoken = run(database, hand, counting(*figures), PRICED)
    booked = [row["usd"] for row in database.rows("SELECT * FROM ledger")]
    assert len(booked) >= PER_TICK and all(TOKEN <= usd <= WORST * 2 for usd in booked)
    seats = {call.role_id for call in spoken.calls}
    assert {f"{UNCOUNTED}:{seat}" for seat in seats} <= set(spoken.flags), "of each stage"
    assert UNCOUNTED in FLAGS


def test_figures_that_can_be_are_booked_as_they_are(database: Database, hand: Hand) -> None:
    usd = PRICED.cost(LOCAL, MODEL, Usage(900, 90), local=True)
    spoken = run(database, hand, counting(900, 90, usd), PRICED)
    assert {row["usd"] for row in database.rows("SELECT * FROM ledger")} == {usd}
    assert not [flag for flag in spoken.flags if flag.startswith(UNCOUNTED)]


def test_a_server_without_a_price_stays_free_and_needs_no_database(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = SpendingAccount(database, FREE, "mine", lambda _: True, hand)
    for name in ("transaction", "connection"):
        monkeypatch.setattr(database, name, None)
    for figures in LIES.values():
        spoken = run(database, hand, counting(*figures), FREE, ceiling=0.0)
        assert not [flag for flag in spoken.flags if flag.startswith(UNCOUNTED)]
    assert account.degradation_level(
        settings(provider=LOCAL, max_api_cost_per_hour=0.0).agents
    ).calls_models
