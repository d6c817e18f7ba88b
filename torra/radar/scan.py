"""A scan: which streams deserve a look now, by code alone, each with its codes and its evidence.

Every stream comes to one end: a row in one bucket, counted as quiet, or failed with a code. `act`
is a stored tick of the bar that closed last whose verdict is to open; nothing that was scored here
is. One stream's fault is that stream's alone; a store that fails raises StoreUnavailable.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from agents.features import name_of, unit_of
from torra.clock import System, iso, parse
from torra.errors import DataUnavailable, StoreUnavailable, bounded
from torra.radar.exits import EVENT_MINUTES, PositionState, exit_codes, way_left
from torra.radar.groups import groups
from torra.radar.result import Bucket, Coverage, RadarFailure, RadarRow, RadarRun, headline
from torra.radar.streams import StreamState, state_of
from torra.radar.universe import WATCH_SECONDS, RadarStream, universe
from torra.store import tick_queries
from torra.store.connection import RowDict
from torra.tick.marks import EXECUTION_OFF, PROPOSED
from torra.tick.tick_record import TickRecord
from torra.tools.contract import Fact
from torra.tools.desk_reader import DeskReader
from torra.verdict import sentiment_rules
from torra.verdict.risk_engine import Position
from torra.verdict.signal_states import POSITION_STATES
from torra.verdict.trade_outcome import value_at_bid
from torra.words.radar import BUCKET_WORDS, CODES, words_of

MOVED_ATR: Final = 3.0

States = Mapping[str, StreamState]
Values = Mapping[str, float | str | None]
Held = tuple[Position, RowDict]
"""A position, and the order that opened it as it is stored."""

log = logging.getLogger("torra")


def scan(
    reader: DeskReader, symbols: Sequence[str] = (), portfolio: Collection[str] = ()
) -> RadarRun:
    """Return one scan over all streams, or over some symbols.

    Symbols of `portfolio` come first within their bucket. Raises ConfigError for a symbol that is
    not scanned, and StoreUnavailable.
    """
    begun, scanned = System().monotonic(), System().real_now()
    streams = universe(reader, symbols)
    states, failed = _states(reader, streams)
    together = groups({name: state.closes for name, state in states.items()})
    held, count = _positions(reader, states)
    rows, quiet = [], list[tuple[float, str]]()
    for name, state in states.items():
        with _own_failure(state.stream, failed):
            row = _row(reader, state, states, held.get(name), together[name])
            if row is None:
                distance = _distance(state)
                quiet.append((math.inf if distance is None else distance, name))
            else:
                rows.append(row)
    rows.sort(key=lambda row: (
        row.symbol not in portfolio, row.distance is None, row.distance, row.age_s, row.stream,
    ))  # fmt: skip
    buckets = {name: tuple(row for row in rows if row.bucket == name) for name in BUCKET_WORDS}
    return RadarRun(
        **buckets,
        portfolio_brief=(
            f"{headline(rows)}.",
            f"The desk holds {count} position{'' if count == 1 else 's'}.",
        ),
        tool_calls=0,
        audit_log=(),
        reasoning_log=tuple(
            f"{row.stream}: {'; '.join(words_of(code).meaning for code in row.codes)}."
            for row in rows
        ),
        elapsed_seconds=round(System().monotonic() - begun, 3),
        scanned_at=iso(scanned.replace(microsecond=0)),
        using_non_ai_fallback=False,
        using_cached_data=False,
        fallback_reason="",
        fallback_trigger="",
        mode="rules",
        as_of=iso(reader.as_of),
        coverage=Coverage(
            streams=len(streams),
            quiet=len(quiet),
            quiet_streams=tuple(name for _, name in sorted(quiet)),
            failed=tuple(failed),
            **{name: len(those) for name, those in buckets.items()},
        ),
    )


def _states(
    reader: DeskReader, streams: Iterable[RadarStream]
) -> tuple[dict[str, StreamState], list[RadarFailure]]:
    """Return the streams that can be read, by name, and what is wrong with the others."""
    states: dict[str, StreamState] = {}
    failed: list[RadarFailure] = []
    late = System().monotonic() + WATCH_SECONDS
    for stream in streams:
        with _own_failure(stream, failed):
            if stream.kind == "watched" and System().monotonic() >= late:
                why = f"the symbols before it took {WATCH_SECONDS:.0f} s"
                raise DataUnavailable("NOT_READ", f"{stream.symbol} cannot be read: {why}")
            states[stream.name] = state_of(reader, stream)
    for name, state in states.items():
        if state.is_anew:
            profile = reader.profiles[state.stream.instance.id]
            known = {
                one.stream.timeframe: (one.closed, one.composite)
                for one in _of_symbol(states, state)
                if one.composite is not None and one.closed <= state.closed
            }
            value = sentiment_rules.consensus(known, profile.timeframe_weights, state.closed)
            verdict = sentiment_rules.verdict(value, profile.thresholds)
            states[name] = replace(state, consensus=value, verdict=verdict)
    return states, failed


@contextmanager
def _own_failure(stream: RadarStream, failed: list[RadarFailure]) -> Iterator[None]:
    """Note what is wrong with a stream as that stream's failure; raises StoreUnavailable."""
    try:
        yield
    except StoreUnavailable:
        raise
    except Exception as error:
        code, why = "BROKEN", f"{stream.name}: {type(error).__name__}"
        if isinstance(error, DataUnavailable) and error.reason in CODES["failed"]:
            code, why = error.reason, error.detail
        else:
            log.exception("radar: %s", stream.name)
        failed.append(RadarFailure(stream=stream.name, code=code, message=bounded(why)))


