"""Profiles: mistakes are refused with place and remedy, and the pages say what the code does."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_config import GATE_ID, MODELS, MODES, AgentSettings
from tests.cases import cases
from torra.config import (
    ROOT,
    Channel,
    DeskSettings,
    Profile,
    SymbolSpec,
    home,
    load_desk,
    load_profile,
    read,
    validate,
)
from torra.errors import ConfigError
from torra.profiles.fields import flat, place_of

DEFAULT: dict[str, Any] = json.loads(Profile().model_dump_json())


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = generator()


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    values = copy.deepcopy(DEFAULT)
    section = values
    for name in path[:-1]:
        section = section[name]
    section[path[-1]] = value
    return values


LEAVES = flat(DEFAULT)
NUMBERS = [path for path, value in LEAVES.items() if type(value) in (int, float)]


def refusal(values: object) -> str:
    with pytest.raises(ConfigError) as caught:
        validate(Profile, values, "mine.json")
    return str(caught.value)


# --- what is refused ------------------------------------------------------------------------------


@cases(
    ("values", "place", "near"),
    [
        ({"treshholds": {}}, "treshholds", "thresholds"),
        ({"risk": {"risk_per_trade": 1.0}}, "risk.risk_per_trade", "risk_per_trade_pct"),
        ({"agents": {"debate_round": 2}}, "agents.debate_round", "debate_rounds"),
        ({"gate": {"max_spread": 0.1}}, "gate.max_spread", "max_spread_atr"),
        ({"execution_": "off"}, "execution_", "execution"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_one(
    values: dict[str, Any], place: str, near: str
) -> None:
    assert refusal(values) == f"mine.json: unknown key {place}; did you mean {near}?"


def test_a_key_like_no_other_is_named_without_a_guess() -> None:
    assert refusal({"zzzzqqqq": 1}) == "mine.json: unknown key zzzzqqqq"


@cases("path", NUMBERS, ids=".".join)
@cases("wrong", ["1", True, None, [], {}, float("nan"), float("inf")], ids=repr)
def test_a_number_is_a_finite_number_and_nothing_else(path: tuple[str, ...], wrong: Any) -> None:
    message = refusal(changed(path, wrong))
    assert f"mine.json: {'.'.join(path)}" in message
    assert repr(wrong)[:60] in message


@cases(
    ("path", "wrong"),
    [
        ("thresholds.buy", 0.0),
        ("agents.mode", "quick"),
        ("agents.active_agents", ["technical"] * 9),
        ("agents.active_agents", [1]),
        ("markov.cut_points", [-0.4, -0.15, 0.4]),
        ("markov.cut_points", [-0.4, 0.15, -0.15, 0.4]),
        ("timeframe_weights.H2", 0.5),
    ],
)
def test_what_is_outside_its_limits_is_named_with_its_place(path: str, wrong: Any) -> None:
    message = refusal(changed(tuple(path.split(".")), wrong))
    assert message.startswith("mine.json: ")
    assert path.split(".", maxsplit=1)[0] in message


def test_no_weight_at_all_is_refused() -> None:
    values = {"sentiment_weights": dict.fromkeys(DEFAULT["sentiment_weights"], 0)}
    assert "at least one weight must be positive" in refusal(values)


def test_a_symbol_wants_all_its_conditions() -> None:
    assert "mine.json: symbols.US500.tick_size" in refusal({"symbols": {"US500": {"digits": 2}}})


def test_several_mistakes_are_told_at_once() -> None:
    message = refusal({"risks": {}, "thresholds": {"buy": "high"}})
    assert "unknown key risks; did you mean risk?" in message
    assert "thresholds.buy" in message


@pytest.mark.parametrize("whole", [[], 1, "profile", None])
def test_a_profile_is_an_object(whole: object) -> None:
    assert "mine.json: the whole file" in refusal(whole)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"{'risk': {}}", "is not JSON"),
        (b'{"risk": {},}', "is not JSON"),
        (b'{"thresholds": {"buy": NaN}}', "thresholds.buy"),
        (b'{"thresholds": {"buy": 1e999}}', "thresholds.buy"),
        (b"\xff\xfe\x00", "cannot read"),
        (b'{"thresholds": {"buy": 0.5, "buy": 0.1}}', "the key buy stands twice"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=message) as caught:
        read(Profile, path)
    assert str(path) in str(caught.value)


def test_a_missing_profile_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no profile gold: put gold\.json into .*profiles"):
        load_profile("gold", tmp_path)
    with pytest.raises(ConfigError, match=r"cannot read .*gone\.json"):
        load_profile(tmp_path / "gone.json", tmp_path)
    with pytest.raises(ConfigError, match="cannot read"):
        load_profile(tmp_path, tmp_path)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists))
def test_whatever_stands_there_is_read_or_refused(value: Any) -> None:
    for path in (("risk",), ("agents", "mode"), ("markov", "cut_points"), ("symbols", "EURUSD")):
        try:
            validate(Profile, changed(path, value), "mine.json")
        except ConfigError as error:
            assert path[0] in str(error)  # noqa: PT017 - most values are refused, some are not


# --- what is read ---------------------------------------------------------------------------------


def test_a_home_profile_wins_over_a_shipped_one_and_may_carry_a_mark(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "default.json").write_bytes(b'\xef\xbb\xbf{"thresholds": {"buy": 0.6}}')
    assert load_profile("default", tmp_path).thresholds.buy == 0.6
    assert load_profile("default", tmp_path / "elsewhere") == Profile()
    assert load_profile(folder / "default.json", tmp_path / "elsewhere").thresholds.buy == 0.6


def other(value: Any) -> list[Any]:
    """Return values that a leaf might take instead; at least one of them is valid."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 0.9, value * 0.5, value - 1]
    if isinstance(value, list):
        numbers = [item * 0.5 for item in value if not isinstance(item, str)]
        return [["technical"], ["CHF"], ["finnhub"], ["google"], numbers]
    words = (
        "full",
        "anthropic",
        "pivotal",
        "rendered",
        "approve",
        "reverse",
        "gold",
        "fx",
        "never",
        "shadow",
        "high",
        "on",
        "model",
        "openings",
        "veto",
        "off",
        "flat",
    )
    return [word for word in (*words, "X") if word != value]


