"""The first steps of a newcomer, from a tick to a symbol of one's own: a checklist on a page.

A step is done when it is so: a tick is stored, a person has decided a proposal, a replay has ended,
a symbol is one's own, a model has answered. Nothing is noted and nothing is changed by looking. The
strip on Home is for whoever may approve, in a home that is young, until every step is done.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from flask import g, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from agent_config import VENDORS
from torra.clock import parse
from torra.dashboard.doors.access import Visitor
from torra.dashboard.doors.routes import Api, Route
from torra.dashboard.settings.new_symbol import ACTION as ADDED
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.rendering import (
    EXTENSION,
    backing,
    desk_page,
    state,
    tick_link,
)
from torra.errors import MALFORMED, StoreUnavailable
from torra.home import LIVED
from torra.providers.vendors.addresses import key_sign
from torra.regular_files import read_regular
from torra.store import audit as audit_chain
from torra.store import jobs as job_table

YOUNG: Final = timedelta(days=14)
"""How long a home is young, real time."""

JOBS_READ: Final = 50
AUDIT_READ: Final = 20

TESTED: Final = "test model"
"""What the audit log calls the test of a model."""

DECIDED: Final = ("APPROVED", "REJECTED", "DENIED")
"""States in which a person's decision ends a proposal."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step: its title, why it is worth a minute, the words of its link, and where that leads.

    `note` says more of how it is done.
    """

    name: str
    title: str
    why: str
    link: str
    address: str
    done: bool
    note: str = ""


def first_run() -> str:
    """Show the first steps and what is done of them."""
    if state().backing is None:
        return desk_page("first_run.html", here=False)
    context = backing()
    steps = _steps(context)
    waiting = context.database.proposals(limit=1)
    return desk_page(
        "first_run.html",
        live=True,
        here=True,
        steps=steps,
        next=_next(steps),
        demo=context.desk.clock.accelerated,
        asks=[
            name
            for name, setup in context.desk.setups.items()
            if setup.profile.execution == "approve"
        ],
        proposal=url_for(".approval", sid=waiting[0].sid) if waiting else "",
    )


def api_first_run() -> ResponseReturnValue:
    """Answer the first steps and which of them are done."""
    steps = _steps(backing())
    return jsonify(
        steps=[{"step": step.name, "done": step.done, "note": step.note} for step in steps]
    )


def strip() -> dict[str, Any]:
    """Return what a page of ours gets: on Home the steps, while one is open in a young home."""
    visitor: Visitor | None = g.get("torra_visitor")
    context = state().backing
    if request.endpoint != f"{EXTENSION}.overview" or context is None:
        return {"first_steps": []}
    try:
        steps = _steps(context) if visitor and visitor.may("approve") and _young(context) else []
    except StoreUnavailable:
        steps = []
    return {"first_steps": steps if _next(steps) else [], "next_step": _next(steps)}


def _next(steps: list[Step]) -> Step | None:
    return next((step for step in steps if not step.done), None)


def _young(context: PageContext) -> bool:
    """Return whether a desk has lived here for a short time only."""
    try:
        since = parse(json.loads(read_regular(context.home / LIVED))["since"])
    except (OSError, *MALFORMED):
        return context.desk.clock.accelerated
    return context.desk.clock.real_now() - since < YOUNG


# --- the steps ------------------------------------------------------------------------------------


def _steps(context: PageContext) -> list[Step]:
    return [step(context) for step in _STEPS]


def _tick(context: PageContext) -> Step:
    streams = (
        (setup.instance.id, timeframe)
        for setup in context.desk.setups.values()
        for timeframe in setup.instance.timeframes
    )
    newest = (
        tick_link(name, timeframe, str(tick["bar_time"]))
        for name, timeframe in streams
        if (tick := context.database.latest_tick(name, timeframe))
    )
    address = next(newest, "")
    why = "It says why the desk did what it did, and who disagreed."
    link = "The newest tick"
    return Step("tick", "See a tick", why, link, address or url_for(".symbols"), bool(address))


def _approval(context: PageContext) -> Step:
    done = any(context.database.proposals(name, 1) for name in DECIDED)
    why = "You see what it may cost before you say yes."
    return Step("approval", "Approve a trade", why, "Approvals", url_for(".approvals"), done)


def _replay(context: PageContext) -> Step:
    rows = job_table.jobs(context.database, JOBS_READ)
    done = any(row["kind"] == "replay" and row["state"] == "done" for row in rows)
    why = "It shows on past bars whether the agents were worth it."
    return Step("replay", "Run a replay", why, "Replays", url_for(".replays"), done)


def _symbol(context: PageContext) -> Step:
    own = any(item.feed != "sample" for item in context.settings.instances)
    rows = audit_chain.audit_entries(context.database, limit=AUDIT_READ, action=ADDED)
    done = own or any(str(row["outcome"]).startswith("done") for row in rows)
    why = "From the broker's list or from a file; it begins on paper."
    note = "This desk watches symbols of your own." if own else ""
    address = url_for(".new_symbol")
    return Step("symbol", "Add your own symbol", why, "Add a symbol", address, done, note)


def _model(context: PageContext) -> Step:
    rows = audit_chain.audit_entries(context.database, limit=AUDIT_READ, action=TESTED)
    answered = any(json.loads(row["after"]).get("ok") is True for row in rows)
    key = any(key_sign(name, context.environment).variable for name in VENDORS)
    note = "A key is set: test its model." if key else "No key: rules decide, that is fine."
    note = "A model has answered." if answered else note
    why = "Without a key rules answer, free; a test shows what a model costs."
    address = url_for(".models")
    return Step("model", "Look at the models", why, "Models", address, answered or not key, note)


_STEPS: Final[tuple[Callable[[PageContext], Step], ...]] = (
    _tick,
    _approval,
    _replay,
    _symbol,
    _model,
)

ROUTES = (
    Route("/first-run", "first_run", first_run),
    Api("/api/v1/first-run", "api_first_run", api_first_run),
)
