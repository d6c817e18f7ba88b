"""What takes too long for a day, part by part, and what is kept of it.

    python -m tests.faults.nightly                       a night: oldest and mutants
    python -m tests.faults.nightly prove                 every test at its nightly count
    python -m tests.faults.nightly prove orders          some parts
    python -m tests.faults.nightly prove D1 test_x.py    a part of one: promises, files of tests
    python -m tests.faults.nightly mutants fence hmac    ... planted faults
    python -m tests.faults.nightly orders 20             all tests in so many random orders
    python -m tests.faults.nightly orders 7-20           ... where the sixth was the last
    python -m tests.faults.nightly soak --hours 24       a day of a whole desk
    python -m tests.faults.nightly baseline store        50 small changes of a room, or of all
    python -m tests.faults.nightly seconds JUNIT         what the tests of each room take, of a file
    python -m tests.faults.nightly risk MUTMUT           every change of mutmut, a program apart
    python -m tests.faults.nightly page                  only writes docs/promises.md anew

A whole part and a room write what they saw into docs/ (`promises` says what is where), a part of
`prove` and `mutants` only with --record. A record is replaced by a run of all that it tells of, and
by no other; what a run that is broken off had not come to stays as it was. `baseline` goes on where
it was broken off, as long as no file changes. No record has a path or a name of a machine in it.
The program ends with 1 when something failed, and the records say so.
"""

from __future__ import annotations

import argparse
import os
import platform
import queue
import re
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts import gauge
from tests import ROOT, longest
from tests.faults import baseline, named_tests, promises, risk_mutants
from tests.faults.named_tests import resolved
from tests.faults.planted import FAULTS
from tests.faults.planting import HUNG, Fault, copied, planted, run, spoilt
from tests.faults.promises import BASELINE, MUTANTS, NIGHTS, ORDERS, PROOFS, Promise
from torra.clock import System

PYTEST: Final = (sys.executable, "-m", "pytest", "-q")
TO_THE_END: Final = (0, 1)
"""pytest's exit codes of a run that came to its end, without and with tests that failed."""

FAILED: Final = "failed: "
AGAIN: Final = "again: "
"""How a record names a test that failed, and one that was tried again."""

NOTHING_SUCH: Final = 2
"""Exit code of a run that was asked for what is not there."""


class Part(NamedTuple):
    """A part of a night. `run` takes words, what of the part is to be run, and returns an exit
    code; `of_a_night` says whether it belongs to every night. `words` are those of the whole part,
    None where any words are.
    """

    says: str
    run: Callable[[Sequence[str], argparse.Namespace], int]
    of_a_night: bool = False
    words: tuple[str, ...] | None = ()


