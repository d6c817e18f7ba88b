"""The evidence of one tick beside its citations: who was shown each feature, and who cites it.

A citation is judged as the overlay judges it (agents.evidence): equal within 1 %, off, or absent
from the evidence. The evidence is the record's, plus what a sitting adds to it: the four scores,
and for the gate the ruling of its rules. Every feature has an anchor on the page to which its
citations link, so no script is needed. Pure functions; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypedDict

from agent_config import GROUNDING_TOLERANCE
from agents import risk_gate
from agents.contracts import (
    VECTORS,
    AgentReport,
    DebateContext,
    Evidence,
    Feature,
    GateRuling,
    Role,
)
from agents.debate import swarm as boards
from agents.debate.deliberation import Consulted
from agents.evidence import grounded
from agents.features import FEATURES, meaning_of, name_of
from agents.registry import AGENTS, SCORER, TRADER
from scoring_rubric import shown_features
from torra.dashboard.record.rows import Chip, Voice
from torra.exhibits import figures
from torra.tick.marks import GATE
from torra.tick.tick_record import DebateRecord, SwarmRecord, TickRecord, is_gate
from torra.tick.words import swarm_words

TOLERANCE: Final = f"{GROUNDING_TOLERANCE:.0%}".replace("%", " %")
"""How far a citation may lie from the evidence, in words."""

EQUAL, OFF, ABSENT = "equal", "off", "absent"
"""The three judgements of a citation."""

JUDGED: Final = {
    EQUAL: ("✓", "as in the evidence"),
    OFF: ("≠", f"off by more than {TOLERANCE}: ungrounded"),
    ABSENT: ("✕", "not in the evidence: ungrounded"),
}
"""Glyph and words of each judgement."""

NONCE: Final = "0123456789abcdef"
"""Stand-in for the random word of a prompt: without such a word an agent is shown less."""

CODE_LETTERS: Final = 2

UNGROUNDED: Final = "ungrounded"
"""Flag of a report that cites what is not so."""

ORDER: Final = "order"
"""Block of the order that a trader is asked about (torra.tick.thesis)."""


class Citer(TypedDict):
    """An agent that cites a feature; `value` is empty where it cites the evidence's."""

    who: str
    anchor: str
    glyph: str
    value: str


class CitedRow(TypedDict):
    """A cited feature, its name for people, what high and low mean, and who cites it."""

    key: str
    id: str
    name: str
    meaning: str
    anchor: str
    value: str
    unit: str
    there: bool
    by: list[Citer]


class Uncited(NamedTuple):
    """A feature that nobody cites, its name, and the codes of those that were shown it."""

    feature: Feature
    name: str
    to: str


def evidence(record: TickRecord) -> dict[str, Feature]:
    """Return every feature that an agent of the sitting may have been shown, by id."""
    found = {f"scores.{one}": Feature(f"scores.{one}", record.l1[one]) for one in VECTORS}
    found |= {one.id: Feature(one.id, one.value, one.unit) for one in record.features if one.id}
    if any(is_gate(report) for report in record.deliberation.reports):
        found |= _of_the_gate(record.deliberation)
    found |= _of_the_board(record.deliberation.swarm)
    return found | _of_the_trader(record.deliberation.consulted)


def judge(name: str, value: str | float | None, features: Mapping[str, Feature]) -> str:
    """Return the judgement of a citation against the evidence: equal, off or absent."""
    feature = features.get(name)
    if feature is None or feature.value is None:
        return ABSENT
    return EQUAL if grounded([Evidence(name, value)], features) else OFF


