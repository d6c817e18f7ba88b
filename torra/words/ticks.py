"""The words of a tick: verdict, action, source, regime, agents, flags, and what could not be read.

One row for each value, read by pages, help, notices, commands and docs; no other module has words
for these values (tests/house/test_one_wording.py). What a regime and an odd bar are measured by
stands in `market`, beside its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agents.contracts import VECTORS, GateReason, OfficerReason
from torra.words.badge import Badge, Remedy, capital

SIZE_IN_OUTAGE: Final = "an opening has at most agents.outage_size of its size"

SOURCES: Final[Mapping[str, Badge]] = {
    "AGENT_FULL": Badge(
        "●", "full desk", "note", "every agent of the full desk answered or abstained"
    ),
    "AGENT_BUDGET": Badge(
        "●", "budget desk", "note", "every agent of the budget desk answered or abstained"
    ),
    "AGENT_FIRM": Badge("●", "the firm", "note", "every agent of the firm answered or abstained"),
    "AGENT_SWARM": Badge(
        "●", "the swarm", "note", "every agent of the swarm answered or abstained"
    ),
    "AGENT_CUSTOM": Badge(
        "●", "chosen desk", "note", "every agent that the profile names answered or abstained"
    ),
    "AGENT_PARTIAL": Badge(
        "◐", "part of the desk", "warn",
        "some agents gave no answer; the others were used, and nothing was made up for the rest",
        "Calls below say what each of them met; Health tells whether a vendor is down.",
    ),
    "LEGACY": Badge(
        "◐", "one model", "warn",
        "no agent was heard; one model scored the chart instead, within ±0.30 of L1 and under the "
        f"rules of the gate; {SIZE_IN_OUTAGE}",
        "Health tells whether a vendor is down.",
    ),
    "L1_ONLY": Badge(
        "○", "bars alone", "warn",
        "no agent was heard, so the scores are those of L1, bit for bit; the rules of the gate "
        f"held, and {SIZE_IN_OUTAGE}",
        "Health tells whether a vendor is down, Cost whether the hour's ceiling is reached.",
    ),
    "AGENT_SKIPPED": Badge(
        "○", "nobody asked", "flat",
        "the agents were not asked: no answer could have changed this verdict",
        "A sample of such ticks is asked all the same; agents.call_policy in the profile decides.",
    ),
}  # fmt: skip
"""Who stands behind the scores of a tick (agents.contracts.SourceType)."""

WITHOUT_SOME: Final = {name: source for name, source in SOURCES.items() if source.tone == "warn"}
"""Sources of ticks on which some agents, or all, gave no answer."""

REGIMES: Final[Mapping[str, Badge]] = {
    "trend_up": Badge("↗", "trend up", "up", "a trend up"),
    "trend_down": Badge("↘", "trend down", "down", "a trend down"),
    "range": Badge("↔", "range", "flat", "a range"),
    "volatile": Badge("≋", "volatile", "warn", "a volatile market"),
    "quiet": Badge("∼", "quiet", "flat", "a quiet market"),
}
"""The kinds of market, and what each is in a sentence; `market.REGIMES` has their measure."""

BADGES: Final[Mapping[str, Badge]] = {
    "BUY": Badge("▲", "BUY", "up"),
    "SELL": Badge("▼", "SELL", "down"),
    "HOLD": Badge("■", "HOLD", "flat"),
    "OPEN_BUY": Badge("▲", "open long", "up"),
    "OPEN_SELL": Badge("▼", "open short", "down"),
    "CLOSE": Badge("◆", "close", "note"),
    "REVERSE": Badge("⇄", "reverse", "note"),
    "LONG": Badge("▲", "LONG", "up"),
    "SHORT": Badge("▼", "SHORT", "down"),
    **SOURCES,
    "ACTIVE": Badge("●", "ACTIVE", "note"),
    "REDUCING": Badge("◐", "REDUCING", "warn"),
    "HALTED": Badge("⊘", "HALTED", "alert"),
    "STOPPED": Badge("○", "STOPPED", "warn"),
    "VETO": Badge("⊘", "VETO", "alert"),
    "DECLINED": Badge("⊘", "DECLINED", "alert"),
    "DEGRADED": Badge("◍", "DEGRADED", "warn"),
    "pending": Badge("·", "pending", "flat"),
    "running": Badge("◔", "in progress", "note"),
    "done": Badge("●", "done", "note"),
    "answered": Badge("●", "answered", "note"),
    "abstained": Badge("○", "abstained", "flat", "without penalty (they leave every average)"),
    "failed": Badge("✕", "failed", "warn", "and what they would have said is missing"),
    "not asked": Badge("○", "not asked", "flat"),
    "skipped": Badge("·", "skipped", "warn"),
    **REGIMES,
    "UP": Badge("▲", "up", "up"),
    "DOWN": Badge("▼", "down", "down"),
    "NEUTRAL": Badge("■", "neutral", "flat"),
    "STRONG_BULLISH": Badge("▲▲", "strong bullish", "up"),
    "BULLISH": Badge("△", "bullish", "up"),
    "BEARISH": Badge("▽", "bearish", "down"),
    "STRONG_BEARISH": Badge("▼▼", "strong bearish", "down"),
}
"""Every state of a tick, of its agents and of the desk, by its stored name."""

VECTOR_NAMES: Final = {name: capital(name.replace("_", " ")) for name in VECTORS}
"""What the four scores are called."""

GATE_REASONS: Final[Mapping[str, str]] = {
    GateReason.STALE_DATA: "the newest bar is old",
    GateReason.THIN_DATA: "there are few bars",
    GateReason.WIDE_SPREAD: "the spread is wide",
    GateReason.HIGH_VOLATILITY: "volatility is high",
    GateReason.LOSING_STREAK: "the last trades lost",
    GateReason.OPEN_EXPOSURE: "other positions are open",
    GateReason.DISAGREEMENT: "the agents' numbers differ",
    GateReason.SESSION_END: "the session ends soon",
    GateReason.SCHEDULED_EVENT: "an event is near",
    GateReason.WEAK_CASE: "the case rests on little",
    GateReason.MODEL_JUDGEMENT: "the gate's agent judges so",
    OfficerReason.MACRO_PANIC: "other markets are in panic",
    OfficerReason.LIQUIDATIONS: "many positions are being liquidated",
    OfficerReason.EXHAUSTION: "the move looks exhausted",
    OfficerReason.CROWDED: "too many hold this side already",
    OfficerReason.NEGATIVE_EV: "the judge's odds do not pay",
    OfficerReason.JUDGE_HOLD: "the judge takes no side",
}
"""Why a gate cuts or vetoes, or a trader declines."""


FLAGS: Final[Mapping[str, str]] = {
    "thin_swarm": "fewer than two experts spoke: conviction is 0.50 at most",
    "unfalsified": "the judge names nothing that would prove it wrong: it counts little",
    "invented": "a finding was dropped that code does not find",
    "regime_disputed": "the reader names another regime than the code: the lower budget counts",
    "late": "answered after its stage was over: recorded, not used",
    "silent": "a rule of the gate had nothing to read and stayed silent",
    "second_look": "second look: this is its second answer, as the first was unsure",
    "first_look_stands": "first look stands: a second one was tried and brought no good answer",
    "shortened": "numbers from beside the chart were left out of its prompt: no room",
    "standing": "what the seats' past came to had not been counted yet, so nobody was told",
    "degraded": "too few analysts reported",
    "budget": f"nobody was asked: the hour's ceiling left nothing to spend; {SIZE_IN_OUTAGE}",
    "not_asked": "nobody was asked: this desk has nobody to ask",
    "ladder": "the ceiling is near: a smaller desk was asked",
    "pivotal_sample": "could not have changed the verdict; asked all the same, as a sample",
    "outage": f"no agent was heard: {SIZE_IN_OUTAGE}",
    "all_abstained": "every agent that was asked abstained: none failed",
    "shadow": "recorded, not counted: the bars alone decided",
    "threads_exhausted": "too many calls that never came back were still running",
    "reserve_failed": "the ledger could not be written, so nothing was spent",
    "event_failed": "whoever watched was not sent an event",
    "fallback_failed": "the single-model scorer gave no answer either",
    "picture": "the chart could not be shown to the agents",
    "events": "the calendar may miss what comes",
    "usage_implausible": "its server counted no tokens, or more than there can be: the most that "
    "it could cost is counted",
    "no_thesis": "the opening goes without a thesis",
    "memory": "lessons of earlier trades came too late, or could not be ranked",
}
"""What a flag of a debate means, by the word before the colon; up to its colon it is brief."""

UNHEARD: Final[Mapping[str, Remedy]] = {
    "budget": Remedy(
        "no agent was asked", "Cost shows who spent it, and when the hour is free again."
    ),
    "not_asked": Remedy(
        "no agent was asked", "agents.provider in the profile names who answers; rules need no key."
    ),
    "threads_exhausted": Remedy("no agent could be asked"),
    "all_abstained": Remedy("every agent abstained", "Their reasons stand below."),
}
"""Why no agent was heard, as a clause of the tick's sentence, by flag; else none answered."""

