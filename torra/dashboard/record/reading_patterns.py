"""The eight patterns by which a tick or an approval is read at a glance (document 000).

One table: what a pattern is called, what it likely means, what to do, and the rule that finds it in
a record. The page Help lists all of them, the pages of a tick and of an approval name those that
hold there. Every number in the words is that of the code which acts by it, so a changed rule
changes the words. A pattern reads a decision and takes no part in one. What agents said is read
only where it counted (not in shadow). Pure functions; a record without a part, as of an older
version, has no pattern of it, and the mirrored tick has the same patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent_config import (
    CONFIDENCE_WEIGHT,
    JUDGE_ID,
    LEANING_SHARE,
    OPPOSITION_COST,
    READER_ID,
    EscalationSettings,
)
from agents.contracts import SIDES, AgentReport
from agents.debate.scoring import DIRECTIONS
from torra.dashboard.record import arithmetic
from torra.dashboard.record.story_cards import opening, side_of
from torra.exhibits import figures
from torra.market.regime import PERCENTILE, QUIET_UPTO, VOLATILE_FROM
from torra.tick.tick_record import TickRecord, is_gate
from torra.verdict.order_levels import FARTHEST_STOP_ATR, STOP_ATR, TARGET_R
from torra.words.deny_reasons import DenyReason

ESCALATION_AT: Final[float] = EscalationSettings().at
"""Conviction from which a signal is a clean one: that from which a firm's trader is asked at the
chief tier, unless its profile says otherwise.
"""

WEAK_CONVICTION: Final = 0.45
"""Conviction below which the debate was close, or the panel diverged (document 000)."""

NEWS: Final = "news"

JUDGED: Final = frozenset((DenyReason.GATE_VETO.value, DenyReason.TRADER_DECLINED.value))
"""Reasons by which gate or trader judge an opening: it breaks no rule of the desk."""

FIRM_SEAT: Final = "research_manager"
"""Seat by which a desk is a firm, with a manager and a trader."""

NO_ANALYST: Final = frozenset((*SIDES, FIRM_SEAT, READER_ID, JUDGE_ID))
"""Agents that read the analysts' words, not a source of their own."""


@dataclass(frozen=True, slots=True)
class ReadingPattern:
    """A pattern: its name, what it likely means, what to do, and whether a record has it.

    `firm` is said besides where a desk seats a manager and a trader, `swarm` where a judge sits.
    `who` names the agents that it is about, on a tick that has it.
    """

    slug: str
    name: str
    means: str
    do: str
    holds: Callable[[TickRecord], bool]
    firm: str = ""
    swarm: str = ""
    who: str = ""


def holding(record: TickRecord) -> list[ReadingPattern]:
    """Return the patterns of a tick."""
    named = ", ".join(map(figures.title, abstained(record)))
    return [
        replace(one, who=named if one.slug == "abstained" else "")
        for one in patterns()
        if one.holds(record)
    ]


def on_approval(record: TickRecord, refused: Sequence[str]) -> list[ReadingPattern]:
    """Return the patterns of a proposal, as its checks of now have it: `refused` names them."""
    return holding(record.model_copy(update={"denied": tuple(refused)}))


def abstained(record: TickRecord) -> list[str]:
    """Return the analysts that had nothing to read; of agents in shadow none."""
    deliberation = record.deliberation
    return [
        one.agent_id
        for one in deliberation.reports
        if one.abstained
        and not deliberation.in_shadow
        and not is_gate(one)
        and one.agent_id not in NO_ANALYST
    ]


# --- the table ------------------------------------------------------------------------------------


