"""One question of a host on its way: evidence, debate, record.

It goes the way of a desk's tick (torra.tick) and stops before any decision: a hosted stream has no
bridge, no position and no signal. What it remembers is Torra's own weighing of the bars that were
handed over, so no earlier question and no order of questions changes it. The scores that the host
gave stand in the place of Torra's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
import pandas as pd

import agent_framework
import ath_calculator
import technical_calculator
from agents.contracts import VECTORS, ModelUnavailable, SourceType
from agents.debate import replies
from agents.debate.deliberation import ABSTAINED
from ath_calculator import Records
from instance_database import Database, TickKey
from torra.clock import duration, iso
from torra.config import Instance, Profile
from torra.errors import StoreUnavailable
from torra.evidence import feature_bundle, news_digest
from torra.evidence.feature_bundle import NO_EVENTS, NO_NEWS, EvidenceInputs
from torra.evidence.news_digest import NewsStatus, NewsSubject, NewsView, rounded_up
from torra.evidence.scheduled_events import EventView
from torra.market.bar_view import BarView
from torra.overlay.given import OWN_FACTS, InvalidRequest, OverlayRequest
from torra.store import bars as bar_table
from torra.store import hosted as hosted_table
from torra.store import replay_queries
from torra.store.hosted import HOST, hosted_instance
from torra.tick import record as tick_record
from torra.tick.marks import HOSTED
from torra.tick.record import TickDebate, TickInputs, TickResult, describe
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
class ScorerQuestion:
    """A question with its place in the store: `instance` and `key` are those of its stream.

    `profile` is the one that counts for it: of a symbol or a timeframe that the host's profile
    lacks it has neutral defaults, and `told` says so. `asked` is the hash of everything that
    decides the answer; `stale`: the newest bar is too old for an opening.
    """

    given: OverlayRequest
    instance: Instance
    key: TickKey
    profile: Profile
    told: tuple[str, ...]
    asked: str
    stale: bool = False


def question(
    given: OverlayRequest, overlay: str, profile: Profile, profile_name: str
) -> ScorerQuestion:
    """Return a question that was read, with its place."""
    told: list[str] = []
    if given.symbol not in profile.symbols:
        symbols = {**profile.symbols, given.symbol: NEUTRAL}
        profile = profile.model_copy(update={"symbols": symbols})
        told.append("symbol_not_in_profile")
    if given.timeframe not in profile.timeframe_weights:
        weights = {**profile.timeframe_weights, given.timeframe: NEUTRAL_WEIGHT}
        profile = profile.model_copy(update={"timeframe_weights": weights})
        told.append("timeframe_not_in_profile")
    instance = stream(overlay, given.symbol, (given.timeframe,), profile_name)
    key = TickKey(instance.id, given.timeframe, given.bar_time)
    age = (given.moment - key.close_time) / duration(given.timeframe)
    stale = age > profile.gate.max_bar_age
    asked = given.hash(profile.digest(), stale=stale)
    return ScorerQuestion(given, instance, key, profile, (*given.told, *told), asked, stale)


def stream(overlay: str, symbol: str, timeframes: tuple[str, ...], profile: str) -> Instance:
    """Return the instance of a hosted stream."""
    return hosted_instance(f"{HOST}{overlay}:{symbol}", timeframes, profile)


@dataclass(frozen=True, slots=True)
class HostedScores:
    """What Torra's own calculators make of a question's bars."""

    view: BarView
    row: Mapping[str, float]
    records: Records
    history: tuple[tuple[datetime, float], ...]
    verdicts: tuple[str, ...]

    @property
    def scores(self) -> dict[str, float]:
        """Torra's four scores."""
        return {vector: float(self.row[vector]) for vector in VECTORS}


