"""What a desk's trades came to so far, and what its open positions may still win or lose.

Torra's own result, from the fills of its signals: realised where a trade is closed, open at the
newest stored close. It is not the account's equity: other trades, deposits and the cost of models
are not in it. Amounts of two accounts are never added up, for nobody has said what one currency is
worth in the other.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from torra.clock import duration, iso, parse
from torra.config import Instance, Profile, SymbolSpec
from torra.errors import ConfigError
from torra.money.results import ClosedTrade, Curve, Fall, Result, Tally, together
from torra.verdict.risk_engine import TARGET_R, Position

if TYPE_CHECKING:
    from instance_database import Database

PARTS: Final = ("symbol", "side", "reason")
"""What results are told by, besides the day: fields of a trade."""

PERIODS: Final = ("today", "week", "whole", "warm_up")

MOST: Final = 1e15
"""No account has won or lost more, in any currency: what says so is no number."""

DAYS_SHOWN: Final = 30
"""Newest days with a closed trade that are told one by one."""

PAPER: Final = "paper"


class Setup(Protocol):
    """An instance as a desk runs it, with its profile."""

    @property
    def instance(self) -> Instance:
        """The instance of desk.json."""
        ...

    @property
    def profile(self) -> Profile:
        """The profile that it runs with."""
        ...


@dataclass(frozen=True, slots=True)
class OpenNow:
    """The open positions of one account, at the newest stored close.

    `known` of the `positions` have known terms, `valued` have a price besides. `result` is what
    closing the valued ones would bring. `risk` is what the known ones would lose against their
    entries if every stop filled at its price, 0 where a stop already lies beyond the entry, and
    `risk_r` the same in planned R. None where there is none to add up.
    """

    positions: int = 0
    valued: int = 0
    known: int = 0
    result: float | None = None
    risk: float | None = None
    risk_r: float | None = None


@dataclass(frozen=True, slots=True)
class DayCap:
    """The loss of a UTC day at which a profile opens nothing more, in its capital's currency."""

    profile: str
    cap: float


@dataclass(frozen=True, slots=True)
class AccountMoney:
    """One account: a broker's by bridge and channel, or the one on paper.

    `currency` is what the broker said last, "" where nobody has told it. `warm_up` are trades on
    bars from before the desk began; nothing else here counts them.
    """

    account: str
    currency: str
    today: Result
    week: Result
    whole: Result
    warm_up: Result
    drawdown: Fall
    open: OpenNow
    by_day: Mapping[str, Result]
    by_symbol: Mapping[str, Result]
    by_side: Mapping[str, Result]
    by_reason: Mapping[str, Result]

    def results_as_json(self) -> dict[str, Any]:
        """Return the results for programs, by the name of their field."""
        plain = {name: getattr(self, name).as_json() for name in PERIODS}
        groups = {
            name: {label: one.as_json() for label, one in getattr(self, name).items()}
            for name in ("by_day", *(f"by_{part}" for part in PARTS))
        }
        return {**plain, **groups}


@dataclass(frozen=True, slots=True)
class Money:
    """All accounts of a desk at one moment of its time; `day` is the UTC day called today.

    `lost_today` is what the desk has lost on that day as the risk checks count it: all accounts and
    the warm-up's trades together, a gain negative.
    """

    as_of: datetime
    accounts: tuple[AccountMoney, ...]
    lost_today: float
    caps: tuple[DayCap, ...]

    @property
    def day(self) -> str:
        """The UTC day, as 2026-05-01."""
        return iso(self.as_of)[:10]

    def as_json(self) -> dict[str, Any]:
        """Return it for programs: amounts in the currency of their account."""
        told = asdict(self)
        told["accounts"] = [
            {**row, **one.results_as_json()}
            for row, one in zip(told["accounts"], self.accounts, strict=True)
        ]
        return {**told, "as_of": iso(self.as_of), "day": self.day}


