"""Lessons of markets of eight kinds as an index takes them, questions about them, and of gardens.

Every random choice is the caller's. A kind of market is a regime, its strongest components, flags,
classes of events, a way of talking and a situation; noise replaces some of each. A garden shares
with a market nothing but tags and the words of every text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from torra.clock import EPOCH
from torra.lessons.content_words import content_words
from torra.lessons.lesson import SCALES
from torra.lessons.ranking import IndexedLesson, Query

START: Final = EPOCH + timedelta(days=19_000)
HOUR: Final = timedelta(hours=1)

REGIMES: Final = ("with_trend", "against_trend", "range", "volatile", "quiet")
COMPONENTS: Final = tuple(
    f"{name}_{way}"
    for name in (
        *("wick", "body", "engulfing", "support", "resistance", "pivot", "rsi", "macd"),
        *("stochastic", "swing", "breakout", "channel"),
    )
    for way in ("for", "against")
)
EVENTS: Final = ("event_rates", "event_inflation", "event_jobs", "event_war", "event_supply")
FLAGS: Final = ("range_spike", "volume_spike", "gap", "stale")

SAYINGS: Final = (
    "Chased a break on thin volume and was stopped at once.",
    "Bought the pullback to the rising average; it held.",
    "Faded the upper edge while momentum still grew.",
    "Waited for the retest, entered late, gave back half.",
    "Stood through the announcement and the spread took the stop.",
    "Drifted sideways until time ran out, nothing was learned.",
    "A spike reversed before the hour closed and paid in full.",
    "Countertrend entry against a clean structure failed twice.",
)
GARDENS: Final = (
    "Tomatoes want warm soil, a sheltered bed and water every evening.",
    "Prune the roses in March when frost no longer bites the buds.",
    "Slugs come at night after rain; copper tape keeps them away.",
    "Compost of leaves and kitchen peelings feeds the pumpkins.",
    "Sow carrots thinly, cover with sand, never let the rows dry.",
    "Bees visit lavender and thyme; plant both beside the orchard.",
)
TAGGED: Final = "LONG XAUUSD M15 in the LONDON session, {r:+.2f} R after {hours} hours."


class Kind(NamedTuple):
    """A kind of market."""

    regime: str
    components: tuple[str, ...]
    event: str
    saying: str
    vector: tuple[float, ...]


def kinds(chance: random.Random, count: int = 8) -> list[Kind]:
    """Return kinds of market that share their regimes and now and then a component."""
    return [
        Kind(
            REGIMES[at % len(REGIMES)],
            tuple(chance.sample(COMPONENTS, 3)),
            EVENTS[at % len(EVENTS)],
            SAYINGS[at % len(SAYINGS)],
            tuple(chance.choice((-1.0, -0.5, 0.0, 0.5, 1.0)) for _ in SCALES),
        )
        for at in range(count)
    ]


def query(chance: random.Random, kind: Kind, noise: float = 0.1) -> Query:
    """Return what a tick in a market of a kind asks: words of code, and its situation."""
    terms = _terms(chance, kind, noise)
    return Query(terms, " ".join(terms), _vector(chance, kind, noise))


def entry(
    chance: random.Random, number: int, kind: Kind, known_at: datetime, noise: float = 0.1
) -> IndexedLesson:
    """Return a lesson of a market of a kind."""
    terms = _terms(chance, kind, noise)
    told = TAGGED.format(r=chance.gauss(0.0, 1.0), hours=chance.randrange(1, 40))
    text = f"{' '.join(terms)} {told} {kind.saying}"
    vector = _vector(chance, kind, noise)
    words = content_words(kind.saying)
    return IndexedLesson(number, known_at, (*terms, *words), text, vector, chance.random() < 0.8)


def garden(chance: random.Random, number: int, known_at: datetime) -> IndexedLesson:
    """Return a lesson of another subject, with the tags of a market's, and of no situation."""
    said = " ".join(chance.sample(GARDENS, 2))
    text = f"{TAGGED.format(r=chance.gauss(0.0, 1.0), hours=chance.randrange(1, 40))} {said}"
    return IndexedLesson(number, known_at, content_words(text), text, None)


def entries(
    chance: random.Random, count: int, among: Sequence[Kind], noise: float = 0.1
) -> Iterator[tuple[int, IndexedLesson]]:
    """Yield lessons an hour apart from START on, each with the place of its kind."""
    for number in range(1, count + 1):
        at = chance.randrange(len(among))
        yield at, entry(chance, number, among[at], START + number * HOUR, noise)


def _terms(chance: random.Random, kind: Kind, noise: float) -> tuple[str, ...]:
    usual = (kind.regime, *kind.components)
    others = (*REGIMES, *COMPONENTS)
    terms = [chance.choice(others) if chance.random() < noise else term for term in usual]
    if chance.random() < 0.1:
        terms.append(chance.choice(FLAGS))
    if chance.random() < 0.3:
        terms.append(kind.event)
    return tuple(dict.fromkeys(terms))


def _vector(chance: random.Random, kind: Kind, noise: float) -> tuple[float, ...]:
    moved = (value + chance.gauss(0.0, 3.0 * noise) for value in kind.vector)
    return tuple(max(-1.0, min(1.0, value)) for value in moved)
