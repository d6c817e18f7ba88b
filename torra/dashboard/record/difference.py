"""The difference between a tick and the one before: verdict, scores, the gate, what agents said.

It lists only what moved: words that differ, and numbers that moved by more than `SMALL`. If the
tick before was skipped or does not exist, there is no comparison, and the result says why. Pure
functions over two records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypedDict

from agents.contracts import VECTORS
from torra.dashboard.record import swarm
from torra.dashboard.record.transcript import vetoed
from torra.exhibits import figures
from torra.exhibits.figures import Cell, cell
from torra.tick.tick_record import Damaged, Skipped, TickRecord

SMALL: Final = 0.02
"""A number that moved by this much or less did not move."""

WORDS: Final = (
    ("verdict", "Verdict"),
    ("l1_verdict", "Verdict without agents"),
    ("action", "Action"),
    ("source_type", "Source"),
)
NUMBERS: Final = (
    ("consensus", "Consensus now"),
    ("l1_consensus", "Consensus without agents"),
    ("composite", "Composite now"),
)


class ValueChange(TypedDict):
    """One thing that moved: before, now, and by how much if it is a number."""

    name: str
    about: str
    old: str
    new: str
    moved: Cell


class Differences(TypedDict):
    """The changes since the tick before; `why` is the reason if there is no comparison."""

    there: bool
    why: str
    rows: list[ValueChange]
    small: str


def changes(record: TickRecord, before: TickRecord | Skipped | Damaged | None) -> Differences:
    """Return the changes since the tick before; `why` is the reason if there is no comparison."""
    if before is None:
        return _none("there is no tick before this one")
    if not isinstance(before, TickRecord):
        what = "was skipped" if isinstance(before, Skipped) else "has a damaged record"
        return _none(f"the tick before {what}: {figures.sanitize(before.reason, 80)}")
    rows = [*_words(record, before), *_numbers(record, before), *_agents(record, before)]
    return {"there": True, "why": "", "rows": rows, "small": f"{SMALL:g}"}


def _none(why: str) -> Differences:
    return {"there": False, "why": why, "rows": [], "small": f"{SMALL:g}"}


def _words(record: TickRecord, before: TickRecord) -> Iterable[ValueChange]:
    for name, title in WORDS:
        old, new = getattr(before, name), getattr(record, name)
        if old != new:
            yield _row(title, "", figures.mark(old).text, figures.mark(new).text)
    old, new = vetoed(before.gate.ruling), vetoed(record.gate.ruling)
    if old != new:
        yield _row("Veto of openings", "", old, new)
    old, new = _decided(before), _decided(record)
    if old != new and old and new:
        yield _row("Judge's side", "", old, new)


def _decided(record: TickRecord) -> str:
    """Return the side that a judge takes; "" where none was heard."""
    said = record.deliberation.judge
    return "" if said is None else swarm.side_of(said.winner).text


def _numbers(record: TickRecord, before: TickRecord) -> Iterable[ValueChange]:
    for name, title in NUMBERS:
        yield from _moved(title, "", getattr(before, name), getattr(record, name))
    for vector in VECTORS:
        word = figures.title(vector).lower()
        yield from _moved("L1", word, before.l1.get(vector), record.l1.get(vector))
        yield from _moved("Blended", word, before.final(vector), record.final(vector))
    yield from _moved("Multiplier in force", "", before.gate.multiplier, record.gate.multiplier)
    old, new = before.budget, record.budget
    if old is not None and new is not None:
        yield from _moved("Budget of the regime", "", old, new)


def _agents(record: TickRecord, before: TickRecord) -> Iterable[ValueChange]:
    was, now = _told(before), _told(record)
    for name in dict.fromkeys([*was, *now]):
        title = figures.title(name)
        old, new = was.get(name), now.get(name)
        if old is None or new is None:
            words = {True: "no word", False: "spoke"}
            yield _row(title, "", words[old is None], words[new is None])
            continue
        for vector in VECTORS:
            word = figures.title(vector).lower()
            yield from _moved(title, word, old.get(vector), new.get(vector))


def _told(record: TickRecord) -> dict[str, Mapping[str, float | None]]:
    """Return the adjustments of every agent that did not abstain."""
    spoke = (told for told in record.deliberation.reports if not told.abstained)
    return {told.agent_id: told.adjustments for told in spoke}


def _moved(
    title: str, about: str, first: float | None, second: float | None
) -> Iterable[ValueChange]:
    if first is None and second is None:
        return
    if first is None or second is None:
        shown = (cell(first)["text"], cell(second)["text"])
        yield _row(title, about, *shown)
    elif abs(second - first) > SMALL:
        moved = cell(second - first)
        yield _row(title, about, figures.format_signed(first), figures.format_signed(second), moved)


def _row(title: str, about: str, old: str, new: str, moved: Cell | None = None) -> ValueChange:
    empty: Cell = {"text": "", "tone": "", "title": ""}
    return {"name": title, "about": about, "old": old, "new": new, "moved": moved or empty}
