"""Any subset of any desk may fail, in any way: who is asked, what counts, how large an opening is.

`expect` is the rule of docs/debate.md, "When things fail", once more in terms of who fails. Each
debate is compared with the same desk at which those seats abstained: a failure lends nothing.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping
from math import floor
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from agent_config import EXPERTS, GATE_ID, MODES, QUORUM_FROM, READER_ID
from agents.contracts import OPINIONS, SIDES, VECTORS, ModelUnavailable, Request
from agents.debate.deliberation import ABSTAINED, OUTAGE, Deliberation
from agents.debate.scoring import DIRECTIONS
from agents.registry import AGENTS
from tests.agents.test_debate_invariants import bits, holds
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
    debate_hanging,
    decision,
    judgement,
    regime,
    reporting,
    ruling,
    settings,
)
from tests.tries import Tries
from tests.worlds import desks
from torra.config import Instance, Profile, validate
from torra.tick.debate import score_chart

Scaled = Callable[..., int]
Seats = frozenset[str]

FAILURES: Final[Mapping[str, Any]] = {
    "no key": ModelUnavailable("error", "no address or key", again=None, billed=False),
    "error": RuntimeError("500"),
    "503": ModelUnavailable("error", "503", billed=False),
    "timeout": TimeoutError(),
    "garbage": "I would hold here.",
}
REASONS: Final = {"timeout": "timeout", "garbage": "garbage"}
ASKED_TWICE: Final = ("error", "503", "garbage")
FEATURES: Final = {**FULL_FEATURES, **SWARM_FEATURES, "company.pe": 21.5}
MARKETS: Final[tuple[Mapping[str, float | str], ...]] = (
    {},
    {"market.regime": "volatile"},
    {"macro.vix_rank": 99.0, "market.regime": "range"},
    {"derivs.funding_rank": 99.0},
    {"market.spread_atr": 9.0, "derivs.funding_rank": 0.5},
)
"""A calm one, a storm, a panic, and markets in which one side, or both, cannot be opened."""
SILENT: Final[Mapping[str, Seats]] = {
    "budget": frozenset(),
    "full": frozenset({"news"}),
    "firm": frozenset({"news", "fundamental"}),
    "swarm": frozenset({"microstructure", "macro"}),
}
"""Seats that by turns have nothing to read."""
WORDS: Final = {"budget": 2, "full": 6, "firm": 5, "swarm": 5}
"""How many words the conviction of each mode is made of: 1/n bounds an outage."""


class Expected(NamedTuple):
    """What must come of a desk of which some seats fail when they are asked."""

    source: str
    asked: Seats
    failed: Seats
    left_out: dict[str, str]
    degraded: list[str]


def seats(mode: str, *kinds: str) -> Seats:
    return frozenset(name for name in MODES[mode].seats if AGENTS[name].role.kind in kinds)


def expect(mode: str, failing: Seats, silent: Seats, *, fallback: bool) -> Expected:
    """Foretell a debate; `silent` are those that abstain without a call and so cannot fail."""
    analysts, sides = seats(mode, "analyst"), seats(mode, "researcher")
    reports = analysts - failing | analysts & silent
    short = len(analysts) >= QUORUM_FROM and len(reports) < 3 and bool(sides)
    left_out = dict.fromkeys(sides if short else (), "quorum")
    sides = frozenset() if short else sides
    judges = seats(mode, "judge") if reports - silent else frozenset()
    if not reports:
        left_out |= dict.fromkeys(seats(mode, "judge"), "quorum")
    asked = ((analysts | seats(mode, "reader")) - silent) | sides | judges
    opinions = (reports - silent) | (sides | judges) - failing
    if opinions:  # without a case the manager abstains before it is asked
        asked |= {GATE_ID} | (seats(mode, "arbiter") if sides - failing else frozenset())
        failed = asked & failing
        full = not failed and not left_out
        source = MODES[mode].complete if full else "AGENT_PARTIAL"
    else:
        failed = asked & failing
        source = "LEGACY" if fallback else "L1_ONLY"
        asked |= {"chart_scorer"} if fallback else frozenset()
    degraded = [f"degraded:{len(reports)}_of_{len(analysts)}"] if short else []
    return Expected(str(source), asked, failed, left_out, degraded)


def subsets(mode: str) -> list[Seats]:
    names = MODES[mode].seats
    parts = (p for size in range(len(names) + 1) for p in itertools.combinations(names, size))
    return [frozenset(part) for part in parts]


def drawn(rng: random.Random, mode: str) -> dict[str, Any]:
    """Return a script in which each seat of a mode speaks by chance."""
    side, share = rng.choice(["LONG", "SHORT", "NONE"]), rng.choice([0.2, 0.5, 0.8])
    script: dict[str, Any] = {}
    for name in MODES[mode].seats:
        sure = {"confidence": rng.choice(["high", "medium", "low"])}
        kinds: dict[str, dict[str, Any]] = {
            "arbiter": {"winner": side, "weights": {n: rng.choice([0.0, 0.4, 1.0]) for n in SIDES}},
            "judge": {"side": side, "win_share": share, "counter": rng.choice(["", "RSI at 61."])},
            "reader": {"first": rng.choice([*EXPERTS, "none"]), "budget_pct": 30},
            "gate": {"multiplier": rng.choice([1.0, 0.6])},
        }
        more = kinds.get(AGENTS[name].role.kind, {"value": round(rng.uniform(-0.3, 0.3), 2)})
        make = {"arbiter": judgement, "judge": decision, "reader": regime, "gate": ruling}.get(
            AGENTS[name].role.kind
        )
        if make is None:
            script[name] = reporting(**sure, **more)
        else:
            script[name] = lambda request, make=make, how={**sure, **more}: make(request, **how)
    return script


def sit(
    mode: str,
    script: Mapping[str, Any],
    *,
    silent: Seats = frozenset(),
    fallback: Any = None,
    market: Mapping[str, float | str] = MARKETS[0],
    seconds: float | None = None,
    **more: Any,
) -> tuple[Deliberation, Scripted]:
    """Return a debate of a mode, at whose desk the `silent` abstain, and the provider."""
    agents = {name: abstaining(seat) if name in silent else seat for name, seat in AGENTS.items()}
    provider, about = Scripted(script), context(features={**FEATURES, **market})
    config = settings(mode=mode, **{"second_look": "never", "rebuttal": "never", **more})
    timed = {} if seconds is None else {"seconds": seconds}
    record = debate(provider, about=about, config=config, agents=agents, fallback=fallback, **timed)
    return record, provider


def sizes(record: Deliberation) -> dict[str, float]:
    """Return what is left of an opening's size, by side."""
    return {side: 0.0 if record.vetoes(side) else record.size_share(side) for side in DIRECTIONS}


