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


FEWER: Final = "pytest.mark.by_day"


@cache
def daily(file: str, *, whole: bool = False) -> frozenset[str]:
    """Return the names of the tests of a file that `make test` runs, or runs with all cases."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return daily_of(tree, (*LEFT, FEWER) if whole else LEFT)


def daily_of(tree: ast.Module, left: tuple[str, ...] = LEFT) -> frozenset[str]:
    whole = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    if any(mark in ast.unparse(value) for value in whole for mark in left):
        return frozenset()
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not any(ast.unparse(mark).startswith(left) for mark in node.decorator_list)
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
    """By all cases of a test: of the few that a day draws nobody knows whether they notice it."""
    left = []
    for fault in FAULTS:
        nodes = [resolved(name).partition("::") for name in fault.tests]
        if not any(test.partition("[")[0] in daily(file, whole=True) for file, _, test in nodes):
            left.append(f"{fault.id}: {', '.join(fault.tests)}")
    assert not left, "nothing that runs in `make test` notices these"


def test_every_file_of_a_journey_has_daily_tests() -> None:
    for path in (path for paths in files().values() for path in paths):
        if "pytest.mark.journey" in (ROOT / path).read_text(encoding="utf-8"):
            assert daily(path), f"{path}: nothing of it runs in `make test`"


HOOK: Final = """
    from tests.conftest import leave_cases


    def pytest_configure(config):
        for name in ("by_day", "journey", "nightly"):
            config.addinivalue_line("markers", f"{name}: a mark of Torra's")


    def pytest_collection_modifyitems(items):
        leave_cases(items)
"""

CASES: Final = """
    import pytest

    NUMBERS = [1, 2, pytest.param(3, marks=pytest.mark.nightly), 4]


    @pytest.mark.by_day(2)
    @pytest.mark.parametrize("b", "xyz")
    @pytest.mark.parametrize("a", NUMBERS)
    def test_drawn(a, b):
        pass


    @pytest.mark.by_day("y", "z")
    @pytest.mark.parametrize("b", "xyz")
    def test_named(b):
        pass


    def test_single():
        pass
"""


def cases_of(pytester: pytest.Pytester, mark: str) -> list[str]:
    told = pytester.inline_run("-p", "no:randomly", "-m", mark)
    return [report.nodeid.partition("::")[2] for report in told.listoutcomes()[0]]


NIGHT: Final = {f"test_drawn[3-{b}]" for b in "xyz"}
DAY: Final = {"test_single", "test_named[y]", "test_named[z]", "test_drawn[1-y]", "test_drawn[2-x]"}


@pytest.mark.parametrize("first", ["", "items.reverse(); "])
def test_a_case_that_a_day_leaves_is_a_journey(pytester: pytest.Pytester, first: str) -> None:
    """The same ones in any order and on any machine, and what sleeps takes no place of a day."""
    pytester.makeconftest(HOOK.replace("leave_cases(items)", f"{first}leave_cases(items)"))
    pytester.makepyfile(CASES)
    day, left = (cases_of(pytester, mark) for mark in ("not journey", "journey"))
    assert set(day) == DAY | NIGHT
    assert sorted(day + left) == sorted(cases_of(pytester, ""))