FILE = ("news", "file")
"""It is refused where nothing reads it."""


@cases("path", [path for path in LEAVES if path != FILE], ids=".".join)
def test_the_digest_changes_with_any_value(path: tuple[str, ...]) -> None:
    for value in other(LEAVES[path]):
        try:
            profile = validate(Profile, changed(path, value), "mine.json")
        except ConfigError:
            continue
        assert profile.digest() != Profile().digest()
        return
    pytest.fail(f"no other value of {path} was tried")


def test_the_digest_is_of_values_and_not_of_how_they_are_written() -> None:
    assert Profile().digest() == validate(Profile, DEFAULT, "x").digest()
    assert Profile().digest() == validate(Profile, {"risk": {"capital": 10000}}, "x").digest()
    assert re.fullmatch(r"[0-9a-f]{16}", Profile().digest())


def test_settings_cannot_be_changed_once_read() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Profile().thresholds.buy = 0.9  # type: ignore[misc]


def test_a_symbol_without_conditions_names_the_remedy() -> None:
    assert isinstance(Profile().symbol("EURUSD"), SymbolSpec)
    with pytest.raises(ConfigError, match=r"add symbols\.US500 to it"):
        Profile().symbol("US500")


def test_the_gate_sits_at_every_desk_and_last() -> None:
    assert AgentSettings().desk() == MODES["budget"].seats
    named = AgentSettings(active_agents=("risk_gate", "technical", "technical"))
    assert named.desk() == ("technical", GATE_ID)
    assert AgentSettings(provider="anthropic").model("any", "deep") == MODELS["anthropic"]["deep"]
    assert AgentSettings(quick_think_model="mine").model("any", "quick") == "mine"


