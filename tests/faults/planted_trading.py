"""Planted faults of what goes to a market: checks, kill switch, expiry, messages, books, a yes."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, always, drop, never, replace, returns, sets, without
from tests.faults.planting import Seam, Table, fault

WITHOUT: Final = "gives(lambda reasons: (reason for reason in reasons if not ({})))"
"""A wrapper that leaves out the reasons of which a condition holds."""

UNFENCED: Final = "lambda store: setattr(store, 'fence', lambda: True) or store"
"""Takes its fence from a store: whoever has it may write."""

TRADING: Final[Table] = {
    "D4": {
        "booked-before-settled": fault(
            "a report is settled before it is booked",
            At(
                "signal_bridge:take_reports",
                replace("failpoint('ack_read')", "(_, bridge.settle(report))"),
            ),
            "test_a_report_that_cannot_be_booked_is_not_settled",
        ),
    },
    "T4": {
        "clock-set-back": fault(
            "a signal that was decided in what is the future now goes out",
            At("signal_bridge", without("... > now + AHEAD")),
            "test_a_signal_from_the_future_is_not_sent_when_the_clock_was_set_back",
        ),
    },
    "T5": {
        "desk-lock-sends": fault(
            "a desk without its lock sends",
            Seam("signal_bridge:send_pending", f"passes(store={UNFENCED})"),
            "test_a_desk_without_its_lock_touches_nothing",
        ),
        "courier-lock": fault(
            "the courier of a desk without its lock goes on",
            # All of its looks: each of them alone has another one behind it.
            Seam("torra.trading.courier:Courier", f"passes(database={UNFENCED})"),
            "test_without_the_lock_nothing_is_touched",
        ),
    },
    "R1": {
        "veto-check": fault(
            "the risk engine does not heed a veto",
            Seam(
                "torra.verdict.ticket_checks:objections",
                WITHOUT.format("reason == DenyReason.GATE_VETO"),
            ),
            "test_no_ticket_is_let_through_or_held_back_wrongly",
            "test_a_window_drops_an_opening_and_lets_a_close_through",
        ),
        "real-money": fault(
            "real money is traded without leave",
            Seam(
                "torra.bridges.torra.advisor_health:objections",
                WITHOUT.format("'real money' in str(reason)"),
            ),
            "test_what_the_advisor_cannot_do_is_not_asked_of_it",
        ),
    },
    "R17": {
        "hand-twice": fault(
            "a position that is being closed is closed by hand once more",
            At(
                "torra.verdict.hand_orders:write_hand_close",
                never("is_closing(before)"),
            ),
            Seam("torra.store.trade.positions:PositionStore.being_closed", "skips(False)"),
            "test_the_same_word_twice_is_one_close",
        ),
        "hand-too-late": fault(
            "an opening that a person took back is sent all the same",
            At(
                "signal_bridge",
                replace("row['kind'] == 'close' and row['closes'] == sid", "False"),
            ),
            "test_an_opening_that_is_not_executed_is_taken_back",
        ),
        "stop-widens": fault(
            "a hand moves a stop away from the price",
            At("torra.trading.hand_close", never("risk <= 0")),
            "test_a_stop_moves_towards_the_price_alone",
        ),
        "one-r-shrinks": fault(
            "one R is measured from the stop that was moved",
            At(
                "torra.bridges.paper",
                replace("planned_risk(first, ...)", "planned_risk(position.stop, position.target)"),
            ),
            "test_on_paper_the_stop_moves_at_the_open_of_the_next_bar",
        ),
        "hand-forgotten": fault(
            "a journal replay knows nothing of what a hand did in the middle of a tick",
            At("torra.replay.rerun.replay_store:JournalDatabase", sets("others", "set()")),
            "test_what_a_hand_did_in_the_middle_of_a_tick_is_done_again",
        ),
    },
    "R18": {
        "deposit-hidden": fault(
            "a deposit passes for Torra's doing",
            At("torra.money.account:AccountSeries", never("abs(left) > CENT")),
            "test_what_lies_between_two_ends_is_judged_as_each_moment_alone",
        ),
        "accounts-added-up": fault(
            "the trades of an account that was swapped are added to those of the next",
            At("torra.money.book:MoneyBook", never("following")),
            "test_another_account_behind_the_channel_has_its_own_results",
        ),
    },
    "R2": {
        "size-rounds-up": fault(
            "a size is rounded up to the next step",
            At("torra.verdict.position_size", returns("-(-top // bottom)", "top // bottom")),
            "test_the_loss_at_the_stop_stays_in_its_budget",
        ),
    },
    "R4": {
        "halt-file": fault(
            "the file HALT is not looked for before something goes out",
            At("torra.trading.kill_switch:KillSwitch.engaged", without("...()")),
            "test_a_file_halts_database_and_every_channel",
        ),
        "halt-unseen": fault(
            "a file HALT of the home that cannot be looked for counts as not there",
            At("torra.trading.kill_switch", drop("f'cannot be looked for: {...}'")),
            "test_an_own_file_that_cannot_be_looked_for_halts",
        ),
        "halt-state": fault(
            "a halt in the database stops nothing",
            At("torra.trading.kill_switch:KillSwitch.engaged", sets("halted", "False")),
            "test_taking_the_file_away_does_not_resume",
        ),
        "halt-at-submission": fault(
            "HALT and lock are not asked again right before a signal goes out",
            At("signal_bridge", never("stopped(...)")),
            "test_what_comes_while_an_order_is_made_ready_stops_it",
        ),
        "halt-while-writing": fault(
            "HALT is not asked again when a signal's text is written",
            At("torra.bridges.torra.drop_folder:DropFolder", never("...(lies, path)")),
            "test_a_halt_that_comes_while_an_order_is_written_stops_it",
        ),
    },
    "R5": {
        "repeated-execution": fault(
            "openings of one side are not counted",
            Seam(
                "torra.verdict.ticket_checks:objections",
                WITHOUT.format("reason == DenyReason.REPEATED_EXECUTION"),
            ),
            "test_ten_thousand_verdicts_in_an_hour_are_capped_and_halt_the_desk",
        ),
        "runaway-halts": fault(
            "a runaway does not halt the desk",
            At("torra.tick.decision:decide", never("halt")),
            "test_a_tick_that_would_send_too_much_halts_its_desk",
        ),
    },
    "R6": {
        "expiry": fault(
            "a signal goes out after its expiry",
            At("signal_bridge", without("now >= ...")),
            "test_a_signal_is_sent_until_its_expiry",
            "test_a_waiting_opening_expires",
        ),
        "hmac": fault(
            "Torra believes a message whose signature does not fit",
            At("torra.bridges.torra.messages", never("compare_digest(...)")),
            "test_a_single_changed_byte_is_refused",
            "test_another_key_is_a_forgery",
            "test_a_forged_heartbeat_is_no_life",
        ),
        "message-channel": fault(
            "what another channel signed counts on this one",
            At("torra.bridges.torra.bridge:TorraFiles", never("channel")),
            "test_what_is_no_answer_is_never_taken_for_one",
            "test_missing_books_are_not_flat",
        ),
        "heartbeat": fault(
            "signals go to an advisor that is dead",
            At("torra.bridges.torra.advisor_health:objections", without("age > ALIVE_SECONDS")),
            "test_a_dead_advisor_is_seen_by_our_own_clock",
            "test_nothing_is_sent_to_a_dead_advisor_and_nothing_fires_late",
        ),
        "heartbeat-replayed": fault(
            "old heartbeats that are put back count as life",
            At("torra.bridges.torra.advisor_health:Latest.take", always("message.gmt > last.gmt")),
            "test_heartbeats_that_are_put_back_are_no_life",
        ),
        "advisor-clock": fault(
            "signals go to an advisor whose clock is off",
            At(
                "torra.bridges.torra.advisor_health:objections",
                replace("abs(heart.ahead) > OFFSET_TOLERANCE", "False"),
            ),
            "test_clocks_that_differ_are_not_traded_on",
        ),
    },
    "R7": {
        "books-first": fault(
            "signals go out before the books were compared",
            At("torra.trading.courier", replace("ready or not ok", "True")),
            "test_nothing_is_sent_before_the_books_were_compared",
        ),
        "books-fresh": fault(
            "books of another time are compared",
            At("torra.trading.courier:Courier", without("... > BOOKS_AGE")),
            "test_books_of_another_time_are_no_comparison",
        ),
        "stranger-reduces": fault(
            "a position that nobody knows stops no openings",
            At(
                "torra.trading.reconciliation",
                replace(
                    "Alarm(..., 'EXTERNAL', ...)",
                    "Alarm(f'External {position.ticket}', 'EXTERNAL', text, reduces=False)",
                ),
            ),
            "test_a_strange_position_stops_openings_and_raises_one_alarm",
        ),
    },
    "R8": {
        "message-version": fault(
            "a message of another version is read",
            At("torra.bridges.torra.messages:decode", never("version")),
            "test_another_version_is_told_before_anything_else",
            "test_mixed_versions_refuse_to_talk",
        ),
        "message-unknown-key": fault(
            "a message with a key that nobody knows is read",
            At("torra.bridges.torra.messages", never("...(message, version) != body")),
            "test_a_key_behind_the_last_is_refused",
        ),
    },
    "R9": {
        "veto": fault(
            "the gate's veto does not reach the risk engine",
            Seam(
                "torra.verdict.risk_engine:review",
                "passes(decision=lambda decision: replace(decision, veto=False))",
            ),
            "test_a_window_drops_an_opening_and_lets_a_close_through",
        ),
    },
    "R16": {
        "odd-report": fault(
            "an execution that cannot be is booked",
            At("signal_bridge:apply_report", never("fault")),
            "test_a_report_that_cannot_be_books_nothing",
            "test_an_odd_report_waits_for_the_books",
        ),
        "odd-books": fault(
            "books that cannot be are compared",
            Seam("torra.bridges.plausible:books_fault", "skips('')"),
            "test_books_that_cannot_be_are_no_comparison",
        ),
        "odd-ack": fault(
            "a signed answer of -5 lots is believed",
            At("torra.bridges.torra.messages:Lots", replace("Ge(0)", "Ge(Decimal(-9))")),
            "test_an_answer_with_a_number_that_cannot_be_is_none",
        ),
        "odd-row": fault(
            "a signal that cannot be read is sent",
            Seam("torra.bridges.odd_rows:sending_fault", "skips('')"),
            "test_an_odd_signal_is_never_sent_and_told_once",
        ),
        "odd-row-alone": fault(
            "a row that cannot be compared stops its channel",
            At("torra.trading.settlement:settle", never("fault")),
            "test_a_signal_without_an_event_stops_nobody_else",
        ),
        "odd-proposal": fault(
            "a proposal that cannot be read is a failure of its page",
            At("torra.store.trade.rows:Row.load", replace("ValidationError", "()")),
            "test_a_proposal_that_cannot_be_read_says_so",
        ),
    },
    "R12": {
        "filling-after-time-out": fault(
            "an order goes out with another filling mode after a time-out",
            At(
                "torra.bridges.mt5.bridge",
                replace("retcode != INVALID_FILL", "retcode not in (INVALID_FILL, 10012)"),
            ),
            "test_the_package_tries_no_other_mode_after_any_other_answer",
        ),
        "filling-again": fault(
            "a filling mode that was refused is tried again",
            At("torra.bridges.mt5.request:request_of", always("mode not in refused")),
            "test_where_no_mode_is_taken_the_package_refuses_with_the_number",
        ),
    },
    "R14": {
        "approval-once": fault(
            "a proposal that was decided can be approved again",
            At("torra.tick.approval", never("'WAITING'")),
            "test_a_second_click_is_an_error_and_sends_nothing",
            "test_clicks_at_the_same_moment_send_one_signal",
        ),
        "approval-drift": fault(
            "a proposal is sent at any price",
            At("torra.tick.approval", never("...(row, at.price)")),
            "test_a_price_that_has_drifted_ends_it",
        ),
        "approval-expiry": fault(
            "a proposal is sent after its time",
            At("torra.tick.approval", never("now >= ...")),
            "test_a_proposal_ends_at_the_close_of_the_next_bar",
        ),
    },
    "R15": {
        "order-compared": fault(
            "an order that was altered in the database is sent",
            Seam("torra.verdict.order_seal:altered", "skips(False)"),
            "test_no_altered_order_reaches_a_bridge",
            "test_a_trigger_that_enlarges_an_order_stops_it",
        ),
        "order-sealed": fault(
            "the seal of an order does not hear of its lots and prices",
            At("torra.verdict.order_seal", replace("number(value)", "'0'")),
            "test_the_seal_hears_every_column",
        ),
        "paper-compared": fault(
            "an order that was altered after its publication is filled on paper",
            At(
                "torra.tick.paper:advance",
                replace("check.whole", "{row['sid'] for row in database.signals()}"),
            ),
            At("torra.tick.paper:advance", drop("set_aside(...)")),
            "test_a_published_order_of_more_lots_is_not_filled_on_paper",
        ),
        "altered-halts": fault(
            "an order that was altered does not halt the desk",
            At("signal_bridge:halt_for", drop("halt(...)")),
            "test_a_trigger_that_enlarges_an_order_stops_it",
        ),
        "foreign-trigger": fault(
            "a trigger that somebody put on a table of Torra's is let in",
            At("torra.store.migrations:compare", never("...(row, tables)")),
            "test_a_tampered_backup_is_refused_or_says_so",
        ),
        "changed-table": fault(
            "a table of Torra's that somebody changed is let in",
            At("torra.store.migrations:compare", never("...(...) != ...(row)")),
            "test_a_desk_does_not_work_on_a_tampered_database",
        ),
    },
}
