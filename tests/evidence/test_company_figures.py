"""A company's figures: the trailing year, growth, margins, returns, strength; a missing part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import pairwise

import pytest

from tests.cases import cases
from tests.worlds import company_reports as world
from torra.evidence.company_facts import FIGURES, Books, CompanyHistory, of_year
from torra.evidence.company_figures import REPORT_DELAY, CompanyFigures, read
from torra.evidence.outside_numbers import FactRow, StoredFact

DAY = timedelta(days=1)


def books(rows: Iterable[FactRow], as_of: datetime | None = None) -> Books:
    """Return the books at a moment; None: of all that was ever told."""
    found = Books()
    for row in rows:
        if as_of is None or row.known_at <= as_of:
            found.add(row)
    return found


def of(rows: Iterable[FactRow], at: int | None = None) -> CompanyFigures:
    """Return a company after the report of a quarter, the last one without."""
    found = read(books(rows, None if at is None else world.known(at)))
    assert found is not None
    return found


def company(quarters: world.Quarters, *, at: int | None = None) -> CompanyFigures:
    return of(world.reports(quarters), at)


def without(quarters: world.Quarters, *names: str) -> world.Quarters:
    return {name: values for name, values in quarters.items() if name not in names}


def reckoned(quarters: world.Quarters, last: int) -> dict[str, float]:
    """Return the figures of the year up to a quarter, straight from the quarters."""

    def year(figure: str, back: int = 0) -> float:
        stop = last + 1 - 4 * back
        return math.fsum(quarters[figure][stop - 4 : stop])

    def at(figure: str, back: int = 0) -> float:
        return quarters[figure][last - 4 * back]

    def mean(figure: str, back: int = 0) -> float:
        return (at(figure, back) + at(figure, back + 1)) / 2

    def gross(back: int) -> float:
        return (year("revenue", back) - year("cost_of_revenue", back)) / year("revenue", back)

    def invested(back: int) -> float:
        debt = at("long_term_debt", back) + at("short_term_debt", back)
        return at("equity", back) + debt - at("cash", back)

    def leverage(back: int) -> float:
        return at("long_term_debt", back) / mean("assets", back)

    def current(back: int) -> float:
        return at("current_assets", back) / at("current_liabilities", back)

    income, flow = year("net_income"), year("operating_cash_flow")
    free = flow - year("capital_expenditure")
    # A year's report tells the mean of the year's shares, others the quarter's.
    whole = last % 4 == 3
    now, then = (
        math.fsum(quarters["diluted_shares"][stop - (4 if whole else 1) : stop])
        for stop in (last + 1, last - 3)
    )
    after_tax = year("operating_income") * (1 - year("income_tax") / year("pretax_income"))
    signs = (
        income > 0,
        flow > 0,
        income / at("assets", 1) > year("net_income", 1) / at("assets", 2),
        flow > income,
        leverage(0) < leverage(1),
        current(0) > current(1),
        gross(0) > gross(1),
        year("revenue") / at("assets", 1) > year("revenue", 1) / at("assets", 2),
        now <= then,
    )
    return {
        "revenue_growth_pct": 100 * (year("revenue") / year("revenue", 1) - 1),
        "earnings_growth_pct": 100 * (income / year("net_income", 1) - 1),
        "gross_margin_pct": 100 * gross(0),
        "operating_margin_pct": 100 * year("operating_income") / year("revenue"),
        "net_margin_pct": 100 * income / year("revenue"),
        "fcf_margin_pct": 100 * free / year("revenue"),
        "roe_pct": 100 * income / mean("equity"),
        "roic_pct": 100 * after_tax / ((invested(0) + invested(1)) / 2),
        "debt_to_equity": (at("long_term_debt") + at("short_term_debt")) / at("equity"),
        "interest_cover": year("operating_income") / year("interest_expense"),
        "accruals_pct": 100 * (income - flow) / mean("assets"),
        "dilution_pct": 100 * (now / then - 1),
        "f_score": float(sum(signs)),
    }


def test_hand_made_companies_come_out_to_a_billionth(
    scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    scores = set()
    count = scaled(200, 20)
    for seed in range(count):
        quarters = world.grown(seed, 20)
        last = 12 + seed % 8
        found = company(quarters, at=last)
        wanted = reckoned(quarters, last)
        assert found.ends == world.end(last)
        assert set(wanted) == {*found.ratios}
        for name, value in wanted.items():
            assert found.ratios[name] == pytest.approx(value, rel=1e-9, abs=1e-9), (seed, name)
        scores.add(found.ratios["f_score"])
    assert len(scores) > 3
    record_property("seen", f"{count} companies, {len(found.ratios)} figures each, to 1e-9")


TOUCHED = {
    "revenue": "revenue_growth_pct gross_margin_pct operating_margin_pct net_margin_pct "
    "fcf_margin_pct f_score",
    "operating_income": "operating_margin_pct roic_pct interest_cover",
    "pretax_income": "roic_pct",
    "income_tax": "roic_pct",
    "interest_expense": "interest_cover",
    "operating_cash_flow": "fcf_margin_pct accruals_pct f_score",
    "capital_expenditure": "fcf_margin_pct",
    "diluted_shares": "dilution_pct f_score",
    "assets": "accruals_pct f_score",
    "current_assets": "f_score",
    "current_liabilities": "f_score",
    "equity": "roe_pct roic_pct debt_to_equity",
    "cash": "roic_pct",
    "long_term_debt": "roic_pct debt_to_equity f_score",
    "short_term_debt": "roic_pct debt_to_equity",
}
"""Which ratios need a figure; without a gross profit, revenue less its cost is one."""


@cases("missing", [*FIGURES, "both"])
def test_a_missing_part_gives_nothing_and_never_zero(missing: str) -> None:
    quarters = world.grown(3, 20)
    whole = company(quarters)
    both = ("gross_profit", "cost_of_revenue") if missing == "both" else (missing,)
    if missing == "net_income":
        assert read(books(world.reports(without(quarters, missing)))) is None
        return
    found = company(without(quarters, *both))
    touched = "gross_margin_pct f_score" if missing == "both" else TOUCHED.get(missing, "")
    for name, value in found.ratios.items():
        assert (value is None) == (name in touched.split()), name
        assert value is None or value == pytest.approx(whole.ratios[name]), name


def test_no_quarter_is_set_against_a_year() -> None:
    """A young company has told two quarters: it has no year yet, and no growth."""
    found = company({name: values[:2] for name, values in world.grown(2).items()})
    of_a_day = {name for name, kind in FIGURES.items() if kind.over == "day"}
    known = {name for name, amount in found.amounts.items() if not math.isnan(amount)}
    assert known == {*of_a_day, "debt", "invested", "shares"}
    assert {name for name, value in found.ratios.items() if value is not None} == {"debt_to_equity"}


def test_a_year_of_four_quarters_is_told_without_a_year_so_far() -> None:
    revenue = world.grown(4)["revenue"]
    (row,) = world.reports({"revenue": revenue[:1]})
    rows = [
        row._replace(
            begins=world.midnight(world.begin(number)),
            ends=world.midnight(world.end(number)),
            value=revenue[number],
        )
        for number in range(3, 7)
    ]
    year = of_year(books(rows).history("revenue", "USD"), world.end(6))
    assert year == pytest.approx(math.fsum(revenue[3:7]))
    # Where the fourth quarter stands in no report, the years up to it cannot be told.
    assert math.isnan(of_year(books(rows[1:]).history("revenue", "USD"), world.end(6)))


def test_what_was_restated_counts_from_its_restating_on() -> None:
    """Shares were split twenty to one: what was filed before is as it was filed."""
    quarters = world.grown(6, 16)
    rows = world.reports(quarters, restated={14: 20.0})
    before, after = (of(rows, number) for number in (13, 14))
    assert before.amounts["shares"] == pytest.approx(quarters["shares_outstanding"][13])
    assert after.amounts["shares"] == pytest.approx(20 * quarters["shares_outstanding"][14])
    # The report after the split tells the year before anew, so nothing was issued.
    assert after.ratios["dilution_pct"] == pytest.approx(
        100 * (quarters["diluted_shares"][14] / quarters["diluted_shares"][10] - 1)
    )


def test_a_loss_has_margins_and_no_growth_from_it() -> None:
    quarters = world.grown(9, 12) | {"net_income": [-5.0] * 8 + [5.0] * 4}
    found = company(quarters)
    assert found.ratios["net_margin_pct"] is not None
    assert found.ratios["net_margin_pct"] > 0.0
    assert found.ratios["earnings_growth_pct"] is None
    lost = company(world.grown(9, 12) | {"net_income": [5.0] * 8 + [-5.0] * 4})
    assert lost.ratios["earnings_growth_pct"] == pytest.approx(-200.0)


def test_a_company_counts_as_long_as_its_next_report_may_take() -> None:
    rows = world.reports(world.grown(1, 16))
    years = [row for row in rows if (row.ends - row.begins) > 360 * DAY]
    halves = [
        row
        for row in rows
        if (row.ends.month in (6, 12) and row.begins.month == 1) or row.begins == row.ends
    ]
    for told, step in ((rows, 90), (halves, 181), (years, 365)):
        found = of(told)
        assert step <= (found.valid - REPORT_DELAY).days <= step + 3


def weeks(number: int) -> tuple[datetime, datetime]:
    """Return a quarter of 13 weeks, every fourth year's last of 14."""
    count = 13 * number + number // 16
    begins = world.midnight(date(2017, 1, 1)) + count * 7 * DAY
    return begins, begins + ((14 if number % 16 == 15 else 13) * 7 - 1) * DAY


