"""An agent without its evidence says nothing, asks nobody, and costs the desk nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent_config import MODES
from agents.contracts import VECTORS, DebateContext, Feature, Role
from agents.evidence import missing, with_scores
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles.scripted import FULL_FEATURES, Scripted, context, debate, settings
from torra.config import ROOT
from torra.evidence.news_digest import NewsStatus

DESK = MODES["full"].seats
FULL = settings(mode="full", second_look="never")

NEEDED = {
    "technical": ("technical.",),
    "sentiment": ("sentiment.news", "sentiment.up_bars", "sentiment.up_volume", "sentiment.streak"),
    "news": ("news.item.", "news.score"),
    "key_levels": (
        *(f"technical.{name}" for name in ("support", "resistance", "fib_", "bb_")),
        *(f"technical.{name}" for name in ("tenkan", "kijun", "span_")),
    ),
    "momentum": tuple(f"technical.{name}" for name in ("rsi14", "macd", "stoch_", "cci20")),
    "bull_researcher": ("scores.",),
    "bear_researcher": ("scores.",),
}
"""What each agent cannot do without; the gate needs nothing, its rules hold anyway."""

REASONS = {
    "technical": "no technical evidence",
    "sentiment": "no sentiment evidence: rate_limited",
    "news": "no news evidence: rate_limited",
    "bull_researcher": "no scores evidence",
    "bear_researcher": "no scores evidence",
}


def bereft(role: str, *, kept: str = "") -> DebateContext:
    """Return a tick without what a role needs, but for the features that begin with `kept`."""
    lost = NEEDED.get(role, ())
    about = context(features={**FULL_FEATURES, "source.news": "rate_limited"})
    features = with_scores(about.features, about)
    return replace(
        about,
        features={
            name: feature._replace(value=None)
            if name.startswith(lost) and not (kept and name == kept)
            else feature
            for name, feature in features.items()
        },
    )


def never(_prompt: Any) -> Any:
    raise AssertionError("asked")


@cases("role", NEEDED)
def test_without_its_evidence_an_agent_abstains_without_a_call(role: str) -> None:
    told = AGENTS[role].analyze(bereft(role), never)
    assert told.abstained
    assert told.agent_id == role
    assert told.reason.startswith(REASONS.get(role, "no technical evidence ("))
    assert set(told.adjustments.values()) == {None}


def test_every_agent_but_the_gate_needs_something() -> None:
    assert NEEDED.keys() == set(DESK) - {"risk_gate"}
    assert AGENTS["risk_gate"].role.needs == ()
    asked: list[Any] = []
    AGENTS["risk_gate"].analyze(context(features=dict.fromkeys(FULL_FEATURES)), asked.append)
    assert len(asked) == 1


@cases("role", [role for role in NEEDED if role not in MODES["budget"].seats[1:]])
def test_at_the_desk_an_abstention_asks_nobody_and_is_no_failure(role: str) -> None:
    provider = Scripted()
    record = debate(provider, about=bereft(role), config=FULL)
    assert not provider.asked(role)
    assert record.failures == {}
    assert str(record.source_type) == "AGENT_FULL"
    (told,) = [told for told in record.reports if told.agent_id == role]
    assert told.abstained
    assert not [call for call in record.calls if call.role_id == role]


def test_a_fundamental_analyst_without_its_evidence_asks_nobody_at_a_firm() -> None:
    provider = Scripted()
    config = settings(mode="firm", second_look="never", rebuttal="never")
    record = debate(provider, about=context(features=FULL_FEATURES), config=config)
    (told,) = [told for told in record.reports if told.agent_id == "fundamental"]
    assert told.abstained and not provider.asked("fundamental") and record.failures == {}


@cases("role", [name for name, agent in AGENTS.items() if not agent.role.needs])
def test_the_docs_say_never_only_of_whom_never_abstains(role: str) -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    told = page.partition(f"### `{role}`")[2].partition("it abstains: ")[2].splitlines()[0]
    asked: list[Any] = []
    AGENTS[role].analyze(context(features=dict.fromkeys(FULL_FEATURES)), asked.append)
    assert (told == "never") is bool(asked), told


def test_a_news_agent_without_a_headline_costs_the_desk_nothing() -> None:
    """The scores are those of a desk that has no news agent."""
    without = tuple(role for role in DESK if role != "news")
    silent = debate(Scripted(), about=bereft("news"), config=FULL)
    absent = debate(
        Scripted(),
        about=bereft("news"),
        config=settings(active_agents=without, second_look="never"),
    )
    assert silent.adjustments == absent.adjustments
    assert silent.ruling == absent.ruling
    for vector in VECTORS:
        assert silent.scores[vector]["score"] == absent.scores[vector]["score"]


@cases("role", NEEDED)
def test_one_piece_of_what_it_needs_is_enough(role: str) -> None:
    kept = next(name for name in bereft("").features if name.startswith(NEEDED[role]))
    seen = {"sentiment": "sentiment.up_bars", "momentum": "technical.cci20"}
    about = bereft(role, kept=seen.get(role, kept))
    assert missing(AGENTS[role].role, about) == ""


@cases("status", NewsStatus)
@cases("role", ["news", "sentiment"])
def test_an_abstention_says_why_there_is_no_news(role: str, status: NewsStatus) -> None:
    about = bereft(role)
    about = replace(
        about, features={**about.features, "source.news": Feature("source.news", str(status))}
    )
    reason = AGENTS[role].analyze(about, never).reason
    assert reason.startswith(f"no {role} evidence")
    assert reason.endswith(f": {status}") == (status is not NewsStatus.AVAILABLE)


def test_a_count_of_no_headlines_is_no_mood() -> None:
    """A need names a feature or a part of the id that ends at a dot, never half a word."""
    about = context(features={"sentiment.news_items": 0.0, "sentiment.positioning_available": 0.0})
    assert missing(AGENTS["sentiment"].role, about)
    about = context(features={"news.available": 0.0, "news.items": 0.0})
    assert missing(AGENTS["news"].role, about) == "no news evidence (item, score)"


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
