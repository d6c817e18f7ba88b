"""A write-ahead log as a disk may leave it when the power goes, read by the rules of its format.

`commit_ends` finds where each commit of a whole log ends (sqlite.org/fileformat2.html, section 4).
The ways in KINDS damage a log as a power cut, a lying disk or a bad cell does: bytes that were not
written any more, sectors that were lost while later ones were kept, bits that turned, garbage
behind the end. `first_damage` is the first byte that is not what it was: by SQLite's promise every
commit that ends before it is there, and nothing of any later one.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

HEADER, FRAME = 32, 24
"""Bytes before the first frame, and before each frame's page."""

SECTOR = 512
"""What a disk writes whole or not at all."""


def commit_ends(log: bytes) -> list[int]:
    """Return where each commit ends; frames of an earlier round of the log are not counted."""
    if len(log) < HEADER:
        return []
    (page,) = struct.unpack_from(">I", log, 8)
    salts = log[16:24]
    ends: list[int] = []
    for start in range(HEADER, len(log) - FRAME - page + 1, FRAME + page):
        _, size, found = struct.unpack_from(">II8s", log, start)
        if found != salts:
            break
        if size:
            ends.append(start + FRAME + page)
    return ends


def first_damage(whole: bytes, left: bytes) -> int:
    """Return the first byte in which two logs differ; the length of the shorter when none does."""
    shared = min(len(whole), len(left))
    if whole[:shared] == left[:shared]:
        return shared
    low, high = 0, shared  # whole[:low] is equal, whole[:high] is not
    while high - low > 1:
        middle = (low + high) // 2
        if whole[low:middle] == left[low:middle]:
            low = middle
        else:
            high = middle
    return low


def cut(log: bytes, dice: random.Random) -> bytes:
    """End anywhere."""
    return log[: dice.randrange(len(log) + 1)]


def turned(log: bytes, dice: random.Random) -> bytes:
    """Turn one to three bits."""
    left = bytearray(log)
    for _ in range(dice.randint(1, 3)):
        left[dice.randrange(len(left))] ^= 1 << dice.randrange(8)
    return bytes(left)


def lost(log: bytes, dice: random.Random) -> bytes:
    """Lose one to eight sectors, which then hold zeros or what lay there before."""
    left = bytearray(log)
    for _ in range(dice.randint(1, 8)):
        start = dice.randrange(0, len(left), SECTOR)
        size = len(left[start : start + SECTOR])
        left[start : start + SECTOR] = bytes(size) if dice.random() < 0.5 else dice.randbytes(size)
    return bytes(left)


def emptied(log: bytes, dice: random.Random) -> bytes:
    """Keep the length and lose everything from some sector on: the length was written first."""
    start = dice.randrange(0, len(log), SECTOR)
    return log[:start] + bytes(len(log) - start)


def grown(log: bytes, dice: random.Random) -> bytes:
    """Have garbage behind the end: frames that were begun and not finished."""
    return log + dice.randbytes(dice.randrange(1, 3 * 4096))


KINDS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": cut,
    "turned": turned,
    "lost": lost,
    "emptied": emptied,
    "grown": grown,
}
