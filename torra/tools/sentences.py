"""Sentences that code makes of facts, and what a model may do with them: choose and put in order.

A model names sentences by their ids; it never writes one. What it names that is not there is
dropped. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torra.tools.contract import Value

Cause = tuple[str, str]
"""Ids of two sentences: the first holds because the second does, as a record says."""


class Sentence(Value):
    """One sentence of code: its id within one answer, its text, and the ids of its facts."""

    id: str
    text: str
    cites: tuple[str, ...] = ()


class Choice(Value):
    """What a model chose: ids of sentences in their order, and causes among them."""

    say: tuple[str, ...] = ()
    because: tuple[Cause, ...] = ()


def choice_of(
    reply: Any, sentences: Sequence[Sentence], causes: Collection[Cause], most: int
) -> Choice:
    """Return what may stand of a reply `{say, because}`: `most` sentences at most, each once.

    A cause stands where it is one of `causes` and both its sentences are said.
    """
    document = reply if isinstance(reply, dict) else {}
    known = {one.id for one in sentences}
    named = _list(document.get("say"))
    say = tuple(dict.fromkeys(one for one in named if isinstance(one, str) and one in known))[:most]
    pairs = [tuple(one) for one in _list(document.get("because")) if isinstance(one, list)]
    because = tuple(one for one in causes if one in pairs and set(one) <= {*say})
    return Choice(say=say, because=because)


def text_of(sentences: Sequence[Sentence], choice: Choice) -> list[str]:
    """Return the sentences of a choice in its order; a cause follows what it explains."""
    texts = {one.id: one.text for one in sentences}
    causes = dict(choice.because)
    reasons = set(causes.values())
    lines = []
    for one in choice.say:
        if one in causes:
            lines.append(f"{texts[one]} The reason: {texts[causes[one]]}")
        elif one not in reasons:
            lines.append(texts[one])
    return lines


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
