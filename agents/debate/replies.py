"""Replies of models: one strict model a kind of reply, and the report that becomes of each.

A reply fits its model exactly or its agent failed: ModelUnavailable("garbage"), never a neutral
vote and never another exception. Garbage is a number that is not finite, a string or a boolean
where a number belongs, a missing key, a lone surrogate. A key that nobody asked for is ignored.
`agents.texts.door` reads the text before.

`enforce_role` is the one place where the limits of a role are enforced: for a reply of a model, and
for what an agent of another hand returns.

- A number outside its bound is clamped, flagged `clamped`.
- A vector outside the focus of the role is dropped, flagged `out_of_focus`.
- A researcher's or a judge's number against its own side counts as 0, flagged `conceded`.
- A field that only other kinds of agents may fill is emptied (OWNED).
- A citation that is not in the evidence flags a report `ungrounded`; so does scoring without any.
- A point on the wrong side moves; one on no side is dropped. Both flag the report `misplaced`.
- A claim is cut at CLAIM_WORDS words. One without a digit, of a report that asks for something, is
  flagged `no_number`.
- An anomaly, a pattern or a level that code did not find is dropped, flagged `invented`.
- A judge that takes a side which nothing could prove wrong is flagged `unfalsified`.

Fields are parsed, prose never is: prose may be in any language, keys and enumerated words may not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar, cast, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    GetCoreSchemaHandler,
    SkipValidation,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import core_schema

from agent_config import EXPERTS
from scoring_rubric import OWN_FLAGS

from ..arguments import (
    ATR,
    CLAIM_WORDS,
    FALSIFIERS,
    falsifier_text,
    pending_falsifiers,
    report_side,
    sort_points,
)
from ..contracts import (
    ANOMALIES,
    BIASES,
    HORIZON_BARS,
    NO_ANOMALY,
    OPINIONS,
    ORDINALS,
    PATTERNS,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
    Bias,
    Confidence,
    Evidence,
    Falsifier,
    Feature,
    GateReason,
    GateRuling,
    Horizon,
    ModelUnavailable,
    Point,
    Rebuttal,
    RegimeName,
    Role,
    Shape,
    Winner,
)
from ..evidence import grounded
from ..features import number
from ..swarm.anomalies import PATTERN, shown_by
from ..texts.door import LINE_KEPT, garbage

REASONING_KEPT: Final = 2_000
"""Characters of reasoning that a report keeps; the call record keeps the whole reply."""
FLAGS_KEPT: Final = 8
CITATIONS_KEPT: Final = 40
"""Citations that a report keeps; all of them are checked."""
NAME_KEPT: Final = 60
"""Characters kept of a level's name."""
REBUTTALS_KEPT: Final = 2
LEVELS_KEPT: Final = 4
RISKS_KEPT: Final[Mapping[str, int]] = {"researcher": 2, "trader": 3}

LEVEL: Final = "geometry.level."
"""How the ids of computed levels begin."""
LEVEL_ATR: Final = 0.25
"""ATR up to which a price that an expert names is a computed level."""
ORDER_SIDE: Final = "order.side"
"""The feature that says which opening a trader is asked about."""

CLAMPED: Final = "clamped"
INVENTED: Final = "invented"
UNGROUNDED: Final = "ungrounded"

