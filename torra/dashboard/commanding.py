"""How a command from a page is answered: accepted, running, done or failed, and why.

A form without scripts gets a page that says so and leads back; a script or a program gets JSON.
Every command is written into the audit log with its outcome, the refused ones too. What the
command does is its own module's business; it raises TorraError with the reason when it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from torra.dashboard.access import visitor
from torra.dashboard.rendering import backing, page
from torra.errors import ConfigError, StoreUnavailable, TorraError

CODES: Final = {"accepted": 202, "running": 202, "done": 200, "failed": 409}


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a command. `before` and `after` go into the audit log, `more` to the asker."""

    status: Literal["accepted", "running", "done", "failed"]
    reason: str
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)


def command(action: str, target: str, run: Callable[[], Told], *, back: str) -> ResponseReturnValue:
    """Run a command of the visitor, put it on record and answer; `back` is where a page leads."""
    who = visitor()
    try:
        told = run()
    except StoreUnavailable:
        raise
    except TorraError as error:
        told = Told("failed", str(error))
    backing().database.audit(
        actor=who.actor,
        address=request.remote_addr or "",
        action=action,
        target=target,
        outcome=told.status if not told.reason else f"{told.status}: {told.reason}"[:300],
        before=told.before,
        after=told.after,
    )
    return answer(told, back)


def answer(told: Told, back: str) -> ResponseReturnValue:
    """Answer with a command's outcome, as the asker wants it: JSON or a page."""
    code = CODES[told.status]
    if wants_json():
        return jsonify(status=told.status, reason=told.reason, **told.more), code
    return page("told.html", None, told=told, back=back), code


def wants_json() -> bool:
    """Return whether the asker is a script or a program."""
    kinds = request.accept_mimetypes
    if "Authorization" in request.headers and "text/html" not in kinds.values():
        return True
    return request.is_json or kinds["application/json"] > kinds["text/html"]


def given() -> dict[str, str]:
    """Return what a command was sent, from a form or a JSON body; raises ConfigError."""
    if not request.is_json:
        return {name: value for name, value in request.form.items() if name != "csrf"}
    body = request.get_json(silent=True)
    if not isinstance(body, dict):
        raise ConfigError("the body is no JSON object")
    return {str(name): value for name, value in body.items()}
