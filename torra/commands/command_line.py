"""The `torra` command: a readable table by default, one JSON document with --json.

A mistake of the user ends in one clear line on standard error and exit code 2, a broken database in
exit code 1; neither shows a traceback. Imports that cost time stand inside the commands that need
them, so that `torra --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from torra.commands import terminal
from torra.commands.access import audit, token
from torra.commands.answer import CommandAnswer, answering, one_line, plainly
from torra.commands.backup import backup, restore
from torra.commands.checking import consistency, lookahead
from torra.commands.data import calendar, data
from torra.commands.init import init
from torra.commands.lessons import lessons
from torra.commands.listing import jobs, models, notices, results, symbols, ticks
from torra.commands.options import (
    ANY_PATH,
    ONE_TICK,
    SpelledGroup,
    clock_option,
    flag,
    leave_out_option,
    number,
    on_terminal,
    several,
)
from torra.commands.profile import profile
from torra.commands.promotion import effect, promotion, scorecard
from torra.commands.replay import ablate, replay, sweep
from torra.commands.terminal import say
from torra.errors import ConfigError
from torra.imports import importing
from torra.own_names import check_names
from torra.regular_files import lies

if TYPE_CHECKING:
    from torra.trading.hand_close import Ask, CloseQuote


def _typed(word: str, yes: bool, *, always: bool = False) -> Ask | None:
    """Return what shows a person what closes bring, and has a word typed for real money.

    With `always` it has the word typed on paper too.
    """

    def ask(quotes: Iterable[CloseQuote], live: Sequence[str]) -> None:
        from torra.exhibits.money import close_headline, close_outlook  # noqa: PLC0415

        for quote in quotes if word != "stop" else ():
            say(f"{close_headline(quote)}. {close_outlook(quote)}", err=True)
        if not (live or always):
            return
        names = ", ".join(live)
        question = f"{f'Real money: {names}. ' if live else ''}Type {word}"
        answer = ""
        if on_terminal():
            answer = click.prompt(question, default="", show_default=False, err=True)
        if answer.strip() != word:
            why = f"{names}: real money, so " if live else ""
            raise ConfigError(f"{why}nothing was done; type {word}, or give --yes")

    return None if yes else ask


reason_option = click.option("--reason", default="", help="Goes on record.")
yes_option = flag("--yes", "Ask nothing, also where real money is traded.")

CHAPTERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Run": ("run", "init", "import", "symbols", "profile", "models", "token", "tick", "ticks",
        "jobs", "data", "calendar",
    ),
    "Decide": (
        "signals", "approve", "reject", "close", "stop", "flatten", "halt", "resume", "settle",
        "notices",
    ),
    "Judge": (
        "results", "cost", "lessons", "effect", "scorecard", "promotion", "replay",
        "ablate", "sweep", "lookahead", "consistency",
    ),
    "Keep": ("backup", "restore", "audit", "doctor"),
}  # fmt: skip
"""The commands in the order and under the heads of the help."""


class PlainGroup(SpelledGroup):
    """A group whose usage errors are one line, like every other mistake."""

    chapters = CHAPTERS

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run; a usage error ends with exit code 2."""
        # click's own standalone mode would print its usage errors in several lines.
        alone = kwargs.pop("standalone_mode", True)
        run: Callable[..., Any] = super().main
        try:
            code = run(*args, standalone_mode=False, **kwargs)
        except click.exceptions.NoArgsIsHelpError as error:
            say(error.format_message())  # nothing was asked for and nothing is wrong
            sys.exit(0)
        except click.ClickException as error:
            say(one_line(_usage_line(error)), err=True)
            sys.exit(2)
        except click.Abort:
            # 128 + SIGINT, as a shell reports Ctrl-C.
            sys.exit(130)
        if alone:
            sys.exit(code if isinstance(code, int) else 0)
        return code


def _usage_line(error: click.ClickException) -> str:
    text = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{text} (see {context.command_path} --help)" if context else text


