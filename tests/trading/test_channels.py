"""What a command reads of a channel beside a desk at work, and who may act after another desk."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cases import cases
from tests.worlds.channels import ENVIRONMENT, KEY, NOW, Stage
from tests.worlds.hands import hand_on
from tests.worlds.stores import open_database
from torra.bridges.protocol import QUOTE_SECONDS
from torra.bridges.torra.messages import Symbols, decode, encode
from torra.config import DeskSettings, Instance
from torra.errors import ConfigError, DataUnavailable
from torra.store.trade import proposals_and_alarms as execution_table
from torra.trading import by_hand, channels

EUR = Instance(
    symbol="EURUSD", broker_symbol="EURUSD.m", timeframes=("M15",), feed="store",
    bridge="torra_files",
)  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A channel whose advisor has just written down its state."""
    stage = Stage(tmp_path)
    stage.wake()
    return stage


def settings_of(stage: Stage, *instances: Instance) -> DeskSettings:
    return DeskSettings(instances=instances or (EUR,), channels={"main": stage.channel})


def test_the_quote_of_now_is_the_brokers_while_it_is_fresh(stage: Stage) -> None:
    settings, now = settings_of(stage), stage.clock.now()
    found = channels.quote(settings, EUR, ENVIRONMENT, now)
    told = stage.bridge.terms()["EURUSD.m"].quote
    assert found == told and found is not None
    assert (found.bid, found.ask) == (1.1, 1.10012)
    old = found.at + timedelta(seconds=QUOTE_SECONDS)
    assert channels.quote(settings, EUR, ENVIRONMENT, old) == found
    late = found.at + timedelta(seconds=QUOTE_SECONDS + 1)
    assert channels.quote(settings, EUR, ENVIRONMENT, late) is None
    paper = EUR.model_copy(update={"bridge": "paper"})
    assert channels.quote(settings, paper, ENVIRONMENT, now) is None
    other = EUR.model_copy(update={"broker_symbol": "EURUSD.z"})
    assert channels.quote(settings, other, ENVIRONMENT, now) is None


@pytest.mark.parametrize("text", [b"", b"{}", b"\x00" * 4096])
def test_a_broken_list_of_symbols_is_no_quote(text: bytes, stage: Stage) -> None:
    (stage.folder / channels.SYMBOLS).write_bytes(text)
    assert channels.quote(settings_of(stage), EUR, ENVIRONMENT, stage.clock.now()) is None
    forged = {"TORRA_CHANNEL_KEY": KEY + "x"}
    assert channels.quote(settings_of(stage), EUR, forged, stage.clock.now()) is None


@pytest.mark.parametrize("stamp", [{"channel": "second"}, {"account": 7}])
def test_a_list_of_another_channel_or_account_is_no_quote(
    stamp: dict[str, Any], stage: Stage
) -> None:
    path = stage.folder / channels.SYMBOLS
    told = decode(path.read_bytes(), Symbols, KEY)
    now = stage.clock.now()
    assert channels.quote(settings_of(stage), EUR, ENVIRONMENT, now) is not None
    path.write_bytes(encode(replace(told, **stamp), KEY))
    assert channels.quote(settings_of(stage), EUR, ENVIRONMENT, now) is None


def test_a_row_that_names_no_symbol_is_no_quote(stage: Stage) -> None:
    path = stage.folder / channels.SYMBOLS
    symbols = decode(path.read_bytes(), Symbols, KEY)
    path.write_bytes(encode(replace(symbols, rows=(*symbols.rows, "EURUSD.m|x")), KEY))
    assert channels.quote(settings_of(stage), EUR, ENVIRONMENT, stage.clock.now()) is None


def test_looking_leaves_the_folder_of_a_desk_at_work_alone(stage: Stage) -> None:
    """What lies in tmp/ may be a signal that is just being written."""
    half = stage.folder / "tmp" / "half"
    half.write_bytes(b"{")
    channels.quote(settings_of(stage), EUR, ENVIRONMENT, stage.clock.now())
    channels.check(settings_of(stage), ENVIRONMENT)
    channels.trouble("main", "torra_files", stage.channel, ENVIRONMENT, stage.clock.now())
    assert half.exists()


def test_an_approval_takes_price_and_account_from_the_broker_or_says_that_it_has_none(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORRA_CHANNEL_KEY", KEY)
    database = open_database(tmp_path / "home")
    now, desk = stage.clock.now(), hand_on(database, [EUR], stage.clock.now, channel=stage.channel)
    facts = {"free_margin": 900.0, "leverage": 30, "balance": 1000.0}
    execution_table.note_bridge(database, EUR.route, deny="CLOCK_SKEW", detail="", facts=facts)
    price, figures = by_hand.market_now(desk, EUR, now)
    assert price == 1.1
    assert figures.pop("live_spread") == pytest.approx(0.00012)
    assert figures == {"free_margin": 900.0, "leverage": 30, "clock_ok": False}
    much_later = now + timedelta(hours=1)
    with pytest.raises(DataUnavailable, match="no bar of EURUSD"):
        by_hand.market_now(desk, EUR, much_later)
    index = pd.DatetimeIndex([NOW], name="time")
    row = {"open": 1.1, "high": 1.2, "low": 1.0, "close": 1.15, "volume": 1.0}
    database.store_bars(EUR.id, "M15", pd.DataFrame([row], index=index))
    price, figures = by_hand.market_now(desk, EUR, much_later)
    assert (price, "live_spread" in figures) == (1.15, False)


@cases(
    ("later", "channel", "words"),
    [
        (0, {}, ""),
        (5, {}, ""),
        (7, {}, "the Expert Advisor gave its last sign of life 7 s ago: start it"),
        (0, {"account": 77}, "the Expert Advisor is logged in to 1001, not to 77"),
        (0, {"folder": "nowhere"}, "the folder nowhere is not there yet"),
    ],
)
def test_what_keeps_an_expert_advisor_from_trading_is_named(
    later: int, channel: dict[str, Any], words: str, stage: Stage
) -> None:
    now = stage.clock.now() + timedelta(seconds=later)
    asked = stage.channel.model_copy(update=channel)
    why = channels.trouble("main", "torra_files", asked, ENVIRONMENT, now)
    assert why.startswith(words) and bool(why) == bool(words)


@cases(
    ("facts", "figures"),
    [
        ({"free_margin": 900, "leverage": 30, "equity": 950.5, "balance": 1},
         {"free_margin": 900.0, "leverage": 30.0, "equity": 950.5}),
        # An account that is worth nothing is known to be; a leverage of 0 is "not told".
        ({"free_margin": -5.0, "leverage": -30, "equity": 0.0},
         {"free_margin": -5.0, "equity": 0.0}),
        ({"free_margin": 0.0, "leverage": 0, "equity": -1}, {"equity": -1.0}),
        ({"free_margin": "much", "leverage": None}, {}),
    ],
)  # fmt: skip
def test_figures_of_an_account_that_a_check_may_use(
    facts: dict[str, object], figures: dict[str, float]
) -> None:
    assert channels.account_figures(facts) == figures


def test_one_channel_has_one_bridge(stage: Stage) -> None:
    other = EUR.model_copy(update={"name": "E2", "bridge": "mt5_direct"})
    with pytest.raises(ConfigError, match="channel main is used as torra_files and as mt5_direct"):
        channels.check(settings_of(stage, EUR, other), ENVIRONMENT)
