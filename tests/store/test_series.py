"""Series and facts only grow, and are read as they were known."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from instance_database import Database
from tests.worlds import outside_series, stores
from tests.worlds.query_plans import plans
from torra.evidence.company_facts import CompanyHistory
from torra.evidence.outside_numbers import READ_BACK, FactRow, SeriesHistory, SeriesRow, StoredRow
from torra.store import series as series_table
from torra.store import tick_queries
from torra.store.series import SeriesStore

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
ROW = SeriesRow("DGS2", MONDAY, MONDAY + DAY + timedelta(hours=22), 4.1, "fred")
FACT = FactRow("ACME", "revenue", MONDAY - 90 * DAY, MONDAY, NOON, 5e9, "USD", "facts.csv")


def stored(database: Database) -> list[Any]:
    return [one.row for one in database.series_rows(["DGS2"])]


def test_a_row_comes_back_as_it_was_first_seen_to_the_next_second(database: Database) -> None:
    assert database.store_series([ROW], NOON - timedelta(milliseconds=1)) == 1
    assert database.store_series([ROW], NOON + DAY) == 0
    assert database.series_rows(["DGS2"]) == [StoredRow(ROW, NOON, 1)]
    assert database.newest_series() == 1


def test_a_revision_is_known_from_its_first_sight_on(database: Database) -> None:
    database.store_series([ROW], NOON)
    revised = ROW._replace(value=4.2)
    assert database.store_series([revised], NOON + DAY) == 1
    found = stored(database)
    assert found == [ROW, revised._replace(known_at=NOON + DAY)]


def test_a_revision_of_a_file_has_the_moment_of_the_file(database: Database) -> None:
    revised = ROW._replace(value=4.2, known_at=ROW.known_at + DAY)
    assert database.store_series([ROW, revised], NOON, stamped=True) == 2
    assert stored(database) == [ROW, revised]


def test_a_value_of_the_very_same_moment_is_corrected_a_second_later(database: Database) -> None:
    database.store_series([ROW._replace(value=42.5)], NOON, stamped=True)
    assert database.store_series([ROW], NOON, stamped=True) == 1
    right = ROW._replace(known_at=ROW.known_at + timedelta(seconds=1))
    assert stored(database)[-1] == right
    # Either file again: nothing new, and the correction stands.
    assert database.store_series([ROW], NOON, stamped=True) == 0
    assert database.store_series([ROW._replace(value=42.5)], NOON, stamped=True) == 0
    wrong = FACT._replace(value=1.0)
    assert database.store_facts([wrong, FACT, wrong], NOON) == 2
    assert series_table.facts_of(database, "ACME", NOON + DAY)[-1].value == FACT.value


def test_each_source_has_its_own_word_on_a_day(database: Database) -> None:
    mine = ROW._replace(source="mine.csv")
    assert database.store_series([ROW], NOON) == 1
    assert database.store_series([mine], NOON, stamped=True) == 1
    assert database.store_series([ROW], NOON + DAY) == 0
    assert database.store_series([mine._replace(source="again.csv")], NOON, stamped=True) == 0


def test_of_one_moment_a_file_stands_over_a_publisher() -> None:
    mine = ROW._replace(value=4.0, source="mine.csv")
    for rows in ((mine, ROW), (ROW, mine)):
        history = SeriesHistory(live=False)
        history.add(outside_series.stored(rows))
        found = history.then(NOON)
        assert found is not None
        assert (found.value, found.source) == (4.0, "mine.csv")


def test_an_import_that_dies_on_the_way_is_whole_by_the_next_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = list(outside_series.rows(["DGS2"], MONDAY - 900 * DAY, 900, source="mine.csv"))
    whole, done = SeriesStore._store_one, []

    def dies(self: SeriesStore, *words: Any) -> int:
        done.append(words)
        if len(done) == 450:
            raise KeyboardInterrupt
        return whole(self, *words)

    monkeypatch.setattr(SeriesStore, "_store_one", dies)
    with pytest.raises(KeyboardInterrupt):
        database.store_series(rows, NOON, stamped=True)
    left = stored(database)
    assert left == rows[:400]
    monkeypatch.undo()
    assert database.store_series(rows, NOON + DAY, stamped=True) == len(rows) - 400
    assert stored(database) == rows


def test_a_correction_before_the_hour_of_release_counts_from_it(database: Database) -> None:
    before = ROW.known_at - timedelta(minutes=30)
    database.store_series([ROW], before)
    database.store_series([ROW._replace(value=4.2)], before + timedelta(minutes=5))
    found = stored(database)
    assert [(row.value, row.known_at - ROW.known_at) for row in found] == [
        (4.1, timedelta(0)),
        (4.2, timedelta(seconds=1)),
    ]


def test_a_row_of_the_future_makes_no_revision_of_the_present(database: Database) -> None:
    database.store_series([ROW], NOON)
    future = ROW._replace(value=9.0, known_at=NOON + 9_000 * DAY)
    database.store_series([future], NOON, stamped=True)
    assert database.store_series([ROW], NOON + DAY) == 0


def test_rows_beyond_a_number_are_read_alone(database: Database) -> None:
    rows = [ROW._replace(at=MONDAY - n * DAY) for n in range(5)]
    database.store_series(rows, NOON)
    assert [one.number for one in database.series_rows(["DGS2"], after=3)] == [4, 5]
    assert database.series_rows(["DGS10"]) == []


def test_facts_come_back_as_they_were_known(database: Database) -> None:
    later = FACT._replace(value=6e9, known_at=NOON + DAY)
    assert database.store_facts([FACT, later, FACT], NOON) == 2
    assert series_table.facts_of(database, "ACME", NOON) == [FACT]
    assert series_table.facts_of(database, "ACME", NOON + DAY) == [FACT, later]
    assert series_table.facts_of(database, "OTHER", NOON) == []


@pytest.mark.parametrize("file_first", [True, False])
def test_file_and_filing_of_one_moment_have_each_their_word(
    database: Database, file_first: bool
) -> None:
    """Whichever was there first, both are kept, and the file's is the last one."""
    filed = FACT._replace(value=4e9, source="edgar 10-Q 0000000001-26-000001")
    for row in (FACT, filed) if file_first else (filed, FACT):
        assert database.store_facts([row], NOON) == 1
    history = CompanyHistory(live=False)
    history.add(database.fact_rows("ACME"))
    assert [row.value for row in history.then(NOON)] == [4e9, FACT.value]


