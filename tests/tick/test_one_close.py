"""What closes together on an instance debates at the same time, on what was known before its close.

Then it is stored one after the other, the longer timeframe first, each with the consensus, the
position and the risk of that moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import torra_trader
from agent_config import MODES
from agents.contracts import Completion, Request
from tests.doubles import scripted
from tests.tries import Tries
from tests.worlds import desks
from torra.clock import iso
from torra.config import Instance, Profile, validate
from torra.desk.schedule import Desk
from torra.providers.prices import PriceList
from torra.providers.rules.provider import RulesProvider
from torra.store import replay_queries
from torra.tick import debate, decision
from torra.tick import record as tick_record
from torra.tick.degradation import tick_worst_case

PRICES = PriceList({"flat": {"input": 10, "output": 10}}, now=lambda: desks.START)
EAGER: dict[str, Any] = {
    "thresholds": {"buy": 0.01, "sell": 0.01}, "risk": {"capital": 100_000.0},
}  # fmt: skip
"""Each tick opens or holds something."""


def a_profile(timeout: float = 60.0, **changes: Any) -> Profile:
    values = {"agents": {"timeout_seconds": timeout, **changes.pop("agents", {})}, **changes}
    return validate(Profile, values, "a test")


class Meeting:
    """Answers a role of one timeframe once the same role of every other one has been asked."""

    name = "meeting"

    def __init__(self, count: int) -> None:
        self._count = count
        self._rules = RulesProvider()
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, int], list[tuple[Request, Future[Completion]]]] = {}

    def submit(self, request: Request) -> Future[Completion]:
        future: Future[Completion] = Future()
        with self._lock:
            asked = self._asked.setdefault((request.role.id, request.round), [])
            asked.append((request, future))
            there = asked if len(asked) == self._count else []
        for one, answer in there:
            answer.set_result(self._rules.submit(one).result())
        return future

    def close(self) -> None: ...


Open = Callable[..., Desk]


@pytest.fixture
def open_desk(tmp_path: Path) -> Open:
    """What opens a desk that works, in a folder of its own or one that another one left."""

    def open_one(name: str = "home", instance: Instance = desks.BTC, **how: Any) -> Desk:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        return desks.working_desk(folder, (instance,), **{"provider": scripted.Distant(), **how})

    return open_one


def record_of(desk: Desk, timeframe: str, bar_time: datetime | None = None) -> dict[str, Any]:
    """The stored record of a timeframe's tick, by default of the one that closed at START."""
    moment = bar_time or desks.START - {"M15": desks.QUARTER, "M30": 2 * desks.QUARTER}.get(
        timeframe, timedelta(hours=1)
    )
    return dict(replay_queries.journal_row(desk.database, f"BTCUSD|{timeframe}|{iso(moment)}")[0])


def asked(desk: Desk, timeframe: str) -> dict[tuple[str, int, int], str]:
    """The digests of what the agents of a timeframe were asked."""
    rows = desks.rows(
        desk,
        "select role, round, attempt, request_hash from calls where torra_key like ?",
        [f"BTCUSD|{timeframe}|%"],
    )
    return {(row["role"], row["round"], row["attempt"]): row["request_hash"] for row in rows}


# --- at the same time -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instance", "mode"),
    [(desks.BTC, "budget"), (desks.THREE, "budget"), (desks.BTC, "swarm")],
    ids=["two", "three", "swarms"],
)
def test_the_debates_of_a_close_run_at_the_same_time(
    instance: Instance, mode: str, open_desk: Open
) -> None:
    """No role of one is answered before the same role of all others is asked."""
    count = len(instance.timeframes)
    desk = open_desk(
        instance=instance,
        feed=desks.WithHalfHours(set()),
        provider=Meeting(count),
        profile=a_profile(agents={"mode": mode}),
    )
    outcomes = desk.wake("BTCUSD")
    assert [one.state for one in outcomes] == ["done"] * count
    sources = {name: record_of(desk, name)["source_type"] for name in instance.timeframes}
    assert set(sources.values()) == {MODES[mode].complete}, sources


