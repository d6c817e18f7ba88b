"""EDGAR's files of a company: each value as it was filed, from the moment it was known."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.conftest import Scale
from tests.doubles import edgar_payloads as edgar
from tests.doubles.edgar_payloads import AAPL, Row, concept, submissions, value
from torra.collecting.line import SourceError
from torra.evidence.company_facts import FIGURES, Books, at_day, of_year
from torra.evidence.news_digest import NewsStatus
from torra.outside.answers import ALL_LATER, FactsAnswer, RowTally
from torra.outside.concepts import CHAINS, Concept, concepts_of
from torra.outside.filings import (
    FORMS,
    FiledValue,
    Submissions,
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
SHARES = "WeightedAverageNumberOfDilutedSharesOutstanding"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def read(
    figure: str,
    *payloads: dict[str, Any],
    cik: int = AAPL,
    stamps: Mapping[str, datetime] | None = None,
    now: datetime = NOW,
) -> FactsAnswer:
    """Read the files of a figure as they come over the wire."""
    tally, found = RowTally(), list[FiledValue]()
    chain = {one[:2]: one for one in CHAINS[figure]}
    for payload in json.loads(json.dumps(payloads)):
        asked = chain[payload["taxonomy"], payload["tag"]]
        found += read_concept(figure, asked, cik, payload, tally)
    return reported("AAPL", figure, found, stamps or {}, now, tally)


def income(*rows: Row, **units: Any) -> FactsAnswer:
    return read("net_income", concept(AAPL, "NetIncomeLoss", *rows, **units))


def year(end: str, val: Any, accn: str, **more: Any) -> Row:
    """A value of a calendar year in the annual report that follows."""
    filed = f"{2000 + int(accn[11:13])}-02-10"
    return value(f"{end}-12-31", val, accn, filed, start=f"{end}-01-01", **more)


def day(end: str, val: float, accn: str) -> Row:
    """A value of a day in an annual report."""
    return value(end, val, accn, f"{2000 + int(accn[11:13])}-02-10")


def quarter(number: int, of: str, val: Any, accn: str = "", **more: Any) -> Row:
    start, end = (("01-01", "03-31"), ("04-01", "06-30"), ("07-01", "09-30"))[number - 1]
    filed, accn = f"{of}-{3 * number + 1:02}-28", accn or f"0000320193-{of[2:]}-00000{number + 1}"
    return value(f"{of}-{end}", val, accn, filed, start=f"{of}-{start}", form="10-Q", **more)


# --- the published traps --------------------------------------------------------------------------


def test_a_comparative_column_is_of_its_own_year_whatever_fy_it_carries() -> None:
    found = read("assets", edgar.aapl_assets())
    assert (found.status, found.dropped) == (S.AVAILABLE, 0)
    first, second = moment("2022-10-29 03:59:59"), moment("2023-11-04 03:59:59")
    assert [(*row[:5], row[7]) for row in found.items] == [
        ("AAPL", "assets", moment(end), moment(end), known, f"edgar 10-K {accession}")
        for end, known, accession in (
            ("2021-09-25", first, edgar.AAPL_2022),
            ("2022-09-24", first, edgar.AAPL_2022),
            ("2022-09-24", second, edgar.AAPL_2023),
            ("2023-09-30", second, edgar.AAPL_2023),
        )
    ]
    assert {row.unit for row in found.items} == {"USD"}


def books_then(found: FactsAnswer, as_of: str) -> Books:
    """Return what a reader of the company has in its books at a moment."""
    books = Books()
    for row in sorted(found.items, key=lambda row: row.known_at):
        if row.known_at <= moment(as_of):
            books.add(row)
    return books


def test_the_published_traps_are_not_walked_into_by_who_reads_the_books() -> None:
    assets = books_then(read("assets", edgar.aapl_assets()), "2023-11-05").history("assets", "USD")
    assert at_day(assets, date(2023, 9, 30)) == 352_583e6, "not 352,755: that is 2022's"
    assert at_day(assets, date(2022, 9, 24)) == 352_755e6
    newest = books_then(read("equity", edgar.aapl_equity()), "2026-01-01").newest("equity")
    assert newest is not None and newest.value == 66_796e6
    shares = read("diluted_shares", edgar.amzn_shares(), cik=edgar.AMZN)
    for as_of, count in (
        ("2021-01-30 04:59:58", math.nan), ("2021-01-30 04:59:59", 510e6),
        ("2023-02-04 04:59:58", 510e6), ("2023-02-04 04:59:59", 10_198e6),
    ):  # fmt: skip
        of_2020 = books_then(shares, as_of).history("diluted_shares", "shares")
        assert of_year(of_2020, date(2020, 12, 31)) == pytest.approx(count, nan_ok=True)


# --- when it was known ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "known"),
    [
        # Genuine UTC: the other reading is later, and costs five hours.
        ("2025-12-19T22:14:45.000Z", "2025-12-20 03:14:45"),
        # New York's clock with a Z, as U.S. Steel's and Hess's: the reading as UTC is too early.
        ("2025-05-01T16:21:59.000Z", "2025-05-01 20:21:59"),
        ("2025-01-30T16:30:00.250Z", "2025-01-30 21:30:01"),
        ("2025-01-30T16:30:00", "2025-01-30 21:30:00"),
        ("2025-01-30T16:30:00+00:00", "2025-01-30 21:30:00"),
        # Twice in New York: the second.
        ("2025-11-02T01:30:00.000Z", "2025-11-02 06:30:00"),
        *((stamp, "") for stamp in (
            None, 5, True, "", "2025-01-30", "2025-13-30T16:30:00.000Z", "0001-01-01T00:00:00.000Z",
            "9999-12-31T23:59:59.000Z", "2025-01-30T16:30:00-05:00", "٢٠٢٥-01-30T16:30:00Z", ["x"],
        )),
    ],
)  # fmt: skip
def test_of_both_readings_of_a_stamp_the_later_counts(stamp: Any, known: str) -> None:
    assert accepted_at(stamp) == (moment(known) if known else None)


def test_a_filing_is_known_from_its_acceptance_and_one_not_listed_from_the_end_of_its_day() -> None:
    rows = [
        ("0000320193-24-000006", "8-K", "2024-02-05", ""),
        (edgar.AAPL_2023, "10-K", "2023-11-03", "2023-11-02T22:08:27.000Z"),
        (edgar.AAPL_2023, "10-K", "2023-11-03", "2023-11-02T20:08:27.000Z"),
        (TWO, "10-Q", "2023-08-04", "no stamp"),
        (ONE, "10-K/A", "2023-02-02", ""),
        ("odd", "10-K", "2023-02-01", ""),
    ]
    listed = read_submissions(submissions(AAPL, *rows), AAPL)
    assert listed.stamps == {edgar.AAPL_2023: moment("2023-11-03 02:08:27")}
    assert listed.read == {edgar.AAPL_2023, TWO, ONE} and not listed.foreign
    found = read("assets", edgar.aapl_assets(), stamps=listed.stamps)
    assert {row.known_at for row in found.items} == {
        end_of_filing_day(date(2022, 10, 28)), moment("2023-11-03 02:08:27"),
    }  # fmt: skip
    assert end_of_filing_day(date(2022, 10, 28)) == moment("2022-10-29 03:59:59")
    assert end_of_filing_day(date(2022, 1, 28)) == moment("2022-01-29 04:59:59")


def test_what_was_accepted_too_early_or_will_be_is_no_value() -> None:
    assets = concept(AAPL, "Assets", day("2021-12-31", 1, ONE))
    found = read("assets", assets, stamps={ONE: moment("2021-12-30 12:00:00")})
    assert (found.status, found.items, found.dropped) == (S.BROKEN, (), 1)
    assert found.detail == "Assets: accepted before its period ended"
    later = concept(AAPL, "Assets", value("2025-12-31", 1, THREE, "2026-02-20"))
    early = read("assets", later)
    assert (early.status, early.detail, early.dropped) == (S.EMPTY, ALL_LATER, 1)
    assert len(read("assets", later, now=moment("2026-02-19 12:00")).items) == 1


# --- which concept counts -------------------------------------------------------------------------

CHOICES = """
a part that a quarterly report tells alone, here 7, does not stand beside the whole
  revenue
  Revenues: 2021 29 ONE, 2022Q2 7
  SalesRevenueNet: 2021 83 ONE, 2022Q1 20
  = 2021-12-31 83, 2022-03-31 20
