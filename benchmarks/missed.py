"""Why a target is missed, and what is to be done about it: by part and figure.

A missed target without an entry here ends `make bench` with exit code 1; so does any with --strict.
An entry whose target is met on the measured machine is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Missed(NamedTuple):
    """What stands in the way, and the plan."""

    reason: str
    plan: str


DISK: Final = Missed(
    "A tick waits for the disk three times (`synchronous=FULL`); what is over the target is that "
    "wait, beside the desk's own CPU.",
    "The commits stay: they are what no crash may lose. Measure on a disk that nobody shares.",
)

TICK_CPU: Final = Missed(
    "L1 on 750 bars is a fifth of a tick now. The rest is what the desk reads, says and keeps: "
    "evidence, reports and the record, and where a vendor is asked the requests.",
    "Find a reading once for all agents that are shown it; settle calls in the tick's own "
    "transaction.",
)

SDK: Final = (
    "The Anthropic SDK alone takes more than a second of CPU and about 50 MB to import, most of it "
    "types of requests that Torra never makes. The desk stands before that: the SDK is imported in "
    "a thread of its own, and only for a profile that asks this vendor."
)

SHARED: Final = Missed(
    "It depends on what else the machine runs.",
    "Measure again on a machine that does nothing else; if it stays, find what has become slower.",
)

REPLAYED: Final = Missed(
    "A tick of a replay is the very tick of a live desk. With nobody asked its profile is flat: a "
    "sixth is memory, a tenth each are scores and what the gate reads, the rest is books, claims "
    "and records.",
    "Write what memory tells only where it is read.",
)

DEBATED: Final = Missed(
    "A quarter of a debated tick is the rules reading the evidence, another reading and holding "
    "their replies; the rest is flat.",
    "Spend less on each step. A report of the rules made without its reply would spare a seventh "
    "of a tick, and come in past the checks that hold a model's word. Readings kept row by row for "
    "the other agents of a tick gained nothing that could be measured.",
)

MISSED: Final[Mapping[tuple[str, str], Missed]] = {
    ("tick", "cpu_ms"): TICK_CPU,
    ("tick", "wall_ms"): DISK,
    ("debate", "zero_ms"): DISK,
    ("debate", "zero_cpu_ms"): TICK_CPU,
    ("debate", "budget_s"): DISK,
    ("debate", "full_s"): DISK,
    ("debate", "p99_s"): Missed(
        "Fifty ticks need 1.4 s of CPU under Python's one lock, beside three calls of 1.0 s: what "
        "is over those is the queue for the lock.",
        "Spend less on each tick, as its own rows say.",
    ),
    ("process", "ready_s"): Missed(
        SDK,
        "Nothing to gain while the vendor's own SDK is used. A leaner way is the same HTTP client "
        "with the few requests that are made, once start-up matters to someone.",
    ),
    ("process", "peak_mb"): Missed(
        SDK,
        "As with the time: what is imported is what is held.",
    ),
    ("desk", "first_page_s"): SHARED,
    ("desk", "help_s"): SHARED,
    ("chart", "wall_ms"): SHARED,
    ("process", "construct_s"): Missed(
        "A third of it is pandas, which sqlite-utils imports itself; then models and settings.",
        "Draw the models of settings by need.",
    ),
    ("streams", "held_ms"): SHARED,
    ("pages", "start_s"): SHARED,
    ("shards", "ratio"): SHARED,
    ("shards", "default_s"): Missed(
        "The arm of the full desk runs on one core from end to end, four seconds of CPU for a "
        "thousand ticks, and the three placebos wait for it.",
        "Spend less on each tick, as the rows of replays say; let a placebo that turns round the "
        "words of its own tick follow its source while that runs.",
    ),
    ("replay", "l1"): REPLAYED,
    ("replay", "budget"): DEBATED,
    ("replay", "full"): DEBATED,
    ("replay", "database"): SHARED,
    ("sweep", "bars_per_s"): Missed(
        "A configuration costs by its trades, 0.2 ms each: levels and lots in exact fractions, the "
        "paper bridge with its guards. The sums over arrays are a twentieth of it.",
        "Compute levels and lots of all candidates by column, in whole ticks and steps, held to "
        "tests/verdict/test_risk_oracle.py.",
    ),
    ("sweep", "pass_s"): SHARED,
    ("scores", "window_ms"): SHARED,
    ("scores", "long_s"): SHARED,
}
