"""Every call passes the same checks in the same order, and each leaves a row of the audit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import Field

from tests.cases import cases
from tests.tools.conftest import World
from torra.errors import ConfigError, StoreBroken
from torra.store.tool_calls import tool_calls
from torra.tools.contract import Fact, Given, ToolArgs, ToolSpec, fact
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import (
    AT_ONCE,
    CLIENT,
    LOOP,
    MODEL_BYTES,
    MOST_CACHED,
    Executor,
    ToolCall,
    text_for_model,
)

SECRET = "Password hunter2 in C:/private"


class Args(ToolArgs):
    number: int = Field(0, ge=0, le=99)
    symbol: str = "BTCUSD"


def some(count: int = 1) -> list[Fact]:
    return [
        fact(f"doc.{number}", float(number), "the number", "2021-01-01T00:00:00Z", "")
        for number in range(count)
    ]


def spec(work: Callable[[DeskReader, Any], Given], **more: Any) -> Any:
    return {"tool": ToolSpec("tool", "", Args, work, **more)}


class Counted:
    """A tool that counts how often it ran."""

    def __init__(self) -> None:
        self.ran = 0

    def __call__(self, reader: DeskReader, args: Args) -> list[Fact]:
        self.ran += 1
        return some()


def executor(world: World, work: Any, limits: Mapping[str, float] = LOOP, **more: Any) -> Executor:
    return Executor("run", world.audit, tools=spec(work), allowed=["tool"], limits=limits, **more)


def call(number: int = 0, **more: Any) -> ToolCall:
    return ToolCall("tool", {"number": number}, **{"agent": "signal", **more})


def codes(world: World) -> list[tuple[str, str]]:
    return [(row["status"], row["code"]) for row in tool_calls(world.audit, "run")]


def test_every_refusal_is_a_value_with_its_code_and_its_row(world: World) -> None:
    work = Counted()
    tools = {**spec(work), "other": ToolSpec("other", "", Args, work)}
    one = Executor("run", world.audit, tools=tools, allowed=["tool"])
    refused = [
        (ToolCall("nothing"), "UNKNOWN_TOOL"),
        (ToolCall("other"), "NOT_ALLOWED"),
        (ToolCall("tool", {"number": -1}), "BAD_ARGUMENT"),
        (ToolCall("tool", {SECRET: 1}), "BAD_ARGUMENT"),
        (ToolCall("tool", {"symbol": "../torra.db"}), "UNKNOWN_SYMBOL"),
    ]
    for asked, code in refused:
        result = one.call(world.reader, asked)
        assert result.error is not None and result.error.code == code and not result.facts
        assert SECRET not in result.error.message
    assert codes(world) == [("refused", code) for _, code in refused]
    assert work.ran == 0


@cases(
    ("limits", "most", "code"),
    [
        ({"TURN_LIMIT": 2, "AGENT_LIMIT": 2, "RUN_LIMIT": 2}, 2, "TURN_LIMIT"),
        ({**LOOP, "AGENT_LIMIT": 3}, 3, "AGENT_LIMIT"),
        ({**LOOP, "RUN_LIMIT": 4}, 4, "RUN_LIMIT"),
        ({"MINUTE_LIMIT": 5}, 5, "MINUTE_LIMIT"),
    ],
)
def test_calls_are_counted_before_they_run(
    world: World, limits: Mapping[str, float], most: int, code: str
) -> None:
    work = Counted()
    one = executor(world, work, limits, clock=lambda: 100.0)
    results = one.together(world.reader, [call(number) for number in range(most + 1)])
    assert [result.ok for result in results] == [True] * most + [False]
    assert results[-1].error is not None and results[-1].error.code == code
    assert work.ran == most


def test_the_limits_are_those_of_the_contract() -> None:
    assert LOOP == {"TURN_LIMIT": 8, "AGENT_LIMIT": 24, "RUN_LIMIT": 64, "LOOP_LIMIT": 2}
    assert CLIENT == {"MINUTE_LIMIT": 60}
    assert (AT_ONCE, MODEL_BYTES) == (4, 3_000)


def test_a_refused_call_takes_room_too(world: World) -> None:
    one = executor(world, Counted(), {"TURN_LIMIT": 2})
    for _ in range(2):
        one.call(world.reader, ToolCall("nothing", agent="signal"))
    result = one.call(world.reader, call())
    assert result.error is not None and result.error.code == "TURN_LIMIT"


def test_a_client_has_room_again_after_a_minute(world: World) -> None:
    now = [0.0]
    one = executor(world, Counted(), {"MINUTE_LIMIT": 1}, clock=lambda: now[0])
    results = []
    for moment in (0.0, 59.9, 60.0):
        now[0] = moment
        results.append(one.call(world.reader, call(int(moment))).ok)
    assert results == [True, False, True]


def test_the_third_call_alike_ends_the_loop_of_its_agent(world: World) -> None:
    one = executor(world, Counted())
    results = [one.call(world.reader, call()) for _ in range(3)]
    results.append(one.call(world.reader, call(1)))
    results.append(one.call(world.reader, call(1, agent="data")))
    assert [result.ok for result in results] == [True, True, False, False, True]
    loop = ("refused", "LOOP_LIMIT")
    assert codes(world) == [("ok", ""), ("cached", ""), loop, loop, ("ok", "")]


def test_the_cache_knows_the_moment_and_the_bars(world: World) -> None:
    work = Counted()
    one = executor(world, work, CLIENT)
    one.call(world.reader, call())
    one.call(world.reader, ToolCall("tool", {"symbol": "BTCUSD", "number": 0}, agent="data"))
    assert work.ran == 1, "the same arguments in another order"
    later = replace(world.reader, as_of=world.reader.as_of + timedelta(minutes=1))
    one.call(later, call())
    assert work.ran == 2
    bars = world.audit.load_bars("BTCUSD", "M15", as_of=later.as_of, limit=1)
    world.audit.store_bars("BTCUSD", "M15", bars.assign(close=bars["close"] + 0.01))
    one.call(later, call())
    assert work.ran == 3


def test_a_client_that_asks_for_days_fills_no_memory(world: World) -> None:
    one = executor(world, Counted(), CLIENT)
    for number in range(MOST_CACHED + 36):
        later = world.reader.as_of + timedelta(seconds=number)
        assert one.call(replace(world.reader, as_of=later), call()).ok == (number < 60)
    one.limits = {}
    for number in range(MOST_CACHED + 5):
        later = world.reader.as_of + timedelta(hours=1, seconds=number)
        assert one.call(replace(world.reader, as_of=later), call()).ok
    assert len(one._cache) <= MOST_CACHED and len(one._counts) <= 2


def test_arguments_of_any_depth_are_refused(world: World) -> None:
    """What a model asks may be nested as deep as JSON is read."""
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    result = executor(world, Counted()).call(world.reader, ToolCall("tool", {"number": deep}))
    assert result.error is not None and result.error.code == "BAD_ARGUMENT"


def test_what_comes_late_is_dropped_and_on_record(world: World) -> None:
    gate, done = threading.Event(), threading.Event()

    def slow(reader: DeskReader, args: Args) -> list[Fact]:
        gate.wait(20.0)
        done.set()
        return some()

    one = Executor("run", world.audit, tools=spec(slow, limit_s=9.0), allowed=["tool"])
    result = one.call(world.reader, call(), left_s=0.05)
    gate.set()
    assert done.wait(20.0)
    assert result.error is not None and result.error.code == "TIMEOUT"
    assert codes(world) == [("timeout", "TIMEOUT")]
    assert not result.facts and one.call(world.reader, call(1)).ok


def test_four_run_beside_each_other_and_no_fifth(world: World) -> None:
    gate, lock, running, most = threading.Event(), threading.Lock(), [0], [0]

    def slow(reader: DeskReader, args: Args) -> list[Fact]:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == AT_ONCE:
                threading.Timer(0.1, gate.set).start()
        gate.wait(20.0)
        with lock:
            running[0] -= 1
        return some()

    one = Executor("run", world.audit, tools=spec(slow, limit_s=30.0), allowed=["tool"])
    results = one.together(world.reader, [call(number) for number in range(6)])
    assert all(result.ok for result in results)
    assert most[0] == AT_ONCE


@cases(
    ("error", "code"),
    [
        (RuntimeError(SECRET), "FAILED"),
        (StoreBroken(SECRET), "UNREADABLE"),
        (ConfigError("no such thing"), "NOT_FOUND"),
    ],
)
def test_what_a_tool_raises_is_told_in_our_own_words(
    world: World, caplog: pytest.LogCaptureFixture, error: Exception, code: str
) -> None:
    def broken(reader: DeskReader, args: Args) -> list[Fact]:
        raise error

    result = executor(world, broken).call(world.reader, call())
    assert result.error is not None and result.error.code == code
    assert SECRET not in result.error.message + caplog.text


def test_a_number_that_is_not_finite_is_no_fact(world: World) -> None:
    def odd(reader: DeskReader, args: Args) -> list[Fact]:
        return [fact("doc.x", float("nan"), "x", "", "")]

    result = executor(world, odd).call(world.reader, call())
    assert result.error is not None and result.error.code == "FAILED"


def test_without_a_row_of_the_audit_nothing_is_given(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise StoreBroken("the disk is full")

    monkeypatch.setattr("torra.tools.executor.append_tool_call", broken)
    result = executor(world, Counted()).call(world.reader, call())
    assert result.error is not None and result.error.code == "NO_AUDIT"


def test_a_model_gets_3000_bytes_and_the_store_all(world: World) -> None:
    result = executor(world, lambda *_: some(200)).call(world.reader, call())
    text = text_for_model(result)
    assert len(text.encode()) <= MODEL_BYTES and '"left_out":' in text
    (row,) = tool_calls(world.audit, "run")
    assert row["facts"].count('"doc.') == len(result.facts) == 200
