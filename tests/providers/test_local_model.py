"""Ticks of the budget desk with a real, small language model: slow, and only with --local-llm.

The model is too small to be of use. What is shown is that the way there and back stands what such
a model says: it breaks bounds under a grammar, runs on until it is cut off, names other symbols.
How much of it was usable is printed as it comes, not asserted; docs/models.md has the figures.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

import torra_trader
from agent_config import MAX_REQUESTS, MODES, AgentSettings
from agents.contracts import ADJUSTMENT_BOUND as BOUND
from agents.contracts import BLEND_WEIGHT, VECTORS
from agents.debate.calls import REASONS
from tests.doubles import local_model
from tests.doubles.local_model import LocalModel
from tests.worlds import desks
from torra.clock import duration, iso
from torra.config import Profile, validate
from torra.providers.prices import PriceList
from torra.providers.registry import open_provider
from torra.providers.vendors.switchboard import VendorClients
from torra.tick.bar_window import LiveWindow
from torra.tick.edges import TickDeps

TIMEOUT_S: Final = 600.0
"""A tick's deadline: a busy machine writes five tokens a second."""
GRACE_S: Final = 0.5
SETTINGS: Final = AgentSettings(
    provider="openai_compatible",
    quick_think_model=local_model.NAME,
    deep_think_model=local_model.NAME,
    timeout_seconds=TIMEOUT_S,
)
STREAMS: Final = (("EURUSD", "H1"), ("BTCUSD", "M15"))
FORMS: Final = ("json_schema", "json_object", "prompt")
STATUSES: Final = REASONS | {"ok", "late"}
FLAGS: Final = ("clamped", "ungrounded", "out_of_focus")

pytestmark = [
    pytest.mark.local_llm,
    pytest.mark.timeout(0),  # every tick has a deadline of its own
    pytest.mark.skipif(bool(local_model.missing()), reason=local_model.missing()),
]


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    with LocalModel() as running:
        yield running


@pytest.mark.parametrize(("form", "least"), [("json_schema", 2), ("prompt", 1)])
def test_ticks_stand_what_a_real_small_model_says(
    model: LocalModel, tmp_path: Path, scaled: Callable[..., int], form: str, least: int
) -> None:
    tally = Tally()
    print(f"\n{form}, {model.threads} threads, load {os.getloadavg()[0]:.1f}", flush=True)
    switchboard = VendorClients({"TORRA_OPENAI_BASE_URL": model.base_url}, prices=PriceList())
    try:
        provider = open_provider(SETTINGS, switchboard)
        adapter: Any = switchboard._adapters["openai_compatible"].result(timeout=60)
        adapter._worked[local_model.NAME] = FORMS.index(form)
        for ticked in ticks(tmp_path, provider, scaled(20, least)):
            check(ticked)
            tally.add(ticked)
            print(tally.last, flush=True)
        assert adapter._worked[local_model.NAME] == FORMS.index(form)
        provider.close()
    finally:
        switchboard.close()
    print(tally, f"load {os.getloadavg()[0]:.1f}", sep="\n", flush=True)


@dataclass(frozen=True)
class Ticked:
    """What a tick left behind; `calls` are rows of the table."""

    record: Mapping[str, Any]
    row: Mapping[str, Any]
    calls: list[dict[str, Any]]
    seconds: float


def ticks(folder: Path, provider: Any, count: int) -> Iterator[Ticked]:
    """Run ticks on the sample's bars as a desk does, the streams in turn."""
    profile = validate(Profile, {"agents": SETTINGS.model_dump()}, "a test")
    desk = desks.open_desk(folder, (desks.EUR, desks.BTC), profile=profile, provider=provider)
    try:
        desks.take_lease(desk, 1e6)
        for number in range(count):
            name, timeframe = STREAMS[number % len(STREAMS)]
            if number and name == STREAMS[0][0]:
                desks.clock_of(desk).set(desk.clock.now() + duration("H1"))
            yield _tick(desk, name, timeframe, profile)
    finally:
        desk.database.close()


def _tick(desk: Any, name: str, timeframe: str, profile: Profile) -> Ticked:
    setup = desk.setups[name]
    edges = TickDeps(
        desk.database,
        LiveWindow(setup.instance, setup.feed, desk.database),
        setup.provider.submit,
        setup.provider.name,
        desk.clock,
        desk.epoch,
    )
    bar_time = desk.clock.now() - duration(timeframe)
    began = time.monotonic()
    outcome = torra_trader.run_tick(
        setup.instance, timeframe, bar_time, began, profile=profile, edges=edges
    )
    seconds = time.monotonic() - began
    assert outcome.state == "done", outcome
    key = f"{name}|{timeframe}|{iso(bar_time)}"
    query = desk.database.connection().query
    (row,) = query("select * from sentiment where torra_key = ?", [key])
    calls = list(query("select * from calls where torra_key = ? order by rowid", [key]))
    return Ticked(desk.database.latest_tick(name, timeframe), row, calls, seconds)


