"""What the tables of a replay ask, in a trader's words, and what the heads of their columns mean.

A table's own title and sentence are exact, and stand behind "How this is computed"; in front of
them stands the question of this module. A table that it does not know is another program's, and is
shown as that program wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

ASKED: Final[Mapping[str, str]] = {
    "claims": "Does anyone's result stand out from luck?",
    "arms": "Every figure of everyone who traded",
    "openings": "How often did each want to trade, and what was refused?",
    "placebos": "Do the agents beat the same answers given where they mean nothing?",
    "random-entries": "Would entries by lot, with the same stops and targets, have done as well?",
    "discordant": "Where agents changed the verdict, did the change pay?",
    "paired-days": "Day by day: what did agents add to L1, or take away?",
    "memory": "Did the trades that lessons spoke for come to more than the others?",
    "memory-twins": "What did a memory add to a desk, or take away?",
    "sharpe": "How large is the result beside its ups and downs (Sharpe ratio)?",
    "gate": "Did the trades that gate, trader or judge refused deserve it?",
    "information": "Did an agent's answers tell where the price went, beyond what L1 knew?",
    "information-by-regime": "The same in quiet, trending and volatile markets",
    "attribution": "What did each analyst add by moving the scores?",
    "attribution-verdicts": "What did each analyst add by changing verdicts?",
    "calibration": "Was an agent that said “high” right more often?",
    "calibration-horizons": "Were reports right over the time that they speak for?",
    "calibration-judge": "Did the judge win as often as it said that it would?",
    "swarm-experts": "Which experts had something to say, and what was vetoed or made smaller?",
    "firm": "Whom did the manager name, and what did the trader decline?",
    "activity": "How often did each agent answer, and does it lean to one side?",
    "restraint": "How much of what agents wanted did the gate let through?",
    "pivotal": "What is lost by asking agents only where they could change a verdict?",
    "criteria": "Which of the goals that were set beforehand are met?",
    "states": "How long did the market stay bullish, neutral or bearish?",
    "power": "Which questions can a sample of this size answer at all?",
    "sweep": "Which settings came to what?",
    "walk-forward": "Chosen on the past: what did the choice earn afterwards?",
    "overfitting": "How likely is the best only the luckiest?",
    "deflated-sharpe": "What is left of the best after all that was tried?",
}
"""The question of each table, by its name."""

OPEN: Final = frozenset(("sweep",))
"""Tables that are the result itself, and stand unfolded."""

MEANT: Final[Mapping[str, str]] = {
    "arm": "who traded, as programs call it: l1 is the bars alone, budget and full are the desks, "
    "placebo_ begins those with answers that mean nothing",
    "size": "mean share of a full order that gate, conviction and a swarm's budget left, 0 to 1",
    "hit rate": "share of the trades that won, with its 95 % interval",
    "R a trade, net": "mean result of a trade after all costs; 1 R is what the stop puts at risk",
    "R a trade": "mean result of a trade; 1 R is what the stop puts at risk",
    "95 % interval": "where the true mean lies, with 95 % confidence",
    "profit factor": "all gains over all losses; below 1 it lost",
    "longest, days": "days until the account was as high again, the longest time",
    "lots a month": "lots opened and closed in a month",
    "in the market": "share of closes with a position open",
    "lost more than 1 R": "trades that lost more than their stop allowed (a gap or slippage)",
    "lost 1 R or more": "those, and trades that were stopped at their price",
    "p": "how often chance alone does as well: 0.05 is one time in twenty",
    "p of all looks": "the same, allowing for everything that was tried on this symbol",
    "p, Holm": "the same, allowing for all lines of this table",
    "p, false discovery": "the same, allowing that some of the lines found are chance",
    "q": "the same, allowing that some of the lines found are chance",
    "edge": "whether the result stands out from luck after all of this",
    "changed": "ticks on which the verdict differs from that of L1",
    "counted": "those whose outcome is known; a run of them counts once",
    "won": "changes whose direction paid more than that of L1 would have",
    "lost": "changes whose direction paid less",
    "mean worth, ATR": "what a change was worth on average, in average ranges of a bar",
    "signals": "trades, and openings that were vetoed; of a trader those that it was asked about",
    "vetoed": "trades that the gate refused",
    "vetoed or declined": "trades that the gate, or in its row the trader, refused",
    "R each": "what a refusal was worth on average; 1 R is what the stop puts at risk",
    "by lot, R": "what as many refusals by lot would have come to",
    "IC": "how well an answer went with the move that followed: 0 is nothing, 1 is all",
    "IC 4 bars": "how well an answer went with the move of the next 4 bars: 0 nothing, 1 all",
    "Shapley": "an analyst's part of what all of them added, fairly shared",
    "trust used": "how much the synthesis believes this word",
    "trust earned": "how much it deserved here",
    "at bound": "share of answers as large as the role allows",
    "ungrounded": "share of answers whose numbers did not fit what the agent saw",
    "deflated": "chance that the result is truly above 0, after all that was tried",
    "above 0, deflated": "chance that the result is truly above 0, after all that was tried",
    "Sharpe": "yearly result over its ups and downs",
    "Sharpe a year": "yearly result over its ups and downs",
    "difference, % of capital": "what the days with agents came to less those without",
    "best placebo, %": "the best of the answers that mean nothing",
    "memory spoke for the side": "thirds of the openings, by what like trades had come to",
    "draws as good": "how many of the random draws did as well",
}
"""What a column's head means, where the head alone does not say it."""


def meant(columns: Iterable[str]) -> list[tuple[str, str]]:
    """Return the columns that want a word, each with it."""
    return [(name, MEANT[name]) for name in columns if name in MEANT]
