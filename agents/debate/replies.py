"""Replies of models: parses a text strictly into a report, or fails; the bounds; the arguments.

A reply either fits its model (`reply_shapes`) exactly or the agent failed:
`ModelUnavailable("garbage")`, never a neutral vote and never another exception.

Garbage is: NaN, Infinity, 1e999, a string or a boolean where a number belongs, a duplicate or
missing key, a lone surrogate, anything around the JSON object that the table of `door` does not
name, and more than 64 kB. An answer about another symbol is `wrong_symbol`. A key that nobody asked
for is ignored.

A reply that fits is then held to its role. A finite number outside its bound is clamped and flagged
`clamped`, and so is an ordinal. A vector outside its focus is dropped and flagged `out_of_focus`. A
researcher's number against its own side counts as 0, flagged `conceded`.
Citations that are not in the evidence flag the report `ungrounded`; so does scoring without any
citation, because nothing can be checked.

Its argument is held to the evidence (`agents.arguments`): a point on the wrong side, or on none,
flags the report `misplaced`. A claim is at most CLAIM_WORDS words; one without a digit, of a report
that asks for something, is flagged `no_number`. A reply of the shape before is read, flagged
`old_shape`: nothing tells which of its facts each of its key points rests on, so they stand on no
side.

Fields are parsed, prose never is: prose may be in any language, keys and enumerated words may not.
The text is read by agents.texts.door, a report is held to its role by `holding`, and what an
arbiter and a trader reply is read by `conclusions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from scoring_rubric import OWN_FLAGS

from ..arguments import FALSIFIERS, ending, leaning, standing
from ..contracts import (
    EMPTY,
    ORDINALS,
    VECTORS,
    AgentReport,
    Evidence,
    Falsifier,
    Feature,
    GateRuling,
    Horizon,
    Rebuttal,
    Role,
    Shape,
)
from ..evidence import grounded
from ..texts.door import LINE_KEPT, MAX_REPLY_CHARS, about, answered, garbage, load
from .conclusions import judgement, regime, thesis
from .findings import expert_fields, judge_fields
from .holding import RISKS, UNGROUNDED, clamp_to_role, enforce_role, place_points, unfalsified
from .reply_shapes import (
    CaseAheadReply,
    CaseReply,
    DecisionReply,
    FindingReply,
    GeometryReply,
    NewsAheadReply,
    NewsReply,
    OldCase,
    OldNews,
    OldReport,
    Opinion,
    ReportAheadReply,
    ReportReply,
    ReviewReply,
    RulingReply,
    ScoresReply,
    parse_as,
)
from .reply_text import (
    CITATIONS_KEPT,
    REASONING_KEPT,
    citations_of,
    cited_as,
    cited_writable,
    claim_of,
    level_name,
    one_line,
    points_of,
    refuse_surrogates,
    risks_of,
    short_lines,
    within,
)

__all__ = [
    "CITATIONS_KEPT",
    "MAX_REPLY_CHARS",
    "REASONING_KEPT",
    "about",
    "answered",
    "enforce_role",
    "judgement",
    "load",
    "read",
    "report",
    "review",
    "ruling",
    "scores",
    "thesis",
]

REBUTTALS: Final = 2
"""Rebuttals that a case keeps."""
OLD_SHAPE: Final = "old_shape"
ABSTAINED: Final = "no reason given"


def read(
    shape: Shape, reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]
) -> AgentReport:
    """Turn the reply to a prompt of a shape into a report; raises ModelUnavailable("garbage")."""
    readers = {
        "ruling": ruling,
        "case": case,
        "news": news,
        "judgement": judgement,
        "thesis": thesis,
        "report_ahead": report_ahead,
        "case_ahead": case_ahead,
        "news_ahead": news_ahead,
        "regime": regime,
        "finding": finding,
        "geometry": geometry,
        "decision": decision,
    }
    return readers.get(shape, report)(reply, role, features)


def report(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `report` into a report; raises ModelUnavailable("garbage")."""
    if _is_old(reply):
        return _recalled(parse_as(OldReport, reply), role, features)
    return _argued(parse_as(ReportReply, reply), role, features)


