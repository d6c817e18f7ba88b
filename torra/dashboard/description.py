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
from typing import Any, Final

from flask import Response
from pydantic import JsonValue

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
CHANGING: Final = ("409", "415")
"""Refusals that only a command can meet; a body that is too large, any request."""

RETRY: Final = ("Retry-After", "Seconds until it is worth trying again.", "integer")
HEADERS: Final = {
    "401": ("WWW-Authenticate", "How to log in: Bearer.", "string"),
    "429": RETRY,
    "503": RETRY,
}
"""The header of a refusal: its name, what it is about, and its type."""

TEXT: Final[JsonObject] = {"type": "string"}
OUTCOME: Final[JsonObject] = {"$ref": "#/components/schemas/Told"}
ERROR: Final[JsonObject] = {"$ref": "#/components/schemas/Error"}

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
    reading = [route for route in every_route() if route not in changing]
    rows = [
        f"| `{'/'.join(route.methods)} {route.rule}` | {route.summary.rstrip('.')} "
        f"| {route.scope or 'nobody has to be logged in'} |\n"
        for route in sorted(changing, key=lambda route: (route.scope or "", route.rule))
    ]
    free = ", ".join(f"`{route.rule}`" for route in reading if route.scope is None)
    higher = ", ".join(
        f"`{route.rule}` ({route.scope})" for route in reading if route.scope not in (None, "read")
    )
    rows.append(f"| `GET` {free} | | nobody has to be logged in |\n")
    rows.append(f"| every other `GET`{higher and f', but {higher}'} | | read |\n")
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
            method.lower(): operation(route, method) for route in group for method in route.methods
        }
        for path, group in groupby(routes, key=address)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Torra", "version": VERSION, "description": ABOUT},
        # relative: in a host all of this lies below a prefix of its own
        "servers": [{"url": "../../", "description": "Where this description was found"}],
        "paths": paths,
        "components": {
            "securitySchemes": SCHEMES,
            "schemas": {**SCHEMAS, **_schemas()[1]},
            "responses": {code: _refusal(code) for code in REFUSALS},
        },
    }


def described() -> Iterator[Route]:
    """Yield the routes of the API."""
    return (route for route in every_route() if route.rule.startswith(BELOW))


def address(route: Route) -> str:
    """Return a route's path as OpenAPI writes it."""
    return PARAMETER.sub(lambda parameter: f"{{{parameter['name']}}}", route.rule)


def operation(route: Route, method: str) -> JsonObject:
    """Return the description of one method of one address: its input and its answers."""
    _, _, more = (inspect.getdoc(route.view) or "").partition("\n")
    spec: JsonObject = {
        "operationId": route.name if len(route.methods) == 1 else f"{method.lower()}_{route.name}",
        "tags": [route.view.__module__.rpartition(".")[2]],
        "summary": route.summary.rstrip("."),
    }
    if more.strip():
        spec["description"] = " ".join(more.split())
    if parameters := [*_in_path(route), *_in_query(route)]:
        spec["parameters"] = parameters
    if method not in SAFE and route.body:
        kinds = ("multipart/form-data",) if route.files else KINDS_OF_BODY
        body = _content({"type": "object", "properties": route.body}, *kinds)
        spec["requestBody"] = {"required": False, "content": body}
    spec["responses"] = {**_answers(route, method), **_refusals(route, method)}
    spec["security"] = _security(route, method)
    return spec


def _in_path(route: Route) -> Iterator[JsonValue]:
    for parameter in PARAMETER.finditer(route.rule):
        schema: JsonObject = {"type": KINDS.get(parameter["kind"] or "", "string")}
        yield {"name": parameter["name"], "in": "path", "required": True, "schema": schema}


def _in_query(route: Route) -> Iterator[JsonValue]:
    for name, field in route.query.items():
        schema = {word: value for word, value in field.items() if word != "description"}
        about = {"description": field["description"]} if "description" in field else {}
        yield {"name": name, "in": "query", **about, "required": False, "schema": schema}


def _answers(route: Route, method: str) -> JsonObject:
    if method not in SAFE and route.name not in _schemas()[0]:
        outcome = _content(OUTCOME) | _content(TEXT, "text/html")
        return {
            "200": {"description": "Done, or what it would do.", "content": outcome},
            "202": {"description": "Accepted, or running.", "content": outcome},
        }
    schema: Any = _schemas()[0][route.name] if route.reply == "json" else TEXT
    content = _content(schema, REPLIES[route.reply])
    answers: JsonObject = {"200": {"description": "What was asked.", "content": content}}
    if route.reply == "events":
        answers["204"] = {"description": "The stream has ended."}
    return answers


@cache
def _schemas() -> tuple[dict[str, JsonObject], JsonObject]:
    from torra.dashboard.answers import schemas  # noqa: PLC0415  a page alone must not load the desk

    return schemas()


def _refusals(route: Route, method: str) -> JsonObject:
    left_out = {"401", "403"} if route.scope is None else set()
    if method in SAFE:
        left_out |= {*CHANGING} - ({"409"} if route.conflicts else set())
    if route.scope is None and route.per_minute is None:  # else a wrong token may have to wait
        left_out |= {*WAITS}
    return {
        code: {"$ref": f"#/components/responses/{code}"}
        for code in REFUSALS
        if code not in left_out
    }


def _refusal(code: str) -> JsonObject:
    schema: JsonObject = {"anyOf": [OUTCOME, ERROR]} if code == "409" else ERROR
    refusal: JsonObject = {
        "description": REFUSALS[code],
        "content": _content(schema) | _content(TEXT, "text/html"),
    }
    if code in HEADERS:
        name, about, kind = HEADERS[code]
        refusal["headers"] = {name: {"description": about, "schema": {"type": kind}}}
    return refusal


def _content(schema: Any, *kinds: str) -> JsonObject:
    """Return a schema by its media types; JSON where none is named."""
    return {kind: {"schema": schema} for kind in kinds or ("application/json",)}


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
