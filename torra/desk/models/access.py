"""The way to the models of a desk: providers, prices, and the accounts that pay for calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from agent_config import VENDORS, AgentSettings
from instance_database import Database
from torra.clock import System, parse
from torra.home import PRICES
from torra.plugins.loading import of_home
from torra.providers.prices import PriceList
from torra.providers.registry import FindPlugIn, Provider, check, open_provider
from torra.providers.vendors.clients import VendorClients
from torra.store import ledger as ledger_table
from torra.tick.spending import SpendingAccount


@dataclass(frozen=True, slots=True)
class Models:
    """What all instances share to reach models and to pay for them."""

    database: Database
    prices: PriceList
    clients: VendorClients
    plug_in: FindPlugIn | None = None

    def provider(self, settings: AgentSettings) -> Provider:
        """Open the provider of an instance; raises ConfigError."""
        return open_provider(settings, self.clients, plug_in=self.plug_in)

    def account(self, settings: AgentSettings, profile: str) -> SpendingAccount | None:
        """Return the account of a profile; None for one that asks nobody outside."""
        if not settings.paid():
            return None
        return SpendingAccount(
            self.database, self.prices, profile, local=self.local, now=System().real_now
        )

    def apply_blocks(self) -> None:
        """Ask no vendor that the database says is not to be asked now."""
        now = System().real_now()
        for row in ledger_table.provider_blocks(self.database):
            left = (parse(row.until) - now).total_seconds()
            self.clients.block(row.provider, row.reason, left)

    def start(self) -> None:
        """Begin nothing: a connection is opened by its first question."""

    def close(self, within: float = 0.0) -> None:  # noqa: ARG002 - it waits for nobody
        """Cancel what runs and close every connection to a vendor."""
        self.clients.close()

    def local(self, vendor: str) -> bool:
        """Return whether a vendor's server is one of one's own, which costs nothing."""
        return vendor in VENDORS and self.clients.address(vendor).local


def open_models(
    folder: Path,
    database: Database,
    environment: Mapping[str, str] | None = None,
    *,
    remember: bool = True,
) -> Models:
    """Return the way to the models; keys and addresses come from the environment alone.

    Nothing is opened yet. A vendor that refuses is remembered in the database, for the pages and
    for `torra doctor`, unless `remember` is False. Raises ConfigError for a broken price list.
    """
    prices = PriceList.read(folder / PRICES)

    def refused(vendor: str, reason: str, seconds: float) -> None:
        until = System().real_now() + timedelta(seconds=seconds)
        ledger_table.block_provider(database, vendor, reason, until)

    clients = VendorClients(
        os.environ if environment is None else environment,
        prices=prices,
        on_block=refused if remember else None,
    )
    return Models(database, prices, clients, of_home(folder, "providers"))


def check_models(
    folder: Path, settings: AgentSettings, environment: Mapping[str, str] | None = None
) -> None:
    """Raise ConfigError when the settings' models cannot be asked; opens and makes nothing."""
    prices = PriceList.read(folder / PRICES)
    clients = VendorClients(os.environ if environment is None else environment, prices=prices)
    check(settings, clients, System().now().date(), of_home(folder, "providers"))
