"""Planted faults of what goes to a market: checks, kill switch, expiry, messages, advisor, books.

Each takes out one safeguard; every test that it names has to fail then.
"""

from __future__ import annotations

from typing import Final

from tests.faults.planting import Fault

CHECKS: Final = "torra/verdict/ticket_checks.py"
BRIDGE: Final = "signal_bridge.py"
SWITCH: Final = "torra/trading/kill_switch.py"
MESSAGES: Final = "torra/bridges/torra/messages.py"
HEALTH: Final = "torra/bridges/torra/advisor_health.py"
COURIER: Final = "torra/trading/courier.py"
ADVISOR: Final = "mql5/TorraBridge.mq5"
TICK: Final = "torra_trader.py"
APPROVAL: Final = "torra/tick/approval.py"

RISK: Final = "tests/verdict/test_risk_checks.py::"
TEST_BRIDGE: Final = "tests/bridges/test_signal_bridge.py::"
TEST_SWITCH: Final = "tests/trading/test_kill_switch.py::"
TEST_MESSAGES: Final = "tests/bridges/test_messages.py::"
FILES: Final = "tests/bridges/test_torra_files.py::"
TEST_COURIER: Final = "tests/trading/test_courier.py::"
TEST_APPROVAL: Final = "tests/tick/test_approval.py::"
EA_ORDERS: Final = "tests/bridges/test_ea_orders.py::"
EA_RECOVERY: Final = "tests/bridges/test_ea_recovery.py::"
EA_GUARDS: Final = "tests/bridges/test_ea_guards.py::"
EA_SOURCE: Final = "tests/bridges/test_ea_source.py::"
RUNAWAY: Final = "tests/trading/test_runaway.py::"
ORACLE: Final = (
    "tests/verdict/test_risk_oracle.py::test_no_ticket_is_let_through_or_held_back_wrongly"
)
VETO_AT_EVENTS: Final = (
    "tests/agents/test_gate.py::test_a_window_drops_an_opening_and_lets_a_close_through",
)

