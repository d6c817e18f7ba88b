"""One proposal as the seven parts of the thirty-second screen: what, risk, voices, why, why not.

The parts come, in reading order, from the proposal's row, the record of its tick and the preview of
its approval; figures that change are cells. If the tick is no longer stored, or no price is known,
that part is empty and gives the reason. Pure functions over plain values; text of models passes
through `figures.clean`. `arithmetic` and `agreement` have the sums and the panel;
torra.tick.approval decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import JsonValue

from agent_config import TRADER_ID
from agents.contracts import ADJUSTMENT_BOUND
from torra.clock import parse
from torra.config import Profile, SymbolSpec
from torra.dashboard.cells.common import Cells, words
from torra.dashboard.record import agreement, arithmetic, reasoning, transcript
from torra.dashboard.record.arithmetic import DecisionStep, ScoreStep
from torra.dashboard.record.shown import NOT_COUNTED, WATCH_ONLY
from torra.dashboard.record.thesis import ManagerVerdict, costs, manager_verdict
from torra.dashboard.record.transcript import Voice
from torra.dashboard.trade import trade_rows
from torra.dashboard.trade.why import first_sentence
from torra.exhibits import figures
from torra.exhibits.figures import DASH, BarSpan, Cell, cell
from torra.exhibits.money import close_headline, close_result, in_currency
from torra.store.trade.rows import ProposalRow
from torra.tick.marks import GATE
from torra.tick.sentence import NO_AGENT, outage_of
from torra.tick.tick_record import TickRecord
from torra.verdict.position_size import loss_of_one, worth
from torra.verdict.trade_outcome import gain
from torra.words.badge import Badge
from torra.words.deny_reasons import DenyReason
from torra.words.orders import PROPOSALS, REASONS

if TYPE_CHECKING:
    from torra.tick.approval import Preview
    from torra.trading.hand_close import CloseQuote

SIGNS: Final = {"ok": ("✓", "note"), "failed": ("✗", "alert"), "not asked": ("·", "flat")}
CHANGED: Final = "POSITION_CHANGED"

TRADER: Final = "Trader"
"""The chip of a desk that asks a trader."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Desk": ("TRADING_HALTED", "TRADING_REDUCING"),
    "Gate": ("GATE_VETO", "GATE_CANNOT_OPEN"),
    TRADER: ("TRADER_DECLINED",),
    "Fresh": ("STALE_BAR", "STALE_SCORE", "DUPLICATE_SIGNAL", CHANGED),
    "Market": ("CLOCK_SKEW", "MARKET_CLOSED", "VENUE_SIDE", "SPREAD"),
    "Price": ("PRICE_COLLAR",),
    "Levels": (
        "BAD_NUMBER", "STOP_WRONG_SIDE", "STOP_TOO_CLOSE", "STOP_TOO_FAR", "TARGET_WRONG_SIDE",
    ),
    "Size": (
        "SIZE_ZERO", "LOT_BELOW_MIN", "LOT_ABOVE_MAX", "LOT_STEP", "RISK_PER_TRADE",
        "MAX_NOTIONAL",
    ),
    "Account": ("EXPOSURE_CAP", "MARGIN", "LEVERAGE_CAP", "MAX_POSITIONS", "DAILY_LOSS_CAP"),
    "Pace": ("COOLDOWN", "MESSAGE_RATE", "REPEATED_EXECUTION"),
    "Odds": ("NEGATIVE_EV",),
}  # fmt: skip
"""The chips of the risk strip, each with its checks."""

SMALL_DESK: Final = 4
SENTENCE: Final = 160
SHORT_SENTENCE: Final = 90
"""Most characters of an agent's sentence; the second for a desk of more than SMALL_DESK."""

SUMS: Final = (
    "L1 score", "Debate", "Gate multiplier", "Adjustment", "Agent score", "Blended score",
)  # fmt: skip
"""Steps of the arithmetic that the screen shows; the tick's page has all of them."""


UNREADABLE: Final = " (cannot be read)"


