"""Agents in shadow are asked and recorded; the tick decides as with nobody asked, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import VECTORS
from tests.worlds import desks
from tests.worlds.busy_desk import VOICES, Nobody, books, go_on, records, run
from torra.desk.schedule import Desk
from torra.replay.rerun.journal_replay import replay
from torra.tick.marks import SHADOW

DECIDED = (
    "l1", "composite", "consensus", "verdict", "l1_composite", "l1_consensus", "l1_verdict", "low",
    "high", "low_consensus", "high_consensus", "composites", "ungated", "action", "reason",
    "denied", "signals", "gate", "memory", "features", "before", "desk",
)  # fmt: skip
"""Of a record, what a tick saw and decided."""


@pytest.fixture(scope="module")
def steps(scaled: Callable[..., int]) -> int:
    return scaled(400, least=20)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, steps: int) -> Iterator[Desk]:
    desk = run(tmp_path_factory.mktemp("alone"), Nobody(), "full", steps)
    with closing(desk.database):
        yield desk


@pytest.mark.journey
@pytest.mark.parametrize("voice", VOICES)
def test_a_desk_in_shadow_decides_as_one_with_nobody_asked(
    voice: str, tmp_path: Path, alone: Desk, steps: int
) -> None:
    shadow = run(tmp_path, VOICES[voice](), "shadow", steps)
    ours, theirs = records(shadow), records(alone)
    assert len(ours) == len(theirs) == steps + steps // 4
    for one, other in zip(ours, theirs, strict=True):
        assert {name: one[name] for name in DECIDED} == {name: other[name] for name in DECIDED}
        for vector in VECTORS:
            score = one["scores"][vector]["score"]
            assert score.hex() == other["scores"][vector]["score"].hex() == one["l1"][vector].hex()
    assert books(shadow) == books(alone)
    signals = books(shadow)["signals"]
    assert {row["state"] for row in signals} >= {"CLOSED"}, "there must be trades to tell apart"
    check_recorded(ours)


def check_recorded(found: list[dict[str, Any]]) -> None:
    """What the agents said is there: it moved something, cost what it cost and is flagged."""
    assert all(SHADOW in record["deliberation"]["flags"] for record in found)
    assert all(record["deliberation"]["reports"] for record in found)
    assert all(record["deliberation"]["calls"] for record in found)
    assert any(abs(value) > 0.01 for record in found for value in record["adjustments"].values())
    for record in found:
        moved = {v: record["l1"][v] + record["adjustments"][v] for v in VECTORS}
        assert record["agents"] == pytest.approx({v: max(-1, min(1, s)) for v, s in moved.items()})


def test_the_same_voice_counts_where_it_is_let(tmp_path: Path, alone: Desk) -> None:
    """Else the comparison above would compare nothing."""
    full = run(tmp_path, VOICES["wild"](), "full", 8)
    ours, theirs = records(full), records(alone)[: len(records(full))]
    assert [r["consensus"] for r in ours] != [r["consensus"] for r in theirs]
    assert not any(SHADOW in r["deliberation"]["flags"] for r in ours)


@pytest.mark.journey
def test_earned_influence_counts_once_promoted_and_a_replay_knows_when(tmp_path: Path) -> None:
    standing = {"promoted": False}
    desk = run(tmp_path, VOICES["rules"](), "earned", 4, promoted=lambda: standing["promoted"])
    before = records(desk)
    assert all(record["consensus"] == record["l1_consensus"] for record in before)
    standing["promoted"] = True
    go_on(desk, 4)
    after = records(desk)[len(before) :]
    assert all(record["consensus"] != record["l1_consensus"] for record in after)
    flags = [SHADOW in record["deliberation"]["flags"] for record in (*before, *after)]
    assert flags == [True] * len(before) + [False] * len(after)
    with closing(desks.open_database(tmp_path / "again")) as into:
        again = list(replay(desk.database, into, desks.BTC.id))
    assert {told.state for told in again} == {"same"}, again
