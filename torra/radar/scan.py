"""A scan: which streams deserve a look now, by code alone, each with its codes and its evidence.

Every stream comes to one end: a row in one bucket, counted as quiet, or failed with a code. `act`
is a stored tick of the bar that closed last whose verdict is to open; nothing that was scored here
is. One stream's fault is that stream's alone; a store that fails raises StoreUnavailable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from agents.features import name_of, unit_of
from torra.clock import System, iso, parse
from torra.config import SymbolSpec
from torra.errors import ConfigError, StoreUnavailable, bounded
from torra.radar.exits import EVENT_MINUTES, HeldPosition, exit_codes, way_left
from torra.radar.groups import groups
from torra.radar.headline import headline
from torra.radar.result import Bucket, Coverage, RadarFailure, RadarRow, RadarRun
from torra.radar.streams import StreamFault, StreamState, move_of, state_of, weigh
from torra.radar.universe import RadarStream, universe
from torra.store import bars as bar_table
from torra.store import tick_queries
from torra.store.connection import RowDict
from torra.tick.marks import EXECUTION_OFF, PROPOSED
from torra.tools.contract import Fact
from torra.tools.desk_reader import DeskReader
from torra.verdict.risk_engine import Position
from torra.verdict.signal_states import POSITION_STATES
from torra.verdict.trade_outcome import value_at_bid
from torra.words.radar import CODES

MOVED_ATR: Final = 3.0

NOT_DEBATED: Final = "not debated"
HELD: Final = "held"

BUCKETS: Final[tuple[Bucket, ...]] = ("act", "exit_radar", "watch")

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class HeldSide:
    """A position with the row of its opening, its codes, and the facts of them."""

    position: Position
    opening: RowDict
    codes: tuple[str, ...]
    facts: tuple[Fact, ...]


def scan(
    reader: DeskReader, symbols: Sequence[str] = (), portfolio: Sequence[str] = ()
) -> RadarRun:
    """Return one scan over all streams, or over some symbols.

    Symbols of `portfolio` come first within their bucket. Raises ConfigError for a symbol that is
    not scanned, and StoreUnavailable.
    """
    begun, scanned = System().monotonic(), System().real_now()
    streams = universe(reader, symbols)
    states, failed = _states(reader, streams)
    held = {} if not states else _held(reader, states)
    together = groups({name: state.closes for name, state in states.items()})
    rows = [
        row.model_copy(update={"moves_with": together[row.stream]})
        for state in states.values()
        if (row := _row(reader, state, states, held.get(state.stream.name))) is not None
    ]
    rows.sort(key=lambda row: (
        row.symbol not in portfolio, row.distance is None, row.distance or 0.0, row.age_s,
        row.stream,
    ))  # fmt: skip
    buckets = {name: tuple(row for row in rows if row.bucket == name) for name in BUCKETS}
    counts = {name: len(those) for name, those in buckets.items()}
    return RadarRun(
        **buckets,
        portfolio_brief=_brief(buckets, held.values()),
        tool_calls=0,
        audit_log=(),
        reasoning_log=tuple(map(_reasoning, rows)),
        elapsed_seconds=round(System().monotonic() - begun, 3),
        scanned_at=iso(scanned.replace(microsecond=0)),
        using_non_ai_fallback=False,
        using_cached_data=False,
        fallback_reason="",
        fallback_trigger="",
        mode="rules",
        as_of=iso(reader.as_of),
        coverage=Coverage(
            streams=len(streams), quiet=len(states) - len(rows), failed=tuple(failed), **counts
        ),
    )


# --- the streams ----------------------------------------------------------------------------------


def _states(
    reader: DeskReader, streams: Iterable[RadarStream]
) -> tuple[dict[str, StreamState], list[RadarFailure]]:
    """Return the streams that can be read, by name, and what is wrong with the others."""
    states: dict[str, StreamState] = {}
    failed = []
    for stream in streams:
        try:
            states[stream.name] = state_of(reader, stream)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one symbol's fault is one row
            failed.append(_failure(stream, error))
    for name, state in [*states.items()]:
        if state.is_anew:
            own = {other: one for other, one in states.items() if _alike(one, state)}
            profile = reader.profiles[state.stream.instance.id]
            try:
                states[name] = weigh(own, state, profile)
            except ValueError as error:
                del states[name]
                failed.append(_failure(state.stream, error))
    return states, failed


def _alike(one: StreamState, other: StreamState) -> bool:
    left, right = one.stream, other.stream
    return (left.instance.id, left.symbol) == (right.instance.id, right.symbol)


def _failure(stream: RadarStream, error: Exception) -> RadarFailure:
    code = error.code if isinstance(error, StreamFault) else "BROKEN"
    if code == "BROKEN":
        log.warning("radar: %s: %s: %s", stream.name, type(error).__name__, error)
    message = str(error) if code != "BROKEN" else f"{stream.name}: {type(error).__name__}"
    return RadarFailure(stream=stream.name, code=code, message=bounded(message))


# --- rows -----------------------------------------------------------------------------------------


def _row(
    reader: DeskReader, state: StreamState, states: Mapping[str, StreamState], held: HeldSide | None
) -> RadarRow | None:
    """Return the row of a stream; None where it is quiet."""
    found: dict[Bucket, tuple[str, ...]] = {
        "act": _act_codes(reader, state),
        "exit_radar": held.codes if held else (),
        "watch": tuple(_watch_codes(reader, state, states)),
    }
    bucket = next((name for name in BUCKETS if found[name]), None)
    if bucket is None:
        return None
    codes = found[bucket]
    word = NOT_DEBATED if state.is_anew else HELD if held else ""
    denied = state.record.denied if state.record and "HELD_BACK" in codes else ()
    return RadarRow(
        stream=state.stream.name,
        symbol=state.stream.symbol,
        timeframe=state.stream.timeframe,
        bucket=bucket,
        code=codes[0],
        codes=codes,
        facts=(*_facts(reader, state), *(held.facts if held and bucket == "exit_radar" else ())),
        as_of=iso(state.closed),
        age_s=(reader.as_of - state.closed).total_seconds(),
        distance=_distance(state),
        state=CODES["act"][codes[0]].word if bucket == "act" else word,
        deny_reason=str(denied[0]) if denied else "",
    )


def _act_codes(reader: DeskReader, state: StreamState) -> tuple[str, ...]:
    record = state.record
    if record is None or state.is_anew or not state.current or state.stream.kind != "own":
        return ()
    code = _opening_code(state)
    lives = code in ("HELD_BACK", "OBSERVED") or _lives(reader, state)
    return (code,) if code and lives else ()


def _opening_code(state: StreamState) -> str:
    """Return what a tick did about an opening that its verdict asks for, "" without one."""
    record = state.record
    if record is None or record.verdict == "HOLD":
        return ""
    if any(signal.kind == "open" for signal in record.signals):
        return "OPENED"
    if record.reason == PROPOSED:
        return "PROPOSED"
    if record.reason == EXECUTION_OFF:
        return "OBSERVED"
    return "HELD_BACK" if record.denied else ""


def _lives(reader: DeskReader, state: StreamState) -> bool:
    """Return whether an order or a proposal of a stream's tick still lives."""
    record = state.record
    if record is None:
        return False
    place = (record.instance, record.timeframe, record.bar_time)
    proposed = any(
        (row.instance, row.timeframe, row.bar_time) == place and parse(row.expires) > reader.as_of
        for row in reader.database.proposals()
    )
    rows = (reader.database.signal(one.sid) for one in record.signals if one.kind == "open")
    return proposed or any(row is not None and row["state"] in POSITION_STATES for row in rows)


