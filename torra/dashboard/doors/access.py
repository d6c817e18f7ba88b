"""Who may see and do what: sessions, scopes, and the checks before every request.

A person logs in with a token, by the fragment of a link or by hand, and gets a signed session
cookie; a program sends a token as a bearer; a token in an address is never taken. A request that
changes something must come from a page of ours: same origin, with the session's own token in the
form or in a header, small, a form or JSON. What is refused is a 400, 401, 403, 413, 415 or 429 and
nothing has happened; when the file of the tokens cannot be used, nobody is let in. Tokens on disk
are `access_file`'s part, counting is `limits`'.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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
from torra.dashboard.doors.access_file import Tokens
from torra.dashboard.doors.limits import BackOff, RateLimits
from torra.dashboard.doors.routes import Route, by_name
from torra.errors import ConfigError
from torra.home import ACCESS

LOG: Final = logging.getLogger("torra.dashboard")
SCOPES: Final = access_file.SCOPES

IDLE_SECONDS: Final = 12 * 3600
"""A session ends when no page was opened with it, and nothing done, for this long. What a page
fetches by itself does not count."""

LONGEST_SECONDS: Final = 30 * 24 * 3600
"""A session ends this long after the login, however much it was used."""

RENEW_SECONDS: Final = 300
"""A session that is used gets a new cookie this often."""

MOST_ENDED: Final = 10_000
"""Sessions that were ended before their time and are remembered as such."""

SAFE: Final = ("GET", "HEAD", "OPTIONS")
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "X-Torra-CSRF"
LARGEST_BODY: Final = 256 * 1024
"""Bytes of a request's body."""

KINDS: Final = ("application/x-www-form-urlencoded", "application/json")
"""What a body may be."""

LONGEST_PATH: Final = 2000
CHALLENGE: Final = 'Bearer realm="torra"'


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: `actor` goes on record, `session` is "" for a program with a bearer token."""

    scope: str
    actor: str
    session: str = ""

    def may(self, scope: str) -> bool:
        """Return whether this visitor has a scope."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


@dataclass(frozen=True, slots=True)
class Session:
    """What a cookie says: scope, id, seconds since 1970 of the login and of the last use."""

    scope: str
    id: str
    since: int
    at: int

    @property
    def visitor(self) -> Visitor:
        """The person behind it."""
        return Visitor(self.scope, f"session:{self.id[:6]}:{self.scope}", self.id)


