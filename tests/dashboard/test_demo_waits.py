"""What a demo waits for is told: a proposal for a person, and an order for the next bar."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.page_reader import Page
from tests.worlds import demo_orders, desks, stores
from torra.clock import Scaled, Simulated, System, parse
from torra.config import DeskSettings, Instance, Profile, Thresholds
from torra.dashboard.trade.order import DeskOrder, Terms
from torra.dashboard.view.backing import PageContext
from torra.desk.looking_desk import LookingDesk
from torra.desk_lock import DeskLock
from torra.store import ticks as claim_table
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import SignalRow

AT = datetime(2021, 11, 8, 3, 7, tzinfo=UTC)
PAPER = Instance(symbol="BTCUSD", timeframes=("M15", "H1"))


def test_the_page_of_a_proposal_counts_down_once(backing: PageContext) -> None:
    client = demo_orders.visit(backing)
    (row, *_) = [row for row in backing.database.proposals() if row.instance == "BTCUSD"]
    address = f"/approvals/{row.sid}"
    assert client.get(address).text.count("data-countdown") == 1
    client.post(f"/api/v1/proposals/{row.sid}/approve", json={})
    decided = client.get(address).text
    assert decided.count("data-countdown") == 1 and "real time until it is booked" in decided
    assert "data-expiry" not in decided and "Expires in" not in decided


def fills(backing: PageContext, state: str, instance: Instance, clock: System) -> tuple[str, float]:
    class Desk:
        active = True

    Desk.clock = clock  # type: ignore[attr-defined]
    found: Any = Desk()
    signal = SignalRow(state=state, decided_at="2021-11-08T03:07:00Z")
    known = replace(backing, desk=found)
    with demo_orders.open_pages(known).test_request_context():
        order = DeskOrder(None, signal)
        order.__dict__["terms"] = Terms(instance)
        return order.booked_in


def test_an_order_on_paper_says_when_it_fills(backing: PageContext) -> None:
    said, left = fills(backing, "PUBLISHED", PAPER, Simulated(AT))
    assert "at the open of the M15 bar of 2021-11-08 03:15 UTC" in said
    assert said.endswith("is booked as that bar closes") and left == 23 * 60
    assert 7 < fills(backing, "PENDING", PAPER, Scaled(AT, 180.0))[1] < 8


@pytest.mark.parametrize("state", ["FILLED", "CLOSED", "REJECTED", "EXPIRED"])
def test_one_that_has_ended_says_nothing(backing: PageContext, state: str) -> None:
    assert fills(backing, state, PAPER, Simulated(AT)) == ("", 0.0)


def test_a_broker_says_so_himself(backing: PageContext) -> None:
    sent = PAPER.model_copy(update={"bridge": "torra_files"})
    assert fills(backing, "PUBLISHED", sent, Simulated(AT)) == ("", 0.0)


def test_the_page_of_an_approved_order_says_it(backing: PageContext) -> None:
    client = demo_orders.visit(backing)
    rows = [row for row in backing.database.proposals() if row.instance == "BTCUSD"]
    address = f"/approvals/{rows[0].sid}"
    before = client.get(f"/api/v1{address}").json["version"]
    assert "On paper it fills" not in client.get(address).text
    client.post(f"/api/v1/proposals/{rows[0].sid}/approve", json={})
    words = Page(client.get(address).text).text
    assert "On paper it fills at the open of the M15 bar of" in words
    # the page is loaded anew as its order goes on
    sent = client.get(f"/api/v1{address}").json["version"]
    assert sent != before and sent.endswith(("PENDING", "WAITING"))


class Fast(Simulated):
    """The demo's clock, which the test sets."""

    accelerated = True
    rate = 180.0  # type: ignore[assignment]


@pytest.mark.journey
def test_a_demo_proposes_once_a_stream_while_its_bars_go_on_closing(tmp_path: Path) -> None:
    profile = Profile(execution="approve", thresholds=Thresholds(buy=0.02, sell=0.02))
    desk = desks.open_desk(
        tmp_path, profile=profile, make_clock=lambda stood: Fast(stood or desks.START)
    )
    desks.open_for_work(desk)
    begun = desk.clock.now()
    while not (waiting := execution_table.waiting(desk.database)):
        desks.step(desk)
    assert desk.clock.now() < begun + timedelta(hours=12)
    while desk.clock.now() < begun + timedelta(hours=18):
        desks.step(desk)
        rows = desk.database.proposals("WAITING")
        alive = [row.timeframe for row in rows if parse(row.expires) > desk.clock.now()]
        assert len(alive) == len(set(alive))
    streams = Counter(row.timeframe for row in desk.database.proposals(None))
    assert waiting and 2 <= max(streams.values()) <= 4, "one in six hours"
    desk.close()


def test_who_only_looks_has_the_desks_clock_at_its_pace(tmp_path: Path) -> None:
    with closing(stores.open_database(tmp_path, System().real_now)) as database:
        lock = DeskLock(tmp_path)
        assert lock.acquire()
        claim_table.begin_run(database, "run 77", 77)
        database.show_life(AT)
        clock = LookingDesk(tmp_path, DeskSettings(instances=(desks.BTC,)), database).clock
        assert clock.rate == 180.0 and abs(clock.now() - AT) < timedelta(minutes=1)
