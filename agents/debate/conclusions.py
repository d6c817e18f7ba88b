"""Replies that conclude: an arbiter's judgement, a trader's thesis, a reader's regime.

None moves a score. A judgement has a winner and what each case weighs, 0 to 1; a thesis says what
would end the trade, held to the evidence as a researcher's falsifiers are, and may decline it; a
regime has a budget, 0 to 1, and who goes first.
Whatever does not fit is ModelUnavailable("garbage").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..arguments import FALSIFIERS, ending, standing
from ..contracts import (
    SIDES,
    VECTORS,
    AgentReport,
    Evidence,
    Falsifier,
    Feature,
    ModelUnavailable,
    Role,
)
from ..evidence import grounded
from .holding import THESIS_RISKS, UNGROUNDED, asked_side, clamp_to_role, place_points
from .reply_shapes import Citation, JudgementReply, RegimeReply, ThesisReply, parse_as
from .reply_text import (
    CITATIONS_KEPT,
    citations_of,
    cited_writable,
    claim_of,
    level_name,
    points_of,
    refuse_surrogates,
    risks_of,
)

NO_VERDICT: Final = "no verdict"
NO_READING: Final = "no reading"
"""Why an arbiter, and a reader, abstains that says so without a reason."""


def judgement(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `judgement` into an arbiter's report.

    Raises ModelUnavailable("garbage").
    """
    if reply.get("abstained") is True:
        return AgentReport.abstain(role.id, NO_VERDICT)
    told = parse_as(JudgementReply, reply)
    drawn = AgentReport(
        role.id,
        dict.fromkeys(VECTORS),
        told.confidence,
        winner=told.winner,
        weights={name: getattr(told.weights, name) for name in SIDES},
        horizon=told.horizon,
    )
    return _concluded(drawn, told, told.evidence, role, features)


def regime(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `regime` into a reader's report; raises ModelUnavailable("garbage")."""
    if reply.get("abstained") is True:
        return AgentReport.abstain(role.id, NO_READING)
    told = parse_as(RegimeReply, reply)
    refuse_surrogates(told.first)
    drawn = AgentReport(
        role.id,
        dict.fromkeys(VECTORS),
        told.confidence,
        regime=told.regime,
        budget=told.budget_pct / 100.0,
        first=told.first,
        bias=told.bias,
    )
    return _concluded(drawn, told, told.evidence, role, features)


def thesis(reply: Mapping[str, Any], role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Turn a reply of shape `thesis` into a trader's report; raises ModelUnavailable("garbage").

    What would end the trade is held to the evidence as a researcher's falsifiers are.
    """
    if reply.get("abstained") is True:
        raise ModelUnavailable("refused", "the trader abstains", again=None)
    told = parse_as(ThesisReply, reply)
    ends = tuple(
        Falsifier(one.close, one.level, level_name(one.what), one.bars) for one in told.invalidation
    )
    refuse_surrogates(*(one.what for one in ends))
    open_ = standing(ends, asked_side(features), features)
    drawn = AgentReport(
        role.id,
        dict.fromkeys(VECTORS),
        told.confidence,
        falsifiers=tuple(dict.fromkeys(ending(one, features) for one in open_))[:FALSIFIERS],
        risks=risks_of(told.risks[:THESIS_RISKS]),
        horizon_bars=told.horizon_bars,
        declined=told.decline,
        decline_code=str(told.reason_code) if told.decline else "",
    )
    return _concluded(drawn, told, told.evidence, role, features)


def _concluded(
    drawn: AgentReport,
    told: JudgementReply | ThesisReply | RegimeReply,
    cited: tuple[Citation, ...],
    role: Role,
    features: Mapping[str, Feature],
) -> AgentReport:
    """Return a report that moves no score, with its argument held to the evidence."""
    claim = claim_of(told.claim)
    given_for, given_against = points_of(told.points_for), points_of(told.points_against)
    given = (*given_for, *given_against)
    refuse_surrogates(claim, *(word for one in given for word in (one.says, one.why)))
    evidence = (*(Evidence(one.id, one.value) for one in given), *citations_of(cited))
    cited_writable(evidence)
    stands = bool(evidence) and grounded(evidence, features)
    held = clamp_to_role(
        replace(
            drawn,
            evidence=tuple(dict.fromkeys(evidence))[:CITATIONS_KEPT],
            flags=() if stands else (UNGROUNDED,),
        ),
        role,
    )
    return place_points(held, role, claim, given_for, given_against, features)
