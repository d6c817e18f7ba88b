"""Replies of models: parses a text strictly into a report, or fails; the schemas; the bounds.

A reply either fits its model here exactly or the agent failed: `ModelUnavailable("garbage")`, never
a neutral vote and never another exception. The JSON schemas that providers send are made from the
same models, so that there is one truth.

Garbage is: NaN, Infinity, 1e999, a string or a boolean where a number belongs, a duplicate or
missing key, a lone surrogate, anything around the JSON object, and more than 64 kB. An answer about
another symbol is `wrong_symbol`. A key that nobody asked for is ignored.

A reply that fits is then held to its role. A finite number outside its bound is clamped and flagged
`clamped`, and so is an ordinal. A vector outside its focus is dropped and flagged `out_of_focus`. A
researcher's number against its own side counts as 0, flagged `conceded`.
Citations that are not in the evidence flag the report `ungrounded`; so does scoring without any
citation, because nothing can be checked. Fields are parsed, prose never is: prose may be in any
language, keys and enumerated words may not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, NoReturn, TypeVar, cast

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

from agent_config import CONFIDENCE_WEIGHT
from scoring_rubric import OWN_FLAGS

from ..contracts import (
    EMPTY,
    ORDINALS,
    SIDES,
    VECTORS,
    AgentReport,
    Confidence,
    Evidence,
    Feature,
    GateReason,
    GateRuling,
    ModelUnavailable,
    Role,
    Shape,
)
from ..evidence import grounded

MAX_REPLY_CHARS: Final = 65_536
"""A longer reply is not read."""

REASONING_KEPT: Final = 2_000
"""Characters of reasoning that a report keeps; the call record keeps the whole reply."""
LINE_KEPT: Final = 300
"""Characters kept of a key point, a flag, a cited word or an abstention's reason."""
LINES_KEPT: Final = 8
"""Key points, falsifiers and flags that a report keeps."""
CITATIONS_KEPT: Final = 40
"""Citations that a report keeps; all of them are checked."""

CLAMPED: Final = "clamped"
CONCEDED: Final = "conceded"
OUT_OF_FOCUS: Final = "out_of_focus"
UNGROUNDED: Final = "ungrounded"

ABSTAINED: Final = "no reason given"

# Strict models take no string for an enum and no list for a tuple, and JSON has only those.
Reason = Annotated[GateReason, Field(strict=False)]
Listed = Annotated[tuple[str, ...], Field(strict=False), FailFast()]
CitedValue = Annotated[
    float | str | None,
    Field(union_mode="left_to_right"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]
"""What a citation says; null is not asked for, and a citation of it is not true of any feature."""


class Reply(BaseModel):
    """A reply: every field there, of its own type, every number finite; more keys are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        strict=True, frozen=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True
    )


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


Cited = Annotated[tuple[Citation, ...], Field(strict=False), FailFast()]


class ReportReply(Reply):
    """The reply of an analyst."""

    symbol: str
    adjustments: Adjustments
    confidence: Confidence
    reasoning: str
    key_points: Listed
    evidence: Cited
    flags: Listed
    abstained: bool
    abstain_reason: str


class CaseReply(ReportReply):
    """The reply of a researcher: a report, and what would prove its case wrong."""

    falsifiers: Listed


def _whole(value: object) -> object:
    """Return 2.0 as 2: JSON does not tell them apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole, json_schema_input_type=int)]


class Ordinals(Reply):
    """What the news amounts to, in whole numbers; ORDINALS has their ranges."""

    relevance: Whole
    sentiment: Whole
    price_impact: Whole
    trend: Whole
    investor_confidence: Whole
    risk_profile_change: Whole


class NewsReply(ReportReply):
    """The reply of the news agent: a report, and the ordinals."""

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


R = TypeVar("R", bound=Reply)


def _schema(model: type[Reply]) -> dict[str, Any]:
    """Return the JSON schema of a reply as every vendor takes it.

    Every field is required, no other key allowed, references are put in their place, titles and
    descriptions left out. The models have no ranges: the servers of three vendors treat those
    differently, the bounds are enforced in `held_to`.
    """
    drawn = model.model_json_schema()
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


SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "report": _schema(ReportReply),
    "case": _schema(CaseReply),
    "news": _schema(NewsReply),
    "ruling": _schema(RulingReply),
    "scores": _schema(ScoresReply),
}
"""JSON schema of each shape of reply."""


def load(text: object, symbol: str) -> dict[str, Any]:
    """Return the JSON object of a reply about `symbol`; raises ModelUnavailable and only that."""
    if not isinstance(text, str):
        raise _garbage(f"the reply is {type(text).__name__}, not text")
    if len(text) > MAX_REPLY_CHARS:
        raise _garbage(f"the reply has {len(text)} characters")
    try:
        reply = _DECODER.decode(text)
        # A lone surrogate cannot be stored: it is refused here, as text or as an escape.
        text.encode()
        if "\\u" in text:
            json.dumps(reply, ensure_ascii=False).encode()
    except ModelUnavailable:
        raise
    except (ValueError, RecursionError) as error:
        raise _garbage(type(error).__name__) from None
    return about(reply, symbol)


