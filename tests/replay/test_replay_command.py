"""`torra replay` and `torra ablate` as a user meets them."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from instance_database import open_home
from tests.cases import cases
from torra.commands.command_line import main
from torra.config import ROOT
from torra.desk_lock import DeskLock
from torra.errors import ConfigError
from torra.exhibits.documents import Document
from torra.jobs import priority
from torra.replay import folders, reporting, scorecard
from torra.replay.folders import made_of, seen_of
from torra.replay.shards import cores, executors

pytestmark = pytest.mark.usefixtures("scored_once")

BARS = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
PERIOD = ["--from", "2021-11-20", "--to", "2021-11-20T08:00:00Z"]
ALL = ["--bars", BARS[0], "--bars", BARS[1], *PERIOD]


def torra(home: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *words])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the replay "day"; first.json is its report before any other trial."""
    found = tmp_path_factory.mktemp("replays")
    arms = "l1,analysts,budget,placebo"
    told = torra(
        found, "replay", "btcusd", *ALL, "--arms", arms, "--name", "day", "--report",
        str(found / "day.html"),
    )  # fmt: skip
    assert told.exit_code == 0, told.output
    shutil.copy(found / "replays" / "day.json", found / "first.json")
    return found


def test_the_document_is_on_the_page_replays(home: Path) -> None:
    found = Document.model_validate_json((home / "replays" / "day.json").read_text())
    assert found.arms == (
        "l1", "analysts", "budget", "placebo_shuffled", "placebo_flipped", "placebo_random",
    )  # fmt: skip
    titles = [table.title for table in found.tables]
    assert titles[0] == "Which arms show an edge"
    assert all(table.says for table in found.tables)
    page = (home / "day.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Which arms show an edge" in page


def logged(home: Path) -> list[str]:
    log = home / "replays" / "trials.jsonl"
    return [json.loads(line)["what"] for line in log.read_text().splitlines()]


@pytest.mark.journey
def test_the_same_trial_counts_once(home: Path) -> None:
    before = logged(home)
    assert before.count("replay day") == 3
    torra(home, "replay", "BTCUSD", *ALL, "--arms", "l1,budget", "--name", "other")
    assert logged(home) == before
    torra(home, "replay", "BTCUSD", *ALL, "--arms", "l1", "--costs", "1", "--name", "cheap")
    assert logged(home) == [*before, "replay cheap"]


def test_a_recomposition_is_a_trial(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logged before it runs, counted in its own report, and once."""
    told: list[int] = []

    def counting(*arms: Any, trials: int, **rest: Any) -> Any:
        del arms, rest
        assert len(logged(home)) == trials
        told.append(trials)
        raise ConfigError("enough")

    monkeypatch.setattr(scorecard, "exhibits", counting)
    before = len(logged(home))
    words = ("ablate", "day", "--arm", "budget", "--buy")
    for level in ("0.41", "0.41", "0.42"):
        assert "enough" in torra(home, *words, level).stderr
    assert [number - before for number in told] == [1, 1, 2]
    assert logged(home)[before:] == ["recompose day budget"] * 2


def test_the_same_replay_does_not_run_twice_at_once(tmp_path: Path) -> None:
    with folders.taken(tmp_path / "replays" / "one"):
        told = torra(tmp_path, "replay", "BTCUSD", *ALL, "--arms", "l1", "--name", "one")
    assert told.exit_code == 2
    assert told.stderr.startswith("torra: the replay one is running already")
    assert not (tmp_path / "replays" / "trials.jsonl").exists()


def here_instead(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let this process do the work of others; return how many would have begun each time."""
    begun: list[int] = []

    @contextmanager
    def processes(workers: int, *_: Any) -> Iterator[Any]:
        begun.append(workers)
        found = executors.Inline()
        found.check = lambda: None  # type: ignore[attr-defined]
        yield found

    monkeypatch.setattr(executors, "processes", processes)
    return begun


@pytest.mark.journey
def test_all_processors_are_taken_and_the_report_is_that_of_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = here_instead(monkeypatch)
    monkeypatch.setattr(cores, "usable", lambda: 4)
    monkeypatch.setattr(reporting, "WORTH_PROCESSES", 0.0)
    words = ("replay", "BTCUSD", *ALL, "--arms", "l1,analysts,budget,placebo", "--name", "day")
    told = torra(tmp_path, *words)
    assert told.exit_code == 0, told.output
    assert begun == [4]
    assert alike(tmp_path / "replays" / "day.json") == alike(home / "first.json")


@pytest.mark.nightly
def test_real_processes_make_the_same_report(home: Path, tmp_path: Path) -> None:
    """By day an executor of this process does their work, and test_shards.py asks processes."""
    words = ("replay", "BTCUSD", *ALL, "--arms", "l1,analysts,budget,placebo", "--name", "day")
    told = torra(tmp_path, *words, "--workers", "2")
    assert told.exit_code == 0, told.output
    assert alike(tmp_path / "replays" / "day.json") == alike(home / "first.json")


@pytest.mark.parametrize(("least", "words"), [(1e9, []), (0.0, ["--jobs", "1"])])
def test_one_process_does_what_is_short_or_is_asked_of_one(
    least: float, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = here_instead(monkeypatch)
    monkeypatch.setattr(cores, "usable", lambda: 4)
    monkeypatch.setattr(reporting, "WORTH_PROCESSES", least)
    monkeypatch.setattr(reporting, "run", stopped)
    short = ("--from", "2021-11-20", "--to", "2021-11-20T02:00:00Z", "--arms", "l1,budget")
    told = torra(tmp_path, "replay", "BTCUSD", *ALL, *short, *words)
    assert (told.exit_code, begun) == (130, [])


def stopped(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def alike(path: Path) -> dict[str, Any]:
    """Return a document without the times in it."""
    told: dict[str, Any] = json.loads(path.read_text())
    told.pop("created_at")
    for table in told["tables"]:
        if table["name"] == "criteria":
            for row in table["rows"]:
                row[:] = [re.sub(r" within .* s$", "", str(cell)) for cell in row]
    return told


def test_who_is_no_rule_is_asked_by_one_process_only(tmp_path: Path) -> None:
    words = ("--provider", "recorded", "--arms", "l1", "--workers", "2")
    told = torra(tmp_path, "replay", "BTCUSD", *ALL, *words)
    assert told.exit_code == 2
    assert "recorded is asked from one process only" in told.stderr


def test_beside_a_desk_a_replay_leaves_it_a_processor_and_goes_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, behind = here_instead(monkeypatch), list[str]()
    monkeypatch.setattr(priority, "step_back", lambda: behind.append("lowest"))
    monkeypatch.setattr(cores, "usable", lambda: 3)
    monkeypatch.setattr(reporting, "WORTH_PROCESSES", 0.0)
    monkeypatch.setattr(reporting, "run", stopped)
    monkeypatch.setattr(reporting, "run_beside", stopped)
    words = ("replay", "BTCUSD", *ALL, "--arms", "l1,analysts,outage")
    assert " desk " not in torra(tmp_path, *words).stderr
    lock = DeskLock(tmp_path)
    assert lock.acquire()
    told = torra(tmp_path, *words)
    line = "a desk runs in this home: the replay takes 2 processors, at the lowest priority\n"
    assert told.stderr.startswith(line)
    assert (begun, behind) == ([3, 2], ["lowest"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["BTCUSD"], "name the bars with --bars FILE"),
        (["BTCUSD", "--bars", BARS[0], "--from", "2031-01-01"], "no bars of BTCUSD in that period"),
        (["BTCUSD", "--bars", BARS[0], "--costs", "cheap"], "--costs cheap: write three numbers"),
        (["BTCUSD", "--bars", BARS[0], "--provider", "anthropic"], "--max-cost USD"),
        (["BTCUSD", "--bars", BARS[0], "--name", "a/b"], "--name a/b: use letters"),
        (["BTCUSD", "--bars", BARS[0], "--timeframes", "M1"], "no M1 bars of BTCUSD"),
        (["BTCUSD", "--bars", BARS[0], "--bars", BARS[0]], "is given twice"),
        (["BTCUSD", "--bars", "store"], "holds no database yet"),
        (["BTCUSD", *ALL, "--arms", "l1", "--seed", "-1"], "'--seed': -1 is not in the range"),
        (["BTCUSD", *ALL, "--arms", "l1", "--max-cost", "nan"], "--max-cost nan: write a sum"),
        (["BTCUSD", *ALL, "--arms", "l1", "--max-cost", "inf"], "--max-cost inf: write a sum"),
        (["BTCUSD", *ALL, "--arms", "l1", "--max-cost", "-1"], "--max-cost -1: write a sum"),
        (["BTCUSD", "--bars", BARS[0], "--to", "2021-09-28"], "fewer than 210 bars of every"),
        (["BTCUSD", *ALL, "--arms", "l1", "--name", "Scorecard-default"], "begins the names of"),
    ],
    ids=[
        "no-bars", "period", "costs", "paid", "name", "timeframe",
        "twice", "store", "seed", "nan", "endless", "negative", "short", "scorecard",
    ],
)  # fmt: skip
def test_a_mistake_is_one_clear_line(words: list[str], said: str, tmp_path: Path) -> None:
    told = torra(tmp_path, "replay", *words)
    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1
    assert told.stdout == ""
    assert not (tmp_path / "replays").exists()


def test_help_names_a_page_that_there_is(tmp_path: Path) -> None:
    pages = re.findall(r"docs/\w+\.md", torra(tmp_path, "replay", "--help").stdout)
    assert pages == ["docs/replaying.md"]


@pytest.mark.journey
def test_an_interruption_says_what_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was saved is not estimated again."""
    words = ("replay", "BTCUSD", *ALL, "--arms", "l1,budget", "--name", "half")
    through = reporting.arm_exhibits

    monkeypatch.setattr(reporting, "arm_exhibits", stopped)
    told = torra(tmp_path, *words)
    assert told.exit_code == 130
    assert told.stderr.endswith("Stopped; the same command goes on from where it was.\n")
    monkeypatch.setattr(reporting, "arm_exhibits", through)
    again = torra(tmp_path, *words)
    assert "40 ticks of BTCUSD, run 2 times, 80 of 80 done\n" in again.stderr
    assert again.stdout.endswith("every table: the page /replays/half, or --report FILE.\n")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bars.csv.gz", gzip.compress(b"x" * 99)[:10] + b"\xff" * 20, "cannot read"),
        ("bars.csv.gz", b"\x1f\x8btime,open", "cannot read"),
        ("bars.csv.gz", gzip.compress(b""), "bars.csv.gz is empty"),
        ("bars.csv", b"time,open,high,low,close,volume\n2024-01-01T00:00Z,1,2,1,2,3\n", "1 bar,"),
    ],
    ids=["corrupt", "not-packed", "packed-empty", "one-bar"],
)
def test_a_file_that_holds_no_history(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    told = torra(tmp_path, "replay", "BTCUSD", "--bars", str(tmp_path / name))
    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1


def test_with_everything_kept_nothing_changes(home: Path) -> None:
    plan = made_of(home, "day")
    told = torra(home, "ablate", "day", "--arm", "analysts", "--json")
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    arms = next(table for table in document["tables"] if table["name"] == "arms")
    rows = {row[0]: row[1:] for row in arms["rows"]}
    assert rows["recomposed"] == rows["analysts"]
    assert len(seen_of(home, plan, "analysts").ticks) == 40


def test_dropping_an_analyst_of_a_desk_that_debates_is_first_order(home: Path) -> None:
    exact = torra(home, "ablate", "day", "--arm", "analysts", "--drop", "momentum", "--json")
    assert exact.exit_code == 0, exact.output
    loose = torra(home, "ablate", "day", "--arm", "budget", "--drop", "technical", "--json")
    assert loose.exit_code == 0, loose.output
    assert json.loads(loose.stdout)["warnings"][0].startswith("First order only: the ")


@pytest.mark.journey
def test_a_recomposition_names_what_it_changes(home: Path) -> None:
    words = ("--drop", "momentum", "--gate", "rules", "--buy", ".41", "--weights", "1,1,1,1,1")
    told = torra(home, "ablate", "day", "--arm", "analysts", *words)
    assert told.exit_code == 0, told.output
    title = told.stdout.splitlines()[0]
    assert title.startswith(
        "Analysts without a debate, changed (day): without momentum, gate rules, BUY 0.41, "
    )
    assert title.endswith("structure 1, ath 1")
    said = " ".join(told.stdout.split())
    assert "beside L1 with the same weights and thresholds" in said
    assert said.endswith("every table: --report FILE.")


@pytest.mark.journey
@cases(
    ("words", "said"),
    [
        (["week"], "there is no replay week"),
        (["day", "--arm", "full"], "has no arm full; it has l1"),
        (["day", "--arm", "budget", "--drop", "bull_researcher,bear_researcher"], "--no-debate"),
        (["day", "--arm", "budget", "--weights", "1,2"], "--weights 1,2: write 5"),
        (
            ["day", "--arm", "budget", "--weights", "momentm=1"],
            "5 numbers: price_action, key_levels, momentum, structure, ath",
        ),
        (["day", "--arm", "l1", "--drop", "momentum"], "no analyst of l1; it has none"),
    ],
    ids=["replay", "arm", "researchers", "weights", "named", "none"],
)
def test_a_recomposition_that_cannot_be(words: list[str], said: str, home: Path) -> None:
    told = torra(home, "ablate", *words)
    assert told.exit_code == 2
    assert said in told.stderr


def test_win_rates_are_taught_to_every_instance_of_the_symbol(tmp_path: Path) -> None:
    """The risk checks look for them under the name of the instance, not of its symbol."""
    desk = {"instances": [{"name": name, "symbol": "BTCUSD"} for name in ("CALM", "BOLD")]}
    (tmp_path / "desk.json").write_text(json.dumps(desk), "utf-8")
    told = torra(tmp_path, "replay", "BTCUSD", *ALL, "--arms", "l1", "--teach")
    assert told.exit_code == 0, told.output
    with closing(open_home(tmp_path)) as database:
        rows = database.connection()["win_rates"].rows
        assert {row["instance"] for row in rows} == {"CALM", "BOLD"}
