"""A client of the official SDK asks `torra mcp` over standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from tests import ROOT
from tests.tools.conftest import World, every_call
from torra.tools.executor import MODEL_BYTES
from torra.tools.registry import TOOLS

MAIN = "from torra.commands.command_line import main; main()"


def torra_mcp(home: Path, code: str = MAIN, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, "--home", str(home), "mcp"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False
    )


def ask(home: Path, questions: Callable[[Any], Awaitable[None]], mode: str = "auto") -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-c", MAIN, "--home", str(home), "mcp"],
        cwd=ROOT,
    )

    async def run() -> None:
        with anyio.fail_after(120):
            async with Client(stdio_client(command), mode=mode) as client:
                await questions(client)

    anyio.run(run)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_lists_and_asks_everything(world: World, mode: str) -> None:
    async def questions(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [*TOOLS, "ask"]
        for tool in tools[:-1]:
            spec = TOOLS[tool.name]
            assert tool.description == spec.description and tool.annotations.read_only_hint
            assert {*tool.input_schema.get("properties", {})} == {*spec.args.model_fields}
        for call in every_call():
            result = await client.call_tool(call.tool, dict(call.args))
            (content,) = result.content
            document = json.loads(content.text)
            assert len(content.text.encode()) <= MODEL_BYTES
            assert document["ok"] is not result.is_error
            assert document["ok"] or document["error"]["code"] in ("NO_STUDY", "NO_RUN")
        for tool, args in (("nothing", {}), ("trades", {"path": "/etc"}), ("money", {"x": 1})):
            assert (await client.call_tool(tool, args)).is_error
        asked = await client.call_tool("ask", {"question": "what is open?"})
        answer = json.loads(asked.content[0].text)
        assert answer["citations"] and not answer["cost_usd"] and "question" not in answer
        assert len(asked.content[0].text.encode()) <= MODEL_BYTES
        for args in ({}, {"question": 7}, {"question": "x" * 501}):
            assert (await client.call_tool("ask", args)).is_error
        prompts = (await client.list_prompts()).prompts
        names = [prompt.name for prompt in prompts]
        assert names == ["brief", "why_this_tick", "what_changed", "ask"]
        for prompt in prompts:
            given = {one.name: "BTCUSD" for one in prompt.arguments or ()}
            (message,) = (await client.get_prompt(prompt.name, given)).messages
            assert "Cite the id" in message.content.text
        resources = (await client.list_resources()).resources
        assert len(resources) == 1 + len([*(ROOT / "docs").glob("*.md")])
        tick = (await client.list_resource_templates()).resource_templates[0].uri_template
        uris = [str(one.uri) for one in resources][:3]
        for uri in (*uris, tick.format(symbol="BTCUSD", timeframe="M15", back=0)):
            (content,) = (await client.read_resource(uri)).contents
            assert content.text
        for uri in ("torra://docs/../torra", "file:///etc/passwd", "torra://docs/nothing"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    ask(world.home, questions, mode)
    sql = "SELECT run, status, code FROM tool_calls WHERE agent <> 'ask' ORDER BY number"
    rows = world.audit.rows(sql)
    assert len(rows) == len(TOOLS) + 3 + 1 + 2
    assert len({row["run"] for row in rows}) == 1
    assert [row["code"] for row in rows[18:21]] == ["UNKNOWN_TOOL", *["BAD_ARGUMENT"] * 2]


def test_nothing_but_the_protocol_is_on_standard_output(world: World) -> None:
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    done = torra_mcp(world.home, text=f"{ping}\nno json\n")
    assert done.returncode == 0
    assert all(json.loads(said)["jsonrpc"] == "2.0" for said in done.stdout.splitlines())


def test_without_the_extra_it_says_what_to_install(world: World) -> None:
    done = torra_mcp(world.home, f"import sys; sys.modules['mcp'] = None\n{MAIN}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'torra[mcp]'" in done.stderr and done.stderr.count("\n") == 1


def test_a_home_without_a_desk_is_one_clear_line(tmp_path: Path) -> None:
    done = torra_mcp(tmp_path)
    assert done.returncode == 2 and "no desk has run" in done.stderr and not done.stdout
