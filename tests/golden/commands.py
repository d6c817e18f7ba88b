"""What a person at a terminal gets of every command: output, exit code and changed files.

The file lines/X.txt holds what is typed in the home X, a line each: a comment (#), `cat` and a
file, or the words of a command. Settings of the environment may stand before them, typed answers
behind `<<<`. `process` begins a real process, which is interrupted where its output says how; all
others run in this one. `{inputs}` is the folder lines, `{last}` the newest JSON document. The
transcript is X.txt, its JSON documents are X.json, and help.txt is the help of every command.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir, closing
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import Any, Final, NamedTuple

import click
from click.testing import CliRunner

from tests.golden import tables
from tests.golden.exact import with_machine
from tests.golden.frozen import NOW, frozen, masked, versionless
from tests.golden.projection import projected
from tests.worlds import demo_orders, desks, stored_days
from torra.config import ROOT, DeskSettings

LINES: Final = Path(__file__).with_name("lines")
SAMPLE: Final = ROOT / "sample_data"

MASKS: Final[Mapping[str, str]] = {
    r"\b(?!0{40})[0-9a-f]{64}\b": "<hash>",
    r"SHA-256 [0-9a-f]{16}": "SHA-256 <hash>",
    r"\b(setting(?:\": \"| ))[0-9a-f]{16}": r"\1<fingerprint>",
    r"(\bdesk-\d+-|\"desk\": \")[0-9a-f]{8}\b": r"\1<mark>",
    r"\bsound, \d+ kB": "sound, <n> kB",
    r"\d+ MB free": "<n> MB free",
    r"; about \d+ (s|min)\b": "; about <time>",
    r"\S+/torra --home": "torra --home",
    r"(?m)^note: SQLite .*\n": "",
    r"(?m)^\d{4}-\d\d-\d\d [\d:,]+ WARNING notices wait: .*\n": "",
    r"(?m)^\w+( +(?:python|sqlite) ).*$": r"<any>\1<version>",
    r"(?m)^(\w+ +package +\S+) .*$": r"\1 <version>",
}
"""What differs between machines and runs, and what stands in its place."""

PATIENCE: Final = 600.0
"""Seconds that a process has; to be killed is an error, no golden."""


def make(folder: Path) -> dict[str, str]:
    """Return the help, and what is typed in the homes that cost little."""
    program = entry()
    helps = "\n".join(_help(program, way, command) for way, command in ways(program))
    return {"help.txt": helps, **transcripts(folder, ("fresh", "mistakes", "orders", "process"))}


def _help(program: click.Group, way: tuple[str, ...], command: click.Command) -> str:
    """Return a command's help, as the program itself shows it."""
    # click keeps the option of the first call, which may have been a test's, without the program.
    vars(command)["_help_option"] = None
    result = CliRunner().invoke(program, [*way, "--help"], prog_name="torra")
    return f"{result.output}exit {result.exit_code}\n"


def transcripts(folder: Path, homes: Iterable[str]) -> dict[str, str]:
    """Return the transcripts and JSON documents of homes, which are made in a folder."""
    texts = {}
    for name in homes:
        terminal = Terminal(entry(), folder / name)
        with chdir(folder), frozen():
            HOMES.get(name, Path)(terminal.home)
            terminal.files = files_of(terminal.home)
            lines = (LINES / f"{name}.txt").read_text().splitlines()
            texts[f"{name}.txt"] = "\n".join(text for line in lines for text in terminal(line))
        if terminal.documents:
            texts[f"{name}.json"] = json.dumps(terminal.documents, indent=1, sort_keys=True)
    return with_machine(texts)


def entry() -> click.Group:
    """Return the program that the package installs as `torra`."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["torra"].partition(":")
    program: click.Group = getattr(import_module(module), name)
    return program


def ways(
    command: click.Command, way: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and every command below it, with the words that lead to it."""
    yield way, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from ways(below, (*way, name))


class Outcome(NamedTuple):
    """What a command wrote, and its exit code."""

    stdout: str
    stderr: str
    code: int


