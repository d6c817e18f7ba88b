"""TickRecord: the record of a tick as a value, for whoever writes or reads one.

`torra.tick.record.build` writes it, and the sentiment row keeps its deliberation. Parts that the
tick itself had as a value are of that value's type: reports, panel, events, outside numbers.
`load` reads it, and is strict: a record that lacks a key, or has a value of another type or a
number that is not finite, is `Damaged`, with the reason. Nothing raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self, TypeVar, overload

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import to_json

from agents.contracts import VECTORS, AgentReport, GateRuling, SourceType
from agents.debate.deliberation import Consulted
from agents.debate.scoring import Panel
from agents.debate.swarm import Board, ExpectedValue
from torra.clock import TIMEFRAMES, parse
from torra.errors import MALFORMED
from torra.evaluation.standing.track_record import TrackRecord
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_readings import OutsideView
from torra.evidence.scheduled_events import EventView
from torra.market.spreads import SpreadView
from torra.tick.marks import GATE, SHADOW, OrderPhrase
from torra.verdict.risk_engine import Account, OpenSide

Value = float | str | None
"""A value of evidence: a number or a word."""

Numbers = dict[str, float]


def _has_vectors(known: dict[str, T]) -> dict[str, T]:
    if missing := [vector for vector in VECTORS if vector not in known]:
        raise ValueError(f"without {', '.join(missing)}")
    return known


def _has_ath(known: Numbers) -> Numbers:
    if "ath" not in known:
        raise ValueError("without ath")
    return known


def _is_exposure(known: dict[str, JsonValue]) -> dict[str, JsonValue]:
    account: dict[str, Any] = {n: value for n, value in known.items() if n != LAST_PRICE}
    ACCOUNT.validate_json(to_json(account), strict=True)
    Account(trading_state="", **account)  # a key that none or that no record has raises TypeError
    LATEST.validate_python(known.get(LAST_PRICE), strict=True)
    return known


def _is_time(text: str) -> str:
    parse(text)
    return text


T = TypeVar("T")
ByVector = Annotated[dict[str, T], AfterValidator(_has_vectors)]
"""A value for each vector at least."""

Time = Annotated[str, AfterValidator(_is_time)]
Timeframe = Annotated[str, AfterValidator(lambda name: TIMEFRAMES[name] and name)]
Verdict = Literal["BUY", "SELL", "HOLD"]
Side = Literal["BUY", "SELL"]

LAST_PRICE: Final = "last_price"
"""Key of the market's own price within the exposure, where a broker quotes."""

ACCOUNT: Final = TypeAdapter(Account)
LATEST: Final = TypeAdapter(float | None)

REASON_SHOWN: Final = 200
"""Most characters of what is wrong with a damaged record."""


class RecordPart(BaseModel):
    """A part of a record. A type is what it says, a number finite; other keys are left alone."""

    model_config = ConfigDict(
        frozen=True, strict=True, allow_inf_nan=False, extra="ignore", defer_build=True
    )

    @classmethod
    def parse(cls, stored: Mapping[str, Any] | str) -> Self:
        """Return what JSON says, as values or as text; ValueError where it does not fit."""
        return cls.model_validate_json(stored if isinstance(stored, str) else to_json(stored))

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values, with the keys that it was made of, in the order of its type."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)


class GateRecord(RecordPart):
    """The ruling in force, with that of the rules.

    `budget` is the share of a size that the regime leaves beside the rules, where an officer sits.
    """

    multiplier: float
    veto: bool
    reasons: tuple[str, ...]
    veto_sides: tuple[str, ...] = ()
    budget: float | None = None
    rule: GateRuling

    @property
    def ruling(self) -> GateRuling:
        """The ruling in force as the gate's own value."""
        return GateRuling(self.multiplier, self.veto, self.reasons, veto_sides=self.veto_sides)


class StoredCall(RecordPart):
    """A request and its answer; the deliberation has it without texts."""

    role_id: str
    stage: str
    round: int
    attempt: int
    status: str
    model: str
    provider: str
    request_hash: str
    detail: str = ""
    stop_reason: str = ""
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cost_usd: float
    elapsed_ms: float
    system: str = ""
    user: str = ""
    reply: str = ""


