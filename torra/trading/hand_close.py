"""`torra close` and `torra flatten`: a person leaves one position, or all of them.

A position is closed by a signal of its own, with the authority of a person, on the way of every
close: outbox, bridge, books. Its id comes from the opening and a number, so the same word given
twice is one close. An opening that is not executed yet is taken back first: on paper, and where it
waits for another close, at once; at a broker by the courier, and a close waits behind it in case
the broker was quicker. A close by a verdict that is under way stands: there is one close at a time.

While trading is HALTED nothing goes out, not even this; the refusal names the way. As in
torra.trading.by_hand one function works on an open database, and a thin one on a home; each command
is one transaction with its entry in the audit log, and one that is refused raises ConfigError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import signal_bridge
from torra.config import load_desk
from torra.errors import ConfigError
from torra.trading.by_hand import (
    COMMAND_LINE,
    Done,
    Person,
    Reach,
    open_desk,
    reach_of,
    refusals,
    with_record,
)
from torra.verdict.risk_engine import OPENS
from torra.verdict.signal_states import EXECUTED, HELD, UNDER_WAY, signal_life

Step = Literal["CLOSING", "TAKEN_BACK", "TAKING_BACK", "ALREADY", "REFUSED"]
"""What became of a position: a close was written; an opening was taken back, or is being taken back
with a close behind it; it is being closed already; it cannot be closed from here."""

LETS_CLOSES_GO: Final = "`torra resume --reduce` lets closes go out, and still opens nothing"

MAY_OPEN_AGAIN: Final = (
    "The desk may open again at its next tick; `torra halt --reduce` keeps it from opening."
)


@dataclass(frozen=True, slots=True)
class Left:
    """One position that a person leaves; `signal` is the close, "" where there is none."""

    opening: str
    instance: str
    symbol: str
    side: str
    lots: float
    step: Step
    signal: str = ""
    expires: str = ""
    why: str = ""


# --- with an open database ------------------------------------------------------------------------


def close_position(reach: Reach, name: str, person: Person) -> Done:
    """Close the position of an opening's id or of an instance; raises ConfigError."""

    def act() -> Done:
        _require_going(reach)
        opening = _named(reach, name)
        found = _leave_instance(reach, opening)
        if all(one.step in ("ALREADY", "REFUSED") for one in found):
            raise ConfigError(next(one.why for one in found if one.opening == opening["sid"]))
        return _done(reach, found)

    return with_record(reach.database, person, "close", name, act)


def flatten_desk(reach: Reach, person: Person) -> Done:
    """Close every position of the desk; raises ConfigError while trading is halted.

    What cannot be closed from here is told beside the others, and `Done.refused` says so.
    """

    def act() -> Done:
        _require_going(reach)
        held = reach.database.openings()
        first = {row["instance"]: row for row in held}
        found = [left for row in first.values() for left in _leave_instance(reach, row)]
        return _done(reach, found)

    return with_record(reach.database, person, "flatten", "", act)


# --- from the command line ------------------------------------------------------------------------


def close(home: Path, name: str) -> dict[str, Any]:
    """Close the position of an opening's id or of an instance; raises ConfigError."""
    settings = load_desk(home)
    with open_desk(home) as database, refusals(database, "close", name):
        return close_position(reach_of(home, settings, database), name, COMMAND_LINE).document


def flatten(home: Path) -> dict[str, Any]:
    """Close every position of the desk; raises ConfigError."""
    settings = load_desk(home)
    with open_desk(home) as database, refusals(database, "flatten"):
        return flatten_desk(reach_of(home, settings, database), COMMAND_LINE).document


def live_positions(home: Path, name: str | None = None) -> list[str]:
    """Return the instances with a position on real money, all or the named one's; changes nothing.

    Raises ConfigError.
    """
    settings = load_desk(home)
    with open_desk(home) as database:
        reach = reach_of(home, settings, database)
        rows = database.openings() if name is None else [_named(reach, name)]
    live = {item.id for item in settings.instances if settings.trades_real_money(item)}
    return sorted({row["instance"] for row in rows} & live)


