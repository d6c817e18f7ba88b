"""Which provider answers: checked before anything starts, then opened.

A provider is opened here and closed by whoever opened it; the switchboard, which reaches the
vendors for every desk of the process, is handed in and stays its owner's. A vendor without a key or
an SDK, and a model that is gone, are ConfigErrors that name the remedy.
"""

from __future__ import annotations

import importlib.util
from concurrent.futures import Future
from datetime import date
from typing import TYPE_CHECKING, Final, Protocol

from agent_config import VENDORS, AgentSettings
from agents.contracts import Completion, Request
from torra.clock import System
from torra.errors import ConfigError
from torra.providers.recorded import History, RecordedProvider
from torra.providers.rules.provider import RulesProvider
from torra.providers.vendors.capabilities import check_model
from torra.providers.vendors.routing import RoutedProvider

if TYPE_CHECKING:
    from torra.providers.vendors.addresses import Address
    from torra.providers.vendors.switchboard import Switchboard

PROVIDERS: Final = ("rules", "recorded", *VENDORS)
"""Every provider that a profile may name."""

SDKS: Final = {"anthropic": "anthropic", "google": "google.genai", "openai_compatible": "openai"}
PACKAGES: Final = {
    "anthropic": "anthropic",
    "google": "google-genai",
    "openai_compatible": "openai",
}


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


def open_provider(
    settings: AgentSettings,
    switchboard: Switchboard | None = None,
    *,
    history: History | None = None,
) -> Provider:
    """Open the provider that the settings name; raises ConfigError naming what to mend.

    Vendors need the switchboard, and begin to warm up; `recorded` needs the history and answers
    every request from it, whatever its model: a replay asks no vendor.
    """
    if settings.provider == "recorded" and history is not None:
        return RecordedProvider(history)
    _refuse_recorded(settings)
    vendors = [name for name in settings.vendors() if name in VENDORS]
    if not vendors:
        return RulesProvider()
    if switchboard is None:
        raise ConfigError(
            f"agents.provider: {', '.join(vendors)} cannot be asked here; use the rules provider"
        )
    check(settings, switchboard, System().now().date())
    switchboard.warm(vendors)
    return RoutedProvider(settings, switchboard, {"rules": RulesProvider()})


def check(settings: AgentSettings, switchboard: Switchboard, today: date) -> None:
    """Raise ConfigError when a vendor or a model of the settings cannot be asked."""
    _refuse_recorded(settings)
    for vendor in settings.vendors():
        if vendor in VENDORS:
            check_vendor(vendor, switchboard)
    for vendor, model in settings.routes():
        # A server in OpenAI's place may give its models any name.
        named = vendor != "openai_compatible" or switchboard.address(vendor).official
        if vendor in VENDORS and named:
            check_model(vendor, model, today)


def check_vendor(vendor: str, switchboard: Switchboard) -> Address:
    """Return where a vendor is reached; raises ConfigError when a key or the SDK is missing."""
    place = switchboard.address(vendor)
    if not _installed(SDKS[vendor]):
        raise ConfigError(
            f"agents.provider {vendor} needs the package {PACKAGES[vendor]}; install it"
        )
    return place


def _refuse_recorded(settings: AgentSettings) -> None:
    if settings.provider == "recorded":
        raise ConfigError(
            "agents.provider recorded answers from stored ticks only; it is for replays"
        )


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
