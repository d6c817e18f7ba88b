"""What a firm adds to a tick: the manager's verdict on both cases, and the trader's thesis.

`badge` tells of an opening that the trader was asked about, declined, or could not be asked about;
a tick without such an opening, or of a desk without a trader, has none. `manager_verdict` tells
what the manager made of bull and bear. Pure functions; nothing raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent_config import LEANING_SHARE, OPPOSITION_COST, THIN_CONVICTION
from agents.contracts import WINNERS, AgentReport
from agents.debate.deliberation import Consulted
from agents.debate.scoring import DIRECTIONS
from torra.exhibits import figures
from torra.tick import sentence
from torra.tick.marks import UNFORESEEN
from torra.tick.tick_record import DebateRecord, TickRecord
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

NOBODY: Final = Badge("■", "neither", "flat")
NO_SIDE: Final = Badge("■", "no side", "flat")
"""A manager that names nobody, and a judge that takes no side."""

TINY: Final = 1e-6
"""Two shares that are no further apart are the same one."""


@dataclass(frozen=True, slots=True)
class ManagerVerdict:
    """A manager's verdict: whose case it finds the stronger one, and how much each case weighs."""

    winner: Badge
    weights: tuple[tuple[str, str], ...]


def badge(record: TickRecord) -> Badge | None:
    """Return what became of the thesis of a tick's opening; None where none was due."""
    trader = record.deliberation.consulted
    if trader is None:
        return UNASKED if UNFORESEEN in record.flags else None
    if trader.report is None:
        return SILENT
    return MARKS[trader.report.declined, record.deliberation.in_shadow]


def about(trader: Consulted, symbol: str) -> str:
    """Return which opening a trader was asked about."""
    side = SIDES.get(trader.side)
    verb = f"{side.verb}ing" if side else "opening"
    return f"{verb} {figures.sanitize(symbol, 40)}".strip()


def why(record: TickRecord) -> str:
    """Return why there is no thesis, or why the opening was declined; "" of one that is made."""
    trader = record.deliberation.consulted
    if trader is None:
        return f"{capital(thesis_words.UNFORESEEN_WORDS)}."
    if trader.report is None:
        return f"{capital(figures.sanitize(thesis_words.why_without(trader.failure), 200))}."
    if not trader.report.declined:
        return ""
    reason = sentence.why_declined(trader.report.decline_code) or "it judges so itself"
    declined = "would decline" if record.deliberation.in_shadow else "declined"
    return f"The trader {declined} it: {reason}."


def ends(record: TickRecord) -> list[str]:
    """Return the closes that would end the trade of a thesis; of what is not made nothing can."""
    trader = record.deliberation.consulted
    report = trader.report if trader else None
    return [] if report is None or report.declined else [*filter(None, report.falsifiers)]


def manager_verdict(report: AgentReport) -> ManagerVerdict | None:
    """Return a manager's verdict, or a judge's side; None of anybody else's report."""
    if report.winner not in WINNERS:
        return None
    nobody = NOBODY if report.win_share is None else NO_SIDE
    weights = report.weights.items()
    return ManagerVerdict(
        figures.mark(report.winner) if WINNERS[report.winner] else nobody,
        tuple((figures.title(name), f"× {figures.plain(weight, 2)}") for name, weight in weights),
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
    weights = manager.weights if manager else {}
    return {name: max(0.0, min(1.0, weight)) for name, weight in weights.items()}
