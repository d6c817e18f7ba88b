"""`torra data`: which numbers from beside the chart are known, since when, and from where.

`torra data import FILE` reads a table of one's own into the store, whole or not at all; `torra
data check FILE` only says what stands in it. `torra calendar FILE` adds the events of a public
calendar to one of the home, where what was added before stays. A mistake is one line and exit code
2, and nothing is stored.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click

from instance_database import Database, open_home
from torra.clock import System, duration, iso, parse
from torra.commands import terminal
from torra.commands.answer import CommandAnswer, answering, open_database
from torra.commands.options import (
    ANY_PATH,
    SpelledGroup,
    clock_option,
    flag,
    leave_out_option,
)
from torra.config import Instance, load_desk
from torra.errors import ConfigError
from torra.evaluation.wording import count
from torra.evidence import company_figures
from torra.evidence.company_facts import FIGURES, Books
from torra.evidence.company_figures import CompanyFigures
from torra.evidence.outside_numbers import SERIES, FactRow, SeriesRow, series_of
from torra.exhibits import figures
from torra.exhibits.beyond import company_words, flow_words, outside_words
from torra.news import public_calendars
from torra.news.event_file import MAX_EVENTS, read_events, table
from torra.outside import tables
from torra.outside.tables import ParsedTable
from torra.store import bars as bar_table
from torra.store import flow as flow_table
from torra.store import series as series_table
from torra.store import tick_queries
from torra.trading_terms import TICKER
from torra.whole_files import write_whole

MOST_FAULTS: Final = 20
"""Lines with a fault that are shown; all are counted."""

MOST_VALUES: Final = 20
"""Values of a series that are shown, the newest."""

NOTHING: Final = (
    "Nothing is stored yet, so no agent sees a number from beside the chart. Import a file with "
    "`torra data import FILE`, or name fred, cftc or edgar in the profile's outside.sources "
    "(docs/outside.md)."
)

NO_SERIES: Final = (
    "No series is stored yet: import a file with `torra data import FILE`, or name fred or cftc "
    "in the profile's outside.sources (docs/outside.md)."
)

Table = ParsedTable[SeriesRow] | ParsedTable[FactRow]

file_argument = click.argument("file", type=ANY_PATH)
name_option = click.option("--name", default="", help="Which series a publisher's file is.")


class SeriesGroup(SpelledGroup):
    """A group whose word that is no command is the name of a series, or a company's ticker."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word; of a series or a company the one that shows it."""
        if args and args[0] not in self.commands:
            like = {name.lower(): name for name in SERIES}
            name = like.get(args[0].lower(), args[0])
            if series_of(name) is not None:
                return "show", show, [name, *args[1:]]
            ticker = args[0].upper()
            # A word that is nearly a command is a slip of the hand.
            slip = difflib.get_close_matches(args[0], self.commands, 1)
            if TICKER.fullmatch(ticker) and (ticker == args[0] or not slip):
                return "company", company, [ticker, *args[1:]]
        return super().resolve_command(ctx, args)


@click.command("import")
@click.argument("file", type=ANY_PATH)
@click.option("--symbol", required=True, help="Canonical symbol or instance name, such as XAUUSD.")
@click.option("--timeframe", required=True, help="Timeframe of the bars, such as M15.")
@clock_option
@leave_out_option
@flag("--revise", "The file is right: replace stored bars, withdraw those it lacks.")
@answering
def import_bars(
    home: Path, /, file: Path, symbol: str, timeframe: str, clock: str | None, **options: Any
) -> CommandAnswer:
    """Store the bars of a file, as MetaTrader 5, TradingView, Binance and others export them."""
    from torra.desk.setup import bar_import  # noqa: PLC0415

    stream = (symbol.upper(), timeframe.upper())
    result = bar_import.run(home, file, *stream, clock, progress=terminal.progress, **options)
    return CommandAnswer(result, bar_import.table)


