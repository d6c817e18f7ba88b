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

from flask import jsonify
from flask.typing import ResponseReturnValue

from torra.clock import TIMEFRAMES
from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.screens.agent_effect import PER_MINUTE, Effect, effect
from torra.dashboard.streams import skips
from torra.dashboard.view import list_query, refusers
from torra.dashboard.view.list_query import ListQuery
from torra.dashboard.view.rendering import backing, desk_page, state, tick_link
from torra.exhibits import figures
from torra.store import tick_listing
from torra.store.tick_listing import AFTER_ALL, Place, TickKind
from torra.tick.marks import PROPOSED
from torra.words.deny_reasons import DenyReason
from torra.words.orders import HOLD_REASONS, REASONS
from torra.words.ticks import WITHOUT_SOME

if TYPE_CHECKING:
    from instance_database import Database

SHOWN: Final = 50
MOST: Final = 200
"""Ticks on a page, and the most that the API returns at once."""

COUNTED: Final = 50_000
"""Ticks of a range of days up to which each choice tells its count: more take too long."""

MOST_CLOSES: Final = 3_000
"""Closes of a page's time among which those without a tick are looked for."""

OF_CLOSES: Final = frozenset(("instance", "timeframe", "from", "to"))
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

LABELS: Final = {
    "instance": "Symbol",
    "timeframe": "Timeframe",
    "verdict": "Verdict",
    "action": "Done",
    "reason": "Why",
    "source": "Who decided",
}
"""What else a list is narrowed by: a field of a kind of tick, as the page calls it."""


class HistoryQuery(ListQuery):
    """What History is narrowed to and where it goes on; a dash asks for what has no word."""

    __slots__ = ()

    @property
    def mark(self) -> str:
        """The word of MARKS that the ticks have, "" for every tick."""
        return self.words.get("only", "")

    @property
    def place(self) -> Place:
        """Where the list begins: at its cursor, or at the end of its days."""
        return min(self.before or AFTER_ALL, (self.end, 0))

    def fits(self, kind: TickKind, without: str = "") -> bool:
        """Return whether a kind of tick is asked for, whatever is asked of one parameter."""
        marked = without == "only" or not self.mark or MARKS[self.mark][1](kind)
        return marked and all(
            word_of(name, kind) == self.words[name]
            for name in LABELS
            if name in self.words and name != without
        )


@dataclass(frozen=True, slots=True)
class HistoryList:
    """The ticks that a request asks for, with how many there are of each kind of tick.

    `counts` is None where they are not counted: too many, or of a mark that is not one of kinds.
    """

    database: Database
    query: HistoryQuery
    kinds: Sequence[TickKind]
    counts: Mapping[int, int] | None

    @classmethod
    def read(cls) -> HistoryList:
        """Return what a request asks for; ends it with 400 for words that mean nothing."""
        database, query = backing().database, HistoryQuery(*list_query.read(QUERY))
        kinds = tick_listing.tick_kinds(database)
        counts: Mapping[int, int] | None = {kind.id: kind.ticks for kind in kinds}
        if query.mark in refusers.WHO:
            counts = None
        elif {"from", "to"} & {*query.words}:
            counts = tick_listing.counts_of_kinds(
                database, [kind.id for kind in kinds], query.begin, query.end, most=COUNTED
            )
        return cls(database, query, kinds, counts)

    @property
    def count(self) -> int | None:
        """How many ticks fit."""
        return self._sum(kind for kind in self.kinds if self.query.fits(kind))

    @property
    def all_ticks(self) -> int:
        """How many ticks there are, whatever is asked for."""
        return sum(kind.ticks for kind in self.kinds)

    def page(self) -> tuple[list[dict[str, Any]], str | None]:
        """Return the ticks of a page, and where the next page begins if there is one."""
        query, kinds = self.query, [kind.id for kind in self.kinds if self.query.fits(kind)]
        place: Place | None = None
        if who := refusers.WHO.get(query.mark):
            rows, place = refusers.searched(
                self.database, who, kinds, query.begin, query.place, query.limit
            )
        else:
            # one more than is shown, to know whether there are older ones
            rows = tick_listing.ticks_of_kinds(
                self.database, kinds, begin=query.begin, before=query.place, limit=query.limit + 1
            )
            if len(rows) > query.limit:
                rows = rows[:-1]
                place = refusers.place_of(rows[-1])
        return rows, "|".join(map(str, place)) if place else None

    def without_tick(
        self, rows: Sequence[Mapping[str, Any]], older: str | None
    ) -> list[dict[str, Any]]:
        """Return the closes without a tick in the time of a page, by stream and reason.

        None where the list is narrowed by what such a close does not have.
        """
        words = self.query.words
        if not OF_CLOSES.issuperset(words):
            return []
        first = str(rows[-1]["close_time"]) if older else self.query.begin
        skips = tick_listing.closes_without_tick(
            self.database, first, self.query.place[0], most=MOST_CLOSES
        )
        names = [name for name in LABELS if name in words]
        fits = [row for row in skips if all(row[name] == words[name] for name in names)]
        return sorted(
            fits, key=lambda row: (str(row["newest"]), str(row["instance"])), reverse=True
        )

    def marks(self) -> dict[str, int | None]:
        """Return the marks with how many ticks each would leave; "" for all of them."""
        here = [kind for kind in self.kinds if self.query.fits(kind, without="only")]
        counts = {"": self._sum(here)}
        for mark, (_, has) in MARKS.items():
            if mark == self.query.mark or not self._is_elsewhere(mark):
                counts[mark] = None if mark in refusers.WHO else self._sum(filter(has, here))
        return counts

    def choices(self, name: str) -> dict[str, int | None]:
        """Return the words that a parameter may have now, the most frequent first."""
        chosen = self.query.words.get(name)
        ticks = Counter({chosen: 0} if chosen else {})
        for kind in self.kinds:
            if self.query.fits(kind, without=name):
                known = kind.ticks if self.counts is None else self.counts[kind.id]
                ticks[word_of(name, kind)] += known
        return {
            word: None if self.counts is None else number
            for word, number in sorted(ticks.items(), key=lambda item: _order(name, *item))
            if number or word == chosen
        }

    def _is_elsewhere(self, mark: str) -> bool:
        """Return whether a mark is of another desk: of a trader that declines, or a swarm."""
        if mark in refusers.WHO:
            return not any(kind.source == refusers.SWARM for kind in self.kinds)
        return mark == "declined" and not any(kind.reason == DECLINED for kind in self.kinds)

    def _sum(self, kinds: Iterable[TickKind]) -> int | None:
        counts = self.counts
        return None if counts is None else sum(counts[kind.id] for kind in kinds)


