"""Any seats of any desk may fail, in any way: who is asked then, what stands, and how large.

`expect` is docs/debate.md, "When things fail", in terms of who fails. Each debate is put beside the
same desk at which those seats abstained: who fails lends nothing, so no opening comes out larger.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import EXPERTS, GATE_ID, MODES
from agents.contracts import OPINIONS, VECTORS, DebateContext, ModelUnavailable
from agents.debate.deliberation import Deliberation
from agents.debate.panel import DIRECTIONS
from agents.registry import AGENTS
from tests.agents.test_debate_invariants import EVIDENCE, holds
from tests.doubles import scripted
from tests.doubles.scripted import (
    Scripted,
    abstaining,
    context,
    debate,
    debate_hanging,
    reporting,
    settings,
)
from tests.worlds import desks
from torra.config import Instance, Profile, validate
from torra.tick.chart_scorer import score_chart

Scaled = Callable[..., int]
FAILURES: Final[Mapping[str, tuple[Any, str]]] = {
    "exception": (RuntimeError("500"), "error"),
    "timeout": (TimeoutError(), "timeout"),
    "garbage": ("I would hold here.", "garbage"),
    "no key": (ModelUnavailable("error", "no address or key", again=None, billed=False), "error"),
}
"""What a seat meets, and the word for it."""

RETRIED: Final = ("exception", "garbage")
QUORUM: Final = {"full": 3, "firm": 3}
SCORER: Final = "chart_scorer"
MARKETS: Final[tuple[Mapping[str, float | str], ...]] = (
    {},
    {"market.regime": "volatile"},
    {"macro.vix_rank": 99.0, "market.regime": "range"},
    {"derivs.funding_rank": 99.0},
    {"market.spread_atr": 9.0, "derivs.funding_rank": 0.5},
)
"""A calm one, a storm, a panic, and markets in which one side, or both, cannot be opened."""


def subsets(mode: str, count: int, seed: str) -> list[frozenset[str]]:
    """Return some subsets of the seats of a mode, every night all of them; the first is empty."""
    seats = MODES[mode].seats
    parts = [
        frozenset(part) for n in range(len(seats) + 1) for part in itertools.combinations(seats, n)
    ]
    assert len(set(parts)) == 2 ** len(seats)
    others = parts[1:-1]
    return [parts[0], parts[-1], *random.Random(seed).sample(others, min(count, len(others)))]


def seats_of(mode: str, *kinds: str) -> frozenset[str]:
    return frozenset(name for name in MODES[mode].seats if AGENTS[name].role.kind in kinds)


@dataclass(frozen=True)
class Expected:
    """What must come of a desk of which some seats fail when they are asked."""

    source: str
    asked: frozenset[str]
    failed: frozenset[str]
    unasked: frozenset[str]
    degraded: str
    spoke: frozenset[str]


def expect(
    mode: str, failing: frozenset[str], silent: frozenset[str], *, fallback: bool = False
) -> Expected:
    """Foretell a debate; `silent` are those that abstain without a call and so cannot fail."""
    broken = failing - silent
    analysts, sides = seats_of(mode, "analyst"), seats_of(mode, "researcher")
    reported = analysts - broken
    short = len(reported) < QUORUM.get(mode, 0)
    asked = (analysts | seats_of(mode, "reader") | (frozenset() if short else sides)) - silent
    unasked = sides if short else frozenset()
    if not short and sides - broken:
        asked |= seats_of(mode, "arbiter")  # without a case there is nothing to judge
    if reported - silent:
        asked |= seats_of(mode, "judge")
    elif not reported:
        unasked |= seats_of(mode, "judge")
    opinions = seats_of(mode, *OPINIONS) & asked
    spoke = opinions - broken
    asked |= {GATE_ID} if spoke else frozenset()
    failed = broken & asked
    outage = not spoke and bool(failed & opinions)
    source = "AGENT_PARTIAL" if failed or short else MODES[mode].complete
    if not spoke:
        source = "LEGACY" if outage and fallback else "L1_ONLY"
    return Expected(
        source,
        asked | ({SCORER} if outage and fallback else frozenset()),
        failed,
        unasked,
        f"degraded:{len(reported)}_of_{len(analysts)}" if short else "",
        spoke,
    )


def saying(rng: random.Random, mode: str) -> dict[str, Any]:
    """Return what the seats of a mode say, each with a number and a confidence of its own."""
    side, words = rng.choice(["LONG", "SHORT", "NONE"]), ("high", "medium", "low")
    replies: Mapping[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "arbiter": (scripted.judgement, {"winner": side}),
        "judge": (scripted.decision, {"side": side, "win_share": rng.choice([0.2, 0.5, 0.8])}),
        "reader": (scripted.regime, {"first": rng.choice([*EXPERTS, "none"]), "budget_pct": 30}),
        "gate": (scripted.ruling, {"multiplier": rng.choice([1.0, 0.6])}),
    }
    script: dict[str, Any] = {}
    for name in MODES[mode].seats:
        kind = AGENTS[name].role.kind
        sure = {"confidence": rng.choice(words)}
        if kind in replies:
            reply, changes = replies[kind]
            script[name] = lambda request, r=reply, c={**sure, **changes}: r(request, **c)
        else:
            script[name] = reporting(value=round(rng.uniform(-0.3, 0.3), 2), **sure)
    return script


def held(
    mode: str, provider: Scripted, about: DebateContext, silent: frozenset[str], **more: Any
) -> Deliberation:
    """Return a deliberation at whose desk the `silent` abstain without being asked."""
    agents = {name: abstaining(seat) if name in silent else seat for name, seat in AGENTS.items()}
    fallback = more.pop("fallback", None)
    config = settings(mode=mode, **{"second_look": "never", "rebuttal": "never", **more})
    return debate(provider, about=about, config=config, agents=agents, fallback=fallback)


def sizes(record: Deliberation) -> list[float]:
    """Return what is left of an opening's size, by side."""
    return [0.0 if record.vetoes(side) else record.size_share(side) for side in DIRECTIONS]


