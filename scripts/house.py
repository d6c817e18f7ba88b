"""Measures the house: modules, lines, names, parameters, comments, imports; a report, no test.

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
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
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
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                names = [*given.posonlyargs, *given.args, *given.kwonlyargs]
                own = [name for name in names if name.arg not in ("self", "cls")]
                yield node.name, len(own)

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


def measure(root: Path) -> dict[str, object]:
    """Return the measures of a tree, and the longest modules and parameter lists in it."""
    paths = sorted({path for pattern in PATTERNS for path in root.glob(pattern)})
    modules = [Module(root, path) for path in paths]
    code = [one for one in modules if one.text.strip()]
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
