"""Lives that are ended by force, whatever lives: the harness of test_kills.

A life is work in a forked process. It ends at a named point (torra.failpoints), when its parent
kills it, or of itself. `crash_at` ends work inside this process instead, at its nth step, for a
double that does not outlive a fork. `side_by_side` runs cases in which one of two processes or both
are killed; a `Pair` is what such a case plays in.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from tests.faults import mortal
from torra.failpoints import VARIABLE

FORKED: Final[Any] = multiprocessing.get_context("fork") if hasattr(os, "fork") else None

ROWS: Final = 4
"""Rows of cases beside each other: mostly they wait."""

Work = Callable[[], object]


def begin(work: Work, point: str = "", variable: str = VARIABLE) -> BaseProcess:
    """Start a life, which ends at a point if it comes there."""

    def life() -> None:
        if point:
            os.environ[variable] = point
        work()

    process: BaseProcess = FORKED.Process(target=life, daemon=True)
    process.start()
    return process


def await_end(process: BaseProcess) -> bool:
    """Wait for the end of a life; return whether it was killed. Others end well."""
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), "a life failed by itself"
    return process.exitcode != 0


def run(work: Work) -> bool:
    """Live to the end; return whether it was a death."""
    return await_end(begin(work))


def run_for(seconds: float, work: Work) -> bool:
    """Live for so long at most; return whether that was too short."""
    process = begin(work)
    process.join(seconds)
    process.kill()
    return await_end(process)


@contextmanager
def crash_at(nth: int, *places: tuple[Any, str]) -> Iterator[mortal.Doom]:
    """Crash at the nth step in the block: before or after a call of one of the places, or a point.

    The dead take no further step, so that no `finally` tidies up.
    """
    doom = mortal.Doom(Counter())
    doom.arm("step", nth)

    def deadly(real: Callable[..., Any], *words: Any, **named: Any) -> Any:
        doom.step("step")
        result = real(*words, **named)
        doom.step("step")
        return result

    with pytest.MonkeyPatch.context() as patch:
        mortal.watch_points(patch, lambda _: doom.step("step"))
        for owner, name in places:
            real = getattr(owner, name)
            patch.setattr(owner, name, lambda *a, real=real, **n: deadly(real, *a, **n))
        with suppress(mortal.Crash):
            yield doom


class Pair(Protocol):
    """Two processes and what lies between them; who was killed, and what the cases came to."""

    kills: Counter[str]
    ends: Counter[str]

    def case(self, number: int) -> None:
        """Play one case through its kills to its end."""

    def whole(self) -> None:
        """Look that nothing is lost or doubled, and close."""


Tally = tuple[Counter[str], Counter[str]]


def side_by_side(make: Callable[[Path, random.Random], Pair], folder: Path, kills: int) -> Tally:
    """Play rows of cases until there are so many kills; return whom they hit, and the ends."""
    row = partial(_row, make, folder, -(-kills // ROWS))
    with ProcessPoolExecutor(ROWS, mp_context=FORKED) as pool:
        rows = list(pool.map(row, range(ROWS)))
    return sum((one for one, _ in rows), Counter()), sum((one for _, one in rows), Counter())


def _row(make: Callable[[Path, random.Random], Pair], folder: Path, kills: int, part: int) -> Tally:
    pair = make(folder / str(part), random.Random(20261122 + part))
    number = 0
    while pair.kills.total() < kills:
        pair.case(number)
        number += 1
    pair.whole()
    return pair.kills, pair.ends
