"""What a model argues, through each vendor's wire: claims, points, rebuttals, falsifiers.

A server speaks the vendor's protocol and the vendor's own SDK reads it. Prose is never parsed: what
counts is which fact a point cites, and on which side that stands.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from agent_config import MODELS
from agents.arguments import (
    AGAINST,
    CLAIM_WORDS,
    FALSIFIERS,
    FOR,
    flag_repeated_claims,
    format_price,
    pending_falsifiers,
    report_side,
)
from agents.contracts import (
    VECTORS,
    AgentReport,
    Completion,
    Falsifier,
    Feature,
    ModelUnavailable,
    Point,
    Request,
    Shape,
)
from agents.debate import replies
from agents.features import sides
from agents.registry import AGENTS
from agents.texts import door
from tests.cases import cases
from tests.doubles import vendor_line
from tests.doubles.vendor_server import VENDORS, Reply, VendorServer
from tests.faults import malformed
from torra.tick.tick_record import statement

BULL, TECHNICAL = "bull_researcher", "technical"
SHAPES: dict[str, Shape] = {BULL: "case", "bear_researcher": "case", "news": "news"}
VALUES: dict[str, float | str] = {
    "technical.close": 100.0,
    "technical.atr14": 2.0,
    "technical.macd": 0.5,
    "technical.minus_di": 30.0,
    "technical.plus_di": 12.0,
    "technical.rsi14": 61.2,
    "technical.adx14": 27.0,
    "technical.sma50": 104.0,
    "technical.sma200": 96.0,
    "market.session": "LONDON",
    "host.own": 3.0,
}
FEATURES = {name: Feature(name, value) for name, value in VALUES.items()}

Said = Callable[..., AgentReport]


@pytest.fixture(scope="module")
def lines() -> Iterator[dict[str, tuple[VendorServer, vendor_line.Line]]]:
    with ExitStack() as opened:
        found = {}
        for vendor in VENDORS:
            server = opened.enter_context(VendorServer())
            found[vendor] = server, opened.enter_context(vendor_line.line(server, vendor))
        yield found


def through(line: tuple[VendorServer, vendor_line.Line], request: Request, text: str) -> Completion:
    """Return what the provider brings back of a text that a model wrote."""
    server, asked = line
    server.play({"*": Reply(text=text)})
    return asked.ask(request)


@pytest.fixture(params=VENDORS)
def said(request: pytest.FixtureRequest, lines: Any) -> Said:
    vendor = request.param

    def say(reply: dict[str, Any], role: str = TECHNICAL) -> AgentReport:
        asked = replace(
            vendor_line.a_request(TECHNICAL, MODELS[vendor]["quick"]), role=AGENTS[role].role
        )
        completion = through(lines[vendor], asked, json.dumps(reply))
        loaded = door.load(completion.text, asked.symbol)
        return replies.read(SHAPES.get(role, "report"), loaded, asked.role, FEATURES)

    return say


def fact(name: str, says: str = "", **more: Any) -> dict[str, Any]:
    """A point on a fact, cited as it is listed."""
    told = {"id": name, "value": VALUES.get(name, 1.0), "says": says or f"{name} says so"}
    return told | {"why": "so what follows"} | more


def reply(value: float | None = 0.1, **changes: Any) -> dict[str, Any]:
    """An analyst's reply of today's shape."""
    told: dict[str, Any] = {
        "symbol": "XAUUSD",
        "claim": "Up: MACD leads by 0.5.",
        "points_for": [fact("technical.macd")],
        "points_against": [fact("technical.minus_di")],
        "adjustments": dict.fromkeys(VECTORS, value),
        "confidence": "high",
        "evidence": [],
        "flags": [],
        "abstained": False,
        "abstain_reason": "",
    }
    return told | changes


def a_case(**changes: Any) -> dict[str, Any]:
    return reply(**({"rebuttals": [], "falsifiers": []} | changes))


def ids(points: Any) -> list[str]:
    return [point.id for point in points]


# --- the shapes -----------------------------------------------------------------------------------


def test_todays_shape_is_read_without_a_flag(said: Said) -> None:
    told = said(reply())
    assert (told.flags, told.claim, told.reasoning) == ((), "Up: MACD leads by 0.5.", "")
    assert [(point.id, point.side) for point in told.points_for] == [("technical.macd", 1)]
    assert [(point.id, point.side) for point in told.points_against] == [("technical.minus_di", -1)]
    assert ids(told.evidence) == ["technical.macd", "technical.minus_di"]
    assert told.main_claim == told.claim


# --- the sides ------------------------------------------------------------------------------------


def test_a_point_on_the_wrong_side_moves_in_the_tables_words(said: Said) -> None:
    wrong = fact("technical.minus_di", "sellers fade, so up we go")
    told = said(reply(points_for=[wrong, fact("technical.macd")], points_against=[]))
    assert told.flags == ("misplaced",)
    assert ids(told.points_for) == ["technical.macd"]
    (moved,) = told.points_against
    assert (moved.says, moved.why, moved.side) == ("−DI at 30", "sellers drive the move", -1)
    other = said(reply(value=-0.1, points_for=[wrong], points_against=[fact("technical.macd")]))
    assert other.flags == ()
    assert (ids(other.points_for), ids(other.points_against)) == (
        ["technical.minus_di"],
        ["technical.macd"],
    )


def test_an_advocates_side_is_its_office_whatever_its_numbers(said: Said) -> None:
    told = said(a_case(value=-0.1, points_for=[fact("technical.minus_di")]), BULL)
    assert {"conceded", "misplaced"} <= set(told.flags)
    assert told.points_for == ()
    assert {point.side for point in told.points_against} == {-1}


def test_a_fact_that_no_float_can_hold_is_true_of_no_citation() -> None:
    features = {**FEATURES, "host.own": Feature("host.own", 10**400)}
    role = AGENTS[TECHNICAL].role
    told = replies.read("report", reply(points_for=[fact("host.own")]), role, features)
    assert set(told.flags) == {"ungrounded", "misplaced"}
    features["technical.atr14"] = Feature("technical.atr14", 10**400)
    assert format_price(99.5, features) == "99.5"
    moved = replies.read("report", reply(points_for=[fact("technical.minus_di")]), role, features)
    assert ids(moved.points_against) == ["technical.minus_di", "technical.minus_di"]
    assert not list(pending_falsifiers([Falsifier("below", 10.0, "x", 5)], 1, features)), (
        "as without an ATR"
    )


@cases(
    ("cited", "value", "sides", "flags"),
    [
        *((fact(name), 0.1, [], ("misplaced",)) for name in ("technical.adx14", "market.session")),
        # RSI is followed or faded, a host's own fact is unknown, a mean lies above one and below
        *(
            (fact(name), 0.1 * way, [way], ())
            for name in ("technical.rsi14", "host.own", "technical.sma50")
            for way in (1, -1)
        ),
        *(
            (untrue, 0.1, [], ("ungrounded", "misplaced"))
            for untrue in (fact("technical.macd", value=0.9), fact("technical.invented"))
        ),
        (fact("technical.macd"), 0.0, [1], ()),
    ],
)
def test_a_point_stands_where_its_fact_may_and_no_false_one_stands(
    cited: dict[str, Any], value: float, sides: list[int], flags: tuple[str, ...]
) -> None:
    role = AGENTS[TECHNICAL].role
    told = replies.read(
        "report", reply(value, points_for=[cited], points_against=[]), role, FEATURES
    )
    assert ([point.side for point in told.points_for], set(told.flags)) == (sides, set(flags))
    assert cited["id"] in ids(told.evidence) or "ungrounded" in flags


# --- the claim ------------------------------------------------------------------------------------


@cases(
    ("claim", "value", "flags", "kept"),
    [
        ("Up, surely.", 0.1, ("no_number",), "Up, surely."),
        ("", 0.1, ("no_number",), ""),
        ("上涨，６１", 0.1, (), "上涨，６１"),
        ("No case.", 0.0, (), "No case."),
        ("up 1 " * 30, 0.1, (), f"{'up 1 ' * 12}up…"),
    ],
)
def test_a_claim_has_a_number_and_is_cut_at_a_word(
    claim: str, value: float, flags: tuple[str, ...], kept: str
) -> None:
    role = AGENTS[TECHNICAL].role
    told = replies.read("report", reply(value, claim=claim), role, FEATURES)
    assert (told.flags, told.claim) == (flags, kept)


# --- rebuttals and falsifiers ---------------------------------------------------------------------


def end(close: str = "below", level: float = 99.0, **more: Any) -> dict[str, Any]:
    return {"close": close, "level": level, "what": "the last swing", "bars": 12} | more


def test_a_falsifier_stands_while_it_has_not_come_and_may_come(said: Said) -> None:
    told = said(
        a_case(
            falsifiers=[
                end(),
                end(level=99.0, what="the last swing"),
                end(level=95.5, bars=1, what=""),
                *(end("above", 101.0), end(level=100.5), end(level=100.0), end(level=40.0)),
                end(level=99.9),
                *(end(bars=0), end(bars=500), end(level=-1.0)),
            ]
        ),
        BULL,
    )
    assert told.falsifiers == (
        "a close below 99, the last swing, in the next 12 bars",
        "a close below 95.5, in the next bar",
    )
    assert said(a_case(value=0.0, falsifiers=[end()]), BULL).falsifiers == ()
    bear = said(a_case(value=-0.1, falsifiers=[end("above", 101.0), end()]), "bear_researcher")
    assert bear.falsifiers == ("a close above 101, the last swing, in the next 12 bars",)


def test_without_an_atr_a_falsifier_lies_within_a_share_of_the_close() -> None:
    features = {"technical.close": Feature("technical.close", 100.0)}
    ends = [Falsifier("above", level, "x", 5) for level in (101.0, 104.9, 106.0, 1e300)]
    assert [one.level for one in pending_falsifiers(ends, -1, features)] == [101.0, 104.9]


@cases(
    ("close", "decimals", "atr", "level", "told"),
    [
        (1.18251, 7, 0.0014, 1.1804949, "1.18049"),
        (1.18251, 5, 0.0014, 1.18049, "1.18049"),
        (68547.92, 4, 300.0, 68249.973, "68,249.97"),
        (151.234, 5, 0.05, 151.2042, "151.204"),
        (0.00066653, None, 1e-6, 0.00066553, "0.00066553"),
        (100.0, 2, None, 99.5, "99.50"),
        (100.0, 2, 5e-324, 99.5, "99.50"),
        (100.0, 2, -1.0, 99.5, "99.50"),
        (100.0, 4, 1e300, 99.5, "99.50"),
        (4000.0, 0, 20.0, 3990.4, "3,990"),
    ],
)
def test_a_price_is_written_as_fine_as_its_symbol_is_quoted(
    close: float, decimals: int | None, atr: float | None, level: float, told: str
) -> None:
    """Torra's bundle shows two decimals more than that, a host perhaps none more."""
    features = {"technical.close": Feature("technical.close", close, decimals=decimals)}
    if atr is not None:
        features["technical.atr14"] = Feature("technical.atr14", atr)
    assert format_price(level, features) == told


