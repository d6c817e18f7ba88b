"""A seat's calls count when their time has closed, by the regime in which they were made."""

from __future__ import annotations

import json
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from agent_config import EXPERTS
from agents.contracts import AgentReport
from agents.debate import swarm as expected_value
from tests.cases import cases
from tests.worlds.observed import START
from torra.desk.memory.experts_past import calls_of, chance_of
from torra.evaluation.standing.past_calls import (
    LEAST,
    SEATS,
    HitRates,
    PastTick,
    SeatCall,
    WinRateByBin,
    bin_of,
)
from torra.market.regime import REGIMES

QUARTER = timedelta(minutes=15)
HORIZONS = ("bars_4", "bars_16", "session", "days", "")


def ticks_of(
    prices: Sequence[float], said: dict[int, SeatCall], regime: str = "range"
) -> list[PastTick]:
    """Return quarters of an hour from midnight on, with a call on some of them."""
    return [
        PastTick(START + QUARTER * (row + 1), price, regime, (said[row],) if row in said else ())
        for row, price in enumerate(prices)
    ]


def book_of(ticks: Sequence[PastTick]) -> HitRates:
    book = HitRates("M15")
    for tick in ticks:
        book.take(tick)
    return book


def hit(prices: Sequence[float], call: SeatCall) -> tuple[int, int]:
    return tuple(book_of(ticks_of(prices, {0: call})).hits(call.agent, "range"))  # type: ignore[return-value]


@cases(
    ("horizon", "row"),
    [("bars_4", 4), ("bars_16", 16), ("session", 95), ("days", 96), ("", 16), ("a year", 16)],
)
def test_a_call_is_judged_by_the_close_that_ends_its_time(horizon: str, row: int) -> None:
    prices = [100.0] * 200
    for price, up in ((101.0, 1), (99.0, 0)):
        prices[row] = price
        assert hit(prices, SeatCall("macro", 1, horizon)) == (1, up)
        assert hit(prices, SeatCall("macro", -1, horizon)) == (1, 1 - up)
        # Known with the close that ends it, or with the first of the next day, and not before.
        assert hit(prices[:row], SeatCall("macro", 1, horizon)) == (0, 0)
        assert hit(prices[: row + 1], SeatCall("macro", 1, horizon)) == (1, up)


def test_no_side_a_close_that_stands_and_a_stranger_are_no_calls() -> None:
    moved = [100.0, *[101.0] * 200]
    assert hit(moved, SeatCall("macro", 0, "bars_4")) == (0, 0)
    assert hit([100.0] * 200, SeatCall("macro", 1, "bars_4")) == (0, 0)
    assert hit(moved, SeatCall("technical", 1, "bars_4")) == (0, 0)


def test_a_share_is_told_from_fifty_calls_on() -> None:
    prices = [float(row) for row in range(LEAST + 4)]
    said = {row: SeatCall("judge", 1 if row % 5 else -1, "bars_4") for row in range(LEAST)}
    ticks = ticks_of(prices, said)
    before, after = book_of(ticks[:-1]), book_of(ticks)
    assert before.hits("judge", "range").calls == LEAST - 1
    assert before.hit_shares("range") == {f"{name}_hit_share": None for name in SEATS}
    assert after.hit_shares("range") == {
        f"{name}_hit_share": 0.8 if name == "judge" else None for name in SEATS
    }
    assert set(after.hit_shares("quiet").values()) == {None}


# --- random histories ---------------------------------------------------------------------------


def history(chance: random.Random, count: int) -> list[PastTick]:
    """Return ticks of a stream with gaps, nights and weekends, closes that stand, calls of all."""
    moment, price, found = START + QUARTER * chance.randrange(90), 100.0, []
    for _ in range(count):
        gap = chance.choices((1, 2, 30, 260), (90, 6, 3, 1))[0]
        moment, price = moment + QUARTER * gap, price + chance.choice((-1.0, 0.0, 1.0, 0.5))
        calls = tuple(
            SeatCall(name, side, chance.choice(HORIZONS))
            for name in SEATS
            if chance.random() < 0.6 and (side := chance.choice((-1, 0, 1))) is not None
        )
        regime = chance.choice(("range", "quiet"))
        found.append(PastTick(moment, price, regime, calls))
    return found


def ends(times: Sequence[datetime], row: int, horizon: str) -> int | None:
    """Return the row that ends a call's time as known after the last of `times`; None for none."""
    if horizon == "days":
        end = bisect_left(times, times[row] + timedelta(days=1))
    elif horizon == "session":
        night = times[row].replace(hour=0, minute=0) + timedelta(days=1)
        end = bisect_right(times, night) - 1
        if times[-1] < night or end == row:
            return None
    else:
        end = row + (4 if horizon == "bars_4" else 16)
    return end if end < len(times) else None


def counted(ticks: Sequence[PastTick], agent: str, regime: str) -> tuple[int, int]:
    """Return calls and hits as a reader of the whole list counts them, tick by tick."""
    times = [tick.close_time for tick in ticks]
    calls = hits = 0
    for row, tick in enumerate(ticks):
        for call in tick.calls:
            end = ends(times, row, call.horizon) if call.agent == agent else None
            if tick.regime == regime and call.side and end is not None:
                moved = ticks[end].close - tick.close
                calls += moved != 0.0
                hits += moved * call.side > 0.0
    return calls, hits


