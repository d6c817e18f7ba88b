"""The tables of lessons: one a trade, never changed, found by words and by what they are about."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from instance_database import Database, TickKey
from tests.worlds import lessons, stores
from torra.errors import ConfigError, StoreUnavailable
from torra.lessons.lesson import LessonFacts
from torra.store import lessons as lesson_table


def learn(database: Database, *some: LessonFacts) -> list[int | None]:
    return [database.write_lesson(one, lessons.words(one)) for one in some]


def test_a_lesson_comes_back_as_it_was_written(database: Database) -> None:
    one, other = lessons.facts("T1"), lessons.won("T2", hours=5.0, situation=None)
    assert learn(database, one, other) == [1, 2]
    found = database.lesson("T1")
    assert found is not None and found.facts == one and found.words == (lessons.words(one),)
    assert [lesson.facts for lesson in lesson_table.lessons_by(database, [2, 7, 1])] == [one, other]
    assert database.lesson("T9") is None and lesson_table.lesson_count(database) == 2


def test_an_author_writes_of_a_lesson_once(database: Database) -> None:
    learn(database, lessons.facts("T1"))
    model = lessons.reviewed(lessons.facts("T1"), 2.0)
    assert lesson_table.write_words(database, 1, model)
    assert not lesson_table.write_words(database, 1, replace(model, rule="Another."))
    (lesson,) = lesson_table.lessons_by(database, [1])
    assert [words.author for words in lesson.words] == ["rules", "claude-sonnet-5-5"]
    assert lesson.words[1] == model


def test_what_is_new_is_told_once(database: Database) -> None:
    learn(database, lessons.facts("T1"), lessons.won("T2"))
    first = database.lessons_since(0, 0)
    assert [lesson.number for lesson in first.lessons] == [1, 2] and first.words == []
    model = lessons.reviewed(lessons.facts("T1"), 2.0)
    lesson_table.write_words(database, 1, model)
    learn(database, lessons.facts("T3"))
    then = database.lessons_since(first.facts, first.words_number)
    assert [lesson.number for lesson in then.lessons] == [3] and then.words == [(1, model)]
    assert database.lessons_since(then.facts, then.words_number) == ([], [], 3, 4)


def test_a_transaction_that_fails_leaves_no_lesson(database: Database) -> None:
    def fail() -> None:
        with database.transaction():
            learn(database, lessons.facts("T1"))
            raise StoreUnavailable("the disk is full")

    with pytest.raises(StoreUnavailable):
        fail()
    assert lesson_table.lesson_count(database) == 0 and database.lessons_since(0, 0).lessons == []


def test_lessons_are_searched_by_their_words_and_by_what_they_are_about(
    database: Database,
) -> None:
    gold = lessons.facts("T1")
    euro = lessons.won("T2", 5.0, symbol="EURUSD", instance="EURUSD", asset="fx", side="SHORT")
    learn(database, gold, euro)
    lesson_table.write_words(
        database, 1, lessons.reviewed(gold, 1.0, rule="Never chase a thin breakout.")
    )

    def found(search: str, **only: str) -> list[int]:
        return [
            one.number for one in lesson_table.lesson_list(database, only, search=search, limit=10)
        ]

    assert found("") == [2, 1]
    assert found("breakout") == [1] and found("BREAK") == [1] and found("london") == [2, 1]
    assert found("eurusd") == [2] and found("eurusd thin") == []
    assert found("thin london") == [1], "words of two authors"
    assert found("", symbol="eurUsd") == [2]
    assert found("", side="LONG") == [1] and found("", author="rules") == [2, 1]
    assert found("", outcome="win", symbol="EURUSD") == [2]
    assert found('" OR *') == found("or") == []
    assert found("NEAR(") == [] and found("' ; --") == []
    assert [one.number for one in lesson_table.lesson_list(database, {}, before=2, limit=10)] == [1]
    with pytest.raises(ValueError, match="cannot be narrowed by colour"):
        found("", colour="red")


def test_which_ticks_were_told_is_known_of_each_lesson(database: Database) -> None:
    learn(database, lessons.facts("T1"), lessons.won("T2"))
    database.note_lesson_uses("BTCUSD|M15|a", [2, 1])
    database.note_lesson_uses("BTCUSD|M15|b", [2])
    assert lesson_table.lesson_ticks(database, 2) == ["BTCUSD|M15|b", "BTCUSD|M15|a"]
    assert lesson_table.lesson_ticks(database, 2, 1) == ["BTCUSD|M15|b"]
    assert lesson_table.lesson_ticks(database, 1) == ["BTCUSD|M15|a"]


def test_lessons_and_what_models_wrote_of_them_are_counted(database: Database) -> None:
    assert lesson_table.lesson_count(database) == lesson_table.review_count(database) == 0
    learn(database, lessons.facts("T1"), lessons.won("T2"))
    assert (lesson_table.lesson_count(database), lesson_table.review_count(database)) == (2, 0)
    lesson_table.write_words(database, 1, lessons.reviewed(lessons.facts("T1"), 2.0))
    assert (lesson_table.lesson_count(database), lesson_table.review_count(database)) == (2, 1)


def test_what_was_decided_on_invented_evidence_leaves_no_lesson(database: Database) -> None:
    facts = lessons.facts("T1")
    key = TickKey(facts.instance, facts.timeframe, facts.bar_time)
    database.write_journal(key, {"invented": "the demo"})
    assert learn(database, facts) == [None] and database.lesson("T1") is None
    database.change("UPDATE journal SET record = 'no JSON'")
    assert learn(database, facts) == [1]


def test_a_lesson_is_about_its_trade_and_its_market() -> None:
    facts = lessons.facts("T1", situation=replace(lessons.RISING, triage=("gap",)))
    trade = "XAUUSD M15 LONG loss Falsified trade STOPPED"
    assert lesson_table.about(facts) == f"{trade} trend_up LONDON gap"
    assert lesson_table.about(replace(facts, situation=None)) == trade


def test_words_that_come_between_two_looks_are_told_at_the_next(database: Database) -> None:
    learn(database, lessons.facts("T1"), lessons.won("T2"))
    newest = lesson_table._lessons(database, [1, 2], 1)
    assert [len(lesson.words) for lesson in newest] == [1, 0], "no later words"
    assert [lesson.number for lesson in lesson_table.lessons_by(database, [])] == []


def test_a_search_counts_its_first_words(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lesson_table, "MOST_TERMS", 2)
    learn(database, lessons.facts("T1"))
    for search, numbers in (("london long nowhere", [1]), ("london nowhere", [])):
        found = lesson_table.lesson_list(database, {}, search=search, limit=9)
        assert [lesson.number for lesson in found] == numbers


def test_a_damaged_vetoed_opening_is_followed_nowhere(database: Database) -> None:
    row = {"sid": "V1", "instance": "BTCUSD", "told": "{}"}
    database.upsert("vetoed_openings", row)
    assert database.vetoed_openings("BTCUSD") == []


@pytest.mark.parametrize("damage", ["the symbol is gone", "a damaged market", "no lesson at all"])
def test_nothing_about_a_lesson_keeps_a_trade_open(
    database: Database, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.enqueue_signal({**stores.opening("T1"), "state": "PENDING"})
    for state in ("PUBLISHED", "FILLED"):
        database.move_signal("T1", state, fields={"price": 100.0, "opened_at": lessons.NOON})
    if damage == "the symbol is gone":
        monkeypatch.setattr(Database, "_spec", gone)
    elif damage == "a damaged market":
        database.keep_situation("T1", lessons.RISING)
        database.connection().conn.executescript(
            "DROP TRIGGER situations_never_change; UPDATE situations SET situation = '[]'"
        )
    else:
        monkeypatch.setattr(Database, "write_lesson", broken)
    assert database.close_position(
        "T1",
        price=99.0,
        time=lessons.NOON + timedelta(hours=1),
        profit=-1.0,
        r_multiple=-1.0,
        reason="STOPPED",
    )
    assert database.signal("T1")["state"] == "CLOSED"
    assert (database.lesson("T1") is None) == (damage == "no lesson at all")


def gone(*_: object) -> None:
    raise ConfigError("the profile has no such symbol")


def broken(*_: object) -> None:
    raise ValueError("a lesson that nobody can write")