def current(row: ProposalRow, now: datetime) -> ProposalRow:
    """Return a proposal as it stands: past its time it is EXPIRED, booked as such or not."""
    if row.state != "WAITING" or now < parse(row.expires):
        return row
    over = {"state": "EXPIRED", "reason": row.reason or DenyReason.SIGNAL_EXPIRED.value}
    return row.model_copy(update=over)


def name_of(row: ProposalRow) -> str:
    """Return what a line calls a proposal: of one whose orders cannot be read it says so."""
    return trade_rows.name_of(row) + (UNREADABLE if row.damaged else "")


def mark_of(row: ProposalRow) -> Badge:
    """Return the mark of a proposal's state."""
    return PROPOSALS.get(row.state, figures.mark(row.state))


def meaning_of(row: ProposalRow) -> str:
    """Return the meaning of the reason for which a proposal ended; "" for one in words."""
    return REASONS.get(row.reason, "")


def left(seconds: float) -> Cell:
    """Return the cell of a time to wait, counted down in real seconds by the browser."""
    urgent = "alert" if seconds <= 30 else "warn"
    return {
        "text": figures.countdown(seconds),
        "tone": urgent,
        "title": "real time until it expires",
        "set": {"data-countdown": round(max(0.0, seconds), 1)},
    }


# --- 1: the header line ---------------------------------------------------------------------------


class Conviction(NamedTuple):
    """The conviction behind a side, with the raw one and the deduction in the note."""

    text: str
    note: str
    width: float = 0.0


def conviction(record: TickRecord | None, side: str) -> Conviction:
    """Return the calibrated conviction behind a side, the raw one, and the deduction."""
    if record is None:
        return Conviction(DASH, "no panel is stored for this tick")
    found = record.deliberation.panel.agreement(side)
    kept, raw = found.conviction, found.raw
    if record.deliberation.in_shadow:
        return Conviction(DASH, f"{figures.plain(kept, 2)}, {NOT_COUNTED}")
    if outage_of(record) is not None:
        return Conviction(figures.plain(kept, 2), NO_AGENT, round(kept * figures.BAR_WIDTH, 1))
    off = 1 - kept / raw if raw else 0.0
    # less than half a per cent would be written as 0 %
    why = f", {named}" if (named := costs(record.deliberation, side)) else " panel split"
    split = f", {figures.MINUS}{off:.0%}{why}" if off >= 0.005 else ""
    if found.leans_against:
        split = "; agents against"
    width = round(kept * figures.BAR_WIDTH, 1)
    return Conviction(figures.plain(kept, 2), f"raw {raw:.2f}{split}", width)


def head(preview: Preview | None, trouble: str, digits: int) -> Cells:
    """Return price, drift and the result of an approval now."""
    if preview is None:
        why = figures.sanitize(trouble, 200)
        missing, no = words(DASH, "", why), words(f"✗ cannot be approved: {why}", "alert")
        return {"p.price": missing, "p.drift": missing, "p.verdict": no}
    drift = figures.format_signed(preview.drift, 2)
    text, tone = "✓ every check agrees", "note"
    if not preview.passes:
        text, tone = f"✗ {preview.state}: {figures.sanitize(preview.reason, 60)}", "alert"
    return {
        "p.price": words(figures.plain(preview.price, digits)),
        "p.drift": words(f"{drift} ATR", "alert" if _gone(preview) else ""),
        "p.verdict": words(text, tone, REASONS.get(preview.reason, "")),
    }


def typed(preview: Preview | None) -> Cells:
    """Return the size that a person must type where real money is traded."""
    return {"l.typed": words(f"{preview.lots:g}" if preview else DASH)}


def _gone(preview: Preview) -> bool:
    return preview.checks.get(DenyReason.PRICE_COLLAR.value) == "failed"


# --- 2: the risk strip ----------------------------------------------------------------------------


def chips(preview: Preview | None, record: TickRecord | None) -> Cells:
    """Return a chip for each group of checks: agreed, objecting with its rules, or not asked."""
    cells = {f"chip.{name}": _chip(name, GROUPS[name], preview) for name in groups(record)}
    why = _unheard(record)
    if why and TRADER in groups(record):
        glyph, tone = SIGNS["not asked"]
        cells[f"chip.{TRADER}"] = words(f"{glyph} {TRADER}: {why}", tone, f"{why}: nothing objects")
    return cells


