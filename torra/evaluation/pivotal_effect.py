"""Effect of the policy `pivotal`: what it saved, and what it changed on skipped and on later ticks.

A tick is skipped if no reply could change its verdict. That claim is checked on the same tick of an
arm that always asks: its composite is put into the skipping arm's consensus, for that tick alone,
and the verdict must stay. A skipped tick leaves L1's composite behind, which later ticks of the
other timeframes see, so their verdicts may differ; these are counted, and are the price. Without an
arm that always asks, the sampled ticks, which the policy could have skipped and did not, are the
check: with L1's composite in their place their verdict must be the same. Arms that have no tick in
common have no figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

import numpy as np

from agents.contracts import SourceType
from torra.evaluation.exhibits import Exhibit
from torra.evaluation.intervals import Floats, wilson
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.opinion_table import Flags
from torra.evaluation.recomposition import BrainNumbers, Chains, verdicts_of
from torra.evaluation.wording import count, percent, percent_span
from torra.verdict import call_policy

Key = tuple[str, str, object]


@dataclass(frozen=True, slots=True)
class PivotalEffect:
    """The effect of skipping on `ticks` ticks that both arms have; costs in USD.

    No agent was asked on `skipped` ticks; on `own` of them the desk's word would have changed the
    verdict (the claim: 0). `sampled` ticks would have been skipped but were asked on; on `swayed`
    of them the verdict is another than with L1's composite (the claim: 0). `later` counts ticks
    whose verdict differs between the arms, `later_skipped` those among them that were skipped.
    """

    ticks: int
    skipped: int
    own: int
    sampled: int
    swayed: int
    later: int
    later_skipped: int
    cost_always: float
    cost_pivotal: float
    calls_always: int
    calls_pivotal: int


def pivotal_effect(
    always: ArmObservation | None, pivotal: ArmObservation, brain: BrainNumbers
) -> PivotalEffect:
    """Return the effect of skipping; with `always` None only the sample is a check."""
    chains = Chains(pivotal.ticks, brain)
    # reshape: no ticks are (0, 4) and not (0,)
    scores = np.array([tick.scores for tick in pivotal.ticks]).reshape(-1, 4)
    plain = np.array([tick.l1 for tick in pivotal.ticks]).reshape(-1, 4)
    composites, alone = chains.composites(scores), chains.composites(plain)
    verdicts = verdicts_of(chains.together(composites), brain.thresholds)
    without = chains.together(composites, own=alone)
    changed = verdicts_of(without, brain.thresholds) != verdicts
    skipped = np.array([skip(tick) for tick in pivotal.ticks], dtype=bool)
    sampled = _would_skip(pivotal.ticks, composites, alone, brain) & ~skipped
    # a tick on which nobody spoke was not sampled, whatever the policy says
    sampled &= np.array([bool(tick.opinions) for tick in pivotal.ticks], dtype=bool)
    others: Mapping[Key, TickObservation] = (
        {tick.key: tick for tick in always.ticks} if always else {}
    )
    pairs = [(row, others[t.key]) for row, t in enumerate(pivotal.ticks) if t.key in others]
    asked = _with_words(chains, composites, pairs)
    own = (verdicts_of(asked, brain.thresholds) != verdicts) & skipped
    later = [row for row, other in pairs if other.verdict != pivotal.ticks[row].verdict]
    both = [pivotal.ticks[row] for row, _ in pairs] if always else list(pivotal.ticks)
    return PivotalEffect(
        ticks=len(both),
        skipped=sum(skip(tick) for tick in both),
        own=int(own.sum()),
        sampled=int(sampled.sum()),
        swayed=int((sampled & changed).sum()),
        later=len(later),
        later_skipped=sum(bool(skipped[row]) for row in later),
        cost_always=sum(other.cost_usd for _, other in pairs),
        cost_pivotal=sum(tick.cost_usd for tick in both),
        calls_always=sum(other.calls for _, other in pairs),
        calls_pivotal=sum(tick.calls for tick in both),
    )


def skip(tick: TickObservation) -> bool:
    """Return whether no agent was asked because no reply could have changed the verdict."""
    return tick.source_type == SourceType.AGENT_SKIPPED


def pivotal_exhibit(found: PivotalEffect) -> Exhibit:
    """Return the table of what skipping saved and changed."""
    compared = found.ticks > 0 and found.calls_always + found.cost_always > 0
    saved = found.cost_always - found.cost_pivotal if compared else None
    rows = (
        ("ticks", found.ticks),
        ("of those skipped", found.skipped),
        ("skipped with another verdict, had they been asked on", found.own if compared else None),
        ("sampled: asked on although they could be skipped", found.sampled),
        ("sampled whose verdict the agents changed", found.swayed),
        ("ticks with another verdict than always asking gives", found.later if compared else None),
        ("calls", found.calls_pivotal),
        ("calls when always asking", found.calls_always if compared else None),
        ("cost saved, USD", None if saved is None else round(saved, 4)),
    )
    return Exhibit(
        name="pivotal",
        title="What asking only near a verdict changes",
        columns=("what", "number"),
        rows=rows,
        says=_says(found, compared=compared),
        enough=found.skipped > 0,
        figures={
            "skipped": found.skipped,
            "own": found.own if compared else None,
            "swayed": found.swayed,
            "later": found.later if compared else None,
            "saved_usd": saved,
        },
    )


def _with_words(
    chains: Chains, composites: Floats, pairs: Sequence[tuple[int, TickObservation]]
) -> Floats:
    """Return each tick's consensus with the always-asking arm's composite on that tick alone."""
    own = composites.copy()
    if pairs:
        rows = [row for row, _ in pairs]
        table = np.zeros((len(composites), 4))
        table[rows] = [other.scores for _, other in pairs]
        own[rows] = chains.composites(table)[rows]
    return chains.together(composites, own=own)


def _would_skip(
    ticks: Sequence[TickObservation], final: Floats, l1: Floats, brain: BrainNumbers
) -> Flags:
    """Return the ticks on which the policy would have asked no agent, from what it foresaw.

    `final` and `l1` are composites. What closed together was foreseen before any of it was stored.
    """
    newest: dict[str, dict[str, tuple[datetime, dict[str, float]]]] = {}
    skipped = np.zeros(len(ticks), dtype=bool)

    def close_of(row: int) -> tuple[str, datetime]:
        return ticks[row].instance, ticks[row].close_time

    for (name, close), rows in groupby(sorted(range(len(ticks)), key=close_of), close_of):
        closed = {ticks[row].timeframe: row for row in rows}
        known = newest.setdefault(name, {})
        for timeframe, row in closed.items():
            pairs = call_policy.foreseen(
                timeframe, float(l1[row]), close,
                together={other: float(l1[at]) for other, at in closed.items() if at != row},
                known=known, weights=brain.timeframe_weights,
            )  # fmt: skip
            skipped[row] = not call_policy.pivotal(pairs, brain.weights, brain.thresholds)
        known |= {
            timeframe: (close, {"l1": float(l1[row]), "final": float(final[row])})
            for timeframe, row in closed.items()
        }
    return skipped


def _says(found: PivotalEffect, *, compared: bool) -> str:
    if not found.skipped:
        return "No tick was skipped, so there is nothing to show."
    share = wilson(found.later, found.ticks)
    start = f"{found.skipped:,} of {count(found.ticks, 'tick')} were skipped"
    if compared:
        start += f", which saved {found.calls_always - found.calls_pivotal:,} of "
        start += count(found.calls_always, "call")
        kept = "none" if not found.own else f"{found.own}, which the bound should not allow,"
        told = (
            f"{start}; {kept} would have had another verdict had it been asked on. Of all ticks "
            f"{percent(found.later / found.ticks, 2)} have another verdict than when always asking"
        )
        told += f" (95 %: {percent_span(share.low, share.high)})" if share else ""
        return f"{told}, through composites that skipping left as L1 made them."
    if not found.sampled:
        return f"{start}; without an arm that always asks, or a sample, it cannot be checked."
    kept = "none" if not found.swayed else f"{found.swayed}, which the bound should not allow,"
    return f"{start}; of {count(found.sampled, 'sampled tick')} the agents changed {kept}."
