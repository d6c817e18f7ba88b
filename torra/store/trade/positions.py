"""Reads positions, exposure and the orders on paper from a desk's signals, and ends positions.

A position is not stored: it is an opening that is not finished. `PositionStore` derives it, and
everything else that a tick asks of its account, from a few look-ups that a store of signals
implements (torra.store.trade.signals, torra.store.trade.memory_signals). So the same signals mean
the same in every store. Errors of the store pass through.
"""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from torra.clock import duration, parse
from torra.config import SymbolSpec
from torra.errors import ConfigError, StoreUnavailable
from torra.lessons.facts import UNCOUNTED, PriceRange, WinRate, facts_of
from torra.lessons.lesson import LessonFacts, LessonText, Situation
from torra.lessons.reviews import rules_words
from torra.store.connection import RowDict, stamp, to_json
from torra.trading_terms import ACCOUNT
from torra.verdict.outbox import Outbox
from torra.verdict.risk_engine import CLOSING, OPENS, Position, notional
from torra.verdict.signal_states import EXECUTED, POSITION_STATES, is_closing
from torra.verdict.trade_outcome import TradeOutcome, judge

log = logging.getLogger("torra")

HOUR: Final = timedelta(hours=1)

BY_HAND: Final = "BY_HAND"
"""Why a position ended that a person has closed by a command."""

ON_PAPER: Final = (
    "sid", "kind", "side", "lots", "entry", "stop", "target", "after", "closes", "atr",
)  # fmt: skip
"""Columns of a signal that a paper order takes as they are, and its ATR."""


