"""Replies of models: parses a text strictly into a report, or fails; the bounds; the arguments.

A reply either fits its model (`reply_shapes`) exactly or the agent failed:
`ModelUnavailable("garbage")`, never a neutral vote and never another exception.

Garbage is: NaN, Infinity, 1e999, a string or a boolean where a number belongs, a duplicate or
missing key, a lone surrogate, anything around the JSON object, and more than 64 kB. An answer about
another symbol is `wrong_symbol`. A key that nobody asked for is ignored.

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
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal, NoReturn

from agent_config import CONFIDENCE_WEIGHT
from scoring_rubric import OWN_FLAGS

from ..arguments import CLAIM_WORDS, FALSIFIERS, ending, leaning, sort, standing
from ..contracts import (
    HORIZON_BARS,
    OPINIONS,
    ORDINALS,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
    Evidence,
    Falsifier,
    Feature,
    GateRuling,
    Horizon,
    ModelUnavailable,
    Point,
    Rebuttal,
    Role,
    Shape,
)
from ..evidence import grounded
from .reply_shapes import (
    CaseAheadReply,
    CaseReply,
    Citation,
    JudgementReply,
    NewsAheadReply,
    NewsReply,
    OldCase,
    OldNews,
    OldReport,
    Opinion,
    PointTold,
    ReportAheadReply,
    ReportReply,
    ReviewReply,
    RulingReply,
    ScoresReply,
    ThesisReply,
    fitting,
)

MAX_REPLY_CHARS: Final = 65_536
"""A longer reply is not read."""

REASONING_KEPT: Final = 2_000
"""Characters of reasoning that a report keeps; the call record keeps the whole reply."""
LINE_KEPT: Final = 300
"""Characters kept of a claim, a point, a flag, a cited word or an abstention's reason."""
LINES_KEPT: Final = 8
"""Key points and flags that a report keeps, and falsifiers of the shape before."""
CITATIONS_KEPT: Final = 40
"""Citations that a report keeps; all of them are checked."""

NAME_KEPT: Final = 60
"""Characters kept of a level's name."""
REBUTTALS: Final = 2
"""Rebuttals that a case keeps."""
RISKS: Final = 2
THESIS_RISKS: Final = 3
"""Risks that a case and a thesis keep."""

ORDER_SIDE: Final = "order.side"
"""The feature that says which opening a trader is asked about."""

CLAMPED: Final = "clamped"
CONCEDED: Final = "conceded"
OUT_OF_FOCUS: Final = "out_of_focus"
UNGROUNDED: Final = "ungrounded"
OLD_SHAPE: Final = "old_shape"
MISPLACED: Final = "misplaced"
NO_NUMBER: Final = "no_number"

ABSTAINED: Final = "no reason given"


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
    readers = {
        "ruling": ruling,
        "case": case,
        "news": news,
        "judgement": judgement,
        "thesis": thesis,
        "report_ahead": report_ahead,
        "case_ahead": case_ahead,
        "news_ahead": news_ahead,
    }
    return readers.get(shape, report)(reply, role, features)


