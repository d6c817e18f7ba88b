"""One decision in a process of its own: `python -m benchmarks.one_decision HOME`, told as JSON.

The home's desk asks a vendor whose address is in the environment. Told are the seconds until the
desk is built, until its vendor's SDK is imported and its client stands, and the peak memory after
one debated tick. Nothing but the product is imported.
"""

from __future__ import annotations

import time

BEGIN = time.perf_counter()

import json  # noqa: E402 - what comes after the begin is what is measured
import re  # noqa: E402
import sys  # noqa: E402
from datetime import datetime, timedelta  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, Final  # noqa: E402

from torra.imports import importing, settle  # noqa: E402

with importing():  # as `torra run` does
    from torra.clock import Simulated
    from torra.desk import wiring
    from torra.one_heap import limit_malloc_arenas

CLOSE: Final = datetime.fromisoformat("2021-11-10T11:00:00+00:00")
VENDOR: Final = "anthropic"
PATIENCE: Final = 60.0


def peak_mb() -> float:
    """Return the most memory that this process has held.

    Linux tells it by memory map; getrusage would tell the parent's where that was larger.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def main() -> None:
    """Build, decide once, tell."""
    limit_malloc_arenas()  # as `torra run` does
    desk, _ = wiring.open_desk(Path(sys.argv[1]))
    built = time.perf_counter() - BEGIN
    (setup,) = desk.setups.values()
    clients: Any = setup.provider._clients  # type: ignore[attr-defined]  # noqa: SLF001
    clients._adapters[VENDOR].result(PATIENCE)  # noqa: SLF001 - nobody else waits for it
    ready = time.perf_counter() - BEGIN
    name = setup.instance.id
    desk.clock = Simulated(CLOSE - timedelta(seconds=1))
    desk.active = True
    desk.wake(name)  # nothing is due: from here on it knows where it stands
    settle()  # as `torra run` does, too
    desk.clock.set(CLOSE)
    desk.wake(name)
    record = desk.database.latest_tick(name, setup.instance.shortest)
    told = {
        "construct_s": built,
        "ready_s": ready,
        "peak_mb": peak_mb(),
        "calls": len(record["calls"]) if record else 0,
        "source": record["source_type"] if record else "",
    }
    desk.close()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
