"""What moved inside a bar, in words: ticks, spreads, the order book, or why they are not known.

Pure values and functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from torra.evidence.flow_readings import NAMES as FLOW_NAMES
from torra.evidence.outside_readings import OutsideView
from torra.exhibits import figures
from torra.exhibits.beyond.outside_row import OutsideRow, day_of
from torra.words.ticks import FLOW

COUNTED_BY: Final = {
    "mt5_files": "the Expert Advisor",
    "mt5_direct": "MetaTrader 5",
    "store": "this desk's store",
    "invented": "nobody: invented for the demo",
}
"""Who counted the order flow of a bar."""

NO_BOOK: Final = "No order book: the broker sends none, or it was not watched from the bar's start."


def in_a_line(row: Mapping[str, Any]) -> str:
    """Return the newest order flow of a stream in a few words; `row` is the store's flow_told."""
    book = "no order book" if row["levels"] is None else f"{row['levels']} levels of the order book"
    return (
        f"{row['ticks']:,} ticks and {book} in the bar of {figures.moment(row['bar_time'])}, "
        f"counted by {_counter(row['source'])}"
    )


def rows(told: OutsideView) -> Iterator[OutsideRow]:
    """Yield the order flow of the bar: what moved in it, and its book at the close."""
    seen = told.seen.get("flow")
    if seen is None:
        return
    origin = f"in the bar of {figures.moment(seen.at)}, counted by {_counter(seen.source)}"
    known = {name: figures.number(told.numbers.get(f"flow.{name}")) for name in FLOW_NAMES}
    for name, value, change in (
        ("Ticks", _said("{:,.0f}", known["ticks"]),
         _said("{:.2f} times the mean of 20 bars", known["ticks_ratio"])),
        ("Moves up", _percent(known["up_share"], "of all moves"), figures.DASH),
        ("Mean spread", _said("{:.4f} ATR", known["spread_mean_atr"]),
         _said("widest {:.4f} ATR", known["spread_widest_atr"])),
        ("Order book", _said("{:.0f} levels", known["book_levels"]),
         _said("{:,.0f} changes", known["book_events"])),
        ("Bids less offers", _percent(known["book_imbalance"], "of the book"), figures.DASH),
        ("Slippage of one lot", _said("{:.4f} ATR", known["slippage_atr"]), figures.DASH),
    ):  # fmt: skip
        if value != figures.DASH:
            yield OutsideRow("flow", name, value, origin, day_of(seen.at), change)


def _counter(source: object) -> str:
    word = str(source or "")
    return COUNTED_BY.get(word) or figures.sanitize(word, 40)


def _said(text: str, figure: float | None) -> str:
    """Return a figure in its text; a dash where there is none."""
    return figures.DASH if figure is None else text.format(figure)


def _percent(share: float | None, of: str) -> str:
    return figures.DASH if share is None else f"{figures.plain(100.0 * share, 0)} % {of}"


def notes(told: OutsideView) -> Iterator[str]:
    """Yield why there is no order flow, or no order book in it."""
    status = str(told.statuses.get("flow") or "")
    book = (told.numbers.get(f"flow.{name}") for name in ("book_levels", "book_imbalance"))
    if status == "available" and all(figure is None for figure in book):
        yield NO_BOOK
    elif status and status != "available":
        why = FLOW[status].text if status in FLOW else ""
        yield f"Order flow is not known. {why}".rstrip()
