"""The price forecast is evidence only: no score, veto, action, level or size is made of it.

Agents may read it and say what they think; that is what it is for. What code decides must not
change with it: shown on ticks whose agents do not look at it, and by what the sources mention.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from agents.contracts import VECTORS, Request
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles import scripted
from tests.worlds import desks
from torra.config import ROOT, Profile, validate
from torra.evidence import feature_bundle
from torra.evidence.feature_bundle import Bundle, EvidenceInputs

FORECAST: Final = ("forecast.drift_pct", "forecast.low_pct", "forecast.high_pct")
WILD: Final = (None, 0.0, 1e9, -1e9, 1e300, 5e-324, "up", -0.0, 99.0, -99.0)
DECIDED: Final = (
    *("l1", "agents", "scores", "ungated", "low", "high", "adjustments", "ath", "composite"),
    *("consensus", "verdict", "l1_verdict", "gate", "action", "reason", "denied", "signal"),
    *("signals", "close", "atr", "memory", "regime", "source_type"),
)
"""Everything in the record of a tick that code decides, and what it decides by."""

STEPS: Final = {"budget": 10, "full": 5, "firm": 5, "swarm": 5}
"""Closes that a desk lives through; the first of them open positions."""


def opinion(request: Request) -> dict[str, Any]:
    """What an agent says that looks at the scores only: now for, now against, never the same."""
    lean = request.scores["momentum"] - request.scores["structure"]
    made = scripted.report(request, value=round(0.2 * lean, 4))
    score = "scores.momentum"
    return {**made, "evidence": [{"id": score, "value": request.features[score].value}]}


def careful(request: Request) -> dict[str, Any]:
    """A gate that looks at the scores only."""
    return scripted.ruling(request, multiplier=round(0.5 + abs(request.scores["momentum"]) / 2, 4))


def build_with(forecast: Callable[[], Mapping[str, Any]]) -> Callable[..., Bundle]:
    def build(inputs: EvidenceInputs) -> Bundle:
        made = feature_build(inputs)
        told = {n: made.features[n]._replace(value=value) for n, value in forecast().items()}
        return replace(made, features={**made.features, **told})

    return build


feature_build = feature_bundle.build


def ticks(
    folder: Path, script: Mapping[str, Any] | None, mode: str, steps: int = 0
) -> list[Mapping[str, Any]]:
    """Run a desk that opens and closes often; None for the rules provider."""
    folder.mkdir()
    words = {
        "thresholds": {"buy": 0.05, "sell": 0.05},
        "agents": {"mode": mode, "influence": "full"},
        # what agents that lean against an opening leave of it is still a lot
        "risk": {"capital": 1_000_000.0, "exposure_cap_pct": 1e6, "max_notional_pct": 1e6},
    }
    profile = validate(Profile, words, "a test")
    provider = None if script is None else scripted.Scripted(script)
    desk = desks.open_desk(folder, (desks.EUR,), profile=profile, provider=provider)
    desks.open_for_work(desk)
    records: list[Mapping[str, Any]] = []
    for _ in range(steps or STEPS[mode]):
        desks.step(desk)
        record = desk.database.latest_tick("EURUSD", "H1")
        assert record is not None
        records.append(record)
    desk.database.close()
    return records


def decided(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in DECIDED}


def forecast_of(record: Mapping[str, Any]) -> list[Any]:
    values = {row["id"]: row["value"] for row in record["features"]}
    return [values[name] for name in FORECAST]


@pytest.mark.journey
@pytest.mark.parametrize("mode", STEPS)
def test_a_wild_forecast_changes_nothing_that_is_decided(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {name: careful if name == "risk_gate" else opinion for name in AGENTS}
    true = ticks(tmp_path / "true", script, mode)
    chance = random.Random(3)
    wild = build_with(lambda: {name: chance.choice(WILD) for name in FORECAST})
    monkeypatch.setattr(feature_bundle, "build", wild)
    changed = ticks(tmp_path / "wild", script, mode)
    assert [decided(record) for record in changed] == [decided(record) for record in true]
    assert all(forecast_of(a) != forecast_of(b) for a, b in zip(true, changed, strict=True))
    actions = [record["action"] for record in true]
    assert any(action.startswith("OPEN") for action in actions), actions
    opened = next(record["signal"] for record in true if record["signal"])
    assert opened["lots"] > 0
    assert opened["stop"] != opened["entry"]
    assert any(record["adjustments"][VECTORS[0]] != 0 for record in true)


def test_agents_that_read_the_forecast_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above could not fail: the change does reach whoever looks."""
    true = ticks(tmp_path / "true", None, "budget", 1)[0]
    far = {"forecast.drift_pct": -50.0, "forecast.low_pct": -51.0, "forecast.high_pct": -49.0}
    monkeypatch.setattr(feature_bundle, "build", build_with(lambda: far))
    changed = ticks(tmp_path / "wild", None, "budget", 1)[0]
    assert changed["l1"] == true["l1"]
    assert changed["agents"] != true["agents"]


