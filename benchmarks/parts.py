"""Everything that `make bench` measures, in the order of the page."""

from __future__ import annotations

from typing import Final

from benchmarks import (
    bench_chart,
    bench_debate,
    bench_desk,
    bench_engines,
    bench_experts,
    bench_faults,
    bench_jobs,
    bench_lessons,
    bench_overlay,
    bench_pages,
    bench_process,
    bench_replay,
    bench_scores,
    bench_shards,
    bench_streams,
    bench_sweep,
    bench_talib,
    bench_tick,
)
from benchmarks.rows import Part

PARTS: Final[tuple[Part, ...]] = (
    bench_debate.PART,
    bench_faults.PART,
    bench_process.PART,
    bench_tick.PART,
    bench_lessons.PART,
    bench_experts.PART,
    bench_jobs.PART,
    bench_overlay.PART,
    bench_scores.PART,
    bench_talib.PART,
    bench_replay.PART,
    bench_sweep.PART,
    bench_shards.PART,
    bench_engines.PART,
    bench_chart.PART,
    bench_desk.PART,
    bench_pages.PART,
    bench_streams.PART,
)
