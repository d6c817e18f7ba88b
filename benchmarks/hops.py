"""How far a reader of one debate has to walk: `python -m benchmarks.hops [--json]`.

One budget tick of four requests to the rules is traced, on a desk that has run some ticks: the
calls of functions of the rooms of a debate (ROOMS) while `agent_framework.deliberate` runs. A
function is a name in a file, comprehensions among them; a hop is a call in another file than the
call before it. The same tick gives the same figures on every machine. No part of `make bench`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest.mock import patch

import agent_framework
from tests.worlds import desks
from torra.config import ROOT

ROOMS: Final = (
    "agents/", "agent_framework.py", "agent_config.py", "scoring_rubric.py", "torra/providers/",
)  # fmt: skip
WARM: Final = 9
"""Closes that are lived through first; the next one is of M15 alone."""

REQUESTS: Final = 4


@dataclass
class Walk:
    """The calls of a debate in their order, each as the file and the name of its function."""

    calls: list[tuple[str, str]] = field(default_factory=list)

    def trace(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the call of a function of the rooms (sys.setprofile)."""
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(f"{ROOT}/"):
            place = path[len(f"{ROOT}/") :]
            if place.startswith(ROOMS):
                self.calls.append((place, frame.f_code.co_qualname))

    def figures(self) -> dict[str, int]:
        """Return how many files, functions, calls and hops there are."""
        files = [place for place, _ in self.calls]
        return {
            "files": len(set(files)),
            "functions": len(set(self.calls)),
            "calls": len(files),
            "hops": sum(before != after for before, after in pairwise(files)),
        }

    def by_file(self) -> dict[str, dict[str, int]]:
        """Return functions, calls, and hops into each file, the most hops first."""
        files = [place for place, _ in self.calls]
        calls = Counter(files)
        functions = Counter(place for place, _ in set(self.calls))
        hops = Counter(after for before, after in pairwise(files) if before != after)
        return {
            place: {"functions": functions[place], "calls": calls[place], "hops": hops[place]}
            for place in sorted(calls, key=lambda place: (-hops[place], place))
        }


def walk() -> Walk:
    """Return the walk of one budget tick."""
    walk, deliberate = Walk(), agent_framework.deliberate

    def traced(*words: Any, **more: Any) -> Any:
        sys.setprofile(walk.trace)
        try:
            return deliberate(*words, **more)
        finally:
            sys.setprofile(None)

    with tempfile.TemporaryDirectory() as folder:
        desk = desks.working_desk(Path(folder))
        desks.step(desk, WARM)
        with patch.object(agent_framework, "deliberate", traced):
            desks.step(desk)
        asked = len(desks.newest(desk)["deliberation"]["calls"])
        desk.database.close()
    if asked != REQUESTS:
        raise RuntimeError(f"{asked} requests were made, not {REQUESTS}")
    return walk


def main(words: Sequence[str]) -> None:
    """Print the figures, as a table or as JSON."""
    made = walk()
    if "--json" in words:
        print(json.dumps({**made.figures(), "by_file": made.by_file()}, indent=1))
        return
    print(f"{'':44}{'functions':>10}{'calls':>8}{'hops':>8}")
    for place, row in made.by_file().items():
        print(f"{place:44}{row['functions']:>10}{row['calls']:>8}{row['hops']:>8}")
    total = made.figures()
    title = f"{total['files']} files"
    print(f"{title:44}{total['functions']:>10}{total['calls']:>8}{total['hops']:>8}")


if __name__ == "__main__":
    main(sys.argv[1:])
