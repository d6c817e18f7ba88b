"""The account behind a bridge beside Torra's own deals there: what of its changes is not Torra's.

Pure. Between two moments at which Torra held nothing on an account, its balance may change by what
Torra's trades came to and by nothing else: then swap, commission and every part of a close are in
both. Whatever is left is a deposit or a withdrawal, somebody else's trade, or a fee. While Torra
holds a position, and next to a deal of Torra's, nothing is judged: the broker books parts and costs
as they come, and his books and his heartbeat do not tell of a deal in the same second.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from torra.clock import iso, parse

CENT: Final = 0.005
"""Amounts that differ by less are the same."""

DEAL_MARGIN: Final = timedelta(seconds=30)
"""So near to a deal of Torra's nothing is judged: books and heartbeats tell of it one by one."""

NEVER: Final = "~"
"""Behind every moment, as texts are ordered."""

JUMPS: Final = 20
"""Newest unexplained changes that are told one by one."""


class AccountMark(NamedTuple):
    """One look at an account, as torra.store.trade.accounts tells it.

    `at` is ISO 8601 in UTC, `held` counts Torra's positions there.
    """

    at: str
    account: int
    currency: str
    balance: float
    equity: float
    held: int
    id: int = 0

    @property
    def holder(self) -> tuple[int, str]:
        """Whose account it is: number and currency."""
        return self.account, self.currency


@dataclass(frozen=True, slots=True)
class Jump:
    """A change of the balance between two moments that no deal of Torra's explains."""

    begin: str
    end: str
    amount: float


@dataclass(frozen=True, slots=True)
class AccountValue:
    """What an account is worth, marked first at `since`, and what of its changes is not Torra's.

    `unexplained` is the sum of `jumps` jumps, of which `newest` has the last JUMPS, newest first.
    It is known from `judged_from`, the first moment at which Torra held nothing there, to `judged`;
    both are "" where nothing is known yet. `fall` is the deepest fall of the equity below its
    highest mark, `below` how far it is now, both without what is unexplained.
    """

    at: str
    since: str
    judged_from: str
    judged: str
    balance: float
    equity: float
    unexplained: float
    jumps: int
    newest: tuple[Jump, ...]
    fall: float
    below: float


class AccountSeries:
    """The marks of one account so far; a later look adds only what is new."""

    def __init__(self) -> None:
        self._first: AccountMark | None = None
        self._last: AccountMark | None = None
        self._flat: AccountMark | None = None
        self._jumps: list[Jump] = []
        self._judged_from = self._judged = ""
        self._high = -math.inf
        self._fall = 0.0
        # Between two trades' ends: from, to, and of how many ends that was said.
        self._calm: tuple[str, str, int] = ("", "", -1)

    def add(self, mark: AccountMark, ends: Sequence[tuple[str, float]]) -> None:
        """Add the next mark; `ends` are Torra's trades there, (closed_at, profit), oldest first."""
        self._first = self._first or mark
        self._last = mark
        if not mark.held and self._is_calm(mark.at, ends):
            self._judge(mark, ends)
        self._high = max(self._high, mark.equity)
        self._fall = max(self._fall, self._high - mark.equity)

    def _judge(self, mark: AccountMark, ends: Sequence[tuple[str, float]]) -> None:
        before, self._flat = self._flat, mark
        if before is None:
            self._judged_from = mark.at
            return
        self._judged = mark.at
        change = mark.balance - before.balance
        if before.at < self._calm[0]:
            change -= won_between(ends, before.at, mark.at)
        left = round(change, 2)
        if abs(left) > CENT:
            self._jumps.append(Jump(before.at, mark.at, left))
            self._high += left  # money that came or went is no gain and no fall

    def _is_calm(self, at: str, ends: Sequence[tuple[str, float]]) -> bool:
        """Return whether no trade was closed shortly before or after a moment."""
        begin, end, known = self._calm
        if known != len(ends) or not begin <= at <= end:
            after = bisect_right(ends, (at, math.inf))
            begin = iso(parse(ends[after - 1][0]) + DEAL_MARGIN) if after else ""
            end = iso(parse(ends[after][0]) - DEAL_MARGIN) if after < len(ends) else NEVER
            self._calm = begin, end, len(ends)
        return begin <= at <= end

    def standing(self) -> AccountValue | None:
        """Return how the account stands; None before the first mark."""
        first, last = self._first, self._last
        if first is None or last is None:
            return None
        return AccountValue(
            at=last.at,
            since=first.at,
            judged_from=self._judged_from if self._judged else "",
            judged=self._judged,
            balance=last.balance,
            equity=last.equity,
            unexplained=round(math.fsum(one.amount for one in self._jumps), 2),
            jumps=len(self._jumps),
            newest=tuple(reversed(self._jumps[-JUMPS:])),
            fall=round(self._fall, 2),
            below=round(self._high - last.equity, 2),
        )


def won_between(ends: Sequence[tuple[str, float]], after: str, upto: str) -> float:
    """Return what the trades came to that were closed in (after, upto]."""
    begin = bisect_right(ends, (after, math.inf))
    end = bisect_right(ends, (upto, math.inf))
    return math.fsum(profit for _, profit in ends[begin:end])
