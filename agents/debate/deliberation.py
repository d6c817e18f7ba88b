"""The record of one debate: its requests, its result, and its scores in the shape of score_chart.

Every request is kept as a `Call`, also when its answer came late or never: a late answer is
recorded and not used. Values only: nothing here asks, waits or fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import fsum
from typing import Any, Final

from scoring_rubric import request_hash

from ..contracts import (
    SCORE_DECIMALS,
    UNHEARD,
    VECTORS,
    AgentReport,
    Completion,
    DebateContext,
    GateRuling,
    Request,
    SourceType,
)
from ..texts.door import MAX_REPLY_CHARS
from ..texts.fence import clean, without_nonce
from .replies import REASONING_KEPT
from .scoring import NEUTRAL, Panel, add_adjustments, plain
from .swarm import Swarm

OUTAGE: Final = "outage"
"""Flag of a tick without an opinion of which an agent failed."""

ABSTAINED: Final = "all_abstained"
"""Flag of a tick on which every opinion that was asked abstained."""

STORED: Final = (
    *("source_type", "analyst_avg", "debate", "adjustments", "ruling", "rule_ruling", "reports"),
    *("earlier", "failures", "unasked", "panel", "calls", "stages", "flags", "cost_usd"),
    *("elapsed_ms", "consulted", "swarm"),
)
"""Fields of a deliberation that the sentiment row keeps."""

EVERY: Final = "rebuttals"
"""The last field of a report that every kind of agent has; what follows is written if it is set."""


DETAIL_KEPT: Final = 200
"""Characters kept of a failure's detail."""

MOST_TOKENS: Final = 10**9
"""A vendor that reports more tokens than this for one call is wrong; the number is cut here."""

NO_ANSWER: Final = Completion("", "")


def _text(write: Callable[[Call], str]) -> cached_property[str]:
    """Return a text of a call, written when it is first read; "" where it cannot be written."""

    def written(call: Call) -> str:
        try:
            return write(call)
        except Exception:  # noqa: BLE001 - what a prompt or a reply is made of may be anything
            return ""

    return cached_property(written)