EXPERT_CUTS: Final[Mapping[str, str]] = {
    "ungrounded": "it cites what is not so",
    "unfalsified": "it names nothing that would prove it wrong",
}
"""Why a report's word counts less than it says (agents.evidence.trust), by flag."""

HORIZONS: Final[Mapping[str, str]] = {
    "bars_4": "4 bars",
    "bars_16": "16 bars",
    "session": "to the end of the day (UTC)",
    "days": "24 hours",
}
"""The time that a report speaks for (agents.contracts.Horizon)."""

NO_THESIS: Final[Mapping[str, str]] = {
    "deadline": "the deadline of the tick left no time to ask the trader",
    "budget": "the hour's ceiling left no money to ask the trader",
    "timeout": "the trader did not answer in time",
    "garbage": "the trader's answer could not be read",
    "wrong_symbol": "the trader wrote about another symbol",
    "refused": "the model of the trader refused to answer",
    "error": "the trader could not be reached",
    "blocked": "the trader's vendor is not asked for a while",
    "miss": "no answer of the trader was recorded",
    "threads_exhausted": FLAGS["threads_exhausted"],
}
"""Why an opening that the trader was to be asked about has no thesis, by its failure."""

STATUSES: Final[Mapping[str, Badge]] = {
    "available": Badge("", "known", "ok"),
    "off": Badge("", "no source named", "note", "switched off: agents.include_news"),
    "empty": Badge(
        "", "nothing known", "ok",
        "no headline: the sources answered, and nothing recent concerns this symbol",
    ),
    "stale": Badge("", "too old to count", "warn"),
    "not_yet": Badge(
        "", "not answered yet", "note", "not yet: the first round of collecting had not ended"
    ),
    "rate_limited": Badge("", "asked too often", "warn", "rate limited: tried again later"),
    "refused": Badge(
        "", "refused", "warn",
        "refused: the vendor does not take this key, sell it this data or know the symbol",
    ),
    "unreachable": Badge(
        "", "not reached", "warn", "unreachable: no source answered; tried again later"
    ),
    "broken": Badge(
        "", "cannot be read", "warn",
        "broken: what the sources answered could not be read; tried again later",
    ),
    "left_out": Badge("", "left out", "warn"),
    "no_key": Badge(
        "", "no key", "warn", "no key: set FINNHUB_API_KEY or ALPHAVANTAGE_API_KEY"
    ),
    "no_file": Badge(
        "", "no file", "warn", "no file: nothing is at the path news.file of the profile"
    ),
    "missing": Badge("", "no bars of it", "warn"),
    "unread": Badge("", "not read in time", "warn"),
    "late": Badge("", "late", "warn"),
    "clock": Badge("", "on another clock", "warn"),
}  # fmt: skip
"""The status of a block of numbers, in few words with its level; its meaning is that of news."""

