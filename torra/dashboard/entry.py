"""Login and logout: the only pages that anybody may ask."""

from __future__ import annotations

from flask import Response, abort, jsonify, redirect, request, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.access import check_origin, own_path
from torra.dashboard.rendering import page, state
from torra.dashboard.routes import Route


def login_page() -> str:
    """Ask for a token; a link from `torra run` brings it in its fragment."""
    return page("login.html", None, onward=own_path(request.args.get("next", ""), root()))


def login() -> ResponseReturnValue:
    """Exchange a token for a session."""
    check_origin()
    given = request.get_json(silent=True) if request.is_json else request.form
    token = str((given or {}).get("token", ""))
    scope = state().access.scope_of(token.strip())
    if scope is None:
        abort(401)
    onward = own_path(str((given or {}).get("next", "")), root())
    answer: Response = (
        jsonify(scope=scope, next=onward) if request.is_json else redirect(onward, 303)  # type: ignore[assignment]
    )
    state().access.open_session(answer, scope, root())
    return answer


def logout() -> ResponseReturnValue:
    """End the session."""
    answer = redirect(url_for("torra_agents.login_page"), 303)
    state().access.close_session(answer, root())  # type: ignore[arg-type]
    return answer


def root() -> str:
    """Return the path below which everything of ours lies."""
    return url_for("torra_agents.overview")


ROUTES = (
    Route("/login", "login_page", login_page, scope=None),
    Route("/login", "login", login, methods=("POST",), scope=None, per_minute=5),
    Route("/logout", "logout", logout, methods=("POST",)),
)
