"""How the newest calls to each model went: the one reading for every teller of it.

`torra doctor`, `torra models`, the pages and the notices read this. Judged are the models that some
settings may ask at a vendor or a plug-in, by what the ticks and the reviewer asked of them: a test
that a person makes is no call, for its question is too small to show what an agent would get. Of a
call that a spare answered only the spare is known. A request that was never sent is no call.

A model fails from IN_A_ROW calls in a row that brought nothing usable, or from SHARE of its newest
NEWEST on, until IN_A_ROW in a row are usable. Pure functions.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent_config import AgentSettings, may_cost, route
from torra.providers.vendors.table import FORM_IN_USE, FORMS

NEWEST: Final = 20
"""Newest calls of a model that are counted."""

IN_A_ROW: Final = 5
SHARE: Final = 0.8

USABLE: Final = frozenset(("ok", "the trader abstains"))
"""Status of a usable call, and the detail of a refusal that is one (agents.debate.replies)."""

UNUSABLE: Final = frozenset(("garbage", "refused", "wrong_symbol"))
"""Statuses of a call whose answer came and could not be used."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelHealth:
    """How the newest calls to a model went.

    `failed` counts those without any answer by their status. `last_usable` is the time of the
    newest usable call, None without one, `median_ms` how long the usable ones took. `well` says
    that the newest IN_A_ROW were usable. `cause` is the newest call with the commonest trouble,
    None where nothing went wrong. `form` is that in which a server is asked because replies to the
    first could not be used, "" elsewhere.
    """

    vendor: str
    model: str
    usable: int = 0
    unusable: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    last_usable: str | None = None
    median_ms: float | None = None
    failing: bool = False
    well: bool = False
    cause: Row | None = None
    form: str = ""

    @property
    def name(self) -> str:
        """Vendor and model."""
        return f"{self.vendor} {self.model}"

    @property
    def calls(self) -> int:
        """How many calls were counted."""
        return self.usable + self.unusable + sum(self.failed.values())


def health(
    desks: Iterable[AgentSettings], read: Callable[[Collection[str]], Sequence[Row]] | None
) -> tuple[ModelHealth, ...]:
    """Return how each model that some desks may ask does, by vendor, also without any call.

    `read` returns the calls to judge of some models (torra.store.ledger.newest_calls); None
    where there are none.
    """
    routes = sorted({place for desk in desks for place in desk.routes() if may_cost(place[0])})
    vendors = {model: vendor for vendor, model in routes}
    calls = {place: list[Row]() for place in routes}
    # A call without an answer has no vendor, and the model's name as the settings write it.
    names = [name for vendor, model in routes for name in (model, f"{vendor}:{model}")]
    rows = read(names) if read and names else ()
    # Those of one tick were stored at once: their numbers have the order in which they were made.
    for row in sorted(rows, key=lambda row: (row["at"], row["number"])):
        place = route(row["model"], row["provider"] or vendors.get(row["model"], ""))
        if place in calls:
            calls[place].append(row)
    return tuple(_health_of(*place, rows) for place, rows in calls.items())


def _health_of(vendor: str, model: str, rows: Sequence[Row]) -> ModelHealth:
    """Return how a model does, by its calls, oldest first."""
    usable = [not USABLE.isdisjoint((row["status"], row["detail"])) for row in rows]
    newest = [*zip(rows, usable, strict=True)][: -NEWEST - 1 : -1]
    good = [row for row, is_usable in newest if is_usable]
    bad = [row for row, is_usable in newest if not is_usable]
    counts = Counter(row["status"] for row in bad)
    # A detail may be a stranger's word.
    form = rows[-1]["detail"].rpartition(FORM_IN_USE)[2] if rows else ""
    return ModelHealth(
        vendor,
        model,
        usable=len(good),
        unusable=sum(counts[status] for status in UNUSABLE),
        failed={status: counts[status] for status in counts.keys() - UNUSABLE},
        last_usable=next((rows[at]["at"] for at in reversed(range(len(rows))) if usable[at]), None),
        median_ms=statistics.median(row["elapsed_ms"] for row in good) if good else None,
        failing=_is_failing(usable),
        well=len(rows) >= IN_A_ROW and all(usable[-IN_A_ROW:]),
        # Of calls with the same trouble the first is the newest.
        cause=max(bad, key=lambda row: counts[row["status"]], default=None),
        form=form if form in FORMS else "",
    )


def _is_failing(usable: Sequence[bool]) -> bool:
    """Tell whether a model fails after some calls, oldest first: it keeps failing until well."""
    failing = False
    for end in range(IN_A_ROW, len(usable) + 1):
        newest, row = usable[max(0, end - NEWEST) : end], usable[end - IN_A_ROW : end]
        few = len(newest) == NEWEST and newest.count(False) >= SHARE * NEWEST
        failing = few or not any(row) or (failing and not all(row))
    return failing
