"""The checks of the page Health: one part of the desk each, its state and what a person can do.

PARTS is the list. A check looks at one part of the desk and yields its signs, from the database,
the files and the running desk. Nothing is changed, and no market or vendor is asked. What cannot be
seen from this process is `unknown`, never well. No key is shown, only whether one is set. The
screen Health decides how signs look.
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from agent_config import VENDORS
from instance_database import Database
from torra.clock import System, parse
from torra.dashboard.record.shown import NOT_COUNTED
from torra.dashboard.screens import health_outside
from torra.dashboard.screens.health_outside import NAMED, collectors, level_of
from torra.dashboard.streams import sources
from torra.dashboard.view import swarm_flags
from torra.dashboard.view.desk_values import StreamStatus
from torra.dashboard.view.desk_view import version
from torra.dashboard.view.health_context import HealthContext
from torra.dashboard.view.swarm_flags import Flagged
from torra.desk.checks.result import PAUSED, UNSENT, CheckResult
from torra.desk.memory import shelves
from torra.desk.models import call_words
from torra.desk.promotion import EARNED, next_look, standing_of, subjects_of
from torra.desk.watches import desk_sign
from torra.errors import ConfigError, SchemaMismatch
from torra.exhibits import figures
from torra.home import BACKUP_FOLDER
from torra.notices import listing
from torra.owner_only import OTHERS
from torra.providers import call_health
from torra.providers.call_health import ModelHealth
from torra.providers.vendors.addresses import address
from torra.store import ledger as ledger_table
from torra.store import notices as notice_table
from torra.store import radar_runs, tick_queries
from torra.store import ticks as claim_table
from torra.store.hosted import FEED
from torra.store.migrations import NEWEST, schema
from torra.store.trade.rows import BridgeRow, ProviderBlock

Signs = Iterator[CheckResult]

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
DAMAGED: Final = "a backup from before may have the record whole: torra restore lists the backups"
WAITS: Final = "wait for the close of the next bar"
START: Final = "start the desk: torra run"
ODD_SWARM: Final = "open a tick of now: its debate names who did not answer, and why"
SILENT_ROWS: Final = "its rows stay silent until outside numbers come: docs/outside.md"


def streams(context: HealthContext) -> Signs:
    """Yield a sign for each stream: its newest tick, its record, whether bars still come."""
    feeds = {item.id: item.feed for item in context.pages.settings.instances}
    for one in context.overview.instances:
        for row in one.streams:
            name = f"{one.instance} {row.timeframe}"
            yield _stream(name, row, feeds.get(one.instance, one.feed) or "")
            if row.damaged:
                why = f"the record of its newest tick is damaged: {figures.sanitize(row.damaged)}"
                yield CheckResult(f"{name} record", "warn", why, DAMAGED)


def _stream(name: str, row: StreamStatus, feed: str) -> CheckResult:
    age = f"the newest tick closed {figures.span(row.age_seconds)} ago"
    then = f"next close in {figures.countdown(row.next_in_seconds)}"
    if row.skipped:
        then += f"; skipped since: {row.skipped.reason}, {row.skipped.detail}"
    ticked, bar_age = row.age_seconds is not None, row.bar_age_seconds
    if row.stale and bar_age is not None and bar_age < (row.age_seconds or 0.0):
        why = f"stale: {age}, though bars have come since; {then}"
        return CheckResult(name, "alert", why, NO_TICK)
    if row.stale:
        what = age if ticked else f"the newest bar closed {figures.span(bar_age)} ago"
        why = f"stale: {what}, and no closed market explains it; {then}"
        return CheckResult(name, "alert", why, FEEDS.get(feed, "look at its feed"))
    if not ticked and bar_age is None:
        # another program's scorer brings its bars with its question
        level, remedy = "note" if feed == FEED else "warn", FIRST.get(feed, WAITS)
        return CheckResult(name, level, "no bar yet, so no tick can run", remedy)
    if not ticked:
        return CheckResult(name, "note", f"no tick yet; {then}", WAITS)
    if row.quiet:
        closes = f"no bars for {row.quiet.count} closes"
        why = f"{age}; {closes}: the market is closed, or there is a hole"
        return CheckResult(name, "note", why)
    return CheckResult(name, "ok", f"{age}; {then}")


def trading(context: HealthContext) -> Signs:
    """Yield the trading state and the standing alarms."""
    desk = context.overview.desk
    why = desk.trading_reason or "no reason was given"
    if desk.trading_state == "HALTED":
        remedy = "see Orders, then resume there or with torra resume"
        yield CheckResult("trading", "alert", f"HALTED, no signal is sent: {why}", remedy)
    elif desk.trading_state == "REDUCING":
        remedy = "resume on Orders, or with torra resume"
        yield CheckResult("trading", "warn", f"REDUCING, positions are closed only: {why}", remedy)
    elif desk.role == "HOSTED":
        yield CheckResult("trading", "ok", "nothing is sent: other scorers decide")
    else:
        yield CheckResult("trading", "ok", "ACTIVE: signals may be sent")
    for row in desk.alarms:
        remedy = "see Orders; torra resume ends alarms that you have looked at"
        what = f"{row.detail} (since {figures.moment(row.at)})"
        yield CheckResult(f"alarm {row.kind}", "alert", what, remedy)


def agents(context: HealthContext) -> Signs:
    """Yield the profiles whose agents do not simply count: in shadow, or with influence to earn."""
    for subject in subjects_of(context.setups):
        name = f"agents of {subject.name}"
        if subject.profile.agents.influence == "shadow":
            yield CheckResult(name, "note", NOT_COUNTED)
        elif subject.profile.agents.influence == EARNED:
            standing, _ = standing_of(context.database, subject.fingerprint)
            wanted = next_look(standing)
            ahead = "no look is left" if wanted is None else f"next look at {wanted:,} ticks"
            what = "promoted, they count" if standing.promoted else NOT_COUNTED
            level = "ok" if standing.promoted else "note"
            yield CheckResult(name, level, f"{what}; {standing.reason}; {ahead}")


def swarms(context: HealthContext) -> Signs:
    """Yield for each symbol that a swarm decides what its newest ticks flagged."""
    for instance, profile in context.setups:
        if not profile.agents.row().weighs:
            continue
        name = f"{instance.id} swarm"
        flagged = context.of_newest_ticks(instance, _flagged)
        if not flagged.ticks:
            yield CheckResult(name, "note", "no tick of experts is stored yet")
        elif flagged.grave(FAILING):
            yield CheckResult(name, "warn", swarm_flags.sentence(flagged), ODD_SWARM)
        else:
            remedy = SILENT_ROWS if flagged.silent else ""
            yield CheckResult(name, "ok", swarm_flags.sentence(flagged), remedy)


def _flagged(database: Database, instance: str, timeframes: Collection[str], limit: int) -> Flagged:
    return swarm_flags.counted(tick_queries.debate_flags(database, instance, timeframes, limit))


def desk(context: HealthContext) -> Signs:
    """Yield the desk and its process."""
    run = claim_table.desk_run(context.database)
    # a desk that only looks writes nothing of its own
    blocked = getattr(context.pages.desk, "pause_reason", "")
    if run is None and context.pages.settings.instances:
        yield CheckResult("desk", "warn", "no desk has worked on this database yet", START)
    elif run is None:
        yield CheckResult("desk", "ok", "no desk runs here: other scorers ask, and decide")
    elif blocked:
        yield CheckResult("desk", "alert", blocked, PAUSED)
    else:
        state, what = desk_sign(run, locked=context.database.desk_runs(), now=context.now)
        remedy = {"works": "", "silent": PAUSED}.get(state, START)
        yield CheckResult("desk", "alert" if remedy else "ok", what, remedy)


def clock(context: HealthContext) -> Signs:
    """Yield the state of the clocks."""
    run = claim_table.desk_run(context.database)
    ahead = parse(run["seen_at"]) - context.now if run else timedelta()
    # real clocks only move on: a sign ahead of now means that one of the two was set
    if ahead > SKEW:
        why = f"the desk was seen {figures.span(ahead.total_seconds())} in the future"
        remedy = "set the clock of this machine, then start the desk again"
        yield CheckResult("clock", "warn", why, remedy)
    # a desk that only looks has no timers and cannot be settling
    elif getattr(context.pages.desk, "settling", False):
        why = "the clock jumped a while ago; no bar is written off until it has settled"
        yield CheckResult("clock", "warn", why, "look whether this machine's time service runs")
    else:
        times = f"desk time {figures.moment(context.pages.now().isoformat(), seconds=True)}"
        real = figures.moment(context.now.isoformat())
        yield CheckResult("clock", "ok", f"{times}, real time {real}")


def wakes(context: HealthContext) -> Signs:
    """Yield the timers of a desk that runs in this process; nothing for a desk without them."""
    timers = getattr(context.pages.desk, "timers", dict)
    for name, (following, last) in timers().items():
        before = f"last {figures.moment(last.isoformat(), seconds=True)}" if last else "never yet"
        if following is None:
            remedy = "start the desk again: torra run"
            yield CheckResult(f"wakes {name}", "alert", f"no timer is set; {before}", remedy)
            continue
        wait = figures.countdown((following - context.now).total_seconds())
        yield CheckResult(f"wakes {name}", "ok", f"next in {wait} real time; {before} (desk time)")


def bridges(context: HealthContext) -> Signs:
    """Yield each bridge as it was stored last: what keeps it from sending, and its facts."""
    rows = context.database.bridges()
    for row in rows:
        yield _bridge(context, row)
    noted = {row.name for row in rows}
    routes = {item.route: item for item in context.pages.settings.instances}
    for route, item in routes.items():
        if route != "paper" and not noted & {route, item.channel, f"{item.bridge}:{item.channel}"}:
            remedy = "start the desk and the Expert Advisor (docs/mt5.md)"
            yield CheckResult(route, "unknown", "nothing was heard of it yet", remedy)
    if "paper" in routes:
        why = "fills are made here, on paper: no order leaves this machine"
        yield CheckResult("paper", "ok", why)


def _bridge(context: HealthContext, row: BridgeRow) -> CheckResult:
    age = context.now - parse(row.at)
    compared = figures.moment(row.reconciled_at) if row.reconciled_at else "never"
    facts = (("noted", figures.moment(row.at)), ("books compared", compared), *_facts(row))
    level, why, remedy = "ok", "may send", ""
    if row.deny:
        level, remedy = "alert", "mend what it names; see docs/guards.md"
        why = f"{row.deny}: {row.detail}"
    elif age > OLD_NOTE:
        level, remedy = "warn", START
        why = f"noted {figures.span(age.total_seconds())} ago: no desk looks after it"
    elif not row.reconciled_at:
        level, remedy = "warn", "wait a minute; then see docs/mt5.md"
        why = "its books were never compared: nothing is sent before that"
    return CheckResult(row.name, level, why, remedy, facts)


def _facts(row: BridgeRow) -> list[tuple[str, str]]:
    return [
        (
            name.replace("_", " "),
            {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value),
        )
        for name, value in row.account.items()
        if isinstance(value, (str, int, float)) and value != ""
    ]


def providers(context: HealthContext) -> Signs:
    """Yield each vendor: whether its key is set, whether it is asked, and how it answered."""
    desks = [profile.agents for _, profile in context.setups]
    used = {vendor for agents in desks for vendor in agents.vendors()}
    blocks = {row.provider: row for row in ledger_table.provider_blocks(context.database)}
    models = call_health.health(desks, partial(ledger_table.newest_calls, context.database))
    # vendors that cost money always; others only if they are used
    for name in (*VENDORS, *sorted(used - {*VENDORS, "none", ""})):
        own = [one for one in models if one.vendor == name]
        yield provider(name, name in used, blocks.get(name), own, context.pages.environment)


def provider(
    name: str,
    used: bool,
    block: ProviderBlock | None,
    models: Sequence[ModelHealth],
    environment: Mapping[str, str],
) -> CheckResult:
    """Return how a vendor stands: whether it can be asked, and how its models answered."""
    key, remedy = "not needed", ""
    if name in VENDORS:
        try:
            key = "set" if address(name, environment).official else "a server of yours"
        except ConfigError as error:
            key, remedy = "not set", str(error)
    facts = (("key", key), ("used", "yes" if used else "no"), *map(_answers, models))
    if block:
        why = f"not asked until {figures.moment(block.until)}: {block.reason}"
        remedy = "mend its key or its account, then start the desk again"
        return CheckResult(name, "warn", why, remedy, facts)
    if used and remedy:
        return CheckResult(name, "alert", f"used, and cannot be asked: {key}", remedy, facts)
    if failing := [one for one in models if one.failing]:
        why = "; ".join(f"{one.model}: {call_words.line(one)}" for one in failing)
        return CheckResult(name, "alert", why, call_words.remedy(failing[0], environment), facts)
    return CheckResult(name, "ok" if used else "note", "used" if used else "not used", "", facts)


def _answers(one: ModelHealth) -> tuple[str, str]:
    median = "" if one.median_ms is None else f"; median {one.median_ms:,.0f} ms"
    return one.model, f"{call_words.line(one)}{median}"


def news(context: HealthContext) -> Signs:
    """Yield the collector's topics if this process has one, and the state in the newest ticks."""
    collector = getattr(collectors(context), "collector", None)
    states = collector.status() if collector is not None else ()
    for state in states:
        level = level_of(str(state.status))
        why = f"{state.status}: {state.detail}" if state.detail else str(state.status)
        latest = figures.moment(state.polled_at.isoformat()) if state.polled_at else "not yet"
        facts = (
            ("asked", latest), ("items", str(state.items)), ("dropped", str(state.dropped)),
            ("failures", str(state.failures)), ("next", figures.span(state.due)),
        )  # fmt: skip
        remedy = NAMED if level == "warn" else ""
        yield CheckResult(f"news {state.source} {state.topic}", level, why, remedy, facts)
    if warning := sources.news_warning(context.overview.instances):
        yield CheckResult("news", "warn", warning, NAMED)
    elif not any(profile.agents.include_news for _, profile in context.setups):
        yield CheckResult("news", "note", "no profile reads headlines (agents.include_news)")
    elif not states:
        why = "this process collects none: a desk that runs tells more"
        yield CheckResult("news", "unknown", why)


