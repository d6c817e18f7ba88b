"""The lease and the newest calls as values, read once from the store."""

from __future__ import annotations

from torra.tick.tick_record import RecordPart


class LeaseRow(RecordPart):
    """The lease of the database; `owner` is "" when it was given back."""

    owner: str = ""
    epoch: int = 0
    renewed_at: str = ""
    expires_at: str = ""


class CallRow(RecordPart):
    """How a call ended."""

    provider: str = ""
    at: str = ""
    status: str = ""
    elapsed_ms: float = 0.0

    @property
    def good(self) -> bool:
        """Whether it was answered and the answer used."""
        return self.status == "ok"
