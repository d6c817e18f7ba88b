"""The Flask app of the pages, and the extension that adds the same pages to another Flask app.

`create_app` returns a whole app. `TorraOverlay(app)` adds to a host one blueprint, below
TORRA_AGENTS_URL_PREFIX, and one entry in its `extensions`. It adds nothing else: headers, checks
and error pages belong to the blueprint, and /favicon.ico stays the host's.
A foreign host name gets 400, a request without a token 401, an unknown page our own 404. A database
that cannot be read gets 503. Any other fault gets 500 and a line in the log `torra.dashboard`.
`server` does the serving.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from flask import (
    Blueprint,
    Flask,
    Response,
    abort,
    current_app,
    jsonify,
    request,
    send_from_directory,
)
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.sansio.utils import host_is_trusted

from torra.config import ROOT
from torra.config import home as default_home
from torra.dashboard.doors.access import Access, asks_api, guard
from torra.dashboard.doors.routes import by_name, every_route
from torra.dashboard.settings.first_run import strip
from torra.dashboard.view.backing import PageContext, context_of
from torra.dashboard.view.commanding import wants_json
from torra.dashboard.view.desk_view import DatabaseView, DeskView
from torra.dashboard.view.rendering import EXTENSION, STATIC, PageState, page
from torra.desk.looking_desk import look_at
from torra.errors import ConfigError, StoreUnavailable
from torra.home import HOSTED

LOG: Final = logging.getLogger("torra.dashboard")
LOCAL_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
IPV6_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\])(?::\d{1,5})?")
READING: Final = ("GET", "HEAD")
DEFAULT_PREFIX: Final = "/torra"
FILES: Final = (f"{EXTENSION}.static", f"{EXTENSION}.icon")
"""The endpoints that give files of ours to anybody."""

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; media-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

ODD_QUESTION: Final = (
    "Not understood",
    "A filter or a place in this address is none that the page knows. Open the page without it.",
)
"""A 400 of an address that Torra does answer to."""

ERRORS: Final = {
    400: (
        "Refused",
        "This address is not one that Torra answers to. Open it as 127.0.0.1 or localhost.",
    ),
    401: ("Not logged in", "Open the link that torra run printed, or run: torra token"),
    403: (
        "Not allowed",
        "This token may not do that, or the request did not come from a page of this desk. "
        "Nothing was changed.",
    ),
    404: ("Not here", "There is no such page, symbol or tick. The overview lists what there is."),
    405: ("Not this way", "This address does not answer that method. Nothing was changed."),
    409: ("Too late", "It was decided or changed in the meantime. Load the page again."),
    413: ("Too large", "This is more than the pages take. Nothing was changed."),
    415: ("Not like this", "Only a form or JSON is taken. Nothing was changed."),
    429: ("Too often", "Wait a minute and try again. Nothing was changed."),
    500: ("Something broke", "The page could not be made; the log of torra.dashboard says why."),
    503: (
        "The database cannot be read",
        "No figures are shown rather than old ones. Check the disk and run: torra doctor",
    ),
}
"""Title and advice of each error page."""


class TorraOverlay:
    """The pages as a Flask extension; one object may serve several apps.

    Configuration of the host, all optional: TORRA_AGENTS_HOME (the home of the desk that is shown,
    default TORRA_HOME), TORRA_AGENTS_URL_PREFIX (default /torra) and TORRA_AGENTS_TRUSTED_HOSTS
    (names besides 127.0.0.1, localhost and [::1]). It shows a desk and never runs one: no thread
    and no scheduler is started. A host that has a view or a desk of its own hands it in.
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        desk_view: DeskView | None = None,
        access: Access | None = None,
        backing: PageContext | None = None,
    ) -> None:
        self._desk_view = desk_view
        self._access = access
        self._backing = backing
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Add the pages to an app; raises ConfigError for a prefix or a home that cannot be."""
        app.config.setdefault("TORRA_AGENTS_URL_PREFIX", DEFAULT_PREFIX)
        app.config.setdefault("TORRA_AGENTS_TRUSTED_HOSTS", ())
        app.config.setdefault("TORRA_AGENTS_HOME", str(_home()))
        prefix = str(app.config["TORRA_AGENTS_URL_PREFIX"])
        if not prefix.startswith("/") or not prefix.strip("/"):
            raise ConfigError(
                f"TORRA_AGENTS_URL_PREFIX is {prefix!r}: it must begin with a slash and name a "
                f"folder, such as {DEFAULT_PREFIX}"
            )
        view, backing, access = self._shown(Path(app.config["TORRA_AGENTS_HOME"]))
        known = PageState(
            view,
            access,
            backing,
            trusted_hosts=every_host(app.config["TORRA_AGENTS_TRUSTED_HOSTS"]),
        )
        attach(app, known, prefix.rstrip("/"))

    def _shown(self, home: Path) -> tuple[DeskView, PageContext | None, Access]:
        """Return view, backing and access: those handed in, else those of a home."""
        if self._desk_view is not None:
            return self._desk_view, self._backing, self._access or Access.made()
        context = context_of(look_at(home))
        access = self._access or Access.of_home(home)[0]
        view = DatabaseView(context.database, context.settings, context.desk)
        return view, self._backing or context, access


def _home() -> Path:
    """Return the home that is shown where none is named: TORRA_HOME, or the only overlay's."""
    if not os.environ.get("TORRA_HOME") and len(HOSTED) == 1:
        return next(iter(HOSTED))
    return default_home()


