"""A swarm that looks on lessens no size: no row of its officer and no budget of a regime counts."""

from __future__ import annotations

from pathlib import Path

from tests.worlds import desks
from torra.config import Profile, validate


def proposed(folder: Path, mode: str, influence: str) -> list[float]:
    """Return the share of a full size that is proposed at the first close, by a desk of rules."""
    told = {
        "execution": "approve",
        "thresholds": {"buy": 0.05, "sell": 0.95},
        "agents": {"mode": mode, "influence": influence, "call_policy": "always"},
    }
    desk = desks.open_desk(folder, (desks.BTC,), profile=validate(Profile, told, "a test"))
    desks.take_lease(desk)
    desks.step(desk)
    found = [row["multiplier"] for row in desk.database.proposals()]
    desk.database.close()
    return found


def test_a_swarm_in_shadow_sizes_as_a_desk_without_one(tmp_path: Path) -> None:
    seen = {}
    for mode, influence in (("budget", "shadow"), ("swarm", "shadow"), ("swarm", "full")):
        folder = tmp_path / mode / influence
        folder.mkdir(parents=True)
        seen[mode, influence] = proposed(folder, mode, influence)
    assert seen["swarm", "shadow"] == seen["budget", "shadow"] != []
    assert seen["swarm", "full"] != seen["swarm", "shadow"], "where it counts it lessens the size"
