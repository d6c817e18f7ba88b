"""The desk's settings: which agents sit at it, their models, their budget and their time.

A mode is a row of `MODES`, so a later desk is one more row. The pydantic models are the `agents`
and `gate` sections of a profile and the only place where their default values stand. The module
imports nothing of Torra: it lifts out with the agents.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

MODES: Final[dict[str, tuple[str, ...]]] = {
    "budget": ("technical", "bull_researcher", "bear_researcher", "risk_gate"),
    "full": (
        "technical",
        "sentiment",
        "news",
        "key_levels",
        "momentum",
        "bull_researcher",
        "bear_researcher",
        "risk_gate",
    ),
}
GATE_ID: Final = "risk_gate"
"""The gate sits at every desk, whatever a profile names."""

MAX_AGENTS: Final = 8
MAX_REQUESTS: Final = 14
"""At most this many requests a tick, retries and second looks included."""

FOCUS_WEIGHT: Final = {"primary": 1.0, "secondary": 0.5}
CONFIDENCE_WEIGHT: Final = {"high": 1.0, "medium": 0.75, "low": 0.5}
UNGROUNDED_WEIGHT: Final = 0.3
GROUNDING_TOLERANCE: Final = 0.01
"""A cited value may differ from the evidence by this share of it."""

STAGE_SHARE: Final = {"analysts": 0.45, "research": 0.50, "gate": 0.60}
"""Share of the time that remains which a stage may use."""

FALLBACK_SHARE: Final = 0.20
"""Share of the whole that is kept for the fallback while nobody has answered."""

MAX_PROMPT_CHARS: Final = 20_000
"""Longest system and user text together; a longer one is refused before the call."""

OUTPUT_TOKENS: Final = {"quick": 700, "deep": 900}
MODELS: Final[dict[str, dict[str, str]]] = {
    "rules": {"quick": "rules", "deep": "rules"},
    "recorded": {"quick": "recorded", "deep": "recorded"},
    "anthropic": {"quick": "claude-haiku-5-5", "deep": "claude-sonnet-5-5"},
    "google": {"quick": "gemini-3.5-flash-lite", "deep": "gemini-3.8-flash"},
    "openai_compatible": {"quick": "gpt-6-luna", "deep": "gpt-6.1-terra"},
}
"""Default models of each provider; document 001's ids are retired or superseded."""


class Section(BaseModel):
    """A section of a profile: frozen, finite numbers only, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)


class GateSettings(Section):
    """The arithmetic of the gate. Ratios are plain numbers, percentiles 0 to 100."""

    max_spread_atr: float = Field(
        0.15, gt=0, description="veto: the spread is above this share of ATR(14)"
    )
    min_valid_bars: int = Field(210, ge=1, description="veto: fewer bars of history than this")
    max_bar_age: float = Field(
        2.0, gt=0, description="veto: the newest bar closed more than this many bars ago"
    )
    volatility_percentile: float = Field(
        95.0, ge=0, le=100, description="volatility is high above this percentile of its own past"
    )
    volatility_multiplier: float = Field(
        0.7, ge=0, le=1, description="multiplier when volatility is high"
    )
    losing_streak: int = Field(3, ge=1, description="losses in a row that count as a streak")
    losing_streak_multiplier: float = Field(
        0.7, ge=0, le=1, description="multiplier in a losing streak"
    )
    exposure_multiplier: float = Field(
        0.8,
        ge=0,
        le=1,
        description="multiplier while another instance of the desk holds a position",
    )
    disagreement_scale: float = Field(
        0.6, gt=0, description="multiplier 1 - s / this, s = spread of the analysts' adjustments"
    )
    disagreement_floor: float = Field(
        0.3, ge=0, le=1, description="disagreement lowers it no further"
    )


class AgentSettings(Section):
    """The `agents` section of a profile."""

    mode: Literal["budget", "full"] = Field(
        "budget", description="which desk of agents (full: not in this version)"
    )
    active_agents: tuple[str, ...] = Field(
        (),
        strict=False,
        max_length=MAX_AGENTS,
        description="agents by name; when not empty it wins over mode",
    )
    debate_rounds: int = Field(1, ge=1, le=3, description="rounds of bull against bear")
    provider: Literal["rules", "recorded", "anthropic", "google", "openai_compatible"] = Field(
        "rules", description="who answers; this version has rules: no key, no network"
    )
    quick_think_model: str = Field(
        "", description="model of the analysts and the gate; empty = the provider's"
    )
    deep_think_model: str = Field(
        "", description="model of the researchers; empty = the provider's"
    )
    max_api_cost_per_hour: float = Field(
        2.00, ge=0, description="USD that any sliding hour may cost (rules cost nothing)"
    )
    timeout_seconds: float = Field(
        15.0, gt=0, le=120, description="a tick's deadline, in real seconds"
    )
    call_policy: Literal["always", "pivotal"] = Field(
        "always", description="when agents are asked (pivotal: not in this version)"
    )
    include_news: bool = Field(False, description="collect headlines (true: not in this version)")
    include_markov_context: bool = Field(
        True, description="show agents the Markov state and its transitions"
    )
    include_sentiment_history: bool = Field(
        True, description="show agents the recent consensus scores"
    )
    history_lookback: int = Field(
        10, ge=1, le=100, description="how many past ticks the memory context holds"
    )
    picture: Literal["off", "rendered", "file"] = Field(
        "off", description="whether a role may see the chart (only off in this version)"
    )

    def desk(self) -> tuple[str, ...]:
        """Return the ids of the agents at this desk in asking order, the gate last."""
        chosen = self.active_agents or MODES[self.mode]
        return (*(name for name in dict.fromkeys(chosen) if name != GATE_ID), GATE_ID)

    def model(self, tier: str) -> str:
        """Return the model id for a tier, quick or deep."""
        named = self.quick_think_model if tier == "quick" else self.deep_think_model
        return named or MODELS[self.provider][tier]


class DebateSettings(Section):
    """What `deliberate` is configured with: the agents and the gate's numbers."""

    agents: AgentSettings = AgentSettings()
    gate: GateSettings = GateSettings()
