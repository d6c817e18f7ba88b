"""Assembles the scorecard: every exhibit that can honestly be made of what the arms saw.

Replays, recompositions and a running desk share this one assembly. It computes nothing of its own:
each exhibit is torra.evaluation's, and this module hands the arms, the bars and the seeds to it.
The order is that of reading: the claim first, the evidence under it, and at the end what the sample
could have shown at all.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd
from numpy.random import PCG64, Generator

from torra.clock import duration
from torra.config import Profile
from torra.evaluation import paired
from torra.evaluation.agent_activity import activity_exhibit, restraint_exhibit
from torra.evaluation.arm_tables import ReportInput, arm_exhibits
from torra.evaluation.attribution import attribution, attribution_exhibit
from torra.evaluation.calibration import calibration, calibration_exhibit
from torra.evaluation.criteria import Measured, Share
from torra.evaluation.exhibits import Exhibit
from torra.evaluation.firm.firm_table import firm_exhibit
from torra.evaluation.firm.own_horizons import horizons_exhibit
from torra.evaluation.gate_value import VetoResult
from torra.evaluation.information import (
    by_group,
    coefficients,
    groups_exhibit,
    information_exhibit,
)
from torra.evaluation.memory_worth import memory_exhibits
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.opinion_table import agent_ids
from torra.evaluation.outcomes import Outcomes, RoundTripCosts, outcomes
from torra.evaluation.pivotal_effect import pivotal_effect, pivotal_exhibit
from torra.evaluation.random_entries import VersusRandom, random_entries_exhibit
from torra.evaluation.recomposition import BrainNumbers
from torra.evaluation.state_timeline import states_exhibit
from torra.evaluation.swarm.judge_chance import chance_exhibit
from torra.evaluation.swarm.swarm_table import swarm_exhibit
from torra.replay.arms import CONTROL, OWN_WORDS
from torra.replay.arms import REFERENCES as SOURCES
from torra.replay.arms import reference as source_of
from torra.replay.entries import beside_random
from torra.replay.vetoes import vetoed, whose, would_have_come_to

REFERENCES: Final = (*SOURCES[:-1], "final", "recomposed", SOURCES[-1])
"""Whose agents are looked at one by one: the first of these that is there.

As the sources of a placebo's words; ticks that no replay ran stand before the single model.
"""

PLACEBO: Final = "placebo_"
"""Prefix of the names of arms that use another arm's words."""

OUTAGE: Final = "outage"
BUDGET: Final = "budget"
PIVOTAL: Final = "pivotal"
ANALYST: Final = "analyst"

FIRST: Final = (
    "claims", "arms", "openings", "placebos", "random-entries", "discordant", "paired-days",
    "memory", "memory-twins", "sharpe", "gate",
)  # fmt: skip
LAST: Final = ("criteria", "states", "power")
"""The order of reading: FIRST, then the exhibits of the agents, then LAST."""


@dataclass(frozen=True, slots=True)
class ScoredMarket:
    """The bars that the arms saw, by symbol and timeframe, and what a trade costs there."""

    frames: Mapping[str, Mapping[str, pd.DataFrame]]
    profile: Profile
    commission: float = 0.0

    def outcomes(self, ticks: Sequence[TickObservation]) -> Outcomes:
        """Return the forward outcomes of ticks."""
        flat = {
            (symbol, name): frame
            for symbol, frames in self.frames.items()
            for name, frame in frames.items()
        }
        return outcomes(ticks, flat, {symbol: self.costs(symbol) for symbol in self.frames})

    def costs(self, symbol: str) -> RoundTripCosts:
        """Return the costs of a round trip, in units of the price."""
        spec = self.profile.symbol(symbol)
        value = spec.tick_value / spec.tick_size
        return RoundTripCosts(
            spec.spread + 2 * spec.slippage, self.commission / value if value else 0.0
        )

    def openings(self, arm: ArmObservation) -> tuple[VetoResult, ...]:
        """Return what an arm's gate, trader or judge took away, with what it would have come to."""
        by = whose(arm.ticks)
        return tuple(
            VetoResult(tick.key, tick.verdict, self._worth(tick), by[tick.key])
            for tick in vetoed(arm.ticks)
        )

    def _worth(self, tick: TickObservation) -> float | None:
        frames = self.frames[tick.symbol]
        shortest = frames[min(frames, key=duration)]
        return would_have_come_to(tick, shortest, self.profile.symbol(tick.symbol))


def exhibits(
    arms: Sequence[ArmObservation],
    frames: Mapping[str, Mapping[str, pd.DataFrame]],
    *,
    profile: Profile,
    trials: int = 1,
    seed: int = 0,
    commission: float = 0.0,
    measured: Measured | None = None,
) -> tuple[Exhibit, ...]:
    """Return everything that the arms show, in the order of reading.

    The arm `l1` is the control; without it nothing is paired. `frames` are the bars by symbol and
    timeframe, `trials` how many configurations were ever tried on them, `seed` that of all
    resampling. `measured` has those figures of the success criteria that the arms do not contain.
    """
    market = ScoredMarket(frames, profile, commission)
    told = _with_outage(measured or Measured(), arms)
    compared = compare(arms, market, trials=trials, seed=seed, measured=told)
    beside = random_beside(compared.arms, market, seed)
    compared = replace(compared, by_chance={one.arm: one.as_good for one in beside})
    found = {exhibit.name: exhibit for exhibit in arm_exhibits(compared)}
    found["random-entries"] = random_entries_exhibit(beside)
    told_of = memory_exhibits(compared.arms, compared.outcomes, lambda use: _rng(seed, use))
    found |= {exhibit.name: exhibit for exhibit in told_of}
    found |= {exhibit.name: exhibit for exhibit in _agents(compared.arms, market, seed)}
    if arms:
        found["states"] = states_exhibit(arms[0])
    between = [name for name in found if name not in (*FIRST, *LAST)]
    return tuple(found[name] for name in (*FIRST, *between, *LAST) if name in found)


