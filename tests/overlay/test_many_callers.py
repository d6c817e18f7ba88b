"""Many threads, processes and deaths on one home: each bar is debated once, nothing is halved."""

from __future__ import annotations

import json
import multiprocessing
import os
import pydoc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.scripted import Blocks, Scripted
from tests.faults import kills, lives
from tests.tries import Tries
from tests.worlds import scorers
from torra.overlay import processes


def call(folder: Path, sizes: list[int], threads: int, tells: Connection) -> None:
    """Ask about these bars in many threads, each in another order; tell what they were answered."""
    overlay = scorers.overlay(folder)

    def ask(first: int) -> list[tuple[int, list[Any]]]:
        answers = [
            (size, scorers.asked(overlay, scorers.bars(size), scores=scorers.L1))
            for size in sizes[first:] + sizes[:first]
        ]
        return [(size, [one.chart, one.revision, one.why]) for size, one in answers]

    with ThreadPoolExecutor(threads) as pool:
        tells.send([one for told in pool.map(ask, range(threads)) for one in told])


def dies(folder: Path, point: str, when: str) -> None:
    """Ask, and be killed before or after what a name stands for."""
    owner, name = point.rsplit(":", 1)
    place: Any = pydoc.locate(owner)
    held = getattr(place, name)

    def killed(*words: Any, **more: Any) -> None:
        if when == "after":
            held(*words, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(place, name, killed)
    scorers.asked(scorers.overlay(folder), scores=scorers.L1)


@pytest.mark.journey
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_of_many_callers_one_debates_and_all_have_its_answer(
    tmp_path: Path, scaled: Callable[..., int]
) -> None:
    bars = scaled(1_000, least=4)
    first = scorers.overlay(tmp_path)
    scorers.asked(first, scorers.bars(300), scores=scorers.L1)
    first.close()
    forked = multiprocessing.get_context("fork")
    callers = []
    for _ in range(scaled(4, least=2)):
        hears, tells = forked.Pipe(duplex=False)
        words = tmp_path, [*range(301, 301 + bars)], 4, tells
        callers.append((forked.Process(target=call, args=words), hears))
        callers[-1][0].start()
        tells.close()
    told: dict[int, list[Any]] = {}
    for caller, hears in callers:
        for size, answer in hears.recv():
            told.setdefault(size, []).append(answer)
        caller.join()
        assert caller.exitcode == 0
    assert len(told) == bars
    for size, answers in told.items():
        debated = [answer for answer in answers if answer[1]]
        assert debated and all(answer[0] == debated[0][0] for answer in debated), size
        assert {answer[1] for answer in debated} == {1}
        # One whose turn did not come in time has its own L1, and says so.
        for chart, revision, why in answers:
            assert revision or (why and scorers.numbers(chart) == scorers.L1)
    for table in ("journal", "chains", "sentiment", "hosted"):
        assert scorers.count(tmp_path, table) == bars + 1
    assert scorers.count(tmp_path, "calls") == 4 * (bars + 1)


def test_callers_that_wait_have_the_answer_of_the_one_that_debates(tmp_path: Path) -> None:
    free = threading.Event()
    provider = Scripted({"technical": Blocks(free)})
    overlay = scorers.overlay(tmp_path, provider, strict=True)
    with ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(scorers.asked, overlay, scorers.bars(400), scores=scorers.L1)
            for _ in range(8)
        ]
        while not provider.requests:
            time.sleep(0.01)
        free.set()
        answers = [future.result(timeout=30) for future in futures]
    assert len({json.dumps(answer.chart, sort_keys=True) for answer in answers}) == 1
    assert {answer.revision for answer in answers} == {1} and len(provider.requests) == 4
    assert overlay.health()["answers"] == {"debated": 1, "from_the_record": 7}


POINTS = [
    ("torra.store.hosted:ask_hosted", "before"),
    ("torra.store.hosted:ask_hosted", "after"),
    ("torra.overlay.hosted_tick:inputs", "after"),
    ("torra.overlay.call:run_tick_debate", "before"),
    ("torra.overlay.call:run_tick_debate", "after"),
    ("torra.overlay.call:store", "before"),
    ("torra.store.hosted:hosted_revision", "after"),
    ("torra.store.hosted:put_aside", "after"),
    ("torra.store.journal.JournalStore:write_journal", "after"),
    ("torra.store.journal.JournalStore:write_calls", "after"),
    ("torra.store.hosted:keep_answer", "after"),
    ("torra.overlay.call:store", "after"),
]


@pytest.mark.journey
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_host_that_dies_leaves_no_half_record_and_the_next_ask_goes_on(
    tmp_path: Path, tries: Tries, scaled: Callable[..., int]
) -> None:
    """By day at four points, at night at all of them."""
    lives.warm()
    chosen = POINTS[:: max(1, len(POINTS) // scaled(len(POINTS), least=4))]
    assert len(chosen) >= 4
    for number, (point, when) in enumerate(chosen):
        _dies_at(tmp_path / str(number), point, when, tries)


def _dies_at(tmp_path: Path, point: str, when: str, tries: Tries) -> None:
    assert kills.run(partial(dies, tmp_path, point, when))
    whole = when == "after" and point.endswith("call:store")
    for table in ("journal", "chains", "sentiment"):
        assert scorers.count(tmp_path, table) == int(whole)
    assert scorers.count(tmp_path, "calls") == 4 * whole
    overlay = scorers.overlay(tmp_path, strict=True)
    began = time.monotonic()
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert answer.debated and answer.revision == 1
    for attempt in tries():
        with attempt:
            assert time.monotonic() - began < 3.0, "a dead owner's claim is free at once"
    assert scorers.count(tmp_path, "journal") == 1 and scorers.count(tmp_path, "calls") == 4


def test_a_process_is_known_by_more_than_its_number() -> None:
    ours = processes.this_process()
    assert processes.lives(ours)
    place, number, _started = ours.split("|")
    assert not processes.lives(f"{place}|{number}|1"), "the number was given again"
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert not processes.lives(f"{place}|{child.pid}|")
    assert (
        processes.lives("another machine|1|2") and processes.lives("") and processes.lives("x|y|z")
    )
