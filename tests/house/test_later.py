"""A module that few tests need is imported by those alone, not by whoever collects them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.later import Later

RARE = "from pathlib import Path\nPath('imported').touch()\nVALUE = 7\n"

USER = """
from tests.later import Later

rare = Later("rare")

def test_of_it():
    assert rare.VALUE == 7
"""


def test_collecting_tests_imports_nothing_that_is_for_later(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(rare=RARE, test_user=USER)
    pytester.syspathinsert()
    items, _ = pytester.inline_genitems("-p", "no:randomly")
    assert [item.name for item in items] == ["test_of_it"]
    assert not Path("imported").exists()
    pytester.inline_run("-p", "no:randomly").assertoutcome(passed=1)
    assert Path("imported").exists()


def test_what_is_asked_for_is_that_modules() -> None:
    assert Later("json").dumps({}) == "{}"
    with pytest.raises(ModuleNotFoundError):
        _ = Later("no_module_of_this_name").anything
