"""Planted faults of files that are not Python, by their text: the Expert Advisor."""

from __future__ import annotations

from typing import Final

from tests.faults.planting import Table, Text, fault

ADVISOR: Final = "mql5/TorraBridge.mq5"

TEXTS: Final[Table] = {
    "D4": {
        "ea-dedupe": fault(
            "the advisor does not look into its journal for a signal that comes again",
            Text(
                ADVISOR,
                "if(AcknowledgeAgain(flight) || MarkedElsewhere(flight))",
                "if(MarkedElsewhere(flight))",
            ),
            "test_a_signal_that_comes_again_gets_the_same_ack",
        ),
        "ea-adopts": fault(
            "the advisor does not look at the broker for its own order",
            Text(ADVISOR, "   if(FindsItself(flight, s))\n      return;\n", ""),
            "test_an_order_that_is_at_the_broker_is_adopted",
        ),
        "ea-marker": fault(
            "the advisor sends without a marker of its own",
            Text(ADVISOR, "   if(!Mark(flight))\n      return;", "   if(false)\n      return;"),
            "test_one_kill_at_any_point",
        ),
        "ea-filling": fault(
            "the advisor sends with another filling mode after a time-out",
            Text(
                ADVISOR,
                "if(result.retcode != TRADE_RETCODE_INVALID_FILL ||",
                "if((result.retcode != TRADE_RETCODE_INVALID_FILL &&\n"
                "       result.retcode != TRADE_RETCODE_TIMEOUT) ||",
            ),
            Text(
                ADVISOR,
                "answer == ANSWER_PLACED || answer == ANSWER_UNCLEAR)\n      StartLooking",
                "answer == ANSWER_PLACED)\n      StartLooking",
            ),
            "test_the_advisor_sends_once_with_each_mode_after_10030_alone",
        ),
    },
    "M9": {
        "ea-one-file": fault(
            "the advisor does not escape a symbol's name in the name of a file",
            Text(ADVISOR, "bool plain = IsLetterOrDigit(bytes[i])", "bool plain = bytes[i] > 0"),
            "test_their_bars_and_their_order_flow_are_read",
        ),
    },
    "R4": {
        "ea-halt": fault(
            "the advisor does not ask for HALT before an order leaves",
            Text(ADVISOR, "   if(Halted())\n      return ANSWER_HALTED;\n", ""),
            "test_halt_between_the_guards_and_the_order",
        ),
        "ea-halt-guard": fault(
            "the advisor's guards do not look for HALT",
            Text(ADVISOR, "if(trade && v.halted)", "if(false)"),
            "test_of_two_guards_the_earlier_one_speaks",
        ),
    },
    "R6": {
        "ea-hmac": fault(
            "the advisor executes a message whose signature does not fit",
            Text(
                ADVISOR,
                "return SameSecret(StringSubstr(text, length + 8, 64), HmacHex(body));",
                "return true;",
            ),
            "test_a_damaged_or_forged_file_is_refused_unread",
        ),
        "ea-expiry": fault(
            "the advisor executes what has expired",
            Text(ADVISOR, "if(v.now >= s.expires)", "if(false)"),
            "test_what_expired_while_the_advisor_was_dead_is_never_executed",
            "test_the_edge_of_each_guard",
        ),
    },
}