def check(record: Deliberation, told: Expected, kind: str, requests: list[Request]) -> None:
    assert str(record.source_type) == told.source
    assert {request.role.id for request in requests} == told.asked
    assert record.failures == dict.fromkeys(told.failed, REASONS.get(kind, "error"))
    assert record.unasked == told.left_out
    assert [flag for flag in record.flags if flag.startswith("degraded")] == told.degraded
    note = record.scores["composite_bias"]["note"]
    assert note.startswith(told.source) and ("DEGRADED" in note) is bool(told.degraded)
    assert record.outage == (told.source in ("L1_ONLY", "LEGACY"))
    assert len(requests) == len(record.calls) <= 14
    holds(record, context().scores)


def officer_counts(record: Deliberation, market: Mapping[str, float | str]) -> None:
    """Assert that rules and rows hold whoever failed."""
    vetoed: Mapping[float | str | None, str] = {99.0: "BUY", 0.5: "SELL"}
    crowded = vetoed.get(market.get("derivs.funding_rank"))
    assert crowded is None or crowded in record.ruling.veto_sides
    assert record.swarm is not None
    panics = "macro.vix_rank" in market
    assert record.swarm.storm == (0.5 if panics else 1.0)
    assert ("MACRO_PANIC" in record.rule_ruling.reasons) == panics
    volatile = market.get("market.regime") == "volatile"
    assert all(record.size_share(side) <= (0.4 if volatile else 1.0) for side in DIRECTIONS)
    spoke = len([one for one in record.reports if one.agent_id in EXPERTS and not one.abstained])
    assert ("thin_swarm" in record.flags) == (spoke == 1)


