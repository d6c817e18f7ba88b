"""A stretch of vetoes leaves one lesson: what its first opening would have come to."""

from __future__ import annotations

import functools
import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.examples import examples
from tests.worlds import desks, remembering
from torra.errors import DataUnavailable
from torra.lessons.lesson import LessonFacts
from torra.store.memory import MemoryStore
from torra.tick.vetoed import VETOED
from torra.verdict.vetoed import VetoedOpening
from torra_trader import TickOutcome

COUNT = examples(240, 80)
"""Ticks of M15 that are run."""

WIDE = {"gate": {"max_spread_atr": 0.02}}
"""With this limit the gate vetoes nearly every opening."""


def lived(store: Any, count: int = COUNT, **changes: Any) -> list[TickOutcome]:
    settings = remembering.profile("off", **WIDE, **changes)
    return remembering.run(store, settings, remembering.keys(count), None)


def in_memory(**changes: Any) -> MemoryStore:
    settings = remembering.profile("off", **WIDE, **changes)
    return MemoryStore({remembering.BTC: settings}, remembering.ranges)


@functools.cache
def once() -> tuple[MemoryStore, list[TickOutcome]]:
    """Return a store in memory after its ticks, and how these ended."""
    store = in_memory()
    return store, lived(store)


def vetoed(store: Any) -> list[LessonFacts]:
    found = [one.facts for one in store.lessons_since(0, 0).lessons]
    return [facts for facts in found if facts.kind == "vetoed"]


def stretches(outcomes: list[TickOutcome]) -> list[tuple[str, Any]]:
    """Return side and close of the first tick of each stretch of vetoes, counted anew."""
    found, standing = [], None
    for outcome in outcomes:
        record = outcome.record or {}
        side = record["verdict"] if record["reason"] in VETOED else None
        if side != standing and side is not None:
            found.append((side, outcome.key.bar_time))
        standing = side
    return found


def test_each_stretch_has_one_lesson_once_it_has_ended() -> None:
    store, outcomes = once()
    told = vetoed(store)
    begun = stretches(outcomes)
    left = len(store.vetoed_openings(remembering.BTC))
    assert len(told) >= 3 and len(told) + left == len(begun)
    names = {"LONG": "BUY", "SHORT": "SELL"}
    assert {(names[one.side], one.bar_time) for one in told} <= set(begun)
    assert all(one.profit is None and one.situation is not None for one in told)
    reasons = {one.reason for one in told}
    assert {"CLOSED"} < reasons <= {"STOPPED", "TARGET", "CLOSED"}, "L1 that turns ends one too"
    assert all(one.known_at > one.closed_at for one in told)


def test_it_comes_to_what_the_bars_after_it_say() -> None:
    """A recount by hand: fill at the next open, the stop before the target, bar by bar."""
    store, outcomes = once()
    closes = {o.key.bar_time: o.record or {} for o in outcomes if o.key.timeframe == "M15"}
    checked = 0
    for facts in vetoed(store):
        if facts.reason == "CLOSED" or facts.timeframe != "M15":
            continue
        record = closes[facts.bar_time]
        ended = by_hand(facts.side, record["close"], record["atr"], facts.opened_at)
        assert ended[:2] == (facts.closed_at, facts.reason), facts
        assert ended[2] == pytest.approx(facts.r, abs=0.01), facts
        checked += 1
    assert checked >= 2


def by_hand(side: str, close: float, atr: float, opened: datetime) -> tuple[datetime, str, float]:
    """Return when and how a trade ended, and its result in R, to about the rounding of a tick."""
    spread = remembering.profile().symbol(remembering.BTC).spread
    way = 1 if side == "LONG" else -1
    stop, target = close - way * 2 * atr, close + way * 4 * atr
    bars = remembering.frames()["M15"]
    fill: float | None = None
    for time, bar in bars[bars.index >= opened].iterrows():
        first, low, high = bar.open, bar.low, bar.high
        if fill is None:
            fill = first + (spread if way > 0 else 0.0)
        if way < 0:
            first, low, high = first + spread, low + spread, high + spread
        worst, best = (low, high) if way > 0 else (high, low)
        for level, reached, reason in ((stop, worst, "STOPPED"), (target, best, "TARGET")):
            behind = way if reason == "STOPPED" else -way
            if behind * (reached - level) <= 0.0:
                gap = time != opened and behind * (first - level) <= 0.0
                price = first if gap and reason == "STOPPED" else level
                return time.to_pydatetime(), reason, way * (price - fill) / (2 * atr)
    raise AssertionError("it never ended")