def create_app(
    desk_view: DeskView,
    *,
    access: Access | None = None,
    backing: PageContext | None = None,
    trusted_hosts: Sequence[str] = (),
    remote: bool = False,
) -> Flask:
    """Return an app that shows the pages at its root and nothing besides them.

    Without `access` its tokens are new and known to nobody: it answers the login page only.
    """
    app = Flask("torra.dashboard", static_folder=None, template_folder=None)
    known = PageState(
        desk_view,
        access or Access.made(),
        backing,
        trusted_hosts=every_host(trusted_hosts),
        remote=remote,
    )
    attach(app, known, None)
    app.add_url_rule("/favicon.ico", f"{EXTENSION}.icon", icon)  # by that name checked as ours
    # a 404 or 405 that Flask raises while it looks for the route belongs to no blueprint, so its
    # handlers do not see it
    app.register_error_handler(HTTPException, show_http_error)
    app.after_request(add_headers)
    return app


def every_host(named: Sequence[str]) -> tuple[str, ...]:
    """Return the names that the pages answer to."""
    return (*LOCAL_HOSTS, *((named,) if isinstance(named, str) else named))


def attach(app: Flask, known: PageState, prefix: str | None) -> None:
    """Register a blueprint with its state; the host's own parts stay as they are."""
    app.extensions[EXTENSION] = known
    app.register_blueprint(make_blueprint(), url_prefix=prefix)


def make_blueprint() -> Blueprint:
    """Return a fresh blueprint with every route, check and error page."""
    blueprint = Blueprint(
        EXTENSION,
        "torra.dashboard",
        template_folder=str(ROOT / "templates"),
        static_folder=str(STATIC),
        static_url_path="/assets",
    )
    for route in every_route():
        blueprint.add_url_rule(route.rule, route.name, route.view, methods=list(route.methods))
    blueprint.context_processor(strip)
    blueprint.before_request(check_request)
    blueprint.after_request(add_headers)
    for code in ERRORS:  # by code: a host's own handler of a code would win over a class of ours
        blueprint.register_error_handler(code, show_http_error)
    blueprint.register_error_handler(HTTPException, show_http_error)
    blueprint.register_error_handler(StoreUnavailable, show_store_error)
    blueprint.register_error_handler(Exception, show_unforeseen)
    return blueprint


def icon() -> Response:
    """Return the icon, for a browser that asks before it has read which one a page names."""
    return send_from_directory(STATIC, "torra.svg")


def check_request() -> ResponseReturnValue | None:
    """Refuse a foreign Host (a rebound name), a stranger, and a change that is not ours."""
    known: PageState = current_app.extensions[EXTENSION]
    # before all else: a rebound name learns nothing, not even which pages there are
    if not is_trusted(request.headers.get("Host", ""), known.trusted_hosts):
        abort(400)
    name = (request.endpoint or "").removeprefix(f"{EXTENSION}.")
    route = by_name().get(name)
    if request.method not in (*(route.methods if route else ()), *READING):
        # Flask answers OPTIONS by itself; the table of routes has no such method
        raise MethodNotAllowed(READING)
    if route is None:
        return None  # a file of ours; a missing address has its own route
    return guard(known.access, route, f"{EXTENSION}.login_page")


def is_trusted(host: str, trusted: Sequence[str]) -> bool:
    """Return whether a Host header names a trusted host, whatever its port and its case."""
    name = host.lower()
    bracketed = IPV6_HOST.fullmatch(name)
    if bracketed:  # werkzeug 3.1 takes the first colon of [::1] for the port's
        return bracketed[1] in trusted
    return host_is_trusted(name, [item for item in trusted if not item.startswith("[")])


def add_headers(response: Response) -> Response:
    """Add the security headers; pages and JSON are never cached, files are revalidated."""
    # setdefault: a replay's report is served with a policy of its own (screens.replays)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if response.mimetype != "text/event-stream":  # which says more of its own
        kept = "no-cache" if request.endpoint in FILES else "no-store"
        response.headers["Cache-Control"] = kept
    return response


def show_http_error(error: HTTPException) -> ResponseReturnValue:
    """Show a page of ours for an HTTP error."""
    # a rarer code shows the page of the nearest one that has words
    code = error.code if error.code in ERRORS else 500 if (error.code or 500) >= 500 else 404
    shown = _error(code)
    # HTTP asks for an Allow header in every 405
    allowed = getattr(error, "valid_methods", None) or READING
    return shown, error.code or 500, [("Allow", ", ".join(allowed))] if code == 405 else []


def show_store_error(error: StoreUnavailable) -> ResponseReturnValue:
    """Show that the database cannot be read."""
    LOG.error("the pages cannot read the database: %s", error)
    return _error(503), 503


def show_unforeseen(error: Exception) -> ResponseReturnValue:
    """Show that a page broke, and log the exception with its traceback."""
    LOG.error("a page broke: %s %s", request.method, request.path, exc_info=error)
    return _error(500), 500


def _error(code: int) -> Response | str:
    title, advice = ERRORS[code]
    known: PageState = current_app.extensions[EXTENSION]
    if code == 400 and is_trusted(request.headers.get("Host", ""), known.trusted_hosts):
        title, advice = ODD_QUESTION
    if _asks_for_json():
        return jsonify(error=title, advice=advice, status=code)
    return page("error.html", None, code=code, title=title, advice=advice)


def _asks_for_json() -> bool:
    """Return whether an error is answered as JSON: to programs and scripts, on their addresses."""
    if (request.endpoint or "").endswith(".healthz"):
        return True
    return asks_api() and (request.method in READING or wants_json())
