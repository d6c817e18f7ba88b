"""Runs the planted faults: each one alone in a copy of the tree, where its tests have to fail.

    python -m tests.faults.mutate [IDS...] [--json] [--risk MUTMUT]

First the named tests run in a copy that nobody spoilt: one that fails there tells nothing. A fault
that one of its tests does not notice has survived: the run ends with 1. `docs/mutants.json` keeps
the newest result of each fault, of those that were not run now too. `--risk` runs every change that
mutmut knows over the arithmetic of risk besides (`risk_mutants`); MUTMUT is its program, in an
environment of its own that has the packages of the development environment too. The tree itself is
never changed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.faults import promises, risk_mutants
from tests.faults.mutants import FAULTS
from tests.faults.planting import HUNG, ROOT, Fault, copied, planted, run
from torra.clock import System

KEPT: Final = ROOT / "docs" / "mutants.json"

TIMEOUT: Final = 300.0
"""Seconds that the tests of one fault may take; a fault that makes them hang is noticed too."""

TEST_TIMEOUT: Final = 90
"""Seconds for one test."""

PYTEST: Final = (
    *("-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--tb=line", "-rfE"),
    *("-o", f"timeout={TEST_TIMEOUT}"),
)

TESTS_FAILED: Final = 1
"""pytest's exit code when tests were run and some failed."""


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 when every fault was noticed."""
    asked = _asked(words)
    known = {fault.id: fault for fault in FAULTS}
    if unknown := sorted(set(asked.ids) - set(known)):
        print(f"there is no planted fault {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    chosen = [known[name] for name in asked.ids or ([] if asked.risk else known)]
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        failing = set() if asked.trust else _failing(tree, chosen)
        rows = [
            _tried(fault, tree, f"{number}/{len(chosen)}", failing)
            for number, fault in enumerate(chosen, 1)
        ]
        if asked.risk:
            rows.append(risk_mutants.tried(tree, asked.risk))
    keep(rows)
    promises.write()
    print(json.dumps(rows, indent=1) if asked.json else table(rows))
    return 0 if all(row["killed"] for row in rows) else 1


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Return rows as lines for a person."""
    return "\n".join(
        f"{'noticed ' if row['killed'] else 'SURVIVED'} {row['seconds']:6.1f} s  "
        f"{row['promise']:<3} {row['id']:<28} {row['what']}"
        for row in rows
    )


def keep(rows: Iterable[dict[str, Any]]) -> None:
    """Put rows in the place of older ones of the same faults, in the order of the table."""
    held = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []
    found = {row["id"]: row for row in (*held, *rows)}
    order = [*(fault.id for fault in FAULTS), risk_mutants.ID]
    kept = [found[name] for name in order if name in found]
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# --- details --------------------------------------------------------------------------------------


def _asked(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Plant faults; see that named tests fail.")
    parser.add_argument("ids", nargs="*", help="only these faults")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--risk", metavar="MUTMUT", help="mutmut over the arithmetic of risk")
    parser.add_argument("--trust", action="store_true", help="do not run the sound copy first")
    return parser.parse_args(words)


def _pytest(tree: Path, tests: Iterable[str], *options: str) -> tuple[int, str]:
    command = (sys.executable, "-m", "pytest", *PYTEST, *options, *dict.fromkeys(tests))
    return run(command, tree, TIMEOUT)


def _failing(tree: Path, chosen: Sequence[Fault]) -> set[str]:
    """Return which of the named tests fail in a copy that nobody spoilt, so that they tell nothing.

    They run a file at a time, those that take other options apart.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for fault in chosen:
        for test in fault.tests:
            groups.setdefault((test.partition("::")[0], fault.options), []).append(test)
    found: set[str] = set()
    for (name, options), tests in groups.items():
        code, said = _pytest(tree, tests, *options)
        print(f"sound    {name}: {said.strip().splitlines()[-1]}", flush=True)
        failed = _failed(said)
        found |= {test for test in tests if code != 0 and (_among(test, failed) or not failed)}
    return found


def _failed(said: str) -> set[str]:
    return {line.split(" ")[1] for line in said.splitlines() if line.startswith("FAILED ")}


def _among(test: str, names: Iterable[str]) -> bool:
    """Return whether a test, or one of its cases, is among names."""
    return any(name == test or name.startswith(f"{test}[") for name in names)


def _tried(fault: Fault, tree: Path, number: str, failing: set[str]) -> dict[str, Any]:
    """Plant a fault and run its tests; return its row."""
    clock = System()
    began = clock.monotonic()
    with planted(fault, tree):
        code, said = _pytest(tree, fault.tests, *fault.options)
    failed = _failed(said)
    missed = [test for test in fault.tests if not _among(test, failed)]
    unsound = sorted(failing.intersection(fault.tests))
    killed = not unsound and (code == HUNG or (code == TESTS_FAILED and not missed))
    row = {
        "id": fault.id,
        "promise": fault.promise,
        "what": fault.what,
        "test": ", ".join(fault.tests),
        "killed": killed,
        "seconds": round(clock.monotonic() - began, 1),
        "date": clock.real_now().date().isoformat(),
    }
    print(f"{number} {table([row])}", flush=True)
    if not killed:
        print(f"    fail without it: {', '.join(unsound) or 'none'}")
        print(f"    not noticed by: {', '.join(missed) or 'none'} (pytest ended with {code})")
        print("    " + "\n    ".join(said.strip().splitlines()[-6:]), flush=True)
    return row


if __name__ == "__main__":
    raise SystemExit(main())
