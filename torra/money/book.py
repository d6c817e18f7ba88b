"""What a desk's trades came to so far, and what its open positions may still win or lose.

Torra's own result, from the fills of its signals: realised where a trade is closed, open at the
newest stored close. It is not the account's equity: other trades, deposits and the cost of models
are not in it. Amounts of two accounts are never added up, for nobody has said what one currency is
worth in the other.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from torra.clock import iso
from torra.config import Instance, Profile
from torra.money.account import AccountMark, AccountSeries, AccountValue
from torra.money.open_positions import (
    PAPER,
    LinePoint,
    OpenNow,
    OpenThen,
    line,
    moments,
    open_now,
)
from torra.money.results import ClosedTrade, Curve, ResultDrawdown, Tally, TradeTotals, together
from torra.store.standings import WarmUps
from torra.store.trade import accounts as account_table
from torra.store.trade import notes as note_table
from torra.store.trade import signals as signal_table
from torra.store.trade.rows import BridgeRow

if TYPE_CHECKING:
    from instance_database import Database

PARTS: Final = ("symbol", "side", "reason")
"""What results are told by, besides the day: fields of a trade."""

MOST: Final = 1e15
"""No account has won or lost more, in any currency: what says so is no number."""

DAYS_SHOWN: Final = 30
"""Newest days with a closed trade that are told one by one."""


Setups = Iterable[tuple[Instance, Profile]]
"""The instances of a desk, each with the profile that it runs with."""


@dataclass(frozen=True, slots=True)
class DayCap:
    """The loss of a UTC day at which a profile opens nothing more, in its capital's currency."""

    profile: str
    cap: float


@dataclass(frozen=True, slots=True)
class AccountMoney:
    """One account: a broker's by bridge and channel, or the one on paper.

    `currency` is what the broker said last, "" where nobody has told it. `warm_up` are trades on
    bars from before the desk began; nothing else here counts them. `standing` is the account itself
    as its heartbeats told it, None where there are none: Torra's result is never added to it. An
    account that stood behind a bridge before another one did has its end in its name.
    """

    account: str
    currency: str
    today: TradeTotals
    week: TradeTotals
    whole: TradeTotals
    warm_up: TradeTotals
    drawdown: ResultDrawdown
    open: OpenNow
    standing: AccountValue | None
    by_day: Mapping[str, TradeTotals]
    by_symbol: Mapping[str, TradeTotals]
    by_side: Mapping[str, TradeTotals]
    by_reason: Mapping[str, TradeTotals]
    by_tag: Mapping[str, TradeTotals]
    """By the tags that a person gave to trades; a trade with two is in both."""

    @property
    def closed_today(self) -> float:
        """What the trades that were closed today came to, 0 without one."""
        return self.today.profit if self.today.trades else 0.0

    @property
    def equity_today(self) -> float:
        """What was closed today and what is open, without what the warm-up opened."""
        return self.closed_today + (self.open.result or 0.0) - self.open.warm_up


@dataclass(frozen=True, slots=True)
class Money:
    """All accounts of a desk at one moment of its time; `day` is the UTC day called today.

    `lost_today` is what the desk has lost on that day as the risk checks count it: all accounts and
    the warm-up's trades together, a gain negative. `warm_up_today` is what the warm-up's trades of
    that day came to, a loss negative: they are in `lost_today` and in no account's result.
    """

    as_of: datetime
    accounts: tuple[AccountMoney, ...]
    lost_today: float
    caps: tuple[DayCap, ...]
    warm_up_today: float = 0.0

    @property
    def day(self) -> str:
        """The UTC day, as 2026-05-01."""
        return iso(self.as_of)[:10]

    @property
    def currency(self) -> str:
        """The currency of all accounts; "" where they differ or it is not known."""
        currencies = {one.currency for one in self.accounts}
        return currencies.pop() if len(currencies) == 1 else ""

    def as_json(self) -> dict[str, Any]:
        """Return it for programs: amounts in the currency of their account."""
        return {**asdict(self), "as_of": iso(self.as_of), "day": self.day}


