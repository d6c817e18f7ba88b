"""The files of tests that take longest: a run begins with them, a night has room for some of them.

One worker runs a whole file. One that is begun last keeps its worker, by day for up to half a
minute, at night for a quarter of an hour, when the others have nothing left to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from tests import ROOT

LONGEST: Final = frozenset(
    f"tests/{name}.py"
    for name in (
        "browser/test_browser_answers",
        "browser/test_browser_profiles",
        "browser/test_browser_shell",
        "browser/test_browser_tour",
        "desk/test_shutdown",
        "faults/test_kills",
        "faults/test_whole_desk",
        "house/test_wheel",
        "jobs/test_replay_jobs",
        "overlay/test_hosted_replay",
        "providers/test_vendor_faults",
        "replay/test_changed",
        "replay/test_journal_check",
        "replay/test_lookahead_command",
        "replay/test_memory_arms",
        "replay/test_planted_edges",
    )
)
"""Those of more than about eight seconds by day, their journeys counted."""

RECORD: Final = ROOT / "docs" / "longest.json"
"""What each long file took when a night had all of it, and when: written by the nights."""

SHORT: Final = 10
"""Seconds below which a file is short, and none of the record."""


class Seen(NamedTuple):
    """When a night had a file last, and what it took its worker in seconds."""

    date: str
    seconds: int


def seen() -> dict[str, Seen]:
    """Return what nights saw of the long files."""
    if not RECORD.exists():
        return {}
    told = json.loads(RECORD.read_text(encoding="utf-8"))
    return {file: Seen(**one) for file, one in told.items()}


def keep(fresh: Mapping[str, Seen]) -> None:
    """Put what a night saw of some files in the place of what was known; files that went, leave."""
    told = {
        file: one._asdict()
        for file, one in sorted({**seen(), **fresh}.items())
        if one.seconds >= SHORT and (ROOT / file).is_file()
    }
    RECORD.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def places(*, by_night: bool) -> Mapping[str, int]:
    """Return where a file begins, the longest of a night first; all others come after them."""
    if not by_night:
        return dict.fromkeys(LONGEST, 0)
    known = seen()
    longest = sorted(known, key=lambda file: -known[file].seconds)
    return {file: place for place, file in enumerate(longest)}
