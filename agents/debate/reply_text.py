"""The text of a reply: parsed strictly into a JSON object, and its words cut to what is kept.

Garbage is: NaN, Infinity, 1e999, a duplicate key, a lone surrogate, anything around the JSON
object, and more than 64 kB. Whatever is refused is ModelUnavailable, and nothing else is raised.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

from ..arguments import CLAIM_WORDS
from ..contracts import Evidence, ModelUnavailable, Point
from .reply_shapes import Citation, PointTold

MAX_REPLY_CHARS: Final = 65_536
"""A longer reply is not read."""

REASONING_KEPT: Final = 2_000
"""Characters of reasoning that a report keeps; the call record keeps the whole reply."""
LINE_KEPT: Final = 300
"""Characters kept of a claim, a point, a flag, a cited word or an abstention's reason."""
LINES_KEPT: Final = 8
"""Key points and flags that a report keeps, and falsifiers of the shape before."""
CITATIONS_KEPT: Final = 40
"""Citations that a report keeps; all of them are checked."""

NAME_KEPT: Final = 60
"""Characters kept of a level's name."""


def load(text: object, symbol: str | None) -> dict[str, Any]:
    """Return the JSON object that a text is, about `symbol` where one is named.

    Raises ModelUnavailable and only that.
    """
    return about(strict(text), symbol)


def strict(text: object) -> object:
    """Return the JSON value that a text is, and nothing around it; raises ModelUnavailable."""
    if not isinstance(text, str):
        raise garbage(f"the reply is {type(text).__name__}, not text")
    if len(text) > MAX_REPLY_CHARS:
        raise garbage(f"the reply has {len(text)} characters")
    try:
        reply = _DECODER.decode(text)
        # A lone surrogate cannot be stored: it is refused here, as text or as an escape.
        text.encode()
        if "\\u" in text:
            json.dumps(reply, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        more = error.msg == "Extra data" and "{" in text[error.pos :]
        raise garbage("two objects" if more else "not JSON") from None
    except (ValueError, RecursionError) as error:
        raise garbage(type(error).__name__) from None
    return reply


def about(reply: object, symbol: str | None) -> dict[str, Any]:
    """Return the object of a reply, about `symbol` where one is named; raises ModelUnavailable."""
    if not isinstance(reply, dict):
        raise garbage("the reply is no JSON object")
    if symbol is None:
        return reply
    told = reply.get("symbol")
    if not isinstance(told, str):
        raise garbage("the reply names no symbol")
    if told != symbol:
        raise ModelUnavailable("wrong_symbol", told[:LINE_KEPT])
    return reply


def garbage(detail: str) -> ModelUnavailable:
    """Return the failure of a reply that cannot be read."""
    return ModelUnavailable("garbage", detail)


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
    writable(*told)
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
    writable(*words, *(cited.id for cited in evidence), *values)


def writable(*words: str) -> None:
    """Refuse a lone surrogate: the text of a reply has none, one that came as an object may."""
    text = "".join(words)
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        raise garbage(type(error).__name__) from None


def cited_as(name: str, value: float | str | None) -> Evidence:
    """Return one citation as a report keeps it."""
    return Evidence(name[:LINE_KEPT], value[:LINE_KEPT] if isinstance(value, str) else value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json keeps the last of two equal keys; which of them the model meant nobody knows.
    found = dict(pairs)
    if len(found) != len(pairs):
        raise garbage("a duplicate key")
    return found


def _number(word: str) -> float:
    # 1e999 is good JSON, and infinity to float().
    number = float(word)
    if not math.isfinite(number):
        raise garbage("a number that is not finite")
    return number


def _constant(word: str) -> NoReturn:
    raise garbage(f"{word} is no number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_float=_number,
    parse_constant=_constant,
)