class StageRecord(RecordPart):
    """A stage of a sitting: who was asked in it, and how it ended for each."""

    name: str
    round: int
    agents: dict[str, str]
    ms: float | None = None
    status: str


class RegimeDirective(RecordPart):
    """The regime of a swarm: the code's word, the reader's, the budget, who goes first."""

    code: str
    reader: str
    budget: float
    first: str
    disputed: bool


class SwarmRecord(RecordPart):
    """What regime, board and judge of a swarm came to.

    `budget` is what the regime leaves of a size beside the storm's factor of the multiplier.
    """

    regime: RegimeDirective
    trust: Numbers
    budget: float
    storm: float
    board: Board
    judgement: ExpectedValue | None
    thin: bool


class DebateRecord(RecordPart):
    """The deliberation of a tick, as the sentiment row keeps it."""

    source_type: SourceType
    analyst_avg: ByVector[float]
    debate: ByVector[float]
    adjustments: ByVector[float]
    ruling: GateRuling
    rule_ruling: GateRuling
    reports: tuple[AgentReport, ...]
    earlier: tuple[AgentReport, ...]
    failures: dict[str, str]
    unasked: dict[str, str]
    panel: Panel
    calls: tuple[StoredCall, ...]
    stages: tuple[StageRecord, ...]
    flags: tuple[str, ...]
    cost_usd: float
    elapsed_ms: float
    consulted: Consulted | None = None
    swarm: SwarmRecord | None = None

    @property
    def every_report(self) -> tuple[AgentReport, ...]:
        """The reports of the desk, and after them the trader's where it was asked."""
        report = self.consulted.report if self.consulted else None
        return (*self.reports, report) if report else self.reports

    @property
    def silences(self) -> Mapping[str, str]:
        """Why an agent that was asked gave no report, the trader among them."""
        trader = self.consulted
        if not trader or not trader.failure:
            return self.failures
        return {**self.failures, trader.agent: trader.failure}

    @property
    def manager(self) -> AgentReport | None:
        """The report of whoever weighed both cases; None where nobody did."""
        arbiters = (one for one in self.reports if one.weights or one.winner)
        return next((one for one in arbiters if one.win_share is None), None)

    @property
    def judge(self) -> AgentReport | None:
        """The report of whoever judged the experts' words; None where nobody did."""
        return next((one for one in self.reports if one.win_share is not None), None)

    @property
    def reader(self) -> AgentReport | None:
        """The report of whoever read the regime; None where nobody did."""
        return next((one for one in self.reports if one.regime), None)

    @property
    def in_shadow(self) -> bool:
        """Whether the agents only looked on and L1 alone decided."""
        return SHADOW in self.flags


def is_gate(report: AgentReport) -> bool:
    """Return whether a report is the gate's."""
    return report.ruling is not None or report.agent_id == GATE


def statement(report: AgentReport) -> str:
    """Return what a report says in one sentence: its claim, or the reasoning without one.

    A claim that another agent made before it is none: then it is its first point.
    """
    if "repeated" in report.flags and report.points_for:
        return report.points_for[0].says
    return report.main_claim


class ComponentRecord(RecordPart):
    """A component of an L1 score."""

    name: str
    value: float | None
    weight: float


class Score(RecordPart):
    """A score with its note."""

    score: float
    note: str


class Composite(RecordPart):
    """A timeframe's composite within the consensus."""

    composite: float
    close_time: Time
    weight: float
    fresh: bool


class ThresholdsRecord(RecordPart):
    """The thresholds of a verdict; that of SELL is stored as a size."""

    buy: float
    sell: float


class SignalRecord(RecordPart):
    """A signal as the tick wrote it."""

    sid: str
    kind: str
    instance: str
    symbol: str
    timeframe: str
    bar_time: str
    side: str
    lots: float
    entry: float | None = None
    stop: float | None = None
    target: float | None = None
    atr: float | None = None
    expires: str
    decided_at: str
    state: str
    bridge: str
    closes: str | None = None
    after: str | None = None


