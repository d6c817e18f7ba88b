"""What a firm's rules say of the time ahead: for how long they speak, and what they risk.

`HORIZONS` is a fixed rule by seat: what money and worth say is read in days, mood and news within a
session, oscillators and ticks in four bars. Everybody else goes by the regime: sixteen bars in a
trend, four in a range; where the hours are late, the session that ends.

A risk is what backs a case and is stretched furthest, then what speaks against it and was not
granted, in the words of `agents.phrases`. Pure functions; nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agents.arguments import AGAINST
from agents.contracts import Horizon, Request
from agents.phrases import PHRASES
from torra.providers.rules.argument import Argument, strongest
from torra.providers.rules.caution import is_late
from torra.providers.rules.readings import RuleSignal, TrendStrength

HORIZONS: Final[Mapping[str, Horizon]] = {
    "fundamental": "days",
    "sentiment": "session",
    "news": "session",
    "momentum": "bars_4",
    "microstructure": "bars_4",
    "macro": "days",
}
"""The time that a seat speaks for, whatever the regime."""

TREND_FROM: Final = 0.5
"""Strength of the trend from which sixteen bars are spoken for, not four."""

CASE_RISKS: Final = 2
THESIS_RISKS: Final = 3
"""Risks that a case and a thesis name at most."""


def horizon(request: Request, now: TrendStrength) -> Horizon:
    """Return the time that a report speaks for."""
    if request.role.id in HORIZONS:
        return HORIZONS[request.role.id]
    if is_late(request):
        return "session"
    return "bars_16" if now.trend >= TREND_FROM else "bars_4"


def risks(
    request: Request, heard: Mapping[str, Sequence[RuleSignal]], said: Argument, most: int
) -> list[str]:
    """Return what may go wrong with an argument for a side, a sentence each; [] without a case."""
    if not said.points_for:
        return []
    granted = {point.reading.reads for point in said.points_against}
    if said.answer is not None:
        granted.add(said.answer.point.reading.reads)
    against = strongest(request, heard, -said.side, 0.0, AGAINST + 1 + most)
    told = (
        *_stretched(heard, said.side),
        *(_sentence(one.half, one.why) for one in against if one.reading.reads not in granted),
    )
    return list(dict.fromkeys(told))[:most]


def _stretched(heard: Mapping[str, Sequence[RuleSignal]], side: int) -> Iterator[str]:
    """Yield what leans to a side and has gone furthest: one such sentence says it all."""
    found = [
        reading
        for readings in heard.values()
        for reading in readings
        if reading.side == side and not reading.fades and _is_stretched(reading)
    ]
    if found:
        far = max(found, key=lambda reading: abs(reading.lean))
        saying = far.told
        half = saying.text(far.values, -side, fades=True)
        yield _sentence(half, saying.reason(-side, fades=True))


def _is_stretched(reading: RuleSignal) -> bool:
    if reading.own is None and reading.reads not in PHRASES:
        return False
    return bool(reading.told.faded) and reading.told.fits(reading.values, fades=True)


def _sentence(half: str, why: str) -> str:
    return f"{half[:1].upper()}{half[1:]}, {why}."
