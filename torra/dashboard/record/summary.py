"""The first strip of a tick's page: which agents answered, what was odd, what it cost.

Cost and time stand against their limits, and each seat links to its words further down. `note` says
what the state of a tick means and what a person can do about it. The limits (the deadline of a
tick, the ceiling of an hour) are those of the profile with which the tick ran; without them the
figures stand alone. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypedDict

from agent_config import MAX_REQUESTS
from agents.debate.asking import REQUESTS_PER_AGENT
from agents.debate.deliberation import ABSTAINED, OUTAGE
from torra.dashboard.record.rows import TranscriptVoice
from torra.dashboard.record.shown import Decision, ShownTick, TickLimits
from torra.exhibits import figures
from torra.exhibits.figures import Mark
from torra.tick.marks import PROPOSED
from torra.tick.tick_record import TickRecord

PROPOSED_WORDS: Final = "a person decides: see Approvals"

STATES: Final = ("answered", "abstained", "failed", "not asked")
LOOKS: Final = ("second_look", "first_look_stands")

FLAGS: Final = {
    "late": "answered after its stage was over: recorded, not used",
    "silent": "a rule of the gate had nothing to read and stayed silent",
    "second_look": "thought over once more; the second answer counts",
    "first_look_stands": "thought over once more; the first answer counts",
    "shortened": "numbers from beside the chart were left out of its prompt: no room",
    "standing": "what the seats' past came to had not been counted yet, so nobody was told",
    "thin_swarm": "fewer than two experts spoke: conviction is 0.50 at most",
    "regime_disputed": "the reader names another regime than the code: the lower budget counts",
    "degraded": "too few analysts reported",
    "budget": "no leave to spend: the hour's ceiling",
    "not_asked": "this desk has nobody to ask",
    "ladder": "the ceiling is near: a smaller desk was asked",
    "pivotal_sample": "could not have changed the verdict; asked all the same, as a sample",
    OUTAGE: "no agent was heard: an opening has at most agents.outage_size of its size",
    ABSTAINED: "every opinion that was asked abstained: none failed",
    "shadow": "recorded, not counted: the bars alone decided",
    "threads_exhausted": "too many calls that never came back were still running",
    "reserve_failed": "the ledger could not be written, so nothing was spent",
    "event_failed": "whoever watched was not told of an event",
    "fallback_failed": "the single-model scorer gave no answer either",
    "picture": "the chart could not be shown to the agents",
    "events": "the calendar may miss what comes",
    "usage_implausible": "its server counted no tokens, or more than there can be: the most that "
    "it could cost is counted",
    "no_thesis": "the opening goes without a thesis",
    "memory": "lessons of earlier trades came too late, or could not be ranked",
}
"""Meanings of the flags of a sitting, by the word before the colon."""

OFFICER: Final = {
    "macro.vix_rank": "VIX",
    "derivs.funding_rank": "funding",
    "derivs.long_liquidations_rank": "liquidations",
}
"""What rows of the risk officer read that may have no source (agents.risk_officer)."""

UNSOURCED: Final = "no source of {} is set, so this row of the risk officer is silent: no fault"

ROUND: Final = "answered in an earlier round, which counts"
"""Meaning of a flag round_N_without."""

NOTES: Final = {
    "AGENT_PARTIAL": (
        "Some agents gave no answer. The others were used, and nothing was made up for the rest.",
        "Calls below say what each of them met; Health tells whether a vendor is down.",
    ),
    "L1_ONLY": (
        "No agent answered, so the scores are those of L1, bit for bit. The rules of the gate "
        "held, and an opening has at most agents.outage_size of its size.",
        "Health tells whether a vendor is down, Cost whether the hour's ceiling is reached.",
    ),
    "LEGACY": (
        "No agent was heard. One model scored the chart instead; its scores count as adjustments "
        "within ±0.30 of L1, under the rules of the gate. An opening has at most "
        "agents.outage_size of its size.",
        "Health tells whether a vendor is down.",
    ),
    "AGENT_SKIPPED": (
        "The policy pivotal asked nobody: L1 and the final chain are both so far inside the "
        "thresholds that no answer could have changed this verdict.",
        "A sample of such ticks is asked all the same; agents.call_policy in the profile decides.",
    ),
}
"""Meaning of a source type, and what the reader may do about it."""

BUDGET_NOTE: Final = (
    "Nobody was asked: the hour's ceiling left nothing to spend. The scores are those of L1, and "
    "an opening has at most agents.outage_size of its size.",
    "Cost shows who spent it, and when the hour is free again.",
)
ALONE_NOTE: Final = (
    "Nobody was asked: this desk has nobody to ask. The scores are those of L1, bit for bit.",
    "agents.provider in the profile names who answers; rules need no key.",
)
ABSTAINED_NOTE: Final = (
    "Every agent that was asked abstained, so the scores are those of L1, bit for bit.",
    "Their reasons stand below; no opinion failed.",
)
SILENT: Final = {"budget": BUDGET_NOTE, "not_asked": ALONE_NOTE, ABSTAINED: ABSTAINED_NOTE}
"""Why a tick is of L1 alone, by a flag of its sitting."""


class FlagLine(TypedDict):
    """A flag of a sitting: its word, what it is about, and its meaning."""

    flag: str
    meaning: str
    about: str


class LimitShare(TypedDict):
    """The share of a limit that was used: in words, and as the width of a bar."""

    share: str
    width: float | None
    over: bool


class Count(TypedDict):
    """How many agents ended in a state."""

    mark: Mark
    count: int


class Seat(TypedDict):
    """An agent, its state, and the anchor of its words."""

    title: str
    mark: Mark
    anchor: str


class SummaryStrip(TypedDict):
    """The strip: counts, seats, requests, flags, cost and time."""

    counts: list[Count]
    proposed: str
    seats: list[Seat]
    requests: str
    most: int
    retries: str
    looks: str
    late: str
    flags: list[FlagLine]
    cost: LimitShare
    ceiling: str
    took: LimitShare
    deadline: str
    seconds: str


class Note(NamedTuple):
    """What the state of a tick means, and what to do about it."""

    mark: Mark
    what: str
    do: str


def summary(record: ShownTick, agents: Sequence[TranscriptVoice]) -> SummaryStrip:
    """Return the strip: counts, seats, requests, flags, cost and time."""
    flags, calls, limits = (
        record.deliberation.flags,
        record.made_calls,
        record.limits or TickLimits(),
    )
    looks = sum(flag.partition(":")[0] in LOOKS for flag in flags)
    repeated = sum(call.attempt > 1 for call in calls)
    return {
        "counts": _counts(agents),
        "proposed": PROPOSED_WORDS if proposed(record) else "",
        "seats": [
            {"title": one["title"], "mark": one["mark"], "anchor": one["anchor"]} for one in agents
        ],
        "requests": figures.plain(len(calls), 0),
        "most": MAX_REQUESTS + (REQUESTS_PER_AGENT if record.company is not None else 0),
        # a second look is a repeated request too, but not because the first one failed
        "retries": figures.plain(max(0, repeated - looks), 0),
        "looks": figures.plain(looks, 0),
        "late": figures.plain(sum(call.status == "late" for call in calls), 0),
        "flags": [told(flag) for flag in flags],
        "cost": _against(record.cost_usd, limits.ceiling),
        "ceiling": figures.money(limits.ceiling, 2),
        "took": _against(record.elapsed_ms, _ms(limits.timeout_seconds)),
        "deadline": figures.plain(limits.timeout_seconds, 0),
        "seconds": _seconds(record.elapsed_ms),
    }


def proposed(record: Decision) -> bool:
    """Return whether a tick held because its trade was proposed to a person."""
    return record.reason == PROPOSED


def told(flag: str) -> FlagLine:
    """Return a flag of a sitting: its word, what it is about, and its meaning."""
    word, _, rest = flag.partition(":")
    meaning = ROUND if word.startswith("round_") else FLAGS.get(word, "")
    if word == "silent" and rest in OFFICER:
        meaning = UNSOURCED.format(OFFICER[rest])
    return {"flag": figures.clean(flag, 120), "meaning": meaning, "about": figures.clean(rest, 60)}


def note(record: TickRecord) -> Note | None:
    """Return what the state of a tick means and what to do about it; None where all is well."""
    source = str(record.source_type)
    flags = {flag.partition(":")[0] for flag in record.deliberation.flags}
    pair = NOTES.get(source)
    if source == "L1_ONLY":
        pair = next((row for flag, row in SILENT.items() if flag in flags), pair)
    return None if pair is None else Note(figures.mark(source), *pair)


def _counts(agents: Sequence[TranscriptVoice]) -> list[Count]:
    words = [agent["mark"].word for agent in agents]
    return [
        {"mark": figures.mark(state), "count": words.count(state)}
        for state in STATES
        if state in words
    ]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _seconds(ms: float | None) -> str:
    return figures.DASH if ms is None else f"{figures.plain(ms / 1000, 2)} s"


def _against(known: float | None, most: float | None) -> LimitShare:
    if known is None or not most or most < 0:
        return {"share": "", "width": None, "over": False}
    share = known / most
    words = "under 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")
    return {"share": words, "width": round(min(1.0, share) * 100, 2), "over": share > 1}
