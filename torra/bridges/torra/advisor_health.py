"""Judges the Advisor's health from its signed state files, by a clock of our own.

`Latest` keeps the newest authentic copy of a state file. A file that is missing, half written or
forged changes nothing. A copy of an older file is no advance: nobody can keep a dead Advisor alive
by putting its last heartbeats back. `objections` yields the reasons for sending nothing, each with
a remedy; the first one is shown. Pure: bytes, times and settings come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, Generic, TypeVar

from torra.advisor_protocol import difference
from torra.bridges.protocol import ALIVE_SECONDS, OFFSET_TOLERANCE, Health
from torra.bridges.torra.messages import (
    Deals,
    Heartbeat,
    MessageError,
    Positions,
    Symbols,
)
from torra.config import Channel
from torra.verdict.risk_engine import DenyReason

REAL: Final = "real"
"""Trade mode of an account with real money; demo and contest accounts hold none."""


S = TypeVar("S", Heartbeat, Positions, Deals, Symbols)
"""A state file: `n` counts up while the Advisor runs and begins anew when it starts."""


class Latest(Generic[S]):
    """The newest authentic copy of one state file, and what was last wrong with the file.

    `advanced` is the monotonic time of its last advance. It is None before the second copy, because
    the first one may have lain there for long. `ahead` is by how many seconds the other clock was
    ahead at the last advance.
    """

    def __init__(self, place: str, limit: int, read: Callable[[bytes], S]) -> None:
        self.place = place
        self.limit = limit
        self.good: S | None = None
        self.trouble: MessageError | None = None
        self.advanced: float | None = None
        self.ahead = 0.0
        self._read: Callable[[bytes], S] = read
        self._raw: bytes | None = None

    def take(self, raw: bytes | None, now: datetime, monotonic: float) -> str:
        """Look at the file's bytes; return what is suspicious about them, "" for nothing."""
        # The same bytes again are no second copy, and so no advance.
        if raw is None or raw == self._raw:
            return ""
        self._raw, self.trouble = raw, None
        try:
            message = self._read(raw)
        except MessageError as error:
            self.trouble = error
            # Half a file is only being written; a whole one that is none is an alarm.
            return str(error) if error.reason != "version" and error.whole else ""
        last = self.good
        # An Advisor that starts anew counts from 1 again, so a later time is an advance too.
        if last is None or message.n > last.n or message.gmt > last.gmt:
            self.advanced = None if last is None else monotonic
            self.good, self.ahead = message, message.gmt - now.timestamp()
            return ""
        return "an older copy was put back" if message.n < last.n and message.gmt < last.gmt else ""

    def age(self, monotonic: float) -> float | None:
        """Return the seconds since the last advance, None before the first."""
        return None if self.advanced is None else monotonic - self.advanced


def objections(
    heart: Latest[Heartbeat], name: str, channel: Channel, monotonic: float
) -> Iterator[Health]:
    """Yield the reasons against sending to the channel `name`, the most telling first."""
    # First: an Advisor of another version seems dead too, for its heartbeat is not read.
    if heart.trouble and heart.trouble.reason == "version":
        yield Health(DenyReason.VERSION_MISMATCH, difference(name, *heart.trouble.versions))
    age = heart.age(monotonic)
    if age is None or age > ALIVE_SECONDS:
        yield Health(DenyReason.BRIDGE_DEAD, _dead(heart, age, name, channel))
    beat = heart.good
    if beat is None:
        return
    dead, halted, skew = (
        DenyReason.BRIDGE_DEAD, DenyReason.TRADING_HALTED, DenyReason.CLOCK_SKEW,
    )  # fmt: skip
    obstacles = (
        (
            beat.channel != name, dead,
            f"the Advisor serves channel {beat.channel}, not {name}: set its input channel",
        ),
        (
            beat.account != channel.account, dead,
            f"MetaTrader is on account {beat.account}, not {channel.account}: log in there or set "
            f"channels.{name}.account",
        ),
        (
            beat.trade_mode == REAL and not channel.live, dead,
            f"account {beat.account} holds real money: set channels.{name}.live to true if orders "
            "shall go there",
        ),
        (
            abs(heart.ahead) > OFFSET_TOLERANCE, skew,
            f"the Advisor's clock is {heart.ahead:+.0f} s off this one: set both by a time server",
        ),
        (
            beat.kill, halted,
            "the Advisor says that control/HALT is there: `torra resume` lets orders go again",
        ),
        (
            not beat.connected, dead,
            "MetaTrader has no connection to the broker: see its Journal",
        ),
        (
            not beat.algo_allowed, dead,
            "algo trading is off: press Algo Trading in MetaTrader and allow it for TorraBridge",
        ),
        (
            not beat.trade_allowed, dead,
            "trading is not allowed: see the Advisor's input allow_trading, and the account",
        ),
    )  # fmt: skip
    yield from (Health(deny, detail) for stands, deny, detail in obstacles if stands)


def _dead(heart: Latest[Heartbeat], age: float | None, name: str, channel: Channel) -> str:
    trouble = heart.trouble
    if trouble and trouble.whole and trouble.reason == "auth":
        return (
            "the heartbeat's signature does not fit: give the Advisor's input channel_key and "
            f"{channel.key_variable} the same value"
        )
    if trouble:
        return f"the heartbeat {heart.place} is not legible, {trouble}: look at it"
    if heart.good is None:
        return (
            f"there is no heartbeat {heart.place}: attach TorraBridge to a chart, with channel "
            f"{name} and its key"
        )
    if age is None:
        return (
            "the heartbeat has not advanced since it was first seen: wait some seconds, or attach "
            "TorraBridge to a chart"
        )
    return (
        f"no sign of life from the Advisor for {age:.0f} s: see that MetaTrader runs and "
        "TorraBridge is attached"
    )
