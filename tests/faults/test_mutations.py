"""Every outside file and setting, spoiled in every way: one line, exit code 2, and nothing is lost.

A door is one file or setting with the command that reads it. It is taken in its valid form and
spoiled by one seeded kind of damage; then the command runs in this process. What must hold: exit
code 2; one line on standard error, LONGEST_TEXT characters at most; no traceback; the file and
every row of the database as they were.

A damage that changes no meaning must change no result (`SAME`: a byte order mark, Windows line
ends), and some doors promise to live with damage: `LIVES` says which, and why. Their command ends
well, and still nothing is lost. These are counted apart; they must be the fewer.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from tests.conftest import Scale
from tests.worlds import channels, legacy_database
from torra.commands.answer import plainly
from torra.commands.command_line import main
from torra.config import ROOT
from torra.desk import wiring
from torra.desk.checks import table as checks
from torra.errors import LONGEST_TEXT

PATIENCE = 30.0
"""Seconds after which a command hangs, as on a pipe that nobody writes to."""

MEGABYTES = 10_000_000
LARGEST_VARIABLE = 100_000
SPOILED = 500
"""Mutations of a night; a day takes a share of them."""


@click.command("start")
@click.pass_obj
@plainly
def start(home: Path) -> None:
    """Do what `torra run` does before it serves: check the home, open the desk, let it go."""
    checks.start(home, lambda _: None)
    desk, _ = wiring.open_desk(home)
    desk.close()


# --- damage ---------------------------------------------------------------------------------------

Damage = Callable[[bytes, random.Random], bytes]


def cut(raw: bytes, chance: random.Random) -> bytes:
    # In the middle of its last line at the latest: what follows the last sign is no damage.
    return raw[: chance.randrange(1, max(2, len(raw.rstrip()) - 2))]


def emptied(raw: bytes, chance: random.Random) -> bytes:
    return b""


def binary(raw: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(2_000)


def with_nul(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(1, len(raw.rstrip()))
    return raw[:at] + b"\0" + raw[at:]


def one_long_line(raw: bytes, chance: random.Random) -> bytes:
    return chance.choice((b"9", b"x", b"[", b'"')) * MEGABYTES


def half_a_character(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(1, len(raw.rstrip()))
    return raw[:at] + b"\xff\xfe\xc3" + raw[at:]


def marked(raw: bytes, chance: random.Random) -> bytes:
    return b"\xef\xbb\xbf" + raw


def windows_lines(raw: bytes, chance: random.Random) -> bytes:
    return raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all plain values of a document."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))
    else:
        yield path


def with_leaf(raw: bytes, chance: random.Random, text: str) -> bytes:
    """A document in which one plain value is written as a text of JSON."""
    told = json.loads(raw)
    *way, last = chance.choice(list(leaves(told)))
    place = told
    for step in way:
        place = place[step]
    place[last] = "\x07"
    return json.dumps(told).replace('"\\u0007"', text).encode()


def of_another_type(raw: bytes, chance: random.Random) -> bytes:
    return with_leaf(raw, chance, '{"odd": [1, {"deeper": null}]}')


def a_huge_number(raw: bytes, chance: random.Random) -> bytes:
    return with_leaf(raw, chance, chance.choice(("1e999", "-1e999", "9" * 400, "9" * 5_000)))


def no_number(raw: bytes, chance: random.Random) -> bytes:
    return with_leaf(raw, chance, chance.choice(("NaN", "Infinity", "-Infinity")))


def a_thousand_numbers(raw: bytes, chance: random.Random) -> bytes:
    return with_leaf(raw, chance, json.dumps(list(range(1_000))))


def without_end(raw: bytes, chance: random.Random) -> bytes:
    return with_leaf(raw, chance, json.dumps({"x" * 100_000: "\u202e" * 1_000}))


def deep(raw: bytes, chance: random.Random) -> bytes:
    opened, closed = chance.choice((("[", "]"), ('{"a":', "}")))
    return with_leaf(raw, chance, opened * 60_000 + "1" + closed * 60_000)


def a_key_twice(raw: bytes, chance: random.Random) -> bytes:
    text = raw.decode()
    found = re.search(r'\{\s*("[^"]+")', text)
    assert found
    return text.replace("{", f"{{{found[1]}: 1, ", 1).encode()


def a_strange_key(raw: bytes, chance: random.Random) -> bytes:
    sign = chance.choice(("\u202e", "\x1b[31m", "\u2066", "\x9b"))
    return raw.decode().replace("{", "{" + json.dumps(f"a{sign}b") + ": 1, ", 1).encode()


def another_document(raw: bytes, chance: random.Random) -> bytes:
    return chance.choice((b"[]", b"7", b'"text"', b"null", b"[{}]", b"true"))


def a_cell(raw: bytes, chance: random.Random, told: str) -> bytes:
    """A sheet in which one cell of one row (the first is a header) is another text."""
    lines = raw.decode().splitlines()
    at = chance.randrange(1, len(lines))
    sign = next(one for one in "\t;," if one in lines[at])
    cells = lines[at].split(sign)
    cells[chance.randrange(1, min(len(cells), 5))] = told  # what stands behind is not read
    return "\n".join([*lines[:at], sign.join(cells), *lines[at + 1 :], ""]).encode()


def a_word(raw: bytes, chance: random.Random) -> bytes:
    return a_cell(raw, chance, chance.choice(("none", "NaN", "1e999", "", "-5.0", "0x10")))


def a_long_cell(raw: bytes, chance: random.Random) -> bytes:
    return a_cell(raw, chance, chance.choice(("9", "(", '"')) * 1_000_000)


def a_strange_cell(raw: bytes, chance: random.Random) -> bytes:
    return a_cell(raw, chance, chance.choice(("1\u202e2", "\x1b[2J1", "1\x00", "\u2066")))


def a_line_twice(raw: bytes, chance: random.Random) -> bytes:
    lines = raw.decode().splitlines()
    at = chance.randrange(2, len(lines))
    return "\n".join([*lines[:at], lines[at], *lines[at - 1 :], ""]).encode()


def without_a_column(raw: bytes, chance: random.Random) -> bytes:
    sign = next(one for one in "\t;," if one in raw.decode().splitlines()[0])
    gone = chance.randrange(1, 4)
    lines = (line.split(sign) for line in raw.decode().splitlines())
    return "\n".join(sign.join(cells[:gone] + cells[gone + 1 :]) for cells in lines).encode()


def a_page_of_it(raw: bytes, chance: random.Random) -> bytes:
    """A database of which one page is noise."""
    at = 4096 * chance.randrange(len(raw) // 4096)
    return raw[:at] + chance.randbytes(4096) + raw[at + 4096 :]


ANY: dict[str, Damage] = {
    "cut": cut, "emptied": emptied, "binary": binary, "a NUL": with_nul,
    "10 MB in a line": one_long_line, "half a character": half_a_character,
}  # fmt: skip
TEXT: dict[str, Damage] = {**ANY, "a byte order mark": marked, "Windows lines": windows_lines}
JSON: dict[str, Damage] = {
    **TEXT, "of another type": of_another_type, "a huge number": a_huge_number,
    "no number": no_number, "a thousand numbers": a_thousand_numbers, "deep": deep,
    "a key twice": a_key_twice, "a strange key": a_strange_key, "without end": without_end,
    "another document": another_document,
}  # fmt: skip
SHEET: dict[str, Damage] = {
    **TEXT, "a word": a_word, "a long cell": a_long_cell, "a strange cell": a_strange_cell,
    "a line twice": a_line_twice, "without a column": without_a_column,
}  # fmt: skip
DATABASE: dict[str, Damage] = {
    "cut": cut, "emptied": emptied, "binary": binary, "a page of noise": a_page_of_it,
    "10 MB in a line": one_long_line,
}  # fmt: skip

SAME = {"a byte order mark", "Windows lines"}
"""Damage that changes no meaning: the command must end as with the valid file."""

IN_ITS_PLACE = ("a folder", "a pipe", "a link to nothing", "a link to itself", "no right to read")
"""What stands where the file was."""


def put_in_its_place(path: Path, what: str) -> None:
    """Put something else where a file was."""
    if what == "no right to read":
        path.chmod(0)
        return
    path.unlink()
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.parent / "nothing" if what == "a link to nothing" else path)


# --- doors ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Door:
    """A file of the home, the kinds of damage for it, and the commands that read it.

    `lives` are the damages that its promise lets pass, with the reason.
    """

    name: str
    file: str
    damage: Mapping[str, Damage]
    words: Sequence[str]
    lives: Mapping[str, str] = field(default_factory=dict)


def bars(separator: str = ",", header: str = "time,open,high,low,close,volume") -> str:
    lines = (ROOT / "sample_data" / "BTCUSD_H1.csv").read_text().splitlines()[1:301]
    rows = [line.replace(",", separator) for line in lines]
    return "\n".join([header.replace(",", separator), *rows, ""])


def exported() -> str:
    """The same bars as a terminal exports them."""
    lines = (ROOT / "sample_data" / "BTCUSD_H1.csv").read_text().splitlines()[1:301]
    rows = []
    for line in lines:
        time, *prices, volume = line.split(",")
        day, clock = time[:10].replace("-", "."), time[11:19]
        rows.append("\t".join([day, clock, *prices, volume, "0", "10"]))
    header = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>"
    return "\n".join([header, *rows, ""])


DESK = {
    "instances": [
        {"symbol": "BTCUSD", "timeframes": ["H1"], "profile": "mine", "feed": "store",
         "bridge": "paper", "channel": "main"},
        {"symbol": "EURUSD", "timeframes": ["H1"], "profile": "mine", "feed": "store"},
    ],
    "channels": {"main": {"folder": "mt5", "account": 7, "server_clock": "new_york+7",
                          "key_variable": "TORRA_CHANNEL_KEY", "live": False}},
    "symbol_databases": {"BTCUSD": "scorer.db"},
    "keep_calls_days": 90,
    "notices": {"least": "trade", "detail": "short", "quiet_hours": "22:00-07:00", "zone": "UTC",
                "services": ["apprise"]},
}  # fmt: skip
PROFILE = {
    "timeframe_weights": {"H1": 1.0},
    "thresholds": {"buy": 0.5, "sell": 0.5},
    "markov": {"cut_points": [-0.4, -0.15, 0.15, 0.4], "smoothing": 1.0},
    "risk": {"capital": 10000.0, "risk_per_trade_pct": 0.5},
    "execution": "off",
    "agents": {"include_news": True, "provider": "rules"},
    "news": {"sources": ["file"], "file": "news.jsonl", "max_items": 12},
    "events": {"calendar": "events.csv"},
}
PRICES = {"rules/one": {"input": 1.0, "output": 2.0}}
TERMS = {
    "XAUUSD.m": {
        "digits": 2, "tick_size": 0.01, "tick_value": 1.0, "contract_size": 100.0,
        "lot_min": 0.01, "lot_step": 0.01, "lot_max": 100.0, "stops_level": 0,
        "bid": 2000.0, "ask": 2000.2,
    }
}  # fmt: skip

IMPORT = ("--symbol", "BTCUSD", "--timeframe", "H1", "--revise")
TICK = ("tick", "BTCUSD", "H1")
INIT = ("init", "--yes", "--force", "--symbols", "XAUUSD=XAUUSD.m", "--folder", "mt5",
        "--account", "7", "--terms", "@/terms.json")  # fmt: skip

DOORS = (
    Door("desk.json of a start", "desk.json", JSON, ("start",)),
    Door("desk.json of an import", "desk.json", JSON, ("import", "@/bars.csv", *IMPORT)),
    Door("a profile of a start", "profiles/mine.json", JSON, ("start",)),
    Door("a profile of a tick", "profiles/mine.json", JSON, TICK),
    Door("a profile as a file", "other.json", JSON, (*TICK, "--profile", "@/other.json")),
    Door("a profile's check", "other.json", JSON, ("profile", "check", "mine", "@/other.json")),
    Door("bars", "bars.csv", SHEET, ("import", "@/bars.csv", *IMPORT)),
    Door("bars with semicolons", "semi.csv", SHEET, ("import", "@/semi.csv", *IMPORT)),
    Door("a terminal's export", "mt5.csv", SHEET,
         ("import", "@/mt5.csv", *IMPORT, "--clock", "utc")),
    Door("bars of a tick", "bars.csv", SHEET, (*TICK, "--bars", "@/bars.csv")),
    Door("a calendar", "events.csv", SHEET, ("start",),
         {"a line twice": "its lines are put in order, and may stand twice"}),
    Door("a calendar in JSON", "events.json", JSON, (*TICK, "--profile", "@/of_json.json")),
    Door("headlines", "news.jsonl", JSON, TICK,
         {"emptied": "no headline is no fault: a file may wait for its first"}),
    Door("prices", "prices.json", JSON, ("start",)),
    Door("a broker's terms", "terms.json", JSON, INIT),
    Door("tokens", "access.json", JSON, ("token",),
         {"a strange key": "what names no scope is not read"}),
    Door("a backup", "b.db", DATABASE, ("restore", "@/b.db", "--yes"),
         {"a folder": "the backups of a folder are listed"}),
    Door("a scorer's database", "scorer.db", DATABASE, ("start",),
         dict.fromkeys(("cut", "a page of noise"), "a scorer's file stops no desk: a row that it "
                       "does not take is kept, and told")),
)  # fmt: skip


# --- settings that are no file --------------------------------------------------------------------

STRANGE: dict[str, str] = {
    "a word": "none", "a negative": "-1", "a huge number": "9" * 400, "an infinity": "1e999",
    "NaN": "NaN", "10 MB": "x" * MEGABYTES, "an escape": "\x1b[31mred", "turned": "a\u202eb",
    "a way out": "../../etc/passwd", "two lines": "a\nb", "half": "\udcff",
}  # fmt: skip
"""What a person may write where another word is meant. No word of a command can hold a NUL."""


@dataclass(frozen=True)
class Setting:
    """An option or a variable of the environment, and the words of a command around it."""

    name: str
    words: Sequence[str]
    variable: str = ""
    lives: frozenset[str] = frozenset()
    """Strange values that are none here: any folder may be a home, and some words are names."""


REPLAY = ("replay", "BTCUSD", "--bars", "@/bars.csv", "--timeframes", "H1", "--arms", "l1")
NAMES = frozenset(("a word", "an infinity", "NaN"))
"""Strange values that a name may well be."""

SETTINGS = (
    Setting("--symbol", ("import", "@/bars.csv", "--timeframe", "H1", "--symbol", "%"),
            lives=NAMES),
    Setting("--timeframe", ("import", "@/bars.csv", "--symbol", "BTCUSD", "--timeframe", "%")),
    Setting("--clock", ("import", "@/bars.csv", *IMPORT, "--clock", "%")),
    Setting("a file", ("import", "%", *IMPORT)),
    Setting("an instance", ("tick", "%", "H1")),
    Setting("--as-of", (*TICK, "--as-of", "%")),
    Setting("--mode", (*TICK, "--mode", "%")),
    Setting("--provider", (*TICK, "--provider", "%")),
    Setting("--profile", (*TICK, "--profile", "%")),
    Setting("--port", ("run", "--port", "%")),
    Setting("--host", ("run", "--host", "%")),
    Setting("--trusted-host", ("run", "--trusted-host", "%")),
    Setting("--limit", ("signals", "--limit", "%")),
    Setting("an instance's signals", ("signals", "--instance", "%")),
    Setting("a proposal", ("approve", "%")),
    Setting("a proposal to reject", ("reject", "%")),
    Setting("a signal", ("settle", "%")),
    Setting("a profile's costs", ("cost", "--profile", "%")),
    Setting("--scope", ("token", "--scope", "%")),
    Setting("--address", ("token", "--address", "%")),
    Setting("--keep", ("backup", "@/backups", "--keep", "%")),
    Setting("a backup", ("restore", "%", "--yes")),
    Setting("a setting's place", ("profile", "set", "mine", "%", "1")),
    Setting("a setting's value", ("profile", "set", "mine", "risk.capital", "%")),
    Setting("a profile's name", ("profile", "check", "%")),
    Setting("a version", ("profile", "undo", "mine", "%")),
    Setting("--from", (*REPLAY, "--from", "%")),
    Setting("--to", (*REPLAY, "--to", "%")),
    Setting("--arms", (*REPLAY[:-1], "%")),
    Setting("--costs", (*REPLAY, "--costs", "%")),
    Setting("--name", (*REPLAY, "--name", "%"), lives=NAMES),
    Setting("--thresholds", ("sweep", "BTCUSD", "--bars", "@/bars.csv", "--thresholds", "%")),
    Setting("--weights", ("sweep", "BTCUSD", "--bars", "@/bars.csv", "--weights", "%")),
    Setting("a replay", ("ablate", "%")),
    Setting("the first close", ("scorecard", "--from", "%")),
    Setting("init's symbols", (*INIT[:4], "%", *INIT[5:])),
    Setting("init's account", (*INIT[:8], "%", *INIT[9:])),
    Setting("init's clock", (*INIT, "--server-clock", "%")),
    Setting("init's capital", (*INIT, "--capital", "%")),
    Setting("init's channel", (*INIT, "--channel", "%"), lives=NAMES),
    Setting("TORRA_HOME", ("signals",), "TORRA_HOME",
            lives=frozenset(STRANGE) - {"a huge number", "10 MB"}),
    Setting("a vendor's address", (*TICK, "--provider", "openai_compatible"),
            "TORRA_OPENAI_BASE_URL"),
)  # fmt: skip


# --- a home ---------------------------------------------------------------------------------------


def command(home: Path, words: Sequence[str]) -> Result:
    """Run a command in this process; TimeoutError when it hangs."""
    told = [word.replace("@", str(home)) for word in words]
    with at_most(PATIENCE):
        return CliRunner().invoke(main, ["--home", str(home), *told])


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"it hangs for {seconds} s")

    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which every door stands in its valid form."""
    home = tmp_path_factory.mktemp("valid") / "home"
    (home / "profiles").mkdir(parents=True)
    (home / "mt5").mkdir()
    texts: dict[str, Any] = {
        "desk.json": DESK, "profiles/mine.json": PROFILE, "other.json": PROFILE,
        "of_json.json": {**PROFILE, "events": {"calendar": "events.json"}},
        "prices.json": PRICES, "terms.json": TERMS,
    }  # fmt: skip
    for name, told in texts.items():
        (home / name).write_text(json.dumps(told))
    (home / "bars.csv").write_text(bars())
    (home / "semi.csv").write_text(bars(";"))
    (home / "mt5.csv").write_text(exported())
    for name in ("events.csv", "events.json"):
        shutil.copy(ROOT / "examples" / name, home / name)
    first = (ROOT / "examples" / "headlines.jsonl").read_text().splitlines()[0]
    (home / "news.jsonl").write_text(first + "\n")
    legacy_database.build(home / "scorer.db")
    # The start gives the scorer's table the columns of the desk, once.
    begun = CliRunner().invoke(start, obj=home)
    assert begun.exit_code == 0, begun.stderr
    for words in (("import", "@/bars.csv", *IMPORT), ("backup", "@/b.db"), ("token",)):
        done = command(home, words)
        assert done.exit_code == 0, done.stderr
    return home


