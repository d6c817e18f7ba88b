"""Calibration of the confidence words: how often the market went the way that the agent leaned.

A call is an opinion with a lean: the sign of the focus-weighted mean of its adjustments. It hits
if the price moved that way over the horizon, before costs. The hit rate of each word, low to high,
is a Beta posterior around a coin (PRIOR calls of even odds), made monotone by pooling adjacent
violators (Ayer et al. 1955), because a surer word may not stand for a lower chance. A word with
fewer than LEAST calls has none.
Brier's score is out of sample: the words are mapped on the first half of the time and scored on the
second, with a horizon left out between, beside the score of a coin. As trust, a call that is right
with probability p is worth 2p - 1 (the mean of a call of one unit) and never less than 0. Only that
number may be used as a weight, and only if it is not None.
Overlapping outcomes, and agents that speak on one tick, are not independent. So intervals (Wilson)
count at most one call a tick, and one tick in every horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from agent_config import CONFIDENCE_WEIGHT
from torra.evaluation.dependence import Estimate, lag_of, mean_estimate
from torra.evaluation.exhibits import Cell, Exhibit, Plot, PlotLine, Point
from torra.evaluation.intervals import Floats, Interval, wilson
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import (
    OPINIONS,
    Flags,
    Whole,
    agent_ids,
    moments_of,
    opinions_of,
    spoke,
    stances_of,
)
from torra.evaluation.outcomes import Outcomes
from torra.evaluation.power import PowerSentence, finding, share_count
from torra.evaluation.wording import percent, percent_cell, percent_span, rounded

WORDS: Final = ("low", "medium", "high")
"""Confidence words, from the least sure on."""

LEAST: Final = 50
"""Least calls of a word that has a hit rate."""

PRIOR: Final = 20.0
"""Weight of the prior, in calls of even odds."""

COIN: Final = 0.5
HORIZON: Final = 4
NOTABLE: Final = 0.55
"""A hit rate worth finding."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls in the order of time: word (an index of WORDS), hit (1 or 0), moment of the tick."""

    word: Whole
    hit: Floats
    moment: Whole

    def part(self, chosen: Flags) -> Calls:
        """Return some of the calls."""
        return Calls(self.word[chosen], self.hit[chosen], self.moment[chosen])


