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
from torra.store.connection import Store
from torra.tools.contract import ToolResult, refusal
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import CLIENT, Executor, ToolCall, text_for_model
from torra.tools.records import DOCS
from torra.tools.registry import TOOLS

PROMPTS: Final = rows_of(Path(__file__).with_name("prompts.csv"))
RULES: Final = (
    "Cite the id of each fact that you use. Use no number that no fact has, and give no advice."
)
"""What every prompt ends with."""

ONLY_READS: Final = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)


class DeskServer(MCPServer[Any]):
    """What one client may ask; `reader` returns the desk as it stands at that moment."""

    def __init__(self, reader: Callable[[], DeskReader], audit: Store) -> None:
        super().__init__("torra", log_level="ERROR")
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
        return [
            types.Tool(
                name=spec.name,
                description=spec.description,
                input_schema=spec.args.model_json_schema(),
                annotations=ONLY_READS,
            )
            for spec in TOOLS.values()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> types.CallToolResult:
        """Run a tool; a refusal is an answer."""
        del context
        # on a thread: the protocol goes on while a tool runs
        result = await anyio.to_thread.run_sync(partial(self._run, name, **arguments))
        content = types.TextContent(text=text_for_model(result))
        return types.CallToolResult(content=[content], is_error=not result.ok)

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
