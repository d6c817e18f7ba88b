"""What the rules' agents say: claims, points on their own side, falsifiers, in a trader's words."""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from agents.arguments import AGAINST, FALSIFIERS, FOR
from agents.contracts import SIDES, VECTORS, Completion, Feature, Request, Shape, synchronous
from agents.debate import replies
from agents.features import (
    COMPONENTS,
    EITHER,
    FEATURES,
    label_of,
    meaning_of,
    name_of,
    sides,
)
from agents.phrases import PHRASES, Phrase, mirrored
from agents.registry import AGENTS
from technical_calculator import COMPONENTS as PARTS
from tests.cases import cases
from tests.conftest import Scale
from tests.worlds import desks
from tests.worlds.mirrors import MARKETS
from tests.worlds.mirrors import mirrored as upside_down
from torra.config import Profile, validate
from torra.providers.rules.provider import RulesProvider
from torra.providers.rules.tables import TABLES

Scaled = Callable[..., int]
SHAPES: dict[str, Shape] = {
    "bull_researcher": "case", "bear_researcher": "case", "news": "news",
}  # fmt: skip
LONGEST = 25
"""Words of a sentence."""

NUMBER = re.compile(r"[+−-]?\d[\d,.]*%?")
CODE = re.compile(r"[a-z0-9]+_[a-z0-9_]*|[Α-Ωα-ω]|\b[a-z]+\.[a-z]")
NOTHING = re.compile(r"(?<![\d.,])0(?:\.0+)?(?:%| (?:ATR|points|times|%))")
"""A distance or a share of nothing is no argument; the gate counts reports and minutes besides."""
FAR = re.compile(r"(?:support|resistance) is ([\d.]+) ATR")
RSI = re.compile(r"RSI at (\d+)")
LINE = re.compile(r"a close (above|below) ([\d,.]+), .+, in the next 12 bars")


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
        desks.take_lease(desk)
        for _ in range(steps):
            desks.step(desk)
            yield from provider.heard
            provider.heard.clear()
        desk.close()


def side_of(request: Request, reply: dict[str, Any]) -> int:
    """Which way a report pushes, by its numbers; an advocate's side is its office."""
    if request.role.id in SIDES:
        return SIDES[request.role.id]
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
@pytest.mark.parametrize("mode", ["budget", "full"])
def test_what_is_said_on_the_shipped_sample(mode: str, scaled: Scale, record_property: Any) -> None:
    """Each claim has a side and a number, each point its author's side; no id or Greek."""
    heard = listen(mode, scaled(5_000) if scaled.whole else 8)
    seen: Counter[str] = Counter()
    claims: dict[tuple[str, ...], dict[str, str]] = {}
    for request, reply in heard:
        if request.role.kind == "gate":
            check_words(reply["reasoning"])
            continue
        if reply["abstained"]:
            continue
        claim = reply["claim"]
        check_claim(request, reply, claim)
        check_points(request, reply, side_of(request, reply))
        place: tuple[str, ...] = (request.symbol, request.timeframe, request.bar_time)
        claims.setdefault(place, {})[request.role.id] = claim
        seen[claim.split(":")[0]] += 1
    for tick, said in claims.items():
        assert len(set(said.values())) == len(said), (tick, said)
    assert min(seen["Up"], seen["Down"], seen["No case"]) > 0, seen
    record_property("seen", f"{len(claims)} ticks, {sum(seen.values())} reports: {dict(seen)}")


def check_points(request: Request, reply: dict[str, Any], side: int) -> None:
    """As they were said, and as any model's reply is read: nothing of them has to be mended."""
    for field, way in (("points_for", side), ("points_against", -side)):
        for point in reply[field]:
            check_point(request, point, way)
    for answer in reply.get("rebuttals", ()):
        check_words(answer["says"])
        assert NUMBER.search(answer["says"]), answer
    told = replies.read(
        SHAPES.get(request.role.id, "report"), reply, request.role, request.features
    )
    assert told.flags == ()
    assert [point.says for point in told.points_for] == [p["says"] for p in reply["points_for"]]
    assert {point.side for point in told.points_for} <= {side}
    assert {point.side for point in told.points_against} <= {-side}
    assert len(told.rebuttals) == len(reply.get("rebuttals", ()))
    assert len(told.falsifiers) == len(reply.get("falsifiers", ()))
    check_falsifiers(request, told.falsifiers)


