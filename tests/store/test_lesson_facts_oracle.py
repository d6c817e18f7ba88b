"""The facts of a lesson are what a plain recount of the trade's bars comes to, in both stores."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

import signal_bridge
from tests.worlds import stores
from torra.bridges.paper import EventKind, PaperEvent
from torra.config import Profile
from torra.lessons.lesson import LessonFacts
from torra.replay.shards.arm_lessons import PriceRanges
from torra.store.memory import MemoryStore

BTC = "BTCUSD"
QUARTER = timedelta(minutes=15)
BARS = 48
SPREAD = 0.3
SLIPPAGE = 0.25


class Trade(NamedTuple):
    """A trade as the market made it: its order, its fill and its end, and the bars of its time."""

    sid: str
    side: str
    entry: float
    stop: float
    target: float
    fill: float
    filled: int
    end: float
    ended: int
    kind: EventKind
    begin: datetime
    bars: list[tuple[float, float, float, float]]
    lots: float = 0.5

    def time(self, number: int) -> datetime:
        return self.begin + number * QUARTER


def made(chance: random.Random, number: int, spread: float) -> Trade:
    """Draw a market and a trade in it that ends somewhere, by whatever reason."""
    price, bars = chance.uniform(50.0, 150.0), []
    for _ in range(BARS):
        opened, close = price, price + chance.gauss(0.0, 2.0)
        wicks = abs(chance.gauss(0.0, 1.0)), abs(chance.gauss(0.0, 1.0))
        bars.append((opened, max(opened, close) + wicks[0], min(opened, close) - wicks[1], close))
        price = close + chance.gauss(0.0, 0.5)
    filled = chance.randrange(1, BARS - 1)
    ended = chance.randrange(filled, BARS)
    side = chance.choice(("BUY", "SELL"))
    way = 1.0 if side == "BUY" else -1.0
    entry = round(bars[filled - 1][3] + (spread if side == "BUY" else 0.0), 2)
    risk = chance.uniform(1.0, 8.0)
    if number % 10 == 0:  # left at the bar of its fill, for costs that are a small part of the risk
        ended, risk = filled, 8.0
    stop, target = round(entry - way * risk, 2), round(entry + 2.0 * way * risk, 2)
    fill = round(bars[filled][0] + (spread if side == "BUY" else 0.0) + way * SLIPPAGE, 2)
    kinds: tuple[EventKind, ...] = ("STOPPED", "TARGET", "CLOSED")
    kind = "CLOSED" if number % 10 == 0 else chance.choice(kinds)
    at_open = bars[ended][0] + (0.0 if side == "BUY" else spread)
    end = round({"STOPPED": stop - way * SLIPPAGE, "TARGET": target, "CLOSED": at_open}[kind], 2)
    begin = stores.NOON + number * 2 * BARS * QUARTER
    return Trade(
        f"T{number:09d}", side, entry, stop, target, fill, filled, end, ended, kind, begin, bars
    )


def expected(trade: Trade, spread: float) -> dict[str, Any]:
    """Recount a trade bar by bar, in prices; nobody has counted wins of this symbol."""
    way = 1.0 if trade.side == "BUY" else -1.0
    risk = abs(trade.target - trade.stop) / 3.0
    worst = best = trade.end
    # A bar of 15 minutes that is over when the bar of the end opens; of half an hour likewise.
    for number in range(trade.filled, trade.ended):
        _, high, low, _ = trade.bars[number]
        there = 0.0 if trade.side == "BUY" else spread
        prices = (low + there, high + there)
        worst = min(worst, *prices, key=lambda price: way * price)
        best = max(best, *prices, key=lambda price: way * price)
    # Told to eight decimals: a loss of a tenth of the risk to the cent is no scratch.
    r = round(way * (trade.end - trade.fill) / risk, 8)
    planned = abs(trade.target - trade.entry) / abs(trade.entry - trade.stop)
    outcome = "scratch" if abs(r) < 0.1 else "win" if r > 0.0 else "loss"
    # A target p R away is reached before the stop once in 1 + p times: the plan is worth nothing.
    chance = 1.0 / (1.0 + planned)
    plan_worth = chance * planned - (1.0 - chance)
    return {
        "side": "LONG" if trade.side == "BUY" else "SHORT",
        "outcome": outcome,
        "r": r,
        "planned_r": planned,
        "slipped_r": way * (trade.fill - trade.entry) / risk,
        "mae_r": min(0.0, way * (worst - trade.fill) / risk),
        "mfe_r": max(0.0, way * (best - trade.fill) / risk),
        "surprise": abs(r - plan_worth),
        "hours_held": (trade.ended - trade.filled) * 0.25,
        "reason": trade.kind,
        "opened_at": trade.time(trade.filled),
        "closed_at": trade.time(trade.ended),
        "known_at": trade.time(trade.ended) + QUARTER,
    }


def frame_of(trade: Trade) -> pd.DataFrame:
    index = pd.DatetimeIndex([trade.time(n) for n in range(BARS)], name="time")
    frame = pd.DataFrame(trade.bars, index=index, columns=["open", "high", "low", "close"])
    return frame.assign(volume=1.0)


def halves(frame: pd.DataFrame) -> pd.DataFrame:
    """Bars of half an hour, made of those: a desk may have stored these beside them."""
    rules = {"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"}
    return frame.resample("30min").agg(rules)


def learnt(store: Any, trade: Trade) -> LessonFacts:
    """Send, fill and end the trade in a store; return its lesson's facts."""
    decided = trade.time(trade.filled)
    row = stores.opening(
        trade.sid, side=trade.side, entry=trade.entry, stop=trade.stop, target=trade.target,
        lots=trade.lots, decided_at=decided, expires=decided + QUARTER,
        bar_time=decided - QUARTER,
    )  # fmt: skip
    store.enqueue_signal(row)
    store.move_signal(trade.sid, "PUBLISHED")
    way = 1.0 if trade.side == "BUY" else -1.0
    won = way * (trade.end - trade.fill)
    risk = abs(trade.target - trade.stop) / 3.0
    closed = trade.time(trade.ended)
    events = (
        PaperEvent("FILLED", trade.sid, trade.fill, decided, volume=trade.lots),
        PaperEvent(trade.kind, trade.sid, trade.end, closed, won * trade.lots, won / risk),
    )  # fmt: skip
    for event in events:
        signal_bridge.apply_event(store, event, closed + QUARTER)
    lesson = store.lesson(trade.sid)
    assert lesson is not None
    return lesson.facts


