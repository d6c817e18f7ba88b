"""The page of the promises says what was run, and every promise has its tests or its reason."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests import ROOT, longest
from tests.faults import named_tests, nightly, promises
from tests.faults.changes import At, drop
from tests.faults.named_tests import resolved
from tests.faults.planted import FAULTS
from tests.faults.planting import HUNG, Fault, Seam, Text
from tests.faults.promises import MUTANTS, NOT_YET, PAGE, PROOFS, Promise

LIST: Final = [
    f"{group}{number}"
    for group, count in {"D": 10, "L": 8, "T": 5, "M": 4, "R": 8, "S": 6}.items()
    for number in range(1, count + 1)
]
"""The list that this version set out to keep; further promises have come to it."""
KNOWN: Final = promises.registry()
BY_ID: Final = {promise.id: promise for promise in KNOWN.promises}


@cache
def functions(file: str) -> dict[str, ast.FunctionDef]:
    """Return the tests of a file by name."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in found if node.name.startswith("test_")}


def test_the_page_tells_no_run_that_is_not_on_record() -> None:
    """Names and sentences on it may be older than the registry: `make nightly` alone writes it."""
    proofs, mutants = promises.read(PROOFS), promises.read(MUTANTS)
    known = {promises.noticed(record) for record in mutants.values()}
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
    told = [(row[0], row[3]) for row in rows if len(row) >= 4 and row[0] not in ("id", "---")]
    assert len(told) > len(LIST)
    for name, run in told:
        held = promises.told(proofs[name]).replace("|", "/") if name in proofs else NOT_YET
        assert run in {held, *known}, name


def test_the_page_is_made_of_the_registry_and_the_records() -> None:
    proofs, mutants = promises.read(PROOFS), promises.read(MUTANTS)
    page = promises.page(KNOWN, proofs, mutants, promises.read(promises.BASELINE))
    for promise in KNOWN.promises:
        run = promises.told(proofs[promise.id]) if promise.id in proofs else NOT_YET
        assert f"| {promise.id} | {promise.text} | " in page
        assert f" | {run} | " in page
    assert page.startswith(KNOWN.head) and page.endswith(KNOWN.tail)


def test_the_whole_list_is_there_and_nothing_twice() -> None:
    assert set(LIST) <= set(BY_ID)
    assert {name[0] for name in BY_ID} == set(KNOWN.groups)
    assert len({promise.text for promise in KNOWN.promises}) == len(BY_ID)


@pytest.mark.parametrize("group", KNOWN.groups)
def test_each_has_its_tests_or_its_reason(group: str) -> None:
    for promise in KNOWN.of(group):
        assert promise.tests or promise.not_here, f"{promise.id}: neither proved nor said why not"
        assert len(set(promise.tests)) == len(promise.tests)
        check_tests(promise)


def check_tests(promise: Promise) -> None:
    for test in promise.nodes:
        file, _, name = test.partition("::")
        assert functions(file), f"{file} has no test"
        assert not name or name in functions(file), f"there is no {test}"
        assert not name or file not in promise.nodes, f"{test} is of a file that is named too"


@pytest.mark.parametrize("group", KNOWN.groups)
def test_none_of_its_tests_is_always_skipped(group: str) -> None:
    for test in dict.fromkeys(test for promise in KNOWN.of(group) for test in promise.nodes):
        file, _, name = test.partition("::")
        chosen = [functions(file)[name]] if name else list(functions(file).values())
        assert any(map(runs, chosen)), f"{test} never runs"


def runs(test: ast.FunctionDef) -> bool:
    """Tell whether a test is neither marked as skipped nor begins by skipping itself."""
    marks = [ast.unparse(mark) for mark in test.decorator_list]
    if any(re.match(r"pytest\.mark\.skip\b", mark) for mark in marks):
        return False
    body = [node for node in test.body if not isinstance(node, ast.Expr) or not _text(node)]
    return not ast.unparse(body[0]).startswith(("pytest.skip(", "pytest.xfail("))


def _text(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant)


def test_a_skipped_test_would_be_seen() -> None:
    told = [
        "@pytest.mark.skip(reason='no')\ndef test_a(): pass",
        "@pytest.mark.skip\ndef test_a(): pass",
        "def test_a():\n    'Never.'\n    pytest.skip('no')\n    assert False",
        "@pytest.mark.skipif(True, reason='no')\ndef test_a(): pass",
        "def test_a():\n    'Runs.'\n    assert True",
    ]
    parsed = [ast.parse(text).body[0] for text in told]
    assert [runs(one) for one in parsed] == [False, False, False, True, True]  # type: ignore[arg-type]


