"""What the market pays for a company: multiples, their ranks, splits, and a price that grows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from tests.cases import cases
from tests.worlds import company_reports as world
from torra.evidence import fair_value
from torra.evidence.company_figures import CompanyFigures
from torra.evidence.fair_value import JUMP, Course, course, implied_growth
from torra.evidence.fair_value import value as valued
from torra.evidence.outside_readings import FIVE_YEARS

DAY = timedelta(days=1)
LAST = 30
"""The last quarter that the companies here have reported."""

FIRM = CompanyFigures(
    ends=date(2025, 3, 31),
    filed=world.midnight(date(2025, 5, 1)),
    source="edgar 10-Q 1",
    currency="USD",
    valid=timedelta(days=200),
    counted=date(2025, 4, 20),
    amounts={
        "net_income": 40.0,
        "ebitda": 80.0,
        "free_cash_flow": 30.0,
        "equity": 200.0,
        "debt": 100.0,
        "cash": 20.0,
        "shares": 10.0,
    },
)
DAYS = tuple(date(2024, 1, 1) + number * DAY for number in range(700))


def with_amounts(company: CompanyFigures = FIRM, /, **amounts: float) -> CompanyFigures:
    return replace(company, amounts={**company.amounts, **amounts})


def value(known: Course, closes: Sequence[tuple[date, float]], *currencies: str) -> dict[str, Any]:
    """Return what the last close pays, seen on the day after it."""
    today = closes[-1][0] + DAY if closes else date(2025, 7, 1)
    return valued(known, closes, currencies or ("USD",), today)


def priced(prices: Sequence[float], last: date = date(2025, 6, 30)) -> list[tuple[date, float]]:
    """Return closes day by day up to a day."""
    begin = last - (len(prices) - 1) * DAY
    return [(begin + number * DAY, price) for number, price in enumerate(prices)]


def steady(*last: float) -> list[tuple[date, float]]:
    """Return 400 closes from 60 up to 100 by slow steps, and others after them."""
    return priced([*(60.0 + 40.0 * number / 399 for number in range(400)), *last])


def counted_before(company: CompanyFigures = FIRM) -> Course:
    """Return a company whose shares were counted on the last day: no jump lies between."""
    counted = replace(company, counted=date(2025, 6, 30), valid=timedelta(days=2000))
    return {world.midnight(date(2023, 12, 1)): counted}


def test_the_multiples_of_a_company_in_round_numbers() -> None:
    found = value(counted_before(), steady())
    # The dearest of all days: half of itself counts as equal.
    rank = pytest.approx(100 * 399.5 / 400)
    assert found == {
        "pe": pytest.approx(25.0),
        "pb": pytest.approx(5.0),
        "ev_ebitda": pytest.approx((1000 + 100 - 20) / 80),
        "fcf_yield_pct": pytest.approx(3.0),
        **dict.fromkeys(("pe_rank", "pb_rank", "ev_ebitda_rank", "fcf_yield_rank"), rank),
        "valuation_rank": rank,
        "valuation": "dear",
        "implied_growth_pct": implied_growth(FIRM, found["pe"] * 40.0),
    }
    few = value(counted_before(with_amounts(cash=5000.0)), steady()[-200:])
    assert few["pe"] is not None
    assert few["pe_rank"] is few["valuation"] is few["ev_ebitda"] is None


def test_the_growth_that_a_price_bets_on_is_the_one_that_makes_it_worth_that() -> None:
    """Free cash flow that grows so for ever, discounted at 9 %, is the market value."""
    found = implied_growth(FIRM, 1000.0)
    assert found is not None
    growth = found / 100
    assert growth == pytest.approx((0.09 * 1000 - 30) / (1000 + 30), abs=1e-12)
    worth, flow = 0.0, 30.0
    for year in range(1, 4000):
        flow *= 1 + growth
        worth += flow / 1.09**year
    assert worth == pytest.approx(1000.0, rel=1e-6)


@cases("name", ["net_income", "equity", "ebitda", "free_cash_flow"])
@cases("amount", [math.nan, 0.0, -5.0])
def test_what_is_not_earned_has_no_multiple(name: str, amount: float) -> None:
    found = value(counted_before(with_amounts(**{name: amount})), steady())
    gone = {
        "net_income": "pe",
        "equity": "pb",
        "ebitda": "ev_ebitda",
        "free_cash_flow": "fcf_yield_pct",
    }[name]
    for multiple in ("pe", "pb", "ev_ebitda", "fcf_yield_pct"):
        assert (found[multiple] is None) == (multiple == gone)
        assert (found[f"{multiple.removesuffix('_pct')}_rank"] is None) == (multiple == gone)
    assert (found["implied_growth_pct"] is None) == (name == "free_cash_flow")


UNPRICED = {
    "an old close": (FIRM, "USD", 11),
    "no count of shares": (with_amounts(shares=math.nan), "USD", 1),
    "another currency": (replace(FIRM, currency="EUR"), "USD", 1),
    # Shares in London are quoted in pence: their closes say nothing beside pounds.
    "pence": (replace(FIRM, currency="GBP"), "GBP", 1),
    "bundles of shares": (replace(FIRM, abroad=True), "USD", 1),
}


@pytest.mark.parametrize("why", UNPRICED)
def test_what_cannot_be_priced_is_not(why: str) -> None:
    firm, currency, age = UNPRICED[why]
    ((since, company),) = counted_before(firm).items()
    counted = None if math.isnan(firm.amounts["shares"]) else company.counted
    rows, closes = {since: replace(company, counted=counted)}, steady()
    assert valued(rows, closes, (currency,), closes[-1][0] + age * DAY) == {}
    old = {since: replace(company, valid=timedelta(days=1))}
    assert value(old, closes) == value({}, closes) == value(rows, []) == {}
    own = counted_before(replace(FIRM, currency="EUR"))
    assert valued(own, closes, ("EUR", "USD"), closes[-1][0] + 10 * DAY)


def recounted(ratio: float, closes: Sequence[tuple[date, float]], at: int) -> Course:
    """Return a company whose shares are counted anew, so many times as before, at a close."""
    valid = timedelta(days=2000)
    old = replace(FIRM, counted=date(2023, 1, 1), valid=valid)
    told = replace(with_amounts(shares=10.0 * ratio), counted=closes[at][0] - 2 * DAY, valid=valid)
    return {world.midnight(date(2023, 1, 1)): old, world.midnight(closes[at][0]): told}


def first_of(known: Course) -> Course:
    """Return a company as it looked before its shares were counted anew."""
    return dict([*known.items()][:1])


SPLITS = [20.0, 10.0, 3.0, 2.0, 1.5, 1.25, 0.5, 0.1]


@pytest.mark.parametrize("ratio", SPLITS)
def test_a_split_makes_no_company_cheap(ratio: float) -> None:
    """The price falls with a split, and the count of the shares is still the old one."""
    for move in (1.0,) if ratio == 1.25 else (0.97, 1.0, 1.03):
        split = steady(*[100.0 / ratio * move] * 30)
        both = recounted(ratio, split, -8)
        assert value(first_of(both), split) == {}
        found = value(both, split)
        assert found["pe"] == pytest.approx(25.0 * move)
        # The days before the split count with the shares of then.
        assert found["pe_rank"] > 80.0


@pytest.mark.parametrize("ratio", SPLITS)
def test_prices_that_were_made_to_fit_a_split_rank_nothing_before_it(ratio: float) -> None:
    """A broker's history was divided, the shares of then were not."""
    times = [(60.0 + 40.0 * number / 399) / ratio for number in range(400)]
    closes = priced([*times, *[100.0 / ratio] * 30])
    found = value(recounted(ratio, closes, -8), closes)
    assert found["pe"] == pytest.approx(25.0)
    assert found["pe_rank"] is None
    assert found["valuation"] is None


