"""Which calls are judged: those of a day, since a desk started and since a profile was changed."""

from __future__ import annotations

from functools import partial

import pytest

from instance_database import Database
from tests.worlds.calls import HAIKU, store
from tests.worlds.query_plans import plans
from tests.worlds.stores import Hand
from torra.store import ledger as ledger_table
from torra.store.ledger import JUDGED_CALLS

MODELS = [HAIKU]


def test_calls_of_a_day_are_read_and_no_older_ones(database: Database, hand: Hand) -> None:
    store(database, ["ok", "garbage"])
    hand.pass_by(24 * 3600)
    assert sorted(row["status"] for row in ledger_table.newest_calls(database, MODELS)) == [
        "garbage",
        "ok",
    ]
    hand.pass_by(1)
    assert ledger_table.newest_calls(database, MODELS) == []


@pytest.mark.parametrize("change", ["start", "profile"])
def test_a_start_and_a_changed_profile_begin_anew(
    change: str, database: Database, hand: Hand
) -> None:
    begin = {
        "start": partial(ledger_table.begin_calls, database),
        "profile": lambda: database.apply_profile("BTCUSD", "{}", f"{hand.moment}"),
    }[change]
    begin()
    hand.pass_by(1)
    store(database, ["garbage"])
    assert len(ledger_table.newest_calls(database, MODELS)) == 1
    hand.pass_by(1)
    begin()
    assert ledger_table.newest_calls(database, MODELS) == []
    hand.pass_by(1)
    store(database, ["ok"])
    assert [row["status"] for row in ledger_table.newest_calls(database, MODELS)] == ["ok"]


def test_the_same_profile_once_more_changes_nothing(database: Database, hand: Hand) -> None:
    database.apply_profile("BTCUSD", "{}", "a")
    store(database, ["garbage"])
    hand.pass_by(60)
    database.apply_profile("BTCUSD", "{}", "a")
    assert len(ledger_table.newest_calls(database, MODELS)) == 1


def test_the_newest_are_read_by_an_index_and_no_table_is_read_through(
    database: Database, hand: Hand
) -> None:
    for _ in range(3):
        store(database, ["ok"] * (JUDGED_CALLS // 2))
        hand.pass_by(1)
    (plan,) = plans(database, lambda: ledger_table.newest_calls(database, MODELS)).values()
    assert len(ledger_table.newest_calls(database, MODELS)) == JUDGED_CALLS
    assert "SEARCH calls USING INDEX calls_cost (at>?)" in plan
    assert not [line for line in plan if line.startswith("SCAN") and "SCALAR" not in line]
    assert not [line for line in plan if "TEMP B-TREE" in line]


def test_many_calls_to_others_hide_none_of_a_model_that_is_hardly_asked(
    database: Database, hand: Hand
) -> None:
    store(database, ["garbage"] * 20)
    for more in ({"model": "claude-sonnet-5-5"}, {"model": "rules", "provider": "rules"}):
        hand.pass_by(1)
        store(database, ["ok"] * 600, **more)
    hand.pass_by(1)
    store(database, ["budget", "deadline", "miss"] * 100)
    assert [row["status"] for row in ledger_table.newest_calls(database, MODELS)] == [
        "garbage"
    ] * 20
