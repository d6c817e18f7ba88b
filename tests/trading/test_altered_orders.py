"""An order in the database that is not the one that was decided is not sent, and halts the desk.

A row is altered as a foreign program or a trigger would: with SQL, behind the desk. On the other
hand orders of every kind, from real levels, never look altered.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing as closed
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import signal_bridge
from instance_database import Database
from tests.trading.test_courier import GOLD, PAPER, ROW, World
from tests.worlds.channels import Stage, order
from tests.worlds.stores import NOON, open_database, opening
from torra.bridges.paper import Bar
from torra.bridges.torra.messages import MessageError, Signal, decode, encode, signal_of
from torra.clock import iso
from torra.config import SYMBOLS, Profile
from torra.tick import paper
from torra.trading.courier import order_of
from torra.verdict import order_levels, order_seal
from torra.verdict.order_levels import Side
from torra.verdict.risk_engine import Kind, SignalDraft

ALTERATIONS: dict[str, tuple[Any, ...]] = {
    "sid": ("T9", ""),
    "instance": ("BTCUSD", ""),
    "symbol": ("BTCUSD", "xauusd", ""),
    "timeframe": ("H1", ""),
    "bar_time": ("2026-02-13T11:30:00Z", "no time"),
    "kind": ("open", "close"),
    "side": ("SELL", "BUY"),
    "lots": (10.0, 0.11, 1e-9, "a lot"),
    "entry": (1.0, 2000.01, None),
    "stop": (1000.0, 1990.01, "low"),
    "target": (9999.0, 2019.99, b"\0"),
    "atr": (500.0, 5.00001),
    "decided_at": ("2026-02-13T12:00:30Z", "2020-01-01T00:00:00Z", 5),
    "expires": ("2036-02-13T12:03:00Z", "2026-02-13T12:04:00Z", None),
    "after": ("T5",),
    "closes": ("T5", "T0"),
    "bridge": ("mt5_direct", ""),
    "authority": ("person", "approval", "nobody", ""),
    "seal": (None, "", "0" * 64, b"x"),
    "state": ("WAITING", "PENDING", "PUBLISHED"),
}
"""What somebody may write into a column; what is there already is no alteration."""


def alter(database: Database, sid: str, values: dict[str, Any]) -> None:
    """Write into a row as a foreign program does: no rule of Torra's is asked."""
    with closed(sqlite3.connect(database.path)) as db, db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA ignore_check_constraints = ON")
        names = ", ".join(f"{name} = ?" for name in values)
        db.execute(f"UPDATE signals SET {names} WHERE sid = ?", (*values.values(), sid))


def altered(database: Database, sid: str, chance: random.Random) -> dict[str, Any]:
    """Alter one to three columns of a row so that it is another order; return what was written."""
    before = next(row for row in database.signals() if row["sid"] == sid)
    written: dict[str, Any] = {}
    while True:
        columns = chance.sample(list(ALTERATIONS), chance.choice((1, 1, 1, 2, 3)))
        drawn = {name: chance.choice(ALTERATIONS[name]) for name in columns}
        try:
            alter(database, sid, drawn)
        except sqlite3.IntegrityError:  # the schema refuses it even so
            continue
        written |= drawn
        after = next(row for row in database.signals() if row["seq"] == before["seq"])
        # A state alone does not make another order of it.
        if any(after[name] != value for name, value in before.items() if name != "state"):
            return written


def seen(world: World) -> str:
    alarms = world.database.alarms()
    return " ".join(str(row.kind) for row in alarms)


# --- what is not sent -----------------------------------------------------------------------------


