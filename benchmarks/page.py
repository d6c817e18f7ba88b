"""Writes docs/performance.md from what was measured, and from nothing else.

The same results give the same page to the last letter: tests/dashboard/test_performance_page.py
renders it again. A part that was never measured says so; a trial is marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import peers
from benchmarks.missed import MISSED, Missed
from benchmarks.peers import PEERS, Peer
from benchmarks.results import RUNS, Measured, Results, missed
from benchmarks.rows import Part, Row

DOCUMENT: Final = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
PICTURES: Final = "pictures/performance"
NONE: Final = "not measured"
TRIAL: Final = "A trial: too little was run for the figures to mean anything."
UNEXPLAINED: Final = Missed("Not looked into yet.", "Find out why.")

HEAD: Final = f"""# Performance

{{about}}

```
make bench                          # everything, {RUNS} runs of each part
make bench BENCH="--only debate"    # one part again; the others stay as they were
make bench BENCH=--quick            # a trial of everything: prints, keeps nothing
make bench BENCH=--render           # the page and the pictures again, measures nothing
make bench BENCH="--render --strict"    # exit code 1 for any missed target
```

{{reading}}
"""

ABOUT: Final = (
    "What Torra costs, beside other programs and against its own targets. `make bench` measures "
    "everything and writes this page, its pictures and benchmarks/results.json; nothing here is "
    "written by hand. What is compared with is installed into an environment of its own, from "
    "requirements-bench.txt."
)

READING: Final = (
    f"A figure is the median of {RUNS} runs, the range is from the least to the greatest of them. "
    "CPU is processor time, wall is elapsed time. Compare ratios rather than milliseconds: another "
    "machine has others."
)

BESIDE: Final = "## One decision, beside other programs"
DECISION: Final = (
    f"The other programs were measured on {peers.MEASURED} with Python 3.11.7 on 2 cores, the "
    "model replaced by a local server of fixed latency, as it is for Torra; their figures were not "
    "measured again. Torra is the budget desk of four agents. Where a program has one figure for "
    "both of its settings it stands in the first."
)

ELSEWHERE: Final = (
    "Measured on another day on the same kind of machine with a similar task, and not here: "
    "nautilus_trader 1.221 ran 6,000 to 9,000 bars a second. It needs an older pandas than Torra "
    "and vectorbt, so that it cannot share their environment."
)


def render(parts: Sequence[Part], results: Results) -> str:
    """Return the page."""
    sections = [
        HEAD.format(about=wrapped(ABOUT), reading=wrapped(READING)),
        compared(parts, results),
        lacking(parts, results),
        *(section(part, results.get(part.name)) for part in parts),
        f"## Other engines, for scale\n\n{wrapped(ELSEWHERE)}\n",
        conditions(parts, results),
    ]
    return "\n".join(text for text in sections if text)


# --- beside other programs ------------------------------------------------------------------------


def compared(parts: Sequence[Part], results: Results) -> str:
    """Return the table of one decision, Torra's column and the target beside the others."""
    rows = rows_of(parts)
    head = ("", *peers.PROGRAMS, "Torra", "target")
    lines = [(one.what, *one.cells, own(one, rows, results), wanted(one, rows)) for one in PEERS]
    picture = f"![One decision]({PICTURES}-decision.svg)\n"
    about = wrapped(DECISION)
    return f"{BESIDE}\n\n{about}\n\n{table(head, lines)}\n\n{picture}"


def rows_of(parts: Sequence[Part]) -> Mapping[tuple[str, str], Row]:
    """Return every row by part and figure."""
    return {(part.name, row.figure): row for part in parts for row in part.rows}


def own(one: Peer, rows: Mapping[tuple[str, str], Row], results: Results) -> str:
    """Return Torra's cell, in bold where the target is missed."""
    cells = []
    for part, figure in one.figures:
        if part not in results:
            return NONE
        value, row = results[part].median(figure), rows[part, figure]
        short = row.target is not None and not row.target.met(value)
        cells.append(f"**{row.told(value)}**" if short else row.told(value))
    return ", ".join(cells)


def wanted(one: Peer, rows: Mapping[tuple[str, str], Row]) -> str:
    """Return the cell of the target."""
    return ", ".join(bound for key in one.figures if (bound := rows[key].bound()))


# --- targets --------------------------------------------------------------------------------------


def lacking(parts: Sequence[Part], results: Results) -> str:
    """Return the section of the targets: how many are kept, and why the others are not."""
    known = [(part, results[part.name]) for part in parts if part.name in results]
    wanting = [(part, row, found) for part, found in known for row in missed(part, found)]
    every = sum(1 for part, _ in known for row in part.rows if row.target)
    told = f"{every - len(wanting)} of {every} targets are kept."
    lines = [
        (
            f"{part.title}: {row.what}",
            row.told(found.median(row.figure)),
            row.bound(),
            *MISSED.get((part.name, row.figure), UNEXPLAINED),
        )
        for part, row, found in wanting
    ]
    head = ("missed", "measured", "target", "reason", "plan")
    body = f"\n{table(head, lines)}\n" if lines else ""
    picture = f"\n![Targets]({PICTURES}-targets.svg)\n"
    return f"## Targets\n\n{told}\n{body}{picture}"


# --- parts ----------------------------------------------------------------------------------------


def section(part: Part, found: Measured | None) -> str:
    """Return the section of a part: its table and its note."""
    title = f"## {part.title}\n"
    note = f"\n{wrapped(part.note)}\n" if part.note else ""
    if found is None:
        return f"{title}\n{NONE.capitalize()}.\n{note}"
    trial = f"\n{TRIAL}\n" if found.trial else ""
    lines = [
        (row.what, row.told(found.median(row.figure)), spread(row, found), row.bound(), verdict)
        for row in part.rows
        for verdict in [judged(row, found)]
    ]
    body = table(("what", "median", "range", "target", ""), lines)
    shown = {"indicators": "indicators", "engines": "engines"}.get(part.name)
    picture = f"\n![{part.title}]({PICTURES}-{shown}.svg)\n" if shown else ""
    return f"{title}{trial}\n{body}\n{note}{picture}"


def spread(row: Row, found: Measured) -> str:
    """Return the range of a figure, "" where every run gave the same."""
    least, most = found.range(row.figure)
    low, high = row.told(least), row.told(most)
    return "" if low == high else f"{low} to {high}"


def judged(row: Row, found: Measured) -> str:
    """Return "missed" for a row that misses its target."""
    if row.target is None or row.target.met(found.median(row.figure)):
        return ""
    return "**missed**"


def conditions(parts: Iterable[Part], results: Results) -> str:
    """Return when and on what each part was measured; parts with the same answer share a line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        if found := results.get(part.name):
            groups.setdefault((found.date, found.machine), []).append(part.name)
    lines = [
        f"- {date}, {machine}: {'everything' if len(groups) == 1 else ', '.join(names)}"
        for (date, machine), names in groups.items()
    ]
    return "\n".join(["## Conditions", "", *lines, ""])


# --- text -----------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [line(head), "|".join(["", *("---" for _ in head), ""])]
    return "\n".join([*lines, *(line(row) for row in rows)])


def line(cells: Sequence[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |".replace("  |", " |")


WIDTH: Final = 120


def wrapped(text: str) -> str:
    """Return text in lines of WIDTH characters at most."""
    return "\n".join(broken(text.split()))


def broken(words: Sequence[str]) -> Iterator[str]:
    """Yield lines made of words."""
    now = ""
    for word in words:
        if now and len(now) + 1 + len(word) > WIDTH:
            yield now
            now = word
        else:
            now = f"{now} {word}".strip()
    yield now
