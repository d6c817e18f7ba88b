"""The help of `torra`: help is no error, it has four chapters, and no sentence is cut short."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from torra.commands.command_line import CHAPTERS, main
from torra.commands.options import LONGEST_HELP

UNSAID = (
    "win rates (--teach)",
    "as if its desk had been another",
    "every score that moved",
    "in the place of the desk's database",
    "residual IC",
)
"""What stood in the help and was not understood."""


def asked(*words: str) -> Result:
    return CliRunner().invoke(main, words, catch_exceptions=False)


def test_torra_alone_prints_its_help_as_help() -> None:
    alone, told = asked(), asked("--help")
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert alone.stdout == told.stdout and told.exit_code == 0


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


@pytest.mark.parametrize("group", ["profile", "notices"])
def test_a_group_of_commands_spells_its_commands_out_too(group: str) -> None:
    told = asked(group, "--help")
    _, _, below = told.stdout.partition("Commands:")
    assert told.exit_code == 0 and below and "..." not in below


def test_every_option_says_what_it_is() -> None:
    plain = {"json", "port", "limit"}
    for command in main.commands.values():
        for one in command.params:
            if isinstance(one, click.Option) and one.name not in plain:
                assert one.help, f"torra {command.name} {one.opts[0]}"


def test_what_was_not_understood_is_gone(tmp_path: Path) -> None:
    told = [asked(name, "--help").stdout for name in main.commands]
    told.append(CliRunner().invoke(main, ["--home", str(tmp_path), "promotion"]).stdout)
    text = " ".join(" ".join(told).split())
    assert not [words for words in UNSAID if words in text]
