"""All tables about arms, in the order of a report: what each arm came to, and why.

`arm_exhibits` is the one call that a report needs; each table is made in a module of its own.
Everything random comes from the seed and the name of the arm, so an arm's figures do not depend on
what else is in the table. Placebos stand in the tables of results and of changed verdicts; the
question whether an arm shows an edge is asked of the other arms only. The control is compared with
random entries. An arm of agents is compared with its own placebos as well, and if it has none,
nothing is claimed of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from numpy.random import PCG64, Generator

from torra.evaluation.account_curve import period
from torra.evaluation.criteria import Measured, Share, criteria_exhibit, seconds_of
from torra.evaluation.exhibits import Exhibit
from torra.evaluation.gate_value import (
    GATE,
    NEGATIVE_EV,
    REASONS,
    TRADER,
    GateValue,
    VetoResult,
    gate_exhibit,
    gate_value,
    signals_of,
)
from torra.evaluation.intervals import LEVEL
from torra.evaluation.multiple import claims_exhibit
from torra.evaluation.observations import ArmObservation
from torra.evaluation.openings import openings_exhibit
from torra.evaluation.paired import (
    HORIZON,
    FlipResult,
    ForwardReturns,
    Key,
    flip_result,
    flips_exhibit,
)
from torra.evaluation.paired_days import (
    DayResult,
    PlaceboResult,
    day_result,
    days_exhibit,
    excess_profit,
    placebo_result,
    placebos_exhibit,
)
from torra.evaluation.power import SampleSize, power_exhibit
from torra.evaluation.sharpe import sharpe_exhibit
from torra.evaluation.trade_figures import ArmFigures, arm_figures, arms_exhibit, own_sd
from torra.evaluation.wording import count, listed

AGENTS: Final = "budget"
SINGLE: Final = "legacy"
"""The arms that the first success criterion compares."""


@dataclass(frozen=True, slots=True)
class ReportInput:
    """The input of the tables: all arms, and what belongs to them.

    `control` is the arm that the others are paired with; `placebos` names the placebo arms of an
    arm. `outcomes` is what came after each tick (torra.evaluation.paired.sides) over `horizon`
    bars. `vetoed` has the openings that an arm's gate vetoed: an empty row if it vetoed none, and
    no row for an arm without a gate. `by_chance` is the share of random entries with the same
    exits that did as well as an arm (torra.evaluation.random_entries). `trials` counts everything
    that was tried on these bars, these arms included. `measured` has the figures of the success
    criteria that come from elsewhere; those of the arms themselves are filled in.
    """

    arms: Sequence[ArmObservation]
    control: str = "l1"
    placebos: Mapping[str, Sequence[str]] = field(default_factory=dict)
    outcomes: Mapping[Key, ForwardReturns] = field(default_factory=dict)
    horizon: int = HORIZON
    vetoed: Mapping[str, Sequence[VetoResult]] = field(default_factory=dict)
    by_chance: Mapping[str, float | None] = field(default_factory=dict)
    trials: int = 0
    seed: int = 0
    measured: Measured = field(default_factory=Measured)

    def rng(self, arm: str, purpose: int) -> Generator:
        """Return the Generator of one arm and one purpose."""
        # crc32: hash() of a text is another one in every process
        return Generator(PCG64([self.seed, zlib.crc32(arm.encode()), purpose]))

    @property
    def is_placebo(self) -> frozenset[str]:
        """The names of the arms that are somebody's placebo."""
        return frozenset(name for names in self.placebos.values() for name in names)


def arm_exhibits(compared: ReportInput) -> tuple[Exhibit, ...]:
    """Return every table about arms; missing data makes a table empty and raises nothing."""
    # one Generator for each purpose: a table more does not change the draws of the others
    figures = _figures(compared)
    flips, gates = _flips(compared), _gates(compared)
    placebos = _against_placebos(compared)
    real = [one for one in figures if one.arm not in compared.is_placebo]
    held = {one.arm: _placebo_claims(one, compared) for one in placebos}
    beaten = {arm: all(told.values()) if told else None for arm, told in held.items()}
    against = {arm: _named(told) for arm, told in held.items() if told}
    return (
        arms_exhibit(compared.arms, figures),
        claims_exhibit(real, beaten, compared.trials, against),
        openings_exhibit(compared.arms, compared.is_placebo),
        flips_exhibit(flips),
        days_exhibit(_days(compared)),
        placebos_exhibit(placebos),
        gate_exhibit(gates),
        sharpe_exhibit(compared.arms, compared.trials),
        power_exhibit(_seen(compared, figures, flips, gates)),
        criteria_exhibit(measured_of(compared, figures, gates)),
    )


def _figures(compared: ReportInput) -> tuple[ArmFigures, ...]:
    """Return what each arm came to, and what it earned beside the control at one size."""
    control, others = _others(compared)
    known = [arm for arm in others if arm.capital > 0]
    money = {arm.name: excess_profit(arm, control) for arm in known if control}
    earned = {
        arm.name: None if (one := money.get(arm.name)) is None else one / arm.capital
        for arm in known
    }
    return tuple(
        replace(arm_figures(arm, compared.rng(arm.name, 0)), beside=earned.get(arm.name))
        for arm in compared.arms
    )


