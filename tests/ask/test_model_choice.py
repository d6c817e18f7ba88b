"""A model chooses among code's sentences: it writes none, and whatever fails, code has chosen."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.features import rows_of
from tests.ask.conftest import AskHome
from tests.conftest import Scale
from tests.doubles import vendor_line
from tests.doubles.vendor_line import environment
from tests.doubles.vendor_server import (
    GOOGLE,
    VENDORS,
    Late,
    Reply,
    Reset,
    Status,
    Truncated,
    VendorServer,
)
from torra.ask import answering, model_choice, reading
from torra.ask.answer import ChatAnswer
from torra.ask.answering import MOST, ask
from torra.ask.guard import comment_of
from torra.ask.model_choice import AT_ONCE, HOURLY
from torra.ask.reading import masked
from torra.config import ChatSettings, Profile
from torra.desk.models.off_tick import OffTickReply
from torra.store.connection import stamp

QUESTION = "how is btc doing?"
COMMENTS = rows_of(Path(__file__).with_name("comments.csv"))


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer() as found:
        yield found


@pytest.fixture
def paid(busy: AskHome, server: VendorServer, monkeypatch: pytest.MonkeyPatch) -> AskHome:
    """A home whose profile has a vendor's models, on a server of this machine."""
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    rich = vendor_line.agents(GOOGLE, max_api_cost_per_hour=500.0)
    settings = busy.reader.settings.model_copy(update={"chat": ChatSettings(comment=True)})
    reader = replace(busy.reader, profiles={"BTCUSD": Profile(agents=rich)}, settings=settings)
    return replace(busy, reader=reader)


def asked(one: AskHome, question: str = QUESTION, **more: Any) -> ChatAnswer:
    return ask(one.desk, one.database, question, may_spend=True, **more)


def reply(**more: Any) -> Reply:
    document = {"say": ["s2", "s1"], "because": [], "unknown": [], "comment": "", **more}
    return Reply(text=json.dumps(document))


def test_a_model_chooses_the_order_and_pays_from_the_hour(
    paid: AskHome, server: VendorServer
) -> None:
    rules = ask(paid.desk, paid.database, QUESTION)
    server.play({"*": reply(unknown=["FUTURE", "X"], comment="Both timeframes say the same.")})
    answer = asked(paid)
    assert answer.analysis_mode == "ai" and not answer.fallback_trigger
    first, second = rules.sentences[:2]
    assert [one.text for one in answer.sentences[:2]] == [second.text, first.text]
    assert answer.unknown == ("FUTURE",) and answer.comment == "Both timeframes say the same."
    assert {one.id for one in answer.citations} == {*second.cites, *first.cites}
    booked = paid.database.rows("SELECT * FROM ledger WHERE stage = 'chat'")
    assert answer.cost_usd == pytest.approx(booked[0]["usd"]) and len(booked) == 1
    assert paid.database.value("SELECT count(*) FROM calls WHERE torra_key LIKE 'chat|%'") == 1


