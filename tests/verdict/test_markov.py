"""The Markov view of a stream, and the rest of the memory that agents are shown."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from torra.config import Markov
from torra.verdict import sentiment_rules as rules

T = datetime(2021, 12, 1, 12, tzinfo=UTC)
STEP = timedelta(minutes=15)
SETTINGS = Markov()
LEVEL = dict(zip(rules.STATES, (-0.7, -0.2, 0.0, 0.2, 0.7), strict=True))


def history(*states: str, gaps: tuple[int, ...] = ()) -> list[tuple[datetime, float]]:
    """One entry a bar; a gap before each index in `gaps`."""
    skipped = [sum(gap <= index for gap in gaps) for index in range(len(states))]
    return [(T + (index + skipped[index]) * STEP, LEVEL[name]) for index, name in enumerate(states)]


@cases(
    ("consensus", "expected"),
    [
        (-1.0, "STRONG_BEARISH"),
        (-0.4, "STRONG_BEARISH"),
        (-0.39999999, "BEARISH"),
        (-0.15, "BEARISH"),
        (-0.14999999, "NEUTRAL"),
        (0.0, "NEUTRAL"),
        (0.14999999, "NEUTRAL"),
        (0.15, "BULLISH"),
        (0.39999999, "BULLISH"),
        (0.4, "STRONG_BULLISH"),
        (1.0, "STRONG_BULLISH"),
    ],
)
def test_states_at_their_borders(consensus: float, expected: str) -> None:
    assert rules.state(consensus, SETTINGS.cut_points) == expected


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_states_ascend_and_mirror(first: float, second: float) -> None:
    cuts = SETTINGS.cut_points
    low, high = (rules.STATES.index(rules.state(v, cuts)) for v in sorted((first, second)))
    assert low <= high
    mirrored = rules.STATES.index(rules.state(-first, cuts))
    assert mirrored == 4 - rules.STATES.index(rules.state(first, cuts))


def test_without_history_nothing_is_claimed() -> None:
    view = rules.markov([], "M15", SETTINGS)
    assert (view.state, view.duration, view.recent_transitions) == (None, 0, ())
    assert set(view.next_probabilities.values()) == {0.2}


@given(
    st.lists(st.tuples(st.sampled_from(rules.STATES), st.booleans()), max_size=40),
    st.floats(0.01, 10),
)
def test_against_a_count_by_hand(steps: list[Any], smoothing: float) -> None:
    stream, time = [], T
    for name, gap in steps:
        time += STEP * (3 if gap else 1)
        stream.append((time, LEVEL[name]))
    view = rules.markov(stream, "M15", Markov(smoothing=smoothing))
    moves: Counter[tuple[str, str]] = Counter()
    run, changes = 0, list[str]()
    for index, (name, gap) in enumerate(steps):
        if index and not gap:
            before = steps[index - 1][0]
            moves[before, name] += 1
            changes += [f"{before}→{name}"] if before != name else []
        stays = index and not gap and steps[index - 1][0] == name
        run = run + 1 if stays else 1
    for i, before in enumerate(rules.STATES):
        assert view.counts[i] == tuple(moves[before, after] for after in rules.STATES)
    assert view.duration == run
    assert view.recent_transitions == tuple(changes[:-11:-1])
    assert view.state == (steps[-1][0] if steps else None)
    total = sum(view.counts[rules.STATES.index(view.state)]) if view.state else 0
    for after, probability in view.next_probabilities.items():
        expected = (moves[view.state, after] + smoothing) / (total + 5 * smoothing)
        assert probability == pytest.approx(expected, abs=1e-8)
    assert sum(view.next_probabilities.values()) == pytest.approx(1, abs=1e-7)


@cases(
    ("moment", "expected"),
    [
        ("2021-12-01T00:00", "ASIA"),
        ("2021-12-01T07:59", "ASIA"),
        ("2021-12-01T08:00", "LONDON"),
        ("2021-12-01T12:59", "LONDON"),
        ("2021-12-01T13:00", "LONDON_NY_OVERLAP"),
        ("2021-12-01T16:59", "LONDON_NY_OVERLAP"),
        ("2021-12-01T17:00", "NEW_YORK"),
        ("2021-12-01T21:59", "NEW_YORK"),
        ("2021-12-01T22:00", "ASIA"),
        ("2021-12-03T21:59", "NEW_YORK"),  # Friday
        ("2021-12-03T22:00", "CLOSED"),
        ("2021-12-04T12:00", "CLOSED"),
        ("2021-12-05T21:59", "CLOSED"),
        ("2021-12-05T22:00", "ASIA"),
        ("2021-07-01T07:00", "LONDON"),  # summer: both centres an hour earlier in UTC
        ("2021-07-01T12:00", "LONDON_NY_OVERLAP"),
        ("2021-07-02T21:00", "CLOSED"),
        ("2021-03-22T12:30", "LONDON_NY_OVERLAP"),  # New York is ahead by two weeks
        ("2021-03-22T07:30", "ASIA"),
    ],
)
def test_sessions_follow_the_wall_clocks(moment: str, expected: str) -> None:
    assert rules.session(datetime.fromisoformat(moment).replace(tzinfo=UTC)) == expected


@cases(
    ("values", "expected"),
    [
        ([], "flat"),
        ([0.5], "flat"),
        ([0.31, 0.28, 0.35, 0.42], "rising"),  # document 001's example
        ([0.42, 0.35, 0.28, 0.31], "falling"),
        ([0.1, 0.19], "rising"),
        ([0.1, 0.18], "flat"),
        ([0.3, -0.3, 0.3, -0.3, 0.3], "flat"),
    ],
)
def test_trend_direction(values: list[Any], expected: str) -> None:
    assert rules.trend_direction(values) == expected


@cases(
    ("profits", "streak"),
    [([], 0), ([5.0, -1.0], 0), ([-1.0, -2.0, 3.0, -4.0], 2), ([-1.0, -1.0], 2), ([0.0, -1.0], 0)],
)
def test_losing_streak(profits: list[Any], streak: int) -> None:
    assert rules.losing_streak(profits) == streak


def test_memory_view_has_document_001s_keys() -> None:
    stream, now = (
        history("NEUTRAL", "BULLISH", "BULLISH", "BULLISH"),
        datetime(2021, 12, 3, 15, tzinfo=UTC),
    )
    losses = [{"profit": profit, "closed_at": now} for profit in (-1.0, -2.0, 3.0)]
    view = rules.memory_view(
        rules.markov(stream, "M15", SETTINGS),
        as_of=now,
        timeframe="M15",
        trend=[score for _, score in stream[-3:]],
        verdicts=["HOLD", "HOLD", "BUY"],
        open_positions=[rules.OpenPosition("LONG", 45.204, datetime(2021, 12, 3, 13, tzinfo=UTC))],
        open_elsewhere=1,
        trades=losses,
    )
    assert view == {
        "current_markov_state": "BULLISH",
        "state_duration": 3,
        "recent_transitions": ["NEUTRAL→BULLISH"],
        "next_probabilities": view["next_probabilities"],
        "sentiment_trend": [0.2, 0.2, 0.2],
        "trend_direction": "flat",
        "open_positions": [{"direction": "LONG", "pnl": 45.2, "age_ticks": 8}],
        "position": "LONG",
        "session": "LONDON_NY_OVERLAP",
        "day_of_week": "Friday",
        "recent_signals": ["HOLD", "HOLD", "BUY"],
        "losing_streak": 2,
        "open_elsewhere": 1,
        "recent_trades": [],
    }
    assert view["next_probabilities"]["BULLISH"] == pytest.approx(3 / 7, abs=1e-8)
