"""The storyboard of a scan: its scenes in their order, each with sentences and figures of the run.

Pure. A caption is a sentence of the stored run (its brief, its reasons, its facts), or one of the
fixed sentences of torra/words/radar.csv, which have no figure. Nothing here is worded anew.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from torra.exhibits.figures import format_any, moment, money, sanitize
from torra.radar.result import RadarRow, RadarRun
from torra.tools.contract import Value
from torra.words.badge import capital
from torra.words.radar import BUCKET_WORDS, CODES, words_of

SECONDS: Final = 4
"""How long a scene stands: at most 11 of them, less than a minute."""

MOST_SCENES: Final = 5
"""Rows of `act` and `exit_radar` that have a scene of their own."""

MOST_ROWS: Final = 12
MOST_CAPTIONS: Final = 3

LONGEST: Final = 300
"""Characters of a text of a scene."""

QUIET: Final = "quiet"


class Scene(Value):
    """One picture: its title, its captions, and its figures as pairs of a name and a text.

    `stream` is the stream whose chart stands in it, with its bars closed at `as_of`; both are ""
    where there is none.
    """

    title: str
    captions: tuple[str, ...]
    rows: tuple[tuple[str, str], ...] = ()
    stream: str = ""
    as_of: str = ""


class Storyboard(Value):
    """The scenes of one run. `account` is DEMO, paper or broker.

    `code` is a word of the table `film` that says what its film lacks, "" where it is whole.
    """

    run: int
    as_of: str
    account: str
    code: Literal["", "NOT_MADE", "CHART_MISSING", "ENCODER_MISSING"]
    seconds: int
    scenes: tuple[Scene, ...]


def storyboard(number: int, run: RadarRun, before: RadarRun | None, account: str) -> Storyboard:
    """Return the storyboard of a run; `before` is the run of the same streams before it."""
    counts = run.coverage.model_dump(exclude={"failed", "quiet_streams"})
    watch = run.watch
    scenes = [
        Scene(
            title=f"{account}: the radar of {moment(run.as_of)}",
            captions=run.portfolio_brief[:1],
            rows=tuple((name.replace("_", " "), str(count)) for name, count in counts.items()),
        ),
        _changed(run, before),
        *(_stream(run, row) for row in (*run.act, *run.exit_radar)[:MOST_SCENES]),
        Scene(
            title=f"Watch: {min(len(watch), MOST_ROWS)} of {len(watch)}",
            captions=_reasons(run, watch) or _fixed("NO_WATCH"),
            rows=tuple((_name(row.stream), _words(row)) for row in watch[:MOST_ROWS]),
        ),
        Scene(title="Patterns", captions=_fixed("NO_PATTERN")),
        Scene(
            title="Exposure",
            captions=run.portfolio_brief[1:][:MOST_CAPTIONS],
            rows=tuple(
                (_name(row.stream), f"{format_any(one.value)} R")
                for row in run.exit_radar[:MOST_ROWS]
                for one in row.facts
                if one.id.endswith("/radar.r")
            ),
        ),
        Scene(
            title="Cost",
            captions=_fixed("NO_ADVICE"),
            rows=(("models", money(run.cost_usd)), ("seconds", format_any(run.elapsed_seconds))),
        ),
    ]
    return Storyboard(
        run=number,
        as_of=run.as_of,
        account=account,
        code="NOT_MADE",
        seconds=SECONDS * len(scenes),
        scenes=tuple(scenes),
    )


def webvtt(board: Storyboard) -> str:
    """Return the captions as WebVTT, one cue for each scene."""
    cues = [
        f"00:00:{at:02}.000 --> 00:00:{at + SECONDS:02}.000\n"
        + "\n".join(html.escape(" ".join(line.split())) for line in scene.captions)
        for at, scene in zip(range(0, board.seconds, SECONDS), board.scenes, strict=True)
    ]
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


def _changed(run: RadarRun, before: RadarRun | None) -> Scene:
    """Return the scene of the streams that are in another bucket than before."""
    if before is None:
        return Scene(title="What changed", captions=_fixed("FIRST_SCAN"))
    now, then = (
        {row.stream: BUCKET_WORDS[row.bucket].lower() for row in _rows(one)}
        for one in (run, before)
    )
    moved = [name for name in now | then if now.get(name) != then.get(name)]
    captions = _reasons(run, [row for row in _rows(run) if row.stream in moved])
    return Scene(
        title=f"Changed since {moment(before.as_of)}: {min(len(moved), MOST_ROWS)} of {len(moved)}",
        captions=captions or _fixed("LEFT" if moved else "SAME"),
        rows=tuple(
            (_name(name), f"{then.get(name, QUIET)} → {now.get(name, QUIET)}")
            for name in moved[:MOST_ROWS]
        ),
    )


def _stream(run: RadarRun, row: RadarRow) -> Scene:
    return Scene(
        title=f"{_name(row.stream)}: {BUCKET_WORDS[row.bucket]}",
        captions=_reasons(run, [row]),
        rows=tuple(
            (sanitize(one.name, LONGEST), f"{format_any(one.value)} {one.unit}".strip())
            for one in row.facts[:MOST_ROWS]
        ),
        stream=row.stream,
        as_of=row.as_of,
    )


def _rows(run: RadarRun) -> Iterator[RadarRow]:
    yield from (*run.act, *run.exit_radar, *run.watch)


def _reasons(run: RadarRun, rows: Sequence[RadarRow]) -> tuple[str, ...]:
    """Return the stored sentences about rows: their reasons, then those of their facts."""
    named = tuple(f"{row.stream}: " for row in rows)
    reasons = [line for line in run.reasoning_log if line.startswith(named)]
    facts = [one.sentence for row in rows for one in row.facts if one.sentence]
    return tuple((reasons + facts)[:MOST_CAPTIONS])


def _fixed(code: str) -> tuple[str, ...]:
    return (f"{capital(CODES['film'][code].meaning)}.",)


def _words(row: RadarRow) -> str:
    return ", ".join(words_of(code).word for code in row.codes)


def _name(stream: str) -> str:
    return sanitize(stream.replace("|", " "), 60)
