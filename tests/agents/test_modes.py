"""A mode is a row: what the row says happens, and nothing else in the program knows modes apart."""

from __future__ import annotations

import ast
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from pydantic import ValidationError

import agent_config
from agent_config import GATE_ID, MODES, VENDORS, AgentSettings, Mode, StagePlan
from agent_framework import check_desk, deliberate
from agents.contracts import SourceType
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles.scripted import FULL_FEATURES, Scripted, context, debate, reporting, settings
from tests.house.test_floors import MODULES
from torra.config import ROOT
from torra.providers.prices import PriceList
from torra.tick.degradation import UNASKED, ladder, tick_worst_case

SOURCE = (ROOT / "agent_config.py").read_text(encoding="utf-8")

SHORT = Mode(
    seats=("key_levels", "momentum", GATE_ID),
    stages=(
        StagePlan("levels_and_momentum", ("analyst",), 0.30),
        StagePlan("gate", ("gate",), 0.90, sees=("analyst",)),
    ),
    below="budget",
    complete="AGENT_CUSTOM",
    says="two analysts and the gate",
    asks="two analysts are asked",
    second_look=True,
    evidence={"momentum": ("scores.", "technical.rsi14")},
)
"""A desk that nobody ships."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> AgentSettings:
    monkeypatch.setitem(MODES, "short", SHORT)
    return settings().agents.model_copy(update={"mode": "short"})


def in_mode(agents: AgentSettings) -> agent_config.DebateSettings:
    return settings().model_copy(update={"agents": agents})


# --- what a row says happens ----------------------------------------------------------------------


def test_the_seats_of_a_row_are_asked_in_order_each_in_its_share(short: AgentSettings) -> None:
    assert check_desk(short) == SHORT.seats
    provider = Scripted()
    record = deliberate(
        context(features=FULL_FEATURES),
        in_mode(short),
        provider.submit,
        monotonic=lambda: 100.0,
        deadline=110.0,
    )
    assert [told.agent_id for told in record.reports] == list(SHORT.seats)
    assert record.source_type is SourceType(SHORT.complete)
    assert [(row["name"], sorted(row["agents"])) for row in record.stages] == [
        ("levels_and_momentum", ["key_levels", "momentum"]),
        ("gate", [GATE_ID]),
    ]
    asked = {request.role.id: request for request in provider.requests}
    limits = {name: round(request.limit_s, 6) for name, request in asked.items()}
    assert limits == {"key_levels": 3.0, "momentum": 3.0, GATE_ID: 9.0}
    seen = [name for name in asked["momentum"].features if not name.startswith("scores.")]
    assert seen == ["technical.rsi14"], "a row narrows what a seat sees"
    assert any(name.startswith("technical.") for name in asked["key_levels"].features)


@pytest.mark.parametrize("looks", [True, False])
def test_a_row_says_whether_there_is_a_second_look(
    short: AgentSettings, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODES, "short", replace(SHORT, second_look=looks))
    provider = Scripted({"momentum": reporting(confidence="low")})
    debate(provider, about=context(features=FULL_FEATURES), config=in_mode(short))
    asked = [request.role.id for request in provider.requests]
    assert asked.count("momentum") == (2 if looks else 1)


def test_the_ladder_goes_down_the_rows(
    short: AgentSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODES, "short", replace(SHORT, below="full"))
    assert [degradation_level.name for degradation_level in ladder(short)] == [
        "short",
        "full",
        "budget",
        UNASKED,
    ]
    custom = short.model_copy(update={"active_agents": ("technical",)})
    assert [degradation_level.name for degradation_level in ladder(custom)] == ["custom", UNASKED]


def test_every_row_can_be_seated_and_walked() -> None:
    for name, row in MODES.items():
        agents = AgentSettings(mode=name)
        assert check_desk(agents) == row.seats
        asked = [kind for stage in row.stages for kind in stage.kinds]
        assert {AGENTS[seat].role.kind for seat in row.seats} == set(asked)
        assert len(asked) == len(set(asked)), "a seat has one turn"
        assert row.stages[-1].kinds[-1] == "gate"
        assert row.below in {"", *MODES}
        assert all(0.0 < stage.share < 1.0 for stage in row.stages)
        assert SourceType(row.complete)
        assert next(each.mode for each in agents.ladder()) == name


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("mode", MODES)
def test_each_rung_below_a_mode_has_a_smaller_worst_case(mode: str, vendor: str) -> None:
    """A dearer level never runs: a desk that cannot pay the one above falls through it."""
    desk = AgentSettings(mode=mode, provider=vendor)
    costs = [
        tick_worst_case(PriceList(), degradation_level.settings, lambda _: False)
        for degradation_level in ladder(desk)
        if degradation_level.calls_models
    ]
    assert all(dear > cheap > 0.0 for dear, cheap in pairwise(costs)), costs


def test_a_new_row_is_a_mode_that_a_profile_may_name(monkeypatch: pytest.MonkeyPatch) -> None:
    row = '    "short": Mode(("technical", GATE_ID), THREE_STAGES, "", "AGENT_CUSTOM", "", ""),'
    changed = SOURCE.replace('\n}\n"""The desks', f'\n{row}\n}}\n"""The desks')
    assert changed != SOURCE
    module = types.ModuleType("agent_config_with_a_row")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(changed, "agent_config.py", "exec"), vars(module))
    assert module.AgentSettings(mode="short").desk() == ("technical", GATE_ID)
    with pytest.raises(ValidationError, match="'budget', 'full', 'firm', 'swarm' or 'short'"):
        module.AgentSettings(mode="shorter")


# --- nothing else knows modes apart ---------------------------------------------------------------


MODE = re.compile(r"\bmode\b")
NAME = re.compile("|".join(map(re.escape, MODES)))
"""A source with neither of what is looked for need not be read as Python, which takes seconds."""


def known_apart(source: str) -> Iterator[int]:
    """Yield the lines that compare a mode with a name, or that key or list on two modes and more.

    One name may be another thing: an arm, a reason, the word for all of something.
    """
    if not (MODE.search(source) or len({*NAME.findall(source)}) > 1):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = any(is_mode(side) for side in sides)
            if named and any(names_in([side]) for side in sides):
                yield node.lineno
        elif isinstance(node, ast.Dict):
            if len(names_in([key for key in node.keys if key])) > 1:
                yield node.lineno
        elif isinstance(node, ast.Tuple | ast.List | ast.Set) and len(names_in(node.elts)) > 1:
            yield node.lineno


def is_mode(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "mode") or (
        isinstance(node, ast.Name) and node.id == "mode"
    )


def names_in(nodes: list[ast.expr]) -> set[str]:
    found = (
        item.value for node in nodes for item in ast.walk(node) if isinstance(item, ast.Constant)
    )
    return {value for value in found if isinstance(value, str) and value in MODES}


@pytest.mark.journey
def test_no_other_module_knows_modes_apart() -> None:
    """Who goes by the name of a mode should ask its row instead."""
    lines = {
        str(path): sorted(known_apart(path.read_text(encoding="utf-8")))
        for name, path in MODULES.items()
        if name != "agent_config"
    }
    assert {path: found for path, found in lines.items() if found} == {}


@cases(
    "source",
    [
        "if settings.mode == 'full': pass",
        "wide = mode in ('full',)",
        "NAMES = {'budget': 1, 'full': 2}",
        "MODES = ('budget', 'full')",
        "def f(mode: Literal['budget', 'full']): ...",
    ],
)
def test_it_would_be_seen(source: str) -> None:
    assert list(known_apart(source))
