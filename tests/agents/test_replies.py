"""What becomes of a reply: a report held to its role, or a failure with a reason."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, cast, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agents.arguments import CLAIM_WORDS, report_side
from agents.contracts import (
    ORDINALS,
    VECTORS,
    AgentReport,
    Evidence,
    Feature,
    GateRuling,
    ModelUnavailable,
    Point,
    Role,
    Shape,
)
from agents.debate import replies
from agents.evidence import trust
from agents.features import sides
from agents.registry import AGENTS, TRADER
from agents.texts import door
from scoring_rubric import OWN_FLAGS
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import FEATURES, OWN_FIELDS, Scripted, a_report, debate, ruling

TECHNICAL = AGENTS["technical"].role
BULL = AGENTS["bull_researcher"].role
BEAR = AGENTS["bear_researcher"].role
NEWS = AGENTS["news"].role
GATE = AGENTS["risk_gate"].role
FOUND = {name: Feature(name, value) for name, value in FEATURES.items()}


SHAPES: dict[str, Shape] = {"risk_gate": "ruling", "bull_researcher": "case", "news": "news"}


def report(**changes: Any) -> dict[str, Any]:
    """A valid report of an analyst: what a case or the news has beside it is left out."""
    told = scripted.report(**changes)
    return {name: told[name] for name in told if name not in scripted.OWN_FIELDS or name in changes}


def a_case(**changes: Any) -> dict[str, Any]:
    """A valid case of a researcher."""
    return report(**{"rebuttals": [], "falsifiers": [], **changes})


POINT: dict[str, Any] = {
    "id": "technical.rsi14", "value": 61.2, "says": "RSI stands at 61", "why": "so buyers lead",
}  # fmt: skip
REBUTTAL: dict[str, Any] = {
    "id": "technical.rsi14", "value": 61.2, "says": "RSI is not stretched yet.", "grants": False,
}  # fmt: skip
FALSIFIER: dict[str, Any] = {"close": "below", "level": 1.0, "what": "the swing low", "bars": 8}


def check_sides(told: AgentReport, role: Role) -> None:
    """Every point of a report stands on the side of its field, by the feature that it cites."""
    side = report_side(role, told.adjustments)
    for field, points in ((1, told.points_for), (-1, told.points_against)):
        for point in points:
            assert point.side in (*sides(point.id, FOUND), 0)
            assert not side or point.side == side * field


def read(reply: Any, role: Role = TECHNICAL) -> AgentReport:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    loaded = door.load(text, "XAUUSD")
    return replies.read(SHAPES.get(role.id, "report"), loaded, role, FOUND)


def refusal(reply: Any, role: Role = TECHNICAL) -> str:
    with pytest.raises(ModelUnavailable) as caught:
        read(reply, role)
    return caught.value.reason


def without(reply: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in reply.items() if key != name}


VALID = json.dumps(report())
NUMBER = '"price_action": 0.1'


def with_number(text: str) -> str:
    assert NUMBER in VALID
    return VALID.replace(NUMBER, f'"price_action": {text}')


@cases(
    "text",
    [
        *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 400, "9" * 5000),
        *('"0.1"', '"N/A"', "true", "false", "[0.1]", "{}", '""'),
    ],
)
def test_what_is_no_finite_number_is_garbage_not_a_vote(text: str) -> None:
    assert refusal(with_number(text)) == "garbage"
    case = json.dumps(a_case()).replace(NUMBER, f'"price_action": {text}')
    assert refusal(case.replace("price_action", "momentum"), BULL) == "garbage"


@cases("value", [None, 3, b"{}", ["{}"], {"text": "{}"}])
def test_what_is_no_text_is_garbage(value: Any) -> None:
    with pytest.raises(ModelUnavailable, match="garbage"):
        door.load(value, "XAUUSD")


WHOLE: dict[str, dict[str, Any]] = {
    "report": report(),
    "case": a_case(rebuttals=[REBUTTAL], falsifiers=[FALSIFIER]),
    "news": report(ordinals=OWN_FIELDS["ordinals"]),
    "ruling": ruling(evidence=[{"id": "technical.rsi14", "value": 61.2}]),
    "judgement": scripted.judgement(),
    "thesis": scripted.thesis(invalidation=[FALSIFIER]),
    "regime": scripted.regime(),
    "decision": scripted.decision(falsifiers=[FALSIFIER]),
    **dict.fromkeys(
        ("finding", "geometry", "report_ahead"), report(**scripted.SWARM_FIELDS, horizon="days")
    ),
    "case_ahead": a_case(horizon="days", risks=["Rates may rise."]),
    "news_ahead": report(ordinals=OWN_FIELDS["ordinals"], horizon="days"),
}
"""A valid reply of every shape that becomes a report."""
SEATS = {
    "judgement": "research_manager",
    "thesis": "trader",
    "regime": "regime_reader",
    "decision": "judge",
    "finding": "liquidity",
    "geometry": "geometry",
    "ruling": "risk_gate",
    "case": "bull_researcher",
    "case_ahead": "bull_researcher",
    "news": "news",
}
NO_NUMBER: tuple[Any, ...] = ("0.1", "", True, [0.1], {}, math.nan, math.inf)
WRONG: dict[str, tuple[Any, ...]] = {
    "number": (*NO_NUMBER, None, 10**400),
    "integer": (*NO_NUMBER, None, 0.5, 1e-9),
    "string": (None, 1, True, ["x"], {}),
    "boolean": (None, 0, 1, "false", [True]),
    "array": (None, 7, "x", {"a": "b"}, [[7]], [{}], [None]),
    "object": (None, 7, "x", [], {}),
}
"""Values that a field of a type may not have."""


def spoilt(whole: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a part of a reply with every field in it left out, and of every wrong value."""
    if "anyOf" in schema:  # a number or null, or a fact that is a number or a text
        yield from (True, [0.1], {}, math.nan)
        return
    yield from (" high", "HIGH", "") if "enum" in schema else ()
    yield from WRONG[schema["type"]]
    for name, inner in schema.get("properties", {}).items():
        yield without(whole, name)
        yield from (whole | {name: wrong} for wrong in spoilt(whole[name], inner))
    if schema["type"] == "array" and whole:
        yield from ([*whole, wrong] for wrong in spoilt(whole[0], schema["items"]))


