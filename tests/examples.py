"""How many examples a test takes that says so itself: fewer by day than at night."""

from __future__ import annotations


class Examples:
    """Chooses between two counts; `whole`: this run takes those of a night."""

    whole = False

    def __call__(self, nightly: int, daily: int) -> int:
        """Return the count of this run."""
        return nightly if self.whole else daily


examples = Examples()
