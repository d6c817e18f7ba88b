"""TickRecord: the record of a tick as a value, for everybody who reads one.

`torra.tick.record.build` writes the record, and the sentiment row keeps its deliberation. This type
describes both. Reading is lenient, in one place (`RecordPart`): what is missing or of another type,
as in records of skipped ticks, of older versions and of hosts, reads as its default. Nothing
raises. `model_fields_set` of a part tells which of its keys the record has; a part of which the
record has no key is false.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self, cast

from pydantic import (
    AllowInfNan,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    Strict,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from agent_config import OPPOSITION_COST
from agents.contracts import SCORE_DECIMALS, GateRuling
from agents.debate.panel import DIRECTIONS
from torra.tick.marks import GATE, SHADOW


class Else:
    """What stands for a value of another type; without any, it is no item of its list or dict."""

    def __init__(self, *default: object) -> None:
        self._default = default

    def __get_pydantic_core_schema__(self, of: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        for default in self._default:
            return core_schema.with_default_schema(handler(of), default=default, on_error="default")
        return core_schema.with_default_schema(handler(of), on_error="omit")


_Finite = Annotated[float, Strict(), AllowInfNan(False)]
Number = Annotated[_Finite | None, Else(None)]
"""A finite number; a bool is none."""

Whole = Annotated[Annotated[int, Strict()] | None, Else(None)]
Word = Annotated[str | None, Else(None)]
Value = Annotated[_Finite | str | None, Else(None)]
"""A value of evidence: a number or a word."""

Words = tuple[Annotated[str, Else()], ...]
Numbers = dict[str, Number]
Texts = dict[str, Annotated[str, Else()]]
Flag = Annotated[bool, Strict()]


class _Empty(dict[str, Any]):
    """An empty dict for every record without one; its hash keeps pydantic from copying it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return 0


_EMPTY: Final = _Empty()


class RecordPart(BaseModel):
    """A part of a record; each field has a default, which stands for what cannot be read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def __get_pydantic_core_schema__(cls, of: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema in which no field and no part fails."""
        schema = handler(of)
        inner = cast("dict[str, Any]", schema)
        while inner["type"] != "model-fields":
            inner = inner["schema"]
        for field in inner["fields"].values():
            told = field["schema"]
            told["on_error"] = "default"
            if told.get("default") == {}:
                told["default"] = _EMPTY
        return core_schema.with_default_schema(
            schema, default_factory=cls.model_construct, on_error="default"
        )

    @classmethod
    def read(cls, told: object) -> Self:
        """Return what is stored as this part; a value of this type stays the same object."""
        return cls.model_validate(told)

    def __bool__(self) -> bool:
        return bool(self.model_fields_set)

    def __hash__(self) -> int:
        # equal parts are of one type; without any hash pydantic would copy a default each time
        return hash(type(self))


class Ruling(RecordPart):
    """A ruling of the gate: of its rules, of its agent, or the one in force."""

    multiplier: Number = None
    veto: Flag = False
    reasons: Words = ()
    detail: Word = None
    veto_sides: Words = ()

    def in_force(self) -> GateRuling:
        """Return what it decided of openings, as the desk's own value."""
        sides, reasons = (tuple(map(str, some)) for some in (self.veto_sides, self.reasons))
        return GateRuling(veto=self.veto, reasons=reasons, veto_sides=sides)

    def with_all_of(self, other: Ruling) -> Ruling:
        """Return this ruling with everything that the other one tells instead."""
        told = {**self.model_dump(exclude_unset=True), **other.model_dump(exclude_unset=True)}
        return Ruling.read(told)


class Gate(Ruling):
    """The ruling in force, with that of the rules.

    `budget` is the share of a size that the regime leaves beside the rules, where an officer sits.
    """

    rule: Ruling = Ruling()
    budget: Number = None


