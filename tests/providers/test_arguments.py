"""What the rules' agents say: claims, points on their own side, falsifiers, in a trader's words."""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agents.arguments import AGAINST, FALSIFIERS, FOR
from agents.contracts import (
    BIASES,
    SIDES,
    WINNERS,
    AgentReport,
    Completion,
    Feature,
    Request,
    synchronous,
)
from agents.debate.replies import schema
from agents.features import (
    COMPONENTS,
    EITHER,
    FEATURES,
    label_of,
    meaning_of,
    name_of,
    sides,
)
from agents.phrases import PHRASES, mirrored
from technical_calculator import COMPONENTS as PARTS
from tests.cases import cases
from tests.conftest import Scale
from tests.worlds import desks
from tests.worlds.mirrors import Values
from tests.worlds.rule_seats import SEATS, answer, pairs, read, rows
from torra.config import Profile, validate
from torra.providers.rules.engine import TABLES
from torra.providers.rules.provider import RulesProvider

HERE = Path(__file__).parent

LONGEST = 25
"""Words of a sentence."""

NUMBER = re.compile(r"[+−-]?\d[\d,.]*%?")
CODE = re.compile(r"[a-z0-9]+_[a-z0-9_]*|[Α-Ωα-ω]|\b[a-z]+\.[a-z]")
NOTHING = re.compile(r"(?<![\d.,])0(?:\.0+)?(?:%| (?:ATR|points|times|%))")
"""A distance or a share of nothing is no argument; the gate counts reports and minutes besides."""
FAR = re.compile(r"(?:support|resistance) is ([\d.]+) ATR")
RSI = re.compile(r"RSI at (\d+)")


class Listened:
    """The rules, and every request with its reply."""

    name = "rules"

    def __init__(self) -> None:
        self.rules = RulesProvider()
        self.heard: list[tuple[Request, dict[str, Any]]] = []

    @synchronous
    def submit(self, request: Request) -> Future[Completion]:
        future = self.rules.submit(request)
        reply = future.result().reply
        assert reply is not None
        self.heard.append((request, reply))
        return future

    def close(self) -> None: ...


def listen(mode: str, steps: int) -> Iterator[tuple[Request, dict[str, Any]]]:
    """Yield what was asked and said on so many closes of the shipped sample."""
    provider = Listened()
    profile = validate(Profile, {"agents": {"mode": mode, "debate_rounds": 2}}, "a test")
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(
            Path(folder), (desks.BTC, desks.EUR), profile=profile, provider=provider
        )
        desks.open_for_work(desk)
        for _ in range(steps):
            desks.step(desk)
            yield from provider.heard
            provider.heard.clear()
        desk.close()


def side_of(request: Request, reply: Mapping[str, Any]) -> int:
    """Which way a reply argues, by its numbers and words of a kind; an advocate's is its office."""
    if request.role.id in SIDES:
        return SIDES[request.role.id]
    if request.role.kind == "trader":
        buys = reply["claim"].split(":")[0].lower().endswith("buy")
        return 1 if buys is not reply["decline"] else -1
    if request.role.kind in ("arbiter", "judge"):
        return WINNERS[reply.get("winner") or reply["side"]]
    if "adjustments" not in reply:
        return BIASES[reply["bias"]]
    weight = {"primary": 1.0, "secondary": 0.5}
    push = sum(
        weight[request.role.focus[vector]] * value
        for vector, value in reply["adjustments"].items()
        if value is not None
    )
    return (push > 1e-12) - (push < -1e-12)


def sentence(says: str, why: str) -> str:
    """A point as a page shows it."""
    return f"{says}, {why}."


def ids_of(point: str) -> list[tuple[str, ...]]:
    """The readings that a sentence may be of: those whose words, for either side, are its own."""
    return sentences().get(re.sub(NUMBER, "#", point).lower(), [])


@cache
def sentences() -> Mapping[str, list[tuple[str, ...]]]:
    """Which readings each sentence of the table, for either side and without its numbers, is of."""
    found: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for reads, saying in PHRASES.items():
        pairs = ((saying.half, saying.why), (saying.begun, saying.why))
        for half, why in (*pairs, (saying.faded, saying.faded_why)):
            unit = re.sub(r"\{:[^}]*\}", "#", saying.format)
            text = sentence(half, why).replace("{n}", unit)
            text = re.sub(NUMBER, "#", text[:1].upper() + text[1:])
            for words in {text.lower(), mirrored(text).lower()}:
                found[words].append(reads)
    return found


