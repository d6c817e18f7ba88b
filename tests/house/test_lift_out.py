"""The overlay runs in an empty folder beside the host of examples/README.md, without Torra."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests import ROOT

OVERLAY = ("agent_framework.py", "agent_config.py", "scoring_rubric.py", "agents")

HOST = (
    (ROOT / "examples" / "README.md")
    .read_text(encoding="utf-8")
    .split("```python\n")[1]
    .split("```")[0]
)
"""The host that the examples' page shows."""


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**env, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def lifted(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in OVERLAY:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def test_the_overlay_runs_alone(tmp_path: Path) -> None:
    folder = lifted(tmp_path / "desk")
    (folder / "host.py").write_text(HOST, encoding="utf-8")
    done = run(folder, "host.py")
    assert done.returncode == 0, done.stderr
    scores, modules = json.loads(done.stdout)
    assert scores["composite_bias"]["note"].startswith("AGENT_BUDGET: 3 of 3 opinions")
    assert scores["momentum"]["score"] == 0.28
    roots = {name.split(".")[0] for name in modules}
    assert {"agents", "pydantic"} <= roots
    ours = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
    overlay = {name.removesuffix(".py") for name in OVERLAY}
    assert roots & ours == overlay
    assert not roots & {"numpy", "pandas", "flask", "sqlite_utils", "click"}


def test_a_host_with_its_own_config_and_errors_is_not_disturbed(tmp_path: Path) -> None:
    folder = lifted(tmp_path / "desk")
    for name in ("config", "errors", "clock", "contracts", "registry"):
        (folder / f"{name}.py").write_text("raise SystemExit('taken for ours')", encoding="utf-8")
    (folder / "host.py").write_text(HOST, encoding="utf-8")
    done = run(folder, "host.py")
    assert done.returncode == 0, done.stderr


def test_another_package_called_agents_is_named_plainly(tmp_path: Path) -> None:
    folder = lifted(tmp_path / "desk")
    foreign = tmp_path / "site"
    (foreign / "agents").mkdir(parents=True)
    (foreign / "agents" / "__init__.py").write_text("class Agent: ...\n", encoding="utf-8")
    path = os.pathsep.join((str(foreign), str(folder)))
    done = run(tmp_path, "-c", "import agent_framework", PYTHONPATH=path)
    assert done.returncode == 1
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError: the package `agents` found at ")
    assert "is not Torra's" in message
    assert "openai-agents" in message


def test_the_overlays_package_imports_nothing_by_itself() -> None:
    assert (ROOT / "agents" / "__init__.py").read_text(encoding="utf-8").strip() == ""
