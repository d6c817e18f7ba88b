"""`Overlay.score_chart` is `run_debate` with a desk's evidence, and never more than its bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agent_framework
from agents.contracts import VECTORS
from agents.debate.deliberation import Deliberation
from tests.doubles.scripted import Scripted
from tests.worlds import scorers, swarm_ticks
from tests.worlds.busy_desk import VOICES, run
from torra.clock import parse
from torra.overlay import Overlay
from torra.providers.rules.provider import RulesProvider
from torra.store import news as news_table


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Every debate that the framework held: context, settings, and what else it was given."""
    found: list[tuple[Any, Any, dict[str, Any]]] = []
    held = agent_framework.deliberate

    def listening(context: Any, config: Any, submit: Any, **more: Any) -> Deliberation:
        found.append((context, config, more))
        return held(context, config, submit, **more)

    monkeypatch.setattr(agent_framework, "deliberate", listening)
    return found


def test_the_dict_is_that_of_run_debate_with_the_same_context(
    tmp_path: Path, heard: list[Any], scaled: Callable[..., int]
) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    rng, said = np.random.default_rng(7), list[Any]()
    frame = scorers.bars(8_000)
    for _ in range(scaled(2_000, least=8)):
        end = int(rng.integers(300, len(frame)))
        own = dict(zip(VECTORS, np.round(rng.uniform(-1, 1, 4), 8).tolist(), strict=True))
        some = frame.iloc[max(0, end - 900) : end]
        given = own if rng.random() < 0.7 else None
        chart = overlay.score_chart(
            "BTCUSD", "M15", some, scores=given, as_of=scorers.closed_at(some),
            extra={"rsi": float(rng.normal())} if rng.random() < 0.5 else None,
        )  # fmt: skip
        if not heard:  # the very question came before: it has its answer
            assert chart in said
            continue
        said.append(chart)
        context, config, more = heard.pop()
        want = agent_framework.run_debate(
            context, config, RulesProvider().submit,
            monotonic=more["monotonic"], deadline=more["monotonic"]() + 60.0,
            fallback=more["fallback"],
        )  # fmt: skip
        heard.clear()
        assert chart == want
        assert given is None or dict(context.scores) == given


@pytest.mark.journey
def test_the_evidence_is_a_desks_but_for_memory_and_the_account(tmp_path: Path) -> None:
    desk = run(tmp_path / "desk", RulesProvider(), "full", 8)
    overlay = scorers.overlay(tmp_path, strict=True)
    apart = ("memory.", "market.spread_atr", "source.", "host.")
    told = 0
    with closing(desk.database):
        for timeframe in ("M15", "H1"):
            for row in desk.database.ticks("BTCUSD", timeframe, 10):
                record = desk.database.tick_without_calls(row["torra_key"])
                assert record is not None
                frame = desk.database.load_bars("BTCUSD", timeframe, as_of=parse(record["as_of"]))
                answer = overlay.deliberate("BTCUSD", timeframe, frame, as_of=parse(record["now"]))
                mine, theirs = (
                    {one["id"]: one["value"] for one in told["features"]}
                    for told in (answer.record, record)
                )
                assert list(mine) == list(theirs)
                for name, value in theirs.items():
                    assert name.startswith(apart) or mine[name] == value, name
                assert dict(answer.l1) == record["l1"] and answer.record["ath"] == record["ath"]
                assert mine["memory.position"] is None and mine["memory.losing_streak"] is None
                assert mine["market.spread_atr"] is None
                told += 1
    assert told >= 8


