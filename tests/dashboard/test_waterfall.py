"""The waterfalls of a tick's page: of its time against its limits, and of its scores."""

from __future__ import annotations

import copy
import math
import random

import pytest

from agent_config import FALLBACK_SHARE, MODES
from agents.contracts import VECTORS
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.page_reader import Page, client, get
from tests.worlds.demo_full_desk import CASES, LIMITS, FullDeskView
from tests.worlds.demo_view import SOURCES, ScriptedView, bars
from tests.worlds.records import debate_record, shown_tick
from torra.dashboard.record import waterfall
from torra.exhibits import figures

TIMES = [bar["time"] for bar in bars("BTCUSD", "M15")]

SHARES = {stage.name: stage.share for stage in MODES["budget"].stages}


def record_of(case):
    return copy.deepcopy(FullDeskView().tick("BTCUSD", "M15", TIMES[-1 - CASES.index(case)]))


def timeline_of(record, limits=LIMITS):
    return waterfall.timeline(shown_tick({**record, "limits": limits}))


# --- time ---


def test_calls_lie_one_after_the_other_behind_what_came_before_the_debate() -> None:
    record = record_of("silent")
    record["elapsed_ms"] = record["deliberation"]["elapsed_ms"] + 500.0
    told = timeline_of(record)
    rows = {(row["who"], row["try"]): row for row in told["rows"]}
    assert told["before_ms"] == "500"
    assert rows["Technical", "1.1"]["start"] == 500.0
    assert rows["Technical", "1.2"]["start"] == rows["Technical", "1.1"]["end"] == 618.0
    assert rows["Momentum", "1.1"]["end"] == 500.0 + 6750.0
    assert rows["Bull researcher", "1.1"]["start"] == 500.0 + 800.0
    assert rows["Risk gate", "1.1"]["start"] == 500.0 + 800.0 + 800.0


def test_a_stage_ends_when_the_sitting_says() -> None:
    record = record_of("whole")
    record["elapsed_ms"] = record["deliberation"]["elapsed_ms"] + 1000.0
    rows = {row["who"]: row for row in timeline_of(record)["rows"]}
    analysts = 1000.0 + SHARES["analysts"] * 14_000.0
    assert rows["Technical"]["until"] == pytest.approx(analysts)
    research = 1800.0 + SHARES["research"] * (15_000.0 - 1800.0)
    assert rows["Bull researcher"]["until"] == pytest.approx(research)
    gate = 2600.0 + SHARES["gate"] * (15_000.0 - 2600.0)
    assert rows["Risk gate"]["until"] == pytest.approx(gate)
    silent = record_of("mute")
    silent["elapsed_ms"] = silent["deliberation"]["elapsed_ms"]
    for stage in silent["deliberation"]["stages"]:
        stage["ms"] = 5_000.0
    ends = {row["stage"]: row["until"] for row in timeline_of(silent)["rows"]}
    assert ends["gate"] == pytest.approx(15_000 * (1 - FALLBACK_SHARE))  # nobody has answered


def test_the_axis_ends_at_the_deadline_or_is_drawn_larger() -> None:
    near = record_of("whole") | {"elapsed_ms": 6_000.0}
    told = timeline_of(near)
    assert (told["span"], told["deadline_x"], told["beyond"]) == (15_000.0, 1000.0, False)
    far = record_of("whole") | {"elapsed_ms": 2_900.0}
    told = timeline_of(far)
    assert (told["span"], told["deadline_x"], told["beyond"]) == (5_000.0, None, True)
    assert (told["deadline"], told["axis"][-1]) == ("15 s", "5 s")
    none = timeline_of(far, {})
    assert (none["deadline"], none["deadline_x"], none["rows"][0]["until"]) == ("", None, None)