def _place(path: Path) -> Path:
    """Return the home that was named; raises click.BadParameter for what can be no folder."""
    try:
        home = path.expanduser()
        lies(home)
    # ValueError: a name that no file can have.
    except (RuntimeError, ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        why = f"there is no user {path.parts[0]}" if isinstance(error, RuntimeError) else why
        raise click.BadParameter(
            f"{path} can be no home: {why}; set TORRA_HOME or --home to a folder"
        ) from error
    return home


@click.group(
    cls=PlainGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="torra", prog_name="torra")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="TORRA_HOME",
    default=Path("torra_home"),
    show_default=True,
    help="Where the desk keeps everything that it writes.",
)
@click.pass_context
@plainly
def main(context: click.Context, home: Path) -> None:
    """Torra: a debated trading score for MetaTrader 5. Paper trading by default."""
    check_names()
    terminal.escape_warnings()
    context.obj = _place(home)


@main.command()
@number("--port", 5000, 1, 65535)
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@flag("--no-pages", "Run the desk without the dashboard.")
@flag("--allow-remote", "Serve other machines too: docs/security.md.")
@click.option("--trusted-host", "names", multiple=True, help="A name that the pages are opened by.")
@click.option("--prefix", default="", help="Path below which a proxy shows the pages: /torra.")
@flag("--wait", "Wait for the end of another desk on the home.")
@click.pass_obj
@plainly
def run(home: Path, /, no_pages: bool, wait: bool, names: tuple[str, ...], **address: Any) -> None:
    """Start the desk: schedule, bridge and dashboard."""
    with importing():
        from torra.commands import run as running  # noqa: PLC0415

    where = running.PagesAddress(names=names, **address)
    running.run(home, where, pages=not no_pages, say=say, wait=wait)


@main.command()
@click.argument("symbol")
@click.argument("timeframe")
@click.option("--as-of", help="Close of the bar, UTC; default: the newest bar.")
@several(ONE_TICK)
@answering
def tick(home: Path, /, symbol: str, timeframe: str, **options: Any) -> CommandAnswer:
    """Run one tick without changing or publishing anything."""
    with importing():
        from torra.replay.rerun import trial_tick  # noqa: PLC0415

    record = trial_tick.run(home, symbol.upper(), timeframe.upper(), **options)
    return CommandAnswer(trial_tick.document(record), trial_tick.table(record))


@main.command("import")
@click.argument("file", type=ANY_PATH)
@click.option("--symbol", required=True, help="Canonical symbol or instance name, such as XAUUSD.")
@click.option("--timeframe", required=True, help="Timeframe of the bars, such as M15.")
@clock_option
@leave_out_option
@flag("--revise", "The file is right: replace stored bars, withdraw those it lacks.")
@answering
def import_bars(
    home: Path, /, file: Path, symbol: str, timeframe: str, clock: str | None, **options: Any
) -> CommandAnswer:
    """Store the bars of a file, as MetaTrader 5, TradingView, Binance and others export them."""
    from torra.desk.setup import bar_import  # noqa: PLC0415

    stream = (symbol.upper(), timeframe.upper())
    result = bar_import.run(home, file, *stream, clock, progress=terminal.progress, **options)
    return CommandAnswer(result, bar_import.table)


@main.command()
@click.option("--profile", help="Only this profile.")
@answering
def cost(home: Path, profile: str | None) -> CommandAnswer:
    """Show what models have cost, and what is left of each profile's hour."""
    from torra.desk import costs  # noqa: PLC0415

    return CommandAnswer(costs.run(home, profile), costs.table)


@main.command()
@reason_option
@flag("--reduce", "Stop openings only: positions may still be closed.")
@answering
def halt(home: Path, reason: str, reduce: bool) -> CommandAnswer:
    """Stop trading at once, here and at every terminal, until `torra resume`."""
    from torra.trading import by_hand  # noqa: PLC0415

    document = by_hand.reduce.at_home(home, reason=reason) if reduce else by_hand.halt(home, reason)
    return CommandAnswer(document, by_hand.state_line)


