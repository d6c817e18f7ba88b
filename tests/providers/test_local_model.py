"""Ticks of the budget desk with a real, small language model: slow, and only with --local-llm.

The model is too small to be of use. What is shown is that the way there and back stands what such
a model says: it breaks bounds under a grammar, runs on until it is cut off, names other symbols.
How much of it was usable is printed as it comes, not asserted; docs/models.md has the figures.
"""

from __future__ import annotations

import importlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

import torra_trader
from agent_config import MAX_REQUESTS, MODES, AgentSettings
from agents.contracts import ADJUSTMENT_BOUND as BOUND
from agents.contracts import BLEND_WEIGHT, VECTORS
from agents.debate.asking import REASONS
from tests.doubles import local_model
from tests.doubles.local_model import LocalModel
from tests.worlds import desks
from torra.clock import duration, iso
from torra.config import Profile, validate
from torra.providers.prices import PriceList
from torra.providers.registry import open_provider
from torra.providers.vendors.clients import VendorClients
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
    model: LocalModel,
    tmp_path: Path,
    scaled: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    least: int,
) -> None:
    print(f"\n{form}, {model.threads} threads, load {os.getloadavg()[0]:.1f}", flush=True)
    clients = VendorClients({"TORRA_OPENAI_BASE_URL": model.base_url}, prices=PriceList())
    calls: list[dict[str, Any]] = []
    module = importlib.import_module("torra.providers.vendors.openai_compatible")
    monkeypatch.setattr(module, "FORMS", (form,))
    try:
        provider = open_provider(SETTINGS, clients)
        for ticked in ticks(tmp_path, provider, scaled(20, least)):
            check(ticked)
            calls += ticked.calls
            print(ticked.record["source_type"], f"{ticked.seconds:.1f} s", flush=True)
        provider.close()
    finally:
        clients.close()
    outcomes = Counter(f"{call['status']} {call['stop_reason']} {call['detail']}" for call in calls)
    seconds = [call["elapsed_ms"] / 1000 for call in calls]
    read, written = (
        sum(call[name] for call in calls) for name in ("input_tokens", "output_tokens")
    )
    print(*outcomes.most_common(), sep="\n")
    print(f"{read} tokens read, {written} written; median of a call {median(seconds):.1f} s")


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
        assert call["status"] in REASONS | {"ok", "late"}, call
        assert (call["model"], call["cost_usd"]) == (local_model.NAME, 0)
        if call["status"] in {"ok", "garbage", "wrong_symbol"}:
            assert call["stop_reason"] in {"end", "length"}, call
            assert call["input_tokens"] > 0
        if call["status"] in {"ok", "wrong_symbol"}:
            assert call["output_tokens"] > 0 and call["reply"]
