"""What a benchmark is made of: a part that can be measured again, and the rows of its table.

A part gives figures, one number for each name, as often as it is asked; a row says how a figure is
written and what it has to reach. Yes and no are figures too: 1 and 0. Nothing here measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

Figures = Mapping[str, float]
"""What one run of a part has found, by name."""

Run = Callable[[], Figures]
"""Measures a part once."""

HELD: Final = 1.0
"""The figure of something that was so in every case looked at."""


@dataclass(frozen=True, slots=True)
class Target:
    """A bound that the median of a figure is to keep, in the figure's own unit."""

    most: float | None = None
    least: float | None = None

    def met(self, value: float) -> bool:
        """Return whether a value keeps the bound."""
        return (self.most is None or value <= self.most) and (
            self.least is None or value >= self.least
        )

    def told(self, form: str) -> str:
        """Return the bound as words, written as its figure is."""
        if self.most == self.least and self.most is not None:
            return form.format(self.most)
        sign, value = ("<=", self.most) if self.most is not None else (">=", self.least)
        return f"{sign} {form.format(value)}"

    def share(self, value: float) -> float:
        """Return how far a value has used up the bound: above 1 it is missed."""
        if self.most is not None:
            return value / self.most
        assert self.least is not None
        return self.least / value


def at_most(value: float) -> Target:
    """Return an upper bound."""
    return Target(most=value)


def at_least(value: float) -> Target:
    """Return a lower bound."""
    return Target(least=value)


def exactly(value: float) -> Target:
    """Return the one value that will do."""
    return Target(most=value, least=value)


ALWAYS: Final = exactly(HELD)
"""The target of what has to hold in every case."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: the figure, what it is in words, how it is written, its target."""

    figure: str
    what: str
    form: str = "{:,.0f}"
    target: Target | None = None

    def told(self, value: float) -> str:
        """Return a value of the figure as words."""
        if self.target is ALWAYS:
            return "yes" if value == HELD else "no"
        return self.form.format(value)

    def bound(self) -> str:
        """Return the target as words, "" without one."""
        if self.target is ALWAYS:
            return "yes"
        return self.target.told(self.form) if self.target else ""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is measured as a whole and can be measured again without the others.

    `open` is told whether this is a trial and stands ready; what it gives measures once. `note` is
    the text below the table. `guests` says that it needs the environment of other programs.
    """

    name: str
    title: str
    open: Callable[[bool], AbstractContextManager[Run]]
    rows: tuple[Row, ...]
    note: str = ""
    guests: bool = False


def ready(measure: Callable[[bool], Figures]) -> Callable[[bool], AbstractContextManager[Run]]:
    """Return the `open` of a part that needs nothing made beforehand."""

    @contextmanager
    def stand(trial: bool) -> Iterator[Run]:
        yield lambda: measure(trial)

    return stand
