"""The table of planted faults cannot rot, and planting changes a copy alone.

Running the faults is `make mutants`; this is what is cheap.
"""

from __future__ import annotations

import ast
import re
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.cases import cases
from tests.faults import named_tests, planting, promises, risk_mutants, seams
from tests.faults.changes import (
    At,
    Change,
    always,
    drop,
    never,
    replace,
    returns,
    reword,
    sets,
    unwrap,
    without,
)
from tests.faults.named_tests import resolved
from tests.faults.planted import FAULTS
from tests.faults.planting import Fault, Seam, Text, planted, spoilt

IDS = [fault.id for fault in FAULTS]


@cases("fault", FAULTS, ids=IDS)
def test_a_fault_can_be_planted_and_its_tests_are_there(fault: Fault) -> None:
    """`change` refuses what does not fit, or is the same as before."""
    trees: dict[str, ast.Module] = {}
    for edit in fault.edits:
        if isinstance(edit, Text):
            before = (ROOT / edit.file).read_text(encoding="utf-8")
            assert not edit.file.endswith(".py") and edit.spoil(before) != before
            continue
        if edit.file not in trees:
            trees[edit.file] = ast.parse((ROOT / edit.file).read_text(encoding="utf-8"))
        edit.change(trees[edit.file])
    assert fault.edits and all(map(resolved, fault.tests))


@cases("fault", FAULTS, ids=IDS)
def test_no_fault_names_what_is_private(fault: Fault) -> None:
    """Merged and renamed as the program is: what is public goes with its room."""
    for edit in fault.edits:
        if not isinstance(edit, Text):
            words = [change.said for change in edit.changes] if isinstance(edit, At) else []
            assert not re.search(r"\b_[A-Za-z_]", " ".join((edit.place, *words)))


@pytest.mark.nightly
@cases("fault", FAULTS, ids=IDS)
def test_the_text_of_a_fault_is_a_program_that_reads_back(fault: Fault) -> None:
    """By day its tree is looked at: writing each as a text takes ten times that."""
    for name, text in spoilt(fault, ROOT).items():
        before = (ROOT / name).read_text(encoding="utf-8")
        if name.endswith(".py"):
            assert ast.parse(text).body and text != unspoilt(before)
        assert text != before


@cache
def unspoilt(text: str) -> str:
    """Return a program as it is written from its tree; several faults are of one file.

    What is planted is written like that too: without the change it is the same program.
    """
    tree = ast.parse(text)
    written = ast.unparse(tree)
    assert ast.dump(ast.parse(written)) == ast.dump(tree)
    return written


def test_every_fault_has_a_name_a_sentence_and_a_test() -> None:
    known = {promise.id for promise in promises.registry().promises}
    assert len(set(IDS)) == len(IDS) >= 60
    for fault in FAULTS:
        assert re.fullmatch(r"[a-z-]+", fault.id)
        assert fault.promise in {*known, "doors"}, fault.id
        assert fault.what == fault.what.strip(". ") and fault.tests


@cases("known", risk_mutants.SPARED, ids=lambda known: known.new[:60])
def test_a_change_that_is_explained_is_one_of_a_line_that_there_is(
    known: risk_mutants.Spared,
) -> None:
    assert (ROOT / known.file).read_text(encoding="utf-8").count(known.old) == 1
    shown = f"--- {known.file}\n+++ {known.file}\n@@ -1 +1 @@\n-    {known.old}\n+    {known.new}\n"
    assert risk_mutants.explained(shown)
    assert not risk_mutants.explained(shown.replace("+    ", "+    not "))


# --- changes --------------------------------------------------------------------------------------

PROGRAM = '''
LIMIT: Final = 3


class Desk:
    def send(self, order, *, wait=1.0):
        """Send."""
        if self.halted or not order.fits(LIMIT):  # first of all
            return None
        with self.store.transaction() as held:
            self.note(
                order,
                "SELECT 1",
            )
            total = order.lots + 1 if held else 0
        return self.bridge.submit(order, live=False)
'''


