"""The desk's settings: which agents sit at it, their models, their budget and their time.

A mode is a row of `MODES`, the only place that knows modes apart: a new desk is a new row. The
pydantic models are the `agents` and `gate` sections of a profile and the only place where their
default values stand; the string below a setting describes it on pages. The module imports nothing
of Torra: it lifts out with the agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    StrictStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticKnownError

GATE_ID: Final = "risk_gate"
"""The gate sits at every desk, whatever a profile names."""

TRADER_ID: Final = "trader"
"""Who is asked alone, where an opening would stand; it has no seat at a desk."""


READER_ID: Final = "regime_reader"
"""Who says of a swarm's market what kind it is, beside the code's word."""

JUDGE_ID: Final = "judge"
"""Who decides of what a swarm's experts say."""

MANAGER_ID: Final = "research_manager"
"""Who judges the two cases of a firm."""

EXPERTS: Final = ("liquidity", "microstructure", "macro", "geometry")
"""The swarm's experts; a desk that seats one of them has their evidence worked out."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """Agents that are asked at once: those of these `kinds` (agents.contracts.Kind).

    `share` is the part, 0 to 1, of the time that remains which the stage may use. `sees` are the
    kinds whose reports its agents read. A stage that `debates` is asked once in each of a profile's
    rounds; its agents read one another's last case, and it is left out below the quorum. `again` is
    the share of a further round, by default that of the first.
    """

    name: str
    kinds: tuple[str, ...]
    share: float
    sees: tuple[str, ...] = ()
    debates: bool = False
    again: float = 0.0

    def share_of(self, number: int) -> float:
        """Return the share of one of its rounds."""
        return self.again if number > 1 and self.again else self.share


@dataclass(frozen=True, slots=True)
class Mode:
    """One desk: a row of `MODES`.

    `seats` are its agents in asking order; `stages` who is asked when, the gate in the last one.
    `below` is the mode that is run instead while the hour's money is short, "" for none: then
    nobody is asked. Its worst case is below this one's with the default models of each vendor.
    `complete` is the source type (agents.contracts.SourceType) of a tick on which every seat
    answered or abstained. `says` describes the desk on pages and in reports, `asks` what is
    asked on its level of the ladder. `second_look` says whether `second_look: auto` has doubtful
    reports looked at again. `evidence` narrows what a seat may see: id prefixes by agent, of those
    that its role lists; an agent that is not named sees all of them. `memory` says whether
    `memory.use: auto` tells the desk of earlier trades. `rebuttal` says whether `rebuttal: auto`
    has bull and bear answer each other where it is worth a round. `ahead` says whether reports name
    the time that they speak for and the risks that they grant. `consults` names the role that is
    asked alone where an opening would stand, "" for none. `broad` says whether crypto reads macro
    numbers and the change of its open interest. `weighs` says whether the regime decides
    how much the word of each expert counts (`TRUST`). `officer` says whether the risk officer's
    rows and the regime's budget count beside the gate's rules. `defaults` are settings, by section,
    of a profile that has none of its own.
    """

    seats: tuple[str, ...]
    stages: tuple[StagePlan, ...]
    below: str
    complete: str
    says: str
    asks: str
    second_look: bool = False
    evidence: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memory: bool = False
    rebuttal: bool = False
    ahead: bool = False
    consults: str = ""
    broad: bool = False
    weighs: bool = False
    officer: bool = False
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


THREE_STAGES: Final = (
    StagePlan("analysts", ("analyst",), 0.45),
    StagePlan("research", ("researcher",), 0.50, sees=("analyst",), debates=True),
    StagePlan("gate", ("gate",), 0.60, sees=("analyst", "researcher")),
)

REBUTTAL_SHARE: Final = 0.40
"""Share of the remaining time of a further round of bull against bear at the firm."""

OFFICER_CAPS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("M1", "M5", "M15", "M30", "H1"), 3.0),
    **dict.fromkeys(("H4", "D1"), 1.0),
}
"""Most leverage of what each timeframe opened (document 003: 3 for a swing, 1 for a position)."""

MODES: Final[dict[str, Mode]] = {
    "budget": Mode(
        seats=("technical", "bull_researcher", "bear_researcher", GATE_ID),
        stages=THREE_STAGES,
        below="",
        complete="AGENT_BUDGET",
        says="one analyst, bull and bear, the gate",
        asks="the small desk is asked",
    ),
    "full": Mode(
        seats=(
            "technical",
            "sentiment",
            "news",
            "key_levels",
            "momentum",
            "bull_researcher",
            "bear_researcher",
            GATE_ID,
        ),
        stages=THREE_STAGES,
        below="budget",
        complete="AGENT_FULL",
        says="every analyst, bull and bear, the gate",
        asks="the whole desk is asked",
        second_look=True,
    ),
    "firm": Mode(
        seats=(
            "technical",
            "sentiment",
            "news",
            "fundamental",
            "bull_researcher",
            "bear_researcher",
            MANAGER_ID,
            GATE_ID,
        ),
        stages=(
            StagePlan("analysts", ("analyst",), 0.35),
            StagePlan(
                "research",
                ("researcher",),
                0.35,
                sees=("analyst",),
                debates=True,
                again=REBUTTAL_SHARE,
            ),
            StagePlan("decision", ("arbiter", "gate"), 0.60, sees=("analyst", "researcher")),
        ),
        below="full",
        complete="AGENT_FIRM",
        says="four analysts, bull and bear, the research manager beside the gate, the trader on "
        "openings",
        asks="the whole firm is asked",
        second_look=True,
        memory=True,
        rebuttal=True,
        ahead=True,
        consults=TRADER_ID,
        broad=True,
        defaults={"agents": {"influence": "earned", "timeout_seconds": 30.0, "quorum": 3}},
    ),
    "swarm": Mode(
        seats=(READER_ID, *EXPERTS, JUDGE_ID, GATE_ID),
        stages=(
            StagePlan("experts", ("reader", "analyst"), 0.45),
            StagePlan("judgement", ("judge",), 0.50, sees=("reader", "analyst")),
            StagePlan("gate", ("gate",), 0.60, sees=("reader", "analyst", "judge")),
        ),
        below="",
        complete="AGENT_SWARM",
        says="four experts and a reader of the regime at once, the judge, the gate",
        asks="the whole swarm is asked",
        memory=True,
        broad=True,
        weighs=True,
        officer=True,
        defaults={
            "agents": {"influence": "earned", "quorum": 0},
            "risk": {"leverage_caps": OFFICER_CAPS},
        },
    ),
}
"""The desks, the cheapest first. Nothing else in the program compares a mode or keys on one."""

if TYPE_CHECKING:
    ModeName = str
else:  # a profile may name every row, and no other
    ModeName = Literal[tuple(MODES)]

TRUST_FLOOR: Final = 0.25
"""Least that the word of an expert counts beside the others: nobody is silenced."""

FIRST_OTHERS: Final = 0.8
"""What is left of the others' weight where the reader has one expert go first, which then has 1."""

