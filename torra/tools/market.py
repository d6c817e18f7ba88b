"""Tools that read one stream: bars, scores, patterns, events, outside numbers, headlines, mood.

What a stored tick has is read from its record, under the ids of its evidence. Titles and texts of
headlines are never a fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from agents.contracts import VECTORS
from agents.features import name_of
from technical_calculator import WARM_UP, score_frame
from torra.clock import iso, parse
from torra.config import Instance
from torra.evidence import chart_patterns
from torra.evidence.expert_bars import WINDOW, ExpertBars
from torra.market.bar_view import BarArrays, BarView
from torra.store import bars as bar_table
from torra.store import news as news_table
from torra.store import tick_queries
from torra.tick.tick_record import TickRecord
from torra.tools.codes import ToolCode
from torra.tools.contract import Fact, ToolArgs, ToolError, code_of, fact
from torra.tools.desk_reader import DeskReader

Name = Annotated[str, Field(min_length=1, max_length=64)]
Timeframe = Literal["M1", "M5", "M15", "M30", "H1", "H4", "D1"]

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


class StreamArgs(ToolArgs):
    """A stream of the desk."""

    symbol: Name = Field(description="a symbol or an instance of the desk, such as BTCUSD")
    timeframe: Timeframe | None = Field(None, description="the shortest of the symbol by default")


class BarsArgs(StreamArgs):
    """A stream, and how many of its newest bars."""

    count: int = Field(5, ge=1, le=20, description="newest closed bars")


class TickArgs(StreamArgs):
    """A stream, and which of its stored ticks."""

    back: int = Field(0, ge=0, le=500, description="0 is the newest tick, 1 the one before")


class PatternArgs(StreamArgs):
    """A stream, and how far back a pattern may have been completed."""

    within: int = Field(5, ge=1, le=20, description="newest closed bars")


class StudyArgs(ToolArgs):
    """A pattern by its name."""

    pattern: Name = Field(description="such as double_top")


def stream(reader: DeskReader, args: StreamArgs) -> tuple[Instance, str]:
    """Return an instance and a timeframe; the shortest where none is named."""
    item = reader.instance(args.symbol)
    return item, args.timeframe or item.shortest


def place_of(record: TickRecord) -> str:
    """Return the beginning of the ids of a tick's facts."""
    return f"{record.instance}|{record.timeframe}@{record.bar_time}"


def tick_of(reader: DeskReader, args: StreamArgs, back: int = 0) -> TickRecord | None:
    """Return a stored tick of a stream, the newest unless further `back`; None without one."""
    item, timeframe = stream(reader, args)
    keys = tick_queries.newest_keys(reader.database, item.id, timeframe, reader.as_of, back + 1)
    return reader.tick(keys[back]) if len(keys) > back else None


def record_fact(
    record: TickRecord, key: str, value: float | str | None, name: str, unit: str = ""
) -> Fact:
    """Return a value of a record under the id of its tick and its key or feature."""
    return fact(
        f"{place_of(record)}/{key}", value, name, as_of=record.as_of, source=RECORD, unit=unit
    )


def features(record: TickRecord, *wanted: str) -> Iterator[Fact]:
    """Yield known features of a tick, by their ids or by their blocks."""
    for feature in record.features:
        block = feature.id.partition(".")[0]
        known = feature.value is not None and not feature.id.endswith("available")
        if known and (feature.id in wanted or block in wanted):
            name = name_of(feature.id)
            yield record_fact(record, feature.id, feature.value, name, feature.unit)


def fetch_bars(reader: DeskReader, args: BarsArgs) -> Iterable[Fact] | ToolError:
    """Give the newest closes with their ranges, and how good the newest bar is."""
    item, timeframe = stream(reader, args)
    rows = bar_table.newest_bars(
        reader.database, item.id, timeframe, as_of=reader.as_of, limit=args.count
    )
    if not rows:
        return ToolCode.NO_BARS.error()
    facts = [
        fact(
            f"{item.id}|{timeframe}@{row['bar_time']}/technical.close",
            row["close"],
            name_of("technical.close"),
            as_of=row["bar_time"],
            source=BARS,
            unit="price",
            sentence=f"The bar of {row['bar_time']} closed at {row['close']:.10g}, between "
            f"{row['low']:.10g} and {row['high']:.10g}.",
        )
        for row in reversed(rows)
    ]
    record = tick_of(reader, args)
    if record is not None and record.bar_time == rows[-1]["bar_time"]:
        facts += features(record, *QUALITY)
    return facts


def score_symbol(reader: DeskReader, args: TickArgs) -> Iterable[Fact] | ToolError:
    """Give the scores of a stored tick, its consensus, and what that lacks to a verdict."""
    record = tick_of(reader, args, args.back)
    if record is None:
        return ToolCode.NO_TICK.error() if args.back else _anew(reader, args)
    limits = record.thresholds
    return [
        *features(record, "scores"),
        *(
            record_fact(record, f"scores.{vector}.score", record.final(vector),
                        f"the blended {vector.replace('_', ' ')} score")
            for vector in VECTORS
        ),
        record_fact(record, "composite", record.composite, "the composite"),
        record_fact(record, "consensus", record.consensus, "the consensus"),
        record_fact(record, "verdict", record.verdict, "the verdict"),
        record_fact(record, "l1_consensus", record.l1_consensus, "the consensus without agents"),
        record_fact(record, "l1_verdict", record.l1_verdict, "the verdict without agents"),
        record_fact(record, "thresholds.buy", limits.buy - record.consensus,
                    "what the consensus lacks to BUY"),
        record_fact(record, "thresholds.sell", record.consensus + limits.sell,
                    "what the consensus lacks to SELL"),
    ]  # fmt: skip


