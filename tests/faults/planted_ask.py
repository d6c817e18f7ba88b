"""Planted faults of Ask: whose facts are cited, whose session is carried, what a model costs."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, replace, reword
from tests.faults.planting import Table, fault

ASK: Final[Table] = {
    "Y5": {
        "ask-others": fault(
            "an answer about one symbol cites another's position",
            At("torra.ask.planning:without", replace("(match[1] or match[2]) not in others", "1")),
            "test_with_one_symbol_here_the_other_is_named_and_not_cited",
        ),
        "ask-session": fault(
            "a follow-up carries the symbols of another person's session",
            At(
                "torra.store.research.questions:questions",
                reword("person = ? AND session", "? <> 'x' AND session"),
            ),
            "test_a_session_is_its_persons_own",
        ),
        "ask-not-stored": fault(
            "a question about a symbol that is not there is answered with others",
            At(
                "torra.ask.answering",
                replace("read.intent not in WITHOUT_SYMBOL", "read.intent == REFUSED"),
            ),
            "test_nothing_stored_about_a_symbol_is_said_and_nothing_else",
        ),
        "ask-secret": fault(
            "a secret in a question reaches the vendor and the store",
            At("torra.ask.reading:masked", replace("SECRETS.sub(MASK, text)", "text")),
            "test_a_secret_in_a_question_reaches_no_vendor_and_no_store",
        ),
        "ask-hour": fault(
            "a person has answers by a model without end",
            At(
                "torra.store.research.questions:reserve_model",
                replace("of_person >= hourly", "False"),
            ),
            "test_a_person_has_ten_answers_an_hour",
        ),
        "ask-crowd": fault(
            "any number of answers by a model is under way",
            At(
                "torra.store.research.questions:reserve_model",
                replace("under_way >= at_once", "False"),
            ),
            "test_two_are_under_way_at_most_and_the_rest_have_rules",
        ),
        "ask-comment": fault(
            "a model's comment with a figure is shown",
            At("torra.ask.guard:comment_of", replace("LETTERS.fullmatch(text)", "True")),
            "test_comments_with_figures_symbols_directions_or_advice_are_dropped",
        ),
    },
}
