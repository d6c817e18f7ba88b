"""The queue and the thirty-second screen: what a yes would do, in order, in few words, and live."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.page_reader import Page
from tests.worlds import demo_orders
from tests.worlds.demo_orders import read, text_of, visit, waiting
from tests.worlds.records import tick_record
from torra.clock import Simulated
from torra.config import Profile
from torra.dashboard.trade import approvals, proposals
from torra.dashboard.view.backing import PageContext
from torra.store import audit as audit_chain
from torra.store import ticks as claim_table
from torra.store.trade import proposals_and_alarms as execution_table
from torra.tick import approval
from torra.tick.marks import PROPOSED
from torra.trading import by_hand
from torra.words.orders import REASONS

MOST_WORDS = 150
"""Three claims of agents are among them, of up to 90 letters each."""
"""Words of parts 1 to 4 and 7: what is read within thirty seconds."""


class Fast(Simulated):
    """A desk's clock that is set by hand and would run 180 times as fast as real time."""

    accelerated = True
    real = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)

    def real_now(self) -> datetime:
        return self.real

    def real_time_of(self, moment: datetime) -> datetime:
        return self.real + (moment - self.now()) / 180


@pytest.fixture
def backing(tmp_path: Path) -> Iterator[PageContext]:
    start = demo_orders.START + demo_orders.STEPS * demo_orders.QUARTER
    made = demo_orders.build(tmp_path, clock=Fast(start + timedelta(minutes=6)))
    yield made
    made.database.close()


# --- the queue ------------------------------------------------------------------------------------


def test_the_queue_counts_down_in_real_seconds(backing: PageContext) -> None:
    page = read(backing, "/orders?stage=waiting")
    counts = [one for _, one in page.tags if "data-expiry" in one]
    assert [one["data-countdown"] for one in counts] == ["3.0", "3.0"]
    assert [row[1] for row in page.rows if "Decide" in row] == ["0:03", "0:03"]


def test_what_is_over_is_not_waiting_though_nobody_has_booked_it(backing: PageContext) -> None:
    late = waiting(backing, "EURUSD")
    assert backing.database.proposal(late).state == "WAITING"
    text = text_of(backing, "/orders?stage=waiting")
    queue, decided = text[text.index("</h2>") :].split("decided-name", 1)
    assert late not in queue
    assert late in decided
    told = visit(backing).get("/api/v1/approvals").json
    assert [row["state"] for row in told["waiting"] if row["sid"] == late] == ["EXPIRED"]
    page = read(backing, f"/orders/{late}")
    assert "◷ expired" in page.text
    assert not [a for a in page.all("fieldset") if a.get("id") != "chart-over"]


