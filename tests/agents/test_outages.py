"""Models that fail: who is heard, whose fallback is asked, and how large an opening may be.

Every mode, every set of seats that abstain while all others fail, every way to fail.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from math import floor
from typing import Any, Final

import pytest

from agent_config import EXPERTS, GATE_ID, MODES, READER_ID, Mode
from agents.contracts import (
    OPINIONS,
    SIDES,
    VECTORS,
    ModelUnavailable,
)
from agents.debate.deliberation import ABSTAINED, OUTAGE, Deliberation
from agents.debate.scoring import DIRECTIONS
from agents.registry import AGENTS
from tests.agents.test_debate_invariants import bits
from tests.cases import cases
from tests.doubles.scripted import (
    FULL_FEATURES,
    NEVER,
    SWARM_FEATURES,
    Scripted,
    abstaining,
    chart,
    context,
    debate,
    decision,
    judgement,
    regime,
    reporting,
    ruling,
    settings,
)
from tests.tries import Tries

Scaled = Callable[..., int]

FAILURES: Final[Mapping[str, Any]] = {
    "no key": ModelUnavailable("error", "no address or key", again=None, billed=False),
    "500": ModelUnavailable("error", "500"),
    "503": ModelUnavailable("error", "503", billed=False),
    "hang": TimeoutError(),
    "garbage": "I would hold here.",
}
FEATURES: Final = {**FULL_FEATURES, **SWARM_FEATURES, "company.pe": 21.5}
ABOUT: Final = context(features=FEATURES)
WORDS: Final = {"budget": 2, "full": 6, "firm": 5, "swarm": 5}
"""How many words the conviction of each mode is made of: 1/n bounds an outage."""


def opinions(mode: str) -> tuple[str, ...]:
    """Return the seats of a mode that have an opinion."""
    return tuple(name for name in MODES[mode].seats if AGENTS[name].role.kind in OPINIONS)


def silent_sets(mode: str) -> list[frozenset[str]]:
    """Return every set of seats that abstain while at least one other fails.

    Where all experts of a swarm abstain its judge has nothing to read, and is not asked.
    """
    seats = opinions(mode)
    parts = (part for n in range(len(seats)) for part in itertools.combinations(seats, n))
    return [frozenset(part) for part in parts if not set(EXPERTS) <= set(part)]


def held(
    mode: str,
    script: Mapping[str, Any],
    *,
    silent: frozenset[str] = frozenset(),
    fallback: Any = None,
    seconds: float | None = None,
    **more: Any,
) -> tuple[Deliberation, Scripted]:
    """Return a deliberation of a mode, and the provider that was asked."""
    agents = {name: abstaining(seat) if name in silent else seat for name, seat in AGENTS.items()}
    provider = Scripted(script)
    more = {"second_look": "never", **more}
    timed = {} if seconds is None else {"seconds": seconds}
    record = debate(
        provider,
        about=ABOUT,
        config=settings(mode=mode, **more),
        agents=agents,
        fallback=fallback,
        **timed,
    )
    return record, provider


def scores_of(record: Deliberation) -> dict[str, float]:
    return {vector: record.scores[vector]["score"] for vector in VECTORS}


# --- source, fallback, nobody else ----------------------------------------------------------------


@cases("mode", list(MODES))
@cases("kind", FAILURES)
def test_where_nobody_speaks_and_somebody_failed_the_fallback_is_asked(
    mode: str, kind: str, scaled: Scaled
) -> None:
    every = silent_sets(mode)
    for silent in random.Random(f"{mode}{kind}").sample(every, scaled(len(every), 6)):
        down = dict.fromkeys(MODES[mode].seats, FAILURES[kind])
        record, provider = held(mode, down, silent=silent, fallback=lambda *_: chart(score=0.5))
        assert str(record.source_type) == "LEGACY", silent
        assert not record.heard and record.outage and ABSTAINED not in record.flags
        assert record.panel.buy.conviction == record.panel.sell.conviction <= 1 / WORDS[mode]
        assert not provider.asked(GATE_ID) and not provider.asked("trader")
        assert {request.role.tier for request in provider.requests} <= {"quick", "deep"}
        alone, provider = held(mode, down, silent=silent)
        assert str(alone.source_type) == "L1_ONLY" and alone.outage
        assert bits(scores_of(alone)) == bits(ABOUT.scores)


@pytest.mark.parametrize("mode", list(MODES))
def test_calls_that_hang_are_an_outage_when_the_time_is_up(mode: str, tries: Tries) -> None:
    silent = frozenset(opinions(mode)[:1])
    asked: list[str] = []

    def own(*_: Any) -> dict[str, Any]:
        asked.append("fallback")
        return chart(score=0.5)

    hanging = dict.fromkeys(MODES[mode].seats, NEVER)
    for attempt in tries():
        asked.clear()
        record, _ = held(mode, hanging, silent=silent, fallback=own, seconds=1.0)
        assert record.outage
        with attempt:
            assert str(record.source_type) == "LEGACY" and asked == ["fallback"]
            assert set(record.failures.values()) == {"timeout"}


@pytest.mark.parametrize("mode", list(MODES))
def test_where_all_abstain_nothing_failed_and_nobody_else_is_asked(mode: str) -> None:
    silent = frozenset(opinions(mode))
    script = {READER_ID: FAILURES["500"]}  # no opinion: it may fail without an outage
    record, provider = held(mode, script, silent=silent, fallback=lambda *_: chart())
    assert str(record.source_type) == "L1_ONLY" and not record.outage
    assert ABSTAINED in record.flags and OUTAGE not in record.flags
    assert {one.reason for one in record.reports if one.agent_id in silent} == {"nothing to read"}
    assert {record.conviction_for(side) for side in DIRECTIONS} == {1.0}
    assert not provider.asked(GATE_ID) and not provider.asked("chart_scorer")


def test_one_that_is_heard_is_enough_to_be_no_outage() -> None:
    for mode in MODES:
        for name in opinions(mode):
            down = dict.fromkeys(MODES[mode].seats, FAILURES["500"])
            spoken = decision if AGENTS[name].role.kind == "judge" else reporting(value=0.1)
            record, provider = held(mode, {**down, name: spoken}, fallback=lambda *_: chart())
            asked = bool(provider.asked(name))
            assert record.heard == asked and record.outage != asked, (mode, name)


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0.0, 0.1, 0.25, 1 / 3, 1.0])
@pytest.mark.parametrize("mode", list(MODES))
def test_the_share_of_an_outage_is_the_setting_and_one_word_at_most(mode: str, most: float) -> None:
    down = dict.fromkeys(MODES[mode].seats, FAILURES["500"])
    record, _ = held(mode, down, outage_size=most)
    share = min(most, 1 / WORDS[mode])
    if mode == "firm":  # below its quorum: no debate was held
        share = min(most, 0.15) * 0.4
    for side in DIRECTIONS:
        assert share - 1e-8 <= record.conviction_for(side) <= share
        assert record.size_share(side) <= record.rule_ruling.multiplier * share


def test_a_debate_that_was_not_held_leaves_no_more_than_one_that_was() -> None:
    """Below a firm's quorum nobody won: so is it where the last of its analysts fails, too."""
    down = dict.fromkeys(MODES["firm"].seats, FAILURES["500"])
    agreeing = {"technical": reporting(value=0.2)}
    one, _ = held("firm", {**down, **agreeing}, quorum=3)
    none, _ = held("firm", down, quorum=3)
    assert one.heard and none.outage
    assert none.conviction_for("BUY") <= one.conviction_for("BUY")


