"""The screens Replays and scorecards: the result files in the home's folder, as pages.

A file becomes a page with its tables, sentences and plots, and a report for paper.
torra.exhibits.documents says what a file holds and which files are refused; torra.exhibits.pages
arranges the page. Every word of a file is a stranger's and is cleaned. Files are only read. The
form starts a replay as a job, and the jobs that go on stand beside it (`screens.jobs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from flask import Response, abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.clock import iso
from torra.config import ROOT
from torra.dashboard.doors.routes import Api, Command, Fields, Route
from torra.dashboard.screens import jobs
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.rendering import backing, desk_page
from torra.errors import ConfigError
from torra.evaluation.wording import arm_called
from torra.exhibits import figures, pages, trade_file
from torra.exhibits.documents import (
    LARGEST,
    MOST,
    BrokenFile,
    Document,
    Head,
    ReplayShelf,
    allowed,
)
from torra.exhibits.trade_file import ArmTradeRow, trade_lines
from torra.home import UPLOADS
from torra.market.broker_clock import USUAL
from torra.replay import uploads

LONGEST_NAME: Final = 200
PARTS_PER_MINUTE: Final = 240
"""Parts of files that one visitor may send in a minute: two of the largest files."""

AT_ONCE: Final = 50
"""Trades of a page's list."""

# by home: the apps of one process may show several
_SHELVES: dict[Path, ReplayShelf] = {}


def shelf() -> ReplayShelf:
    """Return the shelf of the home that answers this request."""
    home = backing().home
    return _SHELVES.setdefault(home, ReplayShelf(home))


def replays() -> str:
    """Show every replay and scorecard of the home, and the form that starts a replay."""
    from torra.replay.job_kinds import SAMPLE  # noqa: PLC0415  a page alone must not load it
    from torra.replay.shards.history import STORE  # noqa: PLC0415

    home = backing().home
    symbols = dict.fromkeys(item.symbol for item in backing().settings.instances)
    rows, older = shelf().listed()
    stems = {path.stem for folder in (home, ROOT) for path in folder.glob("profiles/*.json")}
    return desk_page(
        "replays.html",
        jobs=jobs.shown(jobs.going_on()),
        symbols=[figures.sanitize(symbol, 40) for symbol in symbols],
        bars={STORE: "those that this desk has stored", SAMPLE: "the shipped sample"}
        | {name: f"{name} of the folder uploads" for name in uploads.names(home)},
        profiles=sorted(filter(allowed, stems)),
        uploads=str(home / UPLOADS),
        largest_upload=uploads.MOST_BYTES >> 20,
        clocks=USUAL,
        rows=rows,
        kinds=pages.KINDS,
        settings=pages.SETTINGS,
        moment=pages.moment,
        older=older,
        folder=str(shelf().folder),
        largest=LARGEST // 1_000_000,
        most=MOST,
    )


def api_replays() -> ResponseReturnValue:
    """Answer the list of replays and scorecards, broken files with the reason."""
    rows, older = shelf().listed()
    return jsonify(replays=[_head(item) for item in rows], left_out=older)


def replay(name: str) -> str:
    """Show one replay or scorecard: its tables and its lines."""
    document = shelf().document(name) or abort(404)
    if isinstance(document, BrokenFile):
        problem = figures.sanitize(document.problem, 300)
        return desk_page("replay.html", name=name, report={"problem": problem}, has_trades=False)
    trades = trade_lines(shelf().trades(name) or "")
    return desk_page(
        "replay.html",
        name=name,
        report=pages.arranged(document),
        has_trades=trades is not None,
        listed=_listed(document, trades or []),
    )


def _listed(document: Document, trades: Sequence[ArmTradeRow]) -> dict[str, Any] | None:
    """Return the trades of one arm of a replay, a page of them; None where it has none."""
    arms = pages.arms_of(document, trades)
    if not arms:
        return None
    wanted = request.args.get("arm", "")
    arm = wanted if wanted in arms else pages.first_arm(arms)
    begin = _place(request.args.get("place", ""))
    table = pages.trades_shown(document, trades, arm, begin, AT_ONCE)
    return {
        "arms": {one: figures.sanitize(arm_called(one, document.arms), 80) for one in arms},
        "arm": arm,
        "begin": begin,
        "table": table | {"left": 0},
        "older": begin + AT_ONCE if table["left"] else None,
        "newer": max(0, begin - AT_ONCE) if begin else None,
    }


