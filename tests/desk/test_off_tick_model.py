"""What became of a request beside the ticks: a reply, or a trigger by status and body field."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import Prompt, Role
from instance_database import Database, open_home
from tests.doubles.vendor_line import agents, environment
from tests.doubles.vendor_server import (
    GOOGLE,
    QUOTA,
    VENDORS,
    Raw,
    Reply,
    Status,
    VendorServer,
)
from torra.clock import System
from torra.desk.models.access import open_models
from torra.desk.models.off_tick import OffTickKey, OffTickModel, OffTickReply, alone
from torra.errors import StoreUnavailable
from torra.words.radar import CODES

ROLE = Role("asker", "asker", "reviewer")
SCHEMA = {
    "type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"],
    "additionalProperties": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer() as found:
        yield found


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_home(tmp_path)) as found:
        yield found


def ask(
    database: Database, server: VendorServer, vendor: str, size: int = 10, **changes: Any
) -> OffTickReply:
    settings = agents(vendor, **changes)
    models = open_models(database.path.parent, database, environment(server), remember=False)
    try:
        model = OffTickModel(
            models=models, database=database, profile="mine", agents=settings,
            settings=alone(settings, ROLE, fallback_models=()), kind="chat",
            key=OffTickKey("chat", "7"),
        )  # fmt: skip
        models.clients.ready()
        until = System().monotonic() + 10.0
        return model.ask(Prompt("Say it.", "x" * size, "scores"), SCHEMA, role=ROLE, deadline=until)
    finally:
        models.close()


TALK = b'{"error": {"message": "401 insufficient_quota: no credit, key refused"}}'


@pytest.mark.parametrize(
    "vendor",
    [pytest.param(one, marks=() if one == GOOGLE else pytest.mark.journey) for one in VENDORS],
)
def test_a_trigger_is_read_from_status_and_body_field(
    database: Database, server: VendorServer, vendor: str
) -> None:
    quota = {"anthropic": "NO_CREDIT"}.get(vendor, "QUOTA")
    table = [
        (Status(401, "bad_key"), "AUTH_REFUSED"), (Status(403), "AUTH_REFUSED"),
        (Status(402), "NO_CREDIT"), (QUOTA[vendor], quota), (Status(429), "BUSY"),
        (Status(500), "BUSY"), (Status(400, echo=True), "NETWORK"), (Status(404), "NETWORK"),
        (Reply(text="no"), "GARBAGE"), (Raw(TALK), "GARBAGE"),
        (Reply(text='{"say": "yes"}', stop="length"), "GARBAGE"),
    ]  # fmt: skip
    for entry, trigger in table:
        server.play({"*": entry})
        found = ask(database, server, vendor)
        assert (found.document, found.trigger) == (None, trigger), entry
        assert trigger in CODES["trigger"] and found.call is not None
    server.play({"*": Reply(text='{"say": "yes"}')})
    found = ask(database, server, vendor)
    assert (found.document, found.trigger, found.status) == ({"say": "yes"}, "", "ok")


def test_what_has_no_room_is_not_sent(
    database: Database, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play({"*": Status(500)})
    found = ask(database, server, GOOGLE, size=10_001)
    assert (found.trigger, found.call) == ("BUDGET", None) and "10,000 bytes" in found.detail
    poor = ask(database, server, GOOGLE, max_api_cost_per_hour=0.00001)
    assert poor.trigger == "BUDGET" and "would pass the ceiling" in poor.detail

    def full(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(Database, "book", full)
    locked = ask(database, server, GOOGLE)
    assert locked.trigger == "LEDGER" and "the disk is full" in locked.detail
    assert not server.exchanges
