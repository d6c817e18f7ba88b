"""What a company reported to the SEC, as rows with the moment at which each value was known.

EDGAR has a file per XBRL concept with every value of any filing, and a file of submissions with the
moment at which each filing was accepted. Here both become FactRows: one for each value of each
filing, never merged. A comparative column of a later filing is a row of its own with its later
moment. A period is known by its own `start` and `end` alone: `fy`, `fp` and `frame` of a value are
those of the filing (AAPL's 10-K of 2023 has 352,755 M of 2022 and 352,583 M of 2023, both with fy
2023).

**Moments.** `acceptanceDateTime` ends in Z, and for 181 of 808 large filers it is New York's clock
all the same. Nothing in the text says which, so the later of both readings counts. A filing that
the submissions do not list is known at the end of its day in New York.

torra.outside.concepts has the chain of concepts of each figure, and the rule by which one of them
counts in a filing.

Pure functions. Another file raises SourceError; a value that cannot be taken is counted with a
reason, which never quotes the reply.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple, cast

from torra.collecting.line import SourceError
from torra.evidence.company_facts import FIGURES, UNITS, Period, days
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import FactRow
from torra.outside.answers import (
    ALL_LATER,
    FIRST_DAY,
    LARGEST,
    LAST_DAY,
    FactsAnswer,
    RowTally,
    day_of,
)
from torra.outside.concepts import CHAINS, Concept
from torra.outside.releases import NEW_YORK

ANNUAL: Final = frozenset(("10-K", "20-F", "40-F"))
FOREIGN: Final = frozenset(("20-F", "40-F"))
FORMS: Final = frozenset(form + mark for form in (*ANNUAL, "10-Q") for mark in ("", "/A"))
"""The forms whose values are read, and their amendments."""

SPANS: Final = ((70, 125), (150, 205), (235, 295), (343, 378))
"""Days of a quarter, a half, nine months and a year; some fiscal quarters have 12 or 17 weeks."""

EARLY: Final = timedelta(days=2)
"""What is known later than this after the desk's clock is no filing of today."""

MAX_FACTS: Final = 20_000
"""Values of a unit that are read; two megabytes hold about twelve thousand."""

ACCESSION: Final = re.compile(r"\d{10}-\d{2}-\d{6}", re.ASCII)
STAMP: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d{1,6})?(Z|\+00:00)?", re.ASCII
)
TICKER: Final = re.compile(r"[A-Z0-9][A-Z0-9-]{0,14}", re.ASCII)
CIK: Final = re.compile(r"\d{1,10}", re.ASCII)


class FiledValue(NamedTuple):
    """A value of a concept in a filing; of two the one that was filed last is the greater."""

    filed: date
    form: str
    accession: str
    concept: Concept
    period: Period
    value: float
    unit: str


class Submissions(NamedTuple):
    """A company's filings: when each was known, those whose values are read, and where it files.

    `foreign` says that it files as a foreign company does.
    """

    stamps: Mapping[str, datetime]
    read: frozenset[str]
    foreign: bool


# --- the files ------------------------------------------------------------------------------------