def compare(
    arms: Sequence[ArmObservation],
    market: ScoredMarket,
    *,
    trials: int = 1,
    seed: int = 0,
    measured: Measured | None = None,
) -> ReportInput:
    """Return the arms with what each is compared with; the outage is no competitor.

    Placebos are compared with the one arm whose words they use: another arm moves the scores by
    less or by more, and would beat them, or lose to them, by that alone.
    """
    shown = [arm for arm in arms if arm.name != OUTAGE]
    control = next((arm for arm in shown if arm.name == CONTROL), None)
    source = source_of(arm.name for arm in shown) or ""
    placebos: dict[str, list[str]] = {}
    for arm in shown:
        if arm.name.startswith(PLACEBO):
            # Lessons by lot, and old evidence, are told to a desk of their own, whoever else runs.
            placebos.setdefault(OWN_WORDS.get(arm.name, source), []).append(arm.name)
    known = paired.sides(control.ticks, market.outcomes(control.ticks)) if control else {}
    return ReportInput(
        shown,
        control=CONTROL,
        placebos=placebos,
        outcomes=known,
        vetoed={arm.name: market.openings(arm) for arm in shown if has_answers(arm)},
        trials=trials,
        seed=seed,
        measured=measured or Measured(),
    )


def random_beside(
    arms: Sequence[ArmObservation], market: ScoredMarket, seed: int
) -> list[VersusRandom]:
    """Return every arm but the placebos beside random entries."""
    return [
        beside_random(arm, market.frames, market.profile, _rng(seed, f"{arm.name} entries"))
        for arm in arms
        if not arm.name.startswith(PLACEBO)
    ]


def reference(arms: Sequence[ArmObservation]) -> ArmObservation | None:
    """Return the arm whose agents are looked at one by one; None when no agent answered."""
    named = {arm.name: arm for arm in arms if has_answers(arm)}
    return next((named[name] for name in REFERENCES if name in named), None)


def has_answers(arm: ArmObservation) -> bool:
    """Return whether any agent of an arm ever answered."""
    return any(one.answered for tick in arm.ticks for one in tick.opinions)


def _agents(arms: Sequence[ArmObservation], market: ScoredMarket, seed: int) -> Iterator[Exhibit]:
    """Yield the exhibits of single agents."""
    arm = reference(arms)
    if arm is not None:
        known, brain = market.outcomes(arm.ticks), BrainNumbers.of(market.profile)
        rng = _rng(seed, arm.name)
        yield information_exhibit(coefficients(arm.ticks, known, rng=rng))
        yield groups_exhibit(by_group(arm.ticks, known, lambda tick: tick.regime), "regime")
        yield attribution_exhibit(attribution(arm, known, brain))
        by_verdict = attribution(arm, known, brain, worth="verdict")
        yield attribution_exhibit(by_verdict, "attribution-verdicts")
        single = agent_ids(arm.ticks, ANALYST)
        words = [calibration(arm.ticks, known, [name], name=name) for name in single]
        yield calibration_exhibit([calibration(arm.ticks, known), *words])
        if (own := horizons_exhibit(arm.ticks)) is not None:
            yield own
        yield activity_exhibit(arm.ticks)
        if (firm := firm_exhibit(arm.ticks)) is not None:
            yield firm
        if (chance := chance_exhibit(arm, known)) is not None:
            yield chance
        if (swarm := swarm_exhibit(arm.ticks)) is not None:
            yield swarm
        yield restraint_exhibit(arm.ticks, market.profile.gate)
    named = {each.name: each for each in arms}
    if PIVOTAL in named and BUDGET in named:
        found = pivotal_effect(named[BUDGET], named[PIVOTAL], BrainNumbers.of(market.profile))
        yield pivotal_exhibit(found)


def _rng(seed: int, use: str) -> Generator:
    """Return a generator of its own for each use, so that no draw depends on another's."""
    return Generator(PCG64([seed, zlib.crc32(use.encode())]))


def _with_outage(told: Measured, arms: Sequence[ArmObservation]) -> Measured:
    """Return `told` with the outage's figures: on how many ticks the scores equal L1's exactly."""
    named = {arm.name: arm for arm in arms}
    if OUTAGE not in named:
        return told
    ticks = named[OUTAGE].ticks
    same = sum(tick.scores == tick.l1 for tick in ticks)
    lost = len(named[CONTROL].ticks) - len(ticks) if CONTROL in named else None
    return replace(told, fallbacks=Share(same, len(ticks)), lost=lost)
