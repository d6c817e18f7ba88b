"""A company against its own years and the desk's other stocks: formulae by hand, nothing of few."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from torra.committee.comparison import moat, peers_rank
from torra.committee.evidence import evidence
from torra.committee.example import SYMBOL, example_desk
from torra.config import Instance, OutsideSettings
from torra.evidence.company_figures import CompanyFigures
from torra.evidence.outside_numbers import SeriesRow
from torra.tools.desk_reader import DeskReader


@pytest.fixture
def desk() -> Iterator[DeskReader]:
    with example_desk() as reader:
        yield reader


def course(margins: Sequence[float | None], *, month: int = 12) -> Any:
    """Return a company whose gross margins are those of the years up to 2025."""
    years = range(2026 - len(margins), 2026)
    return {
        datetime(year + 1, 2, 1, tzinfo=UTC): CompanyFigures(
            ends=date(year, month, 28), filed=datetime(year + 1, 2, 1, tzinfo=UTC), source="file",
            currency="USD", valid=None, ratios={"gross_margin_pct": margin, "roic_pct": None},
        )
        for year, margin in zip(years, margins, strict=True)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("margins", "spread", "held"),
    [
        ([40.0, 41.0, 42.0, 43.0, 44.0], 4.0, 100.0),
        ([44.0, 43.0, 42.0, 41.0, 40.0], 4.0, 0.0),
        ([50.0, 49.0, 50.0, 48.9, 50.0], 1.1, 75.0),
        ([40.0, 40.0, 40.0, 40.0], 0.0, 100.0),
        ([90.0, 40.0, 40.0, 40.0, 40.0, 40.0], 0.0, 100.0),
        ([-10.0, -10.1, -10.4, -10.5], 0.5, 200.0 / 3.0),
        ([40.0, None, 41.0, 42.0, 43.0], 3.0, 100.0),
        ([44.0, 44.0, None, 40.0, 40.0], 4.0, 100.0),
    ],
)
def test_a_moat_is_the_spread_and_the_years_that_held(
    margins: Sequence[float | None], spread: float, held: float
) -> None:
    found = moat(course(margins))
    assert found == pytest.approx(
        {"moat.gross_margin_spread": spread, "moat.gross_margin_held": held}
    )


@pytest.mark.parametrize(
    "margins", [[], [40.0], [40.0, 41.0, 42.0], [None, None, 40.0, 41.0, 42.0]]
)
def test_three_years_are_no_moat(margins: Sequence[float | None]) -> None:
    assert moat(course(margins)) == {}


def test_a_year_of_which_two_ends_are_near_counts_once() -> None:
    """A company that moved the end of its year by two weeks has five years, not six."""
    years = course([40.0, 40.0, 40.0, 40.0, 40.0])
    filed = datetime(2023, 3, 1, tzinfo=UTC)
    years[filed] = replace(
        years[datetime(2023, 2, 1, tzinfo=UTC)], ends=date(2022, 12, 14), filed=filed,
        ratios={"gross_margin_pct": 10.0},
    )  # fmt: skip
    assert moat(years)["moat.gross_margin_spread"] == 0.0


def test_a_quarter_after_five_years_takes_nothing_away() -> None:
    """A trailing year that ends with a quarter has no years of quarters behind it."""
    years = course([40.0, 41.0, 42.0, 43.0, 44.0])
    before, filed = moat(years), datetime(2026, 5, 1, tzinfo=UTC)
    newest = years[datetime(2026, 2, 1, tzinfo=UTC)]
    for margin in (90.0, None):
        ratios = {"gross_margin_pct": margin}
        years[filed] = replace(newest, ends=date(2026, 3, 31), filed=filed, ratios=ratios)
        assert moat(years) == before != {}
    years[filed] = replace(newest, ends=date(2027, 3, 31), filed=filed)
    assert moat(years) == {}, "the years are long ago"


def test_a_rank_among_peers_is_the_mean_of_the_multiples_that_are_known() -> None:
    own = {"company.pe": 30.0, "company.pb": 4.0, "company.fcf_yield_pct": 2.0}
    peers = [
        {"company.pe": 10.0, "company.fcf_yield_pct": 5.0},
        {"company.pe": 20.0, "company.fcf_yield_pct": 1.0},
        {"company.pe": 40.0, "company.fcf_yield_pct": 4.0, "company.pb": 9.0},
    ]
    # P/E: dearer than two of four and equal to itself; yield: cheaper is one; P/B: two stocks alone
    assert peers_rank(own, peers) == pytest.approx((62.5 + 62.5) / 2.0)
    assert peers_rank(own, peers[:2]) is None
    assert peers_rank({}, peers) is None
    assert peers_rank({"company.pe": None}, peers) is None


def test_the_desks_other_stocks_are_peers_and_nothing_else_is(desk: DeskReader) -> None:
    """Three stocks beside it: each is read at the same moment, with closes of its own."""
    own = desk.instances[0]
    spec = desk.profiles[SYMBOL].symbols[SYMBOL]
    profiles, items = dict(desk.profiles), [own]
    rows = [stored.row for stored in desk.database.fact_rows(SYMBOL)]
    bars = desk.database.load_bars(SYMBOL, "D1", as_of=desk.as_of)
    for number, factor in enumerate((0.5, 1.0, 2.0)):
        name = f"PEER{number}"
        items.append(Instance(symbol=name, timeframes=("D1",), feed="sample"))
        twin = spec.model_copy(update={"ticker": name})
        profiles[name] = desk.profiles[SYMBOL].model_copy(update={"symbols": {name: twin}})
        desk.database.store_facts([row._replace(ticker=name) for row in rows], desk.as_of)
        desk.database.store_bars(name, "D1", bars * factor)
        settings = desk.settings.model_copy(update={"instances": tuple(items)})
        desk = replace(desk, settings=settings, profiles=profiles)
        rank = evidence(desk, SYMBOL).numbers.get("peers.valuation_rank")
        assert (rank is None) == (number < 2)
    # of four stocks one is cheaper, one equal and one dearer
    assert rank == pytest.approx(50.0)


@pytest.mark.parametrize("relates", [True, False])
def test_gold_is_judged_by_the_real_yield_only_while_it_goes_against_it(
    desk: DeskReader, *, relates: bool
) -> None:
    sources = OutsideSettings(sources=("fred",))
    profile = desk.profiles[SYMBOL].model_copy(update={"outside": sources})
    spec = profile.symbols[SYMBOL].model_copy(update={"asset": "gold", "ticker": ""})
    gold = replace(desk, profiles={SYMBOL: profile.model_copy(update={"symbols": {SYMBOL: spec}})})
    dice = random.Random(3)
    rows = [
        SeriesRow(
            "DFII10", moment := datetime(day.year, day.month, day.day, tzinfo=UTC), moment,
            3.0 - close / 100.0 if relates else dice.uniform(0.0, 3.0), "fred",
        )
        for day, close in desk.database.daily_closes(
            SYMBOL, "D1", date(2024, 1, 1), date(2026, 3, 1)
        )
    ]  # fmt: skip
    desk.database.store_series(rows, desk.as_of)
    known = evidence(gold, SYMBOL)
    for name in ("macro.real_yield_change_60", "macro.real_yield_rank"):
        assert (name in known.numbers) == relates
        assert (name in known.missing) != relates
