"""Which sentences state more than one trade can show: of markets, of other trades, of the future.

A review is told in the past. A statement in the present or the future, one of trades in the plural,
and one of `such` a market holds of more than its trade, whether it is true or not. A request to
look ("see whether the next long fails alike") states nothing and may name the next trade.

The tense is read from words, clause by clause. What is noun and verb at once (breaks, moves, costs)
is a noun after an article, a preposition or an adjective. Pure; raises for no text.
"""

from __future__ import annotations

import re
from typing import Final

from torra.lessons.plain_words import HARMLESS
from torra.lessons.told_numbers import POSSESSIVE, WORD

OWN: Final = re.compile(
    r"\b(?:proves little|says little of the plan|is too small to learn from|no plan can count on"
    r"|(?:is|are) not known|would have)\b",
    re.IGNORECASE,
)
"""What may be said of one trade in the present, by the rules' own words, and of what it missed."""

CLAUSES: Final = re.compile(
    r"[;:,.!?](?=\s|$)|[()\"]|\s-\s"
    r"|\b(?:and|or|but|yet|so|then|because|since|though|although|while|as)\b",
    re.IGNORECASE,
)

_UNBOUND: Final = """
such like always usually often sometimes ever soon will would may might maybe can cannot
trades openings setups entries exits losers winners losses wins
"""
_PRESENT: Final = """
is are am has does do agrees asks avoids comes fails goes helps loses matters pays proves repeats
says seems speaks works next
"""
_VERB_OR_NOUN: Final = """
breaks breakouts costs cuts ends fades falls fills gains gaps holds looks means moves profits ranges
results reverses rises risks shows signals stops supports targets trends turns
"""
_BASE: Final = """
agree break climb come confirm cost cross cut decline disagree drift drop end fade fail fall gain
gap help hit hold jump lack lean lose matter mean move pay prove range reach rebound repeat reverse
rise seem show signal speak spike stop support trend turn win work
"""
_SUBJECT: Final = "they these those others all most many some few both we"
_NO_PLURAL: Final = """
across always as its less minus perhaps plus s this thus towards unless versus was
"""
_LEAD: Final = """
a an the its their any some no not all many few several more most much less
of in on at by with without for from to into onto over under above below after before between
behind against across through despite during until near upon within than toward towards
wide wider thin thinner sharp heavy high higher low lower small smaller large bigger big short long
new old fresh false strong stronger weak weaker quick fast slow early late mild noisy choppy quiet
clear key mixed sudden usual unusual narrow failed other own real poor slight steady clean
adverse bullish bearish volatile average extreme hard intraday overall
"""
_PAST: Final = """
was were had did began broke came caused cost cut fell foretold gave got grew held hit kept lay left
lost made met paid ran rose saw spent spoke stood took told went won
"""
UNBOUND, PRESENT, VERB_OR_NOUN, BASE, SUBJECT, NO_PLURAL, LEAD, PAST = (
    frozenset(words.split())
    for words in (
        *(_UNBOUND, _PRESENT, _VERB_OR_NOUN, _BASE),
        *(_SUBJECT, _NO_PLURAL, _LEAD, _PAST),
    )
)
"""Words of no one trade, verbs of the present, and what tells a verb from a noun."""


def is_general(text: str) -> bool:
    """Return whether a sentence states more than one trade can show."""
    clauses = [
        WORD.findall(POSSESSIVE.sub(" its ", clause).lower())
        for clause in CLAUSES.split(OWN.sub(" ", text))
    ]
    told_in_past = any(map(_is_past, (word for words in clauses for word in words)))
    return any(_is_general(words, told_in_past) for words in clauses)


def _is_general(words: list[str], told_in_past: bool) -> bool:
    if not UNBOUND.isdisjoint(words):
        return True
    if _is_request(words):
        return False
    return any(
        word in PRESENT
        or (word in VERB_OR_NOUN and not _is_noun(words, place, told_in_past))
        or (word in BASE and place > 0 and _is_plural(words[place - 1]))
        for place, word in enumerate(words)
    )


def _is_request(words: list[str]) -> bool:
    """Return whether a clause asks to look at something, and does not say how that is."""
    return not HARMLESS.isdisjoint(words[:1]) and {"that", "how"}.isdisjoint(words[:-1])


def _is_noun(words: list[str], place: int, told_in_past: bool) -> bool:
    """Return whether a word that may be a verb is a noun: led by one, or the subject of a past."""
    if place:
        return words[place - 1] in LEAD
    return told_in_past and (len(words) == 1 or _is_past(words[1]))


def _is_plural(word: str) -> bool:
    return word in SUBJECT or (word.endswith("s") and word not in NO_PLURAL)


def _is_past(word: str) -> bool:
    return word in PAST or word.endswith("ed")
