"""What a tick of a firm and of a swarm takes at 1.0 s a call, beside a full desk's.

    python -m benchmarks.mode_ticks [TICKS]

Ticks run alone, against a local server that speaks the vendor's protocol. Targets: firm 3.15 s,
with rebuttals 4.20 s, the trader 1.05 s more; swarm of seven seats 3.15 s, 2.10 s where the gate is
not asked (docs/agents.md). No part of `make bench`.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.bench_debate import CALL_SECONDS, one_desk
from torra.evidence.outside_readings import OutsideView

FIRM: Final[Mapping[str, Any]] = {"mode": "firm", "influence": "full", "second_look": "never"}

BESIDE: Final = OutsideView({"macro.vix_rank": 50.0, "flow.ticks": 900.0})
"""Numbers for the two experts that have nothing to read in bars alone."""


def beside(*_moment: Any) -> OutsideView:
    """Return the numbers from beside the chart."""
    return BESIDE


SWARM: Final[Mapping[str, Any]] = {"mode": "swarm", "influence": "full", "beside": beside}
DESKS: Final[Mapping[str, Mapping[str, Any]]] = {
    "full desk": {"calls": 8, "mode": "full"},
    "firm": {**FIRM, "calls": 7, "rebuttal": "never", "opens": False},
    "firm with rebuttals": {**FIRM, "calls": 9, "rebuttal": "always", "opens": False},
    "firm with its trader": {**FIRM, "calls": 8, "rebuttal": "never", "opens": True},
    "swarm": {**SWARM, "calls": 7, "opens": False},
    "swarm, nothing can open": {**SWARM, "calls": 6, "gate_call": "openings", "far": True},
}
"""A firm's fundamental analyst has no numbers of the euro's, and is not asked."""


def main() -> None:
    """Print the medians."""
    ticks = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, how in DESKS.items():
        spent = one_desk(CALL_SECONDS, ticks, include_news=True, **how)
        wall, cpu = (statistics.median(found) for found in zip(*spent, strict=True))
        print(f"{name}: {wall:.2f} s, CPU {1e3 * cpu:.0f} ms")


if __name__ == "__main__":
    main()
