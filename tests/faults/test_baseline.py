"""Mutants of the baseline are other programs, the same for a seed, and never of what only reads."""

from __future__ import annotations

import ast
import queue
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from scripts import gauge
from scripts.small_changes import CHANGES, Mutant, draw
from tests.cases import cases
from tests.faults import baseline, nightly, promises
from tests.faults.baseline import Reach, reaching
from tests.faults.planting import HUNG

PROGRAM: Final = '''
LIMIT: Final = 3


class Desk:
    """Holds orders."""

    def send(self, order: "Order", wait: float = 1.0) -> bool:
        """Send."""
        total: "int" = order.lots + 1
        log.error("not %s", total)
        self.count = total
        if total < LIMIT and order.stop:
            raise ValueError("too few")
        deal = cast("Deal", order)
        return self.bridge.submit(deal, live=False)
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "desk.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def test_each_change_is_another_program_at_its_place(tree: Path) -> None:
    mutants = list(draw(tree, "room", 100, 1))
    changes = [one.change for one in mutants]
    assert {change.partition(":")[0] for change in changes} == {*CHANGES}
    assert len({one.after for one in mutants}) == len(mutants)
    assert all(ast.dump(ast.parse(one.after)) != ast.dump(ast.parse(PROGRAM)) for one in mutants)
    assert {one.function for one in mutants} == {"Desk.send"}
    for change in (
        "comparison: total < LIMIT -> total <= LIMIT",
        "boolean: total < LIMIT and order.stop -> total < LIMIT or order.stop",
        "arithmetic: order.lots + 1 -> order.lots - 1",
        "number: order.lots + 1 -> order.lots + 2",
        "text: ValueError('too few') -> ValueError('')",
        "statement: self.count = total -> pass",
    ):
        assert change in changes
    kept = (
        "total: 'int' =",
        '"""Send."""',
        '"Order"',
        "wait: float=1.0",
        "cast('Deal', order)",
        "LIMIT: Final = 3",
    )
    for one in mutants:
        assert all(text.replace('"', "'") in one.after.replace('"', "'") for text in kept)


def test_a_seed_draws_the_same_however_the_lines_move(tree: Path) -> None:
    first = [one.change for one in draw(tree, "room", 9, 1)]
    (tree / "room" / "desk.py").write_text(f'"""Moved."""\n\n{PROGRAM}', encoding="utf-8")
    assert [one.change for one in draw(tree, "room", 9, 1)] == first
    assert [one.change for one in draw(tree, "room", 9, 2)] != first


def test_files_that_execute_the_statement_run_the_quickest_first() -> None:
    mutant = Mutant("room/desk.py", "Desk.send", "", range(7, 9), "", "")
    reaches = {
        "slow": Reach(9.0, {"room/desk.py": {8}}),
        "quick": Reach(1.0, {"room/desk.py": {7}}),
        "other": Reach(2.0, {"room/desk.py": {9}, "room/book.py": {8}}),
    }
    assert reaching(mutant, reaches) == ["quick", "slow"]
    assert reaching(mutant._replace(lines=range(1, 2)), reaches) == ["quick", "other", "slow"]
    with pytest.raises(ValueError, match="no file of the room's tests passes"):
        reaching(mutant, {})


def test_a_room_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(baseline.ROOMS, "desk", ("torra/gone", "tests/gone"))
    with pytest.raises(ValueError, match="torra/gone has nothing to change"):
        baseline.measured("desk", 1)


@cases(("code", "noticed"), [(0, False), (1, True), (HUNG, True), (4, None), (5, None)])
def test_only_a_test_that_fails_or_hangs_notices(
    code: int, noticed: bool | None, tree: Path
) -> None:
    free: queue.Queue[Path] = queue.Queue()
    free.put(tree)
    mutant = next(draw(tree, "room", 1, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baseline, "run", lambda *_: (code, "words"))
        try:
            outcome = baseline.is_noticed(free, mutant, {"test_desk.py": Reach(1.0, {})})
        except RuntimeError:
            outcome = None
    assert outcome is noticed
    assert free.get_nowait() == tree


def test_a_run_goes_on_where_it_was_broken_off(tmp_path: Path, tree: Path) -> None:
    mutants = list(draw(tree, "room", 3, 1))
    notes = tmp_path / "notes" / baseline.digest(tree)

    def cut(rest: Sequence[Mutant]) -> Iterator[bool]:
        yield from (True, False)
        raise RuntimeError(len(rest))

    with pytest.raises(RuntimeError, match="3"):
        baseline.outcomes(notes, mutants, cut)
    assert baseline.outcomes(notes, mutants, lambda rest: [one == mutants[2] for one in rest]) == [
        *(True, False, True)
    ]
    (tree / "room" / "desk.py").write_text(PROGRAM + "#", encoding="utf-8")
    assert baseline.digest(tree) != notes.name


def test_a_share_of_all_rooms_that_falls_too_far_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"mutants": 50, "killed": 45}
    path = tmp_path / "baseline.json"
    monkeypatch.setattr(nightly, "BASELINE", path)
    monkeypatch.setattr(promises, "write", lambda: None)
    for fall, code in ((10, 0), (11, 1)):
        promises.keep(path, dict.fromkeys(baseline.ROOMS, record), baseline.RECORDS)
        fallen = record | {"killed": 45 - fall}
        monkeypatch.setattr(baseline, "measured", lambda *_, one=fallen: one)
        assert nightly.main(["baseline", "store"]) == code
        assert promises.read(path)["store"] == fallen


def test_seconds_are_summed_by_room() -> None:
    nodes = [("tests/store/test_a.py::test_x", 1.25), ("tests/store/test_b.py::test_y", 0.5)]
    assert gauge.seconds([*nodes, ("tests/tick/test_c.py::test_z", 0.0)]) == {
        "tests/store": {"tests": 2, "seconds": 1.8},
        "tests/tick": {"tests": 1, "seconds": 0.0},
    }


@pytest.mark.journey
def test_a_mutant_is_noticed_by_the_file_that_executes_it(tree: Path) -> None:
    desk = tree / "room" / "desk.py"
    desk.write_text("def half(n):\n    return n / 2\n\ndef nobody():\n    return 1\n", "utf-8")
    test = "from room.desk import half\n\ndef test_half():\n    assert half(4) == 2\n"
    (tree / "test_desk.py").write_text(test, encoding="utf-8")
    (tree / "test_red.py").write_text("def test_red():\n    assert False\n", encoding="utf-8")
    free: queue.Queue[Path] = queue.Queue()
    free.put(tree)
    reach = baseline.reach(free, "test_desk.py", "room")
    assert reach is not None and 2 in reach.lines["room/desk.py"] - {5}
    assert baseline.reach(free, "test_red.py", "room") is None
    outcomes = {
        one.function: baseline.is_noticed(free, one, {"test_desk.py": reach})
        for one in draw(tree, "room", 100, 1)
        if one.change.startswith("result")
    }
    assert outcomes == {"half": True, "nobody": False}
    assert "return n / 2" in desk.read_text(encoding="utf-8")
