"""The pages of the committee: its newest cards, a form that asks it, and one card whole.

A card is made by a job of the desk (torra.committee.job); nothing is decided here. A card's
sentences are code's, its symbol and addresses may be a stranger's and are cleaned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from agents.features import name_of
from torra.committee.card import VALID_FOR, WHY, DecisionCard, read_card, voters
from torra.committee.events import stream_of_job
from torra.committee.job import COMMITTEE, FIELDS, LONGEST, PROFILES
from torra.committee.seats import FLAGS
from torra.dashboard.doors.routes import Api, Command, Fields, Route
from torra.dashboard.screens import jobs, streaming
from torra.dashboard.trade.orders import person
from torra.dashboard.view import commanding
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.jobs.kinds import FINAL
from torra.store import jobs as job_table
from torra.store import streams as stream_table
from torra.store.connection import RowDict
from torra.store.research import cards as card_table

PER_MINUTE: Final = 10

TONES: Final = {"buy": "up", "reduce": "down", "hold": "flat"}

CARD_ID: Final = 64
"""Characters of an id that is looked for."""


def committee() -> ResponseReturnValue:
    """Show the newest cards, and the form that asks for one."""
    if state().backing is None:
        return desk_page("committee.html", here=False)
    settings = backing().settings
    rows = card_table.cards(backing().database)
    cards = _read(rows)
    return desk_page(
        "committee.html",
        here=True,
        cards=cards,
        others=len(rows) - len(cards),
        symbols=[one.id for one in settings.instances],
        profiles=PROFILES,
        usual=settings.committee.risk_profile,
        tones=TONES,
        why=WHY,
        jobs=jobs.shown(_newest_jobs()),
        live=True,
    )


def card(card_id: str) -> ResponseReturnValue:
    """Show one card: each seat with its evidence, and how the votes were counted."""
    found = _one(card_id)
    missing = [name_of(feature) for feature in found.missing]
    return desk_page(
        "card.html", card=found, missing=missing, tones=TONES, voters=voters, flags=FLAGS
    )


def api_cards() -> ResponseReturnValue:
    """Answer the newest cards, newest first."""
    known = _read(card_table.cards(backing().database))
    return jsonify(cards=[one.model_dump(mode="json") for one in known])


def api_card(card_id: str) -> ResponseReturnValue:
    """Answer one card; 404 for none."""
    return jsonify(_one(card_id).model_dump(mode="json"))


def ask_committee() -> ResponseReturnValue:
    """Ask the committee; the same request is one job while it goes on."""
    from torra.jobs import asking  # noqa: PLC0415  a page alone must not load the desk

    def run() -> CommandOutcome:
        known = backing()
        done = asking.ask(known.database, known.home, COMMITTEE, commanding.words(), person())
        return jobs.queued(done, works=known.database.desk_runs())

    return command("job", COMMITTEE.name, run, back=url_for(".committee"))


def committee_stream(number: str) -> ResponseReturnValue:
    """Follow the committee of a job, through all its attempts; 404 where it does not sit."""
    job = jobs.job_row(number)
    row = stream_table.stream(backing().database, stream_of_job(job["id"])) or abort(404)
    return streaming.stream(row["stream_id"])


def newest_card(*instances: str) -> DecisionCard | None:
    """Return the card of the newest evidence that counts, of some instances; None without one.

    One counts that has a quorum, is not of hindsight, and whose evidence is of the last days.
    """
    if state().backing is None:
        return None
    database, since = backing().database, backing().now() - VALID_FOR
    known = [
        one
        for instance in instances
        for one in _read(card_table.cards_since(database, instance, since))
        if one.why != "NO_QUORUM" and not one.hindsight
    ]
    return max(known, key=lambda one: one.evidence_until, default=None)


def _newest_jobs() -> list[jobs.Row]:
    """Return the committees that wait or sit, else the one that ended last."""
    every = job_table.jobs(backing().database)
    mine: list[jobs.Row] = [one for one in every if one["kind"] == COMMITTEE.name]
    return [one for one in mine if one["state"] not in FINAL] or mine[:1]


def _read(rows: Iterable[RowDict]) -> list[DecisionCard]:
    """Return the cards of rows that this version reads."""
    return [one for row in rows if (one := read_card(row["document"])) is not None]


def _one(card_id: str) -> DecisionCard:
    row = card_table.card(backing().database, card_id[:CARD_ID]) or abort(404)
    return read_card(row["document"]) or abort(404)


BODY: Final[Fields] = {
    name: {"type": "string", "maxLength": LONGEST, "description": about}
    for name, about in FIELDS.items()
}

ROUTES = (
    Route("/committee", "committee", committee),
    Route("/cards/<card_id>", "card", card),
    Api("/api/v1/cards", "api_cards", api_cards),
    Api("/api/v1/cards/<card_id>", "api_card", api_card),
    Route(
        "/api/v1/committee/<number>/stream",
        "committee_stream",
        committee_stream,
        reply="events",
        query=streaming.AFTER,
    ),
    Command(
        "/api/v1/committee",
        "ask_committee",
        ask_committee,
        scope="approve",
        per_minute=PER_MINUTE,
        body=BODY,
    ),
)