class AccountBook:
    """Everything of one account that was added up so far."""

    def __init__(self) -> None:
        self.whole, self.warm_up, self.curve = Tally(), Tally(), Curve()
        self.days: dict[str, Tally] = {}
        self.parts: dict[str, dict[str, Tally]] = {name: {} for name in PARTS}

    def add(self, trade: ClosedTrade) -> None:
        """Count a trade that was closed after those before."""
        if trade.warm_up:
            self.warm_up.add(trade)
            return
        self.whole.add(trade)
        self.curve.add(trade)
        self.days.setdefault(trade.day, Tally()).add(trade)
        for name, groups in self.parts.items():
            groups.setdefault(getattr(trade, name), Tally()).add(trade)

    def told(self, name: str, currency: str, held: OpenNow, today: date) -> AccountMoney:
        """Return it as it stands on a UTC day."""
        newest = sorted(self.days, reverse=True)[:DAYS_SHOWN]
        begins = (today - timedelta(days=6)).isoformat()
        upto = today.isoformat()
        week = [day for day in newest if begins <= day <= upto]
        by_part = {
            part: {label: tally.result() for label, tally in groups.items()}
            for part, groups in self.parts.items()
        }
        return AccountMoney(
            account=name,
            currency=currency,
            today=together(self.days[day] for day in week if day == upto),
            week=together(self.days[day] for day in week),
            whole=self.whole.result(),
            warm_up=self.warm_up.result(),
            drawdown=self.curve.fall(),
            open=held,
            by_day={day: self.days[day].result() for day in newest},
            by_symbol=by_part["symbol"],
            by_side=by_part["side"],
            by_reason=by_part["reason"],
        )


class MoneyBook:
    """Adds up a desk's closed trades; a later look reads only what was closed since.

    Any thread may ask. A trade that became known late, behind others, lets it add up all anew.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._accounts: dict[str, AccountBook] = {}
        self._last: tuple[str, int] = ("", 0)
        self._step: int | None = None

    def money(self, setups: Mapping[str, Setup], now: datetime) -> Money:
        """Return what the trades came to; `setups` are the desk's instances by name."""
        database = self._database
        with self._lock:
            self._catch_up()
            held: dict[str, list[OpenOne]] = {}
            for one in database.positions():
                opening = database.signal(one.signal_id) or {}
                if opening.get("price") is not None:
                    # where it was opened, whatever desk.json says of its instance now
                    where = _text(opening.get("bridge")) or PAPER
                    held.setdefault(where, []).append(_open_one(database, setups, one, now))
            currencies = _currencies(database.bridges())
            names = (
                {item.instance.route for item in setups.values()} | set(self._accounts) | set(held)
            )
            accounts = [
                self._accounts.setdefault(name, AccountBook()).told(
                    name, currencies.get(name, ""), _open(held.get(name, [])), now.date()
                )
                for name in sorted(names, key=lambda name: (name != PAPER, name))
            ]
        midnight = iso(now.replace(hour=0, minute=0, second=0, microsecond=0))
        lost = -math.fsum(_number(row[9]) or 0.0 for row in database.closed_results(midnight))
        return Money(now, tuple(accounts), 0.0 + lost, tuple(_caps(setups)))

    def _catch_up(self) -> None:
        database = self._database
        upto = database.newest_step()
        rows: list[tuple[Any, ...]] | None = None
        if self._step is not None:
            rows = sorted(database.closed_between(self._step, upto), key=_place)
            if rows and _place(rows[0]) <= self._last:
                rows = None
        if rows is None:
            self._begin()
            rows = database.closed_results()
        # asked anew: a warm-up that still runs has another end by now
        begins = _Begins(database)
        for row in rows:
            trade = _trade(row, begins)
            self._accounts.setdefault(trade.bridge, AccountBook()).add(trade)
            self._last = _place(row)
        self._step = upto


def _place(row: Sequence[Any]) -> tuple[str, int]:
    """Return where a trade lies in the order of the ends."""
    return str(row[0]), int(row[1])


