"""What the thirty-second screen reckons: checks, ladder, conviction, panel and sums of a proposal.

It reads the proposal's row, the record of its tick and the preview of its approval. If the tick is
no longer stored, or no price is known, a part is empty and gives the reason. Pure functions over
plain values; torra.tick.approval decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import JsonValue

from agent_config import TRADER_ID
from agents.contracts import ADJUSTMENT_BOUND
from torra.dashboard.record import arithmetic, transcript
from torra.dashboard.record.arithmetic import ScoreStep
from torra.dashboard.record.shown import NOT_COUNTED, WATCH_ONLY
from torra.dashboard.record.thesis import costs
from torra.dashboard.record.transcript import Voice
from torra.dashboard.trade import trade_rows
from torra.exhibits import figures
from torra.store.trade.rows import ProposalRow
from torra.tick.sentence import NO_AGENT, outage_of
from torra.tick.tick_record import TickRecord
from torra.verdict.position_size import worth
from torra.verdict.trade_outcome import gain
from torra.words.badge import Badge
from torra.words.orders import PROPOSALS, REASONS

if TYPE_CHECKING:
    from torra.dashboard.trade.order import DeskOrder
    from torra.tick.approval import Preview
    from torra.trading.hand_close import CloseQuote
    from torra.verdict.risk_engine import PositionSide

UNCHECKED: Final = "not asked"
OUTCOMES: Final = {
    "ok": Badge("✓", "ok", "note"),
    "failed": Badge("✗", "failed", "alert"),
    UNCHECKED: Badge("·", UNCHECKED, "flat"),
}
"""How a check ends."""

TRADER: Final = "Trader"
"""The chip of a desk that asks a trader."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Desk": ("TRADING_HALTED", "TRADING_REDUCING"),
    "Gate": ("GATE_VETO", "GATE_CANNOT_OPEN"),
    TRADER: ("TRADER_DECLINED",),
    "Fresh": ("STALE_BAR", "STALE_SCORE", "DUPLICATE_SIGNAL", "POSITION_CHANGED"),
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

STEPS: Final = (
    "L1 score", "Debate", "Gate multiplier", "Adjustment", "Agent score", "Blended score",
)  # fmt: skip
"""Steps of the arithmetic that the screen shows; the tick's page has all of them."""

LEVELS: Final = ("stop", "entry", "target")
CLOSE_LEVELS: Final = ("stop", "entry", "now", "target")

UNREADABLE: Final = " (cannot be read)"


def name_of(row: ProposalRow) -> str:
    """Return what a line calls a proposal: of one whose orders cannot be read it says so."""
    return trade_rows.name_of(row) + (UNREADABLE if row.damaged else "")


def mark_of(row: ProposalRow) -> Badge:
    """Return the mark of a proposal's state."""
    return PROPOSALS.get(row.state, figures.mark(row.state))


def meaning_of(row: ProposalRow) -> str:
    """Return the meaning of the reason for which a proposal ended; "" for one in words."""
    return REASONS.get(row.reason, "")


# --- 1: the header line ---------------------------------------------------------------------------


def conviction(record: TickRecord | None, side: str) -> tuple[float | None, str]:
    """Return the calibrated conviction behind a side, and what was taken off the raw one.

    None where there is none, or where it did not count; the note says so.
    """
    if record is None:
        return None, "no panel is stored for this tick"
    agreement = record.deliberation.panel.agreement(side)
    calibrated, raw = agreement.conviction, agreement.raw
    if record.deliberation.in_shadow:
        return None, f"{figures.plain(calibrated, 2)}, {NOT_COUNTED}"
    if outage_of(record) is not None:
        return calibrated, NO_AGENT
    off = 1 - calibrated / raw if raw else 0.0
    cause = f", {named}" if (named := costs(record.deliberation, side)) else " panel split"
    # less than half a per cent would be written as 0 %
    split = f", {figures.MINUS}{off:.0%}{cause}" if off >= 0.005 else ""
    return calibrated, f"raw {raw:.2f}{'; agents against' if agreement.leans_against else split}"


def end_now(preview: Preview | None, trouble: str) -> Badge:
    """Return how approving would end now."""
    if preview is None:
        return Badge("✗", f"cannot be approved: {figures.sanitize(trouble, 200)}", "alert")
    if preview.passes:
        return Badge("✓", "every check agrees", "note")
    word = f"{preview.state}: {figures.sanitize(preview.reason, 60)}"
    return Badge("✗", word, "alert", REASONS.get(preview.reason, ""))


# --- 2: the risk strip ----------------------------------------------------------------------------


