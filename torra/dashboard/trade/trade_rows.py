"""What templates ask of signals, positions, bridges and alarms, from the decision to its result.

Templates read the stored rows; here stands what takes a thought. Every state has its mark and every
code its meaning. A number that is not known yet is a dash with the reason. Text that a broker or an
Expert Advisor wrote passes through `figures.sanitize`. Pure functions over the rows of the store.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

from flask import Response
from pydantic import JsonValue

from torra.bridges.guards import GUARDS
from torra.clock import parse
from torra.exhibits import figures
from torra.exhibits.trade_file import csv_lines
from torra.money.open_positions import PAPER
from torra.store.trade.rows import AlarmRow, BridgeRow, ProposalRow, SignalRow, SignalStep
from torra.words.badge import Badge
from torra.words.orders import ALARMS, EVOLUTIONS, EXITS, REASONS, SIGNALS, TAKEN_OVER

MEANINGS: Final[Mapping[str, str]] = {
    **{guard.reason: guard.meaning for guard in GUARDS},
    **EXITS,
    **TAKEN_OVER,
    **REASONS,
}
"""Meanings of the codes with which a detail may begin."""

LOOK: Final = "Look in the terminal and in the log, then resume, which ends the alarm."
SID: Final = re.compile(r"\bT[A-Z0-9_]{6,}\b")
CODE: Final = re.compile(r"[A-Za-z_]+")

LONGEST_CELL: Final = 2_000
"""Characters of a cell of a file: a person's note has at most as many."""

COLUMNS: Final = (
    "seq", "sid", "instance", "symbol", "timeframe", "bar_time", "kind", "side", "lots", "entry",
    "stop", "target", "decided_at", "expires", "state", "detail", "bridge", "ticket", "price",
    "filled_lots", "opened_at", "close_price", "closed_at", "profit", "r_multiple",
    "close_reason", "outcome", "evolution", "warm_up",
)  # fmt: skip
"""Columns of the CSV file."""


WARM_UP: Final = Badge("◃", "warm-up", "flat")
"""The mark of what was made in warm-up, on bars from before the desk's first start."""

BY_HAND: Final = Badge("☞", "by hand", "note")
"""Marks a signal that a person decided by a command."""

READY: Final = Badge("●", "ready", "note")
CLOSING: Final = Badge("↩", "closing", "warn")
"""A state of positions; signals have no such state."""

NO_RESULT: Final[Mapping[str, str]] = {
    "close": "a close has no result of its own",
    "modify": "the move of a stop has no result of its own",
}
KINDS: Final[Mapping[str, str]] = {"modify": "move stop"}
"""What a kind of order is called, where its own word says little."""

OLD_SECONDS: Final = 180.0
"""Books are compared every minute; from three minutes on their age is a warning."""

PLAN: Final[Mapping[str, str]] = {
    "Stop, % of the entry": "planned_stop_pct",
    "Target, % of the entry": "planned_target_pct",
    "Result, % of the fill": "realized_pct",
    "Planned R": "planned_r",
    "Result in R": "r_multiple",
    "Slippage, R": "slipped_r",
    "Hours held": "hours_held",
    "Profit": "profit",
}
"""What is shown of the plan of a closed trade beside its result."""

NO_GAIN: Final = ("Slippage, R", "Hours held")
"""What of it is a plain number: what was lost is no gain, and hours neither."""


def state_mark(state: str) -> Badge:
    """Return the mark of the state of a signal or of a position."""
    return CLOSING if state == "CLOSING" else SIGNALS.get(state) or figures.mark(state)


def protected(ways: Collection[str]) -> str:
    """Return who watches stops and targets while trading is halted, by where orders go."""
    if set(ways) <= {PAPER}:
        return "On paper Torra goes on watching stops and targets."
    if PAPER in ways:
        return "At a broker stops and targets stay there; on paper Torra goes on watching them."
    return "Stops and targets stay at the broker."


def explain(detail: str | None) -> str:
    """Return the meaning of the code at the beginning of a detail; empty for an unknown one."""
    code = CODE.match(detail or "")
    return MEANINGS.get(code[0], "") if code else ""


# --- of a row -------------------------------------------------------------------------------------


def name_of(row: SignalRow | ProposalRow) -> str:
    """Return what a line calls an order: its instance and timeframe."""
    return figures.sanitize(f"{row.instance} {row.timeframe}", 60)


def detail_of(row: SignalRow | BridgeRow, limit: int = 200) -> str:
    """Return the detail of a row; what of a damaged one cannot be read, of a trade its exit."""
    if row.damaged:
        return figures.sanitize(f"damaged: {row.damaged}", limit)
    if isinstance(row, SignalRow) and row.state == "CLOSED":
        return figures.sanitize(row.close_reason, limit)
    return figures.sanitize(row.detail, limit)


def plan_of(row: SignalRow) -> Badge | None:
    """Return what came of the plan of a trade."""
    # the market has not answered where a person took the trade off
    by_hand = (row.close_reason or "").startswith("BY_HAND")
    return EVOLUTIONS.get("Unknown" if by_hand else row.evolution or "")


def bridge_mark(row: BridgeRow) -> Badge:
    """Return whether a bridge is ready, or what keeps it from sending."""
    deny = figures.sanitize(row.deny, 40)
    return Badge("✕", deny, "alert") if deny else READY


def waited(before: SignalStep | None, step: SignalStep) -> str:
    """Return the time between two steps of a signal."""
    then = _moment(step.at)
    return figures.span(seconds_since(before.at if before else None, then) if then else None)


def seconds_since(stored: str | None, now: datetime) -> float | None:
    """Return how long ago a stored time is; None for none."""
    at = _moment(stored)
    return None if at is None else (now - at).total_seconds()


def advice(row: AlarmRow) -> str:
    """Return what to do about an alarm."""
    return ALARMS[row.kind].text if row.kind in ALARMS else LOOK


def signal_of(row: AlarmRow) -> str:
    """Return the signal that an alarm names in its key or in its words; "" without one."""
    named = SID.search(f"{row.key} {row.detail}")
    return named[0] if named else ""


# --- as a file ------------------------------------------------------------------------------------


def file(
    name: str, rows: Iterable[Mapping[str, JsonValue]], columns: Sequence[str] = COLUMNS
) -> Response:
    """Answer rows as the CSV file torra-NAME.csv."""
    cells = ([row[column] for column in columns] for row in rows)
    return Response(
        csv_lines(chain([columns], cells), LONGEST_CELL),
        mimetype="text/csv",
        headers={"Content-Disposition": f'attachment; filename="torra-{name}.csv"'},
    )


def _moment(text: str | None) -> datetime | None:
    try:
        return parse(text) if text else None
    except ValueError:
        return None