def drawn(rng: random.Random, mode: str) -> dict[str, Any]:
    """Return what the seats of a mode say, each by chance."""

    def sure() -> str:
        return rng.choice(["high", "medium", "low"])

    side = rng.choice(["LONG", "SHORT", "NONE"])
    said: dict[str, Any] = {}
    for name in MODES[mode].seats:
        kind = AGENTS[name].role.kind
        told = {"confidence": sure()}
        if kind == "arbiter":
            said[name] = lambda request, told=told: judgement(request, winner=side, **told)
        elif kind == "judge":
            said[name] = lambda request, told=told: decision(request, side=side, **told)
        elif kind == "reader":
            said[name] = lambda request, told=told: regime(request, **told)
        elif kind == "gate":
            said[name] = ruling
        else:
            said[name] = reporting(value=round(rng.uniform(-0.3, 0.3), 2), **told)
    return said


def test_no_drawn_outage_makes_an_opening_larger(scaled: Scaled) -> None:
    """Beside the same desk whose failed seats abstained: the same words, the same ruling."""
    rng, smaller, unheard = random.Random(59), 0, 0
    for _ in range(scaled(10_000, 160)):
        mode = rng.choice(list(MODES))
        seats, script = opinions(mode), drawn(rng, mode)
        fates = {name: rng.choice(["speaks", "abstains", "fails", "fails"]) for name in seats}
        if rng.random() < 0.2:
            fates = {name: rng.choice(["abstains", "fails"]) for name in seats}
        silent = frozenset(name for name, fate in fates.items() if fate == "abstains")
        broken = {name for name, fate in fates.items() if fate == "fails"}
        if "research_manager" in script and rng.random() < 0.5:
            broken.add("research_manager")
        failing = {name: rng.choice(list(FAILURES.values())) for name in sorted(broken)}
        record, _ = held(mode, {**script, **failing}, silent=silent)
        quiet = silent | broken | record.not_asked.keys()
        beside, _ = held(mode, script, silent=quiet)
        if record.heard:
            assert record.debate == beside.debate, fates
        elif record.outage:
            unheard += 1
            assert bits(scores_of(record)) == bits(ABOUT.scores)
            assert record.conviction_for("BUY") <= min(0.25, 1 / WORDS[mode])
        for side in DIRECTIONS:
            assert record.conviction_for(side) <= beside.conviction_for(side), fates
            smaller += record.conviction_for(side) < beside.conviction_for(side)
    assert smaller and unheard