def _anew(reader: DeskReader, args: StreamArgs) -> Iterable[Fact] | ToolError:
    """Return the four scores of the newest stored bar of a stream without a tick: no debate."""
    item, timeframe = stream(reader, args)
    frame = reader.database.load_bars(item.id, timeframe, as_of=reader.as_of, limit=WINDOW)
    if len(frame) < WARM_UP:
        return ToolCode.NO_BARS.error()
    row, opened = score_frame(frame).iloc[-1], iso(frame.index[-1].to_pydatetime())
    return [
        fact(f"{item.id}|{timeframe}@{opened}/scores.{vector}", float(row[vector]),
             f"{name_of(f'scores.{vector}')}, not debated,", as_of=opened, source=BARS)
        for vector in VECTORS
    ]  # fmt: skip


def detect_patterns(reader: DeskReader, args: PatternArgs) -> Iterable[Fact] | ToolError:
    """Give the chart patterns that the newest closes completed, newest first."""
    item, timeframe = stream(reader, args)
    frame = reader.database.load_bars(
        item.id, timeframe, as_of=reader.as_of, limit=WINDOW + WARM_UP + args.within
    )
    if len(frame) < WARM_UP + args.within + 1:
        return ToolCode.NO_BARS.error()
    shelf, atr = BarArrays(frame), score_frame(frame)["atr14"].to_numpy()
    done: list[dict[str, float]] = []
    for end in range(len(frame) - args.within, len(frame) + 1):
        bars = ExpertBars.of(BarView(shelf, 0, end), {"atr14": float(atr[end - 1])})
        patterns = chart_patterns.find(bars) if bars is not None else {}
        done.append({name: one.line for name, one in patterns.items() if one.done})
    facts = []
    for number in range(args.within, 0, -1):
        opened = iso(shelf.moment(len(frame) - args.within + number - 1))
        for name, line in done[number].items():
            if name not in done[number - 1]:
                facts.append(
                    fact(
                        f"pattern.{name}|{item.id}|{timeframe}@{opened}",
                        line,
                        f"the line of the {name.replace('_', ' ')}",
                        as_of=opened,
                        source=BARS,
                        unit="price",
                        sentence=f"The bar of {opened} completed a {name.replace('_', ' ')}, whose "
                        f"line is at {line:.10g}.",
                    )
                )
    return facts


def run_backtest(_: DeskReader, args: StudyArgs) -> ToolError:
    """Give the stored study of a pattern: none is stored yet."""
    del args
    return ToolCode.NO_STUDY.error()


def fetch_events(reader: DeskReader, args: StreamArgs) -> Iterable[Fact] | ToolError:
    """Give the scheduled events around the newest tick, and what is odd about its bar."""
    record = tick_of(reader, args)
    if record is None:
        return ToolCode.NO_TICK.error()
    facts = [*features(record, "events", "source.events", "market.triage")]
    for number, event in enumerate(record.events.events if record.events else ()):
        minutes = (event.time - parse(record.as_of)) / timedelta(minutes=1)
        name = f"the time to the event of {event.impact} impact for {code_of(event.currency)}"
        facts.append(record_fact(record, f"events.events.{number}", minutes, name, "min"))
    return facts


def fetch_outside(reader: DeskReader, args: StreamArgs) -> Iterable[Fact] | ToolError:
    """Give what the newest tick knew from beside the chart, and since when each series is known."""
    record = tick_of(reader, args)
    if record is None:
        return ToolCode.NO_TICK.error()
    facts = [*features(record, *OUTSIDE)]
    for name, row in (record.outside.seen if record.outside else {}).items():
        one = record_fact(record, f"outside.seen.{name}", row.value, f"the series {name}")
        facts.append(one.model_copy(update={"as_of": iso(row.known_at)}))
    return facts


def fetch_headlines(reader: DeskReader, args: StreamArgs) -> Iterable[Fact] | ToolError:
    """Give the headlines that the newest tick counted: class, tone and first time, no title."""
    record = tick_of(reader, args)
    if record is None:
        return ToolCode.NO_TICK.error()
    ids = [item.id for item in record.news.items] if record.news else []
    return [
        fact(
            f"{place_of(record)}/news.items.{item.id}",
            item.score,
            f"the tone of a headline about {code_of(item.event)}",
            as_of=iso(item.first_seen),
            source="headlines",
        )
        for item in news_table.news_items(reader.database, ids)
    ]


def analyse_sentiment(reader: DeskReader, args: StreamArgs) -> Iterable[Fact] | ToolError:
    """Give the lexicon's mean tone of the newest tick, the mood, and what agents judged of it."""
    record = tick_of(reader, args)
    if record is None:
        return ToolCode.NO_TICK.error()
    numbers = features(record, "news", "sentiment")
    # words among them may be a stranger's
    facts = [one for one in numbers if not isinstance(one.value, str)]
    for report in record.deliberation.reports:
        for name, value in report.ordinals.items():
            words = f"the {name.replace('_', ' ')} of the news, as {report.agent_id} judged it"
            facts.append(record_fact(record, f"ordinals.{report.agent_id}.{name}", value, words))
    return facts
