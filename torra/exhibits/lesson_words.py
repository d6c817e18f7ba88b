"""A lesson in words and figures: what a page, a file and the command say of it alike.

Facts and words stay apart. `headline` and `figures_of` say what a trade came to, by its stored
numbers, each with its unit; `spoken` hands on what was written about it, cleaned, with its author.
A vetoed opening made no trade: its result is what the gate avoided, or what the veto cost.

Pure; nothing raises for a stored lesson.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torra.clock import duration, iso
from torra.exhibits import figures
from torra.lessons.lesson import Lesson, LessonFacts, LessonText, Thesis
from torra.tick.words import swarm_words, thesis_words
from torra.words.badge import capital
from torra.words.orders import EVOLUTIONS, EXITS, LEANS
from torra.words.ticks import LEFT_OUT, SESSIONS

RULES: Final = "rules"
"""The author of words that no model wrote."""

NO_BREAK: Final = "\u00a0"

LONGEST_WORDS: Final = 1_000
"""Characters of a part of a lesson's words that are shown."""

MOST_TICKS: Final = 100
"""Ticks that were told of a lesson, as far as they are counted."""

R_DECIMALS: Final = 2

WARM_UP: Final = "Made in warm-up, on bars from before the desk's first start."

NOTHING_YET: Final = (
    "No trade has closed yet. The first that does leaves a lesson here, and so does the first "
    "opening that is vetoed or declined."
)


@dataclass(frozen=True, slots=True)
class FactShown:
    """A fact of a lesson: its name, its figure with its unit, and the glossary's word for it."""

    name: str
    value: str
    tone: str = ""
    term: str = ""


@dataclass(frozen=True, slots=True)
class ThesisText:
    """A trader's thesis beside what came of it; `meant` says how long the trade was to take."""

    claim: str
    ends: tuple[str, ...]
    risks: tuple[str, ...]
    meant: str
    who: str
    came: str
    declined: bool


def headline(facts: LessonFacts, currency: str = "") -> str:
    """Return what a trade came to, in a sentence."""
    name, frame = figures.sanitize(facts.symbol, 40), figures.sanitize(facts.timeframe, 8)
    what = f"{facts.side.lower()} {name} {frame}"
    if facts.kind == "vetoed":
        how = "Declined" if facts.declined else "Vetoed"
        by = f" by the {facts.refuser}:" if facts.refused else ""
        return f"{how}{by} {what}: it would have come to {of_r(facts.r)}."
    outcome = figures.sanitize(facts.outcome, 20)
    return f"{capital(what)}: {outcome}, {_came_to(facts, currency)}."


def verdict_on_veto(facts: LessonFacts) -> str:
    """Return what a veto, or the trader's decline, was worth; "" for a trade."""
    if facts.kind != "vetoed":
        return ""
    who, what = facts.refuser, "decline" if facts.declined else "veto"
    if facts.outcome == "loss":
        return f"What the {who} avoided: {of_r(facts.r)}"
    if facts.outcome == "win":
        return f"What the {what} cost: {of_r(facts.r)}"
    return f"The {what} changed little: {of_r(facts.r)}"


def thesis(facts: LessonFacts) -> ThesisText | None:
    """Return what the trader wrote of an opening, beside what came of it; None without one."""
    thesis = facts.thesis
    if thesis is None:
        return None
    return thesis_text(thesis, facts.timeframe, _duration_text(facts, thesis.bars))


def judge_sentence(facts: LessonFacts) -> str:
    """Return what a swarm's judge said at an opening, in a sentence; "" where none was heard."""
    judgement = facts.situation.judgement if facts.situation else None
    if judgement is None:
        return ""
    side = LEANS.get(judgement.side, "neither side")
    counter = _clean(judgement.counter)
    against = f"; against it: {counter}" if counter else ""
    return f"Judge: {side}, {swarm_words.percent(judgement.chance)} to win{against}"


def thesis_text(thesis: Thesis, timeframe: str, came: str = "") -> ThesisText:
    """Return what the trader wrote of an opening; `came` says what came of it, "" while open."""
    tier = f"{figures.sanitize(thesis.tier, 12)} tier" if thesis.tier else ""
    return ThesisText(
        claim=_clean(thesis.claim),
        # of what was not made nothing can end
        ends=() if thesis.declined else tuple(map(_clean, thesis.ends)),
        risks=tuple(map(_clean, thesis.risks)),
        meant="" if thesis.declined else thesis_words.bars_long(thesis.bars, timeframe),
        who=f"Trader, {tier}" if tier else "Trader",
        came=came,
        declined=thesis.declined,
    )


