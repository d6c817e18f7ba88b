"""The lessons as a file of lines, lessons.jsonl in the home: for people and their own programs.

A line is one JSON object: {"lesson": 7, ...facts}, or {"lesson": 7, "words": {...}}. The database
is the truth. New rows are appended after they were committed; at each start of a desk, and wherever
the file is not as it was left, it is compared with the database and, where it differs, made anew as
a whole. Nothing reads it back, no tick waits for it, and no backup holds it.

A file that cannot be written is said once in the log, and tried again at the next look.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from torra import owner_only
from torra.errors import StoreUnavailable
from torra.home import LESSONS
from torra.lessons.lesson import Fresh
from torra.regular_files import NotRegular, read_regular
from torra.whole_files import write_whole

log = logging.getLogger("torra")

Since = Callable[[int, int], Fresh]
"""What is newer than two row numbers (LessonStore.lessons_since)."""

NOTHING: Final = (0, 0)

ABSENT: Final = -1
"""The size of what is no file."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How the file stands to the database: lines that are missing from it, and lines too many."""

    lessons: int
    missing: int
    foreign: int

    @property
    def same(self) -> bool:
        """Whether it says what the database says."""
        return not (self.missing or self.foreign)

    @property
    def sentence(self) -> str:
        """The same for a person."""
        if self.same:
            return f"{LESSONS} has the {_count(self.lessons, 'lesson')} of the database"
        told = [
            f"{_count(number, 'line')} {what}"
            for number, what in ((self.missing, "missing"), (self.foreign, "not of the database"))
            if number
        ]
        return f"{LESSONS} differs from the database ({', '.join(told)})"


class LessonMirror:
    """The file of one home."""

    def __init__(self, home: Path, since: Since) -> None:
        self._path = home / LESSONS
        self._since = since
        self._read = NOTHING
        self._size: int | None = None
        self._complained = False

    def look(self) -> None:
        """Append what is new, or make the file anew where it is not as it was left."""
        try:
            if self._size is None or self._size != size_of(self._path):
                self._begin()
            else:
                self._append(self._since(*self._read))
        except (OSError, StoreUnavailable) as error:
            self._size = None
            if not self._complained:
                log.warning("%s is behind the database: %s", LESSONS, error)
            self._complained = True
        else:
            self._complained = False

    def _begin(self) -> None:
        fresh = self._since(*NOTHING)
        lines = list(lines_of(fresh))
        if not compared(self._path, fresh).same:
            _write(self._path, lines)
        self._note(fresh)

    def _append(self, fresh: Fresh) -> None:
        lines = list(lines_of(fresh))
        if lines and self._size == ABSENT:
            _write(self._path, lines)
            self._note(fresh)
        elif lines:
            # With its rights from the first moment: the file may be gone since the look.
            opener = partial(os.open, mode=owner_only.FILE)
            with open(self._path, "ab", opener=opener) as file:
                file.write(b"".join(lines))
            self._note(fresh)

    def _note(self, fresh: Fresh) -> None:
        self._read = fresh.facts, fresh.words_number
        self._size = size_of(self._path)


def compare(home: Path, since: Since) -> Compared:
    """Return how the file of a home stands to its database; raises OSError, StoreUnavailable."""
    return compared(home / LESSONS, since(*NOTHING))


def rebuild(home: Path, since: Since) -> None:
    """Make the file of a home anew; raises OSError, StoreUnavailable."""
    _write(home / LESSONS, list(lines_of(since(*NOTHING))))


def compared(path: Path, fresh: Fresh) -> Compared:
    """Return how a file stands to what a database has; the order of its lines does not matter."""
    try:
        found = Counter(read_regular(path).splitlines(keepends=True))
    except (FileNotFoundError, NotRegular):  # a pipe would hold its reader for ever
        found = Counter()
    wanted = Counter(lines_of(fresh))
    return Compared(len(fresh.lessons), (wanted - found).total(), (found - wanted).total())


def lines_of(fresh: Fresh) -> Iterator[bytes]:
    """Yield the lines of what is new: a lesson, its words, and later words of earlier lessons."""
    for lesson in fresh.lessons:
        yield _line({"lesson": lesson.number, **lesson.facts.as_dict()})
        for words in lesson.words:
            yield _line({"lesson": lesson.number, "words": words.as_dict()})
    for number, words in fresh.words:
        yield _line({"lesson": number, "words": words.as_dict()})


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; ABSENT where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ABSENT
    return found.st_size if stat.S_ISREG(found.st_mode) else ABSENT


def _line(told: dict[str, object]) -> bytes:
    # ASCII: no letter of a line may end it for another reader, as U+2028 does.
    return json.dumps(told, allow_nan=False).encode() + b"\n"


def _write(path: Path, lines: list[bytes]) -> None:
    write_whole(path, b"".join(lines), mode=owner_only.FILE)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
