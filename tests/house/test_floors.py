"""The floors of the house: imports only go down, and a few things have one place only.

ROOMS is the plan of the house, by rooms. How long files are is no test: `make house` tells.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests import ROOT
from tests.cases import cases

WORDS = {
    "agent_config", "agents/contracts", "agents/features",
    "agents/phrases", "torra/advisor_protocol", "torra/clock", "torra/config",
    "torra/config_sections", "torra/desk_lock",
    "torra/errors",
    "torra/failpoints", "torra/harmless_text",
    "torra/home", "torra/imports", "torra/one_heap", "torra/own_names", "torra/owner_only",
    "torra/regular_files",
    "torra/services", "torra/time_limit", "torra/trading_terms", "torra/whole_files",
}  # fmt: skip
"""Floor 0: what everybody may use. No other module lies directly in torra/."""

MATHS = {
    "agents/arguments", "agents/evidence", "agents/swarm/anomalies", "agents/texts/door",
    "agents/texts/fence", "ath_calculator", "scoring_rubric", "technical_calculator",
}  # fmt: skip
"""Of floor 1, what lies in no room of it."""

ROOMS: dict[str, tuple[int, str]] = {
    "market": (1, ""),
    "lessons": (1, ""),
    "evidence": (1, ""),
    "verdict": (1, ""),
    "words": (1, ""),
    "evaluation": (1, ""),
    "instance_database": (2, "store"),
    "store": (2, "store"),
    "signal_bridge": (2, "bridges"),
    "bridges": (2, "bridges"),
    "news_collector": (2, "news"),
    "news": (2, "news"),
    "collecting": (2, "news"),
    "outside": (2, "news"),
    "plugins": (2, "plugins"),
    "feeds": (2, "feeds"),
    "providers": (2, "providers"),
    "chart": (2, "chart"),
    "agents": (3, ""),
    "agent_framework": (3, ""),
    "tick": (4, ""),
    "torra_trader": (4, ""),
    "money": (5, "1"),
    "trading": (5, "2"),
    "notices": (5, "3"),
    "jobs": (5, "3"),
    "backup": (5, "4"),
    "desk": (5, "5"),
    "profiles": (5, "6"),
    "overlay": (5, "7"),
    "exhibits": (6, "1"),
    "replay": (6, "2"),
    "tools": (6, "3"),
    "radar": (6, "4"),
    "film": (6, "5"),
    "committee": (6, "6"),
    "ask": (6, "7"),
    "dashboard": (6, "8"),
    "commands": (6, "9"),
}
"""Room (or module of the root) -> floor, and its place there.