def _of_symbol(states: States, state: StreamState) -> list[StreamState]:
    """Return the states of one instance and symbol."""
    own = state.stream._replace(timeframe="")
    return [one for one in states.values() if one.stream._replace(timeframe="") == own]


# --- rows -----------------------------------------------------------------------------------------


def _row(
    reader: DeskReader,
    state: StreamState,
    states: States,
    held: Held | None,
    moves_with: tuple[str, ...],
) -> RadarRow | None:
    """Return the row of a stream; None where it is quiet."""
    against, facts = _exits(reader, state, *held) if held else ((), {})
    did = _opening(state)
    lives = did in ("HELD_BACK", "OBSERVED") or _lives(reader, state.record)
    acts = did and lives and state.current and state.stream.kind == "own"
    found: dict[Bucket, Sequence[str]] = {
        "act": (did,) if acts else (),
        "exit_radar": against,
        "watch": _watch_codes(reader, state, states, did),
    }
    bucket = next((name for name in BUCKET_WORDS if found[name]), None)
    if bucket is None:
        return None
    # what speaks against a position counts beside a new opening, too
    codes = (*found[bucket], *(against if bucket == "act" else ()))
    word = "not debated" if state.is_anew else "held" if held else ""
    denied = state.record.denied if state.record and did == "HELD_BACK" and acts else ()
    return RadarRow(
        stream=state.stream.name,
        symbol=state.stream.symbol,
        timeframe=state.stream.timeframe,
        bucket=bucket,
        code=codes[0],
        codes=codes,
        facts=_facts(reader, state, facts),
        as_of=iso(state.closed),
        age_s=(reader.as_of - state.closed).total_seconds(),
        distance=_distance(state),
        moves_with=moves_with,
        state=CODES["act"][codes[0]].word if bucket == "act" else word,
        deny_reason=str(denied[0]) if denied else "",
    )


def _opening(state: StreamState) -> str:
    """Return what a tick did about an opening that its verdict asks for, "" without one."""
    record = state.record
    if record is None or record.verdict == "HOLD":
        return ""
    if any(signal.kind == "open" for signal in record.signals):
        return "OPENED"
    named = {PROPOSED: "PROPOSED", EXECUTION_OFF: "OBSERVED"}
    return named.get(record.reason, "HELD_BACK" if record.denied else "")


def _lives(reader: DeskReader, record: TickRecord | None) -> bool:
    """Return whether an order or a proposal of a tick still lives."""
    if record is None:
        return False
    key = f"{record.instance}|{record.timeframe}|{record.bar_time}"
    rows = (reader.database.signal(one.sid) for one in record.signals if one.kind == "open")
    return any(row is not None and row["state"] in POSITION_STATES for row in rows) or any(
        row.torra_key == key and parse(row.expires) > reader.as_of
        for row in reader.database.proposals()
    )


def _watch_codes(reader: DeskReader, state: StreamState, states: States, did: str) -> list[str]:
    move, minutes = state.move(reader.as_of), _event_minutes(state, reader.as_of)
    leans = {one.composite > 0.0 for one in _of_symbol(states, state) if one.composite}
    hosted, near = state.stream.kind == "hosted", reader.settings.radar.near
    ends = (state.thresholds.buy, -state.thresholds.sell)
    holds = {
        "STALE": not (state.current or state.rests),
        "DATA_MISSING": state.missed > 0,
        "NOT_DEBATED": state.is_anew and state.verdict != "HOLD",
        "HOSTED": hosted and state.current and state.verdict != "HOLD",
        "ENDED": not hosted and state.current and did in ("OPENED", "PROPOSED"),
        "NEAR_THRESHOLD": state.current
        and state.consensus is not None
        and min(abs(state.consensus - end) for end in ends) <= near,
        "TIMEFRAMES_DISAGREE": len(leans) > 1,
        "TRIAGE": bool(state.triage),
        "EVENT_NEAR": minutes is not None and minutes <= EVENT_MINUTES,
        "MOVED": move is not None and abs(move) >= MOVED_ATR,
    }
    return [code for code, yes in holds.items() if yes]


