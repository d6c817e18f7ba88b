"""The log of trials: every configuration that was ever tried on a symbol, so that luck is counted.

Whoever tries a hundred settings and shows the best one shows luck. Each arm of a replay and each
cell of a sweep is a trial. It is logged before its result is known, as one JSON line in
TORRA_HOME/replays/trials.jsonl, and the deflated Sharpe of any later report counts all of them. The
same trial on the same bars counts once. A line that cannot be read counts as a trial of its own: a
broken log never makes a result look better. A log that cannot be opened raises ConfigError.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from torra.clock import System, iso
from torra.errors import ConfigError

LOG: Final = Path("replays") / "trials.jsonl"


def name_of(kind: str, symbol: str, bars: str, settings: Mapping[str, Any]) -> str:
    """Return the name of a trial: what was tried, on which bars; 16 hexadecimal characters."""
    told = json.dumps([kind, symbol, bars, settings], sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def log(home: Path, symbol: str, names: Iterable[str], what: str) -> int:
    """Enter trials, those that are there already once only; return how many the symbol has now."""
    path = home / LOG
    known = set(_logged(path, symbol))
    new = [name for name in dict.fromkeys(names) if name not in known]
    if new:
        at = iso(System().real_now())
        rows = ({"symbol": symbol, "trial": name, "what": what, "at": at} for name in new)
        _append(path, "".join(f"{json.dumps(row)}\n" for row in rows))
    return len(known) + len(new)


def count(home: Path, symbol: str) -> int:
    """Return how many trials of a symbol are logged."""
    return len(set(_logged(home / LOG, symbol)))


def _append(path: Path, text: str) -> None:
    """Add lines; one that was half written before stays a line of its own."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                text = text if file.read(1) == b"\n" else f"\n{text}"
            file.write(text.encode())
            file.flush()
            # On disk before the trial runs, whatever becomes of this process.
            os.fsync(file.fileno())
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror or error}; every trial must be logged "
            "before it runs"
        ) from error


def _logged(path: Path, symbol: str) -> Iterator[str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror or error}; no claim can be made without it"
        ) from error
    for number, line in enumerate(lines):
        try:
            row = json.loads(line)
            if row["symbol"] == symbol:
                yield str(row["trial"])
        except (ValueError, KeyError, TypeError):
            yield f"line {number}"
