"""A document in the database that cannot be read empties its own line, and no page fails of it.

Every column of JSON is filled with what is none, or is of another shape, in each row; then every
route is asked, as tests.dashboard.test_hostile_texts does.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Scale
from tests.dashboard.test_hostile_texts import HARMLESS, addresses
from tests.worlds.hostile_home import DOCUMENTS, Filled, Home

COLUMNS = [
    *((table, name) for table, names in DOCUMENTS.items() for name in names),
    ("proposals", "drafts"),
]
ODD = {
    "no JSON": "[}",
    "nothing": "",
    "null": "null",
    "a number": "7",
    "a text": '"a text"',
    "an empty list": "[]",
    "an empty object": "{}",
    "a list of another": '[1, null, "x", {"kind": 5}]',
    "an object of another": '{"reports": 5, "agents": "none", "drafts": {}, "stages": [7]}',
    "too deep": "[" * 100_000,
    "bytes": b"\xff\xfe",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    found = Home(tmp_path_factory.mktemp("home") / "home")
    yield found
    found.close()


def plant(filled: Filled, table: str, column: str, value: object) -> None:
    change: Any = filled.database.connection()
    with filled.database.transaction():
        change.execute(f"UPDATE {table} SET {column} = ?", [value])


def failures(filled: Filled) -> list[str]:
    """The addresses of which a page fails."""
    filled.client.application.config["PROPAGATE_EXCEPTIONS"] = False
    return [
        f"{address} ({answer.status_code})"
        for _, address in addresses(filled, 1)
        if (answer := filled.client.get(address)).status_code >= 500
    ]


CASES = sorted(itertools.product(COLUMNS, ODD))


def test_no_page_fails_of_a_document_that_cannot_be_read(
    home: Home, tmp_path: Path, scaled: Scale
) -> None:
    drawn = random.Random(27).sample(CASES, scaled(len(CASES), least=3))
    for number, ((table, column), what) in enumerate(drawn):
        filled = home.filled(tmp_path / f"home{number}", itertools.cycle(HARMLESS))
        try:
            plant(filled, table, column, ODD[what])
            assert failures(filled) == [], (table, column, what)
        finally:
            filled.close()


PRICES = ["open", "high", "low", "close", "volume"]
NO_PRICES = ["x", b"\xff", 1e308, -1e308, 0.0]
BARS = [
    pytest.param(value, column, marks=[] if place == which else pytest.mark.nightly)
    for place, column in enumerate(PRICES)
    for which, value in enumerate(NO_PRICES)
]
"""By day each column once and each value once."""


@pytest.mark.parametrize(("value", "column"), BARS)
def test_no_page_fails_of_a_bar_that_is_no_price(
    home: Home, tmp_path: Path, column: str, value: object
) -> None:
    """The feeds' door lets none in; a file that somebody changed may have it all the same."""
    filled = home.filled(tmp_path / "home", itertools.cycle(HARMLESS))
    try:
        plant(filled, "bars", column, value)
        assert failures(filled) == []
    finally:
        filled.close()


@pytest.mark.parametrize("what", ODD)
def test_a_proposal_that_cannot_be_read_says_so(home: Home, tmp_path: Path, what: str) -> None:
    filled = home.filled(tmp_path / "home", itertools.cycle(HARMLESS))
    try:
        waiting = filled.database.proposals(None)
        assert waiting
        plant(filled, "proposals", "drafts", ODD[what])
        queue = filled.client.get("/approvals")
        assert queue.status_code == 200 and "cannot be read" in queue.text
        sid = waiting[0]["sid"]
        page = filled.client.get(f"/approvals/{sid}")
        assert page.status_code == 200 and "cannot be read" in page.text
        told = filled.client.get(f"/api/v1/approvals/{sid}")
        assert told.status_code == 200
    finally:
        filled.close()