def test_a_falsifier_is_judged_as_it_is_written() -> None:
    """Rounded it may lie on the close, and then it says nothing; nor does one that is too near."""
    near = [Falsifier("below", 99.99996, "x", 5)]
    for close, stands in ((100.0001, True), (100.0, False)):
        features = {"technical.close": Feature("technical.close", close, decimals=4)}
        assert bool(list(pending_falsifiers(near, 1, features))) is stands, "written it is 100.0000"
    features["technical.atr14"] = Feature("technical.atr14", 2.0)
    ends = [Falsifier("below", level, "x", 5) for level in (99.85, 99.75)]
    assert [one.level for one in pending_falsifiers(ends, 1, features)] == [99.75], (
        "from 0.1 ATR on"
    )


def test_a_claim_that_was_made_before_is_flagged() -> None:
    def made(agent: str, claim: str) -> AgentReport:
        return AgentReport(agent, claim=claim)

    told = flag_repeated_claims(
        (
            made("technical", "Up: MACD leads by 0.5."),
            made("momentum", "up - macd leads by 0.5"),
            made("bull_researcher", "Up: MACD leads by -0.5."),
            made("bear_researcher", ""),
            made("news", ""),
        )
    )
    assert [report.flags for report in told] == [(), ("repeated",), (), (), ()]
    assert told[1].claim == "up - macd leads by 0.5", "what was said stays on record"
    stored = AgentReport("bear_researcher", claim="up", flags=("repeated",))
    assert statement(stored) == "up"
    points = (Point("MACD at 0.5", "technical.macd", 0.5),)
    assert statement(replace(stored, points_for=points)) == "MACD at 0.5"


