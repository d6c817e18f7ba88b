"""The words of the desk: each with a line for a trader and, where it helps, the exact sentence.

This is the one place where a word is explained. The page Help lists it, labels of other pages open
their entry from here, and the features of the evidence come from their own table
(agents.features), which is not written down a second time. A line has the subject first and
one idea; `exact` is what the code does, and stands behind "How this is computed" wherever it is
shown. Pure values and functions; a word without an entry raises KeyError, so that a page that
promises an explanation has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent_config import LEANING_SHARE, NONE_COST, OPPOSITION_COST, REGIME_BUDGET
from agents.contracts import ADJUSTMENT_BOUND, BLEND_WEIGHT
from agents.features import FEATURES, label_of, meaning_of

NOT_A_SLUG: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A word with its explanation; `exact` and `anchor` are empty where they are not needed."""

    term: str
    line: str
    exact: str = ""
    anchor: str = ""

    @property
    def slug(self) -> str:
        """The word as the end of an address."""
        return self.anchor or NOT_A_SLUG.sub("-", self.term.lower()).strip("-")


SCORES: Final = (
    Entry("Tick", "The work on one closed bar: scores, argument, decision."),
    Entry(
        "L1",
        "The scores that arithmetic makes of the bars, before any agent speaks.",
        "Four vectors, price action, key levels, momentum and structure, each from −1 to +1.",
    ),
    Entry(
        "Without agents",
        "What the bars alone would have decided, with nobody asked.",
        "Verdict and consensus of L1 alone. They stand beside every tick: measured, never sent.",
    ),
    Entry(
        "Composite",
        "All scores of one timeframe in one number.",
        "Σ weight × score / Σ weight, over the four blended scores and the record score.",
    ),
    Entry(
        "Consensus",
        "Where all timeframes stand together, from −1 (bearish) to +1 (bullish).",
        "The weighted mean of the fresh composites of all timeframes; past a threshold it is a "
        "verdict.",
    ),
    Entry("Threshold", "How far the consensus must go before it means buy or sell."),
    Entry("Verdict", "What the consensus asks for: buy, sell or hold."),
    Entry("Action", "What the desk did about it: opened, closed, or nothing."),
    Entry(
        "Weight",
        "How much say a score or a timeframe has beside the others.",
    ),
    Entry(
        "Range score",
        "Where the price stands between the highest and the lowest price that the desk knows.",
        "Towards +1 at the record high, towards −1 at the record low, 0 far from both, over the "
        "longest history of the timeframe. Ticks of before knew the record high alone; they call "
        'it ATH: +1 at it, −1 far below it. A profile with record_score "high" still does.',
    ),
    Entry(
        "Source",
        "Which agents stand behind the scores of a tick.",
    ),
    Entry(
        "Regime",
        "What kind of market it is: trending, ranging, volatile or quiet.",
        anchor="word-regime",
    ),
    Entry(
        "Markov state",
        "Whether the consensus is bullish, neutral or bearish, in five steps.",
        "It is the state of this desk's own consensus, not of the price. How often it went from "
        "one state to the next is counted on the ticks of this stream.",
    ),
    Entry(
        "Agreement of both bounds",
        "An opening must also hold if the gate had counted less, and if it had counted fully.",
        "Low and high consensus: what the consensus may come to for the least and the greatest "
        "multiplier of the gate. An opening must stand in both.",
    ),
)

