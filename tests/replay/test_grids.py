"""The grid of a sweep: what can be written, and what is said of what cannot."""

from __future__ import annotations

import pytest

from tests.cases import cases
from torra.config import Profile
from torra.errors import ConfigError
from torra.replay.grids import LARGEST, axis, cells


@cases(
    ("text", "values"),
    [
        (".3:.7:.05", (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7)),
        ("0.3:0.62:0.1", (0.3, 0.4, 0.5, 0.6)),
        (".5:.5:.1", (0.5,)),
        (".4, .6,.5", (0.4, 0.6, 0.5)),
        ("0", (0.0,)),
    ],
)
def test_an_axis(text: str, values: tuple[float, ...]) -> None:
    assert axis("--thresholds", text) == values


@cases(
    ("text", "said"),
    [
        (".3:.7", "write FROM:TO:STEP"),
        (".7:.3:.05", "FROM is at most TO"),
        (".3:.7:0", "STEP above 0"),
        (".3:.7:x", "'x' is no number"),
        (".3:nan:.1", "'nan' is no number"),
        ("", "'' is no number"),
        (".3,.3", "stands there twice"),
        ("0:1:1e-9", "take a larger step"),
    ],
)
def test_what_is_no_axis(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        axis("--thresholds", text)


def test_every_combination_in_the_order_written() -> None:
    found = cells(Profile(), ".4,.5", ["momentum=0:.5:.25", "M15=.4,1"])
    assert len(found) == len({cell.name for cell in found}) == 12
    assert found[0].settings == {"threshold": 0.4, "momentum": 0.0, "M15": 0.4}
    last = found[-1]
    assert last.name == "threshold 0.5 momentum 0.5 M15 1"
    assert (last.profile.thresholds.buy, last.profile.thresholds.sell) == (0.5, 0.5)
    assert last.profile.sentiment_weights.momentum == 0.5
    assert last.profile.timeframe_weights == {"M15": 1.0, "H1": 0.6}
    assert last.profile.sentiment_weights.structure == Profile().sentiment_weights.structure


def test_no_axis_is_the_profile_itself() -> None:
    (only,) = cells(Profile(), "")
    assert (only.name, only.profile) == ("as it is", Profile())


@cases(
    ("thresholds", "weights", "said"),
    [
        ("0", [], "the grid at threshold 0"),
        (".5", ["speed=1"], "write NAME=AXIS.*price_action.*M15"),
        (".5", ["momentum"], "write NAME=AXIS"),
        (".5", ["momentum=1", "momentum=2"], "an axis already"),
        (".5", ["momentum=-1"], "momentum"),
        (".01:1:.01", ["ath=0:1:.01"], f"{LARGEST:,} at most"),
    ],
)
def test_what_is_no_grid(thresholds: str, weights: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        cells(Profile(), thresholds, weights)
