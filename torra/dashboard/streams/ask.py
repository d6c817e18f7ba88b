"""The screen Ask: a question about the desk, and the answers of one's own session.

What is answered, stored and spent is decided by torra.ask; page and API call the same function. A
question changes nothing at the desk. It costs a model's answer only where the login has the right
(torra.dashboard.doors.access_file). A session of a person who is logged in ends with that login; a
program names its own. Nobody reads another login's. Names and texts in an answer are cleaned.
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from functools import partial
from typing import Final

from flask import jsonify, redirect, request, url_for
from flask.typing import ResponseReturnValue
from pydantic import ValidationError

from agent_config import VENDORS, route
from instance_database import open_reader
from torra.ask.answer import LONGEST, ChatAnswer, CitedFact
from torra.dashboard.doors.access import Visitor, visitor
from torra.dashboard.doors.routes import Command, Fields, Route
from torra.dashboard.view import commanding
from torra.dashboard.view.commanding import CommandOutcome
from torra.dashboard.view.rendering import backing, desk_page, state, tick_link
from torra.errors import ConfigError
from torra.home import DATABASE
from torra.store.research.questions import questions
from torra.tools.contract import CODES as TOOL_CODES
from torra.tools.contract import PLACE
from torra.words.ask import ASK_CODES, TRIGGERS

PER_MINUTE: Final = 20
MOST: Final = 12
"""Answers of a session that the page shows."""

OF_TICK: Final = "tick record"
"""The store of a fact whose tick has a page."""

EXAMPLES: Final = (
    "Why was there no trade?",
    "What do I hold, and what is at risk?",
    "What deserves a look now?",
    "What did models cost today?",
    "What did agents change this week?",
    "How do I halt the desk?",
)


def ask_page() -> ResponseReturnValue:
    """Show what the visitor asked in this session, and take a question."""
    if state().backing is None:
        return desk_page("ask.html", here=False)
    named = PLACE.fullmatch(request.args.get("about", ""))
    known = backing()
    rows = questions(known.database, visitor().person, session_of(visitor()), MOST)
    return desk_page(
        "ask.html",
        here=True,
        enabled=known.settings.chat.enabled,
        about=named,
        typed=request.args.get("question", "")[:LONGEST],
        answers=[answer for row in rows if (answer := _answer_of(row["document"]))],
        examples=EXAMPLES,
        longest=LONGEST,
        codes=ASK_CODES,
        tool_codes=TOOL_CODES,
        triggers=TRIGGERS,
        tick_of=tick_of,
        vendors=_vendors() if known.settings.chat.model and visitor().ask_model else [],
    )


def ask() -> ResponseReturnValue:
    """Answer a question about the desk from what it stored; nothing is done.

    A program gets the answer with its citations, and goes on with its session; a page gets it on
    the page Ask.
    """
    from torra.ask.answering import ask as answer_to  # noqa: PLC0415  a page alone loads no desk
    from torra.tools.desk_reader import DeskReader  # noqa: PLC0415

    known, who = backing(), visitor()
    try:
        sent = _fields()
        with closing(open_reader(known.home / DATABASE)) as evidence:
            desk = partial(
                DeskReader.of_desk, known.home, known.settings, known.desk, evidence, known.book
            )
            answer = answer_to(
                desk,
                known.database,
                sent.get("question", ""),
                session=sent.get("session_id") or session_of(who),
                person=who.person,
                about=sent.get("about", ""),
                portfolio=[part for one in sent.get("portfolio", "").split(",")
                           if (part := one.strip())],
                may_spend=who.ask_model,
            )  # fmt: skip
    except ConfigError as error:
        return commanding.answer(CommandOutcome("failed", str(error)), url_for(".ask_page"))
    if commanding.wants_json():
        return jsonify(answer.model_dump(mode="json"))
    return redirect(url_for(".ask_page", _anchor="newest"), 303)


def session_of(who: Visitor) -> str:
    """Return the session of Ask that a login has, "" for a program."""
    return hashlib.sha256(f"ask {who.session}".encode()).hexdigest()[:16] if who.session else ""


def tick_of(cite: CitedFact) -> str:
    """Return the address of the tick whose record holds a fact, "" for a fact of another store."""
    match = PLACE.match(cite.id) if cite.where == OF_TICK else None
    return tick_link(*match.groups()) if match else ""


def _fields() -> dict[str, str]:
    sent = commanding.words()
    if odd := set(sent) - {*BODY}:
        raise ConfigError(f"there is no field {min(odd)[:40]}: name {', '.join(BODY)}")
    for name, text in sent.items():
        if len(text) > LONGEST:
            raise ConfigError(f"{name} is longer than {LONGEST} characters: write less")
    return sent


def _answer_of(document: str) -> ChatAnswer | None:
    """Return a stored answer; None for one that another version wrote."""
    try:
        return ChatAnswer.model_validate_json(document)
    except ValidationError:
        return None


def _vendors() -> list[str]:
    """Return the vendors whose models may be asked: they get the question and the sentences."""
    agents = [profile.agents for _, profile in backing().setups]
    names = {route(one.model("ask", "quick"), one.provider)[0] for one in agents}
    return sorted(names & {*VENDORS})


BODY: Final[Fields] = {
    name: {"type": "string", "maxLength": LONGEST, "description": about}
    for name, about in {
        "question": "at most 500 characters",
        "session_id": "a session of an earlier answer, which a follow-up goes on with",
        "about": "the tick that is asked about, as INSTANCE|TIMEFRAME@TIME of its bar",
        "portfolio": "symbols that are held elsewhere, with commas",
    }.items()
}

ROUTES = (
    Route("/ask", "ask_page", ask_page),
    Command("/api/v1/chat/ask", "api_ask", ask, scope="read", per_minute=PER_MINUTE, body=BODY),
)
