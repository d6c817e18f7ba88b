"""The data of a symbol page's chart as JSON: candles, scores, markers and levels.

Times are UTC seconds of a bar's open. Tones are names of colours. A missing score is None. Each bar
also carries the decision of its tick in words, for the legend and for the keyboard's cursor.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypedDict

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard.cells import price_lines, tick_words
from torra.dashboard.record.shown import ListedTick, TickView
from torra.dashboard.view.desk_values import ChartBars, PriceBar, Symbol
from torra.exhibits import figures
from torra.store.trade.rows import SignalRow
from torra.tick.tick_record import SignalRecord, ThresholdsRecord
from torra.verdict.order_levels import Levels
from torra.verdict.risk_engine import Position
from torra.words.orders import ACTIONS

HELD: Final = ("FILLED", "PARTIAL", "CLOSING")
"""States of a position that the market has executed."""

LINES: Final = (*VECTORS, "ath")
"""Scores that can be drawn below the price besides the consensus."""


class ThresholdPlaces(TypedDict):
    """The thresholds as numbers on the score axis, and as places on a spark."""

    buy: float | None
    sell: float | None
    buy_y: float | None
    sell_y: float | None


class Candle(TypedDict):
    """A bar."""

    time: int
    open: float | None
    high: float | None
    low: float | None
    close: float | None


class ChartPoint(TypedDict):
    """A point of a line."""

    time: int
    value: float


class Marker(TypedDict):
    """A marker at a bar."""

    time: int
    tone: str
    text: str
    kind: str


class PriceLevel(TypedDict):
    """A level of the open position, or of an order."""

    price: float
    title: str
    tone: str


class PriceData(TypedDict):
    """Bars and what lies over them: by the name of a line the prices of each of its columns."""

    digits: int
    candles: list[Candle]
    volume: list[float | None]
    over: dict[str, list[list[float | None]]]
    times: list[int]


class ChartData(PriceData):
    """The data of the chart; times are UTC seconds, tones are names of colours."""

    consensus: list[ChartPoint]
    l1: list[ChartPoint]
    markers: list[Marker]
    levels: list[PriceLevel]
    thresholds: ThresholdPlaces
    lines: dict[str, list[float | None]]
    told: list[str]


def chart(data: Symbol, drawn: ChartBars) -> ChartData:
    """Return the data of the chart; times are UTC seconds, tones are names of colours."""
    ticks = sorted(data.ticks, key=lambda tick: str(tick.bar_time))
    times = tuple(str(tick.bar_time) for tick in ticks)
    return {
        **prices(drawn._replace(ticks=times)),
        "consensus": _series((tick.bar_time, tick.consensus) for tick in ticks),
        "l1": _series((tick.bar_time, tick.l1_consensus) for tick in ticks),
        "markers": _tick_markers(ticks) + _fills(data, ticks) + _exits(data),
        "levels": _levels(data.held.position) if data.held else [],
        "thresholds": limits(data.thresholds),
        "lines": {name: [getattr(tick, name) for tick in ticks] for name in LINES},
        "told": [_told(tick) for tick in ticks],
    }


def limits(thresholds: ThresholdsRecord | None) -> ThresholdPlaces:
    """Return the thresholds as numbers on the score axis and as places on a spark."""
    # the profile has the sell threshold as a size: a SELL lies at minus that
    buy, low = (thresholds.buy, -thresholds.sell) if thresholds else (None, None)
    return {
        "buy": buy,
        "sell": low,
        "buy_y": None if buy is None else round((1 - buy) / 2 * figures.SPARK_HEIGHT, 2),
        "sell_y": None if low is None else round((1 - low) / 2 * figures.SPARK_HEIGHT, 2),
    }


def prices(data: ChartBars) -> PriceData:
    """Return bars and their lines alone, as a chart asks for older ones."""
    return {
        "digits": 5 if data.digits is None else data.digits,
        "candles": [_candle(bar) for bar in data.bars],
        "volume": [bar.volume for bar in data.bars],
        "over": over(data.columns),
        "times": [_seconds(at) for at in data.ticks],
    }


def moment(record: TickView, data: ChartBars, proposed: Levels | None = None) -> ChartData:
    """Return the chart at the close of a tick: what its agents saw, and the levels of its order.

    `proposed` are those of an order that waits or waited for a person.
    """
    signal = next((one for one in record.signals if one.kind == "open"), None) or proposed
    action = str(record.action)
    shown = figures.mark(action if action not in ("HOLD", "None") else record.verdict)
    marker = _marker(record.bar_time, shown.tone, ACTIONS.get(action, shown.word), action)
    return _without_scores(data, [marker], signal, record.thresholds)


def trade(row: SignalRow, data: ChartBars, timeframe: str) -> ChartData:
    """Return the chart of a trade on bars of a timeframe: its fill, its levels and its exit."""
    opening = figures.mark(f"OPEN_{row.side}")
    ends = [(row.opened_at, opening.tone, row.side.lower(), f"OPEN_{row.side}")]
    if row.closed_at:
        tone = figures.tone(row.profit, 0) or "flat"
        ends.append((row.closed_at, tone, _exit(row.close_reason, row.profit), "EXIT"))
    markers = [
        _marker(clock.iso(clock.floor(clock.parse(at), timeframe)), tone, text, kind)
        for at, tone, text, kind in ends
        if at
    ]
    return _without_scores(data, markers, row)


def _without_scores(
    data: ChartBars,
    markers: list[Marker],
    levels: SignalRecord | Levels | SignalRow | None,
    thresholds: ThresholdsRecord | None = None,
) -> ChartData:
    return {
        **prices(data),
        "consensus": [],
        "l1": [],
        "markers": markers,
        "levels": _levels(levels) if levels else [],
        "thresholds": limits(thresholds),
        "lines": {},
        "told": [],
    }


def over(columns: Mapping[str, Sequence[float | None]]) -> dict[str, list[list[float | None]]]:
    """Return the prices of each line by its name, without the lines whose columns are not there."""
    return {
        name: [[*columns[column]] for column in line.columns]
        for name, line in price_lines.LINES.items()
        if all(column in columns for column in line.columns)
    }


def _told(tick: ListedTick) -> str:
    """Return the decision of a bar's tick in words."""
    verdict = figures.mark(tick.verdict)
    return f"verdict {verdict.text.strip()}, action {tick_words.action(tick).text.strip()}"


