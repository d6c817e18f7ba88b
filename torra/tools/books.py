"""Tools that read the desk's books: exposure, results, trades, effect of the agents, cost, radar.

The figures are those of the pages. Accounts are numbered: a broker's account number is no fact, and
neither is a person's note.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from torra.clock import iso
from torra.desk import costs as cost_report
from torra.money.book import Money, MoneyBook
from torra.replay.changed import listing
from torra.store import radar_runs
from torra.store.journal import json_object
from torra.store.trade import signals as signal_table
from torra.tools.contract import Fact, Given, code_of, facts_of, refusal
from torra.tools.desk_reader import DeskReader
from torra.verdict.risk_engine import Position
from torra.verdict.trade_outcome import value_at, value_at_bid
from torra.words.radar import BUCKET_WORDS

BOOKS: Final = "books"
RADAR: Final = "radar"


def _money(reader: DeskReader) -> Money:
    book = reader.book or MoneyBook(reader.database, reader.settings.paper_currency)
    return book.money(reader.setups, reader.as_of, tags=False)


def exposure(reader: DeskReader, _: Any) -> Iterator[Fact]:
    """Yield accounts, positions, and the loss of the day."""
    money, as_of = _money(reader), iso(reader.as_of)
    for n, account in enumerate(money.accounts):
        yield from facts_of("account", account, f"book.{n}.", as_of, BOOKS, n=n)
    for one in reader.database.positions():
        values = _values(reader, one)
        yield from facts_of("position", values, f"book.{one.instance}.", as_of, BOOKS)
    for table in ("day", "warm_up") if money.warm_up_today else ("day",):
        yield from facts_of(table, money, "book.", as_of, BOOKS)
    for cap in money.caps:
        yield from facts_of(
            "cap", cap, f"book.{cap.profile}.", as_of, BOOKS, currency=money.currency
        )


def _values(reader: DeskReader, one: Position) -> dict[str, Any]:
    """Return a position, with its R now and at its stop where its terms are known."""
    spec, values = reader.spec(one), asdict(one)
    if spec is not None:
        price = reader.bid(one)
        values["stop_r"] = value_at(one, one.stop, spec).r
        values["r"] = None if price is None else value_at_bid(one, price, spec).r
    return values


def money(reader: DeskReader, _: Any) -> Iterator[Fact]:
    """Yield the results of each account."""
    for n, account in enumerate(_money(reader).accounts):
        yield from facts_of("results", account, f"money.{n}.", iso(reader.as_of), BOOKS, n=n)


def trades(reader: DeskReader, args: Any) -> Iterator[Fact]:
    """Yield the result of each trade."""
    name = args.symbol and reader.instance(args.symbol).id
    for row in signal_table.closed_trades(reader.database, name, args.limit, as_of=reader.as_of):
        prefix, reason = f"money.trade.{row.sid}", code_of(row.close_reason)
        yield from facts_of("trade", row, prefix, str(row.closed_at), BOOKS, reason=reason)


def changed_by_agents(reader: DeskReader, args: Any) -> Iterator[Fact]:
    """Yield how often agents changed a verdict, and what the newest changes came to."""
    name = args.symbol and reader.instance(args.symbol).id
    page = listing.listed(reader.database, reader.settings, instance=name, limit=args.limit)
    prefix, of = (f"changed.{name}.", f" of {name}") if name else ("changed.", "")
    yield from facts_of("effect", page, prefix, iso(reader.as_of), BOOKS, of=of)
    currency = _money(reader).currency if page.ticks else ""
    for one in page.ticks:
        yield from facts_of(
            "change", one, f"changed.{one.key}/", one.close_time, BOOKS, currency=currency
        )


def costs(reader: DeskReader, _: Any) -> Iterator[Fact]:
    """Yield the cost of models, and how each profile stands against its ceiling."""
    as_of = iso(reader.as_of)
    report = cost_report.report(reader.home, reader.database, reader.setups, reader.now)
    yield from facts_of("cost", report, "cost.", as_of, BOOKS)
    for row in report["profiles"]:
        yield from facts_of("profile", row, f"cost.{row['profile']}.", as_of, BOOKS)


def latest_radar(reader: DeskReader, _: Any) -> Given:
    """Return the rows and failures of the newest scan, and how many there are of each bucket."""
    stored = radar_runs.newest_run(reader.database)
    if stored is None:
        return refusal("NO_RUN")
    run = json_object(stored["document"])
    facts = [*facts_of("radar", run["coverage"], "radar.", run["as_of"], RADAR)]
    for row in (row for bucket in BUCKET_WORDS for row in run[bucket]):
        prefix, codes = f"radar.{row['bucket']}.{row['stream']}", " ".join(row["codes"])
        known = {**row, "codes": codes, "deny_reason": row["deny_reason"] or None}
        facts += facts_of("radar_row", known, prefix, row["as_of"], RADAR)
    for row in run["coverage"]["failed"]:
        facts += facts_of("radar_failed", row, f"radar.failed.{row['stream']}", run["as_of"], RADAR)
    return [one for one in facts if one.value is not None]
