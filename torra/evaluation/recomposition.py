"""Recomposition of a recording: its scores with other analysts, weights or bounds, without a call.

The synthesis is arithmetic over typed fields (docs/debate.md, "Synthesis"). So the debate, the
adjustments, the scores, the consensus over the timeframes and the verdicts can be computed again
from what each agent said on each tick. With nothing changed the result is the recorded one, bit for
bit.
The words stay as they were said. So the result is exact only if no agent that spoke would have read
something else: analysts with the debate off, under the rules of the gate. Researchers, an arbiter
and the gate's model read the analysts; if one analyst is dropped, their old words stay. Then the
result is first-order, and `exact` and `label` say so. An arbiter is read by nobody but the trader,
so without it the scores are exact, both cases counting in full.

A swarm's experts are blind to each other, to the reader of the regime and to the judge, so without
any of these they are exact: with other weights, without a seat, without the judge. The judge had
read all of them on the board, and is of first order. What the reader and the judge did beside the
scores goes with them: the budget, the expert that goes first, a veto.

Conviction stays as recorded here, and so does the memory that a desk shows its agents (past
consensus, positions, a losing streak). What a trader declined is no score and stays as well.

Ticks on which no opinion was heard (skipped, L1 alone, the single-model fallback, a placebo) keep
their recorded adjustments; blend, weights and thresholds apply to them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import fsum
from typing import Final, Literal

import numpy as np

from agent_config import (
    CONFIDENCE_WEIGHT,
    EXPERTS,
    GateSettings,
)
from agents.contracts import (
    ADJUSTMENT_BOUND,
    BLEND_WEIGHT,
    RESEARCHER_BOUND,
    SCORE_DECIMALS,
    SIDES,
    VECTORS,
    OfficerReason,
    SourceType,
)
from torra.config import Profile, SentimentWeights, Thresholds
from torra.evaluation.intervals import Floats
from torra.evaluation.observations import (
    AgentOpinion,
    ArmObservation,
    Four,
    SwarmObservation,
    TickObservation,
)
from torra.evaluation.opinion_table import Flags, Whole, agent_ids, opinions_of, spoke
from torra.verdict.sentiment_rules import is_fresh

GateUse = Literal["recorded", "rules", "off"]
"""recorded: the rules and the model's word; rules: without the model; off: a multiplier of 1."""

TIE: Final = 1e-6
"""Distance from half a unit of the last decimal within which a score is rounded the slow way."""

OF_EXPERTS: Final = "exact for the experts, first order with the judge"

EXACT: Final = "exact, given what was said on each tick"

WORDS: Final = ("SELL", "HOLD", "BUY")
"""Verdicts by their number -1, 0, +1, shifted by one."""


