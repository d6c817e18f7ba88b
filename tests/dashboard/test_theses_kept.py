"""The thesis of a trade after its opening: on its page, in its lesson, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.worlds import told_lessons
from tests.worlds.demo_orders import text_of, visit
from tests.worlds.hostile_texts import MARKUP
from tests.worlds.lessons import RISING, facts
from torra.dashboard.view.backing import PageContext
from torra.exhibits import lesson_words
from torra.lessons.lesson import Lesson, LessonFacts, Thesis
from torra.lessons.reviews import rules_words
from torra.words.orders import EXITS

SCRIPT = MARKUP["script"]
THESIS = Thesis(
    claim="Buyers hold the mean at 1,861.",
    ends=("a close below 1,855.20, the last low, in the next 12 bars",),
    risks=("The range may hold.",),
    bars=16,
    tier="chief",
)


def traded(thesis: Thesis = THESIS, **more: Any) -> LessonFacts:
    return facts(situation=replace(RISING, thesis=thesis), **more)


def lesson(told: LessonFacts) -> Lesson:
    return Lesson(1, told, (rules_words(told, told.known_at),))


@cases(
    ("changes", "came"),
    [
        ({}, "held 11 of at most 16 bars; the stop was hit"),
        ({"hours_held": 5.0, "reason": "TARGET"},
         "held 20 bars, 4 more than meant; the target was hit"),
        ({"hours_held": 0.0}, "held less than one of at most 16 bars; the stop was hit"),
        ({"hours_held": 1.0, "reason": "BY_HAND"},
         f"held 4 of at most 16 bars; {EXITS['BY_HAND']}"),
        ({"kind": "vetoed"}, ""),
    ],
)  # fmt: skip
def test_a_thesis_stands_beside_what_came_of_it(changes: dict[str, Any], came: str) -> None:
    told = lesson_words.thesis(traded(**changes))
    assert told is not None
    assert told.came == came
    assert told.who == "Trader, chief tier"
    assert told.meant == "16 bars (4 hours)"


def test_a_trade_of_a_desk_without_a_trader_has_none() -> None:
    assert lesson_words.thesis(facts()) is None
    assert lesson_words.thesis(facts(situation=None)) is None
    assert "Trader" not in lesson_words.whole(lesson(facts()))


def test_the_terminal_tells_the_thesis_with_the_lesson() -> None:
    whole = lesson_words.whole(lesson(traded()))
    for words in (
        "Trader, chief tier wrote: Buyers hold the mean at 1,861.",
        "would end it: a close below 1,855.20", "risk: The range may hold.",
        "meant for at most 16 bars (4 hours)", "held 11 of at most 16 bars; the stop was hit",
    ):  # fmt: skip
        assert words in whole
    assert "Trader, chief tier: Buyers hold the mean" in lesson_words.table([lesson(traded())])


def test_a_decline_is_the_traders_in_every_word_of_its_lesson() -> None:
    declined = traded(replace(THESIS, declined=True), kind="vetoed", profit=None)
    for outcome, r, said in (
        ("loss", -1.0, "What the trader avoided"), ("win", 2.0, "What the decline cost"),
        ("scratch", 0.01, "The decline changed little"),
    ):  # fmt: skip
        told = replace(declined, outcome=outcome, r=r)
        words = rules_words(told, told.known_at)
        spoken = f"{lesson_words.whole(lesson(told))} {words.setup} {words.outcome} {words.rule}"
        assert lesson_words.headline(told).startswith("Declined long XAUUSD M15")
        assert said in spoken
        assert "The trader refused a long" in words.setup
        assert "gate" not in spoken.lower()
        assert "veto" not in spoken.lower()
        assert "would end it" not in spoken
        assert "the thesis" not in spoken
    gates = replace(declined, situation=RISING)
    assert "The gate refused" in rules_words(gates, gates.known_at).setup


@pytest.fixture
def backing(tmp_path: Path) -> Iterator[PageContext]:
    with told_lessons.desk(tmp_path) as made:
        yield made


def test_pages_of_a_trade_and_of_its_lesson_tell_the_thesis(backing: PageContext) -> None:
    database = backing.database
    row = next(one for one in database.signals(limit=100) if one["kind"] == "open")
    hostile = replace(THESIS, claim=f"{THESIS.claim} {SCRIPT}")
    database.keep_situation(row["sid"], replace(RISING, thesis=hostile))
    page = text_of(backing, f"/orders/{row['sid']}", "read")
    assert THESIS.claim in page
    assert THESIS.ends[0] in page
    assert SCRIPT not in page
    answer = visit(backing, "read").get(f"/api/v1/signals/{row['sid']}").json
    assert answer["thesis"]["bars"] == 16

    ended = traded(sid="TNEWLESSON")
    number = database.write_lesson(ended, rules_words(ended, ended.known_at))
    page = text_of(backing, f"/lessons?before={(number or 0) + 1}", "read")
    for words in (THESIS.claim, THESIS.ends[0], "held 11 of at most 16 bars; the stop was hit"):
        assert words in page
    (listed,) = [
        one
        for one in visit(backing, "read").get("/api/v1/lessons").json["lessons"]
        if one["number"] == number
    ]
    assert listed["situation"]["thesis"]["claim"] == THESIS.claim
