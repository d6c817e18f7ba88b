"""Replays and scorecards: a file is shown as it is; a bad one is told and never shown."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_config import MODES
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.browser import DESK, PHONE, Site, Visit, chromium, findings, needs_browser
from tests.doubles.page_reader import Page, check_policy
from tests.doubles.visitors import bearer
from tests.worlds.desk_pages import Pages, open_pages
from tests.worlds.replay_exhibits import demo_document
from torra.clock import iso, parse
from torra.config import ROOT, Profile
from torra.exhibits import documents as replay_files
from torra.exhibits import report
from torra.exhibits.documents import Document, ReplayShelf, allowed
from torra.replay.arms import check, chosen

DOCS = (ROOT / "docs" / "replays.md").read_text(encoding="utf-8")
EXAMPLE = json.loads(re.search(r"```json\n(.*?)```", DOCS, re.DOTALL)[1])
COMMANDS = re.search(r"```console\n(.*?)```", DOCS, re.DOTALL)[1].replace("$ ", "")
START = parse("2021-12-01T00:00:00Z")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    found = open_pages(tmp_path_factory.mktemp("replays"), steps=2)
    yield found
    found.desk.close()


@pytest.fixture
def put(pages: Pages) -> Iterator[Callable[..., Any]]:
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


def test_without_a_file_the_page_says_what_one_is_and_how_it_comes(pages: Pages) -> None:
    page = Page(pages.text("/replays"))
    check_policy(page, forms=True)
    assert "No replay and no scorecard yet" in page.text
    shown = " ".join(COMMANDS.split())
    assert shown in page.text
    assert pages.json("/api/v1/replays")["replays"] == []
    pages.text("/replays/nothing", 404)


def test_the_form_offers_every_desk_and_each_offer_may_run(pages: Pages) -> None:
    text = pages.client().get("/replays", headers=bearer("approve")).text
    wanted = [arms.split(",") for arms in re.findall(r'<option value="(l1[^"]*)">', text)]
    for names in wanted:
        check(chosen(names), Profile().agents)
    assert set(MODES) <= {name for names in wanted for name in names}


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
    "naive": ({**EXAMPLE, "created_at": "2026-11-22T08:00:00"}, "created_at"),
    "backwards": (
        {**EXAMPLE, "period": {"from": "2021-12-02T00:00:00Z", "to": "2021-12-01T00:00:00Z"}},
        "it ends before it begins",
    ),
    "misnamed": (json.dumps(EXAMPLE), "it calls itself btc-december"),
    "early": ({**EXAMPLE, "created_at": "0001-01-01T00:00:00+05:00"}, "years 1 to 9999"),
    "of-nobody": (
        {**EXAMPLE, "plots": [{"title": "p", "kind": "line", "of": "nobody", "lines": []}]},
        "a plot is of nobody",
    ),
    "huge-number": (json.dumps(EXAMPLE).replace("44", "9" * 5000), "it is not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_listed_with_the_reason(
    pages: Pages, put: Callable[..., Any], name: str
) -> None:
    told, reason = BROKEN[name]
    put(name, told)
    assert reason in listed(pages)[name]["problem"]
    page = Page(pages.text("/replays"))
    assert "✕ broken" in page.text and reason in page.text
    assert "This file cannot be shown" in pages.text(f"/replays/{name}")
    assert reason in pages.json(f"/api/v1/replays/{name}", 422)["problem"]


def test_a_file_that_is_too_large_is_not_read(
    pages: Pages, put: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_files, "LARGEST", 2000)
    put("large", summary="x" * 600, warnings=["y" * 2000])
    assert "more than the 2,000 that are read" in listed(pages)["large"]["problem"]


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_no_link_leads_out_of_the_folder(
    pages: Pages, put: Callable[..., Any], tmp_path: Path
) -> None:
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


@cases("name", NAMES)
def test_a_name_that_no_file_may_have_is_not_there(pages: Pages, name: str) -> None:
    for address in (f"/replays/{name}", f"/api/v1/replays/{name}"):
        assert pages.client().get(address).status_code in (308, 404)
    assert not allowed(name)


def test_names_of_windows_devices_are_refused_and_others_allowed() -> None:
    assert allowed("a") and allowed("btc-2021.v2_x") and allowed("console") and allowed("com10")
    assert not allowed("Aux.json") and not allowed("") and not allowed("a/b")


@pytest.mark.journey
def test_the_newest_files_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    (tmp_path / "replays").mkdir()
    for number in range(205):
        path = tmp_path / "replays" / f"f{number}.json"
        path.write_text("x", encoding="utf-8")
        os.utime(path, (number, number))
    found, older = ReplayShelf(tmp_path).listed()
    assert (len(found), older) == (200, 5)
    assert (found[0].name, found[-1].name) == ("f204", "f5")


def title(shelf: ReplayShelf) -> str:
    newest = shelf.listed()[0][0]
    assert isinstance(newest, Document)
    return newest.title


def test_a_file_is_read_again_only_when_it_changed(
    pages: Pages, put: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put("one")
    shelf, reads = ReplayShelf(pages.backing.home), []
    read = replay_files.read
    monkeypatch.setattr(replay_files, "read", lambda *a: reads.append(1) or read(*a))
    assert [title(shelf) for _ in range(3)] == [EXAMPLE["title"]] * 3
    assert len(reads) == 1
    put("one", title="Another")
    os.utime(path, ns=(1, 1))
    assert title(shelf) == "Another"


# --- the report of a replay -----------------------------------------------------------------------


@pytest.fixture
def demo(pages: Pages, put: Callable[..., Any]) -> Document:
    """Put the report with every kind of exhibit into the home, and return its document."""
    report.write(pages.backing.home, demo_document())
    return demo_document()


def test_the_report_is_served_with_a_policy_that_lets_its_own_sheet_in_alone(
    pages: Pages, put: Callable[..., Any]
) -> None:
    put("btc-december")
    answer = pages.client().get("/replays/btc-december/report.html")
    assert answer.status_code == 200 and answer.mimetype == "text/html"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy and "self" not in policy and "script" not in policy
    digest = re.search(r"sha256-([^']+)'", policy)[1]
    sheet = re.search(r"<style>(.*?)</style>", answer.text, re.DOTALL)[1]
    assert base64.b64decode(digest) == hashlib.sha256(sheet.encode()).digest()
    assert answer.headers["Content-Disposition"] == 'inline; filename="btc-december.html"'
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_file_that_cannot_be_shown_has_no_report(pages: Pages, put: Callable[..., Any]) -> None:
    put("bad", "{")
    assert "Report to print" not in pages.text("/replays/bad")
    pages.text("/replays/bad/report.html", 404)
    pages.text("/replays/nothing/report.html", 404)


def test_a_line_is_drawn_with_its_gaps_and_ends(pages: Pages, put: Callable[..., Any]) -> None:
    points = [[iso(START + timedelta(hours=at)), at % 7] for at in range(2000)]
    points[10][1] = None
    put("lines", tables=[], plots=[one_line(points)])
    text = pages.text("/replays/lines")
    (path,) = re.findall(r'class="course s1" d="([^"]+)"', text)[:1]
    assert path.count("M") == 2 and path.count("L") + 2 <= 800
    assert path.startswith("M0.0 ") and re.findall(r"L([\d.]+) ", path)[-1] == "1000.0"
    put("lines", tables=[], plots=[one_line([[iso(START), None]])])
    assert "This plot has no point with a value." in pages.text("/replays/lines")
    put("lines", tables=[], plots=[])
    assert "neither a table nor a line" in pages.text("/replays/lines")


def one_line(points: list[Any]) -> dict[str, Any]:
    return {"title": "p", "kind": "line", "lines": [{"name": "a", "points": points}]}


@pytest.mark.journey
@needs_browser
def test_page_and_report_are_right_in_a_browser_and_on_paper(
    pages: Pages, demo: Document, scaled: Scale
) -> None:
    looks = [(PHONE, "dark"), (DESK, "light"), (PHONE, "light"), (DESK, "dark")]
    with Site(pages.app) as site, chromium() as browser:
        for screen, scheme in looks[: scaled(4)]:
            with Visit(browser, screen=screen, scheme=scheme) as visit:
                visit.page.goto(f"{site.url}/replays/btc-december")
                if not scaled.whole:  # all that folds away takes axe five seconds
                    assert findings(visit.page) == []
                visit.page.evaluate(UNFOLD)
                assert visit.overhang() <= 0
                if scaled.whole:
                    assert findings(visit.page) == []
                assert visit.page.evaluate(TOUCHING) == []
        with Visit(browser, screen=PHONE) as visit:
            visit.page.goto(f"{site.url}/replays/btc-december/report.html")
            assert visit.overhang() <= 0
            visit.page.set_viewport_size({"width": 680, "height": 900})
            visit.page.emulate_media(media="print")
            inks = "[...document.querySelectorAll('.plot .course')].map((o) => getComputedStyle(o)"
            assert set(visit.page.evaluate(f"{inks}.stroke)")) == {"rgb(0, 0, 0)"}
            ground = "getComputedStyle(document.body).backgroundColor"
            assert visit.page.evaluate(ground) == "rgb(255, 255, 255)"
            assert visit.page.evaluate(TOUCHING) == []


UNFOLD = "for (const one of document.querySelectorAll('main details')) one.open = true"

TOUCHING = """() => [...document.querySelectorAll("svg.plot")].flatMap((plot) => {
  const words = [...plot.querySelectorAll("text")].filter((one) => one.checkVisibility());
  const boxes = words.map((one) => [one.textContent, one.getBoundingClientRect()]);
  const wide = document.documentElement.clientWidth;
  const out = boxes.filter(([, box]) => box.left < 0 || box.right > wide).map(([text]) => text);
  const low = 2;
  for (const [at, [text, one]] of boxes.entries()) {
    for (const [other, two] of boxes.slice(at + 1)) {
      const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
      const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
      if (across > low && down > low + 2) out.push(`${text} on ${other}`);
    }
  }
  return out;
})"""
"""Words of a plot that lie on each other or beyond the page."""
