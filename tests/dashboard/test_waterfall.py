"""The waterfalls of a tick's page: of its time against its limits, and of its scores."""

from __future__ import annotations

import math
import random

import pytest

from agent_config import FALLBACK_SHARE, MODES
from agents.contracts import VECTORS
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.page_reader import Page, client
from tests.worlds.demo_full_desk import CASES, LIMITS, FullDeskView, record_of
from tests.worlds.demo_view import SOURCES, ScriptedView, bars
from tests.worlds.records import debate_record, shown_tick
from torra.dashboard.record import waterfall
from torra.exhibits import figures

TIMES = [bar["time"] for bar in bars("BTCUSD", "M15")]

SHARES = {stage.name: stage.share for stage in MODES["budget"].stages}


def timeline_of(record, limits=LIMITS):
    return waterfall.timeline(shown_tick({**record, "limits": limits}))


# --- time ---


def test_calls_lie_one_after_the_other_behind_what_came_before_the_debate() -> None:
    record = record_of("silent")
    record["elapsed_ms"] = record["deliberation"]["elapsed_ms"] + 500.0
    found = timeline_of(record)
    rows = {(row.call.role_id, row.call.attempt): row for row in found.rows}
    assert found.before == rows["technical", 1].start == 500.0
    assert rows["technical", 2].start == rows["technical", 1].end == 618.0
    assert rows["momentum", 1].end == 500.0 + 6750.0
    assert rows["bull_researcher", 1].start == 500.0 + 800.0
    assert rows["risk_gate", 1].start == 500.0 + 800.0 + 800.0


def test_a_stage_ends_when_the_sitting_says() -> None:
    record = record_of("whole")
    record["elapsed_ms"] = record["deliberation"]["elapsed_ms"] + 1000.0
    rows = {row.call.role_id: row for row in timeline_of(record).rows}
    ends = (("technical", "analysts", 1000), ("bull_researcher", "research", 1800))
    for name, stage, begin in (*ends, ("risk_gate", "gate", 2600)):
        assert rows[name].until == pytest.approx(begin + SHARES[stage] * (15_000 - begin))
    silent = record_of("mute")
    silent["elapsed_ms"] = silent["deliberation"]["elapsed_ms"]
    for stage in silent["deliberation"]["stages"]:
        stage["ms"] = 5_000.0
    until = {row.call.stage: row.until for row in timeline_of(silent).rows}
    assert until["gate"] == pytest.approx(15_000 * (1 - FALLBACK_SHARE))  # nobody has answered


def test_the_axis_ends_at_the_deadline_or_is_drawn_larger() -> None:
    assert timeline_of(record_of("whole") | {"elapsed_ms": 6_000.0}).span == 15_000.0
    far = record_of("whole") | {"elapsed_ms": 2_900.0}
    found = timeline_of(far)
    assert (found.span, found.axis[-1], found.words(found.deadline)) == (5_000.0, "5 s", "15 s")
    none = timeline_of(far, {})
    assert (none.deadline, none.rows[0].until, none.words(250.0)) == (None, None, "250 ms")


def test_bars_lie_on_the_axis_and_the_shortest_can_be_seen(scaled: Scale) -> None:
    rng = random.Random(7)
    for _ in range(scaled(20_000, least=160)):
        found = timeline_of(record_like(rng), rng.choice((LIMITS, {}, {"timeout_seconds": 0.5})))
        for row in found.rows:
            bar = found.bar(row.start, row.end)
            assert bar["width"] >= waterfall.LEAST
            assert 0 <= bar["x"] <= waterfall.AXIS
            assert bar["x"] + bar["width"] <= waterfall.AXIS + waterfall.LEAST
            assert row.end <= found.span + 1e-6


def record_like(rng):
    stages = [
        {"name": name, "round": 1, "agents": {}, "ms": rng.choice((0.0, rng.expovariate(0.001)))}
        for name in ("analysts", "research", "gate", "fallback")[: rng.randint(0, 4)]
    ]
    calls = [
        {
            "role_id": f"a{rng.randint(0, 3)}",
            "stage": rng.choice(["analysts", "research", "gate", "fallback", "odd"]),
            "round": 1,
            "attempt": 1,
            "status": "ok",
            "elapsed_ms": rng.choice((0.0, 0.4, 118.0, rng.expovariate(0.0005))),
        }
        for _ in range(rng.randint(0, 14))
    ]
    whole = rng.choice((0.0, rng.expovariate(0.0003)))
    told = {"stages": stages, "elapsed_ms": rng.choice((0.0, 1.0, 900.0))}
    return {"deliberation": told, "calls": calls, "elapsed_ms": whole}


@cases(("ms", "nice"), [(0, 1), (0.3, 0.5), (1, 1), (7, 10), (2100, 2500)])
def test_an_axis_ends_at_a_round_number(ms: float, nice: float) -> None:
    assert waterfall._nice(ms) == pytest.approx(nice)


