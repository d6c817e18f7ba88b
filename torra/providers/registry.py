"""Which provider answers: checked before anything starts, then opened.

A provider is opened here and closed by whoever opened it; the clients of vendors, which serve every
desk of the process, are handed in and stay their owner's. A vendor without a key or an SDK, and a
model that is gone, are ConfigErrors that name the remedy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from agent_config import VENDORS, AgentSettings, is_plug_in
from agents.contracts import Completion, Request
from torra.clock import System
from torra.errors import ConfigError
from torra.providers.recorded import History, RecordedProvider
from torra.providers.rules.provider import RulesProvider
from torra.providers.vendors.event_loop import failed
from torra.providers.vendors.routing import Provider, RoutedProvider
from torra.providers.vendors.table import check_model, vendors

if TYPE_CHECKING:
    from torra.providers.vendors.addresses import Address
    from torra.providers.vendors.clients import VendorClients

__all__ = ["Provider"]

log = logging.getLogger("torra")

REPLAYS_ONLY: Final = "agents.provider recorded answers from stored ticks only; it is for replays"


@dataclass(frozen=True, slots=True)
class ProviderPlace:
    """What a provider is opened with.

    `clients` reach the vendors for every desk of the process; None where nobody outside may be
    asked. `history` holds stored replies, for a replay. A key that a plug-in needs is its own
    affair: it comes from the environment, never from a profile.
    """

    settings: AgentSettings
    clients: VendorClients | None = None
    history: History | None = None


FindPlugIn = Callable[[str], Callable[..., Any]]


class GuardedProvider:
    """A plug-in as the desk may use it: whatever it does, the caller gets a future.

    What `submit` raises, or returns that is no future, is a future that failed; it counts as
    billed, because nobody knows. Deadline, retries, parsing and bounds are the framework's; the
    ceiling is the purse's, and there a plug-in's models cost the worst case until prices.json
    prices them.
    """

    def __init__(self, provider: Any, name: str) -> None:
        self.name: str = name
        self._provider = provider

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never raises."""
        try:
            answer = self._provider.submit(request)
            if isinstance(answer, Future):
                return answer
            trouble = f"it returned {type(answer).__name__} instead of a future"
        except Exception as error:
            log.exception("the provider %s", self.name)
            trouble = type(error).__name__
        return failed(f"{self.name}: {trouble}", billed=True)

    def close(self) -> None:
        """Let the plug-in go."""
        try:
            self._provider.close()
        except Exception:
            log.exception("the provider %s", self.name)


def open_provider(
    settings: AgentSettings,
    clients: VendorClients | None = None,
    *,
    history: History | None = None,
    plug_in: FindPlugIn | None = None,
) -> Provider:
    """Open the provider that the settings name; raises ConfigError naming what to mend.

    Vendors need the clients, and begin to warm up; `recorded` needs the history and answers every
    request from it, whatever its model: a replay asks no vendor. `plug_in` finds a provider that is
    not built in.
    """
    if settings.provider == "recorded" and history is not None:
        return RecordedProvider(history)
    check(settings, clients, System().now().date(), plug_in)
    first: Provider = RulesProvider()
    if is_plug_in(settings.provider):
        made = _plug_in(settings, plug_in)(ProviderPlace(settings, clients, history))
        if not all(callable(getattr(made, name, None)) for name in ("submit", "close")):
            raise ConfigError(f"the plug-in {settings.provider} is no provider: submit and close")
        first = GuardedProvider(made, settings.provider)
    names = [name for name in settings.vendors() if name in VENDORS]
    if not names or clients is None:
        return first
    clients.warm(names)
    return RoutedProvider(settings, clients, {"rules": RulesProvider(), first.name: first})


def check(
    settings: AgentSettings,
    clients: VendorClients | None,
    today: date,
    plug_in: FindPlugIn | None = None,
) -> None:
    """Raise ConfigError when a vendor, a plug-in or a model of the settings cannot be asked."""
    if settings.provider == "recorded":
        raise ConfigError(REPLAYS_ONLY)
    if is_plug_in(settings.provider):
        _plug_in(settings, plug_in)
    for vendor, model in settings.routes():
        if vendor not in VENDORS:
            continue
        if clients is None:
            raise ConfigError(
                f"agents.provider: {vendor} cannot be asked here; use the rules provider"
            )
        # A server in OpenAI's place may give its models any name.
        if check_vendor(vendor, clients).official or vendor != "openai_compatible":
            check_model(vendor, model, today)


def check_vendor(vendor: str, clients: VendorClients) -> Address:
    """Return where a vendor is reached; raises ConfigError when a key or the SDK is missing."""
    place = clients.address(vendor)
    if not installed(vendor):
        package = vendors()[vendor].package
        raise ConfigError(f"agents.provider {vendor} needs the package {package}; install it")
    return place


def installed(vendor: str) -> bool:
    """Return whether the package by which a vendor is asked is installed."""
    try:
        return find_spec(vendors()[vendor].sdk) is not None
    except ModuleNotFoundError:
        return False


def _plug_in(settings: AgentSettings, plug_in: FindPlugIn | None) -> Callable[..., Any]:
    if plug_in is None:
        raise ConfigError(f"agents.provider: {settings.provider} cannot be asked here")
    return plug_in(settings.provider)
