"""One tick that sends, on a disk of which one step fails: what becomes of it, step by step.

    LD_PRELOAD=disk_shim.so python -m tests.faults.failing_disk FOLDER MOST

runs the tick once on a disk that is well and prints its steps, then on disks that fail at one of
them, in processes of their own: at MOST of them, the first step of every kind always among them.
Each prints a line of JSON. What is asserted is promise D6: nothing is there by half, in database or
channel; nothing goes out that the books do not know; a database that could not be written halts the
desk and says so; the process goes on; on a disk that is well again the next tick is stored as ever,
and after a person has resumed the desk trades.
"""

from __future__ import annotations

import ctypes
import errno
import json
import logging
import os
import shutil
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.books import torn
from tests.faults.sending_desk import SendingDesk, prepare
from tests.worlds.scored_once import scored_once

WELL = 0
FAULTS = (("EIO", errno.EIO, False), ("ENOSPC", errno.ENOSPC, True))
"""Name, error number and whether all later steps fail too: a bad sector, a full disk."""

LATER = 2
"""Closes of a trial after the one whose tick meets the fault."""

PASSED, FAILED = 10, 1
"""How a child ends."""

CHECKPOINT_PAGES = 100
"""Pages in the log after which it is copied into the main file: the tick writes half as many more.
"""


class Disk:
    """The shim in this process; without it, constructing one is an AttributeError."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._arm, self._heal = library.torra_disk_arm, library.torra_disk_heal
        self._arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
        self._heal.restype = ctypes.c_long
        self._trace = library.torra_disk_trace
        self._trace.restype = ctypes.c_char_p

    def arm(self, folder: Path, step: int = 0, code: int = 0, *, lasting: bool = False) -> None:
        """Count from now on, and let the step of this number fail; 0 for none."""
        self._arm(os.fsencode(folder.resolve()), step, code, int(lasting))

    def heal(self) -> list[str]:
        """Let everything succeed again; return the steps since `arm`: what it was, and where."""
        self._heal()
        return os.fsdecode(self._trace()).splitlines()


class Trial(NamedTuple):
    """Which step fails, and how."""

    step: int
    name: str
    code: int
    lasting: bool


def ready(home: Path) -> SendingDesk:
    """Return the desk at the close whose tick sends; its log is copied within that tick."""
    desk = SendingDesk(home)
    desk.rows(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    desk.come_to_close()
    return desk


def whole(desk: SendingDesk) -> None:
    """Nothing is there by half, and nothing went out that the books do not know."""
    half = torn(desk.database.connection().conn)
    assert half == [], half
    assert desk.half_files() == []
    known = {sid for (sid,) in desk.rows("SELECT sid FROM signals")}
    assert set(desk.handed_over()) <= known, "an order went out that no book knows"


def meet(disk: Disk, home: Path, trial: Trial) -> dict[str, Any]:
    """Run the tick on a failing disk; return what became of it."""
    desk = ready(home)
    before = desk.done()
    disk.arm(home, trial.step, trial.code, lasting=trial.lasting)
    desk.work()
    reason = desk.switch.engaged()
    steps = disk.heal()
    assert len(steps) >= trial.step - 1, "the step was never reached"
    met = steps[trial.step - 1] if len(steps) >= trial.step else "none"
    whole(desk)
    sent = set(desk.handed_over())
    desk.courier.turn()
    whole(desk)
    if reason:
        halted(desk, reason, sent)
    else:
        assert desk.done() == before + 1, "neither halted nor stored"
        desk.live()
        assert len(desk.handed_over()) == 1, "the order is not sent, and nothing is said"
    goes_on(desk)
    desk.close()
    return {"met": met, "halted": bool(reason), "sent": len(sent)}


def halted(desk: SendingDesk, reason: str, sent: set[str]) -> None:
    """The halt says why, is written down wherever it belongs, and holds."""
    assert reason.startswith("store: ") or "HALT" in reason or reason == "halted", reason
    assert desk.database.trading_state() == "HALTED"
    (told,) = desk.rows("SELECT reason FROM desk_state ORDER BY id DESC LIMIT 1")
    assert told[0].startswith("store: "), told
    assert desk.home.joinpath("control", "HALT").exists()
    assert desk.folder.joinpath("control", "HALT").exists()
    done = desk.done()
    desk.step()
    desk.live()
    assert desk.done() > done, "the next tick is not stored"
    whole(desk)
    assert set(desk.handed_over()) == sent, "only a person resumes"
    desk.switch.resume("a person looked at the disk", sleep=lambda _: None)
    assert desk.switch.engaged() == ""


def goes_on(desk: SendingDesk) -> None:
    """The desk trades on: every close has its row, every order is executed once at most."""
    done = desk.done()
    desk.step()
    desk.live()
    assert desk.done() > done
    assert desk.switch.engaged() == ""
    (open_claims,) = desk.rows("SELECT count(*) FROM ticks WHERE state IN ('claimed', 'released')")
    assert open_claims == (0,), "a tick was lost"
    comments = [deal["comment"] for deal in desk.ea.deals(entry="in")]
    assert len(comments) == len(set(comments)), "an order was executed twice"
    whole(desk)


def in_child(disk: Disk, prepared: Path, folder: Path, trial: Trial) -> dict[str, Any] | None:
    """Meet a fault in a process of its own; None when it failed the trial."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = FAILED
        try:
            shutil.copytree(prepared, folder)
            os.write(writer, json.dumps(meet(disk, folder, trial)).encode())
            code = PASSED
        except BaseException:  # noqa: BLE001 - whatever it is, it is told
            disk.heal()
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    status = os.waitpid(pid, 0)[1]
    told = os.read(reader, 10_000)
    os.close(reader)
    shutil.rmtree(folder, ignore_errors=True)
    alive = os.WIFEXITED(status) and os.WEXITSTATUS(status) == PASSED
    return json.loads(told) if alive else None


