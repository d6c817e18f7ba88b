"""What a host program may listen for, as signals: a tick has ended, a signal or the state changed.

    from torra.dashboard import broadcasts

    @broadcasts.tick_finished.connect
    def noted(sender, instance, timeframe, bar_time, stream_id, **more): ...

They are sent in the process of the desk, on the thread that writes events down, once what they tell
of is in the database; the sender is the desk's EventStream. A receiver that raises is logged and
stops neither the others nor a tick. It should return at once: events are written after it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from blinker import NamedSignal, Namespace

from torra.desk.event_stream import EventStream

LOG: Final = logging.getLogger("torra.dashboard")

SIGNALS: Final = Namespace()

tick_finished: Final = SIGNALS.signal("torra-tick-finished")
"""A tick has ended, well or not: instance, timeframe, bar_time, stream_id."""

signal_changed: Final = SIGNALS.signal("torra-signal-changed")
"""Something in the outbox, or a proposal, has changed; which, the database tells."""

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
    """Send the signals of what this desk's events tell from now on."""

    def told(change: Mapping[str, Any]) -> None:
        signal = TOLD_BY.get(str(change.get("what")))
        if signal is not None:
            send(signal, events, change)

    events.listen(told)


def send(signal: NamedSignal, sender: EventStream, change: Mapping[str, Any]) -> None:
    """Call every receiver of a signal, each for itself."""
    for receiver in signal.receivers_for(sender):
        try:
            receiver(sender, **change)
        except Exception:
            LOG.exception("a receiver of %s failed", signal.name)
