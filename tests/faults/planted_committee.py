"""Planted faults of the committee: how votes are counted, what moves one, what evidence may be."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, replace, reword, sets
from tests.faults.planting import Table, fault

COMMITTEE: Final[Table] = {
    "Y6": {
        "committee-loud": fault(
            "a dissenter's trust counts for nothing",
            At(
                "torra.committee.votes",
                replace("(vote.stance == lean) - (vote.stance == against)", "vote.stance == lean"),
            ),
            "test_every_state_is_that_of_the_oracle",
        ),
        "committee-failed": fault(
            "a seat that failed is no opponent",
            At("torra.committee.votes", replace("-1.0", "0.0")),
            "test_every_state_is_that_of_the_oracle",
        ),
        "committee-alone": fault(
            "one seat decides alone",
            At("torra.committee.votes:VOTES", sets("VOTES", "1")),
            "test_a_seat_alone_decides_nothing_and_all_failed_is_no_outcome",
        ),
        "committee-tie": fault(
            "a tie leans to one of the two",
            At("torra.committee.votes", replace("0 if others else lean", "lean")),
            "test_every_state_is_that_of_the_oracle",
        ),
        "committee-sway": fault(
            "a vote is changed without new evidence",
            At("torra.committee.seats", replace("changes or rises", "rises")),
            "test_a_changed_vote_needs_a_new_citation_of_the_new_side",
        ),
        "committee-rise": fault(
            "a confidence rises without new evidence",
            At("torra.committee.seats", replace("changes or rises", "changes")),
            "test_a_higher_trust_needs_a_new_citation_and_a_lower_one_none",
        ),
        "committee-side": fault(
            "a vote is grounded by what leans the other way",
            At("torra.committee.seats", replace("for_it if stance else cited", "cited")),
            "test_a_citation_stands_on_the_side_to_which_its_fact_leans",
        ),
        "committee-later": fault(
            "the bar of a day that goes on is evidence",
            At(
                "torra.committee.evidence",
                replace("floor(latest, DAY) - duration(DAY)", "floor(latest, DAY)"),
            ),
            "test_nothing_that_became_known_later_moves_a_byte_of_the_evidence",
        ),
        "committee-blind": fault(
            "a seat reads its own claim as another's",
            At("torra.committee.debate", replace("other != seat", "other")),
            "test_the_first_round_is_blind_and_the_second_sees_numbers_and_quotes",
        ),
        "committee-gold": fault(
            "gold is judged by a real yield that it does not follow",
            At(
                "torra.committee.evidence",
                replace("relates or not key.startswith(REAL_YIELD)", "True"),
            ),
            "test_gold_is_judged_by_the_real_yield_only_while_it_goes_against_it",
        ),
        "committee-question": fault(
            "another order of the seats is the same question",
            At(
                "torra.committee.card",
                replace("[hash_of_evidence(known), RUBRIC_VERSION, question]", "[question.models]"),
            ),
            "test_who_is_asked_and_how_names_the_question",
        ),
        "committee-prose": fault(
            "a card holds the words of a model",
            At(
                "torra.committee.card",
                replace("statement_of(report, known)", "report.claim"),
            ),
            "test_three_seats_of_each_vendor_make_a_card",
        ),
        "committee-twice": fault(
            "the same evidence is paid for again",
            At(
                "torra.committee.deciding:decide",
                replace("any(one.failed for one in stored.seats)", "True"),
            ),
            "test_the_same_evidence_asks_no_model_twice_under_any_profile",
        ),
        "committee-revoked": fault(
            "models are asked after the token that asked was taken back",
            At("torra.store.audit:ENDS_OF_TOKENS", sets("ENDS_OF_TOKENS", '("", "")')),
            "test_no_call_follows_the_loss_of_the_token",
        ),
        "committee-yesterday": fault(
            "a card is made of votes on other evidence",
            At(
                "torra.store.streams:events_named",
                reword("json_extract(payload, '$.' || ?) = ?", "? || ? <> ''"),
            ),
            "test_votes_are_taken_of_the_same_question_alone",
        ),
        "committee-lost": fault(
            "a job that was lost after its card asks once more again",
            At("torra.committee.deciding:decide", replace("not desk.has_begun(asked)", "True")),
            "test_a_job_that_was_lost_after_its_card_asks_once_more_only_once",
        ),
        "committee-part": fault(
            "a seat that failed is never asked again",
            At(
                "torra.committee.deciding:decide",
                replace("any(one.failed for one in stored.seats)", "False"),
            ),
            "test_a_seat_that_failed_is_asked_again_and_no_other_is_paid_twice",
        ),
        "committee-off": fault(
            "a source that is switched off votes",
            At("torra.committee.evidence", replace("profile.outside.sources", "None")),
            "test_a_source_that_is_switched_off_does_not_vote",
        ),
        "committee-impatient": fault(
            "a busy vendor is not asked again before another stands in",
            At("torra.committee.debate", replace('reply.trigger != "BUSY"', "True")),
            "test_a_busy_vendor_is_told_of_with_the_seconds_of_the_pause",
        ),
        "committee-price": fault(
            "a card costs what its last attempt paid",
            At("torra.store.ledger:spent_on", reword("sum(usd)", "max(usd)")),
            "test_a_card_costs_what_the_ledger_has_of_its_question",
        ),
        "committee-endless": fault(
            "the stream of a job that was cancelled has no end",
            At(
                "torra.store.jobs:end_job",
                replace('stream_table.end_streams(store, row["key"], written(error))', "None"),
            ),
            "test_a_job_that_ends_at_any_event_ends_its_stream",
        ),
    },
}
