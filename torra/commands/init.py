"""`torra init`: asks, or takes flags, and writes a desk.json and a profile for one's own symbols.

What MetaTrader 5 says of itself is read from the channel's folder where possible;
torra.desk.setup.desk_plan decides what to write, and writes it.

A mistake is one line, exit code 2, and nothing was written. Existing files stay unless --force says
otherwise. No channel key is ever written to a file or into --json; a fresh one is shown on a
terminal only. questions.csv has what is asked.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from agent_config import full_name
from agents.features import rows_of
from torra.clock import token
from torra.commands.answer import CommandAnswer, answering_with, wants_json
from torra.commands.options import ANY_PATH, Command
from torra.commands.terminal import say
from torra.config import BROKER_SYMBOL_RULE, is_broker_symbol
from torra.desk.setup.broker_symbols import lookup, read_terms
from torra.desk.setup.desk_plan import (
    KEY_VARIABLE,
    plan,
    refuse_overwriting,
    server_clock,
    write,
)
from torra.desk.setup.request import (
    SetupRequest,
    TerminalFacts,
    amount,
    one_of,
    plain_name,
    read_timeframes,
    symbol_name,
)
from torra.desk.setup.terminal_facts import read_terminal_facts
from torra.errors import ConfigError
from torra.home import DESK

T = TypeVar("T")

QUESTIONS: Final = {row["name"]: row for row in rows_of(Path(__file__).with_name("questions.csv"))}
"""The options in the order of the help, and their questions; the first choice is the default."""

KEY_BYTES: Final = 32

COMMON: Final = ("MetaQuotes", "Terminal", "Common", "Files")
"""MetaTrader's folder that all terminals of a user share, below the user's application data."""


def question_options(command: Command) -> Command:
    """Give a command an option for each row of the table."""
    for name, row in reversed(QUESTIONS.items()):
        kinds: dict[str, dict[str, Any]] = {
            "choice": {"type": click.Choice(row["choices"].split())},
            "path": {"type": ANY_PATH},
            "flag": {"is_flag": True},
        }
        option = click.option(option_of(name), help=row["help"], **kinds.get(row["kind"], {}))
        command = option(command)
    return command


def option_of(name: str) -> str:
    """Return how the answer to a question is given beforehand."""
    return f"--{name.replace('_', '-')}"


@click.command()
@question_options
@answering_with("Ask nothing and print one JSON document.")
def init(home: Path, /, make_key: bool, yes: bool, force: bool, **flags: Any) -> CommandAnswer:
    """Write desk.json and a profile for your own symbols."""
    if make_key:
        show_key()
        sys.exit(0)
    if not force:
        # Before the questions: nobody should answer them all in vain.
        refuse_overwriting(home / DESK)
    result = plan(home, *gather(InitPrompt(flags, asks=not (yes or wants_json()))))
    write(result, force=force)
    return CommandAnswer(result.document(), result.table())


def show_key() -> None:
    """Show a fresh channel key on a terminal; raises ConfigError where nobody would see it."""
    if not on_terminal():
        raise ConfigError("--make-key shows a key on a terminal only: do not redirect it")
    say(
        "A fresh channel key, kept nowhere. Set it where Torra runs, and as the Expert Advisor's "
        f"input channel_key:\n{KEY_VARIABLE}={token(KEY_BYTES)}",
        err=True,
    )


def on_terminal() -> bool:
    """Return whether a person sees what is written to standard error."""
    return sys.stderr.isatty()


@dataclass(frozen=True, slots=True)
class InitPrompt:
    """Takes each answer from its flag, else from a question, else its default."""

    flags: Mapping[str, Any]
    asks: bool

    def __call__(self, name: str, read: Callable[[str], T], default: str | None = None) -> T:
        """Return the answer as `read` understands it; raises ConfigError for what it does not."""
        value, row = self.flags[name], QUESTIONS[name]
        question = row["question"]
        if row["choices"]:
            question += f" ({row['choices'].replace(' ', ', ')})"
        default = row["default"] if default is None else default
        if value is None and self.asks:

            def understood(text: str) -> T:
                try:
                    return read(text.strip())
                except ConfigError as error:
                    # click asks again after this one.
                    raise click.UsageError(str(error)) from error

            answer: T = click.prompt(
                question, default=default or None, value_proc=understood, err=True
            )
            return answer
        if value is None and not default:
            raise ConfigError(f"give {option_of(name)}: {question[0].lower()}{question[1:]}")
        try:
            return read(value if value is not None else default)
        except ConfigError as error:
            raise ConfigError(f"{option_of(name)}: {error}") from error

    def choice(self, name: str, full: Callable[[str], str] = str) -> str:
        """Return one of a question's words; `full` makes a short name whole."""
        words = tuple(QUESTIONS[name]["choices"].split())
        read = one_of(words)
        return self(name, lambda answer: read(full(answer)), words[0])


