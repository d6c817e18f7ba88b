"""`torra close`, `torra flatten`, `torra stop`: a person leaves positions, or brings a stop nearer.

A position is closed by a signal of its own, with the authority of a person, on the way of every
close: outbox, bridge, books. Its id comes from the opening and a number, so the same word given
twice is one close. An opening that is not executed yet is taken back first: on paper, and where it
waits for another close, at once; at a broker by the courier, and a close waits behind it in case
the broker was quicker. A close by a verdict that is under way stands: there is one close at a time.

A stop moves towards the price only: so a hand, too, can only shrink the risk. One R stays what it
was planned to be.

While trading is HALTED nothing goes out, not even this; the refusal names the way.

`quote` says before a close what it would bring now, and what keeping the position may cost. A page,
a dialog and the command line read the same one. It decides nothing, and a position whose price is
not known has a quote too: it has no end now, and `why` says what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import signal_bridge
from torra.config import SymbolSpec
from torra.errors import ConfigError, DataUnavailable
from torra.money.book import known_currencies
from torra.money.open_positions import PAPER
from torra.trading.by_hand import market_now
from torra.trading.commanding import (
    COMMAND_LINE,
    Command,
    CommandContext,
    CommandResult,
    at_home,
    command,
)
from torra.verdict import hand_orders
from torra.verdict.risk_engine import CLOSING, OPENS, Position
from torra.verdict.signal_states import EXECUTED, POSITION_STATES, UNDER_WAY, signal_life
from torra.verdict.trade_outcome import CloseValue, gain, leaving, value_at

LETS_CLOSES_GO: Final = "`torra resume --reduce` lets closes go out, and still opens nothing"

MAY_OPEN_AGAIN: Final = (
    "The desk may open again at its next tick; `torra halt --reduce` keeps it from opening."
)


NO_DESK: Final = (
    "No desk runs on this home: nothing goes out until `torra run` is started, and what is not "
    "sent in time ends EXPIRED."
)


PRICES: Final = ("stop", "entry", "target")
UNFILLED: Final = "not filled yet"

Agreed = Collection[str] | None
"""The instances whose real money a person gave the word for; None for whatever it is."""


@dataclass(frozen=True, slots=True)
class CloseQuote:
    """A position with its ends: `stop`, `entry`, `target`, and `now` where its price is known.

    A gap beyond the stop may cost more. `ends` is empty without the symbol's terms, and has no
    `now` while the opening is not filled; `why` says what is missing. `bid` is the price of now,
    `currency` is "" where nobody has told it. `real`: with real money.
    """

    position: Position
    route: str
    currency: str
    spec: SymbolSpec | None = None
    bid: float | None = None
    ends: Mapping[str, CloseValue] = field(default_factory=dict)
    real: bool = False
    why: str = ""

    @property
    def filled(self) -> bool:
        """Whether the opening is known to be filled."""
        return self.why != UNFILLED


Ask = Callable[[Iterable[CloseQuote], Sequence[str]], None]
"""Asks a person about positions, and for the word on instances with real money; raises ConfigError
where it is not given. A quote is read once it is taken.
"""


# --- the commands ---------------------------------------------------------------------------------


@command("close", needs_desk=True)
def close(desk: CommandContext, name: str, *, agreed: Agreed = None) -> CommandResult:
    """Close the position of an opening's id or of an instance; raises ConfigError."""
    _require_going(desk)
    opening = _opening_row(desk, name)
    _require_agreed(desk, "close", [opening], agreed)
    results = _leave_instance(desk, opening)
    if all(one["step"] in ("ALREADY", "REFUSED") for one in results):
        raise ConfigError(next(one["why"] for one in results if one["opening"] == opening["sid"]))
    return _done(desk, results)


@command("flatten", needs_desk=True)
def flatten(desk: CommandContext, *, agreed: Agreed = None) -> CommandResult:
    """Close every position of the desk; raises ConfigError while trading is halted.

    The result's `refused` names what cannot be closed from here.
    """
    _require_going(desk)
    openings = desk.database.openings()
    _require_agreed(desk, "flatten", openings, agreed)
    first = {row["instance"]: row for row in openings}
    return _done(desk, [left for row in first.values() for left in _leave_instance(desk, row)])


