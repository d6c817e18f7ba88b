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

from agent_config import MODELS, VENDORS, AgentSettings, route
from agents.contracts import Completion, Request
from torra.clock import System
from torra.errors import ConfigError
from torra.providers.capabilities import check_model
from torra.providers.recorded import History, RecordedProvider
from torra.providers.routing import RoutedProvider
from torra.providers.rules import RulesProvider

if TYPE_CHECKING:
    from torra.providers.switchboard import Switchboard

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
    if settings.provider == "recorded":
        return _recorded(history)
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
    for vendor in settings.vendors():
        if vendor in VENDORS:
            switchboard.address(vendor)
            if not _installed(SDKS[vendor]):
                raise ConfigError(
                    f"agents.provider {vendor} needs the package {PACKAGES[vendor]}; install it"
                )
    for vendor, model in models(settings):
        # A server in OpenAI's place may give its models any name.
        if vendor != "openai_compatible" or switchboard.address(vendor).official:
            check_model(vendor, model, today)


def models(settings: AgentSettings) -> list[tuple[str, str]]:
    """Return every (vendor, model) that a desk with these settings may ask."""
    named = [settings.model("", tier) for tier in ("quick", "deep")]
    routes = [route(name, settings.provider) for name in (*named, *settings.role_models.values())]
    spares = [settings.fallback(tier) for tier in ("quick", "deep")]
    found = dict.fromkeys([*routes, *(spare for spare in spares if spare)])
    return [(vendor, model) for vendor, model in found if vendor in MODELS and vendor in VENDORS]


def _recorded(history: History | None) -> Provider:
    if history is None:
        raise ConfigError(
            "agents.provider recorded answers from stored ticks only; it is for replays"
        )
    return RecordedProvider(history)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
