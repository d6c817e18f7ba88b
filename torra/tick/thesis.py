"""Asks the trader for the thesis of an opening, where the debate's scores would make one.

What the store would find is known before the debate (OpeningContext, made as a tick is planned) and
weighed again with the scores that the debate came to: the same brain, the same position, the
same levels. Only where an opening would stand, and is not nothing, is the trader asked, once. Its
answer may decline that opening; it never makes, enlarges or turns one. Without an answer the same
trade goes without a thesis.

What closed with this tick and is stored before it counts by its L1 composite, as the debates of a
close are held at the same time: an opening that was not foreseen goes without a thesis and is
flagged `unforeseen`. Nothing here raises, reads a store or waits for anything but the trader.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import agent_framework
from agent_config import LEAST_CONSULT_SECONDS, AgentSettings
from agents.contracts import (
    SCORE_DECIMALS,
    DebateContext,
    Feature,
    Tier,
)
from agents.debate.debate import DebateState
from agents.debate.deliberation import Consulted, Deliberation, cost_of
from agents.registry import TRADER, Agent
from torra.config import Profile
from torra.store.tick_store import OpeningContext
from torra.tick.record import TickInputs
from torra.verdict import call_policy, sentiment_rules
from torra.verdict.order_levels import Levels, Side, levels
from torra.verdict.position_size import size
from torra.verdict.risk_engine import intent

NO_THESIS: Final = "no_thesis"
"""Beginning of the flag of an opening whose trader was not asked, or did not answer."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """An opening as the debate's scores would make it.

    `margin` is by how much the consensus is past its threshold.
    """

    side: Side
    levels: Levels
    margin: float


def predict_consensus(
    company: OpeningContext,
    inputs: TickInputs,
    counted: Deliberation,
) -> Foreseen | None:
    """Return the opening that a deliberation's scores would make; None where they make none."""
    profile = inputs.profile
    if profile.execution == "off":
        return None
    gated, ungated = (
        sentiment_rules.numbers(agent_framework.blend(inputs.l1, scores))
        for scores in (counted.scores, counted.ungated)
    )
    own = sentiment_rules.composites(inputs.l1, gated, ungated, inputs.ath_score, profile)
    latest = {**company.latest, inputs.timeframe: (inputs.as_of, own)}
    saved = sentiment_rules.weigh(own, latest, profile, inputs.as_of)
    outer = (saved.low_consensus, saved.high_consensus)
    latched = sentiment_rules.release_latch(company.latched, outer, profile.thresholds)
    stands = sentiment_rules.opening_stands(saved.verdict, *outer, profile.thresholds)
    wanted = intent(saved.verdict, company.position, profile.on_opposite)
    side = next((leg.side for leg in wanted.legs if leg.kind == "open"), None)
    if side is None or not stands or counted.ruling.vetoes(side) or side in latched:
        return None
    spec = profile.symbol(inputs.instance.symbol)
    prices = levels(side, inputs.close, inputs.atr, spec)
    share = counted.size_share(side)
    if not isinstance(prices, Levels) or not size(prices, spec, profile.risk, share):
        return None
    limits = profile.thresholds
    past = saved.consensus - limits.buy if side == "BUY" else -saved.consensus - limits.sell
    return Foreseen(side, prices, past)


def tier_of(
    settings: AgentSettings, opening: Foreseen, conviction: float, profile: Profile
) -> Tier:
    """Return the tier of models that the trader of an opening is asked of.

    `pivotal`: the desk could have kept the consensus from its threshold, so its words decide.
    """
    rule = settings.escalation
    if rule.when == "conviction":
        chief = conviction >= rule.at
    else:
        reach = call_policy.largest_shift(profile.sentiment_weights)
        chief = rule.when == "pivotal" and opening.margin < reach
    return "chief" if chief else "deep"


def consulted(
    deliberation: Deliberation,
    opening: Foreseen,
    context: DebateContext,
    settings: AgentSettings,
    profile: Profile,
    consult: Callable[..., DebateState],
    left: float,
) -> Deliberation:
    """Return a deliberation with what the trader said of an opening.

    `consult` is `consult_trader` with the tick's own provider, purse and clock; `left` are the
    seconds to its deadline.
    """
    if not deliberation.heard:
        return deliberation
    conviction = deliberation.conviction_for(opening.side)
    tier = tier_of(settings, opening, conviction, profile)
    shown = agent_framework.as_configured(context, settings)
    short = left < LEAST_CONSULT_SECONDS
    debate = consult(
        Agent(replace(TRADER.role, tier=tier), TRADER.analyze),
        # The evidence, the order, and what everybody but the gate said.
        replace(
            shown,
            features={**shown.features, **_order(shown, opening, conviction)},
            reports=tuple(report for report in deliberation.reports if report.ruling is None),
        ),
        refused="deadline" if short else "",
    )
    trader = TRADER.role.id
    report, failure = debate.report_of(trader), debate.failures.get(trader, "")
    flag = (f"{NO_THESIS}:{failure}",) if failure else ()
    calls = (*deliberation.calls, *debate.records())
    ms = math.fsum(stage["ms"] for stage in debate.stages)
    return replace(
        deliberation,
        consulted=Consulted(trader, opening.side, tier, conviction, report, failure),
        calls=calls,
        stages=(*deliberation.stages, *debate.stages),
        flags=tuple(
            dict.fromkeys((*deliberation.flags, *debate.flags, *debate.call_flags(), *flag))
        ),
        cost_usd=cost_of(calls),
        elapsed_ms=round(deliberation.elapsed_ms + ms, 3),
    )


def _order(context: DebateContext, opening: Foreseen, conviction: float) -> dict[str, Feature]:
    """Return the order as evidence: what code has set and nobody may change."""
    levels, close = opening.levels, context.features.get("technical.close")
    decimals = None if close is None else close.decimals
    risk = abs(levels.entry - levels.stop)
    rows: tuple[tuple[str, float, str, int | None], ...] = (
        ("entry", levels.entry, "price", decimals),
        ("stop", levels.stop, "price", decimals),
        ("target", levels.target, "price", decimals),
        ("stop_atr", risk / levels.atr if levels.atr else 0.0, "ATR", 2),
        ("reward_r", abs(levels.target - levels.entry) / risk if risk else 0.0, "R", 2),
        ("conviction", conviction, "", 2),
    )
    features = [Feature("order.side", opening.side, "", context.as_of)]
    features += [
        Feature(f"order.{name}", round(value, SCORE_DECIMALS), unit, context.as_of, decimals=shown)
        for name, value, unit, shown in rows
    ]
    return {feature.id: feature for feature in features}
