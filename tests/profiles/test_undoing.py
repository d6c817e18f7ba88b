"""Putting an entry back in part: what is told is what is done, and nothing guarded gets looser."""

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
from torra.profiles.book import ProfileBook
from torra.profiles.fields import ABSENT, DEFAULT, changed, flat
from torra.profiles.guard import compare, loosening
from torra.profiles.undoing import BLIND, SAME

BUY, EXECUTION = ("thresholds", "buy"), ("execution",)
SOURCES, FILE = ("news", "sources"), ("news", "file")

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
]


@pytest.fixture
def book(tmp_path: Path) -> ProfileBook:
    return open_book(tmp_path)


def plan(book: ProfileBook, number: int, may: Any = "guarded") -> Any:
    entry = book.entry("default", number)
    assert entry is not None
    return book.put_back("default", [entry], may)[0]


def undo(book: ProfileBook, number: int, may: Any = "guarded", **more: Any) -> Any:
    more = {"digest": None, "actor": "ann", "part": True, **more}
    return book.undo("default", number, may=may, **more)


def names(changes: Any) -> list[str]:
    return [change.name for change in changes]


def test_the_part_that_an_administrator_may_is_put_back_and_the_rest_stays(
    book: ProfileBook,
) -> None:
    save(book, {POSITIONS: 2, MOMENTUM: 0.4, BUY: 0.7, EXECUTION: "approve"})
    found = plan(book, 1)
    assert names(found.back) == ["sentiment_weights.momentum"]
    assert names(found.loose) == ["thresholds.buy", "risk.max_positions", "execution"]
    assert (found.guarded, found.why_not, found.total, found.whole) == ((), "", 4, False)
    assert found.command == (
        "torra profile set default thresholds.buy=0.5 risk.max_positions=3 execution=auto --yes"
    )
    assert undo(book, 1, part=False).outcome == "loosens", "all or nothing unless a part is asked"
    assert undo(book, 1).outcome == "saved"
    assert book.history("default")[0].action == "undo to 1, in part"
    assert flat(loaded(book)) == flat(DEFAULT) | {POSITIONS: 2, BUY: 0.7, EXECUTION: "approve"}


def test_whoever_may_only_approve_leaves_every_guarded_setting(book: ProfileBook) -> None:
    save(book, {POSITIONS: 4, MOMENTUM: 0.4, EXECUTION: "approve"}, may="loosen")
    found = plan(book, 1, "harmless")
    assert names(found.back) == ["sentiment_weights.momentum"]
    assert (names(found.guarded), names(found.loose)) == (["risk.max_positions"], ["execution"])
    assert undo(book, 1, "harmless").outcome == "saved"
    assert loaded(book)["risk"]["max_positions"] == 4


def test_where_nothing_may_come_back_the_reason_is_told_and_nothing_is_saved(
    book: ProfileBook,
) -> None:
    save(book, {EXECUTION: "approve"})
    found = plan(book, 1)
    assert found.why_not == "Nothing of it may be put back here."
    refused = undo(book, 1)
    assert (refused.outcome, refused.reason) == ("loosens", found.why_not)
    assert refused.command == "torra profile set default execution=auto --yes"
    assert len(book.history("default")) == 2
    assert plan(book, 2).why_not == SAME


def test_a_part_that_does_not_fit_what_stays_is_not_offered(book: ProfileBook) -> None:
    save(book, {SOURCES: ["file"], FILE: "headlines.jsonl"}, may="loosen")
    save(book, {SOURCES: ["finnhub"], FILE: ""}, may="loosen")
    found = plan(book, 2, "harmless")
    assert (names(found.back), names(found.guarded)) == (["news.sources"], ["news.file"])
    assert found.why_not == (
        "What may be put back does not fit what stays: news: the source file needs news.file, the "
        "path of its JSON lines."
    )
    assert undo(book, 2, "harmless").reason == found.why_not


def test_a_symbol_comes_or_goes_as_a_whole(book: ProfileBook) -> None:
    new = DEFAULT["symbols"]["BTCUSD"]
    save(book, {("symbols", "NEW"): new, MOMENTUM: 0.4}, may="loosen")
    gone = plan(book, 1)
    assert names(gone.back) == ["sentiment_weights.momentum"]
    assert gone.command == "torra profile set default --unset symbols.NEW --yes"
    undo(book, 1, "loosen", part=False)
    back = plan(book, 2)
    assert names(back.back) == ["sentiment_weights.momentum"]
    assert set(names(back.loose)) == {f"symbols.NEW.{name}" for name in new}


def test_a_part_is_put_back_for_the_state_that_was_looked_at_alone(book: ProfileBook) -> None:
    save(book, {MOMENTUM: 0.4, POSITIONS: 2})
    told = plan(book, 1)
    save(book, {MOMENTUM: 0.3})
    assert undo(book, 1, digest=told.digest).outcome == "conflict"
    assert loaded(book)["sentiment_weights"]["momentum"] == 0.3


def test_an_entry_of_another_version_says_what_does_not_fit(book: ProfileBook) -> None:
    save(book, {MOMENTUM: 0.4})
    path = book.folder / ".history" / "default" / "1.json"
    path.write_text(path.read_text().replace('"max_positions"', '"most_positions"'))
    assert plan(book, 1).why_not.startswith(
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
    assert other.put_back("default", [entry], "guarded")[0].why_not == BLIND


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
def test_what_is_put_back_is_what_was_told_and_never_looser(
    tmp_path_factory: pytest.TempPathFactory, scaled: Scale
) -> None:
    @settings(max_examples=scaled(1000, least=20), deadline=None)
    @given(STEPS)
    def hold(steps: list[Any]) -> None:
        book = open_book(tmp_path_factory.mktemp("book"))
        for edits, number, may in steps:
            # The command line makes any history; a page puts parts of it back.
            wish = {place: known[at % len(known)] for (place, known), at in edits}
            save(book, wish, may="loosen")
            entry = book.entry("default", number)
            if entry is None:
                continue
            before, told = loaded(book), plan(book, number, may)
            saved = book.undo(
                "default", number, digest=told.digest, may=may, actor="ann", part=True
            )
            done = compare(before, loaded(book))
            if told.why_not:
                assert not done
                continue
            assert saved.outcome == "saved"
            assert done == told.back
            assert not loosening(done)
            assert may == "guarded" or not any(change.guarded for change in done)
            rest = compare(loaded(book), entry.values)
            assert {item.place for item in rest} == {
                item.place for item in (*told.loose, *told.guarded)
            }

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
    told = CliRunner().invoke(main, words)
    assert (program, told.exit_code) == ("torra", 0), told.output
    assert loaded(book) == DEFAULT
