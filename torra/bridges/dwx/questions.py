"""The questions to DWX Connect's Expert Advisor beside orders: quotes, and the history of deals.

Questions go through the same file as orders, one at a time, and change nothing in the account. A
question that the Expert Advisor has not taken for QUESTION_SECONDS is removed, so that it keeps no
order waiting; a command that is no question is never touched. Nothing here raises: what cannot be
asked now is asked later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from torra.bridges.dwx.files import COMMAND, DealRow, DwxFolder
from torra.clock import Clock
from torra.errors import BridgeUnavailable

TURN_SECONDS: Final = 2.0
"""How long an order waits for the one before, and a question for its answer."""

PAUSE: Final = 0.02
"""Seconds between two looks; the Expert Advisor looks every 25 ms."""

SUBSCRIBE_SECONDS: Final = 5.0
"""Quotes that are missing are asked for this often."""

QUESTION_SECONDS: Final = 5.0
QUESTIONS: Final = ("SUBSCRIBE_SYMBOLS", "GET_HISTORIC_TRADES")
NOT_SUBSCRIBED: Final = "Could not subscribe to symbols: "


class Questions:
    """The questions of one bridge; `symbols` are the broker's names whose quotes are wanted."""

    def __init__(self, folder: DwxFolder, symbols: Iterable[str], clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._symbols = dict.fromkeys(symbols)
        self._subscribed = -math.inf
        self._waiting: tuple[str, float] = ("", 0.0)
        self.refused: set[str] = set()
        """Symbols that the broker does not have."""

    def slot_free(self) -> bool:
        """Return whether no command waits; a question that nobody takes is taken away."""
        text = self._folder.waiting()
        if text is None:
            return True
        now = self._clock.monotonic()
        if text != self._waiting[0]:
            self._waiting = (text, now)
        found = COMMAND.fullmatch(text)
        # An order, or a stranger's command: only whoever laid it down may remove it.
        if found is None or found.group(2) not in QUESTIONS:
            return False
        return now - self._waiting[1] > QUESTION_SECONDS and self._folder.withdraw(text)

    def want(self, symbol: str) -> None:
        """Ask for a symbol's quotes too, from now on."""
        if symbol not in self._symbols:
            self._symbols[symbol] = None
            self._subscribed = -math.inf

    def subscribe(self) -> None:
        """Ask for the quotes that are missing: at the start, and after the other side's restart."""
        self._learn_refused()
        wanted = [item for item in self._symbols if item not in self.refused]
        known = self._folder.quotes.read() or {}
        now = self._clock.monotonic()
        if now - self._subscribed < SUBSCRIBE_SECONDS or all(item in known for item in wanted):
            return
        if self._ask("SUBSCRIBE_SYMBOLS", ",".join(wanted)):
            self._subscribed = now

    def ask_history(self, days: int) -> bool:
        """Ask for the deals of the last days; False when that cannot be done now."""
        # Remove the old answer first, or it would pass for the answer to this question.
        return self._folder.forget_trades() and self._ask("GET_HISTORIC_TRADES", str(days))

    def history(self, days: int) -> tuple[DealRow, ...] | None:
        """Return the deals of the last days, None when they do not come in time."""
        end = self._clock.monotonic() + TURN_SECONDS
        asked = False
        while self._clock.monotonic() < end:
            asked = asked or self.ask_history(days)
            rows = self._folder.trades.read() if asked else None
            if rows is not None:
                return rows
            self._clock.sleep(PAUSE)
        return None

    def _ask(self, name: str, content: str) -> bool:
        if not self.slot_free():
            return False
        try:
            text = self._folder.next_command(name, content)
            self._folder.publish(text)
        except BridgeUnavailable:
            return False
        self._waiting = (text, self._clock.monotonic())
        return True

    def _learn_refused(self) -> None:
        """Leave out the symbols that the broker does not have.

        A list with such a name in it leaves the Expert Advisor with an empty one, about which it
        complains without end.
        """
        for message in (self._folder.messages.read() or {}).values():
            if message.error == "SUBSCRIBE_SYMBOL":
                names = set(message.text.removeprefix(NOT_SUBSCRIBED).split(", "))
                if fresh := names & set(self._symbols) - self.refused:
                    self.refused |= fresh
                    self._subscribed = -math.inf
