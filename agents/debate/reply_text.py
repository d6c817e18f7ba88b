"""The words of a reply, cut to what is kept, and its numbers, held to what they may be.

Whatever is refused is ModelUnavailable, and nothing else is raised. The text is read by
agents.texts.door.
"""

from __future__ import annotations

import math
from typing import Final

from ..arguments import CLAIM_WORDS
from ..contracts import Evidence, Point
from ..texts.door import LINE_KEPT, garbage
from .reply_shapes import Citation, PointTold

REASONING_KEPT: Final = 2_000
"""Characters of reasoning that a report keeps; the call record keeps the whole reply."""
LINES_KEPT: Final = 8
"""Key points and flags that a report keeps, and falsifiers of the shape before."""
CITATIONS_KEPT: Final = 40
"""Citations that a report keeps; all of them are checked."""

NAME_KEPT: Final = 60
"""Characters kept of a level's name."""


def within(value: float, bound: float) -> float:
    """Return a finite number clamped to [-bound, +bound]."""
    return max(-bound, min(bound, value))


def finite(value: object) -> float:
    """Return a number as a finite float; raises ModelUnavailable("garbage") for what is none."""
    if type(value) is float and math.isfinite(value):  # nearly every one
        return value
    # True is an int to Python, and would count as a full vote.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise garbage(f"a {type(value).__name__} where a number belongs")
    try:
        converted = float(value)
    # JSON has integers of any length; float() takes none above 1e308.
    except OverflowError:
        raise garbage("a number too large to be one") from None
    if not math.isfinite(converted):
        raise garbage("a number that is not finite")
    return converted


def short_lines(items: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first lines of a list, each as long as a report keeps it."""
    return tuple(item[:LINE_KEPT] for item in items[:LINES_KEPT])


def one_line(text: str) -> str:
    """Return a text on one line, as long as a report keeps it."""
    return " ".join(text.split())[:LINE_KEPT].rstrip()


def claim_of(text: str) -> str:
    """Return a claim of at most CLAIM_WORDS words; one that is cut stays as it is if cut again."""
    words = text.split()
    if len(words) <= CLAIM_WORDS:
        return one_line(text)
    return f"{' '.join(words[:CLAIM_WORDS])[: LINE_KEPT - 1].rstrip(' ,;:.')}…"


def points_of(told: tuple[PointTold, ...]) -> tuple[Point, ...]:
    """Return points as they were told: the fact and the reason, each without its full stop."""
    return tuple(
        Point(
            one_line(one.says).rstrip(" ,;:."),
            *cited_as(one.id, one.value),
            one_line(one.why).rstrip(" ."),
        )
        for one in told
    )


def risks_of(told: tuple[str, ...]) -> tuple[str, ...]:
    """Return risks as they are kept, a line each; raises ModelUnavailable for a lone surrogate."""
    refuse_surrogates(*told)
    return tuple(filter(None, map(one_line, told)))


def level_name(text: str) -> str:
    """Return the name of a level, cut to NAME_KEPT letters."""
    return " ".join(text.split())[:NAME_KEPT].rstrip(" ,;:.")


def citations_of(cited: tuple[Citation, ...]) -> tuple[Evidence, ...]:
    """Return citations as a report keeps them."""
    return tuple(cited_as(item.id, item.value) for item in cited)


def cited_writable(evidence: tuple[Evidence, ...], *words: str) -> None:
    """Refuse a lone surrogate in citations and words."""
    values = [cited.value for cited in evidence if isinstance(cited.value, str)]
    refuse_surrogates(*words, *(cited.id for cited in evidence), *values)


def refuse_surrogates(*words: str) -> None:
    """Refuse a lone surrogate: the text of a reply has none, one that came as an object may."""
    text = "".join(words)
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        raise garbage(type(error).__name__) from None


def cited_as(name: str, value: float | str | None) -> Evidence:
    """Return one citation as a report keeps it."""
    return Evidence(name[:LINE_KEPT], value[:LINE_KEPT] if isinstance(value, str) else value)
