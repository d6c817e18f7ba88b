"""The evidence of one tick beside its citations: who was shown each feature, and who cites it.

A citation is judged as the overlay judges it (agents.evidence): equal within 1 %, off, or absent
from the evidence. The evidence is the record's, plus what a sitting adds to it: the four scores,
and for the gate the ruling of its rules. Every feature has an anchor on the page to which its
citations link, so no script is needed. Pure functions; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Final, NamedTuple

from agents import risk_gate
from agents.contracts import (
    VECTORS,
    DebateContext,
    Evidence,
    Feature,
    GateRuling,
    Role,
)
from agents.debate import swarm as boards
from agents.debate.deliberation import Consulted
from agents.evidence import grounded
from agents.features import FEATURES, name_of
from agents.registry import AGENTS, SCORER, TRADER
from scoring_rubric import shown_features
from torra.exhibits import figures
from torra.tick.marks import GATE
from torra.tick.tick_record import DebateRecord, SwarmRecord, TickRecord, is_gate
from torra.tick.words import swarm_words

EQUAL, OFF, ABSENT = "equal", "off", "absent"
"""The three judgements of a citation."""

GLYPHS: Final = {EQUAL: "✓", OFF: "≠", ABSENT: "✕"}
"""Glyph of each judgement: as in the evidence, off by more than 1 %, not there."""

NONCE: Final = "0123456789abcdef"
"""Stand-in for the random word of a prompt: without such a word an agent is shown less."""

CODE_LETTERS: Final = 2

UNGROUNDED: Final = "ungrounded"
"""Flag of a report that cites what is not so."""

ORDER: Final = "order"
"""Block of the order that a trader is asked about (torra.tick.thesis)."""


class CitationCheck(NamedTuple):
    """A citation with its judgement, and the feature that it names, None where there is none."""

    id: str
    value: str | float | None
    state: str
    feature: Feature | None
    anchor: str

    @property
    def glyph(self) -> str:
        """The glyph of its judgement."""
        return GLYPHS[self.state]

    @property
    def text(self) -> str:
        """Its value as it is cited."""
        return figures.format_any(self.value)


def evidence(record: TickRecord) -> dict[str, Feature]:
    """Return every feature that an agent of the sitting may have been shown, by id."""
    rows = {f"scores.{name}": Feature(f"scores.{name}", record.l1[name]) for name in VECTORS}
    rows |= {row.id: Feature(row.id, row.value, row.unit) for row in record.features if row.id}
    if any(is_gate(report) for report in record.deliberation.reports):
        rows |= _of_the_gate(record.deliberation)
    rows |= _of_the_board(record.deliberation.swarm)
    return rows | _of_the_trader(record.deliberation.consulted)


def judge(name: str, value: str | float | None, features: Mapping[str, Feature]) -> str:
    """Return the judgement of a citation against the evidence: equal, off or absent."""
    feature = features.get(name)
    if feature is None or feature.value is None:
        return ABSENT
    return EQUAL if grounded([Evidence(name, value)], features) else OFF


def anchors(names: Iterable[str]) -> dict[str, str]:
    """Return an anchor for each feature: readable where the id allows it, and never twice."""
    used: dict[str, str] = {}
    for name in dict.fromkeys(names):
        base = "feature-" + re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:60]
        # two ids may differ only in characters that an anchor cannot have
        free = chain([base], (f"{base}-{number}" for number in count(len(used))))
        used[next(anchor for anchor in free if anchor not in used)] = name
    return {name: anchor for anchor, name in used.items()}


def check_citations(
    items: Iterable[Evidence], features: Mapping[str, Feature], anchors: Mapping[str, str]
) -> list[CitationCheck]:
    """Return the citations of a report, each with its anchor and its judgement."""
    return [
        CitationCheck(
            name, item.value, judge(name, item.value, features), features.get(name), anchors[name]
        )
        for item in items
        for name in [str(item.id)]
    ]


def shown_to(name: str, features: Mapping[str, Feature]) -> dict[str, Feature]:
    """Return the features that the prompt of a role lists (scoring_rubric.shown_features).

    A profile may hide the Markov state or the history from all of them; the prompt tells.
    """
    role = role_of(name)
    if role is None:
        return {}
    context = DebateContext("", "", "", "", {}, features=features, nonce=NONCE)
    shown = shown_features(context, role)
    # these are among the features for the page; only the gate, or the trader, was given them
    others = {"gate", ORDER} - {{GATE: "gate", TRADER.role.id: ORDER}.get(name, "")}
    return {k: v for k, v in shown.items() if v.block not in others}


def role_of(name: str) -> Role | None:
    """Return the role of an agent by its id, None for one that a host brought."""
    if name == SCORER.id:
        return SCORER
    seat = TRADER if name == TRADER.role.id else AGENTS.get(name)
    return None if seat is None else seat.role


def codes(names: Sequence[str]) -> dict[str, str]:
    """Return a code for each agent, the shortest that keeps them different."""
    short: dict[str, str] = {}
    for name in names:
        title, letters = figures.title(name), CODE_LETTERS
        while title[:letters] in short.values() and letters < len(title):
            letters += 1
        short[name] = title[:letters]
    return short


def _of_the_trader(trader: Consulted | None) -> dict[str, Feature]:
    """Return what the trader was told of the order, as far as the record tells.

    Its levels are not recorded: they are those that it cites, where its citations were found true.
    """
    if not trader:
        return {}
    report = trader.report
    cited = () if report is None or UNGROUNDED in report.flags else report.evidence
    order = {item.id: item.value for item in cited if item.id and item.id.startswith(f"{ORDER}.")}
    order |= {f"{ORDER}.side": trader.side, f"{ORDER}.conviction": trader.conviction}
    return {name: Feature(name, value) for name, value in order.items()}


def _of_the_gate(deliberation: DebateRecord) -> dict[str, Feature]:
    """Return the features by which the gate's agent is told the ruling of its rules."""
    rule, spread = deliberation.rule_ruling, deliberation.panel.spread
    ruling = GateRuling(rule.multiplier, rule.veto, rule.reasons)
    features = risk_gate.as_features(ruling, max(spread.values(), default=0.0), "")
    if not spread:
        # the 0.0 above was never measured
        del features["gate.analyst_spread"]
    return features


def _of_the_board(swarm: SwarmRecord | None) -> dict[str, Feature]:
    """Return the features by which a judge is told the board."""
    if swarm is None or not swarm.board.stands:
        return {}
    return boards.as_features(swarm.board, "")


def feature_name(feature: str) -> str:
    """Return what people call a feature; empty where the table of words does not know it."""
    if feature in FEATURES:
        return name_of(feature)
    return swarm_words.BOARD_FEATURES.get(feature, "")
