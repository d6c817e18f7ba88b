"""A Flask app as a scorer's owner may have one, with Torra's pages beside its own.

Its own page reads the scorer's sentiment table, as it always did. `symbol_databases` of the desk's
desk.json names that file, so the desk's rows appear there too; nothing of the app had to change
but the two lines at the end of `create_app`.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from flask import Flask, Response, abort, jsonify

from torra.dashboard import TorraOverlay

SHOWN = ("timestamp", "timeframe", "composite", "consensus", "verdict")
NEWEST = f"SELECT {', '.join(SHOWN)} FROM sentiment ORDER BY id DESC LIMIT 20"


def create_app(sentiment_file: str, desk_home: str) -> Flask:
    app = Flask(__name__)
    app.config["SENTIMENT_FILE"] = sentiment_file

    @app.get("/")
    def index() -> str:
        return "<h1>Golden charts</h1><a href='/sentiment'>Sentiment</a> <a href='/torra/'>Desk</a>"

    @app.get("/sentiment")
    def sentiment() -> Response:
        path = Path(app.config["SENTIMENT_FILE"])
        if not path.exists():
            abort(404)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            rows = connection.execute(NEWEST).fetchall()
        return jsonify([dict(zip(SHOWN, row, strict=True)) for row in rows])

    @app.errorhandler(404)
    def nothing_here(_error: Exception) -> tuple[str, int]:
        return "Golden charts has no such page", 404

    app.config["TORRA_AGENTS_HOME"] = desk_home
    TorraOverlay(app)
    return app


if __name__ == "__main__":
    create_app(
        os.environ.get("SENTIMENT_FILE", "sentiment.db"),
        os.environ.get("TORRA_HOME", "torra_home"),
    ).run(port=8000)
