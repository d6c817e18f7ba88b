"""The README shows what the program says."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from torra.commands.command_line import main
from torra.config import ROOT
from torra.desk.write_off import MISSED, NO_BAR
from torra.feeds.door import BarsRefused

README = (ROOT / "README.md").read_text(encoding="utf-8")

LINK = r"\]\(([^)#:]+)(?:#[\w-]*)?\)"
"""The file that a link leads to, where it is one of ours."""


def plain(text: str) -> list[str]:
    """Lines without what changes from run to run."""
    return [re.sub(r"\d+ ms", "N ms", line).rstrip() for line in text.strip().splitlines()]


def test_the_tick_in_the_readme_is_real(tmp_path: Path) -> None:
    block = next(part for part in README.split("```") if "$ .venv/bin/torra tick" in part)
    command, shown = block.strip().split("\n", 1)
    words = command.removeprefix("$ .venv/bin/torra ").split()
    result = CliRunner().invoke(main, ["--home", str(tmp_path), *words])
    assert result.exit_code == 0, result.output
    assert plain(result.stdout) == plain(shown)


def test_every_file_that_the_readme_names_is_there() -> None:
    for link in re.findall(LINK, README):
        assert (ROOT / link).exists(), link
    for name in re.findall(r"`([\w/]+\.py|[\w/]+/)`", README):
        assert (ROOT / name).exists() or name == "torra_home/", name


def test_every_page_is_listed_and_every_command_has_a_row() -> None:
    pages = ROOT / "docs"
    listed = re.findall(LINK, (pages / "README.md").read_text(encoding="utf-8"))
    assert {page.name for page in pages.glob("*.md")} - {"README.md"} <= set(listed)
    rows = (pages / "commands.md").read_text(encoding="utf-8")
    for name in main.commands:
        assert f"`torra {name}" in rows, name


def test_every_reason_of_a_skip_is_explained() -> None:
    page = (ROOT / "docs" / "tick.md").read_text(encoding="utf-8")
    for reason in (*(item.value for item in BarsRefused), MISSED[0], NO_BAR[0], "error"):
        assert f"`{reason}`" in page, reason


def test_the_tests_have_one_import_root() -> None:
    names = {path.stem for path in (ROOT / "tests").rglob("*.py")} - {"__init__"}
    own = re.compile(rf"^\s*(?:from|import) ({'|'.join(sorted(names))})\b", re.MULTILINE)
    for path in (ROOT / "tests").rglob("*.py"):
        assert not own.search(path.read_text(encoding="utf-8")), path


def test_no_table_is_broken_by_an_empty_line() -> None:
    """A row that begins a table has its line of dashes below."""
    for file in sorted((ROOT / "docs").glob("*.md")):
        lines = ["", *file.read_text("utf-8").splitlines(), ""]
        fenced = False
        for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
            fenced ^= line.lstrip().startswith("```")
            if line.startswith("| ") and not before.startswith("|") and not fenced:
                assert after.startswith(("|--", "| --")), (file.name, line[:60])
