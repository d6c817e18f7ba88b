"""What an expert's finding and a judge's decision say beside their report.

A finding is a report with a word for what is odd and for which way it leans; the chart expert's
names a pattern and levels too. Whatever names a thing that code did not find is dropped and flagged
`invented`: an anomaly outside the expert's own set, a pattern that no bar shows, a price further
than LEVEL_ATR from every computed level. A decision names a side and argues against it: one without
a counter that cites, or without a close yet to come that would prove it, is flagged `unfalsified`
and weighs little (agents.debate.holding).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..arguments import ATR, FALSIFIERS, ending, standing
from ..contracts import WINNERS, Falsifier, Feature
from ..features import number
from .holding import INVENTED, LEVEL, LEVELS_KEPT
from .reply_shapes import DecisionReply, FindingReply, GeometryReply
from .reply_text import claim_of, level_name, refuse_surrogates

LEVEL_ATR: Final = 0.25
"""ATR up to which a price that an expert names is a computed level."""


def expert_fields(told: FindingReply, features: Mapping[str, Feature]) -> dict[str, Any]:
    """Return what a finding says beside its report, by the fields of a report."""
    names: dict[str, Any] = {"anomaly": told.anomaly, "bias": told.bias, "horizon": told.horizon}
    if not isinstance(told, GeometryReply):
        return names
    levels = tuple(dict.fromkeys(nearest(price, features) for price in told.levels))
    kept = tuple(filter(None, levels))[:LEVELS_KEPT]
    flags = (INVENTED,) if "" in levels else ()
    return {**names, "pattern": told.pattern, "levels": kept, "flags": flags}


def judge_fields(told: DecisionReply, features: Mapping[str, Feature]) -> dict[str, Any]:
    """Return what a decision says beside its report, by the fields of a report."""
    ends = tuple(
        Falsifier(one.close, one.level, level_name(one.what), one.bars) for one in told.falsifiers
    )
    refuse_surrogates(told.counter, *(one.what for one in ends))
    open_ = standing(ends, WINNERS[told.side], features)
    return {
        "winner": told.side,
        "counter": claim_of(told.counter),
        "falsifiers": tuple(dict.fromkeys(ending(one, features) for one in open_))[:FALSIFIERS],
        "win_share": told.win_share,
        "close": told.close,
        "horizon": told.horizon,
    }


def nearest(price: float, features: Mapping[str, Feature]) -> str:
    """Return the id of the computed level that a price means, "" where there is none near it."""
    atr = number(features, ATR)
    if atr is None or atr <= 0.0:
        return ""
    ids = sorted(name for name in features if name.startswith(LEVEL))
    return _closest(price, ((name, number(features, name)) for name in ids), LEVEL_ATR * atr)


def _closest(price: float, known: Iterable[tuple[str, float | None]], within: float) -> str:
    apart = [(abs(price - level), name) for name, level in known if level is not None]
    distance, name = min(apart, default=(float("inf"), ""))
    return name if distance <= within else ""
