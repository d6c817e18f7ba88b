"""What a memory is worth: planted knowledge is found, chance is not, and few trades say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.worlds.arm_trades import arm_of, coin, shows_no_gaps
from torra.evaluation.memory_worth import memory_exhibits, memory_worth, scored_trades
from torra.evaluation.observations import ArmObservation


def rng(use: str = "") -> np.random.Generator:
    return np.random.default_rng(len(use))


def told(results: np.ndarray, said: np.ndarray, name: str = "budget") -> ArmObservation:
    """An arm whose memory said so much before each of its trades; the ticks close an hour later."""
    arm = arm_of(results, name)
    ticks = tuple(
        replace(tick, lessons_r=None if np.isnan(value) else float(value))
        for tick, value in zip(arm.ticks, (*said, np.nan), strict=True)
    )
    trades = tuple(
        replace(trade, decided=tick.close_time)
        for trade, tick in zip(arm.trades, ticks, strict=False)
    )
    return replace(arm, ticks=ticks, trades=trades)


def knowing(seed: int, size: int, edge: float) -> ArmObservation:
    """An arm that wins more often where its memory spoke for the trade."""
    draw = np.random.default_rng(seed)
    said = draw.normal(0.0, 0.3, size)
    chance = 1 / 3 + edge * np.sign(said)
    return told(np.where(draw.random(size) < chance, 2.0, -1.0), said)


def test_a_memory_that_knows_is_found() -> None:
    found = memory_worth(knowing(1, 900, 0.15), rng())
    assert found.interval is not None and found.interval.low > 0.5
    bottom, middle, top = (third.r.mean or 0.0 for third in found.thirds)
    assert bottom < middle < top
    assert found.apart == pytest.approx(top - bottom)
    assert found.told == found.trades == 900


@pytest.mark.journey
def test_a_memory_that_knows_nothing_is_rarely_called_one_that_does(
    scaled: Callable[..., int],
) -> None:
    looks = scaled(2000, 50)
    claimed = 0
    for seed in range(looks):
        found = memory_worth(knowing(seed, 240, 0.0), rng())
        assert found.interval is not None
        claimed += not found.interval.low <= 0.0 <= found.interval.high
    # nominally 5 %
    assert claimed / looks < 0.05 + 4 * (0.05 * 0.95 / looks) ** 0.5


def test_what_was_said_is_turned_to_the_side_of_the_trade() -> None:
    arm = told(np.array([1.0, 1.0]), np.array([0.4, 0.4]))
    long, short = arm.trades
    arm = replace(arm, trades=(long, replace(short, side="SELL")))
    assert [one.said for one in scored_trades(arm)] == [0.4, -0.4]


def test_openings_of_which_nothing_was_known_are_left_out() -> None:
    said = np.where(np.arange(90) % 2, 0.1, np.nan)
    found = memory_worth(told(coin(3, 90), said), rng())
    assert (found.told, found.trades) == (45, 90)


def test_few_trades_have_no_interval_and_say_how_many_it_takes() -> None:
    (exhibit,) = memory_exhibits([knowing(4, 12, 0.0)], {}, rng)
    assert exhibit.says == (
        "No edge shown: openings that lessons spoke for did not come to more than the others "
        "beyond chance. Seeing a top third +0.10 R above the bottom one takes about 9,500 "
        "openings; there are 12 openings, which is too few."
    )
    assert not exhibit.enough
    shows_no_gaps(exhibit)
    assert memory_worth(knowing(4, 2, 0.0), rng()).apart is None


def test_a_memory_that_does_no_more_than_lessons_by_lot_is_no_edge() -> None:
    one = knowing(1, 900, 0.15)
    lot = replace(knowing(1, 900, 0.3), name="placebo_memory")
    (alone,) = memory_exhibits([one], {}, rng)
    assert alone.says.startswith("What lessons said for a side went with the result of budget.")
    (beside,) = memory_exhibits([one, lot], {}, rng)
    assert beside.says.startswith("No edge shown")
    assert "With lessons by lot the top third less the bottom one is +" in beside.says
    shows_no_gaps(beside)


def test_a_desk_is_compared_with_its_twin() -> None:
    results = coin(5, 200)
    better = results + rng().normal(0.6, 0.5, 200)
    desk, twin = arm_of(better, "full"), arm_of(results, "full_no_memory")
    (exhibit,) = memory_exhibits([twin, desk], {}, rng)
    assert exhibit.name == "memory-twins"
    assert exhibit.says.startswith("full did better than full_no_memory beyond chance.")
    same = memory_exhibits([replace(desk, name="full_no_memory"), desk], {}, rng)[0]
    assert same.says.startswith("No edge shown: no desk's days differ")
    shows_no_gaps(exhibit)


def test_without_a_memory_there_is_no_table() -> None:
    assert memory_exhibits([arm_of(coin(1, 50)), arm_of(coin(1, 50), "budget")], {}, rng) == ()
