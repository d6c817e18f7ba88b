"""The table of planted faults cannot rot, planting changes a copy alone, and the results are of it.

Running the faults is `python -m tests.faults.mutate`; this is what is cheap.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from pathlib import Path

import pytest

from tests.faults import mutate, planting, risk_mutants
from tests.faults.mutants import FAULTS
from tests.faults.planting import ROOT, Edit, Fault, planted

IDS = [fault.id for fault in FAULTS]


@functools.cache
def text_of(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@functools.cache
def functions_of(file: str) -> frozenset[str]:
    nodes = ast.walk(ast.parse(text_of(file)))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_a_fault_can_be_planted_and_its_tests_are_there(fault: Fault) -> None:
    for edit in fault.edits:
        assert text_of(edit.file).count(edit.old) == 1, edit
        assert edit.new != edit.old
    for test in fault.tests:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions_of(file), test


def test_every_fault_has_a_name_a_sentence_and_a_test() -> None:
    assert len(set(IDS)) == len(IDS) >= 60
    for fault in FAULTS:
        assert re.fullmatch(r"[a-z-]+", fault.id)
        assert re.fullmatch(r"[DLTMRS]\d{1,2}|doors", fault.promise), fault.id
        assert fault.what == fault.what.strip(". ") and fault.tests


@pytest.mark.parametrize("known", risk_mutants.SPARED, ids=lambda known: known.new[:60])
def test_a_change_that_is_explained_is_one_of_a_line_that_there_is(
    known: risk_mutants.Spared,
) -> None:
    assert text_of(known.file).count(known.old) == 1
    shown = f"--- {known.file}\n+++ {known.file}\n@@ -1 +1 @@\n-    {known.old}\n+    {known.new}\n"
    assert risk_mutants.explained(shown)
    assert not risk_mutants.explained(shown.replace("+    ", "+    not "))


def test_planting_spoils_a_copy_and_mends_it(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\ntwo\ntwo\n", encoding="utf-8")
    seen = file.stat().st_mtime_ns
    fault = Fault("x", "D1", "x", "a.py", "one", "none", ("t",), also=(Edit("a.py", "\nt", "T"),))
    with pytest.raises(ValueError, match="not exactly one"), planted(fault, tmp_path):
        pass
    whole = Fault("x", "D1", "x", "a.py", "one", "1", ("t",), also=(Edit("a.py", "1\ntwo", "2"),))
    with planted(whole, tmp_path):
        assert file.read_text(encoding="utf-8") == "2\ntwo\n"
        assert file.stat().st_mtime_ns > seen  # so that nothing compiled from it is used
    assert file.read_text(encoding="utf-8") == "one\ntwo\ntwo\n"


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    assert planting.run(("sleep", "60"), tmp_path, 0.1)[0] == planting.HUNG


def test_results_take_the_place_of_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutate, "KEPT", tmp_path / "mutants.json")
    row = {"promise": "D1", "what": "x", "test": "t", "killed": True, "seconds": 1.0, "date": "d"}
    mutate.keep([{**row, "id": risk_mutants.ID}, {**row, "id": IDS[1]}, {**row, "id": "gone"}])
    mutate.keep([{**row, "id": IDS[1], "killed": False}, {**row, "id": IDS[0]}])
    rows = json.loads(mutate.KEPT.read_text(encoding="utf-8"))
    assert [found["id"] for found in rows] == [*IDS[:2], risk_mutants.ID]
    assert [found["killed"] for found in rows] == [True, False, True]


def test_every_fault_was_noticed_when_it_was_last_planted() -> None:
    rows = json.loads(mutate.KEPT.read_text(encoding="utf-8"))
    assert [row["id"] for row in rows] == [*IDS, risk_mutants.ID]
    assert [row["id"] for row in rows if not row["killed"]] == []
    told = {fault.id: (fault.what, ", ".join(fault.tests)) for fault in FAULTS}
    assert {row["id"]: (row["what"], row["test"]) for row in rows if row["id"] in told} == told
