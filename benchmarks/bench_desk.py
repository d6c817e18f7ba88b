"""What the whole program costs: start of the command, memory of a running desk, installed size."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import psutil

from benchmarks.rows import Part, Row, at_most, ready

ROOT = Path(__file__).resolve().parent.parent
TIMES = 3
PORT = 5871
SETTLED = 20.0
"""Seconds after the first page at which memory is read."""

TRIAL_SETTLED = 1.0


def measure(trial: bool) -> dict[str, float]:
    """Return medians and totals."""
    packages, megabytes = installed()
    first_page, rss = running(TRIAL_SETTLED if trial else SETTLED)
    return {
        "help_s": help_seconds(),
        "first_page_s": first_page,
        "rss_mb": rss,
        "packages": packages,
        "installed_mb": megabytes,
    }


def help_seconds() -> float:
    """Return the median time of `torra --help` as a whole process."""
    taken = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "torra.commands.command_line", "--help"],
            check=True,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def running(settled: float) -> tuple[float, float]:
    """Return seconds until the first page of a fresh desk, and its memory in MB once settled."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "torra.commands.command_line", "--home", home]
        begin = time.perf_counter()
        desk = subprocess.Popen(
            [*command, "run", "--port", str(PORT)], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        try:
            wait_for_page(Path(home), 120)
            taken = time.perf_counter() - begin
            time.sleep(settled)
            rss = psutil.Process(desk.pid).memory_info().rss / 1e6
        finally:
            desk.terminate()
            desk.wait(20)
        return taken, rss


def wait_for_page(home: Path, seconds: float) -> None:
    """Wait until the overview answers whoever has the token of a fresh home."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            token = json.loads((home / "access.json").read_text())["tokens"]["read"]
            asked = urllib.request.Request(
                f"http://127.0.0.1:{PORT}/", headers={"Authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(asked, timeout=5) as answer:
                answer.read()
                return
        except (urllib.error.URLError, OSError, ValueError):
            time.sleep(0.2)
    raise TimeoutError("no page")


def installed() -> tuple[int, float]:
    """Return number and size in MB of the pinned run-time packages that are installed."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    names = sorted(set(re.findall(r"^([A-Za-z0-9_.-]+)==", text, re.MULTILINE)))
    count, size = 0, 0
    for name in names:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        count += 1
        size += sum(path.stat().st_size for item in files if (path := Path(item.locate())).exists())
    return count, size / 1e6


PART: Final = Part(
    "desk",
    "The whole program",
    ready(measure),
    (
        Row("help_s", "`torra --help`, whole process", "{:.2f} s", at_most(0.40)),
        Row("first_page_s", "fresh home to first page", "{:.1f} s", at_most(20)),
        Row("rss_mb", "RSS of the running desk", "{:.0f} MB", at_most(200)),
        Row("packages", "installed packages", target=at_most(65)),
        Row("installed_mb", "installed size", "{:.0f} MB", at_most(350)),
    ),
    "The first page counts from the start of the process in an empty home: database, warm-up of "
    "the history, first answer. RSS is read 20 s after it, with the desk ticking. Installed are "
    "the pinned run-time packages of requirements.txt, without the extras and the test tools.",
)

if __name__ == "__main__":
    print(measure(trial=True))
