"""Observations of one arm, from a replay or a desk's journal: ticks and trades, as frozen values.

Everything that torra.evaluation computes is computed from these. They are plain data and survive
JSON unchanged (`as_json`, `arm_of` and the others), so a shard, a checkpoint and a file hold the
same. Times are aware UTC. Scores lie in [-1, +1]. An adjustment of None was not scored.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from agents.contracts import SCORE_DECIMALS, VECTORS

Four = tuple[float, float, float, float]
"""A number for each of VECTORS, in that order."""

NOTHING: Final[Four] = (0.0, 0.0, 0.0, 0.0)

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class SwarmObservation:
    """What regime, board, judge and risk officer of a swarm came to on a tick.

    `budget` is the share, 0 to 1, of an opening's size that regime and reader allow, `plain` the
    one without the reader, `storm` the factor that volatility, panic and liquidations left of the
    multiplier. `trusted` holds the weight of each of EXPERTS, nothing where all count alike,
    `unled` what it would be with nobody going first. `reader` is
    the regime that its reader names, `first` the expert that it has go first; `reasons` are those
    of the risk officer and of the judge (agents.contracts.OfficerReason), `veto_sides` the sides on
    which alone nothing opens.

    `side` is the side that the judge takes (LONG, SHORT), `said` its chance of a win, `used` the
    one that counted, `value_r` what the side is worth in R, `vetoes` the side BUY or SELL that it
    vetoes; None and "" where it took none. `thin`: fewer than two experts spoke.
    """

    budget: float = 1.0
    plain: float = 1.0
    storm: float = 1.0
    trusted: tuple[float, ...] = ()
    unled: tuple[float, ...] = ()
    reader: str = ""
    first: str = ""
    reasons: tuple[str, ...] = ()
    veto_sides: tuple[str, ...] = ()
    side: str = ""
    said: float | None = None
    used: float | None = None
    value_r: float | None = None
    vetoes: str = ""
    thin: bool = False


@dataclass(frozen=True, slots=True)
class AgentOpinion:
    """The opinion of one agent on a tick.

    `kind` is analyst, researcher, reader, judge, arbiter or gate; `focus` the weight of the role on
    each of VECTORS (0 if it may not score); `trust` is k of docs/debate.md, in [0, 1]. `answered`
    is False for an agent that was asked and failed. `multiplier` and `veto` are a gate's own word,
    `winner` (LONG, SHORT, NONE) an arbiter's or a judge's and `weights` (of bull and bear, each 0
    to 1) an arbiter's; `horizon` is the time that a firm's report speaks for, `anomaly` and
    `pattern` are what an expert calls odd and sees. None where an agent says no such thing.
    """

    agent_id: str
    kind: str
    adjustments: tuple[float | None, ...] = (None, None, None, None)
    focus: Four = NOTHING
    trust: float = 0.0
    confidence: str = "medium"
    abstained: bool = False
    answered: bool = True
    multiplier: float = 1.0
    veto: bool = False
    winner: str | None = None
    weights: tuple[float, float] | None = None
    horizon: str | None = None
    anomaly: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class TickObservation:
    """One tick of an arm.

    `l1` are the deterministic scores, `debate` what the desk would move them by before the gate,
    `adjustments` after it, `scores` what the brain was given (blended). `multiplier` and `veto` are
    the ruling that counted, `rule_multiplier` and `rule_veto` the arithmetic part of it. `shadow`:
    the agents were recorded and did not count. `ath` is the fifth score of the composite. `state`
    is the Markov state before the tick. `elapsed_ms` is real time, the only field that is not the
    same in every run. `lessons_r` is what trades in a like market came to, lessons.mean_r: positive
    where it speaks for a long, None where nothing was told. `consulted` is the opening that the
    trader was asked about (BUY or SELL), `tier` the models that were asked, `declined` whether it
    declined; None where it was not asked, `declined` also where it gave no answer. `swarm` is what
    a swarm came to, None of a desk without a risk officer. The judge's veto is an agent's: it is in
    `veto` and never in `rule_veto`.
    """

    instance: str
    symbol: str
    timeframe: str
    bar_time: datetime
    close_time: datetime
    close: float
    atr: float
    ath: float
    l1: Four
    debate: Four
    adjustments: Four
    scores: Four
    l1_consensus: float
    consensus: float
    l1_verdict: str
    verdict: str
    action: str
    reason: str
    source_type: str
    multiplier: float = 1.0
    veto: bool = False
    rule_multiplier: float = 1.0
    rule_veto: bool = False
    conviction: float = 1.0
    calls: int = 0
    cost_usd: float = 0.0
    regime: str = ""
    session: str = ""
    state: str = ""
    shadow: bool = False
    opinions: tuple[AgentOpinion, ...] = ()
    elapsed_ms: float = 0.0
    lessons_r: float | None = None
    consulted: str | None = None
    tier: str | None = None
    declined: bool | None = None
    swarm: SwarmObservation | None = None

    @property
    def key(self) -> tuple[str, str, datetime]:
        """The key by which the same tick of two arms is paired."""
        return self.instance, self.timeframe, self.bar_time

    @property
    def budget(self) -> float:
        """The share, 0 to 1, that the regime leaves of an opening's size beside the multiplier.

        Its budget is one of the factors of the storm, of which the smallest counts; 1 without a
        risk officer. In shadow the code's own regime counts, and its reader's word does not.
        """
        told = self.swarm
        allowed = 1.0 if told is None else told.plain if self.shadow else told.budget
        if told is None or allowed >= told.storm:
            return 1.0
        return round(allowed / told.storm, SCORE_DECIMALS)

    @property
    def size_share(self) -> float:
        """The share, 0 to 1, that gate, conviction and budget leave of an opening's size."""
        return self.multiplier * self.conviction * self.budget


