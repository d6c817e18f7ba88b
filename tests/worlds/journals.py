"""A desk that lived through much, and its replay in a process of its own.

`live` journals ticks of two instances (three streams) through the real desk: models that answer
well, badly, late or not at all, bars that come late or change, a halt, a change of profile, and a
person who closes positions between ticks and in the middle of them.
`python -m tests.worlds.journals SOURCE INTO` replays such a desk and prints a line for each tick.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pandas as pd

from agents.contracts import SIDES, VECTORS, WINNERS, Completion, ModelUnavailable, Request
from instance_database import Database
from scoring_rubric import request_hash
from tests.doubles import scripted
from tests.worlds import desks
from tests.worlds.hands import SOMEBODY, hand_on, nudge
from tests.worlds.price_series import times_of
from torra.clock import System, duration
from torra.config import Profile, validate
from torra.desk.schedule import Desk
from torra.desk.timers import next_close
from torra.errors import ConfigError
from torra.replay.rerun.journal_replay import Comparison, replay
from torra.store import replay_queries
from torra.trading import hand_close

BOTH = (desks.BTC, desks.EUR)
LATE = {4: 420, 7: 40, 10: 1300}
"""Seconds by which a wake comes late, by its number modulo 13."""


def a_profile(**changes: Any) -> Profile:
    """A profile that trades often, so that positions open and close."""
    values = {
        "thresholds": {"buy": 0.1, "sell": 0.1}, "on_opposite": "reverse",
        "risk": {"capital": 100_000.0}, **changes,
    }  # fmt: skip
    return validate(Profile, values, "a test")


class Moody:
    """Answers as the hash of the request has it: the same request always gets the same answer."""

    name = "moody"

    def __init__(self) -> None:
        self.moods: dict[str, int] = {}
        self.clock: Any = None
        self.person: Callable[[random.Random], None] = lambda chance: None

    def chance(self, request: Request) -> random.Random:
        """What a reply is drawn by."""
        return random.Random(request_hash(request))

    def submit(self, request: Request) -> Future[Completion]:
        if self.clock is not None:  # thinking takes time: a tick decides later than it looked
            self.clock.set(self.clock.now() + timedelta(seconds=0.75))
        chance = self.chance(request)
        if chance.random() < 0.02:
            self.person(chance)
        mood = chance.choices(list(MOODS), [weight for weight, _ in MOODS.values()])[0]
        self.moods[mood] = self.moods.get(mood, 0) + 1
        future: Future[Completion] = Future()
        answer = MOODS[mood][1](request, chance)
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future

    def close(self) -> None: ...


def said(text: Any, stop_reason: str = "end") -> Completion:
    text = text if isinstance(text, str) else json.dumps(text)
    return Completion(text, "moody-1", "moody", 900, 90, 0.0021, stop_reason, 300)


def valid(request: Request, chance: random.Random, bound: float = 0.3) -> dict[str, Any]:
    if request.role.kind == "gate":
        return scripted.ruling(
            request, multiplier=chance.choice([1.0, 0.8, 0.35]), veto=chance.random() < 0.12
        )
    if request.role.kind == "scorer":
        return scripted.chart(request, chance.uniform(-0.9, 0.9))
    if request.role.kind == "arbiter":
        return judgement(request, chance)
    if request.role.kind == "trader":
        return scripted.thesis(
            request, decline=chance.random() < 0.3, reason_code="WEAK_CASE",
            horizon_bars=chance.randint(-5, 200),
        )  # fmt: skip
    told = scripted.report(request, confidence=chance.choice(["high", "medium", "low"]))
    told["adjustments"] = {v: chance.choice([None, chance.uniform(-bound, bound)]) for v in VECTORS}
    told["claim"] = f"I was told {request.nonce}, and {chance.random():.6f} of it is plain."
    return told


def judgement(request: Request, chance: random.Random) -> dict[str, Any]:
    """A manager's word, whose weights may lie outside of what is allowed."""
    weights = {name: chance.choice([0.0, 0.4, 1.0, 3.0, -1.0]) for name in SIDES}
    return scripted.judgement(
        request, weights=weights, winner=chance.choice([*WINNERS]),
        confidence=chance.choice(["high", "medium", "low"]),
    )  # fmt: skip


MOODS: dict[str, tuple[int, Callable[[Request, random.Random], Any]]] = {
    "valid": (60, lambda r, c: said(valid(r, c))),
    "clamped": (5, lambda r, c: said(valid(r, c, bound=3.0))),
    "abstains": (5, lambda r, c: said({**valid(r, c), "abstained": True, "abstain_reason": "?"})),
    "garbage": (5, lambda r, c: said("}{ no JSON")),
    "endless": (1, lambda r, c: said(json.dumps(valid(r, c)) + " " * 70_000)),
    "another symbol": (2, lambda r, c: said({**valid(r, c), "symbol": "XAUUSD"})),
    "empty": (2, lambda r, c: said("")),
    "cut off": (2, lambda r, c: said('{"symbol": "BTC', "length")),
    "refusal": (2, lambda r, c: said("I cannot", "refusal")),
    "error": (3, lambda r, c: ModelUnavailable("error", "500")),
    "refused key": (2, lambda r, c: ModelUnavailable("error", "401", again=None)),
    "broken body": (2, lambda r, c: ModelUnavailable("garbage", "body", again=0.0)),
    "blocked": (2, lambda r, c: ModelUnavailable("blocked", again=None)),
    "no money": (2, lambda r, c: ModelUnavailable("budget", again=None)),
    "timeout": (3, lambda r, c: ModelUnavailable("timeout")),
    "defect": (2, lambda r, c: RuntimeError("a secret")),
}


