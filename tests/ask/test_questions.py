"""Questions are read for what they mean: intents, symbols, timeframes, follow-ups, requests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agents.features import rows_of
from torra.ask.answer import LONGEST
from torra.ask.reading import INTENTS, REFUSED, Question, canonical, read
from torra.errors import ConfigError

HERE = Path(__file__).parent
SETS = {
    name: rows_of(HERE / f"{name}.csv") for name in ("questions", "follow_ups", "requests", "own")
}


def asks(question: Question) -> tuple[str, str, str]:
    return question.intent, " ".join(question.symbols), question.timeframe


def share(rows: list[dict[str, str]]) -> float:
    return sum(read(row["question"]).intent == row["intent"] for row in rows) / len(rows)


def test_the_sets_are_whole() -> None:
    counts = {name: len(rows) for name, rows in SETS.items()}
    assert counts == {"questions": 200, "follow_ups": 40, "requests": 500, "own": 20}
    assert {row["intent"] for row in SETS["questions"]} == {*INTENTS}


def test_intents_are_right_for_most_questions() -> None:
    questions = SETS["questions"]
    public = [row for row in questions if row["source"]]
    assert share(questions) >= 0.95 and len(public) == 60 and share(public) >= 0.85
    assert share(SETS["own"]) >= 0.9


def test_symbols_and_timeframes_are_those_of_the_question() -> None:
    wrong = [
        row["number"]
        for row in (*SETS["questions"], *SETS["own"])
        if asks(read(row["question"]))[1:] != (row["symbols"], row["timeframe"])
    ]
    assert wrong == ["182"]  # a triangle "on the quarter hour chart"


@pytest.mark.parametrize("row", SETS["follow_ups"], ids=lambda row: row["number"])
def test_a_follow_up_takes_what_it_does_not_name(row: dict[str, str]) -> None:
    question = read(row["follow_up"], before=read(row["question"]))
    assert asks(question) == (row["intent"], row["symbols"], row["timeframe"])


def test_requests_are_refused_by_their_words() -> None:
    refused = Counter(
        row["language"] for row in SETS["requests"] if read(row["text"]).intent == REFUSED
    )
    everything = Counter(row["language"] for row in SETS["requests"])
    assert sum(refused.values()) >= 400 and refused["en"] >= 0.9 * everything["en"]


def test_names_are_canonical_however_a_broker_or_a_person_writes_them() -> None:
    for name in ("XAUUSD.m", "gold", "XAUUSDm", "Gold.i", "XAU/USD".replace("/", "")):
        assert canonical(name) == "XAUUSD"
    assert canonical("zarjpy") == "ZARJPY" and canonical("SYM7") == "SYM7"
    assert read("how is SYM7.pro?", ["SYM7"]).symbols == ("SYM7",)


@pytest.mark.parametrize("text", ["", "  \n", "x" * (LONGEST + 1)])
def test_a_question_has_an_end(text: str) -> None:
    with pytest.raises(ConfigError, match="500"):
        read(text)
