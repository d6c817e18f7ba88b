"""Where a test is, by its name: so that a move of a file of tests touches no table.

A test is `test_x`, with a case `test_x[case]`; a file is `test_x.py`. Where two files have a test
of one name it is `test_file.py::test_x`. What pytest is given is `resolved`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import Final

from tests import ROOT

DEFINED: Final = re.compile(r"^def (test_\w+)", re.MULTILINE)


def resolved(name: str) -> str:
    """Return `path` or `path::test`, from the root; LookupError when it is not one alone."""
    file, _, test = name.rpartition("::")
    if name.endswith(".py"):
        return _one(name, files().get(name, []))
    function = test.partition("[")[0]
    paths = [path for path in tests().get(function, []) if file in ("", path.rpartition("/")[2])]
    return f"{_one(name, paths)}::{test}"


@cache
def files() -> dict[str, list[str]]:
    """Return the paths of all files of tests by their names."""
    found = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        found[path.name].append(path.relative_to(ROOT).as_posix())
    return dict(found)


@cache
def tests() -> dict[str, list[str]]:
    """Return the paths of the files that have a test, by its name."""
    found = defaultdict(list)
    for path in (path for paths in files().values() for path in paths):
        for name in DEFINED.findall((ROOT / path).read_text(encoding="utf-8")):
            found[name].append(path)
    return dict(found)


def _one(name: str, paths: list[str]) -> str:
    if len(paths) != 1:
        told = f"in {', '.join(paths)}: name the file too" if paths else "nowhere"
        raise LookupError(f"{name} is {told}")
    return paths[0]
