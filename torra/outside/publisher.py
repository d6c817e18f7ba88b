"""The publishers of series: an address, a pace, one question over a line.

A publisher is a module, torra.outside.fred and torra.outside.cftc, with the topics of its series
and two pure functions: the request for a topic, and the rows of the reply.
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
from torra.outside.answers import SeriesAnswer
from torra.providers.vendors.addresses import Address, address

EVERY_S: Final = 6 * 3600.0
"""Both publish once a day or less."""

SPACING_S: Final = 2.0
HISTORY: Final = timedelta(days=3653)
"""What is asked for at first: ten years."""

USER_AGENT: Final = "Torra"
MONOTONIC: Final = System().monotonic


@dataclass(frozen=True)
class Publisher:
    """A publisher at an address. `token_header` carries the key of the address, if it has one."""

    place: Address
    topics: Mapping[str, str]
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
            reply = get(self.place, path, seconds, headers, query)
            return self.read(topic, reply.content, now)

        return answered(ask, SeriesAnswer)


def get(
    place: Address,
    path: str,
    seconds: float,
    headers: Mapping[str, str],
    query: Mapping[str, str] | None = None,
    *,
    monotonic: Callable[[], float] = MONOTONIC,
) -> requests.Response:
    """Return the whole reply to one request; raises SourceError, and what requests raises."""
    with requests.Session() as session:
        HostRequest(place, monotonic, seconds).take(session)
        # The line keeps its own time; this one is for whoever reads the call.
        url = f"{place.base_url}/{path}"
        return session.get(url, params=query, headers=headers, timeout=seconds)


def open_publishers(environment: Mapping[str, str]) -> dict[str, Publisher]:
    """Return who can be asked, by name; raises ConfigError for a bad address or token."""
    of_fred, of_cftc = address("fred", environment), address("cftc", environment)
    return {
        "fred": Publisher(of_fred, fred.TOPICS, fred.request, fred.read),
        "cftc": Publisher(of_cftc, cftc.TOPICS, cftc.request, cftc.read, "X-App-Token"),
    }
