"""The trader is asked where an opening would stand, and only there; its answer only takes away."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_config import LEAST_CONSULT_SECONDS, AgentSettings
from agents.contracts import VECTORS, ModelUnavailable, Request
from instance_database import Database, TickKey
from tests.conftest import Scale
from tests.doubles import scripted
from tests.tries import Tries
from tests.worlds import desks
from torra.clock import duration
from torra.config import Instance, Profile
from torra.desk.schedule import Desk
from torra.providers.prices import PriceList
from torra.store import replay_queries
from torra.tick.degradation import consulting_tiers, tick_worst_case
from torra.tick.marks import UNFORESEEN
from torra.tick.thesis import Foreseen, tier_of
from torra.verdict import call_policy
from torra.verdict.order_levels import Levels
from torra.verdict.risk_engine import OpenSide

ALONE = Instance(symbol="BTCUSD", timeframes=("M15",))
FORESEEN = {"GATE_VETO", "GATE_CANNOT_OPEN", "SIZE_ZERO", "STOP_TOO_CLOSE", "BAD_NUMBER"}
"""What keeps an opening from standing that is known before the trader is asked."""

LEVELS = Levels(100.0, 98.0, 104.0, 1.0)

DECIDED = ("verdict", "action", "reason", "denied", "scores", "consensus", "gate", "low", "high")


def firm(**changes: Any) -> Profile:
    """A profile that opens and closes often."""
    agents = {"mode": "firm", "influence": "full", "timeout_seconds": 60.0}
    return desks.eager_profile(agents, **changes)


def wild(request: Request) -> dict[str, Any]:
    """An answer that is any, by chance, but the same to the same question."""
    chance = random.Random(f"{request.role.id}{request.bar_time}{request.timeframe}")
    told = scripted.honest(request)
    if request.role.kind == "gate":
        return told | {"multiplier": chance.random(), "veto": chance.random() < 0.2}
    if request.role.kind == "arbiter":
        sure = chance.choice(("high", "high", "medium", "low"))
        return told | {"winner": chance.choice(("LONG", "SHORT", "NONE")), "confidence": sure}
    if request.role.kind != "trader":
        moves = {vector: chance.uniform(-0.4, 0.4) for vector in VECTORS}
        return told | {"adjustments": moves, "confidence": chance.choice(("high", "high", "low"))}
    return told


def agreeing(request: Request) -> dict[str, Any]:
    """An answer that pushes where L1 leans, surely."""
    told = scripted.honest(request)
    up = sum(request.scores.values()) > 0
    if request.role.kind == "arbiter":
        return told | {"winner": "LONG" if up else "SHORT"}
    if request.role.kind in ("gate", "trader"):
        return told
    return told | {"adjustments": dict.fromkeys(VECTORS, 0.1 if up else -0.1)}


def answering(make: Callable[[Request], Any], **own: Any) -> scripted.Scripted:
    desk = AgentSettings(mode="firm")
    return scripted.Scripted(dict.fromkeys((*desk.desk(), "trader"), make) | own)


Run = Callable[..., list[dict[str, Any]]]


def firm_desk(
    folder: Path, provider: Any, instance: Instance = desks.BTC, profile: Profile | None = None
) -> Desk:
    return desks.working_desk(
        folder, (instance,), profile=profile or firm(), provider=provider,
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """What runs a desk over some closes and returns the records of its ticks, the first first."""
    folders = itertools.count()

    def run_one(
        provider: Any, steps: int = 1, profile: Profile | None = None, instance: Instance = ALONE
    ) -> list[dict[str, Any]]:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        desk = firm_desk(folder, provider, instance, profile)
        desks.step(desk, steps)
        found = [
            desk.database.tick_without_calls(key)
            for key in replay_queries.journalled(desk.database, "BTCUSD")
        ]
        return [dict(record) for record in found if record is not None]

    return run_one


def asked(record: dict[str, Any]) -> dict[str, Any]:
    return dict(record["deliberation"].get("consulted") or {})


def opened(record: dict[str, Any]) -> list[str]:
    drafts = (*record["signals"], *record["proposed"])
    return [draft["side"] for draft in drafts if draft["kind"] == "open"]


def may_open(record: dict[str, Any]) -> bool:
    """Tell whether an opening stood, as far as it could be known before the trader was asked."""
    wanted = bool(opened(record)) or bool(record["denied"])
    return wanted and not FORESEEN & set(record["denied"]) and record["verdict"] != "HOLD"


# --- when it is asked -----------------------------------------------------------------------------


def test_it_is_asked_exactly_where_an_opening_would_stand(run: Run, scaled: Scale) -> None:
    """What is foreseen with the debate's scores is what the store then finds."""
    records = run(answering(wild), scaled(600))
    for record in records:
        assert bool(asked(record)) == may_open(record), record["bar_time"]
        assert UNFORESEEN not in record["flags"]
        if asked(record):
            assert asked(record)["side"] == record["verdict"]
            assert asked(record)["conviction"] == pytest.approx(
                record["deliberation"]["panel"][record["verdict"].lower()]["conviction"]
            )
    assert any(map(asked, records)) and not all(map(asked, records))


