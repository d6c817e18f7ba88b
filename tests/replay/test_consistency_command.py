"""`torra consistency` asks the same tick again: no spread from the rules, all of a noisy desk's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from agents.contracts import Request
from tests.doubles import scripted
from torra.clock import iso, parse
from torra.commands import checking as checking_commands
from torra.config import Profile
from torra.desk.models.access import Models
from torra.errors import ConfigError, DataUnavailable
from torra.home import DATABASE
from torra.replay.rerun import consistency
from torra.replay.rerun import trial_tick as one_tick
from torra.replay.rerun.consistency import SPACING, Repeated, exhibit, plan, repeat
from torra.tick.record import TickResult

NEWEST = parse("2021-11-18T10:00:00Z")
KEY = {"ANTHROPIC_API_KEY": "sk-test-0000"}


def noisy(seed: int, size: float = 0.1) -> scripted.Scripted:
    """A desk whose analysts add to what they say a draw that the tick does not explain."""
    chance = np.random.default_rng(seed)

    def says(request: Request) -> dict[str, Any]:
        lean = 0.1 * request.scores["momentum"]
        value = round(float(np.clip(lean + chance.normal(0.0, size), -0.3, 0.3)), 4)
        return scripted.report(request, value=value)

    names = ("technical", "bull_researcher", "bear_researcher")
    return scripted.Scripted(dict.fromkeys(names, says))


def spoken_by(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Models, "provider", lambda self, settings: provider)


# --- what repeats ---------------------------------------------------------------------------------


@pytest.mark.journey
def test_the_rules_repeat_themselves_bit_for_bit(tmp_path: Path) -> None:
    heard: list[float] = []
    made = plan(tmp_path, "EURUSD", "H1", runs=2, ticks=2)
    found = repeat(made, on_run=heard.append)
    assert [len(own) for own in found.runs] == [2, 2]
    assert found.identical
    assert (found.cost_usd, found.unlike, found.stopped) == (0.0, 0, "")
    assert heard == [0.0] * 4
    closes = [own[0].close_time for own in found.runs]
    assert closes[0] - closes[1] >= SPACING * timedelta(hours=1)
    told = exhibit(found)
    assert "bit for bit" in told.says
    assert told.figures["furthest"] == 0.0
    assert told.figures["calls"] == found.calls == 4 * made.calls
    assert not told.enough


def test_the_first_line_says_where_shipped_bars_stand_in_for_the_desks(tmp_path: Path) -> None:
    assert "EURUSD H1 on the shipped bars, " in plan(tmp_path, "EURUSD", "H1").line()
    (tmp_path / "desk.json").write_text('{"instances": [{"symbol": "EURUSD", "feed": "store"}]}')
    assert "shipped" not in plan(tmp_path, "EURUSD", "H1").line()


@pytest.mark.journey
def test_noise_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken_by(noisy(1), monkeypatch)
    found = repeat(plan(tmp_path, "EURUSD", "H1", runs=3, ticks=2))
    assert not found.identical
    told = exhibit(found)
    assert told.figures["furthest"] > 0.01
    assert told.figures["within.technical.momentum"] > 0.02
    assert "bit for bit" not in told.says
    assert "technical" in told.says  # a noise source: its spread within is no less than between


def test_every_agent_is_asked_whatever_the_profile_says(tmp_path: Path) -> None:
    (tmp_path / "quiet.json").write_text(
        json.dumps({"agents": {"call_policy": "pivotal", "influence": "shadow"}})
    )
    found = repeat(
        plan(tmp_path, "EURUSD", "H1", profile=str(tmp_path / "quiet.json"), runs=2, ticks=1)
    )
    assert found.calls == 8
    assert not found.runs[0][0].shadow


def test_nothing_of_the_desk_changes(tmp_path: Path) -> None:
    repeat(plan(tmp_path, "EURUSD", "H1", runs=2, ticks=1))
    assert not (tmp_path / DATABASE).exists()


# --- with trials that are played ------------------------------------------------------------------


class Played:
    """Stands for trial_tick.run: the first real trial again and again, with changes."""

    def __init__(self, seen: TickResult, cost: float = 0.0, flags: tuple[str, ...] = ()) -> None:
        self.seen = seen
        self.cost = cost
        self.flags = flags
        self.asked: list[datetime] = []
        self.missing: Callable[[datetime], bool] = lambda _: False
        self.drifting = False

    def __call__(
        self, *_: Any, as_of: str | None, on_result: Any, **named: Any
    ) -> Mapping[str, Any]:
        moment = NEWEST if as_of is None else parse(as_of)
        if self.missing(moment):
            raise DataUnavailable("no_bar", iso(moment))
        self.asked.append(moment)
        said = self.seen.debated.deliberation
        spoken = replace(said, flags=self.flags, cost_usd=self.cost)
        debated = replace(self.seen.debated, deliberation=spoken)
        records = self.seen.inputs.records
        records = records._replace(high=records.high + len(self.asked) * self.drifting)
        inputs = replace(self.seen.inputs, as_of=moment, records=records)
        on_result(self.seen._replace(debated=debated, inputs=inputs))
        return {}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> TickResult:
    heard: list[TickResult] = []
    one_tick.run(tmp_path_factory.mktemp("home"), "EURUSD", "H1", on_result=heard.append)
    return heard[0]


def test_gaps_are_passed_over_and_the_end_of_the_history_ends_it(
    seen: TickResult, tmp_path: Path
) -> None:
    played = Played(seen)
    begin, weekend = NEWEST - timedelta(hours=80), NEWEST - timedelta(hours=20)
    played.missing = lambda at: at < begin or weekend <= at < weekend + timedelta(hours=15)
    found = repeat(plan(tmp_path, "EURUSD", "H1", runs=2, ticks=9), run=played)
    hours = sorted({(NEWEST - at) // timedelta(hours=1) for at in played.asked})
    assert hours == [0, 21, 33, 45, 57, 69]
    assert len(found.runs) == 6
    assert "no more ticks before" in found.stopped
    assert found.stopped in exhibit(found).says


def test_a_history_without_ticks_is_told(seen: TickResult, tmp_path: Path) -> None:
    played = Played(seen)
    played.missing = lambda _: True
    with pytest.raises(DataUnavailable):
        repeat(plan(tmp_path, "EURUSD", "H1"), run=played)


def test_a_run_that_saw_another_context_does_not_count(seen: TickResult, tmp_path: Path) -> None:
    played = Played(seen)
    played.drifting = True
    found = repeat(plan(tmp_path, "EURUSD", "H1", runs=3, ticks=1), run=played)
    assert ([len(own) for own in found.runs], found.unlike) == ([1], 2)
    assert "2 runs saw another context" in exhibit(found).says


def paid_plan(tmp_path: Path, most: float | None, **more: Any) -> consistency.ConsistencyPlan:
    return plan(
        tmp_path, "EURUSD", "H1", provider="anthropic", max_cost=most, environment=KEY, **more
    )


def test_a_vendor_is_asked_within_the_sum_only(seen: TickResult, tmp_path: Path) -> None:
    made = paid_plan(tmp_path, 1000.0, runs=3, ticks=2)
    assert made.paid
    assert made.calls == 4
    assert "up to 24 calls" in made.line()
    assert f"{6 * made.worst_usd:.2f} USD at the very most" in made.line()
    played = Played(seen, cost=made.worst_usd / 2)
    found = repeat(replace(made, max_cost=2.2 * made.worst_usd), run=played)
    assert len(played.asked) == 3  # 0, 0.5 and 1.0 are spent before them; 1.5 + 1 would be too much
    assert found.cost_usd == pytest.approx(1.5 * made.worst_usd)
    assert "one more run may cost" in found.stopped
    with pytest.raises(ConfigError, match="is less than one run may cost"):
        repeat(replace(made, max_cost=0.5 * made.worst_usd), run=played)


def test_a_vendor_is_not_asked_without_a_sum(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"20 ticks .* USD at the very most: say with --max-cost"):
        paid_plan(tmp_path, None)


@pytest.mark.parametrize("flag", ["budget", "ladder:budget"])
def test_a_run_on_a_smaller_desk_ends_it(flag: str, seen: TickResult, tmp_path: Path) -> None:
    found = repeat(plan(tmp_path, "EURUSD", "H1"), run=Played(seen, flags=(flag,)))
    assert found.runs == ()
    assert "no money left" in found.stopped
    assert "No tick was asked twice" in exhibit(found).says


def test_one_run_is_no_repetition() -> None:
    assert "bit for bit" not in exhibit(Repeated((), 0, 0.0)).says
    assert Repeated((), 0, 0.0).identical
    assert Profile().agents.provider == "rules"


# --- the command ----------------------------------------------------------------------------------


def run(tmp_path: Path, *words: str) -> Result:
    return CliRunner().invoke(checking_commands.consistency, [*words], obj=tmp_path)


def test_the_command_tells_one_document_and_before_it_what_it_will_do(tmp_path: Path) -> None:
    told = run(tmp_path, "eurusd", "--ticks", "1", "--runs", "2", "--json")
    assert told.exit_code == 0, told.output
    assert (
        "1 tick of EURUSD H1 on the shipped bars, 2 runs of each by rules: up to 8" in told.stderr
    )
    document = json.loads(told.stdout)
    assert document["identical"] is True
    assert len(document["runs"][0]) == 2
    assert document["figures"]["furthest"] == 0.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("XAU",), "the desk has no instance XAU"),
        (("EURUSD", "M15"), "not watched on M15"),
        (("EURUSD", "--provider", "oracle"), "agents.provider"),
        (("EURUSD", "--bars", "x.csv"), "name the timeframe"),
        (("EURUSD", "--profile", "nobody"), "nobody"),
    ],
    ids=["symbol", "timeframe", "provider", "file-without-timeframe", "profile"],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    told = run(tmp_path, *words)
    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1
