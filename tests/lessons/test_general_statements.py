"""A review tells of one trade: what holds of other trades, of markets or of the future falls."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.cases import cases
from tests.lessons.test_checked_words import said
from tests.worlds.lesson_reviews import SEEN, random_facts, true_sentence
from torra.lessons.checked_words import OUTCOME
from torra.lessons.general_statements import is_general
from torra.lessons.reviews import rules_words

KEPT = (
    "It lost 1.02 R at the stop.", "The break failed within 14 bars of M15.", "Late and thin.",
    "The move came on thin volume.", "Costs made it a loss.", "Its costs were high.",
    "The breaks of the session failed.", "The long was against the trend.", "Volume was thin.",
    "Gold was quiet in the London session.", "The range held and the break failed.",
    "Wait for volume before a long in a range.", "Wait until volume agrees with the break.",
    "See whether the next long in a range fails alike.", "Heed the trend before the next long.",
    "One trade, not a rule: see whether fills repeat that.", "One trade proves little.",
    "Its result is too small to learn from.", "Patience would have helped.", "Thin volume.",
    "It never reached support.", "A loss of 1.02 R.",
    "The spread widened before it.", "Momentum faded as the session ended.", "It had no trend.",
    "The wide stops were hit early.", "It was in a market with sharp moves.",
    "Ask more of a break.",
    "The market turned after the news.", "Support broke, and sellers came.", "It was early.",
    "The plan's stop was near.", "Check the spread before a long in a quiet market.",
    "The levels held, the break did not.",
    "The RSI, the ADX and the Bollinger bands disagreed.", "Avoid a long against the trend.",
)  # fmt: skip
"""Of this trade, in the past; and requests to look, which state nothing."""

DROPPED = (
    "Such a market rises.", "A market like this rises.", "Markets rise after news.",
    "A range breaks in the end.", "Breaks fail in a range.", "A break fails in a range.",
    "Price falls after the news.",
    "Thin volume means a false break.", "The next long wins.", "The next long in a range won.",
    "It will fall again.", "It may rise soon.", "Price would rise from here.",
    "Trades in a range lost.", "Openings against the trend failed.", "Setups like it failed.",
    "Losers come in a range.", "Winners run.", "Losses came in quiet sessions.",
    "The trend always wins.", "A quiet market usually turns.", "It often failed in a range.",
    "Such a break failed.", "Support holds in a quiet session.", "Gold falls in a range.",
    "Buyers win at support.", "Sellers turn at resistance.", "They fail in a range.",
    "The trend is strong in the London session.", "Breaks are false in a range.",
    "A long against the trend loses.", "Momentum fades, price turns.",
    "It lost, because ranges break late.",
    "It lost and markets like this fall.", "Volume was thin, so the break fails.",
    "It fell, as a market in a range does.", "Heed that markets rise after news.",
    "See how ranges break.", "Wait, such a market rises.", "Price always came back.",
    "Patience pays.", "A person can see it.", "Maybe it rises.", "News moves the market.",
    "The market that rose falls.", "Headlines move prices.", "A wide spread costs more.",
    "Strong trends hold.", "All breaks fail.",
    "A long in a range never works.", "It works in a range.", "Entries in a range were late.",
    "Exits at resistance were right.", "The range that held breaks soon.",
)  # fmt: skip
"""Of other trades or markets, or of the future: true or not, one trade does not show it."""


@cases("text", KEPT)
def test_what_is_said_of_the_one_trade_stands(text: str) -> None:
    assert said(text) == (text, ())


@cases("text", DROPPED)
def test_what_is_said_of_more_than_the_one_trade_falls(text: str) -> None:
    kept, flags = said(text)
    assert kept == "" and len(flags) == 1
    assert is_general(text)


def test_the_corpus_is_large_and_most_of_it_falls_for_this_alone() -> None:
    assert len(set(KEPT)) >= 30 and len(set(DROPPED)) >= 45
    alone = [text for text in DROPPED if said(text)[1] == (OUTCOME,)]
    assert len(alone) > 0.8 * len(DROPPED)


def test_the_sentences_around_a_general_one_stand() -> None:
    assert said("Volume was thin. Such a market rises. It was early.") == (
        "Volume was thin. It was early.", (OUTCOME,)
    )  # fmt: skip


def test_no_word_of_the_rules_and_no_true_sentence_is_general(scaled: Callable[..., int]) -> None:
    chance = random.Random(61)
    for _ in range(scaled(4_000, 200)):
        facts = random_facts(chance)
        words = rules_words(facts, SEEN.closed_at)
        told = (words.setup, words.outcome, words.rule, true_sentence(chance, facts))
        assert not [text for text in told if is_general(text.replace(facts.symbol, "symbol"))]
