"""Planted faults of what is thought: bars, replies, synthesis, deadline, fence and ceiling."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, always, drop, never, replace, returns, reword, sets, without
from tests.faults.planting import Seam, Table, fault

DEBATE: Final[Table] = {
    "L1": {
        "reply-nan": fault(
            "a reply may hold NaN and infinity",
            At("agents.debate.replies:Reply", sets("allow_inf_nan", "True")),
            At("agents.contracts:CHECKED", replace("False", "True")),
            At("agents.texts.door", without("parse_float"), without("parse_constant")),
            "test_what_is_no_finite_number_is_garbage_not_a_vote",
            "test_what_an_agent_of_another_hand_returns_is_checked_too",
        ),
    },
    "L2": {
        "fallback-time": fault(
            "no time is kept for the single model",
            At("agent_config:FALLBACK_SHARE", sets("FALLBACK_SHARE", "0.0")),
            "test_a_fifth_of_the_whole_is_kept_whatever_the_shares",
        ),
    },
    "L3": {
        "deadline-stage": fault(
            "a stage waits two seconds longer than its time",
            At("agents.debate.debate:run_parallel", replace("GRACE_SECONDS", "2.0")),
            "test_an_agent_that_hangs_without_asking",
        ),
        "deadline-tick": fault(
            "a tick's deadline is later than its profile says",
            Seam("agent_framework:deliberate", "passes(deadline=lambda at: at + 5.0)"),
            "test_a_provider_that_never_answers_does_not_hold_a_tick",
        ),
        "left-behind-exit": fault(
            "a call that hangs keeps the process from ending",
            At("agents.debate.debate:in_thread", sets("daemon", "False")),
            "test_the_process_exits_while_calls_hang",
        ),
        "left-behind-cap": fault(
            "threads that were left behind are not counted",
            At("agents.debate.debate:too_many_abandoned", returns("False")),
            "test_too_many_threads_left_behind_mean_l1_until_they_drain",
        ),
    },
    "L4": {
        "reply-bound": fault(
            "an agent's adjustment may be any size",
            At("agents.debate.replies", replace("between(float(value), ...)", "float(value)")),
            "test_a_finite_number_outside_the_bound_is_clamped_and_flagged",
        ),
        "blend": fault(
            "the blend leaves L1 by more than 0.06",
            At("agents.debate.scoring:blended", replace("BLEND_WEIGHT", "1.5 * _")),
            "test_a_desk_of_one_mind_goes_to_every_bound_and_not_beyond",
        ),
        "debate-shift": fault(
            "bull and bear shift by more than 0.15",
            At("agents.debate.scoring", replace("fsum(...) / len(SIDES)", "4.0 * _")),
            "test_a_desk_keeps_the_bounds_the_hull_the_mirror_and_the_order",
        ),
    },
    "L5": {
        "ceiling": fault(
            "a stage is granted above the ceiling of the hour",
            At("torra.tick.spending:SpendingAccount.affords", never("ceiling")),
            "test_a_stage_above_the_ceiling_makes_no_call",
            "test_no_sliding_hour_costs_more_than_its_ceiling",
        ),
        "reservation": fault(
            "a request goes out that no reservation covers",
            At(
                "torra.tick.spending:Purse.submit",
                without("row.sent"),
                without("row.ended"),
                without("not ...(request, row)"),
            ),
            "test_a_request_that_no_reservation_covers_is_refused",
        ),
        "reservation-cached": fault(
            "the worst case does not count a cached token that is dearer than plain input",
            At(
                "torra.providers.prices:PriceList.worst_case",
                without("Usage(tokens, output, cached=tokens)"),
            ),
            "test_no_cost_exceeds_its_worst_case",
        ),
        "reservation-kept": fault(
            "a call that never answered costs nothing",
            Seam(
                "torra.store.ledger:LedgerStore.keep",
                "becomes(lambda ledger, row: ledger.release(row))",
            ),
            "test_a_call_without_an_answer_keeps_its_worst_case",
        ),
        "ledger-fails-open": fault(
            "a ledger that cannot be written grants everything",
            At("agents.debate.debate:DebateState.refusal", returns("''", "'budget'")),
            "test_without_leave_to_spend_nothing_is_asked_and_l1_stands",
        ),
    },
    "L6": {
        "reply-symbol": fault(
            "an answer about another symbol counts",
            At("agents.texts.door:about", never("... != symbol")),
            "test_another_symbol_fails_closed",
            "test_a_reply_about_another_symbol_is_refused_in_every_seat",
        ),
        "fence-nonce": fault(
            "every call of a tick has the same nonce",
            At("agents.debate.debate:with_call_nonce", sets("text", "context.nonce")),
            "test_every_call_has_a_nonce_of_its_own_and_none_the_ticks",
        ),
        "fence-forged": fault(
            "a text may carry the nonce of its fence",
            Seam("agents.texts.fence:without_nonce", "becomes(lambda text, nonce: text)"),
            At("agents.texts.fence:clean", without("not nonce or ...")),
            "test_a_fence_can_neither_be_forged_nor_left",
        ),
        "fence-brackets": fault(
            "a text may carry the brackets of a fence",
            At("agents.texts.fence", replace("str.maketrans(..., ...)", "{}")),
            "test_what_looks_like_a_fence_is_written_in_brackets",
        ),
        "fence-without-nonce": fault(
            "prose is shown without a nonce",
            At("agents.texts.fence:has_nonce", returns("True")),
            "test_without_a_proper_nonce_no_prose_is_shown",
        ),
    },
    "L8": {
        "calls-on-file": fault(
            "what the models saw and said is not kept",
            At("torra.tick.decision:decide", drop("write_calls(...)")),
            "test_what_a_tick_cost_stands_in_journal_ledger_and_calls",
        ),
    },
    "L13": {
        "ungrounded": fault(
            "a citation that is not true costs nothing",
            At("agents.evidence:trust", without("'ungrounded'")),
            "test_trust_only_shrinks_at_a_desk_of_one_analyst",
            "test_a_value_that_is_not_in_the_bundle_moves_the_score_less",
        ),
    },
    "L14": {
        "dissent-unheard": fault(
            "conviction hears no researcher that dissents",
            At("agents.debate.scoring", replace("max(opposition, dissent)", "opposition")),
            "test_a_size_is_the_product_of_the_docs",
        ),
        "leaning-unheard": fault(
            "a desk that leans against an opening leaves most of its size",
            At("agents.debate.scoring", never("leans_against")),
            "test_a_size_is_the_product_of_the_docs",
        ),
        "failure-counts": fault(
            "an analyst that failed lends its trust",
            At(
                "agents.debate.scoring",
                replace("[0.0 for name in failed if name not in SIDES]", "[]"),
            ),
            "test_a_failed_seat_never_makes_an_opening_larger",
        ),
        "outage-whole": fault(
            "a desk of which nobody is heard opens at its whole size",
            At("agents.debate.scoring:outage", replace("1.0 / max(1, words)", "1.0")),
            "test_the_share_of_an_outage_is_the_setting_and_one_word_at_most",
        ),
        "outage-abstains": fault(
            "one that abstains is heard",
            At("agents.debate.debate:DebateState.opinions", always("answer.report.abstained")),
            "test_where_nobody_speaks_and_somebody_failed_the_fallback_is_asked",
        ),
        "outage-budget": fault(
            "a ceiling that is spent is no outage",
            At("torra.tick.debate:run_tick_debate", never("BUDGET in plan.flags")),
            "test_a_ceiling_that_is_spent_is_an_outage",
        ),
        "office": fault(
            "a researcher pushes against its own side",
            At("agents.debate.replies", never("move * own_side.get(...)")),
            "test_a_researcher_argues_its_own_side_and_concedes_the_other",
        ),
    },
    "L16": {
        "wrong-side": fault(
            "a point stays in the field where a model put it",
            At("agents.arguments:sort_points", replace("side * field in leans", "leans")),
            "test_a_point_on_the_wrong_side_moves_in_the_tables_words",
            "test_an_advocates_side_is_its_office_whatever_its_numbers",
        ),
        "falsified": fault(
            "a falsifier may hold already",
            At(
                "agents.arguments:pending_falsifiers",
                replace("near < side * (close - level) <= far", "True"),
            ),
            "test_a_falsifier_stands_while_it_has_not_come_and_may_come",
        ),
    },
    "M1": {
        "door-stale": fault(
            "old bars pass",
            Seam("torra.feeds.door:check", "passes(max_age_bars=lambda _: 1e9)"),
            "test_a_broken_frame_is_refused_with_its_reason",
            "test_two_bars_of_age_pass_and_a_moment_more_does_not",
        ),
    },
    "M2": {
        "door-nan": fault(
            "bars with NaN and infinite prices pass",
            At(
                "torra.feeds.door",
                without("(BarsRefused.NAN, ...)"),
                without("(BarsRefused.INFINITE, ...)"),
            ),
            "test_a_broken_frame_is_refused_with_its_reason",
            "test_no_mutated_frame_slips_through",
        ),
    },
    "M3": {
        "door-future": fault(
            "bars that are not closed yet pass",
            At("torra.feeds.door", without("(BarsRefused.FUTURE, ...)")),
            "test_a_broken_frame_is_refused_with_its_reason",
            "test_a_bar_is_closed_at_its_last_moment_and_not_before",
        ),
        "news-first-seen": fault(
            "headlines count from when they were published, not from when they were seen",
            At("torra.evidence.news_digest:counting", replace("item.first_seen", "item.published")),
            "test_what_is_seen_later_or_too_old_does_not_count",
        ),
    },
    "N10": {
        "flow-no-book": fault(
            "a bar without an order book has one of no levels",
            At(
                "torra.evidence.flow_readings",
                replace("None if count is None else float(count)", "float(count or 0)"),
            ),
            "test_without_a_book_its_numbers_are_none_and_never_0",
        ),
        "flow-waits": fault(
            "each tick waits for order flow of a source that hangs",
            At("torra.feeds.close_reader:CloseReader", without("self.hangs()")),
            "test_a_source_that_hangs_is_asked_once_and_waited_for_once",
        ),
        "flow-never-waits": fault(
            "a row that is written a moment after the bars is in no tick",
            At("torra.feeds.close_reader:CloseReader", drop("wait_for(...)")),
            "test_a_row_that_comes_a_moment_after_the_bars_is_used",
        ),
        "flow-again": fault(
            "a tick reads what a file says later, and no more what it saw first",
            At(
                "torra.tick.bar_window:LiveWindow.flow",
                replace("{row.bar_time: row for row in stored}", "{}"),
            ),
            "test_what_was_seen_first_stands_for_later_ticks",
        ),
    },
    "M9": {
        "bars-name": fault(
            "bars and order flow count wherever their file lies",
            At("torra.feeds.mt5_files", never("... != wanted")),
            "test_what_is_not_whole_signed_and_its_own_is_refused_and_the_last_good_copy_stands",
            "test_every_swap_of_two_authentic_files_is_refused",
            "test_what_differs_is_named_with_its_remedy",
        ),
        "bars-version": fault(
            "bars of another version are read",
            At("torra.feeds.mt5_files", never("PROTOCOL")),
            "test_an_expert_advisor_of_another_version_is_told",
        ),
        "one-file": fault(
            "two names of symbols share a file",
            At("torra.feeds.mt5_files:ESCAPED", replace("b'[^A-Za-z0-9_-]'", "b'[^A-Za-z0-9_ -]'")),
            "test_no_two_names_share_a_file",
        ),
        "door-step": fault(
            "bars of a longer timeframe pass",
            At("torra.feeds.door:check", never("longer")),
            "test_bars_of_a_longer_timeframe_are_refused",
            "test_a_broken_frame_is_refused_with_its_reason",
        ),
        "sieve-step": fault(
            "bars of a longer timeframe are stored",
            At("torra.feeds.door:drop_invalid_bars", never("...(index.asi8[sound], ...)")),
            "test_bars_of_a_longer_timeframe_are_not_stored",
        ),
    },
    "R3": {
        "gate-multiplier": fault(
            "the gate's model may raise the multiplier of the rules",
            At("agents.risk_gate:merged", replace("min(...)", "model.multiplier")),
            "test_a_model_never_loosens_the_rules",
        ),
    },
    "R9": {
        "event-window": fault(
            "the gate does not look at scheduled events",
            At("agents.risk_gate:rules", sets("near", "False")),
            "test_both_ends_belong_to_the_window",
            "test_no_opening_near_a_high_impact_event",
        ),
    },
    "N9": {
        "companion-late": fault(
            "a companion's bar of before counts as that of the close",
            At("torra.evidence.companion_readings:age", replace("behind == 0.0", "behind <= 1.0")),
            "test_what_is_late_or_stale_or_not_there_is_none_and_says_why",
        ),
        "companion-future": fault(
            "bars of a companion that close later are read",
            At(
                "torra.evidence.companion_readings:CompanionBars.closed",
                replace("micros(as_of - step)", "micros(as_of)"),
            ),
            "test_another_future_moves_no_number_of_a_companion",
        ),
        "companion-waits": fault(
            "each tick waits for a companion that hangs",
            At("torra.feeds.close_reader:CloseReader", without("self.hangs()")),
            "test_a_feed_that_hangs_is_waited_for_once_and_never_again",
            "test_a_hanging_companion_makes_no_tick_later",
        ),
        "companion-waits-anew": fault(
            "each timeframe of a close waits for companions as long as the first",
            At("torra.feeds.close_reader:Reading", replace("self.begun", "monotonic()")),
            "test_the_timeframes_of_a_close_wait_for_no_longer_than_one",
        ),
        "companion-stream": fault(
            "the bars of a companion are stored as those of a symbol",
            At("torra.config:Instance.companion_stream", returns("symbol")),
            "test_nothing_ticks_and_nothing_trades_for_a_companion",
        ),
    },
    "N7": {
        "filing-stamp": fault(
            "a filing counts from the earlier reading of its stamp",
            At(
                "torra.outside.filings:accepted_at", returns("told.replace(tzinfo=UTC)", "max(...)")
            ),
            "test_of_both_readings_of_a_stamp_the_later_counts",
        ),
    },
    "N8": {
        "edgar-pace": fault(
            "EDGAR is asked without a pause",
            At("torra.outside.edgar:RequestSpacer.wait", never("left > 0.0")),
            "test_no_second_holds_more_than_eight_requests",
        ),
    },
    "N11": {
        "company-year": fault(
            "a quarter counts as a year",
            At("torra.evidence.company_facts:of_year", replace("days(period) in ANNUAL", "True")),
            "test_hand_made_companies_come_out_to_a_billionth",
            "test_no_quarter_is_set_against_a_year",
        ),
        "company-sight": fault(
            "a live desk knows figures that it has not seen",
            At(
                "torra.evidence.outside_numbers:RowHistory",
                replace("max(known, stored.first_seen) if ... else known", "known"),
            ),
            "test_what_a_desk_saw_late_counts_from_its_sight",
        ),
        "company-split": fault(
            "a split makes a share cheap",
            At("torra.evidence.fair_value", replace("jumped > counted", "False")),
            "test_a_split_makes_no_company_cheap",
        ),
        "company-loss": fault(
            "a loss has a multiple",
            At("torra.evidence.company_figures:ratio", replace("whole > 0.0", "True")),
            "test_what_is_not_earned_has_no_multiple",
        ),
    },
    "N12": {
        "invented-standing": fault(
            "a tick of invented evidence counts for standing",
            At("torra.desk.promotion", replace("not record.invented", "True")),
            "test_a_marked_tick_makes_no_standing_and_no_lesson",
        ),
        "invented-lesson": fault(
            "a trade of invented evidence leaves a lesson",
            At("torra.store.lessons:LessonStore.write_lesson", reword("$.invented", "$.none")),
            "test_a_marked_tick_makes_no_standing_and_no_lesson",
        ),
        "invented-home": fault(
            "every home on the sample invents what it lacks",
            At("torra.desk.wiring", replace("not has_desk(home)", "True")),
            "test_only_the_home_of_the_demo_invents",
        ),
        "invented-news": fault(
            "invented headlines are stored among the collected ones",
            At("torra.tick.decision:decide", replace("not inputs.invented", "True")),
            "test_nothing_invented_is_stored_beside_the_record",
        ),
    },
    "N1": {
        "numbers-only": fault(
            "the news agent's prose enters the other prompts",
            At(
                "scoring_rubric:visible",
                replace("prose and words and has_nonce(context)", "has_nonce(context)"),
            ),
            "test_of_a_news_report_only_numbers_and_ids_enter_another_prompt",
            "test_a_news_agent_of_attacks_leaves_the_other_prompts_as_they_were",
        ),
    },
}
