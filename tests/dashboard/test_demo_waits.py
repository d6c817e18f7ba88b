"""What a demo waits for is told: its clock stands for a proposal, and an order for the next bar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.page_reader import Page
from tests.worlds import demo_orders
from torra.clock import Scaled, Simulated, System
from torra.config import Instance
from torra.dashboard.cells import symbol_cells
from torra.dashboard.trade import approvals
from torra.dashboard.view.backing import Backing
from torra.dashboard.view.desk_values import DeskStatus
from torra.dashboard.view.desk_view import DatabaseView
from torra.store.trade.rows import SignalRow

AT = datetime(2021, 11, 8, 3, 7, tzinfo=UTC)
PAPER = Instance(symbol="BTCUSD", timeframes=("M15", "H1"))


@pytest.fixture
def backing(tmp_path: Path) -> Iterator[Backing]:
    made = demo_orders.build(tmp_path / "home")
    yield made
    made.database.close()


def desk_on(backing: Backing, clock: System) -> DeskStatus:
    class Desk:
        active = True
        setups = backing.desk.setups

    Desk.clock = clock  # type: ignore[attr-defined]
    found: Any = Desk()
    return DatabaseView(backing.database, backing.settings, found).desk()


def test_a_clock_that_stands_is_told_with_its_longest_wait(backing: Backing) -> None:
    clock = Scaled(AT, 180.0)
    assert desk_on(backing, clock).stands == 0
    clock.hold(90.0)
    told = desk_on(backing, clock)
    assert 85 <= int(told.stands) <= 90
    assert not symbol_cells.strip(told)["banner.stands"].get("hidden")
    clock.go_on()
    assert symbol_cells.strip(desk_on(backing, clock))["banner.stands"]["hidden"]


def test_with_the_last_decision_the_clock_is_told_to_go_on(backing: Backing) -> None:
    clock = Scaled(AT, 180.0)
    clock.hold(90.0)
    waiting = [row.sid for row in backing.database.proposals()]
    assert waiting
    for sid in waiting:
        assert desk_on(backing, clock).stands
        backing.database.decide_proposal(sid, "REJECTED", "a test")
    # the desk itself has not looked yet
    assert clock.held > 0
    assert desk_on(backing, clock).stands == 0


def test_the_page_of_a_proposal_counts_down_once(backing: Backing) -> None:
    client = demo_orders.open_pages(backing).test_client()
    (row, *_) = [row for row in backing.database.proposals() if row.instance == "BTCUSD"]
    address = f"/approvals/{row.sid}"
    assert client.get(address).text.count("data-countdown") == 1
    client.post(f"/api/v1/proposals/{row.sid}/approve", json={})
    decided = client.get(address).text
    assert decided.count("data-countdown") == 1 and 'data-live="p.booked"' in decided
    assert "data-expiry" not in decided and "Expires in" not in decided


def test_a_desk_in_real_time_never_stands(backing: Backing) -> None:
    clock = System()
    clock.hold(90.0)
    assert desk_on(backing, clock).stands == 0
    assert symbol_cells.strip(DeskStatus())["banner.stands"]["hidden"]


def test_every_page_says_that_the_clock_stands(backing: Backing) -> None:
    page = demo_orders.open_pages(backing).test_client().get("/symbols").text
    assert "The demo's clock stands still" in page
    assert 'data-live="banner.stands" hidden' in page


def fills(backing: Backing, state: str, instance: Instance, clock: System) -> tuple[str, float]:
    class Desk:
        active = True

    Desk.clock = clock  # type: ignore[attr-defined]
    found: Any = Desk()
    signal = SignalRow(state=state, decided_at="2021-11-08T03:07:00Z")
    known = replace(backing, desk=found)
    with demo_orders.open_pages(known).test_request_context():
        return approvals._fills(signal, instance)


def test_an_order_on_paper_says_when_it_fills(backing: Backing) -> None:
    said, left = fills(backing, "PUBLISHED", PAPER, Simulated(AT))
    assert "at the open of the M15 bar of 2021-11-08 03:15 UTC" in said
    assert said.endswith("is booked as that bar closes") and left == 23 * 60
    assert 7 < fills(backing, "PENDING", PAPER, Scaled(AT, 180.0))[1] < 8
    # it stood for the proposal, and goes on with the desk's next look
    held = Scaled(AT, 180.0)
    held.hold(110.0)
    assert 7 < fills(backing, "PENDING", PAPER, held)[1] < 8


@pytest.mark.parametrize("state", ["FILLED", "CLOSED", "REJECTED", "EXPIRED"])
def test_one_that_has_ended_says_nothing(backing: Backing, state: str) -> None:
    assert fills(backing, state, PAPER, Simulated(AT)) == ("", 0.0)


def test_a_broker_says_so_himself(backing: Backing) -> None:
    sent = PAPER.model_copy(update={"bridge": "torra_files"})
    assert fills(backing, "PUBLISHED", sent, Simulated(AT)) == ("", 0.0)


def test_the_page_of_an_approved_order_says_it(backing: Backing) -> None:
    client = demo_orders.open_pages(backing).test_client()
    rows = [row for row in backing.database.proposals() if row.instance == "BTCUSD"]
    address = f"/approvals/{rows[0].sid}"
    before = client.get(f"/api/v1{address}").get_json()["version"]
    assert "On paper it fills" not in client.get(address).text
    client.post(f"/api/v1/proposals/{rows[0].sid}/approve", json={})
    words = Page(client.get(address).text).text
    assert "On paper it fills at the open of the M15 bar of" in words
    # the page is loaded anew as its order goes on
    sent = client.get(f"/api/v1{address}").get_json()["version"]
    assert sent != before and sent.endswith(("PENDING", "WAITING"))
