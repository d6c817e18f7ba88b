"""The bars alone run under the arm's own officer, budget and caps: agents get no credit for rows.

All seats of a swarm abstain here, so whatever is smaller than the full order is arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_config import EXPERTS, GATE_ID, JUDGE_ID, READER_ID
from agents import risk_officer
from agents.contracts import Completion, OfficerReason, Request
from agents.risk_officer import NO_ROWS
from tests.doubles import scripted
from tests.worlds import desks, journals, l1_markets
from tests.worlds.busy_desk import go_on
from tests.worlds.observed import START, plain_tick
from tests.worlds.random_markets import random_walk
from torra.config import DeskSettings, Profile
from torra.desk.promotion import PromotionSubject
from torra.desk.schedule import Desk
from torra.evaluation.observations import SwarmObservation, TickObservation
from torra.replay import arms, live
from torra.replay.arms import ARMS
from torra.replay.changed import listing
from torra.replay.l1 import verdicts
from torra.replay.l1.sweep import L1Backtest
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.tick.marks import PROPOSED

pytestmark = pytest.mark.usefixtures("scored_once")

SETTINGS = DeskSettings(instances=(desks.BTC,))
SEATS = (READER_ID, *EXPERTS, JUDGE_ID, GATE_ID)


def abstention(request: Request) -> Completion:
    """Return an answer that costs nothing and has no opinion."""
    if request.role.kind == "gate":
        text = scripted.ruling(request)
    else:
        text = {**scripted.report(request), "abstained": True, "abstain_reason": "nothing to read"}
    return Completion(json.dumps(text), "scripted-1", "scripted", 1, 1, 0.0)


def profile_of(**changes: Any) -> Profile:
    return journals.a_profile(
        agents={"influence": "full", "mode": "swarm"},
        risk={"max_signals_per_hour": 60, "leverage_caps": {"M15": 3.0, "H1": 3.0}},
        **changes,
    )


def lived(folder: Path, closes: int, profile: Profile) -> Desk:
    desk = desks.open_desk(
        folder,
        (desks.BTC,),
        profile=profile,
        provider=scripted.Scripted(dict.fromkeys(SEATS, abstention)),
    )
    desks.open_for_work(desk)
    go_on(desk, closes)
    return desk


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory, scaled: Callable[..., int]) -> Iterator[Desk]:
    """A desk on a market whose longs are crowded now and then: a day of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(risk_officer, "FUNDING", ("technical.volatility_percentile",))
        patch.setattr(risk_officer, "LIQUIDATED", ("technical.rsi14",))
        folder = tmp_path_factory.mktemp("crowded")
        gate = {"crowded_percentile": 80.0, "liquidations_percentile": 60.0}
        desk = lived(folder, scaled(1_500, 90), profile_of(gate=gate))
        with closing(desk.database):
            yield desk


def subject_of(desk: Desk) -> PromotionSubject:
    (setup,) = desk.setups.values()
    return PromotionSubject("default", setup.profile, (desks.BTC,))


def test_where_all_abstain_no_tick_is_changed_and_both_paths_are_one(crowded: Desk) -> None:
    subject = subject_of(crowded)
    final = live.arm_seen(crowded.database, subject)
    frames = live.frames_of(crowded.database, subject, final.ticks)
    control, own = live.arms_of(final, subject, frames, {})
    rows = [reason for tick in final.ticks if tick.swarm for reason in tick.swarm.reasons]
    assert {OfficerReason.CROWDED, OfficerReason.LIQUIDATIONS} <= set(rows), "rows must bind"
    assert any(tick.budget < 1.0 for tick in own.ticks)
    assert len(own.trades) >= 3
    assert control.trades == own.trades
    assert [tick.size_share for tick in control.ticks] == [tick.size_share for tick in own.ticks]
    page = listing.listed(crowded.database, SETTINGS, kinds=listing.KINDS)
    assert page.ticks == ()
    told = listing.paths(crowded.database, subject)
    assert (told.money, told.r) == (0.0, told.l1_r)


@pytest.mark.journey
def test_without_the_rows_the_paths_would_differ(crowded: Desk) -> None:
    subject = subject_of(crowded)
    final = live.arm_seen(crowded.database, subject)
    bare = replace(final, ticks=tuple(replace(tick, swarm=None) for tick in final.ticks))
    frames = live.frames_of(crowded.database, subject, final.ticks)
    assert live.l1_trades(bare, subject, frames, {}) != list(final.trades)


