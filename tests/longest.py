"""The files of tests that take longest: a run begins with them.

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

LONGEST_BY_NIGHT: Final = tuple(
    f"tests/{name}.py"
    for name in (
        "faults/test_whole_desk",
        "replay/test_planted_edges",
        "tick/test_ceiling",
        "replay/test_lookahead_command",
        "agents/test_firm_invariants",
        "money/test_account",
        "agents/test_swarm_invariants",
        "dashboard/test_why",
        "trading/test_signal_kills",
        "agents/test_debate_invariants",
        "faults/test_toxics",
        "replay/test_changed",
        "replay/test_live_and_replay",
        "providers/test_arguments",
        "agents/test_conclusions",
        "desk/test_kills",
        "agents/test_panel",
        "faults/test_old_schemas",
        "trading/test_hand_close",
        "scores/test_verdict_rates",
        "overlay/test_score_chart",
        "trading/test_reversals",
        "faults/test_double_start",
        "replay/test_l1_sweep",
        "dashboard/test_hostile_texts",
        "replay/test_journal_check",
        "jobs/test_job_kills",
        "outside/test_nothing_later",
        "providers/test_firm_rules",
        "desk/test_lessons_of_kills",
        "agents/test_full_desk_failures",
        "dashboard/test_odd_documents",
        "browser/test_browser_tour",
        "replay/test_journal_replay",
        "chart/test_chart_renderer",
        "faults/test_failing_disk",
        "faults/test_damaged_file",
        "overlay/test_hosted_replay",
        "faults/test_soak",
        "faults/test_parsers",
        "replay/test_experts_again",
        "tick/test_thesis",
        "outside/test_company_nothing_later",
        "bridges/test_dwx_files",
        "overlay/test_many_callers",
        "scores/test_indicators",
        "dashboard/test_history_page",
        "profiles/test_profile_book",
        "market/test_clock_shifts",
        "store/test_lesson_facts_oracle",
        "tick/test_allowance",
        "bridges/test_messages",
        "lessons/test_no_look_ahead",
        "bridges/test_dwx_commands",
        "scores/test_causality",
        "faults/test_start",
        "faults/test_power_cut",
        "store/test_full_disk",
        "faults/test_malformed_replies",
        "replay/test_lessons_live_and_replay",
        "dashboard/test_views_at_size",
    )
)
"""Those of more than about two minutes at their full counts, the longest first."""
