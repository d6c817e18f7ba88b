"""Whoever is killed, and wherever, loses nothing, halves nothing and does nothing twice.

Lives of desks end at each point of a tick, again and again, and at any moment whatever; right after
each death nothing is halved, and in the end every table is that of a desk that was always closed in
peace. `lives` has the desks, `kills` how a life ends.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from pathlib import Path

import pytest

from instance_database import open_home, open_reader
from tests.conftest import Scale
from tests.faults import kills, lives, mortal
from tests.faults.job_pair import Jobs
from tests.faults.lives import DESKS, PAID, SEATS
from tests.faults.order_pair import ALONE, Orders
from tests.tries import Tries, until
from tests.worlds import mt5_package
from tests.worlds.desks import EUR, open_database
from tests.worlds.mt5_package import SID, order
from torra.config import DeskSettings
from torra.failpoints import strike
from torra.store.tool_calls import tool_calls
from torra.tools.contract import ToolArgs, ToolResult, ToolSpec, fact
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import Executor, ToolCall, hash_of

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL"),
    pytest.mark.usefixtures("lessons_come_in_time"),
    pytest.mark.timeout(1500),
]

Calm = Callable[[str, int], lives.Tables]
Dies = Callable[..., None]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """Return what gives the tables of a desk that is closed as often as another one dies.

    It lives in this process, so that no life that is forked after it scores the same bars.
    """
    lives.warm()

    @cache
    def tables_of(name: str, deaths: int) -> lives.Tables:
        world, folder = DESKS[name], tmp_path_factory.mktemp("calm")
        passed: set[str] = set()
        with pytest.MonkeyPatch.context() as patch:
            mortal.watch_points(patch, passed.add)
            for number in range(deaths):
                world.live(folder, world.upto(deaths), closes=number % 2)
            world.live(folder, world.upto(deaths))
        assert passed <= set(world.points), f"{name} passes {passed - set(world.points)} too"
        return lives.tables(folder)

    return tables_of


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Return what records a sentence, with the seconds that the test has taken."""
    begun = time.monotonic()
    return lambda told: record_property("seen", f"{told}, {time.monotonic() - begun:.0f} s")


@pytest.fixture
def dies(
    calm: Calm, tmp_path: Path, scaled: Callable[..., int], tell: Callable[[str], None]
) -> Dies:
    """Return what lets a desk die again and again, at a point or at all of them in turn."""

    def of(name: str, *points: str) -> None:
        world = DESKS[name]
        deaths = scaled(8) if points else scaled(world.deaths, least=world.least)
        upto = world.upto(deaths)
        for number in range(deaths):
            point, spare = world.death(number, *points)
            life = partial(world.live, tmp_path, upto, point=point, spare=spare)
            assert kills.run(life), f"nobody came to {point}"
            world.whole(tmp_path)
        world.live(tmp_path, upto)
        world.every_close(tmp_path, upto)
        if world.alike:
            assert lives.differences(tmp_path, calm(name, deaths)) == []
        summary = f"{deaths} deaths of the {name} desk {''.join(points)}".strip()
        tell(f"{summary}, {world.met(tmp_path)}".strip(", "))

    return of


@pytest.mark.by_day("claimed", "reserved", "asked", "settled", "recorded", "published")
@pytest.mark.parametrize("point", PAID)
def test_a_kill_at_a_named_point_changes_nothing(point: str, dies: Dies) -> None:
    """Each point of a tick, again and again, on a desk that pays its vendor (D1)."""
    dies("paying", point)


@pytest.mark.journey
def test_a_life_of_kills_ends_as_a_life_of_closings(dies: Dies) -> None:
    """A desk that only ever dies has the tables of one that is always closed in peace (D10)."""
    dies("paying")


