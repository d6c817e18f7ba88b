"""Arms of a swarm: which there are, which would be another one, and the placebo of its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent_config import EXPERTS, JUDGE_ID, READER_ID, AgentSettings
from agents.contracts import SourceType
from instance_database import TickKey
from technical_calculator import WARM_UP
from tests.cases import cases
from tests.worlds.observed import quiet_ticks
from torra.config import ROOT, Profile
from torra.evaluation.observations import (
    ArmObservation,
    SwarmObservation,
    TickObservation,
    as_json,
    tick_of,
)
from torra.evaluation.recomposition import BrainNumbers, Changes, recompose
from torra.evaluation.wording import arm_called, the_arm
from torra.evidence.expert_bars import WINDOW
from torra.evidence.feature_bundle import Bundle, EvidenceInputs, LazyFeatures, build
from torra.replay import arms, scorecard, voices
from torra.replay.arms import ARMS, EVIDENCE
from torra.replay.recomposing import of_a_swarm
from torra.replay.replaying import ReplayPlan, TradingCosts, run
from torra.replay.shards import arm_words
from torra.replay.shards.arm_evidence import FURTHEST, ShiftedEvidence
from torra.replay.shards.history import History, cut, load
from torra.tick.bar_window import HistoryWindow

pytestmark = pytest.mark.usefixtures("scored_once")

SWARM_ARMS = (
    *("swarm", "swarm_flat", "swarm_no_reader", "experts"),
    *("swarm_picture", "swarm_no_memory", "placebo_memory_swarm", EVIDENCE),
)
OF_A_SWARM = Profile(agents=AgentSettings.model_validate({"mode": "swarm"}))
END = datetime.fromisoformat("2021-11-12T00:00:00+00:00")
BEGIN = END - timedelta(hours=4)
NAMES = (
    *("swarm", "swarm_flat", "swarm_no_reader", "experts"),
    *(EVIDENCE, "placebo_flipped"),
)


@pytest.fixture(scope="module")
def history() -> History:
    files = [str(ROOT / "sample_data" / "BTCUSD_M15.csv")]
    return cut(load(Path("nowhere"), "BTCUSD", files), None, END)


def plan_of(history: History, names: tuple[str, ...] = NAMES) -> ReplayPlan:
    costs = TradingCosts(15.0, 0.0, 0.0)
    return ReplayPlan("trial", history, Profile(), arms.chosen(names), costs, BEGIN, END, seed=7)


@pytest.fixture(scope="module")
def seen(history: History) -> dict[str, ArmObservation]:
    return {arm.name: arm for arm in run(plan_of(history), voices.rules_voice)}


# --- which arms there are -------------------------------------------------------------------------


def test_a_swarm_has_its_arms_and_counts_in_all_of_them() -> None:
    for name in SWARM_ARMS:
        settings = ARMS[name].profile(Profile()).agents
        assert (settings.mode, settings.influence) == ("swarm", "full")
        assert settings.remembers() is (name != "swarm_no_memory"), name
        assert "without" in the_arm(name, SWARM_ARMS) or "swarm desk" in arm_called(name, [name])
    assert [name for name in SWARM_ARMS if ARMS[name].is_placebo] == [
        "placebo_memory_swarm", EVIDENCE
    ]  # fmt: skip
    assert ARMS["swarm_flat"].profile(Profile()).agents.trust == "flat"


@cases(("name", "gone"), [("swarm_no_reader", READER_ID), ("experts", JUDGE_ID)])
def test_an_arm_without_a_seat_is_the_same_desk_but_for_it(name: str, gone: str) -> None:
    whole, less = (ARMS[one].profile(Profile()).agents for one in ("swarm", name))
    assert less.desk() == tuple(one for one in whole.desk() if one != gone)
    assert less.row() is whole.row() and less.row().officer
    assert ARMS[name].whole == {SourceType.AGENT_CUSTOM}


def test_who_names_no_desk_has_no_officer_of_the_profiles() -> None:
    for name in ("analysts", "budget", "legacy", "pivotal", "outage"):
        assert not ARMS[name].profile(OF_A_SWARM).agents.row().officer, name
        assert not ARMS[name].profile(OF_A_SWARM).debate().has_officer()


@cases(("source", "officer"), [("swarm", True), ("experts", True), ("budget", False)])
def test_words_are_given_under_the_rules_that_they_were_said_under(
    source: str, officer: bool
) -> None:
    for profile in (Profile(), OF_A_SWARM):
        told = arms.spoken_by(profile, source)
        assert ARMS["placebo_flipped"].profile(told).debate().has_officer() is officer


# --- what a judge, and a reader, left -------------------------------------------------------------


def test_the_veto_of_a_judge_stays_with_its_words() -> None:
    (tick,) = quiet_ticks(
        1, verdict="BUY", swarm=SwarmObservation(vetoes="BUY", veto_sides=("BUY",))
    )
    assert arm_words.stopped(tick)
    others: list[dict[str, Any]] = [
        {"verdict": "SELL"},
        {"shadow": True},
        # a crowded side is the officer's own row, which holds on every tick by itself
        {"swarm": SwarmObservation(veto_sides=("BUY",), reasons=("CROWDED",))},
    ]
    assert not any(arm_words.stopped(replace(tick, **changes)) for changes in others)


def test_what_a_reader_took_of_the_budget_is_the_agents_part() -> None:
    (tick,) = quiet_ticks(1, swarm=SwarmObservation(budget=0.3, plain=0.6))
    gate = Profile().gate
    assert arm_words.agents_part([tick, replace(tick, shadow=True)], gate) == [0.5, 1.0]
    assert arm_words.agents_part([replace(tick, swarm=SwarmObservation(0.6, 0.6))], gate) == [1.0]
    # a storm as deep as the reader's budget has taken that already
    storm = replace(
        tick, multiplier=0.3, rule_multiplier=0.3, swarm=SwarmObservation(0.3, 0.6, 0.3)
    )
    assert arm_words.agents_part([storm], gate) == [1.0]


def test_a_tick_of_a_swarm_survives_json(seen: dict[str, ArmObservation]) -> None:
    for tick in seen["swarm"].ticks:
        assert tick.swarm is not None and len(tick.swarm.trusted) == len(EXPERTS)
        assert tick_of(as_json(tick)) == tick
    for tick in seen["l1"].ticks:
        assert tick.swarm is not None and not tick.swarm.side and not tick.swarm.reader
        assert tick_of(as_json(tick)) == tick


@pytest.mark.journey
def test_a_placebo_of_a_swarm_trades_at_the_size_of_its_source(
    seen: dict[str, ArmObservation],
) -> None:
    pairs = list(paired(seen["swarm"].ticks, seen["placebo_flipped"].ticks))
    assert any(one.budget < 1.0 for one, _ in pairs)
    for one, other in pairs:
        # With the other sign: only what gate, reader, judge and regime left is the same.
        shares = (tick.multiplier * tick.budget for tick in (one, other))
        assert next(shares) == pytest.approx(next(shares), abs=2e-8)


# --- put together again, against arms that really ran ---------------------------------------------


@pytest.mark.journey
@cases(
    ("name", "changes"),
    [("swarm_flat", Changes(flat=True)), ("swarm_no_reader", Changes(reader=False))],
)
def test_a_swarm_put_together_again_is_the_arm_that_ran(
    name: str, changes: Changes, seen: dict[str, ArmObservation]
) -> None:
    """With the rules, whose judge and gate say the same about experts that say the same."""
    found = recompose(seen["swarm"], changes, BrainNumbers.of(Profile())).ticks
    assert any(one.debate != other.debate for one, other in paired(found, seen["swarm"].ticks))
    for one, other in paired(found, seen[name].ticks):
        told = of_a_swarm(one, changes, Profile())
        for part in (*SAME, "multiplier", "adjustments", "scores", "verdict", "conviction"):
            assert getattr(told, part) == getattr(other, part), part


@pytest.mark.journey
def test_without_its_judge_a_swarm_is_what_its_experts_alone_asked_for(
    seen: dict[str, ArmObservation],
) -> None:
    """The gate's model had read the judge: what it left is of first order, and labelled so."""
    changes = Changes(judge=False)
    found = recompose(seen["swarm"], changes, BrainNumbers.of(Profile()))
    assert not found.exact and "the gate's model had read the judge" in found.label
    pairs = list(paired(found.ticks, seen["experts"].ticks))
    assert all(getattr(a, part) == getattr(b, part) for a, b in pairs for part in SAME)


