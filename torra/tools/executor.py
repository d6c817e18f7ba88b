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
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from torra.clock import System, iso
from torra.errors import ConfigError, StoreUnavailable
from torra.services import in_background
from torra.store import bars as bar_table
from torra.store import tool_calls as audit_table
from torra.store.connection import Store, to_json
from torra.time_limit import settle
from torra.tools.codes import ToolCode
from torra.tools.contract import ToolArgs, ToolError, ToolResult, ToolSpec
from torra.tools.desk_reader import DeskReader
from torra.tools.registry import TOOLS
from torra.words.badge import capital

MONOTONIC: Final = System().monotonic

AT_ONCE: Final = 4
"""Tools that run beside each other."""

LONGEST_ARGS: Final = 500
"""Characters of arguments of another shape that are put on record."""

MODEL_BYTES: Final = 3_000
"""Bytes of a result that a model gets at most."""

MINUTE_S: Final = 60.0

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class Limits:
    """How many calls there may be; None: as many as one likes. The `same`th alike ends the loop."""

    turn: int | None = 8
    agent: int | None = 24
    run: int | None = 64
    same: int | None = 3
    minute: int | None = None


LOOP: Final = Limits()
CLIENT: Final = Limits(turn=None, agent=None, run=None, same=None, minute=60)
"""The limits of an agent's loop, and those of a program that is no loop of ours."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What is asked: a tool by name, and its arguments as JSON values."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    turn: int = 0


@dataclass(slots=True)
class Invocation:
    """A call under way: its arguments as text, when it began, and what came of it so far.

    `status` and `result` are known once it is refused or taken from the cache; `work` is what runs.
    """

    call: ToolCall
    began: float
    until: float = 0.0
    args: str = ""
    key: tuple[str, ...] = ()
    status: str = ""
    result: ToolResult | None = None
    work: Future[ToolResult] | None = None

    def ends(self, status: str, error: ToolError) -> None:
        """End it with an error."""
        self.status, self.result = status, ToolResult(ok=False, error=error)


class Executor:
    """Runs the tools of one run; any thread may call.

    `audit` is the desk's own database, to which a row is appended for each call; evidence is read
    through the reader alone. `clock` counts real seconds.
    """

    def __init__(
        self,
        run: str,
        audit: Store,
        *,
        allowed: Collection[str] = TOOLS.keys(),
        limits: Limits = LOOP,
        tools: Mapping[str, ToolSpec] = TOOLS,
        clock: Callable[[], float] = MONOTONIC,
    ) -> None:
        self.run = run
        self._audit = audit
        self._allowed = frozenset(allowed)
        self._limits = limits
        self._tools = tools
        self._clock = clock
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._counts: Counter[tuple[object, ...]] = Counter()
        self._newest: deque[float] = deque()
        self._cache: dict[tuple[str, ...], ToolResult] = {}
        self._loops: set[str] = set()

    def call(self, reader: DeskReader, call: ToolCall, left_s: float | None = None) -> ToolResult:
        """Run one tool; `left_s` is what is left of the stage in seconds."""
        return self.together(reader, [call], left_s)[0]

    def together(
        self, reader: DeskReader, calls: Sequence[ToolCall], left_s: float | None = None
    ) -> list[ToolResult]:
        """Run tools beside each other; the results come in the order of the calls."""
        begun = [self._begin(reader, call, left_s) for call in calls]
        return [self._end(reader, one) for one in begun]

    def _begin(self, reader: DeskReader, call: ToolCall, left_s: float | None) -> Invocation:
        """Check a call, count it and start its tool, unless it is refused or known already."""
        one = Invocation(call, self._clock())
        full = self._count(call, one.began)
        try:
            spec, args = self._checked(reader, one)
            if spec is None or args is None:
                return one
            if full := full or self._again(one):
                one.ends("refused", full.error())
                return one
            one.key = (call.tool, one.args, iso(reader.as_of), _bars_hash(reader, args))
        except StoreUnavailable:
            one.ends("error", ToolCode.UNREADABLE.error())
            return one
        one.result = self._cache.get(one.key)
        if one.result is not None:
            one.status = "cached"
            return one
        seconds = spec.limit_s if left_s is None else max(0.0, min(spec.limit_s, left_s))
        one.until = one.began + seconds
        if self._slots.acquire(timeout=max(0.0, one.until - self._clock())):
            one.work = Future()
            work = partial(self._run, spec, reader, args)
            in_background("tool", partial(settle, one.work, work))
        return one

    def _checked(
        self, reader: DeskReader, one: Invocation
    ) -> tuple[ToolSpec | None, ToolArgs | None]:
        """Return the tool and its arguments; None of either ends the call."""
        # what is asked may be without end, and of any characters
        one.args = json.dumps(one.call.args, default=str)[:LONGEST_ARGS]
        spec = self._tools.get(one.call.tool)
        if spec is None or one.call.tool not in self._allowed:
            code = ToolCode.UNKNOWN_TOOL if spec is None else ToolCode.NOT_ALLOWED
            one.ends("refused", code.error())
            return spec, None
        try:
            args = spec.args.model_validate(one.call.args)
        except ValidationError as error:
            one.ends("refused", ToolCode.BAD_ARGUMENT.error(_places(spec, error)))
            return spec, None
        one.args = args.model_dump_json()
        try:
            _check_stream(reader, args)
        except ConfigError as error:
            one.ends("refused", ToolCode.UNKNOWN_SYMBOL.error(f"{capital(str(error))}."))
            return spec, None
        return spec, args

    def _count(self, call: ToolCall, now: float) -> ToolCode | None:
        """Count a call, refused or not, and return which limit it is beyond; None within all."""
        limits = self._limits
        places = (
            (ToolCode.TURN_LIMIT, limits.turn, ("turn", call.agent, call.turn)),
            (ToolCode.AGENT_LIMIT, limits.agent, ("agent", call.agent)),
            (ToolCode.RUN_LIMIT, limits.run, ("run",)),
        )
        with self._lock:
            beyond = []
            for code, most, place in places:
                self._counts[place] += 1
                if most is not None and self._counts[place] > most:
                    beyond.append(code)
            while self._newest and self._newest[0] <= now - MINUTE_S:
                self._newest.popleft()
            if limits.minute is not None:
                if len(self._newest) >= limits.minute:
                    beyond.append(ToolCode.MINUTE_LIMIT)
                else:
                    self._newest.append(now)
        return next(iter(beyond), None)

    def _again(self, one: Invocation) -> ToolCode | None:
        """Return LOOP_LIMIT for a call that its agent made too often, and for all after that."""
        call, most = one.call, self._limits.same
        place = ("same", call.agent, call.tool, one.args)
        with self._lock:
            self._counts[place] += 1
            if most is not None and self._counts[place] >= most:
                self._loops.add(call.agent)
            return ToolCode.LOOP_LIMIT if call.agent in self._loops else None

    def _run(self, spec: ToolSpec, reader: DeskReader, args: ToolArgs) -> ToolResult:
        try:
            given = spec.work(reader, args)
            if isinstance(given, ToolError):
                return ToolResult(ok=False, error=given)
            result = ToolResult(ok=True, facts=tuple(given))
            to_json(result.model_dump())  # a number that is not finite is no fact
        except ConfigError as error:
            return ToolResult(ok=False, error=ToolCode.NOT_FOUND.error(f"{capital(str(error))}."))
        except StoreUnavailable:
            return ToolResult(ok=False, error=ToolCode.UNREADABLE.error())
        except Exception as error:  # noqa: BLE001 - a tool's fault is an answer, too
            # what it says may hold a stranger's text
            log.warning("the tool %s failed: %s", spec.name, type(error).__name__)
            return ToolResult(ok=False, error=ToolCode.FAILED.error())
        finally:
            self._slots.release()
        return result

    def _end(self, reader: DeskReader, one: Invocation) -> ToolResult:
        """Wait for a call's result within its time, and put it on record."""
        result = one.result
        if result is None:
            work, left = one.work, max(0.0, one.until - self._clock())
            if work is not None and wait([work], left).done:
                result = work.result()
                one.status = "ok" if result.ok else "error"
            else:
                one.ends("timeout", ToolCode.TIMEOUT.error())
                result = one.result or ToolResult(ok=False)
        if one.status == "ok":
            self._cache[one.key] = result
        return self._on_record(reader, one, result)

    def _on_record(self, reader: DeskReader, one: Invocation, result: ToolResult) -> ToolResult:
        """Append the row of a call; without one its result is NO_AUDIT."""
        row = {
            "run": self.run,
            "agent": one.call.agent,
            "turn": one.call.turn,
            "tool": one.call.tool[:LONGEST_ARGS],
            "args": one.args,
            "args_hash": hash_of(one.args),
            "status": one.status,
            "code": result.error.code if result.error else "",
            "elapsed_ms": round((self._clock() - one.began) * 1000, 3),
            "result_hash": hash_of(result.model_dump_json()),
            "facts": to_json([fact.model_dump() for fact in result.facts]),
            "as_of": iso(reader.as_of),
        }
        try:
            audit_table.append_tool_call(self._audit, row)
        except StoreUnavailable:
            return ToolResult(ok=False, error=ToolCode.NO_AUDIT.error())
        return result


