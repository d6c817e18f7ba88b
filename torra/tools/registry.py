"""Every tool by its name: a new tool is a function and one row here."""

from __future__ import annotations

import inspect
from typing import Any, Final

from torra.tools import books, market, records
from torra.tools.contract import ToolArgs, ToolSpec

ROWS: Final[tuple[tuple[Any, type[ToolArgs], float], ...]] = (
    (market.fetch_bars, market.BarsArgs, 2.0),
    (market.score_symbol, market.TickArgs, 2.0),
    (market.detect_patterns, market.PatternArgs, 5.0),
    (market.run_backtest, market.StudyArgs, 2.0),
    (market.fetch_events, market.StreamArgs, 2.0),
    (market.fetch_outside, market.StreamArgs, 2.0),
    (market.fetch_headlines, market.StreamArgs, 2.0),
    (market.analyse_sentiment, market.StreamArgs, 2.0),
    (books.exposure, books.NoArgs, 2.0),
    (books.money, books.NoArgs, 5.0),
    (books.trades, books.ListArgs, 2.0),
    (books.changed_by_agents, books.ListArgs, 10.0),
    (records.find_ticks, records.FindArgs, 2.0),
    (records.argument, market.TickArgs, 2.0),
    (records.lessons, books.ListArgs, 2.0),
    (books.costs, books.NoArgs, 2.0),
    (books.latest_radar, books.NoArgs, 2.0),
    (records.find_text, records.TextArgs, 2.0),
)
"""The function of each tool, its arguments, and the seconds that one run may take."""

TOOLS: Final = {
    work.__name__: ToolSpec(work.__name__, str(inspect.getdoc(work)), args, work, limit_s)
    for work, args, limit_s in ROWS
}
"""Every tool by its name; a tool says of itself what the docstring of its function says."""
