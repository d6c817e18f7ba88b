"""What a company reported to the SEC, as rows with the moment at which each value was known.

EDGAR has a file per XBRL concept with every value that any filing told of it, and a file of
submissions with the moment at which each filing was accepted. Here both become FactRows: one for
each value of each filing, never merged. A comparative column of a later filing is a row of its own
with its later moment. A period is told by its own `start` and `end` alone: `fy`, `fp` and `frame`
of a value are those of the filing that tells it (AAPL's 10-K of 2023 tells 352,755 M of 2022 and
352,583 M of 2023, both with fy 2023).

**Moments.** `acceptanceDateTime` ends in Z, and for 181 of 808 large filers it is New York's clock
all the same. Nothing in the text tells which, so the later of both readings counts. A filing that
the submissions do not list is known at the end of its day in New York.

torra.outside.concepts has the chain of concepts of each figure, and the rule by which one of them
counts in a filing.

Pure functions. What is no such file raises Trouble; a value that cannot be taken is counted with a
reason, which never quotes the reply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple

from torra.collecting.line import SourceError
from torra.evidence.company_facts import FIGURES
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import FactRow
from torra.outside.answers import ALL_LATER, MAX_REASONS, FactsAnswer
from torra.outside.concepts import CHAINS, Concept, ConceptChain
from torra.outside.releases import NEW_YORK
from torra.outside.tables import FIRST_DAY, LARGEST, LAST_DAY

ANNUAL: Final = frozenset(("10-K", "20-F", "40-F"))
FOREIGN: Final = frozenset(("20-F", "40-F"))
FORMS: Final = frozenset(form + mark for form in (*ANNUAL, "10-Q") for mark in ("", "/A"))
"""The forms whose values are read, and their amendments."""

SPANS: Final = ((70, 125), (150, 205), (235, 295), (343, 378))
"""Days of a quarter, a half, nine months and a year; some fiscal quarters have 12 or 17 weeks."""

EARLY: Final = timedelta(days=2)
"""What is known later than this after the desk's clock is no filing of today."""

MAX_FACTS: Final = 20_000
"""Values of a concept that are read; two megabytes hold about twelve thousand."""

ACCESSION: Final = re.compile(r"\d{10}-\d{2}-\d{6}", re.ASCII)
DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
STAMP: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d{1,6})?(Z|\+00:00)?", re.ASCII
)
CURRENCY: Final = re.compile("[A-Z]{3}", re.ASCII)
TICKER: Final = re.compile(r"[A-Z0-9][A-Z0-9-]{0,14}", re.ASCII)
MAX_CIK: Final = 9_999_999_999


# --- what the files say ---------------------------------------------------------------------------


Period = tuple[date, date]
"""The first and the last day; of a figure that holds at a day, that day twice."""


class FiledValue(NamedTuple):
    """A value as a filing tells it; of a figure that holds at a day, `begins` is that day."""

    begins: date
    ends: date
    value: float
    unit: str
    accession: str
    form: str
    filed: date


@dataclass(slots=True)
class ConceptValues:
    """What a file says of a concept.

    `refused` counts values that cannot be taken, `left_out` those of other units, forms and spans.
    """

    concept: Concept
    facts: list[FiledValue] = field(default_factory=list)
    refused: int = 0
    left_out: int = 0
    reasons: list[str] = field(default_factory=list)

    def refuse(self, where: str, why: str) -> None:
        """Count a value that cannot be taken."""
        self.refused += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(f"{self.concept.name}, {where}: {why}")


class Submissions(NamedTuple):
    """A company's filings: when each was known, those whose values are read, and where it files.

    `foreign` says that it files as a foreign company does.
    """

    stamps: Mapping[str, datetime]
    read: frozenset[str]
    foreign: bool


def read_tickers(payload: object) -> dict[str, int]:
    """Return the CIK of each ticker of `company_tickers.json`; raises Trouble for anything else."""
    if not isinstance(payload, dict) or not payload:
        raise _another("the reply is not the table of tickers")
    found: dict[str, int] = {}
    for row in payload.values():
        name, cik = (row.get("ticker"), row.get("cik_str")) if isinstance(row, dict) else ("", 0)
        if isinstance(name, str) and TICKER.fullmatch(name) and (known := _cik_of(cik)):
            found.setdefault(name, known)
    if not found:
        raise _another("no ticker of the table can be read")
    return found


