"""The lesson of a swarm's trade has the judge's side, its counter and its chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import signal_bridge
from tests.doubles.page_reader import Page, check_structure
from tests.worlds import demo_orders, desks, told_lessons
from tests.worlds.hostile_texts import MARKUP
from tests.worlds.lessons import RISING, facts
from torra.clock import parse
from torra.config import Profile, validate
from torra.dashboard.view.backing import PageContext
from torra.exhibits import lesson_words
from torra.lessons.figures import evidence
from torra.lessons.lesson import Judgement, Lesson, LessonFacts, Situation
from torra.lessons.reviews import rules_words
from torra.store.connection import TickKey

SAID = Judgement("SHORT", "Buyers hold the mean at 1,861.", 0.42)
SENTENCE = "Judge: short, 42 % to win; against it: Buyers hold the mean at 1,861."
MOST_TICKS = 24


def swarm(**agents: Any) -> Profile:
    values: dict[str, Any] = {
        "execution": "approve",
        "thresholds": {"buy": 0.02, "sell": 0.02},
        "agents": {"call_policy": "always", "influence": "earned", **agents},
    }
    return validate(Profile, values, "a test")


def judged(told: Judgement | None = SAID, **more: Any) -> LessonFacts:
    return facts(situation=replace(RISING, judgement=told), **more)


def opening_id(key: TickKey, row: Mapping[str, Any]) -> str:
    where = (key.instance, row["symbol"], key.timeframe, key.bar_time)
    return signal_bridge.signal_id(*where, kind="open", side=row["verdict"])


def kept(folder: Path, profile: Profile) -> tuple[Situation, list[dict[str, Any]]]:
    """Return the market of the first opening of a desk, and the reports of its tick."""
    desk = desks.working_desk(folder, (desks.BTC,), profile=profile)
    try:
        for _ in range(MOST_TICKS):
            desks.step(desk)
            for row in desk.database.proposals(None, limit=1):
                (instance,) = desk.setups
                key = TickKey(instance, row.timeframe, parse(row.bar_time))
                tick = desk.database.tick(key)
                found = desk.database.situation(opening_id(key, row.as_json()))
                assert tick and found
                return found, tick["deliberation"]["reports"]
    finally:
        desk.close()
    raise AssertionError(f"no opening in {MOST_TICKS} ticks")


def test_an_opening_of_a_swarm_keeps_what_its_judge_said(tmp_path: Path) -> None:
    situation, reports = kept(tmp_path, swarm(mode="swarm"))
    (judge,) = [one for one in reports if one["agent_id"] == "judge"]
    told = situation.judgement
    assert told is not None
    assert told == Judgement(judge["winner"], judge.get("counter", ""), judge["win_share"])
    assert Situation.of(situation.as_dict()) == situation


def test_an_opening_of_another_desk_keeps_none(tmp_path: Path) -> None:
    situation, _ = kept(tmp_path, swarm(mode="budget"))
    assert situation.judgement is None
    assert "judgement" not in situation.as_dict()


def test_the_terminal_tells_the_judgement_and_no_agent_is_told() -> None:
    lesson = Lesson(1, judged(), (rules_words(judged(), judged().known_at),))
    assert SENTENCE in lesson_words.whole(lesson)
    assert SENTENCE in lesson_words.table([lesson])
    assert evidence(judged()) == evidence(judged(None))
    assert lesson_words.judge_sentence(judged(Judgement("NONE", "", 0.3))) == (
        "Judge: neither side, 30 % to win"
    )
    assert (
        lesson_words.judge_sentence(judged(None))
        == lesson_words.judge_sentence(facts(situation=None))
        == ""
    )


@pytest.fixture
def backing(tmp_path: Path) -> Iterator[PageContext]:
    with told_lessons.desk(tmp_path) as made:
        yield made


def test_the_page_tells_the_judgement_and_escapes_it(backing: PageContext) -> None:
    ended = judged(replace(SAID, counter=f"{SAID.counter} {MARKUP['script']}"), sid="TJUDGED")
    number = backing.database.write_lesson(ended, rules_words(ended, ended.known_at)) or 0
    pages = demo_orders.open_pages(backing, "read").test_client()
    page = pages.get(f"/lessons?before={number + 1}").get_data(as_text=True)
    check_structure(Page(page))
    assert SENTENCE in page
    assert MARKUP["script"] not in page
    listed = pages.get("/api/v1/lessons").get_json()["lessons"]
    (told,) = [one for one in listed if one["number"] == number]
    assert told["situation"]["judgement"]["chance"] == SAID.chance
