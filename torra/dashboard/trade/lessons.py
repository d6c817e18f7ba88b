"""The page Lessons: what closed trades and vetoes came to, and what was written of them.

Facts stand beside words, with the ticks that were told of each lesson. The list is searched,
narrowed and read on by a cursor; the API answers the same. The page says whose ticks are told of
lessons at all. Without a desk behind the pages it says so. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from flask import abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from agent_config import AgentSettings
from torra.clock import duration, iso
from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.trade import trade_rows
from torra.dashboard.view import list_query
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.rendering import backing, desk_page, state, tick_link
from torra.errors import ConfigError
from torra.exhibits import figures, lesson_words
from torra.exhibits.lesson_words import FactShown, ThesisText, WordsShown
from torra.lessons.lesson import KINDS, Lesson, LessonFacts, Thesis
from torra.money.open_positions import PAPER
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

LONGEST_SEARCH: Final = 120

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


@dataclass(frozen=True, slots=True)
class LessonsQuery:
    """What a list is narrowed to, and where it goes on; `only` as the store takes it."""

    only: Mapping[str, str]
    search: str
    before: int | None
    limit: int

    @property
    def filtered(self) -> bool:
        """Whether it leaves lessons out."""
        return bool(self.only or self.search)


@dataclass(frozen=True, slots=True)
class LessonTick:
    """A tick that was told of a lesson: its stream and bar, and its address."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class LessonShown:
    """A lesson as a page shows it; `signal` is the address of its trade, "" where there is none.

    `ticks` are the newest that were told of it; `more` is whether there are others.
    """

    number: int
    address: str
    headline: str
    vetoed: Badge | None
    warm_up: Badge | None
    veto: str
    facts: tuple[FactShown, ...]
    words: tuple[WordsShown, ...]
    thesis: ThesisText | None
    judge: str
    signal: str
    opened: str
    ticks: tuple[LessonTick, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class LessonProfile:
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
        asked = _asked()
    except ConfigError:
        abort(400)
    found, older = _listed(asked)
    behind = backing()
    return desk_page(
        "lessons.html",
        here=True,
        lessons=shown_of(found, behind),
        count=behind.database.lesson_count(),
        told=told_by_profile(behind),
        asked=asked,
        known={name: request.args.get(name, "")[:LONGEST_SEARCH] for name in QUERY},
        filters=_filters(behind, found),
        nothing=lesson_words.NOTHING_YET,
        older=_address(older) if older else None,
        newest=_address(None) if asked.before else None,
    )


def api_lessons() -> ResponseReturnValue:
    """Answer lessons as stored, newest first; `next` is what to ask as `before`."""
    try:
        found, older = _listed(_asked())
    except ConfigError as error:
        return jsonify(error=str(error), status=400), 400
    database = backing().database
    warmed = WarmUps(database)
    told = [
        lesson_words.as_json(one, warm_up=_in_warm_up(one.facts, warmed))
        | {"ticks": database.lesson_ticks(one.number, TICKS)}
        for one in found
    ]
    return jsonify(lessons=told, next=older)


def shown_of(found: Sequence[Lesson], behind: PageContext) -> list[LessonShown]:
    """Return lessons as a page shows them."""
    warmed, currency = WarmUps(behind.database), cache(behind.currency)
    shown = []
    for lesson in found:
        facts = lesson.facts
        signal = behind.database.order(facts.sid) or SignalRow()
        ticks = behind.database.lesson_ticks(lesson.number, TICKS + 1)
        money = currency(signal.bridge or PAPER) if signal.sid else ""
        shown.append(
            LessonShown(
                number=lesson.number,
                address=lesson_address(lesson.number),
                headline=lesson_words.headline(facts, money),
                vetoed=_mark_of(facts),
                warm_up=trade_rows.WARM_UP if _in_warm_up(facts, warmed) else None,
                veto=lesson_words.verdict_on_veto(facts),
                facts=lesson_words.figures_of(facts, money),
                words=tuple(map(lesson_words.spoken, lesson.words)),
                thesis=lesson_words.thesis(facts),
                judge=lesson_words.judge_sentence(facts),
                signal=url_for(".signal", sid=facts.sid) if signal.sid else "",
                opened=_opened(facts),
                ticks=tuple(map(_tick, ticks[:TICKS])),
                more=len(ticks) > TICKS,
            )
        )
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
    told = written_of(sid)
    return told and lesson_words.thesis_told(told, timeframe)


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


def _mark_of(facts: LessonFacts) -> Badge | None:
    if facts.kind != "vetoed":
        return None
    return DECLINED if facts.declined else VETOED


def _opened(facts: LessonFacts) -> str:
    """Return the address of the tick that opened a trade."""
    return tick_link(facts.instance, facts.timeframe, iso(facts.bar_time))


def _tick(torra_key: str) -> LessonTick:
    instance, timeframe, bar_time = torra_key.rsplit("|", 2)
    name = f"{figures.sanitize(instance, 40)} {timeframe}, {figures.moment(bar_time)}"
    return LessonTick(name, tick_link(instance, timeframe, bar_time))


def _asked() -> LessonsQuery:
    """Return what a request asks for; raises ConfigError for words that mean nothing."""
    told = _words()
    for name, known in CHOICES.items():
        if name in told and told[name] not in known:
            said = figures.sanitize(told[name], 40)
            raise ConfigError(f"{name} is one of {', '.join(known)}, not {said}")
    only = {name: told[name] for name in (*FREE, *CHOICES) if name in told}
    return LessonsQuery(only, told.get("search", ""), _before(), list_query.limit(SHOWN, MOST))


def _words() -> dict[str, str]:
    """Return the filter of the request as it was written, without what is empty."""
    names = ("search", *FREE, *CHOICES)
    told = {name: request.args.get(name, "")[:LONGEST_SEARCH].strip() for name in names}
    return {name: word for name, word in told.items() if word}


def _before() -> int | None:
    text = request.args.get("before") or ""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ConfigError("before is the `next` of an earlier answer")
    return int(text)


def _listed(asked: LessonsQuery) -> tuple[list[Lesson], int | None]:
    """Return the lessons of a page, and where the next page begins if there is one."""
    # one more than is shown, to know whether there are older ones
    found = backing().database.lesson_list(
        asked.only, search=asked.search, before=asked.before, limit=asked.limit + 1
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
        "symbol": ("Symbol", _with("symbol", symbols)),
        "instance": ("Instance", _with("instance", ids)),
        **{name: (name.capitalize(), list(known)) for name, known in CHOICES.items()},
        "author": ("Written by", _with("author", sorted(authors))),
    }


def _with(name: str, known: Sequence[str]) -> list[str]:
    """Return what can be chosen, and what is chosen now: also one that is not known any more."""
    asked = request.args.get(name, "")[:LONGEST_SEARCH].strip()
    return [*known] if not asked or asked in known else [*known, asked]


def _address(before: int | None) -> str:
    """Return the address of the lessons before a place, or of the newest, filtered as now."""
    told: dict[str, Any] = {**_words(), "before": before}
    return url_for(".lessons", **told)


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