@main.command()
@reason_option
@flag("--reduce", "Let closes go on, nothing else; alarms stand.")
@answering
def resume(home: Path, **options: Any) -> CommandAnswer:
    """Let trading go on after a halt; ends the alarms."""
    from torra.trading import by_hand, commanding  # noqa: PLC0415

    with commanding.at_home(home, "resume") as desk:
        done = by_hand.resume(desk, commanding.COMMAND_LINE, **options)
    return CommandAnswer(done.document, by_hand.resumed)


@main.command()
@click.option("--instance", help="Only this instance.")
@number("--limit", 30, 1, 10_000)
@answering
def signals(home: Path, instance: str | None, limit: int) -> CommandAnswer:
    """Show the trading state, bridges, alarms, proposals and the newest signals."""
    from torra.trading import by_hand  # noqa: PLC0415

    return CommandAnswer(by_hand.signals(home, instance, limit), by_hand.table)


@main.command()
@click.argument("proposal")
@answering
def approve(home: Path, proposal: str) -> CommandAnswer:
    """Send what a proposal holds, if every check still agrees at the price of now."""
    from torra.trading import by_hand  # noqa: PLC0415

    document = by_hand.approve.at_home(home, proposal)
    return CommandAnswer(document, by_hand.decided_line, int(document["state"] != "APPROVED"))


@main.command()
@click.argument("proposal")
@reason_option
@answering
def reject(home: Path, proposal: str, reason: str) -> CommandAnswer:
    """Take a proposal off the table."""
    from torra.trading import by_hand  # noqa: PLC0415

    document = by_hand.reject.at_home(home, proposal, reason=reason)
    return CommandAnswer(document, by_hand.decided_line)


@main.command()
@click.argument("position")
@yes_option
@answering
def close(home: Path, position: str, yes: bool) -> CommandAnswer:
    """Close one position: name its opening's id, or its instance."""
    from torra.trading import hand_close  # noqa: PLC0415

    ask = _typed("close", yes)
    done = hand_close.ask_and_do(hand_close.close, home, position, ask=ask)
    return CommandAnswer(done, hand_close.closed_lines)


@main.command()
@flag("--yes", "Ask nothing.")
@answering
def flatten(home: Path, yes: bool) -> CommandAnswer:
    """Close every position of the desk, after asking; exit 1 when one cannot be closed."""
    from torra.trading import hand_close  # noqa: PLC0415

    ask = _typed("flatten", yes, always=True)
    document = hand_close.ask_and_do(hand_close.flatten, home, ask=ask)
    refused = any(row["step"] == "REFUSED" for row in document["positions"])
    return CommandAnswer(document, hand_close.closed_lines, int(refused))


@main.command()
@click.argument("position")
@click.argument("price", type=float)
@yes_option
@answering
def stop(home: Path, position: str, price: float, yes: bool) -> CommandAnswer:
    """Move the stop of a position towards the price."""
    from torra.trading import hand_close  # noqa: PLC0415

    ask = _typed("stop", yes)
    done = hand_close.ask_and_do(hand_close.stop, home, position, ask=ask, price=price)
    return CommandAnswer(done, hand_close.stop_line)


@main.command()
@click.argument("signal")
@reason_option
@answering
def settle(home: Path, signal: str, reason: str) -> CommandAnswer:
    """Book, on your word, that an order without an answer never reached the market."""
    from torra.trading import by_hand  # noqa: PLC0415

    return CommandAnswer(by_hand.settle.at_home(home, signal, reason=reason), by_hand.settled_line)


@main.command()
@answering
def doctor(home: Path) -> CommandAnswer:
    """Check the machine, the settings and the database; exit 1 when something must be mended."""
    from torra.desk.checks import table  # noqa: PLC0415

    document = table.document(table.doctor(home))
    return CommandAnswer(document, table.table, int(not document["ok"]))


COMMANDS = (
    init, profile, token, audit, backup, restore,
    replay, ablate, sweep, scorecard, promotion, effect, results, lessons, models, notices,
    jobs, data, calendar, lookahead, consistency, symbols, ticks,
)  # fmt: skip

for command in COMMANDS:
    main.add_command(command)


if __name__ == "__main__":
    main()