def _candle(bar: PriceBar) -> Candle:
    return {
        "time": _seconds(bar.time),
        "open": bar.open,
        "high": bar.high,
        "low": bar.low,
        "close": bar.close,
    }


def _series(values: Iterable[tuple[str | None, float | None]]) -> list[ChartPoint]:
    return [{"time": _seconds(at), "value": value} for at, value in values if value is not None]


def _tick_markers(ticks: Sequence[ListedTick]) -> list[Marker]:
    """Return a marker for every action and for every verdict that was not carried out."""
    markers: list[Marker] = []
    before = None
    for tick in ticks:
        action, verdict = str(tick.action), tick.verdict
        if action not in ("HOLD", "None"):
            shown = figures.mark(action)
            markers.append(
                _marker(tick.bar_time, shown.tone, ACTIONS.get(action, shown.word), action)
            )
        # a verdict stands for many bars: only its first one is marked
        elif verdict in ("BUY", "SELL") and verdict != before:
            markers.append(_marker(tick.bar_time, "flat", "", str(verdict)))
        before = verdict
    return markers


def _fills(data: Symbol, ticks: Sequence[ListedTick]) -> list[Marker]:
    """Return a marker for each fill that no tick of this chart shows, as of an approved proposal.

    A tick's own action is drawn at its bar; its fill follows within the two bars after the close.
    """
    timeframe = data.stream.timeframe
    step = clock.duration(timeframe)
    markers = []
    for side, opened in sorted(set(_openings(data))):
        action = f"OPEN_{side}"
        closes = (clock.parse(str(t.bar_time)) + step for t in ticks if t.action == action)
        if any(close <= opened <= close + 2 * step for close in closes):
            continue
        bar_time = clock.iso(clock.floor(opened, timeframe))
        markers.append(_marker(bar_time, figures.mark(action).tone, side.lower(), action))
    return markers


def _openings(data: Symbol) -> Iterator[tuple[str, datetime]]:
    """Yield side and time of each fill: of ended trades and of the position that is held."""
    for row in data.trades:
        if row.side and row.opened_at:
            yield row.side, clock.parse(row.opened_at)
    held = data.held and data.held.position
    # a position that is only ordered has no fill to mark yet
    if held and held.state in HELD:
        yield "BUY" if held.side == "LONG" else "SELL", held.opened_at


def _exits(data: Symbol) -> list[Marker]:
    markers = []
    for trade in data.trades:
        closed = trade.closed_at
        if not closed:
            continue
        # a chart marks bars: an exit within a bar stands at that bar
        bar_time = clock.iso(clock.floor(clock.parse(closed), data.stream.timeframe))
        gain = trade.profit
        text = _exit(trade.close_reason, gain)
        markers.append(_marker(bar_time, figures.tone(gain, 0) or "flat", text, "EXIT"))
    return markers


def _exit(reason: str | None, gain: float | None) -> str:
    return f"{figures.sanitize(reason or 'exit', 20)} {figures.format_signed(gain, 0)}"


def _marker(bar_time: str | None, tone: str, text: str, kind: str) -> Marker:
    return {"time": _seconds(bar_time), "tone": tone, "text": text, "kind": kind}


def _levels(of: Position | SignalRecord | Levels | SignalRow) -> list[PriceLevel]:
    """Return the levels of a position or of an order, as far as it has them."""
    found = (("entry", "note", of.entry), ("stop", "down", of.stop), ("target", "up", of.target))
    return [
        {"price": price, "title": name, "tone": tone}
        for name, tone, price in found
        if price is not None
    ]


def _seconds(moment: str | None) -> int:
    return int(clock.parse(str(moment)).timestamp())
