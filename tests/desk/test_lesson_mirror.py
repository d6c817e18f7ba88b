"""lessons.jsonl says what the database says, whatever became of the file."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from instance_database import Database
from tests.worlds.lesson_reviews import random_facts
from tests.worlds.stores import NOON, open_database
from torra.desk.memory.lesson_mirror import LessonMirror, compare, rebuild
from torra.errors import StoreUnavailable
from torra.home import LESSONS
from torra.lessons.lesson import Fresh, Lesson, LessonFacts, Words
from torra.lessons.reviews import rules_words


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = open_database(tmp_path)
    yield found
    found.close()


CHANCE = random.Random(9)


def close(database: Database) -> int:
    facts = random_facts(CHANCE)
    number = database.write_lesson(facts, rules_words(facts, facts.known_at))
    assert number is not None
    return number


def reword(database: Database, number: int) -> None:
    known = NOON + timedelta(hours=number)
    assert database.write_words(number, Words("Late\u2028 “so”.", "", "", f"model:{number}", known))


def lines(home: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (home / LESSONS).read_text("utf-8").split("\n") if line]


def told(home: Path) -> list[Lesson]:
    """Return the lessons as another program would read them."""
    facts: dict[int, LessonFacts] = {}
    words: dict[int, list[Words]] = {}
    for line in lines(home):
        number = line.pop("lesson")
        assert isinstance(number, int)
        if set(line) == {"words"}:
            words.setdefault(number, []).append(Words.of(line["words"]))  # type: ignore[arg-type]
        else:
            facts[number] = LessonFacts.of(line)
    return [Lesson(number, facts[number], tuple(words[number])) for number in sorted(facts)]


def equal(home: Path, database: Database) -> bool:
    return (
        told(home)
        == database.lessons_since(0, 0).lessons
        == sorted(database.lesson_list({}, limit=999), key=lambda lesson: lesson.number)
        and compare(home, database.lessons_since).same
    )


def test_a_home_without_lessons_has_no_file(tmp_path: Path, database: Database) -> None:
    LessonMirror(tmp_path, database.lessons_since).look()
    assert not (tmp_path / LESSONS).exists()
    assert compare(tmp_path, database.lessons_since).same


def test_new_rows_are_appended_facts_then_words(tmp_path: Path, database: Database) -> None:
    mirror = LessonMirror(tmp_path, database.lessons_since)
    mirror.look()
    first = close(database)
    mirror.look()
    before = (tmp_path / LESSONS).read_bytes()
    close(database)
    reword(database, first)
    mirror.look()
    mirror.look()
    assert (tmp_path / LESSONS).read_bytes().startswith(before)
    assert [set(line) == {"lesson", "words"} for line in lines(tmp_path)] == [
        False, True, False, True, True,
    ]  # fmt: skip
    assert equal(tmp_path, database)


def test_what_is_not_committed_is_not_there(tmp_path: Path, database: Database) -> None:
    mirror = LessonMirror(tmp_path, database.lessons_since)
    close(database)
    mirror.look()
    with suppress(RuntimeError), database.transaction():
        close(database)
        raise RuntimeError
    mirror.look()
    assert len(told(tmp_path)) == 1 and equal(tmp_path, database)


@pytest.mark.skipif(os.name != "posix", reason="Windows keeps no such modes")
def test_only_its_owner_may_read_it(tmp_path: Path, database: Database) -> None:
    former = os.umask(0)
    try:
        mirror = LessonMirror(tmp_path, database.lessons_since)
        mirror.look()  # nothing there yet: the first rows are appended
        close(database)
        mirror.look()
        assert (tmp_path / LESSONS).stat().st_mode & 0o777 == 0o600
        rebuild(tmp_path, database.lessons_since)
        assert (tmp_path / LESSONS).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(former)


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "half line": lambda text: text[:-9],
    "foreign line": lambda text: text + b'{"lesson": 99}\n',
    "no JSON": lambda text: b"\xff\x00\n" + text,
    "missing line": lambda text: text.split(b"\n", 1)[1],
    "line twice": lambda text: text + text.split(b"\n", 1)[0] + b"\n",
    "changed": lambda text: text.replace(b'"r": ', b'"r": 1', 1),
    "empty": lambda text: b"",
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("running", [True, False])
def test_a_file_that_differs_is_made_anew(
    tmp_path: Path, database: Database, fault: str, running: bool
) -> None:
    mirror = LessonMirror(tmp_path, database.lessons_since)
    for number in (close(database), close(database)):
        reword(database, number)
    mirror.look()
    path = tmp_path / LESSONS
    whole = path.read_bytes()
    path.write_bytes(FAULTS[fault](whole))
    assert not compare(tmp_path, database.lessons_since).same
    (mirror if running else LessonMirror(tmp_path, database.lessons_since)).look()
    assert equal(tmp_path, database)
    path.unlink()
    mirror.look()
    assert equal(tmp_path, database)


def test_the_order_of_lines_is_no_difference(tmp_path: Path, database: Database) -> None:
    close(database)
    close(database)
    rebuild(tmp_path, database.lessons_since)
    path = tmp_path / LESSONS
    turned = b"".join(reversed(path.read_bytes().splitlines(keepends=True)))
    path.write_bytes(turned)
    LessonMirror(tmp_path, database.lessons_since).look()
    assert path.read_bytes() == turned


def test_the_comparison_says_what_is_wrong(tmp_path: Path, database: Database) -> None:
    close(database)
    found = compare(tmp_path, database.lessons_since)
    assert found.sentence == f"{LESSONS} differs from the database (2 lines missing)"
    rebuild(tmp_path, database.lessons_since)
    assert compare(tmp_path, database.lessons_since).sentence == (
        f"{LESSONS} has the 1 lesson of the database"
    )
    with (tmp_path / LESSONS).open("ab") as file:
        file.write(b"half")
    found = compare(tmp_path, database.lessons_since)
    assert found.sentence == f"{LESSONS} differs from the database (1 line not of the database)"


def test_a_disk_that_fails_raises_nothing_and_is_made_up_for(
    tmp_path: Path, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    mirror = LessonMirror(tmp_path, database.lessons_since)
    (tmp_path / LESSONS).mkdir()
    close(database)
    mirror.look()
    mirror.look()
    assert caplog.text.count("behind the database") == 1
    (tmp_path / LESSONS).rmdir()
    mirror.look()
    assert equal(tmp_path, database)


def test_a_database_that_fails_raises_nothing(tmp_path: Path, database: Database) -> None:
    fails = True

    def since(facts: int, words: int) -> Fresh:
        if fails:
            raise StoreUnavailable("locked")
        return database.lessons_since(facts, words)

    mirror = LessonMirror(tmp_path, since)
    close(database)
    mirror.look()
    assert not (tmp_path / LESSONS).exists()
    fails = False
    mirror.look()
    assert equal(tmp_path, database)


def test_it_equals_the_database_after_any_history(
    tmp_path: Path, database: Database, scaled: Callable[..., int]
) -> None:
    chance = random.Random(12)
    mirror = LessonMirror(tmp_path, database.lessons_since)
    open_words: list[int] = []
    path = tmp_path / LESSONS
    for _ in range(scaled(2_000, 80)):
        what = chance.choice(("close", "words", "look", "look", "restart", "damage"))
        if what == "close":
            open_words.append(close(database))
        elif what == "words" and open_words:
            reword(database, open_words.pop(chance.randrange(len(open_words))))
        elif what == "damage" and path.exists():
            path.write_bytes(path.read_bytes()[: chance.randint(0, path.stat().st_size)])
        elif what == "restart":
            mirror = LessonMirror(tmp_path, database.lessons_since)
        elif what == "look":
            mirror.look()
    mirror.look()
    assert told(tmp_path) == database.lessons_since(0, 0).lessons


def test_two_words_of_one_lesson_stay_two_lines(tmp_path: Path, database: Database) -> None:
    number = close(database)
    reword(database, number)
    twin = replace(database.lessons_by([number])[0].words[0], author="other")
    assert database.write_words(number, twin)
    rebuild(tmp_path, database.lessons_since)
    assert len(lines(tmp_path)) == 4 and equal(tmp_path, database)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe")
@pytest.mark.parametrize("before", [True, False], ids=["with lessons", "before the first"])
def test_a_pipe_of_its_name_holds_nobody(tmp_path: Path, database: Database, before: bool) -> None:
    if before:
        close(database)
    os.mkfifo(tmp_path / LESSONS)
    mirror = LessonMirror(tmp_path, database.lessons_since)
    mirror.look()
    close(database)
    mirror.look()
    assert (tmp_path / LESSONS).is_file() and equal(tmp_path, database)
