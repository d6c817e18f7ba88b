"""Runs of the radar with rows of every kind, and a desk that has two of them to make films of."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from instance_database import Database
from tests.worlds.desk_pages import Pages, open_pages
from torra.clock import iso
from torra.radar.result import Bucket, Coverage, RadarRow, RadarRun
from torra.store import radar_runs
from torra.tools.contract import Fact
from torra.words.radar import BUCKET_WORDS, CODES

HOSTILE = ("A<b>|H1", "B-->|M15", "GOLD &amp;|H4", "C\u202e\u0000|D1")
"""Streams of watched symbols with names that a stranger chose."""


def run_of(chance: random.Random, streams: Sequence[str], as_of: str) -> RadarRun:
    """Return a run in which each stream has a row in any bucket, or is quiet."""
    rows: dict[Bucket, list[RadarRow]] = {bucket: [] for bucket in BUCKET_WORDS}
    for stream in streams:
        if bucket := chance.choice((*BUCKET_WORDS, None)):
            rows[bucket].append(_row(chance, stream, bucket, as_of))
    found = [row for those in rows.values() for row in those]
    return RadarRun(
        act=tuple(rows["act"]), watch=tuple(rows["watch"]), exit_radar=tuple(rows["exit_radar"]),
        portfolio_brief=(f"Deserves a look now: {len(found)} near.", "The desk holds 1 position."),
        tool_calls=0, audit_log=(),
        reasoning_log=tuple(
            f"{row.stream}: {'; '.join(CODES[row.bucket][code].meaning for code in row.codes)}."
            for row in found
        ),
        elapsed_seconds=0.25, scanned_at=as_of, using_non_ai_fallback=False,
        using_cached_data=False, fallback_reason="", fallback_trigger="",
        mode=chance.choice(("ai", "rules", "cached")), as_of=as_of,
        coverage=Coverage(
            streams=len(streams), quiet=len(streams) - len(found),
            act=len(rows["act"]), watch=len(rows["watch"]), exit_radar=len(rows["exit_radar"]),
        ),
    )  # fmt: skip


def _row(chance: random.Random, stream: str, bucket: Bucket, as_of: str) -> RadarRow:
    codes = tuple(chance.sample([*CODES[bucket]], chance.randint(1, 2)))
    value = round(chance.uniform(-3.0, 3.0), 3)
    said = f"The result of {stream} is {value} R."
    symbol, _, timeframe = stream.partition("|")
    return RadarRow(
        stream=stream, symbol=symbol, timeframe=timeframe, bucket=bucket, code=codes[0],
        codes=codes, as_of=as_of, age_s=60.0, state="held" if bucket == "exit_radar" else "",
        facts=(Fact(
            id=f"{stream}@{as_of}/radar.r", value=value, unit="R", as_of=as_of, source="signals",
            name="the result of the position in R", sentence=said * chance.randint(0, 1),
        ),),
    )  # fmt: skip


def store_runs(database: Database) -> None:
    """Store the runs 1 and 2 of a desk's radar; in the second the desk's streams would open."""
    now = database.desk_time()
    assert now is not None
    as_of = iso(now)
    run = run_of(random.Random(2), [*HOSTILE], as_of)
    acts = tuple(_row(random.Random(1), one, "act", as_of) for one in ("BTCUSD|M15", "BTCUSD|H1"))
    log = (*(f"{row.stream}: it would open." for row in acts), *run.reasoning_log)
    for one in (run, run.model_copy(update={"act": acts, "reasoning_log": log})):
        radar_runs.add_run(database, {
            "universe": "u", "as_of": as_of, "mode": one.mode, "trigger_code": "",
            "document": one.model_dump_json(),
        })  # fmt: skip


def open_studio(home: Path) -> Pages:
    """Return the pages of a desk with two runs of its radar."""
    pages = open_pages(home)
    store_runs(pages.database)
    return pages
