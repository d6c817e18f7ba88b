"""The size of a tree in tokens, which no formatting changes: of each file, each part and each room.

A token of Python is one of its tokenizer, without comments, docstrings, line ends and indents; an
f-string is one token on every version. Of other sources it is a word or a sign. A part is the
program, the tools, the tests or everything that is not Python; a room is what the first two folders
of a path name.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

COLUMNS: Final = ("files", "lines", "pure", "tokens", "classes", "functions")
"""What is counted; a pure line has more than a comment, and is of no docstring."""

PARTS: Final = ("program", "tools", "tests", "other")
TOOLS: Final = ("benchmarks", "docs", "scripts", "examples")

OTHERS: Final = (".html", ".js", ".css", ".sql", ".j2", ".jinja", ".toml", ".mq5", ".mqh")
NOT_OURS: Final = ("vendor", "pyproject")
"""Parts of the names of files that are not Python and do not count."""

LAYOUT: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)
FSTRING: Final = tuple(
    getattr(tokenize, f"FSTRING_{end}", tokenize.ENDMARKER) for end in ("START", "END")
)
"""From Python 3.12 on an f-string is many tokens, from a first to a last one."""

Sizes = Mapping[str, Counter[str]]


def sources(root: Path) -> list[str]:
    """Return the names of the files of a tree that count: those under version control."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout  # noqa: S603
    return [name for name in output.split("\0") if _counts(name) and (root / name).is_file()]


def _counts(name: str) -> bool:
    ours = not any(part in name for part in NOT_OURS)
    return name.endswith(".py") or (name.endswith(OTHERS) and ours)


def part_of(name: str) -> str:
    """Return the part that a file belongs to."""
    first, *rest = name.split("/")
    if not name.endswith(".py"):
        return "other"
    if first in {"test", "tests"} or "tests" in rest[:-1]:
        return "tests"
    return "tools" if first in TOOLS else "program"


def room_of(name: str) -> str:
    """Return the room of a file: its first two folders, `root` without one."""
    return "/".join(name.split("/")[:-1][:2]) or "root"


def sizes(root: Path) -> dict[str, Counter[str]]:
    """Return the size of each file by name; a file that is no program has none."""
    names = sources(root)
    with ProcessPoolExecutor() as pool:
        measured = pool.map(partial(_size, root), names, chunksize=32)
        return {name: one for name, one in zip(names, measured, strict=True) if one is not None}


def _size(root: Path, name: str) -> Counter[str] | None:
    try:
        return size(name, (root / name).read_text("utf-8", errors="replace"))
    except (SyntaxError, tokenize.TokenError):
        return None


def size(name: str, text: str) -> Counter[str]:
    """Return the columns of one file; SyntaxError and tokenize.TokenError for no program."""
    counts = Counter(files=1, lines=text.count("\n"))
    if not name.endswith(".py"):
        counts["tokens"] = len(re.findall(r"\w+|[^\w\s]", text))
        return counts
    nodes = list(ast.walk(ast.parse(text)))
    silent = {line for node in nodes for line in _text_lines(node)}
    written = [line.strip() for line in text.splitlines()]
    counts.update(
        pure=sum(bool(line) and line[0] != "#" for line in written) - len(silent),
        tokens=_tokens(text, silent),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
    )
    return counts


def _text_lines(node: ast.AST) -> range:
    """Return the lines of a text that is a statement: a docstring."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return range(0)


def _tokens(text: str, silent: set[int]) -> int:
    begin, end = FSTRING
    count = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in LAYOUT:
            continue
        inside = depth > 0
        depth += (token.type == begin) - (token.type == end)
        docstring = token.type == tokenize.STRING and token.start[0] in silent
        count += not inside and not docstring
    return count


def summed(sizes: Sizes, group: Callable[[str], str]) -> dict[str, Counter[str]]:
    """Return the sums of the files by group, the groups in order."""
    sums: dict[str, Counter[str]] = {}
    for name in sorted(sizes, key=group):
        sums.setdefault(group(name), Counter()).update(sizes[name])
    return sums


def parts(sizes: Sizes) -> dict[str, Counter[str]]:
    """Return the sums of the parts, in the order of PARTS."""
    sums = summed(sizes, part_of)
    return {part: sums[part] for part in PARTS if part in sums}


def seconds(times: Iterable[tuple[str, float]]) -> dict[str, dict[str, float]]:
    """Return how many tests a room has and what they take, of each test's path and seconds."""
    rooms = defaultdict(list)
    for path, took in times:
        rooms[room_of(path)].append(took)
    return {
        room: {"tests": len(rooms[room]), "seconds": round(sum(rooms[room]), 1)}
        for room in sorted(rooms)
    }


def rooms(sizes: Sizes, part: str) -> dict[str, Counter[str]]:
    """Return the sums of the rooms of a part."""
    return summed({name: sizes[name] for name in sizes if part_of(name) == part}, room_of)
