"""`torra token` and `torra audit`: the tokens of the pages, and what was done through them.

Both work on the home, whether or not a desk runs: one that runs takes new tokens with its next
request. Tokens are shown to anybody who may read the home, because they lie in it. New ones are in
place before they are put on record, so that a leaked token ends even where the database cannot be
written; the command then says so. A mistake is one line and exit code 2, a broken database or a
broken chain exit code 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from torra.commands.answer import CommandAnswer, answering, open_database
from torra.commands.options import flag, number
from torra.dashboard.doors import access_file
from torra.dashboard.doors.access_file import SCOPES, Owner, Tokens, same_name
from torra.errors import ConfigError, TorraError
from torra.home import PAGES, has_database
from torra.regular_files import read_regular
from torra.whole_files import write_whole

ADDRESS: Final = "http://127.0.0.1:5000"
"""Address of the pages when no desk has noted another."""

PORT_UNKNOWN: Final = (
    "No desk has told its port here yet: the links have the usual one. A desk that starts now "
    "tells it within seconds: ask again then, or put the one of --port there."
)

SCHEMES: Final = ("http://", "https://")
BY_COMMAND_LINE: Final = "command line"
MAY: Final = {
    "read": "see everything, change nothing",
    "approve": "also approve, reject, halt, and change harmless settings",
    "admin": "everything that the pages can do",
}
PERSONS: Final = "approve"
"""Scope of a person's token, unless another is asked for."""

DONE: Final = {
    "new tokens": "the tokens are new and every session has ended",
    "token given": "the token is made",
    "models allowed": "a model may answer their questions",
    "models refused": "no model answers their questions",
    "token taken back": "the token is taken back and its sessions have ended",
}
NEWEST: Final = ("seq", "at", "hash")
"""What --verify tells of the newest entry."""

SHOWN: Final = 30
LONGEST: Final = 60
"""Characters of an outcome in the table."""


@click.command()
@click.option("--scope", type=click.Choice(SCOPES), help="Only this one; all by default.")
@flag("--new", "Replace every token and end every session.")
@click.option("--name", default=None, help="A token of a person's own; the audit log names them.")
@click.option(
    "--ask-model/--no-ask-model",
    default=None,
    help="With --name: whether a model may answer their questions; not for read by default.",
)
@click.option("--revoke", default=None, help="Take a person's token back and end their sessions.")
@click.option(
    "--address", default=None, help="Where the pages are; by default where the desk serves them."
)
@answering
def token(
    home: Path, /, scope: str | None, new: bool, name: str | None, ask_model: bool | None,
    revoke: str | None, address: str | None,
) -> CommandAnswer:  # fmt: skip
    """Show the tokens of the pages as links that log in, or make new ones."""
    if sum((new, name is not None, revoke is not None)) > 1:
        raise ConfigError("give one of --new, --name and --revoke")
    if ask_model is not None and name is None:
        raise ConfigError("whose? give --name with --ask-model or --no-ask-model")
    for option, value in (("--name", name), ("--revoke", revoke)):
        if value is not None and not value.strip():
            raise ConfigError(f"{option} is empty: give a person's name, as in {option} Anna")
    if not home.is_dir():
        raise ConfigError(f"there is no home {home}: torra run makes one; see --home")
    place = served_at(home) if address is None else address
    base = (place or ADDRESS).rstrip("/")
    if not base.startswith(SCHEMES):
        raise ConfigError(f"--address {address!r} does not begin with http:// or https://")
    tokens, new_ones = _changed(home, new=new, name=name, scope=scope, revoke=revoke)
    if name is not None and ask_model is not None:
        tokens = access_file.let_ask_model(home, name, allowed=ask_model)
        _on_record(home, "models allowed" if ask_model else "models refused", name)
    every = {**{Owner(item): tokens.by_scope[item] for item in SCOPES}, **tokens.of_persons}
    # Behind the #: a browser sends that part to no server, so no log has it.
    rows: list[dict[str, Any]] = [
        {
            "scope": own.scope,
            "token": secret,
            "may": MAY[own.scope],
            "link": f"{base}/login#token={secret}",
            "ask_model": own.may_ask_model,
        }
        | ({"name": own.name} if own.name else {})
        for own, secret in every.items()
    ]
    if name is not None:
        rows = [item for item in rows if same_name(item.get("name", ""), name)]
    elif scope:
        rows = [item for item in rows if item["scope"] == scope]
    lines = ["New tokens; every session has ended."] if new_ones else []
    lines += [
        f"{item['scope']:<8} {item['name'] + ': ' if 'name' in item else ''}{item['may']}\n"
        f"         {item['link']}"
        for item in rows
    ]
    lines += [] if place else [PORT_UNKNOWN]
    document = {"home": str(home.absolute()), "new": new_ones, "tokens": rows}
    return CommandAnswer(document, lines)


