"""`torra doctor`: checks that everything a desk needs is there.

Each check answers with ok, a sentence and, where something must be mended, the remedy. A check that
breaks is a finding too. Nothing is changed but this: a database of an older version is migrated, as
at any start, after its backup. No secret is shown.
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from agent_config import MODES, VENDORS, AgentSettings, is_plug_in
from agents.registry import AGENTS
from instance_database import Database, open_home
from torra import owner_only
from torra.backup.restore import command
from torra.clock import System, duration, floor, iso
from torra.config import ROOT, DeskSettings, Instance, Profile, load_desk, load_profile
from torra.desk import start_check, timeframe_clocks, wiring
from torra.desk.memory import reviews, shelves
from torra.desk.models import call_words
from torra.desk.models.embedders import open_embedder
from torra.desk.outlook import subject_of
from torra.desk.watches import desk_sign
from torra.errors import ConfigError, DataUnavailable, TorraError
from torra.evaluation.wording import count
from torra.evidence import flow_readings
from torra.evidence.companion_readings import Lack
from torra.evidence.outside_numbers import EDGAR, PUBLISHERS, series_of
from torra.evidence.outside_readings import STOCK, levels_of, reads_company, series_for
from torra.evidence.scheduled_events import ScheduledEvent
from torra.feeds.protocol import Feed, stream_state
from torra.feeds.sample import SampleFeed
from torra.home import DATABASE, PRICES
from torra.market import plausibility
from torra.news.event_file import read_events
from torra.notices import listing
from torra.notices.protocol import NoticePlace
from torra.plugins.loading import brought, load, of_home, versions
from torra.providers import call_health
from torra.providers.prices import PriceList
from torra.providers.registry import check, check_vendor
from torra.providers.vendors.clients import VendorClients
from torra.providers.vendors.table import warning
from torra.store import ledger as ledger_table
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.tick.spending import tick_worst_case
from torra.trading import channels
from torra.verdict.one_sided import TICKS, verdict_balance
from torra.words.ticks import FLOW

READ_FROM_NEWS: Final = ("news.score", "sentiment.news")
"""Features that are computed from headlines."""

READ_FROM: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "fred": ("macro.yield_10y", "yields and the dollar", "fundamental", ""),
    "cftc": ("cot.rank", "positions", "sentiment", 'write agents.mode "full", or '),
    EDGAR: ("company.pe", "the figures of companies", "fundamental", ""),
}
"""Of a publisher: a feature that it feeds, what that is, and the analyst that reads it."""

FUNDAMENTAL: Final = "fundamental"
"""The analyst that reads what a market is worth."""

HELD_UP: Final = "see docs/install.md: a desk that is paused"
"""Where a person reads on."""

UNSENT: Final = "torra notices lists them, torra notices test tries again (docs/notices.md)"

IMPLAUSIBLE: Final = (
    "import mended bars with --revise, filler with --leave-out flat --revise (docs/bars.md)"
)

COMPANION: Final = "docs/outside.md says what a companion needs of its feed"

RECORD_AGE: Final = timedelta(days=365)
"""The records of a shorter history are told: a market's true high may lie before it."""

NEWEST_BARS: Final = 50_000
"""Bars of a stream at whose plausibility a check looks: half a second each."""