class Terminal:
    """Runs what is typed in a home; `documents` are the JSON documents so far."""

    def __init__(self, program: click.Group, home: Path) -> None:
        self.program, self.home = program, home
        self.documents: list[dict[str, Any]] = []
        self.files: dict[str, str] = {}
        self._last: Any = None

    def __call__(self, line: str) -> Iterator[str]:
        """Yield what the terminal shows of a line."""
        if line.startswith("#"):
            yield line
            return
        yield f"$ {line}"
        command, _, answers = line.partition("<<<")
        places = {
            "home": self.home, "inputs": LINES, "sample": SAMPLE, "last": self._last,
            "port": free_port(),
        }  # fmt: skip
        words = [word.format(**places) for word in shlex.split(command)]
        if words[0] == "cat":
            path = self.home / words[1]
            yield self._masked(path.read_text().rstrip()) if path.exists() else "(no such file)"
            return
        name = words.index("torra")
        settings = dict(word.split("=", 1) for word in words[:name] if "=" in word)
        settings = {"TORRA_HOME": str(self.home), **settings}
        if words[0] == "process":
            outcome = interrupted(words[name + 1 :], settings)
        else:
            outcome = self._run(words[name + 1 :], settings, answers.strip().replace(" ", "\n"))
        yield from self._shown(line, outcome)

    def _run(self, words: list[str], settings: Mapping[str, str], answers: str) -> Outcome:
        result = CliRunner().invoke(
            self.program, words, prog_name="torra", env=settings, input=answers,
            catch_exceptions=False,
        )  # fmt: skip
        return Outcome(result.stdout, result.stderr, result.exit_code)

    def _shown(self, line: str, outcome: Outcome) -> Iterator[str]:
        """Yield the output, what stands on standard error (!), the exit code, and changed files."""
        text = self._masked(outcome.stdout)
        try:
            self._last = json.loads(outcome.stdout)
            document = projected(json.loads(text), "api")
        except ValueError:
            yield from text.splitlines()
        else:
            self.documents.append({"command": line, "document": document})
            yield "(a JSON document)"
        yield from (f"! {text}" for text in self._masked(outcome.stderr).splitlines())
        yield f"exit {outcome.code}"
        before = self.files
        self.files = {self._masked(name): size for name, size in files_of(self.home).items()}
        for name in sorted({*before, *self.files}):
            if before.get(name) != self.files.get(name):
                yield f"{'+' if name not in before else '~' if name in self.files else '-'} {name}"

    def _masked(self, text: str) -> str:
        for pattern, word in MASKS.items():
            text = re.sub(pattern, word, text)
        text = masked(text.replace(str(ROOT), "<torra>"), self.home, self.home.parent)
        return versionless(text)


def interrupted(words: list[str], settings: Mapping[str, str]) -> Outcome:
    """Run a command in a process of its own; Ctrl-C where a line tells of it."""
    torra = Path(sys.executable).with_name("torra")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [torra, *words], env={**os.environ, **settings}, stdin=subprocess.DEVNULL, stdout=pipe,
        stderr=pipe, text=True,
    ) as process:  # fmt: skip
        watch = Timer(PATIENCE, process.kill)
        watch.start()
        lines = []
        for line in process.stdout or ():
            lines.append(line)
            if "Ctrl-C" in line:
                process.send_signal(signal.SIGINT)
        stderr = process.stderr.read() if process.stderr else ""
        code = process.wait()
        watch.cancel()
    if code < 0:
        raise AssertionError(
            f"{shlex.join(words)}: signal {-code} ended it (after {PATIENCE:g} s?)"
        )
    return Outcome("".join(lines), stderr, code)


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def files_of(home: Path) -> dict[str, str]:
    """Return hashes of the files of a home, by name; those in which SQLite works are left out."""
    return {
        path.relative_to(home).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in home.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def _days(home: Path) -> None:
    stored_days.live(home, 8)
    watched = (stored_days.BUDGET, stored_days.FULL, stored_days.LOOKS_ON, stored_days.ASKS)
    desk = DeskSettings(
        instances=tuple(one.model_copy(update={"profile": one.id}) for one in watched)
    )
    (home / "desk.json").write_text(desk.model_dump_json())
    (home / "profiles").mkdir()
    for name, profile in stored_days.PROFILES.items():
        (home / "profiles" / f"{name}.json").write_text(json.dumps(profile))


def _orders(home: Path) -> None:
    """Make the desk that asks a person, with one proposal of now."""
    tables.orders(home)
    with closing(desks.open_database(home)) as database:
        demo_orders.propose_gold(database, NOW)
    (home / "desk.json").write_text(demo_orders.settings().model_dump_json())


def _replays(home: Path) -> None:
    """Bring two weeks of the sample's bars."""
    home.mkdir()
    head, *rows = (SAMPLE / "BTCUSD_H1.csv").read_text().splitlines()
    rows = [row for row in rows if "2021-10-28" < row < f"{NOW:%FT%H}"]
    (home / "btcusd.csv").write_text("\n".join([head, *rows]))


HOMES: Final[Mapping[str, Callable[[Path], None]]] = {
    "days": _days,
    "orders": _orders,
    "replays": _replays,
}
"""What makes a home; there is none in the others."""
