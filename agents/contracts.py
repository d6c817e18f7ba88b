"""The types of the debate: what goes in, what a model is asked, what comes back.

Every value that passes between the stages of a deliberation is declared here, and nothing else is.
The module imports only the standard library, so that `agents/`, `agent_framework`,
`agent_config` and `scoring_rubric` lift out into another program. Nothing here performs I/O or
reads a clock.

A report is a value: an agent that has nothing to say abstains with a reason. Only broken machinery
raises, and the single exception is `ModelUnavailable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar, get_args

VECTORS: Final = ("price_action", "key_levels", "momentum", "structure")
"""The four scores, in the order in which they are shown and stored."""

ADJUSTMENT_BOUND: Final = 0.30
"""No report and no synthesis moves a score further than this (document 001, "Debate Synthesis
Logic").
"""

RESEARCHER_BOUND: Final = 0.15
"""No researcher, and so no debate, shifts a score further than this (document 001)."""

SIDES: Final[Mapping[str, int]] = MappingProxyType({"bull_researcher": 1, "bear_researcher": -1})
"""The two seats of the debate, and the way in which each of them argues."""

BLEND_WEIGHT: Final = 0.20
"""Share of layer 2 in the blended score; the deterministic layer keeps 0.80 (document 001)."""

PNG: Final = b"\x89PNG\r\n\x1a\n"
JPEG: Final = b"\xff\xd8\xff"
"""The first bytes of a picture."""

SCORE_DECIMALS: Final = 8
"""Scores are rounded to this many decimals before they are compared, stored or hashed."""

EVENT_CLASSES: Final = (
    "earnings",
    "guidance",
    "rating",
    "regulatory",
    "macro",
    "geopolitical",
    "supply",
    "other",
)
"""Subjects of headlines. These words are Torra's own, so they may stand in any prompt."""

ORDINALS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "relevance": (0, 2),
        "sentiment": (-1, 1),
        "price_impact": (-3, 3),
        "trend": (-1, 1),
        "investor_confidence": (-3, 3),
        "risk_profile_change": (-2, 2),
    }
)
"""Whole numbers that the news agent gives, with their ranges (PrimoGPT's features)."""

Confidence = Literal["high", "medium", "low"]
Shape = Literal[
    "report",
    "case",
    "news",
    "ruling",
    "scores",
    "review",
    "report_ahead",
    "case_ahead",
    "news_ahead",
    "judgement",
    "thesis",
    "regime",
    "finding",
    "geometry",
    "decision",
]
Tier = Literal["quick", "deep", "chief"]
Focus = Literal["primary", "secondary"]
Kind = Literal[
    "analyst",
    "researcher",
    "reader",
    "judge",
    "arbiter",
    "gate",
    "scorer",
    "reviewer",
    "trader",
    "seat",
]
Bias = Literal["UP", "DOWN", "NEUTRAL"]
RegimeName = Literal["trend_up", "trend_down", "range", "volatile", "quiet"]
Winner = Literal["LONG", "SHORT", "NONE"]
Horizon = Literal["bars_4", "bars_16", "session", "days"]

OPINIONS: Final[frozenset[Kind]] = frozenset(("analyst", "researcher", "judge"))
"""Kinds of agents whose words move scores."""

REGIMES: Final[tuple[RegimeName, ...]] = get_args(RegimeName)
"""Kinds of market that a reader may name: the code's own (document 003 has the same five)."""

BIASES: Final[Mapping[str, int]] = MappingProxyType({"UP": 1, "DOWN": -1, "NEUTRAL": 0})
"""Which way an expert or a reader leans in a word."""

