"""A run of the radar: the scan, what stands in for one that fails, and its row in the store.

The ladder is rules, cached, error. A scan that gives no row at all is replaced by the newest stored
one of the same streams, with the age of each row and without `act`; one older than OLDEST is
refused. Whatever it comes to is stored.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from torra.clock import System, iso, parse
from torra.errors import ConfigError, StoreUnavailable, TorraError, bounded
from torra.radar.headline import headline
from torra.radar.result import RadarRow, RadarRun
from torra.radar.scan import scan
from torra.radar.universe import universe
from torra.store import radar_runs
from torra.store.connection import to_json
from torra.tools.desk_reader import DeskReader
from torra.words.radar import CODES

OLDEST: Final = timedelta(hours=24)
"""Desk time after which a stored run stands in for no other."""

CORE_FAILED: Final = "CORE_FAILED"

OFF: Final = "the radar is off: set radar.enabled to true in desk.json"

log = logging.getLogger("torra")


class RadarError(TorraError):
    """No run could be made, and none is stored that may stand in for it."""


def run(
    reader: DeskReader, symbols: Sequence[str] = (), portfolio: Sequence[str] = ()
) -> tuple[int, RadarRun]:
    """Scan, store the run and return its number with it.

    Raises ConfigError where the radar is off and for a symbol that is not scanned, RadarError where
    nothing can be shown, and StoreUnavailable.
    """
    if not reader.settings.radar.enabled:
        raise ConfigError(OFF)
    names = sorted(stream.name for stream in universe(reader, symbols))
    key = hashlib.sha256(to_json(names).encode()).hexdigest()[:16]
    try:
        found = scan(reader, symbols, portfolio)
        failed = found.coverage.failed
        why = failed[0].message if len(failed) == found.coverage.streams else ""
    except StoreUnavailable:
        raise
    except Exception as error:
        log.exception("radar: the scan failed")
        why = f"the scan met {type(error).__name__}"
    if not why:
        return _stored(reader, key, found), found
    return _cached(reader, key, why)


def _cached(reader: DeskReader, key: str, why: str) -> tuple[int, RadarRun]:
    row = radar_runs.newest_run(reader.database, key)
    age = None if row is None else reader.as_of - parse(row["as_of"])
    if row is None or age is None or age > OLDEST:
        radar_runs.add_run(reader.database, _row(reader, key, "error", CORE_FAILED, ""))
        said = "none is stored" if row is None else f"the newest is of {row['as_of']}, too old"
        raise RadarError(f"{CODES['trigger'][CORE_FAILED].meaning}: {why}; {said}")
    cached = _aged(RadarRun.model_validate_json(row["document"]), reader, why)
    return _stored(reader, key, cached), cached


def _aged(old: RadarRun, reader: DeskReader, why: str) -> RadarRun:
    """Return a run as it counts later: its `act` rows are stale, every row is older."""
    older = (reader.as_of - parse(old.as_of)).total_seconds()
    stale: Mapping[str, object] = {
        "bucket": "watch", "code": "STALE", "codes": ("STALE",), "state": "", "deny_reason": "",
    }  # fmt: skip

    def aged(rows: Sequence[RadarRow], **more: object) -> tuple[RadarRow, ...]:
        return tuple(row.model_copy(update={"age_s": row.age_s + older, **more}) for row in rows)

    watch, exits = (*aged(old.act, **stale), *aged(old.watch)), aged(old.exit_radar)
    said = headline({"act": (), "watch": watch, "exit_radar": exits})
    return old.model_copy(
        update={
            "act": (),
            "watch": watch,
            "exit_radar": exits,
            "portfolio_brief": (f"{said}.", f"These rows are of {old.as_of}."),
            "mode": "cached",
            "using_cached_data": True,
            "fallback_trigger": CORE_FAILED,
            "fallback_reason": bounded(why),
            "scanned_at": iso(System().real_now().replace(microsecond=0)),
            "as_of": iso(reader.as_of),
            "coverage": old.coverage.model_copy(update={"act": 0, "watch": len(watch)}),
        }
    )


def _stored(reader: DeskReader, key: str, found: RadarRun) -> int:
    document = found.model_dump_json()
    return radar_runs.add_run(
        reader.database, _row(reader, key, found.mode, found.fallback_trigger, document)
    )


def _row(reader: DeskReader, key: str, mode: str, trigger: str, document: str) -> dict[str, object]:
    return {
        "universe": key, "as_of": reader.as_of, "mode": mode, "trigger_code": trigger,
        "document": document,
    }  # fmt: skip