def main(told: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 when nothing failed."""
    asked = _asked(told)
    words = asked.words
    chosen = {name: part.words or () for name, part in PARTS.items() if part.of_a_night}
    if words and all(word in PARTS for word in words):
        chosen = {word: PARTS[word].words or () for word in words}
    elif words:
        chosen = {words[0]: tuple(words[1:])}
    if unknown := [name for name in chosen if name not in PARTS]:
        print(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
        return NOTHING_SUCH
    # Now, not after the hour of the parts before it.
    named = chosen.get("mutants")
    if named is not None and (why := unfit(one for one in FAULTS if not named or one.id in named)):
        print(why)
        return NOTHING_SUCH
    print(before(chosen), flush=True)
    return max(_timed(name, of, asked) for name, of in chosen.items())


def before(chosen: Iterable[str]) -> str:
    """Return which parts there are, which of them will be run, and how long each took last."""
    nights = promises.read(NIGHTS)
    lines = []
    for name, part in PARTS.items():
        mark = ">" if name in chosen else " "
        took = nights.get(name)
        last = f"{took['seconds'] / 60:.0f} min on {took['date']}" if took else "not timed yet"
        lines.append(f"{mark} {name:<8} {last:<22} {part.says}")
    return "\n".join(lines)


def _timed(name: str, words: Sequence[str], asked: argparse.Namespace) -> int:
    """Run a part; when it came to its end as a whole, its time is on record."""
    part = PARTS[name]
    whole = part.words is None or tuple(words) == part.words
    asked.keeps = whole or asked.record
    clock = System()
    began, worked = clock.monotonic(), _worked()
    code = part.run(words, asked)
    if code in TO_THE_END and whole and name not in ("page", "seconds"):
        took = {
            "date": _today(),
            "seconds": round(clock.monotonic() - began),
            "cpu_seconds": round(_worked() - worked),
        }
        promises.keep(NIGHTS, {name: took}, PARTS)
    return code


def _worked() -> float:
    """Return the CPU seconds of all processes that were begun here and are over."""
    used = os.times()
    return used.children_user + used.children_system


# --- promises -------------------------------------------------------------------------------------


LISTED: Final = 40
"""Tests that are listed at the end as those that took longest."""


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


NIGHT_SECONDS: Final = 62 * 60
"""Seconds of a night for the long files; the short ones and the planted faults come on top."""


def oldest(_: Sequence[str], asked: argparse.Namespace) -> int:
    """Run, each at its nightly count, the tests of what was seen longest ago: a night's worth."""
    known = promises.registry().promises
    room = asked.workers * NIGHT_SECONDS
    files = files_of_a_night(known, promises.read(PROOFS), longest.seen(), room)
    left = sum(map(len, named_tests.files().values())) - len(files)
    print(f"{len(files)} files of tests; {left} long ones are for the next nights", flush=True)
    return _proved(files, asked)


def files_of_a_night(
    known: Iterable[Promise],
    proofs: Mapping[str, Any],
    seen: Mapping[str, longest.Seen],
    room: float,
) -> list[str]:
    """Return all short files, and the long ones that fit into `room` seconds of the workers.

    The promise that was recorded longest ago comes first, with all of its files: a record is of a
    whole promise. The first one is taken even if it alone needs more.
    """
    all_files = {path for paths in named_tests.files().values() for path in paths}
    long = all_files & seen.keys()
    units = []
    for promise in known:
        files = {node.partition("::")[0] for node in promise.nodes} & long
        if files and not promise.by_hand:
            units.append((proofs.get(promise.id, {}).get("date", ""), files))
    proved = {file for _, files in units for file in files}
    units += [(seen[file].date, {file}) for file in sorted(long - proved)]
    chosen: set[str] = set()
    for _, files in sorted(units, key=lambda unit: unit[0]):
        seconds = sum(seen[file].seconds for file in files - chosen)
        if seconds <= room or not chosen:
            chosen |= files
            room -= seconds
    return sorted(chosen | (all_files - long))


def prove(words: Sequence[str], asked: argparse.Namespace) -> int:
    """Run every test at its nightly count, or those of some promises and files."""
    known = promises.registry().promises
    by_id = {promise.id: promise for promise in known}
    files = [word for word in words if word not in by_id]
    try:
        nodes = [node for word in words if word in by_id for node in by_id[word].nodes]
        nodes += [resolved(name.rpartition("/")[2]) for name in files]
    except LookupError as error:
        print(f"{error}; there are the promises {', '.join(by_id)}")
        return NOTHING_SUCH
    if words and not nodes:
        print("none of these has a test")
        return NOTHING_SUCH
    return _proved(without_doubles(sorted({*nodes})), asked)


def _proved(nodes: Sequence[str], asked: argparse.Namespace) -> int:
    """Run tests at their nightly counts, none for all, and keep what was seen."""
    known = promises.registry().promises
    nightly = ("--nightly", "--longest-first", "--timeout", "5400")
    code, cases = suite([*nightly, *nodes], asked.workers)
    fresh = {one.id: record for one in known if (record := record_of(one, cases, nodes))}
    if asked.keeps:
        keep_proofs(fresh)
        longest.keep(seconds_of(cases, nodes))
    print("\n".join(f"{name:<4} {promises.told(record)}" for name, record in fresh.items()))
    print(slowest(cases))
    return code


def in_any_order(words: Sequence[str], asked: argparse.Namespace) -> int:
    """Run the daily suite in random orders and keep how many tests failed in any of them.

    Each order is a seed and a trial. The record grows by each that came to its end, so that they
    may be run in parts; the first one begins it anew, one in which a test failed is the last.
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)", " ".join(words))
    first, last = (int(match[1] or 1), int(match[2])) if match else (0, 0)
    if not 1 <= first <= last:
        print(f"{' '.join(words)!r} is no number, and no first and last one like 7-20")
        return NOTHING_SUCH
    for seed in range(first, last + 1):
        known = promises.read(PROOFS).get(ORDERS) if seed > 1 else None
        done = known["trials"] if known and not known["failed"] else 0
        if done != seed - 1:
            print(f"{done} orders are on record that held: go on with {done + 1}-{last}")
            return NOTHING_SUCH
        print(f"order {seed} of {last}", flush=True)
        code, cases = suite([f"--randomly-seed={seed}"], asked.workers)
        if code in TO_THE_END:
            keep_proofs({ORDERS: _one_more(known, cases)})
        if code:
            return code
    return 0


def suite(words: Sequence[str], workers: int) -> tuple[int, list[Case]]:
    """Run pytest and return its exit code and what ran; nothing of a run that was broken off."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        # This form of the report has the file of a test and allows properties.
        form = ("-o", "junit_family=xunit1", f"--junitxml={report}")
        command = [
            *PYTEST,
            "--dist",
            "loadfile",
            "--no-loadscope-reorder",
            "-n",
            str(workers),
            *form,
            *words,
        ]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        return code, list(cases_of(report)) if code in TO_THE_END else []


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
    if asked and not all(any(covers(node, test) for node in asked) for test in promise.nodes):
        return None
    if not all(any(belongs(case, test) for case in cases) for test in promise.nodes):
        return None
    return _record([case for case in cases if any(belongs(case, t) for t in promise.nodes)])


def belongs(case: Case, test: str) -> bool:
    """Tell whether a case is of a test, or of a file of tests."""
    return test in (case.node, case.node.partition("::")[0])


def covers(node: str, test: str) -> bool:
    """Tell whether a run of a node has all of a test or a file of tests."""
    return node == test or test.startswith((f"{node}::", f"{node.rstrip('/')}/"))


def seconds_of(cases: Iterable[Case], asked: Sequence[str] = ()) -> dict[str, longest.Seen]:
    """Return what the files took that a run was told to run whole, none for the whole suite."""
    seconds: dict[str, float] = defaultdict(float)
    for case in cases:
        file = case.node.partition("::")[0]
        if not asked or file in asked:
            seconds[file] += case.seconds
    return {file: longest.Seen(_today(), round(took)) for file, took in seconds.items()}


def slowest(cases: Iterable[Case]) -> str:
    """Return the tests that took longest: where a night that takes too long is to be shortened."""
    seconds: dict[str, float] = defaultdict(float)
    for case in cases:
        seconds[case.node] += case.seconds
    longest = sorted(seconds.items(), key=lambda took: -took[1])[:LISTED]
    rows = (f"{took:6.0f} s  {node}" for node, took in longest)
    return "\n".join([f"of {sum(seconds.values()):,.0f} s of all workers took", *rows])


def without_doubles(nodes: Iterable[str]) -> list[str]:
    """Return the nodes without those whose whole file is named too."""
    named = list(nodes)
    return [node for node in named if "::" not in node or node.partition("::")[0] not in named]


def keep_proofs(fresh: Mapping[str, Any]) -> None:
    """Put records in the place of the older ones of the same promises."""
    known = (promise.id for promise in promises.registry().promises)
    promises.keep(PROOFS, fresh, (*known, ORDERS))


# --- planted faults -------------------------------------------------------------------------------

FAULT_SECONDS: Final = 300.0
"""Seconds that the tests of one fault may take; a fault that makes them hang is noticed too."""

TEST_SECONDS: Final = 90
"""Seconds for one test."""

IN_A_COPY: Final = (
    *("-p", "no:randomly", "-p", "no:cacheprovider", "--tb=line", "-rfE"),
    *("-o", f"timeout={TEST_SECONDS}"),
)


def mutants(words: Sequence[str], asked: argparse.Namespace) -> int:
    """Plant faults in copies of the tree, each one alone, and see that each of its tests fails.

    First the tests run in a copy that nobody spoilt: one that fails there tells nothing. What
    survives beside others is tried a second time, alone.
    """
    known = {fault.id: fault for fault in FAULTS}
    if unknown := sorted({*words} - {*known}):
        print(f"there is no planted fault {', '.join(unknown)}; there are {', '.join(known)}")
        return NOTHING_SUCH
    chosen = [known[name] for name in words or known]
    with tempfile.TemporaryDirectory() as folder:
        trees = [copied(Path(folder) / str(number)) for number in range(asked.workers)]
        failing = _failing(trees[0], chosen, asked.workers)
        left = [fault for fault in chosen if failing.intersection(_nodes(fault))]
        left += _beside_each_other([one for one in chosen if one not in left], trees, asked)
        survivors = []
        for fault in left:
            failing = _failing(trees[0], [fault], 0)
            row = _tried(fault, trees[0]) | ({"noticed": False} if failing else {})
            if row["noticed"] is not None:
                _keep_mutant(fault.id, row, asked)
            if not row["noticed"]:
                survivors.append(fault.id)
                print(f"  fail without it: {', '.join(sorted(failing)) or 'none'}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} planted faults were noticed")
    return int(bool(survivors))


def unfit(faults: Iterable[Fault]) -> str:
    """Return why a fault cannot be planted in this tree, "" where all can."""
    try:
        for fault in faults:
            spoilt(fault, ROOT)
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def risk(words: Sequence[str], asked: argparse.Namespace) -> int:
    """Run every change that mutmut knows over the arithmetic of risk (`risk_mutants`)."""
    if not words:
        print("name mutmut's program, in an environment that has the development packages too")
        return NOTHING_SUCH
    with tempfile.TemporaryDirectory() as folder:
        record = risk_mutants.tried(copied(Path(folder)), words[0])
    print(record["seen"])
    _keep_mutant(risk_mutants.ID, record, asked)
    return int(not record["noticed"])


def small_changes(words: Sequence[str], asked: argparse.Namespace) -> int:
    """Measure how many small changes of rooms their tests notice, none for all (`baseline`).

    A room is a record of its own, and replaces the older one. 1 when the share of all rooms fell.
    """
    if unknown := sorted({*words} - {*baseline.ROOMS}):
        print(f"there is no room {unknown[0]}; there are {', '.join(baseline.ROOMS)}")
        return NOTHING_SUCH
    before = baseline.share(promises.read(BASELINE))
    for room in words or baseline.ROOMS:
        record = baseline.measured(room, asked.workers)
        print(f"{room}: {record['killed']} of {record['mutants']} small changes were noticed")
        promises.keep(BASELINE, {room: record}, baseline.RECORDS)
    after = baseline.share(promises.read(BASELINE))
    print(f"all rooms on record: {after:.1%} were noticed, {before:.1%} before")
    return int(after < before - baseline.FALL)


def seconds(words: Sequence[str], _: argparse.Namespace) -> int:
    """Keep what the tests of each room take, of a junit file of `make test`."""
    if len(words) != 1 or not Path(words[0]).is_file():
        print("name the junit file of a run: make test TESTS=--junitxml=FILE.xml")
        return NOTHING_SUCH
    record = gauge.seconds((case.node, case.seconds) for case in cases_of(Path(words[0])))
    promises.keep(BASELINE, {"seconds": record}, baseline.RECORDS)
    return 0


def _beside_each_other(
    chosen: Sequence[Fault], trees: Sequence[Path], asked: argparse.Namespace
) -> list[Fault]:
    """Plant faults, one in each copy at a time; return those that survived."""
    free: queue.Queue[Path] = queue.Queue()
    for tree in trees:
        free.put(tree)

    def tried(fault: Fault) -> dict[str, Any]:
        tree = free.get()
        try:
            return _tried(fault, tree)
        finally:
            free.put(tree)

    left = []
    with ThreadPoolExecutor(len(trees)) as threads:
        running = {threads.submit(tried, fault): fault for fault in chosen}
        for future in as_completed(running):
            if future.result()["noticed"]:
                _keep_mutant(running[future].id, future.result(), asked)
            else:
                left.append(running[future])
    return left


def _tried(fault: Fault, tree: Path) -> dict[str, Any]:
    """Plant a fault and run its tests; return its record.

    `noticed` is None where the machine was too busy to judge (`tests.tries`).
    """
    clock = System()
    began = clock.monotonic()
    with planted(fault, tree):
        code, said = _in(tree, _nodes(fault), *fault.options)
    failed = _failed(said)
    missed = [test for test in _nodes(fault) if not _among(test, failed)]
    found: bool | None = code == HUNG or (code == 1 and not missed)
    if missed and all(
        re.search(rf"^{re.escape(test)}.*: in \d+ tries, ", said, re.MULTILINE) for test in missed
    ):
        found = None
    seconds = round(clock.monotonic() - began, 1)
    word = {True: "noticed ", False: "SURVIVED", None: "TOO BUSY"}[found]
    print(f"{word} {seconds:6.1f} s  {fault.promise:<5} {fault.id:<26} {fault.what}", flush=True)
    if not found:
        print(f"  not noticed by: {', '.join(missed) or 'none'} (pytest ended with {code})")
        print("  " + "\n  ".join(said.strip().splitlines()[-6:]), flush=True)
    return {"noticed": found, "seconds": seconds, "date": _today()}


def _failing(tree: Path, chosen: Sequence[Fault], workers: int) -> set[str]:
    """Return which tests of some faults fail in a copy that nobody spoilt."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for fault in chosen:
        groups.setdefault(fault.options, []).extend(_nodes(fault))
    found: set[str] = set()
    for options, tests in groups.items():
        code, said = _in(tree, tests, "-n", str(workers), *options, seconds=3 * FAULT_SECONDS)
        print(f"unspoilt {said.strip().splitlines()[-1]}", flush=True)
        failed = _failed(said, "FAILED ", "ERROR ")
        found |= {test for test in tests if code != 0 and (_among(test, failed) or not failed)}
    return found


def _in(
    tree: Path, tests: Iterable[str], *options: str, seconds: float = FAULT_SECONDS
) -> tuple[int, str]:
    return run((*PYTEST, *IN_A_COPY, *options, *dict.fromkeys(tests)), tree, seconds)


def _nodes(fault: Fault) -> list[str]:
    return [resolved(name) for name in fault.tests]


def _failed(said: str, *words: str) -> set[str]:
    begins = words or ("FAILED ",)
    return {line.split(" ")[1] for line in said.splitlines() if line.startswith(begins)}


def _among(test: str, names: Iterable[str]) -> bool:
    """Return whether a test, or one of its cases, is among names."""
    return any(name == test or name.startswith(f"{test}[") for name in names)


def _keep_mutant(name: str, record: Mapping[str, Any], asked: argparse.Namespace) -> None:
    if asked.keeps:
        order = [fault.id for fault in FAULTS]
        promises.keep(MUTANTS, {name: record}, (*order, risk_mutants.ID))


# --- the rest -------------------------------------------------------------------------------------


def soak(words: Sequence[str], _: argparse.Namespace) -> int:
    """Run a day of a whole desk, in a process of its own, so that its memory is its own."""
    command = (sys.executable, "-m", "tests.faults.soak", *words)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def page(_: Sequence[str], asked: argparse.Namespace) -> int:
    """Write the page anew."""
    promises.write()
    return 0


PARTS: Final = {
    "oldest": Part("what was seen longest ago, at its nightly count", oldest, of_a_night=True),
    "prove": Part("every test at its nightly count, a day's soak too", prove),
    "mutants": Part("every planted fault", mutants, of_a_night=True),
    "orders": Part("all tests at daily counts in 20 random orders", in_any_order, words=("20",)),
    "soak": Part("a day of 20 instances", soak, words=("--hours", "24", "--instances", "20")),
    "risk": Part("mutmut over the arithmetic of risk: needs its program's path", risk, words=None),
    "baseline": Part("small changes of four rooms, drawn by a seed", small_changes),
    "seconds": Part("what the tests of each room take: needs a junit file", seconds, words=None),
    "page": Part("docs/promises.md, of what is on record", page),
}


def _asked(told: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.nightly",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--record", action="store_true", help="record a part of a part too")
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="parts, or one part and what of it")
    return parser.parse_args(told)


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
        "date": _today(),
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


def _one_more(known: Mapping[str, Any] | None, cases: Sequence[Case]) -> dict[str, Any]:
    """Return the record of the orders with one more."""
    found = _record(cases) | {"trials": 1}
    found["seen"] = [text for text in found["seen"] if text.startswith((FAILED, AGAIN))]
    if known is not None:
        for name in ("passed", "failed", "skipped", "trials", "again", "seconds"):
            found[name] += known.get(name, 0)
        found["seen"] = list(dict.fromkeys([*known["seen"], *found["seen"]]))
    return found


def _plain(text: str) -> str:
    """Return a text without folders: a record is the same on any machine."""
    return re.sub(r"(?<![\w.])/[\w./-]*/", "", " ".join(text.split()))


def _today() -> str:
    return System().real_now().date().isoformat()


if __name__ == "__main__":
    raise SystemExit(main())
