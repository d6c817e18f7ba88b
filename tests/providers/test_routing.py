"""Who is asked: the vendor that a model names, and who stands in while that one is down."""

from __future__ import annotations

import asyncio
import time
from datetime import date
from typing import Any

import httpx2
import pytest

from agent_config import MODELS, AgentSettings
from agents.contracts import Completion, ModelUnavailable, Request
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles.switchboards import (
    KEYS,
    VENDORS,
    Bench,
    a_request,
    bench,
    body,
    good,
    vendor_of,
)
from torra.errors import ConfigError
from torra.providers import registry
from torra.providers.registry import check, open_provider
from torra.providers.rules.provider import RulesProvider
from torra.providers.vendors.routing import RoutedProvider

HAIKU = MODELS["anthropic"]["quick"]
FLASH = MODELS["google"]["quick"]
SPARE = {"fallback_models": ["google"]}


def ask(provider: Any, model: str = HAIKU, **changes: Any) -> Completion | ModelUnavailable:
    found = provider.submit(a_request(model, **changes))
    error = found.exception(timeout=30)
    assert error is None or isinstance(error, ModelUnavailable)
    return error or found.result()


def failing(how: Any, *vendors: str) -> Any:
    """Return a world in which these vendors fail and the others answer."""

    def answer(request: httpx2.Request) -> Any:
        if vendor_of(request) not in vendors:
            return good(request)
        if isinstance(how, Exception):
            raise how
        return how() if callable(how) else httpx2.Response(how)

    return answer


async def hanging() -> httpx2.Response:
    await asyncio.sleep(60)
    raise AssertionError


def warm(way: Bench, *vendors: str) -> None:
    way.switchboard.warm(vendors)
    for vendor in vendors:
        way.switchboard._adapters[vendor].result(timeout=60)


# The model's own vendor


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_model_goes_to_its_vendor_and_the_record_says_so(vendor: str) -> None:
    with bench() as way:
        plain = ask(way.provider(vendor), MODELS[vendor]["quick"])
        named = ask(way.provider("rules"), f"{vendor}:{MODELS[vendor]['deep']}")
    assert isinstance(plain, Completion) and isinstance(named, Completion)
    assert (plain.provider, plain.model) == (vendor, MODELS[vendor]["quick"])
    assert (named.provider, named.model) == (vendor, MODELS[vendor]["deep"])
    assert way.asked() == [vendor, vendor]


