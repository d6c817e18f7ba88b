"""Content words: what a text is about, without numbers, stop words and tags."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from torra.clock import TIMEFRAMES
from torra.lessons.content_words import STOP_WORDS, TAGS, content_words
from torra.verdict.sentiment_rules import Session


@cases(
    ("text", "words"),
    [
        ("Chased a break on thin volume.", ("chased", "break", "thin", "volume")),
        ("LONG XAUUSD M15 range LONDON, loss -1.02 R", ("range", "loss")),
        ("short EURUSD H4: range", ("range",)),
        ("The FOMC and RSI14 at 70, ADX below 25", ("fomc", "adx")),
        ("gap, gap; GAP", ("gap", "gap", "gap")),
        ("with_trend momentum_for event_rates", ("with_trend", "momentum_for", "event_rates")),
        ("naïve Überkauft 12,5 % 3x", ("naïve", "überkauft")),
        ("of to in a I", ()),
        ("", ()),
    ],
)
def test_words(text: str, words: tuple[str, ...]) -> None:
    assert content_words(text) == words


@cases(
    ("tags", "words"),
    [
        ((), ("gained", "nvidia", "cash", "again_today")),
        (("Nvidia.cash",), ("gained", "again_today")),
    ],
)
def test_names_of_symbols_are_no_words(tags: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert content_words("gained nvidia.cash again_today", tags) == words


@cases("tag", [*TIMEFRAMES, *get_args(Session), "LONG", "SHORT", "London", "New York", "XAUUSD"])
def test_a_tag_is_no_word_in_capitals_and_none_of_torras_own_in_any(tag: str) -> None:
    assert content_words(tag) == ()
    assert tag == "XAUUSD" or content_words(tag.lower()) == ()


@given(st.text(max_size=100))
def test_nothing_but_content_is_left_of_any_text(text: str) -> None:
    for word in content_words(text):
        assert word == word.lower()
        assert len(word) >= 3
        assert not any(map(str.isdigit, word))
        assert word not in STOP_WORDS | TAGS
