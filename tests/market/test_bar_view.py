"""A view of bars says what the frame says, without cutting it out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.worlds.price_series import walk
from torra.clock import duration
from torra.market.bar_view import BarArrays, BarView
from torra.tick.bar_window import HistoryWindow, as_bars


def frame() -> pd.DataFrame:
    return walk(300, 5)


@pytest.mark.parametrize(("start", "end"), [(0, 300), (40, 41), (120, 290), (7, 7)])
def test_a_view_is_the_stretch_of_its_frame(start: int, end: int) -> None:
    bars = frame()
    cut, view = bars.iloc[start:end], BarView(BarArrays(bars), start, end)
    assert len(view) == len(cut)
    pd.testing.assert_frame_equal(view.frame, cut)
    assert np.array_equal(view.numbers, cut.to_numpy(dtype=float))
    assert view.times.tolist() == [time.value // 1000 for time in cut.index]
    for count in (1, 21, 1000):
        assert view.newest("high", count) == cut["high"].tolist()[-count:]
    if end > start:
        assert (view.first, view.last) == (cut.index[0], cut.index[-1])


def test_what_is_not_there_is_no_number() -> None:
    empty = BarView(BarArrays(frame()), 7, 7)
    for ask in (lambda: empty.first, lambda: empty.last):
        with pytest.raises(IndexError, match="no bar"):
            ask()
    with pytest.raises(KeyError):
        empty.newest("spread", 1)


@pytest.mark.parametrize(("after", "last"), [(220, 230), (229, 230), (230, 230), (0, 299)])
def test_the_path_of_a_history_is_cut_from_its_bars(after: int, last: int) -> None:
    bars = frame()
    window, times = HistoryWindow({"M15": bars}), bars.index
    path = window.path("M15", times[after].to_pydatetime(), times[last] + duration("M15"))
    assert path == list(as_bars(bars.iloc[after + 1 : last + 1]))
    assert window.path("H1", times[after], times[last]) == []
