"""What a tick knew of a company, in words: which figures are shown, and what they come to.

`NUMBERS` are the rows in the order of a reader: what it earns, how sound it is, what its price
pays. `notes` are the sentences beside them. Pure values and functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from torra.evidence.fair_value import RETURN
from torra.evidence.outside_numbers import EDGAR
from torra.evidence.outside_readings import NEWEST, OutsideView
from torra.exhibits import figures
from torra.exhibits.beyond.outside_row import day_of

REPORTS: Final = "the company's reports"
"""What the figures of a company are called where none is known."""

FILE_CHARS: Final = 60
"""Characters of a file's name that are shown."""


class CompanyNumber(NamedTuple):
    """A figure as it is shown: what it is called, and whether it stands in a line by itself."""

    name: str
    feature: str
    decimals: int = 1
    signed: bool = False
    ranked: str = ""
    in_a_line: bool = False


NUMBERS: Final = (
    CompanyNumber("revenue growth", "revenue_growth_pct", 1, signed=True, in_a_line=True),
    CompanyNumber("earnings growth", "earnings_growth_pct", 1, signed=True),
    CompanyNumber("gross margin", "gross_margin_pct"),
    CompanyNumber("operating margin", "operating_margin_pct"),
    CompanyNumber("net margin", "net_margin_pct", in_a_line=True),
    CompanyNumber("free cash flow margin", "fcf_margin_pct"),
    CompanyNumber("return on equity", "roe_pct"),
    CompanyNumber("return on invested capital", "roic_pct"),
    CompanyNumber("debt to equity", "debt_to_equity", 2),
    CompanyNumber("interest cover", "interest_cover"),
    CompanyNumber("earnings ahead of cash (accruals)", "accruals_pct", signed=True),
    CompanyNumber("growth of the shares", "dilution_pct", signed=True),
    CompanyNumber("F-score", "f_score", 0, in_a_line=True),
    CompanyNumber("P/E", "pe", ranked="pe_rank", in_a_line=True),
    CompanyNumber("P/B", "pb", ranked="pb_rank"),
    CompanyNumber("EV/EBITDA", "ev_ebitda", ranked="ev_ebitda_rank"),
    CompanyNumber("free cash flow yield", "fcf_yield_pct", 2, ranked="fcf_yield_rank"),
)
"""The figures of a company, as features are named after `company.`."""

VALUED: Final = {
    "cheap": "The share is cheap for itself",
    "usual": "The share is priced as usual for itself",
    "dear": "The share is dear for itself",
}


def notes(told: OutsideView) -> Iterator[str]:
    """Yield what a company's figures come to, and of which report they are; nothing without one."""
    report = told.seen.get(NEWEST)
    if report is None or report.stale:
        return
    known, ends = figures.moment(report.known_at), day_of(report.at)
    missing = [
        one.name
        for one in NUMBERS
        if not one.ranked and told.numbers.get(f"company.{one.feature}") is None
    ]
    if told.numbers.get("company.period_end") is None:
        yield (
            f"The company's report to {ends}, known since {known}, from {filing(report.source)}, "
            "tells too little: a figure needs all of its year, and growth the year before."
        )
        return
    yield (
        f"The company's figures are of the year to {ends}, known since {known}, from "
        f"{filing(report.source)}."
    )
    if missing:
        listed = ", ".join(missing)
        yield f"Not known of the company, for a part is missing in its reports: {listed}."
    rank = figures.number(told.numbers.get("company.valuation_rank"))
    said = VALUED.get(str(told.numbers.get("company.valuation")))
    if rank is not None and said:
        yield (
            f"{said}: its price ranks {rank:.0f} of 100 among its own five years, 100 is the "
            "dearest."
        )
    growth = figures.number(told.numbers.get("company.implied_growth_pct"))
    if growth is not None:
        moves = "grows" if growth >= 0.0 else "shrinks"
        yield (
            f"The price bets on free cash flow that {moves} {abs(growth):.1f} % a year for ever, "
            f"at a return of {100 * RETURN:.0f} %."
        )
    if told.numbers.get("company.pe") is None:
        yield (
            "P/E is not known: it needs earnings above zero, a count of the shares that no split "
            "has overtaken, and a close of the day before in the currency of the reports; a "
            "company that files from abroad (20-F, 40-F) has none."
        )


def filing(source: str | None) -> str:
    """Return who told a company's figures: a filing, or a file."""
    word, _, more = str(source or "").partition(" ")
    if word == EDGAR:
        return f"EDGAR ({figures.sanitize(more, 40)})" if more else "EDGAR"
    return f"your file {figures.sanitize(source, FILE_CHARS)}".rstrip()