TESTED_PYTHONS: Final = ((3, 11), (3, 12), (3, 13))
PACKAGES: Final = (
    "flask", "numpy", "pandas", "pandas-ta-classic", "sqlite-utils", "apscheduler", "pydantic",
    "click", "waitress", "anthropic", "google-genai", "openai", "genai-prices", "finnhub-python",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found; `level` is ok, warning or error."""

    name: str
    level: str
    detail: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Whether the desk can run as it is."""
        return self.level != "error"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for --json."""
        return asdict(self)

    def line(self) -> str:
        """Return the finding for a terminal."""
        mark = {"ok": "ok     ", "warning": "warning", "error": "ERROR  "}[self.level]
        remedy = f"  -> {self.remedy}" if self.remedy else ""
        return f"{mark}  {self.name:<12} {self.detail}{remedy}"


@dataclass(frozen=True, slots=True)
class HomeContext:
    """The subject of all checks: a desk's home, with the environment that holds its keys."""

    home: Path
    environment: Mapping[str, str]


Check = Callable[[HomeContext], Iterator[CheckResult]]


def run(home: Path) -> list[CheckResult]:
    """Run every check; reads the whole database."""
    return _run(home, os.environ, (LOG_CHECK, *QUICK, DATABASE_CHECK))


def quick_checks(home: Path, environment: Mapping[str, str]) -> list[CheckResult]:
    """Run the checks that neither open nor read the database: for a page, in a second or two."""
    return _run(home, environment, QUICK)


def _run(
    home: Path, environment: Mapping[str, str], checks: Sequence[tuple[str, Check]]
) -> list[CheckResult]:
    place = HomeContext(home, environment)
    findings: list[CheckResult] = []
    told: set[str] = set()
    for name, look in checks:
        try:
            findings += look(place)
        except TorraError as error:
            if str(error) not in told:  # every check reads the profiles; one word is enough
                findings.append(CheckResult(name, "error", str(error), "mend what the line names"))
            told.add(str(error))
    return findings


def _python(place: HomeContext) -> Iterator[CheckResult]:
    del place
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] not in TESTED_PYTHONS:
        yield CheckResult(
            "python", "warning", f"{found} is untested", "use Python 3.11, 3.12 or 3.13"
        )
    else:
        yield CheckResult("python", "ok", found)


def _packages(place: HomeContext) -> Iterator[CheckResult]:
    del place
    for package in PACKAGES:
        try:
            yield CheckResult("package", "ok", f"{package} {version(package)}")
        except PackageNotFoundError:
            yield CheckResult("package", "error", f"{package} is missing", "run make run again")


def _sqlite(place: HomeContext) -> Iterator[CheckResult]:
    del place
    if trouble := start_check.of_sqlite(sqlite3.sqlite_version_info):
        yield CheckResult("sqlite", "warning", trouble.what, trouble.remedy)
    else:
        yield CheckResult("sqlite", "ok", sqlite3.sqlite_version)


def _home(place: HomeContext) -> Iterator[CheckResult]:
    """Check that the disk has room, and that the last restore ended."""
    home = place.home
    for trouble in (*start_check.of_disk(home), start_check.of_restore(home)):
        if trouble is not None:
            yield CheckResult("home", "error", trouble.what, trouble.remedy)
            return
    if owner_only.open_to_others(home):
        told = f"others of this machine can read {home}"
        remedy = f"start the desk once, or: chmod 700 {home}"
        yield CheckResult("home", "warning", told, remedy)
    folder = home if home.exists() else home.absolute().parent
    yield CheckResult(
        "home", "ok", f"{home}: {shutil.disk_usage(folder).free // 1_000_000} MB free"
    )


def _clock(place: HomeContext) -> Iterator[CheckResult]:
    now = System().real_now()
    for trouble in start_check.of_clock(place.home / DATABASE, now):
        yield CheckResult("clock", "error", trouble.what, trouble.remedy)
        return
    yield CheckResult("clock", "ok", iso(now.replace(microsecond=0)))


def _settings(place: HomeContext) -> Iterator[CheckResult]:
    home = place.home
    desk = load_desk(home)
    for instance in desk.instances:
        wiring.check_profile(load_profile(instance.profile, home), instance)
        frames = ", ".join(instance.timeframes)
        yield CheckResult(
            "instance",
            "ok",
            f"{instance.id}: {instance.symbol} on {frames}, feed {instance.feed}, "
            f"bridge {instance.bridge}, profile {instance.profile}",
        )