def patterns() -> tuple[ReadingPattern, ...]:
    """Return the eight patterns in the order of document 000, in the numbers of the rules."""
    return (
        ReadingPattern(
            "all-agree",
            "The analysts agree and are sure",
            "A strong consensus, and rare: two analysts or more push the way of the consensus with "
            "high confidence, and nobody among them pushes the other way.",
            "Take it seriously. Still look at what would prove it wrong.",
            _all_agree,
        ),
        ReadingPattern(
            "split",
            "The analysts are split",
            "Real doubt, and the size counts it already: full opposition takes "
            f"{_percent(OPPOSITION_COST)} off the conviction, a part of it a part. Where the "
            "agents as a whole push against the trade, at most "
            f"{_percent(LEANING_SHARE)} of it is left.",
            "Read who disagrees on what, and what would prove each case wrong.",
            lambda record: {1, -1} <= set(_leans(record).values()),
            "Read whose case the manager found stronger, and why.",
            "Read the board: who conflicts, on which facts, and what would settle it.",
        ),
        ReadingPattern(
            "abstained",
            "An analyst had nothing to read",
            "There is no source for its subject, or nothing in it: no headlines, no figures of a "
            "company. The trade rests on the rest. An abstention counts as no vote, and is no red "
            "flag by itself.",
            "See which subject is missing. Health says why its source brings nothing.",
            lambda record: bool(abstained(record)),
        ),
        ReadingPattern(
            "clean",
            "High conviction, no check against it",
            f"The cleanest signal: an opening with a conviction of {ESCALATION_AT:.2f} or more.",
            "Look at size and stop, then decide.",
            _clean,
            f"From {ESCALATION_AT:.2f} on the trader is asked on the chief tier, unless "
            "agents.escalation of the profile says otherwise.",
        ),
        ReadingPattern(
            "weak",
            "Low conviction",
            f"A conviction below {WEAK_CONVICTION:.2f}: the debate was close, the agents were "
            "unsure, or some pushed against the trade. Little of its size is left.",
            "Think twice. The case against it says who objects, and to what.",
            _weak,
        ),
        ReadingPattern(
            "refused",
            "A check refused it",
            "A hard stop: the order breaks a rule of the desk. The code beside it says which.",
            "Leave it: no button sends it. A wrong rule is changed in the profile, not for one "
            "trade.",
            lambda record: not JUDGED.issuperset(record.denied),
        ),
        ReadingPattern(
            "levels",
            "Stop and target look tight or wide",
            f"That is volatility talking, not a guess. The stop lies {STOP_ATR} × ATR from the "
            f"entry, the target {TARGET_R} R away. The ATR is now in the lowest "
            f"{_percent(QUIET_UPTO / 100)} or the highest {_percent(1 - VOLATILE_FROM / 100)} of "
            "its own past.",
            "Leave them where they are: the lots were reckoned for this distance. A stop more than "
            f"{FARTHEST_STOP_ATR} × ATR away is refused.",
            _levels,
        ),
        ReadingPattern(
            "news",
            "The news is against it",
            "Event risk: the news analyst pushes against the consensus with high confidence, so "
            "the trade fights active headwinds.",
            "Read the headlines and the calendar first.",
            _news,
        ),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"


# --- the rules ------------------------------------------------------------------------------------


def _all_agree(record: TickRecord) -> bool:
    way, leans = DIRECTIONS[side_of(record)], _leans(record)
    sided = {name for name, lean in leans.items() if lean}
    return (
        len(sided) > 1
        and all(leans[name] == way for name in sided)
        and all(_sure(one) for one in record.deliberation.reports if one.agent_id in sided)
    )


def _clean(record: TickRecord) -> bool:
    kept = _conviction(record)
    return (
        kept is not None
        and kept >= ESCALATION_AT
        and opening(record) is not None
        and not record.denied
    )


def _weak(record: TickRecord) -> bool:
    kept = _conviction(record)
    return kept is not None and kept < WEAK_CONVICTION


def _levels(record: TickRecord) -> bool:
    rank = record.regime.reads.get(PERCENTILE) if record.regime else None
    if not isinstance(rank, float) or opening(record) is None:
        return False
    return rank <= QUIET_UPTO or rank >= VOLATILE_FROM


def _news(record: TickRecord) -> bool:
    against = _leans(record).get(NEWS) == -DIRECTIONS[side_of(record)]
    return against and any(
        _sure(one) for one in record.deliberation.reports if one.agent_id == NEWS
    )


def _leans(record: TickRecord) -> dict[str, int]:
    """Return which way each analyst pushes, +1, -1 or 0; of agents in shadow none does."""
    deliberation = record.deliberation
    if deliberation.in_shadow:
        return {}
    return {
        name: (push > 0.0) - (push < 0.0)
        for name, push in deliberation.panel.pushes.items()
        if name not in NO_ANALYST
    }


def _sure(report: AgentReport) -> bool:
    """Return whether an agent is sure, and nothing that it cites is wrong."""
    trust = arithmetic.trust(report)
    return trust is not None and trust >= CONFIDENCE_WEIGHT["high"]


def _conviction(record: TickRecord) -> float | None:
    """Return the conviction behind a BUY or SELL; None of a HOLD, in shadow, or unheard."""
    deliberation = record.deliberation
    if deliberation.in_shadow or record.verdict not in DIRECTIONS:
        return None
    answered = any(not one.abstained and not is_gate(one) for one in deliberation.reports)
    return deliberation.panel.agreement(record.verdict).conviction if answered else None
