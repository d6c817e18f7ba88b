"""Words that are given to other ticks than those that they were said on: placebos, recompositions.

`speaking` is the debater that gives each tick its words, `placebo` makes those of a placebo arm out
of what another arm said. The rules of the gate, and of a risk officer where one sat, hold on the
tick itself; a model's veto, what a trader declined and what the agents left of a size go along with
the words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from numpy.random import PCG64, Generator
from pydantic import TypeAdapter

import agent_framework
from agent_config import DebateSettings, GateSettings
from agent_framework import Deliberation
from agents.contracts import SCORE_DECIMALS, VECTORS, DebateContext, SourceType
from agents.debate.deliberation import score_chart_shape
from agents.debate.scoring import NEUTRAL, Agreement
from torra.clock import iso
from torra.evaluation.observations import ArmObservation, Four, TickObservation, four
from torra.evaluation.recomposition import agreement, analysts_apart
from torra.replay.arms import PLACEBOS, Placebo
from torra.tick.debate import Debater, reads_no_notes

PLACEBO_WORD: Final = "Placebo: another tick's words, or none of anybody's."


@dataclass(frozen=True, slots=True)
class ArmWords:
    """The words that a placebo or a recomposition gives to a tick: adjustments and a veto.

    `adjustments` are those after the gate, `debate` those before it where they are known. `veto`
    adds to the rules'.
    `multiplier` is what the agents, by disagreeing or by their gate's word, left of the rules'
    multiplier, and `conviction` what theirs left of an opening; both in [0, 1], and they scale
    sizes only.
    """

    adjustments: Four
    veto: bool = False
    debate: Four | None = None
    multiplier: float = 1.0
    conviction: float = 1.0


ScriptedDebate = Mapping[tuple[str, str], ArmWords]
"""Words by (timeframe, bar time in ISO)."""


ROWS: Final = TypeAdapter(list[tuple[tuple[str, str], ArmWords]])


def rows_of(words: ScriptedDebate) -> list[Any]:
    """Return words as JSON values, a row for each tick."""
    rows: list[Any] = ROWS.dump_python(list(words.items()), mode="json")
    return rows


def words_of(rows: Sequence[Any]) -> ScriptedDebate:
    """Return the words that `rows_of` packed."""
    return dict(ROWS.validate_python(rows))


def speaking(words: ScriptedDebate, note: str = PLACEBO_WORD) -> Debater:
    """Return a debater that gives each tick its words.

    A tick without words is one on which nobody was asked. The rules of the gate hold as ever: the
    size is theirs on this tick, times the words' own multiplier and conviction. The words are those
    after a gate, so no score is scaled a second time.
    """

    @reads_no_notes
    def debate(context: DebateContext, config: DebateSettings) -> Deliberation:
        said = words.get((context.timeframe, context.bar_time))
        if said is None:
            # Nobody was asked on this tick then, so nobody is now.
            return agent_framework.l1_only_record(context, config)
        alone = agent_framework.l1_only_record(context, config, SourceType.AGENT_CUSTOM)
        return _with(alone, context, said, note)

    return debate


def _with(alone: Deliberation, context: DebateContext, said: ArmWords, note: str) -> Deliberation:
    moves = dict(zip(VECTORS, said.adjustments, strict=True))
    before = dict(zip(VECTORS, said.debate or said.adjustments, strict=True))
    # Only the size: the adjustments are those after a gate, and are not scaled a second time.
    # What the regime's budget leaves is in it, so that no swarm need say it once more.
    most = 1.0 if alone.swarm is None else alone.swarm.most
    size = round(min(alone.ruling.multiplier, most) * said.multiplier, SCORE_DECIMALS)
    agreed = Agreement(raw=said.conviction, conviction=said.conviction)
    ruling = replace(alone.ruling, multiplier=size)
    if said.veto and not ruling.veto:
        ruling = replace(ruling, veto=True, reasons=(*ruling.reasons, "PLACEBO"))
    scores = score_chart_shape(context, moves, alone.source_type, note)
    ungated = scores  # the very same, where no gate came between: they are blended once
    if before != moves:
        ungated = score_chart_shape(context, before, alone.source_type, note)
    return replace(
        alone,
        scores=scores,
        ungated=ungated,
        adjustments=moves,
        debate=before,
        ruling=ruling,
        panel=replace(NEUTRAL, buy=agreed, sell=agreed),
        swarm=None,
    )


# --- placebos -------------------------------------------------------------------------------------


def placebo(kind: Placebo, seen: ArmObservation, seed: int, gate: GateSettings) -> ScriptedDebate:
    """Return the words of a placebo of an arm, by tick.

    `seed` fixes the draw, `gate` are the settings with which the arm ran.
    """
    # One generator for each kind: whether another placebo runs too must not change its draw.
    rng = Generator(PCG64([seed, PLACEBOS.index(kind)]))
    parts = zip(seen.ticks, agents_part(seen.ticks, gate), strict=True)
    said = {_place(tick): _words(tick, part) for tick, part in parts}
    return MAKERS[kind](seen.ticks, said, rng)


def agents_part(ticks: Sequence[TickObservation], gate: GateSettings) -> list[float]:
    """Return what the agents left of the rules' multiplier on each tick, in [0, 1].

    The rules without the agents are the recorded ones with the analysts' disagreement taken out;
    where they left nothing, only the disagreement is known. What a swarm's reader took of the
    regime's budget counts too.
    """
    agreed = agreement(analysts_apart(ticks), gate).tolist()
    return [_part(tick, left) for tick, left in zip(ticks, agreed, strict=True)]


def _part(tick: TickObservation, agreed: float) -> float:
    if tick.rule_multiplier <= 0.0 or agreed <= 0.0:
        return agreed
    # The recorded rules hold the disagreement already: divided out, it counts once.
    alone = min(1.0, tick.rule_multiplier / agreed) * _plain_share(tick)
    return min(1.0, tick.multiplier * tick.budget / alone) if alone > 0.0 else 1.0


def _plain_share(tick: TickObservation) -> float:
    """Return what the code's own regime leaves of a multiplier; 1 without a risk officer."""
    told = tick.swarm
    if told is None or told.storm <= 0.0:
        return 1.0
    return min(1.0, told.plain / told.storm)


