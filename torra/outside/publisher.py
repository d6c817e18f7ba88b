"""What the publishers of series have in common: an address, a pace, one question over a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import ClassVar, Final

import requests

from torra.clock import System
from torra.collecting.line import PLACEHOLDER, HostRequest, answered
from torra.evidence.news_digest import NewsStatus
from torra.outside.answers import SeriesAnswer
from torra.providers.vendors.addresses import Address

EVERY_S: Final = 6 * 3600.0
"""Both publish once a day or less."""

SPACING_S: Final = 2.0
HISTORY: Final = timedelta(days=3653)
"""What is asked for at first: ten years."""

WHO_ASKS: Final = "Torra"


class Publisher:
    """A publisher at an address. It is asked for a topic, and says what it knows since a day."""

    spacing = SPACING_S
    token_header: ClassVar[str] = ""
    """The header that carries the key of the address, where there is one."""

    def __init__(self, place: Address, monotonic: Callable[[], float] | None = None) -> None:
        self._place = place
        self._monotonic = monotonic or System().monotonic

    @property
    def official(self) -> bool:
        """Whether the address is the publisher's own."""
        return self._place.official

    @property
    def host(self) -> str:
        """The host that is asked."""
        return self._place.origin[1]

    def every(self, topic: str) -> float:  # noqa: ARG002 - all are alike
        """Return the seconds between two questions about a topic."""
        return EVERY_S

    def fetch(
        self, topic: str, now: datetime, seconds: float, since: date | None = None
    ) -> SeriesAnswer:
        """Ask for what is about `since` and later; `seconds` bounds the reading. Never raises."""
        first = since or (now - HISTORY).date()
        return answered(lambda: self._asked(topic, now, seconds, first), without)

    def _asked(self, topic: str, now: datetime, seconds: float, first: date) -> SeriesAnswer:
        raise NotImplementedError

    def _reply(self, path: str, query: Mapping[str, str], seconds: float) -> requests.Response:
        headers = {"User-Agent": WHO_ASKS}
        if self._place.key and self.token_header:
            headers[self.token_header] = PLACEHOLDER
        with requests.Session() as session:
            HostRequest(self._place, self._monotonic, seconds).take(session)
            # The line keeps its own time; this one is for whoever reads the call.
            return session.get(
                f"{self._place.base_url}/{path}", params=query, headers=headers, timeout=seconds
            )


def without(status: NewsStatus, detail: str) -> SeriesAnswer:
    """Return an answer that brings nothing."""
    return SeriesAnswer(status, detail=detail)