def _placebo_claims(one: PlaceboResult, compared: ReportInput) -> dict[str, bool]:
    """Return what an arm is compared with, and whether it won; empty if no claim may be made.

    Random entries are no stand-in for the placebos of agents: L1's own skill beats them.
    """
    told: dict[str, bool] = {}
    if one.beaten is not None:
        told[f"its {count(len(one.totals), 'placebo')}"] = one.beaten
    elif one.arm != compared.control:
        return {}
    as_good = compared.by_chance.get(one.arm)
    if as_good is not None:
        # half of 5 %: the test has two sides, and only one of them is a win
        told["random entries"] = as_good <= (1.0 - LEVEL) / 2.0
    return told


def _named(told: Mapping[str, bool]) -> str:
    """Return the names of what was not beaten, or of all if everything was beaten."""
    lost = [name for name, won in told.items() if not won]
    return listed(lost or list(told))


def _others(compared: ReportInput) -> tuple[ArmObservation | None, list[ArmObservation]]:
    control = next((arm for arm in compared.arms if arm.name == compared.control), None)
    return control, [arm for arm in compared.arms if arm.name != compared.control]


def _flips(compared: ReportInput) -> list[FlipResult]:
    control, others = _others(compared)
    if control is None:
        return []
    return [
        flip_result(arm, control, compared.outcomes, compared.rng(arm.name, 1), compared.horizon)
        for arm in others
        if arm.ticks
    ]


def _days(compared: ReportInput) -> list[DayResult]:
    control, others = _others(compared)
    if control is None:
        return []
    return [day_result(arm, [control], compared.rng(arm.name, 2)) for arm in others]


def _against_placebos(compared: ReportInput) -> list[PlaceboResult]:
    named = {arm.name: arm for arm in compared.arms}
    found = []
    for arm in compared.arms:
        if arm.name in compared.is_placebo:
            continue
        those = [named[name] for name in compared.placebos.get(arm.name, ()) if name in named]
        found.append(placebo_result(arm, those, compared.rng(arm.name, 3)))
    return found


def _gates(compared: ReportInput) -> list[GateValue]:
    """Return a row for each arm and each of those who took openings away from it."""
    found = []
    for arm in compared.arms:
        for by in (GATE, *REASONS, TRADER):
            vetoed = [one for one in compared.vetoed.get(arm.name, ()) if one.by == by]
            has_row: dict[str, bool] = {
                GATE: arm.name in compared.vetoed,
                NEGATIVE_EV: bool(vetoed)
                or any(tick.swarm and tick.swarm.side for tick in arm.ticks),
                TRADER: any(tick.consulted for tick in arm.ticks),
            }
            if has_row.get(by, bool(vetoed)):
                rng = compared.rng(arm.name if by == GATE else f"{arm.name} {by}", 4)
                found.append(gate_value(arm.name, signals_of(arm, vetoed, by), rng, by))
    return found


def _seen(
    compared: ReportInput,
    figures: Sequence[ArmFigures],
    flips: Sequence[FlipResult],
    gates: Sequence[GateValue],
) -> SampleSize:
    spans = [whole for whole in map(period, compared.arms) if whole is not None]
    most = max(figures, key=lambda one: one.trades, default=None)
    own = [one for one in gates if one.by == GATE]
    gate = max(own, key=lambda one: one.signals, default=None)
    plain = SampleSize()
    return SampleSize(
        ticks=max((len(arm.ticks) for arm in compared.arms), default=0),
        trades=most.trades if most else 0,
        flips=max((one.counted for one in flips), default=0),
        signals=gate.signals if gate else 0,
        # a gate that vetoed nothing has the rate 0, for which no sample is large enough
        veto_rate=(gate.rate if gate else None) or plain.veto_rate,
        days=max(((end - begin) / timedelta(days=1) for begin, end in spans), default=0.0),
        trade_sd=own_sd(most) if most else plain.trade_sd,
    )


def measured_of(
    compared: ReportInput, figures: Sequence[ArmFigures], gates: Sequence[GateValue]
) -> Measured:
    """Return the success criteria's figures: those given already, else those of the arms."""
    told = compared.measured
    by_name = {one.arm: one for one in figures}
    gate = next((one for one in gates if (one.arm, one.by) == (AGENTS, GATE)), None)
    ticks = next((arm.ticks for arm in compared.arms if arm.name == AGENTS), ())
    return replace(
        told,
        false_agents=told.false_agents or _false(by_name.get(AGENTS)),
        false_single=told.false_single or _false(by_name.get(SINGLE)),
        seconds=seconds_of(ticks) if told.seconds is None else told.seconds,
        timed=told.timed or len(ticks),
        gated=told.gated or (Share(gate.vetoed + gate.attenuated, gate.signals) if gate else None),
        gate_worth=told.gate_worth if gate is None else gate.worth.mean,
        gate_interval=told.gate_interval if gate is None else gate.worth.interval,
    )


def _false(one: ArmFigures | None) -> Share | None:
    return Share(one.beyond_one, one.trades) if one else None
