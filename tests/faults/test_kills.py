"""Whoever is killed, and wherever, loses nothing, halves nothing and does nothing twice.

Lives of desks end at each point of a tick, again and again, and at any moment whatever; right after
each death nothing is halved, and in the end every table is that of a desk that was always closed in
peace. `lives` has the desks, `kills` how a life ends.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest

from tests.faults import kills, lives, mortal
from tests.faults.lives import DESKS, PAID, SEATS
from tests.tries import Tries

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
    def lived(name: str, deaths: int) -> lives.Tables:
        world, folder = DESKS[name], tmp_path_factory.mktemp("calm")
        passed: set[str] = set()
        with pytest.MonkeyPatch.context() as patch:
            mortal.watch_points(patch, passed.add)
            for number in range(deaths):
                world.live(folder, world.upto(deaths), closes=number % 2)
            world.live(folder, world.upto(deaths))
        assert passed <= set(world.points), f"{name} passes {passed - set(world.points)} too"
        return lives.tables(folder)

    return lived


@pytest.fixture
def dies(
    calm: Calm,
    tmp_path: Path,
    scaled: Callable[..., int],
    record_property: Callable[[str, object], None],
) -> Dies:
    """Return what lets a desk die again and again, at a point or at all of them in turn."""

    def of(name: str, *points: str) -> None:
        world = DESKS[name]
        deaths = scaled(25) if points else scaled(world.deaths, least=world.least)
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
        told = f"{deaths} deaths of the {name} desk {''.join(points)}".strip()
        record_property("seen", f"{told}, {world.met(tmp_path)}".strip(", "))

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
def test_a_desk_of_any_other_mode_dies_as_safely(mode: str, dies: Dies) -> None:
    """The thesis and what the seats came to are in the tables that are compared (D1)."""
    dies(mode)


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
    record_property: Callable[[str, object], None],
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
    record_property("seen", f"{hit:,} kills of a living desk")
