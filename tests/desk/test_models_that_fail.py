"""A desk whose models answer nothing usable says so everywhere, once, and says when it is over.

The desk asks the real SDK at a server of the tests; its closes come by hand, as many as an
accelerated desk sees in 75 seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests import ROOT
from tests.doubles import vendor_line
from tests.doubles.page_reader import Page
from tests.doubles.vendor_server import ANTHROPIC, Reply, VendorServer
from tests.doubles.visitors import open_app
from tests.worlds import desks, told
from tests.worlds.homes import desk_file, profile_file
from torra.commands.command_line import main
from torra.config import DeskSettings, NoticeSettings, Profile, validate
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.notices.watching import SLOWLY, Watcher
from torra.store import ledger as ledger_table
from torra.store import notices as notice_table

GARBAGE = Reply(text="I would rather not say.")
LOOKS = 5
"""Looks of the watcher in 75 seconds."""

UNREAD = (
    "0 of its newest {} calls usable: the model answered, but not in the form that was asked for"
)
FAILING = [
    f"anthropic claude-haiku-5-5: {UNREAD.format(10)}",
    f"anthropic claude-sonnet-5-5: {UNREAD.format(20)}",
]


@dataclass
class Asking:
    """A desk that asks, what tells of it, and its vendor."""

    home: Path
    desk: Any
    server: VendorServer
    environment: dict[str, str]
    clock: told.Clock
    watcher: Watcher

    def live(self) -> None:
        """Live through 75 seconds: a close and a look at each quarter of a minute."""
        for _ in range(LOOKS):
            desks.step(self.desk)
            self.clock.pass_by(timedelta(seconds=SLOWLY))
            self.watcher.look()
            self.desk.database.show_life(None)

    def command(self, *words: str) -> Any:
        return CliRunner().invoke(main, ["--home", str(self.home), *words], env=self.environment)

    def page(self, address: str) -> Page:
        settings = DeskSettings(instances=(desks.EUR,))
        view = DatabaseView(self.desk.database, settings, self.desk)
        backing = PageContext(self.home, self.desk.database, settings, self.desk, self.environment)
        answer = open_app(view, backing=backing).test_client().get(address)
        assert answer.status_code == 200
        return Page(answer.text)

    def notices(self) -> list[tuple[str, str]]:
        return [
            (row["kind"], row["title"]) for row in notice_table.notices(self.desk.database, 50)
        ][::-1]


FAILING_BANNER = 4
"""Its place among the banners."""


def first_line(page: Page) -> str:
    """Return what the first banner of a page says of models, "" where it says something else."""
    banners = [one for one in page.all("p") if str(one.get("class")).startswith("banner ")]
    shown = [place for place, one in enumerate(banners) if "hidden" not in one]
    told = page.text.partition("✕ MODELS FAIL ")[2].partition(" . Where agents count")[0]
    return told if shown[:1] == [FAILING_BANNER] else ""


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    values = {"agents": vendor_line.agents(ANTHROPIC, timeout_seconds=60.0).model_dump()}
    profile = validate(Profile, values, "a test")
    profile_file(tmp_path, profile, "mine")
    row = {"symbol": "EURUSD", "timeframes": ["H1"], "feed": "sample", "profile": "mine"}
    desk_file(tmp_path, row)
    with VendorServer({"*": GARBAGE}) as server:
        environment = vendor_line.environment(server)
        with vendor_line.Line(environment, profile.agents) as line:
            desk = desks.working_desk(
                tmp_path, (desks.EUR,), profile=profile, provider=line.provider
            )
            clock = told.Clock()
            watcher = Watcher(
                desk.database,
                NoticeSettings(),
                lambda: desks.profiles(desk),
                lambda: clock,
                list,
            )
            yield Asking(tmp_path, desk, server, environment, clock, watcher)
            desk.close()


def test_a_desk_that_hears_nothing_usable_says_so_and_says_when_it_is_over(
    asking: Asking,
) -> None:
    asking.live()
    asked = len(asking.server.exchanges)
    assert asked >= 20
    doctor = asking.command("doctor")
    assert doctor.exit_code == 1
    errors = [line for line in doctor.output.splitlines() if line.startswith("ERROR")]
    assert [line.split("  ->")[0].split(maxsplit=2)[2] for line in errors] == FAILING
    assert all("  -> " in line for line in errors)
    assert [kind for kind, _ in asking.notices()] == ["models_failing"]
    assert first_line(asking.page("/")) == "; ".join(FAILING)
    assert f"; {UNREAD.format(10)}  -> " in asking.command("models").output
    assert "✕ fails 0 of its newest 10 calls usable" in asking.page("/models").text
    health = asking.page("/health").text
    assert f"claude-sonnet-5-5: {UNREAD.format(20)}" in health

    asking.server.play({})
    asking.live()
    doctor = asking.command("doctor")
    assert doctor.exit_code == 0, doctor.output
    assert "ERROR" not in doctor.output
    assert [kind for kind, _ in asking.notices()] == ["models_failing", "models_well"]
    assert first_line(asking.page("/")) == ""
    assert "✕ fails" not in asking.page("/models").text
    asking.live()
    assert len(asking.notices()) == 2


def test_before_the_first_call_nothing_fails_and_nothing_is_well(asking: Asking) -> None:
    doctor = asking.command("doctor")
    assert doctor.exit_code == 0, doctor.output
    assert "claude-haiku-5-5: not asked yet" in doctor.output
    assert first_line(asking.page("/")) == ""
    assert asking.page("/models").text.count("not asked yet") >= 2
    asking.watcher.look()
    assert asking.notices() == []


TRIALS = {
    "tick": "tick EURUSD H1 --profile mine --as-of 2021-11-10T12:00:00Z",
    "test": "models --test anthropic",
    "replay": f"replay EURUSD --bars {ROOT / 'sample_data' / 'EURUSD_H1.csv'} --profile mine "
    "--provider anthropic --max-cost 9 --arms l1,budget --from 2017-11-08T10:00 "
    "--to 2017-11-08T14:00 --workers 1",
}


@pytest.mark.parametrize("name", TRIALS)
def test_what_a_person_tries_is_no_call_of_the_desk(name: str, asking: Asking) -> None:
    done = asking.command(*TRIALS[name].split())
    assert asking.server.exchanges, done.output
    assert (
        ledger_table.newest_calls(asking.desk.database, ["claude-haiku-5-5", "claude-sonnet-5-5"])
        == []
    )


def test_a_start_begins_the_judging_anew(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path)
    assert notice_table.notice_cursor(desk.database, "calls") is None
    desks.open_for_work(desk)
    assert notice_table.notice_cursor(desk.database, "calls") is not None
    desk.close()
