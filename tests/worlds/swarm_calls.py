"""Ticks on which a swarm's seats call as they are told: real ticks, with a debate by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import agent_framework
from agent_config import EXPERTS, DebateSettings
from agents.contracts import AgentReport, Confidence, DebateContext, Horizon, Winner
from agents.debate.deliberation import Deliberation
from tests.worlds import desks, remembering
from torra.clock import duration
from torra.config import Profile
from torra.evaluation.standing.track_record import TrackRecordOf
from torra.replay.rerun.edges_then import FrozenClock
from torra.store.connection import TickKey
from torra.tick.edges import TickDeps
from torra_trader import TickOutcome, run_tick

HORIZONS: Final[tuple[Horizon, ...]] = ("bars_4", "bars_16", "session", "days")
WORDS: Final[tuple[Confidence, ...]] = ("high", "medium", "low")
SIDES: Final[tuple[Winner, ...]] = ("LONG", "SHORT", "NONE")
LATER: Final = timedelta(seconds=1)
"""A desk that stands at the very close is warming up."""


def profile(**changes: Any) -> Profile:
    """Return the profile of a swarm whose agents count and that is told everything of its past."""
    told = {"mode": "swarm", "influence": "full", "standing": "on"}
    return remembering.profile("off", agents={**told, "call_policy": "always", **changes})


def reports(chance: random.Random) -> tuple[AgentReport, ...]:
    """Return what seats say that call at random."""
    told = [AgentReport("regime_reader", bias=chance.choice(("UP", "DOWN", "NEUTRAL")))]
    for name in EXPERTS:
        given = {"structure": chance.choice((None, 0.0, 0.2, -0.2))}
        told.append(AgentReport(name, given, chance.choice(WORDS), horizon=chance.choice(HORIZONS)))
    side, said = chance.choice(SIDES), round(chance.random(), 2)
    return (*told, AgentReport("judge", winner=side, win_share=said, horizon="bars_4"))


def debater(seed: int = 0) -> Callable[[DebateContext, DebateSettings], Deliberation]:
    """Return a debate that holds what `reports` draws for its tick."""

    def debate(context: DebateContext, config: DebateSettings) -> Deliberation:
        chance = random.Random(f"{seed} {context.timeframe} {context.as_of}")
        said = agent_framework.l1_only_record(context, config)
        return replace(said, reports=reports(chance))

    return debate


def run(
    store: Any,
    ticks: Sequence[TickKey],
    past: TrackRecordOf | None = None,
    settings: Profile | None = None,
    *,
    name: str = "rules",
    late: timedelta = LATER,
    **edges: Any,
) -> list[TickOutcome]:
    """Run ticks of BTCUSD, a second past their close; `name` is the provider's."""
    clock, outcomes = FrozenClock(desks.START), []
    told = TickDeps(
        database=store,
        window=remembering.window(),
        submit=None,
        provider=name,
        clock=clock,
        standing=past,
    )
    told = replace(told, **{"debater": debater(), **edges})
    for key in ticks:
        clock.set(key.bar_time + duration(key.timeframe) + late)
        outcomes.append(
            run_tick(
                desks.BTC, key.timeframe, key.bar_time, clock.monotonic(),
                profile=settings or profile(), edges=told,
            )
        )  # fmt: skip
    return outcomes
