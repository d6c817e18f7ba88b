"""Signals, positions, bridges and alarms as rows of a page, from the decision to its result.

Every state has its mark and every code its meaning. A number that is not known yet is a dash with
the reason. Text that a broker or an Expert Advisor wrote passes through `figures.clean`. Pure
functions over the rows of the store.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from torra.bridges.guards import GUARDS
from torra.clock import parse
from torra.config import Profile, SymbolSpec
from torra.dashboard.cells.common import Cells, words
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.exhibits.figures import DASH, Cell, cell
from torra.exhibits.money import close_headline, close_outlook
from torra.money.open_positions import PAPER
from torra.store.trade.rows import AlarmRow, BridgeRow, SignalRow, SignalStep, TradingStateRow
from torra.verdict.risk_engine import Position
from torra.verdict.signal_states import EXECUTED
from torra.verdict.trade_outcome import evolution_of
from torra.words.badge import Badge
from torra.words.orders import ALARMS, EVOLUTIONS, EXITS, OUTCOMES, REASONS, SIGNALS, TAKEN_OVER

if TYPE_CHECKING:
    from torra.trading.close_quote import CloseQuote

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
FACTS: Final = 12
DEFAULT_DIGITS: Final = 5

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


def state_mark(state: str) -> Badge:
    """Return the mark of a signal's state."""
    return SIGNALS.get(state) or figures.mark(state)


def protected(ways: Collection[str]) -> str:
    """Return who watches stops and targets while trading is halted, by where orders go."""
    if set(ways) <= {PAPER}:
        return "On paper Torra goes on watching stops and targets."
    if PAPER in ways:
        return "At a broker stops and targets stay there; on paper Torra goes on watching them."
    return "Stops and targets stay at the broker."


def explain(detail: str | None) -> str:
    """Return the meaning of the code at the beginning of a detail; empty for an unknown one."""
    found = CODE.match(detail or "")
    return MEANINGS.get(found[0], "") if found else ""


# --- signals --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignalLine:
    """A signal as a page shows it, all of it as text and marks."""

    sid: str
    instance: str
    timeframe: str
    bar_time: str
    name: str
    decided: str
    warm_up: Badge | None
    by_hand: Badge | None
    kind: str
    side: Badge
    lots: str
    filled_lots: str
    entry: str
    fill: str
    stop: str
    target: str
    exit: str
    state: Badge
    state_meaning: str
    detail: str
    meaning: str
    profit: Cell
    r: Cell
    outcome: Badge | None
    evolution: Badge | None
    bridge: str
    ticket: str
    expires: str
    opened: str
    closed: str


NO_RESULT: Final[Mapping[str, str]] = {
    "close": "a close has no result of its own",
    "modify": "the move of a stop has no result of its own",
}
KINDS: Final[Mapping[str, str]] = {"modify": "move stop"}
"""What a kind of order is called, where its own word says little."""

BY_HAND: Final = Badge("☞", "by hand", "note")
"""Marks a signal that a person decided by a command."""