def _words(tick: TickObservation, part: float) -> ArmWords:
    return ArmWords(
        tick.adjustments,
        stopped(tick),
        multiplier=part,
        conviction=tick.conviction,
    )


def stopped(tick: TickObservation) -> bool:
    """Return whether an agent's word kept an opening away: of the gate, a trader or a judge."""
    declined = bool(tick.declined) and tick.consulted == tick.verdict
    judged = tick.swarm is not None and not tick.shadow and tick.swarm.vetoes == tick.verdict
    return declined or judged or (tick.veto and not tick.rule_veto)


def _place(tick: TickObservation) -> tuple[str, str]:
    return tick.timeframe, iso(tick.bar_time)


def _flipped(
    ticks: Sequence[TickObservation], said: ScriptedDebate, rng: Generator
) -> ScriptedDebate:
    del ticks, rng
    return {place: _signed(one, (-1.0,) * len(VECTORS)) for place, one in said.items()}


def _shuffled(
    ticks: Sequence[TickObservation], said: ScriptedDebate, rng: Generator
) -> ScriptedDebate:
    groups: dict[Any, list[tuple[str, str]]] = defaultdict(list)
    for tick in ticks:
        groups[tick.timeframe, _time_of_day(tick.bar_time)].append(_place(tick))
    found: dict[tuple[str, str], ArmWords] = {}
    for group in groups.values():
        order = rng.permutation(len(group))
        found |= {place: said[group[other]] for place, other in zip(group, order, strict=True)}
    return found


def _random(
    ticks: Sequence[TickObservation], said: ScriptedDebate, rng: Generator
) -> ScriptedDebate:
    del ticks
    places = list(said)
    signs = rng.choice((-1.0, 1.0), size=(len(places), len(VECTORS))).tolist()
    order = rng.permutation(len(places))
    return {
        place: _signed(said[places[other]], row)
        for place, other, row in zip(places, order, signs, strict=True)
    }


def _signed(words: ArmWords, signs: Sequence[float]) -> ArmWords:
    moved = zip(VECTORS, words.adjustments, signs, strict=True)
    # 0.0 + x: a flipped zero would be -0.0.
    return replace(words, adjustments=four({v: 0.0 + sign * a for v, a, sign in moved}))


def _time_of_day(moment: datetime) -> tuple[int, int]:
    return moment.hour, moment.minute


Maker = Callable[[Sequence[TickObservation], ScriptedDebate, Generator], ScriptedDebate]
MAKERS: Final[Mapping[Placebo, Maker]] = {
    "shuffled": _shuffled,
    "flipped": _flipped,
    "random": _random,
}
