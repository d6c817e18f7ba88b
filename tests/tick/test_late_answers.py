"""A late answer is recorded with what it cost, before its tick is stored or after; never used."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import VECTORS, Completion, Request
from tests.doubles import scripted
from tests.tries import Tries
from tests.worlds import desks
from torra.config import Profile, validate

WAIT = 5.0
TICK = 3.0


class Slow(scripted.Scripted):
    """Honest, but the technical analyst answers when it is let: `at_gate`, when that is asked."""

    def __init__(self) -> None:
        super().__init__({"risk_gate": scripted.honest})
        self.held: list[tuple[Request, Future[Completion]]] = []
        self.asked_at = 0.0
        self.at_gate = False

    def submit(self, request: Request) -> Future[Completion]:
        if self.at_gate and request.role.id == "risk_gate":
            self.answer()
        if request.role.id != "technical":
            return super().submit(request)
        self.asked_at = time.monotonic()
        self.requests.append(request)
        future: Future[Completion] = Future()
        self.held.append((request, future))
        return future

    def answer(self) -> None:
        for request, future in self.held:
            future.set_result(scripted.completion(scripted.report(request, value=0.3)))


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Any, Slow]]:
    """A desk whose ticks end after 3 s, and its provider."""
    voice = Slow()
    profile = validate(Profile, {"agents": {"timeout_seconds": TICK}}, "a test")
    made = desks.working_desk(folder, (desks.EUR,), profile=profile, provider=voice)
    try:
        yield made, voice
    finally:
        made.database.close()


def call_of(desk: Any, role: str) -> dict[str, Any]:
    record = desk.database.latest_tick("EURUSD", "H1")
    (call,) = [call for call in record["calls"] if call["role_id"] == role]
    return call


def test_an_answer_after_the_tick_is_added_to_its_call(tmp_path: Path, tries: Tries) -> None:
    for attempt in tries():
        with opened(attempt.folder(tmp_path)) as (made, voice):
            made.wake("EURUSD")
            if voice.held:
                check_added(made, voice)
        with attempt:
            assert voice.held, "nobody was asked in time"


def check_added(made: Any, voice: Slow) -> None:
    before = made.database.latest_tick("EURUSD", "H1")
    assert call_of(made, "technical")["status"] == "timeout"
    voice.answer()
    until = time.monotonic() + WAIT
    while call_of(made, "technical")["status"] == "timeout" and time.monotonic() < until:
        time.sleep(0.02)
    call = call_of(made, "technical")
    assert (call["status"], call["cost_usd"]) == ("late", scripted.COST)
    assert '"confidence": "high"' in call["reply"]
    assert call["elapsed_ms"] >= 1000 * voice.held[0][0].limit_s
    after = made.database.latest_tick("EURUSD", "H1")
    assert {v: after["scores"][v] for v in VECTORS} == {v: before["scores"][v] for v in VECTORS}
    assert after["source_type"] == "AGENT_PARTIAL"


def test_an_answer_before_the_end_of_the_debate_is_late_in_its_record(
    tmp_path: Path, tries: Tries
) -> None:
    for attempt in tries():
        with opened(attempt.folder(tmp_path)) as (made, voice), attempt:
            voice.at_gate = True  # the analysts' share is over, the debate is not
            voice.script["risk_gate"] = [scripted.Slow(0.2, scripted.honest)]
            made.wake("EURUSD")
            assert call_of(made, "technical")["status"] == "late"
            flags = made.database.latest_tick("EURUSD", "H1")["deliberation"]["flags"]
            assert "late:technical" in flags


def test_a_late_answer_may_linger_until_the_deadline_and_no_longer(
    tmp_path: Path, tries: Tries
) -> None:
    """The deadline is that of a tick that began between `begin` and the question."""
    for attempt in tries():
        with opened(attempt.folder(tmp_path)) as (made, voice):
            begin = time.monotonic()
            made.wake("EURUSD")
        with attempt:
            assert voice.held, "nobody was asked in time"
    (request, _) = voice.held[0]
    assert request.linger_s > 0
    until_deadline = request.limit_s + request.linger_s
    assert TICK - (voice.asked_at - begin) <= until_deadline <= TICK


def test_answers_in_time_are_not_written_twice(
    tmp_path: Path, tries: Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    for attempt in tries():
        with opened(attempt.folder(tmp_path)) as (made, voice), attempt:
            written: list[Any] = []
            voice.script["risk_gate"] = [scripted.Slow(0.2, scripted.honest)]
            monkeypatch.setattr(made.database, "record_late", lambda *_, to=written: to.append(_))
            made.wake("EURUSD")
            assert call_of(made, "risk_gate")["status"] == "ok"
            assert not written