class _Begins:
    """From which bar on the ticks of a stream are the desk's own; those before are its warm-up."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last: dict[tuple[str, str], str] = {}

    def before(self, instance: str, timeframe: str, bar_time: str) -> bool:
        """Return whether a bar was decided about in warm-up."""
        key = instance, timeframe
        if key not in self._last:
            self._last[key] = self._of(*key)
        return bool(bar_time) and bar_time <= self._last[key]

    def _of(self, instance: str, timeframe: str) -> str:
        try:
            end = self._database.warm_up_end(instance, timeframe)
            return "" if end is None else iso(end - duration(timeframe))
        except (KeyError, ValueError):
            return ""


def _trade(row: Sequence[Any], begins: _Begins) -> ClosedTrade:
    """Read a stored result; what is no text or no number counts as not told."""
    closed_at, _, *words, profit, r = row
    instance, timeframe, bar_time, symbol, side, reason, bridge = map(_text, words)
    return ClosedTrade(
        closed_at=str(closed_at),
        instance=instance,
        symbol=symbol,
        side=side,
        reason=reason or "unknown",
        bridge=bridge or PAPER,
        profit=_number(profit),
        r=_number(r),
        warm_up=begins.before(instance, timeframe, bar_time),
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if abs(value) <= MOST else None
    except OverflowError:
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _currencies(bridges: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return what each bridge told of its account's currency, by the bridge's name."""
    found = {}
    for row in bridges:
        try:
            told = json.loads(row["facts"])["currency"]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if isinstance(told, str) and told.isascii() and told.isalpha() and len(told) == 3:
            found[str(row["name"])] = told.upper()
    return found


# --- open positions -------------------------------------------------------------------------------


class OpenOne(NamedTuple):
    """One open position: what closing it would bring, its loss at the stop, and that in planned R.

    None where its terms are not known, for `gain` also where there is no price.
    """

    gain: float | None
    risk: float | None
    risk_r: float | None


def _open_one(
    database: Database, setups: Mapping[str, Setup], held: Position, now: datetime
) -> OpenOne:
    setup = setups.get(held.instance)
    spec = _spec(setup) if setup else None
    if setup is None or spec is None:
        return OpenOne(None, None, None)
    away = held.entry - held.stop if held.side == "LONG" else held.stop - held.entry
    distance, whole = max(0.0, away), planned(held)
    price = _newest_close(database, setup.instance, now)
    gain = None if price is None else worth_of(leaving(held, price, spec)[1], held.lots, spec)
    return OpenOne(gain, worth_of(distance, held.lots, spec), distance / whole if whole else None)


def _open(held: Sequence[OpenOne]) -> OpenNow:
    gains = [one.gain for one in held if one.gain is not None]
    risks = [one.risk for one in held if one.risk is not None]
    return OpenNow(
        positions=len(held),
        valued=len(gains),
        known=len(risks),
        result=math.fsum(gains) if gains else None,
        risk=math.fsum(risks) if risks else None,
        risk_r=math.fsum(one.risk_r or 0.0 for one in held) if risks else None,
    )


def planned(held: Position) -> float:
    """Return the distance that is one R of a position, by its stop and target, in price."""
    return abs(held.target - held.stop) / (1 + TARGET_R)


def leaving(held: Position, price: float, spec: SymbolSpec) -> tuple[float, float]:
    """Return at which price a position would be closed now, and the gain by then in price.

    `price` is a bid: a long leaves there, a short pays the spread.
    """
    leave = price if held.side == "LONG" else price + spec.spread
    return leave, leave - held.entry if held.side == "LONG" else held.entry - leave


def worth_of(distance: float, lots: float, spec: SymbolSpec) -> float:
    """Return what a distance in price is worth for so many lots, in account currency."""
    return distance / spec.tick_size * spec.tick_value * lots


def _spec(setup: Setup) -> SymbolSpec | None:
    try:
        return setup.profile.symbol(setup.instance.symbol)
    except ConfigError:
        return None


def _newest_close(database: Database, instance: Instance, now: datetime) -> float | None:
    """Return the close of the bar that ended last, of any of an instance's timeframes."""
    found = [
        (parse(told[0]) + duration(timeframe), told[1])
        for timeframe in instance.timeframes
        if (told := database.last_close(instance.id, timeframe, now)) is not None
    ]
    return max(found)[1] if found else None


def _caps(setups: Mapping[str, Setup]) -> Iterator[DayCap]:
    """Yield the daily loss cap of each profile, as the risk checks count it."""
    profiles = {setup.instance.profile: setup.profile for setup in setups.values()}
    for name in sorted(profiles):
        risk = profiles[name].risk
        yield DayCap(name, risk.capital * risk.daily_loss_cap_pct / 100.0)
