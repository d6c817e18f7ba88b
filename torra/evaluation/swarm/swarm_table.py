"""What a swarm does: who abstains, what is vetoed and why, and what is left of a size.

A share is of the ticks on which anybody was heard; those of sizes are of the ticks that give BUY or
SELL, what is vetoed by its judge of the sides that it took. A reason that lowers (panic,
liquidations, exhaustion) is no veto.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Final

from agents.contracts import WINNERS
from torra.evaluation.exhibits import Cell, Exhibit
from torra.evaluation.gate_value import LEAST_RATE, MOST_RATE
from torra.evaluation.intervals import wilson
from torra.evaluation.observations import AgentOpinion, SwarmObservation, TickObservation
from torra.evaluation.opinion_table import spoke
from torra.evaluation.wording import count, listed, percent, rounded, share_cell, upper_first
from torra.words.deny_reasons import DenyReason
from torra.words.ticks import OFFICER_EFFECTS

ANALYST: Final = "analyst"
JUDGE: Final = "judge"
LEAST: Final = 100
"""Ticks, and ticks that give BUY or SELL, from which on shares can be read."""

QUARTILES: Final = ("a quarter below", "half below", "three quarters below")


@dataclass(frozen=True, slots=True)
class SwarmCounts:
    """Counts of a swarm over `ticks` ticks.

    `asked` and `abstained` are by expert, `odd` by expert and anomaly, `patterns` and `first` by
    name, `took` by the side that the judge named. `vetoed` counts the judge's vetoes of its own
    side, `sizes` are the shares that gate, conviction and budget left of the `signals`' sizes.
    """

    ticks: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    abstained: Counter[str] = field(default_factory=Counter)
    odd: Counter[tuple[str, str]] = field(default_factory=Counter)
    patterns: Counter[str] = field(default_factory=Counter)
    first: Counter[str] = field(default_factory=Counter)
    took: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    disputed: int = 0
    read: int = 0
    thin: int = 0
    vetoed: int = 0
    changed: int = 0
    size_zero: int = 0
    sizes: tuple[float, ...] = ()
    budgets: tuple[float, ...] = ()

    @property
    def sides(self) -> int:
        """The number of ticks on which the judge took a side."""
        return sum(number for name, number in self.took.items() if WINNERS.get(name, 0))


def swarm_counts(ticks: Sequence[TickObservation]) -> SwarmCounts:
    """Return what a swarm came to on the ticks on which anybody of it was heard."""
    heard = [(tick, tick.swarm) for tick in ticks if tick.swarm and tick.opinions]
    opinions = [one for tick, _ in heard for one in tick.opinions]
    experts = [one for one in opinions if one.kind == ANALYST]
    signals = [tick for tick, _ in heard if tick.verdict != "HOLD"]
    return SwarmCounts(
        ticks=len(heard),
        asked=Counter(one.agent_id for one in experts if one.answered),
        abstained=Counter(one.agent_id for one in experts if one.abstained),
        odd=Counter((one.agent_id, one.anomaly) for one in experts if one.anomaly),
        patterns=Counter(one.pattern for one in experts if one.pattern),
        first=Counter(told.first for _, told in heard if told.first),
        took=Counter(one.winner for one in opinions if _judges(one) and one.winner),
        reasons=Counter(reason for _, told in heard for reason in told.reasons),
        disputed=sum(_disputed(tick, told) for tick, told in heard),
        read=sum(bool(told.reader) for _, told in heard),
        thin=sum(told.thin for _, told in heard),
        vetoed=sum(bool(told.vetoes) for _, told in heard),
        changed=sum(tick.verdict != tick.l1_verdict for tick, _ in heard),
        size_zero=sum(tick.reason == DenyReason.SIZE_ZERO for tick, _ in heard),
        sizes=tuple(tick.size_share for tick in signals),
        budgets=tuple(told.budget for _, told in heard),
    )


def swarm_exhibit(ticks: Sequence[TickObservation]) -> Exhibit | None:
    """Return the table of a swarm; None for a desk that has no expert."""
    found = swarm_counts(ticks)
    if not found.ticks:
        return None
    return Exhibit(
        name="swarm-experts",
        title="What the swarm does",
        columns=("what", "value"),
        rows=(*_of_experts(found), *_of_the_judge(found), *_of_sizes(found)),
        says=_says(found),
        enough=found.ticks >= LEAST and len(found.sizes) >= LEAST,
        figures=figures(found),
    )


def figures(found: SwarmCounts) -> dict[str, float | None]:
    """Return the shares by name, for programs and the docs."""
    told: dict[str, float | None] = {
        **{f"abstained.{n}": _part(found.abstained[n], found.asked[n]) for n in found.asked},
        **{f"odd.{n}.{what}": _part(k, found.ticks) for (n, what), k in found.odd.most_common()},
        **{f"pattern.{name}": _part(k, found.ticks) for name, k in found.patterns.most_common()},
        **{f"first.{name}": _part(k, found.ticks) for name, k in found.first.most_common()},
        **{f"judge.{name}": _part(found.took[name], sum(found.took.values())) for name in WINNERS},
        **{f"reason.{one}": _part(found.reasons[one], found.ticks) for one in OFFICER_EFFECTS},
        "judge.vetoed": _part(found.vetoed, found.sides),
        "disputed": _part(found.disputed, found.read),
        "thin": _part(found.thin, found.ticks),
        "changed": _part(found.changed, found.ticks),
        "size_zero": _part(found.size_zero, found.ticks),
    }
    cuts = _cuts(found.sizes)
    return told | {f"size.{n}": cut for n, cut in zip(("low", "half", "high"), cuts, strict=True)}


def _judges(one: AgentOpinion) -> bool:
    return one.kind == JUDGE and spoke(one)


def _disputed(tick: TickObservation, told: SwarmObservation) -> bool:
    return bool(told.reader) and told.reader != tick.regime


def _part(hits: int, size: int) -> float | None:
    return hits / size if size else None


def _cuts(values: Sequence[float]) -> tuple[float | None, ...]:
    if len(values) < len(QUARTILES):
        return (None,) * len(QUARTILES)
    return tuple(quantiles(values, n=4))


def _of_experts(found: SwarmCounts) -> list[tuple[Cell, ...]]:
    ticks = found.ticks
    silent = [(f"{n} abstained", found.abstained[n], k) for n, k in found.asked.items()]
    odd = [(f"{name} calls it {what}", k, ticks) for (name, what), k in found.odd.most_common()]
    shares = [
        *silent,
        ("fewer than two experts spoke", found.thin, ticks),
        *odd,
        *((f"a pattern is named: {n}", k, ticks) for n, k in found.patterns.most_common()),
        ("the reader names another regime", found.disputed, found.read),
        *((f"the reader has {n} go first", k, ticks) for n, k in found.first.most_common()),
    ]
    return [("ticks", ticks), *((what, share_cell(k, size)) for what, k, size in shares)]


def _of_the_judge(found: SwarmCounts) -> list[tuple[Cell, ...]]:
    judged = sum(found.took.values())
    return [
        *((f"judge takes {name}", share_cell(found.took[name], judged)) for name in WINNERS),
        ("judge's side vetoed by its own chance", share_cell(found.vetoed, found.sides)),
        *(
            (f"{reason} ({does})", share_cell(found.reasons[reason], found.ticks))
            for reason, does in OFFICER_EFFECTS.items()
        ),
    ]


def _of_sizes(found: SwarmCounts) -> list[tuple[Cell, ...]]:
    cuts, budgets = _cuts(found.sizes), _cuts(found.budgets)
    return [
        ("verdict is not that of the bars alone", share_cell(found.changed, found.ticks)),
        ("ticks that give BUY or SELL", len(found.sizes)),
        *(
            (f"size left by gate, conviction and budget, {word}", rounded(cut, 2))
            for word, cut in zip(QUARTILES, cuts, strict=True)
        ),
        *(
            (f"budget of the regime, {word}", rounded(cut, 2))
            for word, cut in zip(QUARTILES, budgets, strict=True)
        ),
        ("too small for an order (SIZE_ZERO)", share_cell(found.size_zero, found.ticks)),
    ]


def _says(found: SwarmCounts) -> str:
    silent = [name for name, asked in found.asked.items() if found.abstained[name] == asked]
    told = f"The swarm was heard on {count(found.ticks, 'tick')}."
    if silent:
        told += f" {upper_first(listed(silent))} had nothing to read."
    judged = sum(found.took.values())
    if judged:
        told += f" Its judge took a side on {percent(found.sides / judged)} of them"
        told += f" and vetoed {percent(_part(found.vetoed, found.sides))} of its sides"
        told += f"{_expected(found)}."
    if found.sizes:
        middle = _cuts(found.sizes)[1]
        told += (
            f" Of {count(len(found.sizes), 'tick')} that give BUY or SELL half leave "
            f"{percent(middle)} of a size or less; {percent(found.size_zero / found.ticks, 1)} of "
            "all ticks say SIZE_ZERO."
        )
    few = "" if len(found.sizes) >= LEAST else f" That is few: shares take about {LEAST} of them."
    return f"{told}{few}"


def _expected(found: SwarmCounts) -> str:
    """Return whether a judge's rate of vetoes is one that is expected; "" where it is."""
    known = wilson(found.vetoed, found.sides)
    if known is None or (known.high >= LEAST_RATE and known.low <= MOST_RATE):
        return ""
    return f", where {percent(LEAST_RATE)} to {percent(MOST_RATE)} is expected"
