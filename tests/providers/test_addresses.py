"""Where a vendor is reached, with which key, and what an environment may not say."""

from __future__ import annotations

import pytest

from tests.cases import cases
from torra.errors import ConfigError
from torra.providers.vendors.addresses import address, is_loopback
from torra.providers.vendors.table import vendors

KEYS = {
    "ANTHROPIC_API_KEY": "canary-anthropic",
    "GEMINI_API_KEY": "second",
    "GOOGLE_API_KEY": "canary-google",
    "OPENAI_API_KEY": "canary-openai",
    "TORRA_OPENAI_CUSTOM_KEY": "own",
    "TORRA_CFTC_APP_TOKEN": "canary-token",
    "TORRA_FRED_CUSTOM_KEY": "canary-own",
}
OPENAI = "openai_compatible"


@cases(
    ("vendor", "base_url", "key", "place"),
    [
        ("anthropic", "", "canary-anthropic", "official"),
        ("google", "", "canary-google", "official"),
        (OPENAI, "", "canary-openai", "official"),
        (OPENAI, "https://API.openai.com:443/v1/", "canary-openai", "official"),
        (OPENAI, "https://models.example.com/v1", "own", ""),
        (OPENAI, "http://localhost:1234/v1", "own", "local"),
        (OPENAI, "http://[::1]:1234/v1", "own", "local"),
        ("anthropic", "http://localhost:1234", "local", ""),
        # Who answers without a key is sent none but the one that is there.
        ("fred", "", "", "official"),
        ("cftc", "", "canary-token", "official"),
        ("cftc", "http://127.0.0.1:9/resource/", "", ""),
        ("edgar", "", "", "official"),
    ],
)
def test_a_vendor_is_reached_with_its_key_and_another_server_with_its_own(
    vendor: str, base_url: str, key: str, place: str
) -> None:
    """Only a model server on this machine is free."""
    row = vendors()[vendor]
    where = address(vendor, {**KEYS, f"TORRA_{row.variable}_BASE_URL": base_url})
    assert where.base_url == (base_url or row.base_url).rstrip("/")
    assert (where.key, where.official, where.local) == (key, place == "official", place == "local")


def test_google_has_two_names_for_its_key() -> None:
    assert address("google", {"GEMINI_API_KEY": "second"}).key == "second"
    with pytest.raises(ConfigError, match="GOOGLE_API_KEY or GEMINI_API_KEY"):
        address("google", {})


def test_this_machine_is_known_by_name_and_number() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.9.1", "::1")))
    assert not any(map(is_loopback, ("", "0.0.0.0", "::", "10.0.0.1", "localhost.example.com")))
