"""The feeds that Torra brings, by name, and what each is opened with.

`FEEDS` is the one table: a feed is a row, and a plug-in is opened with the same `FeedPlace`. What a
plug-in hands over passes the same door as any bars, and has a time limit of its own. The code of a
feed from a terminal is imported when an instance reads one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torra.clock import System
from torra.config import Channel, Instance
from torra.errors import ConfigError
from torra.evidence.companion_readings import READ_BARS
from torra.feeds.frame import StoredFeed
from torra.feeds.limited import LimitedFeed, LimitedFlow
from torra.feeds.protocol import Feed
from torra.feeds.sample import SampleFeed
from torra.market.broker_clock import ServerClock
from torra.time_limit import SHARE_SECONDS, TimeLimit, of_folder

if TYPE_CHECKING:
    from torra.feeds.mt5_direct import TerminalPackage

SPARE_BARS: Final = 50
"""Bars of a companion that are read beyond those that count: a trial looks at older closes."""


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """What a feed is opened with.

    `channel` is the instance's channel, None where desk.json has none of that name. `load_bars`
    reads the desk's own stored bars (symbol, timeframe, as_of, limit). `folder`, `key` and
    `terminal` lead to the channel's folder, its key and the terminal of the MetaTrader5 package;
    each raises ConfigError where there is none. `sample` is the shipped sample, one for all.
    `related` is set for a feed of the instance's companions, which are read beside its ticks.
    """

    instance: Instance
    home: Path
    environment: Mapping[str, str]
    load_bars: Callable[..., Any]
    sample: Callable[[], SampleFeed]
    channel: Channel | None = None
    folder: Callable[[], Path] = field(default=lambda: _none("folder"))
    key: Callable[[], str] = field(default=lambda: _none("key"))
    terminal: Callable[[], TerminalPackage] = field(default=lambda: _none("terminal"))
    related: bool = False

    @property
    def symbols(self) -> dict[str, str]:
        """The broker's name of each symbol that is read, by the canonical one."""
        if self.related:
            return {symbol: symbol for symbol in self.instance.companions.values()}
        return {self.instance.symbol: self.instance.broker_name}

    @property
    def server_clock(self) -> ServerClock:
        """The wall clock of the channel's server; raises ConfigError."""
        return ServerClock.parse(self._channel.server_clock)

    @property
    def account(self) -> int:
        """The number of the channel's account; raises ConfigError."""
        return self._channel.account

    @property
    def _channel(self) -> Channel:
        if self.channel is None:
            raise ConfigError(f"{self.instance.id} has no channel {self.instance.channel}")
        return self.channel


OpenFeed = Callable[[FeedPlace], Feed]


def open_feed(place: FeedPlace, plug_in: Callable[[str], OpenFeed]) -> Feed:
    """Return the feed of an instance; `plug_in` finds one that is not built in. ConfigError."""
    name = place.instance.feed
    if name in FEEDS:
        return FEEDS[name](place)
    made: Any = plug_in(name)(place)
    if missing := [call for call in ("bars", "period") if not callable(getattr(made, call, None))]:
        raise ConfigError(f"the plug-in {name} is no feed: it has no {' and no '.join(missing)}")
    # a plug-in may hang as a share may: the tick must end in time all the same
    flow = LimitedFlow(made) if callable(getattr(made, "flow", None)) else None
    return LimitedFeed(made, TimeLimit(name, SHARE_SECONDS), flow)


def _sample(place: FeedPlace) -> Feed:
    feed, instance = place.sample(), place.instance
    if place.related:
        shipped = {symbol for symbol, _ in feed.streams}
        for name, symbol in instance.companions.items():
            if symbol not in shipped:
                raise ConfigError(
                    f"instance {instance.id}: its companion {name} is {symbol}, which the sample "
                    f"does not have: name one of {', '.join(sorted(shipped))}, or leave it out"
                )
        return feed
    for timeframe in instance.timeframes:  # ConfigError for a stream that is not shipped
        feed.bars(instance.symbol, timeframe, feed.period()[0], 1)
    return feed


def _mt5_files(place: FeedPlace) -> Feed:
    from torra.feeds.mt5_files import FlowFiles, Mt5FilesFeed  # noqa: PLC0415

    folder, channel = place.folder(), place.instance.channel
    source = folder, place.symbols, place.server_clock, place.key()
    feed = Mt5FilesFeed(*source, channel=channel, account=place.account)
    if place.related:
        # A tick waits for them: a file of a thousand bars takes three times as long.
        feed.newest = READ_BARS + SPARE_BARS
        # A companion's file that hangs may not shut the door on the bars of a tick.
        return LimitedFeed(feed, TimeLimit(str(folder), SHARE_SECONDS))
    flow = FlowFiles(*source, channel=channel, account=place.account)
    return LimitedFeed(feed, of_folder(folder), LimitedFlow(flow))


def _mt5_direct(place: FeedPlace) -> Feed:
    from torra.feeds.mt5_direct import Mt5DirectFeed, Mt5DirectFlow  # noqa: PLC0415

    arguments = place.terminal(), place.symbols, place.server_clock, System()
    return Mt5DirectFeed(*arguments, LimitedFlow(Mt5DirectFlow(*arguments)))


def _none(what: str) -> Any:
    raise ConfigError(f"there is no {what} here")


FEEDS: Final[Mapping[str, OpenFeed]] = {
    "sample": _sample,
    "store": lambda place: StoredFeed(place.load_bars, "" if place.related else place.instance.id),
    "mt5_files": _mt5_files,
    "mt5_direct": _mt5_direct,
}
"""The feeds that Torra brings; torra.config.FEEDS are their names."""