def hash_of(text: str) -> str:
    """Return the name of a text: the first half of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def text_for_model(result: ToolResult, most: int = MODEL_BYTES) -> str:
    """Return a result as JSON of at most so many bytes; `left_out` counts the facts left out."""
    facts = [fact.model_dump(exclude={"name"}) for fact in result.facts]
    for shown in range(len(facts), -1, -1):
        document: dict[str, Any] = {"ok": result.ok, "facts": facts[:shown]}
        if result.error:
            document["error"] = result.error.model_dump()
        if shown < len(facts):
            document["left_out"] = len(facts) - shown
        text = to_json(document)
        if len(text.encode()) <= most:
            return text
    return to_json({"ok": False, "facts": [], "left_out": len(facts)})


def _check_stream(reader: DeskReader, args: ToolArgs) -> None:
    """Raise ConfigError for a symbol or a timeframe that the desk has not."""
    symbol, timeframe = getattr(args, "symbol", None), getattr(args, "timeframe", None)
    if symbol is not None:
        item = reader.instance(symbol)
        if timeframe is not None and timeframe not in item.timeframes:
            raise ConfigError(f"timeframes of {item.id}: {', '.join(item.timeframes)}")


def _bars_hash(reader: DeskReader, args: ToolArgs) -> str:
    """Return a hash of the newest bars that a tool can read by its arguments."""
    symbol = getattr(args, "symbol", None)
    items = reader.instances if symbol is None else (reader.instance(symbol),)
    rows = [
        bar_table.newest_bars(reader.database, item.id, name, as_of=reader.as_of, limit=1)
        for item in items
        for name in item.timeframes
    ]
    return hash_of(to_json(rows))


def _places(spec: ToolSpec, error: ValidationError) -> str:
    """Name the arguments that are wrong; a key that the tool does not know is not repeated."""
    names = {str(one["loc"][0]) if one["loc"] else "" for one in error.errors(include_input=False)}
    known = sorted(name for name in names if name in spec.args.model_fields)
    return f"Look at {', '.join(known) or 'the names of the arguments'}."
