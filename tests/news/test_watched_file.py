"""A file that changes: the last good reading stands, and whoever asks for it touches no disk."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import cases
from torra.errors import ConfigError
from torra.news import watched_file
from torra.news.watched_file import Unreachable, WatchedFile, read_bytes


class Numbers:
    """A reader of a file of numbers; `meanwhile` is done while it reads."""

    def __init__(self) -> None:
        self.count = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self, path: Path) -> list[int]:
        self.count += 1
        text = read_bytes(path, 100, "write it").decode()
        self.meanwhile()
        try:
            return [int(word) for word in text.split()]
        except ValueError:
            raise ConfigError(f"{path}: no number") from None


def write(path: Path, text: str) -> None:
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "numbers", "1")
    return tmp_path / "numbers"


@pytest.fixture
def numbers() -> Numbers:
    return Numbers()


@pytest.fixture
def file(path: Path, numbers: Numbers) -> WatchedFile[list[int]]:
    return WatchedFile(path, numbers)


def test_only_a_changed_file_is_read(
    path: Path, numbers: Numbers, file: WatchedFile[list[int]]
) -> None:
    assert file.latest() == file.refresh() == ([1], None) and numbers.count == 1
    write(path, "2")
    assert file.latest().content == [1] and file.refresh().content == [2]
    state = path.stat()
    path.write_text("3")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    assert file.refresh().content == [3] and numbers.count == 3


def test_the_last_good_reading_stands_while_the_file_is_broken_or_gone(
    path: Path, file: WatchedFile[list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    file.refresh()
    write(path, "half")
    for _ in range(2):
        content, trouble = file.refresh()
        assert content == [1] and "no number" in str(trouble)
    path.unlink()
    content, trouble = file.refresh()
    assert content == [1] and isinstance(trouble, Unreachable)
    assert isinstance(trouble.__cause__, FileNotFoundError)
    write(path, "2")
    assert file.refresh() == ([2], None)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3 and "last good reading" in lines[0] and "read again" in lines[2]


def test_a_reading_that_failed_once_is_tried_again_though_nothing_changed(
    path: Path, file: WatchedFile[list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    file.refresh()
    write(path, "2")

    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "sharing violation")

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING, "torra"):
        patch.setattr(watched_file, "read_regular", refuse)
        for _ in range(3):
            assert file.refresh().content == [1] and file.latest().trouble is not None
    assert len(caplog.records) == 1 and "sharing violation" in caplog.text
    assert file.refresh() == ([2], None)


@cases(
    ("first", "text", "grows", "content"),
    [
        (False, "2", False, 1),
        (False, "half", False, 1),
        (False, "2", True, 2),
        (True, "2", False, 2),
    ],
)
def test_what_changes_while_it_is_read_is_read_again(
    path: Path, numbers: Numbers, first: bool, text: str, grows: bool, content: int
) -> None:
    """Half a file is none, and no broken one; a first one and one that grows are used as read."""
    write(path, "1")
    file = WatchedFile(path, numbers, grows=grows)
    if not first:
        file.refresh()
    write(path, text)
    numbers.meanwhile = lambda: write(path, "3")
    assert file.refresh() == ([content], None)
    numbers.meanwhile = lambda: None
    assert file.refresh() == ([3], None)


def test_whoever_asks_waits_for_no_reading_that_hangs_at_a_dead_drive(
    path: Path, numbers: Numbers, file: WatchedFile[list[int]]
) -> None:
    file.refresh()
    write(path, "2")
    hangs, end = threading.Event(), threading.Event()
    numbers.meanwhile = lambda: hangs.set() or end.wait(30)
    reader = threading.Thread(target=file.refresh)
    reader.start()
    assert hangs.wait(10) and file.latest().content == [1] and reader.is_alive()
    end.set()
    reader.join(10)
    assert file.latest().content == [2]


def test_a_file_that_never_was_good_is_an_error_each_time(
    path: Path, file: WatchedFile[list[int]]
) -> None:
    for text in ("half", "another"):
        write(path, text)
        with pytest.raises(ConfigError, match="no number"):
            file.latest()
    write(path, "4")
    assert file.latest().content == [4]


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(bytes(101))
    for name, words in (
        ("", "no file: write it"), ("absent", "not there"), ("pipe", "not there or no file"),
        ("a\0b", "no name of a file"), ("long", "larger than"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            WatchedFile(tmp_path / name, Numbers()).latest()


def test_threads_share_a_file(path: Path, file: WatchedFile[list[int]]) -> None:
    counts: list[int] = []

    def look() -> None:
        counts.extend(len(file.refresh().content) for _ in range(200))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for extra in range(20):
        write(path.with_suffix(".new"), "1 2" if extra % 2 else "1")
        path.with_suffix(".new").replace(path)
    for thread in threads:
        thread.join()
    assert {*counts} <= {1, 2} and len(counts) == 800 and len(file.refresh().content) == 2
