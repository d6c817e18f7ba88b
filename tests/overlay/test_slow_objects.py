"""A host's objects are read inside the deadline, and of bars nothing that is not used."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tries import Tries, until
from tests.worlds import scorers
from torra.overlay import NoScores

DEADLINE = 0.5
GRACE = 0.5
QUICK = {"timeout_seconds": DEADLINE}
CLOSED = scorers.closed_at(scorers.bars())


class Slow(Mapping[str, Any], list[Any]):
    """Anything of a host's, which answers nothing before it is let go."""

    def __init__(self, free: threading.Event) -> None:
        self._free = free

    def _wait(self, *_: Any) -> Any:
        self._free.wait()
        raise LookupError("late")

    __getitem__ = __len__ = __iter__ = items = get = keys = _wait


@pytest.fixture
def free() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("name", ["bars", "extra", "headlines"])
def test_a_slow_object_ends_with_the_deadline(
    tmp_path: Path, free: threading.Event, tries: Tries, name: str
) -> None:
    overlay = scorers.overlay(tmp_path, agents=QUICK)
    given: dict[str, Any] = {"bars": scorers.bars(), name: Slow(free)}
    for attempt in tries():
        with attempt:
            began = time.monotonic()
            answer = overlay.deliberate("BTCUSD", "M15", scores=scorers.L1, as_of=CLOSED, **given)
            assert time.monotonic() - began < DEADLINE + GRACE
    assert answer.why == f"bars: not read within {DEADLINE:g} s"
    assert scorers.numbers(answer.chart) == scorers.L1
    health = overlay.health()
    assert health["busy"] >= 1 and health["trouble"]["why"] == answer.why
    free.set()
    until(lambda: overlay.health()["busy"] == 0)
    assert scorers.count(tmp_path, "journal") == 0, "nothing that came late was debated"


@pytest.mark.parametrize("name", ["bars", "scores"])
def test_without_scores_of_the_host_there_are_none(
    tmp_path: Path, free: threading.Event, name: str
) -> None:
    given: dict[str, Any] = {"bars": scorers.bars(), name: Slow(free)}
    with pytest.raises(NoScores, match=r"BTCUSD M15: bars: not read within"):
        scorers.overlay(tmp_path, agents=QUICK).deliberate("BTCUSD", "M15", as_of=CLOSED, **given)


def test_the_hosts_objects_are_read_on_a_thread_of_the_overlay(tmp_path: Path) -> None:
    names: set[str] = set()

    class Bars(list[Any]):
        def __getitem__(self, at: Any) -> Any:
            names.add(threading.current_thread().name)
            return super().__getitem__(at)

    rows = scorers.bars().reset_index().to_dict("records")
    answer = scorers.overlay(tmp_path, strict=True).deliberate(
        "BTCUSD", "M15", Bars(rows), scores=scorers.L1, as_of=CLOSED
    )
    assert answer.debated and names == {"torra-overlay"}