def as_foretold(record: Deliberation, expected: Expected, word: str) -> None:
    assert str(record.source_type) == expected.source
    assert record.failures == dict.fromkeys(expected.failed, word)
    assert record.unasked.keys() == expected.unasked
    degraded = [flag for flag in record.flags if flag.startswith("degraded")]
    assert degraded == ([expected.degraded] if expected.degraded else [])
    failed = [name for name in expected.failed if AGENTS[name].role.kind in OPINIONS]
    assert record.outage == (not expected.spoke and bool(failed))
    note = record.scores["composite_bias"]["note"]
    assert note.startswith(expected.source) and ("DEGRADED" in note) is bool(expected.degraded)


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("mode", MODES)
def test_any_seats_may_fail(mode: str, kind: str, scaled: Scaled) -> None:
    rng, larger = random.Random(f"{mode} {kind}"), 0
    entry, word = FAILURES[kind]
    for number, failing in enumerate(subsets(mode, scaled(256, 12), f"{mode} {kind}")):
        # By turns two analysts have nothing to read; by turns somebody stands in for the desk.
        analysts = sorted(seats_of(mode, "analyst"))
        silent = frozenset(rng.sample(analysts, min(2, len(analysts))) if number % 2 else ())
        fallback = score_chart if number % 4 < 2 else None
        market, rounds = MARKETS[number % len(MARKETS)], rng.choice([1, 1, 2, 3])
        about, script = context(features={**EVIDENCE, **market}), saying(rng, mode)
        provider = Scripted({**script, **dict.fromkeys(failing, entry)})
        record = held(mode, provider, about, silent, fallback=fallback, debate_rounds=rounds)
        expected = expect(mode, failing, silent, fallback=fallback is not None)
        as_foretold(record, expected, word)
        holds(record, about.scores)
        assert {request.role.id for request in provider.requests} == expected.asked
        assert len(provider.requests) == len(record.calls) <= 14
        if rounds == 1:
            retried = len(expected.failed) if kind in RETRIED else 0
            assert len(record.calls) == len(expected.asked) + retried
        sides = seats_of(mode, "researcher") & expected.asked
        last = max((request.round for request in provider.requests), default=1)
        assert last == (rounds if sides - expected.failed else 1)
        officer_stands(record, market)
        spoken = expected.spoke & {*EXPERTS}
        assert ("thin_swarm" in record.flags) == (mode == "swarm" and len(spoken) == 1)
        if expected.source in ("LEGACY", "L1_ONLY"):
            continue
        beside = held(mode, Scripted(script), about, failing | silent, debate_rounds=rounds)
        assert expected.degraded or record.debate == beside.debate, failing
        pairs = [*zip(sizes(record), sizes(beside), strict=True)]
        assert all(size <= other for size, other in pairs), failing
        larger += any(size < other for size, other in pairs)
        if mode == "swarm":
            seats = tuple(name for name in MODES[mode].seats if name not in failing)
            without = held(mode, Scripted(script), about, silent, active_agents=seats)
            assert record.debate == without.debate, failing
    assert larger, "who fails costs an opening something"