class Cited(RecordPart):
    """A citation of a report: a feature and the value that was read there."""

    id: Word = None
    value: Value = None

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, told: object) -> object:
        # once stored as a pair
        if isinstance(told, (list, tuple)):
            return dict(zip(("id", "value"), told, strict=False))
        return told


class PointRecord(Cited):
    """A point of a report: what a feature reads, why it matters, and the side it stands on."""

    says: Word = None
    why: Word = None
    side: Whole = None


class RebuttalRecord(Cited):
    """An answer of a researcher to the other one's strongest point."""

    says: Word = None
    grants: Flag = False


class ReportRecord(RecordPart):
    """What an agent said; the gate's agent has a ruling.

    `reasoning` is its claim and points as one paragraph, or the gate's own words; `key_points` are
    of the shape before claims and points.
    """

    agent_id: Word = None
    adjustments: Numbers = {}
    confidence: Word = None
    reasoning: Word = None
    key_points: Words = ()
    evidence: tuple[Cited, ...] = ()
    flags: Words = ()
    abstained: Flag = False
    reason: Word = None
    ruling: Ruling | None = None
    falsifiers: Words = ()
    ordinals: Numbers = {}
    claim: Word = None
    points_for: tuple[PointRecord, ...] = ()
    points_against: tuple[PointRecord, ...] = ()
    rebuttals: tuple[RebuttalRecord, ...] = ()
    horizon: Word = None
    risks: Words = ()
    winner: Word = None
    weights: Numbers = {}
    horizon_bars: Whole = None
    declined: Flag = False
    decline_code: Word = None
    bias: Word = None
    anomaly: Word = None
    pattern: Word = None
    levels: Words = ()
    regime: Word = None
    budget: Number = None
    first: Word = None
    counter: Word = None
    win_share: Number = None
    close: Flag = False

    @property
    def said(self) -> str | None:
        """Its claim, or the reasoning of a report that has none.

        A claim that another agent made before it is none: then it is its first point.
        """
        if "repeated" in self.flags and self.points_for:
            return self.points_for[0].says
        return self.claim or self.reasoning

    @property
    def author(self) -> str:
        """The agent's id as text."""
        return str(self.agent_id)

    @property
    def is_gate(self) -> bool:
        """Whether the report is the gate's."""
        return bool(self.ruling) or self.agent_id == GATE


class StoredCall(RecordPart):
    """A request and its answer; the texts are pruned after a time."""

    role_id: Word = None
    stage: Word = None
    round: Whole = None
    attempt: Whole = None
    status: Word = None
    model: Word = None
    provider: Word = None
    request_hash: Word = None
    detail: Word = None
    stop_reason: Word = None
    input_tokens: Number = None
    output_tokens: Number = None
    cached_tokens: Number = None
    cost_usd: Number = None
    elapsed_ms: Number = None
    system: Word = None
    user: Word = None
    reply: Word = None

    @property
    def role(self) -> str:
        """The agent's id as text."""
        return str(self.role_id)


class StageRecord(RecordPart):
    """A stage of a sitting: who was asked in it, and how it ended for each."""

    name: Word = None
    round: Whole = None
    agents: Texts = {}
    ms: Number = None
    status: Word = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, told: object) -> object:
        # once only the names were stored
        if isinstance(told, Mapping) and isinstance(told.get("agents"), (list, tuple)):
            return {**told, "agents": {str(name): "" for name in told["agents"]}}
        return told


class AgreementTold(RecordPart):
    """How far the desk agreed with an opening of one side; older records know no dissent."""

    opposed: Number = None
    opposition: Number = None
    dissent: Number = None
    raw: Number = None
    conviction: Number = None
    leans_against: Flag = False


