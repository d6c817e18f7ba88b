"""The commands that move money or stop it: approve, reject, close, flatten, halt, resume, settle.

Each calls the function of torra.trading that the command line calls too, with the running
desk's own database, time and profiles. A refused command answers 409 with the plain reason and has
changed nothing. If two people decide at once, one wins and the other is told who did.
Halting asks for nothing and does not need the database: in the desk's own process it holds at once
in memory, and the answer names what could not be written beside what does hold. Every other command
is one transaction together with its entry in the audit log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from flask import request, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.config import Instance, Profile
from torra.dashboard.doors.access import visitor
from torra.dashboard.doors.routes import Route
from torra.dashboard.trade.trade_rows import protected
from torra.dashboard.view.commanding import CommandOutcome, command, words
from torra.dashboard.view.rendering import backing
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.words.orders import REASONS

if TYPE_CHECKING:
    from torra.trading.commanding import Actor, CommandContext, CommandResult

LONGEST_REASON: Final = 300
PER_MINUTE: Final = 30

REJECTIONS: Final = ("price moved", "news ahead", "weak case", "too much risk")
"""Reasons for a rejection that a page offers, so that nobody must type."""


def reach() -> CommandContext:
    """Return the parts of this process that a decision about a proposal needs."""
    from torra.trading import commanding  # noqa: PLC0415  a page alone must not load the desk

    known = backing()
    return commanding.CommandContext(
        known.home,
        known.database,
        lambda: known.settings,
        profile=profile_of,
        now=known.now,
        environment=known.environment,
        kill_switch=known.kill_switch,
    )


def person() -> Actor:
    """Return the author of this request's command, as the audit log names them."""
    from torra.trading import commanding  # noqa: PLC0415

    return commanding.Actor(visitor().actor, request.remote_addr or "")


def profile_of(instance: Instance) -> Profile:
    """Return the profile that the running desk uses; raises ConfigError where there is none."""
    setup = backing().desk.setups.get(instance.id)
    if setup is None:
        raise ConfigError(f"the desk has no instance {instance.id} any more")
    return setup.profile


def typed_lots(instance: Instance, text: str) -> float | None:
    """Return the typed size in lots, None if none is needed; raises ConfigError for no number."""
    if not needs_typing(instance):
        return None
    lots = _number(text)
    if lots is None:
        raise ConfigError(
            f"{instance.id} trades real money on the channel {instance.channel}: type the size in "
            "lots to approve it"
        )
    return lots


def needs_typing(instance: Instance) -> bool:
    """Return whether an instance's orders go to an account with real money."""
    return backing().settings.trades_real_money(instance)


# --- the commands ---------------------------------------------------------------------------------


def approve(sid: str) -> ResponseReturnValue:
    """Send what a proposal holds, if every check still agrees at the price of now."""
    from torra.trading import by_hand  # noqa: PLC0415

    def run() -> CommandOutcome:
        row = backing().database.proposal(sid)
        lots = None
        if row is not None:
            instance = backing().settings.instance(row.instance)
            # real money: a click alone must not send the order
            lots = typed_lots(instance, words().get("lots", ""))
        done = by_hand.approve(reach(), person(), sid, typed=lots)
        return _outcome(done, _approval_report(done))

    return command("approve", sid, run, back=url_for("torra_agents.approvals"))


def reject(sid: str) -> ResponseReturnValue:
    """Take a proposal off the table."""
    from torra.trading import by_hand  # noqa: PLC0415

    def run() -> CommandOutcome:
        fields = words()
        parts = [fields.get(name, "").strip() for name in ("reason", "words")]
        reason = _line(": ".join(filter(None, parts)))
        done = by_hand.reject(reach(), person(), sid, reason=reason)
        return _outcome(done, f"{sid} is rejected; nothing was sent")

    return command("reject", sid, run, back=url_for("torra_agents.approvals"))


