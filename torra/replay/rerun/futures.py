"""Makes other futures: a history that is itself up to a moment and something else after it.

Whatever is computed from the past alone is the same in all of them. Each kind catches what another
may miss: a scaled future moves anything normalised over the whole frame, noise anything that peeks
a few bars ahead, the reversed one sums that happen to agree, the removed one whatever depends on a
length, and one planted spike the highest and lowest of a window that is not over. Every future
passes the door: its bars are sound, only not true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.random import Generator

from torra.clock import duration
from torra.config import Instance
from torra.lessons.lesson import Lesson, LessonFacts, Situation
from torra.lessons.reviews import rules_words
from torra.market.longer_bars import aggregate
from torra.market.spreads import SPREAD

PRICES: Final = ["open", "high", "low", "close"]
SCALE: Final = 1.37
SPIKE: Final = 3.0
"""How many times as high, and as low, as it was a planted bar goes."""

WILD: Final = 5.0
"""How much wilder the noise is than the bars that it replaces."""

Values = npt.NDArray[np.float64]
Aggregate = Callable[[pd.DataFrame, str, str], pd.DataFrame]


def _scaled(later: pd.DataFrame, last: float, rng: Generator) -> pd.DataFrame:
    del last, rng
    changed = later.copy()
    changed[[*PRICES, *_spread(later)]] *= SCALE
    return changed


def _noise(later: pd.DataFrame, last: float, rng: Generator) -> pd.DataFrame:
    moves = np.abs(np.diff(np.log(later["close"].to_numpy()), prepend=np.log(last)))
    # Bars that do not move at all would give no noise.
    size = WILD * float(moves.mean()) or 0.01
    steps = np.clip(rng.normal(0.0, size, len(later)), -1.0, 1.0)
    # A price that runs to 0 or to infinity would be stopped at the door.
    path = np.clip(np.cumsum(steps), -5.0, 5.0)
    close = last * np.exp(path)
    opened = np.concatenate([[last], close[:-1]])
    wick = np.exp(np.abs(rng.normal(0.0, size, (2, len(later)))).clip(0.0, 1.0))
    columns = {
        "open": opened,
        "high": np.maximum(opened, close) * wick[0],
        "low": np.minimum(opened, close) / wick[1],
        "close": close,
        "volume": later["volume"].to_numpy() * rng.uniform(0.1, 10.0, len(later)) + 1.0,
    }
    columns |= {
        name: later[name].to_numpy() * rng.uniform(0.1, 10.0, len(later)) for name in _spread(later)
    }
    return pd.DataFrame(columns, index=later.index)[list(later.columns)]


def _reversed(later: pd.DataFrame, last: float, rng: Generator) -> pd.DataFrame:
    del last, rng
    return pd.DataFrame(later.to_numpy()[::-1], index=later.index, columns=later.columns)


def _removed(later: pd.DataFrame, last: float, rng: Generator) -> pd.DataFrame:
    del last, rng
    return later.iloc[:0]


def _spike(later: pd.DataFrame, last: float, rng: Generator) -> pd.DataFrame:
    del last, rng
    changed = later.copy()
    first = changed.index[:1]
    changed.loc[first, "high"] *= SPIKE
    changed.loc[first, "low"] /= SPIKE
    changed.loc[first, "volume"] = (changed.loc[first, "volume"] + 1.0) * SPIKE
    changed.loc[first, _spread(later)] *= SPIKE
    return changed


def _spread(frame: pd.DataFrame) -> list[str]:
    """Return the column of spreads where there is one: no price, and free of its high and low."""
    return [name for name in frame.columns if name == SPREAD]


KINDS: Final[Mapping[str, Callable[[pd.DataFrame, float, Generator], pd.DataFrame]]] = {
    "scaled": _scaled,
    "noise": _noise,
    "reversed": _reversed,
    "removed": _removed,
    "spike": _spike,
}


def lessons(
    known: Sequence[Lesson], as_of: datetime, instance: Instance, asset: str, rng: Generator
) -> list[Lesson]:
    """Return lessons with another future: those known by then, and other ones known since.

    Of each that was known a copy is planted that is known from `as_of` on, with another result; so
    what looks at the future finds what is most like what it looks for. Without any one is made up.
    """
    before = [one for one in known if one.facts.known_at < as_of]
    likes = before or [_made_up(instance, asset, as_of)]
    number = max((one.number for one in known), default=0)
    since = [one for one in known if one.facts.known_at >= as_of]
    planted = [replace(one, number=number + at) for at, one in enumerate(likes, start=1)]
    return [*before, *(_other(one, as_of, rng) for one in (*since, *planted))]


def _other(one: Lesson, as_of: datetime, rng: Generator) -> Lesson:
    """Return a lesson of the future with another result, known at a moment or later."""
    known_at = max(as_of, one.facts.known_at)
    r = float(rng.uniform(-20.0, 20.0))
    facts = replace(
        one.facts,
        sid=f"{one.facts.sid}-{one.number}",
        known_at=known_at,
        r=r,
        outcome="win" if r > 0.0 else "loss",
    )
    return Lesson(one.number, facts, (rules_words(facts, known_at),))


def _made_up(instance: Instance, asset: str, as_of: datetime) -> Lesson:
    facts = LessonFacts(
        sid="planted",
        kind="trade",
        instance=instance.id,
        symbol=instance.symbol,
        asset=asset,
        timeframe=instance.shortest,
        side="LONG",
        bar_time=as_of,
        opened_at=as_of,
        closed_at=as_of,
        known_at=as_of,
        outcome="win",
        evolution="Realized",
        reason="TARGET",
        r=2.0,
        planned_r=2.0,
        slipped_r=0.0,
        mae_r=0.0,
        mfe_r=2.0,
        hours_held=1.0,
        surprise=2.0,
        situation=Situation({}),
    )
    return Lesson(1, facts, ())


def closed(frame: pd.DataFrame, timeframe: str, as_of: datetime) -> int:
    """Return how many bars of a frame are closed at a moment."""
    return int(frame.index.searchsorted(pd.Timestamp(as_of - duration(timeframe)), side="right"))


def changed(
    frame: pd.DataFrame, timeframe: str, as_of: datetime, kind: str, rng: Generator
) -> pd.DataFrame:
    """Return a frame with another future after `as_of`; every bar that is closed then is kept."""
    end = closed(frame, timeframe, as_of)
    if end == len(frame):
        return frame
    later = frame.iloc[end:]
    last = float(frame["close"].iloc[end - 1]) if end else float(later["open"].iloc[0])
    return pd.concat([frame.iloc[:end], KINDS[kind](later, last, rng)])


def world(
    frames: Mapping[str, pd.DataFrame],
    derived: Mapping[str, str],
    as_of: datetime,
    kind: str,
    rng: Generator,
    *,
    aggregate: Aggregate = aggregate,
) -> dict[str, pd.DataFrame]:
    """Return every timeframe with another future.

    A timeframe of `derived` is put together anew from the one that it names, as it was before.
    """
    found = {
        name: changed(frame, name, as_of, kind, rng)
        for name, frame in frames.items()
        if name not in derived
    }
    return found | {name: aggregate(found[base], base, name) for name, base in derived.items()}
