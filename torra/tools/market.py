"""Tools that read one stream: bars, scores, patterns, events, outside numbers, headlines, mood.

What a stored tick has is read from its record, under the ids of its evidence. Titles and texts of
headlines are never a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import wraps
from typing import Any, Final

from agents.features import name_of
from technical_calculator import WARM_UP, score_frame
from torra.clock import duration, floor, iso, parse
from torra.evidence import chart_patterns
from torra.evidence.expert_bars import WINDOW, ExpertBars
from torra.market.bar_view import BarArrays, BarView
from torra.store import bars as bar_table
from torra.store import news as news_table
from torra.store import tick_queries
from torra.tick.tick_record import Damaged, TickRecord
from torra.tools.contract import Fact, Given, ToolResult, code_of, fact, facts_of, refusal
from torra.tools.desk_reader import DeskReader

RECORD: Final = "tick record"
BARS: Final = "stored bars"
QUALITY: Final = (
    "technical.atr14", "technical.gap_atr", "market.range_atr", "market.valid_bars",
    "market.bar_age", "market.spread_atr", "market.regime", "market.triage",
)  # fmt: skip
"""Features that say how good and how wide the newest bar is."""

OUTSIDE: Final = (
    "macro", "cot", "derivs", "positioning", "company", "fundamentals", "stakes", "forecast",
    "flow", "source",
)  # fmt: skip
"""Blocks of evidence from beside the chart."""


def stream(reader: DeskReader, args: Any) -> tuple[str, str]:
    """Return an instance and a timeframe; the shortest where none is named."""
    item = reader.instance(args.symbol)
    return item.id, args.timeframe or item.shortest


def tick_of(reader: DeskReader, args: Any) -> TickRecord | None:
    """Return the stored tick of a stream that lies `back` before the newest; None without one."""
    back = getattr(args, "back", 0)
    keys = tick_queries.newest_keys(reader.database, *stream(reader, args), reader.as_of, back + 1)
    record = reader.tick(keys[back]) if len(keys) > back else None
    return None if isinstance(record, Damaged) else record


def of_tick(
    work: Callable[[DeskReader, TickRecord], Iterable[Fact]],
) -> Callable[[DeskReader, Any], Given]:
    """Return a tool that reads the record of a stored tick."""

    @wraps(work)
    def run(reader: DeskReader, args: Any) -> Given:
        record = tick_of(reader, args)
        return refusal("NO_TICK") if record is None else work(reader, record)

    return run


def place_of(record: TickRecord) -> str:
    """Return the beginning of the ids of a tick's facts."""
    return f"{record.instance}|{record.timeframe}@{record.bar_time}/"


def record_fact(
    record: TickRecord, key: str, value: Any, name: str, unit: str = "", sentence: str = ""
) -> Fact:
    """Return a value of a record under the id of its tick and its key or feature."""
    return fact(place_of(record) + key, value, name, record.as_of, RECORD, unit, sentence)


def features(record: TickRecord, *wanted: str) -> Iterator[Fact]:
    """Yield known features of a tick, by their ids or by their blocks."""
    for one in record.features:
        known = one.value is not None and not one.id.endswith("available")
        if known and {one.id, one.id.partition(".")[0]} & {*wanted}:
            yield record_fact(record, one.id, one.value, name_of(one.id), one.unit)


def fetch_bars(reader: DeskReader, args: Any) -> Given:
    """Return the newest bars, and what the tick of the newest one says of it."""
    name, timeframe = stream(reader, args)
    rows = bar_table.newest_bars(
        reader.database, name, timeframe, as_of=reader.as_of, limit=args.count
    )
    facts: list[Fact] = []
    for row in reversed(rows):
        at = row["bar_time"]
        facts += facts_of("bar", row, f"{name}|{timeframe}@{at}/", at, BARS)
    record = tick_of(reader, args)
    if record and rows and record.bar_time == rows[-1]["bar_time"]:
        facts += features(record, *QUALITY)
    return facts or refusal("NO_BARS")


