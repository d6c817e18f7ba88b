"""The page Models: keys as found or missing, prices, cost, and a test that is booked and kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent_config import AgentSettings
from agents.registry import AGENTS
from instance_database import TickKey
from tests.doubles import vendor_line
from tests.doubles.page_reader import Page
from tests.doubles.vendor_line import CANARIES
from tests.doubles.vendor_server import ANTHROPIC, GOOGLE, VENDORS, Reply, Status, VendorServer
from tests.worlds import demo_orders, desks
from tests.worlds.calls import a_call
from torra.clock import System
from torra.config import Profile
from torra.dashboard.settings import models
from torra.dashboard.view.backing import PageContext
from torra.desk.memory.experts_past import ExpertsPast
from torra.desk.models import expert_standing, question, report
from torra.evaluation.standing.past_calls import HitRates, PastTick, SeatCall
from torra.store import audit as audit_chain
from torra.store import ledger as ledger_table
from torra.store.ledger import Booking

JSON = {"Accept": "application/json"}
READY = Reply(text='{"answer": "ready <b>\\u202e"}')
HOURS = 24


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer({"*": READY}) as found:
        yield found


@pytest.fixture(autouse=True)
def a_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question loads a vendor's package: that may take longer than a person waits."""
    monkeypatch.setattr(question, "DEADLINE", 300.0)


def client(backing: PageContext, scope: str = "admin", **environment: str) -> Any:
    return demo_orders.visit(replace(backing, environment=environment), scope)


def paying(patch: pytest.MonkeyPatch, **agents: Any) -> None:
    profile = Profile(agents=vendor_line.agents(ANTHROPIC, **agents))
    patch.setattr(report, "profiles_in_use", lambda *_: {"paying": profile})


