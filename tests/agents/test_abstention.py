"""An agent without its evidence says nothing, asks nobody, and costs the desk nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from agent_config import JUDGE_ID, MANAGER_ID
from agents.contracts import AgentReport, DebateContext, Feature, Role
from agents.evidence import missing, with_scores
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles.scripted import SWARM_FEATURES, context
from torra.config import ROOT
from torra.evidence.news_digest import NewsStatus

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "technical": ("technical.",),
    "sentiment": (
        *(f"sentiment.{name}" for name in ("news", "up_bars", "up_volume", "streak")),
        *("cot.", "positioning.", "derivs."),
    ),
    "news": ("news.item.", "news.item_", "news.score"),
    "fundamental": ("company.", "fundamentals.", "macro."),
    "key_levels": tuple(
        f"technical.{name}"
        for name in ("support", "resistance", "fib_", "bb_", "tenkan", "kijun", "span_")
    ),
    "momentum": tuple(f"technical.{name}" for name in ("rsi14", "macd", "stoch_", "cci20")),
    "bull_researcher": ("scores.",),
    "bear_researcher": ("scores.",),
    "regime_reader": ("market.regime",),
    "liquidity": ("liquidity.",),
    "microstructure": ("micro.", "flow."),
    "macro": ("macro.", "companion.", "cot.", "positioning.", "derivs."),
    "geometry": ("geometry.",),
}
"""What each agent cannot do without."""


def bereft(role: str, *, kept: str = "") -> DebateContext:
    """Return a tick with all evidence, but for what a role needs without one feature of it."""
    about = context(features={**SWARM_FEATURES, "source.news": "rate_limited"})
    features = with_scores(about.features, about)
    lost = NEEDED.get(role, ())
    gone = [name for name in features if name.startswith(lost) and name != kept] if lost else []
    return replace(
        about,
        features={**features, **{name: features[name]._replace(value=None) for name in gone}},
    )


def unasked(role: str, about: DebateContext) -> AgentReport:
    """Return the report of an agent that asks nobody."""

    def never(_prompt: Any) -> Any:
        raise AssertionError("asked")

    return AGENTS[role].analyze(about, never)


@cases("role", NEEDED)
def test_without_its_evidence_an_agent_abstains_without_a_call(role: str) -> None:
    told = unasked(role, bereft(role))
    assert told.abstained and told.agent_id == role
    assert told.reason.startswith("no ") and " evidence" in told.reason
    assert set(told.adjustments.values()) == {None}
    needs = AGENTS[role].role.needs
    for kept, feature in bereft("").features.items():
        begins = (need if need.endswith((".", "_")) else f"{need}." for need in needs)
        if feature.value is not None and (kept in needs or kept.startswith(tuple(begins))):
            assert missing(AGENTS[role].role, bereft(role, kept=kept)) == "", kept


def test_who_judges_needs_somebody_to_judge_and_the_gate_nothing() -> None:
    others = {"risk_gate", MANAGER_ID, JUDGE_ID}
    assert {name for name, agent in AGENTS.items() if not agent.role.needs} == others
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    for role in others:
        asked: list[Any] = []
        AGENTS[role].analyze(context(features={}), asked.append)
        assert bool(asked) == (role == "risk_gate")
        told = page.partition(f"### `{role}`")[2].partition("it abstains: ")[2].splitlines()[0]
        assert (told == "never") is bool(asked), told


@cases("status", NewsStatus)
@cases("role", ["news", "sentiment"])
def test_an_abstention_says_why_there_is_no_news(role: str, status: NewsStatus) -> None:
    about = bereft(role)
    source = {"source.news": Feature("source.news", str(status))}
    reason = unasked(role, replace(about, features={**about.features, **source})).reason
    assert reason.startswith(f"no {role} evidence")
    assert reason.endswith(f": {status}") == (status is not NewsStatus.AVAILABLE)


@cases(
    ("needs", "lacking"),
    [
        ((), ""),
        (("market",), ""),
        (("market.",), ""),
        (("market.ses",), "no market evidence (ses)"),
        (("market.session",), ""),
        (("technical.kijun",), "no technical evidence (kijun)"),
        (("technical.kijun", "news.nothing"), "no technical or news evidence (kijun, nothing)"),
        (("nothing", "technical.rsi14"), ""),
    ],
)
def test_one_of_the_needs_must_have_a_value(needs: tuple[str, ...], lacking: str) -> None:
    role = Role("x", "x", "analyst", "quick", {}, needs, ())
    assert missing(role, context()) == lacking