@click.group(cls=SeriesGroup, invoke_without_command=True, subcommand_metavar="[NAME | COMMAND]")
@answering
def data(home: Path) -> CommandAnswer:
    """Show the numbers from beside the chart, since when they are known; of a NAME its values.

    NAME is a series, such as DGS2, or a company's ticker, such as AAPL.
    """
    with open_database(home) as database:
        instances = load_desk(home).instances
        companions = [row for item in instances for row in _companions(item, database)]
        series = list(_series(database))
        facts = series_table.facts_summary(database)
        flow = flow_table.flow_summary(database)
    lines = [*map(_series_line, series), *map(_company_line, facts), *map(_flow_line, flow)]
    lines = lines or [NO_SERIES if companions else NOTHING]
    lines += map(_companion_line, companions)
    names = [
        {"name": name, "says": row.says, "unit": row.unit, "source": row.source, "own": row.own}
        for name, row in SERIES.items()
    ]
    document = {
        "series": series, "facts": facts, "companions": companions, "flow": flow, "names": names
    }  # fmt: skip
    return CommandAnswer(document, lines)


@click.command("show")
@click.argument("name")
@answering
def show(home: Path, name: str) -> CommandAnswer:
    """Show the newest values of a series, as they were known."""
    with open_database(home) as database:
        rows = database.series_rows([name])
    newest = sorted(rows, key=lambda item: (item.row.at, item.row.known_at))[-MOST_VALUES:]
    kind = series_of(name)
    says = "" if kind is None else kind.says
    values, lines = [], [f"{name}, {says}: {len(rows):,} values are stored, the newest last."]
    for item in newest:
        row = item.row
        at, known_at, first_seen = map(iso, (row.at, row.known_at, item.first_seen))
        values.append(
            {"at": at, "value": row.value, "known_at": known_at, "first_seen": first_seen,
             "source": row.source}
        )  # fmt: skip
        lines.append(
            f"{at[:10]}  {outside_words.series_amount(name, row.value)}, known since "
            f"{figures.moment(known_at)}, seen here {figures.moment(first_seen)}, from "
            f"{outside_words.source_of(row.source)}"
        )
    lines = lines if values else [f"{name}, {says}: nothing is stored."]
    return CommandAnswer({"name": name, "says": says, "values": values, "stored": len(rows)}, lines)


@click.command("company")
@click.argument("ticker")
@answering
def company(home: Path, ticker: str) -> CommandAnswer:
    """Show what a company's newest report comes to, and the figures that it is made of."""
    books = Books()
    with open_database(home) as database:
        rows = series_table.facts_of(database, ticker, System().real_now())
    if not rows:
        raise ConfigError(
            f"{ticker} is no series, and nothing is stored of a company of that name: `torra "
            "outside` lists what is"
        )
    for fact in rows:
        books.add(fact)
    report = company_figures.read(books)
    newest = {figure: row for figure in FIGURES if (row := books.newest(figure)) is not None}
    document = {
        "ticker": ticker,
        "ends": report and report.ends.isoformat(),
        "filed": report and iso(report.filed),
        "source": report and report.source,
        "figures": dict(report.ratios) if report else {},
        "newest": {
            name: {
                "begins": row.begins.date().isoformat(),
                "ends": row.ends.date().isoformat(),
                "value": row.value,
                "unit": row.unit,
                "known_at": iso(row.known_at),
                "source": row.source,
            }
            for name, row in newest.items()
        },
    }
    return CommandAnswer(document, _company_lines(ticker, report, newest))


@data.command("check")
@file_argument
@name_option
@answering
def check(_home: Path, file: Path, name: str) -> CommandAnswer:
    """Say what stands in a file of series or company figures; store nothing."""
    parsed = tables.read(file, name)
    _refuse_the_future(file, parsed)
    good = f"{count(len(parsed.rows), 'value')} can be read"
    bad = f"{count(len(parsed.faults), 'line')} cannot" if parsed.faults else "all of it"
    text = f"{file}: {good}, {bad}{_shape(parsed)}."
    return CommandAnswer(_document(parsed), _with_faults(text, parsed), 2 if parsed.faults else 0)


