"""The symbol page: states and verdicts over time, odds of the next state, the chart's figures."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.doubles.page_reader import get, page_of
from tests.worlds.demo_view import bars
from tests.worlds.values import made_symbol
from torra import clock
from torra.config import ROOT, Markov
from torra.dashboard.streams import chart_data, price_lines, timelines
from torra.dashboard.streams.attention import first_tick
from torra.dashboard.view.desk_values import ChartBars, DeskStatus, StateHistory, StreamStatus
from torra.exhibits import drawing, figures
from torra.verdict import sentiment_rules

ADDRESS = "/symbol/BTCUSD/M15"
STEP = timedelta(minutes=15)
START = datetime(2026, 2, 13, tzinfo=UTC)
BLOCK = re.compile(r"M([\d.]+) (\d+)h([\d.]+)v(\d+)h-([\d.]+)z")


def events(text, missing=()):
    """Return one close for each letter; those whose place is missing are left out."""
    names = {"b": "BULLISH", "n": "NEUTRAL", "s": "STRONG_BEARISH"}
    return [
        (START + place * STEP, names[letter])
        for place, letter in enumerate(text)
        if place not in missing
    ]


def drawn(told, name):
    """Return (x, width, y, height) of every block of a lane."""
    d = told.paths[name]
    blocks = BLOCK.findall(d)
    assert "".join(f"M{x} {y}h{w}v{h}h-{w}z" for x, y, w, h, _ in blocks) == d
    return [(float(x), float(w), int(y), int(h)) for x, y, w, h, _ in blocks]


# --- lanes over time ---


def test_equal_neighbours_are_one_run_and_a_gap_parts_them() -> None:
    found = timelines.runs(events("bbbnbbb", missing=(5,)), STEP)
    assert [(run.value, run.closes) for run in found] == [
        ("BULLISH", 3),
        ("NEUTRAL", 1),
        ("BULLISH", 1),
        (None, 1),
        ("BULLISH", 1),
    ]
    gap = found[3]
    assert gap.first == gap.last == START + 5 * STEP
    assert timelines.runs([], STEP) == []


def test_a_long_gap_is_a_narrow_mark_and_the_table_tells_its_length() -> None:
    weekend = [*events("bb"), (START + 100 * STEP, "BULLISH")]
    told = timelines.timeline(weekend, "M15", figures.STATES)
    ((_, width, y, height),) = drawn(told, None)
    assert (y, height) == (0, 50)
    assert width == pytest.approx(timelines.GAP / 6 * drawing.FIELD)
    assert (told.runs[1].value, told.runs[1].closes) == (None, 98)
    assert (told.runs[0].first, told.runs[-1].last) == (START, START + 100 * STEP)


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from(figures.STATES)), max_size=60))
def test_blocks_fill_the_picture_without_overlap(steps: list[Any]) -> None:
    moment, made = START, []
    for wait, value in steps:
        moment += wait * STEP
        made.append((moment, value))
    told = timelines.timeline(made, "M15", figures.STATES)
    blocks = sorted(b for name in (*figures.STATES, None) for b in drawn(told, name))
    ends = 0.0
    for x, width, *_ in blocks:
        assert x == pytest.approx(ends, abs=0.11 * len(blocks) + 0.2)
        ends = x + width
    if made:
        assert ends == pytest.approx(drawing.FIELD, abs=0.2)
        merged = timelines.runs(made, STEP)
        assert sum(run.closes for run in merged if run.value) == len(made)
        assert all(one.value != other.value for one, other in itertools.pairwise(merged))
        assert sum(run.closes for run in merged) == (moment - made[0][0]) // STEP + 1


def test_a_value_has_the_same_lane_whatever_else_is_there() -> None:
    for text in ("n", "bn", "sssn", "nbs"):
        told = timelines.timeline(events(text), "M15", figures.STATES)
        assert {block[2] for block in drawn(told, "NEUTRAL")} == {21}
    sheet = (ROOT / "static" / "tick.css").read_text("utf-8")
    for value in (*figures.STATES, *figures.VERDICTS):
        if value not in ("NEUTRAL", "HOLD"):
            assert f'.lane-block[data-value="{value}"]' in sheet
    marks = [figures.mark(value) for value in figures.STATES]
    assert len({mark.glyph for mark in marks}) == len({mark.word for mark in marks}) == 5


def test_verdicts_tell_vetoes_and_skips_apart() -> None:
    ticks = [
        {"bar_time": "2026-02-13T00:00:00Z", "verdict": "BUY", "reason": "GATE_VETO"},
        {"bar_time": "2026-02-13T00:15:00Z", "verdict": "BUY", "reason": "POSITION_HELD"},
        {"bar_time": "2026-02-13T00:45:00Z", "verdict": "SELL", "denied": ["GATE_VETO"]},
    ]
    skipped = [
        {"bar_time": f"2026-02-13T00:{minute}:00Z", "reason": "stale"} for minute in ("30", "45")
    ]
    found = timelines.verdict_events(made_symbol(ticks=ticks[::-1], skipped=skipped))
    assert [value for _, value in found] == ["VETO", "BUY", "skipped", "VETO"]
    assert found[0][0] == START + STEP
    assert "DECLINED" not in timelines.verdict_timeline(made_symbol(ticks=ticks)).lanes


def test_a_decline_has_a_lane_of_its_own_where_there_is_one() -> None:
    tick = {"bar_time": "2026-02-13T00:00:00Z", "verdict": "BUY", "reason": "TRADER_DECLINED"}
    found = timelines.verdict_timeline(made_symbol(ticks=[tick]))
    assert [run.value for run in found.runs] == ["DECLINED"]
    assert tuple(found.lanes) == figures.VERDICTS


# --- odds of the next state ---


def odds_page(consensus, smoothing=1.0):
    """Return the page of a stream with these values of the consensus, oldest first."""
    history = [(START + place * STEP, value) for place, value in enumerate(consensus)]
    view = sentiment_rules.markov(history, "M15", Markov(smoothing=smoothing))
    closes = [(clock.iso(close), "NEUTRAL") for close, _ in history]
    known = made_symbol(instance="BTCUSD", states=StateHistory(view, smoothing, closes))
    return page_of("/symbol/BTCUSD/M15", symbol=known)


def test_few_moves_have_a_warning_and_no_history_has_no_number() -> None:
    few = odds_page([0.5] * 5).text
    assert "Only 4 moves are counted from here" in few
    assert "4 stood at strong bullish with the next tick right after: 4 stayed" in few
    many = odds_page([0.5] * 30, smoothing=0.5).text
    assert "moves are counted from here" not in many
    assert "add-0.5 smoothing" in many
    none = odds_page([])
    assert "No state yet" in none.text
    assert "moves are counted from here" not in none.text
    odds = [row[1:] for row in none.rows if len(row) == 4]
    assert odds.count([figures.DASH, "", figures.DASH]) == len(figures.STATES)


# --- the page ---


def test_an_empty_symbol_says_what_it_waits_for() -> None:
    assert "none are stored" in get(ADDRESS, "empty").text
    told = {
        "bars": first_tick([StreamStatus()], DeskStatus(role="ACTIVE"), "store"),
        "close": first_tick(
            [StreamStatus(bar_age_seconds=60.0)], DeskStatus(role="ACTIVE"), "store"
        ),
        "old": first_tick(
            [StreamStatus(bar_age_seconds=515 * 86_400.0, stale=True)],
            DeskStatus(role="ACTIVE"),
            "store",
        ),
        "stopped": first_tick([StreamStatus()], DeskStatus(role="STOPPED"), "store"),
        "feed": first_tick([StreamStatus()], DeskStatus(), "mt5_files"),
    }
    assert len(set(told.values())) == 5
    assert "torra import" in told["bars"]
    assert "close of the next bar" in told["close"]
    assert "the newest bar closed 515 d 0 h ago" in told["old"]
    assert "torra run" in told["stopped"]
    assert "Health" in told["feed"]
    assert all(text.startswith("No tick yet") for text in told.values())


# --- the chart ---


def test_a_score_that_a_tick_has_not_is_a_gap_of_its_line() -> None:
    holed = chart_data.chart(made_symbol(ticks=[{"bar_time": "2021-12-01T00:00:00Z"}]), ChartBars())
    assert all(values == [None] for values in holed["lines"].values())


@cases(
    ("action", "position", "trades", "marked"),
    [
        ("HOLD", {"side": "LONG", "state": "FILLED"}, (), ["OPEN_BUY"]),
        ("OPEN_BUY", {"side": "LONG", "state": "FILLED"}, (), ["OPEN_BUY"]),
        ("OPEN_SELL", {"side": "LONG", "state": "FILLED"}, (), ["OPEN_BUY", "OPEN_SELL"]),
        ("HOLD", {"side": "LONG", "state": "PENDING"}, (), []),
        ("HOLD", None, [{"side": "SELL"}], ["OPEN_SELL"]),
    ],
    ids=["approved", "automatic", "other_side", "not_filled", "ended"],
)
def test_a_fill_that_no_tick_tells_has_an_arrow(
    action: str, position: dict[str, str] | None, trades, marked: list[Any]
) -> None:
    opened = {"opened_at": "2026-02-13T00:20:07Z"}
    levels = dict.fromkeys(("lots", "entry", "stop", "target"), 1.0)
    names = dict.fromkeys(("instance", "symbol", "signal_id"), "")
    data = made_symbol(
        ticks=[{"bar_time": "2026-02-13T00:00:00Z", "action": action}],
        holding=position and {"position": {**position, **opened, **levels, **names}},
        trades=[{**trade, **opened} for trade in trades],
    )
    markers = chart_data.chart(data, ChartBars())["markers"]
    assert sorted(marker["kind"] for marker in markers) == marked
    if action == "HOLD" and markers:
        assert markers[0]["time"] == int((START + STEP).timestamp())


def test_the_chart_can_be_worked_with_keys_and_leads_to_ticks() -> None:
    page = get(ADDRESS)
    (chart,) = [a for a in page.all("div") if a.get("id") == "chart"]
    assert chart["data-ticks"] == f"{ADDRESS}/"
    assert chart["aria-describedby"] == "chart-keys"
    newest = bars("BTCUSD", "M15")[-1]["time"]
    get(chart["data-ticks"] + newest)
    assert {"id": "chart-said", "class": "quiet", "role": "status", "data-own": None} in page.all(
        "p"
    )
    boxes = [a["value"] for a in page.all("input") if a.get("type") == "checkbox"]
    assert boxes == [*price_lines.LINES, "volume", *chart_data.LINES]
    looks = (ROOT / "static" / "lines.js").read_text("utf-8")
    script = (ROOT / "static" / "chart.js").read_text("utf-8")
    for key in ("ArrowLeft", "ArrowRight", "Home", "End", "Enter"):
        assert key in script
    for name in (*price_lines.LINES, *chart_data.LINES):
        assert re.search(rf"^  {name}: {{ titles?: ", looks, re.MULTILINE)
