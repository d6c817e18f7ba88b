"""Runs stored ticks of another program's scorer again, exactly, as journal_replay does a desk's.

A hosted tick stands for itself: it remembers what the bars that were handed over read, and no tick
before it. So each runs alone, from what its record names: all bars of then by range, revision and
hash, the host's own scores and numbers, the headlines in the words of then, the scheduled events,
the picture, the profile of its digest and the recorded answers. What was altered shows in the hash
of the question, which the record has too.

A tick in which the host's own fallback asked a model by itself is left out: what it asks is not
Torra's. What an own fallback answered without a request is given again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import agent_framework
from agents.contracts import VECTORS, ModelUnavailable, SourceType
from agents.debate.deliberation import Deliberation
from agents.registry import SCORER, seated
from instance_database import Database
from torra.clock import parse
from torra.evidence.news_digest import NewsView
from torra.overlay import hosted_tick
from torra.overlay.hosted_tick import ScorerQuestion
from torra.overlay.request import OverlayRequest, hash_of
from torra.providers.recorded import RecordedProvider
from torra.replay.rerun.edges_then import FrozenClock, ThenPayer
from torra.replay.rerun.inputs_then import InputsThen, NotAgain, Spoilt, bars_stored, inputs_then
from torra.replay.rerun.journal_replay import (
    UNREADABLE,
    Comparison,
    compared,
    differences_of,
    nobody_asked,
    not_run,
    unreadable,
)
from torra.store import hosted as hosted_table
from torra.store import news as news_table
from torra.store import replay_queries
from torra.store.connection import TickKey, to_json
from torra.store.hosted import hosted_instance
from torra.store.replay_queries import StoredDebate, journal_history
from torra.tick.debate import ModelAccess, Plan, plan, run_tick_debate
from torra.tick.marks import SHADOW
from torra.tick.record import news_view
from torra.tick.tick_record import (
    BarRange,
    Damaged,
    HostedQuestion,
    JournalRecord,
    load,
    what_is_wrong,
)

PICTURE: Final = "picture:"
"""Prefix of the flag of a tick that says why no chart could be shown."""

CROWDED: Final = "threads_exhausted"
"""Flag of a tick whose process had no thread left for the agents."""


def replay_hosted(
    source: Database, into: Database, instance: str, *, keys: Iterable[str]
) -> Iterator[Comparison]:
    """Run some ticks of a hosted stream again in `into`, which holds none of them."""
    for text in keys:
        try:
            found = _tick(source, into, instance, text)
        except UNREADABLE as error:
            found = unreadable(text, what_is_wrong(error))
        yield found


class HostedRecord(JournalRecord):
    """The record of a hosted tick."""

    hosted: HostedQuestion


def handed(record: HostedRecord) -> BarRange:
    """Return what names the bars that were handed over; raises NotAgain where there were none."""
    if record.hosted.handed is None:
        raise NotAgain("no_bars", "no bars were handed over")
    return record.hosted.handed


def asked_then(record: HostedRecord, bars: Any) -> str:
    """Return the hash of the question that a record describes, with these bars."""
    question = record.hosted
    return hash_of(
        bars,
        scores=dict(record.l1) if question.own_scores else None,
        extra=dict(question.extra),
        headlines=sorted(question.headlines),
        picture=question.picture,
        profile=record.profile,
        stale=question.stale,
    )


def _tick(source: Database, into: Database, instance: str, text: str) -> Comparison:
    stored, at = replay_queries.journal_row(source, text)
    record = load(text, stored, HostedRecord)
    if isinstance(record, Damaged):
        return unreadable(text, record.reason)
    try:
        inputs = inputs_then(
            source,
            text,
            record,
            at,
            instance=hosted_instance(record.instance, (record.timeframe,)),
            bars_of=lambda _: handed(record),
        )
        fallback = _fallback(record, inputs.told)
    except NotAgain as left:
        return not_run(text, stored, left)
    except Spoilt as spoilt:
        return not_run(text, stored, _named(source, record, spoilt))
    provider = RecordedProvider(journal_history(source, instance))
    again, chart = _again(source, into, inputs, record, provider, fallback)
    differences = differences_of(source, into, text, stored, again)
    if stored["bars"] != again["bars"]:
        differences["bars"] = (stored["bars"], again["bars"])
    if inputs.profile.altered:
        differences["profile"] = (record.profile, inputs.profile.altered)
    differences |= _answer(source, text, record.hosted.asked, chart)
    return compared(text, stored, again, provider, differences)


def _named(source: Database, record: HostedRecord, spoilt: Spoilt) -> Spoilt:
    """Return a spoilt input as it is, or that of the record where the question has these bars."""
    if "bars" not in spoilt.differences:
        return spoilt
    key = TickKey(record.instance, record.timeframe, parse(record.bar_time))
    if asked_then(record, bars_stored(source, key, handed(record))) != record.hosted.asked:
        return spoilt
    return Spoilt("hosted.handed.hash", *spoilt.differences["bars"], "")


def _again(
    source: Database,
    into: Database,
    inputs: InputsThen,
    record: HostedRecord,
    provider: RecordedProvider,
    fallback: agent_framework.Fallback | None,
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Run the tick and store it; return its record and its answer of now."""
    then = inputs.told
    question = _question(inputs, record)
    clock = FrozenClock(parse(record.now))
    seen = hosted_tick.inputs(question, record.events, _news(source, question, record))
    crowded = CROWDED in then.flags
    who = ModelAccess(
        None if nobody_asked(record, then) and not crowded else provider.submit,
        ThenPayer(then),
        picture=lambda: source.picture(record.picture) if record.picture else None,
        promoted=lambda: SHADOW not in then.flags,
        fallback=fallback,
    )
    chosen = plan(seen, who, None)
    # Why no chart was shown is told by the one who looked for it.
    unseen = tuple(flag for flag in then.flags if flag.startswith(PICTURE))
    chosen = replace(chosen, flags=(*chosen.flags, *unseen))
    if crowded:
        who = replace(who, debater=_crowded(chosen))
    debated = run_tick_debate(
        chosen, seen, who, clock=clock,
        deadline=clock.monotonic() + question.profile.agents.timeout_seconds,
    )  # fmt: skip
    asked = asked_then(record, question.request.bars)
    with into.transaction():
        again = hosted_tick.write(
            into,
            question,
            replace(seen, revision=handed(record).revision),
            debated,
            hosted={**record.hosted.as_json(), "asked": asked, "bars": len(inputs.bars)},
            provider=provider.name,
            elapsed_ms=0.0,
            now=clock.now(),
        )
    return again, debated.counted.scores


