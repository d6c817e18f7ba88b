"""Installed as a package, without a checkout, Torra has its pages, profiles and sample data."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from torra.config import CHECKOUT, PACKED, ROOT

LEFT_OUT = shutil.ignore_patterns(
    ".*", "tests", "docs", "benchmarks", "build", "*.egg-info", "torra_home", "__pycache__"
)
LOOK = """
from torra.config import CHECKOUT, ROOT, load_profile
from torra.dashboard import create_app
from torra.dashboard.doors.access import Access
from torra.dashboard.view.desk_values import DeskStatus, Overview
from torra.dashboard.view.desk_view import DeskView
from torra.feeds.sample import SampleFeed
from torra.jobs.process import Bounds, JobProcess
from torra.news.lexicon import score

class Bare:
    def desk(self):
        return DeskStatus(trading_state="ACTIVE", role="ACTIVE", now="2021-12-01T10:00:00Z")
    def overview(self):
        return Overview(self.desk())

access = Access.made()
client = create_app(Bare(), access=access).test_client()
bearer = {"Authorization": "Bearer " + access.tokens["read"]}
page = client.get("/", headers=bearer)
assert page.status_code == 200 and "No symbol yet" in page.get_data(as_text=True)
for name in ("torra.css", "live.js", "vendor/vendor.json"):
    assert client.get(f"/assets/{name}", buffered=True).status_code == 200, name
assert client.get("/favicon.ico", buffered=True).status_code == 200
assert load_profile("default", ROOT / "nowhere")
assert SampleFeed(ROOT / "sample_data").period()
assert score("Gold rallies") == 0.5
assert (ROOT / "mql5" / "TorraBridge.mq5").is_file()
asked = {"symbol": "XYZ", "bars": "sample", "max_cost": None}
asked |= dict.fromkeys(("from", "to", "timeframes", "arms", "profile", "name"), "")
job = JobProcess(ROOT / "nowhere", "torra.replay.job_kinds:run", asked, Bounds(patience=60.0))
assert job.wait(60.0), "it runs on"
words = job.words()
assert words, job.exit
assert words[-1].failed == "bars: the shipped sample has none of XYZ"
job.kill(1.0)
print(ROOT.relative_to(CHECKOUT))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    tree = shutil.copytree(CHECKOUT, folder / "tree", ignore=LEFT_OUT)
    build = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"
    subprocess.run(  # as pip does, which takes as long again
        [sys.executable, "-c", build, str(folder)],
        cwd=tree, check=True, timeout=240, capture_output=True, text=True,
    )  # fmt: skip
    (made,) = folder.glob("*.whl")
    return made


def test_a_checkout_uses_its_own_files() -> None:
    assert not PACKED.exists()
    assert ROOT == CHECKOUT


@pytest.mark.journey
def test_what_is_installed_is_whole(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        packed.extractall(tmp_path)
    held = [name for name in names if re.search("ffmpeg|[.](exe|so|dll|dylib)$", name)]
    assert held == [], "no program of anybody else, the encoder of films least of all"
    outside = {name.partition("/")[0] for name in names if "/" in name}
    assert {name for name in outside if not name.endswith(".dist-info")} == {"agents", "torra"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(Path("torra") / "_shipped")
    for folder in ("static", "templates", "profiles", "mql5", "sample_data"):
        here = {p.relative_to(CHECKOUT) for p in (CHECKOUT / folder).rglob("*") if p.is_file()}
        there = {Path(name).relative_to("torra/_shipped")
                 for name in names if name.startswith(f"torra/_shipped/{folder}/")}  # fmt: skip
        assert there == {path for path in here if "__pycache__" not in path.parts}, folder
