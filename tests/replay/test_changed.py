"""The ticks that agents changed: the list is what the journal says, and L1's trades are L1's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from click.testing import CliRunner

from agents import risk_gate
from agents.contracts import Feature
from instance_database import Database
from tests.conftest import Scale, scale_of
from tests.dashboard import test_query_plans
from tests.doubles.page_reader import Page, check_structure
from tests.doubles.visitors import open_app
from tests.worlds import desks, stores
from tests.worlds.busy_desk import VOICES, go_on, run, trading
from tests.worlds.records import tick_record
from torra.clock import iso, parse
from torra.commands.command_line import main
from torra.config import DeskSettings, Profile
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.promotion import PromotionSubject, subjects_of
from torra.desk.schedule import Desk
from torra.providers.rules.provider import RulesProvider
from torra.replay import live
from torra.replay.changed import listing, without_agents, words, worth
from torra.replay.changed.listing import Paths
from torra.replay.changed.without_agents import ChangedTick, Outcome, ScoredBars, paper_trade
from torra.replay.l1.sweep import L1Backtest
from torra.store import standings as standing_table
from torra.store.connection import TickKey
from torra.tick.marks import EXECUTION_OFF, PROPOSED
from torra.tick.tick_record import TickRecord
from torra.verdict.order_levels import levels
from torra.verdict.position_size import size

pytestmark = pytest.mark.usefixtures("scored_once")

DAYS = 140
"""Closes of M15 that a desk lives through at once, a day and a half."""

CLOSES = 4_000
"""... and at night altogether: 5,000 ticks, those of H1 included."""
SETTINGS = DeskSettings(instances=(desks.BTC,))
SUBJECT = PromotionSubject("default", trading("full"), (desks.BTC,))
SMALLER = trading("full").model_copy(
    update={
        "gate": trading("full").gate.model_copy(update={"volatility_percentile": 0.2}),
        "agents": trading("full").agents.model_copy(update={"mode": "full"}),
    }
)
OPENS = {"BUY": "OPEN_BUY", "SELL": "OPEN_SELL"}


@pytest.fixture(scope="module")
def closes(request: pytest.FixtureRequest) -> int:
    return Scale(scale_of(request.config))(CLOSES, least=DAYS)


def lived_on(desk: Desk, closes: int) -> Desk:
    """Return the desk after so many closes more, a few days at a time as its window holds them."""
    for done in range(0, closes, DAYS):
        go_on(desk, min(DAYS, closes - done))
    return desk


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, closes: int) -> Iterator[Desk]:
    """A desk that lived a day and a half with agents that count, and trades often."""
    desk = run(tmp_path_factory.mktemp("lived"), RulesProvider(), "full", DAYS)
    lived_on(desk, closes - DAYS)
    with closing(desk.database):
        yield desk


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory, closes: int) -> Iterator[Desk]:
    """The same with agents that say anything, and often veto."""
    desk = run(tmp_path_factory.mktemp("wild"), VOICES["wild"](), "full", DAYS)
    lived_on(desk, closes - DAYS)
    with closing(desk.database):
        yield desk


@pytest.fixture(scope="module")
def shrunk(tmp_path_factory: pytest.TempPathFactory, closes: int) -> Iterator[Desk]:
    """A desk of eight, whose analysts lie apart, with a gate whose rules cut most orders."""
    desk = desks.open_desk(
        tmp_path_factory.mktemp("shrunk"),
        (desks.BTC,),
        profile=SMALLER,
        provider=RulesProvider(),
    )
    desks.open_for_work(desk)
    lived_on(desk, closes)
    with closing(desk.database):
        yield desk


def every(database: Database, kinds: Any = listing.KINDS) -> list[ChangedTick]:
    """All pages of the list, by their cursor."""
    found: list[ChangedTick] = []
    before = None
    while True:
        page = listing.listed(database, SETTINGS, kinds=kinds, before=before, limit=40)
        found += page.ticks
        if page.next is None:
            return found
        before = page.next


@pytest.fixture(scope="module")
def told(lived: Desk) -> list[ChangedTick]:
    """The whole list of that desk, which no test changes."""
    return every(lived.database)


def of(told: list[ChangedTick], kinds: Any) -> list[ChangedTick]:
    return [one for one in told if set(one.changed) & set(kinds)]


# --- an independent recount ---


def records(database: Database) -> list[dict[str, Any]]:
    rows = database.connection().execute(
        "SELECT j.torra_key, j.record FROM journal j JOIN chains c USING (torra_key) "
        "ORDER BY c.sentiment_id"
    )
    return [{**json.loads(record), "key": key} for key, record in rows]


def recount(database: Database, profile: Profile) -> dict[str, tuple[set[str], float]]:
    """What agents changed of each tick, and the lots that L1 alone had opened.

    By hand from the records: no list, no risk engine. The position is followed from signal to
    signal, by the steps that the outbox noted; one that was rejected opened nothing.
    """
    leaving = {
        (sid, row["decided_at"])
        for row in database.signals(instance="BTCUSD", limit=10_000)
        for sid in ((row["closes"], row["sid"]) if row["timeframe"] == "H1" else ())
        if row["kind"] == "close" or row["after"]
    }
    signals = {
        row["sid"]: row
        for row in database.signals(instance="BTCUSD", limit=10_000)
        if row["kind"] == "open"
    }
    spec, found = profile.symbol("BTCUSD"), {}
    sent: list[str] = []
    for record in records(database):
        held = next((s for s in reversed(sent) if open_still(signals[s], record)), None)
        side = signals[held]["side"] if held else None
        l1 = l1_alone(record, side, profile, spec)
        if held and (held, record["as_of"]) in leaving and record["timeframe"] == "M15":
            # H1 closed or reversed at this very close: what was held is on its way out.
            l1 = ("HOLD", 0.0)
        kinds = set()
        if record["verdict"] != record["l1_verdict"]:
            kinds.add("verdict")
        opening = record["signal"] if (record["signal"] or {}).get("kind") == "open" else None
        if l1[0] != record["action"]:
            kinds.add("action")
        elif opening and l1[1] != opening["lots"]:
            kinds.add("size")
        if kinds:
            found[record["key"]] = (kinds, l1[1])
        if opening:
            sent.append(opening["sid"])
    return found


def open_still(signal: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    if signal["state"] == "REJECTED":
        return False
    return signal["closed_at"] is None or parse(signal["closed_at"]) >= parse(record["as_of"])


def l1_alone(
    record: Mapping[str, Any], side: str | None, profile: Profile, spec: Any
) -> tuple[str, float]:
    wanted, rule = record["l1_verdict"], record["gate"]["rule"]
    if wanted == "HOLD" or wanted == side:
        return "HOLD", 0.0
    # A latch holds on while no multiplier would let the verdict go: L1's own consensus here.
    latched = wanted in record["before"]["latches"]
    found: Any = levels(wanted, record["close"], record["atr"], spec)
    # The rules once more, on the same evidence, with no analyst that could disagree.
    seen = {row["id"]: Feature(row["id"], row["value"]) for row in record["features"]}
    alone = risk_gate.rules(seen, profile.gate, 0.0).ruling.multiplier
    lots = size(found, spec, profile.risk, alone)
    exposure = record["desk"]["exposure"]
    lost = exposure["day_loss"] > profile.risk.capital * profile.risk.daily_loss_cap_pct / 100
    often = exposure["same_side_last_hour"].get(wanted, 0)
    denied = rule["veto"] or latched or not lots or lost
    denied = denied or often >= profile.risk.max_same_openings_per_hour
    if side is None:
        return ("HOLD", 0.0) if denied else (OPENS[wanted], lots)
    assert profile.on_opposite == "reverse"
    return ("CLOSE", 0.0) if denied else ("REVERSE", lots)


@pytest.mark.parametrize(
    ("which", "profile"),
    [
        pytest.param("lived", trading("full"), id="lived"),
        pytest.param("wild", trading("full"), id="wild", marks=pytest.mark.journey),
        pytest.param("shrunk", SMALLER, id="shrunk", marks=pytest.mark.nightly),
    ],
)
def test_the_list_is_what_the_journal_says(
    which: str, profile: Profile, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue(which).database
    found = every(database)
    want = recount(database, profile)
    assert {one.key: (set(one.changed), one.l1.lots or 0.0) for one in found} == want
    assert len(records(database)) > DAYS and len(want) >= 20
    assert {kind for kinds, _ in want.values() for kind in kinds} == set(listing.KINDS)
    places = [(one.close_time, one.key) for one in found]
    assert places == sorted(places, reverse=True), "newest first, each once"


@pytest.mark.journey
def test_a_list_has_only_the_kinds_that_are_asked_for(lived: Desk, told: list[ChangedTick]) -> None:
    for kinds in (("verdict",), ("action",), ("size",), listing.USUAL):
        want = [one.key for one in of(told, kinds)]
        assert [one.key for one in every(lived.database, kinds)] == want


def test_what_was_done_is_what_the_books_say(lived: Desk, told: list[ChangedTick]) -> None:
    closed = 0
    for one in told:
        row = standing_table.decided_tick(lived.database, one.key)
        assert row is not None
        assert (one.done.verdict, one.done.action) == (row["verdict"], row["action"])
        assert one.l1.verdict == row["l1_verdict"]
        signal = json.loads(row["record"])["signal"]
        if signal is None or signal["kind"] == "close":
            assert one.done.came_to.state == "none"
            continue
        stored = lived.database.signal(signal["sid"])
        assert stored is not None and one.done.lots == stored["lots"]
        if stored["state"] == "CLOSED":
            closed += 1
            assert one.done.came_to.r == stored["r_multiple"]
            assert one.done.came_to.money == stored["profit"]
    assert closed >= 3


@pytest.mark.journey
def test_an_order_that_a_person_was_asked_about_counts_as_wanted(
    tmp_path: Path,
) -> None:
    asking = trading("full").model_copy(update={"execution": "approve"})
    desk = desks.open_desk(
        tmp_path,
        (desks.BTC,),
        profile=asking,
        provider=VOICES["wild"](),
    )
    desks.open_for_work(desk)
    go_on(desk, 60)
    with closing(desk.database):
        wanted = 0
        for one in every(desk.database):
            row = standing_table.decided_tick(desk.database, one.key)
            assert row is not None
            if one.done.reason != PROPOSED:
                assert one.done.action == "HOLD"
                continue
            action, told = (
                desk.database.connection()
                .execute("SELECT action, drafts FROM proposals WHERE torra_key = ?", (one.key,))
                .fetchone()
            )
            lots = [draft["lots"] for draft in json.loads(told) if draft["kind"] == "open"]
            assert (one.done.action, [one.done.lots]) == (action, lots)
            assert one.done.came_to.state == "none", "nobody said yes"
            assert words.did(one.done).startswith("asked you to ")
            wanted += 1
        assert wanted >= 3
        (subject,) = subjects_of([(desks.BTC, asking)])
        told = listing.paths(desk.database, subject)
        # nobody said yes: no sentence may tell of orders that went out
        assert told.money is None and told.asked >= wanted
        assert told.says.startswith(f"You were asked about {told.asked} orders")
        assert worth.sentence(told, "USD") == told.says


def test_paths_of_a_desk_that_asks_speak_of_what_was_approved() -> None:
    told = Paths("default", "", 5, 6, -0.3, 0.05, -12.4, -30.0, 5.0, asked=9)
    assert "You were asked about 9 orders" in words.of_paths(told, "USD")
    assert worth.sentence(told, "USD").startswith(
        "The bars alone +0.050 R a trade, what you approved −0.300 R: 12.40 USD less at the same "
    )
    assert "asked" not in words.of_paths(replace(told, asked=0))
    assert worth.sentence(replace(told, asked=0), "USD").startswith(
        "The bars alone +0.050 R a trade, this desk −0.300 R: the agents cost 12.40 USD at the same"
    )


def test_paths_say_which_of_their_trades_the_results_leave_out() -> None:
    warm = live.WarmedUp(400, 2)
    told = Paths("default", "", 5, 1, -0.3, 0.05, -12.4, -30.0, 5.0, ticks=500, warmed=warm)
    assert (
        "The bars alone (1 trade, on paper) +0.050 R a trade, "
        "this desk (5 trades, 2 in the warm-up) −0.300 R." in words.of_paths(told)
    )
    assert "(2 trades, all in the warm-up)" in words.of_paths(replace(told, trades=2))


# --- L1's trades ---


def test_the_trade_of_a_line_is_the_one_of_an_l1_replay_of_the_same_bars(
    lived: Desk, told: list[ChangedTick]
) -> None:
    """An L1 replay that begins at the line's own tick opens it there, and nothing before it.

    Its verdicts are computed from all bars, those of a line are the stored ones of L1. It begins
    without a score of H1, so now and then its first verdict is another one: those are told apart.
    """
    compared = other = 0
    final = live.arm_seen(lived.database, SUBJECT)
    frames = live.frames_of(lived.database, SUBJECT, final.ticks)["BTCUSD"]
    last = final.ticks[-1].close_time
    for one in told:
        if one.l1.action not in ("OPEN_BUY", "OPEN_SELL", "REVERSE"):
            continue
        close = parse(one.close_time)
        begin = close - timedelta(microseconds=1)
        trades = L1Backtest(desks.BTC, frames, begin=begin, end=last).run(SUBJECT.profile).trades
        mine = next((trade for trade in trades if trade.decided == close), None)
        if mine is None or mine.timeframe != one.timeframe or mine.reason == "END":
            continue
        if mine.side != one.l1.verdict:
            other += 1
            continue
        assert one.l1.came_to.state == "closed"
        assert one.l1.came_to.r == mine.r
        assert one.l1.came_to.money == pytest.approx(mine.profit / mine.lots * one.l1.lots)
        compared += 1
    assert compared >= 10 and other <= compared / 20


@pytest.mark.journey
def test_an_order_of_the_newest_bar_waits_and_one_of_missing_bars_is_not_known(
    lived: Desk, told: list[ChangedTick]
) -> None:
    database = lived.database
    one = next(one for one in told if one.l1.came_to.state == "closed")
    row = standing_table.decided_tick(database, one.key)
    assert row is not None
    close = parse(one.close_time)
    frames = database.load_bars

    def until(instance: str, timeframe: str, *, as_of: Any, limit: Any = None) -> Any:
        return frames(instance, timeframe, as_of=min(as_of, close), limit=limit)

    def none(*_: Any, **__: Any) -> Any:
        return frames("BTCUSD", "M15", as_of=close, limit=5)

    for bars, state in ((until, "open"), (none, "unknown"), (frames, "closed")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database, "load_bars", bars)
            came = paper_trade(ScoredBars(database), desks.BTC, trading("full"), row, 1.0)
        assert came.state == state


def test_the_paths_are_the_desk_and_an_l1_replay(lived: Desk) -> None:
    told = listing.paths(lived.database, SUBJECT)
    final = live.arm_seen(lived.database, SUBJECT)
    frames = live.frames_of(lived.database, SUBJECT, final.ticks)
    begin = final.ticks[0].close_time - timedelta(microseconds=1)
    ground = L1Backtest(desks.BTC, frames["BTCUSD"], begin=begin, end=final.ticks[-1].close_time)
    twin = [one for one in ground.run(SUBJECT.profile).trades if one.reason != "END"]
    booked = [
        row for row in lived.database.signals(("CLOSED",), limit=1000) if row["kind"] == "open"
    ]
    assert (told.trades, told.l1_trades) == (len(booked), len(twin))
    assert told.r == pytest.approx(fmean(row["r_multiple"] for row in booked))
    assert told.l1_r == pytest.approx(fmean(one.r for one in twin))
    risks = [row["profit"] / row["r_multiple"] for row in booked if abs(row["r_multiple"]) > 0.05]
    at_one_size = len(booked) * fmean(risks) * (told.r - told.l1_r)
    assert told.money == pytest.approx(at_one_size, rel=0.02)
    assert "account's currency" in words.of_paths(told)
    assert f"{told.money:+,.2f}".replace("-", "−") + " USD. " in words.of_paths(told, "USD")
    assert "account's currency" not in words.of_paths(told, "USD")


@pytest.mark.journey
def test_other_settings_and_what_a_person_closed_are_left_out_and_named(
    lived: Desk, tmp_path: Path
) -> None:
    whole = live.arm_seen(lived.database, SUBJECT)
    with closing(stores.open_database(tmp_path)) as database:
        lived.database.connection().conn.backup(database.connection().conn)
        rows = [
            row
            for row in standing_table.trades_between(database, ["BTCUSD"])
            if row["kind"] == "open"
        ]
        hand, other, odd = rows[2:5]
        with database.transaction():
            change = database.connection().execute
            change("UPDATE signals SET close_reason = 'BY_HAND' WHERE sid = ?", (hand["sid"],))
            for row, field, value in (
                (other, "profile", "of nobody"),
                (odd, "invented", "true"),
            ):
                key = TickKey(row["instance"], row["timeframe"], parse(row["bar_time"])).text
                change(
                    f"UPDATE journal SET record = json_set(record, '$.{field}', ?) "
                    "WHERE torra_key = ?", (value, key),
                )  # fmt: skip
        final = live.arm_seen(database, SUBJECT)
        left = dict.fromkeys(("by_hand", "invented_evidence", "other_settings"), 1)
        gone = {row["closed_at"] for row in (hand, other, odd)}
        assert final.trades == tuple(one for one in whole.trades if iso(one.closed) not in gone)
        assert len(final.trades) == len(whole.trades) - 3
        assert len(final.ticks) == len(whole.ticks) - 2
        assert {why: len(some) for why, some in live.exclusions(database, final).items()} == left
        says = "by hand 1, invented evidence 1, other settings 1"
        told = listing.paths(database, SUBJECT)
        assert told.trades == len(final.trades)
        assert words.of_paths(told).endswith(f" Trades left out: {says}.")
        assert f"(trades left out: {says})" in worth.sentence(told, "")
        card = live.made(database, SUBJECT)
        assert card.document is not None
        assert f"Trades left out: {says}." in card.document.warnings
        assert card.as_json()["left_out"] == left
    assert live.exclusions(lived.database, whole) == {}


def test_what_a_person_closed_is_taken_out_of_both_paths(lived: Desk, tmp_path: Path) -> None:
    """The two best trades, which without their twins made agents look dear."""
    whole = live.arm_seen(lived.database, SUBJECT)
    frames = live.frames_of(lived.database, SUBJECT, whole.ticks)
    alone = live.l1_trades(whole, SUBJECT, frames, {})
    shared = {one.decided for one in alone}
    both = [one for one in whole.trades if one.decided in shared]
    best = sorted(both, key=lambda one: one.r)[-2:]
    with closing(stores.open_database(tmp_path)) as database:
        lived.database.connection().conn.backup(database.connection().conn)
        with database.transaction():
            for one in best:
                database.connection().execute(
                    "UPDATE signals SET close_reason = 'BY_HAND' "
                    "WHERE kind = 'open' AND instance = ? AND decided_at = ?",
                    (one.instance, iso(one.decided)),
                )
        told = listing.paths(database, SUBJECT)
    own = [one for one in whole.trades if one not in best]
    twins = [one for one in alone if one.decided not in {lost.decided for lost in best}]
    assert (told.trades, told.l1_trades) == (len(own), len(twins))
    assert len(twins) == len(alone) - 2
    risk = fmean(one.profit / one.r for one in own if abs(one.r) > 0.05)
    gap = fmean(one.r for one in own) - fmean(one.r for one in twins)
    assert told.money == pytest.approx(len(own) * risk * gap, rel=0.02)


def test_l1_acts_on_the_ticks_of_the_desk_alone(lived: Desk) -> None:
    """Also where it holds what the desk opened later, and not where the desk's trade counts."""
    whole = live.arm_seen(lived.database, SUBJECT)
    frames = live.frames_of(lived.database, SUBJECT, whole.ticks)
    alone = live.l1_trades(whole, SUBJECT, frames, {})
    one = next(one for one in alone if one.closed - one.decided > timedelta(minutes=45))
    gap = replace(whole, ticks=tuple(t for t in whole.ticks if t.close_time != one.decided))
    assert one.decided not in {x.decided for x in live.l1_trades(gap, SUBJECT, frames, {})}
    late = replace(one, decided=one.decided + timedelta(minutes=15))
    flat = replace(whole, trades=())
    rest = [x for x in alone if x != one]
    assert live.l1_trades(flat, SUBJECT, frames, {"by_hand": [late]}) == rest
    assert live.l1_trades(flat, SUBJECT, frames, {"other_settings": [late]}) == alone
    own = replace(whole, trades=(one,))
    assert live.l1_trades(own, SUBJECT, frames, {"by_hand": [late]}) == alone


