"""Who vetoed a tick: the gate, or a swarm's judge or risk officer.

The reason of an action is the same whoever vetoed. Who it was stands in the ruling of each tick, so
that a list of one's vetoes looks through vetoed ticks, a bounded number at a time. Nothing is
written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from torra.dashboard.record import vetoes
from torra.store import tick_listing
from torra.store.tick_listing import Place, TickKind
from torra.words.deny_reasons import DenyReason

if TYPE_CHECKING:
    from instance_database import Database

AT_ONCE: Final = 50
"""Ticks that are read and looked at together."""

SEARCHED: Final = 1_000
"""Vetoed ticks that are looked through for one page; the next page goes on behind them."""

SWARM: Final = "AGENT_SWARM"
SWARMS: Final = frozenset((SWARM, "AGENT_PARTIAL", "AGENT_CUSTOM"))
"""Sources of ticks on which a swarm's judge or risk officer may have vetoed."""

WHO: Final[Mapping[str, str]] = {"judge": "judge", "officer": "risk officer"}
"""Who of a swarm vetoes, by the word of a list that is narrowed to it."""

Row = Mapping[str, Any]


def may_be_of_a_swarm(kind: TickKind) -> bool:
    """Tell whether a judge or an officer may have vetoed ticks of a kind."""
    return kind.reason == DenyReason.GATE_VETO and kind.source in SWARMS


def refusals(database: Database, rows: Sequence[Row]) -> Mapping[int, tuple[str, str]]:
    """Return by number who vetoed, and why in words, of those of some ticks that a veto stopped."""
    stopped = {row["sentiment_id"]: row for row in rows if row["reason"] == DenyReason.GATE_VETO}
    gates = tick_listing.gates_of(database, stopped) if stopped else {}
    return {
        number: vetoes.refused(gate, str(stopped[number]["verdict"]))
        for number, gate in gates.items()
    }


def vetoed_by(database: Database, who: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those of some ticks that somebody vetoed; all where `who` is ""."""
    if not who:
        return [*rows]
    whose = refusals(database, rows)
    return [row for row in rows if whose.get(row["sentiment_id"], ("", ""))[0] == who]


def searched(
    database: Database, who: str, kinds: Collection[int], begin: str, before: Place, limit: int
) -> tuple[list[dict[str, Any]], Place | None]:
    """Return ticks of some kinds that somebody vetoed, newest first, and where to go on."""
    ticks: list[dict[str, Any]] = []
    every = tick_listing.every_tick_of_kinds(
        database, kinds, begin=begin, before=before, at_once=AT_ONCE
    )
    for rows in _parts(every):
        ticks += vetoed_by(database, who, rows)
        if len(ticks) > limit:
            return ticks[:limit], place_of(ticks[limit - 1])
        before = place_of(rows[-1])
    return ticks, before if next(every, None) else None


def place_of(row: Row) -> Place:
    """Return where a list goes on behind a tick."""
    return str(row["close_time"]), int(row["sentiment_id"])


def _parts(every: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for _ in range(0, SEARCHED, AT_ONCE):
        if not (rows := list(islice(every, AT_ONCE))):
            return
        yield rows