def report(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `report` into a report; raises ModelUnavailable("garbage")."""
    if _is_old(reply):
        return _recalled(fitting(OldReport, reply), role, features)
    return _argued(fitting(ReportReply, reply), role, features)


def report_ahead(
    reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]
) -> AgentReport:
    """Turn a reply of shape `report_ahead` into a report; raises ModelUnavailable("garbage")."""
    told = fitting(ReportAheadReply, reply)
    return _ahead(_argued(told, role, features), told.horizon)


def news_ahead(
    reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]
) -> AgentReport:
    """Turn a reply of shape `news_ahead` into a report; raises ModelUnavailable("garbage")."""
    told = fitting(NewsAheadReply, reply)
    return _ahead(_read_news(told, _argued(told, role, features), role), told.horizon)


def case_ahead(
    reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]
) -> AgentReport:
    """Turn a reply of shape `case_ahead` into a report; raises ModelUnavailable("garbage")."""
    told = fitting(CaseAheadReply, reply)
    return _ahead(_made_case(told, role, features), risks=told.risks[:RISKS])


def judgement(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `judgement` into an arbiter's report.

    Raises ModelUnavailable("garbage").
    """
    told = fitting(JudgementReply, reply)
    drawn = AgentReport(
        role.id,
        dict.fromkeys(VECTORS),
        told.confidence,
        winner=told.winner,
        weights={name: getattr(told.weights, name) for name in SIDES},
        horizon=told.horizon,
    )
    return _concluded(drawn, told, told.evidence, role, features)


def thesis(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `thesis` into a trader's report; raises ModelUnavailable("garbage").

    What would end the trade is held to the evidence as a researcher's falsifiers are.
    """
    told = fitting(ThesisReply, reply)
    ends = tuple(
        Falsifier(one.close, one.level, _named(one.what), one.bars) for one in told.invalidation
    )
    _writable(*(one.what for one in ends))
    open_ = standing(ends, asked_side(features), features)
    drawn = AgentReport(
        role.id,
        dict.fromkeys(VECTORS),
        told.confidence,
        falsifiers=tuple(dict.fromkeys(ending(one, features) for one in open_))[:FALSIFIERS],
        risks=_risks(told.risks[:THESIS_RISKS]),
        horizon_bars=told.horizon_bars,
        declined=told.decline,
        decline_code=str(told.reason_code) if told.decline else "",
    )
    return _concluded(drawn, told, told.evidence, role, features)


def asked_side(features: Mapping[str, Feature]) -> int:
    """Return the side of the opening that a trader is asked about: +1, -1, or 0 for none."""
    told = features.get(ORDER_SIDE)
    return {"BUY": 1, "SELL": -1}.get(str(told.value), 0) if told else 0


def case(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `case` into a report; raises ModelUnavailable("garbage")."""
    if _is_old(reply):
        old = fitting(OldCase, reply)
        said = () if old.abstained else _lines(old.falsifiers)
        _writable(*said)
        return replace(_recalled(old, role, features), falsifiers=said)
    return _made_case(fitting(CaseReply, reply), role, features)


def _made_case(told: CaseReply, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return the case of a reply, with its answers and what would end it."""
    drawn = _argued(told, role, features)
    answers = tuple(
        Rebuttal(_line(one.says), *_kept(one.id, one.value), one.grants) for one in told.rebuttals
    )
    ends = tuple(
        Falsifier(one.close, one.level, _named(one.what), one.bars) for one in told.falsifiers
    )
    _writable(*(one.says for one in answers), *(one.what for one in ends))
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
        told = fitting(OldNews, reply)
        drawn = _recalled(told, role, features)
    else:
        told = fitting(NewsReply, reply)
        drawn = _argued(told, role, features)
    return _read_news(told, drawn, role)


def _read_news(told: OldNews | NewsReply, drawn: AgentReport, role: Role) -> AgentReport:
    """Return a report on the news with its ordinals."""
    if told.abstained:
        return drawn
    given = {name: getattr(told.ordinals, name) for name in ORDINALS}
    return _held(replace(drawn, ordinals=given), role)


def _ahead(
    drawn: AgentReport, horizon: Horizon | Literal[""] = "", risks: tuple[str, ...] = ()
) -> AgentReport:
    """Return a report with what it says of the time ahead; an abstention says nothing of it."""
    kept = _risks(risks)
    return drawn if drawn.abstained else replace(drawn, horizon=horizon, risks=kept)


def _risks(told: tuple[str, ...]) -> tuple[str, ...]:
    _writable(*told)
    return tuple(filter(None, map(_line, told)))


def _concluded(
    drawn: AgentReport,
    told: JudgementReply | ThesisReply,
    cited: tuple[Citation, ...],
    role: Role,
    features: Mapping[str, Feature],
) -> AgentReport:
    """Return a report that moves no score, with its argument held to the evidence."""
    claim = _claim(told.claim)
    given_for, given_against = _points(told.points_for), _points(told.points_against)
    given = (*given_for, *given_against)
    _writable(claim, *(word for one in given for word in (one.says, one.why)))
    evidence = (*(Evidence(one.id, one.value) for one in given), *_citations(cited))
    _cited_writable(evidence)
    stands = bool(evidence) and grounded(evidence, features)
    held = _held(
        replace(
            drawn,
            evidence=tuple(dict.fromkeys(evidence))[:CITATIONS_KEPT],
            flags=() if stands else (UNGROUNDED,),
        ),
        role,
    )
    return _sorted(held, role, claim, given_for, given_against, features)


def _side(drawn: AgentReport, role: Role, features: Mapping[str, Feature]) -> int:
    """Return the side that a held report argues for: +1, -1, or 0 for none."""
    if role.kind == "arbiter":
        return WINNERS.get(drawn.winner, 0)
    if role.kind == "trader":
        # Who declines argues against the opening that it was asked about.
        return asked_side(features) * (-1 if drawn.declined else 1)
    return leaning(role, drawn.adjustments)


def _is_old(reply: Mapping[str, Any]) -> bool:
    """Tell whether a reply has the shape of before there were claims."""
    return "claim" not in reply and "key_points" in reply


def _argued(told: ReportReply, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return the report of a reply with its argument held to the evidence."""
    claim = _claim(told.claim)
    given_for, given_against = _points(told.points_for), _points(told.points_against)
    given = (*given_for, *given_against)
    _writable(claim, *(word for one in given for word in (one.says, one.why)))
    cited = (*(Evidence(one.id, one.value) for one in given), *_citations(told.evidence))
    drawn = _held(_drawn(told, role, features, cited), role)
    if drawn.abstained:
        return drawn
    return _sorted(drawn, role, claim, given_for, given_against, features)


def _sorted(
    drawn: AgentReport,
    role: Role,
    claim: str,
    given_for: tuple[Point, ...],
    given_against: tuple[Point, ...],
    features: Mapping[str, Feature],
) -> AgentReport:
    """Return a held report with its claim, and its points on their own sides."""
    side = _side(drawn, role, features)
    found = sort(side, given_for, given_against, features)
    flags = list(drawn.flags)
    if found.misplaced:
        flags.append(MISPLACED)
    asks = any(drawn.adjustments.values()) or (side and role.kind not in OPINIONS)
    if asks and not any(map(str.isdigit, claim)):
        flags.append(NO_NUMBER)
    # What the argument rests on first, so that whoever quotes the first few quotes that.
    order = dict.fromkeys(one.id for one in (*found.points_for, *found.points_against))
    evidence = sorted(drawn.evidence, key=lambda one: one.id not in order)
    return replace(
        drawn,
        claim=claim,
        points_for=found.points_for,
        points_against=found.points_against,
        evidence=tuple(evidence),
        flags=tuple(dict.fromkeys(flags)),
    )


def _recalled(told: OldReport, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return the report of a reply of the shape before."""
    points = _lines(told.key_points)
    _writable(told.reasoning, *points)
    drawn = _held(_drawn(told, role, features, _citations(told.evidence)), role)
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
    _cited_writable(evidence, told.abstain_reason, *told.flags)
    # Torra's own flags change what a report weighs: a model may not set them.
    flags = list(
        _lines(tuple(flag for flag in told.flags if flag.strip() and flag not in OWN_FLAGS))
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
    told = fitting(RulingReply, reply)
    reasoning = told.reasoning[:REASONING_KEPT]
    evidence = _citations(told.evidence)
    _cited_writable(evidence, reasoning)
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
    told = fitting(ScoresReply, reply)
    return {vector: _within(getattr(told, vector).score, 1.0) for vector in VECTORS}


def review(reply: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return setup, outcome and rule as a reviewer worded them, cut at REASONING_KEPT letters.

    What of it may stand is another's to say (torra.lessons.checked_words). Raises
    ModelUnavailable("garbage").
    """
    told = fitting(ReviewReply, reply)
    _writable(told.setup, told.outcome, told.rule)
    setup, outcome, rule = (part[:REASONING_KEPT] for part in (told.setup, told.outcome, told.rule))
    return setup, outcome, rule


def held_to(drawn: object, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return a report held to its role and the evidence, as if a model had written it. Idempotent.

    Raises ModelUnavailable("garbage") for what is no report.
    """
    if not isinstance(drawn, AgentReport) or not _well_formed(drawn):
        raise _garbage(f"{role.id} returned no proper report but {type(drawn).__name__}")
    held = _held(drawn, role)
    if held.abstained or not (held.points_for or held.points_against or held.claim):
        return held
    told_for, told_against = (
        tuple(one._replace(says=_line(one.says), why=_line(one.why)) for one in told)
        for told in (held.points_for, held.points_against)
    )
    return _sorted(held, role, _claim(held.claim), told_for, told_against, features)


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
    return _in_office(
        replace(
            drawn,
            agent_id=role.id,
            adjustments=adjustments,
            flags=tuple(flags),
            ruling=judged,
            ordinals=ordinals,
        ),
        role,
    )


def _in_office(drawn: AgentReport, role: Role) -> AgentReport:
    """Return a report with what only an arbiter or a trader says, where it is theirs to say."""
    if role.kind == "arbiter" and not drawn.abstained:
        return _judging(drawn)
    if role.kind == "trader" and not drawn.abstained:
        least, most = HORIZON_BARS
        code = drawn.decline_code if drawn.declined else ""
        bars = max(least, min(most, drawn.horizon_bars))
        return replace(drawn, winner="", weights={}, horizon_bars=bars, decline_code=code)
    if not (drawn.winner or drawn.weights or drawn.horizon_bars or drawn.declined):
        return drawn  # nearly every one
    return replace(drawn, winner="", weights={}, horizon_bars=0, declined=False, decline_code="")


def _judging(drawn: AgentReport) -> AgentReport:
    """Return an arbiter's report with its weights in [0, 1], one for each researcher."""
    if drawn.winner not in WINNERS:
        raise _garbage("an arbiter without a winner")
    given = {name: _finite(drawn.weights.get(name, 1.0)) for name in SIDES}
    weights = {name: max(0.0, min(1.0, value)) for name, value in given.items()}
    flags = drawn.flags if weights == given else tuple(dict.fromkeys((*drawn.flags, CLAMPED)))
    return replace(
        drawn,
        weights=weights,
        flags=flags,
        horizon_bars=0,
        declined=False,
        decline_code="",
    )


def _well_formed(drawn: AgentReport) -> bool:
    words = (
        *(drawn.claim, drawn.reasoning, drawn.reason),
        *(*drawn.key_points, *drawn.flags, *drawn.falsifiers, *drawn.risks),
        *(drawn.horizon, drawn.winner, drawn.decline_code),
    )
    points = (*drawn.points_for, *drawn.points_against)
    return (
        isinstance(drawn.adjustments, Mapping)
        and isinstance(drawn.ordinals, Mapping)
        and all(type(value) is int for value in drawn.ordinals.values())
        and isinstance(drawn.weights, Mapping)
        and type(drawn.horizon_bars) is int
        and isinstance(drawn.declined, bool)
        and drawn.confidence in CONFIDENCE_WEIGHT
        and isinstance(drawn.abstained, bool)
        and all(isinstance(word, str) for word in words)
        and all(map(_is_citation, drawn.evidence))
        and all(map(_is_point, points))
        and all(map(_is_rebuttal, drawn.rebuttals))
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


def _is_point(told: object) -> bool:
    return (
        isinstance(told, Point)
        and isinstance(told.says, str)
        and isinstance(told.why, str)
        and told.side in (1, 0, -1)
        and _is_citation(Evidence(told.id, told.value))
    )


def _is_rebuttal(told: object) -> bool:
    return (
        isinstance(told, Rebuttal)
        and isinstance(told.says, str)
        and isinstance(told.grants, bool)
        and _is_citation(Evidence(told.id, told.value))
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


def _lines(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item[:LINE_KEPT] for item in items[:LINES_KEPT])


def _line(text: str) -> str:
    return " ".join(text.split())[:LINE_KEPT]


def _claim(text: str) -> str:
    words = text.split()
    cut = " ".join(words[:CLAIM_WORDS])[:LINE_KEPT]
    return cut if len(words) <= CLAIM_WORDS else f"{cut.rstrip(',;:.')}…"


def _points(told: tuple[PointTold, ...]) -> tuple[Point, ...]:
    """Return points as they were told: the fact and the reason, each without its full stop."""
    return tuple(
        Point(
            _line(one.says).rstrip(" ,;:."), *_kept(one.id, one.value), _line(one.why).rstrip(" .")
        )
        for one in told
    )


def _named(text: str) -> str:
    return " ".join(text.split())[:NAME_KEPT].rstrip(" ,;:.")


def _citations(cited: tuple[Citation, ...]) -> tuple[Evidence, ...]:
    return tuple(_kept(item.id, item.value) for item in cited)


def _cited_writable(evidence: tuple[Evidence, ...], *words: str) -> None:
    values = [cited.value for cited in evidence if isinstance(cited.value, str)]
    _writable(*words, *(cited.id for cited in evidence), *values)


def _writable(*words: str) -> None:
    """Refuse a lone surrogate: the text of a reply has none, one that came as an object may."""
    text = "".join(words)
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
