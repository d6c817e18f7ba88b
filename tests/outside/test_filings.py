"""What EDGAR's files say of a company: each value as it was filed, from the moment it was known."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.conftest import Scale
from tests.doubles import edgar_payloads as edgar
from tests.doubles.edgar_payloads import AAPL, concept, submissions, value
from torra.collecting.line import SourceError
from torra.evidence.company_facts import FIGURES, Books, at_day, of_year
from torra.evidence.news_digest import NewsStatus
from torra.outside.answers import ALL_LATER, MAX_REASONS, FactsAnswer
from torra.outside.concepts import CHAINS, Concept
from torra.outside.filings import (
    FORMS,
    accepted_at,
    edgar_ticker,
    end_of_filing_day,
    read_concept,
    read_submissions,
    read_tickers,
    reported,
)

NOW = datetime(2026, 2, 13, 12, tzinfo=UTC)
S = NewsStatus
ONE, TWO, THREE = (f"0000320193-{year}-000001" for year in (22, 23, 24))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def told(
    figure: str,
    *payloads: dict[str, Any],
    cik: int = AAPL,
    stamps: dict[str, datetime] | None = None,
    now: datetime = NOW,
) -> FactsAnswer:
    """Read the files of a figure as they come over the wire."""
    whole = json.loads(json.dumps(payloads))
    files = [read_concept(figure, Concept(one["taxonomy"], one["tag"]), cik, one) for one in whole]
    return reported("AAPL", figure, files, stamps or {}, now)


def values(found: FactsAnswer) -> list[tuple[str, float]]:
    return [(row.ends.date().isoformat(), row.value) for row in found.items]


def known_then(found: FactsAnswer, as_of: str) -> dict[tuple[datetime, datetime], float]:
    """Return what a reader of rows sees at a moment: of each period the newest value."""
    seen = [row for row in found.items if row.known_at <= moment(as_of)]
    return {(row.begins, row.ends): row.value for row in seen}


def year(end: str, val: Any, accn: str, **more: Any) -> dict[str, Any]:
    """A value of a calendar year in the annual report that follows."""
    filed = f"{2000 + int(accn[11:13])}-02-10"
    return value(f"{end}-12-31", val, accn, filed, start=f"{end}-01-01", **more)


# --- the published traps --------------------------------------------------------------------------


def test_a_comparative_column_is_of_its_own_year_whatever_fy_it_carries() -> None:
    found = told("assets", edgar.aapl_assets())
    assert (found.status, found.dropped, found.left_out) == (S.AVAILABLE, 0, 0)
    first, second = moment("2022-10-29 03:59:59"), moment("2023-11-04 03:59:59")
    assert [(*told_of[:4], told_of[4], told_of[7]) for told_of in found.items] == [
        ("AAPL", "assets", moment(end), moment(end), known, f"edgar 10-K {accession}")
        for end, known, accession in (
            ("2021-09-25", first, edgar.AAPL_2022),
            ("2022-09-24", first, edgar.AAPL_2022),
            ("2022-09-24", second, edgar.AAPL_2023),
            ("2023-09-30", second, edgar.AAPL_2023),
        )
    ]
    newest = max(found.items, key=lambda row: (row.ends, row.known_at))
    assert newest.value == 352_583e6, "not 352,755: that is 2022's"
    assert {row.unit for row in found.items} == {"USD"}


def test_the_newest_filing_does_not_make_its_comparative_instant_the_newest_one() -> None:
    found = told("equity", edgar.aapl_equity())
    assert len({row.known_at for row in found.items}) == 1 and len(found.items) == 5
    newest = max(found.items, key=lambda row: (row.ends, row.known_at))
    assert (newest.ends, newest.value) == (moment("2025-03-29"), 66_796e6)
    assert (moment("2023-12-30"), 74_100e6) in [(row.ends, row.value) for row in found.items]


def test_shares_are_those_that_were_filed_until_a_filing_tells_them_after_the_split() -> None:
    found = told("diluted_shares", edgar.amzn_shares(), cik=edgar.AMZN)
    whole_year = moment("2020-01-01"), moment("2020-12-31")
    assert known_then(found, "2021-01-30 04:59:58") == {}
    assert known_then(found, "2021-01-30 04:59:59") == {whole_year: 510e6}
    assert known_then(found, "2023-02-04 04:59:58") == {whole_year: 510e6}
    assert known_then(found, "2023-02-04 04:59:59") == {whole_year: 10_198e6}
    assert {row.unit for row in found.items} == {"shares"}


def books_then(found: FactsAnswer, as_of: str) -> Books:
    """Return what a reader of the company has in its books at a moment."""
    books = Books()
    for row in sorted(found.items, key=lambda one: one.known_at):
        if row.known_at <= moment(as_of):
            books.add(row)
    return books


def test_the_published_traps_are_not_walked_into_by_who_reads_the_books() -> None:
    assets = books_then(told("assets", edgar.aapl_assets()), "2023-11-05").history("assets", "USD")
    assert at_day(assets, date(2023, 9, 30)) == 352_583e6
    assert at_day(assets, date(2022, 9, 24)) == 352_755e6
    equity = books_then(told("equity", edgar.aapl_equity()), "2026-01-01")
    newest = equity.newest("equity")
    assert newest is not None and newest.value == 66_796e6
    shares = told("diluted_shares", edgar.amzn_shares(), cik=edgar.AMZN)
    for as_of, count in (("2021-02-01", 510e6), ("2023-02-05", 10_198e6)):
        of_2020 = books_then(shares, as_of).history("diluted_shares", "shares")
        assert of_year(of_2020, date(2020, 12, 31)) == count


@pytest.mark.parametrize(
    ("ticker", "whole"), [("PG", 83_062e6), ("GIS", 19_857e6), ("CATO", 708_059e3)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_of_two_concepts_of_revenue_in_a_filing_the_larger_is_the_whole(
    ticker: str, whole: float, turned: bool
) -> None:
    files = [*edgar.two_revenues(ticker)]
    found = told("revenue", *(reversed(files) if turned else files), cik=edgar.CIKS[ticker])
    assert [row.value for row in found.items] == [whole]
    assert (found.status, found.left_out, found.dropped) == (S.AVAILABLE, 1, 0)


def test_the_declared_unit_counts_and_not_the_first_one() -> None:
    """EPS in USD and shares, or in another currency: edgartools #946."""
    usd = [value("2022-12-31", 5, ONE, "2022-12-31"), year("2021", 100e9, ONE)]
    other: dict[str, Any] = {
        "EUR": [year("2021", 90e9, ONE)],
        "USD/shares": [year("2021", 6.11, ONE)],
    }
    for units in (other, dict(reversed(other.items()))):
        found = told("net_income", concept(AAPL, "NetIncomeLoss", usd[1], **units))
        assert values(found) == [("2021-12-31", 100e9)] and found.left_out == 2
    shares = concept(AAPL, "WeightedAverageNumberOfDilutedSharesOutstanding", usd[1])
    found = told("diluted_shares", shares)
    assert (found.status, found.items, found.left_out) == (S.EMPTY, (), 1)