def test_a_crash_is_not_told_from_a_split_until_shares_are_counted() -> None:
    fallen = steady(*[70.0] * 30)
    same = recounted(1.0, fallen, -8)
    assert value(first_of(same), fallen) == {}
    found = value(same, fallen)
    assert found["pe"] == pytest.approx(17.5)
    # A third of its days were as cheap or cheaper.
    assert found["pe_rank"] < 40.0


def test_a_report_of_last_night_counts_for_the_last_close() -> None:
    closes = steady()
    better = replace(
        with_amounts(net_income=80.0), valid=timedelta(days=2000), counted=closes[-1][0]
    )
    night = world.midnight(closes[-1][0]) + timedelta(days=1, hours=3)
    found = value({**counted_before(), night: better}, closes)
    assert found["pe"] == pytest.approx(12.5)
    # The days before were judged by what was known of them then, to the day.
    assert found["pe_rank"] == pytest.approx(100 * 0.5 / 400)


def test_a_day_counts_with_the_report_that_was_there_at_its_end() -> None:
    closes = steady()
    first = replace(FIRM, valid=timedelta(days=2000), counted=closes[-1][0])
    worse = with_amounts(first, net_income=1.0)
    for late, dear in ((timedelta(hours=23), 2), (timedelta(hours=25), 1)):
        before, day = world.midnight(date(2023, 1, 1)), world.midnight(closes[-3][0])
        again = day + 2 * DAY + timedelta(hours=20)
        found = value({before: first, day + late: worse, again: first}, closes)
        # Of 400 days so many stand above the last one.
        below = found["pe_rank"]
        assert below == pytest.approx(100 * (400 - dear - 0.5) / 400)


