"""One question to the committee: evidence, votes, and the card of them.

Where the profile of the symbol asks a vendor, the seats are its deep model, asked beside the ticks
and from what they can spare (torra.desk.models.off_tick). Where it does not, or no key is there,
the rules vote. The rules never fail and never cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agent_config import VENDORS, AgentSettings, route
from agents.contracts import Prompt, Role
from instance_database import Database
from torra.clock import System, iso
from torra.committee import seats
from torra.committee.card import (
    RULES,
    CommitteeQuestion,
    DecisionCard,
    SourceType,
    card_of,
    hash_of_evidence,
    name_of_question,
    reports_of,
)
from torra.committee.debate import ROLES, SeatDebate, Tell, debate
from torra.committee.evidence import CommitteeEvidence, evidence
from torra.committee.example import FILES, SYMBOL, example_desk
from torra.committee.votes import VOTES, RiskProfile
from torra.desk.models.off_tick import OffTickKey, OffTickReply, open_off_tick
from torra.errors import ConfigError, TorraError
from torra.store.research import cards as card_table
from torra.tick.spending import streams_of
from torra.tools.desk_reader import DeskReader

CLOCK: Final = System()

ALL_FAILED: Final = "ALL_FAILED"
UNAUTHORIZED: Final = "UNAUTHORIZED"


class CommitteeError(TorraError):
    """There is no card: every seat that was asked failed, or nobody may ask for one any more."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


@dataclass(frozen=True, slots=True)
class CommitteeDesk:
    """Where a committee sits: the desk as it reads it, and what it asks and books with.

    `tell` takes what happens while it sits, `votes` gives those that an attempt before has stored,
    `may_ask` says whether the asker still has the right. `again`: ask once more of the same
    evidence. `as_of` is a moment of the past for which a card is made, `hindsight` that models may
    be asked of it.
    """

    home: Path
    reader: DeskReader
    database: Database
    environment: Mapping[str, str]
    tell: Tell = lambda *_, **__: None
    votes: Callable[[str], Mapping[tuple[str, int], Any]] = lambda _: {}
    may_ask: Callable[[], bool] = lambda: True
    again: bool = False
    as_of: datetime | None = None
    hindsight: bool = False


def by_rules(
    reader: DeskReader,
    known: CommitteeEvidence,
    risk: RiskProfile,
    question: CommitteeQuestion = RULES,
    source_type: SourceType = "RULES",
) -> DecisionCard:
    """Return the card of some evidence as the rules vote, without key or network.

    A seat that knows too little abstains.
    """
    begun = CLOCK.monotonic()
    reports = {seat: seats.by_rules(seat, known) for seat in known.facts}
    return _made(card_of(
        known, reports, risk, question, now=reader.now, source_type=source_type,
        elapsed_ms=_ms(begun),
    ))  # fmt: skip


def decide(desk: CommitteeDesk, name: str, risk: RiskProfile) -> DecisionCard:
    """Return the card of an instance and store it; the same evidence asks no model twice.

    Raises ConfigError for an unknown instance, CommitteeError where every model failed or the right
    to ask is lost, and StoreUnavailable.
    """
    reader, database = desk.reader, desk.database
    known = evidence(reader, name, desk.as_of)
    question = _question(desk, known, reader.profiles[reader.instance(name).id].agents)
    row = card_table.card_of_asked(database, name_of_question(known, question))
    while row and desk.again:
        question = question._replace(again=question.again + 1)
        row = card_table.card_of_asked(database, name_of_question(known, question))
    asked = name_of_question(known, question)
    desk.tell(
        "committee_start", symbol=known.symbol, evidence_until=iso(known.until), asked=asked,
        seats=[*known.facts], models=[*question.models], risk_profile=risk,
    )  # fmt: skip
    if row is not None:
        card = DecisionCard.model_validate_json(row["document"])
        if card.risk_profile != risk:  # the same votes, and nothing to pay
            card = _made(card_of(
                known, reports_of(card), risk, question, now=reader.now,
                source_type=card.source_type,
            ))  # fmt: skip
    elif question.models:
        card = _by_models(desk, name, known, question, risk)
    else:
        card = by_rules(reader, known, risk, question)
    if card.models != question.models:  # rules that stood in are no answer of the models
        asked = name_of_question(known, RULES._replace(again=question.again))
    card_table.add_card(database, {
        "card_id": card.card_id, "asked": asked, "symbol": card.symbol,
        "evidence_until": card.evidence_until, "document": card.model_dump_json(),
    })  # fmt: skip
    return card


