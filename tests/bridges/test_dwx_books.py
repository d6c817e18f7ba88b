"""The books of a DWX Connect account: positions, deals, and which deal closed what."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.doubles.fake_dwx import START
from tests.worlds.dwx_channel import MAGIC, World, closing, order
from torra.errors import BridgeUnavailable


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_books_tell_positions_and_deals_with_their_positions(world: World) -> None:
    foreign = world.fake.hold("EURUSD", "sell", 0.3)
    world.clock.sleep(2)
    first = world.opened()
    world.clock.sleep(60)
    world.fake.end(int(first.position), 2338.4, "[sl 2338.40]", MAGIC, 0.1)
    world.clock.sleep(60)
    second = world.opened(order("TBBBBBBBBBBBB", created=world.clock.now(), seq=2))
    books = world.bridge.books()
    assert books is not None
    assert [(p.ticket, p.side, p.lots, p.magic, p.comment) for p in books.positions] == [
        (second.position, "LONG", 0.1, MAGIC, "TBBBBBBBBBBBB"),
        (str(foreign), "SHORT", 0.3, 0, ""),
    ]
    assert [(d.position, d.entry, d.side, d.reason) for d in books.deals] == [
        (str(foreign), "in", "SELL", ""),
        (first.position, "in", "BUY", ""),
        (first.position, "out", "SELL", "sl"),
        (second.position, "in", "BUY", ""),
    ]
    out = books.deals[2]
    assert out.profit == pytest.approx((2338.4 - 2345.2) * 0.1 * 100 - 0.5)
    assert abs(out.time - START) < timedelta(minutes=3)
    assert books.positions[0].opened_at == books.deals[3].time
    assert books.since == books.at - timedelta(days=7)


@pytest.mark.parametrize("how", ["closed by us", "closed by hand"])
def test_a_deal_under_another_number_is_given_to_the_position_it_closed(
    world: World, how: str
) -> None:
    first = world.opened()
    other = order("TBBBBBBBBBBBB", magic=MAGIC + 1, broker_symbol="EURUSD", digits=5,
                  entry=1.1, stop=1.09, target=1.12, lots=0.2)  # fmt: skip
    with pytest.raises(BridgeUnavailable):
        world.bridge.submit(other)
    world.look(1)
    world.opened(other)
    if how == "closed by us":
        world.bridge.submit(closing(order(), first.position))
        assert world.settled().status == "FILLED"
    else:
        world.fake.end(int(first.position), 2347.0, "", 0, 0.1)
        world.clock.sleep(1)
    books = world.bridge.books()
    assert books is not None
    [out] = [deal for deal in books.deals if deal.entry == "out"]
    assert out.magic == (MAGIC + 1 if how == "closed by us" else 0)
    assert out.position == first.position


def test_what_may_be_two_closes_is_left_open(world: World) -> None:
    first = world.opened()
    world.clock.sleep(60)
    foreign = world.fake.hold("XAUUSD.m", "buy", 0.1)
    world.clock.sleep(60)
    world.fake.end(foreign, 2346.0, "", 0, 0.1)
    world.fake.end(int(first.position), 2346.0, "", 0, 0.1)
    world.clock.sleep(1)
    books = world.bridge.books()
    assert books is not None
    assert [deal.position for deal in books.deals if deal.entry == "out"] == ["", ""]


def test_a_link_that_was_sure_stays_when_another_deal_would_fit_too(world: World) -> None:
    first = world.opened()
    world.fake.end(int(first.position), 2346.0, "", 0, 0.1)
    world.clock.sleep(60)
    for _ in range(2):
        books = world.bridge.books()
        assert books is not None
        assert [deal.position for deal in books.deals[:2]] == [first.position] * 2
        world.fake.end(world.fake.hold("XAUUSD.m", "buy", 0.1), 2346.0, "", 0, 0.1)
        world.start()


def test_deals_are_still_linked_when_the_opening_is_older_than_the_history(world: World) -> None:
    first = world.opened()
    world.clock.moment += timedelta(days=9)
    world.clock.sleep(1)
    world.fake.end(int(first.position), 2361.2, "[tp 2361.20]", MAGIC, 0.1)
    world.clock.sleep(1)
    for _ in range(2):
        books = world.bridge.books()
        assert books is not None
        assert [(d.position, d.reason) for d in books.deals] == [(first.position, "tp")]
    world.clock.sleep(60)
    second = world.opened(order("TBBBBBBBBBBBB", created=world.clock.now(),
                                expires=world.clock.now() + timedelta(seconds=60)))  # fmt: skip
    world.fake.end(int(second.position), 2338.4, "[sl 2338.40]", MAGIC, 0.1)
    world.clock.sleep(1)
    books = world.bridge.books()
    assert books is not None
    assert [d.position for d in books.deals][-2:] == [second.position] * 2


def test_an_advisor_that_does_not_answer_has_no_books(world: World) -> None:
    world.fake.historic_trades = lambda content: None  # type: ignore[method-assign]
    assert world.bridge.books() is None


def test_old_answers_are_not_taken_for_new_ones(world: World) -> None:
    assert world.bridge.books() is not None
    world.fake.historic_trades = lambda content: None  # type: ignore[method-assign]
    assert world.bridge.books() is None
