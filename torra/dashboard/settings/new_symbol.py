"""The screen that adds a symbol: where its bars come from, how it is traded, what is written.

Three steps on one address: the symbol and its bars; the rest, filled in with what the broker's list
or Torra's own notes know; and what would be written, before and after, with a button that writes
it (torra.desk.setup.adding). A mistake stands beside its field, and what was typed stays. Adding
needs the scope admin and is in the audit log. The desk takes a symbol at its next start, and the
page says with which command. Names of a broker and of files are a stranger's and are cleaned.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flask import jsonify, request, url_for
from flask.typing import ResponseReturnValue

from agents.features import rows_of
from torra.dashboard.doors.routes import Command, Route
from torra.dashboard.view.commanding import CommandOutcome, command, wants_json, words
from torra.dashboard.view.rendering import desk_page, state
from torra.errors import ConfigError
from torra.exhibits import figures

if TYPE_CHECKING:
    from torra.dashboard.settings.symbol_form import Words
    from torra.desk.setup.adding import Addition

PER_MINUTE: Final = 30
LONGEST: Final = 400
"""Characters of a field."""

ACTION: Final = "add symbol"
"""How the audit log calls it."""

FIELDS: Final = {row["name"]: row for row in rows_of(Path(__file__).with_name("new_symbol.csv"))}
"""The fields of the form and of the API: label, hint, example, and what the API says of each."""

ASSETS: Final = {
    "": "not said", "fx": "currencies", "gold": "gold", "index": "index", "oil": "oil",
    "crypto": "crypto", "stock": "stock",
}  # fmt: skip

EXECUTIONS: Final = {
    "approve": "only after my yes (approve)",
    "off": "nobody: verdicts are only written down (off)",
}


def new_symbol() -> str:
    """Show the form that adds a symbol."""
    if state().backing is None:
        return desk_page("new_symbol.html", here=False)
    from torra.dashboard.settings import symbol_form  # noqa: PLC0415  a page alone must not load the desk

    wish = {name: request.args.get(name, "").strip() for name in symbol_form.FIRST_STEP}
    try:
        form = symbol_form.SymbolForm.open()
        return _page(form=form.context(*form.fill(wish)))
    except ConfigError as error:
        return _page(trouble=str(error))


def check_symbol() -> ResponseReturnValue:
    """Show what would be written for a new symbol, or what is wrong by field; writes nothing."""
    from torra.dashboard.settings.symbol_form import SymbolForm  # noqa: PLC0415

    entered: Words = {}
    try:
        entered = words()
        form = SymbolForm.open()
        plan, faults = form.plan(entered)
    except ConfigError as error:
        plan, faults = None, {"": str(error)}
    if plan is None and wants_json():
        reason = faults.get("", "look at what is marked")
        return jsonify(status="failed", reason=reason, faults=faults), 422
    if plan is None:
        return _again(entered, faults)
    if wants_json():
        return jsonify(
            status="done",
            reason="",
            version=form.place.version,
            **plan.document(),
            before=plan.before,
            after=plan.after,
        )
    return _page(form=form.context(entered, {}), plan=plan)


def add_symbol() -> ResponseReturnValue:
    """Add a symbol to the desk: import its bars, write desk.json and its profile."""
    from torra.dashboard.settings.symbol_form import SymbolForm  # noqa: PLC0415

    # command() returns an answer only: run() leaves its result here
    added: list[Addition] = []
    faults: dict[str, str] = {}
    entered: dict[str, str] = {}

    def run() -> CommandOutcome:
        try:
            entered.update(words())
            done, wrong = SymbolForm.open().add(entered)
        except ConfigError as error:
            done, wrong = None, {"": str(error)}
        faults.update(wrong)
        if done is None:
            name, text = next(iter(faults.items()), ("", "something is wrong"))
            reason = f"{name}: {text}" if name else text
            return CommandOutcome("failed", reason, more={"faults": {**faults}})
        added.append(done)
        document = done.document()
        before = {"desk": {**done.place.values}}
        reason = f"{done.request.symbol} is in {done.place.home}. {done.steps[0]}"
        return CommandOutcome("done", reason, before, {"desk": {**done.desk}, **document}, document)

    symbol = figures.sanitize(request.form.get("symbol", ""), 40)
    answer = command(ACTION, symbol, run, back=url_for(".new_symbol"))
    if wants_json():
        return answer
    return _page(done=added[0]) if added else _again(entered, faults)


def _again(entered: Words, faults: Words) -> ResponseReturnValue:
    """Show the form again, with what was entered and what is wrong with it."""
    from torra.dashboard.settings.symbol_form import SymbolForm  # noqa: PLC0415

    try:
        return _page(form=SymbolForm.open().context(entered, faults)), 422
    except ConfigError as error:
        return _page(trouble=str(error)), 422


def _page(**shown: Any) -> str:
    return desk_page(
        "new_symbol.html", here=True, fields=FIELDS, longest=LONGEST,
        assets=ASSETS, executions=EXECUTIONS, **shown,
    )  # fmt: skip


REQUEST: Final[dict[str, dict[str, Any]]] = {
    name: {"type": "string", "maxLength": LONGEST, "description": row["description"]}
    for name, row in FIELDS.items()
}
REQUEST["execution"] = {"type": "string", "enum": [*EXECUTIONS], "default": "approve"}
REQUEST["asset"] = {"type": "string", "enum": [*ASSETS]}

ROUTES = (
    Route("/add-symbol", "new_symbol", new_symbol, scope="admin"),
    Command(
        "/api/v1/symbols/check",
        "check_symbol",
        check_symbol,
        scope="admin",
        per_minute=PER_MINUTE,
        body=REQUEST,
    ),
    Command(
        "/api/v1/symbols",
        "add_symbol",
        add_symbol,
        scope="admin",
        per_minute=PER_MINUTE,
        body=REQUEST,
    ),
)