# --- when it was known ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "known"),
    [
        # Genuine UTC: the other reading is later, and costs five hours.
        ("2025-12-19T22:14:45.000Z", "2025-12-20 03:14:45"),
        # New York's clock with a Z, as U.S. Steel's and Hess's: the reading as UTC is too early.
        ("2025-05-01T16:21:59.000Z", "2025-05-01 20:21:59"),
        ("2025-04-30T07:30:32.000Z", "2025-04-30 11:30:32"),
        ("2025-01-30T16:30:00.250Z", "2025-01-30 21:30:01"),
        ("2025-01-30T16:30:00", "2025-01-30 21:30:00"),
        ("2025-01-30T16:30:00+00:00", "2025-01-30 21:30:00"),
        # Twice in New York: the second.
        ("2025-11-02T01:30:00.000Z", "2025-11-02 06:30:00"),
    ],
)
def test_of_both_readings_of_a_stamp_the_later_counts(stamp: str, known: str) -> None:
    assert accepted_at(stamp) == moment(known)


@pytest.mark.parametrize(
    "stamp",
    [None, 5, True, "", "2025-01-30", "2025-13-30T16:30:00.000Z", "0001-01-01T00:00:00.000Z",
     "9999-12-31T23:59:59.000Z", "2025-01-30T16:30:00-05:00", "٢٠٢٥-01-30T16:30:00Z", ["x"]],
)  # fmt: skip
def test_what_is_no_stamp_is_none(stamp: Any) -> None:
    assert accepted_at(stamp) is None