def test_bars_lie_on_the_axis_and_the_shortest_can_be_seen(scaled: Scale) -> None:
    rng = random.Random(7)
    for _ in range(scaled(20_000, least=160)):
        record = record_like(rng)
        told = timeline_of(record, rng.choice((LIMITS, {}, {"timeout_seconds": 0.5})))
        for row in told["rows"]:
            assert row["width"] >= waterfall.LEAST
            assert 0 <= row["x"] <= waterfall.AXIS
            assert row["x"] + row["width"] <= waterfall.AXIS + waterfall.LEAST
            assert row["limit_x"] is None or 0 <= row["limit_x"] <= waterfall.AXIS
            assert row["end"] <= told["span"] + 1e-6


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


def test_the_page_shows_each_call_as_a_bar_and_as_numbers() -> None:
    page = get(f"/symbol/BTCUSD/M15/{TIMES[-1 - CASES.index('silent')]}", "desk")
    rows = [row for row in page.rows if len(row) == 7 and row[1].startswith("analysts 1.")]
    assert [row[0] for row in rows] == ["Technical", "Technical", "Key levels", "Momentum"]
    assert [row[4] for row in rows] == ["118", "118", "118", "6,750"]
    assert "✕ timeout" in rows[3][6]
    classes = [a.get("class") for a in page.all("rect")]
    assert classes.count("took") == 6
    assert classes.count("lost") == 2  # the answer that came too late, and one that was garbage
    assert {"took", "lost", "before", "track"} <= set(classes)


def test_an_answer_of_a_vendor_that_stood_in_says_who_was_asked_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = record_of("whole")
    record["calls"][0]["detail"] = "anthropic: 429; google: 404"
    monkeypatch.setattr(FullDeskView, "tick", lambda *_: {**record, "limits": LIMITS})
    asked = client("desk").get(f"/symbol/BTCUSD/M15/{TIMES[-1]}")  # not one of before
    words = Page(asked.get_data(as_text=True)).text
    assert words.count(", after anthropic: 429; google: 404") == 1


# --- scores ---


@cases("case", CASES)
def test_the_steps_of_a_vector_lead_from_l1_to_the_agent_score(case: str) -> None:
    record = record_of(case)
    told = shown_tick(record)
    for vector, chart in zip(VECTORS, waterfall.score_charts(told), strict=True):
        rows = {row["name"]: row for row in chart["rows"]}
        moved = math.fsum(number(r["number"]) for r in chart["rows"] if r["kind"] == "voiced")
        shift = record["agents"][vector] - record["l1"][vector]
        assert moved == pytest.approx(shift, abs=5e-4 * len(rows))
        assert rows["Bars (L1)"]["number"] == figures.format_signed(record["l1"][vector])
        assert rows["What counts"]["number"] == figures.format_signed(
            record["scores"][vector]["score"]
        )
        moves = list(waterfall._moves(told, vector))
        assert math.fsum(value for _, value in moves) == pytest.approx(
            record["adjustments"][vector], abs=2e-8
        )


@cases("case", ["whole", "silent", "vetoed", "rounds", "wrong"])
def test_where_both_sides_spoke_their_words_and_the_gate_explain_it_all(case: str) -> None:
    record = record_of(case)
    spoke = {figures.title(r["agent_id"]) for r in record["deliberation"]["reports"]}
    for chart in waterfall.score_charts(shown_tick(record)):
        names = {row["name"] for row in chart["rows"] if row["kind"] == "voiced"}
        assert names <= spoke | {"Gate × 0.56"}
        assert {"Bull researcher", "Bear researcher"} <= names


def test_a_side_without_the_other_moves_nothing() -> None:
    record = record_of("rounds")
    told = record["deliberation"]
    assert "Bull researcher" in dict(waterfall._shares(debate_record(told), "momentum"))
    told["reports"] = [r for r in told["reports"] if r["agent_id"] != "bear_researcher"]
    assert "Bull researcher" not in dict(waterfall._shares(debate_record(told), "momentum"))
    told["reports"] = [r for r in told["reports"] if r["agent_id"] == "bull_researcher"]
    alone = dict(waterfall._shares(debate_record(told), "momentum"))
    assert alone == {"Bull researcher": pytest.approx(0.13)}


