"""From the text of a reply to a value, or to a failure: schemas, strict parsing, bounds, grounding.

A reply either fits its schema exactly or the agent failed: `ModelUnavailable("garbage")`, never a
neutral vote and never another exception. NaN, Infinity, 1e999, a string or a boolean where a number
belongs, a duplicate or missing key, a lone surrogate, anything around the JSON object and more than
64 kB are garbage; an answer about another symbol is `wrong_symbol`. What fits is then held to the
role: a finite number outside its bound is clamped and flagged `clamped`, a vector outside its focus
is dropped and flagged `out_of_focus`, and citations that are not in the evidence flag the report
`ungrounded`. A report that scores something and cites nothing is ungrounded too: nothing can be
checked. Fields are parsed, prose never is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn, TypeVar, cast

from agent_config import CONFIDENCE_WEIGHT
from scoring_rubric import OWN_FLAGS

from .contracts import (
    VECTORS,
    AgentReport,
    Confidence,
    Evidence,
    Feature,
    GateReason,
    GateRuling,
    ModelUnavailable,
    Role,
)
from .evidence import grounded

MAX_REPLY_CHARS: Final = 65_536
"""A longer reply is not read."""

REASONING_KEPT: Final = 2_000
"""Characters of reasoning that a report keeps; the call record keeps the whole reply."""
LINE_KEPT: Final = 300
"""Characters kept of a key point, a flag, a cited word or an abstention's reason."""
LINES_KEPT: Final = 8
"""Key points and flags that a report keeps."""
CITATIONS_KEPT: Final = 40
"""Citations that a report keeps; all of them are checked."""

CLAMPED: Final = "clamped"
OUT_OF_FOCUS: Final = "out_of_focus"
UNGROUNDED: Final = "ungrounded"

ABSTAINED: Final = "no reason given"

T = TypeVar("T")


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_NUMBER: Final = {"type": "number"}
_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_OPTIONAL: Final = {"anyOf": [_NUMBER, {"type": "null"}]}
_CONFIDENCE: Final = {"type": "string", "enum": list(CONFIDENCE_WEIGHT)}
_CITED: Final = _list(_object(id=_TEXT, value={"anyOf": [_NUMBER, _TEXT]}))

SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "report": _object(
        symbol=_TEXT,
        adjustments=_object(**dict.fromkeys(VECTORS, _OPTIONAL)),
        confidence=_CONFIDENCE,
        reasoning=_TEXT,
        key_points=_list(_TEXT),
        evidence=_CITED,
        flags=_list(_TEXT),
        abstained=_FLAG,
        abstain_reason=_TEXT,
    ),
    "ruling": _object(
        symbol=_TEXT,
        multiplier=_NUMBER,
        veto=_FLAG,
        reason_code={"type": "string", "enum": [str(reason) for reason in GateReason]},
        confidence=_CONFIDENCE,
        reasoning=_TEXT,
        evidence=_CITED,
    ),
    "scores": _object(
        symbol=_TEXT,
        **dict.fromkeys(VECTORS, _object(score=_NUMBER, note=_TEXT)),
        summary=_TEXT,
    ),
}
"""JSON schema of each reply: every field required, no free keys, no ranges (the servers of three
vendors treat those differently; the bounds are enforced here).
"""


def load(text: object, symbol: str) -> dict[str, Any]:
    """Return the JSON object of a reply about `symbol`; raises ModelUnavailable and only that."""
    if not isinstance(text, str):
        raise _garbage(f"the reply is {type(text).__name__}, not text")
    if len(text) > MAX_REPLY_CHARS:
        raise _garbage(f"the reply has {len(text)} characters")
    try:
        reply = _DECODER.decode(text)
        text.encode()
        if "\\u" in text:
            json.dumps(reply, ensure_ascii=False).encode()
    except ModelUnavailable:
        raise
    except (ValueError, RecursionError) as error:
        raise _garbage(type(error).__name__) from None
    if not isinstance(reply, dict):
        raise _garbage("the reply is no JSON object")
    if _text(reply, "symbol") != symbol:
        raise ModelUnavailable("wrong_symbol", reply["symbol"][:LINE_KEPT])
    return reply


