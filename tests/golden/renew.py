"""Renews the goldens and shows what changed: `python -m tests.golden.renew [--check] [PART ...]`.

`--check` writes nothing; its exit code is 1 where something differs. Two parts are made at a time.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

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
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for name, (today, seconds) in zip(names, pool.map(_timed, names), strict=True):
            lines = list(parts.differences(name, today))
            print(*lines, sep="\n", end="\n" if lines else "")
            print(f"{name}: {len(today)} files, {seconds:.0f} s, {_counted(lines)}", flush=True)
            changed += bool(lines)
            if not chosen.check:
                parts.renew(name, today)
    return int(chosen.check and changed > 0)


def _timed(name: str) -> tuple[dict[str, str], float]:
    clock = System()
    began = clock.monotonic()
    return parts.made(name), clock.monotonic() - began


def _counted(lines: list[str]) -> str:
    signs = [line[0] for line in lines if not line.startswith(("+++", "---"))]
    return f"+{signs.count('+')} -{signs.count('-')} lines" if signs else "no difference"


if __name__ == "__main__":
    sys.exit(main())