def test_a_filing_is_known_from_its_acceptance_and_one_not_listed_from_the_end_of_its_day() -> None:
    listed = read_submissions(
        submissions(
            AAPL,
            (edgar.AAPL_2023, "10-K", "2023-11-03", "2023-11-02T22:08:27.000Z"),
            (TWO, "10-Q", "2023-08-04", "no stamp"),
        ),
        AAPL,
    )
    assert listed.stamps == {edgar.AAPL_2023: moment("2023-11-03 02:08:27")}
    assert listed.read == {edgar.AAPL_2023, TWO} and not listed.foreign
    found = told("assets", edgar.aapl_assets(), stamps=dict(listed.stamps))
    assert {row.known_at for row in found.items} == {
        end_of_filing_day(date(2022, 10, 28)), moment("2023-11-03 02:08:27"),
    }  # fmt: skip
    assert end_of_filing_day(date(2022, 10, 28)) == moment("2022-10-29 03:59:59")
    assert end_of_filing_day(date(2022, 1, 28)) == moment("2022-01-29 04:59:59")


def test_of_all_filings_those_whose_values_are_read_are_named() -> None:
    rows = [
        ("0000320193-24-000006", "8-K", "2024-02-05", ""),
        (THREE, "10-Q", "2024-02-02", ""),
        (TWO, "10-K/A", "2023-02-02", ""),
        ("odd", "10-K", "2023-02-01", ""),
    ]
    found = read_submissions(submissions(AAPL, *rows), AAPL)
    assert found.read == {THREE, TWO} and not found.stamps


def test_a_value_that_was_amended_is_a_row_of_its_own() -> None:
    found = told(
        "net_income",
        concept(
            AAPL, "NetIncomeLoss", year("2021", 100, ONE), year("2021", 90, TWO, form="10-K/A")
        ),
    )
    assert [(row.value, row.source) for row in found.items] == [
        (100, f"edgar 10-K {ONE}"), (90, f"edgar 10-K/A {TWO}"),
    ]  # fmt: skip
    assert found.items[0].known_at < found.items[1].known_at


def test_what_was_accepted_before_its_period_ended_is_refused() -> None:
    stamps = {ONE: moment("2021-12-30 12:00:00")}
    found = told("assets", concept(AAPL, "Assets", value("2021-12-31", 1, ONE, "2022-02-10")),
                 stamps=stamps)  # fmt: skip
    assert (found.status, found.items, found.dropped) == (S.BROKEN, (), 1)
    assert found.reasons == ("1 accepted before their period ended",)


def test_a_filing_of_the_future_is_left_out_until_it_is_one_of_today() -> None:
    payload = concept(AAPL, "Assets", value("2025-12-31", 1, THREE, "2026-02-20"))
    early = told("assets", payload)
    assert (early.status, early.detail, early.dropped) == (S.EMPTY, ALL_LATER, 1)
    assert len(told("assets", payload, now=moment("2026-02-19 12:00")).items) == 1


# --- which concept counts -------------------------------------------------------------------------

NET = "SalesRevenueNet"
CONTRACT = "RevenueFromContractWithCustomerExcludingAssessedTax"


