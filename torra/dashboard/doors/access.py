"""Access control of the pages: sessions, scopes, and the checks before every request.

A person logs in with a token, from the fragment of a link or typed in, and gets a signed session
cookie. A program sends a token as a bearer. A token in the address itself is never accepted.
A request that changes something must come from a page of ours: same origin, with the session's own
CSRF token in the form or in a header, small, and a form or JSON.
A refused request gets 400, 401, 403, 413, 415 or 429, and nothing has happened. While the token
file cannot be used, every token and every session is refused.
`access_file` keeps the tokens on disk; `limits` counts requests.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import ipaddress
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from flask import (
    Flask,
    Request,
    Response,
    abort,
    after_this_request,
    current_app,
    g,
    redirect,
    request,
    url_for,
)
from flask.typing import ResponseReturnValue
from itsdangerous import BadData, URLSafeSerializer

from torra.clock import Clock, System
from torra.clock import token as new_token
from torra.dashboard.doors import access_file
from torra.dashboard.doors.access_file import Owner, Tokens
from torra.dashboard.doors.limits import BackOff, RateLimits
from torra.dashboard.doors.routes import Route, by_name
from torra.errors import ConfigError
from torra.home import ACCESS

LOG: Final = logging.getLogger("torra.dashboard")
SCOPES: Final = access_file.SCOPES

IDLE_SECONDS: Final = 12 * 3600
"""A session ends this long after the last page that was opened or command that was sent with it.
What a page fetches by itself does not count."""

LONGEST_SECONDS: Final = 30 * 24 * 3600
"""A session ends this long after the login, however much it was used."""

RENEW_SECONDS: Final = 300
"""A session that is used gets a new cookie this often."""

MOST_ENDED: Final = 10_000
"""Logged-out sessions that are remembered, so that a copy of their cookie stays refused."""

SAFE: Final = ("GET", "HEAD", "OPTIONS")
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "X-Torra-CSRF"
LARGEST_BODY: Final = 256 * 1024
"""Bytes of a request's body."""

KINDS: Final = ("application/x-www-form-urlencoded", "application/json")
"""Accepted media types of a body."""

FORM_OF_FILES: Final = "multipart/form-data"
"""... and that of a route that takes files."""

MOST_FIELDS: Final = 16
"""Fields of such a form."""

WRONG_A_MINUTE: Final = 5
"""Wrong tokens from one address, typed in and of programs together."""

LONGEST_PATH: Final = 2000
CHALLENGE: Final = 'Bearer realm="torra"'


