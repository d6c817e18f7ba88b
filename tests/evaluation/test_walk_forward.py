"""Walk-forward: nothing of what follows a border, or lies in its gaps, reaches the choice."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cases import cases
from torra.evaluation.walk_forward import (
    DAY,
    Results,
    by_day,
    folds,
    merit,
    walk_forward,
    walk_forward_exhibit,
)

HOUR = DAY // 24
BARS = 24 * 100
CLOSES = np.arange(1, BARS + 1) * HOUR
DAYS = np.unique(CLOSES // DAY)


def results(name: str, seed: int, mean: float, trades: int = 400) -> Results:
    rng = np.random.default_rng(seed)
    decided = np.sort(rng.choice(CLOSES[:-30], trades, replace=False))
    known = decided + rng.integers(1, 20, trades) * HOUR
    return Results(name, decided, known, rng.normal(mean, 1.0, trades))


def test_the_borders_leave_both_gaps() -> None:
    found = folds(CLOSES, 3, purge=100, embargo=60)
    assert len(found) == 3
    for number, fold in enumerate(found, 1):
        border = 600 * number * HOUR
        assert fold.train_end == border - 100 * HOUR
        assert fold.test_begin == border + 60 * HOUR
        assert fold.test_end == 600 * (number + 1) * HOUR + (number == 3)


@cases("asked", [(0, 0, 0), (4, -1, 0), (4, 0, 470), (4, 470, 0), (60, 0, 0)], ids=str)
def test_what_cannot_be_cut_is_refused(asked: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"fold|leaves fewer"):
        folds(CLOSES, *asked)


def test_nothing_that_was_not_known_chooses() -> None:
    """Whatever happens after a border, and in the purged bars, changes only what is judged."""
    tried = [results(f"c{seed}", seed, 0.0) for seed in range(6)]
    some = folds(CLOSES, 3, purge=48, embargo=24)
    before = walk_forward(tried, some, DAYS)
    for number, fold in enumerate(some):
        torn = [
            Results(
                one.name, one.decided, one.known, np.where(one.known > fold.train_end, 9, one.r)
            )
            for one in tried
        ]
        after = walk_forward(torn, some, DAYS)
        assert after[number].chosen == before[number].chosen
        assert after[number].before == before[number].before
        assert after[number].after != before[number].after


def test_nothing_between_the_gaps_is_judged() -> None:
    one = results("c", 1, 0.1)
    (fold,) = folds(CLOSES, 1, purge=48, embargo=24)
    (judged,) = walk_forward([one], [fold], DAYS)
    outside = (one.decided < fold.test_begin) & (one.known > fold.train_end)
    assert outside.sum() > 5
    assert len(judged.before) + len(judged.after) == len(one.r) - outside.sum()


def test_the_better_one_is_chosen_and_luck_is_not_paid() -> None:
    tried = [results("good", 1, 0.4), *(results(f"noise{seed}", seed, 0.0) for seed in range(2, 9))]
    judged = walk_forward(tried, folds(CLOSES, 4, 24, 24), DAYS)
    assert [one.chosen for one in judged] == ["good"] * 4
    noise = walk_forward(tried[1:], folds(CLOSES, 4, 24, 24), DAYS)
    shown = walk_forward_exhibit(noise, np.random.default_rng(0))
    assert shown.figures["before"] > 0.05 > shown.figures["low"]
    assert shown.figures["trades"] == sum(len(one.after) for one in noise)


def test_of_equals_the_first_is_chosen() -> None:
    one = results("first", 1, 0.2)
    twin = Results("second", one.decided, one.known, one.r)
    assert walk_forward([one, twin], folds(CLOSES, 1, 0, 0), DAYS)[0].chosen == "first"


def test_the_merit_counts_the_days_without_a_trade() -> None:
    one = Results("c", CLOSES[:25], CLOSES[:25] + HOUR, np.tile([1.0, -0.5, 1.0, 0.0, 0.5], 5))
    upto = 10 * DAY
    daily = by_day(one.known, one.r, DAYS[DAYS <= 10])
    assert len(daily) == 11 and daily.sum() == pytest.approx(one.r.sum())
    assert merit(one, upto, DAYS) == pytest.approx(daily.mean() / daily.std(ddof=1))


def test_too_few_trades_choose_nothing() -> None:
    judged = walk_forward([results("few", 1, 0.5, trades=15)], folds(CLOSES, 2, 0, 0), DAYS)
    assert all(one.chosen is None and one.best_after is not None for one in judged)
    shown = walk_forward_exhibit(judged, np.random.default_rng(0))
    assert not shown.enough and "No fold of 2" in shown.says
    assert walk_forward([], folds(CLOSES, 1, 0, 0), DAYS)[0].best_after is None
