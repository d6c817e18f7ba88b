"""How a command from a page is answered: accepted, running, done or failed, and why.

A form without scripts gets a page that says so and leads back; a script or a program gets JSON.
Every command is written into the audit log with its outcome, the refused ones too. One whose entry
is part of its own transaction says so (`Told.on_record`); the others are written here, after the
act: where that fails, the answer is the real outcome and says that it is not on record. What the
command does is its own module's business; it raises TorraError with the reason when it fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from flask import jsonify, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from torra.dashboard.doors.access import visitor
from torra.dashboard.view.rendering import backing, page
from torra.errors import ConfigError, StoreUnavailable, TorraError

LONGEST_NAME: Final = 40

log = logging.getLogger("torra.dashboard")

CODES: Final = {"accepted": 202, "running": 202, "done": 200, "failed": 409}


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a command. `before` and `after` go into the audit log, `more` to the asker.

    `on_record` says that the audit log has it already.
    """

    status: Literal["accepted", "running", "done", "failed"]
    reason: str
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    on_record: bool = False


def command(action: str, target: str, run: Callable[[], Told], *, back: str) -> ResponseReturnValue:
    """Run a command of the visitor, put it on record and answer; `back` is where a page leads.

    Passes StoreUnavailable of `run` on: then nothing was done.
    """
    try:
        told = run()
    except StoreUnavailable:
        raise
    except TorraError as error:
        told = Told("failed", str(error))
    return answer(told if told.on_record else _recorded(action, target, told), back)


def _recorded(action: str, target: str, told: Told) -> Told:
    """Write what has happened already into the audit log; where that fails, the answer says so."""
    try:
        backing().database.audit(
            actor=visitor().actor,
            address=request.remote_addr or "",
            action=action,
            target=target,
            outcome=told.status if not told.reason else f"{told.status}: {told.reason}"[:300],
            before=told.before,
            after=told.after,
        )
    except TorraError as error:
        log.error("%s %s (%s) is not on record: %s", action, target, told.status, error)
        missing = f"this is not on record: {error}"
        return replace(told, reason="; ".join(filter(None, (told.reason, missing))))
    return told


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


def words() -> dict[str, str]:
    """Return what a command was sent, all of it text; raises ConfigError and nothing else."""
    sent = given()
    for name, value in sent.items():
        if not isinstance(value, str):
            raise ConfigError(f"{name[:LONGEST_NAME]} must be text")
    return sent


def given() -> dict[str, Any]:
    """Return what a command was sent, from a form or a JSON body; raises ConfigError.

    A form's values are text; those of a JSON object are whatever JSON can say (see `words`).
    """
    try:
        if not request.is_json:
            return {name: value for name, value in request.form.items() if name != "csrf"}
        body = request.get_json(silent=True)
    except (HTTPException, RecursionError, OSError) as error:
        raise ConfigError(f"the body cannot be read: {type(error).__name__}") from error
    if not isinstance(body, dict):
        raise ConfigError("the body is no JSON object")
    return body
