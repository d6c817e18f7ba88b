"""Runs the tests behind the promises at their nightly counts and keeps what was seen.

    python -m tests.faults.prove [D1 L5 ... | tests/test_x.py ...] [--json]
    python -m tests.faults.prove --suite      every test there is: make nightly
    python -m tests.faults.prove --orders 20     the daily suite in so many random orders
    python -m tests.faults.prove --orders 7-20   ... going on where the sixth was the last
    python -m tests.faults.prove --render     only writes docs/promises.md anew

docs/proofs.json holds the newest record of each promise: a run replaces the record of those whose
tests it had all of, and of no other; one that is broken off replaces none. A record has no path and
no name of a machine in it. The program ends with 1 when a test failed; the record then says so, and
so does the page.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.faults import promises
from tests.faults.promises import ORDERS, Promise
from torra.clock import System

PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "--dist", "worksteal")
NIGHTLY: Final = ("--nightly", "--timeout", "5400")
JUNIT: Final = ("-o", "junit_family=xunit1")
"""The form that has the file of a test and allows properties."""

TO_THE_END: Final = (0, 1)
"""pytest's exit codes of a run that came to its end, without and with tests that failed."""


FAILED: Final = "failed: "
AGAIN: Final = "again: "
"""How a record names a test that failed."""


class Case(NamedTuple):
    """One test that ran. `node` is `file::test` without its parameters, `trials` the most cases
    that it counted, `seen` what it said of itself, `again` why it tried something again.
    """

    node: str
    outcome: str
    seconds: float
    trials: int
    seen: tuple[str, ...]
    again: tuple[str, ...] = ()


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 when no test failed."""
    asked = _asked(words)
    code = 0
    if asked.orders:
        code = in_any_order(*asked.orders, asked.workers)
    elif not asked.render:
        code = prove(asked)
    promises.write()
    return code


def prove(asked: argparse.Namespace) -> int:
    """Run the tests of some promises, or all, and replace their records."""
    known = promises.registry().promises
    by_id = {promise.id: promise for promise in known}
    paths = [word for word in asked.what if "/" in word or word.endswith(".py")]
    if unknown := [word for word in asked.what if word not in by_id and word not in paths]:
        print(f"there is no promise {', '.join(unknown)}; there are {', '.join(by_id)}")
        return 2
    chosen = [by_id[word] for word in asked.what if word in by_id]
    if not asked.what:
        chosen = [promise for promise in known if not promise.by_hand]
    nodes = [] if asked.suite else sorted({t for one in chosen for t in one.tests} | set(paths))
    if not nodes and not asked.suite:
        print("none of these has a test")
        return 2
    code, cases = run([*NIGHTLY, *without_doubles(nodes)], asked.workers)
    fresh = {one.id: record for one in known if (record := record_of(one, cases, nodes))}
    keep(fresh)
    print(json.dumps(fresh, indent=1) if asked.json else summary(fresh))
    return code


def in_any_order(first: int, last: int, workers: int) -> int:
    """Run the daily suite in random orders and keep how many tests failed in any of them.

    Each order is a seed and a trial. The record grows by each that came to its end, so that they
    may be run in parts; the first one begins it anew, one in which a test failed is the last.
    """
    for seed in range(first, last + 1):
        before = promises.read(promises.PROOFS, {}).get(ORDERS) if seed > 1 else None
        done = before["trials"] if before and not before["failed"] else 0
        if done != seed - 1:
            print(f"{done} orders are on record that held: go on with --orders {done + 1}-{last}")
            return 2
        print(f"order {seed} of {last}", flush=True)
        code, cases = run([f"--randomly-seed={seed}"], workers)
        if code in TO_THE_END:
            keep({ORDERS: _one_more(before, cases)})
            promises.write()  # the next order has a test that looks at it
        if code:
            return code
    return 0


def _one_more(before: Mapping[str, Any] | None, cases: Sequence[Case]) -> dict[str, Any]:
    """Return the record of the orders with one more."""
    found = _record(cases) | {"trials": 1}
    found["seen"] = [text for text in found["seen"] if text.startswith((FAILED, AGAIN))]
    if before is not None:
        for name in ("passed", "failed", "skipped", "trials", "again", "seconds"):
            found[name] += before.get(name, 0)
        found["seen"] = list(dict.fromkeys([*before["seen"], *found["seen"]]))
    return found


def run(words: Sequence[str], workers: int) -> tuple[int, list[Case]]:
    """Run pytest and return its exit code and what ran; nothing of a run that was broken off."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [*PYTEST, "-n", str(workers), *JUNIT, f"--junitxml={report}", *words]
        code = subprocess.run(command, cwd=promises.ROOT, check=False).returncode
        cases = list(cases_of(report)) if code in TO_THE_END else []
    return code, cases


