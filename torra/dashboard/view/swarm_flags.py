"""What the newest ticks of a swarm flagged, counted: how often, and in a trader's words.

One odd tick says little; a flag on most of them says that an expert does not answer, or that a
number which the risk officer reads never comes. Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from agents.features import label_of
from torra.words.ticks import FLAGS

SILENT: Final = "silent:"
"""Beginning of the flag of a row of the risk officer whose number is not known."""

GRAVE: Final = ("thin_swarm", "unfalsified", "invented")
"""Flags that cost the swarm its word: on most ticks they want a look."""

COUNTED: Final = (*GRAVE, "regime_disputed")


class Flagged(NamedTuple):
    """How many ticks have each flag, and on how many the officer could not read each number."""

    ticks: int
    flags: Mapping[str, int]
    silent: Mapping[str, int]

    def grave(self, share: float) -> bool:
        """Tell whether a grave flag stands on such a share of the ticks."""
        return bool(self.ticks) and any(
            self.flags[name] >= share * self.ticks for name in GRAVE if name in self.flags
        )


def counted(ticks: Sequence[Iterable[str]]) -> Flagged:
    """Return how many of some ticks have each flag; `ticks` are the flags of each."""
    every = Counter(flag for flags in ticks for flag in set(flags))
    return Flagged(
        len(ticks),
        {name: every[name] for name in COUNTED if every[name]},
        {
            flag.removeprefix(SILENT): number
            for flag, number in sorted(every.items())
            if flag.startswith(SILENT)
        },
    )


def sentence(flagged: Flagged) -> str:
    """Return what the newest ticks flagged in a sentence."""
    parts = [
        f"{FLAGS[name].partition(':')[0]} in {number:,}" for name, number in flagged.flags.items()
    ]
    head = f"of the newest {flagged.ticks:,} ticks of experts: {', '.join(parts) or 'no flag'}"
    if not flagged.silent:
        return head
    names = ", ".join(f"{label_of(name)} in {number:,}" for name, number in flagged.silent.items())
    return f"{head}; the risk officer had no number for {names}"
