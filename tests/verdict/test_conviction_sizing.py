"""What the desk's conviction does to an order: it shrinks openings, and nothing else."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import VECTORS, Completion, Request
from tests.worlds import desks
from torra.config import Profile, validate
from torra.providers.rules.provider import RulesProvider
from torra.verdict.risk_engine import Levels, size

EAGER = {
    "thresholds": {"buy": 0.0001, "sell": 0.0001},
    "risk": {
        "capital": 10_000_000.0,
        "max_notional_pct": 1e6,
        "exposure_cap_pct": 1e6,
        "account_leverage_cap": 1e6,
    },
    "symbols": {"BTCUSD": {"lot_max": 1e6}},
    "gate": {"disagreement_scale": 1e9, "volatility_percentile": 100.0},
}
"""Every tick has a verdict, and nothing but the risk and the desk's conviction bounds its size."""


class Tempered:
    """The rules with another confidence, no adjustment, and a gate that adds nothing."""

    name = "tempered"

    def __init__(self, confidence: str) -> None:
        self.confidence = confidence
        self.rules = RulesProvider()

    def submit(self, request: Request) -> Future[Completion]:
        reply = json.loads(self.rules.submit(request).result().text)
        if request.role.kind == "gate":
            reply |= {"multiplier": 1.0, "veto": False, "reason_code": "NONE"}
        else:
            reply |= {
                "confidence": self.confidence,
                "adjustments": dict.fromkeys(VECTORS, 0.0),
            }
        future: Future[Completion] = Future()
        future.set_result(Completion(json.dumps(reply), "m", self.name))
        return future

    def close(self) -> None: ...


def first(folder: Path, provider: Any, action: str, **sections: Any) -> dict[str, Any]:
    """Return the record of the first tick with such an action, with every signal's lots by sid."""
    profile = validate(Profile, {**EAGER, **sections}, "a test")
    desk = desks.open_desk(folder, profile=profile, provider=provider)
    desks.open_for_work(desk)
    try:
        for _ in range(60):
            desks.step(desk)
            for timeframe in ("H1", "M15"):
                found = desk.database.latest_tick("BTCUSD", timeframe)
                if found is not None and found["action"].startswith(action):
                    sent = {row["sid"]: row["lots"] for row in desk.database.signals()}
                    return {**found, "sent": sent}
    finally:
        desk.database.close()
    pytest.fail(f"no tick said {action}")


def full_size(record: dict[str, Any]) -> float:
    """The size that the levels alone allow."""
    signal = next(signal for signal in record["signals"] if signal["kind"] == "open")
    profile = validate(Profile, EAGER, "a test")
    levels = Levels(signal["entry"], signal["stop"], signal["target"], record["atr"])
    return size(levels, profile.symbol("BTCUSD"), profile.risk)


def lots(record: dict[str, Any], kind: str = "open") -> float:
    (found,) = [signal["lots"] for signal in record["signals"] if signal["kind"] == kind]
    return found


@pytest.mark.parametrize(("confidence", "share"), [("high", 1.0), ("medium", 0.75), ("low", 0.5)])
def test_an_opening_is_as_large_as_the_desk_is_sure(
    confidence: str, share: float, tmp_path: Path
) -> None:
    record = first(tmp_path, Tempered(confidence), "OPEN")
    assert record["gate"]["multiplier"] == 1.0
    assert lots(record) == pytest.approx(full_size(record) * share, abs=0.011)


def test_a_close_is_of_the_whole_position_whatever_the_desk_thinks(tmp_path: Path) -> None:
    """A reversal closes all that is held, and opens as much as the desk is sure of."""
    record = first(tmp_path, Tempered("low"), "REVERSE", on_opposite="reverse")
    (close,) = [signal for signal in record["signals"] if signal["kind"] == "close"]
    assert lots(record, "close") == record["sent"][close["closes"]]
    assert lots(record) == pytest.approx(full_size(record) * 0.5, abs=0.011)