AGENTS: Final = (
    Entry(
        "Abstained",
        "The agent had nothing to judge and said so; most often there was no news.",
        "It scores nothing, leaves every average and is not held against anybody.",
    ),
    Entry("Failed", "The agent was asked and gave no usable answer. Its opinion is missing."),
    Entry(
        "Not asked",
        "The agent has a seat and was left out; mostly too few others had answered.",
    ),
    Entry(
        "DEGRADED",
        "Too few analysts answered for a debate, so bull and bear were not asked.",
        "Of a desk with four or more analysts. An abstention counts as a report. The number is "
        "agents.quorum of the profile.",
    ),
    Entry(
        "Confidence",
        "How sure an agent says it is: high, medium or low.",
        "As the trust k that the synthesis multiplies its words by: 1.0, 0.75, 0.5.",
    ),
    Entry(
        "Trust",
        "How much of an agent's word counts.",
        "k is 1.0 for high confidence, 0.75 for medium, 0.5 for low, times 0.3 when a report "
        "cites evidence that does not exist or is wrong by more than 1 %.",
    ),
    Entry(
        "Push",
        "Which way an agent's own words lean: above zero up, below zero down.",
        "Its adjustments, by its trust, its focus and the weights of the four scores. An analyst "
        "that takes a little off a bullish score pushes down. Ticks of before the fifth rules "
        "show a stance in its place: the scores of L1 with the adjustments, averaged.",
        "stance-side",
    ),
    Entry(
        "Second look",
        "An unsure agent was asked once more.",
        "If time and budget allow. A good second answer replaces the first; else the first stands.",
    ),
    Entry(
        "Proved wrong by",
        "What a researcher says would show that its case was wrong. Watch for it.",
    ),
    Entry(
        "Ordinals",
        "Whole numbers in which the news agent sums up the headlines.",
        "Relevance, sentiment, price impact, trend, confidence of investors, change of risk. "
        "Others see these and never a headline.",
    ),
    Entry(
        "Spread",
        "How far the analysts lie apart on one score. A wide one makes the trade smaller.",
        "On one score, the highest adjustment of an analyst less the lowest. A wide one lowers "
        "the gate's multiplier.",
    ),
    Entry(
        "Opposition",
        "Of the analysts that take a side, how many are against the trade.",
        "The share of those that push at all which pushes against an opening. Abstainers and the "
        "neutral dilute nothing: one against, and three that abstain, is full opposition.",
    ),
    Entry(
        "Dissent",
        "Of everything that was said, how much speaks against the trade.",
        "Of all that analysts and researchers push, either way, the share that pushes against an "
        "opening.",
    ),
    Entry(
        "Conviction",
        "How far the agents stand behind a trade, not its chance to win. It makes the trade "
        "smaller, never larger.",
        f"Raw: the mean trust of the analysts and of the surer researcher; who pushes against the "
        f"opening, or failed, lends 0. Kept: raw × (1 − {OPPOSITION_COST:.2f} × the greater of "
        f"opposition and dissent), and at most {LEANING_SHARE:.2f} × raw where the agents as a "
        "whole push against it. None heard: no conviction, deterministic size.",
    ),
    Entry(
        "Adjustment",
        "How far the agents moved a score.",
        f"The debate × the gate's multiplier, within ±{ADJUSTMENT_BOUND:.2f}. The blend keeps "
        f"{BLEND_WEIGHT:.0%} of it.",
    ),
    Entry(
        "Blended score",
        "The score that counts: mostly the bars, a fifth of it the agents.",
        f"{1 - BLEND_WEIGHT:.2f} L1 + {BLEND_WEIGHT:.2f} agent score.",
    ),
)

FIRM: Final = (
    Entry(
        "Research manager",
        "Reads bull and bear, says whose case is stronger, and how much each case counts.",
        "Its weights, 0 to 1, multiply what each researcher asks for. Its word can lower the "
        f"conviction in a trade, never raise it: the other side takes {OPPOSITION_COST:.0%}, no "
        f"side {NONE_COST:.0%} (agents.none_cost) where an analyst objects, else nothing. Of desks "
        "of the mode firm.",
    ),
    Entry(
        "Weight of a case",
        "How much of a researcher's case counts, from 0 (nothing) to 1 (all of it).",
        "Set by the research manager. Without one both cases count in full.",
    ),
    Entry(
        "Trader",
        "Writes why an opening is made and what would end it, or declines it. It makes no trade.",
        "Asked alone, only where an opening would stand. A decline holds on that side like a veto.",
    ),
    Entry(
        "Escalation",
        "Whether the trader's question goes to the models of the chief tier, not the deep one.",
        "When agents.escalation of the profile says so: by conviction, where the agents alone "
        "decide the verdict, or never.",
    ),
    Entry("Horizon", "The time for which an agent's words are meant."),
)