def told(document: Mapping[str, Any]) -> str:
    """Return for a terminal what became of the positions."""
    if not document["positions"]:
        return "Nothing is held and nothing is opening."
    lines = [line(one) for one in document["positions"]]
    if any(one["step"] in ("CLOSING", "TAKING_BACK") for one in document["positions"]):
        if not document["desk_runs"]:
            lines.append(
                "No desk runs on this home: nothing goes out until `torra run` is started, and a "
                "close that is not sent in time ends EXPIRED."
            )
        lines.append(MAY_OPEN_AGAIN)
    return "\n".join(lines)


def line(one: Mapping[str, Any]) -> str:
    """Return what became of one position, as a sentence."""
    what = f"{one['instance']} {one['side'].lower()} {one['lots']:g} lots"
    match one["step"]:
        case "CLOSING":
            return f"{what}: closing, {one['signal']}, until {one['expires']}."
        case "TAKEN_BACK":
            return f"{what}: the opening was taken back before it was executed."
        case "TAKING_BACK":
            return (
                f"{what}: the opening is being taken back; should the broker have been quicker, "
                f"{one['signal']} closes it."
            )
    return f"{what}: {one['why']}."


# --- details --------------------------------------------------------------------------------------


def _require_going(reach: Reach) -> None:
    """Raise ConfigError while nothing may go out."""
    if why := reach.switch.engaged():
        told = "" if why == "halted" else f" ({why})"
        raise ConfigError(f"trading is HALTED{told}: nothing goes out. {LETS_CLOSES_GO}")


def _named(reach: Reach, name: str) -> dict[str, Any]:
    """Return the opening that is meant by an id or by an instance; raises ConfigError."""
    row = reach.database.signal(name)
    if row is not None and row["kind"] != "open":
        raise ConfigError(f"{name} is a close itself; name its position: {row['closes']}")
    if row is None:
        instance = reach.settings.instance(name).id
        rows = [one for one in reach.database.openings() if one["instance"] == instance]
        if not rows:
            raise ConfigError(f"{instance} holds nothing, and nothing is opening")
        return min(rows, key=lambda one: HELD.index(one["state"]))
    if row["state"] not in HELD:
        raise ConfigError(f"the position {name} is {row['state']}: there is nothing to close")
    return row


def _leave_instance(reach: Reach, opening: Mapping[str, Any]) -> list[Left]:
    """Leave all that the instance of an opening holds or opens: to be flat is what is meant."""
    rows = [one for one in reach.database.openings() if one["instance"] == opening["instance"]]
    # What waits for another close goes first: else it would open as soon as that one is through.
    rows.sort(key=lambda one: one["state"] != "WAITING")
    return [_leave(reach, row) for row in rows]


def _leave(reach: Reach, row: Mapping[str, Any]) -> Left:
    """Leave one position. Joins the open transaction."""
    database, state = reach.database, row["state"]
    lots = row["lots"] if row["filled_lots"] is None else row["filled_lots"]
    common = (row["sid"], row["instance"], row["symbol"], OPENS[row["side"]], lots)
    route = next((one.route for one in reach.settings.instances if one.id == row["instance"]), None)
    if route != row["bridge"]:
        remedy = "name it in desk.json again" if row["bridge"] == "paper" else "close it there"
        why = f"it was opened on {row['bridge']}, where the desk does not trade it now"
        return Left(*common, "REFUSED", why=f"{why}: {remedy}")
    # On paper, and before a bridge has it, the database alone says what becomes of it.
    if state == "WAITING" or (state in UNDER_WAY and row["bridge"] == "paper"):
        database.move_signal(row["sid"], "CANCELLED", detail=signal_bridge.TAKEN_BACK)
        return Left(*common, "TAKEN_BACK")
    if row["sid"] in database.being_closed([row["sid"]]):
        return Left(*common, "ALREADY", why=f"the position of {row['sid']} is being closed already")
    written = signal_bridge.write_hand_close(
        database, row, now=reach.now(), life=signal_life(row["timeframe"])
    )
    step: Step = "CLOSING" if state in EXECUTED else "TAKING_BACK"
    return Left(*common, step, written["sid"], written["expires"])


def _done(reach: Reach, found: Iterable[Left]) -> Done:
    positions = [asdict(one) for one in found]
    lease = reach.database.lease()
    after = {"positions": [{k: v for k, v in one.items() if v != ""} for one in positions]}
    refused = "; ".join(one["why"] for one in positions if one["step"] == "REFUSED")
    runs = bool(lease and lease["alive"])
    return Done({"positions": positions, "desk_runs": runs}, {}, after, refused)
