"""The tables of docs/radar.md: what each code means, and what each exit code was worth.

The trades are those of L1 on the shipped samples (docs.radar_worth).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from docs.radar_worth import NOT_MEASURED, CodeWorth, worth
from torra.config import ROOT, Instance, Profile
from torra.evaluation.intervals import LEAST_VALUES
from torra.replay.shards import history
from torra.words.radar import CODES

PAGE: Final = ROOT / "docs" / "radar.md"

SAMPLES: Final = (("BTCUSD", "M15"), ("BTCUSD", "H1"), ("EURUSD", "H1"))

HEADINGS: Final = {
    "act": "`act`: would open",
    "exit_radar": "`exit_radar`: look at what is held",
    "watch": "`watch`",
    "failed": "Not scanned",
    "trigger": "Why a run is not the one that was wanted",
    "objection": "What becomes of an agent's objection",
}


def with_tables(page: str, *, measured: bool = True) -> str:
    """Return the page with today's tables; without `measured` only those of the codes."""
    page = _between(page, "codes", "\n".join(_codes()))
    return _between(page, "worth", "\n".join(_worth())) if measured else page


def _between(page: str, name: str, text: str) -> str:
    before, mark, rest = page.partition(f"<!-- {name}: begin -->\n")
    end = f"<!-- {name}: end -->\n"
    return before + mark + text + end + rest.partition(end)[2]


def _codes() -> Iterator[str]:
    for table, heading in HEADINGS.items():
        yield f"### {heading}\n\n| code | word | meaning |\n|---|---|---|"
        for code, words in CODES[table].items():
            yield f"| `{code}` | {words.word} | {words.meaning} |"
        yield ""


def _worth() -> Iterator[str]:
    head = "| code | share of bars held | trades | R held | R closed there | difference, 95 % |"
    for symbol, timeframe in SAMPLES:
        path = ROOT / "sample_data" / f"{symbol}_{timeframe}.csv"
        bars = history.load(ROOT / "no_home", symbol, [str(path)], timeframes=[timeframe])
        instance = Instance(symbol=symbol, timeframes=(timeframe,))
        yield f"### {symbol} {timeframe}\n\n{head}\n|---|---|---|---|---|---|"
        yield from map(_row, worth(instance, bars.frames, Profile()))
        yield from (f"| `{code}` | not measured | | | | |" for code in NOT_MEASURED)
        yield ""


def _row(one: CodeWorth) -> str:
    if one.held is None or one.closed is None:
        return f"| `{one.code}` | {one.share:.1%} | 0 | | | |"
    mean, ends = one.difference.mean or 0.0, one.difference.interval
    few = f"under {LEAST_VALUES} trades" if one.trades < LEAST_VALUES else "no interval"
    told = f"{ends.low:+.2f} to {ends.high:+.2f}" if ends else few
    return (
        f"| `{one.code}` | {one.share:.1%} | {one.trades} | {one.held:+.2f} | {one.closed:+.2f} "
        f"| {mean:+.2f} ({told}) |"
    )