def test_an_empty_queue_says_how_to_be_asked(
    backing: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.profiles.idle.settings", lambda _: pytest.fail("the whole table"))
    for row in backing.database.proposals():
        execution_table.decide_proposal(backing.database, row.sid, "EXPIRED", "")
    assert "Nothing waits for you" in read(backing, "/orders?stage=waiting").text
    before: Mapping[str, Any] = backing.desk.setups
    judge = "A close that a judge asks for appears here"
    for agents, may_wait in (
        ({}, False),
        ({"mode": "swarm", "influence": "full"}, True),
        ({"mode": "swarm", "influence": "full", "judge_close": "off"}, False),
        ({"mode": "swarm"}, False),  # it has not earned its influence
    ):
        auto = Profile.model_validate({"execution": "auto", "agents": agents})
        setups = {n: replace(one, profile=auto) for n, one in before.items()}
        backing.desk.roster.setups = setups  # type: ignore[attr-defined]
        page = read(backing, "/orders?stage=waiting")
        assert "set execution to approve" in page.text
        assert "/profiles/default" in [one.get("href") for one in page.all("a")]
        assert ("and nothing will" in page.text, judge in page.text) == (not may_wait, may_wait)


def test_a_demo_says_how_long_a_proposal_waits() -> None:
    assert "180 times as fast: a proposal waits 2 minutes" in approvals.lives(180.0)
    assert approvals.lives(None) == approvals.lives(1.0) == ""


def test_neighbours_that_expired_are_folded(backing: PageContext) -> None:
    known = backing.database.proposals(None)[0]
    states = ("EXPIRED", "EXPIRED", "DENIED", "EXPIRED", "EXPIRED", "EXPIRED")
    rows = [
        known.model_copy(update={"state": state, "sid": f"T{n}"}) for n, state in enumerate(states)
    ]
    runs = approvals._folded(rows)
    assert [len(run) for run in runs] == [2, 1, 3]
    database = backing.database
    for row in database.proposals():
        execution_table.decide_proposal(database, row.sid, "EXPIRED", "SIGNAL_EXPIRED")
    page = read(backing, "/orders?stage=waiting")
    assert "more expired unsent" in page.text
    links = [one.get("href") for one in page.all("a")]
    assert all(f"/orders/{row.sid}" in links for row in execution_table.decided_proposals(database))


# --- a tick that proposed -------------------------------------------------------------------------


@pytest.mark.journey
def test_the_tick_of_a_proposal_finds_it(backing: PageContext) -> None:
    row = next(one for one in backing.database.proposals() if one.instance == "BTCUSD")
    record = {name: getattr(row, name) for name in ("instance", "symbol", "timeframe", "bar_time")}
    record |= {"action": "HOLD", "reason": PROPOSED, "as_of": row.created_at}
    with demo_orders.open_pages(backing).test_request_context():
        found = approvals.of_tick(tick_record(record))
        assert approvals.of_tick(tick_record({**record, "reason": "THRESHOLD"})) is None
    assert found is not None
    assert (found.sid, found.action, found.state) == (row.sid, "OPEN_BUY", "WAITING")


# --- the thirty-second screen ---------------------------------------------------------------------


def test_what_is_read_first_has_few_words(backing: PageContext) -> None:
    text = text_of(backing, f"/orders/{waiting(backing)}")
    body = text[text.index('<article class="decide"') : text.index("</article>")]
    first = body[: body.index('aria-labelledby="case-name"')] + body[body.index('class="act"') :]
    open_only = re.sub(r"<details.*?</details>", " ", first, flags=re.DOTALL)
    folded = re.sub(r"<div popover.*?</div>", " ", open_only, flags=re.DOTALL)
    seen = re.sub(r'<(\w+)[^>]*class="[^"]*quiet[^"]*".*?</\1>', " ", folded, flags=re.DOTALL)
    words = re.findall(r"\S*\w\S*", re.sub(r"<[^>]+>", " ", seen))
    assert 60 < len(words) <= MOST_WORDS, len(words)


def ladder(page: Page) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in page.rows if row[0] in ("Stop", "Entry", "Now", "Target")}


def test_the_figures_are_those_that_the_yes_would_send(backing: PageContext) -> None:
    sid = waiting(backing)
    shown = text_of(backing, f"/orders/{sid}")
    page = Page(shown)
    told = visit(backing).get(f"/api/v1/approvals/{sid}").json["now"]
    assert (told["state"], set(told["checks"].values())) == ("APPROVED", {"ok"})
    visit(backing).post(f"/api/v1/proposals/{sid}/approve", json={})
    row = backing.database.signal(sid)
    assert row is not None
    assert (told["lots"], told["levels"]["entry"]) == (row["lots"], row["entry"])
    risk = f"{abs(row['entry'] - row['stop']) * row['lots']:,.2f}"
    gain = f"{abs(row['entry'] - row['target']) * row['lots']:,.2f}"
    assert ladder(page) == {
        "Stop": [f"{row['stop']:,.2f}", "\u22121.00", "\u22122.00", f"\u2212{risk}"],
        "Entry": [f"{row['entry']:,.2f}", "—", "—", "—"],
        "Target": [f"{row['target']:,.2f}", "+2.00", "+4.00", f"+{gain}"],
    }
    assert f"Lots {row['lots']:.2f} At risk {risk} USD (" in page.text
    signed = {"down": ("\u22121.00", f"\u2212{risk}"), "up": ("+2.00", f"+{gain}")}
    for tone, texts in signed.items():
        for text in texts:
            assert f'<span data-tone="{tone}">{text}</span>' in shown


def test_looking_changes_nothing(backing: PageContext) -> None:
    def everything() -> list[Any]:
        database = backing.database
        return [
            database.proposals(None),
            database.signals(limit=500),
            claim_table.trading_states(database, 99),
            audit_chain.audit_entries(database),
        ]

    before = everything()
    for sid in [row.sid for row in backing.database.proposals(None)]:
        for address in (f"/orders/{sid}", f"/api/v1/approvals/{sid}"):
            assert visit(backing).get(address).status_code == 200
    assert everything() == before


