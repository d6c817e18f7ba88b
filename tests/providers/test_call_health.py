"""How a model stands by its newest calls: what counts, whose call it was, when it fails."""

from __future__ import annotations

from typing import Any

from agent_config import AgentSettings
from tests.cases import cases
from tests.doubles.vendor_line import agents
from tests.doubles.vendor_server import ANTHROPIC, GOOGLE, OPENAI
from torra.providers.call_health import IN_A_ROW, NEWEST, ModelHealth, health
from torra.providers.vendors.table import FORM_IN_USE

HAIKU = "claude-haiku-5-5"


def row(status: str, number: int = 0, **more: Any) -> dict[str, Any]:
    """Return a stored call of the quick model, a minute after the one before."""
    at = f"2026-02-13T{10 + number // 60}:{number % 60:02}:00Z"
    values = {"provider": ANTHROPIC, "model": HAIKU, "detail": "", "elapsed_ms": 100.0 + number}
    return {"number": number, "at": at, "status": status, **values, **more}


def rows(word: str) -> list[dict[str, Any]]:
    """Return a call for each sign, oldest first: a point is usable, anything else is not."""
    return [row("ok" if sign == "." else "garbage", place) for place, sign in enumerate(word)]


def quick(calls: list[dict[str, Any]], settings: AgentSettings | None = None) -> ModelHealth:
    return health([settings or agents(ANTHROPIC)], lambda _: calls)[0]


@cases(
    ("status", "detail", "count"),
    [
        ("ok", "", "usable"),
        ("ok", "google: 503", "usable"),
        ("refused", "the trader abstains", "usable"),
        ("garbage", "JSONDecodeError", "unusable"),
        ("garbage", "length", "unusable"),
        ("refused", "refusal", "unusable"),
        ("wrong_symbol", "XAUUSD", "unusable"),
        ("error", "401", "failed"),
        ("timeout", "", "failed"),
        ("late", "", "failed"),
        ("blocked", "401: the key was refused", "failed"),
    ],
)
def test_each_status_counts_as_what_it_is(status: str, detail: str, count: str) -> None:
    row_of = quick([row(status, detail=detail)])
    assert (row_of.usable, row_of.unusable) == (count == "usable", count == "unusable")
    assert row_of.failed == ({status: 1} if count == "failed" else {}) and row_of.calls == 1


@cases(
    ("word", "failing", "well"),
    [
        ("", False, False),
        ("xxxx", False, False),
        ("xxxxx", True, False),
        ("....xxxxx", True, False),
        ("xxxxx....", True, False),
        ("xxxxx.....", False, True),
        ("xxxxx....x....", True, False),
        ("xxxxx.....xxxx", False, False),
        ("xxxx." * 4, True, False),
        ("xxxx." * 3 + "xxxx", False, False),
        ("xxx.." * 4, False, False),
        ("xxxxx" + ".x" * 30, True, False),
        ("." * NEWEST, False, True),
    ],
)
def test_a_model_fails_from_five_in_a_row_or_four_of_five_and_until_five_are_usable(
    word: str, failing: bool, well: bool
) -> None:
    result = quick(rows(word))
    assert (result.failing, result.well) == (failing, well)


def test_the_newest_twenty_are_counted_in_whatever_order_they_come() -> None:
    result = quick(rows("." * 7 + "x" * 18)[::-1])
    assert (result.usable, result.unusable) == (2, 18)
    assert result.last_usable == "2026-02-13T10:06:00Z"
    assert result.median_ms == 105.5


def test_calls_of_one_second_stand_in_the_order_of_their_numbers() -> None:
    calls = rows("x" * IN_A_ROW + "." * IN_A_ROW)
    for call in calls:
        call["at"] = "2026-02-13T10:00:00Z"
    assert quick(calls[::-1]).well


def test_the_cause_is_the_newest_call_with_the_commonest_trouble() -> None:
    calls = [row("error", 0, detail="401"), row("error", 1, detail="503"), row("timeout", 2)]
    cause = quick(calls).cause
    assert cause is not None and (cause["status"], cause["detail"]) == ("error", "503")
    assert quick(rows("...")).cause is None


MIXED = agents(ANTHROPIC, role_models={"momentum": f"{GOOGLE}:gemini-3.8-flash"})


@cases(
    ("provider", "model", "whose"),
    [
        ("", HAIKU, f"{ANTHROPIC} {HAIKU}"),
        ("", f"{GOOGLE}:gemini-3.8-flash", f"{GOOGLE} gemini-3.8-flash"),
        (GOOGLE, "gemini-3.8-flash", f"{GOOGLE} gemini-3.8-flash"),
        (GOOGLE, HAIKU, ""),
        ("rules", "rules", ""),
        ("", "rules", ""),
        ("recorded", HAIKU, ""),
        ("", "a model of before", ""),
    ],
)
def test_a_call_belongs_to_the_model_that_was_asked(provider: str, model: str, whose: str) -> None:
    calls = [row("error", provider=provider, model=model)]
    counts = {each.name: each.calls for each in health([MIXED], lambda _: calls)}
    assert {name for name, count in counts.items() if count} == ({whose} if whose else set())


@cases("word", ["sell now", "json_object and more", ""])
def test_a_strangers_word_is_no_form(word: str) -> None:
    assert quick([row("wrong_symbol", detail=f"{FORM_IN_USE}{word}")]).form == ""
    assert quick([row("garbage", detail=f"not JSON; {FORM_IN_USE}prompt")]).form == "prompt"


def test_every_model_that_may_be_asked_has_its_row_and_a_desk_of_rules_reads_nothing() -> None:
    spare = agents(OPENAI, fallback_models=(f"{GOOGLE}:gemini-3.8-flash",))
    models = health([agents(ANTHROPIC), spare, AgentSettings(provider="shop:talker")], None)
    assert {ANTHROPIC, OPENAI, GOOGLE, "shop:talker"} == {each.vendor for each in models}
    assert not any(each.calls or each.failing or each.well for each in models)

    def never(_: object) -> list[dict[str, Any]]:
        raise AssertionError("read")

    assert health([AgentSettings()], never) == ()
