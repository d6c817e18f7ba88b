"""What each asset class reads from beside the chart, and what it does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from pydantic import TypeAdapter

from agent_config import MODES
from agents.evidence import POSITIONS
from agents.features import FEATURES
from docs import generate
from tests import ROOT
from tests.cases import cases
from tests.worlds import outside_series
from torra.evidence import outside_readings as readings
from torra.evidence.news_digest import NewsSubject
from torra.evidence.outside_numbers import SERIES, SeriesHistory, SeriesThen, series_of

DAY = timedelta(days=1)
AS_OF = datetime(2026, 11, 20, 23, tzinfo=UTC)
BEGIN = datetime(2023, 10, 2, tzinfo=UTC)
DAYS = (AS_OF - BEGIN).days + 1
SUBJECTS = {
    "gold": NewsSubject("XAUUSD", "gold", currencies=("USD",)),
    "index": NewsSubject("US500", "index", currencies=("USD",)),
    "fx": NewsSubject("EURUSD", "fx", currencies=("EUR", "USD")),
    "oil": NewsSubject("WTI", "oil", currencies=("USD",)),
    "stock": NewsSubject("ACME", "stock", "ACME", ("USD",)),
    "crypto": NewsSubject("BTCUSD", "crypto", currencies=("USD",)),
    "": NewsSubject("THING"),
}

BROAD = replace(SUBJECTS["crypto"], broad=True)
"""Crypto as a firm and a swarm read it."""

READS = {
    "gold": "real_yield breakeven dollar",
    "index": "yield_2y yield_10y slope vix earnings_yield",
    "fx": "rate_gap slope",
    "oil": "inventories dollar",
    "broad": "yield_10y slope dollar nasdaq vix",
}

Then = Callable[[str], SeriesThen | None]


@cache
def whole(subject: NewsSubject, seed: int = 1) -> Then:
    names = readings.series_for(subject)
    made = list(outside_series.stored(outside_series.rows(names, BEGIN, DAYS, seed)))
    histories = {name: SeriesHistory(live=False) for name in names}
    for name, history in histories.items():
        history.add(one for one in made if one.row.name == name)
    return lambda name: histories[name].then(AS_OF) if name in histories else None


def nothing(_: str) -> None:
    return None


def made(**values: list[tuple[int, float]]) -> Then:
    """Return series of (days before AS_OF, value)."""
    found = {
        name: SeriesThen(
            tuple((AS_OF - days * DAY).replace(hour=0) for days, _ in pairs),
            tuple(value for _, value in pairs),
            AS_OF,
            "made",
        )
        for name, pairs in values.items()
    }
    return found.get


def numbers(subject: NewsSubject, then: Then, as_of: datetime = AS_OF) -> Mapping[str, Any]:
    return readings.read(subject, then, as_of).numbers


# --- by asset class -------------------------------------------------------------------------------


@pytest.mark.journey
@cases("asset", [*SUBJECTS, "broad"])
def test_each_class_reads_its_own_and_no_other(asset: str) -> None:
    subject = SUBJECTS.get(asset, BROAD)
    found = numbers(subject, whole(subject))
    assert {*found} <= {*FEATURES}
    levels = {name.removeprefix("macro.") for name in found if name.startswith("macro.")}
    reads = READS.get(asset, "").split()
    assert {name for name in levels if name in readings.LEVELS} == {*reads}
    assert any(name.startswith("cot.") for name in found) == bool(readings.market_of(subject))
    known = {name for name, value in found.items() if value is not None}
    assert {f"macro.{level}" for level in reads} <= known
    assert any(name.startswith(POSITIONS) for name in known) == bool(asset)
    assert not any(numbers(subject, nothing).values())


@pytest.mark.journey
def test_a_pair_reads_the_yields_of_its_currencies() -> None:
    then = made(DGS2=[(1, 4.0)], **{"yield_2y.EUR": [(1, 2.5)], "yield_2y.GBP": [(1, 4.5)]})
    for symbol, gap in (("EURUSD", -1.5), ("EURGBP", -2.0), ("USDJPY", None)):
        pair = NewsSubject(symbol, "fx", currencies=(symbol[:3], symbol[3:]))
        assert numbers(pair, then)["macro.rate_gap"] == gap


def test_where_the_euro_is_quoted_its_longs_are_shorts() -> None:
    then, quoted = whole(SUBJECTS["fx"]), NewsSubject("GBPEUR", "fx", currencies=("GBP", "EUR"))
    base, turned = numbers(SUBJECTS["fx"], then), numbers(quoted, then)
    for name in ("cot.net_pct", "cot.net_change_4w"):
        assert turned[name] == pytest.approx(-base[name])
    assert turned["cot.rank"] == pytest.approx(100.0 - base["cot.rank"])
    longs, shorts, interest = (
        series.value for name in readings.positions_of(quoted) if (series := then(name)) is not None
    )
    assert base["cot.net_pct"] == pytest.approx(100.0 * (longs - shorts) / interest)


MARKETS = """
EURUSD fx EUR,USD eur
GBPEUR fx GBP,EUR eur
FXEURUSD fx EUR,USD -
CMEEUR fx EUR,USD -
6E fx EUR,USD -
USDJPY fx EUR,USD -
GER40 index EUR -
THING index - sp500
XAUUSD gold USD gold
BTCUSD crypto USD btc
ETHUSD crypto USD -
"""


@pytest.mark.parametrize("line", MARKETS.strip().split("\n"))
def test_a_symbol_reads_the_positions_of_its_own_market(line: str) -> None:
    symbol, asset, currencies, market = line.replace("-", "").split(" ")
    subject = NewsSubject(symbol, asset, currencies=tuple(filter(None, currencies.split(","))))
    assert readings.market_of(subject) == market


def business_days(hole: range) -> list[tuple[int, float]]:
    """Return values of Monday to Friday by their age in days, which is their value too."""
    ages = (age for age in range(300, 0, -1) if (AS_OF - age * DAY).weekday() < 5)
    return [(age, float(age)) for age in ages if age not in hole]


@cases(
    ("hole", "change_20", "change_60"),
    [
        (range(0), -28.0, -84.0),
        (range(20, 24), -28.0, -84.0),  # the value of four weeks ago is there
        (range(29, 30), -29.0, -84.0),  # a holiday: the value before it
        (range(2, 45), -44.0, -84.0),
        (range(15, 57), -56.0, -84.0),  # the oldest that counts: 8 weeks
        (range(15, 58), None, -84.0),
        (range(15, 119), None, -118.0),
        (range(15, 122), None, None),  # more than 17 weeks
    ],
)
def test_a_change_after_a_hole_is_against_the_newest_value_that_is_old_enough(
    hole: range, change_20: float | None, change_60: float | None
) -> None:
    found = numbers(SUBJECTS["index"], made(VIXCLS=business_days(hole)))
    assert found["macro.vix"] == 1.0
    assert (found["macro.vix_change_20"], found["macro.vix_change_60"]) == (change_20, change_60)


def test_fresh_numbers_of_another_kind_make_nothing_stale() -> None:
    view = readings.read(
        SUBJECTS["fx"], made(DGS2=[(1, 4.0)]), AS_OF, trouble=lambda block: f"no {block}"
    )
    assert view.statuses["macro"] == "no macro"


# --- arithmetic -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "ranked"), [(250, False), (251, True), (400, True)])
def test_changes_and_ranks_against_hand_made_values(days: int, ranked: bool) -> None:
    pairs = [(n, float(n)) for n in range(days, 0, -1)]
    weekly = [(7 * n + 1, 100.0 + n) for n in range(59, -1, -1)]
    own = {"fear_greed": [(1, 20.0)], "fear_greed.US500": [(1, 80.0)]}
    then = made(VIXCLS=pairs, DGS2=pairs, DGS10=[(1, 5.0)], **own)
    found = numbers(SUBJECTS["index"], then)
    assert found["macro.vix"] == 1.0
    assert found["macro.vix_change_20"] == -20.0
    assert found["macro.vix_change_60"] == -60.0
    # A rank needs 250 days behind it.
    assert found["macro.vix_rank"] == (pytest.approx(100.0 * 0.5 / days) if ranked else None)
    assert found["macro.slope"] == 4.0
    assert found["macro.slope_rank"] is None
    assert found["positioning.fear_greed"] == 80.0, "its own stands before the one for all"
    assert numbers(SUBJECTS["stock"], then)["positioning.fear_greed"] == 20.0
    # The dollar and inventories move in percent; a report that is missing costs no change.
    dollar = numbers(SUBJECTS["gold"], made(DTWEXBGS=[(n, 100.0 + n) for n in range(30, 0, -1)]))
    assert dollar["macro.dollar_change_20"] == pytest.approx(100.0 * (101 - 121) / 121)
    assert dollar["macro.dollar_change_60"] is None
    for missing, before in ((3, 104.0), (4, 105.0), (5, 104.0)):
        rows = [row for row in weekly if row[0] != 7 * missing + 1]
        stocks = numbers(SUBJECTS["oil"], made(inventories=rows))["macro.inventories_change_20"]
        assert stocks == pytest.approx(100.0 * (100.0 - before) / before)


@pytest.mark.parametrize(("age", "known"), [(10, True), (11, False)])
def test_a_value_that_is_too_old_is_unknown(age: int, known: bool) -> None:
    as_of = AS_OF.replace(hour=0)
    view = readings.read(SUBJECTS["index"], made(VIXCLS=[(age, 20.0)]), as_of)
    assert (view.numbers["macro.vix"] is not None) == known
    assert view.seen["VIXCLS"].stale != known
    assert view.statuses["macro"] == ("available" if known else "stale")


def closes(slope: float, noise: float, days: int = 300) -> tuple[Then, list[tuple[date, float]]]:
    """Return a real yield and prices whose log goes with it, beside a wave that does not."""
    pairs = [(n, math.sin(n / 9.0)) for n in range(days, 0, -1)]
    prices = [
        (
            (AS_OF - n * DAY).date(),
            2000.0 * math.exp(slope * value + noise * math.sin(n * 1.7)),
        )
        for n, value in pairs
    ]
    return made(DFII10=pairs), prices


@pytest.mark.parametrize(
    ("slope", "noise", "days", "said"),
    [
        (-0.05, 0.0, 300, "holds"),
        (-0.05, 0.5, 300, "broke"),
        (0.05, 0.0, 300, "broke"),
        (-0.05, 0.0, 249, None),
    ],
)
def test_gold_reads_the_real_yield_while_its_own_fit_holds(
    slope: float, noise: float, days: int, said: str | None
) -> None:
    then, prices = closes(slope, noise, days)
    found = readings.read(SUBJECTS["gold"], then, AS_OF, closes=lambda _span: prices).numbers
    assert found["macro.real_yield_relation"] == said
    if said == "holds":
        assert found["macro.real_yield_fit_r2"] == pytest.approx(1.0)
        assert found["macro.real_yield_fit_slope"] == pytest.approx(slope)


def test_a_file_of_ones_own_has_every_name_it_may_have() -> None:
    for name, series in SERIES.items():
        if series.own == "currency":
            assert series_of(name) is None
            assert series_of(f"{name}.EUR") is series
            assert series_of(f"{name}.USD") is None
            assert series_of(f"{name}.eur") is None
        else:
            assert series_of(name) is series
        assert (series_of(f"{name}.BTCUSD") is series) == (series.own == "symbol")
    assert series_of("unheard") is None
    assert series_of("derivs.funding.US500.CASH") is SERIES["derivs.funding"]


def test_what_no_record_can_hold_is_not_known() -> None:
    odd: dict[str, float | str | None] = {
        "macro.vix": math.inf, "flow.slippage_atr": math.nan, "company.pe": 12.5, "word": "no"
    }  # fmt: skip
    view = readings.OutsideView(odd)
    assert view.numbers == {**odd, "macro.vix": None, "flow.slippage_atr": None}
    stored = TypeAdapter(readings.OutsideView)
    assert stored.validate_json(stored.dump_json(view)) == view


def test_the_page_lists_every_series_and_every_figure() -> None:
    assert {name for name, row in MODES.items() if row.broad} == {"firm", "swarm"}
    page = (ROOT / "docs" / "outside.md").read_text("utf-8")
    assert page == generate.outside_tables(page), "python -m docs.generate"


@cases(
    ("days", "moved"),
    [
        ([(3, 200.0), (1, 210.0)], 5.0),
        ([(3, 200.0), (1, 190.0)], -5.0),
        ([(11, 200.0), (1, 210.0)], 5.0),
        ([(12, 200.0), (1, 210.0)], None),
        ([(1, 210.0)], None),
        ([(3, 0.0), (1, 210.0)], None),
    ],
)
def test_the_change_of_open_interest_is_against_the_value_before(
    days: list[tuple[int, float]], moved: float | None
) -> None:
    then = made(**{"derivs.open_interest": days})
    assert numbers(BROAD, then)["derivs.open_interest_change"] == moved
    assert "derivs.open_interest_change" not in numbers(SUBJECTS["crypto"], then)
