"""A screenshot from a file: whole, fresh, of sensible size, or a reason why there is none."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cases import cases
from torra.chart import screenshot as chart_file
from torra.chart.screenshot import (
    LEAST_PIXELS,
    MOST_BYTES,
    MOST_PIXELS,
    Picture,
    check_template,
    read_picture,
)
from torra.errors import ConfigError

CLOSE = datetime(2026, 11, 20, 12, 15, tzinfo=UTC)
BAR = timedelta(minutes=15)
NOW = CLOSE + timedelta(seconds=4)


@cache
def drawn(
    kind: str = "PNG", width: int = 640, height: int = 480, progressive: bool = False
) -> bytes:
    noise = np.random.default_rng(5).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize((width, height)).save(
        file, kind, compress_level=1, progressive=progressive
    )
    return file.getvalue()


PNG, JPEG = drawn(), drawn("JPEG")


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that writes a file of an age and reads it as a picture."""

    def write_and_read(data: bytes | None, written: datetime = NOW, now: datetime = NOW) -> Picture:
        if data is not None:
            path = tmp_path / "XAUUSD-M15.png"
            path.write_bytes(data)
            os.utime(path, (written.timestamp(), written.timestamp()))
        return read(tmp_path, now)

    return write_and_read


def read(folder: Path, now: datetime = NOW) -> Picture:
    return read_picture(
        f"{folder}/{{symbol}}-{{timeframe}}.png",
        symbol="XAUUSD",
        timeframe="M15",
        close_time=CLOSE,
        now=now,
    )


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@cases(
    ("written", "now", "reason"),
    [
        (CLOSE - BAR, NOW, "stale"),
        (CLOSE - BAR + timedelta(seconds=1), NOW, ""),
        (CLOSE, NOW, ""),
        (NOW + timedelta(seconds=2), NOW, ""),
        (NOW + timedelta(seconds=3), NOW, "stale"),
        (CLOSE + BAR, CLOSE + 2 * BAR, ""),
        (CLOSE + BAR + timedelta(seconds=1), CLOSE + 2 * BAR, "stale"),
        (datetime(1971, 1, 1, tzinfo=UTC), NOW, "stale"),
        (datetime(2200, 1, 1, tzinfo=UTC), NOW, "stale"),
    ],
)
def test_only_a_picture_of_this_bar_is_fresh(
    place: Callable[..., Any], written: datetime, now: datetime, reason: str
) -> None:
    assert place(PNG, written, now).reason == reason


def segment(marker: bytes, length: bytes) -> bytes:
    """Return a JPEG of one segment with so long a body, and its end."""
    return JPEG[:2] + marker + length + bytes(2000) + b"\xff\xd9"


HUGE = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
SIDES = [
    (LEAST_PIXELS - 1, 900),
    (900, LEAST_PIXELS - 1),
    (MOST_PIXELS + 1, 900),
    (900, MOST_PIXELS + 1),
]


def pictures(reason: str) -> list[bytes]:
    """Return what files hold that are no picture for a reason, and those that are for none."""
    match reason:
        case "":
            return [
                PNG,
                JPEG,
                drawn("JPEG", 2000, 200),
                drawn("PNG", 200, 2000),
                drawn("JPEG", 640, 480, True),
                PNG[:33] + chunk(b"tEXt", bytes(MOST_BYTES - len(PNG) - 12)) + PNG[33:],
            ]
        case "unreadable":
            return [
                PNG[:-20],
                PNG[:-12],
                PNG + b"\0",
                JPEG[:-20],
                PNG[:2000] + bytes([PNG[2000] ^ 1]) + PNG[2001:],  # a wrong checksum
                PNG[:33] + chunk(b"tEXt", bytes(2000)) + chunk(b"IEND", b""),  # no pixels
                PNG[:8] + PNG[33:],  # no header
                PNG[:33] + b"\xff\xff\xff\xff" + PNG[37:],  # an endless chunk
                PNG[:8] + chunk(b"IHDR", b"") + PNG[33:],
                PNG[:8] + bytes(4000),
                JPEG[:3] + bytes(2000) + b"\xff\xd9",  # nothing but an end
                # no dimensions before the scan
                segment(b"\xff\xfe", struct.pack(">H", 2000))[:-4] + b"\xff\xda\0\2\xff\xd9",
                segment(b"\xff\xe0", b"\0\0"),
                segment(b"\xff\xe0", b"\xff\xff"),
            ]
        case "type":
            return [
                drawn("GIF"),
                drawn("BMP", 300, 300),
                drawn("WEBP", 900, 900),
                drawn("TIFF"),
                b"<svg xmlns='http://www.w3.org/2000/svg'/>" + b" " * 2000,
                b"MZ" + bytes(4000),
                b"\0" + PNG,
                bytes(5000),
            ]
    return [
        b"", PNG[:1000], PNG + bytes(MOST_BYTES), PNG[:8] + chunk(b"IHDR", HUGE) + PNG[33:],
        *(drawn(kind, *sides) for kind in ("PNG", "JPEG") for sides in SIDES),
    ]  # fmt: skip


