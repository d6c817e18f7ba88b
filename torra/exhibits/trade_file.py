"""The trades of a replay as a CSV file: every arm's, in the order in which they were opened.

One row a trade; a column's head has its unit. Times are UTC. `result (R)` and `profit` are after
spread and slippage and before commission; `net (R)` is after commission and an even share of what
the arm's models cost, as in the table of arms. `jump (UTC)` is the first jump of the price that a
trade lived through: the agents did not earn its result. `clean` makes a file of unknown origin
harmless: the same rows, and no cell that a spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

from torra.clock import iso
from torra.evaluation.observations import ArmObservation, TradeObservation
from torra.evaluation.trade_figures import net_results
from torra.exhibits import figures
from torra.exhibits.figures import sheet_cell
from torra.words.orders import EXITS

FILE: Final = "trades.csv"
"""Its name in the folder of a replay."""

JUMP: Final = "jump (UTC)"
DECIMALS: Final = 8
"""Decimals of an amount: past those there is rounding only."""


class _Row(NamedTuple):
    arm: ArmObservation
    trade: TradeObservation
    net: float
    jump: datetime | None


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
    JUMP: lambda row: iso(row.jump) if row.jump else "",
}


NUMBERS: Final = frozenset(name for name in COLUMNS if name.endswith(")") and "UTC" not in name)
"""The columns of numbers: those with a unit."""


ACROSS: Final = ", across a jump"
"""Mark of a trade that lived through a jump of the price."""

HEADS: Final = (
    "Opened (UTC)", "Side", "Result", "In R", "Ended by", "Lots", "Entry", "Exit", "Closed (UTC)",
)  # fmt: skip
"""The heads of a list of trades. Results are net, as in the table of arms, in account currency."""

PRICES: Final = ("entry (price)", "exit (price)")
MOST_DECIMALS: Final = 5
"""Decimals of a price that a list shows."""


@dataclass(frozen=True, slots=True)
class ArmTradeRow:
    """A trade of an arm as a line of a list: `cells` as HEADS has them."""

    arm: str
    cells: tuple[str, ...]


def trade_lines(text: str) -> list[ArmTradeRow] | None:
    """Return the trades of a file, each arm's newest first; None where it is no file of trades."""
    rows = _rows(text)
    if rows is None:
        return None
    trades = [dict(zip(COLUMNS, row, strict=True)) for row in reversed(rows)]
    decimals = (len(row[name].partition(".")[2].rstrip("0")) for row in trades for name in PRICES)
    # as the finest price of the file has
    places = min(MOST_DECIMALS, max(decimals, default=0))
    return [ArmTradeRow(figures.sanitize(row["arm"], 60), _shown(row, places)) for row in trades]


def _shown(row: Mapping[str, str], places: int) -> tuple[str, ...]:
    """Return the cells of a trade; its prices have `places` decimals."""
    end = row["ended by"]
    money, r = (
        _number(row[name], figures.format_signed, 2)
        for name in ("net (account currency)", "net (R)")
    )
    return (
        _time(row["opened (UTC)"]),
        figures.sanitize(f"{row['side']} {row['timeframe']}", 40),
        money,
        r,
        figures.sanitize(EXITS.get(end, end), 40) + ACROSS * bool(row[JUMP]),
        _number(row["size (lots)"], figures.plain, 2),
        *(_number(row[name], figures.plain, places) for name in PRICES),
        _time(row["closed (UTC)"]),
    )


def _time(text: str) -> str:
    return figures.sanitize(text.replace("T", " ")[: len("2026-01-01 00:00")], 40)


def _number(text: str, write: Callable[[float, int], str], decimals: int) -> str:
    """Return a number as it is shown; what is none stands as it is."""
    try:
        return write(float(text), decimals)
    except ValueError:
        return figures.sanitize(text, 20)


def _rows(text: str) -> list[list[str]] | None:
    """Return the rows below the heads; None where it is no file of trades."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return None
    if not rows or rows[0] != [*COLUMNS] or any(len(row) != len(COLUMNS) for row in rows):
        return None
    return rows[1:]


def jump_of(trade: TradeObservation, jumps: Sequence[datetime]) -> datetime | None:
    """Return the first jump between a trade's decision and its end; None without one."""
    return next((jump for jump in jumps if trade.decided <= jump <= trade.closed), None)


def as_csv(arms: Iterable[ArmObservation], jumps: Sequence[datetime] = ()) -> str:
    """Return the trades of arms as CSV, those across `jumps` marked.

    An arm without trades has no row.
    """
    rows = (
        _Row(arm, trade, net, jump_of(trade, jumps))
        for arm in arms
        for trade, net in zip(
            sorted(arm.trades, key=lambda one: one.opened), net_results(arm), strict=True
        )
    )
    cells = ([cell(row) for cell in COLUMNS.values()] for row in rows)
    return "".join(csv_lines(chain([COLUMNS], cells)))


def clean(text: str) -> str | None:
    """Return a file's rows with harmless cells; None where it is no file of trades."""
    rows = _rows(text)
    if rows is None:
        return None
    cells = (map(_cell, COLUMNS, row) for row in rows)
    return "".join(csv_lines(chain([COLUMNS], cells)))


def _cell(column: str, text: str) -> object:
    """Return a cell as what it is: a name stays a name, though it reads like a number."""
    if column not in NUMBERS:
        return text
    try:
        # A negative number is one, and no formula.
        return float(text)
    except ValueError:
        return text


def csv_lines(rows: Iterable[Iterable[object]], limit: int = figures.MAX_TEXT) -> Iterator[str]:
    """Yield rows as CSV; text is cleaned, and a formula of a spreadsheet is quoted off."""
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(sheet_cell(cell, limit) for cell in row)
        yield line.getvalue()