def _place(text: str) -> int:
    """Return from which trade on a list begins; 0 for what is no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0


def replay_report(name: str) -> Response:
    """Answer one replay or scorecard as a report to print or to keep: one file, complete."""
    document = shelf().document(name) or abort(404)
    if isinstance(document, BrokenFile):
        # nothing of a broken file is shown, so there is nothing to print
        abort(404)
    trades = trade_lines(shelf().trades(name) or "") or ()
    answer = Response(pages.html(document, trades), mimetype="text/html")
    answer.headers["Content-Security-Policy"] = pages.policy()
    answer.headers["Content-Disposition"] = f'inline; filename="{name}.html"'
    return answer


def replay_trades(name: str) -> Response:
    """Give the trades of one replay as a CSV file, every arm's."""
    # a stranger's file as well: rows that are no trades are not given away
    text = trade_file.clean(shelf().trades(name) or "")
    answer = Response(text or abort(404), mimetype="text/csv")
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}-trades.csv"'
    return answer


def api_replay(name: str) -> ResponseReturnValue:
    """Answer one replay or scorecard as its file holds it."""
    document = shelf().document(name) or abort(404)
    if isinstance(document, BrokenFile):
        return jsonify(_head(document)), 422
    return jsonify(document.model_dump(mode="json", by_alias=True))


# --- files that are handed in ---------------------------------------------------------------------


def upload() -> ResponseReturnValue:
    """Take a file of bars into the folder uploads, whole or in parts; only bars are kept."""
    home, form, back = backing().home, request.form, url_for(".replays")
    begun, file = form.get("begun", ""), request.files.get("file")
    name = (form.get("name") or (file.filename if file else "") or "")[:LONGEST_NAME]

    def add() -> str:
        word = begun or uploads.begin(home)
        uploads.add(home, word, file.stream.read() if file else b"")
        return word

    def run() -> CommandOutcome:
        if form.get("more") == "1":
            return CommandOutcome("accepted", "", more={"begun": add()}, on_record=True)
        if not file:
            raise ConfigError("choose a file of bars first")
        done = uploads.end(home, add(), name)
        stored: dict[str, JsonValue] = {"name": done.name}
        return CommandOutcome("done", done.says, after=stored, more=stored)

    return command("upload", figures.sanitize(name, 80), run, back=back)


def _head(item: Head) -> dict[str, JsonValue]:
    empty = dict.fromkeys(("problem", "kind", "title", "summary", "created_at"))
    if isinstance(item, BrokenFile):
        return {**empty, **item._asdict(), "warnings": 0, "settings": {}}
    return empty | {
        **item.model_dump(include={"name", "kind", "title", "summary", "settings"}),
        "created_at": iso(item.created_at.replace(microsecond=0)),
        "warnings": len(item.warnings),
    }


TRADES: Final[Fields] = {
    "arm": {"type": "string", "description": "whose trades are listed; default: the first desk's"},
    "place": {"type": "integer", "description": "from which trade on, newest first; default: 0"},
}
UPLOAD: Final[Fields] = {
    "file": {
        "type": "string",
        "format": "binary",
        "description": "a file of bars (.csv, .txt, .zip or .csv.gz), or a part of one, 200,000 "
        "bytes at most",
    },
    "name": {"type": "string", "description": "what it is called; default: the file's own name"},
    "more": {"type": "string", "enum": ["1"], "description": "further parts follow"},
    "begun": {"type": "string", "description": "from the second part on: what the first answered"},
}

ROUTES = (
    Route("/replays", "replays", replays),
    Route("/replays/<name>", "replay", replay, query=TRADES),
    Route("/replays/<name>/report.html", "replay_report", replay_report, per_minute=60),
    Route("/replays/<name>/trades.csv", "replay_trades", replay_trades, reply="csv", per_minute=60),
    Command(
        "/api/v1/uploads",
        "upload",
        upload,
        scope="approve",
        per_minute=PARTS_PER_MINUTE,
        body=UPLOAD,
        files=True,
    ),
    Api("/api/v1/replays", "api_replays", api_replays),
    Api("/api/v1/replays/<name>", "api_replay", api_replay),
)
