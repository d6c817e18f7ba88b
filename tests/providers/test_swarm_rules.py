"""The rules in a swarm's seats: the reader of the regime, the four experts, the judge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent_config import EXPERTS, JUDGE_ID, READER_ID
from agents.contracts import (
    ANOMALIES,
    BIASES,
    NO_ANOMALY,
    PATTERNS,
    RESEARCHER_BOUND,
    VECTORS,
    WINNERS,
    AgentReport,
    Confidence,
    Evidence,
    Request,
    Role,
    Shape,
)
from agents.debate import replies
from agents.debate.replies import schema
from agents.phrases import PHRASES
from agents.phrases import mirrored as in_mirrored_words
from agents.registry import AGENTS
from tests.cases import cases
from tests.conftest import Scale
from tests.examples import examples
from tests.providers import test_rules_provider as plain
from tests.providers.test_arguments import check_words, listen
from tests.providers.test_rules_provider import answer
from tests.worlds.mirrors import MARKET, MARKETS, STEP, Values
from tests.worlds.mirrors import mirrored as upside_down
from torra.providers.rules.judge_rules import DISPUTE, EDGE, TAKES
from torra.providers.rules.reader_rules import WIDE
from torra.providers.rules.tables import TABLES

READER, JUDGE = AGENTS[READER_ID].role, AGENTS[JUDGE_ID].role
LIQUIDITY, MICRO, MACRO, GEOMETRY = (AGENTS[name].role for name in EXPERTS)
SHAPE_OF: Mapping[str, Shape] = {
    READER_ID: "regime",
    JUDGE_ID: "decision",
    "geometry": "geometry",
    **dict.fromkeys(("liquidity", "microstructure", "macro"), "finding"),
}
HEADS = {"Up": 1, "Down": -1, "No side": 0, "Long": 1, "Short": -1}
NUMBER = re.compile(r"\d")
DXY = "companion.dxy."

SWARM: Values = MARKET | {
    "market.regime": "trend_up",
    "market.triage": "",
    "liquidity.sweep_high": 0.0,
    "liquidity.sweep_low": 0.0,
    "liquidity.sweep_age": 40.0,
    "liquidity.pool_above_atr": 2.0,
    "liquidity.pool_below_atr": 2.0,
    "liquidity.effort": 1.0,
    **{f"liquidity.{name}": 0.0 for name in ("vwap_atr", "poc_atr", "delta20", "divergence")},
    "micro.spread_percentile": 50.0,
    "micro.spread_jump": 1.0,
    "flow.up_share": 0.5,
    "flow.book_imbalance": 0.0,
    "flow.book_events": 0.0,
    "flow.slippage_atr": 0.01,
    "geometry.channel_slope_atr": 0.0,
    "geometry.channel_r2": 0.5,
    "geometry.channel_place": 0.5,
    "geometry.compression": 0.6,
    "geometry.pattern_done": 0.0,
    **{f"geometry.pattern.{name}": 0.0 for name in PATTERNS},
    **{f"geometry.level.{place}": 100.0 + way for place, way in enumerate((1.0, -2.0, 3.0), 1)},
    f"{DXY}change_20": 0.0,
    f"{DXY}percentile": 50.0,
    f"{DXY}correlation": -0.75,
    "macro.vix_change_20": 0.0,
    "macro.vix_rank": 50.0,
    "derivs.funding_rank": 50.0,
}
"""A market that leans neither way, with all that a swarm may see of it."""

TURNED = (
    *(f"liquidity.{name}" for name in ("vwap_atr", "poc_atr", "delta20", "divergence")),
    *("flow.book_imbalance", "geometry.channel_slope_atr", f"{DXY}change_20"),
    *("macro.vix_change_20", "board.lean"),
)
COMPLEMENTED = {"flow.up_share": 1.0, "geometry.channel_place": 1.0, f"{DXY}percentile": 100.0}
COMPLEMENTED |= {"derivs.funding_rank": 100.0}
TWINS = (
    ("liquidity.sweep_high", "liquidity.sweep_low"),
    ("liquidity.pool_above_atr", "liquidity.pool_below_atr"),
    ("board.long", "board.short"),
    *(
        (f"geometry.pattern.{one}", f"geometry.pattern.{other}")
        for one, other in (
            ("double_bottom", "double_top"),
            ("inverse_head_shoulders", "head_shoulders"),
            ("bull_flag", "bear_flag"),
            ("ascending_triangle", "descending_triangle"),
            ("falling_wedge", "rising_wedge"),
        )
    ),
)
PATTERN_TWINS = {a.rpartition(".")[2]: b.rpartition(".")[2] for a, b in TWINS[3:]}
PATTERN_TWINS |= {b: a for a, b in PATTERN_TWINS.items()}
ODD_TWINS = {"exhaustion_top": "capitulation_bottom", "capitulation_bottom": "exhaustion_top"}
WORD_TWINS = {"LONG": "SHORT", "SHORT": "LONG"}
REGIME_TWINS = {"trend_up": "trend_down", "trend_down": "trend_up"}

DRAWN = {
    **{f"liquidity.{side}": st.sampled_from([0.0, 1.0]) for side in ("sweep_high", "sweep_low")},
    "liquidity.sweep_age": st.integers(0, 8).map(float),
    **{
        f"liquidity.pool_{side}_atr": st.one_of(st.none(), st.integers(0, 64).map(lambda n: n / 8))
        for side in ("above", "below")
    },
    "liquidity.effort": st.integers(0, 64).map(lambda n: n / 16),
    **{f"liquidity.{name}": STEP.map(lambda n: n / 8) for name in ("vwap_atr", "poc_atr")},
    "liquidity.delta20": STEP.map(lambda n: n / 64),
    "liquidity.divergence": st.sampled_from([-1.0, 0.0, 1.0]),
    "micro.spread_percentile": st.one_of(st.none(), st.integers(0, 100).map(float)),
    "micro.spread_jump": st.integers(8, 40).map(lambda n: n / 8),
    "flow.up_share": st.one_of(st.none(), st.integers(0, 64).map(lambda n: n / 64)),
    "flow.book_imbalance": STEP.map(lambda n: n / 64),
    "flow.book_events": st.sampled_from([0.0, 19.0, 20.0, 300.0]),
    "geometry.channel_slope_atr": STEP.map(lambda n: n / 256),
    "geometry.channel_r2": st.integers(0, 64).map(lambda n: n / 64),
    "geometry.channel_place": st.integers(0, 64).map(lambda n: n / 64),
    "geometry.compression": st.integers(0, 64).map(lambda n: n / 64),
    "geometry.pattern_done": st.sampled_from([0.0, 1.0]),
    **{f"geometry.pattern.{name}": st.sampled_from([0.0, 0.0, 0.0, 1.0]) for name in PATTERNS},
    f"{DXY}change_20": STEP.map(lambda n: n / 32),
    f"{DXY}percentile": st.integers(0, 100).map(float),
    f"{DXY}correlation": STEP.map(lambda n: n / 64),
    "macro.vix_change_20": STEP.map(lambda n: n / 8),
    "macro.vix_rank": st.integers(0, 100).map(float),
    "derivs.funding_rank": st.integers(0, 100).map(float),
    "market.triage": st.sampled_from(
        ["", "gap", "range_spike volume_spike breakout", "range_spike volume_spike exhaustion"]
    ),
    "memory.position": st.sampled_from(["LONG", "SHORT", None]),
}
SWARM_MARKETS = st.tuples(MARKETS, st.fixed_dictionaries(DRAWN)).map(
    lambda drawn: SWARM | drawn[0] | drawn[1]
)


def mirrored(values: Values) -> Values:
    """Return the same market upside down, around a price of 100."""
    made = upside_down(values)
    for name in TURNED:
        if isinstance(value := values.get(name), float):
            made[name] = -value
    for name, whole in COMPLEMENTED.items():
        if isinstance(value := values.get(name), float):
            made[name] = whole - value
    for one, other in TWINS:
        if one in values:
            made[one], made[other] = values[other], values[one]
    for name in values:
        if name.startswith("geometry.level."):
            made[name] = 200.0 - float(values[name] or 0.0)
    for name in ("memory.position", "board.dominant"):
        if name in values:
            made[name] = WORD_TWINS.get(str(values[name]), values[name])
    return made


def request(role: Role, values: Values, reports: tuple[AgentReport, ...] = ()) -> Request:
    """Return what a seat is asked: it is shown what its prompt would list, and no more."""
    listed = {f"scores.{vector}": 0.125 for vector in VECTORS} | values
    scores = {vector: float(listed[f"scores.{vector}"] or 0.0) for vector in VECTORS}
    shown = {
        name: value
        for name, value in listed.items()
        if value is not None and name.startswith(role.evidence)
    }
    return plain.request(role, shown, scores, reports, schema=schema(SHAPE_OF[role.id]))


def read(asked: Request, reply: dict[str, Any] | None = None) -> AgentReport:
    """Return the answer as the framework reads it; anything malformed raises."""
    return replies.read(SHAPE_OF[asked.role.id], reply or answer(asked), asked.role, asked.features)


def said(role: Role, changes: Values, *reports: AgentReport) -> AgentReport:
    return read(request(role, SWARM | changes, reports))


def opinion(agent: str, value: float, confidence: Confidence = "medium") -> AgentReport:
    focus = AGENTS[agent].role.focus
    moves = {vector: value if vector in focus else None for vector in VECTORS}
    cited = (Evidence("technical.ema20", 100.0),)
    return AgentReport(agent, moves, confidence, evidence=cited)


def swarm(*values: float, confidence: Confidence = "medium") -> tuple[AgentReport, ...]:
    return tuple(opinion(*one, confidence) for one in zip(EXPERTS, values, strict=False))


def board(reports: tuple[AgentReport, ...], conflicts: int = 0) -> Values:
    """Return the features of a board, as far as the judge decides by them."""
    pushes = [sum(filter(None, one.adjustments.values())) for one in reports]
    lean = sum(pushes)
    return {
        "board.lean": lean,
        "board.dominant": "LONG" if lean > 0 else "SHORT" if lean < 0 else "NONE",
        "board.long": float(sum(one > 0 for one in pushes)),
        "board.short": float(sum(one < 0 for one in pushes)),
        "board.conflicts": float(conflicts),
    }


def decided(
    *values: float, conflicts: int = 0, changes: Values | None = None, sure: Confidence = "medium"
) -> AgentReport:
    reports = swarm(*values, confidence=sure)
    return said(JUDGE, board(reports, conflicts) | (changes or {}), *reports)


def check(asked: Request, reply: dict[str, Any]) -> AgentReport:
    """What holds for every answer: it stands as it was said, in words with a number."""
    told = read(asked, reply)
    assert told.flags == (), (asked.role.id, told.flags, reply)
    if told.abstained:
        return told
    for field, points in (("points_for", told.points_for), ("points_against", told.points_against)):
        assert [one.says for one in points] == [one["says"] for one in reply[field]]
        for point in points:
            check_words(f"{point.says}, {point.why}.")
            assert NUMBER.search(point.says), point
    check_words(told.claim)
    assert NUMBER.search(told.claim) and told.claim.endswith("."), told.claim
    kinds = {"reader": check_reading, "judge": check_decision}
    kinds.get(asked.role.kind, check_finding)(reply, told)
    return told


def check_finding(reply: dict[str, Any], told: AgentReport) -> None:
    side = HEADS[told.claim.split(":")[0]]
    assert bool(told.points_for) is bool(side)
    assert told.bias == reply["bias"] and BIASES[str(told.bias)] * side >= side * side
    assert (told.anomaly or NO_ANOMALY) == reply["anomaly"]
    assert reply["anomaly"] in (*ANOMALIES[told.agent_id], NO_ANOMALY)
    assert (told.pattern or NO_ANOMALY) == reply.get("pattern", NO_ANOMALY)
    assert len(told.levels) == len(reply.get("levels", ()))
    assert told.horizon == reply["horizon"]


def check_reading(reply: dict[str, Any], told: AgentReport) -> None:
    assert told.regime == reply["regime"] and told.budget is not None
    assert told.budget == pytest.approx(reply["budget_pct"] / 100.0) and told.budget >= 0.4
    assert (told.first or NO_ANOMALY) == reply["first"]
    assert bool(told.points_for) is (told.bias != "NEUTRAL")


def check_decision(reply: dict[str, Any], told: AgentReport) -> None:
    side = WINNERS[str(told.winner)]
    assert HEADS[told.claim.split(":")[0]] == side
    assert all(side * (value or 0.0) >= 0.0 for value in told.adjustments.values())
    assert side or not any(told.adjustments.values())
    assert told.points_against and told.points_for and bool(told.counter) is bool(side)
    if side:
        check_words(told.counter)
        assert NUMBER.search(told.counter), told.counter
        assert {one.side for one in told.points_against} == {-side}
    assert len(told.falsifiers) == len(reply["falsifiers"])
    assert bool(told.falsifiers) is bool(side)
    assert told.win_share is not None and 0.33 <= told.win_share <= 1 / 3 + EDGE


# --- on the shipped sample ------------------------------------------------------------------------


def test_what_a_swarm_says_on_the_shipped_sample(scaled: Scale, record_property: Any) -> None:
    """Each reply fits its shape, nothing of it has to be mended, no claim is made twice."""
    heard = listen("swarm", scaled(2_000) if scaled.whole else 6)
    seen: Counter[str] = Counter()
    claims: dict[tuple[str, ...], list[str]] = {}
    for asked, reply in heard:
        if asked.role.kind == "gate":
            continue
        told = check(asked, reply)
        seen[f"{asked.role.id} {'abstains' if told.abstained else 'speaks'}"] += 1
        place = (asked.symbol, asked.timeframe, asked.bar_time)
        claims.setdefault(place, []).append(told.claim)
    for tick, made in claims.items():
        assert len(set(made)) == len(made), (tick, made)
    assert {name.split()[0] for name in seen} >= {READER_ID, "liquidity", "geometry", JUDGE_ID}
    record_property("seen", f"{len(claims)} ticks: {dict(seen)}")


# --- the mirrored market --------------------------------------------------------------------------


def bare(text: str) -> str:
    return re.sub(r"[+−-]?\d[\d,.]*%?", "#", text).lower()


def check_mirrored(here: dict[str, Any], there: dict[str, Any]) -> None:
    """Compare what is said of a market and of its mirror."""
    fields = ["points_for", "points_against"]
    # Of no side they are LONG's and SHORT's, which the mirror exchanges.
    twins_of = fields[::-1] if here.get("side") == "NONE" else fields
    for field, twin in zip(fields, twins_of, strict=True):
        for one, other in zip(here[field], there[twin], strict=True):
            for part in ("says", "why"):
                assert bare(in_mirrored_words(one[part])) == bare(other[part])
    assert here["confidence"] == there["confidence"]
    for vector, value in here.get("adjustments", {}).items():
        other = there["adjustments"][vector]
        assert (value is None) is (other is None) and (value or 0.0) == -(other or 0.0)
    if "bias" in here:
        assert BIASES[here["bias"]] == -BIASES[there["bias"]]
    same = ("horizon", "abstained", "budget_pct", "first", "win_share", "close")
    for name in same:
        assert here.get(name) == there.get(name)
    for name, twins in (
        ("regime", REGIME_TWINS), ("side", WORD_TWINS), ("anomaly", ODD_TWINS),
        ("pattern", PATTERN_TWINS),
    ):  # fmt: skip
        assert twins.get(here.get(name), here.get(name)) == there.get(name)
    assert here.get("levels") == [200.0 - price for price in there.get("levels", ())] or (
        "levels" not in here
    )
    ends = zip(here.get("falsifiers", ()), there.get("falsifiers", ()), strict=True)
    assert all({one["close"], other["close"]} == {"above", "below"} for one, other in ends)


@pytest.mark.journey
@hypothesis_settings(deadline=None, max_examples=examples(300, 25))
@given(SWARM_MARKETS)
def test_a_mirrored_market_mirrors_every_answer_and_none_has_to_be_mended(market: Values) -> None:
    there_market = mirrored(market)
    scores: Values = {f"scores.{vector}": -0.125 for vector in VECTORS}
    here_reports, there_reports = [], []
    for name in (READER_ID, *EXPERTS):
        role = AGENTS[name].role
        here, there = request(role, market), request(role, there_market | scores)
        one, other = answer(here), answer(there)
        here_reports.append(check(here, one))
        there_reports.append(check(there, other))
        check_mirrored(one, other)
    told = [tuple(reports[1:]) for reports in (here_reports, there_reports)]
    here = request(JUDGE, market | board(told[0]), tuple(here_reports))
    there = request(JUDGE, there_market | scores | board(told[1]), tuple(there_reports))
    one, other = answer(here), answer(there)
    check(here, one)
    check(there, other)
    check_mirrored(one, other)


# --- what an expert reads -------------------------------------------------------------------------

RAISES: Mapping[str, Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]]] = {
    "liquidity": {
        "a sweep": ({"liquidity.sweep_high": 1.0, "liquidity.sweep_age": 1.0},) * 2,
        "pools": ({"liquidity.pool_below_atr": 0.25},) * 2,
        "delta": ({"liquidity.delta20": -0.25},) * 2,
        "divergence": ({"liquidity.divergence": -1.0},) * 2,
        "the mean by volume": ({"liquidity.vwap_atr": -2.0}, {"liquidity.vwap_atr": 2.0}),
        "the most traded": ({"liquidity.poc_atr": -2.0}, {"liquidity.poc_atr": 2.0}),
        "effort": (
            {"liquidity.vwap_atr": 0.1, "liquidity.effort": 4.0},
            {"liquidity.vwap_atr": 2.0, "liquidity.effort": 4.0},
        ),
    },
    "microstructure": {
        "ticks": ({"flow.up_share": 0.25},) * 2,
        "the book": ({"flow.book_imbalance": -0.5},) * 2,
        "the bar": ({"technical.body_atr": -1.0},) * 2,
        "wicks": ({"technical.upper_wick": 0.5},) * 2,
    },
    "macro": {
        "a companion": ({f"{DXY}change_20": 0.5, f"{DXY}percentile": 90.0},) * 2,
        "VIX": ({"macro.vix_change_20": 4.0},) * 2,
        "funding": ({"derivs.funding_rank": 10.0}, {"derivs.funding_rank": 90.0}),
    },
    "geometry": {
        "the channel": ({"geometry.channel_slope_atr": -0.1},) * 2,
        "the place": ({"geometry.channel_place": 0.0}, {"geometry.channel_place": 1.0}),
        "the swings": ({"technical.trend_state": -1.0},) * 2,
        "structure": ({"technical.bos": -1.0},) * 2,
        **{
            name: ({f"geometry.pattern.{name}": 1.0},) * 2
            for name in PATTERNS
            if name.startswith(("head", "double_top", "bear", "descending", "rising"))
        },
    },
}
"""Evidence that leans down, in a trend and in a range."""


@cases(
    ("expert", "name", "adx", "place"),
    [
        pytest.param(expert, name, adx, place, id=f"{expert} {name} {adx}")
        for expert, rows in RAISES.items()
        for name in rows
        for place, adx in enumerate((40.0, 15.0))
        if (name, place) != ("effort", 0)
    ],
)
def test_each_piece_of_evidence_lowers_the_word_and_its_mirror_raises_it(
    expert: str, name: str, adx: float, place: int
) -> None:
    flat: Values = {f"scores.{vector}": 0.0 for vector in VECTORS}
    regime = "trend_up" if adx > 30.0 else "range"
    shown: Values = {"technical.adx14": adx, "market.regime": regime}
    changes = {**shown, **flat, **RAISES[expert][name][place]}
    down = read(request(AGENTS[expert].role, SWARM | changes))
    up = read(request(AGENTS[expert].role, mirrored(SWARM | changes)))
    for vector in AGENTS[expert].role.focus:
        less, more = down.adjustments[vector], up.adjustments[vector]
        assert less is not None and more is not None and less < 0.0 < more
    assert (down.bias, up.bias) in {("DOWN", "UP"), ("NEUTRAL", "NEUTRAL"), ("DOWN", "UP")}


def test_an_expert_moves_scores_towards_what_it_reads_and_never_past_it() -> None:
    up: Values = {"geometry.channel_slope_atr": 0.2, "geometry.channel_r2": 1.0}
    high: Values = {f"scores.{vector}": 0.9 for vector in VECTORS}
    told = said(GEOMETRY, up | high)
    assert not any(told.adjustments.values()) and told.claim.startswith("No side: ")
    assert told.bias == "UP", "its evidence leans, and the scores have said so already"


def test_a_row_of_an_expert_can_be_said_and_every_row_is_tried() -> None:
    for expert in EXPERTS:
        tried = {name for pair in RAISES[expert].values() for changes in pair for name in changes}
        for row in TABLES[expert][""]:
            assert row.reads in PHRASES, row
            if row.range < 0.0:
                assert PHRASES[row.reads].faded
            if expert != "macro":
                twins = {*tried, *mirrored({**SWARM}), *row.reads} & set(row.reads)
                assert twins


@cases("role", [LIQUIDITY, MICRO, MACRO, GEOMETRY], ids=lambda role: role.id)
def test_an_expert_without_evidence_abstains_and_with_any_does_not(role: Role) -> None:
    bare_market: Values = {"technical.adx14": 20.0, "market.regime": "range"}
    told = read(request(role, bare_market))
    assert told.abstained and told.reason.startswith("no readable evidence")
    alone = {
        "liquidity": "liquidity.vwap_atr", "microstructure": "flow.up_share",
        "macro": "macro.vix_change_20", "geometry": "technical.bos",
    }[role.id]  # fmt: skip
    assert not read(request(role, bare_market | {alone: 1.0})).abstained


def test_a_spread_that_is_dear_for_its_hour_takes_the_word_from_the_bar() -> None:
    moved: Values = {"technical.body_atr": 1.5, **{f"scores.{vector}": 0.0 for vector in VECTORS}}
    usual = said(MICRO, moved).adjustments["price_action"]
    dear = said(MICRO, moved | {"micro.spread_percentile": 80.0}).adjustments["price_action"]
    assert usual is not None and dear is not None and usual > dear > 0.0
    strong: Values = {"flow.up_share": 0.9, "flow.book_imbalance": 0.6, "technical.body_atr": 1.0}
    assert said(MICRO, strong).confidence != "low"
    thin: Values = {"micro.spread_percentile": 95.0, "micro.spread_jump": 2.0}
    assert said(MICRO, strong | thin).confidence == "low"


def test_a_companion_that_does_not_move_with_this_market_is_not_heard() -> None:
    rose: Values = {f"{DXY}change_20": 0.5, f"{DXY}percentile": 90.0}
    against, with_it = (said(MACRO, rose | {f"{DXY}correlation": n}) for n in (-0.5, 0.5))
    assert (against.bias, with_it.bias) == ("DOWN", "UP")
    assert against.points_for[0].says == "Dxy rose 0.50 % in 20 bars"
    assert "goes against this market" in against.points_for[0].why
    alone = said(MACRO, rose | {f"{DXY}correlation": 0.29})
    assert alone.bias == "NEUTRAL"


# --- what is odd ----------------------------------------------------------------------------------

ODD_CASES: list[tuple[str, Values, str]] = [
    ("liquidity", {"liquidity.divergence": 1.0, "liquidity.delta20": 0.1}, "whale_cvd_divergence"),
    ("liquidity", {"liquidity.divergence": 1.0, "liquidity.delta20": None}, NO_ANOMALY),
    ("liquidity", {"liquidity.divergence": 1.0, "liquidity.delta20": 0.01}, NO_ANOMALY),
    ("liquidity", {"liquidity.sweep_low": 1.0, "liquidity.sweep_age": 2.0}, "stop_sweep"),
    ("liquidity", {"liquidity.sweep_low": 1.0, "liquidity.sweep_age": 3.0}, NO_ANOMALY),
    ("liquidity", {"liquidity.sweep_age": 0.0}, NO_ANOMALY),
    ("microstructure", {"flow.book_imbalance": -0.71}, "imbalance"),
    ("microstructure", {"flow.book_imbalance": -0.7}, NO_ANOMALY),
    (
        "microstructure",
        {"flow.book_imbalance": 0.5, "flow.book_events": 20.0, "flow.up_share": 0.4},
        "fake_wall",
    ),
    (
        "microstructure",
        {"flow.book_imbalance": 0.5, "flow.book_events": 19.0, "flow.up_share": 0.4},
        NO_ANOMALY,
    ),
    (
        "microstructure",
        {"flow.book_imbalance": 0.5, "flow.book_events": 20.0, "flow.up_share": 0.6},
        NO_ANOMALY,
    ),
    (
        "microstructure",
        {"micro.spread_percentile": 95.0, "micro.spread_jump": 2.0},
        "fragile",
    ),
    ("microstructure", {"micro.spread_percentile": 95.0}, NO_ANOMALY),
    ("microstructure", {"flow.slippage_atr": 0.25}, "fragile"),
    ("macro", {"macro.vix_rank": 95.0}, "options_panic"),
    ("macro", {"derivs.dvol_rank": 99.0}, "options_panic"),
    ("macro", {"macro.vix_rank": 94.0}, NO_ANOMALY),
    ("macro", {"derivs.iv_slope": -0.1}, "options_panic"),
    ("macro", {"derivs.iv_slope": 0.0}, NO_ANOMALY),
    ("macro", {f"{DXY}percentile": 90.0, "technical.close": 101.0}, "macro_divergence"),
    ("macro", {f"{DXY}percentile": 90.0, "technical.close": 99.0}, NO_ANOMALY),
    (
        "macro",
        {f"{DXY}percentile": 90.0, "technical.close": 101.0, f"{DXY}correlation": -0.4},
        NO_ANOMALY,
    ),
    (
        "geometry",
        {"market.triage": "range_spike volume_spike exhaustion", "geometry.channel_place": 0.9},
        "exhaustion_top",
    ),
    (
        "geometry",
        {"market.triage": "volume_spike breakout", "technical.bos": 1.0},
        "clean_breakout",
    ),
    ("geometry", {"market.triage": "volume_spike", "technical.bos": 1.0}, NO_ANOMALY),
    (
        "geometry",
        {
            "geometry.pattern.double_top": 1.0,
            "geometry.pattern_done": 1.0,
            "technical.bos": 1.0,
        },
        "fake_breakout",
    ),
    (
        "geometry",
        {"geometry.pattern.double_top": 1.0, "geometry.pattern.bull_flag": 1.0},
        "geometric_trap",
    ),
    ("geometry", {"geometry.compression": 0.3}, "accumulation_range"),
    ("geometry", {"geometry.compression": 0.31}, NO_ANOMALY),
]


@cases(("expert", "changes", "odd"), ODD_CASES)
def test_an_anomaly_is_named_where_the_evidence_has_it_and_is_cited(
    expert: str, changes: Values, odd: str
) -> None:
    told = said(AGENTS[expert].role, changes)
    assert ((told.anomaly or NO_ANOMALY), told.flags) == (odd, ())
    if odd != NO_ANOMALY:
        assert {one.id for one in told.evidence} & set(changes)


def test_every_anomaly_of_the_closed_sets_is_tried() -> None:
    mirror = {"capitulation_bottom"}
    assert {odd for _, _, odd in ODD_CASES} - {NO_ANOMALY} == {
        odd for known in ANOMALIES.values() for odd in known
    } - mirror


def test_a_pattern_is_named_where_code_found_it_and_levels_are_those_of_code() -> None:
    assert said(GEOMETRY, {}).pattern == ""
    assert answer(request(GEOMETRY, SWARM))["levels"] == [101.0, 98.0, 103.0]
    both: Values = {"geometry.pattern.double_top": 1.0, "geometry.pattern.bull_flag": 1.0}
    up = said(GEOMETRY, both | {"geometry.channel_slope_atr": 0.1})
    assert (up.bias, up.pattern) == ("UP", "bull_flag")
    begun, done = (
        said(GEOMETRY, {"geometry.pattern.double_top": 1.0, "geometry.pattern_done": n})
        for n in (0.0, 1.0)
    )
    less, more = (one.adjustments["structure"] or 0.0 for one in (begun, done))
    assert more < less < 0.0, "what is not completed is a maybe"


# --- the reader -----------------------------------------------------------------------------------

BREAKOUT: Values = {
    "market.triage": "range_spike volume_spike breakout",
    "technical.bos": 1.0,
    "technical.volume_ratio": 3.5,
}


@cases(
    ("changes", "regime"),
    [
        ({"market.regime": "range"}, "range"),
        ({"market.regime": "volatile", **BREAKOUT}, "volatile"),
        ({"market.regime": "range", **BREAKOUT}, "trend_up"),
        ({"market.regime": "quiet", **BREAKOUT, "technical.bos": -1.0}, "trend_down"),
        ({"market.regime": "range", **BREAKOUT, "technical.volume_ratio": None}, "range"),
        ({"market.regime": "range", **BREAKOUT, "market.triage": "range_spike"}, "range"),
        ({"technical.bos": -1.0, "technical.trend_state": -1.0}, "range"),
        ({"technical.bos": -1.0}, "trend_up"),
        ({"technical.trend_state": -1.0}, "trend_up"),
        ({"market.regime": None}, "range"),
    ],
)
def test_the_reader_names_the_codes_regime_but_for_two_turns(changes: Values, regime: str) -> None:
    assert said(READER, changes).regime == regime


def test_a_turn_says_what_it_was_seen_in() -> None:
    told = said(READER, {"market.regime": "range", **BREAKOUT})
    assert told.claim.startswith(
        "Trend up: it broke out of its range on 3.5 times the usual volume"
    )
    assert told.confidence == "medium" and told.flags == ()
    assert {"market.triage", "technical.bos"} <= {one.id for one in told.evidence}


@cases(
    ("changes", "budget"),
    [
        ({}, 1.0),
        ({"technical.volatility_percentile": 80.0}, 1.0),
        ({"technical.volatility_percentile": 90.0}, 0.8),
        ({"technical.volatility_percentile": 100.0}, 0.6),
        ({"events.to_next_min": 180.0}, 1.0),
        ({"events.to_next_min": 30.0}, 0.5),
        ({"events.to_next_min": -5.0}, 1.0),
        ({"macro.vix_rank": 100.0, "technical.volatility_percentile": 100.0}, 0.5),
        ({"derivs.dvol_rank": 85.0}, 1.0),
        ({"market.spread_atr": WIDE}, 1.0),
        ({"market.spread_atr": 2.0 * WIDE}, 0.5),
        ({"market.triage": "range_spike gap"}, 0.9),
        ({"market.triage": "range_spike volume_spike exhaustion"}, 0.7),
    ],
)
def test_the_smallest_factor_is_the_budget_and_is_said(changes: Values, budget: float) -> None:
    told = said(READER, changes)
    assert told.budget == pytest.approx(budget)
    assert ("% of an opening is left" in told.claim) is (budget < 1.0)


@cases(
    ("changes", "first"),
    [
        ({}, "macro"),
        ({"macro.vix_change_20": None, "macro.vix_rank": None}, "macro"),
        ({"market.regime": "range"}, "liquidity"),
        ({"market.regime": "volatile"}, "liquidity"),
        ({"market.regime": "quiet"}, ""),
    ],
)
def test_who_goes_first_goes_by_the_regime(changes: Values, first: str) -> None:
    assert said(READER, changes).first == first
    chart = {
        name: value for name, value in SWARM.items() if not name.startswith(("macro.", "companion"))
    }
    assert read(request(READER, chart)).first == "geometry"


# --- the judge ------------------------------------------------------------------------------------


@cases(
    ("values", "changes", "side"),
    [
        ((0.1, 0.1, 0.1, 0.1), {}, "LONG"),
        ((-0.1, -0.1, -0.1, -0.1), {}, "SHORT"),
        ((0.01, 0.01, 0.01, 0.01), {}, "NONE"),
        ((0.3, -0.05, -0.05), {}, "NONE"),
        ((0.2, 0.2, -0.1), {}, "LONG"),
        ((0.1, 0.1, 0.1, 0.1), {"board.dominant": "SHORT"}, "NONE"),
        ((0.1, 0.1, 0.1, 0.1), {"technical.sma50": 101.0}, "LONG"),
        (
            (0.1, 0.1, 0.1, 0.1),
            {
                "technical.sma50": 108.0,
                "technical.ema20": 106.0,
                "technical.trend_state": -1.0,
                "technical.bos": -1.0,
                "technical.plus_di": 5.0,
                "technical.minus_di": 40.0,
                "technical.rsi14": 25.0,
            },
            "NONE",
        ),
        ((), {}, "NONE"),
    ],
)
def test_a_side_is_taken_where_experts_board_and_chart_allow_it(
    values: tuple[float, ...], changes: Values, side: str
) -> None:
    told = decided(*values, changes=changes)
    assert (told.winner, told.flags) == (side, ())
    moved = [value for value in told.adjustments.values() if value]
    assert bool(moved) is (side != "NONE")
    assert all(abs(value) <= RESEARCHER_BOUND for value in moved)


@cases(
    ("values", "conflicts", "reward", "share"),
    [
        ((0.1, 0.1, 0.1, 0.1), 0, None, 1 / 3 + EDGE),
        ((0.1, 0.1, 0.1, 0.1), 0, 3.0, 1 / 4 + EDGE),
        ((0.1, 0.1, 0.1, 0.0), 0, None, 1 / 3 + 0.75 * EDGE),
        ((0.2, 0.2, 0.2, -0.1), 0, None, 1 / 3 + 0.5 * EDGE),
        ((0.2, 0.2, 0.2, -0.1), 1, None, 1 / 3 + (0.5 - DISPUTE) * EDGE),
        ((0.2, 0.2, 0.2, -0.1), 3, None, 1 / 3),
        ((0.01, 0.01), 0, None, 1 / 3),
        ((0.1, 0.1, 0.1, 0.1), 0, 0.0, 1 / 3 + EDGE),
    ],
)
def test_the_win_share_is_that_of_a_driftless_price_and_a_share_of_the_consensus(
    values: tuple[float, ...], conflicts: int, reward: float | None, share: float
) -> None:
    told = decided(*values, conflicts=conflicts, changes={"stakes.reward_r": reward})
    assert told.win_share == pytest.approx(share, abs=1e-4)


def test_a_decision_argues_against_itself_in_closes_yet_to_come() -> None:
    values: Values = {"technical.resistance_distance_atr": 0.5, "technical.ema20": 99.0}
    told = decided(0.1, 0.1, 0.1, 0.1, changes=values)
    assert told.counter.startswith("Resistance is 0.50 ATR above")
    assert all(end.startswith("a close below ") for end in told.falsifiers)
    assert told.claim.startswith("Long: 4 of 4 experts lean up, and the close is 1.0 ATR above")


@cases(
    ("position", "values", "sure", "conflicts", "closes"),
    [
        ("SHORT", (0.3, 0.3, 0.3, 0.3), "high", 0, True),
        ("LONG", (-0.3, -0.3, -0.3, -0.3), "high", 0, True),
        ("LONG", (0.3, 0.3, 0.3, 0.3), "high", 0, False),
        (None, (0.3, 0.3, 0.3, 0.3), "high", 0, False),
        ("SHORT", (0.1, 0.1, 0.1, 0.1), "low", 0, False),
        ("SHORT", (0.3, 0.3, 0.3, 0.3), "medium", 3, False),
        ("SHORT", (0.3, 0.3, 0.3, -0.04), "high", 0, False),
    ],
)
def test_a_close_is_asked_for_only_against_a_clear_other_side(
    position: str | None,
    values: tuple[float, ...],
    sure: Confidence,
    conflicts: int,
    closes: bool,
) -> None:
    changes: Values = {"memory.position": position}
    told = decided(*values, conflicts=conflicts, changes=changes, sure=sure)
    assert (told.close, told.winner != "NONE") == (closes, True)


def test_the_reader_and_the_order_of_the_reports_change_no_decision() -> None:
    reports = swarm(0.2, 0.2, -0.1, 0.05)
    beside = replace(said(READER, {}), agent_id=READER_ID)
    values = SWARM | board(reports)
    alone = answer(request(JUDGE, values, reports))
    assert answer(request(JUDGE, values, (beside, *reports))) == alone
    turned = answer(request(JUDGE, values, reports[::-1]))
    assert {**turned, "evidence": ()} == {**alone, "evidence": ()}


def test_nobody_takes_a_side_without_saying_why() -> None:
    assert decided(0.01, 0.01).claim == (
        "No side: of 2 experts 2 lean up and 0 down, too softly to count; "
        "a close outside 99 to 101 decides."
    )
    assert decided(0.3, -0.3).claim == (
        "No side: of 2 experts 1 leans up and 1 down; a close outside 99 to 101 decides."
    )
    assert decided(-0.1, -0.1, changes={"board.dominant": "LONG"}).claim.endswith(
        "and the chart reads the other way; a close outside 99 to 101 decides."
    )
    assert TAKES > 0.0