def about(reply: object, symbol: str) -> dict[str, Any]:
    """Return the object of a reply about `symbol`; raises ModelUnavailable and only that."""
    if not isinstance(reply, dict):
        raise _garbage("the reply is no JSON object")
    told = reply.get("symbol")
    if not isinstance(told, str):
        raise _garbage("the reply names no symbol")
    if told != symbol:
        raise ModelUnavailable("wrong_symbol", told[:LINE_KEPT])
    return reply


def read(
    shape: Shape, reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]
) -> AgentReport:
    """Turn the reply to a prompt of a shape into a report; raises ModelUnavailable("garbage")."""
    if shape == "ruling":
        return ruling(reply, role, features)
    if shape == "case":
        return case(reply, role, features)
    if shape == "news":
        return news(reply, role, features)
    return report(reply, role, features)


def report(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `report` into a report; raises ModelUnavailable("garbage")."""
    return _held(_drawn(_fitting(ReportReply, reply), role, features), role)


def case(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `case` into a report; raises ModelUnavailable("garbage")."""
    told = _fitting(CaseReply, reply)
    falsifiers = () if told.abstained else _lines(told.falsifiers)
    return _held(_drawn(told, role, features, falsifiers=falsifiers), role)


def news(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `news` into a report; raises ModelUnavailable("garbage")."""
    told = _fitting(NewsReply, reply)
    ordinals = {} if told.abstained else {name: getattr(told.ordinals, name) for name in ORDINALS}
    return _held(_drawn(told, role, features, ordinals=ordinals), role)


def _drawn(
    told: ReportReply,
    role: Role,
    features: Mapping[str, Feature],
    *,
    falsifiers: tuple[str, ...] = (),
    ordinals: Mapping[str, int] = EMPTY,
) -> AgentReport:
    given = told.adjustments
    adjustments = {vector: getattr(given, vector) for vector in VECTORS}
    evidence = _citations(told.evidence)
    points = _lines(told.key_points)
    _writable(evidence, told.reasoning, told.abstain_reason, *points, *told.flags, *falsifiers)
    # Torra's own flags change what a report weighs: a model may not set them.
    flags = [flag for flag in _lines(told.flags) if flag not in OWN_FLAGS]
    # All citations are checked, before the record keeps only the first.
    if not told.abstained and not _stands(adjustments, evidence, features):
        flags.append(UNGROUNDED)
    return AgentReport(
        agent_id=role.id,
        adjustments=dict.fromkeys(VECTORS) if told.abstained else adjustments,
        confidence=told.confidence,
        reasoning=told.reasoning[:REASONING_KEPT],
        key_points=points,
        evidence=evidence[:CITATIONS_KEPT],
        flags=tuple(flags),
        abstained=told.abstained,
        reason=(told.abstain_reason[:LINE_KEPT] or ABSTAINED) if told.abstained else "",
        falsifiers=falsifiers,
        ordinals=ordinals,
    )


def ruling(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `ruling` into a gate's report; raises ModelUnavailable("garbage")."""
    told = _fitting(RulingReply, reply)
    reasoning = told.reasoning[:REASONING_KEPT]
    evidence = _citations(told.evidence)
    _writable(evidence, reasoning)
    drawn = AgentReport(
        agent_id=role.id,
        adjustments=dict.fromkeys(VECTORS),
        confidence=told.confidence,
        reasoning=reasoning,
        evidence=evidence[:CITATIONS_KEPT],
        flags=() if grounded(evidence, features) else (UNGROUNDED,),
        ruling=GateRuling(
            told.multiplier, told.veto, (str(told.reason_code),), reasoning[:LINE_KEPT]
        ),
    )
    return _held(drawn, role)


def scores(reply: Mapping[str, Any]) -> dict[str, float]:
    """Return the four scores of a score_chart dict, each clamped to [-1, +1].

    Raises ModelUnavailable("garbage").
    """
    if not isinstance(reply, Mapping):
        raise _garbage(f"scores are {type(reply).__name__}")
    told = _fitting(ScoresReply, reply)
    return {vector: _within(getattr(told, vector).score, 1.0) for vector in VECTORS}


def held_to(drawn: object, role: Role) -> AgentReport:
    """Return a report held to its role: bounds, focus, finite numbers. Idempotent.

    Raises ModelUnavailable("garbage") for what is no report.
    """
    if not isinstance(drawn, AgentReport) or not _well_formed(drawn):
        raise _garbage(f"{role.id} returned no proper report but {type(drawn).__name__}")
    return _held(drawn, role)


def _held(drawn: AgentReport, role: Role) -> AgentReport:
    """Return a well-formed report within its role."""
    adjustments: dict[str, float | None] = dict.fromkeys(VECTORS)
    flags = dict.fromkeys(drawn.flags)
    for vector in VECTORS:
        value = drawn.adjustments.get(vector)
        if value is None or drawn.abstained:
            continue
        if vector not in role.focus:
            flags[OUT_OF_FOCUS] = None
            continue
        held = _within(_finite(value), role.bound)
        if held != value:
            flags[CLAMPED] = None
        # By its office: a bull's word is never below 0, a bear's never above.
        if role.kind == "researcher" and held * SIDES.get(role.id, 0) < 0:
            held = 0.0
            flags[CONCEDED] = None
        adjustments[vector] = held
    ordinals = {
        name: max(least, min(most, drawn.ordinals[name]))
        for name, (least, most) in ORDINALS.items()
        if name in drawn.ordinals and not drawn.abstained
    }
    if any(value != drawn.ordinals[name] for name, value in ordinals.items()):
        flags[CLAMPED] = None
    # Only the gate rules: a ruling in any other report is dropped.
    judged = drawn.ruling if role.kind == "gate" else None
    if judged is not None:
        judged = replace(judged, multiplier=max(0.0, min(1.0, _finite(judged.multiplier))))
        if drawn.ruling is not None and judged.multiplier != drawn.ruling.multiplier:
            flags[CLAMPED] = None
    elif role.kind == "gate" and not drawn.abstained:
        raise _garbage("a gate without a ruling")
    return AgentReport(
        agent_id=role.id,
        adjustments=adjustments,
        confidence=drawn.confidence,
        reasoning=drawn.reasoning,
        key_points=drawn.key_points,
        evidence=drawn.evidence,
        flags=tuple(flags),
        abstained=drawn.abstained,
        reason=drawn.reason,
        ruling=judged,
        falsifiers=drawn.falsifiers,
        ordinals=ordinals,
    )


def _well_formed(drawn: AgentReport) -> bool:
    words = (drawn.reasoning, drawn.reason, *drawn.key_points, *drawn.flags, *drawn.falsifiers)
    return (
        isinstance(drawn.adjustments, Mapping)
        and isinstance(drawn.ordinals, Mapping)
        and all(type(value) is int for value in drawn.ordinals.values())
        and drawn.confidence in CONFIDENCE_WEIGHT
        and isinstance(drawn.abstained, bool)
        and all(isinstance(word, str) for word in words)
        and all(map(_is_citation, drawn.evidence))
    )


_PLAIN: Final = frozenset((str, int, float, type(None)))


def _is_citation(cited: object) -> bool:
    if type(cited) is Evidence and type(cited.id) is str and type(cited.value) in _PLAIN:
        return True  # nearly every one
    return (
        isinstance(cited, Evidence)
        and isinstance(cited.id, str)
        and not isinstance(cited.value, bool)
        and isinstance(cited.value, str | int | float | None)
    )


def _stands(
    adjustments: Mapping[str, float | None],
    evidence: tuple[Evidence, ...],
    features: Mapping[str, Feature],
) -> bool:
    scored = any(value is not None for value in adjustments.values())
    return grounded(evidence, features) and (bool(evidence) or not scored)


def _garbage(detail: str) -> ModelUnavailable:
    return ModelUnavailable("garbage", detail)


def _within(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))


def _finite(value: object) -> float:
    # True is an int to Python, and would count as a full vote.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _garbage(f"a {type(value).__name__} where a number belongs")
    try:
        converted = float(value)
    # JSON has integers of any length; float() takes none above 1e308.
    except OverflowError:
        raise _garbage("a number too large to be one") from None
    if not math.isfinite(converted):
        raise _garbage("a number that is not finite")
    return converted


def _fitting(model: type[R], reply: Mapping[str, Any]) -> R:
    try:
        return model.model_validate(reply if isinstance(reply, dict) else dict(reply))
    # `from None` here and below: the error's own text quotes what the model wrote.
    except (ValidationError, OverflowError) as error:
        raise _garbage(_fault(error)) from None


def _fault(error: Exception) -> str:
    """Return where a reply does not fit and why, without a word of the reply."""
    if not isinstance(error, ValidationError):
        return type(error).__name__
    # This text goes to logs and pages, so nothing that a model wrote may be in it.
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['type']}"


def _lines(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item[:LINE_KEPT] for item in items[:LINES_KEPT])


def _citations(cited: tuple[Citation, ...]) -> tuple[Evidence, ...]:
    return tuple(_kept(item.id, item.value) for item in cited)


def _writable(evidence: tuple[Evidence, ...], *words: str) -> None:
    """Refuse a lone surrogate: the text of a reply has none, one that came as an object may."""
    ids = [cited.id for cited in evidence]
    values = [cited.value for cited in evidence if isinstance(cited.value, str)]
    text = "".join((*words, *ids, *values))
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        raise _garbage(type(error).__name__) from None


def _kept(name: str, value: float | str | None) -> Evidence:
    return Evidence(name[:LINE_KEPT], value[:LINE_KEPT] if isinstance(value, str) else value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json keeps the last of two equal keys; which of them the model meant nobody knows.
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _garbage("a duplicate key")
    return found


def _number(word: str) -> float:
    # 1e999 is good JSON, and infinity to float().
    number = float(word)
    if not math.isfinite(number):
        raise _garbage("a number that is not finite")
    return number


def _constant(word: str) -> NoReturn:
    raise _garbage(f"{word} is no number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_float=_number,
    parse_constant=_constant,
)
