"""The words of an order, from its side to its end: one row for each value, read by all who show it.

Pages, help, notices, commands and docs read these rows; no other module has words for these values
(tests/house/test_one_wording.py). Why an order is not sent has its words in `deny_reasons`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from torra.words.badge import Badge, Remedy
from torra.words.deny_reasons import DenyReason


class SideWords(NamedTuple):
    """A side as a verb, its past, and the position that it makes."""

    verb: str
    past: str
    position: str


SIDES: Final[Mapping[str, SideWords]] = {
    "BUY": SideWords("buy", "bought", "long"),
    "SELL": SideWords("sell", "sold", "short"),
}
LEANS: Final[Mapping[str, str]] = {"LONG": "long", "SHORT": "short"}
"""The side of a position, and of a judge or an expert."""

ACTIONS: Final[Mapping[str, str]] = {
    "OPEN_BUY": "buy", "OPEN_SELL": "sell", "CLOSE": "close", "REVERSE": "reverse", "HOLD": "hold",
}  # fmt: skip
"""What an action does, as a verb; its badge stands in `ticks`."""

REASONS: Final[Mapping[str, str]] = {
    "AWAITS_APPROVAL": "a person decides: see Approvals",
    "HOSTED": "your scorer decides, and Torra sends nothing",
    "VERDICT": "the verdict opens a position",
    "OPPOSITE_VERDICT": "the verdict is against the open position",
    "POSITION_HELD": "the open position stays",
    "POSITION_CHANGED": "what was proposed no longer fits what the instance holds",
    "THRESHOLD": "no threshold is reached",
    **{reason.value: reason.meaning for reason in DenyReason},
}
"""What the reason of an action, or of the end of a proposal, means."""

WHY_HELD: Final[Mapping[str, str]] = {
    **{reason.value: reason.cause for reason in DenyReason},
    # a list does not know whether the gate or the trader latched the side
    "GATE_VETO": "a veto or decline of this side holds",
    "THRESHOLD": REASONS["THRESHOLD"],
    "POSITION_HELD": REASONS["POSITION_HELD"],
}
"""Why a tick ordered nothing, in few words, by the reason of its action."""

PROPOSALS: Final[Mapping[str, Badge]] = {
    "WAITING": Badge("◔", "waiting", "warn", "it waits for your yes"),
    "APPROVED": Badge("✓", "approved", "note", "a person approved it"),
    "REJECTED": Badge("✕", "rejected", "flat", "a person rejected it"),
    "EXPIRED": Badge("◷", "expired", "flat", "nobody answered in time"),
    "DENIED": Badge("⊘", "denied", "alert", "a check refused it when a person said yes"),
}
"""The states of a proposal."""

NOT_CONFIRMED: Final = (
    "the order may or may not be at the broker, and nothing sends it again: look in the terminal "
    "for its id; if there is a position, close it there; then resume, which ends the alarm"
)
"""What UNKNOWN_NOT_SENT means and what to do, in every text of pages, notices and docs."""

SIGNALS: Final[Mapping[str, Badge]] = {
    "WAITING": Badge(
        "◌", "waiting", "flat",
        "an opening waits until the position before it is closed; a close by hand, until it is "
        "known what became of its opening",
    ),
    "PENDING": Badge("◔", "pending", "note", "decided and stored; not handed to the bridge yet"),
    "PUBLISHED": Badge("◑", "published", "note", "handed to the bridge; no answer yet"),
    "CLAIMED": Badge("◕", "claimed", "note", "the other side has taken it"),
    "PLACED": Badge("◉", "placed", "note", "the order is at the broker and not executed yet"),
    "UNKNOWN": Badge(
        "?", "unknown", "alert",
        "it may or may not have reached the market: it counts as a position until the books or a "
        "person find out, and nothing is opened beside it",
    ),
    "PARTIAL": Badge(
        "◒", "partly filled", "warn", "executed in part: a position of the size that was filled"
    ),
    "FILLED": Badge(
        "●", "filled", "up", "executed: an opening is a position until it is CLOSED"
    ),
    "CLOSED": Badge("◆", "closed", "note", "the position has ended"),
    "REJECTED": Badge("✕", "rejected", "warn", "refused by a guard or by the broker"),
    "EXPIRED": Badge("◷", "expired", "flat", "its time ran out before it was executed"),
    "CANCELLED": Badge("∅", "cancelled", "flat", "taken back before it was executed"),
    "UNKNOWN_NOT_SENT": Badge("⁇", "not confirmed", "alert", NOT_CONFIRMED),
    "NOT_SENT": Badge("○", "not sent", "flat", "found never to have reached the market"),
}  # fmt: skip
"""The states of a signal (torra.verdict.signal_states), each with a glyph of its own."""

EXITS: Final[Mapping[str, str]] = {
    "STOPPED": "the stop was hit",
    "TARGET": "the target was hit",
    "CLOSED": "closed by a signal, or in the terminal",
    "BY_HAND": "closed by a person, from Torra",
    "END": "the bars ended",
}
"""Why a position ended."""

TAKEN_OVER: Final[Mapping[str, str]] = {
    "adopted": "the order of an earlier run was found and taken over",
    "OVERTAKEN": "a newer decision took its place",
}
"""What else the detail of a signal may begin with."""

EVOLUTIONS: Final[Mapping[str, Badge]] = {
    "Strengthened": Badge("↗", "strengthened", "up", "the position is ahead of its plan"),
    "Weakened": Badge(
        "↘", "weakened", "down", "the position is behind, or the trade ended near where it began"
    ),
    "Falsified": Badge("✕", "went wrong", "down", "the trade lost: its plan did not come true"),
    "Realized": Badge("✓", "came true", "up", "the trade won: its plan came true"),
    "Unknown": Badge(
        "·", "undecided", "flat", "it is too early to say, or a person ended the trade"
    ),
}
"""What the market says of the thesis of a trade."""

OUTCOMES: Final[Mapping[str, Badge]] = {
    "win": Badge("▲", "win", "up"),
    "loss": Badge("▼", "loss", "down"),
    "scratch": Badge("■", "scratch", "flat"),
}


ALARMS: Final[Mapping[str, Remedy]] = {
    "UNKNOWN": Remedy(
        "an order was sent and nobody knows what became of it",
        "Look in the terminal. If the order is there, leave it: comparing the books finds it. If "
        "it never was, settle the signal.",
    ),
    "PROFILE": Remedy(
        "a changed profile cannot be taken",
        "Mend the file, then let the desk take it on the page of the profile.",
    ),
    "CLOCK_SHIFT": Remedy(
        "the times of its bars have shifted, so the scores of its timeframes do not fit together",
        "Import the bars whose clock was wrong again: torra import with --clock and --revise. The "
        "alarm ends within a day.",
    ),
    "UNKNOWN_NOT_SENT": Remedy(NOT_CONFIRMED),
    "MISSING": Remedy(
        "neither positions nor deals at the broker show an order",
        "Look in the terminal's history; if it never was, settle the signal.",
    ),
    "HAND_CLOSE": Remedy(
        "a close by hand ended without closing, and the position may still be open",
        "Close it again here, or in the terminal; the alarm ends when it is closed.",
    ),
    "EXTERNAL": Remedy(
        "the broker has a position that no signal explains",
        "Close it in the terminal or keep it knowingly; then resume.",
    ),
    "LATE_EXECUTION": Remedy(
        "the market executed an order that had ended here",
        "Close the position in the terminal or keep it knowingly; then resume.",
    ),
    "ORDER_ALTERED": Remedy(
        "an order is not the one that was decided; it was not sent, and trading is halted",
        "Find out who writes to the database besides Torra, and compare the positions with the "
        "terminal; then resume.",
    ),
    "ODD_REPORT": Remedy(
        "the bridge reported an execution that cannot be; nothing was booked from it",
        "Comparing the books ends this. If the order never was, settle the signal.",
    ),
    "ODD_BOOKS": Remedy(
        "the broker's list of positions tells what cannot be, so it is not compared",
        "Look at that row in the terminal; a list without it ends the alarm.",
    ),
    "ODD_SIGNAL": Remedy(
        "a signal in the database cannot be read; it is never sent",
        "Look in the terminal for its id, and restore a backup if you did not change the database "
        "yourself.",
    ),
    "BRIDGE": Remedy(
        "the bridge was sent what it does not believe: forged, damaged or impossible",
        "See who may write into the channel's folder; then resume.",
    ),
    "UNPROTECTED": Remedy(
        "a position has no stop at the broker", "Set one in the terminal, or close it."
    ),
}
"""Every kind of alarm."""