def calendar(context: HealthContext) -> Signs:
    """Yield the calendars of scheduled events that profiles name."""
    names = sorted({profile.events.calendar for _, profile in context.setups} - {""})
    if warning := sources.calendar_warning(context.overview.instances):
        yield CheckResult("calendar", "warn", warning, "put a whole and newer file in its place")
    elif names:
        yield CheckResult("calendar", "ok", f"read: {', '.join(names)}")
    else:
        yield CheckResult("calendar", "note", "no profile names one (events.calendar)")


def database(context: HealthContext) -> Signs:
    """Yield disk room, write-ahead log, schema and backups of the database."""
    path = context.database.path
    log = _size(path.with_name(path.name + "-wal"))
    free = shutil.disk_usage(path.parent).free
    sizes = {"size": _size(path), "write-ahead log": log, "free": free}
    facts = tuple((name, _bytes(size)) for name, size in sizes.items())
    level, remedy = ("alert", "make room on its volume") if free < LITTLE_ROOM else ("ok", "")
    yield CheckResult("disk", level, f"{_bytes(free)} are free", remedy, facts)
    if log > LARGE_WAL:
        remedy = "a reader holds it open: end programs that look into the database for long"
        yield CheckResult("log", "warn", f"the write-ahead log has grown to {_bytes(log)}", remedy)
    try:
        yield CheckResult("schema", "ok", f"{schema(context.database.connection())} of {NEWEST}")
    except SchemaMismatch as error:  # a newer program was started meanwhile
        yield CheckResult("schema", "warn", error.what, error.remedy)
    backups = list((path.parent / BACKUP_FOLDER).glob("*.db"))
    if backups:
        newest = max(backups, key=lambda backup: backup.stat().st_mtime)
        yield CheckResult("backups", "ok", f"{len(backups)}, the newest {newest.name}")
    else:
        why = "none: torra backup makes one, and so does each change of the schema"
        yield CheckResult("backups", "note", why)
    yield CheckResult("lessons", "ok", shelves.standing(context.database, context.setups))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _bytes(number: int) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.1f} MB"