class Access:
    """The tokens of a desk and its sessions.

    One that belongs to a home follows the file there: new tokens hold at once and end every
    session, and without a file that can be used nobody is let in.
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
        self._held = Tokens(dict(tokens), key)
        self._path = path
        self._seen: tuple[int, ...] = ()
        self._trouble = ""
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def made(cls) -> Access:
        """Return new tokens that are kept nowhere."""
        made = access_file.make()
        return cls(made.by_scope, made.key)

    @classmethod
    def of_home(cls, home: Path) -> tuple[Access, bool]:
        """Return a home's access and whether it was made just now; raises ConfigError."""
        found, new = access_file.read_or_make(home)
        return cls(found.by_scope, found.key, path=home / ACCESS), new

    @property
    def tokens(self) -> Mapping[str, str]:
        """The tokens by scope."""
        return self._known().by_scope

    @property
    def cookie(self) -> str:
        """Name of the session cookie: cookies are shared between the ports of a host."""
        return "torra_session_" + hashlib.sha256(self._known().key.encode()).hexdigest()[:8]

    def scope_of(self, token: str) -> str | None:
        """Return the scope that a token gives, None for a token that is none of ours."""
        return self._known().scope_of(token)

    def visitor(self, asked: Request) -> Visitor | None:
        """Return who asks, None for nobody that is known."""
        return self._who(*self._brought(asked))

    def still_in(self, asked: Request) -> Callable[[], bool]:
        """Return what tells, at any later time, whether who asks now would still be let in.

        It holds nothing of the request, so that a stream may ask it long after. It says no after a
        logout, at the session's end as its cookie was, and when the tokens are new.
        """
        brought = self._brought(asked)
        first = self._who(*brought)
        return lambda: first is not None and self._who(*brought) == first

    def session(self, asked: Request) -> Session | None:
        """Return the session of a request's cookie while it lasts."""
        return self._session_of(asked.cookies.get(self.cookie, ""))

    def _brought(self, asked: Request) -> tuple[str, str]:
        """Return what a request was let in with: its header and its cookie."""
        return asked.headers.get("Authorization", ""), asked.cookies.get(self.cookie, "")

    def _who(self, authorization: str, cookie: str) -> Visitor | None:
        kind, _, token = authorization.partition(" ")
        if kind.lower() == "bearer":
            scope = self.scope_of(token.strip())
            return Visitor(scope, f"token:{scope}") if scope else None
        session = self._session_of(cookie)
        return session.visitor if session else None

    def _session_of(self, cookie: str) -> Session | None:
        try:
            told = Session(**self._signer().loads(cookie))
        except (BadData, TypeError):
            return None
        now = self.clock.real_now().timestamp()
        lasts = now - told.at < IDLE_SECONDS and now - told.since < LONGEST_SECONDS
        return told if lasts and told.scope in SCOPES and told.id not in self._ended else None

    def open_session(self, response: Response, scope: str, path: str) -> Visitor:
        """Give a browser a session."""
        now = int(self.clock.real_now().timestamp())
        session = Session(scope, new_token(12), now, now)
        self._write(response, session, path)
        return session.visitor

    def keep_session(self, response: Response, session: Session, path: str) -> None:
        """Put the end of a session off, if that was not done a moment ago and it was not ended."""
        now = int(self.clock.real_now().timestamp())
        if now - session.at >= RENEW_SECONDS and session.id not in self._ended:
            self._write(response, Session(session.scope, session.id, session.since, now), path)

    def close_session(self, response: Response, path: str, session: str = "") -> None:
        """Take the session from a browser; a copy of its cookie is worth nothing from now on."""
        response.delete_cookie(self.cookie, path=path, httponly=True, samesite="Strict")
        if session:
            self.end_session(session)

    def end_session(self, session: str) -> None:
        """Let nobody in with a session any more, by its id; whoever still has its cookie."""
        with self._lock:
            self._ended[session] = None
            while len(self._ended) > MOST_ENDED:
                self._ended.popitem(last=False)

    def csrf(self, visitor: Visitor) -> str:
        """Return the token that a session's own pages send with what changes something."""
        told = f"csrf {visitor.session}".encode()
        return hmac.new(self._known().key.encode(), told, "sha256").hexdigest()

    def _known(self) -> Tokens:
        """Return the tokens as the file has them now."""
        if self._path is None:
            return self._held
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode)
            if seen != self._seen:
                self._held, self._seen, self._trouble = access_file.read(self._path), seen, ""
        except (OSError, ConfigError) as error:
            self._let_nobody_in(str(error))
        return self._held

    def _let_nobody_in(self, why: str) -> None:
        if not self._trouble:
            LOG.error("nobody is let in: %s", why)
            self._held, self._seen, self._trouble = Tokens({}, new_token(32)), (), why

    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self._known().key, salt="torra session")

    def _write(self, response: Response, session: Session, path: str) -> None:
        response.set_cookie(
            self.cookie,
            str(self._signer().dumps(asdict(session))),
            path=path,
            httponly=True,
            samesite="Strict",
            secure=request.is_secure,
            max_age=IDLE_SECONDS,
        )


# --- the checks before a request ------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """How often the visitors of one app asked, and who failed to log in."""

    rates: RateLimits
    failures: BackOff


_COUNTED: Final[WeakKeyDictionary[Flask, Counted]] = WeakKeyDictionary()
"""By app: what one app was asked is nothing to another that has the same tokens."""


def counted(access: Access) -> Counted:
    """Return what the app that answers this request has counted."""
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001
    found = _COUNTED.get(app)
    if found is None:
        monotonic = access.clock.monotonic
        found = _COUNTED.setdefault(app, Counted(RateLimits(monotonic), BackOff(monotonic)))
    return found


def guard(access: Access, scope: str | None, login: str) -> ResponseReturnValue | None:
    """Check the request that is being answered against the scope of its route.

    None lets it pass; `scope` is None for a route that anybody may ask. `login` names the endpoint
    that a person without a session is sent to.
    """
    found: Visitor | None = access.visitor(request)
    g.torra_visitor = found
    if scope is not None:
        if found is None:
            return _stranger(login)
        if not found.may(scope):
            _forbid(found, scope)
    _check_size()
    if request.method not in SAFE:
        _check_kind()
        check_origin(program=found is not None and not found.session)
        if scope is not None and found is not None and found.session:
            check_csrf(access, found)
    _check_rate(access, found)
    _keep_session(access)
    return None


