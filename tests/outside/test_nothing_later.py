"""Nothing that became known later changes what a tick read from beside the chart.

A world has revised values, late releases and values that this desk saw late. It is cut at a random
moment; everything that was not known then is replaced by noise, and what is read at the cut must be
the same, on a live desk and in a replay. Leaks that are planted here must be found.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from tests.evidence.test_outside_readings import SUBJECTS
from tests.worlds import outside_series
from torra.evidence import outside_numbers
from torra.evidence.fair_value import Closes
from torra.evidence.outside_numbers import SeriesHistory, StoredFact, StoredRow
from torra.evidence.outside_readings import OutsideView, series_for
from torra.outside.shelf import OutsideShelf

DAY = timedelta(days=1)
BEGIN = datetime(2022, 3, 1, tzinfo=UTC)
DAYS = 700
ASSETS = ("gold", "index", "fx", "oil", "crypto")


class Rows:
    """The tables of outside numbers in memory."""

    def __init__(self, rows: list[StoredRow], facts: Sequence[StoredFact] = ()) -> None:
        self.rows = rows
        self.facts = facts

    def newest_series(self) -> int:
        return max((one.number for one in self.rows), default=0)

    def series_rows(self, names: Any, after: int = 0) -> list[StoredRow]:
        return [one for one in self.rows if one.row.name in names and one.number > after]

    def newest_fact(self) -> int:
        return max((one.number for one in self.facts), default=0)

    def fact_rows(self, ticker: str, after: int = 0) -> list[StoredFact]:
        return [one for one in self.facts if one.row.ticker == ticker and one.number > after]


def world(asset: str, seed: int) -> list[StoredRow]:
    """Return the rows of a class: some revised, some released late, some seen late."""
    chance = random.Random(f"{asset} {seed}")
    found = []
    for one in outside_series.stored(
        outside_series.rows(series_for(SUBJECTS[asset]), BEGIN, DAYS, seed)
    ):
        row = one.row
        if chance.random() < 0.05:
            row = row._replace(known_at=row.known_at + chance.randrange(1, 47) * DAY)
        seen = row.known_at + chance.choice((0, 0, 0, 1, 9)) * DAY
        found.append(StoredRow(row, seen, one.number))
        if chance.random() < 0.05:
            later = row.known_at + chance.randrange(1, 90) * DAY
            revised = row._replace(value=row.value * 1.1, known_at=later)
            found.append(StoredRow(revised, later, 100_000 + one.number))
    return found


Stored = TypeVar("Stored", StoredRow, StoredFact)


def noise(rows: list[Stored], as_of: datetime, seed: int, *, live: bool) -> list[Stored]:
    """Replace what was not known at a moment."""
    chance = random.Random(seed)

    def late(one: Stored) -> bool:
        return one.row.known_at > as_of or (live and one.first_seen > as_of)

    return [
        one._replace(row=one.row._replace(value=chance.uniform(1.0, 1e6))) if late(one) else one
        for one in rows
        if not late(one) or chance.random() < 0.8
    ]


def read(rows: list[StoredRow], asset: str, as_of: datetime, *, live: bool) -> OutsideView:
    shelf = OutsideShelf(Rows(rows), live=live)
    return shelf.latest(SUBJECTS[asset], as_of, trouble=str)


def differing(cuts: int, assets: Mapping[str, list[StoredRow]]) -> Iterator[int]:
    """Yield those of so many random cuts at which the future changed what was read."""
    chance = random.Random(cuts)
    for number in range(cuts):
        asset, live = ASSETS[number % len(ASSETS)], bool(number % 2)
        as_of = BEGIN + chance.randrange(400 * 24, DAYS * 24) * timedelta(hours=1)
        rows = assets[asset]
        then = read(rows, asset, as_of, live=live)
        assert any(value is not None for value in then.numbers.values())
        if then != read(noise(rows, as_of, number, live=live), asset, as_of, live=live):
            yield number


@pytest.fixture(scope="module")
def worlds() -> Mapping[str, list[StoredRow]]:
    return {asset: world(asset, 3) for asset in ASSETS}


def test_no_byte_moves_of_what_was_known(
    worlds: Mapping[str, list[StoredRow]],
    scaled: Callable[..., int],
    record_property: Callable[[str, object], None],
) -> None:
    cuts = scaled(1_000, 10)
    assert [*differing(cuts, worlds)] == []
    record_property("seen", f"{cuts} cuts, no number moved")


@pytest.mark.journey
@pytest.mark.parametrize("moment", ["at", "known_at"], ids=["its own day", "as published"])
def test_a_value_that_is_used_too_early_is_found(
    moment: str, worlds: Mapping[str, list[StoredRow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On its own day, or by a live desk that forgets its first sight."""

    def too_early(_: SeriesHistory, one: StoredRow) -> Any:
        return getattr(one.row, moment)

    monkeypatch.setattr(outside_numbers.SeriesHistory, "_moment", too_early)
    assert next(differing(10, worlds), None) is not None


