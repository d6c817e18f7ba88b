"""What a replay has done so far, on disk, so that an interruption costs a chunk of ticks at most.

Each arm has two files in the folder of its replay: NAME.ticks.gz, one JSON document a line, ticks
and trades in the order in which they happened, written in whole chunks; and NAME.state.json, which
says up to which byte those lines count, and how the arm's store stood there. The state is moved
into place after its chunk is on disk; on opening, what was written after the last state is cut off.
So an arm that is taken up again goes on exactly where its last state stood, and ends as if it had
never stopped. A folder that belongs to another replay (other bars, profile, arm or version) is
refused with a ConfigError, never mixed.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from torra.errors import ConfigError
from torra.evaluation.observations import TickSeen, TradeSeen, as_json, tick_of, trade_of

STATE: Final = ".state.json"
LINES: Final = ".ticks.gz"


class Checkpoint:
    """The files of one arm of one replay."""

    def __init__(self, folder: Path, arm: str, identity: Mapping[str, Any]) -> None:
        """Open the files; raises ConfigError when they are those of another replay."""
        self._lines = folder / f"{arm}{LINES}"
        self._state = folder / f"{arm}{STATE}"
        self._identity = json.loads(json.dumps(identity, sort_keys=True))
        folder.mkdir(parents=True, exist_ok=True)
        self._held = self._opened()

    @property
    def state(self) -> Mapping[str, Any] | None:
        """What `save` was given last; None for an arm that has not begun."""
        return None if self._held is None else self._held["state"]

    def save(
        self, ticks: Sequence[TickSeen], trades: Sequence[TradeSeen], state: Mapping[str, Any]
    ) -> None:
        """Append a chunk, then say that it counts; both are on disk on return."""
        rows = [{"tick": as_json(tick)} for tick in ticks]
        rows += [{"trade": as_json(trade)} for trade in trades]
        text = "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows)
        with self._lines.open("ab") as file:
            file.write(gzip.compress(text.encode(), compresslevel=3, mtime=0))
            file.flush()
            os.fsync(file.fileno())
            length = file.tell()
        self._held = {"identity": self._identity, "length": length, "state": dict(state)}
        move_into_place(self._state, json.dumps(self._held, sort_keys=True))

    def lines(self) -> tuple[list[TickSeen], list[TradeSeen]]:
        """Return every tick and every trade that counts, in the order in which they were saved."""
        return ([], []) if self._held is None else _sorted(_rows(self._lines))

    def _opened(self) -> dict[str, Any] | None:
        """Return what the state file says, the lines cut to what counts."""
        try:
            held = json.loads(self._state.read_text(encoding="utf-8"))
        except FileNotFoundError:
            self._lines.unlink(missing_ok=True)
            return None
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read {self._state}: {error}; remove its folder") from error
        if not isinstance(held, dict) or held.get("identity") != self._identity:
            raise ConfigError(
                f"{self._state} belongs to a replay of other bars, settings or another version; "
                "give this one another --name, or remove the folder"
            )
        with self._lines.open("r+b") as file:
            file.truncate(held["length"])
        return held


def read_lines(folder: Path, arm: str) -> tuple[list[TickSeen], list[TradeSeen]] | None:
    """Return the ticks and trades of an arm in a replay's folder; None when it was not run."""
    path = folder / f"{arm}{LINES}"
    return _sorted(_rows(path)) if path.exists() else None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _sorted(rows: Iterator[dict[str, Any]]) -> tuple[list[TickSeen], list[TradeSeen]]:
    ticks: list[TickSeen] = []
    trades: list[TradeSeen] = []
    for row in rows:
        if "tick" in row:
            ticks.append(tick_of(row["tick"]))
        else:
            trades.append(trade_of(row["trade"]))
    return ticks, trades


def move_into_place(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
