"""Tools that read what is on record: ticks, arguments, lessons, and texts by words.

What an agent or a person wrote in words of their own is never a fact: a point is its feature's name
and reading, a lesson its figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import sqlite_utils

from agents.contracts import VECTORS, AgentReport
from agents.features import name_of, reading_of
from torra.clock import iso
from torra.config import ROOT
from torra.store import lessons as lesson_table
from torra.store import tick_listing
from torra.tick.tick_record import TickRecord
from torra.tools.contract import Fact, code_of, fact, facts_of
from torra.tools.desk_reader import DeskReader
from torra.tools.market import RECORD, of_tick, place_of, record_fact
from torra.words.deny_reasons import DenyReason
from torra.words.glossary import SECTIONS

DOCS: Final = ROOT / "docs"
SECTION: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
PICTURE: Final = re.compile(r"!\[[^]]*\]\([^)]*\)|^\|[-| ]+\|$", re.MULTILINE)
LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
"""What is no text of a section: pictures and rules of tables, and the addresses of links."""

FENCE: Final = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"^(?:\$ |(?=torra ))(.+?)(?: +# .*)?$", re.MULTILINE)
"""A block of code, and its first command, which stands for it."""

WORD: Final = re.compile(r"\w+")
ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
KEY: Final = "| `"
"""A row of a table, and how one begins that is about a setting, a command or a code."""

LONGEST_TEXT: Final = 400
"""Characters of a text that are given."""

WAYS: Final = {1: "up", -1: "down"}


def find_ticks(reader: DeskReader, args: Any) -> Iterator[Fact]:
    """Yield the verdict of each tick."""
    wanted = args.model_dump(include={"verdict", "action", "reason"})
    wanted["instance"] = args.symbol and reader.instance(args.symbol).id
    kinds = [
        kind.id
        for kind in tick_listing.tick_kinds(reader.database)
        if all(value in (None, getattr(kind, key)) for key, value in wanted.items())
    ]
    place = (iso(reader.as_of), tick_listing.AFTER_ALL[1])
    database, limit = reader.database, args.limit
    for row in tick_listing.ticks_of_kinds(database, kinds, before=place, limit=limit):
        prefix = f"{row['instance']}|{row['timeframe']}@{row['bar_time']}/"
        reason = f"{code_of(row['action'])}, {code_of(row['reason'])}"
        yield from facts_of("tick", row, prefix, row["close_time"], RECORD, reason=reason)


@of_tick
def argument(_: DeskReader, record: TickRecord) -> Iterator[Fact]:
    """Yield the sentence of a tick, the ruling of its gate, and the points of each agent."""
    reasons = ", ".join(map(code_of, record.gate.reasons)) or "none"
    done, name = code_of(record.reason), "the reason of the action"
    yield record_fact(record, "reason", done, name, sentence=record.sentence)
    yield from facts_of("gate", record, place_of(record), record.as_of, RECORD)
    yield record_fact(record, "gate.reasons", reasons, "the ground of the gate")
    for report in record.deliberation.every_report:
        yield from _report(record, report)


def _report(record: TickRecord, report: AgentReport) -> Iterator[Fact]:
    """Yield an agent's word on the scores, and its points by the reading of their features."""
    agent, key = report.agent_id, f"reports.{report.agent_id}"
    for vector in VECTORS:
        if value := report.adjustments.get(vector):
            name = f"the change of the {vector.replace('_', ' ')} score by {agent}"
            yield record_fact(record, f"{key}.{vector}", value, name)
    for kind in ("points_for", "points_against"):
        for number, point in enumerate(getattr(report, kind)):
            side = WAYS.get(point.side, "either way")
            reading = reading_of(point.id, point.side) or "no reading"
            name = f"a point of {agent}, {side}: {name_of(point.id)} ({reading})"
            # a word may be a stranger's
            value = None if isinstance(point.value, str) else point.value
            yield record_fact(record, f"{key}.{kind}.{number}", value, name, sentence=f"{name}.")


def lessons(reader: DeskReader, args: Any) -> Iterator[Fact]:
    """Yield the result behind each lesson that was known by then."""
    only = {"symbol": reader.instance(args.symbol).symbol} if args.symbol else {}
    for lesson in lesson_table.lesson_list(reader.database, only, limit=args.limit):
        one = lesson.facts
        if one.known_at < reader.as_of:
            prefix, closed = f"lesson.{lesson.number}", iso(one.closed_at)
            yield from facts_of("lesson", one, prefix, closed, "lessons")


def find_text(reader: DeskReader, args: Any) -> Iterator[Fact]:
    """Yield texts of ours that have all words: each is quoted before it is looked for."""
    terms = " ".join(f'"{word}"' for word in WORD.findall(args.words))
    table = sqlite_utils.Database(memory=True, execute_plugins=False)
    try:
        table.execute(
            "CREATE VIRTUAL TABLE texts USING fts5(place, title, body, tokenize = 'porter')"
        )
        table.conn.executemany("INSERT INTO texts VALUES (?, ?, ?)", _texts(DOCS))
        # a title counts ten times
        sql = (
            "SELECT * FROM texts WHERE texts MATCH ? ORDER BY bm25(texts, 0, 10, 1), rowid LIMIT ?"
        )
        rows = table.execute(sql, (terms, args.limit)).fetchall() if terms else ()
    finally:
        table.close()
    for place, title, body in rows:
        cut = f"{body[:LONGEST_TEXT].rpartition(' ')[0]} … (more in {address_of(place)})"
        sentence = f"{title}: {body if len(body) <= LONGEST_TEXT else cut}"
        yield fact(f"doc.{place}", title, title, iso(reader.as_of), place, sentence=sentence)


def address_of(place: str) -> str:
    """Return the page on which a text stands at a place."""
    page = place.partition("#")[0].removesuffix(".md")
    return "/help" if page == "glossary" else f"docs/{page}.md"


def _row(place: str, title: str, row: str) -> tuple[str, str, str]:
    """Return the text of a row about a key; that of a command is of its page in the last cell."""
    key, *cells = row.strip("| ").split(" | ")
    if cells and cells[-1].endswith(".md"):
        return f"{cells.pop()}#{key.replace('`', '')}", key, ", ".join(cells)
    return place, title, ", ".join((key, *cells))


def _command(fence: re.Match[str]) -> str:
    first = COMMAND.search(fence[1])
    return f"`{first[1]}`" if first else ""


@cache
def _texts(docs: Path) -> list[tuple[str, str, str]]:
    """Return place, title and text of the docs' sections, of deny reasons and terms.

    A row of a table about a key is a text of its own; other tables are left out.
    """
    texts = [(f"deny_reasons#{one}", str(one), one.meaning) for one in DenyReason]
    texts += [
        (f"glossary#{one.slug}", one.term, f"{one.line} {one.exact}")
        for section in SECTIONS.values()
        for one in section
    ]
    for page in sorted(docs.glob("*.md")):
        _, *parts = SECTION.split(FENCE.sub(_command, page.read_text(encoding="utf-8")))
        for number, title in enumerate(parts[::2]):
            body = LINK.sub(r"\1", PICTURE.sub("", parts[2 * number + 1]))
            place = f"{page.name}#{number}"
            texts.append((place, title, " ".join(ROW.sub("", body).split())))
            texts += [_row(place, title, row) for row in ROW.findall(body) if row.startswith(KEY)]
    return texts
