"""What agents may change of a scan: made from the rules' run by one pure function, `applied`.

A row of `act` that is held back or observed may be demoted to `watch`, with a citation of a fact
that is its own. On one that is opened or proposed the objection stands beside the row. A row moves
by MOST_PLACES within its bucket, and sentences of code are chosen and put in order. Nothing else of
a reply has an effect: no row is lost or promoted, and no figure changes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from torra.radar.result import Objection, RadarCard, RadarRow, RadarRun, headline
from torra.tools import contract
from torra.tools.contract import Fact
from torra.tools.sentences import Cause, Sentence, choice_of, text_of
from torra.words.badge import capital
from torra.words.orders import HOLD_REASONS
from torra.words.radar import BUCKET_WORDS, CODES

MOST_PLACES: Final = 3
"""Places by which a row moves."""

OPEN_ROWS: Final = 8
ROW_FACTS: Final = 12
"""Rows that agents see, the first of a scan, and facts of each."""

BRIEF: Final = 8
"""Sentences of a brief, the headline included."""

CARDS: Final = 6
CARD_SENTENCES: Final = 4

NO_ORDER_OUT: Final = ("HELD_BACK", "OBSERVED")
"""Codes of `act` from which a row may be demoted: no order of it is out."""

WITNESS: Final[Mapping[str, str]] = {
    "NEAR_THRESHOLD": "radar.consensus", "CONSENSUS_AGAINST": "radar.consensus",
    "MOVED": "radar.moved_atr", "TRIAGE": "market.triage", "DATA_MISSING": "radar.missed",
    "EVENT_NEAR": "radar.to_event_min", "EVENT_AHEAD": "radar.to_event_min",
    "NEAR_STOP": "radar.stop_left", "NEAR_TARGET": "radar.target_left",
    "REGIME_TURNED": "radar.regime_before", "LOSS_CAP_NEAR": "radar.loss_share",
}  # fmt: skip
"""The fact that a code holds by."""

Evidence = Mapping[str, tuple[Fact, ...]]
"""Facts that tools gave of a stream, by its name, the newest first."""


class Demotion(NamedTuple):
    """What an agent wants of a row: its stream, and ids of facts as they were given or listed."""

    by: str
    row: str
    cites: tuple[str, ...]


@dataclass(frozen=True)
class Decisions:
    """What the agents of a run want, unchecked.

    `order` names streams, the most urgent first; `say` is the reply of the insight agent.
    """

    demotions: tuple[Demotion, ...] = ()
    order: tuple[str, ...] = ()
    say: Mapping[str, Any] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=dict)


def applied(run: RadarRun, wanted: Decisions) -> RadarRun:
    """Return the run of the rules with what may stand of the agents' decisions."""
    run = _with_objections(run, wanted)
    run = run.model_copy(
        update={name: _ordered(getattr(run, name), wanted.order) for name in BUCKET_WORDS}
    )
    sentences, causes = sentences_about(run, wanted.evidence)
    brief = choice_of(wanted.say, sentences, causes, BRIEF - 1)
    say = choice_of(wanted.say, sentences, causes, len(sentences)).say
    named = sorted((one for one in sentences if one.id in say), key=lambda one: say.index(one.id))
    lines = text_of(sentences, brief) or run.portfolio_brief[1:]
    return run.model_copy(
        update={
            "mode": "ai",
            "portfolio_brief": (f"{headline([*run.act, *run.watch, *run.exit_radar])}.", *lines),
            "cards": tuple(_card(row, named, sentences) for row in _card_rows(run)),
        }
    )


def open_rows(run: RadarRun) -> list[RadarRow]:
    """Return the rows that agents see, in the order of the page."""
    return [row for name in BUCKET_WORDS for row in getattr(run, name)][:OPEN_ROWS]


def row_facts(row: RadarRow, evidence: Evidence) -> list[Fact]:
    """Return the facts of a row that agents see: of its codes, of tools, and its other ones."""
    witnesses = {WITNESS.get(code) for code in row.codes}
    own = sorted(row.facts, key=lambda one: one.id.partition("/")[2] not in witnesses)
    count = sum(one.id.partition("/")[2] in witnesses for one in own)
    facts = [*own[:count], *evidence.get(row.stream, ()), *own[count:]]
    return [*{one.id: one for one in facts}.values()][:ROW_FACTS]


def short_id(row: RadarRow, fact_id: str) -> str:
    """Return the id of a fact as it is listed under its row: without the row's stream."""
    return fact_id.removeprefix(f"{row.stream}@")