def _providers(place: HomeContext) -> Iterator[CheckResult]:
    """Check that each profile's vendors can be asked: address, key, models, prices, blocks."""
    home = place.home
    prices = PriceList.read(home / PRICES)
    board = VendorClients(place.environment, prices=prices)
    instances = load_desk(home).instances
    names = dict.fromkeys(instance.profile for instance in instances)
    found = {name: load_profile(name, home).agents for name in names}
    # Each vendor once, however many profiles name it.
    reached: dict[str, bool] = {}
    for vendor in dict.fromkeys(v for agents in found.values() for v in agents.vendors()):
        answer = _vendor(vendor, board)
        reached[vendor] = answer.ok
        yield answer
    today = System().real_now().date()
    for name, agents in found.items():
        # A vendor that cannot be asked was reported above; its models would only repeat it.
        if not all(reached[vendor] for vendor in agents.vendors()):
            continue
        try:
            check(agents, board, today, of_home(place.home, "providers"))
        except TorraError as error:
            yield CheckResult(
                "model", "error", f"profile {name}: {error}", "mend what the line names"
            )
            continue
        for vendor, model in agents.routes():
            if vendor in VENDORS and not board.address(vendor).local:
                yield from _model(name, vendor, model, prices, today)
        ticks = sum(len(item.timeframes) for item in instances if item.profile == name)
        yield from _ceiling(name, agents, ticks, prices, board)


def _news(place: HomeContext) -> Iterator[CheckResult]:
    """Check that the headlines which profiles ask for can be had."""
    for name, (profile, instances) in _profiles(place.home).items():
        if not profile.agents.include_news:
            continue
        yield from _news_of(name, profile, instances, place)


def _news_of(
    name: str, profile: Profile, instances: list[Instance], place: HomeContext
) -> Iterator[CheckResult]:
    from torra.news.source import open_sources  # noqa: PLC0415 - the vendors' clients are heavy

    sources = open_sources(profile.news, place.environment, place.home)
    for sentence, level, remedy in sources.described():
        yield CheckResult("news", level, f"profile {name}: {sentence}", remedy)
    desk = {role: AGENTS[role].role.evidence for role in profile.agents.desk() if role in AGENTS}
    if not any(feature.startswith(seen) for seen in desk.values() for feature in READ_FROM_NEWS):
        yield CheckResult(
            "news",
            "warning",
            f"profile {name}: headlines are collected, and no seated agent reads them",
            f'write agents.mode "{_seating("news")}", or add "news" to agents.active_agents',
        )
    if sources.vendors and any(instance.feed == "sample" for instance in instances):
        yield CheckResult(
            "news",
            "warning",
            f"profile {name}: the sample's bars are of {_sample_period()}, and what "
            f"{', '.join(sources.vendors)} brings is of today: no headline counts",
            'read headlines of that time from a file: news.sources ["file"], news.file',
        )


def _outside(place: HomeContext) -> Iterator[CheckResult]:
    """Check that who is named for numbers from beyond the chart can be asked, and is read."""
    for name, (profile, instances) in _profiles(place.home).items():
        yield from _publishers(name, profile, instances, place)
        yield from _companies(name, profile, instances, place)
        yield from _worth(name, profile, instances)


def _publishers(
    name: str, profile: Profile, instances: list[Instance], place: HomeContext
) -> Iterator[CheckResult]:
    asked = [source for source in PUBLISHERS if source in profile.outside.sources]
    if not asked:
        return
    from torra.outside.publisher import open_publishers  # noqa: PLC0415 - its line is heavy

    found = open_publishers(place.environment)
    for source in asked:
        read = {
            series.source
            for one in instances
            for wanted in series_for(subject_of(one, profile))
            if (series := series_of(wanted)) is not None
        }
        if source not in read:
            yield CheckResult(
                "outside",
                "warning",
                f"profile {name}: {source} is named, and no symbol of it reads what it publishes",
                f"say what its symbols are (symbols.*.asset), or take {source} out of "
                "outside.sources",
            )
            continue
        address = found[source].place
        whose = "" if address.official else ", a server of yours"
        told = f"profile {name}: {source} is asked at {address.origin[1]}{whose}"
        yield CheckResult("outside", "ok", told)
        yield from _unread(name, profile, source)


def _unread(name: str, profile: Profile, source: str) -> Iterator[CheckResult]:
    """Check that a seated analyst reads what a publisher brings."""
    block, what, analyst, mend = READ_FROM[source]
    roles = [AGENTS[role].role for role in profile.agents.desk() if role in AGENTS]
    if not any(role.kind == "analyst" and block.startswith(role.evidence) for role in roles):
        yield CheckResult(
            "outside",
            "warning",
            f"profile {name}: {source} is asked, and no seated analyst reads {what}",
            f'{mend}add "{analyst}" to agents.active_agents',
        )