def _duration_text(facts: LessonFacts, meant: int) -> str:
    """Return what came of a trade beside how long it was meant to take."""
    if facts.kind == "vetoed" or not meant:
        return ""
    try:
        bars = facts.hours_held * 3600.0 / duration(facts.timeframe).total_seconds()
    except ValueError:
        return ""
    text = f"{bars:.3g}" if bars >= 1.0 else "less than one"
    long = f"{text} bars, {bars - meant:.3g} more than meant"
    if bars <= meant:
        long = f"{text} of at most {meant} bar{'' if meant == 1 else 's'}"
    return f"held {long}; {EXITS.get(facts.reason, figures.sanitize(facts.reason, 40))}"


def figures_of(facts: LessonFacts, currency: str = "") -> tuple[FactShown, ...]:
    """Return the facts of a lesson, each with its unit, in the order in which they are read."""
    vetoed = facts.kind == "vetoed"
    label = "would have been held" if vetoed else "held"
    way = f"worst {of_r(facts.mae_r)}, best {of_r(facts.mfe_r)}"
    tone = figures.tone(facts.r, R_DECIMALS)
    return (
        FactShown(
            "Would have come to" if vetoed else "Result", _came_to(facts, currency), tone, "R"
        ),
        FactShown("Planned at the target", of_r(facts.planned_r)),
        FactShown("On the way", way, term="On the way"),
        FactShown("Slippage at the fill", _slipped(facts.slipped_r), term="Slippage"),
        FactShown(capital(label), hours(facts.hours_held)),
        FactShown("Surprise", of_r(facts.surprise, sign=False), term="Surprise"),
        FactShown("Market then", market(facts)),
        FactShown("End", ended(facts)),
        FactShown("Closed", figures.moment(iso(facts.closed_at))),
    )


def parts_of(words: LessonText) -> list[str]:
    """Return what somebody wrote of a trade, cleaned: of setup, outcome and rule what is there."""
    return list(filter(None, map(_clean, (words.setup, words.outcome, words.rule))))


def author_of(words: LessonText) -> str:
    """Return who wrote of a trade."""
    return "The rules" if words.author == RULES else figures.sanitize(words.author, 80)


def byline(words: LessonText) -> str:
    """Return who wrote of a trade, when, and what that cost."""
    cost = "" if words.author == RULES else f", cost {figures.money(words.cost_usd)}"
    return f"{author_of(words)}, {figures.moment(iso(words.known_at))}{cost}"


def left_out(flags: Iterable[str]) -> str:
    """Return in a sentence what code took out of somebody's words; "" for nothing."""
    why = [LEFT_OUT.get(flag, figures.sanitize(flag, 40)) for flag in flags]
    return f"Sentences were left out, because of: {'; '.join(why)}." if why else ""


def market(facts: LessonFacts) -> str:
    """Return the regime and the session of an opening; a dash where no market was stored."""
    then = facts.situation
    if then is None:
        return figures.DASH
    regime = figures.mark(then.regime).word if then.regime else ""
    session = SESSIONS.get(then.session, figures.sanitize(then.session, 30))
    return ", ".join(part for part in (regime, session) if part) or figures.DASH


def ended(facts: LessonFacts) -> str:
    """Return why a trade ended and what that says of its thesis: of a vetoed opening nothing."""
    why = EXITS.get(facts.reason, figures.sanitize(facts.reason, 40))
    judged = None if facts.kind == "vetoed" else EVOLUTIONS.get(facts.evolution)
    thesis = f"the plan {judged.word}" if judged and facts.evolution != "Unknown" else ""
    return ", ".join(part for part in (why, thesis) if part) or figures.DASH


def of_r(value: float, *, sign: bool = True) -> str:
    """Write a multiple of the planned risk."""
    text = (
        figures.format_signed(value, R_DECIMALS) if sign else figures.plain(abs(value), R_DECIMALS)
    )
    return f"{text}{NO_BREAK}R"


def amount(value: float, currency: str) -> str:
    """Write an amount of an account with its sign."""
    return f"{figures.format_signed(value, 2)}{NO_BREAK}{currency}"


def hours(value: float) -> str:
    """Write how long a position was held; fill and end may lie in one bar."""
    return figures.span(value * 3600.0) if value > 0.0 else "less than a bar"


