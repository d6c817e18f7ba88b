"""`torra close`, `torra flatten` and their pages' functions: one close, never two, on record."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import signal_bridge
from instance_database import open_home
from tests.cases import cases
from tests.worlds.channels import EUR
from tests.worlds.hands import (
    LEVELS,
    MINUTES,
    SOMEBODY,
    Market,
    held_at,
    live_home,
    torra,
)
from tests.worlds.homes import desk_file
from tests.worlds.stores import opening
from torra.clock import System
from torra.commands.command_line import main
from torra.config import Instance, Profile
from torra.errors import ConfigError
from torra.store import audit as audit_chain
from torra.store.connection import TickKey
from torra.store.trade import signals as signal_table
from torra.tick import approval
from torra.trading import commanding, hand_close
from torra.trading.commanding import CommandResult
from torra.verdict import risk_engine
from torra.verdict.risk_engine import Account, Decision, SignalDraft
from torra.verdict.signal_states import UNEXECUTED

# --- at a broker ----------------------------------------------------------------------------------


def test_a_position_is_closed_at_the_broker_and_its_end_is_by_hand(market: Market) -> None:
    sid = market.fill()
    assert (market.state(sid), market.held()) == ("FILLED", 1)
    (left,) = market.close(sid)
    assert left["step"] == "CLOSING"
    market.compare()
    assert (market.state(sid), market.state(left["signal"])) == ("CLOSED", "FILLED")
    row = market.row(sid)
    assert (row["close_reason"], market.held()) == ("BY_HAND", 0)
    assert market.stage.orders_of(left["signal"]) == 1
    (entry,) = audit_chain.audit_entries(market.database, limit=1)
    assert (entry["actor"], entry["action"], entry["outcome"]) == ("somebody", "close", "done")


def test_the_same_word_twice_is_one_close(market: Market) -> None:
    sid = market.fill()
    market.close()
    with pytest.raises(ConfigError, match="is being closed already"):
        market.close(sid)
    market.compare()
    assert len(market.database.closes_of("EURUSD", sid)) == 1
    with pytest.raises(ConfigError, match="is CLOSED: there is nothing to close"):
        market.close(sid)
    with pytest.raises(ConfigError, match="holds nothing"):
        market.close()


def test_a_close_that_ended_without_one_can_be_said_again(market: Market) -> None:
    sid = market.fill()
    first = market.close()[0]["signal"]
    market.look(40, advisor=False, seconds=5.0)
    assert market.state(first) == "EXPIRED"
    market.look(8, seconds=2.5)
    second = market.close()[0]["signal"]
    assert second != first
    market.compare()
    assert market.state(sid) == "CLOSED"


def test_an_opening_that_is_not_executed_is_taken_back(market: Market) -> None:
    """The Advisor sleeps: the file comes back out of the inbox, and the close has nothing to do."""
    sid = market.open()
    market.look(2, advisor=False)
    assert market.state(sid) == "PUBLISHED"
    (left,) = market.close()
    assert (left["step"], market.state(left["signal"])) == ("TAKING_BACK", "WAITING")
    market.look(3, advisor=False)
    assert (market.state(sid), market.state(left["signal"])) == ("CANCELLED", "CANCELLED")
    market.look(8, seconds=2.5)
    assert market.stage.ea.deals() == []


@pytest.mark.parametrize("part", [None, 0.2])
def test_where_the_broker_was_quicker_the_close_follows(part: float | None, market: Market) -> None:
    """It is of what was filled, be that a part."""
    sid = market.open(0.4)
    market.look(1, advisor=False)
    if part:
        market.stage.ea.fail(10010, 1, part)
    market.stage.advise()
    (left,) = market.close()
    assert (left["step"], market.held()) == ("TAKING_BACK", 1)
    market.compare()
    first, second = market.database.closes_of("EURUSD", sid)
    assert (first["sid"], first["state"]) == (left["signal"], "CANCELLED")
    assert (second["state"], second["lots"]) == ("FILLED", part or 0.4)
    assert (market.state(sid), market.held()) == ("CLOSED", 0)


def test_an_opening_that_waits_for_another_close_goes_with_the_position(market: Market) -> None:
    """To be flat is what is meant: what reverses the position must not open after it."""
    sid = market.fill()
    market.decide(SignalDraft("close", "SELL", 0.1, closes=sid))
    opening = market.decide(SignalDraft("open", "SELL", 0.1, LEVELS, closes=sid))
    assert market.state(opening) == "WAITING"
    steps = {left["opening"]: left["step"] for left in market.close(sid)}
    assert steps == {opening: "TAKEN_BACK", sid: "ALREADY"}
    market.compare()
    assert (market.state(sid), market.state(opening)) == ("CLOSED", "CANCELLED")
    row = market.row(sid)
    assert (market.held(), row["close_reason"]) == (0, "CLOSED")


def test_halted_nothing_goes_and_the_refusal_names_the_way(market: Market) -> None:
    sid = market.fill()
    market.switch.halt("a test")
    for act in (
        market.close,
        lambda: hand_close.flatten(market.hand, SOMEBODY),
        lambda: hand_close.stop(market.hand, SOMEBODY, sid, price=1.095),
    ):
        with pytest.raises(ConfigError, match=r"trading is HALTED.*`torra resume --reduce`"):
            act()
    assert market.database.closes_of("EURUSD", sid) == []
    market.switch.resume("look", lambda _: None, reduce=True)
    assert market.database.trading_state() == "REDUCING"
    market.close()
    market.compare()
    assert market.state(sid) == "CLOSED"


def test_a_close_that_did_not_close_is_an_alarm_until_the_position_is_gone(
    market: Market,
) -> None:
    """A verdict says itself again at the next bar; a person believes that it is done."""
    sid = market.fill()
    market.close()
    market.look(40, advisor=False, seconds=5.0)
    (alarm,) = market.database.alarms()
    assert (alarm.kind, alarm.key) == ("HAND_CLOSE", f"HAND_CLOSE {sid}")
    assert "ended EXPIRED, and the position is still open" in alarm.detail
    market.look(8, seconds=2.5)
    market.close()
    market.look(5)
    assert market.database.alarms() == [], "another close is under way"
    market.compare()
    assert market.state(sid) == "CLOSED"
    assert market.database.alarms() == []


def test_a_close_waits_for_an_opening_whose_end_comes_late(market: Market) -> None:
    """Torra was away when the broker answered: what it was told stands all the same."""
    sid = market.open()
    market.look(1, advisor=False)
    market.stage.advise()
    market.close()
    market.clock.pass_time(500)
    market.compare()
    assert (market.state(sid), market.held()) == ("CLOSED", 0)


def test_after_a_close_in_part_the_next_one_is_of_the_rest(market: Market) -> None:
    """Also before the books show the part."""
    market.fill(0.4)
    market.stage.ea.fail(10010, 1, 0.2)
    (first,) = market.close()
    market.look(3)
    assert market.state(first["signal"]) == "PARTIAL"
    (second,) = market.close()
    row = market.row(second["signal"])
    assert row["lots"] == 0.2
    market.compare()
    assert market.held() == 0


# --- many hands at once ---------------------------------------------------------------------------

CLOSING_PROFILE = Profile(on_opposite="close")


def reviewed(market: Market) -> risk_engine.Action:
    """Return what a verdict against the position comes to now."""
    decision = Decision(
        verdict="SELL", price=1.1, atr=0.005, multiplier=1.0, veto=False, opening_stands=True
    )
    exposure = market.database.exposure("EURUSD", "M15", as_of=market.clock.now())
    held, spec = market.database.position("EURUSD"), CLOSING_PROFILE.symbol("EURUSD")
    return risk_engine.review(decision, held, Account(**exposure), spec, CLOSING_PROFILE)


def verdict(market: Market) -> None:
    with market.database.transaction():
        for draft in reviewed(market).drafts:
            market.decide(draft)


def proposed(market: Market) -> str:
    """Propose to a person what the verdict asks for."""
    now = market.clock.now()
    decision = Decision(
        verdict="SELL", price=1.1, atr=0.005, multiplier=1.0, veto=False, opening_stands=True
    )
    return approval.propose(
        market.database, reviewed(market), decision,
        key=TickKey("EURUSD", "M15", now - MINUTES + timedelta(seconds=1)), symbol="EURUSD",
        created=now, expires=now + MINUTES,
    )  # fmt: skip


def approve(market: Market, sid: str) -> None:
    at = approval.ApprovalContext(
        instance=EUR, profile=CLOSING_PROFILE, now=market.clock.now(), price=1.1, halted=""
    )
    approval.approve(market.database, sid, at, life=timedelta(seconds=180))


def race(market: Market, dice: random.Random, seen: Counter[str]) -> None:
    """Let a hand, a verdict, an approval and the broker's stop end one position at once."""
    sid = market.fill()
    assert (market.state(sid), market.held()) == ("FILLED", 1)
    proposal = proposed(market)
    actors: dict[str, Callable[[], object]] = {
        "hand": market.close,
        "verdict": lambda: verdict(market),
        "approval": lambda: approve(market, proposal),
    }
    late = {name: dice.choice((0.0, 0.0, 0.002, 0.006)) for name in actors}
    stopped = dice.choice((True, False))

    def act(name: str) -> None:
        ready.wait()
        time.sleep(late[name])
        with suppress(ConfigError):
            actors[name]()

    ready = threading.Barrier(len(actors) + 1)
    threads = [threading.Thread(target=act, args=(name,)) for name in actors]
    for thread in threads:
        thread.start()
    ready.wait()
    for _ in range(6):
        market.look(bid=dice.choice((1.1, 1.08)) if stopped else 1.1)
    for thread in threads:
        thread.join()
    market.compare()
    account_for(market, sid, seen)


