"""Pages below a path of a proxy: no link, form, redirect, file or cookie leaves that path."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from html import unescape
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from click.testing import CliRunner

from tests.doubles import loopback
from tests.doubles.browser import Site, Visit, chromium, needs_browser
from tests.doubles.visitors import ACCESS
from tests.worlds import screens
from torra.commands.command_line import main
from torra.dashboard import server
from torra.dashboard.doors.routes import by_name
from torra.errors import ConfigError

PREFIX = "/desk/torra"
ADDRESSES = re.compile(r'\s([a-z-]+)="(/[^"]*)"')
"""Attributes of a page whose value is a path of this host."""

JSON_PATHS = re.compile(r'"(/[^"]*)"')
PATIENCE = 120
"""Seconds: the first page compiles its templates, on a machine that may be busy."""

PASSED_ON = ("content-type", "accept", "cookie", "origin", "sec-fetch-site")


class Proxy(BaseHTTPRequestHandler):
    """Shows one server below PREFIX, and nothing else; cuts the prefix where `cuts` says so."""

    port = 0
    cuts = False

    def do_GET(self) -> None:
        if not self.path.startswith(f"{PREFIX}/"):
            self.send_error(404, "outside of the prefix")
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.removeprefix(PREFIX) if self.cuts else self.path
        sent = {name: value for name, value in self.headers.items() if name.lower() in PASSED_ON}
        behind = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with closing(behind):
            behind.request(self.command, path, body, {**sent, "Host": self.headers["Host"]})
            answer = behind.getresponse()
            text = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() in ("location", "set-cookie", "content-type"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing of it is printed."""


@dataclass
class Answer:
    status: int
    text: str
    headers: http.client.HTTPMessage


