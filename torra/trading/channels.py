"""Opens the connections to MetaTrader 5: the bridge and the bar feed of each channel of a desk.

Everything that can be wrong with a channel's settings (a folder that is not there, a key that is
not set, a package that is not installed) is a ConfigError with the remedy. Keys come from the
environment alone. Bridges and feeds do the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

from torra.bridges.dwx.bridge import Dwx
from torra.bridges.mt5.bridge import Mt5Direct
from torra.bridges.mt5.terminal import Terminal, load_package
from torra.bridges.protocol import ALIVE_SECONDS, QUOTE_SECONDS, Bridge, Quote
from torra.bridges.torra.book_rows import read_symbol
from torra.bridges.torra.bridge import TorraFiles, folder_of, key_of
from torra.bridges.torra.limited_disk import LimitedDisk
from torra.bridges.torra.messages import Heartbeat, MessageError, Symbols, decode
from torra.clock import System
from torra.config import MT5_FEEDS, Channel, DeskSettings, Instance
from torra.errors import ConfigError
from torra.feeds.limited import LimitedFeed
from torra.feeds.mt5_direct import Mt5DirectFeed
from torra.feeds.mt5_files import Mt5FilesFeed
from torra.feeds.protocol import Feed
from torra.home import HALT
from torra.market.broker_clock import ServerClock
from torra.time_limit import of_folder
from torra.trading.kill_switch import state_folder

HEARTBEAT: Final = Path("state") / "ea.json"
SYMBOLS: Final = Path("state") / "symbols.json"


def open_bridges(
    home: Path, settings: DeskSettings, environment: Mapping[str, str]
) -> dict[str, Bridge]:
    """Return the bridge of every channel that an instance sends to, by channel; ConfigError."""
    kinds = check(settings, environment)
    return {name: _bridge(home, name, kind, settings, environment) for name, kind in kinds.items()}


def check(settings: DeskSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the kind of bridge of every channel that is sent to; opens and makes nothing.

    Raises ConfigError for what would keep a bridge from being opened.
    """
    kinds: dict[str, str] = {}
    for item in settings.instances:
        # Found before anything is opened: a desk starts with all of its bridges or not at all.
        if item.bridge != "paper" and kinds.setdefault(item.channel, item.bridge) != item.bridge:
            raise ConfigError(
                f"channel {item.channel} is used as {kinds[item.channel]} and as {item.bridge}; "
                "give each bridge a channel of its own"
            )
    direct = [name for name, kind in kinds.items() if kind == "mt5_direct"]
    if len(direct) > 1:
        raise ConfigError(
            f"channels {' and '.join(direct)} are both mt5_direct: the MetaTrader5 package speaks "
            "to one terminal; use torra_files for the others, or a second desk"
        )
    for name, kind in kinds.items():
        _check(name, kind, settings.channels[name], environment)
    return kinds


def _check(name: str, kind: str, channel: Channel, environment: Mapping[str, str]) -> None:
    ServerClock.parse(channel.server_clock)
    if kind == "torra_files":
        key_of(channel, environment)
        folder_of(name, channel, environment)
    elif kind == "mt5_direct":
        load_package()
    elif not channel.folder:
        raise ConfigError(f"channels.{name}.folder is empty: name the folder of DWX Connect")


def _bridge(
    home: Path, name: str, kind: str, settings: DeskSettings, environment: Mapping[str, str]
) -> Bridge:
    channel, clock = settings.channels[name], System()
    symbols = [item.broker_name for item in settings.instances if item.channel == name]
    state, halts = state_folder(home, name), (home / HALT,)
    if kind == "torra_files":
        # The folder may lie on a share whose server is gone.
        disk = LimitedDisk(of_folder(folder_of(name, channel, environment)))
        return TorraFiles(name, channel, clock, environment=environment, disk=disk, halts=halts)
    if kind == "dwx":
        return Dwx(name, channel, state, symbols, clock, halts=halts)
    return Mt5Direct(name, channel, state, symbols, clock, _terminal(), halts=halts)


def trouble(
    name: str, kind: str, channel: Channel, environment: Mapping[str, str], now: datetime
) -> str:
    """Return what keeps the other side of a channel from trading now, "" for nothing.

    Only reads, and only for torra_files: with the other kinds only a running desk can ask.
    """
    if kind != "torra_files":
        return ""
    folder = folder_of(name, channel, environment)
    try:
        if not of_folder(folder).run(folder.is_dir):
            told = "is not there yet: start the Expert Advisor, or mend its path"
            return f"the folder {folder} {told}"
        raw = of_folder(folder).run((folder / HEARTBEAT).read_bytes)
        beat = decode(raw, Heartbeat, key_of(channel, environment))
    except OSError as error:
        return f"the Expert Advisor has left no sign of life: {error.strerror}"
    except MessageError as error:
        return f"its sign of life is no message ({error}): do both sides have the same channel key?"
    age, other = now.timestamp() - beat.gmt, beat.account != channel.account
    if age > ALIVE_SECONDS:
        return f"the Expert Advisor gave its last sign of life {age:.0f} s ago: start it"
    told = f"the Expert Advisor is logged in to {beat.account}, not to {channel.account}"
    return told if other else ""


def open_feeds(
    instances: Sequence[Instance],
    ways: Mapping[str, Channel],
    environment: Mapping[str, str],
) -> dict[str, Feed]:
    """Return the feed of every instance whose bars come from MetaTrader 5; raises ConfigError."""
    live = [item for item in instances if item.feed in MT5_FEEDS]
    return {item.id: _feed(item, ways[item.channel], environment) for item in live}


def _feed(instance: Instance, channel: Channel, environment: Mapping[str, str]) -> Feed:
    symbols = {instance.symbol: instance.broker_name}
    clock = ServerClock.parse(channel.server_clock)
    if instance.feed == "mt5_direct":
        return Mt5DirectFeed(_terminal(), symbols, clock, System())
    folder = folder_of(instance.channel, channel, environment)
    feed = Mt5FilesFeed(folder, symbols, clock, key_of(channel, environment))
    return LimitedFeed(feed, of_folder(folder))


def quote(
    settings: DeskSettings, instance: Instance, environment: Mapping[str, str], now: datetime
) -> Quote | None:
    """Return the broker's prices of now, as the Expert Advisor last wrote them down.

    None where nobody writes them, and where they are older than QUOTE_SECONDS. Only reads: a desk
    may be at work in the same folder.
    """
    if instance.bridge != "torra_files":
        return None
    channel = settings.channels[instance.channel]
    folder = folder_of(instance.channel, channel, environment)
    try:
        raw = of_folder(folder).run((folder / SYMBOLS).read_bytes)
        told = decode(raw, Symbols, key_of(channel, environment))
        terms = {item.broker_symbol: item for item in map(read_symbol, told.rows)}
    except (OSError, MessageError):
        return None
    found = terms.get(instance.broker_name)
    if found is None or found.quote is None:
        return None
    # A quote from the future is as wrong as an old one: one of the two clocks is.
    age = abs((now - found.quote.at).total_seconds())
    return found.quote if age <= QUOTE_SECONDS else None


@cache
def _terminal() -> Terminal:
    """Return the one terminal that the MetaTrader5 package of a process can speak to."""
    return Terminal(load_package())