def _changed(
    home: Path, *, new: bool, name: str | None, scope: str | None, revoke: str | None
) -> tuple[Tokens, bool]:
    """Return a home's tokens after a change, and whether all of them are new.

    The tokens come first: whatever the database does, the old ones have ended.
    """
    if new:
        tokens = access_file.replace(home)
        _on_record(home, "new tokens")
    elif name is not None:
        tokens, added = access_file.name_person(home, name, scope or PERSONS)
        if added:
            _on_record(home, "token given", name)
    elif revoke is not None:
        tokens, whose = access_file.revoke(home, revoke)
        _on_record(home, "token taken back", whose)
    else:
        return access_file.read_or_make(home)
    return tokens, new


@click.command()
@flag("--verify", "Check the whole chain; exit 1 when it is broken.")
@click.option("--action", default="", help="Only entries of this action.")
@click.option("--actor", default="", help="Only entries of this actor.")
@number("--limit", SHOWN, 1, 10_000)
@answering
def audit(home: Path, /, verify: bool, **only: Any) -> CommandAnswer:
    """Show what was done to the desk through the pages, newest first."""
    from torra.store import audit as audit_chain  # noqa: PLC0415  pydantic costs a tenth of a second

    if not has_database(home):
        raise ConfigError(f"no desk has run in {home} yet: there is no log; see --home")
    with open_database(home) as database:
        document = audit_chain.audit_page(database, **only)
        if verify:
            broken = audit_chain.broken_entry(database)
            newest = audit_chain.audit_entries(database, limit=1)
            document |= {
                "verified": broken is None,
                "broken": broken and asdict(broken),
                "newest": {name: newest[0][name] for name in NEWEST} if newest else None,
                "proves": "" if broken else audit_chain.PROVES,
                "proves_not": audit_chain.PROVES_NOT,
            }
    return CommandAnswer(document, audit_table, int(verify and not document["verified"]))


def served_at(home: Path) -> str:
    """Return the address that the desk of a home has noted for its pages, "" where it has not.

    Never raises.
    """
    try:
        address = json.loads(read_regular(home / PAGES))["address"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    # The address is printed as a link with a token in it: only a plain one is.
    plain = isinstance(address, str) and address.isprintable() and address.startswith(SCHEMES)
    return address if plain else ""


def tell_address(home: Path, address: str) -> None:
    """Note in a home the address of its desk's pages; raises OSError."""
    write_whole(home / PAGES, (json.dumps({"address": address}) + "\n").encode())


def _on_record(home: Path, action: str, target: str = "") -> None:
    """Put a change of the tokens into the audit log of a desk; raises TorraError."""
    if not has_database(home):
        return
    try:
        with open_database(home) as database:
            database.audit(actor=BY_COMMAND_LINE, action=action, target=target)
    except TorraError as error:
        raise TorraError(f"{DONE[action]}, but that is not on record: {error}") from error


def audit_table(document: Mapping[str, Any]) -> str:
    """Return the log for a terminal, with what the check of the whole chain says."""
    lines = [_line(row) for row in document["entries"]] or ["Nothing was done yet."]
    newest = document.get("newest")
    if broken := document.get("broken"):
        lines.append(f"The chain is BROKEN at entry {broken['seq']}: {broken['why']}")
    elif newest:
        lines += [
            f"The chain holds from entry 1 to entry {newest['seq']}: {document['proves']}.",
            f"Hash of entry {newest['seq']}: {newest['hash']}",
            f"{document['proves_not']}.",
        ]
    elif "verified" in document:
        lines.append("The log is empty: there is nothing to check.")
    return "\n".join(lines)


def _line(row: Mapping[str, Any]) -> str:
    from torra.exhibits.figures import sanitize  # noqa: PLC0415  strangers' words on a terminal

    named = ("actor", "action", "target", "outcome")
    cells = [" ".join(sanitize(row[name], LONGEST).split()) for name in named]
    moment = str(row["at"]).replace("T", " ").replace("Z", " UTC")
    return f"{row['seq']:>6}  {moment:<23}  {cells[0]:<24} {cells[1]:<14} {cells[2]:<20} {cells[3]}"
