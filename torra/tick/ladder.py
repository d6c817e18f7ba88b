"""The ladder of a profile: on which desk its next tick runs, given what is left of the hour.

The levels are the configured desk, the desks that its mode names below it, and nobody. The account
of a profile's spending, which its ticks share, takes the highest one whose worst case fits under
what is left of the ceiling. Booking a tick's calls is torra.tick.spending's part. When the database
cannot be used, nobody is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from agent_config import AgentSettings
from agents.contracts import Role, SourceType, Submit, Tier
from agents.debate.asking import bound_of
from agents.registry import SCORER, TRADER, Agent, seated
from instance_database import Database
from torra.errors import StoreUnavailable
from torra.providers.prices import PriceList
from torra.store.connection import Keyed
from torra.tick.spending import HOUR, LateRows, Local, Purse, worst_case

RUNG_WAIT: Final = 0.3

HYSTERESIS: Final = 2.0
"""A profile climbs to a level when what is left of the hour is this many times its worst case, or
halfway from it to the ceiling where that is less.
"""

CUSTOM: Final = "custom"
"""Name of the highest level of a profile that names its agents itself."""

UNASKED: Final = SourceType.L1_ONLY.value
"""Name of the lowest level: nobody is asked."""


log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class DegradationLevel:
    """One step of the ladder: the settings of a tick, and whether agents are asked at all.

    `worst_usd` is the most that a tick of it can cost, where that is known.
    """

    settings: AgentSettings
    name: str
    asked: bool
    worst_usd: float = 0.0


def tick_worst_case(
    prices: PriceList,
    settings: AgentSettings,
    local: Local,
    agents: Mapping[str, Agent] | None = None,
) -> float:
    """Return the most that one tick of a desk can cost in USD, every retry and the fallback in."""

    def most(role: Role) -> float:
        bound = bound_of(settings, role)
        return bound.requests * worst_case(prices, settings, local, bound)

    roles, row = [seat.role for seat in seated(settings, agents)], settings.row()
    totals = [
        sum(
            (settings.most_rounds() if stage.debates else 1) * most(role)
            for role in roles
            if role.kind in stage.kinds
        )
        for stage in row.stages
    ]
    # the last stage and the fallback exclude each other; who is consulted is asked of one tier
    asked = [replace(TRADER.role, tier=tier) for tier in consulting_tiers(settings)]
    consulted = max(map(most, asked), default=0.0)
    return sum(totals[:-1]) + max(totals[-1], most(SCORER)) + consulted


def consulting_tiers(settings: AgentSettings) -> tuple[Tier, ...]:
    """Return the tiers of models that the trader of a desk may be asked of; () without one."""
    if not settings.consulted():
        return ()
    return ("deep",) if settings.escalation.when == "off" else ("deep", "chief")


def ladder(settings: AgentSettings) -> list[DegradationLevel]:
    """Return the levels of a desk, the dearest first and nobody last."""
    levels = [
        DegradationLevel(each, degradation_level_name(each), asked=True)
        for each in settings.ladder()
    ]
    return [*levels, DegradationLevel(settings, UNASKED, asked=False)]


def to_climb(cost: float, ceiling: float, spent: float) -> float:
    """Return what must be left to climb to a level; halfway to the ceiling is always enough."""
    return min(HYSTERESIS * cost, (cost + ceiling) / 2.0) if spent else cost


def degradation_level_name(settings: AgentSettings) -> str:
    """Return what the level of a desk is called: its mode, or custom."""
    return CUSTOM if settings.active_agents else settings.mode


def _choose(
    costs: Sequence[float],
    levels: Sequence[DegradationLevel],
    held: str | None,
    spent: float,
    ceiling: float,
) -> int:
    """Return the number of the level to run on, 0 the highest; `costs` are the worst cases."""
    names = [each.name for each in levels]
    stood = names.index(held) if held in names else 0
    left = ceiling - spent
    highest = next((at for at, cost in enumerate(costs) if cost <= left), len(costs) - 1)
    # 0 is the highest level: stepping down needs no hysteresis, only climbing does.
    if highest >= stood:
        return highest
    climbed = next(
        (at for at, cost in enumerate(costs) if to_climb(cost, ceiling, spent) <= left),
        stood,
    )
    return min(stood, climbed)


@dataclass(frozen=True, slots=True)
class SpendingAccount:
    """What the ticks of one profile share: the ledger, the prices and the ladder.

    `most` is what they may cost in all, over every hour there was, in USD; None: no such sum.
    """

    database: Database
    prices: PriceList
    profile: str
    local: Local
    now: Callable[[], datetime]
    late: LateRows = field(default_factory=LateRows)
    most: float | None = None

    def degradation_level(
        self,
        settings: AgentSettings,
        agents: Mapping[str, Agent] | None = None,
        *,
        beside: float = 0.0,
    ) -> DegradationLevel:
        """Return the level of the ladder on which the profile's next tick runs, and keep it.

        The levels are the configured desk, the desks that its mode names below it, and nobody. A
        profile steps down at once to the highest level whose worst case fits under what is left of
        the sliding hour. It climbs to one that fits HYSTERESIS times, or fits an hour in which
        nothing was spent. Of what is left `beside` is promised to ticks that closed with this one,
        in USD: this tick steps down for it, but what is only promised is not kept against later
        ones. Without the database nobody is asked. Raises ValueError for a desk that cannot be
        seated.
        """
        levels, database = ladder(settings), self.database
        costs = [
            tick_worst_case(self.prices, each.settings, self.local, agents)
            for each in levels
            if each.asked
        ]
        # A desk that costs nothing has no ladder, and needs no database.
        if not costs[0]:
            return levels[0]
        ceiling = settings.max_api_cost_per_hour
        try:
            held = database.degradation_level(self.profile)
            spent = database.spent(self.profile, self.now() - HOUR)
            kept = _choose([*costs, 0.0], levels, held, spent, ceiling)
            if levels[kept].name != (held or levels[0].name):
                with database.transaction(RUNG_WAIT):
                    database.set_degradation_level(self.profile, levels[kept].name)
        # Without the ledger the ceiling is not known, so nothing is spent.
        except StoreUnavailable:
            log.exception("ledger: nobody is asked for profile %s", self.profile)
            return levels[-1]
        fits = (at for at, cost in enumerate([*costs, 0.0]) if spent + beside + cost <= ceiling)
        chosen = max(kept, next(fits, len(costs)))
        return replace(levels[chosen], worst_usd=[*costs, 0.0][chosen])

    def purse(
        self,
        key: Keyed,
        settings: AgentSettings,
        submit: Submit,
        *,
        monotonic: Callable[[], float],
        deadline: float,
    ) -> Purse:
        """Open the purse of a tick."""
        return Purse(self, key, settings, submit, monotonic=monotonic, deadline=deadline)