# --- what was known at a moment -------------------------------------------------------------------


def known(rows: list[StoredRow], as_of: datetime, *, live: bool) -> dict[datetime, float]:
    """Return the same by a slow way of its own: each day's value that was known last."""
    found: dict[datetime, tuple[datetime, int, float]] = {}
    for one in rows:
        if one.row.known_at <= as_of and (not live or one.first_seen <= as_of):
            held = found.get(one.row.at)
            if held is None or (one.row.known_at, one.number) >= held[:2]:
                found[one.row.at] = (one.row.known_at, one.number, one.row.value)
    return {at: value for at, (_, _, value) in sorted(found.items())}


def test_what_lies_too_far_back_to_be_read_is_left_out() -> None:
    history = SeriesHistory(live=False)
    history.add(outside_series.stored(outside_series.rows(["DGS2"], MONDAY - 3000 * DAY, 3000)))
    found = history.then(NOON)
    assert found is not None
    assert found.ats[0] > found.at - READ_BACK >= found.ats[0] - 4 * DAY


@pytest.mark.parametrize("live", [True, False])
def test_a_history_gives_what_was_known_in_any_order(live: bool) -> None:
    chance = random.Random(7)
    plain = outside_series.stored(outside_series.rows(["DGS2"], MONDAY - 60 * DAY, 60))
    revised = [
        StoredRow(
            one.row._replace(value=one.row.value + 1.0, known_at=one.row.known_at + n * DAY),
            one.first_seen + chance.randrange(9) * DAY,
            1000 + n,
        )
        for n, one in enumerate(chance.sample(plain, 20))
    ]
    rows = [*plain, *revised]
    chance.shuffle(rows)
    history = SeriesHistory(live=live)
    history.add(rows[:30])
    history.add(rows[20:])
    for _ in range(200):
        as_of = MONDAY - chance.randrange(70 * 24) * timedelta(hours=1) + 20 * DAY
        found, wanted = history.then(as_of), known(rows, as_of, live=live)
        told = {} if found is None else dict(zip(found.ats, found.values, strict=True))
        assert told == wanted


