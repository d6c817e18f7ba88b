"""Work for the tests of shards: deterministic, quick, and with every way of going wrong.

Each attempt leaves a file, so that a test can count who ran how often and where. It needs numpy and
nothing slower: each process of a test imports it.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from torra.clock import token
from torra.errors import ConfigError, DataUnavailable
from torra.replay.shards.executors import note


def walk_figures(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The figures of a random walk: floats whose every bit must come back."""
    _attempt(spec)
    note(spec["seed"], 7)
    steps = np.random.default_rng(spec["seed"]).normal(size=spec.get("steps", 500))
    path = np.cumsum(steps)
    time.sleep(spec.get("seconds", 0.0))
    return {
        "seed": spec["seed"],
        "end": float(path[-1]),
        "deepest": float((path - np.maximum.accumulate(path)).min()),
        "quantiles": np.quantile(path, [0.1, 0.5, 0.9]).tolist(),
        "none": None,
    }


def kills_once(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """As walk_figures; the first attempt of a job marked so kills its process."""
    before = attempts(spec["folder"])[spec["seed"]]
    if spec.get("kill") and not before:
        _attempt(spec)
        time.sleep(spec.get("seconds", 0.0))
        os.kill(os.getpid(), signal.SIGKILL)
    return walk_figures(spec)


def kills_always(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Kills every process that it is given to, if the job is marked so."""
    if spec.get("kill"):
        _attempt(spec)
        os.kill(os.getpid(), signal.SIGKILL)
    return walk_figures(spec)


def raises(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raises what the spec names."""
    kinds = {
        "ValueError": ValueError("a bad figure"),
        "ConnectionError": ConnectionError("the work's own"),
        "ConfigError": ConfigError("mend this"),
        "DataUnavailable": DataUnavailable("too_short", "two bars"),
    }
    if spec.get("error"):
        _attempt(spec)
        raise kinds[spec["error"]]
    return walk_figures(spec)


def threads(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Tell how many threads the libraries of this process may start, and who it is."""
    return {"omp": os.environ.get("OMP_NUM_THREADS"), "pid": os.getpid(), "of": spec["seed"]}


def not_a_number(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"value": float("nan") * spec["seed"]}


def attempts(folder: str | Path) -> Counter[int]:
    """Return how often each seed was begun."""
    return Counter(int(path.name.split("-")[0]) for path in Path(folder).glob("*-*.try"))


def running(folder: str | Path) -> dict[int, int]:
    """Return the process of each seed's newest attempt that was seen."""
    return {
        int(path.name.split("-")[0]): int(path.name.split("-")[1])
        for path in Path(folder).glob("*-*.try")
    }


def _attempt(spec: Mapping[str, Any]) -> None:
    if "folder" in spec:
        name = f"{spec['seed']}-{os.getpid()}-{token(4)}.try"
        (Path(spec["folder"]) / name).touch()