@dataclass
class Browser:
    """A visitor who asks the proxy and sends a cookie only below the path that it was set for."""

    host: str
    cookie: str = ""
    path: str = "/"

    def ask(self, address: str, form: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        headers = {"Accept": "text/html"}
        if self.cookie and address.startswith(self.path):
            headers["Cookie"] = self.cookie
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            headers["Origin"], headers["Sec-Fetch-Site"] = f"http://{self.host}", "same-origin"
        method, body = ("GET", None) if form is None else ("POST", urlencode(form))
        with closing(connection):
            connection.request(method, address, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        if set_cookie := answer.headers.get("Set-Cookie"):
            self.cookie = set_cookie.partition(";")[0]
            (self.path,) = re.findall(r"Path=([^;]*)", set_cookie)
        return Answer(answer.status, text, answer.headers)


@contextmanager
def behind_a_proxy(app: Any, *, cuts: bool, prefix: str = PREFIX) -> Iterator[Browser]:
    served = loopback.open_warm(app, prefix)
    thread = threading.Thread(target=served.run, daemon=True)
    thread.start()
    handler = type("Here", (Proxy,), {"port": served.effective_port, "cuts": cuts})
    with loopback.Loopback(handler) as proxy:
        yield Browser(proxy.url.removeprefix("http://"))
    loopback.end(served)
    thread.join(10)
    served.task_dispatcher.shutdown()


def enter(browser: Browser) -> str:
    """Log in from a page that wants a session; return where that leads."""
    refused = browser.ask(f"{PREFIX}/help")
    assert refused.status == 303
    login = refused.headers["Location"]
    assert login.startswith(f"{PREFIX}/login?")
    (onward,) = parse_qs(urlsplit(login).query)["next"]
    form = browser.ask(login)
    assert f'action="{PREFIX}/login"' in form.text
    answer = browser.ask(f"{PREFIX}/login", {"token": ACCESS.tokens["admin"], "next": onward})
    assert answer.status == 303
    return answer.headers["Location"]


def outside(text: str) -> list[str]:
    """Return what of a page leads to this host, but not below the prefix."""
    return [
        f"{name}={address}"
        for name, address in ADDRESSES.findall(unescape(text))
        if not address.startswith(f"{PREFIX}/")
    ]


def walk(browser: Browser, most: int) -> tuple[list[str], int]:
    """Open pages as links lead to them; return what is wrong and how many pages there were."""
    waiting, known, wrong, pages = [f"{PREFIX}/"], {f"{PREFIX}/"}, [], 0
    while waiting and pages < most:
        address = waiting.pop(0)
        answer = browser.ask(address)
        if answer.status in (301, 302, 303, 308):
            target = answer.headers["Location"]
            if not target.startswith(f"{PREFIX}/"):
                wrong.append(f"{address} -> {target}")
            continue
        # a scripted desk links to ticks that it does not have: its own 404 is a page too
        if answer.status >= 500 or "outside of the prefix" in answer.text:
            wrong.append(f"{address}: {answer.status}")
        if not answer.headers["Content-Type"].startswith("text/html"):
            continue
        pages += 1
        wrong += [f"{address}: {one}" for one in outside(answer.text)]
        for name, found in ADDRESSES.findall(unescape(answer.text)):
            plain = found.partition("#")[0]
            # the stream never ends, and a form's address is asked with POST
            if name in ("href", "src") and plain not in known and "/events" not in plain:
                known.add(plain)
                waiting.append(plain)
    return wrong, pages


@pytest.mark.parametrize("cuts", [True, False], ids=["proxy cuts the path", "proxy passes it on"])
def test_login_and_pages_stay_below_the_path_of_the_proxy(cuts: bool) -> None:
    with behind_a_proxy(screens.view_app(), cuts=cuts) as browser:
        assert enter(browser) == f"{PREFIX}/help"
        assert browser.path == f"{PREFIX}/"
        wrong, pages = walk(browser, 8)
        assert not wrong
        assert pages == 8
        cells = browser.ask(f"{PREFIX}{by_name()['api_overview'].rule}")
        leaves = [path for path in JSON_PATHS.findall(cells.text) if not path.startswith(PREFIX)]
        assert cells.status == 200 and not leaves


def test_without_the_prefix_the_login_leaves_the_path() -> None:
    """What the walk would find: a server that does not know its prefix."""
    with behind_a_proxy(screens.view_app(), cuts=True, prefix="") as browser:
        assert browser.ask(f"{PREFIX}/help").headers["Location"].startswith("/login")
        assert outside(browser.ask(f"{PREFIX}/login").text)


@pytest.mark.journey
@pytest.mark.parametrize("cuts", [True, False], ids=["cut", "passed on"])
def test_every_page_of_a_desk_stays_below_the_path(tmp_path: Path, cuts: bool) -> None:
    app = screens.desk_app(tmp_path)
    with behind_a_proxy(app, cuts=cuts) as browser:
        enter(browser)
        wrong, pages = walk(browser, 150)
        assert not wrong
        assert pages > 30
        csrf = re.search(r'data-csrf="(\w+)"', browser.ask(f"{PREFIX}/help").text)
        assert csrf
        out = browser.ask(f"{PREFIX}/logout", {"csrf": csrf[1]})
        assert out.headers["Location"] == f"{PREFIX}/login"
        assert browser.path == f"{PREFIX}/", "a cookie is dropped for the path that it was set for"
        assert browser.ask(f"{PREFIX}/help").status == 303
    app.extensions["torra_agents"].backing.database.close()


@pytest.mark.parametrize(
    ("given", "taken"),
    [("", ""), ("/torra", "/torra"), ("/torra/", "/torra"), ("/a/b-c_1.~", "/a/b-c_1.~")],
)
def test_a_path_is_taken_without_its_last_slash(given: str, taken: str) -> None:
    assert server.path_prefix(given) == taken


BAD = ("torra", "/", "//evil.test", "/a//b", "/a b", "/../x", "/a/.", "/a?b", "/a#b", "/é", "/a\n",
       "http://desk.lan/torra", "/%2e%2e", "/a\\b", "/" + "x" * 65)  # fmt: skip


@pytest.mark.parametrize("prefix", BAD, ids=ascii)
def test_what_is_no_path_is_refused(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(ConfigError, match="is no path"):
        server.path_prefix(prefix)
    result = CliRunner().invoke(
        main, ["--home", str(tmp_path / "home"), "run", "--prefix", prefix], catch_exceptions=False
    )
    assert result.exit_code == 2
    assert "--prefix" in result.output and "\n" not in result.output.strip()
    assert not (tmp_path / "home").exists(), "a start that is refused makes nothing"


@pytest.mark.journey
@needs_browser
def test_in_a_browser_no_module_question_or_stream_leaves_the_path(tmp_path: Path) -> None:
    app = screens.desk_app(tmp_path)
    with chromium() as opened, Site(app, PREFIX) as site, Visit(opened) as visit:
        paths: list[str] = []
        visit.page.on("request", lambda request: paths.append(urlsplit(request.url).path))
        visit.enter(site)
        visit.page.locator('nav a[href$="/orders"]').first.click()
        visit.page.wait_for_url(f"{site.url}/orders")
        visit.page.goto(f"{site.url}/symbols")
        visit.page.wait_for_function("performance.getEntriesByType('resource').length > 3")
        visit.page.goto("about:blank")
        sent = [path for path in paths if path != "blank"]
        assert any(path.endswith(".js") for path in sent)
        assert any("/api/" in path for path in sent), "the pages ask for what is new"
        assert not [path for path in sent if not path.startswith(f"{PREFIX}/")]
        assert {cookie["path"] for cookie in visit.context.cookies()} == {f"{PREFIX}/"}
    app.extensions["torra_agents"].backing.database.close()
