"""The agents of the radar: data, signal and insight, each in turns, over the tools and a run.

The rules' run is stored before the first request, and whatever happens it stays: a fault of a
vendor, a limit or the deadline costs the agents' part, with its trigger. Turns, requests and calls
are counted before they are made. What agents want becomes a run by torra.radar.decisions alone.
Nothing here raises into a scan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from agent_config import AgentSettings
from agents.contracts import Prompt
from instance_database import Database
from torra.clock import System
from torra.desk.models.off_tick import OffTickKey, OffTickReply, open_off_tick, payer, write_call
from torra.errors import ConfigError, StoreUnavailable, bounded
from torra.radar.decisions import Decisions, Demotion, applied, open_rows
from torra.radar.demotions import worth_of
from torra.radar.result import RadarRun
from torra.radar.turn_prompt import ROLES, SCHEMA, TURNS, RadarRole, Turn, prompt_of
from torra.store import radar_runs
from torra.store.tool_calls import tool_calls
from torra.tick.spending import streams_of
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import LOOP, Executor, ToolCall
from torra.words.radar import words_of

DEADLINE_S: Final = 60.0
"""Real seconds of all agents together, the loading of an SDK included."""

REQUESTS: Final = 12
"""Requests of a run."""

REPAIRS: Final = 1
"""Replies of a run that cannot be read and are asked for again."""

TURN_CALLS: Final = 12
"""Calls of a turn that are looked at; the executor refuses those beyond its own limit."""

UNREADABLE: Final = "Your last reply could not be read: reply with one JSON object of the form."
CLOCK: Final = System()

log = logging.getLogger("torra")

Ask = Callable[[Prompt, RadarRole, int, float], OffTickReply]
"""Asks a prompt of an agent as the request of a number, until a moment of the clock."""


class LoopEnded(Exception):
    """The agents of a run are over before their end: why, as a trigger, and in words of ours."""

    def __init__(self, trigger: str, why: str = "") -> None:
        super().__init__(trigger)
        self.trigger, self.why = trigger, why


@dataclass
class AgentLoop:
    """The agents of one run.

    `reader` cannot write, `database` takes the audit of the tools, and the calls by their `key`.
    `settings` are those of the profile that pays.
    """

    reader: DeskReader
    database: Database
    run: RadarRun
    key: OffTickKey
    settings: AgentSettings
    ask: Ask
    deadline: float
    requests: int = 0
    repairs: int = 0
    usd: float = 0.0
    evidence: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    demotions: list[Demotion] = field(default_factory=list)
    order: tuple[str, ...] = ()
    say: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def go(self) -> RadarRun:
        """Return the run with what the agents came to, or that of the rules and why."""
        begun = CLOCK.monotonic()
        try:
            for agent in ROLES:
                self._agent(agent)
            result, more = self._applied(), {"using_non_ai_fallback": False}
        except LoopEnded as end:
            result, more = self.run, fallback(end.trigger, end.why)
        rows = tool_calls(self.database, self.key.text)
        elapsed = self.run.elapsed_seconds + CLOCK.monotonic() - begun
        return result.model_copy(
            update={
                **more,
                "tool_calls": len(rows),
                "audit_log": tuple(row["number"] for row in rows),
                "reasoning_log": (*result.reasoning_log, *self.notes),
                "elapsed_seconds": round(elapsed, 3),
                "cost_usd": round(self.usd, 9),
            }
        )

    def _applied(self) -> RadarRun:
        wanted = Decisions((*self.demotions,), self.order, self.say, self.evidence)
        return applied(self.run, wanted)

    def _agent(self, agent: RadarRole) -> None:
        limits = {**LOOP, "AGENT_LIMIT": agent.calls}
        executor = Executor(self.key.text, self.database, limits, agent.tools)
        said: list[str] = []
        for turn in range(1, TURNS + 1):
            reply = self._turn(agent, turn, said)
            if reply is None:
                return
            self._take(agent, reply)
            if reply.done:
                return
            if reply.calls and turn == TURNS:
                raise LoopEnded("LOOP_LIMIT", f"{agent.agent} wanted more at its last turn")
            said = self._call(agent, executor, turn, reply)

    def _turn(self, agent: RadarRole, turn: int, said: list[str]) -> Turn | None:
        """Return the reply of a turn; None where the run has no request left."""
        shown = self.run if agent.tools else self._applied()
        while self.requests < REQUESTS:
            if CLOCK.monotonic() >= self.deadline:
                raise LoopEnded("TIMEOUT")
            self.requests += 1
            most, _ = self.settings.caps(agent.role.id, agent.role.tier)
            prompt, left_out = prompt_of(
                agent, shown, self.evidence, turn=turn, most=most, notes=said
            )
            reply = self.ask(prompt, agent, self.requests, self.deadline)
            self.usd += reply.usd
            self.notes.append(f"{agent.agent}, turn {turn}: asked. {left_out}".strip())
            self._keep(reply)
            document = _turn_of(reply)
            if document is not None:
                return document
            if reply.trigger not in ("", "GARBAGE"):
                raise LoopEnded(reply.trigger)
            self.repairs += 1
            if self.repairs > REPAIRS:
                raise LoopEnded("GARBAGE")
            said = [*said, UNREADABLE]
        return None

    def _keep(self, reply: OffTickReply) -> None:
        if reply.call is None:
            return
        try:
            with self.database.transaction():
                write_call(self.database, self.key, reply.call)
        except StoreUnavailable:
            raise LoopEnded("LEDGER", "a call could not be stored") from None

    def _take(self, agent: RadarRole, reply: Turn) -> None:
        """Note what an agent wants."""
        wants = (Demotion(agent.agent, one.row, tuple(one.cites)) for one in reply.demote)
        self.demotions += [one for one in wants if one not in self.demotions]
        if agent.agent == "signal" and reply.say:
            self.order = tuple(reply.say)
        if agent.agent == "insight":
            self.say = {"say": reply.say, "because": reply.because}

    def _call(self, agent: RadarRole, executor: Executor, turn: int, reply: Turn) -> list[str]:
        """Run the calls of a turn; return code's words on those that gave nothing."""
        chosen = reply.calls[:TURN_CALLS]
        calls = []
        for one in chosen:
            symbol, _, timeframe = one.row.partition("|")
            args = {"symbol": symbol, **({"timeframe": timeframe} if timeframe else {})}
            calls.append(ToolCall(one.tool, args, agent.agent, turn))
        left = max(0.0, self.deadline - CLOCK.monotonic())
        said: list[str] = []
        rows = {row.stream for row in open_rows(self.run)}
        results = executor.together(self.reader, calls, left)
        for place, (asked, result) in enumerate(zip(chosen, results, strict=True), 1):
            code = result.error.code if result.error else ""
            if code == "LOOP_LIMIT":
                raise LoopEnded(code, f"{agent.agent} made the same call three times")
            if asked.row in rows and result.ok:
                mine = tuple(one for one in result.facts if _is_of(one.id, asked.row))
                known = (*mine, *self.evidence.get(asked.row, ()))
                self.evidence[asked.row] = tuple({one.id: one for one in known}.values())
            elif result.error:
                said.append(f"Call {place} gave nothing: {code}. {result.error.message}")
        more = len(reply.calls) - len(chosen)
        counts = f"{len(calls)} calls, {len(said)} without facts, {more} not looked at"
        self.notes.append(f"{agent.agent}, turn {turn}: {counts}.")
        return said


