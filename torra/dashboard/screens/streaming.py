"""Event streams to the browser: the events of ticks, as server-sent events from the database.

A reader starts at the beginning of a tick's stream, or after the event that it saw last
(Last-Event-ID, or `after` in the address), and reads the table of events from there. So a reload,
a second tab and a replay take one path. In the desk's own process each write wakes the readers;
elsewhere, and while that desk stands by, they look twice a second. `/api/v1/events` is a browser's
one stream of what changed. A stream that has ended answers 204, which ends an EventSource for good.
After a logout or new tokens, a reader gets no further event.

If anything fails (the database cannot be read, the server ends, the reader is gone), the stream
ends and its reader comes again. At most six streams are open, and two to a session, whose oldest
gives way to a reader that has seen nothing yet; a further one gets 503 with Retry-After. While it
waits, a stream holds no transaction and no request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from weakref import finalize

from flask import Response, abort, jsonify, request
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from instance_database import Database
from torra.clock import Clock, System
from torra.dashboard.doors.access import visitor
from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.view.rendering import backing, state
from torra.dashboard.view.stream_slots import LIFE_SECONDS
from torra.desk.event_stream import EventStream
from torra.errors import StoreUnavailable
from torra.exhibits import figures
from torra.store import streams as stream_table
from torra.store.envelopes import DESK_STREAM, PAYLOAD_BYTES, envelope

BEAT_SECONDS: Final = 10.0
"""Seconds between heartbeats of a silent stream; a failed write shows that its reader is gone."""

POLL_SECONDS: Final = 0.5
"""Seconds between two looks of a reader that nothing wakes."""

LOOK_SECONDS: Final = 1.0
"""Longest wait of a reader that writes wake; then it checks its browser and session too."""

AT_ONCE: Final = 100
"""Most events in one read."""

RETRY_MS: Final = 2000
"""How long a browser waits before it comes again."""

RETRY_AFTER: Final = "10"
"""Seconds to wait, as text, for a reader that found no free slot."""

LONGEST_KEY: Final = 200
NEWEST: Final = 2**53
"""A number above that of any event."""

HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
CLOCK: Final = System()

BUSY: Final = "Six streams are open at once, two to a session; the pages ask for figures meanwhile"


@dataclass(frozen=True)
class Follower:
    """A stream's state for as long as it lasts, with nothing of the request that it answers.

    `after` is the number of the last event seen. `reset` says that events after that one are gone,
    and then `after` is the stream's present end. `left` returns whether the browser is gone, and
    `still_in` whether its visitor would still be let in.
    """

    database: Database
    stream_id: str
    kind: str
    after: int
    reset: bool = False
    events: EventStream | None = None
    clock: Clock = CLOCK
    left: Callable[[], bool] = lambda: False
    still_in: Callable[[], bool] = lambda: True

    def frames(self, release: Callable[[], None]) -> Iterator[bytes]:
        """Yield the bytes of the stream until it ends; call `release` at its end in any case."""
        try:
            yield b": open\n\n"
            yield f"retry: {RETRY_MS}\n\n".encode()
            if self.reset:
                yield self._frame(self.after, "reset", {"seq": self.after})
            yield from self._follow()
        except StoreUnavailable:
            return
        finally:
            release()

    def _follow(self) -> Iterator[bytes]:
        seq, began = self.after, self.clock.monotonic()
        # after a reset the end may lie behind us: the heartbeat, which looks for it, is due now
        beat = -math.inf if self.reset else began
        while True:
            # before the read: a write between read and wait must wake the wait
            mark = self.events.written if self.events else 0
            rows = stream_table.events_after(self.database, self.stream_id, seq, AT_ONCE)
            if not self.still_in():  # asked before anything is told
                return
            if rows and rows[0].seq != seq + 1:  # a slow reader of a stream that is kept short
                seq = self._newest()
                yield self._frame(seq, "reset", {"seq": seq})
                continue
            for row in rows:
                seq, terminal = row.seq, bool(row.terminal)
                yield self._frame(seq, row.event, cleaned(row.body), terminal=terminal)
                if terminal:
                    return
            now = self.clock.monotonic()
            beat = now if rows else beat
            if now - began >= LIFE_SECONDS or self._over():
                return
            if now - beat >= BEAT_SECONDS:
                beat = now
                yield b": hb\n\n"
                if self._finished(seq):
                    return
            self._pause(mark)

    def _over(self) -> bool:
        return self.left() or (self.events is not None and self.events.closed)

    def _pause(self, mark: int) -> None:
        if self.events is None:
            self.clock.sleep(POLL_SECONDS)
        else:
            self.events.wait(mark, LOOK_SECONDS if self.events.active else POLL_SECONDS)

    def _newest(self) -> int:
        row = stream_table.stream(self.database, self.stream_id)
        return int(row["seq"]) if row else 0

    def _finished(self, seq: int) -> bool:
        """Return whether nothing follows `seq`: the stream is deleted, or ended before we came."""
        if self.kind == DESK_STREAM:
            return False
        row = stream_table.stream(self.database, self.stream_id)
        return row is None or bool(row["ended"] and row["seq"] <= seq)

    def _frame(self, seq: int, event: str, payload: JsonValue, *, terminal: bool = False) -> bytes:
        """Return an event in its envelope as one server-sent event."""
        body = envelope(self.stream_id, self.kind, seq, event, payload, terminal=terminal)
        line = json.dumps(body, allow_nan=False, separators=(",", ":"))
        return f"id: {seq}\nevent: {event}\ndata: {line}\n\n".encode()


def cleaned(value: JsonValue) -> JsonValue:
    """Return a payload with hostile characters removed from all its texts."""
    if isinstance(value, str):
        return figures.sanitize(value, PAYLOAD_BYTES)
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    if isinstance(value, dict):
        return {figures.sanitize(name): cleaned(one) for name, one in value.items()}
    return value


# --- the routes -----------------------------------------------------------------------------------


def streams() -> ResponseReturnValue:
    """List the streams of a tick, one for each attempt, newest first; without a tick the newest."""
    key = request.args.get("torra_key", "")[:LONGEST_KEY]
    rows = stream_table.streams(backing().database, key or None)
    return jsonify(
        [
            {
                **{name: row[name] for name in ("stream_id", "torra_key", "at", "seq")},
                "stream_kind": row["kind"],
                "ended": bool(row["ended"]),
            }
            for row in rows
        ]
    )


def stream(stream_id: str) -> ResponseReturnValue:
    """Follow one stream of events."""
    row = stream_table.stream(backing().database, stream_id) or abort(404)
    last = _last_event() or 0
    if row["kind"] == DESK_STREAM:
        return events()
    if row["ended"] and last >= row["seq"]:
        return Response(status=204)
    # pruned events are gone, and a number from before a restore means another event
    if last > row["seq"] or last < row["first"] - 1:
        return _answer(stream_id, row["kind"], row["seq"], reset=True)
    return _answer(stream_id, row["kind"], last)


def events() -> ResponseReturnValue:
    """Follow what changes on the desk, from now on or after the event seen last."""
    if state().backing is None:
        return Response(status=204)  # only a view stands behind the pages: nothing will come
    row = stream_table.stream(backing().database, DESK_STREAM) or {"seq": 0, "first": 0}
    last = _last_event()
    missed = last is None or not row["first"] - 1 <= last <= row["seq"]
    return _answer(DESK_STREAM, DESK_STREAM, row["seq"] if missed else last or 0, reset=missed)


def _last_event() -> int | None:
    """Return the number of the last event seen; a reconnecting browser sends it by itself."""
    for text in (request.headers.get("Last-Event-ID"), request.args.get("after")):
        if text and text.isascii() and text.isdigit():
            # 20 digits: a number of any length would be slow to read and too large for SQLite
            return min(int(text[:20]), NEWEST)
    return None


def _answer(stream_id: str, kind: str, after: int, *, reset: bool = False) -> ResponseReturnValue:
    behind, who = backing(), visitor()
    if request.method == "HEAD":
        return Response(headers=HEADERS)
    left = request.environ.get("waitress.client_disconnected") or (lambda: False)
    still_in = state().access.still_in(request)
    follower = Follower(
        behind.database, stream_id, kind, after, reset, behind.events, CLOCK, left, still_in
    )  # fmt: skip
    # last: what raises before it holds no slot
    slot = behind.slots.take(
        who.session or who.actor, CLOCK.monotonic, again=_last_event() is not None
    )
    if slot is None:
        refusal = jsonify(error="Too many streams", advice=BUSY, status=503)
        return refusal, 503, {"Retry-After": RETRY_AFTER}
    follower = replace(follower, left=lambda: left() or behind.slots.leaving(slot))
    return _response(follower, partial(behind.slots.release, slot))


def _response(follower: Follower, release: Callable[[], None]) -> Response:
    """Return the answer that holds a slot; `release` is called whatever happens to the answer."""
    try:
        body = follower.frames(release)
        finalize(body, release)  # an answer that is dropped on its way, as by a host's own fault
        response = Response(body, headers=HEADERS)
        response.call_on_close(release)  # a body that was never begun has no end of its own
    except BaseException:
        release()
        raise
    return response


AFTER: Final[Fields] = {"after": {"type": "integer", "minimum": 0}}

ROUTES: tuple[Route, ...] = (
    Api(
        "/api/v1/streams", "api_streams", streams,
        query={"torra_key": {"type": "string", "maxLength": LONGEST_KEY}},
    ),
    Route("/api/v1/streams/<stream_id>", "api_stream", stream, reply="events", query=AFTER),
    Route("/api/v1/events", "api_events", events, reply="events", query=AFTER),
)  # fmt: skip