@pytest.fixture
def profile() -> Profile:
    shipped = Profile()
    spec = shipped.symbol(BTC).model_copy(update={"spread": SPREAD})
    return shipped.model_copy(update={"symbols": {**shipped.symbols, BTC: spec}})


def test_facts_equal_a_recount_of_the_bars_in_both_stores(
    tmp_path: Path, profile: Profile, scaled: Callable[..., int]
) -> None:
    chance = random.Random(12)
    database = stores.open_database(tmp_path)
    database.apply_profile(BTC, profile.model_dump_json(), profile.digest())
    seen: Counter[str] = Counter()
    for number in range(scaled(10_000)):
        trade = made(chance, number, SPREAD)
        frames = {"M15": frame_of(trade), "M30": halves(frame_of(trade))}
        memory = MemoryStore({BTC: profile}, PriceRanges(frames))
        for name, frame in frames.items():
            database.store_bars(BTC, name, frame)
        stored, kept = learnt(database, trade), learnt(memory, trade)
        assert stored == kept
        want = expected(trade, SPREAD)
        for name, value in want.items():
            near = pytest.approx(value, abs=2e-8) if isinstance(value, float) else value
            assert getattr(stored, name) == near, (name, trade)
        seen[stored.outcome] += 1
        seen["beyond"] += stored.mae_r < min(0.0, stored.r) or stored.mfe_r > max(0.0, stored.r)
        seen["within a bar"] += trade.filled == trade.ended
    database.close()
    assert all(seen[name] for name in ("win", "loss", "scratch", "beyond", "within a bar")), seen