NO_ANOMALY: Final = "none"
ANOMALIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "liquidity": ("whale_cvd_divergence", "stop_sweep"),
        "microstructure": ("imbalance", "fragile", "fake_wall"),
        "macro": ("options_panic", "macro_divergence"),
        "geometry": (
            "geometric_trap",
            "fake_breakout",
            "exhaustion_top",
            "capitulation_bottom",
            "clean_breakout",
            "accumulation_range",
        ),
    }
)
"""What each expert may call odd, beside `none` (document 003; its liquidation hunting is a sweep of
stops here, which bars can show).
"""

WALL_EVENTS: Final = 20.0
"""Changes of the order book within a bar from which a wall that vanished can be told."""

PATTERNS: Final = (
    "head_shoulders",
    "inverse_head_shoulders",
    "double_top",
    "double_bottom",
    "bull_flag",
    "bear_flag",
    "ascending_triangle",
    "descending_triangle",
    "rising_wedge",
    "falling_wedge",
)
"""Patterns that the geometry expert may name, of those that code found in the bars
(`geometry.pattern.NAME` is 1).
"""

WINNERS: Final[Mapping[str, int]] = MappingProxyType({"LONG": 1, "SHORT": -1, "NONE": 0})
"""Whom an arbiter may name, and which way that is."""

HORIZON_BARS: Final = (1, 96)
"""Fewest and most bars that a trader may hold its thesis for."""


ASKED_AGAIN: Final = frozenset(("error", "garbage"))
"""Reasons after which one more attempt may help, unless the raiser says otherwise."""


class ModelUnavailable(Exception):
    """A model gave no usable answer; the agent that asked is skipped.

    `reason` is one word for the record: timeout, error, garbage, refused, budget, deadline,
    wrong_symbol, miss, blocked (the vendor is not asked for an hour). `again` is the number of
    seconds after which one more attempt may help, None when it will not; by default 0 after an
    error or garbage. `billed` is False when the vendor surely charged nothing for the attempt.
    """

    def __init__(
        self,
        reason: str,
        detail: str = "",
        *,
        again: float | Literal["default"] | None = "default",
        billed: bool = True,
    ) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail, self.billed = reason, detail, billed
        at_once = 0.0 if reason in ASKED_AGAIN else None
        self.again = at_once if again == "default" else again


class SourceType(StrEnum):
    """The source of a tick's scores (docs/debate.md, "When things fail")."""

    AGENT_FULL = "AGENT_FULL"
    AGENT_BUDGET = "AGENT_BUDGET"
    AGENT_FIRM = "AGENT_FIRM"
    AGENT_SWARM = "AGENT_SWARM"
    AGENT_CUSTOM = "AGENT_CUSTOM"
    AGENT_PARTIAL = "AGENT_PARTIAL"
    AGENT_SKIPPED = "AGENT_SKIPPED"
    LEGACY = "LEGACY"
    L1_ONLY = "L1_ONLY"


UNHEARD: Final = frozenset((SourceType.LEGACY, SourceType.L1_ONLY, SourceType.AGENT_SKIPPED))
"""Sources of a tick without an opinion, the report of one of OPINIONS that did not abstain."""


class GateReason(StrEnum):
    """Why the gate lowered a multiplier or vetoed an opening."""

    NONE = "NONE"
    STALE_DATA = "STALE_DATA"
    THIN_DATA = "THIN_DATA"
    WIDE_SPREAD = "WIDE_SPREAD"
    HIGH_VOLATILITY = "HIGH_VOLATILITY"
    LOSING_STREAK = "LOSING_STREAK"
    OPEN_EXPOSURE = "OPEN_EXPOSURE"
    DISAGREEMENT = "DISAGREEMENT"
    SESSION_END = "SESSION_END"
    SCHEDULED_EVENT = "SCHEDULED_EVENT"
    WEAK_CASE = "WEAK_CASE"
    MODEL_JUDGEMENT = "MODEL_JUDGEMENT"