def history_page() -> str:
    """Show the ticks that are asked for, newest first, with the choices and their counts."""
    if state().backing is None:
        return desk_page("history.html", here=False)
    history = HistoryList.read()
    rows, older = history.page()
    database, query = history.database, history.query
    return desk_page(
        "history.html",
        here=True,
        history=history,
        query=query,
        effect=_effect(history, rows) if query.mark == "changed" else None,
        marks=MARKS,
        labels=LABELS,
        meanings=MEANINGS,
        most_counted=COUNTED,
        lines=[(row, ListedTick.read(row)) for row in rows],
        refusals=refusers.refusals(database, rows),
        missing=history.without_tick(rows, older),
        run_text=skips.run_text,
        tick_link=tick_link,
        label=label,
        proposed=PROPOSED,
        address=partial(list_query.address, ".history", QUERY),
        older=older,
        file=list_query.address(".ticks_csv", QUERY),
    )


def api_history() -> ResponseReturnValue:
    """Answer ticks, newest first, and how many fit; `next` is what to ask as `before`."""
    history = HistoryList.read()
    rows, older = history.page()
    marks = {mark: ticks for mark, ticks in history.marks().items() if mark}
    return jsonify(
        ticks=[_plain(row) for row in rows],
        skipped=[_plain(row) for row in history.without_tick(rows, older)],
        next=older,
        count=history.count,
        counts={name: history.choices(name) for name in LABELS} | {"only": marks},
    )


def every_tick(
    database: Database, query: HistoryQuery, at_once: int
) -> Iterator[Mapping[str, Any]]:
    """Yield all ticks that are asked for, newest first, some at a time."""
    kinds = [kind.id for kind in tick_listing.tick_kinds(database) if query.fits(kind)]
    ticks = tick_listing.every_tick_of_kinds(
        database, kinds, begin=query.begin, before=query.place, at_once=at_once
    )
    while rows := list(islice(ticks, at_once)):
        yield from refusers.vetoed_by(database, refusers.WHO.get(query.mark, ""), rows)


def word_of(name: str, kind: TickKind) -> str:
    """Return the word that a kind of tick has for a parameter; a dash for none."""
    return str(getattr(kind, name)) or "-"


def label(name: str, word: str) -> str:
    """Return the word of a parameter as a trader says it."""
    if word == "-" and name in ("action", "source", "reason"):
        return "not recorded"
    if name in ("action", "source"):
        return figures.mark(word).word
    if name == "reason":
        return HOLD_REASONS.get(word) or REASONS.get(word) or figures.sanitize(word, 60)
    return figures.sanitize(word, 80)


# --- details --------------------------------------------------------------------------------------


def _effect(history: HistoryList, rows: Sequence[Mapping[str, Any]]) -> Effect:
    """Return what all changed verdicts came to, and those of a page."""
    _, is_changed = MARKS["changed"]
    changed = sum(kind.ticks for kind in history.kinds if is_changed(kind))
    return effect(backing(), rows, changed, history.all_ticks)


def _order(name: str, word: str, ticks: int) -> tuple[int, str]:
    """Return where a word stands among its like: by length of time, by name, or by frequency."""
    if name == "timeframe":
        return ([*TIMEFRAMES, word].index(word)), word
    return (0 if name == "instance" else -ticks), word


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
