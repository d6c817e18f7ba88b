"""Who is asked: the vendor that a model names, and who stands in while that one is down."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from datetime import date
from typing import Any, Final

import httpx2
import pytest

from agent_config import MODELS, AgentSettings
from agents.contracts import Completion, ModelUnavailable
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles.vendor_bench import (
    KEYS,
    LOCAL,
    VENDORS,
    a_request,
    bench,
    body,
    failing,
    good,
    vendor_of,
)
from torra.errors import ConfigError
from torra.providers import registry
from torra.providers.registry import check, open_provider
from torra.providers.rules.provider import RulesProvider
from torra.providers.vendors.routing import RoutedProvider

HAIKU: Final = MODELS["anthropic"]["quick"]
FLASH: Final = MODELS["google"]["quick"]
SPARE: Final = {"fallback_models": ["google"]}


def ask(provider: Any, model: str = HAIKU, **changes: Any) -> Any:
    """Return the completion of a request, or its ModelUnavailable."""
    future = provider.submit(a_request(model, **changes))
    error = future.exception(timeout=30)
    assert error is None or isinstance(error, ModelUnavailable)
    return error or future.result()


async def hanging() -> httpx2.Response:
    await asyncio.sleep(60)
    raise AssertionError


# The model's own vendor


def test_a_desk_may_mix_vendors_and_the_rules_and_the_record_says_who_answered() -> None:
    """The colon in a local model's name is no vendor's."""
    rows = {
        "bull_researcher": ("anthropic", HAIKU),
        "bear_researcher": ("google", FLASH),
        "technical": ("openai_compatible", "llama3:8b"),
        "risk_gate": ("rules", "rules"),
    }
    names = {role: ":".join(row) for role, row in rows.items() if row[0] != "rules"}
    settings = AgentSettings(role_models=names)
    with bench() as way:
        provider = open_provider(settings, way.clients)
        assert provider.name == "rules"
        for name, row in rows.items():
            role = AGENTS[name].role
            completion = ask(provider, settings.model(name, role.tier), role=role)
            assert completion.provider == row[0]
            assert row[0] == "rules" or completion.model == row[1]
        provider.close()
        assert ask(way.provider("openai_compatible"), "llama3:8b").model == "llama3:8b"


def test_two_desks_share_the_clients_and_not_their_troubles() -> None:
    with bench(failing(503, "anthropic")) as way:
        first = way.provider("anthropic", **SPARE)
        second = way.provider("anthropic", fallback_models=["openai_compatible:gpt-6-luna"])
        for _ in range(2):
            assert ask(first).provider == "google"
            assert ask(second).provider == "openai_compatible"
    assert way.vendors() == [
        "anthropic", "google", "anthropic", "openai_compatible", "google", "openai_compatible",
    ]  # fmt: skip


# The fallback (more of it in test_vendor_chain.py)


def test_the_next_tick_tries_the_first_vendor_again() -> None:
    troubles = iter([503])

    def answer(request):
        if vendor_of(request) == "anthropic" and next(troubles, None):
            return httpx2.Response(503)
        return good(request)

    with bench(answer) as way:
        provider: Any = way.provider("anthropic", **SPARE)
        for changes in ({}, {"bar_time": "later"}, {"timeframe": "H1"}, {"symbol": "EURUSD"}, {}):
            ask(provider, **changes)
        for number in range(30):
            ask(provider, bar_time=str(number))
        assert provider._ticks.cache_info().currsize <= 8, "only a few ticks are remembered"
    assert way.vendors()[:6] == [
        "anthropic", "google", "anthropic", "anthropic", "anthropic", "google",
    ]  # fmt: skip


def test_a_time_out_is_the_end_of_its_stage_and_at_that_moment_the_next_is_asked() -> None:
    with bench(failing(hanging, "anthropic")) as way:
        way.warm("anthropic", "google")
        provider = way.provider("anthropic", **SPARE)
        for number in range(5):
            bar = {"bar_time": str(number)}
            future = provider.submit(a_request(HAIKU, limit_s=0.1, **bar))
            time.sleep(0.1)  # the framework waits no longer
            assert ask(provider, limit_s=5.0, **bar).provider == "google"
            error: Any = future.exception(timeout=1)
            assert (error.reason, error.again, error.billed) == ("timeout", None, True)


@pytest.mark.parametrize("late", [httpx2.Response(200, json={}), httpx2.Response(400)])
def test_who_answered_or_failed_late_is_slow_for_the_rest_of_the_tick(
    late: httpx2.Response,
) -> None:
    async def slowly() -> httpx2.Response:
        await asyncio.sleep(0.3)
        return late

    with bench(failing(slowly, "anthropic")) as way:
        way.warm("anthropic", "google")
        provider = way.provider("anthropic", **SPARE)
        provider.submit(a_request(HAIKU, limit_s=0.1, linger_s=5.0)).exception(timeout=30)
        assert [ask(provider, limit_s=5.0).provider for _ in range(2)] == ["google", "google"]


REFUSAL: Final = body("anthropic", "no", "refusal")


@cases(
    ("how", "spare", "again"),
    [
        (413, SPARE, None),
        (400, SPARE, None),
        (httpx2.ReadError("x"), SPARE, 0.5),
        (lambda: asyncio.sleep(0, httpx2.Response(200, json=REFUSAL)), SPARE, "an answer"),
        (503, {}, 0.5),
        (404, {}, None),
    ],
)
def test_a_failure_that_is_not_the_vendor_s_state_stays_with_it(
    how: Any, spare: Any, again: Any
) -> None:
    """Without a fallback any failure does; a model that is gone is not asked again at once."""
    with bench(failing(how, "anthropic")) as way:
        provider = way.provider("anthropic", **spare)
        assert [getattr(ask(provider), "again", "an answer") for _ in "xx"] == [again, again]
    assert way.vendors() == ["anthropic", "anthropic"]


def test_when_both_are_down_the_failure_says_when_to_ask_again_and_the_first_is_asked() -> None:
    def answer(request):
        status, wait = (503, "3") if vendor_of(request) == "anthropic" else (429, "2")
        return httpx2.Response(status, headers={"retry-after": wait})

    with bench(answer) as way:
        provider = way.provider("anthropic", **SPARE)
        failed = [ask(provider) for _ in range(2)]
    assert [error.again for error in failed] == [3.0, 3.0]
    assert [error.detail for error in failed] == ["429; anthropic: 503", "503"]
    assert way.vendors() == ["anthropic", "google", "anthropic"]


def test_a_blocked_vendor_is_passed_over_and_when_all_are_blocked_nobody_is_asked() -> None:
    with bench() as way:
        provider = way.provider("anthropic", **SPARE)
        way.clients.block("anthropic", "401: the key was refused")
        assert ask(provider).provider == "google"
        way.clients.block("google", "402: the account has no credit")
        error = ask(provider)
    assert (error.reason, error.again, error.billed) == ("blocked", None, False)
    assert way.vendors() == ["google"]


# Opening


@pytest.mark.parametrize(
    ("settings", "environment", "trouble"),
    [
        *(({"provider": vendor}, None, vendor) for vendor in VENDORS),
        *(({"provider": vendor}, {}, "_API_KEY") for vendor in VENDORS),
        *(
            (settings, {"ANTHROPIC_API_KEY": "k"}, "GOOGLE_API_KEY or GEMINI_API_KEY")
            for settings in (
                {"provider": "anthropic", "fallback_models": ["google", "openai_compatible"]},
                {"role_models": {"reviewer": "google:gemini-3.8-flash"}},
                {"role_models": {"bull_researcher": "google:gemini-3.8-flash"}},
                {"quick_think_model": "google:gemini-3.8-flash"},
            )
        ),
        *(
            (settings, KEYS, "claude-sonnet-5-5")
            for settings in (
                {"provider": "anthropic", "quick_think_model": "claude-sonnet-4-20250514"},
                {"provider": "anthropic", "deep_think_model": "anthropic:claude-sonnet-4-0"},
                {"role_models": {"technical": "anthropic:claude-sonnet-4-20250514"}},
                {"provider": "google", "fallback_models": ["anthropic:claude-sonnet-4-0"]},
            )
        ),
        ({"provider": "recorded"}, KEYS, "recorded"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_start(
    settings: dict[str, Any], environment: dict[str, str] | None, trouble: str
) -> None:
    """Without clients, without a key, with a model that is gone."""
    with bench(environment=environment or {}) as way:
        clients = None if environment is None else way.clients
        with pytest.raises(ConfigError, match=trouble):
            open_provider(AgentSettings(**settings), clients)
        if clients:
            with pytest.raises(ConfigError, match=trouble):
                check(AgentSettings(**settings), clients, date(2026, 11, 22))


@cases(
    ("settings", "environment", "day", "trouble"),
    [
        (("google", "gemini-2.5-flash"), KEYS, date(2026, 11, 30), ""),
        (("google", "gemini-2.5-flash"), KEYS, date(2026, 12, 1), r"gemini-3\.8-flash"),
        (("openai_compatible", "gpt-3.5-turbo"), KEYS, date(2026, 11, 22), "gpt-6-luna"),
        (("openai_compatible", "gpt-3.5-turbo"), LOCAL, date(2026, 11, 22), ""),
    ],
)
def test_a_model_is_checked_against_the_day_of_the_start(
    settings: tuple[str, str], environment: Any, day: date, trouble: str
) -> None:
    """A server in OpenAI's place may call its models what it likes."""
    vendor, model = settings
    refused = pytest.raises(ConfigError, match=trouble) if trouble else nullcontext()
    with bench(environment=environment) as way, refused:
        check(AgentSettings(provider=vendor, quick_think_model=model), way.clients, day)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    with bench() as way, pytest.raises(ConfigError, match="google-genai"):
        open_provider(AgentSettings(provider="google"), way.clients)


