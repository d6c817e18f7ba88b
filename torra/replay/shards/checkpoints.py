"""Keeps the progress of a replay on disk: an interruption costs one chunk of ticks at most.

Each arm has two files in the folder of its replay. NAME.ticks.gz has one JSON document a line,
ticks and trades in the order in which they happened, written in whole chunks. NAME.state.json says
up to which byte those lines count, how many they are, and the state of the arm there. The state is
moved into place after its chunk is on disk; on opening, whatever was written after the last state
is cut off. So an arm that goes on continues exactly at its last state, and ends as if it had never
stopped.

Files of another replay (other bars, profile, arm or version), damaged files and a disk that cannot
be written raise ConfigError with the remedy: nothing is mixed, nothing read in part.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from torra.errors import ConfigError
from torra.evaluation.observations import (
    ArmObservation,
    Interner,
    TickObservation,
    TradeObservation,
    as_json,
    tick_of,
    trade_of,
)
from torra.whole_files import write_whole

STATE: Final = ".state.json"
LINES: Final = ".ticks.gz"

CHUNK: Final = 1000
"""Ticks between two checkpoints: some seconds of work."""

PASSING: Final = ("program", "words")
"""Parts of an identity that matter for going on, not for reading what there is."""

BROKEN: Final = (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError)
"""Exceptions that reading a damaged file raises."""

Lines = tuple[list[TickObservation], list[TradeObservation]]


class StateContents(BaseModel):
    """The contents of a state file; `length` in bytes, `ticks` and `trades` count its lines."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    identity: dict[str, Any]
    length: NonNegativeInt
    ticks: NonNegativeInt
    trades: NonNegativeInt
    done: bool
    state: dict[str, Any]


class Checkpoint:
    """The files of one arm of one replay."""

    def __init__(self, folder: Path, arm: str, identity: Mapping[str, Any]) -> None:
        """Open the files; raises ConfigError when they are damaged or those of another replay."""
        self._lines = folder / f"{arm}{LINES}"
        self._state = folder / f"{arm}{STATE}"
        # As it will be read back: tuples become lists.
        self._identity = json.loads(json.dumps(identity, sort_keys=True))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._held = self._opened()
        except OSError as error:
            raise unwritable(folder, error) from error

    @property
    def state(self) -> Mapping[str, Any] | None:
        """The state that `save` was given last; None for an arm that has not begun."""
        return None if self._held is None else self._held.state

    @property
    def done(self) -> bool:
        """Whether the arm was run to its end."""
        return self._held is not None and self._held.done

    def save(
        self,
        ticks: Sequence[TickObservation],
        trades: Sequence[TradeObservation],
        state: Mapping[str, Any],
        *,
        done: bool = False,
    ) -> None:
        """Append a chunk, then say that it counts; both are on disk on return."""
        self._say(self._append(ticks, trades), len(ticks), len(trades), state, done=done)

    def keep(self, seen: ArmObservation, state: Mapping[str, Any]) -> None:
        """Keep an arm that was run to its end elsewhere, in place of what there was."""
        try:
            # The state first: lines without a state count for nothing, a state without lines is
            # damage.
            self._state.unlink(missing_ok=True)
            self._lines.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(self._lines, error) from error
        self._held = None
        for at in range(0, len(seen.ticks), CHUNK):
            self._append(seen.ticks[at : at + CHUNK], ())
        length = self._append((), seen.trades)
        self._say(length, len(seen.ticks), len(seen.trades), state, done=True)

    def lines(self, shared: Interner | None = None) -> Lines:
        """Return every tick and every trade that counts, in the order in which they were saved."""
        if self._held is None:
            return [], []
        return _whole(self._lines, self._state, self._held, shared or Interner(), lambda: False)

    def damaged(self, why: str) -> ConfigError:
        """Return the error for a state that makes no sense."""
        return damaged(self._state, self._state, why)

    def _append(self, ticks: Sequence[TickObservation], trades: Sequence[TradeObservation]) -> int:
        """Write a chunk and return where it ends."""
        rows = [{"tick": as_json(tick)} for tick in ticks]
        rows += [{"trade": as_json(trade)} for trade in trades]
        text = "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows)
        try:
            with self._lines.open("ab") as file:
                # A gzip member of its own for each chunk, so that a cut at a border leaves a whole
                # file.
                file.write(gzip.compress(text.encode(), compresslevel=3, mtime=0))
                file.flush()
                # Before the state is written: it must never promise lines that a power cut takes
                # back.
                os.fsync(file.fileno())
                return file.tell()
        except OSError as error:
            raise unwritable(self._lines, error) from error

    def _say(
        self, length: int, ticks: int, trades: int, state: Mapping[str, Any], *, done: bool
    ) -> None:
        before = self._held
        self._held = StateContents(
            identity=self._identity,
            length=length,
            ticks=ticks + (before.ticks if before else 0),
            trades=trades + (before.trades if before else 0),
            done=done,
            state=dict(state),
        )
        move_into_place(self._state, json.dumps(self._held.model_dump(), sort_keys=True))

    def _opened(self) -> StateContents | None:
        """Return the contents of the state file, and cut the lines to what counts."""
        held = _read_state(self._state)
        if held is None:
            # Lines without a state were never confirmed.
            self._lines.unlink(missing_ok=True)
            return None
        if held.identity != self._identity:
            raise foreign(self._state)
        if not self._lines.exists() or self._lines.stat().st_size < held.length:
            raise damaged(self._lines, self._state, "its end is missing")
        # What was written after the last state is run, and written, again.
        with self._lines.open("r+b") as file:
            file.truncate(held.length)
        return held


