"""The lease as a value, read once from the store."""

from __future__ import annotations

from torra.dashboard.lenient import LenientModel


class LeaseRow(LenientModel):
    """The lease of the database; `owner` is "" when it was given back."""

    owner: str = ""
    epoch: int = 0
    renewed_at: str = ""
    expires_at: str = ""
