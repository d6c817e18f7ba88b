"""Runs journalled ticks again, exactly: same bars, same moment, same profile, same answers.

`replay` takes the ticks of an instance in the order in which they ran and puts each through the
very `run_tick`. Each has the bars that its record names (by range and revision, checked by their
hash), the clock of then, the profile of its digest and the recorded provider. The result is
compared with the record and with the rows that the desk stored beside it: every score, agent,
verdict, action, reason and signal, what each agent was asked and said, and the fills on paper.
Real time stands still, so a slow or busy machine changes no answer.

A tick goes on from the one before where that was the same again, else from what the desk had
stored before it. So a tick that is left out, or that differs, makes no later one differ. A tick is
left out, with its reason, where something that it needs is not stored (any more), and where other
rules made it. A request that the journal does not answer is a miss: the agent is skipped and the
miss is counted. The source is only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple

from agents.contracts import SourceType
from instance_database import Database
from torra.clock import parse
from torra.config import Instance
from torra.providers.recorded import RecordedProvider
from torra.replay.rerun.edges_then import (
    UNPAID,
    FrozenClock,
    Then,
    ThenPayer,
    ThenRoute,
    always,
    lessons_of_then,
    news_of_then,
)
from torra.replay.rerun.inputs_then import InputsThen, Left, NotAgain, Spoilt, inputs_then
from torra.replay.rerun.replay_store import JournalDatabase, Step, steps_of
from torra.store import replay_queries
from torra.store.connection import to_json
from torra.store.replay_queries import OF_ITS_END, StoredDebate, journal_history
from torra.tick.edges import TickDeps
from torra.tick.marks import SHADOW
from torra.tick.tick_record import Damaged, InstanceBefore, JournalRecord, load, what_is_wrong
from torra.verdict.signal_states import EXECUTED
from torra_trader import TickOutcome, run_tick

State = Literal["same", "different"] | Left

NOT_COMPARED: Final = frozenset(
    ("calls", "cost_usd", "elapsed_ms", "provider", "versions", "bars", "before", "desk", "profile")
)
"""Fields of a record that are no result: cost, time, provider, versions and inputs."""

BESIDE: Final = ("chains", "sentiment", "debate", "calls", "answer")
"""Tables with numbers of a tick beside its record, as `Database.twins` calls them.

`answer` is of hosted ticks alone: what the same question is answered again.
"""

COMPANY: Final = "company"
"""What openings were foreseen by: fed back from the record, and so compared with what stood."""

RECORD: Final = "record"
"""Place of the difference of a tick that what is stored of it lets nobody run again."""

UNREADABLE: Final = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What a record raises that was altered so that it is none: it has no form that could be checked
beforehand."""

OUTSIDE: Final = ("fills", "latches")
"""Differences of what a tick left behind, for which there is no place in its record."""

OF_ITS_FILL: Final = ("opened_at", "price", "lots", "stop", "target")
"""Columns of a signal that its fill depends on, or fills."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One tick then and now.

    `differences` maps a field of the record, or a row beside it as table.row, to (then, now);
    `misses` counts the requests that the journal did not answer, by reason; `cost_usd` is what the
    answers cost then. `then` is the stored record and `record` the one of now, None for a tick that
    did not run again.
    """

    key: str
    state: State
    differences: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    answered: int = 0
    misses: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float = 0.0
    record: Mapping[str, Any] | None = None
    detail: str = ""
    then: Mapping[str, Any] = field(default_factory=dict)


def replay(
    source: Database,
    into: Database,
    instance: str,
    *,
    limit: int | None = None,
    keys: Iterable[str] | None = None,
) -> Iterator[Comparison]:
    """Run journalled ticks of an instance again in `into`, the newest `limit` of them (None: all).

    `keys` are some of them, in the order in which they ran. `into` may hold other instances, but no
    tick of this one (ValueError). A stage that was refused then is refused again.
    """
    everything = replay_queries.journalled(source, instance)
    following = dict(zip_longest(everything, everything[1:]))
    chosen = list(keys) if keys is not None else everything[-limit:] if limit else everything
    past = JournalDatabase.at(into.path)
    # The tick before which `past` stands; None where it must be set anew.
    stands: str | None = None
    try:
        if past.knows(instance):
            raise ValueError(f"{into.path} holds ticks of {instance}; replay into another file")
        for text in chosen:
            try:
                found = _tick(source, past, instance, text, following[text], anew=stands != text)
            except UNREADABLE as error:
                found = unreadable(text, what_is_wrong(error))
            stands = following[text] if _goes_on(found) else None
            yield found
    finally:
        past.close()