# --- one after the other --------------------------------------------------------------------------


def test_the_longer_is_stored_first_however_slow_it_is(open_desk: Open) -> None:
    def slow(request: Request) -> Any:
        reply = scripted.honest(request)
        return scripted.Slow(0.2, reply) if request.timeframe == "H1" else reply

    roles = ("technical", "bull_researcher", "bear_researcher", "risk_gate")
    script = scripted.Scripted(dict.fromkeys(roles, slow))
    desk = open_desk(provider=script, profile=a_profile(**EAGER))
    desk.wake("BTCUSD")
    rows = [dict(row) for row in desks.rows(desk, "select * from sentiment")]
    assert [row["timeframe"] for row in rows] == ["H1", "M15"]
    elder, younger = record_of(desk, "H1"), record_of(desk, "M15")
    assert elder["action"].startswith("OPEN")
    # The consensus, the position and the risk of that moment: the elder has been stored.
    assert younger["composites"]["H1"]["composite"] == elder["composite"]
    assert younger["desk"]["exposure"]["positions_open"] == 1


class Hangs:
    """Stores a tick of one timeframe only when another one has been; `took` is what that took."""

    def __init__(self, timeframe: str) -> None:
        self._timeframe = timeframe
        self._go_on = threading.Event()
        self.began = self.took = 0.0

    def __call__(self, inputs: Any, *words: Any, **more: Any) -> Any:
        if inputs.timeframe == self._timeframe:
            assert self._go_on.wait(20)
            return decision.decide(inputs, *words, **more)
        found = decision.decide(inputs, *words, **more)
        self.took = time.monotonic() - self.began
        self._go_on.set()
        return found


def test_the_younger_waits_for_its_elder_until_its_own_deadline(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch, tries: Tries
) -> None:
    """An elder that hangs while it is stored costs the younger its place behind it, no more."""
    for attempt in tries():
        hangs = Hangs("H1")
        monkeypatch.setattr(torra_trader, "decide", hangs)
        desk = open_desk(f"try {attempt.number}", profile=a_profile(1.0, **EAGER))
        hangs.began = time.monotonic()
        states = [one.state for one in desk.wake("BTCUSD")]
        rows = desks.rows(desk, "select timeframe from sentiment")
        assert [row["timeframe"] for row in rows][:1] == ["M15"]
        with attempt:
            assert states == ["done", "done"]
            assert 1.0 <= hangs.took <= 1.5


