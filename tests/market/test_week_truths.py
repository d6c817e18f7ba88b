"""A table of truths: markets, servers, holidays and spans; the right clock is never accused.

A wrong clock that reads two weeks and more otherwise is warned against. Only where the market opens
at one hour of the server all the year do new_york+7 and Europe/Athens both fit: both are told.
"""

from __future__ import annotations

from zlib import crc32

import pandas as pd
import pytest

from tests.worlds.broker_weeks import SERVERS, History, histories
from torra.market.broker_clock import ServerClock
from torra.market.week_starts import WeekLook, look

SELECTION = sorted(histories(1), key=lambda history: crc32(str(history).encode()))[:60]
SAME_HOUR = {"new_york+7", "Europe/Athens"}


def check(history: History) -> None:
    """Read a history under every clock and compare what is said with the truth."""
    walls = history.walls()
    truth = ServerClock.parse(history.server).to_utc_index(walls)
    begins = _week_begins(truth)
    for clock in SERVERS:
        times = ServerClock.parse(clock).to_utc_index(walls)
        answer = look(pd.DataFrame(index=times), history.timeframe, clock)
        assert answer is not None
        if clock == history.server:
            assert (answer.warning, answer.fits) == ("", True), answer
        elif (times != truth)[begins].sum() >= 2:
            _named(answer, history)


def _named(answer: WeekLook, history: History) -> None:
    """Check that a wrong clock is warned against, or, where both fit, that both are told."""
    assert history.server in answer.others, answer
    still = history.server == "new_york+7" or history.market.clock is None
    if not (still and {answer.clock, history.server} == SAME_HOUR):
        assert history.server in answer.warning, answer


def _week_begins(truth: pd.DatetimeIndex) -> pd.Series[bool]:
    return pd.Series(truth).diff() > pd.Timedelta("30h")


@pytest.mark.by_day(12)
@pytest.mark.parametrize("history", SELECTION, ids=str)
def test_sixty_histories(history: History) -> None:
    check(history)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_the_whole_product(seed: int) -> None:
    for history in histories(seed):
        check(history)
