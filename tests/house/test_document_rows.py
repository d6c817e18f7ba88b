"""The tables of documents in docs/agents.md: every row is there, with what it names."""

from __future__ import annotations

import re
from typing import Final

from tests import ROOT

PAGE: Final = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
ROW: Final = re.compile(r"^\| ([AB]\d+) \|(.*)\|$", re.MULTILINE)
LATER: Final = {"B35", "B42", "B43"}
"""Execution styles and what comes by Telegram: rows of a part that is not built yet."""
ROWS: Final = [f"{letter}{number}" for letter in "AB" for number in range(1, 47)]
FILE: Final = re.compile(r"`([\w/]+\.py)`")
NAME: Final = re.compile(r"`(?:\w+\.)*(\w+)[^`/]*`")
"""A name of a row, such as `agents.memory.roles`, by its last part."""


def rows() -> dict[str, list[str]]:
    """Return the cells of each row by its number."""
    return {hit[1]: [cell.strip() for cell in hit[2].split("|")] for hit in ROW.finditer(PAGE)}


def test_every_row_of_the_document_stands_there_once() -> None:
    told = [hit[1] for hit in ROW.finditer(PAGE)]
    assert told == [row for row in ROWS if row not in LATER]
    for row in rows().values():
        assert len(row) == 5 and row[1] in ("built", "otherwise", "declined"), row


def test_what_is_not_built_as_the_document_says_has_its_reason() -> None:
    reasons = {number: row[2] for number, row in rows().items() if row[1] != "built"}
    assert len(reasons) > 5
    assert all(len(reason.split()) >= 8 for reason in reasons.values()), reasons


def test_every_row_names_code_and_tests_that_are_there() -> None:
    for number, (*_, code, tests) in rows().items():
        modules, proofs = FILE.findall(code), FILE.findall(tests)
        assert modules and proofs, number
        assert all(name.startswith("tests/") for name in proofs), number
        for name in {*modules, *proofs}:
            assert (ROOT / name).is_file(), f"{number} names {name}"


def test_every_name_that_a_row_uses_occurs_in_its_tests() -> None:
    named = 0
    for number, (_, _, how, _, proofs) in rows().items():
        tried = "".join((ROOT / name).read_text(encoding="utf-8") for name in FILE.findall(proofs))
        for name in set(NAME.findall(how)) - {"py"}:
            assert re.search(rf"\b{name}", tried), f"{number}: none of its tests has {name}"
            named += 1
    assert named > 10
