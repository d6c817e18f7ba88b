"""The purse: booked before, settled after, kept when nobody knows."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from agent_config import MAX_PROMPT_BYTES, OUTPUT_TOKENS
from agents.contracts import Completion, ModelUnavailable, Prompt, Request
from instance_database import Database
from tests.doubles.scripted import NEVER, Raises, Scripted, settings
from tests.worlds.purses import (
    KEY,
    PAID,
    PRICES,
    WORST,
    a_deliberation,
    a_request,
    bounds_seen,
    debated,
    paid_elsewhere,
    purse_of,
    rows,
    run,
    states,
)
from tests.worlds.stores import Hand, open_database
from torra.errors import StoreUnavailable
from torra.tick.spending import LEAST_WAIT, RESERVE_SHARE, Purse, SpendingAccount

# --- the purse ------------------------------------------------------------------------------------


def test_a_stage_above_the_ceiling_makes_no_call(database: Database, hand: Hand) -> None:
    provider = Scripted()
    spoken = run(database, provider, hand, max_api_cost_per_hour=0.0001)
    assert provider.requests == [] and rows(database) == []
    assert set(spoken.failures.values()) == {"budget"} and spoken.source_type == "L1_ONLY"


def test_a_call_without_an_answer_keeps_its_worst_case(database: Database, hand: Hand) -> None:
    spoken = run(database, Scripted({"technical": NEVER}), hand, seconds=0.6)
    (kept,) = [row for row in rows(database) if row["state"] == "kept"]
    assert kept["role"] == "technical" and kept["usd"] == WORST
    (call,) = [call for call in spoken.calls if call.role_id == "technical"]
    assert call.cost_usd == WORST and spoken.cost_usd == pytest.approx(WORST + 0.003)
    assert kept["until"] > "2026-02-13T12:01:00Z"


@pytest.mark.parametrize(
    ("error", "state", "usd"),
    [
        (ModelUnavailable("error", "429", again=None, billed=False), "settled", 0.0),
        (ModelUnavailable("error", "reset", again=None), "kept", None),
        (OSError("gone"), "kept", None),
        (Raises(ModelUnavailable("blocked", billed=False)), "settled", 0.0),
        (Raises(OSError("gone")), "kept", None),
        (Completion("{}", "m", "anthropic", cost_usd=float("nan")), "kept", None),
        (Completion("{}", "m", "anthropic"), "kept", None),
        ("not a completion", "settled", 0.001),
    ],
)
def test_what_a_failure_leaves_in_the_ledger(
    database: Database, hand: Hand, error: Any, state: str, usd: float | None
) -> None:
    run(database, Scripted({"technical": error}), hand)
    found = [row for row in rows(database) if row["role"] == "technical"]
    assert {row["state"] for row in found} == {state}
    assert all(row["usd"] == (WORST if usd is None else usd) for row in found)


def late_answer(
    database: Database, hand: Hand, late: dict[int, Any], seconds: float = 5.0
) -> tuple[Future[Completion], Purse]:
    """A purse that is closed while its one call is under way, and that call's future."""
    provider = Scripted({"technical": NEVER})
    held: Future[Completion] = Future()
    provider._play = lambda entry, request: held  # type: ignore[method-assign]
    purse = purse_of(database, provider, hand, PAID.agents, seconds, late)
    bounds = bounds_seen("technical")
    assert purse.reserve("analysts", bounds)
    purse.submit(a_request("technical"))
    purse.settled(a_deliberation())
    return held, purse


@pytest.mark.parametrize("ceiling", [2.0, 1e-9], ids=["granted", "refused"])
def test_a_late_answer_is_settled_with_the_next_stage_of_its_profile(
    database: Database, hand: Hand, ceiling: float
) -> None:
    late: dict[int, Any] = {}
    held, _ = late_answer(database, hand, late)
    assert states(database)["technical", 1, 1] == "kept"
    held.set_result(Completion("{}", "m", "anthropic", 10, 10, 0.0005))
    assert states(database)["technical", 1, 1] == "kept", "nobody waits for a database here"
    agents = PAID.agents.model_copy(update={"max_api_cost_per_hour": ceiling})
    other = purse_of(database, Scripted(), hand, agents, late=late)
    assert other.reserve("analysts", bounds_seen()) == (ceiling > 1)
    (row,) = [row for row in rows(database) if row["state"] == "settled"]
    assert (row["role"], row["usd"]) == ("technical", 0.0005)
    assert not late