@cases("mode", list(MODES))
@cases("kind", FAILURES)
def test_any_subset_of_any_desk_may_fail(mode: str, kind: str, scaled: Scaled) -> None:
    rng, smaller = random.Random(f"{mode}{kind}"), 0
    every = subsets(mode)
    for number, failing in enumerate(rng.sample(every, scaled(len(every), min(len(every), 20)))):
        silent = SILENT[mode] if number % 2 else frozenset[str]()
        failing -= silent  # noqa: PLW2901
        rounds, fallback = 1 + number % 3, score_chart if number % 4 > 1 else None
        market, script = MARKETS[number % len(MARKETS)], drawn(rng, mode)
        down = {**script, **dict.fromkeys(failing, FAILURES[kind])}
        more: dict[str, Any] = {"market": market}
        if rounds > 1 and mode != "swarm":
            more |= {"debate_rounds": rounds, "rebuttal": "always"}
        record, provider = sit(mode, down, silent=silent, fallback=fallback, **more)
        told = expect(mode, failing, silent, fallback=fallback is not None)
        check(record, told, kind, provider.requests)
        if rounds == 1 or mode == "swarm":
            again = len(told.failed) if kind in ASKED_TWICE else 0
            assert len(provider.requests) == len(told.asked) + again
        assert record.veto >= (market.get("market.spread_atr", 0.0) == 9.0)
        if mode == "swarm":
            officer_counts(record, market)
        quiet, _ = sit(mode, script, silent=silent | failing | {*told.left_out}, **more)
        if record.heard:
            assert told.degraded or record.debate == quiet.debate, failing
        for side, size in sizes(record).items():
            assert size <= sizes(quiet)[side] + 1e-12, (sorted(failing), side)
            smaller += size < sizes(quiet)[side]
    assert smaller, "a failure costs an opening something"


@cases("mode", list(MODES))
def test_a_call_that_hangs_counts_as_any_time_out(mode: str, scaled: Scaled) -> None:
    """In real time, so a share of the subsets by day; half a second each."""
    about, config = context(features=FEATURES), settings(mode=mode, second_look="never")
    every = subsets(mode)
    for failing in random.Random(mode).sample(every, scaled(len(every), 2)):
        told = expect(mode, failing, frozenset(), fallback=False)
        record, provider = debate_hanging(failing, told.failed, about=about, config=config)
        check(record, told, "timeout", provider.requests)


# --- outages --------------------------------------------------------------------------------------


@cases("mode", list(MODES))
@cases("kind", FAILURES)
def test_where_nobody_speaks_and_somebody_failed_the_fallback_is_asked(
    mode: str, kind: str, scaled: Scaled
) -> None:
    names = sorted(seats(mode, *OPINIONS))
    every = [
        frozenset(part)
        for size in range(len(names))
        for part in itertools.combinations(names, size)
        if not set(EXPERTS) <= set(part)
    ]
    for silent in random.Random(f"{mode}{kind}").sample(every, scaled(len(every), 4)):
        down = dict.fromkeys(MODES[mode].seats, FAILURES[kind])
        record, provider = sit(mode, down, silent=silent, fallback=lambda *_: chart(score=0.5))
        assert str(record.source_type) == "LEGACY", silent
        assert not record.heard and record.outage and ABSTAINED not in record.flags
        assert record.panel.buy.conviction == record.panel.sell.conviction <= 1 / WORDS[mode]
        assert not provider.asked(GATE_ID) and not provider.asked("trader")
        assert {request.role.tier for request in provider.requests} <= {"quick", "deep"}
        alone, _ = sit(mode, down, silent=silent)
        assert str(alone.source_type) == "L1_ONLY" and alone.outage
        scores = {vector: alone.scores[vector]["score"] for vector in VECTORS}
        assert bits(scores) == bits(context().scores)


@pytest.mark.parametrize("mode", list(MODES))
def test_calls_that_hang_are_an_outage_when_the_time_is_up(mode: str, tries: Tries) -> None:
    asked: list[str] = []

    def own(*_: Any) -> dict[str, Any]:
        asked.append("fallback")
        return chart(score=0.5)

    hanging = dict.fromkeys(MODES[mode].seats, NEVER)
    for attempt in tries():
        asked.clear()
        record, _ = sit(mode, hanging, fallback=own, seconds=1.0)
        assert record.outage
        with attempt:
            assert str(record.source_type) == "LEGACY" and asked == ["fallback"]
            assert set(record.failures.values()) == {"timeout"}


