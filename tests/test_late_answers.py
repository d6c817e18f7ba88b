"""A late answer is recorded with what it cost, before its tick is stored or after; never used."""

from __future__ import annotations

import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import VECTORS, Completion, Request
from tests import desks, scripted
from torra.config import Profile, validate

WAIT = 5.0


class Slow(scripted.Scripted):
    """Honest, but the technical analyst answers when it is let: `at_gate`, when that is asked."""

    def __init__(self) -> None:
        super().__init__({"risk_gate": scripted.honest})
        self.held: list[tuple[Request, Future[Completion]]] = []
        self.at_gate = False

    def submit(self, request: Request) -> Future[Completion]:
        if self.at_gate and request.role.id == "risk_gate":
            self.answer()
        if request.role.id != "technical":
            return super().submit(request)
        self.requests.append(request)
        future: Future[Completion] = Future()
        self.held.append((request, future))
        return future

    def answer(self) -> None:
        for request, future in self.held:
            future.set_result(scripted.completion(scripted.report(request, value=0.3)))


@pytest.fixture
def desk(tmp_path: Path):
    voice = Slow()
    profile = validate(Profile, {"agents": {"timeout_seconds": 1.5}}, "a test")
    made = desks.open_desk(tmp_path, (desks.EUR,), profile=profile, provider=voice)
    desks.take_lease(made)
    yield made, voice
    made.database.close()


def call_of(desk: Any, role: str) -> dict[str, Any]:
    record = desk.database.latest_tick("EURUSD", "H1")
    (call,) = [call for call in record["calls"] if call["role_id"] == role]
    return call


def test_an_answer_after_the_tick_is_added_to_its_call(desk) -> None:
    made, voice = desk
    made.wake("EURUSD")
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


def test_an_answer_before_the_end_of_the_debate_is_late_in_its_record(desk) -> None:
    made, voice = desk
    voice.at_gate = True  # the analysts' share is over, the debate is not
    voice.script["risk_gate"] = [scripted.Slow(0.2, scripted.honest)]
    made.wake("EURUSD")
    assert call_of(made, "technical")["status"] == "late"
    flags = made.database.latest_tick("EURUSD", "H1")["deliberation"]["flags"]
    assert "late:technical" in flags


def test_a_late_answer_may_linger_until_the_deadline_and_no_longer(desk) -> None:
    made, voice = desk
    made.wake("EURUSD")
    (request, _) = voice.held[0]
    assert request.linger_s > 0
    assert request.limit_s + request.linger_s == pytest.approx(1.5, abs=0.4)


def test_answers_in_time_are_not_written_twice(desk, monkeypatch) -> None:
    made, voice = desk
    voice.script["risk_gate"] = [scripted.Slow(0.2, scripted.honest)]
    monkeypatch.setattr(made.database, "record_late", lambda *_: pytest.fail("written"))
    made.wake("EURUSD")
    assert call_of(made, "risk_gate")["status"] == "ok"