def _watch_codes(
    reader: DeskReader, state: StreamState, states: Mapping[str, StreamState]
) -> Iterator[str]:
    opening = _opening_code(state)
    hosted = state.stream.kind == "hosted"
    move = move_of(state, reader.as_of)
    minutes = _event_minutes(state, reader.as_of)
    leans = {one.composite > 0.0 for one in states.values() if one.composite and _alike(one, state)}
    holds = {
        "STALE": not (state.current or state.rests),
        "DATA_MISSING": state.missed > 0,
        "NOT_DEBATED": state.is_anew and state.verdict != "HOLD",
        "HOSTED": hosted and state.current and state.verdict != "HOLD",
        "ENDED": state.current and opening in ("OPENED", "PROPOSED") and not hosted,
        "NEAR_THRESHOLD": _is_near(state, reader.settings.radar.near),
        "TIMEFRAMES_DISAGREE": len(leans) > 1,
        "TRIAGE": bool(state.triage),
        "EVENT_NEAR": minutes is not None and minutes <= EVENT_MINUTES,
        "MOVED": move is not None and abs(move) >= MOVED_ATR,
    }
    return (code for code, yes in holds.items() if yes)


def _is_near(state: StreamState, near: float) -> bool:
    if state.consensus is None or state.rests or not state.current:
        return False
    ends = (state.thresholds.buy, -state.thresholds.sell)
    return min(abs(state.consensus - end) for end in ends) <= near


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


