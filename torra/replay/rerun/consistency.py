"""The work behind `torra consistency`: asks the same tick several times, in an unchanged context.

Each run is a trial like `torra tick` (torra.replay.rerun.trial_tick): a throw-away copy of the desk
that knows what was known at the tick's close and nothing later. So all runs of a tick see the same
bars, memory and news, and nothing of the desk changes but its ledger. Every agent is asked and
counts, also where the profile asks only on pivotal ticks or lets agents look on. What differs
between runs is then the agents' own (torra.evaluation.repetition judges it); the rules answer alike
to the bit.

A vendor is asked within the profile's hourly ceiling and within the sum that the user named. A run
whose worst case does not fit any more is not begun; one that the ladder has put on a smaller desk
is left out. The runs made by then count. A vendor without `max_cost` raises ConfigError, a desk
where no tick can be run DataUnavailable.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from numpy.random import PCG64, Generator

from agents.registry import seated
from torra.clock import duration, iso
from torra.config import Instance, Profile
from torra.errors import ConfigError, DataUnavailable
from torra.evaluation.exhibits import Exhibit
from torra.evaluation.observations import TickObservation, same_but_time
from torra.evaluation.repetition import repetition_exhibit
from torra.evaluation.wording import count
from torra.home import PRICES
from torra.providers.prices import PriceList
from torra.providers.vendors.clients import VendorClients
from torra.replay.rerun import trial_tick
from torra.replay.shards.seen import tick_seen
from torra.tick.degradation import tick_worst_case
from torra.tick.record import TickResult, describe

RUNS: Final = 5
TICKS: Final = 20
"""Ticks that a comparison of within and between needs (torra.evaluation.repetition.ENOUGH)."""

SPACING: Final = 12
"""Bars between two ticks, so that they are not the same market twenty times over."""

HOLES: Final = 400
"""Bars without a tick that are passed over, weekends and gaps, before the search gives up."""

SEED: Final = 8
UNASKED_FLAGS: Final = ("budget", "ladder:")
"""Prefixes of the flags of a tick that ran on a smaller desk, or on none, for want of money."""


@dataclass(frozen=True, slots=True)
class ConsistencyPlan:
    """The runs to make and their cost: `calls` at most without retries, `worst_usd` a run."""

    home: Path
    instance: Instance
    timeframe: str
    profile: Profile
    runs: int
    ticks: int
    calls: int
    worst_usd: float
    max_cost: float | None = None
    bars: Path | None = None
    named: str | None = None
    clock: str | None = None

    @property
    def total(self) -> int:
        """How many runs there are in all."""
        return self.runs * self.ticks

    @property
    def paid(self) -> bool:
        """Whether somebody is asked who may have to be paid."""
        return bool(self.profile.agents.paid())

    def line(self) -> str:
        """Return the plan in one line, for a terminal."""
        sample = self.bars is None and self.instance.feed == "sample"
        shipped = " on the shipped bars" if sample else ""
        told = (
            f"{count(self.ticks, 'tick')} of {self.instance.id} {self.timeframe}{shipped}, "
            f"{count(self.runs, 'run')} of each by {self.profile.agents.provider}: up to "
            f"{count(self.total * self.calls, 'call')}"
        )
        if not self.paid:
            return f"{told}, nobody is paid"
        most = self.total * self.worst_usd
        limit = "" if self.max_cost is None else f"; ends before {self.max_cost:.2f} USD are spent"
        return f"{told}, {most:.2f} USD at the very most{limit}"


@dataclass(frozen=True, slots=True)
class Repeated:
    """The results: for each tick its runs.

    `unlike` counts runs that saw another context and are left out; `stopped` says why it ended
    early, "" where it did not.
    """

    runs: tuple[tuple[TickObservation, ...], ...]
    calls: int
    cost_usd: float
    unlike: int = 0
    stopped: str = ""

    @property
    def identical(self) -> bool:
        """Whether every run of every tick is the same in everything but time."""
        return all(same_but_time(own[0], other) for own in self.runs for other in own)


def plan(
    home: Path,
    symbol: str,
    timeframe: str | None = None,
    *,
    runs: int = RUNS,
    ticks: int = TICKS,
    bars: Path | None = None,
    clock: str | None = None,
    profile: str | None = None,
    mode: str | None = None,
    provider: str | None = None,
    max_cost: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> ConsistencyPlan:
    """Return the plan of the runs; raises ConfigError naming what to mend.

    A vendor is not asked without a `max_cost`.
    """
    name = timeframe or _shortest(home, symbol, bars)
    instance = trial_tick.instance_of(home, symbol, name, from_file=bars is not None)
    found = _asked(trial_tick.profile_of(home, instance, profile, mode, provider))
    known = dict(os.environ) if environment is None else environment
    made = ConsistencyPlan(
        home,
        instance,
        name,
        found,
        runs,
        ticks,
        len(seated(found.agents)),
        _worst(home, found, known) if found.agents.paid() else 0.0,
        max_cost,
        bars,
        profile,
        clock,
    )
    if max_cost is not None and not math.isfinite(max_cost):
        raise ConfigError(f"--max-cost {max_cost}: say a sum of USD, 0 or more")
    if made.paid and max_cost is None:
        raise ConfigError(f"{made.line()}: say with --max-cost USD how much it may cost")
    return made


def repeat(
    plan: ConsistencyPlan,
    *,
    on_run: Callable[[float], None] = lambda _: None,
    run: Callable[..., Mapping[str, Any]] = trial_tick.run,
) -> Repeated:
    """Ask every tick as often as planned; `on_run` gets the USD spent so far after each run.

    Raises DataUnavailable where no tick can be run, and the errors of `torra tick`.
    """
    asking = _Asking(plan, on_run, run)
    moment: datetime | None = None
    holes = 0
    step = duration(plan.timeframe)
    while len(asking.contexts) < plan.ticks and not asking.stopped:
        try:
            moment = asking.ask(moment) - SPACING * step
        except DataUnavailable:
            holes += 1
            if moment is None or (not asking.contexts and holes > HOLES):
                raise
            if holes > HOLES:
                asking.stopped = f"no more ticks before {iso(moment)}"
            # A weekend or a gap: the next older close is tried.
            moment -= step
    return asking.result()


def exhibit(found: Repeated, seed: int = SEED) -> Exhibit:
    """Return the table of how desk and agents repeat themselves."""
    told = repetition_exhibit(found.runs, Generator(PCG64(seed)))
    more = []
    repeats = sum(len(own) > 1 for own in found.runs)
    if found.identical and repeats:
        more.append("Every run of a tick was the same, bit for bit.")
    if found.unlike:
        more.append(f"{count(found.unlike, 'run')} saw another context and did not count.")
    if found.stopped:
        more.append(f"It ended early: {found.stopped}.")
    figures = {**told.figures, "calls": float(found.calls), "cost_usd": found.cost_usd}
    return Exhibit(**{**dict(told), "says": " ".join([told.says, *more]), "figures": figures})


# --- asking ---------------------------------------------------------------------------------------


class _Asking:
    """The runs so far, and what they have cost."""

    def __init__(
        self,
        plan: ConsistencyPlan,
        on_run: Callable[[float], None],
        run: Callable[..., Mapping[str, Any]],
    ) -> None:
        self.plan = plan
        self.contexts: list[tuple[TickObservation, ...]] = []
        self.calls = self.unlike = 0
        self.cost = 0.0
        self.stopped = ""
        self._on_run = on_run
        self._run = run

    def ask(self, moment: datetime | None) -> datetime:
        """Run a tick as often as planned, the newest where no moment is named; return its close."""
        context, first = "", None
        runs: list[TickObservation] = []
        for _ in range(self.plan.runs):
            if self._too_dear():
                break
            seen = self._once(moment)
            # The newest tick may move on while we ask: the later runs name the moment of the first.
            moment = seen.inputs.as_of
            tick = tick_seen(seen, seen.elapsed_ms)
            self.calls += tick.calls
            self.cost += tick.cost_usd
            self._on_run(self.cost)
            if any(flag.startswith(UNASKED_FLAGS) for flag in seen.debated.deliberation.flags):
                self.stopped = "the profile's hour has no money left for its whole desk"
                break
            context, first = fingerprint(seen), context or fingerprint(seen)
            # Other bars, news or memory: its differences would not be the agents'.
            if context != first:
                self.unlike += 1
            else:
                runs.append(tick)
        if runs:
            self.contexts.append(tuple(runs))
        if moment is None:
            raise ConfigError(
                f"--max-cost {self.plan.max_cost} is less than one run may cost: "
                f"{self.plan.worst_usd:.4f} USD"
            )
        return moment

    def result(self) -> Repeated:
        return Repeated(tuple(self.contexts), self.calls, self.cost, self.unlike, self.stopped)

    def _too_dear(self) -> bool:
        plan = self.plan
        if not plan.paid or plan.max_cost is None:
            return False
        # Against the worst case, before the run: once asked, a vendor must be paid.
        if self.cost + plan.worst_usd <= plan.max_cost:
            return False
        self.stopped = (
            f"{self.cost:.4f} USD are spent, and one more run may cost {plan.worst_usd:.4f} of "
            f"{plan.max_cost:.2f}"
        )
        return True

    def _once(self, moment: datetime | None) -> TickResult:
        plan, heard = self.plan, list[TickResult]()
        self._run(
            plan.home,
            plan.instance.id,
            plan.timeframe,
            as_of=None if moment is None else iso(moment),
            bars=plan.bars,
            clock=plan.clock,
            profile=plan.named,
            settings=plan.profile,
            on_result=heard.append,
        )
        return heard[0]


def fingerprint(seen: TickResult) -> str:
    """Return everything that agents were shown, as text that is equal only bit for bit."""
    inputs = seen.inputs
    features = [(item.id, item.value) for item in inputs.bundle.features.values()]
    bars = describe(inputs.view)["hash"]
    return repr((iso(inputs.as_of), bars, inputs.records, features, dict(inputs.memory)))


def _asked(profile: Profile) -> Profile:
    """Return the profile with every agent of the desk asked on every tick, and counted."""
    changes = {"call_policy": "always", "influence": "full"}
    return profile.model_copy(update={"agents": profile.agents.model_copy(update=changes)})


def _shortest(home: Path, symbol: str, bars: Path | None) -> str:
    """Return the timeframe that is meant when none is named."""
    from torra.config import load_desk  # noqa: PLC0415

    if bars is not None:
        raise ConfigError("name the timeframe of the file: torra consistency SYMBOL TIMEFRAME")
    return load_desk(home).instance(symbol).shortest


def _worst(home: Path, profile: Profile, environment: Mapping[str, str]) -> float:
    """Return the most that one run can cost."""
    prices = PriceList.read(home / PRICES)
    board = VendorClients(dict(environment), prices=prices)
    try:
        return tick_worst_case(prices, profile.agents, lambda vendor: board.address(vendor).local)
    finally:
        board.close()