@pytest.mark.journey
def test_a_database_keeps_the_same_ones(tmp_path: Path) -> None:
    (memory, one), database = once(), desks.open_database(tmp_path)
    settings = remembering.profile("off", **WIDE)
    database.apply_profile(remembering.BTC, settings.model_dump_json(), settings.digest())
    other = lived(database)
    assert Counter(o.state for o in one) == Counter(o.state for o in other)
    told = [[(f.sid, f.r, f.known_at, f.reason) for f in vetoed(s)] for s in (memory, database)]
    assert told[0] == told[1] and told[0]


@pytest.mark.journey
def test_a_checkpoint_carries_what_is_on_its_way() -> None:
    settings, ticks = remembering.profile("off", **WIDE), remembering.keys(COUNT)
    whole, _ = once()
    store = in_memory()
    for at in range(0, len(ticks), 25):
        remembering.run(store, settings, ticks[at : at + 25], None)
        told = json.loads(json.dumps(store.as_json()))
        store = MemoryStore.of(told, {remembering.BTC: settings}, remembering.ranges)
    assert vetoed(store) == vetoed(whole) and vetoed(whole)


@pytest.mark.journey
def test_no_order_and_no_account_comes_of_it() -> None:
    store, outcomes = once()
    assert vetoed(store)
    opened = [o for o in outcomes if (o.record or {})["action"] in ("OPEN_BUY", "OPEN_SELL")]
    assert len([r for r in store.signals() if r["kind"] == "open"]) == len(opened)


def pending(store: Any, **more: Any) -> VetoedOpening:
    """Put a vetoed opening on its way, and return it."""
    key = remembering.keys(COUNT)[0]
    told = {
        "sid": "TPENDING0000", "instance": remembering.BTC, "symbol": remembering.BTC,
        "timeframe": "M15", "bar_time": key.bar_time, "side": "BUY", "decided_at": key.close_time,
        "entry": 50_000.0, "stop": 10_000.0, "target": 130_000.0,
        "lived": key.bar_time - desks.QUARTER, "reason": "GATE_VETO",
    }  # fmt: skip
    opening = VetoedOpening(**{**told, **more})
    store.keep_vetoed(opening)
    return opening


def test_one_that_cannot_be_followed_fails_no_tick() -> None:
    """The instance's symbol was changed, or the profile has another one's conditions alone."""
    for more in ({"symbol": "GONE"}, {"target": 0.0, "price": 1.0, "opened_at": desks.START}):
        store = in_memory()
        pending(store, **more)
        settings = remembering.profile("off", **WIDE)
        (outcome,) = remembering.run(store, settings, remembering.keys(COUNT)[:1], None)
        assert outcome.state == "done"
    store = in_memory()
    pending(store, symbol="GONE")
    remembering.run(store, settings, remembering.keys(COUNT)[:1], None)
    assert all(one.symbol != "GONE" for one in store.vetoed_openings(remembering.BTC))


@pytest.mark.parametrize(
    ("reason", "who"),
    [("NEGATIVE_EV", "judge"), ("CROWDED", "risk officer"), ("GATE_VETO", "gate")],
)
def test_a_lesson_says_who_took_its_opening_away(reason: str, who: str) -> None:
    store = in_memory()
    pending(store, sid=f"T{reason[:6]}0000", reason=reason, stop=1.0, target=2.0, price=1.5,
            opened_at=remembering.keys(COUNT)[0].bar_time)  # fmt: skip
    settings = remembering.profile("off", **WIDE)
    remembering.run(store, settings, remembering.keys(COUNT)[:6], None)
    (facts,) = [one for one in vetoed(store) if one.sid.startswith(f"T{reason[:6]}")]
    assert facts.refuser == who and ("refused" in facts.as_dict()) == (who != "gate")
    assert LessonFacts.of(json.loads(json.dumps(facts.as_dict()))) == facts


def test_a_feed_without_a_path_fails_no_tick() -> None:
    class Pathless:
        def __getattr__(self, name: str) -> Any:
            return getattr(remembering.window(), name)

        def path(self, *_: Any) -> Any:
            raise DataUnavailable("no_file", "the terminal writes no M15")

    store = in_memory()
    opening = pending(store)
    settings = remembering.profile("off", **WIDE)
    first = remembering.keys(240)[:1]
    (outcome,) = remembering.run(store, settings, first, None, window=Pathless())
    assert outcome.state == "done", outcome
    assert opening in store.vetoed_openings(remembering.BTC)


def test_a_profile_that_trades_nothing_ends_the_stretch() -> None:
    store = in_memory()
    store.set_veto_stretch(remembering.BTC, "BUY")
    lived(store, 4, execution="off")
    assert store.veto_stretch(remembering.BTC) is None and not vetoed(store)
