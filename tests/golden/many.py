"""Artefacts at scale, as digests: 5,000 ticks of every mode, 2,000 debates over vendors' wires.

    python -m tests.golden.many --check [--ticks N] [--debates N] [--workers N]
    python -m tests.golden.many --dump FOLDER [--ticks N] [--debates N]
    python -m tests.golden.many --renew

A block is some 50 artefacts that follow from its kind and number alone; many.json has a digest of
each. `--check` names the blocks that differ, `--dump` writes their artefacts for a diff of two
trees, `--renew` writes the digests anew. Blocks of ticks are made by tests.golden.many_ticks,
blocks of debates by tests.golden.many_debates. On another machine, or with other libraries, the
last bits of numbers may differ: Other is raised there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from tests.worlds import rule_outcomes
from torra.clock import System

DIGESTS: Final = Path(__file__).with_name("many.json")
BLOCK: Final = 50
COUNTS: Final[Mapping[str, int]] = {"ticks": 5_000, "debates": 2_000}
"""How many artefacts of each kind there are digests of."""

MEASURED: Final = frozenset(("ms", "elapsed_ms", "signal_event"))
"""Names of values that say how fast a machine is, and which of two threads was first."""

DIGIT_COUNT: Final = 16


class Other(Exception):
    """The digests were made with other libraries, or on another machine."""


def artefacts(kind: str, number: int) -> list[Any]:
    """Return the artefacts of a block as JSON values without measured time."""
    return [unmeasured(item) for item in import_module(f"tests.golden.many_{kind}").block(number)]


def unmeasured(value: Any) -> Any:
    """Return JSON without how long anything took."""
    if isinstance(value, Mapping):
        return {name: unmeasured(item) for name, item in value.items() if name not in MEASURED}
    return [unmeasured(item) for item in value] if isinstance(value, list | tuple) else value


def digest(items: Iterable[Any]) -> str:
    """Return a digest of artefacts, whatever the order of keys."""
    text = json.dumps(list(items), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGIT_COUNT]


def blocks(counts: Mapping[str, int] = COUNTS) -> list[tuple[str, int]]:
    """Return kind and number of the blocks that hold so many artefacts of each kind."""
    return [(kind, number) for kind in COUNTS for number in range(-(-counts.get(kind, 0) // BLOCK))]


def committed() -> dict[str, list[str]]:
    """Return the digests by kind; raises Other."""
    noted: dict[str, Any] = json.loads(DIGESTS.read_text(encoding="utf-8"))
    if noted.pop("made_with") != rule_outcomes.made_with():
        raise Other
    return noted


def made(wanted: Sequence[tuple[str, int]], workers: int = 1) -> Iterator[tuple[str, int, str]]:
    """Yield kind, number and digest of each block; with several workers in as many processes."""
    with (
        ProcessPoolExecutor(workers, get_context("spawn")) if workers > 1 else nullcontext()
    ) as pool:
        run = pool.map if pool else map
        yield from run(_digested, wanted)


def check(counts: Mapping[str, int], workers: int = 1) -> list[str]:
    """Return the names of the blocks that differ from what is committed; raises Other."""
    noted = committed()
    found = made(blocks(counts), workers)
    return [f"{kind} {number}" for kind, number, today in found if noted[kind][number] != today]


def _digested(place: tuple[str, int]) -> tuple[str, int, str]:
    return (*place, digest(artefacts(*place)))


def main(words: Sequence[str] | None = None) -> int:
    """Check, dump or renew; return 1 where a block differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.many", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    parser.add_argument("--dump", type=Path, metavar="FOLDER", help="write the artefacts")
    parser.add_argument("--renew", action="store_true", help="write the digests anew")
    parser.add_argument("--block", nargs=2, metavar=("KIND", "NUMBER"), help="this block alone")
    parser.add_argument("--workers", type=int, default=2 * (os.cpu_count() or 1))
    for kind, count in COUNTS.items():
        parser.add_argument(f"--{kind}", type=int, default=count, metavar="N")
    chosen = parser.parse_args(words)
    wanted = blocks({kind: getattr(chosen, kind) for kind in COUNTS})
    if chosen.block:
        wanted = [(chosen.block[0], int(chosen.block[1]))]
    if chosen.dump:
        _dump(chosen.dump, wanted)
        return 0
    noted = {} if chosen.renew else committed()
    today: dict[str, list[str]] = {kind: [] for kind in COUNTS}
    clock, differing = System(), 0
    began = clock.monotonic()
    for done, (kind, number, mark) in enumerate(made(wanted, chosen.workers), 1):
        today[kind].append(mark)
        if not chosen.renew and noted[kind][number] != mark:
            differing += 1
            print(f"\r{kind} {number} differs ", flush=True)
        seconds = clock.monotonic() - began
        print(f"\r{done}/{len(wanted)} blocks, {seconds:.0f} s ", end="", file=sys.stderr)
    print(f"\n{differing} of {len(wanted)} blocks differ")
    if chosen.renew:
        noted_today = {"made_with": rule_outcomes.made_with(), **today}
        DIGESTS.write_text(json.dumps(noted_today, indent=1) + "\n", encoding="utf-8")
    return int(differing > 0)


def _dump(folder: Path, wanted: Iterable[tuple[str, int]]) -> None:
    """Write a file of indented JSON for each artefact."""
    for kind, number in wanted:
        home = folder / f"{kind}_{number}"
        home.mkdir(parents=True, exist_ok=True)
        for place, item in enumerate(artefacts(kind, number)):
            text = json.dumps(item, indent=1, sort_keys=True, ensure_ascii=False)
            (home / f"{place:03}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