@pytest.mark.journey
def test_a_colon_in_a_local_model_s_name_is_no_vendor() -> None:
    with bench(environment={"TORRA_OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}) as way:
        found = ask(way.provider("openai_compatible"), "llama3:8b")
    assert isinstance(found, Completion) and found.model == "llama3:8b"
    assert way.bodies()[0]["model"] == "llama3:8b"


def test_a_desk_may_mix_vendors_and_the_rules() -> None:
    settings = AgentSettings(
        role_models={"bull_researcher": f"anthropic:{HAIKU}", "bear_researcher": f"google:{FLASH}"}
    )
    with bench() as way:
        provider = open_provider(settings, way.switchboard)
        assert provider.name == "rules"
        said = {}
        for role_id in ("bull_researcher", "bear_researcher", "risk_gate"):
            role = AGENTS[role_id].role
            found = ask(provider, settings.model(role_id, role.tier), role=role)
            assert isinstance(found, Completion), found
            said[role_id] = found.provider
        provider.close()
    assert said == {
        "bull_researcher": "anthropic",
        "bear_researcher": "google",
        "risk_gate": "rules",
    }
    assert way.asked() == ["anthropic", "google"]


def test_two_desks_share_one_switchboard_and_not_their_troubles() -> None:
    with bench(failing(503, "anthropic")) as way:
        first = way.provider("anthropic", **SPARE)
        second = way.provider("anthropic", fallback_models=["openai_compatible:gpt-6-luna"])
        third = way.provider("google")
        for _ in range(2):
            assert ask(first).provider == "google"  # type: ignore[union-attr]
            assert ask(second).provider == "openai_compatible"  # type: ignore[union-attr]
        assert ask(third, FLASH).provider == "google"  # type: ignore[union-attr]
    assert way.asked() == [
        "anthropic", "google", "anthropic", "openai_compatible",
        "google", "openai_compatible", "google",
    ]  # fmt: skip


@pytest.mark.journey
def test_fifty_desks_of_four_calls_at_once_share_one_switchboard() -> None:
    async def slowly(request):
        await asyncio.sleep(0.3)
        return good(request)

    with bench(slowly) as way:
        warm(way, *VENDORS)
        desks = [
            (way.provider(vendor), vendor) for vendor in (*VENDORS, "anthropic") for _ in "x" * 13
        ]
        started = time.monotonic()
        futures = [
            provider.submit(a_request(MODELS[vendor]["quick"], limit_s=15.0))
            for provider, vendor in desks
            for _ in range(4)
        ]
        assert all(future.result(timeout=20).text == "{}" for future in futures)
        assert time.monotonic() - started < 10
    assert len(way.sent) == 208


# The fallback

DOWN = [
    ("no connection", httpx2.ConnectError("x"), False),
    ("429", 429, False),
    ("500", 500, True),
    ("404", 404, False),
    ("529", 529, False),
    ("401: the key was refused", 401, False),
    ("402: the account has no credit", 402, False),
]


@cases(("detail", "how", "billed"), DOWN, ids=[row[0] for row in DOWN])
def test_while_the_first_vendor_is_down_the_tick_goes_to_the_fallback(
    detail: str, how, billed: bool
) -> None:
    with bench(failing(how, "anthropic")) as way:
        warm(way, "anthropic", "google")
        provider = way.provider("anthropic", **SPARE)
        found = ask(provider)
        if billed:  # another attempt has a reservation of its own
            assert isinstance(found, ModelUnavailable)
            assert (found.detail, found.again, found.billed) == (detail, 0.0, True)
            found = ask(provider, attempt=2)
        assert isinstance(found, Completion)
        assert (found.provider, found.model) == ("google", FLASH)
        assert found.detail == ("" if billed else f"anthropic: {detail}")
        later = ask(provider, MODELS["anthropic"]["deep"], role=AGENTS["bull_researcher"].role)
        assert isinstance(later, Completion)
        assert (later.provider, later.model) == ("google", MODELS["google"]["deep"])
        assert way.asked() == ["anthropic", "google", "google"]


def test_the_next_tick_tries_the_first_vendor_again() -> None:
    troubles = iter([503])

    def answer(request):
        if vendor_of(request) == "anthropic" and next(troubles, None):
            return httpx2.Response(503)
        return good(request)

    with bench(answer) as way:
        provider = way.provider("anthropic", **SPARE)
        ask(provider)
        for changes in ({"bar_time": "later"}, {"timeframe": "H1"}, {"symbol": "EURUSD"}, {}):
            ask(provider, **changes)
    assert way.asked() == [
        "anthropic", "google", "anthropic", "anthropic", "anthropic", "google",
    ]  # fmt: skip


def test_a_request_at_the_very_moment_of_a_timeout_already_goes_to_the_fallback() -> None:
    with bench(failing(hanging, "anthropic")) as way:
        warm(way, "anthropic", "google")
        provider = way.provider("anthropic", **SPARE)
        for number in range(5):
            bar = {"bar_time": str(number)}
            future = provider.submit(a_request(HAIKU, limit_s=0.1, **bar))
            time.sleep(0.1)  # the framework waits no longer
            assert isinstance(ask(provider, limit_s=5.0, **bar), Completion)
            assert isinstance(future.exception(timeout=1), ModelUnavailable)


@pytest.mark.parametrize("how", [413, 400, httpx2.ReadError("x")], ids=["413", "400", "reset"])
def test_a_failure_that_is_not_the_vendor_s_state_stays_with_it(how) -> None:
    with bench(failing(how, "anthropic")) as way:
        provider = way.provider("anthropic", **SPARE)
        first = ask(provider)
        assert isinstance(first, ModelUnavailable)
        assert first.again == (0.5 if isinstance(how, Exception) else None)
        ask(provider)
    assert way.asked() == ["anthropic", "anthropic"]


def test_an_unusable_answer_is_an_answer() -> None:
    answers = lambda request: httpx2.Response(200, json=body(vendor_of(request), "no", "refusal"))  # noqa: E731
    with bench(answers) as way:
        provider = way.provider("anthropic", **SPARE)
        found = ask(provider)
        ask(provider)
    assert isinstance(found, Completion) and found.stop_reason == "refusal"
    assert way.asked() == ["anthropic", "anthropic"]


def test_when_both_are_down_the_failure_says_when_to_ask_again_and_the_first_is_asked() -> None:
    def answer(request):
        if vendor_of(request) == "anthropic":
            return httpx2.Response(503, headers={"retry-after": "3"})
        return httpx2.Response(429, headers={"retry-after": "2"})

    with bench(answer) as way:
        provider = way.provider("anthropic", **SPARE)
        failed = [ask(provider) for _ in range(2)]
    assert [error.again for error in failed] == [3.0, 3.0]  # type: ignore[union-attr]
    assert [error.detail for error in failed] == ["429; anthropic: 503", "503"]
    assert way.asked() == ["anthropic", "google", "anthropic"]


def test_when_both_are_blocked_nobody_is_asked() -> None:
    with bench() as way:
        way.switchboard.block("anthropic", "401: the key was refused")
        way.switchboard.block("google", "402: the account has no credit")
        found = ask(way.provider("anthropic", **SPARE))
    assert isinstance(found, ModelUnavailable)
    assert (found.reason, found.again, found.billed) == ("blocked", None, False)
    assert way.sent == []


def test_a_blocked_vendor_is_passed_over_at_once() -> None:
    with bench() as way:
        way.switchboard.block("anthropic", "401: the key was refused")
        found = ask(way.provider("anthropic", **SPARE))
    assert isinstance(found, Completion) and found.provider == "google"


@pytest.mark.parametrize(("status", "again"), [(503, 0.5), (404, None)])
def test_without_a_fallback_a_vendor_s_failure_is_its_own(status: int, again: float | None) -> None:
    """A model that is gone is not asked again at once."""
    with bench(failing(status, "anthropic")) as way:
        provider = way.provider("anthropic")
        assert [ask(provider).again for _ in range(2)] == [again, again]  # type: ignore[union-attr]
    assert way.asked() == ["anthropic", "anthropic"]


def test_only_a_few_ticks_are_remembered() -> None:
    with bench() as way:
        provider = way.provider("anthropic", **SPARE)
        for number in range(30):
            ask(provider, bar_time=str(number))
        assert len(provider._ticks) <= 8


# Opening


def test_a_request_that_makes_no_sense_is_a_failed_future() -> None:
    with bench() as way:
        provider = way.provider("anthropic")
        for odd in (None, object(), a_request(None), a_request(HAIKU, role=None)):
            error = provider.submit(odd).exception(timeout=10)  # type: ignore[arg-type]
            assert isinstance(error, ModelUnavailable)
        stray = RoutedProvider(AgentSettings(provider="recorded"), way.switchboard)
        assert "recorded" in str(stray.submit(a_request("recorded")).exception(timeout=1))
    assert way.sent == []


def test_the_rules_need_no_switchboard() -> None:
    assert isinstance(open_provider(AgentSettings()), RulesProvider)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_vendor_needs_a_switchboard_and_a_key(vendor: str) -> None:
    settings = AgentSettings(provider=vendor)
    with pytest.raises(ConfigError, match=vendor):
        open_provider(settings)
    with bench(environment={}) as way, pytest.raises(ConfigError, match="_API_KEY"):
        open_provider(settings, way.switchboard)


@pytest.mark.parametrize(
    "settings",
    [
        {"provider": "anthropic", "fallback_models": ["google", "openai_compatible"]},
        {"role_models": {"reviewer": "google:gemini-3.8-flash"}},
        {"role_models": {"bull_researcher": "google:gemini-3.8-flash"}},
        {"quick_think_model": "google:gemini-3.8-flash"},
    ],
)
def test_every_vendor_of_a_desk_needs_its_key(settings: dict[str, Any]) -> None:
    environment = {"ANTHROPIC_API_KEY": "k"}
    with (
        bench(environment=environment) as way,
        pytest.raises(ConfigError, match="GOOGLE_API_KEY or GEMINI_API_KEY"),
    ):
        open_provider(AgentSettings(**settings), way.switchboard)


@pytest.mark.parametrize(
    "settings",
    [
        {"provider": "anthropic", "quick_think_model": "claude-sonnet-4-20250514"},
        {"provider": "anthropic", "deep_think_model": "anthropic:claude-sonnet-4-20250514"},
        {"role_models": {"technical": "anthropic:claude-sonnet-4-20250514"}},
        {"provider": "google", "fallback_models": ["anthropic:claude-sonnet-4-20250514"]},
    ],
)
def test_a_model_that_is_gone_is_refused_at_start(settings: dict[str, Any]) -> None:
    with bench() as way, pytest.raises(ConfigError, match="claude-sonnet-5-5"):
        open_provider(AgentSettings(**settings), way.switchboard)


def test_a_model_is_held_against_the_day_of_the_start() -> None:
    settings = AgentSettings(provider="google", quick_think_model="gemini-2.5-flash")
    with bench() as way:
        check(settings, way.switchboard, date(2026, 11, 30))
        with pytest.raises(ConfigError, match=r"gemini-3\.8-flash"):
            check(settings, way.switchboard, date(2026, 12, 1))


def test_a_server_in_openai_s_place_may_call_its_models_what_it_likes() -> None:
    settings = AgentSettings(provider="openai_compatible", quick_think_model="gpt-3.5-turbo")
    with bench(environment={"TORRA_OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}) as way:
        check(settings, way.switchboard, date(2026, 11, 22))
    with bench() as way, pytest.raises(ConfigError, match="gpt-6-luna"):
        check(settings, way.switchboard, date(2026, 11, 22))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    with bench() as way, pytest.raises(ConfigError, match="google-genai"):
        open_provider(AgentSettings(provider="google"), way.switchboard)


def test_every_model_of_a_desk_is_known_before_it_starts() -> None:
    settings = AgentSettings(
        provider="google",
        deep_think_model="anthropic:a",
        role_models={"technical": "x:y", "risk_gate": "openai_compatible:l:7b"},
        fallback_models=["anthropic"],
    )
    assert set(settings.routes()) == {
        ("google", FLASH),
        ("anthropic", "a"),
        ("google", "x:y"),
        ("openai_compatible", "l:7b"),
        ("anthropic", MODELS["anthropic"]["quick"]),
        ("anthropic", MODELS["anthropic"]["deep"]),
    }


def test_stored_ticks_are_answered_from_the_history_alone() -> None:
    settings = AgentSettings(provider="recorded")
    with pytest.raises(ConfigError, match="recorded"):
        open_provider(settings)
    with bench() as way, pytest.raises(ConfigError, match="recorded"):
        check(settings, way.switchboard, date(2026, 11, 22))
    assert open_provider(settings, history=lambda _: None).name == "recorded"


def test_closing_a_provider_leaves_the_switchboard_to_the_others() -> None:
    with bench() as way:
        first, second = way.provider("anthropic"), way.provider("anthropic")
        first.close()
        assert isinstance(ask(second), Completion)


def test_keys_stay_out_of_what_a_provider_shows() -> None:
    with bench() as way:
        provider = way.provider("anthropic")
        shown = repr(provider) + repr(way.switchboard)
    assert not any(key in shown for key in KEYS.values())


def test_a_request_is_not_changed_on_its_way() -> None:
    seen: list[Request] = []

    class Ear:
        name = "ear"

        def submit(self, request: Request) -> Any:
            seen.append(request)
            return RulesProvider().submit(request)

        def close(self) -> None:
            seen.clear()

    with bench() as way:
        provider = RoutedProvider(AgentSettings(), way.switchboard, {"rules": Ear()})
        request = a_request("rules")
        provider.submit(request)
        assert seen == [request]
        provider.close()
        assert seen == []