def check_words(text: str) -> None:
    assert not CODE.search(text), text
    assert not NOTHING.search(text), text
    assert not [far for far in FAR.findall(text) if float(far) > 1.0], text
    assert not [rsi for rsi in RSI.findall(text) if abs(float(rsi) - 50.0) < 3.0], text
    for sentence in re.split(r"(?<=\.)\s", text):
        assert len(sentence.split()) <= LONGEST, sentence


def check_claim(request: Request, reply: dict[str, Any], claim: str) -> None:
    check_words(claim)
    assert NUMBER.search(claim), claim
    head = claim.split(":", maxsplit=1)[0]
    side = side_of(request, reply)
    moved = any(reply["adjustments"].values())
    if request.role.id in SIDES and not moved:
        assert head == "No case" and not reply["points_for"] and reply["confidence"] == "low"
    else:
        assert head == {1: "Up", -1: "Down", 0: "No side"}[side], (claim, reply)
        assert bool(reply["points_for"]) is bool(side)
    assert len(reply["points_for"]) <= FOR
    assert len(reply["points_against"]) <= AGAINST


def check_point(request: Request, point: dict[str, Any], side: int) -> None:
    """By the table's own sign of the feature that the words are of, not by who made them."""
    text = sentence(point["says"], point["why"])
    check_words(text)
    assert NUMBER.search(text), text
    candidates = ids_of(text)
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


def check_falsifiers(request: Request, told: Sequence[str]) -> None:
    assert len(told) <= FALSIFIERS
    for text in told:
        found = LINE.fullmatch(text)
        assert found, text
        way, price = found.groups()
        assert way == ("below" if SIDES[request.role.id] > 0 else "above")
        close = request.features["technical.close"].value
        assert isinstance(close, float)
        beyond = (float(price.replace(",", "")) - close) * SIDES[request.role.id]
        assert beyond <= 0.51 * 10.0 ** -len(price.partition(".")[2]), "it holds already"
        check_words(text)


# --- the table ------------------------------------------------------------------------------------


def test_every_feature_of_a_bundle_has_its_words() -> None:
    heard = listen("full", 1)
    known = {name for request, _ in heard for name in request.features}
    strangers = {name for name in known if name not in FEATURES and "news.item" not in name}
    assert not strangers
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(Path(folder), (desks.EUR,))
        desks.take_lease(desk)
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


def _of(*names: str) -> Phrase:
    return PHRASES[tuple(f"technical.{name}" for name in names)]


@cases(
    ("saying", "values", "fades", "said"),
    [
        (_of("rsi14"), (51.0,), False, False),
        (_of("rsi14"), (54.0,), False, True),
        (_of("rsi14"), (55.0,), True, False),
        (_of("rsi14"), (63.0,), True, True),
        (_of("support_distance_atr"), (0.06,), False, False),
        (_of("support_distance_atr"), (0.3,), False, True),
        (_of("support_distance_atr"), (3.0,), False, False),
        (_of("close", "ema20", "atr14"), (100.04, 100.0, 1.0), False, False),
        (_of("close", "ema20", "atr14"), (100.06, 100.0, 1.0), False, True),
        (_of("body_atr", "volume_ratio"), (0.5, 1.0), False, False),
        (_of("body_atr", "volume_ratio"), (0.5, 1.4), False, True),
        (_of("lower_wick", "upper_wick"), (0.1, 0.05), False, False),
        (PHRASES["sentiment.streak",], (1.0,), False, False),
        (PHRASES["news.score",], (0.004,), False, False),
        (PHRASES["news.score",], (0.2,), False, True),
    ],
)
def test_what_is_not_clear_is_not_said(
    saying: Phrase, values: tuple[float, ...], fades: bool, said: bool
) -> None:
    assert saying.fits(values, fades=fades) is said


def test_a_reading_of_several_features_is_about_the_one_that_decides() -> None:
    bands = _of("close", "bb_lower", "bb_mid", "bb_upper").about
    wicks, lines = _of("lower_wick", "upper_wick").about, _of("adx14", "plus_di", "minus_di").about
    assert bands and wicks and lines
    assert (bands(101, 98, 100, 102), bands(99, 98, 100, 102)) == (3, 1)
    assert (wicks(0.5, 0.1), wicks(0.1, 0.5)) == (0, 1)
    assert (lines(20, 30, 10), lines(20, 10, 30)) == (1, 2)