@cases("shape", WHOLE)
def test_what_the_schema_of_a_reply_refuses_is_garbage(shape: Shape) -> None:
    """Every field of every shape, in every part, left out and of every wrong type."""
    role = {**{n: a.role for n, a in AGENTS.items()}, "trader": TRADER.role}[
        SEATS.get(shape, "technical")
    ]
    whole = WHOLE[shape]
    assert replies.read(shape, whole, role, FOUND).agent_id == role.id
    for reply in spoilt(whole, replies.schema(shape)):
        # that it is an object, and of which symbol, the door looks at
        if isinstance(reply, dict) and type(reply.get("symbol")) is str and reply:
            with pytest.raises(ModelUnavailable, match="garbage"):
                replies.read(shape, reply, role, FOUND)


def news(**changes: Any) -> dict[str, Any]:
    return report(ordinals={**OWN_FIELDS["ordinals"], **changes})


@cases("name", ORDINALS)
def test_an_ordinal_out_of_its_range_is_clamped_and_flagged(name: str) -> None:
    least, most = ORDINALS[name]
    for value in range(least, most + 1):
        told = read(news(**{name: value}), NEWS)
        assert (told.ordinals[name], told.flags) == (value, ())
    for value, kept in ((most + 1, most), (least - 1, least), (10**300, most), (-(10**30), least)):
        told = read(news(**{name: value}), NEWS)
        assert told.ordinals[name] == kept
        assert "clamped" in told.flags


def test_ordinals_are_whole_numbers_of_the_news_alone() -> None:
    whole = read(news(trend=1.0), NEWS).ordinals
    assert whole == OWN_FIELDS["ordinals"] and type(whole["trend"]) is int
    assert read(news() | {"abstained": True}, NEWS).ordinals == {}
    assert read(report(ordinals={"trend": 1})).ordinals == {}


def test_an_answer_to_the_other_researcher_has_to_cite_what_holds() -> None:
    wrong = REBUTTAL | {"value": 48.0}
    told = read(a_case(rebuttals=[wrong, REBUTTAL, REBUTTAL | {"id": "technical.rsi"}]), BULL)
    assert [(answer.id, answer.value) for answer in told.rebuttals] == [("technical.rsi14", 61.2)]


