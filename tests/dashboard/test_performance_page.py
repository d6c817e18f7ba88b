"""docs/performance.md and its pictures are what the benchmarks render from what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page, plots, report
from benchmarks.missed import MISSED
from benchmarks.parts import PARTS
from benchmarks.peers import PEERS
from benchmarks.results import FILE, RUNS, Measured, missed, read, text_of
from benchmarks.rows import ALWAYS, Part, Row, at_least, at_most, exactly, ready

TARGETS = {
    "LLM calls": "<= 4",
    "longest chain of calls": "<= 3",
    "most calls in flight; all of a stage at once": "yes",
    "wall at 1.0 s per call": "<= 3.10 s",
    "wall at 0 s per call": "<= 45 ms",
    "CPU outside the LLM": "<= 35.0 ms",
    "prompt characters": "<= 20,000",
    "peak RSS": "<= 140 MB",
    "import and construct": "<= 0.60 s",
    "installed packages": "<= 65",
    "installed size": "<= 350 MB",
    "a 60 s hang of one call: after the deadline; the result is kept": "<= +0.50 s, yes",
    "three 500s in one call: that agent is skipped": "yes",
    "every call fails: equals L1 bit for bit": "yes",
    "wrong symbol in every answer: refused": "yes",
    "broken JSON at the last step: refused, recorded": "yes",
}
"""What a decision may cost, as it was set before anything was measured."""

ROWS = page.rows_of(PARTS)


def test_the_page_is_rendered_from_what_was_measured() -> None:
    told = page.DOCUMENT.read_text(encoding="utf-8")
    assert told == page.render(PARTS, read()), "run `python -m benchmarks.report --render`"


def test_the_results_are_kept_as_they_are_written() -> None:
    assert FILE.read_text(encoding="utf-8") == text_of(read())


@pytest.mark.journey
def test_the_pictures_are_drawn_from_what_was_measured() -> None:
    results = read()
    for name in plots.drawings():
        text = plots.file_of(name).read_text(encoding="utf-8")
        assert plots.seal(results) in text, "run `python -m benchmarks.report --render`"
        assert f"performance-{name}.svg" in page.render(PARTS, results)
        assert len(text) < 80_000 and "date" not in text.lower()
    for file, text in plots.draw_all(PARTS, results, ["engines"]).items():  # one stands for all
        assert file.read_text(encoding="utf-8") == text


def test_every_target_of_a_decision_has_a_row() -> None:
    assert {one.what: page.wanted(one, ROWS) for one in PEERS} == TARGETS


def test_every_part_was_measured_in_full_and_every_miss_is_explained() -> None:
    results = read()
    assert set(results) == {part.name for part in PARTS}
    for part in PARTS:
        found = results[part.name]
        for row in part.rows:
            assert len(found.figures[row.figure]) == (1 if found.trial else RUNS), row
        unexplained = {(part.name, row.figure) for row in missed(part, found)} - set(MISSED)
        assert not unexplained
    assert set(MISSED) <= set(ROWS)
    assert all(why.reason and why.plan for why in MISSED.values())


# --- a part of our own ----------------------------------------------------------------------------


def a_part(**figures: float) -> Part:
    rows = (
        Row("wait", "what is waited", "{:.1f} ms", at_most(10)),
        Row("rate", "what is done", "{:,.0f}/s", at_least(1_000)),
        Row("number", "how many", target=exactly(3)),
        Row("holds", "what holds", target=ALWAYS),
    )
    return Part("own", "Our own", ready(lambda trial: figures), rows, "A note.")


KEPT: dict[str, Any] = {
    "wait": [9.0, 10.0, 99.0],
    "rate": [1e3, 2e3, 2e3],
    "number": [3] * 3,
    "holds": [1.0] * 3,
}


def of(**changes: Any) -> Measured:
    return Measured("2026-01-02", "a machine", False, KEPT | changes)


@pytest.mark.parametrize(
    ("figure", "values", "told"),
    [
        (
            "wait",
            [9.0, 10.1, 11.0],
            "| what is waited | 10.1 ms | 9.0 ms to 11.0 ms | <= 10.0 ms |",
        ),
        ("rate", [1.0, 999.0, 5e3], "| what is done | 999/s | 1/s to 5,000/s | >= 1,000/s |"),
        ("number", [4, 4, 4], "| how many | 4 | | 3 |"),
        ("holds", [1.0, 0.5, 0.5], "| what holds | no | no to yes | yes |"),
    ],
    ids=["most", "least", "exactly", "always"],
)
def test_the_median_decides(figure: str, values: list[float], told: str) -> None:
    part = a_part()
    assert missed(part, of()) == [] and "missed" not in page.section(part, of())
    found = of(**{figure: values})
    assert [row.figure for row in missed(part, found)] == [figure]
    assert f"{told} **missed** |" in page.section(part, found)
    assert "3 of 4 targets are kept" in page.lacking([part], {"own": found})
    assert page.UNEXPLAINED.reason in page.lacking([part], {"own": found})


def test_a_target_knows_how_much_of_it_is_used_up() -> None:
    assert at_most(10).share(5) == 0.5 and at_least(10).share(5) == 2.0


def test_what_is_measured_anew_leaves_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    monkeypatch.setattr(report, "PARTS", (a_part(wait=12.0, rate=1e4, number=3, holds=1.0),))
    monkeypatch.setattr(report, "keep", lambda found: file.write_text(text_of(found)))
    monkeypatch.setattr(report, "read", lambda: read(file))
    monkeypatch.setattr(report, "write", lambda found: None)
    assert report.main(["--quick"]) == 1  # a miss that nobody has explained
    assert "missed: own, what is waited: 12.0 ms, target <= 10.0 ms" in capsys.readouterr().err
    assert not file.exists()
    monkeypatch.setattr(report, "MISSED", {("own", "wait"): page.UNEXPLAINED})
    file.write_text(text_of({"other": of()}))
    assert report.main(["--only", "own"]) == 0
    assert report.main(["--render", "--strict"]) == 1
    found = read(file)
    assert set(found) == {"other", "own"} and found["other"] == of()
    assert found["own"].figures["wait"] == [12.0] * RUNS and not found["own"].trial
    assert json.loads(file.read_text())["own"]["figures"]["rate"] == [1e4] * RUNS


def test_a_part_that_breaks_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = a_part(wait=1.0, rate=1e4, number=3, holds=1.0), a_part(wait=1.0)
    monkeypatch.setattr(report, "PARTS", (bad, good))
    assert report.attempted(bad, True) is None and report.attempted(good, True) is not None
    assert "own measured no rate, number, holds" in capsys.readouterr().err
    assert report.verdict({}, ["own"], strict=False) == 1
