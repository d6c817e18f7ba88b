"""What a firm adds to a tick: the manager's verdict on both cases, and the trader's thesis.

`shown` tells of an opening that the trader was asked about, declined, or could not be asked about;
a tick without such an opening, or of a desk without a trader, has none. `judged` tells what the
manager made of bull and bear. Words of models pass through `figures.clean`; who wrote them, on
which tier and why stand beside them, made by code. Pure functions; nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from agent_config import LEANING_SHARE, OPPOSITION_COST, THIN_CONVICTION
from agents.contracts import WINNERS, AgentReport
from agents.debate.deliberation import Consulted
from agents.debate.panel import DIRECTIONS
from torra.dashboard.record.shown import NOT_COUNTED, EscalationSetting
from torra.exhibits import figures
from torra.tick import sentence
from torra.tick.marks import UNFORESEEN
from torra.tick.tick_record import DebateRecord, TickRecord, statement
from torra.tick.words import thesis_words
from torra.words.badge import Badge
from torra.words.orders import SIDES
from torra.words.ticks import HORIZONS

State = Literal["written", "declined", "none", "unforeseen", "shadow", "shadow declined"]

MARKS: Final[Mapping[State, Badge]] = {
    "written": Badge("✎", "written", "note"),
    "declined": Badge("⊘", "declined", "alert"),
    "none": Badge("○", "no thesis", "warn"),
    "unforeseen": Badge("○", "not asked", "flat"),
    "shadow": Badge("✎", "written (shadow)", "flat"),
    "shadow declined": Badge("⊘", "would decline (shadow)", "flat"),
}
"""What became of a thesis, with its mark."""

NOBODY: Final = Badge("■", "neither", "flat")
NO_SIDE: Final = Badge("■", "no side", "flat")
"""A manager that names nobody, and a judge that takes no side."""

TINY: Final = 1e-6
"""Two shares that are no further apart are the same one."""

LONGEST: Final = 400
"""Most characters of a point, an end or a risk."""


@dataclass(frozen=True, slots=True)
class ThesisShown:
    """A thesis for a page; `why` says why there is none, or why the opening was declined.

    `about` is what it is about, `who` wrote it, `tier` by which rule its models were asked; `ends`
    are closes that would end the trade, `bars` how long it is to take. `note` says how it counted.
    """

    mark: Badge
    about: str
    why: str
    who: str
    tier: str
    claim: str = ""
    ends: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    bars: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ManagerVerdict:
    """A manager's verdict: whose case it finds the stronger one, and how much each case weighs."""

    winner: Badge
    weights: tuple[tuple[str, str], ...]


def shown(record: TickRecord, rule: EscalationSetting | None = None) -> ThesisShown | None:
    """Return the thesis of a tick's opening, or why there is none; None where none was due."""
    asked, told = record.deliberation.consulted, rule or EscalationSetting()
    if not asked:
        unforeseen = UNFORESEEN in record.flags
        return _without("unforeseen", "", thesis_words.UNFORESEEN_WORDS) if unforeseen else None
    tier = thesis_words.escalated(asked.tier, asked.conviction, told.when, told.at)
    if not asked.report:
        why = figures.sanitize(thesis_words.why_without(asked.failure), 200)
        return _without("none", _about(asked, record), why, tier)
    return _written(asked, asked.report, record, tier)


def judged(said: AgentReport) -> ManagerVerdict | None:
    """Return a manager's verdict, or a judge's side; None of anybody else's report."""
    winner = said.winner or ""
    if winner not in WINNERS:
        return None
    nobody = NOBODY if said.win_share is None else NO_SIDE
    mark = figures.mark(winner) if WINNERS[winner] else nobody
    return ManagerVerdict(
        mark,
        tuple(
            (figures.title(name), f"× {figures.plain(value, 2)}")
            for name, value in said.weights.items()
        ),
    )


def objection(deliberation: DebateRecord, side: str) -> str:
    """Return how a manager or a judge objects to a side; "" where it names that side."""
    manager = deliberation.manager
    decides = manager or deliberation.judge
    named = WINNERS.get(decides.winner or "") if decides else None
    if named is None or side not in DIRECTIONS or named == DIRECTIONS[side]:
        return ""
    if manager is None:
        return f"the judge takes {'the other side' if named else 'no side'}"
    return f"the manager names {'the other side' if named else 'neither'}"


def costs(deliberation: DebateRecord, side: str) -> str:
    """Return the objection that lowered the conviction in a side; "" where none did.

    To name no side costs nothing where no analyst objects: then a researcher does, or the desk
    leans against the side, or too few experts spoke.
    """
    found = deliberation.panel.agreement(side)
    if found is None or found.raw is None or found.conviction is None:
        return ""
    left = found.raw * (1.0 - OPPOSITION_COST * max(found.opposition or 0.0, found.dissent or 0.0))
    if found.leans_against:
        left = min(left, LEANING_SHARE * found.raw)
    if deliberation.swarm is not None and deliberation.swarm.thin:
        left = min(left, THIN_CONVICTION)
    return objection(deliberation, side) if found.conviction < left - TINY else ""


def horizon(said: AgentReport, timeframe: str | None) -> str:
    """Return the time that a report speaks for; "" where it names none."""
    if said.horizon_bars:
        return thesis_words.bars_long(said.horizon_bars, timeframe)
    return HORIZONS.get(said.horizon or "", "")


def weights(deliberation: DebateRecord) -> dict[str, float]:
    """Return how much a manager lets each case weigh, 0 to 1; {} without a manager."""
    manager = deliberation.manager
    told = {} if manager is None else manager.weights
    return {name: max(0.0, min(1.0, one)) for name, one in told.items() if one is not None}


def _without(state: State, about: str, why: str, tier: str = "") -> ThesisShown:
    return ThesisShown(MARKS[state], about, f"{why[:1].upper()}{why[1:]}.", "", tier)


def _written(asked: Consulted, said: AgentReport, record: TickRecord, tier: str) -> ThesisShown:
    declined, shadow = said.declined, record.deliberation.in_shadow
    reason = sentence.why_declined(said.decline_code) or "it judges so itself"
    verb = "would decline" if shadow else "declined"
    state: State = "declined" if declined else "written"
    if shadow:
        state = "shadow declined" if declined else "shadow"
    return ThesisShown(
        mark=MARKS[state],
        about=_about(asked, record),
        why=f"The trader {verb} it: {reason}." if declined else "",
        who=figures.sanitize(thesis_words.author(asked, record.made_calls), 120),
        tier=tier,
        claim=figures.sanitize(statement(said), LONGEST),
        # of what is not made nothing can end
        ends=() if declined else _lines(said.falsifiers),
        risks=_lines(said.risks),
        bars="" if declined else _meant_for(said, record.timeframe),
        note=_note(record, declined=declined),
    )


def _note(record: TickRecord, *, declined: bool) -> str:
    """Return how a thesis counted: not at all in shadow, else only where it declines."""
    if record.deliberation.in_shadow:
        return f"{NOT_COUNTED.capitalize()}."
    if declined:
        return "A decline stops this opening, and no other."
    return "Code sets size, stop and target, and closes nothing on what would end it."


def _about(asked: Consulted, record: TickRecord) -> str:
    side = SIDES.get(asked.side or "")
    verb = f"{side.verb}ing" if side else "opening"
    return f"{verb} {figures.sanitize(record.symbol, 40)}".strip()


def _meant_for(said: AgentReport, timeframe: str | None) -> str:
    told = horizon(said, timeframe)
    return f"at most {told}" if told else ""


def _lines(told: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(figures.sanitize(one, LONGEST) for one in told if one)
