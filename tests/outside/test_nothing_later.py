"""Nothing that became known later changes what a tick read from beside the chart.

A world of series, and one of a company's reports, has revised values, late releases, values that
this desk saw late and a file's word beside the publisher's. It is cut at a random moment; what was
not known then is replaced by noise, and what is read at the cut must be the same, on a live desk
and in a replay. Leaks that are planted here must be found: others who read filings fell for them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.evidence.test_outside_readings import SUBJECTS
from tests.worlds import company_reports, desks, outside_series
from torra.evidence import fair_value
from torra.evidence.company_facts import Books, FigureHistory
from torra.evidence.news_digest import NewsSubject
from torra.evidence.outside_numbers import Closes, FactRow, RowHistory
from torra.evidence.outside_readings import NEWEST, OutsideView, series_for
from torra.outside.shelf import OutsideShelf

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
BEGIN = datetime(2022, 3, 1, tzinfo=UTC)
DAYS = 700
END = BEGIN + DAYS * DAY
SHARE = NewsSubject("ACME.US", "stock", "ACME", ("USD",))
KINDS = {"series": ("gold", "index", "fx", "oil", "crypto"), "company": ("company",)}
QUARTERS = 40
known, quarter_end, midnight = (
    company_reports.known, company_reports.end, company_reports.midnight,
)  # fmt: skip


class Rows:
    """The tables of outside numbers in memory: rows of series or of companies."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows

    def newest_series(self) -> int:
        return max((stored.number for stored in self.rows), default=0)

    def series_rows(self, names: Sequence[str], after: int = 0) -> list[Any]:
        return [one for one in self.rows if one.row[0] in names and one.number > after]

    newest_fact = newest_series

    def fact_rows(self, ticker: str, after: int = 0) -> list[Any]:
        return self.series_rows([ticker], after)


# --- the worlds -----------------------------------------------------------------------------------


class World(NamedTuple):
    """What is stored for a subject, its closes, and the first and the last cut."""

    subject: NewsSubject
    rows: Sequence[Any]
    closes: Closes
    first: datetime
    last: datetime

    def read(self, as_of: datetime, rows: Sequence[Any], *, live: bool) -> OutsideView:
        return read(OutsideShelf(Rows(rows), live=live), self, as_of)


def read(shelf: OutsideShelf, world: World, as_of: datetime, who: str = "") -> OutsideView:
    own = [(day, price) for day, price in world.closes if day < as_of.date()]
    return shelf.latest(world.subject, as_of, closes=lambda _span: own, trouble=str, who=who)


def disturbed(rows: Sequence[Any], chance: random.Random) -> Iterator[Any]:
    """Yield rows, some seen late, some revised later, some told by a file too."""
    for stored in rows:
        seen = stored.row.known_at + chance.choice((0, 0, 0, 0, 2, 20)) * DAY
        yield stored._replace(first_seen=seen)
        value, later = stored.row.value, stored.row.known_at + chance.randrange(1, 200) * DAY
        if chance.random() < 0.04:
            revised = stored.row._replace(value=value * 1.005, known_at=later)
            yield type(stored)(revised, later, 100_000 + stored.number)
        if chance.random() < 0.02:
            mine = stored.row._replace(value=value * 0.9, source="mine.csv")
            yield type(stored)(mine, seen, 200_000 + stored.number)


@cache
def world(name: str, seed: int = 3) -> World:
    """Return the world of an asset class, or of a company whose shares were split."""
    chance = random.Random(f"{name} {seed}")
    if name == "company":
        quarters = company_reports.grown(seed, QUARTERS)
        told = company_reports.stored(company_reports.reports(quarters, restated={30: 20.0}))
        return World(SHARE, [*disturbed(told, chance)], split_closes(), known(20), known(38))
    subject = SUBJECTS[name]
    made = outside_series.stored(outside_series.rows(series_for(subject), BEGIN, DAYS, seed))
    late = [
        stored._replace(row=stored.row._replace(known_at=stored.row.known_at + weeks * 7 * DAY))
        for stored in made
        for weeks in [chance.randrange(1, 7) if chance.random() < 0.05 else 0]
    ]
    return World(subject, [*disturbed(late, chance)], (), BEGIN + 400 * DAY, END)


def split_closes() -> Closes:
    """Return a price that wanders, split twenty to one when the shares are."""
    split = known(30).date() - 20 * DAY
    chance, price, closes, day = (
        random.Random(3),
        1000.0,
        list[tuple[date, float]](),
        quarter_end(8),
    )
    while day < known(38).date():
        price *= (1.0 + chance.gauss(0.0003, 0.01)) / (20.0 if day == split else 1.0)
        closes.append((day, price))
        day += DAY
    return closes


