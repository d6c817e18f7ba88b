"""The data of a symbol page's chart as JSON: candles, scores, markers and levels.

Times are UTC seconds of a bar's open. Tones are names of colours. A missing score is None. Each bar
also carries the decision of its tick in words, for the legend and for the keyboard's cursor.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypedDict

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard.record.shown import ListedTick, TickView
from torra.dashboard.streams import price_lines, tick_words
from torra.dashboard.view.desk_values import ChartBars, Symbol
from torra.exhibits import figures, glances
from torra.store.trade.rows import SignalRow
from torra.tick.tick_record import SignalRecord, ThresholdsRecord
from torra.verdict.order_levels import Levels
from torra.verdict.risk_engine import Position
from torra.words.orders import ACTIONS

EXECUTED: Final = ("FILLED", "PARTIAL", "CLOSING")
"""States of a position that the market has executed."""

NO_ACTION: Final = ("HOLD", "None")

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
    """Return the data of the chart of a stream: its ticks, its trades and what it holds."""
    ticks = sorted(data.ticks, key=lambda tick: str(tick.bar_time))
    times = tuple(str(tick.bar_time) for tick in ticks)
    decisions = [(figures.mark(tick.verdict), tick_words.action(tick)) for tick in ticks]
    timeframe = data.stream.timeframe
    return {
        **_without_scores(
            drawn._replace(ticks=times),
            [
                *_tick_markers(ticks),
                *_fills(data, ticks),
                *(marker for row in data.trades for marker in _exit(row, timeframe)),
            ],
            data.holding and data.holding.position,
            data.thresholds,
        ),
        "consensus": _series(ticks, "consensus"),
        "l1": _series(ticks, "l1_consensus"),
        "lines": {name: [getattr(tick, name) for tick in ticks] for name in LINES},
        "told": [
            f"verdict {verdict.text.strip()}, action {action.text.strip()}"
            for verdict, action in decisions
        ],
    }


def limits(thresholds: ThresholdsRecord | None) -> ThresholdPlaces:
    """Return the thresholds as numbers on the score axis and as places on a spark."""
    # the profile has the sell threshold as a size: a SELL lies at minus that
    buy, sell = (thresholds.buy, -thresholds.sell) if thresholds else (None, None)
    return {"buy": buy, "sell": sell, "buy_y": _on_spark(buy), "sell_y": _on_spark(sell)}


def _on_spark(score: float | None) -> float | None:
    return None if score is None else round((1 - score) / 2 * glances.SPARK_HEIGHT, 2)


def prices(data: ChartBars) -> PriceData:
    """Return bars and their lines alone, as a chart asks for older ones."""
    return {
        "digits": 5 if data.digits is None else data.digits,
        "candles": [
            {
                "time": _seconds(bar.time),
                "open": bar.open,
                "high": bar.high,
                "low": bar.low,
                "close": bar.close,
            }
            for bar in data.bars
        ],
        "volume": [bar.volume for bar in data.bars],
        # without the lines whose columns are not there
        "over": {
            name: [[*data.columns[column]] for column in line.columns]
            for name, line in price_lines.LINES.items()
            if data.columns.keys() >= {*line.columns}
        },
        "times": [_seconds(at) for at in data.ticks],
    }


def moment(record: TickView, data: ChartBars, proposed: Levels | None = None) -> ChartData:
    """Return the chart at the close of a tick: what its agents saw, and the levels of its order.

    `proposed` are those of an order that waits or waited for a person.
    """
    signal = next((signal for signal in record.signals if signal.kind == "open"), None)
    action = str(record.action)
    shown = figures.mark(action if action not in NO_ACTION else record.verdict)
    marker = _marker(record.bar_time, shown.tone, ACTIONS.get(action, shown.word), action)
    return _without_scores(data, [marker], signal or proposed, record.thresholds)


def trade(row: SignalRow, data: ChartBars, timeframe: str) -> ChartData:
    """Return the chart of a trade on bars of a timeframe: its fill, its levels and its exit."""
    opened = [_fill(str(row.side), row.opened_at, timeframe)] if row.opened_at else []
    return _without_scores(data, [*opened, *_exit(row, timeframe)], row)


def _without_scores(
    data: ChartBars,
    markers: list[Marker],
    order: Position | SignalRecord | Levels | SignalRow | None,
    thresholds: ThresholdsRecord | None = None,
) -> ChartData:
    """Return the chart of bars with the levels that a position or an order has."""
    levels = (("entry", "note"), ("stop", "down"), ("target", "up"))
    prices_of = [(name, tone, getattr(order, name, None)) for name, tone in levels]
    return {
        **prices(data),
        "consensus": [],
        "l1": [],
        "markers": markers,
        "levels": [
            {"price": price, "title": name, "tone": tone}
            for name, tone, price in prices_of
            if price is not None
        ],
        "thresholds": limits(thresholds),
        "lines": {},
        "told": [],
    }


def _series(ticks: Sequence[ListedTick], name: str) -> list[ChartPoint]:
    values = [(tick.bar_time, getattr(tick, name)) for tick in ticks]
    return [{"time": _seconds(at), "value": value} for at, value in values if value is not None]


def _tick_markers(ticks: Sequence[ListedTick]) -> Iterator[Marker]:
    """Yield a marker for every action and for every verdict that was not carried out."""
    before = None
    for tick in ticks:
        action, verdict = str(tick.action), tick.verdict
        if action not in NO_ACTION:
            shown = figures.mark(action)
            text = ACTIONS.get(action, shown.word)
            yield _marker(tick.bar_time, shown.tone, text, action)
        # a verdict stands for many bars: only its first one is marked
        elif verdict in ("BUY", "SELL") and verdict != before:
            yield _marker(tick.bar_time, "flat", "", verdict)
        before = verdict


def _fills(data: Symbol, ticks: Sequence[ListedTick]) -> Iterator[Marker]:
    """Yield a marker for each fill that no tick of this chart shows, as of an approved proposal.

    A tick's own action is drawn at its bar; its fill follows within the two bars after the close.
    """
    timeframe = data.stream.timeframe
    step = clock.duration(timeframe)
    opened = {(row.side, clock.parse(row.opened_at)) for row in data.trades if row.opened_at}
    position = data.holding and data.holding.position
    # a position that is only ordered has no fill to mark yet
    if position and position.state in EXECUTED:
        opened.add(("BUY" if position.side == "LONG" else "SELL", position.opened_at))
    for side, at in sorted((side, at) for side, at in opened if side):
        closes = (
            clock.parse(str(tick.bar_time)) + step
            for tick in ticks
            if tick.action == f"OPEN_{side}"
        )
        if not any(close <= at <= close + 2 * step for close in closes):
            yield _fill(side, clock.iso(at), timeframe)


def _fill(side: str, at: str, timeframe: str) -> Marker:
    action = f"OPEN_{side}"
    return _marker(_bar_of(at, timeframe), figures.mark(action).tone, side.lower(), action)


def _exit(row: SignalRow, timeframe: str) -> Iterator[Marker]:
    """Yield the marker of a trade's exit, if it has one."""
    if row.closed_at:
        reason = figures.sanitize(row.close_reason or "exit", 20)
        text = f"{reason} {figures.format_signed(row.profit, 0)}"
        tone = figures.tone(row.profit, 0) or "flat"
        yield _marker(_bar_of(row.closed_at, timeframe), tone, text, "EXIT")


def _bar_of(at: str, timeframe: str) -> str:
    """Return the bar in which a moment lies: a chart marks bars."""
    return clock.iso(clock.floor(clock.parse(at), timeframe))


def _marker(bar_time: str | None, tone: str, text: str, kind: str) -> Marker:
    return {"time": _seconds(bar_time), "tone": tone, "text": text, "kind": kind}


def _seconds(moment: str | None) -> int:
    return int(clock.parse(str(moment)).timestamp())