class Anchors:
    """The anchors of one page's features: readable where the id allows it, and never twice."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._used: set[str] = set()

    def of(self, name: str) -> str:
        """Return the anchor of a feature, whatever its id is made of."""
        if name not in self._known:
            base = "feature-" + re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:60]
            free = base
            # two ids may differ only in characters that an anchor cannot have
            while free in self._used:
                free = f"{base}-{len(self._used)}"
            self._used.add(free)
            self._known[name] = free
        return self._known[name]


def chips(told: AgentReport, features: Mapping[str, Feature], anchors: Anchors) -> list[Chip]:
    """Return the citations of a report, each with its anchor and its judgement."""
    return [_chip(item, features, anchors) for item in told.evidence]


def cited(entries: Iterable[Voice], features: Mapping[str, Feature]) -> list[CitedRow]:
    """Return the cited features by id, each with the agents that cite it and how each is judged.

    A cited id that does not exist has its row too. An agent that cites the same in several rounds
    is listed once, with its last one. `entries` are those of the transcript.
    """
    found: dict[str, CitedRow] = {}
    by: dict[str, dict[tuple[str, str], Citer]] = {}
    for entry in entries:
        for chip in entry.evidence:
            found.setdefault(chip["key"], _row(chip, features))
            # a value that is equal stands in the row itself
            value = chip["value"] if chip["state"] != EQUAL else ""
            who = figures.title(entry.name).removesuffix(" researcher")
            by.setdefault(chip["key"], {})[who, value] = {
                "who": who,
                "anchor": entry.anchor,
                "glyph": chip["glyph"],
                "value": value,
            }
    return [{**found[name], "by": list(by[name].values())} for name in sorted(found)]


def uncited(
    features: Mapping[str, Feature],
    rows: Sequence[CitedRow],
    shown: Mapping[str, Mapping[str, Feature]],
) -> list[Uncited]:
    """Return the features that no agent cites, with the codes of those that were shown each."""
    told, short = {row["key"] for row in rows}, codes(list(shown))
    return [
        Uncited(
            feature,
            _name(name),
            " ".join(short[one] for one, seen in shown.items() if name in seen),
        )
        for name, feature in features.items()
        if name not in told
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
    found: dict[str, str] = {}
    for name in names:
        title, letters = figures.title(name), CODE_LETTERS
        while title[:letters] in found.values() and letters < len(title):
            letters += 1
        found[name] = title[:letters]
    return found


def _of_the_trader(asked: Consulted | None) -> dict[str, Feature]:
    """Return what the trader was told of the order, as far as the record tells.

    Its levels are not recorded: they are those that it cites, where its citations were found true.
    """
    if not asked:
        return {}
    said = asked.report
    cited = () if said is None or UNGROUNDED in said.flags else said.evidence
    known = {one.id: one.value for one in cited if one.id and one.id.startswith(f"{ORDER}.")}
    known |= {f"{ORDER}.side": asked.side, f"{ORDER}.conviction": asked.conviction}
    return {name: Feature(name, value) for name, value in known.items()}


def _of_the_gate(deliberation: DebateRecord) -> dict[str, Feature]:
    """Return the features by which the gate's agent is told the ruling of its rules."""
    told, spread = deliberation.rule_ruling, deliberation.panel.spread
    ruling = GateRuling(told.multiplier, told.veto, told.reasons)
    found = risk_gate.as_features(ruling, max(spread.values(), default=0.0), "")
    if not spread:
        # the 0.0 above was never measured
        del found["gate.analyst_spread"]
    return found


def _of_the_board(told: SwarmRecord | None) -> dict[str, Feature]:
    """Return the features by which a judge is told the board."""
    if told is None or not told.board.stands:
        return {}
    return boards.as_features(told.board, "")


def _chip(item: Evidence, features: Mapping[str, Feature], anchors: Anchors) -> Chip:
    name = str(item.id)
    state = judge(name, item.value, features)
    glyph, words = JUDGED[state]
    there = features.get(name)
    stands = there is not None and there.value is not None
    return {
        "key": name,
        "id": figures.sanitize(name, 80),
        "anchor": anchors.of(name),
        "value": figures.format_any(item.value),
        "state": state,
        "glyph": glyph,
        "words": words,
        "there": figures.format_any(there.value) if there is not None and stands else figures.DASH,
    }


def _name(feature: str) -> str:
    """Return what people call a feature; empty where the table of words does not know it."""
    if feature in FEATURES:
        return name_of(feature)
    return swarm_words.BOARD_FEATURES.get(feature, "")


def _row(chip: Chip, features: Mapping[str, Feature]) -> CitedRow:
    feature = features.get(chip["key"])
    return {
        "key": chip["key"],
        "id": chip["id"],
        "name": _name(chip["key"]),
        "meaning": meaning_of(chip["key"]),
        "anchor": chip["anchor"],
        "value": chip["there"],
        "unit": figures.sanitize(feature.unit, 40) if feature is not None else "",
        "there": chip["state"] != ABSENT,
        "by": [],
    }
