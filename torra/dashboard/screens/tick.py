"""The page of one tick, with what its record does not hold: the limits, the chart.

`tick_page` answers with the page. While the tick has no record yet, it leads to the page of its
running debate, or else answers 404. The limits are those of the profile with which the tick ran,
found in the database by its digest. Without a database, or if that profile is not kept, there are
no limits and the page says so. A picture is found by its hash and shown only if its first bytes are
a picture's. Nothing here writes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from flask import Response, abort, redirect, url_for
from flask.typing import ResponseReturnValue

from agents.contracts import ORDINALS
from agents.features import meaning_of, name_of
from torra import clock
from torra.config import Profile
from torra.dashboard.doors.routes import Route
from torra.dashboard.record import (
    agreement,
    arithmetic,
    citations,
    inputs,
    lessons_used,
    reading_patterns,
    reasoning,
    story_cards,
    surroundings,
    swarm,
    thesis,
    transcript,
    vetoes,
    waterfall,
)
from torra.dashboard.record.shown import TickLimits, TickView
from torra.dashboard.screens import watching
from torra.dashboard.streams import price_lines
from torra.dashboard.trade import approvals, journal, proposals, why, without_tick
from torra.dashboard.trade.lessons import lesson_address
from torra.dashboard.trade.order import DeskOrder
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.rendering import desk_page, desk_view, state, tick_link
from torra.exhibits import figures, lesson_words
from torra.lessons.lesson import Lesson
from torra.store import lessons as lesson_table
from torra.store import replay_queries
from torra.tick.marks import INVENTED_IDS, PROPOSED
from torra.tick.sentence import page_text
from torra.tick.tick_record import Damaged, TickRecord, load, statement
from torra.tick.words import swarm_words, thesis_words
from torra.words import market, ticks
from torra.words.orders import REASONS, SIDES
from torra.words.ticks import VECTOR_NAMES

KINDS: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
"""First bytes of a picture, and its media type; other data is not shown."""

HASH: Final = re.compile(r"[0-9a-f]{64}")
PROFILES_KEPT: Final = 256
LONGEST: Final = 70_000
"""Characters of a prompt or a reply that a page shows."""


def tick_page(instance: str, timeframe: str, bar_time: str) -> ResponseReturnValue:
    """Show the reasoning of one tick, or lead to its debate while it runs."""
    moment = bar_moment(bar_time)
    key, stored = f"{instance}|{timeframe}|{moment}", desk_view().tick(instance, timeframe, moment)
    if stored is None:
        running = watching.running(key)
        return redirect(url_for(".watch", stream_id=running)) if running else abort(404)
    # read from the stored text: here the state of the desk now stands for that of then
    damage = stored.get("damaged")
    record = Damaged(key, str(damage)) if damage else load(key, stored, TickView)
    if isinstance(record, Damaged):
        bare: dict[str, Any] = {"instance": instance, "timeframe": timeframe, "bar_time": moment}
        bare |= {name: stored.get(name) for name in ("skipped", "previous", "next")}
        bare["damaged"] = "" if bare["skipped"] else record.reason
        return desk_page("tick.html", record=bare)
    record = limited(record)
    debate, proposal = transcript.conversation(record), approvals.of_tick(record)
    quoted, side = inputs.quotations(record, debate), story_cards.side_of(record)
    case, (spec, currency) = why.case(record, side), without_tick.terms(record)
    wrong = story_cards.refuting(record, case.falsifiers)
    return desk_page(
        "tick.html",
        **MODULES,
        record=record,
        sentence=figures.sanitize(page_text(record), reasoning.SENTENCE),
        proposed=REASONS[PROPOSED] if record.reason == PROPOSED else "",
        warm_up=record.hosted is None and record.now == record.as_of,
        talk=debate,
        quoted=quoted,
        inputs=inputs.by_agent(record, debate, quoted),
        codes=citations.codes(list(debate.shown)),
        verb=f"{SIDES[side].verb}ing",
        case=case,
        who=story_cards.who(record, side, [point.who for point in case.why_not]),
        without=without_tick.without(record),
        spec=spec,
        currency=currency,
        wrong=wrong,
        no_order=story_cards.no_order(record),
        over=price_lines.LINES,
        cited=price_lines.cited(record, wrong[0]),
        vectors=VECTOR_NAMES,
        ordinals=ORDINALS,
        picture=inputs.picture(record),
        picture_address=picture_address(record),
        told_outcome=stored.get("told_outcome"),
        proposal=proposal,
        signal=DeskOrder.of(proposal).signal if proposal else None,
        patterns=reading_patterns.holding(record),
        notes=lessons_used.notes(record, lessons_of(record)),
        headline_of=lesson_words.headline,
        lesson_address=lesson_address,
        invented=INVENTED_IDS if record.invented else (),
        name_of=name_of,
        meaning_of=meaning_of,
        statement=statement,
        became=journal.outcome_sentence(record, proposal),
    )


MODULES: Final[dict[str, Any]] = {
    "agreement": agreement, "arithmetic": arithmetic, "around": surroundings,
    "citations": citations, "lessons_used": lessons_used, "market": market, "orders": proposals,
    "reasoning": reasoning, "story_cards": story_cards, "swarm": swarm, "swarm_words": swarm_words,
    "thesis": thesis, "thesis_words": thesis_words, "ticks": ticks, "transcript": transcript,
    "vetoes": vetoes, "waterfall": waterfall,
}  # fmt: skip
"""What the template asks of a record."""


def call(instance: str, timeframe: str, bar_time: str, number: str) -> ResponseReturnValue:
    """Show the prompt and the reply of one call of a tick, by its number from 1."""
    moment = bar_moment(bar_time)
    stored = desk_view().tick(instance, timeframe, moment)
    record = load(f"{instance}|{timeframe}|{moment}", stored, TickView) if stored else None
    calls = record.stored_calls if isinstance(record, TickView) else ()
    chosen = [row for place, row in enumerate(calls, 1) if str(place) == number]
    if not chosen:
        abort(404)
    return desk_page(
        "call.html",
        record=record,
        call=chosen[0],
        number=number,
        longest=LONGEST,
        tick_link=tick_link,
    )


def bar_moment(text: str) -> str:
    """Return a bar's time as keys have it; 404 for text that is no time."""
    try:
        # an address may write a time in other ways than a key does
        return clock.iso(clock.parse(text))
    except (ValueError, OverflowError):
        abort(404)