def kinds(steps: list[str]) -> list[str]:
    """Return of each step what was done to which sort of file, whatever its name is.

    What the log is told after the order went out is a kind of its own.
    """
    found, sent = [], ""
    for step in steps:
        what, path = step.split(" ", 1)
        place = path if path.startswith("torra.db") else str(Path(path).parent)
        found.append(f"{what} {place}{sent if path.endswith('-wal') else ''}")
        if what == "link":
            sent = " after the order"
    return found


def chosen(steps: list[str], most: int) -> list[Trial]:
    """Return which steps fail how: the first of every kind, then others, evenly.

    The first of a kind fails alone, for then nothing else halts the desk. Of the others two meet
    one fault and two the other: a page of the log is written in two steps.
    """
    first = {kind: number for number, kind in reversed(list(enumerate(kinds(steps), 1)))}
    others = [number for number in range(1, len(steps) + 1) if number not in first.values()]
    stride = -(-len(others) // max(1, most - len(first)))
    spread = others[::stride] if most > len(first) else []
    # A child may copy a page more than the tick on the good disk: its last step is one later then.
    numbers = sorted({*first.values(), len(steps), len(steps) + 1})
    alone = [Trial(number, *FAULTS[0]) for number in numbers]
    return alone + [Trial(number, *FAULTS[(at + 2) // 2 % 2]) for at, number in enumerate(spread)]


def trials(folder: Path, most: int) -> Iterator[dict[str, Any]]:
    """Yield the steps of a tick on a good disk, then what came of each fault."""
    disk, prepared = Disk(), folder / "prepared"
    prepare(prepared)
    shutil.copytree(prepared, folder / "well")
    desk = ready(folder / "well")
    disk.arm(desk.home)
    desk.work()
    steps = disk.heal()
    assert len(desk.handed_over()) == 1, "the tick does not send"
    for _ in range(LATER):  # what is scored here need not be scored in each child
        desk.step()
        desk.live()
    desk.close()
    yield {"steps": steps}
    for number, trial in enumerate(chosen(steps, most)):
        met = in_child(disk, prepared, folder / f"{number}", trial)
        yield {
            "step": trial.step,
            "fault": trial.name,
            **(met or {"broke": steps[min(trial.step, len(steps)) - 1]}),
        }


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with scored_once():
        for line in trials(Path(sys.argv[1]), int(sys.argv[2])):
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