def test_every_model_of_a_desk_is_known_before_it_starts() -> None:
    settings = AgentSettings(
        provider="google",
        deep_think_model="anthropic:a",
        role_models={"technical": "x:y", "risk_gate": "openai_compatible:l:7b"},
        fallback_models=["anthropic", "openai_compatible:l:8b"],
    )
    spares = {tier: settings.fallbacks(tier) for tier in ("quick", "deep")}
    local = ("openai_compatible", "l:8b")
    assert spares == {tier: (("anthropic", MODELS["anthropic"][tier]), local) for tier in spares}
    own = [("google", FLASH), ("anthropic", "a"), ("google", "x:y"), ("openai_compatible", "l:7b")]
    assert set(settings.routes()) == {*own, *spares["quick"], *spares["deep"]}


def test_others_are_handed_the_request_as_it_is_and_closed_with_the_provider() -> None:
    requests: list[Any] = []

    class Other(RulesProvider):
        def submit(self, request: Any) -> Any:
            requests.append(request)
            return super().submit(request)

        def close(self) -> None:
            requests.clear()

    with bench() as way:
        provider = RoutedProvider(AgentSettings(), way.clients, {"rules": Other()})
        request = a_request("rules")
        provider.submit(request)
        assert requests == [request]
        provider.close()
        assert requests == []
        assert isinstance(ask(way.provider("anthropic")), Completion), "the clients stay open"