class BarRange(RecordPart):
    """The range of bars that was read, and the hash of their values."""

    first: Time = Field(alias="from")
    last: Time = Field(alias="to")
    count: int
    revision: int | None
    hash: str


class FeatureRecord(RecordPart):
    """A feature of the evidence."""

    id: str
    value: Value
    unit: str


class RegimeRecord(RecordPart):
    """The market's regime, and the values that it was read from."""

    name: str
    reads: dict[str, Value]


class Headline(RecordPart):
    """A headline that counted, by the id of its row."""

    id: str
    age_hours: float
    weight: float


class NewsRecord(RecordPart):
    """What was known of the news; `events` has headlines and mean score by class."""

    status: NewsStatus
    unique: int
    score: float | None
    events: dict[str, tuple[int, float]]
    items: tuple[Headline, ...]
    fundamentals: Numbers
    fundamentals_status: NewsStatus


class LessonNote(RecordPart):
    """A lesson that a prompt quoted: its number, author, score and ranks."""

    lesson: int
    author: str
    score: float
    ranks: dict[str, int]


class LessonsRecord(RecordPart):
    """What a tick knew of earlier trades (torra.lessons.recall), without their words."""

    numbers: dict[str, Value]
    notes: tuple[LessonNote, ...]
    corpus: int
    newest: int | None
    digest: str
    nearest: tuple[int, ...]
    flags: tuple[str, ...]


class OpeningContextRecord(RecordPart):
    """What openings were foreseen by at a desk that asks a trader; no record of another has it."""

    held: OpenSide | None
    latched: tuple[str, ...]


class Skipped(RecordPart):
    """Why a tick was not run: a word and a sentence."""

    reason: str
    detail: str


class InstanceBefore(RecordPart):
    """How the instance stood before the tick (JournalStore.standing), and the bars since then.

    A tick that was stored after others of its close stood behind them; `looked` is the newest step
    when it looked, None for one that stood where it looked. A hosted tick has none of it.
    """

    paper_cursor: str | None = None
    latches: tuple[str, ...] = ()
    signal_event: int = 0
    looked: int | None = None
    path: tuple[tuple[Time, float, float, float, float], ...] = ()


class DeskContext(RecordPart):
    """What the whole desk brought to the decision, and when.

    `signal_event` is the newest step of any signal at that moment, as in InstanceBefore at the
    look. `exposure` has values of an Account, and LAST_PRICE. A hosted tick has the moment alone.
    """

    trading_state: str = ""
    decided: str = ""
    signal_event: int | None = None
    exposure: Annotated[dict[str, JsonValue], AfterValidator(_is_exposure)] = {}


class HostedQuestion(RecordPart):
    """What another program's scorer asked (torra.overlay); the record of a desk's tick has none.

    `asked` is the hash of the question, `revision` which answer of the key it is; `own_scores`: L1
    is the host's own. `extra` has its numbers, `told` what of the question was left out, `moment`
    when it was asked. `handed` names all bars that were handed over; `fallback` is what
    the host's own one answered; `late`: it was stored after the host had gone on with L1.
    """

    asked: str
    revision: int
    own_scores: bool
    extra: Numbers
    headlines: tuple[str, ...]
    bars: int
    moment: Time
    told: tuple[str, ...]
    stale: bool
    late: bool = False
    picture: str | None
    handed: BarRange | None
    fallback: Numbers | None


