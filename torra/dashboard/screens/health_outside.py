"""The checks of Health of numbers from beyond the chart: who is asked, how old each is, who had it.

Each publisher, series and company is one sign, and so is each companion of an instance. Nothing is
asked and nothing is changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from torra.clock import duration, iso, parse
from torra.config import Instance, Profile
from torra.dashboard.view.health_context import HealthContext
from torra.desk.checks.result import LEVELS, CheckResult
from torra.desk.outlook import subject_of
from torra.evaluation.wording import count
from torra.evidence.company_facts import ANNUAL, FIGURES
from torra.evidence.company_figures import REPORT_DELAY
from torra.evidence.flow_readings import FAULTS
from torra.evidence.news_digest import NewsSubject
from torra.evidence.outside_numbers import EDGAR, StoredRow, series_of
from torra.evidence.outside_readings import levels_of, market_of, reads_company, series_for
from torra.exhibits import figures
from torra.exhibits.beyond import flow_words, outside_words
from torra.exhibits.beyond.outside_words import PUBLISHERS
from torra.store import bars as bar_table
from torra.store import flow as flow_table
from torra.store import series as series_table
from torra.store import tick_queries
from torra.words.ticks import FLOW, STATUSES

if TYPE_CHECKING:
    from torra.collecting.asking import TopicState
    from torra.feeds.companions import CompanionReader, CompanionReading
    from torra.outside.collector import SeriesCollector

Reading = Sequence[tuple[Instance, Profile]]
"""The instances that read numbers from beyond the chart, each with its profile."""

WELL: Final = ("available", "empty")
OLD_NUMBER: Final = "see above how its publisher answers"
COMPANION_REMEDY: Final = "docs/outside.md says what a companion needs of its feed"
NAMED: Final = "torra doctor names what to mend"


def level_of(status: str) -> str:
    """Return the level of a status of a source."""
    return STATUSES[status].tone if status in STATUSES else "warn"


def collectors(context: HealthContext) -> Any:
    """Return the collectors of the desk of this process; a page of another process has none."""
    return getattr(getattr(context.pages.desk, "roster", None), "outlook", None)


def numbers(context: HealthContext) -> Iterator[CheckResult]:
    """Yield how publishers answer, how old each series is, and in how many ticks it was known."""
    reading = [(one, profile) for one, profile in context.setups if profile.outside.sources]
    if not reading:
        yield CheckResult("numbers", "note", "no profile reads any (outside.sources)")
        return
    series = getattr(collectors(context), "series", None)
    filings = getattr(collectors(context), "filings", None)
    named = {name for _, profile in reading for name in profile.outside.sources}
    publishers = [name for name in PUBLISHERS if name in named]
    stored = [
        *_series(context, reading, series), *_companies(context, reading), *_flow(context, reading)
    ]  # fmt: skip
    if not stored and not publishers:
        why = "nothing is stored yet: torra data import FILE, or name fred, cftc or edgar"
        yield CheckResult("numbers", "note", f"{why} in outside.sources")
        return
    for name in publishers:
        yield _publisher(name, filings if name == EDGAR else series)
    yield from stored
    for instance, profile in reading:
        yield from _share(context, instance, subject_of(instance, profile))


def companions(context: HealthContext) -> Iterator[CheckResult]:
    """Yield each companion of each instance: its newest bar, or why there is nothing."""
    for one in context.pages.desk.setups.values():
        reader: CompanionReader | None = getattr(one, "companions", None)
        rows: dict[str, list[CompanionReading]] = defaultdict(list)
        for row in reader.readings() if reader is not None else ():
            rows[row.name].append(row)
        for name, symbol in one.instance.companions.items():
            title = f"{one.instance.id} {name}"
            if name in rows:
                yield _companion(title, symbol, rows[name])
                continue
            stored = [
                f"{timeframe} {figures.moment(iso(newest + duration(timeframe)))}"
                for timeframe in one.instance.timeframes
                if (
                    newest := bar_table.newest_companion(
                        context.database, one.instance, symbol, timeframe
                    )
                )
            ]
            known = f"; its newest stored bars closed: {', '.join(stored)}" if stored else ""
            why = f"{symbol}: not read yet since this desk started{known}"
            yield CheckResult(title, "note", why)


def _companion(title: str, symbol: str, rows: Sequence[CompanionReading]) -> CheckResult:
    facts = tuple((row.timeframe, _companion_bar(row)) for row in rows)
    detail = f"{symbol}: {'; '.join(f'{timeframe} {bar}' for timeframe, bar in facts)}"
    levels = {
        "ok" if not row.lack
        else "warn" if row.lack in ("missing", "clock", "broken")
        else "note"
        for row in rows
    }  # fmt: skip
    # Where one timeframe is read, the feed has the symbol.
    level = "ok" if "ok" in levels else max(levels, key=LEVELS.index)
    return CheckResult(title, level, detail, COMPANION_REMEDY if level == "warn" else "", facts)


def _companion_bar(row: CompanionReading) -> str:
    """Return when the newest bar of a companion closed, and what keeps it from counting."""
    closed = f"newest bar closed {figures.moment(iso(row.closed))}" if row.closed else ""
    return ", ".join(filter(None, (closed, figures.sanitize(row.says, 200))))


def _publisher(name: str, collector: SeriesCollector | None) -> CheckResult:
    """Return how a publisher of numbers answers, with each of its topics."""
    title = PUBLISHERS[name].removeprefix("the ")
    if collector is None:
        return CheckResult(
            title, "unknown", "this process asks nobody: a desk that runs tells more"
        )
    states = [state for state in collector.status() if state.source == name]
    if not states:
        why = "asked for nothing: no symbol here reads what it publishes"
        return CheckResult(title, "note", why)
    facts = tuple(
        (
            state.topic,
            f"{outside_words.brief(str(state.status))}, asked "
            f"{figures.moment(state.polled_at.isoformat()) if state.polled_at else 'not yet'}, "
            f"{state.items} values, {state.dropped} dropped, next in {figures.span(state.due)}",
        )
        for state in (states if name != EDGAR else _by_company(states))
        if str(state.status) != "no_key"
    )
    trouble = collector.trouble(name)
    if not trouble:
        return CheckResult(title, "ok", "answers", "", facts)
    details = [state.detail for state in states if str(state.status) == trouble and state.detail]
    detail = ": ".join([outside_words.brief(trouble), *details[:1]])
    level = level_of(trouble)
    return CheckResult(title, level, detail, NAMED if level == "warn" else "", facts)


def _by_company(states: Iterable[TopicState]) -> Iterator[TopicState]:
    """Yield of each company one state for all its figures; of what is not of a figure each."""
    companies: dict[str, list[TopicState]] = defaultdict(list)
    for state in states:
        ticker, _, figure = state.topic.rpartition(" ")
        if figure in FIGURES:
            companies[ticker].append(state)
        else:
            yield state
    for ticker, figures_of in companies.items():
        yield replace(
            max(figures_of, key=lambda state: str(state.status) not in WELL),
            topic=f"{ticker} figures",
            polled_at=max((one.polled_at for one in figures_of if one.polled_at), default=None),
            items=sum(one.items for one in figures_of),
            dropped=sum(one.dropped for one in figures_of),
            due=min(one.due for one in figures_of),
        )


def _companies(context: HealthContext, reading: Reading) -> Iterator[CheckResult]:
    """Yield of each company that a symbol is what is stored of its figures, or that nothing is."""
    subjects = [subject_of(*one) for one in reading]
    wanted = {one.ticker for one in subjects if reads_company(one)}
    rows = series_table.facts_summary(context.database) if wanted else []
    stored = {row["ticker"]: row for row in rows if row["ticker"] in wanted}
    for ticker in sorted(wanted - {*stored}):
        remedy = "look at symbols.*.ticker, import a file of its figures, or name edgar"
        yield CheckResult(f"{ticker} figures", "note", "nothing is stored of this company", remedy)
    for ticker, row in stored.items():
        detail = (
            f"{count(row['rows'], 'value')} of {count(row['figures'], 'figure')}, for periods to "
            f"{row['last'][:10]}, the newest known since {figures.moment(row['known_at'])}"
        )
        # Beyond a year and the time that its report may take no figure counts.
        if context.pages.now() - parse(row["last"]) <= timedelta(days=ANNUAL.stop) + REPORT_DELAY:
            yield CheckResult(f"{ticker} figures", "ok", detail)
            continue
        remedy = "bring newer reports: a file, or edgar in outside.sources"
        yield CheckResult(f"{ticker} figures", "warn", f"{detail}, too old to count", remedy)


def _series(
    context: HealthContext, reading: Reading, collector: SeriesCollector | None
) -> Iterator[CheckResult]:
    """Yield each series that a symbol reads and that is stored or asked for; of a market one sign.

    The parts of a market's positions come together, so the first of them tells of all.
    """
    now = context.pages.now()
    # The sample's bars are of a time before anything was seen here.
    wanted: dict[bool, set[str]] = {True: set(), False: set()}
    for instance, profile in reading:
        wanted[instance.feed != "sample"] |= {*series_for(subject_of(instance, profile))}
    wanted[False] -= wanted[True]
    rows: dict[str, StoredRow] = {}
    for live, names in wanted.items():
        rows |= series_table.series_at(context.database, sorted(names), now, live=live)
    titles: set[str] = set()
    for name in sorted(wanted[True] | wanted[False]):
        title = outside_words.series_title(name)
        if title in titles:
            continue
        if name in rows:
            titles.add(title)
            yield _number(title, rows[name], now)
        elif collector is not None and str(collector.status_of(name)) != "off":
            titles.add(title)
            yield CheckResult(title, "note", "nothing is stored yet")


def _number(title: str, stored: StoredRow, now: datetime) -> CheckResult:
    series, row = series_of(stored.row.name), stored.row
    age = now - row.at
    amount = outside_words.series_amount(row.name, row.value)
    value = "" if title.startswith("positions") else f"{amount} "
    detail = (
        f"{value}of {iso(row.at)[:10]}, known since {figures.moment(iso(row.known_at))}, from "
        f"{outside_words.source_of(row.source)}; {figures.span(age.total_seconds())} old"
    )
    if series is None or age <= series.valid:
        return CheckResult(title, "ok", detail)
    by_file = row.source not in PUBLISHERS
    remedy = "bring newer values: torra data import FILE" if by_file else OLD_NUMBER
    return CheckResult(title, "warn", f"{detail}, too old to count", remedy)


def _flow(context: HealthContext, reading: Reading) -> Iterator[CheckResult]:
    """Yield the newest order flow of each stream whose feed brings any, or why there is none.

    A stream whose newest tick has it is in order, however long ago that is: the market may rest.
    """
    streams = [(instance.id, frame) for instance, _ in reading for frame in instance.timeframes]
    for name, timeframe in streams:
        row = flow_table.newest_flow(context.database, name, timeframe)
        newest = tick_queries.outside_statuses(context.database, name, (timeframe,), 1)
        status = next((str(tick["flow"]) for tick in newest if tick.get("flow")), "")
        if not row and not status:
            continue
        title = f"{name} {timeframe} order flow"
        detail = flow_words.in_a_line(row) if row else "none is stored yet"
        if status in ("", "available"):
            yield CheckResult(title, "ok", detail)
            continue
        why = f"{detail}; the newest tick had none: {outside_words.brief(status)}"
        level = "warn" if status in FAULTS else "note"
        yield CheckResult(title, level, why, FLOW[status].text if status in FLOW else "")


def _share(
    context: HealthContext, instance: Instance, subject: NewsSubject
) -> Iterator[CheckResult]:
    """Yield in how many of the newest ticks of a symbol each block was known."""
    reads = {
        "macro": bool(levels_of(subject)),
        "cot": bool(market_of(subject)),
        "company": reads_company(subject),
    }
    ticks = context.of_newest_ticks(instance, tick_queries.outside_statuses)
    counts = {
        block: sum(tick.get(block) == "available" for tick in ticks)
        for block in outside_words.BLOCKS
    }
    known = [
        f"{outside_words.BLOCKS[block]} in {number or 'none'}"
        for block, number in counts.items()
        if number or reads.get(block)
    ]
    if ticks and known:
        level = "ok" if any(counts.values()) else "note"
        detail = f"known in the last {len(ticks)} ticks: {', '.join(known)}"
        yield CheckResult(f"{instance.id} ticks", level, detail)
