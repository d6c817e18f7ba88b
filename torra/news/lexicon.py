"""Scores the tone of a headline in [-1, +1] by counting words: no model, no network.

The words are Torra's own (words.txt beside this module, which says where they come from and what
each section of it does). One word alone makes half a point: the score is
(up - down) / (up + down + 1).

What a word says can depend on its neighbours in the same part of a headline; a part ends at a
punctuation mark and at words such as "as", "but" and "on":

- "unemployment rises" is bad, "yields rise" is neither, "fears ease" is good;
- "hopes fade" and "growth stalls" are bad;
- "raises its outlook" is good, "raises rates" is neither;
- "no", "not", "averts" and the like turn the next words, "fails to" as well, "pares" the next one
  that counts;
- what follows "despite" or "from" does not count: "gold falls from a record high";
- nor does what follows "as" where something was said before it ("slips as bonds slide"), nor the
  one word after "on" where it follows a word of up or down ("gains on weak data").

What it cannot do: it does not know whose price is meant ("dollar falls, gold rises" is 0), nor what
is good for whom, nor irony, questions, quotations and what is denied further away. It knows English
only. It is evidence of tone, no forecast. Any thread may score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("words.txt")

DAMPING: Final = 1.0
"""Added to the count of words, so that one word alone is no certainty."""

TURN_REACH: Final = 3
"""Words after a turning one that it turns."""

PARE_REACH: Final = 6
"""Words after "pares" among which stands what it turns."""

TARGET_REACH: Final = 4
"""Words after "raises" or "cuts" among which its target stands."""

LONGEST: Final = 2_000
"""Characters of a text that are read."""

TOKEN: Final = re.compile(r"[a-z]+(?:['’][a-z]+)*|[,;:.!?]+(?=\s|$)|\s[-–—]+\s")


WORDS: Final[dict[str, str]] = {}
"""The section of each word; words that count in a row are joined by an underscore."""

MARKS: Final[dict[str, list[str]]] = {}
"""The marks of each section."""

_heading = ""
for _line in FILE.read_text(encoding="utf-8").splitlines():
    if _line.startswith("["):
        _heading, *_marks = _line.replace("[", "").replace("]", "").split()
        MARKS[_heading] = _marks
    elif not _line.startswith("#"):
        WORDS.update(dict.fromkeys(_line.split(), _heading))

ALONE: Final = {
    section: int(mark) for section, marks in MARKS.items() for mark in marks[:1] if mark[0] in "+-"
}
"""The score of a word of a section where no neighbour changes it."""


def _marked(mark: str) -> frozenset[str]:
    return frozenset(section for section, marks in MARKS.items() if mark in marks)


MOVING, ADVERSE, EITHER = _marked("moving"), _marked("adverse"), _marked("either")
TURNING, ENDING, UNAIMED = _marked("turning"), _marked("ending"), _marked("unaimed")

WINDOWS: Final = {
    "lifting": (0, 2), **dict.fromkeys(MOVING, (4, 2)), "troubles": (2, 4), "strengths": (2, 4),
}  # fmt: skip
"""Words before and after a word of a section whose sections decide what it means.

"Rises" looks for a subject ("unemployment rises", "a rise in unemployment"), a trouble for a move.
"""

SETTLED: Final = {"troubles": MOVING, "strengths": MOVING | {"bad"}}
"""Sections whose word has no sign of its own beside these: "losses fall" is the move's."""

ROWS: Final[dict[str, list[tuple[str, ...]]]] = {}
"""Words that count in a row, by the first of them, the longest row first."""

for _words in sorted((tuple(word.split("_")) for word in WORDS), key=len, reverse=True):
    if len(_words) > 1:
        ROWS.setdefault(_words[0], []).append(_words)


def score(text: str) -> float:
    """Return the tone of a text: -1 falling, 0 nothing said or as much of both, +1 rising."""
    tokens = TOKEN.findall(text[:LONGEST].lower())
    # Without the ending of a possessive: "bank's" is the bank.
    words = tuple(token.removesuffix("'s").removesuffix("’s") for token in tokens)
    signs = [
        _sign(part, place)
        for part in _parts(words)
        for place, section in enumerate(part)
        if section
    ]
    up, down = signs.count(1), signs.count(-1)
    return (up - down) / (up + down + DAMPING)


def _parts(words: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the sections of the words of each part of a headline; "" for a word of none.

    What is conceded or left behind, and the reason of what was said, is left out.
    """
    part: list[str] = []
    conceded = caused = False  # conceded: a reason of a reason too
    place = 0
    while place < len(words):
        section, taken = _section(words, place)
        if section in ENDING:
            if not conceded:
                yield part
            reason = section == "reasons" and (conceded or _says(part))
            caused = section == "causes" and not MOVING.isdisjoint(part[-1:])
            part, conceded = [], reason or section == "conceding"
        else:
            part.append("" if caused and section in ALONE else section)
            caused = False
        place += taken
    if not conceded:
        yield part


def _section(words: tuple[str, ...], place: int) -> tuple[str, int]:
    """Return the section of the longest entry that begins at a place, and its count of words."""
    word = words[place]
    for row in ROWS.get(word, ()):
        if words[place : place + len(row)] == row:
            return WORDS["_".join(row)], len(row)
    if section := WORDS.get(word, ""):
        return section, 1
    if not word[0].isalpha():
        return "breaks", 1
    return ("turning" if word.endswith(("n't", "n’t")) else ""), 1


def _sign(part: Sequence[str], place: int) -> int:
    sign = _plain_sign(part, place)
    turned = not TURNING.isdisjoint(part[max(0, place - TURN_REACH) : place])
    near = part[max(0, place - PARE_REACH) : place]
    if "paring" in near and not _says(near[near.index("paring") :]):
        turned = not turned
    return -sign if turned else sign


def _says(part: Sequence[str]) -> bool:
    return any(_plain_sign(part, place) for place in range(len(part)))


def _plain_sign(part: Sequence[str], place: int) -> int:
    """Return what the word at a place says before anything turns it: +1, -1 or 0."""
    section = part[place]
    if section in ("raising", "cutting"):
        return _aimed(section, part[place + 1 : place + 1 + TARGET_REACH])
    if section == "failing":
        turned = range(place + 1, min(len(part), place + 1 + TURN_REACH))
        return 0 if any(_plain_sign(part, other) for other in turned) else -1
    sign = 0 if section == "last" and place + 1 < len(part) else ALONE.get(section, 0)
    before, after = WINDOWS.get(section, (0, 0))
    near = {*part[max(0, place - before) : place], *part[place + 1 : place + 1 + after]}
    if section in SETTLED:
        return 0 if SETTLED[section] & near else sign
    if ADVERSE & near:
        return -sign
    return 0 if EITHER & near else sign


def _aimed(section: str, after: Sequence[str]) -> int:
    """Return what "raises" or "cuts" says of the target after it: fewer losses are good."""
    if "targets" not in after:
        return 0
    between = after[: after.index("targets")]
    if not UNAIMED.isdisjoint(between):
        return 0
    return 1 if (section == "raising") != ("troubles" in between) else -1
