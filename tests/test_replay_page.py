"""Replays and scorecards: a file is shown as it is; a bad one is told and never shown."""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta

import pytest
from desk_pages import open_pages
from page_reader import Page, check_policy, check_structure

from torra.clock import iso, parse
from torra.config import ROOT
from torra.dashboard import replay_files, replays
from torra.dashboard.replay_files import Document, Series, Shelf, allowed

DOCS = (ROOT / "docs" / "replays.md").read_text(encoding="utf-8")
EXAMPLE = json.loads(re.search(r"```json\n(.*?)```", DOCS, re.DOTALL)[1])
PROGRAM = re.search(r"```python\n(.*?)```", DOCS, re.DOTALL)[1]
START = parse("2021-12-01T00:00:00Z")
EARLIER = "2020-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    found = open_pages(tmp_path_factory.mktemp("replays"), steps=2)
    yield found
    found.desk.close()


@pytest.fixture
def put(pages):
    """Write a file into the folder; everything is gone after the test."""
    folder = pages.backing.home / "replays"
    folder.mkdir()

    def write(name, told=None, **changes):
        content = told if isinstance(told, (str, bytes)) else json.dumps(
            {**(told or EXAMPLE), "name": name.removesuffix(".json"), **changes}
        )  # fmt: skip
        path = folder / (name if name.endswith(".json") else f"{name}.json")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    yield write
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def listed(pages):
    return {row["name"]: row for row in pages.json("/api/v1/replays")["replays"]}


def test_without_a_file_the_page_says_what_one_is_and_how_it_comes(pages):
    page = Page(pages.text("/replays"))
    check_structure(page)
    check_policy(page)
    assert "No replay and no scorecard yet" in page.text
    shown = " ".join(PROGRAM.split())
    assert shown in page.text
    assert pages.json("/api/v1/replays")["replays"] == []
    pages.text("/replays/nothing", 404)


def test_the_program_of_the_docs_runs(pages, tmp_path, monkeypatch, capsys):
    home = pages.backing.home.resolve()
    (tmp_path / "torra_home").symlink_to(home)
    monkeypatch.chdir(tmp_path)
    desk = json.dumps({"instances": [{"symbol": "BTCUSD"}]})
    (home / "desk.json").write_text(desk, encoding="utf-8")
    space: dict = {}
    exec(PROGRAM, space)  # it is ours, from the docs
    for name in ("source", "into"):
        space[name].close()
    (home / "desk.json").unlink()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2
    assert all(" same {}" in line for line in lines)


def test_a_file_is_shown_whole(pages, put):
    put("btc-december")
    page = Page(pages.text("/replays"))
    check_structure(page)
    assert "BTCUSD in December 2021" in page.text and "! 1 warning" in page.text
    assert "/replays/btc-december" in [a.get("href") for a in page.all("a")]
    one = Page(pages.text("/replays/btc-december"))
    check_structure(one)
    check_policy(one)
    for words in (
        "L1 alone, full desk", "39 trades are few", "Equity of the full desk, R",
        "2021-12-01 00:00 UTC: 0", "☰ scorecard",
    ):  # fmt: skip
        assert words in one.text, words
    assert ["L1 alone", "44", "\u22120.03"] in one.rows
    told = pages.json("/api/v1/replays/btc-december")
    assert Document.model_validate(told) == Document.model_validate(EXAMPLE)


