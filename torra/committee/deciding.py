"""One question to the committee: evidence, votes, and the card of them.

Where the profile of the symbol asks a vendor, the seats are its deep model, asked beside the ticks
and from what they can spare (torra.desk.models.off_tick). Where it does not, or no key is there,
the rules vote. The rules never fail and never cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
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
    card_of,
    name_of_question,
    read_card,
    recount,
)
from torra.committee.debate import NOBODY, ROLES, SeatDebate, Tell, debate
from torra.committee.evidence import CommitteeEvidence, evidence
from torra.committee.example import FILES, SYMBOL, example_desk
from torra.committee.votes import VOTES, RiskProfile
from torra.desk.models.off_tick import OffTickKey, OffTickModel, OffTickReply, open_off_tick
from torra.errors import ConfigError, TorraError
from torra.store import ledger as ledger_table
from torra.store.connection import RowDict
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

    `tell` takes what happens while it sits. `votes` gives those that are stored of a question,
    `has_begun` says whether an attempt before began with it, `may_ask` whether the asker still has
    the right. `again`: ask once more of the same evidence. `as_of` is a moment of the past for
    which a card is made, `hindsight` that models may be asked of it.
    """

    home: Path
    reader: DeskReader
    database: Database
    environment: Mapping[str, str]
    tell: Tell = lambda *_, **__: None
    votes: Callable[[str], Mapping[tuple[str, int], Any]] = lambda _: {}
    has_begun: Callable[[str], bool] = lambda _: False
    may_ask: Callable[[], bool] = lambda: True
    again: bool = False
    as_of: datetime | None = None
    hindsight: bool = False


def by_rules(
    reader: DeskReader,
    known: CommitteeEvidence,
    risk: RiskProfile,
    question: CommitteeQuestion = RULES,
) -> DecisionCard:
    """Return the card of some evidence as the rules vote, without key or network.

    A seat that knows too little abstains.
    """
    begun = CLOCK.monotonic()
    reports = {seat: seats.by_rules(seat, known) for seat in known.facts}
    card = card_of(known, reports, risk, question, now=reader.now, elapsed_ms=_ms(begun))
    assert card is not None, "rules never fail"  # noqa: S101
    return card


def decide(desk: CommitteeDesk, name: str, risk: RiskProfile) -> DecisionCard:
    """Return the card of an instance and store it; the same evidence asks no model twice.

    A seat that failed is asked again by the next request. Raises ConfigError for an unknown
    instance, CommitteeError where every model failed or the right to ask is lost, and
    StoreUnavailable.
    """
    reader = desk.reader
    known = evidence(reader, name, desk.as_of)
    question = _question(desk, known, reader.profiles[reader.instance(name).id].agents)
    asked, row = _asked(desk, known, question)
    while row and desk.again and not desk.has_begun(asked):
        question = question._replace(again=question.again + 1)
        asked, row = _asked(desk, known, question)
    stored = read_card(row["document"]) if row else None
    desk.tell(
        "committee_start", symbol=known.symbol, evidence_until=iso(known.until), asked=asked,
        seats=[*known.facts], models=[*dict.fromkeys(question.models)], risk_profile=risk,
    )  # fmt: skip
    if stored and not any(one.failed for one in stored.seats):
        card = recount(stored, risk)
    elif question.models:
        card = _by_models(desk, name, known, question, risk, stored)
    else:
        card = by_rules(reader, known, risk, question)
    if card is stored:
        return card
    if card.source_type == "RULES_STOOD_IN":  # no answer of the models
        asked = name_of_question(known, _stood_in(question))
    card_table.add_card(desk.database, {
        "card_id": card.card_id, "asked": asked, "instance": card.instance,
        "evidence_until": card.evidence_until, "document": card.model_dump_json(),
    })  # fmt: skip
    return card


def _asked(
    desk: CommitteeDesk, known: CommitteeEvidence, question: CommitteeQuestion
) -> tuple[str, RowDict | None]:
    """Return the name of a question, and the row of its newest card where there is one."""
    asked = name_of_question(known, question)
    return asked, card_table.card_of_asked(desk.database, asked)


def _question(
    desk: CommitteeDesk, known: CommitteeEvidence, agents: AgentSettings
) -> CommitteeQuestion:
    """Return who is asked: the model of each seat as VENDOR:MODEL, or the rules.

    The rules vote where a seat's model is no vendor's. Raises ConfigError for models and a moment
    of the past, unless hindsight is allowed.
    """
    routes = [
        route(agents.model(role.id, role.tier), agents.provider)
        for seat, role in ROLES.items()
        if seat in known.facts
    ]
    settings = desk.reader.settings.committee
    if not settings.model or len(routes) < VOTES or {one for one, _ in routes} - {*VENDORS}:
        return RULES
    models = tuple(f"{vendor}:{model}" for vendor, model in routes)
    if desk.as_of and not desk.hindsight:
        raise ConfigError(
            f"{models[0]} may know what came after {iso(desk.as_of)}: say --hindsight for a "
            "card that counts for nothing, or set committee.model to false"
        )
    return CommitteeQuestion(
        models, settings.rounds, settings.order, hindsight=desk.as_of is not None
    )


