"""What the rules say of a closed trade: the setup, the outcome and what to heed, from facts alone.

`rules_words` writes them with the facts, so every lesson has words at once, in a replay too. Every
number in them is one of the lesson's figures, as `torra.lessons.checked_words` would hold a model
to. One trade proves nothing, and its rule says so.

Pure: the same facts always give the same words, each part at most PART_BYTES long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from agent_config import GateSettings
from torra.lessons.figures import PARTS
from torra.lessons.lesson import DIRECTION, TRENDS, LessonFacts, LessonText, Situation
from torra.verdict.trade_outcome import SCRATCH_R, STRENGTHENED_R, WEAKENED_R

AUTHOR: Final = "rules"
"""Who wrote words that no model wrote."""

PART_BYTES: Final = 160
"""Longest part of a lesson's words, in bytes of UTF-8."""

LONGEST_HOURS: Final = 24_000.0
"""From here on the time held is not told: its words would not fit."""

ONE_BAR: Final = "within one bar"
"""How long a trade lasted that was filled and ended in the same bar."""

LARGEST_R: Final = 1_000.0
"""From here on a result is told without its number: no stop is so near."""

THIN_VOLUME: Final = 0.7
HEAVY_VOLUME: Final = 1.5
"""Volume over its usual, up to which it is thin and from which it is heavy."""

WIDE_SPREAD: Final = GateSettings().max_spread_atr
"""Spread in ATR from which it is wide: the gate's default limit."""

NOTICED_R: Final = 0.05
"""R from which an excursion is told: less would be shown as 0.0."""

MARKETS: Final[Mapping[str, str]] = {
    "range": "in a range",
    "quiet": "in a quiet market",
    "volatile": "in a volatile market",
    "with_trend": "with the trend",
    "against_trend": "against the trend",
}
"""The market of a trade, as its side saw it."""

SESSIONS: Final[Mapping[str, str]] = {
    "ASIA": "Asian session",
    "LONDON": "London session",
    "LONDON_NY_OVERLAP": "London and New York together",
    "NEW_YORK": "New York session",
    "CLOSED": "at the weekend",
}

ODD: Final[Mapping[str, str]] = {
    "range_spike": "a bar of unusual range",
    "gap": "an opening gap",
    "stale": "old bars",
}
"""What torra.market.regime.triage flags; of volume the ratio tells."""

ENDS: Final[Mapping[str, str]] = {
    "STOPPED": " at the stop",
    "TARGET": " at the target",
    "CLOSED": " by a close",
    "BY_HAND": " by hand",
}
"""How a trade ended, after its result; any other reason is not told."""

ONE: Final[Mapping[str, str]] = {
    "trade": "One trade, not a rule: ",
    "vetoed": "One refusal, not a rule: ",
}


VETO_WORDS: Final = {"loss": "avoided a loss", "win": "gave up a gain"}
REFUSALS: Final = {"loss": "refusing it was right here", "win": "refusing it cost a gain here"}
"""What a veto came to, by the outcome of its opening; a scratch is neither."""


def rules_words(facts: LessonFacts, known_at: datetime) -> LessonText:
    """Return what the rules say of a lesson."""
    return LessonText(_setup(facts), _outcome(facts), _rule(facts), AUTHOR, known_at)


def against(facts: LessonFacts) -> str:
    """Return what weighed most of what spoke against a trade; "" where nothing did."""
    return _strongest(facts, -1)


def _strongest(facts: LessonFacts, way: int) -> str:
    parts = facts.situation.strongest if facts.situation else ()
    wanted = way * DIRECTION[facts.side]
    return next((PARTS[name] for name, sign in parts if sign == wanted and name in PARTS), "")


def _joined(first: str, more: Iterable[str], end: str = ".") -> str:
    """Return as many pieces after the first one as fit."""
    text = first
    for piece in more:
        if len(f"{text}{piece}{end}".encode()) <= PART_BYTES:
            text += piece
    return f"{text}{end}"


# --- the setup ------------------------------------------------------------------------------------


def _setup(facts: LessonFacts) -> str:
    side = facts.side.capitalize()
    first = f"{side} {facts.symbol} {facts.timeframe}"
    if facts.kind == "vetoed":
        what = f"{facts.side.lower()} of {facts.symbol} {facts.timeframe}"
        first = f"The {facts.refuser} refused a {what}"
    if facts.situation is None:
        return _joined(first, ["; the market at its opening is not known"])
    return _joined(first, _market(facts, facts.situation))


def _market(facts: LessonFacts, situation: Situation) -> Iterator[str]:
    if market := market_of(facts):
        yield f" {market}"
    if session := SESSIONS.get(situation.session):
        yield f", {session}"
    if speaks := against(facts):
        yield f"; {speaks} spoke against it"
    volume, spread = (situation.numbers.get(name) for name in ("volume_ratio", "spread_atr"))
    if volume is not None and volume <= THIN_VOLUME:
        yield "; volume thin"
    if volume is not None and volume >= HEAVY_VOLUME:
        yield "; volume heavy"
    if spread is not None and spread >= WIDE_SPREAD:
        yield "; spread wide"
    yield from (f"; {ODD[name]}" for name in situation.triage if name in ODD)
    if speaks := _strongest(facts, 1):
        yield f"; {speaks} spoke for it"
    if situation.events:
        yield f"; news: {', '.join(situation.events)}"


