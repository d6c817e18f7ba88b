"""One desk at a time works on a database: the lease, its epochs, and where the clock stood."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instance_database import Database
from tests.conftest import Scale
from tests.worlds.stores import NOON, Hand, forked, key_of, open_database
from torra.clock import iso
from torra.store.ticks import LONGEST_LEASE, lives

TTL = 6.0


def test_the_first_owner_holds_it_and_the_second_does_not(database: Database) -> None:
    assert database.lease() is None
    assert database.acquire_lease("a", TTL) == 1
    assert database.acquire_lease("b", TTL) is None
    assert database.acquire_lease("a", TTL) == 1, "it is theirs already"
    lease = database.lease()
    assert lease is not None
    assert (lease["owner"], lease["epoch"], lease["alive"]) == ("a", 1, True)
    assert lease["expires_at"] == iso(NOON + timedelta(seconds=TTL))


def test_a_lease_that_ran_out_is_taken_over(database: Database, hand: Hand) -> None:
    assert database.acquire_lease("a", TTL) == 1
    hand.pass_by(TTL - 0.001)
    assert database.acquire_lease("b", TTL) is None
    hand.pass_by(0.001)
    assert database.lease()["alive"] is False
    assert database.acquire_lease("b", TTL) == 2
    assert database.renew_lease("a", 1, TTL) is False
    assert database.renew_lease("b", 2, TTL) is True


def test_a_lease_of_a_clock_that_was_ahead_is_free_when_that_is_put_right(
    database: Database, hand: Hand
) -> None:
    hand.pass_by(3_600.0)
    assert database.acquire_lease("a", TTL) == 1
    hand.pass_by(-3_540.0)
    assert database.acquire_lease("b", TTL) == 2, "it would not run out for an hour"
    hand.pass_by(-60.0)
    assert database.acquire_lease("c", TTL) is None, "so much, clocks of two programs may differ"


@pytest.mark.parametrize("long", [60.001, 3_600.0, 3e9], ids=["a-little", "an-hour", "a-century"])
def test_a_lease_that_is_longer_than_any_is_nobodys(database: Database, long: float) -> None:
    """Its end is damaged: a desk would stand by until then."""
    assert database.acquire_lease("a", TTL) == 1
    for seconds, epoch in ((60.0, None), (long, 2)):
        with database.transaction():
            expires = iso(NOON + timedelta(seconds=seconds))
            database._change("UPDATE lease SET expires_at = ?", expires)
        assert database.acquire_lease("b", TTL) == epoch


def test_who_asks_for_no_lease_does_not_believe_it_either(database: Database) -> None:
    database.acquire_lease("a", TTL)
    row = database.lease() or {}
    for longer, alive in ((timedelta(0), True), (timedelta(seconds=1), False)):
        row["expires_at"] = iso(NOON + LONGEST_LEASE + longer)
        assert lives(row, NOON) is alive


def test_renewing_keeps_it(database: Database, hand: Hand) -> None:
    database.acquire_lease("a", TTL)
    for _ in range(5):
        hand.pass_by(TTL / 2)
        assert database.renew_lease("a", 1, TTL) is True
        assert database.acquire_lease("b", TTL) is None
    hand.pass_by(TTL)
    assert database.renew_lease("a", 1, TTL) is False, "it ran out before the renewal"
    assert database.renew_lease("nobody", 1, TTL) is False


def test_the_same_owner_coming_back_late_is_a_new_holder(database: Database, hand: Hand) -> None:
    assert database.acquire_lease("a", TTL) == 1
    hand.pass_by(TTL * 10)
    assert database.acquire_lease("a", TTL) == 2


def test_releasing_frees_it_and_the_epoch_grows(database: Database) -> None:
    database.acquire_lease("a", TTL)
    database.release_lease("b", 1)
    assert database.acquire_lease("b", TTL) is None
    database.release_lease("a", 1)
    assert database.acquire_lease("b", TTL) == 2
    database.release_lease("a", 1)
    assert database.renew_lease("b", 2, TTL) is True


def test_the_desk_time_goes_on_where_it_stood(database: Database) -> None:
    stood = datetime(2021, 11, 10, 10, 7, tzinfo=UTC)
    assert database.desk_time() is None
    epoch = database.acquire_lease("a", TTL) or 0
    assert database.desk_time() is None
    assert database.renew_lease("a", epoch, TTL, stood)
    assert database.renew_lease("a", epoch, TTL), "a renewal without a time keeps the last"
    assert database.desk_time() == stood
    database.claim_tick(key_of(stood.replace(minute=0), "M15"), epoch)
    assert database.desk_time() == stood
    database.claim_tick(key_of(stood.replace(minute=15), "M15"), epoch)
    assert database.desk_time() == stood.replace(minute=15), "never before a tick already begun"
    database.release_lease("a", epoch)
    database.acquire_lease("b", TTL)
    assert database.desk_time() == stood.replace(minute=15)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_processes_that_want_it_one_gets_it(tmp_path: Path, scaled: Scale) -> None:
    open_database(tmp_path).close()

    def try_for_it(number: int) -> bool:
        return open_database(tmp_path).acquire_lease(f"desk {number}", TTL) is not None

    for start in range(scaled(40, least=4)):
        assert forked(try_for_it, 3).count(True) == 1
        database = open_database(tmp_path)
        lease = database.lease()
        assert lease is not None
        assert lease["epoch"] == start + 1
        database.release_lease(lease["owner"], lease["epoch"])
        database.close()


steps = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "renew", "release", "wait"]),
        st.sampled_from(["a", "b", "c"]),
        st.floats(0.0, 10.0),
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(steps=steps)
def test_two_never_hold_it_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    """Against a model: who believes to hold it, until when, and epochs that only grow."""
    now = Hand()
    database = open_database(tmp_path_factory.mktemp("lease"), now)
    held: dict[str, tuple[int, datetime]] = {}
    newest = 0
    for word, owner, seconds in steps:
        living = {name for name, (_, until) in held.items() if now() < until}
        assert len(living) <= 1
        if word == "wait":
            now.pass_by(seconds)
        elif word == "acquire":
            epoch = database.acquire_lease(owner, TTL)
            assert (epoch is not None) == (not living or living == {owner})
            if epoch is not None:
                assert epoch == (held[owner][0] if owner in living else newest + 1)
                newest = max(newest, epoch)
                held[owner] = (epoch, now() + timedelta(seconds=TTL))
        elif owner in held:
            epoch = held[owner][0]
            if word == "release":
                database.release_lease(owner, epoch)
                del held[owner]
            elif database.renew_lease(owner, epoch, TTL):
                assert owner in living
                held[owner] = (epoch, now() + timedelta(seconds=TTL))
            else:
                assert owner not in living
