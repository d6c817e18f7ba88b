"""A report held to its role and to the evidence, whoever wrote it.

A finite number outside its bound is clamped and flagged `clamped`, an ordinal and a weight too. A
vector outside the focus of its role is dropped and flagged `out_of_focus`; a researcher's number
against its own side counts as 0, flagged `conceded`. Only a gate rules, only an arbiter names a
winner and weighs cases, only a trader declines. A point on the wrong side, or on none, flags the
report `misplaced` (`agents.arguments`).

Raises ModelUnavailable("garbage") for what is no report, and nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, get_args

from agent_config import CONFIDENCE_WEIGHT, EXPERTS

from ..arguments import FALSIFIERS, leaning, sort_points
from ..contracts import (
    ANOMALIES,
    BIASES,
    EMPTY,
    HORIZON_BARS,
    NO_ANOMALY,
    OPINIONS,
    ORDINALS,
    PATTERNS,
    REGIMES,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
    Evidence,
    Feature,
    GateReason,
    GateRuling,
    Horizon,
    Point,
    Rebuttal,
    Role,
)
from ..features import number
from ..swarm.anomalies import PATTERN, shown_by
from ..texts.door import garbage
from .reply_text import claim_of, finite, one_line, refuse_surrogates, within

CLAMPED: Final = "clamped"
CONCEDED: Final = "conceded"
OUT_OF_FOCUS: Final = "out_of_focus"
UNGROUNDED: Final = "ungrounded"
MISPLACED: Final = "misplaced"
NO_NUMBER: Final = "no_number"

INVENTED: Final = "invented"
UNFALSIFIED: Final = "unfalsified"

RISKS: Final = 2
THESIS_RISKS: Final = 3
"""Risks that a case and a thesis keep."""

RISKS_KEPT: Final[Mapping[str, int]] = {"researcher": RISKS, "trader": THESIS_RISKS}

LEVEL: Final = "geometry.level."
"""How the ids of computed levels begin."""

LEVELS_KEPT: Final = 4
"""Levels that a finding keeps."""

ORDER_SIDE: Final = "order.side"
"""The feature that says which opening a trader is asked about."""


def enforce_role(drawn: object, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return a report held to its role and the evidence, as if a model had written it. Idempotent.

    Raises ModelUnavailable("garbage") for what is no report.
    """
    if not isinstance(drawn, AgentReport) or not _is_proper(drawn):
        raise garbage(f"{role.id} returned no proper report but {type(drawn).__name__}")
    _all_writable(drawn)
    held = clamp_to_role(drawn, role, features)
    if held.abstained or not (held.points_for or held.points_against or held.claim):
        return unfalsified(held)
    told_for, told_against = (
        tuple(one._replace(says=one_line(one.says), why=one_line(one.why)) for one in told)
        for told in (held.points_for, held.points_against)
    )
    placed = place_points(held, role, claim_of(held.claim), told_for, told_against, features)
    return unfalsified(placed)


def unfalsified(drawn: AgentReport) -> AgentReport:
    """Return a judge's report, flagged where it takes a side and cannot be proved wrong."""
    takes = drawn.win_share is not None and WINNERS.get(drawn.winner, 0)
    if not takes or (drawn.counter and drawn.points_against and drawn.falsifiers):
        return drawn
    return _flag(drawn, UNFALSIFIED)


