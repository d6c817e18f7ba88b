"""The signs of the screen Health: one part of the desk each, its state and what a person can do.

Each function looks at one part of the desk and yields its signs, from the database, the files and
the running desk. Nothing is changed, and no market or vendor is asked. What cannot be seen from
this process is `unknown`, never well. No key is shown, only whether one is set. The screen Health
decides how signs look.
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_config import VENDORS
from instance_database import Database
from torra.clock import duration, iso, parse
from torra.config import DeskSettings, Instance
from torra.dashboard.cells import sources
from torra.dashboard.record.shown import NOT_COUNTED
from torra.dashboard.view import swarm_flags
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_values import DeskStatus, Overview, StreamStatus
from torra.dashboard.view.desk_view import RunningSetup, version
from torra.dashboard.view.kept import LruCache
from torra.dashboard.view.swarm_flags import Flagged
from torra.desk.checks.result import HELD_UP, LEVELS, UNSENT, CheckResult
from torra.desk.memory import shelves
from torra.desk.models import call_words
from torra.desk.outlook import subject_of
from torra.desk.promotion import EARNED, PromotionSubject, next_look, standing_of
from torra.desk.watches import desk_sign
from torra.errors import ConfigError, SchemaMismatch
from torra.evidence.company_facts import ANNUAL, FIGURES
from torra.evidence.company_figures import REPORT_DELAY
from torra.evidence.flow_readings import FAULTS
from torra.evidence.outside_numbers import EDGAR, StoredRow, series_of
from torra.evidence.outside_readings import levels_of, market_of, reads_company, series_for
from torra.exhibits import figures
from torra.exhibits.beyond import flow_words, outside_words
from torra.exhibits.beyond.outside_words import PUBLISHERS
from torra.home import BACKUP_FOLDER
from torra.notices import listing
from torra.owner_only import OTHERS
from torra.providers import call_health
from torra.providers.call_health import ModelHealth
from torra.providers.vendors.addresses import address
from torra.store import bars as bar_table
from torra.store import flow as flow_table
from torra.store import ledger as ledger_table
from torra.store import notices as notice_table
from torra.store import series as series_table
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.store.hosted import FEED
from torra.store.migrations import NEWEST, schema
from torra.store.trade.rows import BridgeRow, ProviderBlock
from torra.words.ticks import FLOW, STATUSES

if TYPE_CHECKING:
    from torra.collecting.asking import TopicState
    from torra.feeds.companions import CompanionReader
    from torra.feeds.companions import CompanionReading as CompanionTold
    from torra.outside.collector import SeriesCollector

SKEW: Final = timedelta(seconds=30)
"""A sign of life this far in the future was given by another clock than this one."""

OLD_NOTE: Final = timedelta(minutes=3)
"""A bridge's state is stored every minute (trading.courier); an older one is of a dead desk."""

LARGE_WAL: Final = 64_000_000
LITTLE_ROOM: Final = 200_000_000
"""Bytes."""

FAILING: Final = 0.5
"""Share of ticks with something grave from which a swarm gets a warning."""

FEEDS: Final = {
    "sample": "the shipped bars come by themselves while the desk runs: see Scheduler",
    "store": "bring bars: torra import FILE, or give the instance a live feed in desk.json",
    "mt5_files": "start the terminal and its Expert Advisor (docs/mt5.md)",
    "mt5_direct": "start the terminal and log it in (docs/mt5.md)",
    "host": "your scorer has asked about no newer bar: see that it runs (docs/overlay.md)",
}
"""What to do when a stream is stale, by its feed."""

FIRST: Final = {**FEEDS, "host": "it comes with the first question of your scorer"}
"""What to do when a stream never had a bar, by its feed."""

NO_TICK: Final = "start the desk: torra run; its log names each tick that failed"

WAITS: Final = "wait for the close of the next bar"

WELL: Final = ("available", "empty")
ODD_SWARM: Final = "open a tick of now: its debate names who did not answer, and why"
SILENT_ROWS: Final = "its rows stay silent until outside numbers come: docs/outside.md"
OLD_NUMBER: Final = "see above how its publisher answers"
COMPANION_REMEDY: Final = "docs/outside.md says what a companion needs of its feed"
SHARED: Final = 200
"""Newest ticks of a symbol of which is told in how many a block of numbers was known."""


