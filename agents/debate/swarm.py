"""A swarm's arithmetic around its debate: regime, officer's rows, board, and the judge's chance.

`directed` says whose word counts how much and what the regime leaves of a size, `ruled` what the
gate's rules come to with the risk officer's rows beside them, `with_judge` what the judge vetoes.
Without a swarm and without an officer each of them changes nothing. Pure but for the flags of the
sitting; nothing asks, waits or fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from agent_config import AgentSettings, DebateSettings, Mode

from .. import risk_gate, risk_officer
from ..contracts import OPINIONS, SCORE_DECIMALS, DebateContext, GateRuling, OfficerReason
from .board import Board, board
from .directive import Directive, directive
from .expected_value import ExpectedValue, expected_value
from .sitting import DebateState

THIN: Final = "thin_swarm"
DISPUTED: Final = "regime_disputed"
"""Flags of a swarm of which fewer than SPOKEN_LEAST experts spoke, and of a reader that names
another regime than the code.
"""
SPOKEN_LEAST: Final = 2
"""Fewer experts make a thin swarm."""

EMPTY_BOARD: Final = Board()


@dataclass(frozen=True, slots=True)
class Swarm:
    """What the regime, the board and the judge's chance came to.

    `storm` is the factor, 0 to 1, that volatility, panic and liquidations left of the multiplier,
    `most` the share of a size that rules and regime leave: the rules' multiplier with the budget
    among the factors of the storm. `thin`: fewer than two experts spoke, which bounds the
    conviction. `worth` is None where no judge took a side.
    """

    directive: Directive
    storm: float = 1.0
    most: float = 1.0
    board: Board = EMPTY_BOARD
    worth: ExpectedValue | None = None
    thin: bool = False

    @property
    def budget(self) -> float:
        """The share, 0 to 1, that the regime leaves of a size beside the rules' multiplier."""
        if self.directive.budget >= self.storm:
            return 1.0
        return round(self.directive.budget / self.storm, SCORE_DECIMALS)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "regime": self.directive.as_json(),
            "trust": dict(self.directive.trusted),
            "budget": self.budget,
            "storm": self.storm,
            "board": self.board.as_json(),
            "judgement": None if self.worth is None else self.worth.as_json(),
            "thin": self.thin,
        }


UNDIRECTED: Final = Directive()
"""All words count alike, and a size is whole."""


def regime_directive(
    sitting: DebateState | None, context: DebateContext, config: DebateSettings
) -> Directive:
    """Return whose word counts how much and what the regime leaves of a size.

    Without a swarm all words count alike, and without a risk officer the size is whole.
    """
    row = config.agents.row()
    if not row.weighs and not config.has_officer():
        return UNDIRECTED
    readers = sitting.reported("reader") if sitting else []
    return directive(
        context.features,
        context.timeframe,
        readers[0].report if readers else None,
        config.agents.trust if row.weighs else "flat",
    )


def risk_rules(
    config: DebateSettings,
    context: DebateContext,
    apart: float,
    told: Directive,
    sitting: DebateState | None = None,
) -> tuple[risk_gate.Rules, Swarm | None]:
    """Return what the gate's rules say, and what a swarm came to where a risk officer sits.

    The officer stays while a cheaper desk stands in, and where nobody is asked.
    """
    if not config.has_officer():
        return risk_gate.rules(context.features, config.gate, apart), None
    rows = risk_officer.rows(context.features, config.gate)
    rules = risk_gate.rules(context.features, config.gate, apart, rows)
    # The budget reads the same storm, but it lessens a size alone and no score.
    budgeted = rows._replace(storm=min(rows.storm, told.budget))
    most = risk_gate.rules(context.features, config.gate, apart, budgeted).ruling.multiplier
    if sitting is None or not config.agents.row().weighs:
        return rules, Swarm(told, rules.storm, most)
    judges = sitting.reported("judge")
    thin = is_thin(sitting, config.agents.row())
    sitting.flags += [THIN] if thin else []
    sitting.flags += [DISPUTED] if told.disputed else []
    return rules, Swarm(
        told,
        rules.storm,
        most,
        board(sitting.reported("analyst"), told),
        expected_value(judges[0].report if judges else None, context.features),
        thin,
    )


def is_thin(sitting: DebateState, row: Mode) -> bool:
    """Tell whether fewer than two experts of a swarm spoke; where nobody did there is no swarm."""
    experts = len(sitting.heard("analyst"))
    return row.weighs and experts < SPOKEN_LEAST and bool(sitting.heard(*OPINIONS))


def apply_judge_veto(
    rule: GateRuling, sitting: DebateState, swarm: Swarm | None, settings: AgentSettings
) -> GateRuling:
    """Return the ruling of the rules with what a judge vetoes: its own side, or all on a hold."""
    judges = [one.report for one in sitting.heard("judge")]
    if judges and settings.judge_hold == "veto" and judges[0].winner == "NONE":
        return replace(rule, veto=True, reasons=(*rule.reasons, str(OfficerReason.JUDGE_HOLD)))
    worth = swarm.worth if swarm else None
    if worth is None or not worth.vetoes:
        return rule
    sides = tuple(sorted({*rule.veto_sides, worth.vetoes}))
    reasons = (*rule.reasons, str(OfficerReason.NEGATIVE_EV))
    return replace(rule, veto_sides=sides, reasons=reasons)
