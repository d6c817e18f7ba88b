"""`torra close`, `torra flatten`, `torra stop`: a person leaves positions, or brings a stop nearer.

A position is closed by a signal of its own, with the authority of a person, on the way of every
close: outbox, bridge, books. Its id comes from the opening and a number, so the same word given
twice is one close. An opening that is not executed yet is taken back first: on paper, and where it
waits for another close, at once; at a broker by the courier, and a close waits behind it in case
the broker was quicker. A close by a verdict that is under way stands: there is one close at a time.

A stop moves towards the price only: so a hand, too, can only shrink the risk. One R stays what it
was planned to be.

While trading is HALTED nothing goes out, not even this; the refusal names the way. As in
torra.trading.by_hand one function works on an open database, and a thin one on a home; each command
is one transaction with its entry in the audit log, and one that is refused raises ConfigError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import signal_bridge
from torra.config import load_desk
from torra.errors import ConfigError, DataUnavailable
from torra.trading.by_hand import (
    COMMAND_LINE,
    Actor,
    CommandContext,
    CommandResult,
    market_now,
    open_desk,
    reach_of,
    refusals,
    with_record,
)
from torra.trading.close_quote import CloseQuote, quote
from torra.verdict.risk_engine import CLOSING, OPENS, Position
from torra.verdict.signal_states import EXECUTED, HELD, UNDER_WAY, signal_life
from torra.verdict.trade_outcome import gain, leaving

Step = Literal["CLOSING", "TAKEN_BACK", "TAKING_BACK", "ALREADY", "REFUSED"]
"""What became of a position: a close was written; an opening was taken back, or is being taken back
with a close behind it; it is being closed already; it cannot be closed from here."""

PAPER: Final = "paper"

LETS_CLOSES_GO: Final = "`torra resume --reduce` lets closes go out, and still opens nothing"

MAY_OPEN_AGAIN: Final = (
    "The desk may open again at its next tick; `torra halt --reduce` keeps it from opening."
)


NO_DESK: Final = (
    "No desk runs on this home: nothing goes out until `torra run` is started, and what is not "
    "sent in time ends EXPIRED."
)


Agreed = Collection[str] | None
"""The instances whose real money a person gave the word for; None for whatever it is."""

Ask = Callable[[Iterable[CloseQuote], Sequence[str]], None]
"""Asks a person about positions, and for the word on instances with real money; raises ConfigError
where it is not given. A quote is read once it is taken.
"""


@dataclass(frozen=True, slots=True)
class CloseResult:
    """One position that a person leaves; `signal` is the close, "" where there is none."""

    opening: str
    instance: str
    symbol: str
    side: str
    lots: float
    bridge: str
    step: Step
    signal: str = ""
    expires: str = ""
    why: str = ""


# --- with an open database ------------------------------------------------------------------------


def close_position(
    reach: CommandContext, name: str, person: Actor, agreed: Agreed = None
) -> CommandResult:
    """Close the position of an opening's id or of an instance; raises ConfigError."""

    def act() -> CommandResult:
        _require_going(reach)
        opening = _opening_row(reach, name)
        _require_agreed(reach, "close", [opening], agreed)
        found = _leave_instance(reach, opening)
        if all(one.step in ("ALREADY", "REFUSED") for one in found):
            raise ConfigError(next(one.why for one in found if one.opening == opening["sid"]))
        return _done(reach, found)

    return with_record(reach.database, person, "close", name, act)


def flatten_desk(reach: CommandContext, person: Actor, agreed: Agreed = None) -> CommandResult:
    """Close every position of the desk; raises ConfigError while trading is halted.

    What cannot be closed from here is told beside the others, and `Done.refused` says so.
    """

    def act() -> CommandResult:
        _require_going(reach)
        held = reach.database.openings()
        _require_agreed(reach, "flatten", held, agreed)
        first = {row["instance"]: row for row in held}
        found = [left for row in first.values() for left in _leave_instance(reach, row)]
        return _done(reach, found)

    return with_record(reach.database, person, "flatten", "", act)