def edgar_ticker(ticker: str) -> str:
    """Return a ticker as EDGAR writes it: BRK-B."""
    return ticker.upper().replace(".", "-")


def read_submissions(payload: object, cik: int) -> Submissions:
    """Return when each filing of a company was known; raises Trouble for what is not its file."""
    filings = payload.get("filings") if isinstance(payload, dict) else None
    recent = filings.get("recent") if isinstance(filings, dict) else None
    if not isinstance(payload, dict) or not isinstance(recent, dict):
        raise _another("the reply is no file of submissions")
    if _cik_of(payload.get("cik")) != cik:
        raise _another("the submissions are of another company")
    names = ("accessionNumber", "acceptanceDateTime", "form")
    columns = [recent.get(name) for name in names]
    if not all(isinstance(one, list) for one in columns):
        raise _another("the submissions have other columns")
    accessions, accepted, forms = (one for one in columns if isinstance(one, list))
    # A column of another length would put a stamp beside another filing.
    if not len(accessions) == len(accepted) == len(forms):
        raise _another("the columns of the submissions differ in length")
    stamps: dict[str, datetime] = {}
    read: set[str] = set()
    foreign = False
    for accession, stamp, form in zip(accessions, accepted, forms, strict=True):
        if not isinstance(accession, str) or not ACCESSION.fullmatch(accession):
            continue
        known = accepted_at(stamp)
        if known is not None:
            stamps[accession] = max(known, stamps.get(accession, known))
        if isinstance(form, str) and form in FORMS:
            read.add(accession)
            foreign = foreign or form.removesuffix("/A") in FOREIGN
    return Submissions(stamps, frozenset(read), foreign)


def accepted_at(text: object) -> datetime | None:
    """Return the later of both readings of a stamp of acceptance; None where it is none."""
    found = STAMP.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    try:
        told = datetime.fromisoformat(found[1])
    except ValueError:
        return None
    if not FIRST_DAY <= told.date() <= LAST_DAY:
        return None
    told += timedelta(seconds=bool((found[2] or "").strip(".0")))
    # Of an hour that New York has twice, the second.
    as_new_york = told.replace(tzinfo=NEW_YORK, fold=1).astimezone(UTC)
    return max(told.replace(tzinfo=UTC), as_new_york)


def end_of_filing_day(filed: date) -> datetime:
    """Return the last second of a day in New York."""
    return datetime.combine(filed, time(23, 59, 59), NEW_YORK).astimezone(UTC)


def read_concept(figure: str, concept: Concept, cik: int, payload: object) -> ConceptValues:
    """Return the values of a concept; raises Trouble for what is not the file of this concept."""
    units = payload.get("units") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or not isinstance(units, dict):
        raise _another("the reply is no file of a concept")
    if (payload.get("taxonomy"), payload.get("tag")) != (concept.taxonomy, concept.name):
        raise _another("the reply is of another concept")
    if _cik_of(payload.get("cik")) != cik:
        raise _another("the reply is of another company")
    told, wanted = ConceptValues(concept), FIGURES[figure].unit
    for unit, rows in units.items():
        if not isinstance(rows, list):
            told.refuse("a unit", "no list of values")
        elif unit != "shares" if wanted == "shares" else not CURRENCY.fullmatch(str(unit)):
            told.left_out += len(rows)
        else:
            _take(told, figure, unit, rows)
    told.facts = [*_without_contradictions(told)]
    return told


class _Refused(Exception):
    """Raised for a value that cannot be taken, with the reason."""


def _take(told: ConceptValues, figure: str, unit: str, rows: Sequence[object]) -> None:
    for number, row in enumerate(rows[:MAX_FACTS], 1):
        try:
            fact = _fact(figure, unit, row)
        except _Refused as refused:
            told.refuse(f"value {number}", str(refused))
            continue
        if fact is None:
            told.left_out += 1
        else:
            told.facts.append(fact)
    told.left_out += max(0, len(rows) - MAX_FACTS)


