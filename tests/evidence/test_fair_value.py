"""What the market pays for a company: multiples, their ranks, splits, and a price that grows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from tests.cases import cases
from tests.worlds import company_reports as world
from torra.evidence import fair_value
from torra.evidence.company_figures import Company
from torra.evidence.fair_value import MULTIPLES, Known, Valuation, course, implied_growth, value

DAY = timedelta(days=1)
LAST = 30
"""The last quarter that the companies here have reported."""

FIRM = Company(
    ends=date(2025, 3, 31),
    filed=world.midnight(date(2025, 5, 1)),
    source="edgar 10-Q 1",
    currency="USD",
    valid=timedelta(days=200),
    revenue=400.0,
    net_income=40.0,
    ebitda=80.0,
    free_cash_flow=30.0,
    equity=200.0,
    debt=100.0,
    cash=20.0,
    shares=10.0,
    counted=date(2025, 4, 20),
)
DAYS = tuple(date(2024, 1, 1) + number * DAY for number in range(700))


def known(company: Company = FIRM) -> tuple[Known, ...]:
    return (Known(world.midnight(date(2023, 12, 1)), replace(company, ends=date(2025, 3, 31))),)


def priced(prices: Sequence[float], last: date = date(2025, 6, 30)) -> list[tuple[date, float]]:
    """Return closes day by day up to a day."""
    begin = last - (len(prices) - 1) * DAY
    return [(begin + number * DAY, price) for number, price in enumerate(prices)]


def steady(*last: float) -> list[tuple[date, float]]:
    """Return 400 closes from 60 up to 100 by slow steps, and others after them."""
    return priced([*(60.0 + 40.0 * number / 399 for number in range(400)), *last])


def counted_before(company: Company = FIRM) -> tuple[Known, ...]:
    """Return a company whose shares were counted on the last day: no jump lies between."""
    return known(replace(company, counted=date(2025, 6, 30), valid=timedelta(days=2000)))


def test_the_multiples_of_a_company_in_round_numbers() -> None:
    found = value(counted_before(), steady(), "USD")
    assert found.multiples == {
        "pe": pytest.approx(25.0),
        "pb": pytest.approx(5.0),
        "ev_ebitda": pytest.approx((1000 + 100 - 20) / 80),
        "fcf_yield_pct": pytest.approx(3.0),
    }
    # The dearest of all days: half of itself counts as equal.
    assert found.ranks["pe"] == pytest.approx(100 * 399.5 / 400)
    assert found.ranks["fcf_yield_pct"] == found.ranks["pe"]
    assert found.word == "dear"


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
@cases("amount", [None, 0.0, -5.0])
def test_what_is_not_earned_has_no_multiple(name: str, amount: float | None) -> None:
    told: dict[str, Any] = {name: amount}
    found = value(counted_before(replace(FIRM, **told)), steady(), "USD")
    gone = {
        "net_income": "pe",
        "equity": "pb",
        "ebitda": "ev_ebitda",
        "free_cash_flow": "fcf_yield_pct",
    }[name]
    for multiple in MULTIPLES:
        assert (found.multiples[multiple] is None) == (multiple == gone)
        assert (found.ranks[multiple] is None) == (multiple == gone)
    assert (found.implied_growth_pct is None) == (name == "free_cash_flow")


@pytest.mark.parametrize(
    "company",
    [
        replace(FIRM, shares=None),
        replace(FIRM, currency="EUR"),
        replace(FIRM, abroad=True),
        replace(FIRM, ends=date(2020, 3, 31)),
    ],
    ids=["no shares", "another currency", "shares in bundles", "too old"],
)
def test_what_cannot_be_priced_is_not(company: Company) -> None:
    rows = (Known(world.midnight(date(2020, 12, 1)), company),)
    assert value(rows, steady(), "USD") == fair_value.UNKNOWN
    assert value((), steady(), "USD") == fair_value.UNKNOWN
    assert value(counted_before(), [], "USD") == fair_value.UNKNOWN


def test_a_split_makes_no_company_cheap() -> None:
    """The price falls to a twentieth, and the count of the shares is still the old one."""
    split = steady(*[5.0] * 30)
    old = (Known(world.midnight(date(2023, 1, 1)), replace(FIRM, valid=timedelta(days=2000))),)
    assert value(old, split, "USD") == fair_value.UNKNOWN
    told = replace(FIRM, shares=200.0, counted=split[-10][0], valid=timedelta(days=2000))
    both = (*old, Known(world.midnight(split[-8][0]), told))
    found = value(both, split, "USD")
    assert found.multiples["pe"] == pytest.approx(25.0)
    # The days before the split count with the shares of then.
    assert found.ranks["pe"] is not None
    assert found.ranks["pe"] > 90.0


def test_prices_that_were_made_to_fit_a_split_rank_nothing_before_it() -> None:
    """A broker's history was divided by twenty, the shares of then were not."""
    closes = priced([*(3.0 + 2.0 * number / 399 for number in range(400)), *[5.0] * 30])
    old = Known(
        world.midnight(date(2023, 1, 1)),
        replace(FIRM, counted=date(2024, 4, 1), valid=timedelta(days=2000)),
    )
    told = replace(FIRM, shares=200.0, counted=closes[-10][0], valid=timedelta(days=2000))
    found = value((old, Known(world.midnight(closes[-8][0]), told)), closes, "USD")
    assert found.multiples["pe"] == pytest.approx(25.0)
    assert found.ranks["pe"] is None