On floor 2 the place is a family, which imports no other; on floors 5 and 6 it is a number: a room
may import those before it. A new room is a new row; a new file needs none.
"""

ALLOWED = {
    ("torra/collecting/line", "torra/providers/vendors/addresses"),
    ("torra/collecting/refusals", "torra/providers/vendors/table"),
    ("torra/outside/edgar", "torra/providers/vendors/addresses"),
    ("torra/outside/publisher", "torra/providers/vendors/addresses"),
    ("torra/news/source", "torra/providers/vendors/addresses"),
    ("torra/news/source", "torra/plugins/loading"),
}
"""What no floor allows: an address from the environment is judged in one place, and a profile's
news sources are found by the news themselves.
"""

OUTSIDE = {
    0: {"pydantic", "pydantic_core"},
    1: {"pydantic", "numpy", "pandas", "pandas_ta_classic", "talib"},
    3: {"pydantic", "pydantic_core"},
}
OVERLAY = {"agents", "agent_config", "agent_framework", "scoring_rubric"}

MOST_FILES = 18
LARGER = {"torra/store": 30, "torra/evaluation": 32}
"""Rooms with more files at one level: a file per noun of the database, a file per measure."""


CONDITIONAL: Final = (ast.If, ast.IfExp, ast.While)


def modules() -> dict[str, Path]:
    """Return every module of the product by its path without ending; a package by its folder."""
    paths = [
        path
        for pattern in ("*.py", "agents/**/*.py", "torra/**/*.py")
        for path in ROOT.glob(pattern)
    ]
    return {_name(path): path for path in paths}


def _name(path: Path) -> str:
    found = path.relative_to(ROOT).with_suffix("").as_posix()
    return found.removesuffix("/__init__")


MODULES = modules()
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def room_of(name: str) -> str:
    """Return the row of ROOMS that a module belongs to."""
    parts = name.split("/")
    return parts[1] if parts[0] == "torra" and len(parts) > 1 else parts[0]


@cache
def floor_of(name: str) -> tuple[int, str]:
    if name in WORDS or name == "torra":
        return 0, ""
    if name in MATHS:
        return 1, ""
    assert room_of(name) in ROOMS, f"{name} stands in no room: see ROOMS"
    return ROOMS[room_of(name)]


def may_import(name: str, target: str) -> bool:
    """Return whether the floors let one module import another."""
    (floor, place), (below, beside) = floor_of(name), floor_of(target)
    if floor == 3:
        return target.split("/", maxsplit=1)[0] in OVERLAY
    if below != floor:
        return below < floor
    return beside <= place if floor in (5, 6) else beside == place


class Told(NamedTuple):
    """What the rules below ask of a file: each is read once."""

    docstring: str | None
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    at_once: tuple[ast.Import | ast.ImportFrom, ...]
    conditions: tuple[str, ...]


@cache
def told(path: Path) -> Told:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    return Told(
        ast.get_docstring(tree),
        tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)),
        tuple(_at_once(tree.body)),
        tuple(ast.unparse(node.test) for node in nodes if isinstance(node, CONDITIONAL)),
    )


def _at_once(body: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that a module makes as it is imported: of no function, for no type."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _at_once(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            yield from _at_once(ast.iter_child_nodes(node))


@cache
def imports(path: Path, name: str) -> tuple[str, ...]:
    """Return every imported module, those inside functions and TYPE_CHECKING too."""
    return tuple(_imports(told(path).imports, name))


def _imports(nodes: Iterable[ast.Import | ast.ImportFrom], name: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                inside = [*name.split("/"), ""] if name in PACKAGES else name.split("/")
                package = inside[: -node.level]
                base = ".".join([*package, *([base] if base else [])])
            yield base
            yield from (f"{base}.{item.name}" for item in node.names)


def ours(dotted: str) -> str | None:
    name = dotted.replace(".", "/")
    return name if name in MODULES else None


@cache
def targets(name: str) -> frozenset[str]:
    """Return which of our modules one imports; not the packages that these lie in."""
    found = {ours(dotted) for dotted in imports(MODULES[name], name)}
    named = {target for target in found if target is not None and target != name}
    inside = {package for package in named if any(t.startswith(f"{package}/") for t in named)}
    return frozenset(named - inside)


def test_imports_only_go_down() -> None:
    climbs = [
        f"{name} imports {target}"
        for name in sorted(MODULES)
        for target in targets(name)
        if (name, target) not in ALLOWED and not may_import(name, target)
    ]
    assert climbs == []


def test_what_is_allowed_is_still_needed() -> None:
    for name, target in ALLOWED:
        assert target in targets(name) and not may_import(name, target)


def test_there_is_no_circle_among_files() -> None:
    graph = {name: targets(name) for name in MODULES}
    assert circles(graph) == []


def circles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the files that import one another, a list for each circle (what nobody can order)."""
    left = {name: set(into) & set(graph) for name, into in graph.items()}
    while leaves := [name for name, into in left.items() if not into]:
        for name in leaves:
            del left[name]
        for into in left.values():
            into.difference_update(leaves)
    # what leads into a circle is still there; what a circle does not import is peeled off as well
    while roots := [name for name in left if not any(name in into for into in left.values())]:
        for name in roots:
            del left[name]
    return [sorted(left)] if left else []


def test_a_circle_is_seen() -> None:
    line = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset()}
    assert circles(line) == []
    assert circles({**line, "c": frozenset({"b"})}) == [["b", "c"]]


@cases(
    ("name", "target", "fits"),
    [
        ("torra/tick/debate", "torra/store/ledger", True),
        ("torra/store/ledger", "torra/tick/debate", False),
        ("torra/store/ledger", "torra/feeds/door", False),
        ("torra/desk/wiring", "torra/trading/courier", True),
        ("torra/trading/courier", "torra/desk/wiring", False),
        ("torra/replay/runner", "torra/dashboard/app", False),
        ("agents/debate/scoring", "agent_config", True),
        ("agents/debate/scoring", "torra/errors", False),
        ("torra/errors", "torra/market/regime", False),
    ],
)
def test_the_table_tells_what_it_says(name: str, target: str, fits: bool) -> None:
    assert may_import(name, target) is fits


def loaded(*names: str) -> frozenset[str]:
    """Return all that is imported with these modules, ours by their paths and others' by names."""
    found: set[str] = set()
    left = [*names]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        own, others = _beside(name)
        left += own
        found |= others
    return frozenset(found)


