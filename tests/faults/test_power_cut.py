"""A power cut leaves a prefix of the commits, each tick of it whole, and the desk goes on (D2).

What a power cut leaves is played on the files of a desk that lived for a while: its log ends
anywhere, sectors of it are lost, bits of it turned, or the power went while the log was copied into
the main file. The product's own way of opening must then find exactly the state after the last
commit before the damage, with every tick's twins, and a desk that goes on from there must come to
the end that the undisturbed life came to. That a commit is on the disk before it counts is
test_failing_disk's part; a disk that says so and lies is beyond any test (docs/promises.md).
"""

from __future__ import annotations

import random
import sqlite3
from bisect import bisect_right
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults import wal
from tests.faults.books import contents, story, torn
from tests.faults.recorded_life import UPTO, Life, life, open_desk
from tests.worlds import desks


@pytest.fixture(scope="module")
def lived() -> Life:
    return life()


def left_behind(folder: Path, main: bytes, log: bytes, dice: random.Random) -> Path:
    """Write what the disk holds after the cut; an index of the log may be anything or nothing."""
    folder.mkdir(parents=True)
    (folder / "torra.db").write_bytes(main)
    (folder / "torra.db-wal").write_bytes(log)
    if dice.random() < 0.5:
        (folder / "torra.db-shm").write_bytes(dice.randbytes(32768))
    return folder


def found_in(folder: Path) -> tuple[str, list[str]]:
    """Open as a desk does; return the digest of the contents, and what is there by half."""
    database = desks.open_database(folder)
    try:
        connection = database.connection().conn
        return contents(connection), torn(connection)
    finally:
        database.close()


def test_every_number_of_commits_is_a_state_of_its_own(lived: Life) -> None:
    """The control: a test that compares with these states can fail."""
    assert len(lived.states) == len(wal.commit_ends(lived.log)) + 1 > 12
    assert len(set(lived.states)) == len(lived.states)
    assert wal.commit_ends(lived.log)[-1] < len(lived.log), "no earlier round behind the end"
    assert {"CLOSED", "FILLED"} <= {str(row[4]) for row in lived.story}, "it never traded"


@pytest.mark.parametrize("kind", wal.KINDS)
def test_what_a_power_cut_leaves_is_a_prefix_of_the_commits(
    kind: str, lived: Life, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    ends = wal.commit_ends(lived.log)
    prefixes = set()
    cuts = scaled(1000 // len(wal.KINDS), least=3)
    for number in range(cuts):
        dice = random.Random(f"{kind} {number}")
        log = wal.KINDS[kind](lived.log, dice)
        kept = bisect_right(ends, wal.first_damage(lived.log, log))
        folder = left_behind(tmp_path / str(number), lived.main, log, dice)
        state, half = found_in(folder)
        assert state == lived.states[kept], f"{kind} {number}: not the state of {kept} commits"
        assert half == [], f"{kind} {number}"
        prefixes.add(kept)
    record_property("seen", f"{cuts:,} logs, {kind}, came to {len(prefixes)} prefixes, 0 bad")


@pytest.mark.journey
def test_every_prefix_is_met_where_it_ends(lived: Life, tmp_path: Path, scaled: Any) -> None:
    """A log that ends with a commit has it; one byte less and it never was."""
    ends = wal.commit_ends(lived.log)
    for number in random.Random(5).sample(range(len(ends)), scaled(len(ends), least=2)):
        for short, kept in ((0, number + 1), (1, number)):
            folder = tmp_path / f"{number} {short}"
            log = lived.log[: ends[number] - short]
            left_behind(folder, lived.main, log, random.Random(number))
            assert found_in(folder) == (lived.states[kept], [])


@pytest.mark.journey
def test_power_that_goes_while_the_log_is_copied_loses_nothing(
    lived: Life, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    copied = checkpointed(tmp_path / "copied", lived)
    cuts, halves = scaled(200, least=2), 0
    for number in range(cuts):
        dice = random.Random(f"copy {number}")
        main = half_copied(lived.main, copied, dice)
        halves += main not in (lived.main, copied)
        folder = left_behind(tmp_path / str(number), main, lived.log, dice)
        assert found_in(folder) == (lived.states[-1], [])
    assert halves
    record_property(
        "seen", f"{cuts:,} checkpoints cut off, {halves:,} with a torn main file, 0 bad"
    )


def checkpointed(folder: Path, lived: Life) -> bytes:
    """Return the main file as a checkpoint that was not disturbed leaves it."""
    left_behind(folder, lived.main, lived.log, random.Random(0))
    with closing(sqlite3.connect(folder / "torra.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return (folder / "torra.db").read_bytes()


def half_copied(old: bytes, new: bytes, dice: random.Random) -> bytes:
    """Return a main file some of whose sectors were copied, in no order."""
    share, left = dice.random(), bytearray(old)
    if dice.random() < 0.8:
        left.extend(bytes(len(new) - len(old)))
    for start in range(0, len(left), wal.SECTOR):
        sector = slice(start, start + wal.SECTOR)
        if new[sector] != old[sector] and dice.random() < share:
            left[sector] = new[sector]
    return bytes(left)


def test_a_desk_goes_on_from_any_prefix_to_the_same_end(
    lived: Life, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    ends = [wal.HEADER, *wal.commit_ends(lived.log)]
    lives = scaled(len(ends), least=1)
    for number in random.Random(8).sample(range(len(ends)), lives):
        folder = tmp_path / str(number)
        left_behind(folder, lived.main, lived.log[: ends[number]], random.Random(number))
        desk = open_desk(folder)
        while desk.clock.now() < UPTO:
            desks.step(desk)
        connection = desk.database.connection().conn
        assert torn(connection) == []
        assert story(connection) == lived.story, f"after {number} commits"
        desk.database.close()
    record_property("seen", f"{lives} of {len(ends)} prefixes lived on to the same end")