class Trial:
    """One mutation: a copy of the home, and what was in it before."""

    def __init__(self, valid: Path, folder: Path) -> None:
        self.home = folder / "home"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(valid, self.home)

    def note(self) -> None:
        self.rows, self.files = rows_of(self.home), files_of(self.home)

    def fault(self, done: Result) -> str:
        """Say what a refusal has done wrong; "" for nothing."""
        if done.exit_code != 2:
            return f"exit code {done.exit_code}: {done.stdout[-200:]!r} {done.stderr[-300:]!r}"
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            return f"{type(done.exception).__name__} {done.exception}"[:300]
        lines = done.stderr.splitlines()
        if len(lines) != 1 or done.stderr != lines[0] + "\n":
            return f"{len(lines)} lines: {done.stderr[:300]!r}"
        if len(lines[0]) > LONGEST_TEXT:
            return f"{len(lines[0])} characters"
        if not lines[0].startswith("torra: ") or not lines[0].isprintable():
            return f"no plain line: {lines[0][:300]!r}"
        return self.lost()

    def lost(self) -> str:
        """Say what is not as it was."""
        if (now := rows_of(self.home)) != self.rows:
            return f"rows of {[name for name in now if now[name] != self.rows.get(name)]}"
        changed = {n for n, told in files_of(self.home).items() if self.files.get(n) != told}
        changed |= self.files.keys() - files_of(self.home).keys()
        return f"files {sorted(changed)}" if changed else ""