def test_a_year_of_52_or_53_weeks_is_a_year() -> None:
    """A company that ends its quarters on a weekday: AAPL's, and the 53rd week of some years."""
    quarters = world.grown(4, 24)
    dated = {world.end(number): weeks(number)[1] for number in range(24)}
    begun = {world.begin(number): weeks(number)[0] for number in range(24)}
    rows = [
        row._replace(
            begins=dated[row.ends.date()] if row.begins == row.ends else begun[row.begins.date()],
            ends=dated[row.ends.date()],
        )
        for row in world.reports(quarters)
    ]
    for last in (17, 19, 22, 23):
        found = of(rows, last)
        assert found.ends == weeks(last)[1].date()
        for name, value in reckoned(quarters, last).items():
            assert found.ratios[name] == pytest.approx(value, rel=1e-9, abs=1e-9), (last, name)


def sold(at: int, share: float) -> list[FactRow]:
    """Return a company that sells a part at a quarter: its reports tell what is left, then as now.

    A quarter's report tells the quarters of the year before anew, but not the whole year.
    """
    whole = world.grown(5, 24)
    left = {
        name: [value * (1.0 - share) for value in values] if name == "revenue" else values
        for name, values in whole.items()
    }
    before = [row for row in world.reports(whole) if row.known_at < world.known(at)]
    return [*before, *(row for row in world.reports(left) if row.known_at >= world.known(at))]


