"""A desk that wants to trade far too often stops itself, and only a person lets it go on (R5)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import signal_bridge
from instance_database import Database
from tests.worlds import desks
from tests.worlds.stores import NOON, Hand, open_database, opening
from torra.clock import iso
from torra.config import Profile
from torra.store import ticks as claim_table
from torra.verdict import risk_engine
from torra.verdict.risk_engine import Account, Action, Decision

HOUR = timedelta(hours=1)
PROFILE = Profile()


def decide(database: Database, verdict: str, moment: Any, profile: Profile) -> Action:
    """One verdict, from the account as it stands to the signal in the outbox, as a tick does it."""
    with database.transaction():
        decision = Decision(
            verdict=verdict, price=2000.0, atr=5.0, multiplier=1.0, veto=False, opening_stands=True
        )
        exposure = database.exposure("XAUUSD", "M15", as_of=moment)
        account = Account(trading_state=database.trading_state(), **exposure)
        position, spec = database.position("XAUUSD"), profile.symbol("XAUUSD")
        action = risk_engine.review(decision, position, account, spec, profile)
        if action.halt is not None:
            database.halt(f"{action.halt}")
        for draft in action.drafts:
            signal_bridge.write_signal(
                database, draft, instance="XAUUSD", symbol="XAUUSD", timeframe="M15",
                bar_time=moment, created=moment, expires=moment + timedelta(seconds=180),
                authority="tick",
            )  # fmt: skip
    return action


def finish(database: Database, moment: Any) -> None:
    """Whatever was sent is filled and has hit its stop at once: the runaway's way to make room."""
    for row in database.signals(("PENDING",)):
        database.move_signal(row["sid"], "PUBLISHED")
        database.move_signal(row["sid"], "FILLED", fields={"price": 2000.0, "opened_at": moment})
        database.close_position(
            row["sid"], price=2000.0, time=moment, profit=0.0, r_multiple=0.0, reason="CLOSED"
        )


@pytest.mark.parametrize(
    ("risk", "cap", "reason"),
    [
        ({}, 3, "REPEATED_EXECUTION"),
        ({"max_same_openings_per_hour": 100}, 6, "MESSAGE_RATE"),
    ],
)
def test_ten_thousand_verdicts_in_an_hour_are_capped_and_halt_the_desk(
    risk: dict[str, int], cap: int, reason: str, tmp_path: Path, scaled: Any
) -> None:
    profile = PROFILE.model_copy(update={"risk": PROFILE.risk.model_copy(update=risk)})
    hand = Hand()
    database = open_database(tmp_path, hand)
    verdicts = scaled(10_000, least=60)
    for number in range(verdicts):
        moment = NOON + HOUR * number / verdicts
        decide(database, "BUY", moment, profile)
        finish(database, moment)
    assert len(database.signals(limit=verdicts)) == cap
    assert database.trading_state() == "HALTED"
    assert claim_table.trading_states(database, 1)[0].reason == reason
    later = NOON + 5 * HOUR
    assert decide(database, "BUY", later, profile).reason == "TRADING_HALTED", (
        "time does not resume"
    )
    database.set_trading_state("ACTIVE", "a person")
    assert decide(database, "BUY", later, profile).name == "OPEN_BUY"


def test_a_desk_that_trades_as_often_as_it_may_is_not_halted(database: Database) -> None:
    """The control: three openings of a side and six signals in an hour are allowed."""
    for number, verdict in enumerate(("BUY", "SELL", "BUY", "SELL", "BUY", "SELL")):
        moment = NOON + timedelta(minutes=number)
        assert decide(database, verdict, moment, PROFILE).name == f"OPEN_{verdict}"
        finish(database, moment)
    assert database.trading_state() == "ACTIVE"
    assert decide(database, "HOLD", NOON + timedelta(minutes=7), PROFILE).name == "HOLD"
    assert database.trading_state() == "ACTIVE", "nothing was asked for, so nothing is denied"


def test_a_tick_that_would_send_too_much_halts_its_desk(tmp_path: Path) -> None:
    """The message that was one too many is not sent, and the desk says why it stopped."""
    often = Profile.model_validate(
        {"thresholds": {"buy": 0.05, "sell": 0.05}, "risk": {"max_signals_per_hour": 1}}
    )
    desk = desks.working_desk(tmp_path, (desks.EUR,), profile=often)
    for number in range(12):
        sent = opening(
            f"T{number}", instance="EURUSD", decided_at=desk.clock.now() + HOUR / 2, state="PENDING"
        )
        desk.database.enqueue_signal(sent)
        desk.database.move_signal(sent["sid"], "CANCELLED")
        moment = desks.step(desk)
        record = desks.newest(desk, "H1", "EURUSD")
        if record["verdict"] != "HOLD":
            break
    assert (record["action"], record["reason"], record["signals"]) == ("HOLD", "MESSAGE_RATE", [])
    assert desk.database.trading_state() == "HALTED"
    told = claim_table.trading_states(desk.database, 1)[0].reason
    assert told == f"MESSAGE_RATE of EURUSD H1 at {iso(moment)}"