@pytest.mark.parametrize("symbol", ["EURUSD", "XAUUSD.m", "xauusd", ""])
def test_another_symbol_fails_closed(symbol: str) -> None:
    assert refusal(report(symbol=symbol)) == "wrong_symbol"
    assert refusal(ruling(symbol=symbol), GATE) == "wrong_symbol"


@cases(
    ("value", "kept", "role"),
    [
        (0.3, 0.3, TECHNICAL),
        (0.31, 0.3, TECHNICAL),
        (-1e300, -0.3, TECHNICAL),
        (10**30, 0.3, TECHNICAL),
        (0.15, 0.15, BULL),
        (0.3, 0.15, BULL),
        (-0.2, -0.15, BEAR),
    ],
)
def test_a_finite_number_outside_the_bound_is_clamped_and_flagged(
    value: float, kept: float, role: Role
) -> None:
    told = read(a_case(value=value), role)
    assert set(told.adjustments.values()) == {kept}
    assert ("clamped" in told.flags) == (kept != value)


def test_a_vector_outside_the_focus_is_dropped_and_flagged() -> None:
    narrow = replace(TECHNICAL, focus={"structure": "primary"})
    told = read(report(value=0.2), narrow)
    assert told.adjustments == dict.fromkeys(VECTORS) | {"structure": 0.2}
    assert "out_of_focus" in told.flags


@cases(
    ("cited", "good"),
    [
        ([("technical.rsi14", 61.2)], True),
        ([("technical.rsi14", 61.8)], True),
        ([("technical.rsi14", 61.82)], False),
        ([("technical.rsi14", "61.2")], False),
        ([("technical.rsi", 61.2)], False),
        ([("technical.kijun", None)], False),
        ([("memory.losing_streak", 0.001)], False),
        ([("market.session", "LONDON")], True),
        ([("market.session", "NEW_YORK")], False),
        ([("technical.rsi14", 61.2), ("technical.adx14", 99)], False),
        ([("technical.rsi14", 61.2)] * 60 + [("nothing", 1)], False),
        ([], False),
    ],
)
def test_citations_are_checked_within_one_percent(cited: list[Any], good: bool) -> None:
    evidence = [{"id": name, "value": value} for name, value in cited]
    told = read(report(evidence=evidence, points_for=[]))
    assert ("ungrounded" in told.flags) == (not good)
    assert trust(told) == pytest.approx(1.0 if good else 0.3)


def test_scoring_nothing_needs_no_citation() -> None:
    assert read(report(value=None, evidence=[], points_for=[])).flags == ()


def test_a_model_cannot_set_the_frameworks_flags() -> None:
    told = read(report(flags=[*OWN_FLAGS, "thin_volume"]))
    assert told.flags == ("thin_volume",)


def test_an_abstention_has_a_reason_and_no_numbers() -> None:
    told = read(report(abstained=True, abstain_reason="flat"))
    assert (told.abstained, told.reason) == (True, "flat")
    assert set(told.adjustments.values()) == {None}
    assert read(report(abstained=True)).reason
    assert refusal(with_number("NaN").replace("false", "true")) == "garbage"


@pytest.mark.parametrize(
    ("changes", "kept"),
    [({"multiplier": 0.4}, 0.4), ({"multiplier": 3}, 1.0), ({"multiplier": -1.0}, 0.0)],
)
def test_a_ruling_is_held_to_zero_to_one(changes: dict[str, Any], kept: float) -> None:
    told = read(ruling(**changes), GATE)
    assert told.ruling is not None
    assert told.ruling.multiplier == kept
    assert ("clamped" in told.flags) == (kept != changes["multiplier"])
    assert refusal(ruling(reason_code="BECAUSE"), GATE) == "garbage"


def test_prose_is_kept_short_and_whole_replies_stay_in_the_call_record() -> None:
    point = POINT | {"says": "y" * 900, "why": "z" * 900}
    flags = [f"{n}" * 400 for n in range(30)]
    long = report(claim="x1" * 4500, points_for=[point] * 15, flags=flags)
    told = read(long)
    assert (len(told.claim), len(told.points_for), len(told.flags)) == (300, 4, 8)
    assert {(len(one.says), len(one.why)) for one in told.points_for} == {(300, 300)}
    record = debate(Scripted({"technical": long}))
    assert len(record.calls[0].reply) > 30_000