class OfficerReason(StrEnum):
    """Why the risk officer's rows, or the judge, lowered a multiplier or vetoed an opening.

    Apart from `GateReason`, which a gate's model may name.
    """

    MACRO_PANIC = "MACRO_PANIC"
    LIQUIDATIONS = "LIQUIDATIONS"
    EXHAUSTION = "EXHAUSTION"
    CROWDED = "CROWDED"
    NEGATIVE_EV = "NEGATIVE_EV"
    JUDGE_HOLD = "JUDGE_HOLD"


CHECKED: Final = MappingProxyType({"allow_inf_nan": False, "revalidate_instances": "always"})
"""How pydantic checks a report that an agent of another hand returned: anew, numbers finite."""


class Feature(NamedTuple):
    """One number or word of evidence, computed by code, that an agent may cite by its `id`.

    `decimals` is how many decimals a prompt shows of the number; None shows 8 significant digits.
    """

    id: str
    value: float | str | None
    unit: str = ""
    as_of: str = ""
    note: str = ""
    decimals: int | None = None

    @property
    def block(self) -> str:
        """The part of the id before the first dot: scores, technical, memory and so on."""
        return self.id.split(".", 1)[0]


class Evidence(NamedTuple):
    """A feature as a report cites it."""

    id: str
    value: float | str | None


class Point(NamedTuple):
    """One argument of a report: what a feature reads, in words, and why it matters now.

    `side` is where the evidence puts it: +1 for higher prices, -1 for lower, 0 where neither can be
    told.
    """

    says: str
    id: str
    value: float | str | None
    why: str = ""
    side: int = 0


class Rebuttal(NamedTuple):
    """A researcher's answer to the other side's strongest point, by the feature of that point."""

    says: str
    id: str
    value: float | str | None
    grants: bool


class Falsifier(NamedTuple):
    """A close that would end a case: above or below a level, within so many bars.

    `what` names the level.
    """

    close: Literal["above", "below"]
    level: float
    what: str
    bars: int


@dataclass(frozen=True, slots=True)
class GateRuling:
    """What the gate decided: a multiplier in [0, 1] and a veto of openings, with reason codes.

    `veto_sides` are the sides, BUY or SELL, on which alone openings are vetoed.
    """

    __pydantic_config__: ClassVar = CHECKED

    multiplier: float = 1.0
    veto: bool = False
    reasons: tuple[str, ...] = ()
    detail: str = ""
    veto_sides: tuple[str, ...] = ()

    def vetoes(self, side: str) -> bool:
        """Tell whether an opening of a side, BUY or SELL, may not be made."""
        return self.veto or side in self.veto_sides