@dataclass(frozen=True, slots=True)
class Visitor:
    """The author of a request: `actor` goes on record; `session` is "" for a bearer token.

    `name` is "" for the token without one; `ask_model` says whether their questions may cost a
    model's answer.
    """

    scope: str
    actor: str
    session: str = ""
    name: str = ""
    ask_model: bool = field(default=False, compare=False)

    @property
    def person(self) -> str:
        """The person by their login: the name, or the kind of token that all without one share."""
        return self.name or f"token:{self.scope}"

    def may(self, scope: str) -> bool:
        """Return whether this visitor has a scope."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


@dataclass(frozen=True, slots=True)
class Session:
    """The content of a cookie: scope, id, the Unix seconds of the login and of the last use.

    Of a person it also has the name, and a mark of the token, with which it ends.
    """

    scope: str
    id: str
    since: int
    at: int
    name: str = ""
    mark: str = ""

    @property
    def visitor(self) -> Visitor:
        """The person behind it."""
        # whoever has no name is told by the session alone
        who = self.name or "session"
        return Visitor(self.scope, f"{who}:{self.id[:6]}:{self.scope}", self.id, self.name)


class Access:
    """The tokens of a desk and its sessions.

    An Access of a home follows the file there: new tokens count at once and end every session.
    While that file cannot be used, nobody is let in.
    """

    def __init__(
        self,
        tokens: Mapping[str, str],
        key: str,
        *,
        path: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock: Clock = clock or System()
        self._tokens = Tokens(dict(tokens), key)
        self._path = path
        self._stamp: tuple[int, ...] = ()
        self._trouble = ""
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def made(cls) -> Access:
        """Return an Access with new tokens that no file holds."""
        made = access_file.make()
        return cls(made.by_scope, made.key)

    @classmethod
    def of_home(cls, home: Path) -> tuple[Access, bool]:
        """Return a home's access and whether it was made just now; raises ConfigError."""
        tokens, new = access_file.read_or_make(home)
        return cls(tokens.by_scope, tokens.key, path=home / ACCESS), new

    @property
    def tokens(self) -> Mapping[str, str]:
        """The tokens by scope."""
        return self._known().by_scope

    @property
    def cookie(self) -> str:
        """Name of the session cookie: cookies are shared between the ports of a host."""
        return "torra_session_" + hashlib.sha256(self._known().key.encode()).hexdigest()[:8]

    def owner_of(self, token: str) -> Owner | None:
        """Return the owner of a token, None for an unknown token."""
        return self._known().owner_of(token)

    def visitor(self, incoming: Request) -> Visitor | None:
        """Return the visitor of a request, None without a valid token or session."""
        return self._who(*self._brought(incoming))

    def still_in(self, incoming: Request) -> Callable[[], bool]:
        """Return a function that says, at any later time, whether this visitor would still get in.

        The function keeps nothing of the request, so a stream may call it long after. It returns
        False after a logout, at the end that the session's cookie had, and after new tokens.
        """
        brought = self._brought(incoming)
        first = self._who(*brought)
        return lambda: first is not None and self._who(*brought) == first

    def session(self, incoming: Request) -> Session | None:
        """Return the session of a request's cookie while it lasts."""
        return self._session_of(incoming.cookies.get(self.cookie, ""))

    def _brought(self, incoming: Request) -> tuple[str, str]:
        """Return the credentials of a request: its Authorization header and its cookie."""
        return incoming.headers.get("Authorization", ""), incoming.cookies.get(self.cookie, "")

    def _who(self, authorization: str, cookie: str) -> Visitor | None:
        token = bearer_of(authorization)
        if token is not None:
            owner = self.owner_of(token)
            if owner is None:
                return None
            actor = f"{owner.name}:token:{owner.scope}" if owner.name else f"token:{owner.scope}"
            return Visitor(owner.scope, actor, "", owner.name, owner.may_ask_model)
        session = self._session_of(cookie)
        if session is None:
            return None
        # the right is read from the file of now: what was decided since the login counts
        owner = self._known().person(session.name) or Owner(session.scope)
        return dataclasses.replace(session.visitor, ask_model=owner.may_ask_model)

    def _session_of(self, cookie: str) -> Session | None:
        try:
            session = Session(**self._signer().loads(cookie))
        # TypeError: a cookie that is signed, but does not hold the fields of a Session
        except (BadData, TypeError):
            return None
        now = self.clock.real_now().timestamp()
        lasts = now - session.at < IDLE_SECONDS and now - session.since < LONGEST_SECONDS
        lasts = lasts and session.scope in SCOPES and session.id not in self._ended
        marked = self._known().mark(Owner(session.scope, session.name))
        return session if lasts and marked == session.mark else None

    def open_session(self, response: Response, owner: Owner, path: str) -> Visitor:
        """Give a browser a session."""
        now = int(self.clock.real_now().timestamp())
        mark = self._known().mark(owner) or ""
        session = Session(owner.scope, new_token(12), now, now, owner.name, mark)
        self._write(response, session, path)
        return session.visitor

    def keep_session(self, response: Response, session: Session, path: str) -> None:
        """Renew the cookie of a session, unless it is new enough or the session was ended."""
        now = int(self.clock.real_now().timestamp())
        if now - session.at >= RENEW_SECONDS and session.id not in self._ended:
            self._write(response, dataclasses.replace(session, at=now), path)

    def close_session(self, response: Response, path: str, session: str = "") -> None:
        """Take the session from a browser; a copy of its cookie is worth nothing from now on."""
        # a browser drops a cookie only for the path that it was set with
        response.delete_cookie(self.cookie, path=path, httponly=True, samesite="Strict")
        if session:
            self.end_session(session)

    def end_session(self, session: str) -> None:
        """Refuse a session from now on, by its id, wherever copies of its cookie are."""
        with self._lock:
            self._ended[session] = None
            while len(self._ended) > MOST_ENDED:
                self._ended.popitem(last=False)

    def csrf(self, visitor: Visitor) -> str:
        """Return the CSRF token of a session, which its pages send with every change."""
        text = f"csrf {visitor.session}".encode()
        return hmac.new(self._known().key.encode(), text, "sha256").hexdigest()

    def _known(self) -> Tokens:
        """Return the tokens as the file has them now."""
        if self._path is None:
            return self._tokens
        try:
            status = self._path.stat()
            # the mode too: a chmod that opens the file to others leaves its mtime as it was
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode)
            if stamp != self._stamp:
                self._tokens, self._stamp, self._trouble = access_file.read(self._path), stamp, ""
        except (OSError, ConfigError) as error:
            self._let_nobody_in(str(error))
        return self._tokens

    def _let_nobody_in(self, why: str) -> None:
        # once per trouble: this runs several times in every request, and each time would be a line
        if not self._trouble:
            LOG.error("nobody is let in: %s", why)
            # a key that nobody knows: the cookies that the old key signed are worth nothing either
            self._tokens, self._stamp, self._trouble = Tokens({}, new_token(32)), (), why

    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self._known().key, salt="torra session")

    def _write(self, response: Response, session: Session, path: str) -> None:
        response.set_cookie(
            self.cookie,
            str(self._signer().dumps(asdict(session))),
            path=path,
            httponly=True,
            samesite="Strict",
            # a secure cookie does not come back in the clear, and on 127.0.0.1 nothing is encrypted
            secure=request.is_secure,
            max_age=IDLE_SECONDS,
        )