def test_hits_equal_those_of_an_oracle_at_every_close(scaled: Callable[..., int]) -> None:
    for seed in range(scaled(200, least=3)):
        chance = random.Random(seed)
        ticks, book = history(chance, 220), HitRates("M15")
        for row, tick in enumerate(ticks):
            book.take(tick)
            if row % 20 == 19:
                for agent in SEATS:
                    for regime in ("range", "quiet"):
                        told = counted(ticks[: row + 1], agent, regime)
                        assert tuple(book.hits(agent, regime)) == told, (seed, row, agent)


def test_what_comes_later_changes_nothing_of_what_was_told() -> None:
    ticks = history(random.Random(5), 300)
    for row in range(40, 300, 20):
        planted = [
            replace(tick, close=tick.close + 50.0, calls=(SeatCall("macro", 1, "bars_4"),))
            if number > row
            else tick
            for number, tick in enumerate(ticks)
        ]
        seen = []
        for world in (ticks, planted):
            book = book_of(world[:row])
            book.reach(world[row].close_time, world[row].close)
            seen.append([book.hits(name, "range") for name in SEATS])
        assert seen[0] == seen[1]
    # The plant is one that would be seen: after it, it is.
    assert book_of(planted).as_json() != book_of(ticks).as_json()


def test_a_book_goes_on_from_its_json_wherever_it_was_cut() -> None:
    ticks = history(random.Random(6), 240)
    whole = book_of(ticks)
    for cut in (0, 1, 100, 239):
        again = HitRates.of(json.loads(json.dumps(book_of(ticks[:cut]).as_json())))
        for tick in ticks[cut:]:
            again.take(tick)
        assert again.as_json() == whole.as_json()


def test_an_older_tick_and_a_close_that_comes_twice_count_once() -> None:
    ticks = history(random.Random(7), 120)
    plain, odd = book_of(ticks), HitRates("M15")
    for before, tick in pairwise([ticks[0], *ticks]):
        assert odd.reach(tick.close_time, tick.close)
        odd.take(tick)
        if before is not tick and before.close_time < tick.close_time:
            assert not odd.reach(before.close_time, 1.0)
            odd.take(before)
    assert odd.as_json() == plain.as_json()


# --- what the judge said -------------------------------------------------------------------------


def test_chances_equal_an_oracle_and_know_nothing_of_later_ends() -> None:
    chance, chances = random.Random(8), WinRateByBin()
    trades = [
        (START + QUARTER * chance.randrange(5000), chance.random(), chance.random() < 0.4)
        for _ in range(1500)
    ]
    for known_at, said, won in trades:
        chances.take(known_at, said, won=won)
    for as_of in (START, START + QUARTER * 2000, START + QUARTER * 4000, START + QUARTER * 9000):
        told = chances.win_shares(as_of)
        for k in range(10):
            known = [won for at, said, won in trades if at < as_of and int(said * 10) == k]
            share = sum(known) / len(known) if len(known) >= LEAST else None
            assert told[f"win_share_{k}"] == (
                None if share is None else pytest.approx(share, abs=1e-4)
            )
        again = WinRateByBin.of(json.loads(json.dumps(chances.as_json())))
        assert again.win_shares(as_of) == told
    assert sum(one is not None for one in told.values()) == 10


def test_a_chance_falls_into_the_bin_in_which_the_judge_looks_for_it() -> None:
    chance = random.Random(9)
    for said in [*(k / 10 for k in range(11)), *(chance.random() for _ in range(500))]:
        assert bin_of(said) == expected_value.bin_of(said)
    assert (bin_of(0.0), bin_of(0.3), bin_of(1.0)) == (0, 3, 9)


# --- what a report says --------------------------------------------------------------------------


def test_the_call_of_a_report_is_its_winner_its_numbers_or_its_bias() -> None:
    up = dict.fromkeys(("price_action", "key_levels", "structure"), 0.2)
    reports = [
        AgentReport("regime_reader", bias="DOWN", regime="range"),
        AgentReport("liquidity", up, confidence="high", horizon="session"),
        AgentReport("microstructure", confidence="high", bias="NEUTRAL"),
        AgentReport("macro", up, bias="DOWN", confidence="low", flags=("ungrounded",)),
        AgentReport.abstain("geometry", "no bars"),
        AgentReport("judge", winner="SHORT", win_share=0.44, horizon="bars_4"),
        AgentReport("technical", up),
    ]
    calls = {call.agent: call for call in calls_of(reports)}
    assert {name: call.side for name, call in calls.items()} == {
        "regime_reader": -1, "liquidity": 1, "macro": 1, "judge": -1,
    }  # fmt: skip
    assert calls["judge"].horizon == "bars_4"
    assert (chance_of(reports, "SHORT"), chance_of(reports, "LONG")) == (0.44, None)


def test_every_seat_and_regime_of_a_book_is_one_of_the_desk() -> None:
    assert set(EXPERTS) < set(SEATS)
    assert set(REGIMES) == {"trend_up", "trend_down", "range", "volatile", "quiet"}
