"""A thousand ticks in a row on which nobody gives an answer: each has its row, each call its own.

Every seat that has evidence here (all but the news agent) is asked, and each call fails in a way of
its own: by exception, time-out or a spoilt reply. Where the single model fails too the scores are
those of L1 to the bit; where it answers they are its own (L2). What each call was asked, what it
brought back, what it took and cost is on file, whatever became of it (L8).
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent_config import MODES
from agents.contracts import VECTORS, Completion, ModelUnavailable, Request
from tests.doubles.scripted import Raises, Scripted
from tests.faults import malformed
from tests.worlds import desks
from torra.config import Instance, Profile, validate

BTC = Instance(symbol="BTCUSD", timeframes=("M15",))
SCORER = "chart_scorer"
RAISED = {
    "exception": (RuntimeError("500"), "error"),
    "time_out": (TimeoutError(), "timeout"),
    "no_answer": (ModelUnavailable("blocked", "the key was refused"), "blocked"),
    "exit": (SystemExit(1), "error"),
}


class Asked(NamedTuple):
    """A request, in which way it failed, and what came back (None: nothing did)."""

    request: Request
    kind: str
    answer: Completion | None


class AllFail:
    """A provider that fails every call, in a way drawn anew each time, and remembers them.

    `spared` is asked as it should be: it answers.
    """

    name = "scripted"

    def __init__(self, seed: int) -> None:
        self.asked: list[Asked] = []
        self.spared: frozenset[str] = frozenset()
        self._chance = random.Random(seed)
        self._lock = threading.Lock()

    def submit(self, request: Request) -> Future[Completion]:
        with self._lock:
            kind, entry = self._fault(request)
            self.asked.append(Asked(request, kind, None))
            at = len(self.asked) - 1
        if isinstance(entry, Raises):
            raise entry.error
        future = Scripted({} if entry is None else {request.role.id: entry}).submit(request)
        if future.exception() is None:
            self.asked[at] = Asked(request, kind, future.result())
        return future

    def _fault(self, request: Request) -> tuple[str, Any]:
        if request.role.id in self.spared:
            return "ok", None
        kind = self._chance.choice([*RAISED, *malformed.KINDS])
        if kind not in RAISED:
            return kind, malformed.spoilt(kind, request, self._chance)
        error = RAISED[kind][0]
        return kind, Raises(error) if self._chance.random() < 0.5 else error

    def close(self) -> None: ...


def reason(kind: str) -> str:
    """Return what must stand as the status of a call that failed in a way."""
    if kind in RAISED:
        return RAISED[kind][1]
    return "ok" if kind == "ok" else malformed.REASON.get(kind, "garbage")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Any]:
    agents = {"active_agents": [name for name in MODES["full"].seats if name != "news"]}
    profile = validate(Profile, {"agents": agents}, "a test")
    opened = desks.open_desk(tmp_path, (BTC,), profile=profile, provider=AllFail(20211110))
    desks.open_for_work(opened)
    yield opened
    opened.database.close()


def rows(desk: Any, statement: str, *values: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in desk.database.connection().query(statement, values)]


def check_row(desk: Any, record: dict[str, Any], *, answered: bool) -> str:
    key = f"BTCUSD|M15|{record['bar_time']}"
    (row,) = rows(desk, "SELECT * FROM sentiment WHERE torra_key = ?", key)
    assert row["source_type"] == record["source_type"] == ("LEGACY" if answered else "L1_ONLY")
    assert record["deliberation"]["reports"] == []
    for vector in VECTORS:
        assert row[vector] == record["scores"][vector]["score"]
        assert abs(row[vector] - record["l1"][vector]) <= 0.06 + 1e-9
        if not answered:
            assert row[vector].hex() == record["l1"][vector].hex()
    return key


def check_calls(desk: Any, key: str, asked: list[Asked]) -> None:
    """One row for each request, with all that was said."""
    stored = rows(
        desk,
        "SELECT c.*, i.text AS system FROM calls c JOIN instructions i ON i.hash = c.instructions "
        "WHERE c.torra_key = ?",
        key,
    )
    found = {(row["role"], row["round"], row["attempt"]): row for row in stored}
    assert len(found) == len(stored) == len(asked)
    for request, kind, answer in asked:
        row = found[request.role.id, request.round, request.attempt]
        assert row["status"] == reason(kind), (kind, row["status"])
        assert row["system"] == request.system.replace(request.nonce, "{NONCE}")
        assert row["user"] == request.user.replace(request.nonce, "{NONCE}")
        assert len(row["request_hash"]) >= 16 and row["at"] and row["elapsed_ms"] >= 0
        assert bool(row["detail"]) or kind in ("ok", "time_out")
        if answer is None:
            assert (row["reply"], row["input_tokens"], row["cost_usd"]) == ("", 0, 0)
            continue
        said = answer.text.encode("utf-8", "backslashreplace").decode()
        assert row["reply"] == said or (row["reply"] and len(said) > len(row["reply"]) > 60_000)
        counted = (row["input_tokens"], row["output_tokens"], row["cost_usd"])
        assert counted == (answer.input_tokens, answer.output_tokens, answer.cost_usd)
        assert (row["stop_reason"], row["provider"]) == (answer.stop_reason, "scripted")


def test_ticks_on_which_everybody_fails(desk: Any, scaled: Any, record_property: Any) -> None:
    provider = desk.setups["BTCUSD"].provider
    least, enough = scaled(1_000), scaled(10_000)
    ticks, calls, last = 0, 0, None
    while ticks < least or calls < enough:
        provider.spared = frozenset({SCORER} if ticks % 3 == 0 else ())
        provider.asked.clear()
        desks.step(desk)
        record = desk.database.latest_tick("BTCUSD", "M15")
        if record is None or record["bar_time"] == last:
            continue  # the sample has holes
        last = record["bar_time"]
        key = check_row(desk, record, answered=bool(provider.spared))
        check_calls(desk, key, provider.asked)
        assert {one.request.role.id for one in provider.asked} < {*MODES["full"].seats, SCORER}
        ticks += 1
        calls += len(provider.asked)
    told = rows(desk, "SELECT count(*) AS ticks FROM sentiment")[0]["ticks"]
    assert told == ticks
    record_property(
        "seen", f"{ticks:,} ticks, each with its row; {calls:,} calls, each with its own"
    )
