"""A notice, and what brings it to a person: the contract of every service.

A service is one way out: one address, one telephone, one program. It may be slow, dead or lying:
whoever calls it has a time limit and its own memory of what went out. It raises NoticeRefused with
a word of its own choosing that holds no address and no token; any other exception is known by its
type alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from torra.config import NoticeSettings
from torra.errors import TorraError

Level = Literal["alarm", "decision", "trade", "note"]
"""How much it matters: trading is at risk; a person is asked; money was moved; good to know."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that is told, once.

    `key` is unique. `title` and `text` are plain text, of one line each. `instance` is "" where it
    concerns the whole desk. `desk_time` is the desk's time, `at` real time; both are aware.
    """

    key: str
    kind: str
    level: Level
    title: str
    text: str
    instance: str
    desk_time: datetime
    at: datetime


class NoticeRefused(TorraError):
    """A service did not take a notice; the message is a word for a list, without an address."""


class NoticeService(Protocol):
    """One way to a person."""

    @property
    def name(self) -> str:
        """What it is called in lists: a number and a word, never its address."""
        ...

    def send(self, notice: Notice) -> None:
        """Bring a notice; returning means that it was taken. Raises NoticeRefused."""
        ...


@dataclass(frozen=True, slots=True)
class NoticePlace:
    """What services are opened with: addresses and keys come from the environment alone."""

    environment: Mapping[str, str]
    home: Path
    settings: NoticeSettings


OpenServices = Callable[[NoticePlace], Sequence[NoticeService]]
"""Returns the ways out of one kind, one for each address, none where none is set. ConfigError."""
