"""What a tick knew of a company, in words: which figures are shown, and what they come to.

`NUMBERS` are the rows in the order of a reader: what it earns, how sound it is, what its price
pays. `notes` are the sentences beside them. Pure values and functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agents.features import rows_of
from torra.evidence.fair_value import RETURN
from torra.evidence.outside_numbers import EDGAR
from torra.evidence.outside_readings import NEWEST, OutsideView
from torra.exhibits import figures
from torra.exhibits.beyond.outside_row import OutsideNumber, day_of

REPORTS: Final = "the company's reports"
"""What the figures of a company are called where none is known."""

FILE_CHARS: Final = 60
"""Characters of a file's name that are shown."""


NUMBERS: Final = tuple(
    OutsideNumber(
        "company",
        row["name"],
        f"company.{row['feature']}",
        (NEWEST,),
        rank=row["rank"] and f"company.{row['rank']}",
        decimals=int(row["decimals"]),
        signed=bool(row["signed"]),
        in_a_line=bool(row["in_a_line"]),
    )
    for row in rows_of(Path(__file__).with_name("company_numbers.csv"))
)
"""The figures of a company, in the order in which they are shown."""

VALUED: Final = {
    "cheap": "The share is cheap for itself",
    "usual": "The share is priced as usual for itself",
    "dear": "The share is dear for itself",
}


def notes(view: OutsideView) -> Iterator[str]:
    """Yield what a company's figures come to, and of which report they are; nothing without one."""
    report = view.seen.get(NEWEST)
    if report is None or report.stale:
        return
    known, ends = figures.moment(report.known_at), day_of(report.at)
    missing = [
        number.name
        for number in NUMBERS
        if not number.rank and view.numbers.get(number.feature) is None
    ]
    if view.numbers.get("company.period_end") is None:
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
    rank = figures.number(view.numbers.get("company.valuation_rank"))
    valued = VALUED.get(str(view.numbers.get("company.valuation")))
    if rank is not None and valued:
        yield (
            f"{valued}: its price ranks {rank:.0f} of 100 among its own five years, 100 is the "
            "dearest."
        )
    growth = figures.number(view.numbers.get("company.implied_growth_pct"))
    if growth is not None:
        moves = "grows" if growth >= 0.0 else "shrinks"
        yield (
            f"The price bets on free cash flow that {moves} {abs(growth):.1f} % a year for ever, "
            f"at a return of {100 * RETURN:.0f} %."
        )
    if view.numbers.get("company.pe") is None:
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