def _distance(state: StreamState) -> float | None:
    """Return the share of the nearest threshold that the consensus lacks; 0 at it and beyond."""
    if state.consensus is None:
        return None
    buy, sell = state.thresholds.buy, state.thresholds.sell
    return max(0.0, min((buy - state.consensus) / buy, (sell + state.consensus) / sell))


def _event_minutes(state: StreamState, as_of: datetime) -> float | None:
    """Return the minutes to the next event that a stream's tick knew of; None without one."""
    events = state.record.events if state.record else None
    later = [one.time for one in events.events if one.time >= as_of] if events else []
    return (min(later) - as_of) / timedelta(minutes=1) if later else None


# --- positions ------------------------------------------------------------------------------------


def _positions(reader: DeskReader, states: States) -> tuple[dict[str, Held], int]:
    """Return what is held by the stream that it stands on, and how many positions there are.

    That is the stream whose tick opened it, or where that is not read another one of its instance.
    """
    openings = {row["sid"]: row for row in reader.database.openings() if row["price"] is not None}
    filled = [one for one in reader.database.positions() if one.signal_id in openings]
    held: dict[str, Held] = {}
    for position in filled:
        opening, place = openings[position.signal_id], f"{position.instance}|"
        first = place + opening["timeframe"]
        names = [name for name in states if name.startswith(place)]
        if names:
            held[first if first in names else names[0]] = position, opening
    return held, len(filled)


def _exits(
    reader: DeskReader, state: StreamState, position: Position, opening: RowDict
) -> tuple[Sequence[str], Values]:
    """Return what speaks against holding a position on, as codes, and the facts of them."""
    name, as_of = position.instance, reader.as_of
    spec, bid = reader.spec(position), reader.bid(position)
    if spec is None:
        return (), {}
    value = value_at_bid(position, position.entry if bid is None else bid, spec)
    stop_left, target_left = way_left(
        position.side, position.entry, value.price,
        position.stop, position.target, position.planned_stop,
    )  # fmt: skip
    key = f"{name}|{opening['timeframe']}|{opening['bar_time']}"
    # Two names: one alone would be no list.
    words = tick_queries.words_of(reader.database, [key], ("regime", "action")).get(key, {})
    before = str((words.get("regime") or {}).get("name", ""))
    lost = reader.database.exposure(name, state.stream.timeframe, as_of=as_of)["day_loss"]
    risk = reader.profiles[name].risk
    share = 100.0 * lost / (risk.capital * risk.daily_loss_cap_pct)
    codes = exit_codes(PositionState(
        position.side, state.verdict, state.consensus, stop_left, target_left, state.regime,
        before, _event_minutes(state, as_of), not (state.current or state.rests), share,
    ))  # fmt: skip
    return codes, {
        "radar.r": value.r, "radar.stop_left": stop_left, "radar.target_left": target_left,
        "radar.regime_before": before or None, "radar.loss_share": share,
    }  # fmt: skip


# --- facts ----------------------------------------------------------------------------------------


def _facts(reader: DeskReader, state: StreamState, more: Values) -> tuple[Fact, ...]:
    """Return the evidence of a row's codes: what is known of it."""
    ends = state.thresholds
    values: Values = {
        "radar.consensus": state.consensus,
        "radar.threshold": ends.buy if (state.consensus or 0.0) >= 0.0 else -ends.sell,
        "technical.close": state.close,
        "technical.atr14": state.atr,
        "market.regime": state.regime or None,
        "market.triage": " ".join(state.triage) or None,
        "radar.moved_atr": state.move(reader.as_of),
        "radar.to_event_min": _event_minutes(state, reader.as_of),
        "radar.missed": float(state.missed) or None,
        **more,
    }
    bar = iso(state.closed - state.closes.step)
    return tuple(
        Fact(
            id=f"{state.stream.name}@{bar}/{name}",
            value=value,
            unit=unit_of(name),
            as_of=iso(state.closed),
            source="signals" if name in more else "bars" if state.is_anew else "ticks",
            name=CODES["fact"][name].word if name in CODES["fact"] else name_of(name),
        )
        for name, value in values.items()
        if value is not None
    )
