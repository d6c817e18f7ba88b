"""The prompts of every mode on report tick with all evidence, as its desk hands it to each seat.

`golden_files` are those that tests/golden/bytes_debates.py keeps.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

from agent_config import MODES
from agents.contracts import (
    SIDES,
    AgentReport,
    DebateContext,
    Evidence,
    Feature,
    Horizon,
    Prompt,
    Request,
)
from agents.evidence import with_scores
from agents.features import PRICE, ROWS, ids_of
from agents.registry import AGENTS, SCORER, TRADER
from agents.risk_gate import as_features, rules
from scoring_rubric import build_interpretive_prompt
from tests.doubles.scripted import (
    FULL_FEATURES,
    SWARM_FEATURES,
    Scripted,
    a_report,
    context,
    debate,
    settings,
)

ROLES = (*MODES["full"].seats, "chart_scorer")

TECHNICAL = a_report(value=0.12, confidence="medium")
NEWS = a_report(
    "news",
    0.05,
    confidence="low",
    claim="Rates unchanged.",
    evidence=(Evidence("news.item_score.1", 0.5), Evidence("news.score", 0.25)),
    ordinals={"relevance": 2, "sentiment": 1, "price_impact": -1},
)
MOMENTUM = a_report("momentum", 0.2, adjustments={"momentum": 0.2, "structure": None})
ANALYSTS = (TECHNICAL, NEWS, MOMENTUM, AgentReport.abstain("sentiment", "no sentiment evidence"))
BEAR = a_report("bear_researcher", -0.1, claim="Lower highs.", flags=("ungrounded", "mine"))
BULL = a_report("bull_researcher", 0.1, claim="Higher lows.", points_for=())


KINDS = {
    **{
        name: (ROWS[name].unit, 4 if ROWS[name].unit == PRICE else ROWS[name].decimals)
        for name in ids_of("technical")
        if name != "technical.gap_pct"
    },
    "component.mo_rsi": ("", 4),
    "technical.volatility_percentile": ("", None),
    "forecast.drift_pct": ("%", 4),
    "market.spread_atr": ("ATR", 4),
    "market.bar_age": ("bars", 2),
    "memory.consensus_last": ("", 4),
    "events.to_next_min": ("min", 2),
    "news.item_age_h.1": ("h", 2),
    "sentiment.up_bars": ("of 1", 4),
    "fundamentals.pe": ("x", 2),
    "fundamentals.revenue_growth_pct": ("%", 2),
}


def at_the_desk(**changes: Any) -> DebateContext:
    known = {**FULL_FEATURES, "fundamentals.pe": 21.5, "fundamentals.revenue_growth_pct": -3.25}
    fields = {"asset": "gold", **changes, "features": known | changes.get("features", {})}
    about = context(**fields)
    features = {
        name: feature._replace(unit=KINDS[name][0], decimals=KINDS[name][1])
        if name in KINDS and not isinstance(feature.value, str)
        else feature
        for name, feature in about.features.items()
    }
    return replace(about, features=with_scores(features, about))


def before(role: str, about: DebateContext, reports: Any = None) -> DebateContext:
    """Return the context as the framework hands it to a role: earlier reports, the gate's rules."""
    if role == "risk_gate":
        ruling = rules(about.features, settings().gate, 0.0).ruling
        added = as_features(ruling, 0.0, about.as_of)
        about = replace(about, features={**about.features, **added})
    reports_of = {"bull_researcher": ANALYSTS, "bear_researcher": ANALYSTS, "chart_scorer": ()}
    reports_of |= {"risk_gate": (*ANALYSTS, BEAR, BULL)}
    return replace(about, reports=reports_of.get(role, ()) if reports is None else reports)


def prompt(role: str, *, reports=None, **changes):
    about = before(role, at_the_desk(**changes), reports)
    return build_interpretive_prompt(about, SCORER if role == SCORER.id else AGENTS[role].role)


def rendered(role: str, about: DebateContext):
    """Return what an agent asks, None where it abstains, and what it reports."""
    prompts: list[Prompt] = []

    def ask(prompt):
        prompts.append(prompt)
        return a_report(role)

    report = AGENTS[role].analyze(before(role, about), ask)
    return (prompts[0] if prompts else None), report


