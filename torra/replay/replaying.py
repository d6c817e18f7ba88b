"""The work behind `torra replay`: runs every arm over one history.

The placebos use the words of another arm, which runs before them. Each arm is a job of its own. On
this machine, in this process (`run`) or in several (`run_beside`), it has checkpoints, so an
interruption costs seconds; on another executor (`run_on`) a finished arm is kept. The same plan
gives the same result each way. Every arm is logged as a trial before it runs. A vendor's models are
asked in this process only, through the desk's own ledger, and never past `max_cost`.

Costs that are no numbers raise ConfigError. torra.replay.reporting makes the scorecard of all arms.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from torra.clock import iso, parse
from torra.config import Profile, SymbolSpec
from torra.errors import ConfigError
from torra.evaluation.observations import ArmObservation, Interner
from torra.replay import arms
from torra.replay.arms import Arm
from torra.replay.outlook_then import NOTHING, PointInTimeData
from torra.replay.runner import AgentSource, Schedule, run_arm, save_arm
from torra.replay.shards import arm_words, parcels, trials
from torra.replay.shards.checkpoints import CHUNK, Checkpoint, read_arm
from torra.replay.shards.executors import note
from torra.replay.shards.history import History, spread_digest
from torra.replay.shards.shards import Job, program, run_all
from torra.replay.voices import rules_voice

FOLDER: Final = Path("replays")
"""Where a home keeps its replays: NAME.json is the document, the folder NAME what it was made of.
"""

SEED: Final = 20_260_101
"""Default seed of placebos and resampling; the document names the one that was used."""


MOST_DIGITS: Final = 8
GUESSED_SPREAD: Final = 0.1
"""Spread of a symbol of which nobody told, as a share of the usual bar: rather dear than cheap."""

GUESSED_LOTS: Final = (0.01, 0.01, 1e6)
"""Smallest order, step and largest order of such a symbol, of which one lot is one unit."""


def guessed_terms(history: History) -> SymbolSpec:
    """Return how a symbol may be traded of which nobody told: read off its shortest bars.

    Prices have the decimals that the newest closes have, one lot is one unit in the account's
    currency, and the spread is GUESSED_SPREAD of the median bar, a tick at least.
    """
    bars = history.frames[history.timeframes[0]]
    closes = (f"{close:.{MOST_DIGITS}f}".rstrip("0") for close in bars["close"].tail(500))
    digits = max(len(text.partition(".")[2]) for text in closes)
    tick = 10.0**-digits
    usual = float((bars["high"] - bars["low"]).median())
    spread = max(tick, round(GUESSED_SPREAD * usual, digits))
    least, step, most = GUESSED_LOTS
    return SymbolSpec(
        digits=digits, tick_size=tick, tick_value=tick, contract_size=1.0, lot_min=least,
        lot_step=step, lot_max=most, spread=spread,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TradingCosts:
    """The costs of trading: spread and slippage in price units, commission a lot, there and back.

    Raises ValueError for a cost that is not a finite number, or is below zero.
    """

    spread: float
    commission: float
    slippage: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ValueError(f"{name} {value!r}: costs are finite and not negative")

    @classmethod
    def read(cls, text: str, spec: SymbolSpec) -> TradingCosts:
        """Read "spread,commission,slippage"; an empty part is the profile's. Raises ConfigError."""
        parts = [part.strip() for part in text.split(",")] if text else []
        usual = (spec.spread, 0.0, spec.slippage)
        if len(parts) > len(usual):
            raise ConfigError(f"--costs {text}: write spread,commission,slippage")
        try:
            given = [float(part) if part else usual[at] for at, part in enumerate(parts)]
        except ValueError as error:
            raise ConfigError(f"--costs {text}: write three numbers, as 0.25,0,0.05") from error
        if any(not 0 <= value < float("inf") for value in given):
            raise ConfigError(f"--costs {text}: costs are not negative")
        return cls(*given, *usual[len(given) :])

    def on(self, profile: Profile, symbol: str) -> Profile:
        """Return the profile with these trading conditions of a symbol."""
        spec = profile.symbol(symbol).model_copy(
            update={"spread": self.spread, "slippage": self.slippage}
        )
        return profile.model_copy(update={"symbols": {**profile.symbols, symbol: spec}})


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """Everything that a replay depends on: equal plans have equal results.

    `outlook` has the events and headlines of then. The profile's trading conditions of the symbol
    become those of `costs`; with an arm that is about memory it remembers.
    """

    name: str
    history: History
    profile: Profile
    arms: tuple[Arm, ...]
    costs: TradingCosts
    begin: datetime | None = None
    end: datetime | None = None
    seed: int = SEED
    outlook: PointInTimeData = NOTHING
    guessed: bool = False
    """Whether nobody told how the symbol is traded, so that its terms are `guessed_terms`."""

    def __post_init__(self) -> None:
        profile = self.costs.on(self.profile, self.history.symbol)
        if any(arm.memory != "own" for arm in self.arms):
            # Without a memory beside them those arms would be compared with themselves.
            told = arms.remembering(profile.agents, "on")
            profile = profile.model_copy(update={"agents": told})
        object.__setattr__(self, "profile", profile)

    @property
    def settings(self) -> tuple[object, ...]:
        """The part that all arms share; plans with equal settings may share a folder."""
        bars, profile = self.history.digest, self.profile.digest()
        return bars, profile, self.costs, self.begin, self.end, self.seed, self.outlook.digest

    @property
    def source(self) -> str | None:
        """The arm whose words the placebos use; None where there is no such arm."""
        return arms.reference(arm.name for arm in self.arms)

    def handed(self, arm: Arm) -> Profile:
        """Return the profile of which an arm makes its own.

        A placebo's has its source's desk, the control's the rows of the desks beside it.
        """
        if arm.name == arms.CONTROL:
            return arms.control_of(self.profile, self.arms)
        if arm.placebo is None or self.source is None:
            return self.profile
        return arms.spoken_by(self.profile, self.source)

    def identity(self, arm: Arm) -> dict[str, Any]:
        """Return the settings that identify an arm of this plan, and the program that runs it."""
        outlook, spreads = self.outlook.digest, spread_digest(self.history)
        return {
            "bars": self.history.digest,
            "profile": arm.profile(self.handed(arm)).digest(),
            "arm": arm.name,
            "commission": self.costs.commission,
            "begin": iso(self.begin) if self.begin else "",
            "end": iso(self.end) if self.end else "",
            # Only placebos draw: another seed leaves the other arms as they are.
            "seed": self.seed if arm.draws else 0,
            "words": self.source if arm.placebo else "",
            "program": program()["code"],
            # Without any a replay keeps the name that it had before there were some.
            **({"outlook": outlook} if outlook else {}),
            **({"spreads": spreads} if spreads else {}),
        }

    def log(self, home: Path) -> int:
        """Enter the arms into the log of trials; return how many the symbol has now."""
        names = (
            trials.name_of(
                "arm",
                self.history.symbol,
                self.history.digest,
                # Another version of the program is no other trial.
                {**self.identity(arm), "program": ""},
            )
            for arm in self.arms
            if arm.placebo is None
        )
        return trials.log(home, self.history.symbol, names, f"replay {self.name}")