SAME = ("debate", "swarm", "l1", "rule_multiplier")


def paired(
    some: tuple[TickObservation, ...], others: tuple[TickObservation, ...]
) -> Iterator[tuple[TickObservation, TickObservation]]:
    return zip(some, others, strict=True)


# --- the placebo of the evidence ------------------------------------------------------------------


def test_earlier_evidence_is_of_the_same_hour_and_shares_no_bar(history: History) -> None:
    window = HistoryWindow(history.frames)
    lot = ShiftedEvidence(window, 7)
    times = [one.to_pydatetime() for one in window.times["M15"]]
    drawn = []
    for at in range(WINDOW - 20, len(times), 97):
        key = TickKey("BTCUSD", "M15", times[at])
        found = lot.earlier(key)
        far = times[max(WARM_UP, at - FURTHEST) : max(0, at - WINDOW + 1)]
        alike = [one for one in far if one.time() == times[at].time()]
        assert (found in alike) if alike else found is None
        drawn.append(found and times[at] - found)
    assert None in drawn and len(set(drawn)) > 5


def test_where_no_earlier_day_lies_far_enough_its_experts_have_nothing_to_read(
    history: History,
) -> None:
    window = HistoryWindow(history.frames)
    key = TickKey("BTCUSD", "M15", window.times["M15"][WINDOW - 20].to_pydatetime())
    own = evidence(window, key)
    found = ShiftedEvidence(window, 7)(key, own, None).features
    blocks = ("liquidity.vwap_atr", "geometry.compression", "micro.spread_percentile")
    assert own.features["liquidity.vwap_atr"].value is not None
    assert [found[name].value for name in blocks] == [None, None, None]
    assert found["technical.close"] == own.features["technical.close"]


