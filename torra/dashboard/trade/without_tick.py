"""What a tick would have been without its agents, in words: for its page and for its trade's.

The reckoning is torra.replay.changed's, from the stored bars. Without a database, or for an
instance that the desk has not any more, nobody can tell. Nothing is changed.
"""

from __future__ import annotations

from torra.config import SymbolSpec
from torra.dashboard.record import story_cards
from torra.dashboard.record.shown import TickView
from torra.dashboard.trade.order import terms_of
from torra.dashboard.view.rendering import state
from torra.words.orders import HOLD_REASONS, SIDES

ENDS = {
    "none": "Nothing would have been won or lost.",
    "open": "It would be open still.",
    "unknown": "What it would have come to is not known.",
}


def without(record: TickView) -> tuple[str, str]:
    """Return what would have happened without agents, in a word and in a sentence."""
    return story_cards.without(record, _changed(record, terms(record)[1]))


def terms(record: TickView) -> tuple[SymbolSpec | None, str]:
    """Return a symbol's trading terms and its account's currency, as far as they are known."""
    known = terms_of(record.instance)
    return known.spec, known.currency


def _changed(record: TickView, currency: str) -> dict[str, str] | None:
    """Return what L1 alone would have done on a tick that agents changed; else None."""
    behind = state().backing
    known = {one.id: one for one in behind.settings.instances} if behind else {}
    if behind is None or record.instance not in known or record.l1_verdict is None:
        return None
    from torra.replay.changed import words  # noqa: PLC0415  the pages load replays only when asked to
    from torra.replay.changed.without_agents import (  # noqa: PLC0415
        Outcome,
        ScoredBars,
        changed_tick,
    )

    key = f"{record.instance}|{record.timeframe}|{record.bar_time}"
    changed = changed_tick(ScoredBars(behind.database), known, key)
    if changed is None:
        return None
    alone, done = changed.l1.came_to, changed.done.came_to

    def did(course: Outcome) -> str:
        if course.action != "HOLD":
            return words.did(course)
        # a verdict that opens nothing is no hold: the position stays, or a check objects
        side, why = SIDES.get(str(course.verdict)), HOLD_REASONS.get(str(course.reason), "")
        return f"{side.verb} verdict, but no order: {why}" if side and why else "no trade"

    result = f", {words.came(done, currency)}" if done.state == "closed" else ""
    return {
        "did": did(changed.l1).capitalize(),
        "came": ENDS.get(alone.state) or f"It would have come to {words.came(alone, currency)}.",
        "done": f"{did(changed.done)}{result}.",
    }
