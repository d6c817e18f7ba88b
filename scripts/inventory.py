"""What the program has for those outside of it, by name: one line `kind: name` for each.

Commands with their options, routes, settings, deny codes, states and columns of the tables, fields
of the API's requests, features of the evidence, promises and planted faults. Each kind is read
where the program hands it out: the command's own tree, the table of routes, JSON schemas, a new
database, the API's description.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click

from agents.features import ROWS
from instance_database import Database
from tests.faults import promises
from tests.faults.planted import FAULTS
from torra.clock import System
from torra.commands.command_line import main as command
from torra.config import DeskSettings, Profile
from torra.dashboard.description import document
from torra.dashboard.doors.routes import every_route
from torra.verdict.signal_states import TRANSITIONS
from torra.words.deny_reasons import DenyReason

CHECKED: Final = re.compile(r"CHECK \((\w+) IN \(('[^)]*')\)\)")
"""The words that a column of a table may have."""


def lines(folder: Path) -> list[str]:
    """Return the inventory, in order; a new database is made in the folder."""
    path = folder / "new.db"
    Database.open(path, now=System().real_now).close()
    with closing(sqlite3.connect(path)) as connection:
        tables = dict(
            connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        )
        columns = [
            f"{table}.{name}"
            for table in tables
            for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        ]
    kinds: dict[str, Iterable[str]] = {
        "command": commands(command, "torra"),
        "route": (f"{method} {one.rule}" for one in every_route() for method in one.methods),
        "setting": (*settings(Profile, "profile"), *settings(DeskSettings, "desk")),
        "deny code": DenyReason,
        "state": (*states(tables), *(f"signals.state {name}" for name in TRANSITIONS)),
        "column": columns,
        "API field": api_fields(document()),
        "feature": (feature for feature, row in ROWS.items() if row.name),
        "promise": (one.id for one in promises.registry().promises),
        "planted fault": (fault.id for fault in FAULTS),
    }
    return [f"{kind}: {name}" for kind, names in kinds.items() for name in sorted({*names})]


def commands(one: click.Command, name: str) -> Iterator[str]:
    """Yield a command, its options and arguments, and the commands below it."""
    yield name
    for part in one.params:
        yield f"{name} {max(part.opts, key=len)}"
    if isinstance(one, click.Group):
        for below in one.commands.values():
            yield from commands(below, f"{name} {below.name}")


def settings(model: Any, name: str) -> Iterator[str]:
    """Yield the places of a model's values."""
    schema = model.model_json_schema()
    return places(schema, schema.get("$defs", {}), name)


def places(part: Any, definitions: Any, place: str) -> Iterator[str]:
    """Yield the places of a JSON schema's properties; `[]` stands for an item, `*` for a name."""
    part = definitions.get(part.get("$ref", "").rpartition("/")[2], part)
    for name, below in part.get("properties", {}).items():
        yield f"{place}.{name}"
        yield from places(below, definitions, f"{place}.{name}")
    for key, sign in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(part.get(key), dict):
            yield from places(part[key], definitions, place + sign)
    for below in (*part.get("anyOf", ()), *part.get("allOf", ())):
        yield from places(below, definitions, place)


def states(tables: dict[str, str]) -> Iterator[str]:
    """Yield the words that the columns of tables may have."""
    for table, sql in tables.items():
        for column, words in CHECKED.findall(sql):
            yield from (f"{table}.{column} {word}" for word in re.findall(r"'(\w+)'", words))


def api_fields(description: Any) -> Iterator[str]:
    """Yield the parameters and the fields of the bodies of each operation, and of the schemas."""
    parts = description["components"]["schemas"]
    for name, schema in parts.items():
        yield from places(schema, parts, name)
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            place = f"{method.upper()} {path}"
            yield from (f"{place} {one['name']}" for one in operation.get("parameters", ()))
            for content in operation.get("requestBody", {}).get("content", {}).values():
                yield from places(content["schema"], parts, place)