def test_a_report_that_a_host_made_itself_is_held_to_the_evidence() -> None:
    role = AGENTS[TECHNICAL].role
    points = (Point("MACD is negative", "technical.macd", 0.5, "", -1), Point("ADX", "x", 1.0))
    own = AgentReport(
        TECHNICAL, dict.fromkeys(VECTORS, -0.1), "high", claim="word " * 90, points_for=points
    )
    held = replies.enforce_role(own, role, FEATURES)
    assert len(held.claim.split()) == CLAIM_WORDS
    assert held.points_for == () and ids(held.points_against) == ["technical.macd"]
    assert {"misplaced", "no_number"} <= set(held.flags)
    assert replies.enforce_role(held, role, FEATURES) == held


def test_a_rebuttal_cites_what_is_true(said: Said) -> None:
    cited = {"id": "technical.minus_di", "value": 30.0}
    answer = cited | {"says": "−DI at 30 has peaked.", "grants": False}
    invented = {"id": "technical.macd", "value": 9.0, "says": "MACD at 9", "grants": True}
    told = said(a_case(rebuttals=[answer, invented]), BULL)
    assert [(one.id, one.grants) for one in told.rebuttals] == [("technical.minus_di", False)]
    assert "ungrounded" not in said(a_case(rebuttals=[answer]), BULL).flags


