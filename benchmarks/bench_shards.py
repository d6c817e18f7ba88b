"""What a second process brings: the arms of a replay as jobs on one process and on two.

And how long the default replay of the shipped sample takes on two, its report included.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.rows import Part, Row, at_least, at_most, ready
from torra.clock import parse
from torra.commands.replay import USUAL_ARMS
from torra.config import ROOT, Profile
from torra.replay import arms
from torra.replay.recomposing import quiet
from torra.replay.replaying import ReplayPlan, TradingCosts, run_job, spec_of
from torra.replay.reporting import ReplayRequest, replayed
from torra.replay.shards import executors, shards
from torra.replay.shards.history import cut, load
from torra.replay.shards.shards import Job

PARTS, TRIAL_PARTS = 6, 2
"""Jobs of equal size: each is the whole desk over the same ticks."""

FILES: Final = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
BEGIN, END = parse("2021-11-20"), parse("2021-11-27")


def measure(trial: bool) -> dict[str, float]:
    """Return seconds with one process and with two, and how much faster two are.

    And the seconds of the default replay on two, with the memory of its largest process in MB.
    """
    parts = TRIAL_PARTS if trial else PARTS
    one = _seconds(1, parts)
    two = _seconds(2, parts)
    default = _default(trial)
    # of every process that this one has started and seen end: kB on Linux
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    ratio = {"one_s": one, "two_s": two, "ratio": one / two}
    return {**ratio, "default_s": default, "largest_mb": largest}


def _default(trial: bool) -> float:
    """Return how long `torra replay BTCUSD` over the whole sample takes on two processes."""
    end = "2021-10-10" if trial else None
    asked = ReplayRequest(bars=FILES, wanted=USUAL_ARMS, end=end, workers=2)
    with tempfile.TemporaryDirectory() as home:
        begin = time.perf_counter()
        replayed(Path(home), "BTCUSD", asked, say=lambda _: None, progress=quiet)
        return time.perf_counter() - begin


def _seconds(workers: int, parts: int) -> float:
    jobs = [Job(f"part {number}", _spec(number)) for number in range(parts)]
    with executors.processes(workers) as executor:
        warm = [Job(f"warm {number}", _spec(-1 - number, short=True)) for number in range(workers)]
        shards.run_all(warm, run_job, executor)  # processes have begun and imported
        begin = time.perf_counter()
        shards.run_all(jobs, run_job, executor)
        return time.perf_counter() - begin


def _spec(number: int, *, short: bool = False) -> dict[str, object]:
    history = cut(load(Path(), "BTCUSD", FILES), None, END)
    begin = parse("2021-11-26T22:00Z") if short else BEGIN
    found = arms.chosen(["full"])
    costs = TradingCosts(15.0, 0.0, 0.0)
    plan = ReplayPlan(f"part {number}", history, Profile(), found, costs, begin, END, number)
    return {**spec_of(plan, found[-1], {}), "part": number}


PART: Final = Part(
    "shards",
    "Replays on two processes",
    ready(measure),
    (
        Row("ratio", "replay on two processes, times one", "{:.2f}", at_least(1.7)),
        Row("default_s", "default replay of the sample on two processes", "{:.0f} s", at_most(45)),
        Row("largest_mb", "the largest process of all these", "{:.0f} MB"),
    ),
    "Six jobs of equal size, each the full desk with rules over the same week; elapsed time. The "
    "default replay has the arms l1, budget, full and three placebos, in a fresh home; its report "
    "is made too. How Python was built counts. Measured in turn on 2026-11-28: a 3.11.7 that pyenv "
    "built by default, without profile-guided optimisation, took 67 s for the default replay, and "
    "Debian's own 3.11.2, which has it, took 57 s. A second of CPU had 16 to 27 % more ticks of L1 "
    "there, 14 to 20 % more of the budget desk and 12 to 24 % more of the full one.",
)

if __name__ == "__main__":
    print(measure(trial=True))