def read_arm(
    folder: Path,
    arm: str,
    identity: Mapping[str, Any],
    shared: Interner | None = None,
    ended: Callable[[], bool] = lambda: False,
) -> tuple[Lines, Mapping[str, Any]]:
    """Return the ticks and trades of an arm that was run to its end, and its state.

    Whichever program ran it. Nothing is changed, so another process may be at work in the folder.
    Raises ConfigError for an arm that was not run to its end, is damaged or another replay's,
    CancelledError once `ended` says that nobody wants it any more.
    """
    lines, state = folder / f"{arm}{LINES}", folder / f"{arm}{STATE}"
    held = _read_state(state)
    if held is None or not held.done:
        raise ConfigError(
            f"the arm {arm} of {folder.name} was not run to its end: torra replay goes on"
        )
    if _lasting(held.identity) != _lasting(json.loads(json.dumps(identity))):
        raise foreign(state)
    return _whole(lines, state, held, shared or Interner(), ended), held.state


def state_of(folder: Path, arm: str) -> StateContents | None:
    """Return how far an arm was run, whichever program ran it; None where none has."""
    return _read_state(folder / f"{arm}{STATE}")


def forget(folder: Path, arm: str) -> None:
    """Remove the files of an arm; raises ConfigError where they cannot be."""
    for path in (folder / f"{arm}{STATE}", folder / f"{arm}{LINES}"):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error


def _lasting(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in identity.items() if name not in PASSING}


def _read_state(path: Path) -> StateContents | None:
    try:
        return StateContents.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise damaged(path, path, why) from error


def _whole(
    lines: Path, state: Path, held: StateContents, shared: Interner, ended: Callable[[], bool]
) -> Lines:
    """Return the lines that count; ConfigError where they are not what was written."""
    try:
        found = _sorted(_rows(lines, held.length), shared, ended)
    except BROKEN as error:
        why = str(error).partition("\n")[0]
        raise damaged(lines, state, f"{type(error).__name__}: {why}") from error
    if (len(found[0]), len(found[1])) != (held.ticks, held.trades):
        raise damaged(lines, state, "ticks or trades are missing")
    return found


def _rows(path: Path, length: int) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        packed = file.read(length)
    if len(packed) < length:
        raise EOFError("its end is missing")
    with gzip.open(io.BytesIO(packed), "rt", encoding="utf-8") as rows:
        for line in rows:
            yield json.loads(line)


def _sorted(rows: Iterator[dict[str, Any]], shared: Interner, ended: Callable[[], bool]) -> Lines:
    ticks: list[TickObservation] = []
    trades: list[TradeObservation] = []
    for row in rows:
        if ended():
            raise CancelledError
        if "tick" in row:
            ticks.append(shared.tick(tick_of(row["tick"])))
        else:
            trades.append(trade_of(row["trade"]))
    return ticks, trades


# --- on disk --------------------------------------------------------------------------------------


def move_into_place(path: Path, text: str) -> None:
    """Write a file whole or not at all; raises ConfigError where it cannot be."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> ConfigError:
    """Return the error for a place where a replay cannot be kept."""
    return ConfigError(
        f"{path} cannot be written: {error.strerror or error}; make room for it, or name another "
        "home with --home"
    )


def foreign(path: Path) -> ConfigError:
    """Return the error for a file that belongs to another replay."""
    return ConfigError(
        f"{path} belongs to a replay of other bars, settings or another version; "
        "give this one another --name, or remove the folder"
    )


def damaged(path: Path, state: Path, why: str) -> ConfigError:
    """Return the error for a file that is not what was written."""
    return ConfigError(f"{path} is damaged ({why}): remove {state} to have that arm run again")