def test_an_answer_of_a_vendor_that_stood_in_says_who_was_asked_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = record_of("whole")
    record["calls"][0]["detail"] = "anthropic: 429; google: 404"
    monkeypatch.setattr(FullDeskView, "tick", lambda *_: {**record, "limits": LIMITS})
    asked = client("desk").get(f"/symbol/BTCUSD/M15/{TIMES[-1]}")  # not one of before
    words = Page(asked.text).text
    assert words.count(", after anthropic: 429; google: 404") == 1


# --- scores ---


def charts_of(record):
    return dict(zip(VECTORS, waterfall.score_charts(shown_tick(record)), strict=True))


@cases("case", CASES)
def test_the_steps_of_a_vector_lead_from_l1_to_the_agent_score(case: str) -> None:
    record = record_of(case)
    spoke = {figures.title(r["agent_id"]) for r in record["deliberation"]["reports"]}
    for vector, chart in charts_of(record).items():
        steps = {step.name: step for step in chart.steps}
        voiced = [step for step in chart.steps if step.kind == "voiced"]
        moved = math.fsum(step.end - step.start for step in voiced)
        assert moved == pytest.approx(record["agents"][vector] - record["l1"][vector], abs=1e-6)
        moves = math.fsum(one for _, one in waterfall._moves(shown_tick(record), vector))
        assert moves == pytest.approx(record["adjustments"][vector], abs=2e-8)
        assert (chart.steps[0].name, steps["Bars (L1)"].end) == ("Bars (L1)", record["l1"][vector])
        assert chart.steps[-1].end == record["scores"][vector]["score"]
        # where both sides spoke, their words and the gate explain it all
        if case in ("whole", "silent", "vetoed", "rounds", "wrong"):
            names = {step.name for step in voiced}
            assert {"Bull researcher", "Bear researcher"} <= names <= spoke | {"Gate × 0.56"}


def test_a_side_without_the_other_moves_nothing() -> None:
    told = record_of("rounds")["deliberation"]
    assert "Bull researcher" in dict(waterfall._shares(debate_record(told), "momentum"))
    told["reports"] = [r for r in told["reports"] if r["agent_id"] != "bear_researcher"]
    assert "Bull researcher" not in dict(waterfall._shares(debate_record(told), "momentum"))
    told["reports"] = [r for r in told["reports"] if r["agent_id"] == "bull_researcher"]
    alone = dict(waterfall._shares(debate_record(told), "momentum"))
    assert alone == {"Bull researcher": pytest.approx(0.13)}


@cases("source", SOURCES)
def test_every_source_type_has_its_charts(source: str) -> None:
    record = ScriptedView().tick("BTCUSD", "M15", TIMES[-1 - SOURCES.index(source)])
    for vector, chart in charts_of(record).items():
        steps = {step.name: step for step in chart.steps}
        assert ("Fallback" in steps) <= (source == "LEGACY")
        if record["agents"][vector] == record["l1"][vector]:
            assert steps["What counts"].end == chart.limits[""]


def test_a_score_that_was_cut_says_so() -> None:
    record = record_of("whole")
    record["l1"]["momentum"], record["agents"]["momentum"] = 0.99, 1.0
    assert "Cut at a bound" in [step.name for step in charts_of(record)["momentum"].steps]


def test_the_consensus_stands_against_its_thresholds() -> None:
    record = record_of("vetoed")
    chart = waterfall.decision_chart(shown_tick(record))
    ends = {step.name: step.end for step in chart.steps}
    assert chart.steps[4].end == pytest.approx(record["composite"], abs=1e-6)
    assert [ends[name] for name in ("Composite", "Consensus", "Without agents")] == [
        record[name] for name in ("composite", "consensus", "l1_consensus")
    ]
    assert chart.limits == {
        "BUY": record["thresholds"]["buy"],
        "SELL": -record["thresholds"]["sell"],
    }
    assert chart.sentence.startswith(f"Price action {chart.steps[0].number}, ")


@cases("case", CASES)
def test_a_scale_has_zero_and_round_numbers_and_holds_every_step(case: str) -> None:
    for chart in (
        *charts_of(record_of(case)).values(),
        waterfall.decision_chart(shown_tick(record_of(case))),
    ):
        axis = dict(chart.scale.ticks)
        assert 2 <= len(axis) <= waterfall.MARKED + 1 and axis[0.0] == "0"
        places = [chart.x(at) for step in chart.steps for at in (step.start, step.end)]
        assert waterfall.LEFT <= min(places) <= max(places) <= waterfall.RIGHT
        unit = (waterfall.RIGHT - waterfall.LEFT) / (chart.scale.high - chart.scale.low)
        for value, word in axis.items():
            assert float(word.replace(figures.MINUS, "-")) == pytest.approx(value)
            assert chart.x(value) - chart.x(0.0) == pytest.approx(value * unit, abs=0.2)