def lessons_of(record: TickView) -> list[Lesson]:
    """Return the lessons that a tick was told of, as far as the store has them."""
    behind = state().backing
    numbers = [note.lesson for note in record.lessons.notes] if record.lessons else []
    return lesson_table.lessons_by(behind.database, numbers) if behind and numbers else []


def limited(record: TickView) -> TickView:
    """Return a tick with its limits, as far as they are known; a view may give them itself."""
    behind, digest = state().backing, record.profile
    if record.limits or behind is None:
        return record
    setup = behind.desk.setups.get(record.instance)
    if setup is not None and setup.profile.digest() == digest:
        profile: Profile | None = setup.profile
    else:
        profile = _applied(behind, record.instance, digest, record.execution)
    limits = TickLimits()
    if profile is not None:
        agents, risk = profile.agents, profile.risk
        limits = TickLimits(
            timeout_seconds=agents.timeout_seconds,
            ceiling=agents.max_api_cost_per_hour,
            capital=risk.capital,
            risk_per_trade_pct=risk.risk_per_trade_pct,
            max_notional_pct=risk.max_notional_pct,
            escalation=agents.escalation,
        )
    return record.model_copy(update={"limits": limits})


def picture_address(record: TickRecord) -> str:
    """Return the address of the chart that a tick's agents saw; empty where it is not kept."""
    shown, behind = inputs.picture(record), state().backing
    stored = shown and behind and behind.database.picture(shown) is not None
    return url_for(".picture", name=shown) if stored else ""


def picture(name: str) -> ResponseReturnValue:
    """Show a chart that agents saw."""
    behind = state().backing
    data = behind.database.picture(name) if behind and HASH.fullmatch(name) else None
    kind = next((kind for begins, kind in KINDS if data and data.startswith(begins)), None)
    if data is None or kind is None:
        abort(404)
    answer = Response(data, mimetype=kind)
    answer.headers["Content-Disposition"] = "inline"
    return answer


def _applied(
    behind: PageContext, instance: str, digest: str, execution: str | None
) -> Profile | None:
    """Return a profile by its digest, as it was applied or as a record only (execution off)."""
    for row in replay_queries.profiles_of(behind.database, instance)[:PROFILES_KEPT]:
        text, stored = str(row["profile"]), str(row["digest"])
        # a tick of a late bar runs with execution off, and the digest is of the profile so changed
        if digest == stored or (execution == "off" and digest == _quiet_digest(text)):
            return _stored(text)
    return None


# kept: else each page of such a tick parses all profiles of its instance again
@lru_cache(PROFILES_KEPT)
def _quiet_digest(text: str) -> str:
    profile = _stored(text)
    return profile.model_copy(update={"execution": "off"}).digest() if profile else ""


def _stored(text: str) -> Profile | None:
    """Return a stored profile; None for one of another version, or that is damaged."""
    try:
        return Profile.model_validate_json(text)
    except ValueError:
        return None


ROUTES = (
    Route("/symbol/<instance>/<timeframe>/<bar_time>/calls/<number>", "call", call),
    Route("/pictures/<name>.png", "picture", picture, reply="picture"),
)
