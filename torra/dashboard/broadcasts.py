"""Blinker signals for a host program: a tick has ended, a trading signal or the state has changed.

    from torra.dashboard import broadcasts

    @broadcasts.tick_finished.connect
    def noted(sender, instance, timeframe, bar_time, stream_id, **more): ...

The signals are sent in the process of the desk, on the thread that writes events, after the
database has what they tell of. The sender is the desk's EventStream. An exception of one receiver
is logged and stops neither the other receivers nor a tick. A receiver should return at once: the
next event is written only after it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from blinker import NamedSignal, Namespace

from torra.desk.event_stream import EventStream

LOG: Final = logging.getLogger("torra.dashboard")

SIGNALS: Final = Namespace()

tick_finished: Final = SIGNALS.signal("torra-tick-finished")
"""A tick has ended, well or not: instance, timeframe, bar_time, stream_id."""

signal_changed: Final = SIGNALS.signal("torra-signal-changed")
"""A row of the outbox or a proposal has changed; look into the database for which one."""

state_changed: Final = SIGNALS.signal("torra-state-changed")
"""The trading state has changed, or a person gave a command."""

TOLD_BY: Final[Mapping[str, NamedSignal]] = {
    "tick": tick_finished,
    "signals": signal_changed,
    "proposals": signal_changed,
    "state": state_changed,
}
"""Which change sends which signal."""


def send_from(events: EventStream) -> None:
    """Send the signals for every event of this desk from now on."""

    def told(change: Mapping[str, str]) -> None:
        signal = TOLD_BY.get(change.get("what", ""))
        if signal is not None:
            send(signal, events, change)

    events.listen(told)


def send(signal: NamedSignal, sender: EventStream, change: Mapping[str, str]) -> None:
    """Call every receiver of a signal; an exception of one does not stop the next."""
    # not signal.send(): there the first receiver that raises keeps the signal from the rest
    for receiver in signal.receivers_for(sender):
        try:
            receiver(sender, **change)
        except Exception:
            LOG.exception("a receiver of %s failed", signal.name)