the rules of 2018 gave revenue another concept: no year without any
  revenue
  SalesRevenueNet: 2021 83 ONE, 2020 80 ONE
  RevenueFromContractWithCustomerExcludingAssessedTax: 2022Q1 21, 2022 85 TWO, 2021 82 TWO
  = 2021-12-31 83, 2020-12-31 80, 2022-03-31 21, 2022-12-31 85, 2021-12-31 82
of two totals in a filing the larger is the whole, as P&G's, General Mills' and Cato's
  revenue
  Revenues: 2021 29 ONE, 2022 2038 TWO, 2023 708059 THREE
  SalesRevenueNet: 2021 83 ONE, 2022 19857 TWO, 2023 8331 THREE
  = 2021-12-31 83, 2022-12-31 19857, 2023-12-31 708059
a fallback fills no hole of a filing
  equity
  StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest: 2021-12-31 65 ONE, 2020-12-31 61 ONE, 2022-12-31 70 TWO
  StockholdersEquity: 2021-12-31 60 ONE
  = 2021-12-31 60, 2022-12-31 70
a last quarter that ends with the year, as Apple's of 2018, does not stand for the year
  revenue
  Revenues: 2021Q4 62900 ONE
  RevenueFromContractWithCustomerExcludingAssessedTax: 2021 9 ONE
  = 2021-12-31 9
