"""How a benchmark asks another program: a process in that program's own environment.

The guests (TA-Lib, backtesting.py, vectorbt) and what they bring, numba among it, would change what
is measured of Torra, and the development environment would grow by half a gigabyte. So they live in
an environment of requirements-bench.txt; arrays go there and back as .npz files.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from torra.config import ROOT

NAME: Final = "TORRA_BENCH_PYTHON"
"""Names the environment's interpreter when it lies elsewhere."""

DEFAULT: Final = ROOT / ".venv-bench" / "bin" / "python"
PATIENCE: Final = 600.0

Arrays = dict[str, NDArray[Any]]


class NoGuests(RuntimeError):
    """The environment of the other programs is not there."""


def python() -> Path:
    """Return the interpreter of the guests; raises NoGuests."""
    found = Path(os.environ.get(NAME) or DEFAULT)
    if not found.exists():
        raise NoGuests(f"there is no {found}: `make bench` makes it")
    return found


def ask(module: str, given: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], Arrays]:
    """Run a module of benchmarks.guests on arrays; return what it printed and its arrays."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(before, **given)  # type: ignore[arg-type]
        command = [str(python()), "-m", f"benchmarks.guests.{module}", str(before), str(after)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        said = subprocess.run(  # its words are worth hearing only when it fails
            command,
            check=False,
            cwd=ROOT,
            env=environment,
            text=True,
            timeout=PATIENCE,
            capture_output=True,
        )
        if said.returncode:
            raise RuntimeError(f"{module} failed: {said.stderr}")
        with np.load(after) as found:
            return json.loads(said.stdout.splitlines()[-1]), {
                name: found[name] for name in found.files
            }