HIERARCHY: Final[Mapping[str, Mapping[str, float]]] = {
    "short": {"microstructure": 1.0, "liquidity": 0.8, "macro": 0.6, "geometry": 0.4},
    "long": {"macro": 1.0, "liquidity": 0.8, "geometry": 0.6, "microstructure": 0.4},
}
"""Whose word counts how much on short bars, up to an hour, and on long ones (document 003, its
conviction hierarchy of swing and position). Priors, to be judged by the arm `swarm_flat`.
"""

LONG_FROM: Final = frozenset({"H4", "D1", "W1", "MN1"})
"""Timeframes of long bars."""

TRUST: Final[Mapping[str, Mapping[str, float]]] = {
    "trend_up": {"microstructure": 0.8, "liquidity": 0.8, "macro": 1.0, "geometry": 1.0},
    "trend_down": {"microstructure": 0.8, "liquidity": 0.8, "macro": 1.0, "geometry": 1.0},
    "range": {"microstructure": 0.8, "liquidity": 1.0, "macro": 0.8, "geometry": 1.0},
    "quiet": {"microstructure": 0.8, "liquidity": 0.8, "macro": 0.8, "geometry": 0.8},
    "volatile": {"microstructure": 1.0, "liquidity": 1.0, "macro": 0.8, "geometry": 0.4},
}
"""The trust directive: what the regime makes of the hierarchy, as a factor of it."""

TRUST_DECIMALS: Final = 8
"""Weights of experts are rounded to this many decimals, as scores are."""


