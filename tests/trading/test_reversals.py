"""Verdicts that turn, timeframes that close together, approvals that come late or twice, a hand.

Random lives of one instance on a channel: M15 and H1 decide, by themselves or through a person,
and a person closes what is held or opening, against an account where stops are hit, orders fail and
the Expert Advisor sleeps. After every step the account holds one position of the instance at most;
in the end every leg has its end, and the database and the broker agree.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import signal_bridge
from tests.worlds.channels import EUR, Realtime, Stage
from tests.worlds.hands import SOMEBODY, hand_on, nudge
from tests.worlds.stores import open_database
from torra.clock import duration, floor
from torra.config import Profile
from torra.errors import ConfigError
from torra.store.connection import TickKey
from torra.tick import approval
from torra.trading import hand_close
from torra.trading.courier import Courier, RoutedInstance
from torra.trading.kill_switch import KillSwitch
from torra.verdict import risk_engine
from torra.verdict.risk_engine import Account, Decision
from torra.verdict.signal_states import EXECUTED, UNEXECUTED, signal_life

ATR = 0.001
STEP = 5.0
"""Seconds between two looks of a life."""

FAULTS = ((10006,), (10012, 1), (10012,), (10004,), (10010, 1, -0.5), (0, 1, 0.0, 4.0))
"""Refused, executed and not told, lost, requoted, half of it, shown late."""


class Life:
    """One desk, one account, one die."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.stage = Stage(folder, clock=Realtime())
        self.clock = self.stage.clock
        self.database = open_database(folder, self.clock.now)
        risk = Profile().risk.model_copy(
            update={"max_signals_per_hour": 99, "max_same_openings_per_hour": 99}
        )
        how = {"on_opposite": "reverse", "execution": self.dice.choice(("auto", "approve"))}
        self.profile = Profile().model_copy(update={"risk": risk, **how})
        self.database.apply_profile(EUR.id, self.profile.model_dump_json(), "d")
        self.switch = KillSwitch({}, self.database)
        people = [RoutedInstance(EUR, self.profile, "main")]
        self.courier = Courier(
            self.database, people, lambda: {"main": self.stage.bridge}, self.switch,
            lambda: self.clock,
        )  # fmt: skip
        self.hand = hand_on(
            self.database, [EUR], self.clock.now, profile=self.profile, channel=self.stage.channel
        )
        self.courier.open()
        self.bid = 1.1
        self.asleep = 0.0
        self.seen: Counter[str] = Counter()

    def look(self, seconds: float = STEP) -> None:
        """Let time pass on both sides and hold the account to its rule."""
        self.clock.pass_time(seconds)
        self.bid = round(self.bid + self.dice.uniform(-0.0003, 0.0003), 5)
        ask = round(self.bid + 0.0001, 5)
        self.stage.ea.quote("EURUSD.m", self.bid, ask, self.clock.now())
        self.asleep -= seconds
        if self.asleep <= 0:
            self.stage.advise()
        self.courier.turn()
        assert len(self.stage.ea.positions(EUR.magic)) <= 1, "two positions of one instance"

    def close_of_a_bar(self) -> None:
        """Decide as the ticks of this close do, the longer timeframe first."""
        moment = self.clock.now()
        for timeframe in ("H1", "M15"):
            bar_time = floor(moment, timeframe) - duration(timeframe)
            if bar_time + duration(timeframe) == floor(moment, "M15"):
                self.decide(timeframe, bar_time, self.dice.choice(("BUY", "SELL", "SELL", "HOLD")))

    def decide(self, timeframe: str, bar_time: datetime, verdict: str) -> None:
        now = self.clock.now()
        with self.database.transaction():
            decision = Decision(
                verdict=verdict, price=self.bid, atr=ATR, multiplier=1.0, veto=False,
                opening_stands=True,
            )  # fmt: skip
            exposure = self.database.exposure(EUR.id, timeframe, as_of=now)
            account = Account(trading_state=self.database.trading_state(), **exposure)
            position, spec = self.database.position(EUR.id), self.profile.symbol("EURUSD")
            action = risk_engine.review(decision, position, account, spec, self.profile)
            self.seen[action.name] += 1
            key = TickKey(EUR.id, timeframe, bar_time)
            if not action.drafts:
                return
            if self.profile.execution == "approve":
                approval.propose(
                    self.database, action, decision, key=key, symbol="EURUSD", created=now,
                    expires=bar_time + 2 * duration(timeframe),
                )  # fmt: skip
                return
            for draft in action.drafts:
                signal_bridge.write_signal(
                    self.database, draft, instance=EUR.id, symbol="EURUSD", timeframe=timeframe,
                    bar_time=bar_time, created=now, expires=now + signal_life(timeframe),
                    authority="tick", bridge=EUR.route,
                )  # fmt: skip

    def click(self) -> None:
        """Approve something, perhaps twice, perhaps long decided."""
        rows = self.database.proposals(None, 5)
        if not rows:
            return
        row = self.dice.choice(rows)
        for _ in range(self.dice.choice((1, 1, 2))):
            try:
                now = approval.ApprovalContext(
                    instance=EUR, profile=self.profile, now=self.clock.now(), price=self.bid,
                    halted="",
                )  # fmt: skip
                life = signal_life(row.timeframe)
                decided = approval.approve(self.database, row.sid, now, life=life)
            except ConfigError:
                self.seen["refused"] += 1
            else:
                self.seen[decided.state] += 1

    def leave(self) -> None:
        """Close by hand whatever there is, perhaps twice."""
        for _ in range(self.dice.choice((1, 1, 2))):
            try:
                done = hand_close.close(self.hand, SOMEBODY, EUR.id)
            except ConfigError:
                self.seen["hand refused"] += 1
            else:
                self.seen.update(f"hand {one['step']}" for one in done.document["positions"])

    def nudge(self) -> None:
        """Bring the stop of whatever is held nearer to the price."""
        try:
            nudge(self.hand, EUR.id, self.bid, self.dice.uniform(0.1, 0.9))
        except ConfigError:
            self.seen["stop refused"] += 1
        else:
            self.seen["stop moved"] += 1

    def trouble(self) -> None:
        if self.dice.random() < 0.3:
            self.asleep = self.dice.uniform(5.0, 400.0)
        if self.dice.random() < 0.3:
            self.stage.ea.fail(*self.dice.choice(FAULTS))
        held = self.stage.ea.positions(EUR.magic)
        if held and self.dice.random() < 0.1:
            self.stage.ea.close_by_hand(held[0]["ticket"])

    def run(self, bars: int) -> None:
        for _ in range(bars):
            self.close_of_a_bar()
            self.trouble()
            until = floor(self.clock.now(), "M15") + timedelta(minutes=15)
            while self.clock.now() < until:
                left = (until - self.clock.now()).total_seconds()
                # closely after the close, then in longer steps: the books come each minute
                early = left > 840.0
                self.look(min(left, STEP if early else 60.0))
                if self.profile.execution == "approve" and self.dice.random() < 0.2:
                    self.click()
                if self.dice.random() < 0.03:
                    self.leave()
                if self.dice.random() < 0.05:
                    self.nudge()

    def settle(self) -> None:
        """Let everything come to its end without further trouble."""
        self.asleep = 0.0
        self.stage.ea.forgive()
        # closely at first, then in longer steps, six minutes in all
        for seconds in (*[3.0] * 40, *[20.0] * 12):
            self.look(seconds)

    def account_for(self) -> None:
        """Compare every leg with the broker's books."""
        executed = Counter(deal["comment"] for deal in self.stage.ea.deals() if deal["comment"])
        for row in self.database.signals(limit=10_000):
            sid, state = row["sid"], row["state"]
            if row["kind"] == "modify":  # it makes no deal
                assert state in ("FILLED", *UNEXECUTED), f"{sid} has no end: {state}"
                self.seen[f"stop {state}"] += 1
                continue
            assert executed[sid] <= 1, f"{sid} was executed {executed[sid]} times"
            assert state in (*EXECUTED, "CLOSED", *UNEXECUTED), f"{sid} has no end: {state}"
            if state in (*EXECUTED, "CLOSED"):
                assert executed[sid] == 1, f"{sid} is {state} and was never executed"
            else:
                assert executed[sid] == 0, f"{sid} is {state} and was executed"
            self.seen[f"{row['kind']} {state}"] += 1
        held = {str(item["ticket"]): item for item in self.stage.ea.positions(EUR.magic)}
        ours = self.database.position(EUR.id)
        told = [self.database.signal(ours.signal_id)["ticket"]] if ours else []
        assert told == [*held]
        if ours:
            assert held[told[0]]["sl"] == ours.stop, "the books know where the stop stands"
        self.seen["lives"] += 1


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_leg_is_accounted_for(
    part: int, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    seen: Counter[str] = Counter()
    for number in range(scaled(40, least=1)):
        seed = part * 1000 + number
        life = Life(tmp_path / str(seed), seed)
        life.run(bars=16)
        life.settle()
        try:
            life.account_for()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        life.database.close()
        seen += life.seen
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(seen.items()))
    record_property("seen", told)
    if seen["lives"] > 5:  # one life alone may come to none of one kind
        assert seen["open CLOSED"] and seen["REVERSE"] and seen["hand CLOSING"], seen
        assert seen["stop FILLED"], seen
