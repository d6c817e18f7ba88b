"""One question of a host on its way: evidence, who is asked, record.

It goes the way of a desk's tick (torra.tick) and stops before any decision: a hosted stream has no
bridge, no position and no signal. What it remembers is Torra's own weighing of the bars that were
handed over, so no earlier question and no order of questions changes it. The scores that the host
gave stand in the place of Torra's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
import pandas as pd

import ath_calculator
import technical_calculator
from agents.contracts import VECTORS
from ath_calculator import Records
from instance_database import Database, TickKey
from torra.clock import duration, iso
from torra.config import Instance, Profile
from torra.evidence import feature_bundle, news_digest
from torra.evidence.feature_bundle import NO_EVENTS, NO_NEWS, EvidenceInputs
from torra.evidence.news_digest import NewsStatus, NewsSubject, NewsView, rounded_up
from torra.evidence.scheduled_events import EventView
from torra.market.bar_view import BarView
from torra.overlay.request import OWN_FACTS, InvalidRequest, OverlayRequest, hash_of
from torra.store.hosted import HOST, hosted_instance
from torra.tick import record as tick_record
from torra.tick.marks import HOSTED
from torra.tick.record import TickDebate, TickInputs, TickResult
from torra.trading_terms import SymbolSpec
from torra.verdict import order_levels, sentiment_rules
from torra.verdict.risk_engine import Action

NEUTRAL: Final = SymbolSpec(
    digits=5,
    tick_size=0.00001,
    tick_value=1.0,
    contract_size=1.0,
    lot_min=0.01,
    lot_step=0.01,
    lot_max=100.0,
    spread=0.0,
)
"""Stands for the trading conditions of a symbol that the profile lacks: nothing trades by them."""

NEUTRAL_WEIGHT: Final = 1.0

SIDES: Final = {1.0: "LONG", -1.0: "SHORT", 0.0: "FLAT"}


@dataclass(frozen=True, slots=True)
class HostedScores:
    """What Torra's own calculators make of a question's bars.

    `history` has close time and composite of the bars before the newest one, `verdicts` theirs.
    """

    view: BarView
    row: Mapping[str, float]
    records: Records
    history: tuple[tuple[datetime, float], ...]
    verdicts: tuple[str, ...]

    @property
    def scores(self) -> dict[str, float]:
        """Torra's four scores."""
        return {vector: float(self.row[vector]) for vector in VECTORS}


@dataclass(frozen=True, slots=True)
class ScorerQuestion:
    """A question with its place in the store: `instance` and `key` are those of its stream.

    `profile` is the one that counts for it: of a symbol or a timeframe that the host's profile
    lacks it has neutral defaults, and `notes` say so. `hash` is that of everything that decides the
    answer; `stale`: the newest bar is too old for an opening.
    """

    request: OverlayRequest
    instance: Instance
    key: TickKey
    profile: Profile
    notes: tuple[str, ...]
    hash: str
    stale: bool
    own: HostedScores

    @property
    def l1(self) -> Mapping[str, float]:
        """The scores that count as L1: the host's own, or Torra's."""
        return self.request.scores or self.own.scores


def question(
    request: OverlayRequest, overlay: str, profile: Profile, profile_name: str
) -> ScorerQuestion:
    """Return a question that was read, with its place; no disk is touched.

    Raises InvalidRequest where there are too few bars for scores of Torra's own.
    """
    notes = list(request.notes)
    if request.symbol not in profile.symbols:
        symbols = {**profile.symbols, request.symbol: NEUTRAL}
        profile = profile.model_copy(update={"symbols": symbols})
        notes.append("symbol_not_in_profile")
    if request.timeframe not in profile.timeframe_weights:
        weights = {**profile.timeframe_weights, request.timeframe: NEUTRAL_WEIGHT}
        profile = profile.model_copy(update={"timeframe_weights": weights})
        notes.append("timeframe_not_in_profile")
    instance = stream(overlay, request.symbol, (request.timeframe,), profile_name)
    last = pd.DatetimeIndex(request.bars.index)[-1].to_pydatetime()
    key = TickKey(instance.id, request.timeframe, last)
    age = (request.moment - key.close_time) / duration(request.timeframe)
    stale = age > profile.gate.max_bar_age
    digest = hash_of(
        request.bars,
        scores=None if request.scores is None else dict(request.scores),
        extra=dict(request.extra),
        headlines=sorted(item.id for item in request.headlines),
        picture=request.picture_hash,
        profile=profile.digest(),
        stale=stale,
    )
    own = look(request, profile)
    return ScorerQuestion(request, instance, key, profile, tuple(notes), digest, stale, own)


