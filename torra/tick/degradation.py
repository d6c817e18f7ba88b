"""The degradation levels of a profile: on which desk its next tick runs, by what one may cost.

The levels are the configured desk, the desks that its mode names below it, and nobody. The account
of a profile's spending (torra.tick.spending), which its ticks share, takes the highest one whose
worst case fits under what is left of the ceiling. When the database cannot be used, nobody is
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent_config import VENDORS, AgentSettings, is_plug_in, route
from agents.contracts import CallBound, Role, SourceType, Tier
from agents.debate.debate import bound_of
from agents.registry import SCORER, TRADER, Agent, seated
from torra.providers.prices import PriceList

HYSTERESIS: Final = 2.0
"""A profile climbs to a level when what is left of the hour is this many times its worst case, or
halfway from it to the ceiling where that is less.
"""

CUSTOM: Final = "custom"
"""Name of the highest level of a profile that names its agents itself."""

UNASKED: Final = SourceType.L1_ONLY.value
"""Name of the lowest level: nobody is asked."""

Local = Callable[[str], bool]
"""Tells of a vendor whether its address is a server of one's own, which costs nothing."""


def worst_case(prices: PriceList, settings: AgentSettings, local: Local, bound: CallBound) -> float:
    """Return the most that one request within a bound can cost, whichever vendor answers it."""
    first = route(bound.model, settings.provider)
    # Any of those who stand in may answer, so the dearest of their models is reserved.
    spares = settings.fallbacks(bound.tier) if first[0] in VENDORS else ()
    return max(worst_of(prices, local, bound, *each) for each in (first, *spares))


def worst_of(prices: PriceList, local: Local, bound: CallBound, vendor: str, model: str) -> float:
    """Return the most that one request within a bound can cost of one model."""
    return prices.worst_case(
        vendor,
        model,
        prompt_bytes=bound.prompt_bytes,
        output_tokens=bound.output_tokens,
        picture=bound.picture,
        local=local(vendor) if vendor in VENDORS else not is_plug_in(vendor),
    )


@dataclass(frozen=True, slots=True)
class DegradationLevel:
    """One step of the ladder: the settings of a tick, and whether agents are asked at all.

    `worst_usd` is the most that a tick of it can cost, where that is known.
    """

    settings: AgentSettings
    name: str
    calls_models: bool
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
    traders = [replace(TRADER.role, tier=tier) for tier in consulting_tiers(settings)]
    consulted = max(map(most, traders), default=0.0)
    return sum(totals[:-1]) + max(totals[-1], most(SCORER)) + consulted


def consulting_tiers(settings: AgentSettings) -> tuple[Tier, ...]:
    """Return the tiers of models that the trader of a desk may be asked of; () without one."""
    if not settings.consulted():
        return ()
    return ("deep",) if settings.escalation.when == "off" else ("deep", "chief")


def ladder(settings: AgentSettings) -> list[DegradationLevel]:
    """Return the levels of a desk, the dearest first and nobody last."""
    levels = [
        DegradationLevel(each, degradation_level_name(each), calls_models=True)
        for each in settings.ladder()
    ]
    return [*levels, DegradationLevel(settings, UNASKED, calls_models=False)]


def to_climb(cost: float, ceiling: float, spent: float) -> float:
    """Return what must be left to climb to a level; halfway to the ceiling is always enough."""
    return min(HYSTERESIS * cost, (cost + ceiling) / 2.0) if spent else cost


def degradation_level_name(settings: AgentSettings) -> str:
    """Return what the level of a desk is called: its mode, or custom."""
    return CUSTOM if settings.active_agents else settings.mode


def choose(
    costs: Sequence[float],
    levels: Sequence[DegradationLevel],
    current: str | None,
    spent: float,
    ceiling: float,
) -> int:
    """Return the number of the level to run on, 0 the highest; `costs` are the worst cases."""
    names = [each.name for each in levels]
    stood = names.index(current) if current in names else 0

    def highest(needed: Callable[[float], float]) -> int:
        left = ceiling - spent
        return next((at for at, cost in enumerate(costs) if needed(cost) <= left), len(costs) - 1)

    paid = highest(lambda cost: cost)
    # 0 is the highest level: stepping down needs no hysteresis, only climbing does.
    if paid >= stood:
        return paid
    return min(stood, highest(lambda cost: to_climb(cost, ceiling, spent)))
