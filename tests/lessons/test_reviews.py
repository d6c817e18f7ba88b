"""What the rules say of a closed trade: from facts alone, for a trader, and every number a fact."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.features import COMPONENTS
from tests.cases import cases
from tests.worlds.lesson_reviews import LOST, MARKET, NOW, random_facts, random_situation
from torra.exhibits.lesson_words import headline, verdict_on_veto
from torra.lessons.checked_words import checked
from torra.lessons.lesson import LessonFacts
from torra.lessons.reviews import AUTHOR, PART_BYTES, rules_words


def test_a_loss_says_what_spoke_against_it_and_how_far_it_was_ahead() -> None:
    words = rules_words(LOST, NOW)
    assert words.setup == (
        "Long XAUUSD M15 in a range, London session; the last break of structure spoke against "
        "it; volume thin."
    )
    assert words.outcome == "Lost 1.02 R in 3 h 30 min at the stop; it was 0.4 R ahead at best."
    assert words.rule == (
        "One trade, not a rule: heed the last break of structure before the next long in a range."
    )
    assert (words.author, words.known_at, words.flags) == (AUTHOR, NOW, ())
    weekend = replace(LOST, situation=replace(MARKET, session="CLOSED"))
    assert ", at the weekend;" in rules_words(weekend, NOW).setup


@cases(("refused", "who"), [("NEGATIVE_EV", "judge"), ("CROWDED", "risk officer"), ("", "gate")])
def test_a_veto_is_told_of_whoever_made_it(refused: str, who: str) -> None:
    vetoed = replace(LOST, kind="vetoed", profit=None, refused=refused)
    words = rules_words(vetoed, NOW)
    assert words.setup.startswith(f"The {who} refused a long of XAUUSD M15")
    assert words.outcome.endswith(f": the {who} avoided a loss.")
    assert verdict_on_veto(vetoed) == f"What the {who} avoided: −1.02\u00a0R"
    by = f" by the {who}:" if refused else ""
    assert headline(vetoed) == (f"Vetoed{by} long XAUUSD M15: it would have come to −1.02\u00a0R.")


@cases(
    ("change", "said"),
    [
        ({"kind": "vetoed"}, "On paper it would have lost 1.02 R in 3 h 30 min at the stop: the "
         "gate avoided a loss."),
        ({"kind": "vetoed", "outcome": "win", "r": 1.9, "reason": "TARGET"}, "On paper it would "
         "have won 1.90 R in 3 h 30 min at the target: the gate gave up a gain."),
        ({"outcome": "win", "r": 1.9, "reason": "TARGET", "mae_r": -0.3},
         "Won 1.90 R in 3 h 30 min at the target; it was 0.3 R behind at worst."),
        ({"outcome": "scratch", "r": 0.04, "reason": "BY_HAND", "mae_r": 0.0, "mfe_r": 0.04},
         "A scratch of 0.04 R in 3 h 30 min by hand."),
        ({"r": 0.2, "reason": "CLOSED"}, "Won 0.20 R in 3 h 30 min by a close, and costs made it a "
         "loss; it was 0.4 R ahead at best."),
        ({"hours_held": 0.0, "mfe_r": 0.0}, "Lost 1.02 R within one bar at the stop; it was never "
         "ahead."),
        ({"outcome": "scratch", "r": -0.04, "reason": "STOPPED"}, "A scratch of -0.04 R in 3 h 30 "
         "min at the stop; it was 0.4 R ahead at best; it was 1.0 R behind at worst."),
        ({"r": -4e9}, "It ended as a loss."),
    ],
)  # fmt: skip
def test_the_outcome_is_told_as_a_trader_would(change: dict[str, Any], said: str) -> None:
    assert rules_words(replace(LOST, **change), NOW).outcome == said


@cases(
    ("change", "said"),
    [
        ({"kind": "vetoed"}, "One refusal, not a rule: refusing it was right here."),
        ({"reason": "BY_HAND"}, "a person ended it"),
        ({"evolution": "Unknown"}, "no plan"),
        ({"outcome": "scratch", "r": 0.0}, "too small to learn from"),
        ({"mfe_r": 1.4}, "well ahead before it failed"),
        ({"slipped_r": 0.6}, "its fill alone"),
        ({"situation": None}, "see whether the next long fails alike"),
        ({"situation": None, "mfe_r": 0.0}, "wrong from the start"),
        ({"outcome": "win", "r": 2.0}, "luck had a part"),
        ({"outcome": "win", "r": 3.5, "mae_r": -0.1}, "paid more than was planned"),
        ({"outcome": "win", "r": 2.0, "mae_r": -0.1, "side": "SHORT"}, "what spoke for it held"),
        ({"outcome": "win", "r": 2.0, "mae_r": -0.1}, "it went as planned"),
    ],
)
def test_the_rule_is_of_one_trade(change: dict[str, Any], said: str) -> None:
    rule = rules_words(replace(LOST, **change), NOW).rule
    assert said in rule
    assert rule.startswith("One ") and "not a rule" in rule


@cases(
    ("regime", "side", "said"),
    [
        ("trend_up", "LONG", "with the trend"),
        ("trend_up", "SHORT", "against the trend"),
        ("quiet", "SHORT", "in a quiet market"),
    ],
)
def test_a_trend_is_told_as_the_side_saw_it(regime: str, side: Any, said: str) -> None:
    facts = replace(LOST, side=side, situation=replace(MARKET, regime=regime))
    assert said in rules_words(facts, NOW).setup


def test_an_opening_without_a_market_says_so() -> None:
    words = rules_words(replace(LOST, situation=None), NOW)
    assert words.setup == "Long XAUUSD M15; the market at its opening is not known."


def test_words_of_any_trade_are_facts_short_and_without_codes(scaled: Callable[[int], int]) -> None:
    chance = random.Random(41)
    for _ in range(scaled(20_000)):
        facts = random_facts(chance)
        words = rules_words(facts, NOW)
        assert words == rules_words(LessonFacts.of(facts.as_dict()), NOW)  # the same facts again
        assert checked(words, facts) == words
        for part in (words.setup, words.outcome, words.rule):
            assert 0 < len(part.encode()) <= PART_BYTES
            assert part.endswith(".") and part.isascii() and ".." not in part
        for code in (facts.sid, "_", *COMPONENTS):
            assert code not in words.text
        assert set(re.findall(r"\b[A-Z]{2,}\b", words.text)) <= {facts.symbol, "RSI", "CCI", "MACD"}


def test_a_very_long_symbol_leaves_every_part_within_its_length() -> None:
    chance = random.Random(5)
    for _ in range(200):
        strongest = tuple((name, chance.choice((-1, 1))) for name in COMPONENTS)
        market = replace(random_situation(chance), strongest=strongest)
        facts = replace(random_facts(chance), symbol="ABCDEFGHIJKLMNOPQRSTUVWX", situation=market)
        words = rules_words(facts, NOW)
        assert max(len(p.encode()) for p in (words.setup, words.outcome, words.rule)) <= PART_BYTES


def test_words_outlive_numbers_that_are_none() -> None:
    for value in (float("inf"), float("-inf"), float("nan"), 1e300, -1e300):
        facts = replace(
            LOST, mae_r=value, mfe_r=value, slipped_r=value, hours_held=value, surprise=value
        )
        words = rules_words(facts, NOW)
        assert checked(words, facts) == words
        assert "nan" not in words.text and "inf" not in words.text


@pytest.mark.parametrize("kind", ["trade", "vetoed"])
def test_no_event_or_flag_breaks_the_words(kind: Any) -> None:
    market = replace(MARKET, triage=("gap", "unheard_of"), events=("macro", "supply"))
    words = rules_words(replace(LOST, kind=kind, situation=market), NOW)
    assert "an opening gap" in words.setup and "unheard" not in words.setup