WORDS: Final = (
    "instance", "symbol", "timeframe", "l1_verdict", "verdict", "action", "reason", "source_type",
    "regime", "session", "state", "consulted", "tier",
)  # fmt: skip
"""Fields of a tick that hold one of a few words."""

NUMBERS_OF_THE_MARKET: Final = ("close", "atr", "ath", "l1", "l1_consensus")
OF_THE_MARKET: Final = ("bar_time", "close_time", *NUMBERS_OF_THE_MARKET)
"""Fields that are the same in every arm of a replay."""


@dataclass(frozen=True, slots=True)
class TradeObservation:
    """One closed trade of an arm.

    `side` is BUY for a long; `decided` the close of the bar that decided it, `opened` and `closed`
    the opens of the bars at which it was filled and ended (inside that bar for a stop or target).
    `r` is the result in units of the risk taken (entry to stop), after spread and slippage, before
    commission; `profit` the same in account currency, `lots` its size. `reason` is STOPPED, TARGET,
    or CLOSED (by an opposite verdict), END where the history ended with it open.
    """

    instance: str
    symbol: str
    timeframe: str
    side: str
    decided: datetime
    opened: datetime
    closed: datetime
    entry: float
    exit: float
    stop: float
    target: float
    lots: float
    r: float
    profit: float
    reason: str


@dataclass(frozen=True, slots=True)
class ArmObservation:
    """All that was observed of one arm: ticks and trades in the order of time.

    `skipped` counts ticks by the reason for which they were not run; `capital` is what the account
    began with, `commission` what a lot costs in account currency, there and back. `halts` counts
    how often the desk halted itself.
    """

    name: str
    ticks: tuple[TickObservation, ...]
    trades: tuple[TradeObservation, ...]
    capital: float = 10_000.0
    commission: float = 0.0
    skipped: Mapping[str, int] = field(default_factory=dict)
    halts: int = 0

    @property
    def cost_usd(self) -> float:
        """The cost of the arm's models, in USD."""
        return sum(tick.cost_usd for tick in self.ticks)


ADAPTERS: Final[dict[type, TypeAdapter[Any]]] = {
    kind: TypeAdapter(kind)
    for kind in (AgentOpinion, TickObservation, TradeObservation, ArmObservation)
}

OPINION_FIELDS, SWARM_FIELDS = (
    tuple(item.name for item in fields(kind)) for kind in (AgentOpinion, SwarmObservation)
)
_of_the_market, _of_an_opinion, _of_a_swarm = (
    attrgetter(*names) for names in (NUMBERS_OF_THE_MARKET, OPINION_FIELDS, SWARM_FIELDS)
)


def as_json(
    seen: AgentOpinion | TickObservation | TradeObservation | ArmObservation,
) -> dict[str, Any]:
    """Return an observation as JSON values, times as ISO text, without what is None."""
    told: dict[str, Any] = ADAPTERS[type(seen)].dump_python(seen, mode="json", exclude_none=True)
    return told


def tick_of(told: Mapping[str, Any]) -> TickObservation:
    """Return the tick that `as_json` wrote; raises ValueError for what is none."""
    tick: TickObservation = ADAPTERS[TickObservation].validate_python(told)
    return tick


