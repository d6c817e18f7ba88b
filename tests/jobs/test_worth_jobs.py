"""What the agents were worth, as a job: asked for by the desk itself as it grows, and told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from instance_database import Database
from tests.dashboard.test_query_plans import open_pages
from tests.worlds import desks
from tests.worlds.busy_desk import VOICES, run
from tests.worlds.homes import desk_file, profile_file
from torra.config import load_desk
from torra.desk.roster import InstanceRuntime
from torra.desk.schedule import Desk
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.jobs import asking
from torra.jobs.worker import Worker
from torra.replay import live
from torra.replay.changed import listing, worth
from torra.replay.changed.listing import Paths
from torra.store import jobs as job_table
from torra.trading.commanding import COMMAND_LINE


class Lived(NamedTuple):
    """What is left of a desk that lived a while: its database, and what it ran."""

    database: Database
    setup: InstanceRuntime


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk that lived through thirty closes, and has ended."""
    desk = run(tmp_path_factory.mktemp("grown"), VOICES["wild"](), "full", 30)
    desk.database.close()
    return desk


@pytest.fixture
def lived(grown: Desk, tmp_path: Path) -> Iterator[Lived]:
    """A copy of it in a test's own home."""
    Database.copy(grown.database.path, tmp_path / "torra.db")
    (setup,) = grown.setups.values()
    with closing(desks.open_database(tmp_path)) as database:
        yield Lived(database, setup)


def told(stage: str, done: int = 0, total: int = 0) -> None:
    del stage, done, total


@pytest.mark.journey
@pytest.mark.usefixtures("lived")
def test_the_job_says_in_money_what_the_whole_paths_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = {"instances": [{"symbol": "BTCUSD", "feed": "sample"}]}
    (tmp_path / "desk.json").write_text(json.dumps(desk))
    assert worth.run(tmp_path, {}, told).says == "No tick of the present setting counts yet."
    warm = live.WarmedUp(400, 2)
    found = Paths(
        "default", "", 5, 6, -0.3, 0.05, -12.4, -30.0, 5.0, ticks=615, mode="full", warmed=warm
    )
    monkeypatch.setattr(listing, "paths", lambda *_: found)
    minus = figures.MINUS
    traded = f"The bars alone +0.050 R a trade, this desk {minus}0.300 R: "
    says = f"{traded}the agents cost 12.40 USD at the same mean size over 615 ticks in mode "
    says += "full, warm-up included, "
    says += f"95 % {minus}30.00 to +5.00."
    assert worth.run(tmp_path, {"ticks": 615}, told).says == says
    few = replace(found, says="There are too few days for an interval.", low=None, high=None)
    few = replace(few, ticks=31, warmed=live.WarmedUp())
    assert worth.sentence(few, "") == (
        f"{traded}the agents cost 12.40 at the same mean size over 31 ticks in mode "
        "full. There are too few days for an interval."
    )
    none = replace(few, trades=0, l1_trades=0, money=0.0)
    assert worth.sentence(none, "USD") == (
        "No trade is closed yet over 31 ticks in mode full, with agents or without."
    )


@pytest.mark.journey
def test_it_is_asked_for_when_the_desk_has_grown_and_is_one_job(
    lived: Lived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, ticks = lived.database, [99]
    monkeypatch.setattr(worth, "_ticks", lambda _database: ticks[0])

    def number() -> int:
        worth.keep_up(database)
        return len(job_table.jobs(database))

    assert number() == 0
    ticks[0] = 100
    assert number() == 1
    ticks[0] = 500
    assert number() == 1, "it waits still"
    row = asking.ask(database, tmp_path, worth.WORTH, {}, COMMAND_LINE).document
    assert not row["new"]
    for count, jobs in ((150, 1), (199, 1), (200, 2), (299, 2), (5_000, 3), (5_499, 3), (5_500, 4)):
        ticks[0] = count
        newest = job_table.jobs(database)[0]
        if newest["state"] == "queued":
            assert job_table.begin_job(database, newest["id"], "queued")
            assert job_table.end_job(
                database, newest["id"], "running", "done", f"said {newest['id']}"
            )
        assert number() == jobs, count
    assert job_table.newest_says(database, "worth") == "said 3"


@pytest.mark.journey
def test_a_full_queue_is_no_fault_and_a_person_comes_first(
    lived: Lived, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = lived.database
    monkeypatch.setattr(worth, "_ticks", lambda _database: 100)
    worth.keep_up(database)
    mine, _ = job_table.queue_job(
        database, "replay", "k", title="", parameters="{}", actor="a person"
    )
    worker = Worker(database, Path("/nowhere"), {})
    assert worker._waiting()[0]["id"] == mine["id"]
    for number in range(18):
        job_table.queue_job(database, "replay", str(number), title="", parameters="{}", actor="b")
    job_table.end_job(database, 1, "queued", "cancelled", "")
    job_table.queue_job(database, "replay", "last", title="", parameters="{}", actor="b")
    monkeypatch.setattr(worth, "_ticks", lambda _database: 1_000)
    worth.keep_up(database)
    assert len(job_table.jobs_in(database, "queued")) == 20


def test_it_takes_no_parameter(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this job takes no parameter"):
        worth.check(tmp_path, {"days": "30"})


def test_home_and_the_changed_page_tell_the_newest_answer(tmp_path: Path) -> None:
    database, client, _ = open_pages(tmp_path, 200, 2)
    with closing(database):
        assert "Worth" not in client.get("/").get_data(as_text=True)
        row, _ = job_table.queue_job(
            database, "worth", "k", title="", parameters="{}", actor="the desk"
        )
        job_table.begin_job(database, row["id"], "queued")
        says = "The agents cost 12.40 USD beside the bars alone, 95 % −30.00 to +5.00."
        job_table.end_job(database, row["id"], "running", "done", f"{says} And more.")
        told = client.get("/").get_data(as_text=True)
        assert says in told and "And more" not in told


@pytest.mark.journey
def test_a_real_desk_is_told_what_its_agents_were_worth(lived: Lived, tmp_path: Path) -> None:
    setup = lived.setup
    item = setup.instance
    profile_file(tmp_path, setup.profile)
    desk_file(tmp_path, {"symbol": item.symbol, "timeframes": item.timeframes})
    (subject,) = live.subjects(tmp_path, load_desk(tmp_path))
    paths = listing.paths(lived.database, subject)
    assert paths.money is not None and paths.trades > 0
    # ticks of another setting, which the job has counted, are not in the comparison
    says = worth.run(tmp_path, {"ticks": 10_000}, told).says
    ticks = f"{paths.ticks:,} ticks in mode {setup.profile.agents.mode}"
    amount = f"{figures.plain(abs(paths.money), 2)} USD at the same mean size over {ticks}"
    assert says.startswith("The bars alone ")
    assert f": the agents {'cost' if paths.money < 0 else 'earned'} {amount}" in says
