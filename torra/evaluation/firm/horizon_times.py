"""How long the times are that a report may speak for: in bars, or of a day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

BARS: Final[Mapping[str, int]] = {"bars_4": 4, "bars_16": 16}
DAY: Final = timedelta(days=1)
"""The 96 quarters of an hour of `days`, and the length of a session's day."""
