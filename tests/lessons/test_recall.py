"""What a tick is told of earlier trades, and what it never is."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds import lessons
from torra.lessons import recall
from torra.lessons.hashed import hashed
from torra.lessons.lesson import Fresh, Lesson, LessonFacts, LessonText
from torra.lessons.recall import LessonQuery, LessonRetriever, note_text
from torra.replay.rerun.edges_then import recalled
from torra.tick.tick_record import LessonsRecord

LATER = lessons.NOON + timedelta(days=40)


class Stored:
    """A store of lessons that a test fills."""

    def __init__(self) -> None:
        self.lessons: list[Lesson] = []
        self.later: list[tuple[int, LessonText]] = []
        self.broken = False

    def learn(self, *facts: LessonFacts) -> None:
        for one in facts:
            self.lessons.append(Lesson(len(self.lessons) + 1, one, (lessons.words(one),)))

    def fresh(self, facts: int, words: int) -> Fresh:
        if self.broken:
            raise RuntimeError("the disk is gone")
        return Fresh(self.lessons[facts:], self.later[words:], len(self.lessons), len(self.later))


def asked(as_of: datetime = LATER, **more: Any) -> LessonQuery:
    told = {"symbol": "XAUUSD", "asset": "gold", "side": "LONG", "situation": lessons.RISING}
    return LessonQuery(**{**told, "as_of": as_of, "notes": 3, **more})


def shelf(stored: Stored, **more: Any) -> LessonRetriever:
    return LessonRetriever(stored.fresh, hashed, **more)


def learnt(*facts: LessonFacts) -> Stored:
    stored = Stored()
    stored.learn(*facts)
    return stored


def six(won: int = 2) -> list[LessonFacts]:
    kinds = [lessons.won] * won + [lessons.facts] * (6 - won)
    return [make(f"T{number}", hours=float(number)) for number, make in enumerate(kinds)]


def test_an_empty_store_tells_nothing() -> None:
    told = shelf(Stored()).recall(asked())
    assert told == recall.NOTHING and not told and told.numbers == {}


def test_the_numbers_are_those_of_similar_trades() -> None:
    stored = learnt(*six())
    told = shelf(stored).recall(asked())
    mean = (2 * 1.9 - 4 * 1.02) / 16
    assert told.numbers == {
        "side": "LONG", "similar": 6.0, "win_share": 0.4, "mean_r": round(mean, 4)
    }  # fmt: skip
    assert sorted(told.nearest) == [1, 2, 3, 4, 5, 6]
    assert (told.corpus, told.newest) == (6, 6)


def test_below_five_similar_trades_no_share_is_told() -> None:
    stored = learnt(*six()[:4])
    told = shelf(stored).recall(asked())
    assert told.numbers == {"side": "LONG", "similar": 4.0, "win_share": None, "mean_r": None}
    assert all("one trade, not a rule" in note.text for note in told.notes)


def test_a_short_upside_down_is_told_what_a_long_is() -> None:
    stored = learnt(*six())
    numbers = {**lessons.RISING.numbers, "momentum": -0.8, "structure": -0.6}
    numbers["di_difference"] = -20.0
    turned = replace(
        lessons.RISING,
        numbers=numbers,
        regime="trend_down",
        strongest=tuple((name, -sign) for name, sign in lessons.RISING.strongest),
    )
    one = shelf(stored).recall(asked())
    other = shelf(stored).recall(asked(side="SHORT", situation=turned))
    assert other.numbers == {**one.numbers, "side": "SHORT"}
    assert other.note_numbers == one.note_numbers


def test_what_a_model_wrote_steers_no_number() -> None:
    stored = learnt(*six())
    before = shelf(stored).recall(asked())
    stored.later = [
        (number, lessons.reviewed(stored.lessons[number - 1].facts, 1.0, rule=text))
        for number, text in ((1, "Buy everything always."), (4, "Quiet drift in a dull session."))
    ]
    after = shelf(stored).recall(asked())
    assert after.numbers == before.numbers and after.nearest == before.nearest
    assert after.digest != before.digest


def test_words_count_from_the_moment_at_which_they_were_known() -> None:
    (one,) = six()[5:]
    stored = learnt(one)
    stored.later = [(1, lessons.reviewed(one, 10.0))]
    early = shelf(stored).recall(asked(one.known_at + timedelta(hours=10)))
    late = shelf(stored).recall(asked(one.known_at + timedelta(hours=10, seconds=1)))
    assert [note.author for note in early.notes] == ["rules"]
    assert [note.author for note in late.notes] == ["claude-sonnet-5-5"]
    assert "Wait for volume" in late.notes[0].text and "(review, " in late.notes[0].text


def test_a_lesson_of_this_very_moment_is_not_known_yet() -> None:
    stored = learnt(*six())
    last = stored.lessons[-1].facts.known_at
    assert shelf(stored).recall(asked(last)).corpus == 5
    assert shelf(stored).recall(asked(last + timedelta(seconds=1))).corpus == 6


def test_lessons_of_the_warm_up_and_of_an_earlier_pass_are_never_told() -> None:
    stored = learnt(*six())
    warm = stored.lessons[2].facts.known_at
    told = shelf(stored, leave_out=lambda facts: facts.known_at <= warm).recall(asked())
    assert told.corpus == 3 and set(told.nearest) == {4, 5, 6}
    second = stored.lessons[4].facts.bar_time
    lap = lambda moment: int(moment >= second)  # noqa: E731
    told = shelf(stored, lap=lap).recall(asked())
    assert told.corpus == 2 and set(told.note_numbers) == {5, 6}
    # The newest was opened in an earlier pass than the one in which it ended.
    between = stored.lessons[4].facts.known_at - timedelta(hours=1)
    later = shelf(stored, lap=lambda moment: int(moment >= between))
    assert later.recall(asked()) == recall.NOTHING


def test_another_asset_class_is_another_shelf() -> None:
    stored = learnt(*six())
    assert shelf(stored).recall(asked(asset="fx", symbol="EURUSD")) == recall.NOTHING


def test_a_vetoed_opening_is_told_in_words_and_counts_in_no_number() -> None:
    told = shelf(learnt(lessons.won("T0", kind="vetoed", profit=None))).recall(asked())
    assert told.numbers["similar"] == 0.0 and told.nearest == ()
    assert [note.text.startswith("(vetoed, 40 days ago) LONG XAUUSD") for note in told.notes] == [
        True
    ]


def test_a_shelf_that_fails_tells_the_newest_of_the_symbol_with_a_flag() -> None:
    stored = learnt(*six(), lessons.facts("S", hours=90.0, symbol="SILVER", instance="SILVER"))
    asking = shelf(stored)
    asking.recall(asked())
    stored.broken = True
    told = asking.recall(asked())
    assert told.flags == (recall.BROKEN,) and told.note_numbers == (6, 5, 4) and told.numbers == {}
    empty = Stored()
    empty.broken = True
    told = shelf(empty).recall(asked())
    assert told.flags == (recall.BROKEN,) and told.notes == () and told


def test_a_lesson_that_cannot_be_taken_in_is_left_out_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stored = learnt(*six())
    numbers: Any = {"adx14": "?"}
    market = replace(lessons.RISING, numbers=numbers)
    odd = replace(stored.lessons[2].facts, situation=market)
    stored.lessons[2] = replace(stored.lessons[2], facts=odd)
    asking = shelf(stored)
    assert asking.recall(asked()).corpus == 5 and asking.recall(asked()).flags == ()
    assert caplog.text.count("lesson 3 cannot be told") == 1


def test_a_shelf_that_is_being_filled_makes_no_tick_wait() -> None:
    stored = learnt(*six())
    asking = shelf(stored)
    with asking._lock:
        assert asking.recall(asked()) == recall.TOO_LATE
    assert asking.recall(asked()).corpus == 6


def test_a_record_tells_it_all_again_from_the_stored_lessons() -> None:
    stored = learnt(*six())
    told = shelf(stored).recall(asked())
    record = LessonsRecord.parse(told.as_dict())
    assert "text" not in str(told.as_dict()["notes"][0].keys())
    assert recalled(record, stored.lessons, LATER) == told
    with pytest.raises(KeyError):
        recalled(
            record, [one for one in stored.lessons if one.number != told.note_numbers[0]], LATER
        )


@given(st.text(max_size=400), st.sampled_from(("LONG", "SHORT")))
def test_no_note_is_longer_than_it_may_be(said: str, side: Any) -> None:
    one = lessons.facts("T1", side=side)
    words = lessons.reviewed(one, 1.0, rule=said)
    text = note_text(one, words, one.known_at + timedelta(hours=5), {})
    assert len(text.encode()) <= recall.NOTE_BYTES and text.endswith("one trade, not a rule")
