"""`torra data`: which numbers from beside the chart are known, since when, and from where.

`torra data import FILE` reads a table of one's own into the store, whole or not at all; `torra
data check FILE` only says what stands in it. `torra calendar FILE` adds the events of a public
calendar to one of the home, where what was added before stays. A mistake is one line and exit code
2, and nothing is stored.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from torra.commands.cli_errors import plainly
from torra.commands.options import SpelledGroup, print_json
from torra.commands.terminal import say
from torra.home import DATABASE

if TYPE_CHECKING:
    from instance_database import Database
    from torra.config import Instance
    from torra.evidence.company_figures import CompanyFigures
    from torra.evidence.outside_numbers import FactRow, SeriesRow
    from torra.outside.tables import ParsedTable

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
name_option = click.option("--name", default="", help="Which series a publisher's file is.")

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


class SeriesGroup(SpelledGroup):
    """A group whose word that is no command is the name of a series, or a company's ticker."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word; of a series or a company the one that shows it."""
        from torra.evidence.outside_numbers import SERIES, series_of  # noqa: PLC0415
        from torra.trading_terms import TICKER  # noqa: PLC0415

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


@click.group(cls=SeriesGroup, invoke_without_command=True, subcommand_metavar="[NAME | COMMAND]")
@as_json_option
@click.pass_context
@plainly
def data(context: click.Context, /, as_json: bool) -> None:
    """Show the numbers from beside the chart, since when they are known; of a NAME its values.

    NAME is a series, such as DGS2, or a company's ticker, such as AAPL.
    """
    if context.invoked_subcommand is not None:
        return
    rows, facts, flow = _told(context.obj)
    beside = _companions(context.obj)
    if as_json:
        told = {"series": rows, "facts": facts, "companions": beside, "flow": flow}
        print_json({**told, "names": _names()})
        return
    if not rows and not facts and not flow:
        say(NO_SERIES if beside else NOTHING)
    lines = (*map(_line, rows), *map(_company_line, facts), *map(_flow_line, flow))
    for line in (*lines, *map(_companion_line, beside)):
        say(line)


@click.command("show")
@click.argument("name")
@as_json_option
@click.pass_context
@plainly
def show(context: click.Context, /, name: str, as_json: bool) -> None:
    """Show the newest values of a series, as they were known."""
    from torra.clock import iso  # noqa: PLC0415
    from torra.evidence.outside_numbers import series_of  # noqa: PLC0415
    from torra.exhibits import figures  # noqa: PLC0415
    from torra.exhibits.beyond import outside_words  # noqa: PLC0415

    as_json = as_json or bool(context.parent and context.parent.params.get("as_json"))
    found = _rows(context.obj, [name])
    newest = sorted(found, key=lambda one: (one.row.at, one.row.known_at))[-MOST_VALUES:]
    values = [
        {
            "at": iso(one.row.at),
            "value": one.row.value,
            "known_at": iso(one.row.known_at),
            "first_seen": iso(one.first_seen),
            "source": one.row.source,
        }
        for one in newest
    ]
    series = series_of(name)
    what = "" if series is None else series.says
    if as_json:
        print_json({"name": name, "says": what, "values": values, "stored": len(found)})
        return
    if not values:
        say(f"{name}, {what}: nothing is stored.")
        return
    say(f"{name}, {what}: {len(found):,} values are stored, the newest last.")
    for one in newest:
        row = one.row
        known, seen = (figures.moment(iso(moment)) for moment in (row.known_at, one.first_seen))
        say(
            f"{iso(row.at)[:10]}  {outside_words.series_amount(row)}, known since {known}, seen "
            f"here {seen}, from {outside_words.source_of(row.source)}"
        )


@click.command("company")
@click.argument("ticker")
@as_json_option
@click.pass_context
@plainly
def company(context: click.Context, /, ticker: str, as_json: bool) -> None:
    """Show what a company's newest report comes to, and the figures that it is made of."""
    from torra.clock import System  # noqa: PLC0415
    from torra.errors import ConfigError  # noqa: PLC0415
    from torra.evidence import company_figures  # noqa: PLC0415
    from torra.evidence.company_facts import FIGURES, Books  # noqa: PLC0415

    as_json = as_json or bool(context.parent and context.parent.params.get("as_json"))
    filed = _filed(context.obj, ticker)
    books = Books()
    for told in filed:
        books.add(told)
    found = company_figures.read(books)
    if not filed:
        raise ConfigError(
            f"{ticker} is no series, and nothing is stored of a company of that name: `torra "
            "outside` lists what is"
        )
    newest = {figure: row for figure in FIGURES if (row := books.newest(figure)) is not None}
    if as_json:
        print_json(_company_document(ticker, found, newest))
        return
    say("\n".join(_company_lines(ticker, found, newest, System().real_now())))