def test_a_placebo_of_the_evidence_draws_by_its_seed_alone(history: History) -> None:
    window = HistoryWindow(history.frames)
    keys = [TickKey("BTCUSD", "M15", one.to_pydatetime()) for one in window.times["M15"][-40:]]
    one, same, other = (ShiftedEvidence(window, seed) for seed in (7, 7, 8))
    assert [one.earlier(key) for key in keys] == [same.earlier(key) for key in keys]
    assert [one.earlier(key) for key in keys] != [other.earlier(key) for key in keys]
    plan = plan_of(history)
    again = replace(plan, seed=8)
    moved = [arm.name for arm in plan.arms if plan.identity(arm) != again.identity(arm)]
    assert moved == [EVIDENCE, "placebo_flipped"]


@pytest.mark.journey
def test_its_experts_read_other_days_and_all_else_is_as_it_was(
    seen: dict[str, ArmObservation],
) -> None:
    pairs = list(zip(seen["swarm"].ticks, seen[EVIDENCE].ticks, strict=True))
    said = [[one.adjustments for one in tick.opinions] for pair in pairs for tick in pair]
    assert sum(said[at] != said[at + 1] for at in range(0, len(said), 2)) > len(pairs) // 2
    assert all(one.l1 == other.l1 and one.regime == other.regime for one, other in pairs)
    assert all(
        one.swarm and other.swarm and one.swarm.plain == other.swarm.plain for one, other in pairs
    )


def test_no_bar_of_the_tick_or_later_reaches_that_evidence(history: History) -> None:
    frame = history.frames["M15"]
    key = TickKey("BTCUSD", "M15", frame.index[-1].to_pydatetime())
    other = frame.copy()
    # Of what the experts read at the tick itself nothing is as it was.
    other.loc[other.index[-WINDOW] :, ["open", "high", "low", "close", "volume"]] *= 1.5
    found = [read(HistoryWindow({"M15": bars}), key) for bars in (frame, other)]
    assert found[0] == found[1] and sum(value is not None for value in found[0].values()) > 20


def evidence(window: HistoryWindow, key: TickKey) -> Bundle:
    """Return what a tick's own bars show the experts."""
    as_of = key.close_time
    bars = window.bars("M15", as_of)
    inputs = EvidenceInputs(
        symbol="BTCUSD", timeframe="M15", bar_time=key.bar_time, as_of=as_of,
        row=window.l1_row("M15", as_of, bars), spread=15.0, valid_bars=len(bars), bar_age=0.0,
        memory={}, bars=bars, experts=True,
    )  # fmt: skip
    return build(inputs)


def read(window: HistoryWindow, key: TickKey) -> dict[str, float | str | None]:
    """Return what a placebo's experts read of a tick."""
    bundle = evidence(window, key)
    inputs = cast("LazyFeatures", bundle.features).inputs
    bundle = replace(bundle, features=LazyFeatures(inputs, ()))
    told = ShiftedEvidence(window, 7)(key, bundle, None).features
    return {name: one.value for name, one in told.items()}


def test_a_placebo_of_the_evidence_is_compared_with_the_swarm_alone(
    seen: dict[str, ArmObservation], history: History
) -> None:
    market = scorecard.ScoredMarket({"BTCUSD": history.frames}, Profile())
    found = scorecard.compare(list(seen.values()), market)
    assert found.placebos == {"swarm": [EVIDENCE, "placebo_flipped"]}
