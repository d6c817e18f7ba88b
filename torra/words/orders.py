"""The words of an order, from its side to its end: one row of words.csv for each value.

Pages, help, notices, commands and docs read these rows; no other module has words for these values
(tests/house/test_one_wording.py). Why an order is not sent has its words in `deny_reasons`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from torra.words.badge import badges, remedies, texts
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

ACTIONS: Final = texts("action")
"""What an action does, as a verb; its badge stands in `ticks`."""

REASONS: Final = {
    **texts("reason"),
    **{reason.value: reason.meaning for reason in DenyReason},
}
"""What the reason of an action, or of the end of a proposal, means."""

HOLD_REASONS: Final[Mapping[str, str]] = {
    **{reason.value: reason.cause for reason in DenyReason},
    # a list does not know whether the gate or the trader latched the side
    "GATE_VETO": "a veto or decline of this side holds",
    "THRESHOLD": REASONS["THRESHOLD"],
    "POSITION_HELD": REASONS["POSITION_HELD"],
}
"""Why a tick ordered nothing, in few words, by the reason of its action."""

PROPOSALS: Final = badges("proposal")
"""The states of a proposal."""

SIGNALS: Final = badges("signal")
"""The states of a signal (torra.verdict.signal_states), each with a glyph of its own."""

NOT_CONFIRMED: Final = SIGNALS["UNKNOWN_NOT_SENT"].meaning
"""What UNKNOWN_NOT_SENT means and what to do, in every text of pages, notices and docs."""

EXITS: Final = texts("exit")
"""Why a position ended."""

TAKEN_OVER: Final = texts("taken_over")
"""What else the detail of a signal may begin with."""

EVOLUTIONS: Final = badges("evolution")
"""What the market says of the thesis of a trade."""

OUTCOMES: Final = badges("outcome")

ALARMS: Final = remedies("alarm")
"""Every kind of alarm."""
