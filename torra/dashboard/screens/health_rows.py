"""The lease as a value, read once from the store."""

from __future__ import annotations

from torra.tick.tick_record import RecordPart


class LeaseRow(RecordPart):
    """The lease of the database; `owner` is "" when it was given back."""

    owner: str = ""
    epoch: int = 0
    renewed_at: str = ""
    expires_at: str = ""
