"""The files of tests that take longest: a run begins with them, in an order drawn anew.

One worker runs a whole file. One that is begun last keeps its worker, by day for up to half a
minute, at night for a quarter of an hour, when the others have nothing left to do.
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
"""Those of more than about eight seconds by day, their journeys counted."""

LONGEST_BY_NIGHT: Final = frozenset(
    f"tests/{name}.py"
    for name in (
        "agents/test_conclusions",
        "agents/test_debate_invariants",
        "agents/test_firm_invariants",
        "agents/test_full_desk_failures",
        "agents/test_panel",
        "agents/test_swarm_invariants",
        "bridges/test_dwx_commands",
        "dashboard/test_hostile_texts",
        "dashboard/test_odd_documents",
        "dashboard/test_why",
        "desk/test_kills",
        "desk/test_lessons_of_kills",
        "faults/test_besieged_desk",
        "faults/test_clock_jumps",
        "faults/test_double_start",
        "faults/test_failing_disk",
        "faults/test_feeds",
        "faults/test_mutations",
        "faults/test_old_schemas",
        "faults/test_power_cut",
        "faults/test_toxics",
        "faults/test_whole_desk",
        "jobs/test_job_kills",
        "money/test_account",
        "outside/test_nothing_later",
        "overlay/test_beside_a_desk",
        "overlay/test_score_chart",
        "providers/test_arguments",
        "providers/test_firm_rules",
        "replay/test_changed",
        "replay/test_journal_check",
        "replay/test_journal_replay",
        "replay/test_l1_sweep",
        "replay/test_live_and_replay",
        "replay/test_lookahead_command",
        "replay/test_planted_edges",
        "scores/test_verdict_rates",
        "tick/test_ceiling",
        "trading/test_hand_close",
        "trading/test_reversals",
        "trading/test_signal_kills",
    )
)
"""Those of more than about two minutes at their full counts."""
