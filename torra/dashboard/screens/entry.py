"""Login and logout: the pages by which a visitor without a session enters.

A right token is accepted at any time. Behind a proxy, or for the programs of one machine, everybody
has the same address, so the wrong tokens of others must not lock out the owner. Wrong tokens are
limited, as those of programs are (`access.count_wrong`).
A login ends the session that the browser had before. A login and a logout are written to the audit
log if there is a database. A log that cannot be written locks nobody out, for the pages that follow
say what is broken.
"""

from __future__ import annotations

import logging
from typing import Final

from flask import Response, current_app, jsonify, make_response, redirect, request, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.access import (
    CHALLENGE,
    Visitor,
    count_wrong,
    counted,
    own_path,
    too_often,
    trustworthy,
    visitor,
)
from torra.dashboard.doors.access_file import Owner
from torra.dashboard.doors.routes import Route
from torra.dashboard.view.commanding import given
from torra.dashboard.view.rendering import page, state
from torra.errors import ConfigError, StoreUnavailable

LOG: Final = logging.getLogger("torra.dashboard")
LOGINS_A_MINUTE: Final = 60
"""Logins with one token, from anywhere: only its owner can use them up."""


def login_page() -> str:
    """Ask for a token; a link from `torra run` brings it in its fragment."""
    return _form(request.args.get("next", ""))


def login() -> ResponseReturnValue:
    """Exchange a token for a session."""
    fields = _given()
    owner = state().access.owner_of(fields.get("token", "").strip())
    if owner is None:
        count_wrong(state().access, "login")
        return _refused(fields.get("next", ""))
    # a right token is counted by its owner: the address may be everybody's
    _count_right(owner, request.remote_addr or "")
    return _entered(owner, own_path(fields.get("next", ""), root()))


def logout() -> ResponseReturnValue:
    """End the session."""
    answer = make_response(redirect(url_for(".login_page"), 303))
    who = visitor()
    state().access.close_session(answer, root(), who.session)
    _on_record(who, "logout")
    return answer


def root() -> str:
    """Return the path below which everything of ours lies."""
    return url_for(".overview")


def _count_right(owner: Owner, address: str) -> None:
    known = counted(state().access)
    seconds = known.rates.wait(("login", owner.scope, owner.name), LOGINS_A_MINUTE)
    if seconds > 0.0:
        too_often(seconds)
    known.failures.succeeded(address)


def _given() -> dict[str, str]:
    """Return the texts of the body; a body that cannot be read has none, so its token is wrong."""
    try:
        return {name: value for name, value in given().items() if isinstance(value, str)}
    except ConfigError:
        return {}


def _entered(owner: Owner, onward: str) -> Response:
    answer = make_response(
        jsonify(scope=owner.scope, next=onward) if request.is_json else redirect(onward, 303)
    )
    access = state().access
    before = access.session(request)
    if before is not None:  # maybe not the visitor's own: somebody may have planted its cookie
        access.end_session(before.id)
    who = access.open_session(answer, owner, root())
    _on_record(who, "login")
    return answer


def _refused(onward: str) -> ResponseReturnValue:
    shown = jsonify(error="not a token of this desk", status=401)
    return (
        shown if request.is_json else _form(onward, wrong=True),
        401,
        {"WWW-Authenticate": CHALLENGE},
    )


def _form(onward: str, *, wrong: bool = False) -> str:
    inside = own_path(onward, root())
    return page(
        "login.html",
        None,
        onward=inside,
        wrong=wrong,
        in_the_clear=not trustworthy(),
        # create_app's app shows nothing but the pages; any other is somebody's own program
        in_a_host=current_app.import_name != "torra.dashboard",
    )


def _on_record(who: Visitor, action: str) -> None:
    behind = state().backing
    if behind is None:
        return
    try:
        behind.database.audit(
            actor=who.actor, address=request.remote_addr or "", action=action, target=who.scope
        )
    except StoreUnavailable as error:
        LOG.error("a %s is not on record: %s", action, error)


ROUTES = (
    Route("/login", "login_page", login_page, scope=None),
    Route("/login", "login", login, methods=("POST",), scope=None),
    Route("/logout", "logout", logout, methods=("POST",)),
)