@dataclass(frozen=True, slots=True)
class BrainNumbers:
    """The numbers of the profile by which scores become verdicts, and those of the gate's rules."""

    weights: SentimentWeights
    timeframe_weights: Mapping[str, float]
    thresholds: Thresholds
    gate: GateSettings

    @classmethod
    def of(cls, profile: Profile) -> BrainNumbers:
        """Return the brain of a profile."""
        return cls(
            profile.sentiment_weights, profile.timeframe_weights, profile.thresholds, profile.gate
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes to a recorded desk; the defaults change nothing.

    `analysts` names those that are kept, None keeps all; `researchers` keeps both, `researcher`
    alone is left out of them (a case alone moves nothing); without the `arbiter` both count in
    full. At a swarm `judge` and `reader` keep those seats, and with `flat` all experts count alike.
    With `counted`, ticks in shadow count too. `brain` replaces weights and thresholds; its gate
    settings are not used.
    """

    analysts: frozenset[str] | None = None
    researchers: bool = True
    researcher: str = ""
    arbiter: bool = True
    judge: bool = True
    reader: bool = True
    flat: bool = False
    gate: GateUse = "recorded"
    bound: float = ADJUSTMENT_BOUND
    blend: float = BLEND_WEIGHT
    counted: bool = False
    brain: BrainNumbers | None = None


UNCHANGED: Final = Changes()


@dataclass(frozen=True, slots=True)
class DeskMoves:
    """The effect of a desk on the scores, by tick: arrays (ticks, 4), then (ticks,).

    `rule` is the part of the multiplier that is arithmetic. `lost` are ticks on which an agent had
    answered, but none of those that are kept.
    """

    debate: Floats
    adjustments: Floats
    scores: Floats
    multiplier: Floats
    rule: Floats
    veto: Flags
    lost: Flags


@dataclass(frozen=True, slots=True)
class Recomposed:
    """The recomposed ticks, and whether they are exact; `label` says why not."""

    ticks: tuple[TickObservation, ...]
    exact: bool
    label: str


def recompose(arm: ArmObservation, changes: Changes, brain: BrainNumbers) -> Recomposed:
    """Return a recorded arm under changes.

    `brain` is that of the profile with which it was recorded. Of each tick the debate, adjustments,
    scores, multiplier, veto, both consensus and both verdicts are computed again; its action and
    the trades are not (`Edges.debater` runs them through the tick).
    """
    recording = Recording(arm.ticks, brain)
    used = changes.brain or brain
    chains = Chains(arm.ticks, used)
    moves = recording.moves(changes)
    counts = [changes.counted or not tick.shadow for tick in arm.ticks]
    final, l1 = chains.consensus(moves.scores), chains.consensus(recording.l1)
    verdicts, plain = (verdicts_of(values, used.thresholds) for values in (final, l1))
    ticks = tuple(
        replace(
            tick,
            debate=_four(moves.debate[row]),
            adjustments=_four(moves.adjustments[row]),
            scores=_four(moves.scores[row]),
            # in shadow the recorded multiplier was in force, whatever the words
            multiplier=float(moves.multiplier[row]) if counts[row] else tick.multiplier,
            rule_multiplier=float(moves.rule[row]) if counts[row] else tick.rule_multiplier,
            veto=bool(moves.veto[row]),
            swarm=tick.swarm and _swarm(tick, tick.swarm, changes),
            consensus=float(final[row]),
            verdict=WORDS[verdicts[row] + 1],
            l1_consensus=float(l1[row]),
            l1_verdict=WORDS[plain[row] + 1],
            shadow=not counts[row],
        )
        for row, tick in enumerate(arm.ticks)
    )
    reasons = recording.doubts(changes, moves.lost)
    label = f"first-order: {'; '.join(reasons)}" if reasons else EXACT
    return Recomposed(ticks, not reasons, label)


class Recording:
    """The words of an arm's agents as arrays, ready to be put together in other ways."""

    def __init__(self, ticks: Sequence[TickObservation], brain: BrainNumbers) -> None:
        self.ticks = tuple(ticks)
        self.analysts = agent_ids(ticks, "analyst")
        self.l1 = _table(tick.l1 for tick in ticks)
        self._brain = brain
        self._debate = _table(tick.debate for tick in ticks)
        self._adjustments = _table(tick.adjustments for tick in ticks)
        self._multiplier = np.array([tick.multiplier for tick in ticks])
        self._rule = np.array([tick.rule_multiplier for tick in ticks])
        self._veto = np.array([tick.veto for tick in ticks], dtype=bool)
        self._rule_veto = np.array([tick.rule_veto for tick in ticks], dtype=bool)
        self._shadow = np.array([tick.shadow for tick in ticks], dtype=bool)
        self._voices = [_Voice(ticks, name) for name in self.analysts]
        self._sides = [_Voice(ticks, name) for name in agent_ids(ticks, "researcher")]
        self._arbiters = [_Voice(ticks, name) for name in agent_ids(ticks, "arbiter")]
        self._judges = [_Voice(ticks, name) for name in agent_ids(ticks, "judge")]
        self._readers = [_Voice(ticks, name) for name in agent_ids(ticks, "reader")]
        self._holds = np.array([_is_judge_hold(tick) for tick in ticks], dtype=bool)
        self._storm = np.array([tick.swarm.storm if tick.swarm else np.nan for tick in ticks])
        gates = [_Voice(ticks, name) for name in agent_ids(ticks, "gate")]
        nobody = np.zeros(len(self.ticks), dtype=bool)
        self._gate_answered = gates[0].answered if gates else nobody
        self._gate_word = gates[0].multiplier if gates else np.ones(len(self.ticks))
        self._gate_veto = gates[0].veto if gates else nobody
        opinions = (*self._voices, *self._sides, *self._judges)
        self.heard = self._answered(opinions)
        # in shadow the recorded rules are those of a tick with nobody asked: no spread is in them
        self._apart = np.where(self._shadow, 0.0, _spread(self._voices, len(self.ticks)))
        self._skipped = any(tick.source_type == SourceType.AGENT_SKIPPED for tick in ticks)

    def moves(self, changes: Changes) -> DeskMoves:
        """Return the effect of the changed desk on the scores."""
        voices, sides = self._kept(changes), self._argue(changes)
        judges = self._judges if changes.judge else []
        lost = self.heard & ~self._answered((*voices, *sides, *judges))
        weights = self._arbiters if changes.arbiter else []
        trusted = [self._trusted(voice.name, changes) for voice in voices]
        debate = _average(voices, trusted) + (
            _shift(voices, sides, weights) + _judge_addition(judges)
        )
        debate = np.where(self.heard[:, None], debate, self._debate)
        rule = self._rules(_spread(voices, len(self.ticks)))[0]
        multiplier = self._ruled(changes, rule, lost)
        applied = rounded(np.clip(debate * multiplier[:, None], -changes.bound, changes.bound))
        moved = np.where(self.heard[:, None], applied, self._adjustments)
        scores = blend(self.l1, moved, changes.blend)
        if not changes.counted:
            scores = np.where(self._shadow[:, None], self.l1, scores)
        counts = ~self._shadow | changes.counted
        # in shadow a veto of the model stopped nothing
        word = self._gate_veto & ~lost & (changes.gate == "recorded") & counts
        word |= self._holds & ~lost & changes.judge & counts
        veto = np.where(self.heard, self._rule_veto | word, self._veto)
        rule = np.where(self.heard, rule, self._rule)
        return DeskMoves(debate, moved, scores, multiplier, rule, veto, lost)

    def doubts(self, changes: Changes, lost: Flags) -> list[str]:
        """Return why the result is first-order under these changes; empty if it is exact."""
        dropped = self._answered(v for v in self._voices if not _keeps(changes, v.name))
        argued, kept = self._answered(self._sides), self._argue(changes)
        unread = dropped | self._answered(side for side in self._sides if side not in kept)
        judged = self._answered(self._arbiters)
        told = list(self._of_a_swarm(changes, dropped))
        if changes.arbiter and kept and bool((unread & judged).any()):
            told.append("the research manager had read the agents that are left out")
        if changes.researchers and bool((dropped & argued).any()):
            told.append("the researchers had read the analysts that are left out")
        if changes.gate == "recorded" and bool((unread & self._gate_answered).any()):
            told.append("the gate's model had read the agents that are left out")
        if changes.analysts and bool(lost.any()):
            told.append(f"on {int(lost.sum())} ticks nobody is left, and a fallback was not asked")
        same = replace(changes, brain=None) == UNCHANGED and changes.brain in (None, self._brain)
        if not same and self._skipped:
            told.append("which ticks were skipped depends on the scores before them")
        if changes.gate != "off" and bool((self._uncertain(changes) & self.heard).any()):
            told.append("the rules' multiplier does not follow from these gate settings")
        return told

    def _of_a_swarm(self, changes: Changes, dropped: Flags) -> Iterator[str]:
        """Yield why what is left of a swarm is of first order: who had read what is gone."""
        judged, read = self._answered(self._judges), self._answered(self._readers)
        weighed = np.array([bool(tick.swarm and tick.swarm.trusted) for tick in self.ticks], bool)
        otherwise = (read & (not changes.reader)) | (weighed & changes.flat)
        if changes.judge and bool((judged & (dropped | otherwise)).any()):
            yield f"{OF_EXPERTS}, who had read all of it on the board"
        gone = (judged & (not changes.judge)) | (read & (not changes.reader))
        if changes.gate == "recorded" and bool((gone & self._gate_answered).any()):
            yield "the gate's model had read the judge or the reader that is left out"

    def _answered(self, voices: Iterable[_Voice]) -> Flags:
        """Return the ticks on which any of these agents answered."""
        nobody = np.zeros(len(self.ticks), dtype=bool)
        return np.asarray(np.logical_or.reduce([nobody, *(voice.answered for voice in voices)]))

    def _trusted(self, name: str, changes: Changes) -> Floats:
        """Return how much the word of an expert counts on each tick, (ticks, 1); 1 of others."""
        if name not in EXPERTS or changes.flat:
            return np.ones((len(self.ticks), 1))
        place = EXPERTS.index(name)
        told = (trusted_on(tick, reader=changes.reader) for tick in self.ticks)
        return np.array([one[place] if one else 1.0 for one in told])[:, None]

    def _argue(self, changes: Changes) -> list[_Voice]:
        if not changes.researchers:
            return []
        return [side for side in self._sides if side.name != changes.researcher]

    def _kept(self, changes: Changes) -> list[_Voice]:
        return [voice for voice in self._voices if _keeps(changes, voice.name)]

    def _ruled(self, changes: Changes, rule: Floats, lost: Flags) -> Floats:
        """Return the multiplier: that of the rules, or the lower one of the gate's model."""
        if changes.gate == "off":
            return np.ones(len(self.ticks))
        # where no agent is left the model would not have been asked
        asked = self._gate_answered & ~lost & (changes.gate == "recorded")
        merged = np.where(asked, np.minimum(rule, self._gate_word), rule)
        return np.where(self.heard, merged, self._multiplier)

    def _rules(self, apart: Floats) -> tuple[Floats, Flags]:
        """Return the rules' multiplier under another spread, and where it is a guess.

        The factors of volatility, streak and exposure are read off the recorded product.
        """
        settings = self._brain.gate
        before, after = agreement(self._apart, settings), agreement(apart, settings)
        found = np.full(len(self.ticks), np.nan)
        # where an officer sits, what its storm left is recorded, and volatility is in it
        officer = ~np.isnan(self._storm)
        worn = (1.0, settings.exhaustion_multiplier) if officer.any() else (1.0,)
        # only the product is recorded: each way of having come to it is tried
        for factors in product(
            (1.0, settings.volatility_multiplier),
            worn,
            (1.0, settings.losing_streak_multiplier),
            (1.0, settings.exposure_multiplier),
        ):
            storm = np.where(officer, self._storm, factors[0])
            one = storm * np.where(officer, factors[1], 1.0) * factors[2] * factors[3]
            fits = np.isnan(found) & (rounded(one * before) == self._rule)
            found = np.where(fits, one, found)
        with np.errstate(divide="ignore", invalid="ignore"):
            # where no product fits, what disagreement leaves over stands for the other factors: a
            # guess
            ratio = np.where(before > 0.0, np.minimum(1.0, self._rule / before), 1.0)
        guessed = np.isnan(found) | (before <= 0.0)
        changed = apart != self._apart
        others = np.where(np.isnan(found), ratio, found)
        return np.where(changed, rounded(others * after), self._rule), guessed & changed

    def _uncertain(self, changes: Changes) -> Flags:
        return self._rules(_spread(self._kept(changes), len(self.ticks)))[1]


class Chains:
    """The way from scores to a consensus: which composites are fresh at each tick, computed once.

    The ticks are in the order in which they ran. A tick sees the latest composite of each timeframe
    of its instance up to itself (torra.verdict.sentiment_rules).
    """

    def __init__(self, ticks: Sequence[TickObservation], brain: BrainNumbers) -> None:
        table: dict[str, float] = brain.weights.model_dump()
        self._weights = np.array([*(table[vector] for vector in VECTORS), table["ath"]])
        self._ath = np.array([tick.ath for tick in ticks])
        frames = [tick.timeframe for tick in ticks]
        self._names = [name for name in dict.fromkeys(frames) if name in brain.timeframe_weights]
        shares = [brain.timeframe_weights[name] for name in self._names]
        self._seen = _fresh(ticks, self._names)
        self._shares = np.where(self._seen >= 0, np.array(shares), 0.0)
        self._totals = np.array(_sums(self._shares))

    def composites(self, scores: Floats) -> Floats:
        """Return the composite of each tick for scores (ticks, 4)."""
        values = np.concatenate([scores, self._ath[:, None]], axis=1)
        return rounded(np.array(_sums(self._weights * values)) / fsum(self._weights))

    def consensus(self, scores: Floats) -> Floats:
        """Return the consensus of each tick for scores (ticks, 4)."""
        return self.together(self.composites(scores))

    def together(self, composites: Floats, own: Floats | None = None) -> Floats:
        """Return the consensus of composites; `own` replaces each tick's own, for itself alone."""
        if not self._names:
            return np.zeros(len(composites))
        # -1 picks the last row, whose composite the 0.0 replaces at once
        seen = np.where(self._seen >= 0, composites[self._seen], 0.0)
        if own is not None:
            itself = self._seen == np.arange(len(composites))[:, None]
            seen = np.where(itself, own[:, None], seen)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.array(_sums(self._shares * seen)) / self._totals
        return rounded(np.where(self._totals > 0.0, mean, 0.0))


def verdicts_of(consensus: Floats, thresholds: Thresholds) -> Whole:
    """Return +1 for BUY, -1 for SELL, 0 for HOLD."""
    buy, sell = consensus >= thresholds.buy, consensus <= -thresholds.sell
    return np.where(buy, 1, np.where(sell, -1, 0)).astype(np.int64)


def blend(l1: Floats, adjustments: Floats, weight: float = BLEND_WEIGHT) -> Floats:
    """Return the blended scores: L1 + weight x (clamp(L1 + adjustment, -1, +1) - L1)."""
    moved = np.where(adjustments != 0.0, rounded(np.clip(l1 + adjustments, -1.0, 1.0)), l1)
    # an unmoved score stays L1 bit for bit: rounding it could change its last digits
    return np.where(moved == l1, l1, rounded(l1 + weight * (moved - l1)))


def agreement(apart: Floats, settings: GateSettings) -> Floats:
    """Return the factor that disagreement leaves of the multiplier (docs/debate.md)."""
    left = np.maximum(settings.disagreement_floor, 1.0 - apart / settings.disagreement_scale)
    return np.minimum(1.0, left)


def analysts_apart(ticks: Sequence[TickObservation]) -> Floats:
    """Return the widest range of the analysts' adjustments over the vectors, per tick."""
    return _spread([_Voice(ticks, name) for name in agent_ids(ticks, "analyst")], len(ticks))


def rounded(values: Floats) -> Floats:
    """Round to the decimals of a score, exactly as Python's round does."""
    unit = 10.0**SCORE_DECIMALS
    scaled = values * unit
    found = np.rint(scaled) / unit
    # rint and round differ near a tie only, where the scaling may cross it
    ties = np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < TIE
    if ties.any():
        found[ties] = [round(float(value), SCORE_DECIMALS) for value in values[ties]]
    return np.asarray(found)


class _Voice:
    """One agent over all ticks: NaN, 0 and False where it did not speak."""

    def __init__(self, ticks: Sequence[TickObservation], name: str) -> None:
        own = opinions_of(ticks, name)
        heard = [one if one is not None and spoke(one) else None for one in own]
        blank = (None,) * len(VECTORS)
        self.name = name
        self.answered = np.array([one is not None and one.answered for one in own], dtype=bool)
        self.spoke = np.array([one is not None for one in heard], dtype=bool)
        self.said = np.array([one.adjustments if one else blank for one in heard], dtype=float)
        self.said = self.said.reshape(len(own), len(VECTORS))
        self.focus = _table(one.focus if one else (0.0,) * len(VECTORS) for one in heard)
        self.trust = np.array([one.trust if one else 0.0 for one in heard])[:, None]
        self.multiplier = np.array([one.multiplier if one else 1.0 for one in heard])
        self.veto = np.array([one is not None and one.veto for one in heard], dtype=bool)
        self._words = heard

    def shares(self, name: str) -> Floats:
        """Return what this arbiter weighs the case of a researcher with, 1 where it said nothing.

        (ticks, 1).
        """
        place = list(SIDES).index(name)
        given = [one.weights[place] if one and one.weights else 1.0 for one in self._words]
        return np.array(given)[:, None]


def ungrounded(opinion: AgentOpinion) -> bool:
    """Return whether a report was trusted less than its confidence word alone would be."""
    return opinion.trust < CONFIDENCE_WEIGHT.get(opinion.confidence, 1.0)


def _keeps(changes: Changes, name: str) -> bool:
    return changes.analysts is None or name in changes.analysts


def _average(voices: Sequence[_Voice], trusted: Sequence[Floats]) -> Floats | float:
    """Return sum(f k a) / sum(f) over the analysts that scored, exactly rounded; 0 where none."""
    if not voices:
        return 0.0
    pairs = zip(voices, trusted, strict=True)
    focus = np.stack([voice.focus * counted for voice, counted in pairs], axis=-1)
    said = np.stack([voice.said for voice in voices], axis=-1)
    trust = np.stack([voice.trust for voice in voices], axis=-1)
    focus = np.where(np.isnan(said), 0.0, focus)
    top, bottom = np.array(_sums(focus * trust * np.nan_to_num(said))), np.array(_sums(focus))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(bottom > 0.0, top / bottom, 0.0)
    return mean.reshape(said.shape[:2])


def _spread(voices: Sequence[_Voice], ticks: int) -> Floats:
    """Return the widest range of these voices' adjustments over the vectors, per tick."""
    if not voices:
        return np.zeros(ticks)
    said = np.stack([voice.said for voice in voices])
    high = np.where(np.isnan(said), -np.inf, said).max(axis=0)
    low = np.where(np.isnan(said), np.inf, said).min(axis=0)
    with np.errstate(invalid="ignore"):
        apart = np.where(high >= low, high - low, 0.0)
    return np.asarray(apart.max(axis=1))


def _shift(
    voices: Sequence[_Voice], sides: Sequence[_Voice], arbiters: Sequence[_Voice]
) -> Floats | float:
    """Return (w k_bull bull + w k_bear bear) / 2; a single answer of the whole desk alone.

    w is what an arbiter weighs a case with, 1 without one, and where one side alone was heard.
    """
    if not sides:
        return 0.0
    words = np.stack([_bounded(side) for side in sides])
    given = (~np.isnan(words)).sum(axis=0)
    total = np.nan_to_num(words).sum(axis=0)
    shares = [arbiters[0].shares(side.name) if arbiters else 1.0 for side in sides]
    weighed = np.nan_to_num([w * word for w, word in zip(shares, words, strict=True)]).sum(axis=0)
    sole = np.stack([voice.spoke for voice in (*voices, *sides)]).sum(axis=0) == 1
    alone = np.where(sole[:, None] & (given == 1), total, 0.0)
    return np.where(given == 2, weighed / 2.0, alone)


def _judge_addition(judges: Sequence[_Voice]) -> Floats | float:
    """Return what a judge adds to the experts' average."""
    if not judges:
        return 0.0
    total: Floats = np.nan_to_num(np.stack([_bounded(judge) for judge in judges])).sum(axis=0)
    return total


def _bounded(voice: _Voice) -> Floats:
    """Return a word within its bound, times its trust."""
    word: Floats = voice.trust * np.clip(voice.said, -RESEARCHER_BOUND, RESEARCHER_BOUND)
    return word


def trusted_on(tick: TickObservation, *, reader: bool = True) -> tuple[float, ...]:
    """Return how much each of EXPERTS counts on a tick, nothing where all count alike.

    Without the `reader` nobody goes first.
    """
    if tick.swarm is None:
        return ()
    return tick.swarm.trusted if reader else tick.swarm.unled


def _is_judge_hold(tick: TickObservation) -> bool:
    """Return whether a judge that takes no side vetoed all openings."""
    return tick.swarm is not None and OfficerReason.JUDGE_HOLD in tick.swarm.reasons


def _swarm(tick: TickObservation, told: SwarmObservation, changes: Changes) -> SwarmObservation:
    """Return what is left of a swarm under changes."""
    trusted = () if changes.flat else trusted_on(tick, reader=changes.reader)
    told = replace(told, trusted=trusted, unled=() if changes.flat else told.unled)
    if not changes.reader:
        told = replace(told, budget=told.plain, reader="", first="")
    if changes.judge:
        return told
    sides = told.veto_sides
    # a single side of which crowding is told too is the crowded one
    if OfficerReason.CROWDED not in told.reasons or len(sides) > 1:
        sides = tuple(side for side in sides if side != told.vetoes)
    gone = (OfficerReason.NEGATIVE_EV, OfficerReason.JUDGE_HOLD)
    return replace(
        told,
        reasons=tuple(one for one in told.reasons if one not in gone),
        veto_sides=sides,
        side="", said=None, used=None, value_r=None, vetoes="",
    )  # fmt: skip


def _fresh(ticks: Sequence[TickObservation], names: Sequence[str]) -> Whole:
    """Return (ticks, timeframes): the row whose composite speaks at each tick, -1 for none."""
    latest: dict[tuple[str, str], int] = {}
    found = np.full((len(ticks), len(names)), -1, dtype=np.int64)
    for row, tick in enumerate(ticks):
        latest[tick.instance, tick.timeframe] = row
        for column, name in enumerate(names):
            other = latest.get((tick.instance, name))
            if other is not None and is_fresh(ticks[other].close_time, name, tick.close_time):
                found[row, column] = other
    return found


def _sums(rows: Floats) -> list[float]:
    """Return the exactly rounded sum along the last axis."""
    if rows.shape[-1] == 0:
        return [0.0] * len(rows)
    if rows.shape[-1] == 1:
        return [float(value) for value in rows.reshape(-1)]
    # fsum, as the desk itself adds: a plain sum differs in the last bit
    columns = rows.reshape(-1, rows.shape[-1]).T.tolist()  # few lists: rows of them are slow
    return list(map(fsum, zip(*columns, strict=True)))


def _table(rows: Iterable[Sequence[float]]) -> Floats:
    found = list(rows)
    return np.array(found, dtype=float).reshape(len(found), len(VECTORS))


def _four(row: Floats) -> Four:
    first, second, third, fourth = (float(value) for value in row)
    return first, second, third, fourth
