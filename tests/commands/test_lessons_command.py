"""`torra lessons` and `torra lessons show`: lessons in words and as JSON, and clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from agents.contracts import ModelUnavailable
from tests.worlds import stores, told_lessons
from tests.worlds.hands import torra
from tests.worlds.homes import profile_file
from tests.worlds.reviews import Answers, answer
from torra.lessons.lesson import LessonFacts, LessonText


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with told_lessons.desk(tmp_path) as made:
        told_lessons.write(made.database)
        made.database.enqueue_signal({**stores.opening("TOPEN000000"), "state": "PENDING"})
    return tmp_path


def text(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout.replace("\u00a0", " ")


def listed(home: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text(torra(home, "lessons", "--json", *words)))
    return found


def sids(home: Path, *words: str) -> list[str]:
    return [one["sid"] for one in listed(home, *words)["lessons"]]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("--search", "breakout"), ["TLOST000000"]),
        (("--side", "short"), ["TVETO000000"]),
        (("--symbol", "eurusd"), ["TWON0000000", "TLOST000000"]),
        (("--author", told_lessons.MODEL), ["TLOST000000"]),
        (("--limit", "1"), ["TVETO000000"]),
    ],
)
def test_a_list_is_narrowed(home: Path, words: tuple[str, ...], kept: list[str]) -> None:
    assert sids(home, *words) == kept
    assert listed(home, *words)["stored"] == 3


def test_an_export_has_all_of_them_one_a_line(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.commands.lessons.AT_ONCE", 2)
    path = tmp_path / "out.jsonl"
    assert text(torra(home, "lessons", "--limit", "1", "--export", str(path))) == (
        f"3 lessons in {path}.\n"
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == listed(home)["lessons"]
    facts = {name: lines[2][name] for name in told_lessons.LOST.as_dict()}
    assert LessonFacts.of(facts) == told_lessons.LOST
    assert LessonText.of(lines[2]["words"][0]) == told_lessons.words(told_lessons.LOST)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("lessons", "show", "TNONE"), "there is no trade TNONE"),
        (("lessons", "show", "TOPEN000000"), "no lesson yet: it is PENDING"),
        (("lessons", "--export", "/dev/null/x"), "cannot be written"),
        (("lessons", "--limit", "0"), "0 is not in the range"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    home: Path, words: tuple[str, ...], says: str
) -> None:
    result = torra(home, *words)
    assert result.exit_code == 2 and says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["torra.db", "prices.json", "access.json", "torra.db-wal"])
def test_no_export_writes_over_what_a_home_lives_by(home: Path, name: str) -> None:
    kept = (home / "torra.db").read_bytes()
    result = torra(home, "lessons", "--export", str(home / "." / name))
    assert result.exit_code == 2 and "a file that Torra lives by" in result.stderr
    assert (home / "torra.db").read_bytes() == kept
    assert torra(home, "lessons", "--export", str(home / "mine.jsonl")).exit_code == 0


def asks(home: Path, monkeypatch: pytest.MonkeyPatch, answers: Answers) -> None:
    """Let a profile ask a model of its trades, and `answers` be who answers."""
    agents = {"provider": "anthropic", "memory": {"review": "model"}}
    profile_file(home, {"agents": agents}, "demo_approve")
    monkeypatch.setattr("torra.desk.memory.reviews.open_models", lambda *_, **__: answers)


def test_a_model_is_asked_now_and_its_words_stand_with_the_rules(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = answer(symbol="EURUSD", setup="A long in a range.", rule="It lost 99 R.")
    asks(home, monkeypatch, Answers(said))
    told = text(torra(home, "lessons", "show", "TWON0000000", "--ask"))
    assert "A long in a range." in told and "99 R" not in told
    assert "anthropic:claude-sonnet-5-5, " in told and ", cost $0.0040" in told
    assert "left out, because of: a number that is no fact of the trade" in told
    again = torra(home, "lessons", "show", "TWON0000000", "--ask")
    assert again.exit_code == 2
    assert "anthropic:claude-sonnet-5-5 wrote of it already" in again.stderr


def test_a_model_that_may_not_be_asked_or_does_not_answer_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = torra(home, "lessons", "show", "TWON0000000", "--ask")
    assert refused.exit_code == 2 and "set agents.memory.review to model" in refused.stderr
    asks(home, monkeypatch, Answers(ModelUnavailable("timeout")))
    silent = torra(home, "lessons", "show", "TWON0000000", "--ask")
    assert silent.exit_code == 1 and "the model did not answer in time" in silent.stderr
    vetoed = torra(home, "lessons", "show", "TVETO000000", "--ask")
    assert vetoed.exit_code == 2 and "about trades alone" in vetoed.stderr
