"""Settings that cannot work are refused before anything starts, each with its remedy."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import open_home
from tests.tries import until
from tests.worlds import desks
from tests.worlds.homes import desk_file, profile_file
from tests.worlds.stores import opening
from torra.clock import System
from torra.config import ROOT
from torra.desk import wiring
from torra.desk.models.access import open_models
from torra.desk.outlook import ContextFeeds
from torra.desk.schedule import Desk
from torra.errors import ConfigError
from torra.services import Service
from torra.store import ledger as ledger_table


def home(folder: Path, profile: dict[str, Any], **instance: Any) -> Path:
    row = {"symbol": "BTCUSD", "timeframes": ["M15", "H1"], "profile": "mine", **instance}
    return desk_file(profile_file(folder, profile, "mine"), row)


@pytest.mark.by_day(8)
@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ({"news": {"sources": ["file"]}}, "needs news.file"),
        ({"news": {"file": "mine.jsonl"}}, 'not read: add "file" to news.sources'),
        ({"news": {"sources": ["file"], "file": "a\0b"}}, "news.file: write a path of"),
        ({"events": {"calendar": "a\0b.csv"}}, "events.calendar: write a path of"),
        (
            {
                "symbols": {"BTCUSD": {"currencies": []}},
                "events": {"calendar": str(ROOT / "examples" / "events.csv")},
            },
            r"write symbols\.BTCUSD\.currencies",
        ),
        (
            {"agents": {"include_news": True}, "news": {"sources": ["file"], "file": "no.jsonl"}},
            "no.jsonl",
        ),
        ({"events": {"calendar": "no.csv"}}, "no.csv"),
        ({"agents": {"active_agents": ["oracle"]}}, "oracle"),
        ({"agents": {"provider": "anthropic"}}, "set ANTHROPIC_API_KEY"),
        ({"agents": {"fallback_models": ["google"]}}, "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ({"agents": {"role_models": {"technical": "anthropic:m"}}}, "set ANTHROPIC_API_KEY"),
        ({"agents": {"role_models": {"oracle": "rules"}}}, "oracle, who does not sit"),
        ({"agents": {"role_models": {"reviewer": "anthropic:m"}}}, "set ANTHROPIC_API_KEY"),
        (
            {"agents": {"role_caps": {"oracle": {"prompt_bytes": 9_000}}}},
            "role_caps names oracle, who does not sit at this desk; those who do are .*reviewer",
        ),
        ({"agents": {"fallback_models": ["google", "acme:x"]}}, "vendors are anthropic, google"),
        ({"agents": {"fallback_models": ["google:"]}}, "name vendors or vendor:model"),
        ({"agents": {"fallback_models": ["google"] * 4}}, "fallback_models.*3"),
        (
            {"agents": {"provider": "google", "fallback_models": ["anthropic", "google:x"]}},
            "every agent asks the vendor of google:x first",
        ),
        ({"agents": {"provider": "recorded"}}, "it is for replays"),
        ({"agents": {"picture": "file", "picture_file": "chart.png"}}, "agents.picture_file"),
        ({"timeframe_weights": {"H1": 1.0}}, "add timeframe_weights.M15"),
        ({"risk": {"capital": -1}}, "risk.capital"),
    ],
)
def test_a_setting_that_would_be_ignored_is_refused(
    profile: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        wiring.open_desk(home(tmp_path, profile))


def test_a_retired_model_is_refused_with_its_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
    agents = {"provider": "anthropic", "deep_think_model": "claude-sonnet-4-20250514"}
    with pytest.raises(ConfigError, match=r"claude-sonnet-4-20250514.*claude-sonnet-5-5"):
        wiring.open_desk(home(tmp_path, {"agents": agents}))


def test_a_profile_that_asks_vendors_has_an_account_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
    desk, _ = wiring.open_desk(home(tmp_path, {"agents": {"provider": "anthropic"}}))
    try:
        account = desk.setups["BTCUSD"].account
        assert account is not None
        assert account.profile == "mine"
        assert not account.local("anthropic")
    finally:
        desk.close()


def blocked(desk: Desk) -> dict[str, str]:
    provider: Any = desk.setups["BTCUSD"].provider
    return dict(provider._clients.blocked())


def test_a_start_lifts_what_kept_a_vendor_from_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 20)
    desk, _ = wiring.open_desk(home(tmp_path, {"agents": {"provider": "anthropic"}}))
    until = desk.clock.real_now() + timedelta(hours=1)
    ledger_table.block_provider(desk.database, "anthropic", "401: the key was refused", until)
    desks.open_for_work(desk)
    assert not blocked(desk) and ledger_table.provider_blocks(desk.database) == []
    assert desk.close()


@pytest.mark.parametrize("remember", [True, False])
def test_a_refusal_is_stored_where_it_is_to_be_remembered(remember: bool, tmp_path: Path) -> None:
    database = open_home(tmp_path)
    models = open_models(tmp_path, database, {}, remember=remember)
    models.clients._block_and_report("google", "402: the account has no credit")
    until(lambda: len(ledger_table.provider_blocks(database)) == remember)
    assert [row.provider for row in ledger_table.provider_blocks(database)] == ["google"] * remember
    assert models.clients.blocked() == {"google": "402: the account has no credit"}
    models.close()


def test_a_block_that_is_heeded_ends_when_it_was_to_end(tmp_path: Path) -> None:
    database = open_home(tmp_path)
    models = open_models(tmp_path, database, {})
    until = System().real_now() + timedelta(seconds=2)
    ledger_table.block_provider(database, "google", "402: the account has no credit", until)
    models.apply_blocks()
    _, end = models.clients._blocks["google"]
    assert 0 < end - System().monotonic() <= 3
    models.close()


def test_services_begin_in_their_order_and_end_in_the_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = list[str](), list[str]()
    for kind in (Service, ContextFeeds):
        monkeypatch.setattr(kind, "start", lambda self: begun.append(type(self).__name__))
        monkeypatch.setattr(kind, "close", lambda self, *_: ended.append(type(self).__name__))
    desk, _ = wiring.open_desk(home(tmp_path, {}))
    begun.clear()
    desks.open_for_work(desk)
    desk.start()
    desk.close()
    names = ["ContextFeeds", "Courier", "DeskNotices", "Worker"]
    assert [name for name in begun if name in names] == names
    assert [name for name in ended if name in names] == names[::-1]


BTC: dict[str, Any] = {"symbol": "BTCUSD"}


@pytest.mark.parametrize(
    ("instances", "why"),
    [
        ([{"symbol": "XAGUSD", "feed": "store"}], r"add symbols\.XAGUSD"),
        ([{"symbol": "XAUUSD"}], "the sample has no bars of XAUUSD"),
        ([BTC, {"symbol": "EURUSD", "timeframes": ["H1"], "feed": "store"}], "TORRA_HOME of its"),
        ([BTC, BTC], "same name"),
        (
            [{**BTC, "timeframe": []}],
            r"unknown key instances\.0\.timeframe; did you mean timeframes",
        ),
    ],
)
def test_instances_that_cannot_be_are_refused_in_a_line(
    instances: list[Any], why: str, tmp_path: Path
) -> None:
    desk_file(tmp_path, *instances)
    with pytest.raises(ConfigError, match=why):
        wiring.open_desk(tmp_path)


def test_a_home_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="TORRA_HOME"):
        wiring.open_desk(tmp_path / "file" / "home")


def test_the_shipped_desk_opens(tmp_path: Path) -> None:
    desk, settings = wiring.open_desk(tmp_path)
    assert [item.id for item in settings.instances] == ["BTCUSD", "EURUSD"]
    assert desk.clock.accelerated
    assert desk.setups["BTCUSD"].account is None, "its profile costs nothing"
    assert desk.close()


def live(folder: Path, **more: Any) -> Path:
    """A home whose gold goes to a channel."""
    (folder / "shared").mkdir(exist_ok=True)
    gold = {"symbol": "XAUUSD", "feed": "store", "bridge": "torra_files", **more}
    main = {"folder": str(folder / "shared"), "account": 1001}
    return desk_file(folder, gold, channels={"main": main})


def test_a_channel_without_its_key_is_refused_before_anything_opens(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="TORRA_CHANNEL_KEY is not set"):
        wiring.open_desk(live(tmp_path))
    assert list((tmp_path / "shared").iterdir()) == []


@pytest.mark.parametrize("state", ["PENDING", "PUBLISHED", "FILLED"])
def test_a_position_on_another_way_keeps_the_desk_from_starting(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paper would close it in the books while it is open at the broker."""
    monkeypatch.setenv("TORRA_CHANNEL_KEY", "k" * 32)
    desk, _ = wiring.open_desk(live(tmp_path))
    row = opening("T1", instance="XAUUSD", symbol="XAUUSD", bridge="torra_files main")
    desk.database.enqueue_signal(row)
    for step in ("PUBLISHED", "FILLED")[: ("PENDING", "PUBLISHED", "FILLED").index(state)]:
        desk.database.move_signal("T1", step)
    desk.close()
    for other in ({"bridge": "paper"}, {"name": "GOLD"}):
        with pytest.raises(ConfigError, match=r"XAUUSD has the open T1 .*torra settle T1"):
            wiring.open_desk(live(tmp_path, **other))
    desk, _ = wiring.open_desk(live(tmp_path))
    desk.close()