@data.command("import")
@file_argument
@flag("--skip-faults", "Leave out the lines that cannot be read.")
@name_option
@answering
def import_file(home: Path, file: Path, name: str, skip_faults: bool) -> CommandAnswer:
    """Store a file of series or company figures; a line with a fault stores nothing at all."""
    parsed = tables.read(file, name)
    if parsed.faults and not skip_faults:
        raise ConfigError(
            f"{file}, {parsed.faults[0]}. Nothing was stored: mend the "
            f"{count(len(parsed.faults), 'line')}, or leave out what cannot be read with "
            "--skip-faults"
        )
    load_desk(home)
    with closing(open_home(home)) as database:
        now = System().real_now()
        _refuse_the_future(file, parsed)
        # By day: a tick that reads half of it sees a series that is too old, and none with holes.
        numbers = sorted(row for row in parsed.rows if isinstance(row, SeriesRow))
        facts = [row for row in parsed.rows if not isinstance(row, SeriesRow)]
        new = database.store_series(numbers, now, stamped=True)
        new += database.store_facts(facts, now)
    stored_before = len(parsed.rows) - new
    more = f"; {stored_before:,} were known already" if stored_before else ""
    text = (
        f"{file}: {count(new, 'value')} {'is' if new == 1 else 'are'} stored{more}"
        f"{_shape(parsed)}. A running desk reads them at once where its profile has "
        '"file" among outside.sources.'
    )
    return CommandAnswer({**_document(parsed), "stored": new}, _with_faults(text, parsed))


@click.command("calendar")
@file_argument
@click.option("--clock", default="", help="Clock of times without a zone, as torra import has it.")
@click.option(
    "--into", default="events.csv", show_default=True, help="Calendar of the home, in CSV."
)
@answering
def calendar(home: Path, file: Path, clock: str, into: str) -> CommandAnswer:
    """Add the events of a public calendar to a calendar of the home."""
    target = home / into
    if not home.is_dir():
        raise ConfigError(f"the home {home} is not there: start with torra init or torra run")
    if Path(into).name != into or target.suffix.lower() != ".csv":
        raise ConfigError(f"{target} can be no calendar: name a .csv file of the home")
    public = public_calendars.read(file, clock)
    before = read_events(target) if target.exists() else ()
    events = {*before, *public.events}
    if len(events) > MAX_EVENTS:
        raise ConfigError(f"{target} would have more than {MAX_EVENTS} events: cut off old years")
    try:
        write_whole(target, table(events).encode())
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from error
    times = sorted(event.time for event in public.events)
    document = {
        "shape": public.name, "clock": public.clock or "in the file", "events": len(public.events),
        "high": sum(event.impact == "high" for event in public.events),
        "from": iso(times[0]), "to": iso(times[-1]), "new": len(events) - len(before),
        "omissions": dict(public.omissions), "total": len(events),
    }  # fmt: skip
    omissions = "; ".join(f"{number} with {why}" for why, number in public.omissions.items())
    return CommandAnswer(
        document,
        f"{file}: {public.name}, clock {document['clock']}. {count(len(public.events), 'event')} "
        f"({document['high']} high), {document['from']} to {document['to']}; left out: "
        f"{omissions or 'none'}.\n"
        f"{target} has {count(len(events), 'event')}, {document['new']} of them new. A profile "
        f'names it: "events": {{"calendar": "{into}"}}',
    )


# --- rows -----------------------------------------------------------------------------------------


def _series(database: Database) -> Iterator[dict[str, Any]]:
    now = System().real_now()
    for row in series_table.series_summary(database):
        kind = series_of(row["name"])
        if kind is not None:
            age = now - parse(row["at"])
            yield {
                **row,
                "says": kind.says,
                "unit": kind.unit,
                "age_days": round(age.total_seconds() / 86_400, 1),
                "stale": age > kind.valid,
                "now": iso(now),
            }


def _companions(instance: Instance, database: Database) -> Iterator[dict[str, Any]]:
    """Yield each companion of an instance: its newest stored bars, and what ticks had of it."""
    for name, symbol in instance.companions.items():
        closed: dict[str, str] = {}
        newest_tick: dict[str, str] = {}
        for timeframe in instance.timeframes:
            if newest := bar_table.newest_companion(database, instance, symbol, timeframe):
                closed[timeframe] = iso(newest + duration(timeframe))
            for statuses in tick_queries.outside_statuses(database, instance.id, [timeframe], 1):
                if "companion" in statuses:
                    newest_tick[timeframe] = statuses.get(f"companion.{name}", "available")
        yield {
            "instance": instance.id, "name": name, "symbol": symbol,
            "closed": closed, "newest_tick": newest_tick,
        }  # fmt: skip


def _document(parsed: Table) -> dict[str, Any]:
    return {
        "rows": len(parsed.rows),
        "shape": parsed.shape,
        "holes": parsed.holes,
        "faults": [fault._asdict() for fault in parsed.faults],
    }