def sound(context: HealthContext) -> Signs:
    """Yield the last check of the whole database."""
    check = context.memory.database_check()
    when = figures.moment(check.at)
    if check.state == "running":
        yield CheckResult("sound", "note", "being read through now")
    elif check.state == "never":
        why = "not read through since this process began"
        yield CheckResult("sound", "unknown", why, "check it now")
    elif check.answer == "ok":
        yield CheckResult("sound", "ok", f"read through {when} (real time): nothing is damaged")
    else:
        remedy = "stop the desk, restore a backup"
        yield CheckResult("sound", "alert", f"{when}: {check.answer}", remedy)


def event_streams(context: HealthContext) -> Signs:
    """Yield whether pages learn of changes at once."""
    events = context.pages.events
    if events is None:
        yield CheckResult("streams", "note", "this process sends none: pages ask every few seconds")
    elif events.closed:
        yield CheckResult("streams", "warn", "closed: pages ask every few seconds")
    else:
        yield CheckResult("streams", "ok", "pages hear of changes at once")


def notices(context: HealthContext) -> Signs:
    """Yield whether the last notice was taken, where services have been tried."""
    tried = [str(row["service"]) for row in notice_table.notice_services(context.database)]
    if trouble := listing.trouble(context.database, tried):
        yield CheckResult("notices", "warn", f"the last notice was not taken: {trouble}", UNSENT)
    elif tried:
        yield CheckResult("notices", "ok", f"the last notice was taken by {', '.join(tried)}")


