"""Takes `torra replay` from its options to its report: plan, run, scorecard, document.

The plan is checked whole before anything runs; a mistake raises ConfigError that says what to mend.
What a replay was made of (bars, settings, every tick and trade of each arm) stays in
TORRA_HOME/replays/NAME, so that the replay can go on after an interruption and be recomposed later.
What it shows goes to TORRA_HOME/replays/NAME.json.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Final

from instance_database import TickKey, open_home
from technical_calculator import WARM_UP
from torra.clock import System
from torra.config import Instance, Profile, load_profile, validate
from torra.errors import ConfigError, bounded
from torra.evaluation.exhibits import MOST_LETTERS, Exhibit
from torra.evaluation.observations import ArmObservation
from torra.evaluation.wording import count, listed_within, the_arm
from torra.exhibits import report, trade_file
from torra.exhibits.documents import MOST_SUMMARY, Document, allowed
from torra.exhibits.outcome import outcome
from torra.replay import arms, folders, live, scorecard, voices
from torra.replay.arms import CONTROL, RULES, Arm
from torra.replay.caveats import caveats, jumps_of, thresholds_told
from torra.replay.outlook_then import PointInTimeData, read_outlook
from torra.replay.recomposing import Progress
from torra.replay.replaying import (
    FOLDER,
    SEED,
    ReplayPlan,
    TradingCosts,
    course_of,
    guessed_terms,
    run,
    run_beside,
    run_on,
)
from torra.replay.runner import REAL, AgentSource, Schedule, run_arm
from torra.replay.shards import cluster, cores, executors, shards
from torra.replay.shards.cores import Ahead, Cores
from torra.replay.shards.history import History, cut, load, moment
from torra.store.trade import signals as signal_table

SAMPLE: Final = 60
"""Ticks from which an arm's speed is estimated."""

WORTH_PROCESSES: Final = 5.0
"""Seconds of work from which several processes are quicker than one: a start takes two each."""

