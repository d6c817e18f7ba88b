"""The result of a scan: RadarRun and its rows, with the names of document 002.

One model for the page, the command, the API and the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torra.tools.contract import Fact, Value

Bucket = Literal["act", "watch", "exit_radar"]


class Objection(Value):
    """What an agent has against a row: ids of the facts that it cites, and code's words on them."""

    by: str
    cites: tuple[str, ...]
    text: str


class RadarRow(Value):
    """A stream in one bucket, and why.

    `code` is the first reason of its bucket, `codes` all of them, the first included; of a row of
    `act` that is held they go on with what speaks against the position. `facts` are
    the evidence of them. `as_of` is the close of the bar that was read, ISO with Z; `age_s` its age
    in seconds of the desk at `RadarRun.as_of`. `distance` is the share of the nearest threshold
    that the consensus lacks, 0 at it and beyond; None where there is none. `moves_with` names the
    streams whose closes are correlated with its own. `state` is opened, proposed, held back or
    observed for a row of `act`, held where a position is, else ""; a row that an agent demoted from
    `act` keeps it. `objections` are those of agents.
    """

    stream: str
    symbol: str
    timeframe: str
    bucket: Bucket
    code: str
    codes: tuple[str, ...]
    facts: tuple[Fact, ...] = ()
    as_of: str
    age_s: float
    distance: float | None = None
    moves_with: tuple[str, ...] = ()
    state: str = ""
    deny_reason: str = ""
    objections: tuple[Objection, ...] = ()


class RadarCard(Value):
    """Code's sentences about one row, in the order that an agent chose."""

    stream: str
    sentences: tuple[str, ...]


class DemotionWorth(Value):
    """What became of demoted rows within BARS bars, in ATR of the bar they were demoted at.

    `count` is how many are that old. A move is positive where price went the way of the verdict
    that was demoted. `mean` is None without one, the ends of its interval while there are too few.
    """

    count: int = 0
    mean: float | None = None
    low: float | None = None
    high: float | None = None


class RadarFailure(Value):
    """A stream that could not be read, with the code and one sentence that says why."""

    stream: str
    code: str
    message: str


class Coverage(Value):
    """How many streams there were, and what became of each: they add up to `streams`.

    `quiet_streams` are the names of the quiet ones, the nearest to a threshold first.
    """

    streams: int
    act: int
    watch: int
    exit_radar: int
    quiet: int
    quiet_streams: tuple[str, ...] = ()
    failed: tuple[RadarFailure, ...] = ()


class RadarRun(Value):
    """One scan over all streams.

    `mode` is ai, rules or cached. `fallback_trigger` and `fallback_reason` say why it is not the
    one that was asked for, "" where it is. Times are ISO with Z, `elapsed_seconds` real seconds.
    `audit_log` has the numbers of the audit's rows of its `tool_calls`. `cards` and `worth` are
    there where agents were asked; `cost_usd` is what they cost.
    """

    act: tuple[RadarRow, ...]
    watch: tuple[RadarRow, ...]
    exit_radar: tuple[RadarRow, ...]
    portfolio_brief: tuple[str, ...]
    tool_calls: int
    audit_log: tuple[int, ...]
    reasoning_log: tuple[str, ...]
    elapsed_seconds: float
    scanned_at: str
    using_non_ai_fallback: bool
    using_cached_data: bool
    fallback_reason: str
    fallback_trigger: str
    mode: Literal["ai", "rules", "cached"]
    as_of: str
    coverage: Coverage
    cards: tuple[RadarCard, ...] = ()
    worth: DemotionWorth | None = None
    cost_usd: float = 0.0


def run_of(document: str) -> RadarRun | None:
    """Return a stored run; None for one that was altered, or made by another version."""
    try:
        return RadarRun.model_validate_json(document)
    except ValueError:
        return None


def headline(rows: Sequence[RadarRow]) -> str:
    """Return in one clause what deserves a look; rows that move together count as one."""
    chosen = {
        "would open": [row for row in rows if row.bucket == "act"],
        "near": [row for row in rows if "NEAR_THRESHOLD" in row.codes],
        "close to its stop": [row for row in rows if "NEAR_STOP" in row.codes],
    }
    counts = {
        word: len({frozenset((row.stream, *row.moves_with)) for row in those})
        for word, those in chosen.items()
    }
    parts = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"Deserves a look now: {parts}" if parts else "Nothing deserves a look now"
