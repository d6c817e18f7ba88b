"""The page History: every tick of the desk, narrowed by what it was, page by page.

A tick can be found by symbol, timeframe, verdict, what was done, why not, who decided, its date,
and by marks: opened, proposed, changed by agents, vetoed, by whom of a swarm, denied, degraded.
Beside every choice stands how many ticks it would leave, except beside those that only a look at
each tick can tell. The list goes on by a cursor and can be taken as a file
(torra.dashboard.screens.files). However many ticks there are, a page reads those that it shows
(torra.store.tick_listing). Without a desk behind the pages the page says so. Nothing is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from flask import abort, jsonify, request
from flask.typing import ResponseReturnValue

from torra.clock import TIMEFRAMES
from torra.dashboard.cells import skips
from torra.dashboard.cells.common import action_cell, state_cell
from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.screens.agent_effect import PER_MINUTE, Effect, effect
from torra.dashboard.view import list_query, refusers
from torra.dashboard.view.rendering import backing, desk_page, state, tick_link
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.exhibits.figures import cell
from torra.store import tick_listing
from torra.store.tick_listing import AFTER_ALL, Place, TickKind
from torra.tick.marks import PROPOSED
from torra.words.deny_reasons import DenyReason
from torra.words.orders import REASONS, WHY_HELD
from torra.words.ticks import WITHOUT_SOME

if TYPE_CHECKING:
    from instance_database import Database

SHOWN: Final = 50
MOST: Final = 200
"""Ticks on a page, and the most that the API returns at once."""

COUNTED: Final = 50_000
"""Ticks of a range of days up to which each choice tells its count: more take too long."""

LOOKED_AT: Final = 3_000
"""Closes of a page's time among which those without a tick are looked for."""

ONLY_STREAMS: Final = frozenset(("instance", "timeframe"))
"""What a close without a tick has as well: it has no verdict, and nothing was done."""

VETOES: Final = frozenset((DenyReason.GATE_VETO, DenyReason.GATE_CANNOT_OPEN))
DECLINED: Final = DenyReason.TRADER_DECLINED
DENIALS: Final = frozenset(DenyReason)
OPENED: Final = ("OPEN_BUY", "OPEN_SELL", "REVERSE")
MARKS: Final[Mapping[str, tuple[str, Callable[[TickKind], bool]]]] = {
    "opened": ("Opened", lambda kind: kind.action in OPENED),
    "proposed": ("Proposed", lambda kind: kind.reason == PROPOSED),
    "changed": ("Verdict changed", lambda kind: kind.verdict != kind.l1_verdict),
    "vetoed": ("Vetoed", lambda kind: kind.reason in VETOES),
    "judge": ("Judge's veto", refusers.may_be_of_a_swarm),
    "officer": ("Risk officer's veto", refusers.may_be_of_a_swarm),
    "declined": ("Declined", lambda kind: kind.reason == DECLINED),
    "denied": ("Denied", lambda kind: kind.reason in DENIALS),
    "degraded": ("Agents missing", lambda kind: kind.source in WITHOUT_SOME),
}
"""What a trader looks for first: the word of each, and which kinds of ticks have it."""

MEANINGS: Final = {
    "opened": "ticks that ordered a position by themselves; those that asked you are proposed",
    "proposed": "ticks that asked a person to approve an order",
    "changed": "ticks whose verdict is not the one of the bars alone; torra effect also lists "
    "those on which agents changed only the size or the order",
    "vetoed": "ticks on which the gate, or a swarm's judge or risk officer, stopped an opening, or "
    "an earlier veto or decline of that side still held",
    "judge": "ticks on which a swarm's judge stopped an opening of its own accord",
    "officer": "ticks on which a swarm's risk officer stopped an opening",
    "declined": "ticks on which the trader declined an opening",
    "denied": "ticks on which a check stopped an order, vetoes and declines among them",
    "degraded": "ticks on which some agents gave no answer, or all",
}

READINGS: Final[Mapping[str, Callable[[TickKind], str]]] = {
    "instance": lambda kind: kind.instance,
    "timeframe": lambda kind: kind.timeframe,
    "verdict": lambda kind: kind.verdict,
    "action": lambda kind: kind.action,
    "reason": lambda kind: kind.reason,
    "source": lambda kind: kind.source,
}
"""What else a list is narrowed by: the name of a parameter, and its word of a kind of tick."""

