"""The page Lessons: what closed trades and vetoes came to, and what was written of them.

Facts stand beside words, with the ticks that were told of each lesson. The list is searched,
narrowed and read on by a cursor; the API answers the same. The page says whose ticks are told of
lessons at all. Without a desk behind the pages it says so. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from agent_config import AgentSettings
from torra.clock import duration, iso
from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.trade import trade_rows
from torra.dashboard.view import list_query
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.list_query import ListQuery
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.errors import ConfigError
from torra.exhibits import figures, lesson_words
from torra.exhibits.lesson_words import ThesisText
from torra.lessons.lesson import KINDS, Lesson, LessonFacts, Thesis
from torra.money.open_positions import PAPER
from torra.store import lessons as lesson_table
from torra.store.standings import WarmUps
from torra.store.trade.rows import SignalRow
from torra.words.badge import Badge
from torra.words.orders import OUTCOMES

if TYPE_CHECKING:
    from torra.dashboard.view.desk_view import RunningSetup

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

FREE: Final = ("symbol", "instance", "author")
"""What it can be narrowed to by any word."""

VETOED: Final = Badge("⊘", "vetoed", "warn")
DECLINED: Final = Badge("⊘", "declined", "warn")
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
        if self.lesson.facts.kind != "vetoed":
            return None
        return DECLINED if self.lesson.facts.declined else VETOED


class LessonProfile(NamedTuple):
    """A profile, whether the ticks of its instances are told of lessons, and that in a sentence."""

    name: str
    use: str
    told: bool
    says: str


def lessons() -> str:
    """Show the lessons of closed trades and of vetoes, newest first."""
    if state().backing is None:
        return desk_page("lessons.html", here=False)
    try:
        asked = list_query.read(QUERY)
    except ConfigError:
        abort(400)
    found, older = _listed(asked)
    behind = backing()
    return desk_page(
        "lessons.html",
        here=True,
        lessons=shown_of(found, behind),
        says=lesson_words,
        orders=trade_rows,
        iso=iso,
        address=lesson_address,
        count=lesson_table.lesson_count(behind.database),
        told=told_by_profile(behind),
        asked=asked,
        known={**dict.fromkeys(QUERY, ""), **asked.words},
        filters=_filters(behind, found),
        nothing=lesson_words.NOTHING_YET,
        older=list_query.address(".lessons", QUERY, before=older) if older else None,
        newest=list_query.address(".lessons", QUERY) if asked.before else None,
    )


def api_lessons() -> ResponseReturnValue:
    """Answer lessons as stored, newest first; `next` is what to ask as `before`."""
    try:
        found, older = _listed(list_query.read(QUERY))
    except ConfigError as error:
        return jsonify(error=str(error), status=400), 400
    database = backing().database
    warmed = WarmUps(database)
    told = [
        lesson_words.as_json(one, warm_up=_in_warm_up(one.facts, warmed))
        | {"ticks": lesson_table.lesson_ticks(database, one.number, TICKS)}
        for one in found
    ]
    return jsonify(lessons=told, next=older)


def shown_of(found: Sequence[Lesson], behind: PageContext) -> list[LessonShown]:
    """Return lessons as a page shows them."""
    warmed, currency = WarmUps(behind.database), cache(behind.currency)
    shown = []
    for lesson in found:
        signal = behind.database.order(lesson.facts.sid)
        ticks = lesson_table.lesson_ticks(behind.database, lesson.number, TICKS + 1)
        money = currency(signal.bridge or PAPER) if signal else ""
        warm_up = _in_warm_up(lesson.facts, warmed)
        more = len(ticks) > TICKS
        shown.append(LessonShown(lesson, signal, money, warm_up, ticks[:TICKS], more))
    return shown


def of_trade(sid: str) -> LessonShown | None:
    """Return the lesson of a trade; None while there is none."""
    found = backing().database.lesson(sid)
    return shown_of([found], backing())[0] if found else None


def written_of(sid: str) -> Thesis | None:
    """Return what the trader wrote of an opening, as it is stored; None where it wrote nothing."""
    seen = backing().database.situation(sid)
    return seen.thesis if seen else None


def thesis_of(sid: str, timeframe: str) -> ThesisText | None:
    """Return what the trader wrote of an opening, beside what came of it; None without it."""
    known = backing().database.lesson(sid)
    if known:
        return lesson_words.thesis(known.facts)
    thesis = written_of(sid)
    return None if thesis is None else lesson_words.thesis_told(thesis, timeframe)


def lesson_address(number: int) -> str:
    """Return the address at which the page Lessons shows a lesson first."""
    return url_for(".lessons", before=number + 1, _anchor=f"lesson-{number}")


def told_by_profile(behind: PageContext) -> list[LessonProfile]:
    """Return whose ticks are told of lessons, by profile."""
    rows: dict[str, list[RunningSetup]] = {}
    for setup in behind.desk.setups.values():
        rows.setdefault(setup.instance.profile, []).append(setup)
    return [_profile(name, setups) for name, setups in rows.items()]


# --- details --------------------------------------------------------------------------------------


def _profile(name: str, setups: Sequence[RunningSetup]) -> LessonProfile:
    agents = setups[0].profile.agents
    told, memory = agents.remembers(), agents.memory
    names = ", ".join(figures.sanitize(one.instance.id, 40) for one in setups)
    if not told:
        says = f"not those of {names}. Lessons are written and stand here, and no agent sees them."
        if memory.use == "auto":
            says += (
                " Auto tells them where the mode of the desk asks for lessons; this one does not."
            )
    elif memory.notes and (roles := _readers(agents)):
        *others, last = (f"the {figures.title(role).lower()}" for role in roles)
        readers = f"{', '.join(others)} and {last}" if others else last
        most = "one note" if memory.notes == 1 else f"at most {memory.notes} notes"
        says = f"those of {names}: three numbers of similar trades, and {most} to {readers}."
    else:
        says = f"those of {names}: three numbers of similar trades, and no note in words."
    return LessonProfile(name, memory.use, told, says)


def _readers(agents: AgentSettings) -> list[str]:
    """Return the agents that read notes: of those that the profile names, whoever is asked."""
    seats = (*agents.desk(), agents.consulted())
    return [role for role in dict.fromkeys(agents.memory.roles) if role in seats]


def _in_warm_up(facts: LessonFacts, warmed: WarmUps) -> bool:
    close = facts.bar_time + duration(facts.timeframe)
    return warmed.has(facts.instance, facts.timeframe, close)


def _listed(asked: ListQuery) -> tuple[list[Lesson], int | None]:
    """Return the lessons of a page, and where the next page begins if there is one."""
    # one more than is shown, to know whether there are older ones
    found = lesson_table.lesson_list(
        backing().database,
        {name: word for name, word in asked.words.items() if name != "search"},
        search=asked.words.get("search", ""),
        before=asked.before,
        limit=asked.limit + 1,
    )
    shown = found[: asked.limit]
    return shown, shown[-1].number if len(found) > asked.limit else None


def _filters(behind: PageContext, found: Sequence[Lesson]) -> dict[str, tuple[str, list[str]]]:
    """Return the filters of the form: name, label, choices."""
    items = behind.settings.instances
    symbols = list(dict.fromkeys(item.symbol for item in items))
    ids = [item.id for item in items]
    authors = {lesson_words.RULES, *(one.author for lesson in found for one in lesson.words)}
    return {
        "symbol": ("Symbol", list_query.offered("symbol", symbols)),
        "instance": ("Instance", list_query.offered("instance", ids)),
        **{name: (name.capitalize(), list(known)) for name, known in CHOICES.items()},
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
