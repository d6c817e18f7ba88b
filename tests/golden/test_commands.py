"""The output, exit code and changed files of every command are those of the goldens."""

from __future__ import annotations

import json
import re

from tests.golden import parts
from tests.golden.commands import entry, ways

TYPED = re.compile(r"^\$ (?:\w+=\S* |process )*torra (.*)$")


def test_every_command_stands_in_the_goldens() -> None:
    """Each one did its work once, and each that knows --json printed a document."""
    texts = {**parts.committed("commands"), **parts.committed("commands_days")}
    del texts[parts.MADE_WITH]
    done, documents = set[str](), set[str]()
    for name, text in texts.items():
        if name.endswith(".json"):
            documents |= {each["command"].partition("torra ")[2] for each in json.loads(text)}
            continue
        words = ""
        for line in text.splitlines():
            if typed := TYPED.match(line):
                words = typed[1]
            elif line in ("exit 0", "exit 1"):
                done.add(words)
    for way, command in ways(entry()):
        name = " ".join(way)
        assert any(f"{words} ".startswith(f"{name} ") for words in done), name
        if any("--json" in one.opts for one in command.params):
            assert any(f"{words} ".startswith(f"{name} ") for words in documents), f"{name} --json"
