"""The page Trades and its API: sums as `torra results` has them, filters, cursors, and the file."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from tests.worlds import demo_orders
from torra.dashboard.trade.trades import AT_ONCE, NOTED
from torra.dashboard.view.backing import PageContext
from torra.store.trade import signals as signal_table


def client(traded: PageContext) -> Any:
    return demo_orders.visit(traded, "read")


def trades(traded: PageContext, query: str = "") -> dict[str, Any]:
    answer = client(traded).get(f"/api/v1/trades?{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json
    return found


def closed(traded: PageContext) -> list[dict[str, Any]]:
    return [row.as_json() for row in signal_table.closed_trades(traded.database, limit=1_000)]


def test_the_api_and_the_command_have_one_document(traded: PageContext) -> None:
    told = client(traded).get("/api/v1/money").json
    assert told == json.loads(json.dumps(traded.money().as_json()))
    assert sum(
        one["whole"]["trades"] + one["warm_up"]["trades"] for one in told["accounts"]
    ) == len(closed(traded))


@pytest.mark.journey
def test_each_account_has_its_line_over_the_period_that_is_asked_for(traded: PageContext) -> None:
    for query, period in (("", "all"), ("?line=week", "week"), ("?line=never", "all")):
        told = client(traded).get(f"/orders{query or '?'}&stage=closed").text
        assert 'id="line-1-title">Account on paper: Results added up<' in told
        assert f"<strong>{period}</strong>" in told
        found = client(traded).get(f"/api/v1/money/line{query}").json
        assert found["period"] == period
        whole = {one.account: one.whole.profit for one in traded.money().accounts}
        for account, points in found["accounts"].items():
            assert len(points) == 120
            assert points[-1]["closed"] == pytest.approx(whole[account], abs=0.005)


def test_the_list_goes_on_by_its_cursor_and_misses_none(traded: PageContext) -> None:
    every = [row["sid"] for row in closed(traded)]
    found, query = [], "limit=1"
    while True:
        told = trades(traded, query)
        found += [row["sid"] for row in told["trades"]]
        if told["next"] is None:
            break
        query = f"limit=1&before={told['next']}"
    assert found == every


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("query", "keeps"),
    [
        ("side=BUY", lambda row: row["side"] == "BUY"),
        ("result=won", lambda row: (row["profit"] or 0) > 0),
        ("result=lost", lambda row: (row["profit"] or 0) < 0),
        ("reason=STOPPED", lambda row: row["close_reason"] == "STOPPED"),
        ("instance=nobody", lambda _: False),
        ("from=2000-01-01&to=2999-01-01", lambda _: True),
        ("to=2000-01-01", lambda _: False),
        ("side=SELL&result=lost", lambda row: row["side"] == "SELL" and (row["profit"] or 0) < 0),
    ],
)
def test_filters_keep_what_they_say(traded: PageContext, query: str, keeps: Any) -> None:
    want = [row["sid"] for row in closed(traded) if keeps(row)]
    assert [row["sid"] for row in trades(traded, query)["trades"]] == want
    assert client(traded).get(f"/orders?stage=closed&{query}").status_code == 200


def test_what_is_listed_can_be_filtered_for(traded: PageContext) -> None:
    with traded.database.transaction():
        traded.database.connection().conn.execute(
            "UPDATE signals SET close_reason = NULL WHERE sid = ?", (closed(traded)[0]["sid"],)
        )
    [row] = trades(traded, "reason=unknown")["trades"]
    assert row["sid"] == closed(traded)[0]["sid"]
    told = client(traded).get("/orders?stage=closed&instance=GONE&reason=unknown").text
    assert "<option selected>GONE</option>" in told and "<option selected>unknown</option>" in told
    assert "No closed trade is like that" in told


def test_a_day_is_meant_from_its_first_to_its_last_second(traded: PageContext) -> None:
    newest = closed(traded)[0]
    day = newest["closed_at"][:10]
    found = [row["sid"] for row in trades(traded, f"from={day}&to={day}")["trades"]]
    assert found == [row["sid"] for row in closed(traded) if row["closed_at"][:10] == day]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("side=UP", "side is one of BUY, SELL, not UP"),
        ("result=good", "result is one of won, lost"),
        ("from=yesterday", "from is a UTC day, such as 2026-05-01"),
        ("to=2026-13-01", "to is a UTC day"),
        ("limit=0", "limit is 1 to 200"),
        ("limit=9999999", "limit is 1 to 200"),
        ("before=7", "before is the `next` of an earlier answer"),
        ("before=a|b", "before is the `next`"),
        ("before=|4", "before is the `next`"),
    ],
)
def test_words_that_mean_nothing_are_refused(traded: PageContext, query: str, says: str) -> None:
    answer = client(traded).get(f"/api/v1/trades?{query}")
    assert answer.status_code == 400 and says in answer.json["error"]
    assert client(traded).get(f"/orders?stage=closed&{query}").status_code == 400


def test_the_file_has_every_trade_of_the_filter(
    traded: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.dashboard.trade.trades.AT_ONCE", 1)
    assert AT_ONCE > 100
    told = client(traded).get("/trades.csv").text
    rows = list(csv.DictReader(io.StringIO(told)))
    assert [row["sid"] for row in rows] == [row["sid"] for row in closed(traded)]
    assert tuple(rows[0]) == NOTED
    only = client(traded).get("/trades.csv?result=won").text
    assert len(list(csv.DictReader(io.StringIO(only)))) == sum(
        (row["profit"] or 0) > 0 for row in closed(traded)
    )