def check_origin(*, program: bool = False) -> None:
    """Refuse a change that a page of another origin asked for.

    Browsers tell where a request comes from. A `program`, which has a bearer token, need not; nor
    can a browser that talks to another machine in the clear, which then has to name the origin.
    """
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    ours = f"{request.scheme}://{request.host}"
    if site is not None:
        passes = site == "same-origin" and origin in (ours, "null")
    elif program:
        passes = origin in (None, ours)
    else:
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
    if not hmac.compare_digest(given.encode("utf-8", "replace"), access.csrf(visitor).encode()):
        abort(403)


def visitor() -> Visitor:
    """Return who asks; for routes with a scope."""
    found: Visitor | None = g.get("torra_visitor")
    if found is None:
        abort(401)
    return found


def own_path(text: str, root: str) -> str:
    """Return a path below our own root, or the root for anything else."""
    plain = unquote(text)
    odd = not plain.isprintable() or "\\" in plain or text.startswith("//")
    try:
        split = urlsplit("" if odd or len(text) > LONGEST_PATH else text)
    except ValueError:
        return root
    inside = not split.scheme and not split.netloc and split.path.startswith(root)
    climbs = any(part in (".", "..") for part in plain.split("?")[0].split("/"))
    return text if text and inside and not climbs else root


def too_often(seconds: float) -> NoReturn:
    """Answer 429, and when to come again."""
    _refuse(429, {"Retry-After": str(max(1, math.ceil(seconds)))})


def asks_api() -> bool:
    """Return whether the request is for the API, so that a refusal is JSON and not a page."""
    route = _route()
    missing = str((request.view_args or {}).get("missing", ""))
    return missing.startswith("api/") or bool(route and route.rule.startswith("/api/"))


def _stranger(login: str) -> ResponseReturnValue:
    """Send a person to the login, and tell a program what is missing."""
    shown = request.method in SAFE and request.accept_mimetypes.accept_html and not asks_api()
    given = "Authorization" in request.headers
    if shown and not given:
        asked = request.script_root + request.full_path.rstrip("?")
        onward = asked if len(asked) <= LONGEST_PATH else None
        return redirect(url_for(login, next=onward), 303)
    told = ', error="invalid_token"' if given else ""
    return _refuse(401, {"WWW-Authenticate": CHALLENGE + told})


def _forbid(found: Visitor, scope: str) -> NoReturn:
    told = f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'
    _refuse(403, {} if found.session else {"WWW-Authenticate": told})


def _refuse(code: int, headers: Mapping[str, str]) -> NoReturn:
    """End the request with an error page that has these headers."""

    def add(response: Response) -> Response:
        response.headers.update(headers)
        return response

    after_this_request(add)
    abort(code)


def _check_size() -> None:
    """Refuse a body that is too large, or does not say how large, before any of it is read."""
    request.max_content_length = LARGEST_BODY
    if (request.content_length or 0) > LARGEST_BODY or "Transfer-Encoding" in request.headers:
        abort(413)


def _check_kind() -> None:
    if request.content_length and request.mimetype not in KINDS:
        abort(415)


def _check_rate(access: Access, found: Visitor | None) -> None:
    route = _route()
    if route is None or route.per_minute is None:
        return
    known = found if route.scope is not None else None  # what anybody may ask counts by address
    who = (known.session or known.actor) if known else f"address:{request.remote_addr}"
    seconds = counted(access).rates.wait((route.name, who), route.per_minute)
    if seconds > 0.0:
        too_often(seconds)


def _keep_session(access: Access) -> None:
    """Let a page that is opened, or something that is done, put the end of its session off.

    What anybody may ask does not: a login writes a cookie of its own, which must be the last.
    """
    route = _route()
    if route is None or route.scope is None:
        return
    if request.method in SAFE and route.reply != "html":
        return
    session = access.session(request)
    if session is None or "Authorization" in request.headers:
        return

    def keep(response: Response) -> Response:
        access.keep_session(response, session, url_for(".overview"))
        return response

    after_this_request(keep)


def _route() -> Route | None:
    return by_name().get((request.endpoint or "").rpartition(".")[2])