# --- what was known at a moment -------------------------------------------------------------------


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_newest_value_at_a_moment_is_that_of_the_history(
    database: Database, live: bool, seed: int
) -> None:
    chance = random.Random(seed)
    for hours in range(40):
        at = MONDAY - chance.randrange(9) * DAY
        known = at + timedelta(hours=chance.randrange(1, 200))
        row = SeriesRow("DGS2", at, known, float(hours), "mine.csv")
        seen = known + timedelta(hours=chance.randrange(90)) if live else NOON
        database.store_series([row], seen, stamped=True)
    history = SeriesHistory(live=live)
    history.add(database.series_rows(["DGS2"]))
    for hours in range(-300, 300, 7):
        moment = MONDAY + timedelta(hours=hours)
        then = history.then(moment)
        found = series_table.series_at(database, ["DGS2", "VIXCLS"], moment, live=live)
        told = {name: (one.row.at, one.row.value) for name, one in found.items()}
        assert told == ({} if then is None else {"DGS2": (then.at, then.value)})


def test_a_moment_is_found_by_the_index(database: Database) -> None:
    database.store_series([ROW], NOON)
    found = plans(database, lambda: series_table.series_at(database, ["DGS2"], NOON, live=True))
    ((step,),) = found.values()
    assert "SEARCH series USING INDEX" in step


def test_statuses_of_the_newest_ticks_read_no_table_through(database: Database) -> None:
    stores.save(database, NOON, 0.1)
    found = plans(
        database, lambda: tick_queries.outside_statuses(database, "BTCUSD", ("M15", "H1"), 200)
    )
    steps = [step for some in found.values() for step in some]
    assert len(steps) == 4 and all("SEARCH " in step or "json_each" in step for step in steps)


# --- how the blocks of numbers stood in ticks -----------------------------------------------------


def test_statuses_are_those_of_the_newest_ticks_of_all_timeframes(database: Database) -> None:
    for place, (timeframe, record) in enumerate(
        [
            ("H1", '{"outside": {"statuses": {"macro": "stale"}}}'),
            ("M15", '{"outside": {"statuses": {"macro": "available"}}}'),
            ("M15", '{"outside": null}'),
            ("M15", "no JSON"),
            ("M15", '{"outside": {"statuses": "macro"}}'),
            ("M15", '{"outside": {"statuses": 7}}'),
            ("H1", "{}"),
            ("M15", '{"outside": {"statuses": {"macro": "empty"}}}'),
        ]
    ):
        close = NOON + place * timedelta(hours=1)
        key = stores.key_of(close, timeframe)
        stores.save(database, close, 0.1, timeframe=timeframe)
        database.connection().execute(
            "INSERT INTO journal (torra_key, record, action, reason, elapsed_ms, provider, "
            "cost_usd, at) VALUES (?, ?, '', '', 0, '', 0, '')",
            [key.text, record],
        )
    both = ("M15", "H1")
    found = tick_queries.outside_statuses(database, "BTCUSD", both, 7)
    assert found == [{"macro": "empty"}, *[{}] * 5, {"macro": "available"}]
    assert tick_queries.outside_statuses(database, "BTCUSD", ("H1",), 9) == [{}, {"macro": "stale"}]
    assert tick_queries.outside_statuses(database, "EURUSD", both, 9) == []
