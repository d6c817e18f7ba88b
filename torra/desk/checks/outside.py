"""The checks of what agents read from beside the chart: headlines, outside numbers, events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_config import MODES
from agents.registry import AGENTS
from torra.clock import duration, iso
from torra.config import ROOT, Instance, Profile
from torra.desk.checks.result import CheckResult, Context
from torra.desk.outlook import subject_of
from torra.evidence.outside_numbers import EDGAR, PUBLISHERS, series_of
from torra.evidence.outside_readings import STOCK, levels_of, reads_company, series_for
from torra.evidence.scheduled_events import ScheduledEvent
from torra.feeds.sample import SampleFeed
from torra.news.event_file import read_events

NEWS_FEATURES: Final = ("news.score", "sentiment.news")
"""Features that are computed from headlines."""

READERS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "fred": ("macro.yield_10y", "yields and the dollar", "fundamental", ""),
    "cftc": ("cot.rank", "positions", "sentiment", 'write agents.mode "full", or '),
    EDGAR: ("company.pe", "the figures of companies", "fundamental", ""),
}
"""Of a publisher: a feature that it feeds, what that is, and the analyst that reads it."""

FUNDAMENTAL: Final = "fundamental"
"""The analyst that reads what a market is worth."""


def news(context: Context) -> Iterator[CheckResult]:
    """Check that the headlines which profiles ask for can be had."""
    for name, (profile, instances) in context.profiles.items():
        if not profile.agents.include_news:
            continue
        from torra.news.source import open_sources  # noqa: PLC0415 - the vendors' clients are heavy

        sources = open_sources(profile.news, context.environment, context.home)
        for sentence, level, remedy in sources.described():
            grade = "ok" if level == "ok" else "warn"
            yield CheckResult("news", grade, f"profile {name}: {sentence}", remedy)
        roles = [AGENTS[role].role for role in profile.agents.desk() if role in AGENTS]
        if not any(
            feature.startswith(role.evidence) for role in roles for feature in NEWS_FEATURES
        ):
            # The cheapest mode that seats the analyst.
            mode = next(name for name, row in MODES.items() if "news" in row.seats)
            yield CheckResult(
                "news",
                "warn",
                f"profile {name}: headlines are collected, and no seated agent reads them",
                f'write agents.mode "{mode}", or add "news" to agents.active_agents',
            )
        if sources.vendors and any(instance.feed == "sample" for instance in instances):
            yield CheckResult(
                "news",
                "warn",
                f"profile {name}: the sample's bars are of {_sample_period()}, and what "
                f"{', '.join(sources.vendors)} brings is of today: no headline counts",
                'read headlines of that time from a file: news.sources ["file"], news.file',
            )


def outside(context: Context) -> Iterator[CheckResult]:
    """Check that who is named for numbers from beyond the chart can be asked, and is read."""
    for name, (profile, instances) in context.profiles.items():
        yield from _publishers(name, profile, instances, context)
        if EDGAR in profile.outside.sources:
            yield from _companies(name, profile, instances, context)
        yield from _worth(name, profile, instances)


def _publishers(
    name: str, profile: Profile, instances: list[Instance], context: Context
) -> Iterator[CheckResult]:
    sources = [source for source in PUBLISHERS if source in profile.outside.sources]
    if not sources:
        return
    from torra.outside.publisher import open_publishers  # noqa: PLC0415 - its line is heavy

    publishers = open_publishers(context.environment)
    wanted = {one for item in instances for one in series_for(subject_of(item, profile))}
    read = {series.source for one in wanted if (series := series_of(one)) is not None}
    for source in sources:
        if source not in read:
            yield CheckResult(
                "outside",
                "warn",
                f"profile {name}: {source} is named, and no symbol of it reads what it publishes",
                f"say what its symbols are (symbols.*.asset), or take {source} out of "
                "outside.sources",
            )
            continue
        address = publishers[source].place
        whose = "" if address.official else ", a server of yours"
        what = f"profile {name}: {source} is asked at {address.origin[1]}{whose}"
        yield CheckResult("outside", "ok", what)
        yield from _unread(name, profile, source)


def _unread(name: str, profile: Profile, source: str) -> Iterator[CheckResult]:
    """Check that a seated analyst reads what a publisher brings."""
    block, what, analyst, remedy = READERS[source]
    roles = [AGENTS[role].role for role in profile.agents.desk() if role in AGENTS]
    if not any(role.kind == "analyst" and block.startswith(role.evidence) for role in roles):
        yield CheckResult(
            "outside",
            "warn",
            f"profile {name}: {source} is asked, and no seated analyst reads {what}",
            f'{remedy}add "{analyst}" to agents.active_agents',
        )


def _companies(
    name: str, profile: Profile, instances: list[Instance], context: Context
) -> Iterator[CheckResult]:
    """Check that EDGAR can be asked, and has a company to be asked for."""
    from torra.outside.edgar import CONTACT, open_edgar  # noqa: PLC0415 - its line is heavy

    edgar = open_edgar(context.environment)
    if not any(reads_company(subject_of(item, profile)) for item in instances):
        yield CheckResult(
            "outside",
            "warn",
            f"profile {name}: edgar is named, and no symbol of it is a company",
            "say which it is (symbols.*.asset stock and symbols.*.ticker), or take edgar out of "
            "outside.sources",
        )
    elif not edgar.enabled:
        yield CheckResult(
            "outside",
            "warn",
            f"profile {name}: edgar is named and not asked, for the SEC wants to know who asks",
            f"set {CONTACT} to an e-mail address or a URL at which you can be reached",
        )
    else:
        whose = "" if edgar.official else ", a server of yours"
        what = f"profile {name}: edgar is asked at {edgar.data.origin[1]}{whose}, with your contact"
        yield CheckResult("outside", "ok", what)
        yield from _unread(name, profile, EDGAR)


def _worth(name: str, profile: Profile, instances: list[Instance]) -> Iterator[CheckResult]:
    """Check that a seated fundamental analyst has something to read."""
    if FUNDAMENTAL not in profile.agents.desk():
        return
    subjects = [subject_of(item, profile) for item in instances]
    assets = {item.symbol: profile.symbol(item.symbol).asset for item in instances}
    classed = any(map(levels_of, subjects))
    sources = {*profile.outside.sources}
    if (
        # The figures of a company come with its news, or from its filings.
        (profile.agents.include_news and STOCK in assets.values())
        or ({EDGAR, "file"} & sources and any(map(reads_company, subjects)))
        or (classed and sources)
    ):
        return
    remedy = (
        'name a source in outside.sources, such as ["file"]'
        if classed
        else "say what its symbols are (symbols.*.asset: gold, index, fx, oil or stock, with its "
        "ticker in symbols.*.ticker)"
    )
    yield CheckResult(
        "outside",
        "warn",
        f"profile {name}: the fundamental analyst is seated and will abstain, for it reads nothing "
        f"of {', '.join(sorted(assets))}",
        f"{remedy}, or take fundamental out of agents.active_agents",
    )


def events(context: Context) -> Iterator[CheckResult]:
    """Check that the calendars of scheduled events can be read, and what their windows cover."""
    for name, (profile, instances) in context.profiles.items():
        if not profile.events.calendar:
            continue
        calendar = read_events(context.home / profile.events.calendar)
        what = f"profile {name}: {len(calendar)} events in {profile.events.calendar}"
        if any(instance.feed == "sample" for instance in instances):
            yield _of_sample(what, calendar)
        elif calendar[-1].time > context.now:
            yield CheckResult("events", "ok", f"{what}, the last on {iso(calendar[-1].time)[:10]}")
        else:
            yield CheckResult(
                "events",
                "warn",
                f"{what}, none to come: nothing keeps openings away from events",
                "put this week's events into it (docs/events.md)",
            )
        yield from _windows(name, profile, instances)


def _of_sample(what: str, calendar: Sequence[ScheduledEvent]) -> CheckResult:
    """Check that a calendar is of the time of the sample's bars."""
    start, end = SampleFeed(ROOT / "sample_data").period()
    there = sum(start <= event.time <= end for event in calendar)
    what = f"{what}, {there or 'none'} in the sample's time, {_sample_period()}"
    if there:
        return CheckResult("events", "ok", what)
    return CheckResult("events", "warn", what, "examples/events.csv is a calendar for the sample")


def _sample_period() -> str:
    start, end = SampleFeed(ROOT / "sample_data").period()
    return f"{iso(start)[:10]} to {iso(end)[:10]}"


def _windows(name: str, profile: Profile, instances: list[Instance]) -> Iterator[CheckResult]:
    """Check that no bar closes before the window of an event that comes within the next bar."""
    before = profile.gate.event_before_minutes
    for instance in instances:
        lengths = {name: duration(name).total_seconds() / 60 for name in instance.timeframes}
        wider = {name: minutes for name, minutes in lengths.items() if minutes > before}
        if wider:
            yield CheckResult(
                "events",
                "warn",
                f"{instance.id} on {', '.join(wider)}: a bar that closes more than {before:g} "
                "minutes before an event may open a position that lives through it",
                f"raise gate.event_before_minutes of profile {name} to {max(wider.values()):g}",
            )
