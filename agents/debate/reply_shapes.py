"""The shapes of the replies: one strict model per shape, from which the schemas come.

`schema` is what providers ask a model for. `fitting` reads a reply into its model, or refuses it.
A reply of the time before arguments had claims and points (`reasoning`, `key_points`) has models of
its own and no schema: it is still read, and nobody is asked for it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    SkipValidation,
    ValidationError,
    WithJsonSchema,
)

from ..contracts import (
    Bias,
    Confidence,
    GateReason,
    Horizon,
    ModelUnavailable,
    RegimeName,
    Winner,
)

# Strict models take no string for an enum and no list for a tuple, and JSON has only those.
Reason = Annotated[GateReason, Field(strict=False)]
Listed = Annotated[tuple[str, ...], Field(strict=False), FailFast()]
CitedValue = Annotated[
    float | str | None,
    Field(union_mode="left_to_right"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]
"""What a citation says; null is not asked for, and a citation of it is not true of any feature."""


def _whole(value: object) -> object:
    """Return 2.0 as 2: JSON does not tell them apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole, json_schema_input_type=int)]


class Reply(BaseModel):
    """A reply: every field there, of its own type, every number finite; more keys are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        strict=True, frozen=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True
    )


# --- parts ----------------------------------------------------------------------------------------


class Adjustments(Reply):
    """How far the market stands from each score; null where an agent cannot tell."""

    price_action: float | None
    key_levels: float | None
    momentum: float | None
    structure: float | None


class Citation(Reply):
    """A fact of the evidence as a reply cites it."""

    id: str
    value: CitedValue


class PointTold(Citation):
    """One argument: what a fact reads, and why it matters for the next bars."""

    says: str
    why: str


class RebuttalTold(Citation):
    """The answer to the other side's strongest point: it is weakened, or granted."""

    says: str
    grants: bool


class FalsifierTold(Reply):
    """A close that would end a case: beyond a level, within so many bars."""

    close: Literal["above", "below"]
    level: float
    what: str
    bars: Whole


Cited = Annotated[tuple[Citation, ...], Field(strict=False), FailFast()]
Points = Annotated[tuple[PointTold, ...], Field(strict=False), FailFast()]
Rebuttals = Annotated[tuple[RebuttalTold, ...], Field(strict=False), FailFast()]
Falsifiers = Annotated[tuple[FalsifierTold, ...], Field(strict=False), FailFast()]
Numbers = Annotated[tuple[float, ...], Field(strict=False), FailFast()]


class Ordinals(Reply):
    """What the news amounts to, in whole numbers; ORDINALS has their ranges."""

    relevance: Whole
    sentiment: Whole
    price_impact: Whole
    trend: Whole
    investor_confidence: Whole
    risk_profile_change: Whole


# --- shapes ---------------------------------------------------------------------------------------


class _Argued(Reply):
    symbol: str
    claim: str
    points_for: Points
    points_against: Points


class Opinion(Reply):
    """What every reply with adjustments has, whatever else it says."""

    symbol: str
    adjustments: Adjustments
    confidence: Confidence
    evidence: Cited
    flags: Listed
    abstained: bool
    abstain_reason: str


class ReportReply(Opinion, _Argued):
    """The reply of an analyst."""


class CaseReply(ReportReply):
    """The reply of a researcher: a report, its answers, and what would prove its case wrong."""

    rebuttals: Rebuttals
    falsifiers: Falsifiers


class NewsReply(ReportReply):
    """The reply of the news agent: a report, and the ordinals."""

    ordinals: Ordinals


class ReportAheadReply(ReportReply):
    """The reply of a firm's analyst: a report, and the time that it speaks for."""

    horizon: Horizon


class CaseAheadReply(CaseReply):
    """The reply of a firm's researcher: a case, the time that it speaks for, what it risks."""

    horizon: Horizon
    risks: Listed


class NewsAheadReply(NewsReply):
    """The reply of a firm's news agent."""

    horizon: Horizon


class CaseWeights(Reply):
    """What each of the two cases is worth, 0 to 1."""

    bull_researcher: float
    bear_researcher: float


class JudgementReply(_Argued):
    """The reply of an arbiter."""

    winner: Winner
    weights: CaseWeights
    confidence: Confidence
    horizon: Horizon
    evidence: Cited


class ThesisReply(_Argued):
    """The reply of a trader: why an opening is made, what ends it, and whether to decline it."""

    invalidation: Falsifiers
    risks: Listed
    horizon_bars: Whole
    decline: bool
    reason_code: Reason
    confidence: Confidence
    evidence: Cited


class RegimeReply(_Argued):
    """The reply of a reader of the regime."""

    regime: RegimeName
    budget_pct: float
    first: str
    bias: Bias
    confidence: Confidence
    evidence: Cited


class FindingReply(ReportAheadReply):
    """The reply of an expert: a report, what it calls odd, which way it leans."""

    anomaly: str
    bias: Bias


class GeometryReply(FindingReply):
    """The reply of the chart expert: a finding, the pattern and the levels that it names."""

    pattern: str
    levels: Numbers


class DecisionReply(ReportAheadReply):
    """The reply of a judge: a report, its side, and what speaks against that."""

    side: Winner
    counter: str
    falsifiers: Falsifiers
    win_share: float
    close: bool


class OldReport(Opinion):
    """An analyst's reply as it was before claims and points."""

    reasoning: str
    key_points: Listed


class OldCase(OldReport):
    """A researcher's reply as it was then."""

    falsifiers: Listed


class OldNews(OldReport):
    """The news agent's reply as it was then."""

    ordinals: Ordinals


class RulingReply(Reply):
    """The reply of the gate."""

    symbol: str
    multiplier: float
    veto: bool
    reason_code: Reason
    confidence: Confidence
    reasoning: str
    evidence: Cited


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


R = TypeVar("R", bound=Reply)


def parse_as(model: type[R], reply: Mapping[str, Any]) -> R:
    """Return a reply as its model; raises ModelUnavailable("garbage") when it does not fit."""
    try:
        return model.model_validate(reply if isinstance(reply, dict) else dict(reply))
    # `from None`: the error's own text quotes what the model wrote.
    except (ValidationError, OverflowError) as error:
        raise ModelUnavailable("garbage", _fault(error)) from None


def _fault(error: Exception) -> str:
    """Return where a reply does not fit and why, without a word of the reply."""
    if not isinstance(error, ValidationError):
        return type(error).__name__
    # This text goes to logs and pages, so nothing that a model wrote may be in it.
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['type']}"


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


@cache
def schema(shape: str) -> Mapping[str, Any]:
    """Return the JSON schema of a shape of reply as every vendor takes it.

    Every field is required, no other key allowed, references are put in their place, titles and
    descriptions left out. The models have no ranges: the servers of three vendors treat those
    differently, the bounds are enforced in `agents.debate.replies`. It is drawn when a shape is
    first asked for: no desk asks for all of them.
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
