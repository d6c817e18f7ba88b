"""The brain over a store: weighs a tick's scores beside what is stored, and recalls a stream.

`Brain.save_sentiment` weighs and stores the scores of a tick; `foresee` does the weighing alone.
`memory_context` returns what was known of a stream at a moment. Nothing is read that closed after
the tick's own close.

Each store that keeps ticks inherits from it and supplies the rows: the desk's database
(instance_database) and the store in memory (torra.store.memory). The arithmetic is
torra.verdict.sentiment_rules'.

A score that is not a number in [-1, +1] raises ValueError before anything is kept. Errors of the
store pass through.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from torra.clock import parse
from torra.config import Profile, SymbolSpec
from torra.store.connection import RowDict, TickKey
from torra.store.trade.positions import PositionStore
from torra.verdict import call_policy, sentiment_rules
from torra.verdict.risk_engine import Position
from torra.verdict.sentiment_rules import (
    MARKOV_HISTORY,
    ConsensusResult,
    MarkovView,
    OpenPosition,
    number,
    numbers,
)
from torra.verdict.trade_outcome import value_at_bid

Composites = dict[str, tuple[datetime, dict[str, float]]]
"""By timeframe: close time and composites by chain of a stream's newest tick."""


MOMENT: Final = timedelta(seconds=1)
"""Less than any two closes of a stream lie apart."""


class StoredTick(NamedTuple):
    """The scores of a tick as they are stored: those of the desk, of L1 and of the record."""

    key: TickKey
    close_time: datetime
    result: ConsensusResult
    scores: Mapping[str, float]
    l1: Mapping[str, float]
    ath: float
    source_type: str
    deliberation: Mapping[str, Any] | None


History = Sequence[tuple[str, float, str]]
"""Close time (ISO), consensus and verdict of a stream's ticks, oldest first."""


class Brain(PositionStore):
    """The brain over a store."""

    # --- what a store gives ---------------------------------------------------------------------

    @abstractmethod
    def _latest_composites(
        self, key: TickKey, close_time: datetime, timeframes: Sequence[str]
    ) -> Composites:
        """Return the newest composites of an instance's streams that closed up to a moment."""

    @abstractmethod
    def _history(self, instance: str, timeframe: str, as_of: datetime, limit: int) -> History:
        """Return the newest ticks of a stream that closed before `as_of`."""

    @abstractmethod
    def _recent_trades(self, instance: str, as_of: datetime) -> Sequence[Mapping[str, Any]]:
        """Return the newest RECENT_TRADES trades that closed before `as_of`, newest first."""

    @abstractmethod
    def _keep_tick(self, tick: StoredTick) -> None:
        """Store a tick with its chains."""

    # --- the brain ------------------------------------------------------------------------------

    def save_sentiment(
        self,
        scores: Mapping[str, Any],
        *,
        key: TickKey,
        close_time: datetime,
        ath: float,
        l1: Mapping[str, Any],
        ungated: Mapping[str, Any],
        source_type: str,
        profile: Profile,
        deliberation: Mapping[str, Any] | None,
        timeframes: Sequence[str],
    ) -> ConsensusResult:
        """Weigh the blended scores of a tick, store them with their chains, and return the verdict.

        `scores`, `l1` and `ungated` map each vector to a number or to {"score": number, ...}, as
        score_chart gives them; all numbers in [-1, +1]. `timeframes` are the instance's: the latest
        composite of each, up to `close_time`, takes part in the consensus, this tick's own for its
        own. Joins the open transaction. Raises ValueError for a broken score.
        """
        # Before the transaction, so that a broken score raises before anything is written.
        gated, plain = numbers(scores), numbers(l1)
        # One value where no gate changed a score.
        free = gated if ungated is scores else numbers(ungated)
        height = number("ath", ath)
        own = sentiment_rules.composites(plain, gated, free, height, profile)
        with self.transaction():
            latest = self._latest_composites(key, close_time, timeframes)
            # Its own stream counts with this tick, not with the one stored last.
            latest[key.timeframe] = (close_time, own)
            saved = sentiment_rules.weigh(own, latest, profile, close_time)
            self._keep_tick(
                StoredTick(
                    key, close_time, saved, gated, plain, height, str(source_type), deliberation
                )
            )
        return saved

    def foresee(
        self,
        key: TickKey,
        close_time: datetime,
        *,
        l1: Mapping[str, Any],
        ath: float,
        profile: Profile,
        timeframes: Sequence[str],
        together: Mapping[str, float],
    ) -> list[tuple[float, float]]:
        """Return what the consensus may come to where L1's scores alone count for this tick.

        Each pair is that of the L1 and of the final chain. `together` has the L1 composites of what
        closed at the same moment; what is stored of that moment already, as after a crash, counts
        by its L1 composite too. There is a pair for each choice of those that are stored before
        this tick. Nothing is stored here.
        """
        weights = profile.sentiment_weights
        own = sentiment_rules.composite(numbers(l1), number("ath", ath), weights)
        known = self._latest_composites(key, close_time, timeframes)
        siblings = {
            name: values["l1"] for name, (close, values) in known.items() if close == close_time
        }
        if siblings:
            known = self._latest_composites(key, close_time - MOMENT, timeframes)
        siblings = {**siblings, **together}
        siblings.pop(key.timeframe, None)
        return call_policy.foreseen(
            key.timeframe, own, close_time,
            together=siblings, known=known, weights=profile.timeframe_weights,
        )  # fmt: skip

    def memory_context(
        self,
        instance: str,
        timeframe: str,
        *,
        as_of: datetime,
        profile: Profile,
        symbol: str,
        price: float,
    ) -> RowDict:
        """Return what the stream remembers at `as_of`, before this tick is stored.

        The keys are document 001's and those of sentiment_rules.memory_view. Positions count when
        they were decided before `as_of`: ticks that close together do not know of each other, of
        one instance as of several, whichever is stored first. `price` is the close of the newest
        bar.
        """
        trades = self._recent_trades(instance, as_of)
        ours, elsewhere = self.positions_at(instance, as_of)
        spec = profile.symbol(symbol)
        view, history = self._markov(instance, timeframe, as_of, profile)
        newest = history[-profile.agents.history_lookback :]
        return sentiment_rules.memory_view(
            view,
            as_of=as_of,
            timeframe=timeframe,
            trend=[consensus for _, consensus, _ in newest],
            verdicts=[verdict for _, _, verdict in newest],
            open_positions=[
                OpenPosition(item.side, _profit(item, price, spec), item.opened_at) for item in ours
            ],
            open_elsewhere=elsewhere,
            trades=trades,
        )

    def _markov(
        self, instance: str, timeframe: str, as_of: datetime, profile: Profile
    ) -> tuple[MarkovView, History]:
        """Return the states of a stream before `as_of`, and its newest ticks then."""
        history = self._history(instance, timeframe, as_of, MARKOV_HISTORY)
        points = [(parse(close), consensus) for close, consensus, _ in history]
        return sentiment_rules.markov(points, timeframe, profile.markov), history


def _profit(position: Position, price: float, spec: SymbolSpec) -> float:
    """Return what closing now would bring, in account currency; 0 for one not filled yet."""
    if position.state not in ("FILLED", "CLOSED"):
        return 0.0
    return value_at_bid(position, price, spec).profit
