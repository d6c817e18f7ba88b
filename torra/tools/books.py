"""Tools that read the desk's books: exposure, results, trades, effect of the agents, cost, radar.

The figures are those of the pages. Accounts are numbered: a broker's account number is no fact, and
neither is a person's note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Final

from pydantic import Field

from torra.clock import iso
from torra.desk import costs as cost_report
from torra.money.book import Money, MoneyBook
from torra.money.open_positions import spec_of
from torra.replay.changed import listing, words
from torra.store import bars as bar_table
from torra.store import radar_runs
from torra.store.connection import RowDict
from torra.store.journal import json_object
from torra.store.trade import signals as signal_table
from torra.tools.codes import ToolCode
from torra.tools.contract import Fact, ToolArgs, ToolError, code_of, fact
from torra.tools.desk_reader import DeskReader
from torra.tools.market import Name
from torra.verdict.risk_engine import Position
from torra.verdict.trade_outcome import value_at, value_at_bid

BUCKETS: Final = ("act", "exit_radar", "watch")


class NoArgs(ToolArgs):
    """No arguments."""


class ListArgs(ToolArgs):
    """How many, the newest first, and of which symbol."""

    symbol: Name | None = Field(None, description="of all symbols by default")
    limit: int = Field(10, ge=1, le=20)


def _money(reader: DeskReader) -> Money:
    setups = [(item, reader.profiles[item.id]) for item in reader.instances]
    book = MoneyBook(reader.database, reader.settings.paper_currency)
    return book.money(setups, reader.as_of, tags=False)


def _figure(
    reader: DeskReader, fact_id: str, value: float | str | None, name: str, unit: str = ""
) -> Fact:
    return fact(fact_id, value, name, as_of=iso(reader.as_of), source="books", unit=unit)


def exposure(reader: DeskReader, args: NoArgs) -> Iterator[Fact]:
    """Give what is open: by account its result and its risk, by position R now and at its stop."""
    del args
    money = _money(reader)
    for number, account in enumerate(money.accounts):
        book, open_ = f"book.{number}", account.open
        for key, value, name, unit in (
            ("positions", open_.positions, "the number of positions", ""),
            ("orders", open_.orders, "the number of openings that are out", ""),
            ("result", open_.result, "the result of closing all", account.currency),
            ("risk", open_.risk, "the loss if every stop fills", account.currency),
            ("risk_r", open_.risk_r, "the loss if every stop fills", "R"),
        ):
            yield _figure(reader, f"{book}.{key}", value, f"{name} of account {number}", unit)
    for position in reader.database.positions():
        yield from _position(reader, position)
    yield _figure(reader, "book.lost_today", money.lost_today, "the loss of the day")
    for cap in money.caps:
        name = f"the day's loss at which profile {cap.profile} opens nothing more"
        yield _figure(reader, f"book.cap.{cap.profile}", cap.cap, name)


def _position(reader: DeskReader, position: Position) -> Iterator[Fact]:
    """Yield the side of a position, and its R now and at its stop where its terms are known."""
    key, what = f"book.{position.instance}", f"the {position.side} of {position.instance}"
    yield _figure(reader, f"{key}.lots", position.lots, f"the size of {what}", "lots")
    profile = reader.profiles.get(position.instance)
    spec = spec_of(profile, position.symbol) if profile else None
    if profile is None or spec is None:
        return
    item = reader.instance(position.instance)
    price = bar_table.newest_close(reader.database, item.id, item.timeframes, reader.as_of)
    if price is not None:
        now = value_at_bid(position, price, spec).r
        yield _figure(reader, f"{key}.r", now, f"the result now of {what}", "R")
    at_stop = value_at(position, position.stop, spec).r
    yield _figure(reader, f"{key}.stop_r", at_stop, f"the result at the stop of {what}", "R")


def money(reader: DeskReader, args: NoArgs) -> Iterator[Fact]:
    """Give the results of the closed trades by account: today, this week, and in all."""
    del args
    for number, account in enumerate(_money(reader).accounts):
        for period, when in (("today", "today"), ("week", "of the week"), ("whole", "in all")):
            totals = asdict(getattr(account, period))
            for key, what, unit in (
                ("trades", "the number of closed trades", ""),
                ("profit", "the profit", account.currency),
                ("r", "the sum of results", "R"),
                ("mean_r", "the mean result", "R"),
                ("win_rate", "the win rate", "of 1"),
            ):
                name = f"{what} {when} of account {number}"
                yield _figure(reader, f"money.{number}.{period}.{key}", totals[key], name, unit)
        fall = account.drawdown.money
        name = f"the deepest fall of the results of account {number}"
        yield _figure(reader, f"money.{number}.drawdown", fall, name, account.currency)


def trades(reader: DeskReader, args: ListArgs) -> Iterator[Fact]:
    """Give the newest closed trades, each with its result in R."""
    name = None if args.symbol is None else reader.instance(args.symbol).id
    rows = signal_table.closed_trades(reader.database, name, args.limit, as_of=reader.as_of)
    for row in rows:
        side = "LONG" if row.side == "BUY" else "SHORT"
        yield fact(
            f"money.trade.{row.sid}",
            row.r_multiple,
            f"the result of the {side} of {row.instance} ({code_of(row.close_reason)})",
            as_of=str(row.closed_at),
            source="books",
            unit="R",
        )


def changed_by_agents(reader: DeskReader, args: ListArgs) -> Iterator[Fact]:
    """Give what agents changed: how often, and what the newest changes came to in money."""
    name = None if args.symbol is None else reader.instance(args.symbol).id
    page = listing.listed(reader.database, reader.settings, instance=name, limit=args.limit)
    yield _figure(
        reader, "changed.verdicts", page.verdicts, "the number of verdicts that agents changed"
    )
    yield _figure(reader, "changed.ticks", page.of, "the number of stored ticks")
    for tick in page.ticks:
        yield fact(
            f"changed.{tick.key}",
            tick.done.came_to.r,
            f"what {tick.instance} {tick.timeframe} came to with agents",
            as_of=tick.close_time,
            source="books",
            unit="R",
            sentence=f"{tick.instance} {tick.timeframe} at {tick.close_time}: without agents "
            f"{words.did(tick.l1)} ({words.came(tick.l1.came_to)}), with them "
            f"{words.did(tick.done)} ({words.came(tick.done.came_to)}).",
        )


def costs(reader: DeskReader, args: NoArgs) -> Iterator[Fact]:
    """Give what models have cost, and what is left of each profile's hour."""
    del args
    names = [item.profile for item in reader.instances]
    report = cost_report.report(reader.home, reader.database, names, reader.now)
    for period in ("last_hour", "today", "last_24_hours"):
        name = f"the cost of models within {period.replace('_', ' ')}"
        yield _figure(reader, f"cost.{period}", report[period]["usd"], name, "USD")
    for row in report["profiles"]:
        profile = row["profile"]
        for key, name in (
            ("spent_usd", "what was spent within an hour"),
            ("ceiling_usd", "the ceiling of an hour"),
            ("left_usd", "what is left of the hour"),
            ("degradation_level", "the agent tier"),
        ):
            unit = "USD" if key.endswith("usd") else ""
            named = f"{name} for profile {profile}"
            yield _figure(reader, f"cost.{profile}.{key}", row.get(key), named, unit)


def latest_radar(reader: DeskReader, args: NoArgs) -> Iterable[Fact] | ToolError:
    """Give the newest scan of the radar: the bucket and the reason of each row."""
    del args
    stored = radar_runs.newest_run(reader.database)
    if stored is None:
        return ToolCode.NO_RUN.error()
    return _radar(json_object(stored["document"]))


def _radar(run: RowDict) -> Iterator[Fact]:
    for bucket in BUCKETS:
        for row in run[bucket]:
            reasons = ", ".join(row["codes"])
            yield fact(
                f"radar.{bucket}.{row['stream']}",
                row["code"],
                f"the first reason of {row['stream']} in {bucket.replace('_', ' ')}",
                as_of=row["as_of"],
                source="radar",
                sentence=f"{row['stream']} is in {bucket.replace('_', ' ')}: {reasons}.",
            )
    for key, count in run["coverage"].items():
        if isinstance(count, int):
            name = f"the number of rows of the radar: {key.replace('_', ' ')}"
            yield fact(f"radar.{key}", count, name, as_of=run["as_of"], source="radar")
