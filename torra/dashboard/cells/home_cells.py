"""The figures of Home besides those of the symbols: money, risk, agents, models, what waits.

Then of each symbol with a small chart: price and change, candles with the trades on them, how far
the consensus is from a verdict. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from torra import clock
from torra.dashboard.cells.common import (
    Cells,
    dash,
    digits_of,
    origin_cell,
    showing,
    words,
    zone_cells,
)
from torra.dashboard.record import reasoning
from torra.dashboard.view.desk_values import OverviewSymbol
from torra.evaluation.wording import count
from torra.exhibits import figures, glances
from torra.exhibits import money as money_words
from torra.exhibits.figures import Cell
from torra.exhibits.glances import GlanceCandle
from torra.money.book import AccountMoney, DayCap, Money
from torra.money.open_positions import LinePoint
from torra.words.badge import Badge

ACCOUNTS: Final = 3
"""Accounts whose money Home shows; of more the page Trades tells."""

WAITING: Final = 3
"""Proposals that Home shows; of more the page Approvals tells."""

ROOM: Final = 24.0
"""Height of an amount beside the line of money, of glances.HIGH."""

NO_LINE: Final = glances.MoneyPaths("", "", 0.0, 0.0, 0.0, 0.0, 0.0)

PERIODS: Final[Mapping[str, str]] = {"today": "24 hours", "week": "7 days", "all": "All"}
"""Periods of the line of money, and their words."""


@dataclass(frozen=True, slots=True)
class PendingProposal:
    """A proposal that waits for a person, as Home shows it."""

    side: Badge
    what: str
    levels: str
    seconds: float
    address: str


# --- money ----------------------------------------------------------------------------------------


def accounts_shown(found: Money) -> list[AccountMoney]:
    """Return the accounts whose money Home shows: those that have traded, else the first one."""
    traded = [one for one in found.accounts if one.whole.trades or one.open.positions]
    return traded[:ACCOUNTS] or list(found.accounts[:1])


def money(found: Money, lines: Mapping[str, Sequence[LinePoint]]) -> Cells:
    """Return the cells of the accounts that are shown, m0 and following."""
    cells: Cells = {}
    for place, account in enumerate(accounts_shown(found)):
        cells |= _account(f"m{place}", account, lines.get(account.account, ()))
    return cells


def _account(key: str, account: AccountMoney, points: Sequence[LinePoint]) -> Cells:
    today, held = account.today, account.open
    closed = today.profit if today.trades else 0.0
    equity = closed + (held.result or 0.0) - held.warm_up
    unknown = " + ?" if held.valued < held.positions else ""
    return {
        f"{key}.some": showing(account.whole.trades or held.positions),
        f"{key}.today": words(
            money_words.amount(equity, account) + unknown,
            figures.tone(equity, 2),
            money_words.NOT_COUNTED,
        ),
        f"{key}.done": words(
            f"{money_words.amount(closed, account)} closed", figures.tone(closed, 2)
        )
        | showing(held.positions),
        f"{key}.open": words(_open(account), figures.tone(held.result, 2))
        | showing(held.positions),
        f"{key}.closed": words(_closed(account)),
        f"{key}.whole": words(_whole(account)),
        **_line(key, account, points),
    }


def _line(key: str, account: AccountMoney, points: Sequence[LinePoint]) -> Cells:
    """Return the line of a period: from 0 at its beginning, with the amount at its end."""
    first = next((point.whole for point in points if point.whole is not None), 0.0)
    values = [None if point.whole is None else point.whole - first for point in points]
    drawn = glances.money_line(values) or NO_LINE

    def beside(value: float, place: float) -> Cell:
        near = abs(place - drawn.end) < ROOM
        return words("" if near else money_words.amount(value, account))

    zero, height = f"M0 {drawn.zero:g}H{glances.WIDE:g}", 100 * drawn.end / glances.HIGH
    paths = {"line": drawn.line, "fall": drawn.fall, "zero": zero}
    return {
        f"{key}.drawn": showing(drawn.line),
        **{f"{key}.{name}": words("") | {"set": {"d": path}} for name, path in paths.items()},
        f"{key}.high": beside(drawn.high, 0.0),
        f"{key}.low": beside(drawn.low, glances.HIGH),
        f"{key}.end": words(money_words.amount(drawn.last, account), figures.tone(drawn.last, 2))
        | {"set": {"y": f"{height:.1f}%"}},
    }


def _whole(account: AccountMoney) -> str:
    whole, before = account.whole, account.warm_up
    if whole.trades:
        return (
            f"All: {money_words.amount(whole.profit, account)} closed, {whole.won:,} of "
            f"{count(whole.trades, 'trade')} won."
        )
    if before.trades:
        return (
            f"No trade is closed since the warm-up, whose {count(before.trades, 'trade')} came to "
            f"{money_words.amount(before.profit, account)}."
        )
    return "No trade is closed yet."


def _closed(account: AccountMoney) -> str:
    today, week = account.today, account.week
    if not account.whole.trades:
        return ""
    if not week.trades:
        return "no trade was closed in the last 7 days"
    told = f"{count(today.trades, 'trade')} closed today; " if today.trades else ""
    return f"{told}7 days: {money_words.amount(week.profit, account)}"


def _open(account: AccountMoney) -> str:
    held = account.open
    if held.result is None:
        return f"{count(held.positions, 'position')} open, of no known price"
    told = (
        f"{money_words.amount(held.result, account)} open, in {count(held.positions, 'position')}"
    )
    of_warm_up = f"; {money_words.amount(held.warm_up, account)} of the warm-up is not counted"
    return told + (of_warm_up if held.warm_up else "")


def risk(found: Money) -> Cells:
    """Return what positions and orders can lose, and how much room the day's loss cap leaves."""
    held = [one for one in found.accounts if one.open.positions or one.open.orders]
    told = "; ".join(money_words.amount(one.open.risk, one, sign=False) for one in held)
    r = sum(one.open.risk_r or 0.0 for one in held)
    orders = sum(one.open.orders for one in held)
    note = f"{figures.plain(r)} R, if every stop is hit at its price"
    if orders:
        note += f"; {count(orders, 'order')} out included"
    cap = min(found.caps, key=lambda one: one.cap, default=None)
    return {
        "risk.now": words(told or "Nothing"),
        "risk.r": words(note if held else ""),
        **_room(found, cap),
    }


