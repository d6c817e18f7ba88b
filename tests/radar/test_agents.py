"""The agents of the radar: in turns, within limits, and whatever fails, the rules' run stands."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import AgentSettings
from agents.contracts import Prompt
from instance_database import Database, open_reader
from tests.conftest import Scale
from tests.doubles import vendor_line
from tests.doubles.vendor_line import environment
from tests.doubles.vendor_server import (
    OPENAI,
    QUOTA,
    VENDORS,
    Drip,
    Exchange,
    Hang,
    Huge,
    Reply,
    Reset,
    Status,
    Truncated,
    VendorServer,
)
from tests.faults import kills
from tests.tries import Tries
from tests.worlds import desks, radar_desks
from tests.worlds.radar_runs import check_held, odd_run, reply, row, run_of, stored, stream_fact
from torra.clock import System
from torra.config import Profile, RadarSettings
from torra.desk.models.off_tick import ACCOUNT_FAULTS, OffTickKey, OffTickReply
from torra.errors import StoreUnavailable
from torra.home import DATABASE
from torra.radar import agents, demotions
from torra.radar.agents import REQUESTS, AgentLoop, go_on
from torra.radar.demotions import worth_of
from torra.radar.result import RadarRun
from torra.radar.turn_prompt import ROLES, TURNS, RadarRole
from torra.store import ledger as ledger_table
from torra.store import radar_runs
from torra.store.tool_calls import tool_calls
from torra.tick.spending import HOUR
from torra.tools.desk_reader import DeskReader
from torra.words.radar import words_of

ON: Final = RadarSettings(near=1.0, agents="on")
QUICK: Final = ("score_symbol", "fetch_events", "argument", "analyse_sentiment", "fetch_outside")
CALLS: Final = ("fetch_bars", "score_symbol", "detect_patterns", "fetch_events")
PAYS: Final = AgentSettings()
TITLES: Final = {one.role.title: one.agent for one in ROLES}


def turn(**changes: Any) -> dict[str, Any]:
    return {"calls": [], "demote": [], "say": [], "because": [], "done": True, **changes}


def replied(document: Any) -> OffTickReply:
    return OffTickReply(document, "" if isinstance(document, dict) else "GARBAGE")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("radar")
    with closing(desks.open_database(folder)) as database:
        radar_desks.store_walks(database)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer() as found:
        yield found


@pytest.fixture
def desk(home: Path) -> Iterator[tuple[Database, DeskReader]]:
    with (
        closing(desks.open_database(home)) as database,
        closing(open_reader(home / DATABASE)) as evidence,
    ):
        for table in ("ledger", "provider_blocks", "calls", "radar_runs"):
            database.change(f"DELETE FROM {table}")
        found = radar_desks.reader(evidence, home, radar=ON)
        paid = {name: Profile(agents=vendor_line.agents(OPENAI)) for name in found.profiles}
        yield database, replace(found, profiles=paid)


RULES: Final = run_of(
    row("SYM0|H1", "act", ("HELD_BACK",), deny_reason="GATE_VETO"),
    row("SYM1|H1", "act", ("OPENED",)),
    row("SYM2|H1", "watch", ("NEAR_THRESHOLD",)),
)


# --- limits ---------------------------------------------------------------------------------------


class Script:
    """Answers an agent loop from a function of agent and turn, and counts what it is asked."""

    def __init__(self, answers: Callable[[str, int], Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.sizes: list[int] = []

    def __call__(self, prompt: Prompt, one: RadarRole, number: int, until: float) -> OffTickReply:
        self.asked.append(one.agent)
        self.sizes.append(len(f"{prompt.system}{prompt.user}".encode()))
        assert number == len(self.asked)
        return replied(self.answers(one.agent, self.asked.count(one.agent)))


def loop(
    desk: tuple[Database, DeskReader], script: Any, name: str = "x", run: RadarRun = RULES
) -> AgentLoop:
    database, reader = desk
    until = System().monotonic() + 30.0
    return AgentLoop(reader, database, run, OffTickKey("radar", name), PAYS, script, until)


def test_a_demotion_by_a_tools_fact_is_in_the_run(desk: Any) -> None:
    def answers(agent: str, number: int) -> Any:
        if agent == "data" and number == 1:
            return turn(calls=[{"tool": "fetch_bars", "row": "SYM0|H1"}], done=False)
        if agent == "signal":
            close = "SYM0|H1@2024-03-15T11:00:00Z/technical.close"
            return turn(demote=[{"row": "SYM0|H1", "cites": [close]}])
        return turn(say=["s2"])

    script = Script(answers)
    run = loop(desk, script, "demotes").go()
    check_held(RULES, run)
    assert script.asked == ["data", "data", "signal", "insight"]
    assert (run.mode, run.tool_calls, run.fallback_trigger) == ("ai", 1, "")
    assert [one.stream for one in run.watch] == ["SYM0|H1", "SYM2|H1"]
    (audited,) = tool_calls(desk[0], "radar|demotes")
    assert run.audit_log == (audited["number"],) and audited["agent"] == "data"
    assert "signal on SYM0|H1: the row is to be watched." in run.reasoning_log
    assert run.cards[0].stream == "SYM1|H1"


def test_ten_thousand_scripts_stay_within_every_limit(desk: Any, scaled: Scale) -> None:
    """At night: 12 requests, 4 turns an agent, 24 calls that are run, one repair."""
    chance, seen = random.Random(70), set[str]()
    database = desk[0]
    names = [*(one.stream for one in RULES.act), "SYM2|H1", "NONE|H1", "a;b", "SYM0|M1"]
    for number in range(scaled(10_000, least=15)):
        greed, broken = chance.random(), chance.random() * 0.3

        def answers(agent: str, count: int) -> Any:
            if chance.random() < broken:  # noqa: B023 - called within the turn of the loop
                return chance.choice([None, [], {"done": "no"}, {"calls": "x", "done": True}])
            tools = [*QUICK, *QUICK, "exposure", "rm -rf", ""]
            calls = [
                {"tool": chance.choice(tools), "row": chance.choice(names)}
                for _ in range(chance.randrange(30))
            ]
            return {**reply(chance, RULES, {}), "calls": calls, "done": chance.random() > greed}  # noqa: B023

        script = Script(answers)
        run = loop(desk, script, f"script-{number}").go()
        rows = tool_calls(database, f"radar|script-{number}")
        assert len(script.asked) <= REQUESTS
        assert all(script.asked.count(one.agent) <= TURNS + 1 for one in ROLES)
        ran = [one for one in rows if one["status"] in ("ok", "cached", "error")]
        assert len(ran) <= 24 and len([one for one in ran if one["agent"] == "signal"]) <= 6
        assert not [one for one in ran if one["agent"] == "insight"]
        assert len(rows) == run.tool_calls <= REQUESTS * agents.TURN_CALLS
        assert all(size <= 10_000 for size in script.sizes)
        check_held(RULES, run)
        if run.mode == "rules":
            assert run.using_non_ai_fallback and words_of(run.fallback_trigger)
            assert run.model_dump(include={"act", "watch", "exit_radar"}) == RULES.model_dump(
                include={"act", "watch", "exit_radar"}
            )
        seen.add(run.fallback_trigger)
    assert seen >= {"", "GARBAGE", "LOOP_LIMIT"}


def test_turns_requests_and_calls_are_counted_before_they_are_made(desk: Any) -> None:
    """An agent that is never done has 4 turns; with a repair, insight has one turn less."""
    garbage = iter([None])

    def answers(agent: str, number: int) -> Any:
        row_of = lambda at: f"SYM{at % 8}|{('H1', 'M15')[at // 8]}"  # noqa: E731
        many = [{"tool": "score_symbol", "row": row_of(8 * (number % 2) + at)} for at in range(8)]
        return next(garbage, turn(calls=many if number < TURNS else [], done=False))

    script = Script(answers)
    run = loop(desk, script, "counted").go()
    assert [script.asked.count(one.agent) for one in ROLES] == [TURNS + 1, TURNS, TURNS - 1]
    rows = tool_calls(desk[0], "radar|counted")
    ran = [one["agent"] for one in rows if one["status"] != "refused"]
    assert (ran.count("data"), ran.count("signal"), ran.count("insight")) == (16, 6, 0)
    assert run.tool_calls == len(rows) == 64 and run.mode == "ai"


def test_an_agent_that_never_ends_is_stopped_after_its_turns(desk: Any) -> None:
    def answers(agent: str, number: int) -> Any:
        return turn(calls=[{"tool": CALLS[number - 1], "row": "SYM0|H1"}], done=False)

    script = Script(answers)
    run = loop(desk, script, "endless").go()
    assert (run.fallback_trigger, run.tool_calls, len(script.asked)) == ("LOOP_LIMIT", 3, 4)
    assert run.fallback_reason == "data wanted more at its last turn"


def test_the_third_call_that_is_alike_ends_the_loop(desk: Any) -> None:
    call = {"tool": "fetch_bars", "row": "SYM0|H1"}
    run = loop(desk, Script(lambda *_: turn(calls=[call] * 3, done=False)), "alike").go()
    assert (run.mode, run.fallback_trigger) == ("rules", "LOOP_LIMIT")


def test_a_reply_that_cannot_be_read_is_asked_for_again_once(desk: Any) -> None:
    replies = iter([None, turn(), turn(), turn()])
    script = Script(lambda *_: next(replies))
    assert loop(desk, script, "repair").go().mode == "ai"
    assert script.asked == ["data", "data", "signal", "insight"]
    twice = Script(lambda *_: None)
    assert loop(desk, twice, "twice").go().fallback_trigger == "GARBAGE"
    assert len(twice.asked) == 2


# --- faults of a vendor ---------------------------------------------------------------------------

FAULTS: Final = {
    "key refused": (Status(401, "bad_key"), "AUTH_REFUSED"),
    "forbidden": (Status(403), "AUTH_REFUSED"),
    "no credit": (Status(402), "NO_CREDIT"),
    "quota": (QUOTA[OPENAI], "QUOTA"),
    "busy": (Status(429), "BUSY"),
    "overloaded": (Status(503), "BUSY"),
    "no model": (Status(404), "NETWORK"),
    "reset": (Reset(midway=True), "NETWORK"),
    "truncated": (Truncated(), "NETWORK"),
    "no JSON": (Reply(text="Buy gold now."), "GARBAGE"),
    "too long": (Huge(), "GARBAGE"),
}
"""What a vendor may do, and its trigger."""


def by_agent(script: Callable[[str, int], Any], asked: list[str], exchange: Exchange) -> Any:
    """Return what a vendor answers an agent, which it knows by the prompt."""
    agent = next(TITLES[title] for title in TITLES if f"You are the {title}" in exchange.text)
    asked.append(agent)
    entry = script(agent, asked.count(agent))
    return Reply(text=json.dumps(entry)) if isinstance(entry, dict) else entry


def faulty(entry: Any, agent: str, number: int) -> Callable[[str, int], Any]:
    """Return who answers honestly until the turn of an agent, and with a fault from there on."""

    def answers(asked: str, count: int) -> Any:
        if asked == agent and count >= number:
            return entry
        if asked == agent:
            tool = {"data": CALLS[count - 1], "signal": "fetch_events", "insight": "none"}[agent]
            return turn(calls=[{"tool": tool, "row": f"SYM{count}|H1"}], done=False)
        return turn()

    return answers


PLACES: Final = [(one.agent, number) for one in ROLES for number in (1, 3)]


def cases() -> Iterator[Any]:
    """Yield each fault at each turn of each agent; of a fault one place is tried each day."""
    for at, fault in enumerate(FAULTS):
        for place, (agent, number) in enumerate(PLACES):
            marks = () if place == at % len(PLACES) else pytest.mark.journey
            yield pytest.param(fault, agent, number, marks=marks, id=f"{fault}-{agent}-{number}")


@pytest.mark.parametrize(("fault", "agent", "number"), [*cases()])
def test_a_fault_of_a_vendor_leaves_the_run_of_the_rules_with_its_trigger(
    desk: Any, home: Path, server: VendorServer, fault: str, agent: str, number: int
) -> None:
    entry, trigger = FAULTS[fault]
    asked: list[str] = []
    script = faulty(entry, agent, number)
    server.play({"*": partial(by_agent, script, asked)})
    database, reader = desk
    run = go_on(home, reader, database, stored(database, RULES), RULES, environment(server))
    assert (run.mode, run.fallback_trigger) == ("rules", trigger), run.fallback_reason
    assert run.using_non_ai_fallback and run.fallback_reason
    assert (run.act, run.watch, run.exit_radar) == (RULES.act, RULES.watch, RULES.exit_radar)
    assert asked.count(agent) == number + (trigger == "GARBAGE")
    newest = radar_runs.newest_run(database) or {}
    assert RadarRun.model_validate_json(newest["document"]) == run
    assert (newest["mode"], newest["trigger_code"]) == ("rules", trigger)
    if trigger in ACCOUNT_FAULTS:
        again = go_on(home, reader, database, stored(database, RULES), RULES, environment(server))
        assert again.fallback_trigger == "BLOCKED" and asked.count(agent) == number


@pytest.mark.parametrize("entry", [Hang(), Drip(every=0.05)], ids=["hangs", "drips"])
def test_a_vendor_that_hangs_or_drips_costs_no_more_than_the_deadline(
    desk: Any, home: Path, server: VendorServer, monkeypatch: Any, tries: Tries, entry: Any
) -> None:
    monkeypatch.setattr(agents, "DEADLINE_S", 2.0)
    database, reader = desk
    for attempt in tries():
        number = stored(database, RULES)
        seen: list[str] = []

        def early(_: Exchange, seen: list[str] = seen, number: int = number) -> Any:
            with closing(desks.open_database(home)) as other:
                seen.append((radar_runs.run(other, number) or {})["document"])
            return entry

        server.play({"*": early})
        begun = time.monotonic()
        run = go_on(home, reader, database, number, RULES, environment(server))
        took = time.monotonic() - begun
        assert (run.mode, run.fallback_trigger) == ("rules", "TIMEOUT")
        for text in seen:
            readable = RadarRun.model_validate_json(text)
            assert (readable.act, readable.fallback_trigger) == (RULES.act, "UNFINISHED")
        with attempt:  # on a busy machine an SDK may take as long to load
            assert seen
            assert took <= agents.DEADLINE_S + 0.5


@pytest.mark.parametrize(
    "vendor",
    [pytest.param(one, marks=() if one == OPENAI else pytest.mark.journey) for one in VENDORS],
)
def test_each_vendor_is_asked_and_what_it_costs_is_booked(
    desk: Any, home: Path, server: VendorServer, vendor: str
) -> None:
    asked: list[str] = []

    def answers(agent: str, _: int) -> Any:
        cited = "2026-01-05T10:00:00Z/radar.consensus"
        wants = [{"row": name, "cites": [cited]} for name in ("SYM0|H1", "SYM1|H1")]
        return turn(demote=wants if agent == "signal" else [], say=["s1"])

    server.play({"*": partial(by_agent, answers, asked)})
    database, reader = desk
    rich = vendor_line.agents(vendor, max_api_cost_per_hour=500.0)
    paid = {name: Profile(agents=rich) for name in reader.profiles}
    number = stored(database, RULES)
    found = go_on(
        home, replace(reader, profiles=paid), database, number, RULES, environment(server)
    )
    check_held(RULES, found)
    assert (found.mode, asked) == ("ai", ["data", "signal", "insight"]), found.fallback_reason
    assert [one.code for one in found.watch] == ["DEMOTED", "NEAR_THRESHOLD"]
    assert [one.code for one in found.act] == ["OPENED"] and found.act[0].objections
    assert not [one for one in server.exchanges if one.refused]
    calls = database.rows("SELECT * FROM calls WHERE torra_key = ?", f"radar|{number}")
    assert [one["status"] for one in calls] == ["ok"] * 3
    ledger = ledger_table.ledger_rows(database, database.now() - HOUR)
    assert found.cost_usd == pytest.approx(sum(one["usd"] for one in ledger))
    assert found.worth is not None and found.worth.mean is None


@pytest.mark.parametrize(
    ("changes", "run"),
    [
        ({"radar": RadarSettings(near=1.0)}, RULES),
        ({"agents": AgentSettings()}, RULES),
        ({}, run_of()),
        ({}, RULES.model_copy(update={"mode": "cached"})),
    ],
    ids=["off", "rules", "nothing open", "an earlier run"],
)
def test_where_nothing_is_to_be_asked_nothing_is(
    desk: Any, home: Path, server: VendorServer, changes: dict[str, Any], run: RadarRun
) -> None:
    server.play({"*": Status(500)})
    database, reader = desk
    if "radar" in changes:
        settings = reader.settings.model_copy(update={"radar": changes["radar"]})
        reader = replace(reader, settings=settings)
    if "agents" in changes:
        plain = {name: Profile(agents=changes["agents"]) for name in reader.profiles}
        reader = replace(reader, profiles=plain)
    number = stored(database, RULES)
    assert go_on(home, reader, database, number, run, environment(server)) is run
    assert not server.exchanges


def test_a_fault_of_ours_leaves_the_stored_run(
    desk: Any, home: Path, server: VendorServer, monkeypatch: Any
) -> None:
    database, reader = desk

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(agents, "AgentLoop", broken)
    number = stored(database, RULES)
    run = go_on(home, reader, database, number, RULES, environment(server))
    assert (run.fallback_trigger, run.act) == ("UNFINISHED", RULES.act)
    monkeypatch.setattr(radar_runs, "replace_run", partial(_full, StoreUnavailable("full")))
    assert go_on(home, reader, database, number, RULES, environment(server)) == RULES


def _full(error: Exception, *_: Any) -> None:
    raise error


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_moment_leaves_the_rules_rows(tmp_path: Path, scaled: Scale) -> None:
    """After 300 kills at night."""
    chance, rows = random.Random(71), {one.stream for one in (*RULES.act, *RULES.watch)}

    def life() -> None:
        with closing(desks.open_database(tmp_path)) as database:
            reader = radar_desks.reader(database, tmp_path, radar=ON)
            while True:
                number = stored(database, RULES)
                until = System().monotonic() + 30.0
                script = Script(lambda *_: turn(say=["s1"]))
                key = OffTickKey("radar", str(number))
                loop = AgentLoop(reader, database, RULES, key, PAYS, script, until)
                for _ in range(2):
                    run = loop.go()
                    radar_runs.replace_run(database, number, run.mode, "", run.model_dump_json())

    desks.open_database(tmp_path).close()
    for _ in range(scaled(300, least=3)):
        kills.run_for(chance.uniform(0.05, 0.4), life)
        with closing(desks.open_database(tmp_path)) as database:
            newest = radar_runs.newest_run(database)
            if newest is not None:
                run = RadarRun.model_validate_json(newest["document"])
                assert {one.stream for one in (*run.act, *run.watch)} == rows
                assert run.mode == newest["mode"]


# --- worth ----------------------------------------------------------------------------------------


def demoted(number: int, at: str, consensus: float, close: float) -> RadarRun:
    stream = f"SYM{number}|H1"
    facts = {"radar.consensus": consensus, "technical.close": close, "technical.atr14": 2.0}
    one = row(stream, "watch", ("DEMOTED",), as_of=at)
    facts_of = tuple(stream_fact(stream, *pair) for pair in facts.items())
    return run_of(one.model_copy(update={"facts": facts_of}), mode="ai")


def test_a_demotion_is_measured_by_the_24th_bar_after_it(desk: Any) -> None:
    database, reader = desk
    at, late = "2024-03-12T12:00:00Z", "2024-03-15T11:00:00Z"
    frame = database.load_bars("SYM1", "H1", as_of=reader.as_of)
    then = float(frame.loc["2024-03-13T11:00:00+00:00", "close"])
    for run in (
        demoted(1, at, -0.3, 100.0),
        demoted(1, at, -0.3, 100.0),
        demoted(2, late, 1.0, 1.0),
    ):
        stored(database, run)
    found = worth_of(database, reader.as_of, run_of())
    assert found.count == 1 and found.mean == pytest.approx((100.0 - then) / 2.0)
    assert found.low is None, "one is too few"
    assert demotions.BARS == 24 and worth_of(database, reader.as_of, odd_run(random.Random(1)))