@pytest.mark.parametrize("mode", list(MODES))
def test_where_all_abstain_nothing_failed_and_nobody_else_is_asked(mode: str) -> None:
    silent = seats(mode, *OPINIONS)
    script = {READER_ID: FAILURES["error"]}  # no opinion: it may fail without an outage
    record, provider = sit(mode, script, silent=silent, fallback=lambda *_: chart())
    assert str(record.source_type) == "L1_ONLY" and not record.outage
    assert ABSTAINED in record.flags and OUTAGE not in record.flags
    assert {record.conviction_for(side) for side in DIRECTIONS} == {1.0}
    assert not provider.asked(GATE_ID) and not provider.asked("chart_scorer")


@pytest.mark.parametrize("most", [0.0, 0.1, 0.25, 1 / 3, 1.0])
@pytest.mark.parametrize("mode", list(MODES))
def test_the_share_of_an_outage_is_the_setting_and_one_word_at_most(mode: str, most: float) -> None:
    down = dict.fromkeys(MODES[mode].seats, FAILURES["error"])
    record, _ = sit(mode, down, outage_size=most)
    share = min(most, 1 / WORDS[mode])
    if mode == "firm":  # below its quorum: no debate was held
        share = min(most, 0.15) * 0.4
    for side in DIRECTIONS:
        assert share - 1e-8 <= record.conviction_for(side) <= share
        assert record.size_share(side) <= record.rule_ruling.multiplier * share
    whole, _ = sit(mode, down, outage_size=1.0, quorum=0)
    assert whole.conviction_for("BUY") == floor(1e8 / WORDS[mode]) / 1e8


@pytest.mark.parametrize("quorum", [None, 0, 3])
@pytest.mark.parametrize("side", list(DIRECTIONS))
@pytest.mark.parametrize("mode", list(MODES))
def test_an_agreeing_seat_that_fails_enlarges_nothing_the_last_one_included(
    mode: str, side: str, quorum: int | None, scaled: Scaled
) -> None:
    more: dict[str, Any] = {} if quorum is None else {"quorum": quorum}
    way = DIRECTIONS[side]
    judged = {"side" if mode == "swarm" else "winner": "LONG" if way > 0 else "SHORT"}
    script: dict[str, Any] = {}
    for name in MODES[mode].seats:
        make = {"arbiter": judgement, "judge": decision}.get(AGENTS[name].role.kind)
        # The researcher of the other side has no case: one that concedes is of low confidence.
        value = 0.0 if SIDES.get(name) == -way else 0.1 * way
        script[name] = reporting(value=value)
        if make is not None:
            script[name] = lambda request, make=make: make(request, confidence="high", **judged)
    script |= {GATE_ID: ruling, READER_ID: regime}
    names = sorted(seats(mode, *OPINIONS))
    for seed in range(scaled(200, 3)):
        order = random.Random(f"{mode}{seed}").sample(names, len(names))
        convictions = []
        for at in range(len(names) + 1):
            down = dict.fromkeys(order[:at], FAILURES["error"])
            record, _ = sit(mode, {**script, **down}, rebuttal="auto", **more)
            convictions.append(record.conviction_for(side))
        assert convictions == sorted(convictions, reverse=True), order
        assert convictions[0] == 1.0 and 0.0 < convictions[-1] <= 0.25


# --- the quorum -----------------------------------------------------------------------------------

FULL: Final = MODES["full"].seats


