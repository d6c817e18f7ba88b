"""While models fail a desk trades smaller: by each door, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import floor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

import agent_framework
from agent_config import MODES
from agents.contracts import ModelUnavailable
from tests.cases import cases
from tests.doubles import scripted
from tests.doubles.scripted import Scripted, chart, reporting
from tests.worlds import desks
from tests.worlds.records import tick_record
from torra.clock import System
from torra.config import Instance, NoticeSettings, Profile
from torra.dashboard.trade import proposals
from torra.desk.schedule import Desk
from torra.notices.watching import Watcher
from torra.providers.prices import PriceList
from torra.store import notices as notice_table
from torra.store import replay_queries
from torra.tick.sentence import NO_AGENT

ALONE: Final = Instance(symbol="BTCUSD", timeframes=("M15",))
DOWN: Final = ModelUnavailable("error", "500")
WORDS: Final = {"budget": 2, "full": 6, "firm": 5, "swarm": 5}
PRICES: Final = {"quick": {"input": 1.0, "output": 5.0}, "deep": {"input": 2.0, "output": 10.0}}


def profile(mode: str = "budget", **changes: Any) -> Profile:
    """A profile that opens often, and large enough for a share of it to be told."""
    agents = {"mode": mode, "influence": "full", "second_look": "never"}
    return desks.eager_profile(agents, **changes)


def failing(mode: str, kind: Any = DOWN, **own: Any) -> Scripted:
    """Return a provider at which every seat of a mode fails, the fallback and the trader too."""
    seats = (*MODES[mode].seats, "trader", "chart_scorer")
    return Scripted({**dict.fromkeys(seats, kind), **own})


Run = Callable[..., Mapping[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """What runs one tick of a desk and returns its record."""
    opened: list[Desk] = []

    def one(provider: Any, settings: Profile, *, paid: bool = False) -> Mapping[str, Any]:
        folder = tmp_path / str(len(opened))
        folder.mkdir()
        desk = desks.open_desk(folder, (ALONE,), profile=settings, provider=provider)
        opened.append(desk)
        if paid:
            desks.charge(desk, PriceList(PRICES), System().real_now)
        desks.open_for_work(desk)
        desks.step(desk)
        (key,) = replay_queries.journalled(desk.database, "BTCUSD")
        record = desk.database.tick_without_calls(key)
        assert record is not None
        return record

    one.opened = opened  # type: ignore[attr-defined]
    return one


def lots(record: Mapping[str, Any]) -> float:
    """Return the size of the opening of a tick."""
    (found,) = [
        one["lots"] for one in (*record["signals"], *record["proposed"]) if one["kind"] == "open"
    ]
    return float(found)


def cut(whole: float, share: float) -> float:
    """Return a share of a size in steps of a hundredth of a lot."""
    return floor(whole * share * 100) / 100


ABSTAIN: Final = reporting(value=None, abstained=True, abstain_reason="nothing to read")


def whole(run: Run, mode: str = "budget") -> float:
    """Return the size on the same tick where agents are not to be asked at all."""
    alone = profile(mode, agents={"influence": "shadow"})
    return lots(run(failing(mode), alone))


# --- the doors ------------------------------------------------------------------------------------


@cases("mode", list(MODES))
def test_every_mode_trades_smaller_while_all_its_models_fail(run: Run, mode: str) -> None:
    record = run(failing(mode), profile(mode))
    assert record["source_type"] == "L1_ONLY" and record["flags"] == ["outage"]
    share = min(0.25, 1 / WORDS[mode])
    if mode == "firm":  # below its quorum: no debate was held
        share = 0.15 * 0.4
    # The regime of a swarm leaves a part of the size, whoever is heard.
    assert lots(record) == pytest.approx(cut(whole(run, mode), share), abs=0.011)
    assert 0.0 < lots(record) <= share * whole(run, mode)
    assert "no agent answered, and its size is cut to" in record["sentence"]


def test_a_fallback_that_answers_is_no_agent_that_was_heard(run: Run) -> None:
    provider = failing("budget", chart_scorer=lambda request: chart(request, score=0.5))
    record = run(provider, profile())
    assert record["source_type"] == "LEGACY"
    assert lots(record) <= 0.25 * whole(run)
    assert "and its size is cut to 25 %" in record["sentence"]


def test_a_ceiling_that_is_spent_is_an_outage(run: Run) -> None:
    named = {"provider": "anthropic", "quick_think_model": "quick", "deep_think_model": "deep"}
    spent = profile(agents={**named, "max_api_cost_per_hour": 0.0})
    provider = Scripted()
    record = run(provider, spent, paid=True)
    assert "budget" in record["deliberation"]["flags"] and not provider.requests
    assert record["flags"] == ["outage"] and lots(record) <= 0.25 * whole(run)


def test_threads_that_are_used_up_are_an_outage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    size = whole(run)
    monkeypatch.setattr(agent_framework, "too_many_abandoned", lambda: True)
    record = run(Scripted(), profile())
    assert "threads_exhausted" in record["deliberation"]["flags"]
    assert record["flags"] == ["outage"] and lots(record) <= 0.25 * size
    assert "no agent could be asked" in record["sentence"]


@pytest.mark.parametrize("size", [0.0, 0.1, 0.5])
def test_the_setting_says_how_small(run: Run, size: float) -> None:
    record = run(failing("budget"), profile(agents={"outage_size": size}))
    if size:
        assert lots(record) == pytest.approx(cut(whole(run), size), abs=0.011)
    else:
        assert "SIZE_ZERO" in record["denied"] and record["action"] == "HOLD"


# --- who is not cut -------------------------------------------------------------------------------


NOBODY: Final = SimpleNamespace(name="nobody", submit=None, close=lambda: None)
EXEMPT: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "nobody to ask, as in a warm-up": (NOBODY, {}),
    "shadow": (failing("budget"), {"influence": "shadow"}),
    "earned, and not earned": (failing("budget"), {"influence": "earned"}),
    "skipped": (failing("budget"), {"call_policy": "pivotal", "pivotal_sample": 0.0}),
    "all abstained": (Scripted(dict.fromkeys(MODES["budget"].seats, ABSTAIN)), {}),
    "a gate that fails": (Scripted({"risk_gate": DOWN}), {}),
}


@pytest.mark.parametrize("name", EXEMPT)
def test_where_agents_do_not_count_or_nothing_failed_the_size_is_whole(run: Run, name: str) -> None:
    provider, agents = EXEMPT[name]
    quiet: dict[str, Any] = {"thresholds": {"buy": 1.0, "sell": 1.0}} if name == "skipped" else {}
    record = run(provider, profile(agents=agents, **quiet))
    assert "outage" not in record["flags"], name
    if name == "skipped":
        assert record["source_type"] == "AGENT_SKIPPED"
    elif name != "a gate that fails":
        assert lots(record) == whole(run)


# --- told -----------------------------------------------------------------------------------------


def test_the_approval_says_why_an_order_is_small(run: Run) -> None:
    record = run(failing("budget"), profile(execution="approve"))
    assert record["reason"] == "AWAITS_APPROVAL" and "its size is cut to 25 %" in record["sentence"]
    assert proposals.conviction(tick_record(record), record["verdict"]) == (0.25, NO_AGENT)


@pytest.mark.parametrize("execution", ["auto", "approve"])
def test_the_notice_of_an_order_says_it_too(
    run: Run, execution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first tick of a fresh desk is its warm-up, of which nothing is told.
    monkeypatch.setattr("torra.notices.watching.WarmUps.made", lambda *_: False)
    settings = profile(execution=execution)
    run(failing("budget"), settings)
    desk: Desk = run.opened[-1]  # type: ignore[attr-defined]
    told = notices(desk, settings)
    assert [text for text in told if text.endswith("No agent was heard, so the size is cut.")]
    run(Scripted(), settings)
    heard: Desk = run.opened[-1]  # type: ignore[attr-defined]
    assert not [text for text in notices(heard, settings) if "No agent" in text]


def notices(desk: Desk, settings: Profile) -> list[str]:
    """Return the texts of the notices of a desk's orders, once its order on paper is filled."""
    watcher = Watcher(
        desk.database, NoticeSettings(), lambda: [(ALONE, settings)], lambda: desk.clock,
        lambda: ("phone",),
    )  # fmt: skip
    watcher.look()
    for _ in range(2):
        desks.step(desk)
        watcher.look()
    rows = notice_table.notices(desk.database, limit=50)
    return [row["text"] for row in rows if row["kind"] in ("fill", "proposal")]


def test_the_share_is_of_the_rules_size_not_of_the_gates(run: Run) -> None:
    """The gate's model is not asked: it has nothing to rule on, and the rules stand."""
    provider = failing("budget", risk_gate=lambda request: scripted.ruling(request, multiplier=0.1))
    record = run(provider, profile())
    assert not provider.asked("risk_gate")
    assert record["gate"]["multiplier"] == record["gate"]["rule"]["multiplier"]
