"""Serves the tools to another program by the Model Context Protocol, on standard input and output.

The client counts as a model: it gets facts, never titles, notes or account numbers. Names, schemas
and texts are those of the registry. Prompts say which tools to ask; resources are the newest scan,
a tick by its facts, and the docs. There is no network transport. Evidence is read on a connection
that cannot write; the rows of the audit are all that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from torra.clock import token
from torra.store.connection import Store
from torra.tools.contract import ToolResult
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import CLIENT, Executor, ToolCall, text_for_model
from torra.tools.records import DOCS
from torra.tools.registry import TOOLS

RADAR: Final = "torra://radar/latest"
TICK: Final = "torra://tick/"
PAGE: Final = "torra://docs/"
"""How the addresses of resources begin; a tick's ends with SYMBOL/TIMEFRAME/BACK."""

TICK_TOOLS: Final = ("score_symbol", "argument")
"""Tools that give the record of a tick."""

JSON: Final = "application/json"
MARKDOWN: Final = "text/markdown"


class PromptText(NamedTuple):
    """What a prompt is for, its arguments, and what it asks of the client's model."""

    description: str
    names: tuple[str, ...]
    text: str


RULES: Final = (
    "Cite the id of each fact that you use. Use no number that no fact has, and give no advice."
)

PROMPTS: Final = {
    "brief": PromptText(
        "What deserves a look now, and what is open.",
        (),
        "Call latest_radar, exposure, money and costs. Say in at most eight sentences what "
        f"deserves a look now, what is open and what it may lose. {RULES}",
    ),
    "why_this_tick": PromptText(
        "Why the newest tick of a stream did what it did.",
        ("symbol", "timeframe"),
        "Call score_symbol and argument for {symbol} on {timeframe}. Say what the tick did and "
        f"why: the scores, the strongest points of both sides, the gate. {RULES}",
    ),
    "what_changed": PromptText(
        "What the agents changed, and what each change came to.",
        (),
        "Call changed_by_agents and trades. Say what the agents changed and what each change came "
        f"to. Never add the changes up. {RULES}",
    ),
}


def serve(reader: Callable[[], DeskReader], audit: Store) -> None:
    """Serve until standard input ends; `reader` returns the desk as it stands at that moment."""

    async def run() -> None:
        server = DeskServer(reader, audit).server()
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


class DeskServer:
    """What one client may ask."""

    def __init__(self, reader: Callable[[], DeskReader], audit: Store) -> None:
        self._reader = reader
        self._executor = Executor(f"mcp-{token(8)}", audit, limits=CLIENT)

    def server(self) -> Server[Any]:
        """Return the server with its handlers."""
        return Server(
            "torra",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
        )

    async def _run(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        call = ToolCall(name, args, agent="mcp")
        # The tool is waited for on a thread: the protocol goes on meanwhile.
        return await anyio.to_thread.run_sync(lambda: self._executor.call(self._reader(), call))

    async def list_tools(self, _: object, __: object) -> types.ListToolsResult:
        """Answer every tool with its schema."""
        only_reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        tools = [
            types.Tool(
                name=spec.name,
                description=spec.description,
                input_schema=spec.args.model_json_schema(),
                annotations=only_reads,
            )
            for spec in TOOLS.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, _: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run a tool; a refusal is an answer."""
        result = await self._run(params.name, params.arguments or {})
        content = types.TextContent(text=text_for_model(result))
        return types.CallToolResult(content=[content], is_error=not result.ok)

    async def list_prompts(self, _: object, __: object) -> types.ListPromptsResult:
        """Answer every prompt with its arguments."""
        prompts = [
            types.Prompt(
                name=name,
                description=prompt.description,
                arguments=[types.PromptArgument(name=one, required=True) for one in prompt.names],
            )
            for name, prompt in PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        self, _: object, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Answer the text of a prompt; raises MCPError."""
        prompt, given = PROMPTS.get(params.name), params.arguments or {}
        if prompt is None or set(given) != set(prompt.names):
            raise MCPError(types.INVALID_PARAMS, "no such prompt, or other arguments")
        text = prompt.text.format(**given)
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def list_resources(self, _: object, __: object) -> types.ListResourcesResult:
        """Answer the newest scan and the docs."""
        radar = types.Resource(uri=RADAR, name="the newest scan of the radar", mime_type=JSON)
        docs = [types.Resource(uri=PAGE + name, name=name, mime_type=MARKDOWN) for name in _pages()]
        return types.ListResourcesResult(resources=[radar, *docs])

    async def list_templates(self, _: object, __: object) -> types.ListResourceTemplatesResult:
        """Answer how a tick is named: `back` 0 is the newest of its stream."""
        tick = types.ResourceTemplate(
            uri_template=f"{TICK}{{symbol}}/{{timeframe}}/{{back}}", name="a tick", mime_type=JSON
        )
        return types.ListResourceTemplatesResult(resource_templates=[tick])

    async def read_resource(
        self, _: object, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer a resource; raises MCPError."""
        uri, pages = str(params.uri), _pages()
        page = pages.get(uri.removeprefix(PAGE))
        parts = [unquote(part) for part in uri.removeprefix(TICK).split("/")]
        if page is not None:
            texts, kind = [page.read_text(encoding="utf-8")], MARKDOWN
        elif uri == RADAR:
            texts, kind = [text_for_model(await self._run("latest_radar", {}))], JSON
        elif uri.startswith(TICK) and len(parts) == 3:
            args = dict(zip(("symbol", "timeframe", "back"), parts, strict=True))
            texts = [text_for_model(await self._run(name, args)) for name in TICK_TOOLS]
            kind = JSON
        else:
            raise MCPError(types.INVALID_PARAMS, "no such resource")
        contents: list[Any] = [
            types.TextResourceContents(uri=uri, text=text, mime_type=kind) for text in texts
        ]
        return types.ReadResourceResult(contents=contents)


def _pages() -> dict[str, Path]:
    """Return the pages of the docs by name; none where the docs are not beside the program."""
    return {page.stem: page for page in sorted(DOCS.glob("*.md"))}