def bearer_of(authorization: str) -> str | None:
    """Return the token of an Authorization header, None where it is of another kind."""
    kind, _, token = authorization.partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


# --- the checks before a request ------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """The counts of one app: requests by visitor, and failed logins by address."""

    rates: RateLimits
    failures: BackOff


_COUNTED: Final[WeakKeyDictionary[Flask, Counted]] = WeakKeyDictionary()
"""By app: requests to one app do not count in another that has the same tokens."""


def counted(access: Access) -> Counted:
    """Return the counts of the app that answers this request."""
    # the app itself: a proxy is another object in every request
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001
    counts = _COUNTED.get(app)
    if counts is None:
        monotonic = access.clock.monotonic
        # setdefault: two first requests at once must count in the same place
        counts = _COUNTED.setdefault(app, Counted(RateLimits(monotonic), BackOff(monotonic)))
    return counts


def guard(access: Access, route: Route, login: str) -> ResponseReturnValue | None:
    """Check the request that is being answered against its route.

    None lets it pass. `login` names the endpoint that a person without a session is sent to.
    """
    caller: Visitor | None = access.visitor(request)
    g.torra_visitor = caller
    if route.scope is not None:
        if caller is None:
            return _stranger(access, login)
        if not caller.may(route.scope):
            _forbid(caller, route.scope)
    _check_size()
    if request.method not in SAFE:
        _check_kind(route)
        check_origin(program=caller is not None and not caller.session)
        if route.scope is not None and caller is not None and caller.session:
            check_csrf(access, caller)
    # after the checks: a refused request costs no try, so that another site cannot use up ours
    _check_rate(access, route, caller)
    _keep_session(access, route)
    return None


def check_origin(*, program: bool = False) -> None:
    """Refuse a change that a page of another origin asked for.

    Browsers say in Sec-Fetch-Site where a request comes from, but only to an encrypted address or
    to this machine; a browser elsewhere must name our origin. A `program`, which has a bearer
    token, may name no origin at all.
    """
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    ours = f"{request.scheme}://{request.host}"
    if site is not None:
        # our pages send no referrer: under that policy a browser gives a form's origin as "null"
        passes = site == "same-origin" and origin in (ours, "null")
    elif program:
        passes = origin in (None, ours)
    else:
        # to a trustworthy address a browser would have sent Sec-Fetch-Site: this is none
        passes = origin == ours and not trustworthy()
    if not passes:
        abort(403)


def trustworthy() -> bool:
    """Return whether the request came encrypted or from this machine, as browsers see it."""
    name = urlsplit(f"//{request.host}").hostname or ""
    try:
        local = ipaddress.ip_address(name).is_loopback
    except ValueError:
        local = name == "localhost"
    return local or request.is_secure


def check_csrf(access: Access, visitor: Visitor) -> None:
    """Refuse a change that does not carry the session's own token."""
    given = request.headers.get(CSRF_HEADER) or request.form.get(CSRF_FIELD) or ""
    # bytes: compare_digest raises for a text that is not ASCII
    if not hmac.compare_digest(given.encode("utf-8", "replace"), access.csrf(visitor).encode()):
        abort(403)


def visitor() -> Visitor:
    """Return the visitor of this request; for routes with a scope, else 401."""
    caller: Visitor | None = g.get("torra_visitor")
    if caller is None:
        abort(401)
    return caller


