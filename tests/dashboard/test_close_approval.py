"""The approval of a close: its position, its result now, what keeping it may cost, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.doubles.page_reader import Page
from tests.worlds import swarm_ticks
from tests.worlds.desk_pages import Pages
from torra.dashboard.trade import approvals
from torra.dashboard.trade.orders import reach
from torra.exhibits import figures, money
from torra.store.trade import proposals_and_alarms as execution_table
from torra.trading import hand_close


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    return swarm_ticks.asked_to_close(tmp_path)


def sid_of(pages: Pages) -> str:
    (row,) = pages.database.proposals()
    return str(row.sid)


def ladder(page: Page) -> dict[str, list[str]]:
    levels = ("Stop", "Entry", "Now", "Target")
    return {row[0]: [cell.strip() for cell in row[1:]] for row in page.rows if row[0] in levels}


def test_the_judges_reason_stands_below_the_levels_and_above_the_chart(pages: Pages) -> None:
    text = pages.text(f"/orders/{sid_of(pages)}")
    places = [text.index(part) for part in ("Close LONG", "level-target", swarm_ticks.OVER)]
    assert places == sorted(places)
    assert 'class="proposal proposal-close"' in text


def test_the_queue_and_home_show_the_stop_and_target_of_its_position(pages: Pages) -> None:
    (held,) = pages.database.positions()
    stop, target = (figures.plain(price, 2) for price in (held.stop, held.target))

    def queued() -> list[str]:
        _, row, *_ = Page(pages.text("/orders?stage=waiting")).rows
        return row

    def glance() -> str:
        with pages.app.test_request_context():
            (line,) = approvals.waiting(3)
        return line.levels

    assert {stop, target} < set(queued())
    assert glance().endswith(f", stop {stop}, target {target}")
    pages.database.close_position(
        held.signal_id, price=held.entry, time=pages.backing.now(), profit=0.0, r_multiple=0.0,
        reason="CLOSED",
    )  # fmt: skip
    assert queued().count(figures.DASH) == 2
    assert "stop" not in glance()


def test_a_position_that_is_gone_is_said_to_be(pages: Pages) -> None:
    sid, (held,) = sid_of(pages), pages.database.positions()
    pages.database.close_position(
        held.signal_id, price=held.entry, time=pages.backing.now(), profit=0.0, r_multiple=0.0,
        reason="CLOSED",
    )  # fmt: skip
    page = Page(pages.text(f"/orders/{sid}"))
    assert "The position is not held any more." in page.text
    assert not ladder(page)
    assert re.search("POSITION_CHANGED", page.text)


def test_a_decided_close_leads_to_its_position(pages: Pages) -> None:
    sid, (held,) = sid_of(pages), pages.database.positions()
    execution_table.decide_proposal(pages.database, sid, "REJECTED", "not yet")
    page = Page(pages.text(f"/orders/{sid}"))
    assert {"href": f"/orders/{held.signal_id}"} in page.all("a")


def test_without_a_price_the_headline_says_so(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.store.bars.last_close", lambda *_: None)
    with pages.app.test_request_context():
        (held,) = pages.database.positions()
        found = hand_close.quote(reach(), held)
    assert "now" not in found.ends
    assert money.close_headline(found).startswith(
        "Close LONG 0.01 BTCUSD, profit not known: no_price: no bar"
    )
    assert "near" not in money.close_outlook(found)
    rows = ladder(Page(pages.text(f"/orders/{sid_of(pages)}")))
    assert (rows["Now"][0], rows["Stop"][0]) == ("—", figures.plain(held.stop, 2))
