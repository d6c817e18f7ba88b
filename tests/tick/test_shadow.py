"""Agents in shadow are asked and recorded; the tick decides as with nobody asked, to the bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_config import EXPERTS, GATE_ID, JUDGE_ID
from agents.contracts import VECTORS, Request
from instance_database import TickKey
from tests.doubles import scripted
from tests.doubles.page_reader import Page, check_structure
from tests.doubles.visitors import open_app
from tests.worlds import desks, journals
from tests.worlds.demo_full_desk import FullDeskView
from tests.worlds.demo_view import bars
from tests.worlds.records import shown_tick, tick_record
from torra.clock import Simulated, duration
from torra.config import Profile
from torra.dashboard.record import agreement, arithmetic, reasoning
from torra.dashboard.trade import proposals
from torra.desk.schedule import Desk, running_order
from torra.providers.rules.provider import RulesProvider
from torra.replay.rerun.journal_replay import replay
from torra.store import replay_queries
from torra.tick.bar_window import HistoryWindow, LiveWindow
from torra.tick.debate import SHADOW

DECIDED = (
    "l1", "composite", "consensus", "verdict", "l1_composite", "l1_consensus", "l1_verdict", "low",
    "high", "low_consensus", "high_consensus", "composites", "ungated", "action", "reason",
    "denied", "signals", "gate", "memory", "features", "before", "desk",
)  # fmt: skip
"""Of a record, what a tick saw and decided."""


def vetoing(request: Request) -> dict[str, Any]:
    if request.role.kind == "gate":
        return scripted.ruling(request, multiplier=0.0, veto=True, reason_code="CONFLICT")
    return scripted.report(request, value=-0.3)


def wild(request: Request) -> dict[str, Any]:
    chance = random.Random(f"{request.role.id}{request.bar_time}{request.timeframe}")
    if request.role.kind == "gate":
        return scripted.ruling(request, multiplier=chance.random(), veto=chance.random() < 0.3)
    if request.role.kind == "judge":
        side = chance.choice(("LONG", "SHORT"))
        return scripted.decision(request, side=side, win_share=chance.random())
    told = scripted.report(request, confidence=chance.choice(("high", "low")))
    told["adjustments"] = {vector: chance.uniform(-9.0, 9.0) for vector in VECTORS}
    return told


ROLES = ("technical", "bull_researcher", "bear_researcher", "risk_gate")
VOICES: dict[str, Callable[[], Any]] = {
    "rules": RulesProvider,
    "vetoing": lambda: scripted.Scripted(dict.fromkeys(ROLES, vetoing)),
    "wild": lambda: scripted.Scripted(dict.fromkeys(ROLES, wild)),
}
SWARM = (*EXPERTS, JUDGE_ID, GATE_ID)


class Nobody:
    """A provider that nobody is."""

    name = "nobody"
    submit = None

    def close(self) -> None: ...


def trading(influence: str, mode: str = "budget") -> Profile:
    """A profile that trades often, so that vetoes, latches and sizes would be seen."""
    agents = {"influence": influence, "mode": mode}
    return journals.a_profile(agents=agents, risk={"max_signals_per_hour": 60})


def run(
    folder: Path, provider: Any, influence: str, steps: int, *, mode: str = "budget", **edges: Any
) -> Desk:
    profile = trading(influence, mode)
    desk = desks.open_desk(folder, (desks.BTC,), profile=profile, provider=provider)
    if edges:
        plain = desk._edges
        desk._edges = lambda *how: replace(plain(*how), **edges)  # type: ignore[method-assign]
    desks.open_for_work(desk)
    go_on(desk, steps)
    return desk


def go_on(desk: Desk, bars: int) -> None:
    """Live through so many bars more."""
    desks.clock_of(desk).set(desk.clock.now() + bars * desks.QUARTER)
    setup = desk.setups["BTCUSD"]
    history = {
        name: setup.feed.bars("BTCUSD", name, desk.clock.now(), None) for name in ("M15", "H1")
    }
    LiveWindow(setup.instance, setup.feed, desk.database).fill(desk.clock.now())
    window = HistoryWindow(history)
    after = desk.clock.now() - bars * desks.QUARTER
    keys = [
        TickKey("BTCUSD", name, bar_time)
        for name, bar_time in desks.closes_of(desks.BTC, after, desk.clock.now())
    ]
    edges = desk._edges(setup, window, clock := Simulated(after))
    for key in sorted(keys, key=running_order):
        clock.set(key.bar_time + duration(key.timeframe))
        (outcome,) = desk._run(setup, {key: clock.monotonic()}, edges)
        came = key.bar_time in history[key.timeframe].index
        assert outcome.state == ("done" if came else "skipped"), key


def records(desk: Desk) -> list[dict[str, Any]]:
    found = [
        desk.database.told_tick(key) for key in replay_queries.journalled(desk.database, "BTCUSD")
    ]
    return [record for record in found if record is not None]


def books(desk: Desk) -> dict[str, list[dict[str, Any]]]:
    """Return every row that a tick's decision leaves, but when and how fast it was written."""
    apart = {"at", "elapsed_ms", "sentiment_id", "id"}
    tables = ("chains", "signals", "signal_events", "latches", "paper_cursor", "proposals", "bars")
    rows = {name: list(desks.rows(desk, f"SELECT * FROM {name}")) for name in tables}
    return {
        name: [{k: v for k, v in row.items() if k not in apart} for row in found]
        for name, found in rows.items()
    }


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