def signal_line(row: SignalRow, digits: int) -> SignalLine:
    """Return a signal from its decision to its result."""
    ended = row.state == "CLOSED"
    detail = f"damaged: {row.damaged}" if row.damaged else row.close_reason if ended else row.detail
    # the market has not answered where a person took the trade off
    judged = "Unknown" if (row.close_reason or "").startswith("BY_HAND") else row.evolution
    not_yet = NO_RESULT.get(row.kind, "not closed")
    return SignalLine(
        sid=figures.sanitize(row.sid, 40),
        instance=row.instance,
        timeframe=row.timeframe,
        bar_time=row.bar_time,
        name=figures.sanitize(f"{row.instance} {row.timeframe}", 60),
        decided=figures.moment(row.decided_at),
        warm_up=WARM_UP if row.warm_up else None,
        by_hand=BY_HAND if row.authority == "person" else None,
        kind=KINDS.get(row.kind, figures.sanitize(row.kind, 10)),
        side=figures.mark(row.side).ink,
        lots=figures.plain(row.lots, 2),
        filled_lots=figures.plain(row.filled, 2),
        entry=figures.plain(row.entry, digits),
        fill=figures.plain(row.price, digits),
        stop=figures.plain(row.stop, digits),
        target=figures.plain(row.target, digits),
        exit=figures.plain(row.close_price, digits),
        state=state_mark(row.state),
        state_meaning=state_mark(row.state).meaning,
        detail=figures.sanitize(detail, 200),
        meaning=explain(detail),
        profit=cell(row.profit if ended else None, 2, not_yet),
        r=cell(row.r_multiple if ended else None, 2, not_yet),
        outcome=OUTCOMES.get(row.outcome or ""),
        evolution=EVOLUTIONS.get(judged or ""),
        bridge=figures.sanitize(row.bridge, 60),
        ticket=figures.sanitize(row.ticket, 40) or DASH,
        expires=figures.moment(row.expires),
        opened=figures.moment(row.opened_at),
        closed=figures.moment(row.closed_at),
    )


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step of a signal; `was` is None for its first, `waited` the time since the one before."""

    was: Badge | None
    now: Badge
    detail: str
    meaning: str
    at: str
    waited: str


def step_lines(steps: Iterable[SignalStep]) -> list[StepLine]:
    """Return the steps of a signal, oldest first, with the time since the one before."""
    lines: list[StepLine] = []
    before: datetime | None = None
    for step in steps:
        at = _moment(step.at)
        waited = None if at is None or before is None else (at - before).total_seconds()
        lines.append(
            StepLine(
                was=state_mark(step.from_state) if step.from_state else None,
                now=state_mark(step.to_state),
                detail=figures.sanitize(step.detail, 300),
                meaning=explain(step.detail) or state_mark(step.to_state).meaning,
                at=figures.moment(step.at, seconds=True),
                waited=figures.span(waited),
            )
        )
        before = at
    return lines


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A name with its value, as text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class LabelledNumber:
    """A name with its number."""

    name: str
    value: Cell


def thesis_lines(told: Mapping[str, float | None]) -> list[LabelledNumber]:
    """Return the plan of a closed trade beside its result; empty before its end."""
    pairs = (
        ("Stop, % of the entry", "planned_stop_pct", 2),
        ("Target, % of the entry", "planned_target_pct", 2),
        ("Result, % of the fill", "realized_pct", 2),
        ("Planned R", "planned_r", 2),
        ("Result in R", "r_multiple", 2),
        ("Slippage, R", "slipped_r", 2),
        ("Hours held", "hours_held", 2),
        ("Profit", "profit", 2),
    )
    return [_figure(name, told[key], places) for name, key, places in pairs if key in told]


def _figure(name: str, value: float | None, places: int) -> LabelledNumber:
    if not name.startswith(("Slippage", "Hours")):
        return LabelledNumber(name, cell(value, places))
    # what was lost is no gain, and hours neither: a plain number, and a loss is bad
    tone = "down" if name.startswith("Slippage") and (value or 0.0) > 0 else "flat"
    return LabelledNumber(name, {"text": figures.plain(value, places), "tone": tone, "title": ""})


# --- positions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PositionLine:
    """The fields of a position that do not change from look to look.

    `real`: with real money. `leaves`: a person can close it, for nobody does so already; `holds`:
    it is executed, so that it has a stop to move.
    """

    sid: str
    name: str
    side: Badge
    lots: str
    entry: str
    stop: str
    target: str
    state: Badge
    real: bool
    leaves: bool
    holds: bool


def position_line(held: Position, digits: int, *, real: bool) -> PositionLine:
    """Return the fields of a position that do not change from look to look."""
    # CLOSING is a state of positions; signals have no such state
    closing = held.state == "CLOSING"
    return PositionLine(
        sid=figures.sanitize(held.signal_id, 40),
        name=figures.sanitize(held.instance, 40),
        side=figures.mark(held.side).ink,
        lots=figures.plain(held.lots, 2),
        entry=figures.plain(held.entry, digits),
        stop=figures.plain(held.stop, digits),
        target=figures.plain(held.target, digits),
        state=Badge("↩", "closing", "warn") if closing else state_mark(held.state),
        real=real,
        leaves=not closing,
        holds=held.state in EXECUTED,
    )


def position_cells(found: CloseQuote, opening: SignalRow, now: datetime) -> Cells:
    """Return the age of a position and the result of a close now."""
    held, end = found.held, found.ends.get("now")
    key = f"pos.{held.signal_id}"
    question = f"{close_headline(found)}? {close_outlook(found)}"
    age: Cells = {
        f"{key}.age": words(figures.span((now - held.opened_at).total_seconds())),
        f"{key}.ask": {"set": {"data-confirm": question}},
    }
    if end is None:
        names = ("leave", "profit", "r", "evolution")
        return age | {f"{key}.{name}": words(DASH, "", found.why) for name in names}
    thesis = EVOLUTIONS[evolution_of(opening.model_dump(), end.price)]
    return age | {
        f"{key}.leave": words(figures.plain(end.price, digits_of(found.spec))),
        f"{key}.profit": cell(end.profit, 2),
        f"{key}.r": cell(end.r, 2),
        f"{key}.evolution": words(thesis.text, thesis.tone),
    }


# --- bridges, alarms, states ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BridgeLine:
    """A bridge: whether it is ready, why not, and its last facts of the account."""

    name: str
    used: bool
    mark: Badge
    meaning: str
    detail: str
    facts: Sequence[LabelledText]


def bridge_line(row: BridgeRow, used: Iterable[str]) -> BridgeLine:
    """Return a bridge; `used` are the routes of the desk's instances."""
    deny = figures.sanitize(row.deny, 40)
    return BridgeLine(
        name=figures.sanitize(row.name, 60),
        used=row.name in tuple(used),
        mark=Badge("✕", deny, "alert") if deny else Badge("●", "ready", "note"),
        meaning=explain(deny),
        detail=figures.sanitize(f"damaged: {row.damaged}" if row.damaged else row.detail, 300),
        facts=[
            LabelledText(figures.title(name), figures.format_any(value))
            for name, value in list(row.account.items())[:FACTS]
        ],
    )