def test_a_failed_check_disables_the_yes_and_names_its_rule(backing: PageContext) -> None:
    backing.database.set_latch("BTCUSD", "BUY")
    page = read(backing, f"/orders/{waiting(backing)}")
    assert "✓ Desk ✗ Gate: GATE_VETO ✓ Fresh" in page.text
    (button,) = [one for one in page.all("button") if one.get("id") == "approve"]
    assert "disabled" in button
    assert page.text.count("✗ DENIED: GATE_VETO") == 2


def test_it_is_read_by_the_checks_of_now(backing: PageContext) -> None:
    def patterns(sid: str) -> list[str]:
        links = [one.get("href") or "" for one in read(backing, f"/orders/{sid}").all("a")]
        return [link.partition("#pattern-")[2] for link in links if "#pattern-" in link]

    sid = waiting(backing)
    before = patterns(sid)
    assert before and "refused" not in before
    backing.database.set_latch("BTCUSD", "BUY")
    # a veto judges the opening, which breaks no rule of the desk
    assert set(patterns(sid)) == {*before} - {"clean"}
    denied = next(one for one in backing.database.proposals(None) if one.state == "DENIED")
    assert "refused" in patterns(str(denied.sid))


def test_a_price_that_ran_away_shows(backing: PageContext, monkeypatch: pytest.MonkeyPatch) -> None:
    sid = waiting(backing)
    row = backing.database.proposal(sid)
    assert row is not None
    far = row.price + 0.75 * row.atr
    monkeypatch.setattr(by_hand, "market_now", lambda *_: (far, {}))
    text = read(backing, f"/orders/{sid}").text
    assert "Drift +0.75 ATR" in text and "✗ Price: PRICE_COLLAR" in text


def test_without_a_price_nothing_is_invented(backing: PageContext) -> None:
    sid = waiting(backing, "XAUUSD")
    with backing.database.transaction():
        backing.database.connection().execute("DELETE FROM bars WHERE instance = 'XAUUSD'")
    page = read(backing, f"/orders/{sid}")
    assert "Price now —" in page.text and "✗ cannot be approved: no_price" in page.text
    assert {chip.glyph for chip in proposals.chips(None, tick_record()).values()} == {"·"}
    assert ladder(page)["Entry"][0] == "1,860.00", "as it was proposed"
    assert "who said what is not known" in page.text


def test_real_money_asks_for_the_size(backing: PageContext) -> None:
    page = read(backing, f"/orders/{waiting(backing, 'XAUUSD')}")
    (field,) = [one for one in page.all("input") if one.get("name") == "lots"]
    assert "required" in field
    assert "Real money on main: type 0.37 lots" in page.text
    page = read(backing, f"/orders/{waiting(backing)}")
    assert not [one for one in page.all("input") if one.get("name") == "lots"]


def test_who_may_only_read_gets_no_form(backing: PageContext) -> None:
    page = read(backing, f"/orders/{waiting(backing)}", scope="read")
    assert "needs a token of the scope approve" in page.text
    assert not [one for one in page.all("form") if "proposals" in one.get("action", "")]


def test_a_proposal_that_is_not_there_is_a_404(backing: PageContext) -> None:
    assert visit(backing).get("/orders/TNOBODY").status_code == 404


# --- its parts ------------------------------------------------------------------------------------


def test_every_check_stands_behind_one_chip() -> None:
    listed = [rule for rules in proposals.GROUPS.values() for rule in rules]
    asked = {*(reason.value for reason in approval.CHECKED), approval.POSITION_CHANGED}
    assert sorted(listed) == sorted(asked)
    assert set(listed) <= set(REASONS)


def test_conviction_tells_what_was_taken_off() -> None:
    panel = {
        "buy": {"raw": 0.8, "conviction": 0.6, "opposition": 0.5},
        "sell": {"raw": 0.4, "conviction": 0.16, "dissent": 0.8, "leans_against": True},
    }
    record = tick_record({"deliberation": {"panel": panel}})
    assert proposals.conviction(record, "BUY") == (0.6, "raw 0.80, \u221225% panel split")
    assert proposals.conviction(record, "SELL") == (0.16, "raw 0.40; agents against")
    assert proposals.conviction(None, "BUY")[0] is None