LABELS: Final = {
    "instance": "Symbol",
    "timeframe": "Timeframe",
    "verdict": "Verdict",
    "action": "Done",
    "reason": "Why",
    "source": "Who decided",
}


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """What a list is narrowed to and where it goes on; times are ISO 8601."""

    only: Mapping[str, str]
    mark: str = ""
    begin: str = ""
    end: str = "~"
    before: Place = AFTER_ALL
    limit: int = SHOWN

    def fits(self, kind: TickKind, without: str = "") -> bool:
        """Return whether a kind of tick is asked for, whatever is asked of one parameter."""
        marked = without == "only" or not self.mark or MARKS[self.mark][1](kind)
        return marked and all(
            READINGS[name](kind) == word for name, word in self.only.items() if name != without
        )

    @property
    def dated(self) -> bool:
        """Whether days are asked for."""
        return bool(self.begin) or self.end != "~"

    @property
    def place(self) -> Place:
        """Where the list begins: at its cursor, or at the end of its days."""
        return min(self.before, (self.end, 0))

    @property
    def filtered(self) -> bool:
        """Whether it leaves ticks out."""
        return bool(self.only or self.mark or self.dated)


@dataclass(frozen=True, slots=True)
class Choice:
    """A word to choose, what it is called, how many ticks it would leave, and its address."""

    word: str
    label: str
    ticks: int | None
    chosen: bool
    address: str = ""
    title: str = ""


def history_page() -> str:
    """Show the ticks that are asked for, newest first, with the choices and their counts."""
    if state().backing is None:
        return desk_page("history.html", here=False)
    try:
        asked = asked_for()
    except ConfigError as error:
        abort(400, str(error))
    database = backing().database
    kinds = tick_listing.tick_kinds(database)
    counts = _counts(database, asked, kinds)
    rows, older = _listed(database, asked, kinds)
    return desk_page(
        "history.html",
        here=True,
        asked=asked,
        effect=_effect(kinds, rows) if asked.mark == "changed" else None,
        told=_count_sentence(asked, kinds, counts),
        marks=_marks(asked, kinds, counts),
        filters={
            name: (label, _choices(name, asked, kinds, counts)) for name, label in LABELS.items()
        },
        known={name: request.args.get(name, "")[:10] for name in ("from", "to")},
        meaning=MEANINGS.get(asked.mark, ""),
        lines=[(row, ListedTick.read(row)) for row in rows],
        refusals={
            number: reason for number, (_, reason) in refusers.refusals(database, rows).items()
        },
        missing=_without_tick(database, asked, rows, older),
        run_text=skips.run_text,
        tick_link=tick_link,
        state_cell=state_cell,
        action_cell=action_cell,
        cell=cell,
        why=why,
        who=partial(_label, "source"),
        older=list_query.address(".history", QUERY, before=older) if older else None,
        newest=list_query.address(".history", QUERY) if asked.before != AFTER_ALL else None,
        file=list_query.address(".ticks_csv", QUERY),
    )


def api_history() -> ResponseReturnValue:
    """Answer ticks, newest first, and how many fit; `next` is what to ask as `before`."""
    try:
        asked = asked_for()
    except ConfigError as error:
        return jsonify(error=str(error), status=400), 400
    database = backing().database
    kinds = tick_listing.tick_kinds(database)
    counts = _counts(database, asked, kinds)
    rows, older = _listed(database, asked, kinds)
    return jsonify(
        ticks=[_plain(row) for row in rows],
        skipped=[_plain(row) for row in _without_tick(database, asked, rows, older)],
        next=older,
        count=None if counts is None else _sum(asked, kinds, counts),
        counts={
            name: {one.word: one.ticks for one in _choices(name, asked, kinds, counts)}
            for name in LABELS
        }
        | {"only": {one.word: one.ticks for one in _marks(asked, kinds, counts) if one.word}},
    )