@command("stop", needs_desk=True)
def stop(desk: CommandContext, name: str, *, price: float, agreed: Agreed = None) -> CommandResult:
    """Move the stop of a position towards the price; raises ConfigError.

    `price` is in units of price, whole ticks.
    """
    _require_going(desk)
    opening = _opening_row(desk, name)
    _require_agreed(desk, "stop", [opening], agreed)
    position = _movable_position(desk, opening)
    _check_stop(desk, position, price)
    row = hand_orders.write_stop_move(
        desk.database, opening, price, now=desk.now(), life=signal_life(opening["timeframe"])
    )
    _hand_over(desk, row)
    names = ("sid", "instance", "stop", "expires")
    document = {**{name: row[name] for name in names}, "opening": position.signal_id}
    return CommandResult(
        {**document, "from": position.stop, "desk_runs": desk.database.desk_runs()},
        {"stop": position.stop},
        {"stop": price, "signal": row["sid"]},
    )


def ask_and_do(
    act: Command[...], home: Path, *target: str, ask: Ask | None, **words: float
) -> dict[str, Any]:
    """Do one of these on a home once a person has agreed; None asks nobody. Raises ConfigError."""
    with at_home(home, act.action, *target, needs_desk=True) as desk:
        agreed = None if ask is None else _agreement(desk, ask, *target)
        return act(desk, COMMAND_LINE, *target, agreed=agreed, **words).document


def closed_lines(document: Mapping[str, Any]) -> str:
    """Return for a terminal what became of the positions."""
    if not document["positions"]:
        return "Nothing is held and nothing is opening."
    lines = [position_line(one) for one in document["positions"]]
    steps = {one["step"] for one in document["positions"]}
    if steps & {"CLOSING", "TAKING_BACK"} and not document["desk_runs"]:
        lines.append(NO_DESK)
    if steps & {"CLOSING", "TAKING_BACK", "TAKEN_BACK"} and document["trading"] == "ACTIVE":
        lines.append(MAY_OPEN_AGAIN)
    return "\n".join(lines)


def stop_line(document: Mapping[str, Any]) -> str:
    """Return for a terminal where a stop is moved to."""
    line = (
        f"{document['instance']}: the stop goes from {document['from']} to {document['stop']} "
        f"(order {document['sid']}, valid until {document['expires']})."
    )
    return line if document["desk_runs"] else f"{line}\n{NO_DESK}"


def position_line(one: Mapping[str, Any]) -> str:
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


def quote(desk: CommandContext, position: Position) -> CloseQuote:
    """Return a position with its end now and at its stop; a price that is missing is told."""
    opening = desk.database.signal(position.signal_id) or {}
    route = opening.get("bridge") or PAPER
    currency = known_currencies(desk.database, desk.settings.paper_currency).get(route, "")
    closing = CloseQuote(
        position, route, currency, why=UNFILLED if opening.get("price") is None else ""
    )
    try:
        instance = desk.settings.instance(position.instance)
        closing = replace(closing, real=desk.settings.trades_real_money(instance))
        spec = desk.profile(instance).symbol(position.symbol)
        ends = {name: value_at(position, getattr(position, name), spec) for name in PRICES}
        closing = replace(closing, spec=spec, ends=ends)
        bid, figures = market_now(desk, instance, desk.now())
    except (ConfigError, DataUnavailable) as error:
        return replace(closing, why=closing.why or str(error))
    if closing.why:
        return replace(closing, bid=bid)
    # a long leaves at the bid, a short pays the spread
    leave = leaving(position.side, bid, figures.get("live_spread", spec.spread))
    return replace(closing, bid=bid, ends={**ends, "now": value_at(position, leave, spec)})


# --- details --------------------------------------------------------------------------------------


