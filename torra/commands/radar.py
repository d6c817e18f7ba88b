"""`torra radar`: which symbols deserve a look now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torra.commands.answer import CommandAnswer, answering

if TYPE_CHECKING:
    from torra.radar.result import RadarRow, RadarRun


@click.command()
@click.argument("symbols", nargs=-1)
@answering
def radar(home: Path, /, symbols: tuple[str, ...]) -> CommandAnswer:
    """Scan the desk's symbols, or some of them: what would open, what is near, what to look at."""
    from torra.radar import job  # noqa: PLC0415
    from torra.radar.result import RadarRun  # noqa: PLC0415

    number, document = job.at_home(home, {"symbols": ",".join(symbols)})
    found = RadarRun.model_validate_json(document)
    return CommandAnswer({"run": number, **found.model_dump(mode="json")}, _lines(found))


def _lines(found: RadarRun) -> Iterator[str]:
    from torra.words.orders import HOLD_REASONS  # noqa: PLC0415
    from torra.words.radar import BUCKET_WORDS, words_of  # noqa: PLC0415

    yield f"{' '.join(found.portfolio_brief)} As of {found.as_of}."
    if found.using_cached_data:
        yield f"{words_of(found.fallback_trigger).word}: {found.fallback_reason}"
    for bucket, heading in BUCKET_WORDS.items():
        rows: Sequence[RadarRow] = getattr(found, bucket)
        if rows:
            yield f"\n{heading}"
        for row in rows:
            words = ", ".join(words_of(code).word for code in row.codes)
            more = HOLD_REASONS.get(row.deny_reason, row.deny_reason)
            more = f" ({more})" if more else ""
            yield f"  {row.stream.replace('|', ' '):<14} {words}{more}"
    names = ", ".join(name.replace("|", " ") for name in found.coverage.quiet_streams)
    quiet = f": {names}" if names else ""
    yield f"\n{found.coverage.quiet} of {found.coverage.streams} streams are quiet{quiet}."
    for failure in found.coverage.failed:
        yield f"  {failure.stream}  {words_of(failure.code).word}: {failure.message}"
