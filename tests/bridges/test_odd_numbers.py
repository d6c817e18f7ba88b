"""Numbers that no broker can mean are refused at the door; what a real broker reports passes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

import signal_bridge
from tests.bridges.test_messages import ACK
from tests.bridges.test_signal_bridge import CLOSE, LIFE, OPEN, Memory, T, send, write
from tests.cases import cases
from tests.doubles.scripted_bridge import ScriptedBridge
from tests.worlds.channels import KEY
from torra.bridges.plausible import (
    LATEST_FILL,
    MOST_LOTS,
    PRICE_FACTOR,
    books_fault,
)
from torra.bridges.protocol import BrokerBooks, BrokerDeal, BrokerPosition
from torra.bridges.torra.messages import Ack, MessageError, decode, encode, seal
from torra.errors import LONGEST_TEXT

POSITION = BrokerPosition(
    "77", "XAUUSD.m", "LONG", 0.1, 2000.1, 1990.0, 2020.0, 220_000_001, "T1", -3.5, T
)
DEAL = BrokerDeal(
    "900", "77", "XAUUSD.m", "out", "SELL", 0.1, 1990.0, -101.5, 220_000_001, "[sl]", T, "sl"
)


# --- an Expert Advisor's answers ------------------------------------------------------------------


def signed(name: str, value: str) -> bytes:
    """An ack whose signature is right, whatever stands in it."""
    body = encode(ACK, KEY).decode("ascii").partition(',"mac"')[0]
    return seal(re.sub(rf'"{name}":[^,]+', f'"{name}":{value}', body), KEY)


@cases(
    ("name", "told"),
    [
        ("volume", "-5.00"), ("volume", "9999999999.00"), ("price", "-1.10013"), ("ticket", "-10"),
        ("price", "1000000000001.0"),
        ("deal", "-11"), ("position", "-10"), ("retcode", "-1"), ("seq", "-1042"),
        ("bid", "-1.10000"), ("ask", "-0.00001"), ("ask", "1000000000001.0"),
        ("reason", f'"{"x" * (LONGEST_TEXT + 1)}"'),
    ],
)  # fmt: skip
def test_an_answer_with_a_number_that_cannot_be_is_none(name: str, told: str) -> None:
    with pytest.raises(MessageError, match=name) as refused:
        decode(signed(name, told), Ack, KEY)
    assert refused.value.reason == "schema"


@pytest.mark.parametrize(
    "real",
    [
        {"status": "REJECTED", "price": Decimal(0), "volume": Decimal(0), "retcode": 10018},
        {"status": "PARTIAL", "volume": Decimal("0.01")},
        {"bid": Decimal("-37.63"), "ask": Decimal("-37.60"), "status": "REJECTED"},
        {"server_time": 0},
    ],
)
def test_what_a_real_broker_answers_is_read(real: dict[str, Any]) -> None:
    told = replace(ACK, **real)
    assert decode(encode(told, KEY), Ack, KEY) == told


# --- any bridge's books ---------------------------------------------------------------------------


def books(*rows: Any) -> BrokerBooks:
    positions = tuple(row for row in rows if isinstance(row, BrokerPosition))
    deals = tuple(row for row in rows if isinstance(row, BrokerDeal))
    return BrokerBooks(positions, deals, T + LIFE, T - timedelta(days=7))


@cases(
    ("row", "said"),
    [
        (replace(POSITION, lots=-5.0), "position 77: lots is -5.0"),
        (replace(POSITION, lots=0.0), "position 77: lots is 0.0"),
        (replace(POSITION, lots=2.0 * MOST_LOTS), "position 77: lots is 2"),
        (replace(POSITION, entry=0.0), "position 77: entry is 0.0"),
        (replace(POSITION, stop=-1.0), "position 77: stop is -1.0"),
        (replace(POSITION, target=-1.0), "position 77: target is -1.0"),
        (replace(POSITION, broker_symbol="S" * 10_000), "position 77: broker_symbol is 'SSS"),
        (replace(POSITION, lots=math.nan), "position 77: lots is nan"),
        (replace(POSITION, lots=cast(Any, "0.1")), "position 77: lots is '0.1'"),
        (replace(POSITION, entry=math.inf), "position 77: entry is inf"),
        (replace(POSITION, stop=None), "position 77: stop is None"),
        (replace(POSITION, profit=math.nan), "position 77: profit is nan"),
        (replace(POSITION, side=cast(Any, "UP")), "position 77: side is 'UP'"),
        (replace(POSITION, magic=True), "position 77: magic is True"),
        (replace(POSITION, comment=cast(Any, 7)), "position 77: comment is 7"),
        (replace(POSITION, opened_at=T + timedelta(days=2)), "position 77: opened_at is 2"),
        (replace(POSITION, opened_at=T.replace(tzinfo=None)), "position 77: opened_at is 2"),
        (replace(DEAL, lots=0.0), "deal 900: lots is 0.0"),
        (replace(DEAL, price=-1.0), "deal 900: price is -1.0"),
        (replace(DEAL, entry=cast(Any, "inout")), "deal 900: entry is 'inout'"),
        (replace(DEAL, time=None), "deal 900: time is None"),
    ],
)  # fmt: skip
def test_books_with_a_row_that_cannot_be_are_told(row: Any, said: str) -> None:
    assert books_fault(books(POSITION, row, DEAL), T + LIFE).startswith(said)


def test_books_with_a_text_without_end_are_told_in_500_characters() -> None:
    endless = replace(POSITION, comment="x" * 1_000_000)
    said = books_fault(books(endless), T + LIFE)
    assert said.startswith("position 77: comment is 'xxx") and len(said) <= LONGEST_TEXT


def test_real_books_are_no_fault() -> None:
    loose = replace(DEAL, deal="901", position="", profit=0.0, comment="", reason="")
    bare = replace(POSITION, ticket="78", stop=0.0, target=0.0, magic=0)
    hours_ahead = replace(POSITION, ticket="79", opened_at=T + timedelta(hours=10))
    assert books_fault(books(POSITION, bare, hours_ahead, DEAL, loose), T + LIFE) == ""


# --- reports against their order ------------------------------------------------------------------


def reported(draft: Any = OPEN, status: str = "FILLED", **more: Any) -> tuple[Memory, str]:
    """The store after a report of a signal that was sent."""
    store, wire = Memory(), ScriptedBridge()
    rows = write(store, OPEN, *([draft] if draft is not OPEN else []))
    send(store, wire)
    told = {"price": 2000.5, "volume": 0.1, "position": "77", "at": T, **more}
    wire.say(rows[-1]["sid"], status, told.pop("at"), **told)
    signal_bridge.take_reports(store, wire, now=T + LIFE)
    assert wire.reports == [], "it is settled: it is not told for ever"
    return store, str(rows[-1]["sid"])


@cases("status", ["FILLED", "PARTIAL"])
@cases(
    ("odd", "said"),
    [
        ({"volume": -5.0}, "volume is -5.0"),
        ({"volume": math.nan}, "volume is nan"),
        ({"volume": 0.2}, "0.2 lots were filled, and 0.1 were ordered"),
        ({"volume": None}, "volume is None"),
        ({"price": -2000.5}, "price is -2000.5"),
        ({"price": 2000.0 * PRICE_FACTOR * 1.01}, "and 2000.0 was the price of the decision"),
        ({"price": 2000.0 / PRICE_FACTOR / 1.01}, "and 2000.0 was the price of the decision"),
        ({"price": "2000"}, "price is '2000'"),
        ({"at": T + LATEST_FILL * 2}, "at is 20"),
        ({"at": T - timedelta(days=2)}, "at is 20"),
    ],
)
def test_a_report_that_cannot_be_books_nothing(odd: dict[str, Any], said: str, status: str) -> None:
    store, sid = reported(status=status, **odd)
    row = store.rows[sid]
    assert row["state"] == "UNKNOWN", "the books decide"
    assert row["price"] is row["filled_lots"] is row["ticket"] is None
    kind, detail = store._alarms[f"UNKNOWN {sid}"].values()
    assert kind == "ODD_REPORT" and said in detail and sid in detail


@pytest.mark.parametrize(
    "real",
    [
        {"volume": 0.04, "status": "PARTIAL"},
        {"price": 2000.0 * 0.7},
        {"volume": 0.3, "adopted": True},
        {"at": T + timedelta(hours=7)},
    ],
    ids=["a part", "a crash", "a netting position", "a misjudged clock"],
)
def test_a_report_of_a_real_broker_is_booked(real: dict[str, Any]) -> None:
    store, sid = reported(**real)
    assert store.rows[sid]["state"] in ("FILLED", "PARTIAL")
    assert store._alarms == {}


def test_numbers_that_are_not_known_are_not_booked() -> None:
    store, sid = reported(price=0.0, volume=0.0)
    row = store.rows[sid]
    assert row["state"] == "FILLED"
    assert row["price"] is row["filled_lots"] is None


def test_a_refusal_needs_no_numbers() -> None:
    store, sid = reported(status="REJECTED", price=0.0, volume=0.0, position="", reason="retcode")
    assert store.rows[sid]["state"] == "REJECTED" and store._alarms == {}


def test_a_close_is_held_against_its_lots() -> None:
    store, sid = reported(CLOSE, price=2001.0, volume=0.25)
    assert store.rows[sid]["state"] == "UNKNOWN"
    store, sid = reported(CLOSE, price=2001.0, volume=0.2)
    assert store.rows[sid]["state"] == "FILLED"