def asked_for() -> HistoryQuery:
    """Return what a request asks for; raises ConfigError for words that mean nothing."""
    asked = list_query.read(QUERY)
    return HistoryQuery(
        # a tick that has no word of a kind is asked for by a dash
        {
            name: "" if word == "-" else word
            for name, word in asked.words.items()
            if name in READINGS
        },
        asked.words.get("only", ""),
        asked.begin,
        asked.end,
        asked.before or AFTER_ALL,
        asked.limit,
    )


def every_tick(
    database: Database, asked: HistoryQuery, at_once: int
) -> Iterator[Mapping[str, Any]]:
    """Yield all ticks that are asked for, newest first, some at a time."""
    kinds = [kind.id for kind in tick_listing.tick_kinds(database) if asked.fits(kind)]
    found = tick_listing.every_tick_of_kinds(
        database, kinds, begin=asked.begin, before=asked.place, at_once=at_once
    )
    while rows := list(islice(found, at_once)):
        yield from refusers.vetoed_by(database, refusers.WHO.get(asked.mark, ""), rows)


# --- details --------------------------------------------------------------------------------------


def _listed(
    database: Database, asked: HistoryQuery, kinds: Sequence[TickKind]
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the ticks of a page, and where the next page begins if there is one."""
    fitting = [kind.id for kind in kinds if asked.fits(kind)]
    if who := refusers.WHO.get(asked.mark):
        found, place = refusers.searched(
            database, who, fitting, asked.begin, asked.place, asked.limit
        )
        return found, _cursor(place)
    # one more than is shown, to know whether there are older ones
    rows = tick_listing.ticks_of_kinds(
        database, fitting, begin=asked.begin, before=asked.place, limit=asked.limit + 1
    )
    more = len(rows) > asked.limit
    return rows[: asked.limit], _cursor(refusers.place_of(rows[asked.limit - 1]) if more else None)


def _effect(kinds: Sequence[TickKind], rows: Sequence[Mapping[str, Any]]) -> Effect:
    """Return what all changed verdicts came to, and those of a page."""
    changed = sum(kind.ticks for kind in kinds if MARKS["changed"][1](kind))
    return effect(backing(), rows, changed, sum(kind.ticks for kind in kinds))


def _cursor(place: Place | None) -> str | None:
    return "|".join(map(str, place)) if place else None


def _without_tick(
    database: Database, asked: HistoryQuery, rows: Sequence[Mapping[str, Any]], older: str | None
) -> list[dict[str, Any]]:
    """Return the closes without a tick in the time of a page, by stream and reason.

    None where the list is narrowed by what such a close does not have.
    """
    if asked.mark or not ONLY_STREAMS.issuperset(asked.only):
        return []
    first = str(rows[-1]["close_time"]) if older else asked.begin
    found = tick_listing.closes_without_tick(database, first, asked.place[0], most=LOOKED_AT)
    fits = [row for row in found if all(row[name] == asked.only[name] for name in asked.only)]
    return sorted(fits, key=lambda row: (str(row["newest"]), str(row["instance"])), reverse=True)


def _counts(
    database: Database, asked: HistoryQuery, kinds: Sequence[TickKind]
) -> Mapping[int, int] | None:
    """Return how many ticks of each kind there are in the days; None where they are not counted.

    That is of too many, and of a mark that is not one of kinds.
    """
    if asked.mark in refusers.WHO:
        return None
    if not asked.dated:
        return {kind.id: kind.ticks for kind in kinds}
    return tick_listing.counts_of_kinds(
        database, [kind.id for kind in kinds], asked.begin, asked.end, most=COUNTED
    )


def _sum(asked: HistoryQuery, kinds: Sequence[TickKind], counts: Mapping[int, int]) -> int:
    return sum(counts[kind.id] for kind in kinds if asked.fits(kind))


def _count_sentence(
    asked: HistoryQuery, kinds: Sequence[TickKind], counts: Mapping[int, int] | None
) -> str:
    """Return how many ticks are listed, in words."""
    if asked.mark in refusers.WHO:
        return "They are not counted: only a look at each vetoed tick tells who vetoed it."
    if counts is None:
        return f"More than {COUNTED:,} ticks closed in these days: choose fewer days to count them."
    number = _sum(asked, kinds, counts)
    ticks = f"{number:,} tick{'' if number == 1 else 's'}"
    if not asked.filtered:
        return f"{ticks} in all."
    return f"{ticks} of {sum(kind.ticks for kind in kinds):,}."


def _marks(
    asked: HistoryQuery, kinds: Sequence[TickKind], counts: Mapping[int, int] | None
) -> list[Choice]:
    """Return the marks with their counts, and before them the choice of all ticks."""
    here = [kind for kind in kinds if asked.fits(kind, without="only")]
    found = []
    for word, label in (("", "All"), *((word, label) for word, (label, _) in MARKS.items())):
        ticks = None
        if counts is not None and word not in refusers.WHO:
            ticks = sum(counts[kind.id] for kind in here if not word or MARKS[word][1](kind))
        if word != asked.mark and _is_elsewhere(word, kinds):
            continue
        found.append(
            Choice(
                word,
                label,
                ticks,
                word == asked.mark,
                list_query.address(".history", QUERY, only=word or None),
                MEANINGS.get(word, ""),
            )
        )
    return found


def _is_elsewhere(mark: str, kinds: Iterable[TickKind]) -> bool:
    """Return whether a mark is of another desk: one with a trader that declines, or a swarm."""
    if mark in refusers.WHO:
        return not any(kind.source == refusers.SWARM for kind in kinds)
    return mark == "declined" and not any(kind.reason == DECLINED for kind in kinds)


def _choices(
    name: str, asked: HistoryQuery, kinds: Sequence[TickKind], counts: Mapping[int, int] | None
) -> list[Choice]:
    """Return the words that a parameter may have now, the most frequent first."""
    reading, chosen = READINGS[name], asked.only.get(name)
    found: Counter[str] = Counter()
    for kind in kinds:
        if asked.fits(kind, without=name):
            found[reading(kind)] += kind.ticks if counts is None else counts[kind.id]
    if chosen is not None:
        found[chosen] += 0
    return [
        Choice(word or "-", _label(name, word), None if counts is None else ticks, word == chosen)
        for word, ticks in sorted(found.items(), key=lambda item: _order(name, *item))
        if ticks or word == chosen
    ]


def _order(name: str, word: str, ticks: int) -> tuple[int, str]:
    """Return where a word stands among its like: by length of time, by name, or by frequency."""
    if name == "timeframe":
        return ([*TIMEFRAMES, word].index(word)), word
    return (0 if name == "instance" else -ticks), word


def _label(name: str, word: str) -> str:
    """Return a word as a trader says it."""
    if name in ("action", "source"):
        return figures.mark(word).word if word else "not recorded"
    return why(word) if name == "reason" else figures.sanitize(word, 80)


def why(reason: str) -> str:
    """Return the reason of an action in few words."""
    known = WHY_HELD.get(reason) or REASONS.get(reason)
    return known or figures.sanitize(reason, 60) or "not recorded"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as it is answered: None for a column that holds bytes, which none has."""
    return {
        name: None if isinstance(value, bytes) else value
        for name, value in row.items()
        if name != "sentiment_id"
    }


FILTERS: Final[Fields] = {
    "only": {"type": "string", "enum": list(MARKS), "description": "Only ticks with this mark."},
    "instance": {"type": "string", "description": "Only this instance."},
    "timeframe": {"type": "string", "description": "Only this timeframe."},
    "verdict": {"type": "string", "description": "Only this verdict."},
    "action": {"type": "string", "description": "Only this action; - for ticks without one."},
    "reason": {"type": "string", "description": "Only this reason of the action."},
    "source": {"type": "string", "description": "Only ticks that these decided."},
    "from": {"type": "string", "format": "date", "description": "First UTC day of the close."},
    "to": {"type": "string", "format": "date", "description": "Last UTC day of the close."},
}
QUERY: Final[Fields] = {
    **FILTERS,
    "before": {"type": "string", "description": "The `next` of the answer before."},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SHOWN},
}

ROUTES = (
    Route("/history", "history", history_page, per_minute=PER_MINUTE, query=QUERY),
    Api("/api/v1/history", "api_history", api_history, query=QUERY),
)
