"""Who may see and do what: tokens, sessions, scopes, and the checks before every request.

Three tokens, one for each scope (read, approve, admin), are made at the first start and kept in
`access.json` of the home, readable by its owner alone. A person logs in with one, by the fragment
of a link or by hand, and gets a signed session cookie; a program sends one as a bearer. A request
that changes something must come from a page of ours: same origin, and with the session's own token
in the form or in a header. What is refused is a 400, 401, 403 or 429, and nothing has happened.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from flask import Request, Response, abort, g, redirect, request, url_for
from flask.typing import ResponseReturnValue
from itsdangerous import BadSignature, URLSafeTimedSerializer

from torra.clock import token as new_token
from torra.errors import ConfigError

SCOPES: Final = ("read", "approve", "admin")
"""In this order: each may what the ones before it may."""

FILE: Final = "access.json"
TOKEN_BYTES: Final = 32
IDLE_SECONDS: Final = 12 * 3600
"""A session ends when it was not used for this long."""

SAFE: Final = ("GET", "HEAD", "OPTIONS")
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "X-Torra-CSRF"
LARGEST_BODY: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: `actor` goes on record, `session` is "" for a program with a bearer token."""

    scope: str
    actor: str
    session: str = ""

    def may(self, scope: str) -> bool:
        """Return whether this visitor has a scope."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


@dataclass(frozen=True, repr=False)
class Access:
    """The tokens of a desk and the key that signs its sessions."""

    tokens: Mapping[str, str]
    key: str

    @classmethod
    def made(cls) -> Access:
        """Return new tokens that are kept nowhere."""
        tokens = {scope: new_token(TOKEN_BYTES) for scope in SCOPES}
        return cls(tokens, new_token(TOKEN_BYTES))

    @classmethod
    def of_home(cls, home: Path) -> tuple[Access, bool]:
        """Return a home's access and whether it was made just now; raises ConfigError."""
        path = home / FILE
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            found = cls({scope: str(told["tokens"][scope]) for scope in SCOPES}, str(told["key"]))
        except FileNotFoundError:
            found = cls.made()
            found.keep(path)
            return found, True
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"cannot read {path}: {error}; remove it to get new tokens") from None
        return found, False

    def keep(self, path: Path) -> None:
        """Write the file, readable by its owner alone."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        partial.unlink(missing_ok=True)
        number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump({"tokens": dict(self.tokens), "key": self.key}, file)
        partial.replace(path)

    def scope_of(self, token: str) -> str | None:
        """Return the scope that a token gives, None for a token that is none of ours."""
        found = None
        for scope, known in self.tokens.items():
            if hmac.compare_digest(token.encode("utf-8", "replace"), known.encode()):
                found = scope
        return found

    @property
    def cookie(self) -> str:
        """Name of the session cookie: cookies are shared between the ports of a host."""
        return "torra_session_" + hashlib.sha256(self.key.encode()).hexdigest()[:8]

    def open_session(self, response: Response, scope: str, path: str) -> None:
        """Give a browser a session."""
        self._write(response, {"scope": scope, "id": new_token(12)}, path)

    def close_session(self, response: Response, path: str) -> None:
        """Take the session from a browser."""
        response.delete_cookie(self.cookie, path=path, httponly=True, samesite="Strict")

    def visitor(self, asked: Request) -> Visitor | None:
        """Return who asks, None for nobody that is known."""
        kind, _, token = asked.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            scope = self.scope_of(token.strip())
            return Visitor(scope, f"token:{scope}") if scope else None
        told = self._read(asked.cookies.get(self.cookie, ""))
        if told is None:
            return None
        return Visitor(told["scope"], f"session:{told['id'][:6]}:{told['scope']}", told["id"])

    def csrf(self, visitor: Visitor) -> str:
        """Return the token that a session's own pages send with what changes something."""
        return hmac.new(self.key.encode(), visitor.session.encode(), "sha256").hexdigest()

    def _signer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self.key, salt="torra session")

    def _read(self, cookie: str) -> dict[str, Any] | None:
        try:
            told = self._signer().loads(cookie, max_age=IDLE_SECONDS)
        except BadSignature:
            return None
        return told if told.get("scope") in SCOPES and told.get("id") else None

    def _write(self, response: Response, told: Mapping[str, Any], path: str) -> None:
        response.set_cookie(
            self.cookie, str(self._signer().dumps(dict(told))), path=path, httponly=True,
            samesite="Strict", secure=request.is_secure,
        )  # fmt: skip


def guard(access: Access, scope: str | None, login: str) -> ResponseReturnValue | None:
    """Check the request that is being answered against the scope of its route.

    None lets it pass; `scope` is None for a route that anybody may ask. `login` names the endpoint
    that a person without a session is sent to.
    """
    g.torra_visitor = access.visitor(request)
    if scope is None:
        return None
    visitor: Visitor | None = g.torra_visitor
    if visitor is None:
        if request.method in SAFE and request.accept_mimetypes.accept_html:
            return redirect(url_for(login, next=request.full_path.rstrip("?")), 303)
        abort(401)
    if not visitor.may(scope):
        abort(403)
    if request.method not in SAFE:
        check_origin()
        if visitor.session:
            check_csrf(access, visitor)
    return None


def check_origin() -> None:
    """Refuse a request that a page of another origin made."""
    site = request.headers.get("Sec-Fetch-Site")
    if site not in (None, "same-origin", "none"):
        abort(403)
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.host:
        abort(403)


def check_csrf(access: Access, visitor: Visitor) -> None:
    """Refuse a change that does not carry the session's own token."""
    request.max_content_length = LARGEST_BODY
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
    plain = text.isprintable() and "\\" not in text and not text.startswith("//")
    split = urlsplit(text) if plain else urlsplit("")
    inside = not split.scheme and not split.netloc and split.path.startswith(root)
    return text if inside and text else root