def clamp_to_role(
    drawn: AgentReport, role: Role, features: Mapping[str, Feature] = EMPTY
) -> AgentReport:
    """Return a well-formed report within its role; what it names must be in the evidence."""
    adjustments: dict[str, float | None] = dict.fromkeys(VECTORS)
    flags = dict.fromkeys(drawn.flags)
    own_side = _own_side(drawn, role)
    for vector in VECTORS:
        value = drawn.adjustments.get(vector)
        if value is None or drawn.abstained:
            continue
        if vector not in role.focus:
            flags[OUT_OF_FOCUS] = None
            continue
        held = within(finite(value), role.bound)
        if held != value:
            flags[CLAMPED] = None
        # By its office: a bull's word is never below 0, a bear's never above.
        if held * own_side < 0:
            held = 0.0
            flags[CONCEDED] = None
        adjustments[vector] = held
    ordinals = {
        name: max(least, min(most, drawn.ordinals[name]))
        for name, (least, most) in (ORDINALS.items() if drawn.ordinals else ())
        if name in drawn.ordinals and not drawn.abstained
    }
    if ordinals and any(value != drawn.ordinals[name] for name, value in ordinals.items()):
        flags[CLAMPED] = None
    # Only the gate rules: a ruling in any other report is dropped.
    judged = _judged(drawn, role)
    if judged and drawn.ruling and judged.multiplier != drawn.ruling.multiplier:
        flags[CLAMPED] = None
    if not _is_within(drawn, role, adjustments, tuple(flags), judged):
        drawn = replace(
            drawn,
            agent_id=role.id,
            adjustments=adjustments,
            flags=tuple(flags),
            ruling=judged,
            ordinals=ordinals,
        )
    return _in_office(drawn, role, features)


def _judged(drawn: AgentReport, role: Role) -> GateRuling | None:
    """Return the ruling of a gate's report within its bounds, None of any other agent."""
    if role.kind != "gate":
        return None
    if drawn.ruling is None:
        if drawn.abstained:
            return None
        raise garbage("a gate without a ruling")
    # Of one side alone the rules and the judge's chance veto, never a gate.
    multiplier = max(0.0, min(1.0, finite(drawn.ruling.multiplier)))
    if multiplier is drawn.ruling.multiplier and not drawn.ruling.veto_sides:
        return drawn.ruling
    return replace(drawn.ruling, multiplier=multiplier, veto_sides=())


def _is_within(
    drawn: AgentReport,
    role: Role,
    adjustments: Mapping[str, float | None],
    flags: tuple[str, ...],
    judged: GateRuling | None,
) -> bool:
    """Tell whether a report is what its role leaves of it already, as nearly every one is."""
    given = drawn.adjustments
    return (
        (drawn.agent_id, drawn.flags) == (role.id, flags)
        and drawn.ruling is judged
        and not drawn.ordinals
        # The very same numbers: an equal one may be an integer, or a zero with a sign.
        and list(given) == list(adjustments)
        and all(map(operator.is_, given.values(), adjustments.values()))
    )


def _own_side(drawn: AgentReport, role: Role) -> int:
    """Return the side against which a report may not score: a researcher's office, a judge's."""
    if role.kind == "judge":
        return WINNERS.get(drawn.winner, 0)
    return SIDES.get(role.id, 0) if role.kind == "researcher" else 0