def reach(context: HealthContext) -> Signs:
    """Yield who can reach the pages."""
    if context.remote:
        remedy = "use a tunnel (SSH, WireGuard) instead where you can"
        yield CheckResult("reach", "warn", "the pages are served to other machines", remedy)
    else:
        yield CheckResult("reach", "ok", "this machine only")


def tokens(context: HealthContext) -> Signs:
    """Yield whether only the owner can read the tokens."""
    path = context.pages.home / "access.json"
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        yield CheckResult("tokens", "note", "no access.json: this process was given its tokens")
        return
    if os.name == "posix" and mode & OTHERS:
        remedy = f"chmod 600 {path}; if others may have read it: torra token --new"
        why = f"access.json can be read by others ({mode:o})"
        yield CheckResult("tokens", "alert", why, remedy)
    else:
        yield CheckResult("tokens", "ok", "access.json is its owner's alone")


def versions(context: HealthContext) -> Signs:
    """Yield the versions of Torra, Python, SQLite and the Expert Advisors."""
    torra = version() or "not installed as a package"
    advisors = [
        (f"Expert Advisor {row.name}", dict(_facts(row))) for row in context.database.bridges()
    ]
    facts = (
        ("Torra", torra),
        ("Python", platform.python_version()),
        ("SQLite", sqlite3.sqlite_version),
        *((name, account["ea version"]) for name, account in advisors if "ea version" in account),
    )
    yield CheckResult("versions", "ok", f"Torra {torra}", "", facts)


