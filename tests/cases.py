"""Many small cases of one statement in one test: as tests of their own they cost more than they do.

`cases` is written like `pytest.mark.parametrize`, and more than one may stand above a test. Every
case runs, whatever became of those before it; the test fails with the names of all that failed. It
is for cases that share everything but their values: what a test gets from fixtures, all its cases
get alike. A case that would be skipped fails: it would be missed in silence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def cases(
    names: str | tuple[str, ...],
    values: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[str] | None = None,
) -> Callable[[Test], Test]:
    """Return the decorator of a test that takes these arguments once for each of the values."""
    taken = tuple(names.replace(",", " ").split()) if isinstance(names, str) else names
    rows = [_row(taken, value) for value in values]
    told = [_told(row, name) for row, name in zip(rows, _names(rows, ids), strict=True)]
    if not rows:
        raise ValueError("a test without a case proves nothing")

    def decorate(test: Test) -> Test:
        @wraps(test)
        def of_all(**given: Any) -> None:
            wrong: list[str] = []
            first: BaseException | None = None
            for name, row in zip(told, rows, strict=True):
                try:
                    test(**given, **dict(zip(taken, row.values, strict=True)))
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001  named
                    wrong.append(f"[{name}] {type(error).__name__}: {error}")
                    first = first or error
            if wrong:
                raise AssertionError("\n".join([_counted(wrong, rows), *wrong])) from first

        known = inspect.signature(test)
        assert set(taken) <= set(known.parameters), f"{test.__name__} does not take {taken}"
        of_all.__signature__ = known.replace(  # type: ignore[attr-defined]
            parameters=[one for name, one in known.parameters.items() if name not in taken]
        )
        return of_all

    return decorate


def _row(taken: tuple[str, ...], value: Any) -> Any:
    """Return a case as pytest holds it; a mark would be lost, so that there may be none."""
    row = value if hasattr(value, "marks") else pytest.param(*(value if taken[1:] else (value,)))
    if row.marks or len(row.values) != len(taken):
        raise ValueError(f"no case of {taken}: {value!r}")
    return row


def _names(rows: list[Any], ids: Callable[[Any], object] | Iterable[str] | None) -> list[str]:
    if ids is None:
        return ["-".join(map(_short, row.values)) for row in rows]
    if callable(ids):
        return ["-".join(str(ids(value)) for value in row.values) for row in rows]
    return list(ids)


def _told(row: Any, name: str) -> str:
    return str(row.id) if isinstance(row.id, str) else name


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _counted(wrong: list[str], rows: list[Any]) -> str:
    return f"{len(wrong)} of {len(rows)} cases:"
