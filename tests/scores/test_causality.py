"""No row of a score frame knows a later bar, and the live window knows all that matters.

The machinery (`violations`: every row of a prefix against the whole, bitwise) is itself under
test: it must catch a planted leak of each kind, in a column of its own and inside the calculator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Literal

import numpy as np
import pandas as pd
import pytest

import technical_calculator
from agents.contracts import VECTORS
from technical_calculator import COLUMNS, HISTORY, WARM_UP, score_frame
from tests.cases import cases
from tests.conftest import Scale
from tests.worlds.price_series import SAMPLES, sample, times_of, walk
from torra.market import structure as market_structure
from torra.market import windows
from torra.market.structure import PIVOT_BARS, Swings, swings

Frames = Callable[[pd.DataFrame], pd.DataFrame]
EVERY_PHASE = range(700, 801)


def same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    return list(one) == list(other) and all(
        np.array_equal(one[name], other[name], equal_nan=one[name].dtype != bool) for name in one
    )


def violations(compute: Frames, bars: pd.DataFrame, ends: Iterable[int]) -> list[int]:
    """Return the ends at which some row of the prefix differs from the same row of the whole."""
    whole = compute(bars)
    return [end for end in ends if not same(compute(bars.iloc[:end]), whole.iloc[:end])]


def caught(compute: Frames, bars: pd.DataFrame, ends: Iterable[int]) -> bool:
    """Tell whether some end shows a difference; the first one that does is enough."""
    whole = compute(bars)
    return not all(same(compute(bars.iloc[:end]), whole.iloc[:end]) for end in ends)


def random_ends(count: int, length: int, seed: int) -> list[int]:
    return [int(end) for end in np.random.default_rng(seed).integers(1, length, count)]


# --- the calculator -----------------------------------------------------------------------------


def series() -> dict[str, pd.DataFrame]:
    return {
        "EURUSD_H1": sample("EURUSD_H1").iloc[2000:3400],
        "BTCUSD_M15": sample("BTCUSD_M15").iloc[4000:5400],
        "walk": walk(1400, 1, flat=(740, 765)),
    }


@pytest.mark.parametrize("name", series())
def test_prefixes_are_invariant_at_every_phase(name: str, scaled: Scale) -> None:
    bars = series()[name]
    step = 1 if scaled.whole else 25
    ends = [*EVERY_PHASE[::step], *random_ends(scaled(1000, 3), len(bars), 7)]
    assert {end % 4 for end in ends} == {0, 1, 2, 3}
    assert violations(score_frame, bars, ends) == []


def test_whatever_comes_later_changes_nothing(scaled: Callable[..., int]) -> None:
    for seed in range(scaled(1000, 4)):
        chance = np.random.default_rng(seed)
        bars = walk(900, seed, flat=(300, 300 + 40 * (seed % 2)))
        t = int(chance.integers(WARM_UP, 890))
        noise = walk(900, seed + 5000).to_numpy() * chance.choice([0.01, 1.0, 50.0])
        changed = bars.copy()
        changed.iloc[t + 1 :] = noise[t + 1 :]
        one, other = score_frame(bars), score_frame(changed)
        assert not same(one, other)
        assert same(one.iloc[: t + 1], other.iloc[: t + 1]), (seed, t)


# --- the live window ----------------------------------------------------------------------------


def one_way(count: int) -> pd.DataFrame:
    """Return a market that rises without a swing, but for one dip in 600 bars."""
    close = 1000.0 + np.arange(count) - 9.0 * (np.arange(count) % 600 < 2)
    bars = {"open": close - 0.5, "high": close + 1.0, "low": close - 1.0, "close": close}
    return pd.DataFrame(bars, index=walk(count, 1).index).assign(volume=1.0)


@pytest.mark.parametrize("name", [*SAMPLES, "walk", "odd", "one way"])
def test_the_live_window_gives_the_row_of_the_whole_history(
    name: str, scaled: Callable[..., int]
) -> None:
    odd = walk(3000, 13) * 1.1  # nothing is a round number, neither prices nor volumes
    made = {"walk": walk(3000, 11), "odd": odd, "one way": one_way(3000)}
    bars = made[name] if name in made else sample(name)
    whole = score_frame(bars)
    ends = np.random.default_rng(3).integers(HISTORY, len(bars) + 1, scaled(1000, 6))
    rows = [score_frame(bars.iloc[end - HISTORY : end]).iloc[-1] for end in ends]
    live, full = pd.DataFrame(rows), whole.iloc[ends - 1]
    for name in COLUMNS:
        x, y = live[name].to_numpy(float), full[name].to_numpy(float)
        np.testing.assert_array_equal(x, y, err_msg=name)


def test_a_running_sum_would_be_seen(monkeypatch: pytest.MonkeyPatch, scaled: Scale) -> None:
    def running(values: np.ndarray, length: int) -> np.ndarray:
        return pd.Series(values).rolling(length).mean().to_numpy()

    bars = sample("BTCUSD_M15").iloc[:4000]
    ends = range(HISTORY, 4001, 250 if scaled.whole else 650)

    def differing() -> set[str]:
        whole = score_frame(bars)
        found = set()
        for end in ends:
            live, full = score_frame(bars.iloc[end - HISTORY : end]).iloc[-1], whole.iloc[end - 1]
            found |= {n for n in COLUMNS if live[n] != full[n] and live[n] == live[n]}
        return found

    assert differing() == set()
    monkeypatch.setattr(windows, "mean", running)
    assert {"sma20", "stoch_k", "cci20"} <= differing()


def test_a_window_that_is_too_short_is_seen() -> None:
    bars = sample("EURUSD_H1").iloc[:2000]
    short = score_frame(bars.iloc[-(WARM_UP + 40) :]).iloc[-1]
    assert short["adx14"] != score_frame(bars)["adx14"].iloc[-1]


# --- planted leaks: a column each ---------------------------------------------------------------


def column(values: object, bars: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"leak": np.asarray(values, dtype=float)}, index=bars.index)


def pivot_high(bars: pd.DataFrame, delay: int, k: int = PIVOT_BARS) -> pd.DataFrame:
    high = bars["high"]
    peak = high.where(high == high.rolling(2 * k + 1, center=True).max())
    return column(peak.shift(delay).ffill(), bars)


def hourly_close(bars: pd.DataFrame, label: Literal["left", "right"]) -> pd.DataFrame:
    """Return the newest hourly close at each M15 close. Labelled by its end an hour is known when
    its last quarter closes; labelled by its start it is known three quarters too early.
    """
    hours = bars["close"].resample("1h", label=label, closed="left").last()
    asked = bars.index if label == "left" else times_of(bars) + pd.Timedelta("15min")
    return column(hours.reindex(asked, method="ffill"), bars)


def fibonacci(bars: pd.DataFrame) -> pd.DataFrame:
    top, bottom = bars["high"].max(), bars["low"].min()
    return column((bars["close"] - bottom) / (top - bottom), bars)


LEAKS: dict[str, Frames] = {
    "z-score over the frame": lambda b: column(
        (b["close"] - b["close"].mean()) / b["close"].std(), b
    ),
    "fibonacci over the frame": fibonacci,
    "divided by the frame's highest": lambda b: column(b["close"] / b["high"].max(), b),
    "swing without delay": lambda b: pivot_high(b, 0),
    "swing one bar early": lambda b: pivot_high(b, PIVOT_BARS - 1),
    "backfilled average": lambda b: column(b["close"].rolling(200).mean().bfill(), b),
    "centred average": lambda b: column(b["close"].rolling(21, center=True).mean(), b),
    "lagging span (chikou)": lambda b: column(b["close"].shift(-26), b),
    "next bar": lambda b: column(b["open"].shift(-1), b),
    "warm-up filled with the frame's mean": lambda b: column(
        b["close"].rolling(26).mean().fillna(b["close"].mean()), b
    ),
    "hour labelled by its start": lambda b: hourly_close(b, "left"),
}
SOUND: dict[str, Frames] = {
    "expanding z-score": lambda b: column(
        (b["close"] - b["close"].expanding().mean()) / b["close"].expanding().std(), b
    ),
    "all-time high": lambda b: column(b["high"].cummax(), b),
    "swing at its confirmation": lambda b: pivot_high(b, PIVOT_BARS),
    "hour labelled by its end": lambda b: hourly_close(b, "right"),
}


def leak_ends() -> list[int]:
    return [*EVERY_PHASE, *random_ends(40, 1200, 5)]


@cases("name", LEAKS)
def test_a_planted_leak_is_caught(name: str) -> None:
    assert caught(LEAKS[name], walk(1200, 21), leak_ends())


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_column_passes(name: str) -> None:
    assert violations(SOUND[name], walk(1200, 21), leak_ends()) == []


def test_a_leak_between_timeframes_shows_only_in_mid_hour() -> None:
    """Why ends at every phase are needed: at whole hours this leak is invisible."""
    bars = walk(1200, 21)
    assert bars.index[0].minute == 0
    caught = violations(LEAKS["hour labelled by its start"], bars, EVERY_PHASE)
    assert {end % 4 for end in caught} == {1, 2, 3}


# --- planted leaks: inside the calculator -------------------------------------------------------


def early_swings(values: np.ndarray) -> Swings:
    """Return swings one bar before their confirmation."""
    found = swings(values)
    ahead = [np.concatenate([part[:, 1:], part[:, -1:]], axis=1) for part in found]
    return Swings(*ahead)


def test_a_swing_known_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_structure, "swings", early_swings)
    assert caught(score_frame, walk(900, 22), range(760, 800))


def looks_ahead(values: np.ndarray, bars: int) -> np.ndarray:
    return np.concatenate([values[bars:], np.full(bars, values[-1])])


def share_of_the_largest(values: np.ndarray) -> np.ndarray:
    return values / max(1.0, float(np.nanmax(np.abs(values), initial=0.0)))


@pytest.mark.parametrize(
    ("place", "part", "leak"),
    [
        (windows, "before", looks_ahead),
        (technical_calculator, "_nearness", share_of_the_largest),
    ],
)
def test_a_leak_in_one_component_is_caught(
    place: ModuleType, part: str, leak: Callable[..., np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, part, leak)
    assert caught(score_frame, walk(900, 23), range(780, 800))


def test_a_change_of_the_last_bar_is_seen_by_every_vector() -> None:
    """The other side of causality: the row of a bar does use that bar."""
    bars = walk(900, 24)
    changed = bars.copy()
    changed.iloc[-1] = [1000.0, 1500.0, 900.0, 1400.0, 9000.0]
    one, other = score_frame(bars).iloc[-1], score_frame(changed).iloc[-1]
    assert all(one[vector] != other[vector] for vector in VECTORS)
