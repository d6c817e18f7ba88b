"""Where a vendor is reached, with which key, and what an environment may not say."""

from __future__ import annotations

import pytest

from tests.cases import cases
from torra.errors import ConfigError
from torra.providers.vendors.addresses import DUMMY_KEY, address, is_loopback

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


@pytest.mark.parametrize("vendor", WORDS)
def test_a_missing_key_is_named(vendor: str) -> None:
    with pytest.raises(ConfigError, match=f"{WORDS[vendor]}_API_KEY"):
        address(vendor, {f"{WORDS[vendor]}_API_KEY": "  "})


def test_google_has_two_names_for_its_key() -> None:
    assert address("google", {"GEMINI_API_KEY": "second"}).key == "second"
    assert address("google", {"GEMINI_API_KEY": "second", "GOOGLE_API_KEY": "first"}).key == "first"


@cases("vendor", WORDS)
@cases(
    "url",
    [
        "http://127.0.0.1:11434/v1",
        "http://localhost:1234/v1/",
        "http://[::1]:8080",
        "https://models.example.com/v1",
        "https://api.openai.com.example.com/v1",
        "https://api.anthropic.com.:443",
        "https://generativelanguage.googleapis.com:8443",
        "http://127.255.255.254/x",
    ],
)
def test_another_server_never_gets_the_vendors_key(vendor: str, url: str) -> None:
    place = at(url, vendor)
    assert place.key == DUMMY_KEY
    assert not place.official
    custom = at(url, vendor, **{f"TORRA_{WORDS[vendor]}_CUSTOM_KEY": "own"})
    assert custom.key == "own"
    assert "canary" not in str(custom.headers()) + str(place.headers())


def test_the_vendors_own_address_written_out_is_the_vendors() -> None:
    assert at("https://API.openai.com:443/v1/").official
    assert at("https://API.openai.com:443/v1/").key == "canary-openai"
    assert at("https://api.openai.com/v1", TORRA_OPENAI_CUSTOM_KEY="own").key == "canary-openai"


def test_only_a_model_server_on_this_machine_is_free() -> None:
    assert at("http://localhost:1234/v1").local
    assert not at("https://models.example.com/v1").local
    assert not at("http://localhost:1234", "anthropic").local


@cases(
    "url",
    [
        "http://models.example.com/v1",
        "http://192.168.1.5:11434/v1",
        "http://0.0.0.0:11434/v1",
        "http://127.0.0.1.example.com/v1",
        "http://2130706433/v1",
        "https://user:hunter2@models.example.com/v1",
        "https://hunter2@models.example.com/v1",
        "https://models.example.com/v1?key=hunter2",
        "https://models.example.com/v1?",
        "https://models.example.com/v1#hunter2",
        "ftp://models.example.com",
        "file:///etc/hunter2",
        "models.example.com/v1",
        "https://",
        "https://models.example.com:hunter2/v1",
        "https://models.example.com:99999/v1",
        "https://models.example.com/v1\nx-evil: hunter2",
        "https://models.exa mple.com/hunter2",
        "https://api.opеnai.com/v1",
        "https://[::1",
    ],
)
def test_what_no_address_may_be_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigError, match="TORRA_OPENAI_BASE_URL") as caught:
        at(url)
    assert "hunter2" not in str(caught.value)
    assert "canary" not in str(caught.value)


@cases("key", ["two words", "line\nbreak", "schlüssel", "x" * 513, "tab\tbed"])
def test_an_odd_key_is_refused_without_quoting_it(key: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not a key") as caught:
        address("openai_compatible", {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)


@pytest.mark.parametrize("vendor", WORDS)
def test_an_address_does_not_show_its_key(vendor: str) -> None:
    assert "canary" not in repr(address(vendor, KEYS)) + str(address(vendor, KEYS))


def test_the_key_travels_as_each_vendor_wants_it() -> None:
    assert address("anthropic", KEYS).headers() == {
        "authorization": "Bearer canary-anthropic",
        "anthropic-version": "2026-10-21",
    }
    assert address("google", KEYS).headers() == {"x-goog-api-key": "canary-google"}
    assert address("openai_compatible", KEYS).headers() == {"authorization": "Bearer canary-openai"}


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
