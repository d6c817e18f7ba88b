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
from agents.contracts import VECTORS, ModelUnavailable
from agents.debate.deliberation import Deliberation
from tests.doubles.scripted import NEVER, Scripted
from tests.tick.test_shadow import VOICES, run
from tests.worlds import scorers
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


@pytest.mark.parametrize("voice", sorted(VOICES))
def test_no_answer_moves_a_score_past_its_bound(
    tmp_path: Path, voice: str, scaled: Callable[..., int]
) -> None:
    """Also of changed scores of the same bar, whose answer is a revision."""
    overlay = scorers.overlay(tmp_path, VOICES[voice](), strict=True)
    rng = np.random.default_rng(3)
    for number in range(scaled(2_500, least=6)):
        own = dict(zip(VECTORS, np.round(rng.uniform(-1, 1, 4), 8).tolist(), strict=True))
        frame = scorers.bars(300 + number // 3 % 500)
        answer = scorers.asked(overlay, frame, scores=own)
        for vector in VECTORS:
            score = answer.chart[vector]["score"]
            assert -1.0 <= score <= 1.0 and abs(score - own[vector]) <= 0.3 + 1e-9
            assert abs(answer.blended[vector]["score"] - own[vector]) <= 0.06 + 1e-9
        assert answer.blended == overlay.blend(own, answer.chart)


@pytest.mark.parametrize("error", [ModelUnavailable("unreachable"), RuntimeError("nobody")])
def test_with_every_agent_down_the_scores_are_l1_bit_for_bit(
    tmp_path: Path, error: Exception
) -> None:
    class Down:
        name = "down"

        def submit(self, _request: Any) -> Any:
            raise error

    overlay = scorers.overlay(tmp_path, Down(), strict=True)
    own = {name: float(np.nextafter(value, 1.0)) for name, value in scorers.L1.items()}
    answer = scorers.asked(overlay, scores=own)
    assert scorers.numbers(answer.chart) == own and not answer.debated
    assert "L1_ONLY" in answer.chart["composite_bias"]["note"]
    # and without the host's own, Torra's
    again = scorers.asked(overlay)
    assert scorers.numbers(again.chart) == dict(again.l1)


@pytest.mark.journey
def test_the_evidence_is_a_desks_but_for_memory_and_the_account(tmp_path: Path) -> None:
    desk = run(tmp_path / "desk", RulesProvider(), "full", 8)
    overlay = scorers.overlay(tmp_path, strict=True)
    apart = ("memory.", "market.spread_atr", "source.", "host.")
    told = 0
    with closing(desk.database):
        for timeframe in ("M15", "H1"):
            for row in desk.database.ticks("BTCUSD", timeframe, 10):
                record = desk.database.told_tick(row["torra_key"])
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
    assert answer.told == () and answer.debated
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
    assert answer.told == ("headlines_dropped:2",)
    assert answer.record["news"]["unique"] == 2 and answer.record["news"]["status"] == "available"
    with closing(scorers.stored(tmp_path)) as database:
        ids = [item["id"] for item in answer.record["news"]["items"]]
        assert {item.headline for item in news_table.news_items(database, ids)} == {
            "Bitcoin falls as regulators warn of a ban", "Bitcoin ETF sees record inflows"
        }  # fmt: skip


def test_agents_in_shadow_are_heard_and_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "home" / "profiles").mkdir(parents=True)
    (tmp_path / "home" / "profiles" / "quiet.json").write_text(
        '{"agents": {"influence": "shadow"}}'
    )
    overlay = scorers.overlay(tmp_path, profile="quiet", strict=True)
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1
    assert answer.debated and any(answer.record["adjustments"].values())


def test_the_hosts_own_scorer_is_the_fallback(tmp_path: Path) -> None:
    asked: list[str] = []

    def fallback(context: Any, _ask: Any) -> dict[str, Any]:
        asked.append(context.symbol)
        return {vector: {"score": 0.9, "note": ""} for vector in VECTORS}

    roles = ("technical", "bull_researcher", "bear_researcher", "risk_gate")
    provider = Scripted(dict.fromkeys(roles, ModelUnavailable("down")))
    overlay = scorers.overlay(tmp_path, provider, strict=True)
    answer = scorers.asked(overlay, scores=scorers.L1, fallback=fallback)
    assert asked == ["BTCUSD"]
    assert answer.record["source_type"] == "LEGACY" and not answer.debated
    assert answer.why.startswith("your fallback was heard: ")
    for vector, score in scorers.numbers(answer.chart).items():
        assert score == pytest.approx(min(0.9, scorers.L1[vector] + 0.3))


def test_a_symbol_and_a_timeframe_that_the_profile_lacks_get_neutral_defaults(
    tmp_path: Path,
) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    frame = scorers.bars(500, name="EURUSD_H1")
    answer = overlay.deliberate(
        "MYPAIR", "H1", frame, scores=scorers.L1, as_of=scorers.closed_at(frame, 60)
    )
    assert answer.told == ("symbol_not_in_profile",) and answer.debated
    thirty = (
        scorers.bars(800)
        .resample("30min")
        .agg({"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"})
        .dropna()
    )
    answer = overlay.deliberate("BTCUSD", "M30", thirty, as_of=scorers.closed_at(thirty, 30))
    assert answer.told == ("timeframe_not_in_profile",) and answer.debated


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


def test_silent_agents_end_at_the_deadline(tmp_path: Path) -> None:
    profiles = tmp_path / "home" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "quick.json").write_text('{"agents": {"timeout_seconds": 1.0}}')
    roles = ("technical", "bull_researcher", "bear_researcher", "risk_gate", "chart_scorer")
    overlay = scorers.overlay(tmp_path, Scripted(dict.fromkeys(roles, NEVER)), profile="quick")
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1 and not answer.debated


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
    profiles = tmp_path / "home" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "pivotal.json").write_text(
        '{"agents": {"call_policy": "pivotal", "pivotal_sample": 0.0}}'
    )
    overlay = scorers.overlay(tmp_path, profile="pivotal", strict=True)
    flat = scorers.asked(overlay, scores=dict.fromkeys(VECTORS, 0.0))
    assert flat.record["source_type"] == "AGENT_SKIPPED" and not flat.debated
    strong = scorers.asked(overlay, scores=dict.fromkeys(VECTORS, 0.9))
    assert strong.debated
