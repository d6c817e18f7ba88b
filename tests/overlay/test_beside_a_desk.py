"""A desk on the home of other scorers: it loses no tick, through its own kills and theirs."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.faults import kills, lives
from tests.tries import Tries, until
from tests.worlds import desks, scorers
from torra.config import Instance
from torra.desk import promotion
from torra.errors import ConfigError
from torra.overlay import Overlay
from torra.store import ticks as claim_table

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

PAPER = lives.DESKS["paper"]


def ask_on_and_on(home: Path, name: str) -> None:
    """Ask about bar after bar, as a scorer of this name, until the process is killed."""
    overlay = Overlay(home, name=name)
    for size in itertools.cycle(range(300, 900)):
        answer = scorers.asked(overlay, scorers.bars(size), scores=scorers.L1)
        assert answer.debated or answer.why, answer


def host(home: Path, name: str) -> BaseProcess:
    return kills.begin(partial(ask_on_and_on, home, name))


@contextmanager
def hosts(home: Path, number: int) -> Iterator[list[BaseProcess]]:
    found = [host(home, f"host{n}") for n in range(number)]
    try:
        yield found
    finally:
        for one in found:
            one.kill()
            one.join()


def with_desk_file(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "desk.json").write_text('{"instances": [{"symbol": "BTCUSD", "feed": "store"}]}')


def desks_own(home: Path) -> dict[str, list[Any]]:
    """Return what a desk has stored of its own instance, without what time shows in."""
    with closing(desks.open_database(home)) as database:
        return {
            table: lives.rows(database, f"SELECT {columns} FROM {table} WHERE {which}")
            for table, columns, which in (
                ("ticks", "timeframe, bar_time, state, reason", "instance = 'BTCUSD'"),
                ("chains", "torra_key, l1, consensus, verdict", "instance = 'BTCUSD'"),
                ("signals", "sid, kind, side, lots, entry, state, price", "1"),
                ("bars", "timeframe, bar_time, revision, close", "instance = 'BTCUSD'"),
            )
        }


@pytest.mark.journey
@pytest.mark.timeout(1500)
def test_a_desk_beside_hosts_loses_no_tick_through_its_kills_and_theirs(
    tmp_path: Path, scaled: Callable[..., int], tries: Tries
) -> None:
    lives.warm()
    deaths = scaled(80, least=2)
    end = PAPER.upto(max(24, deaths * 4))
    dice = random.Random(7)
    for attempt in tries():
        killed = attempt.folder(tmp_path)
        with_desk_file(killed)
        with hosts(killed, 2) as beside:
            hit = 0
            for _ in range(deaths):
                hit += kills.run_for(dice.uniform(0.0, 0.2), partial(PAPER.live, killed, end))
                if dice.random() < 0.3:
                    victim = dice.randrange(2)
                    assert beside[victim].is_alive(), f"host{victim} ended by itself"
                    beside[victim].kill()
                    beside[victim].join()
                    beside[victim] = host(killed, f"host{victim}")
            upto = PAPER.after(killed)
            PAPER.live(killed, upto)
            until(partial(hosted_at_least, killed, 4), 60, "the hosts are answered, too")
        PAPER.every_close(killed, upto)
        calm = killed.with_name(f"{killed.name}-calm")
        calm.mkdir()
        PAPER.live(calm, upto)
        assert desks_own(killed) == desks_own(calm)
        with attempt:
            assert hit >= deaths * 0.9, "a child lived so long that it did all the work"


def hosted_at_least(home: Path, number: int) -> bool:
    with closing(desks.open_database(home)) as database:
        found = database.connection().execute(
            "SELECT count(*) FROM journal WHERE torra_key LIKE 'host:%'"
        )
        return int(found.fetchone()[0]) >= number


def test_the_standing_of_a_desks_agents_knows_no_hosted_tick(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    for size in range(300, 304):
        scorers.asked(overlay, scorers.bars(size), scores=scorers.L1)
    profile = overlay._profile
    with closing(scorers.stored(tmp_path)) as database:
        mark = promotion.fingerprint(profile)
        assert promotion.ran_with(database, mark) == {}
        database.apply_profile("BTCUSD", profile.model_dump_json(), profile.digest())
        assert [*promotion.ran_with(database, mark)] == ["BTCUSD"]
        subject = promotion.PromotionSubject("default", profile, (Instance(symbol="BTCUSD"),))
        assert promotion.pooled(database, subject).count == 0


def test_the_home_in_which_the_demo_ran_is_refused(tmp_path: Path) -> None:
    with closing(scorers.stored(tmp_path)) as database:
        claim_table.begin_run(database, "run 77", 77)
    overlay = scorers.overlay(tmp_path)
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1 and "home of the demo" in answer.why
    (tmp_path / "home" / "pages.json").write_text("{}")
    with pytest.raises(ConfigError, match="home of the demo"):
        Overlay(tmp_path / "home")
    with_desk_file(tmp_path / "home")
    assert scorers.asked(scorers.overlay(tmp_path), scores=scorers.L1).debated