def _companies(
    name: str, profile: Profile, instances: list[Instance], place: HomeContext
) -> Iterator[CheckResult]:
    """Check that EDGAR can be asked, and has a company to be asked for."""
    if EDGAR not in profile.outside.sources:
        return
    from torra.outside.edgar import CONTACT, open_edgar  # noqa: PLC0415 - its line is heavy

    found = open_edgar(place.environment)
    if not any(reads_company(subject_of(one, profile)) for one in instances):
        yield CheckResult(
            "outside",
            "warning",
            f"profile {name}: edgar is named, and no symbol of it is a company",
            "say which it is (symbols.*.asset stock and symbols.*.ticker), or take edgar out of "
            "outside.sources",
        )
    elif not found.enabled:
        yield CheckResult(
            "outside",
            "warning",
            f"profile {name}: edgar is named and not asked, for the SEC wants to know who asks",
            f"set {CONTACT} to an e-mail address or a URL at which you can be reached",
        )
    else:
        whose = "" if found.official else ", a server of yours"
        told = f"profile {name}: edgar is asked at {found.data.origin[1]}{whose}, with your contact"
        yield CheckResult("outside", "ok", told)
        yield from _unread(name, profile, EDGAR)


def _worth(name: str, profile: Profile, instances: list[Instance]) -> Iterator[CheckResult]:
    """Check that a seated fundamental analyst has something to read."""
    if FUNDAMENTAL not in profile.agents.desk():
        return
    # The figures of a company come with its news, or from its filings.
    news = profile.agents.include_news
    filings = {EDGAR, "file"} & {*profile.outside.sources}
    assets = {one.symbol: profile.symbol(one.symbol).asset for one in instances}
    if any(news and asset == STOCK for asset in assets.values()):
        return
    if filings and any(reads_company(subject_of(one, profile)) for one in instances):
        return
    classed = any(levels_of(subject_of(one, profile)) for one in instances)
    if classed and profile.outside.sources:
        return
    remedy = (
        'name a source in outside.sources, such as ["file"]'
        if classed
        else "say what its symbols are (symbols.*.asset: gold, index, fx, oil or stock, with its "
        "ticker in symbols.*.ticker)"
    )
    yield CheckResult(
        "outside",
        "warning",
        f"profile {name}: the fundamental analyst is seated and will abstain, for it reads nothing "
        f"of {', '.join(sorted(assets))}",
        f"{remedy}, or take fundamental out of agents.active_agents",
    )


def _seating(agent: str) -> str:
    """Return the cheapest mode that seats an agent."""
    return next(name for name, row in MODES.items() if agent in row.seats)


def _events(place: HomeContext) -> Iterator[CheckResult]:
    """Check that the calendars of scheduled events can be read, and what their windows cover."""
    home = place.home
    for name, (profile, instances) in _profiles(home).items():
        if not profile.events.calendar:
            continue
        found = read_events(home / profile.events.calendar)
        said = f"profile {name}: {len(found)} events in {profile.events.calendar}"
        replayed = any(instance.feed == "sample" for instance in instances)
        yield _of_sample(said, found) if replayed else _to_come(said, found)
        yield from _windows(name, profile, instances)


def _to_come(said: str, events: Sequence[ScheduledEvent]) -> CheckResult:
    if events[-1].time > System().real_now():
        return CheckResult("events", "ok", f"{said}, the last on {iso(events[-1].time)[:10]}")
    return CheckResult(
        "events",
        "warning",
        f"{said}, none to come: nothing keeps openings away from events",
        "put this week's events into it (docs/events.md)",
    )


def _of_sample(said: str, events: Sequence[ScheduledEvent]) -> CheckResult:
    """Check that a calendar is of the time of the sample's bars."""
    start, end = SampleFeed(ROOT / "sample_data").period()
    there = sum(start <= event.time <= end for event in events)
    said = f"{said}, {there or 'none'} in the sample's time, {_sample_period()}"
    if there:
        return CheckResult("events", "ok", said)
    return CheckResult(
        "events", "warning", said, "examples/events.csv is a calendar for the sample"
    )


def _sample_period() -> str:
    start, end = SampleFeed(ROOT / "sample_data").period()
    return f"{iso(start)[:10]} to {iso(end)[:10]}"


