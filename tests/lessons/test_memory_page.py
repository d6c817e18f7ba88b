"""docs/memory.md says what the code does: its example of a note, and its numbers."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from agent_config import MOST_NOTES, MemorySettings
from scoring_rubric import LESSON_BYTES
from tests.worlds import told_lessons
from torra.config import ROOT
from torra.lessons import facts, ranking, recall
from torra.lessons.lesson import SCALES, LessonText

PAGE = (Path(ROOT) / "docs" / "memory.md").read_text(encoding="utf-8")


def test_the_example_is_a_note_as_a_tick_is_told_it() -> None:
    lost = told_lessons.LOST
    rule = "A break on thin volume failed here; wait for volume."
    words = LessonText("", "", rule, told_lessons.MODEL, lost.known_at)
    wins, similar = 3, 11.0
    share = (wins + recall.PRIOR_WINS) / (similar + recall.PRIOR_TRADES)
    numbers: dict[str, float | str | None] = {
        "side": "LONG",
        "similar": similar,
        "win_share": share,
    }
    note = recall.note_text(lost, words, lost.known_at + timedelta(days=12), numbers)
    assert f"   {note}\n" in PAGE


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    for told in (
        f"the {recall.NEAREST} nearest",
        f"Below {recall.LEAST} similar trades",
        f"(wins + {recall.PRIOR_WINS}) / (n + {recall.PRIOR_TRADES})",
        f"sum of R / (n + {recall.PRIOR_R})",
        f"of {LESSON_BYTES} bytes each",
        f"At most {('no', 'one', 'two', 'three')[MOST_NOTES]} notes",
        f"at most {MOST_NOTES * LESSON_BYTES} bytes",
        f"longer than {1000 * recall.SECONDS:.0f} ms",
        f"newest {ranking.WINDOW:,} lessons",
        f"cosine {ranking.TEXT_FLOOR:.2f}",
        f"cosine {ranking.SITUATION_FLOOR:.2f}",
        f"1 / ({ranking.RRF_K} + rank)",
        f"the market in {len(SCALES)} numbers",
        f"(wins + {facts.PRIOR_TRADES} × p0) / (trades + {facts.PRIOR_TRADES})",
    ):
        assert told in PAGE, told


def test_every_setting_of_memory_is_on_the_page() -> None:
    named = set(re.findall(r"\| `agents\.memory\.(\w+)`", PAGE))
    assert named == set(MemorySettings.model_fields)