def _fact(figure: str, unit: str, row: object) -> FiledValue | None:
    """Return a value; None for one of a form or a span that nobody reads."""
    if not isinstance(row, dict):
        raise _Refused("no object")
    form = row.get("form")
    if not isinstance(form, str):
        raise _Refused("no form")
    if form not in FORMS:
        return None
    accession = row.get("accn")
    if not isinstance(accession, str) or not ACCESSION.fullmatch(accession):
        raise _Refused("no accession")
    value = _value(row.get("val"), unit)
    period = _period(figure, row)
    if period is None:
        return None
    filed = _day("filed", row.get("filed"))
    if filed < period[1]:
        raise _Refused("filed before its period ended")
    return FiledValue(*period, value, unit, accession, form, filed)


def _value(found: object, unit: str) -> float:
    value = _finite(found)
    if value is None:
        raise _Refused("no number")
    if unit == "shares" and value <= 0.0:
        raise _Refused("shares that are none")
    return value


def _period(figure: str, row: Mapping[str, Any]) -> Period | None:
    """Return the first and the last day of a value; None for a span that nobody reads."""
    ends, start = _day("end", row.get("end")), row.get("start")
    if FIGURES[figure].over == "day":
        if start is not None and start != row["end"]:
            raise _Refused("a period, and the figure is of a day")
        return ends, ends
    begins = _day("start", start)
    if begins > ends:
        raise _Refused("it begins after it ends")
    return (begins, ends) if _is_span(begins, ends) else None


def _is_span(begins: date, ends: date) -> bool:
    days = (ends - begins).days + 1
    return any(least <= days <= most for least, most in SPANS)


def _without_contradictions(told: ConceptValues) -> Iterator[FiledValue]:
    """Yield each value once; a filing that tells a period twice, and differently, tells nothing."""
    said: dict[tuple[str, str, date, date], list[FiledValue]] = {}
    for one in told.facts:
        said.setdefault((one.accession, one.unit, one.begins, one.ends), []).append(one)
    for same in said.values():
        if len({one.value for one in same}) > 1:
            told.refuse(f"a period to {same[0].ends}", "told twice in one filing, and differently")
            told.refused += len(same) - 1
        else:
            yield max(same, key=lambda one: (one.filed, one.form))


def _another(detail: str) -> SourceError:
    return SourceError(NewsStatus.BROKEN, detail)


