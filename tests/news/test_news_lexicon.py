"""The offline scorer: bounded, deterministic, of our own words, from any thread, alone."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.worlds.rule_outcomes import judged_headlines
from torra.news.lexicon import (
    ALONE,
    FALLING,
    FILE,
    RISING,
    SECTIONS,
    TOKEN,
    WORDS,
    read_words,
    score,
)

AGREEING = 0.97
"""Share of the judged headlines whose sign is the judge's, at least."""

BOTH_WAYS = 0.02
"""Share of them that may have the opposite sign."""


@cases(
    ("text", "expected"),
    [
        ("Gold rallies", 0.5),
        ("Gold plunges", -0.5),
        ("Gold rallies, shares soar, oil climbs", 0.75),
        ("Dollar falls, gold rises", 0.0),
        ("Company reports bankruptcy", -0.5),
        ("A profitable year", 0.5),
        ("No losses at the bank", 0.5),
        ("Prices didn't fall", 0.5),
        ("Prices didn’t fall", 0.5),
        ("Gold is not really strong", -0.5),
        ("The bank’s losses", -0.5),
        ("Nothing to see", 0.0),
        ("", 0.0),
        ("SELL-OFF", -0.5),
        ("金 €", 0.0),
    ],
)
def test_words_are_counted(text: str, expected: float) -> None:
    assert score(text) == pytest.approx(expected)


@cases(
    ("text", "expected"),
    [
        ("Unemployment rises", -0.5),
        ("A fall in jobless claims", 0.5),
        ("Treasury yields rise", 0.0),
        ("Inflation cools, then drops", -0.5),
        ("Bullion climbs as real yields fall", 0.5),
        ("Recession fears ease", 0.5),
        ("Losses mount", -0.5),
        ("Outflows", -0.5),
        ("Hopes fade", -0.5),
        ("Hopes grow", 0.5),
        ("Payroll data lifts gold", 0.5),
        ("The Fed lifts interest rates", 0.0),
        ("Company raises its outlook", 0.5),
        ("Company cuts its outlook", -0.5),
        ("The Fed raises rates", 0.0),
        ("The Fed cuts rates", 0.0),
    ],
)
def test_the_subject_decides_what_rises_means(text: str, expected: float) -> None:
    assert score(text) == pytest.approx(expected)


@cases(
    ("text", "expected"),
    [
        ("No sign of weakness", 0.5),
        ("Not a word. Gold rises", 0.5),
        ("Gold fails to rise", -0.5),
        ("Gold fails to hold above 2,700", -0.5),
        ("Congress averts shutdown", 0.5),
        ("Gold pares gains", -0.5),
        ("Gold gives up its gains", -0.5),
        ("Gold falls despite strong demand", -0.5),
        ("Gold falls from a record high", -0.5),
        ("Gold at record high", 0.5),
        ("Lira falls to a record low", -2 / 3),
        ("Up to 40 banks", 0.0),
        ("Gold gains on weak US jobs data", 0.5),
        ("Gold climbs after weak jobs data", 0.5),
        ("Dollar falls as yields drop after soft data", -0.5),
        ("Gold gains on weak data but dollar soars", 2 / 3),
        ("No gains on weak data", -0.5),
        ("Fed on hold after weak data", -0.5),
        ("Gold rises on soft dollar", 0.5),
        ("Soft dollar lifts gold", 0.5),
        ("Strong dollar weighs on gold", -0.5),
        ("Oil pares losses", 0.5),
        ("Gold pares most of its earlier steep losses", 0.5),
        ("Gold pares gains to end lower", -2 / 3),
        ("Stocks trim losses, close higher", 2 / 3),
        ("Gold extends gains", 0.5),
        ("Gold extends decline to a third day", -0.5),
        ("Stocks extend losing streak", -0.5),
        ("Stocks open lower", -0.5),
        ("Lower costs boost profit", 0.75),
        ("Lower guidance", -0.5),
        ("Company lowers its outlook", -0.5),
        ("The Fed lowers rates", 0.0),
        ("Nikkei ends in red", -0.5),
        ("Banks in the red on strong franc", -0.5),
        ("Tanker waits in the Red Sea", 0.0),
        ("Gold slips as bonds slide", -0.5),
    ],
)
def test_words_around_it_turn_a_word_or_leave_it_out(text: str, expected: float) -> None:
    assert score(text) == pytest.approx(expected)


