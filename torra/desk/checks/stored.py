"""The checks of what a desk has stored: its state, its calls, its bars and its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from typing import Final

from instance_database import Database, open_home
from torra.backup.restore import command
from torra.clock import System, floor, iso
from torra.config import Instance
from torra.desk import timeframe_clocks, wiring
from torra.desk.checks.result import PAUSED, UNSENT, CheckResult, Context
from torra.desk.checks.settings import plug_in_fault
from torra.desk.memory import reviews, shelves
from torra.desk.models import call_words
from torra.desk.models.embedders import open_embedder
from torra.desk.watches import desk_sign
from torra.errors import ConfigError, DataUnavailable
from torra.evaluation.wording import count
from torra.evidence import flow_readings
from torra.evidence.companion_readings import Lack
from torra.feeds.protocol import Feed, stream_state
from torra.market import plausibility
from torra.notices import listing
from torra.providers import call_health
from torra.store import ledger as ledger_table
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.verdict.one_sided import TICKS, verdict_balance
from torra.words.ticks import FLOW

IMPLAUSIBLE: Final = (
    "import mended bars with --revise, filler with --leave-out flat --revise (docs/bars.md)"
)

COMPANION: Final = "docs/outside.md says what a companion needs of its feed"

RECORD_AGE: Final = timedelta(days=365)
"""The records of a shorter history are told: a market's true high may lie before it."""

NEWEST_BARS: Final = 50_000
"""Bars of a stream at whose plausibility a check looks: half a second each."""


def stored(context: Context) -> Iterator[CheckResult]:
    """Check what a sound database holds; says nothing where there is none yet."""
    if context.database.exists():
        with closing(open_home(context.home)) as database:
            for check in CHECKS:
                yield from check(context, database)