def _held(reader: DeskReader, states: Mapping[str, StreamState]) -> dict[str, HeldSide]:
    """Return the positions of own instances by the stream that each stands on.

    It is that whose tick opened it, else the shortest of its instance that could be read.
    """
    held = {}
    openings = {str(row["sid"]): row for row in reader.database.openings()}
    for position in reader.database.positions():
        opening = openings.get(position.signal_id)
        own = [
            state for state in states.values()
            if state.stream.kind == "own" and state.stream.instance.id == position.instance
        ]  # fmt: skip
        if opening is None or opening["price"] is None or not own:
            continue
        state = next((one for one in own if one.stream.timeframe == opening["timeframe"]), own[0])
        spec = _spec(reader, state)
        if spec is not None:
            held[state.stream.name] = _against(reader, state, position, opening, spec)
    return held


def _spec(reader: DeskReader, state: StreamState) -> SymbolSpec | None:
    try:
        return reader.profiles[state.stream.instance.id].symbol(state.stream.symbol)
    except (ConfigError, KeyError):
        return None


def _against(
    reader: DeskReader, state: StreamState, position: Position, opening: RowDict, spec: SymbolSpec
) -> HeldSide:
    """Return what speaks against holding a position on, with the facts."""
    instance, database = state.stream.instance, reader.database
    bid = bar_table.newest_close(database, instance.id, instance.timeframes, reader.as_of)
    value = None if bid is None else value_at_bid(position, bid, spec)
    ways = (1.0, 1.0)
    if value is not None:
        levels = (position.stop, position.target, position.planned_stop)
        ways = way_left(position.side, position.entry, value.price, *levels)
    key = f"{opening['instance']}|{opening['timeframe']}|{opening['bar_time']}"
    before = tick_queries.words_of(database, [key], ("regime",)).get(key, {}).get("regime")
    risk = reader.profiles[instance.id].risk
    exposure = database.exposure(instance.id, state.stream.timeframe, as_of=reader.as_of)
    cap = risk.capital * risk.daily_loss_cap_pct / 100.0
    found = HeldPosition(
        side=position.side,
        verdict=state.verdict,
        consensus=state.consensus,
        stop_left=ways[0],
        target_left=ways[1],
        regime=state.regime,
        regime_before=str(before["name"]) if isinstance(before, dict) else "",
        event_minutes=_event_minutes(state, reader.as_of),
        stale=not (state.current or state.rests),
        loss_share=exposure["day_loss"] / cap if cap else 0.0,
    )
    facts = {
        "radar.r": None if value is None else value.r,
        "radar.stop_left": found.stop_left,
        "radar.target_left": found.target_left,
        "radar.regime_before": found.regime_before or None,
        "radar.loss_share": found.loss_share,
    }
    source = "signals"
    return HeldSide(
        position,
        opening,
        exit_codes(found),
        tuple(_fact(state, name, one, source) for name, one in facts.items()),
    )


# --- facts and sentences --------------------------------------------------------------------------


def _facts(reader: DeskReader, state: StreamState) -> tuple[Fact, ...]:
    """Return the evidence of a stream's codes."""
    limit = None
    if state.consensus is not None:
        limit = state.thresholds.buy if state.consensus >= 0.0 else -state.thresholds.sell
    values: dict[str, float | str | None] = {
        "radar.consensus": state.consensus,
        "radar.threshold": limit,
        "technical.close": state.close,
        "technical.atr14": state.atr,
        "market.regime": state.regime or None,
        "market.triage": " ".join(state.triage) or None,
        "radar.moved_atr": move_of(state, reader.as_of),
        "radar.to_event_min": _event_minutes(state, reader.as_of),
        "radar.missed": float(state.missed) or None,
    }
    source = "score" if state.is_anew else "tick"
    return tuple(
        _fact(state, name, value, source) for name, value in values.items() if value is not None
    )


def _fact(state: StreamState, name: str, value: float | str | None, source: str) -> Fact:
    own = CODES["fact"].get(name)
    return Fact(
        id=f"{state.prefix}{name}",
        value=value,
        unit="" if own else unit_of(name),
        as_of=iso(state.closed),
        source=source,
        name=own.word if own else name_of(name),
    )


def _brief(
    buckets: Mapping[Bucket, Sequence[RadarRow]], held: Iterable[HeldSide]
) -> tuple[str, ...]:
    """Return what the scan comes to in sentences of code."""
    count = len([*held])
    said = f"The desk holds {count} position{'' if count == 1 else 's'}."
    return f"{headline(buckets)}.", said


def _reasoning(row: RadarRow) -> str:
    meanings = "; ".join(CODES[row.bucket][code].meaning for code in row.codes)
    return f"{row.stream}: {meanings}."