@cases(
    ("text", "expected"),
    [
        ("Rally on Wall Street fades", 0.0),
        ("Rally on Wall Street stumbles", 0.0),
        ("Rally on weak data fades", 0.0),
        ("Rally after Fed fades", 0.0),
        ("Rally amid AI hype fades", 0.0),
        ("Optimism on AI fades", 0.0),
        ("Slump on Wall Street ends as stocks rebound", 0.0),
        ("Ban on crypto lifted", 0.0),
        ("Bitcoin falls on Monday then surges to record high", 0.25),
        ("Stocks rise after Fed decision then tumble", 0.0),
        ("Stocks slide as yields jump then rebound", 0.0),
        ("Rally in stocks such as Nvidia fades", 0.0),
        ("Gains on Wall Street fade", 0.0),
        ("Gold falls after rising to a record high", 0.0),
        ("Gold gains on falling dollar", 0.5),
    ],
)
def test_a_reason_swallows_no_main_verb(text: str, expected: float) -> None:
    assert score(text) == pytest.approx(expected)


@cases(
    ("text", "expected"),
    [
        ("IBM invests in Red Hat", 0.0),
        ("Stake in Red Bull racing sold", 0.5),
        ("Firm back in the black after years in the red", 0.0),
        ("Firm no longer in the red", 0.5),
        ("Nikkei in red, Hang Seng flat", -0.5),
    ],
)
def test_red_is_a_loss_at_the_end_of_a_part(text: str, expected: float) -> None:
    assert score(text) == pytest.approx(expected)


@cases(
    ("text", "expected"),
    [
        ("ECB lowers inflation forecast", 0.0),
        ("Company lowers deficit target", 0.0),
        ("Company lowers loss forecast", 0.0),
        ("Company raises loss forecast", -2 / 3),
        ("Company raises cost forecast", 0.0),
        ("Moody's cuts debt outlook", 0.0),
        ("Company cuts weak outlook", -0.5),
    ],
)
def test_what_stands_before_a_target_decides_what_its_cut_means(text: str, expected: float) -> None:
    assert score(text) == pytest.approx(expected)


def test_a_person_who_judged_headlines_agrees() -> None:
    judged = judged_headlines()
    signs = [(score(text) > 0) - (score(text) < 0) for text, _ in judged]
    pairs = [(sign, judgement) for sign, (_, judgement) in zip(signs, judged, strict=True)]
    assert len(pairs) > 200
    assert sum(sign == judgement for sign, judgement in pairs) >= AGREEING * len(pairs)
    assert sum(sign * judgement < 0 for sign, judgement in pairs) <= BOTH_WAYS * len(pairs)


@given(st.text(max_size=300))
def test_every_text_has_a_score(text: str) -> None:
    assert -1.0 < score(text) < 1.0
    assert score(text) == score(text)


@given(st.lists(st.sampled_from([*sorted(WORDS), ",", "."]), max_size=40))
def test_every_text_of_the_list_has_a_score(words: list[str]) -> None:
    assert -1.0 < score(" ".join(words).replace("_", " ")) < 1.0


@given(st.lists(st.sampled_from(sorted(RISING)), min_size=1, max_size=20))
def test_one_more_word_says_more(words: list[str]) -> None:
    assert score(" ".join(words)) == len(words) / (len(words) + 1)
    assert score(" ".join([*words, "plunges"])) < score(" ".join(words))


def test_no_word_means_both() -> None:
    assert RISING and FALLING and not RISING & FALLING
    with pytest.raises(ValueError, match="gains stands in rising and in falling"):
        read_words("[rising]\ngains\n[falling]\ngains")
    with pytest.raises(ValueError, match="raising_hopes: no section"):
        read_words("[raising_hopes]\n")


def test_every_word_can_be_met_and_every_section_is_there() -> None:
    assert set(WORDS.values()) == set(SECTIONS)
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


def test_many_threads_score_alike() -> None:
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.append(score("heavy losses"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [-0.5] * 8


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
