"""Why and why not: every point on its own side, by the evidence and not by who made it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agents.features import sides
from agents.phrases import PHRASES, mirrored
from tests.worlds import desks
from tests.worlds.records import tick_record
from torra.clock import iso
from torra.config import Profile, validate
from torra.dashboard.record import citations
from torra.dashboard.trade import why
from torra.tick.tick_record import TickRecord

NUMBER = re.compile(r"[+−-]?\d[\d,.]*%?")


def point(says: str, side: int, name: str = "", **more: Any) -> dict[str, Any]:
    return {"says": says, "side": side, "id": name or f"x.{says}", "value": 1.0, **more}


def said(agent: str, *points: dict[str, Any], against: Any = (), **more: Any) -> dict[str, Any]:
    return {"agent_id": agent, "points_for": points, "points_against": against, **more}


def case(*reports: dict[str, Any], side: str = "BUY", **record: Any) -> why.Case:
    panel = {
        "pushes": {
            "technical": 0.2,
            "momentum": 0.1,
            "news": -0.2,
            "bear_researcher": -0.1,
            "sentiment": -0.01,
        },
        "disagreements": record.pop("disagreements", []),
        "push": record.pop("push", 0.0),
    }
    told = {"deliberation": {"reports": reports, "panel": panel}, "verdict": side, **record}
    return why.case(tick_record(told), side)


PARTS = {
    "momentum": [
        {"name": "mo_rsi", "value": 0.4, "weight": 0.5},
        {"name": "mo_cci", "value": -0.9, "weight": 0.1},
        {"name": "mo_macd", "value": 0.0, "weight": 0.9},
    ],
    "structure": [{"name": "st_long", "value": 0.3, "weight": 0.9}],
}


def texts(points: list[why.SidePoint]) -> list[tuple[str, str]]:
    return [(one.who, one.text) for one in points]


def test_each_point_stands_on_its_own_side_whoever_made_it() -> None:
    told = case(
        said("bear_researcher", point("no seller", -1), against=[point("a floor", 1)]),
        said("technical", point("a break", 1), against=[point("a ceiling", -1)]),
    )
    assert texts(told.why) == [("Technical", "a break."), ("Bear", "a floor.")]
    assert texts(told.why_not) == [("Bear", "no seller."), ("Technical", "a ceiling.")]
    other = case(
        said("bear_researcher", point("no seller", -1), against=[point("a floor", 1)]),
        said("technical", point("a break", 1), against=[point("a ceiling", -1)]),
        side="SELL",
    )
    assert (texts(other.why), texts(other.why_not)) == (texts(told.why_not), texts(told.why))


def test_the_sides_researcher_speaks_first_and_leaves_a_place() -> None:
    told = case(
        said("momentum", point("m", 1)),
        said("technical", point("t1", 1), point("t2", 1)),
        said("bull_researcher", *(point(f"b{n}", 1) for n in range(4))),
    )
    assert texts(told.why) == [("Bull", "b0."), ("Bull", "b1."), ("Technical", "t1.")]
    few = case(said("technical", *(point(f"t{n}", 1) for n in range(4))))
    assert texts(few.why) == [("Technical", f"t{n}.") for n in range(3)]


def test_a_fact_counts_once_on_a_side() -> None:
    told = case(
        said("bull_researcher", point("RSI at 70", 1, "technical.rsi14")),
        said("technical", point("RSI is strong at 70", 1, "technical.rsi14")),
        said("momentum", point("RSI at 70!", 1, "own.rsi"), point("CCI at 90", 1)),
        said("bear_researcher", against=[point("RSI at 70", -1, "technical.rsi14")]),
    )
    assert texts(told.why) == [("Bull", "RSI at 70."), ("Momentum", "CCI at 90.")]
    assert texts(told.why_not) == [("Bear", "RSI at 70.")], "on the other side it is another point"


def test_who_leans_to_a_side_without_a_point_there_is_heard_with_its_claim() -> None:
    """As one whose points fell away."""
    told = case(
        said("news", claim="The tone is bad. More.", flags=["misplaced"]),
        said("bear_researcher", claim="Down: ADX at 45.", flags=["misplaced"]),
        said("sentiment", claim="No side: its 8 readings pull both ways."),
        said("technical", point("a break", 1), claim="Up: a break of 1."),
    )
    assert texts(told.why) == [("Technical", "a break.")]
    assert texts(told.why_not) == [("Bear", "Down: ADX at 45."), ("News", "The tone is bad.")]


def test_what_has_no_side_is_no_bullet() -> None:
    told = case(
        said("sentiment", point("the spread is wide", 0)),
        said("momentum", point("silent", 1), abstained=True),
        said("risk_gate", point("no gate", 1)),
        said("bull_researcher", point("", 1)),
    )
    assert (told.why, told.why_not) == ([], [])


def test_the_parts_of_the_scores_speak_after_the_agents() -> None:
    told = case(said("technical", point("a break", 1)), components=PARTS)
    assert [one.who for one in told.why] == ["Technical", "Bars", "Bars"]
    assert told.why[1].text == "The 50-bar mean against the 200-bar mean leans up (+0.30)."
    assert told.why[1].id == "component.st_long"
    assert told.why[2].text.startswith("RSI against its middle leans up (+0.40)")
    assert texts(told.why_not) == [("Bars", "CCI against zero leans down (−0.90).")]
    same = case(said("technical", point("RSI", 1, "component.mo_rsi")), components=PARTS)
    assert [one.id for one in same.why] == ["component.mo_rsi", "component.st_long"]


def test_the_gate_and_the_disagreements_speak_against() -> None:
    told = case(
        said("bear_researcher", point("no seller", -1)),
        gate={"multiplier": 0.5, "reasons": ["HIGH_VOLATILITY", "NONE", "OF_A_HOST"]},
        disagreements=["momentum technical +0.1 key_levels -0.1"],
        components=PARTS,
    )
    assert [one.who for one in told.why_not] == ["Bear", "Gate", "Disagreement"]
    no_cut = case(gate={"multiplier": 0.997, "reasons": ["DISAGREEMENT"]})
    assert no_cut.why_not == [], "no decimal of the size shows it"
    assert told.why_not[1].text == "Size × 0.50: volatility is high, OF_A_HOST."
    assert "key levels" in told.why_not[2].text


def test_the_gates_agent_says_itself_why_it_cuts() -> None:
    gate = {"multiplier": 0.89, "reasons": ["HIGH_VOLATILITY"]}
    said_so = "Size cut to 0.89. An odd bar: range spike. Wednesday, the London session."
    agent = {"agent_id": "risk_gate", "reasoning": said_so, "ruling": {"multiplier": 0.89}}
    told = case(agent, gate=gate)
    assert told.why_not[0].text == "Size × 0.89: an odd bar: range spike."
    rules = {**agent, "ruling": {"multiplier": 1.0}}
    assert case(rules, gate=gate).why_not[0].text == "Size × 0.89: volatility is high."
    rule = {**gate, "rule": {"multiplier": 0.89}}
    assert case(rules, gate=rule).why_not[0].text == (
        "Size × 0.89 by the gate's rules (its agent said × 1.00): volatility is high."
    )
    mute = {**agent, "reasoning": "Size cut."}
    assert case(mute, gate=gate).why_not[0].text == "Size × 0.89: volatility is high."


def test_l1_speaks_first_for_an_order_that_the_agents_lean_against() -> None:
    told = case(said("bull_researcher", point("b", 1), point("c", 1)), components=PARTS, push=-0.1)
    assert [one.who for one in told.why] == ["Bars", "Bars", "Bull"]
    agreed = case(said("bull_researcher", point("b", 1), point("c", 1)), components=PARTS, push=0.1)
    assert [one.who for one in agreed.why] == ["Bull", "Bull", "Bars"]


def test_the_gate_has_a_place_where_it_cuts() -> None:
    many = [said("bear_researcher", *(point(f"b{n}", -1) for n in range(3)))]
    many += [said(name, point(name, -1)) for name in ("technical", "news")]
    cut = case(*many, gate={"multiplier": 0.5, "reasons": ["WIDE_SPREAD"]})
    assert [one.who for one in cut.why_not] == ["Bear", "Bear", "Gate"]
    assert [one.who for one in case(*many).why_not] == ["Bear", "Bear", "News"]


def test_a_long_point_ends_once() -> None:
    told = case(said("technical", point("word " * 60, 1)))
    assert told.why[0].text.endswith("word…")


def test_what_would_refute_it_is_its_own_researchers() -> None:
    reports = (
        said("bull_researcher", falsifiers=["a close below 7", "x " * 200]),
        said("bear_researcher", falsifiers=["a close above 9"]),
    )
    told = case(*reports)
    assert told.falsifiers[0] == "a close below 7" and len(told.falsifiers[1]) <= 161
    assert case(*reports, side="SELL").falsifiers == ["a close above 9"]
    assert why.case(tick_record(), "BUY") == why.Case([], [], [])
    assert why.case(tick_record(), "HOLD") == why.Case([], [], [])


def test_a_sentence_is_cut_at_a_word() -> None:
    assert why.first_sentence("One two. Three", 90) == "One two."
    assert why.first_sentence("word " * 40, 20) == "word word word word…"
    assert why.first_sentence("x" * 99, 10) == "x" * 10 + "…"


# --- 10,000 proposals -----------------------------------------------------------------------------

LOW = {"buy": 0.02, "sell": 0.02}
"""Thresholds that nearly every consensus reaches."""


@pytest.mark.parametrize("mode", [pytest.param("budget", marks=pytest.mark.nightly), "full"])
def test_no_bullet_of_the_rules_stands_on_the_wrong_side(
    mode: str, tmp_path: Path, scaled: Callable[..., int], record_property: Any
) -> None:
    """On the sample's streams: by the fact that it cites, and by its own words."""
    settings = {"agents": {"mode": mode, "debate_rounds": 2}, "thresholds": LOW}
    profile = validate(Profile, settings, "a test")
    desk = desks.open_desk(tmp_path, (desks.BTC, desks.EUR), profile=profile)
    desks.open_for_work(desk)
    wanted, seen = scaled(5_000, least=6), Counter[str]()
    while seen["proposals"] < wanted:
        closed = desks.step(desk)
        for name, setup in desk.setups.items():
            for timeframe in setup.instance.timeframes:
                tick = desk.database.latest_tick(name, timeframe)
                record = tick_record(tick or {})
                if record.verdict in ("BUY", "SELL") and record.as_of == iso(closed):
                    seen["proposals"] += 1
                    check_bullets(record, record.verdict, seen)
    desk.close()
    assert seen["bullets for"] > wanted and seen["bullets against"] > wanted
    record_property("seen", dict(seen))