def _windows(name: str, profile: Profile, instances: list[Instance]) -> Iterator[CheckResult]:
    """Check that no bar closes before the window of an event that comes within the next bar."""
    before = profile.gate.event_before_minutes
    for instance in instances:
        wider = {
            timeframe: minutes
            for timeframe in instance.timeframes
            if (minutes := duration(timeframe).total_seconds() / 60) > before
        }
        if wider:
            yield CheckResult(
                "events",
                "warning",
                f"{instance.id} on {', '.join(wider)}: a bar that closes more than {before:g} "
                "minutes before an event may open a position that lives through it",
                f"raise gate.event_before_minutes of profile {name} to {max(wider.values()):g}",
            )


def _profiles(home: Path) -> dict[str, tuple[Profile, list[Instance]]]:
    """Return every profile of the desk by name, with the instances that use it."""
    found: dict[str, tuple[Profile, list[Instance]]] = {}
    for instance in load_desk(home).instances:
        if instance.profile not in found:
            found[instance.profile] = (load_profile(instance.profile, home), [])
        found[instance.profile][1].append(instance)
    return found


def _vendor(vendor: str, board: VendorClients) -> CheckResult:
    """Check that a provider can be asked."""
    if vendor == "recorded":
        remedy = "name another provider; torra journal replays stored ticks"
        return CheckResult("provider", "error", f"{vendor}: it is for replays", remedy)
    if vendor not in VENDORS:
        return CheckResult("provider", "ok", f"{vendor}: no key, no network, no cost")
    try:
        place = check_vendor(vendor, board)
    except TorraError as error:
        return CheckResult("provider", "error", f"{vendor}: {error}", "mend what the line names")
    where = "the vendor's own server" if place.official else "a server of yours, without its key"
    return CheckResult(
        "provider", "ok", f"{vendor}: {where}, {'free' if place.local else 'billed'}"
    )


def _ceiling(
    profile: str, agents: AgentSettings, ticks: int, prices: PriceList, board: VendorClients
) -> Iterator[CheckResult]:
    """Check that the hourly ceiling of a profile lets its ticks ask their agents.

    `ticks` is how many close together at most: every timeframe of every instance of the profile.
    """
    ceiling = agents.max_api_cost_per_hour
    worst = tick_worst_case(prices, agents, lambda vendor: board.address(vendor).local)
    if worst * ticks <= ceiling:
        return
    said = (
        "no tick can ask all its agents"
        if worst > ceiling
        else f"{ticks} that close together, {worst * ticks:.4f} USD, cannot all ask their agents"
    )
    yield CheckResult(
        "ceiling",
        "warning",
        f"profile {profile}: a tick costs {worst:.4f} USD at most, and "
        f"agents.max_api_cost_per_hour is {ceiling:.4f}: {said}",
        # Rounded up: a ceiling rounded down would warn again.
        f"raise it to {math.ceil(10_000 * worst * ticks) / 10_000:.4f} or more, or name models "
        "that cost less",
    )


def _model(
    profile: str, vendor: str, model: str, prices: PriceList, today: date
) -> Iterator[CheckResult]:
    """Check that a model will last, and that its price is known."""
    if ending := warning(vendor, model, today):
        yield CheckResult("model", "warning", f"profile {profile}: {ending}", "name another model")
    if prices.per_million(vendor, model) is None:
        yield CheckResult(
            "model",
            "warning",
            f"profile {profile}: no price is known for {vendor}:{model}; it is booked at the "
            "dearest model's",
            f"give its price in {PRICES}",
        )


def _trading(state: str, home: Path) -> CheckResult:
    if state == "ACTIVE":
        return CheckResult("state", "ok", "trading ACTIVE")
    return CheckResult("state", "warning", f"trading {state}", f"{command(home, 'resume')} ends it")


def _blocks(database: Database) -> Iterator[CheckResult]:
    for row in ledger_table.provider_blocks(database):
        yield CheckResult(
            "provider",
            "warning",
            f"{row.provider} is not asked until {row.until}: {row.reason}",
            "mend the key or the account, then start the desk again",
        )


