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
from torra.dashboard.view.commanding import CommandOutcome, answer, command
from torra.dashboard.view.rendering import backing, desk_page
from torra.errors import ConfigError
from torra.evaluation.wording import arm_called
from torra.exhibits import figures, pages, trade_file
from torra.exhibits.documents import LARGEST, MOST, Document, Listed, ReplayShelf, allowed
from torra.exhibits.trade_file import ArmTradeRow, trade_lines
from torra.home import UPLOADS
from torra.market.broker_clock import USUAL
from torra.replay import uploads

DESKS: Final = (
    ("l1,budget", "the bars alone and the budget desk (four agents)"),
    ("l1,full", "the bars alone and the full desk (eight agents)"),
    ("l1,firm", "the bars alone and the firm (eight agents and a trader)"),
    ("l1,swarm", "the bars alone and the swarm (a reader, four experts, a judge)"),
    ("l1,budget,full,placebo", "L1, both desks, and answers that mean nothing (placebo)"),
    ("l1", "the bars alone: no agents"),
)
"""Who may trade in a replay of the form, as its arms and in words."""

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
    found, older = shelf().listed()
    return desk_page(
        "replays.html",
        live=True,
        jobs=jobs.shown(jobs.going_on()),
        start=_form(),
        rows=found,
        kinds=pages.KINDS,
        moment=pages.moment,
        over=_over,
        under=_under,
        older=older,
        folder=str(shelf().folder),
        largest=LARGEST // 1_000_000,
        most=MOST,
    )


def api_replays() -> ResponseReturnValue:
    """Answer the list of replays and scorecards, broken files with the reason."""
    found, older = shelf().listed()
    return jsonify(
        replays=[_told(item) for item in found],
        left_out=older,
    )


def replay(name: str) -> str:
    """Show one replay or scorecard: its tables and its lines."""
    found = shelf().document(name) or abort(404)
    if isinstance(found, Listed):
        one, paper, trades = {"problem": figures.sanitize(found.problem, 300)}, "", None
    else:
        trades = trade_lines(shelf().trades(name) or "")
        one, paper = pages.arranged(found), url_for(".replay_report", name=name)
    return desk_page(
        "replay.html",
        name=name,
        one=one,
        raw=url_for(".api_replay", name=name),
        paper=paper,
        trades=url_for(".replay_trades", name=name) if trades is not None else "",
        listed=None if isinstance(found, Listed) else _listed(found, trades or []),
    )


def _listed(found: Document, trades: Sequence[ArmTradeRow]) -> dict[str, Any] | None:
    """Return the trades of one arm of a replay, a page of them; None where it has none."""
    arms = pages.arms_of(found, trades)
    if not arms:
        return None
    wanted = request.args.get("arm", "")
    arm = wanted if wanted in arms else pages.first_arm(arms)
    begin = _place(request.args.get("place", ""))
    table = pages.trades_shown(found, trades, arm, begin, AT_ONCE)
    last = begin + len(table["rows"])
    return {
        "arms": {one: figures.sanitize(arm_called(one, found.arms), 80) for one in arms},
        "arm": arm,
        "table": {**table, "left": 0},
        "told": f"{min(begin + 1, last):,} to {last:,} of {table['count']:,}, newest first.",
        "older": begin + AT_ONCE if table["left"] else None,
        "newer": max(0, begin - AT_ONCE) if begin else None,
    }


def _place(text: str) -> int:
    """Return from which trade on a list begins; 0 for what is no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0


def replay_report(name: str) -> Response:
    """Answer one replay or scorecard as a report to print or to keep: one file, complete."""
    found = shelf().document(name) or abort(404)
    if isinstance(found, Listed):
        # nothing of a broken file is shown, so there is nothing to print
        abort(404)
    trades = trade_lines(shelf().trades(name) or "") or ()
    answer = Response(pages.html(found, trades), mimetype="text/html")
    answer.headers["Content-Security-Policy"] = pages.policy()
    answer.headers["Content-Disposition"] = f'inline; filename="{name}.html"'
    return answer


def replay_trades(name: str) -> Response:
    """Give the trades of one replay as a CSV file, every arm's."""
    told = shelf().trades(name)
    # a stranger's file as well: rows that are no trades are not given away
    text = None if told is None else trade_file.clean(told)
    answer = Response(text or abort(404), mimetype="text/csv")
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}-trades.csv"'
    return answer


