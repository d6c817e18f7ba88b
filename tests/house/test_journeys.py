"""What `make test` leaves to `make journeys` is never all that is known of a subject."""

from __future__ import annotations

import ast
from functools import cache
from typing import Final

import pytest

from tests import ROOT
from tests.faults import promises
from tests.faults.named_tests import files, resolved
from tests.faults.planted import FAULTS

LEFT: Final = ("pytest.mark.journey", "pytest.mark.nightly", "pytest.mark.local_llm")
KNOWN: Final = promises.registry()
ASLEEP: Final = frozenset({"L15"})
"""Promises of a real language model, which no daily test runs."""


@cache
def daily(file: str) -> frozenset[str]:
    """Return the names of the tests of a file that `make test` runs."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return daily_of(tree)


def daily_of(tree: ast.Module) -> frozenset[str]:
    whole = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    if any(mark in ast.unparse(value) for value in whole for mark in LEFT):
        return frozenset()
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not any(ast.unparse(mark).startswith(LEFT) for mark in node.decorator_list)
    )


@pytest.mark.parametrize("group", KNOWN.groups)
def test_every_promise_is_proved_by_day(group: str) -> None:
    for promise in KNOWN.of(group):
        if not promise.tests or promise.id in ASLEEP:
            continue
        names = [node.partition("::") for node in promise.nodes]
        assert any(test in daily(file) if test else daily(file) for file, _, test in names), (
            f"{promise.id}: no test of it runs in `make test`"
        )


def test_every_planted_fault_is_noticed_by_day() -> None:
    left = []
    for fault in FAULTS:
        nodes = [resolved(name).partition("::") for name in fault.tests]
        if not any(test.partition("[")[0] in daily(file) for file, _, test in nodes):
            left.append(f"{fault.id}: {', '.join(fault.tests)}")
    assert not left, "nothing that runs in `make test` notices these"


def test_every_file_of_a_journey_has_daily_tests() -> None:
    for path in (path for paths in files().values() for path in paths):
        if "pytest.mark.journey" in (ROOT / path).read_text(encoding="utf-8"):
            assert daily(path), f"{path}: nothing of it runs in `make test`"


CASES: Final = """
    import pytest


    @pytest.mark.by_day(2)
    @pytest.mark.parametrize("b", "xyz")
    @pytest.mark.parametrize("a", (1, 2))
    def test_of_many_cases(a, b):
        pass


    def test_of_one():
        pass
"""


def test_a_case_that_a_day_leaves_is_a_journey(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        from tests.conftest import leave_cases


        def pytest_configure(config):
            config.addinivalue_line("markers", "by_day(count): cases of a day")
            config.addinivalue_line("markers", "journey: the others")


        def pytest_collection_modifyitems(items):
            leave_cases(items)
        """
    )
    pytester.makepyfile(CASES)

    def run(mark: str) -> set[str]:
        passed, _, _ = pytester.inline_run("-p", "no:randomly", "-m", mark).listoutcomes()
        return {report.nodeid.partition("::")[2] for report in passed}

    day, left = run("not journey"), run("journey")
    assert (len(day), len(left), "test_of_one" in day) == (3, 4, True)
    assert len(day | left) == 7, "a case runs neither by day nor among the journeys"
    assert run("not journey") == day, "other cases the next day"


def test_what_is_left_would_be_seen() -> None:
    told = {
        "@pytest.mark.journey\ndef test_a(): pass\ndef test_b(): pass": {"test_b"},
        "@pytest.mark.journey\n@cases('a', (1, 2))\ndef test_a(a): pass": set(),
        "pytestmark = pytest.mark.journey\ndef test_a(): pass": set(),
        "pytestmark = pytest.mark.slow\n@cases('a', (1, 2))\ndef test_a(a): pass": {"test_a"},
    }
    assert {text: set(daily_of(ast.parse(text))) for text in told} == told
