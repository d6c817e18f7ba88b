"""Measures the house: modules, lines, names, types, what is said twice; a report, no test.

`python -m scripts.house` prints it for this tree, `python -m scripts.house OTHER` for another one
and for this one side by side. What must hold (floors, circles, rooms) is tested in
tests/house/test_floors.py; how long a file is or how many parameters a function takes is for a
person to judge, and this is what to judge by.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import quantiles
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PATTERNS: Final = ("*.py", "agents/**/*.py", "torra/**/*.py")
MANY: Final = 8
"""Parameters above which a function is listed."""

LONG: Final = 500
"""Lines above which a module is usually two things (CONTRIBUTING.md)."""

SHOWN: Final = 10

LOOSE: Final = "Any"
"""The type that says nothing; an alias of it at the top of a module says as little."""

DASHBOARD: Final = "torra/dashboard/"

PICTURED: Final = re.compile(r"(Exhibit|Document|Report)?(Plot|Line|Table)")
"""How a class is named that holds a plot, a line of one or a table."""

LIMITING: Final = re.compile(r"TimeLimit|Limited\w+")
"""How a class is named that ends what takes too long."""

RENAMES: Final = ("os.replace", "os.rename", "os.link")
"""Calls that put a file that was written whole into its place."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """One file of the product, read once."""

    def __init__(self, root: Path, path: Path) -> None:
        self.name = path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.lines = len(self.text.splitlines())

    def classes(self) -> Iterator[str]:
        """Yield the public classes of the module."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name

    def functions(self) -> Iterator[tuple[str, int]]:
        """Yield each function with its number of parameters, self and cls left out."""
        for function in self._functions():
            given = function.args
            names = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            own = [name for name in names if name.arg not in ("self", "cls")]
            yield function.name, len(own)

    def aliases(self) -> set[str]:
        """Return the names at the top of the module that stand for a type with Any in it."""
        return {
            target.id
            for node in self.tree.body
            if isinstance(node, ast.Assign) and LOOSE in ast.unparse(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def loose(self, aliases: Mapping[str, set[str]]) -> tuple[int, int]:
        """Return how many functions have Any in their signature, and how many there are.

        `aliases` are those of all modules, by dotted name.
        """
        names = {LOOSE} | self.aliases()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                theirs = aliases.get(node.module or "", set())
                names |= {item.asname or item.name for item in node.names if item.name in theirs}
        found = [bool(names & _named(function)) for function in self._functions()]
        return sum(found), len(found)

    def untyped(self) -> tuple[int, int]:
        """Return how many functions leave a parameter or the result unsaid, and how many are."""
        found = [_unsaid(function) for function in self._functions()]
        return sum(found), len(found)

    def stated(self) -> Iterator[str]:
        """Yield the signatures of methods that a protocol or an abstract class states."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and _abstract(node):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and _open(node, part):
                        given = part.args
                        names = [one.arg for one in (*given.args, *given.kwonlyargs)]
                        yield f"{part.name}({', '.join(names)})"

    def renames(self) -> bool:
        """Return whether a file is put into its place here: os.replace and the like, or a Path's.

        A Path's `replace` takes one argument, a text's two, a date's only named ones.
        """
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return any(
            ast.unparse(node.func) in RENAMES
            or (ast.unparse(node.func).endswith(".replace") and len(node.args) == 1)
            for node in calls
            if not node.keywords
        )

    def _functions(self) -> Iterator[Function]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def comments(self) -> int:
        """Return how many lines have a comment that is for people."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        found = (token.string for token in tokens if token.type == tokenize.COMMENT)
        return sum(not text.startswith(("# noqa", "# type:", "# fmt:", "# ---")) for text in found)

    def imports(self) -> int:
        """Return how many modules are imported."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update(item.name for item in node.names)
            elif isinstance(node, ast.ImportFrom):
                found.add("." * node.level + (node.module or ""))
        return len(found - {"__future__"})

    def type_checking(self) -> int:
        """Return how many imports stand under TYPE_CHECKING."""
        blocks = (node for node in ast.walk(self.tree) if isinstance(node, ast.If))
        return sum(
            isinstance(inner, ast.Import | ast.ImportFrom)
            for block in blocks
            if "TYPE_CHECKING" in ast.unparse(block.test)
            for inner in block.body
        )


def _annotations(node: Function) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield what a function takes, by name, and as `return` what it gives."""
    given = node.args
    for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if one is not None and one.arg not in ("self", "cls"):
            yield one.arg, one.annotation
    yield "return", node.returns


def _named(node: Function) -> set[str]:
    said = (kind for _, kind in _annotations(node) if kind is not None)
    parts = (part for kind in said for part in ast.walk(kind))
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _unsaid(node: Function) -> bool:
    return any(kind is None for _, kind in _annotations(node))


def _abstract(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).startswith(("Protocol", "ABC")) for base in node.bases)


def _open(owner: ast.ClassDef, method: ast.FunctionDef) -> bool:
    """Return whether a class states a method for others to fill in."""
    marks = [ast.unparse(mark) for mark in method.decorator_list]
    protocol = any(ast.unparse(base).startswith("Protocol") for base in owner.bases)
    return (protocol or "abstractmethod" in marks) and not method.name.startswith("__")


def _share(pairs: Iterable[tuple[int, int]]) -> str:
    some, whole = (sum(column) for column in zip(*pairs, strict=True))
    return f"{100 * some / whole:.1f} %"


def said_twice(code: list[Module]) -> dict[str, object]:
    """Return how often one thing has several interfaces: stores, plots, writes, limits."""
    stated = Counter(signature for one in code for signature in one.stated())
    classes = [name for one in code for name in one.classes()]
    return {
        "signatures in two protocols or ABCs": sum(count > 1 for count in stated.values()),
        "classes for a plot, line or table": sum(map(bool, map(PICTURED.fullmatch, classes))),
        "modules that rename a file into place": sum(one.renames() for one in code),
        "classes for a time limit": sum(map(bool, map(LIMITING.fullmatch, classes))),
    }


def of_tests(root: Path) -> dict[str, object]:
    """Return the measures of the tests."""
    paths = sorted((root / "tests").rglob("*.py"))
    code = [Module(root, path) for path in paths]
    helpers = [one for one in code if not one.name.rpartition("/")[2].startswith("test_")]
    return {
        "tests: files": len(code),
        "tests: lines": sum(one.lines for one in code),
        "tests: lines of helpers": sum(one.lines for one in helpers),
        "tests: functions with a type unsaid": _share(one.untyped() for one in code),
    }


def measure(root: Path) -> dict[str, object]:
    """Return the measures of a tree, and the longest modules and parameter lists in it."""
    paths = sorted({path for pattern in PATTERNS for path in root.glob(pattern)})
    modules = [Module(root, path) for path in paths]
    code = [one for one in modules if one.text.strip()]
    aliases = {one.name[:-3].replace("/", "."): one.aliases() for one in code}
    loose = [(one.name, one.loose(aliases)) for one in code]
    lines = sum(one.lines for one in code)
    names = Counter(name for one in code for name in one.classes())
    where = [(count, f"{one.name}:{name}") for one in code for name, count in one.functions()]
    many = sorted((pair for pair in where if pair[0] > MANY), reverse=True)
    sizes = sorted(one.lines for one in code)
    imported = sorted(one.imports() for one in code)
    longest = sorted(((one.lines, one.name) for one in code), reverse=True)
    return {
        "modules": len(code),
        "lines": lines,
        "flat in torra/": len(
            [1 for one in code if one.name.count("/") == 1 and "torra/" in one.name]
        ),
        "lines of a module, p50/p90/max": _spread(sizes),
        f"modules above {LONG} lines": sum(size > LONG for size in sizes),
        "class names with two meanings": sum(count > 1 for count in names.values()),
        f"functions with more than {MANY} parameters": len(many),
        "functions with Any in the signature": _share(pair for _, pair in loose),
        "... of the dashboard": _share(pair for name, pair in loose if name.startswith(DASHBOARD)),
        **said_twice(code),
        **of_tests(root),
        "comments per 100 lines": round(100 * sum(one.comments() for one in code) / lines, 1),
        "imports of a module, p50/p90": _spread(imported).rpartition("/")[0],
        "imports under TYPE_CHECKING": sum(one.type_checking() for one in code),
        "longest": [f"{size} {name}" for size, name in longest[:SHOWN]],
        "most parameters": [f"{count} {name}" for count, name in many[:SHOWN]],
    }


def _spread(values: list[int]) -> str:
    cuts = quantiles(values, n=10, method="inclusive")
    return f"{cuts[4]:.0f}/{cuts[8]:.0f}/{max(values)}"


def table(found: Mapping[str, Mapping[str, object]]) -> str:
    """Return the measures as a table, a column for each tree, and the lists of the last one."""
    trees = list(found)
    rows = [key for key, value in found[trees[-1]].items() if not isinstance(value, list)]
    lines = [f"{'':<44}" + "".join(f"{name:>18}" for name in trees)]
    lines += [f"{key:<44}" + "".join(f"{found[n][key]!s:>18}" for n in trees) for key in rows]
    for key, value in found[trees[-1]].items():
        if isinstance(value, list):
            lines += ["", f"{key}:", *(f"  {line}" for line in value)]
    return "\n".join(lines)


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Measure the house.")
    parser.add_argument("other", nargs="?", type=Path, help="another tree, such as the one before")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    asked = parser.parse_args()
    trees = {"before": asked.other, "now": ROOT} if asked.other else {"now": ROOT}
    for name, root in trees.items():
        if not (root / "torra").is_dir():
            parser.error(f"{root} ({name}) is no tree of Torra: it has no folder torra/")
    found = {name: measure(root) for name, root in trees.items()}
    sys.stdout.write((json.dumps(found, indent=2) if asked.json else table(found)) + "\n")


if __name__ == "__main__":
    main()
