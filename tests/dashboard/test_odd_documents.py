"""A document in the database that cannot be read empties its own line, and no page fails of it.

Every column of JSON is filled with what is none, or is of another shape, in each row; then every
route is asked, as tests.dashboard.test_hostile_texts does.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
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


@pytest.mark.journey
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


PRICES = ("open", "high", "low", "close", "volume")
NO_PRICES = ("x", b"\xff", 1e308, -1e308, 0.0)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(dict(zip(PRICES, NO_PRICES, strict=True)), id="every column at once"),
        *(
            pytest.param({column: value}, id=f"{column} {value!r}", marks=pytest.mark.nightly)
            for column, value in itertools.product(PRICES, NO_PRICES)
        ),
    ],
)
def test_no_page_fails_of_bars_that_are_no_prices(
    home: Home, tmp_path: Path, changes: Mapping[str, object]
) -> None:
    """The feeds' door lets none in; a file that somebody changed may have it all the same."""
    filled = home.filled(tmp_path / "home", itertools.cycle(HARMLESS))
    try:
        for column, value in changes.items():
            plant(filled, "bars", column, value)
        assert failures(filled) == []
    finally:
        filled.close()


@pytest.fixture
def waiting(home: Home, tmp_path: Path) -> Iterator[Filled]:
    """A home on which proposals wait."""
    filled = home.filled(tmp_path / "home", itertools.cycle(HARMLESS))
    yield filled
    filled.close()


@cases("what", ODD)
def test_a_proposal_that_cannot_be_read_says_so(waiting: Filled, what: str) -> None:
    proposals = waiting.database.proposals(None)
    assert proposals
    plant(waiting, "proposals", "drafts", ODD[what])
    queue = waiting.client.get("/orders?stage=waiting")
    assert queue.status_code == 200 and "cannot be read" in queue.text
    sid = proposals[0].sid
    page = waiting.client.get(f"/orders/{sid}")
    assert page.status_code == 200 and "cannot be read" in page.text
    told = waiting.client.get(f"/api/v1/approvals/{sid}")
    assert told.status_code == 200