@pytest.mark.journey
def test_a_shared_close_is_foreseen_by_the_state_before_it(run: Run, scaled: Scale) -> None:
    """What its elder did meanwhile it did not see: an opening that came of it has no thesis."""
    provider = answering(wild)
    records = run(provider, scaled(400, least=16), instance=desks.BTC)
    for record in records:
        of_the_side = asked(record).get("side") in opened(record)
        assert (UNFORESEEN in record["flags"]) == (bool(opened(record)) and not of_the_side)
        assert set(record["company"]) == {"held", "latched"}


@pytest.mark.parametrize(
    "changes",
    [
        {"on_opposite": "close"},
        {"on_opposite": "reverse"},
        # an elder of which nobody is asked has frees a latch all the same
        {"thresholds": {"buy": 0.2, "sell": 0.2}, "agents": {"call_policy": "pivotal"}},
    ],
    ids=["close", "reverse", "pivotal"],
)
def test_what_a_death_parts_from_its_close_foresees_as_its_close_did(
    changes: dict[str, Any], tmp_path: Path, scaled: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of its close is stored by then, and whatever position and latches came of that."""
    foreseen: dict[TickKey, Any] = {}
    done: list[TickKey] = []
    again: list[tuple[Any, Any]] = []
    moved: list[TickKey] = []
    company, finish = Database.company, Database.finish_tick

    def noted(database: Database, key: TickKey, *told: Any) -> Any:
        foreseen[key] = company(database, key, *told)
        return foreseen[key]

    def finished(database: Database, key: TickKey) -> None:
        finish(database, key)
        done.append(key)
        for other, then in foreseen.items():
            if other in done or other.close_time != key.close_time:
                continue
            now = company(database, other, other.close_time, desks.BTC.timeframes, {})
            again.append((now, then))
            position, latches = database.position(other.instance), database.latches(other.instance)
            held = position and OpenSide(position.side, position.state)
            moved.extend([other] if (held, latches) != (then.position, then.latched) else [])

    monkeypatch.setattr(Database, "company", noted)
    monkeypatch.setattr(Database, "finish_tick", finished)
    desk = firm_desk(tmp_path, answering(wild), profile=firm(**changes))
    desks.step(desk, scaled(400, least=32))
    assert [pair for pair in again if pair[0] != pair[1]] == []
    assert moved, "no tick left another position or another latch behind for the rest of its close"


def test_what_ended_while_the_desk_was_down_is_held_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop that was hit meanwhile is no doing of the elder: the trader is asked by what is."""
    looked: list[tuple[Any, Any]] = []
    finish = Database.finish_tick

    def finished(database: Database, key: TickKey) -> None:
        finish(database, key)
        position = database.position(key.instance)
        quiet = position is not None and not database.record(key.text)["signals"]
        if key.timeframe != "H1" or not quiet or position.state != "FILLED":
            return
        other = TickKey(key.instance, "M15", key.close_time - duration("M15"))
        moment = (other, other.close_time, desks.BTC.timeframes)
        before = database.company(*moment, {})
        database.close_position(
            position.signal_id, price=position.stop, time=key.close_time, profit=-1.0,
            r_multiple=-1.0, reason="STOPPED",
        )  # fmt: skip
        looked.append((before, database.company(*moment, {})))

    monkeypatch.setattr(Database, "finish_tick", finished)
    desk = firm_desk(tmp_path, answering(agreeing))
    desks.step(desk, 40)
    assert looked
    for before, after in looked:
        assert before.position.state == "FILLED" and after == before._replace(position=None)


def test_an_opening_of_no_size_is_nothing_to_ask_about(run: Run) -> None:
    nearly_shut = {**scripted.ruling(), "symbol": "BTCUSD", "multiplier": 0.0001}
    provider = answering(agreeing, risk_gate=nearly_shut)
    (record,) = run(provider, 1)
    assert record["denied"] == ["SIZE_ZERO"] and not asked(record)
    assert not provider.asked("trader")


def test_a_desk_that_trades_nothing_asks_no_trader(run: Run) -> None:
    provider = answering(agreeing)
    records = run(provider, 3, firm(execution="off"))
    assert not provider.asked("trader") and not any(map(asked, records))


# --- what its answer does -------------------------------------------------------------------------


def declining(request: Request) -> dict[str, Any]:
    return scripted.thesis(request, decline=True, reason_code="WEAK_CASE")


def test_a_decline_takes_the_opening_away_and_latches_on_its_side(run: Run) -> None:
    first, *later = run(answering(agreeing, trader=declining), 4)
    side = first["verdict"]
    assert (first["action"], first["reason"]) == ("HOLD", "TRADER_DECLINED")
    assert asked(first)["report"]["declined"] and not opened(first)
    for record in later:
        if record["verdict"] != side:
            break
        assert record["company"]["latched"] == [side]
        assert record["reason"] == "GATE_VETO" and not asked(record), "a latch needs no question"


def test_a_decline_of_a_desk_that_looks_on_takes_nothing_away(run: Run) -> None:
    shadow = firm(agents={"influence": "shadow"})
    (told,) = run(answering(agreeing, trader=declining), 1, shadow)
    (plain,) = run(answering(agreeing), 1, shadow)
    assert asked(told)["report"]["declined"] and opened(told) == opened(plain) != []
    assert all(told[name] == plain[name] for name in DECIDED)


@pytest.mark.journey
@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (ModelUnavailable("refused"), "refused"),
        ("no JSON", "garbage"),
        (ModelUnavailable("error", again=None), "error"),
    ],
)
def test_without_an_answer_the_same_trade_goes_without_a_thesis(
    run: Run, answer: Any, failure: str
) -> None:
    (told,) = run(answering(agreeing, trader=answer), 1)
    (plain,) = run(answering(agreeing), 1)
    assert (asked(told)["report"], asked(told)["failure"]) == (None, failure)
    assert f"no_thesis:{failure}" in told["deliberation"]["flags"]
    assert opened(told) == opened(plain) != []
    assert [one["lots"] for one in told["signals"]] == [one["lots"] for one in plain["signals"]]
    assert all(told[name] == plain[name] for name in DECIDED)


