"""The recorded provider answers what was asked, as it was answered, and nothing else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import Completion, DebateContext, ModelUnavailable, Prompt, Request
from agents.debate import debate as debates
from agents.debate import replies
from agents.debate.debate import REASONS
from agents.debate.deliberation import Deliberation
from agents.texts import door
from agents.texts.fence import NONCE_PLACEHOLDER
from instance_database import Database
from scoring_rubric import request_hash
from tests.cases import cases
from tests.doubles.scripted import Scripted, context, debate, report, ruling, settings
from tests.worlds import stores
from tests.worlds.journals import Moody
from torra.clock import duration, iso, parse
from torra.providers.recorded import RecordedProvider
from torra.store.replay_queries import journal_history
from torra.tick.record import stored_deliberation

QUARTER = duration("M15")


def a_request(role: str = "technical", **changes: Any) -> Request:
    """What the desk asks in a role."""
    desk = Scripted()
    debate(desk)
    return replace(desk.asked(role)[0], **changes)


def row_of(request: Request, **changes: Any) -> dict[str, Any]:
    """The stored call of a request that was answered well."""
    return {
        "status": "ok",
        "model": "claude-haiku-5-5",
        "provider": "anthropic",
        "reply": json.dumps(report(request)),
        "input_tokens": 900,
        "output_tokens": 90,
        "cost_usd": 0.02,
        "request_hash": request_hash(request),
        "detail": "",
        "stop_reason": "end",
        "cached_tokens": 300,
    } | changes


def provider(*rows: Mapping[str, Any]) -> RecordedProvider:
    """One that knows the attempts of one request."""
    return RecordedProvider(lambda request: dict(enumerate(rows, 1)).get(request.attempt))


def failure(answers: RecordedProvider, request: Request) -> ModelUnavailable:
    error = answers.submit(request).exception(timeout=0)
    assert isinstance(error, ModelUnavailable)
    return error


# --- one request ----------------------------------------------------------------------------------


def test_an_answer_comes_back_as_it_was_and_costs_nothing() -> None:
    """Under another nonce, of another model and within other limits, too."""
    request = a_request("bull_researcher")
    assert request.nonce in request.user
    nonce = "0123456789abcdef01234567"
    other = replace(
        request,
        nonce=nonce,
        prompt=replace(request.prompt, user=request.user.replace(request.nonce, nonce)),
        model="m",
        limit_s=1.0,
        max_output_tokens=1,
    )
    # The placeholder is what a reply is stored with.
    reply = json.dumps(report(request, reasoning=f"As {NONCE_PLACEHOLDER} says."))
    answers = provider(row_of(request, reply=reply))
    for asked in (request, other):
        assert answers.submit(asked).result(timeout=0) == Completion(
            reply, "claude-haiku-5-5", "anthropic", 900, 90, 0.0, "end", 300, final=True
        )
    assert (answers.answered, answers.misses) == (2, {})


@cases(
    "changes",
    [
        {"prompt": Prompt("Another system text.", "", "report")},
        {"prompt": Prompt("", "Another prompt.", "report")},
        {"schema": {}},
        {"symbol": "EURUSD"},
        {"bar_time": "2021-12-01T11:00:00Z"},
        {"timeframe": "H1"},
        {"round": 2},
        {"attempt": 2},
        {"picture": b"png"},
        None,
    ],
)
def test_another_request_is_a_miss(changes: dict[str, Any] | None) -> None:
    """Of the last one no row is known."""
    request = a_request()
    answers = RecordedProvider(lambda _: None if changes is None else row_of(request))
    error = failure(answers, replace(request, **(changes or {})))
    assert (error.reason, error.again, error.billed) == ("miss", None, False)
    reason = "no row" if changes is None else "other request"
    assert (answers.answered, answers.misses) == (0, {reason: 1})


NOTHING = {"reply": "", "stop_reason": "", "provider": "", "detail": "429"}


@cases("status", sorted({*REASONS, "late"} - {"miss"}))
@cases("repeated", [False, True])
def test_a_failure_is_the_same_failure(status: str, repeated: bool) -> None:
    request, reason = a_request(), "timeout" if status == "late" else status
    later = [row_of(replace(request, attempt=2))] if repeated else []
    answers = provider(row_of(request, status=status, **NOTHING), *later)
    error = failure(answers, request)
    assert (error.reason, error.detail) == (reason, "429")
    assert error.again == (0.0 if repeated and reason != "timeout" else None)
    assert answers.answered == 1, "it is known, not missed"


def test_what_was_of_no_use_comes_back_as_it_came() -> None:
    """What is stored of a reply that was too long is cut and may be whole without its end."""
    request = a_request()
    again = row_of(replace(request, attempt=2))
    garbage = row_of(request, status="garbage", reply="}{", detail="JSONDecodeError")
    assert provider(garbage, again).submit(request).result(timeout=0).text == "}{"
    error = failure(provider(garbage), request)  # it was not asked again then
    assert (error.reason, error.again) == ("garbage", None)
    refused = row_of(request, status="refused", reply="I cannot", stop_reason="refusal")
    assert provider(refused).submit(request).result(timeout=0).stop_reason == "refusal"
    kept = json.dumps(report(request)).ljust(door.MAX_REPLY_CHARS - 17)
    assert door.load(kept, request.symbol)
    cut = provider(row_of(request, status="garbage", reply=kept), again)
    with pytest.raises(ModelUnavailable, match="garbage"):
        door.load(cut.submit(request).result(timeout=0).text, request.symbol)


def test_a_request_that_was_not_made_is_refused_and_no_miss() -> None:
    answers = provider({"status": "deadline", "unasked": True})
    error = failure(answers, a_request())
    assert (error.reason, error.again) == ("deadline", None)
    assert (answers.answered, answers.misses) == (0, {})


# --- a whole debate -------------------------------------------------------------------------------


def stored(database: Database, about: DebateContext, told: Deliberation) -> None:
    """Store a debate as a tick does."""
    close = parse(about.as_of)
    with database.transaction():
        stores.save(database, close, deliberation=stored_deliberation(told), instance="gold")
        database.write_calls(stores.key_of(close, instance="gold"), told.calls)


def again(
    database: Database, about: DebateContext, first: Deliberation
) -> tuple[RecordedProvider, Deliberation]:
    """Store a debate and hold it again from its journal, which knows every request."""
    stored(database, about, first)
    answers = RecordedProvider(journal_history(database, "gold"))
    second = debate(answers, about=about)
    assert not answers.misses
    return answers, second


def at_noon() -> DebateContext:
    return context(bar_time=iso(stores.NOON), as_of=iso(stores.NOON + QUARTER))


def outcome(told: Deliberation) -> dict[str, Any]:
    left = ("calls", "cost_usd", "elapsed_ms", "stages")
    whole = {name: value for name, value in told.as_json().items() if name not in left}
    return whole | {"scores": told.scores, "ungated": told.ungated, "veto": told.veto}


@pytest.fixture
def database(tmp_path: Path) -> Any:
    opened = stores.open_database(tmp_path)
    yield opened
    opened.close()


@pytest.mark.journey
def test_a_debate_ends_the_same_way_again(database: Database, scaled: Callable[..., int]) -> None:
    """Whatever its models did: three rounds, every failure, retries, the fallback."""
    config = settings(debate_rounds=3)
    for number in range(scaled(2000, 60)):
        close = stores.NOON + number * QUARTER
        features = {"technical.rsi14": 20.0 + number / 100}
        about = context(features=features, as_of=iso(close), bar_time=iso(close - QUARTER))
        first = debate(Moody(), about=about, config=config)
        stored(database, about, first)
        answers = RecordedProvider(journal_history(database, "gold"))
        second = debate(answers, about=replace(about, nonce="feed" * 6), config=config)
        assert not answers.misses, number
        assert outcome(second) == outcome(first), number
        assert second.cost_usd == 0.0
        assert [call.request_hash for call in second.calls] == [
            call.request_hash for call in first.calls
        ]
        assert [call.status for call in second.calls] == [call.status for call in first.calls]


@pytest.mark.parametrize("stage", ["analysts", "research", "gate", "fallback", "none"])
def test_a_stage_without_leave_to_spend_asks_nobody_again(database: Database, stage: str) -> None:
    about = at_noon()
    names = ("analysts", "research", "fallback") if stage == "fallback" else (stage,)
    first = debate(Moody(), about=about, reserve=lambda name, _: name not in names)
    answers, second = again(database, about, first)
    assert answers.answered == len(first.calls)
    assert outcome(second) == outcome(first)


def test_an_agent_that_was_left_behind_is_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer came in time and was parsed too late: it was not heard then, nor is it now."""
    over = threading.Event()
    real = replies.read

    def read(shape: Any, reply: Any, role: Any, features: Any) -> Any:
        if role.id == "technical":
            over.wait()
        return real(shape, reply, role, features)

    def gate(request: Request) -> dict[str, Any]:
        over.set()
        until = time.monotonic() + 5.0
        while debates.abandoned() and time.monotonic() < until:
            time.sleep(0.005)
        return ruling(request)

    about = at_noon()
    with monkeypatch.context() as patch:
        patch.setattr(replies, "read", read)
        first = debate(Scripted({"risk_gate": gate}), seconds=1.0, about=about)
    assert first.failures == {"technical": "timeout"} and not debates.abandoned()
    _, second = again(database, about, first)
    late = {"flags": None}  # how late an answer was is another matter
    assert outcome(second) | late == outcome(first) | late


def test_an_attempt_for_which_there_was_no_time_is_not_made(database: Database) -> None:
    about = at_noon()
    first = debate(Scripted({"technical": "}{"}), about=about)
    calls = tuple(c for c in first.calls if (c.role_id, c.attempt) != ("technical", 2))
    assert len(calls) == len(first.calls) - 1
    _, second = again(database, about, replace(first, calls=calls))
    assert outcome(second) == outcome(first)
    assert [c.attempt for c in second.calls if c.role_id == "technical"] == [1]


# --- the journal's side ---------------------------------------------------------------------------


def test_a_history_knows_one_instance_and_ticks_that_are_there(database: Database) -> None:
    about = at_noon()
    stored(database, about, debate(Moody(), about=about))
    request = a_request(bar_time=iso(stores.NOON))
    assert journal_history(database, "gold")(request) is not None
    assert journal_history(database, "silver")(request) is None
    stranger = replace(request, role=replace(request.role, id="stranger"))
    for other in (stranger, replace(request, bar_time=iso(stores.NOON + QUARTER))):
        assert journal_history(database, "gold")(other) is None
