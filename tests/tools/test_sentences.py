"""Of a model's reply only what code has said before can stand."""

from __future__ import annotations

import random

import pytest

from torra.tools.contract import fact
from torra.tools.sentences import Sentence, choice_of, text_of

FACTS = [
    fact(f"book.{n}", float(n), f"fact {n}", "2026-01-05T00:00:00Z", "books") for n in range(6)
]
SENTENCES = [
    Sentence(id=f"s{number}", text=one.sentence, cites=(one.id,))
    for number, one in enumerate(FACTS, 1)
]
CAUSES = {("s1", "s2"), ("s4", "s5")}


def test_an_honest_reply_stands_in_its_order_with_its_causes() -> None:
    choice = choice_of({"say": ["s3", "s1", "s2"], "because": [["s1", "s2"]]}, SENTENCES, CAUSES, 8)
    assert choice.say == ("s3", "s1", "s2")
    assert text_of(SENTENCES, choice) == ["Fact 2 is 2.", "Fact 0 is 0. The reason: Fact 1 is 1."]


@pytest.mark.parametrize(
    "reply",
    [None, 7, "s1", [], {}, {"say": "s1"}, {"say": [["s1"], {"id": "s1"}, None, "s99", "S1"]},
     {"say": ["s3"], "because": [["s1", "s2"]]},
     {"say": ["s1", "s2"], "because": ["s1", ["s2", "s1"]]}],
)  # fmt: skip
def test_nothing_stands_that_code_does_not_hold(reply: object) -> None:
    choice = choice_of(reply, SENTENCES, CAUSES, 8)
    assert {*choice.say} <= {one.id for one in SENTENCES}
    assert choice.because == ()


def test_ten_thousand_random_replies_say_only_sentences_of_code() -> None:
    dice = random.Random(69)
    parts = ["s1", "s2", "s5", "s6", "s0", "", None, 3.5, ["s1"], "buy now", {"s": "s1"}]
    own = {one.text for one in SENTENCES}
    for _ in range(10_000):
        say = dice.choices(parts, k=dice.randrange(12))
        pairs = [dice.choices(parts, k=dice.randrange(4)) for _ in range(4)]
        choice = choice_of({"say": say, "because": pairs}, SENTENCES, CAUSES, 3)
        assert len(choice.say) <= 3
        for line in text_of(SENTENCES, choice):
            first, _, reason = line.partition(" The reason: ")
            assert first in own
            assert not reason or reason in own