@dataclass(frozen=True, slots=True)
class AgentReport:
    """What one agent said.

    `adjustments` maps a vector to a number in [-0.3, +0.3] or to None (not scored; 0.0 is a neutral
    vote). `claim` is its first sentence; `points_for` lean to the report's own side and
    `points_against` are what it grants. A gate's report carries a `ruling` and its `reasoning`, and
    scores nothing. `key_points` are the points of a report as others are shown it.
    `flags` are what the framework has against the reply, `ungrounded` and `clamped` among them.
    `rebuttals` answer the other researcher, `falsifiers` say what would prove a researcher's case
    wrong; `ordinals` are the news agent's (ORDINALS).

    `horizon` and `risks` are what a firm's opinions say of the time ahead. An arbiter's report has
    a `winner` and `weights` in [0, 1], by researcher. A trader's has `horizon_bars`, and `declined`
    with a `decline_code` where it would not make the opening; its `falsifiers` end the trade.

    An expert's has a `bias`, the `anomaly` and `pattern` that it names, "" for none, and `levels`,
    the ids of computed levels (geometry.level.N) that it names. A reader's has a `regime`, a
    `bias`, a `budget` in [0, 1] and the expert that goes `first`, "" for none. A judge's has a
    `winner`, the side that it takes, a `counter` that speaks against it with the `falsifiers` that
    would prove it, a `win_share` in [0, 1], and `close` where it would end an open position.
    """

    __pydantic_config__: ClassVar = CHECKED

    agent_id: str
    adjustments: Mapping[str, float | None] = field(default_factory=dict)
    confidence: Confidence = "low"
    reasoning: str = ""
    key_points: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    flags: tuple[str, ...] = ()
    abstained: bool = False
    reason: str = ""
    ruling: GateRuling | None = None
    falsifiers: tuple[str, ...] = ()
    ordinals: Mapping[str, int] = field(default_factory=dict)
    claim: str = ""
    points_for: tuple[Point, ...] = ()
    points_against: tuple[Point, ...] = ()
    rebuttals: tuple[Rebuttal, ...] = ()
    horizon: Horizon | Literal[""] = ""
    risks: tuple[str, ...] = ()
    winner: Winner | Literal[""] = ""
    weights: Mapping[str, float] = field(default_factory=dict)
    horizon_bars: int = 0
    declined: bool = False
    decline_code: str = ""
    bias: Bias | Literal[""] = ""
    anomaly: str = ""
    pattern: str = ""
    levels: tuple[str, ...] = ()
    regime: RegimeName | Literal[""] = ""
    first: str = ""
    counter: str = ""
    close: bool = False
    budget: float | None = None
    win_share: float | None = None

    @property
    def main_claim(self) -> str:
        """Its claim, or the reasoning of a report that has none."""
        return self.claim or self.reasoning

    @classmethod
    def abstain(cls, agent_id: str, reason: str) -> AgentReport:
        """Return the report of an agent that has nothing to go on."""
        return cls(agent_id, dict.fromkeys(VECTORS), abstained=True, reason=reason)


@dataclass(frozen=True, slots=True)
class Role:
    """One seat at the desk.

    `focus` names the vectors that the agent may touch and how much its word weighs there; `needs`
    the id prefixes of which at least one must have a value, or it abstains; `evidence` the id
    prefixes that its prompt shows, `ahead` those that it shows too where reports look ahead, at a
    firm. `task` is what its prompt tells it to do (scoring_rubric.task_of adds what all analysts
    are told), `shape` the reply that it is asked for.
    """

    id: str
    title: str
    kind: Kind
    tier: Tier = "quick"
    focus: Mapping[str, Focus] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()
    task: str = ""
    shape: Shape = "report"
    bound: float = ADJUSTMENT_BOUND
    picture: bool = False


@dataclass(frozen=True, slots=True)
class DebateContext:
    """Everything that a deliberation may know about one tick. Times are ISO 8601 in UTC.

    `scores` are the four L1 scores in [-1, +1]; `notes` one line about each; `features` the
    evidence by id; `memory` the memory context of document 001. `reports` is empty at first: the
    framework fills it for the later stages. `nonce` is fresh random text for this tick, from which
    the framework draws one for each call to fence quoted prose; without it no prose of one agent is
    shown to another. `asset` is the asset class of the symbol (scoring_rubric.ASSET_NOTES), "" for
    none. `lessons` are notes on earlier trades, quoted to the agents that the settings name.
    `pivotal` says that the host thinks the agents may change its verdict. `ahead`: reports name the
    time that they speak for (agent_config.Mode).
    """

    symbol: str
    timeframe: str
    bar_time: str
    as_of: str
    scores: Mapping[str, float]
    notes: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, Feature] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    reports: tuple[AgentReport, ...] = ()
    picture: bytes | None = None
    nonce: str = ""
    asset: str = ""
    lessons: tuple[str, ...] = ()
    pivotal: bool = False
    ahead: bool = False


