"""A film where people and programs meet it: asked for, made whole or not at all, shown, let go."""

from __future__ import annotations

import io
import os
import random
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests import ROOT
from tests.conftest import Scale
from tests.doubles.visitors import bearer
from tests.tries import until
from tests.worlds import price_series
from tests.worlds.desk_pages import Pages
from tests.worlds.films import open_studio
from tests.worlds.jobs import done_here
from torra.committee.job import KINDS
from torra.dashboard.answers import adapters
from torra.errors import ConfigError, TorraError
from torra.film import job as film_job
from torra.film import pictures, video
from torra.film.job import FILM
from torra.film.storyboard import Scene
from torra.jobs.process import Bounds, JobProcess
from torra.store import jobs as job_table

API = "/api/v1/film/2"
JSON = {"Accept": "application/json"}

try:
    import imageio_ffmpeg
except ImportError:
    imageio_ffmpeg = None

needs_encoder = pytest.mark.skipif(imageio_ffmpeg is None, reason="needs the extra film")


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    found = open_studio(tmp_path / "home")
    yield found
    found.desk.close()


@pytest.fixture
def stills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a small grey picture in place of each scene."""
    file = io.BytesIO()
    Image.new("RGB", (64, 36), "grey").save(file, "png")
    monkeypatch.setattr(pictures, "draw", lambda *_: file.getvalue())


def post(pages: Pages, address: str, status: int, **asked: str) -> Any:
    answer = pages.client().post(address, json=asked, headers=JSON)
    assert answer.status_code == status, answer.text
    return answer.json


def film(pages: Pages, run: int = 2) -> str:
    """Ask for a film as a program does, make it, and return what its job says."""
    number = post(pages, f"/api/v1/film/{run}", 202)["job"]
    return done_here(pages.database, pages.backing.home, FILM, number)


def answered(pages: Pages) -> Any:
    """Return what the API answers, held to its model."""
    found = pages.json(API)
    adapters()["api_film"].validate_python(found, extra="forbid", strict=False)
    return found


@needs_encoder
@pytest.mark.usefixtures("stills")
def test_a_film_is_asked_for_made_and_played(pages: Pages) -> None:
    assert KINDS["film"] is FILM and not FILM.light
    assert answered(pages)["code"] == "NOT_MADE"
    page = pages.text("/film/2")
    assert "<img" not in page and "<video" not in page and "Make the film" in page
    pages.text("/film/2/film.webm", 404)
    job = post(pages, API, 202)["job"]
    assert post(pages, API, 202)["job"] == job, "the same request is one job"
    says = done_here(pages.database, pages.backing.home, FILM, job)
    assert re.fullmatch(r"\d+ scenes, \d+ s\.", says)
    found = answered(pages)
    assert found["code"] == "" and found["scenes"][2]["stream"] == "BTCUSD|M15"
    page, client = pages.text("/film/2"), pages.client()
    assert page.count("<img") == len(found["scenes"]) and "autoplay" not in page
    assert "A&lt;b&gt; H1" in page and "A<b>" not in page
    for name, kind in (("1.png", "image/png"), ("film.webm", "video/webm"),
                       ("captions.vtt", "text/vtt")):  # fmt: skip
        answer = client.get(f"/film/2/{name}")
        assert answer.status_code == 200 and answer.mimetype == kind, name
        ranged = client.get(f"/film/2/{name}", headers={"Range": "bytes=5-14"})
        assert (ranged.status_code, ranged.data) == (206, answer.data[5:15])
    pages.text("/film/2/film.json", 404), pages.text("/film/2/99.png", 404)
    assert "/film/2" in pages.text("/radar") and 'href="/film/2"' in pages.text("/jobs/1")


def test_what_is_no_film_is_not_there(pages: Pages) -> None:
    for address in ("/film/77", "/film/x", "/api/v1/film/77", "/film/2/..%2Ftorra.db",
                    "/film/77/1.png", "/film/x/1.png"):  # fmt: skip
        pages.text(address, 404)
    assert "there is no scan 77" in post(pages, "/api/v1/film/77", 409)["reason"]
    assert "nothing else" in post(pages, API, 409, seconds="9")["reason"]
    answer = pages.app.test_client().post(API, json={}, headers=bearer("read"))
    assert answer.status_code == 403 and job_table.jobs(pages.database) == []
    (pages.backing.home / "films").mkdir()
    (pages.backing.home / "films" / "2.zip").write_bytes(b"PK")
    assert answered(pages)["code"] == "NOT_MADE", "a damaged file is none"


@pytest.mark.parametrize(
    ("package", "code", "draw"),
    [
        ("imageio_ffmpeg", "ENCODER_MISSING", lambda *_: b"a picture"),
        ("matplotlib.figure", "CHART_MISSING", pictures.draw),
    ],
)
def test_without_an_extra_the_page_plays_and_names_the_remedy(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, package: str, code: str, draw: Any
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(pictures, "draw", draw)
    says = film(pages)
    assert answered(pages)["code"] == code and "pip install 'torra[film]'" in says
    page = pages.text("/film/2")
    assert code in page and "pip install" in page and "<video" not in page
    assert page.count("<figure") == len(answered(pages)["scenes"])
    assert (page.count("<img") == page.count("<figure")) == (code == "ENCODER_MISSING")
    assert "WEBVTT" in pages.text("/film/2/captions.vtt")


def test_the_ten_films_that_were_made_last_are_kept(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    folder = pages.backing.home / "films"
    folder.mkdir()
    for number in range(100, 112):
        (folder / f"{number}.zip").write_bytes(b"")
        os.utime(folder / f"{number}.zip", (number, number))
    film(pages)
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"2.zip", *(f"{number}.zip" for number in range(103, 112))}


# --- the video ------------------------------------------------------------------------------------


def scenes(count: int) -> list[bytes]:
    """Return pictures of which every other one has a chart."""
    title = "GOLD H1: Would open"
    one = Scene(title=title, captions=("It would open. " * 9,), rows=(("R", "1"),), stream="A|H1")
    return [
        pictures.draw(one, price_series.walk(300 * (number % 2), number), 2)
        for number in range(count)
    ]


MEASURED = """
import resource, sys
from pathlib import Path
from torra.film import video
folder = Path(sys.argv[1])
film = video.encode([path.read_bytes() for path in sorted(folder.glob("*.png"))])
(folder / "film.webm").write_bytes(film)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""


