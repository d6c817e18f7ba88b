"""How often each seat of a swarm was right, by regime, and the weight of its word: a table.

For the page Models and `torra models`. The figures are those that ticks are told
(torra.desk.memory.experts_past): of a stream, of the provider that answers now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, TypedDict

from agent_config import EXPERTS, tabled_trust
from agents.registry import AGENTS
from instance_database import Database
from torra.config import ROOT, Instance, Profile
from torra.desk.memory.experts_past import ExpertsPast
from torra.evaluation.standing.past_calls import LEAST, SEATS, HitRates
from torra.evaluation.standing.track_record import wanted
from torra.feeds.sample import SampleFeed
from torra.market.regime import REGIMES

COUNTING: Final = 30.0
"""Longest wait for one stream to be counted, in seconds."""

NOTHING: Final = (
    f"no call of the swarm has come due yet; a share is told from {LEAST} calls of a regime on"
)


class SeatRow(TypedDict):
    """A seat in one regime of a stream: calls that came due, the share that was right, its weight.

    `hit_share` is None below LEAST calls; `tabled` is an expert's weight, None of another seat.
    """

    instance: str
    timeframe: str
    regime: str
    agent: str
    calls: int
    hit_share: float | None
    tabled: float | None


def rows(past: ExpertsPast) -> list[SeatRow]:
    """Return the seats of every stream that is counted, where a call has come due."""
    return [row for instance, book in past.books() for row in _rows(instance, book)]


def counted(
    database: Database,
    instances: Iterable[Instance],
    profiles: Mapping[str, Profile],
    now: datetime,
) -> list[SeatRow]:
    """Return the same of a desk that does not run here: its journal is counted first."""
    past = ExpertsPast(database)
    for one in instances:
        profile = profiles.get(one.profile)
        if profile is not None:
            feed = SampleFeed(ROOT / "sample_data") if one.feed == "sample" else None
            past.prepare([(one, profile, profile.agents.provider, feed)], now, COUNTING)
    return rows(past)


def asked_for(profiles: Iterable[Profile]) -> bool:
    """Tell whether the ticks of any profile are told of their seats' past."""
    return any(wanted(profile.agents) for profile in profiles)


def line(row: SeatRow) -> str:
    """Return a seat in one regime as a sentence."""
    place = f"{row['instance']} {row['timeframe']}, {row['regime'].replace('_', ' ')}"
    said = f"{place}: {AGENTS[row['agent']].role.title} {right(row)} of {row['calls']:,} calls"
    return said if row["tabled"] is None else f"{said}, weight {weight(row)}"


def right(row: SeatRow) -> str:
    """Return the share that was right, for people."""
    share = row["hit_share"]
    return (
        f"too few to tell (from {LEAST} on)," if share is None else f"right on {100 * share:.1f} %"
    )


def weight(row: SeatRow) -> str:
    """Return the weight of an expert, for people; "" of another seat."""
    return "" if row["tabled"] is None else f"{row['tabled']:.2f}"


def _rows(instance: str, book: HitRates) -> Iterable[SeatRow]:
    for regime in REGIMES:
        for agent in SEATS:
            found = book.hits(agent, regime)
            if found.calls:
                expert = agent in EXPERTS
                yield {
                    "instance": instance,
                    "timeframe": book.timeframe,
                    "regime": regime,
                    "agent": agent,
                    "calls": found.calls,
                    "hit_share": found.share,
                    "tabled": tabled_trust(book.timeframe, regime)[agent] if expert else None,
                }
