"""The offline scorer: bounded, deterministic, loaded once, from any thread, without a download."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra.news import lexicon as news_lexicon
from torra.news.lexicon import FALLING, RISING, score


@pytest.mark.parametrize(
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
        ("Nothing to see", 0.0),
        ("", 0.0),
        ("SELL-OFF", -0.5),
        ("金 €", 0.0),
    ],
)
def test_words_are_counted(text: str, expected: float) -> None:
    assert score(text) == pytest.approx(expected)


@given(st.text(max_size=300))
def test_every_text_has_a_score(text: str) -> None:
    assert -1.0 < score(text) < 1.0
    assert score(text) == score(text)


@given(st.lists(st.sampled_from(sorted(RISING)), min_size=1, max_size=20))
def test_one_more_word_says_more(words: list[str]) -> None:
    assert score(" ".join(words)) == len(words) / (len(words) + 1)
    assert score(" ".join([*words, "plunges"])) < score(" ".join(words))


def test_no_word_means_both() -> None:
    assert not RISING & FALLING


def test_the_dictionary_is_read_once_by_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    load = news_lexicon._load

    def counted() -> object:
        loads.append(1)
        return load()

    monkeypatch.setattr(news_lexicon, "_load", counted)
    monkeypatch.setattr(news_lexicon, "_dictionary", None)
    news_lexicon._tone.cache_clear()
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.append(score("heavy losses"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [-0.5] * 8 and loads == [1]


def test_a_fresh_process_loads_it_with_warnings_as_errors_and_without_network() -> None:
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