_BUDGETS: Final = ", ".join(
    f"{name.replace('_', ' ')} {share:.0%}" for name, share in REGIME_BUDGET.items()
)

SWARM: Final = (
    Entry(
        "Budget",
        "How much of an opening's size the regime leaves.",
        f"{_BUDGETS}; the reader can only lower it, also by naming another regime. Of "
        "budget, volatility, panic and liquidations the smallest counts, not the product.",
    ),
    Entry(
        "Weight of an expert",
        "How much an expert's word counts beside the others in this regime, from 0.25 to 1.",
        "By the length of the bars and by the regime. Whom the reader has go first counts 1, the "
        "others 0.8 of what they did. It multiplies the focus in the analysts' average.",
    ),
    Entry(
        "Board",
        "Who of the experts stands where, side by side. Code makes it, no agent does.",
        "Stance: Σ f a / Σ f of an expert, in ±0.30. Together: Σ weight × trust × stance. A larger "
        "dot counts more; the dashed line is where they stand together.",
    ),
    Entry(
        "Conflict",
        "Two experts that clearly lean opposite ways, and what would settle it.",
        "Both at least 0.05 from zero; strength is trust × trust × the distance between them. At "
        "most three are kept.",
    ),
    Entry(
        "Judge",
        "Reads all experts and the board, takes a side or none, and argues against itself.",
        "It may move a score by 0.15. It can lower the conviction and veto its own side, never "
        "make an opening. One that cannot be proved wrong counts little.",
    ),
    Entry("Counter", "The best case against the judge's own side, by the judge itself."),
    Entry(
        "Expected value",
        "What a trade of the judge's side brings on average, in R, if its chance is right.",
        "chance × reward − (1 − chance) × 1 R − cost. The chance is the lower of what the judge "
        "says and what came of it before. At 0 or below, openings of that side are vetoed.",
    ),
    Entry(
        "Break-even",
        "The chance of reaching the target from which a trade pays on average.",
        "(1 + cost) / (1 + reward), all in R.",
    ),
    Entry(
        "Sweep",
        "A move beyond an earlier high or low that closes back inside: stops were taken there.",
    ),
    Entry("Pool", "Several highs or lows at nearly one price: many stops are likely to lie there."),
    Entry("Value area", "Where most was traded lately; the most traded price is its middle."),
    Entry("Channel", "Two parallel lines between which the price moved lately."),
    Entry("Delta", "Ticks up less ticks down, as a share of both: who was in a hurry."),
    Entry(
        "Risk officer",
        "Rules that make an opening smaller or stop one side in a panic, or where all are in.",
        "MACRO_PANIC, LIQUIDATIONS, EXHAUSTION, CROWDED, the regime's budget and the caps of "
        "leverage count from the first tick, also while the agents only look on. A rule without a "
        "source is silent, which is no fault.",
    ),
)

