"""The floors of the house: imports only go down, and a few things have one place only."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = {
    0: [
        "agents/contracts",
        "agents/lazy_text",
        "agent_config",
        "torra/errors",
        "torra/clock",
        "torra/config",
        "torra/trading_terms",
        "torra/failpoints",
        "torra/whole_files",
        "torra/time_limit",
        "torra/verdict/deny_reasons",
    ],
    1: [
        "technical_calculator",
        "ath_calculator",
        "agents/evidence",
        "agents/fence",
        "scoring_rubric",
        "torra/market/structure",
        "torra/verdict/sentiment_rules",
        "torra/verdict/signal_states",
        "torra/market/bar_view",
        "torra/evidence/feature_bundle",
        "torra/verdict/risk_engine",
        "torra/chart/sheet",
        "torra/verdict/call_policy",
        "torra/market/regime",
        "torra/evidence/news_digest",
        "torra/evidence/news_shelf",
        "torra/news/reading",
        "torra/providers/vendors/addresses",
        "torra/evidence/scheduled_events",
        "torra/market/broker_clock",
        "torra/bridges/protocol",
        "torra/bridges/guards",
        "torra/bridges/paper",
        "torra/bridges/torra/messages",
        "torra/trading/findings",
        "torra/trading/reconciliation",
        "torra/verdict/order_levels",
        "torra/verdict/ticket_checks",
        "torra/bridges/torra/book_rows",
        "torra/verdict/position_size",
        "torra/verdict/trade_outcome",
        "torra/store/envelopes",
        "torra/evaluation/*",
        "torra/replay/l1/verdicts",
        "torra/market/exact_sums",
    ],
    2: [
        "instance_database",
        "signal_bridge",
        "news_collector",
        "torra/news/lexicon",
        "torra/news/source",
        "torra/news/reading",
        "torra/news/event_file",
        "torra/feeds/*",
        "torra/bridges/*",
        "torra/providers/*",
        "torra/chart/renderer",
        "torra/chart/screenshot",
        "torra/store/migrations",
        "torra/*_store",
        "torra/store/connection",
        "torra/store/stored_times",
        "torra/commands/broker_symbols",
        "torra/desk/event_stream",
    ],
    3: ["agents/*", "agent_framework", "torra/tick/chart_scorer"],
    4: [
        "torra_trader",
        "torra/tick/record",
        "torra/tick/debate",
        "torra/tick/keeper",
        "torra/tick/paper",
        "torra/tick/late_answers",
        "torra/tick/bar_window",
        "torra/desk/schedule",
        "torra/desk/bar_closes",
        "torra/desk/timers",
        "torra/desk/clock_watch",
        "torra/desk/write_off",
        "torra/desk/wiring",
        "torra/home",
        "torra/desk/outlook",
        "torra/tick/spending",
        "torra/trading/courier",
        "torra/trading/settlement",
        "torra/trading/kill_switch",
        "torra/trading/channels",
        "torra/tick/approval",
        "torra/desk/adoption",
        "torra/store/host_files",
        "torra/profiles/fields",
        "torra/profiles/guard",
        "torra/desk/warm_up",
        "torra/desk/journal_ticks",
        "torra/desk/promotion",
        "torra/profiles/book",
        "torra/replay/l1/trades",
        "torra/replay/l1/sweep",
    ],
    5: [
        "torra/dashboard/*",
        "torra/commands/command_line",
        "torra/commands/run",
        "torra/replay/rerun/trial_tick",
        "torra/commands/bar_import",
        "torra/desk/self_check",
        "torra/replay/rerun/journal_replay",
        "torra/desk/costs",
        "torra/trading/by_hand",
        "torra/commands/init",
        "torra/commands/desk_plan",
        "torra/commands/profile",
        "torra/commands/access",
        "torra/commands/backup",
        "torra/backup/files",
        "torra/backup/restore",
        "torra/desk/start_check",
        "torra/commands/cli_errors",
        "torra/replay/*",
    ],
}
OUTSIDE = {
    0: {"pydantic"},
    1: {"pydantic", "numpy", "pandas", "pandas_ta_classic"},
    3: {"pydantic"},
}
DRAWS = {"torra/chart/sheet": {"matplotlib", "PIL"}}
"""Modules that may import more than their floor, and what."""

OVERLAY = {"agents", "agent_config", "agent_framework", "scoring_rubric"}
LEAVES = {"agents/__init__", "torra/__init__", "torra/__main__"}


def modules() -> dict[str, Path]:
    found = {}
    for pattern in ("*.py", "agents/*.py", "torra/*.py", "torra/*/*.py"):
        for path in ROOT.glob(pattern):
            found[path.relative_to(ROOT).with_suffix("").as_posix()] = path
    return {name: path for name, path in found.items() if name not in LEAVES}


MODULES = modules()


@cache
def floor_of(name: str) -> int:
    exact = [floor for floor, rows in FLOORS.items() if name in rows]
    if exact:
        return exact[0]
    family = [f for f, rows in FLOORS.items() for row in rows if "*" in row and matches(name, row)]
    assert family, f"{name} stands on no floor: add it to FLOORS"
    return family[0]


def matches(name: str, row: str) -> bool:
    return re.fullmatch(row.replace("*", "[^/]+"), name) is not None


@cache
def imports(path: Path, name: str) -> tuple[str, ...]:
    """Return every imported module, those inside functions and TYPE_CHECKING too."""
    return tuple(_imports(path, name))


def _imports(path: Path, name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split("/")[: -node.level]
                base = ".".join([*package, *([base] if base else [])])
            yield base
            yield from (f"{base}.{item.name}" for item in node.names)


def ours(dotted: str) -> str | None:
    name = dotted.replace(".", "/")
    return name if name in MODULES else None


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_only_go_down(name: str) -> None:
    floor = floor_of(name)
    for dotted in imports(MODULES[name], name):
        target = ours(dotted)
        if target is None or target == name:
            continue
        below = floor_of(target)
        family = name.rsplit("/", 1)[0] if "/" in name else ""
        same_family = family not in {"", "torra"} and target.startswith(f"{family}/")
        store = {name, target} <= store_family()
        same_floor_free = floor >= 3 or same_family or store or floor in (0, 1)
        assert below < floor or (below == floor and same_floor_free), f"{name} imports {target}"


@cache
def store_family() -> set[str]:
    return {
        name
        for name in MODULES
        if name in {"instance_database", "torra/store/migrations", "torra/store/connection"}
        or re.fullmatch(r"torra/[a-z_]+_store", name)
    }


@pytest.mark.parametrize("name", sorted(n for n in MODULES if floor_of(n) in OUTSIDE))
def test_the_lower_floors_need_few_libraries(name: str) -> None:
    allowed = OUTSIDE[floor_of(name)] | DRAWS.get(name, set())
    for dotted in imports(MODULES[name], name):
        top = dotted.split(".")[0]
        if top in sys.stdlib_module_names or top == "torra" or ours(top) or top == "agents":
            continue
        assert top in allowed, f"{name} imports {top}"


@pytest.mark.parametrize("name", sorted(n for n in MODULES if floor_of(n) == 3))
def test_the_overlay_imports_nothing_else_of_the_project(name: str) -> None:
    for dotted in imports(MODULES[name], name):
        target = ours(dotted)
        if target:
            assert target.split("/")[0] in OVERLAY, f"{name} imports {target}"


CLOCKS = re.compile(
    r"datetime\.now|datetime\.utcnow|date\.today|time\.time\(|time\.monotonic|time\.sleep"
    r"|perf_counter|^import random|^import secrets|uuid4|np\.random|default_rng",
    re.MULTILINE,
)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_only_the_clock_reads_time_and_chance(name: str) -> None:
    if name == "torra/clock":
        return
    text = MODULES[name].read_text(encoding="utf-8")
    assert not CLOCKS.search(text), f"{name}: {CLOCKS.search(text)}"


DEMO = re.compile(r"\b(is_)?demo\b\s*(:|and|or|if|else|==)|\bif\b.*\bdemo\b", re.IGNORECASE)


@pytest.mark.parametrize("name", sorted(n for n in MODULES if not n.startswith("torra/dashboard")))
def test_there_is_no_demo_branch(name: str) -> None:
    if name in {"torra/clock", "torra/feeds/sample"}:
        return
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    tests = [
        node.test for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp | ast.While)
    ]
    for test in tests:
        text = ast.unparse(test).lower()
        assert "demo" not in text and "scaled" not in text, f"{name}: if {text}"


def test_every_module_says_what_it_is_for() -> None:
    for name, path in MODULES.items():
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if name.endswith("__init__") and not path.read_text(encoding="utf-8").strip():
            continue
        assert text, f"{name} has no docstring"


def test_modules_stay_readable() -> None:
    for name, path in MODULES.items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 600, f"{name} has {lines} lines: perhaps it is two things"