def move_stop(
    reach: CommandContext, name: str, price: float, person: Actor, agreed: Agreed = None
) -> CommandResult:
    """Move the stop of a position towards the price; raises ConfigError.

    `price` is in units of price, whole ticks.
    """

    def act() -> CommandResult:
        _require_going(reach)
        opening = _opening_row(reach, name)
        _require_agreed(reach, "stop", [opening], agreed)
        held = _movable_position(reach, opening)
        _check_stop(reach, held, price)
        row = signal_bridge.write_stop_move(
            reach.database, opening, price, now=reach.now(), life=signal_life(opening["timeframe"])
        )
        _hand_over(reach, row)
        names = ("sid", "instance", "stop", "expires")
        document = {**{name: row[name] for name in names}, "opening": held.signal_id}
        return CommandResult(
            {**document, "from": held.stop, "desk_runs": reach.database.desk_runs()},
            {"stop": held.stop},
            {"stop": price, "signal": row["sid"]},
        )

    return with_record(reach.database, person, "stop", name, act)


# --- from the command line ------------------------------------------------------------------------


def close(home: Path, name: str, ask: Ask | None = None) -> dict[str, Any]:
    """Close the position of an opening's id or of an instance; raises ConfigError."""
    with _at_hand(home, "close", name) as reach:
        agreed = _asked(reach, ask, lambda: [_opening_row(reach, name)])
        return close_position(reach, name, COMMAND_LINE, agreed).document


def flatten(home: Path, ask: Ask | None = None) -> dict[str, Any]:
    """Close every position of the desk; raises ConfigError."""
    with _at_hand(home, "flatten") as reach:
        agreed = _asked(reach, ask, reach.database.openings)
        return flatten_desk(reach, COMMAND_LINE, agreed).document


def stop(home: Path, name: str, price: float, ask: Ask | None = None) -> dict[str, Any]:
    """Move the stop of a position towards the price; raises ConfigError."""
    with _at_hand(home, "stop", name) as reach:
        agreed = _asked(reach, ask, lambda: [_opening_row(reach, name)])
        return move_stop(reach, name, price, COMMAND_LINE, agreed).document


def told(document: Mapping[str, Any]) -> str:
    """Return for a terminal what became of the positions."""
    if not document["positions"]:
        return "Nothing is held and nothing is opening."
    lines = [line(one) for one in document["positions"]]
    steps = {one["step"] for one in document["positions"]}
    if steps & {"CLOSING", "TAKING_BACK"} and not document["desk_runs"]:
        lines.append(NO_DESK)
    if steps & {"CLOSING", "TAKING_BACK", "TAKEN_BACK"} and document["trading"] == "ACTIVE":
        lines.append(MAY_OPEN_AGAIN)
    return "\n".join(lines)


def moved(document: Mapping[str, Any]) -> str:
    """Return for a terminal where a stop is moved to."""
    told = (
        f"{document['instance']}: the stop goes from {document['from']} to {document['stop']} "
        f"(order {document['sid']}, valid until {document['expires']})."
    )
    return told if document["desk_runs"] else f"{told}\n{NO_DESK}"


def line(one: Mapping[str, Any]) -> str:
    """Return what became of one position, as a sentence."""
    what = f"{one['instance']} {one['side'].lower()} {one['lots']:g} lots"
    match one["step"]:
        case "CLOSING":
            if one["bridge"] == PAPER:
                return f"{what}: closes at the open of the next bar, on paper ({one['signal']})."
            return (
                f"{what}: a close is on its way to the broker ({one['signal']}). If it is not "
                f"executed by {one['expires']} it is given up, with an alarm."
            )
        case "TAKEN_BACK":
            return f"{what}: the opening was taken back before it was executed."
        case "TAKING_BACK":
            return (
                f"{what}: the opening is taken back where the broker has not executed it; where he "
                f"has, it is closed ({one['signal']}), if that shows by {one['expires']}."
            )
    return f"{what}: {one['why']}."


# --- details --------------------------------------------------------------------------------------