def tabled_trust(timeframe: str, regime: str) -> dict[str, float]:
    """Return the tabled weight of each expert; of none for a regime that has no row."""
    ranks = HIERARCHY["long" if timeframe in LONG_FROM else "short"]
    factors = TRUST.get(regime, {}).items()
    weights = {name: max(TRUST_FLOOR, ranks[name] * factor) for name, factor in factors}
    return {name: round(weights[name], TRUST_DECIMALS) for name in EXPERTS if name in weights}


REGIME_BUDGET: Final[Mapping[str, float]] = {
    "trend_up": 1.0,
    "trend_down": 1.0,
    "range": 0.7,
    "quiet": 0.6,
    "volatile": 0.4,
}
"""Share of an opening's size that each regime leaves where a risk officer sits."""

THIN_CONVICTION: Final = 0.5
"""Most conviction that a swarm has of which fewer than two experts spoke."""

MAX_AGENTS: Final = 8
MAX_REQUESTS: Final = 14
"""At most this many requests of a debate, retries and second looks included."""

CONSULT_SECONDS: Final = 6.0
"""Real seconds that are kept for the trader where an opening may come, of a deadline that has more
than twice as many.
"""

LEAST_CONSULT_SECONDS: Final = 2.5
"""With less than this until the deadline the trader is not asked."""

FOCUS_WEIGHT: Final = {"primary": 1.0, "secondary": 0.5}
CONFIDENCE_WEIGHT: Final = {"high": 1.0, "medium": 0.75, "low": 0.5}
UNGROUNDED_WEIGHT: Final = 0.3
GROUNDING_TOLERANCE: Final = 0.01
"""A cited value may differ from the evidence by this share of it."""

QUORUM_FROM: Final = 4
"""Desks of so many analysts and more need a quorum of reports before the researchers are asked."""

OPPOSITION_COST: Final = 0.60
"""Share of the conviction in an opening that is lost when every analyst that takes a side, or all
that pushes either way, is against it (document 000).
"""

NONE_COST: Final = 0.30
"""Share that is lost where a manager or a judge takes no side and an analyst is opposed."""

LEANING_SHARE: Final = 0.50
"""Most that is left of it where the desk as a whole pushes against it."""

FALLBACK_SHARE: Final = 0.20
"""Share of the whole that is kept for the fallback while nobody has answered."""

MAX_PROMPT_BYTES: Final = 10_000
"""Longest system and user text of one request together, in UTF-8; a longer one is refused before
the call. A token is at least one byte, so this also bounds what a request can cost.
"""

JUDGES_PROMPT_BYTES: Final = 20_000
PROMPT_BYTES: Final[Mapping[str, int]] = dict.fromkeys((MANAGER_ID, JUDGE_ID), JUDGES_PROMPT_BYTES)
"""The same of who reads the arguments of others whole."""

OUTPUT_TOKENS: Final = {"quick": 900, "deep": 1_600, "chief": 1_600}
"""Longest answer of a tier; a reply has some 500 tokens, some deep models cannot but think before
it, and what they think counts.
"""

CAPS: Final[Mapping[str, tuple[int, int]]] = {
    "prompt_bytes": (2_000, 24_000),
    "output_tokens": (200, 8_000),
}
"""What `role_caps` may set for a role, from and to. A prompt that quotes no number takes some 2,000
bytes, the trader's with its order up to 7,000, and the longest that is written some 10,000; a role
whose prompt cannot be cut that far is not asked. A reply takes some 500 tokens; a model that cannot
but think before it may need thousands.
"""

MODELS: Final[dict[str, dict[str, str]]] = {
    "rules": dict.fromkeys(OUTPUT_TOKENS, "rules"),
    "recorded": dict.fromkeys(OUTPUT_TOKENS, "recorded"),
    "anthropic": {
        "quick": "claude-haiku-5-5",
        "deep": "claude-sonnet-5-5",
        "chief": "claude-opus-5-5",
    },
    "google": {
        "quick": "gemini-3.5-flash-lite",
        "deep": "gemini-3.8-flash",
        "chief": "gemini-4-argon",
    },
    "openai_compatible": {"quick": "gpt-6-luna", "deep": "gpt-6.1-terra", "chief": "gpt-6.1-sol"},
}
"""Default models of each provider; document 001's ids are retired or superseded."""

VENDORS: Final = ("anthropic", "google", "openai_compatible")
"""Providers that ask a language model; a model's name may be prefixed with one, vendor:model."""

SHORT_NAMES: Final[Mapping[str, str]] = {"openai": "openai_compatible"}
"""What a provider may also be called, also before a model's colon; records have the full name."""


