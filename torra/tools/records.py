"""Tools that read what is on record: ticks, arguments, lessons, and texts by words.

What an agent or a person wrote in words of their own is never a fact: points are told by the name
and the reading of their feature, lessons by their figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import sqlite_utils
from pydantic import Field

from agents.contracts import VECTORS, AgentReport
from agents.features import name_of, reading_of
from torra.clock import iso
from torra.config import ROOT
from torra.exhibits.figures import format_signed
from torra.store import lessons as lesson_table
from torra.store import tick_listing
from torra.tick.tick_record import TickRecord
from torra.tools.books import ListArgs
from torra.tools.codes import ToolCode
from torra.tools.contract import Fact, ToolArgs, ToolError, code_of, fact
from torra.tools.desk_reader import DeskReader
from torra.tools.market import TickArgs, record_fact, tick_of
from torra.words import glossary
from torra.words.deny_reasons import DenyReason

DOCS: Final = ROOT / "docs"
SECTION: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
WORD: Final = re.compile(r"\w+")
LONGEST_TEXT: Final = 400
"""Characters of a text that are given."""

Code = Annotated[str, Field(pattern="^[A-Z0-9_]{1,40}$")]


class FindArgs(ListArgs):
    """Which ticks."""

    verdict: Literal["BUY", "HOLD", "SELL"] | None = None
    action: Code | None = Field(None, description="such as OPEN_BUY or HOLD")
    reason: Code | None = Field(None, description="such as VERDICT, THRESHOLD or a deny reason")


class TextArgs(ToolArgs):
    """Words to look for."""

    words: str = Field(min_length=1, max_length=200)
    limit: int = Field(5, ge=1, le=10)


class Text(NamedTuple):
    """A text of ours: where it stands, its title, and what it says."""

    place: str
    title: str
    body: str


def find_ticks(reader: DeskReader, args: FindArgs) -> Iterator[Fact]:
    """Give the newest ticks with a verdict, an action or a reason."""
    name = None if args.symbol is None else reader.instance(args.symbol).id
    wanted = {"instance": name, "verdict": args.verdict, "action": args.action,
              "reason": args.reason}  # fmt: skip
    kinds = [
        kind.id
        for kind in tick_listing.tick_kinds(reader.database)
        if all(value in (None, getattr(kind, key)) for key, value in wanted.items())
    ]
    place = (iso(reader.as_of), tick_listing.AFTER_ALL[1])
    rows = tick_listing.ticks_of_kinds(reader.database, kinds, before=place, limit=args.limit)
    for row in rows:
        stream = f"{row['instance']}|{row['timeframe']}"
        yield fact(
            f"{stream}@{row['bar_time']}/verdict",
            row["verdict"],
            f"the verdict of {row['instance']} {row['timeframe']}",
            as_of=row["close_time"],
            source="tick record",
            sentence=f"{row['instance']} {row['timeframe']} at {row['close_time']}: "
            f"{row['verdict']}, consensus {format_signed(row['consensus'])}, without agents "
            f"{row['l1_verdict']}; {code_of(row['action'])}, {code_of(row['reason'])}.",
        )


def argument(reader: DeskReader, args: TickArgs) -> Iterable[Fact] | ToolError:
    """Give the argument of a tick: what it did and why, its gate, and the points of its agents."""
    record = tick_of(reader, args, args.back)
    if record is None:
        return ToolCode.NO_TICK.error()
    gate = record.gate
    reasons = ", ".join(map(code_of, gate.reasons)) or "no reason"
    done = record_fact(record, "sentence", code_of(record.reason), "what the tick did")
    return [
        done.model_copy(update={"sentence": record.sentence}),
        record_fact(record, "gate.multiplier", gate.multiplier, f"the gate's factor ({reasons})"),
        record_fact(record, "gate.veto", str(gate.veto).lower(), "the gate's veto of any opening"),
        *(one for report in record.deliberation.every_report for one in _report(record, report)),
    ]


def _report(record: TickRecord, report: AgentReport) -> Iterator[Fact]:
    """Yield an agent's word on the scores, and its points by the reading of their features."""
    agent = report.agent_id
    if report.abstained:
        yield record_fact(record, f"reports.{agent}", "abstained", f"the word of {agent}")
    for vector in VECTORS:
        if value := report.adjustments.get(vector):
            words = f"the change of the {vector.replace('_', ' ')} score by {agent}"
            yield record_fact(record, f"reports.{agent}.{vector}", value, words)
    for kind in ("points_for", "points_against"):
        for number, point in enumerate(getattr(report, kind)):
            side = {1: "up", -1: "down"}.get(point.side, "neither way")
            reading = reading_of(point.id, point.side)
            words = f"a point of {agent}, {side}: {name_of(point.id)}" + (
                f" ({reading})" if reading else ""
            )
            key = f"reports.{agent}.{kind}.{number}"
            # a word may be a stranger's
            value = point.value if isinstance(point.value, float | int) else None
            one = record_fact(record, key, value, words)
            yield one if one.sentence else one.model_copy(update={"sentence": f"{words}."})


def lessons(reader: DeskReader, args: ListArgs) -> Iterator[Fact]:
    """Give what like trades came to, newest first: figures alone, no words."""
    only = {} if args.symbol is None else {"symbol": reader.instance(args.symbol).symbol}
    for lesson in lesson_table.lesson_list(reader.database, only, limit=args.limit):
        facts = lesson.facts
        if facts.known_at < reader.as_of:
            yield fact(
                f"lesson.{lesson.number}",
                facts.r,
                f"the result of the {facts.side} of {facts.symbol} {facts.timeframe} "
                f"({facts.kind}, {facts.outcome})",
                as_of=iso(facts.closed_at),
                source="lessons",
                unit="R",
            )


def find_text(reader: DeskReader, args: TextArgs) -> list[Fact]:
    """Give texts of the docs, the glossary and the deny reasons that have all words."""
    terms = " ".join(f'"{word}"' for word in WORD.findall(args.words))
    if not terms:
        return []
    table = sqlite_utils.Database(memory=True, execute_plugins=False)
    try:
        table.execute("CREATE VIRTUAL TABLE texts USING fts5(place, title, body)")
        table.conn.executemany("INSERT INTO texts VALUES (?, ?, ?)", _texts(DOCS))
        rows = table.execute(
            "SELECT place, title, body FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?",
            (terms, args.limit),
        ).fetchall()
    finally:
        table.close()
    return [
        fact(f"doc.{place}", title, title, as_of=iso(reader.as_of), source=place,
             sentence=f"{title}: {body[:LONGEST_TEXT]}")
        for place, title, body in rows
    ]  # fmt: skip


@cache
def _texts(docs: Path) -> tuple[Text, ...]:
    """Return every section of the docs, and every word and deny reason."""
    texts = [
        Text(f"{page.name}#{number}", title, " ".join(body.split()))
        for page in sorted(docs.glob("*.md"))
        for number, (title, body) in enumerate(_sections(page.read_text(encoding="utf-8")))
    ]
    texts += [
        Text(f"glossary#{entry.slug}", entry.term, f"{entry.line} {entry.exact}".strip())
        for section in glossary.SECTIONS.values()
        for entry in section
    ]
    return (*texts, *(Text(f"deny_reasons#{one}", one, one.meaning) for one in DenyReason))


def _sections(page: str) -> Iterable[tuple[str, str]]:
    """Return the sections of a page by their titles."""
    _, *parts = SECTION.split(page)
    return zip(parts[::2], parts[1::2], strict=True)
