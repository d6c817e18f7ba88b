"""Finds the trades of a history on L1 alone, by leaping from one tick that can matter to the next.

Between an opening and its end everything is known beforehand: the verdict of every tick is there,
and the bar that reaches stop or target is found by looking ahead. So the desk is woken only where
it would do something: at a verdict while flat, at an opposite verdict while it holds a position, at
the bars that fill and end. There the real parts decide: risk_engine.review, order_levels and
position_size, the gate's own rules, the paper bridge. There is one shortcut: an opening far inside
every limit goes out as planned, any other is reviewed (`_opened`).

The outcome is that of `run_tick` on a replay's edges (torra.replay.runner): nobody asked, no news,
no calendar, one instance, a clock that stands at each close, a person who resumes a halted desk on
a new day. tests/replay/test_l1_sweep.py compares the two. Orders and positions are kept here as the
paper bridge's own values. Nothing is stored or asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import fsum, ulp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agent_config import GateSettings
from agents import risk_gate
from agents.contracts import Feature
from agents.risk_officer import NO_ROWS, RiskOverlay
from torra.bridges import paper
from torra.bridges.guards import limits
from torra.config import Instance, Profile, Risk, SymbolSpec
from torra.evaluation.observations import TradeObservation
from torra.evidence.feature_bundle import MAX_SPREAD_ATR
from torra.market.exact import rounded
from torra.market.regime import PERCENTILE_DECIMALS
from torra.replay.l1.verdicts import BUY, SELL, Flags, Running, Stream, micros, moment_of
from torra.trading_terms import CAPPED
from torra.verdict.order_levels import Levels, Side, levels
from torra.verdict.position_size import notional, size, worth
from torra.verdict.risk_engine import (
    CLOSING,
    OPENS,
    Account,
    Action,
    Decision,
    Position,
    SignalDraft,
    intent,
    review,
)
from torra.verdict.sentiment_rules import RECENT_TRADES
from torra.verdict.signal_states import EXECUTED
from torra.verdict.trade_outcome import gain, leaving, planned_risk
from torra.words.deny_reasons import DenyReason

HOUR: Final = 3_600_000_000
DAY: Final = 24 * HOUR
"""In microseconds."""

SIDES: Final[Mapping[int, Side]] = {BUY: "BUY", SELL: "SELL"}
ENDED: Final = ("STOPPED", "TARGET", "CLOSED")
END: Final = "END"
"""Reason of a trade that was still open when the history ended."""

CLEARLY: Final = 1.0 - 1e-6
"""Share of a limit below which no rounding of a double can have carried a figure over it."""

SLACK: Final = 1e-8
"""The paper bridge rounds an ask to this: a bar so near to a level is looked at by it."""

FIRST_LOOK: Final = 32
"""Bars that are looked ahead at first; each further look takes four times as many."""


class BarIndex:
    """The bars of the paper bridge and the ticks that meet them, the same for every configuration.

    `shortest` is the stream of the shortest timeframe, None where the history has none of it; then
    nothing is ever filled.
    """

    def __init__(self, ticks: Running, shortest: Stream | None) -> None:
        self.ticks = ticks
        self.close: list[int] = ticks.close.tolist()
        none = np.empty(0, dtype=np.int64)
        self.opens = none if shortest is None else shortest.opens
        self.closes = none if shortest is None else shortest.closes
        self.prices = {} if shortest is None else shortest.prices
        self.lived_at: list[int] = np.searchsorted(ticks.close, self.closes).tolist()
        self.fills_at: list[int] = np.searchsorted(self.opens, ticks.close).tolist()
        self.price: list[float] = ticks.gather([s.prices["close"] for s in ticks.streams]).tolist()
        self.ranges = ticks.gather([one.atr for one in ticks.streams])
        self.atr: list[float] = self.ranges.tolist()
        self.held = ticks.gather([one.bars_held.astype(float) for one in ticks.streams])
        percentile = ticks.gather([one.percentile for one in ticks.streams])
        self.percentile = rounded(percentile, PERCENTILE_DECIMALS)

    def __len__(self) -> int:
        return len(self.opens)

    def bar(self, at: int) -> paper.Bar:
        """Return a bar as the paper bridge takes it."""
        prices = (float(self.prices[name][at]) for name in ("open", "high", "low", "close"))
        return paper.Bar(moment_of(int(self.opens[at])), *prices)

    def touches(self, position: paper.PaperPosition, after: int, spread: float) -> int:
        """Return the first bar from `after` on that may end the position; len(self) if none does.

        A short leaves at the ask. Bars within SLACK of a level count: the paper bridge decides.
        """
        below, above = position.stop, position.target
        if position.side == "SHORT":
            below, above = position.target - spread, position.stop - spread
        # Too many bars are harmless, one too few loses an end: the bridge decides at each.
        slack = SLACK + 4.0 * ulp(above)
        below, above = below + slack, above - slack
        low, high, wide = self.prices["low"], self.prices["high"], FIRST_LOOK
        while after < len(self):
            reached = (low[after : after + wide] <= below) | (high[after : after + wide] >= above)
            found = int(reached.argmax())
            if reached[found]:
                return after + found
            after, wide = after + wide, wide * 4
        return len(self)


@dataclass(frozen=True)
class L1Course:
    """The course of one configuration: each tick's verdict, the gate's veto, high volatility.

    `rows` are what a risk officer left of openings, one for each tick; empty where none sits.
    `multipliers` are those of ticks that were sized otherwise than by the rules.
    """

    verdict: NDArray[np.int8]
    veto: Flags
    volatile: Flags
    rows: tuple[RiskOverlay, ...] = ()
    multipliers: Mapping[int, float] = field(default_factory=dict)

    def officer(self, tick: int) -> RiskOverlay:
        """Return what a risk officer left of an opening at a tick."""
        return self.rows[tick] if self.rows else NO_ROWS

    def vetoes(self, tick: int, side: Side) -> bool:
        """Return whether the rules veto an opening of a side at a tick."""
        return bool(self.veto[tick]) or side in self.officer(tick).veto_sides

    @cached_property
    def signs(self) -> list[int]:
        """The verdicts as plain numbers."""
        return self.verdict.tolist()  # type: ignore[no-any-return]

    @cached_property
    def acting(self) -> Mapping[int, list[int]]:
        """The ticks of each verdict, and under 0 those of any that is not HOLD."""
        found = {side: np.flatnonzero(self.verdict == side).tolist() for side in (BUY, SELL)}
        return {**found, 0: np.flatnonzero(self.verdict).tolist()}

    @cached_property
    def turns(self) -> list[int]:
        """The ticks with another verdict than the one before, and the number of ticks."""
        turns = np.flatnonzero(self.verdict[1:] != self.verdict[:-1]) + 1
        return [*turns.tolist(), len(self.verdict)]

    def run_end(self, tick: int) -> int:
        """Return the tick at which the run of one verdict that a tick is part of has ended."""
        return self.turns[bisect_left(self.turns, tick + 1)]

    def next(self, tick: int, sign: int = 0) -> int:
        """Return the first tick from this one on of a verdict, of any for 0; a far one if none."""
        some = self.acting[sign]
        at = bisect_left(some, tick)
        return some[at] if at < len(some) else len(self.verdict)


def gate_flags(market: BarIndex, gate: GateSettings, spread: float) -> tuple[Flags, Flags]:
    """Return where the gate's rules veto openings, and where they find volatility high.

    As agents.risk_gate.rules on the features of a tick that runs at its close.
    """
    atr = market.ranges
    wide = np.full(len(atr), MAX_SPREAD_ATR if spread > 0.0 else 0.0)
    if spread > 0.0:
        np.divide(spread, atr, out=wide, where=atr > 0.0)
    veto = (np.minimum(wide, MAX_SPREAD_ATR) > gate.max_spread_atr) | (
        market.held < gate.min_valid_bars
    )
    return veto, market.percentile > gate.volatility_percentile


def multiplier_of(
    gate: GateSettings, *, volatile: bool, streak: int, officer: RiskOverlay = NO_ROWS
) -> float:
    """Return the multiplier of the rules for a tick with nothing else against it."""
    values = {
        risk_gate.VOLATILITY: MAX_SPREAD_ATR if volatile else 0.0,
        "memory.losing_streak": float(min(streak, RECENT_TRADES)),
        "memory.open_elsewhere": 0.0,
    }
    features = {name: Feature(name, value) for name, value in values.items()}
    return risk_gate.rules(features, gate, 0.0, officer).ruling.multiplier


@dataclass(frozen=True, slots=True)
class L1Trades:
    """The trades of a configuration in order, and how often its desk halted itself."""

    trades: tuple[TradeObservation, ...]
    halts: int


Plans = dict[tuple[int, Side, float], SignalDraft | DenyReason | None]
"""Openings by tick, side and multiplier, as levels and size give them, a reason where they give
none, None where a check must look: the same for all with the same trading conditions and limits.
"""


def account_of(
    market: BarIndex, course: L1Course, instance: Instance, profile: Profile, plans: Plans
) -> L1Trades:
    """Return the trades of a configuration; none where its `execution` lets nothing out.

    `plans` are kept from configurations with the same `risk` and symbol. Raises ConfigError for a
    symbol that the profile does not know.
    """
    desk = _Desk(market, course, instance, profile, plans)
    if profile.execution == "auto" and len(market.close):
        desk.run()
    return L1Trades(tuple(desk.trades), desk.halts)


def left_open(
    held: paper.PaperPosition, close: float, time: datetime, spec: SymbolSpec
) -> paper.PaperEvent:
    """Return the end of a position that the history leaves open: at its last close, unrounded.

    `close` is the bid at which the bar that opened at `time` ended; a short leaves at the ask.
    """
    price = leaving(held.side, close, spec.spread)
    won = gain(held.side, held.entry, price)
    risk = planned_risk(held.stop, held.target)
    return paper.PaperEvent(
        "CLOSED",
        held.sid,
        price,
        time,
        profit=worth(won, held.lots, spec),
        r_multiple=won / risk if risk else 0.0,
    )


def _roomy(risk: Risk) -> bool:
    """Return whether one opening alone never comes near a limit of the whole desk."""
    caps = (risk.account_leverage_cap, *risk.leverage_caps.values())
    whole = min(risk.exposure_cap_pct, 100.0 * min(caps)) * CLEARLY
    return (
        risk.max_positions > 0
        and risk.max_notional_pct <= whole
        and risk.risk_per_trade_pct <= risk.daily_loss_cap_pct * CLEARLY
    )


@dataclass(slots=True)
class _Sent:
    """An opening that was sent, and its fill once there is one."""

    tick: int
    order: paper.PaperOrder
    opened: datetime | None = None
    price: float = 0.0
    lots: float = 0.0


class _Desk:
    """The desk of one configuration: what it holds, sent and lost, and its way through the ticks.

    `bar` is the first bar that the paper bridge has not looked at, `touched` that bar where it is
    known to be one that may end the position, `fills` the one that executes what was sent last,
    `latched` the end of the run of verdicts in which a veto is latched.
    """

    def __init__(
        self,
        market: BarIndex,
        course: L1Course,
        instance: Instance,
        profile: Profile,
        plans: Plans,
    ) -> None:
        self.market, self.course, self.plans = market, course, plans
        self.instance, self.profile = instance, profile
        self.spec: SymbolSpec = profile.symbol(instance.symbol)
        self.roomy = _roomy(profile.risk)
        self.last = len(market.close)
        self.trades: list[TradeObservation] = []
        self.halts = 0
        self.silent_until = 0
        self.orders: Sequence[paper.PaperOrder] = ()
        self.position: paper.PaperPosition | None = None
        self.bar = self.fills = 0
        self.touched = -1
        self.sent: dict[str, _Sent] = {}
        self.signals: list[tuple[int, str, Side]] = []
        self.profits: list[tuple[int, float]] = []
        self.lost: dict[Side, int] = {}
        self.streak = 0
        self.latched = -1
        self.multipliers: dict[tuple[bool, int, RiskOverlay], float] = {}

    # --- the way --------------------------------------------------------------------------------

    def run(self) -> None:
        """Go from tick to tick, as long as one can matter."""
        tick = self._ahead(0)
        while tick < self.last:
            self._live(tick)
            self._decide(tick)
            tick = self._ahead(tick + 1)
        self._live(self.last - 1)
        self._end()

    def _ahead(self, tick: int) -> int:
        """Return the next tick from this one on at which something can happen."""
        if self.orders:
            return tick
        if self.position is None:
            return self._candidate(tick)
        told = self._told(self._touch(self.position))
        if self.profile.on_opposite == "hold":
            return told
        opposite = SELL if self.position.side == "LONG" else BUY
        return min(told, self.course.next(tick, opposite))

    def _candidate(self, tick: int) -> int:
        """Return the next tick whose verdict may open; a latched veto lasts for its whole run."""
        found = self.course.next(tick)
        # The latch holds for a whole run of verdicts: all of its ticks are leapt over.
        if found < self.last and self.course.run_end(found) == self.latched:
            return self.course.next(self.latched)
        return found

    def _live(self, tick: int) -> None:
        """Live through the bars that the tick knows and that may fill or end something."""
        while self.orders or self.position:
            at = self.fills if self.orders or not self.position else self._touch(self.position)
            if self._told(at) > tick:
                return
            self._through(at)

    def _touch(self, position: paper.PaperPosition) -> int:
        if self.bar != self.touched:
            self.bar = self.touched = self.market.touches(position, self.bar, self.spec.spread)
        return self.bar

    def _told(self, bar: int) -> int:
        """Return the first tick that knows a bar; the number of ticks for a bar beyond the end."""
        return self.market.lived_at[bar] if bar < len(self.market) else self.last

    def _through(self, at: int) -> None:
        """Live through one bar."""
        self.orders, self.position, events = paper.advance(
            self.orders, self.position, self.market.bar(at), self.spec.spread, self.spec
        )
        self.bar, self.touched = at + 1, -1
        for event in events:
            self._book(event)

    # --- the books ------------------------------------------------------------------------------

    def _book(self, event: paper.PaperEvent) -> None:
        sent = self.sent.get(event.sid)
        if sent is None:
            return  # a close: what it ended has an event of its own
        if event.kind in EXECUTED:
            sent.opened, sent.price, sent.lots = event.time, event.price, event.volume
        elif event.kind in ENDED:
            closed = micros(event.time)
            self.profits.append((closed, event.profit))
            self.streak = self.streak + 1 if event.profit < 0 else 0
            if event.profit < 0:
                self.lost[sent.order.side] = closed
            self._tell(sent, event)

    def _tell(self, sent: _Sent, event: paper.PaperEvent, reason: str = "") -> None:
        order, ticks = sent.order, self.market.ticks
        self.trades.append(
            TradeObservation(
                instance=self.instance.id,
                symbol=self.instance.symbol,
                timeframe=ticks.streams[int(ticks.stream[sent.tick])].timeframe,
                side=order.side,
                decided=order.decided_at,
                opened=sent.opened or event.time,
                closed=event.time,
                entry=sent.price,
                exit=event.price,
                stop=order.stop or 0.0,
                target=order.target or 0.0,
                lots=sent.lots,
                r=event.r_multiple,
                profit=event.profit,
                reason=reason or event.kind,
            )
        )

    def _end(self) -> None:
        """Record the trade that the history leaves open: closed at its last close."""
        held = self.position
        if held is None:
            return
        bar = self.market.bar(len(self.market) - 1)
        event = left_open(held, bar.close, bar.time, self.spec)
        self._tell(self.sent[held.sid], event, END)

    def _held(self) -> Position | None:
        """Return the position that the desk holds or is opening, as the risk engine takes it."""
        closing = {order.closes for order in self.orders if order.kind == "close"}
        if (held := self.position) is not None:
            return self._position(
                self.sent[held.sid].order, held.lots, held.entry, closing, "FILLED"
            )
        opening = next((order for order in self.orders if order.kind == "open"), None)
        if opening is None:
            return None
        state = "PUBLISHED" if opening.after is None else "WAITING"
        return self._position(opening, opening.lots, opening.entry or 0.0, closing, state)

    def _position(
        self,
        order: paper.PaperOrder,
        lots: float,
        entry: float,
        closing: set[str | None],
        state: str,
    ) -> Position:
        return Position(
            instance=self.instance.id,
            symbol=self.instance.symbol,
            side=OPENS[order.side],
            lots=lots,
            entry=entry,
            stop=order.stop or 0.0,
            target=order.target or 0.0,
            opened_at=order.decided_at,
            signal_id=order.sid,
            state=CLOSING if order.sid in closing else state,
        )

    # --- the decision ---------------------------------------------------------------------------

    def _decide(self, tick: int) -> None:
        """Do what the verdict asks for; a desk that is halted only keeps its latch."""
        sign = self.course.signs[tick]
        if not sign:
            return
        side, held = SIDES[sign], self._held()
        wanted = intent(side, held, self.profile.on_opposite)
        opens = any(leg.kind == "open" for leg in wanted.legs)
        run_end = self.course.run_end(tick) if opens else -1
        shut = opens and self.course.vetoes(tick, side)
        vetoed = opens and (shut or self.latched == run_end)
        # A vetoed opening of a flat desk sends nothing; one that holds may still close.
        if wanted.legs and tick >= self.silent_until and (held or not vetoed):
            self._act(tick, side, held, vetoed=vetoed)
        if shut:
            self.latched = run_end

    def _act(self, tick: int, side: Side, held: Position | None, *, vetoed: bool) -> None:
        planned = None if held else self._opened(tick, side)
        if isinstance(planned, DenyReason):
            return
        if planned is not None:
            self._send(tick, planned)
            return
        action = self._review(tick, side, held, vetoed=vetoed)
        if action.halt is not None:
            self._halt(tick)
        for draft in action.drafts:
            self._send(tick, draft)

    def _review(self, tick: int, side: Side, held: Position | None, *, vetoed: bool) -> Action:
        """Let the risk engine decide."""
        decision = Decision(
            verdict=side,
            price=self.market.price[tick],
            atr=self.market.atr[tick],
            multiplier=self._multiplier(tick),
            veto=vetoed,
            opening_stands=True,
        )
        account = Account(
            positions_open=0 if held is None else 1,
            gross_notional=0.0 if held is None else notional(held.lots, held.entry, self.spec),
            # Others hold nothing at this account; the desk's own position is gone by then.
            levered=dict.fromkeys(CAPPED, 0.0),
            **self._exposure(tick),
        )
        return review(decision, held, account, self.spec, self.profile)

    def _multiplier(self, tick: int) -> float:
        if tick in self.course.multipliers:
            return self.course.multipliers[tick]
        officer = self.course.officer(tick)
        volatile, streak, _ = known = bool(self.course.volatile[tick]), self.streak, officer
        if known not in self.multipliers:
            self.multipliers[known] = multiplier_of(
                self.profile.gate, volatile=volatile, streak=streak, officer=officer
            )
        return self.multipliers[known]

    def _exposure(self, tick: int) -> dict[str, Any]:
        """Return what the day lost, what the hour sent and how long ago a side lost."""
        now, ticks = self.market.close[tick], self.market.ticks
        step = ticks.streams[int(ticks.stream[tick])].step
        midnight = now - now % DAY
        recent: list[tuple[str, Side]] = []
        # Newest first, so that the walk ends after one hour of signals.
        for sent, kind, side in reversed(self.signals):
            if sent <= now - HOUR:
                break
            recent.append((kind, side))
        today: list[float] = []
        for closed, profit in reversed(self.profits):
            if closed < midnight:
                break
            today.append(profit)
        openings = [side for kind, side in recent if kind == "open"]
        return {
            "day_loss": 0.0 - fsum(today),
            "signals_last_hour": len(recent),
            "same_side_last_hour": {side: openings.count(side) for side in sorted(set(openings))},
            "bars_since_loss": {side: (now - at) / step for side, at in self.lost.items()},
        }

    def _opened(self, tick: int, side: Side) -> SignalDraft | DenyReason | None:
        """Return the opening of a flat desk that is far inside every limit; None: have it reviewed.

        Levels and lots are the real ones. A stop two ATR away is neither too far nor, once there
        are levels, too near, and lots keep to what one trade may lose and be worth; so where that
        is less than what the desk may, and the account is calm, no check is left that could object.
        Without levels or lots nothing opens, whatever the account is, and nothing halts.
        """
        key = tick, side, self._multiplier(tick)
        if key not in self.plans:
            self.plans[key] = self._plan(*key)
        found = self.plans[key]
        if isinstance(found, DenyReason) or (self.roomy and self._calm(tick, side)):
            return found
        return None

    def _plan(self, tick: int, side: Side, multiplier: float) -> SignalDraft | DenyReason | None:
        price, atr = self.market.price[tick], self.market.atr[tick]
        found = levels(side, price, atr, self.spec)
        if isinstance(found, DenyReason):
            return found
        if abs(found.entry - price) > self.profile.risk.price_collar_atr * atr * CLEARLY:
            return None
        lots = size(found, self.spec, self.profile.risk, multiplier)
        return SignalDraft("open", side, lots, found) if lots > 0 else DenyReason.SIZE_ZERO

    def _calm(self, tick: int, side: Side) -> bool:
        """Return whether the account is clearly inside every limit for an opening of a side."""
        told, risk = self._exposure(tick), self.profile.risk
        cap = risk.capital * risk.daily_loss_cap_pct / 100.0
        return bool(
            told["day_loss"] <= cap * CLEARLY
            and told["signals_last_hour"] < risk.max_signals_per_hour
            and told["same_side_last_hour"].get(side, 0) < risk.max_same_openings_per_hour
            and (not risk.cooldown_bars or side not in self.lost)
        )

    def _send(self, tick: int, draft: SignalDraft) -> None:
        """Put a draft among the orders of the paper bridge, with the limits of its moment."""
        found, moment = draft.levels, moment_of(self.market.close[tick])
        waits = draft.kind == "open" and draft.closes is not None
        order = paper.PaperOrder(
            # The tick makes it unique: a tick sends one order of each kind at most.
            sid=f"{tick} {draft.kind}",
            kind=draft.kind,
            side=draft.side,
            lots=draft.lots,
            stop=found.stop if found else None,
            target=found.target if found else None,
            decided_at=moment,
            after=f"{tick} close" if waits else None,
            entry=found.entry if found else None,
            closes=draft.closes,
            **self._limits(found),
        )
        self.orders = (*self.orders, order)
        self.signals.append((self.market.close[tick], draft.kind, draft.side))
        self.fills = self.market.fills_at[tick]
        if draft.kind == "open":
            self.sent[order.sid] = _Sent(tick, order)

    def _limits(self, found: Levels | None) -> dict[str, int]:
        if found is None:
            return {}
        profile = self.profile
        allowed = limits(
            found.atr,
            self.spec.digits,
            spread_share=profile.gate.max_spread_atr,
            deviation_share=profile.risk.price_collar_atr,
        )
        return allowed._asdict()

    def _halt(self, tick: int) -> None:
        """Stop until a person resumes: at the next midnight, UTC."""
        self.orders = ()
        self.halts += 1
        now = self.market.close[tick]
        self.silent_until = bisect_left(self.market.close, now - now % DAY + DAY)
