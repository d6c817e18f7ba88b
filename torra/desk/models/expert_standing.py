"""How often each seat of a swarm was right, by regime, and the weight of its word: a table.

For the page Models and `torra models`. The figures are those that ticks are told
(torra.desk.memory.experts_past): of a stream, of the provider that answers now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from agent_config import EXPERTS, tabled_trust
from agents.registry import AGENTS
from instance_database import Database
from torra.config import ROOT, Instance, Profile
from torra.desk.costs import Row
from torra.desk.memory.experts_past import ExpertsPast
from torra.evaluation.standing.past_calls import LEAST, SEATS
from torra.feeds.sample import SampleFeed
from torra.market.regime import REGIMES

COUNTING: Final = 30.0
"""Longest wait for one stream to be counted, in seconds."""

NOTHING: Final = (
    f"no call of the swarm has come due yet; a share is told from {LEAST} calls of a regime on"
)


def rows(past: ExpertsPast) -> list[Row]:
    """Return the seats of every stream that is counted, where a call has come due.

    `calls` came due in a regime, `hit_share` of them were right: None below LEAST calls. `tabled`
    is an expert's weight, None of another seat.
    """
    return [
        {
            "instance": instance, "timeframe": book.timeframe, "regime": regime, "agent": agent,
            "calls": hits.calls, "hit_share": hits.share,
            "tabled": tabled_trust(book.timeframe, regime)[agent] if agent in EXPERTS else None,
        }
        for instance, book in past.books()
        for regime in REGIMES
        for agent in SEATS
        if (hits := book.hits(agent, regime)).calls
    ]  # fmt: skip


def counted(
    database: Database,
    instances: Iterable[Instance],
    profiles: Mapping[str, Profile],
    now: datetime,
) -> ExpertsPast:
    """Count the journal of a desk that does not run here."""
    past = ExpertsPast(database)
    for item in instances:
        if profile := profiles.get(item.profile):
            feed = SampleFeed(ROOT / "sample_data") if item.feed == "sample" else None
            past.prepare([(item, profile, profile.agents.provider, feed)], now, COUNTING)
    return past


def line(row: Row) -> str:
    """Return a seat in one regime as a sentence."""
    place = f"{row['instance']} {row['timeframe']}, {row['regime'].replace('_', ' ')}"
    text = f"{place}: {AGENTS[row['agent']].role.title} {right(row)} of {row['calls']:,} calls"
    return text if row["tabled"] is None else f"{text}, weight {weight(row)}"


def right(row: Row) -> str:
    """Return the share that was right, for people."""
    share = row["hit_share"]
    return (
        f"too few to tell (from {LEAST} on)," if share is None else f"right on {100 * share:.1f} %"
    )


def weight(row: Row) -> str:
    """Return the weight of an expert, for people; "" of another seat."""
    return "" if row["tabled"] is None else f"{row['tabled']:.2f}"