def account_for(market: Market, sid: str, seen: Counter[str]) -> None:
    """Compare the end of a position with the broker's books: it ended once, as they say."""
    row, closes = market.row(sid), market.database.closes_of("EURUSD", sid)
    outs = [
        one for one in market.stage.ea.deals(entry="out") if str(one["position"]) == row["ticket"]
    ]
    assert [row["state"], len(outs), market.held()] == ["CLOSED", 1, 0]
    assert row["profit"] == pytest.approx(outs[0]["profit"], abs=0.005)
    states = Counter(close["state"] for close in closes)
    assert states["FILLED"] == (row["close_reason"] != "STOPPED"), states
    assert set(states) <= {"FILLED", *UNEXECUTED}, states
    winner = next((one["authority"] for one in closes if one["state"] == "FILLED"), "stop")
    assert (row["close_reason"] == "BY_HAND") == (winner == "person")
    seen[winner] += 1


def test_of_hand_verdict_approval_and_stop_one_wins(
    market: Market, scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    dice, seen = random.Random(30), Counter[str]()
    for _ in range(scaled(500, least=4)):
        race(market, dice, seen)
    assert set(seen) <= {"person", "tick", "approval", "stop"}
    record_property("seen", ", ".join(f"{count} {name}" for name, count in seen.most_common()))


# --- on paper -------------------------------------------------------------------------------------


def filled(paper: Market) -> str:
    """An opening that the next bar has filled."""
    sid = paper.open()
    paper.look()
    paper.bar()
    paper.bar()
    return sid


def test_on_paper_it_fills_at_the_open_of_the_next_bar(paper: Market) -> None:
    sid = filled(paper)
    assert paper.state(sid) == "FILLED"
    paper.look()
    (left,) = paper.close()
    assert left["step"] == "CLOSING"
    assert paper.state(left["signal"]) == "PUBLISHED", "at once: it does not wait for the desk"
    paper.look()
    paper.bar(1.105)
    assert paper.state(sid) == "FILLED", "that bar began before the word was given"
    paper.bar(1.106)
    row = paper.row(sid)
    assert (row["state"], row["close_reason"], row["close_price"]) == ("CLOSED", "BY_HAND", 1.106)
    (closed,) = signal_table.closed_trades(paper.database, "EURUSD")
    assert json.loads(closed.thesis)["reason"] == "BY_HAND"


def test_on_paper_an_opening_is_taken_back_at_once(paper: Market) -> None:
    sid = paper.open()
    paper.look()
    (left,) = paper.close()
    assert (left["step"], paper.state(sid)) == ("TAKEN_BACK", "CANCELLED")
    assert left["signal"] == ""


def test_a_stop_that_is_hit_first_leaves_the_close_nothing(paper: Market) -> None:
    sid = filled(paper)
    paper.look()
    (left,) = paper.close()
    paper.look()
    paper.bar(1.08)
    paper.bar(1.08)
    row = paper.row(sid)
    assert (row["state"], row["close_reason"]) == ("CLOSED", "STOPPED")
    close = paper.row(left["signal"])
    assert (close["state"], close["detail"]) == ("REJECTED", "no_position")


def test_a_word_is_never_filled_in_the_past(paper: Market) -> None:
    """Times are kept in whole seconds: half a second after an open is not that open."""
    filled(paper)
    paper.clock.set(paper.clock.now().replace(microsecond=500_000))
    (left,) = paper.close()
    row = paper.row(left["signal"])
    assert row["decided_at"] > paper.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


# --- all of them ----------------------------------------------------------------------------------


def test_flatten_tells_what_cannot_be_closed_from_here(market: Market) -> None:
    market.fill()
    other = Instance(name="OTHER", symbol="EURUSD", timeframes=("M15",), feed="store")
    with market.database.transaction():
        now = market.clock.now()
        foreign = signal_bridge.write_signal(
            market.database, SignalDraft("open", "BUY", 0.1, LEVELS), instance=other.id,
            symbol="EURUSD", timeframe="M15", bar_time=now, created=now, expires=now + MINUTES,
            authority="tick", bridge="mt5_direct old",
        )  # fmt: skip
    done = hand_close.flatten(market.hand, SOMEBODY)
    found = {one["instance"]: one for one in done.document["positions"]}
    assert found["EURUSD"]["step"] == "CLOSING"
    assert found["OTHER"]["step"] == "REFUSED"
    assert "mt5_direct old" in done.refused
    assert market.state(foreign["sid"]) == "PENDING"
    text = hand_close.closed_lines(done.document)
    assert "do it there" in text
    assert "No desk runs" in text


# --- as a person types them -----------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return live_home(tmp_path)


def test_real_money_wants_the_word_or_yes(home: Path) -> None:
    sid = held_at(home)
    for words, word in ((("close", sid), "close"), (("flatten",), "flatten")):
        refused = torra(home, *words)
        assert refused.exit_code == 2
        assert f"EURUSD: real money, so nothing was done; type {word}" in refused.output
    told = torra(home, "close", sid, "--yes")
    assert told.exit_code == 0
    assert "EURUSD long 0.1 lots: a close is on its way to the broker (T" in told.output
    assert "No desk runs on this home" in told.output
    again = torra(home, "close", sid, "--yes")
    assert again.exit_code == 2
    assert "is being closed already" in again.output
    database = open_home(home)
    outcomes = [row["outcome"] for row in audit_chain.audit_entries(database, limit=9)]
    database.close()
    kinds = [outcome.split(":")[0] for outcome in outcomes]
    assert kinds == ["failed", "done", "failed", "failed"], "the word that was not given, too"


@pytest.fixture
def on_paper(tmp_path: Path) -> Path:
    """A home that holds 0.1 lots of the euro on paper, bought at 1.1, at a bid of 1.105."""
    desk_file(tmp_path, {"symbol": "EURUSD", "feed": "store"})
    database, now = open_home(tmp_path), System().now()
    database.enqueue_signal(
        opening("TPAPER", instance="EURUSD", symbol="EURUSD", entry=1.1, stop=1.09, target=1.12,
                lots=0.1, decided_at=now - MINUTES, expires=now)
    )  # fmt: skip
    filled = {"price": 1.1, "opened_at": now - MINUTES}
    for state in ("PUBLISHED", "FILLED"):
        database.move_signal("TPAPER", state, fields=filled if state == "FILLED" else {})
    index = pd.DatetimeIndex([now.replace(minute=0, second=0, microsecond=0) - 2 * MINUTES])
    names = ["open", "high", "low", "close", "volume"]
    database.store_bars("EURUSD", "M15", pd.DataFrame([[1.105] * 4 + [1.0]], index, names))
    database.close()
    return tmp_path


TOLD = (
    "Close LONG 0.1 EURUSD: +50.00 USD (+0.50 R) now. It fills at the open of the next bar, near "
    "1.10500. Kept, its stop 1.09000 brings \N{MINUS SIGN}100.00 USD (\N{MINUS SIGN}1.00 R); a gap "
    "may cost more."
)


def test_a_close_says_what_it_brings_and_what_keeping_may_cost(on_paper: Path) -> None:
    told = torra(on_paper, "close", "EURUSD", "--json")
    assert told.stderr.strip() == TOLD
    assert json.loads(told.stdout)["positions"][0]["step"] == "CLOSING"


def test_an_order_that_is_out_is_said_to_be_taken_back(home: Path) -> None:
    database = open_home(home)
    database.enqueue_signal(opening("TOUT", instance="EURUSD", symbol="EURUSD", bridge="fake"))
    database.close()
    (line,) = torra(home, "flatten").stderr.splitlines()[:1]
    assert line.endswith("not filled yet. It is taken back if it is not executed yet.")


@pytest.mark.parametrize("typed", [None, "", "no", "flatten", "yes=True"])
def test_flatten_asks(on_paper: Path, monkeypatch: pytest.MonkeyPatch, typed: str | None) -> None:
    """None: nobody sits at a terminal; yes=True: the option --yes."""
    monkeypatch.setattr("torra.commands.trading.on_terminal", lambda: typed is not None)
    words = ["--home", str(on_paper), "flatten", *(["--yes"] if typed == "yes=True" else [])]
    told = CliRunner().invoke(main, words, input=f"{typed}\n")
    with closing(open_home(on_paper)) as database:
        closes = database.closes_of("EURUSD", "TPAPER")
    if typed in ("flatten", "yes=True"):
        assert (told.exit_code, len(closes)) == (0, 1)
    else:
        assert (told.exit_code, closes) == (2, [])
        assert "nothing was done; type flatten, or give --yes" in told.stderr
    assert (TOLD in told.stderr) == (typed != "yes=True")


@pytest.mark.parametrize("words", [("flatten",), ("close", "EURUSD"), ("stop", "EURUSD", "1.1")])
def test_a_halted_desk_says_so_before_it_asks(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    held_at(home)
    torra(home, "halt")
    monkeypatch.setattr(hand_close, "quote", lambda *_: pytest.fail("a quote was read"))
    refused = torra(home, *words)
    assert (refused.exit_code, "trading is HALTED" in refused.output) == (2, True)
    with closing(open_home(home)) as database:
        (entry, *_) = audit_chain.audit_entries(database, limit=9)
    assert (entry["action"], entry["outcome"][:7]) == (words[0], "failed:")


def test_a_stop_reads_no_quote(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held_at(home)
    monkeypatch.setattr(hand_close, "quote", lambda *_: pytest.fail("a quote was read"))
    assert "type stop, or give --yes" in torra(home, "stop", "EURUSD", "1.1").output


def test_flatten_of_nothing_asks_nothing(home: Path) -> None:
    told = torra(home, "flatten")
    assert (told.exit_code, told.stdout) == (0, "Nothing is held and nothing is opening.\n")


def test_the_word_holds_for_the_positions_that_were_there(home: Path) -> None:
    """One that came with real money while a person typed is not closed by that word."""
    sid = held_at(home)
    with closing(open_home(home)) as database:
        reach = commanding.context_of(home, database)
        with pytest.raises(ConfigError, match="EURUSD: real money, so nothing was done"):
            hand_close.flatten(reach, SOMEBODY, agreed=())
        with pytest.raises(ConfigError, match="EURUSD: real money, so nothing was done; type stop"):
            hand_close.stop(reach, SOMEBODY, sid, price=1.095, agreed=())
        done = hand_close.flatten(reach, SOMEBODY, agreed=["EURUSD"])
    assert [one["step"] for one in done.document["positions"]] == ["CLOSING"]


def test_a_person_agrees_to_the_positions_that_the_question_showed(home: Path) -> None:
    shown: list[tuple[list[str], list[str]]] = []
    words: list[Any] = []

    def ask(quotes: Any, live: list[str]) -> None:
        shown.append(([one.position.instance for one in quotes], live))

    def act(*_: object, agreed: Any) -> CommandResult:
        words.append(agreed)
        return CommandResult({})

    act.action = "flatten"  # type: ignore[attr-defined]
    hand_close.ask_and_do(act, home, ask=ask)  # type: ignore[arg-type]
    held_at(home)
    hand_close.ask_and_do(act, home, ask=ask)  # type: ignore[arg-type]
    hand_close.ask_and_do(act, home, ask=None)  # type: ignore[arg-type]
    assert words == [[], ["EURUSD"], None]
    assert shown == [(["EURUSD"], ["EURUSD"])]


@cases(
    ("steps", "runs", "trading", "hints"),
    [
        (["CLOSING"], True, "REDUCING", []),
        (["CLOSING"], False, "REDUCING", [hand_close.NO_DESK]),
        (["ALREADY", "TAKING_BACK"], False, "ACTIVE",
         [hand_close.NO_DESK, hand_close.MAY_OPEN_AGAIN]),
        (["TAKEN_BACK"], False, "ACTIVE", [hand_close.MAY_OPEN_AGAIN]),
        (["ALREADY"], False, "ACTIVE", []),
    ],
)  # fmt: skip
def test_what_follows_from_a_close_is_said_below_its_positions(
    steps: list[str], runs: bool, trading: str, hints: list[str]
) -> None:
    row = {
        "instance": "EURUSD",
        "side": "LONG",
        "lots": 0.1,
        "signal": "T",
        "why": "",
        "bridge": "B",
        "expires": "soon",
    }
    rows = [{**row, "step": step} for step in steps]
    lines = hand_close.closed_lines({"positions": rows, "desk_runs": runs, "trading": trading})
    assert lines.split("\n")[len(steps) :] == hints


def test_closes_go_again_after_a_halt_and_alarms_stand(home: Path) -> None:
    sid = held_at(home)
    torra(home, "halt")
    database = open_home(home)
    database.raise_alarm("k", "EXTERNAL", "position 7")
    database.close()
    refused = torra(home, "close", sid, "--yes")
    assert refused.exit_code == 2
    assert "`torra resume --reduce` lets closes go out, and still opens nothing" in refused.output
    told = torra(home, "resume", "--reduce", "--reason", "only out")
    assert (told.exit_code, "Trading is REDUCING" in told.output) == (0, True)
    document = json.loads(torra(home, "signals", "--json").stdout)
    assert len(document["alarms"]) == 1
    again = torra(home, "resume", "--reduce")
    assert "trading is REDUCING: closes go out already" in again.output
    assert torra(home, "close", sid, "--yes").exit_code == 0
    torra(home, "resume")
    active = torra(home, "resume", "--reduce")
    assert "trading is ACTIVE: closes go out already; `torra halt --reduce`" in active.output


def test_flatten_ends_in_1_where_a_position_cannot_be_closed_from_here(home: Path) -> None:
    held_at(home)
    path = home / "desk.json"
    document = json.loads(path.read_text())
    document["instances"][0]["bridge"] = "paper"
    path.write_text(json.dumps(document))
    told = torra(home, "flatten", "--yes")
    assert (told.exit_code, "do it there" in told.output) == (1, True)
