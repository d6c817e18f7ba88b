"""The order flow of a bar in words: rows on the pages, a line for a tick, and why there is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from torra.evidence.flow_readings import MEAN_BARS, FlowRow, FlowThen, read
from torra.evidence.outside_readings import OutsideView
from torra.exhibits.beyond import flow_words, outside_words
from torra.words.ticks import FLOW, STATUSES

QUARTER = timedelta(minutes=15)
TIMES = [datetime(2026, 2, 11, 12, tzinfo=UTC) + number * QUARTER for number in range(MEAN_BARS)]
LAST = TIMES[-1]
PLAIN = FlowRow(LAST, 412, 120, 80, 0.25, 1.0)
BOOK = PLAIN._replace(
    levels=10, bid_volume=12.5, ask_volume=7.5, imbalance=0.25, slippage=0.1, events=310
)


def told(row: FlowRow | None = BOOK, status: str = "available", **more: Any) -> OutsideView:
    rows = {time: PLAIN._replace(bar_time=time) for time in TIMES[:-1]}
    held = rows if row is None else {**rows, LAST: row}
    then = FlowThen(held, status, more.get("source", "mt5_files"))
    other = OutsideView({"macro.vix": 20.0}, {"macro": more.get("macro", "empty")})
    return other.with_view(read(then, TIMES, LAST + QUARTER, 2.0))


def rows(found: OutsideView) -> dict[str, tuple[str, str]]:
    return {
        row.name: (row.value, row.change)
        for row in outside_words.shown("XAUUSD", found).rows
        if row.block == "flow"
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [("mt5_direct", "MetaTrader 5"), ("store", "this desk's store"), ("<b>x</b>", "<b>x</b>")],
)
def test_who_counted_is_named(source: str, said: str) -> None:
    found = outside_words.shown("XAUUSD", told(source=source))
    assert found.rows[0].origin.endswith(f"counted by {said}")


def test_without_a_book_there_is_a_sentence_and_no_row_of_it() -> None:
    assert [*rows(told(PLAIN))] == ["Ticks", "Moves up", "Mean spread"]
    assert flow_words.NO_BOOK in outside_words.shown("XAUUSD", told(PLAIN)).notes
    assert flow_words.NO_BOOK not in outside_words.shown("XAUUSD", told()).notes


@pytest.mark.parametrize("status", sorted({*FLOW} - {"available"}))
def test_why_there_is_none_is_one_sentence_with_what_to_do(status: str) -> None:
    found = outside_words.shown("XAUUSD", told(None, status))
    (note,) = [note for note in found.notes if note.startswith("Order flow")]
    assert note == f"Order flow is not known. {FLOW[status].text}"
    assert not rows(told(None, status))
    assert outside_words.in_a_line("XAUUSD", told(None, status)).endswith(
        f"order flow: {STATUSES[status].word}"
    )


def test_a_record_without_order_flow_says_nothing_of_it() -> None:
    view = OutsideView({}, {"macro": "empty"})
    found = outside_words.shown("XAUUSD", view)
    assert not [note for note in found.notes if "rder" in note]


def test_a_broken_store_is_still_told_beside_it() -> None:
    view = OutsideView({}, {"macro": "broken", "cot": "broken"}).with_view(
        read(FlowThen({}, "no_file"), TIMES, LAST, 2.0)
    )
    found = outside_words.shown("XAUUSD", view)
    assert outside_words.UNREADABLE in found.notes
