"""Runs tools for a caller: every call is checked, counted, limited in time and put on record.

In this order, and each refusal is a value with a code and a row of the audit: the tool is known and
on the caller's list; the arguments fit their schema, and their symbol is the desk's; there is room,
counted before the run; the same call was not made twice before; an answer to the same question is
taken from the cache; else the tool runs within its time, at most AT_ONCE beside each other. A
result that comes later is dropped. Nothing raises. Without a row of the audit nothing is given.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from torra.clock import System, iso
from torra.errors import ConfigError, StoreUnavailable
from torra.services import in_background
from torra.store.bars import newest_bars
from torra.store.connection import Store, to_json
from torra.store.tool_calls import append_tool_call
from torra.time_limit import settle
from torra.tools.contract import CODES, ToolResult, ToolSpec, refusal
from torra.tools.desk_reader import DeskReader
from torra.tools.registry import TOOLS

MONOTONIC: Final = System().monotonic

AT_ONCE: Final = 4
"""Tools that run beside each other."""

LONGEST_ARGS: Final = 500
"""Characters of refused arguments that are put on record."""

MOST_CACHED: Final = 64
"""Results that are remembered at most."""

MODEL_BYTES: Final = 3_000
"""Bytes of a result that a model gets at most."""

LOOP: Final[Mapping[str, float]] = {
    "TURN_LIMIT": 8, "AGENT_LIMIT": 24, "RUN_LIMIT": 64, "LOOP_LIMIT": 2,
}  # fmt: skip
CLIENT: Final[Mapping[str, float]] = {"MINUTE_LIMIT": 60}
"""How many calls an agent's loop may make, and a program that is no loop of ours, by the code of
the refusal after them. Of LOOP_LIMIT: how many that are alike.
"""

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What is asked: a tool by name, and its arguments as JSON values."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    turn: int = 0


@dataclass(slots=True)
class Invocation:
    """A call under way: when it began and must end in real seconds, and its arguments as text.

    `until` is 0 where no tool runs. `spec` and `given` are there once it was checked, `key` is what
    it is cached by.
    """

    call: ToolCall
    began: float
    args: str
    until: float = 0.0
    spec: Any = None
    given: Any = None
    key: tuple[str, ...] = ()
    result: Future[ToolResult] = field(default_factory=Future)


@dataclass
class Executor:
    """Runs the tools of one run; any thread may call.

    `audit` is the desk's own database, to which a row is appended for each call; evidence is read
    through the reader alone. `allowed` is the caller's list, `clock` counts real seconds.
    """

    run: str
    audit: Store
    limits: Mapping[str, float] = field(default_factory=lambda: LOOP)
    allowed: Collection[str] = tuple(TOOLS)
    tools: Mapping[str, ToolSpec] = field(default_factory=lambda: TOOLS)
    clock: Callable[[], float] = MONOTONIC

    def __post_init__(self) -> None:
        """Begin with nothing counted."""
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._counts: Counter[tuple[object, ...]] = Counter()
        self._cache: dict[tuple[str, ...], ToolResult] = {}
        self._loops: set[str] = set()

    def call(self, reader: DeskReader, call: ToolCall, left_s: float = math.inf) -> ToolResult:
        """Run one tool; `left_s` is what is left of the stage in seconds."""
        return self.together(reader, [call], left_s)[0]

    def together(
        self, reader: DeskReader, calls: Sequence[ToolCall], left_s: float = math.inf
    ) -> list[ToolResult]:
        """Run tools beside each other; the results come in the order of the calls."""
        begun = [self._begin(reader, call, left_s) for call in calls]
        return [self._end(reader, one) for one in begun]

    def _begin(self, reader: DeskReader, call: ToolCall, left_s: float) -> Invocation:
        """Check a call and start its tool, unless it is refused or known already."""
        # what is asked may be without end, and of any characters
        one = Invocation(call, self.clock(), json.dumps(call.args, default=str)[:LONGEST_ARGS])
        try:
            known = self._early_result(reader, one)
        except StoreUnavailable:
            known = refusal("UNREADABLE")
        if known:
            one.result.set_result(known)
            return one
        one.until = one.began + min(one.spec.limit_s, left_s)
        if self._slots.acquire(timeout=max(0.0, one.until - self.clock())):
            in_background("tool", partial(settle, one.result, partial(self._run, reader, one)))
        return one

    def _early_result(self, reader: DeskReader, one: Invocation) -> ToolResult | None:
        """Return the first refusal of a call, or its result from the cache; it counts anyway."""
        call = one.call
        full = self.beyond(
            TURN_LIMIT=(call.agent, call.turn), AGENT_LIMIT=(call.agent,), RUN_LIMIT=(),
            MINUTE_LIMIT=(one.began // 60,),
        )  # fmt: skip
        one.spec = self.tools.get(call.tool)
        if one.spec is None or call.tool not in self.allowed:
            return refusal("NOT_ALLOWED" if one.spec else "UNKNOWN_TOOL")
        try:
            one.given = one.spec.args.model_validate(call.args)
            one.args = one.given.model_dump_json()
            streams = _streams(reader, one.given)
        except ValidationError:
            return refusal("BAD_ARGUMENT", f"arguments: {', '.join(one.spec.args.model_fields)}")
        except ConfigError as error:
            return refusal("UNKNOWN_SYMBOL", str(error))
        if self.beyond(LOOP_LIMIT=(call.agent, call.tool, one.args)):
            self._loops.add(call.agent)
        if code := full or ("LOOP_LIMIT" if call.agent in self._loops else ""):
            return refusal(code)
        bars = [newest_bars(reader.database, *at, as_of=reader.as_of, limit=1) for at in streams]
        one.key = (call.tool, one.args, iso(reader.as_of), hash_of(to_json(bars)))
        return self._cache.get(one.key)

    def beyond(self, **places: tuple[object, ...]) -> str:
        """Count a call at some places, each by its limit; return the first limit it is beyond."""
        places = {code: place for code, place in places.items() if code in self.limits}
        with self._lock:
            self._counts.update(places.items())
            counts = {code: self._counts[code, place] for code, place in places.items()}
        return next((code for code in counts if counts[code] > self.limits[code]), "")

    def _run(self, reader: DeskReader, one: Invocation) -> ToolResult:
        try:
            given = one.spec.work(reader, one.given)
            if isinstance(given, ToolResult):
                return given
            result = ToolResult(ok=True, facts=tuple(given))
            to_json(result.model_dump())  # a number that is not finite is no fact
        except ConfigError as error:
            return refusal("NOT_FOUND", str(error))
        except StoreUnavailable:
            return refusal("UNREADABLE")
        except Exception as error:  # noqa: BLE001 - a tool's fault is an answer, too
            # what it says may hold a stranger's text
            log.warning("the tool %s failed: %s", one.spec.name, type(error).__name__)
            return refusal("FAILED")
        finally:
            self._slots.release()
        return result

    def _end(self, reader: DeskReader, one: Invocation) -> ToolResult:
        """Wait for a call's result within its time, and put it on record."""
        wait([one.result], max(0.0, one.until - self.clock()))
        result = one.result.result() if one.result.done() else refusal("TIMEOUT")
        code = result.error.code if result.error else ""
        if result.ok:
            if len(self._cache) >= MOST_CACHED:  # a client may ask for days
                self._cache.clear()
            self._cache[one.key] = result
        row = {
            "run": self.run,
            "agent": one.call.agent,
            "turn": one.call.turn,
            "tool": one.call.tool[:LONGEST_ARGS],
            "args": one.args,
            "args_hash": hash_of(one.args),
            "status": CODES[code]["status"] if code else "ok" if one.until else "cached",
            "code": code,
            "elapsed_ms": round((self.clock() - one.began) * 1000, 3),
            "result_hash": hash_of(result.model_dump_json()),
            "facts": to_json([fact.model_dump() for fact in result.facts]),
            "as_of": iso(reader.as_of),
        }
        try:
            append_tool_call(self.audit, row)
        except StoreUnavailable:
            return refusal("NO_AUDIT")
        return result


def hash_of(text: str) -> str:
    """Return the name of a text: the first half of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def text_for_model(result: ToolResult, most: int = MODEL_BYTES) -> str:
    """Return a result as JSON of at most so many bytes; `left_out` counts the facts left out."""
    document = {"left_out": 0, **result.model_dump(exclude={"facts": {"__all__": {"name"}}})}
    facts = document["facts"] = [*document["facts"]]
    while len((text := to_json(document)).encode()) > most and facts:
        facts.pop()
        document["left_out"] += 1
    return text


def _streams(reader: DeskReader, args: Any) -> list[tuple[str, str]]:
    """Return the streams that a tool may read by its arguments; raises ConfigError for none."""
    symbol, timeframe = (getattr(args, name, None) for name in ("symbol", "timeframe"))
    items = [reader.instance(symbol)] if symbol else reader.instances
    names = [(item.id, name) for item in items for name in item.timeframes]
    streams = [one for one in names if timeframe in (None, one[1])]
    if symbol and not streams:
        raise ConfigError(f"timeframes of {symbol}: {', '.join(name for _, name in names)}")
    return streams
