"""What a tick is handed: its store, bars, provider, clock and listeners, and what it does to them.

Live ticks, warm-up, one-off ticks and replays differ in these edges alone (torra_trader). Errors of
the store are StoreUnavailable and pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

import signal_bridge
from instance_database import TickKey
from torra.clock import Clock
from torra.config import Instance
from torra.evaluation.standing.track_record import TrackRecordOf
from torra.evidence.companion_readings import Companions
from torra.evidence.feature_bundle import Bundle
from torra.evidence.flow_readings import Flow
from torra.evidence.news_digest import NewsView
from torra.evidence.outside_readings import ClosesOf, OutsideView
from torra.evidence.scheduled_events import EventView
from torra.lessons.recall import Recall
from torra.market.spreads import SpreadView
from torra.tick.bar_window import Window
from torra.tick.debate import ModelAccess
from torra.tick.tick_database import TickDatabase
from torra.verdict.risk_engine import TradingState

LOCK_GRACE: Final = 0.35
"""Seconds past the deadline that a tick waits for the database's lock."""

LEAST_WAIT: Final = 0.1
"""Seconds that a write waits for the lock even when the deadline has passed."""

PUBLISH_WAIT: Final = 5.0
"""Seconds that publishing after a tick waits for the lock: many instances may do so at once.

A signal that is not published now waits for the next wake.
"""


Evidence = Callable[[TickKey, Bundle, OutsideView | None], Bundle]
"""Gives the experts of a placebo other evidence than that of their tick."""


class MarketRoute(Protocol):
    """The way to the market of an instance that does not trade on paper (torra.trading.courier)."""

    def settle(self, instance: str) -> None:
        """Book what has been reported since."""
        ...

    def send(self, instance: str) -> None:
        """Send what may be sent."""
        ...

    def figures(self, instance: str) -> Mapping[str, Any]:
        """Return what the broker says of account and symbol now, what is not known left out.

        Names are those of `Account`; `last_price` is the market's, as in `Decision`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TickDeps(ModelAccess):
    """What a tick is handed: beside who answers its agents, the store, the bars and the clock.

    `news` returns what was known at a moment, `events` what was scheduled around a close and the
    moment of its tick, `outside` the outside numbers, from the symbol's own closes of whole days
    too, `flow` the order flow of bars; each is None where the profile does not ask for it.
    `begin_flow` begins to read what `flow` takes, where that is read beside the tick.
    `lessons` tells what earlier trades came to, `standing` what the seats' earlier calls did; each
    is None where the profile does not ask for it.
    `companions` are the instance's, None where it has none. `spreads` stands in for those of the
    bars, None elsewhere. `invented` says that such inputs are a demo's own invention. `route` leads
    to a bridge, None to the paper bridge. `halted` says why nothing may go out, "" when it may.
    `on_error` gets what went wrong after a tick was stored, which cannot fail it any more. Without
    `recording` no journal is kept, and what only a record needs is not computed. `together` has the
    L1 composites of timeframes that closed with a tick and do not run with it: a replay from the
    journal runs one tick at a time.
    """

    database: TickDatabase
    window: Window
    provider: str
    clock: Clock
    news: Callable[[datetime], NewsView] | None = None
    events: Callable[[datetime, datetime], EventView] | None = None
    outside: Callable[[datetime, ClosesOf], OutsideView] | None = None
    lessons: Recall | None = None
    standing: TrackRecordOf | None = None
    companions: Companions | None = None
    flow: Flow | None = None
    begin_flow: Callable[[str, Sequence[datetime]], None] = lambda _timeframe, _times: None
    route: MarketRoute | None = None
    halted: Callable[[], str] = lambda: ""
    on_error: Callable[[Exception], None] = lambda _error: None
    recording: bool = True
    together: Mapping[str, float] = field(default_factory=dict)
    evidence: Evidence | None = None
    spreads: Callable[..., SpreadView] | None = None
    invented: bool = False

    @property
    def recorded(self) -> bool:
        """Whether a record is wanted: for the store's journal or for a listener."""
        return self.recording or self.on_event is not None

    def write(self, deadline: float) -> AbstractContextManager[None]:
        """Begin a transaction that waits for the database's lock until just past the deadline."""
        left = deadline + LOCK_GRACE - self.clock.monotonic()
        return self.database.transaction(max(LEAST_WAIT, left))

    def trading_state(self) -> TradingState:
        """Return the desk's trading state; a kill switch not in the database yet counts."""
        return "HALTED" if self.halted() else self.database.trading_state()

    def publish(self, instance: Instance, wait_seconds: float | None = None) -> None:
        """Hand the instance's pending signals to its bridge, checking halt and expiry once more.

        Waits for the lock up to `wait_seconds` (None: the connection's own patience).
        """
        if self.route is not None:
            self.route.send(instance.id)
            return
        # Looked at without a lock first: most ticks send nothing and need no transaction.
        if not signal_bridge.waits(self.database, instance.id):
            return
        with self.database.transaction(wait_seconds):
            self.database.require_desk()
            signal_bridge.publish_pending(
                self.database,
                instance=instance.id,
                now=self.clock.now(),
                state=self.trading_state(),
            )
