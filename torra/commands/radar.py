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
    from torra.words.radar import (  # noqa: PLC0415
        BUCKET_WORDS,
        mode_sentence,
        words_of,
        worth_sentence,
    )

    yield " ".join(found.portfolio_brief)
    if found.mode != "rules" or found.fallback_trigger:
        yield mode_sentence(found.model_dump())
    for bucket, heading in BUCKET_WORDS.items():
        rows: Sequence[RadarRow] = getattr(found, bucket)
        if rows:
            yield f"\n{heading}"
        for row in rows:
            words = ", ".join(words_of(code).word for code in row.codes)
            more = f" ({HOLD_REASONS.get(row.deny_reason)})" if row.deny_reason else ""
            yield f"  {row.stream.replace('|', ' '):<14} {words}{more}"
            yield from (f"  {'':<14} {one.text}" for one in row.objections)
    for card in found.cards:
        yield f"\n{card.stream.replace('|', ' ')}"
        yield from (f"  {one}" for one in card.sentences)
    if found.worth:
        yield f"\n{worth_sentence(found.worth.model_dump())}"
    yield f"\n{found.coverage.quiet} of {found.coverage.streams} streams are quiet."
    for failure in found.coverage.failed:
        yield f"  {failure.stream}  {words_of(failure.code).word}: {failure.message}"
