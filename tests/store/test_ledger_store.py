"""The ledger: rows that are booked, settled, kept and summed; levels and vendors not asked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from instance_database import Database
from tests.worlds.calls import a_call
from tests.worlds.purses import KEY, booking, rows
from tests.worlds.stores import NOON, Hand
from torra.clock import iso
from torra.store import ledger as ledger_table
from torra.store.ledger import UNDER_WAY, Settlement
from torra.tick.spending import HOUR, LINGER

SECOND = timedelta(seconds=1)


def book(
    database: Database, usd: float = 1.0, *, profile: str = "mine", seconds: int = 0, **more: Any
) -> int:
    """Book one request whose money can be spent until so many seconds after noon."""
    until = NOON + seconds * SECOND
    key = more.pop("key", KEY.text)
    (row,) = database.book(profile, key, [booking(usd, **more)], at=NOON, until=until)
    return row


def test_a_row_counts_until_an_hour_after_its_last_moment(database: Database, hand: Hand) -> None:
    database.book("mine", KEY.text, [booking(0.4)], at=NOON, until=NOON + timedelta(seconds=75))
    for seconds, counts in ((-9999, 0.4), (0, 0.4), (3600, 0.4), (3674.9, 0.4), (3676, 0.0)):
        assert database.spent("mine", NOON + timedelta(seconds=seconds) - HOUR) == counts
    assert database.spent("another", NOON - HOUR) == 0.0


def test_rounding_to_seconds_never_frees_anything(database: Database) -> None:
    until = NOON + timedelta(seconds=10.2)
    database.book("mine", KEY.text, [booking()], at=NOON, until=until)
    assert database.spent("mine", until - timedelta(microseconds=1)) == 1.0


def test_settling_replaces_the_worst_case_once(database: Database, hand: Hand) -> None:
    (row,) = database.book("mine", KEY.text, [booking()], at=NOON, until=NOON + LINGER)
    paid = Settlement(0.25, NOON + timedelta(seconds=3), 1000, 90, 400, ("google", "gemini-x"))
    database.settle(row, paid)
    database.settle(row, Settlement(0.75, NOON))
    database.keep(row)
    database.release(row)
    (kept,) = rows(database)
    assert (kept["state"], kept["usd"], kept["until"]) == ("settled", 0.25, "2026-02-13T12:00:03Z")
    assert (kept["input_tokens"], kept["output_tokens"], kept["cached_tokens"]) == (1000, 90, 400)
    assert (kept["provider"], kept["model"]) == ("google", "gemini-x")


def test_a_row_that_was_taken_back_lends_its_number_to_no_other(database: Database) -> None:
    (row,) = database.book("mine", KEY.text, [booking()], at=NOON, until=NOON)
    database.release(row)
    (other,) = database.book("mine", KEY.text, [booking()], at=NOON, until=NOON)
    database.release(row)  # once more, because nobody heard that it worked
    assert other != row and len(rows(database)) == 1


def test_old_rows_are_forgotten(database: Database) -> None:
    for day in (0, 40):
        moment = NOON + timedelta(days=day)
        database.book("mine", KEY.text, [booking()], at=moment, until=moment)
    assert ledger_table.prune_ledger(database, NOON + timedelta(days=30)) == 1
    assert len(rows(database)) == 1


def test_rows_of_one_stage_are_booked_together(database: Database) -> None:
    wrong = [booking(1.0), booking(-1.0)]
    with pytest.raises(Exception, match="CHECK constraint"):
        database.book("mine", KEY.text, wrong, at=NOON, until=NOON)
    assert rows(database) == []
    numbers = database.book(
        "mine", KEY.text, [booking(1.0), booking(2.0, attempt=2)], at=NOON, until=NOON
    )
    one, other = rows(database)
    assert numbers == [one["id"], other["id"]]
    assert (one["state"], one["torra_key"], one["at"]) == ("reserved", KEY.text, iso(NOON))
    assert (one["input_tokens"], one["output_tokens"], one["cached_tokens"]) == (0, 0, 0)
    assert (other["usd"], other["attempt"], other["model"]) == (2.0, 2, "claude-haiku-5-5")


def test_a_kept_row_stays_and_may_be_settled_after_all(database: Database) -> None:
    row = book(database)
    database.keep(row)
    database.release(row)
    assert [one["state"] for one in rows(database)] == ["kept"]
    database.settle(row, Settlement(0.5, NOON, 10, 20))
    (one,) = rows(database)
    assert (one["state"], one["usd"]) == ("settled", 0.5)
    assert (one["provider"], one["model"]) == ("anthropic", "claude-haiku-5-5")


def test_what_is_only_reserved_is_not_surely_spent(database: Database) -> None:
    for usd, end in ((1.0, "reserved"), (2.0, "kept"), (4.0, "settled")):
        row = book(database, usd)
        if end == "kept":
            database.keep(row)
        elif end == "settled":
            database.settle(row, Settlement(usd, NOON))
    before = NOON - SECOND
    assert database.spent("mine", before) == 7.0
    assert database.spent("mine", before, surely=True) == 6.0
    assert database.spent("mine", NOON) == 0.0, "the window begins behind its moment"


def test_sums_are_of_a_profile_and_a_window(database: Database) -> None:
    assert ledger_table.ledger_profiles(database) == []
    for seconds, usd, profile in ((0, 1.0, "mine"), (10, 2.0, "mine"), (20, 4.0, "mine"),
                                  (10, 8.0, "other"), (10, 16.0, "third")):  # fmt: skip
        book(database, usd, profile=profile, seconds=seconds)
    assert ledger_table.ledger_profiles(database) == ["mine", "other", "third"]

    def counted(since: int, profile: str | None = None) -> list[float]:
        found = ledger_table.ledger_rows(database, NOON + since * SECOND, profile)
        return [row["usd"] for row in found]

    assert counted(-1) == [1.0, 2.0, 8.0, 16.0, 4.0]
    assert counted(0, "mine") == [2.0, 4.0] and counted(20) == []
    between = [
        ledger_table.ledger_between(database, "mine", NOON + first * SECOND, NOON + last * SECOND)
        for first, last in ((0, 10), (0, 11), (10, 20), (30, 40))
    ]
    assert between == [(1.0, 1), (3.0, 2), (2.0, 1), (0.0, 0)]
    together = ledger_table.spent_together
    assert together(database, ["mine", "other"], NOON) == 14.0
    assert together(database, ["mine", "other"], NOON + 10 * SECOND) == 4.0
    assert together(database, [], NOON - SECOND) == 0.0


def test_sums_are_grouped_by_role_vendor_model_and_by_whether_they_are_settled(
    database: Database,
) -> None:
    for usd in (1.0, 2.0):
        database.settle(book(database, usd), Settlement(usd, NOON, 100, 10, 50))
    database.keep(book(database, 4.0))
    book(database, 8.0, role="arbiter")
    book(database, 16.0, seconds=60)
    book(database, 32.0, profile="other")

    def sums(after: int, upto: int | None) -> dict[tuple[str, int], tuple[Any, ...]]:
        end = None if upto is None else NOON + upto * SECOND
        found = ledger_table.ledger_sums(database, "mine", NOON + after * SECOND, end)
        names = ("calls", "usd", "input_tokens", "cached_tokens", "output_tokens")
        return {(row["role"], row["kept"]): tuple(row[name] for name in names) for row in found}

    assert sums(-1, 0) == {
        ("arbiter", 1): (1, 8.0, 0, 0, 0),
        ("technical", 0): (2, 3.0, 200, 100, 20),
        ("technical", 1): (1, 4.0, 0, 0, 0),
    }
    assert sums(0, None) == {("technical", 1): (1, 16.0, 0, 0, 0)}
    assert sums(-1, None)["technical", 1] == (2, 20.0, 0, 0, 0) and sums(60, None) == {}


def test_what_stands_at_its_worst_case_is_listed_newest_first(database: Database) -> None:
    old, kept, new = book(database), book(database), book(database, seconds=9)
    database.keep(kept)
    database.settle(book(database), Settlement(0.5, NOON))
    book(database, profile="other")

    def unsettled(since: timedelta, limit: int = 9) -> list[int]:
        found = ledger_table.ledger_unsettled(database, "mine", NOON + since, limit)
        return [row["id"] for row in found]

    assert unsettled(-SECOND) == [new, kept, old] and unsettled(-SECOND, 1) == [new]
    assert unsettled(0 * SECOND) == [new]


def test_sums_of_a_replay_are_never_forgotten(database: Database) -> None:
    for profile in ("replay.1", "replays", "mine"):
        book(database, profile=profile)
    assert ledger_table.prune_ledger(database, NOON) == 0
    assert ledger_table.prune_ledger(database, NOON + SECOND) == 2
    assert ledger_table.ledger_profiles(database) == ["replay.1"]


def test_a_level_is_kept_with_its_moment(database: Database, hand: Hand) -> None:
    assert database.degradation_level("mine") is None
    assert ledger_table.degradation_level_row(database, "mine") is None
    for level in ("lean", "l1"):
        ledger_table.set_degradation_level(database, "mine", level)
        hand.pass_by(1)
    assert database.degradation_level("mine") == "l1" and database.degradation_level("x") is None
    assert ledger_table.degradation_level_row(database, "mine") == {
        "degradation_level": "l1", "at": iso(NOON + SECOND),
    }  # fmt: skip


def test_a_vendor_is_not_asked_until_its_block_ends(database: Database, hand: Hand) -> None:
    ledger_table.block_provider(database, "openai", "first", NOON + SECOND)
    ledger_table.block_provider(database, "openai", "x" * 900, NOON + 9.2 * SECOND)
    ledger_table.block_provider(database, "google", "429", NOON + SECOND)
    google, openai = ledger_table.provider_blocks(database)
    assert (google.provider, google.reason, google.since) == ("google", "429", iso(NOON))
    assert (len(openai.reason), openai.until) == (500, iso(NOON + 10 * SECOND)), "rounded up"
    hand.pass_by(1)
    assert [row.provider for row in ledger_table.provider_blocks(database)] == ["openai"]
    ledger_table.clear_blocks(database)
    assert ledger_table.provider_blocks(database) == []


def test_rounds_are_counted_by_calls_and_by_bookings_that_cost(database: Database) -> None:
    def asked(since: timedelta = -SECOND) -> int:
        return ledger_table.count_rounds(database, "mine", KEY.text, NOON + since)

    assert asked() == ledger_table.last_round(database, KEY.text) == 0
    database.write_calls(KEY, [a_call(round=number) for number in (1, 2)])
    assert asked() == ledger_table.last_round(database, KEY.text) == 2
    book(database, 0.0, round=9)
    book(database, round=8, profile="other")
    book(database, round=7, key="another")
    assert asked() == 2
    book(database, round=3)
    assert asked() == 3 and asked(0 * SECOND) == 2, "a booking counts within its window"
    assert ledger_table.last_round(database, KEY.text) == 2


@pytest.mark.parametrize(
    ("state", "age", "is_under_way"),
    [("reserved", 1, True), ("kept", 1, False), ("settled", 1, False),
     ("reserved", UNDER_WAY.total_seconds() - 1, True), ("reserved", 120, False)],
)  # fmt: skip
def test_a_call_is_under_way_while_it_is_reserved_and_young(
    database: Database, hand: Hand, state: str, age: float, is_under_way: bool
) -> None:
    row = book(database)
    if state == "kept":
        database.keep(row)
    elif state == "settled":
        database.settle(row, Settlement(0.5, NOON))
    hand.moment = NOON + age * SECOND
    assert ledger_table.is_under_way(database, KEY.text) is is_under_way
    assert not ledger_table.is_under_way(database, "another")
