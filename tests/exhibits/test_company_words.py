"""What a tick knew of a company, in words: rows, sentences, an old report, nothing known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.outside.test_nothing_later import SHARE, Rows, world
from tests.worlds import company_reports
from torra.evidence.outside_readings import NEWEST, OutsideView
from torra.exhibits.beyond import company_words, outside_words
from torra.outside.shelf import OutsideShelf

AS_OF = company_reports.known(37)
FILED = "edgar 10-Q 0000000001-37-000001"


def told(**more: Any) -> OutsideView:
    """Return the part of a record of a tick that read the made company."""
    company = world("company")
    rows = [one for one in company.rows if one.row.source != "mine.csv"]
    view = company.read(more.pop("as_of", AS_OF), rows, live=False)
    return replace(view, numbers={**view.numbers, **more.pop("numbers", {})}, **more)


def test_a_price_that_cannot_be_told_says_what_it_needs() -> None:
    notes = outside_words.shown("ACME.US", told(numbers={"company.pe": None})).notes
    assert notes[-1].startswith("P/E is not known: it needs earnings above zero")


def test_what_is_missing_is_named() -> None:
    numbers = {"company.roe_pct": None, "company.gross_margin_pct": None}
    notes = outside_words.shown("ACME.US", told(numbers=numbers)).notes
    assert notes[1] == (
        "Not known of the company, for a part is missing in its reports: gross margin, return on "
        "equity."
    )


def test_a_report_that_tells_too_little_says_so() -> None:
    record = told()
    nothing = {
        name: None if name.startswith("company.") else value
        for name, value in record.numbers.items()
    }
    found = outside_words.shown("ACME.US", replace(record, numbers=nothing))
    assert found.rows == []
    assert "tells too little: a figure needs all of its year" in found.notes[0]


def test_an_old_report_is_told_in_one_row() -> None:
    stale = told(as_of=AS_OF + timedelta(days=900))
    found = outside_words.shown("ACME.US", stale)
    (row,) = found.rows
    assert row.value == "too old to count"
    assert row.old
    assert "EDGAR" in row.origin
    assert found.notes == []


def test_nothing_known_says_who_publishes_it() -> None:
    view = OutsideShelf(Rows([]), live=False).latest(SHARE, AS_OF, trouble=lambda _b: "empty")
    found = outside_words.shown("ACME.US", view)
    (note,) = found.notes
    assert note.startswith("Not known: the company's reports. EDGAR publishes it")


def test_a_line_has_the_telling_figures_alone() -> None:
    line = outside_words.in_a_line("ACME.US", told())
    assert line.startswith("company: revenue growth +3.8 %")
    assert line.count(",") < 8
    assert "gross margin" not in line


def test_a_file_of_ones_own_is_named() -> None:
    assert company_words.filing("my facts.csv") == "your file my facts.csv"
    assert company_words.filing("edgar") == "EDGAR"
    assert company_words.filing("\x1b[31m<b>").startswith("your file ")
    assert outside_words.source_of(FILED) == "EDGAR (10-Q 0000000001-37-000001)"
    assert outside_words.name_of(NEWEST) == company_words.REPORTS
