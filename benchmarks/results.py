"""What was measured, kept in benchmarks/results.json: every run of every figure, part by part.

A part that is measured anew takes the place of what was known of it; the others stay. The page and
the pictures are drawn from this file alone, so a figure can never be on the page and not in it.
"""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.rows import Part, Row, Run

FILE: Final = Path(__file__).resolve().parent / "results.json"
RUNS: Final = 5
DIGITS: Final = 6
"""Significant digits of a figure that are kept."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A part's figures, one value for each run; `trial`: too little was run to mean anything."""

    date: str
    machine: str
    trial: bool
    figures: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        """Return the median of a figure over the runs."""
        return statistics.median(self.figures[name])

    def range(self, name: str) -> tuple[float, float]:
        """Return the least and the greatest value of a figure."""
        return min(self.figures[name]), max(self.figures[name])


Results = Mapping[str, Measured]
"""What is known of each part, by its name."""


def measured(part: Part, *, trial: bool) -> Measured:
    """Measure a part: once for a trial, else RUNS times."""
    with part.open(trial) as run:
        runs = [_checked(part, run) for _ in range(1 if trial else RUNS)]
    figures = {name: [_short(one[name]) for one in runs] for name in runs[0]}
    return Measured(f"{datetime.now(UTC):%Y-%m-%d}", machine(), trial, figures)


def _checked(part: Part, run: Run) -> Mapping[str, float]:
    """Return one run's figures; raises KeyError for a row without one."""
    found = run()
    if missing := [row.figure for row in part.rows if row.figure not in found]:
        raise KeyError(f"{part.name} measured no {', '.join(missing)}")
    return found


def _short(value: float) -> float:
    return float(f"{float(value):.{DIGITS}g}")


def machine() -> str:
    """Describe what is measured on."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pandas"))
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, {libraries}"
    )


def read(file: Path = FILE) -> dict[str, Measured]:
    """Return what is kept; nothing where there is no file."""
    if not file.exists():
        return {}
    parts = json.loads(file.read_text(encoding="utf-8"))
    return {name: Measured(**kept) for name, kept in parts.items()}


def text_of(results: Results) -> str:
    """Return results as the file keeps them: parts by name, the runs of a figure on one line."""
    shown: dict[str, Any] = {name: asdict(results[name]) for name in sorted(results)}
    lines = ["{"]
    for number, (name, kept) in enumerate(shown.items()):
        figures = kept.pop("figures")
        head = json.dumps(kept)[1:-1]
        rows = [f"   {json.dumps(key)}: {json.dumps(runs)}" for key, runs in figures.items()]
        comma = "," if number + 1 < len(shown) else ""
        lines += [f' "{name}": {{{head}, "figures": {{', ",\n".join(rows), f" }}}}{comma}"]
    return "\n".join([*lines, "}", ""])


def keep(results: Results, file: Path = FILE) -> None:
    """Write results."""
    file.write_text(text_of(results), encoding="utf-8")


def missed(part: Part, found: Measured) -> list[Row]:
    """Return the rows of a part whose median misses the target."""
    return [row for row in part.rows if row.target and not row.target.met(found.median(row.figure))]
