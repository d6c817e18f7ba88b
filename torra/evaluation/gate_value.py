"""The worth of the risk gate: loss avoided less gain forgone on the signals that it vetoed.

A veto is judged by what the opening would have come to, with the same exits. The runner of the arm
computes that (`VetoedOpening`), one opening for each stretch of vetoes, because a veto holds until
the consensus has crossed back. A gate that vetoes at random avoids losses too. So the worth is
compared with two things: passed signals of like L1 consensus and volatility, and gates that veto as
many signals by lot. Results are in R before commission, passed and vetoed alike.

A trader's declines are a row of their own: they are an agent's word on single openings, asked after
the gate let them pass. Its signals are the trades that it was asked about, and what it declined; an
opening that it passed and another check denied became no trade, and is in the table `firm` alone.

So are the reasons of a swarm: what its judge vetoes by its own chance of a win or by taking no
side, and the side that its risk officer finds crowded, each among the same signals. What only
lowers a size, as panic does, is no veto.

The worth is first-order: an opening that was not vetoed would have kept later ones from being made.
Nothing here raises: few vetoes have figures and no interval, and the sentence names the number that
it would take.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.random import Generator

from torra.evaluation.exhibits import Columns, Exhibit, contents, interval, number, share_of
from torra.evaluation.intervals import (
    LEVEL,
    Floats,
    Interval,
    Mean,
    mean_of,
    student_quantile,
    wilson,
)
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.paired import Key
from torra.evaluation.power import NOTABLE_GATE, PowerSentence, finding, gate_count
from torra.evaluation.wording import (
    count,
    interval_cell,
    percent,
    signed,
)
from torra.words.ticks import VETOERS

LEAST_RATE: Final = 0.02
MOST_RATE: Final = 0.25
"""The band of sound veto rates; below it a gate sleeps, above it it blocks everything."""

Vetoer = Literal["gate", "trader", "NEGATIVE_EV", "JUDGE_HOLD", "CROWDED"]
GATE: Final = "gate"
TRADER: Final = "trader"
NEGATIVE_EV: Final = "NEGATIVE_EV"
REASONS: Final[tuple[Vetoer, ...]] = ("NEGATIVE_EV", "JUDGE_HOLD", "CROWDED")
"""Who takes an opening away: the gate, a trader, and at a swarm what its judge or its risk officer
gives as the reason (agents.contracts.OfficerReason).
"""

VETO: Final = ("veto", "vetoes", "vetoed")
WORDS: Final[dict[Vetoer, tuple[str, str, str]]] = {
    GATE: VETO,
    TRADER: ("decline", "declines", "declined"),
    **dict.fromkeys(REASONS, VETO),
}
"""What each of them does to an opening: one, several (and does), done."""

WHO: Final[dict[Vetoer, str]] = {
    GATE: GATE,
    TRADER: TRADER,
    **{reason: VETOERS[reason] for reason in REASONS},
}
"""What a person calls them."""

DRAWS: Final = 2_000
"""Random gates with which the gate is compared."""

MOST_DRAWN: Final = 2_000_000
"""Numbers drawn at a time, so that a long sample does not fill the memory."""

MARGIN_PARTS: Final = 3
VOLATILITY_PARTS: Final = 2
LEAST_MATCHED: Final = 5
"""Signals of either kind that a stratum needs, on average, before strata are made at all."""


@dataclass(frozen=True, slots=True)
class VetoResult:
    """An opening that was vetoed: its tick, BUY or SELL, and what it would have come to in R.

    `r` is None if that is not known; `by` says who took it away.
    """

    key: Key
    side: str
    r: float | None = None
    by: Vetoer = GATE


@dataclass(frozen=True, slots=True)
class GatedSignal:
    """A signal, passed or vetoed, with its result in R.

    `margin` is the size of the L1 consensus on its tick, `volatility` the tick's ATR over price.
    """

    r: float | None
    margin: float
    volatility: float
    vetoed: bool
    attenuated: bool = False
    stratum: int = 0


@dataclass(frozen=True, slots=True)
class GateValue:
    """The result of the gate's vetoes.

    `avoided` and `forgone` are sums in R, both 0 or more; `worth` is the mean of avoided less
    forgone a veto. `by_lot` is what as many vetoes by lot would come to in all, `p` how often a
    gate by lot is at least as far from that. `matched` is the mean of passed less that of vetoed
    signals of the same strata, `compared` how many vetoed ones that covers. `by` is whose vetoes
    they are.
    """

    arm: str
    passed: int
    vetoed: int
    attenuated: int
    known: int
    avoided: float
    forgone: float
    worth: Mean
    by_lot: float | None
    p: float | None
    matched: float | None
    interval: Interval | None
    compared: int
    by: Vetoer = GATE

    @property
    def called(self) -> str:
        """Whose row it is: the arm's own, or that of one of its vetoers."""
        return self.arm if self.by == GATE else f"{self.arm}, its {WHO[self.by]}"

    @property
    def key(self) -> str:
        """What its figures' names begin with."""
        return self.arm if self.by == GATE else f"{self.arm}.{self.by}"

    @property
    def net(self) -> float:
        """Loss avoided less gain forgone, in R."""
        return self.avoided - self.forgone

    @property
    def signals(self) -> int:
        """All signals, passed and vetoed."""
        return self.passed + self.vetoed

    @property
    def rate(self) -> float | None:
        """The share of signals that was vetoed."""
        return self.vetoed / self.signals if self.signals else None

    @property
    def alarm(self) -> bool:
        """Whether the veto rate lies outside the band beyond chance: its interval misses it."""
        found = wilson(self.vetoed, self.signals)
        return found is not None and (found.high < LEAST_RATE or found.low > MOST_RATE)


