"""The page Orders by stage, the page of one order, and the addresses that lead to them."""

from __future__ import annotations

import re

import pytest

from tests.worlds.demo_orders import read, visit, waiting
from tests.worlds.stores import closing
from torra.dashboard.trade import approvals
from torra.dashboard.trade.order_pages import STAGES
from torra.dashboard.view.backing import PageContext
from torra.verdict.signal_states import UNDER_WAY, UNEXECUTED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/approvals", "/orders?stage=waiting"),
        ("/approvals/T1", "/orders/T1"),
        ("/signals", "/orders?stage=all"),
        ("/signals?state=FILLED&before=7", "/orders?stage=all&state=FILLED&before=7"),
        ("/signals/T1", "/orders/T1"),
        ("/trades?tag=late&line=week", "/orders?stage=closed&tag=late&line=week"),
        ("/trades?_external=1&_scheme=x", "/orders?stage=closed&_external=1&_scheme=x"),
    ],
)
def test_an_old_address_leads_to_the_same_orders(old: str, new: str, backing: PageContext) -> None:
    answer = visit(backing).get(old)
    assert (answer.status_code, answer.headers["Location"]) == (303, new)


def test_a_tab_lists_the_orders_of_its_stage(backing: PageContext) -> None:
    def listed(stage: str) -> set[str]:
        links = [one.get("href", "") for one in read(backing, f"/orders?stage={stage}").all("a")]
        return set(re.findall(r"/orders/(T\w+)", " ".join(links)))

    rows = backing.database.signals(limit=500)
    by_state = {row["sid"]: row["state"] for row in rows}
    under_way = {sid for sid, state in by_state.items() if state in ("WAITING", *UNDER_WAY)}
    unexecuted = {sid for sid, state in by_state.items() if state in UNEXECUTED}
    proposals = {row.sid: row.state for row in backing.database.proposals(None)}
    assert listed("waiting") >= {sid for sid, state in proposals.items() if state == "WAITING"}
    assert listed("working") == under_way
    assert listed("open") >= {held.signal_id for held in backing.database.positions()}
    assert listed("closed") == {sid for sid, state in by_state.items() if state == "CLOSED"}
    approved = {sid for sid, state in proposals.items() if state == "APPROVED"}
    refused = listed("refused")
    assert unexecuted <= refused and not refused & (approved | under_way - unexecuted)
    assert {sid for sid, state in proposals.items() if state == "REJECTED"} <= refused
    assert visit(backing).get("/orders?stage=never").status_code == 400


def test_each_tab_is_one_step_away_and_the_menu_counts_what_waits(backing: PageContext) -> None:
    page = read(backing, "/orders")
    links = [one.get("href") for one in page.all("a")]
    assert {f"/orders?stage={stage}" for stage in STAGES} <= set(links)
    counts = [one for _, one in page.tags if one.get("data-part") == "waiting"]
    assert counts and all("hidden" not in one for one in counts)
    assert f"/orders/{waiting(backing)}" in links, "what waits stands on the first tab too"


def test_an_order_tells_its_stages_in_their_order(backing: PageContext) -> None:
    sid = waiting(backing)
    assert "Its stages" not in read(backing, f"/orders/{sid}").text, "a person decides first"
    visit(backing).post(f"/api/v1/proposals/{sid}/approve", json={})
    text = read(backing, f"/orders/{sid}").text
    text = text[text.index("Its stages") :]
    names = ("Proposed", "Decided", "a person approved it", "Sent", "Filled", "Closed", "Result")
    places = [text.index(name) for name in names]
    assert places == sorted(places)


def test_a_position_is_closed_on_the_page_of_its_order(backing: PageContext) -> None:
    held = next(item for item in backing.database.positions() if item.instance == "EURUSD")

    def actions(scope: str) -> list[str]:
        forms = read(backing, f"/orders/{held.signal_id}", scope).all("form")
        return [one["action"] for one in forms if "positions" in one.get("action", "")]

    address = f"/api/v1/positions/{held.signal_id}/close"
    assert address in actions("approve") and actions("read") == []
    backing.database.set_trading_state("HALTED", "a look")
    assert actions("approve") == []
    text = read(backing, f"/orders/{held.signal_id}", "approve").text
    assert "Nothing can be closed from here while trading is halted" in text


def test_a_refused_proposal_stands_on_its_tabs_however_many_were_approved(
    backing: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = backing.database
    refused = {
        row.sid
        for row in database.proposals(None)
        if row.state in ("REJECTED", "EXPIRED", "DENIED")
    }
    assert refused
    for number in range(approvals.DECIDED_SHOWN):
        row = database.row("SELECT * FROM proposals WHERE state = 'APPROVED'")
        assert row is not None
        database.upsert("proposals", {**row, "sid": f"TYES{number}", "expires": "2099-01-01"})
    for stage in ("all", "refused"):
        page = read(backing, f"/orders?stage={stage}")
        links = {one.get("href") for one in page.all("a")}
        assert {f"/orders/{sid}" for sid in refused} <= links, stage
        assert "/orders/TYES0" not in links


def test_a_state_of_another_stage_narrows_neither_list_nor_file(backing: PageContext) -> None:
    links = [
        one.get("href", "") for one in read(backing, "/orders?stage=refused&state=CLOSED").all("a")
    ]
    assert not [one for one in links if one.startswith("/signals.csv")]


def test_a_moved_stop_is_no_close(backing: PageContext) -> None:
    held = next(item for item in backing.database.positions() if item.instance == "EURUSD")
    row = {**closing("TMOVE", held.signal_id, instance="EURUSD"), "kind": "modify"}
    backing.database.enqueue_signal(row)
    text = read(backing, "/orders/TMOVE").text
    assert ", a moved stop (modify)" in text and ", a close" not in text