def quarter(number: int, of: str, val: Any, accn: str, **more: Any) -> dict[str, Any]:
    start, end = (("01-01", "03-31"), ("04-01", "06-30"), ("07-01", "09-30"))[number - 1]
    filed = f"{of}-{3 * number + 1:02}-28"
    return value(f"{of}-{end}", val, accn, filed, start=f"{of}-{start}", form="10-Q", **more)


def test_a_part_that_a_quarterly_report_tells_alone_does_not_stand_beside_the_whole() -> None:
    whole = concept(
        AAPL, NET, year("2021", 83, ONE), quarter(1, "2022", 20, "0000320193-22-000002")
    )
    part = concept(
        AAPL, "Revenues", year("2021", 29, ONE), quarter(2, "2022", 7, "0000320193-22-000003")
    )
    found = told("revenue", part, whole)
    assert values(found) == [("2021-12-31", 83), ("2022-03-31", 20)], "and no 7"
    assert found.left_out == 2


def test_a_new_name_of_the_whole_counts_from_its_first_filing() -> None:
    """The rules of 2018 gave revenue another concept: no year without any."""
    old = concept(AAPL, NET, year("2021", 83, ONE), year("2020", 80, ONE))
    new = concept(
        AAPL, CONTRACT, quarter(1, "2022", 21, "0000320193-22-000002"),
        year("2022", 85, TWO), year("2021", 82, TWO),
    )  # fmt: skip
    found = told("revenue", old, new)
    assert values(found) == [
        ("2021-12-31", 83), ("2020-12-31", 80), ("2022-03-31", 21), ("2022-12-31", 85),
        ("2021-12-31", 82),
    ]  # fmt: skip


def test_a_filing_speaks_by_one_concept_and_its_fallback_fills_no_hole() -> None:
    """Equity with minorities in the column of a year would be another quantity than without."""
    parent = concept(AAPL, "StockholdersEquity", value("2021-12-31", 60, ONE, "2022-02-10"))
    both = concept(
        AAPL,
        "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest",
        value("2021-12-31", 65, ONE, "2022-02-10"),
        value("2020-12-31", 61, ONE, "2022-02-10"),
        value("2022-12-31", 70, TWO, "2023-02-10"),
    )
    found = told("equity", both, parent)
    assert values(found) == [("2021-12-31", 60), ("2022-12-31", 70)]
    assert found.left_out == 2


def test_a_last_quarter_that_ends_with_the_year_does_not_stand_for_the_year() -> None:
    """Apple's annual report of 2018 tells 62,900 M of its last quarter by another concept."""
    last: dict[str, Any] = {"start": "2018-07-01", "form": "10-K"}
    quarter_alone = concept(
        AAPL, "Revenues", value("2018-09-29", 62_900e6, ONE, "2018-11-05", **last)
    )
    whole = concept(AAPL, CONTRACT, value("2018-09-29", 9e6, ONE, "2018-11-05", start="2017-10-01"))
    assert values(told("revenue", quarter_alone, whole)) == [("2018-09-29", 9e6)]


def test_a_concept_told_for_older_days_alone_does_not_lead() -> None:
    old = concept(AAPL, "StockholdersEquity", value("2020-12-31", 60, ONE, "2022-02-10"))
    both = concept(
        AAPL,
        "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest",
        value("2021-12-31", 65, ONE, "2022-02-10"),
    )
    assert values(told("equity", old, both)) == [("2021-12-31", 65)]


def _many_filings(chance: random.Random) -> list[dict[str, Any]]:
    """Return the files of ten years of revenue, told now by one concept and now by others."""
    files = {name: concept(AAPL, name) for name in CHAINS["revenue"].us}
    for number in range(40):
        accn, of = f"0000320193-{10 + number // 4:02}-{number % 4 + 1:06}", f"{2010 + number // 4}"
        for payload in chance.sample([*files.values()], chance.choice((1, 1, 2, 3))):
            for back in range(chance.choice((1, 2))):
                before = str(int(of) - back)
                row = (
                    year(str(int(before) - 1), chance.randrange(100), accn)
                    if number % 4 == 0
                    else quarter(number % 4, before, chance.randrange(100), accn)
                    | {"filed": f"{of}-{3 * (number % 4) + 1:02}-28"}
                )
                payload["units"]["USD"].append(row)
    return [*files.values()]