def signals_of(
    arm: ArmObservation, vetoed: Sequence[VetoResult], by: Vetoer = GATE
) -> tuple[GatedSignal, ...]:
    """Return the arm's signals in the order of time: its trades, and the vetoed openings.

    A trade belongs to the tick of its timeframe at whose close it was decided; one without such a
    tick, and a veto without its tick, cannot be matched and are left out. Of a trader's signals
    those trades are left out that it was not asked about.
    """
    ticks = {tick.key: tick for tick in arm.ticks}
    at_close = {(tick.instance, tick.timeframe, tick.close_time): tick for tick in arm.ticks}
    found = []
    for trade in arm.trades:
        tick = at_close.get((trade.instance, trade.timeframe, trade.decided))
        if tick is not None and (by != TRADER or tick.consulted):
            found.append((tick.close_time, _signal(tick, trade.r, vetoed=False)))
    for veto in vetoed:
        tick = ticks.get(veto.key)
        if tick is not None:
            found.append((tick.close_time, _signal(tick, veto.r, vetoed=True)))
    return tuple(signal for _, signal in sorted(found, key=lambda pair: pair[0]))


def _signal(tick: TickObservation, r: float | None, *, vetoed: bool) -> GatedSignal:
    volatility = tick.atr / tick.close if tick.close > 0 else 0.0
    attenuated = not vetoed and tick.multiplier < 1.0
    # the consensus of L1: the gate has had no hand in it
    return GatedSignal(r, abs(tick.l1_consensus), volatility, vetoed, attenuated)


def gate_value(
    name: str, signals: Sequence[GatedSignal], rng: Generator, by: Vetoer = GATE
) -> GateValue:
    """Return the worth of an arm's vetoes; `rng` draws resamples and the gates by lot."""
    known = stratified([signal for signal in signals if signal.r is not None])
    lost = np.array([signal.r for signal in known if signal.vetoed], dtype=np.float64)
    by_lot, p = _against_lot(known, rng)
    matched, interval, compared = _matched(known)
    return GateValue(
        arm=name,
        passed=sum(1 for signal in signals if not signal.vetoed),
        vetoed=sum(1 for signal in signals if signal.vetoed),
        attenuated=sum(1 for signal in signals if signal.attenuated),
        known=len(lost),
        # + 0.0: without a loss this would be -0.0 (and 0.0 - lost below for the same reason)
        avoided=-float(lost[lost < 0].sum()) + 0.0,
        forgone=float(lost[lost > 0].sum()),
        worth=mean_of(0.0 - lost, rng),
        by_lot=by_lot,
        p=p,
        matched=matched,
        interval=interval,
        compared=compared,
        by=by,
    )