def _models(place: HomeContext, database: Database) -> Iterator[CheckResult]:
    """Check that the newest calls to each model brought answers that can be used."""
    desks = [profile.agents for profile, _ in _profiles(place.home).values()]
    for one in call_health.health(desks, partial(ledger_table.newest_calls, database)):
        level, mend = "error" if one.failing else "ok", call_words.remedy(one, place.environment)
        yield CheckResult("calls", level, f"{one.name}: {call_words.line(one)}", mend)


def _log(place: HomeContext) -> Iterator[CheckResult]:
    """Check that the log has the newest commit; says nothing where it has."""
    for cut in start_check.of_log(place.home / DATABASE):
        yield CheckResult("log", "error", cut.what, cut.remedy)


def _database(place: HomeContext) -> Iterator[CheckResult]:
    home = place.home
    path = home / DATABASE
    if trouble := start_check.of_database(path):
        yield CheckResult("database", "error", trouble.what, trouble.remedy)
        return
    if not path.exists():
        yield CheckResult("database", "ok", f"{path} will be made at the first start")
        return
    database = open_home(home)
    try:
        yield CheckResult("database", "ok", f"{path}: sound, {path.stat().st_size // 1000} kB")
        for told in start_check.of_strangers(path):
            yield CheckResult("database", "ok", told)
        for trouble in start_check.of_orders(path):
            yield CheckResult("orders", "error", trouble.what, trouble.remedy)
        if desk := _desk(database):
            yield desk
        yield _trading(database.trading_state(), home)
        yield from _blocks(database)
        yield from _models(place, database)
        yield from _records(home, database)
        yield from _bars(home, database)
        yield from _sides(home, database)
        yield from _timeframes(home, database)
        yield from _unsent(place, database)
        yield from _lessons(home, database)
        yield from _streams(home, database)  # last: a feed may refuse to be opened
    finally:
        database.close()


def _desk(database: Database) -> CheckResult | None:
    """Check that a desk which has the home's lock also lives; None before the first desk."""
    run = claim_table.desk_run(database)
    if run is None:
        return None
    now = System().real_now()
    state, told = desk_sign(run, locked=database.desk_runs(), now=now)
    if state == "silent":
        return CheckResult("desk", "error", told, HELD_UP)
    if state == "killed":
        remedy = f"the next desk goes on from there: {command(database.path.parent, 'run')}"
        return CheckResult("desk", "warning", told, remedy)
    return CheckResult("desk", "ok", told)


def _streams(home: Path, database: Database) -> Iterator[CheckResult]:
    """Check that each stream that lives in real time has bars fresh enough for a tick."""
    settings = load_desk(home)
    instances = settings.instances
    place = HomeContext(home, os.environ)
    sound = [item for item in instances if not _unopened(item, settings, place)]  # told already
    for name, feed in wiring.open_feeds(sound, settings, home, database).items():
        # A sample lives in the past, where no bar is ever fresh.
        if feed.period() is not None:
            continue
        instance = next(item for item in instances if item.id == name)
        for timeframe in instance.timeframes:
            profile = load_profile(instance.profile, home)
            state = stream_state(feed, instance.symbol, timeframe, System().now(), profile)
            level = "warning" if state else "ok"
            yield CheckResult("stream", level, f"{name} {timeframe}: {state or 'fresh bars'}")
            yield from _flow(instance, timeframe, feed)
    yield from _companions(home, settings, sound, database)


def _companions(
    home: Path, settings: DeskSettings, sound: list[Instance], database: Database
) -> Iterator[CheckResult]:
    """Check that the feed has fresh bars of each companion."""
    now = System().now()
    # A sample lives in the past, where no bar is ever fresh.
    found = [item for item in sound if item.companions and item.feed != "sample"]
    readers = wiring.open_companions(found, settings, home, database, keep=False)
    for item in found:
        for timeframe in item.timeframes:
            for told in readers[item.id].look(timeframe, floor(now, timeframe)):
                fresh = told.lack in ("", Lack.LATE)
                yield CheckResult(
                    "companion",
                    "ok" if fresh else "warning",
                    f"{item.id}: {told.name} ({told.bars.symbol}) {timeframe}: "
                    f"{'fresh bars' if fresh else told.says}",
                    "" if fresh else COMPANION,
                )


