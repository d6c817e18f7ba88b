"""`torra mcp`: the tools of the desk for another program, on standard input and output.

Nothing but the protocol is written to standard output. Without the extra `mcp` it is one clear line
and exit code 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torra.ask.answering import ask
from torra.commands.answer import plainly
from torra.errors import ConfigError
from torra.tools.desk_reader import reading


@click.command()
@click.pass_obj
@plainly
def mcp(home: Path) -> None:
    """Let another program read the desk through tools, by the Model Context Protocol."""
    try:
        from torra.tools.mcp_server import DeskServer  # noqa: PLC0415  an extra
    except ImportError as error:
        raise ConfigError(
            f"torra mcp needs the package mcp ({error}): pip install 'torra[mcp]'"
        ) from error
    with reading(home) as (reader, audit):

        def answer(question: str, session: str) -> dict[str, Any]:
            given = ask(reader, audit, question, session=session, person="mcp")
            # the sentences are its text, and the model wrote the question
            return given.model_dump(mode="json", exclude={"sentences", "question"})

        DeskServer(reader, audit, answer).run()
