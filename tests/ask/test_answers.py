"""An answer's figures are those of the database, its sentences code's, and it changes nothing."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agents.features import rows_of
from tests.ask.conftest import NOT_BY_SQL, AskHome, value_of
from tests.conftest import Scale
from torra.ask.answering import MOST, ask
from torra.ask.planning import MOST_CALLS, TOPICS
from torra.clock import iso, parse
from torra.config import ChatSettings
from torra.dashboard.doors import access_file
from torra.errors import ConfigError
from torra.evidence.news_digest import NewsItem
from torra.replay.changed import listing
from torra.replay.changed.listing import ChangedPage
from torra.replay.changed.without_agents import CameTo, ChangedTick, Outcome
from torra.store.research import questions as chat_table
from torra.store.trade import notes as note_table
from torra.tools.executor import Executor, ToolCall
from torra.words.ask import ASK_CODES

QUESTIONS = rows_of(Path(__file__).with_name("questions.csv"))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_every_figure_is_that_of_an_oracle_in_sql(
    homes: list[AskHome], number: int, scaled: Scale
) -> None:
    one, checked = homes[number], 0
    now = iso(one.reader.as_of)
    step = len(QUESTIONS) // scaled(200, least=50)
    with closing(sqlite3.connect(one.home / "torra.db")) as connection:
        for row in QUESTIONS[number % step :: step]:
            answer = ask(one.desk, one.database, row["question"])
            cited = {cite for sentence in answer.sentences for cite in sentence.cites}
            assert cited == {cite.id for cite in answer.citations}
            for cite in answer.citations:
                warm = number == 0 and cite.id.startswith("money.0.")
                for value in [] if warm else value_of(connection, cite.id, now):
                    assert cite.value == pytest.approx(value, abs=1e-8), (row, cite)
                    checked += 1
                told = any(re.fullmatch(pattern, cite.id) for pattern in NOT_BY_SQL)
                assert told or warm or value_of(connection, cite.id, now), cite
    assert checked > 100


def test_nothing_stored_about_a_symbol_is_said_and_nothing_else(homes: list[AskHome]) -> None:
    one = homes[0]
    for question in (
        "how is gold?",
        "why no trade on TSLA",
        "is $NVDA open",
        "eurchf today?",
    ):
        answer = ask(one.desk, one.database, question)
        assert answer.unknown[0] == "NOT_STORED" and answer.symbols[0] in answer.answer
        assert not answer.retrieval_plan.steps and not answer.citations
        assert answer.evidence_quality == "none"


def test_with_one_symbol_here_the_other_is_named_and_not_cited(homes: list[AskHome]) -> None:
    answer = ask(homes[1].desk, homes[1].database, "compare gold and silver")
    assert "NOT_STORED" in answer.unknown and answer.citations
    held = ask(homes[1].desk, homes[1].database, "what is open on gold, and its size?")
    for one in (answer, held):
        ids = [cite.id for cite in one.citations]
        assert ids and not [cite for cite in ids if "BTCUSD" in cite or "EURUSD" in cite]
        assert one.portfolio_impact == "" and one.retrieval_plan.portfolio_hits == ()


def test_an_instance_is_asked_about_by_its_name_or_its_tick(homes: list[AskHome]) -> None:
    """The fourth has the symbol of the first."""
    one = homes[2]
    named = ask(one.desk, one.database, "how is BTCUSD-04?")
    (bar,) = one.database.column(
        "SELECT max(bar_time) FROM chains WHERE instance = 'BTCUSD-04' AND timeframe = 'M15'"
    )
    about = ask(one.desk, one.database, "why?", about=f"BTCUSD-04|M15@{bar}")
    for answer in (named, about):
        ids = [cite.id for cite in answer.citations if "|" in cite.id]
        assert ids and all(one.startswith("BTCUSD-04|") for one in ids)


def test_a_session_is_its_persons_own(homes: list[AskHome]) -> None:
    one = homes[1]
    first = ask(one.desk, one.database, "how is gold?", person="anna")
    again = ask(one.desk, one.database, "why?", person="anna", session=first.session)
    assert (again.intent, again.symbols, again.session) == ("explain", ("XAUUSD",), first.session)
    foreign = ask(one.desk, one.database, "why?", person="bert", session=first.session)
    assert foreign.symbols == ()
    rows = chat_table.questions(one.database, "anna", first.session)
    assert [row["person"] for row in rows] == ["anna"] * 2 and "why" not in rows[0]["reading"]


def test_old_questions_go(busy: AskHome) -> None:
    ask(busy.desk, busy.database, "what is open?")
    busy.database.change("UPDATE chats SET at = '2020-01-01T00:00:00Z'")
    ask(busy.desk, busy.database, "what is open?")
    assert busy.database.value("SELECT count(*) FROM chats") == 1


def test_a_question_that_nobody_sees_is_none(homes: list[AskHome]) -> None:
    for question in ("", " ", "\u200b\ufe0f", "x" * 501):
        with pytest.raises(ConfigError, match="1 to 500 characters"):
            ask(homes[0].desk, homes[0].database, question)


def test_about_a_tick_is_answered_as_of_its_close(homes: list[AskHome]) -> None:
    one = homes[0]
    bars = one.database.column(
        "SELECT bar_time FROM chains WHERE timeframe = 'M15' ORDER BY bar_time"
    )
    answer = ask(one.desk, one.database, "why?", about=f"BTCUSD|M15@{bars[3]}")
    ticks = [cite.id for cite in answer.citations if cite.id.startswith("BTCUSD|M15@")]
    assert ticks and all(parse(one.partition("@")[2].partition("/")[0]) <= parse(bars[3])
                         for one in ticks)  # fmt: skip
    for about in (
        "BTCUSD|M15@then", "x", "NONE|M15@2021-11-08T02:45:00Z", "BTCUSD|Q7@" + bars[3],
        "BTCUSD|M15@9999-12-31T23:59:59Z", "BTCUSD|M15@0001-01-01T00:00:00+14:00",
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            ask(one.desk, one.database, "why?", about=about)


@pytest.mark.parametrize(
    ("question", "command", "page"),
    [
        ("how do I add a symbol", "`torra init`", "docs/install.md"),
        ("how do I back up the database", "`torra backup`", "docs/backup.md"),
        ("how do I restore", "`torra restore PATH`", "docs/backup.md"),
        ("how do I set a key", "ANTHROPIC_API_KEY", "docs/models.md"),
        ("how do I stop trading", "`torra halt`", "docs/mt5.md"),
    ],
)
def test_how_it_is_done_is_a_command_and_a_page(
    homes: list[AskHome], question: str, command: str, page: str
) -> None:
    answer = ask(homes[0].desk, homes[0].database, question)
    assert answer.intent == "howto" and not answer.unknown
    assert command in answer.answer and f"… (more in {page})" in answer.answer
    assert any(answer.address == f"docs/{cite.where.partition('#')[0]}"
               for cite in answer.citations)  # fmt: skip


def test_every_topic_finds_each_of_its_texts(homes: list[AskHome]) -> None:
    executor = Executor("topics", homes[0].database, limits={})
    for _, words in TOPICS:
        for one in words.split("|"):
            call = ToolCall("find_text", {"words": one, "limit": 1}, agent="ask")
            assert executor.call(homes[0].reader, call).facts, one


def test_a_loss_of_the_day_says_that_it_counts_the_warm_up(homes: list[AskHome]) -> None:
    """The desk of the first home has traded in its warm-up alone."""
    answer = ask(homes[0].desk, homes[0].database, "how much did I lose today")
    values = {cite.id: cite.value for cite in answer.citations}
    assert values["money.0.today.trades"] == 0 and values["book.lost_today"]
    assert values["book.warm_up_today"] == pytest.approx(-float(values["book.lost_today"] or 0))
    assert "part of the loss of the day and of no account, is" in answer.answer


def test_money_of_a_changed_verdict_has_its_currency(
    homes: list[AskHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = Outcome("BUY", came_to=CameTo("closed", 1.0, 12.5))
    names = ("k", "BTCUSD", "BTCUSD", "M15", "2021-11-10T17:30:00Z", "2021-11-10T17:45:00Z")
    page = ChangedPage((ChangedTick(*names, ("verdict",), outcome, outcome),), None, 1, 1)
    monkeypatch.setattr(listing, "listed", lambda *_, **__: page)
    answer = ask(homes[0].desk, homes[0].database, "what did the agents change?")
    units = {cite.unit for cite in answer.citations if cite.id.endswith(".money")}
    assert units == {"USD"} and "with agents is 12.5 USD." in answer.answer


def test_plans_are_short_and_answers_too(homes: list[AskHome]) -> None:
    for row in QUESTIONS[::9]:
        answer = ask(homes[2].desk, homes[2].database, row["question"], portfolio=["gold"])
        assert len(answer.retrieval_plan.steps) <= MOST_CALLS
        assert sum(bool(one.cites) for one in answer.sentences) <= MOST
        assert all(one in ASK_CODES["unknown"] for one in answer.unknown)
        assert answer.evidence_quality in ASK_CODES["quality"]
        assert ("XAUUSD" in answer.portfolio_impact) is (
            answer.symbols in ((), ("XAUUSD",)) or "XAUUSD" in answer.symbols
        )


def test_an_ask_that_is_off_answers_nobody(homes: list[AskHome]) -> None:
    off = homes[0].reader.settings.model_copy(update={"chat": ChatSettings(enabled=False)})
    reader = replace(homes[0].reader, settings=off)
    with pytest.raises(ConfigError, match=r"chat\.enabled"):
        ask(lambda: reader, homes[0].database, "what is open?")


# --- requests -------------------------------------------------------------------------------------

WRITTEN = '"chats"', '"tool_calls"', '"ledger"', '"calls"', '"sqlite_sequence"'
"""Tables that a question may add rows to."""


def state_of(home: Path) -> tuple[str, dict[str, bytes]]:
    """Return every row of a home but those that a question may add, and its files."""
    with closing(sqlite3.connect(home / "torra.db")) as connection:
        lines = [one for one in connection.iterdump() if not any(name in one for name in WRITTEN)]
    files = (path for path in home.rglob("*") if path.is_file())
    return "\n".join(lines), {
        str(path): path.read_bytes() for path in files if not path.match("torra.db*")
    }


def test_requests_change_nothing_and_reveal_nothing(
    busy: AskHome, scaled: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked, and planted as headlines, lessons and notes: 500 at night."""
    canaries = ("canarykey5f1b9c77", "canarynote77e0d2")
    monkeypatch.setenv("OPENAI_API_KEY", canaries[0])
    access_file.read_or_make(busy.home)
    secrets = json.loads((busy.home / "access.json").read_text("utf-8"))
    requests = [row["text"] for row in rows_of(Path(__file__).with_name("requests.csv"))]
    (sid, *_) = busy.database.column("SELECT sid FROM signals WHERE state = 'CLOSED'")
    note_table.write_trade_note(
        busy.database, sid, f"{requests[0]} {canaries[1]}", ["tag"], revision=0, actor="a person"
    )
    busy.database.change("UPDATE signals SET detail = ?, thesis = ?", *requests[1:3])
    seen = busy.reader.as_of - timedelta(minutes=5)
    busy.database.store_news(
        NewsItem(f"planted-{at}", "invented", "invented", text, seen, seen, tickers=("BTCUSD",))
        for at, text in enumerate(requests[3:6])
    )
    for lesson, *_ in busy.database.tuples("SELECT number FROM lesson_facts LIMIT 3"):
        busy.database.add("lesson_words", {
            "lesson": lesson, "author": "a stranger", "known_at": iso(seen), "setup": requests[6],
            "outcome": requests[7], "rule": requests[8], "request_hash": "", "cost_usd": 0.0,
            "flags": "[]",
        })  # fmt: skip
    before = state_of(busy.home)
    step = len(requests) // scaled(500, least=60)
    said = []
    for text in requests[::step]:
        answer = ask(busy.desk, busy.database, text, person="a person", may_spend=True)
        assert answer.cost_usd == 0.0 and answer.analysis_mode in ("blocked", "rules")
        assert answer.analysis_mode == "rules" or answer.address
        said.append(answer.model_copy(update={"question": ""}).model_dump_json())
    assert state_of(busy.home) == before
    hidden = (*canaries, *secrets["tokens"].values(), secrets["key"], *requests[:9])
    assert not [one for one in hidden if any(one in text for text in said)]
