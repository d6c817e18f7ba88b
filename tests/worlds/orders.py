"""Orders as they were decided: sealed, and sealed anew when a test changes one."""

from __future__ import annotations

from dataclasses import dataclass

from torra.bridges.protocol import Order


@dataclass(frozen=True, slots=True)
class Decided(Order):
    """An order whose seal fits, whatever it says: `replace` seals it anew."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seal", self.computed_seal)