def _tick(
    source: Database,
    past: JournalDatabase,
    instance: str,
    text: str,
    following: str | None,
    *,
    anew: bool,
) -> Comparison:
    stored, at = replay_queries.journal_row(source, text)
    record = load(text, stored, JournalRecord)
    if isinstance(record, Damaged):
        return unreadable(text, record.reason)
    try:
        inputs = inputs_then(source, text, record, at)
    except (NotAgain, Spoilt) as why:
        return not_run(text, stored, why)
    if anew:
        past.begin(source, instance, text)
    provider = RecordedProvider(journal_history(source, instance))
    after = _after(source, instance, following)
    return _again(source, past, inputs, record, stored, provider, after)


def unreadable(text: str, reason: str) -> Comparison:
    """Return what is told of a tick whose record lets nobody run it again."""
    what = f"its record is damaged: {reason}"
    return Comparison(text, "different", {RECORD: ("a tick", what)}, detail=what)


def not_run(text: str, stored: Mapping[str, Any], why: NotAgain | Spoilt) -> Comparison:
    """Return what is told of a tick that did not run again."""
    if isinstance(why, NotAgain):
        return Comparison(text, why.state, detail=why.detail, then=stored)
    cost = float(stored["cost_usd"])
    return Comparison(
        text, "different", why.differences, cost_usd=cost, detail=why.detail, then=stored
    )


def nobody_asked(record: JournalRecord, told: StoredDebate) -> bool:
    """Return whether there was no provider: the recorded one would count misses."""
    alone = record.source_type == SourceType.L1_ONLY and not told.words
    return alone and UNPAID not in told.flags


def _goes_on(found: Comparison) -> bool:
    """Return whether the next tick may go on from what this one left here.

    It may where the record is as it was: a table beside it that differs was altered.
    """
    beside = (name.partition(".")[0] in (*BESIDE, *OUTSIDE) for name in found.differences)
    return found.state == "same" or (found.state == "different" and all(beside))


class _After(NamedTuple):
    """How an instance stood after a tick; `event` is its last step, None for the newest."""

    event: int | None
    stood: InstanceBefore


def _after(source: Database, instance: str, following: str | None) -> _After | None:
    """Return how an instance stood after a tick: before the following one, or now.

    None where the record of the following one is damaged.
    """
    if following is None:
        return _After(None, InstanceBefore.parse(source.standing(instance)))
    try:
        record = load(following, replay_queries.journal_row(source, following)[0], JournalRecord)
    except UNREADABLE:
        return None
    if isinstance(record, Damaged):
        return None
    return _After(record.before.signal_event, record.before)


def _again(
    source: Database,
    past: JournalDatabase,
    inputs: InputsThen,
    record: JournalRecord,
    stored: Mapping[str, Any],
    provider: RecordedProvider,
    after: _After | None,
) -> Comparison:
    key, instance, told = inputs.key, inputs.instance, inputs.told
    clock = FrozenClock(parse(record.now))
    since = record.before.signal_event
    steps = replay_queries.signal_steps(source, instance.id, since, after.event) if after else []
    past.enter(source, record, clock, steps, inputs.stored_at)
    silent = nobody_asked(record, told)
    edges = TickDeps(
        database=past,
        window=Then(past, instance, record, inputs.bars),
        submit=None if silent else provider.submit,
        provider=provider.name,
        clock=clock,
        account=ThenPayer(told),
        picture=lambda: source.picture(record.picture) if record.picture else None,
        news=news_of_then(source, record),
        events=always(record.events),
        outside=always(record.outside),
        lessons=lessons_of_then(source, record),
        standing=always(record.standing),
        route=None if instance.bridge == "paper" else ThenRoute(),
        promoted=lambda: SHADOW not in told.flags,
        together=record.together,
        invented=record.invented,
    )
    outcome = run_tick(
        instance, key.timeframe, key.bar_time, clock.monotonic(),
        profile=inputs.profile.profile, edges=edges,
    )  # fmt: skip
    differences: dict[str, tuple[Any, Any]] = {}
    if outcome.record is not None:
        differences = differences_of(source, past, outcome.key.text, stored, outcome.record)
    if outcome.record is not None and after is not None:
        differences |= _market(source, past, instance, after, steps)
    if outcome.record is not None and (unlike := past.company_unlike()):
        differences[COMPANY] = unlike
    if inputs.profile.altered:
        differences["profile"] = (record.profile, inputs.profile.altered)
    return _compared(stored, outcome, provider, differences)