a concept for older days alone does not lead
  equity
  StockholdersEquity: 2020-12-31 60 ONE
  StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest: 2021-12-31 65 ONE
  = 2021-12-31 65
parts are added where there is no total, as Apple's of 2023, and no day of one part alone
  short_term_debt
  LongTermDebtCurrent: 2023-09-30 9822 THREE, 2022-09-24 11128 THREE, 2021-09-25 9613 THREE
  CommercialPaper: 2023-09-30 5985 THREE, 2022-09-24 9982 THREE
  = 2023-09-30 15807, 2022-09-24 21110
a total stands for its parts
  short_term_debt
  LongTermDebtCurrent: 2023-09-30 9822 THREE, 2022-09-24 11128 THREE
  CommercialPaper: 2023-09-30 5985 THREE
  DebtCurrent: 2023-09-30 15900 THREE
  = 2023-09-30 15900
paper was paid back: last year's sum of both is not told anew as one of them
  short_term_debt
  LongTermDebtCurrent: 2022-09-24 9 TWO, 2023-09-30 10 THREE, 2022-09-24 9 THREE
  CommercialPaper: 2022-09-24 6 TWO, 2022-09-24 6 THREE
  = 2022-09-24 15, 2023-09-30 10
paper is not added to the borrowings that hold it
  short_term_debt
  CommercialPaper: 2023-09-30 6 THREE
  ShortTermBorrowings: 2023-09-30 8 THREE
  LongTermDebtCurrent: 2023-09-30 10 THREE
  = 2023-09-30 18
one part alone is the figure
  short_term_debt
  ShortTermBorrowings: 2023-09-30 8 THREE
  = 2023-09-30 8