def course_of(plan: ReplayPlan) -> Schedule:
    """Return the ticks of a plan."""
    return Schedule.of(plan.history, begin=plan.begin, end=plan.end, outlook=plan.outlook)


# --- in this process ------------------------------------------------------------------------------


def run(
    plan: ReplayPlan,
    voice: Callable[[Arm], AgentSource],
    *,
    folder: Path | None = None,
    chunk: int = CHUNK,
    on_ticks: Callable[[str, int], None] = lambda _name, _number: None,
) -> list[ArmObservation]:
    """Run every arm in this process, in order; with a `folder` from where it stopped last.

    There every `chunk` ticks are saved.
    """
    course = course_of(plan)
    seen: dict[str, ArmObservation] = {}
    shared = Interner()
    for arm in plan.arms:
        checkpoint = Checkpoint(folder, arm.name, plan.identity(arm)) if folder else None
        seen[arm.name] = run_arm(
            course,
            arm,
            plan.handed(arm),
            placebo_voice(plan, arm, seen) if arm.placebo else voice(arm),
            checkpoint=checkpoint,
            commission=plan.costs.commission,
            chunk=chunk,
            shared=shared,
            # A default argument: the name of this arm, not of the loop's last one.
            on_ticks=lambda number, name=arm.name: on_ticks(name, number),  # type: ignore[misc]
            seed=plan.seed,
        )
    return list(seen.values())