CALENDAR: Final[Mapping[str, str]] = {
    "available": "",
    "off": "no calendar: name a file in events.calendar of the profile",
    "ended": "the calendar has ended: it lists nothing after this tick, so no event is seen "
    "coming; put a newer file in its place",
    "broken": "the calendar cannot be read; the last good one is used",
    "broken_ended": "the calendar cannot be read, and the last good one lists nothing any more, so "
    "no event is seen coming",
}
"""What is wrong with the calendar, by torra.evidence.scheduled_events.EventView.status."""

SESSIONS: Final[Mapping[str, str]] = {
    "ASIA": "Asia",
    "LONDON": "London",
    "LONDON_NY_OVERLAP": "London and New York",
    "NEW_YORK": "New York",
    "CLOSED": "the weekend",
}
"""The sessions of the day."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "number_unknown": "a number that is no fact of the trade",
    "orders": "an order to whoever reads it",
    "letters": "letters or marks that no plain sentence has",
    "other_market": "the name of another market",
    "too_long": "more than three sentences",
}
"""Why a sentence of a model was left out of a lesson, by its flag."""

FLOW: Final[Mapping[str, Remedy]] = {
    "available": Remedy("that of the newest bar is there"),
    "no_file": Remedy(
        "the Expert Advisor writes none",
        "Compile and attach mql5/TorraBridge.mq5 anew, with its input write_flow on.",
    ),
    "broken": Remedy(
        "what was counted cannot be used", "The desk's log says what is wrong with it."
    ),
    "unreachable": Remedy("it did not come within a tenth of a second, and ticks go on without"),
    "not_yet": Remedy("that of the newest bar is not there yet"),
    "stale": Remedy(
        "nothing has been counted for a while",
        "Is the terminal connected? After a slow answer of the broker the Expert Advisor leaves a "
        "symbol's ticks alone for an hour.",
    ),
    "left_out": Remedy("the bar was left out: some of its ticks were missing"),
}
"""Why the order flow of a bar is not known, by the status of its block."""

NO_NUMBER: Final[Mapping[str, str]] = {
    "off": "The profile names no source for it: add one to outside.sources.",
    "not_yet": "{who} had not answered yet: nothing is wrong.",
    "rate_limited": "{who} answered no more for a while, and is asked again.",
    "refused": "{who} refused to answer: torra doctor says what to mend.",
    "no_key": "{who} is asked by those alone who name a contact: torra doctor says how.",
    "unreachable": "{who} could not be reached, and is asked again. A file brings it too: "
    "torra data import FILE.",
    "broken": "{who} sent what cannot be read, and is asked again. A file brings it too: "
    "torra data import FILE.",
}
"""Why a number from beyond the chart is not known, and what to do, by the status of its block."""

NO_COMPANION: Final[Mapping[str, str]] = {
    "missing": "The feed has no bars of it: the page on outside numbers says what it needs.",
    "unread": "It was not read in time, and the tick did not wait.",
    "late": "Its bar of this close had not come yet.",
    "stale": "No bars of it come now: its market is closed, or its bars have stopped.",
    "clock": "Its bars are on another clock than the channel's.",
    "broken": "Its bars were refused: Health says why.",
}
"""Why nothing is known of a related symbol (torra.evidence.companion_readings.Lack)."""

OFFICER_EFFECTS: Final[Mapping[str, str]] = {
    OfficerReason.MACRO_PANIC: "lowers",
    OfficerReason.LIQUIDATIONS: "lowers",
    OfficerReason.EXHAUSTION: "lowers",
    OfficerReason.CROWDED: "vetoes a side",
    OfficerReason.NEGATIVE_EV: "vetoes the judge's side",
    OfficerReason.JUDGE_HOLD: "vetoes openings",
}
"""What each reason of the risk officer or the judge does."""

VETOERS: Final[Mapping[str, str]] = {
    OfficerReason.NEGATIVE_EV: "judge's chance (NEGATIVE_EV)",
    OfficerReason.JUDGE_HOLD: "judge's hold (JUDGE_HOLD)",
    OfficerReason.CROWDED: "row of a crowded side (CROWDED)",
}
"""Who vetoes by each of these reasons."""

MEASURED: Final[Mapping[str, tuple[str, str]]] = {
    GateReason.WIDE_SPREAD: ("market.spread_atr", "the spread is {} ATR"),
    GateReason.THIN_DATA: ("market.valid_bars", "{} valid bars"),
    GateReason.STALE_DATA: ("market.bar_age", "the newest bar closed {} bars ago"),
}
"""The feature that each rule of the gate measures, and the sentence with its value."""

ROLES: Final[Mapping[str, str]] = {
    "ACTIVE": "runs the ticks",
    "STOPPED": "does not run",
    "HOSTED": "your scorer",
}
"""What a desk's role means: the word ACTIVE alone reads like the trading state beside it."""
