"""Document 003's five anomalies: each stands on a planted bar, and not on its neighbours.

An unknown number leaves unknown what the others do not decide, and the mirrored market, in which
longs and shorts, bids and offers change places, has the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from tests.cases import cases
from tests.evidence.test_feature_bundle import bundle, last_bars
from torra.evidence.outside_readings import OutsideView
from torra.market.bar_anomalies import ANOMALIES, READS, anomalies

Numbers = dict[str, float | None]

CALM: Final[Mapping[str, float]] = {
    "market.range_atr": 1.0,
    "technical.volume_ratio": 1.0,
    "derivs.open_interest_change": 0.5,
    "derivs.long_liquidations_rank": 50.0,
    "derivs.short_liquidations_rank": 50.0,
    "flow.book_imbalance": 0.1,
    "derivs.dvol_rank": 50.0,
    "derivs.iv_slope": 1.0,
}
BROAD: Final = {"market.range_atr": 1.5, "technical.volume_ratio": 2.0}
PLANTED: Final[list[tuple[str, Mapping[str, float], list[Mapping[str, float]]]]] = [
    (
        "true_breakout",
        {**BROAD, "derivs.open_interest_change": 0.0001},
        [
            {"market.range_atr": 1.4999},
            {"technical.volume_ratio": 1.9999},
            {"derivs.open_interest_change": 0.0},
        ],
    ),
    (
        "liquidation_cascade",
        {**BROAD, "derivs.open_interest_change": -0.0001},
        [
            {"market.range_atr": 1.4999},
            {"technical.volume_ratio": 1.9999},
            {"derivs.open_interest_change": 0.0},
        ],
    ),
    (
        "liquidation_cluster",
        {"derivs.long_liquidations_rank": 99.0},
        [{"derivs.long_liquidations_rank": 98.99}],
    ),
    (
        "liquidation_cluster",
        {"derivs.short_liquidations_rank": 99.0},
        [{"derivs.short_liquidations_rank": 98.99}],
    ),
    (
        "microstructure_imbalance",
        {"flow.book_imbalance": 0.7001},
        [{"flow.book_imbalance": 0.7}, {"flow.book_imbalance": -0.7}],
    ),
    ("options_panic", {"derivs.dvol_rank": 95.0}, [{"derivs.dvol_rank": 94.99}]),
    ("options_panic", {"derivs.iv_slope": -0.0001}, [{"derivs.iv_slope": 0.0}]),
]
"""An anomaly, the numbers that make it, and each number's nearest that does not."""


def standing(numbers: Mapping[str, float | None]) -> list[str]:
    return [name for name, stands in anomalies(numbers).items() if stands]


def mirrored(numbers: Mapping[str, float | None]) -> Numbers:
    """Return the numbers upside down: what longs lost shorts lose, and bids are offers."""
    longs, shorts = "derivs.long_liquidations_rank", "derivs.short_liquidations_rank"
    book = numbers.get("flow.book_imbalance")
    turned = {longs: numbers.get(shorts), shorts: numbers.get(longs)}
    return {**numbers, **turned, "flow.book_imbalance": None if book is None else -book}


@cases(("name", "plants", "beside"), PLANTED)
def test_an_anomaly_stands_on_a_planted_bar_and_not_on_its_neighbour(
    name: str, plants: Mapping[str, float], beside: list[Mapping[str, float]]
) -> None:
    assert standing(CALM) == []
    for turn in (dict, mirrored):
        assert standing(turn({**CALM, **plants})) == [name]
        for less in beside:
            assert standing(turn({**CALM, **plants, **less})) == []


@cases(("name", "plants", "beside"), PLANTED)
def test_an_unknown_number_is_unknown_and_never_no(
    name: str, plants: Mapping[str, float], beside: list[Mapping[str, float]]
) -> None:
    for lost in plants:
        numbers = {**CALM, **plants, lost: None}
        assert anomalies(numbers)[name] is None
        assert anomalies(mirrored(numbers))[name] is None
    for less in beside:  # what decides alone decides, whatever else is unknown
        known = dict.fromkeys(CALM, None) | less
        alone = len(beside) > 1 and name != "microstructure_imbalance"
        assert anomalies(known)[name] is (
            False if alone or name == "microstructure_imbalance" else None
        )
    assert anomalies({}) == dict.fromkeys(ANOMALIES)


def test_every_anomaly_and_every_number_is_planted() -> None:
    assert {name for name, *_ in PLANTED} == {*ANOMALIES}
    assert {name for _, plants, _ in PLANTED for name in plants} == {*READS} == {*CALM}


@cases("experts", [True, False])
def test_a_tick_of_experts_has_the_words_and_no_other_has(experts: bool) -> None:
    for plants, unknown in product(
        (plants for _, plants, _ in PLANTED if "market.range_atr" not in plants), (False, True)
    ):
        beside: dict[str, Any] = {
            name: None if unknown else value
            for name, value in {**CALM, **plants}.items()
            if name.startswith(("derivs.", "flow."))
        }
        found = bundle(bars=last_bars(300), outside=OutsideView(beside), experts=experts).features
        words = {*str(found["market.triage"].value or "").split()} & {*ANOMALIES}
        assert words == ({*standing({**CALM, **plants})} if experts and not unknown else set())
        lacks = found.get("market.triage_unknown")
        assert (lacks is not None) is experts
        if experts and unknown:
            assert lacks is not None
            assert {"liquidation_cluster", "microstructure_imbalance", "options_panic"} <= {
                *str(lacks.value).split()
            }