def test_a_company_with_a_moment_for_each_value_costs_no_tick() -> None:
    rows = world.reports({"net_income": [1.0] * 40})
    many = [
        row._replace(known_at=row.known_at + timedelta(seconds=number))
        for row in rows
        for number in range(60)
    ]
    found = course(tuple(sorted(many, key=lambda row: row.known_at)))
    assert len(found) == fair_value.MOST_MOMENTS


WORDS = {"cheap": 0.0, "usual": 1.0, "dear": 2.0, None: None}


def dearness(found: dict[str, Any]) -> list[float | None]:
    """Return all that says how dear a company is: more is dearer."""
    turned = found["fcf_yield_pct"]
    word = WORDS[found["valuation"]]
    told = found | {"fcf_yield_pct": None if turned is None else -turned, "valuation": word}
    return list(told.values())


@pytest.mark.journey
def test_a_dearer_price_never_makes_a_stock_cheaper(
    scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(7)
    count = scaled(10_000, 200)
    ranked = 0
    for _ in range(count):
        names = ("net_income", "ebitda", "free_cash_flow", "equity", "debt", "cash")
        drawn = {name: chance.choice((math.nan, chance.gauss(40.0, 60.0))) for name in names}
        company = with_amounts(**drawn)
        price = 100.0 * chance.uniform(0.8, 1.2)
        dearer = price * (1.0 + 10.0 ** chance.uniform(-6.0, -1.0))
        history = [100.0 * (1.0 + 0.1 * chance.random()) for _ in range(260)]
        # Beyond a jump nothing is told at all.
        if not history[-1] / JUMP < price < dearer < history[-1] * JUMP:
            continue
        one, other = (
            dearness(value(counted_before(company), priced([*history, last])))
            for last in (price, dearer)
        )
        for before, after in zip(one, other, strict=True):
            assert (before is None) == (after is None)
            assert before is None or after is None or after >= before
            ranked += before is not None
    assert ranked > 2 * count
    record_property("seen", f"{count} companies and prices")


@pytest.mark.journey
def test_each_day_is_judged_by_what_was_known_of_it_then() -> None:
    """Earnings that doubled later make no day before their report cheaper."""
    quarters = world.grown(2, LAST + 1)
    rows = world.reports(quarters)
    whole = course(tuple(row for row in rows if row.known_at <= world.known(LAST)))
    first, *_, last = whole
    assert [*whole] == sorted(whole) and last == world.known(LAST)
    assert last - first <= FIVE_YEARS + 260 * DAY
    for since, company in whole.items():
        known_then = tuple(row for row in rows if row.known_at <= since)
        # As texts: what is not known of both is the same.
        assert repr(course(known_then)[since]) == repr(company)