BROKEN = {
    "no-json": ("{", "it is not JSON"),
    "nan": (json.dumps(EXAMPLE).replace("44", "NaN"), "NaN is no number"),
    "deep": ("[" * 200_000, "it is not JSON"),
    "no-text": (b"\xff\xfe{}", "it is not JSON"),
    "list": ("[]", "the whole file"),
    "kind": ({**EXAMPLE, "kind": "poem"}, "kind:"),
    "unknown": ({**EXAMPLE, "extra": 1}, "extra:"),
    "short-row": (
        {**EXAMPLE, "tables": [{"title": "t", "columns": ["a", "b"], "rows": [["x"]]}]},
        "a row has not 2 cells",
    ),
    "order": (
        {**EXAMPLE, "series": [{"title": "s", "points": [[iso(START), 1], [EARLIER, 2]]}]},
        "not in the order of time",
    ),
    "naive": ({**EXAMPLE, "created_at": "2026-11-22T08:00:00"}, "created_at"),
    "backwards": (
        {**EXAMPLE, "period": {"from": "2021-12-02T00:00:00Z", "to": "2021-12-01T00:00:00Z"}},
        "it ends before it begins",
    ),
    "huge-number": (json.dumps(EXAMPLE).replace("44", "9" * 5000), "it is not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_listed_with_the_reason(pages, put, name):
    told, reason = BROKEN[name]
    put(name, told)
    assert reason in listed(pages)[name]["problem"]
    page = Page(pages.text("/replays"))
    assert "✕ broken" in page.text and reason in page.text
    assert "This file cannot be shown" in pages.text(f"/replays/{name}")
    assert reason in pages.json(f"/api/v1/replays/{name}", 422)["problem"]


def test_a_file_must_have_the_name_that_it_bears(pages, put):
    put("other", json.dumps(EXAMPLE))
    assert "it calls itself btc-december" in listed(pages)["other"]["problem"]


def test_a_file_that_is_too_large_is_not_read(pages, put, monkeypatch):
    monkeypatch.setattr(replay_files, "LARGEST", 2000)
    put("large", summary="x" * 600, warnings=["y" * 2000])
    assert "more than the 2,000 that are read" in listed(pages)["large"]["problem"]


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_no_link_leads_out_of_the_folder(pages, put, tmp_path):
    secret = tmp_path / "outside.json"
    secret.write_text(json.dumps({**EXAMPLE, "name": "link"}), encoding="utf-8")
    (pages.backing.home / "replays" / "link.json").symlink_to(secret)
    (pages.backing.home / "replays" / "folder.json").mkdir()
    try:
        assert "no plain file" in listed(pages)["link"]["problem"]
        assert "no plain file" in listed(pages)["folder"]["problem"]
        assert "This file cannot be shown" in pages.text("/replays/link")
    finally:
        (pages.backing.home / "replays" / "folder.json").rmdir()


NAMES = (
    "..%2faccess", "..", "%2e%2e%2faccess", "access%00", "CON", "com1.x", "nul", "a" * 33,
    "a%20b", "-a", ".hidden", "a%5cb", "b.", "lpt9",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_no_file_may_have_is_not_there(pages, name):
    for address in (f"/replays/{name}", f"/api/v1/replays/{name}"):
        assert pages.client().get(address).status_code in (308, 404)
    assert not allowed(name)


def test_names_of_windows_devices_are_refused_and_others_allowed():
    assert allowed("a") and allowed("btc-2021.v2_x") and allowed("console") and allowed("com10")
    assert not allowed("Aux.json") and not allowed("") and not allowed("a/b")


def test_the_newest_files_are_listed_and_the_others_counted(tmp_path):
    (tmp_path / "replays").mkdir()
    for number in range(205):
        path = tmp_path / "replays" / f"f{number}.json"
        path.write_text("x", encoding="utf-8")
        os.utime(path, (number, number))
    found, older = Shelf(tmp_path).listed()
    assert (len(found), older) == (200, 5)
    assert (found[0].name, found[-1].name) == ("f204", "f5")


def test_a_file_is_read_again_only_when_it_changed(pages, put, monkeypatch):
    path = put("one")
    shelf, reads = Shelf(pages.backing.home), []
    read = replay_files.read
    monkeypatch.setattr(replay_files, "read", lambda *a: reads.append(1) or read(*a))
    assert [shelf.listed()[0][0].title for _ in range(3)] == [EXAMPLE["title"]] * 3
    assert len(reads) == 1
    put("one", title="Another")
    os.utime(path, ns=(1, 1))
    assert shelf.listed()[0][0].title == "Another"


def test_a_line_leaves_gaps_keeps_its_ends_and_is_thinned():
    points = [(START + timedelta(hours=at), float(at % 7)) for at in range(5000)]
    points[10] = (points[10][0], None)
    series = Series(title="s", points=points)
    told = replays.line_of(series)
    assert told["path"].count("L") + told["path"].count("M") <= replays.DRAWN + 2
    last = re.findall(r"[ML]([\d.]+) ", told["path"])[-1]
    assert float(last) == replays.WIDTH
    gap = replays.line_of(Series(title="s", points=points[8:13]))["path"]
    assert gap.count("M") == 2
    assert replays.line_of(Series(title="s", points=[(START, None)]))["path"] == ""
    flat = replays.line_of(Series(title="s", points=[(START, 2.0), (START, 2.0)]))
    assert flat["zero"] is None and flat["low"] == flat["high"] == "2"
    crossing = [(START, -1.0), (START + timedelta(hours=1), 3.0)]
    assert replays.line_of(Series(title="s", points=crossing))["zero"] == replays.HEIGHT * 0.75