def stream(overlay: str, symbol: str, timeframes: tuple[str, ...], profile: str) -> Instance:
    """Return the instance of a hosted stream."""
    return hosted_instance(f"{HOST}{overlay}:{symbol}", timeframes, profile)


def look(request: OverlayRequest, profile: Profile) -> HostedScores:
    """Compute the scores of the newest bar, and what L1 alone made of the bars before it.

    Raises InvalidRequest where there are too few bars for scores of Torra's own.
    """
    bars = request.bars
    if len(bars) < technical_calculator.WARM_UP:
        raise InvalidRequest(f"bars: fewer than {technical_calculator.WARM_UP} closed bars")
    highest = np.maximum.accumulate(bars["high"].to_numpy())
    lowest = np.minimum.accumulate(bars["low"].to_numpy())
    newest = bars.iloc[-technical_calculator.HISTORY :]
    table = technical_calculator.score_frame(newest)
    row = dict(zip(table.columns, table.to_numpy(dtype=float)[-1].tolist(), strict=True))
    if not row["valid"]:
        raise InvalidRequest(f"bars: fewer than {technical_calculator.WARM_UP} valid bars")
    shown = min(len(table), sentiment_rules.MARKOV_HISTORY + 1)
    newest_rows = table.iloc[-shown:]
    columns = {name: values.to_numpy(dtype=float) for name, values in newest_rows.items()}
    weights = profile.sentiment_weights.model_dump()
    forms = ath_calculator.record_scores(
        columns["close"], highest[-shown:], lowest[-shown:], columns["atr14"]
    )
    composite = weights["ath"] * forms[profile.record_score]
    for vector in VECTORS:
        composite = composite + weights[vector] * columns[vector]
    composite = np.round(composite / sum(weights.values()), 8) + 0.0
    past = (columns["valid"] > 0) & np.isfinite(composite)
    past[-1] = False  # the bar that is asked about has no past yet
    ends = pd.DatetimeIndex(newest_rows.index) + duration(request.timeframe)
    history = zip(ends[past].to_pydatetime().tolist(), composite[past].tolist(), strict=True)
    begin = pd.DatetimeIndex(bars.index)[0].to_pydatetime()
    return HostedScores(
        BarView.of(newest),
        row,
        Records(float(highest[-1]), float(lowest[-1]), begin),
        tuple(history),
        tuple(sentiment_rules.verdict(value, profile.thresholds) for value in composite[past]),
    )


