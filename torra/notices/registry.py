"""The services of notices that Torra brings, by name, and how those of others are opened.

`SERVICES` is the one table: a service is a row, and a plug-in is opened with the same NoticePlace.
What a plug-in hands over is called under the same time limit as Torra's own (torra.notices.sending)
and is known by its name in desk.json and a number, whatever it calls itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from torra.errors import ConfigError
from torra.notices import apprise_service
from torra.notices.protocol import Notice, NoticePlace, NoticeService, OpenServices

SERVICES: Final[Mapping[str, OpenServices]] = {"apprise": apprise_service.open_services}
"""The services that Torra brings; the names that torra.config.NoticeSettings knows."""


@dataclass(frozen=True, slots=True)
class NamedService:
    """A service of a plug-in, under a name that it did not choose."""

    name: str
    service: NoticeService

    def send(self, notice: Notice) -> None:
        """Bring a notice."""
        self.service.send(notice)


def open_services(
    place: NoticePlace, plug_in: Callable[[str], OpenServices]
) -> list[NoticeService]:
    """Return every way out that the settings name; `plug_in` finds what is not built in.

    Raises ConfigError for a plug-in that is not allowed, cannot be loaded or brings no service, and
    for an address that is none.
    """
    services: list[NoticeService] = []
    for name in dict.fromkeys(place.settings.services):
        if name in SERVICES:
            services += SERVICES[name](place)
            continue
        made = plug_in(name)(place)
        try:
            opened = list(made)
        except TypeError:
            raise ConfigError(f"the plug-in {name} brings no list of services") from None
        if not all(callable(getattr(one, "send", None)) for one in opened):
            raise ConfigError(f"the plug-in {name} brings a service that has no send")
        services += [NamedService(f"{name} {number}", one) for number, one in enumerate(opened, 1)]
    return services
