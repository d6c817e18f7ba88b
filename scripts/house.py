"""Measures the house: size by part and by room, what it has for others, names, long things.

`python -m scripts.house` prints the report for this tree, `python -m scripts.house OTHER` that of
another tree beside it, `--list` the names of the inventory and of classes with two meanings. It is
a report and no test. What must hold (floors, circles, rooms) is tested in
tests/house/test_floors.py; the inventory is a golden, which `make goldens PARTS=inventory` renews.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from scripts import gauge, naming

ROOT: Final = Path(__file__).resolve().parents[1]
INVENTORY: Final = "tests/golden/texts/inventory/inventory.txt"

MANY: Final = 8
"""Parameters above which a function is listed."""

LONG: Final = 500
"""Lines above which a module is usually two things (CONTRIBUTING.md)."""

SHOWN: Final = 10
"""Rows of a list in the report."""

Table = Mapping[str, Mapping[str, int]]
"""Numbers by row and by column."""


def measure(root: Path) -> dict[str, Any]:
    """Return the measures of a tree: tables, counts and lists, by their titles."""
    sizes = gauge.sizes(root)
    trees = {
        name: ast.parse((root / name).read_text("utf-8")) for name in sizes if name.endswith(".py")
    }
    program = {name: tree for name, tree in trees.items() if gauge.part_of(name) == "program"}
    words = naming.counted(trees)
    inventory = root / INVENTORY
    lines = inventory.read_text("utf-8").splitlines() if inventory.is_file() else []
    return {
        "parts": gauge.parts(sizes),
        "rooms of the program": gauge.rooms(sizes, "program"),
        "rooms of the tests": gauge.rooms(sizes, "tests"),
        "words that no manual has": _words(words),
        "inventory": dict(Counter(line.partition(": ")[0] for line in lines)),
        "shape": _shape(program, sizes),
        "class names with two meanings": naming.doubles(program),
        "most of these words": _ranked({name: sum(words[name].values()) for name in program}),
        "longest": _ranked({name: sizes[name]["lines"] for name in program}),
        "most parameters": _ranked(_parameters(program)),
    }


def _words(words: Mapping[str, Counter[str]]) -> Table:
    """Return how many names have each word, by part and by room."""
    some = {name: one for name, one in words.items() if one}
    return {**gauge.parts(some), **gauge.summed(some, gauge.room_of)}


def _shape(program: Mapping[str, ast.Module], sizes: gauge.Sizes) -> dict[str, Any]:
    lines = sorted(sizes[name]["lines"] for name in program if sizes[name]["tokens"])
    cuts = quantiles(lines, n=10, method="inclusive") if len(lines) > 1 else lines * 9
    return {
        "lines of a module, p50/p90/max": f"{cuts[4]:.0f}/{cuts[8]:.0f}/{max(lines, default=0)}",
        f"modules above {LONG} lines": sum(size > LONG for size in lines),
        f"functions with more than {MANY} parameters": len(_parameters(program)),
    }


def _parameters(program: Mapping[str, ast.Module]) -> dict[str, int]:
    """Return how many parameters the functions take that take many, self and cls left out."""
    return {
        f"{name}:{node.name}": count
        for name, tree in program.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (count := _count(node.args)) > MANY
    }


def _count(arguments: ast.arguments) -> int:
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return sum(one.arg not in ("self", "cls") for one in every)


def _ranked(numbers: Mapping[str, int]) -> list[str]:
    ranked = sorted((-number, name) for name, number in numbers.items() if number)
    return [f"{-number} {name}" for number, name in ranked[:SHOWN]]


# --- the report -----------------------------------------------------------------------------------


def report(now: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """Return the measures as text; a number that was another one before stands beside that."""
    blocks = []
    for title, value in now.items():
        old = (before or now)[title]
        body = value if isinstance(value, list) else _rows(value, old)
        blocks.append("\n".join([f"{title}:", *(f"  {line}" for line in body)]))
    return "\n\n".join(blocks)


def _rows(value: Mapping[str, Any], old: Mapping[str, Any]) -> Iterable[str]:
    match next(iter({**old, **value}.values()), 0):
        case Mapping():
            return _table(value, old)
        case list():
            return [_cell(len(value), len(old))]
    return [f"{name:<44}{_cell(value[name], old.get(name, 0))}" for name in value]


def _table(rows: Table, old: Table) -> Iterator[str]:
    columns = [*dict.fromkeys(name for row in rows.values() for name in row)]
    known = [name for name in (*gauge.COLUMNS, *naming.WORDS) if name in columns]
    cells = [["", *known]]
    for name, row in rows.items():
        then = old.get(name, {})
        cells.append([name, *(_cell(row.get(one, 0), then.get(one, 0)) for one in known)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        numbers = (f"{one:>{width + 2}}" for one, width in zip(others, widths[1:], strict=True))
        yield f"{first:<{widths[0]}}{''.join(numbers)}"


def _cell(now: object, before: object) -> str:
    return f"{now}" if now == before else f"{before} > {now}"


def listing(root: Path, measures: Mapping[str, Any]) -> Iterable[str]:
    """Yield the names of the inventory, and of classes with two meanings with their modules."""
    yield from (root / INVENTORY).read_text("utf-8").splitlines()
    for name, modules in measures["class names with two meanings"].items():
        yield f"class: {name} {' '.join(modules)}"


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Measure the house.")
    parser.add_argument("other", nargs="?", type=Path, help="another tree, such as the one before")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--list", action="store_true", help="names in the place of numbers")
    chosen = parser.parse_args()
    trees = {"before": chosen.other, "now": ROOT} if chosen.other else {"now": ROOT}
    for name, root in trees.items():
        if not (root / "torra").is_dir():
            parser.error(f"{root} ({name}) is no tree of Torra: it has no folder torra/")
    measures = {name: measure(root) for name, root in trees.items()}
    if chosen.list:
        text = "\n".join(listing(ROOT, measures["now"]))
    elif chosen.json:
        text = json.dumps(measures, indent=2)
    else:
        text = report(measures["now"], measures.get("before"))
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