FAULTS = {
    "key": (Status(401), "AUTH_REFUSED"), "busy": (Status(503), "BUSY"),
    "prose": (Reply(text="Buy gold now."), "GARBAGE"), "reset": (Reset(), "NETWORK"),
    "cut": (Truncated(), "NETWORK"), "nothing": (reply(say=["s99", 7]), "GARBAGE"),
    "other form": (Reply(text='{"say": "s1"}'), "GARBAGE"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_code_has_chosen(paid: AskHome, server: VendorServer, fault: str) -> None:
    rules = ask(paid.desk, paid.database, QUESTION)
    entry, trigger = FAULTS[fault]
    server.play({"*": entry})
    answer = asked(paid)
    assert (answer.fallback_trigger, answer.answer) == (trigger, rules.answer)
    assert answer.analysis_mode == ("guarded" if trigger == "GARBAGE" else "rules")


@pytest.mark.parametrize(
    ("question", "more", "trigger"),
    [
        ("sell it all", {}, ""),
        ("how is gold?", {}, "LITTLE"),
        (QUESTION, {"may_spend": False}, ""),
    ],
)
def test_nothing_is_sent_where_nothing_is_to_be_chosen(
    paid: AskHome, server: VendorServer, question: str, more: dict[str, Any], trigger: str
) -> None:
    server.play({"*": Status(500)})
    answer = ask(paid.desk, paid.database, question, **{"may_spend": True, **more})
    assert answer.fallback_trigger == trigger and not server.exchanges


def test_rules_and_a_desk_that_wants_no_model_are_asked_for_nothing(
    busy: AskHome, paid: AskHome, server: VendorServer
) -> None:
    server.play({"*": Status(500)})
    assert asked(busy).fallback_trigger == "RULES"
    settings = paid.reader.settings.model_copy(update={"chat": ChatSettings(model=False)})
    quiet = replace(paid, reader=replace(paid.reader, settings=settings))
    assert asked(quiet).fallback_trigger == "" and not server.exchanges


def test_a_person_has_ten_answers_an_hour(paid: AskHome, server: VendorServer) -> None:
    server.play({"*": reply()})
    modes = [asked(paid, person="anna").fallback_trigger for _ in range(HOURLY + 1)]
    assert modes == [""] * HOURLY + ["NO_ROOM"]
    assert asked(paid, person="bert").analysis_mode == "ai"
    assert len(server.exchanges) == HOURLY + 1


def test_two_are_under_way_at_most_and_the_rest_have_rules(
    paid: AskHome, server: VendorServer
) -> None:
    server.play({"*": Late(2.0, reply())})
    begun = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        work = [pool.submit(asked, paid, person=f"p{number}") for number in range(20)]
        answers = [one.result() for one in work]
    modes = [one.fallback_trigger for one in answers]
    assert modes.count("CROWDED") >= 20 - 2 * AT_ONCE and len(server.exchanges) <= 2 * AT_ONCE
    assert time.monotonic() - begun < 30.0


def test_what_is_under_way_elsewhere_counts_against_the_hour_and_the_crowd(
    paid: AskHome, server: VendorServer
) -> None:
    """Ten and one in another process that have no answer yet; a killed one is past in a minute."""
    server.play({"*": reply()})

    def under_way(person: str, seconds: float) -> None:
        at = stamp(paid.database.now() - timedelta(seconds=seconds))
        row = {"person": person, "session": "s", "reading": "{}", "document": "", "asked_model": 1}
        paid.database.add("chats", {**row, "at": at})

    for _ in range(HOURLY - 1):
        under_way("anna", 90.0)
    assert asked(paid, person="bert").analysis_mode == "ai"
    under_way("anna", 1.0)
    assert asked(paid, person="anna").fallback_trigger == "NO_ROOM"
    under_way("bert", 1.0)
    assert asked(paid, person="carla").fallback_trigger == "CROWDED"


SECRETS = (
    "sk-proj-4f9a8b7c6d5e4f3a2b1c", "anna@example.org", "51234567",
    "AIzaSyA1b2C3d4E5f6G7h8", "0123456789abcdef0123456789abcdef",
)  # fmt: skip


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_a_question_reaches_no_vendor_and_no_store(
    paid: AskHome, server: VendorServer, secret: str, vendor: str
) -> None:
    rich = vendor_line.agents(vendor, max_api_cost_per_hour=500.0)
    reader = replace(paid.reader, profiles={"BTCUSD": Profile(agents=rich)})
    paid = replace(paid, reader=reader)
    server.play({"*": reply()})
    answer = asked(paid, f"how is btc doing? I noted {secret} here")
    assert answer.analysis_mode == "ai" and "(***)" in answer.question
    (exchange,) = server.exchanges
    assert secret not in exchange.text and secret not in answer.model_dump_json()
    assert not paid.database.value(
        "SELECT count(*) FROM chats WHERE document LIKE ?", f"%{secret}%"
    )


def test_questions_keep_their_words_and_passwords_go() -> None:
    assert masked("the password is hunter2! now") == "the password is (***) now"
    questions = rows_of(Path(__file__).with_name("questions.csv"))
    assert not [row for row in questions if masked(row["question"]) != row["question"]]


# --- hostile replies ------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    None, 3, "", "s1", "Buy 2 lots of gold now.", ["s1"], [["s1", "s2"]], {"s1": 1}, True, "s0",
    ["s1", "s1"], [f"s{n}" for n in range(40)], ["s1 ", "S1", "s01"], [None, 7, "s2"], "\ud800",
)  # fmt: skip


def odd_reply(chance: random.Random) -> Any:
    """Return what a vendor's model may reply, honest or not."""
    if chance.random() < 0.05:
        return chance.choice(ODD)
    fields = ("say", "because", "unknown", "comment", "answer", "citations")
    return {name: chance.choice(ODD) for name in fields if chance.random() < 0.8}


def test_every_sentence_that_is_shown_is_codes(
    paid: AskHome, scaled: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 10,000 replies at night."""
    chance = random.Random(69)
    bad = [row["text"] for row in COMMENTS if row["honest"] == "no"]
    monkeypatch.setattr(model_choice, "HOURLY", 10**9)
    read = reading.read(QUESTION)
    draft = answering._draft(
        paid.reader, paid.database, read, answering._instances(paid.reader), None
    )
    written = {one.text for one in draft.sentences}
    monkeypatch.setattr(answering, "_draft", lambda *_: draft)

    def replied(*_: Any) -> OffTickReply:
        document = odd_reply(chance)
        if isinstance(document, dict) and chance.random() < 0.5:
            document["comment"] = chance.choice(bad)
        return OffTickReply(document if isinstance(document, dict) else None, "", status="ok")

    monkeypatch.setattr(model_choice, "_request", replied)
    modes = set()
    for _ in range(scaled(10_000, least=100)):
        answer = asked(paid)
        chosen = [one for one in answer.sentences if one.cites]
        assert chosen and len(chosen) <= MOST and {one.text for one in chosen} <= written
        assert answer.comment == "" or answer.comment not in bad
        modes.add(answer.analysis_mode)
    assert modes == {"ai", "guarded"} or modes == {"ai", "guarded", "rules"}


def test_comments_with_figures_symbols_directions_or_advice_are_dropped() -> None:
    symbols = ("BTCUSD",)
    bad = [row for row in COMMENTS if row["honest"] == "no"]
    honest = [row for row in COMMENTS if row["honest"] == "yes"]
    assert (len(bad), len(honest)) == (100, 300)
    assert not [row for row in bad if comment_of(row["text"], symbols)]
    assert sum(bool(comment_of(row["text"], symbols)) for row in honest) >= 240
    for text in (None, 7, "", "word " * 26, "It is ٣ more", "Кажется так"):
        assert comment_of(text, symbols) == ""
