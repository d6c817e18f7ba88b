"""The record of one request to a vendor: how far it came, and what came back.

The transport writes it and the asker reads it. It is the same for every vendor, even where an SDK
turns the answer into an exception of its own and drops the rest.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from torra.providers.vendors.addresses import Address


@dataclass(slots=True)
class RequestTrace:
    """One request on its way. `until` is when nobody waits any longer, in the loop's time.

    `failure` is one word: connect (nobody was reached), reset (the connection broke after that),
    long (the reply was cut off), encoding (unreadable compression), misdirected (not sent).
    """

    address: Address
    until: float
    stage: Literal["new", "connecting", "sent", "answered"] = "new"
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    failure: str = ""

    def restart(self) -> None:
        """Forget what came back: another request begins."""
        self.stage, self.status, self.failure = "new", None, ""
        self.headers, self.body = {}, b""

    @property
    def billed(self) -> bool:
        """Whether the vendor may charge for the request: it was sent, and not turned away."""
        return self.stage == "sent" or self.good

    @property
    def good(self) -> bool:
        """Whether a whole reply with a status of success is here."""
        return self.stage == "answered" and 200 <= (self.status or 0) < 300


CURRENT: ContextVar[RequestTrace] = ContextVar("torra_wire")
"""The request that the running task makes; the transport sends nothing without one."""