def _require_going(desk: CommandContext) -> None:
    """Raise ConfigError while nothing may go out."""
    if why := desk.switch.engaged():
        reason = "" if why == "halted" else f" ({why})"
        raise ConfigError(f"trading is HALTED{reason}: nothing goes out. {LETS_CLOSES_GO}")


def _live(desk: CommandContext, rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the instances among those of some openings whose orders move real money."""
    settings, names = desk.settings, {row["instance"] for row in rows}
    return {item.id for item in settings.instances if settings.trades_real_money(item)} & names


def _require_agreed(
    desk: CommandContext, word: str, rows: Iterable[Mapping[str, Any]], agreed: Agreed
) -> None:
    """Raise ConfigError for real money that nobody gave the word for; also what came since."""
    if agreed is not None and (left := _live(desk, rows).difference(agreed)):
        names = ", ".join(sorted(left))
        raise ConfigError(f"{names}: real money, so nothing was done; type {word}")


def _agreement(desk: CommandContext, ask: Ask, *target: str) -> list[str]:
    """Return the instances with real money that a person was asked about and agreed to."""
    _require_going(desk)
    openings = [_opening_row(desk, name) for name in target] or desk.database.openings()
    live, names = sorted(_live(desk, openings)), {row["instance"] for row in openings}
    if openings:
        positions = (one for one in desk.database.positions() if one.instance in names)
        ask((quote(desk, one) for one in positions), live)
    return live


def _opening_row(desk: CommandContext, name: str) -> dict[str, Any]:
    """Return the opening that is meant by an id or by an instance; raises ConfigError."""
    row = desk.database.signal(name)
    if row is not None and row["kind"] != "open":
        what = "a close" if row["kind"] == "close" else "the move of a stop"
        raise ConfigError(f"{name} is {what}; name its position: {row['closes']}")
    if row is None:
        instance = desk.settings.instance(name).id
        rows = [one for one in desk.database.openings() if one["instance"] == instance]
        if not rows:
            raise ConfigError(f"{instance} holds nothing, and nothing is opening")
        return min(rows, key=lambda one: POSITION_STATES.index(one["state"]))
    if row["state"] not in POSITION_STATES:
        raise ConfigError(f"the position {name} is {row['state']}: there is nothing to close")
    return row


def _elsewhere(desk: CommandContext, row: Mapping[str, Any]) -> str:
    """Return why an opening cannot be reached from here; "" where the desk trades it there now."""
    routes = {item.id: item.route for item in desk.settings.instances}
    if routes.get(row["instance"]) == row["bridge"]:
        return ""
    remedy = "let it trade there again in desk.json" if row["bridge"] == PAPER else "do it there"
    return f"was opened on {row['bridge']}, where the desk does not trade it now: {remedy}"


def _leave_instance(desk: CommandContext, opening: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Leave all that the instance of an opening holds or opens: to be flat is what is meant."""
    rows = [one for one in desk.database.openings() if one["instance"] == opening["instance"]]
    # What waits for another close goes first: else it would open as soon as that one is through.
    rows.sort(key=lambda one: one["state"] != "WAITING")
    return [_leave(desk, row) for row in rows]


def _leave(desk: CommandContext, row: Mapping[str, Any]) -> dict[str, Any]:
    """Leave one position and say how. Joins the open transaction.

    `step` is CLOSING where a close was written, TAKEN_BACK for an opening that was taken back,
    TAKING_BACK where it is being taken back with a close behind it, ALREADY where it is being
    closed, REFUSED where it cannot be closed from here. `signal` is the close, "" for none.
    """
    database, state = desk.database, row["state"]
    result = {
        "opening": row["sid"],
        "instance": row["instance"],
        "symbol": row["symbol"],
        "side": OPENS[row["side"]],
        "lots": row["lots"] if row["filled_lots"] is None else row["filled_lots"],
        "bridge": row["bridge"],
        "step": "",
        "signal": "",
        "expires": "",
        "why": "",
    }
    if why := _elsewhere(desk, row):
        return {**result, "step": "REFUSED", "why": why}
    # On paper, and before a bridge has it, the database alone says what becomes of it.
    if state == "WAITING" or (state in UNDER_WAY and row["bridge"] == PAPER):
        database.move_signal(row["sid"], "CANCELLED", detail=signal_bridge.TAKEN_BACK)
        return {**result, "step": "TAKEN_BACK"}
    if database.being_closed(row):
        why = f"the position of {row['sid']} is being closed already"
        return {**result, "step": "ALREADY", "why": why}
    close = hand_orders.write_hand_close(
        database, row, now=desk.now(), life=signal_life(row["timeframe"])
    )
    _hand_over(desk, close)
    step = "CLOSING" if state in EXECUTED else "TAKING_BACK"
    return {**result, "step": step, "signal": close["sid"], "expires": close["expires"]}


def _hand_over(desk: CommandContext, row: Mapping[str, Any]) -> None:
    """Hand an order over at once where that is marking it: on paper. Joins the open transaction.

    The clock of the demo runs so fast that it would be over before the desk looks.
    """
    if row["bridge"] == PAPER and row["state"] == "PENDING":
        desk.database.move_signal(row["sid"], "PUBLISHED")


def _done(desk: CommandContext, positions: list[dict[str, Any]]) -> CommandResult:
    after = {"positions": [{k: v for k, v in one.items() if v != ""} for one in positions]}
    refused = "; ".join(one["why"] for one in positions if one["step"] == "REFUSED")
    document = {
        "positions": positions,
        "desk_runs": desk.database.desk_runs(),
        "trading": desk.database.trading_state(),
    }
    return CommandResult(document, {}, after, refused)


def _movable_position(desk: CommandContext, opening: Mapping[str, Any]) -> Position:
    """Return the position of an opening; raises ConfigError where its stop cannot be moved."""
    sid, position = opening["sid"], desk.database.position(opening["instance"])
    if opening["state"] not in EXECUTED or position is None or position.signal_id != sid:
        raise ConfigError(f"the opening {sid} is {opening['state']}: it has no stop to move yet")
    if position.state == CLOSING:
        raise ConfigError(f"the position of {sid} is being closed already")
    if why := _elsewhere(desk, opening):
        raise ConfigError(f"{opening['instance']} {why}")
    moves = desk.database.closes_of(opening["instance"], sid)
    if any(row["kind"] == "modify" and row["state"] in UNDER_WAY for row in moves):
        raise ConfigError(f"the stop of {sid} is being moved already: wait for its end")
    return position


def _check_stop(desk: CommandContext, position: Position, price: float) -> None:
    """Raise ConfigError unless a price lies between a position's stop and the market."""
    instance = desk.settings.instance(position.instance)
    spec = desk.profile(instance).symbol(position.symbol)
    try:
        bid, figures = market_now(desk, instance, desk.now())
    except DataUnavailable as error:
        raise ConfigError(f"{position.instance}: the price of now is not known: {error}") from error
    leave = leaving(position.side, bid, figures.get("live_spread", spec.spread))
    levels = f"the stop is {position.stop:.{spec.digits}f}, the price {leave:.{spec.digits}f}"
    if not math.isfinite(price) or not position.stop != price:
        raise ConfigError(f"{price} is no new stop: {levels}")
    whole = round(round(price / spec.tick_size) * spec.tick_size, spec.digits)
    if not math.isclose(whole, price, rel_tol=0.0, abs_tol=spec.tick_size * 1e-6):
        raise ConfigError(
            f"{price} is no whole tick of {position.symbol}; the nearest is {whole:.{spec.digits}f}"
        )
    near = spec.stops_level * 10.0**-spec.digits
    risk, room = gain(position.side, position.stop, price), gain(position.side, price, leave)
    if risk <= 0:
        raise ConfigError(
            f"{price} lies further from the price: {levels}. A stop only moves towards the price; "
            "to give a trade more room, use the terminal"
        )
    if room <= 0 or room < near:
        what = "at or beyond the price" if room <= 0 else f"nearer than {spec.stops_level} points"
        raise ConfigError(f"{price} lies {what}: {levels}. To leave now, use `torra close`")