def _in_office(drawn: AgentReport, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return a report with what only some say, of the debate and of the time ahead, as theirs."""
    kind = "" if drawn.abstained else role.kind
    drawn = _in_swarm(drawn, role, kind, features)
    judges, trades = kind == "arbiter", kind == "trader"
    told = (drawn.winner, drawn.weights, drawn.horizon_bars, drawn.declined, drawn.decline_code)
    if not (judges or trades or drawn.horizon or drawn.risks or any(told)):
        return drawn  # nearly every one
    bare = replace(
        drawn,
        winner=drawn.winner if judges or kind == "judge" else "",
        weights=drawn.weights if judges else {},
        horizon_bars=drawn.horizon_bars if trades else 0,
        declined=drawn.declined and trades,
        decline_code=drawn.decline_code if trades else "",
        horizon=drawn.horizon if judges or kind in OPINIONS else "",
        risks=tuple(map(one_line, drawn.risks[: RISKS_KEPT.get(kind, 0)])),
    )
    if judges:
        return _judging(bare)
    return _deciding(bare) if trades else bare


def _in_swarm(
    drawn: AgentReport, role: Role, kind: str, features: Mapping[str, Feature]
) -> AgentReport:
    """Return a report with what only a swarm's seats say, as theirs."""
    told = (drawn.bias, drawn.anomaly, drawn.pattern, drawn.levels, drawn.regime, drawn.first)
    decided = (drawn.counter, drawn.close, drawn.win_share is not None, drawn.budget is not None)
    if kind not in ("reader", "judge") and not any((*told, *decided)):
        return drawn  # nearly every one
    expert, reads, decides = kind == "analyst", kind == "reader", kind == "judge"
    bare = replace(
        drawn,
        bias=drawn.bias if expert or reads else "",
        anomaly=drawn.anomaly if expert else "",
        pattern=drawn.pattern if expert else "",
        levels=tuple(drawn.levels) if expert else (),
        regime=drawn.regime if reads else "",
        budget=drawn.budget if reads else None,
        first=drawn.first if reads else "",
        counter=one_line(drawn.counter) if decides else "",
        win_share=drawn.win_share if decides else None,
        close=drawn.close and decides,
    )
    if reads:
        return _reading(bare)
    return _weighing(bare) if decides else _finding(bare, role, features)


def _reading(drawn: AgentReport) -> AgentReport:
    """Return a reader's report with a regime, a budget in [0, 1] and an expert, or none, first."""
    if drawn.regime not in REGIMES:
        raise garbage("a reader without a regime")
    told = 1.0 if drawn.budget is None else finite(drawn.budget)
    held = replace(
        drawn,
        budget=max(0.0, min(1.0, told)),
        first=drawn.first if drawn.first in EXPERTS else "",
        bias=drawn.bias or "NEUTRAL",
    )
    return _flag(held, CLAMPED) if held.budget != told else held


def _weighing(drawn: AgentReport) -> AgentReport:
    """Return a judge's report with a side and a chance of it in [0, 1]."""
    if drawn.winner not in WINNERS or drawn.win_share is None:
        raise garbage("a judge without a side or a chance")
    told = finite(drawn.win_share)
    held = replace(
        drawn,
        win_share=max(0.0, min(1.0, told)),
        falsifiers=tuple(map(one_line, drawn.falsifiers[:FALSIFIERS])),
    )
    return _flag(held, CLAMPED) if held.win_share != told else held


def _finding(drawn: AgentReport, role: Role, features: Mapping[str, Feature]) -> AgentReport:
    """Return an expert's report with the anomaly and the pattern that the evidence bears out."""
    anomaly, pattern = (
        "" if name == NO_ANOMALY else name for name in (drawn.anomaly, drawn.pattern)
    )
    seen = anomaly in ANOMALIES.get(role.id, ()) and shown_by(anomaly, features)
    shown = pattern in PATTERNS and number(features, PATTERN + pattern) == 1.0
    levels = tuple(name for name in dict.fromkeys(drawn.levels) if _is_level(name, features))
    held = replace(
        drawn,
        anomaly=anomaly if seen else "",
        pattern=pattern if shown and role.id == "geometry" else "",
        levels=levels[:LEVELS_KEPT] if role.id == "geometry" else (),
    )
    lost = (anomaly, pattern) != (held.anomaly, held.pattern) or not {*drawn.levels} <= {*levels}
    return _flag(held, INVENTED) if lost else held


def _is_level(name: str, features: Mapping[str, Feature]) -> bool:
    return name.startswith(LEVEL) and number(features, name) is not None


def _flag(drawn: AgentReport, flag: str) -> AgentReport:
    return replace(drawn, flags=tuple(dict.fromkeys((*drawn.flags, flag))))


def _judging(drawn: AgentReport) -> AgentReport:
    """Return an arbiter's report with its weights in [0, 1], one for each researcher."""
    if drawn.winner not in WINNERS:
        raise garbage("an arbiter without a winner")
    given = {name: finite(drawn.weights.get(name, 1.0)) for name in SIDES}
    weights = {name: max(0.0, min(1.0, value)) for name, value in given.items()}
    return _flagged(replace(drawn, weights=weights, falsifiers=()), clamped=weights != given)


def _deciding(drawn: AgentReport) -> AgentReport:
    """Return a trader's report with its bars in their range; a decline has one of the reasons."""
    least, most = HORIZON_BARS
    bars = max(least, min(most, drawn.horizon_bars))
    named = drawn.decline_code in tuple(GateReason) and drawn.decline_code != GateReason.NONE
    code = drawn.decline_code if named else str(GateReason.MODEL_JUDGEMENT)
    held = replace(
        drawn,
        horizon_bars=bars,
        decline_code=code if drawn.declined else "",
        falsifiers=tuple(map(one_line, drawn.falsifiers[:FALSIFIERS])),
    )
    return _flagged(held, clamped=bars != drawn.horizon_bars)


def _flagged(drawn: AgentReport, *, clamped: bool) -> AgentReport:
    return _flag(drawn, CLAMPED) if clamped else drawn


def place_points(
    drawn: AgentReport,
    role: Role,
    claim: str,
    given_for: tuple[Point, ...],
    given_against: tuple[Point, ...],
    features: Mapping[str, Feature],
) -> AgentReport:
    """Return a held report with its claim, and its points on their own sides."""
    side = _side(drawn, role, features)
    found = sort_points(side, given_for, given_against, features)
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


def _side(drawn: AgentReport, role: Role, features: Mapping[str, Feature]) -> int:
    """Return the side that a held report argues for: +1, -1, or 0 for none."""
    if role.kind == "arbiter" or (role.kind == "judge" and WINNERS.get(drawn.winner)):
        return WINNERS.get(drawn.winner, 0)
    if role.kind == "reader":
        return BIASES.get(drawn.bias, 0)
    if role.kind == "trader":
        # Who declines argues against the opening that it was asked about.
        return asked_side(features) * (-1 if drawn.declined else 1)
    return leaning(role, drawn.adjustments)


def asked_side(features: Mapping[str, Feature]) -> int:
    """Return the side of the opening that a trader is asked about: +1, -1, or 0 for none."""
    told = features.get(ORDER_SIDE)
    return {"BUY": 1, "SELL": -1}.get(str(told.value), 0) if told else 0


def _is_proper(drawn: AgentReport) -> bool:
    try:
        return _well_formed(drawn)
    except TypeError:  # a field that should be a row of things is none
        return False


def _well_formed(drawn: AgentReport) -> bool:
    words = (
        *(drawn.claim, drawn.reasoning, drawn.reason),
        *(*drawn.key_points, *drawn.flags, *drawn.falsifiers, *drawn.risks),
        *(drawn.horizon, drawn.winner, drawn.decline_code),
        *(drawn.bias, drawn.anomaly, drawn.pattern, *drawn.levels),
        *(drawn.regime, drawn.first, drawn.counter),
    )
    points = (*drawn.points_for, *drawn.points_against)
    return (
        isinstance(drawn.adjustments, Mapping)
        and isinstance(drawn.ordinals, Mapping)
        and all(type(value) is int for value in drawn.ordinals.values())
        and isinstance(drawn.weights, Mapping)
        and type(drawn.horizon_bars) is int
        and isinstance(drawn.declined, bool)
        and isinstance(drawn.risks, tuple | list)
        and isinstance(drawn.falsifiers, tuple | list)
        and drawn.confidence in CONFIDENCE_WEIGHT
        and drawn.horizon in ("", *get_args(Horizon))
        and drawn.bias in ("", *BIASES)
        and isinstance(drawn.close, bool)
        and isinstance(drawn.levels, tuple | list)
        and isinstance(drawn.abstained, bool)
        and all(isinstance(word, str) for word in words)
        and all(map(_is_citation, drawn.evidence))
        and all(map(_is_point, points))
        and all(map(_is_rebuttal, drawn.rebuttals))
    )


def _all_writable(drawn: AgentReport) -> None:
    told = (*drawn.points_for, *drawn.points_against, *drawn.rebuttals, *drawn.evidence)
    words = (
        *(drawn.claim, drawn.reasoning, drawn.reason),
        *(*drawn.key_points, *drawn.flags, *drawn.falsifiers, *drawn.risks),
        *(drawn.counter, drawn.anomaly, drawn.pattern, drawn.first, *drawn.levels),
        *(part for one in told for part in one if isinstance(part, str)),
    )
    refuse_surrogates(*words)


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