def placebo_voice(plan: ReplayPlan, arm: Arm, seen: Mapping[str, ArmObservation]) -> AgentSource:
    """Return the voice of a placebo arm."""
    if arm.placebo is None or plan.source is None:
        raise ValueError(f"{arm.name} has nobody whose words it could use")
    said = arm_words.placebo(arm.placebo, seen[plan.source], plan.seed, plan.profile.gate)
    return _speaking(said)


def _speaking(said: arm_words.ScriptedDebate) -> AgentSource:
    return AgentSource(debater=arm_words.speaking(said), provider="placebo")


# --- in several processes -------------------------------------------------------------------------


def run_beside(
    plan: ReplayPlan, executor: Executor, folder: Path, *, first: Sequence[str] = ()
) -> list[ArmObservation]:
    """Run every arm to its end in processes of this machine, with the rules provider.

    Each writes the checkpoints of its arm into `folder`, as `run` does there; they are read while
    others still run. Arms begin in the order of `first`, a placebo when the arm is done whose words
    it uses. A part is known by its place in the plan (torra.replay.shards.executors.note).
    """
    left = {
        arm.name: part
        for part, arm in enumerate(plan.arms)
        if not Checkpoint(folder, arm.name, plan.identity(arm)).done
    }
    jobs = []
    for name in sorted(left, key=lambda name: first.index(name) if name in first else len(first)):
        arm = plan.arms[left[name]]
        after = plan.source if arm.placebo and plan.source in left else ""
        jobs.append(Job(name, _part(plan, arm, left[name], folder), after or ""))
    shared, ended = Interner(), threading.Event()
    reader, found = ThreadPoolExecutor(1), dict[str, Future[ArmObservation]]()

    def read(name: str) -> None:
        found[name] = reader.submit(finished, plan, name, folder, shared, ended.is_set)

    try:
        for arm in plan.arms:
            if arm.name not in left:
                read(arm.name)
        run_all(jobs, run_part, executor, on_done=lambda done: read(done.name))
        if callable(check := getattr(executor, "check", None)):
            check()  # all of them have ended, whatever is left to be read
        return [found[arm.name].result() for arm in plan.arms]
    finally:
        ended.set()  # after an interruption nobody waits for what is half read
        reader.shutdown(cancel_futures=True)


def finished(
    plan: ReplayPlan,
    arm: str,
    folder: Path,
    shared: Interner | None = None,
    ended: Callable[[], bool] = lambda: False,
) -> ArmObservation:
    """Return an arm of a plan that was run to its end; raises ConfigError where it was not.

    Raises CancelledError once it has `ended` that anybody wants it.
    """
    identity = plan.identity(arms.ARMS[arm])
    (ticks, trades), state = read_arm(folder, arm, identity, shared, ended)
    return ArmObservation(
        arm,
        tuple(ticks),
        tuple(trades),
        capital=plan.profile.risk.capital,
        commission=plan.costs.commission,
        skipped=state["skipped"],
        halts=state["halts"],
    )


def _part(plan: ReplayPlan, arm: Arm, part: int, folder: Path) -> dict[str, Any]:
    """Return the spec with which a process of this machine runs an arm."""
    spec = {**spec_of(plan, arm, {}), "part": part, "folder": str(folder.absolute())}
    spec["identity"] = plan.identity(arm)
    if arm.placebo and plan.source:
        spec["source"] = plan.source
        spec["said"] = plan.identity(arms.ARMS[plan.source])
    return spec