def halt() -> ResponseReturnValue:
    """Stop everything at once: nothing opens and nothing closes until a person resumes."""
    from torra.trading import by_hand, kill_switch  # noqa: PLC0415

    def run() -> CommandOutcome:
        try:
            reason = _reason()
        except ConfigError:
            reason = ""  # whatever came with it, a halt is a halt
        known = backing()
        files = kill_switch.files_to_halt(known.home, lambda: known.settings)
        done = by_hand.halt_desk(known.database, files, reason, known.kill_switch)
        outcome = _outcome(done, f"trading is HALTED; {_protected()}")
        return replace(outcome, on_record=False)  # it waits for no record: `command` writes one

    return command("halt", "", run, back=url_for("torra_agents.signals"))


def _protected() -> str:
    sentence = protected({one.route for one in backing().settings.instances})
    return sentence[0].lower() + sentence[1:].removesuffix(".")


def reduce() -> ResponseReturnValue:
    """Stop every opening: positions are closed, none is opened, until a person resumes."""
    from torra.trading import by_hand  # noqa: PLC0415

    def run() -> CommandOutcome:
        done = by_hand.reduce(reach(), person(), reason=_reason())
        return _outcome(done, "trading is REDUCING: closes go out, nothing opens")

    return command("reduce", "", run, back=url_for("torra_agents.signals"))


def resume() -> ResponseReturnValue:
    """Let trading go on and end the alarms; with `reduce` only closes, and alarms stand."""
    from torra.trading import by_hand  # noqa: PLC0415

    def run() -> CommandOutcome:
        reason, choice = _reason(), words().get("reduce", "")
        if choice not in ("", "yes"):  # a word that is not understood must not let openings go
            raise ConfigError('reduce is "yes", or is left out to let all of trading go on')
        reduce = choice == "yes"
        if not reason:
            raise ConfigError("say why trading may go on: the reason goes on record")
        done = by_hand.resume(reach(), person(), reason=reason, reduce=reduce)
        if reduce:
            return _outcome(done, "trading is REDUCING: closes go out, nothing opens")
        ended = len(done.document["alarms_ended"])
        return _outcome(done, f"trading is ACTIVE; {ended} alarms ended")

    return command("resume", "", run, back=url_for("torra_agents.signals"))


def close(sid: str) -> ResponseReturnValue:
    """Close the position that an opening made, or take the opening back."""
    from torra.trading import hand_close  # noqa: PLC0415

    def run() -> CommandOutcome:
        done = hand_close.close(reach(), person(), _opening(sid), agreed=_agreed("close"))
        return _leave_outcome(done)

    return command("close", sid, run, back=url_for("torra_agents.signals"))


def flatten() -> ResponseReturnValue:
    """Close every position of the desk."""
    from torra.trading import hand_close  # noqa: PLC0415

    def run() -> CommandOutcome:
        return _leave_outcome(hand_close.flatten(reach(), person(), agreed=_agreed("flatten")))

    return command("flatten", "", run, back=url_for("torra_agents.signals"))


def stop(sid: str) -> ResponseReturnValue:
    """Move the stop of a position towards the price."""
    from torra.trading import hand_close  # noqa: PLC0415

    def run() -> CommandOutcome:
        price = _number(words().get("price", ""))
        if price is None:
            raise ConfigError("say where the stop is to go: a price")
        agreed = _agreed("stop")
        done = hand_close.stop(reach(), person(), _opening(sid), price=price, agreed=agreed)
        return CommandOutcome(
            "done", hand_close.stop_line(done.document), done.before, done.after, done.after,
            on_record=True,
        )  # fmt: skip

    return command("stop", sid, run, back=url_for("torra_agents.signals"))


def settle(sid: str) -> ResponseReturnValue:
    """Book, on a person's word, that an order without an answer never reached the market."""
    from torra.trading import by_hand  # noqa: PLC0415

    def run() -> CommandOutcome:
        reason = _reason()
        if not reason:
            raise ConfigError("say what you saw in the terminal: the reason goes on record")
        done = by_hand.settle(reach(), person(), sid, reason=reason)
        return _outcome(done, f"{sid} is {done.document['state']}")

    return command("settle", sid, run, back=url_for("torra_agents.signals"))