def market_of(facts: LessonFacts) -> str:
    """Return the kind of market as a trade's side saw it, in words; "" where it is not known."""
    regime = facts.situation.regime if facts.situation else ""
    return MARKETS.get(TRENDS[facts.side].get(regime, regime), "")


# --- the outcome ----------------------------------------------------------------------------------


def _outcome(facts: LessonFacts) -> str:
    size = abs(facts.r)
    if not math.isfinite(size) or size >= LARGEST_R:
        return f"It ended as a {facts.outcome}."
    # Of a scratch no word says on which side of nothing it ended.
    size = round(facts.r, 2) + 0.0 if facts.outcome == "scratch" else size
    result = f"{size:.2f} R{_duration(facts.hours_held)}{ENDS.get(facts.reason, '')}"
    if facts.kind == "vetoed":
        words = VETO_WORDS.get(facts.outcome)
        verdict = [f": the {facts.refuser} {words}"] if words else []
        return _joined(f"On paper it would have {_came(facts)} {result}", verdict)
    return _joined(f"{_came(facts).capitalize()} {result}", _course(facts))


def _came(facts: LessonFacts) -> str:
    if facts.outcome == "scratch":
        return "come to a scratch of" if facts.kind == "vetoed" else "a scratch of"
    return "won" if facts.r > 0 else "lost"


def _duration(hours: float) -> str:
    """Return how long it lasted; "" where that cannot be told shortly."""
    text = span(hours)
    return f" in {text}" if text else f" {ONE_BAR}" if 0 <= hours < 1 else ""


def span(hours: float) -> str:
    """Return a length of time as pages write it: 12 min, 3 h 05 min, 2 d 4 h; "" below 1 min."""
    if not 0 <= hours < LONGEST_HOURS:
        return ""
    minutes = int(hours * 3600.0) // 60
    if minutes < 60:
        return f"{minutes} min" if minutes else ""
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def _course(facts: LessonFacts) -> Iterator[str]:
    """Yield what a trade went through on its way, and what its fill cost."""
    if facts.outcome == "loss" and facts.r > 0:
        yield ", and costs made it a loss"
    if facts.outcome == "win" and facts.r < 0:
        yield ", and the account still gained"
    if facts.outcome == "loss":
        yield _stood(facts.mfe_r, "ahead at best", "; it was never ahead")
    elif facts.outcome == "win":
        yield _stood(-facts.mae_r, "behind at worst", "; it was never behind")
    else:
        yield _stood(facts.mfe_r, "ahead at best", "")
        yield _stood(-facts.mae_r, "behind at worst", "")
    if SCRATCH_R <= facts.slipped_r < LARGEST_R:
        yield f"; its fill cost {facts.slipped_r:.2f} R"


def _stood(r: float, words: str, never: str) -> str:
    if not NOTICED_R <= r < LARGEST_R:
        return never if abs(r) < NOTICED_R else ""
    return f"; it was {r:.1f} R {words}"


# --- the rule -------------------------------------------------------------------------------------


def _rule(facts: LessonFacts) -> str:
    first = ONE[facts.kind]
    if facts.kind == "vetoed":
        return _joined(first, [REFUSALS.get(facts.outcome, "refusing it made no difference")])
    # The longer word first: what does not fit is said shortly.
    rule = next(text for text in _advice(facts) if len(f"{first}{text}.".encode()) <= PART_BYTES)
    return f"{first}{rule}."


def _advice(facts: LessonFacts) -> Iterator[str]:
    if facts.reason == "BY_HAND":
        yield "a person ended it, so it says little of the plan"
    if facts.evolution == "Unknown":
        yield "it had no plan to measure it by"
    if facts.outcome == "scratch":
        yield "its result is too small to learn from"
    if facts.outcome == "loss":
        yield from _of_loss(facts)
    if facts.mae_r <= WEAKENED_R:
        yield "it was well behind before it won, so luck had a part"
    if facts.outcome == "win" and facts.r > facts.planned_r + STRENGTHENED_R:
        yield "it paid more than was planned, which no plan can count on"
    if speaks := _strongest(facts, 1):
        yield f"what spoke for it held: {speaks}"
    yield "it went as planned"


def _of_loss(facts: LessonFacts) -> Iterator[str]:
    if facts.mfe_r >= STRENGTHENED_R:
        yield "it was well ahead before it failed; see whether giving back repeats"
    if facts.slipped_r >= -WEAKENED_R:
        yield "its fill alone cost much of the risk; see whether fills repeat that"
    side, market = facts.side.lower(), market_of(facts)
    where = f" {market}" if market else ""
    if speaks := against(facts):
        yield f"heed {speaks} before the next {side}{where}"
        yield f"heed what speaks against the next {side}{where}"
    if facts.mfe_r < NOTICED_R:
        yield f"it was wrong from the start; ask more of the next {side}{where}"
    yield f"see whether the next {side}{where} fails alike"
