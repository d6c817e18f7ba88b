"""Whether a tick asks anybody: policy, ladder, ledger, warm-up; and the picture that it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import Completion, Request
from tests.worlds import desks
from torra.chart import renderer as chart_renderer
from torra.clock import System
from torra.config import Profile, validate
from torra.providers.prices import PriceList
from torra.providers.rules.provider import RulesProvider
from torra.store import ledger as ledger_table
from torra.tick.degradation import tick_worst_case
from torra.tick.spending import HOUR

PRICES = {"quick": {"input": 1.0, "output": 5.0}, "deep": {"input": 2.0, "output": 10.0}}
COST = 0.0004
PNG = b"\x89PNG\r\n\x1a\n"


class Paid:
    """The rules at a vendor's price."""

    name = "anthropic"

    def __init__(self) -> None:
        self.rules = RulesProvider()
        self.requests: list[Request] = []

    def submit(self, request: Request) -> Future[Completion]:
        self.requests.append(request)
        told = self.rules.submit(request).result()
        paid = replace(
            told, provider="anthropic", input_tokens=900, output_tokens=200, cost_usd=COST
        )
        future: Future[Completion] = Future()
        future.set_result(paid)
        return future

    def close(self) -> None: ...


class Ahead:
    """Real time, some hours on."""

    hours = 0

    def now(self) -> datetime:
        return System().real_now() + self.hours * HOUR


def profile(**agents: Any) -> Profile:
    named = {"provider": "anthropic", "quick_think_model": "quick", "deep_think_model": "deep"}
    return validate(Profile, {"agents": named | agents}, "a test")


@pytest.fixture
def paid_desk(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    made = []

    def make(**agents: Any) -> tuple[Any, Paid]:
        voice = Paid()
        desk: Any = desks.open_desk(tmp_path, provider=voice, profile=profile(**agents))
        desk.ahead = Ahead()
        desks.charge(desk, PriceList(PRICES), desk.ahead.now)
        desks.open_for_work(desk)
        made.append(desk)
        return desk, voice

    yield make
    for desk in made:
        desk.database.close()


Make = Callable[..., tuple[Any, Paid]]


def test_what_a_tick_cost_stands_in_journal_ledger_and_calls(paid_desk: Make) -> None:
    desk, voice = paid_desk()
    desk.wake("BTCUSD")  # M15 and H1 close together
    assert len(voice.requests) == 8
    record = desks.newest(desk)
    assert record["source_type"] == "AGENT_BUDGET"
    assert record["cost_usd"] == pytest.approx(4 * COST)
    assert sum(call["cost_usd"] for call in record["calls"]) == pytest.approx(4 * COST)
    spent = desk.database.spent("mine", System().real_now() - HOUR)
    assert spent == pytest.approx(8 * COST)
    rows = ledger_table.ledger_rows(desk.database, System().real_now() - HOUR)
    assert {row["state"] for row in rows} == {"settled"}


def test_the_sample_of_quiet_ticks_is_asked_and_flagged(paid_desk: Make) -> None:
    desk, _ = paid_desk(call_policy="pivotal", pivotal_sample=1.0)
    flags = []
    for _ in range(8):
        desks.step(desk)
        flags.append("pivotal_sample" in desks.newest(desk)["deliberation"]["flags"])
        assert desks.newest(desk)["source_type"] == "AGENT_BUDGET"
    assert any(flags)


def test_money_that_runs_out_ends_the_asking_until_there_is_room_again(paid_desk: Make) -> None:
    ceiling = tick_worst_case(PriceList(PRICES), profile().agents, lambda _: False) + 19 * COST
    desk, _ = paid_desk(max_api_cost_per_hour=ceiling)
    sources = []
    for _ in range(6):
        desks.step(desk)
        sources.append(desks.newest(desk)["source_type"])
        assert desk.database.spent("mine", desk.ahead.now() - HOUR) <= ceiling
    assert sources[:3] == ["AGENT_BUDGET"] * 3, "three ticks spend what is above one worst case"
    assert sources[3:] == ["L1_ONLY"] * 3
    desk.ahead.hours = 2
    desks.step(desk)
    assert desks.newest(desk)["source_type"] == "AGENT_BUDGET"


def test_the_warm_up_asks_no_vendor(paid_desk: Make) -> None:
    desk, voice = paid_desk()
    done = list(desk.warm_up(desks.START, bars=8))
    assert done
    record = desks.newest(desk)
    assert (record["source_type"], voice.requests) == ("L1_ONLY", [])
    assert "not_asked" in record["deliberation"]["flags"]
    desks.step(desk)
    assert voice.requests, "the first live tick asks"


@pytest.mark.journey
def test_the_picture_goes_to_the_roles_that_ask_for_one(paid_desk: Make) -> None:
    desk, voice = paid_desk(picture="rendered")
    desks.step(desk)
    shown = {request.role.id: request.picture for request in voice.requests}
    assert shown["technical"] is not None
    assert shown["technical"].startswith(PNG)
    assert [role for role, picture in shown.items() if picture] == ["technical"]
    assert desk.database.picture(desks.newest(desk)["picture"]) == shown["technical"]


def test_without_leave_of_the_profile_no_picture_is_drawn(
    paid_desk: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_renderer, "render", lambda *_, **__: pytest.fail("drawn"))
    desk, voice = paid_desk()
    desks.step(desk)
    assert {request.picture for request in voice.requests} == {None}
    assert desks.newest(desk)["picture"] is None


@pytest.mark.parametrize(
    ("error", "flag"),
    [(TimeoutError("busy"), "picture:busy"), (ValueError("flat"), "picture:error")],
)
def test_a_picture_that_cannot_be_drawn_is_a_flag(
    paid_desk: Make, monkeypatch: pytest.MonkeyPatch, error: Exception, flag: str
) -> None:
    def broken(*_: Any, **__: Any) -> bytes:
        raise error

    monkeypatch.setattr(chart_renderer, "render", broken)
    desk, voice = paid_desk(picture="rendered")
    desks.step(desk)
    record = desks.newest(desk)
    assert record["source_type"] == "AGENT_BUDGET"
    assert flag in record["deliberation"]["flags"]
    assert {request.picture for request in voice.requests} == {None}


def test_a_screenshot_that_is_not_there_is_a_flag(paid_desk: Make, tmp_path: Path) -> None:
    template = f"{tmp_path}/{{symbol}}_{{timeframe}}.png"
    desk, _ = paid_desk(picture="file", picture_file=template)
    desks.step(desk)
    assert "picture:missing" in desks.newest(desk)["deliberation"]["flags"]
