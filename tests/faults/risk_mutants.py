"""Every small change of the arithmetic of risk, by mutmut: none may pass unnoticed or unexplained.

mutmut changes comparisons, arithmetic, constants, arguments and defaults of risk_engine,
ticket_checks, position_size and order_levels one at a time and runs the tests of risk by day. A
change that no test notices is either a missing test or no change of what is done at all; which of
them are the latter, and why, stands in SPARED. A change that is neither noticed nor there ends the
run with 1. mutmut is a program of its own, in an environment with the development packages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.faults.named_tests import resolved
from tests.faults.planting import run
from torra.clock import System

ID: Final = "risk-arithmetic"
PROMISE: Final = "R1"

SOURCES: Final = (
    "torra/verdict/risk_engine.py",
    "torra/verdict/ticket_checks.py",
    "torra/verdict/position_size.py",
    "torra/verdict/order_levels.py",
)
TESTS: Final = (
    "test_intent.py",
    "test_risk_checks.py",
    "test_risk_oracle.py",
    "test_risk_levels.py",
)
SECONDS: Final = 1800.0

NOT_COPIED: Final = ("frontend", "benchmarks", "mutants")
"""Folders that no test of risk reads."""

NAMED: Final = re.compile(r"(torra\.[\w.]+__mutmut_\d+): (?!killed)([a-z ]+)")
COUNTED: Final = re.compile(r"(\d+)/(\d+) +🎉 (\d+)")


class Spared(NamedTuple):
    """A change that does nothing: the line as it is, the line as mutmut has it, and why."""

    file: str
    old: str
    new: str
    why: str


BROKEN_TICKET: Final = (
    "the ticket's first level is NaN, so that it counts as broken and nothing else of it is looked "
    "at until it has levels and lots"
)

SPARED: Final = (
    Spared(
        "torra/verdict/risk_engine.py",
        'leaving = position if any(leg.kind == "close" for leg in wanted.legs) else None',
        'leaving = position if (any(leg.kind == "close" for leg in wanted.legs)) or True else None',
        "without a closing leg there is no position: whoever holds one and opens, closes it first",
    ),
    Spared("torra/verdict/risk_engine.py", "lots=math.nan,", "lots=None,", BROKEN_TICKET),
    Spared(
        "torra/verdict/risk_engine.py",
        "levels=Levels(math.nan, math.nan, math.nan, decision.atr),",
        "levels=Levels(math.nan, None, math.nan, decision.atr),",
        BROKEN_TICKET,
    ),
    Spared(
        "torra/verdict/risk_engine.py",
        "levels=Levels(math.nan, math.nan, math.nan, decision.atr),",
        "levels=Levels(math.nan, math.nan, None, decision.atr),",
        BROKEN_TICKET,
    ),
    Spared(
        "torra/verdict/risk_engine.py",
        "return ticket, in_order((prices, *objections(ticket, account, spec, profile)))",
        "return ticket, in_order((prices, *objections(ticket, account, None, profile)))",
        BROKEN_TICKET + ": no check that needs the symbol is asked",
    ),
    Spared(
        "torra/verdict/risk_engine.py",
        "looks = (sent,) if sent.lots == full.lots else (sent, full)",
        "looks = (sent,) if (sent.lots == full.lots) and False else (sent, full)",
        "two looks at the same ticket find what one does; the first is only quicker",
    ),
    Spared(
        "torra/verdict/risk_engine.py",
        "gross_notional=0.0 if account.gross_notional >= 0 > left else left,",
        "gross_notional=0.0 if account.gross_notional >= 0 >= left else left,",
        "nothing left is 0.0 either way",
    ),
    Spared(
        "torra/verdict/ticket_checks.py",
        "wins, trades = account.win_rates.get(ticket.side, (0, 0))",
        "wins, trades = account.win_rates.get(ticket.side, (1, 0))",
        "with no trades the wins are not looked at: min_trades_for_ev is 1 at least",
    ),
    Spared(
        "torra/verdict/position_size.py",
        "def size(levels: Levels, spec: SymbolSpec, risk: Risk, multiplier: float = 1.0) -> float:",
        "def size(levels: Levels, spec: SymbolSpec, risk: Risk, multiplier: float = 2.0) -> float:",
        "a multiplier above 1 is cut to 1",
    ),
    Spared(
        "torra/verdict/position_size.py",
        "top = bottom = 1",
        "top = bottom = 2",
        "a factor of both sides of a quotient",
    ),
    Spared(
        "torra/verdict/position_size.py",
        "scale = max(0.0, min(multiplier, 1.0)) if not math.isnan(multiplier) else 0.0",
        "scale = max(0.0, min(multiplier, 1.0)) if (not math.isnan(multiplier)) or True else 0.0",
        "in this order of the arguments max and min make zero of NaN too; the question says it",
    ),
)
"""Changes that no test can notice."""


def tried(tree: Path, program: str) -> dict[str, Any]:
    """Run mutmut over a copy of the tree; return its record."""
    clock = System()
    began = clock.monotonic()
    with (tree / "pyproject.toml").open("a", encoding="utf-8") as settings:
        settings.write(settings_for(tree))
    code, said = run((program, "run", "--max-children", "1"), tree, SECONDS)
    counts = COUNTED.findall(said)
    _, listed = run((program, "results"), tree, SECONDS)
    left = [(name, state, run((program, "show", name), tree, SECONDS)[1]) for name, state in
            NAMED.findall(listed)]  # fmt: skip
    unexplained = [(name, state, shown) for name, state, shown in left if not explained(shown)]
    for name, state, shown in unexplained:
        print(f"{name} {state}\n{shown}")
    if code != 0 or not counts:
        print(said[-2000:])
    found = int(counts[-1][1]) if counts else 0
    return {
        "noticed": code == 0 and found > 0 and not unexplained,
        "seen": f"{found:,} small changes of the arithmetic of risk: {found - len(left):,} are "
        f"noticed, {len(left) - len(unexplained)} change nothing and say why",
        "seconds": round(clock.monotonic() - began, 1),
        "date": clock.real_now().date().isoformat(),
    }


def settings_for(tree: Path) -> str:
    """Return the lines of pyproject.toml that tell mutmut what to do."""
    copied = sorted(
        path.name
        for path in tree.iterdir()
        if not path.name.startswith(".") and path.name not in NOT_COPIED
    )
    told = {
        "source_paths": [*SOURCES],
        "also_copy": copied,
        "pytest_add_cli_args_test_selection": [resolved(name) for name in TESTS],
        "pytest_add_cli_args": ["-p", "no:randomly", "-p", "no:cacheprovider"],
    }
    return "\n[tool.mutmut]\n" + "".join(f"{name} = {value!r}\n" for name, value in told.items())


def explained(shown: str) -> bool:
    """Return whether a change, as mutmut shows it, is one of SPARED."""
    lines = shown.splitlines()
    gone = [line for line in lines if line.startswith("-") and not line.startswith("---")]
    come = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
    files = [line[4:].strip() for line in lines if line.startswith("--- ")]
    return any(
        files == [known.file]
        and [line[1:].strip() for line in gone] == [known.old]
        and [line[1:].strip() for line in come] == [known.new]
        for known in SPARED
    )