class PanelTold(RecordPart):
    """How far the desk agreed (agents.debate.panel).

    Up to version 4 of the rules there was one conviction for both sides, and `side`, the way in
    which the debate saw the market: L1 with its adjustments. `agreement` reads both.
    """

    spread: Numbers = {}
    pushes: Numbers = {}
    push: Number = None
    sided: Number = None
    abstained: Number = None
    buy: AgreementTold = AgreementTold()
    sell: AgreementTold = AgreementTold()
    disagreements: Words = ()
    falsifiers: dict[str, Annotated[Words, Else(())]] = {}
    side: Number = None
    stances: Numbers = {}
    opposed: Number = None
    opposition: Number = None
    conviction_raw: Number = None
    conviction: Number = None

    @property
    def of_old(self) -> bool:
        """Whether it is a panel of the time before the opinions' own pushes counted."""
        return bool(self) and not self.buy and self.conviction is not None

    def agreement(self, side: str) -> AgreementTold | None:
        """Return how far the desk agreed with an opening BUY or SELL; None where it is not told."""
        if not self.of_old:
            found = {"BUY": self.buy, "SELL": self.sell}.get(side)
            return found or None
        raw, kept, way = self.conviction_raw, self.conviction, DIRECTIONS.get(side, 0)
        if raw is not None and way * (self.side or 0.0) < 0:
            # then an opening against the market as the debate saw it counted as fully opposed
            kept = round(raw * (1.0 - OPPOSITION_COST), SCORE_DECIMALS)
        return AgreementTold(
            opposed=self.opposed, opposition=self.opposition, raw=raw, conviction=kept
        )


class ConsultedRecord(RecordPart):
    """What the trader was asked of an opening, and what it said (Deliberation.consulted)."""

    agent: Word = None
    side: Word = None
    tier: Word = None
    conviction: Number = None
    report: ReportRecord | None = None
    failure: Word = None


class DirectiveTold(RecordPart):
    """The regime of a swarm: the code's word, the reader's, the budget, who goes first."""

    code: Word = None
    reader: Word = None
    budget: Number = None
    first: Word = None
    disputed: Flag = False


class StandTold(RecordPart):
    """Where an expert stands on the board."""

    agent: Word = None
    stance: Number = None
    side: Word = None
    trust: Number = None
    weight: Number = None


class SettleTold(RecordPart):
    """What would settle a conflict: the feature to watch, and what to watch for."""

    feature: Word = None
    says: Word = None


class ConflictTold(RecordPart):
    """Two experts that lean opposite ways, with the facts that each cites."""

    long: Word = None
    short: Word = None
    strength: Number = None
    claims: dict[str, tuple[Cited, ...]] = {}
    settle: SettleTold = SettleTold()


class BoardTold(RecordPart):
    """Who of the experts stands where (agents.debate.board)."""

    stands: tuple[StandTold, ...] = ()
    abstained: Words = ()
    lean: Number = None
    dominant: Word = None
    surest: Word = None
    note: Word = None
    agreed: dict[str, Words] = {}
    conflicts: tuple[ConflictTold, ...] = ()


class WorthTold(RecordPart):
    """The expected value of a judge's side, term by term (agents.debate.expected_value)."""

    side: Word = None
    said: Number = None
    calibrated: Number = None
    used: Number = None
    reward_r: Number = None
    cost_r: Number = None
    value_r: Number = None
    vetoes: Word = None


class SwarmTold(RecordPart):
    """What regime, board and judge of a swarm came to.

    `budget` is what the regime leaves of a size beside the storm's factor of the multiplier.
    """

    regime: DirectiveTold = DirectiveTold()
    trust: Numbers = {}
    budget: Number = None
    storm: Number = None
    board: BoardTold = BoardTold()
    judgement: WorthTold | None = None
    thin: Flag = False


