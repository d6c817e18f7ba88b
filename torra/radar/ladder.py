"""A run of the radar: the scan, what stands in for one that fails, and its row in the store.

The ladder is rules, cached, error. A scan that gives no row at all is replaced by the newest stored
one of the same streams, with the age of each row and without `act`; one older than OLDEST is
refused. Whatever it comes to is stored.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from torra.clock import System, iso, parse
from torra.errors import StoreUnavailable, TorraError, bounded
from torra.radar.result import RadarRun, headline, run_of
from torra.radar.scan import scan
from torra.radar.universe import universe
from torra.store import radar_runs
from torra.store.connection import to_json
from torra.tools.desk_reader import DeskReader
from torra.words.radar import words_of

OLDEST: Final = timedelta(hours=24)
"""Desk time after which a stored run stands in for no other."""

CORE_FAILED: Final = "CORE_FAILED"

STALE: Final = {
    "bucket": "watch", "code": "STALE", "codes": ("STALE",), "state": "", "deny_reason": "",
}  # fmt: skip
"""What becomes of a row of `act` that is not of now."""

log = logging.getLogger("torra")


class RadarError(TorraError):
    """No run could be made, and none is stored that may stand in for it."""


def run(
    reader: DeskReader, symbols: Sequence[str] = (), portfolio: Collection[str] = ()
) -> tuple[int, RadarRun]:
    """Scan, store the run and return its number with it.

    Raises ConfigError where the radar is off and for a symbol that is not scanned, RadarError where
    nothing can be shown, and StoreUnavailable.
    """
    names = sorted(stream.name for stream in universe(reader, symbols))
    key = hashlib.sha256(to_json(names).encode()).hexdigest()[:16]
    found: RadarRun | None = None
    try:
        found = scan(reader, symbols, portfolio)
        failed = found.coverage.failed
        why = failed[0].message if failed and len(failed) == found.coverage.streams else ""
    except StoreUnavailable:
        raise
    except Exception as error:
        log.exception("radar: the scan failed")
        why = f"the scan met {type(error).__name__}"
    row = radar_runs.newest_run(reader.database, key) if why else None
    if why:
        found = None
    old = run_of(row["document"]) if row else None
    if old and reader.as_of - parse(old.as_of) <= OLDEST:
        found = _aged(reader, old, why)
    number = radar_runs.add_run(reader.database, {
        "universe": key, "as_of": reader.as_of, "mode": found.mode if found else "error",
        "trigger_code": CORE_FAILED if why else "",
        "document": found.model_dump_json() if found else "",
    })  # fmt: skip
    if found is None:
        more = f"the newest is of {old.as_of}, too old" if old else "none is stored"
        raise RadarError(f"{words_of(CORE_FAILED).meaning}: {why}; of earlier runs {more}")
    return number, found


def _aged(reader: DeskReader, old: RadarRun, why: str) -> RadarRun:
    """Return a run as it counts later: its `act` rows are stale, every row is older."""
    older = (reader.as_of - parse(old.as_of)).total_seconds()
    act, watch, exits = (
        tuple(row.model_copy(update={"age_s": row.age_s + older, **more}) for row in rows)
        for rows, more in ((old.act, STALE), (old.watch, {}), (old.exit_radar, {}))
    )
    return old.model_copy(
        update={
            "act": (),
            "watch": (*act, *watch),
            "exit_radar": exits,
            "portfolio_brief": (
                f"{headline((*act, *watch, *exits))}.",
                f"These rows are of {old.as_of}.",
            ),
            "mode": "cached",
            "using_cached_data": True,
            "fallback_trigger": CORE_FAILED,
            "fallback_reason": bounded(why),
            "scanned_at": iso(System().real_now().replace(microsecond=0)),
            "as_of": iso(reader.as_of),
            "coverage": old.coverage.model_copy(update={"act": 0, "watch": len(act) + len(watch)}),
        }
    )
