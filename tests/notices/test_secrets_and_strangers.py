"""No address leaves the environment, and no stranger's word arrives as more than plain text."""

from __future__ import annotations

import json
import logging
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.cases import cases
from tests.doubles.notice_server import How, WebHook
from tests.doubles.visitors import open_app
from tests.notices.test_apprise import needs_apprise
from tests.tries import until
from tests.worlds.hostile_texts import TEXTS
from tests.worlds.told import Pager, ToldDesk, fill, propose, until_watched
from torra.commands.command_line import main
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk import wiring
from torra.harmless_text import HOSTILE
from torra.notices import desk_notices
from torra.notices.apprise_service import VARIABLE
from torra.notices.sending import Sender
from torra.notices.words import LONGEST_REASON, harmless
from torra.store import notices as notice_table
from torra.store.trade import proposals_and_alarms as execution_table

CANARY = "canarytoken0123456789abcdef"
PATIENCE = 60.0


def leaks(data: str | bytes) -> bool:
    return CANARY.encode() in (data if isinstance(data, bytes) else data.encode())


# --- addresses ------------------------------------------------------------------------------------


@needs_apprise
@pytest.mark.parametrize("how", [pytest.param("takes", marks=pytest.mark.nightly), "refuses"])
def test_an_address_is_in_no_log_page_database_document_or_list_of_processes(
    tmp_path: Path,
    how: How,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(desk_notices, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(desk_notices, "Sender", partial(Sender, idle=0.05))
    caplog.set_level(logging.DEBUG)
    started: list[Any] = []
    run = subprocess.run

    def noted(*words: Any, **more: Any) -> Any:
        assert more["stderr"] is subprocess.DEVNULL, "what a library says of an address is no log"
        started.append((words, more.get("env")))
        return run(*words, **more)

    monkeypatch.setattr(subprocess, "run", noted)
    home, command = tmp_path / "home", CliRunner()
    with WebHook(how) as hook:
        secret = f"{hook.address(CANARY)}?token={CANARY}".replace("json://", f"json://u:{CANARY}@")
        monkeypatch.setenv(VARIABLE, secret)
        desk, settings = wiring.open_desk(home)
        try:
            desk.open()
            desk.start()
            until_watched(desk)
            desk.database.halt("by a person")
            until(partial(notice_table.notice_services, desk.database), PATIENCE)
            (row,) = notice_table.notice_services(desk.database)
            assert bool(row["detail"]) == (how == "refuses") and row["service"] == "1 json"
            backing = PageContext(home, desk.database, settings, desk)
            pages = open_app(
                DatabaseView(desk.database, settings, desk), backing=backing
            ).test_client()
            for address in ("/health", "/api/v1/health", "/api/v1/notices", "/", "/audit.csv"):
                answer = pages.get(address)
                assert answer.status_code == 200 and not leaks(answer.get_data()), address
            assert (
                b"the last notice was not taken: 1 json" in pages.get("/health").get_data()
            ) == (how == "refuses")
            words = [("notices", "--json"), ("notices",), ("doctor", "--json"), ("audit", "--json")]
            for word in [*words, ("notices", "test", "--json"), ("backup",), ("signals", "--json")]:
                done = command.invoke(main, ["--home", str(home), *word])
                assert not leaks(done.output) and not leaks(str(done.exception)), word
        finally:
            desk.close()
    assert any(CANARY in path for path in hook.paths), "it was asked with the token"
    assert started and not leaks(repr(started))
    assert not leaks(caplog.text) and not leaks(repr([vars(one) for one in caplog.records]))
    assert not leaks("".join(capfd.readouterr()))
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) > 2 and not [path for path in files if leaks(path.read_bytes())]


# --- strangers ------------------------------------------------------------------------------------


@cases("name", list(TEXTS))
def test_a_hostile_reason_of_a_halt_arrives_as_one_harmless_line(name: str) -> None:
    told = harmless(TEXTS[name])
    assert not HOSTILE.search(told) and len(told) <= LONGEST_REASON
    assert not set("<>*_`@|[]{}\n\r/") & set(told)


def test_what_may_be_private_is_left_out_of_a_reason() -> None:
    reason = (
        "store: /home/anna/torra/torra.db: database or disk is full; account 48151623, mail "
        "anna@bank.test, https://hook.test/x?y, C:\\\\Users\\\\anna, "
        "key abcdefghijklmnopqrstuvwxyz012345"
    )
    told = harmless(reason)
    for secret in ("anna", "48151623", "hook", "abcdefgh", "home"):
        assert secret not in told
    assert told.startswith("store: ... database or disk is full; ... mail ...")
    assert harmless("on account 1001 since noon") == "on ... since noon"
    assert harmless("DAILY_LOSS of BTCUSD M15 at 2021-11-08T03:00:00Z") == (
        "DAILY LOSS of BTCUSD M15 at 2021-11-08T03:00:00Z"
    )


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\u202eevil\u0000 *x* @everyone"])
def test_no_word_of_a_stranger_is_in_a_notice(tmp_path: Path, text: str) -> None:
    pager = Pager()
    desk = ToldDesk(tmp_path, pager)
    desk.look()
    database = desk.database
    fill(database, "T1", bridge="torra_files main")
    execution_table.note_bridge(
        database, "torra_files main", deny="", detail=text, facts={"currency": text}
    )
    database.raise_alarm(f"BRIDGE {text}", text, text)
    database.raise_alarm("BRIDGE x", "BRIDGE", text)
    database.halt(text)
    propose(database, drafts=[{"kind": text, "side": text, "lots": text, "levels": text}, text])
    database.close_position(
        "T1", price=1.19, time=desk.clock.now(), profit=1.0, r_multiple=0.1, reason=text
    )
    desk.look()
    desk.send_all()
    assert len(pager.taken) == 6
    for notice in pager.taken:
        words = f"{notice.title} {notice.text}"
        assert not HOSTILE.search(words) and not set("<>*@") & set(words), words
    (halt,) = [notice for notice in pager.taken if notice.kind == "halt"]
    others = json.dumps([[one.title, one.text] for one in pager.taken if one is not halt])
    assert "alert" not in others and "evil" not in others
