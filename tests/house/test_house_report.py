"""`make house` counts what a tree has: here a made-up one, small enough to count by hand."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from typing import Final

import pytest

from scripts import gauge, house, naming
from tests import ROOT

FILES: Final = {
    "torra/store/found_rows.py": '''"""Rows.

Two of them.
"""

HELD = 3  # rows


class Row:
    """One."""

    def told(self, a, b, c, d, e, f, g, h, i):
        return {"seen": f"{a} and {b}"}
''',
    "torra/clock.py": "class Row:\n    pass\n",
    "scripts/tool.py": "x = 1\n",
    "tests/store/test_rows.py": "def test_asked():\n    pass\n",
    "static/page.js": "let a = b.c;\n",
    "static/vendor/theirs.js": "let a = 1;\n",
    house.INVENTORY: "route: GET /\nroute: GET /jobs\ncommand: torra\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    (tmp_path / "torra" / "untracked.py").write_text("x = 1\n", encoding="utf-8")
    return tmp_path


def test_a_small_tree_is_counted(tree: Path) -> None:
    measures = house.measure(tree)
    assert {name: (one["files"], one["tokens"]) for name, one in measures["parts"].items()} == {
        "program": (2, 3 + 3 + 24 + 6 + 4),
        "tools": (1, 3),
        "tests": (1, 6),
        "other": (1, 7),
    }
    assert measures["rooms of the program"]["torra/store"] == {
        "files": 1, "lines": 13, "pure": 3, "tokens": 36, "classes": 1, "functions": 1,
    }  # fmt: skip
    assert measures["words that no manual has"] == {
        "program": {"found": 1, "held": 1, "told": 1, "seen": 1},
        "tests": {"asked": 1},
        "tests/store": {"asked": 1},
        "torra/store": {"found": 1, "held": 1, "told": 1, "seen": 1},
    }
    assert measures["inventory"] == {"route": 2, "command": 1}
    assert measures["most of these words"] == ["4 torra/store/found_rows.py"]
    assert measures["most parameters"] == ["9 torra/store/found_rows.py:told"]
    twice = ["torra/clock.py", "torra/store/found_rows.py"]
    assert measures["class names with two meanings"] == {"Row": twice}
    assert [*house.listing(tree, measures)][2:] == [
        "command: torra",
        f"class: Row {' '.join(twice)}",
    ]


def test_a_report_shows_what_changed(tree: Path) -> None:
    before = house.measure(tree)
    (tree / "torra" / "clock.py").unlink()
    lines = house.report(house.measure(tree), before).splitlines()
    program = next(line.split() for line in lines if line.startswith("  program"))
    assert program[:4] == ["program", "2", ">", "1"] and "  1 > 0" in lines


def test_no_public_class_name_has_two_meanings() -> None:
    """A reader who finds a name in one room finds nothing else under it in another."""
    trees = {
        name: ast.parse((ROOT / name).read_text("utf-8"))
        for name in gauge.sources(ROOT)
        if name.endswith(".py") and gauge.part_of(name) == "program"
    }
    assert len(trees) > 500
    assert naming.doubles(trees) == {}