@data.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@name_option
@as_json_option
@click.pass_obj
@plainly
def check(_home: Path, /, file: Path, name: str, as_json: bool) -> None:
    """Say what stands in a file of series or company figures; store nothing."""
    from torra.clock import System  # noqa: PLC0415
    from torra.outside import tables  # noqa: PLC0415

    found = tables.read(file, name)
    _refuse_the_future(file, found, System().real_now())
    if as_json:
        print_json(_document(found))
    else:
        say(f"{file}: {_count_text(found)}{_shape(found)}.")
        _say_faults(found)
    sys.exit(2 if found.faults else 0)


@data.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--skip-faults", is_flag=True, help="Leave out the lines that cannot be read.")
@name_option
@as_json_option
@click.pass_obj
@plainly
def import_file(home: Path, /, file: Path, skip_faults: bool, name: str, as_json: bool) -> None:
    """Store a file of series or company figures; a line with a fault stores nothing at all."""
    from instance_database import open_home  # noqa: PLC0415
    from torra.clock import System  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415
    from torra.errors import ConfigError  # noqa: PLC0415
    from torra.evidence.outside_numbers import SeriesRow  # noqa: PLC0415
    from torra.outside import tables  # noqa: PLC0415

    found = tables.read(file, name)
    if found.faults and not skip_faults:
        raise ConfigError(
            f"{file}, {found.faults[0]}. Nothing was stored: mend the "
            f"{_many(len(found.faults), 'line')}, or leave out what cannot be read with "
            "--skip-faults"
        )
    load_desk(home)
    database = open_home(home)
    try:
        now = System().real_now()
        _refuse_the_future(file, found, now)
        # By day: a tick that reads half of it sees a series that is too old, and none with holes.
        series = sorted(row for row in found.rows if isinstance(row, SeriesRow))
        facts = [row for row in found.rows if not isinstance(row, SeriesRow)]
        stored = database.store_series(series, now, stamped=True)
        stored += database.store_facts(facts, now)
    finally:
        database.close()
    if as_json:
        print_json({**_document(found), "stored": stored})
    else:
        known = len(found.rows) - stored
        more = f"; {known:,} were known already" if known else ""
        said = f"{_many(stored, 'value')} {'is' if stored == 1 else 'are'} stored{more}"
        say(
            f"{file}: {said}{_shape(found)}. A running desk reads them at once where its profile "
            'has "file" among outside.sources.'
        )
        _say_faults(found)


@click.command("calendar")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--clock", default="", help="Clock of times without a zone, as torra import has it.")
@click.option(
    "--into", default="events.csv", show_default=True, help="Calendar of the home, in CSV."
)
@as_json_option
@click.pass_obj
@plainly
def calendar(home: Path, /, file: Path, clock: str, into: str, as_json: bool) -> None:
    """Add the events of a public calendar to a calendar of the home."""
    from torra.clock import iso  # noqa: PLC0415
    from torra.errors import ConfigError  # noqa: PLC0415
    from torra.news import public_calendars  # noqa: PLC0415
    from torra.news.event_file import MAX_EVENTS, read_events, table  # noqa: PLC0415
    from torra.whole_files import write_whole  # noqa: PLC0415

    target = home / into
    if not home.is_dir():
        raise ConfigError(f"the home {home} is not there: start with torra init or torra run")
    if Path(into).name != into or target.suffix.lower() != ".csv":
        raise ConfigError(f"{target} can be no calendar: name a .csv file of the home")
    public = public_calendars.read(file, clock)
    stored = read_events(target) if target.exists() else ()
    events = {*stored, *public.events}
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
        "from": iso(times[0]), "to": iso(times[-1]), "new": len(events) - len(stored),
        "omissions": dict(public.omissions), "total": len(events),
    }  # fmt: skip
    if as_json:
        print_json(document)
        return
    omissions = "; ".join(f"{count} with {why}" for why, count in public.omissions.items())
    say(
        f"{file}: {public.name}, clock {document['clock']}. {_many(len(public.events), 'event')} "
        f"({document['high']} high), {document['from']} to {document['to']}; left out: "
        f"{omissions or 'none'}."
    )
    say(
        f"{target} has {_many(len(events), 'event')}, {document['new']} of them new. A profile "
        f'names it: "events": {{"calendar": "{into}"}}'
    )


