"""A damaged database is noticed before anything is traded, or harms nothing; no start crashes (D9).

Single bits of the main file of a desk that lived for a while are turned: anywhere, in the headers
of its pages, in the very texts that a start reads. Each time the start either refuses with a line
that names the command which repairs it, trading halted, or it goes on; then the desk lives through
a close without an end of its process. Nothing sees a digit that turned into another digit: that is
what the backups and the broker's books are for.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults.recorded_life import life
from tests.faults.test_power_cut import checkpointed
from tests.worlds import desks
from torra.clock import Simulated
from torra.desk import wiring
from torra.desk.checks import table as checks
from torra.desk.timers import next_close
from torra.errors import ConfigError
from torra.home import HALT

READ_AT_START = (
    ("desk_run", "seen_at"),
    ("desk_run", "started_at"),
    ("ticks", "close_time"),
    ("ticks", "bar_time"),
    ("ticks", "state"),
    ("chains", "close_time"),
    ("signals", "state"),
    ("signals", "expires"),
    ("signals", "decided_at"),
    ("signals", "side"),
    ("paper_cursor", "bar_time"),
    ("bars", "bar_time"),
)
"""Texts that decide what a desk does when it starts: table and column."""


WORDS = ("state", "side")
"""Columns of these that hold no time."""

OTHERWISE = "works, one order otherwise"
RARE = 20
"""Of so many bits that turned anywhere one at most may be another value of an order."""

PAGE = 4096
"""Bytes of a page of the database; the first says what it is."""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The main file of a desk at rest, everything in it."""
    return checkpointed(tmp_path_factory.mktemp("damaged") / "home", life())


def start(home: Path) -> str:
    """Start a desk and let it live through a close; return how that went.

    Raises what would end the process: anything but a line for a person.
    """
    try:
        reason = checks.start(home, lambda _: None)
        desk, _ = wiring.open_desk(home)
    except ConfigError as error:
        return "refused" if "torra restore" in str(error) else f"refused without remedy: {error}"
    try:
        if reason:
            desk.kill_switch.fault(reason)
        desks.open_for_work(desk)
        desk.clock = Simulated(next_close(desk.clock.now(), ["M15"]))
        outcomes = desk.wake("BTCUSD")
        desk.kill_switch.keep()
        if desk.kill_switch.engaged():
            assert (home / HALT).exists()
            return "halted"
        return "works" if any(item.state == "done" for item in outcomes) else "late"
    finally:
        desk.close()


def orders(home: Path) -> set[tuple[object, ...]]:
    """Return every signal of a home: what is held and what was sent follows from them."""
    with closing(sqlite3.connect(home / "torra.db")) as reader:
        return set(reader.execute("SELECT sid, kind, side, lots, state, price FROM signals"))


def went_on(home: Path, control: set[tuple[object, ...]]) -> str:
    """Start a desk on a damaged file; return how that went, and whether its orders are others.

    A bit that turned is one value of one signal at most, or keeps one from being written: an order
    that the control does not have is harm done.
    """
    went = start(home)
    if went != "works":
        return went
    found = orders(home)
    others = found - control
    assert {row[0] for row in others} <= {row[0] for row in control}, others
    assert len(others) <= 1 and len(control - found) <= 1, found ^ control
    return went if found == control else OTHERWISE


def damaged(folder: Path, data: bytes, at: int, bit: int) -> Path:
    folder.mkdir(parents=True)
    left = bytearray(data)
    left[at] ^= 1 << bit
    (folder / "torra.db").write_bytes(left)
    return folder


@pytest.fixture(scope="module")
def control(lived: bytes, tmp_path_factory: pytest.TempPathFactory) -> set[tuple[object, ...]]:
    """The signals of a desk that went on from the undamaged file."""
    home = tmp_path_factory.mktemp("control")
    home.joinpath("torra.db").write_bytes(lived)
    assert start(home) == "works"
    return orders(home)


@pytest.mark.journey
def test_an_undamaged_file_works(control: set[tuple[object, ...]]) -> None:
    assert {"PUBLISHED", "CLOSED"} <= {row[4] for row in control}, "it never traded"