values = st.sampled_from(WILD) | st.floats(-100, 100)


# --- what the sources mention ---------------------------------------------------------------------

BARRED: Final = (
    "torra/verdict/risk_engine.py",
    "signal_bridge.py",
    "torra/bridges/**/*.py",
    "torra_trader.py",
    "instance_database.py",
    "torra/store/*.py",
    "torra/verdict/signal_states.py",
    "torra/verdict/sentiment_rules.py",
    "torra/verdict/call_policy.py",
    "torra/tick/debate.py",
    "torra/tick/record.py",
    "torra/desk/schedule.py",
    "torra/market/regime.py",
    "agent_framework.py",
    "agents/risk_gate.py",
    "agents/debate/scoring.py",
    "agents/debate/swarm.py",
    "technical_calculator.py",
    "ath_calculator.py",
    "torra/providers/rules/gate_rules.py",
)
"""The path of scores, risk and execution: nothing here speaks of a forecast, even in passing."""

SHOWN_BY: Final = re.compile(
    r"torra/evidence/feature_bundle|agents/(evidence|features|phrases)\.py|agents/\w+_(agent|researcher)|scoring_rubric"
)
"""Who may name a feature of the forecast: who makes it, and who shows it to agents or is one."""

NAMED: Final = re.compile(r"\bforecast\.|\b(drift|low|high)_pct\b|_forecast\b")

MAYBE: Final = re.compile(r"forecast|_pct")
"""What a source has somewhere that may name one; reading all of them as Python takes seconds."""


def sources() -> Iterator[tuple[str, Path]]:
    for pattern in ("*.py", "agents/*.py", "torra/**/*.py"):
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT).as_posix(), path


@cases("pattern", BARRED)
def test_the_path_of_risk_does_not_mention_it(pattern: str) -> None:
    found = list(ROOT.glob(pattern))
    assert found
    for path in found:
        assert "forecast" not in path.read_text(encoding="utf-8").lower(), path


def mentions(path: Path) -> list[str]:
    """Return the names, attributes and texts of a source that are the forecast's, no docstrings."""
    source = path.read_text(encoding="utf-8")
    if not MAYBE.search(source):
        return []
    nodes = list(ast.walk(ast.parse(source)))
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    words = [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]
    words += [node.id for node in nodes if isinstance(node, ast.Name)]
    words += [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    return [word for word in words if NAMED.search(word)]


def test_nobody_else_names_it() -> None:
    naming = {name for name, path in sources() if mentions(path)}
    assert {"torra/evidence/feature_bundle.py", "agents/evidence.py"} <= naming
    assert {name for name in naming if not SHOWN_BY.match(name)} == set()


def test_only_who_gives_an_opinion_is_shown_it() -> None:
    """The gate scales the size of a position, so it is not."""
    for agent in AGENTS.values():
        if agent.role.kind not in ("analyst", "researcher"):
            assert not any(FORECAST[0].startswith(prefix) for prefix in agent.role.evidence)