def desk(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that a desk which has the home's lock also lives; says nothing before the first one."""
    run = claim_table.desk_run(database)
    if run is None:
        return
    state, what = desk_sign(run, locked=database.desk_runs(), now=context.now)
    if state == "silent":
        yield CheckResult("desk", "alert", what, PAUSED)
    elif state == "killed":
        remedy = f"the next desk goes on from there: {command(context.home, 'run')}"
        yield CheckResult("desk", "warn", what, remedy)
    else:
        yield CheckResult("desk", "ok", what)


def trading(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that trading goes on."""
    state = database.trading_state()
    if state == "ACTIVE":
        yield CheckResult("state", "ok", "trading ACTIVE")
    else:
        remedy = f"{command(context.home, 'resume')} ends it"
        yield CheckResult("state", "warn", f"trading {state}", remedy)


def calls(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that providers are asked, and that the newest calls brought usable answers."""
    for row in ledger_table.provider_blocks(database):
        yield CheckResult(
            "provider",
            "warn",
            f"{row.provider} is not asked until {row.until}: {row.reason}",
            "mend the key or the account, then start the desk again",
        )
    desks = [profile.agents for profile, _ in context.profiles.values()]
    for model in call_health.health(desks, partial(ledger_table.newest_calls, database)):
        remedy = call_words.remedy(model, context.environment)
        what = f"{model.name}: {call_words.line(model)}"
        yield CheckResult("calls", "alert" if model.failing else "ok", what, remedy)


def records(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that the records of each stream come from a history that deserves the name."""
    now = System().now()
    for instance in context.settings.instances:
        # A sample has the history that it has.
        for timeframe in instance.timeframes if instance.feed != "sample" else ():
            known = database.records(instance.id, timeframe, as_of=now)
            if known is None or known.since is None:
                continue
            what = (
                f"{instance.id} {timeframe}: record high {known.high:,.7g}, record low "
                f"{known.low:,.7g}, of the bars since {iso(known.since)[:10]}"
            )
            if now - known.since >= RECORD_AGE:
                yield CheckResult("record", "ok", what)
                continue
            yield CheckResult(
                "record",
                "warn",
                f"{what}: less than a year, so the record score may be wrong",
                f"{command(context.home, 'import')} FILE --symbol {instance.id} --timeframe "
                f"{timeframe} brings older bars (docs/mt5.md)",
            )


def bars(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that the newest stored bars of each stream are plausible, also beside each other."""
    now = System().now()
    for instance in context.settings.instances:
        known = None
        for timeframe in instance.timeframes:
            newest = database.load_bars(instance.id, timeframe, as_of=now, limit=NEWEST_BARS)
            faults = plausibility.look(newest, timeframe, instance.symbol, known).faults
            stream = f"{instance.id} {timeframe}"
            for fault in faults:
                yield CheckResult("bars", "warn", f"{stream}: {fault}", IMPLAUSIBLE)
            if len(newest) and not faults:
                yield CheckResult("bars", "ok", f"{stream}: {count(len(newest), 'plausible bar')}")
            known = newest


def sides(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that no instance hardly buys or hardly sells."""
    for instance in context.settings.instances:
        counts = tick_queries.verdicts_of(database, instance.id, instance.timeframes, TICKS)
        if what := verdict_balance(counts):
            yield CheckResult(
                "verdicts",
                "warn",
                f"{instance.id}: {what}",
                "see whether the market went one way; else look at the thresholds and weights of "
                f"profile {instance.profile}",
            )


def timeframes(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that the stored timeframes of an instance are of one clock, by their closes."""
    for instance in context.settings.instances:
        for shift in timeframe_clocks.shifts(database, instance, now=System().now()):
            remedy = timeframe_clocks.REMEDY.format(instance.id)
            yield CheckResult("timeframes", "alert", f"{instance.id}: {shift.line}", remedy)


def unsent(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that the last notice was taken by every service."""
    services = wiring.open_notices(context.home, context.settings, context.environment)
    if trouble := listing.trouble(database, [item.name for item in services]):
        yield CheckResult("notices", "warn", f"the last notice was not taken: {trouble}", UNSENT)


def lessons(context: Context, database: Database) -> Iterator[CheckResult]:
    """Say how many lessons there are; check each profile's reviews and embedder."""
    profiles = context.profiles
    setups = [(item, profile) for profile, items in profiles.values() for item in items]
    yield CheckResult("lessons", "ok", shelves.standing(database, setups))
    for name, (profile, _) in profiles.items():
        if why := reviews.unaskable(reviews.Paying(name, profile.agents)):
            remedy = f"name a vendor's model, or set agents.memory.review of {name} to rules"
            yield CheckResult("lessons", "warn", why, remedy)
        try:
            if profile.agents.remembers():
                open_embedder(profile.agents.memory.embedder)
        except ConfigError as error:
            remedy = f"name another agents.memory.embedder in profile {name}, or hashed"
            yield CheckResult("lessons", "alert", str(error), remedy)


def streams(context: Context, database: Database) -> Iterator[CheckResult]:
    """Check that streams in real time, their order flow and companions have fresh bars."""
    settings, home = context.settings, context.home
    # A plug-in that cannot be opened was reported with the settings.
    usable = [item for item in settings.instances if not plug_in_fault(item, context)]
    for name, feed in wiring.open_feeds(usable, settings, home, database).items():
        # A sample lives in the past, where no bar is ever fresh.
        if feed.period() is not None:
            continue
        instance = next(item for item in usable if item.id == name)
        profile, now = context.profiles[instance.profile][0], System().now()
        for timeframe in instance.timeframes:
            state = stream_state(feed, instance.symbol, timeframe, now, profile)
            what = f"{name} {timeframe}: {state or 'fresh bars'}"
            yield CheckResult("stream", "warn" if state else "ok", what)
            yield from order_flow(instance, timeframe, feed)
    watching = [item for item in usable if item.companions and item.feed != "sample"]
    readers = wiring.open_companions(watching, settings, home, database, keep=False)
    for instance in watching:
        for timeframe in instance.timeframes:
            for row in readers[instance.id].look(timeframe, floor(System().now(), timeframe)):
                name = f"{instance.id}: {row.name} ({row.bars.symbol}) {timeframe}"
                if row.lack in ("", Lack.LATE):
                    yield CheckResult("companion", "ok", f"{name}: fresh bars")
                else:
                    yield CheckResult("companion", "warn", f"{name}: {row.says}", COMPANION)


def order_flow(instance: Instance, timeframe: str, feed: Feed) -> Iterator[CheckResult]:
    """Check that a feed which brings order flow has that of its newest bar."""
    read = getattr(feed, "flow", None)
    if read is None:
        return
    with suppress(DataUnavailable):
        newest = feed.bars(instance.symbol, timeframe, System().now(), flow_readings.RECENT)
        times = [time.to_pydatetime() for time in newest.index]
        status = read(instance.symbol, timeframe, times).status if times else "off"
        if status == "off":
            return
        fault = status in flow_readings.FAULTS
        meaning = FLOW[status].meaning if status in FLOW else status
        yield CheckResult(
            "order flow",
            "warn" if fault else "ok",
            f"{instance.id} {timeframe}: {meaning}",
            "the desk's log names the file and what is wrong with it" if fault else "",
        )


CHECKS: Final[tuple[Callable[[Context, Database], Iterator[CheckResult]], ...]] = (
    desk, trading, calls, records, bars, sides, timeframes, unsent, lessons,
    streams,  # last: a feed may refuse to be opened
)  # fmt: skip
