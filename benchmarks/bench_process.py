"""What a process costs that makes one decision: import, construction and peak memory.

The home is there already: making a database, and Python's own byte code, is done once in a life.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.bench_debate import vendor
from benchmarks.rows import Part, Row, at_most, ready
from torra.config import ROOT

DESK: Final = {"instances": [{"symbol": "EURUSD", "timeframes": ["H1"], "profile": "asked"}]}
PROFILE: Final = {"agents": {"provider": "anthropic", "max_api_cost_per_hour": 1e6}}
CALLS: Final = 4


def measure(trial: bool) -> dict[str, float]:
    """Return seconds to import and construct, and the peak memory in MB of one decision."""
    del trial
    with tempfile.TemporaryDirectory() as folder, vendor(0.0) as where:
        home = Path(folder)
        (home / "profiles").mkdir()
        (home / "desk.json").write_text(json.dumps(DESK), encoding="utf-8")
        (home / "profiles" / "asked.json").write_text(json.dumps(PROFILE), encoding="utf-8")
        one_decision(home, where)  # makes the database and the byte code
        found = one_decision(home, where)
    return {name: found[name] for name in ("construct_s", "ready_s", "peak_mb")}


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
        Row("construct_s", "of it until the desk stands", "{:.2f} s"),
        Row("peak_mb", "peak RSS after one decision", "{:.0f} MB", at_most(140)),
    ),
    "From the first line of a new process to a desk whose vendor can be asked. The SDK is imported "
    "in a thread of its own while the desk already stands; a tick that comes earlier waits for it "
    "inside its own time limit. Starting the interpreter is not counted.",
)

if __name__ == "__main__":
    print(measure(trial=True))