def _stood_in(question: CommitteeQuestion) -> CommitteeQuestion:
    return RULES._replace(again=question.again, stands_in=True)


def _by_models(
    desk: CommitteeDesk,
    name: str,
    known: CommitteeEvidence,
    question: CommitteeQuestion,
    risk: RiskProfile,
    stored: DecisionCard | None,
) -> DecisionCard:
    """Return the card of the models; the stored one, or the rules', where none can be opened."""
    begun, key = CLOCK.monotonic(), OffTickKey("committee", name_of_question(known, question))
    try:
        found = _debated(desk, name, known, question, key)
    except ConfigError:
        if stored:
            return recount(stored, risk)
        return by_rules(desk.reader, known, risk, _stood_in(question))
    if not desk.may_ask():
        raise CommitteeError(UNAUTHORIZED, "the token that asked for this card was taken back")
    card = card_of(
        known, found.last, risk, question, now=desk.reader.now, first=found.first,
        models=found.models, cost_usd=round(ledger_table.spent_on(desk.database, key.text), 9),
        elapsed_ms=_ms(begun),
    )  # fmt: skip
    if card is None:
        why = ", ".join(f"{seat} {code}" for seat, code in found.triggers.items())
        raise CommitteeError(ALL_FAILED, f"no seat gave a usable answer ({why})")
    return card


def _debated(
    desk: CommitteeDesk,
    name: str,
    known: CommitteeEvidence,
    question: CommitteeQuestion,
    key: OffTickKey,
) -> SeatDebate:
    """Ask the models of the seats; raises ConfigError where the vendor cannot be opened."""
    seat_of = {role.id: seat for seat, role in ROLES.items()}
    votes = desk.votes(key.name)
    with _models(desk, name, key) as (asks, spares):

        def ask(
            role: Role, prompt: Prompt, schema: Mapping[str, Any], number: int, deadline: float,
            *, stands_in: bool = False,
        ) -> OffTickReply:  # fmt: skip
            seat = seat_of[role.id]
            if stored := votes.get((seat, number)):
                return OffTickReply(stored["vote"], model=stored["model"])
            if not desk.may_ask():
                return OffTickReply(None, UNAUTHORIZED)
            model = (spares if stands_in else asks).get(role.id)
            if model is None:
                return NOBODY
            reply = model.ask(prompt, schema, role=role, deadline=deadline, round=number)
            if report := seats.report_of(reply.document, seat, known):
                desk.tell(
                    "insight_extracted", agent=seat, round=number, asked=key.name,
                    vote=seats.vote_of(report), model=reply.model,
                )  # fmt: skip
            return reply

        return debate(
            known, ask, CLOCK, rounds=question.rounds, in_turn=question.order == "in_turn",
            tell=desk.tell,
        )  # fmt: skip


@contextmanager
def _models(
    desk: CommitteeDesk, name: str, key: OffTickKey
) -> Iterator[tuple[Mapping[str, OffTickModel], Mapping[str, OffTickModel]]]:
    """Open the model of each seat, and those that stand in; raises ConfigError."""
    item = desk.reader.instance(name)
    agents = desk.reader.profiles[item.id].agents
    streams = streams_of(desk.reader.instances, item.profile)
    opened = partial(open_off_tick, desk.home, desk.database, desk.environment, streams=streams)
    with ExitStack() as stack:
        paying = item.profile, agents
        asks = stack.enter_context(opened(paying, key, *ROLES.values(), fallback_models=()))
        spares = dict[str, OffTickModel]()
        for role in ROLES.values():
            vendor, _ = route(agents.model(role.id, role.tier), agents.provider)
            names = [":".join(one) for one in agents.fallbacks(role.tier) if one[0] != vendor]
            if names:
                own = {"role_models": {**agents.role_models, role.id: names[0]}}
                paying = item.profile, agents.model_copy(update=own)
                spares |= stack.enter_context(
                    opened(paying, key, role, fallback_models=(*names[1:],))
                )
        yield asks, spares


def example_card(risk: RiskProfile, files: Path = FILES) -> DecisionCard:
    """Return the card of the invented company."""
    with example_desk(files) as reader:
        return by_rules(reader, evidence(reader, SYMBOL), risk)


def _ms(begun: float) -> float:
    return round((CLOCK.monotonic() - begun) * 1000, 1)