def stratified(signals: Sequence[GatedSignal]) -> tuple[GatedSignal, ...]:
    """Return the signals with a stratum each: thirds by margin, halves by volatility.

    All are in one stratum if either kind has fewer than LEAST_MATCHED a stratum on average.
    """
    vetoed = sum(1 for signal in signals if signal.vetoed)
    least = LEAST_MATCHED * MARGIN_PARTS * VOLATILITY_PARTS
    if min(vetoed, len(signals) - vetoed) < least:
        return tuple(replace(signal, stratum=0) for signal in signals)
    margins = _parts([signal.margin for signal in signals], MARGIN_PARTS)
    volatilities = _parts([signal.volatility for signal in signals], VOLATILITY_PARTS)
    return tuple(
        replace(signal, stratum=margin * VOLATILITY_PARTS + volatility)
        for signal, margin, volatility in zip(signals, margins, volatilities, strict=True)
    )


def _parts(values: Sequence[float], parts: int) -> list[int]:
    edges = np.quantile(values, [part / parts for part in range(1, parts)])
    return [int(place) for place in np.searchsorted(edges, values, side="left")]


def _strata(signals: Sequence[GatedSignal]) -> list[tuple[Floats, Floats]]:
    """Return for each stratum the results of its vetoed and of its passed signals."""
    groups: dict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for signal in signals:
        if signal.r is not None:
            groups[signal.stratum][0 if signal.vetoed else 1].append(signal.r)
    return [
        (np.array(vetoed, dtype=np.float64), np.array(passed, dtype=np.float64))
        for _, (vetoed, passed) in sorted(groups.items())
    ]


def _against_lot(
    signals: Sequence[GatedSignal], rng: Generator
) -> tuple[float | None, float | None]:
    """Return the mean result of as many vetoes by lot in each stratum, and the gate's p against it.

    p is None if every lot comes out the same.
    """
    strata = [(vetoed, passed) for vetoed, passed in _strata(signals) if len(vetoed)]
    if not strata:
        return None, None
    net = sum(-float(vetoed.sum()) for vetoed, _ in strata)
    drawn, expected = np.zeros(DRAWS), 0.0
    for vetoed, passed in strata:
        pool = np.concatenate((vetoed, passed))
        expected -= len(vetoed) * float(pool.mean())
        drawn -= _lots(pool, len(vetoed), rng)
    if float(np.ptp(drawn)) == 0.0:
        return expected, None
    # 1e-12: sums of the same results in another order differ by rounding
    as_far = np.abs(drawn - expected) >= abs(net - expected) - 1e-12
    # + 1: the gate itself is one of the possible lots, so p is never 0
    return expected, (1 + int(as_far.sum())) / (DRAWS + 1)