@pytest.mark.journey
def test_a_history_that_gives_the_newest_revision_is_found(
    worlds: Mapping[str, list[StoredRow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SeriesHistory.then

    def newest(self: SeriesHistory, as_of: datetime) -> Any:
        found, last = whole(self, as_of), whole(self, BEGIN + 9 * DAYS * DAY)
        if found is None or last is None:
            return found
        today = dict(zip(last.ats, last.values, strict=True))
        return found._replace(values=tuple(today[at] for at in found.ats))

    monkeypatch.setattr(SeriesHistory, "then", newest)
    assert next(differing(10, worlds), None) is not None


def test_what_is_stored_later_is_read_without_reading_all_again() -> None:
    rows = sorted(world("gold", 5), key=lambda one: one.number)
    table = Rows(rows[:300])
    shelf = OutsideShelf(table, live=False)
    as_of = BEGIN + DAYS * DAY
    shelf.latest(SUBJECTS["gold"], as_of, trouble=str)
    asked: list[int] = []
    whole = table.series_rows

    def counted(names: Any, after: int = 0) -> list[StoredRow]:
        asked.append(after)
        return whole(names, after)

    table.series_rows = counted  # type: ignore[method-assign]
    table.rows = rows
    later = shelf.latest(SUBJECTS["gold"], as_of, trouble=str)
    assert later == read(rows, "gold", as_of, live=False)
    shelf.latest(SUBJECTS["gold"], as_of, trouble=str)
    assert len(asked) == 1
    assert asked[0] > 0


@pytest.mark.journey
def test_only_what_the_settings_name_is_read() -> None:
    rows = [
        one._replace(row=one.row._replace(source=("fred", "mine.csv")[number % 2]))
        for number, one in enumerate(world("index", 3))
    ]
    as_of = BEGIN + DAYS * DAY
    for sources, kept in ((("fred",), "fred"), (("file",), "mine.csv"), ((), "")):
        shelf = OutsideShelf(Rows(rows), live=False, sources=sources)
        found = shelf.latest(SUBJECTS["index"], as_of, trouble=str)
        assert {one.source for one in found.seen.values()} == ({kept} - {""})


def test_two_instances_of_a_symbol_read_each_its_own_closes() -> None:
    rows, as_of = world("gold", 3), BEGIN + DAYS * DAY
    shelf = OutsideShelf(Rows(rows), live=False)
    long = [((as_of - number * DAY).date(), 100.0 + number % 7) for number in range(420, 0, -1)]
    found = [
        shelf.latest(SUBJECTS["gold"], as_of, closes=partial(_held, held), trouble=str, who=who)
        for who, held in (("LONG", long), ("SHORT", long[-10:]), ("LONG", long))
    ]
    told = [one.numbers["macro.real_yield_relation"] for one in found]
    assert told[0] == told[2] in ("holds", "broke")
    assert told[1] is None


def _held(closes: Closes, _span: timedelta) -> Closes:
    return closes


def test_a_store_that_fails_costs_the_numbers_and_no_tick() -> None:
    class Broken(Rows):
        def newest_series(self) -> int:
            raise OSError("gone")

    view = OutsideShelf(Broken([]), live=True).latest(SUBJECTS["gold"], BEGIN, trouble=str)
    assert set(view.statuses.values()) == {"broken"}
    assert not view.numbers
