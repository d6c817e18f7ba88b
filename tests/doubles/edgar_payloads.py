"""Payloads in the shape of EDGAR's: the file of a concept, of submissions, and of tickers.

`value` is one value of one filing, `concept` the file that holds it, `submissions` the filings with
the moments of their acceptance. The columns that nobody reads are there, as EDGAR has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

AAPL, AMZN, PG, GIS, CATO = 320193, 1018724, 80424, 40704, 18255
CIKS: Final = {"AAPL": AAPL, "AMZN": AMZN, "PG": PG, "GIS": GIS, "CATO": CATO}

Row = dict[str, Any]


def value(
    end: str,
    val: Any,
    accn: str,
    filed: str,
    *,
    start: str = "",
    form: str = "10-K",
    fy: int = 2023,
    fp: str = "FY",
    frame: str = "",
) -> Row:
    """Return a value as a filing tells it; without `start` it is of a day."""
    row: Row = {"start": start} if start else {}
    row |= {"end": end, "val": val, "accn": accn, "fy": fy, "fp": fp, "form": form, "filed": filed}
    return row | ({"frame": frame} if frame else {})


def concept(
    cik: int, name: str, *rows: Row, unit: str = "USD", taxonomy: str = "us-gaap", **units: Any
) -> dict[str, Any]:
    """Return the file of a concept; `units` are further units, which stand before this one."""
    return {
        "cik": cik,
        "taxonomy": taxonomy,
        "tag": name,
        "label": name,
        "description": "What it is.",
        "entityName": "A COMPANY",
        "units": {**units, unit: [*rows]},
    }


def submissions(cik: int, *filings: tuple[str, str, str, str]) -> dict[str, Any]:
    """Return a company's file: of each filing its accession, form, day and stamp, newest first."""
    accessions, forms, days, stamps = ([*column] for column in zip(*filings, strict=True))
    count = len(filings)
    return {
        "cik": f"{cik:010d}",
        "entityType": "operating",
        "name": "A COMPANY",
        "tickers": [name for name, one in CIKS.items() if one == cik],
        "exchanges": ["Nasdaq"],
        "fiscalYearEnd": "0930",
        "filings": {
            "recent": {
                "accessionNumber": accessions,
                "filingDate": days,
                "reportDate": [""] * count,
                "acceptanceDateTime": stamps,
                "act": ["34"] * count,
                "form": forms,
                "size": [1000] * count,
                "isXBRL": [1] * count,
                "primaryDocument": ["report.htm"] * count,
            },
            "files": [],
        },
    }


def tickers(ciks: Mapping[str, int] = CIKS) -> dict[str, Any]:
    """Return the table of tickers."""
    return {
        str(number): {"cik_str": cik, "ticker": ticker, "title": f"{ticker} INC"}
        for number, (ticker, cik) in enumerate(ciks.items())
    }


# --- the published traps --------------------------------------------------------------------------

AAPL_2023 = "0000320193-23-000106"
AAPL_2022 = "0000320193-22-000108"
AAPL_Q2_2025 = "0000320193-25-000057"


def aapl_assets() -> dict[str, Any]:
    """Total assets in two annual reports: the later one tells 2022 again, with its own fy.

    352,583 and 352,755 M: edgartools PR 1269.
    """
    return concept(
        AAPL,
        "Assets",
        value("2021-09-25", 351_002_000_000, AAPL_2022, "2022-10-28", fy=2022),
        value("2022-09-24", 352_755_000_000, AAPL_2022, "2022-10-28", fy=2022, frame="CY2022Q3I"),
        value("2022-09-24", 352_755_000_000, AAPL_2023, "2023-11-03", fy=2023),
        value("2023-09-30", 352_583_000_000, AAPL_2023, "2023-11-03", fy=2023, frame="CY2023Q3I"),
    )


def aapl_equity() -> dict[str, Any]:
    """Equity in one quarterly report: five instants of one day of filing (Equibles PR 3834)."""
    days = (
        ("2023-12-30", 74_100_000_000),
        ("2024-03-30", 74_194_000_000),
        ("2024-09-28", 56_950_000_000),
        ("2024-12-28", 66_758_000_000),
        ("2025-03-29", 66_796_000_000),
    )
    more: dict[str, Any] = {"form": "10-Q", "fy": 2025, "fp": "Q2"}
    rows = [value(end, val, AAPL_Q2_2025, "2025-05-02", **more) for end, val in days]
    return concept(AAPL, "StockholdersEquity", *reversed(rows))


AMZN_2020 = "0001018724-21-000004"
AMZN_2022 = "0001018724-23-000004"


def amzn_shares() -> dict[str, Any]:
    """Diluted shares of 2020: 510 M as filed, 10,198 M after the split of 2022 (lumibot #1141)."""
    year: dict[str, Any] = {"start": "2020-01-01"}
    return concept(
        AMZN,
        "WeightedAverageNumberOfDilutedSharesOutstanding",
        value("2020-12-31", 510_000_000, AMZN_2020, "2021-01-29", fy=2020, **year),
        value("2020-12-31", 10_198_000_000, AMZN_2022, "2023-02-03", fy=2022, **year),
        unit="shares",
    )


PG_2014 = "0000080424-14-000076"
GIS_2024 = "0001193125-24-167640"
CATO_2024 = "0001562762-24-000065"


def two_revenues(ticker: str) -> Sequence[dict[str, Any]]:
    """Both concepts of a filing: P&G of 2014 and General Mills of 2024 (lumibot #1141).

    And Cato of 2023, whose total stands in the other one (edgartools #1294; the amounts are ours).
    """
    accession, filed, start, end, told = {
        "PG": (
            PG_2014, "2014-08-08", "2013-07-01", "2014-06-30",
            {"Revenues": 29_400_000_000, "SalesRevenueNet": 83_062_000_000},
        ),
        "GIS": (
            GIS_2024, "2024-06-26", "2023-05-29", "2024-05-26",
            {
                "Revenues": 2_038_000_000,
                "RevenueFromContractWithCustomerExcludingAssessedTax": 19_857_000_000,
            },
        ),
        "CATO": (
            CATO_2024, "2024-03-25", "2023-01-29", "2024-02-03",
            {
                "Revenues": 708_059_000,
                "RevenueFromContractWithCustomerExcludingAssessedTax": 700_318_000,
            },
        ),
    }[ticker]  # fmt: skip
    return [
        concept(CIKS[ticker], name, value(end, val, accession, filed, start=start))
        for name, val in told.items()
    ]
