"""The Expert Advisor asks the guards of torra.bridges.guards, in their order, at their edges."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.advisor_channel import (
    GOLD,
    MAGIC,
    NOW,
    VERSION,
    AdvisorChannel,
    seal,
)
from tests.doubles.compiled_ea import (
    ACCOUNT,
    CompiledEa,
)
from tests.worlds.guard_edges import EDGES, Case, ack_of, case_of, open_others, trade
from torra.bridges import guards
from torra.bridges.guards import REASONS


def _trades_of_yesterday(desk: AdvisorChannel) -> None:
    desk.ea.clock(NOW - NOW % 86_400 - 1)
    trade(desk, 11)
    desk.ea.clock(NOW)


def _strangers(desk: AdvisorChannel) -> None:
    for _ in range(11):
        desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=219_999_999)


OF_A_MESSAGE: dict[str, Case] = {
    "auth": Case(text=lambda body: seal(body, "forged")),
    "version": Case(version=VERSION + 1),
    "schema": Case({"policy": "add"}),
    "channel": Case({"channel": "other"}),
    "account": Case({"account": ACCOUNT + 1}),
    "decision": Case({"seal": "0" * 64}),
    "no_position": Case({"kind": "close", "side": "SELL", "ref": "TNOTTHERE"}),
}
CASES = OF_A_MESSAGE | {
    reason: case_of(*next(edge[:2] for edge in edges if edge[2])) for reason, edges in EDGES.items()
}


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
        assert ack_of(guarded, CASES[first], CASES[second])["reason"] == first, (first, second)


def test_only_torras_own_trades_of_today_count(guarded: AdvisorChannel) -> None:
    yesterday = ack_of(guarded, Case(world=_trades_of_yesterday))
    assert yesterday["reason"] == "", "the day is that of UTC"
    assert ack_of(guarded, Case(world=_strangers))["reason"] == "", "only Torra's own count"


@pytest.mark.parametrize(("margin_mode", "reason"), [("netting", "policy"), ("hedging", "")])
def test_a_netting_account_has_one_position_of_a_symbol(
    guarded: AdvisorChannel, margin_mode: str, reason: str
) -> None:
    guarded.ea.set(margin_mode=margin_mode)
    another = Case(world=functools.partial(open_others, count=1))
    assert ack_of(guarded, another)["reason"] == reason


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
        ack = ack_of(guarded, case_of({}, {"session": session}))
        assert ack["reason"] == ("" if opened else "session"), session


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
        ack = ack_of(guarded, CASES[guard.reason], Case(signal))
        asked = kind in guards.SCOPES[guard.scope]
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
        open_others(desk, 3)
        trade(desk, 10)
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
