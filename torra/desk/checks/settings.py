"""The checks of a desk's settings: what they name can be opened, asked and paid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from agent_config import VENDORS, AgentSettings, is_plug_in
from torra.clock import System
from torra.config import Instance
from torra.desk import wiring
from torra.desk.checks.result import MEND, CheckResult, Context
from torra.errors import ConfigError, TorraError
from torra.home import PRICES
from torra.notices import listing
from torra.notices.protocol import NoticePlace
from torra.plugins.loading import brought, load, of_home, versions
from torra.providers.registry import check, check_vendor
from torra.providers.vendors.clients import VendorClients
from torra.providers.vendors.table import warning
from torra.tick.degradation import tick_worst_case
from torra.trading import channels

RECORDED: Final = "name another provider; torra journal replays stored ticks"


def open_channels(context: Context) -> Iterator[CheckResult]:
    """Check that each channel to MetaTrader 5 can be opened and that its advisor lives."""
    settings, environment = context.settings, context.environment
    try:
        kinds = channels.check(settings, environment)
    except TorraError as error:
        yield CheckResult("channel", "alert", str(error), MEND)
        return
    now = System().now()
    for name, kind in kinds.items():
        trouble = channels.trouble(name, kind, settings.channels[name], environment, now)
        if trouble:
            yield CheckResult("channel", "warn", f"{kind} {name}: {trouble}", "see docs/mt5.md")
        else:
            yield CheckResult("channel", "ok", f"{kind} {name}")


def instances(context: Context) -> Iterator[CheckResult]:
    """Check that each instance fits its profile."""
    for instance in context.settings.instances:
        wiring.check_profile(context.profiles[instance.profile][0], instance)
        yield CheckResult(
            "instance",
            "ok",
            f"{instance.id}: {instance.symbol} on {', '.join(instance.timeframes)}, feed "
            f"{instance.feed}, bridge {instance.bridge}, profile {instance.profile}",
        )


def plug_ins(context: Context) -> Iterator[CheckResult]:
    """Check what the packages bring that desk.json allows, and that what is named can be opened."""
    settings = context.settings
    for package in settings.plugins:
        try:
            brings = ", ".join(brought(package)) or "nothing that Torra knows"
        except ConfigError as error:
            yield CheckResult("plug-in", "alert", str(error), "or take it out of plugins")
            continue
        version = versions([f"{package}:any"])[package]
        yield CheckResult("plug-in", "ok", f"{package} {version} may be loaded: {brings}")
    for instance in settings.instances:
        if fault := plug_in_fault(instance, context):
            what = f"{instance.id}: {fault}"
            yield CheckResult("plug-in", "alert", what, "see docs/extending.md")


def plug_in_fault(instance: Instance, context: Context) -> str:
    """Return why a plug-in that an instance names cannot be used, "" when it can."""
    try:
        if is_plug_in(instance.feed):
            wiring.open_feeds([instance], context.settings, context.home, None)
        if is_plug_in(instance.bridge):
            load("bridges", instance.bridge, context.settings.plugins)
    except TorraError as error:
        return str(error)
    return ""


def notices(context: Context) -> Iterator[CheckResult]:
    """Check that notices can be sent to the addresses that are set; says nothing where none is."""
    settings = context.settings
    services = wiring.open_notices(context.home, settings, context.environment)
    place = NoticePlace(context.environment, context.home, settings.notices)
    if missing := listing.missing_extra(place):
        yield CheckResult("notices", "warn", "addresses are set, nothing is sent", missing)
    elif services:
        yield CheckResult("notices", "ok", f"sent to {', '.join(item.name for item in services)}")


# --- providers ------------------------------------------------------------------------------------


def providers(context: Context) -> Iterator[CheckResult]:
    """Check that each profile's vendors can be asked: address, key, models, prices, blocks."""
    clients = VendorClients(context.environment, prices=context.prices)
    profiles = {name: profile.agents for name, (profile, _) in context.profiles.items()}
    # Each vendor once, however many profiles name it.
    vendors = dict.fromkeys(vendor for agents in profiles.values() for vendor in agents.vendors())
    replies = {vendor: _vendor(vendor, clients) for vendor in vendors}
    yield from replies.values()
    for name, agents in profiles.items():
        # A vendor that cannot be asked was reported above; its models would only repeat it.
        if any(replies[vendor].level == "alert" for vendor in agents.vendors()):
            continue
        try:
            check(agents, clients, context.now.date(), of_home(context.home, "providers"))
        except TorraError as error:
            yield CheckResult("model", "alert", f"profile {name}: {error}", MEND)
            continue
        yield from _models(name, agents, context, clients)
        yield from _ceiling(name, agents, context, clients)


def _vendor(vendor: str, clients: VendorClients) -> CheckResult:
    if vendor == "recorded":
        return CheckResult("provider", "alert", f"{vendor}: it is for replays", RECORDED)
    if vendor not in VENDORS:
        return CheckResult("provider", "ok", f"{vendor}: no key, no network, no cost")
    try:
        place = check_vendor(vendor, clients)
    except TorraError as error:
        return CheckResult("provider", "alert", f"{vendor}: {error}", MEND)
    where = "the vendor's own server" if place.official else "a server of yours, without its key"
    return CheckResult(
        "provider", "ok", f"{vendor}: {where}, {'free' if place.local else 'billed'}"
    )


def _models(
    profile: str, agents: AgentSettings, context: Context, clients: VendorClients
) -> Iterator[CheckResult]:
    """Check that the billed models of a profile will last, and that their prices are known."""
    for vendor, model in agents.routes():
        if vendor not in VENDORS or clients.address(vendor).local:
            continue
        if ending := warning(vendor, model, context.now.date()):
            yield CheckResult("model", "warn", f"profile {profile}: {ending}", "name another model")
        if context.prices.per_million(vendor, model) is None:
            what = f"profile {profile}: no price is known for {vendor}:{model}; it is booked at"
            remedy = f"give its price in {PRICES}"
            yield CheckResult("model", "warn", f"{what} the dearest model's", remedy)


def _ceiling(
    profile: str, agents: AgentSettings, context: Context, clients: VendorClients
) -> Iterator[CheckResult]:
    """Check that the hourly ceiling of a profile lets its ticks ask their agents."""
    # Every timeframe of every instance of the profile may close at the same moment.
    ticks = sum(len(item.timeframes) for item in context.profiles[profile][1])
    ceiling = agents.max_api_cost_per_hour
    worst = tick_worst_case(context.prices, agents, lambda vendor: clients.address(vendor).local)
    if worst * ticks <= ceiling:
        return
    consequence = (
        "no tick can ask all its agents"
        if worst > ceiling
        else f"{ticks} that close together, {worst * ticks:.4f} USD, cannot all ask their agents"
    )
    yield CheckResult(
        "ceiling",
        "warn",
        f"profile {profile}: a tick costs {worst:.4f} USD at most, and "
        f"agents.max_api_cost_per_hour is {ceiling:.4f}: {consequence}",
        # Rounded up: a ceiling rounded down would warn again.
        f"raise it to {math.ceil(10_000 * worst * ticks) / 10_000:.4f} or more, or name models "
        "that cost less",
    )
