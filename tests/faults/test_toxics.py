"""A tick ends on time whatever the network does: ten toxics, hundreds of ticks of each (L3).

The toxics are those of Toxiproxy and the answers of an overloaded vendor, played by the loopback
server to the real SDKs of three vendors in turn, at every call of the tick. A tick that the others
beside it held up, so that it was late or never came to ask, is run again alone: what the toxic does
it does there too.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from agents.debate import debate as agent_stages
from tests.doubles import vendor_line
from tests.doubles.vendor_server import (
    HONEST,
    VENDORS,
    Drip,
    Hang,
    Late,
    Reset,
    SlowClose,
    Status,
    Truncated,
    VendorServer,
)
from tests.worlds import vendor_desk
from torra.providers.registry import open_provider

OVER: Final = 0.5
"""Seconds that a tick may end after its deadline."""
HELD: Final = math.inf
"""Of a tick that did not come to ask."""
AT_ONCE: Final = 4
"""Ticks side by side: more of them and it is the test that makes them late."""
ALONE: Final = 3
"""Tries of one that was held up, alone: a machine that stands still meets one of them."""


@dataclass(frozen=True)
class Toxic:
    """What is played at every call; `sources` are what may stand behind the row, `seconds` the
    deadline: short where nothing but the deadline ends a tick.
    """

    entry: Any
    sources: frozenset[str] = frozenset(("L1_ONLY",))
    seconds: float = 1.2


ANY: Final = frozenset(("AGENT_BUDGET", "AGENT_PARTIAL", "LEGACY", "L1_ONLY"))
TOXICS: Final = {
    "latency": Toxic(Late(0.25, HONEST), ANY, 1.0),
    "slicer": Toxic(Drip(), seconds=0.5),
    "timeout": Toxic(Hang(), seconds=0.5),
    "reset": Toxic(Reset()),
    "limit_data": Toxic(Truncated()),
    "slow_close": Toxic(SlowClose(), seconds=0.5),
    "429": Toxic(Status(429)),
    "500": Toxic(Status(500)),
    "529": Toxic(Status(529)),
    "tls_error": Toxic(HONEST),
}


BY_DAY: Final = ("latency", "slow_close", "tls_error")
"""The others are among the faults of tests/providers/test_vendor_faults.py, half of them by day."""
CASES: Final = [
    pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly) for name in TOXICS
]


class Booth(NamedTuple):
    """A server and a line to it; `secure` asks it for TLS, which it does not speak."""

    server: VendorServer
    line: vendor_line.Line


class Booths:
    """Booths of each vendor, one for each tick that runs."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._free: dict[tuple[str, bool], list[Booth]] = {}
        self._lock = threading.Lock()

    def take(self, vendor: str, *, secure: bool) -> Booth:
        with self._lock:
            free = self._free.setdefault((vendor, secure), [])
            return free.pop() if free else self._open(vendor, secure=secure)

    def give_back(self, vendor: str, booth: Booth, *, secure: bool) -> None:
        booth.line.clients.block(vendor, "", 0.0)
        with self._lock:
            self._free[vendor, secure].append(booth)

    def close(self) -> None:
        self._opened.close()

    def _open(self, vendor: str, *, secure: bool) -> Booth:
        server = self._opened.enter_context(VendorServer())
        where = vendor_line.environment(server)
        if secure:
            where = {name: text.replace("http:", "https:") for name, text in where.items()}
        line = vendor_line.Line(where, vendor_line.agents(vendor))
        return Booth(server, self._opened.enter_context(line))


@pytest.fixture(scope="module")
def booths() -> Iterator[Booths]:
    opened = Booths()
    vendor_desk.history()
    for vendor in VENDORS:  # the SDKs are imported once, outside any tick
        opened.give_back(vendor, opened.take(vendor, secure=False), secure=False)
    yield opened
    opened.close()


def ticked(booths: Booths, toxic: Toxic, vendor: str, folder: Path) -> float:
    """Run a tick and check it; return its seconds over the deadline, HELD if it asked nobody."""
    secure = toxic is TOXICS["tls_error"]
    booth = booths.take(vendor, secure=secure)
    try:
        booth.server.play({"*": toxic.entry})
        settings = vendor_line.agents(vendor, timeout_seconds=toxic.seconds)
        provider = open_provider(settings, booth.line.clients)
        found = vendor_desk.tick(folder, provider, settings)
        met = found.calls and (secure or booth.server.exchanges)
        assert not (secure and booth.server.exchanges)
    finally:
        booths.give_back(vendor, booth, secure=secure)
    vendor_desk.check_stored(found)
    assert found.row["source_type"] in toxic.sources
    return found.elapsed - toxic.seconds if met else HELD


@pytest.mark.parametrize("name", CASES)
def test_no_toxic_holds_a_tick(
    name: str, booths: Booths, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    toxic, count, tries = TOXICS[name], scaled(500), itertools.count()
    before = agent_stages.abandoned()

    def run(number: int) -> float:
        vendor = VENDORS[number % len(VENDORS)]
        return ticked(booths, toxic, vendor, tmp_path / f"{number}-{next(tries)}")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        late = list(pool.map(run, range(count)))
    held = [number for number, over in enumerate(late) if over > OVER]
    for number in held:
        late[number] = next((over for _ in range(ALONE) if (over := run(number)) <= OVER), HELD)
    assert max(late) <= OVER, sorted(late)[-5:]
    drained_by = time.monotonic() + 60
    while agent_stages.abandoned() > before and time.monotonic() < drained_by:
        time.sleep(0.05)
    assert agent_stages.abandoned() <= before
    most = f"slowest {max(late):+.2f} s" if max(late) > -1 else "none near its deadline"
    again = f", {len(held)} of them run once more alone" if held else ""
    record_property("seen", f"{name}: {count:,} ticks, {most}{again}")