def as_json(lesson: Lesson, *, warm_up: bool = False) -> dict[str, Any]:
    """Return a lesson as plain JSON: its number, its facts and all its words.

    `warm_up` says whether its opening was decided before the desk's first start.
    """
    words = [one.as_dict() for one in lesson.words]
    return {"number": lesson.number, **lesson.facts.as_dict(), "warm_up": warm_up, "words": words}


def table(lessons: Sequence[Lesson], warm_up: Collection[int] = ()) -> str:
    """Return lessons for a terminal, newest first; `warm_up` are the numbers of those of then."""
    if not lessons:
        return NOTHING_YET
    return "\n\n".join("\n".join(_lines(one, one.number in warm_up)) for one in lessons)


def _lines(lesson: Lesson, warm_up: bool) -> list[str]:
    facts = lesson.facts
    place = f"{facts.sid}, closed {figures.moment(iso(facts.closed_at))}"
    rest = ", ".join((market(facts), f"surprise {of_r(facts.surprise, sign=False)}"))
    lines = [headline(facts), f"  {place}; {rest}{'; in warm-up' if warm_up else ''}"]
    if written := thesis(facts):
        lines.append(f"  {written.who}: {written.claim}")
    if judge := judge_sentence(facts):
        lines.append(f"  {judge}")
    lines += [f"  {author_of(words)}: {' '.join(parts_of(words))}" for words in lesson.words[-1:]]
    return lines


def whole(
    lesson: Lesson, currency: str = "", ticks: Sequence[str] = (), *, warm_up: bool = False
) -> str:
    """Return one lesson for a terminal: every fact, what each author wrote, and who was told.

    `ticks` are the keys of the ticks that were told of it, newest first.
    """
    facts = figures_of(lesson.facts, currency)
    width = max(len(one.name) for one in facts)
    lines = [headline(lesson.facts, currency)]
    lines += [f"{verdict_on_veto(lesson.facts)}."] if lesson.facts.kind == "vetoed" else []
    lines += ["", *(f"{one.name.ljust(width)}  {one.value}" for one in facts)]
    lines += _thesis_lines(lesson.facts)
    lines += ["", judge] if (judge := judge_sentence(lesson.facts)) else []
    for words in lesson.words:
        lines += ["", byline(words), *(f"  {part}" for part in parts_of(words))]
        lines += [f"  {left_out(words.flags)}"] if words.flags else []
    return "\n".join([*lines, "", _ticks_text(ticks, warm_up=warm_up)])


def _thesis_lines(facts: LessonFacts) -> list[str]:
    """Return a thesis for a terminal, one thing a line; none without one."""
    shown = thesis(facts)
    if shown is None:
        return []
    lines = [f"{shown.who} {'declined it' if shown.declined else 'wrote'}: {shown.claim}"]
    lines += [f"  would end it: {one}" for one in shown.ends]
    lines += [f"  risk: {one}" for one in shown.risks]
    lines += [f"  meant for at most {shown.meant}"] if shown.meant else []
    return ["", *lines, *([f"  {shown.came}"] if shown.came else [])]


def _ticks_text(ticks: Sequence[str], *, warm_up: bool) -> str:
    """Say which ticks were told of a lesson."""
    if warm_up:
        return f"{WARM_UP} No tick is ever told of it."
    if not ticks:
        return "No tick was told of it."
    newest = figures.sanitize(ticks[0].replace("|", " "), 80)
    count = f"{len(ticks)} ticks were" if len(ticks) > 1 else "1 tick was"
    if len(ticks) > MOST_TICKS:
        count = f"More than {MOST_TICKS} ticks were"
    return f"{count} told of it, the newest {newest}."


def _came_to(facts: LessonFacts, currency: str) -> str:
    """Write a result in R, and in money where its account's currency is known."""
    if facts.profit is None or not currency:
        return of_r(facts.r)
    return f"{of_r(facts.r)} ({amount(facts.profit, currency)})"


def _slipped(value: float) -> str:
    """Write what the fill cost of the planned risk; a fill that was better says so."""
    if not round(value, R_DECIMALS):
        return of_r(0.0)
    return f"{of_r(value, sign=False)} {'worse' if value > 0.0 else 'better'} than planned"


def _clean(text: str) -> str:
    return figures.sanitize(text, LONGEST_WORDS)