def full_name(name: str) -> str:
    """Return a provider, a model or vendor:model with its provider's short name written out."""
    vendor, colon, model = name.partition(":")
    return f"{SHORT_NAMES.get(vendor, vendor)}{colon}{model}"


ModelName = Annotated[str, AfterValidator(full_name)]
"""A model, a vendor or vendor:model."""

MAX_FALLBACKS: Final = 3
"""Most vendors that may stand in: each stands in once."""


PLUG_IN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}:[a-z][a-z0-9_]{0,31}")
"""A name that somebody else's package brings: its distribution, a colon, the entry point. Built-in
names have no colon, so no package can take the place of one.
"""


def is_plug_in(name: str) -> bool:
    """Tell whether a name is one that somebody else's package brings."""
    return PLUG_IN.fullmatch(name) is not None


def may_cost(provider: str) -> bool:
    """Tell whether a provider may cost money: a vendor, or a plug-in, whose prices nobody knows."""
    return provider in VENDORS or is_plug_in(provider)


def or_plug_in(*names: str) -> BeforeValidator:
    """Return a rule for a field that takes one of these names, or the name of a plug-in."""
    expected = f"{', '.join(map(repr, names))} or the PACKAGE:NAME of a plug-in"

    def check(value: Any) -> Any:
        name = SHORT_NAMES.get(value, value) if isinstance(value, str) else ""
        if name in names or is_plug_in(name):
            return name
        raise PydanticKnownError("literal_error", {"expected": expected})

    return BeforeValidator(check)


def route(name: str, provider: str) -> tuple[str, str]:
    """Return (vendor, model) of a model's name; without a vendor before a colon it is `provider`'s.

    Local servers have colons in model names (`llama3:8b`), so only a known vendor counts as one.
    """
    vendor, colon, model = name.partition(":")
    return (vendor, model) if colon and vendor in VENDORS else (provider, name)