def chips(preview: Preview | None, record: TickRecord | None) -> dict[str, Badge]:
    """Return each group of checks: agreed, objecting with its rules, or not asked."""
    outcomes, unheard = check_outcomes(preview, record), _unheard(record)
    badges = {}
    for name in groups(record):
        group = {rule: outcomes.get(rule, UNCHECKED) for rule in GROUPS[name]}
        failed = [rule for rule, outcome in group.items() if outcome == "failed"]
        outcome = "failed" if failed else "ok" if "ok" in group.values() else UNCHECKED
        word = f"{name}: {', '.join(failed)}" if failed else name
        meaning = "; ".join(REASONS[rule] for rule in failed) or f"{outcome}: {', '.join(group)}"
        if name == TRADER and unheard:
            word, meaning = f"{TRADER}: {unheard}", f"{unheard}: nothing objects"
        badges[name] = OUTCOMES[outcome]._replace(word=word, meaning=meaning)
    return badges


def check_outcomes(preview: Preview | None, record: TickRecord | None) -> dict[str, str]:
    """Return how each check ends now: ok, failed, or not asked; the trader's where one is asked."""
    outcomes: dict[str, str] = dict(preview.checks) if preview else {}
    for rule in GROUPS[TRADER]:
        if TRADER not in groups(record):
            outcomes.pop(rule, None)
        elif rule in outcomes and _unheard(record):
            outcomes[rule] = UNCHECKED
    return outcomes


def _unheard(record: TickRecord | None) -> str:
    """Return why a trader has not spoken for or against an opening; "" where its word counts."""
    consulted = record.deliberation.consulted if record else None
    if record is None or consulted is None:
        return UNCHECKED
    if record.deliberation.in_shadow:
        return WATCH_ONLY
    return "" if consulted.report else "no answer"


def groups(record: TickRecord | None) -> list[str]:
    """Return the chips of a proposal: the trader's only where the desk asks one."""
    return [name for name in GROUPS if name != TRADER or (record and record.company)]


# --- 3: the ladder --------------------------------------------------------------------------------


class LadderStep(NamedTuple):
    """A level: its price, and how far it lies from the entry, in R, in ATRs and in money."""

    price: float | None = None
    r: float | None = None
    atr: float | None = None
    cash: float | None = None


def ladder(order: DeskOrder) -> dict[str, LadderStep]:
    """Return each level of an opening, or of the position that is to be closed.

    A level of which nothing is known has no number.
    """
    if order.closing and order.quote:
        return _closing_ladder(order.quote, order.proposal_row.atr)
    at, spec = order.levels, order.terms.spec
    if at is None or spec is None:
        return dict.fromkeys(LEVELS, LadderStep())
    side: PositionSide = "LONG" if at.target > at.entry else "SHORT"
    steps = {"entry": LadderStep(at.entry)}
    for level, price in (("stop", at.stop), ("target", at.target)):
        moved = gain(side, at.entry, price)
        cash = worth(moved, order.lots, spec)
        steps[level] = LadderStep(price, moved / abs(at.entry - at.stop), moved / at.atr, cash)
    return {level: steps[level] for level in LEVELS}


def _closing_ladder(quote: CloseQuote, atr: float) -> dict[str, LadderStep]:
    position, steps = quote.position, dict.fromkeys(CLOSE_LEVELS, LadderStep())
    for level, end in quote.ends.items():
        moved = gain(position.side, position.entry, end.price) / atr if atr else None
        steps[level] = LadderStep(end.price, end.r, moved, end.profit)
    return steps | {"entry": LadderStep(steps["entry"].price)}


# --- 4: the panel ---------------------------------------------------------------------------------


def panel(record: TickRecord) -> list[Voice]:
    """Return each agent that was asked; the trader has a block of its own."""
    return [voice for voice in transcript.people(record) if voice.name != TRADER_ID]


# --- 5: the arithmetic ----------------------------------------------------------------------------


def steps(record: TickRecord) -> list[ScoreStep]:
    """Return the steps from L1 to the verdict that the screen shows."""
    steps_by_name = {step.name: step for step in arithmetic.steps(record)}
    return [steps_by_name[name] for name in STEPS if name in steps_by_name]


def clamped(record: TickRecord) -> list[str]:
    """Return the scores whose adjustment was cut at its limit."""
    # stored numbers are rounded: one on the bound may lie a hair inside
    bound = ADJUSTMENT_BOUND - arithmetic.TOLERANCE
    return [
        figures.title(name)
        for name, value in record.adjustments.items()
        if abs(value or 0.0) >= bound
    ]


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