@pytest.mark.journey
@pytest.mark.parametrize("mode", SEATS)
def test_a_desk_of_any_other_mode_dies_as_safely(
    mode: str, dies: Dies, tmp_path: Path, scaled: Scale
) -> None:
    """The thesis and what the seats came to are in the tables that are compared (D1).

    Chance alone says whether a death of a few falls between two ticks of a close.
    """
    dies(mode)
    assert not scaled.whole or lives.partings(tmp_path), "no death fell between two ticks"


@pytest.mark.by_day("paying", "remembering")
@pytest.mark.parametrize("name", ["paying", *SEATS, "remembering"])
def test_a_life_of_closings_ends_as_one_long_life(
    name: str, calm: Calm, tmp_path: Path, scaled: Callable[..., int]
) -> None:
    """What any restart changed would otherwise stand on both sides of a comparison (D10)."""
    world = DESKS[name]
    deaths = scaled(world.deaths, least=world.least)
    world.live(tmp_path, world.upto(deaths))
    assert lives.differences(tmp_path, calm(name, deaths)) == []


def test_no_death_forgets_a_call_or_passes_the_ceiling(dies: Dies) -> None:
    """From the reservation to the books: no restart resets a meter (D1, L5)."""
    dies("short of money")


def test_each_end_leaves_one_lesson_however_often_the_desk_dies(dies: Dies) -> None:
    """A desk that trades all the time, and is told of its lessons (M1)."""
    dies("remembering")


def test_kills_lose_nothing_and_double_nothing(
    tmp_path: Path,
    scaled: Callable[..., int],
    tries: Tries,
    tell: Callable[[str], None],
) -> None:
    """At any moment whatever, M15 and H1 closing together among the ticks (D1, D4)."""
    lives.warm()
    world, dice = DESKS["paper"], random.Random(20211110)
    deaths = scaled(world.deaths, least=world.least)
    # a child lives long enough for one or two M15 ticks and a bit, on a fast machine for some more
    end = world.upto(max(24, deaths * 4))
    for attempt in tries():
        killed = attempt.folder(tmp_path)
        life = partial(world.live, killed, end)
        hit = sum(kills.run_for(dice.uniform(0.0, 0.2), life) for _ in range(deaths))
        upto = world.after(killed)
        never_killed = killed.with_name(f"{killed.name}-calm")
        for folder in (killed, never_killed):
            folder.mkdir(exist_ok=True)
            world.live(folder, upto)
        world.every_close(killed, upto)
        assert lives.differences(killed, never_killed) == []
        with attempt:
            assert hit >= deaths * 0.9, "a child lived so long that it did all the work"
    tell(f"{hit:,} kills of a living desk")


# --- two processes --------------------------------------------------------------------------------


def test_no_kill_doubles_or_loses_an_order(
    tmp_path: Path, scaled: Callable[..., int], tell: Callable[[str], None]
) -> None:
    """Of Torra, of the Expert Advisor, or of both (D4, R6)."""
    hit, ends = kills.side_by_side(Orders, tmp_path, scaled(200, least=8))
    tell(f"{listing(hit)} killed over {ends.total()} orders: {listing(ends)}")


def test_no_kill_loses_a_job_or_runs_it_twice(
    tmp_path: Path, scaled: Callable[..., int], tell: Callable[[str], None]
) -> None:
    """Of a desk, of the process of its job, or of both (D14)."""
    hit, ends = kills.side_by_side(Jobs, tmp_path, scaled(150, least=8))
    assert ends["done"], "no job was done: the kills prove nothing"
    tell(f"{listing(hit)} killed: {listing(ends)}")


@pytest.mark.by_day("-before_send", "marked-")
@pytest.mark.parametrize(("ours", "theirs"), ALONE)
def test_each_point_of_a_channel_is_met(ours: str, theirs: str, tmp_path: Path) -> None:
    """A name that nobody passes would prove nothing."""
    orders = Orders(tmp_path, random.Random(0))
    orders.dies(0, ours, theirs)
    orders.whole()
    assert orders.reached == Counter([ours or theirs])
    assert (orders.ends["UNKNOWN_NOT_SENT"] == 1) == (theirs in ("intent", "before_send"))


