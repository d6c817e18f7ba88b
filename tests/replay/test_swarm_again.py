"""A swarm's ticks run again to the bit: regime, board, judge, vetoes; what was altered is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import EXPERTS
from agents.contracts import REGIMES, WINNERS, Completion, ModelUnavailable, Request
from instance_database import Database
from tests.doubles import scripted
from tests.replay.test_firm_again import (
    Divided,
    alter_reply,
    debates,
    immediately,
    why,
)
from tests.worlds import journals
from tests.worlds.journals import again, change
from torra.store import replay_queries

SWARM: Final = {"mode": "swarm", "judge_hold": "veto"}
COUNTS: Final = {**SWARM, "influence": "full"}
PARTS: Final = (
    {"thresholds": {"buy": 0.05, "sell": 0.05}, "agents": {**COUNTS, "judge_hold": "size"}},
    {"execution": "approve", "agents": {**COUNTS, "gate_call": "openings"}},
    {"agents": SWARM},
    {"agents": {**COUNTS, "trust": "flat", "standing": "on"}},
)
"""A swarm that trades, that asks a person, that has yet to earn its influence, and all alike."""


class Swarming(Divided):
    """Divided, but with a reader and a judge that have moods of their own."""

    def submit(self, request: Request) -> Future[Completion]:
        kind, chance = request.role.kind, self.chance(request)
        if kind not in ("reader", "judge"):
            return super().submit(request)
        if (mood := chance.random()) < 0.1:
            return immediately(ModelUnavailable("timeout") if mood < 0.05 else journals.said("}{"))
        reply = reading(request, chance) if kind == "reader" else decision(request, chance)
        return immediately(journals.said(reply))


def reading(request: Request, chance: Any) -> dict[str, Any]:
    return scripted.regime(
        request, regime=chance.choice(REGIMES), budget_pct=chance.choice([100, 60, 20]),
        first=chance.choice(["none", *EXPERTS]),
    )  # fmt: skip


def decision(request: Request, chance: Any) -> dict[str, Any]:
    return scripted.decision(
        request, side=chance.choice([*WINNERS]), win_share=chance.choice([0.2, 0.4, 0.6]),
        close=chance.random() < 0.2, confidence=chance.choice(["high", "medium", "low"]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, scaled: Callable[..., int]) -> Path:
    """The file of a swarm that lived through much."""
    folder = tmp_path_factory.mktemp("swarm")
    journals.live(folder, scaled(500, 60), Swarming(), parts=PARTS).close()
    return folder / "torra.db"


def swarms(source: Database) -> dict[str, dict[str, Any]]:
    """Return what each tick's swarm came to, where it counted."""
    found = debates(source).items()
    return {k: said for k, said in found if said.get("swarm") and "shadow" not in said["flags"]}


def one_with(source: Database, role: str, **told: Callable[[Any], bool]) -> str:
    """Return the last tick on which an agent said such a thing."""
    for key, said in reversed(swarms(source).items()):
        for one in said["reports"]:
            if one["agent_id"] == role and all(fits(one.get(n)) for n, fits in told.items()):
                return key
    raise AssertionError(f"no {role} said so")


def alter_debate(source: Database, key: str, place: str, value: object) -> None:
    sql = (
        "UPDATE sentiment SET agent_deliberation = json_set(agent_deliberation, ?, json(?)) "
        "WHERE id = (SELECT sentiment_id FROM chains WHERE torra_key = ?)"
    )
    change(source, sql, place, json.dumps(value), key)


# --- the same again -------------------------------------------------------------------------------


def test_the_source_is_a_swarm_that_lived_through_much(source: Database) -> None:
    """Without this the replay below would prove little."""
    told = [said["swarm"] for said in swarms(source).values()]
    assert any(one["regime"]["disputed"] for one in told)
    assert {one["regime"]["first"] for one in told} > {""}
    assert any(one["board"]["conflicts"] for one in told)
    assert {one["judgement"]["vetoes"] for one in told if one["judgement"]} == {"", "BUY", "SELL"}
    assert any(not one["trust"] for one in told) and any(one["trust"] for one in told)
    assert any(one["budget"] < 1.0 for one in told)
    said = debates(source)
    flags = {flag.partition(":")[0] for one in said.values() for flag in one["flags"]}
    assert flags >= {"shadow", "regime_disputed"}
    assert any(one["ruling"].get("veto_sides") for one in said.values())
    assert any("JUDGE_HOLD" in one["ruling"]["reasons"] for one in said.values())
    reasons = {replay_queries.journal_row(source, key)[0]["reason"] for key in said}
    assert reasons >= {"GATE_VETO", "VERDICT"}


@pytest.mark.journey
def test_every_tick_of_a_swarm_runs_again_to_the_same_record(
    source: Database, tmp_path: Path, scaled: Callable[..., int]
) -> None:
    found = again(source, tmp_path).values()
    assert len(found) >= scaled(500, 60)
    assert [(one.key, dict(one.differences)) for one in found if one.state != "same"] == []
    assert not any(one.misses for one in found)


# --- what was altered -----------------------------------------------------------------------------


@pytest.mark.journey
def test_an_altered_reading_or_decision_is_named(source: Database, tmp_path: Path) -> None:
    said = {
        "regime": ("regime_reader", {"regime": lambda one: one != "quiet"}, "quiet"),
        "budget_pct": ("regime_reader", {"budget": lambda one: one and one > 0.3}, 10),
        "first": ("regime_reader", {"first": lambda one: one != "geometry"}, "geometry"),
        "win_share": ("judge", {"winner": lambda one: one in ("LONG", "SHORT")}, 0.91),
        "counter": ("judge", {"winner": lambda one: one in ("LONG", "SHORT")}, "Another counter."),
        "anomaly": ("geometry", {"abstained": lambda one: not one}, "geometric_trap"),
    }
    for name, (role, fits, value) in said.items():
        key = one_with(source, role, **fits)
        with journals.copied(Path(source.path), tmp_path / f"of_{name}") as altered:
            alter_reply(altered, key, role, **{name: value})
            found = again(altered, tmp_path / name, key)[key]
            assert why(altered, found)[0] == "unknown", name
        assert "debate.reports" in found.differences, name


@pytest.mark.journey
def test_an_altered_part_of_what_a_swarm_came_to_is_named(source: Database, tmp_path: Path) -> None:
    key = one_with(source, "judge", winner=lambda one: one in ("LONG", "SHORT"))
    places = {
        "swarm.regime.reader": "quieter",
        "swarm.regime.first": "nobody",
        "swarm.budget": 0.123,
        "swarm.storm": 0.123,
        "swarm.board.lean": 0.123,
        "swarm.judgement.used": 0.123,
        "swarm.trust": {"macro": 0.123},
        "ruling.veto_sides": ["X"],
    }
    for number, (place, value) in enumerate(places.items()):
        with journals.copied(Path(source.path), tmp_path / f"of_{number}") as altered:
            alter_debate(altered, key, f"$.{place}", value)
            kind, what = why(altered, again(altered, tmp_path / str(number), key)[key])
        assert kind == "unknown" and what.startswith(f"debate.{place}"), (place, what)
