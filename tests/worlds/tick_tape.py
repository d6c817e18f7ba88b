"""A tape of ticks with orders on it: good ones, and ones aimed at each guard, right at its border.

Everything is drawn from a seed before anybody plays it, so a player can learn nothing of the other
from it. Prices are whole points of a symbol with two digits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.worlds.orders import Decided
from torra.bridges.protocol import Order

START: Final = datetime(2026, 2, 2, 0, 7, tzinfo=UTC)
PACE: Final = timedelta(minutes=71)
"""Between two ticks: 20 or 21 of them in a day."""

STAGE: Final = 20
"""Ticks for which the advisor keeps its inputs."""

SYMBOL: Final = "XAUUSD.m"
MAGIC: Final = 220_114_000
STOPS_LEVEL: Final = 300
LOT_MAX: Final = 2.0
MAX_SPREAD: Final = 60
MAX_DEVIATION: Final = 100

FLAWS: Final = {
    "auth": 2, "version": 2, "schema": 2, "channel": 2, "account": 2, "clock": 2, "stale": 2,
    "spread": 2, "deviation": 3, "side": 3, "stops": 3, "no_position": 1, "volume": 3,
    "max_lots": 5, "decision": 2,
}  # fmt: skip
"""What can be wrong with an order, named for its guard, and how often: the guards that are asked
last are reached least.
"""

TROUBLES: Final = {
    "live": 2, "kill": 2, "not_connected": 2, "autotrading_off": 2, "symbol": 4, "session": 3,
    "quote": 3, "spread": 1,
}  # fmt: skip
"""What can be wrong with the market or the account at a tick, and how often."""


@dataclass(frozen=True)
class Limits:
    """The advisor's own inputs; 0 = no limit."""

    max_lots: float
    max_positions: int
    max_trades_per_day: int


@dataclass(frozen=True)
class Plea:
    """An order, and which of the flaws that an Order cannot have its message has."""

    order: Order
    flaws: frozenset[str]


@dataclass(frozen=True)
class Tick:
    """One quote, the state of the account and the market, and the orders that meet it."""

    at: datetime
    bid: float
    ask: float
    limits: Limits
    trouble: frozenset[str]
    trade_mode: str
    pleas: tuple[Plea, ...] = ()

    @property
    def spread(self) -> float:
        """Ask minus bid, in price units."""
        return round(self.ask - self.bid, 2)


def tape(seed: int, ticks: int) -> list[Tick]:
    """Return so many ticks; the same seed gives the same beginning."""
    return list(_Writer(random.Random(seed)).ticks(ticks))