def pushing(mode: str, side: str, name: str) -> Any:
    """Return what a seat says that surely agrees with an opening of a side, BUY or SELL.

    The researcher of the other side has no case: one that concedes is of low confidence.
    """
    way = DIRECTIONS[side]
    winner = "LONG" if way > 0 else "SHORT"
    kind = AGENTS[name].role.kind
    return {
        "arbiter": lambda request: judgement(request, winner=winner, confidence="high"),
        "judge": lambda request: decision(request, side=winner, confidence="high"),
        "reader": regime,
        "gate": ruling,
    }.get(kind, reporting(value=0.0 if SIDES.get(name) == -way else 0.1 * way))


@pytest.mark.parametrize("quorum", [None, 0, 3])
@pytest.mark.parametrize("side", list(DIRECTIONS))
@pytest.mark.parametrize("mode", list(MODES))
def test_an_agreeing_seat_that_fails_enlarges_nothing_the_last_one_included(
    mode: str, side: str, quorum: int | None, scaled: Scaled
) -> None:
    more: dict[str, Any] = {} if quorum is None else {"quorum": quorum}
    seats = opinions(mode)
    for seed in range(scaled(200, 3)):
        order = random.Random(f"{mode}{seed}").sample(seats, len(seats))
        script = {name: pushing(mode, side, name) for name in MODES[mode].seats}
        convictions = []
        for at in range(len(seats) + 1):
            down = dict.fromkeys(order[:at], FAILURES["500"])
            record, _ = held(mode, {**script, **down}, **more)
            convictions.append(record.conviction_for(side))
        assert convictions == sorted(convictions, reverse=True), order
        assert convictions[0] == 1.0 and 0.0 < convictions[-1] <= 0.25


def test_the_share_is_rounded_down() -> None:
    for mode, words in WORDS.items():
        down = dict.fromkeys(MODES[mode].seats, FAILURES["500"])
        record, _ = held(mode, down, outage_size=1.0, quorum=0)
        assert record.conviction_for("BUY") == floor(1e8 / words) / 1e8


def test_the_table_of_words_is_that_of_the_seats() -> None:
    def words(row: Mode) -> int:
        kinds = [AGENTS[name].role.kind for name in row.seats]
        return kinds.count("analyst") + kinds.count("judge") + ("researcher" in kinds)

    assert {name: words(row) for name, row in MODES.items()} == WORDS