def noise(rows: Sequence[Any], as_of: datetime, seed: int, *, live: bool) -> list[Any]:
    """Replace what was not known at a moment, and tell of days of which nobody told."""
    chance, found = random.Random(seed), list[Any]()
    for stored in rows:
        if stored.row.known_at <= as_of and not (live and stored.first_seen > as_of):
            found.append(stored)
        elif chance.random() < 0.8:
            strange = stored.row._replace(value=chance.uniform(1.0, 1e6))
            found.append(stored._replace(row=strange))
    for stored in chance.sample(rows, 60):
        moved = chance.randrange(-900, 900) * DAY
        row = stored.row._replace(
            known_at=as_of + chance.randrange(1, 10**7) * timedelta(seconds=1)
        )
        for name in {"at", "begins", "ends"} & {*row._fields}:
            row = row._replace(**{name: getattr(row, name) + moved})
        found.append(type(stored)(row, row.known_at, 300_000 + stored.number))
    return found


def differing(cuts: int, names: Sequence[str]) -> Iterator[int]:
    """Yield those of so many random cuts at which the future changed what was read."""
    chance = random.Random(cuts)
    for number in range(cuts):
        place, live = world(names[number % len(names)]), bool(number % 2)
        as_of = place.first + chance.randrange((place.last - place.first) // HOUR) * HOUR
        then = place.read(as_of, place.rows, live=live)
        assert any(value is not None for value in then.numbers.values())
        if then != place.read(as_of, noise(place.rows, as_of, number, live=live), live=live):
            yield number


@pytest.mark.parametrize(
    ("kind", "few"), [("series", 10), pytest.param("company", 6, marks=pytest.mark.journey)]
)
def test_no_byte_moves_of_what_was_known(
    kind: str,
    few: int,
    scaled: Callable[..., int],
    record_property: Callable[[str, object], None],
) -> None:
    cuts = scaled(1_000, few)
    assert [*differing(cuts, KINDS[kind])] == []
    record_property("seen", f"{cuts} cuts, no number moved")


@pytest.mark.journey
def test_no_byte_moves_where_the_store_keeps_it(tmp_path: Path) -> None:
    """The same through a database: what was stored later, and known later, is not there yet."""
    company, as_of, views = world("company"), known(30) + 40 * DAY, []
    for number, kept in enumerate((company.rows, noise(company.rows, as_of, 5, live=True))):
        database = desks.open_database(tmp_path / str(number))
        for seen in sorted({stored.first_seen for stored in kept}):
            database.store_facts([one.row for one in kept if one.first_seen == seen], seen)
        views.append(read(OutsideShelf(database, live=True), company, as_of))
        database.close()
    assert views[0] == views[1]
    assert views[0].numbers["company.net_margin_pct"] is not None


# --- leaks ----------------------------------------------------------------------------------------

Leak = Callable[[pytest.MonkeyPatch], None]


def known_on_its_day(patch: pytest.MonkeyPatch) -> None:
    """A value counts from the day that it is about."""
    patch.setattr(RowHistory, "_moment", lambda _, one: getattr(one.row, "at", one.row[3]))


def sight_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A live desk takes for known what it had not seen."""
    patch.setattr(RowHistory, "_moment", lambda _, one: one.row.known_at)


def newest_word(patch: pytest.MonkeyPatch) -> None:
    """What was revised later counts at once."""
    add = RowHistory.add

    def key(stored: Any) -> Any:
        return stored.row[: stored.row._fields.index("known_at")]

    def revised(self: RowHistory[Any, Any], rows: Any) -> None:
        told = sorted(rows, key=lambda one: one.row.known_at)
        last = {key(one): one.row.value for one in told}
        add(self, [one._replace(row=one.row._replace(value=last[key(one)])) for one in told])

    patch.setattr(RowHistory, "add", revised)


@pytest.mark.journey
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leak", [known_on_its_day, newest_word, sight_forgotten])
def test_a_leak_is_found(leak: Leak, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leak(monkeypatch)
    assert next(differing(12, KINDS[kind]), None) is not None


def by_the_year_of_the_filing(patch: pytest.MonkeyPatch) -> None:
    """The comparative column stands for the year of the filing that it is in."""
    add = Books.add

    def labelled(self: Books, row: FactRow) -> None:
        ends = max(row.ends, row.known_at.replace(hour=0) - 60 * DAY)
        near = min(
            (midnight(quarter_end(one)) for one in range(60)), key=lambda one: abs(one - ends)
        )
        add(self, row._replace(begins=row.begins + (near - row.ends), ends=near))

    patch.setattr(Books, "add", labelled)


def a_quarter_over_a_year(patch: pytest.MonkeyPatch) -> None:
    """The newest period counts as a year, however short it is."""

    def newest(history: FigureHistory, ends: date) -> float:
        periods = [period for period in history.periods if period[1] == ends]
        return history.periods[max(periods)].value if periods else float("nan")

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
    def figures() -> Mapping[str, Any]:
        rows = company_reports.reports(company_reports.grown(3, QUARTERS))
        plain = world("company")._replace(closes=())
        return plain.read(known(number) + DAY, company_reports.stored(rows), live=False).numbers

    right = figures()
    trap(monkeypatch)
    assert figures()[reached] != right[reached]


# --- the shelf ------------------------------------------------------------------------------------


def test_what_is_stored_later_is_read_without_reading_all_again() -> None:
    gold = world("gold", 5)
    rows = sorted(gold.rows, key=lambda stored: stored.number)
    table, asked = Rows(rows[:300]), list[int]()
    whole = table.series_rows

    def counted(names: Sequence[str], after: int = 0) -> list[Any]:
        asked.append(after)
        return whole(names, after)

    table.series_rows = counted  # type: ignore[method-assign]
    shelf = OutsideShelf(table, live=False)
    read(shelf, gold, END)
    table.rows = rows
    assert read(shelf, gold, END) == read(shelf, gold, END) == gold.read(END, rows, live=False)
    assert asked == [0, rows[299].number]


def test_a_report_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    company, courses, whole = world("company"), list[int](), fair_value.course
    monkeypatch.setattr(
        fair_value, "course", lambda filed: courses.append(len(filed)) or whole(filed)
    )
    shelf = OutsideShelf(Rows(company.rows), live=False)
    for hour in range(48):
        read(shelf, company, known(30) + DAY + hour * HOUR)
    assert len(courses) == 1


@pytest.mark.journey
def test_only_what_the_settings_name_is_read() -> None:
    index = world("index")
    rows = [
        one._replace(row=one.row._replace(source=("fred", "mine.csv")[number % 2]))
        for number, one in enumerate(index.rows)
    ]
    for sources, kept in ((("fred",), {"fred"}), (("file",), {"mine.csv"}), ((), set[str]())):
        view = read(OutsideShelf(Rows(rows), live=False, sources=sources), index, END)
        assert {one.source for one in view.seen.values()} == kept


def test_two_instances_of_a_symbol_read_each_its_own_closes() -> None:
    gold = world("gold")
    shelf = OutsideShelf(Rows(gold.rows), live=False)
    long = [((END - number * DAY).date(), 100.0 + number % 7) for number in range(420, 0, -1)]
    relations = [
        read(shelf, gold._replace(closes=own), END, who).numbers["macro.real_yield_relation"]
        for who, own in (("LONG", long), ("SHORT", long[-10:]), ("LONG", long))
    ]
    assert relations[0] == relations[2] in ("holds", "broke")
    assert relations[1] is None


def test_a_store_that_fails_costs_the_numbers_and_no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: Rows) -> int:
        raise OSError("gone")

    monkeypatch.setattr(Rows, "newest_series", gone)
    view = world("gold").read(BEGIN, (), live=True)
    assert {*view.statuses.values()} == {"broken"} and not view.numbers


def test_all_of_a_company_is_read_until_it_is_too_old_to_count() -> None:
    company = world("company")
    whole = company.read(known(37), company.rows, live=False).numbers
    of_company = {name: whole[name] for name in whole if name.startswith("company.")}
    assert None not in of_company.values() and {*of_company} == {*fair_value.NOBODY.numbers}
    early = [stored for stored in company.rows if stored.row.known_at <= known(20)]
    # A quarter of 90 days, and 120 in which the next one may be reported.
    for days, status in ((210, "available"), (212, "stale")):
        view = company.read(midnight(quarter_end(20)) + days * DAY, early, live=False)
        assert view.statuses["company"] == status
        assert (
            view.seen[NEWEST].stale == (status == "stale") == ({*view.numbers.values()} == {None})
        )


@pytest.mark.parametrize(
    "subject",
    [NewsSubject("ACME.US", "stock", ""), NewsSubject("XAUUSD", "gold", "ACME")],
    ids=["no ticker", "gold"],
)
def test_who_has_no_company_reads_none(subject: NewsSubject) -> None:
    shelf = OutsideShelf(Rows(world("company").rows), live=False)
    view = shelf.latest(subject, known(38), trouble=lambda _block: "empty")
    assert not any(name.startswith("company.") for name in view.numbers)
    assert view.statuses["company"] == "empty"
