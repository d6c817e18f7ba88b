"""The film of a scan as a job: its storyboard, its pictures and its video, in one file.

The file is films/RUN.zip of the home, there whole or not at all; the newest few are kept. Without
the extra `chart` a film is its captions, without the extra `film` it has no video; its code says
which.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile

from instance_database import Database
from torra.clock import Clock, parse
from torra.config import load_desk
from torra.desk.looking_desk import LookingDesk, look_at
from torra.errors import ConfigError
from torra.film.storyboard import Storyboard, storyboard, webvtt
from torra.home import FILMS
from torra.jobs.kinds import JobKind, JobRequest, JobResult, Parameters, Tell
from torra.money.open_positions import spec_of
from torra.radar.result import run_of
from torra.store import radar_runs
from torra.whole_files import write_whole
from torra.words.badge import capital
from torra.words.radar import CODES

KEEP: Final = 10
"""Films that are kept, those made last."""

BARS: Final = 400
"""Bars that a chart is drawn of: its averages need those before the ones that are drawn."""

BOARD, CAPTIONS, VIDEO = "film.json", "captions.vtt", "film.webm"
"""Names in a film's file; a picture is N.png, from 1 on."""


NUMBER: Final = re.compile("[0-9]{1,15}")

DIGITS: Final = 5
"""Decimals of a price where the terms of its symbol are not known."""


def film(home: Path, database: Database, clock: Clock, run: int) -> Storyboard:
    """Return the storyboard of a run, that of its film where one was made; raises ConfigError."""
    with suppress(ValueError):  # none was made, or one by another version
        return Storyboard.model_validate_json(part(home, run, BOARD) or b"")
    return _storyboard(home, database, clock, run)


def part(home: Path, run: int, name: str) -> bytes | None:
    """Return a part of a film by its name; None where there is no such part or film."""
    try:
        with ZipFile(home / FILMS / f"{run}.zip") as file:
            return file.read(name)
    except (OSError, KeyError, BadZipFile):
        return None


def check(home: Path, asked: Parameters) -> JobRequest:
    """Return a request for a film; raises ConfigError for a run that there is not."""
    run = str(asked.get("run"))
    if len(asked) != 1 or not NUMBER.fullmatch(run):
        raise ConfigError("run: name the number of a scan, and nothing else")
    desk = look_at(home)
    with closing(desk.database):
        _storyboard(home, desk.database, desk.clock, int(run))
    return JobRequest({"run": run}, {"run": run}, f"the film of scan {run}")


def make(home: Path, parameters: Parameters, tell: Tell) -> JobResult:
    """Draw and encode a film, and keep the newest; raises TorraError and OSError."""
    from torra.film import video  # noqa: PLC0415  a desk that knows the kind encodes nothing

    run = int(str(parameters["run"]))
    desk = look_at(home)
    with closing(desk.database):
        board = _storyboard(home, desk.database, desk.clock, run)
        pictures = _pictures(desk, board, tell)
    files = {f"{n}.png": picture for n, picture in enumerate(pictures, 1)}
    code = "" if pictures else "CHART_MISSING"
    if pictures:
        try:
            tell("encodes the video")
            files[VIDEO] = video.encode(pictures)
        except ConfigError:
            code = "ENCODER_MISSING"
    files[CAPTIONS] = webvtt(board).encode()
    files[BOARD] = board.model_copy(update={"code": code}).model_dump_json().encode()
    _store(home / FILMS, run, files)
    lacks = f" {capital(CODES['film'][code].meaning)}." if code else ""
    return JobResult(f"{len(board.scenes)} scenes, {board.seconds} s.{lacks}", str(run))


def _storyboard(home: Path, database: Database, clock: Clock, run: int) -> Storyboard:
    row = radar_runs.run(database, run)
    scan = run_of(row["document"]) if row else None
    if row is None or scan is None:
        raise ConfigError(f"run: there is no scan {run}; the page Radar shows the newest")
    before = radar_runs.run_before(database, row)
    broker = any(one.bridge != "paper" for one in load_desk(home).instances)
    return storyboard(
        run,
        scan,
        run_of(before["document"]) if before else None,
        "DEMO" if clock.accelerated else "broker" if broker else "paper",
    )


def _pictures(desk: LookingDesk, board: Storyboard, tell: Tell) -> list[bytes]:
    """Return the picture of each scene, none without matplotlib."""
    from torra.film import pictures  # noqa: PLC0415

    drawn = []
    for n, scene in enumerate(board.scenes):
        tell("draws the scenes", n, len(board.scenes))
        name, _, timeframe = scene.stream.partition("|")
        setup = desk.setups.get(name)
        spec = spec_of(setup.profile, setup.instance.symbol) if setup else None
        bars = desk.database.load_bars(
            name, timeframe or "H1", as_of=parse(scene.as_of or board.as_of), limit=BARS
        )
        try:
            drawn.append(pictures.draw(scene, bars, spec.digits if spec else DIGITS))
        except ConfigError:
            return []
    return drawn


def _store(folder: Path, run: int, files: Mapping[str, bytes]) -> None:
    """Write a film, and let go of the films that were made before the newest ones."""
    whole = io.BytesIO()
    with ZipFile(whole, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    folder.mkdir(exist_ok=True)
    write_whole(folder / f"{run}.zip", whole.getvalue())
    films = sorted(folder.glob("*.zip"), key=lambda path: path.stat().st_mtime_ns)
    for path in films[:-KEEP]:
        path.unlink(missing_ok=True)


FILM: Final = JobKind("film", "Film", check, f"{__name__}:make")