NO_NEWS = {
    **{name: None for name in FULL_FEATURES if name.startswith("news.") and name[-1].isalpha()},
    "news.available": 0.0,
    "sentiment.news": None,
    "sentiment.news_items": None,
    "source.news": "rate_limited",
}
VARIANTS = ("full", "no_news", "no_picture")


def variant(name: str) -> DebateContext:
    """Return a tick with all evidence, or without news or picture."""
    about = at_the_desk(
        features=NO_NEWS if name == "no_news" else {},
        picture=None if name == "no_picture" else b"png",
    )
    if name != "no_news":
        return about
    kept = (key for key in about.features if not re.match(r"news\.item\w*\.", key))
    return replace(about, features={key: about.features[key] for key in kept})


def golden(role: str, name: str) -> str:
    shown, report = rendered(role, variant(name))
    return whole(shown) if shown else f"{role} abstains: {report.reason}\n"


FIRM = (*MODES["firm"].seats, TRADER.role.id)
ORDER: dict[str, float | str] = {
    "order.side": "BUY",
    "order.entry": 2034.55,
    "order.stop": 2029.3,
    "order.target": 2045.05,
    "order.stop_atr": 1.5,
    "order.reward_r": 2.0,
    "order.conviction": 0.62,
}


def at_the_firm(role: str, **changes: Any) -> DebateContext:
    """Return the context as a firm hands it to a seat: reports of its shapes, the trader's order.

    Risks are for the manager and for who is asked of a trade.
    """
    about = replace(at_the_desk(picture=b"png", **changes), ahead=True)
    times: tuple[Horizon, ...] = ("bars_16", "session", "bars_4", "days")
    analysts = tuple(
        report if report.abstained else replace(report, horizon=time)
        for report, time in zip(ANALYSTS, times, strict=True)
    )
    judged = a_report(
        "research_manager", None, winner="LONG", horizon="bars_16",
        weights={"bull_researcher": 0.75, "bear_researcher": 0.5},
    )  # fmt: skip
    cases = tuple(
        replace(report, horizon="bars_4", risks=("Rates may rise.",)) for report in (BEAR, BULL)
    )
    quiet = tuple(replace(report, risks=()) for report in cases)
    reports_of: dict[str, tuple[AgentReport, ...]] = {
        "research_manager": (*analysts, *cases),
        "risk_gate": (*analysts, *quiet),
        "trader": (*analysts, *cases, judged),
    }
    if role in SIDES:
        reports_of[role] = (*analysts, *(report for report in quiet if report.agent_id != role))
    if role == "trader":
        order = {name: Feature(name, value) for name, value in ORDER.items()}
        about = replace(about, features={**about.features, **order})
    return before(role, about, reports_of.get(role, ()))


def firm_prompt(role: str, **changes: Any) -> Prompt:
    seat = TRADER.role if role == TRADER.role.id else AGENTS[role].role
    return build_interpretive_prompt(at_the_firm(role, **changes), seat)


SWARM = MODES["swarm"].seats


@cache
def swarm_requests() -> dict[str, Request]:
    """Return what each seat of a swarm is asked on a tick with all evidence."""
    provider = Scripted()
    about = at_the_desk(features=SWARM_FEATURES, picture=b"png")
    debate(provider, about=about, config=settings(mode="swarm", picture="rendered"))
    return {request.role.id: request for request in provider.requests}


def golden_files() -> dict[str, str]:
    """Return every golden file by its name."""
    texts = {
        f"prompt_{role}_{name}.txt": golden(role, name)
        for role in MODES["full"].seats
        for name in VARIANTS
    }
    texts |= {f"prompt_firm_{role}.txt": whole(firm_prompt(role)) for role in FIRM}
    texts |= {f"prompt_swarm_{role}.txt": whole(swarm_requests()[role]) for role in SWARM}
    return texts | {"prompt_chart_scorer.txt": whole(prompt(SCORER.id))}


def whole(prompt: Prompt | Request) -> str:
    """Return both texts of a prompt."""
    return f"{prompt.system}\n\n{prompt.user}\n"
