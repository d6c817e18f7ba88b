"""A statement about real seconds may be tried again, a few times, and each time is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tries import COUNT, Tries


def held_at(number: int, error: type[BaseException | pytest.fail.Exception]) -> Tries:
    """Try what holds at one number, and not before."""
    tries = Tries()
    for attempt in tries():
        with attempt:
            if attempt.number < number:
                raise error("not in time")
    return tries


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("error", [AssertionError, TimeoutError, pytest.fail.Exception])
def test_it_is_tried_until_it_holds(number: int, error: type[Exception]) -> None:
    assert held_at(number, error).again == number


@pytest.mark.parametrize("error", [AssertionError, TimeoutError, pytest.fail.Exception])
def test_what_never_holds_fails(error: type[Exception]) -> None:
    with pytest.raises(error, match="not in time"):
        held_at(COUNT, error)


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.skip.Exception])
def test_what_is_no_failure_is_not_tried_again(error: type[BaseException]) -> None:
    with pytest.raises(error):
        held_at(1, error)


def test_each_try_has_a_folder_of_its_own(tmp_path: Path) -> None:
    made = [attempt.folder(tmp_path).name for attempt in Tries()()]
    assert made == [f"try-{number}" for number in range(COUNT)]
