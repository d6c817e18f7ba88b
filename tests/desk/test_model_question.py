"""One small question to a vendor: booked before it is sent, told in words, and never with a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_config import AgentSettings
from instance_database import Database, open_home
from tests.doubles.vendor_line import CANARIES, agents, environment
from tests.doubles.vendor_server import (
    GOOGLE,
    VENDORS,
    Hang,
    Raw,
    Reply,
    Reset,
    Status,
    VendorServer,
)
from tests.tries import Tries
from torra.clock import System
from torra.config import Instance, Profile
from torra.desk.models import question as model_question
from torra.errors import ConfigError
from torra.store import ledger as ledger_table
from torra.store.ledger import Booking
from torra.tick import spending
from torra.tick.spending import HOUR

READY = Reply(text='{"answer": "ready"}')


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = open_home(tmp_path)
    yield found
    found.close()


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer() as found:
        yield found


def profiles(settings: AgentSettings) -> dict[str, Profile]:
    return {"mine": Profile(agents=settings)}


def asked(
    database: Database, home: Path, server: VendorServer, vendor: str, **changes: object
) -> model_question.ModelTest:
    used = profiles(agents(vendor, **changes))
    return model_question.ask(home, database, vendor, "", used, environment(server))


def rows(database: Database) -> list[dict[str, object]]:
    return ledger_table.ledger_rows(database, System().real_now() - HOUR)


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
def test_an_answer_is_told_and_booked(
    vendor: str, database: Database, tmp_path: Path, server: VendorServer
) -> None:
    server.play({"*": READY})
    prices = {"gpt-6-luna": {"input": 0.1, "output": 0.5}}  # a server of this machine is free else
    (tmp_path / "prices.json").write_text(json.dumps(prices))
    found = asked(database, tmp_path, server, vendor)
    assert found.ok and found.answer == "ready"
    assert found.input_tokens == 1000
    (row,) = rows(database)
    assert (row["stage"], row["profile"], row["state"]) == ("test", "mine", "settled")
    assert found.booked and found.usd == pytest.approx(row["usd"]) and found.usd > 0
    assert len(server.exchanges) == 1 and not server.exchanges[0].refused


FAULTS = {
    "key refused": (Status(401, "bad_key"), "the key was refused"),
    "too many": (Status(429), "the vendor is busy"),
    "gone": (Status(404), "there is no such model"),
    "garbage": (Raw(b"<html>"), "the reply cannot be read"),
    "broken": (Status(500), "the vendor failed (500)"),
    "reset": (Reset(), "the vendor failed (the connection broke)"),
    "another form": (Reply(text="I am here"), "not in the form that was asked for"),
    "cut off": (Reply(text='{"answer": "ready"}', stop="length"), "its answer was cut off"),
}


@pytest.mark.journey
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_remedy(
    vendor: str, name: str, database: Database, tmp_path: Path, server: VendorServer
) -> None:
    entry, said = FAULTS[name]
    server.play({"*": entry})
    found = asked(database, tmp_path, server, vendor)
    assert not found.ok and said in found.error, found
    assert found.remedy and "{" not in found.remedy
    assert said in found.line() and "Remedy: " in found.line()
    assert ledger_table.provider_blocks(database) == [], "a question blocks no vendor"


def test_nobody_waits_longer_than_the_deadline(
    tmp_path: Path, server: VendorServer, monkeypatch: pytest.MonkeyPatch, tries: Tries
) -> None:
    server.play({"*": Hang()})
    monkeypatch.setattr(model_question, "DEADLINE", 2.0)
    monkeypatch.setattr(model_question, "WARMING", 1.5)
    for attempt in tries():
        home = attempt.folder(tmp_path)
        with closing(open_home(home)) as database:
            found = asked(database, home, server, GOOGLE)
            (row,) = rows(database)
        assert not found.ok
        with attempt:
            assert "no answer came within 2 seconds" in found.error
            assert found.seconds < 4.0
            assert row["state"] == "kept", "what may have been billed stays at its worst case"


def test_the_hour_must_pay_for_it_and_for_the_next_tick(
    database: Database, tmp_path: Path, server: VendorServer
) -> None:
    server.play({"*": READY})
    used = profiles(agents(GOOGLE, max_api_cost_per_hour=0.2))
    now = System().real_now()
    dear = Booking("analysts", "technical", 1, 1, GOOGLE, "gemini-3.5-flash-lite", 0.1999)
    database.book("mine", "X|M15|then", [dear], at=now, until=now)
    with pytest.raises(ConfigError, match="was not sent"):
        model_question.ask(tmp_path, database, GOOGLE, "", used, environment(server))
    assert not server.exchanges and len(rows(database)) == 1


@pytest.mark.journey
def test_every_tick_that_may_close_together_is_paid_first(
    database: Database, tmp_path: Path, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play({"*": READY})
    used = profiles(agents(GOOGLE, max_api_cost_per_hour=0.2))
    two = [Instance(symbol="BTCUSD", timeframes=("M15", "H1"), profile="mine")]
    place = environment(server)
    monkeypatch.setattr(spending, "tick_worst_case", lambda *_: 0.1)
    with pytest.raises(ConfigError, match="with the next ticks"):
        model_question.ask(tmp_path, database, GOOGLE, "", used, place, two)
    # one stream: the second tenth is to spare
    one = [two[0].model_copy(update={"timeframes": ("M15",)})]
    assert model_question.ask(tmp_path, database, GOOGLE, "", used, place, one).ok
    # a tick that the ceiling could not pay anyway keeps nothing back
    monkeypatch.setattr(spending, "tick_worst_case", lambda *_: 5.0)
    assert model_question.ask(tmp_path, database, GOOGLE, "", used, place, two).ok


@pytest.mark.parametrize("vendor", VENDORS)
def test_without_a_key_it_says_what_to_set(vendor: str, database: Database, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"_API_KEY.*restart the desk"):
        model_question.ask(tmp_path, database, vendor, "", profiles(AgentSettings()), {})


def test_a_name_that_is_no_vendor_is_refused(database: Database, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no vendor 'rules'"):
        model_question.ask(tmp_path, database, "rules", "", profiles(AgentSettings()), {})


@pytest.mark.parametrize(
    "model", ["x" * 101, "x" * 100_000, "a\x1b[31mb", "a\nb", "a\n", "a b", "a\u202eb", "<b>"]
)
def test_a_name_that_is_no_models_is_neither_sent_nor_booked(
    database: Database, tmp_path: Path, server: VendorServer, model: str
) -> None:
    server.play({"*": READY})
    used = profiles(agents(GOOGLE))
    with pytest.raises(ConfigError, match="is no name of a model: use letters") as told:
        model_question.ask(tmp_path, database, GOOGLE, model, used, environment(server))
    assert len(str(told.value)) < 400 and str(told.value).isprintable()
    assert not server.exchanges and not rows(database)


def test_no_key_is_in_what_is_kept(
    database: Database, tmp_path: Path, server: VendorServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.play({"*": lambda one: Reply(text=json.dumps({"answer": str(one.headers)}))})
    for vendor in VENDORS:
        found = asked(database, tmp_path, server, vendor)
        model_question.remember(database, found, "a test")
        assert not [key for key in CANARIES if key in str(found)]
    server.play({"*": Status(401, "bad_key", echo=True)})
    for vendor in VENDORS:
        model_question.remember(database, asked(database, tmp_path, server, vendor), "a test")
    assert model_question.newest(database).keys() == set(VENDORS)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not [key for key in CANARIES if key.encode() in kept or key in caplog.text]


def test_the_model_of_the_profile_in_use_is_asked(
    database: Database, tmp_path: Path, server: VendorServer
) -> None:
    server.play({"*": READY})
    found = asked(database, tmp_path, server, GOOGLE, quick_think_model="gemini-4-argon")
    assert found.model == "gemini-4-argon" == server.exchanges[0].model
