"""The pages of the committee: its newest cards, a form that asks it, and one card whole.

A card is made by a job of the desk (torra.committee.job); nothing is decided here. A card's
sentences are code's, its symbol and addresses may be a stranger's and are cleaned.
"""

from __future__ import annotations

from typing import Final

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from agents.features import name_of
from torra.committee.card import WHY, DecisionCard, voters
from torra.committee.events import KIND
from torra.committee.job import COMMITTEE, FIELDS, LONGEST, PROFILES
from torra.committee.seats import FLAGS
from torra.dashboard.doors.routes import Api, Command, Fields, Route
from torra.dashboard.screens import jobs, streaming
from torra.dashboard.trade.orders import person
from torra.dashboard.view import commanding
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.jobs.kinds import key_of, parameters_of
from torra.store import streams as stream_table
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
    return desk_page(
        "committee.html",
        here=True,
        cards=_cards(),
        symbols=[one.id for one in settings.instances],
        profiles=PROFILES,
        usual=settings.committee.risk_profile,
        tones=TONES,
        why=WHY,
        jobs=jobs.shown([one for one in jobs.going_on() if one["kind"] == COMMITTEE.name]),
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
    return jsonify(cards=[one.model_dump(mode="json") for one in _cards()])


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
    """Follow the committee of a job, from its newest attempt; 404 before it sits."""
    job = jobs.job_row(number)
    key = key_of(COMMITTEE, parameters_of(job) or {}) if job["kind"] == COMMITTEE.name else ""
    row = stream_table.newest_stream(backing().database, KIND, key) or abort(404)
    return streaming.stream(row["stream_id"])


def newest_card(symbol: str | None = None) -> DecisionCard | None:
    """Return the newest card of a quorum that counts, of a symbol or of any; None without one."""
    known = _cards(symbol or "") if state().backing and symbol != "" else ()
    return next((one for one in known if one.why != "NO_QUORUM" and not one.hindsight), None)


def _cards(symbol: str = "") -> list[DecisionCard]:
    rows = card_table.cards(backing().database, symbol)
    return [one for row in rows if (one := _card(row["document"])) is not None]


def _one(card_id: str) -> DecisionCard:
    row = card_table.card(backing().database, card_id[:CARD_ID]) or abort(404)
    return _card(row["document"]) or abort(404)


def _card(document: str) -> DecisionCard | None:
    """Return a stored card; None for one that was altered, or made by another version."""
    try:
        return DecisionCard.model_validate_json(document)
    except ValueError:
        return None


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
