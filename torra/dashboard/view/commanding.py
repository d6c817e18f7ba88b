"""The answer to a command from a page: accepted, running, done or failed, and why.

A form without scripts gets a page that says so and leads back; a script or a program gets JSON.
Every command is written to the audit log with its outcome, refused ones too. A command whose entry
is part of its own transaction sets `Told.on_record`. The entry of any other is written here, after
the act; if that fails, the answer still gives the real outcome and says that it is not on record.
The function of the command is its own module's; it raises TorraError with the reason if it fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from flask import jsonify, request
from flask.typing import ResponseReturnValue
from pydantic import JsonValue
from werkzeug.exceptions import HTTPException

from torra.dashboard.doors.access import visitor
from torra.dashboard.view.rendering import backing, page
from torra.errors import ConfigError, StoreUnavailable, TorraError

LONGEST_NAME: Final = 40

log = logging.getLogger("torra.dashboard")

CODES: Final = {"accepted": 202, "running": 202, "done": 200, "failed": 409}


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The outcome of a command. `before` and `after` go into the audit log, `more` to the visitor.

    `on_record` says that the audit log has it already.
    """

    status: Literal["accepted", "running", "done", "failed"]
    reason: str
    before: Mapping[str, JsonValue] = field(default_factory=dict)
    after: Mapping[str, JsonValue] = field(default_factory=dict)
    more: Mapping[str, JsonValue] = field(default_factory=dict)
    on_record: bool = False


def command(
    action: str, target: str, run: Callable[[], CommandOutcome], *, back: str
) -> ResponseReturnValue:
    """Run a command of the visitor, put it on record and answer; `back` is where a page leads.

    Passes on StoreUnavailable of `run`, which means that nothing was done.
    """
    try:
        outcome = run()
    # also a TorraError; but not a "failed" with 409: the handler of the pages answers 503
    except StoreUnavailable:
        raise
    except TorraError as error:
        outcome = CommandOutcome("failed", str(error))
    # after the act: an entry that fails must not undo or hide what happened
    return answer(outcome if outcome.on_record else _recorded(action, target, outcome), back)


def _recorded(action: str, target: str, outcome: CommandOutcome) -> CommandOutcome:
    """Write a command that has happened to the audit log; if that fails, the answer says so."""
    try:
        backing().database.audit(
            actor=visitor().actor,
            address=request.remote_addr or "",
            action=action,
            target=target,
            outcome=outcome.status
            if not outcome.reason
            else f"{outcome.status}: {outcome.reason}"[:300],
            before=outcome.before,
            after=outcome.after,
        )
    except TorraError as error:
        log.error("%s %s (%s) is not on record: %s", action, target, outcome.status, error)
        missing = f"this is not on record: {error}"
        return replace(outcome, reason="; ".join(filter(None, (outcome.reason, missing))))
    return outcome


def answer(outcome: CommandOutcome, back: str) -> ResponseReturnValue:
    """Answer with a command's outcome, as JSON or as a page, whichever the request asks for."""
    code = CODES[outcome.status]
    if wants_json():
        return jsonify(status=outcome.status, reason=outcome.reason, **outcome.more), code
    return page("told.html", None, outcome=outcome, back=back), code


def wants_json() -> bool:
    """Return whether the request comes from a script or a program."""
    kinds = request.accept_mimetypes
    if "Authorization" in request.headers and "text/html" not in kinds.values():
        return True
    return request.is_json or kinds["application/json"] > kinds["text/html"]


def words() -> dict[str, str]:
    """Return the fields of the command, all of them text; raises ConfigError and nothing else."""
    sent = {}
    for name, value in given().items():
        if not isinstance(value, str):
            raise ConfigError(f"{name[:LONGEST_NAME]} must be text")
        sent[name] = value
    return sent


def given() -> dict[str, JsonValue]:
    """Return the fields of the command, from a form or a JSON body; raises ConfigError.

    A form's values are text; those of a JSON object are whatever JSON can say (see `words`).
    """
    try:
        if not request.is_json:
            return {name: value for name, value in request.form.items() if name != "csrf"}
        body = request.get_json(silent=True)
    # RecursionError: JSON may be nested deeper than Python reads
    except (HTTPException, RecursionError, OSError) as error:
        raise ConfigError(f"the body cannot be read: {type(error).__name__}") from error
    if not isinstance(body, dict):
        raise ConfigError("the body is no JSON object")
    return body
