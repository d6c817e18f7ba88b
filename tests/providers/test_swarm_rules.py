"""The rules in a swarm's seats: the reader of the regime, the four experts, the judge."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from agent_config import EXPERTS, JUDGE_ID, READER_ID
from agents.contracts import ANOMALIES, BIASES, NO_ANOMALY, VECTORS, AgentReport
from agents.phrases import mirrored as in_mirrored_words
from tests.cases import cases
from tests.examples import examples
from tests.providers.test_rules_provider import HERE
from tests.worlds.mirrors import (
    DXY,
    ODD_TWINS,
    PATTERN_TWINS,
    REGIME_TWINS,
    SWARM,
    SWARM_MARKETS,
    WORD_TWINS,
    Values,
    mirrored_swarm,
)
from tests.worlds.rule_seats import SEATS, answer, opinion, pairs, read, request, rows

UP: Values = {"geometry.channel_slope_atr": 0.2, "geometry.channel_r2": 1.0}


def said(seat: str, changes: Values, *reports: AgentReport) -> AgentReport:
    return read(request(seat, SWARM | changes, reports))


def swarm(*values: float) -> tuple[AgentReport, ...]:
    return tuple(opinion(*made) for made in zip(EXPERTS, values, strict=False))


def board(reports: tuple[AgentReport, ...]) -> Values:
    """Return the features of a board, as far as the judge decides by them."""
    lean = sum(value or 0.0 for one in reports for value in one.adjustments.values())
    side = "LONG" if lean > 0 else "SHORT" if lean < 0 else "NONE"
    return {"board.lean": lean, "board.dominant": side, "board.conflicts": 0.0}


def decided(*values: float, **changes: Any) -> AgentReport:
    reports = swarm(*values)
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return said(JUDGE_ID, board(reports) | named, *reports)


# --- the mirrored market --------------------------------------------------------------------------

TWINS = {"bull_researcher": "bear_researcher", "bear_researcher": "bull_researcher"}
SIDES = {"Long": "Short", "Short": "Long", "bull's": "bear's", "bear's": "bull's"}
SIDES |= {"Buy": "Sell", "Sell": "Buy", "buy": "sell", "sell": "buy"}


def turned(text: str) -> str:
    """Return a text of the mirrored market, its numbers left out."""
    text = re.sub(
        rf"\b({'|'.join(SIDES)})\b", lambda found: SIDES[found[0]], in_mirrored_words(text)
    )
    return bare(text)


def bare(text: str) -> str:
    return re.sub(r"[+−-]?\d[\d,.]*%?", "#", text).lower()


def check_mirrored(here: dict[str, Any], there: dict[str, Any]) -> None:
    """Compare what is said of a market and of its mirror: every number, word and side."""
    fields = ["points_for", "points_against"]
    # Of no side they are LONG's and SHORT's, which the mirror exchanges.
    neither = "NONE" in (here.get("side"), here.get("winner"))
    for field, twin in zip(fields, fields[:: -1 if neither else 1], strict=True):
        for one, other in zip(here[field], there[twin], strict=True):
            assert turned(one["says"]) == bare(other["says"])
            assert turned(one["why"]) == bare(other["why"])
    if here["points_for"] and not neither:
        claim, mirror = (reply["claim"].partition("; odd: ")[0] for reply in (here, there))
        assert turned(claim) == bare(mirror)
    assert list(map(turned, here.get("risks", ()))) == list(map(bare, there.get("risks", ())))
    for vector, value in here.get("adjustments", {}).items():
        other = there["adjustments"][vector]
        assert (value is None) is (other is None) and (value or 0.0) == -(other or 0.0)
    for name in (
        "confidence", "horizon", "horizon_bars", "abstained", "budget_pct", "first", "win_share",
        "close", "decline", "reason_code",
    ):  # fmt: skip
        assert here.get(name) == there.get(name)
    assert BIASES[here.get("bias", "NEUTRAL")] == -BIASES[there.get("bias", "NEUTRAL")]
    for name, twins in (
        ("regime", REGIME_TWINS), ("side", WORD_TWINS), ("winner", WORD_TWINS),
        ("anomaly", ODD_TWINS), ("pattern", PATTERN_TWINS),
    ):  # fmt: skip
        assert twins.get(here.get(name, ""), here.get(name)) == there.get(name)
    weights = {TWINS[name]: weight for name, weight in here.get("weights", {}).items()}
    assert weights == there.get("weights", {})
    assert here.get("levels", []) == [200.0 - price for price in there.get("levels", [])]
    for field in ("falsifiers", "invalidation"):
        for one, other in zip(here.get(field, ()), there.get(field, ()), strict=True):
            assert turned(one["close"]) == other["close"] and turned(one["what"]) == bare(
                other["what"]
            )
            assert one["level"] == pytest.approx(200.0 - other["level"])


@pytest.mark.journey
@settings(deadline=None, max_examples=examples(300, 25))
@given(SWARM_MARKETS)
def test_a_mirrored_market_mirrors_every_answer_and_none_has_to_be_mended(market: Values) -> None:
    scores: Values = {f"scores.{vector}": -0.125 for vector in VECTORS}
    markets = market, mirrored_swarm(market) | scores
    reports: tuple[list[AgentReport], list[AgentReport]] = [], []
    for seat in (READER_ID, *EXPERTS, JUDGE_ID):
        replies = []
        for values, told in zip(markets, reports, strict=True):
            shown = board(tuple(told[1:])) if seat == JUDGE_ID else {}
            asked = request(seat, values | shown, tuple(told))
            replies.append(answer(asked))
            told.append(read(asked, replies[-1]))
            assert told[-1].flags == ()
        check_mirrored(*replies)


# --- the experts ----------------------------------------------------------------------------------


def test_an_expert_moves_scores_towards_what_it_reads_and_never_past_it() -> None:
    told = said("geometry", UP | {f"scores.{vector}": 0.9 for vector in VECTORS})
    assert not any(told.adjustments.values()) and told.claim.startswith("No side: ")
    assert told.bias == "UP", "its evidence leans, and the scores have said so already"


def test_a_spread_that_is_dear_for_its_hour_takes_the_word_from_the_bar() -> None:
    moved: Values = {"technical.body_atr": 1.5, **{f"scores.{vector}": 0.0 for vector in VECTORS}}
    dear: Values = {"micro.spread_percentile": 80.0}
    words = [
        said("microstructure", moved | more).adjustments["price_action"] or 0.0
        for more in ({}, dear)
    ]
    assert words[0] > words[1] > 0.0
    strong: Values = {"flow.up_share": 0.9, "flow.book_imbalance": 0.6, "technical.body_atr": 1.0}
    assert said("microstructure", strong).confidence != "low"
    thin: Values = {"micro.spread_percentile": 95.0, "micro.spread_jump": 2.0}
    assert said("microstructure", strong | thin).confidence == "low"


def test_a_companion_that_does_not_move_with_this_market_is_not_heard() -> None:
    rose: Values = {f"{DXY}change_20": 0.5, f"{DXY}percentile": 90.0}
    against, alone, with_it = (
        said("macro", rose | {f"{DXY}correlation": n}) for n in (-0.5, 0.29, 0.5)
    )
    assert (against.bias, alone.bias, with_it.bias) == ("DOWN", "NEUTRAL", "UP")
    assert against.points_for[0].says == "Dxy rose 0.50 % in 20 bars"
    assert "goes against this market" in against.points_for[0].why


ODD = [row for row in rows(HERE / "rule_cases.csv") if row[3].startswith("anomaly=")]


@cases(("seat", "market", "reports", "expected"), ODD)
def test_an_anomaly_is_cited_where_it_is_named(
    seat: str, market: str, reports: str, expected: str
) -> None:
    cited = {item.id for item in said(seat, pairs(market)).evidence}
    assert "anomaly=none" in expected or cited & set(pairs(market))


def test_every_anomaly_of_the_closed_sets_is_tried() -> None:
    tried = {row[3].removeprefix("anomaly=") for row in ODD} | {"capitulation_bottom"}
    assert tried - {NO_ANOMALY} == {odd for known in ANOMALIES.values() for odd in known}


def test_a_pattern_is_named_where_code_found_it_and_levels_are_those_of_code() -> None:
    assert said("geometry", {}).pattern == ""
    assert answer(request("geometry", SWARM))["levels"] == [101.0, 98.0, 103.0]
    top: Values = {"geometry.pattern.double_top": 1.0}
    up = said("geometry", top | {"geometry.pattern.bull_flag": 1.0} | UP)
    assert (up.bias, up.pattern) == ("UP", "bull_flag")
    begun, done = (
        said("geometry", top | {"geometry.pattern_done": n}).adjustments["structure"] or 0.0
        for n in (0.0, 1.0)
    )
    assert done < begun < 0.0, "what is not completed is a maybe"


# --- the reader and the judge ---------------------------------------------------------------------


def test_a_turn_names_what_it_was_seen_in_and_a_budget_is_said() -> None:
    turn = said(
        READER_ID,
        pairs("market.regime=range; market.triage=range_spike volume_spike breakout")
        | {"technical.bos": 1.0, "technical.volume_ratio": 3.5},
    )
    start = "Trend up: it broke out of its range on 3.5 times the usual volume, and 70 % of an"
    assert turn.claim.startswith(start) and turn.confidence == "medium"
    assert {"market.triage", "technical.bos"} <= {item.id for item in turn.evidence}
    assert "% of an opening" not in said(READER_ID, {}).claim
    chart: Values = {
        name: value for name, value in SWARM.items() if not name.startswith(("macro.", "companion"))
    }
    assert read(request(READER_ID, chart)).first == "geometry"


def test_a_decision_argues_against_itself_in_closes_yet_to_come() -> None:
    told = decided(
        0.1, 0.1, 0.1, 0.1, technical__resistance_distance_atr=0.5, technical__ema20=99.0
    )
    assert told.counter.startswith("Resistance is 0.50 ATR above")
    assert all(end.startswith("a close below ") for end in told.falsifiers) and told.falsifiers
    assert told.claim.startswith("Long: 4 of 4 experts lean up, and the close is 1.0 ATR above")
    bound = SEATS[JUDGE_ID].bound
    assert all(0.0 < (value or 0.0) <= bound for value in told.adjustments.values())


def test_the_reader_and_the_order_of_the_reports_change_no_decision() -> None:
    reports = swarm(0.2, 0.2, -0.1, 0.05)
    beside = replace(said(READER_ID, {}), agent_id=READER_ID)
    values = SWARM | board(reports)
    alone = answer(request(JUDGE_ID, values, reports))
    assert answer(request(JUDGE_ID, values, (beside, *reports))) == alone
    swapped = answer(request(JUDGE_ID, values, reports[::-1]))
    assert {**swapped, "evidence": ()} == {**alone, "evidence": ()}


@cases(
    ("values", "dominant", "why"),
    [
        ((0.01, 0.01), "LONG", "of 2 experts 2 lean up and 0 down, too softly to count"),
        ((0.3, -0.3), "NONE", "of 2 experts 1 leans up and 1 down"),
        (
            (-0.1, -0.1),
            "LONG",
            "of 2 experts 0 lean up and 2 down, and the chart reads the other way",
        ),
    ],
)
def test_nobody_takes_a_side_without_saying_why(
    values: tuple[float, ...], dominant: str, why: str
) -> None:
    claim = decided(*values, board__dominant=dominant).claim
    assert claim == f"No side: {why}; a close outside 99 to 101 decides."