the declared unit counts, not the first one, nor that of a quotient (edgartools #946)
  net_income
  NetIncomeLoss: 2021 90 ONE 10-K EUR, 2021 6 ONE 10-K USD/shares, 2021 100 ONE
  = 2021-12-31 100
nothing is told in another unit
  diluted_shares
  WeightedAverageNumberOfDilutedSharesOutstanding: 2021 100 ONE
  =
a company of 10-K reports is read in USD alone
  revenue
  Revenues: 2021 700 ONE 10-K CAD
  =
a foreign company is read in its own currency, beside a convenient one
  revenue
  ifrs-full.Revenue: 2021 700 ONE 20-F CNY, 2020 600 ONE 20-F CNY, 2021 100 ONE 20-F
  = 2021-12-31 700 CNY, 2020-12-31 600 CNY
a foreign company that tells all in USD is read so
  revenue
  ifrs-full.Revenue: 2021 700 ONE 20-F CNY, 2021 100 ONE 20-F, 2020 90 ONE 20-F
  = 2021-12-31 100, 2020-12-31 90
a value that was amended is a row of its own
  net_income
  NetIncomeLoss: 2021 100 ONE, 2021 90 TWO 10-K/A
  = 2021-12-31 100, 2021-12-31 90
shares are those of the cover
  shares_outstanding
  CommonStockSharesOutstanding: 2021-12-31 16 ONE 10-K shares
  dei.EntityCommonStockSharesOutstanding: 2022-01-20 15 ONE 10-K shares
  = 2022-01-20 15 shares
where the cover has none, those of the balance sheet
  shares_outstanding
  CommonStockSharesOutstanding: 2021-12-31 16 ONE 10-K shares
  = 2021-12-31 16 shares
"""  # noqa: E501 - names of concepts are long
"""By case: the figure, values of each concept (period, value, filing; a quarter in its own filing),
and the rows that come of them.
"""


def row_of(text: str) -> tuple[str, Row]:
    """Return a value and its unit."""
    period, val, *rest = text.split()
    accn = {"ONE": ONE, "TWO": TWO, "THREE": THREE}.get("".join(rest[:1]), "")
    form, unit = rest[1:2] or ["10-K"], "".join(rest[2:]) or "USD"
    if "Q4" in period:
        return unit, year(period[:4], int(val), accn) | {"start": f"{period[:4]}-10-01"}
    if "Q" in period:
        return unit, quarter(int(period[-1]), period[:4], int(val))
    row = (day if "-" in period else year)(period, int(val), accn)
    return unit, row | {"form": form[0]}


def file_of(line: str) -> dict[str, Any]:
    name, _, rows = line.partition(":")
    taxonomy, _, tag = name.rpartition(".")
    units: dict[str, list[Row]] = {}
    for unit, row in map(row_of, rows.split(",")):
        units.setdefault(unit, []).append(row)
    return concept(AAPL, tag, taxonomy=taxonomy or "us-gaap") | {"units": units}


@pytest.mark.parametrize("case", re.split(r"\n(?=\S)", CHOICES.strip()))
@pytest.mark.parametrize("turned", [1, -1])
def test_a_filing_speaks_by_one_concept(case: str, turned: int) -> None:
    _, figure, *files, expected = (line.strip() for line in case.split("\n"))
    found = read(figure, *[file_of(line) for line in files][::turned])
    rows = [f"{row.ends.date()} {row.value:.0f} {row.unit}" for row in found.items]
    wanted = [text.strip() for text in expected.strip("= ").split(",") if text]
    assert rows == [text if text.count(" ") == 2 else f"{text} USD" for text in wanted]
    assert found.status is (S.AVAILABLE if rows else S.EMPTY) and found.dropped == 0


_REVENUES = [one.name for one in CHAINS["revenue"] if one.taxonomy == "us-gaap"]


def _many_filings(chance: random.Random) -> list[dict[str, Any]]:
    """Return the files of ten years of revenue, told now by one concept and now by others."""
    files = {name: concept(AAPL, name) for name in _REVENUES}
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
        whole = read("revenue", *files)
        moments = sorted({row.known_at for row in whole.items})
        assert len(moments) > 20
        for cut in moments:
            found = read("revenue", *_filed_by(files, cut))
            assert found.items == tuple(row for row in whole.items if row.known_at <= cut)
        cuts += len(moments)


def test_every_figure_has_a_chain_and_no_concept_twice() -> None:
    assert {*CHAINS} == {*FIGURES}
    every = [one[:2] for chain in CHAINS.values() for one in chain]
    assert len(every) == len({*every})
    at_home = [one for figure in CHAINS for one in concepts_of(figure, foreign=False)]
    assert len(at_home) <= 36 and {one.taxonomy for one in at_home} == {"us-gaap", "dei"}


# --- what is refused ------------------------------------------------------------------------------

GOOD = year("2021", 100, ONE)
NO_NUMBERS: Sequence[Any] = (
    None, "100", [], {}, True, math.nan, math.inf, -math.inf, 10**400, 2e15,
)  # fmt: skip
ODD: Sequence[tuple[str, str, Row]] = (
    ("NetIncomeLoss", "no accession", {"accn": "320193-22-1"}),
    ("NetIncomeLoss", "no form", {"form": None}),
    ("NetIncomeLoss", "end is no day", {"end": "2021-12-32"}),
    ("NetIncomeLoss", "start is no day", {"start": "0001-01-01"}),
    ("NetIncomeLoss", "start is no day", {"start": None}),
    ("NetIncomeLoss", "filed is no day", {"filed": "soon"}),
    ("NetIncomeLoss", "filed before its period ended", {"filed": "2021-12-30"}),
    ("NetIncomeLoss", "it begins after it ends", {"start": "2022-01-01"}),
    ("Assets", "a period, and the figure is of a day", {}),
    *((SHARES, "shares that are none", {"val": count}) for count in (-5, 0)),
    *(("NetIncomeLoss", "no number", {"val": number}) for number in NO_NUMBERS),
)  # fmt: skip


@pytest.mark.parametrize(("name", "why", "change"), ODD)
def test_a_value_that_cannot_be_taken_is_counted_with_its_reason(
    name: str, why: str, change: Row
) -> None:
    figure = {"Assets": "assets", SHARES: "diluted_shares"}.get(name, "net_income")
    unit = "shares" if name == SHARES else "USD"
    found = read(figure, concept(AAPL, name, {**GOOD, **change}, unit=unit))
    assert (found.status, found.items, found.dropped) == (S.BROKEN, (), 1)
    assert found.detail == f"{name}, value 1: {why}"
    beside = income({**GOOD, **change}, year("2020", -90, ONE)).items[-1]
    assert (beside.ends, beside.value) == (moment("2020-12-31"), -90), "a loss is a value"


@pytest.mark.parametrize(
    ("change", "taken"),
    [
        *(({"start": start}, True) for start in
          ("2021-10-01", "2021-09-12", "2021-07-01", "2021-04-01", "2020-12-28")),
        *(({"start": start}, False) for start in ("2021-12-01", "2021-08-15", "2019-01-01")),
        *(({"form": form}, False) for form in ("8-K", "S-1", "10-KT", "NT 10-K", "10-K405")),
    ],
)  # fmt: skip
def test_other_spans_and_forms_are_left_out(change: Row, taken: bool) -> None:
    found = income({**GOOD, **change})
    assert (len(found.items), found.dropped) == (taken, 0)
    assert found.status is (S.AVAILABLE if taken else S.EMPTY) and len(FORMS) == 8


def test_the_same_value_twice_is_one_row_and_another_one_is_none() -> None:
    again = {**GOOD, "frame": "CY2021"}
    found = income(GOOD, again, GOOD)
    assert len(found.items) == 1 and found.dropped == 0
    torn = income(GOOD, {**again, "val": 101}, GOOD)
    assert (torn.items, torn.dropped) == ((), 3)
    assert torn.detail.endswith("a period twice in one filing, and differently")


def test_a_reason_never_quotes_the_reply() -> None:
    rows = [{**GOOD, "accn": "CANARY <script>", "val": number} for number in range(100)]
    found = income(*rows, CANARY="CANARY")
    assert found.dropped == 101 and found.detail
    assert "CANARY" not in repr(found)


# --- what is no such file -------------------------------------------------------------------------

LISTED = submissions(AAPL, (ONE, "10-K", "2022-02-10", "2022-02-10T16:00:00.000Z"))
RECENT = LISTED["filings"]["recent"]
ASSETS = edgar.aapl_assets()
STRANGERS = {"a": 5, "b": {"ticker": "X Y", "cik_str": 1}, "c": {"ticker": "T", "cik_str": True}}


def read_assets(payload: Any) -> object:
    return read_concept("assets", Concept("us-gaap", "Assets"), AAPL, payload, RowTally())


def read_listed(payload: Any) -> Submissions:
    return read_submissions(payload, AAPL)


CHANGES: Sequence[Row] = (
    {"units": []}, {"tag": "Revenues"}, {"taxonomy": "dei"}, {"cik": 1}, {"cik": True},
)  # fmt: skip
OTHERS: Sequence[tuple[Callable[[Any], object], str, Sequence[Any]]] = (
    (read_assets, "file of this concept and company", [ASSETS | change for change in CHANGES]),
    (read_listed, "file of the company's submissions", [{}, LISTED | {"cik": "1"}, *(
        LISTED | {"filings": {"recent": recent}}
        for recent in ({**RECENT, "form": []}, {**RECENT, "form": None}, {}, None, "x"))]),
    (read_tickers, "table of tickers", [{}, STRANGERS]),
)  # fmt: skip


@pytest.mark.parametrize(("reader", "words", "payloads"), OTHERS)
def test_the_file_of_something_else_is_trouble(
    reader: Callable[[Any], object], words: str, payloads: Sequence[Any]
) -> None:
    for payload in (None, [], "x", 5, *payloads):
        with pytest.raises(SourceError, match=f"no {words}") as trouble:
            reader(payload)
        assert trouble.value.status is S.BROKEN


def test_a_foreign_filer_is_told_by_its_forms() -> None:
    for form, foreign in (("20-F", True), ("40-F/A", True), ("6-K", False), ("10-K", False)):
        payload = submissions(AAPL, (ONE, form, "2022-02-10", ""))
        assert read_listed({**payload, "cik": AAPL}).foreign is foreign


def test_tickers_are_read_by_their_names_and_strangers_are_passed_over() -> None:
    found = read_tickers(edgar.tickers() | STRANGERS | {"d": {"ticker": "AAPL", "cik_str": 7}})
    assert found == edgar.CIKS, "the first company of a ticker stays"
    assert edgar_ticker("brk.b") == "BRK-B"