def _unheard(record: TickRecord | None) -> str:
    """Return why a trader has not spoken for or against an opening; "" where its word counts."""
    if record is None:
        return "not asked"
    asked = record.deliberation.consulted
    if asked is None:
        return "not asked"
    if record.deliberation.in_shadow:
        return WATCH_ONLY
    return "" if asked.report else "no answer"


def groups(record: TickRecord | None) -> list[str]:
    """Return the chips of a proposal: the trader's only where the desk asks one."""
    return [name for name in GROUPS if name != TRADER or (record and record.company)]


def _chip(name: str, rules: Sequence[str], preview: Preview | None) -> Cell:
    found = {rule: preview.checks.get(rule, "not asked") for rule in rules} if preview else {}
    failed = [rule for rule, outcome in found.items() if outcome == "failed"]
    outcome = "failed" if failed else "ok" if "ok" in found.values() else "not asked"
    glyph, tone = SIGNS[outcome]
    text = f"{glyph} {name}" + (f": {', '.join(failed)}" if failed else "")
    meant = "; ".join(REASONS[rule] for rule in failed) or f"{outcome}: {', '.join(rules)}"
    return words(text, tone, meant)


def every_check(preview: Preview | None, record: TickRecord | None) -> dict[str, Badge]:
    """Return the mark of each check with its meaning, for the disclosure."""
    marks, asked = {}, {rule for name in groups(record) for rule in GROUPS[name]}
    for rule, found in (preview.checks if preview else {}).items():
        if rule in GROUPS[TRADER] and rule not in asked:
            continue
        outcome = "not asked" if rule in GROUPS[TRADER] and _unheard(record) else found
        glyph, tone = SIGNS[outcome]
        marks[rule] = Badge(glyph, outcome, tone, REASONS.get(rule, ""))
    return marks


# --- 3: the ladder --------------------------------------------------------------------------------

LEVELS: Final = ("stop", "entry", "target")
CLOSE_LEVELS: Final = ("stop", "entry", "now", "target")
PARTS: Final = ("price", "r", "atr", "cash")


def ladder(
    row: ProposalRow,
    preview: Preview | None,
    profile: Profile | None,
    spec: SymbolSpec | None,
    currency: str = "",
) -> Cells:
    """Return price, distance in ATR and R, and money of each level, and the whole loss at the stop.

    They are those of now; without a preview, those that were proposed. `currency` is the account's,
    "" where nobody has told it.
    """
    proposed = row.first
    at, lots = (preview.levels, preview.lots) if preview else (proposed.levels, proposed.lots)
    size = {"l.lots": words(figures.plain(lots, 2))}
    if at is None or profile is None or spec is None:
        why = "the order cannot be read" if at is None else "the desk does not know the symbol"
        names = [f"l.{level}.{part}" for level in LEVELS for part in PARTS]
        return size | {name: words(DASH, "", why) for name in (*names, "l.cash")}
    cells: Cells = {}
    for level in LEVELS:
        price: float = getattr(at, level)
        moved = gain("LONG" if at.target > at.entry else "SHORT", at.entry, price)
        r, cash = moved / abs(at.entry - at.stop), worth(moved, lots, spec)
        cells |= _level_cells(level, figures.plain(price, spec.digits), r, moved / at.atr, cash)
    lost = float(loss_of_one(at, spec)) * lots
    share = f"{lost / profile.risk.capital:.2%} of capital"
    told = in_currency(figures.plain(lost, 2), currency)
    return cells | size | {"l.cash": words(f"{told} ({share})")}


