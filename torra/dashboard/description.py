"""The OpenAPI 3.1 description of the API, made from the table of routes.

It lists every address below /api/v1 with its parameters, its body, the scope that it asks for and
its possible answers (torra.dashboard.answers). Each refusal means the same everywhere, so it is
described once and referred to. A desk serves the document at /api/v1/openapi.json, and `python -m
torra.dashboard.description` prints it. A test holds it to the routes, and real answers to it.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Final

from flask import Response
from pydantic import JsonValue

from torra.dashboard.answers import schemas
from torra.dashboard.doors.access import CSRF_HEADER, LARGEST_BODY, SAFE
from torra.dashboard.doors.routes import Api, Route, every_route

JsonObject = dict[str, JsonValue]

BELOW: Final = "/api/v1/"
VERSION: Final = "1.0"

PARAMETER: Final = re.compile(r"<(?:(?P<kind>\w+)(?:\([^)]*\))?:)?(?P<name>\w+)>")
"""A variable part of a rule."""

KINDS: Final = {"int": "integer", "float": "number"}
REPLIES: Final = {
    "json": "application/json",
    "html": "text/html",
    "events": "text/event-stream",
    "csv": "text/csv",
    "picture": "image/png",
}

REFUSALS: Final = {
    "400": "Refused: the Host is not one that the desk answers to, or a parameter is wrong.",
    "401": "No token, or none of this desk.",
    "403": "The token's scope is too small, or the request did not come from a page of this desk.",
    "404": "There is no such thing here.",
    "409": "It was not done: the reason is in the answer.",
    "413": f"The body is larger than {LARGEST_BODY // 1024} KB.",
    "415": "The body is neither JSON nor a form.",
    "429": "Too often, or a wrong token too soon: come again after the seconds of Retry-After.",
    "503": "The database cannot be read, or all streams are taken: come again later.",
}
WAITS: Final = ("429",)
CHANGING: Final = ("409", "413", "415")
"""Refusals that only a command can meet."""

SCOPES_BEGIN: Final = "<!-- scopes: begin -->\n"
SCOPES_END: Final = "<!-- scopes: end -->\n"
"""The lines of docs/security.md between which `with_scopes` writes the table of scopes."""

ABOUT: Final = (
    "What the pages of a desk show, and the commands that they send. A program sends a token as "
    "`Authorization: Bearer TOKEN` (`torra token` shows them); each may what the scopes before it "
    "may: read, approve, admin. A browser that is logged in sends its session's cookie, and with "
    f"every command the session's own token as {CSRF_HEADER} or as the form's field csrf. HEAD is "
    "answered wherever GET is. An app that hosts the pages serves all of this below its prefix."
)


def openapi() -> Response:
    """Answer this description."""
    return Response(rendered(), mimetype="application/json")


@cache
def rendered() -> str:
    """Return the description as it is served: indented JSON."""
    return json.dumps(document(), ensure_ascii=False, indent=2) + "\n"


def scope_table() -> str:
    """Return the table of scopes of docs/security.md: every route in words, with its scope."""
    changing = [route for route in every_route() if not set(route.methods) <= {*SAFE}]
    rows = [
        f"| `{'/'.join(route.methods)} {route.rule}` | {route.summary.rstrip('.')} "
        f"| {route.scope or 'nobody has to be logged in'} |\n"
        for route in sorted(changing, key=lambda route: (route.scope or "", route.rule))
    ]
    open_ones = [
        f"`{route.rule}`"
        for route in every_route()
        if route.scope is None and route not in changing
    ]
    higher = [
        f"`{route.rule}` ({route.scope})"
        for route in every_route()
        if route.scope not in (None, "read") and route not in changing
    ]
    rows.append(f"| `GET` {', '.join(open_ones)} | | nobody has to be logged in |\n")
    beside = f", but {', '.join(higher)}" if higher else ""
    rows.append(f"| every other `GET`{beside} | | read |\n")
    return "| request | what it does | scope |\n|---|---|---|\n" + "".join(rows)


def with_scopes(page: str) -> str:
    """Return docs/security.md with today's table of scopes in its place."""
    before, mark, rest = page.partition(SCOPES_BEGIN)
    return before + mark + scope_table() + SCOPES_END + rest.partition(SCOPES_END)[2]


def document() -> JsonObject:
    """Return the description of every route of the API."""
    routes = sorted(described(), key=lambda route: (route.rule, route.methods))
    paths: JsonObject = {
        path: {
            method.lower(): operation(route, method) for route in found for method in route.methods
        }
        for path, found in groupby(routes, key=address)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Torra", "version": VERSION, "description": ABOUT},
        # relative: in a host all of this lies below a prefix of its own
        "servers": [{"url": "../../", "description": "Where this description was found"}],
        "paths": paths,
        "components": {
            "securitySchemes": SCHEMES,
            "schemas": {**SCHEMAS, **schemas()[1]},
            "responses": {code: _refusal(code) for code in REFUSALS},
        },
    }


def described() -> Iterator[Route]:
    """Yield the routes of the API."""
    return (route for route in every_route() if route.rule.startswith(BELOW))


def address(route: Route) -> str:
    """Return a route's path as OpenAPI writes it."""
    return PARAMETER.sub(lambda found: f"{{{found['name']}}}", route.rule)