def _filed_by(files: Sequence[dict[str, Any]], moment: datetime) -> list[dict[str, Any]]:
    """Return the files as they stood at a moment."""
    then = copy.deepcopy([*files])
    for payload in then:
        payload["units"]["USD"] = [
            row
            for row in payload["units"]["USD"]
            if end_of_filing_day(date.fromisoformat(row["filed"])) <= moment
        ]
    return then


@pytest.mark.journey
def test_what_a_later_filing_tells_changes_nothing_of_what_was_known_before(scaled: Scale) -> None:
    """At 1,000 cuts: what was told up to a moment gives the rows of all filings up to there."""
    cuts, seed = 0, 0
    while cuts < scaled(1_000, 120):
        files, seed = _many_filings(random.Random(seed)), seed + 1
        whole = told("revenue", *files)
        moments = sorted({row.known_at for row in whole.items})
        assert len(moments) > 20
        for cut in moments:
            found = told("revenue", *_filed_by(files, cut))
            assert found.items == tuple(row for row in whole.items if row.known_at <= cut)
        cuts += len(moments)


def test_shares_are_those_of_the_cover_and_of_the_balance_sheet_where_the_cover_has_none() -> None:
    cover = concept(
        AAPL, "EntityCommonStockSharesOutstanding", value("2022-01-20", 15, ONE, "2022-02-10"),
        unit="shares", taxonomy="dei",
    )  # fmt: skip
    sheet = concept(
        AAPL, "CommonStockSharesOutstanding", value("2021-12-31", 16, ONE, "2022-02-10"),
        unit="shares",
    )  # fmt: skip
    assert values(told("shares_outstanding", sheet, cover)) == [("2022-01-20", 15)]
    assert values(told("shares_outstanding", sheet)) == [("2021-12-31", 16)]


def debts(*told_of: tuple[str, str, float, str]) -> list[dict[str, Any]]:
    """Files of short-term debt: concept, day, amount and accession of each value."""
    files: dict[str, dict[str, Any]] = {}
    for name, day, amount, accession in told_of:
        filed = f"{2000 + int(accession[11:13])}-02-10"
        files.setdefault(name, concept(AAPL, name))["units"]["USD"].append(
            value(day, amount, accession, filed)
        )
    return [*files.values()]


def test_without_a_total_the_parts_of_short_term_debt_are_added() -> None:
    """Apple tells what falls due, 9,822 M in 2023, beside 5,985 M of commercial paper."""
    apple = debts(
        ("LongTermDebtCurrent", "2023-09-30", 9_822e6, THREE),
        ("CommercialPaper", "2023-09-30", 5_985e6, THREE),
        ("LongTermDebtCurrent", "2022-09-24", 11_128e6, THREE),
        ("CommercialPaper", "2022-09-24", 9_982e6, THREE),
        ("LongTermDebtCurrent", "2021-09-25", 9_613e6, THREE),
    )
    both = [("2023-09-30", 15_807e6), ("2022-09-24", 21_110e6)]
    assert values(told("short_term_debt", *apple)) == both, "and no day of one part alone"
    assert values(told("short_term_debt", *apple[::-1])) == both
    total = debts(("DebtCurrent", "2023-09-30", 15_900e6, THREE))
    found = told("short_term_debt", *apple, *total)
    assert values(found) == [("2023-09-30", 15_900e6)]


