"""What moved inside a bar, in words: ticks, spreads, the order book, or why they are not known.

Pure values and functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agents.features import rows_of
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

NUMBERS: Final = rows_of(Path(__file__).with_name("flow_numbers.csv"))
"""What is told of a bar: a value and what stands beside it, each in its text."""

NO_BOOK: Final = "No order book: the broker sends none, or it was not watched from the bar's start."


def in_a_line(row: Mapping[str, Any]) -> str:
    """Return the newest order flow of a stream in a few words; `row` is of flow_summary."""
    book = "no order book" if row["levels"] is None else f"{row['levels']} levels of the order book"
    return (
        f"{row['ticks']:,} ticks and {book} in the bar of {figures.moment(row['bar_time'])}, "
        f"counted by {_counter(row['source'])}"
    )


def rows(view: OutsideView) -> Iterator[OutsideRow]:
    """Yield the order flow of the bar: what moved in it, and its book at the close."""
    newest = view.seen.get("flow")
    if newest is None:
        return
    origin = f"in the bar of {figures.moment(newest.at)}, counted by {_counter(newest.source)}"
    for row in NUMBERS:
        value, change = (_written(row, part, view) for part in ("value", "change"))
        if value != figures.DASH:
            yield OutsideRow("flow", row["name"], value, origin, day_of(newest.at), change)


def _written(row: Mapping[str, str], part: str, view: OutsideView) -> str:
    """Return a number of the table in its text, a share in percent; a dash where it is unknown."""
    number, text = figures.number(view.numbers.get(f"flow.{row[part]}")), row[f"{part}_text"]
    if number is None:
        return figures.DASH
    return text.format(figures.plain(100.0 * number, 0) if "%" in text else number)


def _counter(source: object) -> str:
    word = str(source or "")
    return COUNTED_BY.get(word) or figures.sanitize(word, 40)


def notes(view: OutsideView) -> Iterator[str]:
    """Yield why there is no order flow, or no order book in it."""
    status = str(view.statuses.get("flow") or "")
    book = (view.numbers.get(f"flow.{name}") for name in ("book_levels", "book_imbalance"))
    if status == "available" and all(figure is None for figure in book):
        yield NO_BOOK
    elif status and status != "available":
        why = FLOW[status].text if status in FLOW else ""
        yield f"Order flow is not known. {why}".rstrip()