def _flow(instance: Instance, timeframe: str, feed: Feed) -> Iterator[CheckResult]:
    """Check that a feed which brings order flow has that of its newest bar."""
    brings = getattr(feed, "flow", None)
    if brings is None:
        return
    with suppress(DataUnavailable):
        bars = feed.bars(instance.symbol, timeframe, System().now(), flow_readings.RECENT)
        times = [time.to_pydatetime() for time in bars.index]
        status = brings(instance.symbol, timeframe, times).status if times else "off"
        if status != "off":
            fault = status in flow_readings.FAULTS
            yield CheckResult(
                "order flow",
                "warning" if fault else "ok",
                f"{instance.id} {timeframe}: {FLOW[status].meaning if status in FLOW else status}",
                "the desk's log names the file and what is wrong with it" if fault else "",
            )


def _timeframes(home: Path, database: Database) -> Iterator[CheckResult]:
    """Check that the stored timeframes of an instance are of one clock, by their closes."""
    for instance in load_desk(home).instances:
        for shift in timeframe_clocks.shifts(database, instance, now=System().now()):
            yield CheckResult(
                "timeframes",
                "error",
                f"{instance.id}: {shift.line}",
                timeframe_clocks.REMEDY.format(instance.id),
            )


def _records(home: Path, database: Database) -> Iterator[CheckResult]:
    """Check that the records of each stream come from a history that deserves the name."""
    now = System().now()
    for instance in load_desk(home).instances:
        if instance.feed == "sample":  # it has the history that it has
            continue
        for timeframe in instance.timeframes:
            known = database.records(instance.id, timeframe, as_of=now)
            if known is None or known.since is None:
                continue
            said = (
                f"{instance.id} {timeframe}: record high {known.high:,.7g}, record low "
                f"{known.low:,.7g}, of the bars since {iso(known.since)[:10]}"
            )
            if now - known.since >= RECORD_AGE:
                yield CheckResult("record", "ok", said)
                continue
            yield CheckResult(
                "record",
                "warning",
                f"{said}: less than a year, so the record score may be wrong",
                f"{command(home, 'import')} FILE --symbol {instance.id} --timeframe {timeframe} "
                "brings older bars (docs/mt5.md)",
            )


def _bars(home: Path, database: Database) -> Iterator[CheckResult]:
    """Check that the newest stored bars of each stream are plausible, also beside each other."""
    for instance in load_desk(home).instances:
        known = None
        for timeframe in instance.timeframes:
            bars = database.load_bars(
                instance.id, timeframe, as_of=System().now(), limit=NEWEST_BARS
            )
            faults = plausibility.look(bars, timeframe, instance.symbol, known).faults
            stream = f"{instance.id} {timeframe}"
            for fault in faults:
                yield CheckResult("bars", "warning", f"{stream}: {fault}", IMPLAUSIBLE)
            if len(bars) and not faults:
                yield CheckResult("bars", "ok", f"{stream}: {count(len(bars), 'plausible bar')}")
            known = bars


def _lessons(home: Path, database: Database) -> Iterator[CheckResult]:
    """Say how many lessons there are; check each profile's reviews and embedder."""
    profiles = _profiles(home)
    setups = [(item, profile) for profile, items in profiles.values() for item in items]
    yield CheckResult("lessons", "ok", shelves.standing(database, setups))
    for name, (profile, _) in profiles.items():
        if why := reviews.unaskable(reviews.Paying(name, profile.agents)):
            remedy = f"name a vendor's model, or set agents.memory.review of {name} to rules"
            yield CheckResult("lessons", "warning", why, remedy)
        try:
            if profile.agents.remembers():
                open_embedder(profile.agents.memory.embedder)
        except ConfigError as error:
            remedy = f"name another agents.memory.embedder in profile {name}, or hashed"
            yield CheckResult("lessons", "error", str(error), remedy)


def _sides(home: Path, database: Database) -> Iterator[CheckResult]:
    """Check that no instance hardly buys or hardly sells."""
    for instance in load_desk(home).instances:
        counts = tick_queries.verdicts_of(database, instance.id, instance.timeframes, TICKS)
        if said := verdict_balance(counts):
            yield CheckResult(
                "verdicts",
                "warning",
                f"{instance.id}: {said}",
                "see whether the market went one way; else look at the thresholds and weights of "
                f"profile {instance.profile}",
            )