@pytest.mark.parametrize(
    ("table", "column"), [place for place in READ_AT_START if place[1] not in WORDS],
    ids=lambda word: word,
)  # fmt: skip
def test_a_time_that_is_none_is_named(
    table: str, column: str, lived: bytes, tmp_path: Path
) -> None:
    """SQLite has nothing to say about it; whoever reads the row would fail, at every start."""
    path = tmp_path / "torra.db"
    path.write_bytes(lived)
    with closing(sqlite3.connect(path)) as writer, writer:
        writer.execute(f"UPDATE {table} SET {column} = replace({column}, 'T', char(16))")
    with pytest.raises(ConfigError, match=rf"{table}\.{column} holds .* no time.*torra restore"):
        checks.start(tmp_path, lambda _: None)
    assert (tmp_path / HALT).exists()


@pytest.mark.journey
def test_a_page_that_is_none_is_named(lived: bytes, tmp_path: Path) -> None:
    kept = tmp_path / "torra.db"
    kept.write_bytes(lived)
    with closing(sqlite3.connect(kept)) as reader:
        # a page that is free may hold anything
        used = [page for (page,) in reader.execute("SELECT pageno FROM dbstat ORDER BY pageno")]
    assert len(used) > 50
    for page in used[1 :: len(used) // 5]:
        home = damaged(tmp_path / str(page), lived, (page - 1) * PAGE, 4)
        with pytest.raises(ConfigError, match=r"is damaged .*torra restore"):
            checks.start(home, lambda _: None)
        assert (home / HALT).exists()


PLACES = {
    "anywhere": lambda dice, size: dice.randrange(size),
    "in the head of a page": lambda dice, size: (
        dice.randrange(size // PAGE) * PAGE + dice.randrange(100)
    ),
}


@pytest.mark.journey
@pytest.mark.parametrize("place", PLACES)
def test_a_bit_that_turned_is_noticed_or_harms_nothing(
    place: str, lived: bytes, control: Any, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    flips, went = scaled(250, least=2), Counter[str]()
    for number in range(flips):
        dice = random.Random(f"{place} {number}")
        at, bit = PLACES[place](dice, len(lived)), dice.randrange(8)
        went[went_on(damaged(tmp_path / str(number), lived, at, bit), control)] += 1
    told = ", ".join(f"{number:,} {what}" for what, number in went.most_common())
    record_property("seen", f"{flips:,} bits {place}: {told}; 0 crashes")
    assert set(went) <= {"works", OTHERWISE, "refused", "halted", "late"}
    assert went[OTHERWISE] <= flips / RARE


@pytest.mark.journey
def test_a_text_that_a_start_reads_is_noticed_or_harms_nothing(
    lived: bytes, control: Any, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    """Bits of the newest row's text turn: times that are none, words that nobody knows."""
    places = {place: list(spots_of(place, lived, tmp_path)) for place in READ_AT_START}
    assert all(places.values())
    flips, went = scaled(420, least=3), Counter[str]()
    for number in range(flips):
        place = READ_AT_START[number % len(READ_AT_START)]
        dice = random.Random(f"{place} {number}")
        spot, bit = dice.choice(places[place]), dice.randrange(7)
        went[went_on(damaged(tmp_path / str(number), lived, spot, bit), control)] += 1
    told = ", ".join(f"{number:,} {what}" for what, number in went.most_common())
    record_property("seen", f"{flips:,} bits in the texts of a start: {told}; 0 crashes")
    assert set(went) <= {"works", OTHERWISE, "refused", "halted", "late"}
    assert scaled(420, least=3) < 420 or went["works"], "nothing here compares anything"


def spots_of(place: tuple[str, str], data: bytes, folder: Path) -> Iterator[int]:
    """Yield every byte that is part of a column's newest text, wherever the file has it."""
    table, column = place
    path = folder / "whole.db"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as reader:
        (text,) = reader.execute(f"SELECT max({column}) FROM {table}").fetchone()
    for found in re.finditer(re.escape(text.encode()), data):
        yield from range(found.start(), found.end())