def test_a_desk_that_asks_a_person_has_trades_of_the_bars_alone(tmp_path: Path) -> None:
    desk = lived(tmp_path, 30, profile_of(execution="approve"))
    with closing(desk.database):
        subject = subject_of(desk)
        final = live.arm_seen(desk.database, subject)
        assert any(tick.reason == PROPOSED for tick in final.ticks) and not final.trades
        frames = live.frames_of(desk.database, subject, final.ticks)
        auto = replace(subject, profile=subject.profile.model_copy(update={"execution": "auto"}))
        off = replace(subject, profile=subject.profile.model_copy(update={"execution": "off"}))
        trades = live.l1_trades(final, subject, frames, {})
        assert trades == live.l1_trades(final, auto, frames, {}) != []
        assert live.l1_trades(final, off, frames, {}) == []


@pytest.mark.parametrize(
    ("reasons", "sides", "vetoes", "left"),
    [
        (("CROWDED",), ("BUY",), "", ("BUY",)),
        (("NEGATIVE_EV",), ("BUY",), "BUY", ()),
        (("CROWDED", "NEGATIVE_EV"), ("BUY", "SELL"), "SELL", ("BUY",)),
        (("CROWDED", "NEGATIVE_EV"), ("BUY",), "BUY", ("BUY",)),
        (("JUDGE_HOLD",), (), "", ()),
    ],
)
def test_a_judges_veto_is_no_row(
    reasons: tuple[str, ...], sides: tuple[str, ...], vetoes: str, left: tuple[str, ...]
) -> None:
    told = SwarmObservation(budget=0.2, plain=0.7, reasons=reasons, veto_sides=sides, vetoes=vetoes)
    found = live.rows_alone(told)
    assert (found.veto_sides, found.budget, found.side, found.vetoes) == (left, 0.7, "", "")
    assert "NEGATIVE_EV" not in found.reasons and "JUDGE_HOLD" not in found.reasons


def test_the_rows_of_a_tick_are_those_of_code_alone() -> None:
    gate = Profile().gate
    seen = SwarmObservation(budget=0.1, plain=0.7, storm=0.5, reasons=("EXHAUSTION",))
    assert live.officer_rows(tick_with(seen), gate) == (0.5, gate.exhaustion_multiplier, (), (), ())
    calm = SwarmObservation(budget=0.1, plain=0.7)
    assert live.officer_rows(tick_with(calm), gate)[:2] == (0.7, 1.0)
    assert live.officer_rows(tick_with(None), gate) == NO_ROWS


def tick_with(swarm: SwarmObservation | None) -> TickObservation:
    return plain_tick(START, swarm=swarm)


# --- a replay ---


@pytest.mark.parametrize(
    ("beside", "mode", "officer"),
    [
        (("swarm",), "budget", True),
        (("swarm", "experts", "placebo_flipped"), "budget", True),
        (("swarm", "budget"), "budget", False),
        (("swarm", "budget"), "swarm", False),
        (("budget",), "swarm", False),
        ((), "swarm", False),
        ((), "budget", False),
    ],
)
def test_the_control_of_a_replay_has_the_rows_of_the_desks_beside_it(
    beside: tuple[str, ...], mode: str, officer: bool
) -> None:
    agents = Profile().agents.model_copy(update={"mode": mode})
    profile = Profile().model_copy(update={"agents": agents})
    told = arms.control_of(profile, [ARMS[name] for name in ("l1", *beside)])
    assert ARMS["l1"].profile(told).debate().has_officer() is officer


def test_a_walk_on_l1_under_rows_is_the_tick_under_rows() -> None:
    """The pass on the bars alone, given the rows, and run_tick with nobody asked agree."""
    profile = l1_markets.profile(threshold=0.05)
    agents = profile.agents.model_copy(update={"mode": "swarm"})
    profile = profile.model_copy(update={"agents": agents})
    history = random_walk(450, 7)
    course = Schedule.of(history)
    seen = run_arm(course, ARMS["l1"], profile, AgentSource())
    rows = {
        (tick.timeframe, verdicts.micros(tick.close_time)): live.officer_rows(tick, profile.gate)
        for tick in seen.ticks
    }
    found = L1Backtest(course.instance, history.frames).run(profile, rows)
    assert found.trades == seen.trades != ()
    assert found.trades != L1Backtest(course.instance, history.frames).run(profile).trades
