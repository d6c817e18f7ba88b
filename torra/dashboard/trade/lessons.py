"""The page Lessons: what closed trades and vetoes came to, and what was written of them.

Facts stand beside words, with the ticks that were told of each lesson. The list is searched,
narrowed and read on by a cursor; the API answers the same. The page says whose ticks are told of
lessons at all. Without a desk behind the pages it says so. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flask import jsonify, url_for
from flask.typing import ResponseReturnValue

from agent_config import AgentSettings
from instance_database import Database
from torra.clock import duration, iso
from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.trade import trade_rows
from torra.dashboard.view import list_query
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.list_query import ListQuery
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.exhibits import lesson_words
from torra.exhibits.lesson_words import ThesisText
from torra.lessons.lesson import KINDS, Lesson, LessonFacts, Thesis
from torra.money.open_positions import PAPER
from torra.store import lessons as lesson_table
from torra.store.standings import WarmUps
from torra.store.trade.rows import SignalRow
from torra.words.badge import Badge
from torra.words.orders import OUTCOMES

if TYPE_CHECKING:
    from torra.desk.looking_desk import RunningSetup

SHOWN: Final = 20
MOST: Final = 200
"""Lessons on a page, and the most that the API returns at once."""

TICKS: Final = 20
"""Ticks of a lesson that a page links to, the newest."""

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "side": ("LONG", "SHORT"),
    "outcome": tuple(OUTCOMES),
    "kind": KINDS,
}
"""What a list can be narrowed to where the words are fixed."""

REFUSED: Final = {
    False: Badge("⊘", "vetoed", "warn"),
    True: Badge("⊘", "declined", "warn"),
}
"""Marks of an opening that the gate took away, or the trader."""


class LessonShown(NamedTuple):
    """A lesson with what the store has beside it; `money` is the currency of its account.

    `signal` is that of its trade, None where there is none. `ticks` are the keys of the newest that
    were told of it; `more` is whether there are others.
    """

    lesson: Lesson
    signal: SignalRow | None
    money: str
    warm_up: bool
    ticks: Sequence[str]
    more: bool

    @property
    def mark(self) -> Badge | None:
        """The mark of an opening that the gate or the trader took away; None for a trade."""
        facts = self.lesson.facts
        return REFUSED[facts.declined] if facts.kind == "vetoed" else None


class LessonReaders(NamedTuple):
    """The instances of a profile, and the agents whose settings say what they learn of lessons."""

    instances: Sequence[str]
    agents: AgentSettings

    @property
    def roles(self) -> list[str]:
        """The agents that read notes: of those that the profile names, whoever is asked."""
        seats = (*self.agents.desk(), self.agents.consulted())
        return [role for role in dict.fromkeys(self.agents.memory.roles) if role in seats]


def lessons() -> str:
    """Show the lessons of closed trades and of vetoes, newest first."""
    if state().backing is None:
        return desk_page("lessons.html", here=False)
    query = list_query.read(QUERY)
    rows, older = _listed(query)
    context = backing()
    return desk_page(
        "lessons.html",
        here=True,
        lessons=shown_of(rows, context),
        says=lesson_words,
        orders=trade_rows,
        iso=iso,
        count=lesson_table.lesson_count(context.database),
        readers=readers_of(context),
        query=query,
        chosen={**dict.fromkeys(QUERY, ""), **query.words},
        filters=_filters(context, rows),
        older=list_query.address(".lessons", QUERY, before=older) if older else None,
        newest=list_query.address(".lessons", QUERY) if query.before else None,
    )


def api_lessons() -> ResponseReturnValue:
    """Answer lessons as stored, newest first; `next` is what to ask as `before`."""
    rows, older = _listed(list_query.read(QUERY))
    return jsonify(document(backing().database, rows, older))


def document(database: Database, rows: Iterable[Lesson], older: int | None) -> dict[str, Any]:
    """Return lessons as stored, each with the newest ticks that were told of it."""
    warmed = WarmUps(database)
    return {
        "lessons": [
            lesson_words.as_json(lesson, warm_up=_in_warm_up(lesson.facts, warmed))
            | {"ticks": lesson_table.lesson_ticks(database, lesson.number, TICKS)}
            for lesson in rows
        ],
        "next": older,
        "stored": lesson_table.lesson_count(database),
    }


def shown_of(rows: Sequence[Lesson], context: PageContext) -> list[LessonShown]:
    """Return lessons as a page shows them."""
    warmed, currency = WarmUps(context.database), cache(context.currency)
    shown = []
    for lesson in rows:
        signal = context.database.order(lesson.facts.sid)
        ticks = lesson_table.lesson_ticks(context.database, lesson.number, TICKS + 1)
        money = currency(signal.bridge or PAPER) if signal else ""
        warm_up, more = _in_warm_up(lesson.facts, warmed), len(ticks) > TICKS
        shown.append(LessonShown(lesson, signal, money, warm_up, ticks[:TICKS], more))
    return shown


def of_trade(sid: str) -> LessonShown | None:
    """Return the lesson of a trade; None while there is none."""
    lesson = backing().database.lesson(sid)
    return shown_of([lesson], backing())[0] if lesson else None


def written_of(sid: str) -> Thesis | None:
    """Return what the trader wrote of an opening, as it is stored; None where it wrote nothing."""
    situation = backing().database.situation(sid)
    return situation.thesis if situation else None


def thesis_of(sid: str, timeframe: str) -> ThesisText | None:
    """Return what the trader wrote of an opening, beside what came of it; None without it."""
    if lesson := backing().database.lesson(sid):
        return lesson_words.thesis(lesson.facts)
    thesis = written_of(sid)
    return None if thesis is None else lesson_words.thesis_text(thesis, timeframe)


def lesson_address(number: int) -> str:
    """Return the address at which the page Lessons shows a lesson first."""
    return url_for(".lessons", before=number + 1, _anchor=f"lesson-{number}")


def readers_of(context: PageContext) -> dict[str, LessonReaders]:
    """Return whose ticks are told of lessons, by profile."""
    rows: dict[str, list[RunningSetup]] = {}
    for setup in context.desk.setups.values():
        rows.setdefault(setup.instance.profile, []).append(setup)
    return {
        name: LessonReaders([one.instance.id for one in setups], setups[0].profile.agents)
        for name, setups in rows.items()
    }


# --- details --------------------------------------------------------------------------------------


def _in_warm_up(facts: LessonFacts, warmed: WarmUps) -> bool:
    close = facts.bar_time + duration(facts.timeframe)
    return warmed.has(facts.instance, facts.timeframe, close)


def _listed(query: ListQuery) -> tuple[list[Lesson], int | None]:
    """Return the lessons of a page, and where the next page begins if there is one."""
    # one more than is shown, to know whether there are older ones
    rows = lesson_table.lesson_list(
        backing().database,
        {name: word for name, word in query.words.items() if name != "search"},
        search=query.words.get("search", ""),
        before=query.before,
        limit=query.limit + 1,
    )
    shown = rows[: query.limit]
    return shown, shown[-1].number if len(rows) > query.limit else None


def _filters(context: PageContext, rows: Sequence[Lesson]) -> dict[str, tuple[str, Sequence[str]]]:
    """Return the filters of the form: name, label, choices."""
    items = context.settings.instances
    authors = {lesson_words.RULES, *(text.author for lesson in rows for text in lesson.words)}
    return {
        "symbol": (
            "Symbol",
            list_query.offered("symbol", [*dict.fromkeys(item.symbol for item in items)]),
        ),
        "instance": ("Instance", list_query.offered("instance", [item.id for item in items])),
        **{name: (name.capitalize(), words) for name, words in CHOICES.items()},
        "author": ("Written by", list_query.offered("author", sorted(authors))),
    }


QUERY: Final[Fields] = {
    "search": {
        "type": "string",
        "description": "Words, or their beginnings, that must all stand in a lesson.",
    },
    "symbol": {"type": "string", "description": "Only this symbol."},
    "instance": {"type": "string", "description": "Only this instance."},
    "side": {"type": "string", "enum": list(CHOICES["side"])},
    "outcome": {"type": "string", "enum": list(CHOICES["outcome"])},
    "kind": {"type": "string", "enum": list(KINDS)},
    "author": {"type": "string", "description": "Only lessons of which this author wrote: rules, "
               "or the id of a model."},
    "before": {"type": "integer", "description": "The `next` of the answer before."},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SHOWN},
}  # fmt: skip

ROUTES = (
    Route("/lessons", "lessons", lessons, query=QUERY),
    Route("/api/v1/lessons", "api_lessons", api_lessons, reply="json", query=QUERY),
)
