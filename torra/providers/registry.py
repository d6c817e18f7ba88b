"""Which provider answers: checked before anything starts, then opened.

A provider is opened here and closed by whoever opened it; the switchboard, which reaches the
vendors for every desk of the process, is handed in and stays its owner's. A vendor without a key or
an SDK, and a model that is gone, are ConfigErrors that name the remedy.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_config import VENDORS, AgentSettings, is_plug_in
from torra.clock import System
from torra.errors import ConfigError
from torra.providers.guarded import GuardedProvider
from torra.providers.recorded import History, RecordedProvider
from torra.providers.rules.provider import RulesProvider
from torra.providers.vendors.capabilities import check_model
from torra.providers.vendors.routing import AnsweringProvider, RoutedProvider

if TYPE_CHECKING:
    from torra.providers.vendors.addresses import Address
    from torra.providers.vendors.switchboard import VendorClients

SDKS: Final = {"anthropic": "anthropic", "google": "google.genai", "openai_compatible": "openai"}
PACKAGES: Final = {
    "anthropic": "anthropic",
    "google": "google-genai",
    "openai_compatible": "openai",
}


class Provider(AnsweringProvider, Protocol):
    """Who answers the agents' requests, under a name."""

    @property
    def name(self) -> str:
        """The name in profiles and records."""
        ...


@dataclass(frozen=True, slots=True)
class ProviderPlace:
    """What a provider is opened with.

    `switchboard` reaches the vendors for every desk of the process; None where nobody outside may
    be asked. `history` holds stored replies, for a replay. A key that a plug-in needs is its own
    affair: it comes from the environment, never from a profile.
    """

    settings: AgentSettings
    switchboard: VendorClients | None = None
    history: History | None = None


OpenProvider = Callable[[ProviderPlace], Provider]
FindPlugIn = Callable[[str], Callable[..., Any]]


def open_provider(
    settings: AgentSettings,
    switchboard: VendorClients | None = None,
    *,
    history: History | None = None,
    plug_in: FindPlugIn | None = None,
) -> Provider:
    """Open the provider that the settings name; raises ConfigError naming what to mend.

    Vendors need the switchboard, and begin to warm up; `recorded` needs the history and answers
    every request from it, whatever its model: a replay asks no vendor. `plug_in` finds a provider
    that is not built in.
    """
    place = ProviderPlace(settings, switchboard, history)
    if settings.provider in PROVIDERS:
        return PROVIDERS[settings.provider](place)
    made = _found(settings, plug_in)(place)
    if not callable(getattr(made, "submit", None)) or not callable(getattr(made, "close", None)):
        raise ConfigError(f"the plug-in {settings.provider} is no provider: submit and close")
    guarded = GuardedProvider(made, settings.provider)
    return _with_vendors(place, {settings.provider: guarded}) or guarded


def check(
    settings: AgentSettings,
    switchboard: VendorClients,
    today: date,
    plug_in: FindPlugIn | None = None,
) -> None:
    """Raise ConfigError when a vendor, a plug-in or a model of the settings cannot be asked."""
    _refuse_recorded(settings)
    if is_plug_in(settings.provider):
        _found(settings, plug_in)
    for vendor in settings.vendors():
        if vendor in VENDORS:
            check_vendor(vendor, switchboard)
    _check_models(settings, switchboard, today)


def _check_models(settings: AgentSettings, switchboard: VendorClients, today: date) -> None:
    for vendor, model in settings.routes():
        # A server in OpenAI's place may give its models any name.
        named = vendor != "openai_compatible" or switchboard.address(vendor).official
        if vendor in VENDORS and named:
            check_model(vendor, model, today)


def check_vendor(vendor: str, switchboard: VendorClients) -> Address:
    """Return where a vendor is reached; raises ConfigError when a key or the SDK is missing."""
    place = switchboard.address(vendor)
    if not installed(vendor):
        raise ConfigError(
            f"agents.provider {vendor} needs the package {PACKAGES[vendor]}; install it"
        )
    return place


def _rules(place: ProviderPlace) -> Provider:
    """Return the rules, and beside them the vendors that single roles ask."""
    rules = RulesProvider()
    return _with_vendors(place, {rules.name: rules}) or rules


def _recorded(place: ProviderPlace) -> Provider:
    if place.history is None:
        _refuse_recorded(place.settings)
        raise ConfigError("agents.provider recorded needs a history to answer from")
    return RecordedProvider(place.history)


def _vendors(place: ProviderPlace) -> Provider:
    return _with_vendors(place, {"rules": RulesProvider()}) or RulesProvider()


def _with_vendors(place: ProviderPlace, others: Mapping[str, Provider]) -> Provider | None:
    """Return what routes to the settings' vendors, and to these others; None for no vendor."""
    vendors = [name for name in place.settings.vendors() if name in VENDORS]
    if not vendors:
        return None
    if place.switchboard is None:
        raise ConfigError(
            f"agents.provider: {', '.join(vendors)} cannot be asked here; use the rules provider"
        )
    for vendor in vendors:
        check_vendor(vendor, place.switchboard)
    _check_models(place.settings, place.switchboard, System().now().date())
    place.switchboard.warm(vendors)
    return RoutedProvider(place.settings, place.switchboard, {"rules": RulesProvider(), **others})


def _found(settings: AgentSettings, plug_in: FindPlugIn | None) -> Callable[..., Any]:
    if plug_in is None:
        raise ConfigError(f"agents.provider: {settings.provider} cannot be asked here")
    return plug_in(settings.provider)


def _refuse_recorded(settings: AgentSettings) -> None:
    if settings.provider == "recorded":
        raise ConfigError(
            "agents.provider recorded answers from stored ticks only; it is for replays"
        )


def installed(vendor: str) -> bool:
    """Return whether the package by which a vendor is asked is installed."""
    try:
        return importlib.util.find_spec(SDKS[vendor]) is not None
    except ModuleNotFoundError:
        return False


PROVIDERS: Final[Mapping[str, OpenProvider]] = {
    "rules": _rules,
    "recorded": _recorded,
    **dict.fromkeys(VENDORS, _vendors),
}
"""The providers that Torra brings; a profile may also name a plug-in's."""
