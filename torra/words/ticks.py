"""The words of a tick: verdict, action, source, regime, agents, flags, and what could not be read.

One row of words.csv for each value, read by pages, help, notices, commands and docs; no other
module has words for these values (tests/house/test_one_wording.py). What a regime and an odd bar
are measured by stands in `market`, beside its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agents.contracts import VECTORS, GateReason
from torra.words.badge import badges, capital, remedies, texts

SOURCES: Final = badges("source")
"""Who stands behind the scores of a tick (agents.contracts.SourceType)."""

WITHOUT_SOME: Final = {name: source for name, source in SOURCES.items() if source.tone == "warn"}
"""Sources of ticks on which some agents, or all, gave no answer."""

REGIMES: Final = badges("regime")
"""The kinds of market, and what each is in a sentence; `market.REGIMES` has their measure."""

BADGES: Final = {
    **badges("verdict"), **SOURCES, **badges("state"), **REGIMES, **badges("lean"),
}  # fmt: skip
"""Every state of a tick, of its agents and of the desk, by its stored name."""

VECTOR_NAMES: Final = {name: capital(name.replace("_", " ")) for name in VECTORS}
"""What the four scores are called."""

GATE_REASONS: Final = texts("gate")
"""Why a gate cuts or vetoes, or a trader declines."""

FLAGS: Final = texts("flag")
"""What a flag of a debate means, by the word before the colon; up to its colon it is brief."""

UNHEARD: Final = remedies("unheard")
"""Why no agent was heard, as a clause of the tick's sentence, by flag; else none answered."""

EXPERT_CUTS: Final = texts("expert_cut")
"""Why a report's word counts less than it says (agents.evidence.trust), by flag."""

HORIZONS: Final = texts("horizon")
"""The time that a report speaks for (agents.contracts.Horizon)."""

NO_THESIS: Final = texts("no_thesis")
"""Why an opening that the trader was to be asked about has no thesis, by its failure."""

STATUSES: Final = badges("status")
"""The status of a block of numbers, in few words with its level; its meaning is that of news."""

CALENDAR: Final = texts("calendar")
"""What is wrong with the calendar, by torra.evidence.scheduled_events.EventView.status."""

SESSIONS: Final = texts("session")
"""The sessions of the day."""

LEFT_OUT: Final = texts("left_out")
"""Why a sentence of a model was left out of a lesson, by its flag."""

FLOW: Final = remedies("flow")
"""Why the order flow of a bar is not known, by the status of its block."""

NO_NUMBER: Final = texts("no_number")
"""Why a number from beyond the chart is not known, and what to do, by the status of its block."""

NO_COMPANION: Final = texts("no_companion")
"""Why nothing is known of a related symbol (torra.evidence.companion_readings.Lack)."""

OFFICER_EFFECTS: Final = texts("officer_effect")
"""What each reason of the risk officer or the judge does."""

VETOERS: Final = texts("vetoer")
"""Who vetoes by each of these reasons."""

MEASURED: Final[Mapping[str, tuple[str, str]]] = {
    GateReason.WIDE_SPREAD: ("market.spread_atr", "the spread is {} ATR"),
    GateReason.THIN_DATA: ("market.valid_bars", "{} valid bars"),
    GateReason.STALE_DATA: ("market.bar_age", "the newest bar closed {} bars ago"),
}
"""The feature that each rule of the gate measures, and the sentence with its value."""

ROLES: Final = texts("role")
"""What a desk's role means: the word ACTIVE alone reads like the trading state beside it."""
