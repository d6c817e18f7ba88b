"""The streams that a scan covers: the desk's own, those of hosts, and what the desk file watches.

A watched symbol is read now, through the companion reader of the first of the desk's feeds that
brings it; nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from torra.config import Instance
from torra.desk import wiring
from torra.desk.looking_desk import look_at
from torra.errors import ConfigError
from torra.store import hosted as hosted_table
from torra.tools.desk_reader import DeskReader


@dataclass(frozen=True, slots=True)
class RadarStream:
    """One stream of a scan; of a watched one `instance` is that whose feed and profile serve it."""

    kind: Literal["own", "hosted", "watched"]
    instance: Instance
    symbol: str
    timeframe: str

    @property
    def name(self) -> str:
        """The stream as facts name it: INSTANCE|TIMEFRAME, of a watched one SYMBOL|TIMEFRAME."""
        return f"{self.symbol if self.kind == 'watched' else self.instance.id}|{self.timeframe}"


def open_reader(home: Path) -> DeskReader:
    """Open a home for a scan, at its desk's time of now; raises ConfigError without a desk."""
    settings, database, desk = look_at(home)
    profiles = {name: setup.profile for name, setup in desk.setups.items()}
    now = desk.clock.now().replace(microsecond=0)
    return DeskReader(home, database, settings, profiles, now)


def universe(reader: DeskReader, symbols: Sequence[str] = ()) -> list[RadarStream]:
    """Return the streams of a scan, of some symbols only where they are named.

    Raises ConfigError for a symbol that is not among them, with the list.
    """
    streams = [*_streams(reader)]
    known = sorted({one.symbol for one in streams})
    for symbol in symbols:
        if symbol not in known:
            raise ConfigError(
                f"symbols: {symbol[:40]} is not scanned; there are {', '.join(known)}"
            )
    return [one for one in streams if not symbols or one.symbol in symbols]


def _streams(reader: DeskReader) -> Iterator[RadarStream]:
    for one in reader.instances:
        for timeframe in one.timeframes:
            yield RadarStream("own", one, one.symbol, timeframe)
    for one in hosted_table.hosted_instances(reader.database):
        for timeframe in one.timeframes:
            yield RadarStream("hosted", one, one.symbol, timeframe)
    traded = {name for one in reader.instances for name in (one.symbol, one.broker_name)}
    for symbol in reader.settings.radar.watch if reader.instances else ():
        if symbol not in traded:
            server = reader.instances[0]
            for timeframe in server.timeframes:
                yield RadarStream("watched", server, symbol, timeframe)


def read_watched(reader: DeskReader, stream: RadarStream) -> tuple[Instance, pd.DataFrame]:
    """Return the newest bars of a watched stream, and the instance whose feed brought them.

    Raises ConfigError that says why no feed of the desk does.
    """
    why = ""
    servers = {(one.feed, one.channel): one for one in reversed(reader.instances)}
    for server in reversed(servers.values()):
        asks = server.model_copy(update={"companions": {"radar": stream.symbol}})
        try:
            readers = wiring.open_companions(
                [asks], reader.settings, reader.home, reader.database, keep=False
            )
            (reading,) = readers[asks.id].look(stream.timeframe, reader.as_of)
        except ConfigError as error:
            why = why or str(error)
            continue
        if reading.frame is not None:
            return server, reading.frame
        why = why or reading.says
    raise ConfigError(why)