def bridge_cells(row: BridgeRow, place: int, real_now: datetime) -> Cells:
    """Return the ages of a bridge's last comparison of books and last note, in real time."""
    ages = {}
    for name, stored in (("reconciled_at", row.reconciled_at), ("at", row.at)):
        at = _moment(stored)
        age = None if at is None else (real_now - at).total_seconds()
        ages[f"bridge.{place}.{name}"] = words(
            "never" if age is None else f"{figures.span(age)} ago",
            "warn" if age is None or age > OLD_SECONDS else "",
            figures.moment(stored, seconds=True),
        )
    return ages


OLD_SECONDS: Final = 180.0
"""Books are compared every minute; from three minutes on their age is a warning."""


@dataclass(frozen=True, slots=True)
class AlarmLine:
    """An alarm with what to do about it and the signal that it names, "" without one."""

    kind: str
    detail: str
    at: str
    ended: str
    advice: str
    sid: str


def alarm_line(row: AlarmRow) -> AlarmLine:
    """Return an alarm with what to do about it."""
    kind = figures.sanitize(row.kind, 40)
    # an alarm names its signal in its key or in its words
    named = SID.search(f"{row.key} {row.detail}")
    return AlarmLine(
        kind=kind,
        detail=figures.sanitize(row.detail, 300),
        at=figures.moment(row.at, seconds=True),
        ended=figures.moment(row.ended_at, seconds=True) if row.ended_at else "",
        advice=ALARMS[kind].text if kind in ALARMS else LOOK,
        sid=named[0] if named else "",
    )


@dataclass(frozen=True, slots=True)
class StateLine:
    """A state of trading, why and since when."""

    mark: Badge
    reason: str
    at: str


def state_line(row: TradingStateRow) -> StateLine:
    """Return a line of the history of the trading state."""
    reason = figures.sanitize(row.reason, 300) or "no reason was given"
    return StateLine(figures.mark(row.state), reason, figures.moment(row.at, seconds=True))


# --- as a file ------------------------------------------------------------------------------------


def csv_lines(
    rows: Iterable[Mapping[str, JsonValue]], columns: Sequence[str] = COLUMNS
) -> Iterator[str]:
    """Yield rows as CSV; text that a spreadsheet would take for a formula is quoted off."""
    yield _csv_line(columns)
    for row in rows:
        yield _csv_line([figures.sheet_cell(row[name], LONGEST_CELL) for name in columns])


def _csv_line(cells: Iterable[object]) -> str:
    told = io.StringIO()
    csv.writer(told, lineterminator="\r\n").writerow(cells)
    return told.getvalue()


def digits_of(spec: SymbolSpec | None) -> int:
    """Return the decimals of a symbol's prices."""
    return DEFAULT_DIGITS if spec is None else int(spec.digits)


def spec_of(profile: Profile, symbol: str) -> SymbolSpec | None:
    """Return a symbol's terms; None where the profile does not have them."""
    try:
        return profile.symbol(symbol)
    except ConfigError:
        return None


def _moment(text: str | None) -> datetime | None:
    try:
        return parse(text) if text else None
    except ValueError:
        return None