def test_a_late_answer_touches_no_database_on_the_thread_that_brings_it(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That thread is the event loop of every desk."""
    held, _ = late_answer(database, hand, {})
    monkeypatch.setattr(Database, "transaction", lambda *_: pytest.fail("written"))
    monkeypatch.setattr(Database, "connection", lambda *_: pytest.fail("read"))
    held.set_result(Completion("{}", "m", "anthropic", 10, 10, 0.0005))


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": 3},
        {"round": 2},
        {"model": "claude-opus-5-5"},
        {"max_output_tokens": OUTPUT_TOKENS["quick"] + 1},
        {"prompt": Prompt("", "x" * (MAX_PROMPT_BYTES + 1), "report")},
        {"picture": b"png"},
    ],
)
def test_a_request_that_no_reservation_covers_is_refused(
    database: Database, hand: Hand, changes: dict[str, Any]
) -> None:
    provider = Scripted()
    purse = purse_of(database, provider, hand, PAID.agents)
    bounds = bounds_seen("technical")
    with pytest.raises(ModelUnavailable, match="budget"):
        purse.submit(a_request("technical"))
    assert purse.reserve("analysts", bounds)
    with pytest.raises(ModelUnavailable, match="budget") as caught:
        purse.submit(a_request("technical", **changes))
    assert caught.value.again is None and not caught.value.billed
    assert provider.requests == []
    provider.script["technical"] = [NEVER]
    purse.submit(a_request("technical"))
    with pytest.raises(ModelUnavailable, match="budget"):
        purse.submit(a_request("technical"))
    assert len(provider.requests) == 1


@pytest.mark.parametrize("at", ["reserve", "commit"])
def test_without_the_ledger_nobody_is_asked(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("disk I/O error")

    monkeypatch.setattr(database, "transaction" if at == "commit" else "book", broken)
    provider = Scripted()
    spoken = run(database, provider, hand)
    assert provider.requests == [] and "reserve_failed:analysts" in spoken.flags
    monkeypatch.undo()
    assert rows(database) == []


def test_no_write_waits_longer_than_the_tick_lasts(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    begin = database.transaction
    monkeypatch.setattr(database, "transaction", lambda wait=0.0: waits.append(wait) or begin(wait))
    account = SpendingAccount(database, PRICES, "mine", paid_elsewhere, hand)
    clock = iter((0.0, 9.6, 9.99))
    purse = account.purse(
        KEY, PAID.agents, Scripted({"technical": NEVER}).submit,
        monotonic=lambda: next(clock), deadline=10.0,
    )  # fmt: skip
    for _ in range(2):
        assert purse.reserve("analysts", bounds_seen("technical"))
    purse.submit(a_request("technical"))
    purse.settled(a_deliberation())
    booked, booked_late, settled = (wait for wait in waits if wait)
    assert booked == RESERVE_SHARE * 10.0 and booked_late == pytest.approx(RESERVE_SHARE * 0.4)
    assert settled == LEAST_WAIT, "what is not settled stays at its worst"


def test_settling_may_fail_and_the_worst_case_stands(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise StoreUnavailable("disk I/O error")

    purse = purse_of(database, Scripted(), hand, PAID.agents)
    bounds = bounds_seen()
    assert purse.reserve("analysts", bounds[:1])
    purse.submit(a_request("technical"))
    monkeypatch.setattr(database, "settle", broken)
    spoken = purse.settled(a_deliberation())
    assert "ledger_unsettled" in spoken.flags
    assert set(states(database).values()) == {"reserved"}


def test_what_costs_nothing_never_touches_the_database(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("transaction", "connection"):
        monkeypatch.setattr(database, name, None)
    for provider in ("rules", "openai_compatible"):
        config = settings(provider=provider)
        purse = purse_of(
            database, Scripted(), hand, config.agents, local="openai_compatible".__eq__
        )
        spoken = debated(config, purse.submit, purse.reserve)
        assert purse.settled(spoken) is spoken and len(spoken.calls) == 4


def test_a_tick_takes_one_transaction_a_stage_and_one_at_the_end(
    database: Database, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    turn = database._turn
    monkeypatch.setattr(database, "_turn", lambda *a: begun.append("BEGIN") or turn(*a))
    run(database, Scripted(), hand)
    assert len(begun) == 4  # analysts, research, gate, the end


def test_an_answer_of_the_other_vendor_is_booked_as_its_own(database: Database, hand: Hand) -> None:
    other = Completion("{}", "gemini-3.8-flash", "google", 10, 10, 0.002)
    run(database, Scripted({"risk_gate": other}), hand, fallback_models=("google",))
    routes = {
        (row["provider"], row["model"]) for row in rows(database) if row["role"] == "risk_gate"
    }
    assert routes == {("google", "gemini-3.8-flash")}


def test_an_answer_whose_callback_has_not_run_yet_is_settled(
    database: Database, hand: Hand
) -> None:
    """A future wakes whoever waits for it before it calls back."""

    class Dawdling(Future[Completion]):
        def add_done_callback(self, fn: Any) -> None:
            pass

    def submit(request: Request) -> Future[Completion]:
        future = Dawdling()
        future.set_result(Completion("{}", "m", "anthropic", 10, 10, 0.002))
        return future

    provider = Scripted()
    provider.submit = submit  # type: ignore[method-assign]
    purse = purse_of(database, provider, hand, PAID.agents)
    assert purse.reserve("analysts", bounds_seen()[:1])
    purse.submit(a_request("technical"))
    purse.settled(a_deliberation())
    assert [(row["state"], row["usd"]) for row in rows(database)] == [("settled", 0.002)]


def test_ticks_that_reserve_at_once_share_one_ceiling(
    database: Database, hand: Hand, tmp_path: Path
) -> None:
    """Each through a connection of its own, as two processes would."""
    bounds = bounds_seen("technical")
    one = 2 * WORST
    agents = PAID.agents.model_copy(update={"max_api_cost_per_hour": 3.5 * one})
    start = threading.Barrier(8)
    granted: list[bool] = []

    def reserve() -> None:
        own = open_database(tmp_path, hand)
        purse = purse_of(own, Scripted(), hand, agents)
        start.wait()
        granted.append(purse.reserve("analysts", bounds))
        own.close()

    threads = [threading.Thread(target=reserve) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(granted) == [False] * 5 + [True] * 3
