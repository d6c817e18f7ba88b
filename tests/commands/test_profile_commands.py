"""`torra profile`: what the command line shows, changes and puts on record."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agent_config import MODES, AgentSettings
from tests.worlds import stores
from torra.clock import System
from torra.commands.options import on_terminal
from torra.commands.profile import profile
from torra.config import Profile, load_desk
from torra.desk.models.expected_cost import CostBasis, sentence
from torra.profiles.fields import described
from torra.profiles.guard import LOOSENS
from torra.providers.prices import PriceList
from torra.replay.changed.last_days import NO_TICK
from torra.store import audit as audit_chain


@pytest.fixture
def home(tmp_path: Path) -> Path:
    stores.open_database(tmp_path, now=System().real_now).close()
    return tmp_path


def call(home, *words, given=None):
    return CliRunner().invoke(profile, [str(word) for word in words], obj=home, input=given)


def told(home, *words):
    answer = call(home, *words, "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def record(home):
    with closing(stores.open_database(home, now=System().real_now)) as database:
        return audit_chain.audit_entries(database, limit=9)


def test_a_setting_is_set_and_on_record(home: Path) -> None:
    words = ("risk.max_positions", 2, "markov.cut_points", "-0.5,-0.1,0.1,0.5")
    document = told(home, "set", "default", *words)
    assert document["last_days"] == [], "what loosens nothing of the agents has no days beside it"
    assert [(row["place"], row["after"], row["way"]) for row in document["changes"]] == [
        ("markov.cut_points", [-0.5, -0.1, 0.1, 0.5], ""),
        ("risk.max_positions", 2, "tightens"),
    ]
    (entry,) = record(home)
    assert (entry["actor"], entry["action"], entry["target"], entry["outcome"]) == (
        "command line", "profile.set", "default", "done",
    )  # fmt: skip
    assert json.loads(entry["after"])["risk.max_positions"] == 2


AGENTS = [
    ("agents.influence", "shadow"),
    ("agents.influence", "earned"),
    ("agents.mode", "full"),
    ("agents.active_agents", '["technical"]'),
    ("agents.outage_size", 0.3),
    ("agents.none_cost", 0.2),
    ("agents.quorum", 2),
]
"""What decides how much agents count, each loosened."""


@pytest.mark.parametrize(("name", "value"), AGENTS)
def test_how_much_agents_count_is_asked_with_the_last_days_beside(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    refused = call(home, "set", "default", name, value)
    assert (refused.exit_code, refused.stderr) == (
        2, f"{NO_TICK}\ntorra: this loosens {name}: add --yes if you mean it\n",
    )  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr("torra.commands.profile.on_terminal", lambda: True)
        asked = call(home, "set", "default", name, value, given="n\n").output
    (change,) = [line for line in asked.splitlines() if line.startswith(name)]
    assert change.endswith("(loosens)") and NO_TICK in asked.splitlines()
    assert record(home) == []
    document = told(home, "set", "default", name, value, "--yes")
    assert document["changes"][0]["way"] == "loosens"
    assert document["last_days"] == [NO_TICK]
    back = call(home, "undo", "default", 1, "--yes").output
    direction = "loosens" if "any" in LOOSENS[name] else "tightens"
    assert f"({direction})" in back
    assert (f"note: {NO_TICK}" in back) == (direction == "loosens")


PAID = ("agents.mode", "swarm", "agents.provider", "google", "agents.influence", "full")


def test_what_agents_are_expected_to_cost_is_told_before_a_change_is_made(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = [item for item in load_desk(home).instances if item.profile == "default"]
    estimate = CostBasis.of(None, users, PriceList(), {})
    wanted = Profile().with_agents(mode="swarm", provider="google")
    said = f"note: {sentence(estimate.expected(wanted))}"
    with monkeypatch.context() as patch:
        patch.setattr("torra.commands.profile.on_terminal", lambda: True)
        asked = call(home, "set", "default", *PAID, given="n\n").output
        paid = call(home, "set", "default", "agents.provider", "google", given="n\n")
    assert paid.exit_code == 2 and paid.output.index("expected to cost") < paid.output.index(
        "Go on?"
    )
    assert said in asked.splitlines()
    assert asked.index(said) < asked.index("Go on?") and record(home) == []
    # what asks for no yes is told too, before it is saved
    saved = call(home, "set", "default", "agents.provider", "anthropic")
    (line,) = [line for line in saved.stdout.splitlines() if "is expected to cost" in line]
    assert saved.stdout.index(line) < saved.stdout.index("is saved as entry")
    document = told(home, "set", "default", "agents.provider", "google")
    assert sum("is expected to cost" in text for text in document["warnings"]) == 1
    # what changes no cost is told none
    assert "expected to cost" not in call(home, "set", "default", "risk.max_positions", 2).output
    same = call(home, "set", "default", "agents.quorum", 4).output
    assert "is saved as entry" in same and "expected to cost" not in same
    strange = call(home, "set", "default", "agents.quick_think_model", "gemini-99").output
    assert "no cost is expected: google:gemini-99 has no price" in strange


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2)])
def test_a_person_at_a_terminal_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr("torra.commands.profile.on_terminal", lambda: True)
    asked = call(home, "set", "default", "risk.max_positions", 5, given=answer)
    assert asked.exit_code == code
    assert "This loosens what guards the account:\nrisk.max_positions: 3 -> 5" in asked.output
    assert (home / "profiles").exists() == (code == 0)


def test_an_object_comes_and_goes(home: Path) -> None:
    call(home, "set", "default", "timeframe_weights.M5", 0.1, "agents.role_models.technical", "m")
    values = told(home, "show", "default")["values"]
    assert values["timeframe_weights"] == {"M15": 0.4, "H1": 0.6, "M5": 0.1}
    assert values["agents"]["role_models"] == {"technical": "m"}
    call(home, "set", "default", "--unset", "timeframe_weights.M5")
    assert "M5" not in told(home, "show", "default")["values"]["timeframe_weights"]
    spec = json.dumps(values["symbols"]["XAUUSD"])
    told(home, "set", "default", "symbols.XAU.m", spec, "--yes")
    told(home, "set", "default", "symbols.XAU.m.digits", 3, "--yes")
    assert told(home, "show", "default")["values"]["symbols"]["XAU.m"]["digits"] == 3


@pytest.mark.parametrize("mode", ["swarm", "firm"])
def test_a_mode_that_earns_its_influence_says_so(home: Path, mode: str) -> None:
    said = call(home, "set", "default", "agents.mode", mode, "--yes").output
    also = {"firm": "agents.timeout_seconds to 30.0", "swarm": "agents.quorum to 0"}[mode]
    assert f"note: Mode {mode} also changes agents.influence to earned and {also}." in said
    assert f"A {mode} earns its influence first; agents.influence full lets it count now." in said
    again = call(home, "set", "default", "agents.influence", "full", "--yes").output
    assert "earns its influence" not in again


def test_every_profile_is_listed_a_broken_one_too(home: Path) -> None:
    (home / "profiles").mkdir()
    (home / "profiles" / "mine.json").write_text("{")
    rows = {row["profile"]: row for row in told(home, "show")["profiles"]}
    users = {name: [use["instance"] for use in row["users"]] for name, row in rows.items()}
    assert (users["default"], users["demo_approve"]) == (["BTCUSD"], ["EURUSD"])
    assert (rows["mine"]["differences"], rows["mine"]["users"]) == (None, [])
    assert "broken  nobody" in call(home, "show").output
    answer = call(home, "show", "mine")
    assert (answer.exit_code, "is not JSON" in answer.stderr) == (2, True)


def test_a_broken_profile_is_put_back_from_its_history(home: Path) -> None:
    good = told(home, "set", "default", "risk.max_positions", 2)["digest"]
    (home / "profiles" / "default.json").write_text("{")
    answer = call(home, "show", "default")
    assert "`torra profile undo default 2` puts back" in answer.stderr
    assert told(home, "undo", "default", 2)["digest"] == good


def test_the_words_of_a_mode_name_what_it_sets() -> None:
    told_of = described(AgentSettings)["mode"].description or ""
    for mode, row in MODES.items():
        _, found, said = told_of.partition(f"{mode} also sets" if mode == "firm" else f", {mode}")
        assert bool(found) == bool(row.defaults), mode
        for name, value in row.defaults.get("agents", {}).items():
            assert f"{name} {value:g}" in said if name != "influence" else f"{name} {value}" in said


def test_a_closed_standard_input_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert not on_terminal()
