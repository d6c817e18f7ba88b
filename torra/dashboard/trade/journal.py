"""A trade as its page tells it: its chart, what agents, gate and conviction did, and your note.

The chart has the bars around the trade with its fill, its levels and its exit. What made it is read
from the record of the tick that opened it. A note and tags are a person's own; they are found on
the page Trades, in its file and in its sums by tag, and touch no order. Whoever saves a note names
the revision that they saw: of two people one is told that the other wrote first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from flask import abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from torra import clock
from torra.clock import duration, parse
from torra.dashboard.cells import chart_data
from torra.dashboard.doors.access import visitor
from torra.dashboard.doors.routes import Route
from torra.dashboard.record.shown import TickView
from torra.dashboard.trade import proposals, trade_rows, without_tick
from torra.dashboard.view.bar_reading import MOST
from torra.dashboard.view.commanding import CommandOutcome, command, words
from torra.dashboard.view.rendering import backing, desk_view, state
from torra.errors import ConfigError
from torra.exhibits import figures
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


@dataclass(frozen=True, slots=True)
class MoneyContribution:
    """What one part of the desk did to a trade: its name, its word and the sentence to it."""

    name: str
    word: str
    more: str


def made_of(row: SignalRow) -> list[MoneyContribution]:
    """Return what the agents, the gate and conviction did to a trade; empty where nobody knows."""
    if row.kind != "open":
        return []
    try:
        told = desk_view().tick(row.instance, row.timeframe, row.bar_time)
    except (ValueError, OverflowError):  # a time of a damaged row
        told = None
    if told is None:
        return []
    record = load(row.sid, told, TickView)
    if isinstance(record, Damaged):
        return [
            MoneyContribution("Record of its tick", "damaged", figures.sanitize(record.reason, 200))
        ]
    word, more = without_tick.without(record)
    return [
        MoneyContribution("Without agents", word, more),
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
    lots = figures.plain(row.filled, 2)
    why = trade_rows.explain(row.close_reason)
    ended = f"closed at {left}{': ' + why if why else ''}"
    r = "" if row.r_multiple is None else f", {figures.format_signed(row.r_multiple, 2)}\u00a0R"
    came = f"{figures.format_signed(row.profit, 2)} {currency}".rstrip()
    return f"{did} {lots} lots at {fill}, {ended}. {came}{r}."


def outcome_sentence(record: TickView, proposal: ProposalRow | None) -> str:
    """Return in a sentence or two what a tick's opening became so far; "" where it opened nothing.

    `proposal` is the one that it asked a person about.
    """
    behind = state().backing
    if behind is None:
        return ""
    meaning = proposals.mark_of(proposal).meaning if proposal else ""
    answered = f"{capital(meaning or 'it was decided')}." if proposal else ""
    if proposal and proposal.state == "WAITING":
        return answered
    sid = next((one.sid for one in record.signals if one.kind == "open" and one.sid), None)
    sid = proposal.sid if proposal else sid
    row = (sid and behind.database.order(sid)) or SignalRow()
    spec, currency = without_tick.terms(record)
    came = headline(row, trade_rows.digits_of(spec), currency)
    if not came and row.kind == "open":
        came = f"Its order: {trade_rows.state_mark(row.state).meaning or row.state}."
    return " ".join(filter(None, (answered, came)))


def _gate(multiplier: float) -> MoneyContribution:
    """Return what the ruling in force did; with agents in shadow it is that of the rules alone."""
    told = figures.plain(multiplier, 2)
    if multiplier >= 1.0:
        return MoneyContribution("Gate", "no cut", "it left the size as it was")
    return MoneyContribution("Gate", f"× {told}", f"it left {told} of the size")


def _conviction(record: TickView, side: str) -> MoneyContribution:
    told = record.deliberation.panel.agreement(side)
    if record.deliberation.in_shadow:
        return MoneyContribution(
            "Conviction", "nothing", "the agents looked on: they changed no size"
        )
    if outage_of(record) is not None:
        return MoneyContribution("Conviction", f"× {figures.plain(told.conviction, 2)}", NO_AGENT)
    way = SIDES[side].verb if side in SIDES else "trade"
    lost = round(100 * told.raw) != round(100 * told.conviction)
    return MoneyContribution(
        "Conviction", f"× {figures.plain(told.conviction, 2)}",
        f"the agents' conviction in the {way} was {100 * told.conviction:.0f} %"
        + (f": {100 * told.raw:.0f} % before what speaks against it" if lost else ""),
    )  # fmt: skip


def _budget(record: TickView) -> Iterator[MoneyContribution]:
    """Yield what the regime of a swarm left of a size; nothing of another desk's trade."""
    left, told = record.budget, record.deliberation.swarm
    if left is None or told is None:
        return
    market = swarm_words.market(told.regime.code)
    share = f"{market} left {100 * left:.0f} % of the size" if market else ""
    word = "no cut" if left >= 1.0 else f"× {figures.plain(left, 2)}"
    yield MoneyContribution("Budget", word, share or "what kind of market it was is not recorded")


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
        told = desk_view().bars(row.instance, timeframe, clock.iso(as_of), number)
        drawn = chart_data.trade(row, told, timeframe) if told else None
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
        (one for one in streams if duration(one) >= duration(row.timeframe)), key=duration
    )
    room = MOST - BARS_BEFORE - BARS_AFTER
    return next((one for one in longer if lasted / duration(one) <= room), longer[-1])


