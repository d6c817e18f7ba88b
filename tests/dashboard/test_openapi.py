"""The API's description: every route of it, nothing else, and answers that are what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.cases import cases
from tests.doubles import visitors
from tests.doubles.entrance import bearer, scripted_app
from tests.doubles.page_reader import client as scripted_client
from tests.worlds import demo_orders
from tests.worlds.demo_view import ScriptedView
from torra.config import ROOT
from torra.dashboard import answers, description
from torra.dashboard.app import create_app
from torra.dashboard.doors.access import SCOPES
from torra.dashboard.doors.routes import every_route
from torra.dashboard.view.desk_view import DatabaseView

DOCUMENT = json.loads(description.rendered())
API = [route for route in every_route() if route.rule.startswith("/api/v1/")]
OPERATIONS = [
    (path, method, told)
    for path, item in DOCUMENT["paths"].items()
    for method, told in item.items()
]
NAMES = [f"{method} {path}" for path, method, _ in OPERATIONS]


@pytest.mark.nightly
def test_the_description_is_printed_without_a_desk() -> None:
    command = [sys.executable, "-m", "torra.dashboard.description"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    assert done.stdout == description.rendered()


def test_the_table_of_scopes_is_what_the_routes_are() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert description.with_scopes(page) == page, "run: python -m docs.generate"
    for route in every_route():
        if set(route.methods) - {"GET"}:
            (row,) = re.findall(rf"\n\| `POST {re.escape(route.rule)}` .* \| (.*) \|\n", page)
            assert row == (route.scope or "nobody has to be logged in")


def test_every_route_is_described_and_every_path_is_routed() -> None:
    rules = {
        (re.sub(r"<(?:\w+(?:\(.*?\))?:)?(\w+)>", r"{\1}", route.rule), method.lower())
        for route in API
        for method in route.methods
    }
    assert {(path, method) for path, method, _ in OPERATIONS} == rules
    assert len(rules) == sum(len(route.methods) for route in API) >= 8
    urls = {str(rule) for rule in scripted_app().url_map.iter_rules()}
    assert {route.rule for route in API} <= urls


def test_the_names_of_operations_are_unique() -> None:
    names = [told["operationId"] for _, _, told in OPERATIONS]
    assert len(names) == len(set(names))


@cases(("path", "method", "told"), OPERATIONS, ids=NAMES)
def test_an_operation_says_what_it_wants_and_answers(
    path: str, method: str, told: dict[str, Any]
) -> None:
    (route,) = [
        item for item in API if description.address(item) == path and method.upper() in item.methods
    ]
    assert told["summary"]
    in_path = [item["name"] for item in told.get("parameters", []) if item["in"] == "path"]
    assert in_path == re.findall(r"{(\w+)}", path)
    assert all(item["required"] for item in told.get("parameters", []) if item["in"] == "path")
    in_query = {item["name"] for item in told.get("parameters", []) if item["in"] == "query"}
    assert in_query == set(route.query)
    changing = method != "get"
    assert ("requestBody" in told) == (changing and bool(route.body))
    codes = set(told["responses"])
    assert {"200", "400", "404", "413", "503"} <= codes
    assert ({"409", "415"} <= codes) == changing
    assert ("202" in codes) == (changing and route.name not in answers.ANSWERS)
    assert ({"401", "403"} <= codes) == (route.scope is not None)
    assert ("429" in codes) == (route.per_minute is not None or route.scope is not None)
    if route.scope is not None:
        assert {scope for way in told["security"] for asked in way.values() for scope in asked} == {
            route.scope
        }
        assert route.scope in SCOPES
        assert any(set(way) == {"bearer"} for way in told["security"])
        assert any(set(way) == ({"session", "page"} if changing else {"session"})
                   for way in told["security"])  # fmt: skip
    else:
        assert told["security"] == []


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(DOCUMENT)
    found = set(re.findall(r'"\$ref": "#/([^"]+)"', text))
    assert found
    for reference in found:
        part = DOCUMENT
        for word in reference.split("/"):
            part = part[word]
    used = {name for _, _, told in OPERATIONS for way in told["security"] for name in way}
    assert used == set(DOCUMENT["components"]["securitySchemes"])


def test_every_schema_of_a_parameter_is_one() -> None:
    for _, _, told in OPERATIONS:
        schemas = [item["schema"] for item in told.get("parameters", [])]
        for content in told.get("requestBody", {}).get("content", {}).values():
            schemas += content["schema"]["properties"].values()
        for schema in schemas:
            assert {"type", "enum", "anyOf", "$ref", "const"} & set(schema), schema
            assert not isinstance(schema.get("required"), bool), schema


def filled(path):
    """Return an address with an instance, a timeframe and a tick that the scripted desk has."""
    known = {
        "instance": "BTCUSD",
        "timeframe": "M15",
        "bar_time": ScriptedView().symbol("BTCUSD", "M15", 5).latest.bar_time,
    }
    return re.sub(r"{(\w+)}", lambda found: known.get(found[1], "unknown"), path)


READING = [(path, told) for path, method, told in OPERATIONS if method == "get"]


@pytest.mark.journey
@cases(("path", "told"), READING, ids=[path for path, _ in READING])
def test_a_real_answer_is_what_the_description_says(path: str, told: dict[str, Any]) -> None:
    with scripted_client().get(filled(path)) as answer:
        code = str(answer.status_code)
        assert code in told["responses"], f"{code} is not described"
        assert code in ("200", "204", "404")
        if code == "204":
            return
        declared = told["responses"][code]
        if "$ref" in declared:
            declared = DOCUMENT["components"]["responses"][code]
        assert answer.mimetype in declared["content"]
        if answer.mimetype == "application/json" and code == "200":
            answers.adapters()[told["operationId"]].validate_json(answer.data, extra="forbid")
        if code == "404":
            assert answer.is_json, "a refusal of the API is JSON"
            assert {"error", "status"} <= set(answer.json)


def test_every_answer_of_a_desk_is_of_its_model(tmp_path: Path) -> None:
    backing = demo_orders.build(tmp_path)
    database = backing.database
    view = DatabaseView(database, backing.settings, backing.desk)
    client = create_app(view, access=visitors.ACCESS, backing=backing).test_client()
    newest = database.latest_tick("BTCUSD", "M15") or {}
    sid, proposal = database.signals(limit=1)[0]["sid"], database.proposals(None)[0].sid
    known = {
        "instance": "BTCUSD", "timeframe": "M15", "bar_time": newest["bar_time"],
        "name": "default", "number": "1", "stream_id": "none", "run": "1",
        "card_id": "none",
    }  # fmt: skip
    # Runs of the radar are made, and held to their models, by tests/radar and tests/film.
    radar = dict.fromkeys(
        ("api_radar_audit", "api_radar_latest", "api_radar_status", "api_film"), 404
    )
    empty = {"api_watch": 404, "api_replay": 404, "api_card": 404, **radar}
    for path, told in READING:
        name = told["operationId"]
        if name not in answers.ANSWERS:
            continue
        known["sid"] = proposal if name == "api_approval" else sid
        address = re.sub(r"{(\w+)}", lambda found: known[found[1]], path)
        answer = client.get(address, headers=visitors.bearer("admin"))
        assert answer.status_code == empty.get(name, 200), address
        if answer.status_code == 200:
            answers.adapters()[name].validate_json(answer.data, extra="forbid")
    database.close()


def test_every_json_answer_has_a_model_that_allows_no_other_field() -> None:
    reading = {route.name for route in API if "GET" in route.methods and route.reply == "json"}
    assert reading | {"api_ask"} == set(answers.ANSWERS)
    with pytest.raises(ValidationError, match="extra_forbidden"):
        answers.adapters()["api_desk"].validate_python(
            {"cells": {}, "layout_version": "", "more": 1}, extra="forbid"
        )


def test_the_description_is_served_as_it_is_written() -> None:
    answer = scripted_app().test_client().get("/api/v1/openapi.json", headers=bearer("read"))
    assert answer.text == description.rendered()
    assert answer.mimetype == "application/json"