@pytest.mark.parametrize(("quorum", "debated"), [(0, True), (1, True), (2, True), (3, False)])
def test_below_its_quorum_a_desk_leaves_the_researchers_out(quorum: int, debated: bool) -> None:
    asked: list[str] = []
    provider = Scripted(dict.fromkeys(FULL[:3], RuntimeError("down")))
    record = debate(
        provider,
        about=context(features=FULL_FEATURES),
        config=settings(mode="full", quorum=quorum, debate_rounds=2),
        reserve=lambda stage, _: not asked.append(stage),
    )
    assert asked == ["analysts", *(["research"] * 2 if debated else []), "gate"]
    (stage,) = [s for s in record.stages if s["name"] == "research" and s["round"] == 1]
    left_out = {} if debated else dict.fromkeys(FULL[5:7], "quorum")
    assert record.unasked == left_out
    assert (stage["status"], bool(provider.asked("bull_researcher"))) == (
        ("ok", True) if debated else ("skipped", False)
    )
    if not debated:
        assert stage["agents"] == left_out and record.debate == record.analyst_avg
        note = record.scores["composite_bias"]["note"]
        assert note.startswith("AGENT_PARTIAL: DEGRADED (2 of 5 analysts), 2 of 7 opinions")


def test_a_quorum_that_the_desk_cannot_reach_is_refused() -> None:
    with pytest.raises(ValueError, match="quorum 6 can never be reached: the desk seats 5"):
        sit("full", {}, quorum=6)


def test_the_stage_that_was_refused_has_no_quorum() -> None:
    full = settings(mode="full")
    record = debate(Scripted(), config=full, reserve=lambda stage, _: stage != "analysts")
    assert str(record.source_type) == "L1_ONLY"
    assert record.unasked == dict.fromkeys(SIDES, "budget"), "money was the reason, not silence"
    assert set(record.failures.values()) == {"budget"}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("sides", [(), tuple(SIDES)], ids=["alone", "debated"])
def test_small_desks_need_no_quorum(count: int, sides: tuple[str, ...]) -> None:
    names = FULL[:count]
    provider = Scripted(dict.fromkeys(names[1:], RuntimeError("down")))
    config = settings(mode="full", active_agents=(*names, *sides), quorum=min(3, count))
    record = debate(provider, about=context(features=FULL_FEATURES), config=config)
    small = count < QUORUM_FROM
    assert bool(provider.asked("bull_researcher")) is (small and bool(sides))
    assert record.unasked == ({} if small else dict.fromkeys(sides, "quorum"))
    assert ("degraded:1_of_4" in record.flags) is not small
    expected = "AGENT_CUSTOM" if count == 1 else "AGENT_PARTIAL"
    assert str(record.source_type) == expected


# --- the tick -------------------------------------------------------------------------------------

BTC: Final = Instance(symbol="BTCUSD", timeframes=("M15",))
UNREAD: Final = frozenset({"news", "fundamental", "microstructure", "macro"})
"""Who has nothing to read in bars alone."""


@pytest.mark.parametrize("mode", list(MODES))
def test_any_subset_gives_a_valid_row(mode: str, tmp_path: Path, scaled: Scaled) -> None:
    profile = validate(Profile, {"agents": {"mode": mode, "influence": "full"}}, "a test")
    voice: Any = Scripted()
    desk = desks.working_desk(tmp_path, (BTC,), provider=voice, profile=profile)
    rng, silent = random.Random(mode), UNREAD & {*MODES[mode].seats}
    every = subsets(mode)
    for failing in [every[0], every[-1], *rng.sample(every, scaled(len(every), 4))]:
        kind = rng.choice([*FAILURES])
        voice.script = {name: [FAILURES[kind]] for name in failing}
        before = desk.database.latest_tick("BTCUSD", "M15")
        while (record := desk.database.latest_tick("BTCUSD", "M15")) == before:
            desks.step(desk)  # the sample has holes and weekends
        told = expect(mode, failing - silent, silent, fallback=True)
        key = f"BTCUSD|M15|{record['bar_time']}"
        (row,) = desks.rows(desk, "select * from sentiment where torra_key = ?", [key])
        stored = record["deliberation"]
        assert row["source_type"] == record["source_type"] == told.source
        assert stored["failures"] == dict.fromkeys(told.failed, REASONS.get(kind, "error"))
        assert stored["unasked"] == told.left_out
        assert {call["role_id"] for call in record["calls"]} - {"trader"} == told.asked
        for vector in VECTORS:
            assert abs(row[vector] - record["l1"][vector]) <= 0.06 + 1e-9
            assert row[vector] == record["scores"][vector]["score"]
        assert record["verdict"] in ("BUY", "SELL", "HOLD")
        json.dumps(stored, allow_nan=False)
    desk.database.close()
