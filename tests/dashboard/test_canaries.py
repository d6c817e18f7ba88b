"""No key and no token is on any page, in any answer, stream, export or log, or in the database.

A desk whose vendor quotes the key in its answers runs some ticks, with every key that Torra knows
set to a canary and with tokens of its own home; then a person logs in, opens every address of the
route table and gives commands. What the login itself answers is all that may hold a token's worth.
"""

from __future__ import annotations

import io
import itertools
import json
import logging
import re
from collections.abc import Iterator

import pytest

from tests.conftest import Scale
from tests.dashboard.test_hostile_texts import addresses
from tests.doubles import vendor_line
from tests.doubles.vendor_server import ANTHROPIC, VendorServer
from tests.providers.test_vendor_secrets import echoing
from tests.worlds import desks
from torra.clock import token
from torra.config import DeskSettings, Profile, validate
from torra.dashboard.app import create_app
from torra.dashboard.doors.access import SCOPES, Access
from torra.dashboard.doors.routes import every_route
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.home import ACCESS
from torra.providers.vendors.table import vendors
from torra.store import ledger as ledger_table
from torra.store import streams as stream_table

CHANNEL_KEY = "canarychannel0123456789abcdef0123456789abcdef"
OURS = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
STRANGER = "canarywrongtoken0123456789abcdef0123456789"


