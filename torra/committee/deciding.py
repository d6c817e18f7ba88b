"""One question to the committee: evidence, votes, and the card of them.

Where the profile of the symbol asks a vendor, the seats are its deep model, asked beside the ticks
and from what they can spare (torra.desk.models.off_tick). Where it does not, or no key is there,
the rules vote. The rules never fail and never cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    DecisionCard,
    SourceType,
    card_of,
    hash_of_evidence,
    name_of_question,
    reports_of,
)
from torra.committee.debate import ROLES, SeatDebate, Tell, debate
from torra.committee.evidence import CommitteeEvidence, evidence
from torra.committee.example import SYMBOL, example_desk
from torra.committee.votes import VOTES, RiskProfile
from torra.desk.models.off_tick import OffTickKey, OffTickReply, open_off_tick
from torra.errors import ConfigError, TorraError
from torra.store.research import cards as card_table
from torra.tick.spending import streams_of
from torra.tools.desk_reader import DeskReader

CLOCK: Final = System()

ALL_FAILED: Final = "ALL_FAILED"


class CommitteeError(TorraError):
    """Every seat that was asked failed: there is no card."""


@dataclass(frozen=True, slots=True)
class CommitteeDesk:
    """Where a committee sits: the desk as it reads it, and what it asks and books with.

    `tell` takes what happens while it sits, `votes` gives those that a lost attempt at a question
    has stored. `again`: ask once more of the same evidence. `as_of` is a moment of the past for
    which a card is made, `hindsight` that models may be asked of it.
    """

    home: Path
    reader: DeskReader
    database: Database
    environment: Mapping[str, str]
    tell: Tell = lambda *_, **__: None
    votes: Callable[[str], Mapping[tuple[str, int], Any]] = lambda _: {}
    again: bool = False
    as_of: datetime | None = None
    hindsight: bool = False


def by_rules(
    reader: DeskReader,
    known: CommitteeEvidence,
    risk: RiskProfile,
    source_type: SourceType = "RULES",
    begun: float | None = None,
    again: int = 0,
) -> DecisionCard:
    """Return the card of some evidence as the rules vote, without key or network.

    A seat that knows too little abstains. `begun` is when it all began, monotonic seconds.
    """
    since = CLOCK.monotonic() if begun is None else begun
    reports = {seat: seats.by_rules(seat, known) for seat in known.facts}
    card = card_of(
        known,
        reports,
        risk,
        now=reader.now,
        source_type=source_type,
        elapsed_ms=_ms(since),
        again=again,
    )
    assert card is not None, "rules never fail"  # noqa: S101 - a seat without facts is not asked
    return card


def decide(desk: CommitteeDesk, name: str, risk: RiskProfile) -> DecisionCard:
    """Return the card of an instance and store it; the same evidence asks no model twice.

    Raises ConfigError for an unknown instance, CommitteeError where every model failed, and
    StoreUnavailable.
    """
    known = evidence(desk.reader, name, desk.as_of)
    agents = desk.reader.profiles[desk.reader.instance(name).id].agents
    models, number = _models(desk, known, agents), 0
    asked = partial(
        name_of_question, known, models, hindsight=bool(models and desk.as_of is not None)
    )
    while desk.again and card_table.card_of_asked(desk.database, asked(number)):
        number += 1
    desk.tell(
        "committee_start", symbol=known.symbol, evidence_until=iso(known.until),
        asked=asked(number), seats=[*known.facts], models=[*models], risk_profile=risk,
    )  # fmt: skip
    row = card_table.card_of_asked(desk.database, asked(number))
    if row is not None:
        stored = DecisionCard.model_validate_json(row["document"])
        card = stored if stored.risk_profile == risk else _recounted(desk, known, stored, risk)
    elif models:
        card = _by_models(desk, name, known, agents, models, number, risk)
    else:
        card = by_rules(desk.reader, known, risk, again=number)
    # rules that stood in are no answer of the models
    card_table.add_card(desk.database, {
        "card_id": card.card_id,
        "asked": name_of_question(known, card.models, number, hindsight=card.hindsight),
        "symbol": card.symbol, "evidence_until": card.evidence_until,
        "document": card.model_dump_json(),
    })  # fmt: skip
    return card


def _models(
    desk: CommitteeDesk, known: CommitteeEvidence, agents: AgentSettings
) -> tuple[str, ...]:
    """Return the models that are asked, VENDOR:MODEL; none where the rules vote.

    Raises ConfigError for models and a moment of the past, unless hindsight is allowed.
    """
    role = next(iter(ROLES.values()))
    vendor, model = route(agents.model(role.id, role.tier), agents.provider)
    wanted = desk.reader.settings.committee.model and len(known.facts) >= VOTES
    if not wanted or vendor not in VENDORS:
        return ()
    if desk.as_of and not desk.hindsight:
        raise ConfigError(
            f"{vendor}:{model} may know what came after {iso(desk.as_of)}: say --hindsight for a "
            "card that counts for nothing, or set committee.model to false"
        )
    return (f"{vendor}:{model}",)


def _recounted(
    desk: CommitteeDesk, known: CommitteeEvidence, stored: DecisionCard, risk: RiskProfile
) -> DecisionCard:
    """Return a stored card under another risk profile: the same votes, and nothing to pay."""
    card = card_of(
        known, reports_of(stored), risk, now=desk.reader.now, source_type=stored.source_type,
        models=stored.models, again=int(stored.card_id.split("-")[1]), hindsight=stored.hindsight,
    )  # fmt: skip
    assert card is not None, "a card is never of failures alone"  # noqa: S101
    return card


def _by_models(
    desk: CommitteeDesk,
    name: str,
    known: CommitteeEvidence,
    agents: AgentSettings,
    models: tuple[str, ...],
    number: int,
    risk: RiskProfile,
) -> DecisionCard:
    begun = CLOCK.monotonic()
    try:
        found = _debated(desk, name, known, agents, number)
    except ConfigError:
        return by_rules(desk.reader, known, risk, "RULES_STOOD_IN", begun, number)
    card = card_of(
        known,
        found.last,
        risk,
        now=desk.reader.now,
        first=found.first,
        source_type="PARTIAL" if found.triggers else "COMMITTEE",
        models=models,
        cost_usd=round(found.usd, 9),
        elapsed_ms=_ms(begun),
        again=number,
        hindsight=desk.as_of is not None,
    )
    if card is None:
        why = ", ".join(f"{seat} {code}" for seat, code in found.triggers.items())
        raise CommitteeError(f"{ALL_FAILED}: no seat gave a usable answer ({why})")
    return card


def _debated(
    desk: CommitteeDesk, name: str, known: CommitteeEvidence, agents: AgentSettings, number: int
) -> SeatDebate:
    """Ask the models of the seats; raises ConfigError where the vendor cannot be opened."""
    reader, settings = desk.reader, desk.reader.settings.committee
    profile = reader.instance(name).profile
    key = OffTickKey("committee", f"{known.symbol}|{hash_of_evidence(known)[:12]}|{number}")
    seat_of = {role.id: seat for seat, role in ROLES.items()}
    asked = name_of_question(
        known, _models(desk, known, agents), number, hindsight=desk.as_of is not None
    )
    votes = desk.votes(asked)
    streams = streams_of(reader.instances, profile)
    with open_off_tick(
        desk.home, desk.database, desk.environment, (profile, agents), key, *ROLES.values(),
        streams=streams,
    ) as asks:  # fmt: skip

        def ask(
            role: Role, prompt: Prompt, schema: Mapping[str, Any], number: int, deadline: float
        ) -> OffTickReply:
            seat = seat_of[role.id]
            if vote := votes.get((seat, number)):
                return OffTickReply(vote)
            reply = asks[role.id].ask(prompt, schema, role=role, deadline=deadline, round=number)
            if report := seats.report_of(reply.document, seat, known):
                desk.tell("insight_extracted", agent=seat, round=number, vote=seats.vote_of(report))
            return reply

        return debate(known, ask, CLOCK, rounds=settings.rounds, tell=desk.tell)


def example_card(risk: RiskProfile, *, turned: bool = False) -> DecisionCard:
    """Return the card of the invented company, of the good year or of the bad one."""
    with example_desk(turned=turned) as reader:
        return by_rules(reader, evidence(reader, SYMBOL), risk)


def _ms(begun: float) -> float:
    return round((CLOCK.monotonic() - begun) * 1000, 1)
