"""The folder of a replay, TORRA_HOME/replays/NAME: what it was made of, and who works in it.

`taken` gives a folder to one process at a time; the system takes it back when that process dies.
`begin` compares the folder with the plan before anything is logged or written, so a folder that
belongs to another replay stays as it is. `seen_of` returns an arm that was run to its end. A folder
that is another replay's, unfinished, damaged or not writable raises ConfigError with the remedy.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from agent_config import MODES
from torra.clock import iso, parse
from torra.config import Profile, validate
from torra.errors import Busy, ConfigError
from torra.evaluation.observations import ArmObservation
from torra.replay import arms
from torra.replay.outlook_then import PointInTimeData
from torra.replay.replaying import FOLDER, ReplayPlan, TradingCosts, finished
from torra.replay.shards import parcels
from torra.replay.shards.checkpoints import (
    BROKEN,
    Checkpoint,
    foreign,
    forget,
    move_into_place,
    state_of,
    unwritable,
)
from torra.replay.shards.shards import program
from torra.whole_files import locked

MADE_OF: Final = "made_of.json"
"""Bars and settings of a replay, in its folder."""

LOCK: Final = ".lock"
"""Held by the process that runs the replay."""


@contextmanager
def taken(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone; raises Busy while another one does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a", encoding="utf-8")
    except OSError as error:
        raise unwritable(folder, error) from error
    with file:
        if not _locked(file):
            raise Busy(
                f"the replay {folder.name} is running already: wait for its end, or give this one "
                "another --name"
            )
        yield


def _locked(file: IO[str]) -> bool:
    """Lock a file until it is closed; False when another process holds it."""
    try:
        return locked(file)
    except OSError as error:
        raise unwritable(Path(file.name), error) from error


def begin(home: Path, plan: ReplayPlan, say: Callable[[str], None] = lambda _: None) -> int:
    """Log the trials of a plan and keep what it is made of; return how many the symbol has now.

    Raises ConfigError, and neither logs nor writes, for a folder that belongs to another replay.
    More arms of the same replay may join. One that another version of the program left half done
    starts anew where nothing was paid for its answers, and `say` is told so: results of two
    versions are never mixed.
    """
    folder, names = home / FOLDER / plan.name, {arm.name for arm in plan.arms}
    paid = bool(plan.profile.agents.paid())
    if (folder / MADE_OF).exists():
        held = made_of(home, plan.name)
        if held.settings != plan.settings:
            raise foreign(folder / MADE_OF)
        _start_anew(folder, [arm.name for arm in held.arms], say, paid=paid)
        # Arms of an earlier run stay on the list: they can still be recomposed.
        names |= {arm.name for arm in held.arms}
    for arm in plan.arms:
        # Opened to be checked: a damaged or foreign file is refused before a trial is logged.
        Checkpoint(folder, arm.name, plan.identity(arm))
    logged = plan.log(home)
    told = {
        "history": parcels.packed_history(plan.history),
        "profile": plan.profile.model_dump(mode="json"),
        "arms": [name for name in arms.ARMS if name in names],
        "costs": dataclasses.asdict(plan.costs),
        "begin": iso(plan.begin) if plan.begin else "",
        "end": iso(plan.end) if plan.end else "",
        "seed": plan.seed,
        "outlook": plan.outlook.as_json(),
    }
    move_into_place(folder / MADE_OF, json.dumps(told))
    return logged


def _start_anew(
    folder: Path, held: Sequence[str], say: Callable[[str], None], *, paid: bool
) -> None:
    """Remove what another version of the program left half done; raises ConfigError if it was paid.

    What was paid for is a person's to throw away.
    """
    states = [state_of(folder, name) for name in held]
    programs = {one.identity.get("program") for one in states if one}
    # A replay that was finished stays: it can be read and recomposed, whichever program ran it.
    if programs <= {program()["code"]} or all(one and one.done for one in states):
        return
    if paid:
        raise ConfigError(
            f"{folder.name} was left half done by another version of this program, and its answers "
            "were paid for: give this one another --name, or end that one with the version that "
            "began it; results of two versions are never mixed"
        )
    for name in held:
        forget(folder, name)
    say(
        f"{folder.name} was left half done by another version of this program: it starts anew, "
        "because results of two versions are never mixed"
    )


def done(home: Path, plan: ReplayPlan) -> dict[str, int]:
    """Return how many ticks of each arm were run already; damage is reported when an arm runs."""
    found = {}
    for arm in plan.arms:
        held = Checkpoint(home / FOLDER / plan.name, arm.name, plan.identity(arm)).state
        at = held.get("at") if held else 0
        found[arm.name] = at if isinstance(at, int) else 0
    return found


def keep_arms(home: Path, plan: ReplayPlan, seen: Sequence[ArmObservation]) -> None:
    """Keep arms that were run elsewhere as if they had been run here."""
    for arm, one in zip(plan.arms, seen, strict=True):
        checkpoint = Checkpoint(home / FOLDER / plan.name, arm.name, plan.identity(arm))
        if not checkpoint.done:
            at = len(one.ticks) + sum(one.skipped.values())
            state = {"at": at, "halts": one.halts, "halted_on": "", "skipped": dict(one.skipped)}
            checkpoint.keep(one, state)


def made_of(home: Path, name: str) -> ReplayPlan:
    """Return the plan of a replay that was run; raises ConfigError when there is none."""
    path = home / FOLDER / name / MADE_OF
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return _plan(name, told, path)
    except FileNotFoundError as error:
        held = sorted(item.parent.name for item in (home / FOLDER).glob(f"*/{MADE_OF}"))
        known = ", ".join(held) or "none yet: run torra replay"
        raise ConfigError(f"there is no replay {name} in {home}; there are {known}") from error
    except BROKEN as error:
        raise ConfigError(
            f"{path} is damaged ({type(error).__name__}: {error}): remove its folder and run the "
            "replay again"
        ) from error


def _plan(name: str, told: Any, path: Path) -> ReplayPlan:
    return ReplayPlan(
        name,
        parcels.history_of(told["history"]),
        validate(Profile, told["profile"], str(path)),
        tuple(arms.ARMS[each] for each in told["arms"]),
        TradingCosts(**told["costs"]),
        parse(told["begin"]) if told["begin"] else None,
        parse(told["end"]) if told["end"] else None,
        told["seed"],
        PointInTimeData.of(told.get("outlook", {})),
    )


def seen_of(home: Path, plan: ReplayPlan, arm: str) -> ArmObservation:
    """Return a recorded arm of a replay, "" that of its largest desk.

    Raises ConfigError when it was not run to its end.
    """
    found = {each.name: each for each in plan.arms}
    desks = [name for name in MODES if name in found]
    arm = arm or (desks[-1] if desks else "")
    if arm not in found:
        raise ConfigError(f"the replay {plan.name} has no arm {arm}; it has {', '.join(found)}")
    return finished(plan, arm, home / FOLDER / plan.name)
