"""Putting an entry back: what is told is what is done, whole or not at all, and never looser."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Scale
from tests.profiles.test_profile_book import MOMENTUM, POSITIONS, loaded, open_book, save
from torra.commands.command_line import main
from torra.config import Profile
from torra.profiles.book import ProfileBook
from torra.profiles.fields import ABSENT, DEFAULT, canonical, changed
from torra.profiles.guard import compare, loosening

BUY, EXECUTION = ("thresholds", "buy"), ("execution",)

EDITS: list[tuple[tuple[str, ...], tuple[Any, ...]]] = [
    (POSITIONS, (0, 1, 2, 3, 4)),
    (MOMENTUM, (0.1, 0.25, 0.4)),
    (BUY, (0.3, 0.5, 0.7)),
    (EXECUTION, ("off", "approve", "auto")),
    (("agents", "influence"), ("shadow", "earned", "full")),
    (("agents", "role_models", "technical"), ("mine", ABSENT)),
    (("timeframe_weights", "M5"), (0.1, ABSENT)),
    (("symbols", "BTCUSD", "spread"), (10.0, 15.0, 20.0)),
    (("symbols", "BTCUSD", "currencies"), (["USD"], ["USD", "EUR"])),
    (("events", "calendar"), ("", "events.csv")),
    (("risk", "cooldown_bars"), (0, 1, 2)),
    (("agents", "quorum"), (2, 3, 4)),
]


@pytest.fixture
def book(tmp_path: Path) -> ProfileBook:
    return open_book(tmp_path)


def plan(book: ProfileBook, number: int, may: Any = "guarded") -> Any:
    entry = book.entry("default", number)
    assert entry is not None
    return next(book.preview_undo("default", [entry], may))


def undo(book: ProfileBook, number: int, may: Any = "guarded", **more: Any) -> Any:
    more = {"digest": None, "actor": "ann", **more}
    return book.undo("default", number, may=may, **more)


@pytest.mark.parametrize(
    ("wish", "may", "outcome", "reason"),
    [
        ({MOMENTUM: 0.4, BUY: 0.3}, "guarded", "saved", ""),
        ({MOMENTUM: 0.4}, "harmless", "saved", ""),
        ({MOMENTUM: 0.4, POSITIONS: 4}, "harmless", "scope", "Only an administrator may change"),
        ({MOMENTUM: 0.4, BUY: 0.7}, "guarded", "loosens", "Loosening "),
        ({EXECUTION: "approve"}, "loosen", "saved", ""),
    ],
)
def test_an_entry_is_put_back_whole_or_not_at_all(
    book: ProfileBook, wish: Any, may: Any, outcome: str, reason: str
) -> None:
    save(book, wish, may="loosen")
    found, before = plan(book, 1, may), loaded(book)
    assert {change.place for change in found.changes} == set(wish)
    assert (found.outcome, found.reason.startswith(reason)) == (outcome, True)
    done = undo(book, 1, may)
    assert (done.outcome, done.reason, done.command) == (outcome, found.reason, found.command)
    assert loaded(book) == (DEFAULT if outcome == "saved" else before)
    assert found.command == ("torra profile undo default 1" if outcome == "loosens" else "")
    assert plan(book, 1 if outcome == "saved" else 2, may).outcome == "unchanged"


def test_an_entry_of_another_version_says_what_does_not_fit(book: ProfileBook) -> None:
    save(book, {MOMENTUM: 0.4})
    path = book.folder / ".history" / "default" / "1.json"
    path.write_text(path.read_text().replace('"max_positions"', '"most_positions"'))
    assert plan(book, 1).reason.startswith(
        "This entry does not fit this version: risk.most_positions"
    )


def test_a_broken_file_without_a_history_is_put_back_by_nobody_here(
    book: ProfileBook, tmp_path: Path
) -> None:
    save(book, {MOMENTUM: 0.4})
    entry = book.entry("default", 1)
    assert entry is not None
    other = open_book(tmp_path / "other")
    (tmp_path / "other" / "profiles").mkdir(parents=True)
    (tmp_path / "other" / "profiles" / "default.json").write_text("{")
    (found,) = other.preview_undo("default", [entry], "guarded")
    assert found.outcome == "loosens" and "broken and has no history" in found.reason


STEPS: st.SearchStrategy[Any] = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 4)), min_size=1, max_size=5),
        st.integers(1, 6),
        st.sampled_from(["harmless", "guarded"]),
    ),
    min_size=1,
    max_size=5,
)  # fmt: skip


@pytest.mark.journey
def test_what_is_put_back_is_the_whole_entry_and_never_looser(
    tmp_path_factory: pytest.TempPathFactory, scaled: Scale
) -> None:
    @settings(max_examples=scaled(1000, least=20), deadline=None)
    @given(STEPS)
    def hold(steps: list[Any]) -> None:
        book = open_book(tmp_path_factory.mktemp("book"))
        for edits, number, may in steps:
            # The command line makes any history; a page puts entries of it back.
            wish = {place: known[at % len(known)] for (place, known), at in edits}
            save(book, wish, may="loosen")
            entry = book.entry("default", number)
            if entry is None:
                continue
            before = loaded(book)
            save(book, {place: known[number % len(known)] for (place, known), _ in edits}, may=may)
            assert not loosening(compare(before, loaded(book))), "nor does a save"
            before, told = loaded(book), plan(book, number, may)
            saved = undo(book, number, may)
            done = compare(before, loaded(book))
            assert saved.outcome == told.outcome
            if told.outcome != "saved":
                assert not done
                continue
            assert done == told.changes
            assert not loosening(done)
            assert may == "guarded" or not any(change.guarded for change in done)
            assert loaded(book) == canonical(Profile.model_validate(entry.values))

    hold()


@pytest.mark.parametrize(
    "wish",
    [
        {EXECUTION: "off", BUY: 0.7, POSITIONS: 1, ("agents", "influence"): "shadow"},
        {("symbols", "BTCUSD", "currencies"): ["USD", "EUR"], ("symbols", "BTCUSD", "spread"): 20},
        {("events", "calendar"): "events.csv", ("symbols", "XAU.m"): DEFAULT["symbols"]["XAUUSD"]},
    ],
)
def test_the_named_command_works_as_written(
    book: ProfileBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wish: dict[Any, Any]
) -> None:
    (tmp_path / "events.csv").write_text("time,currency,impact,title\n")
    monkeypatch.setenv("TORRA_HOME", str(tmp_path))
    book.save("default", lambda values: changed(values, wish), digest=None, may="loosen", actor="a")
    program, *words = shlex.split(plan(book, 1).command)
    told = CliRunner().invoke(main, [*words, "--yes"])
    assert (program, told.exit_code) == ("torra", 0), told.output
    assert loaded(book) == DEFAULT
