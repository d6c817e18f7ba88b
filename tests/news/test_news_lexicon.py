"""The offline scorer: bounded, deterministic, of our own words, from any thread, alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.worlds.rule_outcomes import judged_headlines
from torra.news.lexicon import (
    ALONE,
    FILE,
    MARKS,
    TOKEN,
    WORDS,
    score,
)

AGREEING = 0.97
"""Share of the judged headlines whose sign is the judge's, at least."""

BOTH_WAYS = 0.02
"""Share of them that may have the opposite sign."""


HEADLINES = """
# words are counted
+0.500 Gold rallies
-0.500 Gold plunges
+0.750 Gold rallies, shares soar, oil climbs
 0.000 Dollar falls, gold rises
-0.500 Company reports bankruptcy
+0.500 A profitable year
+0.500 No losses at the bank
+0.500 Prices didn't fall
+0.500 Prices didn’t fall
-0.500 Gold is not really strong
-0.500 The bank’s losses
 0.000 Nothing to see
 0.000
-0.500 SELL-OFF
 0.000 金 €
# the subject decides what rises means
-0.500 Unemployment rises
+0.500 A fall in jobless claims
 0.000 Treasury yields rise
-0.500 Inflation cools, then drops
+0.500 Bullion climbs as real yields fall
+0.500 Recession fears ease
-0.500 Losses mount
-0.500 Outflows
-0.500 Hopes fade
+0.500 Hopes grow
+0.500 Payroll data lifts gold
 0.000 The Fed lifts interest rates
+0.500 Company raises its outlook
-0.500 Company cuts its outlook
 0.000 The Fed raises rates
 0.000 The Fed cuts rates
# words around it turn a word or leave it out
+0.500 No sign of weakness
+0.500 Not a word. Gold rises
-0.500 Gold fails to rise
-0.500 Gold fails to hold above 2,700
+0.500 Congress averts shutdown
-0.500 Gold pares gains
-0.500 Gold gives up its gains
-0.500 Gold falls despite strong demand
-0.500 Gold falls from a record high
+0.500 Gold at record high
-0.667 Lira falls to a record low
 0.000 Up to 40 banks
+0.500 Gold gains on weak US jobs data
+0.500 Gold climbs after weak jobs data
-0.500 Dollar falls as yields drop after soft data
+0.667 Gold gains on weak data but dollar soars
-0.500 No gains on weak data
-0.500 Fed on hold after weak data
+0.500 Gold rises on soft dollar
+0.500 Soft dollar lifts gold
-0.500 Strong dollar weighs on gold
+0.500 Oil pares losses
+0.500 Gold pares most of its earlier steep losses
-0.667 Gold pares gains to end lower
+0.667 Stocks trim losses, close higher
+0.500 Gold extends gains
-0.500 Gold extends decline to a third day
-0.500 Stocks extend losing streak
-0.500 Stocks open lower
+0.750 Lower costs boost profit
-0.500 Lower guidance
-0.500 Company lowers its outlook
 0.000 The Fed lowers rates
-0.500 Nikkei ends in red
-0.500 Banks in the red on strong franc
 0.000 Tanker waits in the Red Sea
-0.500 Gold slips as bonds slide
# a reason swallows no main verb
 0.000 Rally on Wall Street fades
 0.000 Rally on Wall Street stumbles
 0.000 Rally on weak data fades
 0.000 Rally after Fed fades
 0.000 Rally amid AI hype fades
 0.000 Optimism on AI fades
 0.000 Slump on Wall Street ends as stocks rebound
 0.000 Ban on crypto lifted
+0.250 Bitcoin falls on Monday then surges to record high
 0.000 Stocks rise after Fed decision then tumble
 0.000 Stocks slide as yields jump then rebound
 0.000 Rally in stocks such as Nvidia fades
 0.000 Gains on Wall Street fade
 0.000 Gold falls after rising to a record high
+0.500 Gold gains on falling dollar
# red is a loss at the end of a part
 0.000 IBM invests in Red Hat
+0.500 Stake in Red Bull racing sold
 0.000 Firm back in the black after years in the red
+0.500 Firm no longer in the red
-0.500 Nikkei in red, Hang Seng flat
# a word before a target decides what its cut means
 0.000 ECB lowers inflation forecast
 0.000 Company lowers deficit target
 0.000 Company lowers loss forecast
-0.667 Company raises loss forecast
 0.000 Company raises cost forecast
 0.000 Moody's cuts debt outlook
-0.500 Company cuts weak outlook
"""
"""The score of a headline, and what the headlines below a line with # show."""


@cases("line", [line for line in HEADLINES.splitlines() if line and not line.startswith("#")])
def test_a_headline_has_its_score(line: str) -> None:
    assert score(line[7:]) == pytest.approx(float(line[:6]), abs=5e-4)


def test_a_person_who_judged_headlines_agrees() -> None:
    judged = judged_headlines()
    signs = [(score(text) > 0) - (score(text) < 0) for text, _ in judged]
    pairs = [(sign, judgement) for sign, (_, judgement) in zip(signs, judged, strict=True)]
    assert len(pairs) > 200
    assert sum(sign == judgement for sign, judgement in pairs) >= AGREEING * len(pairs)
    assert sum(sign * judgement < 0 for sign, judgement in pairs) <= BOTH_WAYS * len(pairs)


ANY_WORDS = st.lists(st.sampled_from([*sorted(WORDS), ",", "."]), max_size=40)


@given(st.text(max_size=300) | ANY_WORDS.map(lambda words: " ".join(words).replace("_", " ")))
def test_every_text_has_a_score(text: str) -> None:
    assert -1.0 < score(text) < 1.0
    assert score(text) == score(text)


@given(
    st.lists(
        st.sampled_from([word for word in WORDS if WORDS[word] == "rising" and "_" not in word]),
        min_size=1,
        max_size=20,
    )
)
def test_one_more_word_says_more(words: list[str]) -> None:
    assert score(" ".join(words)) == len(words) / (len(words) + 1)
    assert score(" ".join([*words, "plunges"])) < score(" ".join(words))


def test_no_word_means_both() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    words = [word for line in lines if not line.startswith(("#", "[")) for word in line.split()]
    assert sorted(words) == sorted(WORDS)


def test_every_word_can_be_met_and_every_section_is_there() -> None:
    assert set(WORDS.values()) == set(MARKS)
    for word, section in WORDS.items():
        assert TOKEN.findall(word.replace("_", " ")) == word.split("_"), word
        if section in ALONE:
            alone = score(word.replace("_", " "))
            assert alone == ALONE[section] / 2, word


def test_the_list_says_where_its_words_come_from() -> None:
    head = FILE.read_text(encoding="utf-8").partition("[")[0]
    assert "Source: chosen and written for Torra by its authors" in head
    assert "No other list of words was copied" in head
    assert "Licence" in head


def test_a_fresh_process_scores_with_warnings_as_errors_and_without_network() -> None:
    code = (
        "import socket\n"
        "def no(*a, **k): raise SystemExit('network')\n"
        "socket.socket.connect = no\n"
        "from torra.news.lexicon import score\n"
        "print(score('heavy losses'))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "-0.5", done.stderr[-500:]
