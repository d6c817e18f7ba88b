"""`torra signals` and what a person does to orders: approve, reject, close, stop, halt, settle ...

Each is the function of torra.trading that pages and API call too. What trades real money has a word
typed first. A mistake is one line and exit code 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from torra.commands.answer import CommandAnswer, answering, open_database
from torra.commands.options import flag, number, on_terminal
from torra.commands.terminal import say
from torra.config import load_desk
from torra.errors import ConfigError
from torra.exhibits.money import close_headline, close_outlook
from torra.trading import by_hand, commanding, hand_close, signal_list
from torra.trading.hand_close import Ask, CloseQuote

reason_option = click.option("--reason", default="", help="Goes on record.")
yes_option = flag("--yes", "Ask nothing, also where real money is traded.")


@click.command()
@reason_option
@flag("--reduce", "Stop openings only: positions may still be closed.")
@answering
def halt(home: Path, reason: str, reduce: bool) -> CommandAnswer:
    """Stop trading at once, here and at every terminal, until `torra resume`."""
    document = by_hand.reduce.at_home(home, reason=reason) if reduce else by_hand.halt(home, reason)
    return CommandAnswer(document, by_hand.state_line)


@click.command()
@reason_option
@flag("--reduce", "Let closes go on, nothing else; alarms stand.")
@answering
def resume(home: Path, **options: Any) -> CommandAnswer:
    """Let trading go on after a halt; ends the alarms."""
    with commanding.at_home(home, "resume") as desk:
        done = by_hand.resume(desk, commanding.COMMAND_LINE, **options)
    return CommandAnswer(done.document, by_hand.resumed)


@click.command()
@click.option("--instance", help="Only this instance.")
@number("--limit", 30, 1, 10_000)
@answering
def signals(home: Path, instance: str | None, limit: int) -> CommandAnswer:
    """Show the trading state, bridges, alarms, proposals and the newest signals."""
    if instance is not None:
        instance = load_desk(home).instance(instance).id
    with open_database(home) as database:
        desk = commanding.context_of(home, database)
        return CommandAnswer(
            signal_list.document(desk, limit=limit, instance=instance), signal_list.table
        )


@click.command()
@click.argument("proposal")
@answering
def approve(home: Path, proposal: str) -> CommandAnswer:
    """Send what a proposal holds, if every check still agrees at the price of now."""
    document = by_hand.approve.at_home(home, proposal)
    return CommandAnswer(document, by_hand.decided_line, int(document["state"] != "APPROVED"))


@click.command()
@click.argument("proposal")
@reason_option
@answering
def reject(home: Path, proposal: str, reason: str) -> CommandAnswer:
    """Take a proposal off the table."""
    document = by_hand.reject.at_home(home, proposal, reason=reason)
    return CommandAnswer(document, by_hand.decided_line)


@click.command()
@click.argument("position")
@yes_option
@answering
def close(home: Path, position: str, yes: bool) -> CommandAnswer:
    """Close one position: name its opening's id, or its instance."""
    ask = _typed("close", yes)
    done = hand_close.ask_and_do(hand_close.close, home, position, ask=ask)
    return CommandAnswer(done, hand_close.closed_lines)


@click.command()
@flag("--yes", "Ask nothing.")
@answering
def flatten(home: Path, yes: bool) -> CommandAnswer:
    """Close every position of the desk, after asking; exit 1 when one cannot be closed."""
    ask = _typed("flatten", yes, always=True)
    document = hand_close.ask_and_do(hand_close.flatten, home, ask=ask)
    refused = any(row["step"] == "REFUSED" for row in document["positions"])
    return CommandAnswer(document, hand_close.closed_lines, int(refused))


@click.command()
@click.argument("position")
@click.argument("price", type=float)
@yes_option
@answering
def stop(home: Path, position: str, price: float, yes: bool) -> CommandAnswer:
    """Move the stop of a position towards the price."""
    ask = _typed("stop", yes)
    done = hand_close.ask_and_do(hand_close.stop, home, position, ask=ask, price=price)
    return CommandAnswer(done, hand_close.stop_line)


@click.command()
@click.argument("signal")
@reason_option
@answering
def settle(home: Path, signal: str, reason: str) -> CommandAnswer:
    """Book, on your word, that an order without an answer never reached the market."""
    return CommandAnswer(by_hand.settle.at_home(home, signal, reason=reason), by_hand.settled_line)


def _typed(word: str, yes: bool, *, always: bool = False) -> Ask | None:
    """Return what shows a person what closes bring, and has a word typed for real money.

    With `always` it has the word typed on paper too.
    """

    def ask(quotes: Iterable[CloseQuote], live: Sequence[str]) -> None:
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
