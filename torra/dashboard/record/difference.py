"""The difference between a tick and the one before: verdict, scores, the gate, what agents said.

It lists only what moved: words that differ, and numbers that moved by more than `SMALL`. If the
tick before was skipped or does not exist, there is no comparison, and the result says why. Pure
functions over two records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agents.contracts import VECTORS
from torra.dashboard.record.stored import Row, mapping, reports
from torra.exhibits import figures
from torra.exhibits.figures import cell

SMALL: Final = 0.02
"""A number that moved by this much or less did not move."""

WORDS: Final = (
    ("verdict", "Verdict"),
    ("l1_verdict", "Verdict of L1 alone"),
    ("action", "Action"),
    ("source_type", "Source"),
)
NUMBERS: Final = (
    ("consensus", "Consensus now"),
    ("l1_consensus", "Consensus of L1 alone"),
    ("composite", "Composite now"),
)


def changes(record: Mapping[str, Any], before: Mapping[str, Any] | None) -> Row:
    """Return the changes since the tick before; `why` is the reason if there is no comparison."""
    if not before:
        return {"there": False, "why": "there is no tick before this one", "rows": []}
    if before.get("skipped"):
        reason = figures.clean(mapping(before["skipped"]).get("reason"), 80)
        return {"there": False, "why": f"the tick before was skipped: {reason}", "rows": []}
    rows = [*_words(record, before), *_numbers(record, before), *_agents(record, before)]
    return {"there": True, "why": "", "rows": rows, "small": f"{SMALL:g}"}


def _words(record: Mapping[str, Any], before: Mapping[str, Any]) -> Iterable[Row]:
    for name, title in WORDS:
        old, new = before.get(name), record.get(name)
        if old != new:
            yield _row(title, "", figures.mark(old).text, figures.mark(new).text)
    old, new = (bool(mapping(one.get("gate")).get("veto")) for one in (before, record))
    if old != new:
        words = {True: figures.mark("VETO").text, False: "no veto"}
        yield _row("Veto of openings", "", words[old], words[new])


def _numbers(record: Mapping[str, Any], before: Mapping[str, Any]) -> Iterable[Row]:
    for name, title in NUMBERS:
        yield from _moved(title, "", before.get(name), record.get(name))
    for vector in VECTORS:
        word = figures.title(vector).lower()
        old, new = (mapping(one.get("l1")).get(vector) for one in (before, record))
        yield from _moved("L1", word, old, new)
        finals = (
            mapping(mapping(one.get("scores")).get(vector)).get("score") for one in (before, record)
        )
        yield from _moved("Blended", word, *finals)
    old, new = (mapping(one.get("gate")).get("multiplier") for one in (before, record))
    yield from _moved("Multiplier in force", "", old, new)


def _agents(record: Mapping[str, Any], before: Mapping[str, Any]) -> Iterable[Row]:
    was, now = _told(before), _told(record)
    for name in dict.fromkeys([*was, *now]):
        title = figures.title(name)
        old, new = was.get(name), now.get(name)
        if (old is None) != (new is None):
            words = {True: "no word", False: "spoke"}
            yield _row(title, "", words[old is None], words[new is None])
            continue
        for vector in VECTORS:
            pair = (mapping(old).get(vector), mapping(new).get(vector))
            yield from _moved(title, figures.title(vector).lower(), *pair)


def _told(record: Mapping[str, Any]) -> dict[str, Row]:
    """Return the adjustments of every agent that did not abstain."""
    deliberation = mapping(record.get("deliberation"))
    return {
        str(told.get("agent_id")): mapping(told.get("adjustments"))
        for told in reports(deliberation)
        if not told.get("abstained")
    }


def _moved(title: str, about: str, old: Any, new: Any) -> Iterable[Row]:
    first, second = figures.number(old), figures.number(new)
    if first is None and second is None:
        return
    if first is None or second is None:
        shown = (cell(first)["text"], cell(second)["text"])
        yield _row(title, about, *shown)
    elif abs(second - first) > SMALL:
        moved = cell(second - first)
        yield _row(title, about, figures.signed(first), figures.signed(second), moved)


def _row(title: str, about: str, old: str, new: str, moved: Row | None = None) -> Row:
    empty = {"text": "", "tone": "", "title": ""}
    return {"name": title, "about": about, "old": old, "new": new, "moved": moved or empty}