def fallback(trigger: str, why: str = "") -> dict[str, Any]:
    """Return what a run of the rules says where agents were to be asked and came to nothing."""
    return {
        "using_non_ai_fallback": True,
        "fallback_trigger": trigger,
        "fallback_reason": bounded(why) or words_of(trigger).meaning,
    }


def _turn_of(reply: OffTickReply) -> Turn | None:
    """Return the reply of a turn; None where it has another form."""
    with suppress(ValidationError):
        return Turn.model_validate(reply.document)
    return None


def _is_of(fact_id: str, stream: str) -> bool:
    """Return whether a fact of a tool is about a stream."""
    return fact_id.startswith(f"{stream}@") or f"|{stream}@" in fact_id


# --- of a desk ------------------------------------------------------------------------------------


def go_on(
    home: Path,
    reader: DeskReader,
    database: Database,
    number: int,
    rules: RadarRun,
    environment: Mapping[str, str],
) -> RadarRun:
    """Let the agents go over a stored run of the rules; return what is stored of it then.

    `reader` cannot write. No model is asked where the desk wants none, nothing is open, or no
    profile has a vendor's models.
    """
    pays = None
    if reader.settings.radar.agents == "on":
        pays = payer(reader.instances, reader.profiles, *(one.role for one in ROLES))
    if pays is None or rules.mode != "rules" or not open_rows(rules):
        return rules
    deadline, left = CLOCK.monotonic() + DEADLINE_S, rules
    try:
        left = _stored(database, number, rules.model_copy(update=fallback("UNFINISHED")))
        result = _agents_run(home, reader, database, number, rules, environment, pays, deadline)
        result = result.model_copy(update={"worth": worth_of(database, reader.as_of, result)})
        return _stored(database, number, result)
    except Exception:
        log.exception("radar: the agents of run %s", number)
        return left


def _stored(database: Database, number: int, run: RadarRun) -> RadarRun:
    radar_runs.replace_run(database, number, run.mode, run.fallback_trigger, run.model_dump_json())
    return run


def _agents_run(
    home: Path,
    reader: DeskReader,
    database: Database,
    number: int,
    rules: RadarRun,
    environment: Mapping[str, str],
    pays: tuple[str, AgentSettings],
    deadline: float,
) -> RadarRun:
    """Ask the models of the paying profile; return the run as it is then."""
    profile, settings = pays
    key, roles = OffTickKey("radar", str(number)), [one.role for one in ROLES]
    streams = streams_of(reader.instances, profile)
    try:
        with open_off_tick(
            home, database, environment, pays, key, *roles, streams=streams, fallback_models=()
        ) as asks:
            loop = AgentLoop(
                reader, database, rules, key, settings,
                lambda prompt, one, count, until: asks[one.role.id].ask(
                    prompt, SCHEMA, role=one.role, deadline=until, round=count
                ),
                deadline,
            )  # fmt: skip
            return loop.go()
    except ConfigError as error:
        return rules.model_copy(update=fallback("AUTH_REFUSED", str(error)))
