"""What a firm adds to a tick: the manager's verdict on both cases, and the trader's thesis.

`shown` tells of an opening that the trader was asked about, declined, or could not be asked about;
a tick without such an opening, or of a desk without a trader, has none. `judged` tells what the
manager made of bull and bear. Words of models pass through `figures.sanitize`; who wrote them, on
which tier and why stand beside them, made by code. Pure functions; nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from agent_config import LEANING_SHARE, OPPOSITION_COST, THIN_CONVICTION, EscalationSettings
from agents.contracts import WINNERS, AgentReport
from agents.debate.scoring import DIRECTIONS
from torra.dashboard.record.shown import NOT_COUNTED
from torra.exhibits import figures
from torra.tick import sentence
from torra.tick.marks import UNFORESEEN
from torra.tick.tick_record import DebateRecord, TickRecord, statement
from torra.tick.words import thesis_words
from torra.words.badge import Badge, capital
from torra.words.orders import SIDES
from torra.words.ticks import HORIZONS

SILENT: Final = Badge("○", "no thesis", "warn")
UNASKED: Final = Badge("○", "not asked", "flat")
MARKS: Final[Mapping[tuple[bool, bool], Badge]] = {
    (False, False): Badge("✎", "written", "note"),
    (True, False): Badge("⊘", "declined", "alert"),
    (False, True): Badge("✎", "written (shadow)", "flat"),
    (True, True): Badge("⊘", "would decline (shadow)", "flat"),
}
"""What became of a thesis: whether the trader declined, and whether in shadow."""

NOTES: Final[Mapping[tuple[bool, bool], str]] = {
    (False, False): "Code sets size, stop and target, and closes nothing on what would end it.",
    (True, False): "A decline stops this opening, and no other.",
    (False, True): f"{NOT_COUNTED.capitalize()}.",
    (True, True): f"{NOT_COUNTED.capitalize()}.",
}
"""How a thesis counted: not at all in shadow, else only where it declines."""

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
    about: str = ""
    why: str = ""
    who: str = ""
    tier: str = ""
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


def thesis_section(
    record: TickRecord, rule: EscalationSettings | None = None
) -> ThesisShown | None:
    """Return the thesis of a tick's opening, or why there is none; None where none was due.

    `rule` is that by which its trader was asked on the chief tier, where it is known.
    """
    asked, shadow = record.deliberation.consulted, record.deliberation.in_shadow
    if asked is None:
        why = f"{capital(thesis_words.UNFORESEEN_WORDS)}."
        return ThesisShown(UNASKED, why=why) if UNFORESEEN in record.flags else None
    side, report = SIDES.get(asked.side), asked.report
    verb = f"{side.verb}ing" if side else "opening"
    about = f"{verb} {figures.sanitize(record.symbol, 40)}".strip()
    when, at = (rule.when, rule.at) if rule else (None, None)
    tier = thesis_words.escalated(asked.tier, asked.conviction, when, at)
    if report is None:
        why = figures.sanitize(thesis_words.why_without(asked.failure), 200)
        return ThesisShown(SILENT, about, f"{capital(why)}.", tier=tier)
    declined = report.declined
    reason = sentence.why_declined(report.decline_code) or "it judges so itself"
    long = horizon(report, record.timeframe)
    return ThesisShown(
        mark=MARKS[declined, shadow],
        about=about,
        why=f"The trader {'would decline' if shadow else 'declined'} it: {reason}." * declined,
        who=figures.sanitize(thesis_words.author(asked, record.made_calls), 120),
        tier=tier,
        claim=figures.sanitize(statement(report), LONGEST),
        # of what is not made nothing can end
        ends=() if declined else _lines(report.falsifiers),
        risks=_lines(report.risks),
        bars=f"at most {long}" if long and not declined else "",
        note=NOTES[declined, shadow],
    )


def manager_verdict(report: AgentReport) -> ManagerVerdict | None:
    """Return a manager's verdict, or a judge's side; None of anybody else's report."""
    if report.winner not in WINNERS:
        return None
    nobody = NOBODY if report.win_share is None else NO_SIDE
    weights = report.weights.items()
    return ManagerVerdict(
        figures.mark(report.winner) if WINNERS[report.winner] else nobody,
        tuple((figures.title(name), f"× {figures.plain(one, 2)}") for name, one in weights),
    )


def objection(deliberation: DebateRecord, side: str) -> str:
    """Return how a manager or a judge objects to a side; "" where it names that side."""
    manager = deliberation.manager
    decides = manager or deliberation.judge
    if decides is None or side not in DIRECTIONS:
        return ""
    named = WINNERS.get(decides.winner)
    if named is None or named == DIRECTIONS[side]:
        return ""
    if manager is None:
        return f"the judge takes {'the other side' if named else 'no side'}"
    return f"the manager names {'the other side' if named else 'neither'}"


def costs(deliberation: DebateRecord, side: str) -> str:
    """Return the objection that lowered the conviction in a side; "" where none did.

    To name no side costs nothing where no analyst objects: then a researcher does, or the desk
    leans against the side, or too few experts spoke.
    """
    agreed = deliberation.panel.agreement(side)
    left = agreed.raw * (1.0 - OPPOSITION_COST * max(agreed.opposition, agreed.dissent))
    if agreed.leans_against:
        left = min(left, LEANING_SHARE * agreed.raw)
    if deliberation.swarm is not None and deliberation.swarm.thin:
        left = min(left, THIN_CONVICTION)
    return objection(deliberation, side) if agreed.conviction < left - TINY else ""


def horizon(report: AgentReport, timeframe: str | None) -> str:
    """Return the time that a report speaks for; "" where it names none."""
    if report.horizon_bars:
        return thesis_words.bars_long(report.horizon_bars, timeframe)
    return HORIZONS.get(report.horizon, "")


def weights(deliberation: DebateRecord) -> dict[str, float]:
    """Return how much a manager lets each case weigh, 0 to 1; {} without a manager."""
    manager = deliberation.manager
    told = manager.weights if manager else {}
    return {name: max(0.0, min(1.0, weight)) for name, weight in told.items()}


def _lines(told: Iterable[str]) -> tuple[str, ...]:
    return tuple(figures.sanitize(one, LONGEST) for one in told if one)