def _made(card: DecisionCard | None) -> DecisionCard:
    """Return a card of which a seat has voted."""
    assert card is not None, "rules never fail, and a card is never of failures alone"  # noqa: S101
    return card


def _question(
    desk: CommitteeDesk, known: CommitteeEvidence, agents: AgentSettings
) -> CommitteeQuestion:
    """Return who is asked: models as VENDOR:MODEL, or the rules.

    Raises ConfigError for models and a moment of the past, unless hindsight is allowed.
    """
    role = next(iter(ROLES.values()))
    vendor, model = route(agents.model(role.id, role.tier), agents.provider)
    settings = desk.reader.settings.committee
    if vendor not in VENDORS or not settings.model or len(known.facts) < VOTES:
        return RULES
    if desk.as_of and not desk.hindsight:
        raise ConfigError(
            f"{vendor}:{model} may know what came after {iso(desk.as_of)}: say --hindsight for a "
            "card that counts for nothing, or set committee.model to false"
        )
    return CommitteeQuestion(
        (f"{vendor}:{model}",), settings.rounds, settings.order, hindsight=desk.as_of is not None
    )


def _by_models(
    desk: CommitteeDesk,
    name: str,
    known: CommitteeEvidence,
    question: CommitteeQuestion,
    risk: RiskProfile,
) -> DecisionCard:
    begun = CLOCK.monotonic()
    try:
        found = _debated(desk, name, known, question)
    except ConfigError:
        return by_rules(
            desk.reader, known, risk, RULES._replace(again=question.again), "RULES_STOOD_IN"
        )
    if not desk.may_ask():
        raise CommitteeError(UNAUTHORIZED, "the token that asked for this card was taken back")
    card = card_of(
        known, found.last, risk, question, now=desk.reader.now, first=found.first,
        source_type="PARTIAL" if found.triggers else "COMMITTEE",
        cost_usd=round(found.usd, 9), elapsed_ms=_ms(begun),
    )  # fmt: skip
    if card is None:
        why = ", ".join(f"{seat} {code}" for seat, code in found.triggers.items())
        raise CommitteeError(ALL_FAILED, f"no seat gave a usable answer ({why})")
    return card


def _debated(
    desk: CommitteeDesk, name: str, known: CommitteeEvidence, question: CommitteeQuestion
) -> SeatDebate:
    """Ask the models of the seats; raises ConfigError where the vendor cannot be opened."""
    item = desk.reader.instance(name)
    paying = item.profile, desk.reader.profiles[item.id].agents
    what = f"{known.symbol}|{hash_of_evidence(known)[:12]}|{question.again}"
    seat_of = {role.id: seat for seat, role in ROLES.items()}
    votes = desk.votes(name_of_question(known, question))
    with open_off_tick(
        desk.home, desk.database, desk.environment, paying, OffTickKey("committee", what),
        *ROLES.values(), streams=streams_of(desk.reader.instances, item.profile),
    ) as asks:  # fmt: skip

        def ask(
            role: Role, prompt: Prompt, schema: Mapping[str, Any], number: int, deadline: float
        ) -> OffTickReply:
            seat = seat_of[role.id]
            if vote := votes.get((seat, number)):
                return OffTickReply(vote)
            if not desk.may_ask():
                return OffTickReply(None, UNAUTHORIZED)
            reply = asks[role.id].ask(prompt, schema, role=role, deadline=deadline, round=number)
            if report := seats.report_of(reply.document, seat, known):
                desk.tell("insight_extracted", agent=seat, round=number, vote=seats.vote_of(report))
            return reply

        return debate(
            known, ask, CLOCK, rounds=question.rounds, in_turn=question.order == "in_turn",
            tell=desk.tell,
        )  # fmt: skip


def example_card(risk: RiskProfile, files: Path = FILES) -> DecisionCard:
    """Return the card of the invented company."""
    with example_desk(files) as reader:
        return by_rules(reader, evidence(reader, SYMBOL), risk)


def _ms(begun: float) -> float:
    return round((CLOCK.monotonic() - begun) * 1000, 1)
