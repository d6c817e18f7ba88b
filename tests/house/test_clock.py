"""The clocks and the arithmetic of the bar grid."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra import clock

START = datetime(2021, 11, 1, tzinfo=UTC)
MOMENTS = st.integers(-(2**40), 2**50).map(
    lambda ticks: clock.EPOCH + timedelta(microseconds=ticks)
)
FRAMES = st.sampled_from(list(clock.TIMEFRAMES))


class Ticking:
    """Stands for the time module: monotonic is set by hand, sleep advances it."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Ticking:
    fake = Ticking()
    monkeypatch.setattr(clock, "time", fake)
    return fake


@given(MOMENTS, FRAMES)
def test_floor_is_the_newest_point_of_the_grid(moment: datetime, timeframe: str) -> None:
    point = clock.floor(moment, timeframe)
    step = clock.duration(timeframe)
    assert point <= moment < point + step
    assert (point - clock.EPOCH) % step == timedelta(0)
    assert clock.floor(point, timeframe) == point


@given(MOMENTS, st.integers(0, 50_000), FRAMES)
def test_closes_are_every_point_after_the_first_and_up_to_the_last(
    after: datetime, seconds: int, timeframe: str
) -> None:
    upto = after + timedelta(seconds=seconds)
    step = clock.duration(timeframe)
    found = list(clock.closes(timeframe, after, upto))
    assert found == sorted(set(found))
    assert all(after < moment <= upto for moment in found)
    assert all(clock.floor(moment, timeframe) == moment for moment in found)
    expected = (clock.floor(upto, timeframe) - clock.floor(after, timeframe)) // step
    assert len(found) == expected


def test_a_moment_on_the_grid_is_not_after_itself() -> None:
    assert list(clock.closes("H1", START, START)) == []
    assert list(clock.closes("H1", START, START + timedelta(hours=2))) == [
        START + timedelta(hours=1),
        START + timedelta(hours=2),
    ]


def test_closes_backwards_are_none() -> None:
    assert list(clock.closes("M15", START, START - timedelta(days=1))) == []


def test_the_grid_is_utc_whatever_zone_the_moment_comes_in() -> None:
    kolkata = timezone(timedelta(hours=5, minutes=30))
    moment = datetime(2021, 11, 1, 10, 50, tzinfo=kolkata)
    assert clock.floor(moment, "H1") == datetime(2021, 11, 1, 5, tzinfo=UTC)


def test_an_unknown_timeframe_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'H2'; known: M1, M5, M15, M30, H1, H4, D1"):
        clock.duration("H2")


@given(MOMENTS)
def test_times_survive_being_written_and_read(moment: datetime) -> None:
    text = clock.iso(moment)
    assert text.endswith("Z")
    assert clock.parse(text) == moment
    assert clock.parse(text).tzinfo is UTC


def test_times_are_written_and_read_in_utc() -> None:
    assert clock.iso(START) == "2021-11-01T00:00:00Z"
    assert clock.iso(datetime(2021, 11, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == clock.iso(
        START
    )
    assert clock.parse(" 2021-11-01 ") == START
    assert clock.parse("2021-11-01T02:00:00+02:00") == START
    with pytest.raises(ValueError, match="yesterday"):
        clock.parse("yesterday")


def test_the_system_clock_is_real_time() -> None:
    system = clock.System()
    before = datetime.now(UTC)
    assert before <= system.now() <= system.real_now() <= datetime.now(UTC)
    assert system.real_time_of(START) == START
    assert system.monotonic() <= system.monotonic()


def test_a_scaled_clock_runs_at_its_rate(ticking: Ticking) -> None:
    scaled = clock.Scaled(START, 180.0)
    assert scaled.now() == START
    ticking.seconds += 5
    assert scaled.now() == START + timedelta(minutes=15)
    ticking.seconds += 3600
    assert scaled.now() == START + timedelta(minutes=15, hours=180)


def test_a_scaled_clock_sleeps_in_the_desks_time(ticking: Ticking) -> None:
    scaled = clock.Scaled(START, 180.0)
    scaled.sleep(900)
    assert ticking.slept == [5.0]
    assert scaled.now() == START + timedelta(seconds=900)
    scaled.sleep(-1)
    assert ticking.slept == [5.0, 0.0]


@given(st.floats(0.01, 10_000), st.integers(-100_000, 100_000), st.floats(0, 10_000))
def test_real_time_of_says_when_the_desk_will_show_a_moment(
    rate: float, ahead: int, ran: float
) -> None:
    class Fixed(clock.Scaled):
        def real_now(self) -> datetime:
            return datetime(2026, 1, 1, tzinfo=UTC)

    fake = Ticking()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "time", fake)
        scaled = Fixed(START, rate)
        fake.seconds += ran
        moment = scaled.now() + timedelta(seconds=ahead)
        wait = scaled.real_time_of(moment) - scaled.real_now()
        assert wait.total_seconds() == pytest.approx(ahead / rate, abs=1e-5)
        fake.seconds += wait.total_seconds()
        assert abs((scaled.now() - moment).total_seconds()) <= 1e-5 * max(1.0, rate)


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_a_rate_that_stands_still_or_runs_back_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        clock.Scaled(START, rate)


def test_a_simulated_clock_stands_still_until_it_is_set() -> None:
    simulated = clock.Simulated(START)
    assert simulated.now() == simulated.now() == START
    simulated.set(START + timedelta(days=1))
    assert simulated.now() == START + timedelta(days=1)
    simulated.sleep(60)
    simulated.sleep(-60)
    assert simulated.now() == START + timedelta(days=1, minutes=1)


def test_a_simulated_clock_loses_no_step_of_many_threads() -> None:
    simulated = clock.Simulated(START)
    threads = [
        threading.Thread(target=lambda: [simulated.sleep(1) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert simulated.now() == START + timedelta(seconds=800)


def test_tokens_are_fresh_and_of_the_length_asked_for() -> None:
    tokens = {clock.token(8) for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {16}
