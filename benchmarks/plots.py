"""Draws the pictures of docs/performance.md: plain SVG, the same for the same results.

Nothing of the machine, the day or the program that drew them is in a picture. Letters stay letters,
so that the pictures are small and readable by a search and by a screen reader.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final

from benchmarks.bench_talib import SIZES
from benchmarks.page import DOCUMENT, rows_of
from benchmarks.peers import PEERS, PROGRAMS
from benchmarks.results import Results, text_of
from benchmarks.rows import Part

FOLDER: Final = DOCUMENT.parent / "pictures"
OWN, OTHER, BAD = "#1f6f8b", "#b8bec4", "#b3402a"
STYLE: Final[Mapping[str, Any]] = {
    "svg.hashsalt": "torra",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
}
NAMELESS: Final[Mapping[str, Any]] = {"Date": None, "Creator": None, "Format": None, "Type": None}
SHORT: Final = ("TradingAgents", "cheapest", "ai-hedge-fund", "5 personas")
Draw = Callable[[Sequence[Part], Results], Any]

LEAST: Final = 0.01
"""Share of a target below which the picture does not go; a smaller one stands there."""

LETTER: Final = 0.2
"""Inches of height of a row of words."""


def drawings() -> Mapping[str, tuple[tuple[str, ...], Draw]]:
    """Return the pictures by name: the parts that they need, and what draws them."""
    return {
        "decision": (("debate", "process"), decision),
        "targets": (("debate",), targets),
        "indicators": (("indicators",), indicators),
        "engines": (("engines",), engines),
    }


def draw_all(parts: Sequence[Part], results: Results, names: Sequence[str] = ()) -> dict[Path, str]:
    """Return files and text of the pictures, of these names or all of them.

    A picture whose figures are missing is left out.
    """
    import matplotlib as mpl  # noqa: PLC0415 - only who draws needs it

    found = {}
    style: Any = dict(STYLE)
    with mpl.rc_context(style):
        for name, (needed, draw) in drawings().items():
            if all(one in results for one in needed) and (not names or name in names):
                text = svg(draw(parts, results))
                found[file_of(name)] = text.replace("<svg ", f"{seal(results)}\n<svg ", 1)
    return found


def file_of(name: str) -> Path:
    """Return the file of a picture."""
    return FOLDER / f"performance-{name}.svg"


def seal(results: Results) -> str:
    """Return a comment that tells from which results a picture was drawn."""
    digest = hashlib.sha256(text_of(results).encode()).hexdigest()
    return f"<!-- results {digest[:16]} -->"


def svg(figure: Any) -> str:
    """Return a figure as text, without anything that changes from one drawing to the next."""
    with StringIO() as text:
        figure.savefig(text, format="svg", metadata=dict(NAMELESS))
        drawn = re.sub(r"<metadata>.*?</metadata>\s*", "", text.getvalue(), flags=re.DOTALL)
        return re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE)


def new(wide: float, high: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """Return a figure that no window knows of, and its axes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only who draws needs it

    figure = Figure(figsize=(wide, high), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def decision(parts: Sequence[Part], results: Results) -> Any:
    """Draw one decision of every program, a panel for each cost."""
    rows = rows_of(parts)
    shown = [one for one in PEERS if one.values]
    figure, axes = new(9.0, 4.4, 2, 4)
    for axis, one in zip(axes.flat, shown, strict=False):
        part, name = one.figures[0]
        row, value = rows[part, name], results[part].median(name)
        dots(
            axis,
            ("Torra", *SHORT),
            (value, *one.values),
            [row.told(each) for each in (value, *one.values)],
            [OWN, *([OTHER] * len(PROGRAMS))],
        )
        axis.set_title(one.what, fontsize=9, loc="left")
    for axis in list(axes.flat)[len(shown) :]:
        axis.set_axis_off()
    return figure


def dots(
    axis: Any,
    names: Sequence[str],
    values: Sequence[float],
    told: Sequence[str],
    colours: Sequence[str],
) -> None:
    """Draw a dot for each value, the first on top, on a scale that grows tenfold."""
    places = range(len(names))
    axis.set_xscale("log")
    axis.set_xlim(min(values) / 2, max(values) * 12)
    axis.hlines(places, axis.get_xlim()[0], values, color="#e4e7ea", linewidth=0.8, zorder=0)
    axis.scatter(values, places, c=list(colours), s=36)
    axis.set_yticks(places, names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.tick_params(axis="both", length=0)
    axis.set_xticks([], minor=True)
    axis.set_xticks([])
    axis.spines[["left", "bottom"]].set_visible(False)
    for place, value, words in zip(places, values, told, strict=True):
        axis.annotate(words, (value, place), (6, 0), textcoords="offset points", va="center")


def targets(parts: Sequence[Part], results: Results) -> Any:
    """Draw every measured target as a line of its range: how much of the bound is used up."""
    lines = []
    for part in parts:
        if part.name not in results:
            continue
        for row in part.rows:
            if row.target is None or row.target.most == row.target.least:
                continue
            runs = results[part.name].figures[row.figure]
            if min(runs) <= 0:
                continue
            middle = row.target.share(results[part.name].median(row.figure))
            lines.append((row.what.replace("`", ""), middle, [row.target.share(v) for v in runs]))
    figure, axes = new(9.0, 0.8 + LETTER * len(lines))
    axis = axes[0][0]
    for place, (_, middle, shares) in enumerate(lines):
        colour = OWN if middle <= 1 else BAD
        ends = [max(LEAST, min(shares)), max(LEAST, *shares)]
        axis.plot(ends, [place, place], color=colour, linewidth=1.5)
        mark = "<" if middle < LEAST else "o"
        axis.plot([max(LEAST, middle)], [place], color=colour, marker=mark, markersize=4)
    axis.axvline(1.0, color="black", linewidth=0.8)
    axis.set_xscale("log")
    ticks = (LEAST, 0.03, 0.1, 0.3, 1.0, 3.0)
    axis.set_xticks([], minor=True)
    axis.set_xticks(ticks, [f"{each:g}" for each in ticks])
    axis.set_xlim(LEAST * 0.8, max([4.0, *(1.3 * max(shares) for _, _, shares in lines)]))
    axis.set_yticks(range(len(lines)), [what for what, _, _ in lines], fontsize=8)
    axis.set_ylim(len(lines) - 0.4, -0.6)
    axis.set_xlabel("share of the target used up; beyond 1 it is missed (median and range)")
    return figure


def indicators(parts: Sequence[Part], results: Results) -> Any:
    """Draw the time of a pass by length, TA-Lib beside L1."""
    del parts
    found, (figure, axes) = results["indicators"], new(6.0, 3.2)
    axis = axes[0][0]
    lines = (
        ("talib", "TA-Lib, 23 columns", OTHER, "s"),
        ("ours", "L1, the same columns", OWN, "o"),
        ("scores", "L1, the whole score_frame", "black", "^"),
    )
    for name, words, colour, mark in lines:
        times = [found.median(f"{name}_{size}_ms") for size in SIZES]
        axis.plot(list(SIZES.values()), times, color=colour, marker=mark, label=words)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([], minor=True)
    axis.set_xticks(list(SIZES.values()), [f"{size:,}" for size in SIZES.values()])
    axis.set_xlabel("bars")
    axis.set_ylabel("ms of CPU")
    axis.legend(frameon=False)
    return figure


def engines(parts: Sequence[Part], results: Results) -> Any:
    """Draw bars a second of the engines."""
    rows, found = rows_of(parts), results["engines"]
    shown = {
        "torra_long": "Torra's sweep",
        "further_long": "a further threshold",
        "replay_sample": "Torra's run_tick",
        "backtesting_long": "backtesting.py",
        "vectorbt_long": "vectorbt",
        "loop_long": "a plain loop",
    }
    names, words = list(shown), list(shown.values())
    values = [found.median(name) for name in names]
    figure, axes = new(6.0, 2.2)
    told = [rows["engines", name].told(value) for name, value in zip(names, values, strict=True)]
    dots(axes[0][0], words, values, told, [OWN] * 3 + [OTHER] * 3)
    return figure