def _refuse_the_future(file: Path, parsed: Table) -> None:
    """Raise ConfigError for a value that the public cannot know yet."""
    now = System().real_now()
    late = max((row.known_at for row in parsed.rows), default=now)
    # By a publisher's rule a value of today is known on its next business day at the latest.
    if late > now + timedelta(days=10 if parsed.shape else 1):
        raise ConfigError(
            f"{file}: known_at {iso(late)} lies in the future, and nobody can know that value yet. "
            "Nothing was stored: mend that line"
        )


# --- lines ----------------------------------------------------------------------------------------


def _series_line(row: dict[str, Any]) -> str:
    amount = outside_words.series_amount(row["name"], row["value"])
    known = figures.moment(row["known_at"])
    old = ", too old to count now" if row["stale"] else ""
    return (
        f"{row['name']}, {row['says']}: {amount} of {row['at'][:10]}{old}, known since {known}, "
        f"from {outside_words.source_of(row['source'])}; {count(row['rows'], 'value')} since "
        f"{row['first'][:10]}."
    )


def _company_line(row: dict[str, Any]) -> str:
    return (
        f"{row['ticker']}, a company: {count(row['rows'], 'value')} of "
        f"{count(row['figures'], 'figure')}, for periods that end {row['first'][:10]} to "
        f"{row['last'][:10]}, the newest known since {figures.moment(row['known_at'])}."
    )


def _company_lines(
    ticker: str, report: CompanyFigures | None, newest: Mapping[str, FactRow]
) -> Iterator[str]:
    """Yield a company in lines: its report, what it comes to, the figures behind it."""
    if report is None:
        yield f"{ticker}: no net income is stored, so nothing can be said of it yet."
    else:
        old = System().real_now().date() - report.ends > report.valid
        yield (
            f"{ticker}: the year to {report.ends}, known since "
            f"{figures.moment(iso(report.filed))}, from {company_words.filing(report.source)}"
            f"{'; too old to count now, as no newer report is stored' if old else ''}."
        )
        missing = []
        for number in company_words.NUMBERS:
            feature = number.feature.removeprefix("company.")
            value = report.ratios.get(feature)
            if value is not None:
                yield f"  {number.name}: {outside_words.written(number, value)}"
            elif feature in report.ratios:
                missing.append(number.name)
        if missing:
            yield f"Not known, for a part is missing in its reports: {', '.join(missing)}."
        yield "What a price pays for it stands on the page of its symbol, for that needs closes."
    yield "The newest figures:"
    for name, row in newest.items():
        begins, ends = row.begins.date(), row.ends.date()
        period = f"{ends}" if begins == ends else f"{begins} to {ends}"
        yield (
            f"  {FIGURES[name].says}: {row.value:,.0f} {row.unit}, {period}, known since "
            f"{figures.moment(iso(row.known_at))}, from {company_words.filing(row.source)}"
        )


def _companion_line(row: dict[str, Any]) -> str:
    closed = [f"{name} {figures.moment(at)}" for name, at in row["closed"].items()]
    bars = f"its newest stored bars closed {', '.join(closed)}" if closed else "no bar is stored"
    had = [f"{name} {outside_words.brief(word)}" for name, word in row["newest_tick"].items()]
    ticks = f"; in the newest tick: {', '.join(had)}" if had else ""
    return f"{row['name']}, the companion {row['symbol']} of {row['instance']}: {bars}{ticks}."


def _flow_line(row: dict[str, Any]) -> str:
    books = f", {row['books']:,} with an order book" if row["books"] else ""
    return (
        f"{row['instance']} {row['timeframe']}, order flow: {flow_words.in_a_line(row)}; "
        f"{count(row['rows'], 'bar')} since {row['first'][:10]}{books}."
    )


def _shape(parsed: Table) -> str:
    """Return which publisher's shape a file has; "" for one of Torra's own."""
    if not parsed.shape:
        return ""
    return f" (as of {parsed.shape}; {count(parsed.holes, 'hole')} left out)"


def _with_faults(text: str, parsed: Table) -> Iterator[str]:
    yield text
    yield from map(str, parsed.faults[:MOST_FAULTS])
    if len(parsed.faults) > MOST_FAULTS:
        yield f"and {len(parsed.faults) - MOST_FAULTS:,} more"
