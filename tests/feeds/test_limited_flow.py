"""Order flow is read beside the ticks: what comes in a moment counts, and nothing is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from tests.worlds import desks
from torra.clock import duration
from torra.evidence.flow_readings import FlowRow, FlowThen
from torra.feeds.limited import LimitedFlow

QUARTER = timedelta(minutes=15)


class Source:
    """Order flow whose row of a bar comes so many seconds after the first question for it."""

    def __init__(self, comes_after: float = 0.0, answers_after: float = 0.0) -> None:
        self.comes_after = comes_after
        self.answers_after = answers_after
        self.asked: list[tuple[str, datetime]] = []
        self._first: dict[tuple[str, datetime], float] = {}
        self.let_go = threading.Event()

    def flow(self, symbol: str, timeframe: str, times: Sequence[datetime]) -> FlowThen:
        del symbol
        began = self._first.setdefault((timeframe, times[-1]), time.monotonic())
        self.asked.append((timeframe, times[-1]))
        self.let_go.wait(self.answers_after)
        there = time.monotonic() - began >= self.comes_after
        told = times if there else times[:-1]
        rows = {at: FlowRow(at, 5, 1, 1) for at in told}
        return FlowThen(rows, "available" if there else "not_yet", "mt5_files")


class Counted(LimitedFlow):
    """It notes the ticks that wait."""

    def __init__(self, source: Source, **how: Any) -> None:
        super().__init__(source, **how)
        self.waits = 0

    def _wait(self, reading: Any) -> None:
        self.waits += 1
        super()._wait(reading)


@pytest.fixture
def make() -> Iterator[Callable[..., Counted]]:
    made: list[Source] = []

    def beside(source: Source, **how: Any) -> Counted:
        made.append(source)
        return Counted(source, **how)

    yield beside
    for source in made:
        source.let_go.set()


def tick(flow: LimitedFlow, number: int, timeframe: str = "M15") -> FlowThen:
    """Return what a tick has of the bar of a number."""
    last = desks.START + number * QUARTER - duration(timeframe)
    return flow.begin("BTCUSD", timeframe, [last - duration(timeframe), last])()


def settle(flow: Counted) -> None:
    """Wait until nothing is being read."""
    end = time.monotonic() + 20
    while not all(one.complete for one in flow._newest.values()):
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_row_that_comes_a_moment_after_the_bars_is_used(
    make: Callable[..., Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the Expert Advisor writes it: first all files of bars, then order flow."""
    monkeypatch.setattr("torra.feeds.close_reader.WAIT", 20.0)
    flow = make(Source(comes_after=0.03), wait=20.0)
    for number in range(5):
        found = tick(flow, number)
        assert found.status == "available" and len(found.rows) == 2


def test_what_came_too_late_for_its_own_tick_is_known_to_the_next_one(
    make: Callable[..., Counted],
) -> None:
    source = Source(answers_after=60.0)
    flow = make(source)
    for number in range(3):
        source.let_go.clear()
        found = tick(flow, number)
        assert found.status == "unreachable" and flow.waits == number + 1
        assert len(found.rows) == (2 if number else 0)
        source.let_go.set()
        settle(flow)


def test_a_source_that_hangs_is_asked_once_and_waited_for_once(
    make: Callable[..., Counted],
) -> None:
    source = Source(answers_after=60.0)
    flow = make(source)
    found = [tick(flow, number // 2, ("H1", "M15")[number % 2]) for number in range(8)]
    assert {one.status for one in found} == {"unreachable"}
    assert len(source.asked) == flow.waits == 1


GOOD = FlowRow(desks.START, 5, 1, 1)
NAIVE = desks.START.replace(tzinfo=None)
NAN, INFINITE = float("nan"), float("inf")


def changed(name: str, value: Any) -> FlowRow:
    told: dict[str, Any] = {name: value}
    return GOOD._replace(**told)


BAD: dict[str, Any] = {
    "nothing": None,
    "rows": {desks.START: GOOD},
    "no rows": FlowThen(None),
    "a list": FlowThen([GOOD]),  # type: ignore[arg-type]
    "no status": FlowThen({}, None),
    "no source": FlowThen({}, "available", None),
    "no zone": FlowThen({NAIVE: GOOD}),
    "row without zone": FlowThen({desks.START: GOOD._replace(bar_time=NAIVE)}),
    "another zone": FlowThen({desks.START.astimezone(timezone(QUARTER)): GOOD}),
    "a text for a time": FlowThen({"2021-11-10T10:00:00+00:00": GOOD}),  # type: ignore[dict-item]
    "another bar": FlowThen({desks.START: GOOD._replace(bar_time=desks.START + QUARTER)}),
    "no row": FlowThen({desks.START: None}),
    "a tuple": FlowThen({desks.START: tuple(GOOD)}),  # type: ignore[dict-item]
    **{
        f"{name} {value}": FlowThen({desks.START: changed(name, value)})
        for name, value in (
            *((name, value) for name in ("ticks", "up", "down") for value in (None, 1.5, "3", -1)),
            *(("ticks", value) for value in (True, 2**63, NAN, np.int64(3))),
            *((name, value) for name in ("levels", "events") for value in (0.5, "3", -1, 2**63)),
            *(
                (name, value)
                for name in ("spread_mean", "spread_widest", "bid_volume", "ask_volume")
                for value in (NAN, "1", 2**63, True)
            ),
            *((name, value) for name in ("imbalance", "slippage") for value in (INFINITE, [1.0])),
        )
    },
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_what_is_no_order_flow_is_broken_and_told_once(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Bad:
        def flow(self, *_: Any) -> Any:
            return answer

    flow = LimitedFlow(Bad())
    for _ in range(3):
        assert flow.flow("BTCUSD", "M15", [desks.START]) == FlowThen({}, "broken")
    assert len(caplog.records) == 1


def test_a_good_answer_passes_as_it_is() -> None:
    full = FlowRow(desks.START, 5, 1, 1, 0.5, 1.0, 3, 2, 1.5, -0.25, 0.0, 7)
    answer = FlowThen({desks.START: full, desks.START + QUARTER: GOOD._replace(
        bar_time=desks.START + QUARTER)})  # fmt: skip

    class Good:
        def flow(self, *_: Any) -> FlowThen:
            return answer

    assert LimitedFlow(Good()).flow("BTCUSD", "M15", [desks.START]) is answer


def test_a_system_without_threads_costs_no_tick(
    make: Callable[..., Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    flow = make(Source(), wait=5.0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        assert tick(flow, 0).status == "unreachable"
    assert tick(flow, 1).status == "available"


def test_a_check_waits_for_the_answer(make: Callable[..., Counted]) -> None:
    flow = make(Source(answers_after=0.3))
    assert flow.flow("BTCUSD", "M15", [desks.START]).status == "available"
