"""A person moves a stop: towards the price alone, on every bridge, and one R stays what it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import mt5_package
from tests.worlds.hands import SOMEBODY, Market, held_at, live_home, torra
from torra.bridges.protocol import Order
from torra.config import Profile
from torra.errors import ConfigError
from torra.trading import hand_close

STOP, NEARER = 1.09, 1.095


def move(market: Market, price: float = NEARER) -> dict[str, Any]:
    return hand_close.stop(market.hand, SOMEBODY, "EURUSD", price=price).document


def held(market: Market) -> Any:
    return market.database.position("EURUSD")


# --- at a broker, through the Expert Advisor ------------------------------------------------------


def test_the_advisor_moves_the_stop_and_leaves_the_target(market: Market) -> None:
    sid = market.fill()
    told = move(market)
    assert (told["from"], told["stop"], told["opening"]) == (STOP, NEARER, sid)
    market.look(10)
    (there,) = market.stage.ea.positions()
    assert (there["sl"], there["tp"]) == (NEARER, 1.12)
    assert market.state(told["sid"]) == "FILLED"
    assert (held(market).stop, held(market).planned_stop) == (NEARER, STOP)
    market.compare()
    assert market.database.alarms() == [], "the books know where the stop stands"


def test_one_r_stays_what_it_was_planned_to_be(market: Market) -> None:
    sid = market.fill()
    move(market)
    market.look(10)
    market.look(5, bid=1.094)
    market.compare()
    row = market.row(sid)
    assert (row["state"], row["close_reason"]) == ("CLOSED", "STOPPED")
    assert row["stop"] == STOP
    assert row["r_multiple"] == pytest.approx((row["close_price"] - row["price"]) / 0.01, abs=1e-6)


def test_a_move_that_nobody_takes_expires_and_can_be_said_again(market: Market) -> None:
    market.fill()
    first = move(market)["sid"]
    with pytest.raises(ConfigError, match="is being moved already"):
        move(market, 1.096)
    market.look(40, advisor=False, seconds=5.0)
    assert market.state(first) == "EXPIRED"
    market.look(8, seconds=2.5)
    second = move(market)["sid"]
    market.look(10)
    assert second != first
    assert held(market).stop == NEARER


def test_a_close_by_hand_passes_a_move_that_waits(market: Market) -> None:
    sid = market.fill()
    waiting = move(market)["sid"]
    market.close()
    market.compare()
    assert market.state(sid) == "CLOSED"
    assert market.state(waiting) in ("FILLED", "REJECTED", "CANCELLED")
    with pytest.raises(ConfigError, match="holds nothing"):
        move(market)


def test_an_answer_that_got_lost_is_found_in_the_books(market: Market) -> None:
    market.fill()
    waiting = move(market)["sid"]
    market.look(1, advisor=False)
    (there,) = market.stage.ea.positions()
    market.stage.ea.move_levels(there["ticket"], NEARER, there["tp"])
    for name in market.stage.names("inbox"):
        (market.stage.folder / "inbox" / name).unlink()
    market.compare()
    assert market.state(waiting) == "FILLED"


def test_a_stop_that_was_moved_in_the_terminal_is_what_counts(market: Market) -> None:
    """The person trailed it there: Torra must not move it back, by word or by a late order."""
    market.fill()
    (there,) = market.stage.ea.positions()
    market.stage.ea.move_levels(there["ticket"], 1.098, 1.12)
    market.compare()
    assert held(market).stop == 1.098
    assert held(market).planned_stop == STOP
    with pytest.raises(
        ConfigError, match=r"1.095 lies further from the price: the stop is 1.09800"
    ):
        move(market)
    market.stage.ea.move_levels(there["ticket"], 1.0985, 1.12)
    late = move(market, 1.0982)["sid"]
    market.look(5)
    row = market.row(late)
    assert (row["state"], row["detail"]) == ("REJECTED", "side")
    (there,) = market.stage.ea.positions()
    assert there["sl"] == 1.0985
    market.compare()
    assert move(market, 1.0988)["from"] == 1.0985
    market.look(10)
    assert held(market).stop == 1.0988


def test_what_a_person_does_is_no_runaway(market: Market) -> None:
    """However often a person moves a stop, the desk is not halted for its number of messages."""
    market.fill()
    before = market.database.exposure("EURUSD", "M15", as_of=market.clock.now())
    for step in range(1, 6):
        move(market, round(STOP + step * 0.001, 5))
        market.look(10)
    now = market.database.exposure("EURUSD", "M15", as_of=market.clock.now())
    assert before["signals_last_hour"] == now["signals_last_hour"] == 1
    assert held(market).stop == 1.095


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "why"),
    [
        (1.085, r"lies further from the price: the stop is 1.09000, the price 1.10000"),
        (1.09, r"1.09 is no new stop"),
        (1.1, r"lies at or beyond the price"),
        (1.2, r"lies at or beyond the price.*To leave now, use `torra close`"),
        (1.0950003, r"no whole tick of EURUSD; the nearest is 1.09500"),
        (float("nan"), r"nan is no new stop"),
        (float("inf"), r"inf is no new stop"),
    ],
)
def test_a_stop_moves_towards_the_price_alone(market: Market, price: float, why: str) -> None:
    market.fill()
    with pytest.raises(ConfigError, match=why):
        move(market, price)
    assert held(market).stop == STOP


def test_without_a_price_nothing_is_moved(paper: Market) -> None:
    paper.open()
    paper.look()
    paper.bar()
    paper.bar()
    with pytest.raises(ConfigError, match="the price of now is not known"):
        move(paper)


# --- on paper -------------------------------------------------------------------------------------


def opened_on(paper: Market) -> str:
    sid = paper.open()
    paper.look()
    paper.bar()
    paper.bar()
    paper.look()
    paper.quoted()
    return sid


def test_on_paper_the_stop_moves_at_the_open_of_the_next_bar(paper: Market) -> None:
    sid = opened_on(paper)
    told = move(paper)
    paper.look()
    paper.bar()
    assert held(paper).stop == STOP, "that bar began before the word was given"
    paper.bar()
    assert (held(paper).stop, held(paper).planned_stop) == (NEARER, STOP)
    assert paper.state(told["sid"]) == "FILLED"
    paper.bar(1.0945)
    row = paper.row(sid)
    assert (row["close_reason"], row["close_price"]) == ("STOPPED", 1.0945)
    assert row["r_multiple"] == pytest.approx((1.0945 - row["price"]) / 0.01, abs=1e-6)


def test_on_paper_a_stop_that_the_open_has_passed_is_refused_and_the_old_one_holds(
    paper: Market,
) -> None:
    opened_on(paper)
    told = move(paper)
    paper.look()
    paper.bar()
    paper.bar(1.094)
    row = paper.row(told["sid"])
    assert (row["state"], row["detail"]) == ("REJECTED", "retcode")
    assert held(paper).stop == STOP


# --- the other bridges ----------------------------------------------------------------------------


def modify(opening: Order, ticket: str, stop: float, sid: str = "TDDDDDDDDDDDD") -> Order:
    return replace(
        opening, sid=sid, kind="modify", closes=opening.sid, ticket=ticket, entry=0.0, stop=stop,
        target=0.0,
    )  # fmt: skip


@pytest.fixture
def package(tmp_path: Path) -> Iterator[mt5_package.World]:
    made = mt5_package.World(tmp_path)
    yield made
    made.close()


def test_the_package_moves_the_stop_and_keeps_the_target(package: mt5_package.World) -> None:
    ticket = package.opened().position
    package.bridge.submit(modify(mt5_package.order(), ticket, 2341.0))
    report = package.settled()
    assert (report.status, report.position) == ("FILLED", ticket)
    there = package.package.held[int(ticket)]
    assert (there.sl, there.tp) == (2341.0, 2361.2)
    assert package.package.requests[-1]["action"] == 6


# --- as a person types it -------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    home = live_home(tmp_path)
    sid = held_at(home)
    refused = torra(home, "stop", sid, "1.095")
    assert (refused.exit_code, "type stop" in refused.output) == (2, True)
    unknown = torra(home, "stop", sid, "1.095", "--yes")
    assert unknown.exit_code == 2
    assert "the price of now is not known" in unknown.output
    assert torra(home, "stop", sid, "near", "--yes").exit_code == 2


def test_the_stop_of_a_position_that_is_being_closed_does_not_move(market: Market) -> None:
    market.fill()
    market.close()
    with pytest.raises(ConfigError, match="is being closed already"):
        move(market)


def test_a_stop_keeps_the_brokers_distance_from_the_price(market: Market) -> None:
    market.fill()
    profile = Profile()
    spec = profile.symbol("EURUSD").model_copy(update={"stops_level": 100})  # 0.00100
    strict = profile.model_copy(update={"symbols": {**profile.symbols, "EURUSD": spec}})
    market.hand = replace(market.hand, profile=lambda _: strict)
    with pytest.raises(ConfigError, match="lies nearer than 100 points"):
        move(market, 1.0991)
    move(market, 1.0989)
