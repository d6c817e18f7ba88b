"""What a person orders for a position: its close, and a move of its stop.

Each is written into the outbox as a tick's signals are (signal_bridge.write_signal), and joins the
open transaction; it touches no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from torra.clock import duration, floor, iso, parse
from torra.verdict.order_seal import order_id
from torra.verdict.outbox import Outbox
from torra.verdict.risk_engine import CLOSES, OPENS
from torra.verdict.signal_states import EXECUTED, UNDER_WAY, is_closing

PERSON: Final = "person"
"""Authority of what a person decides by a command (torra.verdict.order_seal)."""

PATIENCE: Final = timedelta(minutes=15)
"""How long a person's close waits for what becomes of its opening, from the opening's expiry on."""


def manual_order_id(opening: str, action: str, number: int, stop: float | None = None) -> str:
    """Return the id of what a person does with a position: the `number`-th time of this action.

    Of a stop's move the price is in it: after a restore the count begins again, and a broker that
    knows the id of another price would answer for that one.
    """
    return order_id(opening, action, str(number), *([] if stop is None else [repr(float(stop))]))


def write_hand_close(
    store: Outbox, opening: Mapping[str, Any], *, now: datetime, life: timedelta
) -> dict[str, Any]:
    """Enqueue a person's close of what an opening made or will make; return its row.

    The close of a position lives for `life`. While nobody knows what becomes of the opening the
    close is WAITING for it, for PATIENCE, and takes it back where it can (`send_pending`). Joins
    the open transaction. Raises ValueError for an opening that has ended, and for
    one that is being closed.
    """
    sid, filled = opening["sid"], opening["state"] in EXECUTED
    if not filled and opening["state"] not in UNDER_WAY:
        raise ValueError(f"the opening {sid} is {opening['state']}: there is nothing to close")
    before = store.closes_of(opening["instance"], sid)
    if is_closing(before):
        raise ValueError(f"the position of {sid} is being closed already")
    decided = _whole_second(now)
    waits = max(decided, parse(opening["expires"])) + PATIENCE
    return _write_by_hand(
        store,
        opening,
        before,
        decided,
        kind="close",
        side=CLOSES[OPENS[opening["side"]]],
        expires=decided + life if filled else waits,
        after=None if filled else sid,
    )


def write_stop_move(
    store: Outbox, opening: Mapping[str, Any], stop: float, *, now: datetime, life: timedelta
) -> dict[str, Any]:
    """Enqueue a person's move of a position's stop to a price; return its row.

    Joins the open transaction. Raises ValueError for an opening that is no position.
    """
    if opening["state"] not in EXECUTED:
        raise ValueError(f"the opening {opening['sid']} is {opening['state']}: it has no stop yet")
    before = store.closes_of(opening["instance"], opening["sid"])
    decided = _whole_second(now)
    return _write_by_hand(
        store,
        opening,
        before,
        decided,
        kind="modify",
        side=opening["side"],
        expires=decided + life,
        stop=stop,
    )


def lots_left(opening: Mapping[str, Any], closes: Sequence[Mapping[str, Any]]) -> float:
    """Return the lots of a position, less what a close took that the books do not show yet.

    `closes` are those of the position, oldest first.
    """
    lots = float(opening["lots"] if opening["filled_lots"] is None else opening["filled_lots"])
    parts = [row for row in closes if row["kind"] == "close" and row["state"] == "PARTIAL"]
    # Written over the lots of then: once the books show the part there are fewer.
    if parts and parts[-1]["lots"] == lots and parts[-1]["filled_lots"]:
        return round(lots - float(parts[-1]["filled_lots"]), 8)
    return lots


def _whole_second(now: datetime) -> datetime:
    """Return the first whole second that is not before a word: on paper it must not fill before."""
    return now if not now.microsecond else now.replace(microsecond=0) + timedelta(seconds=1)


def _write_by_hand(
    store: Outbox,
    opening: Mapping[str, Any],
    before: Sequence[Mapping[str, Any]],
    decided: datetime,
    *,
    kind: str,
    side: str,
    expires: datetime,
    after: str | None = None,
    stop: float | None = None,
) -> dict[str, Any]:
    """Enqueue what a person does with a position; `before` is what was done with it so far."""
    sid, timeframe = opening["sid"], opening["timeframe"]
    number = 1 + sum(row["kind"] == kind and row["authority"] == PERSON for row in before)
    row = {
        "sid": manual_order_id(sid, kind, number, stop),
        "instance": opening["instance"],
        "symbol": opening["symbol"],
        "timeframe": timeframe,
        "bar_time": iso(floor(decided, timeframe) - duration(timeframe)),
        "kind": kind,
        "side": side,
        "lots": lots_left(opening, before),
        "stop": stop,
        "closes": sid,
        "after": after,
        "decided_at": iso(decided),
        "expires": iso(expires),
        "state": "WAITING" if after else "PENDING",
        "bridge": opening["bridge"],
    }
    store.enqueue_signal({**row, "authority": PERSON})
    return row