def look(question: ScorerQuestion) -> HostedScores:
    """Compute the scores of the newest bar, and what the bars before it were; no disk is touched.

    Raises InvalidRequest where there are too few bars for scores of Torra's own.
    """
    bars = question.given.bars
    if bars is None or len(bars) < technical_calculator.WARM_UP:
        raise InvalidRequest(f"bars: fewer than {technical_calculator.WARM_UP} closed bars")
    highest = np.maximum.accumulate(bars["high"].to_numpy())
    lowest = np.minimum.accumulate(bars["low"].to_numpy())
    newest = bars.iloc[-technical_calculator.HISTORY :]
    table = technical_calculator.score_frame(newest)
    row = dict(zip(table.columns, table.to_numpy(dtype=float)[-1].tolist(), strict=True))
    if not row["valid"]:
        raise InvalidRequest(f"bars: fewer than {technical_calculator.WARM_UP} valid bars")
    records = Records(
        float(highest[-1]), float(lowest[-1]), pd.DatetimeIndex(bars.index)[0].to_pydatetime()
    )
    shown = min(len(table), sentiment_rules.MARKOV_HISTORY + 1)
    history, verdicts = _earlier(question, table.iloc[-shown:], highest[-shown:], lowest[-shown:])
    return HostedScores(BarView.of(newest), row, records, history, verdicts)


def _earlier(
    question: ScorerQuestion, table: pd.DataFrame, highest: Any, lowest: Any
) -> tuple[tuple[tuple[datetime, float], ...], tuple[str, ...]]:
    """Return close time and composite of the bars before the newest one, and their verdicts.

    The composites are those of L1 alone, from the bars that were handed over.
    """
    profile = question.profile
    weights = profile.sentiment_weights.model_dump()
    close, atr = table["close"].to_numpy(dtype=float), table["atr14"].to_numpy(dtype=float)
    rows = zip(close.tolist(), highest.tolist(), lowest.tolist(), atr.tolist(), strict=True)
    form = profile.record_score
    ath = np.array(
        [ath_calculator.score(*row, form) if row[-1] == row[-1] else np.nan for row in rows]
    )
    total = sum(weights.values())
    composite = weights["ath"] * ath
    for vector in VECTORS:
        composite = composite + weights[vector] * table[vector].to_numpy(dtype=float)
    composite = np.round(composite / total, 8) + 0.0
    known = table["valid"].to_numpy(dtype=float) > 0
    known[-1] = False  # the bar that is asked about has no past yet
    ends = pd.DatetimeIndex(table.index) + duration(question.key.timeframe)
    wanted = np.flatnonzero(known & np.isfinite(composite))
    moments, values = ends[wanted].to_pydatetime(), composite[wanted].tolist()
    verdicts = tuple(sentiment_rules.verdict(value, profile.thresholds) for value in values)
    return tuple(zip(moments.tolist(), values, strict=True)), verdicts


def inputs(
    question: ScorerQuestion, looked: HostedScores, events: EventView | None, news: NewsView | None
) -> TickInputs:
    """Return what the tick sees."""
    given, key, profile = question.given, question.key, question.profile
    as_of = key.close_time
    row = {**looked.row, **(given.scores or {})}
    memory = _memory(question, looked)
    spec = profile.symbol(given.symbol)
    extra = {name: value for name, value in given.extra.items() if name not in OWN_FACTS}
    bundle = feature_bundle.build(
        EvidenceInputs(
            symbol=given.symbol,
            timeframe=key.timeframe,
            bar_time=key.bar_time,
            as_of=as_of,
            row=row,
            spread=given.extra.get("spread"),
            bars_held=len(looked.view),
            bar_age=max(0.0, (given.moment - as_of) / duration(key.timeframe)),
            memory=memory,
            digits=spec.digits,
            bars=looked.view,
            news=news or NO_NEWS,
            events=events or NO_EVENTS,
            host=extra,
            experts=profile.agents.seats_experts(),
            # At a whole second, never earlier than the question.
            known_at=rounded_up(given.moment),
        )
    )
    if profile.agents.seats_experts():
        numbers = order_levels.stakes(float(row["close"]), float(row["atr14"]), spec)
        bundle = feature_bundle.with_numbers(bundle, "stakes", numbers)
    if given.scores is not None:
        own = looked.scores
        explained = {
            name: replace(part, note=f"the scorer's own score; Torra reads {own[name]:+.2f}")
            for name, part in bundle.explained.items()
        }
        bundle = replace(bundle, explained=explained)
    score = ath_calculator.score(
        float(row["close"]), looked.records.high, looked.records.low, float(row["atr14"]),
        profile.record_score,
    )  # fmt: skip
    return TickInputs(
        instance=question.instance,
        profile=profile,
        timeframe=key.timeframe,
        bar_time=key.bar_time,
        as_of=as_of,
        now=given.moment,
        before={},
        view=looked.view,
        row=row,
        records=looked.records,
        ath_score=score,
        memory=memory,
        bundle=bundle,
        news=news,
        events=events,
    )


