"""A tick in words, for Home, the lists of symbols and ticks, and the page of a symbol.

Pure functions. A tick's own sentence and its reason words are made elsewhere; here they are cut to
what stands beside them already.
"""

from __future__ import annotations

import re
from typing import Final

from torra.dashboard.record import vetoes
from torra.dashboard.record.reasoning import SENTENCE, headline, why
from torra.dashboard.record.shown import Decision
from torra.exhibits import figures
from torra.tick import sentence
from torra.tick.marks import PROPOSED
from torra.tick.tick_record import TickRecord
from torra.words.badge import Badge, capital
from torra.words.orders import REASONS

PROPOSED_BADGE: Final = Badge("◔", "proposed", "warn", REASONS[PROPOSED])

NOTHING_DONE: Final = re.compile(
    r"Does nothing in \S+ on \S+: the consensus [^;]*; (.+)", re.DOTALL
)
"""The sentence of a tick that held because no threshold was reached."""

KEPT: Final = re.compile(
    r"(Keeps the \w+) in \S+ on \S+(, [^:]*)?: (?:the )?consensus [^;]*; (.+)", re.DOTALL
)
"""The sentence of a tick that kept its position."""

PULLS: Final = re.compile(r"; (\w+) of [^;]* UTC \([^)]*\) pulls the other way")
ALIKE: Final = re.compile(r", and without (?:agents|them) it would hold too")


def action(tick: Decision) -> Badge:
    """Return the badge of a tick's action; one that was proposed to a person is no HOLD."""
    return PROPOSED_BADGE if tick.reason == PROPOSED else figures.mark(tick.action)


def page_sentence(tick: TickRecord) -> str:
    """Return the sentence of a tick, cleaned."""
    return figures.sanitize(sentence.page_text(tick), SENTENCE)


def brief(sentence: str) -> str:
    """Return a tick's sentence without what its tile shows already: symbol, verdict, distance."""
    sentence = PULLS.sub(r"; \1 pulls the other way", sentence)
    if kept := KEPT.match(sentence):
        return f"{kept[1]}{kept[2] or ''}; {kept[3]}"
    nothing = NOTHING_DONE.match(sentence)
    return capital(ALIKE.sub("; without them the same", nothing[1])) if nothing else sentence


def reason(latest: Decision) -> str:
    """Return the headline of a tick: where the consensus stands, the action and its reason."""
    meaning, veto = why(latest), vetoes.cause(latest)
    if latest.reason == PROPOSED:
        meaning = f"{capital(REASONS[PROPOSED])}."
    # the meaning of the reason itself stands there already
    others = [reason for reason in latest.denied if reason != latest.reason]
    denied = ", ".join(figures.sanitize(reason, 40) for reason in others)
    if denied and denied not in meaning:
        meaning = f"{meaning} ({denied})" if meaning else denied
    if veto and veto not in meaning:
        meaning += f" {vetoes.mark(latest).text} of openings: {veto}."
    return f"{headline(latest)} {meaning}".strip()