def test_too_few_days_rank_nothing() -> None:
    found = value(counted_before(), steady()[-200:], "USD")
    assert found.multiples["pe"] is not None
    assert found.ranks["pe"] is None
    assert found.word is None


def dearness(found: Valuation) -> list[float | None]:
    """Return all that says how dear a company is: more is dearer."""
    turned = found.multiples["fcf_yield_pct"]
    return [
        *(found.multiples[name] for name in ("pe", "pb", "ev_ebitda")),
        None if turned is None else -turned,
        *found.ranks.values(),
        found.rank,
        found.implied_growth_pct,
        None if found.word is None else float(("cheap", "usual", "dear").index(found.word)),
    ]


def test_a_dearer_price_never_makes_a_stock_cheaper(
    scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(7)
    count = scaled(10_000, 200)
    ranked = 0
    for _ in range(count):
        names = ("net_income", "ebitda", "free_cash_flow", "equity", "debt", "cash")
        drawn: dict[str, Any] = {
            name: chance.choice((None, chance.gauss(40.0, 60.0))) for name in names
        }
        company = replace(FIRM, **drawn)
        price = 100.0 * chance.uniform(0.8, 1.2)
        dearer = price * (1.0 + 10.0 ** chance.uniform(-6.0, -1.0))
        if not 100.0 / 1.7 < dearer < 170.0:
            continue
        history = [100.0 * (1.0 + 0.2 * chance.random()) for _ in range(260)]
        one, other = (
            dearness(value(counted_before(company), priced([*history, last]), "USD"))
            for last in (price, dearer)
        )
        for before, after in zip(one, other, strict=True):
            assert (before is None) == (after is None)
            assert before is None or after is None or after >= before
            ranked += before is not None
    assert ranked > 3 * count
    record_property("seen", f"{count} companies and prices")


def test_each_day_is_judged_by_what_was_known_of_it_then() -> None:
    """Earnings that doubled later make no day before their report cheaper."""
    quarters = world.grown(2, LAST + 1)
    rows = world.reports(quarters)
    whole = course(tuple(row for row in rows if row.known_at <= world.known(LAST)))
    assert [one.since for one in whole] == sorted({one.since for one in whole})
    assert whole[-1].since == world.known(LAST)
    assert whole[-1].since - whole[0].since <= fair_value.FIVE_YEARS + 260 * DAY
    for one in whole:
        known_then = tuple(row for row in rows if row.known_at <= one.since)
        assert course(known_then)[-1] == one