def _cik_of(value: object) -> int:
    """Return a CIK, 0 for none: EDGAR writes it as a number here and as digits there."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value <= MAX_CIK else 0


def _finite(value: object) -> float | None:
    # True is an int in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) <= LARGEST else None


def _day(name: str, text: object) -> date:
    try:
        if isinstance(text, str) and DATE.fullmatch(text):
            found = date.fromisoformat(text)
            if FIRST_DAY <= found <= LAST_DAY:
                return found
    except ValueError:
        pass
    raise _Refused(f"no day as {name}")


# --- rows -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Filing:
    """What one filing tells of a figure, by concept and period, in one currency."""

    accession: str
    form: str
    known_at: datetime
    said: dict[Concept, dict[Period, FiledValue]] = field(default_factory=dict)
    lead: Concept | None = None
    other_units: int = 0

    @property
    def annual(self) -> bool:
        """Whether it is an annual report, and no amendment of one."""
        return self.form in ANNUAL


def reported(
    ticker: str,
    figure: str,
    told: Sequence[ConceptValues],
    stamps: Mapping[str, datetime],
    now: datetime,
) -> FactsAnswer:
    """Return the rows of a figure from the files of all concepts of its chain."""
    filings = sorted(_filings(told, stamps), key=lambda one: (one.known_at, one.accession))
    _choose_leads(figure, filings)
    rows, early, later, other = [], 0, 0, 0
    for filing in filings:
        for concept, periods in filing.said.items():
            if concept != filing.lead:
                other += len(periods)
                continue
            for fact in periods.values():
                row = _row(ticker, figure, filing, fact)
                if filing.known_at > now + EARLY:
                    later += 1
                elif row.known_at < row.ends:
                    early += 1
                else:
                    rows.append(row)
        other += filing.other_units
    return _answer(told, rows, early=early, later=later, other=other)


def _row(ticker: str, figure: str, filing: _Filing, fact: FiledValue) -> FactRow:
    begins, ends = (datetime.combine(day, time(tzinfo=UTC)) for day in (fact.begins, fact.ends))
    source = f"edgar {filing.form} {filing.accession}"
    return FactRow(
        ticker, figure, begins, ends, filing.known_at, fact.value + 0.0, fact.unit, source
    )


def _answer(
    told: Iterable[ConceptValues], rows: list[FactRow], *, early: int, later: int, other: int
) -> FactsAnswer:
    files = [*told]
    refused = sum(one.refused for one in files) + early
    reasons = [reason for one in files for reason in one.reasons]
    if early:
        reasons.append(f"{early} accepted before their period ended")
    status, detail = NewsStatus.AVAILABLE, reasons[0] if reasons else ""
    if not rows:
        status = NewsStatus.BROKEN if refused else NewsStatus.EMPTY
        if later:
            status, detail = NewsStatus.EMPTY, ALL_LATER
    return FactsAnswer(
        status,
        tuple(rows),
        detail,
        dropped=refused + later,
        left_out=other + sum(one.left_out for one in files),
        reasons=tuple(reasons[:MAX_REASONS]),
    )


def _filings(told: Iterable[ConceptValues], stamps: Mapping[str, datetime]) -> Iterator[_Filing]:
    """Yield each filing with what it tells, its money in one currency."""
    held: dict[str, list[tuple[Concept, FiledValue]]] = {}
    for one in told:
        for fact in one.facts:
            held.setdefault(fact.accession, []).append((one.concept, fact))
    for accession, pairs in held.items():
        newest = max((fact for _, fact in pairs), key=lambda fact: (fact.filed, fact.form))
        known = stamps.get(accession) or end_of_filing_day(newest.filed)
        filing = _Filing(accession, newest.form, known)
        unit = _unit(newest.form, [fact.unit for _, fact in pairs])
        for concept, fact in pairs:
            if fact.unit == unit:
                filing.said.setdefault(concept, {})[fact.begins, fact.ends] = fact
            else:
                filing.other_units += 1
        yield filing


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


def _choose_leads(figure: str, filings: Iterable[_Filing]) -> None:
    """Choose of each filing the concept by which it tells the figure, in the order of knowing."""
    chain = CHAINS[figure]
    passed_over: set[Concept] = set()
    for filing in filings:
        _add_up(chain, filing.said)
        may = [one for one in filing.said if filing.annual or one not in passed_over]
        filing.lead = _lead(chain, {one: filing.said[one] for one in may})
        if filing.annual and filing.lead is not None:
            passed_over = {*filing.said} - {filing.lead}


def _add_up(chain: ConceptChain, said: dict[Concept, dict[Period, FiledValue]]) -> None:
    """Put the sum of its parts in the place of the first one, where a filing tells no total."""
    of_a_part = {name for names in chain.parts for name in names}
    if any(concept.name not in of_a_part for concept in said):
        return
    ends = max((end for periods in said.values() for _, end in periods), default=None)
    newest = {one.name: one for one, periods in said.items() if any(p[1] == ends for p in periods)}
    kinds = [[newest[name] for name in names if name in newest] for names in chain.parts]
    told = [concepts[0] for concepts in kinds if concepts]
    older = {name for names in chain.parts if not {*names} & {*newest} for name in names}
    for concept in told[1:]:
        more = said.pop(concept)
        said[told[0]] = {
            period: fact._replace(value=fact.value + more[period].value)
            for period, fact in said[told[0]].items()
            if period in more
        }
    # A day that tells a kind which the newest one does not tell is of another sum.
    for concept in [one for one in said if one.name in older]:
        more = said[concept]
        said[told[0]] = {
            period: fact for period, fact in said[told[0]].items() if period not in more
        }


def _lead(
    chain: ConceptChain, said: Mapping[Concept, Mapping[Period, FiledValue]]
) -> Concept | None:
    ends = max((end for periods in said.values() for _, end in periods), default=None)
    newest = {
        concept: {period for period in periods if period[1] == ends}
        for concept, periods in said.items()
    }
    told = [concept for concept, periods in newest.items() if periods]
    if not told:
        return None
    first = min(chain.rank(concept) for concept in told)
    # By name, so that the order of the files decides nothing.
    best = sorted(concept for concept in told if chain.rank(concept) == first)
    shared = [period for concept in best for period in newest[concept]]
    # The period that most of them tell; of those the longest.
    measured = max({*shared}, key=lambda period: (shared.count(period), period[1] - period[0]))
    among = [concept for concept in best if measured in newest[concept]]
    return max(among, key=lambda concept: said[concept][measured].value)
