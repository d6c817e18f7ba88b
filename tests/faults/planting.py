"""What a planted fault is, and how one is put into a copy of the program and taken out again.

What is changed is `changes`' subject, what is put around a public name `seams`'; files that are not
Python are changed as text. A change that does not fit is a ValueError: the table has rotted. Which
faults there are is left to `planted`, running their tests to `nightly`.
"""

from __future__ import annotations

import ast
import builtins
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests import ROOT
from tests.faults import seams
from tests.faults.changes import At, expression, fits, node_of

HUNG: Final = -1
"""Exit code of a program that had to be ended."""


class Text(NamedTuple):
    """A change of a file that is not Python: a text that is in it once, and what stands there."""

    file: str
    old: str
    new: str

    def spoil(self, text: str) -> str:
        """Return the file's text with the change; raises ValueError."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has not exactly one {self.old!r}")
        return text.replace(self.old, self.new)


class Seam:
    """A public name of the program, `module:function` or `module:Class.method`, with a wrapper
    around it: a call of a function of `seams`, in which the names of the module are known.
    """

    def __init__(self, place: str, wrapper: str) -> None:
        self.place, self.wrapper = place, wrapper
        module, _, self.name = place.partition(":")
        self.file = module.replace(".", "/") + ".py"

    def spoil(self, text: str) -> str:
        """Return a module's text with the wrapper at its end; raises ValueError."""
        self.change(ast.parse(text))
        return f"{text}\n\nfrom tests.faults import seams\n\n{self.line}\n"

    @property
    def line(self) -> str:
        """What is added to the module."""
        return f"{self.name} = seams.{self.wrapper}({self.name})"

    def change(self, tree: ast.Module) -> None:
        """Wrap the name in a module's tree; raises ValueError, also for what would fail there."""
        try:
            strange = strangers(expression(self.wrapper), node_of(tree, self.name), tree)
            line = ast.parse(self.line).body
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"{self.place}: {error}") from None
        if strange:
            raise ValueError(f"{self.place}: nothing there is called {', '.join(sorted(strange))}")
        tree.body += line


def strangers(wrapper: ast.expr, node: ast.AST, module: ast.Module) -> set[str]:
    """Return the names in a wrapper of a node that neither `seams` nor the module knows."""
    names = [one for one in ast.walk(wrapper) if isinstance(one, ast.Name)]
    own = {one.arg for one in ast.walk(wrapper) if isinstance(one, ast.arg)}
    own |= {one.id for one in names if isinstance(one.ctx, ast.Store)}
    strange = {one.id for one in names} - own - _words(module) - {*dir(builtins), *dir(seams)}
    if isinstance(wrapper, ast.Call) and fits(expression("passes"), wrapper.func):
        strange |= {f"{one.arg}" for one in wrapper.keywords} - _words(node)
    return strange


def _words(tree: ast.AST) -> set[str]:
    names = ("id", "name", "asname", "arg")
    return {getattr(node, name, None) or "" for node in ast.walk(tree) for name in names}


Edit = At | Seam | Text


@dataclass(frozen=True)
class Fault:
    """A safeguard that is taken out, and the tests each of which must notice.

    `promise` is the id of the promise that it belongs to, `doors` for the doors of the dashboard;
    `tests` are names as `named_tests` knows them, `options` are pytest's.
    """

    id: str
    promise: str
    what: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()


Table = Mapping[str, Mapping[str, Callable[..., Fault]]]
"""Faults by promise and id."""


def fault(what: str, *parts: Edit | str, options: tuple[str, ...] = ()) -> Callable[..., Fault]:
    """Return a row of a table: what is changed, where, and the tests' names."""
    edits = tuple(part for part in parts if not isinstance(part, str))
    tests = tuple(part for part in parts if isinstance(part, str))
    return partial(Fault, what=what, edits=edits, tests=tests, options=options)


def faults(*tables: Table) -> Iterator[Fault]:
    """Yield the faults of tables."""
    for table in tables:
        for promise, rows in table.items():
            yield from (row(id=name, promise=promise) for name, row in rows.items())


def spoilt(fault: Fault, tree: Path) -> dict[str, str]:
    """Return the files of a fault with it in them; raises ValueError where it does not fit."""
    after: dict[str, str] = {}
    for edit in fault.edits:
        before = after.get(edit.file) or (tree / edit.file).read_text(encoding="utf-8")
        try:
            after[edit.file] = edit.spoil(before)
        except ValueError as error:
            raise ValueError(f"{fault.id}: {error}") from None
    return after


@contextmanager
def planted(fault: Fault, tree: Path) -> Iterator[None]:
    """Spoil a copy of the tree, and mend it at the end."""
    after = spoilt(fault, tree)
    before = {name: (tree / name).read_text(encoding="utf-8") for name in after}
    try:
        for name, text in after.items():
            _write(tree / name, text)
        yield
    finally:
        for name, text in before.items():
            _write(tree / name, text)


def copied(target: Path) -> Path:
    """Copy every file that is, or could be, under version control; return the copy's folder."""
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in told.stdout.decode().split("\0"):
        source, place = ROOT / name, target / name
        if name and source.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)
    return target


def run(command: Sequence[str], tree: Path, seconds: float) -> tuple[int, str]:
    """Run a program in a copy; return its exit code, HUNG when it had to be ended, and its words.

    What it started ends with it.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = HUNG
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return code, said.read()


def _write(path: Path, text: str) -> None:
    """Write a file so that it is seen to be another: Python compares whole seconds and sizes."""
    later = path.stat().st_mtime_ns + 2_000_000_000
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(later, later))