def _require_going(reach: CommandContext) -> None:
    """Raise ConfigError while nothing may go out."""
    if why := reach.switch.engaged():
        told = "" if why == "halted" else f" ({why})"
        raise ConfigError(f"trading is HALTED{told}: nothing goes out. {LETS_CLOSES_GO}")


def _live(reach: CommandContext, rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the instances among those of some openings whose orders move real money."""
    settings = reach.settings
    live = {item.id for item in settings.instances if settings.trades_real_money(item)}
    return {row["instance"] for row in rows} & live


def _require_agreed(
    reach: CommandContext, word: str, rows: Iterable[Mapping[str, Any]], agreed: Agreed
) -> None:
    """Raise ConfigError for real money that nobody gave the word for; also what came since."""
    if agreed is not None and (left := _live(reach, rows).difference(agreed)):
        names = ", ".join(sorted(left))
        raise ConfigError(f"{names}: real money, so nothing was done; type {word}")


def _asked(
    reach: CommandContext, ask: Ask | None, rows: Callable[[], Iterable[Mapping[str, Any]]]
) -> Agreed:
    """Return the instances with real money that a person was asked about and agreed to."""
    if ask is None:
        return None
    _require_going(reach)
    found = list(rows())
    live, names = sorted(_live(reach, found)), {row["instance"] for row in found}
    if found:
        held = (one for one in reach.database.positions() if one.instance in names)
        ask((quote(reach, one) for one in held), live)
    return live


@contextmanager
def _at_hand(home: Path, action: str, target: str = "") -> Iterator[CommandContext]:
    """Open what a command needs; what it is refused, the word too, goes into the audit log."""
    settings = load_desk(home)
    with open_desk(home) as database, refusals(database, action, target):
        yield reach_of(home, settings, database)


def _opening_row(reach: CommandContext, name: str) -> dict[str, Any]:
    """Return the opening that is meant by an id or by an instance; raises ConfigError."""
    row = reach.database.signal(name)
    if row is not None and row["kind"] != "open":
        what = "a close" if row["kind"] == "close" else "the move of a stop"
        raise ConfigError(f"{name} is {what}; name its position: {row['closes']}")
    if row is None:
        instance = reach.settings.instance(name).id
        rows = [one for one in reach.database.openings() if one["instance"] == instance]
        if not rows:
            raise ConfigError(f"{instance} holds nothing, and nothing is opening")
        return min(rows, key=lambda one: HELD.index(one["state"]))
    if row["state"] not in HELD:
        raise ConfigError(f"the position {name} is {row['state']}: there is nothing to close")
    return row


def route_of(reach: CommandContext, row: Mapping[str, Any]) -> str | None:
    """Return where the desk trades the instance of a row now, None where it does not."""
    items = reach.settings.instances
    return next((one.route for one in items if one.id == row["instance"]), None)


def _elsewhere(row: Mapping[str, Any]) -> str:
    remedy = "let it trade there again in desk.json" if row["bridge"] == PAPER else "do it there"
    return f"was opened on {row['bridge']}, where the desk does not trade it now: {remedy}"


def _leave_instance(reach: CommandContext, opening: Mapping[str, Any]) -> list[CloseResult]:
    """Leave all that the instance of an opening holds or opens: to be flat is what is meant."""
    rows = [one for one in reach.database.openings() if one["instance"] == opening["instance"]]
    # What waits for another close goes first: else it would open as soon as that one is through.
    rows.sort(key=lambda one: one["state"] != "WAITING")
    return [_leave(reach, row) for row in rows]


def _leave(reach: CommandContext, row: Mapping[str, Any]) -> CloseResult:
    """Leave one position. Joins the open transaction."""
    database, state = reach.database, row["state"]
    lots = row["lots"] if row["filled_lots"] is None else row["filled_lots"]
    common = (
        row["sid"], row["instance"], row["symbol"], OPENS[row["side"]], lots, row["bridge"],
    )  # fmt: skip
    if route_of(reach, row) != row["bridge"]:
        return CloseResult(*common, "REFUSED", why=_elsewhere(row))
    # On paper, and before a bridge has it, the database alone says what becomes of it.
    if state == "WAITING" or (state in UNDER_WAY and row["bridge"] == PAPER):
        database.move_signal(row["sid"], "CANCELLED", detail=signal_bridge.TAKEN_BACK)
        return CloseResult(*common, "TAKEN_BACK")
    if row["sid"] in database.being_closed([row["sid"]]):
        return CloseResult(
            *common, "ALREADY", why=f"the position of {row['sid']} is being closed already"
        )
    written = signal_bridge.write_hand_close(
        database, row, now=reach.now(), life=signal_life(row["timeframe"])
    )
    _hand_over(reach, written)
    step: Step = "CLOSING" if state in EXECUTED else "TAKING_BACK"
    return CloseResult(*common, step, written["sid"], written["expires"])


def _hand_over(reach: CommandContext, row: Mapping[str, Any]) -> None:
    """Hand an order over at once where that is marking it: on paper. Joins the open transaction.

    The clock of the demo runs so fast that it would be over before the desk looks.
    """
    if row["bridge"] == PAPER and row["state"] == "PENDING":
        reach.database.move_signal(row["sid"], "PUBLISHED")


def _done(reach: CommandContext, found: Iterable[CloseResult]) -> CommandResult:
    positions = [asdict(one) for one in found]
    after = {"positions": [{k: v for k, v in one.items() if v != ""} for one in positions]}
    refused = "; ".join(one["why"] for one in positions if one["step"] == "REFUSED")
    document = {
        "positions": positions,
        "desk_runs": reach.database.desk_runs(),
        "trading": reach.database.trading_state(),
    }
    return CommandResult(document, {}, after, refused)


def _movable_position(reach: CommandContext, opening: Mapping[str, Any]) -> Position:
    """Return the position of an opening; raises ConfigError where its stop cannot be moved."""
    sid, held = opening["sid"], reach.database.position(opening["instance"])
    if opening["state"] not in EXECUTED or held is None or held.signal_id != sid:
        raise ConfigError(f"the opening {sid} is {opening['state']}: it has no stop to move yet")
    if held.state == CLOSING:
        raise ConfigError(f"the position of {sid} is being closed already")
    if route_of(reach, opening) != opening["bridge"]:
        raise ConfigError(f"{opening['instance']} {_elsewhere(opening)}")
    moves = reach.database.closes_of(opening["instance"], sid)
    if any(row["kind"] == "modify" and row["state"] in UNDER_WAY for row in moves):
        raise ConfigError(f"the stop of {sid} is being moved already: wait for its end")
    return held


def _check_stop(reach: CommandContext, held: Position, price: float) -> None:
    """Raise ConfigError unless a price lies between a position's stop and the market."""
    instance = reach.settings.instance(held.instance)
    spec = reach.profile(instance).symbol(held.symbol)
    try:
        bid, figures = market_now(
            reach.settings, reach.database, instance, reach.now(), reach.environment
        )
    except DataUnavailable as error:
        raise ConfigError(f"{held.instance}: the price of now is not known: {error}") from error
    leave = leaving(held.side, bid, figures.get("live_spread", spec.spread))
    told = f"the stop is {held.stop:.{spec.digits}f}, the price {leave:.{spec.digits}f}"
    if not math.isfinite(price) or not held.stop != price:
        raise ConfigError(f"{price} is no new stop: {told}")
    whole = round(round(price / spec.tick_size) * spec.tick_size, spec.digits)
    if not math.isclose(whole, price, rel_tol=0.0, abs_tol=spec.tick_size * 1e-6):
        raise ConfigError(
            f"{price} is no whole tick of {held.symbol}; the nearest is {whole:.{spec.digits}f}"
        )
    near = spec.stops_level * 10.0**-spec.digits
    risk, room = gain(held.side, held.stop, price), gain(held.side, price, leave)
    if risk <= 0:
        raise ConfigError(
            f"{price} lies further from the price: {told}. A stop only moves towards the price; to "
            "give a trade more room, use the terminal"
        )
    if room <= 0 or room < near:
        what = "at or beyond the price" if room <= 0 else f"nearer than {spec.stops_level} points"
        raise ConfigError(f"{price} lies {what}: {told}. To leave now, use `torra close`")
