"""The log of trials: every configuration that was ever tried on a symbol, so that luck is counted.

Whoever tries a hundred settings and shows the best one shows luck. Each arm of a replay and each
cell of a sweep is a trial; it is logged before its result is known, one JSON line in
TORRA_HOME/replays/trials.jsonl, and the deflated Sharpe of any later report counts all of them. The
same trial on the same bars counts once. A line that cannot be read counts as a trial of its own: a
broken log never makes a result look better.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from torra.clock import System, iso

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
        path.parent.mkdir(parents=True, exist_ok=True)
        at = iso(System().real_now())
        rows = ({"symbol": symbol, "trial": name, "what": what, "at": at} for name in new)
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    return len(known) + len(new)


def count(home: Path, symbol: str) -> int:
    """Return how many trials of a symbol are logged."""
    return len(set(_logged(home / LOG, symbol)))


def _logged(path: Path, symbol: str) -> Iterable[str]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines()):
        try:
            row = json.loads(line)
            if row["symbol"] == symbol:
                yield str(row["trial"])
        except (ValueError, KeyError, TypeError):
            yield f"line {number}"
