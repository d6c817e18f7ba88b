"""Document 003's five anomalies: each stands on a planted bar, and not on its neighbours.

An unknown number leaves unknown what the others do not decide, and the mirrored market, in which
longs and shorts, bids and offers change places, has the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

from tests.cases import cases
from tests.evidence.test_feature_bundle import bundle, last_bars
from torra.evidence.outside_readings import OutsideView
from torra.market.bar_anomalies import ANOMALIES, READS, anomalies

Numbers = dict[str, float | None]

RANGE, VOLUME = "market.range_atr", "technical.volume_ratio"
INTEREST, BOOK = "derivs.open_interest_change", "flow.book_imbalance"
LONGS, SHORTS = "derivs.long_liquidations_rank", "derivs.short_liquidations_rank"
FEAR, SLOPE = "derivs.dvol_rank", "derivs.iv_slope"
CALM: Final[Mapping[str, float]] = {
    RANGE: 1.0, VOLUME: 1.0, INTEREST: 0.5, LONGS: 50.0, SHORTS: 50.0, BOOK: 0.1, FEAR: 50.0,
    SLOPE: 1.0,
}  # fmt: skip
BROAD: Final = {RANGE: 1.5, VOLUME: 2.0}
NARROW: Final = ({RANGE: 1.4999}, {VOLUME: 1.9999}, {INTEREST: 0.0})
PLANTED: Final[list[tuple[str, Mapping[str, float], Sequence[Mapping[str, float]]]]] = [
    ("true_breakout", {**BROAD, INTEREST: 0.0001}, NARROW),
    ("liquidation_cascade", {**BROAD, INTEREST: -0.0001}, NARROW),
    ("liquidation_cluster", {LONGS: 99.0}, [{LONGS: 98.99}]),
    ("liquidation_cluster", {SHORTS: 99.0}, [{SHORTS: 98.99}]),
    ("microstructure_imbalance", {BOOK: 0.7001}, [{BOOK: 0.7}, {BOOK: -0.7}]),
    ("options_panic", {FEAR: 95.0}, [{FEAR: 94.99}]),
    ("options_panic", {SLOPE: -0.0001}, [{SLOPE: 0.0}]),
]
"""An anomaly, the numbers that make it, and each number's nearest that does not."""


def standing(numbers: Mapping[str, float | None]) -> list[str]:
    return [name for name, stands in anomalies(numbers).items() if stands]


def mirrored(numbers: Mapping[str, float | None]) -> Numbers:
    """Return the numbers upside down: what longs lost shorts lose, and bids are offers."""
    book = numbers.get(BOOK)
    turned = {LONGS: numbers.get(SHORTS), SHORTS: numbers.get(LONGS)}
    return {**numbers, **turned, BOOK: None if book is None else -book}


@cases(("name", "plants", "beside"), PLANTED)
def test_an_anomaly_stands_on_a_planted_bar_and_not_on_its_neighbour(
    name: str, plants: Mapping[str, float], beside: Sequence[Mapping[str, float]]
) -> None:
    """A number that is unknown makes it unknown and never no, unless another decides alone."""
    assert standing(CALM) == []
    for turn in (dict, mirrored):
        assert standing(turn({**CALM, **plants})) == [name]
        assert all(standing(turn({**CALM, **plants, **less})) == [] for less in beside)
        unknown = [anomalies(turn({**CALM, **plants, lost: None}))[name] for lost in plants]
        assert {*unknown} == {None}
    # A second row of limits may still hold.
    decided = None if name in {"liquidation_cluster", "options_panic"} else False
    assert {anomalies(dict.fromkeys(CALM) | less)[name] for less in beside} == {decided}


def test_every_anomaly_and_every_number_is_planted() -> None:
    assert anomalies({}) == dict.fromkeys(ANOMALIES)
    assert {name for name, *_ in PLANTED} == {*ANOMALIES}
    assert {name for _, plants, _ in PLANTED for name in plants} == {*READS} == {*CALM}


@cases("experts", [True, False])
def test_a_tick_of_experts_has_the_words_and_no_other_has(experts: bool) -> None:
    for plants, unknown in product(
        (plants for _, plants, _ in PLANTED if RANGE not in plants), (False, True)
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
        silent = {"liquidation_cluster", "microstructure_imbalance", "options_panic"}
        assert (lacks is not None) is experts
        assert lacks is None or not unknown or silent <= {*str(lacks.value).split()}
