"""Many threads, processes and deaths on one home: each bar is debated once, nothing is halved."""

from __future__ import annotations

import json
import os
import pydoc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.doubles.scripted import Blocks, Scripted
from tests.faults import lives
from tests.tries import Tries
from tests.worlds import scorers
from torra.overlay import processes
from torra.store.connection import TickKey

CALLERS = """
import json, sys, threading
from pathlib import Path
from tests.worlds import scorers

folder, first, last, threads = Path(sys.argv[1]), *map(int, sys.argv[2:5])
overlay = scorers.overlay(folder)
told, lock = {}, threading.Lock()

def ask(sizes):
    for size in sizes:
        answer = scorers.asked(overlay, scorers.bars(size), scores=scorers.L1)
        with lock:
            told.setdefault(str(size), []).append([answer.chart, answer.revision, answer.why])

sizes = list(range(first, last))
orders = [sizes[n:] + sizes[:n] for n in range(threads)]
runs = [threading.Thread(target=ask, args=(order,)) for order in orders]
for run in runs: run.start()
for run in runs: run.join()
print(json.dumps(told))
"""


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


def program(text: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, words)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_of_many_callers_one_debates_and_all_have_its_answer(
    tmp_path: Path, scaled: Callable[..., int]
) -> None:
    bars = scaled(1_000, least=4)
    scorers.asked(scorers.overlay(tmp_path), scorers.bars(300), scores=scorers.L1)
    callers = [program(CALLERS, tmp_path, 301, 301 + bars, 4) for _ in range(scaled(4, least=2))]
    told: dict[str, list[Any]] = {}
    for caller in callers:
        out, error = caller.communicate(timeout=3_000)
        assert caller.returncode == 0, error[-2_000:]
        for size, answers in json.loads(out).items():
            told.setdefault(size, []).extend(answers)
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
    ("torra.store.hosted.HostedStore:ask_hosted", "before"),
    ("torra.store.hosted.HostedStore:ask_hosted", "after"),
    ("torra.overlay.hosted_tick:inputs", "after"),
    ("torra.overlay.hosted_tick:debate", "before"),
    ("torra.overlay.hosted_tick:debate", "after"),
    ("torra.overlay.hosted_tick:store", "before"),
    ("torra.store.hosted.HostedStore:hosted_revision", "after"),
    ("torra.store.hosted.HostedStore:put_aside", "after"),
    ("torra.store.journal.JournalStore:write_journal", "after"),
    ("torra.store.journal.JournalStore:write_calls", "after"),
    ("torra.store.hosted.HostedStore:keep_answer", "after"),
    ("torra.overlay.hosted_tick:store", "after"),
]


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
    assert lives.run(partial(dies, tmp_path, point, when))
    whole = when == "after" and point.endswith("hosted_tick:store")
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


def test_a_claim_ends_with_its_time_where_its_owner_is_not_known(tmp_path: Path) -> None:
    database = scorers.stored(tmp_path)
    key = TickKey("host:scorer:BTCUSD", "M15", datetime(2021, 10, 1, tzinfo=UTC))
    now = datetime.now(UTC)
    with closing(database):
        assert (
            database.ask_hosted(key, "q", "far|1|", now + timedelta(hours=1), processes.lives)
            == "ours"
        )
        assert (
            database.ask_hosted(key, "q", "me", now + timedelta(hours=1), processes.lives)
            == "taken"
        )
        assert database.ask_hosted(key, "q", "me", now, lambda _: False) == "ours"
        assert database.ask_hosted(key, "q", "you", now, lambda _: True) == "ours", "its time is up"
        database.give_back(key, "q", "me")
        assert database._row("SELECT state FROM hosted") == {"state": "claimed"}
        database.give_back(key, "q", "you")
        assert database._row("SELECT state FROM hosted") is None


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
