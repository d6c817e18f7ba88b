"""A signal that ended as UNKNOWN_NOT_SENT is told in one wording: help, pages, notices and docs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.doubles.page_reader import Page
from tests.worlds import demo_orders
from torra.config import ROOT
from torra.dashboard.trade.trade_rows import ADVICE, STATE_MEANINGS
from torra.notices.words import ALARMS
from torra.verdict.signal_states import NOT_CONFIRMED

STATE: Final = "UNKNOWN_NOT_SENT"
SENTENCE: Final = f"{NOT_CONFIRMED[0].upper()}{NOT_CONFIRMED[1:]}."
DATED: Final = {"promises.md"}
"""Pages that quote what a test found on its day."""


def test_it_says_to_look_in_the_terminal() -> None:
    assert "may or may not be at the broker" in NOT_CONFIRMED
    assert "look in the terminal" in NOT_CONFIRMED


def test_pages_and_notices_say_it() -> None:
    assert STATE_MEANINGS[STATE] == ALARMS[STATE] == NOT_CONFIRMED
    assert ADVICE[STATE] == SENTENCE


def test_help_tells_every_state_as_the_pages_do(tmp_path: Path) -> None:
    backing = demo_orders.build(tmp_path / "home")
    words = Page(demo_orders.open_pages(backing, "read").test_client().get("/help").text).text
    backing.database.close()
    for state, meaning in STATE_MEANINGS.items():
        assert f"{state} {meaning[0].upper()}{meaning[1:]}." in " ".join(words.split()), state


def test_no_template_has_words_of_its_own() -> None:
    for file in (ROOT / "templates").rglob("*.html"):
        assert STATE not in file.read_text("utf-8"), file.name


def test_every_page_of_docs_that_names_it_says_it() -> None:
    meaning, _, remedy = NOT_CONFIRMED.partition(": ")
    named = 0
    for file in sorted((ROOT / "docs").glob("*.md")):
        text = file.read_text("utf-8")
        if STATE not in text or file.name in DATED:
            continue
        named += 1
        assert f"| `{STATE}` | {meaning} | {remedy} |" in text, file.name
        rest = text.replace(f"| `{STATE}` |", "")
        assert rest.count(f"`{STATE}`") == rest.count(f"`{STATE}`: {meaning}"), file.name
    assert named