# --- details --------------------------------------------------------------------------------------


def _number(text: str) -> float | None:
    """Return the number that a person typed; None for no number."""
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        return None
    # "nan" and "inf" are numbers to float(), and nothing that can be meant
    return number if math.isfinite(number) else None


def _opening(sid: str) -> str:
    """Return the id of an opening; raises ConfigError when there is none of it."""
    # An instance is no id: from a page exactly what was shown is closed.
    if backing().database.signal(sid) is None:
        raise ConfigError(f"there is no position {sid}")
    return sid


def _agreed(word: str) -> Collection[str] | None:
    """Return for what real money the word was typed: for whatever it is, or for none."""
    return None if words().get("word", "").strip().lower() == word else ()


def _leave_outcome(done: CommandResult) -> CommandOutcome:
    """Return what a person is told who leaves positions."""
    from torra.trading import hand_close  # noqa: PLC0415

    positions = done.document["positions"]
    text = " ".join(hand_close.position_line(one) for one in positions) or "nothing is held"
    status: Literal["done", "failed"] = "failed" if done.refused else "done"
    return CommandOutcome(status, text, done.before, done.after, done.after, on_record=True)


def _outcome(done: CommandResult, report: str) -> CommandOutcome:
    more = {name: value for name, value in done.after.items() if name != "reason"}
    if done.refused:
        state, _, reason = done.refused.partition(": ")
        explained = f" ({REASONS[reason]})" if reason in REASONS else ""
        text = f"nothing was sent: the proposal is {state}, {reason}{explained}"
        return CommandOutcome("failed", text, done.before, done.after, more, on_record=True)
    return CommandOutcome("done", report, done.before, done.after, more, on_record=True)


def _approval_report(done: CommandResult) -> str:
    sent = done.document["signals"]
    orders = (f"{row['kind']} {row['side']} {row['lots']:g} {row['symbol']}" for row in sent)
    return f"approved: {', '.join(orders)}"


def _reason() -> str:
    return _line(words().get("reason", ""))


def _line(text: str) -> str:
    """Return a person's words as one line that is short enough to be kept."""
    return " ".join(figures.sanitize(text, LONGEST_REASON).split())


_WORDS: Final[Mapping[str, JsonValue]] = {"type": "string", "maxLength": LONGEST_REASON}

_WORD: Final[Mapping[str, JsonValue]] = {
    "type": "string",
    "description": "the command's own word, where real money is traded",
}


def _route(
    name: str,
    address: str,
    view: Callable[..., ResponseReturnValue],
    scope: Literal["approve", "admin"] = "approve",
    per_minute: int | None = PER_MINUTE,
    **body: Mapping[str, JsonValue],
) -> Route:
    return Route(
        f"/api/v1/{address}", name, view,
        methods=("POST",), scope=scope, reply="json", per_minute=per_minute, body=body,
    )  # fmt: skip


_LOTS: Final = {"type": "string", "description": "the size, where real money is traded"}
_PRICE: Final = {"type": "string", "description": "the new stop"}
_REDUCE: Final[Mapping[str, JsonValue]] = {
    "type": "string", "enum": ["", "yes"], "description": "yes: only closes go on, alarms stand",
}  # fmt: skip

ROUTES = (
    _route("approve", "proposals/<sid>/approve", approve, lots=_LOTS),
    _route("reject", "proposals/<sid>/reject", reject, reason=_WORDS, words=_WORDS),
    # without a limit: a halt is never refused for coming too often
    _route("halt", "halt", halt, per_minute=None, reason=_WORDS),
    _route("reduce", "reduce", reduce, reason=_WORDS),
    _route("resume", "resume", resume, "admin", reason=_WORDS, reduce=_REDUCE),
    _route("close", "positions/<sid>/close", close, word=_WORD),
    _route("flatten", "positions/flatten", flatten, word=_WORD),
    _route("stop", "positions/<sid>/stop", stop, price=_PRICE, word=_WORD),
    _route("settle", "signals/<sid>/settle", settle, "admin", reason=_WORDS),
)