ORDERS: Final = (
    Entry(
        "Gate",
        "The check between the argument and the order: it may shrink a trade or stop it.",
        "The lower multiplier of its rules and its agent is in force. A veto stops an opening, "
        "never a close.",
    ),
    Entry(
        "Veto",
        "The gate forbids an opening; its reason names the rule.",
        "SCHEDULED_EVENT with the event, WIDE_SPREAD, THIN_DATA, STALE_DATA, or the gate agent's "
        "own. A veto that took an opening is latched: it holds on later ticks until the consensus "
        "leaves that side.",
        "which-veto",
    ),
    Entry(
        "Size of an opening",
        "What risk allows, made smaller by the gate and by weak conviction.",
        "The lots that risk allows × the gate's multiplier × the conviction, at a swarm × the "
        "budget of the regime. Scores are left alone.",
    ),
    Entry(
        "R",
        "The result in units of what was risked: −1 R is the loss at the stop, +2 R twice that.",
        "Result ÷ (distance from entry to the stop that was decided × lots). A fill worse than "
        "planned, or a gap, may lose more than 1 R.",
    ),
    Entry(
        "Support, resistance",
        "Price turned there before: below the close it is support, above it resistance. A level "
        "that price breaks changes its role.",
        "The nearest level at or below the close, and at or above it, among the 6 newest swing "
        "highs and 6 newest swing lows, at that bar. A side where none is left has none.",
    ),
    Entry("ATR", "The average range of a bar lately: how far the price usually moves in one bar."),
    Entry("Lots", "The size of a trade, in the broker's unit."),
    Entry("Drift", "How far the price has moved since the proposal, in average bar ranges."),
    Entry("Slippage", "How much worse the fill was than the planned price."),
    Entry("Signal", "An order that the desk wrote: to open, to close, to move a stop."),
    Entry("Proposal", "A trade that waits for your yes. Nothing is sent without it."),
    Entry("Position", "What is held now."),
    Entry(
        "Scheduled event",
        "A release of high impact for one of the symbol's currencies. Near one, nothing opens.",
        "A line of the calendar file; the reason of such a veto is SCHEDULED_EVENT.",
    ),
)

CHECKS: Final = (
    Entry("Desk", "Trading is on: neither halted nor reduced to closes."),
    Entry("Fresh", "The verdict is new, and this order was not sent before."),
    Entry("Market", "The market is open and its spread is normal."),
    Entry("Price", "The price of now is near the price that was decided on."),
    Entry("Levels", "Stop and target are on their right sides, and not too near or too far."),
    Entry("Size", "The lots fit the broker's steps and the risk of one trade."),
    Entry("Account", "The account can carry it: exposure, margin, positions, the day's loss."),
    Entry("Pace", "Trades do not follow each other too fast, and none after a loss too soon."),
    Entry(
        "Odds",
        "Trades like this one have not lost money on average so far.",
        "NEGATIVE_EV: the expected result from the win rate known for this side is below zero.",
    ),
)

THESIS: Final = (
    Entry(
        "Thesis",
        "Why a trade is made and what would end it; afterwards, whether that came true.",
        "Written by the trader of a firm, of an opening that would stand. It changes no number.",
    ),
    Entry("Strengthened", "The position is ahead of its plan."),
    Entry("Weakened", "The position is behind, or the trade ended near where it began."),
    Entry("Went wrong", "The trade lost: its plan did not come true."),
    Entry("Came true", "The trade won: its plan came true."),
    Entry("Undecided", "It is too early to say, or a person ended the trade."),
)

LESSONS: Final = (
    Entry(
        "Lesson",
        "What a closed trade came to, and words about it. Later ticks may be told of it.",
        "Facts are arithmetic and never change. Words are written by the rules at once, by a model "
        "later or never; code leaves out what is no fact. A lesson counts for ticks whose bar "
        "closes after it was known.",
    ),
    Entry(
        "On the way",
        "How far the trade stood against you at worst, and in your favour at best.",
        "In R, over the whole bars between fill and end, and the end itself. Also called MAE and "
        "MFE: maximum adverse and maximum favourable excursion.",
    ),
    Entry(
        "Surprise",
        "How far the result lies from what the plan was worth. A lucky win is a surprise too.",
        "|R − expected R|. Expected: p × planned R − (1 − p), where p is the chance to reach the "
        "target first without a drift, 1 ÷ (1 + planned R), pulled to the share of wins of a "
        "stored replay. Without one the plan is worth 0 R.",
    ),
    Entry(
        "Vetoed lesson",
        "An opening that the gate or the trader took away, followed on paper to its end. No order "
        "came of it.",
        "One for each stretch of vetoes of a side. It counts in no average of trades.",
    ),
    Entry(
        "Similar trades",
        "Of the closed trades in a market most like this one, at most 20: how many there are.",
        "Nearest by 16 numbers of the market at the opening, seen from the side of the trade. "
        "Share of wins: (wins + 2) ÷ (n + 4). Mean R: sum of R ÷ (n + 10). Below 5 neither is "
        "told.",
    ),
)

