"""Ticks of the budget desk with a real, small language model: slow, and only with --local-llm.

The model is too small to be of use. What is shown is that the way there and back stands what such
a model says: it breaks bounds under a grammar, runs on until it is cut off, names other symbols.
How much of it was usable is printed as it comes, not asserted; docs/models.md has the figures.
"""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

from agent_config import MAX_REQUESTS, MODES, AgentSettings
from agents.debate.debate import REASONS
from tests.doubles import local_model
from tests.doubles.local_model import LocalModel
from tests.worlds import vendor_desk
from torra.providers.prices import PriceList
from torra.providers.registry import open_provider
from torra.providers.vendors.clients import VendorClients

TIMEOUT_S: Final = 600.0
"""A tick's deadline: a busy machine writes five tokens a second."""
GRACE_S: Final = 0.5
SETTINGS: Final = AgentSettings(
    provider="openai_compatible",
    quick_think_model=local_model.NAME,
    deep_think_model=local_model.NAME,
    timeout_seconds=TIMEOUT_S,
)

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
    module = importlib.import_module("torra.providers.vendors.openai_compatible")
    monkeypatch.setattr(module, "FORMS", (form,))
    clients = VendorClients({"TORRA_OPENAI_BASE_URL": model.base_url}, prices=PriceList())
    calls: list[dict[str, Any]] = []
    try:
        provider = open_provider(SETTINGS, clients)
        how: dict[str, Any] = {"live": True, "bars": scaled(20, least)}
        for ticked in vendor_desk.ticks(tmp_path / form, provider, SETTINGS, **how):
            check(ticked)
            calls += ticked.calls
            print(ticked.record["source_type"], f"{ticked.elapsed:.1f} s", flush=True)
        provider.close()
    finally:
        clients.close()
    outcomes = Counter(f"{call['status']} {call['stop_reason']} {call['detail']}" for call in calls)
    seconds = median(call["elapsed_ms"] / 1000 for call in calls)
    read = sum(call["input_tokens"] for call in calls)
    written = sum(call["output_tokens"] for call in calls)
    print(*outcomes.most_common(), sep="\n")
    print(f"{read} tokens read, {written} written; median of a call {seconds:.1f} s")


def check(ticked: vendor_desk.Ticked) -> None:
    """What holds whatever the model says."""
    vendor_desk.check_stored(ticked)
    assert ticked.elapsed <= TIMEOUT_S + GRACE_S
    assert len(MODES["budget"].seats) <= len(ticked.calls) <= MAX_REQUESTS
    assert ticked.record["cost_usd"] == 0
    for call in ticked.calls:
        assert call["status"] in REASONS | {"ok", "late"}, call
        assert (call["model"], call["cost_usd"]) == (local_model.NAME, 0)
        if call["status"] in {"ok", "garbage", "wrong_symbol"}:
            assert call["stop_reason"] in {"end", "length"}, call
            assert call["input_tokens"] > 0
        if call["status"] in {"ok", "wrong_symbol"}:
            assert call["output_tokens"] > 0 and call["reply"]
