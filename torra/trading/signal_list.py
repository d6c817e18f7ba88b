"""`torra signals` and its API: where trading stands, and the newest signals.

Reads the database and changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from torra.store import ticks as claim_table
from torra.store.standings import WarmUps
from torra.store.trade import proposals_and_alarms as execution_table
from torra.tick import approval
from torra.trading.by_hand import state_line, state_of
from torra.trading.commanding import CommandContext
from torra.trading.hand_close import quote

ROWS: Final = 30
"""Signals that `torra signals` shows unless it is asked for more."""

POSITION: Final = "instance symbol side lots entry stop target state"

HISTORY: Final = 10
"""Newest trading states of the answer."""

IN_WARM_UP: Final = (
    "made in warm-up, on bars from before the desk's first start, on paper; no order of a running "
    "desk"
)
"""What the mark warm-up means."""


def document(desk: CommandContext, *, limit: int = ROWS, **only: Any) -> dict[str, Any]:
    """Return state, bridges, alarms, proposals, positions and the newest signals; changes nothing.

    `only` narrows the signals as `signal_page` does; `before` in the answer goes on from there, and
    is None at the end. `version` changes with anything but a price.
    """
    database, instance = desk.database, only.get("instance")
    # One more than is wanted, to know whether there are older ones.
    rows = execution_table.signal_page(database, limit=limit + 1, **only)
    warmed, bridges, alarms = WarmUps(database), database.bridges(), database.alarms()
    quotes = [quote(desk, position) for position in database.positions()]
    state, engaged, page = state_of(database), desk.switch.engaged(), rows[:limit]
    proposals = [row for row in database.proposals() if instance in (None, row.instance)]
    parts = (
        *state.values(),
        engaged,
        *((row.sid, row.state, row.reason) for row in proposals),
        *((item.position.signal_id, item.position.state) for item in quotes),
        *((row.name, row.deny, row.detail) for row in bridges),
        *((row.kind, row.at) for row in alarms),
        *((row.sid, row.state, row.detail) for row in page),
    )
    return {
        "version": hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16],
        **state,
        "engaged": engaged,
        "states": [row.as_json() for row in claim_table.trading_states(database, HISTORY)],
        "bridges": [row.as_json() for row in bridges],
        "alarms": [row.as_json() for row in alarms],
        "proposals": [approval.as_json(row, database) for row in proposals],
        "positions": [
            {name: getattr(item.position, name) for name in POSITION.split()}
            | {"sid": item.position.signal_id, "price": item.bid}
            for item in quotes
        ],
        "signals": [row.as_json() | {"warm_up": warmed.made(*row.bar)} for row in page],
        "before": page[-1].seq if len(rows) > limit else None,
    }


def table(answer: Mapping[str, Any]) -> str:
    """Return `torra signals` for a terminal."""
    lines = [state_line(answer)]
    lines += [_bridge_line(row) for row in answer["bridges"]]
    lines += [f"ALARM {row['at']} {row['kind']}: {row['detail']}" for row in answer["alarms"]]
    lines += [_proposal_line(row) for row in answer["proposals"]]
    if not answer["signals"]:
        return "\n".join([*lines, "No signal has been written yet."])
    heading = (
        f"{'id':<14}{'instance':<12}{'tf':<5}{'decided':<18}{'order':<11}{'lots':>7}"
        f"  {'state':<17}what came of it"
    )
    lines += ["", heading, *(_signal_line(row) for row in answer["signals"])]
    if number := sum(row["warm_up"] for row in answer["signals"]):
        lines += ["", f"{number:,} of these {len(answer['signals']):,}: {IN_WARM_UP}."]
    return "\n".join(lines)


def _bridge_line(row: Mapping[str, Any]) -> str:
    state = f"{row['deny']}: {row['detail']}" if row["deny"] else row["detail"] or "ready"
    return f"bridge {row['name']}: {state} (books compared {row['reconciled_at'] or 'never'})"


def _proposal_line(row: Mapping[str, Any]) -> str:
    line = (
        f"PROPOSAL {row['sid']} {row['action']} {row['instance']} {row['timeframe']} at "
        f"{row['price']}, until {row['expires']}: torra approve {row['sid']}"
    )
    thesis = row.get("thesis")
    return f"{line}\n  the trader's words: {thesis['claim']}" if thesis else line


def _signal_line(row: Mapping[str, Any]) -> str:
    moment = row["decided_at"].replace("T", " ")[:16]
    return (
        f"{row['sid']:<14}{row['instance']:<12}{row['timeframe']:<5}{moment:<18}"
        f"{row['kind'] + ' ' + row['side']:<11}{row['lots']:>7g}  {row['state']:<17}{_end_of(row)}"
        f"{', warm-up' if row['warm_up'] else ''}"
    )


def _end_of(row: Mapping[str, Any]) -> str:
    if row["state"] == "CLOSED":
        return f"{row['profit']:+.2f} ({row['r_multiple']:+.2f} R, {row['close_reason']})"
    if row["price"] is not None:
        return f"at {row['price']:.10g}"  # as filled: :g alone would round 62586.75
    return str(row["detail"])