@pytest.mark.parametrize("gone", [("H1",), ("M15", "H1")])
def test_paths_without_bars_are_told_as_far_as_they_are_known(
    lived: Desk, tmp_path: Path, gone: tuple[str, ...]
) -> None:
    with closing(stores.open_database(tmp_path)) as database:
        lived.database.connection().conn.backup(database.connection().conn)
        with database.transaction():
            for name in gone:
                database.connection().execute("DELETE FROM bars WHERE timeframe = ?", (name,))
        told = listing.paths(database, SUBJECT)
        assert ("not known" in words.of_paths(told)) == (len(gone) == 2)


# --- nothing changed ---


@pytest.fixture(scope="module")
def shadow(tmp_path_factory: pytest.TempPathFactory, scaled: Scale) -> Iterator[Desk]:
    """A desk whose agents look on."""
    desk = run(tmp_path_factory.mktemp("shadow"), VOICES["wild"](), "shadow", scaled(40, least=12))
    with closing(desk.database):
        yield desk


def test_agents_in_shadow_changed_nothing(shadow: Desk) -> None:
    ticks = len(records(shadow.database))
    assert ticks >= 15
    page = listing.listed(shadow.database, SETTINGS, kinds=listing.KINDS, limit=50)
    assert page.ticks == () and page.next is None and page.of == ticks
    assert page.says.startswith(f"The agents changed no verdict so far, of {ticks} ticks.")
    assert "takes about 194 changed verdicts" in page.says
    said = words.table(page, (), listing.USUAL)
    assert f"no verdict or action so far, on {ticks} ticks" in said
    subject = PromotionSubject("default", trading("shadow"), (desks.BTC,))
    assert "looked on" in words.of_paths(listing.paths(shadow.database, subject))


