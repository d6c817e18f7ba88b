"""The screen Models: which can be asked and by whom, what they cost, and one small test question.

The figures are those of `torra models` (torra.desk.models.report). A key is found or missing, by
the name of its variable; no page ever holds its value. A test is a command like any other: it needs
the scope approve, is written to the audit log and is booked in the ledger before it is sent
(torra.desk.models.question). One runs at a time. What a model answers is a stranger's text.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from agent_config import VENDORS, full_name
from agents.registry import AGENTS
from torra.config import Profile
from torra.dashboard.doors.routes import Api, Command, Fields, Route
from torra.dashboard.trade.orders import person
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.commanding import CommandOutcome, command, words
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.desk.costs import Row
from torra.desk.models import expected_cost, expert_standing
from torra.desk.models import report as model_report
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.words.badge import Badge

TESTS_PER_MINUTE: Final = 6

LONGEST_MODEL: Final = 100
"""Characters of a model's name: the whole of one that can be tested."""

KEYS: Final = {
    "found": Badge("●", "key found", "note"),
    "missing": Badge("○", "no key", "flat"),
    "not needed": Badge("●", "no key needed", "note"),
    "wrong": Badge("✕", "key cannot be used", "alert"),
}
"""How a card says what is known of a key."""

_ONE: Final = threading.Lock()
"""Held while a test runs."""


def models() -> str:
    """Show which models can be asked, who asks them and what they cost."""
    if not state().backing:
        return desk_page("models.html", here=False)
    return desk_page(
        "models.html",
        here=True,
        report=document(backing()),
        keys=KEYS,
        agents=AGENTS,
        words=model_report,
        cost=expected_cost,
        weight=expert_standing.weight,
        test_line=_test_line,
    )


def api_models() -> ResponseReturnValue:
    """Answer keys (found or missing), models, prices, cost and the newest test by vendor."""
    return jsonify(document(backing()))


def test_model(vendor: str) -> ResponseReturnValue:
    """Ask one small question of a vendor's model: latency, tokens, cost, or what is wrong."""
    vendor = full_name(vendor)
    if vendor not in VENDORS:
        abort(404)

    def run() -> CommandOutcome:
        from torra.desk.models import question as model_question  # noqa: PLC0415  a page alone must not load the desk

        model = words().get("model", "").strip()
        _refuse_unlisted(vendor, model)
        if not _ONE.acquire(blocking=False):
            raise ConfigError("another test is under way: it ends within 15 seconds")
        try:
            context, who = backing(), person()
            result = model_question.ask(
                context.home, context.database, vendor, model, _profiles(), context.environment,
                context.settings.instances,
            )  # fmt: skip
        finally:
            _ONE.release()
        model_question.remember(context.database, result, who.actor, who.address)
        shown = {**result.document(), "answer": figures.sanitize(result.answer, 200)}
        return CommandOutcome("done", _test_line(shown), more={"test": shown}, on_record=True)

    return command("test model", vendor, run, back=url_for(".models"))


def _refuse_unlisted(vendor: str, model: str) -> None:
    listed = model_report.listed(vendor, _profiles())
    if model and model not in listed:
        raise ConfigError(
            f"{figures.sanitize(model, 60)} is not listed for {vendor}: take {', '.join(listed)}, "
            "or name it in a profile first"
        )


# --- reading --------------------------------------------------------------------------------------


def document(context: PageContext) -> Row:
    """Return the report on the models of a desk; raises ConfigError for a broken price list."""
    # Pages that look at a desk of another process have none of its counts.
    past = getattr(context.desk, "past", None)
    return model_report.report(
        context.home, context.database, context.setups, context.environment, past
    )


def _profiles() -> dict[str, Profile]:
    context = backing()
    return model_report.profiles_in_use(context.home, context.database, context.setups)


# --- arranging ------------------------------------------------------------------------------------


def _test_line(row: Mapping[str, Any]) -> str:
    """Return what a test came to, in a sentence; the model's own words are cleaned."""
    answer = figures.sanitize(row.get("answer"), 200)
    if row.get("ok") is True:
        seconds = figures.number(row.get("seconds"))
        took = figures.DASH if seconds is None else f"{seconds:.1f} s"
        if seconds is not None and seconds < 1:
            took = f"{1000 * seconds:.0f} ms"
        return f"It answered “{answer}” in {took}."
    wrote = f" It wrote: “{answer}”." if answer else ""
    return f"It failed: {figures.sanitize(row.get('error'), 300)}.{wrote}"


_BODY: Final[Fields] = {
    "model": {
        "type": "string",
        "maxLength": LONGEST_MODEL,
        "description": "A model of that vendor; default: the quick one that a profile asks.",
    }
}

ROUTES = (
    Route("/models", "models", models),
    Api("/api/v1/models", "api_models", api_models),
    Command(
        "/api/v1/models/<vendor>/test",
        "test_model",
        test_model,
        scope="approve",
        per_minute=TESTS_PER_MINUTE,
        body=_BODY,
    ),
)
