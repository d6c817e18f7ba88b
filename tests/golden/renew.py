"""Renews the goldens and shows what changed: `python -m tests.golden.renew [--check] [PART ...]`.

`--check` writes nothing; its exit code is 1 where something differs. Two parts are made at a time.
A part that this machine cannot make (its test is skipped) stays as it is, and that is said.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.golden import parts
from torra.clock import System


def main(words: list[str] | None = None) -> int:
    """Renew or check the parts that are named, or all; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", help=f"of {', '.join(parts.PARTS)}; all without one")
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1")
    chosen = parser.parse_args(words)
    if unknown := set(chosen.part) - set(parts.PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts.PARTS)}")
    names = [name for name in parts.PARTS if not chosen.part or name in chosen.part]
    changed = 0
    with ProcessPoolExecutor(2, get_context("spawn"), max_tasks_per_child=1) as pool:
        for name, (today, seconds) in zip(names, pool.map(_timed, names), strict=True):
            if isinstance(today, str):
                print(f"{name}: NOT MADE: {today}", flush=True)
                continue
            lines = list(parts.differences(name, today))
            print(*lines, sep="\n", end="\n" if lines else "")
            print(f"{name}: {len(today)} files, {seconds:.0f} s, {_counted(lines)}", flush=True)
            changed += bool(lines)
            if not chosen.check:
                parts.renew(name, today)
    return int(chosen.check and changed > 0)


def _timed(name: str) -> tuple[dict[str, str] | str, float]:
    """Return the texts of a part, or why it cannot be made here; and the seconds."""
    clock = System()
    began = clock.monotonic()
    try:
        return parts.texts_of(name), clock.monotonic() - began
    except pytest.skip.Exception as reason:
        return str(reason), 0.0


def _counted(lines: list[str]) -> str:
    signs = [line[0] for line in lines if not line.startswith(("+++", "---"))]
    return f"+{signs.count('+')} -{signs.count('-')} lines" if signs else "no difference"


if __name__ == "__main__":
    sys.exit(main())