def report(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `report` into a report; raises ModelUnavailable("garbage")."""
    given = _mapping(reply, "adjustments")
    adjustments = {vector: _optional_number(given, vector) for vector in VECTORS}
    abstained = _boolean(reply, "abstained")
    reason = _text(reply, "abstain_reason")[:LINE_KEPT] or ABSTAINED
    evidence = _citations(reply)
    flags = [flag for flag in _lines(reply, "flags") if flag not in OWN_FLAGS]
    drawn = AgentReport(
        agent_id=role.id,
        adjustments=dict.fromkeys(VECTORS) if abstained else adjustments,
        confidence=_confidence(reply),
        reasoning=_text(reply, "reasoning")[:REASONING_KEPT],
        key_points=_lines(reply, "key_points"),
        evidence=evidence[:CITATIONS_KEPT],
        flags=tuple(flags),
        abstained=abstained,
        reason=reason if abstained else "",
    )
    if not abstained and not _stands(drawn, evidence, features):
        drawn = replace(drawn, flags=(*drawn.flags, UNGROUNDED))
    return held_to(drawn, role)


def ruling(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `ruling` into a gate's report; raises ModelUnavailable("garbage")."""
    code = _text(reply, "reason_code")
    if code not in _REASONS:
        raise _garbage("unknown reason_code")
    reasoning = _text(reply, "reasoning")[:REASONING_KEPT]
    evidence = _citations(reply)
    drawn = AgentReport(
        agent_id=role.id,
        adjustments=dict.fromkeys(VECTORS),
        confidence=_confidence(reply),
        reasoning=reasoning,
        evidence=evidence[:CITATIONS_KEPT],
        flags=() if grounded(evidence, features) else (UNGROUNDED,),
        ruling=GateRuling(
            _number(reply, "multiplier"), _boolean(reply, "veto"), (code,), reasoning[:LINE_KEPT]
        ),
    )
    return held_to(drawn, role)


def scores(reply: Mapping[str, Any]) -> dict[str, float]:
    """Return the four scores of a score_chart dict, each clamped to [-1, +1].

    Raises ModelUnavailable("garbage").
    """
    if not isinstance(reply, Mapping):
        raise _garbage(f"scores are {type(reply).__name__}")
    return {vector: _within(_number(_mapping(reply, vector), "score"), 1.0) for vector in VECTORS}


def held_to(drawn: object, role: Role) -> AgentReport:
    """Return a report within its role: bounds, focus, finite numbers. Twice changes nothing.

    Raises ModelUnavailable("garbage") for what is no report.
    """
    if not isinstance(drawn, AgentReport) or not _well_formed(drawn):
        raise _garbage(f"{role.id} returned no proper report but {type(drawn).__name__}")
    adjustments: dict[str, float | None] = dict.fromkeys(VECTORS)
    flags = dict.fromkeys(drawn.flags)
    for vector in VECTORS:
        value = drawn.adjustments.get(vector)
        if value is None or drawn.abstained:
            continue
        if vector not in role.focus:
            flags[OUT_OF_FOCUS] = None
            continue
        adjustments[vector] = _within(_finite(value), role.bound)
        if adjustments[vector] != value:
            flags[CLAMPED] = None
    judged = drawn.ruling if role.kind == "gate" else None
    if judged is not None:
        judged = replace(judged, multiplier=max(0.0, min(1.0, _finite(judged.multiplier))))
        if drawn.ruling is not None and judged.multiplier != drawn.ruling.multiplier:
            flags[CLAMPED] = None
    elif role.kind == "gate" and not drawn.abstained:
        raise _garbage("a gate without a ruling")
    return replace(
        drawn, agent_id=role.id, adjustments=adjustments, flags=tuple(flags), ruling=judged
    )


def _well_formed(drawn: AgentReport) -> bool:
    words = (drawn.reasoning, drawn.reason, *drawn.key_points, *drawn.flags)
    return (
        isinstance(drawn.adjustments, Mapping)
        and drawn.confidence in CONFIDENCE_WEIGHT
        and all(isinstance(word, str) for word in words)
        and all(isinstance(cited, Evidence) for cited in drawn.evidence)
    )


def _stands(
    drawn: AgentReport, evidence: tuple[Evidence, ...], features: Mapping[str, Feature]
) -> bool:
    scored = any(value is not None for value in drawn.adjustments.values())
    return grounded(evidence, features) and (bool(evidence) or not scored)


def _garbage(detail: str) -> ModelUnavailable:
    return ModelUnavailable("garbage", detail)


def _within(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _garbage(f"a {type(value).__name__} where a number belongs")
    try:
        converted = float(value)
    except OverflowError:
        raise _garbage("a number too large to be one") from None
    if not math.isfinite(converted):
        raise _garbage("a number that is not finite")
    return converted


def _field(reply: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = reply.get(name)
    if not isinstance(value, kind):
        raise _garbage(f"{name} is missing or no {kind.__name__}")
    return value


def _number(reply: Mapping[str, Any], name: str) -> float:
    return _finite(reply.get(name))


def _optional_number(reply: Mapping[str, Any], name: str) -> float | None:
    if name not in reply:
        raise _garbage(f"{name} is missing")
    return None if reply[name] is None else _finite(reply[name])


def _text(reply: Mapping[str, Any], name: str) -> str:
    return _field(reply, name, str)


def _boolean(reply: Mapping[str, Any], name: str) -> bool:
    return _field(reply, name, bool)


def _mapping(reply: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _field(reply, name, dict)


def _lines(reply: Mapping[str, Any], name: str) -> tuple[str, ...]:
    items = _field(reply, name, list)
    if not all(isinstance(item, str) for item in items):
        raise _garbage(f"{name} holds more than text")
    return tuple(item[:LINE_KEPT] for item in items[:LINES_KEPT])


def _confidence(reply: Mapping[str, Any]) -> Confidence:
    word = _text(reply, "confidence")
    if word not in CONFIDENCE_WEIGHT:
        raise _garbage("unknown confidence")
    return cast(Confidence, word)


def _citations(reply: Mapping[str, Any]) -> tuple[Evidence, ...]:
    return tuple(_citation(item) for item in _field(reply, "evidence", list))


def _citation(item: object) -> Evidence:
    if not isinstance(item, dict) or "value" not in item:
        raise _garbage("a citation without id or value")
    value = item["value"]
    if isinstance(value, str):
        return Evidence(_text(item, "id")[:LINE_KEPT], value[:LINE_KEPT])
    return Evidence(_text(item, "id")[:LINE_KEPT], None if value is None else _finite(value))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _garbage("a duplicate key")
    return found


def _constant(word: str) -> NoReturn:
    raise _garbage(f"{word} is no number")


_REASONS: Final = frozenset(str(reason) for reason in GateReason)
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_float=cast(Callable[[str], Any], lambda word: _finite(float(word))),
    parse_constant=_constant,
)
