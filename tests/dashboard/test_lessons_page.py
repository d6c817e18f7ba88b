"""The page Lessons and its API: facts beside words, search, filters, cursors, who is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent_config import AgentSettings, MemorySettings
from tests.doubles.page_reader import Page
from tests.worlds import demo_orders, told_lessons
from torra.dashboard.trade import lessons
from torra.dashboard.view.backing import PageContext
from torra.desk.schedule import Desk


@pytest.fixture
def backing(tmp_path: Path) -> Iterator[PageContext]:
    with told_lessons.desk(tmp_path) as made:
        yield made


@pytest.fixture
def numbers(backing: PageContext) -> dict[str, int]:
    return told_lessons.write(backing.database)


def shown(backing: PageContext, address: str = "/lessons") -> str:
    return demo_orders.text_of(backing, address, "read")


def words(told: str) -> str:
    return " ".join(Page(told).words)


def listed(backing: PageContext, query: str = "") -> dict[str, Any]:
    client = demo_orders.visit(backing, "read")
    answer = client.get(f"/api/v1/lessons?{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json
    return found


@pytest.mark.usefixtures("numbers")
def test_a_veto_says_what_the_gate_avoided_or_cost(backing: PageContext) -> None:
    won = replace(told_lessons.VETOED, sid="TVETO000001", outcome="win", r=1.9)
    backing.database.write_lesson(won, told_lessons.words(won))
    text = words(shown(backing)).replace("\u00a0", " ")
    assert "Vetoed short BTCUSD H1: it would have come to −1.00 R." in text
    assert "What the gate avoided: −1.00 R" in text and "What the veto cost: +1.90 R" in text


def test_the_list_goes_on_by_its_cursor_and_misses_none(
    backing: PageContext, numbers: dict[str, int]
) -> None:
    found: list[int] = []
    query = "limit=1"
    for _ in numbers:
        told = listed(backing, query)
        found += [one["number"] for one in told["lessons"]]
        query = f"limit=1&before={told['next']}"
    assert told["next"] is None
    assert found == sorted(numbers.values(), reverse=True)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("side=LONG", ["won", "lost"]),
        ("outcome=win", ["won"]),
        ("kind=vetoed", ["vetoed"]),
        ("symbol=BTCUSD", ["vetoed"]),
        ("instance=EURUSD&outcome=loss", ["lost"]),
        (f"author={told_lessons.MODEL}", ["lost"]),
        ("author=rules", ["vetoed", "won", "lost"]),
        ("search=breakout", ["lost"]),
        ("search=break+vol", ["lost"]),
        ("search=trend_up", ["won"]),
        ("search=nothing+of+it", []),
        ('search="+OR+1', []),
    ],
)
def test_search_and_filters_keep_what_they_say(
    backing: PageContext, numbers: dict[str, int], query: str, kept: list[str]
) -> None:
    found = [one["number"] for one in listed(backing, query)["lessons"]]
    assert found == [numbers[name] for name in kept]
    told = shown(backing, f"/lessons?{query}")
    assert ("No lesson is like that" in told) == (not kept)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("side=BUY", "side is one of LONG, SHORT, not BUY"),
        ("outcome=good", "outcome is one of win, loss, scratch"),
        ("kind=x", "kind is one of trade, vetoed"),
        ("limit=0", "limit is 1 to 200"),
        ("before=a", "before is the `next` of an earlier answer"),
    ],
)
def test_words_that_mean_nothing_are_refused(backing: PageContext, query: str, says: str) -> None:
    client = demo_orders.visit(backing, "read")
    answer = client.get(f"/api/v1/lessons?{query}")
    assert answer.status_code == 400 and says in answer.json["error"]
    assert client.get(f"/lessons?{query}").status_code == 400


def test_the_page_says_whether_ticks_are_told_and_where_to_set_it(backing: PageContext) -> None:
    told = shown(backing)
    assert "No trade has closed yet." in told
    assert "<strong>No</strong>, not those of" in told and 'href="/profiles/default"' in told
    roster = cast("Desk", backing.desk).roster
    agents = AgentSettings(memory=MemorySettings(use="on"))
    roster.setups = {
        name: replace(setup, profile=setup.profile.model_copy(update={"agents": agents}))
        for name, setup in roster.setups.items()
    }
    told = shown(backing)
    assert "<strong>Yes</strong>, those of" in told and "<strong>No</strong>" not in told


def test_a_trade_without_a_lesson_has_no_such_part(backing: PageContext) -> None:
    told = shown(backing, "/orders/TLOST000000")
    assert "lesson" not in told.replace('href="/lessons"', "").partition("<main")[2]


def test_every_reader_of_notes_is_named_the_trader_among_them() -> None:
    firm = AgentSettings(mode="firm", memory=MemorySettings(use="on"))
    assert lessons.LessonReaders([], firm).roles == [
        "bull_researcher", "bear_researcher", "research_manager", "trader",
    ]  # fmt: skip
    assert "trader" not in lessons.LessonReaders([], AgentSettings(mode="full")).roles