def _room(found: Money, cap: DayCap | None) -> Cells:
    if cap is None:
        return {"risk.room": words("no profile has a cap"), "risk.meter": _meter(0.0)}
    lost = max(0.0, found.lost_today)
    currencies = {one.currency for one in found.accounts}
    currency = f" {currencies.pop()}" if len(currencies) == 1 and "" not in currencies else ""
    left = max(0.0, cap.cap - lost)
    told = (
        f"Day's loss cap: {figures.plain(left)} of {figures.plain(cap.cap)}{currency} left."
        if left
        else f"The day's loss cap of {figures.plain(cap.cap)}{currency} is reached: nothing opens "
        "until midnight UTC."
    )
    if found.warm_up_today:  # no result shows it
        told += f" The warm-up's {figures.format_signed(found.warm_up_today, 2)} of today counts."
    return {
        "risk.room": words(told, "" if left else "alert"),
        "risk.meter": _meter(lost / cap.cap if cap.cap else 1.0),
    }


def _meter(share: float) -> Cell:
    return words("") | {"set": {"width": round(min(1.0, share) * 100, 2)}}


# --- agents ---------------------------------------------------------------------------------------


def agents_worth(changed: int, every: int, worth: str = "") -> str:
    """Return what the verdicts that agents changed were `worth`, as far as it is known."""
    if worth:
        # its first sentence: the page behind has the rest
        return f"{figures.sanitize(worth, 300).partition('. ')[0].removesuffix('.')}."
    if not every:
        return "There is no verdict yet."
    return "" if changed else "They have agreed with the bars so far."