class Impatient:
    """A person who leaves what one of the instances holds, or brings its stop nearer."""

    def __init__(self, desk: Desk) -> None:
        instances = [setup.instance for setup in desk.setups.values()]
        self.reach = hand_on(desk.database, instances, desk.clock.now)

    def __call__(self, chance: random.Random) -> None:
        with suppress(ConfigError):  # nothing is held, it is being closed, or trading is halted
            item = chance.choice(self.reach.settings.instances)
            bars = self.reach.database.load_bars(
                item.id, item.shortest, as_of=self.reach.now(), limit=1
            )
            if chance.random() < 0.5 and len(bars):
                nudge(self.reach, item.id, float(bars["close"].iloc[-1]), chance.random())
            else:
                hand_close.close(self.reach, SOMEBODY, item.id)


class Revising:
    """The sample; a bar may come late, and the newest bar of a stream is corrected afterwards."""

    def __init__(self) -> None:
        self.now: Any = None
        self.missing: set[Any] = set()

    def bars(
        self, symbol: str, timeframe: str, as_of: Any, limit: int | None = None
    ) -> pd.DataFrame:
        frame = desks.sample().bars(symbol, timeframe, as_of, limit).copy()
        frame = frame[~frame.index.isin(list(self.missing))]
        closed = times_of(frame) + duration(timeframe)
        new = (closed > self.now - timedelta(minutes=70)) & (times_of(frame).hour % 3 == 0)
        frame.loc[new, "high"] *= 1.0001
        frame.loc[new, "volume"] += 0.37
        return frame

    def period(self) -> Any:
        return desks.sample().period()


USUAL: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"on_opposite": "close", "thresholds": {"buy": 0.3, "sell": 0.05}},
)
"""What changes in the profile of a life, one part of it after the other."""


def live(
    folder: Path,
    ticks: int,
    provider: Any = None,
    *,
    plain: bool = False,
    parts: Sequence[Mapping[str, Any]] = USUAL,
) -> Database:
    """Journal so many ticks; return the database, open. A `plain` desk is never disturbed."""
    feed = Revising()
    feed.now = desks.START
    voice = provider or Moody()
    profiles = [a_profile(**changes) for changes in parts]
    done = steps = 0
    for number, profile in enumerate(profiles):
        desk = desks.open_desk(folder, BOTH, profile=profile, provider=voice, feed=feed)
        desks.open_for_work(desk)
        person = Impatient(desk)
        if not plain:
            voice.clock, voice.person = desk.clock, person
        share = ticks * (number + 1) // len(profiles)
        while done < share:
            done += _step(desk, feed, steps, plain=plain)
            steps += 1
            if not plain and steps % 7 == 3:
                person(random.Random(steps))
            if not plain and ticks // 5 <= done < ticks // 4:
                desk.database.set_trading_state("HALTED", "a test")
            elif desk.database.trading_state() != "ACTIVE":
                desk.database.set_trading_state("ACTIVE", "a test")
        desk.close()
    return desks.open_database(folder)


def _step(desk: Desk, feed: Revising, number: int, *, plain: bool) -> int:
    """Wake at the next close: some wakes come late, some bars come after the next one."""
    moment = next_close(desk.clock.now(), ["M15", "H1"])
    late = 0 if plain else LATE.get(number % 13, 0)
    if not plain and number % 6 == 2:
        feed.missing = {moment - duration("M15")}
    desks.clock_of(desk).set(moment + timedelta(seconds=late))
    feed.now = desk.clock.now()
    done = [outcome for name in desk.setups for outcome in desk.wake(name)]
    if feed.missing and moment - duration("M15") not in feed.missing:
        feed.missing = set()  # now it is there, and a newer tick has been run
        done += [outcome for name in desk.setups for outcome in desk.wake(name)]
    return sum(outcome.state == "done" for outcome in done)


@contextmanager
def copied(file: Path, folder: Path) -> Iterator[Database]:
    """Open a copy of a desk's file, so that a test may alter what it holds."""
    folder.mkdir()
    shutil.copy(file, folder / "torra.db")
    database = desks.open_database(folder)
    yield database
    database.close()


def lines(source: Database, folder: Path, limit: int | None = None) -> Iterator[Comparison]:
    """Replay both instances of a desk into a new database."""
    into = desks.open_database(folder)
    for instance in BOTH:
        yield from replay(source, into, instance.id, limit=limit)
    into.close()


def again(source: Database, folder: Path, *keys: str) -> dict[str, Comparison]:
    """Run these ticks of a desk again, all of them where none is named."""
    into = desks.open_database(folder)
    found: dict[str, Comparison] = {}
    for item in BOTH:
        own = [key for key in replay_queries.journalled(source, item.id) if key in keys or not keys]
        found |= {one.key: one for one in replay(source, into, item.id, keys=own)}
    into.close()
    return found


def change(database: Database, sql: str, *values: object) -> int:
    """Change rows of a database; return how many."""
    with database.transaction():
        return database.connection().execute(sql, values).rowcount


def main(source: str, into: str) -> None:
    database = Database.open(Path(source), now=System().real_now)
    for found in lines(database, Path(into)):
        sys.stdout.write(json.dumps(asdict(found)) + "\n")
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
