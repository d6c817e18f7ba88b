"""How near the events that matter are: currencies, impact, the edges of a day, the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from torra.evidence.scheduled_events import REACH, EventView, ScheduledEvent, around

NOW = datetime(2021, 11, 5, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


def event(minutes: float, **changes: Any) -> ScheduledEvent:
    words: dict[str, Any] = {"currency": "USD", "impact": "high", "name": "nonfarm payrolls"}
    return ScheduledEvent(time=NOW + timedelta(minutes=minutes), **{**words, **changes})


def view(
    *events: ScheduledEvent, currencies: tuple[str, ...] = ("USD",), broken: bool = False
) -> EventView:
    calendar = (*sorted(events, key=lambda one: one.time), event(60 * 24 * 365))
    return around(calendar, currencies, NOW, broken=broken)


def test_the_next_and_the_last_are_told_in_minutes() -> None:
    found = view(event(-90), event(-10.5), event(30), event(45))
    assert (found.to_next, found.since_last) == (30.0, 10.5)
    assert found.status == "available"
    assert [one.time for one in found.events] == [
        NOW + timedelta(minutes=minutes) for minutes in (-90, -10.5, 30, 45)
    ]


@cases(
    ("currency", "currencies", "counts"),
    [
        ("USD", ("USD",), True),
        ("USD", ("EUR", "USD"), True),
        ("JPY", ("EUR", "USD"), False),
        ("ALL", ("EUR",), True),
        ("ALL", (), True),
        ("USD", (), False),
    ],
)
def test_the_currencies_of_the_symbol_count(
    currency: str, currencies: tuple[str, ...], counts: bool
) -> None:
    found = view(event(5, currency=currency), event(-5, currency=currency), currencies=currencies)
    assert (found.to_next, found.since_last) == ((5.0, 5.0) if counts else (None, None))
    assert len(found.events) == 2 * counts


@pytest.mark.parametrize("impact", ["medium", "low"])
def test_only_high_impact_counts(impact: str) -> None:
    assert view(event(5, impact=impact)).events == ()
    assert view(event(5, impact=impact), event(9)).to_next == 9.0


def test_a_day_is_as_far_as_it_looks() -> None:
    day = REACH / timedelta(minutes=1)
    beyond = MOMENT / timedelta(minutes=1)
    found = view(event(day), event(-day))
    assert (found.to_next, found.since_last) == (day, day)
    found = view(event(day + beyond), event(-day - beyond))
    assert (found.to_next, found.since_last, found.events) == (None, None, ())


def test_an_event_at_the_moment_itself_is_the_last() -> None:
    found = view(event(0))
    assert (found.to_next, found.since_last) == (None, 0.0)
    later = MOMENT / timedelta(minutes=1)
    assert view(event(later)).since_last is None


@pytest.mark.parametrize("broken", [False, True])
def test_the_state_of_the_calendar_is_told(broken: bool) -> None:
    past, low = (event(-60),), (event(-60), event(1, impact="low", currency="JPY"))
    now = (*past, event(0))
    for calendar, status in (((), "ended"), (past, "ended"), (now, "ended"), (low, "available")):
        found = around(calendar, ("USD",), NOW, broken=broken)
        broken_too = "broken_ended" if status == "ended" else "broken"
        assert found.status == (broken_too if broken else status)
    assert EventView().status == "off"


@pytest.mark.journey
@given(
    st.lists(
        st.builds(
            event,
            st.integers(-3000, 3000),
            currency=st.sampled_from(["USD", "EUR", "JPY", "ALL"]),
            impact=st.sampled_from(["high", "medium", "low"]),
        ),
        max_size=40,
    )
)
def test_the_nearest_of_many_are_those_of_a_plain_search(events: list[ScheduledEvent]) -> None:
    events.sort(key=lambda one: one.time)
    mine = [
        one
        for one in events
        if one.impact == "high"
        and one.currency in ("EUR", "USD", "ALL")
        and abs(one.time - NOW) <= REACH
    ]
    ahead = [(one.time - NOW) / timedelta(minutes=1) for one in mine if one.time > NOW]
    past = [(NOW - one.time) / timedelta(minutes=1) for one in mine if one.time <= NOW]
    found = around(events, ("EUR", "USD"), NOW)
    assert found.events == tuple(mine)
    assert found.to_next == min(ahead, default=None)
    assert found.since_last == min(past, default=None)
    assert (found.ahead, found.behind) == (found.to_next, found.since_last)


# --- a tick that runs later than its bar closed ---------------------------------------------------


def late(hours: float, *events: ScheduledEvent) -> EventView:
    calendar = (*events, event(60 * 24 * 365))
    return around(calendar, ("USD",), NOW, NOW + timedelta(hours=hours))


def test_a_late_tick_tells_of_the_close_and_counts_from_now() -> None:
    found = late(2.0, event(-10), event(150), event(200))
    assert (found.to_next, found.since_last) == (150.0, 10.0)
    assert (found.ahead, found.behind) == (30.0, 10.0)


@pytest.mark.parametrize("minutes", [0.01, 60.0, 120.0])
def test_an_event_between_the_close_and_the_tick_is_no_minutes_behind(minutes: float) -> None:
    found = late(2.0, event(-90), event(minutes), event(500))
    assert (found.ahead, found.behind) == (380.0, 0.0)
    assert found.since_last == 90.0


def test_a_late_tick_looks_a_day_ahead_of_itself() -> None:
    """Two daily bars late, what comes next is further from the close than a day."""
    found = late(48.0, event(49 * 60))
    assert (found.to_next, found.ahead, found.behind) == (None, 60.0, None)
    assert len(found.events) == 1


def test_a_tick_before_its_close_counts_from_the_close() -> None:
    assert late(-1.0, event(30)) == late(0.0, event(30))
    assert late(0.0, event(30)) == view(event(30))


def test_a_calendar_ends_with_the_tick() -> None:
    calendar, tick = (event(30),), NOW + timedelta(hours=1)
    assert around(calendar, ("USD",), NOW).status == "available"
    assert around(calendar, ("USD",), NOW, tick).status == "ended"
    assert around(calendar, ("USD",), NOW, tick, broken=True).status == "broken_ended"


@given(
    st.lists(st.integers(-400, 400).map(event), max_size=12),
    st.integers(0, 200),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_a_window_counts_that_meets_any_moment_from_the_close_to_the_tick(
    events: list[ScheduledEvent], wait: int, before: int, after: int
) -> None:
    """Held against a walk through every minute between the two."""
    events.sort(key=lambda one: one.time)
    found = around(events, ("USD",), NOW, NOW + timedelta(minutes=wait))
    times = [(one.time - NOW) // timedelta(minutes=1) for one in events]
    met = any(
        time - before <= moment <= time + after for time in times for moment in range(wait + 1)
    )
    near = (found.ahead is not None and found.ahead <= before) or (
        found.behind is not None and found.behind <= after
    )
    assert near == met