def _level(status: str) -> str:
    return STATUSES[status].tone if status in STATUSES else "warn"


def streams(overview: Overview, settings: DeskSettings) -> Iterator[CheckResult]:
    """Yield a sign for each stream: its newest tick, its record, whether bars still come."""
    feeds = {item.id: item.feed for item in settings.instances}
    for one in overview.instances:
        for row in one.streams:
            name = f"{one.instance} {row.timeframe}"
            yield _stream(name, row, feeds.get(one.instance, one.feed))
            if row.damaged:
                told = f"the record of its newest tick is damaged: {figures.sanitize(row.damaged)}"
                yield CheckResult(f"{name} record", "warn", told, DAMAGED)


DAMAGED: Final = "a backup from before may have the record whole: torra restore lists the backups"


def _stream(name: str, row: StreamStatus, feed: str | None) -> CheckResult:
    age = f"the newest tick closed {figures.span(row.age_seconds)} ago"
    then = f"next close in {figures.countdown(row.next_in_seconds)}"
    if row.skipped:
        then += f"; skipped since: {row.skipped.reason}, {row.skipped.detail}"
    if row.stale:
        if row.bar_age_seconds is not None and row.bar_age_seconds < (row.age_seconds or 0.0):
            told = f"stale: {age}, though bars have come since; {then}"
            return CheckResult(name, "alert", told, NO_TICK)
        bar = f"the newest bar closed {figures.span(row.bar_age_seconds)} ago"
        told = f"stale: {bar if row.age_seconds is None else age}, and no closed market explains it"
        return CheckResult(
            name, "alert", f"{told}; {then}", FEEDS.get(feed or "", "look at its feed")
        )
    if row.age_seconds is None and row.bar_age_seconds is None:
        # another program's scorer brings its bars with its question
        level = "note" if feed == FEED else "warn"
        return CheckResult(
            name, level, "no bar yet, so no tick can run", FIRST.get(feed or "", WAITS)
        )
    if row.age_seconds is None:
        return CheckResult(name, "note", f"no tick yet; {then}", WAITS)
    if row.quiet:
        told = f"no bars for {row.quiet.count} closes: the market is closed, or there is a hole"
        return CheckResult(name, "note", f"{age}; {told}")
    return CheckResult(name, "ok", f"{age}; {then}")


def trading(desk: DeskStatus) -> Iterator[CheckResult]:
    """Yield the trading state and the standing alarms."""
    state, why = desk.trading_state, desk.trading_reason or "no reason was given"
    if state == "HALTED":
        remedy = "see Signals and positions, then resume there or with torra resume"
        yield CheckResult("trading", "alert", f"HALTED, no signal is sent: {why}", remedy)
    elif state == "REDUCING":
        remedy = "resume on Signals and positions, or with torra resume"
        yield CheckResult("trading", "warn", f"REDUCING, positions are closed only: {why}", remedy)
    else:
        hosted = desk.role == "HOSTED"
        told = "nothing is sent: other scorers decide" if hosted else "ACTIVE: signals may be sent"
        yield CheckResult("trading", "ok", told)
    for row in desk.alarms:
        remedy = "see Signals and positions; torra resume ends alarms that you have looked at"
        told = f"{row.detail} (since {figures.moment(row.at)})"
        yield CheckResult(f"alarm {row.kind}", "alert", told, remedy)


def agents(database: Database, subjects: Iterable[PromotionSubject]) -> Iterator[CheckResult]:
    """Yield the profiles whose agents do not simply count: in shadow, or with influence to earn."""
    for subject in subjects:
        influence = subject.profile.agents.influence
        if influence == "shadow":
            yield CheckResult(f"agents of {subject.name}", "note", NOT_COUNTED)
        elif influence == EARNED:
            standing, _ = standing_of(database, subject.fingerprint)
            wanted = next_look(standing)
            ahead = "no look is left" if wanted is None else f"next look at {wanted:,} ticks"
            level = "ok" if standing.promoted else "note"
            say = "promoted, they count" if standing.promoted else NOT_COUNTED
            yield CheckResult(
                f"agents of {subject.name}", level, f"{say}; {standing.reason}; {ahead}"
            )