def _memory(question: ScorerQuestion, looked: HostedScores) -> dict[str, Any]:
    """Return the memory of the stream: Torra's own reading, and of the account only what is told.

    No trade of the host's is known, so position and losing streak are None unless it gave them.
    """
    profile, key, extra = question.profile, question.key, question.given.extra
    lookback = profile.agents.history_lookback
    found = sentiment_rules.memory_view(
        sentiment_rules.markov(looked.history, key.timeframe, profile.markov),
        as_of=key.close_time,
        timeframe=key.timeframe,
        trend=[consensus for _, consensus in looked.history[-lookback:]],
        verdicts=[*looked.verdicts[-lookback:]],
        open_positions=(),
        open_elsewhere=0,
        trades=(),
    )
    position, streak = extra.get("position"), extra.get("losing_streak")
    return {
        **found,
        "position": None if position is None else SIDES.get(position),
        "losing_streak": None if streak is None else int(streak),
        "open_elsewhere": None,
    }


def news(question: ScorerQuestion) -> NewsView | None:
    """Return what the headlines of a question come to; None without one."""
    given, settings = question.given, question.profile.news
    if not given.headlines:
        return None
    return news_digest.view(
        given.headlines,
        NewsSubject(symbol=given.symbol),
        as_of=rounded_up(given.moment),
        status=NewsStatus.AVAILABLE,
        max_age_hours=settings.max_age_hours,
        half_life_hours=settings.half_life_hours,
        max_items=settings.max_items,
    )


# --- the debate -----------------------------------------------------------------------------------


class HostFallback:
    """A host's own scorer, asked in Torra's place; `scores` are what it answered, if it did."""

    def __init__(self, fallback: agent_framework.Fallback) -> None:
        self._fallback = fallback
        self.scores: Mapping[str, float] = {}

    def __call__(self, context: Any, ask: Any) -> Mapping[str, Any]:
        """Ask it; whatever it raises or returns goes on to the framework, which judges it."""
        found = self._fallback(context, ask)
        with suppress(ModelUnavailable):
            self.scores = replies.scores(found)
        return found


