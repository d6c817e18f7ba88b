"""The Expert Advisor itself, compiled: mql5/TorraBridge.mq5 in g++ against tests/doubles/ea_shim.

`CompiledEa` starts it as a program of its own, on a channel's folder and a simulated broker that
outlives it, and drives it: nothing happens but what a method asks for, and no clock runs. A program
that dies (a failpoint, `kill`) raises Died at the next command; `restart` starts the next life with
the same inputs, on what the last one left. One that nobody refers to any more is killed. The
compiler runs once per text of the sources: the program is kept in the temporary folder. Where there
is no compiler, the test that wants the program is skipped, unless TORRA_REQUIRE_EA is set.

    ea = CompiledEa(folder, key="secret", account=12345678)
    ea.symbol("XAUUSD.m", digits=2, tick_size=0.01)
    ea.clock(1771065900)
    ea.quote("XAUUSD.m", 2345.00, 2345.20)
    ea.timer()
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests import ROOT

with contextlib.suppress(ImportError):  # there is none on Windows, and no compiler either
    import fcntl

SOURCE: Final = ROOT / "mql5" / "TorraBridge.mq5"
SHIM: Final = ROOT / "tests" / "doubles" / "ea_shim"
SHIM_FILES: Final = ("main.cpp", "mql5_shim.hpp", "simulated_broker.hpp")

COMPILER: Final = shutil.which("g++") if sys.platform == "linux" else None
REQUIRED: Final = "TORRA_REQUIRE_EA"
IS_REQUIRED: Final = bool(os.environ.get(REQUIRED))
"""As this module was imported: a test sees no such variable."""

VARIABLE: Final = "TORRA_EA_CRASH_AT"
FLAGS: Final = (
    *("-std=c++17", "-Og", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables"),
    *("-Wall", "-Wextra", "-Wshadow", "-Werror"),
)

POINTS: Final = (
    "claimed",
    "intent",
    "before_send",
    "after_send",
    "done_written",
    "ack_written",
    "removed",
)
"""Where the advisor can be killed: the variable names the point, or `crash_at` does."""

ROUND: Final = 0.25
"""Seconds between two rounds of the advisor."""

ACCOUNT: Final = 12345678


class CompileError(Exception):
    """The advisor does not compile; the text is the compiler's."""


class Died(Exception):
    """The advisor's program is gone."""


# --- from MQL5 to C++ -----------------------------------------------------------------------------

INPUT = re.compile(r"^input[ \t]+(\w+)[ \t]+(\w+)[ \t]*=([^;]*);", re.MULTILINE)
FUNCTION = re.compile(r"^(?!struct|enum)(\w+ \w+\([^;{}]*\)) \{$", re.MULTILINE)
ARRAY_PARAMETER = re.compile(r"\b(const )?(\w+) +&(\w+)\[\]")
ARRAY_VARIABLE = re.compile(r"\b(\w+) +(\w+)\[\];")


def decoded(raw: bytes) -> str:
    """Return a source as MetaEditor may have saved it."""
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return raw.decode(encoding).replace("\r\n", "\n")


def translated(source: str) -> str:
    """Return MQL5 in the common subset as C++; line numbers stay."""
    text = re.sub(r"^#property.*$", "", source, flags=re.MULTILINE)
    names = [match[2] for match in INPUT.finditer(text)]
    text = INPUT.sub(r"\1 \2 =\3;", text)
    text = re.sub(r"D'([\d.]+)'", lambda found: str(_epoch(found[1])), text)
    text = ARRAY_PARAMETER.sub(r"\1Array<\2> &\3", text)
    text = ARRAY_VARIABLE.sub(r"Array<\1> \2;", text)
    first = FUNCTION.search(text)
    if first is None:
        raise CompileError("there is no function in the source")
    prototypes = " ".join(f"{match[1]};" for match in FUNCTION.finditer(text))
    line = text.count("\n", 0, first.start()) + 1
    inputs = " ".join(f'static shim::Register input_{name}("{name}", {name});' for name in names)
    return (
        f'#line 1 "TorraBridge.mq5"\n{text[: first.start()]}'
        f'{" ".join(prototypes.split())}\n#line {line} "TorraBridge.mq5"\n'
        f"{text[first.start() :]}\n{inputs}\n"
    )


def _epoch(day: str) -> int:
    return int(datetime.strptime(f"{day} +0000", "%Y.%m.%d %z").timestamp())