def test_what_is_on_record_was_seen_and_held() -> None:
    """A failure that a night found is mended before it is on record for good."""
    for name, record in promises.read(PROOFS).items():
        assert name in BY_ID or name == promises.ORDERS
        assert record["passed"] > 0 and record["failed"] == 0, f"{name}: {record}"
        assert not re.search(r"/(home|tmp|root|usr|var|work)/", json.dumps(record)), name


# --- the reading of a run -------------------------------------------------------------------------

JUNIT: Final = """<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="tests.test_a" name="test_one[x-1]" file="tests/test_a.py" time="1.5">
<properties><property name="trials" value="10"/><property name="trials" value="1000"/>
<property name="seen" value="7 in  /tmp/pytest-of-me/x.db"/></properties></testcase>
<testcase classname="tests.test_a" name="test_one[x-2]" file="tests/test_a.py" time="0.2">
<properties><property name="trials" value="1000"/>
<property name="again" value="held up for 1.0 s: 3 &lt;= 1"/></properties>
</testcase>
<testcase classname="tests.test_a" name="test_two" file="tests/test_a.py" time="2">
<failure message="no">assert</failure></testcase>
<testcase classname="tests.test_b" name="test_one" file="tests/test_b.py" time="0">
<skipped message="no">asleep</skipped></testcase>
</testsuite></testsuites>"""


@pytest.fixture(autouse=True)
def _no_such_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a promise be of tests that are not there, under the paths that it names."""
    monkeypatch.setattr(
        promises, "resolved", lambda name: name if name.startswith("tests/") else resolved(name)
    )


def promise(*tests: str, **more: Any) -> Promise:
    return Promise("D1", "A promise", tests, **more)


@pytest.fixture
def cases(tmp_path: Path) -> list[nightly.Case]:
    report = tmp_path / "junit.xml"
    report.write_text(JUNIT, encoding="utf-8")
    return list(nightly.cases_of(report))


def test_a_run_is_counted(cases: list[nightly.Case]) -> None:
    found = nightly.record_of(promise("tests/test_a.py::test_one", "tests/test_b.py"), cases)
    assert found is not None
    outcome = [
        found[name] for name in ("passed", "failed", "skipped", "trials", "again", "seconds")
    ]
    assert outcome == [2, 0, 1, 2000, 1, 2]
    again = "again: tests/test_a.py::test_one, held up for 1.0 s: 3 <= 1"
    assert found["seen"] == ["7 in x.db", again], "no folder of this machine"
    assert promises.told(found).endswith(
        "2 tests passed, 1 skipped, 2,000 trials in 2 s; 1 tries held up by the machine; "
        f"7 in x.db; {again}"
    )


def test_cases_that_look_alike_are_counted_each(cases: list[nightly.Case]) -> None:
    found = nightly.record_of(promise("tests/test_a.py::test_one"), cases[1:2] * 3)
    assert found is not None and (found["passed"], found["trials"]) == (3, 3000)


def test_a_failure_is_on_record_with_its_test(cases: list[nightly.Case]) -> None:
    found = nightly.record_of(promise("tests/test_a.py"), cases)
    assert found is not None and found["failed"] == 1
    assert "failed: tests/test_a.py::test_two" in found["seen"]
    assert "**1 failed**" in promises.told(found)


@pytest.mark.parametrize(
    "one",
    [
        promise("tests/test_a.py", "tests/test_c.py"),
        promise("tests/test_a.py::test_three"),
        promise(),
        promise("tests/test_a.py", by_hand="make"),
    ],
    ids=["half of its tests", "another test", "no test", "by hand"],
)
def test_a_run_of_less_than_a_promise_leaves_its_record(
    one: Promise, cases: list[nightly.Case]
) -> None:
    assert nightly.record_of(one, cases) is None


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ((), False),
        (("tests/test_a.py",), False),
        (("tests",), False),
        (("tests/",), False),
        (("tests/test_a.py::test_one",), True),
        (("tests/test_a.py::test_one", "tests/test_a.py::test_two"), True),
        (("tests/test_b.py", "tests/test_a"), True),
    ],
)
def test_a_run_of_a_part_of_a_file_leaves_the_record_of_the_file(
    asked: tuple[str, ...], kept: bool, cases: list[nightly.Case]
) -> None:
    found = nightly.record_of(promise("tests/test_a.py"), cases, asked)
    assert (found is None) is kept


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep records of its own."""
    for name, file in (("PROOFS", "proofs"), ("MUTANTS", "mutants"), ("NIGHTS", "nightly")):
        for module in (promises, nightly):
            monkeypatch.setattr(module, name, tmp_path / f"{file}.json")
    monkeypatch.setattr(promises, "PAGE", tmp_path / "promises.md")
    monkeypatch.setattr(longest, "RECORD", tmp_path / "longest.json")
    monkeypatch.setattr(longest, "ROOT", tmp_path)
    return tmp_path