def checklist(context: HealthContext) -> Signs:
    """Yield the findings of `torra doctor`, apart from those that read the whole database."""
    findings = context.memory.findings(context.pages, context.now)
    yield from (finding for finding in findings if not _is_lasting(finding))


def lasting(context: HealthContext) -> Signs:
    """Yield what is known about this machine, and is no call to do anything."""
    yield from filter(_is_lasting, context.memory.findings(context.pages, context.now))


def _is_lasting(finding: CheckResult) -> bool:
    """Return whether a finding is of this machine for good: nobody can mend it from here."""
    return finding.name == "sqlite" and finding.level == "note"


Run = Callable[[HealthContext], Signs]


def radar(context: HealthContext) -> Signs:
    """Yield by what the scans of the last day and of 30 days were made."""
    for name, days in (("24 hours", 1), ("30 days", 30)):
        since = System().real_now() - timedelta(days=days)
        counts = radar_runs.mode_counts(context.database, since)
        total = sum(counts.values())
        said = ", ".join(f"{mode} {count / max(total, 1):.0%}" for mode, count in counts.items())
        level = "warn" if counts["cached"] + counts["error"] else "ok" if total else "note"
        remedy = "the page Radar says which stream fails, and why" if level == "warn" else ""
        yield CheckResult(name, level, f"{total} scans: {said}", remedy)


PARTS: Final[Mapping[str, tuple[str, tuple[Run, ...]]]] = {
    "trading": ("Trading", (trading, agents, swarms)),
    "streams": ("Feeds and streams", (streams,)),
    "scheduler": ("Scheduler", (desk, clock, wakes)),
    "bridges": ("Bridges and Expert Advisors", (bridges,)),
    "providers": ("Providers", (providers,)),
    "news": ("News and calendar", (news, calendar)),
    "beyond": ("Beyond the chart", (health_outside.numbers, health_outside.companions)),
    "radar": ("Radar", (radar,)),
    "database": ("Database", (database, sound)),
    "events": ("Event streams and notices", (event_streams, notices)),
    "access": ("Access", (reach, tokens)),
    "versions": ("Versions", (versions,)),
    "checklist": ("Checklist of torra doctor", (checklist,)),
    # told once, at the bottom of the page: nobody can mend it from here
    "lasting": ("", (lasting,)),
}
"""The parts of the desk by name, in the order of the page: what each is called, and its checks."""
