"""Where a vendor is reached, with which key, and what an environment may not say."""

from __future__ import annotations

import pytest

from torra.errors import ConfigError
from torra.providers.vendors.addresses import address, is_loopback

KEYS = {
    "ANTHROPIC_API_KEY": "canary-anthropic",
    "GOOGLE_API_KEY": "canary-google",
    "OPENAI_API_KEY": "canary-openai",
}
WORDS = {"anthropic": "ANTHROPIC", "google": "GOOGLE", "openai_compatible": "OPENAI"}
HOSTS = {
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "openai_compatible": "https://api.openai.com/v1",
}


def at(url: str, vendor: str = "openai_compatible", **more: str):
    return address(vendor, {**KEYS, f"TORRA_{WORDS[vendor]}_BASE_URL": url, **more})


@pytest.mark.parametrize("vendor", WORDS)
def test_without_more_the_vendor_is_reached_with_its_key(vendor: str) -> None:
    place = address(vendor, KEYS)
    assert place.base_url == HOSTS[vendor]
    assert place.key == KEYS[f"{WORDS[vendor]}_API_KEY"]
    assert place.official and not place.local


def test_google_has_two_names_for_its_key() -> None:
    assert address("google", {"GEMINI_API_KEY": "second"}).key == "second"
    assert address("google", {"GEMINI_API_KEY": "second", "GOOGLE_API_KEY": "first"}).key == "first"


def test_the_vendors_own_address_written_out_is_the_vendors() -> None:
    assert at("https://API.openai.com:443/v1/").official
    assert at("https://API.openai.com:443/v1/").key == "canary-openai"
    assert at("https://api.openai.com/v1", TORRA_OPENAI_CUSTOM_KEY="own").key == "canary-openai"


def test_only_a_model_server_on_this_machine_is_free() -> None:
    assert at("http://localhost:1234/v1").local
    assert not at("https://models.example.com/v1").local
    assert not at("http://localhost:1234", "anthropic").local


def test_who_answers_without_a_key_is_sent_none_but_the_one_that_is_there() -> None:
    token = {"TORRA_CFTC_APP_TOKEN": "canary-token", "TORRA_FRED_CUSTOM_KEY": "canary-own"}
    assert address("fred", token).key == "" and address("fred", token).official
    assert address("cftc", {}).key == "" and address("cftc", token).key == "canary-token"
    there = {**token, "TORRA_CFTC_BASE_URL": "http://127.0.0.1:9/resource/"}
    assert address("cftc", there).key == "" and not address("cftc", there).official
    assert address("cftc", {**there, "TORRA_CFTC_CUSTOM_KEY": "own"}).key == "own"
    with pytest.raises(ConfigError, match="TORRA_FRED_BASE_URL"):
        address("fred", {"TORRA_FRED_BASE_URL": "http://example.org/graph"})


def test_this_machine_is_known_by_name_and_number() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.9.1", "::1")))
    assert not any(map(is_loopback, ("", "0.0.0.0", "::", "10.0.0.1", "localhost.example.com")))