OWNED: Final[Mapping[str, frozenset[str]]] = {
    "ruling": frozenset({"gate"}),
    "ordinals": frozenset({"analyst"}),
    "horizon": frozenset({"arbiter", *OPINIONS}),
    "risks": frozenset(RISKS_KEPT),
    "winner": frozenset({"arbiter", "judge"}),
    "weights": frozenset({"arbiter"}),
    **dict.fromkeys(("horizon_bars", "declined", "decline_code"), frozenset({"trader"})),
    "bias": frozenset({"analyst", "reader"}),
    **dict.fromkeys(("anomaly", "pattern", "levels"), frozenset({"analyst"})),
    **dict.fromkeys(("regime", "budget", "first"), frozenset({"reader"})),
    **dict.fromkeys(("counter", "win_share", "close"), frozenset({"judge"})),
}
"""Fields of a report that some kinds of agents alone fill, and these kinds."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "gate": ("ruling",),
    "reader": ("regime",),
    "arbiter": ("winner",),
    "judge": ("winner", "win_share"),
}
"""Fields without which a report of a kind of agent is none."""

RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "budget": (0.0, 1.0),
    "win_share": (0.0, 1.0),
    "horizon_bars": HORIZON_BARS,
}

EMPTY: Final[Mapping[str, Any]] = {
    field.name: {} if field.default is MISSING else field.default
    for field in fields(AgentReport)
    if field.name in OWNED
}

ABSTENTIONS: Final[Mapping[str, str]] = {"judgement": "no verdict", "regime": "no reading"}
"""Reasons of an arbiter and a reader that abstain in replies without a place for one."""

LINES: Final = ("claim", "reasoning", "reason", "counter", "anomaly", "pattern", "first")
ROWS: Final = ("key_points", "flags", "falsifiers", "risks", "levels")
"""Fields of a report that hold texts of its agent, beside points and citations."""

Features = Mapping[str, Feature]
N = TypeVar("N", int, float)


class Keys:
    """The keys of an object of a reply: all must be there, and have the values' type."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        value = core_schema.typed_dict_field(handler.generate_schema(get_args(source)[1]))
        strict = core_schema.CoreConfig(strict=True, allow_inf_nan=False)
        return core_schema.typed_dict_schema(dict.fromkeys(self.names, value), config=strict)


def _whole(value: object) -> object:
    """Return 2.0 as 2: JSON does not tell them apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Strict models take no string for an enum and no list for a tuple, and JSON has only those.
Whole = Annotated[int, BeforeValidator(_whole, json_schema_input_type=int)]
Reason = Annotated[GateReason, Field(strict=False)]
Words = Annotated[tuple[str, ...], Field(strict=False), FailFast()]
CitedValue = Annotated[
    float | str | None,
    Field(union_mode="left_to_right"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]
"""The value of a citation; null is not asked for, and a citation of it is true of no feature."""


class Reply(BaseModel):
    """A reply: every field there, of its own type, every number finite; more keys are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        strict=True, frozen=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True
    )


# --- parts ----------------------------------------------------------------------------------------


class Citation(Reply):
    """A fact of the evidence, and the value that the agent read."""

    id: str
    value: CitedValue

    def fact(self) -> Evidence:
        """Return the citation as a report keeps it."""
        value = self.value[:LINE_KEPT] if isinstance(self.value, str) else self.value
        return Evidence(self.id[:LINE_KEPT], value)


class ReplyPoint(Citation):
    """One argument: what a fact reads, and why it matters for the next bars."""

    says: str
    why: str

    def point(self) -> Point:
        """Return the point as a report keeps it, each sentence without its full stop."""
        says, why = one_line(self.says).rstrip(" ,;:."), one_line(self.why).rstrip(" .")
        return Point(says, *self.fact(), why)


class ReplyRebuttal(Citation):
    """The answer to the other side's strongest point: it is weakened, or granted."""

    says: str
    grants: bool


class ReplyFalsifier(Reply):
    """A close that would end a case: beyond a level, within so many bars."""

    close: Literal["above", "below"]
    level: float
    what: str
    bars: Whole


Citations = Annotated[tuple[Citation, ...], Field(strict=False), FailFast()]
Points = Annotated[tuple[ReplyPoint, ...], Field(strict=False), FailFast()]
Rebuttals = Annotated[tuple[ReplyRebuttal, ...], Field(strict=False), FailFast()]
Falsifiers = Annotated[tuple[ReplyFalsifier, ...], Field(strict=False), FailFast()]
Prices = Annotated[tuple[float, ...], Field(strict=False), FailFast()]


# --- kinds of replies -----------------------------------------------------------------------------