@pytest.mark.journey
@pytest.mark.parametrize("mode", ["budget", "full", "firm", "swarm"])
def test_what_is_said_on_the_shipped_sample(mode: str, scaled: Scale, record_property: Any) -> None:
    """Each claim has a side and a number, each point its author's side; no id or Greek."""
    seen: Counter[str] = Counter()
    claims: dict[tuple[str, ...], dict[str, str]] = {}
    for request, reply in listen(mode, scaled(5_000) if scaled.whole else 8):
        if request.role.kind == "gate":
            check_words(reply["reasoning"])
            continue
        report = check(request, reply)
        if request.role.kind == "arbiter":
            for side in ("BUY", "SELL"):
                check_thesis(request, report, side)
        if report.claim and request.role.kind != "trader":
            place: tuple[str, ...] = (request.symbol, request.timeframe, request.bar_time)
            claims.setdefault(place, {})[request.role.id] = report.claim
            seen[report.claim.split(":")[0]] += 1
    for tick, said in claims.items():
        assert len(set(said.values())) == len(said), (tick, said)
    kinds = {"firm": ("Long", "Short", "No winner"), "swarm": ("No side", "Range")}
    assert min(seen[head] for head in kinds.get(mode, ("Up", "Down", "No case"))[-2:]) > 0, seen
    record_property("seen", f"{len(claims)} ticks, {sum(seen.values())} reports: {dict(seen)}")


def check_thesis(asked: Request, manager: AgentReport, side: str) -> None:
    """Check what the trader says of an opening on this tick: nothing ends it beyond its stop."""
    way, close, atr = (
        (1 if side == "BUY" else -1),
        *(float(asked.features[f"technical.{name}"].value or 0.0) for name in ("close", "atr14")),
    )
    given: Values = {"side": side, "stop": close - 1.5 * way * atr, "conviction": 0.5}
    named = {f"order.{name}": Feature(f"order.{name}", value) for name, value in given.items()}
    about = replace(
        asked,
        role=SEATS["trader"],
        schema=schema("thesis"),
        features={**asked.features, **named},
        reports=(*asked.reports, manager),
    )
    reply = answer(about)
    check(about, reply)
    for end in reply["invalidation"]:
        assert 0.0 < way * (close - end["level"]) < 1.5 * atr


def check(request: Request, reply: dict[str, Any]) -> AgentReport:
    """Check a reply: it is read as it was said, and nothing of it has to be mended."""
    report = read(request, reply)
    assert report.flags == (), (request.role.id, report.flags, reply)
    if report.abstained:
        return report
    side = side_of(request, reply)
    head = report.claim.split(":")[0]
    moved = any(reply.get("adjustments", {"": 1}).values())
    if request.role.kind == "researcher" and not moved:
        assert head == "No case" and not reply["points_for"] and reply["confidence"] == "low"
    elif request.role.kind in ("analyst", "researcher"):
        assert head == {1: "Up", -1: "Down", 0: "No side"}[side]
        assert bool(reply["points_for"]) is bool(side)
    elif request.role.kind in ("arbiter", "judge"):
        none = "No winner" if request.role.kind == "arbiter" else "No side"
        assert head == {1: "Long", -1: "Short", 0: none}[side]
    for field, way in (("points_for", side or 1), ("points_against", -(side or 1))):
        for point in reply[field]:
            check_point(request, point, way)
        assert [one.says for one in getattr(report, field)] == [one["says"] for one in reply[field]]
    assert len(reply["points_for"]) <= FOR and len(reply["points_against"]) <= AGAINST
    risks = reply.get("risks", ())
    assert report.risks == tuple(risks) and all(
        ids_of(risk) for risk in risks if "event" not in risk
    )
    counter = [reply["counter"]] if reply.get("counter") else []
    answers = [one["says"] for one in reply.get("rebuttals", ())]
    for text in (report.claim, *risks, *counter, *answers):
        check_words(text)
        assert NUMBER.search(text) and text.endswith("."), text
    assert len(report.rebuttals) == len(answers)
    ends = reply.get("falsifiers", reply.get("invalidation", ()))
    assert len(report.falsifiers) == len(ends) <= FALSIFIERS
    for text in report.falsifiers:
        assert text.startswith(f"a close {'below' if side > 0 else 'above'} ")
        check_words(text)
    return report


def check_words(text: str) -> None:
    assert not CODE.search(text), text
    assert not NOTHING.search(text), text
    assert not [far for far in FAR.findall(text) if float(far) > 1.0], text
    assert not [rsi for rsi in RSI.findall(text) if abs(float(rsi) - 50.0) < 3.0], text
    for sentence in re.split(r"(?<=\.)\s", text):
        assert len(sentence.split()) <= LONGEST, sentence


