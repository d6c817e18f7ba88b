"""What a scan comes to in one clause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torra.radar.result import Bucket, RadarRow


def headline(buckets: Mapping[Bucket, Sequence[RadarRow]]) -> str:
    """Return in one clause what deserves a look; rows that move together count as one."""
    counts = (
        (_moves(buckets["act"]), "would open"),
        (_moves(row for row in buckets["watch"] if "NEAR_THRESHOLD" in row.codes), "near"),
        (
            _moves(row for row in buckets["exit_radar"] if "NEAR_STOP" in row.codes),
            "close to its stop",
        ),
    )
    parts = [f"{count} {word}" for count, word in counts if count]
    return f"Deserves a look now: {', '.join(parts)}" if parts else "Nothing deserves a look now"


def _moves(rows: Iterable[RadarRow]) -> int:
    return len({frozenset((row.stream, *row.moves_with)) for row in rows})