def api_replay(name: str) -> ResponseReturnValue:
    """Answer one replay or scorecard as its file holds it."""
    found = shelf().document(name) or abort(404)
    if isinstance(found, Listed):
        return jsonify(_told(found)), 422
    return jsonify(found.model_dump(mode="json", by_alias=True))


# --- files that are handed in ---------------------------------------------------------------------


def upload() -> ResponseReturnValue:
    """Take a file of bars into the folder uploads, whole or in parts; only bars are kept."""
    home, told = backing().home, request.form
    begun, sent = told.get("begun", ""), request.files.get("file")
    called = (told.get("name") or (sent.filename if sent else "") or "")[:LONGEST_NAME]
    shown = figures.sanitize(called, 80)
    if told.get("more") == "1":
        return _part(home, begun, sent.stream.read() if sent else b"", shown)

    def run() -> CommandOutcome:
        if sent is None or not sent.filename:
            raise ConfigError("choose a file of bars first")
        word = begun or uploads.begin(home)
        uploads.add(home, word, sent.stream.read())
        done = uploads.end(home, word, called)
        kept: dict[str, JsonValue] = {"name": done.name}
        return CommandOutcome("done", done.says, after=kept, more=kept)

    return command("upload", shown, run, back=url_for(".replays"))


def _part(home: Path, begun: str, content: bytes, shown: str) -> ResponseReturnValue:
    """Keep a part of a file; what goes wrong is on record, a part that is taken is not."""
    back = url_for(".replays")
    try:
        word = begun or uploads.begin(home)
        uploads.add(home, word, content)
    except ConfigError as error:
        told = str(error)
        return command("upload", shown, lambda: CommandOutcome("failed", told), back=back)
    return answer(CommandOutcome("accepted", "", more={"begun": word}, on_record=True), back)


# --- arranging ------------------------------------------------------------------------------------


def _form() -> dict[str, Any]:
    """Return what the form that starts a replay offers."""
    from torra.replay.job_kinds import SAMPLE  # noqa: PLC0415  a page alone must not load it
    from torra.replay.shards.history import STORE  # noqa: PLC0415

    known = backing()
    symbols = dict.fromkeys(item.symbol for item in known.settings.instances)
    named = [(name, f"{name} of the folder uploads") for name in uploads.names(known.home)]
    places = (known.home / "profiles", ROOT / "profiles")
    profiles = sorted({path.stem for place in places for path in place.glob("*.json")})
    return {
        "symbols": [figures.sanitize(name, 40) for name in symbols],
        "bars": [
            (STORE, "those that this desk has stored"),
            (SAMPLE, "the shipped sample"),
            *named,
        ],
        "desks": DESKS,
        "profiles": [name for name in profiles if allowed(name)],
        "folder": str(known.home / UPLOADS),
        "most": uploads.MOST_BYTES >> 20,
        "clocks": USUAL,
    }


def _told(item: Listed) -> dict[str, JsonValue]:
    created = iso(item.created_at.replace(microsecond=0)) if item.created_at else None
    return {
        "name": item.name,
        **{name: getattr(item, name) or None for name in ("problem", "kind", "title", "summary")},
        "created_at": created,
        "warnings": item.warnings,
        "settings": dict(item.settings),
    }


def _under(item: Listed) -> str:
    """Return under what a file was made: bars, profile and thresholds, as far as it says."""
    told = dict(item.settings)
    words = [(word, told[name]) for name, word in pages.SETTINGS.items() if name in told]
    return "; ".join(f"{word.lower()}: {figures.sanitize(value, 120)}" for word, value in words)


def _over(item: Listed) -> str:
    """Return the period of a file, and how many arms it compares."""
    if item.period is None:
        return ""
    begin, end = (figures.moment(iso(at))[:10] for at in (item.period.start, item.period.end))
    compared = f", {item.arms} compared" if item.arms else ""
    return f"{begin} to {end}{compared}"


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