def _channels(place: HomeContext) -> Iterator[CheckResult]:
    """Check that each channel to MetaTrader 5 can be opened and that its advisor lives."""
    settings = load_desk(place.home)
    try:
        kinds = channels.check(settings, place.environment)
    except TorraError as error:
        yield CheckResult("channel", "error", str(error), "mend what the line names")
        return
    now = System().now()
    for name, kind in kinds.items():
        trouble = channels.trouble(name, kind, settings.channels[name], place.environment, now)
        if trouble:
            yield CheckResult("channel", "warning", f"{kind} {name}: {trouble}", "see docs/mt5.md")
        else:
            yield CheckResult("channel", "ok", f"{kind} {name}")


def _sample(place: HomeContext) -> Iterator[CheckResult]:
    del place
    missing = [
        name
        for name in ("BTCUSD_M15.csv", "BTCUSD_H1.csv", "EURUSD_H1.csv")
        if not (ROOT / "sample_data" / name).exists()
    ]
    if missing:
        yield CheckResult("sample", "error", f"missing {', '.join(missing)}", "get the files again")
    else:
        yield CheckResult(
            "sample", "ok", f"shipped bars are there; it is {iso(System().now())[:16]}Z"
        )


def _plug_ins(place: HomeContext) -> Iterator[CheckResult]:
    """Check what the packages bring that desk.json allows, and that what is named can be opened."""
    settings = load_desk(place.home)
    for package in settings.plugins:
        try:
            brings = brought(package)
        except ConfigError as error:
            yield CheckResult("plug-in", "error", str(error), "or take it out of plugins")
            continue
        told = ", ".join(brings) or "nothing that Torra knows"
        version = versions([f"{package}:any"])[package]
        yield CheckResult("plug-in", "ok", f"{package} {version} may be loaded: {told}")
    for item in settings.instances:
        if told := _unopened(item, settings, place):
            yield CheckResult("plug-in", "error", f"{item.id}: {told}", "see docs/extending.md")


def _notices(place: HomeContext) -> Iterator[CheckResult]:
    """Check that notices can be sent to the addresses that are set; says nothing where none is."""
    settings = load_desk(place.home)
    services = wiring.open_notices(place.home, settings, place.environment)
    told = NoticePlace(place.environment, place.home, settings.notices)
    if missing := listing.missing_extra(told):
        yield CheckResult("notices", "warning", "addresses are set, nothing is sent", missing)
    elif services:
        names = ", ".join(service.name for service in services)
        yield CheckResult("notices", "ok", f"sent to {names}")


def _unsent(place: HomeContext, database: Database) -> Iterator[CheckResult]:
    """Check that the last notice was taken by every service."""
    settings = load_desk(place.home)
    names = [one.name for one in wiring.open_notices(place.home, settings, place.environment)]
    if trouble := listing.trouble(database, names):
        told = f"the last notice was not taken: {trouble}"
        yield CheckResult("notices", "warning", told, UNSENT)


def _unopened(item: Instance, settings: DeskSettings, place: HomeContext) -> str:
    """Return why a plug-in that an instance names cannot be used, "" when it can."""
    try:
        if is_plug_in(item.feed):
            wiring.open_feeds([item], settings, place.home, None)
        if is_plug_in(item.bridge):
            load("bridges", item.bridge, settings.plugins)
    except TorraError as error:
        return str(error)
    return ""


QUICK: Final[tuple[tuple[str, Check], ...]] = (
    ("python", _python),
    ("packages", _packages),
    ("sqlite", _sqlite),
    ("home", _home),
    ("clock", _clock),
    ("channel", _channels),
    ("settings", _settings),
    ("plug-ins", _plug_ins),
    ("providers", _providers),
    ("news", _news),
    ("outside", _outside),
    ("events", _events),
    ("notices", _notices),
    ("sample", _sample),
)
LOG_CHECK: Final[tuple[str, Check]] = ("log", _log)
"""It comes first, and never in a desk's own process: see torra.backup.log_end."""

DATABASE_CHECK: Final[tuple[str, Check]] = ("database", _database)
"""It comes last, for it opens the database and reads it through."""
