"""How many processors a replay takes: all that this process may use, beside a desk one fewer.

A desk that runs in the same home goes first: beside it a replay leaves one processor to its ticks,
as long as there is another one, and takes the lowest place at all others (the command and the
process of a job see to that, torra.jobs.priority). Whoever names a number of processes gets it.

The arm that takes longest begins first (`Ahead`), so that no processor is left alone at the end.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Final

from torra.desk_lock import is_locked

CGROUP: Final = Path("/sys/fs/cgroup/cpu.max")
"""What a container may use: microseconds of processor time, and of what period, or "max"."""


@dataclass(frozen=True, slots=True)
class Cores:
    """How many processes a replay has, and whether a desk of the same home runs beside it.

    `named`: a person asked for that number.
    """

    workers: int
    beside: bool = False
    named: bool = False

    def says(self) -> str:
        """Return what a person is told of a desk that runs beside a replay; "" without one."""
        if not self.beside:
            return ""
        told = "1 processor" if self.workers == 1 else f"{self.workers} processors"
        return f"a desk runs in this home: the replay takes {told}, at the lowest priority"


@dataclass(frozen=True, slots=True)
class Ahead:
    """The ticks of an arm, and what is left of each arm in seconds of one processor.

    `waits` names the arm after which another one begins. Arms of a vendor have no seconds: its
    answers take as long as they take.
    """

    ticks: int
    seconds: Mapping[str, float]
    waits: Mapping[str, str] = field(default_factory=dict)

    def takes(self, workers: int) -> float:
        """Return the seconds that so many processes need for it."""
        alone = sum(self.seconds.values())
        return max([alone / workers, *map(self._chain, self.seconds)])

    def longest_first(self) -> list[str]:
        """Return the arms in the order in which several processes begin them."""
        return sorted(self.seconds, key=self._chain, reverse=True)

    def _chain(self, name: str) -> float:
        """Return the seconds of an arm and of the longest one that waits for it."""
        after = [took for one, took in self.seconds.items() if self.waits.get(one) == name]
        return self.seconds[name] + max(after, default=0.0)


def cores(home: Path, asked: int | None) -> Cores:
    """Return how many processes work for a home; `asked` is the number that a person named."""
    beside = is_locked(home)
    return Cores(asked or max(1, usable() - beside), beside, asked is not None)


def usable() -> int:
    """Return how many processors this process may use."""
    # Python 3.13 has os.process_cpu_count for this.
    known = getattr(os, "sched_getaffinity", None)
    found = len(known(0)) if known else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        most, period = CGROUP.read_text(encoding="ascii").split()
        found = min(found, ceil(int(most) / int(period)))
    return max(1, found)