def test_a_trader_that_never_answers_ends_with_the_deadline(run: Run, tries: Tries) -> None:
    hurried = firm(agents={"timeout_seconds": LEAST_CONSULT_SECONDS + 0.3})
    for attempt in tries():
        provider = answering(agreeing, trader=scripted.NEVER)
        (record,) = run(provider, 1, hurried)
        with attempt:
            assert len(provider.asked("trader")) == 1, "a time-out is not asked again"
            assert asked(record)["failure"] == "timeout" and opened(record)
            calls = record["deliberation"]["calls"]
            (call,) = [one for one in calls if one["role_id"] == "trader"]
            assert call["status"] == "timeout"


def test_where_too_little_time_is_left_it_is_not_asked(run: Run) -> None:
    hurried = firm(agents={"timeout_seconds": LEAST_CONSULT_SECONDS - 0.5})
    provider = answering(agreeing)
    (record,) = run(provider, 1, hurried)
    assert asked(record)["failure"] == "deadline" and opened(record)
    (stage,) = [one for one in record["deliberation"]["stages"] if one["name"] == "thesis"]
    assert stage["agents"] == {"trader": "deadline"}, "a replay is told by it"
    assert not provider.asked("trader")


def test_where_all_but_the_abstaining_failed_no_trader_is_asked(run: Run) -> None:
    """The sample has neither news nor companies: those two seats abstain, whoever is down."""
    down = ModelUnavailable("error", again=None)
    provider = scripted.Scripted(dict.fromkeys(AgentSettings(mode="firm").desk(), down))
    (record,) = run(provider, 1)
    assert opened(record) and UNFORESEEN not in record["flags"] and "outage" in record["flags"]
    assert "consulted" not in record["deliberation"] and not provider.asked("trader")


def test_a_halted_desk_asks_no_trader(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("instance_database.Database.trading_state", lambda _: "REDUCING")
    provider = answering(agreeing)
    (record,) = run(provider, 1)
    assert "TRADING_REDUCING" in record["denied"] and not provider.asked("trader")


# --- escalation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0.0, 0.4, 0.75, 1.0])
def test_the_border_of_the_escalation_is_the_setting_itself(at: float) -> None:
    profile, opening = firm(agents={"escalation": {"at": at}}), Foreseen("BUY", LEVELS, 0.5)
    for conviction in (0.0, at - 1e-8, at, at + 1e-8, 1.0):
        tier = tier_of(profile.agents, opening, conviction, profile)
        assert tier == ("chief" if conviction >= at else "deep"), conviction


def test_the_border_of_a_pivotal_one_is_what_the_desk_can_move() -> None:
    profile = firm(agents={"escalation": {"when": "pivotal"}})
    reach = call_policy.largest_shift(profile.sentiment_weights)
    for margin in (0.0, reach - 1e-8, reach, reach + 1e-8, 1.0):
        tier = tier_of(profile.agents, Foreseen("SELL", LEVELS, margin), 1.0, profile)
        assert tier == ("chief" if margin < reach else "deep"), margin


def test_the_worst_case_of_a_tick_has_the_trader_at_its_dearest() -> None:
    prices = PriceList({"deep": {"input": 1, "output": 1}, "chief": {"input": 9, "output": 9}})
    agents = AgentSettings(
        mode="firm", provider="anthropic", deep_think_model="deep", chief_think_model="chief"
    )
    off = agents.model_copy(
        update={"escalation": agents.escalation.model_copy(update={"when": "off"})}
    )
    assert consulting_tiers(agents) == ("deep", "chief") and consulting_tiers(off) == ("deep",)
    dear, cheap = (tick_worst_case(prices, one, lambda _: False) for one in (agents, off))
    assert dear > cheap
