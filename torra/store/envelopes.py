"""Shapes what a running tick tells into events, makes them fit, and frames them as envelopes.

    {schema_version, stream_id, stream_kind, seq, event, terminal, payload}

`shaped` turns what the framework and the tick tell into an event with a fixed set of fields.
`fitted` writes any payload as JSON of at most 64 KB: a number that is not finite becomes null, and
a payload that is too long is shortened and says `shortened`. Everything is pure, and nothing
raises. Within schema version 1 fields and events may be added; a reader skips what it does not
know.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

SCHEMA_VERSION: Final = "1.0"

DESK_STREAM: Final = "desk"
"""Id, and kind, of the one stream that tells what changed on the desk."""

PAYLOAD_BYTES: Final = 64 * 1024
"""Longest payload, as JSON text."""

SHORTER: Final = ((4000, 200), (600, 40), (100, 10), (20, 3))
"""Longest text and longest list of a payload that is too long, step by step until it fits."""

DEEPEST: Final = 8
"""Levels of a payload; what lies deeper becomes null."""

WHOLE: Final = 2**53
"""Beyond this a whole number is written as text: a browser would round it."""

PHASES: Final = {"research": "debate"}
"""Names of the framework's stages in an event, where these differ."""

LOST: Final = (
    "producer_lost",
    "The process that wrote this ended before it was done. The next desk runs a tick again if its "
    "bar is not too old.",
)
REPLACED: Final = ("producer_lost", "This attempt ended without a result and another one began.")
UNWRITABLE: Final = ("store", "What this tick told could not be written down.")


class EventShape(NamedTuple):
    """The event of a kind of what a tick tells; without a phase it is that of the stage."""

    event: str
    phase: str
    fields: tuple[str, ...]
    terminal: bool = False


AGENT: Final = ("agent", "round", "phase")

SHAPES: Final[Mapping[str, EventShape]] = {
    "tick_start": EventShape(
        "tick_start", "", ("torra_key", "instance", "timeframe", "bar_time", "close_time")
    ),
    "agent_start": EventShape("agent_start", "", AGENT),
    "agent_complete": EventShape(
        "agent_complete", "",
        (*AGENT, "summary", "abstained", "confidence", "adjustments", "evidence", "ms"),
    ),
    "agent_error": EventShape("agent_error", "", (*AGENT, "error", "ms")),
    "debate_round": EventShape("debate_round", "debate", ("round", "phase", "statements")),
    "decision": EventShape(
        "synthesis", "decision",
        ("phase", "source_type", "adjustments", "multiplier", "veto", "shadow"),
    ),
    "tick": EventShape(
        "decision", "decision",
        ("phase", "verdict", "l1_verdict", "consensus", "action", "reason", "denied",
         "source_type", "cost_usd", "elapsed_ms", "sentence", "signals"), terminal=True,
    ),
    "tick_error": EventShape(
        "error", "decision", ("phase", "code", "message", "recoverable"), terminal=True
    ),
}  # fmt: skip
"""The shape of each kind of what a tick tells.

`decision` of the framework is the synthesis of a debate; the decision of the tick is `tick`.
"""

SIGNAL: Final = ("sid", "kind", "side", "lots", "state")
"""The fields of a signal of a decision."""

FIELDS: Final = 16
"""Fields of a mapping that are kept however much must go."""


class StreamEvent(NamedTuple):
    """An event as it is appended to a stream; `payload` is JSON text."""

    event: str
    payload: str
    terminal: bool = False


class Shaped(NamedTuple):
    """An event before it is written."""

    event: str
    payload: dict[str, Any]
    terminal: bool = False


def shaped(kind: str, event_facts: Mapping[str, Any]) -> Shaped | None:
    """Return the event for what a tick told; None for a kind that has no event."""
    if kind not in SHAPES:
        return None
    event, phase, fields, terminal = SHAPES[kind]
    if kind == "tick_error":
        return failure(
            event_facts.get("code"),
            event_facts.get("message"),
            event_facts.get("recoverable", True),
        )
    stage = str(event_facts.get("stage", ""))
    values = {
        **event_facts,
        "phase": phase or PHASES.get(stage, stage),
        "error": event_facts.get("reason"),
        "statements": [*event_facts.get("statements", ())],
        "signals": [picked(signal, SIGNAL) for signal in event_facts.get("signals", ())],
    }
    return Shaped(event, picked(values, fields), terminal)


def failure(code: Any, message: Any, recoverable: Any = True) -> Shaped:
    """Return the terminal event of an attempt that ended without a result.

    `recoverable` says whether the tick may be tried again.
    """
    words = {"code": str(code), "message": str(message), "recoverable": bool(recoverable)}
    return Shaped("error", {"phase": "decision", **words}, terminal=True)


def written(event: Shaped) -> StreamEvent:
    """Return an event with its payload as text."""
    return StreamEvent(event.event, fitted(event.payload), event.terminal)


def envelope(
    stream_id: str, kind: str, seq: int, event: str, payload: Any, *, terminal: bool = False
) -> dict[str, Any]:
    """Return an event as it is sent."""
    return {
        "schema_version": SCHEMA_VERSION,
        "stream_id": stream_id,
        "stream_kind": kind,
        "seq": seq,
        "event": event,
        "terminal": terminal,
        "payload": payload,
    }


def picked(payload: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the named fields, null where one is missing."""
    return {name: payload.get(name) for name in names}


def fitted(payload: Mapping[str, Any]) -> str:
    """Return a payload as one line of JSON of at most PAYLOAD_BYTES, in ASCII."""
    # ASCII: its length in characters is its length in bytes.
    text = _json(payload, None, None)
    if len(text) <= PAYLOAD_BYTES:
        return text
    for longest, most in SHORTER:
        text = _json({**payload, "shortened": True}, longest, most)
        if len(text) <= PAYLOAD_BYTES:
            return text
    return '{"shortened":true}'


def _json(payload: Any, longest: int | None, most: int | None) -> str:
    return json.dumps(_plain(payload, longest, most), allow_nan=False, separators=(",", ":"))


def _plain(value: Any, longest: int | None, most: int | None, depth: int = 0) -> Any:
    """Return a value as JSON can hold it, no longer than told."""
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        # A bound also ends a structure that contains itself.
        return None if depth == DEEPEST else _several(value, longest, most, depth + 1)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= WHOLE:
        return int(value)
    # Whatever else it is: nothing here may raise in the middle of a tick.
    return _cut(str(value), longest)


def _several(value: Any, longest: int | None, most: int | None, depth: int) -> Any:
    if isinstance(value, Mapping):
        names = list(value)[: None if most is None else max(most, FIELDS)]
        return {_cut(str(n), longest): _plain(value[n], longest, most, depth) for n in names}
    return [_plain(one, longest, most, depth) for one in list(value)[:most]]


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"
