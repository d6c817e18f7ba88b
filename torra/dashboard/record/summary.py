"""The first strip of a tick's page: which agents answered, what was odd, what it cost.

Cost and time stand against their limits, and each seat links to its words further down. `note` says
what the state of a tick means and what a person can do about it. The limits (the deadline of a
tick, the ceiling of an hour) are those of the profile with which the tick ran; without them the
figures stand alone. Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from agent_config import MAX_REQUESTS
from agents.contracts import SourceType
from agents.debate.debate import REQUESTS_PER_AGENT
from torra.dashboard.record.transcript import Voice
from torra.exhibits import figures
from torra.tick.tick_record import TickRecord
from torra.words.badge import Badge, capital
from torra.words.ticks import FLAGS, UNHEARD

STATES: Final = ("answered", "abstained", "failed", "not asked")
LOOKS: Final = ("second_look", "first_look_stands")

OFFICER: Final = {
    "macro.vix_rank": "VIX",
    "derivs.funding_rank": "funding",
    "derivs.long_liquidations_rank": "liquidations",
}
"""What rows of the risk officer read that may have no source (agents.risk_officer)."""

UNSOURCED: Final = "no source of {} is set, so this row of the risk officer is silent: no fault"

ROUND: Final = "answered in an earlier round, which counts"
"""Meaning of a flag round_N_without."""


def most_requests(record: TickRecord) -> int:
    """Return how many requests a tick may make."""
    return MAX_REQUESTS + (REQUESTS_PER_AGENT if record.company is not None else 0)


def asked_again(record: TickRecord) -> tuple[int, int]:
    """Return how many requests were repeats of failed ones, and how many second looks."""
    looks = sum(flag.partition(":")[0] in LOOKS for flag in record.deliberation.flags)
    repeated = sum(call.attempt > 1 for call in record.made_calls)
    # a second look is a repeated request too, but not because the first one failed
    return max(0, repeated - looks), looks


def counts(agents: Sequence[Voice]) -> dict[str, int]:
    """Return how many agents ended in each state; states without an agent are left out."""
    known = Counter(agent.state for agent in agents)
    return {state: known[state] for state in STATES if known[state]}


def meaning_of(flag: str) -> str:
    """Return what a flag of a sitting means; "" of one that is not known."""
    word, _, rest = flag.partition(":")
    if word == "silent" and rest in OFFICER:
        return UNSOURCED.format(OFFICER[rest])
    return ROUND if word.startswith("round_") else FLAGS.get(word, "")


def note(record: TickRecord) -> Badge | None:
    """Return the source of a tick with what it means and what to do; None where all is well."""
    source = figures.mark(record.source_type)
    if not source.advice:
        return None
    flags = {flag.partition(":")[0] for flag in record.deliberation.flags}
    for flag in UNHEARD if record.source_type == SourceType.L1_ONLY else ():
        if flag in flags and UNHEARD[flag].advice:
            source = source._replace(meaning=FLAGS[flag], advice=UNHEARD[flag].advice)
            break
    return source._replace(meaning=f"{capital(source.meaning)}.")
