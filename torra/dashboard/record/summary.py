"""The first strip of a tick's page: which agents answered, what was odd, what it cost.

Cost and time stand against their limits, and each seat links to its words further down. `note` says
what the state of a tick means and what a person can do about it. The limits (the deadline of a
tick, the ceiling of an hour) are those of the profile with which the tick ran; without them the
figures stand alone. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_config import MAX_REQUESTS
from torra.dashboard.record.stored import Row, mapping, sequence
from torra.exhibits import figures

PROPOSED: Final = "AWAITS_APPROVAL"
"""Reason of a HOLD whose trade was proposed to a person (torra.tick.approval.PROPOSED)."""

PROPOSED_WORDS: Final = "proposed: waits for a person's yes, or was decided: see Approvals"

STATES: Final = ("answered", "abstained", "failed", "not asked")
LOOKS: Final = ("second_look", "first_look_stands")

FLAGS: Final = {
    "late": "answered after its stage was over: recorded, not used",
    "silent": "a rule of the gate had nothing to read and stayed silent",
    "second_look": "thought over once more; the second answer counts",
    "first_look_stands": "thought over once more; the first answer counts",
    "degraded": "too few analysts reported",
    "budget": "no leave to spend: the hour's ceiling",
    "not_asked": "this desk has nobody to ask",
    "ladder": "the ceiling is near: a smaller desk was asked",
    "pivotal_sample": "could not have changed the verdict; asked all the same, as a sample",
    "shadow": "recorded, not counted: the tick decided as L1 alone",
    "threads_exhausted": "too many calls that never came back were still running",
    "reserve_failed": "the ledger could not be written, so nothing was spent",
    "event_failed": "whoever watched was not told of an event",
    "fallback_failed": "the single-model scorer gave no answer either",
    "picture": "the chart could not be shown to the agents",
    "events": "the calendar may miss what comes",
}
"""Meanings of the flags of a sitting, by the word before the colon."""

ROUND: Final = "answered in an earlier round, which counts"
"""Meaning of a flag round_N_without."""

NOTES: Final = {
    "AGENT_PARTIAL": (
        "Some agents gave no answer. The others were used, and nothing was made up for the rest.",
        "Calls below say what each of them met; Health tells whether a vendor is down.",
    ),
    "L1_ONLY": (
        "Nobody answered, so the scores are those of L1, bit for bit. The rules of the gate held.",
        "Health tells whether a vendor is down, Cost whether the hour's ceiling is reached.",
    ),
    "LEGACY": (
        "No agent answered. One model scored the chart instead; its scores count as adjustments "
        "within ±0.30 of L1, under the rules of the gate.",
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
    "Nobody was asked: the hour's ceiling left nothing to spend. The scores are those of L1.",
    "Cost shows who spent it, and when the hour is free again.",
)
ALONE_NOTE: Final = (
    "Nobody was asked: this desk has nobody to ask. The scores are those of L1, bit for bit.",
    "agents.provider in the profile names who answers; rules need no key.",
)


def summary(
    record: Mapping[str, Any],
    deliberation: Mapping[str, Any],
    agents: Sequence[Mapping[str, Any]],
    limits: Mapping[str, Any],
) -> Row:
    """Return the strip: counts, seats, requests, flags, cost and time."""
    flags = [str(flag) for flag in sequence(deliberation.get("flags"))]
    calls = [mapping(call) for call in _calls(record, deliberation)]
    looks = sum(flag.partition(":")[0] in LOOKS for flag in flags)
    repeated = sum((figures.number(call.get("attempt")) or 1) > 1 for call in calls)
    return {
        "counts": _counts(agents),
        "proposed": PROPOSED_WORDS if proposed(record) else "",
        "seats": [{name: a[name] for name in ("title", "mark", "anchor")} for a in agents],
        "requests": figures.plain(len(calls), 0),
        "most": MAX_REQUESTS,
        # a second look is a repeated request too, but not because the first one failed
        "retries": figures.plain(max(0, repeated - looks), 0),
        "looks": figures.plain(looks, 0),
        "late": figures.plain(sum(call.get("status") == "late" for call in calls), 0),
        "flags": [told(flag) for flag in flags],
        "cost": _against(record.get("cost_usd"), limits.get("ceiling")),
        "ceiling": figures.money(limits.get("ceiling"), 2),
        "took": _against(record.get("elapsed_ms"), _ms(limits.get("timeout_seconds"))),
        "deadline": figures.plain(limits.get("timeout_seconds"), 0),
        "seconds": _seconds(record.get("elapsed_ms")),
    }


def proposed(record: Mapping[str, Any]) -> bool:
    """Return whether a tick held because its trade was proposed to a person."""
    return record.get("reason") == PROPOSED


def told(flag: str) -> Row:
    """Return a flag of a sitting: its word, what it is about, and its meaning."""
    word, _, rest = flag.partition(":")
    meaning = ROUND if word.startswith("round_") else FLAGS.get(word, "")
    return {"flag": figures.clean(flag, 120), "meaning": meaning, "about": figures.clean(rest, 60)}


def note(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> Row | None:
    """Return what the state of a tick means and what to do about it; None where all is well."""
    source = str(record.get("source_type"))
    flags = {str(flag).partition(":")[0] for flag in sequence(deliberation.get("flags"))}
    pair = NOTES.get(source)
    if source == "L1_ONLY" and "budget" in flags:
        pair = BUDGET_NOTE
    elif source == "L1_ONLY" and "not_asked" in flags:
        pair = ALONE_NOTE
    if pair is None:
        return None
    return {"mark": figures.mark(source), "what": pair[0], "do": pair[1]}


def _calls(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> list[Any]:
    # texts of calls are pruned after a while; the deliberation keeps their figures
    return sequence(record.get("calls")) or sequence(deliberation.get("calls"))


def _counts(agents: Sequence[Mapping[str, Any]]) -> list[Row]:
    words = [agent["mark"].word for agent in agents]
    return [
        {"mark": figures.mark(state), "count": words.count(state)}
        for state in STATES
        if state in words
    ]


def _ms(seconds: Any) -> float | None:
    known = figures.number(seconds)
    return None if known is None else known * 1000


def _seconds(ms: Any) -> str:
    known = figures.number(ms)
    return figures.DASH if known is None else f"{figures.plain(known / 1000, 2)} s"


def _against(value: Any, limit: Any) -> Row:
    """Return the share of a limit that was used: in words, and as the width of a bar."""
    known, most = figures.number(value), figures.number(limit)
    if known is None or not most or most < 0:
        return {"share": "", "width": None, "over": False}
    share = known / most
    words = "under 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")
    return {"share": words, "width": round(min(1.0, share) * 100, 2), "over": share > 1}
