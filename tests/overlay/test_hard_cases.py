"""What an odd host, a slow disk or a bad moment could make of a call, each once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agents.contracts import VECTORS, ModelUnavailable
from instance_database import Database
from tests.doubles.scripted import Scripted
from tests.overlay.test_never_breaks_its_host import DEADLINE, GRACE, ROLES, locked, quick
from tests.tries import Tries, until
from tests.worlds import scorers
from torra.commands.command_line import main
from torra.errors import StoreUnavailable
from torra.overlay import overlay as overlay_calls
from torra.overlay import processes
from torra.store import hosted as hosted_table


def test_another_text_under_the_same_link_is_another_question(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, Scripted(), strict=True)

    def told(summary: str, headline: str = "Bitcoin news") -> Any:
        row = {"headline": headline, "summary": summary, "url": "https://example.org/a"}
        return scorers.asked(overlay, headlines=[row])

    first, second = told("crash, collapse"), told("surge, rally")
    assert (second.again, second.revision) == (False, 2)
    assert first.record["news"]["score"] < 0 < second.record["news"]["score"]
    assert told("crash, collapse").again


def test_a_fallback_cannot_write_into_the_scores(tmp_path: Path) -> None:
    def fallback(context: Any, _ask: Any) -> Any:
        for vector in VECTORS:
            context.scores[vector] = 1.0
        return {vector: {"score": 1.0, "note": ""} for vector in VECTORS}

    provider = Scripted(dict.fromkeys(ROLES, ModelUnavailable("down")))
    answer = scorers.asked(
        scorers.overlay(tmp_path, provider, strict=True), scores=scorers.L1, fallback=fallback
    )
    assert answer.record["l1"] == scorers.L1
    for vector, score in scorers.numbers(answer.chart).items():
        assert score - scorers.L1[vector] <= 0.3 + 1e-9


def test_where_a_vendor_is_down_those_who_wait_do_not_ask_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()
    ask, waiting = hosted_table.ask_hosted, set[int]()

    def asked(*words: Any, **more: Any) -> Any:
        told = ask(*words, **more)
        if told == "taken":
            waiting.add(threading.get_ident())
        return told

    monkeypatch.setattr(hosted_table, "ask_hosted", asked)

    def down(_request: Any) -> Any:
        free.wait(20)
        return ModelUnavailable("down")

    provider = Scripted(dict.fromkeys(ROLES, down))
    overlay = scorers.overlay(tmp_path, provider, strict=True)
    with ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(scorers.asked, overlay, scorers.bars(400), scores=scorers.L1)
            for _ in range(8)
        ]
        # one asks, and the others have looked and wait
        until(lambda: provider.requests and len(waiting) == 7)
        free.set()
        answers = [future.result(timeout=30) for future in futures]
    assert {answer.revision for answer in answers} == {1} and len(provider.requests) <= 5
    for answer in answers:
        assert scorers.numbers(answer.chart) == scorers.L1 and not answer.debated and answer.why


def test_an_answer_for_which_nobody_waits_any_more_is_not_kept(tmp_path: Path) -> None:
    free = threading.Event()
    overlay = quick(tmp_path)
    held = hosted_table.keep_answer

    def slow(*words: Any, **more: Any) -> None:
        free.wait(20)
        held(*words, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hosted_table, "keep_answer", slow)
        answer = scorers.asked(overlay, scores=scorers.L1)
        assert scorers.numbers(answer.chart) == scorers.L1 and "no answer within" in answer.why
        free.set()
        while overlay.health()["busy"]:
            time.sleep(0.01)
    assert scorers.count(tmp_path, "journal") == 0
    unhurried = scorers.overlay(tmp_path)
    assert scorers.asked(unhurried, scores=scorers.L1).revision == 1


def test_an_answer_that_a_slow_disk_kept_too_late_says_so(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path)
    scorers.asked(overlay, scorers.bars(399))
    stored, free = threading.Event(), threading.Event()
    transaction = Database.transaction
    waited: list[bool] = []

    class Slow:
        """A transaction whose commit takes its time, once it has stored an answer."""

        def __init__(self, database: Database, *words: Any) -> None:
            self._context = transaction(database, *words)
            self._database = database

        def __enter__(self) -> None:
            self._context.__enter__()

        def __exit__(self, *error: Any) -> Any:  # noqa: PYI036 - as its own
            found = self._context.__exit__(*error)
            row = self._database.row("SELECT 1 FROM hosted WHERE revision = 1 AND state = 'final' "
                                      "AND torra_key LIKE '%17:30:00Z'")  # fmt: skip
            if row and not waited:
                stored.set()
                waited.append(free.wait(20))
            return found

    def slowly(database: Database, *words: Any) -> Slow:
        return Slow(database, *words)

    looked: list[float] = []

    def until_stored(deadline: float, _clock: Any) -> float:
        looked.append(deadline)
        if len(looked) == 1:  # the bars are read
            return 20.0
        assert stored.wait(20)  # the desk's answer: its time is up as soon as it is stored
        return 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "transaction", slowly)
        patch.setattr(overlay_calls, "_seconds_until", until_stored)
        answer = scorers.asked(overlay, scores=scorers.L1)
        assert not answer.debated and "no answer within" in answer.why
        free.set()
        while overlay.health()["busy"]:
            time.sleep(0.01)
    assert waited == [True]
    with closing(scorers.stored(tmp_path)) as database:
        record = database.tick_without_calls(answer.key)
        assert record is not None and record["hosted"]["late"] is True


def test_a_system_without_threads_gives_l1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlay = scorers.overlay(tmp_path)

    def none(_self: Any) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none)
        answer = scorers.asked(overlay, scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1 and "too many calls" in answer.why
    assert overlay.health()["busy"] == 0
    again = scorers.asked(overlay, scores=scorers.L1)
    assert again.debated, again.why


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells by /proc")
def test_a_killed_process_that_nobody_has_looked_after_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    place = processes.this_process().split("|", 1)[0]
    assert processes.lives(f"{place}|{child.pid}|")
    os.kill(child.pid, signal.SIGKILL)
    end = time.monotonic() + 20
    while processes.lives(f"{place}|{child.pid}|") and time.monotonic() < end:
        time.sleep(0.01)
    assert not processes.lives(f"{place}|{child.pid}|"), "before anybody waited for it"
    child.wait()


def test_an_outcome_is_told_in_time_or_not_at_all(tmp_path: Path, tries: Tries) -> None:
    key = scorers.asked(scorers.overlay(tmp_path), scores=scorers.L1).key
    overlay = quick(tmp_path)
    for attempt in tries():
        with attempt, locked(tmp_path / "home" / "torra.db"):
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                overlay.outcome(key, verdict="HOLD")
            assert time.monotonic() - began < DEADLINE + GRACE
    assert overlay.outcome(key, verdict="HOLD") in (True, False)


def test_a_profile_is_stored_once_for_a_stream(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    thirty = scorers.bars(900).resample("30min").agg(
        {"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"}
    )  # fmt: skip
    for size in range(300, 304):
        scorers.asked(overlay, scorers.bars(size))
        some = thirty.iloc[:size]
        overlay.deliberate("BTCUSD", "M30", some, as_of=scorers.closed_at(some, 30))
    assert scorers.count(tmp_path, "trading_config") == 2


def test_the_demo_does_not_take_the_home_of_a_scorer(tmp_path: Path) -> None:
    scorers.asked(scorers.overlay(tmp_path, strict=True))
    result = CliRunner().invoke(main, ["--home", str(tmp_path / "home"), "run", "--no-pages"])
    assert result.exit_code == 2, result.output
    assert "home of another program's scorer" in result.stderr
    assert scorers.count(tmp_path, "desk_run") == 0