@pytest.mark.journey
def test_a_swarm_in_shadow_decides_so_too(tmp_path: Path, alone: Desk, steps: int) -> None:
    """Its judge vetoes both ways and counts for nothing; the budget of the regime lowers a size."""
    shadow = run(
        tmp_path, scripted.Scripted(dict.fromkeys(SWARM, wild)), "shadow", steps, mode="swarm"
    )
    ours, theirs = records(shadow), records(alone)
    # A swarm's experts have evidence of their own, and its officer lessens sizes.
    apart = {"features", "gate", "signals", "before", "desk", "memory"}
    for one, other in zip(ours, theirs, strict=True):
        for name in {*DECIDED} - apart:
            assert one[name] == other[name], name
        assert {**one["gate"], "budget": 1.0} == {**other["gate"], "budget": 1.0}
    told, bare = books(shadow)["signals"], books(alone)["signals"]
    same = ("sid", "kind", "side", "state", "entry", "stop", "target")
    for one, other in zip(told, bare, strict=True):
        assert {name: one[name] for name in same} == {name: other[name] for name in same}
        assert one["lots"] <= other["lots"]
    assert {row["state"] for row in told} >= {"CLOSED"}
    check_recorded(ours)
    said = [record["deliberation"] for record in ours]
    assert {side for one in said for side in one["ruling"].get("veto_sides", ())} == {"BUY", "SELL"}
    assert any(one["swarm"]["budget"] < 1.0 for one in said)


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


# --- the pages ---


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    desk = run(tmp_path_factory.mktemp("told"), VOICES["wild"](), "shadow", 1)
    with closing(desk.database):
        yield records(desk)[-1]


def test_the_sums_come_out_and_say_what_is_not_counted(told: dict[str, Any]) -> None:
    assert arithmetic.failed_checks(tick_record(told)) == []
    rows = {row.name: row.note for row in arithmetic.steps(tick_record(told))}
    for name in ("Gate multiplier", "Adjustment", "Agent score"):
        assert "agents watch only: recorded, not counted" in rows[name]
    assert rows["Blended score"] == "the bars alone: the agents looked on"


def test_a_blend_that_is_not_l1_is_found_out(told: dict[str, Any]) -> None:
    moved = {**told["scores"], "momentum": {"score": told["l1"]["momentum"] + 0.01}}
    wrong = arithmetic.failed_checks(tick_record({**told, "scores": moved}))
    assert "blend of momentum" in wrong


def test_sizes_and_rulings_are_those_that_counted(told: dict[str, Any]) -> None:
    record = tick_record(told)
    assert {row.left for row in agreement.sizes(record)} == {record.gate.multiplier}
    story = reasoning.tick_sections(shown_tick(told))
    assert story["shadow"] and story["gate"][-1][0] == "In force: the rules alone, in shadow"
    rule = told["deliberation"]["rule_ruling"]
    assert told["gate"]["veto"] == told["gate"]["rule"]["veto"]
    assert told["gate"]["multiplier"] == told["gate"]["rule"]["multiplier"] >= rule["multiplier"]
    assert "not counted" in proposals.conviction(tick_record(told), "BUY").note


class InShadow(FullDeskView):
    """The full desk, its newest tick as a desk in shadow stores one."""

    def _record(self, instance: str, timeframe: str, place: int) -> dict[str, Any]:
        told = super()._record(instance, timeframe, place)
        said = told["deliberation"]
        flags = [*said["flags"], SHADOW]
        return {**told, "deliberation": {**said, "flags": flags}}


def test_a_page_says_so_wherever_an_adjustment_stands() -> None:
    close = bars("BTCUSD", "M15")[-1]["time"]
    page = Page(open_app(InShadow("demo")).test_client().get(f"/symbol/BTCUSD/M15/{close}").text)
    assert "◦ agents watch only: recorded, not counted" in page.text
    assert "Agents watch only: recorded, not counted. The last bar is the bars alone." in page.text
    assert "that of the rules alone (agents watch only: recorded, not counted)" in page.text
    rows = [row[0] for row in page.rows if row and "watch only: recorded" in row[0]]
    assert len(rows) == 3, "multiplier, adjustment and agent score"
    check_structure(page)