COSTS: Final = (
    Entry(
        "Ceiling",
        "The most that models may cost in any 60 minutes.",
        "It holds over every 60 minutes, not over the hour of the clock. Before a stage of a tick "
        "its worst case is set aside; what does not fit is not asked.",
        "word-ceiling",
    ),
    Entry(
        "Agent tier",
        "Which desk the rest of the hour can pay: all agents, fewer, or none.",
        "The largest of the profile's desks whose worst case fits what is left of the ceiling.",
    ),
    Entry(
        "Counted in full",
        "A request without an answer may be billed all the same, so it counts at its dearest.",
        "Kept at worst case until it leaves the 60 minutes.",
    ),
    Entry("Too late", "The answer came after its tick had gone on. It costs and counts nothing."),
)

NEWS: Final = (
    Entry(
        "Headline score",
        "How good or bad the words of a headline are, −1 to +1.",
        "What a finance dictionary makes of the words. It knows no irony.",
    ),
    Entry("Headline age", "The time since it was first seen here, whatever date it bears."),
    Entry(
        "Headline weight",
        "How much a headline still counts at its age.",
        "1 when new, half after one half-life (news.half_life_hours of the profile, 6 h unless "
        "set), a quarter after two.",
    ),
    Entry(
        "News score",
        "All headlines in one number; one old headline says little.",
        "Σ weight × score ÷ Σ weight, or ÷ 1 where the weights are less in sum.",
    ),
    Entry(
        "Calendar cannot be read",
        "The calendar file is broken. The last good one is used until it is mended.",
        "One that has ended knows of no event to come.",
    ),
)

DESK: Final = (
    Entry(
        "Desk time",
        "The time of the bars. In the demo it runs faster than your clock.",
        "An age is told in the desk's time, a wait in yours.",
    ),
    Entry("Data age", "How old the newest price is."),
    Entry(
        "Warm-up",
        "Ticks on bars from before the desk's first start. They fill its memory, on paper.",
    ),
    Entry("Shadow", "Agents are asked and recorded, and nothing they say counts."),
    Entry(
        "Job",
        "Work that takes minutes, such as a replay, done beside the desk one after the other.",
        "The same request is one job while it waits or runs. A job whose desk or process has gone "
        "is tried once more; a replay that you cancelled goes on where it was when it is asked "
        "for again.",
    ),
)

SECTIONS: Final[dict[str, tuple[Entry, ...]]] = {
    "Scores": SCORES,
    "Agents": AGENTS,
    "Manager and trader": FIRM,
    "The swarm": SWARM,
    "Orders": ORDERS,
    "Checks of an approval": CHECKS,
    "How a trade stands": THESIS,
    "Lessons": LESSONS,
    "Cost": COSTS,
    "News and calendar": NEWS,
    "Desk": DESK,
}
"""Every word but those of the evidence, in the order of the page Help."""


def entry(term: str) -> Entry:
    """Return the entry of a word; raises KeyError for a word without one."""
    return _by_term()[term.lower()]


def known(term: str) -> bool:
    """Return whether a word has an entry."""
    return term.lower() in _by_term()


def evidence() -> Iterator[Entry]:
    """Yield an entry for each feature that has a high and a low value, by its name for people."""
    for feature in FEATURES:
        meaning = meaning_of(feature)
        if meaning:
            label = label_of(feature)
            yield Entry(label[:1].upper() + label[1:], f"{meaning[:1].upper()}{meaning[1:]}.",
                        anchor=f"feature-{NOT_A_SLUG.sub('-', feature.lower())}")  # fmt: skip


@cache
def _by_term() -> dict[str, Entry]:
    return {one.term.lower(): one for section in SECTIONS.values() for one in section}
