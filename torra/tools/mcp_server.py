"""Serves the tools to another program by the Model Context Protocol, on standard input and output.

The client counts as a model: it gets facts, never titles, notes or account numbers. Names, schemas
and texts of tools are those of the registry. Prompts say which tools to ask; resources are the
newest scan, a tick by its facts, and the docs. There is no network transport. Evidence is read on a
connection that cannot write; the rows of the audit are all that is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.prompts.base import Prompt, PromptArgument
from mcp.server.mcpserver.resources import FileResource

from agents.features import rows_of
from torra.clock import token
from torra.errors import TorraError
from torra.store.connection import Store, to_json
from torra.tools.contract import ToolResult, refusal
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import (
    CLIENT,
    MODEL_BYTES,
    MONOTONIC,
    Executor,
    ToolCall,
    text_for_model,
)
from torra.tools.records import DOCS
from torra.tools.registry import TOOLS

PROMPTS: Final = rows_of(Path(__file__).with_name("prompts.csv"))
RULES: Final = (
    "Cite the id of each fact that you use. Use no number that no fact has, and give no advice."
)
"""What every prompt ends with."""

ONLY_READS: Final = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)


ASK: Final = types.Tool(
    name="ask",
    description="Answers a question in words from what the desk stored: plan, facts, sentences.",
    input_schema={
        "type": "object",
        "properties": {
            "question": {"type": "string", "maxLength": 500},
            "session": {"type": "string", "description": "of an answer, for a follow-up"},
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    annotations=ONLY_READS,
)
"""The one tool that is no row of the registry: it runs others, and no model."""


class DeskServer(MCPServer[Any]):
    """What one client may ask; `reader` returns the desk as it stands at that moment.

    `answer` answers a question, given a session, with a document whose citations may be cut; it
    raises TorraError.
    """

    def __init__(
        self,
        reader: Callable[[], DeskReader],
        audit: Store,
        answer: Callable[[str, str], dict[str, Any]],
    ) -> None:
        super().__init__("torra", log_level="ERROR")
        self._answer = answer
        self._reader = reader
        self._executor = Executor(f"mcp-{token(8)}", audit, limits=CLIENT)
        self.resource("torra://radar/latest")(self.radar)
        self.resource("torra://tick/{symbol}/{timeframe}/{back}")(self.tick)
        for page in sorted(DOCS.glob("*.md")):
            uri = f"torra://docs/{page.stem}"
            self.add_resource(
                FileResource(uri=uri, name=page.stem, path=page, mime_type="text/markdown")
            )
        for row in PROMPTS:
            names = [PromptArgument(name=one, required=True) for one in row["arguments"].split()]
            text = f"{row['text']} {RULES}"
            self.add_prompt(
                Prompt(
                    name=row["prompt"], description=row["description"], arguments=names,
                    fn=text.format,
                )
            )  # fmt: skip

    async def list_tools(self) -> list[types.Tool]:
        """Return every tool of the registry with its schema."""
        rows = [
            types.Tool(
                name=spec.name,
                description=spec.description,
                input_schema=spec.args.model_json_schema(),
                annotations=ONLY_READS,
            )
            for spec in TOOLS.values()
        ]
        return [*rows, ASK]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> types.CallToolResult:
        """Run a tool; a refusal is an answer."""
        del context
        # on a thread: the protocol goes on while a tool runs
        ask = name == ASK.name
        work = partial(self._ask, arguments) if ask else partial(self._call, name, arguments)
        text, ok = await anyio.to_thread.run_sync(work)
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=not ok)

    def _call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        result = self._run(name, **arguments)
        return text_for_model(result), result.ok

    def _ask(self, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Return the answer to a question as JSON of at most MODEL_BYTES, or a refusal."""
        question, session = (arguments.get(name, "") for name in ("question", "session"))
        code = self._executor.beyond(MINUTE_LIMIT=(MONOTONIC() // 60,))
        if not (isinstance(question, str) and isinstance(session, str)):
            code = "BAD_ARGUMENT"
        if code:
            return text_for_model(refusal(code)), False
        try:
            document = {"left_out": 0, **self._answer(question, session)}
        except TorraError as error:
            return text_for_model(refusal("BAD_ARGUMENT", str(error))), False
        while len((text := to_json(document)).encode()) > MODEL_BYTES and document["citations"]:
            document["citations"].pop()
            document["left_out"] += 1
        return text, True

    def radar(self) -> str:
        """Return the newest scan of the radar by its facts."""
        return self._text("latest_radar")

    def tick(self, symbol: str, timeframe: str, back: str) -> str:
        """Return the record of a tick by its facts: a line of scores, and one of the argument."""
        tools = ("score_symbol", "argument")
        args = {"symbol": symbol, "timeframe": timeframe, "back": back}
        return "\n".join(self._text(name, **args) for name in tools)

    def _text(self, name: str, **args: Any) -> str:
        return text_for_model(self._run(name, **args))

    def _run(self, name: str, /, **args: Any) -> ToolResult:
        try:
            reader = self._reader()
        except TorraError:  # what it says may name a file
            return refusal("UNREADABLE")
        return self._executor.call(reader, ToolCall(name, args, agent="mcp"))