def check_bullets(record: TickRecord, verdict: str, seen: Counter[str]) -> None:
    told, towards = why.case(record, verdict), {"BUY": 1, "SELL": -1}[verdict]
    features = citations.evidence(record)
    for name, side, bullets in (("for", towards, told.why), ("against", -towards, told.why_not)):
        seen[f"bullets {name}"] += len(bullets)
        seen[f"nothing {name}"] += not bullets
        for bullet in bullets:
            if bullet.who in ("Gate", "Disagreement"):
                assert name == "against"
                continue
            assert side in sides(bullet.id, features), (bullet, verdict)
            ways = ways_of(bullet.text)
            assert ways == {side}, (bullet, ways, verdict)


def ways_of(text: str) -> set[int]:
    """The sides that a sentence speaks for, by the wording of the table."""
    return ways().get(bare(text), set())


def bare(words: str) -> str:
    # a page says the value of a part in brackets
    said = re.sub(r" \(([+−]\d\.\d+)\)", r" at \1 of 1", words.rstrip("."))
    return re.sub(NUMBER, "#", said.replace("−", "-")).lower()


@cache
def ways() -> Mapping[str, set[int]]:
    """The sides of each wording of the table, without its numbers."""
    found: dict[str, set[int]] = defaultdict(set)
    for saying in PHRASES.values():
        unit = re.sub(r"\{:[^}]*\}", "#", saying.format)
        for half, side in ((saying.half, 1), (saying.faded, -1)):
            if half:
                said = half.replace("{n}", unit)
                found[bare(said)].add(side)
                found[bare(mirrored(said))].add(-side)
    return found
