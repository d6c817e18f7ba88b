"""Nothing that became known later changes what a tick read of a company.

A company's reports have restated shares, figures that a desk saw late and a file's word beside the
filings'. The world is cut at a random moment; all that was not known then is replaced by noise, and
what is read at the cut must be the same, live and in a replay. Leaks that are planted here must be
found: they are what others who read filings fell for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.outside.test_nothing_later import Rows, noise
from tests.worlds import company_reports as world
from tests.worlds import desks
from torra.evidence import company_numbers, fair_value
from torra.evidence.company_facts import Books, CompanyHistory, FigureHistory, Filed
from torra.evidence.news_digest import NewsSubject
from torra.evidence.outside_numbers import FactRow, StoredFact
from torra.evidence.outside_readings import OutsideView
from torra.outside.shelf import OutsideShelf

DAY = timedelta(days=1)
SHARE = NewsSubject("ACME.US", "stock", "ACME", ("USD",))
QUARTERS = 40
FIRST_CUT, LAST_CUT = world.known(20), world.known(38)


def closes(until: date) -> list[tuple[date, float]]:
    """Return a price that wanders, split twenty to one when the shares are."""
    split = world.known(30).date() - 20 * DAY
    chance, price, found = random.Random(3), 1000.0, []
    day = world.end(8)
    while day < until:
        price *= 1.0 + chance.gauss(0.0003, 0.01)
        if day == split:
            price /= 20.0
        found.append((day, price))
        day += DAY
    return found


def made(seed: int) -> list[StoredFact]:
    """Return a company's reports: some restated, some seen late, some told by a file too."""
    chance = random.Random(seed)
    found = []
    quarters = world.grown(seed, QUARTERS)
    for one in world.stored(world.reports(quarters, restated={30: 20.0})):
        seen = one.row.known_at + chance.choice((0, 0, 0, 0, 2, 20)) * DAY
        found.append(one._replace(first_seen=seen))
        if chance.random() < 0.03:
            later = one.row.known_at + chance.randrange(1, 200) * DAY
            amended = one.row._replace(value=one.row.value * 1.005, known_at=later)
            found.append(StoredFact(amended, later, 100_000 + one.number))
        if chance.random() < 0.02:
            mine = one.row._replace(value=one.row.value * 0.9, source="mine.csv")
            found.append(StoredFact(mine, seen, 200_000 + one.number))
    return found


def with_noise(
    rows: list[StoredFact], as_of: datetime, seed: int, *, live: bool
) -> list[StoredFact]:
    """Replace what was not known at a moment."""
    chance, found = random.Random(seed), noise(rows, as_of, seed, live=live)
    # And periods that nobody told, of days long past too.
    for one in chance.sample(rows, 60):
        moved = chance.randrange(-900, 900) * DAY
        row = one.row._replace(
            begins=one.row.begins + moved,
            ends=one.row.ends + moved,
            known_at=as_of + chance.randrange(1, 10**7) * timedelta(seconds=1),
        )
        found.append(StoredFact(row, row.known_at, 300_000 + one.number))
    return found


def read(
    rows: list[StoredFact], as_of: datetime, prices: list[tuple[date, float]], *, live: bool
) -> OutsideView:
    shelf = OutsideShelf(Rows([], rows), live=live)
    own = [(day, price) for day, price in prices if day < as_of.date()]
    return shelf.latest(SHARE, as_of, closes=lambda _span: own, trouble=str)


Made = tuple[list[StoredFact], list[tuple[date, float]]]


@pytest.fixture(scope="module")
def company() -> Made:
    return made(3), closes(LAST_CUT.date())


def differing(cuts: int, company: Made) -> Iterator[int]:
    """Yield those of so many random cuts at which the future changed what was read."""
    rows, prices = company
    chance = random.Random(cuts)
    hours = int((LAST_CUT - FIRST_CUT) / timedelta(hours=1))
    for number in range(cuts):
        live = bool(number % 2)
        as_of = FIRST_CUT + chance.randrange(hours) * timedelta(hours=1)
        then = read(rows, as_of, prices, live=live)
        assert then.numbers["company.period_end"] is not None
        if then != read(with_noise(rows, as_of, number, live=live), as_of, prices, live=live):
            yield number