NOTHING_DONE: Final = re.compile(
    r"Does nothing in \S+ on \S+: the consensus [^;]*; (.+)", re.DOTALL
)
"""The sentence of a tick that held because no threshold was reached."""

KEPT: Final = re.compile(
    r"(Keeps the \w+) in \S+ on \S+(, [^:]*)?: (?:the )?consensus [^;]*; (.+)", re.DOTALL
)
"""The sentence of a tick that kept its position: the tile has symbol, verdict and distance."""

PULLS: Final = re.compile(r"; (\w+) of [^;]* UTC \([^)]*\) pulls the other way")

ALIKE: Final = re.compile(r", and without (?:agents|them) it would hold too")


# --- a symbol -------------------------------------------------------------------------------------


def tile(key: str, instance: OverviewSymbol) -> Cells:
    """Return price, change and the small chart of a symbol, and its distance to a verdict."""
    digits = digits_of(instance)
    price, before = instance.price, instance.day_close
    change = price / before - 1.0 if price is not None and before else None
    drawn = _drawn(instance)
    paths = {name: getattr(drawn, name) for name in ("up", "down", "bought", "sold", "left")}
    cells: Cells = {
        f"{key}.price": words(figures.plain(price, digits)) if price is not None else dash(),
        f"{key}.change": words(
            "" if change is None else f"{figures.format_signed(100 * change, 2)} %",
            figures.tone(change, 4),
            "since the last close of the UTC day before",
        )
        | showing(change is not None),
        f"{key}.near": words(near(instance)),
        **zone_cells(f"{key}.consensus", instance),
        f"{key}.origin": origin_cell(instance),
        **{f"{key}.{name}": words("") | {"set": {"d": path}} for name, path in paths.items()},
    }
    if instance.held:
        held = instance.held.position
        stop, target = figures.plain(held.stop, digits), figures.plain(held.target, digits)
        cells[f"{key}.levels"] = words(f"stop {stop}, target {target}")
    return cells


def brief(sentence: str) -> str:
    """Return a tick's sentence without what its tile shows already: symbol, verdict, distance."""
    sentence = PULLS.sub(r"; \1 pulls the other way", sentence)
    if kept := KEPT.match(sentence):
        return f"{kept[1]}{kept[2] or ''}; {kept[3]}"
    found = NOTHING_DONE.match(sentence)
    if found is None:
        return sentence
    rest = ALIKE.sub("; without them the same", found[1])
    return rest[:1].upper() + rest[1:]


def near(instance: OverviewSymbol) -> str:
    """Return in a few words how far the consensus is from a verdict."""
    found = reasoning.distance(instance.latest) if instance.latest else None
    if found is None:
        return ""
    side, far = found.side.lower(), figures.plain(abs(found.gap), 2)
    return f"{far} short of {side}" if found.gap > 0 else f"past {side} by {far}"


def _drawn(instance: OverviewSymbol) -> glances.CandlePaths:
    bars: list[GlanceCandle | None] = []
    for bar in instance.bars:
        prices = bar[1:5]
        known = [price for price in prices if price is not None]
        bars.append(GlanceCandle(*known) if len(known) == len(prices) else None)
    frame = min(instance.timeframes, key=clock.duration, default="")
    places = {bar.time: place for place, bar in enumerate(instance.bars)}

    def at(side: str, what: str) -> Iterable[int]:
        for mark in instance.marks:
            if mark.what != what or (side and mark.side != side):
                continue
            found = places.get(_bar_of(mark.at, frame))
            if found is not None:
                yield found

    return glances.candles(bars, at("BUY", "open"), at("SELL", "open"), at("", "close"))


def _bar_of(at: str, frame: str) -> str:
    """Return the opening time of the bar in which a moment lies; "" where that is not known."""
    try:
        return clock.iso(clock.floor(clock.parse(at), frame))
    except (ValueError, OverflowError):
        return ""