def test_the_shortest_waits_for_the_longest_where_the_one_between_fails(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = debate.run_tick_debate

    def fails(plan: Any, inputs: Any, key: Any, *words: Any, **more: Any) -> Any:
        if inputs.timeframe == "M30":
            raise RuntimeError("a defect")
        return held(plan, inputs, key, *words, **more)

    def slow(request: Request) -> Any:
        reply = scripted.honest(request)
        return scripted.Slow(0.1, reply) if request.timeframe == "H1" else reply

    roles = ("technical", "bull_researcher", "bear_researcher", "risk_gate")
    monkeypatch.setattr(torra_trader, "run_tick_debate", fails)
    desk = open_desk(
        instance=desks.THREE,
        feed=desks.WithHalfHours(set()),
        provider=scripted.Scripted(dict.fromkeys(roles, slow)),
        profile=a_profile(**EAGER),
    )
    assert [one.state for one in desk.wake("BTCUSD")] == ["done", "late", "done"]
    rows = desks.rows(desk, "select timeframe from sentiment order by id")
    assert [row["timeframe"] for row in rows] == ["H1", "M15"]


def test_the_younger_does_not_wait_until_its_elder_is_published(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A channel that hangs after the elder's commit costs the younger nothing."""
    decided, publish = threading.Event(), torra_trader._afterwards
    turns = iter([True])

    def decides(inputs: Any, *words: Any, **more: Any) -> Any:
        found = decision.decide(inputs, *words, **more)
        if inputs.timeframe == "M15":
            decided.set()
        return found

    def hangs(*words: Any) -> None:
        if next(turns, False):
            assert decided.wait(20)
        publish(*words)

    monkeypatch.setattr(torra_trader, "decide", decides)
    monkeypatch.setattr(torra_trader, "_afterwards", hangs)
    desk = open_desk(profile=a_profile(**EAGER))
    assert [one.state for one in desk.wake("BTCUSD")] == ["done", "done"]


# --- on the state before the close ----------------------------------------------------------------


def test_a_crash_between_two_commits_changes_nothing_that_the_second_debates_on(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The elder, stored before the crash, has opened a position: the younger may not know."""
    # By the record high alone this close is beyond the thresholds.
    profile = a_profile(**EAGER, record_score="high")
    whole = open_desk("whole", profile=profile)
    whole.wake("BTCUSD")
    first = open_desk("crashed", profile=profile)
    decide = decision.decide

    class Killed(BaseException):
        pass

    def dies(inputs: Any, *words: Any, **more: Any) -> Any:
        if inputs.timeframe == "M15":
            raise Killed
        return decide(inputs, *words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(torra_trader, "decide", dies)
        with pytest.raises(Killed):
            first.wake("BTCUSD")
    desks.crash(first)
    second = open_desk("crashed", profile=profile)
    (outcome,) = second.wake("BTCUSD")
    assert (outcome.key.timeframe, outcome.state) == ("M15", "done")
    assert record_of(second, "M15")["together"] == {}
    assert record_of(second, "M15")["apart"] == ["H1"]
    assert record_of(whole, "H1")["action"].startswith("OPEN")
    assert record_of(second, "M15")["memory"] == record_of(whole, "M15")["memory"]
    assert asked(second, "M15") == asked(whole, "M15") != {}
    for name in ("scores", "verdict", "consensus", "action", "reason", "composites"):
        assert record_of(second, "M15")[name] == record_of(whole, "M15")[name], name


@pytest.mark.journey
@pytest.mark.parametrize("late", ["M15", "H1"])
def test_a_bar_that_comes_later_is_a_close_of_its_own(late: str, open_desk: Open) -> None:
    other = "H1" if late == "M15" else "M15"
    hole = desks.START - (desks.QUARTER if late == "M15" else timedelta(hours=1))

    class Waits(desks.Holed):
        def bars(self, symbol: str, timeframe: str, *words: Any) -> Any:
            return (
                super().bars(symbol, timeframe, *words)
                if timeframe == late
                else (desks.sample().bars(symbol, timeframe, *words))
            )

    feed = Waits({hole})
    whole = open_desk("whole", profile=a_profile(**EAGER))
    whole.wake("BTCUSD")
    desk = open_desk(feed=feed, profile=a_profile(**EAGER))
    states = {one.key.timeframe: one.state for one in desk.wake("BTCUSD")}
    assert states == {other: "done", late: "late"}
    assert (record_of(desk, other)["together"], record_of(desk, other)["apart"]) == ({}, [late])
    feed.missing.clear()
    (outcome,) = desk.wake("BTCUSD")
    assert (outcome.key.timeframe, outcome.state) == (late, "done")
    assert (record_of(desk, late)["together"], record_of(desk, late)["apart"]) == ({}, [other])
    assert record_of(desk, late)["memory"] == record_of(whole, late)["memory"]


class WrittenMeanwhile(desks.Holed):
    """A channel that writes a close while the desk looks: the longer bar comes after its look."""

    def __init__(self) -> None:
        super().__init__({desks.START - timedelta(hours=1)})

    def bars(self, symbol: str, timeframe: str, *words: Any) -> Any:
        if timeframe != "H1":
            return desks.sample().bars(symbol, timeframe, *words)
        try:
            return super().bars(symbol, timeframe, *words)
        finally:
            self.missing.clear()


def test_a_close_that_is_written_while_the_desk_looks_is_one_close(
    open_desk: Open,
) -> None:
    whole, parted = open_desk("whole"), open_desk("parted", feed=WrittenMeanwhile())
    for desk in (whole, parted):
        assert [one.key.timeframe for one in desk.wake("BTCUSD")] == ["H1", "M15"]
    for name in ("H1", "M15"):
        one, other = record_of(whole, name), record_of(parted, name)
        for what in ("together", "apart", "scores", "verdict", "action", "memory"):
            assert one[what] == other[what], (name, what)


# --- when one of them fails -----------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.parametrize("broken", ["H1", "M15"])
@pytest.mark.parametrize("provider", [scripted.Distant, RulesProvider], ids=["threads", "inline"])
def test_a_tick_that_fails_costs_the_others_of_its_close_nothing(
    broken: str,
    provider: Callable[[], Any],
    open_desk: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = tick_record.build

    def fails(result: Any, *words: Any) -> Any:
        if result.inputs.timeframe == broken:
            raise RuntimeError("a defect")
        return build(result, *words)

    desk = open_desk(provider=provider())
    with monkeypatch.context() as patch:
        patch.setattr(tick_record, "build", fails)
        found = {one.key.timeframe: (one.state, one.reason) for one in desk.wake("BTCUSD")}
    other = "M15" if broken == "H1" else "H1"
    assert found == {broken: ("late", "error"), other: ("done", "")}
    (again,) = desk.wake("BTCUSD")
    assert (again.key.timeframe, again.state) == (broken, "done")


@pytest.mark.parametrize("where", ["H1", "M15"])
def test_an_interrupt_gives_every_claim_back_that_is_not_done(
    where: str, open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the thread of the younger, too: whoever runs the close hears of it."""
    decide = decision.decide

    def interrupted(inputs: Any, *words: Any, **more: Any) -> Any:
        if inputs.timeframe == where:
            raise KeyboardInterrupt
        return decide(inputs, *words, **more)

    desk = open_desk()
    with monkeypatch.context() as patch:
        patch.setattr(torra_trader, "decide", interrupted)
        with pytest.raises(KeyboardInterrupt):
            desk.wake("BTCUSD")
    assert desks.rows(desk, "select * from ticks where state = 'released'")
    assert desks.rows(desk, "select * from ticks where state = 'claimed'") == []
    assert {one.state for one in desk.wake("BTCUSD")} == {"done"}
    assert len(desks.rows(desk, "select * from sentiment")) == 2


# --- under one ceiling ----------------------------------------------------------------------------


@pytest.mark.parametrize("worths", [1.5, 2.5])
def test_what_the_elder_may_cost_is_not_promised_to_the_younger(
    worths: float, open_desk: Open
) -> None:
    """An hour that pays for one desk and a half lets one of two debate, one for two both."""
    named = {"provider": "anthropic", "quick_think_model": "flat", "deep_think_model": "flat"}
    worst = tick_worst_case(PRICES, a_profile(agents=named).agents, lambda _: False)
    profile = a_profile(agents={**named, "max_api_cost_per_hour": worst * worths})
    desk = open_desk(profile=profile)
    desks.charge(desk, PRICES, desk.clock.now, "a test")
    desk.wake("BTCUSD")
    flags = {
        name: (desk.database.latest_tick("BTCUSD", name) or {})["deliberation"]["flags"]
        for name in ("H1", "M15")
    }
    assert "budget" not in flags["H1"]
    assert ("budget" in flags["M15"]) == (worths < 2)
    # Promised is not spent: later ticks do not climb from a level that this one stood on for it.
    assert desk.database.degradation_level("a test") is None