def test_seats_prices_and_money_are_told(
    backing: PageContext, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paying(monkeypatch, role_models={"bear_researcher": "google:gemini-3.8-flash"})
    told = client(backing, **vendor_line.environment(server)).get("/api/v1/models").json
    rows = {row["vendor"]: row for row in told["vendors"]}
    assert rows[ANTHROPIC]["key"] == "found" and rows[ANTHROPIC]["used_by"] == ["paying"]
    (haiku, sonnet) = rows[ANTHROPIC]["models"]
    assert haiku["model"] == "claude-haiku-5-5" and "paying: technical analyst" in haiku["roles"]
    assert (haiku["input"], haiku["output"]) == (0.1, 0.5)
    assert sonnet["roles"] == ["paying: bull researcher"]
    assert rows[GOOGLE]["models"][0]["roles"] == ["paying: bear researcher"]
    (spent,) = told["profiles"]
    assert spent["paid"] and spent["tick_usd"] is None and 0 < spent["tick_most_usd"] < 1
    assert spent["day_most_usd"] <= HOURS * spent["ceiling_usd"]


def test_a_form_that_gave_way_is_told(
    backing: PageContext, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = Profile(agents=vendor_line.agents("openai_compatible", quick_think_model="qwen"))
    monkeypatch.setattr(report, "profiles_in_use", lambda *_: {"local": profile})
    visitor = client(backing, **vendor_line.environment(server))
    assert "asked in the form" not in visitor.get("/models").text
    call = a_call(
        status="garbage", model="qwen", provider="openai_compatible",
        detail="not JSON; asked in the form json_object",
    )  # fmt: skip
    backing.database.write_calls(TickKey("EURUSD", "H1", System().real_now()), [call])
    page = visitor.get("/models")
    said = "asked in the form json_object: replies to the one before could not be used"
    assert said in Page(page.text).text


def test_a_desk_that_the_ceiling_never_lets_run_is_told_with_who_runs_instead(
    backing: PageContext, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paying(monkeypatch, mode="full")
    visitor = client(backing, **vendor_line.environment(server))
    ((row,), page) = visitor.get("/api/v1/models").json["profiles"], visitor.get("/models")
    assert row["never_runs"] == "" and "never runs" not in page.text
    paying(monkeypatch, mode="full", max_api_cost_per_hour=row["tick_most_usd"] - 0.0001)
    told, page = visitor.get("/api/v1/models").json, visitor.get("/models")
    (row,) = told["profiles"]
    assert f"profile paying: {row['never_runs']}" in report.table(told)
    assert "so it never runs and the budget desk runs instead" in row["never_runs"]
    assert f"Profile paying: {row['never_runs']}." in Page(page.text).text


def test_all_who_stand_in_are_told_and_the_reviewer_where_a_model_reviews(
    backing: PageContext, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paying(
        monkeypatch,
        fallback_models=["google:gemini-3.8-flash", "openai_compatible:gpt-6-luna"],
        role_models={"reviewer": "anthropic:claude-opus-5-5"},
        memory={"review": "model"},
    )
    told = client(backing, **vendor_line.environment(server)).get("/api/v1/models").json
    roles = {(row["vendor"], one["model"]): one["roles"] for row in told["vendors"]
             for one in row["models"]}  # fmt: skip
    assert roles[GOOGLE, "gemini-3.8-flash"] == ["paying: stands in"]
    assert roles["openai_compatible", "gpt-6-luna"] == ["paying: stands in"]
    assert roles[ANTHROPIC, "claude-opus-5-5"] == ["paying: reviewer"]


def test_what_ticks_cost_is_read_from_the_ledger(
    backing: PageContext, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paying(monkeypatch)
    now = System().real_now()
    for number, tick in enumerate(("a", "b")):
        rows = [
            Booking("analysts", "technical", 1, 1, ANTHROPIC, "claude-haiku-5-5", 0.01),
            Booking("research", "bull_researcher", 1, 1, ANTHROPIC, "claude-sonnet-5-5", 0.02),
            Booking("research", "bull_researcher", 2, 1, ANTHROPIC, "claude-sonnet-5-5", 0.02),
            Booking("gate", "risk_gate", 1, 1, ANTHROPIC, "claude-haiku-5-5", 0.01),
        ]
        backing.database.book("paying", f"X|M15|{tick}", rows, at=now, until=now)
        test = Booking("test", "model_test", 1, 1, ANTHROPIC, "claude-haiku-5-5", 0.5)
        backing.database.book("paying", f"models|test|{number}", [test], at=now, until=now)
        review = Booking("review", "reviewer", 1, 1, ANTHROPIC, "claude-sonnet-5-5", 0.7)
        backing.database.book("paying", f"review|{number}", [review], at=now, until=now)
    told = client(backing, **vendor_line.environment(server)).get("/api/v1/models").json
    (spent,) = told["profiles"]
    assert (spent["ticks"], spent["day_so_far_usd"], spent["tick_usd"]) == (2, 0.12, 0.06)
    haiku = told["vendors"][0]["models"][0]
    assert (haiku["calls"], haiku["usd"]) == (6, 1.04)


@pytest.mark.journey
def test_a_test_is_told_kept_and_audited(
    backing: PageContext, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paying(monkeypatch)
    server.play({"*": READY})
    pages = client(backing, **vendor_line.environment(server))
    answer = pages.post(f"/api/v1/models/{ANTHROPIC}/test", json={}, headers=JSON)
    told = answer.json
    assert answer.status_code == 200 and told["test"]["ok"] and told["test"]["usd"] > 0
    assert told["test"]["answer"] == "ready <b>"
    (row,) = audit_chain.audit_entries(backing.database, limit=1)
    assert (row["action"], row["target"]) == ("test model", "anthropic:claude-haiku-5-5")
    page = pages.get("/models").text
    assert "✓ tested" in page and "ready &lt;b&gt;" in page
    (booked,) = ledger_table.ledger_rows(backing.database, System().real_now().replace(hour=0))
    assert (booked["stage"], booked["profile"], booked["state"]) == ("test", "paying", "settled")


@pytest.mark.journey
@pytest.mark.parametrize("model", ["claude-of-nobody", "x" * 100_000, "a\x1b[31m<b>"])
def test_only_models_that_the_card_lists_are_tested(
    backing: PageContext, server: VendorServer, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    paying(monkeypatch)
    server.play({"*": READY})
    pages = client(backing, **vendor_line.environment(server))
    address = f"/api/v1/models/{ANTHROPIC}/test"
    answer = pages.post(address, json={"model": model}, headers=JSON)
    assert answer.status_code == 409
    said = answer.json["reason"]
    assert "is not listed for anthropic: take claude-haiku-5-5, claude-sonnet-5-5" in said
    assert len(said) < 400 and said.isprintable()
    assert not server.exchanges
    assert not ledger_table.ledger_rows(backing.database, System().real_now().replace(hour=0))
    (row,) = audit_chain.audit_entries(backing.database, limit=1)
    assert len(str(row)) < 2000
    listed = pages.post(address, json={"model": "claude-sonnet-5-5"}, headers=JSON).json
    assert listed["test"]["model"] == "claude-sonnet-5-5"


@pytest.mark.journey
def test_a_failure_is_kept_with_its_remedy(
    backing: PageContext, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paying(monkeypatch)
    server.play({"*": Status(401, "bad_key")})
    pages = client(backing, **vendor_line.environment(server))
    answer = pages.post(f"/api/v1/models/{ANTHROPIC}/test", json={}, headers=JSON)
    assert answer.json["reason"] == "It failed: the key was refused."
    words = Page(pages.get("/models").text).text
    assert "✕ tested" in words and "to a key that is valid, then restart the desk" in words


def test_one_test_runs_at_a_time(backing: PageContext) -> None:
    with models._ONE:
        answer = client(backing).post(f"/api/v1/models/{GOOGLE}/test", json={}, headers=JSON)
    assert "another test is under way" in answer.json["reason"]


@pytest.mark.journey
def test_no_key_is_on_the_page_or_in_the_home(
    backing: PageContext,
    server: VendorServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    paying(monkeypatch)
    pages = client(backing, **vendor_line.environment(server))
    said = ""
    for entry in (Status(401, "bad_key", echo=True), READY):
        server.play({"*": entry})
        for vendor in VENDORS:
            said += pages.post(f"/api/v1/models/{vendor}/test", json={}, headers=JSON).text
    said += pages.get("/models").text + pages.get("/api/v1/models").text + pages.get("/audit").text
    kept = b"".join(one.read_bytes() for one in backing.home.rglob("*") if one.is_file())
    assert not [key for key in CANARIES if key in said or key.encode() in kept]
    assert not [key for key in CANARIES if key in caplog.text]


def test_a_swarm_that_is_told_of_its_past_shows_who_was_right(
    backing: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "How often the swarm was right" not in client(backing).get("/models").text
    profile = Profile(agents=AgentSettings(mode="swarm", standing="on"))
    monkeypatch.setattr(report, "profiles_in_use", lambda *_: {"swarm": profile})
    words = Page(client(backing).get("/models").text).text
    assert "No call of the swarm has come due yet." in words
    book = HitRates("M15")
    for row in range(80):
        moment = desks.START + timedelta(minutes=15 * row)
        calls = (SeatCall("macro", 1, "bars_4"),)
        book.take(PastTick(moment, float(row), "trend_up", calls))
    monkeypatch.setattr(ExpertsPast, "books", lambda _: [("BTCUSD", book)])
    told = client(backing).get("/api/v1/models").json["standing"]
    assert [(row["agent"], row["calls"], row["hit_share"]) for row in told] == [("macro", 76, 1.0)]
    page = client(backing).get("/models").text
    words = Page(page).text
    title = AGENTS["macro"].role.title
    for cell in ("BTCUSD M15", "trend up", title, "100.0 %", "0.60"):
        assert cell in words, cell
    assert expert_standing.line(told[0]).startswith(
        f"BTCUSD M15, trend up: {title} right on 100.0 % of 76 calls, weight 0.60"
    )