def sentences_about(run: RadarRun, evidence: Evidence) -> tuple[list[Sentence], list[Cause]]:
    """Return code's sentences about the open rows, and which of them are causes of which."""
    sentences: list[Sentence] = []
    causes: list[Cause] = []
    for row in open_rows(run):
        made: dict[str, str] = {}
        for key, text, cites in _texts(row, row_facts(row, evidence)):
            number = f"s{len(sentences) + 1}"
            place = f"{row.stream.replace('|', ' ')}: {text}"
            sentences.append(Sentence(id=number, text=place, cites=cites))
            made.setdefault(key, number)
        for code in row.codes:
            because = made.get(WITNESS.get(code, code + " reason"))
            causes += [(made[code], because)] if because else []
    return sentences, causes


def _texts(row: RadarRow, facts: Sequence[Fact]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield what code says of a row: a key within it, the words, and the ids of facts."""
    for code in row.codes:
        yield code, f"{CODES[row.bucket][code].meaning}.", ()
    if row.deny_reason:
        yield f"{row.code} reason", f"{HOLD_REASONS.get(row.deny_reason, row.deny_reason)}.", ()
    for objection in row.objections:
        yield "DEMOTED reason", objection.text, objection.cites
    for one in facts:
        key = one.id.rpartition("/")[2]
        text = (
            one.sentence
            or contract.fact(one.id, one.value, one.name, one.as_of, one.source, one.unit).sentence
        )
        if text:
            yield key, text, (one.id,)


# --- demotions ------------------------------------------------------------------------------------


def _with_objections(run: RadarRun, wanted: Decisions) -> RadarRun:
    """Return a run with the objections that hold, each row once, and notes on all of them."""
    rows, notes = {row.stream: row for row in run.act}, list[str]()
    for one in wanted.demotions:
        row = rows.get(one.row)
        code, known = _judgement(one, row, wanted.evidence)
        if row is not None and known:
            names = ", ".join(fact.name for fact in known)
            text = f"The {one.by} agent objects and cites {names}."
            new = Objection(by=one.by, cites=tuple(fact.id for fact in known), text=text)
            if new not in row.objections:
                rows[one.row] = row.model_copy(update={"objections": (*row.objections, new)})
        place = one.row if row else "a row"
        notes.append(f"{one.by} on {place}: {CODES['objection'][code].meaning}.")
    every = [*rows.values()]
    taken = [row for row in every if row.objections and row.code in NO_ORDER_OUT]
    coverage = run.coverage
    more = {"bucket": "watch", "code": "DEMOTED", "codes": ("DEMOTED",)}
    return run.model_copy(
        update={
            "act": tuple(row for row in every if row not in taken),
            "watch": (*(row.model_copy(update=more) for row in taken), *run.watch),
            "reasoning_log": (*run.reasoning_log, *notes),
            "coverage": coverage.model_copy(
                update={
                    "act": coverage.act - len(taken), "watch": coverage.watch + len(taken),
                }
            ),
        }
    )  # fmt: skip


def _judgement(one: Demotion, row: RadarRow | None, evidence: Evidence) -> tuple[str, list[Fact]]:
    """Return what becomes of a demotion, and the facts that hold it; none where it is refused."""
    if one.by != "signal":
        return "NOT_ITS_ROLE", []
    if row is None:
        return "NO_ROW", []
    facts = [*row.facts, *evidence.get(row.stream, ())]
    cites = {*one.cites}
    known = {fact.id: fact for fact in facts if cites & {fact.id, short_id(row, fact.id)}}
    if not known:
        return "NO_CITATION", []
    return "TAKEN" if row.code in NO_ORDER_OUT else "STANDS", [*known.values()]


# --- order and cards ------------------------------------------------------------------------------


def _ordered(rows: Sequence[RadarRow], order: Sequence[str]) -> tuple[RadarRow, ...]:
    """Return rows as near to an order as MOST_PLACES from where each stands lets them."""
    ranks = {name: rank for rank, name in reversed([*enumerate(order)])}
    left = [*enumerate(rows)]
    placed: list[RadarRow] = []
    for place in range(len(rows)):
        last = [one for one in left if one[0] == place - MOST_PLACES]
        near = [one for one in left if one[0] <= place + MOST_PLACES]
        chosen = min(last or near, key=lambda one: (ranks.get(one[1].stream, len(ranks)), one[0]))
        left.remove(chosen)
        placed.append(chosen[1])
    return tuple(placed)


def _card_rows(run: RadarRun) -> list[RadarRow]:
    nearest = [row for row in open_rows(run) if row.bucket == "watch"][:1]
    others = [row for row in open_rows(run) if row.bucket != "watch"]
    return [*others, *nearest][:CARDS]


def _card(row: RadarRow, named: Iterable[Sentence], every: Iterable[Sentence]) -> RadarCard:
    """Return a card: the sentences about a row that were chosen, else the first one of code."""
    place = f"{row.stream.replace('|', ' ')}: "
    chosen, own = (
        [capital(one.text.removeprefix(place)) for one in those if one.text.startswith(place)]
        for those in (named, every)
    )
    return RadarCard(stream=row.stream, sentences=tuple(chosen[:CARD_SENTENCES] or own[:1]))