def swarms(behind: PageContext, kept: LruCache[Flagged]) -> Iterator[CheckResult]:
    """Yield for each symbol that a swarm decides what its newest ticks flagged."""
    for one in behind.desk.setups.values():
        instance = one.instance
        if not one.profile.agents.row().weighs:
            continue
        streams = [(instance.id, timeframe) for timeframe in instance.timeframes]
        newest = tick_queries.newest_of(behind.database, streams)

        def made(instance: Instance = instance) -> Flagged:
            found = tick_queries.debate_flags(
                behind.database, instance.id, instance.timeframes, SHARED
            )
            return swarm_flags.counted(found)

        found = kept.get((instance.id, *(newest[stream][0] for stream in streams)), made)
        if not found.ticks:
            yield CheckResult(f"{instance.id} swarm", "note", "no tick of experts is stored yet")
        elif found.grave(FAILING):
            yield CheckResult(f"{instance.id} swarm", "warn", swarm_flags.told(found), ODD_SWARM)
        else:
            mend = SILENT_ROWS if found.silent else ""
            yield CheckResult(f"{instance.id} swarm", "ok", swarm_flags.told(found), mend)


def scheduler(behind: PageContext, now: datetime) -> Iterator[CheckResult]:
    """Yield the desk and its process, the state of the clocks, and each instance's next wake."""
    run = claim_table.desk_run(behind.database)
    yield _desk(behind, run, now)
    ahead = parse(run["seen_at"]) - now if run else timedelta()
    # a desk that only looks has no timers and cannot be settling
    jumped = bool(getattr(behind.desk, "settling", False))
    # real clocks only move on: a sign ahead of now means that one of the two was set
    if ahead > SKEW:
        told = f"the desk was seen {figures.span(ahead.total_seconds())} in the future"
        yield CheckResult(
            "clock", "warn", told, "set the clock of this machine, then start the desk again"
        )
    elif jumped:
        told = "the clock jumped a while ago; no bar is written off until it has settled"
        yield CheckResult("clock", "warn", told, "look whether this machine's time service runs")
    else:
        told = f"desk time {figures.moment(behind.now().isoformat(), seconds=True)}"
        yield CheckResult("clock", "ok", f"{told}, real time {figures.moment(now.isoformat())}")
    yield from _wakes(behind, now)


def _desk(behind: PageContext, run: Mapping[str, Any] | None, now: datetime) -> CheckResult:
    start = "start the desk: torra run"
    if run is None and behind.settings.instances:
        return CheckResult("desk", "warn", "no desk has worked on this database yet", start)
    if run is None:
        return CheckResult("desk", "ok", "no desk runs here: other scorers ask, and decide")
    # a desk that only looks writes nothing of its own
    if held_up := getattr(behind.desk, "held_up", ""):
        return CheckResult("desk", "alert", held_up, HELD_UP)
    state, told = desk_sign(run, locked=behind.database.desk_runs(), now=now)
    if state == "works":
        return CheckResult("desk", "ok", told)
    return CheckResult("desk", "alert", told, HELD_UP if state == "silent" else start)


def _wakes(behind: PageContext, now: datetime) -> Iterator[CheckResult]:
    """Yield the timers of a desk that runs in this process; nothing for a desk without them."""
    tell = getattr(behind.desk, "timers", None)
    for name, (following, last) in (tell() if callable(tell) else {}).items():
        before = f"last {figures.moment(last.isoformat(), seconds=True)}" if last else "never yet"
        if following is None:
            remedy = "start the desk again: torra run"
            yield CheckResult(f"wakes {name}", "alert", f"no timer is set; {before}", remedy)
            continue
        wait = figures.countdown((following - now).total_seconds())
        yield CheckResult(f"wakes {name}", "ok", f"next in {wait} real time; {before} (desk time)")


def bridges(behind: PageContext, now: datetime) -> Iterator[CheckResult]:
    """Yield each bridge as it was stored last: what keeps it from sending, and its facts."""
    rows = behind.database.bridges()
    noted = {row.name for row in rows}
    for row in rows:
        yield _bridge(row, now)
    routes = {item.route: item for item in behind.settings.instances}
    for route, item in routes.items():
        if route != "paper" and not noted & {route, item.channel, f"{item.bridge}:{item.channel}"}:
            remedy = "start the desk and the Expert Advisor (docs/mt5.md)"
            yield CheckResult(route, "unknown", "nothing was heard of it yet", remedy)
    if "paper" in routes:
        yield CheckResult(
            "paper", "ok", "fills are made here, on paper: no order leaves this machine"
        )


