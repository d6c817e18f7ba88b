"""A trade as its page tells it: its chart, what agents, gate and conviction did, and your note.

The chart has the bars around the trade with its fill, its levels and its exit. What made it is read
from the record of the tick that opened it. A note and tags are a person's own; they are found on
the page Orders, in its file and in its sums by tag, and touch no order. Whoever saves a note names
the revision that they saw: of two people one is told that the other wrote first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from flask import abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from torra import clock
from torra.clock import duration, parse
from torra.dashboard.doors.access import visitor
from torra.dashboard.doors.routes import Route
from torra.dashboard.record.shown import TickView
from torra.dashboard.streams import chart_data
from torra.dashboard.trade import proposals, trade_rows, without_tick
from torra.dashboard.trade.order import WAITING, terms_of
from torra.dashboard.view.bar_reading import MOST
from torra.dashboard.view.commanding import CommandOutcome, command, words
from torra.dashboard.view.rendering import backing, desk_view, state
from torra.errors import ConfigError
from torra.exhibits import figures, lesson_words
from torra.store.trade import notes as note_table
from torra.store.trade.rows import ProposalRow, SignalRow
from torra.tick.sentence import NO_AGENT, outage_of
from torra.tick.tick_record import Damaged, load
from torra.tick.words import swarm_words
from torra.words.badge import capital
from torra.words.orders import SIDES

LONGEST_NOTE: Final = 2_000
MOST_TAGS: Final = 8
LONGEST_TAG: Final = 30
MOST_KNOWN: Final = 100
"""Different tags of all trades together: more add up to nothing."""

TAG: Final = re.compile(rf"[^\W_][\w-]{{0,{LONGEST_TAG - 1}}}")
"""A tag: a letter or a digit, then letters, digits, - and _."""

BARS_BEFORE, BARS_AFTER = 80, 20
"""Bars of the chart before the fill and after the exit."""

AUDITED: Final = 300
"""Characters of a note that the audit log keeps."""


Contribution = tuple[str, str, str]
"""What one part of the desk did to a trade: its name, its word and the sentence to it."""


def contributions(row: SignalRow) -> list[Contribution]:
    """Return what the agents, the gate and conviction did to a trade; empty where nobody knows."""
    if row.kind != "open":
        return []
    try:
        stored = desk_view().tick(row.instance, row.timeframe, row.bar_time)
    except (ValueError, OverflowError):  # a time of a damaged row
        stored = None
    if stored is None:
        return []
    record = load(row.sid, stored, TickView)
    if isinstance(record, Damaged):
        return [("Record of its tick", "damaged", figures.sanitize(record.reason, 200))]
    return [
        ("Without agents", *without_tick.without(record)),
        _gate(record.gate.multiplier),
        _conviction(record, row.side),
        *_budget(record),
    ]


def headline(row: SignalRow, digits: int, currency: str) -> str:
    """Return in a sentence what a trade came to; empty for one that is not closed."""
    if row.kind != "open" or row.state != "CLOSED" or row.profit is None:
        return ""
    did = SIDES[row.side].past.capitalize() if row.side in SIDES else "Opened"
    fill, left = (figures.plain(price, digits) for price in (row.price, row.close_price))
    why = trade_rows.explain(row.close_reason)
    ended = f"closed at {left}{': ' + why if why else ''}"
    r = "" if row.r_multiple is None else f", {lesson_words.of_r(row.r_multiple)}"
    profit = f"{figures.format_signed(row.profit, 2)} {currency}".rstrip()
    return f"{did} {figures.plain(row.filled, 2)} lots at {fill}, {ended}. {profit}{r}."


def outcome_sentence(record: TickView, proposal: ProposalRow | None) -> str:
    """Return in a sentence or two what a tick's opening became so far; "" where it opened nothing.

    `proposal` is the one that it asked a person about.
    """
    behind = state().backing
    if behind is None:
        return ""
    answer = ""
    if proposal:
        answer = f"{capital(proposals.mark_of(proposal).meaning or 'it was decided')}."
        if proposal.state == WAITING:
            return answer
    opened = (draft.sid for draft in record.signals if draft.kind == "open" and draft.sid)
    sid = proposal.sid if proposal else next(opened, "")
    row = behind.database.order(sid) or SignalRow()
    terms = terms_of(record.instance)
    result = headline(row, terms.digits, terms.currency)
    if not result and row.kind == "open":
        result = f"Its order: {trade_rows.state_mark(row.state).meaning or row.state}."
    return f"{answer} {result}".strip()


def _gate(multiplier: float) -> Contribution:
    """Return what the ruling in force did; with agents in shadow it is that of the rules alone."""
    if multiplier >= 1.0:
        return "Gate", "no cut", "it left the size as it was"
    share = figures.plain(multiplier, 2)
    return "Gate", f"× {share}", f"it left {share} of the size"


def _conviction(record: TickView, side: str) -> Contribution:
    agreement = record.deliberation.panel.agreement(side)
    calibrated, raw = agreement.conviction, agreement.raw
    if record.deliberation.in_shadow:
        return "Conviction", "nothing", "the agents looked on: they changed no size"
    word = f"× {figures.plain(calibrated, 2)}"
    if outage_of(record) is not None:
        return "Conviction", word, NO_AGENT
    verb = SIDES[side].verb if side in SIDES else "trade"
    lowered = round(100 * raw) != round(100 * calibrated)
    more = f": {100 * raw:.0f} % before what speaks against it" if lowered else ""
    return (
        "Conviction",
        word,
        f"the agents' conviction in the {verb} was {100 * calibrated:.0f} %{more}",
    )


def _budget(record: TickView) -> Iterator[Contribution]:
    """Yield what the regime of a swarm left of a size; nothing of another desk's trade."""
    left, swarm = record.budget, record.deliberation.swarm
    if left is None or swarm is None:
        return
    market = swarm_words.market(swarm.regime.code)
    share = f"{market} left {100 * left:.0f} % of the size" if market else ""
    word = "no cut" if left >= 1.0 else f"× {figures.plain(left, 2)}"
    yield "Budget", word, share or "what kind of market it was is not recorded"