@pytest.mark.journey
def test_no_byte_moves_of_what_was_known_of_a_company(
    company: Made, scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    cuts = scaled(1_000, 6)
    assert [*differing(cuts, company)] == []
    record_property("seen", f"{cuts} cuts, no figure moved")


@pytest.mark.journey
def test_no_byte_moves_where_the_store_keeps_it(company: Made, tmp_path: Path) -> None:
    """The same through a database: what was stored later, and known later, is not there yet."""
    rows, prices = company
    as_of = world.known(30) + 40 * DAY
    told = []
    for number, kept in enumerate((rows, with_noise(rows, as_of, 5, live=True))):
        database = desks.open_database(tmp_path / str(number))
        for seen in sorted({one.first_seen for one in kept}):
            database.store_facts([one.row for one in kept if one.first_seen == seen], seen)
        shelf = OutsideShelf(database, live=True)
        own = [(day, price) for day, price in prices if day < as_of.date()]
        told.append(shelf.latest(SHARE, as_of, closes=lambda _span, own=own: own, trouble=str))  # type: ignore[misc]
        database.close()
    assert told[0] == told[1]
    assert told[0].numbers["company.net_margin_pct"] is not None


def test_all_of_a_company_is_read_somewhere(company: Made) -> None:
    rows, prices = company
    found = read(rows, world.known(37), prices, live=False).numbers
    told = {name: value for name, value in found.items() if name.startswith("company.")}
    assert None not in told.values()
    assert set(told) == {*company_numbers.NOBODY.numbers}


Leak = Callable[[pytest.MonkeyPatch], None]


def known_on_its_day(patch: pytest.MonkeyPatch) -> None:
    """A figure counts from the end of its period, and not from the report."""
    add = CompanyHistory.add

    def early(self: CompanyHistory, rows: Any) -> None:
        add(
            self,
            [
                one._replace(row=one.row._replace(known_at=one.row.ends), first_seen=one.row.ends)
                for one in rows
            ],
        )

    patch.setattr(CompanyHistory, "add", early)


def newest_word(patch: pytest.MonkeyPatch) -> None:
    """What was restated later counts at once."""
    then, last = CompanyHistory.then, world.known(QUARTERS)

    def restated(self: CompanyHistory, as_of: datetime) -> Filed:
        whole = {
            (row.figure, row.begins, row.ends): row.value for row in then(self, last + 900 * DAY)
        }
        known = then(self, as_of)
        return tuple(row._replace(value=whole[row.figure, row.begins, row.ends]) for row in known)

    patch.setattr(CompanyHistory, "then", restated)


def sight_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A live desk takes figures for known that it had not seen."""
    add = CompanyHistory.add

    def published(self: CompanyHistory, rows: Any) -> None:
        add(self, [one._replace(first_seen=one.row.known_at) for one in rows])

    patch.setattr(CompanyHistory, "add", published)


@pytest.mark.journey
@pytest.mark.parametrize("leak", [known_on_its_day, newest_word, sight_forgotten])
def test_a_leak_is_found(leak: Leak, company: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    leak(monkeypatch)
    assert next(differing(12, company), None) is not None


# --- what others fell for -------------------------------------------------------------------------


def figures(rows: list[FactRow], number: int) -> Mapping[str, Any]:
    stored = world.stored(rows)
    return read(stored, world.known(number) + DAY, [], live=False).numbers


def wrong(number: int, patch: pytest.MonkeyPatch, leak: Leak) -> set[str]:
    """Return which figures a way to fall changes."""
    rows = world.reports(world.grown(3, QUARTERS))
    right = figures(rows, number)
    leak(patch)
    fallen = figures(rows, number)
    return {name for name, value in right.items() if fallen[name] != value}


def by_the_year_of_the_filing(patch: pytest.MonkeyPatch) -> None:
    """The comparative column stands for the year of the filing that it is in."""
    add = Books.add

    def labelled(self: Books, row: FactRow) -> None:
        ends = max(row.ends, row.known_at.replace(hour=0) - 60 * DAY)
        near = min(
            (world.midnight(world.end(one)) for one in range(60)), key=lambda one: abs(one - ends)
        )
        moved = near - row.ends
        add(self, row._replace(begins=row.begins + moved, ends=near))

    patch.setattr(Books, "add", labelled)


def a_quarter_over_a_year(patch: pytest.MonkeyPatch) -> None:
    """The newest period counts as a year, however short it is."""

    def newest(history: FigureHistory, ends: date) -> float | None:
        found = [period for period in history.periods if period[1] == ends]
        return history.periods[max(found)].value if found else None

    patch.setattr("torra.evidence.company_figures.of_year", newest)


@pytest.mark.parametrize(
    ("trap", "number", "reached"),
    [
        (by_the_year_of_the_filing, 21, "company.debt_to_equity"),
        (by_the_year_of_the_filing, 23, "company.net_margin_pct"),
        (a_quarter_over_a_year, 21, "company.roe_pct"),
    ],
)
def test_a_known_trap_is_seen_where_it_is_walked_into(
    trap: Leak, number: int, reached: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reached in wrong(number, monkeypatch, trap)


def test_a_company_that_stopped_reporting_is_too_old_to_count(company: Made) -> None:
    rows, prices = company
    early = [one for one in rows if one.row.known_at <= world.known(20)]
    # A quarter of 90 days, and 120 in which the next one may be reported.
    ends = world.midnight(world.end(20))
    fresh = read(early, ends + 210 * DAY, prices, live=False)
    stale = read(early, ends + 212 * DAY, prices, live=False)
    assert fresh.statuses["company"] == "available"
    assert stale.statuses["company"] == "stale"
    assert {*stale.numbers.values()} == {None}
    assert stale.seen[company_numbers.NEWEST].stale
    assert not fresh.seen[company_numbers.NEWEST].stale


@pytest.mark.parametrize(
    "subject",
    [NewsSubject("ACME.US", "stock", ""), NewsSubject("XAUUSD", "gold", "ACME")],
    ids=["no ticker", "gold"],
)
def test_who_has_no_company_reads_none(subject: NewsSubject, company: Made) -> None:
    shelf = OutsideShelf(Rows([], company[0]), live=False)
    found = shelf.latest(subject, LAST_CUT, trouble=lambda _block: "empty")
    assert not any(name.startswith("company.") for name in found.numbers)
    assert found.statuses["company"] == "empty"


def test_a_report_is_worked_out_once(company: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, prices = company
    shelf = OutsideShelf(Rows([], rows), live=False)
    looked: list[int] = []
    whole = fair_value.course

    def counted(filed: Filed) -> Any:
        looked.append(len(filed))
        return whole(filed)

    monkeypatch.setattr(fair_value, "course", counted)
    at = world.known(30) + DAY
    for hour in range(48):
        as_of = at + hour * timedelta(hours=1)
        own = [(day, price) for day, price in prices if day < as_of.date()]
        shelf.latest(SHARE, as_of, closes=lambda _span, own=own: own, trouble=str)  # type: ignore[misc]
    assert len(looked) == 1