@dataclass(frozen=True)
class Prompt:
    """What an agent wants to ask; the framework turns it into a `Request`.

    `shape` names the reply that is expected: an analyst's report, a researcher's case (a report
    with rebuttals and falsifiers), the news agent's report (with ordinals), a gate's ruling, a
    scorer's scores, a reviewer's words on a closed trade, an arbiter's judgement, a trader's
    thesis. The first three `ahead` are those of today with a horizon, and a case with its risks. A
    swarm's are a reader's regime, an expert's finding, that of geometry, a judge's decision.
    """

    system: str
    user: str
    shape: Shape
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One call to a model. A provider reads it and needs nothing else.

    `model` is as the settings name it, "model" or "vendor:model" (agent_config.route). `schema` is
    the JSON schema of the reply, every field required. `features` and `reports` hold, as values,
    just what the prompt shows as text: a provider that is no language model reads them instead of
    the prose, and one that is `synchronous` is given reports without any. `limit_s` is how long, in
    seconds, the answer is awaited; `delay_s` of them a second attempt lets pass before it is sent,
    because the first one's failure asked for it. For `linger_s` more, until the deadline, a late
    answer is still worth recording with its cost.
    """

    role: Role
    round: int
    attempt: int
    symbol: str
    timeframe: str
    bar_time: str
    model: str
    prompt: Prompt
    schema: Mapping[str, Any]
    features: Mapping[str, Feature]
    reports: tuple[AgentReport, ...]
    scores: Mapping[str, float]
    max_output_tokens: int
    limit_s: float
    nonce: str = ""
    picture: bytes | None = None
    delay_s: float = 0.0
    linger_s: float = 0.0

    @property
    def system(self) -> str:
        """The system text."""
        return self.prompt.system

    @property
    def user(self) -> str:
        """The user text."""
        return self.prompt.user


@dataclass(frozen=True)
class Completion:
    """The answer of a provider: the text as it came, how it ended, and what it cost.

    `input_tokens` counts all input, `cached_tokens` the part of it that a cache supplied.
    `output_tokens` counts everything billed as output, thinking too. `stop_reason` is end, length
    (cut off at the output limit), context (of the model's window), refusal, filter, tool, paused,
    malformed, empty or other. `final` means that no
    second look may follow, because none did when this answer was recorded. `reply` is set by a
    provider that composed the answer itself: the object whose JSON the text is, so that nobody has
    to write and parse it. `detail` says who was asked in vain before, and why.
    """

    text: str
    model: str
    provider: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    stop_reason: str = "end"
    cached_tokens: int = 0
    final: bool = False
    reply: dict[str, Any] | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CallBound:
    """The most that one agent of a stage can use: `reserve` grants it before any call.

    `prompt_bytes` bounds system and user text of one request in UTF-8, `output_tokens` its answer.
    `round` is the round that it covers, `requests` the most requests in it, from `attempt` on. A
    later `attempt` than the first takes the place of what was granted for it before.
    """

    role_id: str
    model: str
    prompt_bytes: int
    output_tokens: int
    requests: int
    round: int = 1
    picture: bool = False
    tier: Tier = "deep"
    attempt: int = 1


Ask = Callable[[Prompt], AgentReport]
"""How an agent asks: raises `ModelUnavailable`, and only that."""

Submit = Callable[[Request], "Future[Completion]"]
"""How the framework reaches a provider."""

S = TypeVar("S", bound=Callable[..., "Future[Completion]"])


def synchronous(submit: S) -> S:
    """Mark a submit whose results are answered already, and that sends no prose out.

    The desk then runs its own agents one after the other on the caller's thread.
    """
    # On a bound method this would mark the function of its class: hand in a partial.
    vars(submit)["synchronous"] = True
    return submit


def is_synchronous(submit: Submit | None) -> bool:
    """Return whether a submit carries that mark."""
    return getattr(submit, "synchronous", False) is True


Reserve = Callable[[str, tuple[CallBound, ...]], bool]
"""`reserve(stage, worst_case)`: False means that the stage makes no call, for "budget"; so does
ModelUnavailable, for its own reason. A bound of a later `attempt` is asked for within its stage, on
the thread of its agent.
"""

Analyze = Callable[[DebateContext, Ask], AgentReport]
"""The one function of an agent file."""

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
