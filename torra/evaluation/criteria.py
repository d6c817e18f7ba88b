"""The success criteria of the debate's design, as one table beside what was measured.

There are five, in the words in which they were set. Each is met, not met, or cannot be told. A
value that was not measured, or a sample in which chance would do the same, never counts as met. If
a criterion as written has no power, or says nothing about worth, the remark says so and names what
stands in its place. Values only: the caller fills `Measured`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from torra.evaluation.exhibits import Cell, Exhibit
from torra.evaluation.intervals import Interval, share_difference, wilson
from torra.evaluation.observations import TickObservation
from torra.evaluation.power import rounded_count, two_shares_count
from torra.evaluation.wording import UNKNOWN, count, percent, share_cell, signed, span

MOST_SECONDS: Final = 10.0
MOST_SPREAD: Final = 0.05
LEAST_GATED: Final = 0.10
LEAST_TICKS: Final = 100
"""The four numbers of the criteria as they were set."""

LEAST_SIGNALS: Final = 30
"""Least signals for a quota of them: three vetoed of three is no rate."""

TAIL: Final = 0.95
"""Share of ticks that must end within MOST_SECONDS: 95 of 100."""

MET: Final = "met"
NOT_MET: Final = "not met"
CANNOT_TELL: Final = "cannot be told"
NOT_MEASURED: Final = "not measured"


@dataclass(frozen=True, slots=True)
class Share:
    """Hits among a number of cases; as text the share with its interval."""

    hits: int
    size: int

    def __str__(self) -> str:
        return share_cell(self.hits, self.size) or UNKNOWN


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured values; None for what was not measured.

    `false_agents` and `false_single`: signals that lost more than 1 R, of the budget desk and of
    the single model on the same bars. `seconds`: the 95th percentile of a tick's time; `timed`: on
    how many ticks; `simulated`: no model was asked over a network. `spread`: the largest distance
    of a repeated run's adjustment from the mean of its runs, on any vector; `flips`: verdicts that
    a repetition changed. `gated`: openings vetoed or attenuated among those that passed the
    threshold; `gate_worth` and its interval in R a veto. `fallbacks`: ticks on which every agent
    failed and the scores equalled the deterministic ones to the last bit; `lost`: records missing.
    """

    false_agents: Share | None = None
    false_single: Share | None = None
    seconds: float | None = None
    timed: int = 0
    simulated: bool = True
    spread: float | None = None
    flips: Share | None = None
    gated: Share | None = None
    gate_worth: float | None = None
    gate_interval: Interval | None = None
    fallbacks: Share | None = None
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion: its words, the measured value, whether it is met, and a remark."""

    name: str
    words: str
    measured: str
    met: str
    remark: str


def seconds_of(ticks: Sequence[TickObservation]) -> float | None:
    """Return the seconds within which TAIL of the ticks were done; None without ticks."""
    times = sorted(tick.elapsed_ms / 1000 for tick in ticks)
    # a time that was measured, not one between two
    return times[math.ceil(TAIL * len(times)) - 1] if times else None


def criteria(measured: Measured) -> tuple[Criterion, ...]:
    """Return the five criteria with their measured values."""
    return (
        _false_signals(measured),
        _latency(measured),
        _consistency(measured),
        _gate(measured),
        _fallback(measured),
    )


def criteria_exhibit(measured: Measured) -> Exhibit:
    """Return the table of success criteria."""
    found = criteria(measured)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (one.name, one.words, one.measured, one.met, one.remark) for one in found
    )
    return Exhibit(
        name="criteria",
        title="Success criteria",
        columns=("criterion", "as set", "measured", "met", "remark"),
        rows=rows,
        says=_says(found),
        enough=any(one.met in (MET, NOT_MET) for one in found),
        figures={one.name: _as_number(one.met) for one in found},
    )


def _as_number(met: str) -> float | None:
    return {MET: 1.0, NOT_MET: 0.0}.get(met)


def _says(found: Sequence[Criterion]) -> str:
    told = {state: sum(1 for one in found if one.met == state) for state in (MET, NOT_MET)}
    open_ones = len(found) - sum(told.values())
    return (
        f"{told[MET]} of {len(found)} criteria are met, {told[NOT_MET]} not, {open_ones} cannot be "
        "told or were not measured. None of them says that the agents earn their cost: that is in "
        "the tables of claims, discordant ticks and placebos."
    )


def _false_signals(measured: Measured) -> Criterion:
    name = "false signals"
    words = f"budget mode has fewer false signals than the single model, over {LEAST_TICKS}+ ticks"
    ours, theirs = measured.false_agents, measured.false_single
    if not ours or not theirs or not ours.size or not theirs.size:
        return Criterion(name, words, "", NOT_MEASURED, _no_power(None, None))
    gap = share_difference(ours.hits, ours.size, theirs.hits, theirs.size)
    met = CANNOT_TELL
    if gap is not None and (gap.high < 0 or gap.low > 0):
        met = MET if gap.high < 0 else NOT_MET
    shown = f"{ours} against {theirs} of signals lost more than 1 R"
    return Criterion(name, words, shown, met, _no_power(ours, theirs))


def _no_power(ours: Share | None, theirs: Share | None) -> str:
    general = f"{LEAST_TICKS} ticks have no power: a share of 100 is known to 5 points either way"
    if not ours or not theirs:
        return f"{general} at one standard error."
    needed = two_shares_count(ours.hits / ours.size, theirs.hits / theirs.size)
    if needed is None:
        return f"{general} at one standard error; these two shares are equal."
    return (
        f"{general} at one standard error; these two take about "
        f"{rounded_count(needed)} signals each."
    )


def _latency(measured: Measured) -> Criterion:
    words = f"budget mode completes in less than {MOST_SECONDS:.0f} s a tick"
    if measured.seconds is None or not measured.timed:
        return Criterion("latency", words, "", NOT_MEASURED, _latency_remark(measured))
    shown = f"{percent(TAIL)} of {count(measured.timed, 'tick')} within {measured.seconds:.2f} s"
    met = MET if measured.seconds < MOST_SECONDS else NOT_MET
    # no network, no model: short times say nothing then, but long ones are too long all the same
    if measured.simulated and met == MET:
        met = CANNOT_TELL
    return Criterion("latency", words, shown, met, _latency_remark(measured))


def _latency_remark(measured: Measured) -> str:
    if measured.simulated:
        return (
            "Without a model on a network this is Torra's own share of the time; the deadline cuts "
            "off whatever a model takes longer."
        )
    return "The deadline holds in any case: late answers are recorded and not counted."


def _consistency(measured: Measured) -> Criterion:
    words = f"same market, consensus within {MOST_SPREAD} either way across repeated runs"
    remark = (
        "Nearly vacuous on the final score, which agents move by 0.06 at most; so it is judged on "
        "the adjustment before the blend, each vector, and on changed verdicts."
    )
    if measured.spread is None:
        return Criterion("consistency", words, "", NOT_MEASURED, remark)
    shown = f"adjustments within {measured.spread:.3f}"
    if measured.flips and measured.flips.size:
        shown += f"; {measured.flips} of repeated verdicts changed"
    met = MET if measured.spread <= MOST_SPREAD else NOT_MET
    return Criterion("consistency", words, shown, met, remark)


def _gate(measured: Measured) -> Criterion:
    words = f"the gate vetoes or attenuates at least {percent(LEAST_GATED)} of signals that passed"
    remark = (
        "A quota, which a gate that vetoes one in ten by lot meets as well; its worth is loss "
        "avoided less gain forgone, in the table of the gate."
    )
    if not measured.gated or not measured.gated.size:
        return Criterion("gate", words, "", NOT_MEASURED, remark)
    shown = f"{measured.gated} vetoed or attenuated"
    if measured.gate_worth is not None:
        ends = measured.gate_interval
        shown += f"; worth {signed(measured.gate_worth)} R a veto"
        shown += f" ({span(ends.low, ends.high)})" if ends else ", interval not known"
    return Criterion("gate", words, shown, _quota(measured.gated), remark)


def _quota(gated: Share) -> str:
    found = wilson(gated.hits, gated.size)
    # an interval on both sides of the quota leaves it to chance
    if found is None or gated.size < LEAST_SIGNALS or found.low < LEAST_GATED <= found.high:
        return CANNOT_TELL
    return MET if found.low >= LEAST_GATED else NOT_MET


def _fallback(measured: Measured) -> Criterion:
    words = "if all agents fail, the legacy scores stand and no data is lost"
    remark = "Judged to the last bit: with no agent the scores are the deterministic ones."
    done = measured.fallbacks
    if not done or not done.size:
        return Criterion("fallback", words, "", NOT_MEASURED, remark)
    shown = f"{done.hits} of {count(done.size, 'tick')} equal to the last bit"
    if measured.lost is None:
        return Criterion("fallback", words, shown, CANNOT_TELL, f"{remark} Loss was not counted.")
    shown += f"; {count(measured.lost, 'record')} lost"
    met = MET if done.hits == done.size and measured.lost == 0 else NOT_MET
    return Criterion("fallback", words, shown, met, remark)