def _bridge(row: BridgeRow, now: datetime) -> CheckResult:
    age = now - parse(row.at)
    compared = figures.moment(row.reconciled_at) if row.reconciled_at else "never"
    facts = (("noted", figures.moment(row.at)), ("books compared", compared), *_facts(row))
    if row.deny:
        told = f"{row.deny}: {row.detail}"
        return CheckResult(row.name, "alert", told, "mend what it names; see docs/guards.md", facts)
    if age > OLD_NOTE:
        told = f"noted {figures.span(age.total_seconds())} ago: no desk looks after it"
        return CheckResult(row.name, "warn", told, "start the desk: torra run", facts)
    if not row.reconciled_at:
        told = "its books were never compared: nothing is sent before that"
        return CheckResult(row.name, "warn", told, "wait a minute; then see docs/mt5.md", facts)
    return CheckResult(row.name, "ok", "may send", "", facts)


def _facts(row: BridgeRow) -> list[tuple[str, str]]:
    return [
        (
            name.replace("_", " "),
            {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value),
        )
        for name, value in row.account.items()
        if isinstance(value, (str, int, float)) and value != ""
    ]


def providers(behind: PageContext) -> Iterator[CheckResult]:
    """Yield each vendor: whether its key is set, whether it is asked, and how it answered."""
    desks = [setup.profile.agents for setup in behind.desk.setups.values()]
    used = {vendor for desk in desks for vendor in desk.vendors()}
    blocks = {row.provider: row for row in ledger_table.provider_blocks(behind.database)}
    models = call_health.health(desks, partial(ledger_table.newest_calls, behind.database))
    # vendors that cost money always; others only if they are used
    for name in (*VENDORS, *sorted(used - {*VENDORS, "none", ""})):
        own = [one for one in models if one.vendor == name]
        yield _provider(name, name in used, blocks.get(name), own, behind)


def _provider(
    name: str,
    used: bool,
    block: ProviderBlock | None,
    models: Sequence[ModelHealth],
    behind: PageContext,
) -> CheckResult:
    key, remedy = _key(name, behind.environment)
    facts = (("key", key), ("used", "yes" if used else "no"), *map(_answers, models))
    if block:
        told = f"not asked until {figures.moment(block.until)}: {block.reason}"
        mend = "mend its key or its account, then start the desk again"
        return CheckResult(name, "warn", told, mend, facts)
    if used and remedy:
        return CheckResult(name, "alert", f"used, and cannot be asked: {key}", remedy, facts)
    failing = [one for one in models if one.failing]
    if failing:
        told = "; ".join(f"{one.model}: {call_words.line(one)}" for one in failing)
        return CheckResult(
            name, "alert", told, call_words.remedy(failing[0], behind.environment), facts
        )
    return CheckResult(name, "ok" if used else "note", "used" if used else "not used", "", facts)


