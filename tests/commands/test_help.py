"""The help of `torra`: help is no error, it has four chapters, and no sentence is cut short."""

from __future__ import annotations

import click
from click.testing import CliRunner, Result

from torra.commands.command_line import CHAPTERS, main
from torra.commands.options import LONGEST_HELP

"""What stood in the help and was not understood."""


def asked(*words: str) -> Result:
    return CliRunner().invoke(main, words, catch_exceptions=False)


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    """Each has the first sentence of its own help: none is cut short."""
    rows = [row for chapter in CHAPTERS.values() for row in chapter]
    assert dict(rows) == {
        name: command.get_short_help_str(LONGEST_HELP) for name, command in main.commands.items()
    }
    text = " ".join(asked().stdout.split())
    assert all(sentence in text and not sentence.endswith("...") for _, sentence in rows)
    places = [asked().stdout.index(f"\n{head}:\n") for head in CHAPTERS]
    assert places == sorted(places) and list(CHAPTERS) == ["Run", "Decide", "Judge", "Keep"]


def test_every_option_says_what_it_is() -> None:
    plain = {"json", "port", "limit"}
    for command in main.commands.values():
        for one in command.params:
            if isinstance(one, click.Option) and one.name not in plain:
                assert one.help, f"torra {command.name} {one.opts[0]}"
