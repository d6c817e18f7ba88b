"""Other programs' scorers: an overlay on a fresh home, and the bars that such a host has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import pandas as pd

from agents.contracts import VECTORS
from instance_database import Database
from tests.worlds import price_series, stores
from torra.clock import System
from torra.overlay import Overlay

SYMBOL: Final = "BTCUSD"
TIMEFRAME: Final = "M15"
L1: Final = {"price_action": 0.42, "key_levels": -0.1, "momentum": 0.31234567, "structure": 0.0}


@cache
def _bars(name: str) -> pd.DataFrame:
    return price_series.sample(name)


def bars(count: int = 400, *, name: str = "BTCUSD_M15", start: int = 0) -> pd.DataFrame:
    """Return so many shipped bars on a UTC index."""
    return _bars(name).iloc[start : start + count].copy()


def closed_at(frame: pd.DataFrame, minutes: int = 15) -> datetime:
    """Return the moment at which the newest bar closed."""
    end: datetime = (frame.index[-1] + pd.Timedelta(minutes=minutes)).to_pydatetime()
    return end


def profile(folder: Path, name: str = "mine", /, **groups: Any) -> str:
    """Write a profile of the home below a folder; return its name."""
    path = folder / "home" / "profiles" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(groups))
    return name


def overlay(
    folder: Path, provider: Any = None, *, agents: Mapping[str, Any] | None = None, **settings: Any
) -> Overlay:
    """Return an overlay on a home below a folder; `provider` answers in place of the profile's.

    With `agents` the profile is one of its own with these settings of them.
    """
    if agents is not None:
        settings["profile"] = profile(folder, agents=dict(agents))
    found = Overlay(folder / "home", **settings)
    if provider is not None:
        answered_by(found, provider)
    return found


def answered_by(found: Overlay, provider: Any) -> None:
    """Let a double answer the agents of an overlay."""
    found._opened.provider = lambda: provider  # type: ignore[method-assign]


def asked(found: Overlay, frame: pd.DataFrame | None = None, **more: Any) -> Any:
    """Ask about the newest of some bars, at the moment of its close."""
    shown = bars() if frame is None else frame
    moment = more.pop("as_of", closed_at(shown))
    return found.deliberate(SYMBOL, TIMEFRAME, shown, as_of=moment, **more)


def numbers(chart: Any) -> dict[str, float]:
    """Return the four scores of a chart."""
    return {vector: chart[vector]["score"] for vector in VECTORS}


def stored(folder: Path) -> Database:
    """Return the database of the home below a folder."""
    return stores.open_database(folder / "home", now=System().real_now)


def count(folder: Path, table: str) -> int:
    """Return how many rows a table of the home has."""
    with closing(stored(folder)) as database:
        found = database.connection().execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(found[0])