def test_what_is_left_of_a_company_is_not_put_together_with_what_it_was() -> None:
    """The quarter after the sale: a year of the whole, less and plus quarters of what is left."""
    rows = sold(18, 0.4)
    found = of(rows, 18)
    assert math.isnan(found.amounts["revenue"])
    assert found.ratios["revenue_growth_pct"] is None
    assert not math.isnan(found.amounts["net_income"])
    # The year's report tells the year before anew: both are of what is left.
    year = of(rows, 19)
    wanted = reckoned(world.grown(5, 24), 19)
    assert year.ratios["revenue_growth_pct"] == pytest.approx(wanted["revenue_growth_pct"])
    # A quarter later the year before last stands as it was.
    later = of(rows, 20)
    assert not math.isnan(later.amounts["revenue"])
    assert later.ratios["revenue_growth_pct"] is None


@pytest.mark.parametrize("quarter", [14, 15, 18])
@pytest.mark.parametrize(
    ("figure", "amount"), [("revenue", "revenue"), ("operating_cash_flow", "free_cash_flow")]
)
def test_one_period_that_is_missing_gives_nothing_that_needs_it(
    quarter: int, figure: str, amount: str
) -> None:
    """The part of the last year, the last whole year, and the part of this year."""
    rows, ends = world.reports(world.grown(6, 19)), world.midnight(world.end(quarter))
    fewer = [row for row in rows if row.figure != figure or row.ends != ends]
    assert not math.isnan(of(rows).amounts[amount])
    assert math.isnan(of(fewer).amounts[amount])


def test_a_month_and_another_currency_in_a_file_hide_no_report_and_are_not_mixed_in() -> None:
    rows = world.reports(world.grown(7, 14))
    last = rows[-1]
    month = last._replace(
        figure="net_income", begins=last.ends + DAY, ends=last.ends + 30 * DAY, value=3.0,
        unit="USD", source="mine.csv",
    )  # fmt: skip
    euro = month._replace(begins=last.ends + DAY, ends=last.ends + 91 * DAY, unit="EUR")
    found, plain = of([*rows, month, euro]), of(rows)
    assert replace(found, valid=plain.valid) == plain
    equities = [row._replace(unit="EUR") for row in rows if row.figure == "equity"]
    mixed = of([*rows, *equities])
    assert mixed.currency == "USD" and math.isnan(mixed.amounts["equity"])


