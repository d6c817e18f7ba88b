"""What experts have earned: a Shapley value over their coalitions, shrunk towards the table."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import permutations
from math import fsum

import pytest

from agent_config import EXPERTS, HIERARCHY, TRUST, TRUST_FLOOR, tabled_trust
from tests.worlds.observed import START
from torra.evaluation.standing.earned_trust import (
    GROUPS,
    PRIOR_TICKS,
    STEPS,
    earned,
    forecasts,
    worths,
)
from torra.evaluation.standing.past_calls import Call, CallBook, PastTick
from torra.market.regime import REGIMES

WHOLE = frozenset(EXPERTS)


def drawn(chance: random.Random, silent: str = "") -> list[tuple[tuple[float, ...], float]]:
    """Return stances of the experts and the move that followed, for some ticks."""
    return [
        (
            tuple(
                0.0 if name == silent or chance.random() < 0.3 else chance.uniform(-0.5, 0.5)
                for name in EXPERTS
            ),
            chance.uniform(-3.0, 3.0),
        )
        for _ in range(40)
    ]


def sums_of(ticks: Sequence[tuple[tuple[float, ...], float]], regime: str = "range") -> list[int]:
    sums = [0] * len(GROUPS)
    for stances, move in ticks:
        for number, way in enumerate(forecasts(stances, regime, "M15")):
            sums[number] += way * round(move * STEPS)
    return sums


def test_the_shares_add_up_to_the_worth_of_all_four(scaled: Callable[..., int]) -> None:
    for seed in range(scaled(1000, least=20)):
        sums = sums_of(drawn(random.Random(seed)))
        whole = sums[GROUPS.index(WHOLE)] / STEPS / 40
        assert fsum(worths(sums, 40).values()) == pytest.approx(whole, abs=1e-9)


def test_a_share_is_the_mean_of_what_one_adds_over_all_orders() -> None:
    sums = sums_of(drawn(random.Random(3)))
    value = {group: total / STEPS / 40 for group, total in zip(GROUPS, sums, strict=True)}
    for name in EXPERTS:
        added = []
        for order in permutations(EXPERTS):
            before = frozenset(order[: order.index(name)])
            added.append(value[before | {name}] - value[before])
        assert worths(sums, 40)[name] == pytest.approx(fsum(added) / 24, abs=1e-9)


def test_an_expert_that_never_speaks_earns_the_floor(scaled: Callable[..., int]) -> None:
    for seed in range(scaled(1000, least=20)):
        sums = sums_of(drawn(random.Random(seed), silent="macro"))
        assert worths(sums, 40)["macro"] == 0.0
        far = [total * 10_000 for total in sums]
        assert earned(far, 400_000, "range", "M15")["macro"] == pytest.approx(TRUST_FLOOR, abs=2e-3)


def test_the_order_in_which_experts_speak_changes_nothing() -> None:
    chance, moment, ticks = random.Random(4), START, []
    price = 100.0
    for _ in range(400):
        moment, price = moment + timedelta(minutes=15), price + chance.uniform(-1.0, 1.0)
        calls = [Call(name, 1, "bars_4", chance.uniform(-0.5, 0.5)) for name in EXPERTS]
        ticks.append((moment, price, calls))
    told = set()
    for seed in range(6):
        book, shuffle = CallBook("M15"), random.Random(seed)
        for moment, price, calls in ticks:
            mixed = shuffle.sample(calls, len(calls))
            book.take(PastTick(moment, price, 1.0, "range", tuple(mixed)))
        told.add(tuple(sorted(book.trust("range").items())))
    assert len(told) == 1


def test_who_was_right_earns_more_than_who_was_wrong() -> None:
    def trust(ticks: int) -> dict[str, float]:
        sums = [total * ticks for total in sums_of([((0.3, -0.3, 0.0, 0.01), 1.0)])]
        return earned(sums, ticks, "range", "M15")

    prior = tabled_trust("M15", "range")
    little, much = trust(60), trust(60_000)
    assert much["liquidity"] == pytest.approx(1.0, abs=0.01)
    assert much["microstructure"] == pytest.approx(TRUST_FLOOR, abs=0.01)
    for name in EXPERTS:
        assert abs(little[name] - prior[name]) < abs(much[name] - prior[name]) or (
            much[name] == pytest.approx(prior[name], abs=1e-2)
        )
    # 60 ticks against 600 of the table: a tenth as much.
    share = (PRIOR_TICKS * prior["liquidity"] + 60 * 1.0) / (PRIOR_TICKS + 60)
    assert little["liquidity"] == pytest.approx(share, abs=1e-4)


def test_where_nobody_was_worth_anything_all_earn_alike() -> None:
    sums = [total * 600_000 for total in sums_of([((0.3, 0.3, 0.3, 0.3), -1.0)])]
    told = earned(sums, 600_000, "quiet", "H4")
    assert all(value == pytest.approx(TRUST_FLOOR, abs=1e-3) for value in told.values())


def test_a_book_counts_a_move_of_sixteen_ticks_in_atr() -> None:
    def book(closes: Sequence[float], atr: float = 2.0) -> CallBook:
        told = CallBook("M15")
        for row, close in enumerate(closes):
            calls = (Call("macro", 1, "bars_4", 0.2),) if row == 0 else ()
            moment = START + timedelta(minutes=15 * row)
            told.take(PastTick(moment, close, atr, "quiet", calls))
        return told

    closes = [100.0] * 16
    assert book(closes).counted("quiet") == 0
    assert set(book(closes).trust("quiet").values()) == {None}
    after = book([*closes, 103.0])
    assert after.counted("quiet") == 1
    assert after.as_json()["moved"]["quiet"][GROUPS.index(WHOLE)] == round(1.5 * STEPS)
    assert after.trust("quiet")["trust_macro"] > tabled_trust("M15", "quiet")["macro"]
    assert book([*closes, 103.0], atr=0.0).counted("quiet") == 0


def test_every_weight_lies_between_the_floor_and_one(scaled: Callable[..., int]) -> None:
    for seed in range(scaled(1000, least=20)):
        chance = random.Random(seed)
        regime, timeframe = chance.choice(REGIMES), chance.choice(("M15", "H4"))
        told = earned(sums_of(drawn(chance), regime), 40, regime, timeframe)
        assert all(TRUST_FLOOR <= value <= 1.0 for value in told.values())


def test_the_table_is_the_one_that_the_desk_weighs_by() -> None:
    for regime in REGIMES:
        for timeframe in ("M15", "H1", "H4", "D1"):
            rank = HIERARCHY["long" if timeframe in ("H4", "D1") else "short"]
            tabled = tabled_trust(timeframe, regime)
            for name in EXPERTS:
                product = rank[name] * TRUST[regime][name]
                assert tabled[name] == pytest.approx(max(TRUST_FLOOR, product), abs=1e-8)