class DebateRecord(RecordPart):
    """The deliberation of a tick, as the sentiment row keeps it."""

    source_type: Word = None
    analyst_avg: Numbers = {}
    debate: Numbers = {}
    adjustments: Numbers = {}
    ruling: Ruling = Ruling()
    rule_ruling: Ruling = Ruling()
    reports: tuple[ReportRecord, ...] = ()
    earlier: tuple[ReportRecord, ...] = ()
    failures: Texts = {}
    unasked: Texts = {}
    panel: PanelTold = PanelTold()
    calls: tuple[StoredCall, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    flags: Words = ()
    cost_usd: Number = None
    elapsed_ms: Number = None
    consulted: ConsultedRecord | None = None
    swarm: SwarmTold | None = None

    @property
    def every_report(self) -> tuple[ReportRecord, ...]:
        """What the desk said, and after it what the trader said where it was asked."""
        asked = self.consulted.report if self.consulted else None
        return (*self.reports, asked) if asked else self.reports

    @property
    def silences(self) -> Mapping[str, str]:
        """Why an agent that was asked gave no report, the trader among them."""
        asked = self.consulted
        if not asked or not asked.failure:
            return self.failures
        return {**self.failures, str(asked.agent): asked.failure}

    @property
    def manager(self) -> ReportRecord | None:
        """The report of whoever weighed both cases; None where nobody did."""
        told = (one for one in self.reports if one.weights or one.winner)
        return next((one for one in told if one.win_share is None), None)

    @property
    def judge(self) -> ReportRecord | None:
        """The report of whoever decided of what experts said; None where nobody did."""
        return next((one for one in self.reports if one.win_share is not None), None)

    @property
    def reader(self) -> ReportRecord | None:
        """The report of whoever read the regime; None where nobody did."""
        return next((one for one in self.reports if one.regime), None)

    @property
    def in_shadow(self) -> bool:
        """Whether the agents only looked on and L1 alone decided."""
        return SHADOW in self.flags


class ComponentRecord(RecordPart):
    """A component of an L1 score."""

    name: Word = None
    value: Number = None
    weight: Number = None


class Score(RecordPart):
    """A score with its note."""

    score: Number = None
    note: Word = None


class Composite(RecordPart):
    """A timeframe's composite within the consensus."""

    composite: Number = None
    close_time: Word = None
    weight: Number = None
    fresh: Flag = False


class ThresholdsRecord(RecordPart):
    """The thresholds of a verdict; that of SELL is stored as a size."""

    buy: Number = None
    sell: Number = None


class SignalRecord(RecordPart):
    """A signal as the tick wrote it."""

    sid: Word = None
    kind: Word = None
    instance: Word = None
    symbol: Word = None
    timeframe: Word = None
    bar_time: Word = None
    side: Word = None
    lots: Number = None
    entry: Number = None
    stop: Number = None
    target: Number = None
    atr: Number = None
    expires: Word = None
    decided_at: Word = None
    state: Word = None
    bridge: Word = None
    closes: Word = None
    after: Word = None


class ProposedOrder(RecordPart):
    """An order that the tick proposed to a person."""

    kind: Word = None
    side: Word = None
    lots: Number = None


class Bars(RecordPart):
    """The range of bars that was read, and the hash of their values."""

    first: Word = Field(default=None, alias="from")
    last: Word = Field(default=None, alias="to")
    count: Whole = None
    revision: Whole = None
    hash: Word = None


class Seen(RecordPart):
    """A feature of the evidence."""

    id: Word = None
    value: Value = None
    unit: Word = None


class RegimeRecord(RecordPart):
    """The market's regime, and the values that it was read from."""

    name: Word = None
    reads: dict[str, Value] = {}


class Headline(RecordPart):
    """A headline that counted, by the id of its row."""

    id: Word = None
    age_hours: Number = None
    weight: Number = None


class News(RecordPart):
    """What was known of the news; `events` has headlines and mean score by class."""

    status: Word = None
    unique: Number = None
    score: Number = None
    events: dict[str, Annotated[tuple[Number, ...], Else(())]] = {}
    items: tuple[Headline, ...] = ()
    fundamentals: dict[str, Value] = {}
    fundamentals_status: Word = None


class EventRecord(RecordPart):
    """A scheduled event."""

    time: Word = None
    currency: Word = None
    impact: Word = None
    name: Word = None


class Events(RecordPart):
    """What was known of scheduled events; distances are in minutes."""

    status: Word = None
    to_next: Number = None
    since_last: Number = None
    ahead: Number = None
    behind: Number = None
    events: tuple[EventRecord, ...] = ()


class SeenSeries(RecordPart):
    """The newest value of an outside series that a tick saw, and since when it was known."""

    value: Number = None
    at: Word = None
    known_at: Word = None
    source: Word = None
    stale: Flag = False


class Outside(RecordPart):
    """What was known from beside the chart: features by id, why a block has none, the series."""

    numbers: dict[str, Value] = {}
    statuses: dict[str, Word] = {}
    seen: dict[str, SeenSeries] = {}


class NoteTold(RecordPart):
    """A lesson that was told in words: its number, their author, its score and its ranks."""

    lesson: Whole = None
    author: Word = None
    score: Number = None
    ranks: Numbers = {}


class LessonsTold(RecordPart):
    """What was told of earlier trades (torra.lessons.recall.Recalled); the words are not in it."""

    numbers: dict[str, Value] = {}
    notes: tuple[NoteTold, ...] = ()
    corpus: Whole = None
    newest: Whole = None
    digest: Word = None
    nearest: tuple[Number, ...] = ()
    flags: Words = ()


class StandingNow(RecordPart):
    """What was told of the seats' past (torra.evaluation.standing.track_record), by value."""

    numbers: dict[str, Number] = {}
    flags: Words = ()


class CompanyTold(RecordPart):
    """What openings were foreseen by at a desk that asks a trader; no record of another has it."""

    latched: Words = ()


class Skipped(RecordPart):
    """Why a tick was not run: a word and a sentence."""

    reason: Word = None
    detail: Word = None


class Before(RecordPart):
    """How the instance stood before the tick (JournalStore.standing), and the bars since then.

    A tick that was stored after others of its close stood behind them; `looked` is the newest step
    when it looked, None for one that stood where it looked.
    """

    paper_cursor: Word = None
    latches: Words = ()
    signal_event: Whole = None
    looked: Whole = None
    path: tuple[tuple[Value, ...], ...] = ()


class DeskThen(RecordPart):
    """What the whole desk brought to the decision, and when.

    `signal_event` is the newest step of any signal at that moment, as in Before at the look.
    """

    trading_state: Word = None
    decided: Word = None
    signal_event: Whole = None
    exposure: dict[str, JsonValue] = {}


class HostedTold(RecordPart):
    """What another program's scorer asked (torra.overlay); the record of a desk's tick has none.

    `asked` is the hash of the question, `revision` which answer of the key it is; `own_scores`: L1
    is the host's own. `extra` has its numbers, `told` what of the question was left out, `moment`
    when it was asked. `handed` names all bars that were handed over; `fallback` is what
    the host's own one said; `late`: it was stored after the host had gone on with L1.
    """

    asked: Word = None
    revision: Whole = None
    own_scores: Flag = False
    extra: Numbers = {}
    headlines: Words = ()
    bars: Whole = None
    moment: Word = None
    told: Words = ()
    stale: Flag = False
    late: Flag = False
    picture: Word = None
    handed: Bars = Bars()
    fallback: Numbers = {}


class DecisionRecord(RecordPart):
    """What a tick decided and by which numbers: the part of a record that lists and cells show."""

    bar_time: Word = None
    as_of: Word = None
    ath: Number = None
    composite: Number = None
    consensus: Number = None
    verdict: Word = None
    l1_composite: Number = None
    l1_consensus: Number = None
    l1_verdict: Word = None
    thresholds: ThresholdsRecord = ThresholdsRecord()
    gate: Gate = Gate()
    action: Word = None
    reason: Word = None
    denied: Words = ()
    source_type: Word = None
    flags: Words = ()
    features: tuple[Seen, ...] = ()
    events: Events | None = None


class SpreadsTold(RecordPart):
    """The spreads of the bars, in units of the price (torra.market.spreads.SpreadView)."""

    last: Number = None
    mean: Number = None
    percentile: Number = None


class TickRecord(DecisionRecord):
    """The whole record of a tick."""

    instance: Word = None
    symbol: Word = None
    timeframe: Word = None
    close: Number = None
    atr: Number = None
    ath_price: Number = None
    low_price: Number = None
    records_since: Word = None
    record_score: Word = None
    l1: Numbers = {}
    notes: dict[str, Word] = {}
    components: dict[str, Annotated[tuple[ComponentRecord, ...], Else(())]] = {}
    agents: Numbers = {}
    scores: dict[str, Score] = {}
    ungated: Numbers = {}
    low: Numbers = {}
    high: Numbers = {}
    adjustments: Numbers = {}
    low_consensus: Number = None
    high_consensus: Number = None
    composites: dict[str, Composite] = {}
    weights: Numbers = {}
    signal: SignalRecord | None = None
    signals: tuple[SignalRecord, ...] = ()
    proposed: tuple[ProposedOrder, ...] = ()
    sentence: Word = None
    """What it did and why, in words (torra.tick.sentence); older records have none."""

    calls: int | tuple[StoredCall, ...] = ()
    """How many were made; where a store has put them in, the calls themselves."""

    cost_usd: Number = None
    elapsed_ms: Number = None
    provider: Word = None
    picture: Word = None
    profile: Word = None
    execution: Word = None
    now: Word = None
    before: Before = Before()
    desk: DeskThen = DeskThen()
    versions: dict[str, Word] = {}
    bars: Bars = Bars()
    memory: dict[str, JsonValue] = {}
    regime: RegimeRecord | None = None
    news: News | None = None
    spreads: SpreadsTold | None = None
    outside: Outside | None = None
    lessons: LessonsTold | None = None
    standing: StandingNow | None = None
    company: CompanyTold | None = None
    invented: Flag = False
    """Whether what it saw beside the bars is the demo's own invention (torra.outside.invented)."""

    together: Numbers = {}
    apart: Words = ()
    skipped: Skipped | None = None
    hosted: HostedTold | None = None
    deliberation: DebateRecord = DebateRecord()

    @property
    def record_name(self) -> str:
        """The name of its record score: of the record high alone, as all were once, it is ATH."""
        return "Record" if self.record_score == "both" else "ATH"

    @property
    def told_calls(self) -> tuple[StoredCall, ...]:
        """The calls that are stored with their texts; none once these are pruned."""
        return self.calls if isinstance(self.calls, tuple) else ()

    @property
    def made_calls(self) -> tuple[StoredCall, ...]:
        """The calls, without their texts once these are pruned: the deliberation keeps figures."""
        return self.told_calls or self.deliberation.calls

    @property
    def written(self) -> tuple[SignalRecord, ...]:
        """The signals that the tick wrote; older records have one at most."""
        return self.signals or ((self.signal,) if self.signal else ())

    @property
    def budget(self) -> float | None:
        """The share of an opening's size that the regime leaves; None without a risk officer.

        Up to version 9 of the rules it did not count in shadow.
        """
        if self.gate.budget is not None:
            return self.gate.budget
        swarm = self.deliberation.swarm
        return None if swarm is None or self.deliberation.in_shadow else swarm.budget

    @property
    def said_multiplier(self) -> float | None:
        """The multiplier that the adjustments were made with.

        It is the one in force, but in shadow: there the desk's own ruling is recorded and the
        gate's rules alone are in force.
        """
        return (self.deliberation.ruling if self.deliberation.in_shadow else self.gate).multiplier

    def final(self, vector: str) -> float | None:
        """Return the blended score of a vector."""
        found = self.scores.get(vector)
        return None if found is None else found.score