def test_a_day_that_tells_a_kind_more_than_the_newest_is_no_part_of_it() -> None:
    """Commercial paper was paid back: last year's sum of both is not told anew as one of them."""
    both = debts(
        ("LongTermDebtCurrent", "2022-09-24", 9, TWO),
        ("CommercialPaper", "2022-09-24", 6, TWO),
    )
    assert values(told("short_term_debt", *both)) == [("2022-09-24", 15)]
    one = debts(
        ("LongTermDebtCurrent", "2022-09-24", 9, TWO),
        ("CommercialPaper", "2022-09-24", 6, TWO),
        ("LongTermDebtCurrent", "2023-09-30", 10, THREE),
        ("LongTermDebtCurrent", "2022-09-24", 9, THREE),
        ("CommercialPaper", "2022-09-24", 6, THREE),
    )
    assert values(told("short_term_debt", *one)) == [("2022-09-24", 15), ("2023-09-30", 10)]


def test_paper_is_not_added_to_the_borrowings_that_hold_it() -> None:
    found = told("short_term_debt", *debts(
        ("CommercialPaper", "2023-09-30", 6, THREE),
        ("ShortTermBorrowings", "2023-09-30", 8, THREE),
        ("LongTermDebtCurrent", "2023-09-30", 10, THREE),
    ))  # fmt: skip
    assert values(found) == [("2023-09-30", 18)]
    alone = told("short_term_debt", *debts(("ShortTermBorrowings", "2023-09-30", 8, THREE)))
    assert values(alone) == [("2023-09-30", 8)]


def test_every_figure_has_a_chain_and_no_concept_twice() -> None:
    assert {*CHAINS} == {*FIGURES}
    asked = [one for chain in CHAINS.values() for one in chain.concepts(foreign=True)]
    assert len(asked) == len({*asked})
    at_home = [one for chain in CHAINS.values() for one in chain.concepts(foreign=False)]
    assert len(at_home) <= 36 and {one.taxonomy for one in at_home} == {"us-gaap", "dei"}


# --- a company's own currency ---------------------------------------------------------------------


def test_a_foreign_company_is_read_in_its_own_currency_and_the_row_says_which() -> None:
    own: dict[str, Any] = {
        "CNY": [year("2021", 700, ONE, form="20-F"), year("2020", 600, ONE, form="20-F")]
    }
    convenient = concept(AAPL, "Revenue", year("2021", 100, ONE, form="20-F"),
                         taxonomy="ifrs-full", **own)  # fmt: skip
    found = told("revenue", convenient)
    assert [(row.value, row.unit) for row in found.items] == [(700, "CNY"), (600, "CNY")]
    alone = concept(AAPL, "Revenue", *own["CNY"], unit="CNY", taxonomy="ifrs-full")
    assert told("revenue", alone).items == found.items
    in_dollars = concept(AAPL, "Revenue", *own["CNY"], taxonomy="ifrs-full")
    assert {row.unit for row in told("revenue", in_dollars).items} == {"USD"}


def test_a_company_of_10_k_reports_is_read_in_usd_alone() -> None:
    found = told("revenue", concept(AAPL, "Revenues", year("2021", 700, ONE), unit="CAD"))
    assert (found.status, found.items, found.left_out) == (S.EMPTY, (), 1)


# --- what is refused ------------------------------------------------------------------------------

GOOD = year("2021", 100, ONE)
ODD: dict[str, dict[str, Any]] = {
    "no accession": {"accn": "320193-22-1"},
    "no form": {"form": None},
    "no number": {"val": True},
    "no day as end": {"end": "2021-12-32"},
    "no day as start": {"start": None},
    "no day as filed": {"filed": "soon"},
    "filed before its period ended": {"filed": "2021-12-30"},
    "it begins after it ends": {"start": "2022-01-01"},
}


@pytest.mark.parametrize("why", ODD)
def test_a_value_that_cannot_be_taken_is_counted_with_its_reason(why: str) -> None:
    found = told(
        "net_income", concept(AAPL, "NetIncomeLoss", {**GOOD, **ODD[why]}, year("2020", 90, ONE))
    )
    assert values(found) == [("2020-12-31", 90)]
    assert found.dropped == 1 and found.reasons == (f"NetIncomeLoss, value 1: {why}",)