def test_an_abstention_argues_nothing(said: Said) -> None:
    told = said(a_case(abstained=True, falsifiers=[end()]), BULL)
    assert (told.claim, told.points_for, told.points_against) == ("", (), ())
    assert (told.rebuttals, told.falsifiers) == ((), ())


# --- 10,000 ---------------------------------------------------------------------------------------


def test_ten_thousand_odd_replies_are_failures_or_stand_on_their_side(
    lines: Any, scaled: Callable[..., int], record_property: Any
) -> None:
    """Points on any side, of any fact, half of them spoilt on the way."""
    seen: Counter[str] = Counter()
    chance = random.Random(28)
    asked = {
        (vendor, role): vendor_line.a_request(role, MODELS[vendor]["quick"])
        for vendor in VENDORS
        for role in (TECHNICAL, BULL, "bear_researcher")
    }
    kinds = [kind for kind in malformed.KINDS if kind not in ("10_mb", "tool_call", "refusal")]
    for _ in range(scaled(10_000, least=60)):
        vendor, role = chance.choice(list(asked))
        told = at_random(chance, role)
        text = json.dumps(told)
        if chance.random() < 0.5:
            text = malformed.KINDS[chance.choice(kinds)](told, chance)
            # a lone surrogate as it stands cannot leave the server
            text = text.encode("utf-8", "backslashreplace").decode()
        request = asked[vendor, role]
        try:
            completion = through(lines[vendor], request, text)
            loaded = door.load(completion.text, request.symbol)
            shape = SHAPES.get(role, "report")
            report = replies.read(shape, loaded, request.role, FEATURES)
        except ModelUnavailable as failure:
            seen[failure.reason] += 1
            continue
        seen["read"] += 1
        seen.update(report.flags)
        check(report, request)
    assert {"read", "garbage", "misplaced", "no_number"} <= set(seen)
    record_property("seen", dict(seen))


def at_random(chance: random.Random, role: str) -> dict[str, Any]:
    """Return a reply that argues with whatever comes: well formed, and often wrong."""
    value = chance.choice([0.1, -0.1, 0.0, None, 3.0])
    points: list[list[dict[str, Any]]] = [
        [
            fact(chance.choice([*VALUES, "x.y"]), chance.choice(["up", "down 1", ""]))
            | ({"value": chance.choice([0.0, "LONDON", -1e9])} if chance.random() < 0.2 else {})
            for _ in range(chance.randrange(7))
        ]
        for _ in range(2)
    ]
    ends = [
        end(chance.choice(["above", "below"]), chance.choice([90.0, 99.0, 100.0, 101.0, 1e300]))
        for _ in range(chance.randrange(6))
    ]
    return a_case(
        value=value,
        claim=chance.choice(["", "Up.", "Up by 1.", "1 " * 90]),
        points_for=points[0],
        points_against=points[1],
        falsifiers=ends,
    )


def check(report: AgentReport, request: Request) -> None:
    """What holds of every report, whatever a model said."""
    side = report_side(request.role, report.adjustments)
    assert len(report.points_for) <= FOR and len(report.points_against) <= AGAINST
    for field, points in ((1, report.points_for), (-1, report.points_against)):
        for point in points:
            assert VALUES[point.id] == point.value
            assert point.side in (*sides(point.id, FEATURES), 0)
            assert not side or point.side == side * field
    assert len(report.claim.split()) <= CLAIM_WORDS
    assert len(report.falsifiers) <= FALSIFIERS
    if report.falsifiers:
        way = "below 99" if side > 0 else "above 101"
        assert all(way in text for text in report.falsifiers)
    assert all(abs(value or 0.0) <= request.role.bound for value in report.adjustments.values())
