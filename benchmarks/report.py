"""`make bench`: measures, keeps, checks the targets, and writes docs/performance.md.

`python -m benchmarks.report --help` tells the options. Exit code 0 means that every target is kept
or its miss explained in benchmarks.missed; 1 that one is not (with --strict: that one is missed, or
only tried), or that a part could not be measured; what could be is kept all the same.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import page, plots
from benchmarks.missed import MISSED
from benchmarks.parts import PARTS
from benchmarks.results import Measured, keep, measured, missed, read, text_of
from benchmarks.rows import Part


def main(words: Sequence[str] | None = None) -> int:
    """Do what the options say; return the exit code."""
    options = parser().parse_args(words)
    results = read()
    wanted = [] if options.render else chosen(options.only)
    new = {part.name: found for part in wanted if (found := attempted(part, options.quick))}
    for part in wanted:
        if part.name in new and not options.json:
            print(page.section(part, new[part.name]))
    if options.json:
        print(text_of(new or results), end="")
    judged: dict[str, Measured] = dict(new) if options.quick else results | new
    if not options.quick or options.keep:
        judged = results | new
        keep(judged)
        write(judged)
    failed = [part.name for part in wanted if part.name not in new]
    return verdict(judged, failed, strict=options.strict)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    found = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    names = [part.name for part in PARTS]
    found.add_argument("--only", action="append", choices=names, metavar="NAME", help=str(names))
    found.add_argument("--quick", action="store_true", help="a trial: one short run, keeps nothing")
    found.add_argument("--keep", action="store_true", help="keep a trial, marked as one")
    found.add_argument("--json", action="store_true", help="print every run as JSON")
    found.add_argument("--render", action="store_true", help="measure nothing, write the page")
    found.add_argument("--strict", action="store_true", help="exit code 1 for any missed target")
    return found


def chosen(names: Iterable[str] | None) -> list[Part]:
    """Return the parts of these names, all of them for None."""
    return [part for part in PARTS if names is None or part.name in names]


def attempted(part: Part, trial: bool) -> Measured | None:
    """Return what a part measures; None, with the reason told, when it cannot be measured."""
    begin = time.perf_counter()
    print(f"{part.name} ...", end=" ", file=sys.stderr, flush=True)
    try:
        found = measured(part, trial=trial)
    except Exception:  # noqa: BLE001 - an hour of other parts is not lost for one
        print("could not be measured:", file=sys.stderr)
        traceback.print_exc()
        return None
    print(f"{time.perf_counter() - begin:.0f} s", file=sys.stderr)
    return found


def write(results: Mapping[str, Measured]) -> None:
    """Write the page and its pictures."""
    page.DOCUMENT.write_text(page.render(PARTS, results), encoding="utf-8")
    for file, text in plots.draw_all(PARTS, results).items():
        file.write_text(text, encoding="utf-8")


def verdict(results: Mapping[str, Measured], failed: Sequence[str], *, strict: bool) -> int:
    """Tell of every missed target; return the exit code."""
    code = 1 if failed else 0
    for name in failed:
        print(f"not measured: {name}", file=sys.stderr)
    for part in PARTS:
        if part.name not in results:
            continue
        found = results[part.name]
        if strict and found.trial:
            print(f"only tried: {part.name}", file=sys.stderr)
            code = 1
        for row in missed(part, found):
            why = MISSED.get((part.name, row.figure))
            told = f"{row.told(found.median(row.figure))}, target {row.bound()}"
            print(f"missed: {part.name}, {row.what}: {told}", file=sys.stderr)
            print(f"  {why.reason if why else 'no reason is written down'}", file=sys.stderr)
            code = 1 if strict or why is None else code
    return code


if __name__ == "__main__":
    sys.exit(main())
