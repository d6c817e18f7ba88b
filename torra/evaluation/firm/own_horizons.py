"""How often a report was right over the time that it says it speaks for.

A firm's reports name one of four times: 4 bars, 16 bars, the end of the session (the UTC day), days
(96 quarters of an hour). A call is a report with a lean, an arbiter's the side that it names; it
hits if a later close of its stream lies that way, before costs. Beside it stand the hits of the
same calls after 4 bars: a word for a time is worth something where the two differ.

Closes are those of the ticks themselves. A call whose time has not come by the last of them is
none. Calls overlap: intervals (Wilson) count one a tick and one tick in each such time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from agents.contracts import WINNERS
from torra.evaluation.exhibits import Columns, Exhibit, contents, percentage
from torra.evaluation.firm.horizon_times import BARS, DAY
from torra.evaluation.intervals import Interval, wilson
from torra.evaluation.observations import AgentOpinion, TickObservation
from torra.evaluation.opinion_table import spoke
from torra.evaluation.power import PowerSentence, finding, share_count
from torra.evaluation.wording import count, percent, percent_span
from torra.words.ticks import HORIZONS

USUAL: Final = 4
"""Bars after which every call is judged as well."""

NOTABLE: Final = 0.55
"""A hit rate worth finding."""


class HorizonCall(NamedTuple):
    """One call: which way, over which time, when, and whether it hit; None where nothing moved."""

    horizon: str
    moment: datetime
    hit: bool | None
    usual: bool | None


@dataclass(frozen=True, slots=True)
class OwnHorizon:
    """The calls over one time: how many hit there, and how many after USUAL bars."""

    horizon: str
    calls: int
    rate: float | None
    interval: Interval | None
    usual: float | None
    free: int


def own_horizons(ticks: Sequence[TickObservation]) -> tuple[OwnHorizon, ...]:
    """Return the hits of the calls over each time that any report names."""
    calls: dict[str, list[HorizonCall]] = defaultdict(list)
    for call in _calls(ticks):
        calls[call.horizon].append(call)
    return tuple(_own_horizon(name, calls[name]) for name in HORIZONS if name in calls)


COLUMNS: Final[Columns] = {
    "it speaks for": lambda one: HORIZONS[one.horizon],
    "calls": "calls",
    "hits": percentage("rate", 1),
    "95 %": lambda one: one.interval and percent_span(one.interval.low, one.interval.high),
    f"hits after {USUAL} bars": percentage("usual", 1),
}


def horizons_exhibit(ticks: Sequence[TickObservation]) -> Exhibit | None:
    """Return the table of hits by the time that reports speak for; None where none names one."""
    found = own_horizons(ticks)
    if not found:
        return None
    return Exhibit(
        name="calibration-horizons",
        title="Hits over the time that a report speaks for",
        **contents(COLUMNS, found),
        figures={f"rate.{one.horizon}": one.rate for one in found},
        **_show(found)._asdict(),
    )


def _calls(ticks: Sequence[TickObservation]) -> Iterator[HorizonCall]:
    streams: dict[tuple[str, str], list[TickObservation]] = defaultdict(list)
    for tick in ticks:
        streams[tick.instance, tick.timeframe].append(tick)
    for own in streams.values():
        own.sort(key=lambda tick: tick.close_time)
        times = [tick.close_time for tick in own]
        for row, tick in enumerate(own):
            for one in tick.opinions:
                lean = _lean(one) if one.horizon and spoke(one) else 0.0
                named = one.horizon or ""
                end = _end(times, row, named) if named in HORIZONS and lean else None
                if end is not None:
                    usual = row + USUAL if row + USUAL < len(own) else None
                    hits = (_hit(own, row, at, lean) for at in (end, usual))
                    yield HorizonCall(named, tick.close_time, *hits)


def _lean(one: AgentOpinion) -> float:
    if one.winner is not None:
        return float(WINNERS.get(one.winner, 0))
    return sum(f * (a or 0.0) for f, a in zip(one.focus, one.adjustments, strict=True))


def _end(times: Sequence[datetime], row: int, horizon: str) -> int | None:
    """Return the row whose close ends a time, None where that has not come yet."""
    if horizon in BARS:
        end = row + BARS[horizon]
    elif horizon == "days":
        end = bisect_left(times, times[row] + DAY)
    else:
        midnight = times[row].replace(hour=0, minute=0, second=0, microsecond=0) + DAY
        end = bisect_right(times, midnight) - 1
        if times[-1] < midnight or end == row:
            return None
    return end if end < len(times) else None


def _hit(own: Sequence[TickObservation], row: int, end: int | None, lean: float) -> bool | None:
    moved = 0.0 if end is None else own[end].close - own[row].close
    return None if moved == 0.0 else (moved > 0.0) == (lean > 0.0)


def _own_horizon(name: str, calls: Sequence[HorizonCall]) -> OwnHorizon:
    told = [call for call in calls if call.hit is not None]
    usual = [call.usual for call in calls if call.usual is not None]
    rate = _share([bool(call.hit) for call in told])
    moments = {call.moment for call in told}
    days = {moment.date() for moment in moments}
    free = len(moments) // BARS[name] if name in BARS else len(days)
    free = max(free, min(len(moments), 1))
    interval = None if rate is None else wilson(round(rate * free), free)
    return OwnHorizon(name, len(told), rate, interval, _share(usual), free)


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _show(found: Sequence[OwnHorizon]) -> PowerSentence:
    sure = [
        one for one in found if one.interval and not one.interval.low <= 0.5 <= one.interval.high
    ]
    told = [f"over {HORIZONS[one.horizon]} {percent(one.rate, 1)} hit" for one in sure]
    start = (
        f"Beyond chance: {'; '.join(told)}."
        if told
        else f"Over no time that a report names do hits differ from a coin's, on "
        f"{count(sum(one.calls for one in found), 'call')}."
    )
    needed, most = share_count(NOTABLE), max(one.free for one in found)
    effect = f"{percent(NOTABLE)} of hits"
    return finding(start, needed, most, "independent call", effect, shown=bool(sure))