class Section(BaseModel):
    """A section of a profile: frozen, finite numbers only, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)


Share = Annotated[float, Field(ge=0, le=1)]
Percentile = Annotated[float, Field(ge=0, le=100)]
Positive = Annotated[float, Field(gt=0)]
Minutes = Annotated[float, Field(ge=0, le=1_440)]
Choice = Literal["auto", "always", "never"]


class GateSettings(Section):
    """The arithmetic of the gate. Ratios are plain numbers, percentiles 0 to 100."""

    max_spread_atr: Positive = 0.15
    """veto: the spread is above this share of ATR(14)"""

    min_valid_bars: int = Field(210, ge=1)
    """veto: fewer bars of history than this"""

    max_bar_age: Positive = 2.0
    """veto: the newest bar closed more than this many bars ago"""

    volatility_percentile: Percentile = 95.0
    """volatility is high above this percentile of its own past"""

    volatility_multiplier: Share = 0.7
    """multiplier when volatility is high"""

    losing_streak: int = Field(3, ge=1)
    """losses in a row that count as a streak"""

    losing_streak_multiplier: Share = 0.7
    """multiplier in a losing streak"""

    exposure_multiplier: Share = 0.8
    """multiplier while another instance of the desk holds a position"""

    disagreement_scale: Positive = 0.6
    """how far apart analysts must be for the size to go down to nothing"""

    disagreement_floor: Share = 0.3
    """disagreement lowers it no further"""

    event_before_minutes: Minutes = 30.0
    """veto: a high-impact event is this near or nearer"""

    event_after_minutes: Minutes = 15.0
    """veto: a high-impact event was this recently or later"""

    panic_percentile: Percentile = 95.0
    """risk officer: VIX or DVOL at this rank or above is panic"""

    panic_multiplier: Share = 0.5
    """risk officer: multiplier in such a panic"""

    crowded_percentile: float = Field(95.0, ge=50, le=100)
    """risk officer: funding at this rank of its past or above vetoes a BUY, at 100 less it or
    below a SELL"""

    liquidations_percentile: Percentile = 99.0
    """risk officer: liquidations at this rank or above"""

    liquidations_multiplier: Share = 0.5
    """risk officer: multiplier among so many liquidations"""

    exhaustion_multiplier: Share = 0.8
    """risk officer: multiplier at a bar that shows exhaustion"""


HASHED: Final = "hashed"
"""The embedder that needs no file: words and trigrams, hashed (torra.lessons.hashed)."""

MOST_NOTES: Final = 3
"""Most lessons that are told to an agent in words."""


class MemorySettings(Section):
    """The `agents.memory` section of a profile: which lessons of earlier trades a tick is told."""

    use: Literal["auto", "on", "off"] = "auto"
    """whether a tick is told of lessons of closed trades (auto: where the mode says so)"""

    roles: tuple[str, ...] = Field(
        ("bull_researcher", "bear_researcher", MANAGER_ID, JUDGE_ID, TRADER_ID),
        strict=False,
        max_length=MAX_AGENTS,
    )
    """agents by name that are told lessons in words, quoted"""

    notes: int = Field(MOST_NOTES, ge=0, le=MOST_NOTES)
    """how many lessons they are told in words"""

    embedder: str = Field(HASHED, min_length=1, max_length=400)
    """how lessons are compared by their words: hashed, or the folder of a model2vec model"""

    review: Literal["rules", "model"] = "rules"
    """who writes of a closed trade: the rules alone, or later the deep model too"""


class EscalationSettings(Section):
    """The `agents.escalation` section of a profile: when the trader is asked of the chief tier."""

    when: Literal["conviction", "pivotal", "off"] = "conviction"
    """when the chief tier is asked for the trade's thesis: where the desk's conviction is high,
    where the desk alone decides the verdict, or never"""

    at: Share = 0.75
    """conviction in the opening from which it is asked"""


class AgentSettings(Section):
    """The `agents` section of a profile."""

    mode: ModeName = "budget"
    """which desk of agents (docs/agents.md); firm also sets influence earned, timeout_seconds
    30 and quorum 3, swarm influence earned and quorum 0"""

    active_agents: tuple[str, ...] = Field((), strict=False, max_length=MAX_AGENTS)
    """agents by name; when not empty it wins over mode"""

    influence: Literal["full", "shadow", "earned"] = "full"
    """whether what agents say counts; shadow: they are asked and recorded only; earned: shadow
    until the scorecard's rule promotes them (docs/scorecard.md)"""

    outage_size: Share = 0.25
    """largest share of an opening's size while no agent is heard because models fail; never
    more than one word of the desk (docs/debate.md, Outage)"""

    none_cost: float = Field(NONE_COST, ge=0, le=OPPOSITION_COST)
    """share of an opening's conviction that is lost at least where a manager or a judge takes
    no side and an analyst is opposed (docs/debate.md)"""

    debate_rounds: int = Field(1, ge=1, le=3)
    """rounds of bull against bear"""

    rebuttal: Choice = "auto"
    """whether bull and bear answer each other in a second round (auto: in mode firm, where
    analysts oppose each other or the agents may change the verdict; never where the rules
    answer)"""

    quorum: int = Field(3, ge=0, le=MAX_AGENTS)
    """analysts' reports, abstentions included, without which a desk of four or more analysts
    skips its researchers"""

    second_look: Choice = "auto"
    """whether a report of low confidence is thought over once more, if time and budget allow
    (auto: in modes full and firm)"""

    provider: Annotated[
        Literal["rules", "recorded", "anthropic", "google", "openai_compatible"] | StrictStr,
        or_plug_in("rules", "recorded", *VENDORS),
    ] = "rules"
    """who answers; rules need no key and no network; openai is short for openai_compatible"""

    quick_think_model: ModelName = ""
    """model of the analysts and the gate, or vendor:model; empty = the provider's"""

    deep_think_model: ModelName = ""
    """model of the researchers, or vendor:model; empty = the provider's"""

    chief_think_model: ModelName = ""
    """model of an escalated trader, or vendor:model; empty = the provider's"""

    escalation: EscalationSettings = EscalationSettings()
    """when the trader is asked of the chief tier"""

    role_models: dict[str, ModelName] = {}
    """model, or vendor:model, of single agents by name; wins over the tier"""

    role_caps: dict[str, dict[str, int]] = {}
    """longest prompt and answer of single agents by name: prompt_bytes (2,000 to 24,000; else
    10,000, a judge's 20,000), output_tokens (200 to 8,000; else by tier)"""

    fallback_models: tuple[ModelName, ...] = Field((), strict=False, max_length=MAX_FALLBACKS)
    """vendors, or vendor:model, asked in turn while those before are down for a tick"""

    max_api_cost_per_hour: float = Field(2.00, ge=0)
    """USD that any sliding hour may cost (rules cost nothing)"""

    off_tick_share: Share = 0.25
    """share of that hour for all models asked beside the ticks: reviews of trades, tests of a
    model"""

    timeout_seconds: float = Field(15.0, gt=0, le=900)
    """a tick's deadline, in real seconds"""

    call_policy: Literal["always", "pivotal"] = "always"
    """when agents are asked; pivotal: only where they could change a verdict"""

    pivotal_sample: Share = 0.05
    """how often pivotal asks the agents although it need not"""

    include_news: bool = False
    """collect headlines (section news) and show them to the news agent"""

    include_markov_context: bool = True
    """show agents the Markov state and its transitions"""

    include_sentiment_history: bool = True
    """show agents the recent consensus scores"""

    history_lookback: int = Field(10, ge=1, le=100)
    """how many past ticks the memory context holds"""

    memory: MemorySettings = MemorySettings()
    """lessons of closed trades (docs/memory.md)"""

    gate_call: Literal["always", "openings"] = "always"
    """when the gate's model is asked; openings: only where a position can open, its rules stand
    always"""

    judge_hold: Literal["size", "veto"] = "size"
    """what a judge that takes no side does to an opening: lessens its size, or vetoes it"""

    judge_close: Literal["off", "propose"] = "propose"
    """whether a close that the judge asks for is proposed to a person"""

    trust: Literal["prior", "flat"] = "prior"
    """whose word counts how much in a swarm: by regime as tabled, or all alike"""

    standing: Literal["off", "on"] = "off"
    """whether the swarm is told how often each of it was right, and the judge's chances are
    held to what came of them"""

    picture: Literal["off", "rendered", "file"] = "off"
    """whether a role may see the chart: drawn here (extra chart), or MT5's own file"""

    picture_file: str = ""
    """where MT5 writes its screenshot; {symbol} and {timeframe} are filled in"""

    @field_validator("role_caps")
    @classmethod
    def _within_bounds(cls, value: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
        for role_id, caps in value.items():
            for name, most in caps.items():
                if name not in CAPS:
                    raise ValueError(f"{name} of {role_id} is no cap: name {' or '.join(CAPS)}")
                low, high = CAPS[name]
                if not low <= most <= high:
                    raise ValueError(f"{name} of {role_id} is {most}: give {low:,} to {high:,}")
        return {role_id: caps for role_id, caps in value.items() if caps}

    @model_validator(mode="wrap")
    @classmethod
    def _as_the_mode_says(
        cls, given: Any, handler: ModelWrapValidatorHandler[AgentSettings]
    ) -> AgentSettings:
        """Fill in what a mode sets for a profile that writes no value of its own.

        It does not count as set: it gives way to the defaults of another mode.
        """
        row = MODES.get(str(given.get("mode"))) if isinstance(given, Mapping) else None
        if row is None:
            return handler(given)
        defaults = row.defaults.get("agents", {})
        settings = handler({**defaults, **given})
        settings.model_fields_set.difference_update(defaults.keys() - given.keys())
        return settings

    @field_validator("fallback_models")
    @classmethod
    def _check_fallbacks(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        named = [name.partition(":") for name in value]
        vendors = [vendor for vendor, _, _ in named]
        if any(vendor not in VENDORS or (colon and not model) for vendor, colon, model in named):
            raise ValueError(f"name vendors or vendor:model; vendors are {', '.join(VENDORS)}")
        if len({*vendors}) < len(vendors):
            raise ValueError(
                "name each vendor once: one that is down is down with all of its models"
            )
        first = {vendor for vendor, _ in cls.model_construct(**info.data).first_routes()}
        if idle := [name for name, vendor in zip(value, vendors, strict=True) if first == {vendor}]:
            raise ValueError(
                f"every agent asks the vendor of {idle[0]} first, so that it stands in for nobody: "
                "take it out"
            )
        return value

    def desk(self) -> tuple[str, ...]:
        """Return the ids of the agents at this desk in asking order, the gate last."""
        seats = dict.fromkeys(self.active_agents or self.row().seats)
        seats.pop(GATE_ID, None)
        return (*seats, GATE_ID)

    def row(self) -> Mode:
        """Return the row of this desk's mode; agents that a profile names walk its stages too."""
        return MODES[self.mode]

    def _is_on(self, choice: str, auto: bool) -> bool:
        """Tell whether a choice is made: auto is what the mode says of its own agents."""
        return choice in ("on", "always") or (choice == "auto" and auto and not self.active_agents)

    def rebuts(self) -> bool:
        """Tell whether a second round is held where it is worth one: none of the rules is."""
        worth = self.rebuttal == "auto" and self.provider != "rules" and self.debate_rounds == 1
        return worth and self._is_on("auto", self.row().rebuttal)

    def most_rounds(self) -> int:
        """Return in how many rounds bull and bear are asked at most."""
        return max(self.debate_rounds, 2 if self.rebuts() or self.rebuttal == "always" else 1)

    def consulted(self) -> str:
        """Return who is asked alone where an opening would stand, "" for nobody."""
        return self.row().consults

    def seats_experts(self) -> bool:
        """Tell whether the evidence of the swarm's experts is to be worked out."""
        return not {*EXPERTS}.isdisjoint(self.desk())

    def looks_again(self) -> bool:
        """Tell whether a doubtful report is to be looked at a second time."""
        return self._is_on(self.second_look, self.row().second_look)

    def remembers(self) -> bool:
        """Tell whether a tick is told of lessons of earlier trades."""
        return self._is_on(self.memory.use, self.row().memory)

    def ladder(self) -> Iterator[AgentSettings]:
        """Yield these settings and those of the desks below, the dearest first.

        Agents that a profile names have no desk below them.
        """
        yield self
        below = "" if self.active_agents else self.row().below
        while below:
            yield self.model_copy(update={"mode": below})
            below = MODES[below].below

    def model(self, role_id: str, tier: str) -> str:
        """Return what an agent of a tier (quick, deep, chief) asks: "model" or "vendor:model"."""
        named = self.role_models.get(role_id) or getattr(self, f"{tier}_think_model")
        # a plug-in may know the tiers
        return str(named or MODELS.get(self.provider, {}).get(tier, tier))

    def caps(self, role_id: str, tier: str) -> tuple[int, int]:
        """Return the longest prompt, in bytes, and the longest answer, in tokens, of an agent."""
        own = self.role_caps.get(role_id, {})
        return (
            own.get("prompt_bytes", PROMPT_BYTES.get(role_id, MAX_PROMPT_BYTES)),
            own.get("output_tokens", OUTPUT_TOKENS[tier]),
        )

    def fallbacks(self, tier: str) -> tuple[tuple[str, str], ...]:
        """Return (vendor, model) of those who stand in for an agent of a tier, in their order."""
        spare = (name.partition(":") for name in self.fallback_models)
        return tuple((vendor, model or MODELS[vendor][tier]) for vendor, _, model in spare)

    def first_routes(self) -> tuple[tuple[str, str], ...]:
        """Return every (provider, model) that is asked while nobody is down."""
        named = (*(self.model("", tier) for tier in self.tiers()), *self.role_models.values())
        return tuple(route(name, self.provider) for name in named)

    def tiers(self) -> tuple[str, ...]:
        """Return the tiers of models that a desk with these settings may ask."""
        chief = self.consulted() and self.escalation.when != "off"
        return ("quick", "deep", "chief") if chief else ("quick", "deep")

    def routes(self) -> tuple[tuple[str, str], ...]:
        """Return every (provider, model) that a desk with these settings may ask."""
        spares = (self.fallbacks(tier) for tier in self.tiers())
        return tuple(dict.fromkeys(chain(self.first_routes(), *spares)))

    def vendors(self) -> tuple[str, ...]:
        """Return every provider that a desk with these settings may ask."""
        return tuple(dict.fromkeys(vendor for vendor, _ in self.routes()))

    def paid(self) -> tuple[str, ...]:
        """Return those providers of this desk that may have to be paid."""
        return tuple(filter(may_cost, self.vendors()))


class DebateSettings(Section):
    """What `deliberate` is configured with: the agents, the gate's numbers, the vectors' weights.

    `weights` says how much each vector weighs in the composite, for the panel's arithmetic alone;
    without any they weigh equally much. `officer`: the risk officer's rows and the regime's budget
    count, also while a cheaper desk stands in.
    """

    agents: AgentSettings = AgentSettings()
    gate: GateSettings = GateSettings()
    weights: dict[str, Annotated[float, Field(ge=0, le=1e6)]] = {}
    officer: bool | None = None

    def has_officer(self) -> bool:
        """Tell whether the risk officer's rows count; where nothing is set the mode says so."""
        return self.agents.row().officer if self.officer is None else self.officer
