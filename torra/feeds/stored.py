"""The feed of an instance whose bars were imported: it reads them back from the desk's database.

The database is handed in as a callable, so that this module knows nothing of SQLite. What the
callable raises (StoreUnavailable) passes through; an empty frame is left to the door, which calls
it too short.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import pandas as pd


class Load(Protocol):
    """How the stored bars of one instance are read: `Database.load_bars` bound to its name."""

    def __call__(self, timeframe: str, *, as_of: datetime, limit: int | None) -> pd.DataFrame:
        """Return the newest `limit` bars closed at `as_of`, oldest first; all when it is None."""
        ...


class StoredFeed:
    """Bars as they were imported."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` stored bars closed at `as_of`; the store holds one symbol."""
        del symbol
        return self._load(timeframe, as_of=as_of, limit=limit)

    def period(self) -> None:
        """Return None: a store is no replay, its desk lives in real time."""
        return


class StoredCompanions:
    """Bars of other symbols as they were imported: each under the name that it was imported by."""

    def __init__(self, load: Callable[..., pd.DataFrame]) -> None:
        """Read by `load`, `Database.load_bars`."""
        self._load = load

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` stored bars closed at `as_of`, oldest first."""
        found = self._load(symbol, timeframe, as_of=as_of, limit=limit)
        if len(found) or symbol == symbol.upper():
            return found
        # `torra import` stores what is no instance's under its name in capitals.
        return self._load(symbol.upper(), timeframe, as_of=as_of, limit=limit)

    def period(self) -> None:
        """Return None: a store is no replay."""
        return
