"""The words of a text by which lessons are compared: what it is about, not whose or when it was.

Left out are numbers, stop words, and tags: symbols, timeframes, sides, sessions and currencies.
Nearly every lesson shares those, so that one of them would make everything alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, get_args

from torra.verdict.sentiment_rules import Session

WORD: Final = re.compile(r"\w+")

LEAST_LETTERS: Final = 3
"""Shorter words are articles, prepositions and units."""

LONGEST_ABBREVIATION: Final = 4
"""Letters of a content word in capitals (RSI, FOMC); a longer one names a symbol or a session."""

EVERYWHERE: Final = """
about above after again against all also and any are because been before being below between
both but can could did does doing down during each else ever few for from further had has have
having her here hers him his how however into its itself just less many may might more most much
must never new next nor not now off once one only other our out over own per same shall she should
since some still such than that the their them then there these they this those through too
under until upon versus very was were what when where which while who whom whose why will with
within without would yet you your
"""

WHOSE: Final = """
long short buy buys bought sell sells sold trade trades traded lesson review
asia asian sydney tokyo london york newyork frankfurt europe european american overlap session
usd eur gbp jpy chf cad aud nzd xau xag btc eth gold silver bitcoin
"""

STOP_WORDS: Final = frozenset(EVERYWHERE.split())
"""English words that stand in sentences of every subject."""

TAGS: Final = frozenset(WHOSE.split()) | {name.lower() for name in get_args(Session)}
"""Words that say whose a lesson is, or that it is one. Timeframes go with the numbers."""


def content_words(text: str, tags: Collection[str] = ()) -> tuple[str, ...]:
    """Return the content words of a text in lower case, in its order, each as often as it stands.

    `tags` are words that are no content beside TAGS, in any case: the names of symbols.
    """
    left_out = {part.lower() for tag in tags for part in WORD.findall(tag)}
    softly = " ".join(
        word
        for word in WORD.findall(text)
        if len(word) <= LONGEST_ABBREVIATION or not word.isupper()
    )
    return tuple(
        word
        for word in WORD.findall(softly.lower())
        if len(word) >= LEAST_LETTERS
        and not any(map(str.isdigit, word))
        and word not in STOP_WORDS
        and word not in TAGS
        and word not in left_out
    )