def close_ladder(found: CloseQuote, atr: float | None) -> Cells:
    """Return what a close brings now, and each level of its position with what it would bring."""
    held, spec = found.held, found.spec
    told = {"p.headline": words(close_headline(found))}
    told["l.lots"] = words(figures.plain(held.lots, 2))
    told["l.cash"] = words(DASH, "", found.why)
    for level in CLOSE_LEVELS:
        end = found.ends.get(level)
        if end is None or spec is None:
            told |= {f"l.{level}.{part}": words(DASH, "", found.why) for part in PARTS}
            continue
        moved = gain(held.side, held.entry, end.price) / atr if atr else math.nan
        told |= _level_cells(level, figures.plain(end.price, spec.digits), end.r, moved, end.profit)
    if "stop" in found.ends:
        told["l.cash"] = words(f"{close_result(found, 'stop')} at its stop", "", "without a gap")
    return told


def _level_cells(name: str, price: str, *moved: float) -> Cells:
    """Return a level's price and how far it lies from the entry: in R, in ATR, in money."""
    told = (
        [DASH] * len(moved) if name == "entry" else [figures.format_signed(one, 2) for one in moved]
    )
    return {
        f"l.{name}.{part}": words(text) for part, text in zip(PARTS, (price, *told), strict=True)
    }


# --- 4: the panel ---------------------------------------------------------------------------------


class SeatLine(NamedTuple):
    """An agent: what it said, its push as a number and a bar, and one sentence of it."""

    voice: Voice
    stance: Cell
    bar: BarSpan
    trust: str
    whole: str
    sentence: str
    leans: bool
    manager_verdict: ManagerVerdict | None


def panel(record: TickRecord) -> list[SeatLine]:
    """Return a row for each agent: whether it answered, its lean, its trust, one sentence."""
    stances = record.deliberation.panel.pushes
    # the trader has a block of its own
    people = [one for one in transcript.people(record) if one.name != TRADER_ID]
    limit = SENTENCE if len(people) <= SMALL_DESK else SHORT_SENTENCE
    return [_seat(one, stances.get(one.name), limit) for one in people]


def _seat(voice: Voice, stance: float | None, limit: int) -> SeatLine:
    answered, gate = voice.mark.word == "answered", voice.name == GATE
    whole = voice.text if answered else voice.why_silent
    missing = "the gate takes no side" if gate else "no push is stored"
    return SeatLine(
        voice=voice,
        stance=cell(stance, 3, missing if answered else voice.mark.word),
        bar=figures.signed_bar(stance, agreement.WIDE_PUSH),
        # the gate scores nothing, so no trust weighs its words
        trust=figures.plain(voice.trust, 3) if answered and not gate else DASH,
        whole=whole,
        sentence=first_sentence(whole, limit),
        leans=answered and stance is not None,
        manager_verdict=manager_verdict(voice.said),
    )


# --- 5: the arithmetic ----------------------------------------------------------------------------


class ProposalSteps(NamedTuple):
    """The steps from L1 to the verdict, those that were cut, and the decision."""

    steps: list[ScoreStep]
    clamped: str
    decision: list[DecisionStep]
    headline: str
    timeframes: str


def sums(record: TickRecord) -> ProposalSteps:
    """Return the steps from L1 to the verdict and those that were cut."""
    known = {row.name: row for row in arithmetic.steps(record)}
    cut = [
        figures.title(name)
        for name, value in record.adjustments.items()
        # stored numbers are rounded: one on the bound may lie a hair inside
        if abs(value or 0.0) >= ADJUSTMENT_BOUND - arithmetic.TOLERANCE
    ]
    return ProposalSteps(
        [known[name] for name in SUMS if name in known],
        f"cut at ±{ADJUSTMENT_BOUND:.2f}: {', '.join(cut)}"
        if cut
        else "no score was cut at its limit",
        arithmetic.decision_rows(record),
        reasoning.headline(record),
        arithmetic.consensus_line(record),
    )


# --- as JSON --------------------------------------------------------------------------------------


def foreseen(preview: Preview | None, trouble: str) -> dict[str, JsonValue]:
    """Return how approving would end now as plain JSON."""
    if preview is None:
        return {"state": None, "reason": trouble}
    at = preview.levels
    return {
        "state": preview.state,
        "reason": preview.reason,
        "price": preview.price,
        "drift_atr": preview.drift,
        "lots": preview.lots,
        "levels": {name: getattr(at, name) for name in (*LEVELS, "atr")} if at else None,
        "checks": dict(preview.checks),
    }