def run_part(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one arm from its last checkpoint on to its end, and note how far it is."""
    arm, folder = arms.ARMS[spec["arm"]], Path(spec["folder"])
    profile = Profile.model_validate_json(spec["profile"])
    done = 0

    def forward(number: int) -> None:
        nonlocal done
        done += number
        note(spec["part"], done)

    voice = _speaking(_words(spec, arm.placebo, profile)) if arm.placebo else rules_voice(arm)
    checkpoint = Checkpoint(folder, arm.name, spec["identity"])
    save_arm(_course(spec), arm, profile, voice, checkpoint, on_ticks=forward, seed=spec["seed"])
    return {}


def _words(
    spec: Mapping[str, Any], kind: arms.Placebo, profile: Profile
) -> arm_words.ScriptedDebate:
    """Return the words of a placebo; its source is let go of before the placebo runs."""
    (ticks, _), _ = read_arm(Path(spec["folder"]), spec["source"], spec["said"])
    said = ArmObservation(spec["source"], tuple(ticks), ())
    return arm_words.placebo(kind, said, spec["seed"], profile.gate)


# --- on an executor -------------------------------------------------------------------------------


def run_on(
    plan: ReplayPlan,
    executor: Executor,
    *,
    keep: Path | None = None,
    on_done: Callable[[Any], None] = lambda _: None,
    on_wait: Callable[[Any], None] = lambda _: None,
) -> list[ArmObservation]:
    """Run every arm as a job on an executor, with the rules provider; the same result as `run`."""
    seen: dict[str, ArmObservation] = {}
    own = [arm for arm in plan.arms if arm.placebo is None]
    rest = [arm for arm in plan.arms if arm.placebo is not None]
    # Placebos need the words of a finished arm.
    for some in (own, rest):
        jobs = [Job(f"{plan.name} {arm.name}", spec_of(plan, arm, seen)) for arm in some]
        found = run_all(jobs, run_job, executor, on_done=on_done, on_wait=on_wait, keep=keep)
        seen |= {
            arm.name: parcels.arm_from(told["arm"]) for arm, told in zip(some, found, strict=True)
        }
    return [seen[arm.name] for arm in plan.arms]


def run_job(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one arm in a worker; `spec` holds all that it needs, the result all that it found."""
    arm, profile = arms.ARMS[spec["arm"]], Profile.model_validate_json(spec["profile"])
    voice = _speaking(arm_words.words_of(spec["words"])) if arm.placebo else rules_voice(arm)
    seen = run_arm(
        _course(spec), arm, profile, voice, commission=spec["commission"], seed=spec["seed"]
    )
    return {"arm": parcels.packed_arm(seen)}


def _course(spec: Mapping[str, Any]) -> Schedule:
    return Schedule.of(
        parcels.history_of(spec["history"]),
        begin=_moment(spec["begin"]),
        end=_moment(spec["end"]),
        outlook=PointInTimeData.of(spec["outlook"]),
    )


def spec_of(plan: ReplayPlan, arm: Arm, seen: Mapping[str, ArmObservation]) -> dict[str, Any]:
    """Return the spec with which a worker runs an arm, as JSON values.

    A placebo's has the words of its source, where that was `seen`.
    """
    words: list[Any] = []
    if arm.placebo and plan.source and plan.source in seen:
        said = arm_words.placebo(arm.placebo, seen[plan.source], plan.seed, plan.profile.gate)
        words = arm_words.rows_of(said)
    return {
        "history": parcels.packed_history(plan.history),
        "profile": plan.handed(arm).model_dump_json(),
        "arm": arm.name,
        "begin": iso(plan.begin) if plan.begin else "",
        "end": iso(plan.end) if plan.end else "",
        "commission": plan.costs.commission,
        "words": words,
        # Only an arm that draws depends on it: the kept results of the others stay.
        "seed": plan.seed if arm.draws else 0,
        "outlook": plan.outlook.as_json(),
    }


def _moment(text: str) -> datetime | None:
    return parse(text) if text else None