TRADING: Final = (
    # --- checks -----------------------------------------------------------------------------------
    Fault(
        "veto",
        "R1",
        "the gate's veto does not reach the risk engine",
        TICK,
        "    veto = debated.counted.veto or latched.get(saved.verdict, False)\n",
        "    veto = False\n",
        VETO_AT_EVENTS,
    ),
    Fault(
        "veto-check",
        "R1",
        "the risk engine does not heed a veto",
        CHECKS,
        "DenyReason.GATE_VETO: ticket.veto,",
        "DenyReason.GATE_VETO: False,",
        (ORACLE, *VETO_AT_EVENTS),
    ),
    Fault(
        "halted-check",
        "R4",
        "the risk engine lets openings through while trading is halted",
        CHECKS,
        'DenyReason.TRADING_HALTED: account.trading_state not in ("ACTIVE", "REDUCING"),',
        "DenyReason.TRADING_HALTED: False,",
        (ORACLE,),
    ),
    Fault(
        "daily-loss",
        "R1",
        "the day's loss stops nothing",
        CHECKS,
        "exact(account.day_loss) >= daily or loss > daily",
        "loss > daily",
        (ORACLE,),
    ),
    Fault(
        "risk-per-trade",
        "R2",
        "an opening may lose twice its budget",
        CHECKS,
        "loss > percent(risk.capital, risk.risk_per_trade_pct)",
        "loss > 2 * percent(risk.capital, risk.risk_per_trade_pct)",
        (ORACLE,),
    ),
    Fault(
        "size-rounds-up",
        "R2",
        "a size is rounded up to the next step",
        "torra/verdict/position_size.py",
        "lots = step * (allowed * exact(scale) // step)",
        "lots = step * -(-allowed * exact(scale) // step)",
        ("tests/verdict/test_risk_oracle.py::test_the_loss_at_the_stop_stays_in_its_budget",),
    ),
    Fault(
        "stale-bar",
        "M1",
        "an opening on an old bar passes the checks",
        CHECKS,
        "DenyReason.STALE_BAR: ticket.bar_age > profile.gate.max_bar_age,",
        "DenyReason.STALE_BAR: False,",
        (ORACLE,),
    ),
    Fault(
        "broken-number",
        "R1",
        "a ticket with NaN passes the checks",
        CHECKS,
        "broken = () if _sound(ticket) else (DenyReason.BAD_NUMBER,)",
        "broken = ()",
        (ORACLE,),
    ),
    Fault(
        "repeated-execution",
        "R5",
        "openings of one side are not counted",
        CHECKS,
        "DenyReason.REPEATED_EXECUTION: openings >= risk.max_same_openings_per_hour,",
        "DenyReason.REPEATED_EXECUTION: False,",
        (RUNAWAY + "test_ten_thousand_verdicts_in_an_hour_are_capped_and_halt_the_desk",),
    ),
    Fault(
        "runaway-halts",
        "R5",
        "a runaway does not halt the desk",
        TICK,
        "        if action.halt is not None:\n            database.halt(",
        "        if False:\n            database.halt(",
        (RUNAWAY + "test_a_tick_that_would_send_too_much_halts_its_desk",),
    ),
    Fault(
        "runaway-halts-approved",
        "R5",
        "a yes that would send too much does not halt the desk",
        APPROVAL,
        "        if action.halt is not None:\n            database.halt(",
        "        if False:\n            database.halt(",
        (TEST_APPROVAL + "test_a_yes_that_would_send_too_much_halts_the_desk",),
    ),
    # --- kill switch and expiry -------------------------------------------------------------------
    Fault(
        "halt-file",
        "R4",
        "the file HALT is not looked for before something goes out",
        SWITCH,
        "if reason := self._fault or self._found():",
        "if reason := self._fault:",
        (TEST_SWITCH + "test_a_file_halts_database_and_every_channel",),
    ),
    Fault(
        "halt-unseen",
        "R4",
        "a file HALT of the home that cannot be looked for counts as not there",
        SWITCH,
        "            if _ours(files, path):\n                yield name, f",
        "            if False:\n                yield name, f",
        (TEST_SWITCH + "test_an_own_file_that_cannot_be_looked_for_halts",),
    ),
    Fault(
        "halt-state",
        "R4",
        "a halt in the database stops nothing",
        SWITCH,
        'halted = self._database.trading_state() == "HALTED"',
        "halted = False",
        (TEST_SWITCH + "test_taking_the_file_away_does_not_resume",),
    ),
    Fault(
        "halt-kept",
        "R4",
        "taking the file HALT away lets trading go on",
        SWITCH,
        '                self._database.halt(reason)\n                self._fault = ""  #',
        '                self._fault = ""  #',
        (TEST_SWITCH + "test_a_file_halts_database_and_every_channel",),
    ),
    Fault(
        "halt-at-submission",
        "R4",
        "HALT and lease are not asked again right before a signal goes out",
        BRIDGE,
        "if stopped(order.kind) is not None or not ours():",
        "if False:",
        (TEST_BRIDGE + "test_what_comes_while_an_order_is_made_ready_stops_it",),
    ),
    Fault(
        "halt-while-writing",
        "R4",
        "HALT is not asked again when a signal's text is written",
        "torra/bridges/torra/drop_folder.py",
        "                self._heed_halt()\n",
        "",
        (FILES + "test_a_halt_that_comes_while_an_order_is_written_stops_it",),
    ),
    Fault(
        "desk-lease-sends",
        "T5",
        "a desk without the lease sends",
        BRIDGE,
        "        if not ours():\n            break\n",
        "",
        (TEST_BRIDGE + "test_a_desk_without_its_lease_touches_nothing",),
    ),
    Fault(
        "courier-lease",
        "T5",
        "the courier of a desk without the lease goes on",
        COURIER,
        "        if not self._ours():\n            return\n",
        "",
        (TEST_COURIER + "test_without_the_lease_nothing_is_touched",),
    ),
    Fault(
        "expiry",
        "R6",
        "a signal goes out after its expiry",
        BRIDGE,
        'return now >= parse(row["expires"]) or ',
        "return ",
        (
            TEST_BRIDGE + "test_a_signal_is_sent_until_its_expiry",
            TEST_BRIDGE + "test_a_waiting_opening_expires",
        ),
    ),
    Fault(
        "clock-set-back",
        "T4",
        "a signal that was decided in what is the future now goes out",
        BRIDGE,
        ' or parse(row["decided_at"]) > now + AHEAD',
        "",
        (
            "tests/faults/test_clock_jumps.py::"
            "test_a_signal_from_the_future_is_not_sent_when_the_clock_was_set_back",
        ),
    ),
    Fault(
        "booked-before-settled",
        "D4",
        "a report is settled before it is booked",
        BRIDGE,
        '        failpoint("ack_read")\n',
        '        failpoint("ack_read")\n        bridge.settle(report)\n',
        (TEST_BRIDGE + "test_a_report_that_cannot_be_booked_is_not_settled",),
    ),
    # --- messages and the advisor's health --------------------------------------------------------
    Fault(
        "hmac",
        "R6",
        "Torra believes a message whose signature does not fit",
        MESSAGES,
        " or not hmac.compare_digest(signature(body, key), tail[1]):",
        ":",
        (
            TEST_MESSAGES + "test_a_single_changed_byte_is_refused",
            TEST_MESSAGES + "test_another_key_is_a_forgery",
            FILES + "test_a_forged_heartbeat_is_no_life",
        ),
    ),
    Fault(
        "message-version",
        "R8",
        "a message of another version is read",
        MESSAGES,
        "if head and int(head[1]) != version:",
        "if False:",
        (
            TEST_MESSAGES + "test_another_version_is_told_before_anything_else",
            FILES + "test_mixed_versions_refuse_to_talk",
        ),
    ),
    Fault(
        "message-unknown-key",
        "R8",
        "a message with a key that nobody knows is read",
        MESSAGES,
        "    elif rest:\n",
        "    elif False:\n",
        (TEST_MESSAGES + "test_a_signed_text_that_is_no_message_is_refused",),
    ),
    Fault(
        "heartbeat",
        "R6",
        "signals go to an advisor that is dead",
        HEALTH,
        "if age is None or age > ALIVE_SECONDS:",
        "if age is None:",
        (
            FILES + "test_a_dead_advisor_is_seen_by_our_own_clock",
            FILES + "test_nothing_is_sent_to_a_dead_advisor_and_nothing_fires_late",
        ),
    ),
    Fault(
        "heartbeat-replayed",
        "R6",
        "old heartbeats that are put back count as life",
        HEALTH,
        "if last is None or found.n > last.n or found.gmt > last.gmt:",
        "if True:",
        (FILES + "test_heartbeats_that_are_put_back_are_no_life",),
    ),
    Fault(
        "advisor-clock",
        "T4",
        "signals go to an advisor whose clock is off",
        HEALTH,
        "if abs(heart.ahead) > OFFSET_TOLERANCE:",
        "if False:",
        (FILES + "test_clocks_that_differ_are_not_traded_on",),
    ),
    Fault(
        "real-money",
        "R1",
        "real money is traded without leave",
        HEALTH,
        "if beat.trade_mode == REAL and not channel.live:",
        "if False:",
        (FILES + "test_what_the_advisor_cannot_do_is_not_asked_of_it",),
    ),
    Fault(
        "books-first",
        "R7",
        "signals go out before the books were compared",
        COURIER,
        "    if line.ready or not found.ok:\n",
        "    if True:\n",
        (TEST_COURIER + "test_nothing_is_sent_before_the_books_were_compared",),
    ),
    Fault(
        "books-fresh",
        "R7",
        "books of another time are compared",
        COURIER,
        "if books is None or abs(now - books.at) > BOOKS_AGE:",
        "if books is None:",
        (TEST_COURIER + "test_books_of_another_time_are_no_comparison",),
    ),
    Fault(
        "stranger-reduces",
        "R7",
        "a position that nobody knows stops no openings",
        "torra/trading/findings.py",
        '"EXTERNAL", text, reduces=True)',
        '"EXTERNAL", text, reduces=False)',
        (TEST_COURIER + "test_a_strange_position_stops_openings_and_raises_one_alarm",),
    ),
    # --- a person's yes ---------------------------------------------------------------------------
    Fault(
        "approval-once",
        "D4",
        "a proposal that was decided can be approved again",
        APPROVAL,
        '    if row["state"] != "WAITING":\n',
        "    if False:\n",
        (
            TEST_APPROVAL + "test_a_second_click_is_an_error_and_sends_nothing",
            TEST_APPROVAL + "test_clicks_at_the_same_moment_send_one_signal",
        ),
    ),
    Fault(
        "approval-drift",
        "R1",
        "a proposal is sent at any price",
        APPROVAL,
        "        if _drifted(row, at.price):\n            return _end(",
        "        if False:\n            return _end(",
        (TEST_APPROVAL + "test_a_price_that_has_drifted_ends_it",),
    ),
    Fault(
        "approval-expiry",
        "R6",
        "a proposal is sent after its time",
        APPROVAL,
        '        if at.now >= parse(row["expires"]):\n            return _end(',
        "        if False:\n            return _end(",
        (TEST_APPROVAL + "test_a_proposal_ends_at_the_close_of_the_next_bar",),
    ),
    # --- the Expert Advisor -----------------------------------------------------------------------
    Fault(
        "ea-hmac",
        "R6",
        "the advisor executes a message whose signature does not fit",
        ADVISOR,
        "return SameSecret(StringSubstr(text, length + 8, 64), HmacHex(body));",
        "return true;",
        (EA_SOURCE + "test_a_damaged_or_forged_file_is_refused_unread",),
    ),
    Fault(
        "ea-dedupe",
        "D4",
        "the advisor does not look into its journal for a signal that comes again",
        ADVISOR,
        "if(AcknowledgeAgain(flight) || MarkedElsewhere(flight))",
        "if(MarkedElsewhere(flight))",
        (EA_RECOVERY + "test_a_signal_that_comes_again_gets_the_same_ack",),
    ),
    Fault(
        "ea-adopts",
        "D4",
        "the advisor does not look at the broker for its own order",
        ADVISOR,
        "   if(FindsItself(flight, s))\n      return;\n",
        "",
        (EA_RECOVERY + "test_an_order_that_is_at_the_broker_is_adopted",),
    ),
    Fault(
        "ea-marker",
        "D4",
        "the advisor sends without a marker of its own",
        ADVISOR,
        "   if(!Mark(flight))\n      return;",
        "   if(false)\n      return;",
        (EA_RECOVERY + "test_one_kill_at_any_point",),
    ),
    Fault(
        "ea-expiry",
        "R6",
        "the advisor executes what has expired",
        ADVISOR,
        "if(v.now >= s.expires)",
        "if(false)",
        (
            EA_ORDERS + "test_what_expired_while_the_advisor_was_dead_is_never_executed",
            EA_GUARDS + "test_each_guard_objects",
        ),
    ),
    Fault(
        "ea-version",
        "R8",
        "the advisor executes a signal of another version",
        ADVISOR,
        '   if(s.version != PROTOCOL)\n      return "version";',
        '   if(false)\n      return "version";',
        (EA_GUARDS + "test_each_guard_objects",),
    ),
    Fault(
        "ea-halt",
        "R4",
        "the advisor does not ask for HALT before an order leaves",
        ADVISOR,
        "   if(Halted())\n      return ANSWER_HALTED;\n",
        "",
        (EA_ORDERS + "test_halt_between_the_guards_and_the_order",),
    ),
    Fault(
        "ea-halt-guard",
        "R4",
        "the advisor's guards do not look for HALT",
        ADVISOR,
        "if(trade && v.halted)",
        "if(false)",
        (EA_GUARDS + "test_of_two_guards_the_earlier_one_speaks",),
    ),
)
