"""The spread of a bar, in units of the price: what feeds hand on, what the door lets through."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.worlds.price_series import sample
from tests.worlds.terminals import NOON, TerminalDesk, grid
from torra.feeds import door
from torra.feeds.csv_file import NO_SPREADS, read_bars
from torra.feeds.frame import in_price
from torra.feeds.protocol import COLUMNS
from torra.market.spreads import SPREAD

BEGIN = datetime(2024, 1, 2, tzinfo=UTC)
HEADER = [
    *("<DATE>", "<TIME>", "<OPEN>", "<HIGH>", "<LOW>", "<CLOSE>"),
    *("<TICKVOL>", "<VOL>", "<SPREAD>"),
]


def rows(count: int, digits: int = 2, spreads: tuple[str, ...] = ("28", "27", "0")) -> list[Any]:
    """Bars as MetaTrader writes them, each price with all of its decimals."""
    found = []
    for at in range(count):
        moment = BEGIN + at * timedelta(minutes=15)
        middle = 2062.94 + at * 10.0**-digits
        prices = (middle, middle + 1.5, middle - 1.5, middle + 0.5)
        found.append(
            [
                *(f"{moment:%Y.%m.%d}", f"{moment:%H:%M:%S}"),
                *(f"{price:.{digits}f}" for price in prices),
                *(str(400 + at), "0", spreads[at % len(spreads)]),
            ]
        )
    return found


def read(folder: Path, lines: list[Any]) -> pd.DataFrame:
    path = folder / "XAUUSD_M15.csv"
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
    return read_bars(path, clock="utc")


def known(frame: pd.DataFrame) -> list[float | None]:
    return [None if math.isnan(one) else one for one in frame[SPREAD].tolist()]


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("digits", "told"), [(2, 0.28), (3, 0.028), (5, 0.00028), (0, 28.0)])
def test_an_export_of_metatrader_has_its_spreads_in_points(
    tmp_path: Path, digits: int, told: float
) -> None:
    """By name, and by place where there is no header."""
    lines = rows(30, digits)
    named = read(tmp_path, [HEADER, *lines])
    assert list(named.columns) == [*COLUMNS, SPREAD]
    assert known(named)[:3] == [told, in_price(np.array([27.0]), digits)[0], 0.0]
    assert known(read(tmp_path, lines)) == known(named)
    turned = [[*line[:2], *line[:1:-1]] for line in (HEADER, *lines)]
    assert known(read(tmp_path, turned)) == known(named)


def test_three_bars_of_metatrader_tell_the_point_and_three_of_nobody_do_not(tmp_path: Path) -> None:
    assert known(read(tmp_path, [HEADER, *rows(3)])) == [0.28, 0.27, 0.0]
    plain = read(tmp_path, [[head.strip("<>").lower() for head in HEADER], *rows(3)])
    assert SPREAD not in plain.columns
    assert plain.attrs[NO_SPREADS] == "its prices do not tell how large a point is"


def test_a_file_without_its_last_zeros_still_tells_the_point(tmp_path: Path) -> None:
    lines = [
        [*line[:2], *(price.rstrip("0").rstrip(".") for price in line[2:6]), *line[6:]]
        for line in rows(40, 3)
    ]
    assert any("." not in line[5] or len(line[5].partition(".")[2]) < 3 for line in lines)
    assert known(read(tmp_path, [HEADER, *lines]))[:2] == [0.028, 0.027]
    long = [
        [*line[:2], *(f"{float(p) + 1e-12:.14f}" for p in line[2:6]), *line[6:]] for line in lines
    ]
    assert SPREAD not in read(tmp_path, [HEADER, *long]).columns


@pytest.mark.parametrize("cell", ["-1", "2.5", "nan", "inf", "", "x", "1e400"])
def test_a_cell_that_is_no_spread_refuses_no_bar(tmp_path: Path, cell: str) -> None:
    frame = read(tmp_path, [HEADER, *rows(6, spreads=("28", cell, "27"))])
    assert known(frame) == [0.28, None, 0.27] * 2
    told = frame.attrs[NO_SPREADS]
    assert f"line 3: spread is {cell!r}, not a number of points; so are 2 in all" in told
    end = BEGIN + timedelta(minutes=90)
    assert len(door.check(frame, "M15", as_of=end, minimum=1)) == 6


# --- terminals ------------------------------------------------------------------------------------


def test_the_terminal_says_how_large_a_point_is() -> None:
    desk = TerminalDesk()
    try:
        desk.fill("M15", grid("M15", NOON - timedelta(days=1), NOON))
        assert set(known(desk.bars("M15", NOON))) == {0.2}
        asked = desk.package.calls.count("symbol_info")
        desk.bars("M15", NOON)
        assert desk.package.calls.count("symbol_info") == asked == 1
    finally:
        desk.terminal.close()


def test_a_terminal_that_does_not_say_it_gives_bars_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = TerminalDesk()
    try:
        desk.fill("M15", grid("M15", NOON - timedelta(days=1), NOON))
        said = type(desk.package).symbol_info
        with monkeypatch.context() as patch:
            patch.setattr(type(desk.package), "symbol_info", lambda *_: None)
            silent = desk.bars("M15", NOON)
        assert len(silent) > 90 and set(known(silent)) == {None}
        assert type(desk.package).symbol_info is said
        assert set(known(desk.bars("M15", NOON))) == {0.2}
    finally:
        desk.terminal.close()


# --- the door -------------------------------------------------------------------------------------


def at_the_door(spreads: Any, count: int = 300) -> tuple[pd.DataFrame, pd.DataFrame]:
    bars = sample("BTCUSD_M15").iloc[:count]
    end = bars.index[-1].to_pydatetime() + timedelta(minutes=15)
    raw = bars.assign(spread=spreads)
    checked = door.check(raw, "M15", as_of=end)
    pd.testing.assert_frame_equal(checked[list(COLUMNS)], door.check(bars, "M15", as_of=end))
    return checked, door.drop_invalid_bars(raw, "M15", as_of=end)


def test_the_door_lets_spreads_through_and_others_out() -> None:
    checked, sifted = at_the_door(np.arange(300) / 10)
    assert known(checked) == known(sifted) == [at / 10 for at in range(300)]
    assert door.FAULTY not in checked.attrs
    extra = sample("BTCUSD_M15").iloc[:300].assign(more=1.0)
    end = extra.index[-1].to_pydatetime() + timedelta(minutes=15)
    assert list(door.check(extra, "M15", as_of=end).columns) == list(COLUMNS)


@pytest.mark.parametrize("broken", [-0.01, math.inf, -math.inf])
def test_a_spread_that_is_none_is_told_and_refuses_nothing(broken: float) -> None:
    spreads = np.full(300, 0.5)
    spreads[[7, 9]] = broken
    spreads[11] = math.nan
    for frame in at_the_door(spreads):
        assert [at for at, one in enumerate(known(frame)) if one is None] == [7, 9, 11]
        first = frame.index[7].isoformat().replace("+00:00", "Z")
        assert frame.attrs[door.FAULTY] == f"no spread of 2 bars, the first {first}: {broken!r}"


def test_a_column_that_holds_no_numbers_is_told_and_refuses_nothing() -> None:
    for frame in at_the_door(["0.5"] * 300):
        assert list(frame.columns) == list(COLUMNS)
        assert "column spread holds" in frame.attrs[door.FAULTY]
    bars = sample("BTCUSD_M15").iloc[:300]
    twice = pd.concat([bars, pd.DataFrame(1.0, bars.index, ["spread", "spread"])], axis=1)
    end = bars.index[-1].to_pydatetime() + timedelta(minutes=15)
    checked = door.check(twice, "M15", as_of=end)
    assert checked.attrs[door.FAULTY] == "column spread appears more than once"