def cases_of(report: Path) -> Iterator[Case]:
    """Yield what a junit file of pytest tells of each test."""
    for element in ET.parse(report).getroot().iter("testcase"):
        told = [(one.get("name"), one.get("value", "")) for one in element.iter("property")]
        yield Case(
            f"{element.get('file', '')}::{element.get('name', '').partition('[')[0]}",
            _outcome(element),
            float(element.get("time", 0)),
            max((int(value) for name, value in told if name == "trials"), default=0),
            tuple(value for name, value in told if name == "seen"),
            tuple(value for name, value in told if name == "again"),
        )


def record_of(
    promise: Promise, cases: Sequence[Case], asked: Sequence[str] = ()
) -> dict[str, Any] | None:
    """Return what a run saw of a promise, None when it did not have all of its tests.

    `asked` are the tests, files and folders that the run was told to run, none for the whole suite.
    """
    if promise.by_hand or not promise.tests:
        return None
    if asked and not all(any(covers(node, test) for node in asked) for test in promise.tests):
        return None
    if not all(any(belongs(case, test) for case in cases) for test in promise.tests):
        return None
    return _record([case for case in cases if any(belongs(case, t) for t in promise.tests)])


def belongs(case: Case, test: str) -> bool:
    """Tell whether a case is of a test, or of a file of tests."""
    return test in (case.node, case.node.partition("::")[0])


def covers(node: str, test: str) -> bool:
    """Tell whether a run of a node has all of a test or a file of tests."""
    return node == test or test.startswith((f"{node}::", f"{node.rstrip('/')}/"))


def without_doubles(nodes: Iterable[str]) -> list[str]:
    """Return the nodes without those whose whole file is named too."""
    named = list(nodes)
    return [node for node in named if "::" not in node or node.partition("::")[0] not in named]


def keep(fresh: dict[str, dict[str, Any]]) -> None:
    """Put records in the place of the older ones of the same promises."""
    held = promises.read(promises.PROOFS, {}) | fresh
    order = [*(promise.id for promise in promises.registry().promises), ORDERS]
    kept = {name: held[name] for name in order if name in held}
    text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    promises.PROOFS.write_text(text, encoding="utf-8")


def summary(fresh: dict[str, dict[str, Any]]) -> str:
    """Return records as lines for a person."""
    return "\n".join(f"{name:<4} {promises.told(record)}" for name, record in fresh.items())


# --- details --------------------------------------------------------------------------------------


def _asked(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the tests behind the promises.")
    parser.add_argument("what", nargs="*", help="ids of promises, or files of tests")
    parser.add_argument("--suite", action="store_true", help="every test at its nightly count")
    parser.add_argument(
        "--orders", type=_seeds, metavar="N|M-N", help="random orders of the daily suite, by seed"
    )
    parser.add_argument("--render", action="store_true", help="only write the page")
    parser.add_argument("--json", action="store_true", help="print the new records as JSON")
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests")
    return parser.parse_args(words)


def _seeds(told: str) -> tuple[int, int]:
    """Return the first and the last of a range; a number alone is the last."""
    first, _, last = told.rpartition("-")
    with suppress(ValueError):
        found = int(first or 1), int(last)
        if 1 <= found[0] <= found[1]:
            return found
    raise argparse.ArgumentTypeError(f"{told!r} is no number, and no first and last one like 7-20")


def _outcome(element: ET.Element) -> str:
    for child in element:
        if child.tag in ("failure", "error"):
            return "failed"
        if child.tag == "skipped":
            return "skipped"
    return "passed"


def _record(cases: Iterable[Case]) -> dict[str, Any]:
    counted = list(cases)
    outcomes = [case.outcome for case in counted]
    said = [_plain(text) for case in counted for text in case.seen]
    said += [_plain(f"{AGAIN}{case.node}, {why}") for case in counted for why in case.again]
    said += [f"{FAILED}{case.node}" for case in counted if case.outcome == "failed"]
    return {
        "date": System().real_now().date().isoformat(),
        "passed": outcomes.count("passed"),
        "failed": outcomes.count("failed"),
        "skipped": outcomes.count("skipped"),
        "trials": sum(case.trials for case in counted if case.outcome != "skipped"),
        "again": sum(len(case.again) for case in counted),
        "seconds": round(sum(case.seconds for case in counted)),
        "seen": list(dict.fromkeys(said)),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _plain(text: str) -> str:
    """Return a text without folders: a record is the same on any machine."""
    return re.sub(r"(?<![\w.])/[\w./-]*/", "", " ".join(text.split()))


if __name__ == "__main__":
    raise SystemExit(main())