@pytest.mark.parametrize(
    "val", [None, "100", [], {}, False, float("nan"), float("inf"), -float("inf"), 10**400, 2e15]
)
def test_a_value_that_is_no_number_is_refused(val: Any) -> None:
    found = told("net_income", concept(AAPL, "NetIncomeLoss", {**GOOD, "val": val}))
    assert (found.status, found.items, found.dropped) == (S.BROKEN, (), 1)


@pytest.mark.parametrize("val", [-5, 0])
def test_no_company_has_no_shares(val: int) -> None:
    name = "WeightedAverageNumberOfDilutedSharesOutstanding"
    found = told("diluted_shares", concept(AAPL, name, {**GOOD, "val": val}, unit="shares"))
    assert found.items == () and found.reasons[0].endswith("shares that are none")
    loss = told("net_income", concept(AAPL, "NetIncomeLoss", {**GOOD, "val": -5}))
    assert values(loss) == [("2021-12-31", -5)], "a loss is a value"


@pytest.mark.parametrize(
    ("start", "taken"),
    [("2021-10-01", True), ("2021-09-12", True), ("2021-07-01", True), ("2021-04-01", True),
     ("2020-12-28", True), ("2021-12-01", False), ("2021-08-15", False), ("2019-01-01", False)],
)  # fmt: skip
def test_quarters_halves_nine_months_and_years_are_read_and_odd_spans_are_not(
    start: str, taken: bool
) -> None:
    found = told("net_income", concept(AAPL, "NetIncomeLoss", {**GOOD, "start": start}))
    assert (len(found.items), found.left_out, found.dropped) == (taken, not taken, 0)


@pytest.mark.parametrize("form", ["8-K", "S-1", "10-KT", "NT 10-K", "10-K405"])
def test_other_forms_are_left_out(form: str) -> None:
    assert form not in FORMS and len(FORMS) == 8
    found = told("net_income", concept(AAPL, "NetIncomeLoss", {**GOOD, "form": form}))
    assert (found.status, found.items, found.left_out, found.dropped) == (S.EMPTY, (), 1, 0)


def test_the_same_value_twice_is_one_row_and_another_one_is_none() -> None:
    again = {**GOOD, "frame": "CY2021"}
    found = told("net_income", concept(AAPL, "NetIncomeLoss", GOOD, again, GOOD))
    assert len(found.items) == 1 and found.dropped == 0
    torn = told("net_income", concept(AAPL, "NetIncomeLoss", GOOD, {**again, "val": 101}, GOOD))
    assert (torn.items, torn.dropped) == ((), 3)
    assert torn.reasons[0].endswith("told twice in one filing, and differently")


def test_a_day_s_figure_with_a_period_is_refused() -> None:
    found = told("assets", concept(AAPL, "Assets", GOOD))
    assert found.items == () and found.reasons[0].endswith("the figure is of a day")


def test_reasons_are_bounded_and_never_quote_the_reply() -> None:
    rows = [{**GOOD, "accn": "CANARY <script>", "val": number} for number in range(100)]
    found = told("net_income", concept(AAPL, "NetIncomeLoss", *rows, CANARY="CANARY"))
    assert found.dropped == 101 and len(found.reasons) == MAX_REASONS
    assert "CANARY" not in repr(found)


# --- what is no such file -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"units": []}, "no file of a concept"),
        ({"tag": "Revenues"}, "another concept"),
        ({"taxonomy": "dei"}, "another concept"),
        ({"cik": 1}, "another company"),
        ({"cik": True}, "another company"),
    ],
)
def test_the_file_of_something_else_is_trouble(change: dict[str, Any], words: str) -> None:
    asked = Concept("us-gaap", "Assets")
    with pytest.raises(SourceError, match=words) as trouble:
        read_concept("assets", asked, AAPL, edgar.aapl_assets() | change)
    assert trouble.value.status is S.BROKEN
    odd: Any
    for odd in (None, [], "x", 5):
        with pytest.raises(SourceError, match="no file"):
            read_concept("assets", asked, AAPL, odd)


