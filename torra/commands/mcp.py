"""`torra mcp`: the tools of the desk for another program, on standard input and output.

Nothing but the protocol is written to standard output. Without the extra `mcp` it is one clear line
and exit code 2.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from instance_database import open_reader
from torra.commands.answer import plainly
from torra.desk.looking_desk import look_at
from torra.errors import ConfigError
from torra.home import DATABASE
from torra.tools.desk_reader import DeskReader


@click.command()
@click.pass_obj
@plainly
def mcp(home: Path) -> None:
    """Let another program read the desk through tools, by the Model Context Protocol."""
    try:
        from torra.tools.mcp_server import serve  # noqa: PLC0415  an extra
    except ImportError as error:
        raise ConfigError(
            f"torra mcp needs the package mcp ({error}): pip install 'torra[mcp]'"
        ) from error
    settings, database, desk = look_at(home)
    with closing(database), closing(open_reader(home / DATABASE)) as evidence:
        serve(lambda: DeskReader.of_desk(home, settings, desk, evidence), database)