class Heard(logging.Handler):
    """Everything that any logger says, with each of its arguments."""

    def __init__(self) -> None:
        super().__init__(0)
        self.text = io.StringIO()

    def emit(self, record: logging.LogRecord) -> None:
        self.text.write(f"{record.getMessage()} {record.__dict__!r} {record.exc_text}\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A home whose desk ran on a vendor that quotes the key, and what stands behind its pages."""
    home = tmp_path_factory.mktemp("home")
    heard = Heard()
    root = logging.getLogger()
    before = root.level
    root.addHandler(heard)
    root.setLevel(0)
    access, _ = Access.of_home(home)
    with VendorServer({"*": echoing}) as server:
        environment = vendor_line.environment(server)
        environment |= {name: f"canary{number}vendor0123456789" for number, name in enumerate(
            name for vendor in vendors().values() for name in vendor.keys
            if name not in environment
        )}  # fmt: skip
        environment["TORRA_CHANNEL_KEY"] = CHANNEL_KEY
        settings = vendor_line.agents(ANTHROPIC, timeout_seconds=5.0).model_dump()
        profile = validate(Profile, {"agents": settings, "execution": "approve"}, "a test")
        with vendor_line.Line(environment, profile.agents) as line:
            for name in logging.getLogger().manager.loggerDict:  # building a client turns some down
                logging.getLogger(name).setLevel(logging.DEBUG)
            desk = desks.open_desk(home, (desks.EUR,), profile=profile, provider=line.provider)
            desks.open_for_work(desk)
            for _ in range(2):
                desks.step(desk)
            sent = json.dumps([exchange.headers for exchange in server.exchanges])
    found = Place(home, desk, access, environment, heard)
    assert found.leaks(sent), "the key did go out, and came back"
    yield found
    root.removeHandler(heard)
    root.setLevel(before)
    desk.close()
    found.check_traces()


class Place:
    """The home, its app and its canaries."""

    def __init__(self, home, desk, access, environment, heard) -> None:
        self.home, self.desk, self.heard = home, desk, heard
        self.access = access
        self.environment = environment
        self.hosts = itertools.count(1)
        one = DeskSettings(instances=(desks.EUR,))
        self.backing = PageContext(home, desk.database, one, desk, environment)
        self.app = create_app(
            DatabaseView(desk.database, one, desk), access=access, backing=self.backing
        )
        told = json.loads((home / ACCESS).read_text(encoding="utf-8"))
        self.tokens = {scope: told["tokens"][scope] for scope in SCOPES}
        self.canaries = [
            *self.tokens.values(), told["key"], CHANNEL_KEY, STRANGER, *vendor_line.CANARIES,
            *(value for name, value in environment.items() if name.endswith(("_KEY", "_TOKEN"))),
        ]  # fmt: skip

    def leaks(self, text: str | bytes) -> list[str]:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
        return sorted({canary for canary in self.canaries if canary.encode() in data})

    def client(self, scope: str):
        """Return a client that is logged in by the form, as a person is."""
        client = self.stranger()
        page = client.post("/login", json={"token": self.tokens[scope]}, headers=OURS)
        assert page.status_code == 200, page.text
        assert not self.leaks(page.get_data())
        return client

    def stranger(self):
        """Return a client of an address of its own: logins of one are counted."""
        client = self.app.test_client()
        client.environ_base["REMOTE_ADDR"] = f"127.0.1.{next(self.hosts)}"
        return client

    def check_traces(self) -> None:
        """Look through every file of the home and everything that was logged."""
        for path in self.home.rglob("*"):
            if path.is_file() and path.name != ACCESS:
                assert not self.leaks(path.read_bytes()), path.name
        text = self.heard.text.getvalue()
        assert "torra" in text
        assert not self.leaks(text)

    @property
    def database(self):
        return self.desk.database


def everything(place: Place) -> Iterator[tuple[str, str]]:
    """Yield every GET address of the table with the kind of its reply."""
    for route, address in addresses(place, 1):
        yield address.replace("BTCUSD/M15", "EURUSD/H1").replace("BTCUSD", "EURUSD"), route.reply
    for row in stream_table.streams(place.database, limit=5):
        yield f"/api/v1/streams/{row['stream_id']}", "events"
    for row, rule in itertools.product(
        place.database.ticks("EURUSD", "H1", 5),
        ("/symbol/EURUSD/H1/{}", "/api/v1/symbol/EURUSD/H1/{}"),
    ):
        yield rule.format(row["bar_time"]), "html"


def test_the_vendor_was_asked_and_its_answers_are_stored(place: Place) -> None:
    calls = ledger_table.newest_calls(place.database, ["claude-haiku-5-5", "claude-sonnet-5-5"])
    assert {row["provider"] for row in calls} == {ANTHROPIC}
    assert len(calls) >= 4


def test_no_answer_holds_a_canary(place: Place, scaled: Scale) -> None:
    """By day the admin's pages, who sees most; at night everybody's."""
    for scope in SCOPES[-scaled(len(SCOPES)) :]:
        check_answers(place, scope)


def check_answers(place, scope) -> None:
    client, kinds = place.client(scope), set()
    session = [cookie.value for cookie in client._cookies.values()]
    assert session
    for address, kind in everything(place):
        answer = client.get(address)
        body = answer.get_data()
        assert not place.leaks(body), (address, place.leaks(body))
        assert not place.leaks(str(answer.headers)), address
        assert not [value for value in session if value.encode() in body], address
        kinds.add((kind, answer.status_code))
    assert {("html", 200), ("json", 200), ("csv", 200)} <= kinds


@pytest.mark.journey
def test_commands_tell_and_keep_no_canary(place: Place) -> None:
    client = place.client("admin")
    page = client.get("/").text
    csrf = re.search(r'data-csrf="([^"]+)"', page)[1]
    head = {"X-Torra-CSRF": csrf, "Accept": "application/json", **OURS}
    posts = [
        route for route in every_route() if "POST" in route.methods and "login" not in route.name
    ]
    assert len(posts) > 6
    for route in sorted(posts, key=lambda route: route.name == "logout"):
        address = re.sub(r"<(?:path:)?name>", "default", route.rule)
        address = re.sub(r"<[^>]+>", "none", address)
        answer = client.post(address, json={"reason": "a reason"}, headers=head)
        assert answer.status_code < 500, (address, answer.text[:300])
        assert not place.leaks(answer.get_data()), address
        wrong = place.app.test_client().post(
            address, json={}, headers={"Authorization": f"Bearer {STRANGER}"}
        )
        assert wrong.status_code in (401, 429)
        assert not place.leaks(wrong.get_data())


def test_a_failed_login_is_told_without_what_was_tried(place: Place) -> None:
    client = place.stranger()
    for body in ({"token": STRANGER}, {"token": place.tokens["admin"] + "x"}):
        answer = client.post("/login", data=body, headers=OURS)
        assert answer.status_code in (401, 429)
        assert not place.leaks(answer.get_data())
    for address in (f"/?token={STRANGER}", f"/api/v1/desk?token={place.tokens['admin']}"):
        answer = client.get(address, headers={"Accept": "application/json"})
        assert answer.status_code == 401, address


def test_no_file_and_no_log_holds_a_canary(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    """Here after a few pages, and once more when all tests of this file are through."""
    place.client("read").get("/health")
    place.check_traces()
    out = capfd.readouterr()
    assert not place.leaks(out.out + out.err)


def test_the_canaries_are_found_where_they_are(place: Place) -> None:
    """The search itself: it finds each of them, whatever stands around it."""
    assert len(place.canaries) >= 12
    for canary in place.canaries:
        assert place.leaks(f"a{canary}b") and place.leaks(b"\x00" + canary.encode())
    assert not place.leaks(token(16))
    assert place.leaks((place.home / ACCESS).read_bytes())
