"""The data of a symbol page's chart: candles, scores, markers and levels as plain dicts and lists.

Times are UTC seconds of a bar's open. Tones are names of colours. A missing score is None. Each bar
also carries the decision of its tick in words, for the legend and for the keyboard's cursor.
Pure functions over what a DeskView returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard.cells.common import action_cell, limits, side_of
from torra.dashboard.record.stored import Row
from torra.exhibits import figures

PRICES: Final = ("open", "high", "low", "close")
HELD: Final = ("FILLED", "PARTIAL", "CLOSING")
"""States of a position that the market has executed."""

LINES: Final = (*VECTORS, "ath")
"""Scores that can be drawn below the price besides the consensus."""


def chart(data: Mapping[str, Any]) -> Row:
    """Return the data of the chart; times are UTC seconds, tones are names of colours."""
    ticks = sorted(data.get("ticks", ()), key=lambda tick: str(tick["bar_time"]))
    return {
        "digits": data.get("digits") if data.get("digits") is not None else 5,
        "candles": [_candle(bar) for bar in data.get("bars", ())],
        "consensus": _series(ticks, "consensus"),
        "l1": _series(ticks, "l1_consensus"),
        "markers": _tick_markers(ticks) + _fills(data, ticks) + _exits(data),
        "levels": _levels(data.get("position")),
        "thresholds": limits(data.get("thresholds")),
        "times": [_seconds(tick["bar_time"]) for tick in ticks],
        "lines": {name: [_score(tick, name) for tick in ticks] for name in LINES},
        "told": [_told(tick) for tick in ticks],
    }


def _score(tick: Mapping[str, Any], name: str) -> float | None:
    return figures.number(tick.get(name))


def _told(tick: Mapping[str, Any]) -> str:
    """Return the decision of a bar's tick in words."""
    verdict = figures.mark(tick.get("verdict"))
    return f"verdict {verdict.text.strip()}, action {action_cell(tick)['text']}"


def _candle(bar: Mapping[str, Any]) -> Row:
    return {"time": _seconds(bar["time"]), **{name: bar.get(name) for name in PRICES}}


def _series(ticks: Sequence[Mapping[str, Any]], name: str) -> list[Row]:
    return [
        {"time": _seconds(tick["bar_time"]), "value": tick[name]}
        for tick in ticks
        if figures.number(tick.get(name)) is not None
    ]


def _tick_markers(ticks: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return a marker for every action and for every verdict that was not carried out."""
    markers, before = [], None
    for tick in ticks:
        action, verdict = str(tick.get("action")), tick.get("verdict")
        if action not in ("HOLD", "None"):
            shown = figures.mark(action)
            text = shown.word.removeprefix("OPEN_").lower()
            markers.append(_marker(tick["bar_time"], shown.tone, text, action))
        # a verdict stands for many bars: only its first one is marked
        elif verdict in ("BUY", "SELL") and verdict != before:
            markers.append(_marker(tick["bar_time"], "flat", "", str(verdict)))
        before = verdict
    return markers


def _fills(data: Mapping[str, Any], ticks: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return a marker for each fill that no tick of this chart shows, as of an approved proposal.

    A tick's own action is drawn at its bar; its fill follows within the two bars after the close.
    """
    step = clock.duration(data["timeframe"]) if data.get("timeframe") else timedelta()
    markers = []
    for side, opened in sorted(set(_openings(data))):
        action = f"OPEN_{side}"
        closes = (
            clock.parse(str(t["bar_time"])) + step for t in ticks if t.get("action") == action
        )
        if any(close <= opened <= close + 2 * step for close in closes):
            continue
        bar_time = clock.iso(clock.floor(opened, data["timeframe"]))
        markers.append(_marker(bar_time, figures.mark(action).tone, side.lower(), action))
    return markers


def _openings(data: Mapping[str, Any]) -> Iterator[tuple[str, datetime]]:
    """Yield side and time of each fill: of ended trades and of the position that is held."""
    held = data.get("position") or {}
    # a position that is only ordered has no fill to mark yet
    rows = [*data.get("trades", ()), *([held] if held.get("state") in HELD else [])]
    for row in rows:
        side = {"LONG": "BUY", "SHORT": "SELL"}.get(side_of(row.get("side")))
        if side and row.get("opened_at"):
            yield side, clock.parse(str(row["opened_at"]))


def _exits(data: Mapping[str, Any]) -> list[Row]:
    markers = []
    for trade in data.get("trades", ()):
        closed = trade.get("closed_at")
        if not closed:
            continue
        # a chart marks bars: an exit within a bar stands at that bar
        bar_time = clock.iso(clock.floor(clock.parse(str(closed)), data["timeframe"]))
        gain = figures.number(trade.get("profit"))
        text = f"{figures.clean(trade.get('close_reason') or 'exit', 20)} {figures.signed(gain, 0)}"
        markers.append(_marker(bar_time, figures.tone(gain, 0) or "flat", text, "EXIT"))
    return markers


def _marker(bar_time: Any, tone: str, text: str, kind: str) -> Row:
    return {"time": _seconds(bar_time), "tone": tone, "text": text, "kind": kind}


def _levels(position: Any) -> list[Row]:
    if not position:
        return []
    tones = {"entry": "note", "stop": "down", "target": "up"}
    return [
        {"price": position[name], "title": name, "tone": tone}
        for name, tone in tones.items()
        if figures.number(position.get(name)) is not None
    ]


def _seconds(moment: Any) -> int:
    return int(clock.parse(str(moment)).timestamp())
