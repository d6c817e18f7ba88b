"""What a firm's tick takes at 1.0 s a call, beside a full desk's, and what its trader adds.

    python -m benchmarks.firm_ticks [TICKS]

Ticks run alone, against a local server that speaks the vendor's protocol. Targets: firm 3.15 s,
with rebuttals 4.20 s, the trader 1.05 s more (docs/agents.md). No part of `make bench`.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.bench_debate import CALL_SECONDS, one_desk

FIRM: Final[Mapping[str, Any]] = {"mode": "firm", "influence": "full", "second_look": "never"}
DESKS: Final[Mapping[str, Mapping[str, Any]]] = {
    "full desk": {"calls": 8, "mode": "full"},
    "firm": {**FIRM, "calls": 7, "rebuttal": "never", "opens": False},
    "firm with rebuttals": {**FIRM, "calls": 9, "rebuttal": "always", "opens": False},
    "firm with its trader": {**FIRM, "calls": 8, "rebuttal": "never", "opens": True},
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