class Argued(Reply):
    """A reply that argues. Alone it moves no score, and has to cite."""

    symbol: str
    claim: str
    points_for: Points
    points_against: Points
    if TYPE_CHECKING:  # fields of every subclass, each in its own place
        confidence: Confidence
        evidence: Citations

    def own_fields(self, features: Features) -> dict[str, Any]:
        """Return what the reply has beside its argument, by the fields of a report."""
        del features
        return {name: getattr(self, name) for name in type(self).model_fields if name in OWNED}

    def report(self, role: Role, features: Features) -> AgentReport:
        """Return the report of the reply, within its role."""
        return self.argue(role, features, dict.fromkeys(VECTORS))

    def argue(
        self,
        role: Role,
        features: Features,
        adjustments: dict[str, float | None],
        flags: tuple[str, ...] = (),
        *,
        cites: bool = True,
    ) -> AgentReport:
        """Return the report with the argument held to the evidence; one that `cites` has to."""
        own = self.own_fields(features)
        points_for = tuple(point.point() for point in self.points_for)
        points_against = tuple(point.point() for point in self.points_against)
        argued = (Evidence(point.id, point.value) for point in (*points_for, *points_against))
        facts = (*argued, *(citation.fact() for citation in self.evidence))
        # All citations are checked, before the record keeps only the first.
        if not (grounded(facts, features) and (facts or not cites)):
            flags = (*flags, UNGROUNDED)
        drawn = AgentReport(
            role.id,
            adjustments,
            self.confidence,
            evidence=tuple(dict.fromkeys(facts))[:CITATIONS_KEPT],
            flags=(*flags, *own.pop("flags", ())),
            claim=self.claim,
            points_for=points_for,
            points_against=points_against,
            **own,
        )
        return _within_role(drawn, role, features, argued=True)


class ReportReply(Argued):
    """The reply of an analyst."""

    adjustments: Annotated[dict[str, float | None], Keys(VECTORS)]
    confidence: Confidence
    evidence: Citations
    flags: Words
    abstained: bool
    abstain_reason: str

    def report(self, role: Role, features: Features) -> AgentReport:
        """Return the report of the reply, or that of an agent that abstains, within its role."""
        # Torra's own flags change what a report weighs: a model may not set them.
        named = [flag for flag in self.flags if flag.strip() and flag not in OWN_FLAGS]
        flags = tuple(flag[:LINE_KEPT] for flag in named[:FLAGS_KEPT])
        if not self.abstained:
            scores = any(value is not None for value in self.adjustments.values())
            return self.argue(role, features, self.adjustments, flags, cites=scores)
        drawn = AgentReport.abstain(role.id, self.abstain_reason[:LINE_KEPT] or "no reason given")
        cited = (*self.points_for, *self.points_against, *self.evidence)
        evidence = tuple(dict.fromkeys(citation.fact() for citation in cited))[:CITATIONS_KEPT]
        drawn = replace(drawn, confidence=self.confidence, evidence=evidence, flags=flags)
        return _within_role(drawn, role, features)


class CaseReply(ReportReply):
    """The reply of a researcher: a report, its answers, and what would prove its case wrong."""

    rebuttals: Rebuttals
    falsifiers: Falsifiers

    def report(self, role: Role, features: Features) -> AgentReport:
        """Return the report of the reply, within its role; one that asks for nothing ends never."""
        report = super().report(role, features)
        if report.abstained:
            return report
        answers = (Rebuttal(one_line(r.says), *r.fact(), r.grants) for r in self.rebuttals)
        holds = [a for a in answers if grounded((Evidence(a.id, a.value),), features)]
        asks = any(report.adjustments.values())
        side = report_side(role, report.adjustments) if asks else 0
        ends = _pending(self.falsifiers, side, features)
        report = replace(report, rebuttals=tuple(holds[:REBUTTALS_KEPT]), falsifiers=ends)
        _refuse_surrogates(*_texts(report))
        return report


class NewsReply(ReportReply):
    """The reply of the news agent: a report, and the ordinals."""

    ordinals: Annotated[dict[str, Whole], Keys(ORDINALS)]


