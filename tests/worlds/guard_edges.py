"""Openings below, at and above the limit of a guard, and who judges them: advisor, paper, package.

An opening is that of tests.doubles.advisor_channel: gold at 2345.00 to 2345.20, a spread of 40
points and a deviation of 30 at most, 0.10 lots as the largest order, three positions and ten trades
a day at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from tests.doubles import advisor_channel as channel
from tests.doubles.advisor_channel import ASK, BID, GOLD, MAGIC, NOW, VERSION, AdvisorChannel
from tests.doubles.hand_clock import START
from tests.worlds import mt5_package
from torra.bridges.guards import GuardRequest
from torra.bridges.mt5.request import SYMBOL_MODES
from torra.bridges.paper import FREE, Bar, PaperOrder, PaperPosition, acceptance, advance
from torra.config import SYMBOLS
from torra.verdict.order_levels import Side

EDGES: dict[str, list[tuple[dict[str, Any], dict[str, Any], bool]]] = {
    "live": [({}, {"account_mode": mode}, mode == "real") for mode in ("contest", "real")],
    "kill": [({}, {"halted": True}, True)],
    "clock": [({"created": NOW + seconds}, {}, seconds > 5) for seconds in (4, 5, 6)],
    "stale": [({"expires": NOW + seconds}, {}, seconds <= 0) for seconds in (-1, 0, 1)],
    "not_connected": [({}, {"connected": False}, True)],
    "autotrading_off": [({}, {"algo": False}, True)],
    "symbol": [
        ({}, {"mode": "disabled"}, True),
        ({}, {"mode": "close_only"}, True),
        ({}, {"mode": "short_only"}, True),
        ({}, {"mode": "long_only"}, False),
    ],
    "session": [({}, {"session": "closed"}, True)],
    "quote": [
        ({}, {"quote": (2345.00, 2345.00)}, False),
        ({}, {"quote": (2345.00, 2344.99)}, True),
        ({}, {"quote": (0.0, 2345.20)}, True),
    ],
    "spread": [({"max_spread_pts": points}, {}, points < 20) for points in (19, 20, 21)],
    "deviation": [
        ({"entry": entry, "side": side}, {}, objects)
        for side, entry, objects in (
            ("BUY", "2344.89", True),
            ("BUY", "2344.90", False),
            ("BUY", "2345.50", False),
            ("BUY", "2345.51", True),
            ("SELL", "2345.30", False),
            ("SELL", "2345.31", True),
        )
    ],
    "side": [
        ({"side": side, key: price}, {}, objects)
        for side, key, price, objects in (
            ("BUY", "sl", "2345.19", False),
            ("BUY", "sl", "2345.20", True),
            ("BUY", "sl", "0.00", True),
            ("BUY", "tp", "2345.20", True),
            ("BUY", "tp", "0.00", True),
            ("SELL", "sl", "2345.01", False),
            ("SELL", "sl", "2345.00", True),
            ("SELL", "sl", "0.00", True),
            ("SELL", "tp", "2345.00", True),
            ("SELL", "tp", "0.00", True),
        )
    ],
    "stops": [
        ({"side": side, key: price}, {"stops_level": 30}, objects)
        for side, key, price, objects in (
            ("BUY", "sl", "2344.70", False),
            ("BUY", "sl", "2344.71", True),
            ("BUY", "tp", "2345.30", False),
            ("BUY", "tp", "2345.29", True),
            ("SELL", "sl", "2345.50", False),
            ("SELL", "sl", "2345.49", True),
            ("SELL", "tp", "2344.90", False),
            ("SELL", "tp", "2344.91", True),
        )
    ],
    "volume": [
        ({"lots": lots}, {"lot_min": 0.03, "lot_step": 0.02, "lot_max": 0.08}, objects)
        for lots, objects in (
            ("0.02", True),
            ("0.03", True),
            ("0.04", False),
            ("0.05", True),
            ("0.08", False),
            ("0.10", True),
            ("0.00", True),
        )
    ],
    "max_lots": [({"lots": lots}, {}, lots == "0.11") for lots in ("0.09", "0.10", "0.11")],
    "max_positions": [({}, {"others": count}, count >= 3) for count in (2, 3, 4)],
    "max_trades": [({}, {"trades": count}, count >= 10) for count in (9, 10, 11)],
    "policy": [({}, {"others": 1}, False), ({}, {"same": True}, True)],
}
"""By guard: what to change in the signal, what in the market, whether it objects.

Of the market: `mode`, `session`, `stops_level`, `lot_...` and `quote` of the symbol, and of the
account `account_mode`, `connected`, `algo`, `halted`, how many `others` are open, how many `trades`
there were today, and whether the instance has the `same` position already.
"""

NOT_OF_THE_PACKAGE = {
    "live", "kill", "not_connected", "autotrading_off",  # it is not asked at all: the order waits
    "session", "max_lots", "max_positions", "max_trades",  # the terminal knows no such limit
}  # fmt: skip


# --- the advisor ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """How to make one guard of the advisor object: what to change in the signal and the world."""

    signal: dict[str, Any] = field(default_factory=dict)
    world: Callable[[AdvisorChannel], object] = lambda desk: None
    text: Callable[[str], str] = channel.seal
    version: int = VERSION


def case_of(signal: dict[str, Any], market: dict[str, Any]) -> Case:
    """Return an edge as a case of the advisor's."""
    return Case(signal, lambda desk: _prepare(desk, market))