@dataclass
class _Writer:
    chance: random.Random
    bid: int = 200_000
    seq: int = 0
    last: Order | None = None
    held: Order | None = None
    """The opening that ought to be the position by now; a guess, so that some closes find one."""

    def ticks(self, count: int) -> Iterator[Tick]:
        limits = Limits(0.0, 0, 0)
        for number in range(count):
            if number % STAGE == 0:
                limits = self._limits()
            yield self._tick(START + number * PACE, limits)

    def _limits(self) -> Limits:
        chance = self.chance
        return Limits(chance.choice((0.0, 0.5)), chance.choice((0, 0, 1)), chance.choice((0, 1, 2)))

    def _tick(self, at: datetime, limits: Limits) -> Tick:
        chance = self.chance
        self.bid += chance.randint(-350, 350)
        count = chance.choices((0, 1, 2), (68, 26, 6))[0]
        trouble = frozenset(chance.choices(tuple(TROUBLES), tuple(TROUBLES.values()), k=count))
        spread = chance.randint(10, MAX_SPREAD)
        if "spread" in trouble:
            spread = MAX_SPREAD + chance.choice((1, 1, 40))
        if "quote" in trouble:
            spread = -chance.randint(1, 5)
        modes = ("disabled", "close_only", "long_only", "short_only")
        tick = Tick(
            at,
            self.bid / 100,
            (self.bid + spread) / 100,
            limits,
            trouble,
            chance.choice(modes) if "symbol" in trouble else "full",
        )
        if self.held and _ended(self.held, tick):
            self.held = None
        pleas = tuple(self._plea(tick) for _ in range(chance.choice((2, 3, 3, 4))))
        return replace(tick, pleas=pleas)

    def _plea(self, tick: Tick) -> Plea:
        chance = self.chance
        self.seq += 1
        flaws = self._flaws()
        about = self.held or self.last
        if about and chance.random() < (0.25 if self.held else 0.1):
            order = self._closing(tick, about, flaws)
        else:
            order = self._opening(tick, flaws)
        created, expires = self._times(tick.at, flaws)
        plea = Plea(replace(order, created=created, expires=expires), flaws)
        if not flaws and not tick.trouble:
            self._guess(plea.order)
        return plea

    def _flaws(self) -> frozenset[str]:
        chance = self.chance
        often = 0.85 if self.held else 0.6
        if chance.random() > often:
            return frozenset()
        count = chance.choice((1, 1, 1, 2))
        return frozenset(chance.choices(tuple(FLAWS), tuple(FLAWS.values()), k=count))

    def _guess(self, order: Order) -> None:
        if order.kind == "close":
            self.held = None
        elif not self.held:
            self.held = self.last = order

    def _times(self, at: datetime, flaws: frozenset[str]) -> tuple[datetime, datetime]:
        chance = self.chance
        created = at + timedelta(seconds=chance.choice((5, 0, -20, -170)))
        expires = at + timedelta(seconds=chance.choice((1, 10, 180)))
        if "clock" in flaws:
            created = at + timedelta(seconds=chance.choice((6, 3600)))
        if "stale" in flaws:
            expires = at - timedelta(seconds=chance.choice((0, 1, 3600)))
        return created, expires

    def _order(self, tick: Tick, **more: Any) -> Order:
        return Decided(
            sid=f"T{self.seq:012d}", seq=self.seq, instance="GOLD", symbol="XAUUSD",
            broker_symbol=SYMBOL, timeframe="M15", bar_time=tick.at, created=tick.at,
            expires=tick.at, magic=MAGIC, max_dev_pts=MAX_DEVIATION, digits=2,
            **{"max_spread_pts": MAX_SPREAD, "entry": 0.0, "stop": 0.0, "target": 0.0, **more},
        )  # fmt: skip

    def _closing(self, tick: Tick, opened: Order, flaws: frozenset[str]) -> Order:
        lots = opened.lots
        if "volume" in flaws:
            lots = self.chance.choice((0.0, lots + 0.01, lots + 0.005))
        return self._order(
            tick,
            kind="close",
            side="SELL" if opened.side == "BUY" else "BUY",
            lots=round(lots, 3),
            closes="TNOSUCHTRADE1" if "no_position" in flaws else opened.sid,
        )

    def _opening(self, tick: Tick, flaws: frozenset[str]) -> Order:
        chance = self.chance
        buy = chance.random() < 0.5
        towards = 1 if buy else -1
        bid, ask = round(tick.bid * 100), round(tick.ask * 100)
        price, leaves = (ask, bid) if buy else (bid, ask)
        moved = chance.choice((0, MAX_DEVIATION, chance.randint(0, MAX_DEVIATION)))
        if "deviation" in flaws:
            moved = MAX_DEVIATION + chance.choice((1, 1, 500))
        stop = leaves - towards * chance.choice((STOPS_LEVEL, 400, chance.randint(400, 900)))
        target = leaves + towards * chance.choice((STOPS_LEVEL, chance.randint(400, 1200)))
        target = max(target, price + 1) if buy else min(target, price - 1)
        if "stops" in flaws and chance.random() < 0.5:
            stop = leaves - towards * chance.choice((1, STOPS_LEVEL - 1))
        elif "stops" in flaws:
            target = price + towards * chance.choice((1, max(1, STOPS_LEVEL - 100)))
        if "side" in flaws and chance.random() < 0.5:
            stop = price + towards * chance.choice((0, 1, 500))
        elif "side" in flaws:
            target = price - towards * chance.choice((0, 1, 500))
        spread = ask - bid
        return self._order(
            tick,
            kind="open",
            side="BUY" if buy else "SELL",
            lots=self._lots(flaws),
            entry=(price + chance.choice((-1, 1)) * moved) / 100,
            stop=stop / 100,
            target=target / 100,
            **({"max_spread_pts": max(0, spread - 1)} if "spread" in flaws else {}),
        )

    def _lots(self, flaws: frozenset[str]) -> float:
        chance = self.chance
        if "volume" in flaws:
            return chance.choice((0.0, 0.005, 0.015, LOT_MAX + 0.01))
        if "max_lots" in flaws:
            return chance.choice((0.51, 1.0, LOT_MAX))
        return chance.choice((0.01, 0.1, 0.29, 0.5))


def _ended(order: Order, tick: Tick) -> bool:
    if order.side == "BUY":
        return not order.stop < tick.bid < order.target
    return not order.target < tick.ask < order.stop
