"""Which provider answers: one row per name that a profile may choose.

A provider is opened here and closed by whoever opened it. One that this version does not have is a
ConfigError that names those it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final, Protocol

from agent_config import AgentSettings
from agents.contracts import Completion, Request
from torra.errors import ConfigError
from torra.providers.rules import RulesProvider


class Provider(Protocol):
    """Who answers the agents' requests."""

    @property
    def name(self) -> str:
        """The name in profiles and records."""
        ...

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never blocks on the answer."""
        ...

    def close(self) -> None:
        """Let go of connections and threads; unanswered requests fail."""
        ...


PROVIDERS: Final[Mapping[str, Callable[[AgentSettings], Provider]]] = {
    "rules": lambda _settings: RulesProvider(),
}
"""How each provider of this version is opened."""


def open_provider(settings: AgentSettings) -> Provider:
    """Open the provider that the settings name; raises ConfigError for one that is not here."""
    opener = PROVIDERS.get(settings.provider)
    if opener is None:
        raise ConfigError(
            f"agents.provider {settings.provider} is not in this version; it has "
            f"{', '.join(PROVIDERS)}"
        )
    return opener(settings)
