"""The Expert Advisor asks the guards of torra.bridges.guards, in their order, at their edges."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.advisor_channel import (
    ASK,
    BID,
    GOLD,
    MAGIC,
    NOW,
    VERSION,
    AdvisorChannel,
    body_of,
    seal,
)
from tests.doubles.compiled_ea import (
    ACCOUNT,
    CompiledEa,
)
from tests.worlds.guard_edges import EDGES
from torra.bridges import guards
from torra.bridges.guards import REASONS, Ask, View, first_objection


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdvisorChannel]:
    """A channel for many signals: `judged` puts everything back after each."""
    with AdvisorChannel(tmp_path_factory.mktemp("guarded")) as channel:
        yield channel


@dataclass(frozen=True)
class Case:
    """How to make one guard object: what to change in the signal and in the world."""

    signal: dict[str, Any] = field(default_factory=dict)
    world: Callable[[AdvisorChannel], object] = lambda desk: None
    text: Callable[[str], str] = seal
    version: int = VERSION


def _positions(desk: AdvisorChannel, count: int = 3) -> None:
    for number in range(count):
        desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC + 1 + number)


def _trades(desk: AdvisorChannel, count: int = 10) -> None:
    for _ in range(count):
        desk.ea.close_by_hand(desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC + 7))


def _trades_of_yesterday(desk: AdvisorChannel) -> None:
    desk.ea.clock(NOW - NOW % 86_400 - 1)
    _trades(desk, 11)
    desk.ea.clock(NOW)


def _terms(desk: AdvisorChannel, terms: dict[str, Any]) -> None:
    desk.ea.symbol(GOLD, **{name: value for name, value in terms.items() if name != "quote"})
    desk.ea.quote(GOLD, *terms.get("quote", (BID, ASK)))


def _strangers(desk: AdvisorChannel) -> None:
    for _ in range(11):
        desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=219_999_999)


CASES: dict[str, Case] = {
    "auth": Case(text=lambda body: seal(body, "forged")),
    "version": Case(version=VERSION + 1),
    "schema": Case({"policy": "add"}),
    "channel": Case({"channel": "other"}),
    "account": Case({"account": ACCOUNT + 1}),
    "decision": Case({"seal": "0" * 64}),
    "live": Case(world=lambda desk: desk.ea.set(trade_mode="real")),
    "kill": Case(world=AdvisorChannel.halt),
    "clock": Case({"created": NOW + 6}),
    "stale": Case({"expires": NOW}),
    "not_connected": Case(world=lambda desk: desk.ea.set(connected=0)),
    "autotrading_off": Case(world=lambda desk: desk.ea.set(algo=0)),
    "symbol": Case({"broker_symbol": "GBPUSD"}),
    "session": Case(world=lambda desk: desk.ea.symbol(GOLD, session="closed")),
    "quote": Case(world=lambda desk: desk.ea.quote(GOLD, 2345.0, 2344.9)),
    "spread": Case({"max_spread_pts": 19}),
    "deviation": Case({"entry": "2344.89"}),
    "side": Case({"sl": "2345.21"}),
    "stops": Case({"sl": "2344.99"}, world=lambda desk: desk.ea.symbol(GOLD, stops_level=2)),
    "no_position": Case({"kind": "close", "side": "SELL", "ref": "TNOTTHERE"}),
    "volume": Case({"lots": "0.115"}),
    "max_lots": Case({"lots": "0.11"}),
    "max_positions": Case(world=_positions),
    "max_trades": Case(world=_trades),
    "policy": Case(world=lambda desk: desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC)),
}


def judged(desk: AdvisorChannel, *cases: Case) -> dict[str, Any]:
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
        seals = [case.text for case in cases if case.text is not seal] or [seal]
        name = desk.put(seals[0](body_of(fields, version)), fields["seq"], fields["sid"])
        desk.ea.timer()
        ack = desk.ack(name)
        sends = desk.ea.broker_state()["sends"]
        assert sends == (ack["status"] not in ("REJECTED", "EXPIRED") and ack["retcode"] == 10009)
        return ack
    finally:
        desk.resume()
        desk.ea.wipe()
        desk.calm()


def test_a_torra_of_the_version_before_is_refused(tmp_path: Path) -> None:
    with AdvisorChannel(tmp_path) as desk:
        fields = desk.fields()
        name = desk.put(seal(body_of(fields, VERSION - 1)), fields["seq"], fields["sid"])
        desk.ea.timer()
        ack = desk.ack(name)
        assert (ack["status"], ack["reason"]) == ("REJECTED", "version")
        assert desk.deals() == []


@pytest.mark.parametrize("reason", REASONS)
def test_each_guard_objects(guarded: AdvisorChannel, reason: str) -> None:
    ack = judged(guarded, CASES[reason])
    assert ack["reason"] == reason
    assert ack["status"] == ("EXPIRED" if reason == "stale" else "REJECTED")
    assert judged(guarded, Case())["status"] == "FILLED", "and nothing else stood in the way"


@pytest.mark.parametrize(
    ("side", "there", "stop", "reason"),
    [
        ("BUY", "2340.00", "2341.00", ""), ("BUY", "2340.00", "2339.99", "side"),
        ("SELL", "2350.00", "2349.00", ""), ("SELL", "2350.00", "2350.01", "side"),
        ("BUY", "2340.00", "2340.00", ""), ("", "2340.00", "2330.00", ""),
    ],
)  # fmt: skip
def test_a_stop_does_not_move_away_from_the_price(
    tmp_path: Path, side: str, there: str, stop: str, reason: str
) -> None:
    """Without a side, as another program may send it, the levels are set as they are."""
    with AdvisorChannel(tmp_path) as desk:
        opening = {"sid": "TOPENED", "side": side or "BUY", "sl": there}
        opened = desk.order(**opening, tp="2330.00" if side == "SELL" else "2362.00")
        assert opened["status"] == "FILLED"
        told = desk.order(kind="modify", side=side, sl=stop, tp="0.00", ref="TOPENED")
        assert told["reason"] == reason


def guard_pairs() -> list[tuple[str, str]]:
    """Return every pair of guards that one signal can meet at once, neighbours first."""
    scopes = {guard.reason: guard.scope for guard in guards.GUARDS}
    pairs = [
        pair
        for pair in itertools.combinations(REASONS, 2)
        if not ("no_position" in pair and "open" in (scopes[pair[0]], scopes[pair[1]]))
        and pair != ("side", "stops")  # a level on the wrong side is not near
        and pair != ("side", "no_position")  # of an opening, and of a close
    ]
    random.Random(3).shuffle(pairs)
    return sorted(pairs, key=lambda pair: REASONS.index(pair[1]) - REASONS.index(pair[0]) > 2)


def test_of_two_guards_the_earlier_one_speaks(
    guarded: AdvisorChannel, scaled: Callable[..., int]
) -> None:
    pairs = guard_pairs()
    for first, second in pairs[: scaled(len(pairs), least=50)]:
        assert judged(guarded, CASES[first], CASES[second])["reason"] == first, (first, second)


@pytest.mark.parametrize("reason", EDGES)
def test_the_edge_of_each_guard(guarded: AdvisorChannel, reason: str) -> None:
    for signal, terms, objects in EDGES[reason]:
        ack = judged(guarded, Case(signal, functools.partial(_terms, terms=terms)))
        guarded.ea.symbol(GOLD, lot_min=0.01, lot_step=0.01)
        assert (ack["reason"] == reason) == objects, (signal, ack)
        assert objects or ack["reason"] in ("", "retcode"), (signal, ack)


COUNTS = {("max_positions", 3): _positions, ("max_trades", 10): _trades}


def test_the_edge_of_the_counting_guards(guarded: AdvisorChannel) -> None:
    for (reason, limit), make in COUNTS.items():
        for count in (limit - 1, limit, limit + 1):
            case = Case(world=functools.partial(make, count=count))
            assert judged(guarded, case)["reason"] == (reason if count >= limit else "")
    yesterday = judged(guarded, Case(world=_trades_of_yesterday))
    assert yesterday["reason"] == "", "the day is that of UTC"
    assert judged(guarded, Case(world=_strangers))["reason"] == "", "only Torra's own count"


@pytest.mark.parametrize(("margin_mode", "reason"), [("netting", "policy"), ("hedging", "")])
def test_a_netting_account_has_one_position_of_a_symbol(
    guarded: AdvisorChannel, margin_mode: str, reason: str
) -> None:
    guarded.ea.set(margin_mode=margin_mode)
    another = Case(world=functools.partial(_positions, count=1))
    assert judged(guarded, another)["reason"] == reason


# NOW is a Saturday, day 6, and 13:45 at the server: second 49,500
SESSIONS = {
    "6:0-86400": True,
    "6:0-49500": False,
    "6:0-49501": True,
    "6:49500-86400": True,
    "6:49501-86400": False,
    "5:0-86400,0:0-86400": False,
    "6:0-3600,6:49499-49501,6:80000-86400": True,
    "6:0-3600,6:80000-86400": False,
}


def test_sessions_are_of_the_servers_day(guarded: AdvisorChannel) -> None:
    for session, opened in SESSIONS.items():
        ack = judged(guarded, Case(world=functools.partial(_terms, terms={"session": session})))
        assert ack["reason"] == ("" if opened else "session"), session


KINDS_ASKED = {"all": guards.KINDS, "trade": guards.SCOPES["trade"], "open": ("open",)}


@pytest.mark.parametrize("guard", [g for g in guards.GUARDS if g.reason in (
    "live", "kill", "not_connected", "autotrading_off", "symbol", "session", "quote", "channel",
    "account", "clock", "stale")], ids=lambda guard: guard.reason)  # fmt: skip
def test_guards_ask_the_kinds_that_they_are_for(
    guarded: AdvisorChannel, guard: guards.Guard
) -> None:
    for kind in guards.KINDS:
        position = guarded.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC + 1)
        side = {"open": "BUY", "close": "SELL"}.get(kind, "")
        magic = MAGIC if kind == "open" else MAGIC + 1
        signal = {"kind": kind, "side": side, "ticket": position, "magic": magic}
        ack = judged(guarded, CASES[guard.reason], Case(signal))
        asked = kind in KINDS_ASKED[guard.scope]
        assert (ack["reason"] == guard.reason) == asked, (kind, ack)


def test_the_inputs_that_no_file_can_loosen(tmp_path: Path) -> None:
    refusing: dict[str, dict[str, Any]] = {
        "account": {"account": 0},
        "autotrading_off": {"allow_trading": False},
        "max_lots": {"max_lots": 0.09},
    }
    for reason, inputs in refusing.items():
        with AdvisorChannel(tmp_path / reason, **inputs) as desk:
            given = {"account": 0} if reason == "account" else {}
            assert desk.order(**given)["reason"] == reason
    free = {"max_lots": 0.0, "max_positions": 0, "max_trades_per_day": 0, "demo_only": False}
    with AdvisorChannel(tmp_path / "free", **free) as desk:
        _positions(desk)
        _trades(desk)
        desk.ea.set(trade_mode="real")
        assert desk.order(lots="0.50")["status"] == "FILLED", "0 = no limit"
        desk.ea.set(account=ACCOUNT + 1)
        other = desk.order(magic=MAGIC + 20)
        assert other["reason"] == "account", "the terminal shows another account"


@pytest.mark.parametrize(
    "inputs",
    [
        {"max_lots": -1},
        {"max_positions": -1},
        {"max_trades_per_day": -1},
        {"account": -5},
        {"channel": "../x"},
        {"channel": ".x"},
        {"channel": ""},
    ],
)
def test_inputs_that_make_no_sense_are_refused(tmp_path: Path, inputs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="refused its inputs"):
        CompiledEa(tmp_path / "main", **inputs)


def test_without_a_key_it_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "main" / "inbox").mkdir(parents=True)
    (tmp_path / "main" / "inbox" / "0000000001_TONE.json").write_text("x", encoding="ascii")
    with CompiledEa(tmp_path / "main") as ea:
        ea.clock(NOW)
        ea.run(2)
        assert "no channel key" in ea.shown()
    assert [path.name for path in (tmp_path / "main").iterdir()] == ["inbox"]
    assert (tmp_path / "main" / "inbox" / "0000000001_TONE.json").exists()


def drawn(dice: random.Random) -> tuple[dict[str, Any], dict[str, Any], Ask, View]:
    """Return a signal and a world near the edges of the guards, here and for guards.py."""
    bid = dice.choice([0.0, 2344.9, 2345.0, 2345.0, 2345.0, 2345.1, 2350.0])
    ask = round(bid + dice.choice([-0.01, 0.0, 0.01, 0.2, 0.4, 0.41]), 2)
    side = dice.choice(["BUY", "SELL"])
    way = 1 if side == "BUY" else -1
    price = ask if side == "BUY" else bid
    entry = round(max(0.0, price + dice.choice([-0.31, -0.3, -0.01, 0.0, 0.0, 0.3, 0.31])), 2)
    stop = round(
        max(0.01, price - way * dice.choice([5.0, 5.0, 5.0, 0.5, 0.3, 0.01, 0.0, -1.0])), 2
    )
    target = round(max(0.01, price + way * dice.choice([9.0, 9.0, 9.0, 0.3, 0.0, -1.0])), 2)
    lots = dice.choice(["0.01", "0.10", "0.10", "0.10", "0.11", "0.005", "0.015", "2.00"])
    world: dict[str, Any] = {
        "trade_mode": dice.choice(["demo"] * 9 + ["contest", "real"]),
        "connected": dice.random() > 0.05,
        "algo": dice.random() > 0.05,
        "halted": dice.random() < 0.05,
        "mode": dice.choice(["full"] * 6 + ["long_only", "short_only", "close_only", "disabled"]),
        "session": dice.choice(["always"] * 9 + ["closed"]),
        "stops_level": dice.choice([0, 0, 30, 50, 100]),
        "lot_max": dice.choice([100, 100, 1]),
        "quote": (bid, ask),
        "same": dice.random() < 0.1,
        "others": dice.choice([0, 0, 0, 2, 3]),
    }
    signal: dict[str, Any] = {
        "side": side,
        "entry": f"{entry:.2f}",
        "sl": f"{stop:.2f}",
        "tp": f"{target:.2f}",
        "lots": lots,
        "created": NOW + dice.choice([-10, -10, -10, 5, 6]),
        "expires": NOW + dice.choice([170, 170, 170, 1, 0]),
        "channel": dice.choice(["main"] * 19 + ["other"]),
        "account": dice.choice([ACCOUNT] * 19 + [1]),
    }
    positions = int(world["same"]) + int(world["others"])
    asked = Ask("open", side, float(lots), entry, stop, target, signal["created"],
                signal["expires"], 40, 30, channel=signal["channel"],
                account=signal["account"])  # fmt: skip
    view = View(
        now=NOW,
        bid=bid,
        ask=ask,
        digits=2,
        channel="main",
        account=ACCOUNT,
        real_account=world["trade_mode"] == "real",
        halted=world["halted"],
        connected=world["connected"],
        algo_allowed=world["algo"],
        trade_mode=world["mode"],
        session_open=world["session"] == "always",
        stops_level=world["stops_level"],
        lot_max=world["lot_max"],
        max_lots=0.1,
        positions=positions,
        max_positions=3,
        trades_today=positions,
        max_trades_per_day=10,
        held=world["same"],
    )
    return signal, world, asked, view


def test_judges_as_the_table_of_guards_does(
    guarded: AdvisorChannel, scaled: Callable[..., int]
) -> None:
    dice = random.Random(11)
    seen: dict[str, int] = dict.fromkeys(["", *REASONS], 0)
    for _ in range(scaled(15_000, least=120)):
        signal, world, asked, view = drawn(dice)
        magics = [MAGIC] * world["same"] + [MAGIC + 1] * world["others"]
        for magic in magics:
            guarded.ea.open_by_hand(GOLD, "BUY", 0.01, magic=magic)
        guarded.ea.symbol(GOLD, mode=world["mode"], session=world["session"],
                       stops_level=world["stops_level"], lot_max=world["lot_max"])  # fmt: skip
        guarded.ea.quote(GOLD, *world["quote"])
        guarded.ea.set(trade_mode=world["trade_mode"], connected=int(world["connected"]),
                    algo=int(world["algo"]))  # fmt: skip
        if world["halted"]:
            guarded.halt()
        ack = judged(guarded, Case(signal))
        wanted = first_objection(asked, view)
        within_the_spread = not wanted and ack["retcode"] == 10016  # a broker refuses such a stop
        assert ack["reason"] == ("retcode" if within_the_spread else wanted), (signal, world)
        assert (ack["status"] == "FILLED") == (wanted == "" and not within_the_spread), ack
        seen[wanted] += 1
        for path in (guarded.folder / "done").iterdir():
            path.unlink()
    print(f"\n{sum(seen.values())} signals judged alike:", seen)