@functools.cache
def compiled(source: str | None = None, *, flags: Iterable[str] = FLAGS) -> Path:
    """Return the program of a source (the advisor's own by default); raises CompileError."""
    if COMPILER is None:
        if IS_REQUIRED:
            raise CompileError("g++ is not installed")
        pytest.skip("the Expert Advisor is compiled with g++ on Linux: apt install g++")
    text = translated(source if source is not None else decoded(SOURCE.read_bytes()))
    parts = [text, *flags, *((SHIM / name).read_text("utf-8") for name in SHIM_FILES)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    folder = _shelf()
    program = folder / digest
    with (folder / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=folder) as aside:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several workers one compiles, the others wait
        if program.exists():
            return program
        advisor = Path(aside) / "advisor.inc"
        advisor.write_text(text, "utf-8")
        output = Path(aside) / "advisor"
        done = subprocess.run(
            [COMPILER, *flags, f'-DADVISOR="{advisor}"', "-o", output, SHIM / "main.cpp"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise CompileError(done.stderr)
        output.replace(program)
    return program


def _shelf() -> Path:
    """Return the folder of compiled programs, which is nobody else's."""
    folder = Path(tempfile.gettempdir()) / f"torra-advisor-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        return Path(tempfile.mkdtemp(prefix="torra-advisor-"))
    return folder


# --- the running program --------------------------------------------------------------------------


class CompiledEa:
    """One Expert Advisor on one channel's folder, with the broker it trades at.

    `folder` is the channel's (inbox, ack, state and so on lie in it), `broker` where the simulated
    broker keeps its books (by default beside it). `inputs` are the advisor's own inputs by name.
    Raises CompileError when the source does not compile, ValueError when the inputs are refused.
    """

    def __init__(
        self,
        folder: Path,
        *,
        key: str = "",
        account: int = ACCOUNT,
        broker: Path | None = None,
        program: Path | None = None,
        **inputs: object,
    ) -> None:
        self.folder = folder
        self.broker = broker or folder.with_name(folder.name + ".broker")
        self.inputs: dict[str, object] = {"channel_key": key, "account": account, **inputs}
        self.program = program or compiled()
        self.broker.mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        self._end: Callable[[], object] = lambda: None
        self.restart()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    # --- its life

    def restart(self, *, crash_at: str | None = None) -> None:
        """Start the next life; `crash_at` is a point of POINTS, "point:n" for the n-th time."""
        self.kill()
        names = {"PATH", VARIABLE} & {*os.environ}
        environment = {name: os.environ[name] for name in names}
        if crash_at:
            environment[VARIABLE] = crash_at
        self._process = subprocess.Popen(
            [self.program, self.folder, self.broker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment,
        )
        self._end = weakref.finalize(self, _end, self._process, os.getpid())
        for name, value in self.inputs.items():
            self.command("input", name, value)
        code = self.command("init")
        if code != "0":
            self.kill()
            raise ValueError(f"the advisor refused its inputs: {code}")

    def kill(self) -> None:
        """Kill the program (SIGKILL) if it lives."""
        self._process = None
        self._end()

    @property
    def alive(self) -> bool:
        """Whether the program still runs."""
        return self._process is not None and self._process.poll() is None

    def command(self, *words: object) -> str:
        """Send one command of ea_shim/main.cpp and return its answer; raises Died."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise Died("the advisor has been killed")
        line = " ".join(map(_word, words))
        if "\n" in line:
            raise ValueError("a command is one line")
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            reply = process.stdout.readline()
        except BrokenPipeError:
            reply = ""
        if not reply:
            code = process.wait()
            self.kill()
            if code not in (-signal.SIGKILL, 0):
                raise RuntimeError(f"the advisor stopped with {code} at: {line}")
            raise Died(line)
        if not reply.startswith("ok"):
            raise ValueError(f"{line}: {reply.strip()}")
        return reply[3:].rstrip("\n")

    # --- time and market

    def timer(self, times: int = 1, step: float = 0.0) -> None:
        """Run so many rounds, moving the clock by `step` seconds before each."""
        self.command("timer", times, step)

    def run(self, seconds: float) -> None:
        """Let the advisor work for so long, four rounds a second as in a terminal."""
        self.timer(max(1, round(seconds / ROUND)), ROUND)

    def wait(self, seconds: int) -> None:
        """Let time pass with one round a second, the longest gap that counts as watching."""
        self.timer(seconds, 1.0)

    def step(self, gmt: float | datetime, ticks: float) -> None:
        """Let the advisor work up to a UTC and a steady time, as it does while time passes."""
        self.command("step", gmt, ticks)

    def clock(self, gmt: float | datetime, *, wall: bool = False) -> None:
        """Set UTC; `wall` moves the wall clock alone (somebody set it)."""
        self.command("clock", gmt, *(["wall"] if wall else []))

    def symbol(self, name: str, **terms: object) -> None:
        """Make or change a symbol: digits, tick_size, lot_step, mode, session, stops_level, ..."""
        self.command("symbol", _one_word(name), *(word for pair in terms.items() for word in pair))

    def quote(
        self, symbol: str, bid: float, ask: float, at: float | datetime | None = None
    ) -> None:
        """Bring a tick, at a UTC; positions whose stop or target it reaches are closed."""
        self.command("quote", _one_word(symbol), bid, ask, *(() if at is None else (at,)))

    def bar(
        self, symbol: str, seconds: int, time: int, prices: Iterable[float], ticks: int, spread: int
    ) -> None:
        """Add or change a bar; `time` is server time, `prices` open, high, low, close."""
        self.command("bar", _one_word(symbol), seconds, time, *prices, ticks, spread)

    def ticks(self, symbol: str, ticks: Iterable[Sequence[float]]) -> None:
        """Fill the terminal's store: milliseconds of server time, bid, ask, last, flags."""
        words = (f"{int(at)},{bid!r},{ask!r},{last!r},{int(flags)}" for at, bid, ask, last, flags
                 in ticks)  # fmt: skip
        self.command("ticks", _one_word(symbol), *words)

    def lose_ticks(self, symbol: str, first: int, last: int) -> None:
        """Take the ticks of these milliseconds out of the terminal's store."""
        self.command("no_ticks", _one_word(symbol), first, last)

    def book(self, symbol: str, entries: Iterable[Sequence[float]] = ()) -> None:
        """Let the order book change: type (1 sell, 2 buy), price, whole lots, exact lots."""
        words = (f"{int(kind)},{price!r},{int(whole)},{exact!r}" for kind, price, whole, exact
                 in entries)  # fmt: skip
        self.command("book", _one_word(symbol), *words)

    def set(self, **settings: object) -> None:
        """Change the account or the broker: connected, algo, trade_mode, margin_mode, ..."""
        for name, value in settings.items():
            self.command("set", name, value)

    # --- faults

    def fail(
        self, retcode: int, executed: int = 0, volume: float = 0.0, delay: float = 0.0
    ) -> None:
        """Let the next order end with `retcode`, 0 = truly; executed: 0 no, 1 yes, 2 left waiting.

        `volume` is the part of it that is executed, 0 = all (of a waiting one nothing), below 0 a
        share of it. The books show it `delay` seconds late.
        """
        self.command("fail", retcode, executed, volume, delay)

    def forgive(self) -> None:
        """Take back every fault that is still to come, of orders and of the program."""
        self.command("forgive")

    def fail_check(self, retcode: int) -> None:
        """Let the next OrderCheck refuse."""
        self.command("fail_check", retcode)

    def fail_files(self, **faults: int) -> None:
        """Let the next n fail_writes, short_writes, fail_moves, fail_deletes or fail_reads."""
        for name, count in faults.items():
            self.command("file", name, count)

    def crash_at(self, point: str, nth: int = 1) -> None:
        """Kill itself the n-th time it gets to a point of POINTS."""
        self.command("crash", point, nth)

    # --- the broker's side

    def open_by_hand(
        self,
        symbol: str,
        side: str,
        lots: float,
        *,
        magic: int = 0,
        comment: str = "",
        stop: float = 0.0,
        target: float = 0.0,
    ) -> int:
        """Open a position that the advisor has no part in; return its number."""
        words = (side, lots, magic, comment or "-", stop, target)
        return int(self.command("open", _one_word(symbol), *words))

    def close_by_hand(self, ticket: int, lots: float = 0.0, reason: int = 0) -> None:
        """Close a position without the advisor; reason 0 client, 6 stop out."""
        self.command("close", ticket, lots, reason)

    def move_levels(self, ticket: int, stop: float, target: float) -> None:
        """Move stop and target of a position without the advisor."""
        self.command("levels", ticket, stop, target)

    def pay(self, money: float) -> None:
        """Pay into the account, or out of it."""
        self.command("pay", money)

    def settle(self) -> None:
        """Execute the orders that were left waiting."""
        self.command("settle")

    def wipe(self) -> None:
        """Empty the books, forget faults and settings; symbols and quotes stay."""
        self.command("wipe")

    def broker_state(self) -> dict[str, Any]:
        """Return gmt, sends, balance, positions, orders and deals as the broker has them."""
        state: dict[str, Any] = json.loads(self.command("state"))
        return state

    def positions(self, magic: int | None = None) -> list[dict[str, Any]]:
        """Return the open positions, of one magic number."""
        items = self.broker_state()["positions"]
        return [item for item in items if magic in (None, item["magic"])]

    def deals(self, comment: str = "", entry: str = "") -> list[dict[str, Any]]:
        """Return the deals, of one comment and of one entry: in or out."""
        return [
            item
            for item in self.broker_state()["deals"]
            if comment in ("", item["comment"]) and entry in ("", item["entry"])
        ]

    def hmac(self, text: str) -> str:
        """Return the advisor's own signature of a text."""
        return self.command("hmac", text)

    def log(self) -> list[str]:
        """Return what it printed since the last time."""
        lines: list[str] = json.loads(self.command("log"))
        return lines

    def shown(self) -> str:
        """Return what it shows on its chart."""
        return str(json.loads(self.command("comment")))


def _end(process: subprocess.Popen[str], owner: int) -> None:
    """Kill a program, if it is this process that started it."""
    if os.getpid() != owner:
        return  # a fork, which has a copy of all
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _word(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return repr(float(value))
        case datetime():
            return repr(value.timestamp())
    return str(value)


def _one_word(symbol: str) -> str:
    """Return a symbol's name as one word of a command."""
    return symbol.replace(" ", "\x1f")


def without_texts(source: str) -> str:
    """Return a source without its comments, and with its texts empty."""
    bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', source)
    return re.sub(r"//.*$", "", bare, flags=re.MULTILINE)


def names_called(source: str) -> Iterator[str]:
    """Yield every name that is called in a source."""
    for match in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", without_texts(source)):
        yield match[1]
