"""What strangers wrote turns no line round: on a terminal, in JSON, in a file, in the log.

Names of brokers, details of bridges and reasons of people come from outside. Characters that steer
a terminal or turn the reading direction are shown as their escapes, in every command alike.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
from contextlib import closing
from pathlib import Path

import pytest

from tests import ROOT
from tests.doubles.entrance import bearer, desk_app
from tests.worlds import desks, stores
from tests.worlds.hands import torra
from torra.commands import terminal
from torra.commands.answer import one_line
from torra.errors import LONGEST_TEXT
from torra.harmless_text import HOSTILE, escaped
from torra.store.audit import SEALED, seal
from torra.store.trade import proposals_and_alarms as execution_table

HOSTILE_WORDS = "sold \u202egnihton\u202c \u2066x\u2069 \x1b[2J\x9b1m\u200bend\ufeff\u2028"
SHOWN = "sold \\u202egnihton\\u202c \\u2066x\\u2069 \\u001b[2J\\u009b1m\\u200bend\\ufeff\\u2028"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which strangers have written whatever they may write."""
    with closing(stores.open_database(tmp_path)) as database:
        database.raise_alarm("a", "QUIET", HOSTILE_WORDS)
        execution_table.note_bridge(
            database, "main", deny="BRIDGE_DEAD", detail=HOSTILE_WORDS, facts={}, reconciled_at=None
        )
        database.reduce(HOSTILE_WORDS)
        database.audit(actor=HOSTILE_WORDS, action="halt", target=HOSTILE_WORDS)
        database.audit(actor="p", action="resume", before={"why": HOSTILE_WORDS})
    return tmp_path


def test_every_steering_character_is_shown_as_its_escape() -> None:
    assert escaped(HOSTILE_WORDS) == SHOWN
    assert not HOSTILE.search(escaped("".join(map(chr, range(0x3000)))))
    assert escaped("Brötchen\n\tfür 3 €: 買い \u05d0") == "Brötchen\n\tfür 3 €: 買い \u05d0"


def test_the_table_of_signals_turns_nothing_round(home: Path) -> None:
    shown = torra(home, "signals").output
    assert not HOSTILE.search(shown)
    assert shown.count(SHOWN) == 3, "what stood there can still be read"


@pytest.mark.parametrize("words", [("signals",), ("audit",)])
def test_a_document_says_the_same_and_turns_nothing_round(home: Path, words: tuple[str]) -> None:
    text = torra(home, *words, "--json").output
    assert not HOSTILE.search(text)
    assert HOSTILE_WORDS in json.dumps(json.loads(text), ensure_ascii=False).replace(
        "\\u001b", "\x1b"
    )


def test_the_audit_file_turns_nothing_round_and_its_seals_can_still_be_checked(
    tmp_path: Path,
) -> None:
    desk = desks.open_desk(tmp_path)
    desk.database.audit(actor=HOSTILE_WORDS, action="halt", before={"why": HOSTILE_WORDS})
    answer = desk_app(desk, tmp_path).test_client().get("/audit.csv", headers=bearer("read"))
    text = answer.get_data(as_text=True)
    assert not HOSTILE.search(text.replace("\r\n", "\n"))
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    told = {name: row[name].replace(SHOWN, HOSTILE_WORDS) for name in SEALED}
    told |= {"seq": int(row["seq"])}
    told["before"] = json.dumps({"why": HOSTILE_WORDS}, ensure_ascii=False, separators=(",", ":"))
    assert seal(told) == row["hash"]
    desk.close()


def test_an_error_turns_nothing_round(tmp_path: Path) -> None:
    assert one_line(f"{HOSTILE_WORDS} mend it") == f"torra: {SHOWN} mend it".replace("\\u2028", "")
    assert len(one_line("\u202e" * LONGEST_TEXT)) <= LONGEST_TEXT
    result = torra(tmp_path, "import", str(tmp_path / "x\u202ey.csv"), "--symbol", "EURUSD")
    assert result.exit_code == 2 and not HOSTILE.search(result.stderr)


def test_the_log_turns_nothing_round() -> None:
    record = logging.makeLogRecord({"msg": "bridge: %s", "args": (HOSTILE_WORDS,)})
    assert terminal.LogLine("%(message)s").format(record) == f"bridge: {SHOWN}"


def test_no_command_writes_past_the_one_place() -> None:
    """Torra's own words alone need no such care, and nobody can tell them apart for ever."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in sorted((ROOT / "torra" / "commands").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if path.name != "terminal.py"
        and isinstance(node, ast.Attribute)
        and node.attr in ("echo", "secho", "echo_via_pager")
    ]
    assert found == []
