"""The trades of a replay as a CSV file: every arm's, in the order in which they were opened.

One row a trade; a column's head has its unit. Times are UTC. `result (R)` and `profit` are after
spread and slippage and before commission; `net (R)` is after commission and an even share of what
the arm's models cost, as in the table of arms. `clean` makes a file of unknown origin harmless:
the same rows, and no cell that a spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from torra.clock import iso
from torra.evaluation.observations import ArmSeen, TradeSeen
from torra.evaluation.trade_figures import net_results
from torra.exhibits.figures import sheet_cell

FILE: Final = "trades.csv"
"""Its name in the folder of a replay."""

DECIMALS: Final = 8
"""Decimals of an amount: past those there is rounding only."""


class _Row(NamedTuple):
    arm: ArmSeen
    trade: TradeSeen
    net: float


def _commission(row: _Row) -> float:
    return round(row.arm.commission * row.trade.lots, DECIMALS)


COLUMNS: Final[Mapping[str, Callable[[_Row], object]]] = {
    "arm": lambda row: row.arm.name,
    "instance": lambda row: row.trade.instance,
    "symbol": lambda row: row.trade.symbol,
    "timeframe": lambda row: row.trade.timeframe,
    "side": lambda row: row.trade.side,
    "decided (UTC)": lambda row: iso(row.trade.decided),
    "opened (UTC)": lambda row: iso(row.trade.opened),
    "closed (UTC)": lambda row: iso(row.trade.closed),
    "ended by": lambda row: row.trade.reason,
    "size (lots)": lambda row: row.trade.lots,
    "entry (price)": lambda row: row.trade.entry,
    "stop (price)": lambda row: row.trade.stop,
    "target (price)": lambda row: row.trade.target,
    "exit (price)": lambda row: row.trade.exit,
    "result (R)": lambda row: row.trade.r,
    "net (R)": lambda row: round(row.net, DECIMALS),
    "profit (account currency)": lambda row: row.trade.profit,
    "commission (account currency)": _commission,
    "net (account currency)": lambda row: round(row.trade.profit - _commission(row), DECIMALS),
}


NUMBERS: Final = frozenset(name for name in COLUMNS if name.endswith(")") and "UTC" not in name)
"""The columns of numbers: those with a unit."""


def as_csv(arms: Iterable[ArmSeen]) -> str:
    """Return the trades of arms as CSV; an arm without trades has no row."""
    rows = (
        _Row(arm, trade, net)
        for arm in arms
        for trade, net in zip(
            sorted(arm.trades, key=lambda one: one.opened), net_results(arm), strict=True
        )
    )
    return _told([[*COLUMNS], *([cell(row) for cell in COLUMNS.values()] for row in rows)])


def clean(text: str) -> str | None:
    """Return a file's rows with harmless cells; None where it is no file of trades."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return None
    if not rows or rows[0] != [*COLUMNS] or any(len(row) != len(COLUMNS) for row in rows):
        return None
    head, *rows = rows
    return _told([head, *([_cell(*one) for one in zip(head, row, strict=True)] for row in rows)])


def _cell(column: str, text: str) -> object:
    """Return a cell as what it is: a name stays a name, though it reads like a number."""
    if column not in NUMBERS:
        return text
    try:
        # A negative number is one, and no formula.
        return float(text)
    except ValueError:
        return text


def _told(rows: Sequence[Sequence[Any]]) -> str:
    told = io.StringIO()
    writer = csv.writer(told, lineterminator="\r\n")
    writer.writerows([sheet_cell(cell) for cell in row] for row in rows)
    return told.getvalue()