def _refuse_the_future(
    file: Path, found: ParsedTable[SeriesRow] | ParsedTable[FactRow], now: datetime
) -> None:
    """Raise ConfigError for a value that the public cannot know yet."""
    from torra.clock import iso  # noqa: PLC0415
    from torra.errors import ConfigError  # noqa: PLC0415

    late = max((row.known_at for row in found.rows), default=now)
    # By a publisher's rule a value of today is known on its next business day at the latest.
    if late > now + timedelta(days=10 if found.shape else 1):
        raise ConfigError(
            f"{file}: known_at {iso(late)} lies in the future, and nobody can know that value yet. "
            "Nothing was stored: mend that line"
        )


def _told(
    home: Path,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what is stored of every series, with its words, every company and every stream."""
    from instance_database import open_home  # noqa: PLC0415
    from torra.clock import System, iso, parse  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415
    from torra.evidence.outside_numbers import series_of  # noqa: PLC0415
    from torra.store import flow as flow_table  # noqa: PLC0415
    from torra.store import series as series_table  # noqa: PLC0415

    if not (home / DATABASE).is_file():
        load_desk(home)  # a home without a database stays without one
        return [], [], []
    database = open_home(home)
    try:
        rows, facts, flow = (
            series_table.series_told(database),
            series_table.facts_told(database),
            flow_table.flow_told(database),
        )
    finally:
        database.close()
    now = System().real_now()
    told = []
    for row in rows:
        series = series_of(row["name"])
        if series is not None:
            age = now - parse(row["at"])
            told.append(
                {
                    **row,
                    "says": series.says,
                    "unit": series.unit,
                    "age_days": round(age.total_seconds() / 86_400, 1),
                    "stale": age > series.valid,
                    "now": iso(now),
                }
            )
    return told, facts, flow


def _companions(home: Path) -> list[dict[str, Any]]:
    """Return each companion of each instance: its newest stored bars, and what ticks had of it."""
    from instance_database import open_home  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415

    found = [one for one in load_desk(home).instances if one.companions]
    if not found or not (home / DATABASE).is_file():
        return [row for one in found for row in _beside(one, None)]
    database = open_home(home)
    try:
        return [row for one in found for row in _beside(one, database)]
    finally:
        database.close()


def _beside(instance: Instance, database: Database | None) -> Iterator[dict[str, Any]]:
    """Yield the companions of an instance, each with its timeframes that anything is known of."""
    from torra.clock import duration, iso  # noqa: PLC0415
    from torra.store import bars as bar_table  # noqa: PLC0415
    from torra.store import tick_queries  # noqa: PLC0415

    for name, symbol in instance.companions.items():
        closed: dict[str, str] = {}
        newest_tick: dict[str, str] = {}
        for timeframe in instance.timeframes:
            if database is None:
                break
            if newest := bar_table.newest_companion(database, instance, symbol, timeframe):
                closed[timeframe] = iso(newest + duration(timeframe))
            for told in tick_queries.outside_statuses(database, instance.id, [timeframe], 1):
                if "companion" in told:
                    newest_tick[timeframe] = told.get(f"companion.{name}", "available")
        yield {
            "instance": instance.id, "name": name, "symbol": symbol,
            "closed": closed, "newest_tick": newest_tick,
        }  # fmt: skip


def _rows(home: Path, names: Sequence[str]) -> list[Any]:
    from instance_database import open_home  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415

    if not (home / DATABASE).is_file():
        load_desk(home)
        return []
    database = open_home(home)
    try:
        return database.series_rows(names)
    finally:
        database.close()


def _line(row: dict[str, Any]) -> str:
    from torra.clock import parse  # noqa: PLC0415
    from torra.evidence.outside_numbers import SeriesRow  # noqa: PLC0415
    from torra.exhibits import figures  # noqa: PLC0415
    from torra.exhibits.beyond import outside_words  # noqa: PLC0415

    at, known = parse(row["at"]), parse(row["known_at"])
    newest = SeriesRow(row["name"], at, known, row["value"], row["source"])
    old = ", too old to count now" if row["stale"] else ""
    return (
        f"{row['name']}, {row['says']}: {outside_words.series_amount(newest)} of "
        f"{row['at'][:10]}{old}, known since {figures.moment(row['known_at'])}, from "
        f"{outside_words.source_of(row['source'])}; {_many(row['rows'], 'value')} since "
        f"{row['first'][:10]}."
    )


def _company_line(row: dict[str, Any]) -> str:
    from torra.exhibits import figures  # noqa: PLC0415

    return (
        f"{row['ticker']}, a company: {_many(row['rows'], 'value')} of "
        f"{_many(row['figures'], 'figure')}, for periods that end {row['first'][:10]} to "
        f"{row['last'][:10]}, the newest known since {figures.moment(row['known_at'])}."
    )


def _filed(home: Path, ticker: str) -> list[FactRow]:
    """Return what is stored of a company and known by now."""
    from instance_database import open_home  # noqa: PLC0415
    from torra.clock import System  # noqa: PLC0415
    from torra.config import load_desk  # noqa: PLC0415
    from torra.store import series as series_table  # noqa: PLC0415

    if not (home / DATABASE).is_file():
        load_desk(home)
        return []
    database = open_home(home)
    try:
        return series_table.facts_of(database, ticker, System().real_now())
    finally:
        database.close()


def _company_lines(
    ticker: str, found: CompanyFigures | None, newest: Mapping[str, FactRow], now: datetime
) -> Iterator[str]:
    """Yield a company in lines: its report, what it comes to, the figures behind it."""
    from agents.features import unit_of  # noqa: PLC0415
    from torra.clock import iso  # noqa: PLC0415
    from torra.evidence.company_facts import FIGURES  # noqa: PLC0415
    from torra.exhibits import figures  # noqa: PLC0415
    from torra.exhibits.beyond import company_words, outside_words  # noqa: PLC0415

    if found is None:
        yield f"{ticker}: no net income is stored, so nothing can be said of it yet."
    else:
        known = figures.moment(iso(found.filed))
        old = now.date() - found.ends > found.valid
        yield (
            f"{ticker}: the year to {found.ends}, known since {known}, from "
            f"{company_words.filing(found.source)}"
            f"{'; too old to count now, as no newer report is stored' if old else ''}."
        )
        for one in company_words.NUMBERS:
            value = found.ratios.get(one.feature)
            if value is not None:
                unit = unit_of(f"company.{one.feature}")
                said = outside_words.amount(value, unit, one.decimals, signed=one.signed)
                yield f"  {one.name}: {said}"
        missing = [
            one.name
            for one in company_words.NUMBERS
            if one.feature in found.ratios and found.ratios[one.feature] is None
        ]
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


def _company_document(
    ticker: str, found: CompanyFigures | None, newest: Mapping[str, FactRow]
) -> dict[str, Any]:
    from torra.clock import iso  # noqa: PLC0415

    return {
        "ticker": ticker,
        "ends": None if found is None else found.ends.isoformat(),
        "filed": None if found is None else iso(found.filed),
        "source": None if found is None else found.source,
        "figures": {} if found is None else dict(found.ratios),
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


def _companion_line(row: dict[str, Any]) -> str:
    from torra.exhibits import figures  # noqa: PLC0415
    from torra.exhibits.beyond import outside_words  # noqa: PLC0415

    closed = [f"{name} {figures.moment(at)}" for name, at in row["closed"].items()]
    known = f"its newest stored bars closed {', '.join(closed)}" if closed else "no bar is stored"
    had = [f"{name} {outside_words.brief(word)}" for name, word in row["newest_tick"].items()]
    ticks = f"; in the newest tick: {', '.join(had)}" if had else ""
    return f"{row['name']}, the companion {row['symbol']} of {row['instance']}: {known}{ticks}."


def _flow_line(row: dict[str, Any]) -> str:
    from torra.exhibits.beyond import flow_words  # noqa: PLC0415

    books = f", {row['books']:,} with an order book" if row["books"] else ""
    return (
        f"{row['instance']} {row['timeframe']}, order flow: {flow_words.in_a_line(row)}; "
        f"{_many(row['rows'], 'bar')} since {row['first'][:10]}{books}."
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _names() -> list[dict[str, str]]:
    from torra.evidence.outside_numbers import SERIES  # noqa: PLC0415

    return [
        {"name": name, "says": one.says, "unit": one.unit, "source": one.source, "own": one.own}
        for name, one in SERIES.items()
    ]


def _count_text(found: ParsedTable[SeriesRow] | ParsedTable[FactRow]) -> str:
    bad = len(found.faults)
    read = f"{_many(len(found.rows), 'value')} can be read"
    return f"{read}, {_many(bad, 'line')} cannot" if bad else f"{read}, all of it"


def _shape(found: ParsedTable[SeriesRow] | ParsedTable[FactRow]) -> str:
    """Return which publisher's shape a file has; "" for one of Torra's own."""
    return f" (as of {found.shape}; {_many(found.holes, 'hole')} left out)" if found.shape else ""


def _say_faults(found: ParsedTable[SeriesRow] | ParsedTable[FactRow]) -> None:
    for fault in found.faults[:MOST_FAULTS]:
        say(str(fault))
    if len(found.faults) > MOST_FAULTS:
        say(f"and {len(found.faults) - MOST_FAULTS:,} more")


def _document(found: ParsedTable[SeriesRow] | ParsedTable[FactRow]) -> dict[str, Any]:
    return {
        "rows": len(found.rows),
        "shape": found.shape,
        "holes": found.holes,
        "faults": [{"line": fault.line, "reason": fault.reason} for fault in found.faults],
    }
