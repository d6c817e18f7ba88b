"""The page of the promises says what was run, and every promise has its tests or its reason."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests import ROOT
from tests.faults import promises, prove
from tests.faults.promises import MUTANTS, PAGE, PROOFS, Promise

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


def test_the_page_is_what_the_registry_and_the_records_say() -> None:
    """`python -m tests.faults.prove --render` writes it anew."""
    proofs, mutants = promises.read(PROOFS, {}), promises.read(MUTANTS, [])
    assert PAGE.read_text(encoding="utf-8") == promises.page(KNOWN, proofs, mutants)


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
    for test in promise.tests:
        file, _, name = test.partition("::")
        assert functions(file), f"{file} has no test"
        assert not name or name in functions(file), f"there is no {test}"
        assert not name or file not in promise.tests, f"{test} is of a file that is named too"


@pytest.mark.parametrize("group", KNOWN.groups)
def test_none_of_its_tests_is_always_skipped(group: str) -> None:
    for test in dict.fromkeys(test for promise in KNOWN.of(group) for test in promise.tests):
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
    for name, record in promises.read(PROOFS, {}).items():
        assert name in BY_ID or name == promises.ORDERS
        assert record["passed"] > 0 and record["failed"] == 0, f"{name}: {record}"
        assert not re.search(r"/(home|tmp|root|usr|var|work)/", json.dumps(record)), name


def test_every_planted_fault_belongs_to_a_promise() -> None:
    assert {row["promise"] for row in promises.read(MUTANTS, [])} <= {*BY_ID, "doors"}


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


def promise(*tests: str, **more: Any) -> Promise:
    return Promise("D1", "A promise", tests, **more)


@pytest.fixture
def cases(tmp_path: Path) -> list[prove.Case]:
    report = tmp_path / "junit.xml"
    report.write_text(JUNIT, encoding="utf-8")
    return list(prove.cases_of(report))


def test_a_run_is_counted(cases: list[prove.Case]) -> None:
    found = prove.record_of(promise("tests/test_a.py::test_one", "tests/test_b.py"), cases)
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


def test_cases_that_look_alike_are_counted_each(cases: list[prove.Case]) -> None:
    found = prove.record_of(promise("tests/test_a.py::test_one"), cases[1:2] * 3)
    assert found is not None and (found["passed"], found["trials"]) == (3, 3000)


def test_a_failure_is_on_record_with_its_test(cases: list[prove.Case]) -> None:
    found = prove.record_of(promise("tests/test_a.py"), cases)
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
    one: Promise, cases: list[prove.Case]
) -> None:
    assert prove.record_of(one, cases) is None


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
    asked: tuple[str, ...], kept: bool, cases: list[prove.Case]
) -> None:
    found = prove.record_of(promise("tests/test_a.py"), cases, asked)
    assert (found is None) is kept


def test_only_promises_whose_tests_were_all_asked_for_get_a_record(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = promises.registry().promises
    part = next(one for one in known if one.id == "T4").tests
    whole = next(one for one in known if one.id == "T6").tests
    assert whole[0] in {test.partition("::")[0] for test in part}, "a part of the other's file"
    ran = [prove.Case(test, "passed", 1.0, 0, ()) for test in part]
    kept: dict[str, Any] = {}
    monkeypatch.setattr(prove, "run", lambda words, workers: (0, ran))
    monkeypatch.setattr(prove, "keep", kept.update)
    assert prove.prove(prove._asked(["T4"])) == 0
    assert "T4" in kept and "T6" not in kept
    assert "T4" in capsys.readouterr().out


def test_a_file_that_is_named_whole_is_run_once() -> None:
    nodes = ["tests/test_a.py", "tests/test_a.py::test_one", "tests/test_b.py::test_one"]
    assert prove.without_doubles(nodes) == ["tests/test_a.py", "tests/test_b.py::test_one"]


def test_a_promise_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = prove._asked(["D1", "Q9"])
    assert prove.prove(arguments) == 2
    assert "there is no promise Q9" in capsys.readouterr().out


# --- orders ---------------------------------------------------------------------------------------


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Let orders be run that tell their seed alone; the fifth one has a test that fails."""
    told: list[str] = []

    def run(words: list[str], _: int) -> tuple[int, list[prove.Case]]:
        told.append(words[0].partition("=")[2])
        failed = told[-1] == "5"
        outcome = "failed" if failed else "passed"
        return int(failed), [
            prove.Case("tests/test_a.py::test_one", outcome, 2.0, 9, ("7",), ("late",))
        ]

    monkeypatch.setattr(promises, "PROOFS", tmp_path / "proofs.json")
    monkeypatch.setattr(promises, "PAGE", tmp_path / "promises.md")
    monkeypatch.setattr(prove, "run", run)
    return told


def test_orders_may_be_run_in_parts(orders: list[str]) -> None:
    assert prove.main(["--orders", "2"]) == 0
    assert prove.main(["--orders", "4-6"]) == 2, "the third is missing"
    assert prove.main(["--orders", "3-4"]) == 0
    record = promises.read(promises.PROOFS, {})["orders"]
    assert [record[name] for name in ("passed", "failed", "trials", "again", "seconds")] == [
        4,
        0,
        4,
        4,
        8,
    ]
    assert "each of them a trial" in promises.PAGE.read_text(encoding="utf-8")
    assert prove.main(["--orders", "5-8"]) == 1
    record = promises.read(promises.PROOFS, {})["orders"]
    node = "tests/test_a.py::test_one"
    assert record["failed"] == 1
    assert record["seen"] == [f"again: {node}, late", f"failed: {node}"]
    assert prove.main(["--orders", "6-8"]) == 2, "one that failed is to be mended"
    assert orders == list("12345")
    assert prove.main(["--orders", "1"]) == 0, "begun anew"
    assert promises.read(promises.PROOFS, {})["orders"]["trials"] == 1
