"""What a notice says: one plain line, the subject first, as a trader would put it.

Built from numbers and from words of ours. What a bridge, a model or a stranger wrote is left out;
the one text of a person, the reason of a halt, is made harmless first. No folder, account, address
or token gets in. With `short` no price, no size and no amount is told. Pure functions.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

from torra.bridges.guards import GUARDS
from torra.clock import parse
from torra.config import SymbolSpec
from torra.errors import MALFORMED
from torra.harmless_text import HOSTILE
from torra.providers.call_health import ModelHealth
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


SMALLER: Final = (
    "torra models says why, and what to do. Where agents count, an opening is smaller while none "
    "is heard."
)


class NoticeText(NamedTuple):
    """The title and the text of a notice."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class NoticeFormatter:
    """How things are said: `short` leaves amounts out, `mark` stands before every title."""

    short: bool = False
    mark: str = ""

    def say(self, subject: str, told: str, text: str) -> NoticeText:
        """Return a title, with its mark, and a text."""
        return NoticeText(f"{self.mark}{subject}: {told}", text)

    def proposal(self, row: Mapping[str, Any], spec: SymbolSpec | None) -> NoticeText:
        """Say that a proposal waits for a person."""
        orders = [one for draft in _drafts(row["drafts"]) if (one := self._order(draft, spec))]
        what = " and ".join(orders) or "an order"
        until = f"Until {clock(row['expires'])} UTC."
        return self.say(row["instance"], "a proposal waits", f"{capital(what)}. {until}")

    def fill(self, row: Mapping[str, Any], spec: SymbolSpec | None) -> NoticeText:
        """Say that a position was opened."""
        side = SIDES[row["side"]].past
        if self.short:
            return self.say(row["instance"], side, f"A position is open ({row['timeframe']}).")
        lots = row["filled_lots"] if row["filled_lots"] is not None else row["lots"]
        at = row["price"] if row["price"] is not None else row["entry"]
        told = f"{side} {size(lots)} lots at {price(at, spec)}"
        levels = f"Stop {price(row['stop'], spec)}, target {price(row['target'], spec)}."
        return self.say(row["instance"], told, levels)

    def closed(self, row: Mapping[str, Any], spec: SymbolSpec | None, currency: str) -> NoticeText:
        """Say that a position was closed, and with which result."""
        reason = EXITS.get(str(row["close_reason"]))
        how = f": {reason}" if reason else ""
        was = SIDES[row["side"]].position
        if self.short:
            return self.say(row["instance"], "closed", f"The {was} position ended{how}.")
        result = money(row["profit"], currency)
        r = "" if number(row["r_multiple"]) is None else f", {row['r_multiple']:+.2f} R"
        at = f" at {price(row['close_price'], spec)}" if number(row["close_price"]) else ""
        lots = row["filled_lots"] if row["filled_lots"] is not None else row["lots"]
        text = f"The {was} position of {size(lots)} lots ended{at}{how}."
        return self.say(row["instance"], f"closed, {result}{r}", text)

    def refused(self, row: Mapping[str, Any], spec: SymbolSpec | None) -> NoticeText:
        """Say that an order to open a position was refused, or ran out of time."""
        told = "an order was refused" if row["to_state"] == "REJECTED" else "an order expired"
        side = SIDES[row["side"]].verb
        order = f"to {side}" if self.short else f"to {side} {size(row['lots'])} lots"
        at = "" if self.short else f" near {price(row['entry'], spec)}"
        code = CODE.match(str(row["detail"] or ""))
        why = MEANINGS.get(code[0], "") if code else ""
        because = f": {why}" if why else ""
        return self.say(row["instance"], told, f"The order {order}{at} was not filled{because}.")

    def state(self, state: str, reason: str) -> NoticeText:
        """Say that trading was halted, reduced or resumed."""
        why = f"Why: {harmless(reason)}. " if harmless(reason) else ""
        if state == "HALTED":
            return self.say(
                "Torra", "trading is HALTED", f"{why}No signal is sent until a person resumes."
            )
        if state == "REDUCING":
            return self.say("Torra", "trading is REDUCING", f"{why}Positions are closed only.")
        return self.say("Torra", "trading goes on", f"{why}Signals may be sent again.")

    def alarm(self, kind: str, instance: str) -> NoticeText:
        """Say that an alarm stands, in words of ours for its kind."""
        means = ALARMS[kind].meaning if kind in ALARMS else "something needs a person"
        what = f"alarm {kind}" if kind in ALARMS else "an alarm stands"
        text = f"{capital(means)}. See Signals and positions, or torra signals."
        return self.say(instance or "Torra", what, text)

    def ceiling(self, profile: str, spent: float, most: float) -> NoticeText:
        """Say that models have cost most of what an hour may cost."""
        share = f"{spent / most:.0%}"
        text = f"Models have used {share} of the hour's ceiling of profile {profile}"
        usd = "" if self.short else f": {spent:.4f} of {most:.4f} USD"
        then = "At the ceiling no model is asked, and the arithmetic decides alone."
        return self.say("Torra", f"cost at {share} of the ceiling", f"{text}{usd}. {then}")

    def failing(self, vendor: str, models: Sequence[ModelHealth]) -> NoticeText:
        """Say that models of a vendor fail."""
        told = (
            f"Of the newest {one.calls} calls to {one.model} {one.usable} were usable."
            for one in models
        )
        return self.say(vendor, "models fail", f"{' '.join(told)} {SMALLER}")

    def well(self, vendor: str) -> NoticeText:
        """Say that models of a vendor that failed are well again."""
        return self.say(vendor, "models are well again", "Their newest calls were usable.")

    def silent(self, instance: str, timeframe: str, quiet_for: timedelta) -> NoticeText:
        """Say that no bar has come for long."""
        text = (
            f"No bar of {timeframe} for {span(quiet_for)}: the feed is silent, or the market is "
            "closed. No tick runs and nothing is opened meanwhile."
        )
        return self.say(instance, "no bars", text)

    def dropped(self, count: int) -> NoticeText:
        """Say that notices were not sent because too many waited."""
        what = "1 notice was" if count == 1 else f"{count} notices were"
        return self.say(
            "Torra", f"{what} dropped", "Too many waited for a service. torra notices lists them."
        )

    def test(self) -> NoticeText:
        """Return the notice of `torra notices test`."""
        return self.say("Torra", "a test", "If you read this, notices reach you.")

    def _order(self, draft: Mapping[str, Any], spec: SymbolSpec | None) -> str:
        side = SIDES["BUY" if draft.get("side") == "BUY" else "SELL"].verb
        if draft.get("kind") == "close":
            return "close the position" if self.short else f"close {size(draft.get('lots'))} lots"
        if self.short:
            return side
        told = f"{side} {size(draft.get('lots'))} lots"
        levels = draft.get("levels")
        if isinstance(levels, Mapping):
            told += (
                f" at {price(levels.get('entry'), spec)}, stop {price(levels.get('stop'), spec)}"
            )
        return told


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


def clock(moment: str) -> str:
    """Write the time of day of a stored moment, UTC."""
    return parse(moment).strftime("%H:%M")


def span(length: timedelta) -> str:
    """Write a length of time in its largest useful unit."""
    minutes = int(length.total_seconds() // 60)
    if minutes < 120:
        return f"{minutes} minutes"
    hours = minutes // 60
    return f"{hours} hours" if hours < 72 else f"{hours // 24} days"


def _drafts(told: str) -> Sequence[Mapping[str, Any]]:
    try:
        return [one for one in json.loads(told) if isinstance(one, dict)]
    except MALFORMED:
        return []