def test_submissions_that_are_no_table_are_trouble() -> None:
    good = submissions(AAPL, (ONE, "10-K", "2022-02-10", "2022-02-10T16:00:00.000Z"))
    recent = good["filings"]["recent"]
    changes: Sequence[tuple[Any, str]] = (
        (None, "no file"), ({}, "no file"), ({**good, "cik": "1"}, "another company"),
        ({**good, "filings": {"recent": {**recent, "form": []}}}, "differ in length"),
        ({**good, "filings": {"recent": {**recent, "form": None}}}, "other columns"),
    )  # fmt: skip
    for payload, words in changes:
        with pytest.raises(SourceError, match=words):
            read_submissions(payload, AAPL)
    assert read_submissions(good, AAPL).read == {ONE}
    assert read_submissions({**good, "cik": AAPL}, AAPL).read == {ONE}


def test_a_foreign_filer_is_told_by_its_forms() -> None:
    for form, foreign in (("20-F", True), ("40-F/A", True), ("6-K", False), ("10-K", False)):
        payload = submissions(AAPL, (ONE, form, "2022-02-10", ""))
        assert read_submissions(payload, AAPL).foreign is foreign


def test_tickers_are_read_by_their_names_and_strangers_are_passed_over() -> None:
    odd = {"a": 5, "b": {"ticker": "X Y", "cik_str": 1}, "c": {"ticker": "T", "cik_str": True}}
    found = read_tickers(edgar.tickers() | odd | {"d": {"ticker": "AAPL", "cik_str": 7}})
    assert found == edgar.CIKS, "the first company of a ticker stays"
    assert edgar_ticker("brk.b") == "BRK-B"
    payload: Any
    for payload in (None, [], {}, odd):
        with pytest.raises(SourceError):
            read_tickers(payload)


# --- many -----------------------------------------------------------------------------------------

JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**400, float("nan"), "", " ", "NaN", "٣", [], {}, "x" * 5000,
    "2021-12-31", "0000320193-22-000001", "10-K", {"USD": 5}, [[]], {"USD": [{}]},
)  # fmt: skip


def _damaged(payload: Any, chance: random.Random) -> Any:
    """Return a payload with junk in some of its places."""
    spoilt = copy.deepcopy(payload)
    for _ in range(chance.choice((1, 1, 2, 6))):
        at: Any = spoilt
        while True:
            keys: list[Any] = [*at] if isinstance(at, dict) else [*range(len(at))]
            if not keys:
                break
            key = chance.choice(keys)
            if isinstance(at[key], dict | list) and chance.random() < 0.85:
                at = at[key]
            elif isinstance(at, dict) and chance.random() < 0.2:
                del at[key]
                break
            else:
                at[key] = chance.choice(JUNK)
                break
    return spoilt


def test_ten_thousand_malformed_payloads_give_values_or_a_reason(scaled: Scale) -> None:
    kinds: set[tuple[NewsStatus, bool, int]] = set()
    files = edgar.two_revenues("PG")
    filed = submissions(edgar.PG, (edgar.PG_2014, "10-K", "2014-08-08", "2014-08-08T11:00:00.000Z"))
    for case in range(scaled(10_000, 600)):
        chance = random.Random(case)
        try:
            assert read_tickers(_damaged(edgar.tickers(), chance))
            stamps = read_submissions(_damaged(filed, chance), edgar.PG).stamps
            told_of = [
                read_concept("revenue", Concept("us-gaap", one["tag"]), edgar.PG,
                             _damaged(one, chance))
                for one in files
            ]  # fmt: skip
        except SourceError as trouble:
            kinds.add((trouble.status, bool(trouble.detail), -1))
            continue
        found = reported("PG", "revenue", told_of, stamps, NOW)
        kinds.add((found.status, bool(found.reasons), len(found.items)))
        for row in found.items:
            assert row.begins < row.ends < row.known_at <= NOW and abs(row.value) <= 1e15
        assert found.items or found.dropped or found.left_out or not any(
            one.facts for one in told_of
        )  # fmt: skip
    assert len(kinds) > 3, "values, reasons and trouble"