@pytest.mark.parametrize(
    ("cited", "flags"),
    [
        ((), ()),
        ((Evidence("technical.rsi14", FEATURES["technical.rsi14"]),), ()),
        ((Evidence("technical.rsi14", -12345.0),), ("ungrounded",)),
        ((Evidence("no.such", 1.0),), ("ungrounded",)),
    ],
)
def test_what_an_agent_of_another_hand_cites_has_to_hold(
    cited: tuple[Evidence, ...], flags: tuple[str, ...]
) -> None:
    drawn = replace(a_report(), evidence=cited)
    kept = replies.enforce_role(drawn, TECHNICAL, FOUND)
    assert kept.flags == flags
    assert replies.enforce_role(kept, TECHNICAL, FOUND) == kept


@pytest.mark.parametrize("number", [0, -0.0, 0.2])
def test_a_number_within_its_role_is_a_float_with_its_sign(number: float) -> None:
    drawn = replace(a_report(), adjustments=dict.fromkeys(TECHNICAL.focus, number))
    kept = replies.enforce_role(drawn, TECHNICAL, FOUND).adjustments
    assert {repr(kept[vector]) for vector in TECHNICAL.focus} == {repr(float(number))}
    assert list(kept) == list(VECTORS)


@cases(
    "told",
    [
        None,
        "report",
        {"adjustments": {}},
        a_report(adjustments=None),
        a_report(confidence="sure"),
        a_report(abstained="no"),
        a_report(evidence=(Evidence(cast(str, []), 1.0),)),
        a_report(evidence=(Evidence("technical.rsi14", True),)),
        a_report(flags=(1,)),
        a_report(points_for=("RSI",)),
        a_report(points_for=(Point("RSI", "technical.rsi14", True),)),
        a_report(rebuttals=(Point("RSI", "technical.rsi14", 61.2),)),
        a_report(reasoning=b"x"),
        a_report(value=float("nan")),
        a_report(value=cast(float, "0.1")),
        a_report(value=True),
        a_report(falsifiers=7),
        a_report(ordinals={"trend": 0.5}),
    ],
    ids=repr,
)
def test_what_an_agent_of_another_hand_returns_is_checked_too(told: Any) -> None:
    agents = {**AGENTS, "technical": replace(AGENTS["technical"], analyze=lambda _c, _a: told)}
    record = debate(Scripted(), agents=agents)
    assert record.failures == {"technical": "garbage"}


def test_only_the_gate_rules() -> None:
    odd = a_report(ruling=GateRuling(0.0, veto=True))
    agents = {**AGENTS, "technical": replace(AGENTS["technical"], analyze=lambda _c, _a: odd)}
    record = debate(Scripted(), agents=agents)
    assert not record.veto
    silent = replace(AGENTS["risk_gate"], analyze=lambda _c, _a: a_report("risk_gate"))
    record = debate(Scripted(), agents={**AGENTS, "risk_gate": silent})
    assert record.failures == {"risk_gate": "garbage"}
    waits = replace(
        AGENTS["risk_gate"], analyze=lambda _c, _a: AgentReport.abstain("risk_gate", "-")
    )
    record = debate(Scripted(), agents={**AGENTS, "risk_gate": waits})
    assert record.failures == {}


@cases("shape", get_args(Shape))
def test_the_reply_schemas_are_the_models_and_suit_every_vendor(shape: Shape) -> None:
    """Every field required, no free keys, no empty type, and no bounds left to the server."""

    def walk(schema: Mapping[str, Any]) -> None:
        if schema.get("type") == "object":
            assert schema["properties"]
            assert schema["required"] == list(schema["properties"])
            assert schema["additionalProperties"] is False
        assert not {"minimum", "maximum", "minLength", "maxLength", "default"} & set(schema)
        for inner in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
            walk(inner)
        if "items" in schema:
            walk(schema["items"])

    drawn, model = replies.schema(shape), replies.SHAPES[shape]
    walk(drawn)
    assert json.loads(json.dumps(drawn)) == drawn
    assert list(drawn["properties"]) == list(model.model_fields)
    assert model.model_config["strict"] and model.model_config["frozen"]
    assert not model.model_config["allow_inf_nan"]