def trade_of(told: Mapping[str, Any]) -> TradeObservation:
    """Return the trade that `as_json` wrote; raises ValueError for what is none."""
    trade: TradeObservation = ADAPTERS[TradeObservation].validate_python(told)
    return trade


def arm_of(told: Mapping[str, Any]) -> ArmObservation:
    """Return the arm that `as_json` wrote; raises ValueError for what is none."""
    arm: ArmObservation = ADAPTERS[ArmObservation].validate_python(told)
    shared = Interner()
    return replace(arm, ticks=tuple(map(shared.tick, arm.ticks)))


class Interner:
    """A memory saver: it keeps one copy of what many ticks of the arms of a replay have in common.

    Shared are words, adjustments of 0, whole opinions without adjustments, and what the market was
    at the same tick of an earlier arm. Only values with the same bits are shared, so a tick is
    written to JSON exactly as before.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._held: dict[bytes, Any] = {_bits(NOTHING): NOTHING}
        self._first: dict[tuple[str, datetime], TickObservation] = {}

    def tick(self, tick: TickObservation) -> TickObservation:
        """Return an equal tick that holds less memory."""
        told = {name: self._one(getattr(tick, name)) for name in WORDS}
        known = self._first.get((tick.timeframe, tick.bar_time))
        first = known if known is not None and _same_market(known, tick) else tick
        for name in OF_THE_MARKET:
            told[name] = getattr(first, name)
        for name in ("debate", "adjustments"):
            told[name] = self._four(getattr(tick, name))
        told["scores"] = told["l1"] if _bits(told["l1"]) == _bits(tick.scores) else tick.scores
        told["opinions"] = tuple([self._opinion(one) for one in tick.opinions])
        told["swarm"] = tick.swarm and self._swarm(tick.swarm)
        found = replace(tick, **told)
        if known is None:
            self._first[found.timeframe, found.bar_time] = found
        return found

    def _opinion(self, one: AgentOpinion) -> AgentOpinion:
        moved = any(one.adjustments)
        bits = b"" if moved else _bits(_of_an_opinion(one))
        if not moved and bits in self._held:
            held: AgentOpinion = self._held[bits]
            return held
        told = {
            name: self._one(getattr(one, name)) for name in OPINION_FIELDS if name != "adjustments"
        }
        # number by number: a tuple of four that moved hardly ever comes again
        told["adjustments"] = tuple([self._one(value) for value in one.adjustments])
        found = AgentOpinion(**told)
        if not moved:
            # one that moved something hardly ever comes again: holding it would cost memory
            self._held[bits] = found
        return found

    def _swarm(self, one: SwarmObservation) -> SwarmObservation:
        held: SwarmObservation | None = self._held.get(bits := _bits(_of_a_swarm(one)))
        if held is None:
            told = {name: self._one(getattr(one, name)) for name in SWARM_FIELDS}
            held = self._held[bits] = SwarmObservation(**told)
        return held

    def _four(self, values: Four) -> Four:
        return values if any(values) else self._one(values)

    def _one(self, value: V) -> V:
        held: V = self._held.setdefault(_bits(value), value)
        return held


def _same_market(one: TickObservation, other: TickObservation) -> bool:
    alike = _bits(_of_the_market(one)) == _bits(_of_the_market(other))
    return alike and one.close_time == other.close_time


def _bits(value: Any) -> bytes:
    """Return the bytes of a plain value: 0.0 equals -0.0, 1 equals 1.0, and their bytes differ."""
    # Format 2: a later one depends on how often the value is referred to.
    return marshal.dumps(value, 2)


def side_of(verdict: str, consensus: float) -> str:
    """Return the side whose size a tick tells: the verdict's, or that to which a HOLD leans."""
    if verdict != "HOLD":
        return verdict
    return "BUY" if consensus >= 0.0 else "SELL"


def leaning(side: str, mean_r: float | None) -> float | None:
    """Return what trades like one to a side came to, with the sign of a long; None for None."""
    if mean_r is None:
        return None
    return mean_r if side == "LONG" else 0.0 - mean_r


def four(values: Mapping[str, float]) -> Four:
    """Return the numbers of the four vectors in their order."""
    first, second, third, fourth = (float(values[vector]) for vector in VECTORS)
    return first, second, third, fourth


def same_but_time(one: TickObservation, other: TickObservation) -> bool:
    """Return whether two ticks are equal in everything but how long they took."""
    names = [item.name for item in fields(TickObservation) if item.name != "elapsed_ms"]
    return all(getattr(one, name) == getattr(other, name) for name in names)