def test_the_overlay_gets_its_part_of_the_profile() -> None:
    part = Profile().debate()
    assert part.agents == Profile().agents
    assert part.gate == Profile().gate


# --- the desk file --------------------------------------------------------------------------------


def test_a_home_without_a_desk_file_has_the_shipped_desk(tmp_path: Path) -> None:
    assert load_desk(tmp_path) == DeskSettings()
    assert load_desk(tmp_path).instance("BTCUSD").timeframes == ("M15", "H1")


def test_a_desk_file_is_read_and_its_timeframes_put_in_order(tmp_path: Path) -> None:
    rows = [{"symbol": "XAUUSD", "timeframes": ["H1", "M15", "H1"], "name": "gold"}]
    (tmp_path / "desk.json").write_text(json.dumps({"instances": rows}))
    desk = load_desk(tmp_path)
    assert desk.instance("gold").timeframes == ("M15", "H1")
    assert desk.instance("XAUUSD").shortest == "M15"
    with pytest.raises(ConfigError, match="no instance US500; it has gold"):
        desk.instance("US500")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "instances"),
        ([{}], "symbol"),
        ([{"symbol": "../x"}], "letters, digits"),
        ([{"symbol": "X", "profile": "../secret"}], "letters, digits"),
        ([{"symbol": "X", "timeframes": ["M7"]}], "unknown timeframe 'M7'; known: M1"),
        ([{"symbol": "X", "timeframes": []}], "timeframes"),
        ([{"symbol": "X"}, {"symbol": "X"}], "same name"),
        ([{"symbol": "X", "feed": "live"}], "feed"),
        ([{"symbol": "X", "brige": "paper"}], "unknown key instances.0.brige"),
    ],
)
def test_a_wrong_desk_file_is_refused(tmp_path: Path, rows: list[Any], message: str) -> None:
    (tmp_path / "desk.json").write_text(json.dumps({"instances": rows}))
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        load_desk(tmp_path)
    assert "desk.json" in str(caught.value)


def test_the_home_comes_from_the_environment() -> None:
    assert home({"TORRA_HOME": "/srv/torra"}) == Path("/srv/torra")
    assert home({"TORRA_HOME": ""}) == Path("torra_home")
    assert "~" not in str(home({"TORRA_HOME": "~/torra"}))


# --- the pages ------------------------------------------------------------------------------------


def test_the_shipped_profile_is_the_default() -> None:
    path = ROOT / "profiles" / "default.json"
    assert path.read_text(encoding="utf-8") == GENERATE.render_default_profile()
    assert read(Profile, path) == Profile()


def test_the_page_is_what_the_code_writes() -> None:
    page = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
    assert page == GENERATE.render_profile_docs(), "write the page anew: see its last line"


def test_the_page_has_one_row_with_a_meaning_for_every_key() -> None:
    rows = re.findall(
        r"^\| `([\w.]+)` \| .+ \| ([^|]+) \| ([^|]+) \|$",
        GENERATE.render_profile_docs(),
        re.MULTILINE,
    )
    documented = [name for name, _, _ in rows]
    expected = set(GENERATE.keys()) | {f"symbols.SYMBOL.{name}" for name in SymbolSpec.model_fields}
    assert expected <= set(documented)
    assert len(documented) == len(set(documented))
    assert all(limits.strip() and meaning.strip() for _, limits, meaning in rows)


def test_every_setting_of_a_channel_is_documented() -> None:
    page = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
    for name in Channel.model_fields:
        assert f"| `channels.NAME.{name}` |" in page, name


@pytest.mark.parametrize("name", ["execution.a.b", "record_score.x.y", "on_opposite.a.b.c"])
def test_a_name_below_a_plain_setting_is_a_place_that_the_check_refuses(name: str) -> None:
    section, _, rest = name.partition(".")
    assert place_of(DEFAULT, name) == (section, rest)