def _lots(pool: Floats, size: int, rng: Generator) -> Floats:
    """Return the sums of DRAWS draws of `size` without putting back."""
    # nothing to draw, and argpartition raises for a place beyond the end
    if size == len(pool):
        return np.full(DRAWS, pool.sum())
    batch = max(1, MOST_DRAWN // len(pool))
    found = []
    for first in range(0, DRAWS, batch):
        ranks = rng.random((min(batch, DRAWS - first), len(pool)))
        chosen = np.argpartition(ranks, size, axis=1)[:, :size]
        found.append(pool[chosen].sum(axis=1))
    return np.concatenate(found)


def _matched(signals: Sequence[GatedSignal]) -> tuple[float | None, Interval | None, int]:
    """Return the mean of passed less vetoed in the same stratum, weighted by the vetoed ones."""
    # a variance takes two results of either kind
    both = [(v, p) for v, p in _strata(signals) if len(v) >= 2 and len(p) >= 2]
    compared = sum(len(vetoed) for vetoed, _ in both)
    if not both:
        return None, None, 0
    weights = [len(vetoed) / compared for vetoed, _ in both]
    gap = math.fsum(w * float(p.mean() - v.mean()) for w, (v, p) in zip(weights, both, strict=True))
    error = math.sqrt(
        math.fsum(w * w * _variance(*one) for w, one in zip(weights, both, strict=True))
    )
    freedom = compared - len(both)
    if error == 0 or freedom < 1:
        return gap, None, compared
    half = student_quantile((1 + LEVEL) / 2, freedom) * error
    return gap, Interval(gap - half, gap + half), compared


def _variance(one: Floats, other: Floats) -> float:
    return float(one.var(ddof=1)) / len(one) + float(other.var(ddof=1)) / len(other)


# --- the table ------------------------------------------------------------------------------------


COLUMNS: Final[Columns] = {
    "arm": "called",
    "signals": "signals",
    "vetoed or declined": "vetoed",
    "rate": share_of("vetoed", "signals"),
    "loss avoided, R": number("avoided", 2),
    "gain forgone, R": number("forgone", 2),
    "net, R": number("net", 2),
    "R each": number("worth.mean", 3),
    "95 % interval": interval("worth"),
    "by lot, R": number("by_lot", 2),
    "p against lot": number("p", 4),
    "passed less vetoed, matched": number("matched", 3),
    "95 % interval, matched": interval("interval"),
}


def gate_exhibit(found: Sequence[GateValue]) -> Exhibit:
    """Return the worth of the arms' gates, in R."""
    return Exhibit(
        name="gate",
        title="The gate: loss avoided less gain forgone",
        **contents(COLUMNS, found, FIGURES, key="key"),
        **_show(found)._asdict(),
    )


FIGURES: Final = {
    "signals": "signals",
    "vetoed": "vetoed",
    "attenuated": "attenuated",
    "rate": "rate",
    "avoided": "avoided",
    "forgone": "forgone",
    "net": "net",
    "worth": "worth.mean",
    "low": "worth.low",
    "high": "worth.high",
    "by_lot": "by_lot",
    "p": "p",
    "matched": "matched",
    "matched_low": "interval.low",
    "matched_high": "interval.high",
    "alarm": "alarm",
}


def _needed(one: GateValue) -> int | None:
    return gate_count(NOTABLE_GATE, one.rate or 0.10)


def _show(found: Sequence[GateValue]) -> PowerSentence:
    if not found:
        return PowerSentence("No arm has a gate whose vetoes are known.", enough=False)
    most = max(found, key=lambda one: one.signals)
    effect = f"a gate worth {NOTABLE_GATE} standard deviations of a result"
    text, shown = " ".join(map(_says, found)), any(map(_beyond, found))
    return finding(text, _needed(most), most.signals, "signal", effect, shown=shown)


def _says(one: GateValue) -> str:
    parts = (f"{one.called}: {_vetoes(one)}", _alarm(one), _lot(one))
    return " ".join(part for part in parts if part)


def _vetoes(one: GateValue) -> str:
    noun, several, did = WORDS[one.by]
    if not one.signals and one.by == TRADER:
        return "it was asked about no trade."
    if not one.vetoed:
        return f"the {WHO[one.by]} {did} none of {_asked(one)}."
    if not one.known:
        return f"what the {count(one.vetoed, f'{did} signal')} would have come to is not known."
    ends = interval_cell(one.worth)
    interval = f" ({ends})" if ends else ""
    return (
        f"the {several} avoided {one.avoided:.1f} R of loss and forwent {one.forgone:.1f} R of "
        f"gain: {signed(one.worth.mean)} R a {noun}{interval}."
    )


def _asked(one: GateValue) -> str:
    if one.by != TRADER:
        return count(one.signals, "signal")
    return f"{count(one.signals, 'trade')} that it was asked about"


def _alarm(one: GateValue) -> str:
    if not one.alarm:
        return ""
    does = "sleeps" if (one.rate or 0.0) < LEAST_RATE else "blocks"
    return (
        f"Alarm: {percent(one.rate)} of signals are {WORDS[one.by][2]}, outside of "
        f"{percent(LEAST_RATE)} to {percent(MOST_RATE)}: the {WHO[one.by]} {does}."
    )


def _lot(one: GateValue) -> str:
    if one.by_lot is None:
        return ""
    many = f"A {WHO[one.by]} that {WORDS[one.by][1]} as many by lot"
    expected = f"{many} would come to {signed(one.by_lot, 1)} R"
    if one.p is None:
        return f"{expected}, whatever the lot."
    verdict = "differs beyond chance" if _beyond(one) else "does not differ from it"
    return f"{expected}; this one {verdict} (p {one.p:.3f})."


def _beyond(one: GateValue) -> bool:
    return one.p is not None and one.p <= 1 - LEVEL
