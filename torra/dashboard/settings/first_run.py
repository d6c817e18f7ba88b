"""The first steps of a newcomer, from a tick to a symbol of one's own: a checklist on a page.

A step is done when it is so: a tick is stored, a person has decided a proposal, a replay has ended,
a symbol is one's own, a model has answered. Nothing is noted and nothing is changed by looking. The
strip on Home is for whoever may approve, in a home that is young, until every step is done.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from flask import g, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from agent_config import VENDORS
from agents.features import rows_of
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


STEPS: Final = rows_of(Path(__file__).with_name("first_run.csv"))
"""The steps: what each is called, why it is worth a minute, the words and the page of its link."""

Step = dict[str, Any]


def first_run() -> str:
    """Show the first steps and what is done of them."""
    context = state().backing
    if context is None:
        return desk_page("first_run.html", here=False)
    steps = _steps(context)
    waiting = context.database.proposals(limit=1)
    setups = context.desk.setups.items()
    return desk_page(
        "first_run.html",
        live=True,
        here=True,
        steps=steps,
        next=_next(steps),
        demo=context.desk.clock.accelerated,
        asks=[name for name, setup in setups if setup.profile.execution == "approve"],
        proposal=url_for(".order", sid=waiting[0].sid) if waiting else "",
    )


def api_first_run() -> ResponseReturnValue:
    """Answer the first steps and which of them are done."""
    steps = _steps(backing())
    return jsonify(
        steps=[{"step": step["name"], "done": step["done"], "note": step["note"]} for step in steps]
    )


def strip() -> dict[str, Any]:
    """Return what a page of ours gets: on Home the steps, while one is open in a young home."""
    visitor: Visitor | None = g.get("torra_visitor")
    context = state().backing
    steps: list[Step] = []
    if request.endpoint == f"{EXTENSION}.overview" and context and visitor:
        with suppress(StoreUnavailable):
            steps = _steps(context) if visitor.may("approve") and _young(context) else []
    step = _next(steps)
    return {"first_steps": steps if step else [], "next_step": step}


def _next(steps: list[Step]) -> Step | None:
    return next((step for step in steps if not step["done"]), None)


def _young(context: PageContext) -> bool:
    """Return whether a desk has lived here for a short time only."""
    try:
        since = parse(json.loads(read_regular(context.home / LIVED))["since"])
    except (OSError, *MALFORMED):
        return context.desk.clock.accelerated
    return context.desk.clock.real_now() - since < YOUNG


# --- the steps ------------------------------------------------------------------------------------


def _steps(context: PageContext) -> list[Step]:
    """Return the steps with what is so: whether each is done, where it leads, a note."""
    database = context.database
    tick = _newest_tick(context)
    own = any(item.feed != "sample" for item in context.settings.instances)
    tests = audit_chain.audit_entries(database, limit=AUDIT_READ, action=TESTED)
    answered = any(json.loads(row["after"]).get("ok") is True for row in tests)
    key = any(key_sign(name, context.environment).variable for name in VENDORS)
    done = {
        "tick": bool(tick),
        "approval": any(database.proposals(name, 1) for name in DECIDED),
        "replay": any(
            row["kind"] == "replay" and row["state"] == "done"
            for row in job_table.jobs(database, JOBS_READ)
        ),
        "symbol": own
        or any(
            str(row["outcome"]).startswith("done")
            for row in audit_chain.audit_entries(database, limit=AUDIT_READ, action=ADDED)
        ),
        "model": answered or not key,
    }
    asks = "A key is set: test its model." if key else "No key: rules decide, that is fine."
    notes = {
        "symbol": "This desk watches symbols of your own." if own else "",
        "model": "A model has answered." if answered else asks,
    }
    return [
        {
            **row,
            "done": done[row["name"]],
            "note": notes.get(row["name"], ""),
            "address": tick if tick and row["name"] == "tick" else url_for(f".{row['endpoint']}"),
        }
        for row in STEPS
    ]


def _newest_tick(context: PageContext) -> str:
    """Return the address of the newest tick of the first stream that has one, "" for none."""
    for setup in context.desk.setups.values():
        for timeframe in setup.instance.timeframes:
            if tick := context.database.latest_tick(setup.instance.id, timeframe):
                return tick_link(setup.instance.id, timeframe, str(tick["bar_time"]))
    return ""


ROUTES = (
    Route("/first-run", "first_run", first_run),
    Api("/api/v1/first-run", "api_first_run", api_first_run),
)