def rows_of(home: Path) -> dict[str, list[Any]]:
    """Every row of the database."""
    db = sqlite3.connect(home / "torra.db")
    try:
        told = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        # The audit log grows: what was tried and refused is on record too.
        names = [name for (name,) in told if name != "audit"]
        return {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
    finally:
        db.close()


def files_of(home: Path) -> dict[str, bytes]:
    """What lies in the home beside the database, by name; a pipe or a link is its kind."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if not name.startswith("torra.db") and not (path.is_dir() and not path.is_symlink()):
            readable = path.is_file() and os.access(path, os.R_OK)
            found[name] = path.read_bytes() if readable else str(path.lstat().st_mode).encode()
    return found


# --- what must hold -------------------------------------------------------------------------------

KINDS: list[tuple[Door, str]] = [
    (door, what) for door in DOORS for what in (*door.damage, *IN_ITS_PLACE)
]
STRANGE_SETTINGS: list[tuple[Setting, str]] = [
    (setting, what) for setting in SETTINGS for what in STRANGE
]


@dataclass
class Record:
    """What came of the mutations."""

    refused: Counter[str] = field(default_factory=Counter)
    same: int = 0
    lived: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def seen(self) -> str:
        return (
            f"{self.refused.total()} refused in one line, {self.same} the same, "
            f"{self.lived.total()} lived with as promised"
        )


def spoil(
    door: Door, what: str, valid: Path, folder: Path, chance: random.Random, to: Record
) -> None:
    trial = Trial(valid, folder)
    path = trial.home / door.file
    expected = command(trial.home, door.words)
    assert expected.exit_code == 0, (door.name, expected.stderr, expected.exception)
    trial = Trial(valid, folder)
    if what in door.damage:
        path.write_bytes(door.damage[what](path.read_bytes(), chance))
    else:
        put_in_its_place(path, what)
    trial.note()
    try:
        done = command(trial.home, door.words)
    except TimeoutError as error:
        to.faults.append(f"{door.name}, {what}: {error}")
        return
    if what in SAME and what in door.damage:
        fine = done.exit_code == 0 and alike(done.stdout) == alike(expected.stdout)
        fault = "" if fine else f"not the same: {done.exit_code} {done.stderr[:300]!r}"
        to.same += fine
    elif what in door.lives and done.exit_code == 0:
        fault = "" if not done.stderr or done.stderr.count("\n") == 1 else done.stderr[:300]
        to.lived[door.name] += not fault
    else:
        fault = trial.fault(done)
        to.refused[door.name] += not fault
    if fault:
        to.faults.append(f"{door.name}, {what}: {fault}")


def alike(told: str) -> str:
    """What a command says, without how long it took."""
    return re.sub(r"\d+ ms", "ms", told)


def ask(setting: Setting, what: str, valid: Path, folder: Path, to: Record) -> None:
    trial, told = Trial(valid, folder), STRANGE[what]
    trial.note()
    words = [told if word == "%" else word.replace("@", str(trial.home)) for word in setting.words]
    before = [] if setting.variable == "TORRA_HOME" else ["--home", str(trial.home)]
    env = {setting.variable: told} if setting.variable else None
    try:
        with at_most(PATIENCE):
            done = CliRunner().invoke(main, [*before, *words], env=env)
    except TimeoutError as error:
        to.faults.append(f"{setting.name}, {what}: {error}")
        return
    if what in setting.lives and done.exit_code == 0:
        fault, to.lived[setting.name] = "", to.lived[setting.name] + 1
    else:
        fault = trial.fault(done)
        to.refused[setting.name] += not fault
    if fault:
        to.faults.append(f"{setting.name}, {what}: {fault}")


EVERY: list[tuple[Door | Setting, str]] = [*KINDS, *STRANGE_SETTINGS]


def can_be_tried(place: Door | Setting, what: str) -> bool:
    """Whether this user and system can spoil it so: root reads all, an environment is small."""
    if isinstance(place, Setting):
        return not place.variable or len(STRANGE[what]) < LARGEST_VARIABLE
    return what != "no right to read" or os.geteuid() != 0


def drawn(chance: random.Random, count: int) -> list[tuple[Door | Setting, str]]:
    """So many mutations: each file and each setting once before any a second time."""
    cases = [(place, what) for place, what in EVERY if can_be_tried(place, what)]
    chance.shuffle(cases)
    first = {place.name: (place, what) for place, what in cases}
    rest = [case for case in cases if case not in first.values()]
    return [*first.values(), *rest][:count]


def test_a_night_takes_every_file_and_setting() -> None:
    taken = drawn(random.Random(27), SPOILED)
    assert len(taken) == SPOILED
    assert {place.name for place, _ in taken} == {item.name for item in (*DOORS, *SETTINGS)}


@pytest.mark.journey
def test_spoiled_files_and_settings_are_one_line_and_nothing_is_lost(
    valid: Path,
    tmp_path: Path,
    scaled: Scale,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(main.commands, "start", start)
    chance = random.Random(27)
    record = Record()
    for place, what in drawn(chance, scaled(SPOILED, least=6)):
        if isinstance(place, Door):
            spoil(place, what, valid, tmp_path / "trial", chance, record)
        else:
            ask(place, what, valid, tmp_path / "trial", record)
    record_property("seen", record.seen)
    assert not record.faults, "\n".join(record.faults)
    assert record.lived.total() + record.same <= record.refused.total()


# --- files of a channel ---------------------------------------------------------------------------

STATES = ("state/ea.json", "state/positions.json", "state/deals.json", "state/symbols.json")
OF_A_CHANNEL = [
    (name, what) for name in STATES for what in (*ANY, *IN_ITS_PLACE)
    if what != "no right to read" or os.geteuid() != 0
]  # fmt: skip


def test_a_spoiled_file_of_a_channel_proves_nothing(
    tmp_path: Path, scaled: Scale, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(27)
    cases = chance.sample(OF_A_CHANNEL, scaled(len(OF_A_CHANNEL), least=6))
    for number, (name, what) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        stage = channels.Stage(folder)
        stage.wake()
        stage.bridge.submit(channels.order())
        stage.final("T000000000001")
        bridge, path = stage.bridge, stage.folder / name
        good = bridge.books()
        assert good is not None and good.positions
        stage.clock.pass_time(1)
        if what in ANY:
            path.write_bytes(ANY[what](path.read_bytes(), chance))
        else:
            put_in_its_place(path, what)
        with at_most(PATIENCE):
            bridge.poll()
            found, health = bridge.books(), bridge.health()
            bridge.terms()
        # What cannot be read is not known: never "no position".
        assert found is None or found.positions == good.positions, (name, what)
        assert len(health.detail) <= LONGEST_TEXT, (name, what)
        assert len(str(health.facts.get("last_alarm", ""))) <= LONGEST_TEXT, (name, what)
    record_property("seen", f"{len(cases)} spoiled files of a channel, none of them believed")
