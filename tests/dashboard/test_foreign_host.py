"""The dashboard as a guest: a host with its own config, errors, clock and templates keeps them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from flask import Flask

from tests.doubles.visitors import ACCESS, bearer
from tests.worlds.demo_view import ScriptedView
from torra.config import ROOT
from torra.dashboard.app import TorraOverlay
from torra.errors import ConfigError

HOST = """
import sys

import clock
import config
import errors
from flask import Flask, render_template

assert config.NAME == "host"
assert clock.TICKS == 7
assert errors.HostError


def make_app():
    app = Flask(__name__)
    app.config["SECRET"] = "host"

    @app.get("/")
    def index():
        return render_template("index.html")

    @app.before_request
    def before():
        app.config["SEEN"] = app.config.get("SEEN", 0) + 1

    @app.errorhandler(404)
    def missing(error):
        return "host: nothing here", 404

    return app


def picture(app, prefix):
    rules = sorted(
        (str(rule), rule.endpoint, tuple(sorted(rule.methods)))
        for rule in app.url_map.iter_rules()
        if not str(rule).startswith(prefix)
    )
    own = {
        "before": app.before_request_funcs,
        "after": app.after_request_funcs,
        "teardown": app.teardown_request_funcs,
        "errors": app.error_handler_spec,
        "context": app.template_context_processors,
        "values": app.url_value_preprocessors,
    }
    return {
        "rules": rules,
        "config": {k: v for k, v in app.config.items() if not k.startswith("TORRA_AGENTS_")},
        "globals": sorted(app.jinja_env.globals),
        "filters": sorted(app.jinja_env.filters),
        "tests": sorted(app.jinja_env.tests),
        "options": str(app.jinja_options),
        "commands": sorted(app.cli.commands),
        "extensions": sorted(set(app.extensions) - {"torra_agents"}),
        "funcs": {k: repr(v.get(None)) for k, v in own.items()},
        "scopes": {k: sorted(map(str, set(v) - {None, "torra_agents"})) for k, v in own.items()},
    }


app = make_app()
app.config.update(TORRA_AGENTS_URL_PREFIX="/desk")
before = picture(app, "/desk")

from tests.worlds.demo_view import ScriptedView
from torra.dashboard.app import TorraOverlay
from tests.doubles.visitors import ACCESS, bearer

overlay = TorraOverlay(desk_view=ScriptedView(), access=ACCESS)
overlay.init_app(app)
after = picture(app, "/desk")
for part in before:
    assert before[part] == after[part], (part, before[part], after[part])

for module in ("config", "errors", "clock"):
    assert sys.modules[module].__file__.startswith(sys.argv[1]), sys.modules[module]

client = app.test_client()
page = client.get("/")
assert page.text.strip() == "HOST BASE host index", page.text
assert "Content-Security-Policy" not in page.headers
assert client.get("/", headers={"Host": "anything.test"}).status_code == 200
assert client.post("/").status_code == 405
assert "Content-Security-Policy" not in client.post("/").headers
assert client.get("/nothing").text == "host: nothing here"

assert client.get("/desk/").status_code in (303, 401)
ours = client.get("/desk/", headers=bearer("read"))
text = ours.text
assert "Home" in text and "HOST BASE" not in text and "BTCUSD" in text
assert 'href="/desk/symbol/BTCUSD"' in text and 'href="/desk/assets/torra.css"' in text
assert "default-src 'none'" in ours.headers["Content-Security-Policy"]
assert client.get("/desk/assets/torra.css", buffered=True).status_code == 200
symbols = client.get("/desk/api/v1/overview", headers=bearer("read")).json["symbols"]
assert symbols[0]["instance"] == "BTCUSD"
missing = client.get("/desk/nothing", headers=bearer("read"))
assert missing.status_code == 404 and "There is no such page" in missing.text
assert client.get("/desk/", headers={"Host": "evil.test"}).status_code == 400
assert client.post("/desk/").status_code == 405
assert app.config["SEEN"] > 5

second = make_app()
TorraOverlay(desk_view=ScriptedView("halted"), access=ACCESS).init_app(second)
halted = second.test_client().get("/torra/", headers=bearer("read"))
assert "No signal is sent" in halted.text
assert second.test_client().get("/desk/").status_code == 404
assert client.get("/torra/").status_code == 404
assert app.extensions["torra_agents"].desk_view is not second.extensions["torra_agents"].desk_view
assert not [name for name in vars(overlay) if name == "app"]
print("unharmed")
"""


@pytest.mark.journey
def test_a_host_is_unchanged_outside_the_prefix(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text("NAME = 'host'\n")
    (tmp_path / "errors.py").write_text("class HostError(Exception): pass\n")
    (tmp_path / "clock.py").write_text("TICKS = 7\n")
    (tmp_path / "host.py").write_text(HOST)
    templates = tmp_path / "templates"
    templates.mkdir()
    (templates / "base.html").write_text("HOST BASE {% block main %}{% endblock %}")
    (templates / "index.html").write_text(
        '{% extends "base.html" %}{% block main %}host index{% endblock %}'
    )
    for name in ("overview.html", "error.html", "parts.html", "symbol.html"):
        (templates / name).write_text("HOST BASE not ours")
    done = subprocess.run(
        [sys.executable, "-W", "error", "host.py", str(tmp_path)],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "unharmed"


@pytest.mark.parametrize("prefix", ["", "/", "desk", "//"])
def test_a_prefix_that_would_swallow_the_host_is_refused(prefix: str) -> None:
    app = Flask("host")
    app.config["TORRA_AGENTS_URL_PREFIX"] = prefix
    with pytest.raises(ConfigError, match="TORRA_AGENTS_URL_PREFIX"):
        TorraOverlay(desk_view=ScriptedView(), access=ACCESS).init_app(app)
    assert "torra_agents" not in app.blueprints


def test_pages_without_a_source_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the default home is not, whatever ran in the checkout
    # nor the home of an overlay that another test of this process has made
    monkeypatch.setattr("torra.dashboard.app.HOSTED", {})
    with pytest.raises(ConfigError, match="no desk has run in"):
        TorraOverlay().init_app(Flask("host"))


@pytest.mark.journey
def test_a_host_names_more_hosts() -> None:
    app = Flask("host")
    app.config["TORRA_AGENTS_TRUSTED_HOSTS"] = "desk.internal"
    TorraOverlay(app, desk_view=ScriptedView(), access=ACCESS)
    asked = {
        host: app.test_client().get("/torra/", headers={"Host": host, **bearer("read")}).status_code
        for host in ("desk.internal", "localhost", "other.internal")
    }
    assert asked == {"desk.internal": 200, "localhost": 200, "other.internal": 400}


@pytest.mark.parametrize("own", [True, False], ids=["has one", "has none"])
def test_the_icon_of_a_host_stays_its_own(own: bool) -> None:
    app = Flask("host", static_folder=None)
    if own:
        app.add_url_rule("/favicon.ico", "icon", lambda: "the host's icon")
    TorraOverlay(app, desk_view=ScriptedView(), access=ACCESS)
    client = app.test_client()
    answer = client.get("/favicon.ico", buffered=True)
    assert answer.status_code == (200 if own else 404)
    assert (answer.text == "the host's icon") == own
    assert "Content-Security-Policy" not in answer.headers
    assert client.get("/torra/favicon.ico", headers=bearer("read")).status_code == 404


def test_the_command_line_does_not_load_flask() -> None:
    text = "import sys, torra.dashboard; assert not {'flask', 'torra.config'} & set(sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
