"""The feed of an instance whose bars were imported: it reads them back from the desk's database.

The database is handed in as a callable, so that this module knows nothing of SQLite. What the
callable raises (StoreUnavailable) passes through; an empty frame is left to the door, which calls
it too short.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pandas as pd


class StoredFeed:
    """Bars as they were imported, read by `load` (`Database.load_bars`).

    They are those of one `instance`, or without one of any symbol: each under the name that it was
    imported by.
    """

    def __init__(self, load: Callable[..., pd.DataFrame], instance: str = "") -> None:
        self._load = load
        self._instance = instance

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        """Return the newest `limit` stored bars closed at `as_of`, oldest first."""
        name = self._instance or symbol
        frame = self._load(name, timeframe, as_of=as_of, limit=limit)
        if self._instance or len(frame) or symbol == symbol.upper():
            return frame
        # `torra import` stores what is no instance's under its name in capitals.
        return self._load(symbol.upper(), timeframe, as_of=as_of, limit=limit)

    def period(self) -> None:
        """Return None: a store is no replay, its desk lives in real time."""
        return