def _question(inputs: InputsThen, record: HostedRecord) -> ScorerQuestion:
    hosted = record.hosted
    request = OverlayRequest(
        record.symbol,
        record.timeframe,
        parse(hosted.moment),
        bars=inputs.bars,
        scores={name: record.l1[name] for name in VECTORS} if hosted.own_scores else None,
        extra=hosted.extra,
        notes=hosted.told,
    )
    # The profile of then has what was added for a symbol or a timeframe that it lacked.
    profile = inputs.profile.profile
    own = hosted_tick.look(request, profile)
    return ScorerQuestion(
        request, inputs.instance, inputs.key, profile, hosted.told, hosted.asked, hosted.stale, own
    )


def _news(source: Database, question: ScorerQuestion, record: HostedRecord) -> NewsView | None:
    """Return the tick's own view of the news."""
    if record.news is None:
        return None
    items = [
        # Seen with this question, whenever the headline first came.
        item.with_arrival(question.request.moment)
        for item in news_table.news_items(source, [row.id for row in record.news.items])
    ]
    return news_view(record.news, items)


def _fallback(record: HostedRecord, told: StoredDebate) -> agent_framework.Fallback | None:
    """Return what stands for the host's own fallback; None for Torra's. Raises NotAgain."""
    answered = record.hosted.fallback
    if answered is None:
        return None
    if any(role == SCORER.id for role, _, _ in (*told.requests, *told.calls)):
        raise NotAgain("own_scorer", "the host's own fallback asked a model by itself")

    def fallback(_context: Any, _ask: Any) -> Mapping[str, Any]:
        if record.source_type != SourceType.LEGACY:
            raise ModelUnavailable(told.words.get((SCORER.id, 1), "error"))
        return {name: {"score": score, "note": ""} for name, score in answered.items()}

    return fallback


def _crowded(chosen: Plan) -> Callable[[Any, Any], Deliberation]:
    """Return the debate of a process that has no thread left (agent_framework.deliberate)."""

    def debater(context: Any, config: Any) -> Deliberation:
        desk = seated(config.agents)
        spoken = agent_framework.l1_only_record(context, config, flags=(CROWDED,), unavailable=desk)
        return replace(spoken, flags=(*spoken.flags, *chosen.flags))

    return debater


def _answer(
    source: Database, text: str, asked: str, chart: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return where the same question is answered again with something else than its tick said."""
    kept = hosted_table.hosted_answer(source, text, asked)
    now = json.loads(to_json(chart))
    return {} if kept in (None, now) else {"answer.chart": (kept, now)}