@needs_encoder
@pytest.mark.journey
def test_twenty_seconds_cost_little_and_are_decoded_again(tmp_path: Path) -> None:
    """8 s of processor and 400 MB in the child, 240 frames of 1280 x 720."""
    for number, picture in enumerate(scenes(5)):
        (tmp_path / f"{number}.png").write_bytes(picture)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds, most = map(float, done.stdout.split())
    assert seconds <= 8.0 and most <= 400 * 10**6, done.stdout
    read = subprocess.run(
        [video.encoder(), "-i", str(tmp_path / "film.webm"), "-f", "null", "-"],
        capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    assert "Video: vp9" in read and "1280x720" in read and "12 fps" in read and "Audio" not in read
    assert abs(int(re.findall(r"frame=\s*(\d+)", read)[-1]) - 240) <= 1


@needs_encoder
def test_an_encoder_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TorraError, match="the encoder ended with code"):
        video.encode([b"no picture"])
    monkeypatch.setattr(video, "MEMORY_BYTES", 2**20)
    drawn = scenes(2)
    assert {Image.open(io.BytesIO(one)).size for one in drawn} == {(1280, 720)}
    with pytest.raises(TorraError, match="the encoder ended with code"):
        video.encode(drawn)
    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        video.encoder()


@needs_encoder
@pytest.mark.journey
@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_a_job_that_is_killed_while_it_encodes_leaves_nothing(
    pages: Pages, scaled: Scale, tmp_path: Path
) -> None:
    """In 40 kills at night, at any moment; then it is made whole."""
    chance, home = random.Random(69), pages.backing.home
    for _ in range(scaled(40, least=2)):
        job = JobProcess(home, FILM.work, {"run": "2"}, Bounds(patience=60.0))
        stages: list[str | None] = []
        while "encodes the video" not in stages:
            assert not job.ended
            stages += [one.stage for one in job.words()]
        time.sleep(chance.uniform(0.0, 0.6))
        os.kill(job.number, signal.SIGKILL)
        job.kill(5.0)
        until(partial(no_process_of, job.number), 20.0, "the encoder ends with its job")
        assert not [*home.glob("films/*")]
    film_job.make(home, {"run": "2"}, lambda *_: None)
    assert answered(pages)["code"] == ""


def no_process_of(session: int) -> bool:
    """Return whether no process runs in the session of a job's process: its encoder is one."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, number = path.read_text().rpartition(")")[2].split()[:4]
            if int(number) == session and state not in "ZX":
                return False
    return True


def test_what_is_installed_holds_no_encoder() -> None:
    """Its package says BSD and holds a program under the GPL; docs.dependencies reads the others'
    licences, tests/house looks into the wheel."""
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "flask==" in lock and not re.search("imageio|ffmpeg", lock)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = {name for name, those in extras.items() if any("imageio" in one for one in those)}
    assert named == {"film", "dev"} and "imageio" not in " ".join(project["dependencies"])


def test_no_picture_is_drawn_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match="matplotlib"):
        scenes(1)
