"""How near the events that matter are: currencies, impact, the edges of a day, the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra.evidence.scheduled_events import REACH, EventView, ScheduledEvent, around

NOW = datetime(2021, 11, 5, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


def event(minutes: float, **changes: Any) -> ScheduledEvent:
    words: dict[str, Any] = {"currency": "USD", "impact": "high", "name": "nonfarm payrolls"}
    return ScheduledEvent(time=NOW + timedelta(minutes=minutes), **{**words, **changes})


DAY = REACH / timedelta(minutes=1)
LATER = MOMENT / timedelta(minutes=1)
FAR = event(60 * 24 * 365)


@pytest.mark.parametrize(
    ("times", "hours", "minutes"),
    [
        ((-DAY, DAY), 0, (DAY, DAY, DAY, DAY)),
        ((-DAY - LATER, DAY + LATER), 0, (None, None, None, None)),
        # An event at the moment itself is the last one.
        ((0,), 0, (None, 0.0, None, 0.0)),
        ((LATER,), 0, (LATER, None, LATER, None)),
        # A late tick counts from now what its window is compared with.
        ((-10, 150, 200), 2, (150.0, 10.0, 30.0, 10.0)),
        # Two daily bars late, what comes next is further from the close than a day.
        ((49 * 60,), 48, (None, None, 60.0, None)),
        # A tick does not run before its close.
        ((30,), -1, (30.0, None, 30.0, None)),
    ],
)
def test_events_are_told_in_minutes(
    times: tuple[float, ...], hours: float, minutes: tuple[float | None, ...]
) -> None:
    events = [*map(event, times), FAR]
    found = around(events, ("USD",), NOW, NOW + timedelta(hours=hours))
    told = (found.to_next, found.since_last, found.ahead, found.behind)
    assert told == pytest.approx(minutes, abs=1e-9)


@pytest.mark.parametrize("broken", [False, True])
def test_the_state_of_the_calendar_is_reported(broken: bool) -> None:
    low = event(1, impact="low", currency="JPY")
    for calendar, hours, status in (
        ([], 0, "ended"), ([event(0)], 0, "ended"), ([event(-60), low], 0, "available"),
        ([event(30)], 0, "available"), ([event(30)], 1, "ended"),
    ):  # fmt: skip
        found = around(calendar, ("USD",), NOW, NOW + timedelta(hours=hours), broken=broken)
        broken_too = "broken_ended" if status == "ended" else "broken"
        assert found.status == (broken_too if broken else status)
    assert EventView().status == "off"


@given(
    st.lists(
        st.builds(
            event,
            st.integers(-400, 400),
            currency=st.sampled_from(["USD", "EUR", "JPY", "ALL"]),
            impact=st.sampled_from(["high", "medium"]),
        ),
        max_size=20,
    ),
    st.integers(0, 200),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_a_window_counts_that_meets_any_moment_from_the_close_to_the_tick(
    events: list[ScheduledEvent], wait: int, before: int, after: int
) -> None:
    """Held against a walk through every minute between the two."""
    events.sort(key=lambda one: one.time)
    found = around(events, ("EUR", "USD"), NOW, NOW + timedelta(minutes=wait))
    mine = [one for one in events if one.impact == "high" and one.currency != "JPY"]
    assert list(found.events) == mine
    times = [(one.time - NOW) // timedelta(minutes=1) for one in mine]
    assert found.to_next == min((time for time in times if time > 0), default=None)
    assert found.since_last == min((-time for time in times if time <= 0), default=None)
    met = any(
        time - before <= moment <= time + after for time in times for moment in range(wait + 1)
    )
    near = (found.ahead is not None and found.ahead <= before) or (
        found.behind is not None and found.behind <= after
    )
    assert near == met