@cases("reason", ["", "unreadable", "type", "size"])
def test_a_whole_picture_is_handed_over_and_any_other_has_its_reason(
    place: Callable[..., Any], reason: str
) -> None:
    for number, data in enumerate(pictures(reason)):
        picture = place(data)
        assert picture.reason == reason, number
        assert picture.data == (None if reason else data), number
        assert picture.flag == (f"picture:{reason}" if reason else "")


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "XAUUSD-M15.png"
    with path.open("wb") as file:
        file.truncate(2**40)  # a terabyte of nothing
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    assert read(tmp_path).reason == "size"


def test_what_is_no_file_is_no_picture(tmp_path: Path, place: Callable[..., Any]) -> None:
    assert place(None).reason == "missing"
    path = tmp_path / "XAUUSD-M15.png"
    path.mkdir()
    assert read(tmp_path).reason == "type"
    path.rmdir()
    os.mkfifo(path)  # nobody writes: opening it must not wait
    assert read(tmp_path).reason == "type"
    for target, reason in (("/dev/zero", "type"), (path, "unreadable"), ("nothing", "missing")):
        path.unlink()
        path.symlink_to(target)
        assert read(tmp_path).reason == reason
    (tmp_path / "file").write_bytes(PNG)
    assert read(tmp_path / "file").reason == "missing"
    assert read(Path("/" + 300 * "x")).reason == "unreadable"


@pytest.mark.parametrize("error", [PermissionError(13, "secret text"), OSError(5, "secret text")])
def test_a_file_that_will_not_open_is_unreadable(
    place: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_args: object) -> int:
        raise error

    monkeypatch.setattr(os, "open", refuse)
    found = place(PNG)
    assert found.reason == "unreadable"
    assert "secret" not in found.detail


def test_a_file_that_turns_into_something_else_is_looked_at_twice(
    place: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    ours = os.open
    monkeypatch.setattr(os, "open", lambda _path, flags: ours(tmp_path / "pipe", flags))
    assert place(PNG).reason == "type"


@cases(
    "template",
    [
        "",
        "/shots/chart.png",
        "/shots/{symbol}.png",
        "/shots/{timeframe}.png",
        "shots/{symbol}-{timeframe}.png",
        "/shots/{symbol}-{timeframe}-{bar_time}.png",
        "/shots/{symbol!r}-{symbol}-{timeframe}.png",
        "/shots/{symbol.__class__}{symbol}{timeframe}",
        "/shots/{{symbol}}-{timeframe}.png",
        "/shots/{sym{symbol}bol}-{timeframe}.png",
        "/shots/{symbol}-{timeframe}.png}",
        "/shots/{}{symbol}-{timeframe}.png",
        "/shots/{symbol}\0{timeframe}.png",
        "/shots/{symbol}\ud800{timeframe}.png",
    ],
)
def test_a_path_names_symbol_and_timeframe_and_nothing_else(template: str) -> None:
    with pytest.raises(ConfigError, match=r"agents\.picture_file"):
        check_template(template)
    with pytest.raises(ConfigError):
        read_picture(template, symbol="X", timeframe="M15", close_time=CLOSE, now=NOW)


def test_a_good_path_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_template("/shots/{symbol}/{timeframe}/{symbol}.png")
    check_template("~/shots/{symbol}-{timeframe}.png")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "EURUSD.pro-H1").write_bytes(JPEG)
    found = read_picture(
        "~/{symbol}-{timeframe}",
        symbol="EURUSD.pro",
        timeframe="H1",
        close_time=datetime.now(UTC),
        now=datetime.now(UTC),
    )
    assert found.data == JPEG


@pytest.mark.parametrize("whole", [PNG, JPEG], ids=["png", "jpeg"])
def test_every_cut_is_noticed(whole: bytes) -> None:
    for end in range(3, len(whole), max(1, len(whole) // 400)):
        assert chart_file.check_picture(whole[:end]).reason in ("size", "type", "unreadable")
