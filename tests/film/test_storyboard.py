"""A storyboard says what its run says: captions are stored sentences, figures stored values."""

from __future__ import annotations

import html
import random
import re

from tests.conftest import Scale
from tests.worlds.films import HOSTILE, run_of
from torra.exhibits.figures import format_any
from torra.film.storyboard import MOST_ROWS, MOST_SCENES, SECONDS, Scene, storyboard, webvtt
from torra.radar.result import RadarRun
from torra.words.badge import capital
from torra.words.radar import CODES

FIXED = {f"{capital(one.meaning)}." for one in CODES["film"].values()}
STREAMS = (*(f"SYM{number}|H1" for number in range(9)), *HOSTILE)


def sentences(run: RadarRun) -> set[str]:
    """Return the sentences that stand in a stored run."""
    rows = (*run.act, *run.watch, *run.exit_radar)
    facts = [fact.sentence for row in rows for fact in row.facts]
    return {*run.portfolio_brief, *run.reasoning_log, *facts}


def check_scene(scene: Scene, run: RadarRun) -> None:
    assert {*scene.captions} <= sentences(run) | FIXED and all(scene.captions)
    if scene.stream:
        (row,) = [one for one in (*run.act, *run.exit_radar) if one.stream == scene.stream]
        assert [text for _, text in scene.rows] == [f"{format_any(row.facts[0].value)} R"]
        assert scene.as_of == row.as_of


def test_each_caption_is_a_stored_sentence(scaled: Scale) -> None:
    """In 10,000 runs at night."""
    chance, seen = random.Random(69), set()
    for _ in range(scaled(10_000, least=200)):
        before, run = (
            run_of(
                chance, chance.sample(STREAMS, chance.randint(0, 9)), f"2026-01-0{day}T00:00:00Z"
            )
            for day in (1, 2)
        )
        first = chance.random() < 0.1
        board = storyboard(7, run, None if first else before, "paper")
        title, changed, *rows, watch, patterns, exposure, cost = board.scenes
        for scene in board.scenes:
            check_scene(scene, run)
            seen |= {*scene.captions} & FIXED
        acts = [row.stream for row in (*run.act, *run.exit_radar)]
        assert [one.stream for one in rows] == acts[:MOST_SCENES]
        assert "paper" in title.title and "2026-01-02" in title.title
        assert title.captions == run.portfolio_brief[:1]
        assert watch.title.endswith(f" of {len(run.watch)}")
        assert patterns.captions == ("No pattern has shown an edge yet.",)
        assert exposure.captions == run.portfolio_brief[1:]
        values = [f"{format_any(row.facts[0].value)} R" for row in run.exit_radar]
        assert [text for _, text in exposure.rows] == values[:12]
        assert cost.captions == ("Nothing in this film is advice.",)
        assert cost.rows[0][1] == f"${run.cost_usd:.4f}"
        count = len(moved(before, run))
        assert first or len(changed.rows) == min(MOST_ROWS, count)
        assert first or changed.title.endswith(f": {min(MOST_ROWS, count)} of {count}")
        assert board.seconds == SECONDS * len(board.scenes) < 60
        check_cues(webvtt(board), [scene.captions for scene in board.scenes])
    assert len(seen) == 6, "every fixed sentence has its scene"
    assert not re.search(r"\d", "".join(FIXED)), "a fixed sentence has no figure"


def moved(before: RadarRun, run: RadarRun) -> set[str]:
    """Return the streams that are in one of two runs alone, or in another bucket."""
    pairs = [
        {(row.stream, row.bucket) for row in (*one.act, *one.watch, *one.exit_radar)}
        for one in (before, run)
    ]
    return {stream for stream, _ in pairs[0] ^ pairs[1]}


def check_cues(text: str, captions: list[tuple[str, ...]]) -> None:
    head, *cues = text.rstrip("\n").split("\n\n")
    assert head == "WEBVTT" and len(cues) == len(captions)
    for number, (cue, lines) in enumerate(zip(cues, captions, strict=True)):
        time, *said = cue.split("\n")
        begin, end = (f"00:00:{SECONDS * n:02}.000" for n in (number, number + 1))
        assert time == f"{begin} --> {end}"
        assert [html.unescape(line) for line in said] == [" ".join(one.split()) for one in lines]
        assert not any("-->" in line or "<" in line for line in said)
