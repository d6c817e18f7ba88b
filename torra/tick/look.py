"""What a tick looks at: bars, L1, market, memory and outlook, as they were at its close.

The outlook is headlines, outside numbers, companions and scheduled events.
`look` returns it as TickInputs. On the way it stores the bars and takes the paper bridge up to the
close. Bars that cannot be used raise DataUnavailable; a store that fails raises StoreUnavailable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import ath_calculator
import technical_calculator
from instance_database import TickKey
from torra.clock import duration, iso
from torra.config import Instance, Profile
from torra.errors import DataUnavailable
from torra.evaluation.standing import track_record
from torra.evaluation.standing.track_record import TrackRecordQuery
from torra.evidence import feature_bundle, flow_readings
from torra.evidence.feature_bundle import NO_EVENTS, NO_NEWS, Bundle, EvidenceInputs
from torra.evidence.flow_readings import NO_FLOW
from torra.evidence.outside_readings import NO_OUTSIDE, OutsideView
from torra.lessons import recall
from torra.lessons.facts import situation_of
from torra.lessons.recall import RetrievedLessons
from torra.market.bar_view import BarView
from torra.tick import paper, vetoed
from torra.tick.edges import TickDeps
from torra.tick.record import TickInputs
from torra.verdict import order_levels, sentiment_rules


def look(
    instance: Instance, key: TickKey, profile: Profile, edges: TickDeps, deadline: float
) -> TickInputs:
    """Return what a tick may know at its close; writes wait until just past the deadline."""
    as_of, database, window = key.close_time, edges.database, edges.window
    symbol, spec = instance.symbol, profile.symbol(instance.symbol)
    bars, row, times = _bars(key, edges)
    close, atr = float(row["close"]), float(row["atr14"])
    cursor = None if edges.route else database.paper_cursor(instance.id)
    # The feed may be slow, so its bars are fetched before the lock is taken.
    path = paper.path(instance, window, cursor, as_of)
    vetoes = database.vetoed_openings(instance.id)
    beyond = vetoed.path(instance, window, vetoes, as_of)
    if edges.route is not None:
        edges.route.settle(instance.id)
    experts = profile.agents.seats_experts()
    then = edges.flow(key.timeframe, times) if edges.flow else NO_FLOW
    flow: OutsideView | None = None
    if then.status != NO_FLOW.status:
        flow = flow_readings.read(then, times, as_of, atr, experts=experts)
    now = edges.clock.now()
    # Before the paper bridge moves: a replay starts from this and lives through the same bars.
    before = database.standing(instance.id) if edges.recorded else {}
    with edges.write(deadline):
        # First: the feed may have taken so long that the desk has lost its lock meanwhile.
        database.require_claim(key)
        window.keep(key.timeframe, bars)
        if edges.route is None:
            edges.publish(instance)  # a halt since the last tick takes back what waits for a fill
            paper.advance(instance, profile, database, path, cursor, as_of)
        vetoed.follow(instance, vetoes, beyond, profile, database, as_of)
    # After `keep`: a live window reads the records from the stored bars.
    records = window.records(key.timeframe, as_of)
    memory = database.memory_context(
        instance.id, key.timeframe, as_of=as_of, profile=profile, symbol=symbol, price=close
    )
    spreads = (edges.spreads or window.spreads)(bars, by_hour=experts)
    news = edges.news(as_of) if edges.news else None
    events = edges.events(as_of, now) if edges.events else None
    outside = _outside(key, edges, bars, flow)
    bundle = feature_bundle.build(
        EvidenceInputs(
            symbol=symbol,
            timeframe=key.timeframe,
            bar_time=key.bar_time,
            as_of=as_of,
            row=row,
            spread=spec.spread,
            valid_bars=len(bars),
            bar_age=max(0.0, (now - as_of) / duration(key.timeframe)),
            memory=memory,
            digits=spec.digits,
            bars=bars,
            news=news or NO_NEWS,
            events=events or NO_EVENTS,
            spreads=spreads,
            outside=outside or NO_OUTSIDE,
            experts=experts,
        )
    )
    bundle = bundle if edges.evidence is None else edges.evidence(key, bundle, outside)
    if experts:
        # What an opening stakes, which a swarm reads.
        numbers = order_levels.stakes(close, atr, spec)
        bundle = feature_bundle.with_numbers(bundle, "stakes", numbers)
    recalled = _recalled(instance, profile, edges, bundle, as_of)
    regime = bundle.regime.name
    standing = track_record.NO_RECORD
    if edges.standing is not None:  # what the past of the seats came to in the regime of now
        query = TrackRecordQuery(instance.id, key.timeframe, regime, as_of, close)
        standing = edges.standing(query)
    bundle = feature_bundle.with_numbers(bundle, "lessons", recalled.numbers or None)
    bundle = feature_bundle.with_numbers(bundle, "standing", standing.numbers or None)
    score = ath_calculator.score(close, records.high, records.low, atr, profile.record_score)
    revision = None
    if edges.recorded:
        before["path"] = [[iso(bar.time), *bar[1:]] for bar in path]
        revision = database.bar_revision(instance.id, key.timeframe, bars.first, bars.last)
    return TickInputs(
        instance=instance,
        profile=profile,
        timeframe=key.timeframe,
        bar_time=key.bar_time,
        as_of=as_of,
        now=now,
        before=before,
        view=bars,
        row=row,
        records=records,
        ath_score=score,
        memory=memory,
        bundle=bundle,
        revision=revision,
        news=news,
        events=events,
        spreads=spreads,
        outside=outside,
        lessons=recalled,
        standing=standing,
        invented=edges.invented,
    )


def _bars(key: TickKey, edges: TickDeps) -> tuple[BarView, Mapping[str, float], Sequence[datetime]]:
    """Return the bars with their row of scores, and the times whose order flow is being read."""
    as_of, window = key.close_time, edges.window
    bars = window.bars(key.timeframe, as_of)
    # An older newest bar would be scored as if it were the one that is due.
    if bars.last != key.bar_time:
        raise DataUnavailable("no_bar", f"the feed has no bar at {iso(key.bar_time)}")
    if edges.companions is not None:
        # Now, beside what follows: the own bars are here, so those of a companion soon will be.
        edges.companions.begin(key.timeframe, as_of)
    times: Sequence[datetime] = ()
    if edges.flow is not None:
        times = bars.newest_times(flow_readings.MEAN_BARS)
        edges.begin_flow(key.timeframe, times)
    row = window.l1_row(key.timeframe, as_of, bars)
    if not row["valid"]:
        raise DataUnavailable("too_short", f"fewer than {technical_calculator.WARM_UP} bars")
    return bars, row, times


def _outside(
    key: TickKey, edges: TickDeps, bars: BarView, flow: OutsideView | None
) -> OutsideView | None:
    """Return the numbers from beside the chart, companions and order flow among them."""
    as_of = key.close_time
    closes = partial(edges.window.daily_closes, as_of)
    outside = edges.outside(as_of, closes) if edges.outside else None
    if edges.companions is not None:
        companions = edges.companions.known(key.timeframe, as_of, bars)
        outside = (outside or NO_OUTSIDE).with_view(companions)
    return outside if flow is None else (outside or NO_OUTSIDE).with_view(flow)


def _recalled(
    instance: Instance, profile: Profile, edges: TickDeps, bundle: Bundle, as_of: datetime
) -> RetrievedLessons:
    """Return what is told of earlier trades, seen from the side to which L1 leans."""
    if edges.lessons is None:
        return recall.NOTHING
    began = edges.clock.monotonic()
    spec = profile.symbol(instance.symbol)
    leaning = sentiment_rules.composite(bundle.scores, 0.0, profile.sentiment_weights)
    query = recall.LessonQuery(
        symbol=instance.symbol,
        asset=spec.asset,
        side="LONG" if leaning >= 0.0 else "SHORT",
        situation=situation_of(bundle.features, bundle.scores),
        as_of=as_of,
        notes=profile.agents.memory.notes,
    )
    lessons = edges.lessons(query)
    late = edges.clock.monotonic() - began > recall.SECONDS
    return recall.TOO_LATE if late else lessons