def test_only_promises_whose_tests_were_all_asked_for_get_a_record(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part, whole = BY_ID["T4"].nodes, BY_ID["T6"].nodes
    assert whole[0] in {test.partition("::")[0] for test in part}, "a part of the other's file"
    ran = [nightly.Case(test, "passed", 1.0, 0, ()) for test in part]
    monkeypatch.setattr(nightly, "suite", lambda words, workers: (0, ran))
    assert nightly.main(["prove", "T4"]) == 0
    assert not [*shelf.iterdir()], "a part of a part is told, and not kept unless it is asked for"
    assert nightly.main(["--record", "prove", "T4"]) == 0
    kept = promises.read(shelf / "proofs.json")
    assert "T4" in kept and "T6" not in kept
    assert "T4" in capsys.readouterr().out
    assert promises.told(kept["T4"]) in (shelf / "promises.md").read_text("utf-8")
    assert not (shelf / "nightly.json").exists(), "the time of a part says nothing of the whole"


FILES = {f"test_{letter}.py": [f"tests/test_{letter}.py"] for letter in "abcde"}
WEEK = {f"tests/test_{letter}.py": longest.Seen(f"2026-11-2{at}", 100 * at)
        for at, letter in enumerate("abcd", start=1)}  # fmt: skip
"""Long files of 100 to 400 s, and a short one: tests/test_e.py."""


@pytest.mark.parametrize(
    ("room", "chosen"),
    [
        (0.0, "bce"), (499.0, "bce"), (500.0, "bce"), (600.0, "abce"), (900.0, "bcde"),
        (1000.0, "abcde"),
    ],
)  # fmt: skip
def test_a_night_has_room_for_what_was_seen_longest_ago(
    room: float, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A promise is taken whole, the oldest whatever it needs; the short file always."""
    monkeypatch.setattr(named_tests, "files", lambda: FILES)
    kept = (promise("test_d.py"), replace(promise("test_c.py", "test_b.py"), id="D2"))
    proofs = {"D1": {"date": "2026-11-02"}, "D2": {"date": "2026-11-01"}}
    found = nightly.files_of_a_night(kept, proofs, WEEK, room)
    assert [file[len("tests/test_")] for file in found] == [*chosen]


def test_nights_in_turn_have_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    known = promises.registry().promises
    files = {path for paths in named_tests.files().values() for path in paths}
    seen = {file: longest.Seen("2026-11-27", 1) for file in files}
    proofs: dict[str, Any] = {}
    for night in range(1, 20):
        chosen = nightly.files_of_a_night(known, proofs, seen, len(files) / 3)
        assert len(chosen) <= len(files) / 3
        for one in known:
            if {node.partition("::")[0] for node in one.nodes} <= {*chosen}:
                proofs[one.id] = {"date": f"2026-12-{night:02}"}
        seen |= {file: longest.Seen(f"2026-12-{night:02}", 1) for file in chosen}
        if all(one.date > "2026-11-27" for one in seen.values()):
            break
    assert night <= 6, "no file waits for a week"


def test_a_short_file_and_one_that_went_leave_the_list_of_the_long_ones(shelf: Path) -> None:
    (shelf / "tests").mkdir()
    for name in "ab":
        (shelf / f"tests/test_{name}.py").touch()
    went = {"tests/test_went.py": longest.Seen("2026-11-01", 99)}
    longest.keep({"tests/test_a.py": longest.Seen("2026-11-01", 90)} | went)
    longest.keep({"tests/test_b.py": longest.Seen("2026-11-01", 95)})
    assert longest.places(by_night=True) == {"tests/test_b.py": 0, "tests/test_a.py": 1}
    cases = [nightly.Case("tests/test_b.py::test_one", "passed", 4.0, 0, ())] * 2
    longest.keep(nightly.seconds_of(cases, ["tests/test_b.py::test_one"]))
    assert len(longest.seen()) == 2, "a part of a file says nothing of the file"
    longest.keep(nightly.seconds_of(cases, ["tests/test_b.py"]))
    assert [*longest.seen()] == ["tests/test_a.py"]


def test_a_night_ends_with_the_tests_that_took_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = [nightly.Case(f"tests/test_a.py::test_{name}", "passed", seconds, 0, ())
           for name, seconds in (("short", 1.0), ("cases", 700.0), ("cases", 600.0))]  # fmt: skip
    monkeypatch.setattr(nightly, "LISTED", 1)
    assert nightly.slowest(ran).splitlines() == [
        "of 1,301 s of all workers took", "  1300 s  tests/test_a.py::test_cases"
    ]  # fmt: skip


def test_a_file_that_is_named_whole_is_run_once() -> None:
    nodes = ["tests/test_a.py", "tests/test_a.py::test_one", "tests/test_b.py::test_one"]
    assert nightly.without_doubles(nodes) == ["tests/test_a.py", "tests/test_b.py::test_one"]


def test_a_promise_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert nightly.main(["prove", "D1", "Q9"]) == 2
    assert "Q9 is nowhere; there are the promises D1, " in capsys.readouterr().out


# --- orders ---------------------------------------------------------------------------------------


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch, shelf: Path) -> list[str]:
    """Let orders be run that tell their seed alone; the fifth one has a test that fails."""
    told: list[str] = []

    def run(words: list[str], _: int) -> tuple[int, list[nightly.Case]]:
        told.append(words[0].partition("=")[2])
        failed = told[-1] == "5"
        outcome = "failed" if failed else "passed"
        return int(failed), [
            nightly.Case("tests/test_a.py::test_one", outcome, 2.0, 9, ("7",), ("late",))
        ]

    monkeypatch.setattr(nightly, "suite", run)
    return told


def test_orders_may_be_run_in_parts(orders: list[str]) -> None:
    assert nightly.main(["orders", "2"]) == 0
    assert nightly.main(["orders", "4-6"]) == 2, "the third is missing"
    assert nightly.main(["orders", "3-4"]) == 0
    record = promises.read(promises.PROOFS)["orders"]
    assert [record[name] for name in ("passed", "failed", "trials", "again", "seconds")] == [
        4,
        0,
        4,
        4,
        8,
    ]
    assert "each of them a trial" in promises.PAGE.read_text(encoding="utf-8")
    assert nightly.main(["orders", "5-8"]) == 1
    record = promises.read(promises.PROOFS)["orders"]
    node = "tests/test_a.py::test_one"
    assert record["failed"] == 1
    assert record["seen"] == [f"again: {node}, late", f"failed: {node}"]
    assert nightly.main(["orders", "6-8"]) == 2, "one that failed is to be mended"
    assert orders == list("12345")
    assert nightly.main(["orders", "1"]) == 0, "begun anew"
    assert promises.read(promises.PROOFS)["orders"]["trials"] == 1


# --- parts ----------------------------------------------------------------------------------------


def test_a_night_says_first_which_parts_there_are_and_how_long_each_took(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[tuple[str, tuple[str, ...]]] = []

    def part(name: str, code: int, **more: Any) -> nightly.Part:
        def run(words: Sequence[str], asked: object) -> int:
            ran.append((name, tuple(words)))
            return code

        return nightly.Part(f"what {name} is", run, **more)

    known = {
        "prove": part("prove", 1, of_a_night=True),
        "mutants": part("mutants", 0, of_a_night=True),
        "orders": part("orders", 2, words=("20",)),
    }
    monkeypatch.setattr(nightly, "PARTS", known)
    monkeypatch.setattr(nightly, "FAULTS", FAULTS[:2])
    (shelf / "nightly.json").write_text('{"prove": {"date": "2026-11-23", "seconds": 5280}}')
    assert nightly.main([]) == 1, "a part that failed keeps no other from running"
    assert ran == [("prove", ()), ("mutants", ())]
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == [">", "prove", "88", "min", "on", "2026-11-23", "what", "prove", "is"]
    assert said[2].split()[:4] == ["orders", "not", "timed", "yet"]
    timed = promises.read(shelf / "nightly.json")
    assert list(timed) == ["prove", "mutants"]
    assert all(set(took) == {"date", "seconds", "cpu_seconds"} for took in timed.values())
    ran.clear()
    assert nightly.main(["orders", "mutants"]) == 2
    assert nightly.main(["orders", "7-20"]) == 2
    assert ran == [("orders", ("20",)), ("mutants", ()), ("orders", ("7-20",))]
    assert "orders" not in promises.read(shelf / "nightly.json"), "it did not come to its end"
    assert nightly.main(["nights"]) == 2
    assert "there is no part nights" in capsys.readouterr().out
    ran.clear()
    for edit in (
        Text("torra/clock.py", "no such line", ""),
        At("torra.clock", drop("no_such_name")),
        Seam("torra.clock:no_such_name", "skips()"),
    ):
        gone = replace(FAULTS[0], edits=(edit,))
        monkeypatch.setattr(nightly, "FAULTS", (gone,))
        for words in ([], ["mutants", gone.id]):
            assert nightly.main(words) == 2, (
                "a fault that fits no more is told before the first hour"
            )
            assert ran == []
            assert gone.id in capsys.readouterr().out


def test_a_fault_that_survives_beside_others_is_tried_alone(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first survives both times, the second once; the third has a test that fails without."""
    first, second, third, fourth = FAULTS[:4]
    tries: list[str] = []
    broken = [nightly._nodes(third)[0], ""]

    def tried(fault: Fault, tree: Path) -> dict[str, Any]:
        tries.append(fault.id)
        found = fault is not first and not (fault is second and tries.count(fault.id) == 1)
        return {"noticed": found, "seconds": 1.0, "date": "2026-11-24"}

    def failing(tree: Path, chosen: list[Fault], workers: int) -> set[str]:
        return {broken[0]} if third in chosen else set()

    monkeypatch.setattr(nightly, "copied", lambda folder: folder)
    monkeypatch.setattr(nightly, "_tried", tried)
    monkeypatch.setattr(nightly, "_failing", failing)
    words = [one.id for one in (first, second, third, fourth)]
    assert nightly.main(["--record", "mutants", *words]) == 1
    kept = promises.read(shelf / "mutants.json")
    assert {name: row["noticed"] for name, row in kept.items()} == {
        first.id: False, second.id: True, third.id: False, fourth.id: True,
    }  # fmt: skip
    assert sorted(tries) == sorted([first.id] * 2 + [second.id] * 2 + [third.id, fourth.id])
    assert "2 of 4 planted faults were noticed" in capsys.readouterr().out
    assert nightly.main(["mutants", "epochs"]) == 2
    assert "there is no planted fault epochs" in capsys.readouterr().out


def test_records_take_the_place_of_older_ones_in_the_order_of_the_table(shelf: Path) -> None:
    path = shelf / "mutants.json"
    row = {"seconds": 1.0, "date": "2026-11-24"}
    names = [fault.id for fault in FAULTS[:3]]
    promises.keep(
        path, {names[1]: {**row, "noticed": True}, "gone": {**row, "noticed": True}}, names
    )
    promises.keep(path, {names[0]: {**row, "noticed": True}}, names)
    promises.keep(path, {names[1]: {**row, "noticed": False}}, names)
    kept = promises.read(path)
    assert [(name, one["noticed"]) for name, one in kept.items()] == [
        (names[0], True),
        (names[1], False),
    ]


@pytest.mark.parametrize(
    ("code", "said", "noticed"),
    [
        (1, "FAILED {0} - no\n1 failed", True),
        (0, "1 passed", False),
        (
            0,
            "== 1 excused: the machine was too busy ==\n{0}: in 3 tries, last held up for 5 s",
            None,
        ),
        (HUNG, "", True),
    ],
)
def test_a_test_that_a_busy_machine_excused_says_nothing_of_a_fault(
    code: int, said: str, noticed: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = next(fault for fault in FAULTS if len(fault.tests) == 1)
    told = code, said.format(resolved(fault.tests[0]))
    monkeypatch.setattr(nightly, "planted", lambda *_: nullcontext())
    monkeypatch.setattr(nightly, "_in", lambda *_: told)
    assert nightly._tried(fault, ROOT)["noticed"] is noticed
