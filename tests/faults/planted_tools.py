"""Planted faults of the tools: reader, executor, and their audit."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, never, replace, reword, sets
from tests.faults.planting import Table, fault

TOOLS: Final[Table] = {
    "V16": {
        "tool-writes": fault(
            "what reads the evidence may write to it",
            At("instance_database:open_reader", replace("True", "False")),
            "test_writing_through_a_reader_fails",
        ),
        "tool-later": fault(
            "a tool sees ticks that closed after its moment",
            At(
                "torra.store.tick_queries:newest_keys", reword("close_time <= ?", "close_time <> ?")
            ),
            "test_nothing_later_than_its_moment_is_visible",
        ),
        "tool-list": fault(
            "the caller's list of tools is not looked at",
            At("torra.tools.executor:Executor", never("self.allowed")),
            "test_every_refusal_is_a_value_with_its_code_and_its_row",
        ),
        "tool-room": fault(
            "a loop calls as many tools as it likes",
            At("torra.tools.executor:Executor", never("counts[code] > self.limits[code]")),
            "test_calls_are_counted_before_they_run",
        ),
        "tool-cache": fault(
            "an answer is taken from the cache whatever the bars are now",
            At("torra.tools.executor:Executor", replace("hash_of(to_json(bars))", "''")),
            "test_the_cache_knows_the_moment_and_the_bars",
        ),
        "tool-late": fault(
            "a result counts however late it comes",
            At("torra.tools.executor:Executor", replace("one.result.done()", "True")),
            "test_what_comes_late_is_dropped_and_on_record",
        ),
        "tool-words": fault(
            "what a tool raised is told in its own words",
            At(
                "torra.tools.executor:Executor",
                replace("refusal('FAILED')", "refusal('FAILED', str(error))"),
            ),
            "test_what_a_tool_raises_is_told_in_our_own_words",
        ),
        "tool-unaudited": fault(
            "facts are given without a row of the audit",
            At("torra.tools.executor:Executor", replace("refusal('NO_AUDIT')", "result")),
            "test_without_a_row_of_the_audit_nothing_is_given",
        ),
        "tool-bytes": fault(
            "a model gets a result of any size",
            At("torra.tools.executor", sets("MODEL_BYTES", "10**9")),
            "test_a_client_lists_and_asks_everything",
            "test_the_limits_are_those_of_the_contract",
        ),
        "tool-audit": fault(
            "any row of the audit of tools can be taken out",
            At("torra.store.schema", reword("WHERE number < old.number", "WHERE number < 0")),
            "test_the_audit_never_changes_and_loses_its_oldest_rows_alone",
        ),
        "tool-strangers": fault(
            "a stranger's text stands where a code should",
            At("torra.tools.contract:code_of", replace("CODE.fullmatch(str(text))", "True")),
            "test_no_text_of_a_stranger_comes_back",
        ),
    },
}
