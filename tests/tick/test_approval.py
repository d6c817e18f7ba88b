"""A proposal becomes signals once, by a person, at the price of now, all checks asked anew."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database
from tests.worlds.stores import NOON, key_of, open_database, opening
from torra.clock import Clock, Scaled, System, parse
from torra.config import Instance, Profile
from torra.errors import ConfigError
from torra.store import ticks as claim_table
from torra.store.trade import proposals_and_alarms as execution_table
from torra.tick import approval
from torra.verdict import risk_engine
from torra.verdict.risk_engine import Account, Decision

GOLD = Instance(symbol="XAUUSD", timeframes=("M15", "H1"), feed="store")
PROFILE = Profile(execution="approve")
PRICE, ATR = 2000.0, 5.0
LIFE = timedelta(seconds=180)
EXPIRES = NOON + timedelta(minutes=15)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path)
    database.apply_profile(GOLD.id, PROFILE.model_dump_json(), PROFILE.digest())
    yield database
    database.close()


def decision(verdict: str = "BUY") -> Decision:
    return Decision(
        verdict=verdict, price=PRICE, atr=ATR, multiplier=1.0, veto=False, opening_stands=True
    )


def decide(database: Database, verdict: str = "BUY", profile: Profile = PROFILE) -> Any:
    account = Account(**database.exposure(GOLD.id, "M15", as_of=NOON))
    position, spec = database.position(GOLD.id), profile.symbol("XAUUSD")
    return risk_engine.review(decision(verdict), position, account, spec, profile)


def propose(
    database: Database,
    verdict: str = "BUY",
    *,
    minutes: int = 0,
    profile: Profile = PROFILE,
    clock: Clock | None = None,
) -> str:
    moment = NOON + timedelta(minutes=minutes)
    return approval.propose(
        database,
        decide(database, verdict, profile),
        decision(verdict),
        key=key_of(moment, "M15", GOLD.id),
        symbol="XAUUSD",
        created=moment,
        expires=approval.expiry(moment, "M15", clock or System()),
    )


def at(**how: Any) -> approval.ApprovalContext:
    now = NOON + timedelta(minutes=5)
    values = {"instance": GOLD, "profile": PROFILE, "now": now, "price": PRICE, "halted": ""}
    return approval.ApprovalContext(**{**values, **how})


def approve(
    database: Database,
    sid: str,
    *,
    life: timedelta = LIFE,
    typed: float | None = None,
    **how: Any,
) -> approval.Decided:
    return approval.approve(database, sid, at(**how), life=life, typed=typed)


def hold(database: Database) -> str:
    """Hold a long position."""
    sid = propose(database, minutes=-60)
    approve(database, sid, now=NOON - timedelta(minutes=59))
    database.move_signal(sid, "PUBLISHED")
    fields = {"price": PRICE, "opened_at": NOON - timedelta(minutes=58)}
    database.move_signal(sid, "FILLED", fields=fields)
    return sid


def test_a_proposal_is_no_signal(database: Database) -> None:
    sid = propose(database)
    assert database.signals() == []
    (row,) = database.proposals()
    assert (row.sid, row.state, row.action) == (sid, "WAITING", "OPEN_BUY")
    assert propose(database) == sid, "the same tick again is the same proposal"
    assert len(database.proposals()) == 1


def test_approving_sends_under_the_ticks_own_id_with_fresh_levels_and_life(
    database: Database,
) -> None:
    sid = propose(database)
    now = NOON + timedelta(minutes=5)
    decided = approve(database, sid, price=PRICE + 1)
    assert (decided.state, decided.reason) == ("APPROVED", "")
    (row,) = database.signals()
    assert (row["sid"], row["state"], row["bar_time"]) == (sid, "PENDING", "2026-02-13T11:45:00Z")
    assert (row["entry"], row["stop"], row["target"]) == (2001.0, 1991.0, 2021.0)
    assert row["decided_at"] == "2026-02-13T12:05:00Z"
    assert row["expires"] == "2026-02-13T12:08:00Z"
    assert database.proposal(sid).state == "APPROVED"
    assert now + LIFE < EXPIRES


def test_a_second_click_is_an_error_and_sends_nothing(database: Database) -> None:
    sid = propose(database)
    approve(database, sid)
    with pytest.raises(ConfigError, match=f"{sid} is APPROVED since"):
        approve(database, sid)
    with pytest.raises(ConfigError, match="is APPROVED"):
        approval.reject(database, sid)
    assert len(database.signals()) == 1


def test_clicks_at_the_same_moment_send_one_signal(tmp_path: Path, scaled: Any) -> None:
    for round_ in range(scaled(500, least=4)):
        database = open_database(tmp_path / str(round_))
        sid = propose(database)
        gate = threading.Barrier(3)
        ends: list[str] = []

        def click(act: Any, gate: Any = gate, ends: Any = ends) -> None:
            gate.wait()
            try:
                ends.append(act().state)
            except ConfigError:
                ends.append("refused")

        acts = [lambda d=database, s=sid: approve(d, s)] * 2
        acts.append(lambda d=database, s=sid: approval.reject(d, s))
        threads = [threading.Thread(target=click, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ends.count("refused") == 2, ends
        state = database.proposal(sid).state
        assert len(database.signals()) == (state == "APPROVED")
        database.close()


@pytest.mark.parametrize(
    ("seconds", "state"), [(-1, "APPROVED"), (0, "EXPIRED"), (1, "EXPIRED"), (86400, "EXPIRED")]
)
def test_a_proposal_ends_at_the_close_of_the_next_bar(
    seconds: int, state: str, database: Database
) -> None:
    sid = propose(database)
    decided = approve(database, sid, now=EXPIRES + timedelta(seconds=seconds))
    assert decided.state == state
    assert len(database.signals()) == (state == "APPROVED")


def test_what_nobody_decides_expires_by_itself(database: Database) -> None:
    sid = propose(database)
    assert execution_table.expire_proposals(database, EXPIRES - timedelta(seconds=1), "late") == 0
    assert execution_table.expire_proposals(database, EXPIRES, "late") == 1
    assert database.proposal(sid).state == "EXPIRED"
    assert execution_table.expire_proposals(database, EXPIRES, "late") == 0


@pytest.mark.parametrize(
    ("drift", "state"), [(2.5, "APPROVED"), (-2.5, "APPROVED"), (2.51, "DENIED"), (-2.51, "DENIED")]
)
def test_a_price_that_has_drifted_ends_it(drift: float, state: str, database: Database) -> None:
    sid = propose(database)
    decided = approve(database, sid, price=PRICE + drift)
    assert decided.state == state
    if state == "DENIED":
        assert decided.reason == "PRICE_COLLAR"
        assert database.signals() == []


def test_on_the_demo_it_waits_two_real_minutes_and_its_price_wanders_as_long(
    database: Database,
) -> None:
    sid = propose(database, clock=Scaled(NOON, 180.0))
    end = NOON + timedelta(hours=6)
    expires = parse(database.proposal(sid).expires)
    assert end <= expires < end + timedelta(minutes=5)
    last: dict[str, Any] = {"now": end - timedelta(minutes=1), "price": PRICE + 12.0}
    assert approval.preview(database, sid, at(**last)).state == "APPROVED"
    assert approval.preview(database, sid, at(**last | {"price": PRICE + 13.0})).reason == (
        "PRICE_COLLAR"
    )
    assert approval.preview(database, sid, at(now=expires)).state == "EXPIRED"
    assert approve(database, sid, **last).state == "APPROVED"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("halted", "TRADING_HALTED"),
        ("reducing", "TRADING_REDUCING"),
        ("vetoed", "GATE_VETO"),
        ("full", "MAX_POSITIONS"),
        ({"free_margin": 1.0, "leverage": 1.0}, "MARGIN"),
        ({"clock_ok": False}, "CLOCK_SKEW"),
    ],
)
def test_every_check_is_asked_again(how: Any, reason: str, database: Database) -> None:
    sid = propose(database)
    more: dict[str, Any] = {}
    if how == "halted":
        more["halted"] = "a person"
    elif how == "reducing":
        database.reduce("a person")
    elif how == "vetoed":
        database.set_latch(GOLD.id, "BUY")
    elif how != "full":
        more["figures"] = how
    else:
        tight = PROFILE.risk.model_copy(update={"max_positions": 0})
        more["profile"] = PROFILE.model_copy(update={"risk": tight})
    decided = approve(database, sid, **more)
    assert (decided.state, decided.reason) == ("DENIED", reason)
    assert database.signals() == []


def test_a_yes_that_would_send_too_much_halts_the_desk(database: Database) -> None:
    sid = propose(database)
    database.enqueue_signal(opening("T9", instance=GOLD.id, decided_at=NOON))
    database.move_signal("T9", "CANCELLED")
    once = PROFILE.risk.model_copy(update={"max_signals_per_hour": 1})
    decided = approve(database, sid, profile=PROFILE.model_copy(update={"risk": once}))
    assert (decided.state, decided.reason) == ("DENIED", "MESSAGE_RATE")
    assert database.trading_state() == "HALTED"
    assert (
        claim_table.trading_states(database, 1)[0].reason
        == f"MESSAGE_RATE of {GOLD.id}, by approval"
    )


def test_a_position_that_came_meanwhile_denies_the_opening(database: Database) -> None:
    first, second = propose(database), propose(database, minutes=10)
    approve(database, first)
    decided = approve(database, second, now=NOON + timedelta(minutes=11))
    assert (decided.state, decided.reason) == ("DENIED", "POSITION_HELD")
    assert [row["sid"] for row in database.signals()] == [first]


def test_a_close_and_a_reversal_can_be_approved(database: Database) -> None:
    held = hold(database)
    profile = PROFILE.model_copy(update={"on_opposite": "reverse"})
    sid = propose(database, "SELL", profile=profile)
    assert database.proposal(sid).action == "REVERSE"
    decided = approve(database, sid, profile=profile)
    assert decided.state == "APPROVED"
    close, opening = decided.signals
    assert (close["kind"], close["closes"], close["state"]) == ("close", held, "PENDING")
    assert (opening["sid"], opening["after"], opening["state"]) == (sid, close["sid"], "WAITING")


def test_a_close_is_approved_for_its_own_position_only(database: Database) -> None:
    first = hold(database)
    sid = propose(database, "SELL")
    database.close_position(
        first, price=1990.0, time=NOON, profit=-10.0, r_multiple=-1.0, reason="STOPPED"
    )
    second = propose(database, minutes=1)
    approve(database, second)
    database.move_signal(second, "PUBLISHED")
    database.move_signal(second, "FILLED", fields={"price": PRICE, "opened_at": NOON})
    decided = approve(database, sid)
    assert (decided.state, decided.reason) == ("DENIED", "POSITION_CHANGED")


def preview(database: Database, sid: str, **how: Any) -> approval.Preview:
    return approval.preview(database, sid, at(**how))


def test_a_preview_is_what_the_yes_then_sends_and_changes_nothing(database: Database) -> None:
    sid = propose(database)
    before = (database.proposal(sid), database.signals(), claim_table.trading_states(database))
    seen = preview(database, sid, price=PRICE + 1)
    assert (
        database.proposal(sid),
        database.signals(),
        claim_table.trading_states(database),
    ) == before
    assert (seen.state, seen.reason, seen.passes) == ("APPROVED", "", True)
    assert seen.drift == 1 / ATR
    assert set(seen.checks.values()) == {"ok"}
    approve(database, sid, price=PRICE + 1)
    (row,) = database.signals()
    assert seen.levels is not None
    assert (seen.levels.entry, seen.levels.stop, seen.levels.target, seen.lots) == (
        row["entry"], row["stop"], row["target"], row["lots"],
    )  # fmt: skip


def test_a_preview_and_the_yes_agree_whatever_stands_in_the_way(
    tmp_path: Path, scaled: Any
) -> None:
    """Random desks: the same state and reason, and a check that fails wherever one objects."""
    dice = random.Random(6)
    ends: set[str] = set()
    for number in range(scaled(2000, least=16)):
        database = open_database(tmp_path / str(number))
        sid = propose(database)
        if dice.random() < 0.2:
            database.set_latch(GOLD.id, "BUY")
        if dice.random() < 0.2:
            database.set_trading_state(dice.choice(("REDUCING", "HALTED")), "")
        if dice.random() < 0.2:
            database.enqueue_signal(opening("TOTHER", instance=GOLD.id, symbol="XAUUSD"))
        how: dict[str, Any] = {
            "price": PRICE + dice.choice((0.0, 0.0, 1.0, 2.5, 2.6, -9.0, float("nan"))),
            "now": NOON + timedelta(minutes=dice.choice((1, 5, 15, 20))),
            "halted": dice.choice(("", "", "", "the file HALT of desk is there")),
            "figures": dice.choice(({}, {}, {"market_open": False}, {"live_spread": 50.0})),
        }
        seen, decided = preview(database, sid, **how), approve(database, sid, **how)
        assert (seen.state, seen.reason) == (decided.state, decided.reason), how
        failed = {name for name, outcome in seen.checks.items() if outcome == "failed"}
        if decided.state == "APPROVED":
            assert not failed
        elif decided.state == "DENIED" and decided.reason in seen.checks:
            assert decided.reason in failed
        ends.add(decided.reason)
        database.close()
    assert len(ends) > 3, ends


def test_without_numbers_checks_that_need_them_are_not_asked(database: Database) -> None:
    seen = preview(database, propose(database), price=float("nan"))
    assert (seen.reason, seen.levels) == ("BAD_NUMBER", None)
    assert seen.checks["BAD_NUMBER"] == "failed"
    assert seen.checks["MARGIN"] == "not asked"
    assert seen.checks["TRADING_HALTED"] == "ok"


def test_a_close_is_asked_for_the_halt_alone(database: Database) -> None:
    profile = PROFILE.model_copy(update={"on_opposite": "close"})
    held = hold(database)
    sid = propose(database, "SELL", profile=profile)
    seen = preview(database, sid, profile=profile)
    assert (seen.state, seen.levels) == ("APPROVED", None)
    row = database.signal(held)
    assert row is not None
    assert seen.lots == row["lots"]
    assert {name for name, outcome in seen.checks.items() if outcome == "ok"} == {
        "TRADING_HALTED", approval.POSITION_CHANGED,
    }  # fmt: skip


def test_a_typed_size_must_be_that_of_now(database: Database) -> None:
    sid = propose(database)
    lots = preview(database, sid).lots
    with pytest.raises(ConfigError, match=f"the size is {lots:g} lots"):
        approve(database, sid, typed=lots * 2)
    assert database.proposal(sid).state == "WAITING"
    assert approve(database, sid, typed=lots).state == "APPROVED"


def test_a_yes_keeps_to_the_leverage_caps(database: Database) -> None:
    """What other instances hold at the account counts, as it does for a tick."""
    other = database.enqueue_signal(
        opening("T1", instance="OTHER", symbol="XAUUSD", entry=PRICE, stop=1990.0, target=2020.0,
                lots=1.0, bridge=GOLD.route)
    )  # fmt: skip
    assert other
    database.apply_profile("OTHER", PROFILE.model_dump_json(), PROFILE.digest())
    database.move_signal("T1", "PUBLISHED")
    database.move_signal("T1", "FILLED", fields={"price": PRICE, "opened_at": NOON})
    limits = {"max_positions": 9, "exposure_cap_pct": 1e6, "account_leverage_cap": 1e6}

    def wide(**more: Any) -> Profile:
        return PROFILE.model_copy(update={"risk": PROFILE.risk.model_copy(update=limits | more)})

    sid = propose(database, profile=wide())
    decided = approve(database, sid, profile=wide(leverage_caps={"account": 1.0}))
    assert (decided.state, decided.reason) == ("DENIED", "LEVERAGE_CAP")
