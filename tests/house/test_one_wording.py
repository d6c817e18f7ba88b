"""What a value is called and means stands in torra/words alone; pages, notices and docs read it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from agents.contracts import REGIMES, VECTORS, GateReason, OfficerReason, SourceType
from torra.config import ROOT
from torra.evidence.companion_readings import Lack
from torra.evidence.news_digest import NewsStatus
from torra.verdict.signal_states import TRANSITIONS
from torra.words import market, orders, ticks
from torra.words.deny_reasons import DenyReason

STATE: Final = "UNKNOWN_NOT_SENT"
DATED: Final = {"promises.md"}
"""Pages that quote what a test found on its day."""

MEMBERS: Final = {
    *DenyReason, *GateReason, *OfficerReason, *ticks.BADGES, *ticks.FLAGS, *ticks.STATUSES,
    *ticks.SESSIONS, *ticks.HORIZONS, *ticks.VECTOR_NAMES, *orders.SIGNALS, *orders.PROPOSALS,
    *orders.ACTIONS, *orders.REASONS, *orders.EXITS, *orders.EVOLUTIONS, *orders.OUTCOMES,
    *orders.ALARMS,
}  # fmt: skip
CODES: Final = re.compile(r"[A-Z_]*|[a-z]+_[a-z_]+|\W*|up|down|flat|note|warn|alert|ok")
"""Values that are no prose: codes, signs, tones."""


FIXED: Final = (
    "agents/", "torra/evidence/", "torra/providers/rules/", "torra/lessons/", "scoring_rubric.py",
    "technical_calculator.py", "torra/bridges/",
)  # fmt: skip
"""Rooms whose words are part of prompts, replies, stored lessons and messages: those are fixed."""


def prose_tables() -> Iterator[tuple[str, set[str]]]:
    """Yield where a dict outside torra/words has words for members in most rows, and for which."""
    files = [*ROOT.glob("*.py"), *ROOT.glob("torra/**/*.py"), *ROOT.glob("docs/*.py")]
    for file in files:
        place = file.relative_to(ROOT).as_posix()
        if place.startswith(("torra/words/", *FIXED)):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Dict):
                worded = {
                    name
                    for key, value in zip(node.keys, node.values, strict=True)
                    if (name := _member(key)) in MEMBERS and _is_prose(value)
                }
                if len(worded) > max(1, len(node.keys) / 2):
                    yield f"{place}:{node.lineno}", worded


def _member(key: ast.expr | None) -> str:
    if isinstance(key, ast.Attribute):
        return key.attr
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _is_prose(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple | ast.Call):
        inner = value.elts if isinstance(value, ast.Tuple) else value.args
        return any(map(_is_prose, inner))
    text = value.value if isinstance(value, ast.Constant) else None
    return isinstance(value, ast.JoinedStr) or (
        isinstance(text, str) and text not in MEMBERS and CODES.fullmatch(text) is None
    )


def test_no_other_module_has_words_for_a_value() -> None:
    assert dict(prose_tables()) == {}


@pytest.mark.parametrize(
    ("rows", "members"),
    [
        (orders.SIGNALS, TRANSITIONS),
        (orders.SIDES, ("BUY", "SELL")),
        (ticks.SOURCES, SourceType),
        (ticks.REGIMES, REGIMES),
        (market.REGIMES, REGIMES),
        (ticks.VECTOR_NAMES, VECTORS),
        (ticks.GATE_REASONS, {*GateReason, *OfficerReason} - {GateReason.NONE}),
        (ticks.STATUSES, {*NewsStatus, *Lack, "left_out"}),
    ],
)
def test_every_member_has_its_row(rows: dict[str, object], members: set[str]) -> None:
    assert {*map(str, rows)} == {*map(str, members)}


def test_states_are_told_apart_by_glyph_and_by_word() -> None:
    for rows in (orders.SIGNALS, orders.PROPOSALS):
        assert len({row.glyph for row in rows.values()}) == len(rows)
        assert len({row.word for row in rows.values()}) == len(rows)
        assert all(row.meaning for row in rows.values())


def test_no_template_has_words_of_its_own() -> None:
    for file in (ROOT / "templates").rglob("*.html"):
        assert STATE not in file.read_text("utf-8"), file.name


def test_every_page_of_docs_that_names_it_says_it() -> None:
    meaning, _, remedy = orders.NOT_CONFIRMED.partition(": ")
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
