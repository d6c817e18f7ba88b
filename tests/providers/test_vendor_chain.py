"""Three vendors of one chain, each down in one of seven ways: who is asked, how often, and when.

The clients are the vendors' own and the sockets a function. An agent asks as the framework has it
ask: a second time where the failure says that this may help at once.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import httpx2
import pytest

from agent_config import MODELS
from agents.contracts import ModelUnavailable
from agents.registry import AGENTS, SCORER
from tests.doubles.vendor_bench import (
    VENDORS,
    Answer,
    Bench,
    a_request,
    bench,
    failing,
    vendor_of,
)

KINDS: Final[dict[str, Any]] = {
    "no connection": httpx2.ConnectError("x"),
    "429": 429,
    "500": 500,
    "404": 404,
    "529": 529,
    "401": 401,
    "402": 402,
}
BILLED: Final = "500"
"""The one after which the vendor may send a bill all the same."""

TRIES: Final = 2
"""Attempts of one agent in one stage."""

HAIKU: Final = MODELS["anthropic"]["quick"]


CHAINS: Final[list[dict[str, str]]] = [
    dict(zip(vendors, kinds, strict=True))
    for vendors in itertools.permutations(VENDORS)
    for kinds in itertools.product(KINDS, repeat=len(VENDORS))
]
"""Vendors in the order in which they are asked, and how each of them fails."""


def faulty(chain: Mapping[str, str], down: Collection[str]) -> Answer:
    """Return vendors of which those that are down fail, each in its own way."""

    def answer(request: httpx2.Request) -> Any:
        vendor = vendor_of(request)
        return failing(KINDS[chain[vendor]], *down)(request)

    return answer


def stage(way: Bench, provider: Any, model: str = HAIKU, **changes: Any) -> tuple[str, list[str]]:
    """Ask as an agent does in one stage; return who answered, "" for nobody, and who was asked."""
    before = len(way.sent)
    for attempt in range(1, TRIES + 1):
        future = provider.submit(a_request(model, attempt=attempt, **changes))
        error = future.exception(timeout=30)
        if error is None or error.again != 0.0:
            break
    return "" if error else future.result().provider, way.vendors()[before:]


def chained(way: Bench, vendors: Sequence[str]) -> Any:
    return way.provider(vendors[0], fallback_models=list(vendors[1:]))


def some(scaled: Callable[..., int]) -> list[dict[str, str]]:
    """Return all chains, or by day a few of them."""
    return random.Random(5).sample(CHAINS, min(len(CHAINS), scaled(len(CHAINS), 21)))


@pytest.mark.journey
def test_a_vendor_down_in_each_stage_is_followed_by_the_next_one_which_answers_once(
    scaled: Callable[..., int],
) -> None:
    for chain in some(scaled):
        first, second, third = chain
        down, model = {first}, MODELS[first]["quick"]
        with bench(faulty(chain, down)) as way:
            provider = chained(way, [*chain])
            assert stage(way, provider, model) == (second, [first, second]), chain
            down.add(second)
            assert stage(way, provider, model) == (third, [second, third]), chain
            down.add(third)
            _, order = stage(way, provider, model)
            assert order[0] == third and len(order) <= TRIES, chain
            down.difference_update((first, third))
            reached = stage(way, provider, model, bar_time="the next tick")
            assert reached == (first, [first]) or first in way.clients.blocked(), chain
        with bench(faulty(chain, {first, second})) as way:
            provider = chained(way, [*chain])
            answered = (third, [first, second, third])
            if chain[first] == chain[second] == BILLED:  # as many as there are reservations
                answered = ("", [first, second])
            assert stage(way, provider, model) == answered, chain
            assert stage(way, provider, model) == (third, [third]), chain


def test_a_request_is_billed_once_at_most_and_asks_nobody_twice(
    scaled: Callable[..., int],
) -> None:
    for chain in some(scaled):
        with bench(faulty(chain, chain)) as way:
            provider = chained(way, [*chain])
            model = MODELS[next(iter(chain))]["quick"]
            error = provider.submit(a_request(model)).exception(30)
            order = way.vendors()
        assert isinstance(error, ModelUnavailable)
        bills = [chain[vendor] == BILLED for vendor in order]
        assert error.billed == any(bills) and not any(bills[:-1]), chain
        assert len(set(order)) == len(order), chain


async def refusing() -> httpx2.Response:
    await asyncio.sleep(0.3)
    return httpx2.Response(429)


def test_a_request_does_not_go_on_where_less_time_is_left_than_the_failure_took() -> None:
    with bench(failing(refusing, "anthropic")) as way:
        way.warm()
        error = chained(way, VENDORS).submit(a_request(HAIKU, limit_s=0.5)).exception(5)
        assert isinstance(error, ModelUnavailable) and error.detail == "429"
        assert way.vendors() == ["anthropic"]


def test_the_pause_that_one_vendor_asked_for_is_not_waited_for_at_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bench(failing(429, "anthropic")) as way:
        waited: list[float] = []
        asking = way.clients.ask

        def ask(vendor: str, model: str, request: Any, until: float) -> Any:
            waited.append(request.delay_s)
            return asking(vendor, model, request, until)

        monkeypatch.setattr(way.clients, "ask", ask)
        completion = chained(way, VENDORS).submit(a_request(HAIKU, delay_s=0.01)).result(timeout=30)
        assert (completion.provider, waited) == ("google", [0.01, 0.0])


def test_a_role_that_asks_once_goes_along_the_chain_too() -> None:
    with bench(failing(503, "anthropic", "openai_compatible")) as way:
        provider = way.provider("anthropic", fallback_models=["openai_compatible", "google:gem"])
        completion = provider.submit(a_request("claude-sonnet-5-5", role=SCORER)).result(timeout=30)
        assert (completion.provider, completion.model) == ("google", "gem")
        assert completion.detail == "anthropic: 503; openai_compatible: 503"
        assert [sent["model"] for sent in way.bodies()[:2]] == [
            "claude-sonnet-5-5", MODELS["openai_compatible"]["deep"],
        ]  # fmt: skip


def test_each_role_begins_at_its_own_vendor_whatever_the_order_of_the_chain() -> None:
    chain = ["anthropic", "google", "openai_compatible"]
    with bench(failing(429, "google")) as way:
        provider = way.provider(
            "openai_compatible", role_models={"news": "google:g"}, fallback_models=chain
        )
        news = stage(way, provider, "google:g", role=AGENTS["news"].role)
        assert news == ("anthropic", ["google", "anthropic"])
        assert stage(way, provider, "gpt-6-luna")[1] == ["openai_compatible"]