def report_ahead(
    reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]
) -> AgentReport:
    """Turn a reply of shape `report_ahead` into a report; raises ModelUnavailable("garbage")."""
    told = parse_as(ReportAheadReply, reply)
    return _ahead(_argued(told, role, features), told.horizon)


def news_ahead(
    reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]
) -> AgentReport:
    """Turn a reply of shape `news_ahead` into a report; raises ModelUnavailable("garbage")."""
    told = parse_as(NewsAheadReply, reply)
    return _ahead(_read_news(told, _argued(told, role, features), role), told.horizon)


def finding(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `finding` into a report; raises ModelUnavailable("garbage")."""
    told = parse_as(FindingReply, reply)
    return _argued(told, role, features, expert_fields(told, features))


def geometry(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `geometry` into a report; raises ModelUnavailable("garbage")."""
    told = parse_as(GeometryReply, reply)
    return _argued(told, role, features, expert_fields(told, features))


def decision(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `decision` into a report; raises ModelUnavailable("garbage")."""
    told = parse_as(DecisionReply, reply)
    return unfalsified(_argued(told, role, features, judge_fields(told, features)))


def case_ahead(
    reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]
) -> AgentReport:
    """Turn a reply of shape `case_ahead` into a report; raises ModelUnavailable("garbage")."""
    told = parse_as(CaseAheadReply, reply)
    return _ahead(_made_case(told, role, features), told.horizon, told.risks[:RISKS])


def case(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `case` into a report; raises ModelUnavailable("garbage")."""
    if _is_old(reply):
        old = parse_as(OldCase, reply)
        said = () if old.abstained else short_lines(old.falsifiers)
        refuse_surrogates(*said)
        return replace(_recalled(old, role, features), falsifiers=said)
    return _made_case(parse_as(CaseReply, reply), role, features)


def _made_case(told: CaseReply, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return the case of a reply, with its answers and what would end it."""
    drawn = _argued(told, role, features)
    answers = tuple(
        Rebuttal(one_line(one.says), *cited_as(one.id, one.value), one.grants)
        for one in told.rebuttals
    )
    ends = tuple(
        Falsifier(one.close, one.level, level_name(one.what), one.bars) for one in told.falsifiers
    )
    refuse_surrogates(*(one.says for one in answers), *(one.what for one in ends))
    if drawn.abstained:
        return drawn
    side = leaning(role, drawn.adjustments)
    # A case that asks for nothing has nothing to prove wrong.
    asks = any(drawn.adjustments.values())
    open_ = standing(ends, side, features) if asks else ()
    return replace(
        drawn,
        rebuttals=tuple(
            one for one in answers if grounded((Evidence(one.id, one.value),), features)
        )[:REBUTTALS],
        falsifiers=tuple(dict.fromkeys(ending(one, features) for one in open_))[:FALSIFIERS],
    )


def news(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `news` into a report; raises ModelUnavailable("garbage")."""
    told: OldNews | NewsReply
    if _is_old(reply):
        told = parse_as(OldNews, reply)
        drawn = _recalled(told, role, features)
    else:
        told = parse_as(NewsReply, reply)
        drawn = _argued(told, role, features)
    return _read_news(told, drawn, role)


def _read_news(told: OldNews | NewsReply, drawn: AgentReport, role: Role) -> AgentReport:
    """Return a report on the news with its ordinals."""
    if told.abstained:
        return drawn
    given = {name: getattr(told.ordinals, name) for name in ORDINALS}
    return clamp_to_role(replace(drawn, ordinals=given), role)


def _ahead(drawn: AgentReport, horizon: Horizon, risks: tuple[str, ...] = ()) -> AgentReport:
    """Return a report with what it says of the time ahead; an abstention says nothing of it."""
    kept = risks_of(risks)
    return drawn if drawn.abstained else replace(drawn, horizon=horizon, risks=kept)


def _is_old(reply: Mapping[str, Any]) -> bool:
    """Tell whether a reply has the shape of before there were claims."""
    return "claim" not in reply and "key_points" in reply


def _argued(
    told: ReportReply,
    role: Role,
    features: Mapping[str, Feature],
    more: Mapping[str, Any] = EMPTY,
) -> AgentReport:
    """Return the report of a reply with its argument held to the evidence.

    `more` is what the reply says beside a report, by the fields of a report.
    """
    claim = claim_of(told.claim)
    given_for, given_against = points_of(told.points_for), points_of(told.points_against)
    given = (*given_for, *given_against)
    refuse_surrogates(claim, *(word for one in given for word in (one.says, one.why)))
    cited = (*(Evidence(one.id, one.value) for one in given), *citations_of(told.evidence))
    drawn = _drawn(told, role, features, cited)
    if more and not drawn.abstained:
        drawn = replace(drawn, **{**more, "flags": (*drawn.flags, *more.get("flags", ()))})
    drawn = clamp_to_role(drawn, role, features)
    if drawn.abstained:
        return drawn
    return place_points(drawn, role, claim, given_for, given_against, features)


def _recalled(told: OldReport, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return the report of a reply of the shape before."""
    points = short_lines(told.key_points)
    refuse_surrogates(told.reasoning, *points)
    drawn = clamp_to_role(_drawn(told, role, features, citations_of(told.evidence)), role)
    return replace(
        drawn,
        reasoning=told.reasoning[:REASONING_KEPT],
        key_points=points,
        flags=(*drawn.flags, OLD_SHAPE),
    )


def _drawn(
    told: Opinion, role: Role, features: Mapping[str, Feature], evidence: tuple[Evidence, ...]
) -> AgentReport:
    """Return what every opinion has in common, without its argument."""
    given = told.adjustments
    adjustments = {vector: getattr(given, vector) for vector in VECTORS}
    cited_writable(evidence, told.abstain_reason, *told.flags)
    # Torra's own flags change what a report weighs: a model may not set them.
    flags = list(
        short_lines(tuple(flag for flag in told.flags if flag.strip() and flag not in OWN_FLAGS))
    )
    # All citations are checked, before the record keeps only the first.
    if not told.abstained and not _stands(adjustments, evidence, features):
        flags.append(UNGROUNDED)
    return AgentReport(
        agent_id=role.id,
        adjustments=dict.fromkeys(VECTORS) if told.abstained else adjustments,
        confidence=told.confidence,
        evidence=tuple(dict.fromkeys(evidence))[:CITATIONS_KEPT],
        flags=tuple(flags),
        abstained=told.abstained,
        reason=(told.abstain_reason[:LINE_KEPT] or ABSTAINED) if told.abstained else "",
    )


def ruling(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `ruling` into a gate's report; raises ModelUnavailable("garbage")."""
    told = parse_as(RulingReply, reply)
    reasoning = told.reasoning[:REASONING_KEPT]
    evidence = citations_of(told.evidence)
    cited_writable(evidence, reasoning)
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
    return clamp_to_role(drawn, role)


def scores(reply: Mapping[str, Any]) -> dict[str, float]:
    """Return the four scores of a score_chart dict, each clamped to [-1, +1].

    Raises ModelUnavailable("garbage").
    """
    if not isinstance(reply, Mapping):
        raise garbage(f"scores are {type(reply).__name__}")
    told = parse_as(ScoresReply, reply)
    return {vector: within(getattr(told, vector).score, 1.0) for vector in VECTORS}


def review(reply: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return setup, outcome and rule as a reviewer worded them, cut at REASONING_KEPT letters.

    What of it may stand is another's to say (torra.lessons.checked_words). Raises
    ModelUnavailable("garbage").
    """
    told = parse_as(ReviewReply, reply)
    refuse_surrogates(told.setup, told.outcome, told.rule)
    setup, outcome, rule = (part[:REASONING_KEPT] for part in (told.setup, told.outcome, told.rule))
    return setup, outcome, rule


def _stands(
    adjustments: Mapping[str, float | None],
    evidence: tuple[Evidence, ...],
    features: Mapping[str, Feature],
) -> bool:
    scored = any(value is not None for value in adjustments.values())
    return grounded(evidence, features) and (bool(evidence) or not scored)