def _key(name: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return whether a vendor's key is set, and the remedy if it is needed; never the key."""
    if name not in VENDORS:
        return "not needed", ""
    try:
        place = address(name, environment)
    except ConfigError as error:
        return "not set", str(error)
    return ("set" if place.official else "a server of yours"), ""


def _answers(one: ModelHealth) -> tuple[str, str]:
    median = "" if one.median_ms is None else f"; median {one.median_ms:,.0f} ms"
    return one.model, f"{call_words.line(one)}{median}"


def news(behind: PageContext, overview: Overview) -> Iterator[CheckResult]:
    """Yield the collector's topics if this process has one, and the state in the newest ticks."""
    # A page of another process looks at a desk without a roster.
    outlook = getattr(getattr(behind.desk, "roster", None), "outlook", None)
    collector = getattr(outlook, "collector", None)
    states = collector.status() if collector is not None else ()
    for state in states:
        level = _level(str(state.status))
        told = f"{state.status}: {state.detail}" if state.detail else str(state.status)
        asked = figures.moment(state.asked_at.isoformat()) if state.asked_at else "not yet"
        facts = (
            ("asked", asked), ("items", str(state.items)), ("dropped", str(state.dropped)),
            ("failures", str(state.failures)), ("next", figures.span(state.due)),
        )  # fmt: skip
        mend = "torra doctor names what to mend" if level == "warn" else ""
        yield CheckResult(f"news {state.source} {state.topic}", level, told, mend, facts)
    instances = overview.instances
    wanted = any(setup.profile.agents.include_news for setup in behind.desk.setups.values())
    if told := sources.news_warning(instances):
        yield CheckResult("news", "warn", told, "torra doctor names what to mend")
    elif not wanted:
        yield CheckResult("news", "note", "no profile reads headlines (agents.include_news)")
    elif not states:
        yield CheckResult(
            "news", "unknown", "this process collects none: a desk that runs tells more"
        )
    calendars = {s.profile.events.calendar for s in behind.desk.setups.values()} - {""}
    if told := sources.calendar_warning(instances):
        yield CheckResult("calendar", "warn", told, "put a whole and newer file in its place")
    elif calendars:
        yield CheckResult("calendar", "ok", f"read: {', '.join(sorted(calendars))}")
    else:
        yield CheckResult("calendar", "note", "no profile names one (events.calendar)")


def beyond(behind: PageContext, shares: LruCache[list[dict[str, Any]]]) -> Iterator[CheckResult]:
    """Yield the numbers from beyond the chart: who is asked, how old each is, who had them.

    `shares` keeps how the blocks of the newest ticks stood.
    """
    yield from _series_signs(behind, shares)
    for one in behind.desk.setups.values():
        yield from companion_signs(behind, one)


def _series_signs(
    behind: PageContext, shares: LruCache[list[dict[str, Any]]]
) -> Iterator[CheckResult]:
    """Yield how publishers answer, how old each series is, and in how many ticks it was known."""
    reading = [one for one in behind.desk.setups.values() if one.profile.outside.sources]
    if not reading:
        yield CheckResult("numbers", "note", "no profile reads any (outside.sources)")
        return
    outlook = getattr(getattr(behind.desk, "roster", None), "outlook", None)
    collector = getattr(outlook, "series", None)
    named = {name for one in reading for name in one.profile.outside.sources}
    asked = [name for name in PUBLISHERS if name in named]
    stored = [
        *_numbers(behind, reading, collector), *_companies(behind, reading),
        *_flow(behind, reading),
    ]  # fmt: skip
    if not stored and not asked:
        told = "nothing is stored yet: torra data import FILE, or name fred, cftc or edgar"
        yield CheckResult("numbers", "note", f"{told} in outside.sources")
        return
    filings = getattr(outlook, "filings", None)
    for name in asked:
        yield _publisher(name, filings if name == EDGAR else collector)
    yield from stored
    for one in reading:
        yield from _share(behind, one, shares)


def companion_signs(behind: PageContext, one: RunningSetup) -> Iterator[CheckResult]:
    """Yield each companion of an instance: its newest bar, or why there is nothing."""
    instance = one.instance
    reader: CompanionReader | None = getattr(one, "companions", None)
    read = reader.told() if reader is not None else []
    for name, symbol in instance.companions.items():
        told = [row for row in read if row.name == name]
        facts = tuple((row.timeframe, _companion_bar(row)) for row in told)
        title = f"{instance.id} {name}"
        if facts:
            lacks = [row.lack for row in told]
            # Where one timeframe is read, the feed has the symbol.
            level = "ok" if "" in lacks else max(map(_companion_level, lacks), key=LEVELS.index)
            said = f"{symbol}: {'; '.join(f'{timeframe} {what}' for timeframe, what in facts)}"
            mend = COMPANION_REMEDY if level == "warn" else ""
            yield CheckResult(title, level, said, mend, facts)
            continue
        stored = [
            f"{timeframe} {figures.moment(iso(newest + duration(timeframe)))}"
            for timeframe in instance.timeframes
            if (newest := bar_table.newest_companion(behind.database, instance, symbol, timeframe))
        ]
        known = f"; its newest stored bars closed: {', '.join(stored)}" if stored else ""
        yield CheckResult(title, "note", f"{symbol}: not read yet since this desk started{known}")


def _companion_level(lack: str) -> str:
    return "warn" if lack in ("missing", "clock", "broken") else "note"


def _companion_bar(row: CompanionTold) -> str:
    """Return when the newest bar of a companion closed, and what keeps it from counting."""
    closed = row.closed
    parts = [
        f"newest bar closed {figures.moment(iso(closed))}" if closed else "",
        figures.sanitize(row.says, 200),
    ]
    return ", ".join(filter(None, parts))


def _publisher(name: str, collector: SeriesCollector | None) -> CheckResult:
    """Return how a publisher of numbers answers, with each of its topics."""
    title = PUBLISHERS[name].removeprefix("the ")
    if collector is None:
        told = "this process asks nobody: a desk that runs tells more"
        return CheckResult(title, "unknown", told)
    states = [state for state in collector.status() if state.source == name]
    if not states:
        return CheckResult(
            title, "note", "asked for nothing: no symbol here reads what it publishes"
        )
    facts = tuple(
        (
            state.topic,
            f"{outside_words.brief(str(state.status))}, asked "
            f"{figures.moment(state.asked_at.isoformat()) if state.asked_at else 'not yet'}, "
            f"{state.items} values, {state.dropped} dropped, next in {figures.span(state.due)}",
        )
        for state in (states if name != EDGAR else _by_company(states))
        if str(state.status) != "no_key"
    )
    trouble = collector.trouble(name)
    if not trouble:
        return CheckResult(title, "ok", "answers", "", facts)
    details = [state.detail for state in states if str(state.status) == trouble and state.detail]
    told = ": ".join([outside_words.brief(trouble), *details[:1]])
    level = _level(trouble)
    return CheckResult(
        title, level, told, "torra doctor names what to mend" if level == "warn" else "", facts
    )


def _by_company(states: Iterable[TopicState]) -> Iterator[TopicState]:
    """Yield of each company one state for all its figures; of what is not of a figure each."""
    together: dict[str, TopicState] = {}
    for state in states:
        ticker, _, what = state.topic.rpartition(" ")
        if what not in FIGURES:
            yield state
            continue
        held = together.get(ticker, replace(state, topic=f"{ticker} figures", items=0, dropped=0))
        later = max(filter(None, (held.asked_at, state.asked_at)), default=None)
        together[ticker] = replace(
            held,
            status=max(held.status, state.status, key=lambda one: str(one) not in WELL),
            asked_at=later,
            items=held.items + state.items,
            dropped=held.dropped + state.dropped,
            due=min(held.due, state.due),
        )
    yield from together.values()


def _companies(behind: PageContext, reading: Sequence[RunningSetup]) -> Iterator[CheckResult]:
    """Yield of each company that a symbol is what is stored of its figures, or that nothing is."""
    now = behind.now()
    subjects = [subject_of(one.instance, one.profile) for one in reading]
    wanted = {one.ticker for one in subjects if reads_company(one)}
    stored = series_table.facts_told(behind.database) if wanted else []
    for ticker in sorted(wanted - {row["ticker"] for row in stored}):
        mend = "look at symbols.*.ticker, import a file of its figures, or name edgar"
        yield CheckResult(f"{ticker} figures", "note", "nothing is stored of this company", mend)
    for row in stored:
        if row["ticker"] in wanted:
            one = row["rows"] == 1
            told = (
                f"{row['rows']:,} value{'' if one else 's'} of {row['figures']} figure"
                f"{'' if row['figures'] == 1 else 's'}, for periods to {row['last'][:10]}, the "
                f"newest known since {figures.moment(row['known_at'])}"
            )
            # Beyond a year and the time that its report may take no figure counts.
            old = now - parse(row["last"]) > timedelta(days=ANNUAL.stop) + REPORT_DELAY
            yield CheckResult(
                f"{row['ticker']} figures",
                "warn" if old else "ok",
                f"{told}, too old to count" if old else told,
                "bring newer reports: a file, or edgar in outside.sources" if old else "",
            )


def _numbers(
    behind: PageContext, reading: Sequence[RunningSetup], collector: SeriesCollector | None
) -> Iterator[CheckResult]:
    """Yield each series that a symbol reads and that is stored or asked for; of a market one sign.

    The parts of a market's positions come together, so the first of them tells of all.
    """
    now = behind.now()
    # The sample's bars are of a time before anything was seen here.
    wanted: dict[bool, set[str]] = {True: set(), False: set()}
    for one in reading:
        names = series_for(subject_of(one.instance, one.profile))
        wanted[one.instance.feed != "sample"] |= {*names}
    wanted[False] -= wanted[True]
    found = {
        name: row
        for live, names in wanted.items()
        for name, row in series_table.series_at(
            behind.database, sorted(names), now, live=live
        ).items()
    }
    told: set[str] = set()
    for name in sorted(wanted[True] | wanted[False]):
        title = outside_words.series_title(name)
        row = found.get(name)
        if title in told:
            continue
        if row is not None:
            told.add(title)
            yield _number(title, row, now)
        elif collector is not None and str(collector.status_of(name)) != "off":
            told.add(title)
            yield CheckResult(title, "note", "nothing is stored yet")


def _number(title: str, one: StoredRow, now: datetime) -> CheckResult:
    series, row = series_of(one.row.name), one.row
    age = now - row.at
    old = series is not None and age > series.valid
    amount = outside_words.series_amount(row.name, row.value)
    value = "" if title.startswith("positions") else f"{amount} "
    told = (
        f"{value}of {iso(row.at)[:10]}, known since {figures.moment(iso(row.known_at))}, from "
        f"{outside_words.source_of(row.source)}; {figures.span(age.total_seconds())} old"
    )
    if not old:
        return CheckResult(title, "ok", told)
    by_file = row.source not in PUBLISHERS
    remedy = "bring newer values: torra data import FILE" if by_file else OLD_NUMBER
    return CheckResult(title, "warn", f"{told}, too old to count", remedy)


def _flow(behind: PageContext, reading: Sequence[RunningSetup]) -> Iterator[CheckResult]:
    """Yield the newest order flow of each stream whose feed brings any, or why there is none.

    A stream whose newest tick has it is in order, however long ago that is: the market may rest.
    """
    for one in reading:
        name = one.instance.id
        for timeframe in one.instance.timeframes:
            row = flow_table.newest_flow(behind.database, name, timeframe)
            newest = tick_queries.outside_statuses(behind.database, name, (timeframe,), 1)
            status = next((str(tick["flow"]) for tick in newest if tick.get("flow")), "")
            if not row and not status:
                continue
            title = f"{name} {timeframe} order flow"
            line = flow_words.in_a_line(row) if row else "none is stored yet"
            if status in ("", "available"):
                yield CheckResult(title, "ok", line)
                continue
            why = f"{line}; the newest tick had none: {outside_words.brief(status)}"
            level = "warn" if status in FAULTS else "note"
            yield CheckResult(title, level, why, FLOW[status].text if status in FLOW else "")


def _share(
    behind: PageContext, one: RunningSetup, shares: LruCache[list[dict[str, Any]]]
) -> Iterator[CheckResult]:
    """Yield in how many of the newest ticks of a symbol each block was known."""
    instance = one.instance
    subject = subject_of(instance, one.profile)
    reads = {
        "macro": bool(levels_of(subject)),
        "cot": bool(market_of(subject)),
        "company": reads_company(subject),
    }
    streams = [(instance.id, timeframe) for timeframe in instance.timeframes]
    newest = tick_queries.newest_of(behind.database, streams)
    ticks = shares.get(
        (instance.id, *(newest[stream][0] for stream in streams)),
        lambda: tick_queries.outside_statuses(
            behind.database, instance.id, instance.timeframes, SHARED
        ),
    )
    counts = {
        block: sum(tick.get(block) == "available" for tick in ticks)
        for block in outside_words.BLOCKS
    }
    known = [
        f"{outside_words.BLOCKS[block]} in {count or 'none'}"
        for block, count in counts.items()
        if count or reads.get(block)
    ]
    if ticks and known:
        level = "ok" if any(counts.values()) else "note"
        told = f"known in the last {len(ticks)} ticks: {', '.join(known)}"
        yield CheckResult(f"{instance.id} ticks", level, told)


def database(behind: PageContext) -> Iterator[CheckResult]:
    """Yield disk room, write-ahead log, schema and backups of the database."""
    path = behind.database.path
    size, log = _size(path), _size(path.with_name(path.name + "-wal"))
    free = shutil.disk_usage(path.parent).free
    facts = (("size", _bytes(size)), ("write-ahead log", _bytes(log)), ("free", _bytes(free)))
    if free < LITTLE_ROOM:
        yield CheckResult(
            "disk", "alert", f"{_bytes(free)} are free", "make room on its volume", facts
        )
    else:
        yield CheckResult("disk", "ok", f"{_bytes(free)} are free", "", facts)
    if log > LARGE_WAL:
        remedy = "a reader holds it open: end programs that look into the database for long"
        yield CheckResult("log", "warn", f"the write-ahead log has grown to {_bytes(log)}", remedy)
    try:
        yield CheckResult("schema", "ok", f"{schema(behind.database.connection())} of {NEWEST}")
    except SchemaMismatch as error:  # a newer program was started meanwhile
        yield CheckResult("schema", "warn", error.what, error.remedy)
    yield _backups(path.parent / BACKUP_FOLDER)
    setups = [(one.instance, one.profile) for one in behind.desk.setups.values()]
    yield CheckResult("lessons", "ok", shelves.standing(behind.database, setups))


def _backups(folder: Path) -> CheckResult:
    kept = sorted(folder.glob("*.db")) if folder.is_dir() else []
    if not kept:
        return CheckResult(
            "backups", "note", "none: torra backup makes one, and so does each change of the schema"
        )
    newest = max(kept, key=lambda path: path.stat().st_mtime)
    return CheckResult("backups", "ok", f"{len(kept)}, the newest {newest.name}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _bytes(number: int) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.1f} MB"


def event_streams(behind: PageContext) -> Iterator[CheckResult]:
    """Yield whether pages learn of changes at once."""
    events = getattr(behind, "events", None)
    if events is None:
        yield CheckResult("streams", "note", "this process sends none: pages ask every few seconds")
        return
    told = getattr(events, "status", None)
    facts = tuple((str(n), str(v)) for n, v in (told() if callable(told) else {}).items())
    closed = bool(getattr(events, "closed", False))
    if closed:
        yield CheckResult("streams", "warn", "closed: pages ask every few seconds", "", facts)
    else:
        yield CheckResult("streams", "ok", "pages hear of changes at once", "", facts)


def notices(behind: PageContext) -> Iterator[CheckResult]:
    """Yield whether the last notice was taken, where services have been tried."""
    tried = [str(row["service"]) for row in notice_table.notice_services(behind.database)]
    if trouble := listing.trouble(behind.database, tried):
        told = f"the last notice was not taken: {trouble}"
        yield CheckResult("notices", "warn", told, UNSENT)
    elif tried:
        yield CheckResult("notices", "ok", f"the last notice was taken by {', '.join(tried)}")


def access(behind: PageContext, remote: bool) -> Iterator[CheckResult]:
    """Yield who can reach the pages, and whether only the owner can read the tokens."""
    if remote:
        remedy = "use a tunnel (SSH, WireGuard) instead where you can"
        yield CheckResult("reach", "warn", "the pages are served to other machines", remedy)
    else:
        yield CheckResult("reach", "ok", "this machine only")
    path = behind.home / "access.json"
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        yield CheckResult("tokens", "note", "no access.json: this process was given its tokens")
        return
    if os.name == "posix" and mode & OTHERS:
        remedy = f"chmod 600 {path}; if others may have read it: torra token --new"
        yield CheckResult(
            "tokens", "alert", f"access.json can be read by others ({mode:o})", remedy
        )
    else:
        yield CheckResult("tokens", "ok", "access.json is its owner's alone")


def versions(noted: Iterable[BridgeRow]) -> Iterator[CheckResult]:
    """Yield the versions of Torra, Python, SQLite and the Expert Advisors."""
    facts = [
        ("Torra", version() or "not installed as a package"),
        ("Python", platform.python_version()),
        ("SQLite", sqlite3.sqlite_version),
    ]
    for row in noted:
        told = dict(_facts(row)).get("ea version")
        if told:
            facts.append((f"Expert Advisor {row.name}", told))
    yield CheckResult("versions", "ok", f"Torra {facts[0][1]}", "", tuple(facts))


def is_lasting(finding: CheckResult) -> bool:
    """Return whether a finding is of this machine for good: nobody can mend it from here."""
    return finding.name == "sqlite" and finding.level == "warn"


def lasting(findings: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """Yield what is known about this machine, and is no call to do anything."""
    for finding in filter(is_lasting, findings):
        yield replace(finding, level="note")


def checklist(findings: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """Yield the findings of `torra doctor`, apart from those that read the whole database."""
    packages = []
    for finding in findings:
        # one sign for all packages that are well: there are many, and nothing to do about them
        if finding.name == "package" and finding.level == "ok":
            packages.append(finding.detail)
        elif not is_lasting(finding):
            yield finding
    if packages:
        yield CheckResult("packages", "ok", ", ".join(packages))
