"""Replies of models: one strict model a shape of reply, and the report that becomes of each.

A reply fits its model exactly or its agent failed: ModelUnavailable("garbage"), never a neutral
vote and never another exception. Garbage is a number that is not finite, a string or a boolean
where a number belongs, a missing key, a lone surrogate. A key that nobody asked for is ignored.
`agents.texts.door` reads the text before.

A shape that becomes a report is a row of REPORTS: its fields in their order, with the types of
FIELDS. `within_role` is the one place where the limits of a role are enforced: for a reply of a
model, and for what an agent of another hand returns, whose types `enforce_role` checks before.

- A number outside its bound is clamped, flagged `clamped`.
- A vector outside the focus of the role is dropped, flagged `out_of_focus`.
- A researcher's or a judge's number against its own side counts as 0, flagged `conceded`.
- A field that only other kinds of agents may fill is emptied (OWN).
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
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    SkipValidation,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic_core import PydanticSerializationError

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
from ..texts.door import LINE_KEPT, MAX_REPLY_CHARS, garbage

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

OWN: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(names.split())
    for kind, names in (
        ("gate", "ruling"),
        ("analyst", "ordinals horizon bias anomaly pattern levels"),
        ("researcher", "horizon risks"),
        ("arbiter", "horizon winner weights"),
        ("judge", "horizon winner counter win_share close"),
        ("reader", "regime budget first bias"),
        ("trader", "risks horizon_bars declined decline_code"),
    )
}
"""Kinds of agents, and the fields of a report that they fill and others do not."""
OWNED: Final = frozenset().union(*OWN.values())

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "gate": ("ruling",),
    "reader": ("regime",),
    "arbiter": ("winner",),
    "judge": ("winner", "win_share"),
}
"""Fields without which a report of a kind of agent is none."""

EMPTY: Final[Mapping[str, Any]] = {
    field.name: {} if field.default is MISSING else field.default
    for field in fields(AgentReport)
    if field.name in OWNED
}

ABSTENTIONS: Final[Mapping[str, str]] = {"judgement": "no verdict", "regime": "no reading"}
"""Reasons of an arbiter and a reader that abstain in replies without a place for one."""

Features = Mapping[str, Feature]
N = TypeVar("N", int, float)


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
        strict=True,
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        # A text with a limit is read as Unicode: a lone surrogate is none.
        str_max_length=MAX_REPLY_CHARS,
    )


def _model(name: str, kinds: Mapping[str, Any]) -> type[Reply]:
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in kinds.items()}
    return create_model(name, __base__=Reply, **fields)


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

    def rebuttal(self) -> Rebuttal:
        """Return the answer as a report keeps it."""
        return Rebuttal(one_line(self.says), *self.fact(), self.grants)


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


FIELDS: Final[Mapping[str, Any]] = {
    "symbol": str,
    "claim": str,
    "points_for": Points,
    "points_against": Points,
    "adjustments": _model("adjustments", dict.fromkeys(VECTORS, float | None)),
    "confidence": Confidence,
    "evidence": Citations,
    "flags": Words,
    "abstained": bool,
    "abstain_reason": str,
    "rebuttals": Rebuttals,
    "falsifiers": Falsifiers,
    "ordinals": _model("ordinals", dict.fromkeys(ORDINALS, Whole)),
    "horizon": Horizon,
    "risks": Words,
    "winner": Winner,
    "weights": _model("weights", dict.fromkeys(SIDES, float)),
    "invalidation": Falsifiers,
    "horizon_bars": Whole,
    "decline": bool,
    "reason_code": Reason,
    "regime": RegimeName,
    "budget_pct": float,
    "first": str,
    "bias": Bias,
    "anomaly": str,
    "pattern": str,
    "levels": Prices,
    "side": Winner,
    "counter": str,
    "win_share": float,
    "close": bool,
    "multiplier": float,
    "veto": bool,
    "reasoning": str,
}
"""The fields of replies that become a report, and their types."""

ARGUES: Final = "symbol claim points_for points_against"
REPORT: Final = f"{ARGUES} adjustments confidence evidence flags abstained abstain_reason"
REPORTS: Final[Mapping[str, str]] = {
    "report": REPORT,
    "case": f"{REPORT} rebuttals falsifiers",
    "news": f"{REPORT} ordinals",
    "ruling": "symbol multiplier veto reason_code confidence reasoning evidence",
    "report_ahead": f"{REPORT} horizon",
    "case_ahead": f"{REPORT} rebuttals falsifiers horizon risks",
    "news_ahead": f"{REPORT} ordinals horizon",
    "judgement": f"{ARGUES} winner weights confidence horizon evidence",
    "thesis": f"{ARGUES} invalidation risks horizon_bars decline reason_code confidence evidence",
    "regime": f"{ARGUES} regime budget_pct first bias confidence evidence",
    "finding": f"{REPORT} horizon anomaly bias",
    "geometry": f"{REPORT} horizon anomaly bias pattern levels",
    "decision": f"{REPORT} horizon side counter falsifiers win_share close",
}
"""The shapes of replies that become a report: a row a shape, its fields in their order."""


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
    "scores": ScoresReply,
    "review": ReviewReply,
    **{
        shape: _model(shape, {name: FIELDS[name] for name in names.split()})
        for shape, names in REPORTS.items()
    },
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
    fields = {name: dict(part) if isinstance(part, Reply) else part for name, part in parsed}
    if shape not in REPORTS:
        raise garbage(f"{shape} is no report")
    return (_ruling if shape == "ruling" else _argued)(fields, role, features)


def _argued(fields: dict[str, Any], role: Role, features: Features) -> AgentReport:
    """Return the report of a reply that argues; one that moves no score has to cite."""
    points_for, points_against = (
        tuple(point.point() for point in fields[name]) for name in ("points_for", "points_against")
    )
    argued = (Evidence(point.id, point.value) for point in (*points_for, *points_against))
    facts = (*argued, *(citation.fact() for citation in fields["evidence"]))
    # Torra's own flags change what a report weighs: a model may not set them.
    named = [flag for flag in fields.get("flags", ()) if flag.strip() and flag not in OWN_FLAGS]
    flags = [flag[:LINE_KEPT] for flag in named[:FLAGS_KEPT]]
    moves = fields.get("adjustments") or dict.fromkeys(VECTORS)
    kept: dict[str, Any] = {
        "confidence": fields["confidence"],
        "evidence": tuple(dict.fromkeys(facts))[:CITATIONS_KEPT],
    }
    if fields.get("abstained"):
        reason = fields["abstain_reason"][:LINE_KEPT] or "no reason given"
        drawn = AgentReport.abstain(role.id, reason)
        return within_role(replace(drawn, **kept, flags=tuple(flags)), role, features)
    # All citations are checked, before the record keeps only the first.
    cites = "adjustments" not in fields or any(value is not None for value in moves.values())
    if not (grounded(facts, features) and (facts or not cites)):
        flags.append(UNGROUNDED)
    own = {name: value for name, value in fields.items() if name in OWNED}
    if "levels" in own:
        names = tuple(dict.fromkeys(nearest(price, features) for price in own["levels"]))
        own["levels"] = tuple(filter(None, names))[:LEVELS_KEPT]
        flags += [INVENTED] if "" in names else []
    own |= _conclusion(fields, features)
    drawn = AgentReport(
        role.id,
        moves,
        **kept,
        flags=tuple(flags),
        claim=fields["claim"],
        points_for=points_for,
        points_against=points_against,
        **own,
    )
    report = within_role(drawn, role, features, argued=True)
    if "rebuttals" not in fields:
        return report
    answers = [answer.rebuttal() for answer in fields["rebuttals"]]
    holds = [a for a in answers if grounded((Evidence(a.id, a.value),), features)]
    # a case that asks for nothing never ends
    asks = any(report.adjustments.values())
    side = report_side(role, report.adjustments) if asks else 0
    ends = _pending(fields["falsifiers"], side, features)
    return replace(report, rebuttals=tuple(holds[:REBUTTALS_KEPT]), falsifiers=ends)


def _conclusion(fields: Mapping[str, Any], features: Features) -> dict[str, Any]:
    """Return the fields of a report that a reply has under another name or in another unit."""
    own: dict[str, Any] = {}
    if "budget_pct" in fields:
        own["budget"] = fields["budget_pct"] / 100.0
    if "side" in fields:
        own["winner"] = side = fields["side"]
        own["falsifiers"] = _pending(fields["falsifiers"], WINNERS[side], features)
    if "decline" in fields:
        own["declined"] = fields["decline"]
        own["decline_code"] = str(fields["reason_code"]) if fields["decline"] else ""
        own["falsifiers"] = _pending(fields["invalidation"], _order_side(features), features)
    return own


def _ruling(fields: dict[str, Any], role: Role, features: Features) -> AgentReport:
    """Return the report of a gate."""
    reasoning = fields["reasoning"]
    evidence = tuple(citation.fact() for citation in fields["evidence"])
    reasons = (str(fields["reason_code"]),)
    drawn = AgentReport(
        role.id,
        dict.fromkeys(VECTORS),
        fields["confidence"],
        reasoning[:REASONING_KEPT],
        evidence=evidence[:CITATIONS_KEPT],
        flags=() if grounded(evidence, features) else (UNGROUNDED,),
        ruling=GateRuling(fields["multiplier"], fields["veto"], reasons, reasoning[:LINE_KEPT]),
    )
    return within_role(drawn, role, features)


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
    texts = (words.setup, words.outcome, words.rule)
    setup, outcome, rule = (text[:REASONING_KEPT] for text in texts)
    return setup, outcome, rule


R = TypeVar("R", bound=Reply)


def parse_as(model: type[R], reply: Mapping[str, Any]) -> R:
    """Return a reply as its model; raises ModelUnavailable("garbage") when it does not fit."""
    try:
        return model.model_validate(reply if isinstance(reply, dict) else dict(reply))
    # `from None`: the error's own text quotes what the model wrote.
    except ValidationError as error:
        # This text goes to logs and pages, so nothing that a model wrote may be in it.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise garbage(f"{'.'.join(map(str, first['loc']))}: {first['type']}") from None
    except (OverflowError, TypeError, ValueError) as error:
        raise garbage(type(error).__name__) from None


@cache
def schema(shape: str) -> Mapping[str, Any]:
    """Return the JSON schema of a shape of reply as every vendor takes it.

    Every field is required, no other key allowed, references are put in their place, titles and
    descriptions left out. There are no ranges: the servers of three vendors treat those
    differently, and `within_role` bounds every number.
    """
    drawn = SHAPES[shape].model_json_schema()
    return _plain(drawn, drawn.get("$defs", {}))


def _plain(part: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
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
        kind["enum"] = part["enum"]
    return kind


# --- the limits of a role -------------------------------------------------------------------------


@cache
def _report_type() -> TypeAdapter[AgentReport]:
    return TypeAdapter(AgentReport)


LIMITS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "ordinals": lambda given: {
        name: between(value, *ORDINALS[name]) for name, value in given.items() if name in ORDINALS
    },
    "budget": lambda share: between(1.0 if share is None else share, 0.0, 1.0),
    "win_share": lambda share: between(share, 0.0, 1.0),
    "horizon_bars": lambda bars: between(bars, *HORIZON_BARS),
    "weights": lambda given: {
        name: between(value, 0.0, 1.0)
        for name, value in {**dict.fromkeys(SIDES, 1.0), **given}.items()
        if name in SIDES
    },
    # a gate's model vetoes both sides or none
    "ruling": lambda ruling: replace(
        ruling, multiplier=between(ruling.multiplier, 0.0, 1.0), veto_sides=()
    ),
    "first": lambda name: name if name in EXPERTS else "",
    "counter": lambda text: claim_of(text),  # noqa: PLW0108 - it stands below
}
"""What is kept of a field that some kinds of agents alone fill."""
NUMBERS: Final = frozenset(("budget", "win_share", "horizon_bars", "weights", "ruling"))
"""Those of them that are flagged where they change."""


def enforce_role(report: object, role: Role, features: Features) -> AgentReport:
    """Return what an agent returned as a report within its role. Idempotent.

    A citation that does not hold makes it ungrounded, as in a model's reply.
    Raises ModelUnavailable("garbage") for what is no report.
    """
    try:
        drawn = _report_type().validate_python(_frozen(report), strict=True)
        _report_type().dump_json(drawn)
    except PydanticSerializationError:
        raise garbage(f"a text of {role.id} has a lone surrogate") from None
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        detail = f"{role.id} returned no report but {type(report).__name__}"
        raise garbage(f"{detail}: {place}" if place else detail) from None
    points_for, points_against = (
        tuple(p._replace(says=one_line(p.says), why=one_line(p.why)) for p in points)
        for points in (drawn.points_for, drawn.points_against)
    )
    flags = drawn.flags if grounded(drawn.evidence, features) else (*drawn.flags, UNGROUNDED)
    drawn = replace(drawn, points_for=points_for, points_against=points_against, flags=flags)
    argues = bool(points_for or points_against or drawn.claim)
    return within_role(drawn, role, features, argued=argues and not drawn.abstained)


def _frozen(value: Any) -> Any:
    """Return a value with tuples for lists and dicts for mappings, as a report is typed."""
    if isinstance(value, AgentReport | GateRuling):
        own = {item.name: _frozen(getattr(value, item.name)) for item in fields(value)}
        return replace(value, **own)
    if isinstance(value, Mapping):
        return {name: _frozen(item) for name, item in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def within_role(
    drawn: AgentReport, role: Role, features: Features, *, argued: bool = False
) -> AgentReport:
    """Return a well-formed report within its role; what it names must be in the evidence."""
    kind = "" if drawn.abstained else role.kind
    for name in REQUIRED.get(kind, ()):
        if not getattr(drawn, name) and getattr(drawn, name) != 0.0:
            raise garbage(f"a {kind} without its {name}")
    moves, flags = _moves(drawn, role)
    changes = {"adjustments": moves, **_owned(drawn, kind, flags)}
    if kind == "analyst" and (drawn.anomaly or drawn.pattern or drawn.levels):
        changes |= _shown_names(drawn, role, features, flags)
    if argued:
        changes |= _argument(drawn, role, features, moves, flags)
    if any(value != drawn.ordinals[name] for name, value in changes["ordinals"].items()):
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


def _owned(drawn: AgentReport, kind: str, flags: dict[str, None]) -> dict[str, Any]:
    """Return the fields that only some kinds of agents fill, as they are kept of this kind."""
    kept: dict[str, Any] = {}
    for name in OWNED:
        if name not in OWN.get(kind, ()):
            kept[name] = EMPTY[name]
        elif name in LIMITS:
            value = getattr(drawn, name)
            kept[name] = LIMITS[name](value)
            if name in NUMBERS and value is not None and kept[name] != value:
                flags[CLAMPED] = None
    if kind in RISKS_KEPT:
        risks = map(one_line, drawn.risks[: RISKS_KEPT[kind]])
        kept["risks"] = tuple(filter(None, risks))
    if kind in ("arbiter", "judge", "trader"):
        ends = () if kind == "arbiter" else drawn.falsifiers[:FALSIFIERS]
        kept["falsifiers"] = tuple(map(one_line, ends))
    if kind == "reader":
        kept["bias"] = drawn.bias or "NEUTRAL"
    if kind == "trader":
        known = drawn.decline_code in tuple(GateReason) and drawn.decline_code != GateReason.NONE
        code = drawn.decline_code if known else str(GateReason.MODEL_JUDGEMENT)
        kept["decline_code"] = code if drawn.declined else ""
    return kept


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
    points_for, points_against, misplaced = sort_points(
        side, drawn.points_for, drawn.points_against, features
    )
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
    named = [
        Falsifier(e.close, e.level, " ".join(e.what.split())[:NAME_KEPT].rstrip(" ,;:."), e.bars)
        for e in ends
    ]
    pending = list(pending_falsifiers(named, side, features))
    return tuple(dict.fromkeys(falsifier_text(e, features) for e in pending))[:FALSIFIERS]


def between(value: N, low: N, high: N) -> N:
    """Return a number within a range."""
    return max(low, min(high, value))