class PositionStore(Outbox):
    """Positions of every instance, read from its signals."""

    # --- what a store of signals gives ----------------------------------------------------------

    @abstractmethod
    def live_signals(
        self, states: Collection[str], instance: str | None, kind: str
    ) -> list[RowDict]:
        """Return the signals of a kind in one of the states, of one instance or of all."""

    @abstractmethod
    def _closed_since(self, moment: str) -> list[RowDict]:
        """Return the openings that were closed at a moment (ISO) or later, the earliest first."""

    @abstractmethod
    def _sent_between(self, instance: str, after: str, upto: str) -> list[tuple[str, str]]:
        """Return kind and side of an instance's signals that were decided in (after, upto].

        What a person did is not among them: it is no sign of a desk that runs away.
        """

    @abstractmethod
    def _last_losses(self, instance: str, before: str) -> dict[str, str]:
        """Return by side when an instance's newest losing trade was closed, before a moment."""

    @abstractmethod
    def _spec(self, instance: str, symbol: str) -> SymbolSpec:
        """Return the trading conditions of an instance's symbol."""

    @abstractmethod
    def situation(self, sid: str) -> Situation | None:
        """Return the market of an opening; None where none was kept."""

    @abstractmethod
    def price_range(self, instance: str, opened: datetime, closed: datetime) -> PriceRange | None:
        """Return the range of the bars that lie wholly between two moments; None without any."""

    @abstractmethod
    def write_lesson(self, facts: LessonFacts, words: LessonText) -> int | None:
        """Write a lesson and return its number; None where there is one of its trade already."""

    @abstractmethod
    def win_rates(self, instance: str, timeframe: str) -> dict[str, list[int]]:
        """Return [wins, trades] by side, as the newest replay found them; empty when none did."""

    # --- what it amounts to ---------------------------------------------------------------------

    def position(self, instance: str) -> Position | None:
        """Return what an instance holds or is opening; its state is CLOSING while a close runs."""
        return next(iter(self.positions(instance)), None)

    def positions(self, instance: str | None = None) -> list[Position]:
        """Return what the desk, or one instance, holds or is opening: one for each instance."""
        first: dict[str, Position] = {}
        # An opening that waits for its close comes after the position that it will replace.
        for row in sorted(
            self.live_signals(POSITION_STATES, instance, "open"),
            key=lambda row: POSITION_STATES.index(row["state"]),
        ):
            if row["instance"] not in first:
                first[row["instance"]] = as_position(
                    row, self.closes_of(row["instance"], row["sid"])
                )
        return sorted(first.values(), key=lambda item: (item.opened_at, item.instance))

    def openings(self) -> list[RowDict]:
        """Return the desk's openings that are not finished, as stored."""
        return self.live_signals(POSITION_STATES, None, "open")

    def being_closed(self, opening: Mapping[str, Any]) -> bool:
        """Return whether the position of an opening is being closed."""
        return is_closing(self.closes_of(opening["instance"], opening["sid"]))

    def paper_position(self, instance: str) -> Position | None:
        """Return what the paper bridge holds: the opening that was filled."""
        rows = self.live_signals(EXECUTED, instance, "open")
        return as_position(rows[0], self.closes_of(instance, rows[0]["sid"])) if rows else None

    def paper_orders(self, instance: str, only: Collection[str]) -> list[RowDict]:
        """Return orders that the paper bridge has: fields of its PaperOrder, and their ATR.

        Those of the ids `only`: of a row that cannot be read no order can be made.
        """
        if not only:
            return []
        rows = self.signals(("PUBLISHED", "WAITING"), instance)
        return [
            {name: row[name] for name in ON_PAPER} | {"decided_at": parse(row["decided_at"])}
            for row in reversed(rows)
            if row["sid"] in only
        ]

    def close_position(
        self,
        sid: str,
        *,
        price: float,
        time: datetime,
        profit: float,
        r_multiple: float,
        reason: str,
        known_at: datetime | None = None,
    ) -> bool:
        """Close the position that an opening made; False when it was closed before.

        What it came to is kept with it: outcome, evolution of the thesis, and plan beside result.
        CLOSED by a person's close becomes BY_HAND. Its lesson is written with it, and counts for
        ticks after `known_at` (None: its end).
        """
        row = self.signal(sid)
        if row is None:
            raise ValueError(f"there is no signal {sid}")
        if reason == "CLOSED" and is_closing(
            order
            for order in self.closes_of(row["instance"], sid)
            if order["authority"] == "person"
        ):
            reason = BY_HAND
        end = judge(row, exit_price=price, closed_at=time, profit=profit, reason=reason)
        fields = {
            "close_price": price,
            "closed_at": time,
            "profit": profit,
            "r_multiple": r_multiple,
            "close_reason": reason,
            "outcome": end.outcome,
            "evolution": end.evolution,
            "thesis": to_json(end.as_dict()),
        }
        with self.transaction():
            if not self.move_signal(sid, "CLOSED", detail=reason, fields=fields):
                return False
            try:  # nothing about the lesson undoes the end
                with self.transaction():
                    self._learn(row, end, price, time, known_at or time)
            except StoreUnavailable:
                raise
            except Exception:
                log.exception("the trade %s ended and leaves no lesson", sid)
        return True

    def _learn(
        self,
        row: Mapping[str, Any],
        end: TradeOutcome,
        price: float,
        closed_at: datetime,
        known_at: datetime,
    ) -> None:
        """Write the lesson of a trade that has just ended."""
        opened = parse(row["opened_at"] or row["decided_at"])
        spec: SymbolSpec | None = None
        with suppress(ConfigError):  # the profile of now may not have the symbol any more
            spec = self._spec(row["instance"], row["symbol"])
        counted = self.win_rates(row["instance"], row["timeframe"]).get(row["side"])
        facts = facts_of(
            row,
            end,
            kind="trade",
            exit_price=price,
            closed_at=closed_at,
            known_at=known_at,
            price_range=self.price_range(row["instance"], opened, closed_at),
            asset="" if spec is None else spec.asset,
            spread=0.0 if spec is None else spec.spread,
            situation=self.situation(row["sid"]),
            counted=WinRate(*counted) if counted else UNCOUNTED,
        )
        self.write_lesson(facts, rules_words(facts, known_at))

    def exposure(self, instance: str, timeframe: str, *, as_of: datetime) -> RowDict:
        """Return the account as an opening of this instance would meet it: the whole desk's.

        signals_last_hour and same_side_last_hour (the instance's own, the latter its openings by
        side), positions_open, gross_notional (at entry prices), day_loss (of the UTC day of
        `as_of`, a gain negative), both in account currency, bars_since_loss (bars of the timeframe
        since the instance's last losing trade of a side was closed) and win_rates (wins and trades
        by side, as a replay found them).
        """
        positions = self.positions()
        midnight = stamp(as_of.replace(hour=0, minute=0, second=0))
        today = math.fsum(row["profit"] or 0.0 for row in self._closed_since(midnight))
        sent = self._sent_between(instance, stamp(as_of - HOUR), stamp(as_of))
        openings = Counter([side for kind, side in sent if kind == "open"])
        return {
            "signals_last_hour": len(sent),
            "same_side_last_hour": dict(sorted(openings.items())),
            "bars_since_loss": {
                side: (as_of - parse(closed)) / duration(timeframe)
                for side, closed in self._last_losses(instance, stamp(as_of)).items()
            },
            "win_rates": self.win_rates(instance, timeframe),
            "positions_open": len(positions),
            "gross_notional": sum(map(self._notional, positions)),
            # 0.0 - x: the negative of no loss would be -0.0.
            "day_loss": 0.0 - today,
        }

    def levered(self, instance: str, timeframe: str, route: str) -> dict[str, float]:
        """Return what other instances hold at an account, notional at entry prices, by whose it is.

        That of the timeframe's openings under its name, that of all as ACCOUNT (`route` names the
        account). The instance's own position is left out: it opens only where that is gone.
        """
        there = {row["sid"]: row["timeframe"] for row in self.openings() if row["bridge"] == route}
        worth = [
            (there[item.signal_id], self._notional(item))
            for item in self.positions()
            if item.signal_id in there and item.instance != instance
        ]
        own = (value for name, value in worth if name == timeframe)
        return {timeframe: math.fsum(own), ACCOUNT: math.fsum(value for _, value in worth)}

    def positions_at(self, instance: str, as_of: datetime) -> tuple[list[Position], int]:
        """Return an instance's positions as a tick that closes at `as_of` may know them.

        Those that were decided before: what closes together does not know of each other, and a tick
        that runs again must not meet the position that it opened itself. The second value is the
        number of other instances that had one.
        """
        moment = stamp(as_of)
        # Those that ended since were still open then.
        rows = [*self.live_signals(POSITION_STATES, None, "open"), *self._closed_since(moment)]
        known = [_as_known(row, moment) for row in rows if row["decided_at"] < moment]
        ours = [as_position(row) for row in known if row["instance"] == instance]
        return ours, len({row["instance"] for row in known} - {instance})

    # --- details --------------------------------------------------------------------------------

    def _notional(self, position: Position) -> float:
        return notional(
            position.lots, position.entry, self._spec(position.instance, position.symbol)
        )


