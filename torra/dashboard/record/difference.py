"""The difference between a tick and the one before: verdict, scores, the gate, what agents said.

It lists only what moved: words that differ, and numbers that moved by more than `SMALL`. If the
tick before was skipped or does not exist, there is no comparison, and the result says why. Pure
functions over two records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from agents.contracts import VECTORS
from torra.dashboard.record import swarm
from torra.dashboard.record.transcript import vetoed
from torra.exhibits import figures
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


class ValueChange(NamedTuple):
    """One thing that moved: before, now, and by how much if it is a number."""

    name: str
    about: str
    old: str
    new: str
    moved: float | None = None


def changes(
    record: TickRecord, before: TickRecord | Skipped | Damaged | None
) -> list[ValueChange] | str:
    """Return the changes since the tick before, or why there is no comparison."""
    if before is None:
        return "there is no tick before this one"
    if not isinstance(before, TickRecord):
        what = "was skipped" if isinstance(before, Skipped) else "has a damaged record"
        return f"the tick before {what}: {figures.sanitize(before.reason, 80)}"
    return [*_words(record, before), *_numbers(record, before), *_agents(record, before)]


def _words(record: TickRecord, before: TickRecord) -> Iterable[ValueChange]:
    for name, title in WORDS:
        old, new = (figures.mark(getattr(tick, name)).text for tick in (before, record))
        if old != new:
            yield ValueChange(title, "", old, new)
    old, new = vetoed(before.gate.ruling), vetoed(record.gate.ruling)
    if old != new:
        yield ValueChange("Veto of openings", "", old, new)
    was, now = before.deliberation.judge, record.deliberation.judge
    if was and now:
        old, new = swarm.side_of(was.winner).text, swarm.side_of(now.winner).text
        if old != new:
            yield ValueChange("Judge's side", "", old, new)


def _numbers(record: TickRecord, before: TickRecord) -> Iterable[ValueChange]:
    for name, title in NUMBERS:
        yield from _moved(title, "", getattr(before, name), getattr(record, name))
    for vector in VECTORS:
        word = figures.title(vector).lower()
        yield from _moved("L1", word, before.l1[vector], record.l1[vector])
        yield from _moved("Blended", word, before.final(vector), record.final(vector))
    yield from _moved("Multiplier in force", "", before.gate.multiplier, record.gate.multiplier)
    if before.budget is not None and record.budget is not None:
        yield from _moved("Budget of the regime", "", before.budget, record.budget)


def _agents(record: TickRecord, before: TickRecord) -> Iterable[ValueChange]:
    was, now = (
        {one.agent_id: one.adjustments for one in tick.deliberation.reports if not one.abstained}
        for tick in (before, record)
    )
    for name in dict.fromkeys([*was, *now]):
        title = figures.title(name)
        if name not in was or name not in now:
            words = ("spoke", "no word")
            yield ValueChange(title, "", words[name not in was], words[name not in now])
            continue
        for vector in VECTORS:
            word = figures.title(vector).lower()
            yield from _moved(title, word, was[name].get(vector), now[name].get(vector))


def _moved(title: str, about: str, old: float | None, new: float | None) -> Iterable[ValueChange]:
    moved = None if old is None or new is None else new - old
    if old is not new if moved is None else abs(moved) > SMALL:
        written = figures.format_signed(old), figures.format_signed(new)
        yield ValueChange(title, about, *written, moved)