@contextmanager
def _of_shape(words: str) -> Iterator[None]:
    """Refuse a payload of another shape: what a reader stumbles over raises SourceError."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError):
        raise SourceError(NewsStatus.BROKEN, f"the reply is no {words}") from None


@_of_shape("table of tickers")
def read_tickers(payload: Any) -> dict[str, int]:
    """Return the CIK of each ticker of `company_tickers.json`; raises SourceError."""
    tickers: dict[str, int] = {}
    for row in payload.values():
        named = row if isinstance(row, dict) else {}
        name, cik = str(named.get("ticker")), _cik_of(named.get("cik_str"))
        if cik and TICKER.fullmatch(name):
            tickers.setdefault(name, cik)
    if not tickers:
        raise ValueError
    return tickers


def edgar_ticker(ticker: str) -> str:
    """Return a ticker as EDGAR writes it: BRK-B."""
    return ticker.upper().replace(".", "-")


@_of_shape("file of the company's submissions")
def read_submissions(payload: Any, cik: int) -> Submissions:
    """Return when each filing of a company was known; raises SourceError."""
    recent = payload["filings"]["recent"]
    columns = [recent[name] for name in ("accessionNumber", "acceptanceDateTime", "form")]
    if _cik_of(payload["cik"]) != cik or not all(isinstance(column, list) for column in columns):
        raise ValueError
    stamps: dict[str, datetime] = {}
    forms: dict[str, str] = {}
    # strict: a column of another length would put a stamp beside another filing.
    for accession, stamp, form in zip(*columns, strict=True):
        if ACCESSION.fullmatch(str(accession)):
            if known := accepted_at(stamp):
                stamps[accession] = max(known, stamps.get(accession, known))
            if str(form) in FORMS:
                forms[accession] = form
    foreign = any(form.removesuffix("/A") in FOREIGN for form in forms.values())
    return Submissions(stamps, frozenset(forms), foreign)


def accepted_at(text: object) -> datetime | None:
    """Return the later of both readings of a stamp of acceptance; None for another text."""
    if not isinstance(text, str) or not (parts := STAMP.fullmatch(text)):
        return None
    try:
        stamp = datetime.fromisoformat(parts[1])
    except ValueError:
        return None
    if not FIRST_DAY <= stamp.date() <= LAST_DAY:
        return None
    stamp += timedelta(seconds=bool((parts[2] or "").strip(".0")))
    # Of an hour that New York has twice, the second.
    as_new_york = stamp.replace(tzinfo=NEW_YORK, fold=1).astimezone(UTC)
    return max(stamp.replace(tzinfo=UTC), as_new_york)


def end_of_filing_day(filed: date) -> datetime:
    """Return the last second of a day in New York."""
    return datetime.combine(filed, time(23, 59, 59), NEW_YORK).astimezone(UTC)


@_of_shape("file of this concept and company")
def read_concept(
    figure: str, concept: Concept, cik: int, payload: Any, tally: RowTally
) -> list[FiledValue]:
    """Return the values of a concept, each once; raises SourceError.

    `tally` counts values that cannot be taken. Those of other units, forms and spans are passed
    over. A filing that states a period twice, with different values, states nothing of it.
    """
    if (payload["taxonomy"], payload["tag"]) != concept[:2] or _cik_of(payload["cik"]) != cik:
        raise ValueError
    values: dict[tuple[object, ...], list[FiledValue]] = defaultdict(list)
    for unit, rows in payload["units"].items():
        if not isinstance(rows, list):
            tally.refuse(concept.name, "a unit without a list of values")
            continue
        wanted = UNITS[FIGURES[figure].unit].fullmatch(unit)
        for number, row in enumerate(rows[:MAX_FACTS] if wanted else (), 1):
            try:
                value = _value(figure, concept, unit, row)
            except ValueError as error:
                tally.refuse(f"{concept.name}, value {number}", error)
                continue
            if value is not None:
                values[value.accession, unit, value.period].append(value)
    for same in values.values():
        if len({value.value for value in same}) > 1:
            tally.refuse(concept.name, "a period twice in one filing, and differently", len(same))
            same.clear()
    return [max(same) for same in values.values() if same]


def _value(figure: str, concept: Concept, unit: str, row: Any) -> FiledValue | None:
    """Return a value; None for a form or a span that nobody reads; raises ValueError."""
    if not isinstance(row, dict) or not isinstance(form := row.get("form"), str):
        raise ValueError("no form")  # noqa: TRY004 - a refusal of the reply
    if form not in FORMS:
        return None
    accession, value = str(row.get("accn")), cast("float", row.get("val"))
    if not ACCESSION.fullmatch(accession):
        raise ValueError("no accession")
    # By type: True is an int. NaN is in no range, and a larger number may be no float.
    if type(value) not in (int, float) or not -LARGEST <= value <= LARGEST:
        raise ValueError("no number")
    at_day, start = FIGURES[figure].over == "day", row.get("start")
    ends, filed = day_of(row.get("end"), "end"), day_of(row.get("filed"), "filed")
    begins = ends if at_day and start is None else day_of(start, "start")
    faults = {
        "shares that are none": unit == "shares" and value <= 0,
        "it begins after it ends": begins > ends,
        "a period, and the figure is of a day": at_day and begins != ends,
        "filed before its period ended": filed < ends,
    }
    if fault := next((words for words, is_so in faults.items() if is_so), ""):
        raise ValueError(fault)
    span = days((begins, ends))
    if not at_day and not any(least <= span <= most for least, most in SPANS):
        return None
    return FiledValue(filed, form, accession, concept, (begins, ends), float(value), unit)


def _cik_of(value: object) -> int:
    """Return a CIK, 0 for none: EDGAR writes it as a number here and as digits there."""
    # As text: True is no number.
    return int(str(value)) if CIK.fullmatch(str(value)) else 0


# --- rows -----------------------------------------------------------------------------------------

ByConcept = dict[Concept, dict[Period, float]]
"""The values of one filing in one currency."""


Filing = tuple[datetime, str, str, list[FiledValue]]
"""When a filing was known, its accession, its form, and its values of all concepts of a figure."""


def reported(
    ticker: str,
    figure: str,
    values: Iterable[FiledValue],
    stamps: Mapping[str, datetime],
    now: datetime,
    tally: RowTally,
) -> FactsAnswer:
    """Return the rows of a figure from the values of all concepts of its chain."""
    rows: list[FactRow] = []
    passed_over: set[Concept] = set()
    for known_at, accession, form, filed in sorted(_filings(values, stamps)):
        unit = _unit(form, [value.unit for value in filed])
        by_concept: ByConcept = defaultdict(dict)
        for value in filed:
            if value.unit == unit:
                by_concept[value.concept][value.period] = value.value
        _add_up(figure, by_concept)
        annual = form in ANNUAL
        lead = _lead({
            concept: periods for concept, periods in by_concept.items()
            if annual or concept not in passed_over
        })  # fmt: skip
        if annual and lead is not None:
            passed_over = {*by_concept} - {lead}
        chosen = by_concept[lead] if lead else {}
        source = f"edgar {form} {accession}"
        for period, number in chosen.items():
            begins, ends = (datetime.combine(day, time(tzinfo=UTC)) for day in period)
            if known_at > now + EARLY:
                tally.leave_out(ALL_LATER)
            elif known_at < ends:
                tally.refuse(lead.name if lead else "", "accepted before its period ended")
            else:
                rows.append(FactRow(
                    ticker, figure, begins, ends, known_at, number + 0.0, unit, source
                ))  # fmt: skip
    return tally.answer(rows)


def _filings(values: Iterable[FiledValue], stamps: Mapping[str, datetime]) -> Iterator[Filing]:
    by_accession: dict[str, list[FiledValue]] = defaultdict(list)
    for value in values:
        by_accession[value.accession].append(value)
    for accession, its_values in by_accession.items():
        newest = max(its_values)
        known = stamps.get(accession) or end_of_filing_day(newest.filed)
        yield known, accession, newest.form, its_values


def _unit(form: str, units: Sequence[str]) -> str:
    """Return the unit of a filing's values: shares, USD, or a foreign company's own currency.

    Some foreign companies give their newest year in USD as well, for convenience: then the currency
    of most values is that of the company.
    """
    if "shares" in units:
        return "shares"
    if form.removesuffix("/A") not in FOREIGN:
        return "USD"
    return max(sorted({*units}), key=lambda unit: (units.count(unit), unit == "USD"))


def _newest(by_concept: ByConcept) -> ByConcept:
    """Return the values for the newest end alone, of the concepts that have one."""
    ends = max((end for periods in by_concept.values() for _, end in periods), default=None)
    newest = {
        concept: {period: value for period, value in periods.items() if period[1] == ends}
        for concept, periods in by_concept.items()
    }
    return {concept: periods for concept, periods in newest.items() if periods}


def _add_up(figure: str, by_concept: ByConcept) -> None:
    """Put the sum of its parts in the place of the first one, where a filing has no total."""
    if not by_concept or not all(concept.part for concept in by_concept):
        return
    newest, kinds = _newest(by_concept), dict[str, Concept]()
    for concept in CHAINS[figure]:
        if concept in newest:
            kinds.setdefault(concept.part, concept)
    first, *others = kinds.values()
    for concept in others:
        more = by_concept.pop(concept)
        by_concept[first] = {
            period: value + more[period]
            for period, value in by_concept[first].items()
            if period in more
        }
    # A day with a kind that the newest one does not have is of another sum.
    for concept in [part for part in by_concept if part.part not in kinds]:
        for period in by_concept[concept]:
            by_concept[first].pop(period, None)


def _lead(by_concept: ByConcept) -> Concept | None:
    """Return the concept by which a filing reports the figure; None without any."""
    newest = _newest(by_concept)
    if not newest:
        return None
    rank = min(concept.rank for concept in newest)
    # By name, so that the order of the files decides nothing.
    best = sorted(concept for concept in newest if concept.rank == rank)
    shared = Counter(period for concept in best for period in newest[concept])
    # The period that most of them have; of those the longest.
    period = max(shared, key=lambda period: (shared[period], period[1] - period[0]))
    return max(
        (concept for concept in best if period in newest[concept]),
        key=lambda concept: newest[concept][period],
    )
