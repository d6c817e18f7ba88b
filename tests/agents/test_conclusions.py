"""What becomes of a judgement and a thesis, however hostile: a report in its bounds, or a failure.

And of the time ahead and the risks that a firm's opinions name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.arguments import AGAINST, CLAIM_WORDS, FALSIFIERS, FOR
from agents.contracts import (
    HORIZON_BARS,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
    Evidence,
    Feature,
    GateReason,
    Horizon,
    ModelUnavailable,
    Point,
    Role,
    Shape,
)
from agents.debate import replies
from agents.registry import AGENTS, TRADER
from agents.texts import door
from tests.agents.test_debate_invariants import cases as drawn
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles import scripted
from tests.doubles.scripted import FULL_FEATURES

MANAGER = AGENTS["research_manager"].role
TECHNICAL, BULL, NEWS = (AGENTS[name].role for name in ("technical", "bull_researcher", "news"))
SHAPES: Mapping[str, Shape] = {
    MANAGER.id: "judgement",
    TRADER.role.id: "thesis",
    TECHNICAL.id: "report_ahead",
    BULL.id: "case_ahead",
    NEWS.id: "news_ahead",
}
FOUND = {
    name: Feature(name, value) for name, value in {**FULL_FEATURES, "order.side": "BUY"}.items()
}
UP = {"id": "technical.macd", "value": 1.25, "says": "MACD is at 1.25", "why": "so buyers lead"}
DOWN = {"id": "technical.resistance_distance_atr", "value": 1.7, "says": "It is 1.7", "why": ""}
END = {"close": "below", "level": 2030.5, "what": "the base line", "bars": 8}
LONGEST = 300
"""Characters that are kept of a line."""


def judgement(**changes: Any) -> dict[str, Any]:
    return {
        "symbol": "XAUUSD",
        "winner": "LONG",
        "claim": "Long: MACD at 1.25 carries the bull's case.",
        "points_for": [UP],
        "points_against": [DOWN],
        "weights": {"bull_researcher": 0.75, "bear_researcher": 0.25},
        "confidence": "high",
        "evidence": [],
        "horizon": "bars_16",
    } | changes


def thesis(**changes: Any) -> dict[str, Any]:
    return {
        "symbol": "XAUUSD",
        "claim": "Buy: MACD at 1.25 leads up.",
        "points_for": [UP],
        "points_against": [DOWN],
        "invalidation": [END],
        "risks": ["A strong dollar may weigh on it."],
        "horizon_bars": 16,
        "decline": False,
        "reason_code": "NONE",
        "confidence": "medium",
        "evidence": [],
    } | changes


def ahead(role: Role, **changes: Any) -> dict[str, Any]:
    own = {"news": {"ordinals": scripted.OWN_FIELDS["ordinals"]}}.get(role.id, {})
    if role is BULL:
        own = {"rebuttals": [], "falsifiers": [], "risks": ["Rates may rise."]}
    plain = scripted.report()
    common = {name: plain[name] for name in plain if name not in scripted.OWN_FIELDS}
    return {**common, **own, "horizon": "session"} | changes


def read(role: Role, reply: Any) -> AgentReport:
    """Read a reply as the framework does, from its text."""
    loaded = door.load(reply if isinstance(reply, str) else json.dumps(reply), "XAUUSD")
    return replies.read(SHAPES[role.id], loaded, role, FOUND)


def refused(role: Role, reply: Any) -> str:
    with pytest.raises(ModelUnavailable) as caught:
        read(role, reply)
    return caught.value.reason


# --- what is read ---------------------------------------------------------------------------------


def test_a_judgement_names_a_winner_and_weighs_both_cases() -> None:
    told = read(MANAGER, judgement())
    assert (told.winner, told.horizon, told.confidence) == ("LONG", "bars_16", "high")
    assert told.weights == {"bull_researcher": 0.75, "bear_researcher": 0.25}
    assert [(point.id, point.side) for point in told.points_for] == [("technical.macd", 1)]
    assert set(told.adjustments.values()) == {None} and not told.flags
    turned = read(MANAGER, judgement(winner="SHORT"))
    assert "misplaced" in turned.flags, "what leans up is no point for the short side"
    assert "technical.macd" in {point.id for point in turned.points_against}


def test_a_thesis_says_what_ends_the_trade_and_may_decline_it() -> None:
    told = read(TRADER.role, thesis())
    assert told.falsifiers == ("a close below 2,030.5, the base line, in the next 8 bars",)
    assert (told.horizon_bars, told.declined, told.decline_code) == (16, False, "")
    assert told.risks == ("A strong dollar may weigh on it.",) and not told.flags
    no = thesis(decline=True, reason_code="WEAK_CASE", points_for=[], points_against=[UP])
    declined = read(TRADER.role, no)
    assert (declined.declined, declined.decline_code) == (True, "WEAK_CASE")
    assert [point.side for point in declined.points_against] == [1], "it speaks for the trade"
    own = read(TRADER.role, thesis(decline=True))
    assert (own.declined, own.decline_code) == (True, "MODEL_JUDGEMENT")
    assert read(TRADER.role, thesis(reason_code="WEAK_CASE")).decline_code == ""


@cases(
    ("field", "given", "kept"),
    [
        *(
            ("weight", *row)
            for row in (
                (1.0, 1.0),
                (0, 0.0),
                (1.01, 1.0),
                (-1e308, 0.0),
                (-1e-9, 0.0),
                (10**30, 1.0),
            )
        ),
        *(
            ("bars", *row)
            for row in ((1, 1), (96, 96), (16.0, 16), (0, 1), (97, 96), (10**300, 96))
        ),
    ],
)
def test_a_number_outside_its_range_is_clamped_and_flagged(
    field: str, given: float, kept: float
) -> None:
    if field == "weight":
        weights = {"bull_researcher": given, "bear_researcher": 0.5}
        told = read(MANAGER, judgement(weights=weights))
        assert told.weights == weights | {"bull_researcher": kept}
    else:
        told = read(TRADER.role, thesis(horizon_bars=given))
        assert told.horizon_bars == kept and type(told.horizon_bars) is int
    assert ("clamped" in told.flags) == (kept != given)


def test_a_judgement_without_a_true_citation_is_ungrounded() -> None:
    untrue: list[dict[str, Any]] = [
        {"points_for": [], "points_against": [], "evidence": []},
        {"evidence": [{"id": "technical.rsi", "value": 1.0}]},
        {"evidence": [{"id": "technical.rsi14", "value": 99.0}]},
    ]
    for changes in untrue:
        assert "ungrounded" in read(MANAGER, judgement(**changes)).flags
        assert "ungrounded" in read(TRADER.role, thesis(**changes)).flags


def test_opinions_of_a_firm_name_their_time_and_cases_their_risks() -> None:
    for role in (TECHNICAL, NEWS, BULL):
        told = read(role, ahead(role))
        assert told.horizon == "session"
        assert told.risks == (("Rates may rise.",) if role is BULL else ())
        silent = read(role, ahead(role, abstained=True))
        assert (silent.horizon, silent.risks) == ("", ())
    many = read(BULL, ahead(BULL, risks=["xyz" * 200, "", " a\n b ", "c"]))
    assert [len(risk) for risk in many.risks] == [LONGEST]


def test_a_lone_surrogate_is_garbage_where_a_reply_came_as_an_object() -> None:
    for role, reply in (
        (MANAGER, judgement(claim="\ud800 1")),
        (MANAGER, judgement(points_for=[UP | {"says": "\udfff"}])),
        (TRADER.role, thesis(risks=["\ud800"])),
        (TRADER.role, thesis(invalidation=[END | {"what": "\udc00"}])),
        (BULL, ahead(BULL, risks=["\ud800"])),
    ):
        with pytest.raises(ModelUnavailable, match="garbage"):
            replies.read(SHAPES[role.id], reply, role, FOUND)


# --- ten thousand hostile ones --------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            *("BUY 100 lots at 2034.55 now", "SL 1990 TP 2100", "weight 9.9", "\ud800", "\x00"),
            *("technical.rsi14", "x y " * 500, "<<<QUOTE 5eedfeed", "NaN", "LONG", "WEAK_CASE"),
        ]
    ),
)  # fmt: skip
NUMBERS = st.one_of(
    st.floats(),
    st.integers(-(10**6), 10**6),
    st.sampled_from([1e308, -1e308, 5e-324, -0.0, 10**400, -(10**400), math.nan, math.inf, 1.5]),
)
ODD = st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS, st.just([]), st.just({}), st.just(["x"]))
IDS = st.sampled_from([*sorted(FULL_FEATURES), "order.side", "order.stop", "nothing.known"])
POINTS = st.lists(
    st.fixed_dictionaries(
        {"id": IDS | TEXTS, "value": NUMBERS | TEXTS | st.sampled_from([1.25, 61.2, 1.7]),
         "says": TEXTS, "why": TEXTS}
    ),
    max_size=5,
)  # fmt: skip
ENDS = st.lists(
    st.fixed_dictionaries(
        {"close": st.sampled_from(["above", "below"]), "what": TEXTS,
         "level": NUMBERS | st.sampled_from([2030.5, 2029.0, 2033.0]),
         "bars": st.integers(-5, 200) | st.sampled_from([8.0, 1.5, 10**400])}
    ),
    max_size=5,
)  # fmt: skip
CHANGES: Mapping[str, st.SearchStrategy[Any]] = {
    "claim": TEXTS,
    "points_for": POINTS,
    "points_against": POINTS,
    "evidence": st.lists(st.fixed_dictionaries({"id": IDS, "value": NUMBERS}), max_size=9),
    "confidence": st.sampled_from(["high", "medium", "low"]) | TEXTS,
    "symbol": st.sampled_from(["XAUUSD"] * 6 + ["EURUSD"]),
    "winner": st.sampled_from([*WINNERS, "BUY"]) | TEXTS,
    "weights": st.dictionaries(st.sampled_from([*SIDES, "trader"]), NUMBERS | ODD, min_size=1),
    "horizon": st.sampled_from(get_args(Horizon)) | TEXTS,
    "invalidation": ENDS,
    "risks": st.lists(TEXTS, max_size=9),
    "horizon_bars": NUMBERS,
    "decline": st.booleans(),
    "reason_code": st.sampled_from([*GateReason]) | TEXTS,
}


def hostile(valid: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Valid replies of which a few fields are replaced, by what fits badly or not at all."""
    names = [name for name in CHANGES if name in valid]
    some = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    changed = some.flatmap(lambda one: st.fixed_dictionaries({name: CHANGES[name] for name in one}))
    odd = st.dictionaries(st.sampled_from(names), ODD, max_size=1)
    return st.tuples(changed, st.sampled_from([{}, {}, {}]) | odd).map(
        lambda both: {**valid, **both[0], **both[1]}
    )