class AccountBook:
    """Everything of one account that was added up so far."""

    def __init__(self) -> None:
        self.whole, self.warm_up, self.curve = Tally(), Tally(), Curve()
        self.ends: list[tuple[str, float]] = []
        self.marks = AccountSeries()
        self.parts: dict[str, dict[str, Tally]] = {
            name: defaultdict(Tally) for name in ("day", *PARTS)
        }

    def add(self, trade: ClosedTrade) -> None:
        """Count a trade that was closed after those before."""
        if trade.warm_up:
            self.warm_up.add(trade)
            return
        self.whole.add(trade)
        self.curve.add(trade)
        self.ends.append((trade.closed_at, trade.profit or 0.0))
        for name, groups in self.parts.items():
            groups[getattr(trade, name)].add(trade)

    def money(
        self,
        name: str,
        currency: str,
        exposure: OpenNow,
        today: date,
        tags: Mapping[str, TradeTotals],
    ) -> AccountMoney:
        """Return it as it stands on a UTC day."""
        days = self.parts["day"]
        newest = sorted(days, reverse=True)[:DAYS_SHOWN]
        upto, begins = today.isoformat(), (today - timedelta(days=6)).isoformat()
        return AccountMoney(
            account=name,
            currency=currency,
            today=together(days[day] for day in newest if day == upto),
            week=together(days[day] for day in newest if begins <= day <= upto),
            whole=self.whole.result(),
            warm_up=self.warm_up.result(),
            drawdown=self.curve.fall(),
            open=exposure,
            standing=self.marks.standing(),
            by_day=_totals({day: days[day] for day in newest}),
            by_tag=tags,
            **{f"by_{part}": _totals(self.parts[part]) for part in PARTS},
        )


