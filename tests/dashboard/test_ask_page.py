"""The page and the API of Ask: one's own session, answers with citations, the right to spend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask
from flask.testing import FlaskClient

from tests.doubles.entrance import OURS
from tests.doubles.visitors import ACCESS, bearer
from tests.worlds import demo_orders
from tests.worlds.demo_view import ScriptedView
from torra.ask import answering
from torra.ask.answer import ChatAnswer, CitedFact, PlanStep, RetrievalPlan
from torra.commands import access as access_commands
from torra.dashboard.app import create_app
from torra.dashboard.doors import access_file
from torra.dashboard.doors.access import Access
from torra.dashboard.doors.access_file import Owner
from torra.dashboard.streams import ask as screen
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.errors import ConfigError
from torra.home import ACCESS as ACCESS_NAME
from torra.store.research import questions as chat_table
from torra.tools.market import RECORD

ASK = "/api/v1/chat/ask"
WHY = "why did BTCUSD not trade?"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageContext]:
    backing = demo_orders.build(tmp_path_factory.mktemp("ask"))
    yield backing
    backing.database.close()


def app_of(backing: PageContext, access: Access = ACCESS) -> Flask:
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    return create_app(view, access=access, backing=backing)


def entered(app: Flask, token: str) -> FlaskClient:
    client = app.test_client()
    assert client.post("/login", data={"token": token}, headers=OURS).status_code == 303
    return client


def send(client: FlaskClient, question: str, **more: str) -> Any:
    """Send the form of the page as a browser does."""
    csrf = re.search(r'data-csrf="(\w+)"', client.get("/ask").text)
    fields = {"csrf": csrf[1] if csrf else "", "question": question, **more}
    return client.post(ASK, data=fields, headers={**OURS, "Accept": "text/html"})


def stored(backing: PageContext) -> int:
    return int(backing.database.value("SELECT count(*) FROM chats"))


def test_a_form_without_scripts_is_answered_on_the_page(place: PageContext) -> None:
    client = entered(app_of(place), ACCESS.tokens["read"])
    assert "Nothing asked in this session yet" in client.get("/ask").text
    answer = send(client, WHY)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/ask#newest")
    page = client.get("/ask").text
    assert WHY in page and "Citations: 8" in page and "No model reads your question" in page
    links = set(re.findall(r'<th scope="row"><a href="(/symbol/BTCUSD/[^"]+)"', page))
    assert links and all(client.get(link).status_code == 200 for link in links)
    assert send(client, "buy gold").status_code == 303
    page = client.get("/ask").text
    assert page.index("buy gold") < page.index(WHY)
    assert 'To do it: <a href="/orders">Orders</a>' in page


def test_what_is_not_from_a_page_of_the_session_is_not_asked(place: PageContext) -> None:
    client, before = entered(app_of(place), ACCESS.tokens["admin"]), stored(place)
    for fields in ({"question": WHY}, {"question": WHY, "csrf": "f" * 64}):
        assert client.post(ASK, data=fields, headers=OURS).status_code == 403
    assert client.get(f"/ask?question={WHY}").status_code == 200  # it is put into the field alone
    assert stored(place) == before


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "1 to 500 characters"),
        ({"question": "x" * 501}, "longer than 500"),
        ({"question": WHY, "model": "yes"}, "no field model"),
        ({"question": WHY, "about": "BTCUSD"}, "about: write"),
        ({"question": ["x"]}, "question must be text"),
    ],
)
def test_a_question_that_cannot_be_read_says_why(
    place: PageContext, body: dict[str, Any], why: str
) -> None:
    before = stored(place)
    answer = app_of(place).test_client().post(ASK, json=body, headers=bearer("read"))
    assert (answer.status_code, stored(place)) == (409, before)
    assert why in answer.json["reason"]


def test_questions_of_a_login_are_counted(place: PageContext) -> None:
    client = app_of(place).test_client()
    codes = [client.post(ASK, json={}, headers=bearer("approve")).status_code
             for _ in range(screen.PER_MINUTE + 1)]  # fmt: skip
    assert codes == [409] * screen.PER_MINUTE + [429]


def test_a_session_belongs_to_its_login(tmp_path: Path) -> None:
    backing = demo_orders.build(tmp_path)
    tokens = {
        name: access_file.name_person(backing.home, name, "read")[0].of_persons[Owner("read", name)]
        for name in ("Anna", "Bo")
    }
    app = app_of(backing, Access.of_home(backing.home)[0])
    client = app.test_client()

    def asked(name: str, question: str, session: str = "") -> Any:
        body = {"question": question, "session_id": session}
        head = {"Authorization": f"Bearer {tokens[name]}"}
        return client.post(ASK, json=body, headers=head).json

    first = asked("Anna", WHY)
    session = first["session"]
    assert first["symbols"] == ["BTCUSD"]
    assert asked("Bo", "and on H1?", session)["symbols"] == []
    assert asked("Anna", "and on H1?", session)["symbols"] == ["BTCUSD"]
    browser, other = entered(app, tokens["Anna"]), entered(app, tokens["Anna"])
    send(browser, "what do I hold?")
    assert "what do I hold?" in browser.get("/ask").text
    for stranger in (other, entered(app, tokens["Bo"])):
        assert "Nothing asked in this session yet" in stranger.get("/ask").text
    # another screen of the same login knows the session's number, another login's does not find it
    rows = {who: chat_table.questions(backing.database, who, session) for who in ("Anna", "Bo")}
    assert [len(of) for of in rows.values()] == [2, 1]
    backing.database.close()


def test_the_right_to_ask_a_model_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backing = demo_orders.build(tmp_path)
    spent: list[bool] = []

    def spy(*args: Any, may_spend: bool, **named: Any) -> ChatAnswer:
        spent.append(may_spend)
        return answer_to(*args, **named)

    answer_to = answering.ask
    monkeypatch.setattr(answering, "ask", spy)

    def command(*words: str) -> Any:
        done = CliRunner().invoke(access_commands.token, [*words, "--json"], obj=backing.home)
        assert done.exit_code == 0, done.output
        return json.loads(done.output)["tokens"][0]

    rows = {name: command("--name", name, "--scope", scope)
            for name, scope in (("Anna", "approve"), ("Bo", "read"))}  # fmt: skip
    assert [row["ask_model"] for row in rows.values()] == [True, False]
    access = Access.of_home(backing.home)[0]
    app = app_of(backing, access)
    clients = {name: entered(app, row["token"]) for name, row in rows.items()}

    def rights() -> list[bool]:
        spent.clear()
        for name, row in rows.items():
            send(clients[name], WHY)
            head = {"Authorization": f"Bearer {row['token']}"}
            app.test_client().post(ASK, json={"question": WHY}, headers=head)
        for scope, token in access.tokens.items():
            head = {"Authorization": f"Bearer {token}"}
            app.test_client().post(ASK, json={"question": scope}, headers=head)
        return spent[:]

    others = [False, True, True]
    assert rights() == [True, True, False, False, *others]
    assert command("--name", "Bo", "--scope", "read", "--ask-model")["token"] == rows["Bo"]["token"]
    command("--name", "Anna", "--no-ask-model")
    assert rights() == [False, False, True, True, *others]  # at once, in the sessions too
    command("--name", "Cleo")
    access_file.revoke(backing.home, "Cleo")  # other changes keep it
    assert rights() == [False, False, True, True, *others]
    acts = {(row["action"], row["target"]) for row in backing.database.rows("SELECT * FROM audit")}
    assert {("models allowed", "Bo"), ("models refused", "Anna")} <= acts
    backing.database.close()


def test_a_right_is_true_or_false_and_somebodys(tmp_path: Path) -> None:
    access_file.name_person(tmp_path, "Anna", "read")
    with pytest.raises(ConfigError, match=r"Bo.*has no token"):
        access_file.let_ask_model(tmp_path, "Bo", allowed=True)
    done = CliRunner().invoke(access_commands.token, ["--ask-model"], obj=tmp_path)
    assert done.exit_code == 2 and "--name" in done.output
    path = tmp_path / ACCESS_NAME
    document = json.loads(path.read_text())
    document["persons"][0]["ask_model"] = "yes"
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="ask_model is not true or false"):
        access_file.read(path)


def test_hostile_texts_are_cleaned_and_what_cannot_be_read_is_left_out(place: PageContext) -> None:
    bad = "<img src=x onerror=alert(1)>\u202eevil\x1b[31m"
    fact = CitedFact(id=f"BTCUSD|M15@2021-11-10T14:00:00Z/{bad}", value=bad, unit=bad,
                     as_of="2021-11-10T14:15:00Z", where=RECORD)  # fmt: skip
    answer = ChatAnswer(
        session="s", question=bad, intent="general", answer=bad, citations=(fact,), comment=bad,
        portfolio_impact=bad, fallback_trigger=bad, address=bad,
        retrieval_plan=RetrievalPlan(
            steps=(PlanStep(tool=bad, args={bad: bad}, status=bad, code=bad),)
        ), unknown=(bad,), as_of="2021-11-10T14:15:00Z",
    )  # fmt: skip
    client = entered(app_of(place), ACCESS.tokens["approve"])
    send(client, WHY)
    own = place.database.rows("SELECT * FROM chats ORDER BY id DESC LIMIT 1")[0]
    row = {name: own[name] for name in ("person", "session", "reading")}
    for document in (answer.model_dump_json(), "{}"):
        number = chat_table.begin_question(place.database, row, 30)
        chat_table.end_question(place.database, number, document, asked_model=False)
    page = client.get("/ask").text
    assert page.count('class="card answered"') == 2
    assert "<img" not in page and "\u202e" not in page and "\x1b" not in page
    assert "Unchecked comment of the model" in page


def test_pages_lead_to_a_question_about_what_they_show(place: PageContext) -> None:
    client = app_of(place).test_client()
    sid = demo_orders.waiting(place, "BTCUSD")
    trade = place.database.signals(limit=1)[0]["sid"]
    newest = place.database.latest_tick("BTCUSD", "M15") or {}
    pages = ("/symbol/BTCUSD/M15", f"/symbol/BTCUSD/M15/{newest['bar_time']}",
             f"/orders/{sid}", f"/orders/{trade}")  # fmt: skip
    for address in pages:
        page = client.get(address, headers=bearer("read")).text
        found = re.search(r'href="(/ask\?about=[^"]+)">Ask about this', page)
        assert found, address
        assert client.get(found[1], headers=bearer("read")).status_code == 200
    client = entered(app_of(place), ACCESS.tokens["read"])
    assert "About BTCUSD M15, bar of 2021" in client.get(
        f"/ask?about=BTCUSD|M15@{newest['bar_time']}").text  # fmt: skip
    for odd in ("x", "<script>|M15@2021-11-10T14:00:00Z/", "a|H1@" + "9" * 60):
        page = client.get("/ask", query_string={"about": odd}).text
        assert "About the desk" in page and 'name="about"' not in page


def test_a_view_without_a_desk_has_no_field_and_says_so() -> None:
    client = create_app(ScriptedView(), access=ACCESS).test_client()
    page = client.get("/ask", headers=bearer("read"))
    assert page.status_code == 200 and "No desk stands behind these pages" in page.text
    assert "data-ask" not in client.get("/", headers=bearer("read")).text
    assert client.post(ASK, json={"question": WHY}, headers=bearer("read")).status_code == 404
