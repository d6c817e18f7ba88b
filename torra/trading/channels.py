"""Opens what leads to a broker: the bridge of each channel of a desk, and what its feed needs.

Everything that can be wrong with a channel's settings (a folder that is not there, a key that is
not set, a package that is not installed) is a ConfigError with the remedy. Keys come from the
environment alone. Which bridges and feeds there are stands in torra.bridges.registry and
torra.feeds.registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torra.advisor_protocol import difference
from torra.bridges.mt5.terminal import Terminal, load_package
from torra.bridges.protocol import ALIVE_SECONDS, QUOTE_SECONDS, Bridge, Quote
from torra.bridges.registry import BRIDGES, BridgePlace, check_bridge, open_bridge
from torra.bridges.torra.place import folder_of, key_of
from torra.clock import System
from torra.config import Channel, DeskSettings, Instance
from torra.errors import ConfigError
from torra.feeds.registry import FeedPlace
from torra.feeds.sample import SampleFeed
from torra.home import HALT
from torra.plugins.loading import of_desk
from torra.regular_files import read_regular
from torra.time_limit import of_folder
from torra.trading.kill_switch import state_folder

if TYPE_CHECKING:
    from torra.bridges.torra.messages import Heartbeat

ONE_SIDED: Final = ("long_only", "short_only")
NEITHER: Final = "neither"
"""Words of a channel, or a broker, that takes openings of one side, and of both such together."""

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
    for kind, row in BRIDGES.items():
        used = [name for name, bridge in kinds.items() if bridge == kind]
        if row.alone and len(used) > 1:
            raise ConfigError(f"channels {' and '.join(used)} are both {kind}: {row.alone}")
    plug_in = of_desk(settings, "bridges")
    for name, kind in kinds.items():
        check_bridge(name, kind, settings.channels[name], environment, plug_in)
    return kinds


def _bridge(
    home: Path, name: str, kind: str, settings: DeskSettings, environment: Mapping[str, str]
) -> Bridge:
    symbols = [item.broker_name for item in settings.instances if item.channel == name]
    place = BridgePlace(
        name=name,
        channel=settings.channels[name],
        state=state_folder(home, name),
        symbols=symbols,
        clock=System(),
        environment=environment,
        halts=(home / HALT,),
        terminal=terminal,
    )
    return open_bridge(kind, place, of_desk(settings, "bridges"))


def trouble(
    name: str, kind: str, channel: Channel, environment: Mapping[str, str], now: datetime
) -> str:
    """Return what keeps the other side of a channel from trading now, "" for nothing.

    Only reads, and only for torra_files: with the other kinds only a running desk can ask.
    """
    if kind != "torra_files":
        return ""
    from torra.bridges.torra.messages import Heartbeat, MessageError, decode  # noqa: PLC0415

    folder = folder_of(name, channel, environment)
    try:
        if not of_folder(folder).run(folder.is_dir):
            detail = "is not there yet: start the Expert Advisor, or mend its path"
            return f"the folder {folder} {detail}"
        raw = of_folder(folder).run(partial(read_regular, folder / HEARTBEAT))
        beat = decode(raw, Heartbeat, key_of(channel, environment))
    except OSError as error:
        return f"the Expert Advisor has left no sign of life: {error.strerror}"
    except MessageError as error:
        if error.reason == "version":
            return difference(name, *error.versions)
        return f"its sign of life is no message ({error}): do both sides have the same channel key?"
    return _ailing(beat, name, channel, now)


def _ailing(beat: Heartbeat, name: str, channel: Channel, now: datetime) -> str:
    """Return what is wrong with an Expert Advisor by its sign of life, "" for nothing."""
    age = now.timestamp() - beat.gmt
    if beat.channel != name:
        return f"the Expert Advisor there serves channel {beat.channel}: set its input channel"
    if age > ALIVE_SECONDS:
        return f"the Expert Advisor gave its last sign of life {age:.0f} s ago: start it"
    detail = f"the Expert Advisor is logged in to {beat.account}, not to {channel.account}"
    return detail if beat.account != channel.account else ""


def feed_place(
    instance: Instance,
    settings: DeskSettings,
    home: Path,
    environment: Mapping[str, str],
    *,
    load_bars: Callable[..., Any],
    sample: Callable[[], SampleFeed],
) -> FeedPlace:
    """Return what the feed of an instance is opened with; opens nothing."""
    channel = settings.channels.get(instance.channel)
    place = FeedPlace(instance, home, environment, load_bars, sample, channel, terminal=terminal)
    if channel is None:
        return place
    return replace(
        place,
        folder=partial(folder_of, instance.channel, channel, environment),
        key=partial(key_of, channel, environment),
    )


def quote(
    settings: DeskSettings, instance: Instance, environment: Mapping[str, str], now: datetime
) -> Quote | None:
    """Return the broker's prices of now, as the Expert Advisor last wrote them down.

    None where nobody writes them, where they are of another channel or account, and where they are
    older than QUOTE_SECONDS. Only reads: a desk may be at work in the same folder.
    """
    if instance.bridge != "torra_files":
        return None
    from torra.bridges.torra.book_rows import read_symbol  # noqa: PLC0415 - not for paper
    from torra.bridges.torra.messages import MessageError, Symbols, decode  # noqa: PLC0415

    channel = settings.channels[instance.channel]
    folder = folder_of(instance.channel, channel, environment)
    try:
        raw = of_folder(folder).run(partial(read_regular, folder / SYMBOLS))
        symbols = decode(raw, Symbols, key_of(channel, environment))
        terms = {item.broker_symbol: item for item in map(read_symbol, symbols.rows)}
    except (OSError, MessageError, ValueError):
        return None
    if (symbols.channel, symbols.account) != (instance.channel, channel.account):
        return None
    row = terms.get(instance.broker_name)
    if row is None or row.quote is None:
        return None
    # A quote from the future is as wrong as an old one: one of the two clocks is.
    age = abs((now - row.quote.at).total_seconds())
    return row.quote if age <= QUOTE_SECONDS else None


@cache
def terminal() -> Terminal:
    """Return the one terminal that the MetaTrader5 package of a process can speak to."""
    return Terminal(load_package())


def taken(channel: Channel | None, mode: str) -> dict[str, Any]:
    """Return which openings a channel and the broker's mode of a symbol leave; {} where all.

    By the names of torra.verdict.ticket_checks.Account.
    """
    own = "both" if channel is None else channel.sides
    only = {word for word in (own, mode) if word in ONE_SIDED}
    # Where one takes long ones alone and the other short ones alone, nothing is left.
    limits: dict[str, Any] = {"sides": only.pop() if len(only) == 1 else NEITHER} if only else {}
    if channel is not None and channel.max_notional:
        limits["most_notional"] = channel.max_notional
    if channel is not None and channel.leverage:
        limits["most_leverage"] = channel.leverage
    return limits


def account_figures(facts: Mapping[str, object]) -> dict[str, float]:
    """Return what a bridge told of its account that checks ask for, by the names of Account.

    An account that is worth nothing, or less, is known to be; otherwise 0 is "not told".
    """
    numbers = {name: facts.get(name) for name in ("free_margin", "leverage", "equity")}
    return {
        name: float(value)
        for name, value in numbers.items()
        if isinstance(value, int | float)
        and (value > 0 or name == "equity" or (value < 0 and name == "free_margin"))
    }