@cases(
    ("change", "old", "new"),
    [
        (never("halted"), "if self.halted or not order.fits(LIMIT):", "if False:"),
        (never("fits(...)"), "if self.halted or not order.fits(LIMIT):", "if False:"),
        (always("held"), "if held else", "if True else"),
        (without("self.halted"), "self.halted or not order.fits(LIMIT)", "not order.fits(LIMIT)"),
        (without("not fits(...)"), "self.halted or not order.fits(LIMIT)", "self.halted"),
        (without("live"), "order, live=False", "order"),
        (drop("note(...)"), "self.note(order, 'SELECT 1')", "pass"),
        (sets("total", "[_]"), "order.lots + 1 if held else 0", "[order.lots + 1 if held else 0]"),
        (sets("live", "True"), "live=False", "live=True"),
        (replace("... + 1", "_ - 1"), "order.lots + 1", "order.lots + 1 - 1"),
        (replace("submit(order, ...)", "None"), "self.bridge.submit(order, live=False)", "None"),
        (returns("1", "None"), "return None", "return 1"),
        (reword("1", "2"), "SELECT 1", "SELECT 2"),
        (replace("...(..., live=...)", "_[0]"), "order, live=False)", "order, live=False)[0]"),
    ],
    ids=lambda one: one.said if isinstance(one, Change) else "",
)  # fmt: skip
def test_a_change_is_of_one_node(change: Change, old: str, new: str) -> None:
    plain = ast.unparse(ast.parse(PROGRAM))
    assert plain.count(old) == 1
    for place in ("desk:Desk.send", "desk:Desk", "desk"):
        assert At(place, change).spoil(PROGRAM) == plain.replace(old, new)


def test_what_is_inside_a_with_is_done_without_it() -> None:
    found = At("desk:Desk.send", unwrap("transaction()")).spoil(PROGRAM)
    assert "with" not in found and "        self.note(order, 'SELECT 1')\n        total" in found


def test_a_constant_is_a_place_too() -> None:
    assert "LIMIT: Final = 4" in At("desk:LIMIT", sets("LIMIT", "4")).spoil(PROGRAM)


def test_what_is_written_otherwise_is_the_same_place() -> None:
    other = PROGRAM.replace(
        "order.fits(LIMIT)", "order.fits(\n            LIMIT,  # of lots\n        )"
    )
    change = At("desk:Desk.send", without("not order.fits(LIMIT)"))
    assert other != PROGRAM and change.spoil(other) == change.spoil(PROGRAM)


@cases(
    ("place", "change", "told"),
    [
        ("desk:Desk.send", never("vetoed"), r"never\('vetoed'\) fits 0 nodes.*self\.halted or not"),
        ("desk:Desk.send", drop("order"), r"drop\('order'\) fits 3 nodes.*self\.note.*total = "),
        ("desk:Desk.sent", never("halted"), r"there 0 times; there are Desk\.send"),
        ("desk:send", never("halted"), r"there 0 times; there are Desk\.send"),
        ("desk:LIMITS", never("halted"), r"there 0 times; there are LIMIT"),
    ],
)
def test_a_place_or_a_node_that_is_not_one_alone_is_told_with_the_candidates(
    place: str, change: Change, told: str
) -> None:
    with pytest.raises(ValueError, match=rf"(?s){place}: .*{told}"):
        At(place, change).spoil(PROGRAM)


def test_a_change_that_changes_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"desk:LIMIT: sets.* leaves what was there"):
        At("desk:LIMIT", sets("LIMIT", "3")).spoil(PROGRAM)


def test_what_is_left_is_a_program() -> None:
    with pytest.raises(ValueError, match=r"desk:Desk: what is left is no program"):
        At("desk:Desk", without("self.halted"), without("not fits(...)")).spoil(PROGRAM)


# --- wrappers -------------------------------------------------------------------------------------

DOUBLE = """
FACTOR = 2


def double(number, *, more=0):
    return FACTOR * number + more
"""


