"""Another `agents` beside Torra is told in one line, before anything is imported from it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import ROOT
from torra import own_names
from torra.errors import ConfigError
from torra.own_names import NAMES, check_names

FOREIGN = "raise SystemExit('imported')\n"


def test_they_are_ours_here_and_all_that_is_installed() -> None:
    check_names()
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    roots = {name for name in told["packages"] if "." not in name}
    assert {*NAMES} == {*told["py-modules"], *roots} - {"torra"}


@pytest.fixture
def foreign(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text(FOREIGN, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}


def test_a_command_tells_it_in_one_line(foreign: dict[str, str], tmp_path: Path) -> None:
    code = "from torra.commands.command_line import main; main(prog_name='torra')"
    done = subprocess.run(
        [sys.executable, "-c", code, "--home", str(tmp_path / "home"), "doctor"],
        cwd=tmp_path, env=foreign, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"torra: the package `agents` at {tmp_path / 'agents'} is not Torra's")
    assert "openai-agents" in line and "environment of its own" in line


def test_pages_in_a_host_tell_it_too(foreign: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from torra.dashboard import TorraOverlay"],
        cwd=tmp_path, env=foreign, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("torra.errors.ConfigError: the package `agents` at "), last


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_elsewhere_or_nowhere_is_told(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = own_names._place
    for found in (Path("/elsewhere") / name, None):
        with monkeypatch.context() as patch:
            patch.setattr(
                own_names, "_place", lambda one, found=found: found if one == name else place(one)
            )
            with pytest.raises(ConfigError, match=f"`{name}`.* is not Torra's"):
                check_names()


def test_a_package_that_was_written_over_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both in one folder of packages: the later one's `__init__.py` lies in Torra's place."""
    for name in NAMES[1:]:
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "agents").mkdir()
    monkeypatch.setattr(own_names, "ROOT", tmp_path)
    monkeypatch.setattr(
        own_names, "_place", lambda name: tmp_path / (name if name == "agents" else f"{name}.py")
    )
    (tmp_path / "agents" / "__init__.py").touch()
    check_names()
    (tmp_path / "agents" / "__init__.py").write_text(FOREIGN, encoding="utf-8")
    with pytest.raises(ConfigError, match="install Torra again"):
        check_names()
