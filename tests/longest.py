"""The files of tests that take longest: `make test` begins with them, in an order drawn anew.

One worker runs a whole file. One that is begun last keeps its worker for up to half a minute when
the others have nothing left to do.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = frozenset(
    f"tests/{name}.py"
    for name in (
        "browser/test_browser_answers",
        "browser/test_browser_profiles",
        "browser/test_browser_shell",
        "browser/test_browser_tour",
        "desk/test_kills",
        "desk/test_lessons_of_kills",
        "desk/test_shutdown",
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
"""Those of more than about eight seconds, their journeys counted."""