def officer_stands(record: Deliberation, market: Mapping[str, float | str]) -> None:
    """Assert that rules and rows hold whoever failed."""
    assert record.veto >= (market.get("market.spread_atr", 0.0) == 9.0)
    if record.swarm is None:
        return
    vetoed: Mapping[float | str | None, str] = {99.0: "BUY", 0.5: "SELL"}
    crowded = vetoed.get(market.get("derivs.funding_rank"))
    assert crowded is None or crowded in record.ruling.veto_sides
    panics = "macro.vix_rank" in market
    assert record.swarm.storm == (0.5 if panics else 1.0)
    assert ("MACRO_PANIC" in record.rule_ruling.reasons) == panics
    volatile = market.get("market.regime") == "volatile"
    assert all(record.size_share(side) <= (0.4 if volatile else 1.0) for side in DIRECTIONS)


@pytest.mark.parametrize("mode", MODES)
def test_who_hangs_counts_as_who_timed_out(mode: str, scaled: Scaled) -> None:
    """In real time: half a second each."""
    about, config = context(features=EVIDENCE), settings(mode=mode, rebuttal="never")
    for failing in subsets(mode, scaled(60, 1), "hanging"):
        expected = expect(mode, failing, frozenset())
        record, provider = debate_hanging(failing, expected.failed, about=about, config=config)
        as_foretold(record, expected, "timeout")
        assert {request.role.id for request in provider.requests} == expected.asked


# --- the tick -------------------------------------------------------------------------------------

BTC: Final = Instance(symbol="BTCUSD", timeframes=("M15",))
UNREAD: Final = frozenset({"news", "fundamental", "microstructure", "macro"})
"""Who has nothing to read in bars alone."""


@pytest.mark.parametrize("mode", MODES)
def test_any_failures_give_a_valid_row(mode: str, tmp_path: Path, scaled: Scaled) -> None:
    profile = validate(Profile, {"agents": {"mode": mode, "influence": "full"}}, "a test")
    voice: Any = Scripted()
    desk = desks.leading_desk(tmp_path, (BTC,), provider=voice, profile=profile, seconds=1e6)
    for number, failing in enumerate(subsets(mode, scaled(256, 4), "rows")):
        entry, word = [*FAILURES.values()][number % len(FAILURES)]
        voice.script = {name: [entry] for name in failing}
        before = desk.database.latest_tick("BTCUSD", "M15")
        while (record := desk.database.latest_tick("BTCUSD", "M15")) == before:
            desks.step(desk)  # the sample has holes and weekends
        expected = expect(mode, failing, UNREAD & {*MODES[mode].seats}, fallback=True)
        key = f"BTCUSD|M15|{record['bar_time']}"
        (row,) = desks.rows(desk, "select * from sentiment where torra_key = ?", [key])
        debated = record["deliberation"]
        assert row["source_type"] == record["source_type"] == expected.source
        assert debated["failures"] == dict.fromkeys(expected.failed, word)
        assert {call["role_id"] for call in record["calls"]} - {"trader"} == expected.asked
        for vector in VECTORS:
            assert abs(row[vector] - record["l1"][vector]) <= 0.06 + 1e-9
            assert row[vector] == record["scores"][vector]["score"]
        assert record["verdict"] in ("BUY", "SELL", "HOLD")
    desk.database.close()