# --- a bridge and its terminal --------------------------------------------------------------------


def of_one_filling(folder: Path) -> mt5_package.World:
    """Return a server that takes the third filling alone, and says so only when it is sent."""
    world = mt5_package.World(folder)
    world.package.fillings, world.package.check_knows_fillings = {2}, False
    return world


BRIDGES: dict[str, tuple[Callable[[Path], mt5_package.World], int]] = {
    "mt5": (mt5_package.World, 5),
    "mt5 third filling": (of_one_filling, 9),
}
"""How each begins, and how many steps may leave an order of which nobody knows."""


@pytest.mark.parametrize("name", BRIDGES)
def test_a_crash_at_any_step_leads_to_one_order_at_most(name: str, tmp_path: Path) -> None:
    """At each call that touches the disk or the package, and at each named point (R12)."""
    make, lost = BRIDGES[name]
    ends = Counter[str]()
    for nth in range(1, 100):
        world = make(tmp_path / str(nth))
        with kills.crash_at(nth, *world.steps) as doom:
            world.bridge.submit(order())
        world.start()
        status = world.carry(order())
        assert len(world.executed) <= 1
        assert status == ("FILLED" if world.executed else "UNKNOWN_NOT_SENT"), nth
        world.close()
        ends[status] += 1
        if not doom.dead:
            break
    assert not doom.dead, "the steps never ended"
    assert ends["FILLED"] and 0 < ends["UNKNOWN_NOT_SENT"] <= lost, ends


@pytest.mark.parametrize("point", ["before_send", "after_send"])
def test_a_killed_bridge_finds_what_it_sent_and_sends_nothing_again(
    point: str, tmp_path: Path
) -> None:
    """SIGKILL flushes no file and runs no `finally`; the broker lives on (R12)."""
    books = tmp_path / "books.json"

    def life() -> None:
        world = mt5_package.World(tmp_path)

        def die() -> None:
            books.write_text(json.dumps(world.package.requests))
            strike()

        setattr(world.package, point, die)
        world.bridge.submit(order())

    assert kills.run(life)
    world = mt5_package.World(tmp_path)
    world.package.initialize()
    for request in json.loads(books.read_text()):
        world.package.order_send(request)
    sent = list(world.executed)
    status = world.carry(order())
    assert world.executed == sent == [SID] * (point == "after_send")
    assert status == ("FILLED" if sent else "UNKNOWN_NOT_SENT")
    world.close()


def listing(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


def test_a_kill_at_any_moment_leaves_whole_rows_of_the_audit_of_tools(
    tmp_path: Path, scaled: Scale
) -> None:
    with closing(open_database(tmp_path)) as database:
        facts = [fact(f"doc.{one}", 1.0, "one", "2021-01-01T00:00:00Z", "") for one in range(90)]
        tools = {"tool": ToolSpec("tool", "", ToolArgs, lambda *_: facts)}
        now = database.now()
        dice = random.Random(0)

        def life(run: str) -> None:
            with closing(open_home(tmp_path)) as audit, closing(open_reader(audit.path)) as db:
                reader = DeskReader(tmp_path, db, DeskSettings(instances=(EUR,)), {}, now, now)
                asks = Executor(run, audit, limits={}, allowed=tools, tools=tools)
                while True:
                    asks.call(reader, ToolCall("tool"))

        for number in range(scaled(150, least=5)):
            run = f"run {number}"
            process = kills.begin(partial(life, run))
            until(lambda: tool_calls(database, run), 60.0)  # noqa: B023
            time.sleep(dice.uniform(0.0, 0.2))
            process.kill()
            process.join()
            rows = tool_calls(database, run)
            assert [row["seq"] for row in rows] == [*range(1, len(rows) + 1)]
            for row in rows:
                result = ToolResult(ok=True, facts=json.loads(row["facts"]))
                assert row["result_hash"] == hash_of(result.model_dump_json())
        assert database.value("PRAGMA integrity_check") == "ok"
