"""Cases in one test: each of them runs, and each that fails is named."""

from __future__ import annotations

import pytest

from tests.cases import cases

SEEN: list[tuple[int, str]] = []


@cases("number", range(3))
@cases(("letter", "other"), [("a", 1), pytest.param("b", 2, id="the second")])
def every(number: int, letter: str, other: int) -> None:
    SEEN.append((number, letter))
    assert other == 1 or number != 1
    if (number, letter) == (2, "b"):
        pytest.fail("said by a test")


def test_every_case_runs_and_all_that_fail_are_named() -> None:
    SEEN.clear()
    with pytest.raises(AssertionError) as caught:
        every()
    assert [(number, letter) for number in range(3) for letter in "ab"] == SEEN
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 of 3 cases:"
    assert [line for line in lines if line.startswith("[the second]")] == [
        "[the second] AssertionError: assert (2 == 1 or 1 != 1)",
        "[the second] Failed: said by a test",
    ]


@cases("number", [1, 2], ids=["one", "two"])
def test_a_fixture_is_given_to_every_case(tmp_path_factory: object, number: int) -> None:
    assert tmp_path_factory is not None and number in (1, 2)


def test_a_case_that_would_be_skipped_fails() -> None:
    @cases("number", [1, 2], ids=lambda number: f"number {number}")
    def skips(number: int) -> None:
        if number == 2:
            pytest.skip("not here")

    with pytest.raises(AssertionError, match=r"\[number 2\] Skipped: not here"):
        skips()


@pytest.mark.parametrize(
    "values", [[], [(1,)], [pytest.param(1, 2, marks=pytest.mark.skip)], [(1, 2, 3)]]
)
def test_what_is_no_table_of_cases_is_refused(values: list[object]) -> None:
    with pytest.raises(ValueError, match="case"):
        cases(("one", "other"), values)
