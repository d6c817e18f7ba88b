"""The publishers of series: an address, a pace, one question over a line.

A publisher is a module with three pure functions, torra.outside.fred and torra.outside.cftc: the
topic of a series, the request for a topic, and the rows of the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

import requests

from torra.clock import System
from torra.collecting.line import PLACEHOLDER, HostRequest, answered
from torra.outside import cftc, fred
from torra.outside.answers import SeriesAnswer, without
from torra.providers.vendors.addresses import Address, address

EVERY_S: Final = 6 * 3600.0
"""Both publish once a day or less."""

SPACING_S: Final = 2.0
HISTORY: Final = timedelta(days=3653)
"""What is asked for at first: ten years."""

USER_AGENT: Final = "Torra"


@dataclass(frozen=True)
class Publisher:
    """A publisher at an address. `token_header` carries the key of the address, if it has one."""

    place: Address
    topic_of: Callable[[str], str | None]
    request: Callable[[str, date], tuple[str, Mapping[str, str]]]
    read: Callable[[str, bytes, datetime], SeriesAnswer]
    token_header: str = ""
    spacing: float = SPACING_S

    def every(self, topic: str) -> float:  # noqa: ARG002 - all are alike
        """Return the seconds between two questions about a topic."""
        return EVERY_S

    def fetch(
        self, topic: str, now: datetime, seconds: float, since: date | None = None
    ) -> SeriesAnswer:
        """Ask for what is about `since` and later; `seconds` bounds the reading. Never raises."""

        def ask() -> SeriesAnswer:
            path, query = self.request(topic, since or (now - HISTORY).date())
            headers = {"User-Agent": USER_AGENT}
            if self.place.key and self.token_header:
                headers[self.token_header] = PLACEHOLDER
            with requests.Session() as session:
                HostRequest(self.place, System().monotonic, seconds).take(session)
                # The line keeps its own time; this one is for whoever reads the call.
                reply = session.get(
                    f"{self.place.base_url}/{path}", params=query, headers=headers, timeout=seconds
                )
            return self.read(topic, reply.content, now)

        return answered(ask, without)


def open_publishers(environment: Mapping[str, str]) -> dict[str, Publisher]:
    """Return who can be asked, by name; raises ConfigError for a bad address or token."""
    of_fred, of_cftc = address("fred", environment), address("cftc", environment)
    return {
        "fred": Publisher(of_fred, fred.topic_of, fred.request, fred.read),
        "cftc": Publisher(of_cftc, cftc.topic_of, cftc.request, cftc.read, "X-App-Token"),
    }