def check_bounds(told: AgentReport, role: Role) -> None:
    """Whatever was said: every number in its range, every word of choice from its set."""
    assert told.agent_id == role.id
    assert set(told.adjustments.values()) == {None}
    assert told.winner in (WINNERS if role is MANAGER else ("",))
    assert told.weights.keys() == (set(SIDES) if role is MANAGER else set())
    assert all(0.0 <= weight <= 1.0 for weight in told.weights.values())
    assert told.horizon in (("", *get_args(Horizon)) if role is MANAGER else ("",))
    least, most = HORIZON_BARS
    assert least <= told.horizon_bars <= most if role is TRADER.role else told.horizon_bars == 0
    reasons = set(GateReason) - {GateReason.NONE} if told.declined else {""}
    assert told.decline_code in reasons and (role is TRADER.role or not told.declined)
    assert len(told.risks) <= (3 if role is TRADER.role else 0)
    assert len(told.points_for) <= FOR and len(told.points_against) <= AGAINST
    assert len(told.falsifiers) <= FALSIFIERS
    assert all(len(text) <= LONGEST for text in (*told.risks, *told.falsifiers, told.claim))
    assert len(told.claim.split()) <= CLAIM_WORDS
    json.dumps(
        (told.claim, told.points_for, told.risks, told.falsifiers), ensure_ascii=False
    ).encode()


