"""Plots: scales and marks, gaps, one point, extreme numbers, words beside them that never touch."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.dashboard.test_palettes import READ, block, contrast, read_colours
from tests.golden.drawings import hours, plot
from tests.worlds.replay_exhibits import demo_document
from torra.clock import parse
from torra.config import ROOT
from torra.exhibits import axis as ticks
from torra.exhibits import drawing, numbers, plots, thinning
from torra.exhibits.chart_layout import DRAWN, HEIGHT, LINE_HEIGHT

FAR = 1e15


def of_tag(found, tag):
    return [shape for shape in found.shapes if shape.tag == tag]


def texts(found, cls):
    return [shape for shape in of_tag(found, "text") if cls in shape.cls.split()]


def share(text):
    return float(text.removesuffix("%")) / 100


# --- the door -------------------------------------------------------------------------------------

REFUSED = {
    "nan": (plot, ([[1, float("nan")]],), {}, "finite"),
    "infinite": (plot, ([[1, float("inf")]],), {}, "finite|too far"),
    "infinite x": (plot, ([[float("inf"), 1]],), {}, "finite|too far"),
    "too far": (plot, ([[1, 1.1 * FAR]],), {}, "too far for a plot"),
    "truth": (plot, ([[1, True]],), {}, "is a number"),
    "mixed x": (plot, ([[1, 1]], hours(1)), {}, "more than one kind"),
    "no zone": (plot, ([["2021-12-01T00:00:00", 1]],), {}, "needs its zone"),
    "no such day": (plot, ([["2021-13-01T00:00:00Z", 1]],), {}, "month must be"),
    "before time": (plot, ([["0001-01-01T00:00:00+05:00", 1]],), {}, "years 1 to 9999"),
    "order": (plot, ([[2, 1], [1, 1]],), {}, "order of x"),
    "words as heights": (plot, ([[1, "high"]],), {}, "are numbers"),
    "numbers as states": (plot, ([[1, 2]],), {"kind": "bands"}, "are categories"),
    "bands of categories": (plot, ([["a", "b"]],), {"kind": "bands"}, "need times or numbers"),
    "one bound": (plot, ({"points": [[1, 1]], "low": [0]},), {}, "go together"),
    "bounds": (plot, ({"points": [[1, 1]], "low": [0, 1], "high": [1, 2]},), {}, "not 1 bounds"),
    "upside down": (plot, ({"points": [[1, 1]], "low": [2], "high": [1]},), {}, "above its high"),
    "too many": (plot, ([[at, 1] for at in range(2001)],), {}, "at most 2000"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plot_is_refused_at_the_door(name: str) -> None:
    make, lines, more, why = REFUSED[name]
    with pytest.raises(ValidationError, match=why):
        make(*lines, **more)


# --- scales ---------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(st.floats(-FAR, FAR), min_size=1, max_size=6), st.booleans())
def test_every_number_has_its_place_between_round_marks(values: list[float], zero: bool) -> None:
    scale = ticks.of_numbers(values, zero=zero)
    assert scale.low < scale.high
    assert all(scale.low <= value <= scale.high for value in values)
    assert 1 <= len(scale.ticks) <= 2 * ticks.TICKS + 1
    assert all(scale.low <= at * (1 + 1e-9) or at >= scale.low for at, _ in scale.ticks)
    assert not zero or scale.low <= 0 <= scale.high
    order = sorted(values)
    assert [scale.place(value) for value in order] == sorted(map(scale.place, order))


@settings(max_examples=50)
@given(st.floats(-2.2e9, 4e9), st.floats(0, 3e9))
def test_every_time_has_its_place_between_round_marks(begin: float, length: float) -> None:
    scale = ticks.of_times(begin, begin + length)
    assert scale.low <= begin < scale.high
    assert len(scale.ticks) <= ticks.TIMES + 2
    assert all(scale.low <= at <= scale.high for at, _ in scale.ticks)
    assert len({at for at, _ in scale.ticks}) == len(scale.ticks)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (1, ["1 Jan", "06:00", "12:00", "18:00", "2 Jan"]),
        (5, ["1 Jan", "2 Jan", "3 Jan", "4 Jan", "5 Jan", "6 Jan"]),
        (120, ["2021-01", "2021-02", "2021-03", "2021-04", "2021-05"]),
        (3000, ["2022", "2024", "2026", "2028"]),
    ],
    ids=["a day", "days", "months", "years"],
)
def test_times_are_marked_at_days_months_and_years(days: int, words: list[str]) -> None:
    begin = parse("2021-01-01T00:00:00Z").timestamp()
    found = [word for _, word in ticks.of_times(begin, begin + days * 86_400).ticks]
    assert found[:1] == words[:1] and set(words) <= set(found)


def test_marks_are_written_with_the_decimals_that_tell_them_apart() -> None:
    for values in ([0, 1], [95, 105], [1e-4, 2e-4], [1_234_567, 1_250_000], [-FAR, FAR], [3, 3]):
        words = [word for _, word in ticks.of_numbers(values).ticks]
        assert len(set(words)) == len(words) > 1, values
    assert ticks.of_numbers([-0.2, 0.2]).ticks[0][1].startswith("\u2212")


def test_numbers_of_a_column_have_the_same_decimals() -> None:
    assert numbers.column([0.5, -12.25, None]) == ["0.50", "\u221212.25", "—"]
    assert numbers.column([1204, 7]) == ["1,204", "7"]
    assert numbers.column([0.21, 0.0003]) == ["0.21", "0.0003"]
    assert numbers.column([0.000001, 812345.25]) == ["0.000001", "812,345"]
    assert numbers.column([-12.4, 412.7, 3]) == ["\u221212.4", "412.7", "3"]
    assert numbers.column(["a", True, None]) == ["a", "yes", "—"]
    assert numbers.column([1e300]) == ["1.00e+300"]


# --- charts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["line", "bars", "dots", "bands"])
def test_the_first_and_the_last_time_there_is_can_be_drawn(kind: str) -> None:
    values = ("A", "B") if kind == "bands" else (1, 2)
    ends = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
    found = plots.drawn(plot([list(p) for p in zip(ends, values, strict=True)], kind=kind))
    assert found.summary
    assert plots.drawn(plot([[ends[1], values[0]]], kind=kind)).summary


@pytest.mark.parametrize("kind", ["line", "step", "bars", "dots"])
@pytest.mark.parametrize(
    "points",
    [hours(3), [[5, 0]], [["a", 1.5]], hours(FAR, -FAR), hours(1e-300, 2e-300), hours(2, 2, 2),
     [[1, FAR], [1, FAR - 1]]],
    ids=["one time", "one number", "one category", "far", "tiny", "level", "same x"],
)  # fmt: skip
def test_one_point_and_extreme_numbers_have_a_drawing(kind: str, points: list[Any]) -> None:
    found = plots.drawn(plot(points, kind=kind))
    assert not re.search(r"nan|inf", str([shape.attributes for shape in found.shapes]))
    for pin in of_tag(found, "pin"):
        assert 0 <= share(pin.attributes["x"]) <= 1 and -1 <= pin.attributes["y"] <= found.height


@pytest.mark.parametrize(
    "lines",
    [(), ([],), (hours(None, None),), ([["a", None]],)],
    ids=["no line", "no point", "gaps", "no value"],
)
@pytest.mark.parametrize("kind", ["line", "bars"])
def test_a_plot_without_a_number_is_none(kind: str, lines: tuple[Any, ...]) -> None:
    empty = plot(*lines, kind=kind)
    assert plots.drawn(empty) is None
    assert plots.table(empty)["rows"] == [] or "—" in plots.table(empty)["rows"][0]


def test_names_at_the_ends_never_touch_and_belong_to_their_lines() -> None:
    found = plots.drawn(plot(*[hours(0, 5 + at / 100) for at in range(8)], hours(0, -5)))
    ends = texts(found, "end")
    assert [shape.text for shape in ends] == [f"line {at}" for at in range(9)]
    heights = sorted(shape.attributes["y"] for shape in ends)
    assert min(b - a for a, b in pairwise(heights)) >= LINE_HEIGHT - 0.1
    assert heights[0] > 0 and heights[-1] <= HEIGHT + 5
    assert ends[8].attributes["y"] == heights[-1]


@settings(max_examples=50)
@given(st.lists(st.floats(0, 220), min_size=1, max_size=12))
def test_places_are_moved_apart_within_their_room(places: list[float]) -> None:
    moved = drawing.spread(places, 14.0, 4.0, 220.0)
    order = sorted(range(len(places)), key=lambda at: places[at])
    found = [moved[at] for at in order]
    assert all(b - a >= 14.0 - 1e-9 for a, b in pairwise(found))
    assert found[-1] <= 220


def test_an_arm_looks_the_same_in_every_plot() -> None:
    arms = ("L1 alone", "budget", "full")
    one = plot(*({"name": name, "points": hours(1, 2)} for name in arms))
    two = plot(*({"name": name, "points": hours(1, 2)} for name in ("full", "L1 alone")))
    assert [key.style for key in plots.drawn(one, arms).keys] == [1, 2, 3]
    assert [key.style for key in plots.drawn(two, arms).keys] == [3, 1]
    assert [key.style for key in plots.drawn(two, ("full",)).keys] == [1, 2]


# --- rows and lanes -------------------------------------------------------------------------------


def test_bars_far_from_zero_begin_at_zero_all_the_same() -> None:
    for points, name in (([["a", 95], ["b", 105]], "x"), (hours(95, 105), "height")):
        found = plots.drawn(plot(points, kind="bars"))
        first, second = (s.attributes for s in of_tag(found, "rect"))
        sizes = [share(box["width"]) if name == "x" else box["height"] for box in (first, second)]
        assert sizes[0] / sizes[1] == pytest.approx(95 / 105, rel=0.01)


# --- thinning -------------------------------------------------------------------------------------


def test_a_thinned_line_keeps_its_ends_its_peaks_and_its_gaps() -> None:
    values: list[float | None] = [float(at % 7) for at in range(9000)]
    values[4321], values[17], values[100] = 99.0, -99.0, None
    points = list(enumerate(values))
    kept = thinning.thinned(points, 2000)
    assert len(kept) <= 2000 and kept == sorted(set(kept), key=lambda point: point[0])
    assert {points[at] for at in (0, 17, 100, 4321, 8999)} <= set(kept)
    assert thinning.thinned(points[:2000], 2000) == points[:2000]
    assert len(thinning.thinned(points, DRAWN)) <= DRAWN


def test_bands_are_merged_and_the_longest_stands_for_the_rest() -> None:
    points = list(enumerate(["BULLISH"] * 5 + ["BEARISH"] * 3))
    assert thinning.merged(points, 2000) == [(0, "BULLISH"), (5, "BEARISH"), (7, "BEARISH")]
    many = list(enumerate("AAB" * 4000))
    found = thinning.merged(many, 50)
    assert len(found) <= 50 and found[0][0] == many[0][0] and found[-1][0] == many[-1][0]
    assert {state for _, state in found} == {"A", "B"} and found[0][1] == "A"


# --- the table behind, the whole demo -------------------------------------------------------------


def test_the_table_behind_a_plot_has_every_line_and_the_ends() -> None:
    line = {"points": hours(*range(500)), "low": [0.0] * 500, "high": [500.0] * 500}
    told = plots.table(plot(line, hours(7)))
    assert told["columns"] == ["Time", "line 0", "low", "high", "line 1"]
    assert told["count"] == 500 and len(told["rows"]) == plots.MOST_ROWS
    assert told["rows"][0] == ["2021-12-01 00:00 UTC", "0", "0", "500", "7"]
    assert told["rows"][-1][1] == "499"
    twice = plots.table(plot([[1, 2], [1, 3]], kind="dots"))
    assert [row[1] for row in twice["rows"]] == ["2", "3"]


def test_every_plot_of_the_demo_has_words_and_keeps_within_its_room() -> None:
    document = demo_document()
    kinds = {one.kind for one in document.plots}
    assert kinds == {"line", "step", "bars", "dots", "bands"}
    for one in document.plots:
        found = plots.drawn(one, document.arms)
        assert found.summary.endswith(".") and found.height < 500
        for shape in found.shapes:
            for name in ("x", "x1", "x2"):
                if name in shape.attributes:
                    assert 0 <= share(shape.attributes[name]) <= 1, (one.title, shape)


# --- colours --------------------------------------------------------------------------------------


def test_every_line_and_its_name_can_be_read_in_both_schemes() -> None:
    sheet = (ROOT / "static" / "plots.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--s(\d): light-dark\((#\w{6}), (#\w{6})\)", sheet)
    assert [int(number) for number, *_ in pairs] == list(range(1, drawing.STYLES + 1))
    colours = read_colours()
    for number, *both in pairs:
        for scheme, colour in zip(("light", "dark"), both, strict=True):
            for ground in ("surface", "ground"):
                against = colours["blue-orange", scheme][ground]
                assert contrast(colour, against) >= READ, (number, scheme)
    assert (
        block(':root[data-scheme="dark"]')["surface"] == colours["blue-orange", "dark"]["surface"]
    )


def test_every_style_has_dashes_and_a_mark_of_its_own() -> None:
    sheet = (ROOT / "static" / "plots.css").read_text(encoding="utf-8")
    dashes = re.findall(r"\.course\.s\d \{ stroke-dasharray: ([\d. ]+); \}", sheet)
    assert len(set(dashes)) == drawing.STYLES - 1  # the first is solid
    assert len(set(drawing.PINS)) == drawing.STYLES