def own_path(text: str, root: str) -> str:
    """Return a path that stays below our own root, or the root for anything else."""
    plain = unquote(text)
    # browsers read a backslash as a slash, and //name as another host
    odd = not plain.isprintable() or "\\" in plain or text.startswith("//")
    try:
        split = urlsplit("" if odd or len(text) > LONGEST_PATH else text)
    except ValueError:
        return root
    inside = not split.scheme and not split.netloc and split.path.startswith(root)
    climbs = any(part in (".", "..") for part in plain.split("?")[0].split("/"))
    return text if text and inside and not climbs else root


def too_often(seconds: float) -> NoReturn:
    """Answer 429, with the seconds to wait in Retry-After."""
    _refuse(429, {"Retry-After": str(max(1, math.ceil(seconds)))})


def count_wrong(access: Access, what: str) -> None:
    """Note a wrong token, of a login or of a program; 429 for one that came too soon.

    Only for a token that is known to be wrong: its address may be everybody's, and a right token
    is let in at any time.
    """
    address = request.remote_addr or ""
    known = counted(access)
    seconds = known.failures.wait(address)
    # only after the pause: this one counts the try
    seconds = seconds or known.rates.wait(("wrong token", address), WRONG_A_MINUTE)
    if seconds > 0.0:
        too_often(seconds)
    known.failures.failed(address)
    LOG.warning("a %s from %s failed", what, address)


def asks_api() -> bool:
    """Return whether the request is for the API, so that a refusal is JSON and not a page."""
    route = by_name().get((request.endpoint or "").rpartition(".")[2])
    # an unknown address of the API is caught by the route for all the rest
    missing = str((request.view_args or {}).get("missing", ""))
    return missing.startswith("api/") or bool(route and route.rule.startswith("/api/"))


def _stranger(access: Access, login: str) -> ResponseReturnValue:
    """Send a person to the login, and tell a program what is missing; a wrong token counts."""
    shown = request.method in SAFE and request.accept_mimetypes.accept_html and not asks_api()
    given = "Authorization" in request.headers
    if shown and not given:
        path = request.script_root + request.full_path.rstrip("?")
        onward = path if len(path) <= LONGEST_PATH else None
        return redirect(url_for(login, next=onward), 303)
    if bearer_of(request.headers.get("Authorization", "")):
        count_wrong(access, "bearer token")
    reason = ', error="invalid_token"' if given else ""
    return _refuse(401, {"WWW-Authenticate": CHALLENGE + reason})


def _forbid(caller: Visitor, scope: str) -> NoReturn:
    challenge = f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'
    _refuse(403, {} if caller.session else {"WWW-Authenticate": challenge})


def _refuse(code: int, headers: Mapping[str, str]) -> NoReturn:
    """End the request with an error page that has these headers."""

    def add(response: Response) -> Response:
        response.headers.update(headers)
        return response

    # abort() leads to an error handler that makes the response: no headers can be given to it here
    after_this_request(add)
    abort(code)


def _check_size() -> None:
    """Refuse a body that is too large, or states no length, before any of it is read."""
    request.max_content_length = LARGEST_BODY
    if (request.content_length or 0) > LARGEST_BODY or "Transfer-Encoding" in request.headers:
        abort(413)


def _check_kind(route: Route) -> None:
    also = (FORM_OF_FILES,) if route.files else ()
    # what is read of it stays in memory: the body has a limit already
    request.max_form_memory_size, request.max_form_parts = LARGEST_BODY, MOST_FIELDS
    if request.content_length and request.mimetype not in (*KINDS, *also):
        abort(415)


def _check_rate(access: Access, route: Route, caller: Visitor | None) -> None:
    if route.per_minute is None:
        return
    known = caller if route.scope is not None else None  # what anybody may ask counts by address
    who = (known.session or known.actor) if known else f"address:{request.remote_addr}"
    seconds = counted(access).rates.wait((route.name, who), route.per_minute)
    if seconds > 0.0:
        too_often(seconds)


def _keep_session(access: Access, route: Route) -> None:
    """Renew the session of a visitor who opened a page or sent a command.

    A route without a scope renews nothing: a login writes its own cookie, which must be the last.
    """
    fetched = request.method in SAFE and route.reply != "html"
    if route.scope is None or fetched or "Authorization" in request.headers:
        return
    session = access.session(request)
    if session is None:
        return

    def keep(response: Response) -> Response:
        access.keep_session(response, session, url_for(".overview"))
        return response

    after_this_request(keep)
