"""The drawings of reports and pages, an element a line: plots of each kind, waterfalls, timelines.

The plots are those of the demo's report, and some with gaps, intervals, long names and far numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.doubles.page_reader import client
from tests.worlds.demo_full_desk import CASES
from tests.worlds.demo_view import bars
from tests.worlds.replay_exhibits import demo_document
from torra.clock import parse
from torra.evaluation.exhibits import Plot
from torra.exhibits import plots

START: Final = parse("2021-12-01T00:00:00Z")
DRAWN: Final = re.compile(
    r'<svg (?:class="(?:fall|standin)"|viewBox="0 0 1000).*?</svg>', re.DOTALL
)
"""The waterfalls, timelines and price lines of a page."""

SHOWN: Final = ("whole", "silent", "rounds")
"""Ticks of the full desk whose drawings stand here."""


def hours(*values: object) -> list[list[Any]]:
    """Return points an hour apart."""
    return [[START + timedelta(hours=at), value] for at, value in enumerate(values)]


def plot(*lines: Any, kind: str = "line", **more: Any) -> Plot:
    """Return a plot of these lines: points, or points with their bounds."""
    parts = [line if isinstance(line, dict) else {"points": line} for line in lines]
    named = [{"name": f"line {at}", **line} for at, line in enumerate(parts)]
    return Plot.model_validate({"title": "a plot", "kind": kind, "lines": named, **more})


BETWEEN: Final = {
    "points": hours(1, 2, None, 3, 4),
    "low": [0, 1, None, 2, 3],
    "high": [2, 3, None, 4, 5],
}
OF_WHAT: Final = {"points": [["a", 1], ["b", -2], ["c", None]], "low": [0, -3, None],
                  "high": [2, -1, None]}  # fmt: skip
LONG: Final = [["bull_researcher price_action", 1], ["news", 2]]
NUMERIC: Final[Mapping[str, tuple[Any, ...]]] = {
    "gaps": (hours(1, 2, None, 5, None, 3, 4),),
    "crossing zero": (hours(-1, 0, 3),),
    "far from zero": (hours(95, 105),),
    "interval": (hours(0, 1, 2, 3, 4), BETWEEN),
    "categories": (OF_WHAT, [["b", 3], ["d", 95]]),
    "long names": (LONG,),
    "many lines": (*[hours(0, 5 + at / 100) for at in range(8)], hours(0, -5)),
}
BANDS: Final[Mapping[str, tuple[Any, ...]]] = {
    "states": (hours("BEARISH", "BULLISH", "BULLISH", None, "BEARISH", "odd"),),
    "many states": (hours("BUY", "HOLD", "SELL"), hours(*(f"s{at}" for at in range(14)))),
}


def make(_: Path) -> dict[str, str]:
    """Return the drawings of plots and of pages."""
    document = demo_document()
    made = {f"{at} {one.title}": (one, document.arms) for at, one in enumerate(document.plots)}
    for kind in ("line", "step", "bars", "dots"):
        made |= {
            f"{kind}: {name}": (plot(*lines, kind=kind), ()) for name, lines in NUMERIC.items()
        }
    made |= {f"bands: {name}": (plot(*lines, kind="bands"), ()) for name, lines in BANDS.items()}
    level = [[0.1, 0.3], [0.9, 0.6]]
    made["diagonal"] = (plot(level, kind="dots", diagonal=True), ())
    made["two arms"] = (plot(*({"name": n, "points": hours(1, 2)} for n in "ca")), ("a", "b", "c"))
    return {
        "plots.txt": "\n".join(line for name, of in made.items() for line in _plot(name, *of)),
        "pages.txt": "\n".join(_pages()),
    }


def _plot(name: str, one: Plot, arms: Iterable[str]) -> list[str]:
    drawn = plots.drawn(one, tuple(arms))
    assert drawn is not None
    whole = drawn._replace(shapes=(), keys=())
    shapes = [f"{s.tag} .{s.cls} {dict(s.attributes)} {s.text}" for s in drawn.shapes]
    keys = [f"key {key.style} {key.name}: {key.summary}" for key in drawn.keys]
    return [f"== {name}", str(whole), *shapes, *keys]


def _pages() -> Iterable[str]:
    times = [bar["time"] for bar in bars("BTCUSD", "M15")]
    ticks = {case: f"/{times[-1 - CASES.index(case)]}" for case in SHOWN}
    for name, end in {"stream": "", **ticks}.items():
        yield f"== {name}"
        text = client("desk").get(f"/symbol/BTCUSD/M15{end}").text
        parts = (part.strip() for one in DRAWN.findall(text) for part in one.split("<"))
        yield from (f"<{part}" for part in parts if part and part[0] != "/")