def check_point(request: Request, point: dict[str, Any], side: int) -> None:
    """By the table's own sign of the feature that the words are of, not by who made them."""
    text = sentence(point["says"], point["why"])
    check_words(text)
    assert NUMBER.search(text), text
    candidates = ids_of(text)
    if not candidates and request.role.kind in ("arbiter", "judge"):
        assert point["id"].startswith("scores."), "nothing else leans there"
        return
    assert candidates, point
    assert any(point["id"] in reads for reads in candidates), point
    assert side in sides(point["id"], request.features), point
    allowed = {way for reads in candidates for way in _allowed(reads, request)}
    assert side in allowed, (point, candidates)


def _allowed(reads: tuple[str, ...], request: Request) -> set[int]:
    """The sides for which the features of a reading may stand, those without a side aside."""
    if PHRASES[reads].faded:
        return {1, -1}
    named = [name for name in reads if name in request.features or name.startswith("scores.")]
    found = [sides(name, request.features) or EITHER for name in named]
    if reads in _ORDERED:
        one, other = (float(request.features[name].value or 0) for name in reads[:2])
        return {1 if one > other else -1}
    return set.intersection(*map(set, found)) if found else set()


_ORDERED = [
    tuple(f"technical.{name}" for name in names)
    for names in (
        ("tenkan", "kijun", "atr14"), ("sma50", "sma200", "atr14"), ("stoch_k", "stoch_d"),
        ("macd", "macd_signal", "atr14"), ("lower_wick", "upper_wick"),
    )
]  # fmt: skip
"""Readings whose side is which of two features is the larger."""


# --- the table ------------------------------------------------------------------------------------


def test_every_feature_of_a_bundle_has_its_words() -> None:
    heard = listen("full", 1)
    known = {name for request, _ in heard for name in request.features}
    strangers = {name for name in known if name not in FEATURES and "news.item" not in name}
    assert not strangers
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(Path(folder), (desks.EUR,))
        desks.open_for_work(desk)
        desks.step(desk)
        tick = desk.database.latest_tick("EURUSD", "H1")
        desk.close()
    assert tick is not None
    assert {row["id"] for row in tick["features"]} <= set(FEATURES)
    assert set(COMPONENTS) == {name for part in PARTS.values() for name in part}
    assert name_of("host.own") == label_of("host.own") == "host.own"
    assert meaning_of("host.own") == meaning_of("market.session") == ""
    assert meaning_of("technical.macd") == "high: the faster mean leads up; low: it leads down"
    assert (label_of("technical.ema20"), label_of("technical.support")) == ("EMA20", "support")


@cases(("reads", "values", "fades", "clear"), rows(HERE / "clear_numbers.csv"))
def test_what_is_not_clear_is_not_said(reads: str, values: str, fades: str, clear: str) -> None:
    numbers = tuple(map(float, values.split()))
    assert PHRASES[tuple(reads.split())].fits(numbers, fades=bool(fades)) is bool(clear)


def test_every_reading_of_the_rules_can_be_said() -> None:
    readers = [rule for table in TABLES.values() for rules in table.values() for rule in rules]
    silent = {reader.reads for reader in readers if reader.reads not in PHRASES}
    assert silent == {("memory.trend_direction",)}, "its number is not known"
    for reader in readers:
        assert reader.range >= 0.0 or PHRASES[reader.reads].faded
        assert not reader.component or (reader.component,) in PHRASES


def test_no_word_of_the_tables_is_a_code_and_the_mirror_of_the_mirror_is_the_text() -> None:
    for words in FEATURES.values():
        check_words(f"{words.name}. {words.high}. {words.low}")
    for phrase in PHRASES.values():
        check_words(f"{phrase.half}, {phrase.why}. {phrase.faded}")
        for text in (phrase.half, phrase.why, phrase.faded, phrase.faded_why):
            assert mirrored(mirrored(text)) == text


@cases(("name", "value", "allowed"), rows(HERE / "cited_sides.csv"))
def test_a_feature_may_be_cited_for_its_side(name: str, value: str, allowed: str) -> None:
    """A shorter wick, levels beside their like, headlines by their score, a far ceiling."""
    beside = {
        "technical.close": 100.0, "technical.upper_wick": 0.1, "technical.lower_wick": 0.5,
        "technical.prev_swing_high": 103.0, "technical.span_b": 99.0, **pairs(f"{name}={value}"),
    }  # fmt: skip
    features = {key: Feature(key, one) for key, one in beside.items()}
    assert set(sides(name, features)) == set(map(int, allowed.split()))
