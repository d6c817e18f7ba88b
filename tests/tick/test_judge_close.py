"""A judge may ask for a close: a person gets one proposal, and only a yes sends it, once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.contracts import AgentReport
from instance_database import Database
from tests.cases import cases
from tests.tick.test_approval import ATR, GOLD, PRICE, approve, at, decision, hold
from tests.worlds.stores import NOON, key_of, open_database
from torra.clock import Simulated
from torra.config import Profile, validate
from torra.errors import ConfigError
from torra.store.trade.rows import ProposalRow
from torra.tick import approval
from torra.tick import decision as deciding

AUTO = validate(Profile, {"execution": "auto", "on_opposite": "hold"}, "a test")
WHY = "the short squeeze is over"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path)
    database.apply_profile(GOLD.id, AUTO.model_dump_json(), AUTO.digest())
    yield database
    database.close()


def report(agent: str = "judge", close: bool = True) -> AgentReport:
    return AgentReport(agent, adjustments={}, close=close, claim=WHY)


def ask(
    database: Database,
    *reports: AgentReport,
    profile: Profile = AUTO,
    drafts: Any = (),
    state: str = "ACTIVE",
    as_of: datetime = NOON,
    timeframe: str = "M15",
    late: timedelta = timedelta(0),
) -> list[ProposalRow]:
    """Return the proposals that wait after a tick on which these reports count."""
    key = key_of(as_of, timeframe, GOLD.id)
    inputs: Any = SimpleNamespace(
        instance=GOLD, profile=profile, as_of=as_of, key=key, timeframe=timeframe
    )
    debated: Any = SimpleNamespace(counted=SimpleNamespace(reports=reports or (report(),)))
    now = as_of + late
    edges: Any = SimpleNamespace(
        database=database, trading_state=lambda: state, clock=Simulated(now)
    )
    deciding._ask_to_close(inputs, debated, decision(), drafts, edges, now)
    return database.proposals()


def test_a_person_gets_one_proposal_with_the_judges_reason(database: Database) -> None:
    opened = hold(database)
    (row,) = ask(database)
    (draft,) = row.orders
    assert (row.action, row.verdict, draft.kind) == ("CLOSE", "SELL", "close")
    assert draft.asked_by is not None
    assert (draft.asked_by.agent, draft.asked_by.why) == ("judge", WHY)
    (order,) = approval.as_json(row, database)["drafts"]
    assert order["asked_by"] == {"agent": "judge", "why": WHY}
    assert row.expires == "2026-02-13T12:15:00Z"
    assert [one["kind"] for one in database.signals()] == ["open"], "nothing is sent by itself"
    assert ask(database, timeframe="H1") == [row], "one proposal of a position is enough"
    assert row.asked_by == ("judge", WHY)
    assert approve(database, row.sid, profile=AUTO).state == "APPROVED"
    (close, _) = database.signals()
    assert (close["kind"], close["side"], close["closes"]) == ("close", "SELL", opened)
    with pytest.raises(ConfigError, match="is APPROVED"):
        approve(database, row.sid, profile=AUTO)
    assert ask(database, as_of=NOON + timedelta(minutes=15)) == [], "it is being closed"
    assert len(database.signals()) == 2


@cases("opposite", ["close", "reverse", "hold"])
def test_a_close_that_was_asked_for_only_closes(tmp_path: Path, opposite: str) -> None:
    database = open_database(tmp_path / opposite)
    profile = AUTO.model_copy(update={"on_opposite": opposite})
    hold(database)
    (row,) = ask(database, profile=profile)
    found = approval.preview(database, row.sid, at(profile=profile))
    assert found.passes and [one.kind for one in found.action.drafts] == ["close"]
    assert approve(database, row.sid, profile=profile).state == "APPROVED"


ASKS: dict[str, tuple[int, tuple[AgentReport, ...], dict[str, Any]]] = {
    "execution off": (0, (), {"profile": AUTO.model_copy(update={"execution": "off"})}),
    "closes off": (
        0, (), {"profile": validate(Profile, {"agents": {"judge_close": "off"}}, "a test")},
    ),
    "halted": (0, (), {"state": "HALTED"}),
    "reducing": (1, (), {"state": "REDUCING"}),
    "closed by the desk": (0, (), {"drafts": (SimpleNamespace(kind="close"),)}),
    "opened by this close": (0, (), {"as_of": NOON - timedelta(hours=2)}),
    "too late for anybody to approve": (0, (), {"late": timedelta(minutes=15)}),
    "a judge that does not ask": (0, (report(close=False),), {}),
    "others that ask": (0, (report("liquidity"), report("risk_gate")), {}),
}  # fmt: skip
"""How many proposals wait after a tick, by its reports and what else it is."""


@cases("kind", ASKS)
def test_a_close_is_proposed_where_a_judge_asks_and_it_may_be(tmp_path: Path, kind: str) -> None:
    waits, reports, how = ASKS[kind]
    database = open_database(tmp_path / kind)
    hold(database)
    assert len(ask(database, *reports, **how)) == waits
    database.close()


def test_without_a_position_there_is_nothing_to_close(database: Database) -> None:
    assert ask(database) == []


def test_a_position_that_is_gone_denies_it_and_opens_nothing(database: Database) -> None:
    opened = hold(database)
    (row,) = ask(database)
    database.close_position(
        opened, price=PRICE - 2 * ATR, time=NOON, profit=-1.0, r_multiple=-1.0, reason="STOPPED"
    )
    done = approve(database, row.sid, profile=AUTO)
    assert (done.state, done.reason) == ("DENIED", approval.POSITION_CHANGED)
    assert [one["kind"] for one in database.signals()] == ["open"]


def test_it_expires_at_the_next_close_and_may_be_asked_for_again(database: Database) -> None:
    hold(database)
    (first,) = ask(database)
    later = NOON + timedelta(minutes=15)
    waiting = ask(database, as_of=later)
    assert {row.sid for row in waiting} > {first.sid}
    done = approve(database, first.sid, profile=AUTO, now=later)
    assert (done.state, done.reason) == ("EXPIRED", "SIGNAL_EXPIRED")