def store(
    database: Database,
    question: ScorerQuestion,
    seen: TickInputs,
    debated: TickDebate,
    *,
    fallback: HostFallback | None,
    owner: str,
    provider: str,
    elapsed_ms: float,
    now: datetime,
    wait: float,
    gave_up: Callable[[], bool] = lambda: False,
) -> tuple[Mapping[str, Any], int]:
    """Store the tick with its answer, all or nothing; return its record and its revision.

    `fallback` is the host's own, if it has one; `gave_up` says whether the host has gone on without
    the answer, and then nothing is kept. Raises StoreUnavailable when the claim is another's by
    now, or the store fails.
    """
    key, given, profile = question.key, question.given, question.profile
    bars = given.bars
    asked = question.asked
    with database.transaction(wait):
        revision = hosted_table.hosted_revision(database, key, asked, owner)
        if not replay_queries.knows_profile(database, key.instance, profile.digest()):
            database.apply_profile(key.instance, profile.model_dump_json(), profile.digest())
        newest: int | None = None
        if bars is not None:
            newest = _keep_bars(database, key, bars)
        hosted_table.put_aside(database, key)
        if seen.news is not None:
            database.store_news(found.item for found in seen.news.items)
        legacy = debated.deliberation.source_type == SourceType.LEGACY
        told = {
            "asked": asked,
            "revision": revision,
            "own_scores": given.scores is not None,
            "extra": dict(given.extra),
            "headlines": [item.id for item in given.headlines],
            "bars": 0 if bars is None else len(bars),
            "moment": iso(given.moment),
            "stale": question.stale,
            "told": list(question.told),
            "picture": hashlib.sha256(given.picture).hexdigest() if given.picture else None,
            "handed": None if bars is None else describe(bars, newest),
            # What the host's own fallback answered: {} for nothing, None where there was none.
            "fallback": None if fallback is None else dict(fallback.scores) if legacy else {},
        }
        record = write(
            database, question, replace(seen, revision=newest), debated,
            told=told, provider=provider, elapsed_ms=elapsed_ms, now=now,
        )  # fmt: skip
        hosted_table.keep_answer(
            database, key, asked, debated.counted.scores, revision, final=is_final(debated)
        )
        if gave_up():
            raise StoreUnavailable(f"{key.text} came too late: its host has gone on with L1")
    if gave_up():  # while the disk took its time: it stands, and says so
        with suppress(StoreUnavailable):
            hosted_table.came_late(database, key)
    # As a record is read: with what was said, which stands in a row of its own.
    return {**record, "deliberation": tick_record.spoken(debated.deliberation)}, revision


def _keep_bars(database: Database, key: TickKey, bars: pd.DataFrame) -> int | None:
    """Store what was handed over, so that the stream's bars are just these.

    Returns their highest revision: records and memory are made of the older ones, too.
    """
    database.store_bars(key.instance, key.timeframe, bars)
    times = pd.DatetimeIndex(bars.index)
    first, last = times[0].to_pydatetime(), times[-1].to_pydatetime()
    # All of them are held now: more times than these are bars that the host has no more.
    if bar_table.times_held(database, key.instance, key.timeframe, first, last) > len(bars):
        database.withdraw_others(key.instance, key.timeframe, bars)
    return database.bar_revision(key.instance, key.timeframe, first, last)


def write(
    database: Database,
    question: ScorerQuestion,
    seen: TickInputs,
    debated: TickDebate,
    *,
    told: Mapping[str, Any],
    provider: str,
    elapsed_ms: float,
    now: datetime,
) -> Mapping[str, Any]:
    """Store scores, record and calls of a tick, with what is told of its question.

    Joins the open transaction. Returns the record.
    """
    key, profile, spoken = question.key, question.profile, debated.deliberation
    saved = database.save_sentiment(
        debated.gated,
        key=key,
        close_time=seen.as_of,
        ath=seen.ath_score,
        l1=seen.l1,
        ungated=debated.ungated,
        source_type=spoken.source_type,
        profile=profile,
        deliberation=tick_record.spoken(spoken),
        timeframes=(key.timeframe,),
    )
    result = TickResult(
        seen, debated, saved, Action("HOLD", HOSTED), (), {"decided": iso(now)}, elapsed_ms
    )
    record = tick_record.build(result, provider)
    record["hosted"] = dict(told)
    database.write_journal(key, record)
    database.write_calls(key, spoken.calls)
    if debated.picture is not None:
        database.store_picture(debated.picture)
    return record


def is_final(debated: TickDebate) -> bool:
    """Return whether agents were heard, or all of them abstained: such an answer is given again."""
    spoken = debated.deliberation
    return spoken.heard or (ABSTAINED in spoken.flags and not spoken.failures)