def api_trade_chart(sid: str) -> ResponseReturnValue:
    """Answer the bars around a trade with its fill, its levels and its exit."""
    row = _opening(sid) or abort(404)
    try:
        begin = parse(row.opened_at or row.decided_at or row.bar_time)
        end = parse(row.closed_at) if row.closed_at else backing().now()
        timeframe = _drawn_on(row, end - begin)
        step = duration(timeframe)
        as_of = min(end + BARS_AFTER * step, backing().now())
        number = max(1, min(MOST, int((as_of - begin) / step) + BARS_BEFORE))
        bars = desk_view().bars(row.instance, timeframe, clock.iso(as_of), number)
        drawn = chart_data.trade(row, bars, timeframe) if bars else None
    except (ValueError, OverflowError):
        abort(404)  # a time of a damaged row: the page says that it has no chart
    return jsonify(chart=drawn, cited=[]) if drawn else abort(404)


def _drawn_on(row: SignalRow, lasted: timedelta) -> str:
    """Return the shortest timeframe of its symbol on which the whole trade fits into a chart.

    Its own, or a longer one of the desk; the longest where it fits into none.
    """
    setup = backing().desk.setups.get(row.instance)
    streams = {row.timeframe, *(setup.instance.timeframes if setup else ())}
    longer = sorted(
        filter(lambda frame: duration(frame) >= duration(row.timeframe), streams), key=duration
    )
    room = MOST - BARS_BEFORE - BARS_AFTER
    return next((frame for frame in longer if lasted / duration(frame) <= room), longer[-1])


def note(sid: str) -> ResponseReturnValue:
    """Write a note and tags to a trade; an empty note without tags takes them away."""

    def run() -> CommandOutcome:
        if _opening(sid) is None:
            raise ConfigError(f"there is no trade {figures.sanitize(sid, 40)}")
        fields = words()
        text = figures.sanitize(fields.get("note", "").strip(), LONGEST_NOTE + 1)
        if len(text) > LONGEST_NOTE:
            raise ConfigError(f"a note has at most {LONGEST_NOTE:,} characters")
        tags, revision = _tags(fields.get("tags", "")), fields.get("revision", "0")
        if not (revision.isascii() and revision.isdigit() and len(revision) < 10):
            raise ConfigError("revision is the number of the note that was shown")
        return _write(sid, text, tags, int(revision))

    return command("note", sid, run, back=url_for("torra_agents.order", sid=sid))


def _write(sid: str, text: str, tags: Sequence[str], revision: int) -> CommandOutcome:
    database, actor = backing().database, visitor().actor
    with database.transaction():
        all_tags = note_table.tag_names(database)
        if len({*all_tags, *tags}) > max(MOST_KNOWN, len(all_tags)):
            raise ConfigError(
                f"the desk has {len(all_tags)} tags already, and {MOST_KNOWN} are the most: use "
                "some of those, so that results by tag say something"
            )
        was = note_table.trade_note(database, sid)
        before = {"note": was.note[:AUDITED], "tags": " ".join(was.tags)}
        after = {"note": text[:AUDITED], "tags": " ".join(tags)}
        if not note_table.write_trade_note(
            database, sid, text, tags, revision=revision, actor=actor
        ):
            raise ConfigError(
                "Somebody wrote to this trade after you opened the page. Load the page to see it, "
                "then write yours again"
            )
        database.audit(
            actor=actor, address=request.remote_addr or "", action="note", target=sid,
            outcome="done", before=before, after=after,
        )  # fmt: skip
    return CommandOutcome(
        "done", "The note is saved.", on_record=True, more={"revision": revision + 1}
    )


def _tags(text: str) -> list[str]:
    """Return the tags that a person typed, each once, in lower case; raises ConfigError."""
    tags = list(dict.fromkeys(text.replace(",", " ").lower().split()))
    if len(tags) > MOST_TAGS:
        raise ConfigError(f"a trade has at most {MOST_TAGS} tags, these are {len(tags)}")
    for tag in tags:
        if not TAG.fullmatch(tag):
            raise ConfigError(
                f"{figures.sanitize(tag, 40)} is no tag: a tag has letters, digits, - and _, "
                f"{LONGEST_TAG} at most"
            )
    return tags


def _opening(sid: str) -> SignalRow | None:
    """Return the signal that opened a trade, None where there is none of this id."""
    row = backing().database.order(sid) or SignalRow()
    return row if row.kind == "open" else None


ROUTES = (
    Route("/api/v1/signals/<sid>/chart", "api_trade_chart", api_trade_chart, reply="json"),
    Route(
        "/api/v1/trades/<sid>/note", "note", note,
        methods=("POST",), scope="approve", reply="json", per_minute=60,
        body={
            "note": {"type": "string", "maxLength": LONGEST_NOTE},
            "tags": {"type": "string", "description": "words, by space or comma"},
            "revision": {"type": "string", "description": "the revision that was shown, 0 first"},
        },
    ),
)  # fmt: skip