class ReportAheadReply(ReportReply):
    """The reply of a firm's analyst: a report, and the time that it speaks for."""

    horizon: Horizon


class CaseAheadReply(CaseReply):
    """The reply of a firm's researcher: a case, the time that it speaks for, what it risks."""

    horizon: Horizon
    risks: Words


class NewsAheadReply(NewsReply):
    """The reply of a firm's news agent."""

    horizon: Horizon


class JudgementReply(Argued):
    """The reply of an arbiter; each of the two cases weighs 0 to 1."""

    winner: Winner
    weights: Annotated[dict[str, float], Keys(SIDES)]
    confidence: Confidence
    horizon: Horizon
    evidence: Citations


class ThesisReply(Argued):
    """The reply of a trader: why an opening is made, what ends it, and whether to decline it."""

    invalidation: Falsifiers
    risks: Words
    horizon_bars: Whole
    decline: bool
    reason_code: Reason
    confidence: Confidence
    evidence: Citations

    def own_fields(self, features: Features) -> dict[str, Any]:
        """Return what ends the trade, what it risks, and why it is declined."""
        return {
            **super().own_fields(features),
            "falsifiers": _pending(self.invalidation, _order_side(features), features),
            "declined": self.decline,
            "decline_code": str(self.reason_code) if self.decline else "",
        }


class RegimeReply(Argued):
    """The reply of a reader of the regime."""

    regime: RegimeName
    budget_pct: float
    first: str
    bias: Bias
    confidence: Confidence
    evidence: Citations

    def own_fields(self, features: Features) -> dict[str, Any]:
        """Return the regime, with its budget as a share."""
        return {**super().own_fields(features), "budget": self.budget_pct / 100.0}


class FindingReply(ReportAheadReply):
    """The reply of an expert: a report, what it calls odd, which way it leans."""

    anomaly: str
    bias: Bias


class GeometryReply(FindingReply):
    """The reply of the chart expert: a finding, the pattern and the levels that it names."""

    pattern: str
    levels: Prices

    def own_fields(self, features: Features) -> dict[str, Any]:
        """Return the finding with the ids of the computed levels that its prices mean."""
        levels = tuple(dict.fromkeys(nearest(price, features) for price in self.levels))
        return {
            **super().own_fields(features),
            "levels": tuple(filter(None, levels))[:LEVELS_KEPT],
            "flags": (INVENTED,) if "" in levels else (),
        }


class DecisionReply(ReportAheadReply):
    """The reply of a judge: a report, its side, and what speaks against that."""

    side: Winner
    counter: str
    falsifiers: Falsifiers
    win_share: float
    close: bool

    def own_fields(self, features: Features) -> dict[str, Any]:
        """Return side and chance, with what would prove the side wrong."""
        ends = _pending(self.falsifiers, WINNERS[self.side], features)
        return {**super().own_fields(features), "winner": self.side, "falsifiers": ends}


class RulingReply(Reply):
    """The reply of the gate."""

    symbol: str
    multiplier: float
    veto: bool
    reason_code: Reason
    confidence: Confidence
    reasoning: str
    evidence: Citations

    def report(self, role: Role, features: Features) -> AgentReport:
        """Return the gate's report, within its role."""
        evidence = tuple(citation.fact() for citation in self.evidence)
        reason = (str(self.reason_code),)
        drawn = AgentReport(
            role.id,
            dict.fromkeys(VECTORS),
            self.confidence,
            self.reasoning[:REASONING_KEPT],
            evidence=evidence[:CITATIONS_KEPT],
            flags=() if grounded(evidence, features) else (UNGROUNDED,),
            ruling=GateRuling(self.multiplier, self.veto, reason, self.reasoning[:LINE_KEPT]),
        )
        return _within_role(drawn, role, features)


