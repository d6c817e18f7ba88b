"""The bridges to a market that Torra brings, by name, and what each is opened with.

`BRIDGES` is the one table: a bridge is a row, and a plug-in is opened with the same `BridgePlace`.
The paper bridge has no row: it lives inside the tick and has no channel. A plug-in is wrapped: the
guards are asked before it, whatever it does itself, and it has a time limit (`guarded`). The code
of a bridge is imported when a channel is opened with it: a desk on paper needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from torra.bridges.mt5.terminal import Terminal, load_package
from torra.bridges.protocol import Bridge
from torra.bridges.torra.place import folder_of, key_of
from torra.clock import Clock
from torra.config import Channel
from torra.errors import ConfigError
from torra.market.broker_clock import ServerClock
from torra.time_limit import of_folder


@dataclass(frozen=True, slots=True)
class BridgePlace:
    """What a bridge is opened with.

    `name` is the channel's, `state` the folder in which this side keeps what it must remember of
    it, `symbols` the broker's names that are traded over it, `halts` the HALT files that stop
    sending, `terminal` the one terminal of the MetaTrader5 package (ConfigError without it).
    """

    name: str
    channel: Channel
    state: Path
    symbols: Sequence[str]
    clock: Clock
    environment: Mapping[str, str]
    halts: tuple[Path, ...]
    terminal: Callable[[], Terminal]


OpenBridge = Callable[[BridgePlace], Bridge]


class BridgeKind(NamedTuple):
    """A row of `BRIDGES`.

    `check(name, channel, environment)` raises ConfigError for what would keep the bridge from being
    opened, and opens nothing. `alone` says why a process can have but one of the kind, "" where it
    can have many.
    """

    open: OpenBridge
    check: Callable[[str, Channel, Mapping[str, str]], None]
    alone: str = ""


def check_bridge(
    name: str,
    kind: str,
    channel: Channel,
    environment: Mapping[str, str],
    plug_in: Callable[[str], OpenBridge],
) -> None:
    """Raise ConfigError for what would keep the bridge of a channel from being opened."""
    ServerClock.parse(channel.server_clock)
    if kind in BRIDGES:
        BRIDGES[kind].check(name, channel, environment)
    else:
        plug_in(kind)


def open_bridge(kind: str, place: BridgePlace, plug_in: Callable[[str], OpenBridge]) -> Bridge:
    """Return the bridge of a channel; `plug_in` finds one that is not built in. ConfigError."""
    if kind in BRIDGES:
        return BRIDGES[kind].open(place)
    from torra.bridges.guarded import GuardedBridge  # noqa: PLC0415

    made = plug_in(kind)(place)
    calls = (name for name in vars(Bridge) if not name.startswith("_") and name != "name")
    if missing := [name for name in sorted(calls) if not callable(getattr(made, name, None))]:
        raise ConfigError(f"the plug-in {kind} is no bridge: it has no {' and no '.join(missing)}")
    return GuardedBridge(made, f"{kind} {place.name}", place.channel, place.clock, place.halts)


def _torra_files(place: BridgePlace) -> Bridge:
    from torra.bridges.torra.bridge import TorraFiles  # noqa: PLC0415

    folder = folder_of(place.name, place.channel, place.environment)
    return TorraFiles(
        place.name, place.channel, place.clock,
        environment=place.environment, run=of_folder(folder).run, halts=place.halts,
    )  # fmt: skip


def _mt5_direct(place: BridgePlace) -> Bridge:
    from torra.bridges.mt5.bridge import Mt5Direct  # noqa: PLC0415

    return Mt5Direct(
        place.name, place.channel, place.state, list(place.symbols), place.clock,
        place.terminal(), halts=place.halts,
    )  # fmt: skip


def _check_files(name: str, channel: Channel, environment: Mapping[str, str]) -> None:
    key_of(channel, environment)
    folder_of(name, channel, environment)


def _check_direct(_name: str, _channel: Channel, _environment: Mapping[str, str]) -> None:
    load_package()


BRIDGES: Final[Mapping[str, BridgeKind]] = {
    "torra_files": BridgeKind(_torra_files, _check_files),
    "mt5_direct": BridgeKind(
        _mt5_direct,
        _check_direct,
        "the MetaTrader5 package speaks to one terminal; use torra_files for the others, or a "
        "second desk",
    ),
}
"""The bridges that Torra brings; torra.config.MT5_BRIDGES are their names."""