def differences_of(
    source: Database,
    past: Database,
    text: str,
    record: Mapping[str, Any],
    again: Mapping[str, Any],
) -> dict[str, tuple[Any, Any]]:
    """Return what of the record, and of the rows beside it, is not the same now."""
    # Through JSON as the record went: tuples become lists, keys text.
    now = json.loads(to_json(again))
    found = {
        name: (record.get(name), now.get(name))
        for name in [*record, *(now.keys() - record.keys())]
        if name not in NOT_COMPARED and record.get(name) != now.get(name)
    }
    before, after = replay_queries.twins(source, text), replay_queries.twins(past, text)
    for table, rows in before.items():
        for name in [*rows, *(after[table].keys() - rows.keys())]:
            pair = rows.get(name), after[table].get(name)
            if table == "calls":
                pair = _ended(pair[0]), _ended(pair[1])
            if pair[0] != pair[1]:
                found[f"{table}.{name}"] = pair
    return found


def _ended(call: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a stored call as its tick knew it: a late answer was none."""
    late = call is not None and call["status"] == "late"
    return {**call, "status": "timeout"} if call and late else call


def _market(
    source: Database,
    past: JournalDatabase,
    instance: Instance,
    after: _After,
    steps: Sequence[Mapping[str, Any]],
) -> dict[str, tuple[Any, Any]]:
    """Return where fills on paper and latches differ; then follow what others did to signals."""
    then, now = steps_of(steps), past.steps(instance.id)
    found: dict[str, tuple[Any, Any]] = {}
    # A tick that failed has lived through bars as well, and its fills are no news of this one.
    stood = after.stood.paper_cursor
    failed = stood is not None and parse(stood) != past.paper_cursor(instance.id)
    if instance.bridge == "paper" and not failed:
        ends = {*EXECUTED, "CLOSED"}
        filled = [[step for step in side if step[2] in ends] for side in (then, now)]
        if filled[0] != filled[1]:
            found["fills"] = (list(map(list, filled[0])), list(map(list, filled[1])))
        else:
            found = _fills(past, source, filled[0])
    if now != then:
        past.follow(source, instance.id, after.event)
    held = past.latches(instance.id)
    if held != (latches := set(after.stood.latches)):
        found["latches"] = (sorted(latches), sorted(held))
    return found


def _fills(
    past: JournalDatabase, source: Database, steps: Sequence[Step]
) -> dict[str, tuple[Any, Any]]:
    """Return the fills and ends on paper that did not come to the same."""
    found = {}
    for sid, _, state in steps:
        names = OF_ITS_END if state == "CLOSED" else OF_ITS_FILL
        then, now = (
            {name: (held.signal(sid) or {}).get(name) for name in names} for held in (source, past)
        )
        if then != now:
            found[f"fills.{sid}"] = (then, now)
    return found


def _compared(
    record: Mapping[str, Any],
    outcome: TickOutcome,
    provider: RecordedProvider,
    differences: Mapping[str, tuple[Any, Any]],
) -> Comparison:
    if outcome.record is None:
        detail = f"{outcome.state}: {outcome.reason} {outcome.detail}".strip()
        told = _answers(record, provider)
        return Comparison(outcome.key.text, "not_run", detail=detail, **told)
    return compared(outcome.key.text, record, outcome.record, provider, differences)


def compared(
    text: str,
    record: Mapping[str, Any],
    again: Mapping[str, Any],
    provider: RecordedProvider,
    differences: Mapping[str, tuple[Any, Any]],
) -> Comparison:
    """Return a tick that ran again, with where it differs."""
    now = json.loads(to_json(again))
    state: State = "different" if differences else "same"
    return Comparison(text, state, differences, record=now, **_answers(record, provider))


def _answers(record: Mapping[str, Any], provider: RecordedProvider) -> dict[str, Any]:
    return {
        "answered": provider.answered,
        "misses": dict(provider.misses),
        "cost_usd": float(record["cost_usd"]),
        "then": record,
    }