def check(ticked: Ticked) -> None:
    """What holds whatever the model says."""
    record, calls = ticked.record, ticked.calls
    assert ticked.seconds <= TIMEOUT_S + GRACE_S
    assert ticked.row["source_type"] == record["source_type"]
    for vector in VECTORS:
        assert ticked.row[vector] == record["scores"][vector]["score"]
        assert abs(ticked.row[vector] - record["l1"][vector]) <= BLEND_WEIGHT * BOUND + 1e-9
    assert len(MODES["budget"].seats) <= len(calls) <= MAX_REQUESTS
    assert record["cost_usd"] == 0
    for call in calls:
        assert call["status"] in STATUSES, call
        assert (call["model"], call["cost_usd"]) == (local_model.NAME, 0)
        if call["status"] in {"ok", "garbage", "wrong_symbol"}:
            assert call["stop_reason"] in {"end", "length"}, call
            assert call["input_tokens"] > 0
        if call["status"] in {"ok", "wrong_symbol"}:
            assert call["output_tokens"] > 0 and call["reply"]


@dataclass
class Tally:
    """What came of the calls: every call once, by its outcome."""

    outcomes: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    seats: Counter[str] = field(default_factory=Counter)
    tokens: list[tuple[int, int, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    moved: float = 0.0
    last: str = ""

    def add(self, ticked: Ticked) -> None:
        told = [outcome(call, ticked.record) for call in ticked.calls]
        self.outcomes.update(told)
        self.calls.update(call["role"] for call in ticked.calls)
        self.seats.update(report["agent_id"] for report in reports(ticked.record))
        for call in ticked.calls:
            self.tokens.append((call["input_tokens"], call["cached_tokens"], call["output_tokens"]))
            self.seconds.append(call["elapsed_ms"] / 1000)
        record = ticked.record
        moves = [abs(ticked.row[vector] - record["l1"][vector]) for vector in VECTORS]
        self.moved = max(self.moved, *moves)
        head = f"{record['symbol']} {record['timeframe']} {record['bar_time']}"
        lines = [
            f"{head}: {record['source_type']}, {ticked.seconds:.1f} s, moved by {max(moves):.4f}"
        ]
        for call, word in zip(ticked.calls, told, strict=True):
            lines.append(
                f"  {call['role']:<16} {call['attempt']}  {call['elapsed_ms'] / 1000:6.1f} s  "
                f"{call['input_tokens']:>5} read ({call['cached_tokens']} cached), "
                f"{call['output_tokens']:>5} written  {word}"
            )
        self.last = "\n".join(lines)

    def __str__(self) -> str:
        number = sum(self.outcomes.values())
        read, cached, written = (sum(column) for column in zip(*self.tokens, strict=True))
        rows = [f"{count:>4} {word}" for word, count in self.outcomes.most_common()]
        return "\n".join(
            (
                f"{number} calls, {sum(self.seats.values())} reports used: {dict(self.seats)}",
                *rows,
                f"tokens: {read} read ({cached} of them cached), {written} written",
                f"seconds per call: median {median(self.seconds):.1f}, "
                f"longest {max(self.seconds):.1f}",
                f"no blended score was moved by more than {self.moved:.4f}",
            )
        )


def reports(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(record["deliberation"]["reports"])


def outcome(call: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Say in a few words what came of a call."""
    if call["status"] == "ok":
        found = [item for item in reports(record) if item["agent_id"] == call["role"]]
        if not found:
            return f"usable: a single model's scores{_beyond(call['reply'])}"
        if found[0]["abstained"]:
            return "usable: abstained"
        flags = [flag for flag in FLAGS if flag in found[0]["flags"]]
        return f"usable: {', '.join(flags) or 'within bounds, grounded'}"
    if call["stop_reason"] == "length":
        return "cut off"
    if call["status"] == "wrong_symbol":
        return "wrong symbol"
    return f"{call['status']}: {call['detail']}" if call["detail"] else call["status"]


def _beyond(reply: str) -> str:
    told = json.loads(reply)
    return ", clamped" if any(abs(told[vector]["score"]) > 1 for vector in VECTORS) else ""