def inputs(question: ScorerQuestion, events: EventView | None, news: NewsView | None) -> TickInputs:
    """Return what the tick sees."""
    request, key, profile, own = question.request, question.key, question.profile, question.own
    as_of, experts = key.close_time, profile.agents.seats_experts()
    row = {**own.row, **(request.scores or {})}
    close, atr = float(row["close"]), float(row["atr14"])
    memory = _memory(question)
    spec = profile.symbol(request.symbol)
    bundle = feature_bundle.build(
        EvidenceInputs(
            symbol=request.symbol,
            timeframe=key.timeframe,
            bar_time=key.bar_time,
            as_of=as_of,
            row=row,
            spread=request.extra.get("spread"),
            valid_bars=len(own.view),
            bar_age=max(0.0, (request.moment - as_of) / duration(key.timeframe)),
            memory=memory,
            digits=spec.digits,
            bars=own.view,
            news=news or NO_NEWS,
            events=events or NO_EVENTS,
            host={name: value for name, value in request.extra.items() if name not in OWN_FACTS},
            experts=experts,
            # At a whole second, never earlier than the question.
            known_at=rounded_up(request.moment),
        )
    )
    if experts:
        numbers = order_levels.stakes(close, atr, spec)
        bundle = feature_bundle.with_numbers(bundle, "stakes", numbers)
    if request.scores is not None:
        scores = own.scores
        explained = {
            name: replace(part, note=f"the scorer's own score; Torra reads {scores[name]:+.2f}")
            for name, part in bundle.explained.items()
        }
        bundle = replace(bundle, explained=explained)
    return TickInputs(
        instance=question.instance,
        profile=profile,
        timeframe=key.timeframe,
        bar_time=key.bar_time,
        as_of=as_of,
        now=request.moment,
        before={},
        view=own.view,
        row=row,
        records=own.records,
        ath_score=ath_calculator.score(
            close, own.records.high, own.records.low, atr, profile.record_score
        ),
        memory=memory,
        bundle=bundle,
        news=news,
        events=events,
    )


def _memory(question: ScorerQuestion) -> dict[str, Any]:
    """Return the memory of the stream: Torra's own reading, and of the account only what is told.

    No trade of the host's is known, so position and losing streak are None unless it gave them.
    """
    profile, key, extra = question.profile, question.key, question.request.extra
    lookback, own = profile.agents.history_lookback, question.own
    memory = sentiment_rules.memory_view(
        sentiment_rules.markov(own.history, key.timeframe, profile.markov),
        as_of=key.close_time,
        timeframe=key.timeframe,
        trend=[consensus for _, consensus in own.history[-lookback:]],
        verdicts=[*own.verdicts[-lookback:]],
        open_positions=(),
        open_elsewhere=0,
        trades=(),
    )
    position, streak = extra.get("position"), extra.get("losing_streak")
    return {
        **memory,
        "position": None if position is None else SIDES.get(position),
        "losing_streak": None if streak is None else int(streak),
        "open_elsewhere": None,
    }


def news(question: ScorerQuestion) -> NewsView | None:
    """Return what the headlines of a question come to; None without one."""
    request, settings = question.request, question.profile.news
    if not request.headlines:
        return None
    return news_digest.view(
        request.headlines,
        NewsSubject(symbol=request.symbol),
        as_of=rounded_up(request.moment),
        status=NewsStatus.AVAILABLE,
        max_age_hours=settings.max_age_hours,
        half_life_hours=settings.half_life_hours,
        max_items=settings.max_items,
    )


def write(
    database: Database,
    question: ScorerQuestion,
    tick_inputs: TickInputs,
    debated: TickDebate,
    *,
    hosted: Mapping[str, Any],
    provider: str,
    elapsed_ms: float,
    now: datetime,
) -> dict[str, Any]:
    """Store scores, record and calls of a tick, with what its record says of its question.

    Joins the open transaction. Returns the record.
    """
    key, deliberation = question.key, debated.deliberation
    saved = database.save_sentiment(
        debated.gated,
        key=key,
        close_time=tick_inputs.as_of,
        ath=tick_inputs.ath_score,
        l1=tick_inputs.l1,
        ungated=debated.ungated,
        source_type=deliberation.source_type,
        profile=question.profile,
        deliberation=tick_record.stored_deliberation(deliberation),
        timeframes=(key.timeframe,),
    )
    result = TickResult(
        tick_inputs, debated, saved, Action("HOLD", HOSTED), (), {"decided": iso(now)}, elapsed_ms
    )
    record = {**tick_record.build(result, provider), "hosted": dict(hosted)}
    database.write_journal(key, record)
    database.write_calls(key, deliberation.calls)
    if debated.picture is not None:
        database.store_picture(debated.picture)
    return record
