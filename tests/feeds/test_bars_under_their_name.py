"""A bars file counts under the name that is signed in it, and nowhere else.

Who may write into a channel's folder has no key, but all of its authentic files, and those of other
channels under the same key.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from tests.doubles.advisor_channel import in_a_path
from tests.worlds.mt5_bars import (
    ACCOUNT,
    GOLD,
    HEADER,
    NOON,
    feed,
    lines,
    plus_3,
    put,
    quarters,
    rows,
    signed,
    text,
)
from torra.errors import DataUnavailable
from torra.feeds.mt5_files import BarFileOwner, Mt5FilesFeed
from torra.market.broker_clock import ServerClock

CLOCK = ServerClock.parse("+03:00")
OFFSET = 10_800
SYMBOLS = ("XAUUSD.m", "EURUSD.m", "BTCUSD")
MINUTES = {"M15": 15, "H1": 60, "H4": 240}
CHANNELS = ("main", "second")
BARS = rows(quarters(NOON - timedelta(hours=1), 4), plus_3)


@dataclass(frozen=True)
class Folders:
    """Two channels' folders under one key, full of authentic files."""

    root: Path
    files: Mapping[BarFileOwner, str]

    def path(self, source: BarFileOwner) -> Path:
        name = f"{in_a_path(source.broker_symbol)}_{source.timeframe}.csv"
        return self.root / source.channel / "bars" / name

    def put(self, source: BarFileOwner, content: str) -> None:
        put(self.path(source), content, NOON)

    def feed(self, channel: str) -> Mt5FilesFeed:
        return feed(self.root / channel, {name: name for name in SYMBOLS}, CLOCK, channel)


def opens(source: BarFileOwner) -> list[datetime]:
    """The opens of four bars, each file's of another week, the newest closed by NOON."""
    minutes = MINUTES[source.timeframe]
    weeks = SYMBOLS.index(source.broker_symbol) + 3 * CHANNELS.index(source.channel)
    first = NOON - timedelta(weeks=weeks, minutes=4 * minutes)
    return quarters(first, 4, minutes)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    sources = [BarFileOwner(c, ACCOUNT, s, t) for c in CHANNELS for s in SYMBOLS for t in MINUTES]
    files = {one: text(rows(opens(one), plus_3), OFFSET, one) for one in sources}
    made = Folders(tmp_path, files)
    for one, content in files.items():
        made.put(one, content)
    return made


def read(found: Mt5FilesFeed, source: BarFileOwner) -> pd.DataFrame:
    return found.bars(source.broker_symbol, source.timeframe, NOON)


def refusal(found: Mt5FilesFeed, source: BarFileOwner = GOLD) -> str:
    with pytest.raises(DataUnavailable) as caught:
        read(found, source)
    assert caught.value.reason == "bad_file"
    assert "\n" not in caught.value.detail
    return caught.value.detail


@pytest.mark.journey
def test_every_swap_of_two_authentic_files_is_refused(folders: Folders) -> None:
    kept = {name: folders.feed(name) for name in CHANNELS}
    good = {one: read(kept[one.channel], one) for one in folders.files}
    assert {one: frame.index.tolist() for one, frame in good.items()} == {
        one: opens(one) for one in folders.files
    }, "in their own places all are read"
    refused = 0
    for one, other in itertools.combinations(folders.files, 2):
        for there, from_there in ((one, other), (other, one)):
            folders.put(there, folders.files[from_there])
        for wanted, held in ((one, other), (other, one)):
            said = refusal(folders.feed(wanted.channel), wanted)
            assert f"it holds the bars of {held}, not of {wanted}: " in said
            assert str(folders.path(wanted)) in said
            pd.testing.assert_frame_equal(read(kept[wanted.channel], wanted), good[wanted])
            refused += 1
        for back in (one, other):
            folders.put(back, folders.files[back])
    assert refused == 18 * 17
    for one in folders.files:
        pd.testing.assert_frame_equal(read(folders.feed(one.channel), one), good[one])


REMEDIES = {
    "channel": (replace(GOLD, channel="other"), "is main the Expert Advisor's channel?"),
    "account": (
        replace(GOLD, account=7),
        f"log MetaTrader in to {ACCOUNT}, or set channels.main.account",
    ),
    "symbol": (replace(GOLD, broker_symbol="XAUUSD"), "somebody has put it there"),
    "timeframe": (replace(GOLD, timeframe="H1"), "somebody has put it there"),
}


@pytest.mark.parametrize(("held", "remedy"), REMEDIES.values(), ids=REMEDIES)
def test_what_differs_is_named_with_its_remedy(
    tmp_path: Path, held: BarFileOwner, remedy: str
) -> None:
    put(tmp_path / "bars" / "XAUUSD%2Em_M15.csv", text(BARS, OFFSET, held), NOON)
    said = refusal(feed(tmp_path, {GOLD.broker_symbol: GOLD.broker_symbol}, CLOCK))
    assert f"the bars of {held}, not of channel main, account 1001, XAUUSD.m M15" in said
    assert remedy in said


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            text(BARS, OFFSET, version=3),
            "the Expert Advisor on channel main speaks protocol 3, this Torra 2: update Torra",
        ),
        (signed(['{"v":3,"msg":"bars","more":1}']), "speaks protocol 3, this Torra 2"),
    ],
)
def test_an_expert_advisor_of_another_version_is_told(
    tmp_path: Path, content: str, told: str
) -> None:
    put(tmp_path / "bars" / "XAUUSD%2Em_M15.csv", content, NOON)
    assert told in refusal(feed(tmp_path, {GOLD.broker_symbol: GOLD.broker_symbol}, CLOCK))


FIRST = text(BARS, OFFSET).partition("\n")[0]


@pytest.mark.parametrize(
    "first",
    [
        HEADER,
        "",
        FIRST.replace('"count":4', '"count":4,"more":1'),
        FIRST.replace('"count":4,', ""),
        FIRST.replace('"account":1001', '"account":"1001"'),
        FIRST.replace('"msg":"bars"', '"msg":"ea"'),
        FIRST.replace("XAUUSD.m", 'XAU"USD'),
        FIRST + " ",
        FIRST[:-1],
    ],
)
def test_a_signed_first_line_that_names_nothing_is_refused(tmp_path: Path, first: str) -> None:
    content = signed([first, HEADER, *lines(BARS)])
    put(tmp_path / "bars" / "XAUUSD%2Em_M15.csv", content, NOON)
    said = refusal(feed(tmp_path, {GOLD.broker_symbol: GOLD.broker_symbol}, CLOCK))
    assert "its first line does not say whose bars they are: compile and attach" in said