def test_a_file_that_names_the_end_of_the_month_stands_beside_filings() -> None:
    """EDGAR's quarter ends on its last Saturday, the file's on the last of the month."""
    rows = world.reports(world.grown(8, 14))
    moved = [
        row._replace(
            begins=row.begins + (2 * DAY if row.begins == row.ends else timedelta()),
            ends=row.ends + 2 * DAY,
        )
        if row.figure in ("equity", "cash")
        else row
        for row in rows
    ]
    found, plain = of(moved), of(rows)
    assert found.ratios["roic_pct"] == plain.ratios["roic_pct"]


@pytest.mark.parametrize("value", [1e-320, 1e-12, 0.0])
def test_a_whole_next_to_nothing_makes_no_ratio(value: float) -> None:
    quarters = world.grown(9, 14) | {"equity": [value] * 14, "interest_expense": [value] * 14}
    found = company(quarters)
    assert found.ratios["debt_to_equity"] is None
    assert found.ratios["interest_cover"] is None
    for name in found.ratios:
        ratio = found.ratios[name]
        assert ratio is None or math.isfinite(ratio), name


@pytest.mark.parametrize(
    ("ticker", "factor", "counts"),
    [
        ("ACME", 1.0, True),
        *(("ACME", factor, False) for factor in (0.001, 0.5, 2.0, 1000.0)),
        # Without a count the mean of the diluted shares stands for it, but not for one class.
        ("ACME", None, True),
        ("BRK.B", None, False),
        ("BF-B", None, False),
    ],
)
def test_a_count_of_shares_that_is_no_count_is_none(
    ticker: str, factor: float | None, counts: bool
) -> None:
    quarters = dict(world.grown(2, 14))
    told = quarters.pop("shares_outstanding")
    if factor:
        quarters["shares_outstanding"] = [value * factor for value in told]
    found = of(world.reports(quarters, ticker=ticker))
    assert math.isnan(found.amounts["shares"]) != counts


@pytest.mark.parametrize("wrong", [0.9, 4.0])
def test_a_slip_in_a_file_that_was_mended_hides_nothing(wrong: float) -> None:
    """The right value counts a second later; a later report tells that quarter again."""
    rows, mended = world.reports(world.grown(3, 15)), list[FactRow]()
    for row in rows:
        if row.figure == "revenue" and row.known_at == world.known(13):
            mended.append(row._replace(value=row.value * wrong))
            row = row._replace(known_at=row.known_at + timedelta(seconds=1))  # noqa: PLW2901
        mended.append(row)
    mended.sort(key=lambda row: row.known_at)
    for number in (13, 14):
        as_of = world.known(number) + DAY
        assert read(books(mended, as_of)) == read(books(rows, as_of))


def test_a_report_counts_from_its_first_word() -> None:
    rows = world.reports(world.grown(3, 14))
    last = world.known(13)
    amended = [row._replace(known_at=last + 60 * DAY) for row in rows if row.known_at == last]
    found = of([*rows, *amended])
    assert found.filed == last


def test_only_the_vocabulary_is_heard() -> None:
    odd = world.reports({"net_income": [1.0] * 4})[0]._replace(figure="tips_and_tricks")
    period = odd._replace(figure="assets", ends=odd.begins + 9 * DAY)
    told = books([odd, period])
    assert told.newest("tips_and_tricks") is None
    assert told.newest("assets") is None


def test_what_a_desk_saw_late_counts_from_its_sight() -> None:
    rows = world.reports(world.grown(1, 8))
    late = world.known(7) + 30 * DAY
    stored = [
        StoredFact(row, late if row.known_at == world.known(7) else row.known_at, number)
        for number, row in enumerate(rows)
    ]
    for live, wanted in ((True, world.end(6)), (False, world.end(7))):
        history, other = CompanyHistory(live=live), CompanyHistory(live=live)
        history.add(stored)
        for row in reversed(stored):
            other.add([row])
        then = history.then(world.known(7) + DAY)
        assert of(then).ends == wanted and then == other.then(world.known(7) + DAY)
        assert history.then(late) is history.then(late + DAY)
        assert all(before.known_at <= after.known_at for before, after in pairwise(then))
