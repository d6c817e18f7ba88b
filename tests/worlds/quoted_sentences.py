"""Sentences that newcomers read on pages and did not understand, word for word, by the page's part.

None of them may stand outside of a fold "How this is computed" (tests/dashboard/test_words.py). `#`
stands for any number or time, `…` for a few words of any kind. LABELS are single words that stay as
labels: each has an entry in the glossary.
"""

from __future__ import annotations

import re
from functools import cache

QUOTED: dict[str, tuple[str, ...]] = {
    "overview": (
        "works (holds the lease)",
        "L1 alone",
        "AGENT_BUDGET",
        "Changed by agents",
        "none stands",
        "none waits",
        "all fresh",
        "# of # without bars now",
        "Data age (desk)",
        "Next tick (real)",
        "the weighted mean of the fresh composites of all timeframes",
        "an age is told in the desk's time, a wait in yours",
        "order of the desk file",
        "POSITION_HELD: the open position stays",
        "no bars: market closed or hole in the data (# closes skipped, no_bar",
        "Every date is the desk's own time.",
    ),
    "symbol": (
        "Squares: a verdict that was held back",
        "States of the consensus",
        "after # is added to each of the five counts so that what has not happened yet is not "
        "called impossible",
        "grey bars: closes without a tick",
        "the thresholds as they are now",
    ),
    "tick": (
        "Gate, in force × #",
        "Gate, in force",
        "Retries, second looks",
        "k is the trust that the synthesis multiplies them by",
        "high confidence, k #",
        "medium confidence, k #",
        "low confidence, k #",
        "moved by #: close # against the cloud",
        "kl_cloud # reads #",
        "st_long #: structure #",
        "Analyst average Σ f k a / Σ f over the analysts that scored it",
        "Σ f k a / Σ f over the analysts that scored it",
        "Low and high consensus: where an opening must stand too",
        "measured, never sent",
        "Verdict of the database brain",
        "make a report ungrounded",
        "Calibrated: raw × (1 − # × opposition)",
        "None: on no score do two of them stand clearly on both sides of zero.",
        "what the gate took back, and the fifth of it that the blend keeps",
        "Which way each analyst sees the market: L1 and its adjustments, averaged by its focus",
        "AWAITS_APPROVAL: proposed: waits for a person's yes, or was decided: see approvals",
        "proposed: waits for a person's yes, or was decided",
        "would OPEN_SELL, was decided",
        "would OPEN_BUY, was decided",
    ),
    "approval": (
        "RSI14 # (faded): momentum #",
        "size × #: OPEN_EXPOSURE",
        "(none was cut)",
        "none was cut",
    ),
    "signals": (
        "Thesis · undecided / weakened / falsified / realized",
        "Openings and closes go out.",
        "perhaps not sent",
    ),
    "cost": (
        "Kept at worst case",
        "Before a stage of a tick its worst case is set aside; what does not fit is not asked.",
        "Oldest cost leaves the hour",
        "Ticks that fit",
        "Today if it goes on so",
        "Answered too late to be used",
    ),
    "profile": (
        "guarded: needs the scope admin, and loosening it the command line",
        "from off to approve to auto loosens it",
        "as it was found",
        "taking it out or another one loosens it",
        "share of the ticks that pivotal skips and asks all the same",
        "multiplier 1 - s / this, s = spread of the analysts' adjustments",
    ),
    "replay": (
        "placebo_flipped",
        "Allowed for: # looks at this symbol so far.",
        "Seeing # R a trade takes about # trades",
        "p of all looks",
        "discordant ticks",
        "won flips",
        "A signal that lost more than 1 R is false by the first success criterion",
        "trades at exactly 1 R (a stop filled at its price) are counted under 1 R or more only.",
        "A gate that vetoes as many by lot would come to # R",
        "No placebo of its own: l1 and budget.",
        "What a confidence word is worth",
        "that is not to be told from a coin (Brier # against #)",
        "longest, days",
    ),
    "cli": (
        "Let the desk know L1's win rates (--teach)",
        "Judge a replay as if its desk had been another",
        "Change the future and report every score that moved",
        "Put the backup PATH in the place of the desk's database",
        "Promoted when the residual IC is above 0 with its whole interval",
    ),
}
"""The sentences by the part of the product on which they stood."""

LABELS: tuple[str, ...] = (
    "Fresh", "Pace", "Odds", "Desk", "Thesis", "Undecided", "Weakened", "Went wrong", "Came true",
    "Rung", "Gate", "Consensus", "R", "ATR", "Drift", "Size",
)  # fmt: skip
"""Single words of the lists that stay as labels."""

NUMBER = r"[+\-−]?[\d.,:]+"


@cache
def pattern(sentence: str) -> re.Pattern[str]:
    """Return what finds a sentence in the text of a page, whatever its numbers and spaces."""
    words = re.escape(" ".join(sentence.split())).replace(r"\ ", r"\s+")
    return re.compile(words.replace(r"\#", NUMBER).replace("#", NUMBER).replace("…", r".{0,60}?"))


def wanted() -> tuple[str, ...]:
    """Return the sentences that no page may show outside of a fold."""
    return tuple(one for found in QUOTED.values() for one in found)