@dataclass(frozen=True, slots=True)
class CalibratedWord:
    """The hit rate of one word: `rate` as counted, `mapped` after prior and pooling."""

    word: str
    n: int
    rate: float | None = None
    interval: Interval | None = None
    mapped: float | None = None

    @property
    def trust(self) -> float | None:
        """Return the weight that the word has earned, in [0, 1]."""
        return None if self.mapped is None else max(0.0, 2.0 * self.mapped - 1.0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The words of one agent, or of all.

    `independent` is how many of the calls do not overlap. `brier` is the score on the second half,
    `coin` that of a coin there, `gain` how much lower it is; `held_out` are the words there.
    """

    agent: str
    horizon: int
    words: tuple[CalibratedWord, ...]
    independent: int
    brier: float | None = None
    coin: float | None = None
    gain: Estimate | None = None
    held_out: tuple[tuple[float, CalibratedWord], ...] = ()

    @property
    def n(self) -> int:
        """Return how many calls there were."""
        return sum(word.n for word in self.words)


def calls_of(
    ticks: Sequence[TickObservation],
    outcomes: Outcomes,
    agents: Sequence[str],
    horizon: int = HORIZON,
) -> Calls:
    """Return the calls of agents: opinions with a lean, on ticks whose price then moved."""
    future, moments = outcomes.forward[:, outcomes.place(horizon)], moments_of(ticks)
    rows: list[tuple[int, int, float]] = []
    for agent in agents:
        # an agent that said nothing gets 0, which is no lean
        lean = np.sign(np.nan_to_num(stances_of(ticks, agent)))
        right = lean * np.sign(np.nan_to_num(future))
        for row, opinion in enumerate(opinions_of(ticks, agent)):
            # 0: no lean, or a price that did not move; neither is a call
            if opinion is not None and spoke(opinion) and right[row] != 0.0:
                word = WORDS.index(opinion.confidence)
                rows.append((int(moments[row]), word, float(right[row] > 0.0)))
    rows.sort()
    table = np.array(rows, dtype=float).reshape(len(rows), 3)
    return Calls(table[:, 1].astype(np.int64), table[:, 2], table[:, 0].astype(np.int64))


def calibration(
    ticks: Sequence[TickObservation],
    outcomes: Outcomes,
    agents: Sequence[str] | None = None,
    *,
    horizon: int = HORIZON,
    name: str = "all agents",
) -> Calibration:
    """Return the calibration of the words of these agents together, of all by default."""
    chosen = agent_ids(ticks, *OPINIONS) if agents is None else tuple(agents)
    calls = calls_of(ticks, outcomes, chosen, horizon)
    apart = lag_of(ticks, horizon) if ticks else 1
    whole = Calibration(name, horizon, mapped(calls, horizon), _free(calls, horizon))
    return _checked(whole, calls, apart)


def mapped(calls: Calls, horizon: int = 1) -> tuple[CalibratedWord, ...]:
    """Return each word with its counts and its mapped hit rate."""
    counted = [_calibrated_word(calls, number, horizon) for number in range(len(WORDS))]
    usable = [word for word in counted if word.n >= LEAST and word.rate is not None]
    posterior = [(PRIOR * COIN + word.n * (word.rate or 0.0)) / (PRIOR + word.n) for word in usable]
    pooled = pool_adjacent(posterior, [PRIOR + word.n for word in usable])
    chances = {word.word: chance for word, chance in zip(usable, pooled, strict=True)}
    return tuple(
        CalibratedWord(word.word, word.n, word.rate, word.interval, chances.get(word.word))
        for word in counted
    )


def pool_adjacent(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the nearest ascending sequence in weighted squares, by pooling adjacent violators."""
    pools: list[list[float]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            upper, lower = pools.pop(), pools.pop()
            total = lower[1] + upper[1]
            mean = (lower[0] * lower[1] + upper[0] * upper[1]) / total
            pools.append([mean, total, lower[2] + upper[2]])
    return [value for value, _, size in pools for _ in range(int(size))]


def brier(chances: Floats, hits: Floats) -> float | None:
    """Return the mean squared distance of chances from hits (Brier 1950); None without any."""
    return float(np.mean((chances - hits) ** 2)) if len(hits) else None


def calibrated_trust(found: Calibration) -> dict[str, float] | None:
    """Return the trust table that the words have earned; None unless every word has a rate."""
    table = {word.word: word.trust for word in found.words}
    sure = {word: trust for word, trust in table.items() if trust is not None}
    return sure if len(sure) == len(WORDS) else None


def calibration_exhibit(found: Sequence[Calibration]) -> Exhibit:
    """Return the table of words, agent by agent, and the reliability of the first of them."""
    rows: list[tuple[Cell, ...]] = [
        (
            one.agent,
            word.word,
            word.n,
            percent_cell(word.rate, 1),
            percent_span(word.interval.low, word.interval.high) if word.interval else None,
            rounded(CONFIDENCE_WEIGHT[word.word], 2),
            rounded(word.trust, 3),
        )
        for one in found
        for word in one.words
    ]
    figures: dict[str, float | None] = {}
    for one in found:
        figures[f"brier.{one.agent}"] = one.brier
        figures[f"coin.{one.agent}"] = one.coin
        figures |= {f"rate.{one.agent}.{word.word}": word.mapped for word in one.words}
    plots = (_plot(found[0]),) if found and found[0].n else ()
    return Exhibit(
        name="calibration",
        title="What a confidence word is worth",
        columns=("agent", "word", "calls", "hits", "95 %", "trust used", "trust earned"),
        rows=tuple(rows),
        **_show(found)._asdict(),
        plots=plots,
        figures=figures,
    )


def _calibrated_word(calls: Calls, number: int, horizon: int) -> CalibratedWord:
    own = calls.part(calls.word == number)
    size = len(own.hit)
    if not size:
        return CalibratedWord(WORDS[number], 0)
    rate = float(own.hit.mean())
    free = _free(own, horizon)
    # the rate of all calls, with the width of those that do not overlap
    return CalibratedWord(WORDS[number], size, rate, wilson(round(rate * free), free))


def _free(calls: Calls, horizon: int) -> int:
    """Return the number of calls that do not overlap: one a tick, one tick a horizon."""
    ticks = len(np.unique(calls.moment))
    # one at least, if there is any call
    return max(min(ticks, 1), ticks // horizon)


def _checked(whole: Calibration, calls: Calls, apart: int) -> Calibration:
    """Add the scores of the words and of a coin on the second half, and the words there."""
    if not len(calls.hit):
        return whole
    middle = int(np.median(calls.moment))
    # the gap: outcomes of calls before the middle reach into the second half
    first, second = calls.part(calls.moment <= middle), calls.part(calls.moment > middle + apart)
    chances = {
        WORDS.index(word.word): word.mapped
        for word in mapped(first, whole.horizon)
        if word.mapped is not None
    }
    # a word without a rate in the first half predicts nothing in the second
    rated = second.part(np.isin(second.word, list(chances)))
    if not len(rated.hit):
        return whole
    told = np.array([chances[int(word)] for word in rated.word])
    return replace(
        whole,
        brier=brier(told, rated.hit),
        coin=brier(np.full(len(told), COIN), rated.hit),
        # call by call: both scores share the luck of the hits, and it falls out of the difference
        gain=mean_estimate((COIN - rated.hit) ** 2 - (told - rated.hit) ** 2, rated.moment, apart),
        held_out=tuple(
            (chances[number], _calibrated_word(rated, number, whole.horizon))
            for number in sorted(chances)
        ),
    )


def _show(found: Sequence[Calibration]) -> PowerSentence:
    most, effect = max((one.independent for one in found), default=0), f"{percent(NOTABLE)}"
    whole = found[0] if found else None
    shown = whole is not None and whole.brier is not None and _against(whole) != UNTOLD
    text = _summary(whole)
    return finding(
        text, share_count(NOTABLE), most, "independent call", f"a hit rate of {effect}", shown=shown
    )


def _summary(whole: Calibration | None) -> str:
    if whole is None or not any(word.mapped is not None for word in whole.words):
        return f"No confidence word has {LEAST} calls yet, so none may be used as a weight."
    told = ", ".join(
        f"{word.word} {percent(word.mapped, 1)}" for word in whole.words if word.mapped is not None
    )
    start = f"After what is known, the chance that a call is right is: {told}."
    if whole.brier is None or whole.coin is None:
        return f"{start} There is no second half to check it on."
    return (
        f"{start} Learnt on the first half and scored on the second, that is {_against(whole)} a "
        f"coin (Brier {whole.brier:.4f} against {whole.coin:.4f})."
    )


UNTOLD: Final = "not to be told from"


def _against(one: Calibration) -> str:
    if one.gain is None or one.gain.low <= 0.0 <= one.gain.high:
        return UNTOLD
    return "better than" if one.gain.value > 0.0 else "worse than"


def _plot(one: Calibration) -> Plot:
    stated = [(CONFIDENCE_WEIGHT[word.word], word) for word in one.words]
    lines = [_line("word as the desk weighs it", stated)]
    if one.held_out:
        lines.append(_line("chance learnt on the first half", one.held_out))
    return Plot(
        title="Reliability", kind="dots", lines=tuple(lines), x="said", y="came true", diagonal=True
    )


def _line(name: str, words: Sequence[tuple[float, CalibratedWord]]) -> PlotLine:
    shown = sorted(
        ((x, word) for x, word in words if word.rate is not None), key=lambda one: one[0]
    )
    points: tuple[Point, ...] = tuple((x, word.rate) for x, word in shown)
    return PlotLine(
        name=name,
        points=points,
        low=tuple(word.interval.low if word.interval else None for _, word in shown),
        high=tuple(word.interval.high if word.interval else None for _, word in shown),
    )
