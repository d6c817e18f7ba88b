"""The page of a film: the scenes of one scan with their captions, and the video where there is one.

The storyboard is read from the stored run, so the page is there before a film is made; a job of the
desk draws and encodes it (torra.film.job). Texts of a scene are the run's and are cleaned.
"""

from __future__ import annotations

import io
from typing import Final

from flask import abort, jsonify, send_file, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Api, Command, Route
from torra.dashboard.screens import jobs
from torra.dashboard.trade.orders import person
from torra.dashboard.view import commanding
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.rendering import backing, desk_page
from torra.errors import ConfigError
from torra.film import job as film_job
from torra.film.storyboard import SECONDS, Storyboard
from torra.words.radar import CODES

PER_MINUTE: Final = 10

MIMES: Final = {"png": "image/png", "vtt": "text/vtt", "webm": "video/webm"}
"""What a visitor gets of a film, by the end of its name."""


def film(run: str) -> str:
    """Show the film of a scan, scene by scene."""
    return desk_page(
        "film.html",
        board=_board(run),
        seconds=SECONDS,
        words=CODES["film"],
        jobs=jobs.shown([one for one in jobs.going_on() if one["kind"] == film_job.FILM.name]),
    )


def api_film(run: str) -> ResponseReturnValue:
    """Answer the storyboard of a scan, and what its film lacks."""
    return jsonify(_board(run).model_dump(mode="json"))


def film_part(run: str, name: str) -> ResponseReturnValue:
    """Give a picture, the captions or the video of a film, whole or by ranges of bytes."""
    kind = MIMES.get(name.rpartition(".")[2]) or abort(404)
    data = film_job.part(backing().home, jobs.number_in(run), name)
    return abort(404) if data is None else send_file(io.BytesIO(data), kind, conditional=True)


def make_film(run: str) -> ResponseReturnValue:
    """Make the film of a scan; the same request is one job while it goes on."""
    from torra.jobs import asking  # noqa: PLC0415  a page alone must not load the desk

    def make() -> CommandOutcome:
        known, asked = backing(), {**commanding.words(), "run": run}
        done = asking.ask(known.database, known.home, film_job.FILM, asked, person())
        return jobs.queued(done, works=known.database.desk_runs())

    return command("job", film_job.FILM.name, make, back=url_for(".film", run=run))


def _board(run: str) -> Storyboard:
    """Return the storyboard of the run in an address; 404 for none."""
    known, number = backing(), jobs.number_in(run)
    try:
        return film_job.film(known.home, known.database, known.desk.clock, number)
    except ConfigError:
        abort(404)


ROUTES = (
    Route("/film/<run>", "film", film),
    Route("/film/<run>/<name>", "film_part", film_part, reply="picture"),
    Api("/api/v1/film/<run>", "api_film", api_film),
    Command("/api/v1/film/<run>", "make_film", make_film, scope="approve", per_minute=PER_MINUTE),
)
