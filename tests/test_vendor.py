"""Software of others: what vendor.json lists lies there with its licence, and nothing else does."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest
from demo_view import ScriptedView
from visitors import open_app

from torra.config import ROOT

VENDOR = ROOT / "static" / "vendor"
LISTED = json.loads((VENDOR / "vendor.json").read_text(encoding="utf-8"))["packages"]
FILES = {
    name: digest
    for package in LISTED
    for part in ("files", "licence_files")
    for name, digest in package[part].items()
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_vendored_file_is_the_one_that_was_listed(name):
    digest = hashlib.sha384((VENDOR / name).read_bytes()).digest()
    assert FILES[name] == "sha384-" + base64.b64encode(digest).decode()


def test_nothing_lies_there_unlisted():
    assert {path.name for path in VENDOR.iterdir()} == {*FILES, "vendor.json"}


@pytest.mark.parametrize("package", LISTED, ids=lambda package: package["name"])
def test_a_package_names_version_licence_and_source(package):
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    assert package["licence"] == "Apache-2.0"
    assert package["version"] in package["source"]
    assert all(package["version"] in name for name in package["files"])
    notices = (ROOT / "THIRD_PARTY_NOTICES").read_text(encoding="utf-8")
    assert f"{package['name']} {package['version']}" in notices
    for name in package["licence_files"]:
        assert (VENDOR / name).read_text(encoding="utf-8").strip() in notices


def test_pages_load_only_our_own_and_listed_scripts():
    client = open_app(ScriptedView()).test_client()
    for address in ("/", "/symbol/BTCUSD/M15", "/help"):
        page = client.get(address).get_data(as_text=True)
        for tag in re.findall(r"<script[^>]*>", page):
            source = re.search(r'src="/assets/([^"]+)"', tag)
            assert source, tag
            if source[1].startswith("vendor/"):
                name = source[1].removeprefix("vendor/")
                assert f'integrity="{FILES[name]}"' in tag.replace("&#43;", "+")
            assert client.get(f"/assets/{source[1]}", buffered=True).status_code == 200


def test_a_chart_page_shows_the_notice_and_the_link_and_no_logo():
    client = open_app(ScriptedView()).test_client()
    for address in ("/symbol/BTCUSD/M15", "/symbol/EURUSD/H1", "/symbol/XAUUSD/M15"):
        page = client.get(address).get_data(as_text=True)
        footer = page[page.index("<footer>") :]
        assert '<a href="https://www.tradingview.com/"' in footer
        assert "TradingView Lightweight Charts™" in footer
        assert "2025 TradingView, Inc." in footer
    script = (ROOT / "static" / "chart.js").read_text(encoding="utf-8")
    assert "attributionLogo: false" in script
