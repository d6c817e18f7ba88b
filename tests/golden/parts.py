"""The parts of the goldens, how one is made, and how one that differs is shown.

A part is a module of this package with `make(folder)`: it returns texts by file name (`demo.txt`),
without folders and times of the machine, and writes only below the empty folder that it gets. Its
files lie in texts/, in a folder named as the part. A text that no file holds is a difference like
any other, and so is a file that no text has. A part of exact numbers gives MADE_WITH too: where
that differs from the committed one, numbers of both sides are cut to DIGITS, and hashes and
versions are left out.
"""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

from tests.golden.frozen import frozen, versionless

TEXTS: Final = Path(__file__).parent / "texts"

PARTS: Final[tuple[str, ...]] = (
    "bytes_ticks",
    "bytes_trades",
    "bytes_vendors",
    "bytes_debates",
    "bytes_orders",
    "commands_days",
    "tables",
    "pages_demo",
    "pages_desks",
    "pages_debates",
    "pages_faults",
    "commands",
    "pages_live",
    "notices",
    "inventory",
    "drawings",
)
"""Names of the parts, the slow ones first."""

SHOWN: Final = 60
"""Lines of a difference that a red test shows."""

WINDOW: Final = 400
"""Lines of a file, from its first difference on, that a red test compares."""

MADE_WITH: Final = "made_with.json"
"""The libraries and the machine that decide about the last bits of a part's numbers."""

DIGITS: Final = 9
"""Significant digits that count where the numbers come of other libraries or another machine."""

_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+(?:e[+-]?\d+)?|e-\d+)")

_HASH: Final = re.compile(r"(?<![.\w])[0-9a-f]{12,}\b")


def texts_of(part: str) -> dict[str, str]:
    """Return what the program gives today, by file name; every text ends with a newline.

    A carriage return is shown as \\r: the file of a golden would lose it.
    """
    with tempfile.TemporaryDirectory() as folder, frozen():
        texts: Mapping[str, str] = import_module(f"tests.golden.{part}").make(Path(folder))
    return {
        name: text.replace("\r", "\\r").rstrip("\n") + "\n" for name, text in sorted(texts.items())
    }


def committed(part: str) -> dict[str, str]:
    """Return what stands in the part's folder, by file name."""
    return {
        path.relative_to(TEXTS / part).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((TEXTS / part).rglob("*.*"))
    }


def differences(part: str, today: Mapping[str, str], window: int | None = None) -> Iterator[str]:
    """Yield lines of a unified diff from what is committed to what the program gives today.

    With a window only that many lines of a file are compared, from its first difference on.
    """
    golden = committed(part)
    if MADE_WITH in golden and golden[MADE_WITH] != today.get(MADE_WITH):
        print(f"{part}: made with others than {MADE_WITH} says, compared to {DIGITS} digits")
        golden, today = _cut(golden), _cut(today)
    for name in sorted({*golden, *today}):
        old, new = golden.get(name, "").splitlines(), today.get(name, "").splitlines()
        title = f"{part}/{name}"
        if window is not None:
            same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))])
            old, new = old[same:][:window], new[same:][:window]
            title += f" after line {same}"
        yield from difflib.unified_diff(old, new, title, f"{title} today", n=1, lineterm="")


def _cut(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts but MADE_WITH, with numbers of DIGITS digits, without hashes and versions."""
    return {
        name: _HASH.sub("<hash>", _NUMBER.sub(_digits, versionless(text)))
        for name, text in texts.items()
        if name != MADE_WITH
    }


def _digits(number: re.Match[str]) -> str:
    return f"{float(number[0]):.{DIGITS}g}"


def check(part: str) -> None:
    """Raise AssertionError with the first differences, if there are any."""
    shown = "\n".join(islice(differences(part, texts_of(part), WINDOW), SHOWN))
    if shown:
        raise AssertionError(
            f"{part} differs from the goldens; the first lines of it:\n{shown}\n"
            f"If the change is meant: make goldens PARTS={part}, and read the diff."
        )


def renew(part: str, today: Mapping[str, str]) -> None:
    """Write what the program gives today, and take away the files of what it gives no more."""
    for name in committed(part):
        if name not in today:
            (TEXTS / part / name).unlink()
    for name, text in today.items():
        path = TEXTS / part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