@cases(
    ("wrapper", "result"),
    [
        ("skips()", None),
        ("skips(FACTOR)", 2),
        ("becomes(lambda number, more: number)", 5),
        ("gives(lambda sum: -sum)", -11),
        ("gives(lambda sum: [one * FACTOR for one in (sum,)])", [22]),
        ("passes(number=lambda old: old + 1, more=lambda _: 0)", 12),
    ],
)
def test_a_wrapper_stands_around_a_public_name(wrapper: str, result: object) -> None:
    names: dict[str, Any] = {}
    exec(Seam("sums:double", wrapper).spoil(DOUBLE), names)
    assert names["double"](5, more=1) == result


@cases(
    ("place", "wrapper", "strange"),
    [
        ("sums:half", "skips()", "there 0 times; there are FACTOR, double"),
        ("sums:double", "skip()", "nothing there is called skip"),
        ("sums:double", "skips(FACTORS)", "nothing there is called FACTORS"),
        ("sums:double", "passes(numbers=lambda _: 0)", "nothing there is called numbers"),
        ("sums:double", "skips(", "never closed"),
    ],
)
def test_a_wrapper_that_does_not_fit_is_refused(place: str, wrapper: str, strange: str) -> None:
    with pytest.raises(ValueError, match=f"{place}: .*{strange}"):
        Seam(place, wrapper).spoil(DOUBLE)


def test_the_statements_of_a_connection_are_rewritten(tmp_path: Path) -> None:
    def connect(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path)

    other = seams.rewrites("^SELECT 1$", "SELECT 2")(connect)
    for opens, first in ((connect, 1), (other, 2), (connect, 1)):
        with closing(opens(tmp_path / "desk.db")) as db:
            assert [*db.execute("SELECT 1"), *db.execute("SELECT ?", (3,))] == [(first,), (3,)]


# --- planting -------------------------------------------------------------------------------------


def test_planting_spoils_a_copy_and_mends_it(tmp_path: Path) -> None:
    program, text = tmp_path / "desk.py", tmp_path / "a.mq5"
    program.write_text(PROGRAM, encoding="utf-8")
    text.write_text("one\ntwo\ntwo\n", encoding="utf-8")
    seen = program.stat().st_mtime_ns
    at = At("desk:Desk.send", never("halted"))
    rotten = Fault("x", "D1", "x", (at, Text("a.mq5", "two", "2")), ("t",))
    with pytest.raises(ValueError, match=r"x: a\.mq5 has not"), planted(rotten, tmp_path):
        pass
    assert program.read_text(encoding="utf-8") == PROGRAM
    whole = Fault("x", "D1", "x", (at, Text("a.mq5", "one", "1")), ("t",))
    with planted(whole, tmp_path):
        assert "if False:" in program.read_text(encoding="utf-8")
        assert text.read_text(encoding="utf-8") == "1\ntwo\ntwo\n"
        assert program.stat().st_mtime_ns > seen  # so that nothing compiled from it is used
    assert program.read_text(encoding="utf-8") == PROGRAM


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    assert planting.run(("sleep", "60"), tmp_path, 0.1)[0] == planting.HUNG


def test_a_test_is_found_wherever_its_file_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "test_one": ["tests/a/test_x.py"],
        "test_two": ["tests/test_y.py", "tests/b/test_z.py"],
    }
    monkeypatch.setattr(named_tests, "tests", lambda: known)
    monkeypatch.setattr(named_tests, "files", lambda: {"test_x.py": ["tests/a/test_x.py"]})
    assert resolved("test_one") == "tests/a/test_x.py::test_one"
    assert resolved("test_one[case]") == "tests/a/test_x.py::test_one[case]"
    assert resolved("test_z.py::test_two") == "tests/b/test_z.py::test_two"
    assert resolved("test_x.py") == "tests/a/test_x.py"
    for name, told in (
        ("test_two", "name the file too"),
        ("test_three", "nowhere"),
        ("test_y.py", "nowhere"),
    ):
        with pytest.raises(LookupError, match=told):
            resolved(name)


def test_every_fault_on_record_was_noticed() -> None:
    rows = promises.read(promises.MUTANTS)
    assert [name for name, row in rows.items() if not row["noticed"]] == []