def as_position(row: Mapping[str, Any], orders: Iterable[Mapping[str, Any]] = ()) -> Position:
    """Read an opening as a position: entry and time are those of the fill, once there is one.

    `orders` are the signals about it, oldest first: a close under way, stops that were moved.
    """
    orders = list(orders)
    stop = row["broker_stop"]  # by the books, which know of the terminal's own moves too
    if stop is None:
        moves = (one for one in orders if one["kind"] == "modify" and one["state"] == "FILLED")
        stop = next((move["stop"] for move in reversed([*moves])), None)
    return Position(
        instance=row["instance"],
        symbol=row["symbol"],
        side=OPENS[row["side"]],
        lots=row["lots"] if row["filled_lots"] is None else row["filled_lots"],
        entry=row["entry"] if row["price"] is None else row["price"],
        stop=row["stop"] if stop is None else stop,
        target=row["target"],
        opened_at=parse(row["opened_at"] or row["decided_at"]),
        signal_id=row["sid"],
        state=CLOSING if is_closing(orders) else row["state"],
        moved_from=None if stop is None else row["stop"],
    )


def _as_known(row: RowDict, as_of: str) -> RowDict:
    """Take back a fill that was not known at `as_of`: a bar's fill is known when it has closed."""
    if row["opened_at"] is None or row["opened_at"] < as_of:
        return row
    unknown = dict.fromkeys(("opened_at", "price", "filled_lots"))
    return {**row, **unknown, "state": "PUBLISHED"}
