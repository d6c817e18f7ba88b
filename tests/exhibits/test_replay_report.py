"""The report of a replay: a document from exhibits, one file that needs nothing, read on paper."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Scale
from tests.doubles.browser import PHONE, Visit, chromium, findings, needs_browser, only_nightly
from tests.doubles.page_reader import Page
from tests.worlds.hostile_texts import TEXTS
from tests.worlds.replay_exhibits import (
    ARMS,
    BEGIN,
    FEW,
    demo_document,
    exhibit_of,
    exhibits,
    line_of,
    plot_of,
)
from torra.errors import ConfigError
from torra.evaluation.exhibits import Exhibit
from torra.exhibits import pages, report
from torra.exhibits.documents import LARGEST, Document, ReplayShelf
from torra.harmless_text import HOSTILE

VOID = {"meta", "link", "br", "hr", "img", "input"}
TAG = re.compile(r"<(/?)([a-z][\w-]*)[^>]*?(/?)>")
PLAIN = exhibit_of("plain", "Plain", ("a", "b"), (("x", 1.5),), "It says so.")


def changed(**changes: Any) -> Exhibit:
    """Return PLAIN with changes, checked as any exhibit."""
    return Exhibit(**{**dict(PLAIN), **changes})


def balanced(text: str) -> Page:
    """Return a page whose every element is closed in its order."""
    inside: list[str] = []
    for end, tag, closed in TAG.findall(text):
        if end:
            assert inside.pop() == tag
        elif not (closed or tag in VOID):
            inside.append(tag)
    assert inside == []
    return Page(text)


def shapes(page: Page) -> set[tuple[str, str]]:
    return {(tag, name) for tag, named in page.tags for name in (*named, "")}


@pytest.fixture(scope="module")
def demo() -> Document:
    return demo_document()


@pytest.fixture(scope="module")
def page(demo: Document) -> Page:
    return balanced(pages.html(demo))


# --- from exhibits --------------------------------------------------------------------------------


def test_a_document_holds_every_exhibit_with_its_sentence_figures_and_plots(demo: Document) -> None:
    assert [table.name for table in demo.tables] == [one.name for one in exhibits()]
    assert demo.arms == ARMS and demo.period.start == BEGIN
    few = demo.tables[1]
    assert few.says == FEW and not few.enough
    assert demo.tables[0].figures["deflated.full"] is None
    assert {plot.of for plot in demo.plots} < {table.name for table in demo.tables}
    assert Document.model_validate(json.loads(report.as_json(demo))) == demo


def test_numbers_of_numpy_are_plain() -> None:
    x, values = np.arange(5), np.sin(np.arange(5))
    own = line_of("a", tuple(zip(x, values, strict=True)), tuple(values - 1), tuple(values + 1))
    made = changed(
        rows=((np.str_("x"), np.int64(3)), ("y", np.float64(1.5))),
        plots=(plot_of("p", "line", (own,)),),
        figures={"a": np.float64(0.5), "b": np.int64(2)},
    )
    found = demo_document(exhibits=[made])
    (drawn,) = found.plots[0].lines
    assert (found.plots[0].of, drawn.points[4]) == ("plain", (4.0, float(values[4])))
    told = [*drawn.points[4], *drawn.low, *found.tables[0].figures.values()]
    assert {type(value) for value in told} == {float}
    assert repr(found.tables[0].rows) == "(('x', 3), ('y', 1.5))"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"rows": (("x", float("nan")),)}, r"rows\.0\.1"),
        ({"figures": {"a": float("inf")}}, r"figures\.a"),
        ({"rows": (("x",),)}, "2 cells"),
    ],
)
def test_a_figure_that_is_none_is_refused_with_its_place(
    changes: dict[str, Any], place: str
) -> None:
    with pytest.raises(ValueError, match=place):
        changed(**changes)


def test_a_count_is_a_whole_number_until_it_stands_in_a_document() -> None:
    made = changed(figures={"ticks": 3, "share": 0.5, "known": None})
    assert repr(made.figures) == "{'ticks': 3, 'share': 0.5, 'known': None}"
    assert repr(made.table.figures) == "{'ticks': 3.0, 'share': 0.5, 'known': None}"


def test_two_exhibits_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        demo_document(exhibits=[PLAIN, PLAIN])


# --- writing --------------------------------------------------------------------------------------


def test_a_document_is_moved_in_whole_and_found_by_the_shelf(
    tmp_path: Path, demo: Document
) -> None:
    path = report.write(tmp_path, demo)
    assert path == tmp_path / "replays" / "btc-december.json"
    assert ReplayShelf(tmp_path).document("btc-december") == demo
    assert [entry.name for entry in path.parent.iterdir()] == ["btc-december.json"]


def test_a_file_that_is_there_is_kept_unless_it_may_be_overwritten(
    tmp_path: Path, demo: Document
) -> None:
    path = report.write(tmp_path, demo)
    other = demo.model_copy(update={"title": "Another"})
    with pytest.raises(ConfigError, match="is there already"):
        report.write(tmp_path, other)
    assert ReplayShelf(tmp_path).document("btc-december") == demo
    report.write(tmp_path, other, overwrite=True)
    assert ReplayShelf(tmp_path).document("btc-december") == other
    assert [entry.name for entry in path.parent.iterdir()] == ["btc-december.json"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "CON", "nul.x", "a" * 33, ".hidden", "b."])
def test_a_name_that_no_file_may_have_is_refused(tmp_path: Path, demo: Document, name: str) -> None:
    with pytest.raises(ConfigError, match="no name of a report"):
        demo_document(name)
    with pytest.raises(ConfigError, match="no name of a report"):
        report.write(tmp_path, demo.model_copy(update={"name": name}))
    assert list(tmp_path.iterdir()) == []


def test_a_crash_while_writing_leaves_the_old_file(
    tmp_path: Path, demo: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    report.write(tmp_path, demo)

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        report.write(tmp_path, demo.model_copy(update={"title": "x"}), overwrite=True)
    assert ReplayShelf(tmp_path).document("btc-december") == demo
    assert len(list((tmp_path / "replays").iterdir())) == 1


def test_a_report_that_is_too_large_to_be_read_is_not_written(tmp_path: Path) -> None:
    rows = tuple(("w" * 1200, 1.0) for _ in range(4500))
    large = demo_document(exhibits=[changed(rows=rows)])
    with pytest.raises(ConfigError, match=f"more than the {LARGEST:,}"):
        report.write(tmp_path, large)


# --- the file -------------------------------------------------------------------------------------


def test_the_file_needs_nothing_and_nobody(page, demo):
    raw = pages.html(demo)
    assert not re.search(r"https?://|//[a-z]|url\(|@import|srcset|javascript:", raw)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "base", "form", "input"}
    for tag, named in page.tags:
        assert "style" not in named and "src" not in named, tag
        assert not [name for name in named if name.startswith("on")], tag
        assert named.get("href", "#").startswith("#"), tag
    assert [tag for tag, _ in page.tags].count("style") == 1
    policies = [n["content"] for t, n in page.tags if t == "meta" and "http-equiv" in n]
    assert policies == [pages.inner_policy()]
    assert "default-src 'none'" in pages.policy() and "unsafe" not in pages.policy()


def test_a_table_with_many_columns_and_few_rows_is_turned() -> None:
    columns = ("arm", *(f"figure {at}" for at in range(12)))
    rows = tuple((arm, *([1.25] * 11), "0.1 to 0.3") for arm in ARMS[:3])
    wide = demo_document(exhibits=[changed(columns=columns, rows=rows)])
    told = pages.table_of(wide.tables[0])
    assert told["columns"] == ["arm", *ARMS[:3]]
    assert told["rows"][0] == ["figure 0", "1.25", "1.25", "1.25"]
    assert told["rows"][-1] == ["figure 11", *["0.1 to 0.3"] * 3]
    assert told["kinds"] == ["", "num", "num", "num"]
    narrow = pages.table_of(demo_document(exhibits=[PLAIN]).tables[0])
    assert (narrow["columns"], narrow["rows"]) == (["a", "b"], [["x", "1.5"]])
    assert narrow["kinds"] == ["brief", "num"]


def test_every_plot_can_be_read_without_seeing_it(page: Page, demo: Document) -> None:
    images = [named for tag, named in page.tags if named.get("role") == "img"]
    assert len(images) == len(demo.plots)
    ids = {named.get("id") for _, named in page.tags}
    for named in images:
        assert {named["aria-labelledby"], named["aria-describedby"]} <= ids
    tags = [tag for tag, _ in page.tags]
    assert tags.count("details") == len(demo.plots)
    assert tags.count("table") == tags.count("caption") == len(demo.plots) + len(demo.tables)


def test_paper_gets_black_on_white_whole_plots_and_lines_told_apart() -> None:
    printed = "".join(re.findall(r"@media print \{(.*?)\n\}", pages.sheet(), re.DOTALL))
    assert re.search(r"\.drawn[^{]*table[^{]*\{ break-inside: avoid", printed)
    assert "--surface: #fff; --ink: #000" in printed and "--s1: #000" in printed
    assert ".along { display: inline; }" in printed
    assert "table-header-group" in printed and "@page" in pages.sheet()


def hostile(words, name="plain"):
    """Return a document in which every field of a stranger holds the words."""
    plots = (
        plot_of(words, "line", (line_of(words, ((BEGIN, 1.0),)), line_of(words, ((BEGIN,
        2.0),))), words,
             words),
        plot_of(words, "bars", (line_of(words, ((words, 1.0),)),), words, words),
        plot_of(words, "bands", (line_of(words, ((BEGIN, words),)),), words),
    )  # fmt: skip
    made = exhibit_of(name, words, (words, "b"), ((words, 1.0),), words, enough=False, plots=plots)
    return demo_document(
        title=words, summary=words, arms=(words,), warnings=(words,), exhibits=[made]
    )


@pytest.mark.journey
def test_no_word_of_a_stranger_becomes_more_than_a_word(scaled):
    harmless = shapes(balanced(pages.html(hostile("a plain word"))))
    shown, every = 0, list(TEXTS.values())
    for words in every[:: len(every) // scaled(len(every), least=20)]:
        try:
            found = hostile(words[:200])
        except ValueError:
            continue  # the door's part: empty words and lone surrogates
        shown += 1
        page = balanced(pages.html(found))
        assert shapes(page) <= harmless, words[:80]
        told = [*page.words, *(str(value) for _, named in page.tags for value in named.values())]
        assert not [text for text in told if HOSTILE.search(text)], words[:80]
        assert not HOSTILE.search(report.text(found).replace("\n", " "))
    assert shown > 15


# --- for a terminal -------------------------------------------------------------------------------


def test_lines_of_the_terminal_keep_their_width(demo: Document) -> None:
    lines = report.text(demo, full=True).splitlines()
    assert max(map(len, lines)) <= report.WIDTH
    assert not [line for line in lines if line != line.rstrip()]


def test_a_narrow_table_stands_as_it_is() -> None:
    found = report.text(demo_document(exhibits=[PLAIN]))
    assert "  a    b\n  x  1.5\n  It says so." in found


# --- in a browser ---------------------------------------------------------------------------------


@needs_browser
def test_the_file_is_right_from_a_disk(demo: Document, tmp_path: Path, scaled: Scale) -> None:
    """By day the same file is looked at as the desk serves it
    (tests.dashboard.test_replay_page)."""
    only_nightly(scaled)
    path = tmp_path / "report.html"
    path.write_text(pages.html(demo), encoding="utf-8")
    with chromium() as browser, Visit(browser, screen=PHONE, scheme="dark") as visit:
        visit.page.goto(path.as_uri())
        assert len(visit.forgive("request", path.as_uri())) == 1  # the file itself, nothing else
        assert visit.overhang() <= 0
        assert findings(visit.page) == []