def test_what_the_host_gives_of_its_account_is_evidence(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    given = {"spread": 25.0, "position": -1, "losing_streak": 3, "my_rsi": 61.23456789}
    answer = scorers.asked(overlay, scores=scorers.L1, extra=given)
    seen = {one["id"]: one["value"] for one in answer.record["features"]}
    assert seen["memory.position"] == "SHORT" and seen["memory.losing_streak"] == 3.0
    assert seen["market.spread_atr"] == pytest.approx(25.0 / answer.record["atr"], abs=0.01)
    assert seen["host.my_rsi"] == 61.234568, "as the prompt shows it"
    assert [name for name in seen if name.startswith("host.")] == ["host.my_rsi"]
    assert "LOSING_STREAK" in answer.record["gate"]["rule"]["reasons"]


def test_agents_are_shown_the_hosts_numbers_and_may_cite_them(tmp_path: Path) -> None:
    provider = Scripted()
    overlay = scorers.overlay(tmp_path, provider, strict=True)
    names = {f"indicator_{number:02d}_of_thirty_two_ch"[:32]: number / 7e5 for number in range(64)}
    answer = scorers.asked(overlay, scores=scorers.L1, extra=names)
    assert answer.notes == () and answer.debated
    technical = next(one for one in provider.requests if one.role.id == "technical")
    assert str(technical.user).count("\nhost.") == 64
    assert "host.indicator_63_of_thirty_two_ch = 9e-05" in str(technical.user)
    assert len(str(technical.system).encode()) + len(str(technical.user).encode()) <= 10_000
    assert answer.record["calls"] == 4


def test_headlines_are_evidence_and_never_words_of_ours(tmp_path: Path) -> None:
    settings = scorers.overlay(tmp_path, strict=True)
    given = [
        "Bitcoin falls as regulators warn of a ban",
        {"headline": "Bitcoin ETF sees record inflows", "published": "2021-10-01T10:00:00Z"},
        {"headline": "From next year", "published": "2031-01-01T00:00:00Z"},
        17,
    ]
    answer = scorers.asked(settings, scores=scorers.L1, headlines=given)
    assert answer.notes == ("headlines_dropped:2",)
    assert answer.record["news"]["unique"] == 2 and answer.record["news"]["status"] == "available"
    with closing(scorers.stored(tmp_path)) as database:
        ids = [item["id"] for item in answer.record["news"]["items"]]
        assert {item.headline for item in news_table.news_items(database, ids)} == {
            "Bitcoin falls as regulators warn of a ban", "Bitcoin ETF sees record inflows"
        }  # fmt: skip


def test_agents_in_shadow_are_heard_and_do_not_count(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, agents={"influence": "shadow"}, strict=True)
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1
    assert answer.debated and any(answer.record["adjustments"].values())


def test_a_symbol_and_a_timeframe_that_the_profile_lacks_get_neutral_defaults(
    tmp_path: Path,
) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    frame = scorers.bars(500, name="EURUSD_H1")
    answer = overlay.deliberate(
        "MYPAIR", "H1", frame, scores=scorers.L1, as_of=scorers.closed_at(frame, 60)
    )
    assert answer.notes == ("symbol_not_in_profile",) and answer.debated
    thirty = (
        scorers.bars(800)
        .resample("30min")
        .agg({"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"})
        .dropna()
    )
    answer = overlay.deliberate("BTCUSD", "M30", thirty, as_of=scorers.closed_at(thirty, 30))
    assert answer.notes == ("timeframe_not_in_profile",) and answer.debated


def test_asyncio_hosts_are_not_held(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    frame = scorers.bars()

    async def both() -> Any:
        one = overlay.score_chart_async(
            "BTCUSD", "M15", frame, scores=scorers.L1, as_of=scorers.closed_at(frame)
        )
        two = overlay.score_chart_async(
            "BTCUSD", "M15", frame, scores=scorers.L1, as_of=scorers.closed_at(frame)
        )
        return await asyncio.gather(one, two)

    one, two = asyncio.run(both())
    assert one == two and one["momentum"]["score"] != scorers.L1["momentum"]
    assert scorers.count(tmp_path, "chains") == 1


def test_a_hosted_stream_never_trades(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, VOICES["wild"](), strict=True)
    strong = dict.fromkeys(VECTORS, 1.0)
    for size in range(300, 306):
        answer = scorers.asked(overlay, scorers.bars(size), scores=strong)
        assert (answer.record["action"], answer.record["reason"]) == ("HOLD", "HOSTED")
        assert answer.record["signals"] == [] and answer.record["verdict"] == "BUY"
        assert answer.record["sentence"].startswith("Reads a buy in BTCUSD on M15, and your scorer")
    for table in ("signals", "ticks", "proposals", "latches", "desk_run", "paper_cursor"):
        assert scorers.count(tmp_path, table) == 0


def test_the_key_is_that_of_the_record(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    frame = scorers.bars()
    answer = scorers.asked(overlay, frame)
    assert overlay.key("BTCUSD", "M15", frame.index[-1].to_pydatetime()) == answer.key
    assert answer.key == f"host:scorer:BTCUSD|M15|{answer.record['bar_time']}"
    naive = Overlay(tmp_path / "home", clock="new_york+7")
    wall = (frame.index[-1].tz_convert("America/New_York") + np.timedelta64(7, "h")).tz_localize(
        None
    )
    assert naive.key("BTCUSD", "M15", wall.to_pydatetime()) == answer.key
    with pytest.raises(ValueError, match="symbol"):
        overlay.key("../BTC", "M15", frame.index[-1].to_pydatetime())


def test_pivotal_asks_nobody_where_no_reply_could_change_the_verdict(tmp_path: Path) -> None:
    policy = {"call_policy": "pivotal", "pivotal_sample": 0.0}
    overlay = scorers.overlay(tmp_path, agents=policy, strict=True)
    flat = scorers.asked(overlay, scores=dict.fromkeys(VECTORS, 0.0))
    assert flat.record["source_type"] == "AGENT_SKIPPED" and not flat.debated
    strong = scorers.asked(overlay, scores=dict.fromkeys(VECTORS, 0.9))
    assert strong.debated


def test_a_veto_of_the_judges_side_reaches_a_host(tmp_path: Path) -> None:
    """At this chance no trade of the sample pays."""
    provider = Scripted(
        {
            "regime_reader": swarm_ticks.read,
            **dict.fromkeys(swarm_ticks.LEANS, swarm_ticks.found),
            "judge": lambda request: swarm_ticks.decided(request, win_share=0.1),
        }
    )
    agents = swarm_ticks.SWARM["agents"]
    overlay = scorers.overlay(tmp_path, provider, agents=agents, strict=True)
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert answer.debated and "NEGATIVE_EV" in answer.reasons
    assert (answer.veto, answer.veto_sides) == (False, ("BUY",)), "the other side stays free"
    again = scorers.asked(overlay, scores=scorers.L1)
    assert again.again and again.veto_sides == ("BUY",)
