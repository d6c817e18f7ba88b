"""Planted faults of the overlay: whose answer it is, when it comes, and what it leaves behind."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, never, replace, returns
from tests.faults.planting import Seam, Table, fault

HOSTED: Final[Table] = {
    "L17": {
        "hosted-two": fault(
            "a question that somebody debates is debated by others, too",
            At("torra.store.hosted:ask_hosted", never("alive")),
            "test_callers_that_wait_have_the_answer_of_the_one_that_debates",
        ),
        "hosted-claim": fault(
            "an answer is stored whose claim is another's by now",
            At("torra.store.hosted:hosted_revision", never("not ...")),
            "test_a_claim_that_was_lost_stores_nothing",
        ),
        "hosted-final": fault(
            "an answer without agents is given again",
            At("torra.overlay.call:is_final", returns("True")),
            "test_a_reader_that_fails_beside_experts_that_abstain_is_asked_again",
        ),
        "hosted-question": fault(
            "an answer is given for other scores than those that it was made for",
            At("torra.overlay.hosted_tick:question", replace("dict(request.scores)", "{}")),
            "test_whatever_changes_is_debated_anew_as_a_revision",
        ),
        "hosted-time": fault(
            "a call waits for a tick that hangs",
            At(
                "torra.overlay.overlay:Overlay",
                replace("result(...(call.deadline, call.clock))", "work.result(9.0)"),
            ),
            "test_a_disk_that_hangs",
        ),
        "hosted-forming": fault(
            "a bar that is not closed yet is scored",
            At("torra.overlay.request", replace("frame[closed]", "frame")),
            "test_the_forming_bar_is_left_out_and_told",
        ),
        "hosted-fork": fault(
            "a child process goes on with its parent's connections",
            Seam("torra.overlay.overlay:Overlay.begin_anew", "skips()"),
            "test_a_fork_begins_anew",
        ),
        "hosted-migrates": fault(
            "a call migrates the database of a desk that works",
            At(
                "torra.overlay.runtime",
                replace("0 < migrations.schema(db) < migrations.NEWEST", "False"),
            ),
            "test_an_older_database_is_not_migrated_under_a_desk_that_works",
        ),
        "hosted-promotes": fault(
            "another scorer's ticks promote a desk's agents",
            At("torra.desk.promotion:ran_with", never("is_hosted(instance)")),
            "test_the_standing_of_a_desks_agents_knows_no_hosted_tick",
        ),
    },
}