def _number_itself(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a {type(value).__name__} where a number belongs")  # noqa: TRY004
    return value


class Scored(Reply):
    """One score of the single-model scorer; what its note is does not matter."""

    score: Annotated[float, BeforeValidator(_number_itself)]
    note: SkipValidation[str] = ""


class ScoresReply(Reply):
    """The reply of the single-model scorer. A host's score_chart dict passes too."""

    symbol: SkipValidation[str] = ""
    price_action: Scored
    key_levels: Scored
    momentum: Scored
    structure: Scored
    summary: SkipValidation[str] = ""


class ReviewReply(Reply):
    """The reply of the reviewer of a closed trade."""

    symbol: str
    setup: str
    outcome: str
    rule: str


SHAPES: Final[Mapping[str, type[Reply]]] = {
    "report": ReportReply,
    "case": CaseReply,
    "news": NewsReply,
    "ruling": RulingReply,
    "scores": ScoresReply,
    "review": ReviewReply,
    "report_ahead": ReportAheadReply,
    "case_ahead": CaseAheadReply,
    "news_ahead": NewsAheadReply,
    "judgement": JudgementReply,
    "thesis": ThesisReply,
    "regime": RegimeReply,
    "finding": FindingReply,
    "geometry": GeometryReply,
    "decision": DecisionReply,
}
"""The model of each shape of reply."""


# --- reading --------------------------------------------------------------------------------------


def read(shape: Shape, reply: Mapping[str, Any], role: Role, features: Features) -> AgentReport:
    """Return the report of the reply to a prompt of a shape.

    Raises ModelUnavailable: "garbage", and "refused" where a trader abstains.
    """
    if reply.get("abstained") is True and shape == "thesis":
        raise ModelUnavailable("refused", "the trader abstains", again=None)
    if reply.get("abstained") is True and shape in ABSTENTIONS:
        return AgentReport.abstain(role.id, ABSTENTIONS[shape])
    parsed = parse_as(SHAPES[shape], reply)
    if not isinstance(parsed, Argued | RulingReply):
        raise garbage(f"{shape} is no report")
    return parsed.report(role, features)


def scores(reply: Mapping[str, Any]) -> dict[str, float]:
    """Return the four scores of a score_chart dict, each clamped to [-1, +1].

    Raises ModelUnavailable("garbage").
    """
    if not isinstance(reply, Mapping):
        raise garbage(f"scores are {type(reply).__name__}")
    chart = parse_as(ScoresReply, reply)
    return {vector: between(getattr(chart, vector).score, -1.0, 1.0) for vector in VECTORS}


def review(reply: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return setup, outcome and rule as a reviewer worded them, cut at REASONING_KEPT letters.

    torra.lessons.checked_words says which of it is kept. Raises ModelUnavailable("garbage").
    """
    words = parse_as(ReviewReply, reply)
    _refuse_surrogates(words.setup, words.outcome, words.rule)
    setup, outcome, rule = words.setup, words.outcome, words.rule
    return setup[:REASONING_KEPT], outcome[:REASONING_KEPT], rule[:REASONING_KEPT]


R = TypeVar("R", bound=Reply)


def parse_as(model: type[R], reply: Mapping[str, Any]) -> R:
    """Return a reply as its model; raises ModelUnavailable("garbage") when it does not fit."""
    try:
        return model.model_validate(reply if isinstance(reply, dict) else dict(reply))
    # `from None`: the error's own text quotes what the model wrote.
    except ValidationError as error:
        # This text goes to logs and pages, so nothing that a model wrote may be in it.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        fault = first["type"].replace("dict_type", "model_type")  # an object is one or the other
        raise garbage(f"{'.'.join(map(str, first['loc']))}: {fault}") from None
    except OverflowError as error:
        raise garbage(type(error).__name__) from None


@cache
def schema(shape: str) -> Mapping[str, Any]:
    """Return the JSON schema of a shape of reply as every vendor takes it.

    Every field is required, no other key allowed, references are put in their place, titles and
    descriptions left out. There are no ranges: the servers of three vendors treat those
    differently, and `enforce_role` bounds every number.
    """
    drawn = SHAPES[shape].model_json_schema()
    return cast(dict[str, Any], _plain(drawn, drawn.get("$defs", {})))


def _plain(part: Any, definitions: Mapping[str, Any]) -> Any:
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _plain(definitions[part["$ref"].rsplit("/", 1)[-1]], definitions)
    kind = {"type": part["type"]} if "type" in part else {}
    if "properties" in part:
        fields = {name: _plain(field, definitions) for name, field in part["properties"].items()}
        return {
            **kind,
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
    if "anyOf" in part:
        kind["anyOf"] = [_plain(choice, definitions) for choice in part["anyOf"]]
    if "items" in part:
        kind["items"] = _plain(part["items"], definitions)
    if "enum" in part:
        kind["enum"] = list(part["enum"])
    return kind


# --- the limits of a role -------------------------------------------------------------------------


@cache
def _report_type() -> TypeAdapter[AgentReport]:
    return TypeAdapter(AgentReport)


def enforce_role(report: object, role: Role, features: Features) -> AgentReport:
    """Return what an agent returned as a report within its role. Idempotent.

    Raises ModelUnavailable("garbage") for what is no report.
    """
    try:
        drawn = _report_type().validate_python(_frozen(report), strict=True)
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        detail = f"{role.id} returned no report but {type(report).__name__}"
        raise garbage(f"{detail}: {place}" if place else detail) from None
    argues = drawn.points_for or drawn.points_against or drawn.claim
    return _within_role(drawn, role, features, argued=bool(argues) and not drawn.abstained)


def _frozen(value: Any) -> Any:
    """Return a value with tuples for lists and dicts for mappings, as a report is typed."""
    if isinstance(value, AgentReport | GateRuling):
        own = {item.name: _frozen(getattr(value, item.name)) for item in fields(value)}
        return replace(value, **own)
    if isinstance(value, Mapping):
        return {name: _frozen(item) for name, item in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _within_role(
    drawn: AgentReport, role: Role, features: Features, *, argued: bool = False
) -> AgentReport:
    """Return a well-formed report within its role; what it names must be in the evidence."""
    _refuse_surrogates(*_texts(drawn))
    kind = "" if drawn.abstained else role.kind
    for name in REQUIRED.get(kind, ()):
        if not getattr(drawn, name) and getattr(drawn, name) != 0.0:
            raise garbage(f"a {kind} without its {name}")
    moves, flags = _moves(drawn, role)
    numbers, clamped = _numbers(drawn, kind)
    if clamped:
        flags[CLAMPED] = None
    changes: dict[str, Any] = {n: EMPTY[n] for n, kinds in OWNED.items() if kind not in kinds}
    changes |= {"adjustments": moves, **numbers, **_words(drawn, kind)}
    if kind == "analyst" and (drawn.anomaly or drawn.pattern or drawn.levels):
        changes |= _shown_names(drawn, role, features, flags)
    if argued:
        changes |= _argument(drawn, role, features, moves, flags)
    if drawn.ordinals:
        changes["ordinals"] = ordinals = {
            name: between(value, *ORDINALS[name])
            for name, value in drawn.ordinals.items()
            if name in ORDINALS and kind
        }
        if any(value != drawn.ordinals[name] for name, value in ordinals.items()):
            flags[CLAMPED] = None
    if kind == "judge" and WINNERS[drawn.winner]:
        against = changes.get("points_against", drawn.points_against)
        if not (changes["counter"] and against and changes["falsifiers"]):
            flags["unfalsified"] = None
    return replace(drawn, agent_id=role.id, flags=tuple(flags), **changes)


def _moves(drawn: AgentReport, role: Role) -> tuple[dict[str, float | None], dict[str, None]]:
    """Return the adjustments within focus, bound and side of a role, and the report's flags."""
    moves: dict[str, float | None] = dict.fromkeys(VECTORS)
    flags = dict.fromkeys(drawn.flags)
    own_side = {"researcher": SIDES.get(role.id, 0), "judge": WINNERS.get(drawn.winner, 0)}
    for vector in VECTORS:
        value = drawn.adjustments.get(vector)
        if value is None or drawn.abstained:
            continue
        if vector not in role.focus:
            flags["out_of_focus"] = None
            continue
        move = between(float(value), -role.bound, role.bound)
        if move != value:
            flags[CLAMPED] = None
        if move * own_side.get(role.kind, 0) < 0:
            move = 0.0
            flags["conceded"] = None
        moves[vector] = move
    return moves, flags


def _numbers(drawn: AgentReport, kind: str) -> tuple[dict[str, Any], bool]:
    """Return the numbers that a kind of agent alone gives, in their ranges, and if any was not."""
    given: dict[str, Any] = {
        name: 1.0 if getattr(drawn, name) is None else getattr(drawn, name)
        for name in RANGES
        if kind in OWNED[name]
    }
    numbers: dict[str, Any] = {name: between(n, *RANGES[name]) for name, n in given.items()}
    if kind == "arbiter":
        given["weights"] = {name: drawn.weights.get(name, 1.0) for name in SIDES}
        numbers["weights"] = {n: between(value, 0.0, 1.0) for n, value in given["weights"].items()}
    if kind == "gate" and drawn.ruling:
        given["ruling"] = replace(drawn.ruling, veto_sides=())  # both sides or none
        multiplier = between(drawn.ruling.multiplier, 0.0, 1.0)
        numbers["ruling"] = replace(given["ruling"], multiplier=multiplier)
    return numbers, numbers != given


def _words(drawn: AgentReport, kind: str) -> dict[str, Any]:
    """Return the words that a kind of agent alone gives, cut to what is kept."""
    words: dict[str, Any] = {}
    if kind in RISKS_KEPT:
        risks = map(one_line, drawn.risks[: RISKS_KEPT[kind]])
        words["risks"] = tuple(filter(None, risks))
    if kind in ("arbiter", "judge", "trader"):
        kept = () if kind == "arbiter" else drawn.falsifiers[:FALSIFIERS]
        words["falsifiers"] = tuple(map(one_line, kept))
    if kind == "reader":
        words["first"] = drawn.first if drawn.first in EXPERTS else ""
        words["bias"] = drawn.bias or "NEUTRAL"
    if kind == "judge":
        words["counter"] = claim_of(drawn.counter)
    if kind == "trader":
        known = drawn.decline_code in tuple(GateReason) and drawn.decline_code != GateReason.NONE
        code = drawn.decline_code if known else str(GateReason.MODEL_JUDGEMENT)
        words["decline_code"] = code if drawn.declined else ""
    return words


def _shown_names(
    drawn: AgentReport, role: Role, features: Features, flags: dict[str, None]
) -> dict[str, Any]:
    """Return the anomaly, the pattern and the levels that the evidence bears out."""
    anomaly, pattern = (
        "" if name == NO_ANOMALY else name for name in (drawn.anomaly, drawn.pattern)
    )
    known = anomaly in ANOMALIES.get(role.id, ()) and shown_by(anomaly, features)
    by_bars = pattern in PATTERNS and number(features, PATTERN + pattern) == 1.0
    charts = role.id == "geometry"
    levels = tuple(
        name
        for name in dict.fromkeys(drawn.levels)
        if name.startswith(LEVEL) and number(features, name) is not None
    )
    shown = (anomaly if known else "", pattern if by_bars and charts else "")
    if (anomaly, pattern) != shown or not {*drawn.levels} <= {*levels}:
        flags[INVENTED] = None
    kept = levels[:LEVELS_KEPT] if charts else ()
    return {"anomaly": shown[0], "pattern": shown[1], "levels": kept}


def _argument(
    drawn: AgentReport,
    role: Role,
    features: Features,
    moves: Mapping[str, float | None],
    flags: dict[str, None],
) -> dict[str, Any]:
    """Return the claim of a report, cut, and its points on their own sides."""
    side, claim = _side(drawn, role, features, moves), claim_of(drawn.claim)
    given_for, given_against = (
        [point._replace(says=one_line(point.says), why=one_line(point.why)) for point in points]
        for points in (drawn.points_for, drawn.points_against)
    )
    points_for, points_against, misplaced = sort_points(side, given_for, given_against, features)
    if misplaced:
        flags["misplaced"] = None
    asks = any(moves.values()) or (side and role.kind not in OPINIONS)
    if asks and not any(map(str.isdigit, claim)):
        flags["no_number"] = None
    # What the argument rests on first, so that whoever quotes the first few quotes that.
    order = {point.id for point in (*points_for, *points_against)}
    evidence = tuple(sorted(drawn.evidence, key=lambda cited: cited.id not in order))
    return {
        "claim": claim,
        "points_for": points_for,
        "points_against": points_against,
        "evidence": evidence,
    }


def _side(
    report: AgentReport, role: Role, features: Features, moves: Mapping[str, float | None]
) -> int:
    """Return the side that a report argues for: +1, -1, or 0 for none."""
    if role.kind == "arbiter" or (role.kind == "judge" and WINNERS.get(report.winner)):
        return WINNERS.get(report.winner, 0)
    if role.kind == "reader":
        return BIASES.get(report.bias, 0)
    if role.kind == "trader":
        # Who declines argues against the opening that it was asked about.
        return _order_side(features) * (-1 if report.declined else 1)
    return report_side(role, moves)


def _order_side(features: Features) -> int:
    """Return the side of the opening that a trader is asked about: +1, -1, or 0 for none."""
    order = features.get(ORDER_SIDE)
    return {"BUY": 1, "SELL": -1}.get(str(order.value), 0) if order else 0


# --- words and numbers ----------------------------------------------------------------------------


def one_line(text: str) -> str:
    """Return a text on one line, as long as a report keeps it."""
    return " ".join(text.split())[:LINE_KEPT].rstrip()


def claim_of(text: str) -> str:
    """Return a claim of at most CLAIM_WORDS words; one that is cut stays as it is if cut again."""
    words = text.split()
    if len(words) <= CLAIM_WORDS:
        return one_line(text)
    return f"{' '.join(words[:CLAIM_WORDS])[: LINE_KEPT - 1].rstrip(' ,;:.')}…"


def nearest(price: float, features: Features) -> str:
    """Return the id of the computed level within LEVEL_ATR of a price, "" where there is none."""
    atr = number(features, ATR)
    if atr is None or atr <= 0.0:
        return ""
    known = {name: number(features, name) for name in sorted(features) if name.startswith(LEVEL)}
    apart = [(abs(price - level), name) for name, level in known.items() if level is not None]
    distance, name = min(apart, default=(math.inf, ""))
    return name if distance <= LEVEL_ATR * atr else ""


def _pending(ends: Falsifiers, side: int, features: Features) -> tuple[str, ...]:
    """Return the falsifiers of a side that may still come, in words."""
    named = (
        Falsifier(e.close, e.level, " ".join(e.what.split())[:NAME_KEPT].rstrip(" ,;:."), e.bars)
        for e in ends
    )
    texts = (falsifier_text(e, features) for e in pending_falsifiers(named, side, features))
    return tuple(dict.fromkeys(texts))[:FALSIFIERS]


def between(value: N, low: N, high: N) -> N:
    """Return a number within a range."""
    return max(low, min(high, value))


def _texts(report: AgentReport) -> list[str]:
    """Return every text of a report that an agent wrote."""
    texts = [getattr(report, name) for name in LINES]
    for name in ROWS:
        texts += getattr(report, name)
    for cited in (*report.points_for, *report.points_against, *report.rebuttals, *report.evidence):
        texts += [part for part in cited if isinstance(part, str)]
    return texts


def _refuse_surrogates(*texts: str) -> None:
    """Refuse a lone surrogate: the text of a reply has none, one that came as an object may."""
    joined = "".join(texts)
    try:
        joined.isascii() or joined.encode()
    except UnicodeEncodeError as error:
        raise garbage(type(error).__name__) from None