def test_no_altered_order_reaches_a_bridge(
    tmp_path: Path, scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    chance, halted = random.Random(27), 0
    count = scaled(700, least=20)
    for number in range(count):
        world = World(tmp_path / str(number))
        close = chance.random() < 0.3
        if close:
            world.queue("T0")
            world.turn()
            world.bridge.say("T0", "FILLED", NOON, price=2000.1, volume=0.1, position="77")
            world.turn()
            world.queue_close("T1", "T0")
        else:
            world.queue()
        before = list(world.bridge.sent)
        drawn = altered(world.database, "T1", chance)
        for _ in range(3):
            world.turn()
        assert world.bridge.sent == before, drawn
        halted += world.switch.engaged() != ""
        if not {"instance", "sid"} & set(drawn):
            # What cannot even be read is set aside with an alarm of its own.
            noticed = world.switch.engaged() or "ODD_SIGNAL" in seen(world)
            assert noticed or drawn.get("state") == "PUBLISHED", drawn
        world.database.close()
    record_property("seen", f"{count} altered orders: 0 sent, {halted} halted the desk")


FAIR: dict[str, Any] = {"entry": 60_000.0, "stop": 59_000.0, "target": 62_000.0, "atr": 500.0}
"""An opening that fills on paper at the next bar, where nobody alters it."""


def lived(database: Database) -> set[str]:
    """Let the next bar fill what is published; return the states of all signals."""
    bar, before = Bar(NOON, 60_000.0, 60_010.0, 59_990.0, 60_000.0), NOON - timedelta(minutes=15)
    database.set_paper_cursor("BTCUSD", before)
    with database.transaction():
        paper.advance(PAPER, Profile(), database, [bar], before, NOON + timedelta(minutes=15))
    return {row["state"] for row in database.signals()}


def test_no_altered_order_fills_on_paper(tmp_path: Path, scaled: Callable[..., int]) -> None:
    chance = random.Random(28)
    for number in range(scaled(300, least=20)):
        database = open_database(tmp_path / str(number))
        database.enqueue_signal(opening("T1", **FAIR))
        published = chance.random() < 0.5
        if published:
            signal_bridge.publish_pending(database, now=NOON, halted=False)
        drawn = altered(database, "T1", chance)
        if not published:
            assert signal_bridge.publish_pending(database, now=NOON, halted=False) == [], drawn
        assert not lived(database) & {"FILLED", "PARTIAL", "CLOSED"}, drawn
        database.close()


def test_a_published_order_of_more_lots_is_not_filled_on_paper(tmp_path: Path) -> None:
    for lots, state in ((0.5, "FILLED"), (0.6, "CANCELLED")):
        database = open_database(tmp_path / str(lots))
        database.enqueue_signal(opening("T1", **FAIR))
        signal_bridge.publish_pending(database, now=NOON, halted=False)
        alter(database, "T1", {"lots": lots})
        assert lived(database) == {state}
        database.close()


@pytest.mark.parametrize("column", [name for name in ALTERATIONS if name != "state"])
def test_the_seal_hears_every_column(tmp_path: Path, column: str) -> None:
    with closed(open_database(tmp_path)) as database:
        database.enqueue_signal(opening("T1", **ROW))
        row = database.signal("T1")
    assert row is not None and not order_seal.altered(row)
    others = [value for value in ALTERATIONS[column] if value != row[column]]
    assert others and all(order_seal.altered({**row, column: value}) for value in others)


def test_a_trigger_that_enlarges_an_order_stops_it(tmp_path: Path) -> None:
    """The very trigger of the fault: it came with a restored backup, while the desk ran."""
    world = World(tmp_path)
    with closed(sqlite3.connect(world.database.path)) as db, db:
        db.execute(
            "CREATE TRIGGER evil AFTER INSERT ON signals WHEN new.kind = 'open' BEGIN "
            "UPDATE signals SET lots = new.lots * 100, stop = stop * 0.5 WHERE sid = new.sid; END"
        )
    world.send()
    world.turn()
    assert world.bridge.sent == []
    assert (world.state(), seen(world)) == ("CANCELLED", "ORDER_ALTERED")
    assert world.database.trading_state() == "HALTED" and world.file.exists()


def test_what_a_bridge_refuses_as_altered_halts_too(tmp_path: Path) -> None:
    """The Advisor found the difference: it came between the outbox and the message."""
    world = World(tmp_path)
    world.send()
    world.bridge.say("T1", "REJECTED", NOON, reason="decision")
    world.turn()
    assert (world.state(), seen(world)) == ("REJECTED", "ORDER_ALTERED")
    assert world.switch.engaged()


def test_a_report_of_a_row_that_cannot_be_judged_stops_no_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.send()
    world.queue_on_paper()
    with world.database.transaction():
        world.database.move_signal("T2", "PUBLISHED")
    alter(world.database, "T1", {"decided_at": "soon"})
    world.bridge.say("T1", "FILLED", NOON, price=2000.1, volume=0.1, position="77")
    world.bridge.say("T2", "FILLED", NOON, price=100.0, volume=0.5, position="78")
    world.turn()
    assert (world.state("T1"), world.state("T2")) == ("PUBLISHED", "FILLED")
    assert [report.sid for report in world.bridge.reports] == ["T1"], "it waits for a person"
    assert seen(world) == "ODD_SIGNAL"


def test_a_trial_on_a_copy_takes_back_the_steps_too(tmp_path: Path) -> None:
    """`torra tick` goes back to a moment at which the order was published and not filled."""
    with closed(open_database(tmp_path)) as database:
        database.enqueue_signal(opening("T1", decided_at=NOON - timedelta(hours=1)))
        database.move_signal("T1", "PUBLISHED")
        database.move_signal("T1", "FILLED", fields={"price": 100.0, "opened_at": NOON})
        database.rewind("BTCUSD", NOON)
        row = database.signal("T1")
        assert row is not None and row["state"] == database.last_state("T1") == "PUBLISHED"
        signal_bridge.publish_pending(database, now=NOON, halted=False)
        assert database.trading_state() == "ACTIVE"


def test_prices_that_the_digits_cannot_say_are_refused_here_without_a_halt(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.wake()
    with pytest.raises(MessageError, match="mend digits of EURUSD"):
        stage.bridge.submit(replace(order(), entry=1.100125, digits=5))
    assert stage.names("inbox") == []


def test_nobody_decides_in_another_s_name(tmp_path: Path) -> None:
    with closed(open_database(tmp_path)) as database:
        with pytest.raises(ValueError, match="nobody decided"):
            database.enqueue_signal(opening("T1", authority="model"))
        with pytest.raises(ValueError, match="nobody decided"):
            database.enqueue_signal({**opening("T1"), "authority": None})


# --- what is sent ---------------------------------------------------------------------------------


def test_what_was_decided_is_never_taken_for_altered(
    tmp_path: Path, scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    """Levels of real specifications, all authorities, openings and closes, up to the message."""
    chance, database = random.Random(29), open_database(tmp_path)
    count = scaled(1000, least=60)
    for number in range(count):
        spec = SYMBOLS[GOLD.symbol] if number % 2 else chance.choice(list(SYMBOLS.values()))
        price = chance.uniform(0.3, 90_000) if spec.digits < 4 else chance.uniform(0.3, 2)
        price = max(price, 200 * spec.spread)
        side: Side = chance.choice(("BUY", "SELL"))
        atr = price * chance.uniform(0.001, 0.01) + spec.spread
        found = order_levels.levels(side, price, atr, spec)
        assert isinstance(found, order_levels.Levels)
        lots = round(chance.randint(1, 500) * spec.lot_step, 8)
        kind: Kind = chance.choice(("open", "close"))
        draft = SignalDraft(
            kind, side, lots, found if kind == "open" else None,
            None if kind == "open" else "TOPENING",
        )  # fmt: skip
        at = NOON + timedelta(seconds=number, microseconds=chance.randrange(10**6))
        authority = chance.choice(order_seal.AUTHORITIES)
        written = signal_bridge.write_signal(
            database, draft, instance=f"I{number}", symbol=GOLD.symbol, timeframe="M15",
            bar_time=NOON, created=at, expires=at + timedelta(seconds=180), authority=authority,
            bridge="torra_files",
        )  # fmt: skip
        row = database.signal(written["sid"])
        assert row is not None and row["authority"] == authority
        assert not order_seal.altered(row)
        profile = Profile(symbols={GOLD.symbol: spec})
        sent = order_of(row, GOLD.model_copy(update={"name": f"I{number}"}), profile)
        assert sent.as_decided
        message = signal_of(sent, channel="main", account=7)
        told = decode(encode(message, "k"), Signal, "k")
        seal = sent.seal_of(told.lots, told.entry, told.sl, told.tp)
        assert seal == told.seal, (row, spec)
    assert iso(NOON) and database.trading_state() == "ACTIVE"
    record_property("seen", f"{count} orders: none taken for altered")
