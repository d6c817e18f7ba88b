"""A swarm that has not earned its influence: its officer counts from the first tick, no word does.

An opening has the size of the bars alone under the same rows and the same budget, and never more
than that of the bars alone without them (W2).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents import risk_officer
from tests.worlds import desks
from torra.config import Profile, validate

EARNED = {"mode": "swarm", "influence": "earned"}
PLAIN = {"mode": "budget", "influence": "shadow"}


def profile(agents: dict[str, Any], **more: Any) -> Profile:
    values = {
        "execution": "approve",
        "thresholds": {"buy": 0.02, "sell": 0.02},
        "agents": {"call_policy": "always", **agents},
        **more,
    }
    return validate(Profile, values, "a test")


def shares(folder: Path, given: Profile, ticks: int, *, alone: bool = False) -> dict[Any, float]:
    """Return the share of a full size of every opening that is proposed, by its place and side.

    `alone`: nobody is asked.
    """
    folder.mkdir(parents=True)
    nobody = SimpleNamespace(name="rules", submit=None) if alone else None
    desk = desks.working_desk(folder, (desks.BTC,), profile=given, provider=nobody)
    desks.step(desk, ticks)
    found = {
        (row.timeframe, row.bar_time, row.verdict): row.multiplier
        for row in desk.database.proposals(None, limit=10**6)
    }
    desk.database.close()
    return found


@pytest.mark.timeout(1800)
def test_a_swarm_to_be_earned_has_the_size_of_the_bars_under_the_same_rows(
    tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    ticks = scaled(1_600, 24)
    earned = shares(tmp_path / "earned", profile(EARNED), ticks)
    rows = shares(tmp_path / "rows", profile(EARNED), ticks, alone=True)
    plain = shares(tmp_path / "plain", profile(PLAIN), ticks)
    assert earned == rows != {}
    assert earned.keys() == plain.keys()
    assert all(share <= plain[place] for place, share in earned.items())
    less = sum(share < plain[place] for place, share in earned.items())
    assert less >= scaled(50, 1)
    record_property("seen", f"{len(earned):,} openings in {ticks:,} closes, {less:,} smaller")


@pytest.mark.parametrize("influence", ["earned", "shadow"])
def test_in_shadow_a_swarm_opens_nothing_on_a_crowded_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, influence: str
) -> None:
    """Here longs are crowded at every rank but 0."""
    monkeypatch.setattr(risk_officer, "FUNDING", ("technical.volatility_percentile",))
    monkeypatch.setattr(risk_officer, "_crowded", lambda rank, _: ("BUY",) if rank else ())
    agents = {**EARNED, "influence": influence}
    crowded = shares(tmp_path / "crowded", profile(agents), 12)
    monkeypatch.undo()
    calm = shares(tmp_path / "calm", profile(agents), 12)
    assert {side for _, _, side in calm} == {"BUY", "SELL"}
    assert crowded == {place: share for place, share in calm.items() if place[2] == "SELL"}