@cases("source", SOURCES)
def test_every_source_type_has_its_charts(source: str) -> None:
    time = TIMES[-1 - SOURCES.index(source)]
    record = ScriptedView().tick("BTCUSD", "M15", time)
    for vector, chart in zip(VECTORS, waterfall.score_charts(shown_tick(record)), strict=True):
        names = [row["name"] for row in chart["rows"]]
        assert names[0] == "Bars (L1)"
        assert names[-1] == "What counts"
        assert ("Adjustment" in names or "Fallback" in names) <= (source == "LEGACY")
        ends = {row["name"]: row["end"] for row in chart["rows"]}
        if record["agents"][vector] == record["l1"][vector]:
            assert ends["What counts"] == chart["origin"]


def test_a_score_that_was_cut_says_so() -> None:
    record = record_of("whole")
    record["l1"]["momentum"], record["agents"]["momentum"] = 0.99, 1.0
    chart = waterfall.score_charts(shown_tick(record))[2]
    assert "Cut at a bound" in [row["name"] for row in chart["rows"]]


def test_the_consensus_stands_against_its_thresholds() -> None:
    record = record_of("vetoed")
    chart = waterfall.decision_chart(shown_tick(record))
    rows = {row["name"]: row for row in chart["rows"]}
    assert rows["Composite"]["number"] == figures.format_signed(record["composite"])
    assert rows["Consensus"]["number"] == figures.format_signed(record["consensus"])
    parts = [number(row["number"]) for row in chart["rows"][:5]]
    assert math.fsum(parts) == pytest.approx(record["composite"], abs=3e-3)
    buy, sell = (line["x"] for line in chart["lines"])
    (zero,) = (mark["x"] for mark in chart["axis"] if mark["zero"])
    assert sell < zero < buy
    assert (rows["Consensus"]["end"] >= buy) == (record["verdict"] == "BUY")
    assert (rows["Consensus"]["end"] <= sell) == (record["verdict"] == "SELL")


def test_a_chart_is_told_to_those_who_do_not_see_it() -> None:
    page = get(f"/symbol/BTCUSD/M15/{TIMES[-1]}", "desk")
    told = [a["aria-label"] for a in page.all("svg") if a.get("role") == "img"]
    assert len(told) == len(VECTORS) + 1
    record = record_of("whole")
    assert told[0].startswith(
        f"Price action: Bars (L1) {figures.format_signed(record['l1']['price_action'])}"
    )
    assert all("What counts" in one or "Consensus" in one for one in told)


@cases("case", CASES)
def test_l1_is_as_long_as_it_is_and_the_axis_has_numbers(case: str) -> None:
    record = record_of(case)
    for vector, chart in zip(VECTORS, waterfall.score_charts(shown_tick(record)), strict=True):
        (zero,) = (mark["x"] for mark in chart["axis"] if mark["zero"])
        assert 2 <= len(chart["axis"]) <= waterfall.MARKED + 1
        places = {mark["x"]: number(mark["value"]) for mark in chart["axis"]}
        far = max(places, key=lambda x: abs(places[x]))
        unit = (far - zero) / places[far]
        bars = {row["name"]: row for row in chart["rows"]}
        for name, value in (("Bars (L1)", record["l1"][vector]),):
            assert bars[name]["width"] == pytest.approx(abs(value) * unit, abs=2.0)
            assert min(bars[name]["x"], bars[name]["end"]) == pytest.approx(
                min(zero, zero + value * unit), abs=1.0
            )
        floor = max(row["y"] for row in chart["rows"])
        assert floor < chart["floor"] < chart["height"]


def number(text):
    return float(text.replace(figures.MINUS, "-"))
