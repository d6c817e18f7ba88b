"""Conviction of recorded ticks, computed again: with all that was said, or without an arbiter.

The panel is arithmetic over what each agent said (agents.debate.panel). A report is put together
again from its adjustments and its trust, which is all that the panel reads of it. Pure functions;
nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Final, cast

from agents.contracts import OPINIONS, VECTORS, WINNERS, AgentReport, Confidence, Winner
from agents.debate.panel import UNJUDGED, measure
from agents.debate.synthesis import Answer
from agents.evidence import trust
from agents.registry import AGENTS
from torra.evaluation.observations import Opinion, TickSeen
from torra.evaluation.opinion_table import spoke

WORDS: Final[tuple[Confidence, ...]] = ("high", "medium", "low")
FLAGS: Final[tuple[tuple[str, ...], ...]] = ((), ("ungrounded",))
TOLD: Final[Mapping[float, tuple[Confidence, tuple[str, ...]]]] = {
    trust(AgentReport("", {}, word, flags=flags)): (word, flags)
    for word, flags in product(WORDS, FLAGS)
}
"""A confidence and flags that lend a report its trust."""


def conviction(
    tick: TickSeen, side: str, weights: Mapping[str, float], *, arbiter: bool = True
) -> float:
    """Return the share, 0 to 1, that the desk's agreement leaves of an opening BUY or SELL.

    `weights` are those of the vectors in the composite. Without the `arbiter` it is as of a desk at
    which none sits.
    """
    heard = [one for one in tick.opinions if one.answered and one.kind in OPINIONS]
    failed = [one.agent_id for one in tick.opinions if not one.answered and one.kind in OPINIONS]
    judged = _judged(tick.opinions) if arbiter else None
    answers = [Answer(AGENTS[one.agent_id].role, _report(one)) for one in heard]
    return measure(answers, failed, weights, judged).agreement(side).conviction


def _judged(opinions: Iterable[Opinion]) -> AgentReport | None:
    told = [one for one in opinions if one.kind == "arbiter"]
    if not told:
        return None
    heard = [one for one in told if one.answered]
    return _report(heard[0]) if heard else UNJUDGED


def _report(one: Opinion) -> AgentReport:
    if not spoke(one):
        return AgentReport.abstain(one.agent_id, "")
    word, flags = TOLD.get(one.trust, (WORDS[0], ()))
    moves = dict(zip(VECTORS, one.adjustments, strict=True))
    winner = one.winner if one.winner in WINNERS else ""
    return AgentReport(one.agent_id, moves, word, flags=flags, winner=cast(Winner, winner))
