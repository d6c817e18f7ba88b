"""Files on their way: whole or not there, one owner at a time, and no fault that halves one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.doubles.folder_steps import FaultyDisk, files
from tests.faults import kills
from tests.worlds.channels import KEY, NOW, HandClock, order
from torra.bridges.torra import drop_folder
from torra.bridges.torra.drop_folder import DropFolder, file_name
from torra.bridges.torra.messages import DeskState, Signal, decode, encode, signal_of
from torra.errors import BridgeUnavailable
from torra.time_limit import Run, at_once

NAME = file_name(1042, "T7K3Q9ZB2M4XA")


def signed(number: int) -> bytes:
    return encode(signal_of(order(number), channel="main", account=1), KEY)


def sharing(number: int) -> PermissionError:
    """Return what Windows raises while another program has the file open."""
    error = PermissionError(errno.EACCES, "The process cannot access the file")
    error.winerror = number  # type: ignore[attr-defined]
    return error


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "main"


def open_folder(root: Path, run: Run = at_once, **more: Any) -> DropFolder:
    options: dict[str, Any] = {"monotonic": HandClock().monotonic, "sleep": lambda _: None, **more}
    return DropFolder(root, run=run, **options)


@pytest.fixture
def folder(root: Path) -> DropFolder:
    made = open_folder(root)
    made.prepare()
    return made


@cases(
    ("seq", "sid"), [(-1, "T1"), (1, ""), (1, "../x"), (1, "T 1"), (10**10, "T1"), (1, "T" * 32)]
)
def test_a_name_is_a_name(seq: int, sid: str) -> None:
    assert file_name(1, "T1") == "0000000001_T1.json"
    with pytest.raises(ValueError, match="no name"):
        file_name(seq, sid)


@pytest.mark.parametrize("links", [True, False])
def test_a_name_is_never_replaced(
    root: Path, folder: DropFolder, monkeypatch: Any, links: bool
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    folder.publish(NAME, b"first")
    with pytest.raises(BridgeUnavailable):
        folder.publish(NAME, b"second")
    assert (root / "inbox" / NAME).read_bytes() == b"first"
    assert files(root) == [f"inbox/{NAME}"]


def test_leftovers_of_an_earlier_life_go_but_not_the_advisors(
    root: Path, folder: DropFolder
) -> None:
    for name in ("torra.1.json.ab", "ea.1.json"):
        (root / "tmp" / name).write_text("half", encoding="ascii")
    folder.prepare()
    assert files(root) == ["tmp/ea.1.json"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no way to sync a folder")
def test_the_system_is_asked_to_put_the_text_and_then_its_name_on_the_disk(
    root: Path, folder: DropFolder, monkeypatch: Any
) -> None:
    synced: list[tuple[int, bool]] = []
    sync = os.fsync

    def noting(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, (root / "inbox" / NAME).exists()))
        sync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    folder.publish(NAME, b"1234")
    text, names = (root / "inbox" / NAME).stat(), (root / "inbox").stat()
    assert synced == [(text.st_ino, False), (names.st_ino, True)]


def test_an_answer_on_its_way_to_the_archive_is_found(root: Path, folder: DropFolder) -> None:
    (root / "ack" / f"{NAME}.settling").write_text("x", encoding="ascii")
    assert folder.where(NAME) == "ack"


# --- promise D6: the full disk --------------------------------------------------------------------


def refusal(folder: DropFolder, text: bytes) -> str:
    try:
        folder.publish(NAME, text)
    except BridgeUnavailable as error:
        return str(error)
    return ""


def test_a_full_disk_at_any_step_halves_nothing(tmp_path: Path, record_property: Any) -> None:
    text, failed = signed(1), 0
    for fails in range(1, 100):
        root = tmp_path / str(fails)
        open_folder(root).prepare()
        disk = FaultyDisk(fails)
        folder = open_folder(root, disk)
        said = refusal(folder, text)
        if said:
            failed += 1
            assert "is full: make room" in said
            left = files(root)
            assert left in ([], [f"inbox/{NAME}"])
            if left:  # only the folder's own flush came after it
                assert (root / "inbox" / NAME).read_bytes() == text
            if not folder.where(NAME):
                folder.publish(NAME, text)
        assert (root / "inbox" / NAME).read_bytes() == text
        assert files(root) == [f"inbox/{NAME}"]
        if disk.steps < fails:
            break
    assert failed == fails - 1 > 15
    record_property("seen", f"{failed} steps, each failed once, no partial file")


def test_a_full_disk_leaves_the_state_file_as_it_was(root: Path, folder: DropFolder) -> None:
    folder.write_state("torra.json", b"old")
    for fails in range(1, 20):
        disk = FaultyDisk(fails)
        try:
            open_folder(root, disk).write_state("torra.json", b"new text")
        except BridgeUnavailable:
            assert files(root) == ["state/torra.json"]
            assert (root / "state/torra.json").read_bytes() == b"old"
        else:
            break
    assert fails > 5
    assert (root / "state/torra.json").read_bytes() == b"new text"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "is full: make room"),
        (errno.EDQUOT, "is full: make room"),
        (errno.EROFS, "cannot be written: let this user"),
        (errno.EACCES, "cannot be written: let this user"),
        (errno.ESTALE, "is not there: mount"),
        (errno.EIO, "look at its disk or share"),
    ],
)
def test_every_fault_comes_with_its_remedy(
    root: Path, folder: DropFolder, number: int, words: str
) -> None:
    slept: list[float] = []
    disk = FaultyDisk(1, OSError(number, os.strerror(number)), lasts=99)
    with pytest.raises(BridgeUnavailable, match=words) as caught:
        open_folder(root, disk, sleep=slept.append).publish(NAME, b"x")
    assert str(root) in str(caught.value) and slept == []
    assert files(root) == []


# --- Windows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "times"), [(5, 1), (32, 9), (5, 10), (32, 1000)])
def test_a_file_that_others_have_open_is_waited_for(
    root: Path, folder: DropFolder, number: int, times: int
) -> None:
    slept: list[float] = []
    clean = FaultyDisk()
    open_folder(root, clean).publish(file_name(1, "T1"), b"x")
    step = clean.steps - 1  # the rename into inbox/; the folder's flush is the last
    windows = open_folder(root, FaultyDisk(step, sharing(number), times), sleep=slept.append)
    if times < 10:
        windows.publish(NAME, b"x")
        assert (root / "inbox" / NAME).exists()
    else:
        with pytest.raises(BridgeUnavailable, match="another program keeps"):
            windows.publish(NAME, b"x")
        assert files(root) == [f"inbox/{file_name(1, 'T1')}"]
    assert len(slept) == min(times, 9)
    assert all(0.025 <= pause <= 0.075 for pause in slept)


# --- promise D5: no half file ---------------------------------------------------------------------


def test_no_file_is_ever_read_by_half(
    root: Path, scaled: Callable[..., int], record_property: Any
) -> None:
    """Whoever looks after any step, with forty bytes written at a time, sees what is whole."""
    reads = 0

    def look() -> None:
        nonlocal reads
        places = {"inbox": Signal, "state": DeskState}
        for kind, path in ((k, p) for name, k in places.items() for p in (root / name).glob("*")):
            decode(path.read_bytes(), kind, KEY)
            reads += 1

    def run(step: Callable[[], Any]) -> Any:
        assert isinstance(step, partial)
        if step.func is os.write:
            handle, data = step.args
            step = partial(os.write, handle, data[:40])
        result = step()
        look()
        return result

    folder = open_folder(root, run)
    folder.prepare()
    for number in range(scaled(1_000, 20)):
        state = DeskState(n=number, gmt=number, channel="main", state="ACTIVE")
        folder.write_state("torra.json", encode(state, KEY))
        name = file_name(number, order(number).sid)
        folder.publish(name, signed(number))
        if number % 3:
            assert folder.recall(name)
        (root / "inbox" / name).unlink(missing_ok=True)
    record_property("seen", f"0 bad of {reads:,} reads")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("point", ["tmp_half", "tmp_done", "renamed"])
def test_a_kill_at_any_point_leaves_all_or_nothing(
    root: Path, folder: DropFolder, point: str
) -> None:
    assert kills.await_end(kills.begin(partial(folder.publish, NAME, signed(1)), point))
    published = [f"inbox/{NAME}"] if point == "renamed" else []
    assert folder.where(NAME) == ("inbox" if published else "")
    assert len(files(root)) == 1
    folder.prepare()
    assert files(root) == published
    if published:
        assert (root / "inbox" / NAME).read_bytes() == signed(1)


# --- races ----------------------------------------------------------------------------------------


def test_recall_and_claim_have_one_winner(root: Path, folder: DropFolder) -> None:
    """The Advisor claims before each step in turn; in two steps both would win somewhere."""
    inbox, work, winners = root / "inbox", root / "work", []
    for at in range(1, 10):
        name, left = file_name(at, f"T{at}"), at
        (inbox / name).write_bytes(b"x")

        def run(step: Callable[[], Any], name: str = name) -> Any:
            nonlocal left
            left -= 1
            if not left:
                with suppress(FileNotFoundError):
                    (inbox / name).rename(work / name)
            return step()

        recalled = open_folder(root, run).recall(name)
        claimed = (work / name).exists()
        assert recalled == (root / "cancelled" / name).exists() == (not claimed)
        assert not (inbox / name).exists() and not folder.recall(name)
        winners.append(recalled)
        if left > 0:
            break
    assert winners[0] is False and winners[-1] is True


# --- answers and old files ------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes among files")
def test_what_is_no_file_is_put_aside_and_the_channel_goes_on(
    root: Path, folder: DropFolder
) -> None:
    """A pipe that nobody writes to would be waited for without end."""
    other = file_name(1043, "T7K3Q9ZB2M4XB")
    os.mkfifo(root / "ack" / NAME)
    (root / "ack" / other).write_bytes(b"an answer")
    assert folder.acks() == [NAME, other]
    assert folder.read(f"ack/{NAME}", 100) == b""
    assert folder.reject(NAME, at_once=True)
    assert folder.acks() == [other] and folder.read(f"ack/{other}", 100) == b"an answer"


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes among files")
def test_a_halt_of_any_kind_halts_the_channel(root: Path, folder: DropFolder) -> None:
    path, target = root / "control" / "HALT", root.parent / "elsewhere"
    path.symlink_to(target)
    assert folder.halted()
    with pytest.raises(BridgeUnavailable, match="HALT is there"):
        folder.publish(NAME, b"x")
    folder.set_halt("by a person: x")
    assert not target.exists(), "nothing is written through a link"
    folder.set_halt(None)
    assert not folder.halted()


def test_a_halt_that_lies_elsewhere_halts_the_channel_too(root: Path, tmp_path: Path) -> None:
    halt = tmp_path / "HALT"
    folder = open_folder(root, halts=[tmp_path / "nothing", halt])
    folder.prepare()
    halt.touch()
    with pytest.raises(BridgeUnavailable, match="nothing is sent"):
        folder.publish(NAME, b"x")
    assert files(root / "inbox") == files(root / "tmp") == []


def test_nothing_is_known_of_a_folder_that_is_not_there(root: Path, folder: DropFolder) -> None:
    root.rename(root.with_name("elsewhere"))
    for ask in (
        lambda: folder.where(NAME),
        lambda: folder.recall(NAME),
        folder.acks,
        folder.claimed,
        folder.check,
        lambda: folder.publish(NAME, b"x"),
        lambda: folder.write_state("torra.json", b"x"),
    ):
        with pytest.raises(BridgeUnavailable, match="is not there"):
            ask()
    assert folder.read("state/ea.json", 100) is None


def test_old_files_go_after_thirty_days(root: Path, folder: DropFolder) -> None:
    for where in ("arch", "cancelled", "expired", "bad", "done", "inbox"):
        for name, days in (("old.json", 30.1), ("young.json", 29.9)):
            (root / where / name).write_bytes(b"x")
            age = NOW.timestamp() - days * 86_400
            os.utime(root / where / name, (age, age))
    folder.prune(NOW)
    left = [name for name in files(root) if name.endswith("/old.json")]
    assert left == ["done/old.json", "inbox/old.json"]
    assert len(files(root)) == 8


def test_the_halt_file_is_there_before_its_text(
    root: Path, folder: DropFolder, monkeypatch: Any
) -> None:
    folder.set_halt("somebody said so")
    assert folder.halted()
    assert (root / "control/HALT").read_text(encoding="utf-8") == "somebody said so\n"
    with pytest.raises(BridgeUnavailable, match="HALT is there"):
        folder.publish(NAME, b"x")
    assert files(root) == ["control/HALT"]
    folder.set_halt(None)
    folder.set_halt(None)
    assert not folder.halted()

    def full(path: Path, _: str) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(drop_folder, "put_new", full)
    folder.set_halt("the disk is full")
    assert folder.halted()


def test_a_halt_that_cannot_be_set_is_an_error(root: Path, folder: DropFolder) -> None:
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(OSError, match="HALT"):
        folder.set_halt("now")