def test_a_key_that_nobody_asked_for_is_passed_over() -> None:
    plain = read(report())
    more = report(thoughts="...", adjustments={**dict.fromkeys(VECTORS, 0.1), "volume": 9.0})
    assert read(more) == plain
    cited = [{"id": "technical.rsi14", "value": 61.2, "unit": "of 100"}]
    assert read(report(evidence=cited)) == plain
    assert read(ruling(size=3), GATE) == read(ruling(), GATE)


def test_a_fault_is_told_by_its_place_and_never_in_the_replys_words() -> None:
    secret = "SECRET-WORDS"
    for changes, place in (
        ({"confidence": secret}, "confidence"),
        ({"adjustments": {**dict.fromkeys(VECTORS, 0.1), "momentum": secret}}, "momentum"),
        ({"evidence": [{"id": "technical.rsi14", "value": [secret]}]}, "evidence.0.value"),
        ({"points_for": [POINT | {"says": secret}, secret]}, "points_for.1"),
    ):
        with pytest.raises(ModelUnavailable) as caught:
            read(report(**changes))
        assert place in caught.value.detail
        assert secret not in caught.value.detail


@pytest.mark.parametrize("wrapped", [dict, MappingProxyType])
def test_a_hosts_own_chart_is_read_for_its_four_numbers(wrapped: Any) -> None:
    """The fallback of a host returns what its score_chart returns, notes and all or none."""
    chart_ = {vector: {"score": 0.5} for vector in VECTORS} | {"composite_bias": {"score": 0.5}}
    assert replies.scores(wrapped(chart_)) == dict.fromkeys(VECTORS, 0.5)
    noted = {vector: {"score": np.float64(9.0), "note": None} for vector in VECTORS}
    assert replies.scores(wrapped(noted)) == dict.fromkeys(VECTORS, 1.0)


@cases(
    "broken",
    [
        None,
        True,
        "0.5",
        math.nan,
        math.inf,
        10**400,
        [0.5],
        {"score": 0.5},
        Decimal("0.5"),
        np.True_,
    ],
)
def test_a_chart_without_four_numbers_is_garbage(broken: Any) -> None:
    whole = {vector: {"score": 0.5, "note": ""} for vector in VECTORS}
    for reply in ({**whole, "momentum": {"score": broken}}, broken, [*whole.items()]):
        with pytest.raises(ModelUnavailable, match="garbage"):
            replies.scores(cast(Any, reply))
    with pytest.raises(ModelUnavailable, match="garbage"):
        replies.scores(without(whole, "structure"))


def test_ten_thousand_broken_replies_are_failures_or_reports(scaled: Callable[..., int]) -> None:
    """Any cut, repeated or foreign piece of text anywhere in a valid reply."""
    seen: set[str] = set()
    pieces = st.sampled_from(
        [
            "NaN",
            "1e999",
            "null",
            '"',
            "}",
            "{",
            ",",
            ":",
            "true",
            "\\ud800",
            "\x00",
            "[",
            "]",
            "0.9",
        ]
    )

    @hypothesis_settings(
        max_examples=scaled(10_000),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.sampled_from(
            [
                (VALID, TECHNICAL),
                (json.dumps(ruling()), GATE),
                (json.dumps(news()), NEWS),
                (json.dumps(a_case(rebuttals=[REBUTTAL], falsifiers=[FALSIFIER])), BULL),
            ]
        ),
        st.integers(0, 1_000),
        st.integers(0, 1_000),
        st.one_of(pieces, st.text(max_size=8)),
    )
    def check(valid: Any, start: int, end: int, piece: str) -> None:
        text, role = valid
        try:
            told = read(text[:start] + piece + text[end:], role)
        except ModelUnavailable as failure:
            seen.add(failure.reason)
            return
        seen.add("read")
        values = [value for value in told.adjustments.values() if value is not None]
        assert all(abs(value) <= role.bound for value in values)
        assert all(isinstance(cited, Evidence) for cited in told.evidence)
        for name, ordinal in told.ordinals.items():
            assert ORDINALS[name][0] <= ordinal <= ORDINALS[name][1]
        said = (told.main_claim, *told.key_points, *told.points_for, *told.points_against)
        json.dumps((said, told.rebuttals), ensure_ascii=False).encode()
        assert len(told.claim.split()) <= CLAIM_WORDS
        check_sides(told, role)

    check()
    assert {"garbage", "read"} <= seen <= {"garbage", "wrong_symbol", "read"}
