"""What a kind of job is: a name, a check of what was asked, and the function that does the work.

Kinds are values that are handed in: this room imports none of them. The work is named by its dotted
name, because another process imports it. It gets the home, the parameters and a function that takes
progress; it returns a sentence and, where there is one, the name of what it made. A work that can
be stopped at any moment and begun again is a good one: a job may be cancelled, and it may be tried
twice. What it raises decides what becomes of the job: `Busy` and StoreUnavailable let it be tried
again, anything else ends it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import JsonValue

from torra.errors import MALFORMED
from torra.store.jobs import LIGHT

if TYPE_CHECKING:
    from instance_database import Database

LONGEST_TITLE: Final = 200
"""Characters of a job's title that are kept."""

FINAL: Final = ("done", "error", "cancelled")
"""States in which a job has ended: they never change again.

Of those that go on RETRYING is a job that ran and ended through no fault of its own: its desk is
gone, its process died, or a lock that it needs is held by somebody else.
"""

ATTEMPTS: Final = 2
"""How often a job is begun. A desk that is stopped in order gives its attempt back."""

Parameters = Mapping[str, JsonValue]


class Tell(Protocol):
    """Takes progress: what is done now, and how much of how much."""

    def __call__(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Pass it on; may be called as often as one likes."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What was asked, checked: `identity` says what makes it the same request as another one.

    `parameters` is what the work gets. What must not move while the job waits is fixed in them,
    such as the end of a period. `title` says in a few words what the job is about.
    """

    identity: Parameters
    parameters: Parameters
    title: str


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a work came to: one sentence, and the name of what it made, "" where it made nothing."""

    says: str
    made: str = ""


Work = Callable[[Path, Parameters, Tell], JobResult]


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job. `check` raises ConfigError that names what to mend; `work` is MODULE:NAME.

    `keep_up` is called now and then by the desk that does the jobs, and may queue one by itself. A
    `light` kind takes seconds and waits for no other: its jobs have a lane and a deadline.
    """

    name: str
    title: str
    check: Callable[[Path, Parameters], JobRequest]
    work: str
    keep_up: Callable[[Database], None] | None = None
    light: bool = False


def key_of(kind: JobKind, identity: Parameters) -> str:
    """Return the key by which two requests are one job; it says the lane, too."""
    text = json.dumps([kind.name, identity], sort_keys=True)
    return LIGHT * kind.light + hashlib.sha256(text.encode()).hexdigest()


def by_name(*kinds: JobKind) -> Mapping[str, JobKind]:
    """Return kinds by their names."""
    return {kind.name: kind for kind in kinds}


def parameters_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return with what a job was asked for; None where that cannot be read."""
    try:
        parameters = json.loads(row["parameters"])
    except MALFORMED:
        return None
    return parameters if isinstance(parameters, dict) else None