def operation(route: Route, method: str) -> JsonObject:
    """Return the description of one method of one address: its input and its answers."""
    told = inspect.getdoc(route.view) or ""
    more = " ".join(told.partition("\n")[2].split())
    found: JsonObject = {
        "operationId": route.name if len(route.methods) == 1 else f"{method.lower()}_{route.name}",
        "tags": [route.view.__module__.rpartition(".")[2]],
        "summary": route.summary.rstrip("."),
    }
    if more:
        found["description"] = more
    if parameters := [*_in_path(route), *_in_query(route)]:
        found["parameters"] = parameters
    if method not in SAFE and route.body:
        found["requestBody"] = _body(route)
    found["responses"] = {**_answers(route, method), **_refusals(route, method)}
    found["security"] = _security(route, method)
    return found


def _in_path(route: Route) -> Iterator[JsonValue]:
    for found in PARAMETER.finditer(route.rule):
        schema: JsonObject = {"type": KINDS.get(found["kind"] or "", "string")}
        yield {"name": found["name"], "in": "path", "required": True, "schema": schema}


def _in_query(route: Route) -> Iterator[JsonValue]:
    for name, told in route.query.items():
        schema = dict(told)
        words = {"description": schema.pop("description")} if "description" in schema else {}
        needed = schema.pop("required", None) is True
        yield {"name": name, "in": "query", **words, "required": needed, "schema": schema}


def _body(route: Route) -> JsonObject:
    """Return the body of a command, as JSON or as a form; each field has its `required`."""
    needed: list[JsonValue] = [
        name for name, told in route.body.items() if told.get("required") is True
    ]
    # required=True is our own mark; a list is JSON schema for the fields of an object
    fields: JsonObject = {
        name: {
            word: value for word, value in told.items() if word != "required" or value is not True
        }
        for name, told in route.body.items()
    }
    schema: JsonObject = {
        "type": "object",
        "properties": fields,
        **({"required": needed} if needed else {}),
    }
    kinds = ("multipart/form-data",) if route.files else KINDS_OF_BODY
    return {"required": bool(needed), "content": {kind: {"schema": schema} for kind in kinds}}


def _answers(route: Route, method: str) -> JsonObject:
    if method in SAFE:
        schema: JsonValue = (
            schemas()[0][route.name] if route.reply == "json" else {"type": "string"}
        )
        answer: JsonObject = {
            "description": "What was asked.",
            "content": {REPLIES[route.reply]: {"schema": schema}},
        }
        if route.reply != "events":
            return {"200": answer}
        return {"200": answer, "204": {"description": "The stream has ended."}}
    content: JsonObject = {
        "application/json": {"schema": {"$ref": "#/components/schemas/Told"}},
        "text/html": {"schema": {"type": "string"}},
    }
    return {
        "200": {"description": "Done, or what it would do.", "content": content},
        "202": {"description": "Accepted, or running.", "content": content},
    }


def _refusals(route: Route, method: str) -> JsonObject:
    left_out = {"401", "403"} if route.scope is None else set()
    if method in SAFE:
        # every body is measured, that of a GET too (access.guard)
        left_out |= {*CHANGING} - {"413"}
    if route.scope is None and route.per_minute is None:  # else a wrong token may have to wait
        left_out |= {*WAITS}
    return {
        code: {"$ref": f"#/components/responses/{code}"}
        for code in REFUSALS
        if code not in left_out
    }


def _refusal(code: str) -> JsonObject:
    error: JsonObject = {"$ref": "#/components/schemas/Error"}
    told: JsonObject = (
        {"anyOf": [{"$ref": "#/components/schemas/Told"}, error]} if code == "409" else error
    )
    found: JsonObject = {
        "description": REFUSALS[code],
        "content": {
            "application/json": {"schema": told},
            "text/html": {"schema": {"type": "string"}},
        },
    }
    if code in ("429", "503"):
        words = "Seconds until it is worth trying again."
        found["headers"] = {"Retry-After": {"description": words, "schema": {"type": "integer"}}}
    if code == "401":
        words = "How to log in: Bearer."
        found["headers"] = {
            "WWW-Authenticate": {"description": words, "schema": {"type": "string"}}
        }
    return found


def _security(route: Route, method: str) -> list[JsonValue]:
    if route.scope is None:
        return []
    if method in SAFE:
        return [{"bearer": [route.scope]}, {"session": [route.scope]}]
    return [{"bearer": [route.scope]}, {"session": [route.scope], "page": [route.scope]}]


KINDS_OF_BODY: Final = ("application/json", "application/x-www-form-urlencoded")

SCHEMES: Final[JsonObject] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token of the desk."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "torra_session_DESK",
        "description": "What a login gives a browser; the name ends with eight characters of the "
        "desk's own, for cookies are shared between the ports of a host.",
    },
    "page": {
        "type": "apiKey",
        "in": "header",
        "name": CSRF_HEADER,
        "description": "The session's own token, which every page of the session carries.",
    },
}

SCHEMAS: Final[JsonObject] = {
    "Error": {
        "type": "object",
        "properties": {
            "error": {"type": "string"},
            "advice": {"type": "string"},
            "status": {"type": "integer"},
        },
        "required": ["error", "status"],
    },
    "Told": {
        "type": "object",
        "properties": {
            "status": {"enum": ["accepted", "running", "done", "failed"]},
            "reason": {"type": "string"},
        },
        "required": ["status", "reason"],
    },
}

ROUTES = (Api("/api/v1/openapi.json", "openapi", openapi),)

if __name__ == "__main__":
    sys.stdout.write(rendered())
