"""What a process costs that makes one decision: import, construction, peak memory; a trial tick.

The home is there already: making a database, and Python's own byte code, is done once in a life.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.bench_debate import vendor
from benchmarks.rows import Part, Row, at_most, ready
from torra.config import ROOT

DESK: Final = {"instances": [{"symbol": "EURUSD", "timeframes": ["H1"], "profile": "asked"}]}
PROFILE: Final = {"agents": {"provider": "anthropic", "max_api_cost_per_hour": 1e6}}
CALLS: Final = 4
TRIAL: Final = ("tick", "EURUSD", "H1", "--as-of", "2021-11-10T11:00:00Z", "--json")
CALL_SECONDS: Final = 1.0


def measure(trial: bool) -> dict[str, float]:
    """Return seconds to import and construct, and the peak memory in MB of one decision."""
    del trial
    with (
        tempfile.TemporaryDirectory() as folder,
        vendor(0.0) as where,
        vendor(CALL_SECONDS) as slow,
    ):
        home = Path(folder)
        (home / "profiles").mkdir()
        (home / "desk.json").write_text(json.dumps(DESK), encoding="utf-8")
        (home / "profiles" / "asked.json").write_text(json.dumps(PROFILE), encoding="utf-8")
        one_decision(home, where)  # makes the database and the byte code
        found = one_decision(home, where)
        trial_tick(home, where)
        tick = trial_tick(home, slow)
    return {**{name: found[name] for name in ("construct_s", "ready_s", "peak_mb")}, **tick}


def trial_tick(home: Path, where: dict[str, str]) -> dict[str, float]:
    """Return what `torra tick` takes as a whole process, and by its own clock; as one_decision."""
    command = [sys.executable, "-m", "torra.commands.command_line", "--home", str(home), *TRIAL]
    begin = time.perf_counter()
    said = subprocess.check_output(command, cwd=ROOT, env={**os.environ, **where}, text=True)
    taken = time.perf_counter() - begin
    found: dict[str, Any] = json.loads(said)
    if found["calls"] != CALLS:
        raise RuntimeError(f"no debate: {found}")
    return {"tick_s": taken, "tick_own_s": found["elapsed_ms"] / 1000}


def one_decision(home: Path, where: dict[str, str]) -> dict[str, Any]:
    """Return what a process tells that decided once; raises RuntimeError when nobody debated."""
    command = [sys.executable, "-m", "benchmarks.one_decision", str(home)]
    said = subprocess.check_output(command, cwd=ROOT, env={**os.environ, **where}, text=True)
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    if found["calls"] != CALLS:
        raise RuntimeError(f"no debate: {found}")
    return found


PART: Final = Part(
    "process",
    "A process that decides once",
    ready(measure),
    (
        Row("ready_s", "import and construct, the vendor's SDK with it", "{:.2f} s", at_most(0.60)),
        Row("construct_s", "of it until the desk stands", "{:.2f} s", at_most(0.80)),
        Row("peak_mb", "peak RSS after one decision", "{:.0f} MB", at_most(140)),
        Row("tick_own_s", "`torra tick`, 1.0 s a call, by its own clock", "{:.2f} s", at_most(3.4)),
        Row("tick_s", "... as a whole process", "{:.2f} s"),
    ),
    "From the first line of a new process to a desk whose vendor can be asked. The SDK is imported "
    "in a thread of its own while the desk already stands; a tick that comes earlier waits for it "
    "inside its own time limit. Starting the interpreter is not counted. `torra tick` awaits the "
    "SDK before its tick is due; as a whole process it has all of this and three calls in a row.",
)

if __name__ == "__main__":
    print(measure(trial=True))