def ack_of(desk: AdvisorChannel, *cases: Case) -> dict[str, Any]:
    """Return the ack of a signal under all these cases at once, and put the world back.

    Whatever is refused was not sent, and whatever is not refused was sent once.
    """
    try:
        for case in cases:
            case.world(desk)
        changes: dict[str, Any] = {}
        for case in reversed(cases):
            changes |= case.signal
        fields = desk.fields(**changes)
        version = max(case.version for case in cases)
        seals = [case.text for case in cases if case.text is not channel.seal] or [channel.seal]
        name = desk.put(seals[0](channel.body_of(fields, version)), fields["seq"], fields["sid"])
        desk.ea.timer()
        ack = desk.ack(name)
        sends = desk.ea.broker_state()["sends"]
        assert sends == (ack["status"] not in ("REJECTED", "EXPIRED") and ack["retcode"] == 10009)
        assert (ack["status"] == "EXPIRED") == (ack["reason"] == "stale")
        return ack
    finally:
        desk.resume()
        desk.ea.wipe()
        desk.calm()
        desk.ea.symbol(GOLD, lot_min=0.01, lot_step=0.01)


def open_others(desk: AdvisorChannel, count: int) -> None:
    """Let Torra have so many positions of other instances."""
    for number in range(count):
        desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC + 1 + number)


def trade(desk: AdvisorChannel, count: int) -> None:
    """Let Torra have opened and closed so many positions."""
    for _ in range(count):
        desk.ea.close_by_hand(desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC + 7))


SETTINGS = {"account_mode": "trade_mode", "connected": "connected", "algo": "algo"}
"""What the simulated broker calls them."""


def _prepare(desk: AdvisorChannel, market: dict[str, Any]) -> None:
    """Change what the edge names and nothing else, so that two edges can be met at once."""
    rest = dict(market)
    trade(desk, rest.pop("trades", 0))
    open_others(desk, rest.pop("others", 0))
    if rest.pop("same", False):
        desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC)
    if rest.pop("halted", False):
        desk.halt()
    for name in SETTINGS.keys() & rest.keys():
        value = rest.pop(name)
        desk.ea.set(**{SETTINGS[name]: value if isinstance(value, str) else int(value)})
    if "quote" in rest:
        desk.ea.quote(GOLD, *rest.pop("quote"))
    if rest:
        desk.ea.symbol(GOLD, **rest)


# --- paper ----------------------------------------------------------------------------------------

STEP = timedelta(minutes=15)


def on_paper(signal: dict[str, Any], market: dict[str, Any]) -> str:
    """Return the reason that paper refuses an opening for."""
    at = datetime.fromtimestamp(NOW, UTC)
    fields = _fields(signal)
    side, lots = cast(Side, fields["side"]), float(fields["lots"])
    conditions = replace(
        FREE, trade_mode=market.get("mode", "full"), max_lots=0.1, max_positions=3,
        max_trades_per_day=10, positions=market.get("others", 0),
        trades_today=market.get("trades", 0), halted=market.get("halted", False),
        connected=market.get("connected", True), algo_allowed=market.get("algo", True),
        real_account=market.get("account_mode") == "real",
        session_open=market.get("session") != "closed",
    )  # fmt: skip
    message = GuardRequest("open", side, lots, created=fields["created"], expires=fields["expires"])
    if refusal := acceptance(message, at, conditions):
        return refusal
    order = PaperOrder(
        "TNEW", "open", side, lots, float(fields["sl"]), float(fields["tp"]), at,
        entry=float(fields["entry"]), max_spread_pts=fields["max_spread_pts"],
        max_dev_pts=fields["max_dev_pts"],
    )  # fmt: skip
    bid, ask = market.get("quote", (BID, ASK))
    spec = SYMBOLS["XAUUSD"].model_copy(update={"stops_level": 0, **market})
    before = PaperPosition("THELD", "LONG", 0.01, 2345.0, 2000.0, 3000.0, at - STEP)
    events = advance(
        [order], before if market.get("same") else None, Bar(at, bid, bid, bid, bid), ask - bid,
        spec, conditions,
    ).events  # fmt: skip
    assert (events[0].kind == "REJECTED") == bool(events[0].reason)
    return events[0].reason


# --- the MetaTrader5 package ----------------------------------------------------------------------


def on_package(folder: Path, signal: dict[str, Any], market: dict[str, Any]) -> str:
    """Return the reason that `mt5_direct` refuses an opening for; what it refuses is not sent."""
    world = mt5_package.World(folder)
    try:
        world.package.quotes[GOLD] = market.get("quote", (BID, ASK))
        world.package.symbol_mode = SYMBOL_MODES.index(market.get("mode", "full"))
        world.package.stops_level = market.get("stops_level", 0)
        least, most, step = world.package.lots
        world.package.lots = (
            market.get("lot_min", least), market.get("lot_max", most), market.get("lot_step", step),
        )  # fmt: skip
        for number in range(market.get("others", 0)):
            world.package.hold(GOLD, mt5_package.MAGIC + 1 + number)
        if market.get("same"):
            world.package.hold(GOLD, mt5_package.MAGIC)
        fields = _fields(signal)
        report = world.opened(
            side=fields["side"], lots=float(fields["lots"]), entry=float(fields["entry"]),
            stop=float(fields["sl"]), target=float(fields["tp"]),
            created=START + timedelta(seconds=fields["created"] - NOW),
            expires=START + timedelta(seconds=fields["expires"] - NOW),
            max_spread_pts=fields["max_spread_pts"], max_dev_pts=fields["max_dev_pts"],
        )  # fmt: skip
        assert (report.status == "EXPIRED") == (report.reason == "stale")
        assert len(world.package.requests) == (not report.reason)
        return report.reason
    finally:
        world.close()


def _fields(signal: dict[str, Any]) -> dict[str, Any]:
    entry, stop, target = channel.LEVELS[signal.get("side", "BUY")]
    return {**channel.SIGNAL, "entry": entry, "sl": stop, "tp": target, **signal}
