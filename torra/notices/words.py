"""What a notice says: one plain line, the subject first, as a trader would put it.

Built from numbers and from words of ours. What a bridge, a model or a stranger wrote is left out;
the one text of a person, the reason of a halt, is made harmless first. No folder, account, address
or token gets in. With `short` no price, no size and no amount is told. Pure functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from agents.features import rows_of
from torra.bridges.guards import GUARDS
from torra.clock import parse
from torra.config import SymbolSpec
from torra.harmless_text import HOSTILE
from torra.providers.call_health import ModelHealth
from torra.store.trade.rows import Draft, ProposalRow, SignalEvent
from torra.words.badge import capital
from torra.words.deny_reasons import DenyReason
from torra.words.orders import ALARMS, EXITS, SIDES

LONGEST_REASON: Final = 160
IN_MONEY: Final = "in the account's currency"
"""What is said where nobody has told the currency."""

DIGITS: Final = 5
"""Decimals of a price whose symbol is not known."""

HIDDEN: Final = "..."
PRIVATE: Final = re.compile(
    r"\baccount\s+\S*\d\S*|\S*[/\\@]\S*|\S*\d{5,}\S*|\S{24,}", re.IGNORECASE
)
"""What may be a folder, an address, an account number or a token, in words of a person."""

MARKUP: Final = re.compile(r"[<>*_`|~\[\]{}#]+")
"""What a messenger may take for a mark of its own."""

MEANINGS: Final = {
    **{reason.value: reason.meaning for reason in DenyReason},
    **{guard.reason: guard.meaning for guard in GUARDS},
}
"""Why an order was refused, by the code with which the detail of a signal begins."""

CODE: Final = re.compile(r"[A-Za-z_]+")


TEXTS: Final = {row["name"]: row for row in rows_of(Path(__file__).with_name("notices.csv"))}
"""The notices by their names: kind, level, and title and text, plain and short."""


class NoticeText(NamedTuple):
    """The title and the text of a notice."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class NoticeFormatter:
    """How things are said: `short` leaves amounts out, `mark` stands before every title."""

    short: bool = False
    mark: str = ""

    def say(self, name: str, subject: str, **facts: object) -> NoticeText:
        """Return the notice of a name about a subject; `facts` fill its row of notices.csv."""
        row, short = TEXTS[name], "short_" if self.short and TEXTS[name]["short_text"] else ""
        title, text = (row[f"{short}{part}"].format(**facts) for part in ("title", "text"))
        return NoticeText(f"{self.mark}{subject}: {title}", text)

    def proposal_facts(self, row: ProposalRow, spec: SymbolSpec | None) -> dict[str, str]:
        """Return what the notice of a proposal says."""
        orders = " and ".join(self._order(draft, spec) for draft in row.orders)
        return {"orders": capital(orders or "an order"), "until": f"{parse(row.expires):%H:%M}"}

    def _order(self, draft: Draft, spec: SymbolSpec | None) -> str:
        if draft.kind == "close":
            return "close the position" if self.short else f"close {size(draft.lots)} lots"
        verb, at = SIDES[draft.side].verb, draft.levels
        if self.short:
            return verb
        levels = f" at {price(at.entry, spec)}, stop {price(at.stop, spec)}" if at else ""
        return f"{verb} {size(draft.lots)} lots{levels}"


def facts_of(row: SignalEvent, spec: SymbolSpec | None, currency: str) -> dict[str, str]:
    """Return what the notices of an order to open say: its side, sizes, prices and result."""
    side = SIDES["BUY" if row.side == "BUY" else "SELL"]
    reason, code = EXITS.get(str(row.close_reason)), CODE.match(str(row.detail or ""))
    why = MEANINGS.get(code[0], "") if code else ""
    return {
        "past": side.past,
        "verb": side.verb,
        "position": side.position,
        "timeframe": row.timeframe,
        "lots": size(row.lots if row.filled_lots is None else row.filled_lots),
        "size": size(row.lots),
        "price": price(row.entry if row.price is None else row.price, spec),
        "entry": price(row.entry, spec),
        "stop": price(row.stop, spec),
        "target": price(row.target, spec),
        "result": money(row.profit, currency),
        "r": "" if number(row.r_multiple) is None else f", {row.r_multiple:+.2f} R",
        "at": f" at {price(row.close_price, spec)}" if number(row.close_price) else "",
        "how": f": {reason}" if reason else "",
        "refusal": "was refused" if row.to_state == "REJECTED" else "expired",
        "because": f": {why}" if why else "",
    }


def alarm_facts(kind: str) -> dict[str, str]:
    """Return what the notice of an alarm says, in words of ours for its kind."""
    if kind not in ALARMS:
        return {"what": "an alarm stands", "meaning": "Something needs a person"}
    return {"what": f"alarm {kind}", "meaning": capital(ALARMS[kind].meaning)}


def failing_models(models: Sequence[ModelHealth]) -> str:
    """Return how models of a vendor fail."""
    return " ".join(
        f"Of the newest {row.calls} calls to {row.model} {row.usable} were usable."
        for row in models
    )


def harmless(text: str) -> str:
    """Return a person's words as one short plain line, with what may be private left out."""
    plain = MARKUP.sub(" ", HOSTILE.sub("", " ".join(text.split())))
    masked = " ".join(PRIVATE.sub(HIDDEN, plain).split())
    if len(masked) > LONGEST_REASON:
        masked = f"{masked[: LONGEST_REASON - len(HIDDEN)]}{HIDDEN}"
    return masked.rstrip(". ")


def number(value: object) -> float | None:
    """Return a stored number, None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def price(value: object, spec: SymbolSpec | None) -> str:
    """Write a price with the symbol's own decimals."""
    known = number(value)
    if known is None:
        return "an unknown price"
    return f"{known:.{spec.digits}f}" if spec else f"{known:.{DIGITS}f}".rstrip("0").rstrip(".")


def size(value: object) -> str:
    """Write lots."""
    known = number(value)
    return "an unknown number of" if known is None else f"{known:.2f}"


def money(value: object, currency: str) -> str:
    """Write a result with its currency."""
    known = number(value)
    if known is None:
        return "what it came to is not known"
    won = "won" if known > 0 else "lost" if known < 0 else "came to"
    return f"{won} {abs(known):,.2f} {currency or IN_MONEY}"


def span(length: timedelta) -> str:
    """Write a length of time in its largest useful unit."""
    minutes = int(length.total_seconds() // 60)
    if minutes < 120:
        return f"{minutes} minutes"
    hours = minutes // 60
    return f"{hours} hours" if hours < 72 else f"{hours // 24} days"