@cache
def _beside(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what one module imports as it is imported: ours with their packages, and others."""
    own, others = set(), set()
    for dotted in _imports(told(MODULES[name]).at_once, name):
        parts = dotted.split(".")
        inside = {ours(".".join(parts[:end])) for end in range(1, len(parts) + 1)} - {None}
        own |= inside
        others |= set() if inside else {dotted}
    return frozenset(own), frozenset(others)


TRIAL = ("torra/desk/wiring",)
"""What wires a desk, and a trial tick of it."""

DESK = (
    *TRIAL, "torra/desk/event_stream", "torra/desk/memory/reviews", "torra/desk/schedule",
    "torra/jobs/worker", "torra/notices/desk_notices",
)  # fmt: skip
"""... with what open_desk imports for a desk alone."""

LATER = (
    "anthropic", "openai", "google", "httpx2", "genai_prices", "flask", "jinja2", "matplotlib",
    "model2vec", "apprise", "sklearn", "scipy",
    "torra/dashboard", "torra/exhibits", "torra/replay", "torra/commands", "torra/overlay",
    "torra/tick/tick_record", "torra/money/book", "torra/trading/reconciliation",
    "torra/bridges/mt5/bridge", "torra/bridges/torra/bridge",
    "torra/bridges/torra/messages", "torra/bridges/guarded",
    "torra/feeds/mt5_files", "torra/feeds/mt5_direct",
    "torra/evaluation/exhibits", "torra/evaluation/observations", "torra/evaluation/outcomes",
)  # fmt: skip
"""What a standing desk on paper does without: imported by the function that needs it."""

OF_A_DESK = (
    "apscheduler",
    "torra/desk/schedule",
    "torra/desk/memory/reviews",
    "torra/jobs/worker",
)


@cases(("names", "later"), [(DESK, LATER), (TRIAL, (*LATER, *OF_A_DESK))])
def test_what_is_seldom_needed_is_imported_by_need(
    names: tuple[str, ...], later: tuple[str, ...]
) -> None:
    found = loaded(*names)
    early = {
        one
        for one in found
        if one.replace(".", "/").startswith(tuple(f"{x}/" for x in later)) or one in later
    }
    assert early == set()


def test_an_import_at_once_is_told_from_one_by_need() -> None:
    code = """
import a
if TYPE_CHECKING:
    import b
else:
    import c
with warnings():
    import d
class E:
    import e
    def f(self): import g
"""
    assert [node.names[0].name for node in _at_once(ast.parse(code).body)] == ["a", "c", "d", "e"]
    assert {"pandas", "instance_database", "torra/errors"} <= loaded(*TRIAL)


def test_every_file_lies_in_a_room() -> None:
    flat = {name for name in MODULES if re.fullmatch("torra/[^/]+", name)} - PACKAGES
    assert flat == {name for name in WORDS if name.startswith("torra/")}


def test_no_room_is_too_full_to_be_seen_at_once() -> None:
    levels = Counter(name.rpartition("/")[0] for name in MODULES if name not in PACKAGES)
    for level, count in levels.items():
        most = LARGER.get(level, MOST_FILES)
        assert count <= most, f"{level} has {count} files: perhaps it is two rooms"


def test_every_room_is_packed() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = set(packed["tool"]["setuptools"]["packages"])
    assert {name.replace("/", ".") for name in PACKAGES} == {
        name for name in named if "_shipped" not in name
    }


def test_the_lower_floors_need_few_libraries() -> None:
    found = []
    for name in sorted(name for name in MODULES if floor_of(name)[0] in OUTSIDE):
        for top in {dotted.split(".")[0] for dotted in imports(MODULES[name], name)}:
            of_the_house = top in {"torra", "agents"} or top in sys.stdlib_module_names or ours(top)
            if not of_the_house and top not in OUTSIDE[floor_of(name)[0]]:
                found.append(f"{name} imports {top}")
    assert found == []


CLOCKS = re.compile(
    r"datetime\.now|datetime\.utcnow|date\.today|time\.time\(|time\.monotonic|time\.sleep"
    r"|perf_counter|^import random|^import secrets|uuid4|np\.random|default_rng",
    re.MULTILINE,
)


def test_only_the_clock_reads_time_and_chance() -> None:
    found = {
        name: CLOCKS.search(path.read_text(encoding="utf-8"))
        for name, path in MODULES.items()
        if name != "torra/clock"
    }
    assert {name: match for name, match in found.items() if match} == {}


DEMO = re.compile(r"\b(is_)?demo\b\s*(:|and|or|if|else|==)|\bif\b.*\bdemo\b", re.IGNORECASE)


def test_there_is_no_demo_branch() -> None:
    apart = {"torra/clock", "torra/feeds/sample"}
    found = [
        f"{name}: if {condition}"
        for name, path in MODULES.items()
        if name not in apart and not name.startswith("torra/dashboard")
        for condition in told(path).conditions
        if "demo" in condition.lower() or "scaled" in condition.lower()
    ]
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    for name, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        assert told(path).docstring or not text.strip(), f"{name} has no docstring"