LONGEST_TOLD: Final = 140
"""Most letters of a title that name the arms: all of it fits in MOST_LETTERS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """What is asked of a replay, in the words of the command's options; `planned` checks them.

    `wanted` are the arms, `costs` spread, commission and slippage. `max_cost` is in USD, `address`
    a Dask scheduler's, `workers` are processes, None for all processors that there are; `teach`
    lets the desk know L1's win rates.
    """

    bars: Sequence[str]
    begin: str | None = None
    end: str | None = None
    timeframes: str = ""
    clock: str | None = None
    leave_out: str = ""
    wanted: str = CONTROL
    profile: str | None = None
    provider: str | None = None
    costs: str = ""
    max_cost: float | None = None
    seed: int | None = None
    workers: int | None = None
    address: str | None = None
    name: str | None = None
    teach: bool = False


@dataclass(frozen=True, slots=True)
class FinishedReplay(report.Reported):
    """A replay that has ended: its arms, what they show, and the document of it."""

    plan: ReplayPlan
    arms: tuple[ArmObservation, ...]
    exhibits: tuple[Exhibit, ...]
    document: Document

    def trades(self) -> str:
        """Return the trades of every arm as CSV."""
        return trade_file.as_csv(self.arms, jumps_of(self.plan.history))


def trades_of(home: Path, name: str) -> str:
    """Return the trades of a replay that was run as CSV.

    Raises ConfigError where there is none, or an arm of it was not run to its end.
    """
    plan = folders.made_of(home, name)
    seen = (folders.seen_of(home, plan, arm.name) for arm in plan.arms)
    return trade_file.as_csv(seen, jumps_of(plan.history))


def replayed(
    home: Path, symbol: str, asked: ReplayRequest, *, say: Callable[[str], None], progress: Progress
) -> FinishedReplay:
    """Run a replay and write its document; raises ConfigError naming what to mend."""
    most = _sum(asked.max_cost)
    plan = planned(home, symbol, asked)
    if asked.address:
        seen, logged = _elsewhere(home, plan, asked.address, say)
    else:
        seen, logged = _here(home, plan, most, _cores(home, plan, asked, say), say, progress)
    say("working out what each came to ...")
    exhibits = arm_exhibits(plan, seen, logged)
    document = report.document(
        plan.name,
        "replay",
        f"{plan.history.symbol} {', '.join(plan.history.timeframes)}: {_arms_told(plan.arms)}",
        summary(exhibits, [arm.name for arm in plan.arms]),
        period(plan, seen),
        [arm.name for arm in plan.arms],
        exhibits,
        caveats(plan, seen),
        System().real_now(),
        settings_told(plan, named_profile(home, symbol, asked.profile)),
    )
    found = FinishedReplay(plan, tuple(seen), exhibits, document)
    # Before the document: a page that links to trades must find them.
    report.put(home / FOLDER / plan.name / trade_file.FILE, found.trades())
    report.write(home, document, overwrite=True)
    if asked.teach:
        _teach(home, plan, seen[0], say)
    return found


# --- the plan -------------------------------------------------------------------------------------


def planned(home: Path, symbol: str, asked: ReplayRequest) -> ReplayPlan:
    """Return the plan of a replay; raises ConfigError naming what to mend."""
    names = tuple(part.strip().upper() for part in asked.timeframes.split(",") if part.strip())
    first, last = moment("--from", asked.begin), moment("--to", asked.end)
    if first and last and first >= last:
        raise ConfigError(f"--from {asked.begin} is not before --to {asked.end}")
    found = arms.chosen([part.strip() for part in asked.wanted.split(",") if part.strip()])
    history = load(
        home, symbol, asked.bars, timeframes=names, clock=asked.clock, leave_out=asked.leave_out
    )
    history = cut(history, first, last)
    if all(len(frame) < WARM_UP for frame in history.frames.values()):
        raise ConfigError(f"{symbol}: fewer than {WARM_UP} bars of every timeframe; add older ones")
    settings = profile_of(home, symbol, asked.profile, asked.provider)
    arms.check(found, settings.agents)
    guessed = symbol not in settings.symbols
    if guessed:
        known = {**settings.symbols, symbol: guessed_terms(history)}
        settings = settings.model_copy(update={"symbols": known})
    spent = TradingCosts.read(asked.costs, settings.symbol(symbol))
    drawn = SEED if asked.seed is None else asked.seed
    plan = ReplayPlan(
        "", history, _weighed(settings, history), found, spent, first, last, drawn,
        _outlook(home, history, settings, first, last), guessed,
    )  # fmt: skip
    return dataclasses.replace(plan, name=_name(plan, asked.name))


def profile_of(home: Path, symbol: str, named: str | None, provider: str | None) -> Profile:
    """Return the profile of a replay: the one named, or the one that the desk runs the symbol on.

    Nothing waits for a person in a replay: execution approve becomes auto.
    """
    path = Path(named) if named and (named.endswith(".json") or Path(named).is_file()) else None
    settings = load_profile(path or named_profile(home, symbol, named), home)
    values = json.loads(settings.model_dump_json())
    if settings.execution == "approve":
        # Nobody is there to approve: every opening would wait until it expires.
        values["execution"] = "auto"
    if provider is not None:
        values["agents"]["provider"] = provider
    return validate(Profile, values, "the command line")


def named_profile(home: Path, symbol: str, named: str | None) -> str:
    """Return the name of a replay's profile: the one named, else that of the desk's instance."""
    used = next((item.profile for item in voices.own_instances(home, symbol)), "default")
    return named or used


def _outlook(
    home: Path, history: History, settings: Profile, first: datetime | None, last: datetime | None
) -> PointInTimeData:
    """Return the events and headlines of a replay; raises ConfigError for what nobody knows now."""
    if settings.agents.picture == "file" and settings.agents.paid():
        raise ConfigError(
            "agents.picture file: nobody has screenshots of then; set it to rendered "
            "or off for a replay"
        )
    instance = Instance(symbol=history.symbol, timeframes=history.timeframes, feed="store")
    begin, end = history.period
    return read_outlook(home, instance, settings, first or begin, last or end)


def _weighed(profile: Profile, history: History) -> Profile:
    """Return the profile with a weight for every timeframe: one that it does not know counts 1."""
    known = {name: profile.timeframe_weights.get(name, 1.0) for name in history.timeframes}
    return profile.model_copy(update={"timeframe_weights": known})


def _sum(usd: float | None) -> float | None:
    if usd is not None and not 0 <= usd < math.inf:
        raise ConfigError(f"--max-cost {usd:g}: write a sum in USD, 0 or more")
    return usd


def _name(plan: ReplayPlan, named: str | None) -> str:
    if named is not None:
        if named.casefold().startswith(live.CALLED):
            raise ConfigError(
                f"--name {named}: {live.CALLED} begins the names of torra scorecard's"
            )
        if not allowed(named):
            raise ConfigError(
                f"--name {named}: use letters, digits, dot, dash and underscore, 32 at most"
            )
        return named
    told = json.dumps([plan.identity(arm) | {"program": ""} for arm in plan.arms], sort_keys=True)
    return f"{plan.history.symbol.lower()}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


# --- before and elsewhere -------------------------------------------------------------------------


def estimate(
    plan: ReplayPlan,
    paid: bool,
    say: Callable[[str], None],
    done: Mapping[str, int],
    workers: int = 1,
) -> Ahead:
    """Say how much there is to do and how long it will take; return it.

    `done` is how many ticks of an arm an earlier run has done: they take no time now. The speed
    is measured on the first ticks after the warm-up, with the rules provider, in a store that is
    thrown away. A vendor's time and price are not estimated: its answers take seconds.
    """
    for line in plan.history.notes:
        say(line)
    course = course_of(plan)
    ticks = len(course.keys)
    times = count(len(plan.arms), "time")
    told = f"{count(ticks, 'tick')} of {plan.history.symbol}, run {times}"
    before = sum(done.values())
    if before:
        told += f", {before:,} of {ticks * len(plan.arms):,} done"
    if paid:
        say(f"{told}; a vendor is asked: seconds a tick, --max-cost holds")
        return Ahead(ticks, {})
    if before == ticks * len(plan.arms):
        say(told)
        return Ahead(ticks, {})
    few = dataclasses.replace(course, keys=_inside(course))
    seconds = {}
    for arm in plan.arms:
        left = ticks - done.get(arm.name, 0)
        if left <= 0:
            continue
        began = REAL.monotonic()
        run_arm(
            few, arm, plan.profile, voices.rules_voice(arm) if not arm.placebo else AgentSource()
        )
        seconds[arm.name] = (REAL.monotonic() - began) / max(1, len(few.keys)) * left
    waits = {arm.name: plan.source for arm in plan.arms if arm.placebo and plan.source}
    ahead = Ahead(ticks, seconds, waits)
    say(f"{told}; about {shards.duration_text(ahead.takes(workers))}")
    return ahead


def _inside(course: Schedule) -> tuple[TickKey, ...]:
    """Return some ticks after the warm-up."""
    # Ticks of the warm-up end at once, and would make every arm look fast.
    begin = min(len(course.keys) - 1, (WARM_UP + 1) * len(course.instance.timeframes))
    return course.keys[begin : begin + SAMPLE]


def _cores(home: Path, plan: ReplayPlan, asked: ReplayRequest, say: Callable[[str], None]) -> Cores:
    """Return the processes of a replay, one where others than the rules answer."""
    found = cores.cores(home, asked.workers)
    if plan.profile.agents.provider != RULES:
        if found.named and found.workers > 1:
            raise _only_rules(plan)
        found = dataclasses.replace(found, workers=1)
    if found.beside:
        say(found.says())
    return found


def _only_rules(plan: ReplayPlan) -> ConfigError:
    return ConfigError(
        f"--workers and --cluster are for the rules provider; {plan.profile.agents.provider} "
        "is asked from one process only"
    )


def _here(
    home: Path,
    plan: ReplayPlan,
    most: float | None,
    given: Cores,
    say: Callable[[str], None],
    progress: Progress,
) -> tuple[list[ArmObservation], int]:
    """Run the arms on this machine; return them and how many trials are logged.

    The provider is opened before the folder is taken: a replay that is refused leaves nothing.
    Unless somebody named their number, several processes begin only for work that is longer than
    their start.
    """
    symbol, folder = plan.history.symbol, home / FOLDER / plan.name
    with (
        voices.opened(home, plan.profile, symbol, plan.name, max_cost=most) as voice,
        folders.taken(folder),
    ):
        logged = folders.begin(home, plan, say)
        paid, done = bool(plan.profile.agents.paid()), folders.done(home, plan)
        ahead = estimate(plan, paid, say, done, given.workers)
        workers = min(given.workers, len(ahead.seconds))
        spread = workers > 1 and (given.named or sum(ahead.seconds.values()) > WORTH_PROCESSES)
        with progress(ahead.ticks * len(plan.arms), plan.name) as forward:
            if spread:
                forward(sum(done[name] for name in done.keys() - ahead.seconds.keys()))
                seen = _beside(plan, folder, workers, ahead, forward)
            else:
                seen = run(plan, voice, folder=folder, on_ticks=lambda _, number: forward(number))
    return seen, logged


def _beside(
    plan: ReplayPlan, folder: Path, workers: int, ahead: Ahead, forward: Callable[[int], None]
) -> list[ArmObservation]:
    """Run the arms to their end in several processes; return them."""
    told = 0

    def steps(done: int) -> None:
        nonlocal told
        # A part whose process died goes on from its last checkpoint.
        forward(max(0, done - told))
        told = max(told, done)

    with executors.processes(workers, len(plan.arms), steps) as executor:
        return run_beside(plan, executor, folder, first=ahead.longest_first())


def _elsewhere(
    home: Path, plan: ReplayPlan, address: str, say: Callable[[str], None]
) -> tuple[list[ArmObservation], int]:
    """Run the arms on a cluster, and keep them as if they ran here."""
    if plan.profile.agents.provider != RULES:
        raise _only_rules(plan)
    folder = home / FOLDER / plan.name
    with folders.taken(folder):
        logged = folders.begin(home, plan, say)
        with cluster.open_cluster(address) as executor:
            seen = run_on(
                plan,
                executor,
                keep=folder / "kept",
                on_done=lambda done: say(done.line()),
                on_wait=lambda done: say(done.line()),
            )
        folders.keep_arms(home, plan, seen)
    return seen, logged


def _teach(
    home: Path, plan: ReplayPlan, control: ArmObservation, say: Callable[[str], None]
) -> None:
    """Keep L1's win rates in the desk's database, where the risk checks look for them.

    They are kept for every instance of the desk that trades the symbol.
    """
    symbol = plan.history.symbol
    # A symbol that the desk does not trade yet is taught under its own name.
    ids = [item.id for item in voices.own_instances(home, symbol)] or [symbol]
    rates = {
        (timeframe, side): _won(control, timeframe, side)
        for timeframe in plan.history.timeframes
        for side in ("BUY", "SELL")
    }
    with closing(open_home(home)) as database:
        for instance, ((timeframe, side), (wins, trades)) in product(ids, rates.items()):
            signal_table.set_win_rate(
                database, instance, timeframe, side, wins=wins, trades=trades, source=plan.name
            )
    for (timeframe, side), (wins, trades) in rates.items():
        say(f"taught {', '.join(ids)}: {timeframe} {side} {wins} of {trades} won")


def _won(arm: ArmObservation, timeframe: str, side: str) -> tuple[int, int]:
    """Return how many trades of one side were won, and how many there were."""
    trades = [one for one in arm.trades if (one.timeframe, one.side) == (timeframe, side)]
    return sum(one.profit > 0 for one in trades), len(trades)


# --- after ----------------------------------------------------------------------------------------


def arm_exhibits(
    plan: ReplayPlan, seen: Sequence[ArmObservation], logged: int
) -> tuple[Exhibit, ...]:
    """Return the exhibits of the arms of a replay."""
    symbol = plan.history.symbol
    return scorecard.exhibits(
        seen,
        {symbol: plan.history.frames},
        profile=plan.profile,
        trials=logged,
        seed=plan.seed,
        commission=plan.costs.commission,
    )


def summary(exhibits: Sequence[Exhibit], names: Sequence[str]) -> str:
    """Return the sentence that stands above everything else: what the arms came to in money."""
    found = outcome(exhibits, names)
    return found.sentence[:MOST_SUMMARY] if found else "Nothing could be judged."


def settings_told(plan: ReplayPlan, profile: str) -> dict[str, str]:
    """Return under what a replay ran: its bars, its profile and the thresholds of that."""
    bars = "; ".join(plan.history.sources.values())
    omissions = plan.history.omissions
    return {
        "bars": bounded(bars, MOST_LETTERS),
        **({"left out": bounded(omissions, MOST_LETTERS)} if omissions else {}),
        "profile": bounded(profile, MOST_LETTERS),
        "thresholds": thresholds_told(plan.profile),
    }


def period(plan: ReplayPlan, seen: Sequence[ArmObservation]) -> tuple[datetime, datetime]:
    """Return the first open and the last close that was run."""
    ticks = [tick for arm in seen for tick in (arm.ticks[:1] + arm.ticks[-1:])]
    if not ticks:
        return plan.history.period
    return min(tick.bar_time for tick in ticks), max(tick.close_time for tick in ticks)


def _arms_told(found: Sequence[Arm]) -> str:
    names = [arm.name for arm in found]
    real = [the_arm(arm.name, names) for arm in found if not arm.is_placebo]
    return listed_within(real, LONGEST_TOLD)