def test_every_reading_of_the_rules_can_be_said() -> None:
    readers = [rule for table in TABLES.values() for rules in table.values() for rule in rules]
    silent = {reader.reads for reader in readers if reader.reads not in PHRASES}
    assert silent == {("memory.trend_direction",)}, "its number is not known"
    faded = [reader for reader in readers if reader.range < 0.0]
    assert all(PHRASES[reader.reads].faded for reader in faded)
    for reader in readers:
        if reader.component:
            assert reader.component.reads in PHRASES


def test_no_word_of_the_table_is_a_code() -> None:
    for words in FEATURES.values():
        check_words(f"{words.name}. {words.high}. {words.low}")
    for saying in PHRASES.values():
        check_words(f"{saying.half}, {saying.why}. {saying.faded}")


def test_the_mirror_of_the_mirror_is_the_text() -> None:
    for saying in PHRASES.values():
        for text in (saying.half, saying.why, saying.faded, saying.faded_why):
            assert mirrored(mirrored(text)) == text


@cases(
    ("name", "value", "allowed"),
    [
        ("technical.ema20", 99.0, (1,)), ("technical.ema20", 101.0, (-1,)),
        ("technical.rsi14", 80.0, (1, -1)), ("technical.adx14", 40.0, ()),
        ("technical.macd_hist", -0.1, (-1,)), ("technical.support_distance_atr", 0.4, (1,)),
        ("technical.support_distance_atr", 5.0, (1, -1)), ("technical.bos", 0.0, ()),
        ("technical.volume_ratio", 3.0, ()), ("memory.trend_direction", "rising", (1,)),
        ("memory.position", "LONG", ()), ("host.own", 3.0, (1, -1)), ("news.score", None, ()),
    ],
)  # fmt: skip
def test_a_feature_may_be_cited_for_its_side(
    name: str, value: Any, allowed: tuple[int, ...]
) -> None:
    features = {"technical.close": Feature("technical.close", 100.0), name: Feature(name, value)}
    assert sides(name, features) == allowed


# --- the mirrored market --------------------------------------------------------------------------


def said(values: dict[str, Any], scores: float) -> list[tuple[str, dict[str, Any]]]:

    features = {name: Feature(name, value) for name, value in values.items()}
    found = []
    for agent in AGENTS.values():
        if agent.role.kind == "gate":
            continue
        request = Request(
            role=agent.role, round=1, attempt=1, symbol="X", timeframe="H1", bar_time="",
            model="", system="", user="", schema=replies.schema("report"), features=features,
            reports=(), scores=dict.fromkeys(VECTORS, scores), max_output_tokens=1, limit_s=1.0,
        )  # fmt: skip
        reply = RulesProvider().submit(request).result().reply
        assert reply is not None
        found.append((agent.role.id, reply))
    return found


@pytest.mark.journey
@hypothesis_settings(deadline=None, max_examples=30)
@given(MARKETS)
def test_the_mirrored_market_is_told_in_mirrored_words(market: dict[str, Any]) -> None:
    twins = {"bull_researcher": "bear_researcher", "bear_researcher": "bull_researcher"}
    here, there = dict(said(market, 0.125)), dict(said(upside_down(market), -0.125))

    def bare(text: str) -> str:
        return re.sub(NUMBER, "#", text).replace("Up:", "Down:")

    for role, reply in here.items():
        twin = there[twins.get(role, role)]
        fields = ["points_for", "points_against"]
        # Of no side they are LONG's and SHORT's, which the mirror exchanges.
        twins_of = fields[::-1] if "NONE" in (reply.get("winner"), reply.get("side")) else fields
        for field, other_field in zip(fields, twins_of, strict=True):
            for one, other in zip(reply[field], twin[other_field], strict=True):
                for part in ("says", "why"):
                    assert bare(mirrored(one[part])).lower() == bare(other[part]).lower()
        for field, part in (("rebuttals", "says"), ("falsifiers", "close"), ("falsifiers", "what")):
            for one, other in zip(reply.get(field, ()), twin.get(field, ()), strict=True):
                assert bare(mirrored(one[part])) == bare(other[part])
