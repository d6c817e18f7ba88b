"""The streams that a scan covers: the desk's own, those of hosts, and what the desk file watches.

A watched symbol is read now, through the companion reader of the first of the desk's feeds that
brings it; nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Final, Literal, NamedTuple

import pandas as pd

from torra.config import Instance
from torra.desk import wiring
from torra.errors import ConfigError, DataUnavailable
from torra.feeds.companions import CompanionReading
from torra.store import hosted as hosted_table
from torra.time_limit import TimeLimit
from torra.tools.desk_reader import DeskReader

READ_SECONDS: Final = 10.0
"""Real seconds that a feed may take for a watched symbol."""

WATCH_SECONDS: Final = 60.0
"""Real seconds of a scan after which no further watched symbol is read."""


class RadarStream(NamedTuple):
    """One stream of a scan; of a watched one `instance` is that whose profile counts."""

    kind: Literal["own", "hosted", "watched"]
    instance: Instance
    symbol: str
    timeframe: str

    @property
    def name(self) -> str:
        """The stream as facts name it: INSTANCE|TIMEFRAME, of a watched one SYMBOL|TIMEFRAME."""
        return f"{self.symbol if self.kind == 'watched' else self.instance.id}|{self.timeframe}"


def universe(reader: DeskReader, symbols: Sequence[str] = ()) -> list[RadarStream]:
    """Return the streams of a scan, of some symbols only where they are named.

    Raises ConfigError where the radar is off, and for a symbol that is not scanned, with the list.
    """
    if not reader.settings.radar.enabled:
        raise ConfigError("the radar is off: set radar.enabled to true in desk.json")
    own = reader.instances
    traded = {name for one in own for name in (one.id, one.symbol, one.broker_name)}
    chosen = [
        *(("own", one, one.symbol) for one in own),
        *(("hosted", one, one.symbol) for one in hosted_table.hosted_instances(reader.database)),
        *(("watched", own[0], name) for name in dict.fromkeys(reader.settings.radar.watch)
          if name not in traded),
    ]  # fmt: skip
    known = {symbol for _, _, symbol in chosen}
    if unknown := [symbol for symbol in symbols if symbol not in known]:
        there = ", ".join(sorted(known))
        raise ConfigError(f"symbols: {unknown[0][:40]} is not scanned; there are {there}")
    return [
        RadarStream(kind, one, symbol, timeframe)  # type: ignore[arg-type]  # one of the three
        for kind, one, symbol in chosen
        if not symbols or symbol in symbols
        for timeframe in one.timeframes
    ]


def read_watched(reader: DeskReader, stream: RadarStream) -> pd.DataFrame:
    """Return the newest bars of a watched stream; raises DataUnavailable that says why not."""
    why = ""
    try:
        reader.profiles[stream.instance.id].symbol(stream.symbol)
    except ConfigError as error:
        raise DataUnavailable("NO_TERMS", f"{stream.symbol} cannot be read: {error}") from error
    for feed in {(one.feed, one.channel): one for one in reader.instances}.values():
        asks = feed.model_copy(update={"companions": {"radar": stream.symbol}})
        try:
            reading = _limit(feed.feed, feed.channel).run(partial(_read, reader, asks, stream))
        except (ConfigError, TimeoutError) as error:
            why = why or str(error)
            continue
        if reading.frame is not None:
            return reading.frame
        why = why or reading.says
    raise DataUnavailable("NOT_READ", f"{stream.symbol} cannot be read: {why}")


@cache
def _limit(feed: str, channel: str) -> TimeLimit:
    """Return the limit of a feed: of one that hangs a single symbol waits for an answer."""
    return TimeLimit(f"the feed {feed} {channel}", READ_SECONDS)


def _read(reader: DeskReader, asks: Instance, stream: RadarStream) -> CompanionReading:
    readers = wiring.open_companions(
        [asks], reader.settings, reader.home, reader.database, keep=False
    )
    (reading,) = readers[asks.id].look(stream.timeframe, reader.as_of)
    return reading
