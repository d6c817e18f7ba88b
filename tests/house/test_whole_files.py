"""A file is written whole or not at all, over no other unless it may, with no rights too many."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torra.whole_files import write_whole


def refuse(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def make_file(path: Path) -> None:
    path.write_bytes(b"old")


def make_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("there", [make_file, make_dangling_link])
def test_a_name_that_is_taken_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: Callable[[Path], None], links: bool
) -> None:
    path = tmp_path / "it"
    there(path)
    before = path.lstat()
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(FileExistsError):
        write_whole(path, b"new", replace=False)
    assert path.lstat() == before and list(tmp_path.iterdir()) == [path]
    write_whole(path, b"new")
    assert path.read_bytes() == b"new" and not path.is_symlink()


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_free_name_is_given_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    write_whole(tmp_path / "it", b"new", replace=False)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


@pytest.mark.parametrize(
    ("owner", "step", "replace"),
    [(os, "fsync", True), (Path, "replace", True), (os, "fsync", False)],
)
def test_a_write_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, replace: bool
) -> None:
    (tmp_path / "old").write_bytes(b"old")
    monkeypatch.setattr(owner, step, refuse)
    with pytest.raises(PermissionError):
        write_whole(tmp_path / ("old" if replace else "new"), b"new", replace=replace)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_the_rights_are_narrow_from_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, sync = [], os.fsync

    def look(handle: int) -> None:
        seen.append(os.fstat(handle).st_mode & 0o777)
        sync(handle)

    monkeypatch.setattr(os, "fsync", look)
    before = os.umask(0)
    try:
        write_whole(tmp_path / "it", b"secret", mode=0o600)
    finally:
        os.umask(before)
    assert seen[0] == (tmp_path / "it").stat().st_mode & 0o777 == 0o600