def gather(ask: InitPrompt) -> tuple[SetupRequest, TerminalFacts]:
    """Return every answer, and what MetaTrader 5 says; raises ConfigError."""
    request, terminal = SetupRequest(
        feed=ask.choice("feed"), bridge=ask.choice("bridge")
    ), TerminalFacts()  # fmt: skip
    if request.needs_channel:
        request, terminal = _ask_channel(ask, request)
    if (path := ask.flags["terms"]) is not None:
        terms = {**(terminal.terms or {}), **read_terms(path)}
        terminal = replace(terminal, terms=terms, trouble="")
    # Rounded down: capital above the balance would make every size too large.
    balance = math.floor(terminal.balance)
    return replace(
        request,
        # Nobody is asked for them: most desks have none.
        companions=read_companions(ask.flags["companions"] or ""),
        symbols=ask("symbols", lambda text: read_symbols(text, terminal)),
        timeframes=ask("timeframes", read_timeframes),
        capital=ask("capital", amount, str(max(balance, 0) or 10_000)),
        risk_per_trade=ask("risk_per_trade", amount),
        execution=ask.choice("execution"),
        provider=ask.choice("provider", full_name),
        profile_name=ask("profile_name", plain_name),
    ), terminal


def _ask_channel(ask: InitPrompt, request: SetupRequest) -> tuple[SetupRequest, TerminalFacts]:
    channel = ask("channel", plain_name)
    request = replace(request, channel=channel)
    if request.needs_key:
        common = common_files(os.environ)
        usual = str(common / "Torra" / channel) if common else ""
        request = replace(request, folder=ask("folder", shared_folder, usual))
    # Before the next questions, whose defaults come from what the terminal said.
    terminal = read_terminal_facts(request, os.environ.get(KEY_VARIABLE, ""))
    account = ask("account", account_number, str(terminal.account or ""))
    live = ask.flags["live"]
    if ask.asks and not live and request.bridge != "paper":
        live = click.confirm(QUESTIONS["live"]["question"], err=True)
    named_clock, clock = ask.flags["server_clock"], ""
    # Without either the plan derives the clock itself and notes how.
    if ask.asks or named_clock:
        clock = ask(
            "server_clock",
            lambda text: server_clock(text, terminal, []),
            "" if named_clock else server_clock("", terminal, []),
        )
    return replace(request, account=account, live=live, server_clock=clock), terminal


def shared_folder(text: str) -> str:
    """Read a folder; it becomes absolute, for a desk may start elsewhere."""
    if not text.strip():
        raise ConfigError("name a folder")
    return str(Path(text).expanduser().absolute())


def account_number(text: str) -> int:
    """Read an account's number."""
    if not re.fullmatch(r"[1-9]\d{0,17}", text):
        raise ConfigError(f"{text!r} is not an account number")
    return int(text)


def read_symbols(text: str, terminal: TerminalFacts) -> tuple[tuple[str, str], ...]:
    """Read CANONICAL or CANONICAL=BROKER between commas; the broker's list must have each."""
    pairs = []
    for part in text.split(","):
        symbol, equals, broker = (word.strip() for word in part.partition("="))
        symbol = symbol_name(symbol)
        broker = broker if equals else symbol
        if not is_broker_symbol(broker):
            raise ConfigError(
                f"{broker!r} is no broker's symbol; write {symbol}=NAME: {BROKER_SYMBOL_RULE}"
            )
        if terminal.terms is not None:
            lookup(symbol, broker, terminal.terms)
        pairs.append((symbol, broker))
    return tuple(pairs)


def read_companions(text: str) -> tuple[tuple[str, str], ...]:
    """Read NAME=BROKER between commas."""
    pairs: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, broker = (word.strip() for word in part.partition("="))
        if not broker:
            raise ConfigError(f"--companions: write {name or 'NAME'}=SYMBOL, such as dxy=USDX.f")
        if name in pairs:
            raise ConfigError(f"--companions: the name {name} is there twice")
        pairs[name] = broker
    return tuple(pairs.items())


def common_files(environment: Mapping[str, str]) -> Path | None:
    """Return MetaTrader's common folder on Windows or in a Wine prefix; None where it is not."""
    if environment.get("APPDATA"):
        places = [Path(environment["APPDATA"])]
    else:
        wine = environment.get("WINEPREFIX") or Path(environment.get("HOME", "")) / ".wine"
        places = sorted(Path(wine).glob("drive_c/users/*/AppData/Roaming"))
    folders = (place.joinpath(*COMMON) for place in places)
    return next((path for path in folders if path.is_dir()), None)
