"""Who publishes series: all that can be asked, at the addresses that the environment names."""

from __future__ import annotations

from collections.abc import Mapping

from torra.outside.answers import SeriesPublisher
from torra.outside.cftc import Cftc
from torra.outside.fred import Fred
from torra.providers.vendors.addresses import address


def open_publishers(environment: Mapping[str, str]) -> dict[str, SeriesPublisher]:
    """Return who can be asked, by name; raises ConfigError for a bad address or token."""
    return {
        Fred.name: Fred(address(Fred.name, environment)),
        Cftc.name: Cftc(address(Cftc.name, environment)),
    }