def note(sid: str) -> ResponseReturnValue:
    """Write a note and tags to a trade; an empty note without tags takes them away."""

    def run() -> CommandOutcome:
        if _opening(sid) is None:
            raise ConfigError(f"there is no trade {figures.sanitize(sid, 40)}")
        told = words()
        text = figures.sanitize(told.get("note", "").strip(), LONGEST_NOTE + 1)
        if len(text) > LONGEST_NOTE:
            raise ConfigError(f"a note has at most {LONGEST_NOTE:,} characters")
        tags, seen = _tags(told.get("tags", "")), told.get("revision", "0")
        if not (seen.isascii() and seen.isdigit() and len(seen) < 10):
            raise ConfigError("revision is the number of the note that was shown")
        return _write(sid, text, tags, int(seen))

    return command("note", sid, run, back=url_for("torra_agents.signal", sid=sid))


def _write(sid: str, text: str, tags: Sequence[str], seen: int) -> CommandOutcome:
    database, actor = backing().database, visitor().actor
    with database.transaction():
        known = note_table.tag_names(database)
        if len({*known, *tags}) > max(MOST_KNOWN, len(known)):
            raise ConfigError(
                f"the desk has {len(known)} tags already, and {MOST_KNOWN} are the most: use some "
                "of those, so that results by tag say something"
            )
        was = note_table.trade_note(database, sid)
        before = {"note": was.note[:AUDITED], "tags": " ".join(was.tags)}
        after = {"note": text[:AUDITED], "tags": " ".join(tags)}
        if not note_table.write_trade_note(database, sid, text, tags, revision=seen, actor=actor):
            raise ConfigError(
                "Somebody wrote to this trade after you opened the page. Load the page to see it, "
                "then write yours again"
            )
        database.audit(
            actor=actor, address=request.remote_addr or "", action="note", target=sid,
            outcome="done", before=before, after=after,
        )  # fmt: skip
    return CommandOutcome("done", "The note is saved.", on_record=True, more={"revision": seen + 1})


def _tags(text: str) -> list[str]:
    """Return the tags that a person typed, each once, in lower case; raises ConfigError."""
    found = list(dict.fromkeys(text.replace(",", " ").lower().split()))
    if len(found) > MOST_TAGS:
        raise ConfigError(f"a trade has at most {MOST_TAGS} tags, these are {len(found)}")
    for tag in found:
        if not TAG.fullmatch(tag):
            raise ConfigError(
                f"{figures.sanitize(tag, 40)} is no tag: a tag has letters, digits, - and _, "
                f"{LONGEST_TAG} at most"
            )
    return found


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