class MoneyBook:
    """Adds up a desk's closed trades; a later look reads only what was closed since.

    Any thread may ask. A trade that became known late, behind others, lets it add up all anew.
    `paper_currency` is that of the account on paper, "" where nobody has told it.
    """

    def __init__(self, database: Database, paper_currency: str = "") -> None:
        self._database = database
        self._paper = paper_currency
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._accounts: dict[str, AccountBook] = defaultdict(AccountBook)
        self._last: tuple[str, int] = ("", 0)
        self._step: int | None = None
        self._marked: dict[str, int] = {}
        self._holders: dict[str, list[AccountMark]] = {}

    def money(self, setups: Setups, now: datetime, *, tags: bool = True) -> Money:
        """Return what the trades came to by now, the desk's time; by tag only with `tags`."""
        database, known = self._database, {item.id: (item, profile) for item, profile in setups}
        with self._lock:
            self._catch_up()
            exposures = open_now(database, known, now)
            tagged = self._by_tag() if tags else {}
            currencies = {
                self._name(bridge, one.at): one.currency
                for bridge, marks in self._holders.items()
                for one in marks
            } | known_currencies(database, self._paper)
            names = (
                {item.route for item, _ in known.values()} | set(self._accounts) | set(exposures)
            )
            accounts = tuple(
                self._accounts[name].money(
                    name,
                    currencies.get(name, ""),
                    exposures.get(name, OpenNow()),
                    now.date(),
                    tagged.get(name, {}),
                )
                for name in sorted(names, key=lambda name: (name != PAPER, name))
            )
        midnight = iso(now.replace(hour=0, minute=0, second=0, microsecond=0))
        closed = self._trades(signal_table.closed_results(database, midnight))
        risks = {item.profile: profile.risk for item, profile in known.values()}
        return Money(
            as_of=now,
            accounts=accounts,
            lost_today=0.0 - math.fsum(one.profit or 0.0 for one in closed),
            caps=tuple(
                DayCap(name, risk.capital * risk.daily_loss_cap_pct / 100.0)
                for name, risk in sorted(risks.items())
            ),
            warm_up_today=math.fsum(one.profit or 0.0 for one in closed if one.warm_up),
        )

    def lines(self, setups: Setups, now: datetime, period: str) -> dict[str, tuple[LinePoint, ...]]:
        """Return the line of each account that has traded over a period (open_positions.PERIODS).

        An open position is a trade too.
        """
        with self._lock:
            self._catch_up()
            then = OpenThen(self._database, {item.id: (item, profile) for item, profile in setups})
            books = {name: book.ends for name, book in self._accounts.items() if book.ends}
            opened, lines = then.opened(), {}
            for name in {**books, **opened}:
                ends = books.get(name, [])
                ended = ends[0][0] if ends else ""
                trade = signal_table.closed_at(self._database, ended) if ends else None
                known = (trade.opened_at if trade else "", opened.get(name), ended)
                first = min(moment for moment in known if moment)
                worth = {at: then.worth(at).get(name, 0.0) for at in moments(period, now, first)}
                lines[name] = line(ends, worth)
        return lines

    def _by_tag(self) -> dict[str, dict[str, TradeTotals]]:
        """Return by account what the trades came to that a person gave each tag."""
        tallies: dict[str, dict[str, Tally]] = defaultdict(lambda: defaultdict(Tally))
        rows = note_table.tagged_results(self._database)
        trades = self._trades(row[1:] for row in rows)
        for (tag, *_), trade in zip(rows, trades, strict=True):
            if not trade.warm_up:
                tallies[self._name(trade.bridge, trade.closed_at)][str(tag)].add(trade)
        return {account: _totals(dict(sorted(tags.items()))) for account, tags in tallies.items()}

    def _changes(self, upto: int) -> dict[str, list[AccountMark]]:
        """Return by bridge where another account came behind it since the last look."""
        database = self._database
        changes = {}
        for bridge in account_table.marked_bridges(database):
            last = self._marked.get(bridge, 0)
            rows = account_table.account_holders(database, bridge, last, upto)
            changes[bridge] = [mark for mark in map(AccountMark._make, rows) if mark.id != last]
        return changes

    def _name(self, bridge: str, at: str) -> str:
        """Return what the account is called that stood behind a bridge at a moment (ISO)."""
        following = [one.at for one in self._holders.get(bridge, ())[1:] if at < one.at]
        return f"{bridge}, until {following[0]}" if following else bridge

    def _catch_up(self) -> None:
        """Read what is new: up to the newest mark, so that the trades behind it are there."""
        database = self._database
        marked, upto = account_table.newest_mark(database), signal_table.newest_step(database)
        changes, rows = self._changes(marked), self._ended(upto)
        # Another account came behind a bridge whose trades were told under one name.
        swapped = any(len(new) > (bridge not in self._holders) for bridge, new in changes.items())
        if rows is None or swapped:
            self._begin()
            changes, rows = self._changes(marked), signal_table.closed_results(database)
        self._holders |= {bridge: new for bridge, new in changes.items() if new}
        for trade in self._trades(rows):
            self._accounts[self._name(trade.bridge, trade.closed_at)].add(trade)
        if rows:
            self._last = _place(rows[-1])
        self._step = upto
        for bridge in self._holders:
            last = self._marked.get(bridge, 0)
            for row in account_table.account_marks(database, bridge, last, marked):
                mark = AccountMark._make(row)
                book = self._accounts[self._name(bridge, mark.at)]
                book.marks.add(mark, book.ends)
                self._marked[bridge] = mark.id

    def _ended(self, upto: int) -> list[tuple[Any, ...]] | None:
        """Return the trades that ended since the last look; None where all must be added anew."""
        if self._step is None:
            return None
        rows = sorted(signal_table.closed_between(self._database, self._step, upto), key=_place)
        return None if rows and _place(rows[0]) <= self._last else rows

    def _trades(self, rows: Iterable[Sequence[Any]]) -> list[ClosedTrade]:
        """Read stored results; what is no text or no number counts as not told."""
        # asked anew: a warm-up that still runs has another end by now
        warm_ups = WarmUps(self._database)
        trades = []
        for closed_at, _, *words, profit, r in rows:
            texts = (word if isinstance(word, str) else "" for word in words)
            instance, timeframe, bar_time, symbol, side, reason, bridge = texts
            trades.append(
                ClosedTrade(
                    closed_at=str(closed_at),
                    instance=instance,
                    symbol=symbol,
                    side=side,
                    reason=reason or "unknown",
                    bridge=bridge or PAPER,
                    profit=_number(profit),
                    r=_number(r),
                    warm_up=warm_ups.made(instance, timeframe, bar_time),
                )
            )
        return trades


def _totals(tallies: Mapping[str, Tally]) -> dict[str, TradeTotals]:
    return {label: tally.result() for label, tally in tallies.items()}


def _place(row: Sequence[Any]) -> tuple[str, int]:
    """Return where a trade lies in the order of the ends."""
    return str(row[0]), int(row[1])


def _number(value: object) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # False for NaN; a whole number of any size is compared without an overflow.
    return float(value) if number and abs(value) <= MOST else None  # type: ignore[arg-type]


def known_currencies(database: Database, paper: str) -> dict[str, str]:
    """Return the currency of each account of now, by bridge and channel; `paper` is that on paper.

    An account of which nobody has told it is left out.
    """
    return {PAPER: paper, **currencies_of(database.bridges())}


def currencies_of(bridges: Iterable[BridgeRow]) -> dict[str, str]:
    """Return what each bridge told of its account's currency, by the bridge's name."""
    currencies = {}
    for row in bridges:
        name = row.account.get("currency")
        if isinstance(name, str) and name.isascii() and name.isalpha() and len(name) == 3:
            currencies[row.name] = name.upper()
    return currencies
