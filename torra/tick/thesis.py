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
from typing import Any, Final

import agent_framework
from agent_config import LEAST_CONSULT_SECONDS, AgentSettings, DebateSettings
from agents.contracts import (
    SCORE_DECIMALS,
    DebateContext,
    Feature,
    Reserve,
    Submit,
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


@dataclass(frozen=True, slots=True)
class TraderAccess:
    """How the trader is reached: its provider, leave to spend, and the clock with its end."""

    submit: Submit
    reserve: Reserve | None
    on_event: Callable[[str, dict[str, Any]], None] | None
    monotonic: Callable[[], float]
    deadline: float


def predict_consensus(
    company: OpeningContext,
    inputs: TickInputs,
    counted: Deliberation,
    profile: Profile,
) -> Foreseen | None:
    """Return the opening that a deliberation's scores would make; None where they make none."""
    if profile.execution == "off":
        return None
    gated, ungated = (
        {name: chart["score"] for name, chart in told.items() if name in inputs.l1}
        for told in (
            agent_framework.blend(inputs.l1, counted.scores),
            agent_framework.blend(inputs.l1, counted.ungated),
        )
    )
    low, high = sentiment_rules.low_high(gated, ungated)
    own = sentiment_rules.composites((inputs.l1, low, high, gated), inputs.ath_score, profile)
    latest = {**company.latest, inputs.timeframe: (inputs.as_of, own)}
    saved = sentiment_rules.weigh(own, latest, profile, inputs.as_of)
    outer = (saved.low_consensus, saved.high_consensus)
    before = {name: name in company.latched for name in sentiment_rules.SIDES}
    latched = sentiment_rules.release_latch(before, outer, profile.thresholds)
    stands = sentiment_rules.opening_stands(saved.verdict, *outer, profile.thresholds)
    wanted = intent(saved.verdict, company.held, profile.on_opposite)
    side = next((leg.side for leg in wanted.legs if leg.kind == "open"), None)
    if side is None or not stands or counted.ruling.vetoes(side) or latched.get(side, False):
        return None
    spec = profile.symbol(inputs.instance.symbol)
    found = levels(side, inputs.close, inputs.atr, spec)
    share = counted.size_share(side)
    if not isinstance(found, Levels) or not size(found, spec, profile.risk, share):
        return None
    past = {
        "BUY": saved.consensus - profile.thresholds.buy,
        "SELL": -saved.consensus - profile.thresholds.sell,
    }
    return Foreseen(side, found, past[side])


def tier_of(
    settings: AgentSettings, opening: Foreseen, conviction: float, profile: Profile
) -> Tier:
    """Return the tier of models that the trader of an opening is asked of.

    `pivotal`: the desk could have kept the consensus from its threshold, so its words decide.
    """
    rule = settings.escalation
    high = {
        "conviction": conviction >= rule.at,
        "pivotal": opening.margin < call_policy.largest_shift(profile.sentiment_weights),
        "off": False,
    }
    return "chief" if high[rule.when] else "deep"


def consulted(
    spoken: Deliberation,
    opening: Foreseen,
    context: DebateContext,
    config: DebateSettings,
    profile: Profile,
    line: TraderAccess,
) -> Deliberation:
    """Return a deliberation with what the trader said of an opening."""
    if not spoken.heard:
        return spoken
    side = opening.side
    conviction = spoken.conviction_for(side)
    tier = tier_of(config.agents, opening, conviction, profile)
    asked = Consulted(TRADER.role.id, side, tier, conviction)
    short = line.deadline - line.monotonic() < LEAST_CONSULT_SECONDS
    told = agent_framework.consult_trader(
        Agent(replace(TRADER.role, tier=tier), TRADER.analyze),
        _shown(agent_framework.as_configured(context, config.agents), spoken, opening, conviction),
        config,
        line.submit,
        monotonic=line.monotonic,
        deadline=line.deadline,
        reserve=line.reserve,
        on_event=line.on_event,
        refused="deadline" if short else "",
    )
    report, failure = told.report_of("trader"), told.failures.get(asked.agent, "")
    return _with(spoken, replace(asked, report=report, failure=failure), told)


def _shown(
    context: DebateContext, spoken: Deliberation, opening: Foreseen, conviction: float
) -> DebateContext:
    """Return what the trader is shown: evidence, the order, what everybody but the gate said."""
    reports = tuple(one for one in spoken.reports if one.ruling is None)
    features = {**context.features, **_order(context, opening, conviction)}
    return replace(context, features=features, reports=reports)


def _order(context: DebateContext, opening: Foreseen, conviction: float) -> dict[str, Feature]:
    """Return the order as evidence: what code has set and nobody may change."""
    found, close = opening.levels, context.features.get("technical.close")
    decimals = None if close is None else close.decimals
    risk = abs(found.entry - found.stop)
    values: dict[str, tuple[float | str, str, int | None]] = {
        "order.side": (opening.side, "", None),
        "order.entry": (found.entry, "price", decimals),
        "order.stop": (found.stop, "price", decimals),
        "order.target": (found.target, "price", decimals),
        "order.stop_atr": (risk / found.atr if found.atr else 0.0, "ATR", 2),
        "order.reward_r": (abs(found.target - found.entry) / risk if risk else 0.0, "R", 2),
        "order.conviction": (conviction, "", 2),
    }
    return {
        name: Feature(
            name,
            value if isinstance(value, str) else round(value, SCORE_DECIMALS),
            unit,
            context.as_of,
            decimals=shown,
        )
        for name, (value, unit, shown) in values.items()
    }


def _with(spoken: Deliberation, asked: Consulted, told: DebateState) -> Deliberation:
    flag = (f"{NO_THESIS}:{asked.failure}",) if asked.failure else ()
    calls = (*spoken.calls, *told.records())
    ms = math.fsum(stage["ms"] for stage in told.stages)
    return replace(
        spoken,
        consulted=asked,
        calls=calls,
        stages=(*spoken.stages, *told.stages),
        flags=tuple(dict.fromkeys((*spoken.flags, *told.flags, *told.call_flags(), *flag))),
        cost_usd=cost_of(calls),
        elapsed_ms=round(spoken.elapsed_ms + ms, 3),
    )