@of_tick
def score_symbol(_: DeskReader, record: TickRecord) -> Iterator[Fact]:
    """Yield the scores of a stored tick, and how far its consensus is from the nearer verdict."""
    yield from features(record, "scores")
    yield from facts_of("score", record, place_of(record), record.as_of, RECORD)
    limits, now = record.thresholds, record.consensus
    gap = min(limits.buy - now, limits.sell + now)
    yield record_fact(record, "distance", gap, "the distance to the nearer threshold")


def detect_patterns(reader: DeskReader, args: Any) -> Given:
    """Return each pattern with the newest closes that first completed it."""
    name, timeframe = stream(reader, args)
    limit = WINDOW + WARM_UP + args.count
    frame = reader.database.load_bars(name, timeframe, as_of=reader.as_of, limit=limit)
    if len(frame) <= WARM_UP + args.count:
        return refusal("NO_BARS")
    shelf, atr = BarArrays(frame), score_frame(frame)["atr14"].tolist()
    facts = []
    for end in range(len(frame), len(frame) - args.count, -1):
        before, done = (_done(shelf, atr, at) for at in (end - 1, end))
        at = iso(shelf.moment(end - 1))
        for pattern in sorted(done.keys() - before.keys()):
            key = f"pattern.{pattern}|{name}|{timeframe}@{at}"
            words = f"the line of the {pattern.replace('_', ' ')} that the bar of {at} completed"
            facts.append(fact(key, done[pattern], words, at, BARS, "price"))
    return facts


def _done(shelf: BarArrays, atr: list[float], end: int) -> dict[str, float]:
    """Return the lines of the patterns that are complete at the bar before `end`."""
    bars = ExpertBars.of(BarView(shelf, 0, end), {"atr14": atr[end - 1]})
    patterns = chart_patterns.find(bars) if bars else {}
    return {name: one.line for name, one in patterns.items() if one.done}


def run_backtest(_: DeskReader, __: Any) -> ToolResult:
    """Return that no study is stored."""
    return refusal("NO_STUDY")


@of_tick
def fetch_events(reader: DeskReader, record: TickRecord) -> Iterator[Fact]:
    """Yield the state of the calendar, the flags of the bar, each event, and the next close."""
    name, now = record.timeframe, reader.as_of
    left = (floor(now, name) + duration(name) - now) / timedelta(minutes=1)
    words = f"the time to the next close of {record.instance} {name}, if its market is open,"
    yield record_fact(record, "next_close", left, words, "min")
    yield from features(record, "events", "source.events", "market.triage")
    for number, event in enumerate(record.events.events if record.events else ()):
        minutes = (event.time - parse(record.as_of)) / timedelta(minutes=1)
        name = f"the time to an event of {event.impact} impact for {code_of(event.currency)}"
        yield record_fact(record, f"events.events.{number}", minutes, name, "min")


@of_tick
def fetch_outside(_: DeskReader, record: TickRecord) -> Iterator[Fact]:
    """Yield the blocks of OUTSIDE, and each series as of when it was known."""
    yield from features(record, *OUTSIDE)
    for name, row in (record.outside.seen if record.outside else {}).items():
        prefix = f"{place_of(record)}outside.seen.{name}"
        yield from facts_of("series", row, prefix, iso(row.known_at), row.source, name=name)


@of_tick
def fetch_headlines(reader: DeskReader, record: TickRecord) -> Iterator[Fact]:
    """Yield the tone of each headline by the id of its row."""
    ids = [item.id for item in record.news.items] if record.news else []
    for item in news_table.news_items(reader.database, ids):
        prefix, event = f"{place_of(record)}news.items.{item.id}", code_of(item.event)
        seen = iso(item.first_seen)
        yield from facts_of("headline", item, prefix, seen, "headlines", event=event)


@of_tick
def analyse_sentiment(_: DeskReader, record: TickRecord) -> Iterator[Fact]:
    """Yield the numbers of news and mood, and the ordinals of the agents that read the news."""
    # words among them may be a stranger's
    yield from (
        one for one in features(record, "news", "sentiment") if not isinstance(one.value, str)
    )
    for report in record.deliberation.reports:
        for key, value in report.ordinals.items():
            name = f"the {key.replace('_', ' ')} of the news, judged by {report.agent_id},"
            yield record_fact(record, f"ordinals.{report.agent_id}.{key}", value, name)
