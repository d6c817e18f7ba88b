"""How numbers, states and lines become text and geometry."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra.exhibits import figures
from torra.harmless_text import HOSTILE
from torra.words.ticks import BADGES

SCORES = st.floats(-1, 1)
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.text(), st.floats(), st.integers(), st.lists(st.integers())
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.3104, "+0.310"),
        (-0.12, "\u22120.120"),
        (0.0, "0.000"),
        (-0.0001, "0.000"),
        (0.0004, "0.000"),
        (1, "+1.000"),
        (-1234.5, "\u22121,234.500"),
        (None, "\u2014"),
        (math.nan, "\u2014"),
        (math.inf, "\u2014"),
        (True, "\u2014"),
        ("0.3", "\u2014"),
    ],
)
def test_a_score_has_its_sign_and_a_missing_one_is_a_dash(value: Any, text: str) -> None:
    assert figures.format_signed(value) == text


@pytest.mark.parametrize(
    ("value", "decimals", "tone"),
    [
        (0.0004, 3, "flat"),
        (-0.0004, 3, "flat"),
        (-0.0006, 3, "down"),
        (0.0006, 3, "up"),
        (-0.4, 0, "flat"),
        (0.004, 2, "flat"),
        (1200.0, 2, "up"),
        (None, 3, ""),
    ],
)
def test_a_written_zero_has_no_side(value: float | None, decimals: int, tone: str) -> None:
    assert figures.tone(value, decimals) == tone


@given(SCORES)
def test_a_signed_score_reads_back(value: float) -> None:
    text = figures.format_signed(value, 5).replace(figures.MINUS, "-")
    assert float(text) == pytest.approx(value, abs=5.1e-6)
    assert "-" not in figures.format_signed(value, 5)


@given(ANYTHING)
def test_nothing_raises_and_nothing_missing_becomes_zero(value: Any) -> None:
    shown = [
        figures.format_signed(value),
        figures.plain(value),
        figures.money(value),
        figures.span(value),
        figures.countdown(value),
        figures.format_any(value),
        figures.mark(value).text,
        figures.sanitize(value),
    ]
    if figures.number(value) is None:
        assert shown[:5] == [figures.DASH] * 5


@given(st.floats(-3, 3) | st.none())
def test_a_bar_stays_in_its_frame_and_grows_from_the_middle(value: float | None) -> None:
    bar = figures.signed_bar(value)
    assert 0 <= bar["x"] <= bar["x"] + bar["width"] <= figures.BAR_WIDTH + 0.01
    middle = figures.BAR_WIDTH / 2
    if value is None or value == 0:
        assert bar["width"] == 0
    elif value > 0:
        assert bar["x"] == middle
    else:
        assert bar["x"] + bar["width"] == pytest.approx(middle, abs=0.011)
    known = max(-1.0, min(1.0, value or 0.0))
    assert bar["width"] == pytest.approx(abs(known) * middle, abs=0.011)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "due"), (-3, "due"), (0.2, "0:01"), (59, "0:59"), (60, "1:00"), (3729, "1:02:09")],
)
def test_a_countdown_never_shows_zero_before_it_is_due(seconds: float, text: str) -> None:
    assert figures.countdown(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3600, "1 h 00 min"),
        (90000, "1 d 1 h"),
        (-5, "0 s"),
    ],
)
def test_an_age_is_read_at_a_glance(seconds: float, text: str) -> None:
    assert figures.span(seconds) == text


@given(st.text(), st.integers(1, 50))
def test_cleaned_text_has_no_hidden_marks_and_keeps_its_limit(text: str, limit: int) -> None:
    shown = figures.sanitize(text, limit)
    assert len(shown) <= limit
    assert not HOSTILE.search(shown)
    shown.encode("utf-8")


def test_bidirectional_and_control_characters_go_and_lines_stay() -> None:
    assert figures.sanitize("a\u202eb\u2066c\u200bd\u0007e\x9bf\ufeff") == "abcdef"
    assert figures.sanitize("one\r\ntwo\tthree\n") == "one\ntwo\tthree\n"
    assert figures.sanitize("x" * 5000).endswith("…")


def test_times_name_their_zone() -> None:
    assert figures.moment("2021-12-01T10:15:00Z") == "2021-12-01 10:15 UTC"
    assert figures.moment("2021-12-01T12:15:00+02:00", seconds=True) == "2021-12-01 10:15:00 UTC"
    assert figures.moment(None) == figures.moment("soon") == figures.DASH


def test_every_state_has_a_glyph_and_a_word_of_its_own() -> None:
    shown = [mark.text for mark in BADGES.values()]
    assert len(set(shown)) == len(shown)
    assert all(mark.glyph and mark.word for mark in BADGES.values())
    assert BADGES["BUY"].glyph != BADGES["SELL"].glyph