class JournalRecord(RecordPart):
    """The record of a tick as the journal has it: its deliberation stands in its sentiment row."""

    instance: str
    symbol: str
    timeframe: Timeframe
    bar_time: Time
    as_of: Time
    close: float
    atr: float
    ath: float
    ath_price: float
    low_price: float
    records_since: Time | None
    record_score: str
    together: Numbers
    apart: tuple[str, ...]
    l1: ByVector[float]
    notes: dict[str, str]
    components: ByVector[tuple[ComponentRecord, ...]]
    agents: ByVector[float]
    scores: ByVector[Score]
    ungated: ByVector[float]
    low: ByVector[float]
    high: ByVector[float]
    adjustments: ByVector[float]
    composite: float
    consensus: float
    verdict: Verdict
    l1_composite: float
    l1_consensus: float
    l1_verdict: Verdict
    low_consensus: float
    high_consensus: float
    composites: dict[str, Composite]
    weights: Annotated[ByVector[float], AfterValidator(_has_ath)]
    thresholds: ThresholdsRecord
    gate: GateRecord
    action: str
    reason: str
    denied: tuple[str, ...]
    signal: SignalRecord | None
    signals: tuple[SignalRecord, ...]
    proposed: tuple[OrderPhrase, ...]
    sentence: str
    """What it did and why, in words (torra.tick.sentence)."""

    source_type: SourceType
    flags: tuple[str, ...]
    calls: int | tuple[StoredCall, ...]
    """How many were made; where a store has put them in, the calls themselves."""

    cost_usd: float
    elapsed_ms: float
    provider: str
    picture: str | None
    profile: str
    execution: str
    now: Time
    before: InstanceBefore
    desk: DeskContext
    versions: dict[str, str]
    bars: BarRange
    features: tuple[FeatureRecord, ...]
    memory: dict[str, JsonValue]
    regime: RegimeRecord
    news: NewsRecord | None
    events: EventView | None
    spreads: SpreadView | None
    outside: OutsideView | None
    lessons: LessonsRecord | None = None
    standing: TrackRecord | None = None
    company: OpeningContextRecord | None = None
    invented: bool = False
    """Whether what it saw beside the bars is the demo's own invention (torra.outside.invented)."""

    skipped: None
    hosted: HostedQuestion | None = None

    def final(self, vector: str) -> float:
        """Return the blended score of a vector."""
        return self.scores[vector].score


class TickRecord(JournalRecord):
    """The whole record of a tick."""

    deliberation: DebateRecord

    @property
    def record_name(self) -> str:
        """The name of its record score: of the record high alone it is ATH."""
        return "Range" if self.record_score == "both" else "ATH"

    @property
    def stored_calls(self) -> tuple[StoredCall, ...]:
        """The calls with their texts; none once these are pruned."""
        return self.calls if isinstance(self.calls, tuple) else ()

    @property
    def made_calls(self) -> tuple[StoredCall, ...]:
        """The calls, without their texts once these are pruned: the deliberation keeps figures."""
        return self.stored_calls or self.deliberation.calls

    @property
    def budget(self) -> float | None:
        """The share of an opening's size that the regime leaves; None without a risk officer."""
        return self.gate.budget

    @property
    def applied_multiplier(self) -> float:
        """The multiplier that the adjustments were made with.

        It is the one in force, but in shadow: there the desk's own ruling is recorded and the
        gate's rules alone are in force.
        """
        return (self.deliberation.ruling if self.deliberation.in_shadow else self.gate).multiplier


@dataclass(frozen=True, slots=True)
class Damaged:
    """A record that cannot be read: the key of its tick, and what is wrong with it."""

    key: str
    reason: str


R = TypeVar("R", bound=JournalRecord)


@overload
def load(key: str, stored: Mapping[str, Any] | str) -> TickRecord | Damaged: ...
@overload
def load(key: str, stored: Mapping[str, Any] | str, kind: type[R]) -> R | Damaged: ...
def load(
    key: str, stored: Mapping[str, Any] | str, kind: type[JournalRecord] = TickRecord
) -> JournalRecord | Damaged:
    """Return the record of a tick as a value; Damaged where it is none.

    Of a TickRecord `stored` has the deliberation, of a JournalRecord it need not.
    """
    try:
        return kind.parse(stored)
    except MALFORMED as error:
        return Damaged(key, what_is_wrong(error))


def what_is_wrong(error: Exception) -> str:
    """Return in a line what is wrong with a record: where, and what."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "record"
        return f"{place}: {first['msg']}"[:REASON_SHOWN]
    return f"{type(error).__name__}: {error}"[:REASON_SHOWN]