@pytest.mark.journey
@pytest.mark.parametrize(
    "damaged",
    [
        "json_remove(record, '$.gate')",
        "json_set(record, '$.now', 'x')",
        "json_set(record, '$.desk.exposure.day_loss', 'x')",
        "'no JSON'",
    ],
)
def test_of_a_damaged_record_the_verdicts_are_shown(
    lived: Desk, tmp_path: Path, damaged: str
) -> None:
    with closing(stores.open_database(tmp_path)) as database:
        lived.database.connection().conn.backup(database.connection().conn)
        with database.transaction():
            database.connection().execute(f"UPDATE journal SET record = {damaged}")
        found = every(database)
    assert {(one.changed, one.l1.action) for one in found} == {(("verdict",), None)}
    assert words.did(found[0].l1) == words.came(found[0].l1.came_to) == "not known"


def test_a_page_looks_through_a_bounded_number_of_ticks(
    lived: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LOOKED_AT", 5)
    asked: list[str] = []
    look = standing_table.decided_tick
    monkeypatch.setattr(
        standing_table, "decided_tick", lambda self, key: (asked.append(key), look(self, key))[1]
    )
    page = listing.listed(lived.database, SETTINGS, kinds=("action",))
    assert len(asked) == 5 and page.next is not None


@pytest.mark.journey
@pytest.mark.parametrize("kinds", [("verdict",), ("action",), listing.KINDS])
def test_no_statement_of_the_list_reads_a_table_through(lived: Desk, kinds: Any) -> None:
    said: list[str] = []
    connection = lived.database.connection().conn
    connection.set_trace_callback(said.append)
    try:
        assert listing.listed(lived.database, SETTINGS, kinds=kinds, limit=200).ticks
    finally:
        connection.set_trace_callback(None)
    statements = {test_query_plans.plain(one): one for one in said}
    assert len(statements) >= 6
    wrong = {short: bad for short, one in statements.items()
             if (bad := test_query_plans.faults(lived.database, one))}  # fmt: skip
    assert not wrong


# --- command, page, API ---


@pytest.fixture
def home(lived: Desk, tmp_path: Path) -> Path:
    with closing(stores.open_database(tmp_path)) as database:
        lived.database.connection().conn.backup(database.connection().conn)
    (tmp_path / "profiles").mkdir()
    told = trading("full").model_dump_json()
    (tmp_path / "profiles" / "default.json").write_text(told, "utf-8")
    told = json.dumps({"instances": [{"symbol": "BTCUSD", "timeframes": ["M15", "H1"]}]})
    (tmp_path / "desk.json").write_text(told, "utf-8")
    return tmp_path


def called(home: Path, *more: str) -> Any:
    return CliRunner().invoke(main, ["--home", str(home), "effect", *more])


@pytest.mark.journey
def test_the_command_lists_what_the_list_has(home: Path, told: list[ChangedTick]) -> None:
    want = of(told, listing.USUAL)
    said = json.loads(called(home, "--json", "--limit", "5").stdout)
    assert [one["key"] for one in said["changed"]] == [one.key for one in want[:5]]
    assert said["needed"] == 194 and said["paths"][0]["trades"] >= 3
    on = called(home, "--json", "--instance", "btcusd", "--before", said["next"]).stdout
    assert json.loads(on)["changed"][0]["key"] == want[5].key
    said = called(home).stdout
    assert "do not add up" in said and "account's currency" in said
    assert said.count("\nBTCUSD") + said.count("UTC  BTCUSD") == min(20, len(want))


@pytest.mark.journey
@pytest.mark.parametrize(
    ("asked", "remedy"),
    [
        (("--instance", "NONE"), "it has BTCUSD"),
        (("--limit", "0"), "1<=x<=200"),
        (("--what", "colour"), "verdict"),
        (("--before", "x"), "leave it out"),
    ],
)
def test_a_mistake_is_one_line_with_its_remedy(home: Path, asked: Any, remedy: str) -> None:
    result = called(home, *asked)
    assert result.exit_code == 2 and remedy in result.stderr
    assert result.stderr.count("\n") == 1


def client_of(desk: Desk, home: Path) -> Any:
    backing = PageContext(home, desk.database, SETTINGS, desk, {})
    view = DatabaseView(desk.database, SETTINGS, desk)
    return open_app(view, backing=backing).test_client()


@pytest.mark.journey
def test_page_and_api_have_the_same_ticks(
    lived: Desk, tmp_path: Path, told: list[ChangedTick]
) -> None:
    client = client_of(lived, tmp_path)
    want = [one.key for one in of(told, listing.USUAL)]
    listed: list[str] = []
    address = "/api/v1/changed?limit=200"
    while address:
        answer = client.get(address).get_json()
        listed += [one["key"] for one in answer["changed"]]
        before = answer["next"]
        address = f"/api/v1/changed?limit=200&before={before}" if before else ""
    assert listed == want
    moved = client.get("/changed?what=size&instance=BTCUSD")
    assert (moved.status_code, moved.location) == (303, "/history?only=changed&instance=BTCUSD")
    page = Page(client.get(f"{moved.location}&limit=200").get_data(as_text=True))
    check_structure(page)
    shown = [tick for tick in told if "verdict" in tick.changed]
    rows = [row for row in page.all("tr") if "data-row" in row]
    assert len(rows) == len(shown) and shown
    assert all(words.came(tick.done.came_to, "USD") in page.text for tick in shown)
    assert "do not add up" in page.text and "changed verdicts" in page.text
    overview = Page(client.get("/").get_data(as_text=True))
    assert "/history?only=changed" in [link.get("href") for link in overview.all("a")]


@pytest.mark.journey
@pytest.mark.parametrize("query", ["what=colour", "limit=0", "limit=x", "before=x", "instance=NO"])
def test_words_that_mean_nothing_are_refused(lived: Desk, tmp_path: Path, query: str) -> None:
    client = client_of(lived, tmp_path)
    answer = client.get(f"/api/v1/changed?{query}")
    assert answer.status_code == 400 and answer.get_json()["error"]


def test_why_a_course_holds_is_said_in_words() -> None:
    assert words.did(Outcome("HOLD", "HOLD", "THRESHOLD")) == "hold, no threshold is reached"
    assert words.did(Outcome("BUY", "HOLD", "SIZE_ZERO")) == (
        "hold, its size is below the smallest order"
    )
    assert words.did(Outcome("BUY", "HOLD", "OF_ANOTHER_VERSION")) == "hold, OF_ANOTHER_VERSION"
    assert words.did(Outcome("BUY", "OPEN_BUY", lots=0.1)) == "buy 0.10 lots"
    asked = Outcome("SELL", "OPEN_SELL", PROPOSED, 0.04)
    assert words.did(asked) == "asked you to sell 0.04 lots"
    off = Outcome("SELL", "CLOSE", EXECUTION_OFF)
    assert words.did(off) == "wanted to close, not sent"


# --- a swarm --------------------------------------------------------------------------------------

RULED = {"multiplier": 0.4, "veto": True, "reasons": ["JUDGE_HOLD", "EXHAUSTION"]}
SWARM: dict[str, Any] = {
    "regime": {
        "code": "quiet", "reader": "volatile", "budget": 0.4, "first": "", "disputed": False,
    },
    "trust": {}, "budget": 0.4, "storm": 1.0, "judgement": None, "thin": False,
    "board": {
        "stands": [], "abstained": [], "lean": 0.0, "dominant": "", "surest": "", "note": "",
        "agreed": {}, "conflicts": [], "key_uncertainty": "",
    },
}  # fmt: skip


def a_record(swarm: dict[str, Any] | None = None, **gate: Any) -> TickRecord:
    told = {"multiplier": 0.4, "veto": True, "rule": RULED, **gate}
    return tick_record(
        gate=told, close=60_000.0, atr=300.0, verdict="BUY", deliberation={"swarm": swarm}
    )


@pytest.mark.parametrize(
    ("storm", "gate", "left", "sides"),
    [
        (1.0, {}, 0.4 * 0.6, ()),
        (0.8, {}, 0.4 * 0.75, ()),
        (0.5, {}, 0.4, ()),
        (0.0, {}, 0.4, ()),
        (1.0, {"veto_sides": ["BUY"]}, 0.4 * 0.6, ()),
        (
            1.0,
            {"veto_sides": ["BUY"], "rule": {**RULED, "reasons": ["CROWDED"], "veto": False}},
            0.4 * 0.6,
            ("BUY",),
        ),
    ],
)
def test_rows_and_the_codes_budget_are_in_the_path_of_l1_and_no_agents_word(
    storm: float, gate: dict[str, Any], left: float, sides: tuple[str, ...]
) -> None:
    """A quiet market allows 0.6 by code; its reader's 0.4 and the judge's hold are words."""
    alone = without_agents._rules(a_record({**SWARM, "storm": storm}, **gate), trading("full"))
    assert alone.multiplier == pytest.approx(left)
    assert (alone.veto, alone.veto_sides) == (False, sides)
    other = without_agents._rules(a_record(), trading("full"))
    assert (other.multiplier, other.veto) == (0.4, True)


def test_an_order_of_a_swarm_that_was_only_wanted_has_its_budget() -> None:
    records = a_record({**SWARM, "budget": 0.5}), a_record()
    less, whole = (without_agents._lots(record, trading("full")) for record in records)
    assert less and whole and less == pytest.approx(whole / 2, abs=0.01)