@dataclass(eq=False)
class Call:
    """One request and what became of it; times are monotonic seconds.

    `status` is ok, late, or a `ModelUnavailable` reason. `look`: it is a second look. `paid_usd` is
    its cost in the ledger, None where it has none, `stored_round` the round of its row where that
    is another than was asked. Texts carry the placeholder {NONCE} where the fence's random text
    was; they are written when they are first read, and "" where they cannot be.
    """

    request: Request
    stage: str
    started: float
    look: bool = False
    status: str = "timeout"
    detail: str = ""
    ended: float | None = None
    completion: Completion | None = None
    future: Future[Completion] | None = field(default=None, repr=False)
    paid_usd: float | None = None
    stored_round: int = 0

    def recorded(self, now: float) -> Call:
        """Return the call as it is known at `now`, for good."""
        completion = self.completion or _late(self.future)
        late = self.status == "timeout" and completion is not None
        return replace(
            self,
            status="late" if late else self.status,
            detail=_storable(self.detail, self.request.nonce),
            ended=now if self.ended is None else self.ended,
            completion=completion,
            future=None,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the call as JSON values."""
        return {name: getattr(self, name) for name in CALL_FIELDS}

    @property
    def role_id(self) -> str:
        """Who asked."""
        return self.request.role.id

    @property
    def round(self) -> int:
        """The round of its stage, from 1."""
        return self.stored_round or self.request.round

    @property
    def attempt(self) -> int:
        """1, or 2 for a retry or a second look."""
        return self.request.attempt

    @property
    def answer(self) -> Completion:
        """The completion, or an empty one."""
        return self.completion or NO_ANSWER

    @property
    def model(self) -> str:
        """The model that answered, or that was asked."""
        return short(self.completion.model) if self.completion else self.request.model

    @property
    def provider(self) -> str:
        """Who answered, "" for nobody."""
        return short(self.answer.provider)

    system = _text(lambda call: without_nonce(call.request.system, call.request.nonce))
    user = _text(lambda call: without_nonce(call.request.user, call.request.nonce))
    reply = _text(lambda call: _storable(call.answer.text, call.request.nonce))
    request_hash = _text(lambda call: request_hash(call.request))

    @property
    def input_tokens(self) -> int:
        """All input, cached too."""
        return _count(self.answer.input_tokens)

    @property
    def output_tokens(self) -> int:
        """All that is billed as output."""
        return _count(self.answer.output_tokens)

    @property
    def cached_tokens(self) -> int:
        """The part of the input that a cache supplied."""
        return _count(self.answer.cached_tokens)

    @property
    def cost_usd(self) -> float:
        """The cost in the ledger, else what the provider says, in USD."""
        cost = self.answer.cost_usd if self.paid_usd is None else self.paid_usd
        real = isinstance(cost, int | float) and not isinstance(cost, bool)
        return float(cost) if real and 0.0 <= cost <= sys.float_info.max else 0.0

    @property
    def stop_reason(self) -> str:
        """How the answer ended, "" without one."""
        return short(self.completion.stop_reason) if self.completion else ""

    @property
    def elapsed_ms(self) -> float:
        """From sending to the answer, or to the end of the debate."""
        return round(((self.ended or self.started) - self.started) * 1000, 3)


CALL_FIELDS: Final = (
    *("role_id", "stage", "round", "attempt", "status", "model", "provider", "system", "user"),
    *("reply", "input_tokens", "output_tokens", "cost_usd", "elapsed_ms", "request_hash"),
    *("detail", "stop_reason", "cached_tokens"),
)
"""The columns of a call in records."""


@dataclass(frozen=True, slots=True)
class Consulted:
    """What one agent was asked alone, after the debate, and what it said.

    `side` is the opening that it was asked about, BUY or SELL, `tier` the models that were asked,
    `conviction` the share of the opening's size that the panel left. `report` is None where it
    failed, `failure` why then.
    """

    agent: str
    side: str
    tier: str
    conviction: float
    report: AgentReport | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Deliberation:
    """Everything that one debate said and cost.

    `scores` (gated) and `ungated` (multiplier 1) have the shape of score_chart; `adjustments`
    (gated), `analyst_avg` and `debate` hold a number per vector. `reports` are those that count,
    `earlier` the cases that a later round replaced, `failures` why an agent gave no report,
    `unasked` why one was left out that could have been asked. `panel` is how far the desk agrees.
    `consulted` is what the trader was asked and said, None where it was not asked. `swarm` is what
    regime, board and judge came to, None at a desk without a risk officer.
    """

    source_type: SourceType
    scores: Mapping[str, Mapping[str, Any]]
    ungated: Mapping[str, Mapping[str, Any]]
    adjustments: Mapping[str, float]
    analyst_avg: Mapping[str, float]
    debate: Mapping[str, float]
    ruling: GateRuling
    rule_ruling: GateRuling
    reports: tuple[AgentReport, ...] = ()
    earlier: tuple[AgentReport, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    stages: tuple[dict[str, Any], ...] = ()
    flags: tuple[str, ...] = ()
    cost_usd: float = 0.0
    elapsed_ms: float = 0.0
    unasked: Mapping[str, str] = field(default_factory=dict)
    panel: Panel = NEUTRAL
    consulted: Consulted | None = None
    swarm: Swarm | None = None

    @property
    def heard(self) -> bool:
        """Whether an opinion was heard."""
        return self.source_type not in UNHEARD

    @property
    def outage(self) -> bool:
        """Whether no opinion was heard because somebody failed, or could not be asked."""
        return OUTAGE in self.flags

    @property
    def veto(self) -> bool:
        """Whether no opening may be made on these scores."""
        return self.ruling.veto

    def vetoes(self, side: str) -> bool:
        """Return whether no opening BUY or SELL may be made on these scores."""
        return self.ruling.vetoes(side)

    def size_share(self, side: str) -> float:
        """Return the share, 0 to 1, of an opening's size that is left: most x cut x conviction.

        `most` is the rules' multiplier, with the regime's budget among the factors of the storm
        where a risk officer sits; `cut` what the gate's model left of the rules' multiplier. So
        without an officer most x cut is the multiplier. (docs/debate.md, "Size".)
        """
        gate, rules = self.ruling.multiplier, self.rule_ruling.multiplier
        if self.swarm is not None:
            gate = self.swarm.most * gate / rules if gate < rules else self.swarm.most
        return gate * self.conviction_for(side)

    @property
    def declined(self) -> str:
        """The side BUY or SELL of the opening that the trader declined, "" where it did not."""
        asked = self.consulted
        return asked.side if asked and asked.report and asked.report.declined else ""

    def conviction_for(self, side: str) -> float:
        """Return the share, 0 to 1, that conviction leaves of an opening BUY or SELL.

        In an outage it is that of the outage; 1 where nobody was to be asked.
        """
        return self.panel.agreement(side).conviction

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values, for the `agent_deliberation` column."""
        row = {name: _json(getattr(self, name)) for name in STORED}
        return {name: value for name, value in row.items() if value is not None}


def score_chart_shape(
    context: DebateContext, adjustments: Mapping[str, float], source: SourceType, summary: str
) -> dict[str, dict[str, Any]]:
    """Return L1 plus adjustments as a score_chart dict, composite_bias included."""
    scores = add_adjustments(context.scores, adjustments)
    chart = {}
    for vector in VECTORS:
        note = context.notes.get(vector, "")
        if adjustments[vector]:
            note += f"{note and '; '}agents {adjustments[vector]:+.3f}"
        chart[vector] = {"score": scores[vector], "note": note}
    return with_bias(chart, f"{source}: {summary}")


def with_bias(chart: dict[str, dict[str, Any]], note: str) -> dict[str, dict[str, Any]]:
    """Return the chart with composite_bias, the plain mean of its four scores."""
    mean = fsum([chart[vector]["score"] for vector in VECTORS]) / len(VECTORS)
    return {**chart, "composite_bias": {"score": round(mean, SCORE_DECIMALS), "note": note}}


def _json(value: Any) -> Any:
    """Return a part of a record as JSON values."""
    if type(value) is tuple:
        return [_json(item) for item in value]
    if isinstance(value, Call | Swarm):
        return value.as_json()
    if isinstance(value, AgentReport):
        return report_json(value)
    row = plain(value)
    if isinstance(value, GateRuling) and not value.veto_sides:
        del row["veto_sides"]
    if isinstance(value, Consulted):
        row["report"] = _json(value.report)
    return row


def report_json(report: AgentReport) -> dict[str, Any]:
    """Return a report as JSON values, with a reasoning in any case."""
    row: dict[str, Any] = {}
    for part in fields(AgentReport):
        value = getattr(report, part.name)
        if EVERY not in row or value or type(value) is float:
            row[part.name] = _json(value)
    row["reasoning"] = report.reasoning or _paragraph(report)
    return row


def _paragraph(report: AgentReport) -> str:
    """Return claim and points as one paragraph, "" of who claims nothing; it can forge no fence."""
    parts = [report.claim]
    for led, points in (("", report.points_for), ("Against it: ", report.points_against)):
        parts += [f"{led}{point.says}{point.why and ', '}{point.why}" for point in points]
    stripped = (part.rstrip(" .") for part in parts)
    return clean(" ".join(f"{part}." for part in stripped if part), REASONING_KEPT)


def records(calls: Sequence[Call], now: float) -> tuple[Call, ...]:
    """Return what is known of every request at `now`, in a stable order."""
    stages = list(dict.fromkeys(call.stage for call in calls))
    ordered = sorted(calls, key=lambda c: (stages.index(c.stage), c.round, c.role_id, c.attempt))
    return tuple(call.recorded(now) for call in ordered)


def cost_of(calls: Iterable[Call]) -> float:
    """Return what calls cost together, in USD."""
    return round(fsum(call.cost_usd for call in calls), SCORE_DECIMALS)


def short(value: object) -> str:
    """Return the beginning of a text as any file can hold it, "" for what is none."""
    return _storable(value, "")[:DETAIL_KEPT]


def _late(future: Future[Completion] | None) -> Completion | None:
    """Return the answer of a call that nobody waited for, if it has come by now."""
    try:
        if future is None or not future.done() or future.exception(timeout=0) is not None:
            return None
        completion = future.result(timeout=0)
    except BaseException:  # noqa: BLE001 - a provider's future may be anything
        return None
    return completion if isinstance(completion, Completion) else None


def _storable(text: object, nonce: str) -> str:
    """Return text that any file and database can hold, the nonce as its placeholder."""
    if not isinstance(text, str) or not text:
        return ""
    text = text[:MAX_REPLY_CHARS]
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return without_nonce(text, nonce)


def _count(value: object) -> int:
    return min(value, MOST_TOKENS) if type(value) is int and value >= 0 else 0