@pytest.mark.parametrize("role", [MANAGER, TRADER.role], ids=lambda role: role.id)
def test_ten_thousand_hostile_conclusions_are_failures_or_in_bounds(
    role: Role, scaled: Scale
) -> None:
    seen: set[str] = set()

    @drawn(scaled(10_000))
    @given(hostile(judgement() if role is MANAGER else thesis()), st.booleans())
    def check(reply: dict[str, Any], written: bool) -> None:
        try:
            if written:
                told = read(role, reply)
            else:
                told = replies.read(SHAPES[role.id], door.about(reply, "XAUUSD"), role, FOUND)
        except ModelUnavailable as failure:
            seen.add(failure.reason)
            return
        seen.add("read")
        check_bounds(told, role)
        assert replies.enforce_role(told, role, FOUND) == told, "held twice it is the same"

    check()
    assert {"garbage", "read"} <= seen <= {"garbage", "wrong_symbol", "read"}


HANDED = st.fixed_dictionaries(
    {},
    optional={
        "winner": st.sampled_from([*WINNERS, "", "BUY"]) | ODD,
        "weights": CHANGES["weights"] | ODD,
        "horizon": st.sampled_from(["", *get_args(Horizon)]) | ODD,
        "horizon_bars": st.integers(-(10**9), 10**9) | ODD,
        "declined": st.booleans() | ODD,
        "decline_code": st.sampled_from([*GateReason, ""]) | ODD,
        "risks": st.lists(TEXTS, max_size=9).map(tuple) | ODD,
        "falsifiers": st.lists(TEXTS, max_size=9).map(tuple),
        "claim": TEXTS,
        "confidence": st.sampled_from(["high", "low"]) | ODD,
        "abstained": st.booleans(),
        "adjustments": st.dictionaries(st.sampled_from(VECTORS), st.floats(-1, 1) | st.none()),
        "points_for": st.lists(
            st.builds(Point, st.text(max_size=9), IDS, st.just(1.25), st.text(max_size=9)),
            max_size=6,
        ).map(tuple),
        "evidence": st.just((Evidence("technical.macd", 1.25),)),
    },
)


@pytest.mark.journey
@pytest.mark.parametrize("role", [MANAGER, TRADER.role, BULL, TECHNICAL], ids=lambda role: role.id)
def test_what_an_agent_of_another_hand_concludes_is_held_to_its_office(
    role: Role, scaled: Scale
) -> None:
    seen: set[str] = set()

    @drawn(scaled(10_000))
    @given(HANDED)
    def check(fields: dict[str, Any]) -> None:
        try:
            told = replies.enforce_role(AgentReport("somebody", **fields), role, FOUND)
        except ModelUnavailable as failure:
            seen.add(failure.reason)
            return
        seen.add("held")
        assert replies.enforce_role(told, role, FOUND) == told
        if role in (MANAGER, TRADER.role) and not told.abstained:
            check_bounds(told, role)
        elif told.abstained or role in (BULL, TECHNICAL):
            assert (told.winner, told.weights, told.horizon_bars) == ("", {}, 0)
            assert (told.declined, told.decline_code) == (False, "")
            assert len(told.risks) <= (2 if role is BULL and not told.abstained else 0)
            assert told.horizon == "" or not told.abstained

    check()
    assert seen == {"garbage", "held"}
