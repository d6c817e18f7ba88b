"""Software of others: what vendor.json lists lies there with its licence, and nothing else does."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.visitors import open_app
from tests.worlds.demo_view import ScriptedView
from torra.config import ROOT

VENDOR = ROOT / "static" / "vendor"
FRONTEND = ROOT / "frontend"
LISTED = json.loads((VENDOR / "vendor.json").read_text(encoding="utf-8"))["packages"]
FILES = {
    name: digest
    for package in LISTED
    for part in ("files", "licence_files")
    for name, digest in package[part].items()
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_vendored_file_is_the_one_that_was_listed(name: str) -> None:
    digest = hashlib.sha384((VENDOR / name).read_bytes()).digest()
    assert FILES[name] == "sha384-" + base64.b64encode(digest).decode()


def test_nothing_lies_there_unlisted() -> None:
    assert {path.name for path in VENDOR.iterdir()} == {*FILES, "vendor.json"}


@pytest.mark.parametrize("package", LISTED, ids=lambda package: package["name"])
def test_a_package_names_version_licence_and_source(package: dict[str, Any]) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    assert package["licence"] in ("Apache-2.0", "0BSD")
    assert package["version"] in package["source"]
    assert "://" not in package["source"]
    assert all(package["version"] in name for name in package["files"])
    notices = (ROOT / "THIRD_PARTY_NOTICES").read_text(encoding="utf-8")
    assert f"{package['name']} {package['version']}" in notices
    for name in package["licence_files"]:
        assert (VENDOR / name).read_text(encoding="utf-8").strip() in notices


def test_what_lies_there_is_what_the_maintainers_pinned() -> None:
    pinned = json.loads((FRONTEND / "package.json").read_text(encoding="utf-8"))["dependencies"]
    text = (FRONTEND / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in text
    assert "://" not in text
    locked = json.loads(text)["packages"]
    assert locked[""]["dependencies"] == pinned
    assert {package["name"]: package["version"] for package in LISTED} == pinned
    known = {""}
    for package in LISTED:
        own = locked[f"node_modules/{package['name']}"]
        assert own["integrity"] == package["integrity"]
        assert own["license"] == package["licence"]
        known.add(f"node_modules/{package['name']}")
        for inner in package["contains"]:
            told = locked[f"node_modules/{inner['name']}"]
            assert (told["version"], told["license"]) == (inner["version"], inner["licence"])
            known.add(f"node_modules/{inner['name']}")
    assert set(locked) == known


def test_the_script_that_fetches_makes_the_list_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("vendor", ROOT / "scripts" / "vendor.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    frontend = tmp_path / "frontend"
    shutil.copytree(FRONTEND, frontend)
    for package in LISTED:
        unpacked = frontend / "node_modules" / package["name"]
        (unpacked / "dist").mkdir(parents=True, exist_ok=True)
        (unpacked / "package.json").write_text(json.dumps({"version": package["version"]}))
        (file,) = package["files"]
        shutil.copyfile(VENDOR / file, unpacked / script.WANTED[package["name"]]["file"])
        licence = f"{package['name']}-{package['version']}.LICENSE"
        shutil.copyfile(VENDOR / licence, unpacked / "LICENSE")
    monkeypatch.setattr(script, "FRONTEND", frontend)
    monkeypatch.setattr(script, "VENDOR", tmp_path / "vendor")
    script.main()
    made = {path.name: path.read_bytes() for path in (tmp_path / "vendor").iterdir()}
    assert made == {path.name: path.read_bytes() for path in VENDOR.iterdir()}
    (unpacked / "package.json").write_text(json.dumps({"version": "0.0.1"}))
    with pytest.raises(KeyError, match=r"node_modules holds 0\.0\.1"):
        script.main()
    assert len(list((tmp_path / "vendor").iterdir())) == len(made)


def test_pages_load_only_our_own_and_listed_scripts() -> None:
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


def test_a_chart_page_shows_the_notice_and_the_link_and_no_logo() -> None:
    client = open_app(ScriptedView()).test_client()
    for address in ("/symbol/BTCUSD/M15", "/symbol/EURUSD/H1", "/symbol/XAUUSD/M15"):
        page = client.get(address).get_data(as_text=True)
        footer = page[page.index("<footer>") :]
        assert '<a href="https://www.tradingview.com/"' in footer
        assert "TradingView Lightweight Charts™" in footer
        assert "2025 TradingView, Inc." in footer
    script = (ROOT / "static" / "chart.js").read_text(encoding="utf-8")
    assert "attributionLogo: false" in script
